"""Functions of matrices: the exponential with its derivative, and the pseudo-inverse.

The rules: Al-Mohy and Higham, "Computing the Frechet derivative of the matrix exponential" (2009); Golub and
Pereyra, "The differentiation of pseudo-inverses" (1973).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..operator import HOLOMORPHIC, OWN_RULES, Array, WholeCall, declare
from ..spec import Spec
from .decompositions import (
    columns_of,
    finite,
    in_planes,
    is_number,
    matrix,
    plane_of,
    require_matrix,
    rows_of,
    svd,
)
from .elementwise import (
    absolute,
    exp,
    greater,
    is_complex,
    maximum,
    multiply,
    real,
    scaled,
    where,
    zeros_like,
)
from .lazy import scipy_linalg
from .linalg import adjoint, in_lower_half, product, transposed
from .matrices import of_each_matrix
from .movement import concatenate


def of_blocks(function: Callable[[Array], Array], a: Array, direction: Array) -> Array:
    """The derivative of a function of matrices: the upper right part of that of [[a, direction], [0, a]]."""
    rank, size = len(a.shape), a.shape[-1]
    above = concatenate(a, direction, dim=rank - 1)
    below = concatenate(zeros_like(a), a, dim=rank - 1)
    whole = function(concatenate(above, below, dim=rank - 2))
    return columns_of(rows_of(whole, 0, size), size, 2 * size)


def _exp_cotangent(g: Array, a: Array) -> Array:
    return expm_frechet(transposed(a), g)


exponentials = matrix(
    "exponentials", planes=6, square=True, functions=("exponential",),
    evaluate=lambda a: in_planes(a, _expm(a), *[np.zeros((0, 0))] * 5),
    vjp={"a": lambda g, a: _exp_cotangent(plane_of(g, 0), a)}, of_complex=HOLOMORPHIC,
    doc="the exponential of a matrix, and room to compute it in",
)  # fmt: skip


def _infer_square(a: Spec) -> Spec:
    require_matrix("matrix_exp", a, True)
    return a


def _expm(a: np.ndarray) -> np.ndarray:
    double = np.result_type(a.dtype, np.float64)
    return np.asarray(scipy_linalg().expm(a.astype(double))).astype(a.dtype) if a.size else np.array(a)


matrix_exp = declare(
    "matrix_exp", "composite", "a", infer=_infer_square, evaluate=_expm,
    body=lambda a: exp(a) if is_number(a) else plane_of(exponentials(a), 0),
    vjp={"a": _exp_cotangent}, grad_fn="LinalgMatrixExp", of_complex=HOLOMORPHIC,
    doc="the sum of the powers a ** k / k!",
)  # fmt: skip


def _beside(x: Array) -> Array:
    """[[x, 0], [0, x]]"""
    rank, nothing = len(x.shape), zeros_like(x)
    rows = concatenate(x, nothing, dim=rank - 1), concatenate(nothing, x, dim=rank - 1)
    return concatenate(*rows, dim=rank - 2)


def _infer_direction(a: Spec, direction: Spec) -> Spec:
    require_matrix("expm_frechet", a, True)
    if a.shape != direction.shape:
        raise ShapeError(f"expm_frechet: directions of shape {a.shape} expected, found {direction.shape}.")
    return a


def _frechet(a: np.ndarray, direction: np.ndarray) -> np.ndarray:
    double = np.result_type(a.dtype, np.float64)
    given = a.astype(double, copy=False), direction.astype(double, copy=False)
    return of_each_matrix(_frechet_of_one, *given).astype(a.dtype, copy=False)


def _frechet_of_one(a: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """SciPy's, which raises for nan and inf: there the derivative is nan."""
    if not (np.isfinite(a).all() and np.isfinite(direction).all()):
        return np.full_like(a, np.nan)
    return np.asarray(scipy_linalg().expm_frechet(a, direction, compute_expm=False))


exponential_derivatives = declare(
    "exponential_derivatives", "decomposition", "a direction", of_complex=HOLOMORPHIC,
    infer=lambda a, direction: a.with_shape((*a.shape[:-2], 12, *a.shape[-2:])),
    evaluate=lambda a, direction: in_planes(a, _expm(a), _frechet(a, direction), *[np.zeros((0, 0))] * 10),
    call=WholeCall(("exponential_derivative",)),
    doc="the exponential of a matrix, its derivative in a direction, and room to compute them in",
)  # fmt: skip
expm_frechet = declare(
    "expm_frechet", "composite", "a direction", infer=_infer_direction, needs_own_rule=True,
    evaluate=lambda a, direction: _frechet(a, direction) if a.size else np.array(a),
    body=lambda a, direction: multiply(exp(a), direction)
    if is_number(a)
    else plane_of(exponential_derivatives(a, direction), 1),
    vjp={
        "a": lambda g, a, direction: of_blocks(
            lambda whole: expm_frechet(whole, _beside(transposed(direction))), transposed(a), g
        ),
        "direction": lambda g, a: expm_frechet(transposed(a), g),
    },
    of_complex=HOLOMORPHIC,
    doc="the derivative of a matrix's exponential in a direction",
)  # fmt: skip


def _evaluate_pinv(a: np.ndarray, tolerance: Any, hermitian: bool) -> np.ndarray:
    if not a.size:
        return np.swapaxes(a, -1, -2).copy()
    return np.linalg.pinv(finite(_symmetric(a) if hermitian else a), rcond=tolerance)


def _evaluate_pinv_above(a: np.ndarray, bounds: np.ndarray, hermitian: bool) -> np.ndarray:
    if not a.size:
        return np.swapaxes(a, -1, -2).copy()
    left, values, right = np.linalg.svd(finite(_symmetric(a) if hermitian else a), full_matrices=False)
    kept = values > np.maximum(bounds[..., 0, :1], bounds[..., 0, 1:] * values[..., :1])
    inverses = np.divide(1, values, where=kept, out=np.zeros_like(values))
    across = np.conjugate(np.swapaxes(right, -1, -2)) * inverses[..., None, :]
    return across @ np.conjugate(np.swapaxes(left, -1, -2))


def _symmetric(a: np.ndarray) -> np.ndarray:
    lower = np.tril(a)
    if a.dtype.kind == "c":
        lower = lower - 1j * np.tril(np.triu(lower.imag))  # a Hermitian matrix has a real diagonal
    return lower + np.conjugate(np.swapaxes(np.tril(a, -1), -1, -2))


def pseudo_inverse(a: Array, tolerance: Any, hermitian: bool) -> Array:
    """V diag(1 / s) U', by the singular values that are large enough."""
    return _by_values_above(a, hermitian, lambda values: float(np.max(tolerance)) * columns_of(values, 0, 1))


def pseudo_inverse_above(a: Array, bounds: Array, hermitian: bool) -> Array:
    """The same, with two bounds for each matrix: an absolute one, and one relative to the largest value."""
    least, share = columns_of(bounds, 0, 1), columns_of(bounds, 1, 2)
    return _by_values_above(a, hermitian, lambda values: maximum(least, share * columns_of(values, 0, 1)))


def _by_values_above(a: Array, hermitian: bool, bound: Callable[[Array], Array]) -> Array:
    if hermitian:
        lower = in_lower_half(a)
        a = lower + adjoint(lower)
    if is_number(a) and not is_complex(a):
        kept = greater(absolute(a), bound(absolute(a)))
        return where(kept, 1.0 / where(kept, a, 1.0), 0.0)
    rows, columns = a.shape[-2:]
    wide = rows < columns
    parts = svd(adjoint(a), adjoint=True) if wide else svd(a, adjoint=False)
    size = min(rows, columns)
    left, values = plane_of(parts, 0), rows_of(plane_of(parts, 1), 0, 1)
    right = rows_of(plane_of(parts, 2), 0, size)
    values = real(values) if is_complex(values) else values
    kept = greater(values, bound(values))
    inverses = where(kept, 1.0 / where(kept, values, 1.0), 0.0)
    found = product(scaled(inverses, right), adjoint(left))
    return adjoint(found) if wide else found


def _infer_pinv(a: Spec, tolerance: Any, hermitian: bool) -> Spec:
    require_matrix("pinv", a)
    return a.with_shape((*a.shape[:-2], a.shape[-1], a.shape[-2]))


def _pinv_cotangent(g: Array, a: Array, y: Array) -> Array:
    """(g' - a w) y y' + y' (w - w y a - w') with w = y g', which has the smaller extent twice."""
    if a.shape[-2] < a.shape[-1]:
        return adjoint(_pinv_cotangent(adjoint(g), adjoint(a), adjoint(y)))
    across, inverse = adjoint(g), adjoint(y)
    both = product(y, across)
    one = product(across - product(a, both), product(y, inverse))
    return one + product(inverse, both - product(both, product(y, a)) - adjoint(both))


pinv = declare(
    "pinv", "composite", "a", infer=_infer_pinv, evaluate=_evaluate_pinv, body=pseudo_inverse,
    vjp={"a": _pinv_cotangent}, grad_fn="LinalgPinv", needs_own_rule=True, of_complex=OWN_RULES,
    doc="the pseudo-inverse of a matrix; the derivative is that of matrices of the same rank",
)  # fmt: skip


def _infer_pinv_above(a: Spec, bounds: Spec, hermitian: bool) -> Spec:
    if bounds.shape != (*a.shape[:-2], 1, 2):
        raise ShapeError(f"pinv_above: two bounds for each matrix expected, found shape {bounds.shape}.")
    return _infer_pinv(a, 0.0, hermitian)


pinv_above = declare(
    "pinv_above", "composite", "a bounds", infer=_infer_pinv_above, evaluate=_evaluate_pinv_above,
    body=pseudo_inverse_above, vjp={"a": _pinv_cotangent}, grad_fn="LinalgPinv", needs_own_rule=True,
    of_complex=OWN_RULES,
    doc="`pinv` of singular values above two bounds for each matrix, an absolute and a relative one",
)  # fmt: skip
