"""Error functions of complex numbers by their parts, by SciPy: Faddeeva's w and what is made of it.

Derivatives: NIST Digital Library of Mathematical Functions (dlmf.nist.gov), 7.10, by equation beside each.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..operator import Array, Operator
from .elementwise import cos, exp, greater, less, sin, where
from .lazy import scipy_special
from .special import eager

Parts = tuple[Array, Array]
Slope = Callable[[Parts, Parts], Parts]
"""(z, value) -> the derivative, all by parts."""
SQRT_PI = math.sqrt(math.pi)
LARGE = 64.0
"""|z|**2 from which on the derivative of w is a series, of which so many terms count."""
TERMS = 18


def _times(a: Parts, b: Parts) -> Parts:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _scaled(factor: Array, a: Parts) -> Parts:
    return factor * a[0], factor * a[1]


def _plus(a: Parts, b: Parts) -> Parts:
    return a[0] + b[0], a[1] + b[1]


def _turned(a: Parts) -> Parts:
    """Times i."""
    return -a[1], a[0]


def _chosen(holds: Array, a: Parts, b: Parts) -> Parts:
    return where(holds, a[0], b[0]), where(holds, a[1], b[1])


def _gaussian(z: Parts, sense: float) -> Parts:
    """exp(sense * z * z)."""
    re, im = z
    size, turn = exp(sense * (re - im) * (re + im)), sense * 2.0 * re * im
    return size * cos(turn), size * sin(turn)


def _slope_of_w(z: Parts, w: Parts) -> Parts:
    """-2 z w + 2i / sqrt(pi) (DLMF 7.10.2), and of large z, where that cancels, its series (DLMF 7.12.1)."""
    is_large = greater(z[0] * z[0] + z[1] * z[1], LARGE)
    near = _chosen(is_large, (0.0, 1.0), z)
    of_near = _times(_scaled(-2.0, near), _chosen(is_large, (0.0, 0.0), w))
    of_near = of_near[0], of_near[1] + 2.0 / SQRT_PI
    far = _chosen(is_large, z, (math.sqrt(LARGE), 0.0))
    length = far[0] * far[0] + far[1] * far[1]
    reciprocal = far[0] / length, -far[1] / length
    square = _times(reciprocal, reciprocal)
    series: Parts = (1.0, 0.0)
    for place in range(TERMS, 0, -1):
        term = _scaled(place + 0.5, _times(square, series))
        series = 1.0 + term[0], term[1]
    of_far = _scaled(-1.0 / SQRT_PI, _turned(_times(square, series)))
    is_below = less(far[1], 0.0)  # where w is 2 exp(-z * z) more (DLMF 7.4.3)
    below = _chosen(is_below, far, (1.0, 0.0))
    further = _scaled(-4.0, _times(below, _gaussian(below, -1.0)))
    return _chosen(is_large, _plus(of_far, _chosen(is_below, further, (0.0, 0.0))), of_near)


def _slope_of_erfcx(z: Parts, y: Parts) -> Parts:
    """erfcx(z) is w(i z)."""
    return _turned(_slope_of_w(_turned(z), y))


def _slope_of_dawsn(z: Parts, y: Parts) -> Parts:
    """Dawson's integral is (i sqrt(pi) / 2) (exp(-z * z) - w(z)) (DLMF 7.5.1)."""
    gaussian = _gaussian(z, -1.0)
    w = _plus(gaussian, _scaled(2.0 / SQRT_PI, _turned(y)))
    slope = _plus(_scaled(-2.0, _times(z, gaussian)), _scaled(-1.0, _slope_of_w(z, w)))
    return _scaled(0.5 * SQRT_PI, _turned(slope))


def _of_gaussian(factor: float, sense: float) -> Slope:
    return lambda z, y: _scaled(factor, _gaussian(z, sense))


def _of_parts(name: str, slope: Slope) -> tuple[Operator, Operator]:
    """Both parts of a holomorphic function of SciPy's, as operators of both parts of its argument."""

    def of_both(re: Array, im: Array) -> Parts:
        parts = found
        return slope((re, im), (parts[0](re, im), parts[1](re, im)))

    def part(place: int) -> Operator:
        kind = ("real", "imag")[place]
        return eager(
            f"{name}_{kind}", "re im", domain=(0.3, 2.0),
            numpy=lambda re, im: getattr(getattr(scipy_special(), name)(re + 1j * im), kind),
            vjp={
                "re": lambda g, re, im: g * of_both(re, im)[place],
                "im": lambda g, re, im: (g if place else -g) * of_both(re, im)[1 - place],
            },
            doc=f"the {'imaginary' if place else 'real'} part of {name} of a complex number (DLMF 7.2, 7.10)",
        )  # fmt: skip

    found = part(0), part(1)
    return found


COMPLEX: dict[str, tuple[Operator, Operator]] = {
    name: _of_parts(name, slope)
    for name, slope in {
        "wofz": _slope_of_w,
        "erfcx": _slope_of_erfcx,
        "dawsn": _slope_of_dawsn,
        "erf": _of_gaussian(2.0 / SQRT_PI, -1.0),
        "erfc": _of_gaussian(-2.0 / SQRT_PI, -1.0),
        "erfi": _of_gaussian(2.0 / SQRT_PI, 1.0),
    }.items()
}
"""By SciPy's name the real and the imaginary part."""
