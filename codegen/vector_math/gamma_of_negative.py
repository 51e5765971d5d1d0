"""lgamma and digamma of negative numbers, where terms cancel near the roots: in pairs of float64.

With a = -x, by reflection and recurrence (NIST Digital Library of Mathematical Functions, 5.5):
lgamma(-a) = log(pi * P / |sin(pi a)|) - lgamma(a + 13) with P = (a + 1) (a + 2) ... (a + 12), and the
derivative. The asymptotic series at a + 13 (5.11.1, 5.11.2) have 105 bits.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

from . import coefficients, logarithm
from .double_double import (
    Pair,
    add,
    cos_pi,
    divide,
    log,
    multiply,
    pair,
    series,
    sin_pi,
    subtract,
    two_sum,
)
from .primitives import Number, hardware_rint, select, to_float64, to_format_of, typed

_SHIFT = 13
_TERMS = 24
_PI = 2 * coefficients.HALF_PI
_NEAR_ZERO = 2.0**-70  # below, the leading term of the series at 0 is exact enough


@functools.cache
def bernoulli_numbers() -> list[Fraction]:
    """B2, B4, B6, ... by their recurrence (24.5.3)."""
    numbers = [Fraction(1)]
    for n in range(1, 2 * _TERMS + 1):
        numbers.append(-sum(math.comb(n + 1, k) * numbers[k] for k in range(n)) / Fraction(n + 1))
    return numbers[2::2]


def _factors(a: Number) -> list[Pair]:
    """a + 1, a + 2, ..., a + 12, and a + 13."""
    return [two_sum(typed(float(shift), a), a) for shift in range(1, _SHIFT + 1)]


def _sum_of_inverses(factors: list[Pair]) -> Pair:
    """The sum of 1 / factor, as the product's derivative over the product."""
    product = factors[0]
    derivative: Pair = (typed(1.0, product[0]), product[1] * 0.0)
    for factor in factors[1:]:
        derivative = add(multiply(derivative, factor), product)
        product = multiply(product, factor)
    return divide(derivative, product)


def _near_root(x: Number, value: Number, root: tuple[float, float, float, float]) -> Number:
    """`value`, or next to the root, which comes in two parts, the first two terms of the series there."""
    high, low, first, second = root
    distance = (x - high) - low
    return select(abs(distance) < 2.0**-30, distance * (first + second * distance), value)


def _is_pole(a: Number) -> Number:
    return hardware_rint(a) == a


def lgamma_of_negative(x: Number) -> Number:
    """log |gamma(x)| of x < 0."""
    a = -to_float64(x)
    *factors, z = _factors(a)
    sine = sin_pi((abs(a - hardware_rint(a)), a * 0.0))
    ratio = divide(multiply(pair(_PI, a), functools.reduce(multiply, factors)), sine)
    one = pair(Fraction(1), a)
    inverse = divide(one, z)
    terms = [number / (2 * k * (2 * k - 1)) for k, number in enumerate(bernoulli_numbers(), start=1)]
    tail = multiply(inverse, series(multiply(inverse, inverse), terms, 6))
    stirling = multiply(subtract(z, pair(Fraction(1, 2), a)), subtract(log(z), one))
    stirling = add(stirling, add(pair(coefficients.HALF_LOG_2_PI - Fraction(1, 2), a), tail))
    value, _ = subtract(log(ratio), stirling)
    for root in coefficients.LGAMMA_ROOTS:
        value = _near_root(-a, value, root)
    value = select(a < _NEAR_ZERO, -logarithm.log(a), value)
    return to_format_of(select(_is_pole(a), math.inf, value), x)


def digamma_of_negative(x: Number) -> Number:
    """The derivative of lgamma at x < 0: digamma(a + 13) - P' / P + pi * cot(pi a)."""
    a = -to_float64(x)
    *factors, z = _factors(a)
    r = a - hardware_rint(a)
    cotangent = divide(cos_pi(r), sin_pi((r, r * 0.0)))
    inverse = divide(pair(Fraction(1), a), z)
    square = multiply(inverse, inverse)
    terms = [number / (2 * k) for k, number in enumerate(bernoulli_numbers(), start=1)]
    tail = add(multiply(pair(Fraction(1, 2), a), inverse), multiply(square, series(square, terms, 6)))
    value = subtract(subtract(log(z), tail), _sum_of_inverses(factors))
    value, _ = add(value, multiply(pair(_PI, a), cotangent))
    value = _near_root(-a, value, coefficients.DIGAMMA_NEGATIVE_ROOT)
    value = select(a < _NEAR_ZERO, 1.0 / a, value)
    return to_format_of(select(_is_pole(a), math.nan, value), x)
