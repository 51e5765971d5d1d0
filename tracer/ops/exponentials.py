"""The exponential of a matrix, and its derivative, which is made of the steps that the exponential takes.

By scaling and squaring, with a polynomial of degree 18 in five products: Bader, Blanes and Casas, "Computing
the matrix exponential with an optimized Taylor polynomial approximation" (2019). How often a matrix is halved
its powers say: Al-Mohy and Higham, "A new scaling and squaring algorithm for the matrix exponential" (2009).
Each step beside its derivative: Al-Mohy and Higham, "Computing the Frechet derivative of the matrix
exponential" (2009).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..errors import ShapeError
from ..operator import HOLOMORPHIC, Array, WholeCall, declare
from ..spec import Spec, spec_of
from .decompositions import (
    columns_of,
    in_planes,
    is_number,
    matrix,
    plane_of,
    require_matrix,
    rows_of,
)
from .elementwise import exp, multiply, zeros_like
from .lazy import scipy_linalg
from .linalg import transposed
from .matrices import of_each_matrix
from .movement import concatenate

COEFFICIENTS = (
    (0.0, -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04, 0.0),
    (
        0.0, 3.97849749499645077844e-01, 1.36783778460411720168e00, 4.98289622525382669416e-01,
        -6.37898194594723280150e-04,
    ),
    (
        -1.09676396052962061844e01, 1.68015813878906206114e00, 5.71779846478865511061e-02,
        -6.98210122488052056106e-03, 3.34975017086070470649e-05,
    ),
    (
        -9.04316832390810593223e-02, -6.76404519071381882256e-02, 6.75961301770459654925e-02,
        2.95552570429315521194e-02, -1.39180257516060693404e-05,
    ),
    (0.0, 0.0, -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05),
)  # fmt: skip
"""Of 1, a, a**2, a**3 and a**6 in b1 to b5, of which b9 = b1 b5 + b4 and b2 + (b3 + b9) b9 are made: the
Taylor polynomial of degree 18."""
LARGEST_NORM = 1.0
"""Up to which the polynomial and its derivative are exact to the last digit of a double."""
MOST_SAVED = 3
"""Halvings that powers of a matrix may save beside its norm, as each may cost a bit."""
RESULT, SCALED, SQUARE, CUBE, SIXTH, NINTH, ROOM, FIRST = range(8)
"""Planes of the steps: the exponential, the halved matrix, its powers, b9, and the polynomial's value, which
is the first of those that are squared. The first number of the room is how often the matrix was halved."""
KEPT = 4
"""How many of those that are squared are kept, which takes memory; others are squared again, a third of their
derivatives' products."""
PLANES = FIRST + KEPT
PLANES_OF_DERIVATIVE = 10
"""Those up to the room, a second one, and two for what is squared again."""
_OF_POWERS = np.array(COEFFICIENTS)[:, 1:]
_OF_UNIT = np.array(COEFFICIENTS)[:, :1]

# --- by NumPy -----------------------------------------------------------------------------------------------


def _expm(a: np.ndarray) -> np.ndarray:
    return np.asarray(scipy_linalg().expm(doubles(a))).astype(a.dtype) if a.size else np.array(a)


def doubles(a: np.ndarray) -> np.ndarray:
    """In double precision."""
    return a.astype(np.result_type(a.dtype, np.float64), copy=False)


def _steps(a: np.ndarray) -> np.ndarray:
    if not a.size:
        return np.zeros(exponentials.infer(spec_of(a)).shape, a.dtype)
    return of_each_matrix(_steps_of_one, doubles(a)).astype(a.dtype, copy=False)


def _steps_of_one(a: np.ndarray) -> np.ndarray:
    found = np.zeros((PLANES, *a.shape), a.dtype)
    if not np.isfinite(a).all():
        found[...], found[ROOM] = np.nan, 0
        return found
    scaled, square, cube, sixth = powers = found[SCALED:NINTH]
    halvings = _halvings_of(_norm(a))
    np.multiply(a, 0.5**halvings, out=scaled)
    np.matmul(scaled, scaled, out=square)
    np.matmul(square, scaled, out=cube)
    saved = min(halvings, MOST_SAVED, -_halvings_of(_norm(square), 2), -_halvings_of(_norm(cube), 3))
    if saved > 0:
        halvings -= saved
        powers[:3] *= np.array([2.0**saved, 4.0**saved, 8.0**saved])[:, None, None]
    np.matmul(cube, cube, out=sixth)
    b1, b2, b3, b4, b5 = _combined(powers, _OF_UNIT)
    found[NINTH] = ninth = b1 @ b5 + b4
    power = b2 + (b3 + ninth) @ ninth
    for place in range(halvings):
        if place < KEPT:
            found[FIRST + place] = power
        power = power @ power
    found[RESULT], found[ROOM, 0, 0] = power, halvings
    return found


def _norm(a: np.ndarray) -> float:
    return float(np.abs(a).sum(-1).max())


def _halvings_of(norm: float, power: int = 1) -> int:
    """How often a matrix must be halved, or may be doubled, until this norm of its power is at most 1."""
    share, exponent = math.frexp(norm)
    least = -(-(exponent - (share == 0.5)) // power)
    return max(least, 0) if power == 1 else least if norm else -MOST_SAVED


def _combined(powers: np.ndarray, of_unit: np.ndarray | None = None) -> np.ndarray:
    """b1 to b5, or their derivatives, which have nothing of the unit matrix."""
    _, size, _ = powers.shape
    flat = _OF_POWERS @ powers.reshape(4, size * size)
    if of_unit is not None:
        flat[:, :: size + 1] += of_unit
    return flat.reshape(5, size, size)


def _derivative(direction: np.ndarray, steps: np.ndarray) -> np.ndarray:
    if not direction.size:
        return np.array(direction)
    found = of_each_matrix(_derivative_of_one, doubles(direction), doubles(steps))
    return found.astype(direction.dtype, copy=False)


def _derivative_of_one(direction: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Each step of the exponential, differentiated."""
    scaled, square, cube, _, ninth, room = steps[SCALED:FIRST]
    halvings, power = int(room[0, 0].real), steps[FIRST]
    ofs = np.empty((4, *direction.shape), np.result_type(direction, steps))
    ofs[0] = direction * 0.5**halvings
    ofs[1] = scaled @ ofs[0] + ofs[0] @ scaled
    ofs[2] = square @ ofs[0] + ofs[1] @ scaled
    ofs[3] = cube @ ofs[2] + ofs[2] @ cube
    (b1, _, b3, _, b5), (of_b1, of_b2, of_b3, of_b4, of_b5) = (
        _combined(steps[SCALED:NINTH], _OF_UNIT),
        _combined(ofs),
    )
    of_ninth = of_b1 @ b5 + b1 @ of_b5 + of_b4
    found = of_b2 + (of_b3 + of_ninth) @ ninth + (b3 + ninth) @ of_ninth
    for place in range(halvings):
        power = steps[FIRST + place] if place < KEPT else power @ power
        found = power @ found + found @ power
    return found


# --- operators ----------------------------------------------------------------------------------------------


def of_blocks(function: Callable[[Array], Array], a: Array, direction: Array) -> Array:
    """The derivative of a function of matrices: the upper right part of that of [[a, direction], [0, a]]."""
    rank, size = len(a.shape), a.shape[-1]
    above = concatenate(a, direction, dim=rank - 1)
    below = concatenate(zeros_like(a), a, dim=rank - 1)
    whole = function(concatenate(above, below, dim=rank - 2))
    return columns_of(rows_of(whole, 0, size), size, 2 * size)


def beside(x: Array) -> Array:
    """[[x, 0], [0, x]]"""
    rank, nothing = len(x.shape), zeros_like(x)
    rows = concatenate(x, nothing, dim=rank - 1), concatenate(nothing, x, dim=rank - 1)
    return concatenate(*rows, dim=rank - 2)


exponentials = matrix(
    "exponentials", planes=PLANES, square=True, functions=("exponential",), evaluate=_steps,
    of_complex=HOLOMORPHIC, doc="the exponential of a matrix, and the steps to it",
)  # fmt: skip


def _infer_square(a: Spec) -> Spec:
    require_matrix("matrix_exp", a, True)
    return a


def _cotangent(g: Array, a: Array, steps: Array) -> Array:
    return transposed(expm_frechet(a, transposed(g), steps))


matrix_exp = declare(
    "matrix_exp", "composite", "a", infer=_infer_square, evaluate=_expm, needs_own_rule=True,
    body=lambda a: exp(a) if is_number(a) else plane_of(exponentials(a), RESULT),
    vjp={"a": lambda g, a: _cotangent(g, a, exponentials(a))},
    grad_fn="LinalgMatrixExp", of_complex=HOLOMORPHIC,
    doc="the sum of the powers a ** k / k!",
)  # fmt: skip
exponential_of_steps = declare(
    "exponential_of_steps", "composite", "a steps", infer=lambda a, steps: _infer_square(a),
    evaluate=lambda a, steps: steps[..., RESULT, :, :].copy(), needs_own_rule=True,
    body=lambda a, steps: plane_of(steps, RESULT), vjp={"a": _cotangent}, of_complex=HOLOMORPHIC,
    doc="`matrix_exp`, given what `exponentials` makes of a as well",
)  # fmt: skip


def _infer_direction(a: Spec, direction: Spec, steps: Spec) -> Spec:
    require_matrix("expm_frechet", a, True)
    if a.shape != direction.shape:
        raise ShapeError(f"expm_frechet: directions of shape {a.shape} expected, found {direction.shape}.")
    return a


exponential_derivatives = declare(
    "exponential_derivatives", "decomposition", "direction steps", of_complex=HOLOMORPHIC,
    infer=lambda direction, steps: direction.with_shape(
        (*direction.shape[:-2], PLANES_OF_DERIVATIVE, *direction.shape[-2:])
    ),
    evaluate=lambda direction, steps: in_planes(
        direction, _derivative(direction, steps), *[np.zeros((0, 0))] * (PLANES_OF_DERIVATIVE - 1)
    ),
    call=WholeCall(("exponential_derivative",)),
    doc="the derivative of a matrix's exponential in a direction, and room to compute it in",
)  # fmt: skip
expm_frechet = declare(
    "expm_frechet", "composite", "a direction steps", infer=_infer_direction, needs_own_rule=True,
    evaluate=lambda a, direction, steps: _derivative(direction, steps),
    body=lambda a, direction, steps: multiply(exp(a), direction)
    if is_number(a)
    else plane_of(exponential_derivatives(direction, steps), RESULT),
    vjp={
        "a": lambda g, a, direction: of_blocks(
            lambda whole: expm_frechet(whole, beside(transposed(direction)), exponentials(whole)),
            transposed(a), g,
        ),
        "direction": lambda g, a, steps: _cotangent(g, a, steps),
    },
    of_complex=HOLOMORPHIC,
    doc="the derivative of a matrix's exponential in a direction, given what `exponentials` makes of it",
)  # fmt: skip
