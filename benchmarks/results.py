"""All figures as JSON, with what they were measured on."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

from .measure import Comparison, Effort, Timing
from .peers import PEERS
from .summary import summarise

Machine = dict[str, float]


def as_json(
    comparisons: Sequence[Comparison], overhead: dict[str, float] | None, machine: Machine, effort: Effort
) -> dict[str, Any]:
    """Times in seconds, those of `overhead` in microseconds; memory in bytes."""
    system = {"processor": processor_name(), "cores": os.cpu_count(), "system": platform.platform()}
    return {
        "date": date.today().isoformat(),
        "machine": {**system, **machine},
        "versions": {"python": platform.python_version(), **installed_versions()},
        "effort": asdict(effort),
        "summary": asdict(summarise(comparisons)),
        "workloads": [comparison_json(one) for one in comparisons],
        "overhead_microseconds": overhead,
    }


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    workload = comparison.workload
    return {
        "name": workload.name,
        "bytes": comparison.bytes,
        "flops": workload.flops,
        "blas_bound": workload.blas_bound,
        "small_calls": workload.small_calls,
        "timings": {peer: _timing_json(timing) for peer, timing in comparison.timings.items()},
        "failures": comparison.failures,
        "too_slow": comparison.too_slow,
        "differences": comparison.differences,
        "not_offered": comparison.not_offered,
        "best_peer": comparison.best_peer,
        "ratio": comparison.ratio,
        "native_ratio": comparison.native_ratio,
        "first_calls": comparison.first_calls,
    }


def _timing_json(timing: Timing) -> dict[str, Any]:
    low, middle, high = timing.quartiles
    return {
        "median": middle,
        "quartiles": [low, high],
        "samples": timing.samples,
        "first": timing.first,
        "memory": timing.memory,
        "first_memory": timing.first_memory,
    }


def installed_versions() -> dict[str, str]:
    """Of the libraries that are compared, and of what ours builds on."""
    found = {}
    for package in sorted({*(peer.package for peer in PEERS.values()), "numba", "scipy"}):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def processor_name() -> str:
    """As the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
