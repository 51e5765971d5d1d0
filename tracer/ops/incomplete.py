"""Incomplete gamma and beta functions and their inverses, with derivatives by all parameters; Student's
distribution.

Their derivatives by a shape, of each order, are operators, whose rules read those of the next order:
integrals of a density's derivatives (`score_moments`; compare Boik and Robison-Cox, Derivatives of the
incomplete beta function, Journal of Statistical Software 3, 1998). Logarithms have operators of their own,
with derivatives relative to the function, which go on where that is less than the least number (`log_tails`).
Functions: NIST Digital Library of Mathematical Functions (dlmf.nist.gov), 8.2 and 8.17.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..log_tails import log_betainc as _log_betainc
from ..log_tails import log_gammainc as _log_gammainc
from ..operator import Array, Operator
from ..score_moments import beta_log_slope, beta_slope, density_slope, gamma_log_slope, gamma_slope
from .elementwise import equal, exp, log, log1p, logical_and, logical_or, where
from .gamma_ratios import log_beta, log_power_over_gamma
from .special import digamma, eager, lgamma, of_scipy, trigamma
from .special import polygamma as polygamma_of


def product_with_log(factor: Array, x: Array) -> Array:
    """factor * log(x), and 0 where the factor is, with the derivative log(x) by the factor there as well."""
    return factor * log(where(logical_and(equal(factor, 0.0), equal(x, 0.0)), 1.0, x))


def _polygamma(order: int, x: Array) -> Array:
    return trigamma(x) if order == 1 else polygamma_of(x, n=order)


def _over_density(slope: Array, log_density: Array) -> Array:
    """By the inverse function's theorem; 0 where nothing changes, also where no density is left."""
    at_end = equal(slope, 0.0)
    return where(at_end, 0.0, slope * exp(-where(at_end, 0.0, log_density)))


def _wide(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """Of arrays that are broadcast, in double precision."""

    def of_arrays(*arrays: Any, **attributes: Any) -> np.ndarray:
        wide = np.broadcast_arrays(*(np.asarray(one, np.float64) for one in arrays))
        flat = [np.ascontiguousarray(one).reshape(-1) for one in wide]
        return function(*flat, **attributes).reshape(wide[0].shape)

    return of_arrays


# --- gamma ----------------------------------------------------------------------------------------------


def log_gamma_density(a: Array, x: Array) -> Array:
    at_zero = equal(x, 0.0)
    at_end = logical_or(at_zero, equal(x, math.inf))
    positive = where(at_end, 1.0, x)
    inside = log_power_over_gamma(a, positive) - log(positive)
    at_zero_itself = product_with_log(a - 1.0, where(at_zero, x, 1.0)) - lgamma(a)
    return where(at_end, where(at_zero, at_zero_itself, -math.inf), inside)


def gamma_density(a: Array, x: Array) -> Array:
    return exp(log_gamma_density(a, x))


def _gamma_slope_of_density(a: Array, x: Array, order: int) -> Array:
    """The derivative of the density by a, over the density."""
    return density_slope(gamma_log_slope(log(x) - digamma(a), a, _polygamma), order)


igamma = of_scipy(
    "igamma", "a x", function="gammainc", domain=(0.3, 3.0),
    vjp={
        "a": lambda g, a, x: g * gamma_slope_below(a, x, order=1),
        "x": lambda g, a, x: g * gamma_density(a, x),
    },
    torch="igamma special.igamma special.gammainc", scipy="gammainc",
    example=("tensor([1.0]), tensor([0.0])", "tensor([0.])"),
    doc="the lower incomplete gamma function over gamma(a) (DLMF 8.2.4)",
)  # fmt: skip
igammac = of_scipy(
    "igammac", "a x", function="gammaincc", domain=(0.3, 3.0),
    vjp={
        "a": lambda g, a, x: g * gamma_slope_above(a, x, order=1),
        "x": lambda g, a, x: -g * gamma_density(a, x),
    },
    torch="igammac special.igammac special.gammaincc", scipy="gammaincc",
    example=("tensor([1.0]), tensor([0.0])", "tensor([1.])"),
    doc="the upper incomplete gamma function over gamma(a) (DLMF 8.2.4)",
)  # fmt: skip


def _gamma_slope(name: str, sense: float, side: str) -> Operator:
    """The derivative by a of the share of gamma variables on one side of x, of order 1 or more."""

    def by_limit(g: Array, a: Array, x: Array, order: int) -> Array:
        return (sense * g) * gamma_density(a, x) * _gamma_slope_of_density(a, x, order)

    slope = eager(
        name, "a x", numpy=_wide(lambda a, x, order: gamma_slope(a, x, order, sense < 0)),
        vjp={"a": lambda g, a, x, order: g * slope(a, x, order=order + 1), "x": by_limit},
        domain=(0.3, 3.0), doc=f"the derivative by a of the share of gamma variables {side} x",
    )  # fmt: skip
    return slope


gamma_slope_below = _gamma_slope("gamma_slope_below", 1.0, "below")
gamma_slope_above = _gamma_slope("gamma_slope_above", -1.0, "above")


def _log_of_gamma(name: str, sense: float, side: str) -> tuple[Operator, Operator]:
    """The logarithm of the share of gamma variables on one side of x; the share's derivatives over it."""

    def rate(a: Array, x: Array) -> Array:
        return sense * exp(log_gamma_density(a, x) - logarithm(a, x))

    def by_shape(g: Array, a: Array, x: Array, y: Array, order: int) -> Array:
        first = y if order == 1 else relative(a, x, order=1)
        return g * (relative(a, x, order=order + 1) - y * first)

    def by_limit(g: Array, a: Array, x: Array, y: Array, order: int) -> Array:
        return g * rate(a, x) * (_gamma_slope_of_density(a, x, order) - y)

    logarithm = eager(
        f"log_{name}", "a x", numpy=_wide(lambda a, x: _log_gammainc(a, x, sense < 0)), domain=(0.3, 3.0),
        vjp={
            "a": lambda g, a, x: g * relative(a, x, order=1),
            "x": lambda g, a, x, y: (sense * g) * exp(log_gamma_density(a, x) - y),
        },
        doc=f"the logarithm of {name}, also where that is less than the least number",
    )  # fmt: skip
    relative = eager(
        f"relative_gamma_slope_{side}", "a x", domain=(0.3, 3.0),
        numpy=_wide(lambda a, x, order: gamma_slope(a, x, order, sense < 0, relative=True)),
        vjp={"a": by_shape, "x": by_limit}, doc=f"`gamma_slope_{side}` over {name}",
    )  # fmt: skip
    return logarithm, relative


log_gammainc, relative_gamma_slope_below = _log_of_gamma("gammainc", 1.0, "below")
log_gammaincc, relative_gamma_slope_above = _log_of_gamma("gammaincc", -1.0, "above")


def _gamma_inverse(name: str, slope: Operator, sense: float, function: str) -> Operator:
    return eager(
        name, "a p", numpy=name, scipy=name, domain=(0.2, 0.9),
        vjp={
            "a": lambda g, a, y: -sense * g * _over_density(slope(a, y, order=1), log_gamma_density(a, y)),
            "p": lambda g, a, y: sense * g * exp(-log_gamma_density(a, y)),
        },
        doc=f"the x with {function}(a, x) = p",
    )  # fmt: skip


gammaincinv = _gamma_inverse("gammaincinv", gamma_slope_below, 1.0, "gammainc")
gammainccinv = _gamma_inverse("gammainccinv", gamma_slope_above, -1.0, "gammaincc")

# --- beta -----------------------------------------------------------------------------------------------


def log_beta_density(a: Array, b: Array, x: Array) -> Array:
    shares = product_with_log(a - 1.0, x) + product_with_log(b - 1.0, 1.0 - x)
    return shares - log_beta(a, b)


def beta_density(a: Array, b: Array, x: Array) -> Array:
    return exp(log_beta_density(a, b, x))


def _beta_slope_of_density(a: Array, b: Array, x: Array, of_a: int, of_b: int) -> Array:
    """The derivative of the density by a and b, over the density."""
    of_both = digamma(a + b)
    scores = log(x) - digamma(a) + of_both, log1p(-x) - digamma(b) + of_both
    return density_slope(beta_log_slope(*scores, a, b, _polygamma), of_a, of_b)


betainc = eager(
    "betainc", "a b x", numpy="betainc", scipy="betainc btdtr", domain=(0.2, 0.9),
    vjp={
        "a": lambda g, a, b, x: g * beta_slope_below(a, b, x, of_a=1, of_b=0),
        "b": lambda g, a, b, x: g * beta_slope_below(a, b, x, of_a=0, of_b=1),
        "x": lambda g, a, b, x: g * beta_density(a, b, x),
    },
    doc="the incomplete beta function over beta(a, b)",
)  # fmt: skip
betaincc = eager(
    "betaincc", "a b x", numpy="betaincc", scipy="betaincc", domain=(0.2, 0.9),
    vjp={
        "a": lambda g, a, b, x: g * beta_slope_above(a, b, x, of_a=1, of_b=0),
        "b": lambda g, a, b, x: g * beta_slope_above(a, b, x, of_a=0, of_b=1),
        "x": lambda g, a, b, x: -g * beta_density(a, b, x),
    },
    doc="1 - betainc(a, b, x), exact in the tail",
)  # fmt: skip


def _beta_slope(name: str, sense: float, side: str) -> Operator:
    """The derivative by a and b of the share of beta variables on one side of x, of order 1 or more."""

    def by_limit(g: Array, a: Array, b: Array, x: Array, of_a: int, of_b: int) -> Array:
        return (sense * g) * beta_density(a, b, x) * _beta_slope_of_density(a, b, x, of_a, of_b)

    def value(a: np.ndarray, b: np.ndarray, x: np.ndarray, of_a: int, of_b: int) -> np.ndarray:
        return beta_slope(a, b, x, of_a, of_b, sense < 0)

    slope = eager(
        name, "a b x", numpy=_wide(value), domain=(0.2, 0.9),
        vjp={
            "a": lambda g, a, b, x, of_a, of_b: g * slope(a, b, x, of_a=of_a + 1, of_b=of_b),
            "b": lambda g, a, b, x, of_a, of_b: g * slope(a, b, x, of_a=of_a, of_b=of_b + 1),
            "x": by_limit,
        },
        doc=f"the derivative by a and b of the share of beta variables {side} x",
    )  # fmt: skip
    return slope


beta_slope_below = _beta_slope("beta_slope_below", 1.0, "below")
beta_slope_above = _beta_slope("beta_slope_above", -1.0, "above")


def _log_of_beta(name: str, sense: float, side: str) -> tuple[Operator, Operator]:
    """The logarithm of the share of beta variables on one side of x; the share's derivatives over it."""

    def by_shape(which: int) -> Callable[..., Array]:
        def rule(g: Array, a: Array, b: Array, x: Array, y: Array, of_a: int, of_b: int) -> Array:
            further = relative(a, b, x, of_a=of_a + 1 - which, of_b=of_b + which)
            return g * (further - y * relative(a, b, x, of_a=1 - which, of_b=which))

        return rule

    def by_limit(g: Array, a: Array, b: Array, x: Array, y: Array, of_a: int, of_b: int) -> Array:
        rate = sense * exp(log_beta_density(a, b, x) - logarithm(a, b, x))
        return g * rate * (_beta_slope_of_density(a, b, x, of_a, of_b) - y)

    def value(a: np.ndarray, b: np.ndarray, x: np.ndarray, of_a: int, of_b: int) -> np.ndarray:
        return beta_slope(a, b, x, of_a, of_b, sense < 0, relative=True)

    logarithm = eager(
        f"log_{name}", "a b x", numpy=_wide(lambda a, b, x: _log_betainc(a, b, x, sense < 0)),
        domain=(0.2, 0.9),
        vjp={
            "a": lambda g, a, b, x: g * relative(a, b, x, of_a=1, of_b=0),
            "b": lambda g, a, b, x: g * relative(a, b, x, of_a=0, of_b=1),
            "x": lambda g, a, b, x, y: (sense * g) * exp(log_beta_density(a, b, x) - y),
        },
        doc=f"the logarithm of {name}, also where that is less than the least number",
    )  # fmt: skip
    relative = eager(
        f"relative_beta_slope_{side}", "a b x", numpy=_wide(value), domain=(0.2, 0.9),
        vjp={"a": by_shape(0), "b": by_shape(1), "x": by_limit}, doc=f"`beta_slope_{side}` over {name}",
    )  # fmt: skip
    return logarithm, relative


log_betainc, relative_beta_slope_below = _log_of_beta("betainc", 1.0, "below")
log_betaincc, relative_beta_slope_above = _log_of_beta("betaincc", -1.0, "above")


def _beta_inverse(name: str, also: str, slope: Operator, sense: float, function: str) -> Operator:
    def by_shape(of_a: int, of_b: int) -> Callable[..., Array]:
        def rule(g: Array, a: Array, b: Array, y: Array) -> Array:
            change = slope(a, b, y, of_a=of_a, of_b=of_b)
            return -sense * g * _over_density(change, log_beta_density(a, b, y))

        return rule

    return eager(
        name, "a b p", numpy=name, scipy=f"{name} {also}".strip(), domain=(0.2, 0.9),
        vjp={
            "a": by_shape(1, 0), "b": by_shape(0, 1),
            "p": lambda g, a, b, y: sense * g * exp(-log_beta_density(a, b, y)),
        },
        doc=f"the x with {function}(a, b, x) = p",
    )  # fmt: skip


betaincinv = _beta_inverse("betaincinv", "btdtri", beta_slope_below, 1.0, "betainc")
betainccinv = _beta_inverse("betainccinv", "", beta_slope_above, -1.0, "betaincc")

# --- Student's distribution -----------------------------------------------------------------------------


def _log_student_density(df: Array, t: Array) -> Array:
    return -log_beta(0.5 * df, 0.5) - 0.5 * log(df) - 0.5 * (df + 1.0) * log1p(t * t / df)


def student_density(df: Array, t: Array) -> Array:
    return exp(_log_student_density(df, t))


def _student_slope_of_density(df: Array, t: Array, order: int) -> Array:
    """Of the beta density at df / (df + t * t): its derivative by the shape df / 2, over the density."""
    a = 0.5 * df
    score = digamma(a + 0.5) - digamma(a) - log1p(t * t / df)
    return density_slope(beta_log_slope(score, 0.0, a, 0.5, _polygamma), order)


def _student_slope_by_degrees(g: Array, df: Array, t: Array, order: int) -> Array:
    """Through the shape a = df / 2, as of beta variables, and through the limit, where t is divided out."""
    through_limit = student_density(df, t) * _student_slope_of_density(df, t, order) * t / df
    return g * (0.5 * student_slope(df, t, order=order + 1) + through_limit)


@_wide
def _student_slope(df: np.ndarray, t: np.ndarray, order: int) -> np.ndarray:
    """By whichever of the beta variable and 1 minus it is the lesser."""
    half, square = np.full_like(df, 0.5), t * t
    below = beta_slope(0.5 * df, half, df / (df + square), order, 0)
    above = beta_slope(half, 0.5 * df, square / (df + square), 0, order, upper=True)
    return np.sign(t) * np.where(square > df, below, above)


student_slope = eager(
    "student_slope", "df t", numpy=_student_slope, domain=(0.5, 3.0),
    vjp={
        "df": _student_slope_by_degrees,
        "t": lambda g, df, t, order: (
            -2.0 * g * student_density(df, t) * _student_slope_of_density(df, t, order)
        ),
    },
    doc="the derivative by the shape df / 2 of the share of beta variables below df / (df + t * t); odd in t",
)  # fmt: skip


def _student_by_degrees(df: Array, t: Array) -> Array:
    """It depends on df through the incomplete beta function's shape, and through t / sqrt(df)."""
    return -0.25 * student_slope(df, t, order=1) - 0.5 * t * student_density(df, t) / df


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
        "df": lambda g, df, y: -g * _over_density(_student_by_degrees(df, y), _log_student_density(df, y)),
        "p": lambda g, df, y: g * exp(-_log_student_density(df, y)),
    },
    doc="the quantile of Student's distribution",
)  # fmt: skip
