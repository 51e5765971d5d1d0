"""The incomplete gamma functions over gamma(a), lower P(a, x) and upper Q(a, x) = 1 - P(a, x).

Of the two the smaller one, roughly, is computed (sections: NIST Digital Library of Mathematical Functions,
dlmf.nist.gov):

- both large and near each other: Temme's uniform expansion (8.12), as in A. Gil, J. Segura and N. M. Temme,
  Efficient and accurate algorithms for the computation and inversion of the incomplete gamma function ratios,
  SIAM Journal on Scientific Computing 34, 2012
- x < a: the series of P (8.7.1)
- x and a small: the series of Q (8.7.3), with what cancels taken together
- else: the continued fraction of Q (8.9.2), by Steed's method (W. J. Thompson and A. R. Barnett, Coulomb
  and Bessel functions of complex arguments and order, Journal of Computational Physics 64, 1986)

All is float64, the exponent of x**a e**-x / gamma(a + 1) a sum of two.
"""

from __future__ import annotations

import math

from . import coefficients
from .double_double import fast_two_sum, two_sum
from .exponential import exp, exp_parts, expm1
from .exponentiation import logarithm_in_parts
from .logarithm import log, log1p
from .primitives import (
    FLOAT64,
    Condition,
    Number,
    elementary,
    exact_product,
    fused_multiply_add,
    hardware_sqrt,
    polynomial,
    repeat_while,
    select,
    to_float64,
    to_format_of,
    typed,
)
from .quantiles import erfcx

_EPSILON = 2.0**-FLOAT64.fraction_bits / 2
_SQRT_TWO_PI = math.sqrt(2.0 * math.pi)
_MOST_STEPS = 2000.0
_LOWEST = -750.0
"""e**x of less is 0."""
_SMALL_A = 3.0
"""Below, gamma(a + 1) is not computed by Stirling's formula."""
_LARGE_A = 20.0
"""From here on, Temme's expansion has all bits where x is between a / 2 and 1.8 a."""
_NEAR = 2.0**-7
_REST_OF_SQUARE = [-2.0 * (-1.0) ** k / (k + 2) for k in range(1, 10)]


@elementary
def igamma(a: Number, x: Number) -> Number:
    """The integral of t**(a - 1) e**-t from 0 to x, over gamma(a); nan where a or x is negative."""
    value, is_lower = _smaller(to_float64(a), to_float64(x))
    value = select(is_lower, value, 1.0 - value)
    return _with_ends(a, x, to_format_of(value, a), at_zero=0.0)


@elementary
def igammac(a: Number, x: Number) -> Number:
    """The integral of t**(a - 1) e**-t from x to infinity, over gamma(a); nan where a or x is negative."""
    value, is_lower = _smaller(to_float64(a), to_float64(x))
    value = select(is_lower, 1.0 - value, value)
    return _with_ends(a, x, to_format_of(value, a), at_zero=1.0)


def _with_ends(a: Number, x: Number, value: Number, at_zero: float) -> Number:
    """The value, and those at the ends of the domain."""
    value = select((x == 0.0) | (a == math.inf), typed(at_zero, x), value)
    value = select((a == 0.0) | (x == math.inf), typed(1.0 - at_zero, x), value)
    undefined = ((a == 0.0) & (x == 0.0)) | ((a == math.inf) & (x == math.inf))
    return select((a >= 0.0) & (x >= 0.0) & ~undefined, value, math.nan)


def _smaller(a: Number, x: Number) -> tuple[Number, Condition]:
    """P or Q, and whether it is P."""
    power, distance = _power(a, x)
    is_large = (a >= _LARGE_A) & (x > 0.5 * a) & (x < 1.8 * a)
    is_small = ~is_large & (x <= 1.1) & (a <= select(x <= 0.5, -0.4 / log(x), 1.1 * x))
    is_lower = x <= a
    is_summed = ~is_large & ~is_small & (power > 0.0)
    density = power * _density(a)
    lower = density * _lower_series(a, x, is_lower & is_summed)
    upper = density * a * _fraction(a, x, ~is_lower & is_summed)
    value = select(is_lower, lower, upper)
    value = select(is_large, power * _temme(a, distance, is_lower), value)
    return select(is_small, _upper_series(a, x, is_small), value), is_lower & ~is_small


def _power(a: Number, x: Number) -> tuple[Number, Number]:
    """(x e / a)**a e**-x, or below `_SMALL_A` x**a e**-x; and minus its exponent.

    Near a, with d = x - a, the exponent is a (log(1 + d / a) - d / a) = -d**2 / 2a + ...
    """
    is_small = a < _SMALL_A
    ratio = x / a
    base, base_low = select(is_small, x, ratio), select(is_small, 0.0, fused_multiply_add(-ratio, a, x) / x)
    logarithm, low = logarithm_in_parts(base)
    product, product_low = exact_product(a, logarithm)
    d, d_low = two_sum(x, select(is_small, 0.0, -a))
    total, total_low = two_sum(product, -d)
    total_low = total_low + (fused_multiply_add(a, low + base_low, product_low) - d_low)

    mu = d / a
    square, square_low = exact_product(0.5 * d, mu)
    square_low = square_low + 0.5 * d * fused_multiply_add(-mu, a, d) / a
    rest = mu * polynomial(mu, _REST_OF_SQUARE)
    is_near = ~is_small & (abs(mu) < _NEAR)
    exponent, low = select(is_near, -square, total), select(is_near, square * rest - square_low, total_low)
    is_finite = exponent > _LOWEST
    exponent, low = fast_two_sum(select(is_finite, exponent, _LOWEST), select(is_finite, low, 0.0))
    t, p = exp_parts(exponent, low)
    return (p + p * t) * p, -exponent


def _density(a: Number) -> Number:
    """What makes x**a e**-x / gamma(a + 1) of `_power`."""
    large = select(a < _SMALL_A, _SMALL_A, a)
    inverse = 1.0 / large
    correction = inverse * polynomial(inverse * inverse, coefficients.LGAMMA_LARGE["float64"])
    small = exp(-_lgamma1p(select(a < _SMALL_A, a, _SMALL_A)))
    return select(a < _SMALL_A, small, exp(-correction) / (hardware_sqrt(large) * _SQRT_TWO_PI))


def _lgamma1p(a: Number) -> Number:
    """log(gamma(1 + a)) for 0 <= a <= 3, exact near 0: by recurrence log(gamma(2 + u))."""
    below, above = a < 0.25, a > 1.25
    u = select(below, a, select(above, a - 2.0, a - 1.0))
    u = select(a > 2.25, a - 3.0, u)
    y = u * polynomial(u + 0.25, _SLOPE)
    factor = select(above, a, 1.0) * select(a > 2.25, a - 1.0, 1.0)
    return select(below, y - log1p(a), y + log(factor))


_SLOPE = (sum(coefficients.LGAMMA_SMALL["float64"][:2]), *coefficients.LGAMMA_SMALL["float64"][2:])


def _temme(a: Number, y: Number, is_lower: Condition) -> Number:
    """P or Q times e**y, where y = a eta**2 / 2: erfc(sqrt(y)) / 2 and a series in eta.

    Its coefficients follow from each other backwards.
    """
    inverse = 1.0 / a
    root = hardware_sqrt(select(y > 0.0, y, 0.0))
    sign = select(is_lower, typed(-1.0, a), 1.0)
    eta = sign * root * hardware_sqrt(2.0 * inverse)
    terms = coefficients.TEMME
    below, above = typed(terms[-2], a), typed(terms[-1], a)
    total = below + above * eta
    for m in range(len(terms) - 3, 0, -1):
        below, above = terms[m] + (m + 1.0) * above * inverse, below
        total = below + total * eta
    series = total / (1.0 + above * inverse)
    return 0.5 * erfcx(root) + sign * series / (hardware_sqrt(a) * _SQRT_TWO_PI)


def _lower_series(a: Number, x: Number, is_wanted: Condition) -> Number:
    """1 + x / (a + 1) + x**2 / (a + 1) (a + 2) + ..."""
    one = select(is_wanted, typed(1.0, a), 0.0)
    _, total, _ = repeat_while(
        lambda term, total, n: (term > _EPSILON * total) & (n < _MOST_STEPS),
        lambda term, total, n: (term * (x / (a + n)), total + term * (x / (a + n)), n + 1.0),
        one, one, typed(1.0, a),
    )  # fmt: skip
    return total


def _fraction(a: Number, x: Number, is_wanted: Condition) -> Number:
    """1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...)))"""
    b = select(is_wanted, (x - a) + 1.0, 1.0)
    first = 1.0 / b

    def step(value: Number, term: Number, d: Number, n: Number) -> tuple[Number, ...]:
        numerator = n * (a - n)
        following = 1.0 / (numerator * d + (b + 2.0 * n))
        term = -(numerator * d * following) * term
        return value + term, term, following, n + 1.0

    value, *_ = repeat_while(
        lambda value, term, d, n: (abs(term) > _EPSILON * value) & (n < _MOST_STEPS), step,
        first, select(is_wanted, first, 0.0), first, typed(1.0, a),
    )  # fmt: skip
    return value


def _upper_series(a: Number, x: Number, is_wanted: Condition) -> Number:
    """1 - x**a / gamma(a + 1) (1 + a sum of (-x)**n / n! (a + n))"""
    minus_x = select(is_wanted, -x, 0.0)
    _, total, _ = repeat_while(
        lambda term, total, n: abs(term) > _EPSILON * abs(total),
        lambda term, total, n: (
            term * (minus_x / (n + 1.0)), total + term * (minus_x / (n + 1.0)) / (a + (n + 1.0)), n + 1.0
        ),
        minus_x, minus_x / (a + 1.0), typed(1.0, a),
    )  # fmt: skip
    exponent = a * log(select(is_wanted, x, 1.0)) - _lgamma1p(select(is_wanted, a, 1.0))
    return -expm1(exponent) - exp(exponent) * (a * total)
