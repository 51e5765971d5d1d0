"""Sorting as generated code calls it: by NumPy's sort of numbers, and what makes it stable."""

from __future__ import annotations

import numpy as np

from .sorting import order, sort


def sort_integers(keys: np.ndarray, out: np.ndarray) -> None:
    """The keys in order into `out`.

    Args:
        keys: shape (n,), integers.
        out: shape (n,), of the same dtype.

    >>> sort_integers(x[i], values[i])
    """
    for place in range(keys.shape[0]):
        out[place] = keys[place]
    sort(out)


def sort_floats(keys: np.ndarray, out: np.ndarray) -> None:
    """The keys in order into `out`: nan last, zeros of both signs in the order in which they are given.

    Args:
        keys: shape (n,), floats.
        out: shape (n,), of the same dtype.

    >>> sort_floats(x[i], values[i])
    """
    sort_integers(keys, out)
    first = 0  # the place of the first zero
    stop = keys.shape[0]
    while first < stop:
        middle = (first + stop) // 2
        if out[middle] < 0.0:
            first = middle + 1
        else:
            stop = middle
    if first + 1 < keys.shape[0] and out[first + 1] == 0.0:
        for place in range(keys.shape[0]):
            if keys[place] == 0.0:
                out[first] = keys[place]
                first += 1


def sort_positions(keys: np.ndarray, out: np.ndarray) -> None:
    """The positions that sort the keys into `out`: equal keys stay in order, nan comes last.

    Args:
        keys: shape (n,), integers or floats.
        out: shape (n,), int64.

    >>> sort_positions(x[i], order[i])
    """
    for place in range(keys.shape[0]):
        out[place] = place
    order(keys, out)
    begin = 0
    for place in range(1, keys.shape[0]):
        one = keys[out[begin]]
        other = keys[out[place]]
        if one != other and (one == one or other == other):
            if place - begin > 1:
                sort(out[begin:place])
            begin = place
    sort(out[begin:])


FUNCTIONS = (sort_integers, sort_floats, sort_positions)
"""Those that generated code calls."""
