"""Which of the arrays that a function gets and reaches are one object, where its code asks: `x is y`.

In a trace one stand-in stands for all of them; that others are one, or are not, makes another trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

import numpy as np

from ...tracer.errors import TraceError
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyTensor
from .places import Reading

Pattern = tuple[int, ...]
"""Of each array the position of the first that is the same object."""


def object_of(value: Any) -> Any:
    """What a leaf stands for, in the plain call."""
    return value._value if isinstance(value, NumpyTensor) else value


def pattern_of(values: Sequence[Any]) -> Pattern:
    """Numbers, which have no identity to speak of, are none but themselves."""
    first: dict[int, int] = {}
    return tuple(
        first.setdefault(id(object_of(value)), position) if _has_identity(value) else position
        for position, value in enumerate(values)
    )


def _has_identity(value: Any) -> bool:
    return type(value) is np.ndarray or (isinstance(value, Tensor) and not value._is_number)


def shared(values: Sequence[Any], stand_ins: Sequence[Any]) -> list[Any]:
    """For each value the stand-in of the first that is the same object."""
    return [stand_ins[first] for first in pattern_of(values)]


def require_alike(
    function: str, values: Sequence[Any], labels: Sequence[str], differentiated: Set[str] = frozenset()
) -> None:
    """TraceError where one object is given with and without a gradient: nothing can stand for both."""
    for position, first in enumerate(pattern_of(values)):
        has_gradient = not differentiated.isdisjoint((labels[position], labels[first]))
        if values[position] is not values[first] or (position != first and has_gradient):
            raise TraceError(
                f"{function} asks whether values are one object (`is`, id()), and {labels[first]} and "
                f"{labels[position]} are one array, with respect to one of which it is differentiated. "
                "Compare something else, or pass a copy."
            )


def held_by(reading: Reading, arguments: int, expected: Pattern) -> Callable[[Sequence[Any]], bool]:
    """What tells whether the same arrays are one object in another call, from the leaves of that."""
    read, count = reading.read, len(reading.sources)

    def are_held(leaves: Sequence[Any]) -> bool:
        given = getattr(leaves, "given", leaves)[:arguments]
        values = (None if read is None else read()) or ()
        return pattern_of((*given, *values[:count])) == expected

    return are_held
