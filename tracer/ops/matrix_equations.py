"""Equations of matrices that NumPy and SciPy evaluate, for generated code as well.

The rules: Higham, Functions of Matrices (2008), appendix B; Golub and Pereyra (1973), by way of
`pinv`, for least squares.
"""

from __future__ import annotations

import numpy as np

from ..errors import GradientError, ShapeError
from ..operator import HOLOMORPHIC, OWN_RULES, Array, declare
from ..spec import Spec, spec_of
from .elementwise import conjugated, multiply
from .lazy import scipy_linalg
from .linalg import product, transposed
from .matrices import of_each_matrix, routine
from .movement import between, concatenate, pad
from .reduction import sum_

# --- least squares ------------------------------------------------------------------------------------------


def _infer_least_squares(a: Spec, b: Spec, rcond: float) -> Spec:
    *batch, rows, columns = a.shape
    if b.ndim != a.ndim or b.shape[:-1] != a.shape[:-1]:
        raise ShapeError(f"lstsq: sides with {rows} rows expected, found {b.shape} for {a.shape}.")
    return a.with_shape((*batch, columns * b.shape[-1] + min(rows, columns) + 1))


def _evaluate_least_squares(a: np.ndarray, b: np.ndarray, rcond: float) -> np.ndarray:
    found = np.empty(_infer_least_squares(spec_of(a), spec_of(b), rcond).shape, a.dtype)
    for place in np.ndindex(a.shape[:-2]):
        solution, _, rank, values = np.linalg.lstsq(a[place], b[place], rcond)
        found[place] = np.concatenate([solution.ravel(), values, [rank]])
    return found


least_squares = declare(
    "least_squares", "eager", "a b", infer=_infer_least_squares, evaluate=_evaluate_least_squares,
    vjp={name: lambda: _no_rule() for name in ("a", "b")}, of_complex=OWN_RULES,
    doc="the elements of the solution of a least squares problem, the singular values of a, and its rank",
)  # fmt: skip


def _no_rule() -> Array:
    raise GradientError("least_squares has no gradient; by way of pinv there is one.")


# --- equations ----------------------------------------------------------------------------------------------


def _infer_sylvester(a: Spec, b: Spec, q: Spec) -> Spec:
    batch = q.shape[:-2]
    if q.ndim < 2 or a.shape != (*batch, *q.shape[-2:-1] * 2) or b.shape != (*batch, *q.shape[-1:] * 2):
        raise ShapeError(f"solve_sylvester: shapes {a.shape}, {b.shape} and {q.shape} do not fit.")
    return q


LARGEST_RESIDUAL = 0.1
"""Of the equation, by the size of q, with which x is still a solution."""


def _solved_with_itself(a: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The x with a x + x a = q, by one Schur decomposition, where SciPy needs two."""
    triangle, basis = scipy_linalg().schur(a, output="real")
    adjoint = basis.conj().T
    solve = routine("trsyl", np.result_type(triangle, q))
    inner, scale, _ = solve(triangle, triangle, adjoint @ q @ basis)
    return basis @ (scale * inner) @ adjoint


def _sylvester(a: np.ndarray, b: np.ndarray, q: np.ndarray) -> np.ndarray:
    """SciPy's solution; LinAlgError where there is none, of which SciPy says nothing."""
    if not q.size:
        return q
    is_one = a is b or np.array_equal(a, b)
    found: np.ndarray = _solved_with_itself(a, q) if is_one else scipy_linalg().solve_sylvester(a, b, q)
    with np.errstate(all="ignore"):
        residual = np.abs(a @ found + found @ b - q).max()
    if not residual <= LARGEST_RESIDUAL * np.abs(q).max():
        raise np.linalg.LinAlgError("solve_sylvester: a and -b have an eigenvalue in common, or almost.")
    return found


sylvester = declare(
    "sylvester", "eager", "a b q", infer=_infer_sylvester, of_complex=HOLOMORPHIC,
    evaluate=lambda a, b, q: of_each_matrix(_sylvester, a, b, q).astype(q.dtype, copy=False),
    vjp={
        "a": lambda g, a, b, y: -1.0 * product(sylvester(transposed(a), transposed(b), g), transposed(y)),
        "b": lambda g, a, b, y: -1.0 * product(transposed(y), sylvester(transposed(a), transposed(b), g)),
        "q": lambda g, a, b: sylvester(transposed(a), transposed(b), g),
    },
    doc="the x with a x + x b = q",
)  # fmt: skip


def _infer_banded(bands: Spec, b: Spec, lower: int, upper: int) -> Spec:
    if bands.ndim != 2 or b.ndim != 2 or bands.shape != (lower + upper + 1, b.shape[0]):
        wanted = (lower + upper + 1, *b.shape[:1])
        raise ShapeError(f"solve_banded: bands of shape {wanted} expected, found {bands.shape}.")
    return b


def _diagonal(bands: Array, number: int, upper: int) -> Array:
    """The elements (i, i + number) of a banded matrix, as a row of its bands has them."""
    size = bands.shape[-1]
    row = between(bands, 0, upper - number, upper - number + 1)
    return between(row, 1, max(number, 0), size + min(number, 0))


def _as_band(row: Array, number: int) -> Array:
    """A row of bands whose elements (i, i + number) these are."""
    return pad(row, widths=((0, 0), (max(number, 0), max(-number, 0))), value=0.0)


def transposed_bands(bands: Array, lower: int, upper: int) -> Array:
    """The bands of the transposed matrix."""
    rows = [_as_band(_diagonal(bands, -one, upper), one) for one in range(lower, -upper - 1, -1)]
    return concatenate(*rows, dim=0)


def bands_of_product(x: Array, y: Array, lower: int, upper: int) -> Array:
    """Those of x y', for matrices of as many rows."""
    size, rows = x.shape[0], []
    for one in range(upper, -lower - 1, -1):
        above = between(x, 0, max(-one, 0), size - max(one, 0))
        beside = between(y, 0, max(one, 0), size + min(one, 0))
        elements = sum_(multiply(above, beside), dims=(1,), keepdim=True)
        rows.append(_as_band(transposed(elements), one))
    return concatenate(*rows, dim=0)


def _across(bands: Array, g: Array, lower: int, upper: int) -> Array:
    return banded_solution(transposed_bands(bands, lower, upper), g, lower=upper, upper=lower)


banded_solution = declare(
    "banded_solution", "eager", "bands b", infer=_infer_banded, of_complex=HOLOMORPHIC,
    evaluate=lambda bands, b, lower, upper: scipy_linalg().solve_banded((lower, upper), bands, b),
    vjp={
        "bands": lambda g, bands, y, lower, upper: -1.0
        * bands_of_product(_across(bands, g, lower, upper), y, lower, upper),
        "b": lambda g, bands, lower, upper: _across(bands, g, lower, upper),
    },
    doc="the x with a x = b, for a matrix of which a few diagonals are not 0",
)  # fmt: skip


def _definite_cotangent(g: Array, bands: Array, y: Array) -> Array:
    """Of the lower diagonals, which stand for the upper ones as well, of complex numbers conjugated."""
    across, lower = definite_banded_solution(bands, g), bands.shape[0] - 1
    one, other = (across, conjugated(y)), (y, conjugated(across))
    both = bands_of_product(*one, lower, 0) + bands_of_product(*other, lower, 0)
    main = between(both, 0, 0, 1)
    below = between(both, 0, 1, lower + 1)
    return -1.0 * concatenate(0.5 * main, below, dim=0)


definite_banded_solution = declare(
    "definite_banded_solution", "eager", "bands b",
    infer=lambda bands, b: _infer_banded(bands, b, bands.shape[0] - 1, 0),
    evaluate=lambda bands, b: scipy_linalg().solveh_banded(bands, b, lower=True),
    vjp={"bands": _definite_cotangent, "b": lambda g, bands: definite_banded_solution(bands, g)},
    of_complex=OWN_RULES,
    doc="the x with a x = b, for the diagonal and the diagonals below it of a positive definite matrix",
)  # fmt: skip
