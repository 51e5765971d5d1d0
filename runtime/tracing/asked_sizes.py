"""`len(x)`, `max(n, 3)` and `math.log(n)`, which lose where a size comes from: stand-ins that keep it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...tracer.dims import apply, formula_of, python_type
from ...tracer.lost_numbers import note_size_asked
from ..captures.asked_tables import AskedTable
from ..captures.objects import StandingFunction
from ..values.tensor import Tensor
from . import asked_numbers


class Called(StandingFunction):
    """What is called in place of a function of Python's, and else is that: as a key, where it is compared."""

    def __init__(self, real: Callable[..., Any], call: Callable[..., Any], is_of_sizes: bool = False) -> None:
        self._real = real
        self._call = call
        self.is_of_sizes = is_of_sizes
        """Whether `tracer/number_origins.py` may call it again."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._real)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._call(*arguments, **options)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self._real

    def __hash__(self) -> int:
        return hash(self._real)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __repr__(self) -> str:
        return repr(self._real)


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


def _length(x: Any) -> Any:
    grown = asked_numbers.length(x)
    if grown is not None:
        return grown
    count = len(x)
    is_tensor = isinstance(x, Tensor)
    if is_tensor or type(x) is AskedTable:
        note_size_asked(depth=3)  # behind `Called`
    return x.shape[0] if is_tensor else count


SIZED: dict[str, Callable[..., Any]] = {
    "len": Called(len, _length, is_of_sizes=True),
    "max": Called(max, of_sizes(max, "maximum", asked_numbers.largest), is_of_sizes=True),
    "min": Called(min, of_sizes(min, "minimum", asked_numbers.smallest), is_of_sizes=True),
    "sum": Called(sum, asked_numbers.total),
}
"""By name, what is called in place of Python's functions."""
