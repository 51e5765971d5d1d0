"""asin, acos, atan, atan2."""

from __future__ import annotations

import math

from . import coefficients
from .primitives import (
    Number,
    by_format,
    copysign,
    elementary,
    format_of,
    hardware_sqrt,
    polynomial,
    select,
    split,
    typed,
)

_HALF_PI = by_format(
    lambda number_format: split(coefficients.HALF_PI, number_format, number_format.fraction_bits + 1)
)


def _atan_of_ratio(a: Number, b: Number) -> tuple[Number, Number]:
    """atan(a / b) in two parts for a, b >= 0.

    Below a / b = 1/2 by its series; up to 2 as pi/4 + atan((a - b) / (a + b)), where a - b is exact; above as
    pi/2 - atan(b / a).
    """
    name = format_of(a).name
    high, low = _HALF_PI[name]
    small, middle = a <= 0.5 * b, a < 2.0 * b
    numerator = select(small, a, select(middle, a - b, -b))
    denominator = select(small, b, select(middle, a + b, a))
    t = numerator / denominator
    square = t * t
    series = t * square * polynomial(square, coefficients.ATAN[name])
    base = select(small, typed(0.0, a), select(middle, typed(0.5 * high, a), high))
    base_low = select(small, typed(0.0, a), select(middle, typed(0.5 * low, a), low))
    leading = base + t
    return leading, ((base - leading) + t) + (series + base_low)


@elementary
def atan(x: Number) -> Number:
    """The arc tangent, between -pi/2 and pi/2."""
    leading, rest = _atan_of_ratio(abs(x), typed(1.0, x))
    return copysign(leading + rest, x)


@elementary
def atan2(y: Number, x: Number) -> Number:
    """The angle of the point (x, y), between -pi and pi."""
    number_format = format_of(x)
    a, b = abs(y), abs(x)
    huge = 2.0 ** (number_format.bias - 2)
    factor = select((a > huge) | (b > huge), typed(0.25, x), 1.0)
    leading, rest = _atan_of_ratio(a * factor, b * factor)
    high, low = _HALF_PI[number_format.name]
    zero = (a == 0.0) & (b == b)
    leading, rest = select(zero, 0.0, leading), select(zero, 0.0, rest)
    both = (a == math.inf) & (b == math.inf)
    leading, rest = select(both, 0.5 * high, leading), select(both, 0.5 * low, rest)
    left = copysign(1.0, x) < 0.0
    angle = select(left, (2.0 * high - leading) - (rest - 2.0 * low), leading + rest)
    return copysign(angle, y)


def _asin_parts(x: Number) -> tuple[Number, Number, Number]:
    """Whether |x| > 1/2, and the asin of |x|, or else of sqrt((1 - |x|) / 2), as argument and rest."""
    a = abs(x)
    large = a > 0.5
    square = select(large, 0.5 - 0.5 * a, a * a)
    argument = select(large, hardware_sqrt(square), a)
    return large, argument, argument * square * polynomial(square, coefficients.ASIN[format_of(x).name])


@elementary
def asin(x: Number) -> Number:
    """The arc sine; nan beyond -1 and 1."""
    high, low = _HALF_PI[format_of(x).name]
    large, argument, rest = _asin_parts(x)
    leading = high - 2.0 * argument
    leading_low = (high - leading) - 2.0 * argument
    return copysign(select(large, leading + (leading_low - (2.0 * rest - low)), argument + rest), x)


@elementary
def acos(x: Number) -> Number:
    """The arc cosine; nan beyond -1 and 1."""
    high, low = _HALF_PI[format_of(x).name]
    large, argument, rest = _asin_parts(x)
    argument, rest = copysign(argument, x), copysign(rest, x)
    near_one = 2.0 * argument + 2.0 * rest
    far = select(x < 0.0, (2.0 * high + 2.0 * argument) + (2.0 * rest + 2.0 * low), near_one)
    return select(large, far, (high - argument) - (rest - low))
