"""Triangular factors of matrices, solutions by them, and results with a report of what went wrong."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...tracer.errors import UnsupportedError
from ...tracer.ops import decompositions as d
from ...tracer.ops import elementwise as e
from ...tracer.ops import linalg as la
from ...tracer.ops.linalg import transposed
from ...tracer.spec import INT64
from ...tracer.trace import is_tracing
from ..tape.apply import apply, unwrap, wrap
from ..values.tensor import Tensor
from .common import (
    array_dtype,
    as_dtype,
    conjugate,
    fail,
    filled,
    iota,
    matrix_named_either_way,
)
from .contraction import matmul
from .decompositions import matrices
from .joining import cat
from .linalg import cholesky, inverse, solve, solve_triangular, square
from .movement import expand_to, transpose
from .parts import along, diagonal, part, selected, tril, triu

__all__ = ["lu", "lu_solve", "lu_unpack", "triangular_solve"]


class Lu(NamedTuple):
    """What `linalg_lu` and `lu_unpack` return."""

    P: Tensor
    L: Tensor
    U: Tensor


class LuFactor(NamedTuple):
    """What `lu_factor` returns."""

    LU: Tensor
    pivots: Tensor


class LuFactorEx(NamedTuple):
    """What `lu_factor_ex` returns."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class CholeskyEx(NamedTuple):
    """What `cholesky_ex` returns."""

    L: Tensor
    info: Tensor


class InvEx(NamedTuple):
    """What `inv_ex` returns."""

    inverse: Tensor
    info: Tensor


class SolveEx(NamedTuple):
    """What `solve_ex` returns."""

    result: Tensor
    info: Tensor


class TriangularSolve(NamedTuple):
    """What `triangular_solve` returns."""

    solution: Tensor
    cloned_coefficient: Tensor


# --- LU -----------------------------------------------------------------------------------------------------


def _triangles(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """L and U, the order of the rows of their product, and LAPACK's pivots, counted from 1."""
    rows, columns = a.shape[-2:]
    count = min(rows, columns)
    if d.is_number(a):
        nothing = filled((*a.shape[:-2], 1), 0, INT64)
        return apply(la.unit_like, a), a, nothing, as_dtype(nothing + 1, np.dtype("int32"))
    exchanges = as_dtype(apply(d.row_exchanges, a._detached()), INT64)
    first = selected(exchanges, exchanges.ndim - 1, 0) if columns else exchanges.sum(-1)
    order = selected(first, first.ndim - 2, 0)
    pivots = part(selected(first, first.ndim - 2, 1), first.ndim - 2, 0, count)
    places = expand_to(order.unsqueeze(-1), tuple(a.shape))
    ordered = along(a, places, a.ndim - 2)
    top = part(part(ordered, a.ndim - 2, 0, count), a.ndim - 1, 0, count)
    both = top if d.is_number(top) else selected(apply(d.lu, top), top.ndim - 2, 0)
    lower = tril(both, -1) + apply(la.unit_like, both._detached())
    upper = triu(both)
    if rows > count:
        below = part(ordered, a.ndim - 2, count, rows)
        lower = cat([lower, solve_triangular(upper, below, upper=True, left=False)], -2)
    if columns > count:
        beside = part(part(ordered, a.ndim - 2, 0, count), a.ndim - 1, count, columns)
        upper = cat(
            [
                upper,
                solve_triangular(
                    tril(both, -1) + apply(la.unit_like, both._detached()),
                    beside,
                    upper=False,
                    unitriangular=True,
                ),
            ],
            -1,
        )
    return lower, upper, order, as_dtype(pivots + 1, np.dtype("int32"))


def _permutation(order: Tensor, dtype: np.dtype) -> Tensor:
    """P with P[order[i], i] = 1."""
    rows = order.shape[-1]
    at = order.unsqueeze(-2) == wrap(np.arange(rows)[:, None])
    return as_dtype(at, dtype)


@matrix_named_either_way
def linalg_lu(A: Tensor, *, pivot: bool = True) -> Lu:
    """A = P L U: a permutation, a lower triangle with ones on its diagonal, an upper one.

    Example:
        >>> lu(tensor([[0.0, 2.0], [1.0, 0.0]])).U
        tensor([[1., 0.],
                [0., 2.]])
    """
    a = matrices(A, "lu")
    if not pivot:
        fail(UnsupportedError, "linalg.lu: pivot=False is not supported; with pivots P is a permutation.")
    lower, upper, order, _ = _triangles(a)
    return Lu(_permutation(order, array_dtype(a)), lower, upper)


@matrix_named_either_way
def lu_factor(A: Tensor, *, pivot: bool = True) -> LuFactor:
    """L and U in one matrix, and the rows that were exchanged, counted from 1: for `lu_solve`.

    Example:
        >>> lu_factor(tensor([[0.0, 2.0], [1.0, 0.0]])).pivots
        tensor([2, 2], dtype=torch.int32)
    """
    a = matrices(A, "lu_factor")
    if not pivot:
        fail(UnsupportedError, "linalg.lu_factor: pivot=False is not supported.")
    lower, upper, _, pivots = _triangles(a)
    rows, columns = a.shape[-2:]
    lower = tril(lower, -1)
    if rows > columns:
        missing = filled((*a.shape[:-2], rows - columns, columns), 0, array_dtype(a))
        return LuFactor(lower + cat([upper, missing], -2), pivots)
    if columns > rows:
        lower = cat([lower, filled((*a.shape[:-2], rows, columns - rows), 0, array_dtype(a))], -1)
    return LuFactor(lower + upper, pivots)


@matrix_named_either_way
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LuFactorEx:
    """`lu_factor`, and for each matrix the first place of U's diagonal with a 0, counted from 1, or 0.

    Example:
        >>> lu_factor_ex(tensor([[1.0]])).info
        tensor(0, dtype=torch.int32)
    """
    both, pivots = lu_factor(A, pivot=pivot)
    zero = apply(e.equal, diagonal(both._detached(), 0, -2, -1), 0.0)
    first = zero.int().argmax(-1) + 1 if zero.shape[-1] else zero.sum(-1)
    return LuFactorEx(both, pivots, as_dtype(first * zero.any(-1), np.dtype("int32")))


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> LuFactor | LuFactorEx:
    """`lu_factor`, or with `get_infos` `lu_factor_ex`: PyTorch's older name.

    Example:
        >>> lu(tensor([[2.0]]))[0]
        tensor([[2.]])
    """
    return lu_factor_ex(A, pivot=pivot) if get_infos else lu_factor(A, pivot=pivot)


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Lu:
    """P, L and U of what `lu_factor` returns.

    Example:
        >>> lu_unpack(*linalg.lu_factor(tensor([[2.0]]))).U
        tensor([[2.]])
    """
    both = matrices(LU_data, "lu_unpack")
    rows, columns = both.shape[-2:]
    count = min(rows, columns)
    dtype = array_dtype(both)
    lower = tril(part(both, both.ndim - 1, 0, count), -1)
    lower = lower + wrap(np.eye(rows, count, dtype=dtype))
    upper = triu(part(both, both.ndim - 2, 0, count))
    pivots = unwrap(LU_pivots)
    if isinstance(pivots, np.ndarray) and not is_tracing():
        return Lu(_permutation(wrap(_rows_after(pivots, rows)), dtype), lower, upper)
    return Lu(_permutation(_traced_rows_after(LU_pivots, rows), dtype), lower, upper)


def _rows_after(pivots: np.ndarray, rows: int) -> np.ndarray:
    """The order of the rows after exchanges as LAPACK counts them."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    order = np.tile(np.arange(rows), (len(flat), 1))
    for one, exchanges in zip(order, flat):
        for place, other in enumerate(exchanges - 1):
            one[[place, other]] = one[[other, place]]
    return order.reshape(*pivots.shape[:-1], rows)


def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """The X with A X = B, or X A = B without `left`, for what `lu_factor` returns for A.

    Example:
        >>> lu_solve(*lu_factor(tensor([[2.0]])), tensor([[4.0]]))
        tensor([[2.]])
    """
    permutation, lower, upper = lu_unpack(LU, pivots)
    if adjoint:
        lower, upper = conjugate(lower), conjugate(upper)
    if adjoint != (not left):  # both transpose the equation
        sides = B if left else transpose(B, -2, -1)
        inner = solve_triangular(transpose(upper, -2, -1), sides, upper=False)
        found = solve_triangular(transpose(lower, -2, -1), inner, upper=True, unitriangular=True)
        found = matmul(permutation, found)
    else:
        sides = B if left else transpose(B, -2, -1)
        inner = matmul(transpose(permutation, -2, -1), sides)
        inner = solve_triangular(lower, inner, upper=False, unitriangular=True)
        found = solve_triangular(upper, inner, upper=True)
    return found if left else transpose(found, -2, -1)


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """`linalg.lu_solve`, PyTorch's older name.

    Example:
        >>> lu_solve(tensor([[4.0]]), *linalg.lu_factor(tensor([[2.0]])))
        tensor([[2.]])
    """
    return linalg_lu_solve(LU_data, LU_pivots, b)


def _traced_rows_after(pivots: Tensor, rows: int) -> Tensor:
    """The same in a graph."""
    batch, count = tuple(pivots.shape[:-1]), pivots.shape[-1]
    others = as_dtype(pivots, INT64) - 1
    places = order = expand_to(iota(rows), (*batch, rows))
    for place in range(count):
        other = part(others, len(batch), place, place + 1)
        moved = along(order, other, len(batch))
        here = part(order, len(batch), place, place + 1)
        order = apply(e.where, apply(e.equal, places, other), here, order)
        order = apply(e.where, apply(e.equal, places, place), moved, order)
    return order


def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> TriangularSolve:
    """The X with A X = b for a triangle A, or its transpose; and A.

    Example:
        >>> triangular_solve(tensor([[4.0]]), tensor([[2.0]])).solution
        tensor([[2.]])
    """
    kept = transposed(A) if transpose else A
    found = solve_triangular(kept, b, upper=upper != transpose, unitriangular=unitriangular)
    return TriangularSolve(found, A.clone())


# --- results with a report ----------------------------------------------------------------------------------


def _no_errors(a: Tensor) -> Tensor:
    return filled(tuple(a.shape[:-2]), 0, np.dtype("int32"))


@matrix_named_either_way
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """`cholesky`, and for each matrix the first leading minor that is not positive definite, or 0.

    Where there is one the factor is nan.

    Example:
        >>> cholesky_ex(tensor([[-1.0]])).info
        tensor(1, dtype=torch.int32)
    """
    a = square(A, "cholesky_ex")
    try:
        return CholeskyEx(cholesky(a, upper), _no_errors(a))
    except np.linalg.LinAlgError:
        if check_errors:
            raise
    values = unwrap(a._detached())
    minors = np.stack(
        [np.linalg.det(values[..., :size, :size]).real <= 0 for size in range(1, values.shape[-1] + 1)],
        axis=-1,
    )
    info = np.where(minors.any(-1), minors.argmax(-1) + 1, 0).astype(np.int32)
    bad = wrap(np.asarray(info > 0)[..., None, None])
    safe = apply(e.where, expand_to(bad, tuple(a.shape)), apply(la.unit_like, a._detached()), a)
    factor = apply(e.where, expand_to(bad, tuple(a.shape)), math.nan, cholesky(safe, upper))
    return CholeskyEx(factor, wrap(info))


@matrix_named_either_way
def inv_ex(A: Tensor, *, check_errors: bool = False) -> InvEx:
    """`inv`, and zeros: of a singular matrix it raises.

    Example:
        >>> inv_ex(tensor([[2.0]])).inverse
        tensor([[0.5000]])
    """
    return InvEx(inverse(A), _no_errors(A))


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveEx:
    """`solve`, and zeros: of a singular matrix it raises.

    Example:
        >>> solve_ex(tensor([[2.0]]), tensor([[4.0]])).result
        tensor([[2.]])
    """
    return SolveEx(solve(A, B, left=left), _no_errors(A))
