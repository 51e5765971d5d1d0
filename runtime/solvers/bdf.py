"""Backward differentiation formulas of orders 1 to 5, for stiff problems.

L. F. Shampine, M. W. Reichelt, The MATLAB ODE suite (1997): steps of one length, whose backward differences
are transformed where the length changes. The coefficients are those of SciPy's BDF.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..functions.elements.comparison import where
from ..functions.shapes.joining import stack
from ..functions.shapes.movement import transpose
from ..functions.stopping import stop_gradient
from ..tape.apply import of_kind, standing_for
from ..tensors.creation import arange
from ..values.tensor import Tensor
from ..values.value_kinds import Auxiliary
from .adjoints import by_elimination
from .equations import Equation, solution_of
from .radau import NEWTON_TOLERANCE, by_newton
from .runge_kutta import LARGEST_FACTOR, Derivative, RungeKutta, factor_of, rms

HIGHEST = 5
ROWS = HIGHEST + 3
"""The differences that are kept: of orders up to two above the highest."""
GAMMA = np.array([0.0, *np.cumsum(1.0 / np.arange(1, HIGHEST + 1)), 0.0, 0.0])
KAPPA = np.array([0.0, -0.1850, -1.0 / 9.0, -0.0823, -0.0415, 0.0, 0.0, 0.0])
ALPHA = (1.0 - KAPPA) * GAMMA
ERRORS = KAPPA * GAMMA + 1.0 / np.arange(1, ROWS + 1)
_I, _J = np.arange(ROWS)[:, None].clip(1), np.arange(ROWS)
_INSIDE = (np.arange(ROWS)[:, None] > 0) & (_J > 0)
CONSTANT = np.where(_INSIDE, (_I - 1) / _I, np.arange(ROWS)[:, None] == 0).astype(float)
LINEAR = np.where(_INSIDE, _J / _I, 0.0)
"""The products of rows of `CONSTANT - ratio * LINEAR` take differences to values at other distances."""
SAFETY = 0.81
"""The step after one whose error is exactly what is allowed."""


class Bdf(RungeKutta):
    """What leads to a step are the differences before it, for its length, and what it adds to the prediction.

    The memory is the differences, the length they are for, their order, and how many steps had this length.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.stages = ROWS
        self.counts_evaluations = False
        self.order = 1

    def first_memory(self, y: Tensor, slope: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        zero = 0.0 * stop_gradient(h)
        differences = stack([y, h * slope, *[0.0 * y] * (ROWS - 2)])
        return differences, stop_gradient(h), zero + 1.0, zero

    def step(
        self, fun: Derivative, t: Any, y: Tensor, slope: Tensor, h: Any, memory: Any
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        differences, length, order, _ = memory
        differences = _for_length(differences, order, stop_gradient(h) / length)
        predicted = _up_to(order, like=y) @ differences
        weight = h / _at(ALPHA, order)
        past = (_of(GAMMA, like=y) * _up_to(order, like=y)) @ differences / _at(ALPHA, order)

        def residual(added: Tensor) -> Tensor:
            return added - (weight * fun(t + h, predicted + added) - past)

        equation = Equation(formula, residual, lambda same: same, by_newton, by_elimination)
        added = solution_of(equation, 0.0 * stop_gradient(y))
        return predicted + added, (*(differences[place] for place in range(ROWS)), added)

    def error(
        self, fun: Derivative, t: Tensor, y: Tensor, slopes: Sequence[Tensor], h: Tensor, scale: Tensor,
        memory: Any,
    ) -> Tensor:  # fmt: skip
        """Infinite where the step's equation has not been solved."""
        *rows, added = slopes
        _, _, order, _ = memory
        differences = stack(rows)
        predicted = _up_to(order, like=y) @ differences
        past = (_of(GAMMA, like=y) * _up_to(order, like=y)) @ differences / _at(ALPHA, order)
        left = added - (h / _at(ALPHA, order) * fun(t + h, predicted + added) - past)
        is_solved = rms(left / scale) <= NEWTON_TOLERANCE
        return where(is_solved, rms(_at(ERRORS, order) * added / scale), np.inf)

    def after_step(
        self, memory: Any, y: Tensor, after: Tensor, slopes: Sequence[Tensor], h: Tensor, error: Tensor,
        scale: Tensor, was_rejected: Tensor,
    ) -> tuple[tuple[Tensor, ...], Tensor]:  # fmt: skip
        _, length, order, count = memory
        differences = _differences_after(slopes, order)
        is_as_before = (h / length - 1.0).abs() < 1e-9
        count = where(is_as_before, count, 0.0) + 1.0
        best, wanted = _best_order(stop_gradient(differences), order, error, scale)
        is_free = count >= order + 1.0
        longer = where(is_free, (SAFETY * wanted).clamp(max=LARGEST_FACTOR), 1.0)
        factor = where(error < 1, longer, factor_of(error, order, was_rejected))
        return (differences, h, where(is_free, best, order), where(is_free, 0.0, count)), factor

    def between(
        self, fun: Derivative, t: Any, y: Tensor, slopes: Sequence[Tensor], h: Any, share: Any, after: Tensor,
        memory: Any,
    ) -> Tensor:  # fmt: skip
        order = memory[2]
        differences = _differences_after(slopes, order)
        total, product = after, 1.0
        for place in range(1, HIGHEST + 1):
            product = product * (share - 1.0 + (place - 1)) / place
            total = total + where(order >= place, product, 0.0) * differences[place]
        return total


def formula() -> None:
    """What the equation of a step is called in messages."""


formula.__name__ = "solve_ivp"


def _of(values: np.ndarray, like: Tensor) -> Tensor:
    return of_kind(standing_for(values.astype(like._value.dtype)), Auxiliary)


def _at(values: np.ndarray, order: Tensor) -> Tensor:
    """The element for an order."""
    is_chosen: Any = arange(len(values)) == order
    found: Tensor = where(is_chosen, _of(values, like=order), 0.0).sum()
    return found


def _up_to(order: Tensor, like: Tensor) -> Tensor:
    """1 for the differences that the formula has, else 0."""
    return (arange(ROWS) <= order).to(like.dtype)


def _for_length(differences: Tensor, order: Tensor, ratio: Tensor) -> Tensor:
    """The differences for steps of another length, of the same polynomial."""
    has = _up_to(order, like=differences)
    block = has[:, None] * has
    constant, linear = _of(CONSTANT, like=differences), _of(LINEAR, like=differences)
    to_values = (constant - ratio * linear).cumprod(0) * block
    from_values = _of(np.cumprod(CONSTANT - LINEAR, 0), like=differences) * block
    matrix = transpose(to_values @ from_values, 0, 1)
    return where(has[:, None] > 0, matrix @ differences, differences)


def _differences_after(slopes: Sequence[Tensor], order: Tensor) -> Tensor:
    """The differences at the end of a step: sums of those of higher orders before, and of what was added."""
    *rows, added = slopes
    before = stack(rows)
    places: Any = arange(ROWS)
    has = places[None] <= order
    sums = ((places[None] >= places[:, None]) & has).to(before.dtype) @ before + added
    is_next, is_second = (places == order + 1.0)[:, None], (places == order + 2.0)[:, None]
    second = added - is_next.to(before.dtype)[:, 0] @ before
    rest = where(is_next, added, where(is_second, second, before * 0.0))
    return where((places <= order)[:, None], sums, rest)


def _best_order(differences: Tensor, order: Tensor, error: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """The order, of three neighbours, that allows the longest step, and by how much that is longer."""

    def longer(shift: float) -> Tensor:
        is_chosen: Any = arange(ROWS) == order + shift + 1.0
        places = is_chosen.to(scale.dtype)
        norm = rms(_at(ERRORS, order + shift) * (places @ differences) / scale)
        return norm.clamp(min=float(np.finfo(scale._value.dtype).tiny)) ** (-1.0 / (order + shift + 1.0))

    same = error.clamp(min=float(np.finfo(error._value.dtype).tiny)) ** (-1.0 / (order + 1.0))
    lower = where(order > 1.0, longer(-1.0), 0.0)
    higher = where(order < HIGHEST, longer(1.0), 0.0)
    most = lower.maximum(same).maximum(higher)
    best = where(lower == most, order - 1.0, where(same == most, order, order + 1.0))
    return best, most
