"""Sorting as generated code calls it: plain loops, which Numba compiles with the function that calls them."""

from __future__ import annotations

import numpy as np


def sort_positions(keys: np.ndarray, out: np.ndarray) -> None:
    """The positions that sort the keys into `out[0]`, the rank of each key into `out[1]`.

    Runs of positions are merged, each round from one row of `out` into the other: Knuth, The Art of Computer
    Programming 3, section 5.2.4. Equal keys stay in order, nan comes last.

    Args:
        keys: shape (n,), integers or floats.
        out: shape (2, n), int64.

    >>> sort_positions(x[i], order[i])
    """
    count = keys.shape[0]
    for place in range(count):
        out[0, place] = place
    source = 0
    width = 1
    while width < count:
        target = 1 - source
        start = 0
        while start < count:
            middle = min(start + width, count)
            stop = min(middle + width, count)
            left = start
            right = middle
            for place in range(start, stop):
                takes_right = left == middle
                if not takes_right and right < stop:
                    one = keys[out[source, right]]
                    other = keys[out[source, left]]
                    takes_right = one < other or (other != other and one == one)
                if takes_right:
                    out[target, place] = out[source, right]
                    right += 1
                else:
                    out[target, place] = out[source, left]
                    left += 1
            start = stop
        source = target
        width = 2 * width
    if source == 1:
        for place in range(count):
            out[0, place] = out[1, place]
    for place in range(count):
        out[1, out[0, place]] = place


FUNCTIONS = (sort_positions,)
"""Those that generated code calls."""
