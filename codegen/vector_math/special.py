"""erf, erfc and the logarithm of the gamma function with its derivatives.

Formulas are those of the NIST Digital Library of Mathematical Functions (dlmf.nist.gov), sections 5 and 7.
"""

from __future__ import annotations

import math

from . import coefficients
from .exponential import exp_of_sum
from .logarithm import log
from .primitives import (
    Number,
    by_format,
    copysign,
    elementary,
    exact_product,
    format_of,
    hardware_rint,
    polynomial,
    select,
    split,
    typed,
)
from .trigonometric import cos_reduced, sin_reduced

_ERFC_CENTRE = {"float32": 2.0, "float64": 4.0}
_ERFC_LIMIT = {"float32": 10.1, "float64": 27.3}  # from here on erfc is 0
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
_DIGAMMA_ROOT = by_format(
    lambda number_format: split(coefficients.DIGAMMA_ROOT - 1, number_format, number_format.fraction_bits + 1)
)
_PI = by_format(
    lambda number_format: split(2 * coefficients.HALF_PI, number_format, number_format.fraction_bits + 1)
)


def _erfc(x: Number) -> Number:
    """erfc of x >= 0: exp(-x**2) * g(q) / (0.75 + 1.5 x) with q = (x - K) / (x + K).

    The mapping is that of M. Shepherd and J. Laframboise, Chebyshev approximation of (1 + 2x) exp(x**2)
    erfc(x) in 0 <= x < inf, Mathematics of Computation 36, 1981; g is theirs times 3/4, to lie between
    3/4 and 1, where rounding has the smallest relative error.
    """
    name = format_of(x).name
    x = select(x > _ERFC_LIMIT[name], _ERFC_LIMIT[name], x)
    centre = _ERFC_CENTRE[name]
    g = polynomial((x - centre) / (x + centre), coefficients.ERFCX[name])
    square, error = exact_product(x, x)
    return exp_of_sum(-square, -error, g / (0.75 + 1.5 * x))


def _erf_series(x: Number) -> Number:
    """erf of |x| <= 1."""
    return x + x * polynomial(x * x, coefficients.ERF[format_of(x).name])


@elementary
def erf(x: Number) -> Number:
    """The error function."""
    return select(abs(x) < 1.0, _erf_series(x), copysign(1.0 - _erfc(abs(x)), x))


@elementary
def erfc(x: Number) -> Number:
    """1 - erf(x), without cancellation for large x."""
    y = _erfc(abs(x))
    return select(abs(x) < 0.5, 1.0 - _erf_series(x), select(x < 0.0, 2.0 - y, y))


def _sin_cos_pi(x: Number) -> tuple[Number, Number]:
    """sin(pi x) and cos(pi x) but for a common sign."""
    quarter = hardware_rint(2.0 * x)
    r = (x - 0.5 * quarter) * math.pi
    odd = hardware_rint(0.5 * quarter) != 0.5 * quarter
    sine, cosine = sin_reduced(r, typed(0.0, x), r * r), cos_reduced(r, typed(0.0, x), r * r)
    return select(odd, cosine, sine), select(odd, -sine, cosine)


@elementary
def lgamma(x: Number) -> Number:
    """log |gamma(x)|; inf at 0, -1, -2, ...

    From 8 on by Stirling's formula (DLMF 5.11.1), below by a polynomial on [1.2, 2.2] and the recurrence
    gamma(x + 1) = x gamma(x), for negative x by reflection (5.5.3). Near the roots at negative x the
    absolute error is small, not the relative one.
    """
    name = format_of(x).name
    a = abs(x)
    negative, tiny, below, large = x < 0.0, a < 0.2, a < 1.2, a >= 8.0
    divisor = select(tiny, a * (a + 1.0), a)
    product = typed(1.0, x)
    u = select(tiny, a, select(below, a - 1.0, a - 2.0))
    for _ in range(6):
        again = u >= 0.2
        product = product * select(again, u + 1.0, 1.0)
        u = select(again, u - 1.0, u)
    around_root = u * polynomial(u + 0.3, coefficients.LGAMMA_SMALL[name])
    # where the reflection has the same logarithm, they cancel exactly: both are left out
    argument = select(large, a, select(below, select(negative, 1.0, divisor), product))
    logarithm = log(argument)
    inverse = 1.0 / a
    correction = inverse * polynomial(inverse * inverse, coefficients.LGAMMA_LARGE[name])
    stirling = (a - 0.5) * (logarithm - 1.0) + ((_HALF_LOG_2_PI - 0.5) + correction)
    value = select(large, stirling, around_root + select(below, -logarithm, logarithm))
    sine, _ = _sin_cos_pi(a)
    factor = select(tiny, 1.0 / (a + 1.0), select(below, 1.0, a))
    value = select(negative, -log(abs(sine) * factor * (1.0 / math.pi)) - value, value)
    pole = (x <= 0.0) & (hardware_rint(x) == x)
    return select(pole | (a == math.inf), math.inf, value)


@elementary
def digamma(x: Number) -> Number:
    """The derivative of lgamma; nan at -1, -2, ..., and at 0 the limit from the side of its sign.

    From 2 on log(x) - 1 / 2x - p(1 / x) / x**2 (DLMF 5.11.2), from 1 on (x - root) p(x), below 1 by
    recurrence (5.5.2), for negative x by reflection (5.5.4).
    """
    name = format_of(x).name
    negative = x < 0.0
    y = select(negative, 1.0 - x, x)
    inverse = 1.0 / y
    series = inverse * inverse * polynomial(inverse, coefficients.DIGAMMA_LARGE[name])
    large_value = log(y) - (0.5 * inverse + series)
    t = select(y < 1.0, y, y - 1.0)
    root, root_low = _DIGAMMA_ROOT[name]
    small_value = ((t - root) - root_low) * polynomial(t - 0.5, coefficients.DIGAMMA_SMALL[name])
    small_value = select(y < 1.0, small_value - inverse, small_value)
    value = select(y < 2.0, small_value, large_value)
    sine, cosine = _sin_cos_pi(x)
    value = select(negative, value - math.pi * (cosine / sine), value)
    pole = negative & (hardware_rint(x) == x)
    return select(pole, math.nan, select(x == math.inf, x, value))


@elementary
def trigamma(x: Number) -> Number:
    """The derivative of digamma; inf at 0, -1, -2, ... (DLMF 5.15)."""
    name = format_of(x).name
    negative = x < 0.0
    y = select(negative, 1.0 - x, x)
    below_one, below_two = y < 1.0, y < 2.0
    first = 1.0 / y
    second = 1.0 / (y + 1.0)
    shifted = select(below_one, y + 2.0, select(below_two, y + 1.0, y))
    inverse = select(below_two, 1.0 / shifted, first)
    series = inverse * inverse * polynomial(inverse, coefficients.TRIGAMMA[name])
    value = inverse + inverse * (0.5 * inverse + series)
    terms = select(below_one, second * second, 0.0) + select(below_two, first * first, 0.0)
    value = terms + value
    sine, _ = _sin_cos_pi(x)
    ratio = math.pi / sine
    value = select(negative, ratio * ratio - value, value)
    pole = (x <= 0.0) & (hardware_rint(x) == x)
    return select(pole, math.inf, value)
