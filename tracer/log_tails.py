"""Logarithms of the incomplete gamma and beta functions, also where these are less than the least number.

There they are a power times a fraction that hardly changes: NIST Digital Library of Mathematical Functions
(dlmf.nist.gov), 8.7.1 and 8.9.2 (gamma), 8.17.22 (beta).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from .ops.gamma_ratios import log_beta, log_power_over_gamma

Array = np.ndarray
LEAST = 1e-290
"""Below it numbers lose digits, and functions of SciPy's some more."""
MOST_TERMS = 100_000
SMALL = 1e-300
"""In the place of 0 in Lentz' method."""


def log_gammainc(a: Array, x: Array, upper: bool) -> Array:
    """Of the share of gamma variables below x, or above."""
    from scipy.special import gammainc, gammaincc

    share, rest = (gammaincc(a, x), gammainc(a, x)) if upper else (gammainc(a, x), gammaincc(a, x))
    return _with_tail(share, rest, _gamma_above if upper else _gamma_below, (a, x), (x > 0) & (x < np.inf))


def log_betainc(a: Array, b: Array, x: Array, upper: bool) -> Array:
    """Of the share of beta variables below x, or above."""
    from scipy.special import betainc, betaincc

    with np.errstate(all="ignore"):
        logarithms = np.log(x), np.log1p(-x)
    share, rest = betainc(a, b, x), betaincc(a, b, x)
    below, above = (a, b, x, *logarithms), (b, a, 1.0 - x, *reversed(logarithms))
    inside = (x > 0) & (x < 1) & (a > 0) & (b > 0)
    if upper:
        return _with_tail(rest, share, _beta, above, inside)
    return _with_tail(share, rest, _beta, below, inside)


def _with_tail(
    share: Array, rest: Array, tail: Callable[..., Array], parameters: tuple[Array, ...], inside: Array
) -> Array:
    with np.errstate(all="ignore"):
        found = np.where(share > 0.5, np.log1p(-rest), np.log(share))
        far = inside & (share < LEAST)
        if far.any():
            found[far] = tail(*(one[far] for one in parameters))
    return found


def _gamma_below(a: Array, x: Array) -> Array:
    """x**a exp(-x) / gamma(a + 1), times the sum of x**n / ((a + 1) ... (a + n))."""
    total, term = np.ones_like(x), np.ones_like(x)
    for n in range(1, MOST_TERMS):
        term = term * x / (a + n)
        total += term
        if (term <= 1e-17 * total).all():
            break
    return log_power_over_gamma(a, x) - np.log(a) + np.log(total)


def _gamma_above(a: Array, x: Array) -> Array:
    """x**a exp(-x) / gamma(a), over a continued fraction."""

    def parts() -> Iterator[tuple[Array, Array]]:
        for n in range(1, MOST_TERMS):
            yield n * (a - n), x + 2 * n + 1 - a

    return log_power_over_gamma(a, x) - np.log(_fraction(x + 1 - a, parts()))


def _beta(a: Array, b: Array, x: Array, log_x: Array, log_rest: Array) -> Array:
    """x**a (1 - x)**b / (a beta(a, b)), over a continued fraction, which converges below the mean."""

    def parts() -> Iterator[tuple[Array, Array]]:
        one = np.ones_like(x)
        for m in range(MOST_TERMS // 2):
            yield -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), one
            k = m + 1
            yield k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)), one

    return a * log_x + b * log_rest - np.log(a) - log_beta(a, b) - np.log(_fraction(np.ones_like(x), parts()))


def _fraction(first: Array, parts: Iterator[tuple[Array, Array]]) -> Array:
    """b0 + a1 / (b1 + a2 / (b2 + ...)) by Lentz' method, of the pairs (a, b)."""
    total = np.where(first == 0, SMALL, first)
    upper, lower = total.copy(), np.zeros_like(total)
    for above, beside in parts:
        lower = beside + above * lower
        upper = beside + above / upper
        lower = 1.0 / np.where(lower == 0, SMALL, lower)
        upper = np.where(upper == 0, SMALL, upper)
        change = upper * lower
        total = total * change
        if (np.abs(change - 1.0) <= 2e-16).all():
            break
    return total

