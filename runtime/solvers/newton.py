"""Newton's method with full steps, as long as they go well; what is left is for a method that always ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...tracer.ops import linalg
from ..functions.elements.comparison import where
from ..functions.loops.control_flow import while_loop
from ..functions.matrices.linalg import solve
from ..functions.stopping import stop_gradient
from ..tape.apply import apply
from ..transforms.transforms import jacobian
from ..values.tensor import Tensor

Function = Callable[[Tensor], Tensor]
LEAST_DECREASE = 0.5
"""What a full step must make of the norm of the function, at most, for the next one to be tried."""


class Reached(NamedTuple):
    """Where full steps have led.

    Attributes:
        x: the best point.
        scale: the norm of the Jacobian.
        converged: whether the last step was below the tolerance.
        steps: the number of evaluations.
    """

    x: Tensor
    scale: Tensor
    converged: Tensor
    steps: Tensor


def full_steps(function: Function, start: Tensor, tol: float, maxiter: int) -> Reached:
    """Newton's steps while each halves the norm of the function, or is the last one.

    The Jacobian gets a rounding error on its diagonal, so that one that is singular leads far away, where the
    norm does not decrease, and not into an error (P. Deuflhard, Newton Methods for Nonlinear Problems, 2004,
    section 2.1, of inexact steps).
    """
    eps = float(np.finfo(start._value.dtype).eps)
    tol = max(tol, 2.0 * eps)
    slopes = jacobian(function)

    def goes_on(state: Any) -> Any:
        *_, goes_well, converged, steps = state
        return goes_well & ~converged & (steps < maxiter)

    def step(state: Any) -> Any:
        x, residual, norm, _, _, _, steps = state
        matrix = slopes(x)
        scale = (matrix * matrix).sum().sqrt()
        unit = apply(linalg.unit_like, stop_gradient(matrix))
        move = -solve(matrix + unit * (eps * scale + (scale == 0)), residual)
        after = function(x + move)
        size = (after * after).sum().sqrt()
        length = (move * move).sum().sqrt()
        is_last = (length <= tol * ((x * x).sum().sqrt() + tol)) | (size == 0)
        goes_well = size <= LEAST_DECREASE * norm
        is_better = goes_well | (is_last & (size <= norm))
        return (
            where(is_better, x + move, x), where(is_better, after, residual), where(is_better, size, norm),
            scale, goes_well, is_last, steps + 1,
        )  # fmt: skip

    residual = function(start)
    norm = (residual * residual).sum().sqrt()
    zero = start.sum() * 0.0
    state = (start, residual, norm, zero, zero == 0, norm == 0, 0)
    x, _, _, scale, _, converged, steps = while_loop(goes_on, step, state)
    return Reached(x, scale, converged, steps)
