"""exp and what follows from it: exp2, expm1, sigmoid, tanh, sinh, cosh.

x = k * log(2) + r with an integer k and |r| <= log(2) / 2, so e**x = 2**k * e**r (W. J. Cody and W. Waite,
Software Manual for the Elementary Functions, 1980, chapter 6). log(2) comes in two parts: the product of
k and the first one is exact. exp takes an even k: two more coefficients, and 2**(k/2) can be multiplied in
twice, which gives overflow and subnormal results their right rounding without a comparison.
"""

from __future__ import annotations

from ...tracer.records import record
from . import coefficients
from .primitives import (
    Bits,
    Number,
    by_format,
    copysign,
    elementary,
    format_of,
    from_bits,
    fused_multiply_add,
    polynomial,
    select,
    split,
    to_bits,
    typed,
)

_LOG_2 = by_format(
    lambda number_format: split(coefficients.LOG_2, number_format, number_format.fraction_bits - 10)
)
_LOG2_E = float(1 / coefficients.LOG_2)


@record(frozen=True)
class Limits:
    """Beyond these arguments the result of a function does not change."""

    exp: tuple[float, float]  # the result is 0 or inf
    exp2: tuple[float, float]
    expm1: tuple[float, float]  # -1 or inf
    sinh: float  # inf
    tanh: float  # 1


_LIMITS = {
    "float32": Limits((-105.0, 89.0), (-151.0, 128.5), (-20.0, 89.0), 89.6, 10.0),
    "float64": Limits((-750.0, 710.0), (-1077.0, 1024.5), (-40.0, 710.0), 710.6, 22.0),
}


def _clamp(x: Number, low: float, high: float) -> Number:
    """x between low and high; nan stays. Each line is one instruction."""
    x = select(x < low, low, x)
    return select(x > high, high, x)


# --- In steps of log(4) -----------------------------------------------------------------------------------


def exp_parts(x: Number, low: Number = 0.0) -> tuple[Number, Number]:
    """t and p with e ** (x + low) = (1 + t) * p * p, where -1/2 <= t <= 1, for x within the limits of exp.

    `low` is to x what a rounding error is. p * p may overflow or vanish: p is to be multiplied in twice.
    """
    number_format = format_of(x)
    magic = number_format.rounder + number_format.bias  # leaves k / 2 + bias in the lowest bits
    shifted = x * (0.5 * _LOG2_E) + magic
    half_k = shifted - magic
    log_2_high, log_2_low = _LOG_2[number_format.name]
    r = (x - half_k * (2.0 * log_2_high)) - (half_k * (2.0 * log_2_low) - low)
    t = r + r * r * polynomial(r, coefficients.EXP[number_format.name])
    return t, from_bits(to_bits(shifted) << number_format.fraction_bits)


def clamp_exp(x: Number) -> Number:
    """x where exp(x) is neither 0 nor inf, and the nearest limits of exp elsewhere."""
    return _clamp(x, *_LIMITS[format_of(x).name].exp)


@elementary
def exp(x: Number) -> Number:
    """e ** x."""
    t, p = exp_parts(clamp_exp(x))
    return (p + p * t) * p


@elementary
def exp2(x: Number) -> Number:
    """2 ** x, exact for integers."""
    number_format = format_of(x)
    x = _clamp(x, *_LIMITS[number_format.name].exp2)
    shifted = x + number_format.rounder
    k = shifted - number_format.rounder
    log_2_high, log_2_low = _LOG_2[number_format.name]
    r = (x - k) * log_2_high + (x - k) * log_2_low
    return _scale(1.0 + (r + expm1_series(r)), to_bits(shifted), k)


def _scale(y: Number, k_bits: Bits, k: Number) -> Number:
    """y * 2**k with one rounding, also where 2**k is infinite or subnormal and the result is not."""
    number_format = format_of(y)
    reserve = number_format.bias // 2
    tiny = k < -float(reserve)
    bias = number_format.bias - 1
    biased = k_bits + select(tiny, typed(bias + reserve, k_bits), bias)
    power = from_bits(biased << number_format.fraction_bits)
    return y * power * select(tiny, typed(2.0 ** (1 - reserve), y), 2.0)


# --- In steps of log(2) -----------------------------------------------------------------------------------


def reduce_exp(x: Number, offset: int = 0, low: Number = 0.0) -> tuple[Number, Number]:
    """2**(k + offset), which must be a normal number, and r with x + low = k * log(2) + r."""
    number_format = format_of(x)
    magic = number_format.rounder + (number_format.bias + offset)
    shifted = x * _LOG2_E + magic
    k = shifted - magic
    log_2_high, log_2_low = _LOG_2[number_format.name]
    r = (x - k * log_2_high) - (k * log_2_low - low)
    power = from_bits(to_bits(shifted) << number_format.fraction_bits)
    return power, r


def expm1_series(r: Number) -> Number:
    """e**r - 1 - r for |r| <= log(2) / 2."""
    return r * r * polynomial(r, coefficients.EXPM1[format_of(r).name])


def _is_tiny(x: Number) -> Number:
    """Whether x is so close to 0 that f(x) = x, and that steps of computing f(x) would be subnormal."""
    return abs(x) < 16.0 * format_of(x).smallest_normal


def exp_of_minus(x: Number) -> tuple[Number, float]:
    """unit * e**-x for x >= 0, and unit, a power of 2 that keeps the product from becoming subnormal."""
    number_format = format_of(x)
    lowest, _ = _LIMITS[number_format.name].exp
    exponent = number_format.fraction_bits + 8
    power, r = reduce_exp(select(-x < lowest, lowest, -x), exponent)
    return power + power * (r + expm1_series(r)), 2.0**exponent


@elementary
def sigmoid(x: Number) -> Number:
    """1 / (1 + e**-x); the power is taken where it is at most 1.

    The rounding errors of 1 + power and of the quotient are put back, for which 1 / divisor need not be known
    well.
    """
    power, unit = exp_of_minus(abs(x))
    divisor = 1.0 + power * (1.0 / unit)
    divisor_low = power * (1.0 / unit) - (divisor - 1.0)
    dividend = select(x < 0.0, power, unit)
    y = dividend / divisor
    rest = fused_multiply_add(-y, divisor, dividend) - y * divisor_low
    return (y + rest * (1.457 - 0.5 * divisor)) * (1.0 / unit)


@elementary
def expm1(x: Number) -> Number:
    """e ** x - 1, without cancellation near 0."""
    half, r = reduce_exp(_clamp(x, *_LIMITS[format_of(x).name].expm1), -1)  # 2**k may overflow
    return select(_is_tiny(x), x, 2.0 * (((half - 0.5) + half * r) + half * expm1_series(r)))


@elementary
def tanh(x: Number) -> Number:
    """The hyperbolic tangent, y / (y + 2) with y = e**2|x| - 1.

    The rounding errors of y + 2 and of the quotient are put back; 1 / (y + 2) is (1 - tanh) / 2.
    """
    a = abs(x)
    limit = _LIMITS[format_of(x).name].tanh
    power, r = reduce_exp(2.0 * select(a > limit, limit, a))
    dividend = ((power - 1.0) + power * r) + power * expm1_series(r)
    divisor = dividend + 2.0
    divisor_low = select(divisor < 16.0, dividend - (divisor - 2.0), 0.0)
    y = dividend / divisor
    rest = fused_multiply_add(-y, divisor, dividend) - y * divisor_low
    return copysign(y + rest * (0.5 - 0.5 * y), x)


def _sinh_cosh(a: Number) -> tuple[Number, Number, Number, Number]:
    """sinh(a) / 2 and cosh(a) / 2 for a >= 0, each as what is large and the rest.

    With a = k * log(2) + r and half the sum and difference of 2**k and 2**-k,
    sinh(a) = difference * cosh(r) + sum * sinh(r) and cosh(a) = sum * cosh(r) + difference * sinh(r).
    """
    number_format = format_of(a)
    limit = _LIMITS[number_format.name].sinh
    power, r = reduce_exp(select(a > limit, limit, a), -2)
    ones = 2 * (number_format.bias - 2) << number_format.fraction_bits
    inverse = select(a > 64.0, 0.0, from_bits(ones - to_bits(power)))  # 2**(-k - 2)
    total, difference = power + inverse, power - inverse
    square = r * r
    sinh_rest = r * square * polynomial(square, coefficients.SINH[number_format.name])
    cosh_rest = square * polynomial(square, coefficients.COSH[number_format.name])
    return (
        difference + total * r,
        difference * cosh_rest + total * sinh_rest,
        total,
        total * cosh_rest + difference * (r + sinh_rest),
    )


@elementary
def sinh(x: Number) -> Number:
    """The hyperbolic sine."""
    large, rest, _, _ = _sinh_cosh(abs(x))
    return select(_is_tiny(x), x, copysign(2.0 * (large + rest), x))


@elementary
def cosh(x: Number) -> Number:
    """The hyperbolic cosine."""
    _, _, large, rest = _sinh_cosh(abs(x))
    return 2.0 * (large + rest)
