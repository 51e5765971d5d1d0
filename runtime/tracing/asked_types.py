"""`type(x)` and `hasattr(x, name)`, which ask what Python has made: what stands for an array answers as that.

Code that is traced gets `BUILT_IN` as its variables (`closure.py`). For a function that a transform runs
without compiling, all modules whose code it can run, and asks so, have `type` and `hasattr` meanwhile
(`captures/standing_names.py`). To everybody else, threads and libraries among them, they are Python's.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import Any

from ...tracer.dims import python_type
from ...tracer.graph import Node
from ...tracer.trace import innermost
from ..bytecode.liveness import loop_over
from ..captures.asked_tables import AskedTable
from ..captures.containers import Written
from ..captures.randomness import TracedStream
from ..captures.state import Counted
from ..tensors.growing import GrowingList
from ..tensors.grown_arrays import GrownArray
from ..values.value_kinds import NumpyTensor
from . import counted_loops
from .asked_sizes import SIZED, Called


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


STANDING = NumpyTensor | AskedTable | Counted | Written | TracedStream | GrowingList | GrownArray
"""What stands for objects of other classes."""


class_of_differentiated: list[type] = []
"""The class, if there is one, that eager arrays with a gradient answer with in place of `np.ndarray`."""


def _type_called(*arguments: Any, **options: Any) -> Any:
    if len(arguments) == 1 and issubclass(type(arguments[0]), STANDING):
        return _class_told(arguments[0])
    found = type(*arguments, **options) if options or len(arguments) > 1 else python_type(*arguments)
    return TYPE if found is type else found


def _class_told(standing: Any) -> type:
    is_eager = isinstance(standing, NumpyTensor) and not isinstance(standing.payload, Node)
    if class_of_differentiated and is_eager and standing.requires_grad:
        return class_of_differentiated[-1]
    return standing.__class__


TYPE: Any = class_called(type, _type_called)
"""What is called in place of `type`."""


def _has(value: Any, name: str) -> bool:
    if issubclass(type(value), NumpyTensor):
        return hasattr(value.__class__, name) and name != "__dict__"  # objects have what their class has
    return hasattr(value, name)


ASKED: dict[str, Any] = {"type": TYPE, "hasattr": Called(hasattr, _has)}
"""By name, what is called in place of Python's functions that ask what a value is."""


def _range_called(*arguments: Any) -> Any:
    trace, steps = innermost(), range(*arguments)
    return steps if trace is None else trace.over(steps, sys._getframe(2))  # behind `class_called`


def iterator_called(real: type, elements: Callable[..., Any]) -> Callable[..., Any]:
    """What makes an iterator: one that a `for` runs through may be counted."""

    def call(*arguments: Any, **options: Any) -> Any:
        trace, frame = innermost(), sys._getframe(2)
        if trace is not None:
            loop = loop_over(frame.f_code, frame.f_lasti)
            given = None if loop is None else elements(*arguments, **options)
            found = None if given is None else trace.over_elements(given, loop, frame)
            if found is not None:
                return found
        return real(*arguments, **options)

    return call


BUILT_IN: dict[str, Any] = (
    ASKED
    | SIZED
    | {"range": class_called(range, _range_called)}
    | {
        "enumerate": class_called(enumerate, iterator_called(enumerate, counted_loops.enumerated)),
        "zip": class_called(zip, iterator_called(zip, counted_loops.zipped)),
    }
)
"""By name, all that is called in place of Python's functions where code is traced."""
REAL: dict[str, Any] = {name: vars(builtins)[name] for name in BUILT_IN}
"""By name, Python's."""


def is_as_in_python(namespace: dict[str, Any], name: str) -> bool:
    """Whether code with these variables means Python's function by the name, perhaps its stand-in by now."""
    found = namespace.get(name, REAL[name])
    return found is REAL[name] or found is BUILT_IN[name]
