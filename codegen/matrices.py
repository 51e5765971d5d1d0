"""Linear algebra as generated code calls it: plain loops, and `gemm` for what is far from the diagonal.

Blocks of rows or columns, as in LAPACK: Golub and Van Loan, Matrix Computations, chapters 3 and 4. Inner
loops walk along rows. `factor_cholesky` and those that solve with an elimination say whether there is a
result, as LAPACK does, and generated code raises where there is none. Others leave inf or nan.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy import int64

from ..tracer.lapack import ROUTINES
from .blas import gemm
from .triangles import solve_triangle
from .vector_math import sqrt

BLOCK = 16
"""Columns that are eliminated by loops before a product brings the rest up to date."""
SMALL_FACTOR = 32
"""Columns up to which loops find Cholesky's factor as fast as LAPACK."""
LARGE_TRIANGLE, MANY_SIDES = 32, 16
"""Rows of a triangle and numbers of sides from which BLAS solves equations sooner than loops and products."""
SIDES = 32
"""Sides that are solved at once, from the first row on in which one of them is not 0: half of the inverse of
a triangle, as in LAPACK."""
MOST_PROBED = 5
"""Columns of an inverse that are tried for the largest."""
triangular_factor = ROUTINES["triangular_factor"]


def factor_cholesky(a: np.ndarray, out: np.ndarray) -> bool:
    """The lower triangular L with L L' = a into `out`; the lower triangle of `a` is read. False without any.

    LAPACK finds that of a large matrix: by column it is the upper triangle.

    >>> factor_cholesky(covariance, factor)
    """
    size = a.shape[0]
    last = size - 1
    is_definite = True
    if size > SMALL_FACTOR:
        for i in range(size):
            for j in range(i + 1):
                out[i, j] = a[i, j]
            for j in range(i + 1, size):
                out[i, j] = 0.0
        triangular_factor(size, out, out[0, last:])  # which is 0, unless there is no factor
        is_definite = out[0, last] == 0.0
    else:
        for i in range(size):  # above the diagonal first, where a step of the elimination is along rows
            for j in range(i + 1):
                out[j, i] = a[i, j]
        for i in range(size):
            is_definite = is_definite and not out[i, i] <= 0.0
            pivot = sqrt(out[i, i])
            out[i, i] = pivot
            for j in range(i + 1, size):
                out[i, j] = out[i, j] / pivot
            for k in range(i + 1, size):
                factor = out[i, k]
                for j in range(k, size):
                    out[k, j] -= factor * out[i, j]
        for i in range(size):
            for j in range(i):
                out[i, j] = out[j, i]
                out[j, i] = 0.0
    return is_definite


def copy(a: np.ndarray, out: np.ndarray) -> None:
    """A matrix into the first rows of another."""
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = a[i, j]


def is_finite(matrix: np.ndarray) -> bool:
    """Whether no number is nan or inf: these are counted, which is done in vectors, where sums are not."""
    others = 0
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            others += 0 if matrix[i, j] - matrix[i, j] == 0.0 else 1
    return others == 0


def solve_lower(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The x with a x = b into `out`, of the lower triangle of `a`.

    >>> solve_lower(factor, b, x)
    """
    copy(b, out)
    substitute_forward(a, out, False)


def solve_upper(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The x with a x = b into `out`, of the upper triangle of `a`.

    >>> solve_upper(factor.T, b, x)
    """
    copy(b, out)
    substitute_backward(a, out, False)


def solve_lower_from_right(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The x with x a = b into `out`, of the lower triangle of `a`.

    >>> solve_lower_from_right(factor, b, x)
    """
    copy(b, out)
    size = a.shape[0]
    if size > BLOCK:
        solve_triangle(True, True, False, a, out)
    else:
        for i in range(out.shape[0]):
            for before in range(size):
                k = size - 1 - before
                factor = out[i, k] / a[k, k]
                out[i, k] = factor
                for j in range(k):
                    out[i, j] -= factor * a[k, j]


def solve_upper_from_right(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """The x with x a = b into `out`, of the upper triangle of `a`.

    >>> solve_upper_from_right(factor.T, b, x)
    """
    copy(b, out)
    size = a.shape[0]
    if size > BLOCK:
        solve_triangle(False, True, False, a, out)
    else:
        for i in range(out.shape[0]):
            for k in range(size):
                factor = out[i, k] / a[k, k]
                out[i, k] = factor
                for j in range(k + 1, size):
                    out[i, j] -= factor * a[k, j]


def solve_row(a: np.ndarray, out: np.ndarray, i: int, first: int, stop: int, is_unit: bool) -> None:
    """Row `i` of the solution in place, from the rows `first` to `stop`."""
    if out.shape[1] == 1:  # a sum that no step has to store
        total = 0.0
        for k in range(first, stop):
            total += a[i, k] * out[k, 0]
        out[i, 0] -= total
    else:
        for k in range(first, stop):
            factor = a[i, k]
            for j in range(out.shape[1]):
                out[i, j] -= factor * out[k, j]
    if not is_unit:
        pivot = a[i, i]
        for j in range(out.shape[1]):
            out[i, j] = out[i, j] / pivot


def substitute_forward(a: np.ndarray, out: np.ndarray, is_unit: bool) -> None:
    """Solve in place with the lower triangle of `a`; `is_unit`: with ones on its diagonal."""
    size, columns = out.shape
    if size >= LARGE_TRIANGLE and columns >= MANY_SIDES:
        solve_triangle(True, False, is_unit, a, out)
    else:
        for start in range(0, size, BLOCK):
            stop = min(start + BLOCK, size)
            if start > 0 and columns > 0:
                gemm(-1.0, a[start:stop, :start], out[:start], 1.0, out[start:stop])
            for i in range(start, stop):
                solve_row(a, out, i, start, i, is_unit)


def substitute_backward(a: np.ndarray, out: np.ndarray, is_unit: bool) -> None:
    """Solve in place with the upper triangle of `a`; `is_unit`: with ones on its diagonal."""
    size, columns = out.shape
    if size >= LARGE_TRIANGLE and columns >= MANY_SIDES:
        solve_triangle(False, False, is_unit, a, out)
    else:
        for before in range(0, size, BLOCK):
            stop = size - before
            start = max(stop - BLOCK, 0)
            if before > 0 and columns > 0:
                gemm(-1.0, a[start:stop, stop:size], out[stop:], 1.0, out[start:stop])
            for below in range(stop - start):
                i = stop - 1 - below
                solve_row(a, out, i, i + 1, stop, is_unit)


def eliminate(a: np.ndarray, out: np.ndarray) -> None:
    """L, without its ones, and U of the matrix `a` with rows exchanged, into the first rows of `out`.

    The last row of `out`, one more than `a` has, says with which row each was exchanged, one after the other.

    >>> eliminate(a, eliminated)
    """
    size = a.shape[0]
    copy(a, out)
    eliminate_rows(out[:size], out[size:].T)


def eliminate_rows(out: np.ndarray, exchanged: np.ndarray) -> None:
    """L, without its ones, and U of a matrix of any shape in place.

    The first column of `exchanged` says with which row each is exchanged, one after the other. Rows below and
    columns on the right where a block of columns, or of rows, holds nothing but zeros stay as they are: of a
    banded matrix little more than the bands is touched.
    """
    rows, columns = out.shape
    count = min(rows, columns)
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        bottom = rows
        goes_on = bottom > stop
        while goes_on:
            total = 0.0
            for j in range(start, stop):
                total += abs(out[bottom - 1, j])
            if total == 0.0:
                bottom -= 1
            goes_on = total == 0.0 and bottom > stop
        for k in range(start, stop):
            place = k
            largest = abs(out[k, k])
            for i in range(k + 1, bottom):
                if abs(out[i, k]) > largest:
                    largest = abs(out[i, k])
                    place = i
            exchanged[k, 0] = place
            exchange(out, k, place)
            pivot = out[k, k]
            if pivot != 0.0:
                for i in range(k + 1, bottom):
                    factor = out[i, k] / pivot
                    out[i, k] = factor
                    for j in range(k + 1, stop):
                        out[i, j] -= factor * out[k, j]
        edge = columns
        goes_on = edge > stop
        while goes_on:
            before = max(edge - BLOCK, stop)
            total = 0.0
            for i in range(start, stop):
                for j in range(before, edge):
                    total += abs(out[i, j])
            if total == 0.0:
                edge = before
            goes_on = total == 0.0 and edge > stop
        if stop < edge:
            for i in range(start + 1, stop):
                for k in range(start, i):
                    factor = out[i, k]
                    for j in range(stop, edge):
                        out[i, j] -= factor * out[k, j]
            if stop < bottom:
                gemm(
                    -1.0, out[stop:bottom, start:stop], out[start:stop, stop:edge], 1.0,
                    out[stop:bottom, stop:edge],
                )  # fmt: skip


def exchange(out: np.ndarray, one: int, other: int | int64) -> None:
    """Exchange two rows."""
    if one != other:
        for j in range(out.shape[1]):
            kept = out[one, j]
            out[one, j] = out[other, j]
            out[other, j] = kept


def is_regular(eliminated: np.ndarray) -> bool:
    """Whether no pivot is 0."""
    found = True
    for i in range(eliminated.shape[1]):
        found = found and eliminated[i, i] != 0.0
    return found


def solve_eliminated(eliminated: np.ndarray, b: np.ndarray, out: np.ndarray) -> bool:
    """The x with a x = b into `out`, given what `eliminate` makes of a. False if a is singular.

    >>> solve_eliminated(eliminated, b, x)
    """
    size = b.shape[0]
    copy(b, out)
    for i in range(size):
        exchange(out, i, int64(eliminated[size, i]))
    substitute_forward(eliminated[:size], out, True)
    substitute_backward(eliminated[:size], out, False)
    return is_regular(eliminated)


def solve_eliminated_transposed(eliminated: np.ndarray, b: np.ndarray, out: np.ndarray) -> bool:
    """The x with a' x = b into `out`, given what `eliminate` makes of a. False if a is singular.

    >>> solve_eliminated_transposed(eliminated, b, x)
    """
    size = b.shape[0]
    copy(b, out)
    columns = out.shape[1]
    for start in range(0, columns, SIDES):
        stop = min(start + SIDES, columns)
        top = 0
        goes_on = size > 0
        while goes_on:
            total = 0.0
            for j in range(start, stop):
                total += abs(out[top, j])
            top += 1 if total == 0.0 else 0
            goes_on = total == 0.0 and top < size
        if top < size:
            substitute_forward(eliminated[top:size, top:].T, out[top:, start:stop], False)
    substitute_backward(eliminated[:size].T, out, True)
    for below in range(size):
        i = size - 1 - below
        exchange(out, i, int64(eliminated[size, i]))
    return is_regular(eliminated)


def cofactors(a: np.ndarray, eliminated: np.ndarray, out: np.ndarray) -> None:
    """The derivative of the determinant by each element into the first rows of `out`; what follows is room.

    It exists without an inverse as well.

    >>> cofactors(a, eliminated, found)
    """
    size = a.shape[0]
    has_inverse = True
    for i in range(size):
        has_inverse = has_inverse and eliminated[i, i] != 0.0
    if has_inverse:
        determinant = 1.0
        for i in range(size):
            pivot = eliminated[i, i]
            determinant *= pivot if eliminated[size, i] == i else -pivot
            for j in range(size):
                out[size + i, j] = 1.0 if i == j else 0.0
        solve_eliminated_transposed(eliminated, out[size : 2 * size], out[:size])
        for i in range(size):
            for j in range(size):
                out[i, j] = determinant * out[i, j]
    else:
        copy(a, out[size : 2 * size])
        cofactors_of_singular(out[size : 2 * size], out[:size], out[2 * size :])


def cofactors_of_singular(a: np.ndarray, out: np.ndarray, room: np.ndarray) -> None:
    """The same of a matrix without an inverse: the product of two vectors that it takes to 0, or 0.

    By an elimination with pivots that are the largest of what is left, which is written into `a`; `room` has
    four rows.
    """
    size = a.shape[0]
    last = size - 1
    total = 1.0
    for k in range(size):
        room[0, k] = k
        room[1, k] = k
    for k in range(last):
        row = k
        column = k
        largest = abs(a[k, k])
        for i in range(k, size):
            for j in range(k, size):
                if abs(a[i, j]) > largest:
                    largest = abs(a[i, j])
                    row = i
                    column = j
        exchange(a, k, row)
        exchange(a.T, k, column)
        exchange(room[:1].T, k, row)
        exchange(room[1:2].T, k, column)
        pivot = a[k, k]
        total *= pivot if row == k else -pivot
        total *= 1.0 if column == k else -1.0
        if pivot != 0.0:
            for i in range(k + 1, size):
                factor = a[i, k] / pivot
                a[i, k] = factor
                for j in range(k + 1, size):
                    a[i, j] -= factor * a[k, j]
    for below in range(size):
        i = last - below
        of_rows = 1.0 if below == 0 else 0.0
        of_columns = of_rows
        for k in range(i + 1, size):
            of_rows -= a[k, i] * room[2, k]
            of_columns -= a[i, k] * room[3, k]
        room[2, i] = of_rows
        room[3, i] = of_columns if below == 0 or total == 0.0 else of_columns / a[i, i]
    for i in range(size):
        for j in range(size):
            found = 0.0 if total == 0.0 else total * room[2, i] * room[3, j]
            out[int64(room[0, i]), int64(room[1, j])] = found


def estimate_inverse_norm(eliminated: np.ndarray, out: np.ndarray) -> None:
    """An estimate from below of the largest sum of a column of the inverse, in sizes: at the last place.

    The columns of `out` are room for it: a right-hand side, a solution and signs. It is infinite without an
    inverse. N. J. Higham, FORTRAN codes for estimating the one-norm of a real or complex matrix (1988).

    >>> estimate_inverse_norm(eliminated, columns)
    """
    size = out.shape[0]
    has_inverse = True
    for i in range(size):
        has_inverse = has_inverse and eliminated[i, i] != 0.0
    estimate = inf
    if has_inverse:
        estimate = 0.0
        place = 0
        steps = 0
        goes_on = True
        for i in range(size):
            out[i, 0] = 1.0 / size
            out[i, 2] = 0.0
        while goes_on and steps < MOST_PROBED:
            solve_eliminated(eliminated, out[:, :1], out[:, 1:2])
            total = 0.0
            turns = False
            for i in range(size):
                sign = 1.0 if out[i, 1] >= 0.0 else -1.0
                total += abs(out[i, 1])
                turns = turns or sign != out[i, 2]
                out[i, 2] = sign
                out[i, 0] = sign
            goes_on = turns and not total <= estimate
            estimate = estimate if total <= estimate else total
            steps += 1
            if goes_on:
                solve_eliminated_transposed(eliminated, out[:, :1], out[:, 1:2])
                largest = -1.0
                before = place if steps > 1 else -1
                for i in range(size):
                    out[i, 0] = 0.0
                    if abs(out[i, 1]) > largest:
                        largest = abs(out[i, 1])
                        place = i
                goes_on = place != before
                out[place, 0] = 1.0
        sign = 1.0
        for i in range(size):
            out[i, 0] = sign * (1.0 + i / max(size - 1, 1))
            sign = -sign
        solve_eliminated(eliminated, out[:, :1], out[:, 1:2])
        total = 0.0
        for i in range(size):
            total += abs(out[i, 1])
        total = 2.0 * total / (3.0 * size)
        estimate = estimate if total <= estimate else total
    out[size - 1, 2] = estimate


FUNCTIONS = (
    factor_cholesky,
    solve_lower,
    solve_upper,
    solve_lower_from_right,
    solve_upper_from_right,
    eliminate,
    solve_eliminated,
    solve_eliminated_transposed,
    cofactors,
    estimate_inverse_norm,
)
"""Those that generated code calls."""
