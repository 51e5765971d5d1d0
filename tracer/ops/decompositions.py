"""Decompositions of matrices, alone or in batches, evaluated with LAPACK alone: a graph refuses them.

An operator has one result, so what belongs to one decomposition lies in one array, one part under the other;
`parts_of` takes it apart. The rules: Giles, "An extended collection of matrix derivative results" (2008), for
eigenvalues; Townsend, "Differentiating the singular value decomposition" (2016); Walter and Lehmann,
"Algorithmic differentiation of linear algebra functions with application in optimum experimental design"
(2010), for QR; Golub and Pereyra, "The differentiation of pseudo-inverses" (1973); Al-Mohy and Higham,
"Computing the Frechet derivative of the matrix exponential" (2009).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..operator import Array, declare
from ..spec import INT64, Spec
from .elementwise import equal, multiply, where, zeros_like
from .lazy import scipy_linalg
from .linalg import lower_half, product, solve, transposed, unit_like
from .movement import concatenate, slice_


def _batched(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """The function of one matrix for each of a batch; results of one shape."""

    def evaluate(a: np.ndarray, **attributes: Any) -> np.ndarray:
        flat = a.reshape(-1, *a.shape[-2:])
        if not len(flat):
            found = np.asarray(function(np.eye(*a.shape[-2:], dtype=a.dtype), **attributes))
            return np.zeros((*a.shape[:-2], *found.shape), found.dtype)
        results = np.stack([function(one, **attributes) for one in flat])
        return results.reshape(*a.shape[:-2], *results.shape[1:])

    return evaluate


def rows_of(x: Array, start: int, stop: int) -> Array:
    """Some rows of each matrix."""
    shape = tuple(x.shape)
    zeros = (0,) * (len(shape) - 2)
    return slice_(x, starts=(*zeros, start, 0), stops=(*shape[:-2], stop, shape[-1]), steps=(1,) * len(shape))


def columns_of(x: Array, start: int, stop: int) -> Array:
    return transposed(rows_of(transposed(x), start, stop))


def parts_of(packed: Array, *counts: int) -> list[Array]:
    """The parts of a decomposition, by their numbers of rows."""
    found, start = [], 0
    for count in counts:
        found.append(rows_of(packed, start, start + count))
        start += count
    return found


def _quotient(x: Array, gaps: Array) -> Array:
    """x / gaps, 0 where x is: equal eigenvalues matter to their vectors alone."""
    nothing = equal(x, 0.0)
    return where(nothing, 0.0, x / where(nothing, 1.0, gaps))


def _differences(row: Array) -> Array:
    """At (i, j) row[j] - row[i], and 1 on the diagonal."""
    difference = row - transposed(row)
    return where(equal(unit_like(difference), 1.0), 1.0, difference)


def _upper(x: Array) -> Array:
    """The upper triangle, with its diagonal."""
    lower = lower_half(transposed(x))
    return transposed(lower + _diagonal_of(lower))


def _diagonal_of(x: Array) -> Array:
    return multiply(x, unit_like(x))


def _strictly_lower(x: Array) -> Array:
    lower = lower_half(x)
    return lower - _diagonal_of(lower)


def _require_matrix(name: str, a: Spec, square: bool = False) -> None:
    if a.ndim < 2 or (square and a.shape[-1] != a.shape[-2]):
        raise ShapeError(f"{name}: {'square ' if square else ''}matrices expected, found shape {a.shape}.")


# --- symmetric matrices: eigenvalues in the first row, eigenvectors in columns below ------------------------


def _evaluate_eigh(a: np.ndarray, upper: bool) -> np.ndarray:
    values, vectors = np.linalg.eigh(a, UPLO="U" if upper else "L")
    return np.concatenate([values[..., None, :], vectors], axis=-2)


def _eigh_cotangent(g: Array, y: Array, a_spec: Spec) -> Array:
    size = a_spec.shape[-1]
    values, vectors = parts_of(y, 1, size)
    of_values, of_vectors = parts_of(g, 1, size)
    inside = _quotient(product(transposed(vectors), of_vectors), _differences(values))
    unit = unit_like(inside)
    inside = where(equal(unit, 1.0), multiply(unit, of_values), inside)
    return product(product(vectors, inside), transposed(vectors))


def _with_rows(count: Callable[[int, int], int], name: str, square: bool = False) -> Callable[..., Spec]:
    def infer(a: Spec, **attributes: Any) -> Spec:
        _require_matrix(name, a, square)
        rows, columns = a.shape[-2:]
        return a.with_shape((*a.shape[:-2], count(rows, columns), columns))

    return infer


eigh = declare(
    "eigh", "eager", "a", infer=_with_rows(lambda m, n: n + 1, "eigh", True), evaluate=_evaluate_eigh,
    vjp={"a": _eigh_cotangent}, grad_fn="LinalgEigh",
    doc="eigenvalues and eigenvectors of a symmetric matrix, of which one triangle is read",
)  # fmt: skip

# --- singular values of tall matrices: U, then a row of values, then V --------------------------------------


def _evaluate_svd(a: np.ndarray) -> np.ndarray:
    left, values, right = np.linalg.svd(a, full_matrices=False)
    return np.concatenate([left, values[..., None, :], np.swapaxes(right, -1, -2)], axis=-2)


def _svd_cotangent(g: Array, y: Array, a_spec: Spec) -> Array:
    rows, size = a_spec.shape[-2:]
    left, values, right = parts_of(y, rows, 1, size)
    of_left, of_values, of_right = parts_of(g, rows, 1, size)
    # of the squares, as a product: of close values it is more exact than a difference of squares
    gaps = multiply(
        _differences(values), where(equal(unit_like(right), 1.0), 1.0, values + transposed(values))
    )
    left_part, right_part = product(transposed(left), of_left), product(transposed(right), of_right)
    inside = multiply(_quotient(left_part - transposed(left_part), gaps), values)
    inside = inside + multiply(transposed(values), _quotient(right_part - transposed(right_part), gaps))
    inside = inside + multiply(unit_like(inside), of_values)
    result = product(product(left, inside), transposed(right))
    if rows > size:
        outside = _quotient(of_left, values + zeros_like(of_left))
        outside = outside - product(left, product(transposed(left), outside))
        result = result + product(outside, transposed(right))
    return result


svd = declare(
    "svd", "eager", "a", infer=_with_rows(lambda m, n: m + 1 + n, "svd"), evaluate=_evaluate_svd,
    vjp={"a": _svd_cotangent}, grad_fn="LinalgSvd",
    doc="singular values and vectors of a matrix with at least as many rows as columns",
)  # fmt: skip

# --- Q and R of tall matrices -------------------------------------------------------------------------------


def _evaluate_qr(a: np.ndarray) -> np.ndarray:
    return np.concatenate(np.linalg.qr(a), axis=-2)


def _qr_cotangent(g: Array, y: Array, a_spec: Spec) -> Array:
    rows, size = a_spec.shape[-2:]
    q, r = parts_of(y, rows, size)
    of_q, of_r = parts_of(g, rows, size)
    inside = _upper(product(of_r, transposed(r)) - product(transposed(q), of_q))
    symmetric = inside + transposed(inside) - _diagonal_of(inside)
    total = of_q + product(q, symmetric)
    return transposed(solve(r, transposed(total)))


qr = declare(
    "qr", "eager", "a", infer=_with_rows(lambda m, n: m + n, "qr"), evaluate=_evaluate_qr,
    vjp={"a": _qr_cotangent}, grad_fn="LinalgQr",
    doc="orthonormal columns and a triangle with that product, of a matrix with no more columns than rows",
)  # fmt: skip

# --- triangles of a square matrix, whose rows are exchanged before ------------------------------------------


def _permutation(a: np.ndarray) -> np.ndarray:
    """For each row of the product of the triangles the row of a that it is, then LAPACK's pivots."""
    count = min(a.shape)
    _, pivots = scipy_linalg().lu_factor(a) if count else (a, np.zeros(0, np.int64))
    order = np.arange(a.shape[0])
    for place, other in enumerate(pivots[:count]):
        order[[place, other]] = order[[other, place]]
    return np.concatenate([order, pivots[:count]]).astype(np.int64)


row_exchanges = declare(
    "row_exchanges", "eager", "a", evaluate=_batched(_permutation),
    infer=lambda a: Spec((*a.shape[:-2], a.shape[-2] + min(a.shape[-2:])), INT64),
    doc="the order of rows, and the pivots, with which elimination divides by the largest",
)  # fmt: skip


def _evaluate_lu(a: np.ndarray) -> np.ndarray:
    """Both triangles in one matrix, by elimination without exchanges."""
    left = np.array(a)
    for place in range(a.shape[-1] - 1):
        left[..., place + 1 :, place] /= left[..., place, place, None]
        below, beside = left[..., place + 1 :, place, None], left[..., place, None, place + 1 :]
        left[..., place + 1 :, place + 1 :] -= below * beside
    return left


def _lu_cotangent(g: Array, y: Array) -> Array:
    lower, upper = _strictly_lower(y) + unit_like(y), _upper(y)
    of_lower, of_upper = _strictly_lower(g), _upper(g)
    inside = _strictly_lower(product(transposed(lower), of_lower)) + _upper(
        product(of_upper, transposed(upper))
    )
    return transposed(solve(upper, transposed(solve(transposed(lower), inside))))


lu = declare(
    "lu", "eager", "a", infer=_with_rows(lambda m, n: n, "lu", True), evaluate=_evaluate_lu,
    vjp={"a": _lu_cotangent}, grad_fn="LinalgLu",
    doc="the triangles whose product a square matrix is, the lower one with a diagonal of ones",
)  # fmt: skip

# --- functions of matrices ----------------------------------------------------------------------------------


def _exp_cotangent(g: Array, a: Array, a_spec: Spec) -> Array:
    """The upper right part of exp([[a', g], [0, a']])."""
    size, across = a_spec.shape[-1], transposed(a)
    above = concatenate(across, g, dim=a_spec.ndim - 1)
    below = concatenate(zeros_like(across), across, dim=a_spec.ndim - 1)
    whole = matrix_exp(concatenate(above, below, dim=a_spec.ndim - 2))
    return columns_of(rows_of(whole, 0, size), size, 2 * size)


matrix_exp = declare(
    "matrix_exp", "eager", "a", infer=_with_rows(lambda m, n: n, "matrix_exp", True),
    evaluate=lambda a: (
        np.asarray(scipy_linalg().expm(a.astype(np.float64))).astype(a.dtype) if a.size else np.array(a)
    ),
    vjp={"a": _exp_cotangent}, grad_fn="LinalgMatrixExp", doc="the sum of the powers a ** k / k!",
)  # fmt: skip


def _infer_pinv(a: Spec, tolerance: float) -> Spec:
    _require_matrix("pinv", a)
    return a.with_shape((*a.shape[:-2], a.shape[-1], a.shape[-2]))


def _pinv_cotangent(g: Array, a: Array, y: Array) -> Array:
    across, inverse = transposed(g), transposed(y)
    inner = product(y, inverse)
    outer = product(inverse, y)
    left = product(product(inverse, g), inverse)
    one = product(across, inner) - product(a, product(y, product(across, inner)))
    other = product(outer, across) - product(product(product(outer, across), y), a)
    return one + other - left


pinv = declare(
    "pinv", "eager", "a", infer=_infer_pinv,
    evaluate=lambda a, tolerance: (
        np.linalg.pinv(a, rcond=tolerance) if a.size else np.swapaxes(a, -1, -2).copy()
    ),
    vjp={"a": _pinv_cotangent}, grad_fn="LinalgPinv",
    doc="the pseudo-inverse of a matrix; the derivative is that of matrices of the same rank",
)  # fmt: skip
