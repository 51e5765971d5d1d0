"""Decompositions of a matrix as generated code calls them: plain loops, which Numba compiles with the caller.

Each fills planes of the shape of its matrix; what does not fill a plane lies in its first rows or columns.
The methods are those of Golub and Van Loan, Matrix Computations: Jacobi's rotations from two sides (8.5) for
eigenvalues and from one side, Hestenes's (8.6), for singular values, Householder's reflections (5.2) with
LAPACK's signs, Gauss's elimination with row pivots (3.4), scaling and squaring (9.3) for the exponential.
"""

from __future__ import annotations

import numpy as np

from .vector_math import sqrt

MOST_SWEEPS = 60
"""Of rotations over all pairs of columns; convergence is quadratic, so that ten are usual."""
TERMS = 20
"""Of the exponential's series, for matrices whose norm is at most 1/2."""


def set_unit(out: np.ndarray, plane: int, rows: int, columns: int) -> None:
    """Ones on the diagonal of a plane, zeros elsewhere."""
    for row in range(rows):
        for column in range(columns):
            out[plane, row, column] = 1.0 if row == column else 0.0


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


def eigen_symmetric(matrix: np.ndarray, out: np.ndarray) -> None:
    """Eigenvectors in the columns of `out[0]`, eigenvalues in ascending order in the first row of `out[1]`.

    Args:
        matrix: shape (n, n), of which the lower triangle is read.
        out: shape (2, n, n).

    >>> eigen_symmetric(a[i], parts[i])
    """
    size = matrix.shape[0]
    set_unit(out, 0, size, size)
    whole = 0.0
    for row in range(size):
        for column in range(row + 1):
            out[1, row, column] = matrix[row, column]
            out[1, column, row] = matrix[row, column]
            whole += 2.0 * matrix[row, column] * matrix[row, column]
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
    for row in range(1, size):
        for column in range(size):
            out[1, row, column] = 0.0


def singular(matrix: np.ndarray, out: np.ndarray) -> None:
    """Left singular vectors in the columns of `out[0]`, singular values in descending order in the first row
    of `out[1]`, right singular vectors in the columns of the first n rows of `out[2]`.

    Args:
        matrix: shape (m, n), m >= n.
        out: shape (3, m, n).

    >>> singular(a[i], parts[i])
    """
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

    Args:
        matrix: shape (m, n), m >= n.
        out: shape (2, m, n).

    >>> orthogonal_triangular(a[i], parts[i])
    """
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


def exchanged_rows(matrix: np.ndarray, out: np.ndarray) -> None:
    """In the first column of `out[0]` which row of the matrix each row becomes, in that of `out[1]` the row
    that it was exchanged with, when elimination divides by the largest element of a column.

    Args:
        matrix: shape (m, n).
        out: shape (3, m, n), the last plane for what is left of the matrix.

    >>> exchanged_rows(a[i], parts[i])
    """
    rows = matrix.shape[0]
    columns = matrix.shape[1]
    for row in range(rows):
        for column in range(columns):
            out[0, row, column] = row
            out[1, row, column] = row
            out[2, row, column] = matrix[row, column]
    for place in range(min(rows, columns)):
        best = place
        for row in range(place + 1, rows):
            if abs(out[2, row, place]) > abs(out[2, best, place]):
                best = row
        out[1, place, 0] = best
        if best != place:
            kept = out[0, place, 0]
            out[0, place, 0] = out[0, best, 0]
            out[0, best, 0] = kept
            for column in range(columns):
                moved = out[2, place, column]
                out[2, place, column] = out[2, best, column]
                out[2, best, column] = moved
        if out[2, place, place] != 0.0:
            for row in range(place + 1, rows):
                factor = out[2, row, place] / out[2, place, place]
                for column in range(place + 1, columns):
                    out[2, row, column] -= factor * out[2, place, column]


def triangles(matrix: np.ndarray, out: np.ndarray) -> None:
    """Both triangles whose product the matrix is, without the ones on the lower one's diagonal, in `out[0]`.

    Args:
        matrix: shape (n, n).
        out: shape (1, n, n).

    >>> triangles(a[i], parts[i])
    """
    size = matrix.shape[0]
    for row in range(size):
        for column in range(size):
            out[0, row, column] = matrix[row, column]
    for place in range(size):
        for row in range(place + 1, size):
            out[0, row, place] = out[0, row, place] / out[0, place, place]
            for column in range(place + 1, size):
                out[0, row, column] -= out[0, row, place] * out[0, place, column]


def multiply_planes(out: np.ndarray, one: int, other: int, result: int, size: int, scale: float) -> None:
    """A plane as the product of two others, times a number."""
    for row in range(size):
        for column in range(size):
            total = 0.0
            for middle in range(size):
                total += out[one, row, middle] * out[other, middle, column]
            out[result, row, column] = scale * total


def exponential(matrix: np.ndarray, out: np.ndarray) -> None:
    """The exponential in `out[0]`.

    Args:
        matrix: shape (n, n).
        out: shape (4, n, n); the other planes are scratch.

    >>> exponential(a[i], parts[i])
    """
    size = matrix.shape[0]
    norm = 0.0
    for row in range(size):
        total = 0.0
        for column in range(size):
            total += abs(matrix[row, column])
        if not total <= norm:
            norm = total
    halvings = 0
    scale = 1.0
    while norm * scale > 0.5 and halvings < 1000:
        scale = scale * 0.5
        halvings += 1
    for row in range(size):
        for column in range(size):
            out[1, row, column] = scale * matrix[row, column]
    set_unit(out, 0, size, size)
    set_unit(out, 2, size, size)
    for term in range(1, TERMS):
        multiply_planes(out, 2, 1, 3, size, 1.0 / term)
        for row in range(size):
            for column in range(size):
                out[2, row, column] = out[3, row, column]
                out[0, row, column] += out[3, row, column]
    for _ in range(halvings):
        multiply_planes(out, 0, 0, 3, size, 1.0)
        for row in range(size):
            for column in range(size):
                out[0, row, column] = out[3, row, column]


FUNCTIONS = (eigen_symmetric, singular, orthogonal_triangular, exchanged_rows, triangles, exponential)
"""Those that generated code calls."""
