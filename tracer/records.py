"""`record`: the standard library's `dataclass`, made in a sixth of its time.

`dataclass` writes up to seven methods of a class as text and compiles each by itself, which for the classes
behind a first call was a seventh of that call's time. Here `__init__`, `__eq__` and `__hash__` are, each when
somebody first asks for it; what prints and refuses are closures over the fields. All else is the
standard library's: `field`, `fields`, slots and `__match_args__`. `replaced` is its `replace`, found sooner.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import cache, partial
from reprlib import recursive_repr
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar

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
        made: dict[str, Any] = {"__init__": _Awaited(cls, "__init__", _initialiser, fields, frozen)}
        if repr:
            made["__repr__"] = _printed
        if eq:
            compared = [one.name for one in fields if one.compare]
            made["__eq__"] = _Awaited(cls, "__eq__", _comparison, compared)
            made["__hash__"] = _Awaited(cls, "__hash__", _hash, compared) if frozen else None
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


Record = TypeVar("Record")


def replaced(one: Record, /, **changes: Any) -> Record:
    """A record with other values of some fields; of its class all fields are given by `__init__`."""
    kind: Any = type(one)
    names, is_plain = _fields_of(kind)
    if not is_plain:
        return kind(**{name: getattr(one, name) for name in names} | changes)
    if not changes.keys() <= names.keys():
        raise TypeError(f"{kind.__name__} has no field {', '.join(sorted(changes.keys() - names.keys()))}")
    made: Record = object.__new__(kind)
    vars(made).update(zip(names, map(vars(one).__getitem__, names)))
    vars(made).update(changes)
    return made


def duplicate(one: Any) -> Any:
    """As `copy.copy`, of an object whose attributes are all in its dict: in a tenth of the time."""
    made = object.__new__(type(one))
    vars(made).update(vars(one))
    return made


@cache
def _fields_of(kind: Any) -> tuple[dict[str, None], bool]:
    """The names of a record's fields, and whether `__init__` does no more than set them in its dict."""
    names = dict.fromkeys(one.name for one in dataclasses.fields(kind))
    has_slots = any("__slots__" in vars(base) for base in kind.__mro__)
    return names, not (has_slots or hasattr(kind, "__post_init__"))


class _Awaited:
    """Stands for a method until somebody asks for it: half of the classes are not made in a first call."""

    def __init__(self, cls: type, name: str, make: Callable[..., Any], *arguments: Any) -> None:
        self._place, self._make = (cls, name), partial(make, cls, *arguments)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        cls, name = self._place
        made = self._make()
        if vars(cls).get(name) is self:
            setattr(cls, name, made)
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
    return _compiled(cls, f"__init__({given})", body or ["pass"], scope)


def _comparison(cls: type, names: list[str]) -> Callable[..., bool]:
    own, others = (_values(of, names) for of in ("self", "other"))
    equal = f"return {own} == {others} if other.__class__ is self.__class__ else NotImplemented"
    return _compiled(cls, "__eq__(self, other)", [equal], {})


def _hash(cls: type, names: list[str]) -> Callable[..., int]:
    return _compiled(cls, "__hash__(self)", [f"return hash({_values('self', names)})"], {})


def _values(of: str, names: list[str]) -> str:
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


def _compiled(cls: type, head: str, body: list[str], scope: dict[str, Any]) -> Callable[..., Any]:
    exec(f"def {head}:\n " + "\n ".join(body), scope)
    method = scope[head.partition("(")[0]]
    method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
    return method


@recursive_repr()
def _printed(self: Any) -> str:
    names = [one.name for one in dataclasses.fields(self) if one.repr]
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def _refuse_assignment(self: Any, name: str, value: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
