"""How long a sleeping worker takes to begin with what it is given: measured once, and kept in the cache."""

from __future__ import annotations

import contextlib
import functools
import time

from ..cost.system import available_cores
from . import store, workers
from .loading import host_cpu_name

PARTS, SECONDS = 24, 10e-6
"""Of the work that is shared to find it: how many parts, and how long each takes."""
TRIALS = 9


@functools.cache
def hand_over() -> float:
    """The nanoseconds after which another thread begins."""
    entry = f"time_to_wake.{host_cpu_name()}.{available_cores()}"
    with contextlib.suppress(ValueError):
        return 1e9 * float((store.read(entry) or b"").decode())
    found = _seconds_to_wake()
    store.write(entry, f"{found:.2g}".encode())
    return 1e9 * found


def _seconds_to_wake() -> float:
    """How long after work is offered a worker that sleeps begins with it."""
    workers.time_of_parts(PARTS, SECONDS, helpers=1)  # it starts
    alone = min(workers.time_of_parts(PARTS, SECONDS, helpers=0) for _ in range(3))
    shared = []
    for _ in range(TRIALS):
        time.sleep(5 * workers.PATIENCE)
        shared.append(workers.time_of_parts(PARTS, SECONDS, helpers=1))
    return max(0.0, 2 * min(shared) - alone)  # others may be busy on the machine
