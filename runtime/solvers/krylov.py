"""Linear equations by products of the matrix with vectors alone: conjugate gradients, BiCGSTAB, GMRES.

Y. Saad, Iterative Methods for Sparse Linear Systems (SIAM 2003), algorithms 9.1, 7.7 and 9.5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..functions.elements.comparison import where
from ..functions.loops.control_flow import fori_loop, while_loop
from ..functions.matrices.least_squares import lstsq
from ..tensors.creation import arange, zeros
from ..values.tensor import Tensor
from .requirements import Failure, require

Product = Callable[[Any], Any]
NOT_CONVERGED = Failure(
    "{0}: after {{0}} steps the residual is {{1:.1e}} of the right-hand side, and {{2:.1e}} was asked for. "
    "Allow more steps (maxiter), give a preconditioner (M), or another method."
)
RESTART = 20
"""The vectors that GMRES keeps, as SciPy's."""


def _unchanged(vector: Tensor) -> Tensor:
    return vector


def _steps(size: int, maxiter: int | None) -> int:
    return 10 * size if maxiter is None else maxiter


def _enough(tol: float, atol: float, b: Tensor) -> Tensor:
    """The square of the residual that may be left, not below what can be reached in the dtype."""
    relative = max(tol, 4.0 * float(np.finfo(b._value.dtype).eps))
    return (relative**2 * (b * b).sum()).clamp(min=atol**2)


def _converged(name: str, x: Tensor, left: Tensor, b: Tensor, enough: Tensor, steps: Tensor) -> Tensor:
    """x, unless the square of the residual is too large."""
    size = (b * b).sum()
    share, wanted = (where(size > 0, one / where(size > 0, size, 1.0), one).sqrt() for one in (left, enough))
    return require(x, left <= enough, Failure(NOT_CONVERGED.text.format(name)), steps, share, wanted)


def cg(
    product: Product, b: Tensor, tol: float = 1e-10, atol: float = 0.0, maxiter: int | None = None,
    M: Product = _unchanged,
) -> Tensor:  # fmt: skip
    """By conjugate gradients, for symmetric positive definite matrices.

    Args:
        product: the matrix times a vector.
        tol, atol: the residual that is left, relative to b and in all; the larger one holds.
        M: an approximate inverse, times a vector.
    """
    most, enough = _steps(b.shape[0], maxiter), _enough(tol, atol, b)

    def goes_on(state: Any) -> Any:
        _, r, _, _, steps = state
        return ((r * r).sum() > enough) & (steps < most)

    def step(state: Any) -> Any:
        x, r, p, size, steps = state
        moved = product(p)
        length = size / (p * moved).sum()
        r = r - length * moved
        z = M(r)
        after = (r * z).sum()
        return x + length * p, r, z + (after / size) * p, after, steps + 1

    z = M(b)
    x, r, _, _, steps = while_loop(goes_on, step, (b * 0.0, b, z, (b * z).sum(), 0))
    return _converged("cg", x, (r * r).sum(), b, enough, steps)


def bicgstab(
    product: Product, b: Tensor, tol: float = 1e-10, atol: float = 0.0, maxiter: int | None = None,
    M: Product = _unchanged,
) -> Tensor:  # fmt: skip
    """By the stabilised biconjugate gradients, for any regular matrix: see `cg`."""
    most, enough = _steps(b.shape[0], maxiter), _enough(tol, atol, b)

    def goes_on(state: Any) -> Any:
        _, r, _, along, steps = state
        return ((r * r).sum() > enough) & (steps < most) & (along != 0)

    def step(state: Any) -> Any:
        x, r, p, along, steps = state
        preconditioned = M(p)
        moved = product(preconditioned)
        length = along / (moved * b).sum()
        half = r - length * moved
        smoothed = M(half)
        image = product(smoothed)
        square = (image * image).sum()
        weight = where(square > 0, (image * half).sum() / where(square > 0, square, 1.0), 0.0)
        r = half - weight * image
        after = (r * b).sum()
        factor = where(weight != 0, after / along * length / where(weight != 0, weight, 1.0), 0.0)
        p = r + factor * (p - weight * moved)
        return x + length * preconditioned + weight * smoothed, r, p, after, steps + 1

    x, r, _, _, steps = while_loop(goes_on, step, (b * 0.0, b, b, (b * b).sum(), 0))
    return _converged("bicgstab", x, (r * r).sum(), b, enough, steps)


def gmres(
    product: Product, b: Tensor, tol: float = 1e-10, atol: float = 0.0, maxiter: int | None = None,
    M: Product = _unchanged, restart: int = RESTART,
) -> Tensor:  # fmt: skip
    """By generalised minimal residuals, for any regular matrix: see `cg`.

    Args:
        restart: the number of vectors that are kept; a step is as many products.
    """
    count = min(restart, b.shape[0])
    most, enough = _steps(b.shape[0], maxiter), _enough(tol, atol, b)

    def goes_on(state: Any) -> Any:
        _, r, steps = state
        return ((r * r).sum() > enough) & (steps < most)

    def step(state: Any) -> Any:
        x, r, steps = state
        x = x + M(_smallest_in_krylov_space(lambda vector: product(M(vector)), r, count))
        return x, b - product(x), steps + 1

    x, r, steps = while_loop(goes_on, step, (b * 0.0, b, 0))
    return _converged("gmres", x, (r * r).sum(), b, enough, steps)


def _smallest_in_krylov_space(product: Product, r: Tensor, count: int) -> Tensor:
    """The vector of the space spanned by r, A r, ..., with the smallest residual (Arnoldi's process)."""
    size, dtype = r.shape[0], r.dtype
    length = (r * r).sum().sqrt()
    rows, columns = arange(count + 1), arange(count)
    first = (rows < 1).to(dtype)[:, None]
    basis = first * (r / length)
    matrix = zeros(count + 1, count, dtype=dtype)

    def step(j: Any, state: Any) -> Any:
        basis, matrix = state
        w = product(basis[j])
        along = basis @ w
        w = w - along @ basis
        again = basis @ w  # once more, as the first sums cancel
        w = w - again @ basis
        left = (w * w).sum().sqrt()
        is_next = (rows == j + 1).to(dtype)
        unit = w * where(left > 0, 1.0 / where(left > 0, left, 1.0), 0.0)
        column = along + again + left * is_next
        is_column = (columns == j).to(dtype)
        return basis + is_next[:, None] * unit, matrix + column[:, None] * is_column

    basis, matrix = fori_loop(0, count, step, (basis, matrix))
    weights = lstsq(matrix, (first * length)[:, 0]).solution
    return (weights @ basis[:count]).reshape(size)


BY_NAME: dict[str, Callable[..., Tensor]] = {"cg": cg, "bicgstab": bicgstab, "gmres": gmres}
