"""Logarithms of quotients of gamma functions, of which differences of `lgamma` would leave few digits.

Formulas: NIST Digital Library of Mathematical Functions (dlmf.nist.gov), 5.11.1 (Stirling's series) and
5.12.1 (the beta function). They are sums of operators, so code and derivatives follow.
"""

from __future__ import annotations

import math

from ..operator import Array
from .elementwise import absolute, greater, greater_equal, less, log, log1p, logical_and, where
from .special import lgamma

LARGE = 10.0
"""From where on Stirling's series has all digits."""
SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


def log_beta(a: Array, b: Array) -> Array:
    """log |gamma(a) gamma(b) / gamma(a + b)|."""
    is_ordered = greater(a, b)
    small, large = where(is_ordered, b, a), where(is_ordered, a, b)
    return lgamma(small) - log_gamma_quotient(large, small)


def log_gamma_quotient(z: Array, step: Array) -> Array:
    """log |gamma(z + step) / gamma(z)|."""
    last = z + step
    is_large = logical_and(greater_equal(z, LARGE), greater_equal(last, LARGE))
    first, last = where(is_large, z, LARGE), where(is_large, last, LARGE)
    between = where(is_large, step, 0.0)
    large = between * log(last) - between + (first - 0.5) * log1p(between / first)
    return where(is_large, large + _stirling(last) - _stirling(first), lgamma(z + step) - lgamma(z))


def log_power_over_gamma(a: Array, x: Array) -> Array:
    """a log x - x - log gamma(a), whose large terms are together about (x - a)**2 / (2 a)."""
    is_near = logical_and(greater_equal(a, LARGE), less(absolute(x - a), 0.5 * a))
    large = where(is_near, a, LARGE)
    apart = where(is_near, (x - large) / large, 0.0)
    near = 0.5 * log(large) - HALF_LOG_2_PI - _stirling(large) - large * (apart - log1p(apart))
    return where(is_near, near, a * log(x) - x - lgamma(a))


def _stirling(z: Array) -> Array:
    """log gamma(z) less (z - 1 / 2) log z - z + log(2 pi) / 2."""
    inverse = 1.0 / z
    square = inverse * inverse
    total: Array = SERIES[-1]
    for coefficient in reversed(SERIES[:-1]):
        total = total * square + coefficient
    return inverse * total
