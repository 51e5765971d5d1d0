"""numpy.linalg's decompositions on Tensors: eigenvalues, singular values, QR, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, ShapeError, UnsupportedError
from ...tracer.spec import real_dtype
from ...tracer.trace import itself
from ..functions import PUBLIC
from ..functions.common import array_dtype, fail, filled
from ..functions.matrices import decompositions, least_squares
from ..functions.matrices.elimination import regular_inverse
from ..functions.matrices.linalg import square, symmetric
from ..functions.reductions import statistics
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from .functions import implements
from .protocols import DIRECT_FUNCTIONS
from .values import averaged, floats

EigResult = type(np.linalg.eig(np.eye(1)))
EighResult = type(np.linalg.eigh(np.eye(1)))
SVDResult = type(np.linalg.svd(np.eye(1)))
QRResult = type(np.linalg.qr(np.eye(1)))
"""The named tuples that NumPy returns."""


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of what one triangle says."""
    return EighResult(*decompositions.eigh(_of_triangle(a, UPLO), UPLO))  # type: ignore[arg-type]


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Tensor:
    return decompositions.eigvalsh(_of_triangle(a, UPLO), UPLO)


def _of_triangle(a: Any, UPLO: str) -> Tensor:
    if UPLO.upper() not in ("L", "U"):
        fail(ArgumentError, f"numpy.linalg.eigh: UPLO argument must be 'L' or 'U', found {UPLO!r}.")
    return symmetric(averaged(a), UPLO.upper() == "L")


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    """Eigenvalues and eigenvectors, real ones where a real matrix has no others."""
    values, vectors = decompositions.eig(averaged(a))
    if not tensor_of(a).is_complex() and not bool(values._detached().imag.any()):
        values, vectors = values.real, vectors.real
    return EigResult(values, vectors)  # type: ignore[arg-type]


@implements(np.linalg.eigvals)
def eigenvalues(a: Any) -> Tensor:
    values = decompositions.eigvals(averaged(a))
    is_real = not tensor_of(a).is_complex() and not bool(values._detached().imag.any())
    return values.real if is_real else values


implements(np.linalg.svdvals)(lambda x, /: decompositions.svdvals(averaged(x)))


@implements(np.linalg.svd, in_order="asked")
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """U, the singular values in descending order, and V transposed; or the values alone."""
    x = symmetric(averaged(a)) if hermitian else averaged(a)
    if not compute_uv:
        return decompositions.svdvals(x)
    return SVDResult(*decompositions.linalg_svd(x, full_matrices))  # type: ignore[arg-type]


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """Q and R, or R alone with mode "r"."""
    if mode == "raw":
        fail(UnsupportedError, "numpy.linalg.qr: mode 'raw' is not supported on a Tensor.")
    found = decompositions.linalg_qr(averaged(a), "reduced" if mode == "r" else mode)
    return found[1] if mode == "r" else QRResult(*found)  # type: ignore[arg-type]


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse: singular values up to rcond * the largest, 1e-15 unless given, count as 0."""
    if rcond is not None and rtol is not None:
        fail(ArgumentError, "numpy.linalg.pinv: `rtol` and `rcond` can't be both set.")
    cut = rcond if rcond is not None else rtol
    x = symmetric(averaged(a)) if hermitian else averaged(a)
    return least_squares.pinv(x, hermitian=hermitian, atol=0.0, rtol=1e-15 if cut is None else cut)


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Tensor:
    x = averaged(A)
    if tol is not None:
        return least_squares.matrix_rank(x, hermitian=hermitian, atol=tol, rtol=0.0)
    return least_squares.matrix_rank(x, hermitian=hermitian, rtol=rtol)


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Tensor, Tensor, int, Tensor]:
    """The least squares solution, its squared distances (none unless a has full rank and more rows), the rank
    of a and its singular values."""
    x, y = floats(a, b)
    rows, columns = x.shape
    cut = float(np.finfo(array_dtype(x)).eps) * max(rows, columns) if rcond is None else rcond
    table = y[:, None] if y.ndim == 1 else y
    found, values, counted = least_squares.least_squares(x, table, cut)
    rank = int(counted)
    if rank == columns < rows:
        distance = table - PUBLIC["matmul"](x, found)
        distance = PUBLIC["abs"](distance) if x.is_complex() else distance
        distances = PUBLIC["sum"](PUBLIC["square"](distance), 0)
    else:
        distances = filled((0,), 0, real_dtype(array_dtype(x)))
    return found[:, 0] if y.ndim == 1 else found, distances, rank, values


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Tensor:
    """The norm of a matrix times that of its inverse; by default the ratio of its singular values."""
    matrix = decompositions.matrices(averaged(x), "cond")
    if 0 in matrix.shape[-2:]:
        fail(
            ShapeError,
            f"numpy.linalg.cond: cond is not defined on empty arrays, found shape {tuple(matrix.shape)}.",
        )
    if p in (None, 2, -2):
        values = decompositions.svdvals(matrix)
        large, small = values[..., 0], values[..., -1]
        return small / large if p == -2 else large / small
    inverses, info = regular_inverse(square(matrix, "cond"))
    found = statistics.matrix_norm(matrix, p) * statistics.matrix_norm(inverses, p)
    is_number = PUBLIC["isnan"](matrix).logical_not().all(-1).all(-1)
    return PUBLIC["where"](info.ne(0).logical_and(is_number), np.inf, found)


implements(np.i0)(lambda x: PUBLIC["i0"](averaged(tensor_of(x))))


GATHERED: dict[Any, Callable[..., Any]] = {
    np.linalg.eigh: EighResult, np.linalg.eigvalsh: itself, np.linalg.svd: SVDResult,
    np.linalg.svdvals: itself, np.linalg.qr: QRResult,
}  # fmt: skip
OF_TRIANGLES = (np.linalg.eigh, np.linalg.eigvalsh)
DIRECT_FUNCTIONS |= {
    function: decompositions.SHORT_WAYS[function.__name__](gather, function in OF_TRIANGLES)
    for function, gather in GATHERED.items()
}
