"""The square root and the logarithm of a matrix, and their derivatives, by one Schur decomposition.

SciPy computes both of the triangle. The derivatives are made of it as well: Higham, Functions of Matrices
(2008), chapters 6 and 11; Al-Mohy, Higham and Relton, "Computing the Frechet derivative of the matrix
logarithm and estimating the condition number" (2013). Equations of triangles by halves: Jonsson and Kagstrom,
"Recursive blocked algorithms for solving triangular systems" (2002).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..operator import HOLOMORPHIC, Array, Operator, declare
from ..records import record
from ..spec import spec_of
from .decompositions import plane_of
from .exponentials import beside, doubles, of_blocks
from .lazy import scipy_linalg
from .linalg import transposed
from .matrices import infer_square, of_each_matrix, routine

VALUE, BASIS, TRIANGLE = range(3)
"""Planes of the parts: the function of the matrix, and its Schur decomposition."""
SMALL_EQUATION = 24
"""Rows and columns up to which LAPACK solves equations of triangles."""
LARGEST_DISTANCE = 0.25
"""From the unit matrix at which the quadrature of the logarithm's derivative is exact to the last digit."""
MOST_ROOTS = 100
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


def schur_form(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A unitary basis and an upper triangle, of real matrices with blocks of two on its diagonal."""
    triangle, *_, basis, _, info = routine("gees", a.dtype)(lambda x, y=None: None, a)
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


def _root(a: np.ndarray) -> np.ndarray:
    return real_where_real("sqrtm", a, scipy_linalg().sqrtm(a))


def _root_of_triangle(triangle: np.ndarray) -> np.ndarray:
    """A triangle as well."""
    found = _root(triangle)
    found[np.tri(len(found), k=-1, dtype=bool) & (triangle == 0)] = 0
    return found


def _logarithm(a: np.ndarray) -> np.ndarray:
    if np.isneginf(np.linalg.slogdet(a)[1]):  # of which SciPy gives numbers, with a warning
        raise np.linalg.LinAlgError("logm: the matrix is singular, so it has no logarithm.")
    return real_where_real("logm", a, scipy_linalg().logm(a))


def _derivative_of_root(direction: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    root = _root_of_triangle(triangle)
    try:
        return solve_triangles(root, root, direction)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            "sqrtm: the matrix is singular, or almost, so its root has no derivative."
        ) from error


def _derivative_of_logarithm(direction: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    """By roots until they are 1 + x, x small, and the integral of (1 + t x)^-1 direction (1 + t x)^-1."""
    unit, roots = np.eye(len(triangle), dtype=triangle.dtype), 0
    while np.abs(triangle - unit).sum(0).max() > LARGEST_DISTANCE and roots < MOST_ROOTS:
        triangle, roots = _root_of_triangle(triangle), roots + 1
        direction = solve_triangles(triangle, triangle, direction)
    total = np.zeros_like(direction)
    factor, solve = (routine(name, direction.dtype) for name in ("getrf", "getrs"))
    for node, weight in zip(NODES, WEIGHTS):
        factors, places, _ = factor(unit + (0.5 + 0.5 * node) * (triangle - unit))
        half, _ = solve(factors, places, direction)
        across, _ = solve(factors, places, half.T, trans=1)
        total += (0.5 * weight * 2.0**roots) * across.T
    return total


@record(frozen=True, eq=False)
class MatrixFunction:
    """A function of square matrices: `whole`; `parts`, by which `of_parts` and a `derivative` are found."""

    whole: Operator
    parts: Operator
    of_parts: Operator
    derivative: Operator


def _matrix_function(
    name: str,
    compute: Callable[[np.ndarray], np.ndarray],
    differentiate: Callable[[np.ndarray, np.ndarray], np.ndarray],
    doc: str,
) -> MatrixFunction:
    """Declare a function of matrices.

    Args:
        compute: of a matrix.
        differentiate: of a direction and a triangle the derivative there.
    """

    def of_one(a: np.ndarray) -> np.ndarray:
        return compute(a) if a.size else a

    def parts_of_one(a: np.ndarray) -> np.ndarray:
        if not a.size:
            return np.zeros(parts.infer(spec_of(a)).shape, a.dtype)
        if not np.isfinite(a).all():
            return np.stack([compute(a), *[np.full_like(a, np.nan)] * 2])
        basis, triangle = schur_form(a)
        return np.stack([basis @ compute(triangle) @ basis.conj().T, basis, triangle])

    def derivative_of_one(direction: np.ndarray, parts: np.ndarray) -> np.ndarray:
        if not direction.size:
            return direction
        _, basis, triangle = parts
        if not np.isfinite(triangle).all():
            raise np.linalg.LinAlgError(f"{name}: of a matrix with nan or inf it has no derivative.")
        adjoint = basis.conj().T
        inner = np.asfortranarray(adjoint @ direction.astype(basis.dtype, copy=False) @ basis)
        return basis @ differentiate(inner, triangle) @ adjoint

    def cotangent(g: Array, a: Array, parts: Array) -> Array:
        return transposed(derivative(a, transposed(g), parts))

    def of_each(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
        def evaluate(*given: np.ndarray) -> np.ndarray:
            return of_each_matrix(function, *map(doubles, given)).astype(given[0].dtype, copy=False)

        return evaluate

    infer = infer_square(name)
    parts = declare(
        f"{name}_parts", "eager", "a", evaluate=of_each(parts_of_one), of_complex=HOLOMORPHIC,
        infer=lambda a: infer(a).with_shape((*a.shape[:-2], 3, *a.shape[-2:])),
        doc=f"`{name}`, and the basis and the triangle of the Schur decomposition of a",
    )  # fmt: skip
    derivative = declare(
        f"{name}_derivative", "eager", "a direction parts", of_complex=HOLOMORPHIC,
        infer=lambda a, direction, parts: direction,
        evaluate=lambda a, direction, parts: of_each(derivative_of_one)(direction, parts),
        vjp={
            "a": lambda g, a, direction: of_blocks(
                lambda whole: derivative(whole, beside(transposed(direction)), parts(whole)), transposed(a), g
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
    return MatrixFunction(whole, parts, of_parts, derivative)


square_root = _matrix_function(
    "sqrtm", _root, _derivative_of_root,
    "the matrix whose square a matrix is, with eigenvalues of positive real parts",
)  # fmt: skip
logarithm = _matrix_function(
    "logm", _logarithm, _derivative_of_logarithm,
    "the matrix whose exponential a matrix is, with eigenvalues of imaginary parts between -pi and pi",
)  # fmt: skip
FUNCTIONS = (square_root, logarithm)
