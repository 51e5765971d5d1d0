"""`type(x)`, which asks what Python has made: for a Tensor that stands for an array it is the array's type.

Code that is traced gets `TYPE` as its variable `type` (`stand_ins.py`). For a function that a transform runs
without compiling, all modules whose code it can run have that variable meanwhile. To everybody else, threads
and libraries among them, it is `type`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ...tracer.dims import python_type
from ..captures.containers import Written
from ..captures.state import Counted
from ..values.value_kinds import NumpyTensor


def class_called(real: type, call: Callable[..., Any]) -> Any:
    """What is called in place of a class, and else is the class: in `isinstance`, as a base, as a key."""

    class Meta(type):
        def __new__(meta, name: str, bases: tuple[Any, ...], names: dict[str, Any], **options: Any) -> Any:
            if not bases:
                return super().__new__(meta, name, bases, names)
            return type(name, tuple(real if one is stand_in else one for one in bases), names, **options)

        def __call__(cls, *arguments: Any, **options: Any) -> Any:
            return call(*arguments, **options)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

        def __eq__(cls, other: object) -> bool:
            return other is cls or other is real

        def __hash__(cls) -> int:
            return hash(real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

        def __getattribute__(cls, name: str) -> Any:
            return getattr(real, name)

        def __getitem__(cls, parameters: Any) -> Any:
            return real[parameters]  # type: ignore[index]

        def __repr__(cls) -> str:
            return repr(real)

    stand_in: Any = Meta(real.__name__, (), {})
    return stand_in


def _type_called(*arguments: Any, **options: Any) -> Any:
    if len(arguments) == 1 and issubclass(type(arguments[0]), NumpyTensor | Counted | Written):
        return arguments[0].__class__
    found = type(*arguments, **options) if options or len(arguments) > 1 else python_type(*arguments)
    return TYPE if found is type else found


TYPE: Any = class_called(type, _type_called)
"""What is called in place of `type`."""

_lock = threading.Lock()
_entered: dict[int, tuple[int, bool]] = {}
"""By the identity of a module's variables: how many transforms under way run its code, and whether `type` is
one of its variables."""


@contextmanager
def types_of_plain_call(namespaces: Iterable[dict[str, Any]]) -> Iterator[None]:
    """Inside, `type` in these namespaces is `TYPE`, but where they have another variable of that name."""
    entered: list[dict[str, Any]] = []
    try:
        with _lock:
            for namespace in namespaces:
                if namespace.get("type", type) in (TYPE, type):
                    count, is_own = _entered.get(id(namespace), (0, "type" in namespace))
                    _entered[id(namespace)] = count + 1, is_own
                    entered.append(namespace)
                    namespace["type"] = TYPE
        yield
    finally:
        with _lock:
            for namespace in entered:
                _leave(namespace)


def _leave(namespace: dict[str, Any]) -> None:
    count, is_own = _entered.pop(id(namespace))
    if count > 1:
        _entered[id(namespace)] = count - 1, is_own
    elif namespace.get("type") is not TYPE:  # the function has assigned to it
        return
    elif is_own:
        namespace["type"] = type
    else:
        del namespace["type"]
