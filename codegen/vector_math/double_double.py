"""Numbers that are the sum of two float64: some 104 bits, for what cancels (Dekker 1971; D. E. Knuth, The Art
of Computer Programming 2, section 4.2.2).

For functions of single numbers that are rarely called: a product takes a dozen instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import factorial

from . import coefficients
from .logarithm import split_exponent
from .primitives import (
    FLOAT64,
    Number,
    exact_product,
    from_bits,
    fused_multiply_add,
    polynomial,
    split,
    typed,
)

Pair = tuple[Number, Number]  # the rounded number, and the rest


def pair(value: Fraction, like: Number) -> Pair:
    """A constant."""
    high, low = split(value, FLOAT64, 53)
    return typed(high, like), typed(low, like)


def fast_two_sum(larger: Number, smaller: Number) -> Pair:
    total = larger + smaller
    return total, (larger - total) + smaller


def two_sum(a: Number, b: Number) -> Pair:
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def add(a: Pair, b: Pair) -> Pair:
    total, error = two_sum(a[0], b[0])
    return fast_two_sum(total, error + (a[1] + b[1]))


def subtract(a: Pair, b: Pair) -> Pair:
    return add(a, (-b[0], -b[1]))


def multiply(a: Pair, b: Pair) -> Pair:
    product, error = exact_product(a[0], b[0])
    return fast_two_sum(product, error + (a[0] * b[1] + a[1] * b[0]))


def divide(a: Pair, b: Pair) -> Pair:
    quotient = a[0] / b[0]
    rest = fused_multiply_add(-quotient, b[0], a[0]) + (a[1] - quotient * b[1])
    return fast_two_sum(quotient, rest / b[0])


def series(x: Pair, terms: Sequence[Fraction], exact: int) -> Pair:
    """The sum of terms[k] * x**k; behind the first `exact` ones, float64 is enough."""
    zero = x[0] * 0.0
    total: Pair = (polynomial(x[0], [float(term) for term in terms[exact:]]), zero)
    for term in reversed(terms[:exact]):
        total = add(pair(term, zero), multiply(x, total))
    return total


_ARTANH = [Fraction(2, 2 * k + 1) for k in range(22)]
_SIN = [Fraction((-1) ** k, factorial(2 * k + 1)) for k in range(18)]


def log(x: Pair) -> Pair:
    """The natural logarithm of normal x > 0, as 2 artanh(s) with s = (m - 1) / (m + 1)."""
    m, e, biased = split_exponent(x[0])
    m_low = x[1] * from_bits((2 * FLOAT64.bias - biased) << FLOAT64.fraction_bits)
    divisor, divisor_low = two_sum(m, typed(1.0, m))
    s = divide((m - 1.0, m_low), (divisor, divisor_low + m_low))
    log_2, log_2_low = pair(coefficients.LOG_2, m)
    whole, error = exact_product(e, log_2)
    return add((whole, error + e * log_2_low), multiply(s, series(multiply(s, s), _ARTANH, 9)))


def sin_pi(x: Pair) -> Pair:
    """sin(pi x) for |x| <= 1/2."""
    angle = multiply(pair(2 * coefficients.HALF_PI, x[0]), x)
    return multiply(angle, series(multiply(angle, angle), _SIN, 10))


def cos_pi(x: Number) -> Pair:
    """cos(pi x) for |x| <= 1/2."""
    return sin_pi(two_sum(typed(0.5, x), -abs(x)))
