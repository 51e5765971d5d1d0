"""Roots, and arithmetic that Python's operators leave out or define otherwise than NumPy."""

from __future__ import annotations

import math

from . import coefficients
from .logarithm import split_exponent
from .primitives import (
    Condition,
    Number,
    copysign,
    elementary,
    exact_product,
    format_of,
    from_bits,
    from_integer,
    fused_multiply_add,
    hardware_ceil,
    hardware_floor,
    hardware_maximum,
    hardware_minimum,
    hardware_rint,
    hardware_sqrt,
    hardware_trunc,
    polynomial,
    select,
    to_bits,
    typed,
)


@elementary
def sqrt(x: Number) -> Number:
    """The square root; nan below 0."""
    return hardware_sqrt(x)


_RSQRT_BITS = {"float32": 0x5F374A3F, "float64": 0x5FE6E830C7B537A9}


@elementary
def rsqrt(x: Number) -> Number:
    """1 / sqrt(x): halve the exponent, and improve that twice by Householder's method.

    More than twice as fast as a square root and a division.
    """
    number_format = format_of(x)
    half_exponent = number_format.fraction_bits // 2 + 1
    tiny = x < number_format.smallest_normal
    normal = x * select(tiny, typed(4.0**half_exponent, x), 1.0)
    y = from_bits(_RSQRT_BITS[number_format.name] - (to_bits(normal) >> 1))
    for terms in coefficients.RSQRT[number_format.name]:
        e = fused_multiply_add(-(normal * y), y, 1.0)
        y = y + (y * e) * polynomial(e, terms)
    y = y * select(tiny, typed(2.0**half_exponent, x), 1.0)
    y = select(x > 0.0, y, select(x == 0.0, copysign(math.inf, x), math.nan))
    return select(x == math.inf, 0.0, y)


@elementary
def cbrt(x: Number) -> Number:
    """The cube root: a polynomial's guess, improved by one step of Halley's method."""
    number_format = format_of(x)
    m, e, _ = split_exponent(abs(x))
    shifted = e * (1.0 / 3.0) + number_format.rounder
    third = shifted - number_format.rounder
    remainder = e - 3.0 * third  # -1, 0 or 1
    m = m * select(remainder > 0.0, typed(2.0, x), select(remainder < 0.0, typed(0.5, x), 1.0))
    factor = select(
        remainder > 0.0, typed(math.cbrt(2.0), x), select(remainder < 0.0, typed(math.cbrt(0.5), x), 1.0)
    )
    reduced = m * select(remainder > 0.0, typed(0.5, x), select(remainder < 0.0, typed(2.0, x), 1.0))
    guess = polynomial(reduced, coefficients.CBRT[number_format.name]) * factor
    cube = guess * guess * guess
    y = guess - guess * ((cube - m) / (2.0 * cube + m))
    power = from_bits((to_bits(shifted) + number_format.bias) << number_format.fraction_bits)
    return select((abs(x) < math.inf) & (x != 0.0), copysign(y * power, x), x)


@elementary
def hypot(a: Number, b: Number) -> Number:
    """sqrt(a*a + b*b), without overflow or underflow on the way."""
    a, b = abs(a), abs(b)
    larger, smaller = select(a > b, a, b), select(a > b, b, a)
    unit = format_of(a).bias / 10.0
    large, small = larger > 2.0 ** int(4 * unit), larger < 2.0 ** int(-4 * unit)
    scale = 2.0 ** int(7 * unit)
    factor = select(large, typed(1.0 / scale, a), select(small, typed(scale, a), 1.0))
    inverse = select(large, typed(scale, a), select(small, typed(1.0 / scale, a), 1.0))
    larger, smaller = larger * factor, smaller * factor
    square, error = exact_product(larger, larger)
    y = hardware_sqrt(square + fused_multiply_add(smaller, smaller, error)) * inverse
    return select((a == math.inf) | (b == math.inf), math.inf, y)


@elementary
def absolute(x: Number) -> Number:
    """|x|."""
    return abs(x)


@elementary
def sign(x: Number) -> Number:
    """-1, 0 or 1; nan for nan."""
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, select(x == 0.0, 0.0, x)))


@elementary
def floor(x: Number) -> Number:
    """The greatest integer that is at most x."""
    return hardware_floor(x)


@elementary
def ceil(x: Number) -> Number:
    """The least integer that is at least x."""
    return hardware_ceil(x)


@elementary
def trunc(x: Number) -> Number:
    """x without its fraction."""
    return hardware_trunc(x)


@elementary
def round_half_even(x: Number) -> Number:
    """The nearest integer, of two the even one."""
    return hardware_rint(x)


@elementary
def maximum(a: Number, b: Number) -> Number:
    """The larger number; nan if either is."""
    return hardware_maximum(a, b)


@elementary
def minimum(a: Number, b: Number) -> Number:
    """The smaller number; nan if either is."""
    return hardware_minimum(a, b)


def _divide(a: Number, b: Number) -> tuple[Number, Number]:
    """The quotient rounded to minus infinity, and the remainder.

    The rounded quotient leaves a rest that is exact, and at most 2**-fraction_bits of a; a second division
    takes that down to b.
    """
    ratio = a / b
    leading = hardware_rint(ratio)
    rest = fused_multiply_add(-leading, b, a)
    quotient = hardware_floor(rest / b)
    rest = fused_multiply_add(-quotient, b, rest)
    # rest / b may have been rounded up to an integer
    above = (rest != 0.0) & ((rest < 0.0) != (b < 0.0))
    quotient = leading + select(above, quotient - 1.0, quotient)
    rest = select(above, rest + b, rest)
    # by an infinite number
    finite_by_infinite = (abs(b) == math.inf) & (abs(a) < math.inf)
    opposite = (a != 0.0) & ((a < 0.0) != (b < 0.0))
    rest = select(finite_by_infinite, select(opposite, b, a), rest)
    quotient = select(finite_by_infinite, select(opposite, typed(-1.0, a), 0.0), quotient)
    # by zero, or by a number so small that the quotient overflows: there is no remainder then
    overflow = (b == 0.0) | ((abs(a) < math.inf) & (abs(ratio) == math.inf))
    quotient = select(overflow, ratio, quotient)
    quotient = select(quotient == 0.0, copysign(0.0, ratio), quotient)
    return quotient, select(rest == 0.0, copysign(0.0, b), rest)


@elementary
def floor_divide(a: Number, b: Number) -> Number:
    """a / b, rounded to minus infinity."""
    quotient, _ = _divide(a, b)
    return quotient


@elementary
def remainder(a: Number, b: Number) -> Number:
    """a - b * floor(a / b), with the sign of b; exact where |a / b| < 2**104, in float32 2**46."""
    _, rest = _divide(a, b)
    return rest


@elementary
def mantissa(x: Number) -> Number:
    """x without its power of two, in [0.5, 1); itself if it is 0, infinite or nan."""
    number_format = format_of(x)
    kept = number_format.bits_of(-0.0) | ((1 << number_format.fraction_bits) - 1)
    bits = to_bits(_as_normal(x)) & kept
    return select(_has_exponent(x), from_bits(bits | number_format.bits_of(0.5)), x)


@elementary
def exponent(x: Number) -> Number:
    """The k of x = mantissa(x) * 2**k; 0 if x is 0, infinite or nan."""
    number_format = format_of(x)
    biased = from_integer(to_bits(_as_normal(abs(x))) >> number_format.fraction_bits)
    offset = number_format.bias - 1.0
    k = biased - select(_is_subnormal(x), offset + _raised(x), typed(offset, x))
    return select(_has_exponent(x), k, 0.0)


def _raised(x: Number) -> float:
    return format_of(x).fraction_bits + 2.0


def _is_subnormal(x: Number) -> Condition:
    return abs(x) < format_of(x).smallest_normal


def _as_normal(x: Number) -> Number:
    """x, times a power of 2 if it is subnormal."""
    return select(_is_subnormal(x), x * 2.0 ** _raised(x), x)


def _has_exponent(x: Number) -> Condition:
    return (x != 0.0) & (abs(x) < math.inf)


@elementary
def nextafter(a: Number, b: Number) -> Number:
    """The next float from a towards b."""
    bits = to_bits(a)
    grows = (b > a) == (a > 0.0)
    moved = from_bits(select(grows, bits + 1, bits - 1))
    smallest = copysign(from_bits(to_bits(a * 0.0 + 0.0) + 1), b)
    return select(a == b, b, select((a == a) & (b == b), select(a == 0.0, smallest, moved), a + b))
