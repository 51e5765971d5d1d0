"""Sorting as generated code calls it: by NumPy's sort of numbers, and what makes it stable. And bisection."""

from __future__ import annotations

import numpy as np

from .sorting import order, pack, sort

LONG, NEAR = 4096, 128
"""In rows longer than this so many places behind the last one are searched first: what is looked for may be
in order."""
AT_ONCE = 256
"""Neighbours in order that are compared without a branch before equal ones are looked for."""

MOVES = 4
"""Steps for each number that are taken to put numbers with the same first bits in order."""


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


def order_positions(keys: np.ndarray, out: np.ndarray) -> None:
    """The positions that sort the keys into `out`: nan comes last, equal keys in NumPy's order.

    Args: as of `sort_positions`.

    >>> order_positions(x[i], order[i])
    """
    for place in range(keys.shape[0]):
        out[place] = place
    order(keys, out)


def sort_positions(keys: np.ndarray, out: np.ndarray) -> None:
    """The positions that sort the keys into `out`: equal keys stay in order, nan comes last.

    Args:
        keys: shape (n,), integers or floats.
        out: shape (n,), int64.

    >>> sort_positions(x[i], order[i])
    """
    order_positions(keys, out)
    begin = 0  # of equal keys, or of nan
    for start in range(1, keys.shape[0], AT_ONCE):
        stop = min(start + AT_ONCE, keys.shape[0])
        ties = 0
        for place in range(start, stop):
            ties += 0 if keys[out[place - 1]] < keys[out[place]] else 1
        if ties == 0:
            if start - begin > 1:
                sort(out[begin:start])
            begin = stop - 1
        else:
            for place in range(start, stop):
                one = keys[out[begin]]
                other = keys[out[place]]
                if one != other and (one == one or other == other):
                    if place - begin > 1:
                        sort(out[begin:place])
                    begin = place
    sort(out[begin:])


def sort_float_positions(keys: np.ndarray, out: np.ndarray) -> None:
    """`sort_positions` of floats, by one sort of integers: the first bits of a number, then its place.

    Numbers with the same first bits are put in order afterwards; if these are many, all begins anew.

    >>> sort_float_positions(x[i], order[i])
    """
    count = keys.shape[0]
    pack(keys, out)
    sort(out)
    places = 1
    while places < count:
        places += places
    left = MOVES * count
    for start in range(1, count, AT_ONCE):
        stop = min(start + AT_ONCE, count)
        near = 0
        for place in range(start, stop):
            bits = out[place] ^ out[place - 1]
            near += 1 if bits >= 0 and bits < places else 0
        if near > 0:
            for place in range(start, stop):
                moved = 1 * out[place]
                one = keys[moved & (places - 1)]
                to = place
                bits = moved ^ out[to - 1]
                while bits >= 0 and bits < places and keys[out[to - 1] & (places - 1)] > one and left > 0:
                    out[to] = out[to - 1]
                    to -= 1
                    left -= 1
                    bits = moved ^ out[to - 1] if to > 0 else -1
                out[to] = moved
    if left > 0:
        for place in range(count):
            out[place] = out[place] & (places - 1)
    else:
        sort_positions(keys, out)


def search_left(ordered: np.ndarray, wanted: np.ndarray, out: np.ndarray) -> None:
    """How many elements of a row in order are less than each one that is wanted; nan is the largest.

    Args:
        ordered: shape (n,), nan last.
        wanted: shape (m,), of the same dtype.
        out: shape (m,), int64.

    >>> search_left(edges, x, places)
    """
    numbers = ordered.shape[0]
    while numbers > 0 and ordered[numbers - 1] != ordered[numbers - 1]:
        numbers -= 1
    first = 0
    for place in range(wanted.shape[0]):
        one = wanted[place]
        count = min(NEAR, numbers - first)
        is_near = numbers > LONG and (first == 0 or ordered[first - 1] < one)
        if not is_near or (first + count < numbers and ordered[first + count] < one):
            first = 0
            count = numbers
        while count > 1:  # without a branch that depends on what is found
            half = count // 2
            first = first + half if ordered[first + half - 1] < one else first
            count -= half
        if count > 0 and ordered[first] < one:
            first += 1
        out[place] = first if one == one else numbers


def search_right(ordered: np.ndarray, wanted: np.ndarray, out: np.ndarray) -> None:
    """How many elements of a row in order are not greater than each one that is wanted; nan is the largest.

    Args: as of `search_left`.

    >>> search_right(edges, x, places)
    """
    numbers = ordered.shape[0]
    while numbers > 0 and ordered[numbers - 1] != ordered[numbers - 1]:
        numbers -= 1
    first = 0
    for place in range(wanted.shape[0]):
        one = wanted[place]
        count = min(NEAR, numbers - first)
        is_near = numbers > LONG and (first == 0 or ordered[first - 1] <= one)
        if not is_near or (first + count < numbers and ordered[first + count] <= one):
            first = 0
            count = numbers
        while count > 1:
            half = count // 2
            first = first + half if ordered[first + half - 1] <= one else first
            count -= half
        if count > 0 and ordered[first] <= one:
            first += 1
        out[place] = first if one == one else ordered.shape[0]


FUNCTIONS = (
    sort_integers,
    sort_floats,
    order_positions,
    sort_positions,
    sort_float_positions,
    search_left,
    search_right,
)
"""Those that generated code calls."""
