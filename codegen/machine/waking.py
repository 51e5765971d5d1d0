"""From how much work on threads share it: a machine measures once how long a sleeping worker takes to begin.

Whoever has work for T is done after (T + L) / 2 with a worker that begins after L: sharing never loses time
where T is more than L, and halves it where the worker is awake. What was measured is kept in the cache.
"""

from __future__ import annotations

import contextlib
import functools
import time

from . import store, workers
from .loading import host_cpu_name
from .threads import available_cores

LEAST, MOST = 20e-6, 80e-6
"""Seconds of work: below, work is never shared, above always, whatever a busy machine measures."""
WITH_ONE_CORE = 80e-6
PARTS, SECONDS = 24, 10e-6
"""Of the work that is shared to find L: how many parts, and how long each takes."""
TRIALS = 9


@functools.cache
def worth_sharing() -> float:
    """The seconds of work from which another thread gains time."""
    if available_cores() == 1:
        return WITH_ONE_CORE
    entry = f"time_to_wake.{host_cpu_name()}.{available_cores()}"
    with contextlib.suppress(ValueError):
        return float((store.read(entry) or b"").decode())
    found = min(max(LEAST, _seconds_to_wake()), MOST)
    store.write(entry, f"{found:.2g}".encode())
    return found


def _seconds_to_wake() -> float:
    """How long after work is offered a worker that sleeps begins with it."""
    workers.time_of_parts(PARTS, SECONDS, helpers=1)  # it starts
    alone = min(workers.time_of_parts(PARTS, SECONDS, helpers=0) for _ in range(3))
    shared = []
    for _ in range(TRIALS):
        time.sleep(5 * workers.PATIENCE)
        shared.append(workers.time_of_parts(PARTS, SECONDS, helpers=1))
    return max(0.0, 2 * min(shared) - alone)  # others may be busy on the machine
