"""`min(a, b)` and `max(a, b)` of traced numbers, `sum(values)` and `len(values)` of lists that grow.

Python's functions ask which number is smaller, so that each answer is a way of its own; here code chooses.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.graph import Node
from ...tracer.ops.elementwise import where
from ...tracer.trace import innermost
from ..tape.apply import apply, of_kind, standing_for
from ..tensors.growing import GrowingList
from ..tensors.grown_arrays import GrownArray, combined
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyScalar, PythonNumber

DOUBLE = np.dtype(np.float64)


def array_of(values: Any) -> GrownArray | None:
    """The array of a list that grows, or such an array itself; None for others."""
    if type(values) is GrowingList:
        return values.array
    return values if type(values) is GrownArray else None


def length(values: Any) -> Any:
    """How long a list is that grows, or an array of one; None for others."""
    return values.count if type(values) in (GrowingList, GrownArray) else None


def total(values: Any, /, start: Any = 0) -> Any:
    """Python's `sum`."""
    array = array_of(values)
    if array is None or array.rows.ndim > 1:
        return sum(values, start)
    return combined("sum", array) + start if array.has(1) else start


def smallest(*values: Any, **options: Any) -> Any:
    """Python's `min`."""
    return _extreme(min, "min", values, options)


def largest(*values: Any, **options: Any) -> Any:
    """Python's `max`."""
    return _extreme(max, "max", values, options)


def _extreme(real: Callable[..., Any], name: str, values: tuple[Any, ...], options: dict[str, Any]) -> Any:
    array = array_of(values[0]) if len(values) == 1 and not options else None
    if array is not None and array.rows.ndim == 1 and array.has(1):
        if np.any(np.isnan(array.finite)):  # of which Python takes no notice, but where they come first
            return real([*array])
        return combined(name, array)
    numbers = values[0] if len(values) == 1 and type(values[0]) in (list, tuple) else values
    kind = None if options or len(numbers) < 2 else _kind_among(numbers)
    if kind is None:
        return real(*values, **options)
    is_less = name == "min"
    return functools.reduce(lambda one, other: _chosen(one, other, is_less, kind), numbers)


def _kind_among(numbers: Any) -> type[Tensor] | None:
    """What an extreme of numbers is whichever it is; None where that, or an error, may depend on it.

    Of Python's and NumPy's numbers of double precision it makes no difference which they are, but for 0, by
    which Python refuses to divide, and in what a function returns (`Trace.chosen`).
    """
    traced = [one for one in numbers if issubclass(type(one), Tensor)]
    others = [one for one in numbers if not issubclass(type(one), Tensor)]
    kinds = {type(one) for one in traced}
    if len(kinds) != 1 or not kinds <= {NumpyScalar, PythonNumber} or not all(map(_is_double, traced)):
        return None
    (kind,) = kinds
    if any(type(one) is not float for one in others):
        return None
    if kind is NumpyScalar and not all(math.isfinite(one) and one for one in others):
        return None
    return kind


def _is_double(value: Tensor) -> bool:
    payload = value._value
    return isinstance(payload, Node) and payload.dtype == DOUBLE and not payload.shape


def _chosen(one: Any, other: Any, is_less: bool, kind: type[Tensor]) -> Any:
    """The second of two numbers where it is less, or greater, than the first, as Python has it."""
    takes = other < one if is_less else other > one
    if type(takes) is bool:
        return other if takes else one
    trace = innermost()
    found = of_kind(apply(where, *map(standing_for, (takes, other, one))), kind)
    if kind is NumpyScalar and trace is not None and float in (type(one), type(other)):
        trace.chosen[id(found)] = found, (takes, other, one)
    return found
