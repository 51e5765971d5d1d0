"""Square matrices, alone or in batches: linear equations, determinants, Cholesky's factor.

NumPy and SciPy evaluate them, with LAPACK. Generated code calls functions of whole matrices (`matrices.py`),
which share the elimination of a matrix among all that is asked of it. Where a factor or a solution does not
exist, both raise. The rules are in Giles, "An extended collection of matrix
derivative results" (2008).
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ..array_rules import of_arrays
from ..operator import HOLOMORPHIC, OWN_RULES, Array, WholeCall, declare
from ..spec import Spec, real_dtype
from .contraction import contract
from .diagonals import rows_and_columns
from .elementwise import (
    absolute,
    conjugate,
    conjugated,
    convert,
    equal,
    greater,
    greater_equal,
    imag,
    is_complex,
    log,
    multiply,
    scaled,
    where,
    zeros_like,
)  # fmt: skip
from .elementwise import (
    sign as sign_of,
)
from .lazy import scipy_linalg
from .matrices import (
    cholesky_factor,
    cofactor_matrix,
    cofactors_of,
    eliminated,
    eliminated_solution,
    infer_square,
    inverse_norm,
    inverse_norm_of,
    of_each_matrix,
    require_sides,
    require_square,
    routine,
    triangular_solution,
)
from .matrices import solve_triangular as solve_one_triangular
from .movement import between, concatenate, expand, permute, reshape
from .reduction import amax, prod, sum_

BATCH = "abcdefgh"

# --- parts of matrices --------------------------------------------------------------------------------------


@of_arrays(lambda x: x.swapaxes(-1, -2))
def transposed(x: Array) -> Array:
    rank = len(x.shape)
    return permute(x, dims=(*range(rank - 2), rank - 1, rank - 2))


_swapped = transposed  # where a parameter has the name


@of_arrays(lambda x: (x.conj() if x.dtype.kind == "c" else x).swapaxes(-1, -2))
def adjoint(x: Array) -> Array:
    """The transposed matrices, of complex numbers conjugated."""
    return conjugated(transposed(x))


@of_arrays(np.matmul)
def product(a: Array, b: Array) -> Array:
    """Matrices times matrices, of one batch."""
    batch = BATCH[: len(a.shape) - 2]
    return contract(a, b, subscripts=f"{batch}ij,{batch}jk->{batch}ik")


def _unit_like(x: Array) -> Array:
    rows, columns = rows_and_columns(x.shape[-1])
    return expand(convert(equal(rows, columns), dtype=x.dtype), shape=tuple(x.shape))


def _units(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    found, size = np.zeros(shape, dtype), shape[-1]
    found.reshape(math.prod(shape[:-2]), size * size)[:, :: size + 1] = 1
    return found


def in_lower_half(x: Array) -> Array:
    rows, columns = rows_and_columns(x.shape[-1])
    return where(greater(rows, columns), x, where(equal(rows, columns), 0.5 * x, 0.0))


MOST_KEPT = 4096
"""Elements of a matrix of truth values that is kept."""


def _is_below(rows: int, columns: int, diagonal: int) -> np.ndarray:
    """Where a matrix is on or below a diagonal."""
    return np.tri(rows, columns, diagonal, dtype=bool)


_is_below_if_small = functools.lru_cache(maxsize=64)(_is_below)


def _below(x: np.ndarray, diagonal: int = 0) -> np.ndarray:
    """The same of x, for a small matrix made once."""
    rows, columns = x.shape[-2:]
    return (_is_below_if_small if rows * columns <= MOST_KEPT else _is_below)(rows, columns, diagonal)


def lower_part(x: np.ndarray, diagonal: int = 0) -> np.ndarray:
    """np.tril, whose matrix of truth values takes longer than all else for a small matrix."""
    return np.where(_below(x, diagonal), x, x.dtype.type(0))


def _evaluate_lower_half(x: np.ndarray) -> np.ndarray:
    found = lower_part(x)
    np.einsum("...ii->...i", found)[...] *= 0.5
    return found


def upper_part(x: np.ndarray, diagonal: int = 0) -> np.ndarray:
    """np.triu, as `lower_part`."""
    return np.where(_below(x, diagonal - 1), x.dtype.type(0), x)


unit_like = declare(
    "unit_like", "composite", "x", infer=lambda x: x, body=_unit_like,
    evaluate=lambda x: _units(x.shape, x.dtype),
    vjp={"x": lambda g: zeros_like(g)}, of_complex=HOLOMORPHIC, doc="the unit matrix for every matrix of x",
)  # fmt: skip
lower_half = declare(
    "lower_half", "composite", "x", infer=lambda x: x, body=in_lower_half,
    evaluate=_evaluate_lower_half,
    vjp={"x": lambda g: lower_half(g)}, of_complex=HOLOMORPHIC,
    doc="the lower triangle, with half of the diagonal",
)  # fmt: skip


def _of_lower_triangle(x: Array, sign: float) -> Array:
    rows, columns = rows_and_columns(x.shape[-1])
    diagonal = x if sign > 0 else 0.0
    return where(greater(rows, columns), x, where(equal(rows, columns), diagonal, sign * transposed(x)))


def _evaluate_symmetric(x: np.ndarray, sign: float) -> np.ndarray:
    across = np.swapaxes(x, -1, -2)
    across = np.conjugate(across) if x.dtype.kind == "c" else across
    found = np.where(_below(x), x, across if sign > 0 else -across)
    if sign < 0 or x.dtype.kind == "c":  # for the diagonal is its own image
        np.einsum("...ii->...i", found if sign < 0 else found.imag)[...] = 0
    return found


def _infer_symmetric(x: Spec, sign: float) -> Spec:
    require_square("symmetric", x)
    return x


symmetric = declare(
    "symmetric", "composite", "x", infer=_infer_symmetric, body=_of_lower_triangle,
    evaluate=_evaluate_symmetric, of_complex=OWN_RULES,
    vjp={"x": lambda g, sign: lower_half(g + sign * adjoint(g))},
    doc="the lower triangle and its mirror image: conjugated, and negative for the sign -1",
)  # fmt: skip


# --- elimination --------------------------------------------------------------------------------------------


def _pivots(a: Array) -> Array:
    """Of shape (..., n), negative where rows were exchanged."""
    return _pivots_of(eliminated(untransposed(a)[0]))


def _pivots_of(found: Array) -> Array:
    size, batch = found.shape[-1], tuple(found.shape[:-2])
    upper, last = between(found, -2, 0, size), between(found, -2, size, size + 1)
    rows, columns = rows_and_columns(size)
    diagonal = sum_(where(equal(rows, columns), upper, 0.0), dims=(len(batch),), keepdim=True)
    stays = equal(last, convert(columns, dtype=found.dtype))
    return reshape(where(stays, diagonal, -1.0 * diagonal), shape=(*batch, size))


def untransposed(a: Array) -> tuple[Array, bool]:
    """The matrices of which these are the transposed, if they are, and whether they are."""
    rank, is_transposed = len(a.shape), False
    while a.operator is permute and a.attributes["dims"] == (*range(rank - 2), rank - 1, rank - 2):
        a, is_transposed = a.operands[0], not is_transposed
    return a, is_transposed


def _solution(a: Array, b: Array) -> Array:
    inner, is_transposed = untransposed(a)
    if inner.operator in (cholesky, cholesky_factor):
        return triangular_solve(inner, b, lower=True, transposed=is_transposed, right=False)
    return solve_factored(inner, eliminated(inner), b, transposed=is_transposed)


def _infer_solve(a: Spec, b: Spec) -> Spec:
    require_square("solve", a)
    return require_sides("solve", a, b)


def _infer_number(a: Spec) -> Spec:
    require_square("det", a)
    return a.with_shape(a.shape[:-2])


solve = declare(
    "solve", "composite", "a b", infer=_infer_solve, evaluate=np.linalg.solve,
    body=_solution, grad_fn="LinalgSolveEx", of_complex=HOLOMORPHIC,
    vjp={
        "a": lambda g, a, y: -1.0 * product(solve(transposed(a), g), transposed(y)),
        "b": lambda g, a: solve(transposed(a), g),
    },
    doc="the x with a x = b, for matrices a and b",
)  # fmt: skip


def _factored_cotangent(g: Array, a: Array, factors: Array, y: Array, transposed: bool) -> Array:
    across = solve_factored(a, factors, g, transposed=not transposed)
    first, second = (y, across) if transposed else (across, y)
    return -1.0 * product(first, _swapped(second))


solve_factored = declare(
    "solve_factored", "composite", "a factors b", needs_own_rule=True, of_complex=HOLOMORPHIC,
    infer=lambda a, factors, b, transposed: require_sides("solve", a, b),
    evaluate=lambda a, factors, b, transposed: eliminated_solution(factors, b, transposed=transposed),
    body=lambda a, factors, b, transposed: eliminated_solution(factors, b, transposed=transposed),
    vjp={
        "a": _factored_cotangent,
        "b": lambda g, a, factors, transposed: solve_factored(a, factors, g, transposed=not transposed),
    },
    doc="the x with a x = b, or a' x = b if `transposed`, given what `eliminated` makes of a as well",
)  # fmt: skip


def _reciprocal_condition(a: Array) -> Array:
    batch = len(a.shape) - 2
    inner = untransposed(a)[0]
    norm = amax(sum_(absolute(inner), dims=(batch,), keepdim=False), dims=(batch,), keepdim=False)
    columns = inverse_norm(eliminated(inner))
    last = between(between(columns, -2, a.shape[-1] - 1, a.shape[-1]), -1, 2, 3)
    return 1.0 / (norm * reshape(last, shape=tuple(norm.shape)))


def _condition_of(a: np.ndarray) -> np.ndarray:
    if not a.size:
        return np.ones(a.shape[:-2], a.dtype)
    norm = np.abs(a).sum(0).max()
    if np.isfinite(norm):
        (factorise,) = scipy_linalg().lapack.get_lapack_funcs(("getrf",), (a,))
        norm *= inverse_norm_of(factorise(a)[0])
    return np.asarray(1.0 / norm if norm < math.inf else 0.0 if norm > 0 else norm, a.dtype)


reciprocal_condition = declare(
    "reciprocal_condition", "composite", "a", infer=_infer_number, body=_reciprocal_condition,
    evaluate=lambda a: of_each_matrix(_condition_of, a),
    doc="an estimate of the reciprocal condition number, in the 1-norm or that of the maximum; 0 or nan "
    "without an inverse",
)  # fmt: skip


def _for_each_matrix(g: Array, a: Array) -> Array:
    return expand(reshape(g, shape=(*g.shape, 1, 1)), shape=tuple(a.shape))


def _inverse_transposed(a: Array) -> Array:
    return solve(transposed(a), unit_like(a))


def _cofactors(a: Array) -> Array:
    inner, is_transposed = untransposed(a)
    found = between(cofactor_matrix(inner, eliminated(inner)), -2, 0, a.shape[-1])
    return transposed(found) if is_transposed else found


def _cofactors_cotangent(g: Array, a: Array, y: Array) -> Array:
    """<g, y> x - y g' x, with the transposed inverse x."""
    rank = len(a.shape)
    inverse = _inverse_transposed(a)
    along = sum_(multiply(g, y), dims=(rank - 2, rank - 1), keepdim=False)
    return multiply(_for_each_matrix(along, a), inverse) - product(product(y, transposed(g)), inverse)


cofactors = declare(
    "cofactors", "composite", "a", infer=infer_square("cofactors"), body=_cofactors,
    evaluate=lambda a: of_each_matrix(cofactors_of, a), needs_own_rule=True, of_complex=HOLOMORPHIC,
    vjp={"a": _cofactors_cotangent},
    doc="the derivative of the determinant by each element; its own derivative needs an inverse",
)  # fmt: skip
det = declare(
    "det", "composite", "a", infer=_infer_number, evaluate=np.linalg.det, grad_fn="LinalgDet",
    body=lambda a: prod(_pivots(a), dims=(len(a.shape) - 2,), keepdim=False),
    vjp={"a": lambda g, a: multiply(_for_each_matrix(g, a), cofactors(a))},
    needs_own_rule=True, of_complex=HOLOMORPHIC,
    doc="the determinant",
)  # fmt: skip
logabsdet = declare(
    "logabsdet", "composite", "a", evaluate=lambda a: np.linalg.slogdet(a)[1], of_complex=OWN_RULES,
    infer=lambda a: _infer_number(a).with_dtype(real_dtype(a.dtype)),
    body=lambda a: sum_(log(absolute(_pivots(a))), dims=(len(a.shape) - 2,), keepdim=False),
    grad_fn="LinalgSlogdet", needs_own_rule=True,
    vjp={"a": lambda g, a: scaled(_for_each_matrix(g, a), _inverse_transposed(conjugated(a)))},
    doc="the logarithm of the determinant's size, without overflow",
)  # fmt: skip
sign_of_det = declare(
    "sign_of_det", "composite", "a", infer=_infer_number, evaluate=lambda a: np.linalg.slogdet(a)[0],
    body=lambda a: prod(sign_of(_pivots(a)), dims=(len(a.shape) - 2,), keepdim=False),
    grad_fn="LinalgSlogdet", needs_own_rule=True, of_complex=OWN_RULES,
    vjp={"a": lambda g, a, y: _sign_cotangent(g, a, y)},
    doc="the sign of the determinant, `det / |det|`",
)  # fmt: skip


def _sign_cotangent(g: Array, a: Array, y: Array) -> Array:
    """That of exp(i angle): a real determinant keeps its sign."""
    if not is_complex(a):
        return zeros_like(a)
    turned = imag(g * conjugate(y))
    return 1j * scaled(_for_each_matrix(turned, a), _inverse_transposed(conjugate(a)))


def _evaluate_pivots(factors: np.ndarray) -> np.ndarray:
    diagonal, size = np.einsum("...ii->...i", factors[..., :-1, :]), factors.shape[-1]
    return np.where(factors[..., -1, :] == np.arange(size), diagonal, -diagonal)


def _inverse_of_factored(a: Array, factors: Array) -> Array:
    a, factors = conjugated(a), conjugated(factors)
    return solve_factored(a, factors, unit_like(a), transposed=True)


logabsdet_factored = declare(
    "logabsdet_factored", "composite", "a factors", needs_own_rule=True, of_complex=OWN_RULES,
    infer=lambda a, factors: _infer_number(a).with_dtype(real_dtype(a.dtype)),
    evaluate=lambda a, factors: np.log(np.abs(_evaluate_pivots(factors))).sum(-1),
    body=lambda a, factors: sum_(
        log(absolute(_pivots_of(factors))), dims=(len(a.shape) - 2,), keepdim=False
    ),
    vjp={"a": lambda g, a, factors: scaled(_for_each_matrix(g, a), _inverse_of_factored(a, factors))},
    doc="`logabsdet`, given what `eliminated` makes of a as well",
)  # fmt: skip
sign_of_det_factored = declare(
    "sign_of_det_factored", "composite", "a factors", needs_own_rule=True, of_complex=OWN_RULES,
    infer=lambda a, factors: _infer_number(a),
    evaluate=lambda a, factors: np.prod(np.sign(_evaluate_pivots(factors)), -1),
    body=lambda a, factors: prod(sign_of(_pivots_of(factors)), dims=(len(a.shape) - 2,), keepdim=False),
    vjp={"a": lambda g, a, y: _sign_cotangent(g, a, y)},
    doc="`sign_of_det`, given what `eliminated` makes of a as well",
)  # fmt: skip

# --- triangles ----------------------------------------------------------------------------------------------


def _triangle(x: Array, lower: bool) -> Array:
    rows, columns = rows_and_columns(x.shape[-1])
    return where(greater_equal(rows, columns) if lower else greater_equal(columns, rows), x, 0.0)


triangle = declare(
    "triangle", "composite", "x", infer=lambda x, lower: x, body=_triangle,
    evaluate=lambda x, lower: lower_part(x) if lower else upper_part(x),
    vjp={"x": lambda g, lower: triangle(g, lower=lower)}, of_complex=HOLOMORPHIC,
    doc="the lower or upper triangle of every matrix",
)  # fmt: skip


def _triangular_solution(a: Array, b: Array, lower: bool, transposed: bool, right: bool) -> Array:
    inner, is_transposed = untransposed(a)
    options = {"lower": lower != is_transposed, "transposed": transposed != is_transposed}
    return triangular_solution(inner, b, **options, right=right)


def _infer_triangular_solve(a: Spec, b: Spec, lower: bool, transposed: bool, right: bool) -> Spec:
    require_square("triangular_solve", a)
    return require_sides("triangular_solve", a, b, right)


def _of_sides(g: Array, a: Array, lower: bool, transposed: bool, right: bool) -> Array:
    return triangular_solve(a, g, lower=lower, transposed=not transposed, right=right)


def _triangle_cotangent(g: Array, a: Array, y: Array, lower: bool, transposed: bool, right: bool) -> Array:
    across = _of_sides(g, a, lower, transposed, right)
    first, second = (y, across) if transposed != right else (across, y)
    whole = product(_swapped(first), second) if right else product(first, _swapped(second))
    return -1.0 * triangle(whole, lower=lower)


triangular_solve = declare(
    "triangular_solve", "composite", "a b", infer=_infer_triangular_solve, body=_triangular_solution,
    evaluate=lambda a, b, lower, transposed, right: of_each_matrix(
        lambda a, b: solve_one_triangular(a, b, lower, transposed, right), a, b
    ),
    grad_fn="LinalgSolveTriangular", needs_own_rule=True, of_complex=HOLOMORPHIC,
    vjp={"a": _triangle_cotangent, "b": _of_sides},
    doc="the x with a x = b, or a' x = b if `transposed`, of the lower or upper triangle of a; or if `right` "
    "with x a = b, or x a' = b",
)  # fmt: skip

# --- solutions by both triangles ----------------------------------------------------------------------------


def _factors_cotangent(g: Array, factors: Array, b: Array, y: Array, transposed: bool) -> Array:
    """Of the triangles; the last row says which rows are exchanged."""
    size = factors.shape[-1]
    both, exchanges = between(factors, -2, 0, size), between(factors, -2, size, size + 1)
    upper = triangle(both, lower=False)
    lower = both - upper + unit_like(both)
    if transposed:
        outer = triangular_solve(upper, b, lower=False, transposed=True, right=False)
        inner = triangular_solve(lower, outer, lower=True, transposed=True, right=False)
        of_outer = factored_solution(factors, g, transposed=False)
        of_inner = product(upper, of_outer)
    else:
        outer = triangular_solve(upper, g, lower=False, transposed=True, right=False)
        inner = triangular_solve(lower, outer, lower=True, transposed=True, right=False)
        of_outer, of_inner = y, product(upper, y)
    of_lower, of_upper = product(inner, _swapped(of_inner)), product(outer, _swapped(of_outer))
    of_both = of_lower - triangle(of_lower, lower=False) + triangle(of_upper, lower=False)
    return concatenate(-1.0 * of_both, zeros_like(exchanges), dim=len(factors.shape) - 2)


def _infer_factored(factors: Spec, b: Spec, transposed: bool) -> Spec:
    size = factors.shape[-1]
    return require_sides("lu_solve", factors.with_shape((*factors.shape[:-2], size, size)), b)


factored_solution = declare(
    "lu_solve", "composite", "factors b", infer=_infer_factored, needs_own_rule=True,
    evaluate=eliminated_solution.evaluate, of_complex=HOLOMORPHIC, grad_fn="LinalgLuSolve",
    body=lambda factors, b, transposed: eliminated_solution(factors, b, transposed=transposed),
    vjp={
        "factors": _factors_cotangent,
        "b": lambda g, factors, transposed: factored_solution(factors, g, transposed=not transposed),
    },
    doc="the x with a x = b, or a' x = b if `transposed`, given the triangles of a and, as a last row, the "
    "exchanges of its rows",
)  # fmt: skip


# --- Cholesky -----------------------------------------------------------------------------------------------


SMALL_FACTOR = 64
"""Columns of a factor up to which the formula with whole triangles takes less than its parts."""


def _factor_cotangent(factor: np.ndarray, g: np.ndarray) -> np.ndarray:
    """Of one matrix: the steps of its factorisation in two blocks backwards."""
    if not factor.size:
        return g
    size, across = len(factor), factor.conj().T
    if size <= SMALL_FACTOR:
        half = solve_one_triangular(factor, _evaluate_lower_half(across @ g), True, False, True)
        found = solve_one_triangular(across, half, False, False, False)
        return 0.5 * (found + found.conj().T)
    at = size // 2
    below = _factor_cotangent(factor[at:, at:], g[at:, at:])
    corner = g[at:, :at] - 2.0 * (below @ factor[at:, :at])
    corner = solve_one_triangular(factor[:at, :at], corner, True, False, True)
    above = _factor_cotangent(factor[:at, :at], g[:at, :at] - corner.conj().T @ factor[at:, :at])
    corner *= 0.5
    return np.block([[above, corner.conj().T], [corner, below]])


factor_cotangent = declare(
    "factor_cotangent", "matrix", "factor g", infer=lambda factor, g: require_sides("cholesky", factor, g),
    evaluate=lambda factor, g: of_each_matrix(_factor_cotangent, factor, g),
    call=WholeCall(("pull_back_cholesky",)), noun="cotangent",
    doc="the gradient of a matrix, symmetric as it is, by that of its Cholesky factor",
)  # fmt: skip


def _in_factor(x: Array, factor: Array) -> Array:
    """The lower half of a matrix, made Hermitian, between the inverse of the factor and its adjoint."""
    whole = 0.5 * (x + adjoint(x))
    half = triangular_solve(factor, whole, lower=True, transposed=False, right=False)
    return lower_half(triangular_solve(conjugated(factor), half, lower=True, transposed=True, right=True))


def _of_factor(g: Array, factor: Array, cotangent: Array, y: Array) -> Array:
    """By the formula: the lower half of factor' cotangent, between the inverses, of which y is a half."""
    across = product(y, g + adjoint(g))
    across = triangular_solve(conjugated(factor), across, lower=True, transposed=True, right=True)
    lower = triangle(cotangent, lower=True)
    return triangle(product(lower, adjoint(_in_factor(g, factor))) - across, lower=True)


cholesky_cotangent = declare(
    "cholesky_cotangent", "composite", "factor cotangent", body=factor_cotangent, needs_own_rule=True,
    infer=factor_cotangent.infer, evaluate=factor_cotangent.evaluate, of_complex=OWN_RULES,
    vjp={"factor": _of_factor, "cotangent": lambda g, factor: product(factor, _in_factor(g, factor))},
    doc="the gradient of a matrix, symmetric or Hermitian as it is, by that of its Cholesky factor",
)  # fmt: skip
cholesky = declare(
    "cholesky", "composite", "a", infer=infer_square("cholesky"), evaluate=np.linalg.cholesky,
    body=cholesky_factor,
    vjp={"a": lambda g, y: cholesky_cotangent(y, g)}, grad_fn="LinalgCholeskyEx", of_complex=OWN_RULES,
    needs_own_rule=True,
    doc="the lower triangular L with L L' = a, of whose lower triangle alone it is read",
)  # fmt: skip


def _definite_cotangent(g: Array, a: Array, factor: Array, y: Array) -> Array:
    found = product(definite_solution(a, factor, g), transposed(y))
    return -0.5 * (found + transposed(found))


def _by_both_triangles(a: Array, factor: Array, b: Array) -> Array:
    inner = triangular_solve(factor, b, lower=True, transposed=False, right=False)
    return triangular_solve(factor, inner, lower=True, transposed=True, right=False)


definite_solution = declare(
    "definite_solution", "composite", "a factor b", needs_own_rule=True, body=_by_both_triangles,
    infer=lambda a, factor, b: require_sides("definite_solution", a, b), evaluate=_by_both_triangles,
    vjp={"a": _definite_cotangent, "b": lambda g, a, factor: definite_solution(a, factor, g)},
    doc="the x with a x = b, for a symmetric matrix, given Cholesky's factor as well",
)  # fmt: skip


def _definite_minors(a: np.ndarray) -> np.ndarray:
    return np.asarray(routine("potrf", a.dtype)(a, lower=1)[1] if a.size else 0, a.dtype)


definite_minors = declare(
    "definite_minors", "eager", "a", infer=_infer_number, of_complex=OWN_RULES,
    evaluate=lambda a: of_each_matrix(_definite_minors, a) if a.shape[-3:-2] != (0,) else a[..., 0, 0],
    doc="of the lower triangle of a symmetric matrix, the first of its leading minors, from 1, that is not "
    "positive definite, or 0",
)  # fmt: skip
