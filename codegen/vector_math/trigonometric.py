"""sin, cos, tan.

x = n * pi/2 + r with an integer n and |r| <= pi/4. pi/2 comes in three parts, and products with them are
added before they are rounded, so that r is known to twice its precision (the reduction of Cody and Waite,
with the fused multiply-add of S. Boldo, M. Daumas and R.-C. Li, Formally verified argument reduction with a
fused multiply-add, IEEE Trans. Computers 58, 2009). Both series are evaluated, and n's last bits choose.
"""

from __future__ import annotations

from . import coefficients
from .primitives import (
    Bits,
    Number,
    by_format,
    elementary,
    exact_product,
    format_of,
    from_bits,
    fused_multiply_add,
    libm_if_large,
    polynomial,
    select,
    split,
    to_bits,
)

_HALF_PI = by_format(
    lambda number_format: split(coefficients.HALF_PI, number_format, *[number_format.fraction_bits + 1] * 2)
)
_LARGE = {"float32": 2.0**18, "float64": 2.0**44}
_TWO_OVER_PI = float(1 / coefficients.HALF_PI)


def _reduce(x: Number) -> tuple[Bits, Number, Number]:
    """Bits that end in n, and r in two parts."""
    number_format = format_of(x)
    shifted = x * _TWO_OVER_PI + number_format.rounder
    n = number_format.rounder - shifted  # -n: the parts are subtracted
    first, second, third = _HALF_PI[number_format.name]
    exact = fused_multiply_add(n, first, x)
    product, product_error = exact_product(n, second)
    r = exact + product
    low = fused_multiply_add(n, third, ((exact - r) + product) + product_error)
    high = r + low
    return to_bits(shifted), high, (r - high) + low


def sin_reduced(r: Number, low: Number, square: Number) -> Number:
    return r + (r * square * polynomial(square, coefficients.SIN[format_of(r).name]) + low)


def cos_reduced(r: Number, low: Number, square: Number) -> Number:
    half = 0.5 * square
    leading = 1.0 - half
    series = square * square * polynomial(square, coefficients.COS[format_of(r).name])
    return leading + (((1.0 - leading) - half) + (series - r * low))


def _flip_sign(y: Number, quadrant: Bits) -> Number:
    """-y if the quadrant's second bit is set."""
    number_format = format_of(y)
    sign = number_format.bits_of(-0.0).bit_length() - 1
    return from_bits(to_bits(y) ^ ((quadrant & 2) << (sign - 1)))


@elementary
def sin(x: Number) -> Number:
    """The sine of an angle in radians."""
    quadrant, r, low = _reduce(x)
    square = r * r
    y = select((quadrant & 1) == 0, sin_reduced(r, low, square), cos_reduced(r, low, square))
    return libm_if_large("sin", x, _LARGE[format_of(x).name], select(x == 0.0, x, _flip_sign(y, quadrant)))


@elementary
def cos(x: Number) -> Number:
    """The cosine of an angle in radians."""
    quadrant, r, low = _reduce(x)
    square = r * r
    y = select((quadrant & 1) == 0, cos_reduced(r, low, square), sin_reduced(r, low, square))
    return libm_if_large("cos", x, _LARGE[format_of(x).name], _flip_sign(y, quadrant + 1))


@elementary
def tan(x: Number) -> Number:
    """The tangent of an angle in radians."""
    quadrant, r, low = _reduce(x)
    square = r * r
    sine, cosine = sin_reduced(r, low, square), cos_reduced(r, low, square)
    even = (quadrant & 1) == 0
    y = select(even, sine, -cosine) / select(even, cosine, sine)
    return libm_if_large("tan", x, _LARGE[format_of(x).name], select(x == 0.0, x, y))
