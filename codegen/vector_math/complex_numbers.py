"""Functions of complex numbers, each of the parts of its operands, and one for each part of its value.

What both parts need is written twice and computed once, since LLVM inlines them side by side. Branch cuts,
signed zeros, infinities and nan are as NumPy and C's Annex G have them; nothing overflows but what must.

- R. L. Smith, "Algorithm 116: complex division" (1962), as NumPy divides.
- T. E. Hull, T. F. Fairgrieve, P. T. P. Tang, "Implementing the complex arcsine and arccosine functions using
  exception handling" (1997).
- W. Kahan, "Branch cuts for complex elementary functions" (1987): tanh, atanh.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .arithmetic import hypot
from .double_double import two_sum
from .exponential import cosh as real_cosh
from .exponential import exp as real_exp
from .exponential import expm1 as real_expm1
from .exponential import sinh as real_sinh
from .inverse_trigonometric import atan2
from .logarithm import log as real_log
from .logarithm import log1p as real_log1p
from .primitives import (
    Condition,
    Number,
    copysign,
    elementary,
    exact_product,
    format_of,
    hardware_maximum,
    hardware_minimum,
    hardware_sqrt,
    select,
    typed,
)
from .trigonometric import cos as real_cos
from .trigonometric import sin as real_sin
from .trigonometric import tan as real_tan

Parts = tuple[Number, Number]
PARTS = ("real", "imag")


def _in_parts(function: Callable[..., Parts]) -> tuple[Callable[..., Number], Callable[..., Number]]:
    """A function for each part of the value of `_name`: `name_real` and `name_imag`."""
    name = function.__name__.removeprefix("_")

    def of_part(place: int) -> Callable[..., Number]:
        def part(x: Number, y: Number) -> Number:
            return function(x, y)[place]

        def part_of_two(a_real: Number, a_imag: Number, b_real: Number, b_imag: Number) -> Number:
            return function(a_real, a_imag, b_real, b_imag)[place]

        made = part if function.__code__.co_argcount == 2 else part_of_two
        made.__name__ = made.__qualname__ = f"{name}_{PARTS[place]}"
        made.__doc__ = f"The {'imaginary' if place else 'real'} part of this: {function.__doc__}"
        return elementary(made)

    return of_part(0), of_part(1)


def _is_finite(x: Number) -> Condition:
    return abs(x) < math.inf


def _is_infinite(x: Number) -> Condition:
    return abs(x) == math.inf


def _turned(parts: Parts) -> Parts:
    """The number times -i."""
    return parts[1], -parts[0]


# --- quotients and roots --------------------------------------------------------------------------------


def _larger(x: Number, y: Number) -> Number:
    return select(abs(x) >= abs(y), abs(x), abs(y))


def _divisor(x: Number, y: Number) -> tuple[Condition, Number, Number, Number]:
    """Whether the real part is the larger one, the reciprocal of what Smith divides by, and the smaller part
    over the larger: of the number times the last, with which the reciprocal is finite and has all digits.
    """
    number_format = format_of(x)
    large = _larger(x, y) > 2.0 ** (number_format.bias - 3)
    small = _larger(x, y) < 8.0 * number_format.smallest_normal
    raised = typed(2.0 ** (number_format.fraction_bits + 4), x)
    factor = select(large, typed(1.0 / 16.0, x), select(small, raised, 1.0))
    x, y, is_wide = x * factor, y * factor, abs(x) >= abs(y)
    larger, smaller = select(is_wide, x, y), select(is_wide, y, x)
    ratio = smaller / larger
    return is_wide, 1.0 / (larger + smaller * ratio), ratio, factor


def _divide(a_real: Number, a_imag: Number, b_real: Number, b_imag: Number) -> Parts:
    """a / b."""
    is_wide, scale, ratio, factor = _divisor(b_real, b_imag)
    large = _larger(a_real, a_imag) > 2.0 ** (format_of(a_real).bias - 2)
    a_factor, back = select(large, typed(0.25, a_real), 1.0), select(large, 4.0 * factor, factor)
    one, other = select(is_wide, a_real, a_imag) * a_factor, select(is_wide, a_imag, a_real) * a_factor
    re = (one + other * ratio) * scale * back
    im = select(is_wide, other - one * ratio, one * ratio - other) * scale * back
    nothing = (b_real == 0.0) & (b_imag == 0.0)
    size = abs(b_real)
    return select(nothing, a_real / size, re), select(nothing, a_imag / size, im)


def _reciprocal(x: Number, y: Number) -> Parts:
    """1 / z."""
    is_wide, scale, ratio, factor = _divisor(x, y)
    one = scale * factor
    other = select(ratio == 0.0, ratio, ratio * one)
    return select(is_wide, one, other), -select(is_wide, other, one)


def _sqrt(x: Number, y: Number) -> Parts:
    """The root whose real part is not negative."""
    number_format = format_of(x)
    largest = select(abs(x) > abs(y), abs(x), abs(y))
    large = largest > 2.0 ** (number_format.bias - 2)
    small = largest < 2.0 ** (number_format.fraction_bits + 4) * number_format.smallest_normal
    raised = number_format.fraction_bits // 2 + 4
    factor = select(large, typed(0.25, x), select(small, typed(4.0**raised, x), 1.0))
    back = select(large, typed(2.0, x), select(small, typed(0.5**raised, x), 1.0))
    scaled = x * factor
    half = hardware_sqrt(0.5 * (hypot(scaled, y * factor) + abs(scaled)))
    other = (y * factor) / (half + half) * back
    half = half * back
    re, im = select(x < 0.0, abs(other), half), select(x < 0.0, copysign(half, y), other)
    nothing = (x == 0.0) & (y == 0.0)
    re, im = select(nothing, 0.0, re), select(nothing, y, im)
    endless = _is_infinite(y)
    return select(endless, typed(math.inf, x), re), select(endless, y, im)


# --- exponential and hyperbolic functions ---------------------------------------------------------------

_SHIFTS = {"float32": (60.0, 20.0), "float64": (650.0, 50.0)}
"""Where e**x may overflow and a product with it may not, it is computed in two factors, or three: the
logarithm of one, and the least that is left of x."""


def _shifted(x: Number) -> tuple[Number, Callable[[Number], Number]]:
    """x nearer to 0, and what makes e**x of its exponential."""
    shift, least = _SHIFTS[format_of(x).name]
    once, twice = abs(x) > shift + least, abs(x) > 2.0 * shift + least
    near = x - copysign(select(twice, typed(2.0 * shift, x), select(once, typed(shift, x), 0.0)), x)
    one, other = (select(large, typed(math.exp(shift), x), 1.0) for large in (once, twice))
    return near, lambda power: power * one * other


def _exp(x: Number, y: Number) -> Parts:
    """e ** z."""
    near, whole = _shifted(select(x < 0.0, 0.0, x))
    size = real_exp(select(x < 0.0, x, near))
    re, im = whole(size * real_cos(y)), whole(size * real_sin(y))
    unknown = _is_infinite(x) & ~_is_finite(y)
    im = select(unknown & (x < 0.0), 0.0, select(y == 0.0, y, im))
    return select(unknown, size, re), im


def _expm1(x: Number, y: Number) -> Parts:
    """e ** z - 1, exact near 0."""
    half = real_sin(0.5 * y)
    return real_expm1(x) * real_cos(y) - 2.0 * half * half, real_exp(x) * real_sin(y)


def _sinh(x: Number, y: Number) -> Parts:
    """The hyperbolic sine."""
    near, whole = _shifted(x)
    re, im = whole(real_sinh(near) * real_cos(y)), whole(real_cosh(near) * real_sin(y))
    known = (_is_infinite(x) | (x == 0.0)) & ~_is_finite(y)
    return select(known, select(x == 0.0, x, abs(x)), re), select(y == 0.0, y, im)


def _cosh(x: Number, y: Number) -> Parts:
    """The hyperbolic cosine."""
    near, whole = _shifted(x)
    re, im = whole(real_cosh(near) * real_cos(y)), whole(real_sinh(near) * real_sin(y))
    re = select(_is_infinite(x) & ~_is_finite(y), abs(x), re)
    im = select((y == 0.0) & (x != 0.0), select(x < 0.0, -y, y), im)
    return re, select((x == 0.0) & ~_is_finite(y), x, im)


_FLAT = {"float32": 20.0, "float64": 177.0}
"""From where on the imaginary part of tanh is smaller than any rounding of the real one, which is 1."""


def _tanh(x: Number, y: Number) -> Parts:
    """The hyperbolic tangent."""
    limit = typed(_FLAT[format_of(x).name], x)
    s, t = real_sinh(hardware_maximum(hardware_minimum(x, limit), -limit)), real_tan(y)
    beta = 1.0 + t * t
    below = 1.0 + beta * s * s
    re, im = beta * hardware_sqrt(1.0 + s * s) * s / below, t / below
    endless = _is_infinite(x)
    re = select(x == 0.0, x, select(endless, copysign(1.0, x), re))
    return re, select(y == 0.0, y, select(endless, copysign(0.0, t), im))


def _sin(x: Number, y: Number) -> Parts:
    """The sine."""
    im, re = _sinh(y, -x)
    return -re, im


def _cos(x: Number, y: Number) -> Parts:
    """The cosine."""
    return _cosh(-y, x)


def _tan(x: Number, y: Number) -> Parts:
    """The tangent."""
    return _turned(_tanh(-y, x))


def _sigmoid(x: Number, y: Number) -> Parts:
    """1 / (1 + e ** -z)."""
    limit = typed(1.38 * format_of(x).bias, x)  # e**(limit / 2) is finite, and 1 / e**limit vanishes
    a, b = 0.5 * hardware_maximum(hardware_minimum(x, limit), -limit), 0.5 * y
    c, s, size = real_cos(b), real_sin(b), real_exp(a)  # e**(z/2) / (2 cosh(z/2)): nothing cancels
    re, im = _divide(size * c, size * s, 2.0 * real_cosh(a) * c, 2.0 * real_sinh(a) * s)
    endless = _is_infinite(x)
    return select(endless, select(x > 0.0, typed(1.0, x), 0.0), re), select(endless, 0.0, im)


# --- logarithms and powers ------------------------------------------------------------------------------


def _log_size(x: Number, y: Number, below: Number, is_close: Condition) -> Number:
    """log|z|; where |z| is close to 1, of |z|**2 - 1."""
    number_format = format_of(x)
    largest = select(abs(x) > abs(y), abs(x), abs(y))
    large = largest > 2.0 ** (number_format.bias - 2)
    small = largest < 2.0**64 * number_format.smallest_normal
    factor = select(large, typed(0.25, x), select(small, typed(2.0**64, x), 1.0))
    rest = select(large, typed(math.log(4.0), x), select(small, typed(-64.0 * math.log(2.0), x), 0.0))
    far = real_log(hypot(x * factor, y * factor)) + rest
    return select(is_close, 0.5 * real_log1p(select(is_close, below, 0.0)), far)


def _below_square(x: Number, y: Number) -> tuple[Number, Condition]:
    """|z|**2 - 1 with the errors of the squares, and whether |z| is close to 1."""
    a, b = abs(x), abs(y)
    larger, smaller = select(a > b, a, b), select(a > b, b, a)
    square, error = exact_product(larger, larger)
    other, other_error = exact_product(smaller, smaller)
    total, rest = two_sum(square - 1.0, other)
    return total + (rest + (error + other_error)), (larger > 0.5) & (larger < 1.5)


def _log(x: Number, y: Number) -> Parts:
    """The natural logarithm, with an imaginary part between -pi and pi."""
    return _log_size(x, y, *_below_square(x, y)), atan2(y, x)


def _log1p(x: Number, y: Number) -> Parts:
    """log(1 + z), exact near 0."""
    above = 1.0 + x
    below, is_close = _below_square(above, y)
    is_small = (abs(x) < 0.5) & (abs(y) < 0.5)
    below = select(is_small, x * (2.0 + x) + y * y, below)
    return _log_size(above, y, below, is_small | is_close), atan2(y, above)


def _power(a_real: Number, a_imag: Number, b_real: Number, b_imag: Number) -> Parts:
    """a ** b, e ** (b log a)."""
    size, angle = _log(a_real, a_imag)
    re, im = _exp(b_real * size - b_imag * angle, b_real * angle + b_imag * size)
    of_nothing, to_nothing = (a_real == 0.0) & (a_imag == 0.0), (b_real == 0.0) & (b_imag == 0.0)
    limit = select(b_real > 0.0, typed(0.0, a_real), math.nan)
    re, im = select(of_nothing, limit, re), select(of_nothing, limit, im)
    return select(to_nothing, 1.0, re), select(to_nothing, 0.0, im)


# --- inverse functions ----------------------------------------------------------------------------------

_LARGE = {"float32": 1e15, "float64": 1e100}
"""From where on 1 vanishes beside z**2, and squares are not far from overflow."""


def _is_large(x: Number, y: Number) -> Condition:
    limit = _LARGE[format_of(x).name]
    return (abs(x) > limit) | (abs(y) > limit)


def _arc(x: Number, y: Number) -> Parts:
    """The size of the imaginary part of asin(z), and the w with atan2(x, w) for its real part.

    With a half the sum of the distances from -1 and 1, w**2 is a**2 - x**2, and the first is
    log(a + sqrt(a**2 - 1)). Of a - x and a - 1 one is `near`, without cancellation, the other y**2 * `far`.
    """
    large = _is_large(x, y)
    re, im = (select(large, 1.0, abs(part)) for part in (x, y))
    right, left = hypot(re + 1.0, im), hypot(re - 1.0, im)
    a = 0.5 * (right + left)
    beside, across = 1.0 / (right + re + 1.0), left + abs(re - 1.0)
    near, far = 0.5 * (im * im * beside + across), 0.5 * (beside + 1.0 / across)
    is_inside, is_within = re <= 1.0, re < 1.0
    w = hardware_sqrt(select(is_inside, near, far) * (a + re)) * select(is_inside, 1.0, im)
    above, factor = select(is_within, far, near), select(is_within, im, 1.0)
    size = above * factor * factor + hardware_sqrt(above * (a + 1.0)) * factor
    size = select(large, hypot(0.25 * x, 0.25 * y), size)
    return real_log1p(size) + select(large, typed(math.log(8.0), x), 0.0), select(large, abs(y), w)


def _asin(x: Number, y: Number) -> Parts:
    """The arc sine."""
    size, w = _arc(x, y)
    return select(x == 0.0, x, atan2(x, w)), copysign(size, y)


def _acos(x: Number, y: Number) -> Parts:
    """The arc cosine."""
    size, w = _arc(x, y)
    return select((x == 0.0) & (y != y), typed(0.5 * math.pi, x), atan2(w, x)), -copysign(size, y)


def _asinh(x: Number, y: Number) -> Parts:
    """The inverse hyperbolic sine."""
    re, im = _asin(y, x)
    return im, re


def _acosh(x: Number, y: Number) -> Parts:
    """The inverse hyperbolic cosine."""
    re, im = _acos(x, y)
    return abs(im), copysign(re, y)


_SCALED = {"float32": (2.0**-70, 2.0**-60, 24), "float64": (2.0**-600, 2.0**-200, 64)}
"""What large numbers are multiplied by; the distance from 1 below which a square vanishes; and the binary
digits by which its reciprocal is made smaller, so that it stays finite."""


def _atanh(x: Number, y: Number) -> Parts:
    """The inverse hyperbolic tangent."""
    a, b, large = abs(x), abs(y), _is_large(x, y)
    smaller, closest, digits = _SCALED[format_of(x).name]
    scale = select(large, typed(smaller, x), 1.0)
    across, along = (a - 1.0) * scale, b * scale
    ratio = 4.0 * (a * scale) / (across * across + along * along) * scale
    is_pole = (a == 1.0) & (b < closest)
    power = real_log1p(select(is_pole, 2.0 / (b * 2.0**digits), ratio))
    re = select(is_pole, 0.5 * (power + digits * math.log(2.0)), 0.25 * power)
    re = select(_is_infinite(x) | _is_infinite(y), 0.0, re)
    known = (y == y) & ((x == x) | _is_infinite(y))
    right_angle = select(known, typed(0.5 * math.pi, x), math.nan)
    im = select(large, right_angle, 0.5 * atan2(2.0 * b, (1.0 - a) * (1.0 + a) - b * b))
    return select(x == 0.0, x, copysign(re, x)), copysign(im, y)


def _atan(x: Number, y: Number) -> Parts:
    """The arc tangent."""
    return _turned(_atanh(-y, x))


divide_real, divide_imag = _in_parts(_divide)
reciprocal_real, reciprocal_imag = _in_parts(_reciprocal)
sqrt_real, sqrt_imag = _in_parts(_sqrt)
exp_real, exp_imag = _in_parts(_exp)
expm1_real, expm1_imag = _in_parts(_expm1)
sinh_real, sinh_imag = _in_parts(_sinh)
cosh_real, cosh_imag = _in_parts(_cosh)
tanh_real, tanh_imag = _in_parts(_tanh)
sin_real, sin_imag = _in_parts(_sin)
cos_real, cos_imag = _in_parts(_cos)
tan_real, tan_imag = _in_parts(_tan)
sigmoid_real, sigmoid_imag = _in_parts(_sigmoid)
log_real, log_imag = _in_parts(_log)
log1p_real, log1p_imag = _in_parts(_log1p)
power_real, power_imag = _in_parts(_power)
asin_real, asin_imag = _in_parts(_asin)
acos_real, acos_imag = _in_parts(_acos)
asinh_real, asinh_imag = _in_parts(_asinh)
acosh_real, acosh_imag = _in_parts(_acosh)
atanh_real, atanh_imag = _in_parts(_atanh)
atan_real, atan_imag = _in_parts(_atan)
