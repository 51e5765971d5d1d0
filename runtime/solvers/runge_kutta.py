"""Explicit Runge-Kutta methods with steps of their own choice, as SciPy's classes have them.

E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I (1993), sections II.4 to II.6.
The coefficients are read from SciPy's classes, so the steps are SciPy's up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..functions.elements.comparison import where
from ..functions.stopping import stop_gradient
from ..values.tensor import Tensor

SAFETY, LEAST_FACTOR, LARGEST_FACTOR = 0.9, 0.2, 10.0
"""A step is chosen a little shorter than the error allows, and changes by such factors at most."""
Derivative = Callable[[Any, Tensor], Tensor]


def combined(weights: Sequence[float], values: Sequence[Tensor]) -> Tensor:
    """A sum with weights, of which those that are 0 are left out."""
    terms = [float(weight) * value for weight, value in zip(weights, values) if weight]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def rms(values: Tensor) -> Tensor:
    """The root of the mean square."""
    return (values * values).sum().sqrt() / values.shape[0] ** 0.5


class RungeKutta:
    """A method, by the table of its coefficients.

    Attributes:
        stages: the evaluations of a step; the last is the first of the next step.
        order: that of the estimate of errors of the first step.
        counts_evaluations: whether each step takes so many.

    What a method knows of the steps before is its memory, a tuple of tensors, which its steps are given.
    """

    def __init__(self, name: str) -> None:
        from scipy import integrate  # not at start

        table = getattr(integrate, name)
        self.name = name
        self.stages = int(table.n_stages)
        self.counts_evaluations = True
        self.order = int(table.error_estimator_order)
        self._rows, self._nodes, self._weights = table.A, table.C, table.B
        self._table = table

    def first_memory(self, y: Tensor, slope: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        return ()

    def after_step(
        self, memory: Any, y: Tensor, after: Tensor, slopes: Sequence[Tensor], h: Tensor, error: Tensor,
        scale: Tensor, was_rejected: Tensor,
    ) -> tuple[tuple[Tensor, ...], Tensor]:  # fmt: skip
        """The memory after a step if it is taken, and by how much the length of the next one changes."""
        return (), factor_of(error, self.order, was_rejected)

    def step(
        self, fun: Derivative, t: Any, y: Tensor, slope: Tensor, h: Any, memory: Any
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The value after a step, and the slopes that have led to it; the last is that at the end."""
        slopes = [slope]
        for row, node in zip(self._rows[1:], self._nodes[1:]):
            slopes.append(fun(t + float(node) * h, y + combined(row, slopes) * h))
        after = y + h * combined(self._weights, slopes)
        return after, (*slopes, fun(t + h, after))

    def error(
        self, fun: Derivative, t: Tensor, y: Tensor, slopes: Sequence[Tensor], h: Tensor, scale: Tensor,
        memory: Any,
    ) -> Tensor:  # fmt: skip
        """The norm of the error, relative to what is allowed."""
        return rms(combined(self._table.E, slopes) * h / scale)

    def between(
        self, fun: Derivative, t: Any, y: Tensor, slopes: Sequence[Tensor], h: Any, share: Any, after: Tensor,
        memory: Any,
    ) -> Tensor:  # fmt: skip
        """The value at a share of a step."""
        powers = self._table.P
        total = 0.0 * y
        power = share
        for column in range(powers.shape[1]):
            total = total + combined(powers[:, column], slopes) * power
            power = power * share
        return y + h * total


class Dop853(RungeKutta):
    """The method of order 8 of Dormand and Prince, with an error of orders 5 and 3."""

    @property
    def last_row(self) -> Sequence[float]:
        """The weights of what leads to the value that the last stage is the slope at."""
        row: Sequence[float] = self._rows[-1]
        return row

    def error(
        self, fun: Derivative, t: Tensor, y: Tensor, slopes: Sequence[Tensor], h: Tensor, scale: Tensor,
        memory: Any,
    ) -> Tensor:  # fmt: skip
        fifth = combined(self._table.E5, slopes) / scale
        third = combined(self._table.E3, slopes) / scale
        square = (fifth * fifth).sum()
        whole = square + 0.01 * (third * third).sum()
        safe = where(whole > 0, whole, 1.0)
        return where(whole > 0, h.abs() * square / (safe * scale.shape[0]).sqrt(), 0.0 * square + whole)

    def between(
        self, fun: Derivative, t: Any, y: Tensor, slopes: Sequence[Tensor], h: Any, share: Any, after: Tensor,
        memory: Any,
    ) -> Tensor:  # fmt: skip
        every = list(slopes)
        for row, node in zip(self._table.A_EXTRA, self._table.C_EXTRA):
            every.append(fun(t + float(node) * h, y + combined(row, every) * h))
        change = after - y
        first = h * slopes[0] - change
        second = 2.0 * change - h * (slopes[-1] + slopes[0])
        rest = [h * combined(row, every) for row in self._table.D]
        total = 0.0 * y
        for place, part in enumerate(reversed([change, first, second, *rest])):
            total = (total + part) * (share if place % 2 == 0 else 1.0 - share)
        return y + total


def first_step(
    fun: Derivative, t: Tensor, y: Tensor, slope: Tensor, direction: Tensor, interval: Tensor, order: Any,
    rtol: float, atol: Any, max_step: float,
) -> Tensor:  # fmt: skip
    """The length of the first step: Hairer, Norsett, Wanner, page 169."""
    scale = atol + y.abs() * rtol
    value, steepness = rms(y / scale), rms(slope / scale)
    is_flat = value.minimum(steepness) < 1e-5
    tried = where(is_flat, 1e-6, 0.01 * value / where(is_flat, 1.0, steepness)).minimum(interval)
    safe = where(tried > 0, tried, 1.0)
    there = stop_gradient(fun(t + tried * direction, y + tried * direction * slope))
    bend = rms((there - slope) / scale) / safe
    largest = steepness.maximum(bend)
    is_straight = largest <= 1e-15
    guess = (0.01 / where(is_straight, 1.0, largest)) ** (1.0 / (order + 1))
    length = where(is_straight, (tried * 1e-3).maximum(tried * 0.0 + 1e-6), guess)
    return (100.0 * tried).minimum(length).minimum(interval).clamp(max=max_step)


def factor_of(error: Tensor, order: Any, was_rejected: Tensor) -> Tensor:
    """By how much the step changes: up to ten times, none after a step that had to be repeated."""
    is_small = error < 1
    exponent = -1.0 / (order + 1)
    wanted = SAFETY * where(error > 0, error, 1.0) ** exponent
    longer = where(error > 0, wanted.clamp(max=LARGEST_FACTOR), LARGEST_FACTOR)
    longer = where(was_rejected, longer.clamp(max=1.0), longer)
    shorter = where(wanted > LEAST_FACTOR, wanted, LEAST_FACTOR)  # also where the error is nan
    return where(is_small, longer, shorter)


def smallest_step(t: Tensor) -> Tensor:
    """Ten times the distance to the next number: below it steps mean nothing."""
    eps = float(np.finfo(t._value.dtype).eps)
    power = (t.abs().clamp(min=float(np.finfo(t._value.dtype).tiny)).log() / math.log(2.0)).floor().exp2()
    return 10.0 * eps * power
