"""Arguments to look at: over a whole domain evenly by the bits, over ranges, next to hard places."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .accuracy import CASES, Case, Range
from .primitives import Format

NEIGHBOURS = 2  # on either side of a hard place
CHUNK = 2**20


def whole_domain(domain: Range, number_format: Format, count: int, random: np.random.Generator) -> np.ndarray:
    """Finite floats of the domain, each as likely as any other."""
    low, high = (_position(end, number_format) for end in domain)
    return _floats(random.integers(low, high, count, endpoint=True), number_format)


def every(step: int, domain: Range, number_format: Format) -> Iterator[np.ndarray]:
    """Every `step`-th finite float of the domain, some at a time."""
    low, high = (_position(end, number_format) for end in domain)
    for start in range(low, high + 1, CHUNK * step):
        positions = np.arange(start, min(start + CHUNK * step, high + 1), step, dtype=np.int64)
        yield _floats(positions, number_format)


def _position(x: float, number_format: Format) -> int:
    """The number of floats from 0 to the finite float next to x, negative for a negative x."""
    largest = float(np.finfo(number_format.float_type).max)
    bits = number_format.bits_of(min(abs(x), largest))
    return bits if x >= 0 else -bits


def _floats(positions: np.ndarray, number_format: Format) -> np.ndarray:
    x: np.ndarray = np.abs(positions).astype(number_format.bits_type).view(number_format.float_type)
    return np.where(positions < 0, -x, x)


def near(case: Case, number_format: Format) -> np.ndarray:
    """The floats next to the case's hard places."""
    with np.errstate(over="ignore"):
        places: np.ndarray = np.array([float(place) for place in case.near()], number_format.float_type)
    places = places[np.isfinite(places)]
    below = above = places
    found, infinity = [places], places.dtype.type(np.inf)
    for _ in range(NEIGHBOURS):
        below, above = np.nextafter(below, -infinity), np.nextafter(above, infinity)
        found += [below, above]
    return np.concatenate(found)


def operands(case: Case, number_format: Format, everywhere: int, each_range: int) -> list[np.ndarray]:
    """`everywhere` floats of the whole domain, `each_range` numbers of each range, and the hard places."""
    random = np.random.default_rng(0)
    drawn, kind = [], number_format.float_type
    for _ in range(case.operands):
        parts = [
            whole_domain(case.domain, number_format, everywhere, random),
            *(random.uniform(low, high, each_range).astype(kind) for low, high in case.ranges),
            near(case, number_format),
        ]
        drawn.append(np.concatenate(parts))
    if case is CASES["power"]:
        drawn[1] = _exponents(drawn[0], random, number_format)
    return drawn


def _exponents(bases: np.ndarray, random: np.random.Generator, number_format: Format) -> np.ndarray:
    """Exponents that spread the powers over the format's range, and a little beyond."""
    widest = (number_format.bias + 1) * np.log(2.0)
    with np.errstate(divide="ignore", over="ignore"):
        exponents = random.uniform(-1.1, 1.1, bases.size) * widest / np.log(bases.astype(np.float64))
        return exponents.astype(number_format.float_type)
