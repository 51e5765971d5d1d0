"""The square root and the logarithm of a matrix, and their derivatives, by one Schur decomposition.

SciPy computes roots of the triangle, of which the logarithm is made. The derivatives are those of the same
steps: Higham, Functions of Matrices (2008), chapters 6 and 11; Al-Mohy, Higham and Relton, "Computing the
Frechet derivative of the matrix logarithm and estimating the condition number" (2013). Equations of triangles
by halves: Jonsson and Kagstrom, "Recursive blocked algorithms for solving triangular systems" (2002).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..operator import HOLOMORPHIC, Array, Operator, declare
from ..records import record
from ..spec import spec_of
from .decompositions import plane_of
from .exponentials import beside, doubles, of_blocks
from .lazy import scipy_linalg
from .linalg import transposed
from .matrices import blas_routine, infer_square, of_each_matrix, routine

VALUE, BASIS, TRIANGLE, ROOT, COUNT = range(5)
"""Planes of the parts: the function of the matrix, its Schur decomposition, and the root of the triangle by
which the function of that was found, of so many roots of roots: the first number of the last plane."""
SMALL_EQUATION = 32
"""Rows and columns up to which LAPACK solves equations of triangles."""
LARGEST_DISTANCE = 0.25
"""From the unit matrix at which the quadrature of the logarithm is exact to the last digit."""
MOST_ROOTS = 100
_PLACES, _SHARES = np.polynomial.legendre.leggauss(8)
NODES, WEIGHTS = 0.5 + 0.5 * _PLACES, 0.5 * _SHARES


def schur_form(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A unitary basis and an upper triangle, of real matrices with blocks of two on its diagonal."""
    gees = partial(routine("gees", a.dtype), lambda x, y=None: None, a)
    room = int(gees(lwork=-1)[-2][0].real) if len(a) > SMALL_EQUATION else 3 * len(a)  # for blocks of columns
    triangle, *_, basis, _, info = gees(lwork=room)
    if info:
        raise np.linalg.LinAlgError("a matrix is not one for which LAPACK's iteration converges")
    return basis, triangle


def solve_triangles(one: np.ndarray, other: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The x with one x + x other = right, for triangles as `schur_form` makes them."""
    rows, columns = right.shape
    if max(rows, columns) <= SMALL_EQUATION:
        found, scale, info = routine("trsyl", right.dtype)(one, other, right)
        if info:
            raise np.linalg.LinAlgError("eigenvalues of the two triangles add up to 0, or almost")
        return found / scale
    if rows >= columns:
        at = split(one)
        below = solve_triangles(one[at:, at:], other, right[at:])
        above = solve_triangles(one[:at, :at], other, right[:at] - one[:at, at:] @ below)
        return np.concatenate([above, below])
    at = split(other)
    left = solve_triangles(one, other[:at, :at], right[:, :at])
    beyond = solve_triangles(one, other[at:, at:], right[:, at:] - left @ other[:at, at:])
    return np.concatenate([left, beyond], 1)


def split(triangle: np.ndarray) -> int:
    """Half of its rows, but no half of a block."""
    half = len(triangle) // 2
    return half + bool(triangle[half, half - 1])


def real_where_real(name: str, a: np.ndarray, found: np.ndarray) -> np.ndarray:
    """LinAlgError where a function is complex of a real matrix."""
    if found.dtype.kind == "c" and a.dtype.kind != "c":
        raise np.linalg.LinAlgError(
            f"{name}: of a real matrix with negative eigenvalues it is complex. Make the matrix complex: "
            "a.astype(complex)."
        )
    return found


def _eigenvalues_of(triangle: np.ndarray) -> np.ndarray:
    """Complex numbers, in the order of the diagonal; blocks have equal numbers there."""
    values = np.diagonal(triangle).astype(complex)
    (first,) = np.diagonal(triangle, -1).nonzero()
    turns = np.sqrt(-(triangle[first, first + 1] * triangle[first + 1, first]).real)
    values.imag[first] += turns
    values.imag[first + 1] -= turns
    return values


def _solver(triangle: np.ndarray) -> Callable[[np.ndarray, bool], np.ndarray]:
    """What multiplies a matrix with the inverse of a triangle from the left, or from the right."""
    multiply = blas_routine("trsm", triangle.dtype)
    (one,) = np.diagonal(triangle, -1).nonzero()
    if not len(one):
        return lambda sides, right: multiply(1.0, triangle, sides, side=int(right))
    other, along = one + 1, np.diagonal(triangle)
    size = along[one] * along[other] - triangle[one, other] * triangle[other, one]
    with np.errstate(divide="ignore"):
        inverse = 1.0 / along
    inverse[one], inverse[other] = along[other] / size, along[one] / size
    above, below = -triangle[one, other] / size, -triangle[other, one] / size

    def by_blocks(sides: np.ndarray) -> np.ndarray:
        found = np.multiply(inverse[:, None], sides, order="F")
        found[one] += above[:, None] * sides[other]
        found[other] += below[:, None] * sides[one]
        return found

    unit = by_blocks(triangle)  # with ones on its diagonal, and nothing below

    def solve(sides: np.ndarray, right: bool) -> np.ndarray:
        if not right:
            return multiply(1.0, unit, by_blocks(sides), diag=1, overwrite_b=1)
        return by_turned_blocks(multiply(1.0, unit, sides, side=1, diag=1))

    def by_turned_blocks(sides: np.ndarray) -> np.ndarray:
        found = sides * inverse
        found[:, other] += sides[:, one] * above
        found[:, one] += sides[:, other] * below
        return found

    return solve


def _root(a: np.ndarray) -> np.ndarray:
    return real_where_real("sqrtm", a, scipy_linalg().sqrtm(a))


def _root_of_triangle(triangle: np.ndarray) -> np.ndarray:
    """A triangle as well."""
    found = _root(triangle)
    found[np.tri(len(found), k=-1, dtype=bool) & (triangle == 0)] = 0
    return found


Found = tuple[np.ndarray, np.ndarray, int]
"""A function of a triangle; a root of the triangle, and of how many roots."""


def _root_with_itself(triangle: np.ndarray) -> Found:
    root = _root_of_triangle(triangle)
    return root, root, 1


def _logarithm(a: np.ndarray) -> np.ndarray:
    if not np.isfinite(a).all():
        return scipy_linalg().logm(a)
    basis, triangle = schur_form(a)
    return basis @ _logarithm_by_root(triangle)[0] @ basis.conj().T


SINGULAR = "logm: the matrix is singular, so it has no logarithm."


def _logarithm_by_root(triangle: np.ndarray) -> Found:
    """By roots until they are 1 + x, x small, and the integral of (1 + t x)^-1 x. The root given is x."""
    values = _eigenvalues_of(triangle)
    if not values.all():
        raise np.linalg.LinAlgError(SINGULAR)
    logarithms, root, count = np.log(values), triangle, 0
    if triangle.dtype.kind != "c" and ((values.imag == 0) & (values.real < 0)).any():
        real_where_real("logm", triangle, logarithms)  # which raises
    unit = np.eye(len(triangle), dtype=triangle.dtype)
    while np.abs(root - unit).sum(0).max() > LARGEST_DISTANCE and count < MOST_ROOTS:
        root, count = _root_of_triangle(root), count + 1
    small = np.asfortranarray(root - unit)
    _set_diagonal(small, np.expm1(logarithms * 0.5**count))  # of which the difference has lost digits
    found = np.zeros_like(small)
    for node, weight in zip(NODES, WEIGHTS):
        found += (weight * 2.0**count) * _solver(unit + node * small)(small, False)
    _set_diagonal(found, logarithms)
    return found, small, count


def _set_diagonal(x: np.ndarray, values: np.ndarray) -> None:
    np.fill_diagonal(x, values if x.dtype.kind == "c" else values.real)


def _block_diagonal(x: np.ndarray) -> np.ndarray:
    """[[x, 0], [0, x]]"""
    return np.kron(np.eye(2, dtype=x.dtype), x)


def _derivative_of_root(direction: np.ndarray, root: np.ndarray, count: int) -> np.ndarray:
    try:
        return solve_triangles(root, root, direction)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            "sqrtm: the matrix is singular, or almost, so its root has no derivative."
        ) from error


def _derivative_of_logarithm(direction: np.ndarray, small: np.ndarray, count: int) -> np.ndarray:
    """Through the roots, and the integral of (1 + t x)^-1 direction (1 + t x)^-1."""
    unit = np.eye(len(small), dtype=small.dtype)
    roots = [unit + small]
    while len(roots) < count:
        roots.append(roots[-1] @ roots[-1])
    for root in reversed(roots[:count]):
        direction = solve_triangles(root, root, direction)
    total = np.zeros_like(direction)
    for node, weight in zip(NODES, WEIGHTS):
        solve = _solver(unit + node * small)
        total += (weight * 2.0**count) * solve(solve(direction, False), True)
    return total


@record(frozen=True, eq=False)
class MatrixFunction:
    """A function of square matrices: `whole`; `parts`, by which `of_parts` and a `derivative` are found.

    Second derivatives are those of [[a, direction], [0, a]], whose parts are found by those of a
    (`parts_of_blocks`): an eigenvalue at a cut, where rounding alone says on which side, is on the same side.
    """

    whole: Operator
    parts: Operator
    parts_of_blocks: Operator
    of_parts: Operator
    derivative: Operator


def _matrix_function(
    name: str,
    compute: Callable[[np.ndarray], np.ndarray],
    of_triangle: Callable[[np.ndarray], Found],
    differentiate: Callable[[np.ndarray, np.ndarray, int], np.ndarray],
    doc: str,
) -> MatrixFunction:
    """Declare a function of matrices.

    Args:
        compute: of a matrix.
        of_triangle: of a triangle, and the root by which that was found.
        differentiate: of a direction and such a root the derivative there.
    """

    def of_one(a: np.ndarray) -> np.ndarray:
        return compute(a) if a.size else a

    def parts_of_one(a: np.ndarray) -> np.ndarray:
        if not a.size:
            return np.zeros(parts.infer(spec_of(a)).shape, a.dtype)
        if not np.isfinite(a).all():
            return np.stack([compute(a), *[np.full_like(a, np.nan)] * COUNT])
        basis, triangle = schur_form(a)
        found, root, count = of_triangle(triangle)
        counted = np.zeros_like(a)
        counted[0, 0] = count
        return np.stack([basis @ found @ basis.conj().T, basis, triangle, root, counted])

    def parts_of_one_block(direction: np.ndarray, parts: np.ndarray) -> np.ndarray:
        if not direction.size:
            return np.zeros(parts_of_blocks.infer(spec_of(direction), spec_of(parts)).shape, parts.dtype)
        _, basis, triangle, root, counted = (_block_diagonal(plane) for plane in parts)
        found = np.full((COUNT + 1, *basis.shape), np.nan, basis.dtype)
        if np.isfinite(root).all():
            size = len(direction)
            triangle[:size, size:] = basis[:size, :size].conj().T @ direction @ basis[:size, :size]
            value, root, counted[0, 0] = of_triangle(triangle)
            found[:] = basis @ value @ basis.conj().T, basis, triangle, root, counted
        return found

    def derivative_of_one(direction: np.ndarray, parts: np.ndarray) -> np.ndarray:
        if not direction.size:
            return direction
        _, basis, _, root, counted = parts
        if not np.isfinite(root).all():
            raise np.linalg.LinAlgError(f"{name}: of a matrix with nan or inf it has no derivative.")
        adjoint = basis.conj().T
        inner = np.asfortranarray(adjoint @ direction.astype(basis.dtype, copy=False) @ basis)
        return basis @ differentiate(inner, root, int(counted[0, 0].real)) @ adjoint

    def cotangent(g: Array, a: Array, parts: Array) -> Array:
        return transposed(derivative(a, transposed(g), parts))

    def of_each(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        def evaluate(*given: np.ndarray) -> np.ndarray:
            return of_each_matrix(function, *map(doubles, given)).astype(given[0].dtype, copy=False)

        return evaluate

    infer = infer_square(name)
    parts = declare(
        f"{name}_parts", "eager", "a", evaluate=of_each(parts_of_one), of_complex=HOLOMORPHIC,
        infer=lambda a: infer(a).with_shape((*a.shape[:-2], COUNT + 1, *a.shape[-2:])),
        doc=f"`{name}`, the basis and the triangle of the Schur decomposition of a, and the root by which it "
        "was found",
    )  # fmt: skip
    parts_of_blocks = declare(
        f"{name}_parts_of_blocks", "eager", "direction parts", evaluate=of_each(parts_of_one_block),
        infer=lambda direction, parts: parts.with_shape(
            (*parts.shape[:-2], *(2 * extent for extent in parts.shape[-2:]))
        ),
        of_complex=HOLOMORPHIC, doc=f"`{name}_parts` of [[a, direction], [0, a]], given those of a",
    )  # fmt: skip
    derivative = declare(
        f"{name}_derivative", "eager", "a direction parts", of_complex=HOLOMORPHIC,
        infer=lambda a, direction, parts: direction,
        evaluate=lambda a, direction, parts: of_each(derivative_of_one)(direction, parts),
        vjp={
            "a": lambda g, a, direction, parts: transposed(
                of_blocks(
                    lambda whole: derivative(
                        whole, beside(direction), parts_of_blocks(transposed(g), parts)
                    ),
                    a,
                    transposed(g),
                )
            ),
            "direction": lambda g, a, parts: cotangent(g, a, parts),
        },
        doc=f"the derivative of `{name}` in a direction, given what `{name}_parts` makes of a",
    )  # fmt: skip
    of_parts = declare(
        f"{name}_of_parts", "composite", "a parts", infer=lambda a, parts: a, needs_own_rule=True,
        evaluate=lambda a, parts: parts[..., VALUE, :, :].copy(),
        body=lambda a, parts: plane_of(parts, VALUE), vjp={"a": cotangent}, of_complex=HOLOMORPHIC,
        doc=f"`{name}`, given what `{name}_parts` makes of a",
    )  # fmt: skip
    whole = declare(
        name, "eager", "a", infer=infer, evaluate=of_each(of_one), of_complex=HOLOMORPHIC,
        vjp={"a": lambda g, a: cotangent(g, a, parts(a))}, doc=doc,
    )  # fmt: skip
    return MatrixFunction(whole, parts, parts_of_blocks, of_parts, derivative)


square_root = _matrix_function(
    "sqrtm", _root, _root_with_itself, _derivative_of_root,
    "the matrix whose square a matrix is, with eigenvalues of positive real parts",
)  # fmt: skip
logarithm = _matrix_function(
    "logm", _logarithm, _logarithm_by_root, _derivative_of_logarithm,
    "the matrix whose exponential a matrix is, with eigenvalues of imaginary parts between -pi and pi",
)  # fmt: skip
FUNCTIONS = (square_root, logarithm)
