"""Linear algebra of complex matrices as pairs of real numbers, for generated code: products and equations.

The last dimension has the real and the imaginary part. Cotangents of both are that of a complex number in
PyTorch's sense, so the rules are those of real matrices with adjoints in the place of transposes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dims import equated_shapes
from ..errors import ShapeError
from ..operator import Array, WholeCall, declare
from ..spec import Spec
from .linalg import triangle
from .matrices import cofactor_matrix, eliminated, eliminated_solution, triangular_solution
from .movement import between, of_pairs, pairs_of, reshape

# --- products of matrices -----------------------------------------------------------------------------------


def _infer_product(a: Spec, b: Spec, adjoint_a: bool, adjoint_b: bool) -> Spec:
    *batch, rows, summed, two = a.shape
    others, columns = b.shape[-3:-1]
    rows, summed = (summed, rows) if adjoint_a else (rows, summed)
    others, columns = (columns, others) if adjoint_b else (others, columns)
    if b.shape[:-3] != tuple(batch) or others != summed:
        raise ShapeError(f"product_of_pairs: shapes {a.shape} and {b.shape} do not fit.")
    equated_shapes((*batch, summed), (*b.shape[:-3], others))
    return a.with_shape((*batch, rows, columns, two))


def _evaluate_product(a: np.ndarray, b: np.ndarray, adjoint_a: bool, adjoint_b: bool) -> np.ndarray:
    left, right = (
        np.conjugate(np.swapaxes(one, -1, -2)) if is_adjoint else one
        for one, is_adjoint in ((of_pairs.evaluate(a), adjoint_a), (of_pairs.evaluate(b), adjoint_b))
    )
    return pairs_of.evaluate(np.ascontiguousarray(left @ right))


def _left_cotangent(g: Array, b: Array, adjoint_a: bool, adjoint_b: bool) -> Array:
    if adjoint_a:
        return product_of_pairs(b, g, adjoint_a=adjoint_b, adjoint_b=True)
    return product_of_pairs(g, b, adjoint_a=False, adjoint_b=not adjoint_b)


def _right_cotangent(g: Array, a: Array, adjoint_a: bool, adjoint_b: bool) -> Array:
    if adjoint_b:
        return product_of_pairs(g, a, adjoint_a=True, adjoint_b=adjoint_a)
    return product_of_pairs(a, g, adjoint_a=not adjoint_a, adjoint_b=False)


product_of_pairs = declare(
    "product_of_pairs", "contraction", "a b", infer=_infer_product, evaluate=_evaluate_product,
    vjp={"a": _left_cotangent, "b": _right_cotangent}, noun="product",
    call=WholeCall(
        ("multiply_pairs", "multiply_by_adjoint", "multiply_adjoint", "multiply_adjoints"),
        lambda a, adjoint_a, adjoint_b: 2 * adjoint_a + adjoint_b, dims=3, steps=lambda extent: 2 * extent,
    ),
    doc="complex matrices, as pairs, times others, or by their adjoints",
)  # fmt: skip

# --- equations ----------------------------------------------------------------------------------------------


def _with_parts(found: np.ndarray) -> np.ndarray:
    return pairs_of.evaluate(np.ascontiguousarray(found))


def _infer_solution(a: Spec, b: Spec, right: bool = False) -> Spec:
    side = b.ndim - 2 if right else b.ndim - 3
    fit = b.ndim == a.ndim and b.shape[:-3] == a.shape[:-3] and a.shape[-2] == a.shape[-3] == b.shape[side]
    if not fit:
        raise ShapeError(f"equations of complex matrices: shapes {a.shape} and {b.shape} do not fit.")
    equated_shapes(a.shape[:-2], (*b.shape[:-3], b.shape[side]))
    return b


def _solved(factors: np.ndarray, b: np.ndarray, adjoint: bool) -> np.ndarray:
    factors, b = of_pairs.evaluate(factors), of_pairs.evaluate(b)
    if not adjoint:
        return _with_parts(eliminated_solution.evaluate(factors, b, transposed=False))
    return _with_parts(np.conjugate(eliminated_solution.evaluate(factors, np.conjugate(b), transposed=True)))


eliminated_pairs = declare(
    "eliminated_pairs", "matrix", "a", noun="elimination", call=WholeCall(("eliminate_pairs",), dims=3),
    infer=lambda a: a.with_shape((*a.shape[:-3], a.shape[-3] + 1, *a.shape[-2:])),
    evaluate=lambda a: _with_parts(eliminated.evaluate(of_pairs.evaluate(a))),
    doc="`eliminated` of complex matrices",
)  # fmt: skip
ANSWERS = 3
"""Of `determined_pairs`, each a pair in a row of its own: ..."""
DETERMINANT, SIGN, LOGARITHM = range(ANSWERS)
"""... the determinant, its sign and the logarithm of its size."""


def _determined(factors: np.ndarray) -> np.ndarray:
    whole, size = of_pairs.evaluate(factors), factors.shape[-2]
    diagonal = np.einsum("...ii->...i", whole[..., :-1, :])
    pivots = np.where(whole[..., -1, :].real == np.arange(size), diagonal, -diagonal)
    sizes = np.abs(pivots)
    found = np.zeros((*factors.shape[:-3], ANSWERS, 1, 2), factors.dtype)
    with np.errstate(divide="ignore", invalid="ignore"):
        signs = np.where(sizes == 0, 0, pivots / sizes)
        answers = (pivots.prod(-1), signs.prod(-1), np.log(sizes).sum(-1))
    for row, one in enumerate(answers):
        found[..., row, 0, 0], found[..., row, 0, 1] = np.real(one), np.imag(one)
    return found


determined_pairs = declare(
    "determined_pairs", "matrix", "factors", noun="determinant",
    call=WholeCall(("determine_pairs",), dims=3),
    infer=lambda factors: factors.with_shape((*factors.shape[:-3], ANSWERS, 1, 2)),
    evaluate=_determined,
    doc="determinants, their signs and the logarithms of their sizes, given what `eliminated_pairs` makes of "
    "matrices",
)  # fmt: skip


def determinant_of_pairs(row: int, is_real: bool) -> Callable[..., Array]:
    """What one of these rows says, as a body: a pair, or a real number."""

    def body(a: Array, **attributes: Any) -> Array:
        found = between(determined_pairs(eliminated_pairs(a)), -3, row, row + 1)
        found = between(found, -1, 0, 1 if is_real else 2)
        return reshape(found, shape=tuple(a.shape[:-3]) + (() if is_real else (2,)))

    return body


def _cofactors_and_room(a: np.ndarray) -> np.ndarray:
    found = cofactor_matrix.evaluate(of_pairs.evaluate(a), None)
    return _with_parts(found)


cofactor_pairs = declare(
    "cofactor_pairs", "decomposition", "a factors", noun="cofactor",
    infer=lambda a, factors: a.with_shape((*a.shape[:-3], 2 * a.shape[-2] + 4, *a.shape[-2:])),
    evaluate=lambda a, factors: _cofactors_and_room(a), call=WholeCall(("cofactors_of_pairs",), dims=3),
    doc="`cofactor_matrix` of complex matrices",
)  # fmt: skip


def cofactors_of_pairs(a: Array, **attributes: Any) -> Array:
    """The derivative of the determinant by each element, as a body."""
    return between(cofactor_pairs(a, eliminated_pairs(a)), -3, 0, a.shape[-2])


eliminated_pairs_solution = declare(
    "eliminated_pairs_solution", "matrix", "factors b", evaluate=_solved, noun="solution",
    infer=lambda factors, b, adjoint: b,
    call=WholeCall(
        ("solve_eliminated_pairs", "solve_eliminated_adjoint"), lambda a, adjoint: int(adjoint), dims=3,
        refusal=("linalg.solve", "regular: it is singular"),
    ),
    doc="the x with a x = b, or of the adjoint of a, given what `eliminated_pairs` makes of a",
)  # fmt: skip


def _matrix_cotangent(g: Array, a: Array, factors: Array, y: Array, adjoint: bool) -> Array:
    return _minus_product(solved_pairs(a, factors, g, adjoint=not adjoint), y, adjoint)


def _minus_product(across: Array, y: Array, exchanged: bool, right: bool = False) -> Array:
    first, second = (y, across) if exchanged else (across, y)
    return -1.0 * product_of_pairs(first, second, adjoint_a=right, adjoint_b=not right)


solved_pairs = declare(
    "solved_pairs", "composite", "a factors b", needs_own_rule=True,
    infer=lambda a, factors, b, adjoint: _infer_solution(a, b),
    evaluate=lambda a, factors, b, adjoint: _solved(factors, b, adjoint),
    body=lambda a, factors, b, adjoint: eliminated_pairs_solution(factors, b, adjoint=adjoint),
    vjp={
        "a": _matrix_cotangent,
        "b": lambda g, a, factors, adjoint: solved_pairs(a, factors, g, adjoint=not adjoint),
    },
    doc="the x with a x = b, or of the adjoint of a, given what `eliminated_pairs` makes of a as well",
)  # fmt: skip


def _solved_triangle(a: np.ndarray, b: np.ndarray, lower: bool, adjoint: bool, right: bool) -> np.ndarray:
    a, b = of_pairs.evaluate(a), of_pairs.evaluate(b)
    given = np.conjugate(b) if adjoint else b
    found = triangular_solution.evaluate(a, given, lower=lower, transposed=adjoint, right=right)
    return _with_parts(np.conjugate(found) if adjoint else found)


def _of_sides(g: Array, a: Array, lower: bool, adjoint: bool, right: bool) -> Array:
    return solved_triangle_pairs(a, g, lower=lower, adjoint=not adjoint, right=right)


def _triangle_cotangent(g: Array, a: Array, y: Array, lower: bool, adjoint: bool, right: bool) -> Array:
    across = _of_sides(g, a, lower, adjoint, right)
    whole = _minus_product(across, y, adjoint != right, right)
    return pairs_of(triangle(of_pairs(whole), lower=lower))


solved_triangle_pairs = declare(
    "solved_triangle_pairs", "decomposition", "a b", evaluate=_solved_triangle, noun="solution",
    infer=lambda a, b, lower, adjoint, right: _infer_solution(a, b, right),
    vjp={"a": _triangle_cotangent, "b": _of_sides},
    call=WholeCall(
        (
            "solve_upper_pairs", "solve_lower_pairs", "solve_adjoint_of_upper", "solve_adjoint_of_lower",
            "solve_upper_pairs_from_right", "solve_lower_pairs_from_right",
            "solve_adjoint_of_upper_from_right", "solve_adjoint_of_lower_from_right",
        ),
        lambda a, lower, adjoint, right: 4 * right + 2 * adjoint + lower, dims=3,
    ),
    doc="the x with a x = b, or of the adjoint of a, for the lower or upper triangle of a; or if `right` "
    "with x a = b",
)  # fmt: skip
