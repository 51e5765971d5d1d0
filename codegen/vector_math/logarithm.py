"""log and what follows from it: log2, log10, log1p, softplus, asinh, acosh, atanh.

x = 2**e * (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), and with s = f / (2 + f)
log(1 + f) = 2 artanh(s) = f - s * (f - s**2 * p(s**2)), p a polynomial (Cody and Waite, chapter 5).
In float32 it is f - f**2 / 2 + f**3 * p(f).
"""

from __future__ import annotations

import math

from . import coefficients
from .exponential import exp_of_minus
from .primitives import (
    FLOAT32,
    Bits,
    Number,
    by_format,
    copysign,
    elementary,
    format_of,
    from_bits,
    hardware_sqrt,
    polynomial,
    select,
    split,
    to_bits,
    typed,
)

LOG_2 = by_format(
    lambda number_format: split(coefficients.LOG_2, number_format, number_format.fraction_bits - 10)
)
_LOG10_2 = by_format(
    lambda number_format: split(coefficients.LOG10_2, number_format, number_format.fraction_bits - 10)
)
_SQRT_HALF = math.sqrt(0.5)


def _split_bits(x: Number) -> tuple[Number, Number, Bits]:
    """Of normal x = m * 2**e with sqrt(1/2) <= m < sqrt(2): m, e + bias + 2**fraction_bits, and e + bias."""
    number_format = format_of(x)
    lowest = number_format.bits_of(_SQRT_HALF)
    bits = to_bits(x) + (number_format.bits_of(1.0) - lowest)
    biased = bits >> number_format.fraction_bits
    m = from_bits((bits & ((1 << number_format.fraction_bits) - 1)) + lowest)
    return m, from_bits(biased | number_format.bits_of(2.0**number_format.fraction_bits)), biased


def split_normal(x: Number) -> tuple[Number, Number]:
    """x = m * 2**e, normal and positive, with sqrt(1/2) <= m < sqrt(2): m and e."""
    number_format = format_of(x)
    m, shifted, _ = _split_bits(x)
    return m, shifted - (2.0**number_format.fraction_bits + number_format.bias)


def split_exponent(x: Number) -> tuple[Number, Number, Bits]:
    """As `split_normal`, of subnormal x as well; and e + bias as an integer, right for normal x only."""
    number_format = format_of(x)
    raised = float(number_format.fraction_bits + 2)
    subnormal = x < number_format.smallest_normal
    m, shifted, biased = _split_bits(select(subnormal, x * 2.0**raised, x))
    offset = 2.0**number_format.fraction_bits + number_format.bias
    return m, shifted - select(subnormal, typed(offset + raised, x), offset), biased


def _log_rest(f: Number) -> Number:
    """log(1 + f) - f for f of a reduced argument."""
    if format_of(f) is FLOAT32:  # few enough terms to do without the division
        return f * f * (f * polynomial(f, coefficients.LOG_FLOAT32) - 0.5)
    s = f / (2.0 + f)
    square = s * s
    half_square = 0.5 * f * f
    return s * (half_square + square * polynomial(square, coefficients.LOG)) - half_square


def _log_reduced(f: Number) -> tuple[Number, Number]:
    """log(1 + f) for f of a reduced argument, and its rounding error."""
    rest = _log_rest(f)
    y = f + rest
    return y, (f - y) + rest


def log_parts(x: Number) -> tuple[Number, Number]:
    """log(x) of finite x > 0, and what its rounding leaves, roughly."""
    m, e, _ = split_exponent(x)
    log_2_high, log_2_low = LOG_2[format_of(x).name]
    f = m - 1.0
    rest = _log_rest(f) + e * log_2_low
    small = f + rest
    y = e * log_2_high + small  # the product is exact
    return y, ((e * log_2_high - y) + small) + ((f - small) + rest)


def _finish(x: Number, y: Number, pole: float) -> Number:
    """y with the values at the ends of the domain, which starts at `pole`."""
    y = select(x > pole, y, select(x == pole, typed(-math.inf, x), math.nan))
    return select(x == math.inf, x, y)


@elementary
def log(x: Number) -> Number:
    """The natural logarithm; -inf at 0, nan below."""
    m, e, _ = split_exponent(x)
    f = m - 1.0
    log_2_high, log_2_low = LOG_2[format_of(x).name]
    return _finish(x, e * log_2_high + (f + (_log_rest(f) + e * log_2_low)), 0.0)


@elementary
def log2(x: Number) -> Number:
    """The logarithm to base 2, exact for powers of 2."""
    m, e, _ = split_exponent(x)
    y, low = _log_reduced(m - 1.0)
    log2_e = float(1 / coefficients.LOG_2)
    return _finish(x, e + (y * log2_e + low * log2_e), 0.0)


@elementary
def log10(x: Number) -> Number:
    """The logarithm to base 10."""
    m, e, _ = split_exponent(x)
    y, low = _log_reduced(m - 1.0)
    log10_2_high, log10_2_low = _LOG10_2[format_of(x).name]
    log10_e = float(coefficients.LOG10_2 / coefficients.LOG_2)
    return _finish(x, e * log10_2_high + (y * log10_e + (low * log10_e + e * log10_2_low)), 0.0)


def _log1p(x: Number, low: Number = 0.0) -> Number:
    """log(1 + x + low) for finite x > -1, with the rounding error of 1 + x put back."""
    number_format = format_of(x)
    u = 1.0 + x
    rounded = u - 1.0
    error = (1.0 - (u - rounded)) + (x - rounded) + low
    m, e, biased = split_exponent(u)
    inverse = from_bits((2 * number_format.bias - biased) << number_format.fraction_bits)
    f = (m - 1.0) + select(x < 2.0**64, error * inverse, 0.0)
    log_2_high, log_2_low = LOG_2[number_format.name]
    return e * log_2_high + (f + (_log_rest(f) + e * log_2_low))


@elementary
def log1p(x: Number) -> Number:
    """log(1 + x), without cancellation near 0."""
    return select(x == 0.0, x, _finish(x, _log1p(x), -1.0))


@elementary
def softplus(x: Number) -> Number:
    """log(1 + e**x), without overflow: log(1 + p) + max(x, 0) with p = e**-|x|, and 1 + p is at most 2."""
    power, unit = exp_of_minus(abs(x))
    power = power * (1.0 / unit)
    large = power > math.sqrt(2.0) - 1.0
    f = select(large, 0.5 * power - 0.5, power)  # 1 + p = 2 * (1 + f) or 1 + f
    log_2_high, log_2_low = LOG_2[format_of(x).name]
    rest = _log_rest(f) + select(large, typed(log_2_low, x), 0.0)
    return select(x < 0.0, 0.0, x) + (select(large, typed(log_2_high, x), 0.0) + (f + rest))


@elementary
def asinh(x: Number) -> Number:
    """The inverse hyperbolic sine, log(x + sqrt(x**2 + 1)) for x >= 0 and odd."""
    a = abs(x)
    large = a > 2.0 ** (format_of(x).fraction_bits // 2 + 4)
    y = select(large, a - 1.0, a + a * (a / (1.0 + hardware_sqrt(a * a + 1.0))))
    y = _log1p(y) + select(large, typed(float(coefficients.LOG_2), x), 0.0)
    return select((a < math.inf) & (a > 16.0 * format_of(x).smallest_normal), copysign(y, x), x)


@elementary
def acosh(x: Number) -> Number:
    """The inverse hyperbolic cosine, log(x + sqrt(x**2 - 1)); nan below 1."""
    large = x > 2.0 ** (format_of(x).fraction_bits // 2 + 4)
    above = x - 1.0
    y = select(large, above, above + hardware_sqrt(above * 2.0 + above * above))
    y = _log1p(y) + select(large, typed(float(coefficients.LOG_2), x), 0.0)
    return select(x >= 1.0, select(x == math.inf, x, y), math.nan)


@elementary
def atanh(x: Number) -> Number:
    """The inverse hyperbolic tangent, log((1 + x) / (1 - x)) / 2; nan beyond -1 and 1."""
    a = abs(x)
    y = 0.5 * _log1p(2.0 * a / (1.0 - a))
    y = select(a < 1.0, y, select(a == 1.0, typed(math.inf, x), math.nan))
    return select(a > 16.0 * format_of(x).smallest_normal, copysign(y, x), x)
