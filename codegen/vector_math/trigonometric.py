"""sin, cos, tan.

x = n * pi/2 + r with an integer n and |r| <= pi/4. pi/2 comes in three parts, and r is known to twice its
precision (the reduction of Cody and Waite, with the fused multiply-add of S. Boldo, M. Daumas and R.-C. Li,
Formally verified argument reduction with a fused multiply-add, IEEE Trans. Computers 58, 2009). Both series
are evaluated, and n's last bits choose: a gradient needs the other one as well. For larger angles see
`large_angles`.
"""

from __future__ import annotations

from collections.abc import Callable

from . import coefficients
from .large_angles import reduce_large_angle
from .primitives import (
    FLOAT32,
    Bits,
    Condition,
    Number,
    by_format,
    elementary,
    exact_product,
    format_of,
    from_bits,
    fused_multiply_add,
    polynomial,
    replace_rare,
    select,
    split,
    to_bits,
    to_float64,
    to_format_of,
)

_LARGE = {"float32": 2.0**18, "float64": 2.0**24}
# in float64 the second part is so short that its product with an n is exact
_HALF_PI = by_format(
    lambda number_format: split(
        coefficients.HALF_PI,
        number_format,
        number_format.fraction_bits + 1,
        24 if number_format is FLOAT32 else 29,
    )
)
_TWO_OVER_PI = float(1 / coefficients.HALF_PI)


def _reduce(x: Number) -> tuple[Bits, Number, Number]:
    """Bits that end in n, and r in two parts."""
    number_format = format_of(x)
    shifted = x * _TWO_OVER_PI + number_format.rounder
    n = number_format.rounder - shifted  # -n: the parts are subtracted
    first, second, third = _HALF_PI[number_format.name]
    exact = fused_multiply_add(n, first, x)
    if number_format is FLOAT32:
        product, product_error = exact_product(n, second)
        r = exact + product
        low = ((exact - r) + product) + product_error
    else:
        r = fused_multiply_add(n, second, exact)
        low = fused_multiply_add(n, second, exact - r)
    return to_bits(shifted), r, fused_multiply_add(n, third, low)


def sin_reduced(r: Number, low: Number, square: Number) -> Number:
    return r + (r * square * polynomial(square, coefficients.SIN[format_of(r).name]) + low)


def cos_reduced(r: Number, low: Number, square: Number) -> Number:
    series = square * polynomial(square, coefficients.COS[format_of(r).name]) - 0.5
    return 1.0 + (square * series - r * low)


def _flip_sign(y: Number, quadrant: Bits) -> Number:
    """-y if the quadrant's second bit is set."""
    number_format = format_of(y)
    sign = number_format.bits_of(-0.0).bit_length() - 1
    return from_bits(to_bits(y) ^ ((quadrant & 2) << (sign - 1)))


def _sin(quadrant: Bits, r: Number, low: Number) -> Number:
    square = r * r
    y = select((quadrant & 1) == 0, sin_reduced(r, low, square), cos_reduced(r, low, square))
    return _flip_sign(y, quadrant)


def _cos(quadrant: Bits, r: Number, low: Number) -> Number:
    square = r * r
    y = select((quadrant & 1) == 0, cos_reduced(r, low, square), sin_reduced(r, low, square))
    return _flip_sign(y, quadrant + 1)


def _tan(quadrant: Bits, r: Number, low: Number) -> Number:
    """The tangent of r, or -1 / tangent with the rounding errors of the tangent and the quotient put back."""
    square = r * r
    rest = r * square * polynomial(square, coefficients.TAN[format_of(r).name]) + low
    y = r + rest
    y_low = (r - y) + rest
    inverse = -1.0 / y
    inverse = inverse + inverse * (fused_multiply_add(inverse, y, 1.0) + inverse * y_low)
    return select((quadrant & 1) == 0, y, inverse)


def _is_large(x: Number) -> Condition:
    return abs(x) >= _LARGE[format_of(x).name]


def _of_large(x: Number, function: Callable[[Bits, Number, Number], Number]) -> Number:
    """The even or odd `function` of a quadrant and r, of a large angle; nan of an infinite one."""
    angle = to_float64(x)
    return to_format_of(function(*reduce_large_angle(angle)) + (angle - angle), x)


def sin_of_large(x: Number) -> Number:
    y = _of_large(x, _sin)
    return select(x < 0.0, -y, y)


def cos_of_large(x: Number) -> Number:
    return _of_large(x, _cos)


def tan_of_large(x: Number) -> Number:
    y = _of_large(x, _tan)
    return select(x < 0.0, -y, y)


@elementary
def sin(x: Number) -> Number:
    """The sine of an angle in radians."""
    y = select(x == 0.0, x, _sin(*_reduce(x)))
    return replace_rare(y, x, _is_large, sin_of_large)


@elementary
def cos(x: Number) -> Number:
    """The cosine of an angle in radians."""
    return replace_rare(_cos(*_reduce(x)), x, _is_large, cos_of_large)


@elementary
def tan(x: Number) -> Number:
    """The tangent of an angle in radians."""
    y = select(x == 0.0, x, _tan(*_reduce(x)))
    return replace_rare(y, x, _is_large, tan_of_large)
