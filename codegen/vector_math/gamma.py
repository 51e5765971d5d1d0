"""The logarithm of the gamma function and its derivatives.

Formulas are those of the NIST Digital Library of Mathematical Functions (dlmf.nist.gov), section 5.
"""

from __future__ import annotations

import math

from . import coefficients
from .gamma_of_negative import digamma_of_negative, lgamma_of_negative
from .logarithm import log_parts
from .primitives import (
    Condition,
    Number,
    by_format,
    elementary,
    format_of,
    fused_multiply_add,
    hardware_rint,
    polynomial,
    polynomial_parts,
    replace_rare,
    select,
    split,
    typed,
)
from .trigonometric import cos_reduced, sin_reduced

_HALF_LOG_2_PI = float(coefficients.HALF_LOG_2_PI)
_DIGAMMA_ROOT = by_format(
    lambda number_format: split(coefficients.DIGAMMA_ROOT - 1, number_format, number_format.fraction_bits + 1)
)


def _is_negative(x: Number) -> Condition:
    return x < 0.0


@elementary
def lgamma(x: Number) -> Number:
    """log |gamma(x)|; inf at 0, -1, -2, ...

    From 3 on by Stirling's formula (DLMF 5.11.1), below by a polynomial on [1.25, 2.25] and the recurrence
    gamma(x + 1) = x gamma(x).
    """
    name = format_of(x).name
    tiny, below, above, large = x < 0.25, x < 1.25, x >= 2.25, x >= 3.0
    u = select(tiny, x, select(below, x - 1.0, select(above, x - 3.0, x - 2.0)))
    # gamma(x) is a multiple or, below, a fraction of gamma(2 + u)
    argument = select(below, select(tiny, x * (x + 1.0), x), select(above, x - 1.0, 1.0))
    logarithm, low = log_parts(select(large, x, argument))
    slope, slope_low = polynomial_parts(u + 0.25, coefficients.LGAMMA_SMALL[name])
    added, added_low = select(below, -logarithm, logarithm), select(below, -low, low)
    small_value = (u * slope + added) + (u * slope_low + added_low)
    inverse = 1.0 / x
    correction = inverse * polynomial(inverse * inverse, coefficients.LGAMMA_LARGE[name])
    factor = x - 0.5
    stirling = factor * (logarithm - 1.0) + ((_HALF_LOG_2_PI - 0.5) + (correction + factor * low))
    value = select(large, stirling, small_value)
    value = select((x == 0.0) | (x == math.inf), math.inf, value)
    return replace_rare(value, x, _is_negative, lgamma_of_negative)


@elementary
def digamma(x: Number) -> Number:
    """The derivative of lgamma; nan at -1, -2, ..., and at 0 the limit from the side of its sign.

    From 2 on log(x) - 1 / 2x - p(1 / x) / x**2 (DLMF 5.11.2), from 1 on (x - root) p(x), below 1 by
    recurrence (5.5.2).
    """
    name = format_of(x).name
    inverse = 1.0 / x
    series = inverse * inverse * polynomial(inverse, coefficients.DIGAMMA_LARGE[name])
    logarithm, low_of_log = log_parts(x)
    large_value = logarithm - (0.5 * inverse + series - low_of_log)
    below = x < 1.0
    t = select(below, x, x - 1.0)
    root, root_low = _DIGAMMA_ROOT[name]
    distance = t - root
    distance_low = (t - (distance + root)) - root_low
    slope, slope_low = polynomial_parts(t - 0.5, coefficients.DIGAMMA_SMALL[name])
    low = distance * slope_low + distance_low * slope
    inverse_low = inverse * fused_multiply_add(-inverse, x, 1.0)
    recurrence = select(below, inverse, 0.0)
    recurrence_low = select(below & (x > format_of(x).smallest_normal), inverse_low, 0.0)
    small_value = (distance * slope - recurrence) + (low - recurrence_low)
    value = select(x < 2.0, small_value, large_value)
    value = select(x == math.inf, x, value)
    return replace_rare(value, x, _is_negative, digamma_of_negative)


def _sin_pi(x: Number) -> Number:
    """sin(pi x) but for its sign."""
    quarter = hardware_rint(2.0 * x)
    r = (x - 0.5 * quarter) * math.pi
    odd = hardware_rint(0.5 * quarter) != 0.5 * quarter
    zero = typed(0.0, x)
    return select(odd, cos_reduced(r, zero, r * r), sin_reduced(r, zero, r * r))


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
    ratio = math.pi / _sin_pi(x)
    value = select(negative, ratio * ratio - value, value)
    pole = (x <= 0.0) & (hardware_rint(x) == x)
    return select(pole, math.inf, value)
