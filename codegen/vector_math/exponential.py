"""exp and what follows from it: exp2, expm1, sigmoid, tanh, sinh, cosh.

x = k * log(2) + r with an integer k and |r| <= log(2) / 2, so e**x = 2**k * e**r (W. J. Cody and W. Waite,
Software Manual for the Elementary Functions, 1980, chapter 6). log(2) comes in two parts: the product of
k and the first one is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import coefficients
from .primitives import (
    Bits,
    Number,
    by_format,
    copysign,
    elementary,
    format_of,
    from_bits,
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


@dataclass(frozen=True)
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
    """x between low and high; nan stays."""
    return select(x < low, low, select(x > high, high, x))


def _reduce(x: Number) -> tuple[Bits, Number, Number, Number]:
    """Bits that end in k, k itself, and e**(x - k * log(2)) - 1 in two parts."""
    number_format = format_of(x)
    shifted = x * _LOG2_E + number_format.rounder
    k = shifted - number_format.rounder
    log_2_high, log_2_low = _LOG_2[number_format.name]
    exact = x - k * log_2_high
    r = exact - k * log_2_low
    return to_bits(shifted), k, r, ((exact - r) - k * log_2_low) + _expm1_series(r)


def _expm1_series(r: Number) -> Number:
    """e**r - 1 - r for |r| <= log(2) / 2."""
    return r * r * polynomial(r, coefficients.EXPM1[format_of(r).name])


def _power_of_two(k_bits: Bits, x: Number, offset: int = 0) -> Number:
    """2**(k + offset), which must be a normal number of x's format."""
    number_format = format_of(x)
    return from_bits((k_bits + (number_format.bias + offset)) << number_format.fraction_bits)


def _scale(y: Number, k_bits: Bits, k: Number) -> Number:
    """y * 2**k with one rounding, also where 2**k is infinite or subnormal and the result is not."""
    number_format = format_of(y)
    reserve = number_format.bias // 2
    tiny = k < -float(reserve)
    bias = number_format.bias - 1
    biased = k_bits + select(tiny, typed(bias + reserve, k_bits), bias)
    power = from_bits(biased << number_format.fraction_bits)
    return y * power * select(tiny, typed(2.0 ** (1 - reserve), y), 2.0)


def _is_tiny(x: Number) -> Number:
    """Whether x is so close to 0 that f(x) = x, and that steps of computing f(x) would be subnormal."""
    return abs(x) < 16.0 * format_of(x).smallest_normal


def exp_of_sum(x: Number, low: Number, factor: Number = 1.0) -> Number:
    """factor * e ** (x + low), where low is to x what a rounding error is."""
    limits = _LIMITS[format_of(x).name].exp
    inside = (x > limits[0]) & (x < limits[1])
    k_bits, k, r, series = _reduce(_clamp(x, *limits))
    correction = select(inside, low * (1.0 + (r + series)), 0.0)
    return _scale(factor + factor * (r + (series + correction)), k_bits, k)


@elementary
def exp(x: Number) -> Number:
    """e ** x."""
    k_bits, k, r, series = _reduce(_clamp(x, *_LIMITS[format_of(x).name].exp))
    return _scale(1.0 + (r + series), k_bits, k)


@elementary
def exp2(x: Number) -> Number:
    """2 ** x, exact for integers."""
    number_format = format_of(x)
    x = _clamp(x, *_LIMITS[number_format.name].exp2)
    shifted = x + number_format.rounder
    k = shifted - number_format.rounder
    log_2_high, log_2_low = _LOG_2[number_format.name]
    r = (x - k) * log_2_high + (x - k) * log_2_low
    return _scale(1.0 + (r + _expm1_series(r)), to_bits(shifted), k)


@elementary
def expm1(x: Number) -> Number:
    """e ** x - 1, without cancellation near 0."""
    k_bits, _, r, series = _reduce(_clamp(x, *_LIMITS[format_of(x).name].expm1))
    half = _power_of_two(k_bits, x, -1)  # 2**k may overflow where the result does not
    half_result = ((half - 0.5) + half * r) + half * series
    return select(_is_tiny(x), x, 2.0 * half_result)


@elementary
def sigmoid(x: Number) -> Number:
    """1 / (1 + e**-x); the power is taken where it is at most 1."""
    power = exp(-abs(x))
    return select(x < 0.0, power, 1.0) / (1.0 + power)


@elementary
def tanh(x: Number) -> Number:
    """The hyperbolic tangent, y / (y + 2) with y = e**2x - 1."""
    limit = _LIMITS[format_of(x).name].tanh
    k_bits, _, r, series = _reduce(2.0 * _clamp(abs(x), 0.0, limit))
    power = _power_of_two(k_bits, x)
    y = ((power - 1.0) + power * r) + power * series
    return copysign(y / (y + 2.0), x)


@elementary
def sinh(x: Number) -> Number:
    """The hyperbolic sine, (y + y / (y + 1)) / 2 with y = e**x - 1; y / 2 overflows where the result does."""
    limit = _LIMITS[format_of(x).name].sinh
    k_bits, _, r, series = _reduce(_clamp(abs(x), 0.0, limit))
    quarter = _power_of_two(k_bits, x, -2)
    half_y = 2.0 * (((quarter - 0.25) + quarter * r) + quarter * series)
    y = half_y + select(half_y > 2.0**64, 0.5, half_y / (1.0 + 2.0 * half_y))
    return select(_is_tiny(x), x, copysign(y, x))


@elementary
def cosh(x: Number) -> Number:
    """The hyperbolic cosine, y + 1 / (4 y) with y = e**|x| / 2."""
    limit = _LIMITS[format_of(x).name].sinh
    k_bits, _, r, series = _reduce(_clamp(abs(x), 0.0, limit))
    quarter = _power_of_two(k_bits, x, -2)
    half = 2.0 * (quarter + quarter * (r + series))
    return half + 0.25 / half
