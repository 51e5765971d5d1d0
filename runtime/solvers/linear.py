"""Linear equations by products alone, and sparse ones, differentiable by matrix and right-hand side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tracer.errors import ArgumentError
from ..functions.common import fail
from ..functions.stopping import stop_gradient
from ..functions.structures import structured
from ..transforms.transforms import jvp, vjp
from ..values.modes import enable_grad
from ..values.tensor import Tensor
from .equations import Equation, solution_of, without_gradient
from .krylov import BY_NAME
from .unknowns import Unknowns, vector_of

Function = Callable[..., Any]
Product = Callable[[Tensor], Tensor]


def linear_solve(
    A: Any,
    b: Any,
    method: str = "gmres",
    *,
    tol: float = 1e-10,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Function | None = None,
) -> Any:
    """The x with A(x) = b, by products of the matrix with vectors alone.

    Args:
        A: a linear function of values of the structure of `b`, which may close over what has gradients; or a
            matrix.
        b: the right-hand side: an array or a tensor, or nested containers of them.
        method: "cg" for symmetric positive definite matrices, "bicgstab" or "gmres" for others.
        tol, atol: the norm of the residual that may be left, relative to that of `b` and in all; the larger
            one holds.
        maxiter: the most steps; 10 for each unknown unless given.
        M: an approximate inverse of A, a linear function of the same values, without gradient.

    Raises:
        ConvergenceError: the residual does not become so small. ArgumentError: there is no such method.

    Example:
        >>> linear_solve(lambda x: 2.0 * x, np.array([2.0, 4.0]), "cg")
        array([1., 2.])
    """
    if method not in BY_NAME:
        fail(
            ArgumentError,
            f"linear_solve: method={method!r} is not known. Give {', '.join(map(repr, BY_NAME))}.",
        )
    unknowns = Unknowns(b, "linear_solve", "b")
    product = unknowns.residual(A if callable(A) else lambda x: A @ x, (), unknowns.size)
    right = vector_of(structured(b, "linear_solve", "b"), unknowns.dtype)
    preconditioner = None
    if M is not None:
        inverse = unknowns.residual(M, (), unknowns.size)
        preconditioner = without_gradient("linear_solve", inverse, unknowns.start)
    options = {"tol": tol, "atol": atol, "maxiter": maxiter}
    return unknowns.restored(solved_by(method, product, right, preconditioner, **options))


def solved_by(
    method: Any, product: Product, right: Tensor, preconditioner: Product | None = None, **options: Any
) -> Tensor:
    """The vector that a linear function takes to `right`; the adjoint equation is solved in the same way.

    Args:
        method: a name of `krylov.BY_NAME`, or `solve(product, vector)`.
    """
    zero = stop_gradient(right) * 0.0

    def forward(function: Product, start: Tensor) -> Tensor:
        def linear(vector: Tensor) -> Tensor:
            return jvp(function, (zero,), (vector,))[1]

        if callable(method):
            return method(linear, start)
        given = {} if preconditioner is None else {"M": preconditioner}
        return BY_NAME[method](linear, start, **given, **options)

    def adjoint(residual: Product, solution: Tensor, cotangent: Tensor) -> Tensor:
        inverse = None if preconditioner is None else transposed(preconditioner, zero)
        return solved_by(method, transposed(residual, solution), -cotangent, inverse, **options)

    equation = Equation(linear_solve, lambda x: product(x) - right, lambda same: same, forward, adjoint)
    return solution_of(equation, right)


def transposed(product: Product, at: Tensor) -> Product:
    """What a function that is linear, or affine, pulls back."""

    def pulled(vector: Tensor) -> Tensor:
        with enable_grad():  # it is differentiated as any product is
            return vjp(product, at)[1](vector)[0]

    return pulled
