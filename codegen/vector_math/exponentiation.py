"""a ** b = exp(b * log(a)), with more precision in between.

b * log(a) reaches 700, and its absolute error is the result's relative one. For float32 all is done in
float64. For float64, log(a) and the product are sums of two numbers, added and multiplied without error or
with a tiny one (T. J. Dekker, A floating-point technique for extending the available precision, Numerische
Mathematik 18, 1971).
"""

from __future__ import annotations

import math
from fractions import Fraction

from . import coefficients
from .exponential import clamp_exp, exp_parts
from .logarithm import LOG_2, split_exponent, split_normal
from .primitives import (
    FLOAT32,
    FLOAT64,
    Condition,
    Number,
    copysign,
    elementary,
    exact_product,
    format_of,
    from_bits,
    fused_multiply_add,
    hardware_trunc,
    polynomial,
    select,
    split,
    to_bits,
    to_float64,
    to_format_of,
    typed,
)

_TWELFTH, _TWELFTH_LOW = split(Fraction(1, 12), FLOAT64, 53)


@elementary
def power(a: Number, b: Number) -> Number:
    """a ** b; a negative base takes integer exponents only, 0 ** 0 and nan ** 0 are 1 (IEEE 754, pow)."""
    base = abs(a)
    magnitude = _float32_power(base, b) if format_of(a) is FLOAT32 else _float64_power(base, b)
    magnitude = select((b == 0.0) | (base == 1.0), 1.0, magnitude)
    odd = _is_integer(b) & ~_is_integer(0.5 * b)
    undefined = (a < 0.0) & (base < math.inf) & ~_is_integer(b)
    return select(undefined, math.nan, select(odd, copysign(magnitude, a), magnitude))


def _is_integer(x: Number) -> Condition:
    return hardware_trunc(x) == x


def _at_ends(base: Number, logarithm: Number) -> Number:
    """The logarithm where 0 < base < inf, and its limits beyond."""
    high = select(base < math.inf, logarithm, to_format_of(base, logarithm))
    return select(base == 0.0, -math.inf, high)


def _float32_power(base: Number, b: Number) -> Number:
    m, e = split_normal(to_float64(base))
    s = (m - 1.0) / (m + 1.0)
    log2 = e + s * polynomial(s * s, coefficients.LOG2_FLOAT32_POWER)
    product = to_float64(b) * _at_ends(base, log2)
    product = select(product < -160.0, -160.0, product)
    product = select(product > 130.0, 130.0, product)
    magic = FLOAT64.rounder + FLOAT64.bias
    shifted = product + magic
    r = product - (shifted - magic)
    power = from_bits(to_bits(shifted) << FLOAT64.fraction_bits)
    return to_format_of(power + power * (r * polynomial(r, coefficients.EXP2_FLOAT32_POWER)), base)


def _float64_power(base: Number, b: Number) -> Number:
    log, log_low = logarithm_in_parts(base)
    product, product_low = exact_product(b, _at_ends(base, log))
    clamped = clamp_exp(product)
    low = select(clamped == product, fused_multiply_add(b, log_low, product_low), 0.0)
    t, p = exp_parts(clamped, low)
    return (p + p * t) * p


def logarithm_in_parts(x: Number) -> tuple[Number, Number]:
    """log(x) of finite x > 0 in two parts: with w = 2 (m - 1) / (m + 1), log(m) = w + w**3 / 12 + ..."""
    m, e, _ = split_exponent(x)
    f = m - 1.0
    divisor, divisor_low = _add(typed(2.0, x), f)
    inverse = 1.0 / divisor
    twice = f + f
    w = twice * inverse
    w_low = (fused_multiply_add(-w, divisor, twice) - w * divisor_low) * inverse

    square, square_low = exact_product(w, w)
    part, part_low = exact_product(square, typed(_TWELFTH, x))
    part_low = part_low + (square * _TWELFTH_LOW + square_low * _TWELFTH)
    cubic, cubic_low = exact_product(w, part)
    cubic_low = cubic_low + w * part_low
    rest = cubic * (square * polynomial(square, coefficients.POWER_LOG))
    rest = (rest + cubic_low) + (w_low + w_low * (0.25 * square))  # the derivative of the cubic in w

    log_2_high, log_2_low = LOG_2["float64"]
    leading, first_low = _add(e * log_2_high, w)  # the product is exact
    leading, second_low = _add(leading, cubic)
    return _add(leading, (first_low + second_low) + (rest + e * log_2_low))


def _add(larger: Number, smaller: Number) -> tuple[Number, Number]:
    """The rounded sum and its rounding error."""
    total = larger + smaller
    return total, (larger - total) + smaller
