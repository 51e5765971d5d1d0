"""Decompositions of a matrix as generated code calls them: by LAPACK, small ones by loops of our own.

Each fills planes of the shape of its matrix; what does not fill a plane lies in its first rows or columns.
LAPACK takes matrices by column. Up to `SMALL` columns the call alone takes longer than the loops, which are
those of Golub and Van Loan, Matrix Computations: Jacobi's rotations from two sides (8.5) for eigenvalues and
from one side, Hestenes's (8.6), for singular values, Householder's reflections (5.2) with LAPACK's signs.
They do not scale, so matrices of extreme numbers are LAPACK's as well, which also says of nan that there is
no result.
"""

from __future__ import annotations

import numpy as np
from numpy import int64

from ..tracer.lapack import ROUTINES, SMALL, SMALL_TRIANGLE
from .matrices import copy, eliminate_rows, is_finite
from .vector_math import sqrt

eigenvectors = ROUTINES["eigenvectors"]
eigenvectors_of_upper = ROUTINES["eigenvectors_of_upper"]
eigenvalues = ROUTINES["eigenvalues"]
eigenvalues_of_upper = ROUTINES["eigenvalues_of_upper"]
singular_vectors = ROUTINES["singular_vectors"]
singular_vectors_of_wide = ROUTINES["singular_vectors_of_wide"]
singular_vectors_in_place = ROUTINES["singular_vectors_in_place"]
singular_values = ROUTINES["singular_values"]
reflections = ROUTINES["reflections"]
orthonormal_rows = ROUTINES["orthonormal_rows"]
LEAST_SQUARE, LARGEST_SQUARE = 1e-200, 1e200
"""Sums of squares between which no step of the loops underflows or overflows."""
MOST_SWEEPS = 60
"""Of rotations over all pairs of columns; convergence is quadratic, so that ten are usual."""


def is_plain(squares: float) -> bool:
    """Whether the numbers of a matrix with that sum of squares are for loops."""
    return squares > LEAST_SQUARE and squares < LARGEST_SQUARE


def squares_of(matrix: np.ndarray) -> float:
    """The sum of the squares of its numbers."""
    squares = 0.0
    for row in range(matrix.shape[0]):
        for column in range(matrix.shape[1]):
            squares += matrix[row, column] * matrix[row, column]
    return squares


def set_unit(out: np.ndarray, plane: int, rows: int, columns: int) -> None:
    """Ones on the diagonal of a plane, zeros elsewhere."""
    for row in range(rows):
        for column in range(columns):
            out[plane, row, column] = 1.0 if row == column else 0.0


def clear_rows(out: np.ndarray, start: int) -> None:
    """Zeros in the rows of a matrix from one on."""
    for row in range(start, out.shape[0]):
        for column in range(out.shape[1]):
            out[row, column] = 0.0


def rotate_columns(
    out: np.ndarray, plane: int, rows: int, one: int, other: int, cosine: float, sine: float
) -> None:
    """Turn two columns of a plane."""
    for row in range(rows):
        first = out[plane, row, one]
        second = out[plane, row, other]
        out[plane, row, one] = cosine * first - sine * second
        out[plane, row, other] = sine * first + cosine * second


def rotate_rows(
    out: np.ndarray, plane: int, columns: int, one: int, other: int, cosine: float, sine: float
) -> None:
    """Turn two rows of a plane."""
    for column in range(columns):
        first = out[plane, one, column]
        second = out[plane, other, column]
        out[plane, one, column] = cosine * first - sine * second
        out[plane, other, column] = sine * first + cosine * second


def swap_columns(out: np.ndarray, plane: int, rows: int, one: int, other: int) -> None:
    """Exchange two columns of a plane."""
    for row in range(rows):
        kept = out[plane, row, one]
        out[plane, row, one] = out[plane, row, other]
        out[plane, row, other] = kept


def tangent_of(ratio: float) -> float:
    """The smaller root of t * t + 2 * ratio * t = 1."""
    size = 1.0 / (abs(ratio) + sqrt(ratio * ratio + 1.0))
    return -size if ratio < 0.0 else size


def eigen_symmetric(matrix: np.ndarray, out: np.ndarray) -> bool:
    """Eigenvectors in the columns of `out[0]`, eigenvalues in ascending order in the first row of `out[1]`.
    False where LAPACK's iteration does not converge.

    Args:
        matrix: shape (n, n), of which the lower triangle is read.
        out: shape (2, n, n).

    >>> eigen_symmetric(a[i], parts[i])
    """
    return decompose_symmetric(matrix, out, True)


def eigen_symmetric_of_upper(matrix: np.ndarray, out: np.ndarray) -> bool:
    """`eigen_symmetric`, of which the upper triangle is read.

    >>> eigen_symmetric_of_upper(a[i], parts[i])
    """
    return decompose_symmetric(matrix, out, False)


def decompose_symmetric(matrix: np.ndarray, out: np.ndarray, lower: bool) -> bool:
    """`eigen_symmetric`, of one triangle."""
    size = matrix.shape[0]
    copy_triangle(matrix, out[0, :, :], lower)
    squares = 0.0
    others = 0  # nan and inf
    for row in range(size):
        for column in range(size):
            out[1, row, column] = 0.0
            others += 0 if out[0, row, column] - out[0, row, column] == 0.0 else 1
    if size <= SMALL:
        for row in range(size):
            for column in range(size):
                squares += out[0, row, column] * out[0, row, column]
    is_found = others == 0
    if size == 0 or (size <= SMALL and is_plain(squares)):
        rotate_symmetric(out)
    elif is_found:
        if lower:
            eigenvectors(size, out[0, :, :], out[1, 0, :])
        else:
            eigenvectors_of_upper(size, out[0, :, :], out[1, 0, :])
        transpose(out[0, :, :])
        is_found = out[1, 0, 0] == out[1, 0, 0]
    return is_found


def copy_triangle(matrix: np.ndarray, out: np.ndarray, lower: bool) -> None:
    """A triangle of a matrix, by column, and zeros."""
    for row in range(matrix.shape[0]):
        for column in range(matrix.shape[0]):
            is_read = column <= row if lower else row <= column
            out[column, row] = matrix[row, column] if is_read else 0.0


def transpose(out: np.ndarray) -> None:
    """A square matrix in place."""
    for row in range(out.shape[0]):
        for column in range(row):
            kept = out[row, column]
            out[row, column] = out[column, row]
            out[column, row] = kept


def eigenvalues_symmetric(matrix: np.ndarray, out: np.ndarray) -> bool:
    """Eigenvalues in ascending order in the last row of `out`. False where there are none found.

    Args:
        matrix: shape (n, n), of which the lower triangle is read.
        out: shape (n + 1, n), the first rows to compute in.

    >>> eigenvalues_symmetric(a[i], values[i])
    """
    return find_eigenvalues(matrix, out, True)


def eigenvalues_symmetric_of_upper(matrix: np.ndarray, out: np.ndarray) -> bool:
    """`eigenvalues_symmetric`, of which the upper triangle is read.

    >>> eigenvalues_symmetric_of_upper(a[i], values[i])
    """
    return find_eigenvalues(matrix, out, False)


def find_eigenvalues(matrix: np.ndarray, out: np.ndarray, lower: bool) -> bool:
    """`eigenvalues_symmetric`, of one triangle."""
    size = matrix.shape[0]
    copy_triangle(matrix, out, lower)
    clear_rows(out, size)
    is_found = is_finite(out)
    if is_found and size > 0:
        if lower:
            eigenvalues(size, out[:size], out[size, :])
        else:
            eigenvalues_of_upper(size, out[:size], out[size, :])
        is_found = out[size, 0] == out[size, 0]
    return is_found


def rotate_symmetric(out: np.ndarray) -> None:
    """Jacobi's rotations of the matrix of which one triangle lies in `out[0]`, beside zeros."""
    size = out.shape[1]
    whole = 0.0
    for row in range(size):
        for column in range(row + 1):
            found = out[0, row, column] + (out[0, column, row] if column < row else 0.0)
            out[1, row, column] = found
            out[1, column, row] = found
            whole += 2.0 * found * found
    set_unit(out, 0, size, size)
    rest = whole
    sweep = 0
    while sweep < MOST_SWEEPS and rest > 1e-36 * whole:
        rest = 0.0
        for one in range(size - 1):
            for other in range(one + 1, size):
                across = 1.0 * out[1, one, other]
                rest += across * across
                if across != 0.0:
                    tangent = tangent_of((out[1, other, other] - out[1, one, one]) / (2.0 * across))
                    cosine = 1.0 / sqrt(tangent * tangent + 1.0)
                    sine = tangent * cosine
                    rotate_columns(out, 1, size, one, other, cosine, sine)
                    rotate_rows(out, 1, size, one, other, cosine, sine)
                    out[1, one, other] = 0.0
                    out[1, other, one] = 0.0
                    rotate_columns(out, 0, size, one, other, cosine, sine)
        sweep += 1
    for place in range(1, size):
        out[1, 0, place] = out[1, place, place]
    for place in range(size):
        least = place
        for other in range(place + 1, size):
            if out[1, 0, other] < out[1, 0, least]:
                least = other
        if least != place:
            swap_columns(out, 1, 1, place, least)
            swap_columns(out, 0, size, place, least)
    clear_rows(out[1, :, :], 1)


def singular(matrix: np.ndarray, out: np.ndarray) -> bool:
    """Left singular vectors in the columns of `out[0]`, singular values in descending order in the first row
    of `out[1]`, right singular vectors in the columns of the first n rows of `out[2]`. False where LAPACK's
    iteration does not converge.

    Args:
        matrix: shape (m, n), m >= n.
        out: shape (3, m, n).

    >>> singular(a[i], parts[i])
    """
    rows, size = matrix.shape
    squares = 0.0
    if size <= SMALL:
        squares = squares_of(matrix)
    is_found = is_finite(matrix)
    if size == 0 or (size <= SMALL and is_plain(squares)):
        rotate_singular(matrix, out)
    elif is_found:
        copy_by_column(matrix, out[0, :, :])
        if rows == size:
            singular_vectors_in_place(rows, size, out[0, :, :], out[1, 0, :], out[2, :, :])
            transpose(out[0, :, :])
        else:  # the first row that V leaves free is room for the values, until U is out of theirs
            singular_vectors(rows, size, out[0, :, :], out[2, size, :], out[1, :, :], out[2, :, :])
            copy_by_row(out[1, :, :], out[0, :, :])
            for column in range(size):
                out[1, 0, column] = out[2, size, column]
        clear_rows(out[1, :, :], 1)
        clear_rows(out[2, :, :], size)
        is_found = out[1, 0, 0] == out[1, 0, 0]
    return is_found


def singular_of_adjoint(matrix: np.ndarray, out: np.ndarray) -> bool:
    """`singular`, with the signs that LAPACK gives vectors of the adjoint.

    >>> singular_of_adjoint(a[i], parts[i])
    """
    rows, size = matrix.shape
    squares = 0.0
    if size <= SMALL:
        squares = squares_of(matrix)
    is_found = is_finite(matrix)
    if size == 0 or (size <= SMALL and is_plain(squares)):
        rotate_singular(matrix, out)
    elif is_found:  # of a wide matrix; the first row that V leaves free is room for the values
        copy(matrix, out[1, :, :])
        singular_vectors_of_wide(size, rows, out[1, :, :], out[2, size, :], out[2, :, :], out[0, :, :])
        transpose(out[2, :size, :])
        for column in range(size):
            out[1, 0, column] = out[2, size, column]
        clear_rows(out[1, :, :], 1)
        clear_rows(out[2, :, :], size)
        is_found = out[1, 0, 0] == out[1, 0, 0]
    return is_found


def copy_by_column(matrix: np.ndarray, out: np.ndarray) -> None:
    """A matrix into memory of its shape, column after column."""
    rows, columns = matrix.shape
    i = 0
    j = 0
    for column in range(columns):
        for row in range(rows):
            out[i, j] = matrix[row, column]
            j += 1
            if j == columns:
                j = 0
                i += 1


def copy_by_row(by_column: np.ndarray, out: np.ndarray) -> None:
    """A matrix that lies in memory of its shape column after column."""
    rows, columns = out.shape
    i = 0
    j = 0
    for column in range(columns):
        for row in range(rows):
            out[row, column] = by_column[i, j]
            j += 1
            if j == columns:
                j = 0
                i += 1


def singular_numbers(matrix: np.ndarray, out: np.ndarray) -> bool:
    """Singular values in descending order in the last row of `out`. False where there are none found.

    Args:
        matrix: shape (m, n), m >= n.
        out: shape (m + 1, n), the first rows to compute in.

    >>> singular_numbers(a[i], values[i])
    """
    rows, size = matrix.shape
    copy_by_column(matrix, out[:rows])
    is_found = is_finite(matrix)
    if is_found and size > 0:
        singular_values(rows, size, out[:rows], out[rows, :])
        is_found = out[rows, 0] == out[rows, 0]
    return is_found


def rotate_singular(matrix: np.ndarray, out: np.ndarray) -> None:
    """`singular` by Hestenes's rotations."""
    rows = matrix.shape[0]
    size = matrix.shape[1]
    for row in range(rows):
        for column in range(size):
            out[0, row, column] = matrix[row, column]
            out[1, row, column] = 0.0
    set_unit(out, 2, rows, size)
    turned = 1
    sweep = 0
    while sweep < MOST_SWEEPS and turned > 0:
        turned = 0
        for one in range(size - 1):
            for other in range(one + 1, size):
                first = 0.0
                second = 0.0
                across = 0.0
                for row in range(rows):
                    first += out[0, row, one] * out[0, row, one]
                    second += out[0, row, other] * out[0, row, other]
                    across += out[0, row, one] * out[0, row, other]
                if across * across > 1e-32 * first * second:
                    turned += 1
                    tangent = tangent_of((second - first) / (2.0 * across))
                    cosine = 1.0 / sqrt(tangent * tangent + 1.0)
                    sine = tangent * cosine
                    rotate_columns(out, 0, rows, one, other, cosine, sine)
                    rotate_columns(out, 2, size, one, other, cosine, sine)
        sweep += 1
    for column in range(size):
        total = 0.0
        for row in range(rows):
            total += out[0, row, column] * out[0, row, column]
        out[1, 0, column] = sqrt(total)
    for place in range(size):
        most = place
        for other in range(place + 1, size):
            if out[1, 0, other] > out[1, 0, most]:
                most = other
        if most != place:
            swap_columns(out, 1, 1, place, most)
            swap_columns(out, 0, rows, place, most)
            swap_columns(out, 2, size, place, most)
    for column in range(size):
        if out[1, 0, column] > 1e-300 + 1e-30 * out[1, 0, 0]:
            for row in range(rows):
                out[0, row, column] = out[0, row, column] / out[1, 0, column]
        else:
            complete_column(out, rows, column)


def complete_column(out: np.ndarray, rows: int, column: int) -> None:
    """A unit vector at right angles to the columns of `out[0]` before: the rest of the best unit vector."""
    best = 0
    largest = -1.0
    for candidate in range(rows):
        rest = 1.0
        for other in range(column):
            rest -= out[0, candidate, other] * out[0, candidate, other]
        if rest > largest:
            largest = rest
            best = candidate
    for row in range(rows):
        out[0, row, column] = 1.0 if row == best else 0.0
    for other in range(column):
        for _ in range(2):
            share = 0.0
            for row in range(rows):
                share += out[0, row, other] * out[0, row, column]
            for row in range(rows):
                out[0, row, column] -= share * out[0, row, other]
    total = 0.0
    for row in range(rows):
        total += out[0, row, column] * out[0, row, column]
    for row in range(rows):
        out[0, row, column] = out[0, row, column] / sqrt(total)


def orthogonal_triangular(matrix: np.ndarray, out: np.ndarray) -> None:
    """Q in `out[0]`, R in the first n rows of `out[1]`.

    A matrix by row is the transpose of one by column, so what LAPACK finds is the L and the Q of that.

    Args:
        matrix: shape (m, n), m >= n.
        out: shape (2, m, n).

    >>> orthogonal_triangular(a[i], parts[i])
    """
    rows, size = matrix.shape
    squares = 0.0
    if size <= SMALL_TRIANGLE:
        squares = squares_of(matrix)
    for row in range(rows):
        for column in range(size):
            out[0, row, column] = matrix[row, column]
            out[1, row, column] = 0.0
    if size == 0 or (size <= SMALL_TRIANGLE and is_plain(squares)):
        reflect(matrix, out)
    else:
        last = size - 1  # of the rows of R, which has one element: room for the factors of the reflections
        reflections(size, rows, out[0, :, :], out[1, last, :])
        for row in range(last):
            for column in range(row, size):
                out[1, row, column] = out[0, row, column]
        corner = out[0, last, last]
        orthonormal_rows(size, rows, out[0, :, :], out[1, last, :])
        for column in range(size):
            out[1, last, column] = corner if column == last else 0.0


def reflect(matrix: np.ndarray, out: np.ndarray) -> None:
    """`orthogonal_triangular` by Householder's reflections, one after the other."""
    rows = matrix.shape[0]
    size = matrix.shape[1]
    for row in range(rows):
        for column in range(size):
            out[1, row, column] = matrix[row, column]
    for place in range(size):
        below = 0.0
        for row in range(place + 1, rows):
            below += out[1, row, place] * out[1, row, place]
        if below > 0.0:
            head = 1.0 * out[1, place, place]
            length = sqrt(head * head + below)
            length = length if head < 0.0 else -length
            for row in range(place + 1, rows):
                out[1, row, place] = out[1, row, place] / (head - length)
            factor = (length - head) / length
            out[1, place, place] = length
            for column in range(place + 1, size):
                share = 1.0 * out[1, place, column]
                for row in range(place + 1, rows):
                    share += out[1, row, place] * out[1, row, column]
                out[1, place, column] -= factor * share
                for row in range(place + 1, rows):
                    out[1, row, column] -= factor * share * out[1, row, place]
    set_unit(out, 0, rows, size)
    for step in range(size):
        place = size - 1 - step
        below = 0.0
        for row in range(place + 1, rows):
            below += out[1, row, place] * out[1, row, place]
        if below > 0.0:
            factor = 2.0 / (1.0 + below)
            for column in range(place, size):
                share = 1.0 * out[0, place, column]
                for row in range(place + 1, rows):
                    share += out[1, row, place] * out[0, row, column]
                out[0, place, column] -= factor * share
                for row in range(place + 1, rows):
                    out[0, row, column] -= factor * share * out[1, row, place]
    for row in range(rows):
        for column in range(min(row, size)):
            out[1, row, column] = 0.0


def triangles(matrix: np.ndarray, out: np.ndarray) -> None:
    """L, without its ones, and U of a matrix whose rows are exchanged in the first columns of `out`.

    In the last but one column which row of their product each row of the matrix is, in the last one with
    which row each was exchanged, one after the other.

    Args:
        matrix: shape (m, n).
        out: shape (m, n + 2).

    >>> triangles(a[i], parts[i])
    """
    rows, columns = matrix.shape
    copy(matrix, out)
    for row in range(rows):
        out[row, columns] = row
        out[row, columns + 1] = row
    eliminate_rows(out[:, :columns], out[:, columns + 1 :])
    count = min(rows, columns)
    for before in range(count):
        row = count - 1 - before
        other = int64(out[row, columns + 1])
        kept = out[row, columns]
        out[row, columns] = out[other, columns]
        out[other, columns] = kept


FUNCTIONS = (
    eigen_symmetric,
    eigen_symmetric_of_upper,
    eigenvalues_symmetric,
    eigenvalues_symmetric_of_upper,
    singular,
    singular_of_adjoint,
    singular_numbers,
    orthogonal_triangular,
    triangles,
)
"""Those that generated code calls."""
