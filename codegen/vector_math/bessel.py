"""The modified Bessel functions I_0 and I_1 (NIST Digital Library of Mathematical Functions, section 10.25).

Two Chebyshev series give exp(-|x|) I(x), as in S. L. Moshier's Cephes: up to 8 in |x| / 4 - 1, from there on,
times sqrt(|x|), in 16 / |x| - 1.
"""

from __future__ import annotations

import math

from . import coefficients
from .exponential import expm1_series, reduce_exp
from .primitives import Number, copysign, elementary, format_of, hardware_sqrt, select, typed
from .series import chebyshev

_LIMIT = 8.0
_LARGEST = {"float32": 92.0, "float64": 720.0}
"""From here on I_0 and I_1 are infinite."""
_UNIT = 24
"""e**x is computed as a multiple of 2**24, so that it overflows no sooner than the product with it."""


def _near(a: Number, name: str) -> Number:
    """A series at a = |x| up to 8."""
    below = select(a < _LIMIT, a, _LIMIT)
    return chebyshev(below * 0.25 - 1.0, coefficients.BESSEL[format_of(a).name][name])


def _far(a: Number, name: str) -> Number:
    """exp(-a) I(a) from 8 on."""
    above = select(a > _LIMIT, a, _LIMIT)
    return chebyshev(16.0 / above - 1.0, coefficients.BESSEL[format_of(a).name][name]) / hardware_sqrt(above)


def _times_exp(a: Number, y: Number) -> Number:
    """y * e**a for a >= 0."""
    limit = _LARGEST[format_of(a).name]
    power, r = reduce_exp(select(a < limit, a, limit), -_UNIT)
    return select(a < limit, (y + y * (r + expm1_series(r))) * power * 2.0**_UNIT, math.inf)


def _even(x: Number) -> Number:
    a = abs(x)
    near = _near(a, "I0_SMALL") / (1.0 + a * (1.0 / 3.0))
    return select(a < _LIMIT, near, _far(a, "I0_LARGE"))


def _slope(x: Number) -> Number:
    """exp(-|x|) I_1(x) / x up to 8."""
    below = select(abs(x) < _LIMIT, abs(x), _LIMIT)
    return _near(below, "I1_SMALL") / ((1.0 + below) * (1.0 + below * 0.25))


@elementary
def i0e(x: Number) -> Number:
    """exp(-|x|) I_0(x)."""
    return select(x == x, _even(x), x)


@elementary
def i0(x: Number) -> Number:
    """I_0(x); nan at infinities, as SciPy has it."""
    return select(abs(x) < math.inf, _times_exp(abs(x), _even(x)), math.nan)


@elementary
def i1e(x: Number) -> Number:
    """exp(-|x|) I_1(x)."""
    found = select(abs(x) < _LIMIT, x * _slope(x), copysign(_far(abs(x), "I1_LARGE"), x))
    return select(x == x, found, x)


@elementary
def i1(x: Number) -> Number:
    """I_1(x); nan at infinities, as SciPy has it."""
    a = abs(x)
    is_near = a < _LIMIT
    found = _times_exp(a, select(is_near, _slope(x), _far(a, "I1_LARGE")))
    return select(a < math.inf, select(is_near, x, copysign(typed(1.0, x), x)) * found, math.nan)
