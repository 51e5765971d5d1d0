"""Derivatives of the incomplete gamma and beta functions by their parameters, of any order, by quadrature.

They are means of what differentiating the density gives, over a part of its range. In terms of u = log t, or
u = log(t / (1 - t)), both densities are log-concave with exponential or faster tails, so that a bounded range
holds all but a negligible part. That is halved where Gauss' formula does not agree with itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray
Density = Callable[..., Array]
"""(u, *parameters) -> the logarithm of a density."""

NEGLIGIBLE = 60.0
"""How much smaller than its largest value the logarithm of a density is where the range ends."""
NODES = 20
AGREEMENT = 1e-14
"""Of Gauss' formula on an interval and on its halves, relative to the integral of what has one sign."""
ROUNDING = 4.0 * np.finfo(float).eps
MOST_HALVINGS = 60


def density_slope(log_slope: Callable[[int, int], Any], of_a: int, of_b: int = 0) -> Any:
    """A derivative of p by a and b over p, by those of log p: Leibniz' rule for p' = p (log p)'.

    Args:
        log_slope: (order by a, order by b) -> the derivative of log p; of arrays, or of operators' results.
    """
    if not (of_a or of_b):
        return 1.0
    first, others = (1, of_b) if of_a else (0, of_b - 1)
    total: Any = 0.0
    for i in range(max(of_a, 1)):
        for j in range(others + 1):
            ways = math.comb(max(of_a - 1, 0), i) * math.comb(others, j)
            rest = density_slope(log_slope, of_a - first - i, others - j)
            total = total + ways * log_slope(i + first, j + 1 - first) * rest
    return total


def gamma_log_slope(score: Any, a: Any, polygamma: Callable[[int, Any], Any]) -> Callable[[int, int], Any]:
    """Those of the gamma distribution's density by its shape, of which the first is the score."""
    return lambda i, j: score if i == 1 else -polygamma(i - 1, a)


def beta_log_slope(
    score_a: Any, score_b: Any, a: Any, b: Any, polygamma: Callable[[int, Any], Any]
) -> Callable[[int, int], Any]:
    """The same of the beta distribution by both shapes."""

    def slope(i: int, j: int) -> Any:
        if i + j == 1:
            return score_a if i else score_b
        of_both = polygamma(i + j - 1, a + b)
        return of_both if i and j else of_both - polygamma(i + j - 1, a if i else b)

    return slope


def gamma_slope(a: Array, x: Array, order: int, upper: bool, relative: bool = False) -> Array:
    """The derivative by a of the probability of gamma variables t below x (above it if `upper`).

    Args:
        a: shapes, positive.
        x: limits, not negative; arrays of one shape.
        order: of the derivative.
        relative: whether it is divided by the probability, however small that is.
    """
    from scipy.special import digamma, gammainc, gammaincc, gammaln, polygamma

    def log_density(u: Array, a: Array) -> Array:
        return a * u - np.exp(u) - gammaln(a)

    def beside_limit(u: Array, a: Array, x: Array, limit: Array) -> Array:
        return a * (u - limit) - x * np.expm1(u - limit)

    def integrand(u: Array, a: Array, *others: Array) -> Array:
        found: Array = density_slope(gamma_log_slope(u - digamma(a), a, polygamma), order)
        return found + np.zeros_like(u)

    with np.errstate(all="ignore"):
        limit, mode, share = np.log(x), np.log(a), (gammaincc if upper else gammainc)(a, x)
    valid, is_lesser = (a > 0) & (x >= 0), (x > a) == upper
    if not relative:
        return _of_lesser_part(
            log_density, integrand, (a,), mode, limit, valid, gammaln(a), is_lesser | (order == 0), upper
        )
    with np.errstate(all="ignore"):
        found = gamma_slope(a, x, order, upper) / share
    parts = valid & is_lesser & np.isfinite(limit)
    of_limit = (a, x, limit)
    return _quotient(found, parts, beside_limit, integrand, of_limit, mode, limit, upper)


def beta_slope(
    a: Array, b: Array, x: Array, of_a: int, of_b: int, upper: bool = False, relative: bool = False
) -> Array:
    """The derivative by a and b of the probability of beta variables t below x (above it if `upper`).

    Args:
        a, b: shapes, positive.
        x: limits, from 0 to 1; arrays of one shape.
        of_a, of_b: orders of the derivative.
        relative: whether it is divided by the probability, however small that is.
    """
    from scipy.special import betainc, betaincc, betaln, digamma, polygamma

    def log_density(u: Array, a: Array, b: Array) -> Array:
        return -a * np.logaddexp(0.0, -u) - b * np.logaddexp(0.0, u) - betaln(a, b)

    def beside_limit(u: Array, a: Array, b: Array, x: Array, limit: Array) -> Array:
        with np.errstate(over="ignore"):
            apart = a * np.log1p((1.0 - x) * np.expm1(limit - u)) + b * np.log1p(x * np.expm1(u - limit))
        return -apart

    def integrand(u: Array, a: Array, b: Array, *others: Array) -> Array:
        of_all = digamma(a + b)
        first = of_all - digamma(a) - np.logaddexp(0.0, -u)
        second = of_all - digamma(b) - np.logaddexp(0.0, u)
        found: Array = density_slope(beta_log_slope(first, second, a, b, polygamma), of_a, of_b)
        return found + np.zeros_like(u)

    with np.errstate(all="ignore"):
        limit, mode = np.log(x) - np.log1p(-x), np.log(a) - np.log(b)
        share = (betaincc if upper else betainc)(a, b, x)
    valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    is_lesser = (limit > mode) == upper
    if not relative:
        lesser = is_lesser | (of_a + of_b == 0)
        return _of_lesser_part(
            log_density, integrand, (a, b), mode, limit, valid, betaln(a, b), lesser, upper
        )
    with np.errstate(all="ignore"):
        found = beta_slope(a, b, x, of_a, of_b, upper) / share
    parts = valid & is_lesser & np.isfinite(limit)
    return _quotient(found, parts, beside_limit, integrand, (a, b, x, limit), mode, limit, upper)


def _of_lesser_part(
    log_density: Density,
    integrand: Density,
    parameters: tuple[Array, ...],
    mode: Array,
    limit: Array,
    valid: Array,
    constant: Array,
    is_lesser: Array,
    upper: bool,
) -> Array:
    """The mean over one side of the limit, where the other is less by that: all together it is 0."""
    ends = _side(limit, is_lesser == upper)
    found = _integral(log_density, integrand, parameters, mode, *ends, valid, constant)
    return np.where(is_lesser, found, -found)


def _quotient(
    found: Array,
    chosen: Array,
    log_density: Density,
    integrand: Density,
    parameters: tuple[Array, ...],
    mode: Array,
    limit: Array,
    upper: bool,
) -> Array:
    """The same over the probability, by densities relative to that at the limit, which may be 0 itself."""
    if not chosen.any():
        return found
    given, at = tuple(one[chosen] for one in parameters), limit[chosen]
    ends, all_valid, nothing = _side(at, upper), np.ones(at.shape, bool), np.zeros(at.shape)
    part, whole = (
        _integral(log_density, one, given, mode[chosen], *ends, all_valid, nothing)
        for one in (integrand, lambda u, *given: np.ones_like(u))
    )
    found[chosen] = part / whole
    return found


def _side(limit: Array, is_above: Array | bool) -> tuple[Array, Array]:
    """From where to where it is above a limit, or below."""
    return np.where(is_above, limit, -np.inf), np.where(is_above, np.inf, limit)


def _integral(
    log_density: Density,
    integrand: Density,
    parameters: tuple[Array, ...],
    mode: Array,
    below: Array,
    above: Array,
    valid: Array,
    constant: Array,
) -> Array:
    """Of density * integrand from `below` to `above`, for each element; nan where it is not valid.

    The logarithm of the density is a difference from this constant: in a large one digits are lost, and no
    formula agrees with itself in more than are left.
    """
    result = np.where(valid, 0.0, np.nan)
    chosen = valid & (below < above) & np.isfinite(mode)
    if not chosen.any():
        return result
    given = tuple(one[chosen] for one in parameters)
    tolerance = np.maximum(AGREEMENT, ROUNDING * np.abs(constant[chosen]))
    top = np.clip(mode[chosen], below[chosen], above[chosen])
    found = np.zeros_like(top)
    for direction, end in ((-1.0, below[chosen]), (1.0, above[chosen])):
        for near, far in _intervals(log_density, given, top, direction, end):
            ends = np.minimum(near, far), np.maximum(near, far)
            found += _adaptive(log_density, integrand, given, *ends, tolerance)
    result[chosen] = found
    return result


def _intervals(
    log_density: Density, parameters: tuple[Array, ...], top: Array, direction: float, end: Array
) -> Iterator[tuple[Array, Array]]:
    """From the top to an end, or to where all is negligible; each twice as long as the one before.

    The first is so short that the density does not change much: no bend between nodes stays unseen.
    """
    highest = log_density(top, *parameters)

    def falls_by(distance: Array) -> Array:
        return highest - log_density(top + direction * distance, *parameters)

    distance = np.ones_like(top)
    while (steep := falls_by(distance) > 1.0).any():
        distance = np.where(steep, 0.5 * distance, distance)
    near, room = np.zeros_like(top), np.abs(end - top)
    while ((near < room) & (falls_by(near) <= NEGLIGIBLE)).any():
        far = np.minimum(distance, room)
        yield top + direction * near, top + direction * far
        near, distance = far, 2.0 * distance


@cache
def _gauss() -> tuple[Array, Array]:
    """Nodes and weights on the interval from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def _adaptive(
    log_density: Density,
    integrand: Density,
    parameters: tuple[Array, ...],
    low: Array,
    high: Array,
    tolerance: Array,
) -> Array:
    """The integral for each element, by Gauss' formula on intervals that are halved until it agrees with
    itself."""
    total, scale, owner = np.zeros_like(low), np.zeros_like(low), np.arange(low.size)
    nodes, weights = _gauss()

    def formula(low: Array, high: Array, owner: Array) -> tuple[Array, Array]:
        """The integral, and that of what is integrated without its sign."""
        u = low[:, None] + (high - low)[:, None] * nodes
        given = [one[owner][:, None] for one in parameters]
        values = np.exp(log_density(u, *given)) * integrand(u, *given)
        return (values @ weights) * (high - low), (np.abs(values) @ weights) * (high - low)

    whole, _ = formula(low, high, owner)
    for _ in range(MOST_HALVINGS):
        middle = 0.5 * (low + high)
        (left, left_size), (right, right_size) = formula(low, middle, owner), formula(middle, high, owner)
        np.maximum.at(scale, owner, left_size + right_size)
        agrees = np.abs(left + right - whole) <= tolerance[owner] * scale[owner]
        agrees |= ~np.isfinite(left_size + right_size)  # halves would not be either
        np.add.at(total, owner[agrees], (left + right)[agrees])
        rest = ~agrees
        if not rest.any():
            break
        low, high = np.concatenate([low[rest], middle[rest]]), np.concatenate([middle[rest], high[rest]])
        whole, owner = np.concatenate([left[rest], right[rest]]), np.concatenate([owner[rest], owner[rest]])
    else:
        np.add.at(total, owner, whole)
    return total
