"""Moments of the scores of the gamma and beta distributions over a part of their range, by quadrature.

They are the derivatives of the incomplete gamma and beta functions by their parameters, of any order. In
terms of u = log t, or u = log(t / (1 - t)), both densities are log-concave with exponential or faster tails,
so that a bounded range holds all but a negligible part. That is halved where Gauss' formula does not agree
with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

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


def gamma_moment(a: Array, x: Array, order: int, upper: bool) -> Array:
    """The mean of score**order, where t is below x (above it if `upper`), for t of the gamma distribution.

    The score is the derivative of the logarithm of the density by the shape a: log t - digamma(a).

    Args:
        a: shapes, positive.
        x: limits, not negative; arrays of one shape.
    """
    from scipy.special import digamma, gammaln

    def log_density(u: Array, a: Array) -> Array:
        return a * u - np.exp(u) - gammaln(a)

    def integrand(u: Array, a: Array) -> Array:
        return (u - digamma(a)) ** order

    with np.errstate(all="ignore"):
        limit, mode = np.log(x), np.log(a)
    turned = (order == 1) & (upper != (x > a))  # the score's mean over all is 0: the lesser part is exact
    ends, valid = _side(limit, upper != turned), (a > 0) & (x >= 0)
    found = _integral(log_density, integrand, (a,), mode, *ends, valid, gammaln(a))
    return np.where(turned, -found, found)


def beta_moment(a: Array, b: Array, x: Array, of_a: int, of_b: int, upper: bool = False) -> Array:
    """The mean of score_a**of_a * score_b**of_b, where t is below x (above it if `upper`), for t of the beta
    distribution.

    The scores are the derivatives of the logarithm of the density: log t - digamma(a) + digamma(a + b), and
    with 1 - t and b in the place of t and a.

    Args:
        a, b: shapes, positive.
        x: limits, from 0 to 1; arrays of one shape.
    """
    from scipy.special import betaln, digamma

    def log_density(u: Array, a: Array, b: Array) -> Array:
        return -a * np.logaddexp(0.0, -u) - b * np.logaddexp(0.0, u) - betaln(a, b)

    def integrand(u: Array, a: Array, b: Array) -> Array:
        of_all = digamma(a + b)
        first = of_all - digamma(a) - np.logaddexp(0.0, -u)
        second = of_all - digamma(b) - np.logaddexp(0.0, u)
        return first**of_a * second**of_b

    with np.errstate(all="ignore"):
        limit, mode = np.log(x) - np.log1p(-x), np.log(a) - np.log(b)
    valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    turned = (of_a + of_b == 1) & (upper != (limit > mode))
    ends = _side(limit, upper != turned)
    found = _integral(log_density, integrand, (a, b), mode, *ends, valid, betaln(a, b))
    return np.where(turned, -found, found)


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
