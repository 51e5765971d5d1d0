"""The exponential of a matrix, and its derivative, as generated code computes them: by scaling and squaring.

The formulas are those of `tracer/ops/exponentials.py`. As in `decompositions.py` each fills planes of the
shape of its matrix.
"""

from __future__ import annotations

import numpy as np
from numpy import int64

from ..tracer.ops.exponentials import (
    COEFFICIENTS,
    CUBE,
    FIRST,
    KEPT,
    LARGEST_NORM,
    MOST_SAVED,
    NINTH,
    RESULT,
    ROOM,
    SCALED,
    SIXTH,
    SQUARE,
)
from .blas import gemm
from .matrices import copy

_, B11, B12, B13, _ = COEFFICIENTS[0]
_, B21, B22, B23, B26 = COEFFICIENTS[1]
B30, B31, B32, B33, B36 = COEFFICIENTS[2]
B40, B41, B42, B43, B46 = COEFFICIENTS[3]
_, _, B52, B53, B56 = COEFFICIENTS[4]
SECOND_ROOM = ROOM + 1
"""Of the derivative ..."""
AGAIN = ROOM + 2
"""... and the first of two planes for what is squared again."""
MOST_HALVINGS = 1100
"""Of numbers in double precision."""


def exponential(matrix: np.ndarray, out: np.ndarray) -> None:
    """The exponential in `out[0]`; in the other planes the steps to it, of which the derivative is made.

    Args:
        matrix: shape (n, n).
        out: shape (11, n, n).

    >>> exponential(a[i], steps[i])
    """
    copy(matrix, out[SCALED, :, :])
    if out.shape[1] > 0:
        halvings = take_powers(out)
        place = FIRST if halvings > 0 else RESULT
        add_powers(out, out[ROOM, :, :], 0.0, B11, B12, B13, 0.0)
        add_powers(out, out[place, :, :], 0.0, 0.0, B52, B53, B56)
        add_powers(out, out[NINTH, :, :], B40, B41, B42, B43, B46)
        gemm(1.0, out[ROOM, :, :], out[place, :, :], 1.0, out[NINTH, :, :])
        add_powers(out, out[ROOM, :, :], B30, B31, B32, B33, B36)
        add_powers(out, out[place, :, :], 0.0, B21, B22, B23, B26)
        add(out[NINTH, :, :], out[ROOM, :, :])
        gemm(1.0, out[ROOM, :, :], out[NINTH, :, :], 1.0, out[place, :, :])
        for done in range(1, halvings + 1):
            target = FIRST + done
            if done >= KEPT:
                target = RESULT if (halvings - done) % 2 == 0 else ROOM
            if done == halvings:
                target = RESULT
            gemm(1.0, out[place, :, :], out[place, :, :], 0.0, out[target, :, :])
            place = target
        out[ROOM, 0, 0] = halvings


def take_powers(out: np.ndarray) -> int:
    """Halve the matrix as often as it takes, and multiply its powers. How often that is."""
    halvings = 0
    scale = 1.0
    norm = norm_of(out, SCALED)
    while norm * scale > LARGEST_NORM and halvings < MOST_HALVINGS:
        scale = scale * 0.5
        halvings += 1
    multiply_by(out[SCALED, :, :], scale)
    gemm(1.0, out[SCALED, :, :], out[SCALED, :, :], 0.0, out[SQUARE, :, :])
    gemm(1.0, out[SQUARE, :, :], out[SCALED, :, :], 0.0, out[CUBE, :, :])
    square = norm_of(out, SQUARE)
    cube = norm_of(out, CUBE)
    saved = 0
    scale = 2.0
    while (
        saved < halvings
        and saved < MOST_SAVED
        and square * scale * scale <= LARGEST_NORM
        and cube * scale * scale * scale <= LARGEST_NORM
    ):
        scale = scale * 2.0
        saved += 1
    if saved > 0:
        scale = scale * 0.5
        multiply_by(out[SCALED, :, :], scale)
        multiply_by(out[SQUARE, :, :], scale * scale)
        multiply_by(out[CUBE, :, :], scale * scale * scale)
    gemm(1.0, out[CUBE, :, :], out[CUBE, :, :], 0.0, out[SIXTH, :, :])
    return halvings - saved


def norm_of(out: np.ndarray, plane: int) -> float:
    """The largest sum of a row of a plane, in sizes; nan of nan."""
    norm = 0.0
    for row in range(out.shape[1]):
        total = 0.0
        for column in range(out.shape[2]):
            total += abs(out[plane, row, column])
        if not total <= norm:
            norm = total
    return norm


def multiply_by(out: np.ndarray, scale: float) -> None:
    """A matrix in place."""
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            out[row, column] = scale * out[row, column]


def add(matrix: np.ndarray, out: np.ndarray) -> None:
    """To a matrix in place."""
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            out[row, column] += matrix[row, column]


def add_powers(
    powers: np.ndarray, out: np.ndarray, unit: float, one: float, two: float, three: float, six: float
) -> None:
    """Multiples of the unit matrix and of powers, or of their derivatives, into `out`."""
    for row in range(out.shape[0]):
        for column in range(out.shape[1]):
            out[row, column] = (
                one * powers[SCALED, row, column]
                + two * powers[SQUARE, row, column]
                + three * powers[CUBE, row, column]
                + six * powers[SIXTH, row, column]
            )
        out[row, row] += unit


def exponential_derivative(direction: np.ndarray, steps: np.ndarray, out: np.ndarray) -> None:
    """The derivative of an exponential in a direction in `out[0]`; the other planes are room.

    Args:
        direction: shape (n, n).
        steps: shape (11, n, n), what `exponential` has made.
        out: shape (10, n, n).

    >>> exponential_derivative(direction[i], steps[i], parts[i])
    """
    copy(direction, out[SCALED, :, :])
    if out.shape[1] > 0:
        halvings = int64(steps[ROOM, 0, 0])
        scale = 1.0
        for _ in range(halvings):
            scale = scale * 0.5
        multiply_by(out[SCALED, :, :], scale)
        multiply_rule(steps, out, SCALED, SCALED, SQUARE)
        multiply_rule(steps, out, SQUARE, SCALED, CUBE)
        multiply_rule(steps, out, CUBE, CUBE, SIXTH)
        place = RESULT if halvings % 2 == 0 else SECOND_ROOM
        add_powers(out, out[NINTH, :, :], 0.0, B41, B42, B43, B46)
        add_powers(out, out[ROOM, :, :], 0.0, B11, B12, B13, 0.0)
        add_powers(steps, out[place, :, :], 0.0, 0.0, B52, B53, B56)
        gemm(1.0, out[ROOM, :, :], out[place, :, :], 1.0, out[NINTH, :, :])
        add_powers(steps, out[ROOM, :, :], 0.0, B11, B12, B13, 0.0)
        add_powers(out, out[place, :, :], 0.0, 0.0, B52, B53, B56)
        gemm(1.0, out[ROOM, :, :], out[place, :, :], 1.0, out[NINTH, :, :])
        add_powers(out, out[place, :, :], 0.0, B21, B22, B23, B26)
        add_powers(out, out[ROOM, :, :], 0.0, B31, B32, B33, B36)
        add(out[NINTH, :, :], out[ROOM, :, :])
        gemm(1.0, out[ROOM, :, :], steps[NINTH, :, :], 1.0, out[place, :, :])
        add_powers(steps, out[ROOM, :, :], B30, B31, B32, B33, B36)
        add(steps[NINTH, :, :], out[ROOM, :, :])
        gemm(1.0, out[ROOM, :, :], out[NINTH, :, :], 1.0, out[place, :, :])
        for done in range(halvings):
            target = RESULT + SECOND_ROOM - place
            if done < KEPT:
                multiply_either_way(steps[FIRST + done, :, :], out[place, :, :], out[target, :, :])
            else:
                power = AGAIN + done % 2
                if done == KEPT:
                    last = FIRST + done - 1
                    gemm(1.0, steps[last, :, :], steps[last, :, :], 0.0, out[power, :, :])
                else:
                    last = AGAIN + (done - 1) % 2
                    gemm(1.0, out[last, :, :], out[last, :, :], 0.0, out[power, :, :])
                multiply_either_way(out[power, :, :], out[place, :, :], out[target, :, :])
            place = target


def multiply_rule(steps: np.ndarray, out: np.ndarray, one: int, other: int, to: int) -> None:
    """The derivative of a product of two steps."""
    gemm(1.0, steps[one, :, :], out[other, :, :], 0.0, out[to, :, :])
    gemm(1.0, out[one, :, :], steps[other, :, :], 1.0, out[to, :, :])


def multiply_either_way(power: np.ndarray, found: np.ndarray, out: np.ndarray) -> None:
    """The derivative of a square."""
    gemm(1.0, power, found, 0.0, out)
    gemm(1.0, found, power, 1.0, out)


FUNCTIONS = (exponential, exponential_derivative)
"""Those that generated code calls."""
