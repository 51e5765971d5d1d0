"""The method of Levenberg and Marquardt: the smallest sum of squares, also of as many values as unknowns.

J. J. Moré, The Levenberg-Marquardt algorithm: implementation and theory (1978), whose scaling this has; the
damping is that of H. B. Nielsen, Damping parameter in Marquardt's method (1999).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..functions.elements.comparison import where
from ..functions.loops.control_flow import while_loop
from ..functions.matrices.decompositions import linalg_qr
from ..functions.matrices.linalg import solve_triangular
from ..functions.shapes.joining import cat
from ..functions.shapes.parts import diag
from ..transforms.transforms import jacobian
from ..values.tensor import Tensor
from .newton import Reached

Function = Callable[[Tensor], Tensor]
FIRST_DAMPING = 1e-4
LEAST_GAIN = 1e-4
"""The share of the predicted decrease that a step must bring."""


class Found(NamedTuple):
    """Where the method has ended.

    Attributes:
        x, residual: the best point and the function there.
        scale: the norm of the Jacobian.
        converged: whether the last step was below the tolerance.
        steps: the number of evaluations.
    """

    x: Tensor
    residual: Tensor
    scale: Tensor
    converged: Tensor
    steps: Tensor


def least_squares_of(
    function: Function, start: Tensor, tol: float, maxiter: int, reached: Reached | None = None
) -> Found:
    """Where the sum of the squares of a function is smallest, from the start or from what was reached."""
    eps = float(np.finfo(start._value.dtype).eps)
    tol = max(tol, 2.0 * eps)
    slopes, zero = jacobian(function), start.sum() * 0.0

    def goes_on(state: Any) -> Any:
        *_, converged, steps = state
        return ~converged & (steps < maxiter)

    def step(state: Any) -> Any:
        x, residual, scales, damping, growth, _, _, steps = state
        matrix = slopes(x)
        scales = scales.maximum((matrix * matrix).sum(0).sqrt())
        weights = where(scales > 0, scales, 1.0)
        move = _damped(matrix, residual, damping.sqrt() * weights)
        tried = x + move
        after = function(tried)
        before = (residual * residual).sum()
        gain = before - (after * after).sum()
        linear = residual + matrix @ move
        predicted = before - (linear * linear).sum()
        noise = 16.0 * eps * before
        is_level = (predicted <= noise) & (gain >= -noise)  # sums of squares do not tell any more
        ratio = where(is_level, 1.0, gain / where(predicted > 0, predicted, 1.0))
        size = (weights * move).norm()
        is_last = size <= tol * ((weights * x).norm() + tol)
        is_better = (ratio > LEAST_GAIN) & (is_level | (predicted > 0))
        less = (1.0 - (2.0 * ratio - 1.0) ** 3).clamp(1.0 / 3.0, 2.0)
        return (
            where(is_better, tried, x),
            where(is_better, after, residual),
            scales,
            damping * where(is_better, less * where(ratio > 0.9, zero + 0.01, 1.0), growth),
            where(is_better, 2.0, growth * 2.0),
            (matrix * matrix).sum().sqrt(),
            is_last | (before == 0),
            steps + 1,
        )

    x, scale, converged, steps = reached or (start, zero, zero > 1.0, 0)
    state = (x, function(x), start * 0.0, zero + FIRST_DAMPING, zero + 2.0, scale, converged, steps)
    x, residual, _, _, _, scale, converged, steps = while_loop(goes_on, step, state)
    return Found(x, residual, scale, converged, steps)


def _damped(matrix: Tensor, residual: Tensor, damping: Tensor) -> Tensor:
    """The step to where the linear function, and a share of the step itself, are smallest together."""
    q, r = linalg_qr(cat([matrix, diag(damping)]))
    along = -(cat([residual, damping * 0.0]) @ q)
    return solve_triangular(r, along[:, None], upper=True)[:, 0]
