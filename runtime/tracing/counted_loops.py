"""What a `for` runs through by a counter, besides a `range`: arrays, `enumerate`, `zip`, `itertools.count`.

Where the number of such an iterator's step is a traced value, turns of the loop are alike (`counters.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.trace import ConstantNeeded, innermost
from ..values.tensor import make
from ..values.value_kinds import NumpyTensor, PythonNumber

LARGEST_LIST = 1 << 12
"""Numbers in a list that is an array for a loop."""


class Elements:
    """What an iterator gives in its steps.

    Args:
        length: how many there are; None for no end.
        at: the one at a place, which may be a traced value.
        held: what it is made of, which may change.
    """

    def __init__(self, length: int | None, at: Callable[[Any], Any], held: tuple[Any, ...] = ()) -> None:
        self.length = length
        self.at = at
        self.held = held


def elements_of(values: Any) -> Elements | None:
    """What a `for` over a value gives; None for what has no places."""
    if type(values) is range:
        start, step = values.start, values.step
        return Elements(len(values), lambda place: start + place * step)
    if type(values) is NumpyTensor and values._value.shape:
        return Elements(int(values._value.shape[0]), lambda place: values[place], (values,))
    if type(values) in (list, tuple) and len(values) <= LARGEST_LIST:
        return _of_numbers(values)
    return None


def _of_numbers(values: Sequence[Any]) -> Elements | None:
    """What a list of Python's numbers gives, all integers or all floats."""
    trace, before = innermost(), [*values]
    if trace is None or {*map(type, before)} not in ({int}, {float}):
        return None
    array = np.array(before)
    if array.dtype.kind not in "if":
        return None

    def at(place: Any) -> Any:
        if [*values] != before:  # changed by the loop
            raise ConstantNeeded(set(trace.counters))
        found = make(trace.capture(array), NumpyTensor)[place]
        return make(found._value, PythonNumber)

    return Elements(len(before), at)


def counted_from(start: Any = 0, step: Any = 1) -> Elements | None:
    """`itertools.count`."""
    if type(start) is not int or type(step) is not int:
        return None
    return Elements(None, lambda place: start + place * step)


def enumerated(values: Any, start: Any = 0) -> Elements | None:
    """`enumerate`."""
    found = elements_of(values)
    if found is None or type(start) is not int:
        return None
    return Elements(found.length, lambda place: (place + start, found.at(place)), found.held)


def zipped(*values: Any, strict: bool = False) -> Elements | None:
    """`zip`."""
    found = [elements_of(one) for one in values]
    known = [one for one in found if one is not None]
    if strict or not known or len(known) < len(found):
        return None
    length = min(one.length for one in known if one.length is not None)
    held = tuple(one.held for one in known)
    return Elements(length, lambda place: tuple(one.at(place) for one in known), held)


__all__ = ["Elements", "counted_from", "elements_of", "enumerated", "zipped"]
