"""Factors as LAPACK leaves them: reflections of general matrices, and L D L' of symmetric ones.

SciPy calls it. One array holds all that a routine gives; none has a derivative.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import GradientError
from ..operator import OWN_RULES, Array, declare
from ..spec import Spec
from .decompositions import require_matrix
from .matrices import of_each_matrix, require_sides, require_square, routine


def _no_rule(function: str, instead: str) -> Array:
    raise GradientError(f"{function}() has no derivative; {instead}, or detach() its argument.")


def _of_batch(
    compute: Callable[[np.ndarray], np.ndarray], infer: Callable[[Spec], Spec], a: np.ndarray
) -> np.ndarray:
    """`of_each_matrix`, also of a batch of none."""
    if 0 in a.shape[:-2]:
        return np.zeros(infer(Spec(a.shape, a.dtype)).shape, a.dtype)
    return of_each_matrix(compute, a)


def _infer_reflections(a: Spec) -> Spec:
    require_matrix("geqrf", a)
    return a.with_shape((*a.shape[:-2], a.shape[-2] + 1, a.shape[-1]))


def _reflections(a: np.ndarray) -> np.ndarray:
    found = np.zeros((a.shape[-2] + 1, a.shape[-1]), a.dtype)
    if a.size:
        found[:-1], factors, *_ = routine("geqrf", a.dtype)(a)
        found[-1, : len(factors)] = factors
    return found


reflections = declare(
    "reflections", "eager", "a", infer=_infer_reflections, of_complex=OWN_RULES,
    evaluate=lambda a: _of_batch(_reflections, _infer_reflections, a),
    vjp={"a": lambda: _no_rule("geqrf", "use linalg.qr")},
    doc="R, below its diagonal the vectors of the reflections that make it of a matrix, and a row of their "
    "factors",
)  # fmt: skip

# --- symmetric matrices -------------------------------------------------------------------------------------


def _infer_symmetric(a: Spec, hermitian: bool) -> Spec:
    require_square("ldl_factor", a)
    return a.with_shape((*a.shape[:-2], a.shape[-2] + 2, a.shape[-1]))


def _of_symmetric(name: str, a: np.ndarray, hermitian: bool) -> str:
    return f"{'he' if hermitian and a.dtype.kind == 'c' else 'sy'}{name}"


def _symmetric_factors(a: np.ndarray, hermitian: bool) -> np.ndarray:
    size = a.shape[-1]
    found = np.zeros((size + 2, size), a.dtype)
    if size:
        both, pivots, info = routine(_of_symmetric("trf", a, hermitian), a.dtype)(a, lower=1)
        found[:size], found[size], found[size + 1, 0] = np.tril(both), pivots, info
    return found


def _symmetric_solution(factors: np.ndarray, b: np.ndarray, hermitian: bool) -> np.ndarray:
    if not b.size:
        return b
    size, solve = factors.shape[-1], routine(_of_symmetric("trs", factors, hermitian), factors.dtype)
    return solve(factors[:size], factors[size].real.astype(np.int32), b, lower=1)[0]


symmetric_factors = declare(
    "symmetric_factors", "eager", "a", infer=_infer_symmetric, of_complex=OWN_RULES,
    evaluate=lambda a, hermitian: _of_batch(
        lambda one: _symmetric_factors(one, hermitian), lambda one: _infer_symmetric(one, hermitian), a
    ),
    vjp={"a": lambda: _no_rule("linalg.ldl_factor", "use linalg.cholesky or linalg.lu")},
    doc="L and D of symmetric matrices, of which the lower triangle is read, in one; a row of the exchanges "
    "of rows; and a row whose first element is the first place of a 0 in D, from 1, or 0",
)  # fmt: skip
symmetric_solution = declare(
    "symmetric_solution", "eager", "factors b", of_complex=OWN_RULES,
    infer=lambda factors, b, hermitian: require_sides(
        "ldl_solve", factors.with_shape((*factors.shape[:-2], factors.shape[-1], factors.shape[-1])), b
    ),
    evaluate=lambda factors, b, hermitian: of_each_matrix(
        lambda one, sides: _symmetric_solution(one, sides, hermitian), factors, b
    ),
    vjp=dict.fromkeys(("factors", "b"), lambda: _no_rule("linalg.ldl_solve", "use linalg.solve")),
    doc="the x with a x = b, given L and D of a and a row of the exchanges of rows",
)  # fmt: skip
