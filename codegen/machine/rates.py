"""How fast this machine computes beside the reference machine: measured once, in a millisecond, and kept.

Decisions need no more than the order of a rate, and text should not depend on what else ran meanwhile: so
they are powers of two, and the reference machine's where it is less than twice as fast or slow. How fast
memory is cannot be measured as quickly, since new pages cost more than that.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import platform
import time
from collections.abc import Callable

import numpy as np

from ..cost import system
from . import store

REFERENCE_TIMES = {"arithmetic": 0.04, "access": 0.05}
"""Nanoseconds that the reference machine takes for a multiplication of a product, and to load or store."""
ROUNDS, CALLS = 7, 20
SIDE, SHORT = 64, 1024
"""The side of matrices that are multiplied, and numbers in vectors that are added; all stay in a cache."""


@functools.cache
def rates() -> dict[str, float]:
    """How many times as fast as the reference machine this one is, by what it does.

    >>> rates()
    {'arithmetic': 0.5, 'access': 1.0}
    """
    entry = f"rates.{_machine_name()}"
    try:
        known = {name: float(rate) for name, rate in json.loads(store.read(entry) or b"{}").items()}
    except (AttributeError, TypeError, ValueError):
        known = {}
    if known.keys() != REFERENCE_TIMES.keys() or not all(map(_is_plausible, known.values())):
        known = _measured()
        store.write(entry, json.dumps(known).encode())
    return known


def _is_plausible(rate: float) -> bool:
    return 2**-6 <= rate <= 2**6


def _machine_name() -> str:
    """What tells one processor from another where several machines share a folder."""
    known = (platform.machine(), system.processor_name(), sorted(system.facts().items()))
    return hashlib.sha256(repr(known).encode()).hexdigest()[:16]


def _measured() -> dict[str, float]:
    own = {"arithmetic": _time_of_multiplication(), "access": _time_of_access()}
    return {
        name: min(max(2.0 ** math.trunc(math.log2(reference / max(own[name], 1e-9))), 2**-6), 2**6)
        for name, reference in REFERENCE_TIMES.items()
    }


def _time_of_multiplication() -> float:
    matrix, result = np.ones((SIDE, SIDE)), np.empty((SIDE, SIDE))
    return _time_of(lambda: np.dot(matrix, matrix, out=result)) / SIDE**3


def _time_of_access() -> float:
    """Of what a vector takes more than one half as long, which leaves out the call."""

    def addition(count: int) -> float:
        one, other, result = np.ones(count), np.ones(count), np.empty(count)
        return _time_of(lambda: np.add(one, other, out=result))

    return (addition(2 * SHORT) - addition(SHORT)) / (3 * SHORT)


def _time_of(call: Callable[[], object]) -> float:
    """Nanoseconds of a call at its best: others may be busy on the machine."""
    found = []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for _ in range(CALLS):
            call()
        found.append((time.perf_counter_ns() - begin) / CALLS)
    return min(found)
