"""Formulas of continuous distributions: what their declarations (`continuous.py`) say in more than a line."""

from __future__ import annotations

import functools
import math
from typing import Any

from ..special_ufuncs import log1p_over, of_beta_ratio
from .elements import (
    LOG_2,
    LOG_2_PI,
    Function,
    abs_,
    atan,
    betainccinv,
    betaincinv,
    betaln,
    digamma,
    erfcx,
    exp,
    expm1,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    i0e,
    is_everywhere,
    isfinite,
    lgamma,
    log,
    log1p,
    log_betainc,
    log_difference,
    log_gamma_density,
    log_gammainc,
    log_gammaincc,
    log_ndtr,
    log_normal_density,
    log_normal_mass,
    logaddexp,
    ndtr,
    ndtri,
    sin,
    sqrt,
    stdtr,
    tan,
    where,
    xlogy,
)  # fmt: skip

EULER = 0.5772156649015329


def where_above(shape: Any, least: float, moment: Any) -> Any:
    """A moment of shapes above a bound; up to there it is infinite."""
    exists = shape > least
    return where(exists, moment(where(exists, shape, least + 1.0)), math.inf)


def chi_mean(df: Any) -> Any:
    return math.sqrt(2.0) * exp(lgamma(0.5 * (df + 1.0)) - lgamma(0.5 * df))


def beta_entropy(a: Any, b: Any) -> Any:
    both = (a + b - 2.0) * digamma(a + b)
    return betaln(a, b) - (a - 1.0) * digamma(a) - (b - 1.0) * digamma(b) + both


def student_or(of_normal: Function, of_student: Function) -> Function:
    """A function of Student's distribution, which is the normal one for infinite degrees of freedom."""

    def function(z: Any, df: Any) -> Any:
        is_finite = isfinite(df)
        if is_everywhere(is_finite):
            return of_student(z, df)
        return where(is_finite, of_student(z, where(is_finite, df, 1.0)), of_normal(z))

    return function


def student(z: Any, df: Any) -> Any:
    return -betaln(0.5 * df, 0.5) - 0.5 * log(df) - (df + 1.0) / 2.0 * log1p(z * z / df)


def student_log_cumulative(z: Any, df: Any) -> Any:
    """Far on the left it is the half of a beta variable's, which may be less than the least number."""
    is_far = (z < 0.0) & (z * z > df)
    far, near = where(is_far, z, -1.0), where(is_far, 0.0, z)
    degrees = where(is_far, df, 1.0)
    of_far = log_betainc(0.5 * degrees, 0.5, degrees / (degrees + far * far)) - LOG_2
    is_right = near > 0.0
    lesser = stdtr(df, where(is_right, -near, near))
    return where(is_far, of_far, _log_by_lesser(is_right, lesser))


def _log_by_lesser(is_greater: Any, lesser: Any) -> Any:
    """The logarithm of 1 less a share where that is asked for, else of the share itself."""
    return where(is_greater, log1p(-lesser), log(where(is_greater, 0.5, lesser)))


def fisher(z: Any, n: Any, m: Any) -> Any:
    """By the lesser of the ratio n z / m and its reciprocal, so that nothing of large degrees is lost."""
    ratio = n * z / m
    is_small = ratio < 1.0
    small, rest = where(is_small, ratio, 1.0), 1.0 / where(is_small, 1.0, ratio)
    lower = 0.5 * n * log(n / m) + xlogy(0.5 * n - 1.0, z) - 0.5 * (n + m) * log1p(small)
    upper = 0.5 * m * log(rest) - log(where(is_small, 1.0, z)) - 0.5 * (n + m) * log1p(rest)
    return where(is_small, lower, upper) - betaln(0.5 * n, 0.5 * m)


def fisher_cumulative(z: Any, n: Any, m: Any) -> Any:
    return of_beta_ratio(n * z / m, 0.5 * n, 0.5 * m)


def fisher_survival(z: Any, n: Any, m: Any) -> Any:
    return of_beta_ratio(m / (n * z), 0.5 * m, 0.5 * n)


def beta_ratio_quantile(q: Any, a: Any, b: Any) -> Any:
    """Of t / (1 - t) for beta variables t, by the lesser of t and 1 - t."""
    share = betaincinv(a, b, q)
    is_small = share < 0.5
    small, rest = where(is_small, share, 0.5), where(is_small, 0.5, betainccinv(b, a, q))
    return where(is_small, small / (1.0 - small), (1.0 - rest) / rest)


def beta_ratio_upper_quantile(q: Any, a: Any, b: Any) -> Any:
    return 1.0 / beta_ratio_quantile(q, b, a)


def cauchy_quantile(q: Any) -> Any:
    is_left = q < 0.5
    size = 1.0 / tan(math.pi * where(is_left, q, 1.0 - q))
    return where(is_left, -size, size)


def extreme(z: Any, c: Any) -> Any:
    """log(1 - c z) / c, which is -z for c = 0."""
    return -z * log1p_over(-c * z)


def pareto(z: Any, c: Any) -> Any:
    """log(1 + c z) / c, which is z for c = 0."""
    return z * log1p_over(c * z)


def extreme_mean(c: Any) -> Any:
    """(1 - gamma(1 + c)) / c, and near c = 0 its Taylor series."""
    is_small = abs_(c) < 1e-3
    other = where(is_small, 1.0, c)
    return where(is_small, series(MEAN_SERIES, c), -expm1(lgamma(1.0 + other)) / other)


def extreme_variance(c: Any) -> Any:
    """(gamma(1 + 2 c) - gamma(1 + c)^2) / c^2, and near c = 0 its Taylor series."""
    is_small = abs_(c) < 1e-3
    other = where(is_small, 1.0, c)
    logarithm = lgamma(1.0 + other)
    apart = exp(2.0 * logarithm) * expm1(lgamma(1.0 + 2.0 * other) - 2.0 * logarithm) / (other * other)
    return where(is_small, series(VARIANCE_SERIES, c), apart)


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


def series(coefficients: tuple[float, ...], c: Any) -> Any:
    return functools.reduce(lambda total, one: total * c + one, reversed(coefficients))


def bound(c: Any, holds: Any) -> Any:
    """1 / c where it holds, else infinity."""
    return where(holds, 1.0 / where(holds, c, 1.0), math.inf)


def inverse_gauss(z: Any, mu: Any) -> Any:
    return -0.5 * LOG_2_PI - 1.5 * log(z) - 0.5 * z * (1.0 / mu - 1.0 / z) ** 2


def inverse_gauss_parts(z: Any, mu: Any) -> tuple[Any, Any]:
    """The two arguments of normal distribution functions that its own is made of."""
    root = sqrt(z)
    return (z / mu - 1.0) / root, (z / mu + 1.0) / root


def inverse_gauss_log_cumulative(z: Any, mu: Any) -> Any:
    below, above = inverse_gauss_parts(z, mu)
    return logaddexp(log_ndtr(below), 2.0 / mu + log_ndtr(-above))


def inverse_gauss_log_survival(z: Any, mu: Any) -> Any:
    """On the right both terms are products with exp(-below**2 / 2), and their difference is small."""
    below, above = inverse_gauss_parts(z, mu)
    is_right = below > 0.0
    near, far = where(is_right, below, 0.0), where(is_right, above, 1.0)
    apart = erfcx(math.sqrt(0.5) * near) - erfcx(math.sqrt(0.5) * far)
    of_left = log_difference(log_ndtr(-where(is_right, -1.0, below)), 2.0 / mu + log_ndtr(-above))
    return where(is_right, log(0.5 * apart) - 0.5 * near * near, of_left)


def of_normal_cut(z: Any, a: Any, b: Any) -> Any:
    return log_normal_density(z) - log_normal_mass(a, b)


def log_part_of_cut(part: tuple[Any, Any], rest: tuple[Any, Any], whole: tuple[Any, Any]) -> Any:
    """The logarithm of the part's share, by the rest where that is less."""
    mass, of_part, of_rest = (log_normal_mass(*one) for one in (whole, part, rest))
    is_less = of_part < of_rest
    return where(is_less, of_part - mass, log1p(-exp(where(is_less, -1.0, of_rest - mass))))


def inside_of_normal_cut(a: Any, b: Any) -> Any:
    """The middle between the ends, or within a few steps of the one that is finite."""
    low, high = where(b < -7.0, b - 1.0, -8.0), where(a > 7.0, a + 1.0, 8.0)
    return 0.5 * (where(a > low, a, low) + where(b < high, b, high))


def quantile_of_normal_cut(q: Any, a: Any, b: Any) -> Any:
    """On whichever side of 0 the lower end is."""
    is_right = a > 0.0
    from_left = ndtri(ndtr(where(is_right, 0.0, a)) * (1.0 - q) + ndtr(where(is_right, 0.0, b)) * q)
    from_right = -ndtri(ndtr(where(is_right, -a, 0.0)) * (1.0 - q) + ndtr(where(is_right, -b, 0.0)) * q)
    return where(is_right, from_right, from_left)


def _sides_of_triangle(z: Any, c: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Whether z is left of the tip c; z, 1 - z and how long both sides are, where they are asked for."""
    is_left = z < c
    left, right = where(is_left, z, 0.5), where(is_left, 0.5, 1.0 - z)
    return is_left, left, right, where(is_left, c, 1.0), where(is_left, 1.0, 1.0 - c)


def triangle(z: Any, c: Any) -> Any:
    """A tip at an end of the support is part of it, by the side that there is."""
    is_tip = z == c
    is_left, left, right, rise, fall = _sides_of_triangle(where(is_tip, 0.5, z), where(is_tip, 0.5, c))
    return LOG_2 + where(is_left, log(left / rise), log(right / fall))


def triangle_cumulative(z: Any, c: Any) -> Any:
    is_left, left, right, rise, fall = _sides_of_triangle(z, c)
    return where(is_left, left * left / rise, 1.0 - right * right / fall)


def triangle_survival(z: Any, c: Any) -> Any:
    is_left, left, right, rise, fall = _sides_of_triangle(z, c)
    return where(is_left, 1.0 - left * left / rise, right * right / fall)


def triangle_quantile(q: Any, c: Any) -> Any:
    is_left, left, right, rise, fall = _sides_of_triangle(q, c)
    return where(is_left, sqrt(rise * left), 1.0 - sqrt(fall * right))


def secant_cumulative(z: Any) -> Any:
    is_right = z > 0.0
    rest = 2.0 / math.pi * atan(exp(where(is_right, -z, z)))
    return where(is_right, 1.0 - rest, rest)


def secant_log_cumulative(z: Any) -> Any:
    """Far to the left the arc's tangent is the arc."""
    is_far = z < -20.0
    near = log(secant_cumulative(where(is_far, 0.0, z)))
    return where(is_far, z + math.log(2.0 / math.pi), near)


def laplace_cumulative(z: Any) -> Any:
    is_right = z > 0.0
    return where(is_right, 1.0 - 0.5 * exp(-where(is_right, z, 0.0)), 0.5 * exp(where(is_right, 0.0, z)))


def laplace_log_cumulative(z: Any) -> Any:
    is_right = z > 0.0
    return where(is_right, log1p(-0.5 * exp(-where(is_right, z, 0.0))), where(is_right, 0.0, z) - LOG_2)


def laplace_quantile(q: Any) -> Any:
    return where(q > 0.5, -log(2.0 * where(q > 0.5, 1.0 - q, 0.5)), log(2.0 * where(q > 0.5, 0.5, q)))


def general_gamma(z: Any, a: Any, c: Any) -> Any:
    found = log(abs_(c)) + xlogy(c * a - 1.0, z) - z**c - lgamma(a)
    return where((z > 0.0) | (c > 0.0), found, -math.inf)


def general_normal_cumulative(z: Any, beta: Any) -> Any:
    """Around 0 a line: there the incomplete function has no slope by the power."""
    is_middle = abs_(z) ** beta < 1e-17
    power = abs_(where(is_middle, 1.0, z)) ** beta
    tail = 0.5 * gammaincc(1.0 / beta, power)
    middle = 0.5 + where(is_middle, z, 0.0) * exp(log(0.5 * beta) - lgamma(1.0 / beta))
    return where(is_middle, middle, where(z > 0.0, 1.0 - tail, tail))


def general_normal_log_cumulative(z: Any, beta: Any) -> Any:
    is_tail = (z < 0.0) & (abs_(z) ** beta > 1.0)
    tail = log_gammaincc(1.0 / beta, abs_(where(is_tail, z, -1.0)) ** beta) - LOG_2
    is_right = z > 0.0
    lesser = where(is_right, -z, where(is_tail, -1.0, z))
    return where(is_tail, tail, _log_by_lesser(is_right, general_normal_cumulative(lesser, beta)))


def exponential_tail(z: Any, k: Any) -> Any:
    """The logarithm of what a normal variable with an exponential one of mean k has less below z."""
    return 0.5 / (k * k) - z / k + log_ndtr(z - 1.0 / k)


def log_scaled_bessel(x: Any) -> Any:
    """log(exp(-x) I_0(x)) from 0 on, where i0e, which is even, has a bend (DLMF 10.25.2)."""
    at_zero = x <= 0.0
    return where(at_zero, 0.25 * x * x - x, log(i0e(where(at_zero, 1.0, x))))


def folded_cumulative(z: Any, c: Any) -> Any:
    """Near 0 two terms of its series, as the difference would be of equal numbers."""
    is_near = z * (1.0 + c) < 1e-5
    near, far = where(is_near, z, 0.0), where(is_near, 1.0, z)
    series = 2.0 * near * exp(log_normal_density(c)) * (1.0 + (c * c - 1.0) * near * near / 6.0)
    return where(is_near, series, ndtr(far - c) - ndtr(-far - c))


# --- of the less common ones --------------------------------------------------------------------------------


def bradford_rest(rest: Any, c: Any) -> Any:
    """What is above z, by (1 - z) / (1 + c)."""
    return rest * log1p_over(-c * rest) / log1p_over(c)


def angle_less_sine(x: Any) -> Any:
    """x - sin(x), near 0 by its series."""
    is_near = abs_(x) < 0.5
    near, far = where(is_near, x, 0.0), where(is_near, 1.0, x)
    terms = tuple((-1.0) ** k / math.factorial(2 * k + 3) for k in range(7))
    return where(is_near, near**3 * series(terms, near * near), far - sin(far))


def _crystal_ball_total(beta: Any, m: Any) -> Any:
    """What the tail, and all of the density, are without their factor."""
    tail = m / beta / (m - 1.0) * exp(-0.5 * beta * beta)
    return tail, tail + math.sqrt(2.0 * math.pi) * ndtr(beta)


def crystal_ball(z: Any, beta: Any, m: Any) -> Any:
    """A normal density above -beta, and below a power, with the same slope there."""
    is_body = z > -beta
    away = where(is_body, 0.0, -z - beta)
    power = -0.5 * beta * beta - m * log1p(away * beta / m)
    body = where(is_body, z, 0.0)
    return where(is_body, -0.5 * body * body, power) - log(_crystal_ball_total(beta, m)[1])


def crystal_ball_log_cumulative(z: Any, beta: Any, m: Any) -> Any:
    is_body = z > -beta
    tail, total = _crystal_ball_total(beta, m)
    away, body = where(is_body, 0.0, -z - beta), where(is_body, z, -beta)
    lower = log(tail) + (1.0 - m) * log1p(away * beta / m)
    upper = log(tail + math.sqrt(2.0 * math.pi) * (ndtr(body) - ndtr(-beta)))
    return where(is_body, upper, lower) - log(total)


def crystal_ball_log_survival(z: Any, beta: Any, m: Any) -> Any:
    is_body = z > -beta
    total = _crystal_ball_total(beta, m)[1]
    upper = 0.5 * LOG_2_PI + log_ndtr(-where(is_body, z, 0.0)) - log(total)
    lower = crystal_ball_log_cumulative(where(is_body, -beta - 1.0, z), beta, m)
    return where(is_body, upper, log1p(-exp(lower)))


def of_both_ends(z: Any, shape: Any, below: Any, above: Any) -> Any:
    """A function of what is below z, of beta variables from -1 to 1, by how far the nearer end is."""
    is_left = z < 0.0
    left, right = where(is_left, z, 0.0), where(is_left, 0.0, z)
    return where(is_left, below(shape, shape, 0.5 + 0.5 * left), above(shape, shape, 0.5 - 0.5 * right))


def of_halves(z: Any, half: Any) -> Any:
    """A symmetric distribution function; `half` of a size is what is farther out on one side."""
    is_right = z > 0.0
    return where(is_right, 1.0 - half(where(is_right, z, 1.0)), half(where(is_right, 1.0, -z)))


def log_of_halves(z: Any, log_rest: Any) -> Any:
    """The logarithm of the same; `log_rest` of a size is that of twice what is farther out on one side."""
    is_right = z > 0.0
    right = log1p(-0.5 * exp(log_rest(where(is_right, z, 1.0))))
    return where(is_right, right, log_rest(where(is_right, 1.0, -z)) - LOG_2)


def quantile_of_halves(q: Any, size: Any) -> Any:
    """`size` of a share is the place above which so much of all sizes is."""
    is_left = q < 0.5
    found = size(2.0 * where(is_left, q, 1.0 - q))
    return where(is_left, -found, found)


def fatigue_quantile(x: Any) -> Any:
    """(x + sqrt(x**2 + 4))**2 / 4, of negative x by the reciprocal."""
    is_left = x < 0.0
    root = 0.5 * (where(is_left, -x, x) + sqrt(x * x + 4.0))
    return where(is_left, root**-2.0, root**2.0)


def share_of_skew_student(z: Any, both: Any) -> Any:
    """(1 + z / sqrt(both + z**2)) / 2, in which nothing cancels."""
    root = sqrt(both + z * z)
    is_left = z < 0.0
    left = where(is_left, z, -1.0)
    of_left = 0.5 * both / (sqrt(both + left * left) * (sqrt(both + left * left) - left))
    return where(is_left, of_left, 0.5 + 0.5 * z / root)


def of_skew_student(z: Any, a: Any, b: Any, below: Any, above: Any) -> Any:
    """A function of what is below z, by the lesser share of the beta variable that z stands for."""
    is_left = z < 0.0
    left = share_of_skew_student(where(is_left, z, -1.0), a + b)
    right = share_of_skew_student(where(is_left, -1.0, -z), a + b)
    return where(is_left, below(a, b, left), above(b, a, right))


def skew_student(z: Any, a: Any, b: Any) -> Any:
    left, right = share_of_skew_student(z, a + b), share_of_skew_student(-z, a + b)
    shares = (a + 0.5) * log(left) + (b + 0.5) * log(right)
    return shares + 2.0 * LOG_2 - betaln(a, b) - 0.5 * log(a + b)


def skew_student_quantile(share: Any, both: Any) -> Any:
    return (2.0 * share - 1.0) * sqrt(both) / (2.0 * sqrt(share * (1.0 - share)))


def asymmetric_laplace_log_cumulative(z: Any, kappa: Any) -> Any:
    is_right = z > 0.0
    left = where(is_right, 0.0, z) / kappa + log(kappa / (kappa + 1.0 / kappa))
    right = log1p(-exp(-kappa * where(is_right, z, 0.0)) / (kappa * kappa + 1.0))
    return where(is_right, right, left)


LEAST_SKEW = 1.6e-5
"""Below it SciPy's distribution is the normal one, here with the first term in the skew."""


def _pearson_parts(z: Any, skew: Any) -> tuple[Any, Any, Any, Any]:
    """Where it is normal; the shape of a gamma variable; the variable; the skew that it is of."""
    is_normal = abs_(skew) < LEAST_SKEW
    other = where(is_normal, 1.0, skew)
    shape = 4.0 / (other * other)
    return is_normal, shape, shape + 2.0 * where(is_normal, 0.0, z) / other, other


def pearson(z: Any, skew: Any) -> Any:
    is_normal, shape, place, other = _pearson_parts(z, skew)
    normal = where(is_normal, z, 0.0)
    of_normal = log_normal_density(normal) + skew * (normal**3 - 3.0 * normal) / 6.0
    return where(is_normal, of_normal, log_gamma_density(shape, place) + log(2.0 / abs_(other)))


def _pearson_by(z: Any, skew: Any, sense: float, of_normal: Any, below: Any, above: Any) -> Any:
    is_normal, shape, place, other = _pearson_parts(z, skew)
    is_below = sense * other > 0.0
    of_gamma = where(is_below, below(shape, place), above(shape, place))
    return where(is_normal, of_normal(where(is_normal, z, 0.0)), of_gamma)


def pearson_share(z: Any, skew: Any, sense: float) -> Any:
    """The probability of values up to z, or above."""

    def of_normal(z: Any) -> Any:
        return ndtr(sense * z) + sense * skew * (1.0 - z * z) * exp(log_normal_density(z)) / 6.0

    return _pearson_by(z, skew, sense, of_normal, gammainc, gammaincc)


def pearson_log_share(z: Any, skew: Any, sense: float) -> Any:
    def of_normal(z: Any) -> Any:
        mass = log_ndtr(sense * z)
        return mass + sense * skew * (1.0 - z * z) * exp(log_normal_density(z) - mass) / 6.0

    return _pearson_by(z, skew, sense, of_normal, log_gammainc, log_gammaincc)


def pearson_quantile(q: Any, skew: Any, sense: float) -> Any:
    is_normal, shape, _, other = _pearson_parts(0.0 * q, skew)
    of_normal = sense * ndtri(q)
    is_below = sense * other > 0.0
    of_gamma = where(is_below, gammaincinv(shape, q), gammainccinv(shape, q))
    normal = of_normal + skew * (of_normal * of_normal - 1.0) / 6.0
    return where(is_normal, normal, (of_gamma - shape) * 0.5 * other)


def breit_wigner(z: Any, rho: Any) -> Any:
    root = sqrt(1.0 + 1.0 / (rho * rho))
    factor = 0.5 * log(2.0 * root * root / (1.0 + root)) + math.log(2.0 / math.pi)
    return factor - log1p(((z - rho) * (z + rho) / rho) ** 2)


def trapezoid(z: Any, c: Any, d: Any) -> Any:
    is_left, is_right = z < c, z > d
    rise, fall = where(is_left, c, 1.0), where(is_right, 1.0 - d, 1.0)
    height = where(is_left, z / rise, where(is_right, (1.0 - z) / fall, 1.0))
    return log(height) + LOG_2 - log(d - c + 1.0)


def trapezoid_cumulative(z: Any, c: Any, d: Any) -> Any:
    whole, is_left, is_right = d - c + 1.0, z < c, z > d
    rise, fall = where(is_left, c, 1.0), where(is_right, 1.0 - d, 1.0)
    upper = 1.0 - (1.0 - z) ** 2 / (whole * fall)
    return where(is_left, z * z / (rise * whole), where(is_right, upper, (c + 2.0 * (z - c)) / whole))


def trapezoid_quantile(q: Any, c: Any, d: Any) -> Any:
    whole = d - c + 1.0
    is_left, is_right = q < c / whole, q > 1.0 - (1.0 - d) / whole
    rise, fall = where(is_left, c, 1.0), where(is_right, 1.0 - d, 1.0)
    upper = 1.0 - sqrt((1.0 - q) * whole * fall)
    return where(is_left, sqrt(q * rise * whole), where(is_right, upper, 0.5 * (q * whole + c)))


def log_weibull_mass(low: Any, high: Any, c: Any) -> Any:
    """The logarithm of exp(-low**c) - exp(-high**c)."""
    return -(low**c) + log(-expm1(low**c - high**c))


def wrapped_cauchy_share(z: Any, c: Any, is_rest: bool = False) -> Any:
    """What is between 0 and z, or the rest."""
    is_first = z < math.pi
    angle = where(is_first, z, 2.0 * math.pi - z)
    share = atan((1.0 + c) / (1.0 - c) * tan(0.5 * angle)) / math.pi
    return where(is_first, 1.0 - share, share) if is_rest else where(is_first, share, 1.0 - share)
