"""The inverse error function and the normal distribution: its quantile, and the logarithm of its integral.

Quantiles: M. J. Wichura, Algorithm AS 241: The percentage points of the normal distribution, Applied
Statistics 37, 1988: rational functions of the distance from the middle, and of sqrt(-log p) in the tails.
"""

from __future__ import annotations

import math

from . import coefficients
from .error_function import erfc
from .exponential import exp
from .logarithm import log, log1p
from .primitives import Number, copysign, elementary, format_of, hardware_rint, hardware_sqrt, select, typed
from .series import chebyshev

_SQRT_HALF = math.sqrt(0.5)


def _rational(x: Number, name: str) -> Number:
    above, below = coefficients.QUANTILE[name]
    return _horner(x, above) / _horner(x, below)


def _horner(x: Number, terms: tuple[float, ...]) -> Number:
    total: Number = x * 0.0 + terms[-1]
    for one in reversed(terms[:-1]):
        total = total * x + one
    return total


def _tail(p: Number) -> Number:
    """Minus the quantile of p, which is at most 0.075."""
    r = hardware_sqrt(-log(p))
    return select(r <= 5.0, _rational(select(r <= 5.0, r, 5.0) - 1.6, "near"), _rational(r - 5.0, "far"))


@elementary
def erfinv(x: Number) -> Number:
    """The inverse of erf; infinite at -1 and 1, nan beyond."""
    a = abs(x)
    inner = select(a <= 0.85, a, 0.85)
    middle = x * (_rational(0.180625 - 0.25 * (inner * inner), "middle") * (0.5 * _SQRT_HALF))
    rest = 0.5 - 0.5 * a
    far = _tail(select(rest > 0.0, rest, typed(0.075, x))) * _SQRT_HALF
    far = select(a == 1.0, math.inf, select(a < 1.0, far, math.nan))
    return select(a <= 0.85, middle, copysign(far, x))


@elementary
def ndtri(x: Number) -> Number:
    """The quantile of the normal distribution; infinite at 0 and 1, nan beyond."""
    q = x - 0.5
    inner = select(abs(q) <= 0.425, q, 0.425)
    middle = q * _rational(0.180625 - inner * inner, "middle")
    rest = select(q < 0.0, x, 1.0 - x)
    far = _tail(select(rest > 0.0, rest, typed(0.075, x)))
    far = select(rest == 0.0, math.inf, select(rest > 0.0, far, math.nan))
    return select(abs(q) <= 0.425, middle, copysign(far, q))


def _exp_of_square(x: Number, factor: float) -> Number:
    """exp(factor * x**2), the square in two parts, of which the first is exact."""
    high = hardware_rint(x * 16.0) * 0.0625
    return exp(factor * (high * high)) * exp((factor * (x - high)) * (x + high))


@elementary
def erfcx(x: Number) -> Number:
    """exp(x**2) erfc(x): a Chebyshev series of (1 + 2x) erfcx(x) for x >= 0, by reflection below."""
    a = abs(x)
    near = select(a < 1e8, a, 1e8)
    t = (near - 4.0) / (near + 4.0)
    y = chebyshev(t, coefficients.ERFCX_SERIES[format_of(x).name]) / (1.0 + 2.0 * near)
    y = select(a < 1e8, y, (1.0 / math.sqrt(math.pi)) / a)
    low = select(a < 27.0, a, 27.0)
    return select(x < 0.0, select(a < 27.0, 2.0 * _exp_of_square(low, 1.0) - y, math.inf), y)


@elementary
def log_ndtr(x: Number) -> Number:
    """log of the integral of the normal density up to x."""
    scaled = 0.5 * erfcx(abs(x) * _SQRT_HALF)
    below = log(scaled) - (0.5 * x) * x
    near = select(x < 40.0, x, 40.0)
    above = log1p(-select(x < 1.0, 0.5 * erfc(x * _SQRT_HALF), scaled * _exp_of_square(near, -0.5)))
    return select(x < 0.0, below, above)
