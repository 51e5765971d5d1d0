"""Linear algebra of complex matrices as generated code calls it: plain loops, and BLAS, of pairs of numbers.

The last dimension has the real and the imaginary part, so an array has the memory of complex numbers. Blocks
as in `matrices.py`; as in LAPACK, a pivot is chosen by the sum of its parts' sizes.
"""

from __future__ import annotations

import numpy as np
from numpy import int64

from ..tracer.lapack import ROUTINES
from .blas import gemm_of_pairs
from .triangles import solve_triangle_of_pairs
from .vector_math import log, sqrt

BLOCK = 8
"""As in `matrices.py`; the loops take longer than those of real numbers."""
SIDES = 32
"""As in `matrices.py`."""
SMALL_TRIANGLE = 4
"""Rows of a triangle up to which loops solve equations as fast as BLAS."""
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
    """Solve in place with the lower triangle of `a`, or the adjoint of the upper one; `is_unit`: with ones on
    the diagonal.
    """
    size = out.shape[0]
    if size > SMALL_TRIANGLE and out.shape[1] > 0:
        solve_triangle_of_pairs(not adjoint, adjoint, False, is_unit, a[:size, :, :], out)
    else:
        for i in range(size):
            solve_row_of_pairs(a, out, i, 0, i, adjoint, is_unit)


def substitute_pairs_backward(a: np.ndarray, out: np.ndarray, adjoint: bool, is_unit: bool) -> None:
    """Solve in place with the upper triangle of `a`, or the adjoint of the lower one; `is_unit`: with ones on
    the diagonal.
    """
    size = out.shape[0]
    if size > SMALL_TRIANGLE and out.shape[1] > 0:
        solve_triangle_of_pairs(adjoint, adjoint, False, is_unit, a[:size, :, :], out)
    else:
        for below in range(size):
            i = size - 1 - below
            solve_row_of_pairs(a, out, i, i + 1, size, adjoint, is_unit)


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


def determine_pairs(eliminated: np.ndarray, out: np.ndarray) -> None:
    """The determinant of what `eliminate_pairs` makes of a matrix, its sign and the logarithm of its size.

    Args:
        eliminated: shape (n + 1, n, 2).
        out: shape (3, 1, 2), with 0 as the imaginary part of the logarithm.

    >>> determine_pairs(eliminated, determinants)
    """
    size = eliminated.shape[1]
    re = 1.0
    im = 0.0
    along = 1.0
    across = 0.0
    logarithm = 0.0
    for k in range(size):
        turn = 1.0 if eliminated[size, k, 0] == k else -1.0
        x = turn * eliminated[k, k, 0]
        y = turn * eliminated[k, k, 1]
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
    out[0, 0, 0] = re
    out[0, 0, 1] = im
    out[1, 0, 0] = along
    out[1, 0, 1] = across
    out[2, 0, 0] = logarithm
    out[2, 0, 1] = 0.0


def cofactors_of_pairs(a: np.ndarray, eliminated: np.ndarray, out: np.ndarray) -> None:
    """The derivative of the determinant by each element into the first rows of `out`; what follows is room.

    It exists without an inverse as well.

    Args:
        a: shape (n, n, 2).
        eliminated: shape (n + 1, n, 2).
        out: shape (2 n + 4, n, 2).

    >>> cofactors_of_pairs(a, eliminated, found)
    """
    size = a.shape[0]
    has_inverse = True
    re = 1.0
    im = 0.0
    for i in range(size):
        x = 1.0 * eliminated[i, i, 0]
        y = 1.0 * eliminated[i, i, 1]
        has_inverse = has_inverse and (x != 0.0 or y != 0.0)
        turn = 1.0 if eliminated[size, i, 0] == i else -1.0
        kept = re
        re = turn * (kept * x - im * y)
        im = turn * (kept * y + im * x)
        for j in range(size):
            out[size + i, j, 0] = 1.0 if i == j else 0.0
            out[size + i, j, 1] = 0.0
    if has_inverse:
        solve_eliminated_adjoint(eliminated, out[size : 2 * size, :, :], out[:size, :, :])
        for i in range(size):  # the transposed inverse is the conjugate of that
            for j in range(size):
                x = 1.0 * out[i, j, 0]
                y = -out[i, j, 1]
                out[i, j, 0] = re * x - im * y
                out[i, j, 1] = re * y + im * x
    else:
        copy_pairs(a, out[size : 2 * size, :, :])
        cofactors_of_singular_pairs(out[size : 2 * size, :, :], out[:size, :, :], out[2 * size :, :, :])


def cofactors_of_singular_pairs(a: np.ndarray, out: np.ndarray, room: np.ndarray) -> None:
    """As `cofactors_of_singular` of real numbers."""
    size = a.shape[0]
    last = size - 1
    re = 1.0
    im = 0.0
    for k in range(size):
        room[0, k, 0] = k
        room[1, k, 0] = k
    for k in range(last):
        row = k
        column = k
        largest = abs(a[k, k, 0]) + abs(a[k, k, 1])
        for i in range(k, size):
            for j in range(k, size):
                found = abs(a[i, j, 0]) + abs(a[i, j, 1])
                if found > largest:
                    largest = found
                    row = i
                    column = j
        exchange_pairs(a, k, row)
        if column != k:
            for i in range(size):
                for part in range(2):
                    held = a[i, k, part]
                    a[i, k, part] = a[i, column, part]
                    a[i, column, part] = held
        held = room[0, k, 0]
        room[0, k, 0] = room[0, row, 0]
        room[0, row, 0] = held
        held = room[1, k, 0]
        room[1, k, 0] = room[1, column, 0]
        room[1, column, 0] = held
        turn = (1.0 if row == k else -1.0) * (1.0 if column == k else -1.0)
        x = turn * a[k, k, 0]
        y = turn * a[k, k, 1]
        kept = re
        re = kept * x - im * y
        im = kept * y + im * x
        if largest != 0.0:
            for i in range(k + 1, size):
                divide_pair(a, i, k, a[k, k, 0], a[k, k, 1])
                subtract_row(a, i, k, a[i, k, 0], a[i, k, 1], k + 1, size)
    for below in range(size):
        i = last - below
        for side in range(2, 4):
            room[side, i, 0] = 1.0 if below == 0 else 0.0
            room[side, i, 1] = 0.0
        for k in range(i + 1, size):
            room[2, i, 0] -= a[k, i, 0] * room[2, k, 0] - a[k, i, 1] * room[2, k, 1]
            room[2, i, 1] -= a[k, i, 0] * room[2, k, 1] + a[k, i, 1] * room[2, k, 0]
            room[3, i, 0] -= a[i, k, 0] * room[3, k, 0] - a[i, k, 1] * room[3, k, 1]
            room[3, i, 1] -= a[i, k, 0] * room[3, k, 1] + a[i, k, 1] * room[3, k, 0]
        if below > 0 and (re != 0.0 or im != 0.0):
            divide_pair(room, 3, i, a[i, i, 0], a[i, i, 1])
    is_nothing = re == 0.0 and im == 0.0
    for i in range(size):
        x = re * room[2, i, 0] - im * room[2, i, 1]
        y = re * room[2, i, 1] + im * room[2, i, 0]
        to = int64(room[0, i, 0])
        for j in range(size):
            at = int64(room[1, j, 0])
            out[to, at, 0] = 0.0 if is_nothing else x * room[3, j, 0] - y * room[3, j, 1]
            out[to, at, 1] = 0.0 if is_nothing else x * room[3, j, 1] + y * room[3, j, 0]


def divide_pair(out: np.ndarray, i: int, j: int, re: float, im: float) -> None:
    """One element by a complex number."""
    scale = abs(re) + abs(im)
    x = re / scale
    y = im / scale
    size = (x * x + y * y) * scale
    real = out[i, j, 0]
    imag = out[i, j, 1]
    out[i, j, 0] = (real * x + imag * y) / size
    out[i, j, 1] = (imag * x - real * y) / size


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
    columns = out.shape[1]
    for start in range(0, columns, SIDES):
        stop = min(start + SIDES, columns)
        top = 0
        goes_on = size > 0
        while goes_on:
            total = 0.0
            for j in range(start, stop):
                total += abs(out[top, j, 0]) + abs(out[top, j, 1])
            top += 1 if total == 0.0 else 0
            goes_on = total == 0.0 and top < size
        if top < size:
            substitute_pairs_forward(eliminated[top:size, top:], out[top:, start:stop], True, False)
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


def solve_pairs_from_right(lower: bool, adjoint: bool, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The x with x a = b into `out`, of a triangle of `a`, or its adjoint."""
    copy_pairs(b, out)
    if out.shape[0] > 0 and out.shape[1] > 0:
        solve_triangle_of_pairs(lower, adjoint, True, False, a, out)


def solve_lower_pairs_from_right(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The x with x a = b into `out`, of the lower triangle of `a`.

    Args:
        a: shape (n, n, 2).
        b, out: shape (m, n, 2).

    >>> solve_lower_pairs_from_right(factor, b, x)
    """
    solve_pairs_from_right(True, False, a, b, out)


def solve_upper_pairs_from_right(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The x with x a = b into `out`, of the upper triangle of `a`; arguments as of the lower one.

    >>> solve_upper_pairs_from_right(triangle, b, x)
    """
    solve_pairs_from_right(False, False, a, b, out)


def solve_adjoint_of_lower_from_right(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The x with x a.mH = b into `out`, of the lower triangle of `a`; arguments as of it.

    >>> solve_adjoint_of_lower_from_right(factor, b, x)
    """
    solve_pairs_from_right(True, True, a, b, out)


def solve_adjoint_of_upper_from_right(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The x with x a.mH = b into `out`, of the upper triangle of `a`; arguments as of the lower one.

    >>> solve_adjoint_of_upper_from_right(triangle, b, x)
    """
    solve_pairs_from_right(False, True, a, b, out)


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
    eliminate_pairs, determine_pairs, cofactors_of_pairs, triangles_of_pairs,
    solve_eliminated_pairs, solve_eliminated_adjoint,
    solve_lower_pairs, solve_upper_pairs, solve_adjoint_of_lower, solve_adjoint_of_upper,
    solve_lower_pairs_from_right, solve_upper_pairs_from_right, solve_adjoint_of_lower_from_right,
    solve_adjoint_of_upper_from_right, factor_hermitian,
)  # fmt: skip
"""Those that generated code calls."""
