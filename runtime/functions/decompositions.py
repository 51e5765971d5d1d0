"""Decompositions of matrices and what is made of them: eigenvalues, singular values, QR, LU, pseudo-inverses.

LAPACK computes them, in compiled functions loops. Where a matrix has none, LinearAlgebraError is raised; in
compiled functions it is inf or nan.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ...tracer.errors import ArgumentError, GradientError, ShapeError, UnsupportedError
from ...tracer.ops import decompositions as d
from ...tracer.ops import elementwise as e
from ...tracer.ops import linalg as la
from ...tracer.ops.linalg import transposed
from ...tracer.spec import INT64
from ...tracer.trace import is_tracing
from ..modes import is_recording
from ..tape import apply, unwrap, wrap
from ..tensor import Tensor
from .common import (
    array_dtype,
    as_dtype,
    fail,
    filled,
    floating,
    iota,
    matrix_named_either_way,
    one_dim,
    promoted,
    tensor,
)
from .contraction import matmul
from .joining import cat
from .linalg import cholesky, inverse, solve, solve_triangular, solved, square
from .movement import expand_to, movedim, reshape_to, transpose
from .parts import along, diagonal, part, selected, tril, triu
from .reduction import amax, amin
from .reduction import sum as sum_of
from .selection import values_of

__all__ = ["lu", "lu_solve", "lu_unpack", "matrix_exp", "pinverse", "qr", "svd", "triangular_solve"]


class Svd(NamedTuple):
    """What `linalg_svd` returns."""

    U: Tensor
    S: Tensor
    Vh: Tensor


class SvdOld(NamedTuple):
    """What `svd` returns."""

    U: Tensor
    S: Tensor
    V: Tensor


class Eigh(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class Qr(NamedTuple):
    """What `qr` returns."""

    Q: Tensor
    R: Tensor


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


class Lstsq(NamedTuple):
    """What `lstsq` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


class TriangularSolve(NamedTuple):
    """What `triangular_solve` returns."""

    solution: Tensor
    cloned_coefficient: Tensor


def _matrices(A: Any, function: str) -> Tensor:
    x = floating(A, function)
    if x.ndim < 2:
        fail(
            ShapeError,
            f"linalg.{function}: The input tensor A must have at least 2 dimensions, found {tuple(x.shape)}.",
        )
    return x


def _plane(planes: Tensor, place: int, rows: int, name: str) -> Tensor:
    """The first rows of one plane of a decomposition."""
    return part(selected(planes, planes.ndim - 3, place), planes.ndim - 3, 0, rows, grad_name=name)


def _row(planes: Tensor, place: int, name: str) -> Tensor:
    """The first row of one plane."""
    return reshape_to(_plane(planes, place, 1, name), (*planes.shape[:-3], planes.shape[-1]), name)


# --- eigenvalues --------------------------------------------------------------------------------------------


@matrix_named_either_way
def eigh(A: Tensor, UPLO: str = "L") -> Eigh:
    """Eigenvalues of a symmetric matrix, in ascending order, and its eigenvectors, in columns.

    The gradient of the eigenvectors needs different eigenvalues. A vector's sign is anybody's choice; in
    compiled functions it may be the other one.

    Args:
        UPLO: which triangle is read, "L" or "U".

    Raises:
        ShapeError: the matrix is not square.

    Example:
        >>> eigh(tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        tensor([1., 2.])
    """
    a = square(A, "eigh")
    if UPLO.upper() not in ("L", "U"):
        fail(ArgumentError, f"linalg.eigh: Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    if a.shape[-1] < 2:
        return Eigh(reshape_to(a, tuple(a.shape[:-1])), apply(la.unit_like, a))
    name = "LinalgEighBackward0"
    planes = apply(d.eigh, transpose(a, -2, -1) if UPLO.upper() == "U" else a)
    return Eigh(_row(planes, 1, name), _plane(planes, 0, a.shape[-1], name))


@matrix_named_either_way
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of a symmetric matrix, in ascending order; see `eigh`.

    Example:
        >>> eigvalsh(tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([1., 2.])
    """
    return eigh(A, UPLO).eigenvalues


def eig(A: Tensor) -> NoReturn:
    """Unsupported: eigenvalues of general matrices are complex numbers, of which there are no tensors here.

    Raises:
        UnsupportedError: always.
    """
    fail(
        UnsupportedError,
        "linalg.eig: the eigenvalues of general matrices are complex, which tensors are not here. For a "
        "symmetric matrix use linalg.eigh.",
    )


def eigvals(A: Tensor) -> NoReturn:
    """Unsupported; see `eig`."""
    eig(A)


# --- singular values ----------------------------------------------------------------------------------------


@matrix_named_either_way
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Svd:
    """Singular values in descending order, and vectors: A = U diag(S) Vh.

    The gradient of the vectors needs different singular values; that of columns that `full_matrices` adds is
    left out. The sign of a pair of vectors is anybody's choice; in compiled functions it may be the other.

    Example:
        >>> linalg_svd(tensor([[0.0, 2.0], [1.0, 0.0]])).S
        tensor([2., 1.])
    """
    a = _matrices(A, "svd")
    rows, columns = a.shape[-2:]
    name = "LinalgSvdBackward0"
    if rows < columns:
        left, values, right = linalg_svd(transpose(a, -2, -1), full_matrices)
        return Svd(transpose(right, -2, -1), values, transpose(left, -2, -1))
    if not columns:
        whole = np.broadcast_to(np.eye(rows, dtype=array_dtype(a)), (*a.shape[:-2], rows, rows))
        left = wrap(np.array(whole)) if full_matrices else a
        return Svd(left, sum_of(a, -2), part(a, a.ndim - 2, 0, 0))
    if d.is_number(a):
        sign = apply(e.where, apply(e.less, a, 0.0), -1.0, apply(la.unit_like, a))
        values = reshape_to(apply(e.absolute, a), tuple(a.shape[:-1]), name)
        return Svd(sign, values, apply(la.unit_like, a))
    planes = apply(d.svd, a)
    left = _plane(planes, 0, rows, name)
    right = transpose(_plane(planes, 2, columns, name), -2, -1)
    if full_matrices and rows > columns:
        whole = np.linalg.svd(values_of(a.detach(), "linalg.svd"), full_matrices=True)[0]
        left = cat([left, wrap(np.ascontiguousarray(whole[..., columns:]))], -1)
    return Svd(left, _row(planes, 1, name), right)


@matrix_named_either_way
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Singular values in descending order.

    Example:
        >>> svdvals(tensor([[0.0, 2.0], [1.0, 0.0]]))
        tensor([2., 1.])
    """
    return linalg_svd(A, False).S


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SvdOld:
    """`linalg_svd` with V in the place of its transpose; without `some` U and V are square.

    Example:
        >>> svd(tensor([[0.0, 2.0], [1.0, 0.0]])).S
        tensor([2., 1.])
    """
    left, values, right = linalg_svd(input, not some)
    if not compute_uv:
        *batch, rows, columns = input.shape
        dtype = array_dtype(values)
        return SvdOld(
            filled((*batch, rows, rows), 0, dtype), values, filled((*batch, columns, columns), 0, dtype)
        )
    return SvdOld(left, values, transpose(right, -2, -1))


def _tolerance(x: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """PyTorch's defaults: none absolute, relative the larger extent times epsilon."""
    if rtol is None:
        some = atol is not None and bool(np.any(np.asarray(atol) > 0))
        rtol = 0.0 if some else max(x.shape[-2:]) * float(np.finfo(array_dtype(x)).eps)
    return 0.0 if atol is None else atol, rtol


@matrix_named_either_way
def matrix_rank(
    A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """How many singular values are above max(atol, rtol * largest). It has no gradient.

    Example:
        >>> matrix_rank(tensor([[1.0, 2.0], [2.0, 4.0]]))
        tensor(1)
    """
    a = _matrices(A, "matrix_rank").detach()
    if tol is not None:
        atol, rtol = tol, 0.0
    atol, rtol = _tolerance(a, atol, rtol)
    values = abs(eigvalsh(a)) if hermitian else svdvals(a)
    if not values.shape[-1]:
        return filled(tuple(a.shape[:-2]), 0, np.dtype("int64"))
    bound = rtol * amax(values, -1)
    bound = apply(e.maximum, bound, atol if isinstance(atol, Tensor) else float(atol))
    return sum_of(values > bound.unsqueeze(-1), -1)


@matrix_named_either_way
def linalg_cond(A: Tensor, p: Any = None) -> Tensor:
    """The condition number: the largest over the smallest singular value, or norm(A, p) norm(inv(A), p).

    Example:
        >>> linalg_cond(tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor(2.)
    """
    from .statistics import matrix_norm

    a = _matrices(A, "cond")
    if p in (None, 2, -2):
        values = svdvals(a)
        largest, smallest = amax(values, -1), amin(values, -1)
        return smallest / largest if p == -2 else largest / smallest
    return matrix_norm(a, p) * matrix_norm(inverse(square(a, "cond")), p)


# --- pseudo-inverses and least squares ----------------------------------------------------------------------


@matrix_named_either_way
def pinv(
    A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """The pseudo-inverse: singular values up to max(atol, rtol * largest) count as 0.

    Its gradient is that of matrices of the same rank.

    Example:
        >>> pinv(tensor([[2.0], [0.0]]))
        tensor([[0.5000, 0.0000]])
    """
    a = _matrices(A, "pinv")
    atol, rtol = _tolerance(a, atol, rcond if rtol is None else rtol)
    atol, rtol = (values_of(one, "linalg.pinv") if isinstance(one, Tensor) else one for one in (atol, rtol))
    tolerance = np.asarray(rtol, np.float64)
    if np.any(np.asarray(atol) > 0) and a.numel():
        largest = np.linalg.norm(values_of(a.detach(), "linalg.pinv"), 2, axis=(-2, -1))
        tolerance = np.maximum(tolerance, np.asarray(atol) / np.maximum(largest, np.finfo(np.float64).tiny))
    if tolerance.ndim:
        values_of(a.detach(), "linalg.pinv")  # a tolerance for each matrix is not compiled
        return apply(d.pinv, a, tolerance=tolerance, hermitian=hermitian)
    return apply(d.pinv, a, tolerance=float(tolerance), hermitian=hermitian)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """`linalg.pinv`.

    Example:
        >>> pinverse(tensor([[2.0]]))
        tensor([[0.5000]])
    """
    return pinv(input, rtol=rcond)


@matrix_named_either_way
def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> Lstsq:
    """The X that makes the norm of A X - B smallest, and of several the smallest X.

    Example:
        >>> lstsq(tensor([[1.0], [1.0]]), tensor([[1.0], [3.0]])).solution
        tensor([[2.]])
    """
    a, b = promoted("lstsq", _matrices(A, "lstsq"), floating(B, "lstsq", "B"), broadcast=False)
    is_vector = b.ndim == a.ndim - 1 and tuple(b.shape) == tuple(a.shape[:-1])
    sides = b.unsqueeze(-1) if is_vector else b
    if sides.ndim < 2 or sides.shape[-2] != a.shape[-2]:
        fail(
            ShapeError,
            f"linalg.lstsq: input.size(-2) should match other.size(-2), found {tuple(a.shape)} and "
            f"{tuple(b.shape)}",
        )
    found = matmul(pinv(a, rtol=rcond), sides)
    rows, columns = a.shape[-2:]
    nothing = filled((0,), 0, array_dtype(a))
    rank = filled((0,), 0, np.dtype("int64")) if driver == "gels" else matrix_rank(a, rtol=rcond)
    residuals = nothing
    if rows > columns and driver not in (None, "gelsy") and bool((rank == columns).all()):
        residuals = sum_of((matmul(a, found) - sides) ** 2, -2)
    values = svdvals(a.detach()) if driver in ("gelsd", "gelss") else nothing
    return Lstsq(reshape_to(found, tuple(found.shape[:-1])) if is_vector else found, residuals, rank, values)


# --- QR -----------------------------------------------------------------------------------------------------


@matrix_named_either_way
def linalg_qr(A: Tensor, mode: str = "reduced") -> Qr:
    """Q with orthonormal columns and an upper triangular R with A = Q R.

    Args:
        mode: "reduced"; "complete" for a square Q; "r" for R alone.

    Raises:
        GradientError: "complete" or "r" of a matrix with more rows than columns that requires grad.

    Example:
        >>> linalg_qr(tensor([[0.0, 2.0], [1.0, 0.0]])).R.abs()
        tensor([[1., 0.],
                [0., 2.]])
    """
    a = _matrices(A, "qr")
    if mode not in ("reduced", "complete", "r"):
        fail(
            ArgumentError, f"qr received unrecognized mode '{mode}' but expected 'reduced', 'r' or 'complete'"
        )
    rows, columns = a.shape[-2:]
    name = "LinalgQrBackward0"
    if mode != "reduced" and rows > columns and a.requires_grad and is_recording():
        fail(
            GradientError,
            f"The QR decomposition is not differentiable when mode='{mode}' and nrows > ncols. Use "
            "mode='reduced'.",
        )
    if d.is_number(a):
        q, r = apply(la.unit_like, a), apply(e.identity, a, grad_name=name)
    elif 1 == rows < columns:
        q, r = apply(la.unit_like, part(a, a.ndim - 1, 0, 1)), apply(e.identity, a, grad_name=name)
    elif rows < columns:
        planes = apply(d.qr, part(a, a.ndim - 1, 0, rows))
        q, r = _plane(planes, 0, rows, name), _plane(planes, 1, rows, name)
        rest = matmul(transpose(q, -2, -1), part(a, a.ndim - 1, rows, columns))
        r = cat([r, rest], -1)
    else:
        planes = apply(d.qr, a)
        q, r = _plane(planes, 0, rows, name), _plane(planes, 1, columns, name)
    if mode == "complete" and rows > columns:
        whole = np.linalg.qr(values_of(a.detach(), "linalg.qr"), mode="complete")[0]
        q = wrap(np.ascontiguousarray(whole))
        r = cat([r, filled((*a.shape[:-2], rows - columns, columns), 0, array_dtype(a))], -2)
    return Qr(filled((0,), 0, array_dtype(a)) if mode == "r" else q, r)


def qr(input: Tensor, some: bool = True) -> Qr:
    """`linalg.qr`, complete without `some`.

    Example:
        >>> qr(tensor([[2.0]])).R.abs()
        tensor([[2.]])
    """
    return linalg_qr(input, "reduced" if some else "complete")


@matrix_named_either_way
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of the reflections I - tau v v', whose v lie below the diagonal.

    Example:
        >>> householder_product(tensor([[1.0], [0.0]]), tensor([0.0]))
        tensor([[1.],
                [0.]])
    """
    a, factors = _matrices(input, "householder_product"), floating(tau, "householder_product", "tau")
    rows, columns = a.shape[-2:]
    count = factors.shape[-1]
    if columns > rows or count > columns:
        fail(
            ShapeError,
            "householder_product: input must have at least as many rows as columns, and as many columns as "
            f"tau has elements: found {tuple(a.shape)} and {tuple(factors.shape)}.",
        )
    identity = np.broadcast_to(np.eye(rows, columns, dtype=array_dtype(a)), tuple(a.shape)).copy()
    unit, found = wrap(identity), wrap(identity)
    vectors = tril(a, -1) + unit
    for place in reversed(range(count)):
        vector = part(vectors, a.ndim - 1, place, place + 1)
        weight = part(factors, factors.ndim - 1, place, place + 1).unsqueeze(-1)
        found = found - weight * matmul(vector, matmul(transpose(vector, -2, -1), found))
    return found


# --- LU -----------------------------------------------------------------------------------------------------


def _triangles(a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """L and U, the order of the rows of their product, and LAPACK's pivots, counted from 1."""
    rows, columns = a.shape[-2:]
    count = min(rows, columns)
    if d.is_number(a):
        nothing = filled((*a.shape[:-2], 1), 0, INT64)
        return apply(la.unit_like, a), a, nothing, as_dtype(nothing + 1, np.dtype("int32"))
    exchanges = as_dtype(apply(d.row_exchanges, a.detach()), INT64)
    first = selected(exchanges, exchanges.ndim - 1, 0) if columns else exchanges.sum(-1)
    order = selected(first, first.ndim - 2, 0)
    pivots = part(selected(first, first.ndim - 2, 1), first.ndim - 2, 0, count)
    places = expand_to(order.unsqueeze(-1), tuple(a.shape))
    ordered = along(a, places, a.ndim - 2)
    top = part(part(ordered, a.ndim - 2, 0, count), a.ndim - 1, 0, count)
    both = top if d.is_number(top) else selected(apply(d.lu, top), top.ndim - 2, 0)
    lower = tril(both, -1) + apply(la.unit_like, both.detach())
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
                    tril(both, -1) + apply(la.unit_like, both.detach()),
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
        >>> linalg_lu(tensor([[0.0, 2.0], [1.0, 0.0]])).U
        tensor([[1., 0.],
                [0., 2.]])
    """
    a = _matrices(A, "lu")
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
    a = _matrices(A, "lu_factor")
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
    zero = apply(e.equal, diagonal(both.detach(), 0, -2, -1), 0.0)
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
        >>> lu_unpack(*lu_factor(tensor([[2.0]]))).U
        tensor([[2.]])
    """
    both = _matrices(LU_data, "lu_unpack")
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
    flat = pivots.reshape(-1, pivots.shape[-1])
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
        >>> linalg_lu_solve(*lu_factor(tensor([[2.0]])), tensor([[4.0]]))
        tensor([[2.]])
    """
    permutation, lower, upper = lu_unpack(LU, pivots)
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
        >>> lu_solve(tensor([[4.0]]), *lu_factor(tensor([[2.0]])))
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
    values = unwrap(a.detach())
    minors = np.stack(
        [np.linalg.det(values[..., :size, :size]) <= 0 for size in range(1, values.shape[-1] + 1)], axis=-1
    )
    info = np.where(minors.any(-1), minors.argmax(-1) + 1, 0).astype(np.int32)
    bad = wrap(np.asarray(info > 0)[..., None, None])
    safe = apply(e.where, expand_to(bad, tuple(a.shape)), apply(la.unit_like, a.detach()), a)
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


# --- functions of matrices ----------------------------------------------------------------------------------


@matrix_named_either_way
def matrix_exp(input: Tensor) -> Tensor:
    """The exponential of a square matrix, the sum of A ** k / k!.

    Example:
        >>> matrix_exp(tensor([[0.0]]))
        tensor([[1.]])
    """
    return apply(d.matrix_exp, square(input, "matrix_exp"))


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


@matrix_named_either_way
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse for `tensordot` over the first `ind` dimensions.

    Example:
        >>> tensorinv(tensor([[2.0]]), 1)
        tensor([[0.5000]])
    """
    a = floating(A, "tensorinv")
    first, last = tuple(a.shape[:ind]), tuple(a.shape[ind:])
    if ind < 1 or math.prod(first) != math.prod(last):
        fail(
            ShapeError,
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), ind "
            f"> 0: found {tuple(a.shape)}, ind = {ind}.",
        )
    flat = reshape_to(a, (math.prod(first), math.prod(last)))
    return reshape_to(inverse(flat), (*last, *first))


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The X with tensordot(A, X, X.ndim) = B.

    Example:
        >>> tensorsolve(tensor([[2.0]]), tensor([4.0]))
        tensor([2.])
    """
    a, b = promoted(
        "tensorsolve", floating(A, "tensorsolve"), floating(B, "tensorsolve", "B"), broadcast=False
    )
    if dims is not None:
        a = movedim(a, tuple(dims), tuple(range(a.ndim - len(dims), a.ndim)))
    shape = tuple(a.shape[b.ndim :])
    if math.prod(shape) != b.numel() or a.numel() != b.numel() ** 2:
        fail(
            ShapeError,
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), found {tuple(a.shape)} and {tuple(b.shape)}.",
        )
    flat = reshape_to(a, (b.numel(), b.numel()))
    return reshape_to(solved(flat, reshape_to(b, (b.numel(),)), True), shape)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The dot products of vectors along a dimension; the others broadcast.

    Example:
        >>> vecdot(tensor([1.0, 2.0]), tensor([3.0, 4.0]))
        tensor(11.)
    """
    from .arithmetic import mul

    products = mul(x, y)
    return sum_of(products, one_dim(dim, products.ndim, "vecdot"))


def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers from 0 on of each element, in a new last dimension.

    Example:
        >>> linalg_vander(tensor([2, 3]), N=3)
        tensor([[1, 2, 4],
                [1, 3, 9]])
    """
    from .grids import powers

    values = tensor(x, "linalg.vander", "x")
    values = values if values.ndim else values.unsqueeze(0)
    return powers(values, values.shape[-1] if N is None else N, "linalg.vander")
