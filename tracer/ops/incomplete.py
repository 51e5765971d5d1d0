"""Incomplete gamma and beta functions and their inverses, with derivatives by all parameters; Student's
distribution.

For a density p of t with the score s = d log p / da, the derivative by a of the integral of p s**k over t < x
is that of p s**(k + 1) + k p s**(k - 1) ds/da. So the moments of the score are operators whose rules read
their neighbours, to any order (`score_moments` computes them; compare Boik and Robison-Cox, Derivatives of
the incomplete beta function, Journal of Statistical Software 3, 1998). Functions: NIST Digital Library of
Mathematical Functions (dlmf.nist.gov), 8.2 and 8.17.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..operator import Array, Operator
from ..score_moments import beta_moment, gamma_moment
from .elementwise import equal, exp, log, log1p, logical_and, where
from .gamma_ratios import log_beta, log_power_over_gamma
from .special import digamma, eager, lgamma, of_scipy, trigamma


def product_with_log(factor: Array, x: Array) -> Array:
    """factor * log(x), and 0 where the factor is, with the derivative log(x) by the factor there as well."""
    return factor * log(where(logical_and(equal(factor, 0.0), equal(x, 0.0)), 1.0, x))


def _power(x: Array, exponent: int) -> Array:
    """Of an integer; of order 0 it is 1, also at infinity."""
    found: Array = 1.0
    for _ in range(exponent):
        found = found * x
    return found


def _moment(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Of arrays that are broadcast, in double precision."""

    def of_arrays(*arrays: Any, **attributes: Any) -> np.ndarray:
        wide = np.broadcast_arrays(*(np.asarray(one, np.float64) for one in arrays))
        flat = [np.ascontiguousarray(one).reshape(-1) for one in wide]
        return function(*flat, **attributes).reshape(wide[0].shape)

    return of_arrays


# --- gamma ----------------------------------------------------------------------------------------------


def gamma_density(a: Array, x: Array) -> Array:
    at_zero = equal(x, 0.0)
    positive = where(at_zero, 1.0, x)
    inside = exp(log_power_over_gamma(a, positive) - log(positive))
    at_end = exp(product_with_log(a - 1.0, where(at_zero, x, 1.0)) - lgamma(a))
    return where(at_zero, at_end, inside)


igamma = of_scipy(
    "igamma", "a x", function="gammainc", domain=(0.3, 3.0),
    vjp={
        "a": lambda g, a, x: g * gamma_moment_below(a, x, order=1),
        "x": lambda g, a, x: g * gamma_density(a, x),
    },
    torch="igamma special.igamma special.gammainc", scipy="gammainc",
    example=("tensor([1.0]), tensor([0.0])", "tensor([0.])"),
    doc="the lower incomplete gamma function over gamma(a)",
)  # fmt: skip
igammac = of_scipy(
    "igammac", "a x", function="gammaincc", domain=(0.3, 3.0),
    vjp={
        "a": lambda g, a, x: g * gamma_moment_above(a, x, order=1),
        "x": lambda g, a, x: -g * gamma_density(a, x),
    },
    torch="igammac special.igammac special.gammaincc", scipy="gammaincc",
    example=("tensor([1.0]), tensor([0.0])", "tensor([1.])"),
    doc="the upper incomplete gamma function over gamma(a)",
)  # fmt: skip


def _gamma_moment(name: str, whole: Operator, sense: float, side: str) -> Operator:
    """The mean of score**order for gamma variables on one side of x; of order 0 it is `whole`."""

    def by_shape(g: Array, a: Array, x: Array, order: int) -> Array:
        before = whole(a, x) if order == 1 else moment(a, x, order=order - 1)
        return g * (moment(a, x, order=order + 1) - order * trigamma(a) * before)

    def by_limit(g: Array, a: Array, x: Array, order: int) -> Array:
        return (sense * g) * gamma_density(a, x) * _power(log(x) - digamma(a), order)

    moment = eager(
        name, "a x", numpy=_moment(lambda a, x, order: gamma_moment(a, x, order, sense < 0)),
        vjp={"a": by_shape, "x": by_limit}, domain=(0.3, 3.0),
        doc=f"the mean of (log t - digamma(a))**order where t is {side} x, of gamma variables t",
    )  # fmt: skip
    return moment


gamma_moment_below = _gamma_moment("gamma_moment_below", igamma, 1.0, "below")
gamma_moment_above = _gamma_moment("gamma_moment_above", igammac, -1.0, "above")

gammaincinv = eager(
    "gammaincinv", "a p", numpy="gammaincinv", scipy="gammaincinv", domain=(0.2, 0.9),
    vjp={
        "a": lambda g, a, y: -g * gamma_moment_below(a, y, order=1) / gamma_density(a, y),
        "p": lambda g, a, y: g / gamma_density(a, y),
    },
    doc="the x with gammainc(a, x) = p",
)  # fmt: skip
gammainccinv = eager(
    "gammainccinv", "a p", numpy="gammainccinv", scipy="gammainccinv", domain=(0.2, 0.9),
    vjp={
        "a": lambda g, a, y: g * gamma_moment_above(a, y, order=1) / gamma_density(a, y),
        "p": lambda g, a, y: -g / gamma_density(a, y),
    },
    doc="the x with gammaincc(a, x) = p",
)  # fmt: skip

# --- beta -----------------------------------------------------------------------------------------------


def beta_density(a: Array, b: Array, x: Array) -> Array:
    shares = product_with_log(a - 1.0, x) + product_with_log(b - 1.0, 1.0 - x)
    return exp(shares - log_beta(a, b))


betainc = eager(
    "betainc", "a b x", numpy="betainc", scipy="betainc btdtr", domain=(0.2, 0.9),
    vjp={
        "a": lambda g, a, b, x: g * beta_moment_below(a, b, x, of_a=1, of_b=0),
        "b": lambda g, a, b, x: g * beta_moment_below(a, b, x, of_a=0, of_b=1),
        "x": lambda g, a, b, x: g * beta_density(a, b, x),
    },
    doc="the incomplete beta function over beta(a, b)",
)  # fmt: skip
betaincc = eager(
    "betaincc", "a b x", numpy="betaincc", scipy="betaincc", domain=(0.2, 0.9),
    vjp={
        "a": lambda g, a, b, x: g * beta_moment_above(a, b, x, of_a=1, of_b=0),
        "b": lambda g, a, b, x: g * beta_moment_above(a, b, x, of_a=0, of_b=1),
        "x": lambda g, a, b, x: -g * beta_density(a, b, x),
    },
    doc="1 - betainc(a, b, x), exact in the tail",
)  # fmt: skip


def _beta_moment(name: str, whole: Operator, sense: float, side: str) -> Operator:
    """The mean of powers of both scores for beta variables on one side of x; of orders 0 it is `whole`."""

    def mean(a: Array, b: Array, x: Array, of_a: int, of_b: int) -> Array:
        return moment(a, b, x, of_a=of_a, of_b=of_b) if of_a or of_b else whole(a, b, x)

    def by_shape(other: int) -> Callable[..., Array]:
        """The rule for a (`other` 0) or b (1): the mean of another power, and of the scores' slopes."""

        def rule(g: Array, a: Array, b: Array, x: Array, of_a: int, of_b: int) -> Array:
            total = mean(a, b, x, of_a + 1 - other, of_b + other)
            of_both = trigamma(a + b)
            if of_a:
                slope = of_both if other else of_both - trigamma(a)
                total = total + of_a * slope * mean(a, b, x, of_a - 1, of_b)
            if of_b:
                slope = of_both - trigamma(b) if other else of_both
                total = total + of_b * slope * mean(a, b, x, of_a, of_b - 1)
            return g * total

        return rule

    def by_limit(g: Array, a: Array, b: Array, x: Array, of_a: int, of_b: int) -> Array:
        of_both = digamma(a + b)
        first, second = log(x) - digamma(a) + of_both, log1p(-x) - digamma(b) + of_both
        return (sense * g) * beta_density(a, b, x) * _power(first, of_a) * _power(second, of_b)

    def value(a: np.ndarray, b: np.ndarray, x: np.ndarray, of_a: int, of_b: int) -> np.ndarray:
        return beta_moment(a, b, x, of_a, of_b, sense < 0)

    moment = eager(
        name, "a b x", numpy=_moment(value), domain=(0.2, 0.9),
        vjp={"a": by_shape(0), "b": by_shape(1), "x": by_limit},
        doc=f"the mean of powers of both scores where t is {side} x, of beta variables t",
    )  # fmt: skip
    return moment


beta_moment_below = _beta_moment("beta_moment_below", betainc, 1.0, "below")
beta_moment_above = _beta_moment("beta_moment_above", betaincc, -1.0, "above")
betaincinv = eager(
    "betaincinv", "a b p", numpy="betaincinv", scipy="betaincinv btdtri", domain=(0.2, 0.9),
    vjp={
        "a": lambda g, a, b, y: -g * beta_moment_below(a, b, y, of_a=1, of_b=0) / beta_density(a, b, y),
        "b": lambda g, a, b, y: -g * beta_moment_below(a, b, y, of_a=0, of_b=1) / beta_density(a, b, y),
        "p": lambda g, a, b, y: g / beta_density(a, b, y),
    },
    doc="the x with betainc(a, b, x) = p",
)  # fmt: skip
betainccinv = eager(
    "betainccinv", "a b p", numpy="betainccinv", scipy="betainccinv", domain=(0.2, 0.9),
    vjp={
        "a": lambda g, a, b, y: -g * beta_moment_below(a, b, y, of_a=1, of_b=0) / beta_density(a, b, y),
        "b": lambda g, a, b, y: -g * beta_moment_below(a, b, y, of_a=0, of_b=1) / beta_density(a, b, y),
        "p": lambda g, a, b, y: -g / beta_density(a, b, y),
    },
    doc="the x with betaincc(a, b, x) = p",
)  # fmt: skip

# --- Student's distribution -----------------------------------------------------------------------------


def student_density(df: Array, t: Array) -> Array:
    return exp(-log_beta(0.5 * df, 0.5) - 0.5 * log(df) - 0.5 * (df + 1.0) * log1p(t * t / df))


def _student_moment_by_degrees(g: Array, df: Array, t: Array, order: int) -> Array:
    """Through the shape a = df / 2, as of beta variables, and through the limit, where t is divided out."""
    a = 0.5 * df
    total = student_moment(df, t, order=order + 1)
    if order:
        slope = trigamma(a + 0.5) - trigamma(a)
        total = total + order * slope * student_moment(df, t, order=order - 1)
    return g * (0.5 * total + student_density(df, t) * _power(_student_score(df, t), order) * t / df)


def _student_score(df: Array, t: Array) -> Array:
    return digamma(0.5 * (df + 1.0)) - digamma(0.5 * df) - log1p(t * t / df)


@_moment
def _student_moment(df: np.ndarray, t: np.ndarray, order: int) -> np.ndarray:
    """By whichever of the beta variable and 1 minus it is the lesser."""
    half, square = np.full_like(df, 0.5), t * t
    below = beta_moment(0.5 * df, half, df / (df + square), order, 0)
    above = beta_moment(half, 0.5 * df, square / (df + square), 0, order, upper=True)
    return np.sign(t) * np.where(square > df, below, above)


student_moment = eager(
    "student_moment", "df t", numpy=_student_moment, domain=(0.5, 3.0),
    vjp={
        "df": _student_moment_by_degrees,
        "t": lambda g, df, t, order: -2.0 * g * student_density(df, t) * _power(_student_score(df, t), order),
    },
    doc="the mean of score**order, of the shape df / 2, below df / (df + t * t), of beta variables; odd in t",
)  # fmt: skip


def _student_by_degrees(df: Array, t: Array) -> Array:
    """It depends on df through the incomplete beta function's shape, and through t / sqrt(df)."""
    return -0.25 * student_moment(df, t, order=1) - 0.5 * t * student_density(df, t) / df


stdtr = eager(
    "stdtr", "df t", numpy="stdtr", scipy="stdtr", domain=(0.5, 3.0),
    vjp={
        "df": lambda g, df, t: g * _student_by_degrees(df, t),
        "t": lambda g, df, t: g * student_density(df, t),
    },
    doc="Student's distribution function",
)  # fmt: skip
stdtrit = eager(
    "stdtrit", "df p", numpy="stdtrit", scipy="stdtrit", domain=(0.55, 0.95),
    vjp={
        "df": lambda g, df, y: -g * _student_by_degrees(df, y) / student_density(df, y),
        "p": lambda g, df, y: g / student_density(df, y),
    },
    doc="the quantile of Student's distribution",
)  # fmt: skip
