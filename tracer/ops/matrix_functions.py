"""Pseudo-inverses. The rule: Golub and Pereyra, "The differentiation of pseudo-inverses" (1973)."""

from __future__ import annotations

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
    logical_and,
    logical_not,
    maximum,
    real,
    scaled,
    where,
)
from .linalg import adjoint, in_lower_half, product, transposed


def _evaluate_pinv(a: np.ndarray, tolerance: Any, hermitian: bool) -> np.ndarray:
    if not a.size:
        return np.swapaxes(a, -1, -2).copy()
    return np.linalg.pinv(finite(_symmetric(a) if hermitian else a), rcond=tolerance)


def _symmetric(a: np.ndarray) -> np.ndarray:
    lower = np.tril(a)
    if a.dtype.kind == "c":
        lower = lower - 1j * np.tril(np.triu(lower.imag))  # a Hermitian matrix has a real diagonal
    return lower + np.conjugate(np.swapaxes(np.tril(a, -1), -1, -2))


def pseudo_inverse(a: Array, tolerance: Any, hermitian: bool) -> Array:
    """V diag(1 / s) U', by the singular values that are large enough."""
    if hermitian:
        lower = in_lower_half(a)
        a = lower + adjoint(lower)
    if is_number(a) and not is_complex(a):
        kept = greater(absolute(a), float(np.max(tolerance)) * absolute(a))
        return where(kept, 1.0 / where(kept, a, 1.0), 0.0)
    rows, columns = a.shape[-2:]
    wide = rows < columns
    parts = svd(adjoint(a), adjoint=True) if wide else svd(a, adjoint=False)
    values = _values_of(parts)
    found = _inverse_of(parts, greater(values, float(np.max(tolerance)) * columns_of(values, 0, 1)))
    return adjoint(found) if wide else found


def _values_of(parts: Array) -> Array:
    values = rows_of(plane_of(parts, 1), 0, 1)
    return real(values) if is_complex(values) else values


def _right_of(parts: Array) -> Array:
    return rows_of(plane_of(parts, 2), 0, parts.shape[-1])


def _inverse_of(parts: Array, kept: Array) -> Array:
    values = _values_of(parts)
    inverses = where(kept, 1.0 / where(kept, values, 1.0), 0.0)
    return product(scaled(inverses, _right_of(parts)), adjoint(plane_of(parts, 0)))


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


# --- of the part of a matrix with the larger singular values ------------------------------------------------
#
# P is the pseudo-inverse of the part of A with the values s that are kept, R is the part with those that are
# not, t. As A changes, vectors of the one turn into those of the other:
#
#     dP = X + Y' - P dA P,    X - P P' X R R' = P P' (P dA R' + dA' (1 - A P)),    Y alike with A', P', R'.
#
# What solves X - P P' X R R' = P P' G is P P' G and, along vectors of both, G times t^2 / (s^2 (s^2 - t^2)).


def _is_kept(parts: Array, bounds: Array) -> Array:
    values = _values_of(parts)
    share = columns_of(bounds, 1, 2) * columns_of(values, 0, 1)
    return greater(values, maximum(columns_of(bounds, 0, 1), share))


def _infer_of_parts(a: Spec, parts: Spec, bounds: Spec) -> Spec:
    *batch, rows, columns = a.shape
    if parts.shape != (*batch, 3, rows, columns) or bounds.shape != (*batch, 1, 2):
        raise ShapeError(f"pinv_of_parts: {a.shape}, {parts.shape} and {bounds.shape} do not fit together.")
    return _infer_pinv(a, 0.0, False)


def _inverse_of_parts(a: Array, parts: Array, bounds: Array) -> Array:
    return _inverse_of(parts, _is_kept(parts, bounds))


def _remainder_of_parts(a: Array, y: Array, parts: Array, bounds: Array) -> Array:
    values = _values_of(parts)
    dropped = where(_is_kept(parts, bounds), 0.0, values)
    return product(scaled(dropped, plane_of(parts, 0)), adjoint(_right_of(parts)))


def _among_values(
    g: Array, inverse: Array, remainder: Array, parts: Array, bounds: Array, of_adjoint: bool
) -> Array:
    left, right, values = plane_of(parts, 0), _right_of(parts), _values_of(parts)
    kept = _is_kept(parts, bounds)
    if of_adjoint:
        left, right = right, left
    larger, both = transposed(values), logical_and(transposed(kept), logical_not(kept))
    gaps = where(both, larger * larger * (larger - values) * (larger + values), 1.0)  # exact, not of squares
    inside = scaled(where(both, values * values, 0.0) / gaps, product_of(adjoint(right), g, left))
    return product_of(inverse, adjoint(inverse), g) + product_of(right, inside, adjoint(left))


def product_of(a: Array, b: Array, c: Array) -> Array:
    """a b c, in the order that takes fewer multiplications."""
    (rows, inner), (outer, columns) = a.shape[-2:], c.shape[-2:]
    if rows * outer * (inner + columns) <= inner * columns * (outer + rows):
        return product(product(a, b), c)
    return product(a, product(b, c))


def _keeps_all(parts: Array, bounds: Array) -> bool:
    """Whether it is known that no value is left out."""
    arrays = [getattr(one, "payload", one) for one in (parts, bounds)]
    return all(isinstance(one, np.ndarray) for one in arrays) and bool(np.all(_is_kept(*arrays)))


def _pinv_of_parts_cotangent(g: Array, a: Array, parts: Array, bounds: Array, y: Array) -> Array:
    if _keeps_all(parts, bounds):
        return _pinv_cotangent(g, a, y)
    remainder, across = remainder_of_parts(a, y, parts, bounds), adjoint(y)
    one = among_values(g, y, remainder, parts, bounds, of_adjoint=False)
    other = among_values(adjoint(g), across, adjoint(remainder), parts, bounds, of_adjoint=True)
    found = adjoint(one) + other - product_of(across, g, across)
    found = found + product_of(across, one, remainder) + product_of(remainder, adjoint(other), across)
    return found - product_of(a, y, adjoint(one)) - product_of(other, y, a)


pinv_of_parts = declare(
    "pinv_of_parts", "composite", "a parts bounds", infer=_infer_of_parts, evaluate=_inverse_of_parts,
    body=_inverse_of_parts, vjp={"a": _pinv_of_parts_cotangent}, grad_fn="LinalgPinv", needs_own_rule=True,
    of_complex=OWN_RULES,
    doc="the pseudo-inverse of that part of a tall matrix whose singular values are above two bounds, an "
    "absolute one and one relative to the largest, given what `svd` makes of it",
)  # fmt: skip
remainder_of_parts = declare(
    "remainder_of_parts", "composite", "a inverse parts bounds", infer=lambda a, inverse, parts, bounds: a,
    evaluate=_remainder_of_parts, body=_remainder_of_parts, needs_own_rule=True, of_complex=OWN_RULES,
    vjp={
        "a": lambda g, a, inverse: (
            g - product_of(g, adjoint(a), adjoint(inverse)) - product_of(adjoint(inverse), adjoint(a), g)
        ),
        "inverse": lambda g, a: -product_of(adjoint(a), g, adjoint(a)),
    },
    doc="that part of a matrix which `pinv_of_parts` leaves out: a less a times that times a",
)  # fmt: skip


def _of_inverse(
    g: Array, x: Array, inverse: Array, remainder: Array, parts: Array, bounds: Array, y: Array,
    of_adjoint: bool,
) -> Array:  # fmt: skip
    given = among_values(g, inverse, remainder, parts, bounds, of_adjoint=of_adjoint)
    along = g + product_of(given, remainder, adjoint(remainder))
    beside = x + product_of(y, remainder, adjoint(remainder))
    return product_of(along, adjoint(beside), inverse) + product_of(beside, adjoint(along), inverse)


def _of_remainder(
    g: Array, inverse: Array, remainder: Array, parts: Array, bounds: Array, y: Array, of_adjoint: bool
) -> Array:
    given = among_values(g, inverse, remainder, parts, bounds, of_adjoint=of_adjoint)
    return product_of(adjoint(y), given, remainder) + product_of(adjoint(given), y, remainder)


among_values = declare(
    "among_values", "composite", "x inverse remainder parts bounds",
    infer=lambda x, inverse, remainder, parts, bounds, of_adjoint: x, evaluate=_among_values,
    body=_among_values, needs_own_rule=True, of_complex=OWN_RULES,
    vjp={
        "x": lambda g, inverse, remainder, parts, bounds, of_adjoint: among_values(
            g, inverse, remainder, parts, bounds, of_adjoint=of_adjoint
        ),
        "inverse": _of_inverse, "remainder": _of_remainder,
    },
    doc="the z with z - p p' z r r' = p p' x, of a pseudo-inverse p of a part of a matrix and the other part "
    "r, or if `of_adjoint` of their adjoints",
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
