"""The distributions of integers of `scipy.stats` that Tensors have, with SciPy's parameters.

Formulas: Johnson, Kemp, Kotz, Univariate Discrete Distributions, 3rd edition (2005).
"""

from __future__ import annotations

import math
from typing import Any

from .declaration import Declaration, Function
from .elements import (
    LOG_2,
    abs_,
    betabinom_cdf,
    betainc,
    betaincc,
    betaln,
    exp,
    expm1,
    gammainc,
    gammaincc,
    hurwitz,
    hypergeom_cdf,
    hypergeom_sf,
    lgamma,
    log,
    log1p,
    log_betainc,
    log_betaincc,
    log_gammainc,
    log_gammaincc,
    log_ncx2_density,
    logser_cdf,
    logser_sf,
    ncx2_cdf,
    ncx2_sf,
    sinh,
    softplus,
    tanh,
    where,
    xlog1py,
    xlogy,
)  # fmt: skip


def _of_integers(log_probability: Function, **fields: Any) -> Declaration:
    defaults = {"support": (0.0, math.inf), "inside": 0.0}
    return Declaration(log_probability, of_integers=True, **{**defaults, **fields})


def _is_probability(p: Any) -> list[Any]:
    return [p >= 0.0, p <= 1.0]


def _binomial(k: Any, n: Any, p: Any) -> Any:
    ways = -betaln(k + 1.0, n - k + 1.0) - log(n + 1.0)
    return ways + xlogy(k, p) + xlog1py(n - k, -p)


def _binomial_survival(k: Any, n: Any, p: Any) -> Any:
    """Above n there is nothing."""
    is_last = k >= n
    return where(is_last, 0.0, betainc(k + 1.0, where(is_last, 1.0, n - k), p))


def _binomial_cumulative(k: Any, n: Any, p: Any) -> Any:
    is_last = k >= n
    return where(is_last, 1.0, betaincc(k + 1.0, where(is_last, 1.0, n - k), p))


def _binomial_log_survival(k: Any, n: Any, p: Any) -> Any:
    is_last = k >= n
    return where(is_last, -math.inf, log_betainc(k + 1.0, where(is_last, 1.0, n - k), p))


def _binomial_log_cumulative(k: Any, n: Any, p: Any) -> Any:
    is_last = k >= n
    return where(is_last, 0.0, log_betaincc(k + 1.0, where(is_last, 1.0, n - k), p))


def _beta_binomial(k: Any, n: Any, a: Any, b: Any) -> Any:
    return betaln(k + a, n - k + b) - log(n + 1.0) - betaln(n - k + 1.0, k + 1.0) - betaln(a, b)


def _hypergeometric(k: Any, total: Any, good: Any, drawn: Any) -> Any:
    bad = total - good
    ways = betaln(good + 1.0, 1.0) + betaln(bad + 1.0, 1.0) + betaln(total - drawn + 1.0, drawn + 1.0)
    chosen = betaln(k + 1.0, good - k + 1.0) + betaln(drawn - k + 1.0, bad - drawn + k + 1.0)
    return ways - chosen - betaln(total + 1.0, 1.0)


def _zipf_survival(k: Any, a: Any) -> Any:
    """By Hurwitz' zeta function."""
    return hurwitz(a, k + 1.0) / hurwitz(a, 1.0)


def _log_two_sided(k: Any, rate: Any) -> Any:
    """The logarithm of the probability up to k of variables that decay on both sides."""
    is_right = k >= 0.0
    right, left = where(is_right, k, 0.0), where(is_right, -1.0, k)
    rest = -softplus(rate)
    return where(is_right, log1p(-exp(rest - rate * right)), rest + rate * (left + 1.0))


def _skellam(k: Any, first: Any, second: Any) -> Any:
    """Of the difference of two Poisson variables, by the noncentral chi-square density."""
    is_left = k < 0.0
    size = where(is_left, -k, k)
    place, other = where(is_left, second, first), where(is_left, first, second)
    return LOG_2 + log_ncx2_density(2.0 * place, 2.0 * (size + 1.0), 2.0 * other)


def _skellam_cumulative(k: Any, first: Any, second: Any) -> Any:
    is_left = k < 0.0
    size, rest = where(is_left, -k, 1.0), where(is_left, 0.0, k) + 1.0
    left = ncx2_cdf(2.0 * second, 2.0 * size, 2.0 * first)
    return where(is_left, left, ncx2_sf(2.0 * first, 2.0 * rest, 2.0 * second))


def _skellam_survival(k: Any, first: Any, second: Any) -> Any:
    return _skellam_cumulative(-k - 1.0, second, first)


def _larger(a: Any, b: Any) -> Any:
    return where(a > b, a, b)


DISCRETE: dict[str, Declaration] = {
    "poisson": _of_integers(
        lambda k, mu: xlogy(k, mu) - lgamma(k + 1.0) - mu,
        cumulative=lambda k, mu: gammaincc(k + 1.0, mu),
        survival=lambda k, mu: gammainc(k + 1.0, mu),
        log_cumulative=lambda k, mu: log_gammaincc(k + 1.0, mu),
        log_survival=lambda k, mu: log_gammainc(k + 1.0, mu),
        valid=lambda mu: [mu >= 0.0],
        mean=lambda mu: mu,
        variance=lambda mu: mu,
    ),
    "binom": _of_integers(
        _binomial,
        cumulative=_binomial_cumulative,
        survival=_binomial_survival,
        log_cumulative=_binomial_log_cumulative,
        log_survival=_binomial_log_survival,
        support=(0.0, lambda n, p: n),
        valid=lambda n, p: [n >= 0.0, *_is_probability(p)],
        mean=lambda n, p: n * p,
        variance=lambda n, p: n * p * (1.0 - p),
    ),
    "bernoulli": _of_integers(
        lambda k, p: xlogy(k, p) + xlog1py(1.0 - k, -p),
        cumulative=lambda k, p: where(k >= 1.0, 1.0, 1.0 - p),
        survival=lambda k, p: where(k >= 1.0, 0.0, p),
        support=(0.0, 1.0),
        valid=_is_probability,
        mean=lambda p: p,
        variance=lambda p: p * (1.0 - p),
        entropy=lambda p: -xlogy(p, p) - xlogy(1.0 - p, 1.0 - p),
    ),
    "geom": _of_integers(
        lambda k, p: xlog1py(k - 1.0, -p) + log(p),
        log_survival=lambda k, p: xlog1py(k, -p),
        support=(1.0, math.inf),
        valid=lambda p: [p > 0.0, p <= 1.0],
        inside=1.0,
        mean=lambda p: 1.0 / p,
        variance=lambda p: (1.0 - p) / (p * p),
    ),
    "nbinom": _of_integers(
        lambda k, n, p: n * log(p) - betaln(n, k + 1.0) - log(n + k) + xlog1py(k, -p),
        cumulative=lambda k, n, p: betainc(n, k + 1.0, p),
        survival=lambda k, n, p: betaincc(n, k + 1.0, p),
        log_cumulative=lambda k, n, p: log_betainc(n, k + 1.0, p),
        log_survival=lambda k, n, p: log_betaincc(n, k + 1.0, p),
        valid=lambda n, p: [n > 0.0, p > 0.0, p <= 1.0],
        mean=lambda n, p: n * (1.0 - p) / p,
        variance=lambda n, p: n * (1.0 - p) / (p * p),
    ),
    "betabinom": _of_integers(
        _beta_binomial,
        cumulative=betabinom_cdf,
        support=(0.0, lambda n, a, b: n),
        valid=lambda n, a, b: [n >= 0.0, a > 0.0, b > 0.0],
        mean=lambda n, a, b: n * a / (a + b),
        variance=lambda n, a, b: n * a * b * (a + b + n) / ((a + b) ** 2 * (a + b + 1.0)),
    ),
    "hypergeom": _of_integers(
        _hypergeometric,
        cumulative=hypergeom_cdf,
        survival=hypergeom_sf,
        support=(
            lambda total, good, drawn: _larger(drawn - total + good, 0.0),
            lambda total, good, drawn: where(good < drawn, good, drawn),
        ),
        valid=lambda total, good, drawn: [good >= 0.0, drawn >= 0.0, good <= total, drawn <= total],
        inside=lambda total, good, drawn: _larger(drawn - total + good, 0.0),
        mean=lambda total, good, drawn: drawn * good / total,
        variance=lambda total, good, drawn: (
            drawn * good * (total - good) * (total - drawn) / (total * total * (total - 1.0))
        ),
    ),
    "logser": _of_integers(
        lambda k, p: k * log(p) - log(k) - log(-log1p(-p)),
        cumulative=logser_cdf,
        survival=logser_sf,
        support=(1.0, math.inf),
        valid=lambda p: [p > 0.0, p < 1.0],
        inside=1.0,
        mean=lambda p: -p / ((1.0 - p) * log1p(-p)),
        variance=lambda p: -p * (log1p(-p) + p) / ((1.0 - p) * log1p(-p)) ** 2,
    ),
    "zipf": _of_integers(
        lambda k, a: -a * log(k) - log(hurwitz(a, 1.0)),
        survival=_zipf_survival,
        support=(1.0, math.inf),
        valid=lambda a: [a > 1.0],
        inside=1.0,
    ),
    "yulesimon": _of_integers(
        lambda k, a: log(a) + betaln(k, a + 1.0),
        log_survival=lambda k, a: log(k) + betaln(k, a + 1.0),
        support=(1.0, math.inf),
        inside=1.0,
    ),
    "dlaplace": _of_integers(
        lambda k, a: log(tanh(0.5 * a)) - a * abs_(k),
        log_cumulative=_log_two_sided,
        log_survival=lambda k, a: _log_two_sided(-k - 1.0, a),
        support=(-math.inf, math.inf),
        mean=lambda a: 0.0 * a,
        variance=lambda a: 0.5 / sinh(0.5 * a) ** 2,
        entropy=lambda a: a / sinh(a) - log(tanh(0.5 * a)),
    ),
    "betanbinom": _of_integers(
        lambda k, n, a, b: -log(n + k) - betaln(n, k + 1.0) + betaln(a + n, b + k) - betaln(a, b),
        valid=lambda n, a, b: [n >= 0.0, a > 0.0, b > 0.0],
    ),
    "skellam": _of_integers(
        _skellam,
        cumulative=_skellam_cumulative,
        survival=_skellam_survival,
        support=(-math.inf, math.inf),
        mean=lambda first, second: first - second,
        variance=lambda first, second: first + second,
    ),
    "planck": _of_integers(
        lambda k, rate: log(-expm1(-rate)) - rate * k,
        log_survival=lambda k, rate: -rate * (k + 1.0),
        mean=lambda rate: 1.0 / expm1(rate),
        variance=lambda rate: exp(-rate) / expm1(-rate) ** 2,
        entropy=lambda rate: rate / expm1(rate) - log(-expm1(-rate)),
    ),
}
"""By SciPy's name."""
