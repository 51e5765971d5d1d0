"""The noncentral chi-square, F and t distributions, by their place and noncentrality.

The first two are Poisson mixtures, whose next term has two degrees of freedom more; a density of the third is
a mean over a chi variable s of s phi(t s - nc), and means with further powers of s are its densities of more
degrees of freedom. So derivatives are densities again (Johnson, Kotz, Balakrishnan, Continuous Univariate
Distributions 2, chapters 29 to 31). By degrees of freedom no closed form is known.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..operator import Array
from .elementwise import exp, log
from .lazy import scipy_stats
from .probabilities import of_scipy_stats
from .special import lgamma

# --- chi-square -----------------------------------------------------------------------------------------

MOST_OF_SERIES = 400.0
"""Up to this product of place and noncentrality the series has few terms; SciPy's formula may underflow."""
TERMS = 150


def _log_ncx2_density(x: Any, df: Any, nc: Any) -> np.ndarray:
    from scipy.special import gammaln

    half, square = 0.5 * df, 0.25 * x * nc
    total = term = np.ones_like(np.asarray(square + half))
    with np.errstate(all="ignore"):
        for place in range(TERMS):
            term = term * square / ((place + 1.0) * (half + place))
            total = total + term
        central = (half - 1.0) * np.log(x) - half * math.log(2.0) - gammaln(half)
        small = central - 0.5 * (x + nc) + np.log(total)
        return np.where(x * nc < MOST_OF_SERIES, small, scipy_stats().ncx2.logpdf(x, df, nc))


def _more_of_ncx2(x: Array, df: Array, nc: Array, y: Array) -> Array:
    """The density of two degrees of freedom more over the density."""
    return exp(log_ncx2_density(x, df + 2.0, nc) - y)


log_ncx2_density = of_scipy_stats(
    "ncx2", "logpdf", "x df nc",
    {
        "x": lambda g, x, df, nc, y: (
            g * ((0.5 * df - 1.0) / x - 0.5 + 0.5 * nc / x * _more_of_ncx2(x, df, nc, y))
        ),
        "nc": lambda g, x, df, nc, y: 0.5 * g * (_more_of_ncx2(x, df, nc, y) - 1.0),
    },
    "the logarithm of the noncentral chi-square density", numpy=_log_ncx2_density,
)  # fmt: skip


def _ncx2(method: str, sense: float, doc: str) -> Any:
    return of_scipy_stats(
        "ncx2", method, "x df nc",
        {
            "x": lambda g, x, df, nc: sense * g * exp(log_ncx2_density(x, df, nc)),
            "nc": lambda g, x, df, nc: -sense * g * exp(log_ncx2_density(x, df + 2.0, nc)),
        },
        doc,
    )  # fmt: skip


ncx2_cdf = _ncx2("cdf", 1.0, "the noncentral chi-square distribution function")
ncx2_sf = _ncx2("sf", -1.0, "1 - ncx2_cdf, exact in the tail")

# --- F --------------------------------------------------------------------------------------------------


def _more_of_ncf(x: Array, n: Array, m: Array, nc: Array, y: Array) -> Array:
    """The same of n + 2, where the beta variable that x stands for is the same."""
    share = n / (n + 2.0)
    return share * exp(log_ncf_density(share * x, n + 2.0, m, nc) - y)


def _ncf_slope(x: Array, n: Array, m: Array, nc: Array, y: Array) -> Array:
    """Of the logarithm of the density by x, through the beta variable n x / (m + n x)."""
    whole = m + n * x
    of_beta = 0.5 * n - 1.0 + 0.5 * nc * _more_of_ncf(x, n, m, nc, y) - (0.5 * m - 1.0) * n * x / m
    return (of_beta * m / x - 2.0 * n) / whole


log_ncf_density = of_scipy_stats(
    "ncf", "logpdf", "x n m nc",
    {
        "x": lambda g, x, n, m, nc, y: g * _ncf_slope(x, n, m, nc, y),
        "nc": lambda g, x, n, m, nc, y: 0.5 * g * (_more_of_ncf(x, n, m, nc, y) - 1.0),
    },
    "the logarithm of the noncentral F density",
)  # fmt: skip


def _ncf(method: str, sense: float, doc: str) -> Any:
    def by_noncentrality(g: Array, x: Array, n: Array, m: Array, nc: Array, y: Array) -> Array:
        return 0.5 * g * (share(n / (n + 2.0) * x, n + 2.0, m, nc) - y)

    share = of_scipy_stats(
        "ncf", method, "x n m nc",
        {
            "x": lambda g, x, n, m, nc: sense * g * exp(log_ncf_density(x, n, m, nc)),
            "nc": by_noncentrality,
        },
        doc,
    )  # fmt: skip
    return share


ncf_cdf = _ncf("cdf", 1.0, "the noncentral F distribution function")
ncf_sf = _ncf("sf", -1.0, "1 - ncf_cdf, exact in the tail")

# --- t --------------------------------------------------------------------------------------------------


def _log_chi_constant(df: Array) -> Array:
    return 0.5 * df * log(0.5 * df) - lgamma(0.5 * df)


def _mean_of_power(t: Array, df: Array, nc: Array, more: int) -> Array:
    """The logarithm of the mean of s**(1 + more) phi(t s - nc): a density of more degrees of freedom."""
    last = df + float(more)
    factor = _log_chi_constant(df) - _log_chi_constant(last) + 0.5 * (last + 1.0) * log(last / df)
    return factor + log_nct_density(t * (last / df) ** 0.5, last, nc)


def _nct_slope(t: Array, df: Array, nc: Array, y: Array) -> Array:
    second, third = (exp(_mean_of_power(t, df, nc, more) - y) for more in (1, 2))
    return nc * second - t * third


log_nct_density = of_scipy_stats(
    "nct", "logpdf", "t df nc",
    {
        "t": lambda g, t, df, nc, y: g * _nct_slope(t, df, nc, y),
        "nc": lambda g, t, df, nc, y: g * (t * exp(_mean_of_power(t, df, nc, 1) - y) - nc),
    },
    "the logarithm of the noncentral t density",
)  # fmt: skip


def _nct_by_noncentrality(t: Array, df: Array, nc: Array) -> Array:
    """Of the distribution function: the mean of -phi(t s - nc), by parts that of s and s**2 times it."""
    density = exp(log_nct_density(t, df, nc))
    return nc * t / df * density - (1.0 + t * t / df) * exp(_mean_of_power(t, df, nc, 1))


def _nct(method: str, sense: float, doc: str) -> Any:
    return of_scipy_stats(
        "nct", method, "t df nc",
        {
            "t": lambda g, t, df, nc: sense * g * exp(log_nct_density(t, df, nc)),
            "nc": lambda g, t, df, nc: sense * g * _nct_by_noncentrality(t, df, nc),
        },
        doc,
    )  # fmt: skip


nct_cdf = _nct("cdf", 1.0, "the noncentral t distribution function")
nct_sf = _nct("sf", -1.0, "1 - nct_cdf, exact in the tail")
