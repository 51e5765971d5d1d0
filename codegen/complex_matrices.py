"""Linear algebra of complex matrices as generated code calls it: plain loops, and BLAS, of pairs of numbers.

The last dimension has the real and the imaginary part, so an array has the memory of complex numbers. Blocks
as in `matrices.py`; as in LAPACK, a pivot is chosen by the sum of its parts' sizes.
"""

from __future__ import annotations

import numpy as np
from numpy import int64

from ..tracer.lapack import ROUTINES
from .blas import gemm_of_pairs
from .vector_math import log, sqrt

BLOCK = 8
"""As in `matrices.py`; the loops take longer than those of real numbers."""
complex_triangular_factor = ROUTINES["complex_triangular_factor"]


def multiply_pairs(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """a @ b into `out`.

    Args:
        a, b, out: shapes (n, k, 2), (k, m, 2) and (n, m, 2).

    >>> multiply_pairs(a[i], b[i], products)
    """
    gemm_of_pairs(1.0, False, False, a, b, 0.0, out)


def multiply_by_adjoint(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """a @ b.mH into `out`.

    Args:
        a, b, out: shapes (n, k, 2), (m, k, 2) and (n, m, 2).

    >>> multiply_by_adjoint(a[i], b[i], products)
    """
    gemm_of_pairs(1.0, False, True, a, b, 0.0, out)


def multiply_adjoint(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """a.mH @ b into `out`.

    Args:
        a, b, out: shapes (k, n, 2), (k, m, 2) and (n, m, 2).

    >>> multiply_adjoint(a[i], b[i], products)
    """
    gemm_of_pairs(1.0, True, False, a, b, 0.0, out)


def multiply_adjoints(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """a.mH @ b.mH into `out`.

    Args:
        a, b, out: shapes (k, n, 2), (m, k, 2) and (n, m, 2).

    >>> multiply_adjoints(a[i], b[i], products)
    """
    gemm_of_pairs(1.0, True, True, a, b, 0.0, out)


# --- parts of the algorithms --------------------------------------------------------------------------------


def copy_pairs(a: np.ndarray, out: np.ndarray) -> None:
    """A matrix into the first rows of another."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j, 0] = a[i, j, 0]
            out[i, j, 1] = a[i, j, 1]


def exchange_pairs(out: np.ndarray, one: int, other: int | int64) -> None:
    """Exchange two rows."""
    if one != other:
        for j in range(out.shape[1]):
            for part in range(2):
                kept = out[one, j, part]
                out[one, j, part] = out[other, j, part]
                out[other, j, part] = kept


def subtract_row(out: np.ndarray, i: int, k: int, re: float, im: float, first: int, stop: int) -> None:
    """From a part of row `i` a complex number times row `k`."""
    for j in range(first, stop):
        x = out[k, j, 0]
        y = out[k, j, 1]
        out[i, j, 0] -= re * x - im * y
        out[i, j, 1] -= re * y + im * x


def divide_row(out: np.ndarray, i: int, re: float, im: float) -> None:
    """A row by a complex number."""
    scale = abs(re) + abs(im)
    x = re / scale
    y = im / scale
    size = (x * x + y * y) * scale
    for j in range(out.shape[1]):
        real = out[i, j, 0]
        imag = out[i, j, 1]
        out[i, j, 0] = (real * x + imag * y) / size
        out[i, j, 1] = (imag * x - real * y) / size


def substitute_pairs_forward(a: np.ndarray, out: np.ndarray, adjoint: bool, is_unit: bool) -> None:
    """Solve in place with the lower triangle of `a`, or its adjoint; `is_unit`: with ones on the diagonal."""
    size = out.shape[0]
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        if start > 0:
            if adjoint:
                gemm_of_pairs(-1.0, True, False, a[:start, start:stop], out[:start], 1.0, out[start:stop])
            else:
                gemm_of_pairs(-1.0, False, False, a[start:stop, :start], out[:start], 1.0, out[start:stop])
        for i in range(start, stop):
            solve_row_of_pairs(a, out, i, start, i, adjoint, is_unit)


def substitute_pairs_backward(a: np.ndarray, out: np.ndarray, adjoint: bool, is_unit: bool) -> None:
    """Solve in place with the upper triangle of `a`, or its adjoint; `is_unit`: with ones on the diagonal."""
    size = out.shape[0]
    for before in range(0, size, BLOCK):
        stop = size - before
        start = max(stop - BLOCK, 0)
        if before > 0:
            if adjoint:
                gemm_of_pairs(-1.0, True, False, a[stop:size, start:stop], out[stop:], 1.0, out[start:stop])
            else:
                gemm_of_pairs(
                    -1.0, False, False, a[start:stop, stop:size], out[stop:], 1.0, out[start:stop]
                )
        for below in range(stop - start):
            i = stop - 1 - below
            solve_row_of_pairs(a, out, i, i + 1, stop, adjoint, is_unit)


def solve_row_of_pairs(
    a: np.ndarray, out: np.ndarray, i: int, first: int, stop: int, adjoint: bool, is_unit: bool
) -> None:
    """Row `i` of the solution in place, from the rows `first` to `stop`."""
    for k in range(first, stop):
        re = a[k, i, 0] if adjoint else a[i, k, 0]
        im = -a[k, i, 1] if adjoint else a[i, k, 1]
        subtract_row(out, i, k, re, im, 0, out.shape[1])
    if not is_unit:
        divide_row(out, i, a[i, i, 0], -a[i, i, 1] if adjoint else a[i, i, 1])


# --- equations ----------------------------------------------------------------------------------------------


def eliminate_pairs(a: np.ndarray, out: np.ndarray) -> None:
    """L, without its ones, and U of the matrix `a` with rows exchanged, into the first rows of `out`.

    The last row of `out`, one more than `a` has, says with which row each was exchanged, one after the other.

    Args:
        a: shape (n, n, 2).
        out: shape (n + 1, n, 2).

    >>> eliminate_pairs(a, eliminated)
    """
    size = a.shape[0]
    copy_pairs(a, out)
    eliminate_rows_of_pairs(out[:size], out[size, :, :])


def eliminate_rows_of_pairs(out: np.ndarray, exchanged: np.ndarray) -> None:
    """L, without its ones, and U of a matrix of any shape in place.

    `exchanged` says with which row each is exchanged, one after the other.
    """
    rows = out.shape[0]
    columns = out.shape[1]
    count = min(rows, columns)
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        for k in range(start, stop):
            place = k
            largest = abs(out[k, k, 0]) + abs(out[k, k, 1])
            for i in range(k + 1, rows):
                found = abs(out[i, k, 0]) + abs(out[i, k, 1])
                if found > largest:
                    largest = found
                    place = i
            exchanged[k, 0] = place
            exchanged[k, 1] = 0.0
            exchange_pairs(out, k, place)
            if largest != 0.0:
                x = out[k, k, 0] / largest
                y = out[k, k, 1] / largest
                square = (x * x + y * y) * largest
                for i in range(k + 1, rows):
                    re = (out[i, k, 0] * x + out[i, k, 1] * y) / square
                    im = (out[i, k, 1] * x - out[i, k, 0] * y) / square
                    out[i, k, 0] = re
                    out[i, k, 1] = im
                    subtract_row(out, i, k, re, im, k + 1, stop)
        if stop < columns:
            for i in range(start + 1, stop):
                for k in range(start, i):
                    subtract_row(out, i, k, out[i, k, 0], out[i, k, 1], stop, columns)
            if stop < rows:
                gemm_of_pairs(
                    -1.0, False, False, out[stop:, start:stop], out[start:stop, stop:], 1.0, out[stop:, stop:]
                )


def determine_pairs(a: np.ndarray, out: np.ndarray) -> None:
    """What `eliminate_pairs` makes of a matrix, and behind it the determinant, its sign and the logarithm of
    its size, each at the first place of a row.

    Args:
        a: shape (n, n, 2), with n > 0.
        out: shape (n + 4, n, 2).

    >>> determine_pairs(a, determined)
    """
    size = a.shape[0]
    copy_pairs(a, out)
    eliminate_rows_of_pairs(out[:size], out[size, :, :])
    re = 1.0
    im = 0.0
    along = 1.0
    across = 0.0
    logarithm = 0.0
    for k in range(size):
        turn = 1.0 if out[size, k, 0] == k else -1.0
        x = turn * out[k, k, 0]
        y = turn * out[k, k, 1]
        kept = re
        re = kept * x - im * y
        im = kept * y + im * x
        largest = abs(x) if abs(x) > abs(y) else abs(y)
        scale = largest if largest > 0.0 else 1.0
        x = x / scale
        y = y / scale
        length = sqrt(x * x + y * y)
        divisor = length if largest > 0.0 else 1.0
        x = x / divisor
        y = y / divisor
        kept = along
        along = kept * x - across * y
        across = kept * y + across * x
        logarithm += log(largest) + log(divisor)
    for row in range(size + 1, size + 4):
        for column in range(size):
            out[row, column, 0] = 0.0
            out[row, column, 1] = 0.0
    out[size + 1, 0, 0] = re
    out[size + 1, 0, 1] = im
    out[size + 2, 0, 0] = along
    out[size + 2, 0, 1] = across
    out[size + 3, 0, 0] = logarithm


def triangles_of_pairs(matrix: np.ndarray, out: np.ndarray) -> None:
    """`triangles` of complex matrices.

    Args:
        matrix: shape (m, n, 2).
        out: shape (m, n + 2, 2).

    >>> triangles_of_pairs(a[i], parts[i])
    """
    rows = matrix.shape[0]
    columns = matrix.shape[1]
    copy_pairs(matrix, out)
    for row in range(rows):
        for column in range(columns, columns + 2):
            out[row, column, 0] = row
            out[row, column, 1] = 0.0
    count = min(rows, columns)
    if count > 0:
        eliminate_rows_of_pairs(out[:, :columns, :], out[:, columns + 1, :])
    for before in range(count):
        row = count - 1 - before
        other = int64(out[row, columns + 1, 0])
        kept = out[row, columns, 0]
        out[row, columns, 0] = out[other, columns, 0]
        out[other, columns, 0] = kept


def solve_eliminated_pairs(eliminated: np.ndarray, b: np.ndarray, out: np.ndarray) -> bool:
    """The x with a x = b into `out`, given what `eliminate_pairs` makes of a. False if a is singular.

    Args:
        eliminated: shape (n + 1, n, 2).
        b, out: shape (n, m, 2).

    >>> solve_eliminated_pairs(eliminated, b, x)
    """
    size = b.shape[0]
    copy_pairs(b, out)
    is_regular = True
    for i in range(size):
        is_regular = is_regular and (eliminated[i, i, 0] != 0.0 or eliminated[i, i, 1] != 0.0)
        exchange_pairs(out, i, int64(eliminated[size, i, 0]))
    substitute_pairs_forward(eliminated, out, False, True)
    substitute_pairs_backward(eliminated, out, False, False)
    return is_regular


def solve_eliminated_adjoint(eliminated: np.ndarray, b: np.ndarray, out: np.ndarray) -> bool:
    """The x with a.mH x = b into `out`, given what `eliminate_pairs` makes of a. False if a is singular.

    Args: as of `solve_eliminated_pairs`.

    >>> solve_eliminated_adjoint(eliminated, b, x)
    """
    size = b.shape[0]
    copy_pairs(b, out)
    is_regular = True
    substitute_pairs_forward(eliminated, out, True, False)
    substitute_pairs_backward(eliminated, out, True, True)
    for below in range(size):
        i = size - 1 - below
        is_regular = is_regular and (eliminated[i, i, 0] != 0.0 or eliminated[i, i, 1] != 0.0)
        exchange_pairs(out, i, int64(eliminated[size, i, 0]))
    return is_regular


# --- triangles ----------------------------------------------------------------------------------------------


def solve_lower_pairs(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The x with a x = b into `out`, of the lower triangle of `a`.

    Args:
        a: shape (n, n, 2).
        b, out: shape (n, m, 2).

    >>> solve_lower_pairs(factor, b, x)
    """
    copy_pairs(b, out)
    substitute_pairs_forward(a, out, False, False)


def solve_upper_pairs(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The x with a x = b into `out`, of the upper triangle of `a`; arguments as of `solve_lower_pairs`.

    >>> solve_upper_pairs(triangle, b, x)
    """
    copy_pairs(b, out)
    substitute_pairs_backward(a, out, False, False)


def solve_adjoint_of_lower(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The x with a.mH x = b into `out`, of the lower triangle of `a`; arguments as of `solve_lower_pairs`.

    >>> solve_adjoint_of_lower(factor, b, x)
    """
    copy_pairs(b, out)
    substitute_pairs_backward(a, out, True, False)


def solve_adjoint_of_upper(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The x with a.mH x = b into `out`, of the upper triangle of `a`; arguments as of `solve_lower_pairs`.

    >>> solve_adjoint_of_upper(triangle, b, x)
    """
    copy_pairs(b, out)
    substitute_pairs_forward(a, out, True, False)


def factor_hermitian(a: np.ndarray, out: np.ndarray) -> bool:
    """The lower triangular L with L L.mH = a into `out`, of the lower triangle of `a`. False without any.

    Args:
        a, out: shape (n, n, 2).

    >>> factor_hermitian(covariance, factor)
    """
    size = a.shape[0]
    is_definite = True
    for i in range(size):  # by column the factor is the transposed, of a matrix that is conjugated
        for j in range(size):
            out[i, j, 0] = a[i, j, 0] if j <= i else 0.0
            out[i, j, 1] = a[i, j, 1] if j < i else 0.0
    if size > 0:
        last = size - 1
        complex_triangular_factor(size, out, out[0, last, 1:])  # which is 0, unless there is no factor
        is_definite = out[0, last, 1] == 0.0
    return is_definite


FUNCTIONS = (
    multiply_pairs, multiply_by_adjoint, multiply_adjoint, multiply_adjoints,
    eliminate_pairs, determine_pairs, triangles_of_pairs, solve_eliminated_pairs, solve_eliminated_adjoint,
    solve_lower_pairs, solve_upper_pairs, solve_adjoint_of_lower, solve_adjoint_of_upper, factor_hermitian,
)  # fmt: skip
"""Those that generated code calls."""
