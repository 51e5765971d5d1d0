"""Bessel functions, by SciPy: of integer order, and of any; and Airy's.

Derivatives: NIST Digital Library of Mathematical Functions (dlmf.nist.gov), 10.6 (J and Y), 10.29 (I and K),
9.2 (Airy's), 11.4 (Struve's), 10.61 and 10.63 (Kelvin's).
None is known in closed form with respect to the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..operator import Array, Operator
from .elementwise import power, sign
from .lazy import scipy_special
from .special import eager, no_rule, over
from .transcendents import rgamma

Derivative = Callable[[Array, Array, Array], Array]
"""(order, argument, value) -> the derivative with respect to the argument."""


def _of_order(name: str, derivative: Derivative, doc: str) -> Operator:
    """A function of an order v and an argument x."""
    return eager(
        name, "v x", numpy=name, domain=(0.3, 3.0), scipy=name, doc=doc,
        vjp={"v": lambda: no_rule(name, "order"), "x": lambda g, v, x, y: g * derivative(v, x, y)},
    )  # fmt: skip


def _of_argument(name: str, scipy: str, doc: str, **fields: Any) -> Operator:
    return eager(
        name, numpy=scipy, scipy=scipy, torch=f"special.{name}", domain=(0.3, 3.0), doc=doc, **fields
    )


jv = _of_order(
    "jv", lambda v, x, y: 0.5 * (jv(v - 1.0, x) - jv(v + 1.0, x)),
    "the Bessel function of the first kind J_v",
)  # fmt: skip
yv = _of_order(
    "yv", lambda v, x, y: 0.5 * (yv(v - 1.0, x) - yv(v + 1.0, x)),
    "the Bessel function of the second kind Y_v",
)  # fmt: skip
iv = _of_order(
    "iv", lambda v, x, y: 0.5 * (iv(v - 1.0, x) + iv(v + 1.0, x)), "the modified Bessel function I_v"
)  # fmt: skip
ive = _of_order(
    "ive", lambda v, x, y: 0.5 * (ive(v - 1.0, x) + ive(v + 1.0, x)) - sign(x) * y, "exp(-|x|) I_v(x)"
)
kv = _of_order(
    "kv", lambda v, x, y: -0.5 * (kv(v - 1.0, x) + kv(v + 1.0, x)),
    "the modified Bessel function K_v",
)  # fmt: skip
kve = _of_order("kve", lambda v, x, y: y - 0.5 * (kve(v - 1.0, x) + kve(v + 1.0, x)), "exp(x) K_v(x)")



def _struve_term(v: Array, x: Array) -> Array:
    """(x / 2)**v / (sqrt(pi) gamma(v + 3/2))."""
    return power(0.5 * x, v) * rgamma(v + 1.5) / math.sqrt(math.pi)


struve = _of_order(
    "struve", lambda v, x, y: 0.5 * (struve(v - 1.0, x) - struve(v + 1.0, x) + _struve_term(v, x)),
    "the Struve function H_v",
)  # fmt: skip
modstruve = _of_order(
    "modstruve", lambda v, x, y: 0.5 * (modstruve(v - 1.0, x) + modstruve(v + 1.0, x) + _struve_term(v, x)),
    "the modified Struve function L_v",
)  # fmt: skip

bessel_j0 = _of_argument(
    "bessel_j0", "j0", "the Bessel function J_0 (DLMF 10.2.2)", vjp={"x": lambda g, x: -g * bessel_j1(x)}
)
bessel_j1 = _of_argument(
    "bessel_j1", "j1", "the Bessel function J_1 (DLMF 10.2.2)",
    vjp={"x": lambda g, x: 0.5 * g * (bessel_j0(x) - jv(2.0, x))},
)  # fmt: skip
bessel_y0 = _of_argument(
    "bessel_y0", "y0", "the Bessel function Y_0 (DLMF 10.2.3)", vjp={"x": lambda g, x: -g * bessel_y1(x)}
)
bessel_y1 = _of_argument(
    "bessel_y1", "y1", "the Bessel function Y_1 (DLMF 10.2.3)",
    vjp={"x": lambda g, x, y: g * (bessel_y0(x) - y / x)},
)
modified_bessel_k0 = _of_argument(
    "modified_bessel_k0", "k0", "the modified Bessel function K_0 (DLMF 10.25.3)",
    vjp={"x": lambda g, x: -g * modified_bessel_k1(x)},
)  # fmt: skip
modified_bessel_k1 = _of_argument(
    "modified_bessel_k1", "k1", "the modified Bessel function K_1 (DLMF 10.25.3)",
    vjp={"x": lambda g, x, y: -g * (modified_bessel_k0(x) + y / x)},
)  # fmt: skip
scaled_modified_bessel_k0 = _of_argument(
    "scaled_modified_bessel_k0", "k0e", "exp(x) K_0(x) (DLMF 10.25.3)",
    vjp={"x": lambda g, x, y: g * (y - scaled_modified_bessel_k1(x))},
)  # fmt: skip
scaled_modified_bessel_k1 = _of_argument(
    "scaled_modified_bessel_k1", "k1e", "exp(x) K_1(x) (DLMF 10.25.3)",
    vjp={"x": lambda g, x, y: g * (y - scaled_modified_bessel_k0(x) - y / x)},
)  # fmt: skip


def _airy(name: str, place: int, slope: Callable[[Array], Array], doc: str, **fields: Any) -> Operator:
    """The function of SciPy's `airy` at a place among its results; `slope` is its derivative."""
    return eager(
        name, numpy=lambda x: scipy_special().airy(x)[place], domain=(-3.0, 3.0), doc=doc,
        vjp={"x": lambda g, x: g * slope(x)}, **fields,
    )  # fmt: skip


airy_ai = _airy(
    "airy_ai", 0, lambda x: airy_ai_slope(x), "the Airy function Ai (DLMF 9.2)", torch="special.airy_ai"
)
airy_ai_slope = _airy("airy_ai_slope", 1, lambda x: x * airy_ai(x), "the derivative of the Airy function Ai")
airy_bi = _airy("airy_bi", 2, lambda x: airy_bi_slope(x), "the Airy function Bi")
airy_bi_slope = _airy("airy_bi_slope", 3, lambda x: x * airy_bi(x), "the derivative of the Airy function Bi")


def _kelvin(name: str, slope: Callable[[Array], Array], doc: str) -> Operator:
    return eager(
        name, numpy=name, scipy=name, domain=(0.3, 3.0), vjp={"x": lambda g, x: g * slope(x)}, doc=doc
    )


def _kelvin_slope(name: str, curvature: Callable[[Array, Array], Array], doc: str) -> Operator:
    """The derivative of a Kelvin function, whose own one follows from the differential equation."""
    return eager(
        name, numpy=name, scipy=name, domain=(0.3, 3.0), doc=doc,
        vjp={"x": lambda g, x, y: g * curvature(x, y)},
    )  # fmt: skip


ber = _kelvin("ber", lambda x: berp(x), "the Kelvin function ber")
bei = _kelvin("bei", lambda x: beip(x), "the Kelvin function bei")
ker = _kelvin("ker", lambda x: kerp(x), "the Kelvin function ker")
kei = _kelvin("kei", lambda x: keip(x), "the Kelvin function kei")
berp = _kelvin_slope("berp", lambda x, y: -bei(x) - over(y, x, 0.0), "the derivative of ber")
beip = _kelvin_slope("beip", lambda x, y: ber(x) - over(y, x, 0.5), "the derivative of bei")
kerp = _kelvin_slope("kerp", lambda x, y: -kei(x) - y / x, "the derivative of ker")
keip = _kelvin_slope("keip", lambda x, y: ker(x) - y / x, "the derivative of kei")
