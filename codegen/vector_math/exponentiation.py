"""a ** b = exp(b * log(a)), with twice the precision in between.

b * log(a) reaches 700, and its absolute error is the result's relative one; so log(a) and the product are
sums of two numbers, added and multiplied without error or with a tiny one (T. J. Dekker, A floating-point
technique for extending the available precision, Numerische Mathematik 18, 1971).
"""

from __future__ import annotations

import math
from fractions import Fraction

from . import coefficients
from .exponential import exp_of_sum
from .logarithm import LOG_2, split_exponent
from .primitives import (
    Condition,
    Number,
    by_format,
    copysign,
    elementary,
    exact_product,
    format_of,
    fused_multiply_add,
    hardware_trunc,
    polynomial,
    select,
    split,
    typed,
)

_TWO_THIRDS = by_format(
    lambda number_format: split(Fraction(2, 3), number_format, number_format.fraction_bits + 1)
)


def _add(larger: Number, smaller: Number) -> tuple[Number, Number]:
    """The rounded sum and its rounding error."""
    total = larger + smaller
    return total, (larger - total) + smaller


def _log(x: Number) -> tuple[Number, Number]:
    """log(x) of finite x > 0 in two parts, by log(m) = 2 s + s**3 * (2/3 + s**2 * p(s**2))."""
    name = format_of(x).name
    m, e, _ = split_exponent(x)
    f = m - 1.0
    divisor, divisor_low = _add(typed(2.0, x), f)
    inverse = 1.0 / divisor
    s = f * inverse
    s_low = (fused_multiply_add(-s, divisor, f) - s * divisor_low) * inverse
    square, square_low = exact_product(s, s)
    square_low = square_low + 2.0 * s * s_low
    two_thirds, two_thirds_low = _TWO_THIRDS[name]
    factor, factor_low = _add(typed(two_thirds, x), square * polynomial(square, coefficients.POWER_LOG[name]))
    cube_part, cube_low = exact_product(square, factor)
    cube_low = cube_low + (square * (factor_low + two_thirds_low) + square_low * factor)
    series, series_low = exact_product(s, cube_part)
    series_low = series_low + (s * cube_low + s_low * cube_part)
    log_2_high, log_2_low = LOG_2[name]
    leading, first_error = _add(e * log_2_high, 2.0 * s)
    leading, second_error = _add(leading, series)
    rest = (first_error + second_error) + (2.0 * s_low + series_low + e * log_2_low)
    return _add(leading, rest)


def _is_integer(x: Number) -> Condition:
    return hardware_trunc(x) == x


@elementary
def power(a: Number, b: Number) -> Number:
    """a ** b; a negative base takes integer exponents only, 0 ** 0 and nan ** 0 are 1 (IEEE 754, pow)."""
    base = abs(a)
    log_a, log_a_low = _log(base)
    log_a = select(base == 0.0, -math.inf, select(base < math.inf, log_a, base))
    bound = 2.0 ** (2 * format_of(a).fraction_bits)  # enough for 0 or inf, and its product does not overflow
    exponent = select(b > bound, bound, select(b < -bound, -bound, b))
    product, product_low = exact_product(exponent, log_a)
    magnitude = exp_of_sum(product, fused_multiply_add(exponent, log_a_low, product_low))
    odd = _is_integer(b) & ~_is_integer(0.5 * b)
    undefined = (a < 0.0) & (base < math.inf) & ~_is_integer(b)
    result = select(undefined, math.nan, select(odd, copysign(magnitude, a), magnitude))
    return select((b == 0.0) | (a == 1.0), 1.0, result)
