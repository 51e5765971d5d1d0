"""One workload on all libraries: first the same results, then times, taken in turn."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from .agreement import differences
from .peers import NATIVE, OURS, PEERS
from .worker import PeerError, TooSlow, Worker
from .workload import NotOffered, Workload

T = TypeVar("T")

SLOW_CALL = 0.3
"""Seconds: a longer call is a turn by itself, without another to warm up."""
IMPORT_LIMIT = 120.0
"""Seconds for importing a library and making inputs."""


@dataclass(frozen=True)
class Effort:
    """How long to measure, in seconds where nothing else is said."""

    rounds: int
    """How often each library has its turn."""
    turn: float
    """How long a turn takes at least."""
    slow_turns: float
    """How long all turns of a library take together, where calls are slow; but three turns at least."""
    compile_limit: float
    """For the first call of a library."""
    pause: float = 0.05
    """Between turns: threads of the last library may still spin, in wait of work."""

    def turns(self, seconds: float, limit: float) -> int:
        """How many turns a library has whose calls take `seconds`, with a limit for all of them."""
        if seconds <= SLOW_CALL:
            return self.rounds
        wanted = max(3, int(self.slow_turns / seconds))
        return max(1, min(self.rounds, wanted, int(limit / seconds)))


FULL = Effort(rounds=15, turn=0.1, slow_turns=10.0, compile_limit=120.0)
QUICK = Effort(rounds=5, turn=0.02, slow_turns=2.0, compile_limit=60.0)


@dataclass
class Timing:
    """What was measured of one library; times in seconds, memory in bytes."""

    first: float
    """Building the function and calling it once, in a new process."""
    first_memory: int | None
    """The most that this needed, above the imported library and the inputs."""
    memory: int | None = None
    """The most that later calls need, above what is there between them."""
    samples: list[float] = field(default_factory=list)
    """Per call: one figure from each turn."""

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """The lower quartile, the median, the upper one."""
        low, middle, high = np.quantile(self.samples, (0.25, 0.5, 0.75))
        return float(low), float(middle), float(high)

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


@dataclass
class Comparison:
    """All that was measured of a workload."""

    workload: Workload
    bytes: float
    timings: dict[str, Timing] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """By library, why it could not run the workload."""
    too_slow: dict[str, str] = field(default_factory=dict)
    """By library, in what it took too long."""
    differences: dict[str, str] = field(default_factory=dict)
    """By library, how its results differ."""
    not_offered: dict[str, str] = field(default_factory=dict)
    """By library, why it has no way to run the workload."""
    first_calls: dict[str, float] = field(default_factory=dict)
    """Of ours, in a new process: "import", and the first call "cold" and with the cache on "disk"."""

    @property
    def best_peer(self) -> str | None:
        """The fastest of the other libraries that compute the gradient."""
        others = [name for name in self.timings if name != OURS and PEERS[name].counts]
        return min(others, key=lambda name: self.timings[name].median, default=None)

    @property
    def ratio(self) -> float | None:
        """The time of the best peer in units of ours: above one, ours is faster."""
        return None if self.best_peer is None else self.ratio_to(self.best_peer)

    @property
    def native_ratio(self) -> float | None:
        """The time of the hand-written C in units of ours."""
        return self.ratio_to(NATIVE)

    def ratio_to(self, peer: str) -> float | None:
        if peer not in self.timings or OURS not in self.timings:
            return None
        return self.timings[peer].median / self.timings[OURS].median

    def note(self, peer: str, error: Exception) -> None:
        """That a library could not go on; what was measured of it is dropped."""
        self.timings.pop(peer, None)
        if isinstance(error, NotOffered):
            self.not_offered[peer] = str(error)
        elif isinstance(error, TooSlow):
            self.too_slow[peer] = str(error)
        else:
            self.failures[peer] = str(error)


def compare(workload: Workload, peers: Sequence[str], effort: Effort) -> Comparison:
    """Check that the libraries agree, then time them; each has a new process.

    A library that fails, takes too long or differs from the first one is not timed any further.
    """
    inputs = workload.inputs()
    comparison = Comparison(workload, workload.bytes_moved(inputs))
    dtype = workload.dtype(inputs)
    del inputs
    workers = [Worker(peer, workload.name) for peer in peers]
    try:
        _measure(comparison, _Group(workers, comparison), dtype, effort)
    finally:
        for worker in workers:
            worker.close()
    return comparison


class _Group:
    """The workers that are still in the comparison."""

    def __init__(self, workers: Sequence[Worker], comparison: Comparison) -> None:
        self.workers = list(workers)
        self.comparison = comparison

    def each(self, ask: Callable[[Worker], T]) -> dict[str, T]:
        """The answers by name; a worker that raises leaves the group."""
        answers = {}
        for worker in list(self.workers):
            try:
                answers[worker.peer] = ask(worker)
            except (PeerError, NotOffered) as error:
                self.comparison.note(worker.peer, error)
                self.leave(worker)
        return answers

    def leave(self, worker: Worker) -> None:
        self.workers.remove(worker)
        worker.close()


def _measure(comparison: Comparison, group: _Group, dtype: str, effort: Effort) -> None:
    limit = comparison.workload.seconds_limit
    group.each(lambda worker: worker.wait(IMPORT_LIMIT))
    for peer, first in group.each(lambda worker: worker.first_call(effort.compile_limit)).items():
        comparison.timings[peer] = Timing(first.seconds, first.memory)

    results = group.each(lambda worker: worker.results(limit))
    if not results:
        return
    value_alone = [peer for peer in results if not PEERS[peer].gradient]
    comparison.differences = differences(comparison.workload, dtype, results, value_alone)
    for worker in [one for one in group.workers if one.peer in comparison.differences]:
        comparison.timings.pop(worker.peer)
        group.leave(worker)

    plans = group.each(lambda worker: _plan(worker, effort, limit))
    memory_calls = {peer: 1 if plan.slow else 3 for peer, plan in plans.items()}
    for peer, memory in group.each(lambda worker: worker.memory(memory_calls[worker.peer], limit)).items():
        comparison.timings[peer].memory = memory
    for turn in range(effort.rounds):
        _round(comparison, group, plans, turn, effort)


def _round(comparison: Comparison, group: _Group, plans: dict[str, _Plan], turn: int, effort: Effort) -> None:
    """One turn for each library that has one left, beginning with another one each round."""

    def measure(worker: Worker) -> None:
        plan = plans[worker.peer]
        if turn < plan.turns:
            time.sleep(effort.pause)
            samples = comparison.timings[worker.peer].samples
            samples.append(worker.seconds(plan.calls, comparison.workload.seconds_limit, plan.warm_up))

    group.each(measure)
    group.workers = group.workers[1:] + group.workers[:1]


@dataclass(frozen=True)
class _Plan:
    """Of one library: how many turns, and calls in each."""

    turns: int
    calls: int
    slow: bool

    @property
    def warm_up(self) -> int:
        return 0 if self.slow else max(1, self.calls // 10)


def _plan(worker: Worker, effort: Effort, limit: float) -> _Plan:
    """So many calls that a turn takes `effort.turn`; finding out warms the library up."""
    taken = worker.seconds(1, limit, warm_up=0)
    calls, slow = 1, taken > SLOW_CALL
    while not slow and taken * calls < effort.turn:
        calls = max(calls + 1, int(calls * min(10.0, 1.2 * effort.turn / (taken * calls))))
        taken = worker.seconds(calls, limit)
    return _Plan(effort.turns(taken, limit), calls, slow)


# --- other processes ----------------------------------------------------------------------------------------


def first_calls(workload: Workload) -> dict[str, float]:
    """Ours in two new processes: with nothing on disk, then with what the first one left there."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PULLBACK_CACHE_DIR": folder}
        cold = run_module("first_call", workload.name, environment=environment)
        warm = run_module("first_call", workload.name, environment=environment)
    return {"import": cold["import"], "cold": cold["call"], "disk": warm["call"]}


def run_module(name: str, *arguments: str, environment: dict[str, str] | None = None) -> Any:
    """The JSON that `python -m benchmarks.<name>` prints."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(process.stdout)
