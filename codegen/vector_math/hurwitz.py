"""The Hurwitz zeta function (NIST Digital Library of Mathematical Functions, dlmf.nist.gov, 25.11)."""

from __future__ import annotations

import math

from .double_double import two_sum
from .exponentiation import power
from .gamma_of_negative import bernoulli_numbers
from .primitives import (
    Number,
    elementary,
    hardware_ceil,
    hardware_floor,
    hardware_rint,
    repeat_while,
    select,
    to_float64,
    to_format_of,
    typed,
)

_TERMS = 12
_DISTANCE = 10.0
"""Where q is larger than x by this, so many terms of the formula have all bits."""
_EPSILON = 2.0**-54
_LARGEST = 1e300


@elementary
def zeta(x: Number, q: Number) -> Number:
    """The sum of (q + k)**-x for k = 0, 1, ...; nan for x < 1, inf at poles.

    Where q is negative x must be an integer: with c = ceil(q) - q the terms of negative numbers have the sum
    (-1)**x (zeta(x, c) - zeta(x, 1 - q)).
    """
    order, start = to_float64(x), to_float64(q)
    order = select(order < _LARGEST, order, select(order == order, _LARGEST, order))
    is_negative = start < 0.0
    value = _zeta(order, select(is_negative, start - hardware_floor(start), start))
    distance = select(is_negative, hardware_ceil(start) - start, 1.0)
    below = _zeta(order, distance) - _zeta(order, select(is_negative, 1.0 - start, 1.0))
    is_odd = hardware_rint(0.5 * order) != 0.5 * order
    value = select(is_negative, value + select(is_odd, -below, below), value)
    undefined = is_negative & (hardware_rint(order) != order)
    value = select(undefined, math.nan, select(start == math.inf, 0.0, value))
    value = select(((start <= 0.0) & (hardware_rint(start) == start)) | (order == 1.0), math.inf, value)
    return to_format_of(select(order >= 1.0, select(start == start, value, start), math.nan), x)


def _zeta(x: Number, q: Number) -> Number:
    """For x > 1 and q > 0, by the formula of Euler and Maclaurin (25.11.5) behind the first terms."""
    last = x + _DISTANCE

    def step(total: Number, term: Number, leading: Number, at: Number, k: Number) -> tuple[Number, ...]:
        at, low = two_sum(q, k)
        leading = power(at, 1.0 - x) * (1.0 - x * (low / at))  # the difference is exact
        return select(k == 0.0, 0.0, total + term), leading / at, leading, at, k + 1.0

    zero, one = typed(0.0, x), typed(1.0, x)
    total, term, leading, at, _ = repeat_while(
        lambda total, term, leading, at, k: (k == 0.0) | (at < last) & (term > _EPSILON * total), step,
        zero, one, one, zero, zero,
    )  # fmt: skip
    is_all = at < last  # what follows is too small to be added
    product, inverse = x, 1.0 / select(is_all, last, at)
    rest = typed(0.5, x)
    for k, number in enumerate(bernoulli_numbers()[:_TERMS], 1):
        rest = rest + float(number / math.factorial(2 * k)) * (product * inverse)
        product = product * ((x + (2.0 * k - 1.0)) * inverse) * ((x + 2.0 * k) * inverse)
    return total + select(is_all, term, term * rest + leading / (x - 1.0))
