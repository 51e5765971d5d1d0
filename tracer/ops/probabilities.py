"""Distribution functions that SciPy sums up or integrates, with the derivatives that have a closed form.

Rice's is one minus Marcum's Q function (J. I. Marcum, Table of Q functions, 1950).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ..operator import Array, Operator
from .elementwise import cos, erfc, exp, log1p
from .lazy import scipy_stats
from .special import eager, i0e, i1e, no_rule


def of_scipy_stats(
    distribution: str,
    method: str,
    operands: str,
    rules: dict[str, Callable[..., Array]],
    doc: str,
    numpy: Callable[..., Any] | None = None,
) -> Operator:
    """A method of a distribution of `scipy.stats`; by operands without a rule the derivative is refused."""
    name = f"{distribution}_{method}"
    refused = {one: partial(no_rule, name, one) for one in operands.split()}

    def scipys(*arrays: Any) -> Any:
        return getattr(getattr(scipy_stats(), distribution), method)(*arrays)

    return eager(name, operands, numpy=numpy or scipys, domain=(0.3, 0.7), vjp=refused | rules, doc=doc)


def _flat(g: Array) -> Array:
    """By a number of which the function has the integer below."""
    return 0.0 * g


def _logarithmic_slope(k: Array, p: Array, above: Array) -> Array:
    """Of the probability up to k by p, where that `above` is known: of B(p; k + 1, 0) / log(1 - p)."""
    return (p**k - above) / ((1.0 - p) * log1p(-p))


def _skewed(sense: float) -> dict[str, Callable[..., Array]]:
    """By the place, and by the shape through Owen's T function (A. Azzalini, 1985)."""

    def by_place(g: Array, x: Array, a: Array) -> Array:
        return g * (sense / math.sqrt(2.0 * math.pi)) * exp(-0.5 * x * x) * erfc(-math.sqrt(0.5) * a * x)

    def by_shape(g: Array, x: Array, a: Array) -> Array:
        bend = 1.0 + a * a
        return -g * (sense / math.pi) * exp(-0.5 * x * x * bend) / bend

    return {"x": by_place, "a": by_shape}


rice_cdf = of_scipy_stats(
    "rice", "cdf", "x b",
    {
        "x": lambda g, x, b: g * x * exp(-0.5 * (x - b) * (x - b)) * i0e(x * b),
        "b": lambda g, x, b: -g * x * exp(-0.5 * (x - b) * (x - b)) * i1e(x * b),
    },
    "Rice's distribution function",
)  # fmt: skip
vonmises_cdf = of_scipy_stats(
    "vonmises", "cdf", "x kappa",
    {"x": lambda g, x, kappa: g * exp(kappa * (cos(x) - 1.0)) / (2.0 * math.pi * i0e(kappa))},
    "von Mises' distribution function",
)  # fmt: skip
skewnorm_cdf = of_scipy_stats("skewnorm", "cdf", "x a", _skewed(1.0), "the skew-normal distribution function")
skewnorm_sf = of_scipy_stats("skewnorm", "sf", "x a", _skewed(-1.0), "1 - skewnorm_cdf, exact in the tail")
betabinom_cdf = of_scipy_stats(
    "betabinom", "cdf", "k n a b", {"k": _flat}, "the beta-binomial distribution function"
)
hypergeom_cdf = of_scipy_stats(
    "hypergeom", "cdf", "k total good drawn", {"k": _flat}, "the hypergeometric distribution function"
)
hypergeom_sf = of_scipy_stats(
    "hypergeom", "sf", "k total good drawn", {"k": _flat}, "1 - hypergeom_cdf, exact in the tail"
)
logser_cdf = of_scipy_stats(
    "logser", "cdf", "k p",
    {"k": _flat, "p": lambda g, k, p: g * _logarithmic_slope(k, p, logser_sf(k, p))},
    "the logarithmic series' distribution function",
)  # fmt: skip
logser_sf = of_scipy_stats(
    "logser", "sf", "k p",
    {"k": _flat, "p": lambda g, k, p, y: -g * _logarithmic_slope(k, p, y)},
    "1 - logser_cdf, exact in the tail",
)  # fmt: skip
