"""Triangular factors of matrices, solutions by them, and results with a report of what went wrong."""

from __future__ import annotations

import functools
import math
from operator import add
from typing import NamedTuple

import numpy as np

from ....tracer.errors import LinearAlgebraError, UnsupportedError
from ....tracer.ops import decompositions as d
from ....tracer.ops import elementwise as e
from ....tracer.ops import linalg as la
from ....tracer.ops.linalg import transposed
from ....tracer.ops.matrices import eliminated
from ....tracer.spec import INT64
from ....tracer.trace import is_tracing
from ...solvers.requirements import Failure, require
from ...tape.apply import apply, unwrap, wrap
from ...values.tensor import Tensor
from ..common import (
    array_dtype,
    as_dtype,
    conjugate,
    fail,
    filled,
    floating,
    iota,
    matrix_named_either_way,
    promoted,
)
from ..declared import sum as sum_of
from ..elements.complex_numbers import real as real_part
from ..shapes.joining import cat
from ..shapes.movement import adjoint, expand_to, transpose
from ..shapes.parts import along, diagonal, part, selected, tril, triu
from .caught_errors import REPORTS, of_each, regular
from .decompositions import matrices
from .linalg import cholesky, inverse, require_pivots, solve, solve_triangular, square

INT32 = np.dtype("int32")

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


def _factored(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both triangles in one matrix, which row of their product each row is, and LAPACK's pivots, from 1."""
    batch, (rows, columns) = tuple(a.shape[:-2]), a.shape[-2:]
    if d.is_number(a) or not (rows and columns):
        places = expand_to(iota(rows), (*batch, rows))
        return a, places, as_dtype(part(places, len(batch), 0, min(rows, columns)) + 1, INT32)
    found, last = apply(d.lu, a), a.ndim - 1
    positions = as_dtype(real_part(part(found._detached(), last, columns, columns + 2)), INT64)
    places, exchanged = (selected(positions, last, place) for place in (0, 1))
    pivots = as_dtype(part(exchanged, len(batch), 0, min(rows, columns)) + 1, INT32)
    return part(found, last, 0, columns), places, pivots


def _triangles(both: Tensor) -> tuple[Tensor, Tensor]:
    """L and U of what holds both."""
    rows, columns = both.shape[-2:]
    count = min(rows, columns)
    lower, upper = part(both, both.ndim - 1, 0, count), part(both, both.ndim - 2, 0, count)
    return tril(lower, -1) + wrap(np.eye(rows, count, dtype=array_dtype(both))), triu(upper)


def _permutation(places: Tensor, dtype: np.dtype) -> Tensor:
    """P with P[i, places[i]] = 1."""
    return as_dtype(places.unsqueeze(-1) == wrap(np.arange(places.shape[-1])), dtype)


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
    both, places, _ = _factored(a)
    return Lu(_permutation(places, array_dtype(a)), *_triangles(both))


@matrix_named_either_way
def lu_factor(A: Tensor, *, pivot: bool = True) -> LuFactor:
    """L and U in one matrix, and the rows that were exchanged, counted from 1: for `lu_solve`.

    Raises:
        LinearAlgebraError: U has a 0 on its diagonal, of which `lu_factor_ex` tells instead.

    Example:
        >>> lu_factor(tensor([[0.0, 2.0], [1.0, 0.0]])).pivots
        tensor([2, 2], dtype=torch.int32)
    """
    both, pivots, _ = lu_factor_ex(A, pivot=pivot, check_errors=True)
    return LuFactor(both, pivots)


@matrix_named_either_way
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> LuFactorEx:
    """`lu_factor`, and for each matrix the first place of U's diagonal with a 0, counted from 1, or 0.

    Raises:
        LinearAlgebraError: with `check_errors` there is one; else where the gradient needs an inverse.

    Example:
        >>> lu_factor_ex(tensor([[1.0]])).info
        tensor(0, dtype=torch.int32)
    """
    a = matrices(A, "lu_factor")
    if not pivot:
        fail(UnsupportedError, "linalg.lu_factor: pivot=False is not supported.")
    both, _, pivots = _factored(a)
    info = _places_of_zeros(diagonal(both._detached(), 0, -2, -1))
    if check_errors and info.numel():
        failure = Failure(
            "linalg.lu_factor: U[{0},{0}] is zero, and a solution by lu_solve would divide by it. "
            "linalg.lu_factor_ex takes such matrices.",
            LinearAlgebraError,
        )
        nothing = require(filled((), 0, array_dtype(both)), info.eq(0).all(), failure, info.max())
        both = both + nothing if is_tracing() else both
    return LuFactorEx(both, pivots, info)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> LuFactor | LuFactorEx:
    """`lu_factor`, or with `get_infos` `lu_factor_ex`: PyTorch's older name.

    Example:
        >>> lu(tensor([[2.0]]))[0]
        tensor([[2.]])
    """
    found = lu_factor_ex(A, pivot=pivot)
    return found if get_infos else LuFactor(found.LU, found.pivots)


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Lu:
    """P, L and U of what `lu_factor` returns; nothing in the place of those that are not to be unpacked.

    Example:
        >>> lu_unpack(*linalg.lu_factor(tensor([[2.0]]))).U
        tensor([[2.]])
    """
    both = matrices(LU_data, "lu_unpack")
    require_pivots(LU_pivots, both, "lu_unpack", "LU_pivots")
    rows, dtype = both.shape[-2], array_dtype(both)
    triangles = _triangles(both) if unpack_data else (both.new_empty(0), both.new_empty(0))
    if not unpack_pivots:
        return Lu(both.new_empty(0), *triangles)
    pivots = unwrap(LU_pivots)
    if isinstance(pivots, np.ndarray) and not is_tracing():
        places = wrap(_places_after(pivots, rows))
    else:
        places = _traced_places_after(LU_pivots, rows)
    return Lu(_permutation(places, dtype), *triangles)


def _places_after(pivots: np.ndarray, rows: int) -> np.ndarray:
    """Where each row is after exchanges as LAPACK counts them."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1])
    places = np.tile(np.arange(rows), (len(flat), 1))
    for one, exchanges in zip(places, flat):
        for place, other in reversed(list(enumerate(exchanges - 1))):
            one[[place, other]] = one[[other, place]]
    return places.reshape(*pivots.shape[:-1], rows)


def linalg_lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """The X with A X = B, or X A = B without `left`, for what `lu_factor` returns for A.

    Example:
        >>> lu_solve(*lu_factor(tensor([[2.0]])), tensor([[4.0]]))
        tensor([[2.]])
    """
    both, sides = promoted("lu_solve", square(LU, "lu_solve"), matrices(B, "lu_solve"), broadcast=False)
    require_pivots(pivots, both, "linalg.lu_solve")
    sides = sides if left else transpose(sides, -2, -1)
    batch = np.broadcast_shapes(tuple(both.shape[:-2]), tuple(sides.shape[:-2]))
    exchanges = as_dtype(as_dtype(pivots, INT64) - 1, array_dtype(both)).unsqueeze(-2)
    factors = cat([both, exchanges], -2)
    factors, sides = (expand_to(one, (*batch, *one.shape[-2:])) for one in (factors, sides))
    sides = conjugate(sides) if adjoint else sides
    found = apply(la.factored_solution, factors, sides, transposed=adjoint == left)
    found = conjugate(found) if adjoint else found
    return found if left else transpose(found, -2, -1)


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """`linalg.lu_solve`, PyTorch's older name.

    Example:
        >>> lu_solve(tensor([[4.0]]), *linalg.lu_factor(tensor([[2.0]])))
        tensor([[2.]])
    """
    return linalg_lu_solve(LU_data, LU_pivots, b)


def _traced_places_after(pivots: Tensor, rows: int) -> Tensor:
    """The same in a graph."""
    batch, count = tuple(pivots.shape[:-1]), pivots.shape[-1]
    others = as_dtype(pivots, INT64) - 1
    places = order = expand_to(iota(rows), (*batch, rows))
    for place in reversed(range(count)):
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
    matrix = floating(A, "triangular_solve", "A")
    batch = tuple(found._value.shape[:-2])
    return TriangularSolve(found, apply(e.identity, expand_to(matrix, (*batch, *matrix.shape[-2:]))))


# --- results with a report ----------------------------------------------------------------------------------


def _places_of_zeros(pivots: Tensor) -> Tensor:
    """For each matrix the first place of a 0 among its pivots, counted from 1, or 0."""
    zero = apply(e.equal, pivots, 0.0)
    first = zero.int().argmax(-1) + 1 if zero.shape[-1] else zero.sum(-1)
    return as_dtype(first * zero.any(-1), INT32)


def _singular(a: Tensor) -> Tensor:
    """The same of the pivots of square matrices."""
    given = a._detached()
    both = _factored(given)[0] if a.is_complex() else apply(eliminated, given)
    return _places_of_zeros(diagonal(part(both, a.ndim - 2, 0, a.shape[-1]), 0, -2, -1))


def _indefinite(a: Tensor) -> Tensor:
    """For each matrix the first leading minor, of its lower triangle, that is not positive definite, or 0."""
    return as_dtype(real_part(apply(la.definite_minors, a._detached())), INT32)


REPORTS.update(cholesky=_indefinite, inv=_singular, solve=_singular)


def _reported(found: Tensor, info: Tensor, *given: Tensor) -> Tensor:
    """Results, nan where there is none, and so are the gradients of what they were to be computed of."""
    if not is_tracing() and not info.any():
        return found
    bad = of_each(info, found)
    weight = apply(e.where, bad, math.nan, apply(e.zeros_like, found._detached()))  # 0 in others' gradients
    nothing = functools.reduce(add, [weight * one for one in given])
    return apply(e.where, bad, nothing, found)


def regular_inverse(a: Tensor) -> tuple[Tensor, Tensor]:
    """The inverses, a unit matrix for a singular one, and for each the place of its first pivot of 0."""
    if not is_tracing():
        try:
            return inverse(a), _no_errors(a)
        except np.linalg.LinAlgError:
            pass
    info = _singular(a)
    return inverse(regular(a, info)), info


def _no_errors(a: Tensor) -> Tensor:
    return filled(tuple(a.shape[:-2]), 0, INT32)


@matrix_named_either_way
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyEx:
    """`cholesky`, and for each matrix the first leading minor that is not positive definite, or 0.

    Where there is one the factor is nan, and so is its gradient.

    Raises:
        LinearAlgebraError: with `check_errors` there is one.

    Example:
        >>> cholesky_ex(tensor([[-1.0]])).info
        tensor(1, dtype=torch.int32)
    """
    a = square(A, "cholesky_ex")
    if check_errors:
        return CholeskyEx(cholesky(a, upper), _no_errors(a))
    if not is_tracing():
        try:
            return CholeskyEx(cholesky(a, upper), _no_errors(a))
        except np.linalg.LinAlgError:
            pass
    info = _indefinite(adjoint(a) if upper else a)
    return CholeskyEx(_reported(cholesky(regular(a, info), upper), info, a), info)


@matrix_named_either_way
def inv_ex(A: Tensor, *, check_errors: bool = False) -> InvEx:
    """`inv`, and for each matrix the place of the first pivot of its elimination that is 0, from 1, or 0.

    Where there is one the inverse is nan, and so is its gradient. (PyTorch leaves it open.)

    Raises:
        LinearAlgebraError: with `check_errors` there is one.

    Example:
        >>> inv_ex(tensor([[2.0]])).inverse
        tensor([[0.5000]])
        >>> inv_ex(tensor([[0.0]])).info
        tensor(1, dtype=torch.int32)
    """
    a = square(A, "inv_ex")
    if check_errors:
        return InvEx(inverse(a), _no_errors(a))
    found, info = regular_inverse(a)
    return InvEx(_reported(found, info, a), info)


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolveEx:
    """`solve`, and for each matrix the place of the first pivot of its elimination that is 0, from 1, or 0.

    Where there is one the solution is nan, and so are its gradients. (PyTorch leaves it open.)

    Raises:
        LinearAlgebraError: with `check_errors` there is one.

    Example:
        >>> solve_ex(tensor([[2.0]]), tensor([[4.0]])).result
        tensor([[2.]])
        >>> solve_ex(tensor([[0.0]]), tensor([[4.0]])).info
        tensor(1, dtype=torch.int32)
    """
    a, b = square(A, "solve_ex"), floating(B, "solve_ex", "B")
    if check_errors or not is_tracing():
        try:
            return SolveEx(solve(a, b, left=left), _no_errors(a))
        except np.linalg.LinAlgError:
            if check_errors:
                raise
    info = _singular(a)
    found = solve(regular(a, info), b, left=left)
    is_vector = found.ndim < a.ndim
    if is_vector:
        found, b = found.unsqueeze(-1), b.unsqueeze(-1)
    found = _reported(found, info, expand_to(b, tuple(found.shape)), sum_of(a, (-2, -1), True))
    return SolveEx(found.squeeze(-1) if is_vector else found, info)
