"""The implicit method of Radau of order 5, for stiff problems.

E. Hairer, G. Wanner, Solving Ordinary Differential Equations II (1996), section IV.8. The stages of a step
are the solution of an equation, and differentiated as such: no iteration is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..functions.elements.comparison import where
from ..functions.loops.control_flow import while_loop
from ..functions.matrices.linalg import solve
from ..functions.shapes.joining import cat
from ..functions.stopping import stop_gradient
from ..tensors.creation import eye
from ..transforms.transforms import jacobian
from ..values.tensor import Tensor
from .adjoints import by_elimination
from .equations import Equation, OfVector, solution_of
from .runge_kutta import Derivative, RungeKutta, combined, rms

MOST_ITERATIONS = 10
NEWTON_TOLERANCE = 1e-3
"""Of the stages, relative to what a step may err."""


def stages() -> None:
    """What the equation of a step's stages is called in messages."""


stages.__name__ = "solve_ivp"


class Radau(RungeKutta):
    """By collocation at three nodes, the last at the end of a step.

    What leads to a step are the slope where it begins, what is added to the value at each node, and the slope
    where it ends.
    """

    def __init__(self, name: str) -> None:
        from scipy.integrate._ivp import radau as table  # not at start

        self.name = name
        self.stages = 4
        self.counts_evaluations = False
        self.order = 3
        self._nodes = table.C
        powers = np.arange(1, 4)
        moments = table.C[:, None] ** powers / powers
        self._matrix = moments @ np.linalg.inv(table.C[:, None] ** (powers - 1))
        self._error_weights, self._shift, self._powers = table.E, float(table.MU_REAL), table.P

    def step(
        self, fun: Derivative, t: Any, y: Tensor, slope: Tensor, h: Any, memory: Any
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        size = y.shape[0]

        def residual(added: Tensor) -> Tensor:
            return self._residual(fun, t, y, h, added)

        equation = Equation(stages, residual, lambda same: same, by_newton, by_elimination)
        found = solution_of(equation, cat([stop_gradient(slope * h) * float(node) for node in self._nodes]))
        added = list(found.reshape((3, size)))
        after = y + added[-1]
        return after, (slope, *added, fun(t + h, after))

    def _residual(self, fun: Derivative, t: Any, y: Tensor, h: Any, added: Tensor) -> Tensor:
        """What is zero for the stages of a step, one behind the other."""
        parts = added.reshape((3, y.shape[0]))
        slopes = [fun(t + float(node) * h, y + part) for node, part in zip(self._nodes, parts)]
        return added - cat([h * combined(row, slopes) for row in self._matrix])

    def error(
        self, fun: Derivative, t: Tensor, y: Tensor, slopes: Sequence[Tensor], h: Tensor, scale: Tensor,
        memory: Any,
    ) -> Tensor:  # fmt: skip
        """Infinite where the stages have not been found."""
        first, *added, _ = slopes
        left = self._residual(fun, t, y, h, cat(list(added)))
        is_solved = rms(left / cat([scale] * 3)) <= NEWTON_TOLERANCE
        matrix = self._shift / h * eye(y.shape[0], dtype=y.dtype) - jacobian(lambda y: fun(t, y))(y)
        raw = first + combined(self._error_weights, added) / h
        is_finite = matrix.abs().sum() < np.inf
        safe = where(is_finite, matrix, eye(y.shape[0], dtype=y.dtype))
        return where(is_solved & is_finite, rms(solve(safe, raw) / scale), np.inf)

    def between(
        self, fun: Derivative, t: Any, y: Tensor, slopes: Sequence[Tensor], h: Any, share: Any, after: Tensor,
        memory: Any,
    ) -> Tensor:  # fmt: skip
        _, *added, _ = slopes
        total = 0.0 * y
        for column in reversed(range(self._powers.shape[1])):
            total = (total + combined(self._powers[:, column], added)) * share
        return y + total


def by_newton(function: OfVector, start: Tensor) -> Tensor:
    """Newton's iteration with the Jacobian where it begins; whoever asks looks whether it has converged."""
    matrix = jacobian(function)(start)
    is_finite = matrix.abs().sum() < np.inf
    matrix = where(is_finite, matrix, eye(start.shape[0], dtype=start.dtype))
    least = float(np.finfo(start._value.dtype).eps) * 4.0

    def goes_on(state: Any) -> Any:
        _, is_found, steps = state
        return ~is_found & (steps < MOST_ITERATIONS)

    def step(state: Any) -> Any:
        x, _, steps = state
        move = solve(matrix, function(x))
        after = x - move
        return after, move.abs().max() <= least * after.abs().max(), steps + 1

    found: Tensor = while_loop(goes_on, step, (start, ~is_finite, 0))[0]
    return found
