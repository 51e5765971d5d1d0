"""Linear algebra as generated code calls it: what the bodies in `linalg.py` are made of.

Each takes whole matrices. None has a rule: where derivatives pass, it stands in a composite that has one.
LAPACK evaluates them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..dims import equated, equated_shapes
from ..errors import ShapeError
from ..operator import WholeCall, declare
from ..spec import Spec
from .lazy import scipy_linalg


def require_square(name: str, a: Spec) -> None:
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name}: square matrices expected, found shape {a.shape}.")
    equated(*a.shape[-2:])


def require_sides(name: str, a: Spec, b: Spec, right: bool = False) -> Spec:
    side = -1 if right else -2
    if b.ndim != a.ndim or b.shape[:-2] != a.shape[:-2] or b.shape[side] != a.shape[-1]:
        wanted = f"(..., m, {a.shape[-1]})" if right else f"(..., {a.shape[-1]}, m)"
        raise ShapeError(f"{name}: sides of shape {wanted} expected, found {b.shape} for {a.shape}.")
    equated_shapes((*a.shape[:-2], a.shape[-1]), (*b.shape[:-2], b.shape[side]))
    return b


def infer_square(name: str) -> Callable[[Spec], Spec]:
    def infer(a: Spec) -> Spec:
        require_square(name, a)
        return a

    return infer


def _infer_eliminated(a: Spec) -> Spec:
    require_square("eliminated", a)
    return a.with_shape((*a.shape[:-2], a.shape[-1] + 1, a.shape[-1]))


def _infer_triangular(a: Spec, b: Spec, lower: bool, transposed: bool, right: bool) -> Spec:
    require_square("triangular_solution", a)
    return require_sides("triangular_solution", a, b, right)


def of_each_matrix(compute: Callable[..., np.ndarray], *operands: np.ndarray) -> np.ndarray:
    """`compute` of each of a batch, stacked; once of a batch without any."""
    batch = operands[0].shape[:-2]
    if not batch or 0 in batch:
        return compute(*operands)
    results = [compute(*(one[place] for one in operands)) for place in np.ndindex(batch)]
    return np.stack(results).reshape(*batch, *results[0].shape)


def _eliminate(a: np.ndarray) -> np.ndarray:
    """For one matrix, by LAPACK; in its order of memory, by column."""
    size = a.shape[-1]
    if not a.size:
        return np.empty((*a.shape[:-2], size + 1, size), a.dtype)
    factors, places, _ = routine("getrf", a.dtype)(a)
    across = np.empty((size, size + 1), a.dtype)
    across[:, :size], across[:, size] = factors.T, places
    return across.T


@functools.cache
def routine(name: str, dtype: np.dtype) -> Callable[..., Any]:
    """LAPACK's, without the checks of `scipy.linalg`, which take longer than a small matrix."""
    return scipy_linalg().lapack.get_lapack_funcs((name,), dtype=dtype)[0]


@functools.cache
def blas_routine(name: str, dtype: np.dtype) -> Callable[..., Any]:
    """BLAS's.

    Unlike LAPACK's `getrs` and `trtrs`, it takes the time of a hand-over to other threads for large matrices
    alone.
    """
    return scipy_linalg().blas.get_blas_funcs((name,), dtype=dtype)[0]


def solve_triangular(
    a: np.ndarray, b: np.ndarray, lower: bool, transposed: bool, right: bool = False
) -> np.ndarray:
    """For one matrix, by BLAS: with a zero on the diagonal inf or nan, as in code."""
    if not b.size:
        return b
    if b.flags.c_contiguous and not b.flags.f_contiguous:  # which BLAS would copy
        return solve_triangular(a, b.T, lower, not transposed, not right).T
    if not a.flags.f_contiguous:  # which BLAS would copy
        a, lower, transposed = a.T, not lower, not transposed
    dtype = a.dtype if a.dtype == b.dtype else np.result_type(a, b)
    return blas_routine("trsm", dtype)(
        1.0, a, b, side=int(right), lower=lower, trans_a=int(transposed)
    )  # fmt: skip


def _inverse_norm(eliminated: np.ndarray) -> np.ndarray:
    found = np.zeros((eliminated.shape[-1], 3), eliminated.dtype)
    found[-1:, 2] = inverse_norm_of(eliminated[:-1])
    return found


def inverse_norm_of(factors: np.ndarray) -> float:
    """By LAPACK; infinite where a pivot is 0."""
    share = float(routine("gecon", factors.dtype)(factors, 1.0)[0]) if np.diagonal(factors).all() else 0.0
    return 1.0 / share if share else math.inf


def cofactors_of(a: np.ndarray) -> np.ndarray:
    """Of one matrix; by singular values without an inverse."""
    if not a.size:
        return a
    try:
        return np.linalg.det(a) * np.linalg.inv(a).T
    except np.linalg.LinAlgError:  # of a pivot of 0
        pass
    if not np.isfinite(a).all():
        return np.full_like(a, np.nan)
    left, values, right = np.linalg.svd(a)
    others = np.repeat(values[None], len(a), 0)
    np.fill_diagonal(others, 1)
    turned = np.linalg.det(left) * np.linalg.det(right)
    return turned * ((left.conj() * np.prod(others, -1)) @ right.conj())


def _infer_cofactors(a: Spec, eliminated: Spec) -> Spec:
    size = a.shape[-1]
    return a.with_shape((*a.shape[:-2], 2 * size + 4, size))


def _cofactors_and_room(a: np.ndarray) -> np.ndarray:
    return np.concatenate([cofactors_of(a), np.zeros((a.shape[-1] + 4, a.shape[-1]), a.dtype)], -2)


def _infer_inverse_norm(eliminated: Spec) -> Spec:
    return eliminated.with_shape((*eliminated.shape[:-2], eliminated.shape[-1], 3))


def _solve_eliminated(eliminated: np.ndarray, b: np.ndarray, transposed: bool) -> np.ndarray:
    if not b.size:
        return b
    if not eliminated.diagonal().all():
        raise np.linalg.LinAlgError("Singular matrix")
    if b.shape[-1] == 1:
        places = eliminated[-1].real.astype(np.int32)
        return routine("getrs", b.dtype)(eliminated[:-1], places, b, trans=int(transposed))[0]
    order = _order_of(eliminated[-1].real.astype(int).tolist())
    factors, solve = np.asfortranarray(eliminated[:-1]), blas_routine("trsm", b.dtype)
    if not transposed:
        halfway = solve(1.0, factors, b[order].T, side=1, lower=1, diag=1, trans_a=1, overwrite_b=1)
        return solve(1.0, factors, halfway, side=1, trans_a=1, overwrite_b=1).T
    halfway = solve(1.0, factors, b.T, side=1)
    halfway = solve(1.0, factors, halfway, side=1, lower=1, diag=1, overwrite_b=1)
    found = np.empty(b.shape, halfway.dtype)
    found[order] = halfway.T
    return found


def _order_of(exchanged: list[int]) -> list[int]:
    """Which row stands where, after each row was exchanged with another one, in turn."""
    order = list(range(len(exchanged)))
    for row, other in enumerate(exchanged):
        if other != row:
            order[row], order[other] = order[other], order[row]
    return order


cholesky_factor = declare(
    "cholesky_factor", "matrix", "a", infer=infer_square("cholesky_factor"), evaluate=np.linalg.cholesky,
    call=WholeCall(("factor_cholesky",), refusal=("linalg.cholesky", "positive definite")), noun="factor",
    doc="the lower triangular L with L L' = a",
)  # fmt: skip
triangular_solution = declare(
    "triangular_solution", "matrix", "a b", infer=_infer_triangular,
    evaluate=lambda a, b, lower, transposed, right: of_each_matrix(
        lambda a, b: solve_triangular(a, b, lower, transposed, right), a, b
    ),
    call=WholeCall(
        ("solve_upper", "solve_lower", "solve_upper_from_right", "solve_lower_from_right"),
        lambda a, lower, transposed, right: 2 * right + (lower != transposed),
        transposes=lambda lower, transposed, right: transposed,
    ),
    noun="solution",
    doc="the x with a x = b, or a' x = b if `transposed`, of the lower or upper triangle of a; or if `right` "
    "with x a = b, or x a' = b",
)  # fmt: skip
eliminated = declare(
    "eliminated", "matrix", "a", infer=_infer_eliminated,
    evaluate=lambda a: of_each_matrix(_eliminate, a),
    call=WholeCall(("eliminate",)),
    noun="elimination",
    doc="L and U of a with rows exchanged, in one matrix, and a last row: with which row each was exchanged",
)  # fmt: skip
eliminated_solution = declare(
    "eliminated_solution", "matrix", "eliminated b", infer=lambda eliminated, b, transposed: b,
    evaluate=lambda eliminated, b, transposed: of_each_matrix(
        lambda one, b: _solve_eliminated(one, b, transposed), eliminated, b
    ),
    call=WholeCall(
        ("solve_eliminated", "solve_eliminated_transposed"), lambda a, transposed: int(transposed),
        refusal=("linalg.solve", "regular: it is singular"),
    ),
    noun="solution",
    doc="the x with a x = b, or a' x = b if `transposed`, given what `eliminated` makes of a",
)  # fmt: skip
cofactor_matrix = declare(
    "cofactor_matrix", "decomposition", "a eliminated", infer=_infer_cofactors,
    evaluate=lambda a, eliminated: of_each_matrix(_cofactors_and_room, a),
    call=WholeCall(("cofactors",)),
    noun="cofactors",
    doc="the derivative of the determinant by each element, given what `eliminated` makes of a as well, and "
    "rows of room for it",
)  # fmt: skip
inverse_norm = declare(
    "inverse_norm", "matrix", "eliminated", infer=_infer_inverse_norm,
    evaluate=lambda eliminated: of_each_matrix(_inverse_norm, eliminated),
    call=WholeCall(("estimate_inverse_norm",)),
    noun="norm",
    doc="an estimate of the 1-norm of the inverse of a, given what `eliminated` makes of it: at the last "
    "place of three columns, which are room for it",
)  # fmt: skip
