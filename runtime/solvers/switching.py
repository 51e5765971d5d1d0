"""A method that finds out by itself whether a problem is stiff, in the place of LSODA.

It begins with the method of order 8 of Dormand and Prince, and goes on with that of Radau once steps are
bounded by stability, not by errors: E. Hairer, G. Wanner, Solving Ordinary Differential Equations II (1996),
section IV.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..functions.elements.comparison import where
from ..functions.loops.choices import cond
from ..functions.stopping import stop_gradient
from ..values.tensor import Tensor
from .radau import Radau
from .runge_kutta import Derivative, Dop853, RungeKutta, combined, factor_of

STABLE = 6.1
"""Where the region of stability of the explicit method ends, on the negative real axis."""
MOST_AT_THE_BORDER = 15
"""Steps near there after which a problem counts as stiff."""


class Switching(RungeKutta):
    """The memory is the number of steps near the border of stability, less those that were not."""

    def __init__(self, name: str) -> None:
        self._explicit, self._implicit = Dop853("DOP853"), Radau("Radau")
        self.name = name
        self.stages = self._explicit.stages
        self.counts_evaluations = False
        self.order = self._explicit.order

    def first_memory(self, y: Tensor, slope: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        return (slope.sum() * 0.0,)

    def after_step(
        self, memory: Any, y: Tensor, after: Tensor, slopes: Sequence[Tensor], h: Tensor, error: Tensor,
        scale: Tensor, was_rejected: Tensor,
    ) -> tuple[tuple[Tensor, ...], Tensor]:  # fmt: skip
        *before, last, end = (stop_gradient(one) for one in slopes)
        moved = after - (y + h * combined(self._explicit.last_row, before))
        change = end - last
        is_at_border = h * h * (change * change).sum() > STABLE**2 * (moved * moved).sum()
        count = where(is_at_border, memory[0] + 1.0, (memory[0] - 1.0).clamp(min=0.0))
        is_stiff = _is_stiff(memory)
        order = where(is_stiff, self._implicit.order, self._explicit.order)
        return (where(is_stiff, memory[0], count),), factor_of(error, order, was_rejected)

    def step(
        self, fun: Derivative, t: Any, y: Tensor, slope: Tensor, h: Any, memory: Any
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        def implicit() -> tuple[Tensor, tuple[Tensor, ...]]:
            after, (*slopes, end) = self._implicit.step(fun, t, y, slope, h, ())
            unused = [0.0 * y] * (self.stages - len(slopes))
            return after, (*slopes, *unused, end)

        found: tuple[Tensor, tuple[Tensor, ...]] = cond(
            _is_stiff(memory), implicit, lambda: self._explicit.step(fun, t, y, slope, h, ())
        )
        return found

    def error(
        self, fun: Derivative, t: Tensor, y: Tensor, slopes: Sequence[Tensor], h: Tensor, scale: Tensor,
        memory: Any,
    ) -> Tensor:  # fmt: skip
        found: Tensor = cond(
            _is_stiff(memory),
            lambda: self._implicit.error(fun, t, y, self._implicit_slopes(slopes), h, scale, ()),
            lambda: self._explicit.error(fun, t, y, slopes, h, scale, ()),
        )
        return found

    def between(
        self, fun: Derivative, t: Any, y: Tensor, slopes: Sequence[Tensor], h: Any, share: Any, after: Tensor,
        memory: Any,
    ) -> Tensor:  # fmt: skip
        found: Tensor = cond(
            _is_stiff(memory),
            lambda: self._implicit.between(fun, t, y, self._implicit_slopes(slopes), h, share, after, ()),
            lambda: self._explicit.between(fun, t, y, slopes, h, share, after, ()),
        )
        return found

    def _implicit_slopes(self, slopes: Sequence[Tensor]) -> Sequence[Tensor]:
        return (*slopes[: self._implicit.stages], slopes[-1])


def _is_stiff(memory: Any) -> Tensor:
    is_stiff: Tensor = memory[0] >= MOST_AT_THE_BORDER
    return is_stiff
