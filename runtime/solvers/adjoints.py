"""Adjoint equations of solutions: (dF/dx)^T l = -g, by elimination or without a matrix."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, LinearAlgebraError
from ...tracer.ops.linalg import reciprocal_condition
from ..functions.common import fail
from ..functions.elements.comparison import where
from ..functions.matrices import linalg
from ..functions.shapes.movement import transpose
from ..functions.stopping import stop_gradient
from ..tape.apply import apply
from ..transforms.transforms import jacobian, jvp
from ..values.modes import no_grad
from ..values.tensor import Tensor
from .krylov import BY_NAME
from .linear import solved_by, transposed
from .requirements import Failure, require

OfVector = Callable[[Tensor], Tensor]
Adjoint = Callable[[OfVector, Tensor, Tensor], Tensor]
Reach = Callable[[Tensor], Tensor]
DENSE = "dense"


def adjoint_by(method: Any, function: str, reach: Reach | None = None) -> Adjoint:
    """How the adjoint equation is solved.

    Args:
        method: "dense", with the matrix; "cg", "bicgstab" or "gmres", with its products with vectors alone;
            or `solve(product, vector)` of one's own.
        function: who asks, for messages.
        reach: how far from a solution the root may be, as its solver says; None where it does not tell.

    Raises:
        ArgumentError: there is no such method.
    """
    if method == DENSE:
        return partial(_by_elimination, function, reach)
    if not callable(method) and method not in BY_NAME:
        fail(
            ArgumentError,
            f"{function}: adjoint={method!r} is not known. Give {DENSE!r}, {', '.join(map(repr, BY_NAME))}, "
            "or a function solve(product, vector).",
        )

    def by_products(residual: OfVector, solution: Tensor, cotangent: Tensor) -> Tensor:
        return solved_by(method, transposed(residual, solution), -cotangent)

    return by_products


def by_elimination(residual: OfVector, solution: Tensor, cotangent: Tensor) -> Tensor:
    """The solution where the matrix is known to have an inverse."""
    return linalg.solve(transpose(jacobian(residual)(solution), 0, 1), -cotangent)


def _by_elimination(
    function: str, reach: Reach | None, residual: OfVector, solution: Tensor, cotangent: Tensor
) -> Tensor:
    matrix = jacobian(residual)(solution)
    with no_grad():
        one = _separateness(residual, stop_gradient(solution), stop_gradient(matrix), function, reach)
    return linalg.solve(transpose(matrix, 0, 1), -cotangent * one)


def _separateness(
    residual: OfVector, solution: Tensor, matrix: Tensor, function: str, reach: Reach | None
) -> Tensor:
    """1, if there is a root at the solution, and not several that are about to meet.

    Newton's step from the solution is how far away the root is. Where the Jacobian changes over that way by a
    share that is not small, it is zero somewhere near (Kantorovich's condition; a double root has a half).
    Where the step leads far away, or to values that are no smaller, the function jumps at the solution.

    Raises:
        LinearAlgebraError: it does not, or has no inverse. ConvergenceError: there is no root.
    """
    one = regularity(matrix, function)
    values = residual(solution) * one
    step = stop_gradient(linalg.solve(matrix, values))
    after, slope = jvp(residual, (solution - step,), (step,))
    bend, size, left, before = (
        stop_gradient(part).norm() for part in (linalg.solve(matrix, values - slope), step, after, values)
    )
    failure = Failure(NEARLY_SINGULAR.format(function), LinearAlgebraError)
    one = require(one, bend <= MOST_BEND * size, failure, bend / where(size > 0, size, 1.0))
    if reach is None:
        rounding = float(np.sqrt(np.finfo(solution._value.dtype).eps))
        is_root = (left <= MOST_BEND * before) | (size <= rounding * solution.norm().clamp(min=1.0))
    else:
        is_root = size <= reach(solution)
    return require(one, is_root, Failure(NO_ROOT.format(function)), before, size)


MOST_BEND = 0.25
NEARLY_SINGULAR = (
    "{0}: the Jacobian of the equations is nearly singular at the solution: on the way to the root it "
    "changes by {{0:.1e}} of itself. Roots meet there, and have no derivative with respect to what they "
    "depend on; or the solver stopped early. Solve more exactly, or a regularised problem."
)
NO_ROOT = (
    "{0}: the equations have no root where the solution is: their norm there is {{0:.1e}}, and Newton's step "
    "would be {{1:.1e}}. They jump there, or the solver stopped far away. Nothing is known of how such a "
    "place moves, so it has no derivative. Solve equations that are continuous, or solve more exactly."
)


SINGULAR = (
    "{0}: the Jacobian of the equations is singular at the solution (its reciprocal condition number is "
    "{{0:.1e}}), so the solution has no derivative with respect to what they depend on. Add equations that "
    "make it unique, or solve a regularised problem."
)


def regularity(matrix: Tensor, function: str) -> Tensor:
    """1, if a square matrix has an inverse, as far as its digits tell; compiled as well.

    Raises:
        LinearAlgebraError: it has none.
    """
    with np.errstate(all="ignore"):
        condition = apply(reciprocal_condition, stop_gradient(matrix))
    holds = condition > float(np.finfo(matrix._value.dtype).eps)
    return require(
        condition * 0.0 + 1.0, holds, Failure(SINGULAR.format(function), LinearAlgebraError), condition
    )
