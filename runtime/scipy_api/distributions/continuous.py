"""The continuous distributions of `scipy.stats` that Tensors have, in standard form and with SciPy's shapes.

Formulas: Johnson, Kotz, Balakrishnan, Continuous Univariate Distributions, 2nd edition (1994, 1995).
"""

from __future__ import annotations

import functools
import math
from typing import Any

from ..special_ufuncs import expm1_over, log1p_over, of_beta_ratio
from .declaration import Declaration
from .elements import (
    LOG_2,
    LOG_2_PI,
    abs_,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    betainc,
    betaincc,
    betainccinv,
    betaincinv,
    betaln,
    digamma,
    erf,
    erfc,
    erfcinv,
    erfcx,
    exp,
    expm1,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    i0e,
    lgamma,
    log,
    log1p,
    log_difference,
    log_less_than,
    log_ndtr,
    log_normal_density,
    log_normal_mass,
    log_sigmoid,
    logaddexp,
    logit,
    ndtr,
    ndtri,
    rice_cdf,
    sigmoid,
    sin,
    sinh,
    skewnorm_cdf,
    skewnorm_sf,
    softplus,
    sqrt,
    stdtr,
    stdtrit,
    tan,
    tanh,
    vonmises_cdf,
    where,
    xlog1py,
    xlogy,
)  # fmt: skip

POSITIVE = (0.0, math.inf)
UNIT = (0.0, 1.0)


def _any(*shapes: Any) -> list[Any]:
    return [one == one for one in shapes]


NORMAL = Declaration(
    log_normal_density, cumulative=ndtr, log_cumulative=log_ndtr, quantile=ndtri, symmetric=True,
    mean=0.0, variance=1.0, entropy=0.5 + 0.5 * LOG_2_PI,
)  # fmt: skip
GAMMA = Declaration(
    lambda z, a: xlogy(a - 1.0, z) - z - lgamma(a),
    cumulative=lambda z, a: gammainc(a, z),
    survival=lambda z, a: gammaincc(a, z),
    quantile=lambda q, a: gammaincinv(a, q),
    upper_quantile=lambda q, a: gammainccinv(a, q),
    support=POSITIVE,
    mean=lambda a: a,
    variance=lambda a: a,
    entropy=lambda a: a + lgamma(a) + (1.0 - a) * digamma(a),
)


EULER = 0.5772156649015329


def _where_above(shape: Any, least: float, moment: Any) -> Any:
    """A moment of shapes above a bound; up to there it is infinite."""
    exists = shape > least
    return where(exists, moment(where(exists, shape, least + 1.0)), math.inf)


def _chi_mean(df: Any) -> Any:
    return math.sqrt(2.0) * exp(lgamma(0.5 * (df + 1.0)) - lgamma(0.5 * df))


def _beta_entropy(a: Any, b: Any) -> Any:
    both = (a + b - 2.0) * digamma(a + b)
    return betaln(a, b) - (a - 1.0) * digamma(a) - (b - 1.0) * digamma(b) + both


def _student(z: Any, df: Any) -> Any:
    return -betaln(0.5 * df, 0.5) - 0.5 * log(df) - (df + 1.0) / 2.0 * log1p(z * z / df)


def _fisher(z: Any, n: Any, m: Any) -> Any:
    logarithms = 0.5 * m * log(m) + 0.5 * n * log(n) + xlogy(0.5 * n - 1.0, z)
    return logarithms - 0.5 * (n + m) * log(m + n * z) - betaln(0.5 * n, 0.5 * m)


def _fisher_cumulative(z: Any, n: Any, m: Any) -> Any:
    return of_beta_ratio(n * z / m, 0.5 * n, 0.5 * m)


def _fisher_survival(z: Any, n: Any, m: Any) -> Any:
    return of_beta_ratio(m / (n * z), 0.5 * m, 0.5 * n)


def _fisher_quantile(share: Any, n: Any, m: Any) -> Any:
    return m * share / (n * (1.0 - share))


def _extreme(z: Any, c: Any) -> Any:
    """log(1 - c z) / c, which is -z for c = 0."""
    return -z * log1p_over(-c * z)


def _pareto(z: Any, c: Any) -> Any:
    """log(1 + c z) / c, which is z for c = 0."""
    return z * log1p_over(c * z)


def _extreme_mean(c: Any) -> Any:
    """(1 - gamma(1 + c)) / c, and near c = 0 its Taylor series."""
    is_small = abs_(c) < 1e-3
    other = where(is_small, 1.0, c)
    return where(is_small, _series(MEAN_SERIES, c), -expm1(lgamma(1.0 + other)) / other)


def _extreme_variance(c: Any) -> Any:
    """(gamma(1 + 2 c) - gamma(1 + c)^2) / c^2, and near c = 0 its Taylor series."""
    is_small = abs_(c) < 1e-3
    other = where(is_small, 1.0, c)
    logarithm = lgamma(1.0 + other)
    apart = exp(2.0 * logarithm) * expm1(lgamma(1.0 + 2.0 * other) - 2.0 * logarithm) / (other * other)
    return where(is_small, _series(VARIANCE_SERIES, c), apart)


MEAN_SERIES = (
    0.57721566490153286,
    -0.98905599532797256,
    0.90747907608088629,
    -0.98172808683440019,
    0.9819950689031452,
    -0.99314911462127619,
)
VARIANCE_SERIES = (
    1.6449340668482264,
    -4.3030772285491516,
    11.718339177218881,
    -26.53141916464012,
    57.676112859609746,
    -120.6254077476928,
)


def _series(coefficients: tuple[float, ...], c: Any) -> Any:
    return functools.reduce(lambda total, one: total * c + one, reversed(coefficients))


def _bound(c: Any, holds: Any) -> Any:
    """1 / c where it holds, else infinity."""
    return where(holds, 1.0 / where(holds, c, 1.0), math.inf)


def _inverse_gauss(z: Any, mu: Any) -> Any:
    return -0.5 * LOG_2_PI - 1.5 * log(z) - 0.5 * z * (1.0 / mu - 1.0 / z) ** 2


def _inverse_gauss_parts(z: Any, mu: Any) -> tuple[Any, Any]:
    """The two arguments of normal distribution functions that its own is made of."""
    root = sqrt(z)
    return (z / mu - 1.0) / root, (z / mu + 1.0) / root


def _inverse_gauss_log_cumulative(z: Any, mu: Any) -> Any:
    below, above = _inverse_gauss_parts(z, mu)
    return logaddexp(log_ndtr(below), 2.0 / mu + log_ndtr(-above))


def _inverse_gauss_log_survival(z: Any, mu: Any) -> Any:
    """On the right both terms are products with exp(-below**2 / 2), and their difference is small."""
    below, above = _inverse_gauss_parts(z, mu)
    is_right = below > 0.0
    near, far = where(is_right, below, 0.0), where(is_right, above, 1.0)
    apart = erfcx(math.sqrt(0.5) * near) - erfcx(math.sqrt(0.5) * far)
    of_left = log_difference(log_ndtr(-where(is_right, -1.0, below)), 2.0 / mu + log_ndtr(-above))
    return where(is_right, log(0.5 * apart) - 0.5 * near * near, of_left)


def _of_normal_cut(z: Any, a: Any, b: Any) -> Any:
    return log_normal_density(z) - log_normal_mass(a, b)


def _log_part_of_cut(part: tuple[Any, Any], rest: tuple[Any, Any], whole: tuple[Any, Any]) -> Any:
    """The logarithm of the part's share, by the rest where that is less."""
    mass, of_part, of_rest = (log_normal_mass(*one) for one in (whole, part, rest))
    is_less = of_part < of_rest
    return where(is_less, of_part - mass, log1p(-exp(where(is_less, -1.0, of_rest - mass))))


def _quantile_of_normal_cut(q: Any, a: Any, b: Any) -> Any:
    """On whichever side of 0 the lower end is."""
    is_right = a > 0.0
    from_left = ndtri(ndtr(where(is_right, 0.0, a)) * (1.0 - q) + ndtr(where(is_right, 0.0, b)) * q)
    from_right = -ndtri(ndtr(where(is_right, -a, 0.0)) * (1.0 - q) + ndtr(where(is_right, -b, 0.0)) * q)
    return where(is_right, from_right, from_left)


def _triangle(z: Any, c: Any) -> Any:
    left = z < c
    return LOG_2 + where(left, log(where(left, z / c, 1.0)), log(where(left, 1.0, (1.0 - z) / (1.0 - c))))


def _triangle_quantile(q: Any, c: Any) -> Any:
    return where(q < c, sqrt(c * q), 1.0 - sqrt((1.0 - c) * (1.0 - q)))


def _laplace_cumulative(z: Any) -> Any:
    is_right = z > 0.0
    return where(is_right, 1.0 - 0.5 * exp(-where(is_right, z, 0.0)), 0.5 * exp(where(is_right, 0.0, z)))


def _laplace_log_cumulative(z: Any) -> Any:
    is_right = z > 0.0
    return where(is_right, log1p(-0.5 * exp(-where(is_right, z, 0.0))), where(is_right, 0.0, z) - LOG_2)


def _laplace_quantile(q: Any) -> Any:
    return where(q > 0.5, -log(2.0 * where(q > 0.5, 1.0 - q, 0.5)), log(2.0 * where(q > 0.5, 0.5, q)))


def _general_gamma(z: Any, a: Any, c: Any) -> Any:
    found = log(abs_(c)) + xlogy(c * a - 1.0, z) - z**c - lgamma(a)
    return where((z > 0.0) | (c > 0.0), found, -math.inf)


def _general_normal_cumulative(z: Any, beta: Any) -> Any:
    """Around 0 a line: there the incomplete function has no slope by the power."""
    is_middle = abs_(z) ** beta < 1e-17
    power = abs_(where(is_middle, 1.0, z)) ** beta
    tail = 0.5 * gammaincc(1.0 / beta, power)
    middle = 0.5 + where(is_middle, z, 0.0) * exp(log(0.5 * beta) - lgamma(1.0 / beta))
    return where(is_middle, middle, where(z > 0.0, 1.0 - tail, tail))


def _exponential_tail(z: Any, k: Any) -> Any:
    """The logarithm of what a normal variable with an exponential one of mean k has less below z."""
    return 0.5 / (k * k) - z / k + log_ndtr(z - 1.0 / k)


def _log_scaled_bessel(x: Any) -> Any:
    """log(exp(-x) I_0(x)) from 0 on, where i0e, which is even, has a bend (DLMF 10.25.2)."""
    at_zero = x <= 0.0
    return where(at_zero, 0.25 * x * x - x, log(i0e(where(at_zero, 1.0, x))))


def _folded_cumulative(z: Any, c: Any) -> Any:
    """Near 0 two terms of its series, as the difference would be of equal numbers."""
    is_near = z * (1.0 + c) < 1e-5
    near, far = where(is_near, z, 0.0), where(is_near, 1.0, z)
    series = 2.0 * near * exp(log_normal_density(c)) * (1.0 + (c * c - 1.0) * near * near / 6.0)
    return where(is_near, series, ndtr(far - c) - ndtr(-far - c))


CONTINUOUS: dict[str, Declaration] = {
    "norm": NORMAL,
    "gamma": GAMMA,
    "erlang": GAMMA,
    "expon": Declaration(
        lambda z: -z,
        log_survival=lambda z: -z,
        cumulative=lambda z: -expm1(-z),
        quantile=lambda q: -log1p(-q),
        upper_quantile=lambda q: -log(q),
        support=POSITIVE,
        mean=1.0,
        variance=1.0,
        entropy=1.0,
    ),
    "beta": Declaration(
        lambda z, a, b: xlogy(a - 1.0, z) + xlog1py(b - 1.0, -z) - betaln(a, b),
        cumulative=lambda z, a, b: betainc(a, b, z),
        survival=lambda z, a, b: betaincc(a, b, z),
        quantile=lambda q, a, b: betaincinv(a, b, q),
        upper_quantile=lambda q, a, b: betainccinv(a, b, q),
        support=UNIT,
        mean=lambda a, b: a / (a + b),
        variance=lambda a, b: a * b / ((a + b) ** 2 * (a + b + 1.0)),
        entropy=_beta_entropy,
    ),
    "t": Declaration(
        _student,
        cumulative=lambda z, df: stdtr(df, z),
        quantile=lambda q, df: stdtrit(df, q),
        symmetric=True,
        mean=lambda df: _where_above(df, 1.0, lambda df: 0.0 * df),
        variance=lambda df: where(df > 1.0, _where_above(df, 2.0, lambda df: df / (df - 2.0)), math.nan),
    ),
    "lognorm": Declaration(
        lambda z, s: log_normal_density(log(z) / s) - log(s) - log(z),
        cumulative=lambda z, s: ndtr(log(z) / s),
        log_cumulative=lambda z, s: log_ndtr(log(z) / s),
        survival=lambda z, s: ndtr(-log(z) / s),
        log_survival=lambda z, s: log_ndtr(-log(z) / s),
        quantile=lambda q, s: exp(s * ndtri(q)),
        upper_quantile=lambda q, s: exp(-s * ndtri(q)),
        support=POSITIVE,
        vanishes=True,
        mean=lambda s: exp(0.5 * s * s),
        variance=lambda s: expm1(s * s) * exp(s * s),
        entropy=lambda s: 0.5 + 0.5 * LOG_2_PI + log(s),
    ),
    "uniform": Declaration(
        lambda z: 0.0 * z,
        cumulative=lambda z: z,
        quantile=lambda q: q,
        support=UNIT,
        mean=0.5,
        variance=1.0 / 12.0,
        entropy=0.0,
    ),
    "laplace": Declaration(
        lambda z: -abs_(z) - LOG_2,
        cumulative=_laplace_cumulative,
        log_cumulative=_laplace_log_cumulative,
        quantile=_laplace_quantile,
        symmetric=True,
        mean=0.0,
        variance=2.0,
        entropy=1.0 + LOG_2,
    ),
    "logistic": Declaration(
        lambda z: -abs_(z) - 2.0 * log1p(exp(-abs_(z))),
        cumulative=sigmoid,
        log_cumulative=log_sigmoid,
        quantile=logit,
        symmetric=True,
        mean=0.0,
        variance=math.pi**2 / 3.0,
        entropy=2.0,
    ),
    "cauchy": Declaration(
        lambda z: -math.log(math.pi) - log1p(z * z),
        cumulative=lambda z: atan2(1.0, -z) / math.pi,
        quantile=lambda q: -1.0 / tan(math.pi * q),
        symmetric=True,
        mean=math.nan,
        variance=math.nan,
        entropy=math.log(4.0 * math.pi),
    ),
    "chi2": Declaration(
        lambda z, df: xlogy(0.5 * df - 1.0, z) - 0.5 * z - lgamma(0.5 * df) - 0.5 * LOG_2 * df,
        cumulative=lambda z, df: gammainc(0.5 * df, 0.5 * z),
        survival=lambda z, df: gammaincc(0.5 * df, 0.5 * z),
        quantile=lambda q, df: 2.0 * gammaincinv(0.5 * df, q),
        upper_quantile=lambda q, df: 2.0 * gammainccinv(0.5 * df, q),
        support=POSITIVE,
        mean=lambda df: df,
        variance=lambda df: 2.0 * df,
    ),
    "chi": Declaration(
        lambda z, df: (1.0 - 0.5 * df) * LOG_2 - lgamma(0.5 * df) + xlogy(df - 1.0, z) - 0.5 * z * z,
        cumulative=lambda z, df: gammainc(0.5 * df, 0.5 * z * z),
        survival=lambda z, df: gammaincc(0.5 * df, 0.5 * z * z),
        quantile=lambda q, df: sqrt(2.0 * gammaincinv(0.5 * df, q)),
        upper_quantile=lambda q, df: sqrt(2.0 * gammainccinv(0.5 * df, q)),
        support=POSITIVE,
        mean=_chi_mean,
        variance=lambda df: df - _chi_mean(df) ** 2,
    ),
    "f": Declaration(
        _fisher,
        cumulative=_fisher_cumulative,
        survival=_fisher_survival,
        quantile=lambda q, n, m: _fisher_quantile(betaincinv(0.5 * n, 0.5 * m, q), n, m),
        upper_quantile=lambda q, n, m: _fisher_quantile(betainccinv(0.5 * n, 0.5 * m, q), n, m),
        support=POSITIVE,
        mean=lambda n, m: _where_above(m, 2.0, lambda m: m / (m - 2.0)),
        variance=lambda n, m: _where_above(
            m, 4.0, lambda m: 2.0 * m * m * (n + m - 2.0) / (n * (m - 2.0) ** 2 * (m - 4.0))
        ),
    ),
    "weibull_min": Declaration(
        lambda z, c: log(c) + xlogy(c - 1.0, z) - z**c,
        log_survival=lambda z, c: -(z**c),
        log_cumulative=lambda z, c: log_less_than(c * log(z)),
        cumulative=lambda z, c: -expm1(-(z**c)),
        quantile=lambda q, c: (-log1p(-q)) ** (1.0 / c),
        upper_quantile=lambda q, c: (-log(q)) ** (1.0 / c),
        support=POSITIVE,
        mean=lambda c: exp(lgamma(1.0 + 1.0 / c)),
        variance=lambda c: exp(lgamma(1.0 + 2.0 / c)) - exp(2.0 * lgamma(1.0 + 1.0 / c)),
        entropy=lambda c: -EULER / c - log(c) + EULER + 1.0,
    ),
    "weibull_max": Declaration(
        lambda z, c: log(c) + xlogy(c - 1.0, -z) - (-z) ** c,
        log_cumulative=lambda z, c: -((-z) ** c),
        log_survival=lambda z, c: log_less_than(c * log(-z)),
        survival=lambda z, c: -expm1(-((-z) ** c)),
        quantile=lambda q, c: -((-log(q)) ** (1.0 / c)),
        upper_quantile=lambda q, c: -((-log1p(-q)) ** (1.0 / c)),
        support=(-math.inf, 0.0),
        inside=-0.5,
        mean=lambda c: -exp(lgamma(1.0 + 1.0 / c)),
        variance=lambda c: exp(lgamma(1.0 + 2.0 / c)) - exp(2.0 * lgamma(1.0 + 1.0 / c)),
        entropy=lambda c: -EULER / c - log(c) + EULER + 1.0,
    ),
    "exponweib": Declaration(
        lambda z, a, c: (
            log(a) + log(c) + (a - 1.0) * log_less_than(c * log(z)) - z**c + xlogy(c - 1.0, z)
        ),
        log_cumulative=lambda z, a, c: a * log_less_than(c * log(z)),
        survival=lambda z, a, c: -expm1(a * log_less_than(c * log(z))),
        quantile=lambda q, a, c: (-log1p(-(q ** (1.0 / a)))) ** (1.0 / c),
        support=POSITIVE,
    ),
    "gumbel_r": Declaration(
        lambda z: -z - exp(-z),
        log_cumulative=lambda z: -exp(-z),
        log_survival=lambda z: log_less_than(-z),
        survival=lambda z: -expm1(-exp(-z)),
        quantile=lambda q: -log(-log(q)),
        upper_quantile=lambda q: -log(-log1p(-q)),
        mean=EULER,
        variance=math.pi**2 / 6.0,
        entropy=EULER + 1.0,
    ),
    "gumbel_l": Declaration(
        lambda z: z - exp(z),
        log_survival=lambda z: -exp(z),
        log_cumulative=log_less_than,
        cumulative=lambda z: -expm1(-exp(z)),
        quantile=lambda q: log(-log1p(-q)),
        upper_quantile=lambda q: log(-log(q)),
        mean=-EULER,
        variance=math.pi**2 / 6.0,
        entropy=EULER + 1.0,
    ),
    "pareto": Declaration(
        lambda z, b: log(b) - (b + 1.0) * log(z),
        log_survival=lambda z, b: -b * log(z),
        cumulative=lambda z, b: -expm1(-b * log(z)),
        quantile=lambda q, b: exp(-log1p(-q) / b),
        upper_quantile=lambda q, b: exp(-log(q) / b),
        support=(1.0, math.inf),
        inside=1.5,
        mean=lambda b: _where_above(b, 1.0, lambda b: b / (b - 1.0)),
        variance=lambda b: _where_above(b, 2.0, lambda b: b / ((b - 1.0) ** 2 * (b - 2.0))),
        entropy=lambda b: 1.0 + 1.0 / b - log(b),
    ),
    "lomax": Declaration(
        lambda z, c: log(c) - (c + 1.0) * log1p(z),
        log_survival=lambda z, c: -c * log1p(z),
        cumulative=lambda z, c: -expm1(-c * log1p(z)),
        quantile=lambda q, c: expm1(-log1p(-q) / c),
        upper_quantile=lambda q, c: expm1(-log(q) / c),
        support=POSITIVE,
        mean=lambda c: _where_above(c, 1.0, lambda c: 1.0 / (c - 1.0)),
        variance=lambda c: _where_above(c, 2.0, lambda c: c / ((c - 1.0) ** 2 * (c - 2.0))),
        entropy=lambda c: 1.0 + 1.0 / c - log(c),
    ),
    "genpareto": Declaration(
        lambda z, c: -(c + 1.0) * _pareto(z, c),
        log_survival=lambda z, c: -_pareto(z, c),
        cumulative=lambda z, c: -expm1(-_pareto(z, c)),
        quantile=lambda q, c: -log1p(-q) * expm1_over(-c * log1p(-q)),
        upper_quantile=lambda q, c: -log(q) * expm1_over(-c * log(q)),
        support=(0.0, lambda c: _bound(-c, c < 0.0)),
        valid=_any,
        inside=lambda c: 0.5 / (1.0 + abs_(c)),
        mean=lambda c: _where_above(-c, -1.0, lambda less: 1.0 / (1.0 + less)),
        variance=lambda c: _where_above(
            -c, -0.5, lambda less: 1.0 / ((1.0 + less) ** 2 * (1.0 + 2.0 * less))
        ),
        entropy=lambda c: 1.0 + c,
    ),
    "genextreme": Declaration(
        lambda z, c: (1.0 - c) * _extreme(z, c) - exp(_extreme(z, c)),
        log_cumulative=lambda z, c: -exp(_extreme(z, c)),
        log_survival=lambda z, c: log_less_than(_extreme(z, c)),
        survival=lambda z, c: -expm1(-exp(_extreme(z, c))),
        quantile=lambda q, c: -log(-log(q)) * expm1_over(c * log(-log(q))),
        upper_quantile=lambda q, c: -log(-log1p(-q)) * expm1_over(c * log(-log1p(-q))),
        support=(lambda c: -_bound(-c, c < 0.0), lambda c: _bound(c, c > 0.0)),
        valid=_any,
        inside=0.0,
        vanishes=True,
        mean=lambda c: _where_above(c, -1.0, _extreme_mean),
        variance=lambda c: _where_above(c, -0.5, _extreme_variance),
        entropy=lambda c: EULER * (1.0 - c) + 1.0,
    ),
    "rayleigh": Declaration(
        lambda z: log(z) - 0.5 * z * z,
        log_survival=lambda z: -0.5 * z * z,
        cumulative=lambda z: -expm1(-0.5 * z * z),
        quantile=lambda q: sqrt(-2.0 * log1p(-q)),
        upper_quantile=lambda q: sqrt(-2.0 * log(q)),
        support=POSITIVE,
        mean=math.sqrt(math.pi / 2.0),
        variance=2.0 - math.pi / 2.0,
        entropy=0.5 * EULER + 1.0 - 0.5 * LOG_2,
    ),
    "maxwell": Declaration(
        lambda z: 0.5 * math.log(2.0 / math.pi) + 2.0 * log(z) - 0.5 * z * z,
        cumulative=lambda z: gammainc(1.5, 0.5 * z * z),
        survival=lambda z: gammaincc(1.5, 0.5 * z * z),
        quantile=lambda q: sqrt(2.0 * gammaincinv(1.5, q)),
        upper_quantile=lambda q: sqrt(2.0 * gammainccinv(1.5, q)),
        support=POSITIVE,
        mean=math.sqrt(8.0 / math.pi),
        variance=3.0 - 8.0 / math.pi,
    ),
    "halfnorm": Declaration(
        lambda z: log_normal_density(z) + LOG_2,
        cumulative=lambda z: erf(z * math.sqrt(0.5)),
        survival=lambda z: erfc(z * math.sqrt(0.5)),
        log_survival=lambda z: LOG_2 + log_ndtr(-z),
        quantile=lambda q: ndtri(0.5 + 0.5 * q),
        upper_quantile=lambda q: -ndtri(0.5 * q),
        support=POSITIVE,
        mean=math.sqrt(2.0 / math.pi),
        variance=1.0 - 2.0 / math.pi,
        entropy=0.5 + 0.5 * math.log(math.pi / 2.0),
    ),
    "halfcauchy": Declaration(
        lambda z: math.log(2.0 / math.pi) - log1p(z * z),
        cumulative=lambda z: 2.0 / math.pi * atan(z),
        survival=lambda z: 2.0 / math.pi * atan2(1.0, z),
        quantile=lambda q: tan(0.5 * math.pi * q),
        upper_quantile=lambda q: 1.0 / tan(0.5 * math.pi * q),
        support=POSITIVE,
        mean=math.inf,
        variance=math.inf,
        entropy=math.log(2.0 * math.pi),
    ),
    "halflogistic": Declaration(
        lambda z: LOG_2 - z - 2.0 * log1p(exp(-z)),
        cumulative=lambda z: tanh(0.5 * z),
        survival=lambda z: 2.0 * sigmoid(-z),
        log_survival=lambda z: LOG_2 + log_sigmoid(-z),
        quantile=lambda q: 2.0 * atanh(q),
        upper_quantile=lambda q: -logit(0.5 * q),
        support=POSITIVE,
        mean=2.0 * LOG_2,
        variance=math.pi**2 / 3.0 - 4.0 * LOG_2 * LOG_2,
        entropy=2.0 - LOG_2,
    ),
    "invgamma": Declaration(
        lambda z, a: -(a + 1.0) * log(z) - lgamma(a) - 1.0 / z,
        cumulative=lambda z, a: gammaincc(a, 1.0 / z),
        survival=lambda z, a: gammainc(a, 1.0 / z),
        quantile=lambda q, a: 1.0 / gammainccinv(a, q),
        upper_quantile=lambda q, a: 1.0 / gammaincinv(a, q),
        support=POSITIVE,
        vanishes=True,
        mean=lambda a: _where_above(a, 1.0, lambda a: 1.0 / (a - 1.0)),
        variance=lambda a: _where_above(a, 2.0, lambda a: 1.0 / ((a - 1.0) ** 2 * (a - 2.0))),
    ),
    "invweibull": Declaration(
        lambda z, c: log(c) - (c + 1.0) * log(z) - z ** (-c),
        log_cumulative=lambda z, c: -(z ** (-c)),
        log_survival=lambda z, c: log_less_than(-c * log(z)),
        survival=lambda z, c: -expm1(-(z ** (-c))),
        quantile=lambda q, c: (-log(q)) ** (-1.0 / c),
        upper_quantile=lambda q, c: (-log1p(-q)) ** (-1.0 / c),
        support=POSITIVE,
        vanishes=True,
        mean=lambda c: _where_above(c, 1.0, lambda c: exp(lgamma(1.0 - 1.0 / c))),
        variance=lambda c: _where_above(
            c, 2.0, lambda c: exp(lgamma(1.0 - 2.0 / c)) - exp(2.0 * lgamma(1.0 - 1.0 / c))
        ),
        entropy=lambda c: 1.0 + EULER + EULER / c - log(c),
    ),
    "invgauss": Declaration(
        _inverse_gauss,
        log_cumulative=_inverse_gauss_log_cumulative,
        log_survival=_inverse_gauss_log_survival,
        support=POSITIVE,
        vanishes=True,
        mean=lambda mu: mu,
        variance=lambda mu: mu**3,
    ),
    "wald": Declaration(
        lambda z: _inverse_gauss(z, 1.0),
        log_cumulative=lambda z: _inverse_gauss_log_cumulative(z, 1.0),
        log_survival=lambda z: _inverse_gauss_log_survival(z, 1.0),
        support=POSITIVE,
        vanishes=True,
        mean=1.0,
        variance=1.0,
    ),
    "fisk": Declaration(
        lambda z, c: log(c) + xlogy(c - 1.0, z) - 2.0 * softplus(c * log(z)),
        log_cumulative=lambda z, c: log_sigmoid(c * log(z)),
        cumulative=lambda z, c: sigmoid(c * log(z)),
        log_survival=lambda z, c: log_sigmoid(-c * log(z)),
        quantile=lambda q, c: exp(logit(q) / c),
        upper_quantile=lambda q, c: exp(-logit(q) / c),
        support=POSITIVE,
        mean=lambda c: _where_above(c, 1.0, lambda c: math.pi / (c * sin(math.pi / c))),
        variance=lambda c: _where_above(
            c,
            2.0,
            lambda c: 2.0 * math.pi / (c * sin(2.0 * math.pi / c)) - (math.pi / (c * sin(math.pi / c))) ** 2,
        ),
        entropy=lambda c: 2.0 - log(c),
    ),
    "burr": Declaration(
        lambda z, c, d: log(c) + log(d) + xlogy(c * d - 1.0, z) - (d + 1.0) * softplus(c * log(z)),
        log_cumulative=lambda z, c, d: -d * softplus(-c * log(z)),
        quantile=lambda q, c, d: expm1(-log(q) / d) ** (-1.0 / c),
        support=POSITIVE,
    ),
    "burr12": Declaration(
        lambda z, c, d: log(c) + log(d) + xlogy(c - 1.0, z) - (d + 1.0) * softplus(c * log(z)),
        log_survival=lambda z, c, d: -d * softplus(c * log(z)),
        quantile=lambda q, c, d: expm1(-log1p(-q) / d) ** (1.0 / c),
        upper_quantile=lambda q, c, d: expm1(-log(q) / d) ** (1.0 / c),
        support=POSITIVE,
    ),
    "loggamma": Declaration(
        lambda z, c: c * z - exp(z) - lgamma(c),
        cumulative=lambda z, c: gammainc(c, exp(z)),
        survival=lambda z, c: gammaincc(c, exp(z)),
        quantile=lambda q, c: log(gammaincinv(c, q)),
        upper_quantile=lambda q, c: log(gammainccinv(c, q)),
        mean=digamma,
    ),
    "gengamma": Declaration(
        _general_gamma,
        cumulative=lambda z, a, c: where(c > 0.0, gammainc(a, z**c), gammaincc(a, z**c)),
        survival=lambda z, a, c: where(c > 0.0, gammaincc(a, z**c), gammainc(a, z**c)),
        quantile=lambda q, a, c: where(c > 0.0, gammaincinv(a, q), gammainccinv(a, q)) ** (1.0 / c),
        support=POSITIVE,
        valid=lambda a, c: [a > 0.0, c != 0.0],
    ),
    "gompertz": Declaration(
        lambda z, c: log(c) + z - c * expm1(z),
        log_survival=lambda z, c: -c * expm1(z),
        cumulative=lambda z, c: -expm1(-c * expm1(z)),
        quantile=lambda q, c: log1p(-log1p(-q) / c),
        upper_quantile=lambda q, c: log1p(-log(q) / c),
        support=POSITIVE,
    ),
    "powerlaw": Declaration(
        lambda z, a: log(a) + xlogy(a - 1.0, z),
        cumulative=lambda z, a: z**a,
        quantile=lambda q, a: q ** (1.0 / a),
        support=UNIT,
        mean=lambda a: a / (a + 1.0),
        variance=lambda a: a / ((a + 2.0) * (a + 1.0) ** 2),
        entropy=lambda a: 1.0 - 1.0 / a - log(a),
    ),
    "triang": Declaration(
        _triangle,
        cumulative=lambda z, c: where(z < c, z * z / c, 1.0 - (1.0 - z) ** 2 / (1.0 - c)),
        quantile=_triangle_quantile,
        support=UNIT,
        valid=lambda c: [c > 0.0, c < 1.0],
        mean=lambda c: (c + 1.0) / 3.0,
        variance=lambda c: (1.0 - c + c * c) / 18.0,
        entropy=0.5 - LOG_2,
    ),
    "loguniform": Declaration(
        lambda z, a, b: -log(z) - log(log(b / a)),
        cumulative=lambda z, a, b: log(z / a) / log(b / a),
        quantile=lambda q, a, b: a * exp(q * log(b / a)),
        support=(lambda a, b: a, lambda a, b: b),
        valid=lambda a, b: [a > 0.0, b > a],
        inside=lambda a, b: 0.5 * (a + b),
        mean=lambda a, b: (b - a) / log(b / a),
        variance=lambda a, b: (b * b - a * a) / (2.0 * log(b / a)) - ((b - a) / log(b / a)) ** 2,
        entropy=lambda a, b: 0.5 * log(a * b) + log(log(b / a)),
    ),
    "truncnorm": Declaration(
        _of_normal_cut,
        log_cumulative=lambda z, a, b: _log_part_of_cut((a, z), (z, b), (a, b)),
        log_survival=lambda z, a, b: _log_part_of_cut((z, b), (a, z), (a, b)),
        quantile=_quantile_of_normal_cut,
        support=(lambda a, b: a, lambda a, b: b),
        valid=lambda a, b: [a < b],
        inside=lambda a, b: 0.5 * (where(a > -8.0, a, -8.0) + where(b < 8.0, b, 8.0)),
    ),
    "skewnorm": Declaration(
        lambda z, a: LOG_2 + log_normal_density(z) + log_ndtr(a * z),
        cumulative=skewnorm_cdf,
        survival=skewnorm_sf,
        valid=_any,
        mean=lambda a: math.sqrt(2.0 / math.pi) * a / sqrt(1.0 + a * a),
        variance=lambda a: 1.0 - 2.0 / math.pi * a * a / (1.0 + a * a),
    ),
    "exponnorm": Declaration(
        lambda z, k: _exponential_tail(z, k) - log(k),
        cumulative=lambda z, k: ndtr(z) - exp(_exponential_tail(z, k)),
        log_cumulative=lambda z, k: log_difference(log_ndtr(z), _exponential_tail(z, k)),
        survival=lambda z, k: ndtr(-z) + exp(_exponential_tail(z, k)),
        log_survival=lambda z, k: logaddexp(log_ndtr(-z), _exponential_tail(z, k)),
        mean=lambda k: k,
        variance=lambda k: 1.0 + k * k,
    ),
    "nakagami": Declaration(
        lambda z, nu: LOG_2 + xlogy(nu, nu) - lgamma(nu) + xlogy(2.0 * nu - 1.0, z) - nu * z * z,
        cumulative=lambda z, nu: gammainc(nu, nu * z * z),
        survival=lambda z, nu: gammaincc(nu, nu * z * z),
        quantile=lambda q, nu: sqrt(gammaincinv(nu, q) / nu),
        upper_quantile=lambda q, nu: sqrt(gammainccinv(nu, q) / nu),
        support=POSITIVE,
        mean=lambda nu: exp(lgamma(nu + 0.5) - lgamma(nu)) / sqrt(nu),
        variance=lambda nu: 1.0 - exp(2.0 * (lgamma(nu + 0.5) - lgamma(nu))) / nu,
    ),
    "rice": Declaration(
        lambda z, b: log(z) - 0.5 * (z - b) ** 2 + _log_scaled_bessel(z * b),
        cumulative=rice_cdf,
        support=POSITIVE,
        valid=lambda b: [b >= 0.0],
    ),
    "vonmises": Declaration(
        lambda z, kappa: -2.0 * kappa * sin(0.5 * z) ** 2 - LOG_2_PI - _log_scaled_bessel(kappa),
        cumulative=vonmises_cdf,
        turn=(-math.pi, math.pi),
        mean=lambda kappa: 0.0 * kappa,
        valid=lambda kappa: [kappa >= 0.0],
    ),
    "levy": Declaration(
        lambda z: -0.5 * LOG_2_PI - 1.5 * log(z) - 0.5 / z,
        cumulative=lambda z: erfc(sqrt(0.5 / z)),
        log_cumulative=lambda z: LOG_2 + log_ndtr(-(z**-0.5)),
        survival=lambda z: erf(sqrt(0.5 / z)),
        quantile=lambda q: 0.5 / erfcinv(q) ** 2,
        support=POSITIVE,
        vanishes=True,
        mean=math.inf,
        variance=math.inf,
    ),
    "hypsecant": Declaration(
        lambda z: -math.log(math.pi) - abs_(z) - log1p(exp(-2.0 * abs_(z))) + LOG_2,
        cumulative=lambda z: 2.0 / math.pi * atan(exp(z)),
        quantile=lambda q: log(tan(0.5 * math.pi * q)),
        symmetric=True,
        mean=0.0,
        variance=0.25 * math.pi**2,
        entropy=math.log(2.0 * math.pi),
    ),
    "arcsine": Declaration(
        lambda z: -math.log(math.pi) - 0.5 * (log(z) + log1p(-z)),
        cumulative=lambda z: 2.0 / math.pi * asin(sqrt(z)),
        quantile=lambda q: sin(0.5 * math.pi * q) ** 2,
        support=UNIT,
        mean=0.5,
        variance=0.125,
        entropy=math.log(0.25 * math.pi),
    ),
    "gennorm": Declaration(
        lambda z, beta: log(0.5 * beta) - lgamma(1.0 / beta) - abs_(z) ** beta,
        cumulative=_general_normal_cumulative,
        symmetric=True,
        mean=lambda beta: 0.0 * beta,
        variance=lambda beta: exp(lgamma(3.0 / beta) - lgamma(1.0 / beta)),
        entropy=lambda beta: 1.0 / beta - log(0.5 * beta) + lgamma(1.0 / beta),
    ),
    "johnsonsu": Declaration(
        lambda z, a, b: log(b) - 0.5 * log1p(z * z) + log_normal_density(a + b * asinh(z)),
        cumulative=lambda z, a, b: ndtr(a + b * asinh(z)),
        log_cumulative=lambda z, a, b: log_ndtr(a + b * asinh(z)),
        survival=lambda z, a, b: ndtr(-a - b * asinh(z)),
        log_survival=lambda z, a, b: log_ndtr(-a - b * asinh(z)),
        quantile=lambda q, a, b: sinh((ndtri(q) - a) / b),
        valid=lambda a, b: [a == a, b > 0.0],
    ),
    "johnsonsb": Declaration(
        lambda z, a, b: log(b) - log(z) - log1p(-z) + log_normal_density(a + b * logit(z)),
        cumulative=lambda z, a, b: ndtr(a + b * logit(z)),
        log_cumulative=lambda z, a, b: log_ndtr(a + b * logit(z)),
        survival=lambda z, a, b: ndtr(-a - b * logit(z)),
        log_survival=lambda z, a, b: log_ndtr(-a - b * logit(z)),
        quantile=lambda q, a, b: sigmoid((ndtri(q) - a) / b),
        support=UNIT,
        valid=lambda a, b: [a == a, b > 0.0],
        vanishes=True,
    ),
    "loglaplace": Declaration(
        lambda z, c: log(0.5 * c) + xlogy(where(z < 1.0, c, -c) - 1.0, z),
        cumulative=lambda z, c: _laplace_cumulative(c * log(z)),
        log_cumulative=lambda z, c: _laplace_log_cumulative(c * log(z)),
        survival=lambda z, c: _laplace_cumulative(-c * log(z)),
        log_survival=lambda z, c: _laplace_log_cumulative(-c * log(z)),
        quantile=lambda q, c: exp(_laplace_quantile(q) / c),
        support=POSITIVE,
    ),
    "genlogistic": Declaration(
        lambda z, c: log(c) - z - (c + 1.0) * softplus(-z),
        log_cumulative=lambda z, c: -c * softplus(-z),
        quantile=lambda q, c: -log(expm1(-log(q) / c)),
        mean=lambda c: EULER + digamma(c),
    ),
    "betaprime": Declaration(
        lambda z, a, b: xlogy(a - 1.0, z) - xlog1py(a + b, z) - betaln(a, b),
        cumulative=of_beta_ratio,
        survival=lambda z, a, b: of_beta_ratio(1.0 / z, b, a),
        quantile=lambda q, a, b: 1.0 / (1.0 / betaincinv(a, b, q) - 1.0),
        upper_quantile=lambda q, a, b: 1.0 / betaincinv(b, a, q) - 1.0,
        support=POSITIVE,
        mean=lambda a, b: _where_above(b, 1.0, lambda b: a / (b - 1.0)),
        variance=lambda a, b: _where_above(
            b, 2.0, lambda b: a * (a + b - 1.0) / ((b - 2.0) * (b - 1.0) ** 2)
        ),
    ),
    "foldnorm": Declaration(
        lambda z, c: logaddexp(log_normal_density(z - c), log_normal_density(z + c)),
        cumulative=_folded_cumulative,
        survival=lambda z, c: ndtr(c - z) + ndtr(-z - c),
        log_survival=lambda z, c: logaddexp(log_ndtr(c - z), log_ndtr(-z - c)),
        support=POSITIVE,
        valid=lambda c: [c >= 0.0],
    ),
}
"""By SciPy's name."""
