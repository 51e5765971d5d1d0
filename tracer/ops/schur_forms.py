"""The Schur decomposition A = Z T Z', with an upper triangle T, and its derivative of different eigenvalues.

With K = Z' dZ, which is skew, and M = Z' dA Z the triangle changes by M + T K - K T, of which nothing is
below the diagonal. What is above the diagonal of K adds nothing there. So with the eigenvectors V of T, a
triangle as well, the part of K below is that of V D V^-1, where D is V^-1 M V over differences l[j] - l[i] of
eigenvalues.

A real T has blocks of two rows on its diagonal, for pairs of complex eigenvalues. "Below" is below the blocks
there, and LAPACK turns each block until the numbers on its diagonal are equal, which says how much K turns
it. Of complex numbers each column of Z may be multiplied by a number of size 1: what depends on that has no
derivative.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import GradientError
from ..operator import OWN_RULES, Array, declare
from ..spec import Spec, complex_dtype, spec_of
from .decompositions import (
    differences,
    finite,
    free_phase,
    in_planes,
    plane_of,
    quotient,
    rows_of,
    strictly_lower,
    with_diagonal,
)
from .elementwise import (
    absolute,
    conjugate,
    convert,
    equal,
    is_complex,
    less_equal,
    not_equal,
    returned,
    where,
    zeros_like,
)
from .linalg import adjoint, product, solve, transposed
from .matrices import infer_square, of_each_matrix
from .matrix_roots import schur_form, solve_triangles, split
from .reduction import sum_

BASIS, TRIANGLE = range(2)
VECTORS, VALUES = range(2)
"""Planes of the results."""
NEARLY = 1e-8
"""Share of its off-diagonal numbers by which a block differs from a rotation, if it counts as one."""


def _planes_of_square(name: str, of_dtype: Callable[[np.dtype], np.dtype]) -> Callable[[Spec], Spec]:
    require = infer_square(name)

    def infer(a: Spec) -> Spec:
        require(a)
        return Spec((*a.shape[:-2], 2, *a.shape[-2:]), of_dtype(a.dtype))

    return infer


def _evaluate_schur(a: np.ndarray) -> np.ndarray:
    if not a.size:
        return np.zeros(schur.infer(spec_of(a)).shape, a.dtype)
    return of_each_matrix(lambda one: np.stack(schur_form(one)), finite(a))


# --- eigenvectors of a triangle -----------------------------------------------------------------------------


def _evaluate_eigenvectors(t: np.ndarray) -> np.ndarray:
    if not t.size:
        return np.zeros(triangle_eigenvectors.infer(spec_of(t)).shape, complex_dtype(t.dtype))
    return of_each_matrix(_eigenvectors_of_one, t)


def _eigenvectors_of_one(t: np.ndarray) -> np.ndarray:
    try:
        vectors, values = _eigenvectors(t)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            "schur: eigenvalues are equal, or almost, so the decomposition has no derivative."
        ) from error
    return in_planes(t.astype(complex_dtype(t.dtype), copy=False), vectors, values[None])


def _eigenvectors(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """In columns, by halves, and the eigenvalues in the order of the diagonal."""
    size = len(t)
    if size == 1:
        return np.ones_like(t), t[0]
    if size == 2 and t[1, 0]:
        turn = 1j * np.sqrt(-t[0, 1] * t[1, 0])
        return np.array([[1, 1], [turn / t[0, 1], -turn / t[0, 1]]]), t[0, 0] + np.array([turn, -turn])
    at = split(t)
    first, second = _eigenvectors(t[:at, :at]), _eigenvectors(t[at:, at:])
    above = solve_triangles(t[:at, :at], -t[at:, at:], -t[:at, at:])
    vectors = np.zeros(t.shape, np.result_type(first[0], second[0]))
    vectors[:at, :at], vectors[:at, at:], vectors[at:, at:] = first[0], above @ second[0], second[0]
    return vectors, np.concatenate([first[1], second[1]])


def _eigenvectors_cotangent(g: Array, t: Array, y: Array, t_spec: Spec) -> Array:
    """Of vectors of any length: those who read them must not depend on it."""
    across, values = adjoint(plane_of(y, VECTORS)), rows_of(plane_of(y, VALUES), 0, 1)
    inside = quotient(product(across, plane_of(g, VECTORS)), conjugate(differences(values)))
    inside = with_diagonal(inside, rows_of(plane_of(g, VALUES), 0, 1))
    found = returned(solve(across, product(inside, across)), t_spec.dtype)
    return found - _below(found, t)


triangle_eigenvectors = declare(
    "triangle_eigenvectors", "eager", "t", infer=_planes_of_square("triangle_eigenvectors", complex_dtype),
    evaluate=_evaluate_eigenvectors, vjp={"t": _eigenvectors_cotangent}, of_complex=OWN_RULES,
    doc="eigenvectors of a triangle, as `schur` makes it, and eigenvalues in the order of the diagonal",
)  # fmt: skip


# --- the decomposition --------------------------------------------------------------------------------------


def _below(x: Array, triangle: Array) -> Array:
    """What is below the diagonal, or below the blocks of a real triangle."""
    below = strictly_lower(x)
    return below if is_complex(triangle) else where(equal(strictly_lower(triangle), 0.0), below, 0.0)


def _commutator(one: Array, other: Array) -> Array:
    return product(one, other) - product(other, one)


def _evaluate_free_turn(x: np.ndarray, is_rotation: np.ndarray) -> np.ndarray:
    if x.size and np.abs(x * is_rotation).max() > 0.01 * max(1.0, np.abs(x).max()):
        raise GradientError(
            "schur: a pair of eigenvalues has a plane in which every basis is as good, and the value that is "
            "differentiated depends on which one it is. Take what does not, as a function of the matrix."
        )
    return x.copy()


free_turn = declare(
    "free_turn", "eager", "x is_rotation", infer=lambda x, is_rotation: x, evaluate=_evaluate_free_turn,
    vjp={"x": lambda g: g},
    doc="x, which must be 0 where a matrix of ones and zeros is 1: else a cotangent depends on how far a "
    "block of a real triangle is turned, and has no gradient",
)  # fmt: skip


def _of_turned_blocks(turning: Array, triangle: Array) -> Array:
    """The cotangent on the diagonal of what turns each block until its numbers there are equal."""
    below, above = strictly_lower(triangle), strictly_lower(transposed(triangle))
    is_block = not_equal(below, 0.0)
    share = NEARLY * (absolute(below) + absolute(above))
    is_small = convert(less_equal(absolute(below + above), share), dtype=turning.dtype)
    is_rotation = where(is_block, is_small, 0.0)
    turning = free_turn(where(is_block, turning - transposed(turning), 0.0), is_rotation)
    is_turned = where(equal(is_rotation, 0.0), is_block, False)
    turned = where(is_turned, turning / where(is_turned, below + above, 1.0), 0.0)
    rank = len(turned.shape)
    of_rows, of_columns = (sum_(turned, dims=(rank - one,), keepdim=True) for one in (1, 2))
    both = transposed(of_rows) - of_columns
    return with_diagonal(zeros_like(turned), 0.5 * both)


def _schur_cotangent(g: Array, y: Array) -> Array:
    basis, triangle = plane_of(y, BASIS), plane_of(y, TRIANGLE)
    of_basis, of_triangle = plane_of(g, BASIS), plane_of(g, TRIANGLE)
    across = adjoint(triangle)
    of_triangle = of_triangle - _below(of_triangle, triangle)
    turning = product(adjoint(basis), of_basis) + _commutator(across, of_triangle)
    if is_complex(turning):
        turning = free_phase(turning, function="linalg.schur")
    else:
        of_blocks = _of_turned_blocks(turning, triangle)
        of_triangle = of_triangle + of_blocks
        turning = turning + _commutator(across, of_blocks)
    of_below = _below(turning - adjoint(turning), triangle)
    planes = triangle_eigenvectors(triangle)
    vectors, values = plane_of(planes, VECTORS), rows_of(plane_of(planes, VALUES), 0, 1)
    of_below = convert(of_below, dtype=vectors.dtype)
    inside = adjoint(solve(vectors, adjoint(product(adjoint(vectors), of_below))))
    inside = _below(inside, triangle) / conjugate(differences(values))
    moved = solve(adjoint(vectors), product(inside, adjoint(vectors)))
    return product(product(basis, of_triangle + returned(moved, triangle.dtype)), adjoint(basis))


schur = declare(
    "schur", "eager", "a", infer=_planes_of_square("schur", lambda dtype: dtype), evaluate=_evaluate_schur,
    vjp={"a": _schur_cotangent}, of_complex=OWN_RULES,
    doc="the unitary basis and the upper triangle of the Schur decomposition of a, of real matrices with "
    "blocks of two rows for pairs of complex eigenvalues",
)  # fmt: skip
