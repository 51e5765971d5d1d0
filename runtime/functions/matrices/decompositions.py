"""Decompositions of matrices: eigenvalues, singular values, orthogonal and triangular factors.

LAPACK computes them, in compiled functions as well, but for those of few rows or columns. Where it finds no
eigenvalues or singular values, as of nan, LinearAlgebraError is raised.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ....tracer.errors import ArgumentError, GradientError, ShapeError
from ....tracer.lapack import SMALL
from ....tracer.ops import decompositions as d
from ....tracer.ops import elementwise as e
from ....tracer.ops import general_eigenvalues as general
from ....tracer.ops import linalg as la
from ....tracer.ops import movement as m
from ....tracer.spec import complex_dtype
from ....tracer.trace import innermost, is_tracing, itself
from ...tape.apply import apply, unwrap, wrap
from ...tape.direct import direct, unrecorded
from ...tape.direct_parts import read_part
from ...values.modes import is_recording
from ...values.tensor import Tensor, make
from ..common import (
    array_dtype,
    as_dtype,
    conjugate,
    fail,
    filled,
    floating,
    matrix_named_either_way,
    shape_list,
    with_short_way,
)
from ..declared import sum as sum_of
from ..elements.complex_numbers import real as real_part
from ..shapes.joining import cat
from ..shapes.movement import adjoint, reshape_to, transpose
from ..shapes.parts import part, selected, sliced, tril, triu
from .contraction import matmul
from .linalg import mirrored_directly, solve_triangular, square

__all__ = ["orgqr", "ormqr", "qr", "svd"]


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


def matrices(A: Any, function: str) -> Tensor:
    x = floating(A, function)
    if x.ndim < 2:
        fail(
            ShapeError,
            f"linalg.{function}: The input tensor A must have at least 2 dimensions, found {tuple(x.shape)}.",
        )
    return x


def _plane(planes: Tensor, place: int, rows: int, name: str) -> Tensor:
    """The first rows of one plane of a decomposition."""
    *batch, _, _, columns = planes._value.shape
    short = read_part(planes, (..., place, slice(0, rows), ALL), name)
    return _part_of_plane(planes, place, rows, (*batch, rows, columns), name) if short is None else short


def _row(planes: Tensor, place: int, name: str) -> Tensor:
    """The first row of one plane."""
    *batch, _, _, columns = planes._value.shape
    short = read_part(planes, (..., place, 0, ALL), name)
    return _part_of_plane(planes, place, 1, (*batch, columns), name) if short is None else short


def _part_of_plane(planes: Tensor, place: int, rows: int, shape: tuple[int, ...], name: str) -> Tensor:
    *batch, _, _, columns = planes._value.shape
    starts, stops = (*(0,) * len(batch), place, 0, 0), (*batch, place + 1, rows, columns)
    return apply(
        m.reshape, sliced(planes, starts, stops, (1,) * len(starts), name), shape=shape, grad_name=name
    )


def _last_row(values: Tensor) -> Tensor:
    """Values alone, of a decomposition that has nothing else."""
    return selected(values, values.ndim - 2, values.shape[-2] - 1)


def _needs_vectors(a: Tensor) -> bool:
    """Whether a gradient is coming, which is made of them, or their values alone would take as long."""
    least, is_differentiated = min(a.shape[-2:]), a.requires_grad and is_recording()
    return is_differentiated or not least or (least <= SMALL and not a.is_complex())


# --- short ways: arrays of LAPACK's as they are -----------------------------------------------------------


def _in_order(parts: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Arrays in C's order of memory, whose memory is their own."""
    return [one if one.base is None and one.flags.c_contiguous else one.copy() for one in parts]


def _eigh_arrays(a: np.ndarray, UPLO: str = "L") -> list[np.ndarray]:
    return _in_order(d.eigenvalues_and_vectors(a, IS_LOWER[UPLO]))


def _eigvalsh_array(a: np.ndarray, UPLO: str = "L") -> list[np.ndarray]:
    return [d.symmetric_eigenvalues(a, IS_LOWER[UPLO])]


def _svd_arrays(a: np.ndarray, full_matrices: bool = True) -> list[np.ndarray]:
    """Of a square matrix, or without the columns that complete a basis."""
    rows, columns = a.shape[-2:]
    if full_matrices and rows != columns:
        raise NotImplementedError
    if rows >= columns:
        left, values, right = d.singular_values_and_vectors(a, False)
        return _in_order((left, values, right.conj().swapaxes(-1, -2)))
    left, values, right = d.singular_values_and_vectors(a.conj().swapaxes(-1, -2), True)
    return _in_order((right, values, left.conj().swapaxes(-1, -2)))


def _svdvals_array(a: np.ndarray) -> list[np.ndarray]:
    return [d.singular_values(a if a.shape[-2] >= a.shape[-1] else a.swapaxes(-1, -2))]


def _qr_arrays(a: np.ndarray, mode: str = "reduced") -> list[np.ndarray]:
    """Of a matrix with no more columns than rows."""
    if a.shape[-2] < a.shape[-1] or (mode != "reduced" and (mode != "complete" or a.shape[-2] > a.shape[-1])):
        raise NotImplementedError
    return _in_order(d.orthonormal_and_triangular(a))


ALL = slice(None)
EIGH, SVD, QR = "LinalgEighBackward0", "LinalgSvdBackward0", "LinalgQrBackward0"
IS_LOWER = {"L": True, "U": False}
_COMPUTED: dict[str, Callable[..., list[np.ndarray]]] = {
    "eigh": _eigh_arrays, "eigvalsh": _eigvalsh_array, "svd": _svd_arrays, "svdvals": _svdvals_array,
    "qr": _qr_arrays, "eig": lambda a: _in_order(general.general_values_and_vectors(a)),
    "eigvals": lambda a: [general.general_values(a)],
}  # fmt: skip


def _is_recorded(a: Any) -> bool:
    """Whether it is a Tensor of real matrices of two rows and columns at least, in eager code."""
    if not isinstance(a, Tensor) or innermost() is not None:
        return False
    value = a._value
    return value.ndim > 1 and bool(value.size) and value.dtype.kind == "f" and min(value.shape[-2:]) > 1


def _parts(planes: Any, name: str, *places: tuple[int, int]) -> Any:
    """Of what a short way gives, planes with so many rows of each; a row where they are 0."""
    if planes is NotImplemented:
        return planes
    return [
        _plane(planes, place, rows, name) if rows else _row(planes, place, name) for place, rows in places
    ]


def _eigh_recorded(a: Tensor, UPLO: str = "L") -> Any:
    size = a._value.shape[-1]
    return _parts(_eigh_planes(a, lower=IS_LOWER[UPLO]), EIGH, (1, 0), (0, size))


def _eigvalsh_recorded(a: Tensor, UPLO: str = "L") -> Any:
    return _parts(_eigh_planes(a, lower=IS_LOWER[UPLO]), EIGH, (1, 0))


def _svd_recorded(a: Tensor, full_matrices: bool = True) -> Any:
    """Of a square matrix, or a tall one without the columns that complete a basis."""
    rows, columns = a._value.shape[-2:]
    if rows < columns or (full_matrices and rows > columns):
        return NotImplemented
    found = _parts(_svd_planes(a, adjoint=False), SVD, (0, rows), (1, 0), (2, columns))
    return found if found is NotImplemented else [*found[:2], transpose(found[2], -2, -1)]


def _svdvals_recorded(a: Tensor) -> Any:
    rows, columns = a._value.shape[-2:]
    return NotImplemented if rows < columns else _parts(_svd_planes(a, adjoint=False), SVD, (1, 0))


def _qr_recorded(a: Tensor, mode: str = "reduced") -> Any:
    rows, columns = a._value.shape[-2:]
    if rows < columns or mode not in ("reduced", "complete") or (mode == "complete" and rows > columns):
        return NotImplemented
    return _parts(_qr_planes(a), QR, (0, rows), (1, columns))


_eigh_planes, _svd_planes, _qr_planes = map(direct, (d.eigh, d.svd, d.qr))
_RECORDED: dict[str, Callable[..., Any]] = {
    "eigh": _eigh_recorded, "eigvalsh": _eigvalsh_recorded, "svd": _svd_recorded,
    "svdvals": _svdvals_recorded, "qr": _qr_recorded,
}  # fmt: skip


def _of_triangle(function: Callable[..., Any]) -> Callable[..., Any]:
    """With the gradient of the lower triangle alone, which is all that NumPy's function reads."""

    def of_mirrored(a: Tensor, UPLO: str = "L") -> Any:
        mirrored = NotImplemented if UPLO != "L" else mirrored_directly(a)
        return mirrored if mirrored is NotImplemented else function(mirrored)

    return of_mirrored


def _short_way(name: str, gather: Callable[..., Any], of_triangle: bool = False) -> Callable[..., Any]:
    without, recorded = unrecorded(_COMPUTED[name], gather), _RECORDED.get(name)
    if of_triangle and recorded is not None:
        recorded = _of_triangle(recorded)

    def function(a: Any = None, *arguments: Any, **options: Any) -> Any:
        found = without(a, *arguments, **options)
        if found is not NotImplemented or recorded is None or not _is_recorded(a):
            return found
        try:
            parts = recorded(a, *arguments, **options)
        except (TypeError, KeyError):  # of options, which the general way explains
            return NotImplemented
        return parts if parts is NotImplemented else gather(*parts)

    function.takes_options = True  # type: ignore[attr-defined]
    return function


SHORT_WAYS = {name: functools.partial(_short_way, name) for name in _COMPUTED}
"""By function what makes its short way of what gathers its results: PyTorch's named tuples, or NumPy's, of
which those of symmetric matrices read one triangle."""


# --- eigenvalues --------------------------------------------------------------------------------------------


@matrix_named_either_way
def eigh(A: Tensor, UPLO: str = "L") -> Eigh:
    """Eigenvalues of a symmetric or Hermitian matrix, in ascending order, and its eigenvectors, in columns.

    The gradient of the eigenvectors needs different eigenvalues. A vector's sign is anybody's choice; in
    compiled functions it may be the other one where a matrix has up to six rows. Complex vectors are given up
    to a factor of size 1.

    Args:
        UPLO: which triangle is read, "L" or "U".

    Raises:
        ShapeError: the matrix is not square. LinearAlgebraError: it holds nan or inf.

    Example:
        >>> eigh(tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
        tensor([1., 2.])
    """
    a = square(A, "eigh")
    if UPLO.upper() not in ("L", "U"):
        fail(ArgumentError, f"linalg.eigh: Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    if a.shape[-1] < 2:
        return Eigh(real_part(reshape_to(a, tuple(a.shape[:-1]))), apply(la.unit_like, a))
    planes = apply(d.eigh, a, lower=UPLO.upper() == "L")
    return Eigh(real_part(_row(planes, 1, EIGH)), _plane(planes, 0, a.shape[-1], EIGH))


with_short_way(eigh, SHORT_WAYS["eigh"](Eigh))


@matrix_named_either_way
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """Eigenvalues of a symmetric matrix, in ascending order; see `eigh`.

    Example:
        >>> eigvalsh(tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor([1., 2.])
    """
    a = square(A, "eigvalsh")
    if UPLO.upper() not in ("L", "U") or _needs_vectors(a):
        return eigh(A, UPLO).eigenvalues
    return _last_row(apply(d.eigvalsh, a, lower=UPLO.upper() == "L"))


with_short_way(eigvalsh, SHORT_WAYS["eigvalsh"](itself))


class Eig(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


@matrix_named_either_way
def eig(A: Tensor) -> Eig:
    """Eigenvalues of a square matrix, complex numbers in no order, and its eigenvectors, in columns.

    The vectors have the length 1, and are given up to a factor of size 1: a gradient of what depends on it
    raises GradientError. It needs different eigenvalues.

    Raises:
        ShapeError: the matrix is not square.

    Example:
        >>> eig(tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues.imag.abs()
        tensor([1., 1.])
    """
    a, name = square(A, "eig"), "LinalgEigBackward0"
    planes = apply(general.eig, a)
    if not a.shape[-1]:
        nothing = as_dtype(a, complex_dtype(array_dtype(a)))
        return Eig(sum_of(nothing, -1), nothing)
    return Eig(_row(planes, 1, name), _plane(planes, 0, a.shape[-1], name))


with_short_way(eig, SHORT_WAYS["eig"](Eig))


@matrix_named_either_way
def eigvals(A: Tensor) -> Tensor:
    """Eigenvalues of a square matrix; see `eig`.

    Example:
        >>> eigvals(tensor([[0.0, 1.0], [-1.0, 0.0]])).imag.abs()
        tensor([1., 1.])
    """
    a = square(A, "eigvals")
    if not a.shape[-1] or (a.requires_grad and is_recording()):
        return eig(A).eigenvalues
    return _last_row(apply(general.eigvals, a))


with_short_way(eigvals, SHORT_WAYS["eigvals"](itself))


# --- singular values ----------------------------------------------------------------------------------------


@matrix_named_either_way
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Svd:
    """Singular values in descending order, and vectors: A = U diag(S) Vh.

    The gradient of the vectors needs different singular values; that of columns that `full_matrices` adds is
    left out. The sign of a pair of vectors is anybody's choice; in compiled functions it may be the other
    where a matrix has up to six rows or columns.

    Raises:
        LinearAlgebraError: the matrix holds nan or inf.

    Example:
        >>> svd(tensor([[0.0, 2.0], [1.0, 0.0]])).S
        tensor([2., 1.])
    """
    a = matrices(A, "svd")
    if a.shape[-2] >= a.shape[-1]:
        return _svd_of_tall(a, full_matrices)
    left, values, right = _svd_of_tall(adjoint(a), full_matrices, True)
    return Svd(adjoint(right), values, adjoint(left))


with_short_way(linalg_svd, SHORT_WAYS["svd"](Svd))


def _svd_of_tall(a: Tensor, full_matrices: bool, of_adjoint: bool = False) -> Svd:
    """With the signs that LAPACK gives vectors of `a`, or of its adjoint, which is the matrix at hand."""
    rows, columns = a.shape[-2:]
    if not columns:
        whole = np.broadcast_to(np.eye(rows, dtype=array_dtype(a)), (*a.shape[:-2], rows, rows))
        left = matmul(a, adjoint(a)) + wrap(np.array(whole)) if full_matrices else a
        return Svd(left, real_part(sum_of(a, -2)), part(a, a.ndim - 2, 0, 0))
    if d.is_number(a) and not a.is_complex():
        sign = apply(e.where, apply(e.less, a, 0.0), -1.0, apply(la.unit_like, a))
        values = reshape_to(apply(e.absolute, a), tuple(a.shape[:-1]), SVD)
        return Svd(sign, values, apply(la.unit_like, a))
    planes = apply(d.svd, a, adjoint=of_adjoint)
    left = _plane(planes, 0, rows, SVD)
    right = adjoint(_plane(planes, 2, columns, SVD))
    if full_matrices and rows > columns:
        every = apply(d.whole_basis, apply(e.stop_gradient, a), by="wide svd" if of_adjoint else "svd")
        left = cat([left, part(every, a.ndim - 1, columns, rows)], -1)
    return Svd(left, real_part(_row(planes, 1, SVD)), right)


@matrix_named_either_way
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Singular values in descending order.

    Example:
        >>> svdvals(tensor([[0.0, 2.0], [1.0, 0.0]]))
        tensor([2., 1.])
    """
    a = matrices(A, "svdvals")
    if _needs_vectors(a):
        return linalg_svd(A, False).S
    return _last_row(apply(d.svdvals, transpose(a, -2, -1) if a.shape[-2] < a.shape[-1] else a))


with_short_way(svdvals, SHORT_WAYS["svdvals"](itself))


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SvdOld:
    """`linalg_svd` with V in the place of its transpose; without `some` U and V are square.

    Example:
        >>> svd(tensor([[0.0, 2.0], [1.0, 0.0]])).S
        tensor([2., 1.])
    """
    left, values, right = linalg_svd(input, not some)
    if not compute_uv:
        *batch, rows, columns = input.shape
        dtype = array_dtype(left)
        return SvdOld(
            filled((*batch, rows, rows), 0, dtype), values, filled((*batch, columns, columns), 0, dtype)
        )
    return SvdOld(left, values, adjoint(right))


# --- QR -----------------------------------------------------------------------------------------------------


@matrix_named_either_way
def linalg_qr(A: Tensor, mode: str = "reduced") -> Qr:
    """Q with orthonormal columns and an upper triangular R with A = Q R.

    Args:
        mode: "reduced"; "complete" for a square Q; "r" for R alone.

    Raises:
        GradientError: "complete" or "r" of a matrix with more rows than columns that requires grad.

    Example:
        >>> qr(tensor([[0.0, 2.0], [1.0, 0.0]])).R.abs()
        tensor([[1., 0.],
                [0., 2.]])
    """
    a = matrices(A, "qr")
    if mode not in ("reduced", "complete", "r"):
        fail(
            ArgumentError, f"qr received unrecognized mode '{mode}' but expected 'reduced', 'r' or 'complete'"
        )
    rows, columns = a.shape[-2:]
    if mode != "reduced" and rows > columns and a.requires_grad and is_recording():
        fail(
            GradientError,
            f"The QR decomposition is not differentiable when mode='{mode}' and nrows > ncols. Use "
            "mode='reduced'.",
        )
    if d.is_number(a) and not a.is_complex():
        q, r = apply(la.unit_like, a), apply(e.identity, a, grad_name=QR)
    elif 1 == rows < columns and not a.is_complex():
        q, r = apply(la.unit_like, part(a, a.ndim - 1, 0, 1)), apply(e.identity, a, grad_name=QR)
    elif rows < columns:
        planes = apply(d.qr, part(a, a.ndim - 1, 0, rows))
        q, r = _plane(planes, 0, rows, QR), _plane(planes, 1, rows, QR)
        rest = matmul(adjoint(q), part(a, a.ndim - 1, rows, columns))
        r = cat([r, rest], -1)
    else:
        planes = apply(d.qr, a)
        q, r = _plane(planes, 0, rows, QR), _plane(planes, 1, columns, QR)
    if mode == "complete" and rows > columns:
        q = apply(d.whole_basis, apply(e.stop_gradient, a), by="qr")
        r = cat([r, filled((*a.shape[:-2], rows - columns, columns), 0, array_dtype(a))], -2)
    return Qr(filled((0,), 0, array_dtype(a)) if mode == "r" else q, r)


with_short_way(linalg_qr, SHORT_WAYS["qr"](Qr))


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
    a, factors = _with_factors(input, tau, "householder_product")
    rows, columns = a.shape[-2:]
    count = factors.shape[-1]
    if columns > rows or count > columns:
        fail(
            ShapeError,
            "householder_product: input must have at least as many rows as columns, and as many columns as "
            f"tau has elements: found {tuple(a.shape)} and {tuple(factors.shape)}.",
        )
    is_recorded = is_tracing() or (is_recording() and (a.requires_grad or factors.requires_grad))
    if not is_recorded and array_dtype(a) == array_dtype(factors):
        return make(d.product_of_reflections(unwrap(a), unwrap(factors)), type(a))
    identity = np.broadcast_to(np.eye(rows, columns, dtype=array_dtype(a)), tuple(a.shape)).copy()
    if not count:
        return triu(tril(a, -1) + wrap(identity))  # with a gradient, which is 0
    return _reflected(a, factors, wrap(identity), False)


def _with_factors(input: Tensor, tau: Tensor, function: str) -> tuple[Tensor, Tensor]:
    """Matrices and the factors of their reflections, which have a dimension less."""
    a, factors = matrices(input, function), floating(tau, function, "tau")
    if tuple(factors._value.shape[:-1]) != tuple(a._value.shape[:-2]) or not factors.ndim:
        fail(
            ShapeError,
            f"{function}: tau must have the batch dimensions of input, and one more: found shapes "
            f"{shape_list(a, factors)}.",
        )
    return a, factors


def _reflected(a: Tensor, factors: Tensor, found: Tensor, by_adjoint: bool) -> Tensor:
    """Matrices multiplied from the left by the product of reflections, or its adjoint.

    The product is 1 - V T V', with vectors in columns and the triangle T = D / (1 + S D), where D has the
    factors and S is V' V above its diagonal: Joffrain, Low, Quintana-Orti, van de Geijn and Van Zee,
    "Accumulating Householder transformations, revisited" (2006).
    """
    count, last = factors.shape[-1], a.ndim - 1
    below = tril(part(a, last, 0, count), -1)
    unit = np.broadcast_to(np.eye(*below.shape[-2:], dtype=array_dtype(a)), tuple(below.shape)).copy()
    vectors, weights = below + wrap(unit), factors.unsqueeze(-2)
    inner = triu(matmul(adjoint(vectors), vectors), 1) * weights
    triangle = inner + apply(la.unit_like, inner._detached())
    along = matmul(adjoint(vectors), found)
    if by_adjoint:
        along = conjugate(factors).unsqueeze(-1) * along
        along = solve_triangular(adjoint(triangle), along, upper=False)
    else:
        along = factors.unsqueeze(-1) * solve_triangular(triangle, along, upper=True)
    return found - matmul(vectors, along)


def orgqr(input: Tensor, tau: Tensor) -> Tensor:
    """`linalg.householder_product`, PyTorch's older name.

    Example:
        >>> orgqr(tensor([[1.0], [0.0]]), tensor([0.0]))
        tensor([[1.],
                [0.]])
    """
    return householder_product(input, tau)


def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """The square Q of these reflections (see `linalg.householder_product`) times `other`, or `other` times Q
    without `left`; with `transpose` its adjoint.

    Example:
        >>> ormqr(tensor([[1.0], [0.0]]), tensor([2.0]), tensor([[1.0], [3.0]]))
        tensor([[-1.],
                [ 3.]])
    """
    a, factors = _with_factors(input, tau, "ormqr")
    sides = matrices(other, "ormqr") if left else adjoint(matrices(other, "ormqr"))
    count = factors.shape[-1]
    if a.shape[-2] != sides.shape[-2] or count > min(a.shape[-2:]):
        shapes = f"{tuple(a.shape)}, {tuple(factors.shape)} and {tuple(other.shape)}"
        fail(ShapeError, f"ormqr: input, tau and other do not fit together: found shapes {shapes}.")
    is_adjoint = left == transpose
    found = _reflected(a, factors, sides, is_adjoint)
    return found if left else adjoint(found)
