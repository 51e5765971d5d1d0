"""The pseudo-inverse. Its rule: Golub and Pereyra, "The differentiation of pseudo-inverses" (1973)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..operator import OWN_RULES, Array, declare
from ..spec import Spec
from .decompositions import (
    columns_of,
    finite,
    is_number,
    plane_of,
    require_matrix,
    rows_of,
    svd,
)
from .elementwise import (
    absolute,
    greater,
    is_complex,
    maximum,
    real,
    scaled,
    where,
)
from .linalg import adjoint, in_lower_half, product


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


def _infer_product(a: Spec, inverse: Spec, b: Spec) -> Spec:
    require_matrix("pinv_product", a)
    *batch, rows, columns = a.shape
    if inverse.shape != (*batch, columns, rows) or b.shape[:-1] != (*batch, rows):
        raise ShapeError(f"pinv_product: {a.shape}, {inverse.shape} and {b.shape} do not fit together.")
    return b.with_shape((*batch, columns, b.shape[-1]))


def _product_cotangent(g: Array, a: Array, inverse: Array, b: Array, y: Array) -> Array:
    """That of `pinv`, in products with sides alone, which may be few."""
    turned, across = (adjoint(a), adjoint(inverse)), pinv_product(adjoint(a), adjoint(inverse), g)
    missed, beside = b - product(a, y), g - product(turned[0], across)
    found = product(missed, adjoint(pinv_product(a, inverse, across))) - product(across, adjoint(y))
    return found + product(pinv_product(*turned, y), adjoint(beside))


pinv_product = declare(
    "pinv_product", "composite", "a inverse b", infer=_infer_product, needs_own_rule=True,
    evaluate=lambda a, inverse, b: inverse @ b, body=lambda a, inverse, b: product(inverse, b),
    vjp={
        "a": _product_cotangent,
        "b": lambda g, a, inverse: pinv_product(adjoint(a), adjoint(inverse), g),
    },
    of_complex=OWN_RULES,
    doc="the least of the x for which a x is nearest to b, given the pseudo-inverse of a as well",
)  # fmt: skip
