"""Sums of Chebyshev polynomials."""

from __future__ import annotations

from collections.abc import Sequence

from .primitives import Number, fused_multiply_add


def chebyshev(t: Number, coefficients: Sequence[float]) -> Number:
    """The sum of coefficients[k] * T_k(t), by Clenshaw's recurrence (DLMF 3.11.15), for |t| <= 1."""
    first, *others = coefficients
    twice = t + t
    before: Number = t * 0.0
    last: Number = before + others[-1]
    for one in reversed(others[:-1]):
        last, before = fused_multiply_add(twice, last, one - before), last
    return fused_multiply_add(t, last, first - before)
