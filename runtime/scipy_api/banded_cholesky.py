"""Cholesky's factor of a banded matrix, on Tensors: that of one small matrix on its diagonal after the other.

With blocks as wide as the band the matrix has blocks on its diagonal and beside it alone, and so has its
factor: L[k, k] L[k, k]' = A[k, k] - L[k, k-1] L[k, k-1]' and L[k+1, k] L[k, k]' = A[k+1, k] (Golub and Van
Loan, Matrix Computations, 4.5). Its time grows with the rows, and so does that of its derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracer.errors import ShapeError
from ...tracer.ops import matrix_equations as equations
from ..functions import PUBLIC
from ..functions.common import conjugate, fail
from ..functions.loops.control_flow import scan
from ..functions.matrices import linalg
from ..functions.matrices.contraction import matmul
from ..functions.shapes.padding import pad
from ..numpy_api.values import averaged
from ..values.tensor import Tensor

where = PUBLIC["where"]
LEAST_BLOCK = 16
"""The rows of a block, at the least: of fewer a step takes longer than what it computes."""


def cholesky_banded(ab: Any, lower: bool = False) -> Tensor:
    """The factor of a positive definite matrix, in its bands; what these hold outside of it stays."""
    given = averaged(ab)
    if given.ndim != 2:
        found = tuple(given.shape)
        fail(ShapeError, f"scipy.linalg.cholesky_banded: the bands of one matrix expected, found {found}.")
    upper, size = given.shape[0] - 1, given.shape[1]
    if not size:
        return given
    factor = _factor(given if lower else conjugate(equations.transposed_bands(given, 0, upper)))
    result = factor if lower else conjugate(equations.transposed_bands(factor, upper, 0))
    rows, columns = np.indices(given.shape)
    is_inside = columns + rows < size if lower else columns + rows >= upper
    return where(is_inside, result, given)


def _factor(bands: Tensor) -> Tensor:
    """The lower bands of the factor, of the lower bands of the matrix."""
    below, size = bands.shape[0] - 1, bands.shape[1]
    width = max(below, LEAST_BLOCK)
    count = -(-size // width)
    main, beside = _blocks(bands, count, width)

    def step(taken: Tensor, blocks: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        on, under = blocks
        factor = linalg.cholesky(linalg.symmetric(on) - taken)
        rest = linalg.solve_triangular(factor.mH, under, upper=True, left=False)
        return matmul(rest, rest.mH), (factor, rest)

    _, factors = scan(step, main[0] * 0.0, (main, beside))
    rows, columns = np.indices((below + 1, size))
    rows += columns
    is_beside = rows // width != columns // width
    places = columns // width, rows % width, columns % width
    return where(is_beside, factors[1][places], factors[0][places])


def _blocks(bands: Tensor, count: int, width: int) -> tuple[Tensor, Tensor]:
    """The blocks on the diagonal, and those under them; the rows past the matrix are those of a unit one."""
    below, size = bands.shape[0] - 1, bands.shape[1]
    missing = count * width - size
    whole = pad(bands, (0, missing)) if missing else bands
    rows, columns = np.indices((width, width))
    starts = width * np.arange(count)[:, None, None]
    found = []
    for down in (rows - columns, rows - columns + width):
        is_band = (down >= 0) & (down <= below) & (columns + down + starts < size)
        found.append(where(is_band, whole[np.clip(down, 0, below), columns + starts], 0.0))
    is_past = (rows == columns) & (columns + starts >= size)
    return where(is_past, 1.0, found[0]), found[1]
