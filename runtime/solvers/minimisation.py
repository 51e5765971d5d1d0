"""Where functions are smallest, differentiable by all that the functions depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError
from ..functions.common import fail
from ..functions.elements.comparison import where
from ..functions.loops.control_flow import while_loop
from ..functions.matrices.decompositions import eigh
from ..tensors.creation import eye
from ..transforms.transforms import grad, hessian, value_and_grad
from ..values.tensor import Tensor
from .adjoints import DENSE, adjoint_by
from .equations import Equation, solution_of
from .levenberg_marquardt import least_squares_of
from .requirements import Failure, require
from .unknowns import Unknowns

Function = Callable[..., Any]
SUFFICIENT = 1e-4
"""The share of the decrease along the slope that a step must bring (Armijo's condition)."""
CURVATURE = 0.9
"""The share of the slope that may be left after a step (Wolfe's condition)."""
MOST_TRIED = 60
"""Step lengths that are tried along one direction: enough to halve one below the smallest difference."""


def minimize(
    fun: Function,
    x0: Any,
    args: tuple[Any, ...] = (),
    method: str = "BFGS",
    *,
    gtol: float = 1e-8,
    maxiter: int | None = None,
    adjoint: Any = DENSE,
) -> Any:
    """The x where `fun(x, *args)` is smallest, near `x0`; it is differentiable as the result of `root` is.

    Args:
        fun: from the unknowns to one number.
        x0: where to begin: a number, an array or a tensor, or nested containers of them.
        method: "BFGS", or "Newton", with exact second derivatives, for few unknowns and hard problems.
        gtol: the largest element of the gradient that may be left; relative to that at `x0` if this is
            larger than 1.
        maxiter: the most steps; 200 for each unknown unless given.
        adjoint: as of `root`; the matrix is the Hessian.

    Raises:
        ConvergenceError: no point with so small a gradient is found. LinearAlgebraError: the Hessian there is
            singular, and a derivative is asked for.

    Example:
        >>> minimize(lambda x, a: ((x - a) ** 2).sum(), np.zeros(2), (np.array([1.0, 2.0]),))
        array([1., 2.])
    """
    direction = {"BFGS": _Secant, "Newton": _Newton}.get(method)
    if direction is None:
        fail(ArgumentError, f"minimize: method={method!r} is not known. Give 'BFGS' or 'Newton'.")
    unknowns = Unknowns(x0, "minimize", "x0")
    most = 200 * max(unknowns.size, 1) if maxiter is None else maxiter
    equation = Equation(
        minimize,
        unknowns.scalar(fun, args),
        grad,
        lambda function, start: _minimum(function, start, direction(function), gtol, most),
        adjoint_by(adjoint, "minimize"),
    )
    return unknowns.restored(solution_of(equation, unknowns.start))


NO_MINIMUM = Failure(
    "minimize: after {0} steps the largest element of the gradient is {1:.1e}, and {2:.1e} was asked for: "
    "the function is not smooth, has no minimum, or is too flat for its digits. Begin elsewhere, scale the "
    "function, allow more steps (maxiter) or a larger gradient (gtol)."
)


class _Secant:
    """Directions of steepest descent in the metric of what steps have told of the curvature (BFGS).

    The state is the approximate inverse of the Hessian.
    """

    def __init__(self, function: Function) -> None:
        pass

    def first(self, x: Tensor) -> Tensor:
        return eye(x.shape[0], dtype=x.dtype)

    def direction(self, inverse: Tensor, x: Tensor, slope: Tensor) -> Tensor:
        return -(inverse @ slope)

    def after(self, inverse: Tensor, move: Tensor, change: Tensor, steps: Tensor) -> Tensor:
        along = move @ change
        is_convex = along > 0
        size = where(is_convex, along, 1.0)
        scale = where(steps < 1, size / where(is_convex, change @ change, 1.0), 1.0)
        inverse = inverse * scale  # the first step tells the size
        image = inverse @ change
        whole = (1.0 + (change @ image) / size) / size
        update = whole * move[:, None] * move - (image[:, None] * move + move[:, None] * image) / size
        return where(is_convex, inverse + update, inverse)


class _Newton:
    """Newton's directions, with the sizes of the curvatures where these are negative."""

    def __init__(self, function: Function) -> None:
        self._curvature = hessian(function)

    def first(self, x: Tensor) -> Tensor:
        return x[:0]

    def direction(self, state: Tensor, x: Tensor, slope: Tensor) -> Tensor:
        values, vectors = eigh(self._curvature(x))
        sizes = values.abs()
        least = sizes.max() * float(np.sqrt(np.finfo(x._value.dtype).eps))
        sizes = sizes.maximum(least)
        return -(vectors @ ((slope @ vectors) / where(sizes > 0, sizes, 1.0)))

    def after(self, state: Tensor, move: Tensor, change: Tensor, steps: Tensor) -> Tensor:
        return state


def _minimum(function: Function, start: Tensor, directions: Any, gtol: float, maxiter: int) -> Tensor:
    evaluate = value_and_grad(function)

    def goes_on(state: Any) -> Any:
        _, _, slope, _, enough, moves, steps = state
        return (slope.abs().max() > enough) & moves & (steps < maxiter)

    def step(state: Any) -> Any:
        x, value, slope, metric, enough, _, steps = state
        direction = directions.direction(metric, x, slope)
        direction = where(direction @ slope < 0, direction, -slope)
        after, value_after, slope_after = _along(evaluate, x, value, slope, direction)
        metric = directions.after(metric, after - x, slope_after - slope, steps)
        return after, value_after, slope_after, metric, enough, (after != x).any(), steps + 1

    value, slope = evaluate(start)
    enough = gtol * slope.abs().max().maximum(slope.sum() * 0.0 + 1.0)
    state = (start, value, slope, directions.first(start), enough, slope.sum() == slope.sum(), 0)
    x, _, slope, _, _, _, steps = while_loop(goes_on, step, state)
    left = slope.abs().max()
    return require(x, left <= enough, NO_MINIMUM, steps, left, enough)


def _along(
    evaluate: Function, x: Tensor, value: Tensor, slope: Tensor, direction: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """A step along a direction that fulfils Wolfe's conditions, by bisection and doubling.

    A. S. Lewis and M. L. Overton, Nonsmooth optimization via quasi-Newton methods (2013), section 2. Near the
    minimum, where values differ by rounding alone, slopes decide (W. W. Hager and H. Zhang, 2005).
    """
    before = direction @ slope
    noise = value.abs() * (8.0 * float(np.finfo(x._value.dtype).eps))

    def goes_on(state: Any) -> Any:
        *_, is_found, tried = state
        return ~is_found & (tried < MOST_TRIED)

    def step(state: Any) -> Any:
        low, high, length, _, _, _, _, tried = state
        point = x + length * direction
        value_there, slope_there = evaluate(point)
        rise = direction @ slope_there
        is_low = value_there <= value + SUFFICIENT * length * before + noise
        is_level = rise >= CURVATURE * before
        is_steep = rise > -CURVATURE * before + value.abs() * 0.0
        too_long = ~is_low | (is_steep & (value_there > value))
        high_after = where(too_long, length, high)
        low_after = where(is_low & ~is_level, length, low)
        is_open = ~(high_after < np.inf)
        next_length = where(is_open, 2.0 * length, (low_after + where(is_open, low_after, high_after)) / 2.0)
        is_found = ~too_long & is_level
        return (
            low_after, high_after, where(is_found, length, next_length), point, value_there, slope_there,
            is_found, tried + 1,
        )  # fmt: skip

    zero = before * 0.0
    state = (zero, zero + np.inf, zero + 1.0, x, value, slope, zero > 0, 0)
    _, _, _, point, value_there, slope_there, is_found, _ = while_loop(goes_on, step, state)
    return where(is_found, point, x), where(is_found, value_there, value), where(is_found, slope_there, slope)


# --- sums of squares --------------------------------------------------------------------------------------


def least_squares(
    fun: Function,
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    tol: float = 1e-12,
    maxiter: int = 500,
    adjoint: Any = DENSE,
) -> Any:
    """The x where the sum of the squares of `fun(x, *args)` is smallest: Levenberg's and Marquardt's method.

    It is differentiable as the result of `root` is; of the second derivatives of `fun` nothing is left out.

    Args:
        fun: from the unknowns to values, at least as many as unknowns, nested in any way.
        x0, adjoint: as of `root`.
        tol: of the last step, relative to x.
        maxiter: the most evaluations.

    Raises:
        ConvergenceError: steps do not become small. LinearAlgebraError: the minimum is not unique, and a
            derivative is asked for.

    Example:
        >>> least_squares(lambda x: np.stack([x - 1.0, x - 3.0]), 0.0).round(6)
        np.float64(2.0)
    """
    unknowns = Unknowns(x0, "least_squares", "x0")
    equation = Equation(
        least_squares,
        unknowns.residual(fun, args),
        normal_equations,
        lambda function, start: _smallest_squares(function, start, tol, maxiter),
        adjoint_by(adjoint, "least_squares"),
    )
    return unknowns.restored(solution_of(equation, unknowns.start))


NO_SMALLEST = Failure(
    "least_squares: after {0} evaluations the steps are not small. Begin elsewhere, allow more evaluations "
    "(maxiter) or larger steps (tol)."
)


def normal_equations(function: Function) -> Function:
    """What is zero where the sum of squares is smallest: its gradient."""

    def half_of_squares(x: Tensor) -> Tensor:
        return 0.5 * (function(x) ** 2).sum()

    return grad(half_of_squares)


def _smallest_squares(function: Function, start: Tensor, tol: float, maxiter: int) -> Tensor:
    found = least_squares_of(function, start, tol, maxiter)
    return require(found.x, found.converged, NO_SMALLEST, found.steps)
