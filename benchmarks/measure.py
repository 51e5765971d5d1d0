"""One workload on all libraries: first the same results, then times, taken in turn."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .peers import OURS, PEERS
from .worker import PeerError, Worker
from .workloads import Workload

TOLERANCE = {"float32": 1e-4, "float64": 1e-10}
"""The largest difference allowed, relative to the largest element of the array."""


class Mismatch(Exception):
    """Two libraries do not compute the same value or gradient."""


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    rounds: int
    """How often each library has its turn."""
    seconds: float
    """How long a turn takes at least."""
    calls: int
    """How many calls a turn has at least."""
    pause: float = 0.05
    """Between turns, in seconds: threads of the last library may still spin, in wait of work."""


FULL = Effort(rounds=15, seconds=0.1, calls=3)
QUICK = Effort(rounds=5, seconds=0.02, calls=2)


@dataclass
class Timing:
    """Seconds per call: one figure from each turn."""

    first: float
    """Building the function and calling it once, in a process where others may have run before."""
    samples: list[float] = field(default_factory=list)

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
    """All times of a workload."""

    workload: Workload
    bytes: int
    timings: dict[str, Timing] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    first_calls: dict[str, float] = field(default_factory=dict)
    """Of ours, in a new process: "import", and the first call "cold" and with the cache on "disk"."""

    @property
    def best_peer(self) -> str | None:
        """The fastest of the others that compute the gradient."""
        others = [name for name in self.timings if name != OURS and PEERS[name].gradient]
        return min(others, key=lambda name: self.timings[name].median, default=None)

    @property
    def ratio(self) -> float | None:
        """The time of the best peer in units of ours: above one, ours is faster."""
        if self.best_peer is None or OURS not in self.timings:
            return None
        return self.timings[self.best_peer].median / self.timings[OURS].median


def compare(workload: Workload, workers: Sequence[Worker], effort: Effort) -> Comparison:
    """Check that the workers agree, then time them.

    Raises Mismatch if two of them differ in value or gradient. A library that fails is left out.
    """
    comparison = Comparison(workload, workload.bytes(workload.inputs()))
    ready = _prepared(workload, workers, comparison)
    check_agreement(workload, {worker.peer: worker.results() for worker in ready})
    calls = {worker: _calls_in_a_turn(worker, effort) for worker in ready}
    for turn in range(effort.rounds):
        for place in range(len(ready)):
            worker = ready[(place + turn) % len(ready)]
            time.sleep(effort.pause)
            comparison.timings[worker.peer].samples.append(worker.seconds(calls[worker]))
    return comparison


def _prepared(workload: Workload, workers: Sequence[Worker], comparison: Comparison) -> list[Worker]:
    ready = []
    for worker in workers:
        try:
            comparison.timings[worker.peer] = Timing(worker.prepare(workload.name))
            ready.append(worker)
        except PeerError as error:
            comparison.failures[worker.peer] = str(error)
    return ready


def _calls_in_a_turn(worker: Worker, effort: Effort) -> int:
    """So many that a turn takes `effort.seconds`; they also warm the library up."""
    worker.seconds(effort.calls)
    calls = effort.calls
    while (taken := worker.seconds(calls) * calls) < effort.seconds:
        calls = max(calls + 1, int(calls * min(10.0, 1.2 * effort.seconds / taken)))
    return calls


def check_agreement(workload: Workload, results: dict[str, list[np.ndarray]]) -> None:
    """Compare each library's value and gradients with the first library's.

    Raises Mismatch, with all differences, if one is too large.
    """
    tolerance = TOLERANCE[str(workload.inputs()[workload.argnums[0]].dtype)]
    names = ["the value", *(f"gradient {position}" for position in workload.argnums)]
    (reference, expected), *others = results.items()
    differences = []
    for peer, found in others:
        if PEERS[peer].gradient and len(found) != len(expected):
            differences.append(f"{peer} gives {len(found)} arrays, {reference} {len(expected)}")
        for name, one, other in zip(names, found, expected):
            error = _difference(one, other)
            if not error <= tolerance:  # a nan is none either
                differences.append(f"{name} of {peer} differs from that of {reference} by {error:.1e}")
    if differences:
        raise Mismatch(f"{workload.name}: {'; '.join(differences)}; at most {tolerance:.0e} is allowed.")


def _difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest element; infinite for another shape or dtype."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return np.inf
    scale = float(np.max(np.abs(expected), initial=0.0)) or 1.0
    return float(np.max(np.abs(found.astype("float64") - expected.astype("float64")), initial=0.0)) / scale


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
