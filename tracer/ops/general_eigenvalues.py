"""Eigenvalues and eigenvectors of general matrices, which are complex: LAPACK's geev, eager and in generated
code. Planes and rules are as in `decompositions.py`; real matrices have operators of the parts.
"""

from __future__ import annotations

import numpy as np

from ..operator import OWN_RULES, Array, WholeCall, declare
from ..spec import Spec, complex_dtype
from .decompositions import (
    NOT_CONVERGING,
    by_column,
    computed,
    diagonal_of,
    differences,
    free_phase,
    in_planes,
    is_nothing,
    last_row_of,
    matrix,
    plane_of,
    quotient,
    require_matrix,
    rows_of,
    with_diagonal,
)
from .elementwise import complex_of, conjugate, convert, multiply, real, returned
from .linalg import adjoint, product, solve, transposed
from .movement import between


def _infer_eig(a: Spec) -> Spec:
    require_matrix("eig", a, True)
    return Spec((*a.shape[:-2], 3, *a.shape[-2:]), complex_dtype(a.dtype))


def _infer_eigvals(a: Spec) -> Spec:
    require_matrix("eigvals", a, True)
    return Spec((*a.shape[:-2], a.shape[-1] + 1, a.shape[-1]), complex_dtype(a.dtype))


def general_values_and_vectors(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Complex eigenvalues, and eigenvectors in columns."""
    require_matrix("eig", a, True)
    across = by_column(a)
    values, rows = np.empty(a.shape[:-1], complex_dtype(a.dtype)), np.empty_like(across)
    if a.dtype.kind == "c":
        computed("general_eigenvectors", across, 0, a.shape[-1], values, rows)
        return values, rows.swapaxes(-1, -2)
    re, im = np.empty((2, *a.shape[:-1]), a.dtype)
    computed("general_eigenvectors", across, 0, a.shape[-1], re, im, rows)
    values.real, values.imag = re, im
    vectors = rows.astype(values.dtype)
    if im.any():
        *batch, place = np.nonzero(im > 0)  # of a conjugate pair: two rows are the parts of a vector
        one, other = (*batch, place), (*batch, place + 1)
        vectors.imag[one] = rows[other]
        vectors[other] = vectors[one].conj()
    return values, vectors.swapaxes(-1, -2)


def general_values(a: np.ndarray) -> np.ndarray:
    """Complex eigenvalues alone."""
    require_matrix("eigvals", a, True)
    across, values = by_column(a), np.empty(a.shape[:-1], complex_dtype(a.dtype))
    if a.dtype.kind == "c":
        computed("general_eigenvalues", across, 0, a.shape[-1], values)
    else:
        re, im = np.empty((2, *a.shape[:-1]), a.dtype)
        computed("general_eigenvalues", across, 0, a.shape[-1], re, im)
        values.real, values.imag = re, im
    return values


def _evaluate_eig(a: np.ndarray) -> np.ndarray:
    values, vectors = general_values_and_vectors(a)
    return in_planes(vectors, vectors, values[..., None, :], np.zeros((0, 0)))


def _evaluate_eigvals(a: np.ndarray) -> np.ndarray:
    values = general_values(a)
    found = np.zeros((*a.shape[:-2], a.shape[-1] + 1, a.shape[-1]), values.dtype)
    found[..., -1, :] = values
    return found


def _eig_cotangent(g: Array, y: Array, a_spec: Spec) -> Array:
    """Boeddeker et al., "On the computation of complex-valued gradients" (2017), for vectors of length 1."""
    vectors, values = plane_of(y, 0), rows_of(plane_of(y, 1), 0, 1)
    of_vectors, of_values = plane_of(g, 0), rows_of(plane_of(g, 1), 0, 1)
    across = adjoint(vectors)
    if is_nothing(g, 0):
        return _general_values_returned(vectors, of_values, a_spec)
    inside = free_phase(product(across, of_vectors), function="linalg.eig")
    lengths = convert(real(diagonal_of(inside)), dtype=complex_dtype(a_spec.dtype))
    inside = quotient(inside - product(product(across, vectors), lengths), conjugate(differences(values)))
    inside = with_diagonal(inside, of_values)
    return returned(solve(across, product(inside, across)), a_spec.dtype)


def _general_values_returned(vectors: Array, of_values: Array, a_spec: Spec) -> Array:
    across = adjoint(vectors)
    return returned(solve(across, multiply(transposed(of_values), across)), a_spec.dtype)


def _general_values_cotangent(g: Array, a: Array, a_spec: Spec) -> Array:
    return _general_values_returned(plane_of(eig(a), 0), last_row_of(g), a_spec)


GENERAL_REFUSAL = ("linalg.eig", NOT_CONVERGING.removeprefix("is not "))
eig = declare(
    "eig", "decomposition", "a", infer=_infer_eig, evaluate=_evaluate_eig, vjp={"a": _eig_cotangent},
    call=WholeCall((), of_pairs=("eigen_general_of_complex",), refusal=GENERAL_REFUSAL),
    grad_fn="LinalgEig", of_complex=OWN_RULES,
    doc="eigenvectors and eigenvalues of a square matrix, which are complex, and room to compute them in",
)  # fmt: skip
eigvals = declare(
    "eigvals", "decomposition", "a", infer=_infer_eigvals, evaluate=_evaluate_eigvals,
    vjp={"a": _general_values_cotangent},
    call=WholeCall((), of_pairs=("eigenvalues_general_of_complex",), refusal=GENERAL_REFUSAL),
    grad_fn="LinalgEig", of_complex=OWN_RULES,
    doc="complex eigenvalues of a square matrix alone, in the last row",
)  # fmt: skip


def _of_parts(x: Array, dim: int, first: int, second: int, size: int) -> Array:
    """Complex numbers whose parts lie along a dimension."""
    return complex_of(between(x, dim, first, first + size), between(x, dim, second, second + size))


def _eig_of_real_cotangent(g: Array, y: Array, a_spec: Spec) -> Array:
    g_whole, y_whole = (_of_parts(one, -3, 0, 3, 3) for one in (g, y))
    if is_nothing(g, 0) and is_nothing(g, 3):
        of_values = rows_of(plane_of(g_whole, 1), 0, 1)
        return _general_values_returned(plane_of(y_whole, 0), of_values, a_spec)
    return _eig_cotangent(g_whole, y_whole, a_spec)


def _eigvals_of_real_cotangent(g: Array, a: Array, a_spec: Spec) -> Array:
    size = a_spec.shape[-1]
    return _general_values_cotangent(_of_parts(g, -2, size, size + 1, 1), a, a_spec)


def _parts_of(whole: np.ndarray, dim: int) -> np.ndarray:
    return np.concatenate([whole.real, whole.imag], dim)


eig_of_real = matrix(
    "eig_of_real", planes=6, square=True, functions=("eigen_general",), converges=True,
    evaluate=lambda a: _parts_of(_evaluate_eig(a), -3), vjp={"a": _eig_of_real_cotangent},
    doc="what `eig` makes of a real matrix: the real parts of all, then the imaginary ones",
)  # fmt: skip
eigvals_of_real = declare(
    "eigvals_of_real", "decomposition", "a",
    infer=lambda a: a.with_shape((*a.shape[:-2], a.shape[-1] + 2, a.shape[-1])),
    evaluate=lambda a: _parts_of(_evaluate_eigvals(a), -2)[..., [*range(a.shape[-1]), a.shape[-1], -1], :],
    call=WholeCall(("eigenvalues_general",), refusal=GENERAL_REFUSAL), vjp={"a": _eigvals_of_real_cotangent},
    doc="the parts of the complex eigenvalues of a real matrix, in the last two rows",
)  # fmt: skip
