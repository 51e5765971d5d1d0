"""erf and erfc."""

from __future__ import annotations

from . import coefficients
from .exponential import expm1_series, reduce_exp
from .primitives import (
    Number,
    copysign,
    elementary,
    exact_product,
    format_of,
    fused_multiply_add,
    polynomial,
    select,
    typed,
)

_ERF_LIMIT = {"float32": 3.97, "float64": 5.95}  # from here on erf is 1
_ERFC_CENTRE = {"float32": 1.5, "float64": 4.0}
_ERFC_LIMIT = {"float32": 10.1, "float64": 27.3}  # from here on erfc is 0


def _erfc(x: Number) -> Number:
    """erfc of x >= 1/2: exp(-x**2) * g(q) / (0.75 + 1.5 x) with q = (x - K) / (x + K).

    The mapping is that of M. Shepherd and J. Laframboise, Chebyshev approximation of (1 + 2x) exp(x**2)
    erfc(x) in 0 <= x < inf, Mathematics of Computation 36, 1981; g is theirs times 3/4, to lie between
    3/4 and 1, where rounding has the smallest relative error. The rounding errors of the divisor and of the
    quotient are put back, for which 1 / divisor is known well enough from the quotient.
    """
    name = format_of(x).name
    x = select(x > _ERFC_LIMIT[name], _ERFC_LIMIT[name], x)
    centre = _ERFC_CENTRE[name]
    q = (x - centre) / (x + centre)
    first, *others = coefficients.ERFCX[name]
    dividend = first + q * polynomial(q, others)  # added last, for one rounding of its size
    divisor = 0.75 + 1.5 * x
    divisor_low = fused_multiply_add(typed(1.5, x), x, 0.75 - divisor)
    factor = dividend / divisor
    rest = fused_multiply_add(-factor, divisor, dividend) - factor * divisor_low
    square, error = exact_product(x, x)
    shift = format_of(x).fraction_bits + 8
    power, r = reduce_exp(-square, shift, -error)
    factor_low = factor * (r + expm1_series(r)) + rest * (1.14 * factor)
    return (factor + factor_low) * power * 2.0**-shift


def _erf_series(x: Number) -> Number:
    """erf of |x| <= 1."""
    return x + x * polynomial(x * x, coefficients.ERF[format_of(x).name])


@elementary
def erf(x: Number) -> Number:
    """The error function: a series below 1, and from there on 1 - exp(p(|x|))."""
    name = format_of(x).name
    a = abs(x)
    a = select(a > _ERF_LIMIT[name], _ERF_LIMIT[name], a)
    power, r = reduce_exp(polynomial(a, coefficients.LOG_ERFC[name]))
    far = (1.0 - power) - power * (r + expm1_series(r))
    return select(abs(x) < 1.0, _erf_series(x), copysign(far, x))


@elementary
def erfc(x: Number) -> Number:
    """1 - erf(x), without cancellation for large x."""
    y = _erfc(abs(x))
    return select(abs(x) < 0.5, 1.0 - _erf_series(x), select(x < 0.0, 2.0 - y, y))
