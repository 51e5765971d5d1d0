"""scipy.linalg on Tensors, with its names and options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, LinearAlgebraError, ShapeError, UnsupportedError
from ...tracer.ops import elementwise as e
from ...tracer.ops import exponentials, matrix_roots, schur_forms
from ...tracer.ops import linalg as la
from ...tracer.ops import matrix_equations as equations
from ...tracer.ops.lazy import scipy_linalg
from ...tracer.spec import complex_dtype
from ...tracer.trace import is_tracing
from ..functions import PUBLIC, declared
from ..functions.common import INTEGERS, array_dtype, as_dtype, conjugate, fail, filled
from ..functions.matrices import decompositions, elimination, least_squares, linalg, tensor_equations
from ..functions.matrices.contraction import matmul
from ..functions.shapes import grids, joining, parts
from ..numpy_api.protocols import FUNCTIONS
from ..numpy_api.values import as_python_number, averaged, floats, promoted, require_choice, require_vector
from ..solvers.requirements import Failure, require
from ..tape.apply import apply, left_in_order
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from .banded_cholesky import cholesky_banded

HARMLESS = frozenset(("check_finite", "debug", "overwrite_a", "overwrite_b", "overwrite_ab", "lwork"))
"""Options that change how the result is computed, not what it is."""
DRIVER = "lapack_driver"
"""Another one, but of `lstsq`."""


EIGH_DRIVERS = (None, "ev", "evd", "evr", "evx", "gv", "gvd", "gvx")


def _plainly(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with the arguments of SciPy's of that name, which ignores harmless options."""

    def call(*arguments: Any, **options: Any) -> Any:
        names = inspect.signature(getattr(scipy_linalg(), name)).parameters
        given = {**dict(zip(names, arguments, strict=False)), **options}
        ignored = HARMLESS if function is lstsq else HARMLESS | {DRIVER}
        return function(**{name: one for name, one in given.items() if name not in ignored})

    return call


def _refuse(function: str, **options: Any) -> None:
    """Raise for the options that ask for what is not there."""
    for name, value in options.items():
        if value is not None and value is not False:
            fail(UnsupportedError, f"scipy.linalg.{function}: {name}={value!r} is not supported on a Tensor.")


def _square(a: Any, function: str) -> Tensor:
    return linalg.square(averaged(a), function)


def _together(function: str, *given: Any) -> list[Tensor]:
    """Square matrices of one dtype."""
    return [_square(one, function) for one in promoted(given)]


def _doubles(function: str, *given: Any) -> list[Tensor]:
    """The same, in double precision, where SciPy computes in that alone."""
    found = _together(function, *given)
    return [as_dtype(one, np.result_type(array_dtype(one), np.float64)) for one in found]


# --- equations ----------------------------------------------------------------------------------------------

GENERAL = (None, "gen", "general", "banded")
SYMMETRIC = ("sym", "symmetric")
HERMITIAN = ("her", "hermitian", "pos", "positive definite")
TRIANGULAR = {"upper triangular": False, "lower triangular": True}
DIAGONALS = {
    "diagonal": (0, 0), "tridiagonal": (-1, 1), "upper triangular": (0, None), "lower triangular": (None, 0),
}  # fmt: skip
"""What `solve` may be told about its matrix; the first and the last diagonal that are read."""


def solve(
    a: Any, b: Any, lower: bool = False, transposed: bool = False, assume_a: str | None = None
) -> Tensor:
    """The x with a x = b; of a matrix that is said to be symmetric one triangle is read."""
    x, y = floats(a, b)
    if assume_a in TRIANGULAR:
        return solve_triangular(x, y, int(transposed), TRIANGULAR[assume_a])
    x = _as_told(x, "solve", assume_a, lower)
    return linalg.solved(x.mT if transposed else x, y, y.ndim == 1)


def inv(a: Any, *, assume_a: str | None = None, lower: bool = False) -> Tensor:
    return linalg.inverse(_as_told(averaged(a), "inv", assume_a, lower))


def _as_told(x: Tensor, function: str, assume_a: str | None, lower: bool) -> Tensor:
    """The matrix, by those of its elements that are read where so much is said about it."""
    if assume_a in GENERAL:
        return x
    if assume_a in HERMITIAN or (assume_a in SYMMETRIC and not x.is_complex()):
        return linalg.symmetric(x, lower)
    if assume_a in SYMMETRIC:  # of complex numbers, which are not conjugated
        half = PUBLIC["tril"](x) if lower else PUBLIC["triu"](x)
        return half + (PUBLIC["tril"](x, -1) if lower else PUBLIC["triu"](x, 1)).mT
    if assume_a in DIAGONALS:
        first, last = DIAGONALS[str(assume_a)]
        x = x if first is None else PUBLIC["triu"](x, first)
        return x if last is None else PUBLIC["tril"](x, last)
    fail(UnsupportedError, f"scipy.linalg.{function}: assume_a={assume_a!r} is not supported on a Tensor.")


def solve_triangular(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False
) -> Tensor:
    """The x with a x = b for a triangle a. LinearAlgebraError: it has a 0 on the diagonal."""
    found = _solved_triangle(a, b, trans, lower, unit_diagonal)
    if unit_diagonal:
        return found
    regular = PUBLIC["ne"](PUBLIC["diagonal"](tensor_of(a)._detached(), 0, -2, -1), 0)
    nothing = require(filled((), 0, array_dtype(found)), PUBLIC["all"](regular), SINGULAR_TRIANGLE)
    return found + nothing if is_tracing() else found


SINGULAR_TRIANGLE = Failure(
    "scipy.linalg.solve_triangular: the matrix is singular, with a 0 on its diagonal.", LinearAlgebraError
)


def _solved_triangle(
    a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False
) -> Tensor:
    x, y = floats(a, b)
    require_choice(trans, (0, 1, 2, "N", "T", "C"), "solve_triangular", "trans", "scipy.linalg")
    if trans in (1, 2, "T", "C"):
        x, lower = x.mT if trans in (1, "T") else x.mH, not lower
    right = y[:, None] if y.ndim == 1 else y
    found = linalg.solve_triangular(x, right, upper=not lower, unitriangular=unit_diagonal)
    if found.ndim == 2:
        left_in_order(found, "F")  # as LAPACK leaves it
    return found[:, 0] if y.ndim == 1 else found


def cholesky(a: Any, lower: bool = False) -> Tensor:
    """The triangular factor: an upper one unless `lower`, from the upper half."""
    return linalg.cholesky(linalg.symmetric(averaged(a), lower), not lower)


def cho_solve(c_and_lower: Any, b: Any) -> Tensor:
    """The solution, given Cholesky's factor."""
    factor, lower = c_and_lower
    first = _solved_triangle(factor, b, trans=0 if lower else 2, lower=lower)
    return _solved_triangle(factor, first, trans=2 if lower else 0, lower=lower)


def lu(a: Any, permute_l: bool = False, *, p_indices: bool = False) -> tuple[Tensor, ...]:
    """P, L and U with a = P L U; P L and U; or with rows of L in place of P."""
    permutation, lower, upper = elimination.linalg_lu(averaged(a))
    if permute_l:
        return matmul(permutation, lower), upper
    return (as_dtype(permutation.argmax(-1), np.dtype("int32")) if p_indices else permutation), lower, upper


def lu_factor(a: Any) -> tuple[Tensor, Tensor]:
    """L and U in one matrix, and the rows that were exchanged, counted from 0."""
    both, pivots = elimination.lu_factor(averaged(a))
    return both, pivots - 1


def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0) -> Tensor:
    """The solution of what `lu_factor` was given, or of its transposed: 1, or 2 for the adjoint."""
    both, pivots = lu_and_piv
    factors, sides = floats(both, b)
    turned = sides[:, None] if sides.ndim == 1 else sides
    if trans not in (0, 1, 2):
        fail(UnsupportedError, f"scipy.linalg.lu_solve: trans must be 0, 1 or 2, found {trans!r}.")
    turned = conjugate(turned) if trans == 1 else turned
    found = elimination.linalg_lu_solve(factors, tensor_of(pivots) + 1, turned, adjoint=trans != 0)
    found = conjugate(found) if trans == 1 else found
    return found[:, 0] if sides.ndim == 1 else found


def solve_banded(l_and_u: Any, ab: Any, b: Any) -> Tensor:
    """The x with a x = b, for so many diagonals of a below and above the main one, in the rows of `ab`."""
    lower, upper = (int(one) for one in l_and_u)
    bands, sides = floats(ab, b)
    return _solved_by(equations.banded_solution, bands, sides, lower=lower, upper=upper)


def solveh_banded(ab: Any, b: Any, lower: bool = False) -> Tensor:
    """The same, of a positive definite matrix, by its diagonals above the main one; if `lower`, below it."""
    bands, sides = floats(ab, b)
    if not lower and bands.ndim == 2:
        bands = conjugate(equations.transposed_bands(bands, 0, bands.shape[0] - 1))
    return _solved_by(equations.definite_banded_solution, bands, sides)


def cho_solve_banded(cb_and_lower: Any, b: Any) -> Tensor:
    """The x with a x = b, given the factor of `cholesky_banded`."""
    bands, lower = cb_and_lower
    factor, sides = floats(bands, b)
    count = factor.shape[0] - 1
    if lower:
        over = conjugate(equations.transposed_bands(factor, count, 0))
        return solve_banded((0, count), over, solve_banded((count, 0), factor, sides))
    under = conjugate(equations.transposed_bands(factor, 0, count))
    return solve_banded((0, count), factor, solve_banded((count, 0), under, sides))


def _solved_by(operator: Any, bands: Tensor, sides: Tensor, **options: Any) -> Tensor:
    if bands.ndim != 2 or sides.ndim not in (1, 2):
        found = f"{tuple(bands.shape)} and {tuple(sides.shape)}"
        fail(ShapeError, f"scipy.linalg.{operator.name}: a matrix of bands and one of sides, found {found}.")
    solution = apply(operator, bands, sides[:, None] if sides.ndim == 1 else sides, **options)
    return solution[:, 0] if sides.ndim == 1 else solution


def solve_sylvester(a: Any, b: Any, q: Any) -> Tensor:
    """The x with a x + x b = q."""
    x, y, sides = floats(a, b, q)
    return apply(equations.sylvester, x, y, sides)


def solve_continuous_lyapunov(a: Any, q: Any) -> Tensor:
    """The x with a x + x a' = q."""
    x, sides = _together("solve_continuous_lyapunov", a, q)
    return apply(equations.sylvester, x, x.mH, sides)


LARGEST_DIRECT = 10
"""Rows from which discrete equations are made continuous ones, as in SciPy."""


def solve_discrete_lyapunov(a: Any, q: Any, method: str | None = None) -> Tensor:
    """The x with a x a' - x + q = 0, as n * n equations ("direct"), or a continuous one ("bilinear")."""
    x, sides = _doubles("solve_discrete_lyapunov", a, q)
    size, unit = x.shape[-1], apply(la.unit_like, x)
    if method == "direct" or (method is None and size < LARGEST_DIRECT):
        pairs = PUBLIC["kron"](x, conjugate(x))
        found = linalg.solved(apply(la.unit_like, pairs) - pairs, sides.reshape(-1), True)
        return found.reshape((size, size))
    if method not in (None, "bilinear"):
        fail(UnsupportedError, f"scipy.linalg.solve_discrete_lyapunov: unknown method {method!r}.")
    inverse = linalg.inverse(x.mH + unit)
    moved = matmul(x.mH - unit, inverse)
    return solve_continuous_lyapunov(moved.mH, -2 * matmul(matmul(linalg.inverse(x + unit), sides), inverse))


# --- least squares ------------------------------------------------------------------------------------------


def lstsq(a: Any, b: Any, cond: Any = None, lapack_driver: str | None = None) -> tuple[Any, ...]:
    """The least squares solution, its squared distances (none unless a has full rank and more rows), the rank
    of a and its singular values."""
    x, y = floats(a, b)
    if x.ndim != 2 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        fail(ShapeError, f"scipy.linalg.lstsq: shapes {tuple(x.shape)} and {tuple(y.shape)} do not fit.")
    require_choice(lapack_driver, (None, "gelsd", "gelsy", "gelss"), "lstsq", DRIVER, "scipy.linalg")
    cut = np.finfo(array_dtype(x)).eps if cond is None else cond
    found, values, counted = least_squares.least_squares(x, y[:, None] if y.ndim == 1 else y, cut)
    found, rank = found[:, 0] if y.ndim == 1 else found, int(counted)
    distances = filled((0,), 0, array_dtype(values))
    if rank == x.shape[1] < x.shape[0] and lapack_driver != "gelsy":
        distances = declared.sum(PUBLIC["abs"](y - matmul(x, found)) ** 2, 0)
    return found, distances, rank, None if lapack_driver == "gelsy" else values


def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False) -> Any:
    """The pseudo-inverse, and the rank: singular values up to atol + rtol * the largest count as 0."""
    return _pseudo_inverse(averaged(a), atol, rtol, return_rank)


def pinvh(a: Any, atol: Any = None, rtol: Any = None, lower: bool = True, return_rank: bool = False) -> Any:
    """The same of a symmetric or Hermitian matrix, of which one triangle is read."""
    return _pseudo_inverse(linalg.symmetric(averaged(a), lower), atol, rtol, return_rank)


def _pseudo_inverse(x: Tensor, atol: Any, rtol: Any, return_rank: bool) -> Any:
    relative = max(x.shape[-2:]) * float(np.finfo(array_dtype(x)).eps) if rtol is None else rtol
    if atol:
        _refuse("pinv", atol=atol)
    found = least_squares.pinv(x, atol=0.0, rtol=relative)
    return (found, int(least_squares.matrix_rank(x, rtol=relative))) if return_rank else found


# --- decompositions -----------------------------------------------------------------------------------------


def qr(a: Any, mode: str = "full", pivoting: bool = False) -> tuple[Tensor, ...]:
    """Q and R, square and with all rows unless the mode is "economic"; R alone with mode "r"."""
    if mode not in ("full", "r", "economic"):
        fail(UnsupportedError, f"scipy.linalg.qr: mode={mode!r} is not supported on a Tensor.")
    _refuse("qr", pivoting=pivoting)
    found = decompositions.linalg_qr(averaged(a), "reduced" if mode == "economic" else "complete")
    return (found[1],) if mode == "r" else tuple(found)


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """U, the singular values in descending order, and V's adjoint; or the values alone."""
    x = averaged(a)
    return tuple(decompositions.linalg_svd(x, full_matrices)) if compute_uv else decompositions.svdvals(x)


def polar(a: Any, side: str = "right") -> tuple[Tensor, Tensor]:
    """The orthonormal u and the positive p with a = u p, or with the side "left" a = p u."""
    require_choice(side, ("right", "left"), "polar", "side", "scipy.linalg")
    left, values, right = decompositions.linalg_svd(averaged(a), False)
    factor = right.mH if side == "right" else left
    return matmul(left, right), matmul(factor * values, factor.mH)


def eigh(
    a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, subset_by_index: Any = None,
    subset_by_value: Any = None, driver: Any = None, type: int = 1,
) -> Any:  # fmt: skip
    """Eigenvalues in ascending order, and eigenvectors in columns, of a symmetric matrix; or those with
    a v = w b v, for a positive definite b."""
    _refuse("eigh", subset_by_value=subset_by_value, type=None if type == 1 else type)
    require_choice(driver, EIGH_DRIVERS, "eigh", "driver", "scipy.linalg")
    if b is None:
        values, vectors = decompositions.eigh(linalg.symmetric(averaged(a), lower), "L" if lower else "U")
    else:
        x, metric = _together("eigh", a, b)
        factor = linalg.cholesky(linalg.symmetric(metric, lower))
        half = linalg.solve_triangular(factor, linalg.symmetric(x, lower), upper=False)
        inside = linalg.solve_triangular(factor, half.mH, upper=False)
        values, vectors = decompositions.eigh(inside)
        vectors = linalg.solve_triangular(factor.mH, vectors, upper=True)
    if subset_by_index is not None:
        first, last = subset_by_index
        values, vectors = values[..., first : last + 1], vectors[..., first : last + 1]
    return values if eigvals_only else (values, vectors)


def eig(
    a: Any, b: Any = None, left: bool = False, right: bool = True, homogeneous_eigvals: bool = False
) -> Any:
    """Eigenvalues, which are complex, and eigenvectors in columns, real ones if these can be."""
    _refuse("eig", b=b, left=left, homogeneous_eigvals=homogeneous_eigvals)
    values, vectors = decompositions.eig(averaged(a))
    if not tensor_of(a).is_complex() and not bool(values._detached().imag.any()):
        vectors = vectors.real
    return (values, vectors) if right else values


def schur(a: Any, output: str = "real", sort: Any = None) -> tuple[Tensor, Tensor]:
    """T and Z with a = Z T Z': a triangle, for `output="real"` of a real matrix with blocks of two rows for
    pairs of complex eigenvalues, and a unitary matrix.

    The gradient needs different eigenvalues. Complex columns of Z are given up to a factor of size 1, and the
    two real ones of a block that is a multiple of a rotation up to a turn: a gradient of what depends on that
    raises GradientError.
    """
    if output not in ("real", "complex", "r", "c"):
        fail(ArgumentError, f"scipy.linalg.schur: output must be 'real' or 'complex', found {output!r}.")
    _refuse("schur", sort=sort)
    x = _square(a, "schur")
    if output[0] == "c":
        x = as_dtype(x, complex_dtype(array_dtype(x)))
    planes = apply(schur_forms.schur, x)
    basis, triangle = (planes[..., place, :, :] for place in (schur_forms.BASIS, schur_forms.TRIANGLE))
    return triangle, basis


# --- functions of matrices ----------------------------------------------------------------------------------


def expm(A: Any) -> Tensor:
    return PUBLIC["matrix_exp"](averaged(A))


def expm_frechet(A: Any, E: Any, method: str | None = None, compute_expm: bool = True) -> Any:
    """The exponential, and its derivative in the direction E."""
    methods = (None, "SPS", "blockEnlarge")
    require_choice(method, methods, "expm_frechet", "method", "scipy.linalg")
    x, direction = _doubles("expm_frechet", A, E)
    steps = apply(exponentials.exponentials, x._detached())
    found = apply(exponentials.expm_frechet, x, direction, steps)
    return (expm(x), found) if compute_expm else found


def _cosine_and_sine(A: Any) -> tuple[Tensor, Tensor]:
    """Parts of the exponential of [[0, -A], [A, 0]]."""
    x = _square(A, "cosm")
    size, nothing = x.shape[-1], apply(e.zeros_like, x)
    both = expm(joining.cat([joining.cat([nothing, -x], -1), joining.cat([x, nothing], -1)], -2))
    return both[..., :size, :size], both[..., size:, :size]


def tanm(A: Any) -> Tensor:
    cosine, sine = _cosine_and_sine(A)
    return linalg.solve(cosine, sine)


def coshm(A: Any) -> Tensor:
    x = averaged(A)
    return (expm(x) + expm(-x)) / 2


def sinhm(A: Any) -> Tensor:
    x = averaged(A)
    return (expm(x) - expm(-x)) / 2


def sqrtm(A: Any, disp: Any = None, blocksize: Any = None) -> Tensor:
    """The root whose eigenvalues have positive real parts; of a real matrix, where that is real."""
    _require_result_alone("sqrtm", disp)
    return _by_parts(matrix_roots.square_root, _square(A, "sqrtm"))


def logm(A: Any, disp: Any = None) -> Tensor:
    """The principal logarithm; of a real matrix, where that is real."""
    _require_result_alone("logm", disp)
    return _by_parts(matrix_roots.logarithm, _square(A, "logm"))


def _by_parts(function: matrix_roots.MatrixFunction, a: Tensor) -> Tensor:
    return tensor_equations.by_parts(a, function.whole, function.parts, function.of_parts)


def _require_result_alone(function: str, disp: Any) -> None:
    if disp is False or disp == 0:
        fail(UnsupportedError, f"scipy.linalg.{function}: disp=False is not supported on a Tensor.")


def fractional_matrix_power(A: Any, t: Any) -> Tensor:
    """exp(t log(A)), or a product of so many, or a root."""
    x = _square(A, "fractional_matrix_power")
    if isinstance(t, INTEGERS) or (isinstance(t, float) and t.is_integer()):
        return linalg.matrix_power(x, int(t))
    return sqrtm(x) if isinstance(t, float) and t == 0.5 else expm(t * logm(x))


# --- matrices of vectors ------------------------------------------------------------------------------------


def _vector(c: Any, function: str) -> Tensor:
    return require_vector(tensor_of(c), function, "an argument")


def toeplitz(c: Any, r: Any = None) -> Tensor:
    """The matrix of constant diagonals with the first column c and the first row r, or c conjugated."""
    column = _vector(c, "toeplitz")
    column, row = promoted([column, conjugate(column) if r is None else _vector(r, "toeplitz")])
    rows, columns = column.shape[0], row.shape[0]
    return joining.cat([column.flip(0), row[1:]], 0)[np.arange(columns) - np.arange(rows)[:, None] + rows - 1]


def hankel(c: Any, r: Any = None) -> Tensor:
    """The matrix with the first column c and the last row r, zeros unless given: diagonals from below."""
    column = _vector(c, "hankel")
    column, row = promoted([column, apply(e.zeros_like, column) if r is None else _vector(r, "hankel")])
    rows, columns = column.shape[0], row.shape[0]
    return joining.cat([column, row[1:]], 0)[np.arange(rows)[:, None] + np.arange(columns)]


def circulant(c: Any) -> Tensor:
    """The matrix whose columns are c, each turned one place further."""
    column = _vector(c, "circulant")
    places = np.arange(column.shape[0])
    return column[(places[:, None] - places) % max(len(places), 1)]


def companion(a: Any) -> Tensor:
    """The matrix whose eigenvalues are the zeros of the polynomial with these coefficients."""
    coefficients = averaged(_vector(a, "companion"))
    size = coefficients.shape[0] - 1
    below = tensor_of(np.eye(size - 1, size, dtype=array_dtype(coefficients)))
    return joining.cat([(-coefficients[1:] / coefficients[0])[None], below], 0)


def fiedler(a: Any) -> Tensor:
    """The distances between the elements."""
    elements = _vector(a, "fiedler")
    return PUBLIC["abs"](elements[:, None] - elements)


def solve_toeplitz(c_or_cr: Any, b: Any) -> Tensor:
    """The x with t x = b, for the matrix of constant diagonals t."""
    column, row = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    matrix, sides = floats(toeplitz(column, row), b)
    return linalg.solved(matrix, sides, sides.ndim == 1)


def eigh_tridiagonal(d: Any, e: Any, eigvals_only: bool = False, select: str = "a", **options: Any) -> Any:
    """Eigenvalues, and eigenvectors, of a symmetric matrix with this diagonal and those beside it."""
    if select not in ("a", "all"):
        _refuse("eigh_tridiagonal", select=select, **options)
    middle, beside = floats(d, e)
    values, vectors = decompositions.eigh(parts.diag(middle) + parts.diag(beside, -1) + parts.diag(beside, 1))
    return values if eigvals_only else (values, vectors)


def orthogonal_procrustes(A: Any, B: Any) -> tuple[Tensor, Tensor]:
    """The orthogonal r for which a r is nearest to b, and the sum of the singular values of a' b."""
    x, y = floats(A, B)
    left, values, right = decompositions.linalg_svd(matmul(y.mH, x).mH, False)
    return matmul(left, right), declared.sum(values)


def khatri_rao(a: Any, b: Any) -> Tensor:
    """The Kronecker products of the columns of two matrices."""
    x, y = promoted([a, b])
    return (x[:, None] * y[None]).reshape(-1, x.shape[-1])


NORMS_BY_LAPACK = {1: (None, 2), 2: (1, np.inf)}
"""By number of dimensions the norms that SciPy gives as Python numbers."""


def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    x = tensor_of(a)
    found = FUNCTIONS[np.linalg.norm](x, ord, axis, keepdims)
    by_lapack = axis is None and not keepdims and array_dtype(x).kind == "f"
    return as_python_number(found) if by_lapack and ord in NORMS_BY_LAPACK.get(x.ndim, ()) else found


# --- all ----------------------------------------------------------------------------------------------------

_WRITTEN_OUT: tuple[Callable[..., Any], ...] = (
    cho_solve, cho_solve_banded, cholesky, cholesky_banded, circulant, coshm, eig, eigh, expm,
    expm_frechet, fractional_matrix_power, hankel, companion, eigh_tridiagonal, fiedler, inv, khatri_rao,
    logm, orthogonal_procrustes, solve_toeplitz, lstsq, lu, lu_factor, lu_solve, norm, pinv, pinvh, polar,
    qr, schur, sinhm, solve, solve_banded, solve_continuous_lyapunov, solve_discrete_lyapunov,
    solve_sylvester, solve_triangular, solveh_banded, sqrtm, svd, tanm, toeplitz,
)  # fmt: skip
_NAMED: dict[str, Callable[..., Any]] = {
    **{function.__name__: function for function in _WRITTEN_OUT},
    "det": lambda a: linalg.det(averaged(a)),
    "cho_factor": lambda a, lower=False: (cholesky(a, lower), lower),
    "svdvals": lambda a: decompositions.svdvals(averaged(a)),
    "eigvalsh": lambda a, b=None, **options: eigh(a, b, eigvals_only=True, **options),
    "eigvals": lambda a, b=None, **options: eig(a, b, right=False, **options),
    "solve_lyapunov": solve_continuous_lyapunov,
    "cosm": lambda A: _cosine_and_sine(A)[0],
    "sinm": lambda A: _cosine_and_sine(A)[1],
    "tanhm": lambda A: linalg.solve(coshm(A), sinhm(A)),
}
OF_MATRICES = {
    **{name: _plainly(name, function) for name, function in _NAMED.items()},
    "block_diag": lambda *arrs: grids.block_diag(*promoted(arrs)),
}
"""By name what functions of scipy.linalg do on Tensors."""
