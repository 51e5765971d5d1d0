"""Elliptic and exponential integrals, hypergeometric functions and others, by SciPy.

Derivatives: NIST Digital Library of Mathematical Functions (dlmf.nist.gov), by section beside each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from ..operator import Array, Operator
from .elementwise import absolute, cos, cosh, equal, erf, exp, floor, hypot, less, log, sin, sinh, where
from .lazy import scipy_special
from .special import digamma, eager, less_than_one, lgamma, no_rule, slope_of_log_ndtr

SQRT_PI = math.sqrt(math.pi)
SQRT_TWO_PI = math.sqrt(2 * math.pi)


erfcinv = eager(
    "erfcinv", numpy="erfcinv", scipy="erfcinv", domain=(0.2, 1.8),
    vjp={"x": lambda g, y: -g * (0.5 * SQRT_PI) * exp(y * y)}, doc="the inverse of erfc (DLMF 7.17)",
)  # fmt: skip
erfi = eager(
    "erfi", numpy="erfi", scipy="erfi", vjp={"x": lambda g, x: g * (2.0 / SQRT_PI) * exp(x * x)},
    doc="the imaginary error function, -i erf(i x)",
)  # fmt: skip
dawsn = eager(
    "dawsn", numpy="dawsn", scipy="dawsn", vjp={"x": lambda g, x, y: -g * less_than_one(x, y, 1.0)},
    doc="Dawson's integral (DLMF 7.2.5)",
)  # fmt: skip
expi = eager(
    "expi", numpy="expi", scipy="expi", domain=(0.3, 3.0), vjp={"x": lambda g, x: g * exp(x) / x},
    doc="the exponential integral Ei (DLMF 6.2.5)",
)  # fmt: skip
exp1 = eager(
    "exp1", numpy="exp1", scipy="exp1", domain=(0.3, 3.0), vjp={"x": lambda g, x: -g * exp(-x) / x},
    doc="the exponential integral E_1 (DLMF 6.2.1)",
)  # fmt: skip
spence = eager(
    "spence", numpy="spence", scipy="spence", domain=(0.3, 3.0),
    vjp={"x": lambda g, x: -g * _minus_log_over(x)},
    doc="Spence's function, Li_2(1 - x) (DLMF 25.12.2)",
)  # fmt: skip


def _minus_log_over(x: Array) -> Array:
    """-log(x) / (1 - x), and near 1 its series (DLMF 15.4.1)."""
    rest = 1.0 - x
    is_near = less(absolute(rest), 0.5)
    series = hyp2f1(1.0, 1.0, 2.0, where(is_near, rest, 0.0))
    return where(is_near, series, -log(where(is_near, 1.0, x)) / where(is_near, 1.0, rest))


def _integral(
    name: str, function: str, place: int, integrand: Callable[[Array], Array], doc: str
) -> Operator:
    """An integral up to x, which SciPy's `function` gives at a place among its results."""
    return eager(
        name, numpy=lambda x: getattr(scipy_special(), function)(x)[place], domain=(0.3, 3.0),
        vjp={"x": lambda g, x: g * integrand(x)}, doc=doc,
    )  # fmt: skip


def _over_argument(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """function(x) / x for an odd function of slope 1 at 0."""

    def quotient(x: Array) -> Array:
        at_zero = equal(x, 0.0)
        return where(at_zero, 1.0, function(x) / where(at_zero, 1.0, x))

    return quotient


sine_integral = _integral(
    "sine_integral", "sici", 0, _over_argument(sin), "the sine integral Si (DLMF 6.2.9)"
)
cosine_integral = _integral(
    "cosine_integral", "sici", 1, lambda x: cos(x) / x, "the cosine integral Ci (DLMF 6.2.11)"
)
hyperbolic_sine_integral = _integral(
    "hyperbolic_sine_integral", "shichi", 0, _over_argument(sinh),
    "the hyperbolic sine integral Shi (DLMF 6.2.15)",
)  # fmt: skip
hyperbolic_cosine_integral = _integral(
    "hyperbolic_cosine_integral", "shichi", 1, lambda x: cosh(x) / x,
    "the hyperbolic cosine integral Chi (DLMF 6.2.16)",
)  # fmt: skip

fresnel_sine = _integral(
    "fresnel_sine", "fresnel", 0, lambda x: sin(0.5 * math.pi * x * x), "Fresnel's integral S (DLMF 7.2.8)"
)
fresnel_cosine = _integral(
    "fresnel_cosine", "fresnel", 1, lambda x: cos(0.5 * math.pi * x * x), "Fresnel's integral C (DLMF 7.2.7)"
)

exprel = eager(
    "exprel", numpy="exprel", scipy="exprel", domain=(0.3, 3.0),
    vjp={"x": lambda g, x: 0.5 * g * hyp1f1(2.0, 3.0, x)}, doc="(exp(x) - 1) / x",
)  # fmt: skip


def _slope_of_rgamma(x: Array, y: Array) -> Array:
    """Below 1 / 2 by its reflection sin(pi x) gamma(1 - x) / pi, which is smooth where gamma has poles."""
    is_low = less(x, 0.5)
    low, high = where(is_low, x, 0.0), where(is_low, 1.0, x)
    turn = cos(math.pi * low) - sin(math.pi * low) * digamma(1.0 - low) / math.pi
    return where(is_low, exp(lgamma(1.0 - low)) * turn, -where(is_low, 1.0, y) * digamma(high))


rgamma = eager(
    "rgamma", numpy="rgamma", scipy="rgamma", domain=(0.3, 4.0),
    vjp={"x": lambda g, x, y: g * _slope_of_rgamma(x, y)}, doc="1 / gamma(x)",
)  # fmt: skip
gammasgn = eager("gammasgn", numpy="gammasgn", scipy="gammasgn", doc="the sign of gamma(x)")

ellipk = eager(
    "ellipk", "m", numpy="ellipk", scipy="ellipk", domain=(0.1, 0.9),
    vjp={"m": lambda g, m, y: g * _slope_of_k(m, 1.0 - m, y)},
    doc="the complete elliptic integral of the first kind, of m = k * k (DLMF 19.4.1)",
)  # fmt: skip
ellipkm1 = eager(
    "ellipkm1", "p", numpy="ellipkm1", scipy="ellipkm1", domain=(0.1, 0.9),
    vjp={"p": lambda g, p, y: -g * _slope_of_k(1.0 - p, p, y)},
    doc="the complete elliptic integral of the first kind, of p = 1 - m",
)  # fmt: skip
ellipe = eager(
    "ellipe", "m", numpy="ellipe", scipy="ellipe", domain=(0.1, 0.9),
    vjp={"m": lambda g, m: g * (-math.pi / 8) * hyp2f1(0.5, 1.5, 2.0, m)},
    doc="the complete elliptic integral of the second kind, of m = k * k (DLMF 19.4.2, 19.5.2)",
)  # fmt: skip


def _slope_of_k(m: Array, p: Array, k: Array) -> Array:
    """The derivative of K with respect to m = 1 - p: its series near 0 (DLMF 19.5.1), else DLMF 19.4.1."""
    is_near_zero = less(m, 0.5)
    series = (math.pi / 8) * hyp2f1(1.5, 1.5, 2.0, where(is_near_zero, m, 0.0))
    return where(is_near_zero, series, (ellipe(m) - p * k) / (2.0 * where(is_near_zero, 1.0, m) * p))


def _one_order_less(n: Array, x: Array) -> Array:
    """E_(n - 1)(x); that of order -1 is elementary (DLMF 8.19.12)."""
    is_zero = less(n, 1.0)
    return where(is_zero, exp(-x) * (1.0 + 1.0 / x) / x, expn(where(is_zero, 0.0, n - 1.0), x))


hyp0f1 = eager(
    "hyp0f1", "b z", numpy="hyp0f1", scipy="hyp0f1", domain=(0.3, 2.0),
    vjp={
        "b": lambda: no_rule("hyp0f1", "parameter b"),
        "z": lambda g, b, z: g * hyp0f1(b + 1.0, z) / b,
    },
    doc="the confluent hypergeometric limit function (DLMF 16.2)",
)  # fmt: skip


def _unless_constant(a: Array, x: Array, other: float) -> Array:
    """x, and where a is 0, and the function constant, a place where no other is infinite."""
    return where(equal(a, 0.0), other, x)


hyp1f1 = eager(
    "hyp1f1", "a b z", numpy="hyp1f1", scipy="hyp1f1", domain=(0.3, 2.0),
    vjp={
        "a": lambda: no_rule("hyp1f1", "parameter a"),
        "b": lambda: no_rule("hyp1f1", "parameter b"),
        "z": lambda g, a, b, z: g * (a / b) * hyp1f1(a + 1.0, b + 1.0, _unless_constant(a, z, 0.0)),
    },
    doc="Kummer's confluent hypergeometric function M (DLMF 13.3.15)",
)  # fmt: skip
hyperu = eager(
    "hyperu", "a b x", numpy="hyperu", scipy="hyperu", domain=(0.3, 2.0),
    vjp={
        "a": lambda: no_rule("hyperu", "parameter a"),
        "b": lambda: no_rule("hyperu", "parameter b"),
        "x": lambda g, a, b, x: -g * a * hyperu(a + 1.0, b + 1.0, _unless_constant(a, x, 1.0)),
    },
    doc="Kummer's confluent hypergeometric function U (DLMF 13.3.22)",
)  # fmt: skip
hyp2f1 = eager(
    "hyp2f1", "a b c z", numpy="hyp2f1", scipy="hyp2f1", domain=(0.1, 0.8),
    vjp={
        "a": lambda: no_rule("hyp2f1", "parameter a"),
        "b": lambda: no_rule("hyp2f1", "parameter b"),
        "c": lambda: no_rule("hyp2f1", "parameter c"),
        "z": lambda g, a, b, c, z: g * (a * b / c) * hyp2f1(a + 1.0, b + 1.0, c + 1.0, z),
    },
    doc="Gauss' hypergeometric function (DLMF 15.5.1)",
)  # fmt: skip
expn = eager(
    "expn", "n x", numpy="expn", scipy="expn", domain=(1.0, 3.0),
    vjp={
        "n": lambda: no_rule("expn", "order"),
        "x": lambda g, n, x: -g * _one_order_less(floor(n), x),  # SciPy cuts orders off
    },
    doc="the exponential integral E_n (DLMF 8.19.13)",
)  # fmt: skip
wrightomega = eager(
    "wrightomega", numpy="wrightomega", scipy="wrightomega", domain=(-2.0, 3.0),
    vjp={"x": lambda g, y: g * y / (1.0 + y)},
    doc="Wright's omega function, Lambert's W of exp(x) (DLMF 4.13)",
)  # fmt: skip
ndtri_exp = eager(
    "ndtri_exp", numpy="ndtri_exp", scipy="ndtri_exp", domain=(-3.0, -0.2),
    vjp={"x": lambda g, x, y: g / slope_of_log_ndtr(y, x)}, doc="the inverse of log_ndtr",
)  # fmt: skip
lpmv = eager(
    "lpmv", "m v x", numpy="lpmv", scipy="lpmv", domain=(0.2, 0.8),
    vjp={
        "m": lambda: no_rule("lpmv", "order"),
        "v": lambda: no_rule("lpmv", "degree"),
        "x": lambda g, m, v, x, y: g * (v * x * y - (v + m) * lpmv(m, v - 1.0, x)) / ((x - 1.0) * (x + 1.0)),
    },
    doc="the associated Legendre function of the first kind (DLMF 14.10.5)",
)  # fmt: skip
owens_t = eager(
    "owens_t", "h a", numpy="owens_t", scipy="owens_t", domain=(-2.0, 2.0),
    vjp={
        "h": lambda g, h, a: g * (-0.5 / SQRT_TWO_PI) * exp(-0.5 * h * h) * erf(a * h * math.sqrt(0.5)),
        "a": lambda g, h, a: g * (0.5 / math.pi) * exp(-0.5 * h * h * (1.0 + a * a)) / (1.0 + a * a),
    },
    doc="Owen's T function (Owen, Tables for computing bivariate normal probabilities, 1956)",
)  # fmt: skip


# --- Lambert's W, of a complex number by its parts ----------------------------------------------------------


def _slope_of_lambert_w(re: Array, im: Array, branch: int) -> tuple[Array, Array]:
    """Both parts of the derivative 1 / (z + exp(W)) (DLMF 4.13.4)."""
    size, turn = exp(lambert_w_real(re, im, branch=branch)), lambert_w_imag(re, im, branch=branch)
    a, b = re + size * cos(turn), im + size * sin(turn)
    length = hypot(a, b)
    return a / length / length, -b / length / length


def _lambert_w(part: str, rule: Mapping[str, Callable[..., Array]]) -> Operator:
    return eager(
        f"lambert_w_{part}", "re im", vjp=rule, domain=(0.3, 3.0),
        numpy=lambda re, im, branch: getattr(scipy_special().lambertw(re + 1j * im, branch), part),
        doc=f"the {'imaginary' if part == 'imag' else part} part of a branch of Lambert's W (DLMF 4.13)",
    )  # fmt: skip


lambert_w_real = _lambert_w("real", {
    "re": lambda g, re, im, branch: g * _slope_of_lambert_w(re, im, branch)[0],
    "im": lambda g, re, im, branch: -g * _slope_of_lambert_w(re, im, branch)[1],
})  # fmt: skip
lambert_w_imag = _lambert_w("imag", {
    "re": lambda g, re, im, branch: g * _slope_of_lambert_w(re, im, branch)[1],
    "im": lambda g, re, im, branch: g * _slope_of_lambert_w(re, im, branch)[0],
})  # fmt: skip
