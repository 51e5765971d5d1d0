"""`len(x)`, `max(n, 3)` and `math.sqrt(n)`, which lose where a size comes from: stand-ins that keep it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...tracer.dims import apply, formula_of, python_type
from ...tracer.lost_numbers import note_size_asked
from ..values.tensor import Tensor


def of_sizes(real: Callable[..., Any], name: str, other: Callable[..., Any]) -> Callable[..., Any]:
    """A function of `dims.FUNCTIONS` for sizes, `other` for all else; the one that stands for `real`."""

    @functools.wraps(real)
    def call(*numbers: Any, **options: Any) -> Any:
        if options or not any(map(formula_of, numbers)) or not {*map(python_type, numbers)} <= {int, float}:
            return other(*numbers, **options)
        if len(numbers) == 1:
            return apply(name, *numbers)
        return functools.reduce(lambda one, another: apply(name, one, another), numbers)

    return call


@functools.wraps(len)
def _length(x: Any) -> int:
    count = len(x)
    if not isinstance(x, Tensor):
        return count
    note_size_asked()
    return x.shape[0]


SIZED: dict[str, Callable[..., Any]] = {
    "len": _length,
    "max": of_sizes(max, "maximum", max),
    "min": of_sizes(min, "minimum", min),
}
"""By name, what is called in place of Python's functions."""
for stand_in in SIZED.values():
    vars(stand_in)["is_of_sizes"] = True  # for `tracer/number_origins.py`, which calls them again
