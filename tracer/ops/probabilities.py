"""Distribution functions that SciPy sums up or integrates, with the derivatives that have a closed form.

Rice's is one minus Marcum's Q function (J. I. Marcum, Table of Q functions, 1950).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ..operator import Array, Operator
from .elementwise import cos, exp, log1p
from .lazy import scipy_stats
from .special import eager, i0e, i1e, no_rule


def _of_scipy(
    distribution: str, method: str, operands: str, rules: dict[str, Callable[..., Array]], doc: str
) -> Operator:
    """A method of a distribution of `scipy.stats`; by operands without a rule the derivative is refused."""
    name = f"{distribution}_{method}"
    refused = {one: partial(no_rule, name, one) for one in operands.split()}

    def numpy(*arrays: Any) -> Any:
        return getattr(getattr(scipy_stats(), distribution), method)(*arrays)

    return eager(name, operands, numpy=numpy, domain=(0.3, 0.7), vjp=refused | rules, doc=doc)


def _flat(g: Array) -> Array:
    """By a number of which the function has the integer below."""
    return 0.0 * g


def _logarithmic_slope(k: Array, p: Array, above: Array) -> Array:
    """Of the probability up to k by p, where that `above` is known: of B(p; k + 1, 0) / log(1 - p)."""
    return (p**k - above) / ((1.0 - p) * log1p(-p))


rice_cdf = _of_scipy(
    "rice", "cdf", "x b",
    {
        "x": lambda g, x, b: g * x * exp(-0.5 * (x - b) * (x - b)) * i0e(x * b),
        "b": lambda g, x, b: -g * x * exp(-0.5 * (x - b) * (x - b)) * i1e(x * b),
    },
    "Rice's distribution function",
)  # fmt: skip
vonmises_cdf = _of_scipy(
    "vonmises", "cdf", "x kappa",
    {"x": lambda g, x, kappa: g * exp(kappa * (cos(x) - 1.0)) / (2.0 * math.pi * i0e(kappa))},
    "von Mises' distribution function",
)  # fmt: skip
betabinom_cdf = _of_scipy(
    "betabinom", "cdf", "k n a b", {"k": _flat}, "the beta-binomial distribution function"
)
hypergeom_cdf = _of_scipy(
    "hypergeom", "cdf", "k total good drawn", {"k": _flat}, "the hypergeometric distribution function"
)
hypergeom_sf = _of_scipy(
    "hypergeom", "sf", "k total good drawn", {"k": _flat}, "1 - hypergeom_cdf, exact in the tail"
)
logser_cdf = _of_scipy(
    "logser", "cdf", "k p",
    {"k": _flat, "p": lambda g, k, p: g * _logarithmic_slope(k, p, logser_sf(k, p))},
    "the logarithmic series' distribution function",
)  # fmt: skip
logser_sf = _of_scipy(
    "logser", "sf", "k p",
    {"k": _flat, "p": lambda g, k, p, y: -g * _logarithmic_slope(k, p, y)},
    "1 - logser_cdf, exact in the tail",
)  # fmt: skip
