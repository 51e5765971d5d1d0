"""The exponential of a matrix, and its derivative, as generated code computes them: by scaling and squaring.

Golub and Van Loan, Matrix Computations, 9.3. As in `decompositions.py` each fills planes of the shape of its
matrix.
"""

from __future__ import annotations

import numpy as np

from .blas import gemm
from .matrices import copy

LARGEST_NORM = 0.75
FACTORIAL = 20922789888000.0
"""Of 16, the last power of the exponential's series: enough for matrices up to this norm."""


def exponential(matrix: np.ndarray, out: np.ndarray) -> None:
    """The exponential in `out[0]`.

    Args:
        matrix: shape (n, n).
        out: shape (6, n, n); the other planes are scratch.

    >>> exponential(a[i], parts[i])
    """
    copy(matrix, out[2, :, :])
    sum_series(out, 1)


def exponential_derivative(matrix: np.ndarray, direction: np.ndarray, out: np.ndarray) -> None:
    """The exponential in `out[0]`, its derivative in a direction in `out[1]`.

    Each value of the series lies beside its derivative, and what is done to the one is done to both: Al-Mohy
    and Higham, "Computing the Frechet derivative of the matrix exponential" (2009).

    Args:
        matrix, direction: shape (n, n).
        out: shape (12, n, n); the other planes are scratch.

    >>> exponential_derivative(a[i], direction[i], parts[i])
    """
    copy(matrix, out[4, :, :])
    copy(direction, out[5, :, :])
    sum_series(out, 2)


def sum_series(out: np.ndarray, width: int) -> None:
    """The exponential of the third of six values in the place of the first.

    The series up to the power 16 in powers of the matrix's fourth power (Paterson and Stockmeyer), squared as
    often as the matrix was halved. A value has so many planes: its own, and that of its derivative.
    """
    size = out.shape[1]
    norm = 0.0
    for row in range(size):
        total = 0.0
        for column in range(size):
            total += abs(out[2 * width, row, column])
        if not total <= norm:
            norm = total
    halvings = 0
    scale = 1.0
    while norm * scale > LARGEST_NORM and halvings < 1000:
        scale = scale * 0.5
        halvings += 1
    for plane in range(2 * width, 3 * width):
        for row in range(size):
            for column in range(size):
                out[plane, row, column] = scale * out[plane, row, column]
    for power in range(3):
        multiply_planes(out, width, 2, 2 + power, 3 + power)
    place = (halvings + 1) % 2  # so that the last product is the first value
    weight = 1.0 / FACTORIAL
    for part in range(width):
        for row in range(size):
            for column in range(size):
                out[place * width + part, row, column] = weight * out[5 * width + part, row, column]
    for step in range(4):
        first = 12 - 4 * step  # the least of the four powers that are added, times 1 / first!
        weight = weight * ((first + 4) * (first + 3) * (first + 2) * (first + 1))
        second = weight / (first + 1)
        third = second / (first + 2)
        fourth = third / (first + 3)
        for part in range(width):
            for row in range(size):
                for column in range(size):
                    out[place * width + part, row, column] += (
                        second * out[2 * width + part, row, column]
                        + third * out[3 * width + part, row, column]
                        + fourth * out[4 * width + part, row, column]
                    )
        for row in range(size):
            out[place * width, row, row] += weight
        if first > 0:
            multiply_planes(out, width, place, 5, 1 - place)
            place = 1 - place
    for _ in range(halvings):
        multiply_planes(out, width, place, place, 1 - place)
        place = 1 - place


def multiply_planes(out: np.ndarray, width: int, one: int, other: int, to: int) -> None:
    """The product of two values, and its derivative."""
    if out.shape[1] > 0:
        left = one * width
        right = other * width
        found = to * width
        gemm(1.0, out[left, :, :], out[right, :, :], 0.0, out[found, :, :])
        if width > 1:
            gemm(1.0, out[left, :, :], out[right + 1, :, :], 0.0, out[found + 1, :, :])
            gemm(1.0, out[left + 1, :, :], out[right, :, :], 1.0, out[found + 1, :, :])


FUNCTIONS = (exponential, exponential_derivative)
"""Those that generated code calls."""
