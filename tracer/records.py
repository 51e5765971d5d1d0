"""`record`: the standard library's `dataclass`, made in a sixth of its time.

`dataclass` writes up to seven methods of a class as text and compiles each by itself, which for the classes
behind a first call was a seventh of that call's time. Here that is done for `__init__` alone, when the first
object is made; what compares, hashes, prints and refuses are closures over the fields. All else is the
standard library's: `field`, `fields`, `replace`, slots and `__match_args__`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from types import MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        eq: bool = True,
        repr: bool = True,
        slots: bool = False,
    ) -> Any:
        """A class of fields, as `dataclasses.dataclass` makes it of the same options."""
        if cls is None:
            return lambda cls: record(cls, frozen=frozen, eq=eq, repr=repr, slots=slots)
        own = frozenset(vars(cls))
        cls = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots)
        fields = dataclasses.fields(cls)
        made: dict[str, Any] = {"__init__": _Initialiser(cls, fields, frozen)}
        if repr:
            made["__repr__"] = _printed
        if eq:
            made |= _comparison([one.name for one in fields if one.compare], frozen)
        for name, method in made.items():
            if name not in own or (name == "__hash__" and vars(cls)[name] is None):
                setattr(cls, name, method)
        if frozen:
            cls.__setattr__ = _refuse_assignment
            cls.__delattr__ = _refuse_deletion
            if slots:
                cls.__getstate__ = _state
                cls.__setstate__ = _restore
        return cls


class _Initialiser:
    """Stands for `__init__` until somebody asks for it: half of the classes are not made in a first call."""

    def __init__(self, cls: type, fields: tuple[Field[Any], ...], frozen: bool) -> None:
        self._arguments = cls, fields, frozen

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        cls = self._arguments[0]
        made = _initialiser(*self._arguments)
        if vars(cls).get("__init__") is self:
            cls.__init__ = made  # type: ignore[misc]
        return made if instance is None else MethodType(made, instance)


def _initialiser(cls: type, fields: tuple[Field[Any], ...], frozen: bool) -> Callable[..., None]:
    """`__init__`, compiled of text: it is called often, and nothing else is as quick."""
    scope: dict[str, Any] = {"__name__": cls.__module__, "_set": object.__setattr__, "_absent": MISSING}
    parameters: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    for one in fields:
        name, value, default = one.name, one.name, ""
        if one.default_factory is not MISSING:
            scope[f"_make_{name}"] = one.default_factory
            value = f"_make_{name}() if {name} is _absent else {name}" if one.init else f"_make_{name}()"
            default = "=_absent"
        elif one.default is not MISSING:
            scope[f"_default_{name}"] = one.default
            value, default = name if one.init else f"_default_{name}", f"=_default_{name}"
        elif not one.init:
            continue
        if one.init:
            (by_name if one.kw_only else parameters).append(name + default)
        body.append(f'_set(self, "{name}", {value})' if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    given = ", ".join(["self", *parameters, *(["*", *by_name] if by_name else [])])
    exec(f"def __init__({given}):\n " + "\n ".join(body or ["pass"]), scope)
    initialiser = scope["__init__"]
    initialiser.__qualname__ = f"{cls.__qualname__}.__init__"
    return initialiser


@recursive_repr()
def _printed(self: Any) -> str:
    names = [one.name for one in dataclasses.fields(self) if one.repr]
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _comparison(names: list[str], frozen: bool) -> dict[str, Any]:
    found = attrgetter(*names) if names else lambda self: None
    values = found if len(names) > 1 else lambda self: (found(self),)  # of one name it gives no tuple

    def __eq__(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__ if frozen else None}


def _refuse_assignment(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
