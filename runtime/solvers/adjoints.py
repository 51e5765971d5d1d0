"""Adjoint equations of solutions: (dF/dx)^T l = -g, by elimination or without a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, LinearAlgebraError
from ...tracer.spec import Spec
from ...tracer.trace import is_tracing
from ..autograd.foreign_calls import call_python
from ..functions import linalg
from ..functions.common import fail
from ..functions.comparison import where
from ..functions.movement import transpose
from ..functions.stopping import stop_gradient
from ..functions.structures import spec_of_tensor
from ..transforms.transforms import jacobian, jvp
from ..values.modes import no_grad
from ..values.tensor import Tensor, make
from ..values.value_kinds import Auxiliary
from .krylov import BY_NAME
from .linear import solved_by, transposed
from .requirements import Failure, require

OfVector = Callable[[Tensor], Tensor]
Adjoint = Callable[[OfVector, Tensor, Tensor], Tensor]
DENSE = "dense"


def adjoint_by(method: Any, function: str, is_symmetric: bool = False) -> Adjoint:
    """How the adjoint equation is solved.

    Args:
        method: "dense", with the matrix; "cg", "bicgstab" or "gmres", with its products with vectors alone;
            or `solve(product, vector)` of one's own.
        function: who asks, for messages.
        is_symmetric: whether the matrix is, so that its product is that with its transpose.

    Raises:
        ArgumentError: there is no such method.
    """
    if method == DENSE:
        return lambda residual, solution, cotangent: _by_elimination(residual, solution, cotangent, function)
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


def _by_elimination(residual: OfVector, solution: Tensor, cotangent: Tensor, function: str) -> Tensor:
    matrix = jacobian(residual)(solution)
    with no_grad():
        one = _separateness(residual, stop_gradient(solution), stop_gradient(matrix), function)
    return linalg.solve(transpose(matrix, 0, 1), -cotangent * one)


def _separateness(residual: OfVector, solution: Tensor, matrix: Tensor, function: str) -> Tensor:
    """1, if the Jacobian at the solution tells of one root, and not of several that are about to meet.

    Newton's step from the solution is how far away the root is. Where the Jacobian changes over that way by a
    share that is not small, it is zero somewhere near (Kantorovich's condition; a double root has a half).

    Raises:
        LinearAlgebraError: it does not, or has no inverse.
    """
    one = regularity(matrix, function)
    values = residual(solution) * one
    step = stop_gradient(linalg.solve(matrix, values))
    changed = values - jvp(residual, (solution - step,), (step,))[1]
    bend, size = (stop_gradient(part).norm() for part in (linalg.solve(matrix, changed), step))
    failure = Failure(NEARLY_SINGULAR.format(function), LinearAlgebraError)
    return require(one, bend <= MOST_BEND * size, failure, bend / where(size > 0, size, 1.0))


MOST_BEND = 0.25
NEARLY_SINGULAR = (
    "{0}: the Jacobian of the equations is nearly singular at the solution: on the way to the root it "
    "changes by {{0:.1e}} of itself. Roots meet there, and have no derivative with respect to what they "
    "depend on; or the solver stopped early. Solve more exactly, or a regularised problem."
)


def regularity(matrix: Tensor, function: str) -> Tensor:
    """1, if a square matrix has an inverse, as far as its digits tell; compiled as well.

    Raises:
        LinearAlgebraError: it has none.
    """

    def run(array: np.ndarray) -> list[np.ndarray]:
        condition = _reciprocal_condition(array)
        if not condition > np.finfo(array.dtype).eps:
            raise LinearAlgebraError(
                f"{function}: the Jacobian of the equations is singular at the solution (its reciprocal "
                f"condition number is {condition:.1e}), so the solution has no derivative with respect to "
                "what they depend on. Add equations that make it unique, or solve a regularised problem."
            )
        return [np.ones((), array.dtype)]

    given = stop_gradient(matrix)
    if not is_tracing():
        return make(run(given.payload)[0], Auxiliary)
    spec = Spec((), spec_of_tensor(given).dtype)
    return call_python(regularity, function, "regularity", run, [given], [spec])[0]


def _reciprocal_condition(matrix: np.ndarray) -> float:
    """An estimate of it in the 1-norm (LAPACK's gecon), nan where elements are."""
    from scipy.linalg import lapack  # not at start

    if not np.isfinite(matrix).all():
        return float("nan")
    factors, _, failed = lapack.dgetrf(matrix)
    return 0.0 if failed else float(lapack.dgecon(factors, np.linalg.norm(matrix, 1))[0])
