"""Sorting as generated code calls it: by NumPy's sort of numbers, and what makes it stable. And bisection."""

from __future__ import annotations

from math import inf

import numpy as np

from ..tracer.ops.ordering import MOST_SELECTED, SHORT
from .sorting import order, pack, sort

LONG, NEAR = 4096, 128
"""In rows longer than this so many places behind the last one are searched first: what is looked for may be
in order."""
AT_ONCE = 256
"""Neighbours in order that are compared without a branch before equal ones are looked for."""

LEAST_SAMPLES = 512
"""Keys of a sample, twice as many until its third power is four times the square of the number of keys."""
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


def select_floats(keys: np.ndarray, places: np.ndarray, out: np.ndarray) -> None:
    """The elements that stand at places of the keys in order into the first of `out`; what follows is room.

    Keys between two of a sample that enclose a place are sorted, or all of them: where there are few, or the
    sample does not tell, as of many equal ones or nan. R. W. Floyd and R. L. Rivest, Expected time bounds for
    selection (1975).

    Args:
        keys: shape (n,), floats.
        places: shape (m,), int64, from 0 to n - 1.
        out: shape (m + n,), of the dtype of the keys.

    >>> select_floats(x[i], places[i], values[i])
    """
    size = keys.shape[0]
    count = places.shape[0]
    first = 0  # of the places whose elements lie behind the results, in order, and how many these are
    known = 0
    for wanted in range(count):
        place = 1 * places[wanted]
        if place < first or place >= first + known:
            first = 0
            known = 0
            if size > SHORT and count <= MOST_SELECTED:
                if place == size - 1:  # the largest
                    largest = -inf
                    for one in range(size):
                        key = keys[one]
                        largest = key if key > largest or key != key else largest
                    first = place
                    known = 1
                    out[count] = largest
                else:
                    samples = LEAST_SAMPLES
                    while samples * samples * samples < 4 * size * size:
                        samples += samples
                    spread = 1
                    while spread * spread < 4 * samples:
                        spread += spread
                    step = size * 618034 // 1000000  # of the golden section, so that no part is left out
                    sampled = 0
                    for one in range(samples):
                        out[count + one] = keys[sampled]
                        sampled += step
                        sampled -= size if sampled >= size else 0
                    sort(out[count : count + samples])
                    middle = place * samples // size
                    low = -inf
                    if middle >= spread:
                        low = 1.0 * out[count + middle - spread]
                    high = inf
                    if middle + spread < samples:
                        high = 1.0 * out[count + middle + spread]
                    for one in range(size):
                        key = keys[one]
                        out[count + known] = key
                        first += 1 if key < low else 0
                        known += 1 if key >= low and key <= high else 0
                    sort(out[count : count + known])
            if place < first or place >= first + known:
                first = 0
                known = size
                for one in range(size):
                    out[count + one] = keys[one]
                sort(out[count:])
        found = 1.0 * out[count + place - first]
        if found == 0.0:  # of both signs, in the order in which they are given
            left = 1 * place
            for one in range(size):
                left -= 1 if keys[one] < 0.0 else 0
            to = 0
            while left > 0 or keys[to] != 0.0:
                left -= 1 if keys[to] == 0.0 else 0
                to += 1
            found = 1.0 * keys[to]
        out[wanted] = found


def find_selected(keys: np.ndarray, places: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
    """Where the elements lie that stand at places of the keys in order, given these; equal ones as they lie.

    Args:
        keys: shape (n,), floats.
        places, values: shape (m,), as of `select_floats`, and what it finds.
        out: shape (m,), int64.

    >>> find_selected(x[i], places[i], values[i], positions[i])
    """
    size = keys.shape[0]
    for wanted in range(places.shape[0]):
        found = 1.0 * values[wanted]
        left = 1 * places[wanted]
        start = 0
        same = 0
        if found == found:
            for one in range(size):
                left -= 1 if keys[one] < found else 0
        else:
            for one in range(size):
                left -= 1 if keys[one] == keys[one] else 0
        goes_on = True
        while goes_on:  # through blocks without what is looked for
            same = 0
            for one in range(start, min(start + AT_ONCE, size)):
                same += 1 if keys[one] == found or (found != found and keys[one] != keys[one]) else 0
            goes_on = same <= left and start + AT_ONCE < size
            left -= same if goes_on else 0
            start += AT_ONCE if goes_on else 0
        goes_on = True
        while goes_on:
            is_same = keys[start] == found or (found != found and keys[start] != keys[start])
            goes_on = (left > 0 or not is_same) and start + 1 < size
            left -= 1 if is_same else 0
            start += 1 if goes_on else 0
        out[wanted] = start


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
    select_floats,
    find_selected,
    order_positions,
    sort_positions,
    sort_float_positions,
    search_left,
    search_right,
)
"""Those that generated code calls."""
