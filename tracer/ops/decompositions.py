"""Decompositions of matrices, alone or in batches. LAPACK computes them, called from here
(`tracer/lapack.py`) and from generated code (`codegen/decompositions.py`), but for small ones there.

An operator has one result, so what belongs to one decomposition lies in planes of the matrix's shape, in
front of its two dimensions; `plane_of` takes one. The rules: Giles, "An extended collection of matrix
derivative results" (2008), for eigenvalues; Townsend, "Differentiating the singular value decomposition"
(2016); Walter and Lehmann, "Algorithmic differentiation of linear algebra functions with application in
optimum experimental design" (2010), for QR.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..array_rules import of_arrays
from ..errors import GradientError, ShapeError
from ..lapack import ROUTINES
from ..operator import HOLOMORPHIC, OWN_RULES, Array, Operator, WholeCall, declare
from ..spec import INT64, Spec, real_dtype, spec_of
from .elementwise import (
    add,
    conjugated,
    convert,
    equal,
    is_complex,
    logical_and,
    multiply,
    real,
    scaled,
    where,
    zeros_like,
)
from .indexing import gather
from .lazy import scipy_linalg
from .linalg import (
    adjoint,
    lower_half,
    product,
    transposed,
    triangular_solve,
    unit_like,
    upper_part,
)
from .movement import between, concatenate, of_pairs, pairs_of, reshape
from .reduction import cumsum


def matrix(
    name: str,
    *,
    planes: int,
    functions: tuple[str, ...],
    of_pairs: tuple[str, ...] = (),
    choose: Callable[..., int] = lambda a: 0,
    evaluate: Callable[..., np.ndarray],
    vjp: Mapping[str, Callable[..., Array]] | None = None,
    square: bool = False,
    converges: bool = False,
    **fields: Any,
) -> Operator:
    """Declare a decomposition: of (..., m, n) it makes (..., planes, m, n), in code by one of `functions`,
    and of `of_pairs` of complex numbers, which `choose` says by the attributes.

    Without planes it makes (..., m + 1, n) real numbers, the last row of which counts, and 2 m + 1 rows of
    complex matrices. `converges`: LAPACK's iteration does so, or not, as of nan and inf.
    """

    def infer(a: Spec, **attributes: Any) -> Spec:
        require_matrix(name, a, square)
        *batch, rows, columns = a.shape
        if not planes:
            return Spec((*batch, _rows_to_compute_in(a) + 1, columns), real_dtype(a.dtype))
        return Spec((*batch, planes, rows, columns), a.dtype)

    refusal = (f"linalg.{name}", NOT_CONVERGING.removeprefix("is not ")) if converges else None
    return declare(
        name, "decomposition", "a", infer=infer, evaluate=evaluate, vjp=vjp,
        call=WholeCall(functions, choose, refusal=refusal, of_pairs=of_pairs), **fields,
    )  # fmt: skip


def _rows_to_compute_in(a: Spec | np.ndarray) -> int:
    """As many as matrices have, of twice as many numbers where these are complex."""
    rows: int = a.shape[-2]
    return 2 * rows if a.dtype.kind == "c" else rows


NOT_CONVERGING = "is not one for which LAPACK's iteration converges, as with nan or inf"


def computed(routine: str, a: np.ndarray, m: int, n: int, *given: np.ndarray) -> None:
    """Call LAPACK for each matrix: a, which is lost, and what else it takes. LinAlgError where it fails."""
    if a.size:
        one = ROUTINES[f"complex_{routine}" if a.dtype.kind == "c" else routine]
        count = 1 if a.ndim == 2 else math.prod(a.shape[:-2])
        extents = (n,) if one.rank == 1 else (m, n) if one.parameters[0] == "m" else (n, m)
        if not one.of_each(count, *extents, a, *given):
            raise np.linalg.LinAlgError(f"a matrix {NOT_CONVERGING}")


def _is_finite(a: np.ndarray) -> bool:
    """Of numbers side by side; their squares are, but for nan, inf and large numbers, which are looked at."""
    flat = a.ravel()
    return cmath.isfinite(flat.dot(flat)) or bool(np.isfinite(flat).all())


def finite(a: np.ndarray) -> np.ndarray:
    """The matrices, if all their numbers are finite: of others LAPACK may give numbers, or go on for ever."""
    if not _is_finite(a):
        raise np.linalg.LinAlgError(f"a matrix {NOT_CONVERGING}")
    return a


def by_column(a: np.ndarray) -> np.ndarray:
    """A copy of the matrices, finite ones, whose columns lie side by side: the transposed."""
    return finite(a.swapaxes(-1, -2).copy())


def _last_row(values: np.ndarray, a: np.ndarray) -> np.ndarray:
    found = np.zeros((*values.shape[:-1], _rows_to_compute_in(a) + 1, values.shape[-1]), values.dtype)
    found[..., -1, :] = values
    return found


def last_row_of(x: Array) -> Array:
    """The last row of each matrix, as a matrix of one row."""
    return rows_of(x, x.shape[-2] - 1, x.shape[-2])


def in_planes(a: np.ndarray, *parts: np.ndarray) -> np.ndarray:
    """The parts, in the first rows and columns of planes of a's shape."""
    result = np.zeros((*a.shape[:-2], len(parts), *a.shape[-2:]), a.dtype)
    for place, one in enumerate(parts):
        rows, columns = one.shape[-2:]
        result[..., place, :rows, :columns] = one
    return result


@of_arrays(lambda planes, place: planes[..., place, :, :])
def plane_of(planes: Array, place: int) -> Array:
    """One plane."""
    part = between(planes, -3, place, place + 1)
    return reshape(part, shape=(*part.shape[:-3], *part.shape[-2:]))


@of_arrays(lambda x, start, stop: x[..., start:stop, :])
def rows_of(x: Array, start: int, stop: int) -> Array:
    """Some rows of each matrix."""
    return between(x, -2, start, stop)


@of_arrays(lambda x, start, stop: x[..., start:stop])
def columns_of(x: Array, start: int, stop: int) -> Array:
    return transposed(rows_of(transposed(x), start, stop))


def _evaluate_free_phase(x: np.ndarray, function: str) -> np.ndarray:
    if x.size:
        turned = np.diagonal(x, 0, -2, -1).imag
        if np.abs(turned).max() > 0.01 * max(1.0, np.abs(x).max()):
            raise GradientError(
                f"{function}: complex vectors are given up to a factor of size 1, and the value that is "
                "differentiated depends on that factor. Take what does not, as abs() of the vectors."
            )
    return x.copy()


free_phase = declare(
    "free_phase", "eager", "x", infer=lambda x, function: x, evaluate=_evaluate_free_phase,
    vjp={"x": lambda g: g}, of_complex=OWN_RULES,
    doc="x, of which the imaginary part of the diagonal must be 0: else a cotangent of complex vectors "
    "depends on the phase by which each may be turned, and has no gradient",
)  # fmt: skip


def is_nothing(planes: Array, place: int) -> bool:
    """Whether a plane of a cotangent is 0: where a result was not used, its terms are left out."""
    known: Any = getattr(planes, "payload", planes)
    if isinstance(known, np.ndarray):
        return not getattr(planes, "requires_grad", False) and not known[..., place, :, :].any()
    return _is_zero_at(known, len(known.shape) - 3, place)


def _is_zero_at(node: Any, dim: int, place: int) -> bool:
    """The same of a place along a dimension of a graph's node, by how it is put together."""
    if node.operator is add:
        return all(_is_zero_at(one, dim, place) for one in node.operands)
    if node.operator in (reshape, of_pairs, pairs_of):
        (whole,) = node.operands
        return whole.shape[: dim + 1] == node.shape[: dim + 1] and _is_zero_at(whole, dim, place)
    if node.operator.movement.parts is None:
        return node.scalar_value == 0
    made = node.operator.movement.parts(*(one.spec for one in node.operands), **node.attributes)
    if made.base is not None or made.around != 0 or not all(part.starts for part in made.parts):
        return False
    found = ((node.operands[part.operand], part) for part in made.parts)
    regions = [(one, part.region(one.shape)[dim]) for one, part in found]
    return all(place not in filled or _is_zero_at(one, dim, filled.index(place)) for one, filled in regions)


def is_number(a: Array) -> bool:
    """Whether the matrices have one element: they are decomposed without these operators."""
    return tuple(a.shape[-2:]) == (1, 1)


def _quotient_of_arrays(x: np.ndarray, gaps: np.ndarray) -> np.ndarray:
    found = x / gaps
    if not gaps.all():
        found[(x == 0) & (gaps == 0)] = 0
    return found


@of_arrays(_quotient_of_arrays)
def quotient(x: Array, gaps: Array) -> Array:
    """x / gaps, and 0 for 0 / 0: equal eigenvalues matter to their vectors alone."""
    nothing = logical_and(equal(x, 0.0), equal(gaps, 0.0))
    return where(nothing, 0.0, x / where(nothing, 1.0, gaps))


def _with_diagonal_of_arrays(x: np.ndarray, row: Any) -> np.ndarray:
    found = x.copy()
    np.einsum("...ii->...i", found)[...] = row if isinstance(row, float) else row[..., 0, :]
    return found


@of_arrays(_with_diagonal_of_arrays)
def with_diagonal(x: Array, row: Array | float) -> Array:
    """Matrices with the numbers of a row, or one number, on their diagonals."""
    unit = unit_like(x)
    return where(equal(unit, 1.0), row if isinstance(row, float) else multiply(unit, row), x)


def differences(row: Array) -> Array:
    """At (i, j) row[j] - row[i], and 1 on the diagonal."""
    return with_diagonal(row - transposed(row), 1.0)


def _asymmetry(x: Array) -> Array:
    return x - adjoint(x)


def _real_values(row: Array) -> Array:
    """A row of values, or their cotangent, which are real, also among complex numbers."""
    return convert(real(row), dtype=row.dtype) if is_complex(row) else row


def _upper(x: Array) -> Array:
    """The upper triangle, with its diagonal."""
    lower = lower_half(transposed(x))
    return transposed(lower + diagonal_of(lower))


def diagonal_of(x: Array) -> Array:
    return multiply(x, unit_like(x))


def strictly_lower(x: Array) -> Array:
    lower = lower_half(x)
    return lower - diagonal_of(lower)


def require_matrix(name: str, a: Spec | np.ndarray, square: bool = False) -> None:
    if a.ndim < 2 or (square and a.shape[-1] != a.shape[-2]):
        raise ShapeError(f"{name}: {'square ' if square else ''}matrices expected, found shape {a.shape}.")


# --- symmetric matrices: eigenvectors in columns, a row of eigenvalues --------------------------------------


def _symmetric_by_lapack(a: np.ndarray, routine: str, lower: bool) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, and the matrix that LAPACK leaves, by column."""
    require_matrix(routine, a, True)
    across = a.swapaxes(-1, -2).copy()
    if not _is_finite(across):  # of the other triangle LAPACK reads nothing
        finite(np.triu(across) if lower else np.tril(across))
    values = np.empty(a.shape[:-1], real_dtype(a.dtype))
    computed(routine if lower else f"{routine}_of_upper", across, 0, a.shape[-1], values)
    return values, across


def _which_triangle(a: Spec, lower: bool) -> int:
    return int(not lower)


def _evaluate_eigh(a: np.ndarray, lower: bool) -> np.ndarray:
    values, vectors = eigenvalues_and_vectors(a, lower)
    return in_planes(a, vectors, values[..., None, :])


def symmetric_eigenvalues(a: np.ndarray, lower: bool) -> np.ndarray:
    return _symmetric_by_lapack(a, "eigenvalues", lower)[0]


def eigenvalues_and_vectors(a: np.ndarray, lower: bool) -> tuple[np.ndarray, np.ndarray]:
    values, across = _symmetric_by_lapack(a, "eigenvectors", lower)
    return values, across.swapaxes(-1, -2)


def _eigh_cotangent(g: Array, y: Array) -> Array:
    """Symmetric, or Hermitian, as the matrix is."""
    vectors, values = plane_of(y, 0), _real_values(rows_of(plane_of(y, 1), 0, 1))
    of_vectors, of_values = plane_of(g, 0), _real_values(rows_of(plane_of(g, 1), 0, 1))
    if is_nothing(g, 0):
        return product(multiply(vectors, of_values), adjoint(vectors))
    inside = product(adjoint(vectors), of_vectors)
    if is_complex(inside):
        inside = free_phase(inside, function="linalg.eigh")
    inside = quotient(inside, differences(values))
    inside = with_diagonal(0.5 * (inside + adjoint(inside)), of_values)
    return product(product(vectors, inside), adjoint(vectors))


eigh = matrix(
    "eigh", planes=2, square=True, functions=("eigen_symmetric", "eigen_symmetric_of_upper"),
    of_pairs=("eigen_hermitian", "eigen_hermitian_of_upper"), choose=_which_triangle,
    evaluate=_evaluate_eigh,
    vjp={"a": _eigh_cotangent}, converges=True, grad_fn="LinalgEigh", of_complex=OWN_RULES,
    doc="eigenvectors and eigenvalues of a symmetric matrix, of whose lower or upper triangle they are read",
)  # fmt: skip


def _eigenvalues_cotangent(g: Array, a: Array, lower: bool) -> Array:
    vectors = plane_of(eigh(a, lower=lower), 0)
    return product(scaled(last_row_of(g), vectors), adjoint(vectors))


eigvalsh = matrix(
    "eigvalsh", planes=0, square=True, converges=True, of_complex=OWN_RULES, choose=_which_triangle,
    functions=("eigenvalues_symmetric", "eigenvalues_symmetric_of_upper"),
    of_pairs=("eigenvalues_hermitian", "eigenvalues_hermitian_of_upper"),
    evaluate=lambda a, lower: _last_row(symmetric_eigenvalues(a, lower), a),
    vjp={"a": _eigenvalues_cotangent}, grad_fn="LinalgEigh",
    doc="eigenvalues alone, in the last row",
)  # fmt: skip

# --- orthonormal columns that make a basis: the square factor of a tall matrix ------------------------------


def _infer_whole_basis(a: Spec, by: str) -> Spec:
    require_matrix("whole_basis", a)
    return Spec((*a.shape[:-1], a.shape[-2]), a.dtype)


def _evaluate_whole_basis(a: np.ndarray, by: str) -> np.ndarray:
    if by == "qr":
        return np.linalg.qr(a, "complete")[0]
    return np.linalg.svd(a)[0] if by == "svd" else _adjoint(np.linalg.svd(_adjoint(a))[2])


def _adjoint(a: np.ndarray) -> np.ndarray:
    return np.conjugate(np.swapaxes(a, -1, -2))


whole_basis = declare(
    "whole_basis", "eager", "a", infer=_infer_whole_basis, evaluate=_evaluate_whole_basis,
    vjp={"a": lambda: _no_rule_of_basis()}, of_complex=OWN_RULES,
    doc="the square factor of a decomposition of a tall matrix: all left singular vectors, or all of Q",
)  # fmt: skip


def _no_rule_of_basis() -> Array:
    raise GradientError("The columns that complete a basis have no gradient.")


# --- singular values of tall matrices: U, a row of values, V ------------------------------------------------


def _evaluate_svd(a: np.ndarray, adjoint: bool) -> np.ndarray:
    left, values, right = singular_values_and_vectors(a, adjoint)
    return in_planes(a, left, values[..., None, :], right)


def singular_values_and_vectors(a: np.ndarray, adjoint: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U, the singular values, and V."""
    rows, size = a.shape[-2:]
    values = np.empty((*a.shape[:-2], size), real_dtype(a.dtype))
    right = np.empty((*a.shape[:-2], size, size), a.dtype)
    if adjoint:
        across = finite(a.conj().copy())
        left = np.empty_like(across)
        computed("singular_vectors_of_wide", across, rows, size, values, right, left)
        return left.conj(), values, right.swapaxes(-1, -2)
    across = by_column(a)
    left = np.empty_like(across)
    computed("singular_vectors", across, rows, size, values, left, right)
    return left.swapaxes(-1, -2), values, right.conj()


def singular_values(a: np.ndarray) -> np.ndarray:
    values = np.empty((*a.shape[:-2], a.shape[-1]), real_dtype(a.dtype))
    computed("singular_values", by_column(a), *a.shape[-2:], values)
    return values


def _svd_cotangent(g: Array, y: Array, a_spec: Spec) -> Array:
    rows, size = a_spec.shape[-2:]
    left, right = plane_of(y, 0), rows_of(plane_of(y, 2), 0, size)
    values = _real_values(rows_of(plane_of(y, 1), 0, 1))
    of_left, of_values = plane_of(g, 0), _real_values(rows_of(plane_of(g, 1), 0, 1))
    of_right = rows_of(plane_of(g, 2), 0, size)
    is_left_unused, is_right_unused = is_nothing(g, 0), is_nothing(g, 2)
    if is_left_unused and is_right_unused:
        return product(multiply(left, of_values), adjoint(right))
    down = transposed(values)
    gaps = with_diagonal(multiply(values - down, values + down), 1.0)  # more exact than of squares
    along_left = zeros_like(right) if is_left_unused else product(adjoint(left), of_left)
    left_part = _asymmetry(along_left)
    right_part = zeros_like(right) if is_right_unused else _asymmetry(product(adjoint(right), of_right))
    inside = quotient(multiply(left_part, values) + multiply(down, right_part), gaps)
    inside = inside + multiply(unit_like(inside), of_values)
    if is_complex(inside):
        turned = diagonal_of(free_phase(left_part + right_part, function="linalg.svd") - right_part)
        inside = inside + quotient(turned, 2.0 * values + zeros_like(left_part))
    if rows == size or is_left_unused:
        return product(product(left, inside), adjoint(right))
    inside = inside - quotient(along_left, values + zeros_like(along_left))  # what of_left has beside U
    of_left = quotient(of_left, values + zeros_like(of_left))
    return product(product(left, inside) + of_left, adjoint(right))


svd = matrix(
    "svd", planes=3, functions=("singular", "singular_of_adjoint"), evaluate=_evaluate_svd,
    of_pairs=("singular_of_complex", "singular_of_complex_adjoint"),
    choose=lambda a, adjoint: int(adjoint),
    vjp={"a": _svd_cotangent}, converges=True, grad_fn="LinalgSvd", of_complex=OWN_RULES,
    doc="singular values and vectors of a matrix with at least as many rows as columns, with the signs that "
    "LAPACK gives them, or if `adjoint` with those that it gives them for the adjoint",
)  # fmt: skip


def _singular_values_cotangent(g: Array, a: Array, a_spec: Spec) -> Array:
    parts = svd(a, adjoint=False)
    left, right = plane_of(parts, 0), rows_of(plane_of(parts, 2), 0, a_spec.shape[-1])
    return product(scaled(last_row_of(g), left), adjoint(right))


svdvals = matrix(
    "svdvals", planes=0, functions=("singular_numbers",), evaluate=lambda a: _last_row(singular_values(a), a),
    of_pairs=("singular_numbers_of_complex",), of_complex=OWN_RULES,
    vjp={"a": _singular_values_cotangent}, converges=True, grad_fn="LinalgSvd",
    doc="singular values alone, in the last row, of a matrix with at least as many rows as columns",
)  # fmt: skip

# --- Q and R of tall matrices -------------------------------------------------------------------------------


def _evaluate_qr(a: np.ndarray) -> np.ndarray:
    return in_planes(a, *orthonormal_and_triangular(a))


def orthonormal_and_triangular(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Q and R. A matrix by row is the transpose of one by column, so LAPACK finds the L and the Q of that."""
    size, q = a.shape[-1], a.copy()
    factors = np.empty((*a.shape[:-2], size), a.dtype)
    computed("reflections", q, *a.shape[-2:], factors)
    r = upper_part(q[..., :size, :])
    computed("orthonormal_rows", q, *a.shape[-2:], factors)
    return q, r


def product_of_reflections(a: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """The first columns of a product of reflections 1 - factor v v', whose v lie below the diagonal.

    By row they are those of an L and a Q, as above; of complex numbers conjugated.
    """
    q, rows = a.copy(), np.zeros((*a.shape[:-2], a.shape[-1]), a.dtype)
    rows[..., : factors.shape[-1]] = factors.conj()
    computed("orthonormal_rows", q, *a.shape[-2:], rows)
    q += 0  # LAPACK writes -0 where a factor is 0
    return q


def _qr_cotangent(g: Array, y: Array, a_spec: Spec) -> Array:
    size = a_spec.shape[-1]
    q, r = plane_of(y, 0), rows_of(plane_of(y, 1), 0, size)
    of_q, of_r = plane_of(g, 0), rows_of(plane_of(g, 1), 0, size)
    if is_nothing(g, 1):
        inside = -1.0 * product(adjoint(q), of_q)
    elif is_nothing(g, 0):
        inside = product(of_r, adjoint(r))
    else:
        inside = product(of_r, adjoint(r)) - product(adjoint(q), of_q)
    half = lower_half(adjoint(inside))
    symmetric = half + adjoint(half)
    total = of_q + product(q, symmetric)
    return triangular_solve(conjugated(r), total, lower=False, transposed=True, right=True)


qr = matrix(
    "qr", planes=2, functions=("orthogonal_triangular",), of_pairs=("unitary_triangular",),
    evaluate=_evaluate_qr,
    vjp={"a": _qr_cotangent}, grad_fn="LinalgQr", of_complex=OWN_RULES,
    doc="orthonormal columns and a triangle with that product, of a matrix with no more columns than rows",
)  # fmt: skip

# --- triangles of a matrix whose rows are exchanged ---------------------------------------------------------


def _infer_lu(a: Spec) -> Spec:
    require_matrix("lu", a)
    return a.with_shape((*a.shape[:-1], a.shape[-1] + 2))


def _evaluate_lu(a: np.ndarray) -> np.ndarray:
    result = np.zeros(_infer_lu(spec_of(a)).shape, a.dtype)
    for place in np.ndindex(a.shape[:-2]) if a.size else ():
        both, pivots = scipy_linalg().lu_factor(a[place], check_finite=False)
        places = list(range(a.shape[-2]))
        exchanged = [*pivots.tolist(), *places[len(pivots) :]]
        for one, other in reversed(list(enumerate(pivots.tolist()))):
            places[one], places[other] = places[other], places[one]
        result[(*place, slice(None), slice(0, -2))] = both
        result[(*place, slice(None), -2)], result[(*place, slice(None), -1)] = places, exchanged
    return result


def _rows_at(x: Array, places: Array) -> Array:
    """The rows of each matrix at places, one for each."""
    ones = zeros_like(places) + 1
    batch = [cumsum(ones, dim=dim) - 1 for dim in range(len(places.shape) - 1)]
    return gather(x, *batch, places)


def _require_inverse(upper: Array) -> None:
    """LinAlgError where a triangle is known, and has a 0 on its diagonal: the gradient would be nan."""
    known: Any = getattr(upper, "payload", upper)
    if isinstance(known, np.ndarray) and not np.diagonal(known, 0, -2, -1).all():
        raise np.linalg.LinAlgError("singular matrix: U has a 0 on its diagonal")


def _lu_cotangent(g: Array, y: Array, a_spec: Spec) -> Array:
    rows, columns = a_spec.shape[-2:]
    rank, size = a_spec.ndim, min(rows, columns)
    both, g = columns_of(y, 0, columns), columns_of(g, 0, columns)
    top, of_top = (columns_of(rows_of(one, 0, size), 0, size) for one in (both, g))
    lower, upper = strictly_lower(top) + unit_like(top), _upper(top)
    _require_inverse(upper)
    beyond = None
    if rows > size:
        of_below = rows_of(g, size, rows)
        beyond = triangular_solve(upper, of_below, lower=False, transposed=True, right=True)
        of_top = of_top - _upper(product(transposed(rows_of(both, size, rows)), beyond))
    elif columns > size:
        of_right = columns_of(g, size, columns)
        beyond = triangular_solve(lower, of_right, lower=True, transposed=True, right=False)
        of_top = of_top - strictly_lower(product(beyond, transposed(columns_of(both, size, columns))))
    inside = strictly_lower(product(transposed(lower), strictly_lower(of_top)))
    inside = inside + _upper(product(_upper(of_top), transposed(upper)))
    left = triangular_solve(lower, inside, lower=True, transposed=True, right=False)
    found = triangular_solve(upper, left, lower=False, transposed=True, right=True)
    if beyond is not None:
        found = concatenate(found, beyond, dim=rank - 2 if rows > size else rank - 1)
    places = columns_of(y, columns, columns + 1)
    places = convert(real(places) if is_complex(places) else places, dtype=INT64)
    return _rows_at(found, reshape(places, shape=tuple(places.shape[:-1])))


lu = declare(
    "lu", "decomposition", "a", infer=_infer_lu, evaluate=_evaluate_lu,
    call=WholeCall(("triangles",), of_pairs=("triangles_of_pairs",)),
    vjp={"a": _lu_cotangent}, grad_fn="LinalgLuFactorEx", of_complex=HOLOMORPHIC,
    doc="the triangles whose product a matrix is, in one, the lower one without its diagonal of ones; and in "
    "two more columns which row of the product each row of the matrix is, and with which row each was "
    "exchanged",
)  # fmt: skip
