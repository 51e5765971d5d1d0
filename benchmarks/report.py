"""Tables for people and JSON for machines."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .measure import Comparison, Effort
from .peers import OURS, PEERS

Machine = dict[str, float]
TABLE_WIDTH = 190


def new_console() -> Console:
    """As wide as the terminal; in a file, as wide as the table."""
    console = Console()
    return console if console.is_terminal else Console(width=TABLE_WIDTH)


def main_table(comparisons: Sequence[Comparison], peers: Sequence[str], machine: Machine) -> Table:
    """A row for each workload: median and quartiles in microseconds."""
    table = Table(title="Value and gradient: microseconds a call, median and quartiles", title_justify="left")
    table.add_column("workload", no_wrap=True)
    for peer in peers:
        table.add_column(peer, justify="right", style="bold" if peer == OURS else "")
    for title in ("best peer\n/ ours", "ours reaches", "first call:\ncold, disk"):
        table.add_column(title, justify="right")
    for one in comparisons:
        times = [_time_text(one, peer) for peer in peers]
        table.add_row(one.workload.name, *times, _ratio_text(one), rate_text(one, machine), _first_text(one))
    return table


def overhead_table(overhead: dict[str, float]) -> Table:
    table = Table(title="A call with three small arrays: microseconds", title_justify="left")
    table.add_column("what")
    table.add_column("time", justify="right")
    table.add_column("over the machine code", justify="right")
    for name, taken in overhead.items():
        table.add_row(name, f"{taken:.2f}", f"{taken - overhead['machine code']:.2f}")
    return table


def machine_text(machine: Machine) -> str:
    return (
        f"This machine, {machine['threads']:.0f} threads: triad {machine['triad']:.1f} GB/s (one thread "
        f"{machine['triad_one_thread']:.1f}), gemm {machine['gemm_float32']:.0f} GFLOP/s in float32, "
        f"{machine['gemm_float64']:.0f} in float64."
    )


def _time_text(comparison: Comparison, peer: str) -> str:
    if peer in comparison.failures:
        return "failed"
    low, middle, high = comparison.timings[peer].quartiles
    return f"{_micro(middle)}\n[dim not bold]{_micro(low)}-{_micro(high)}[/]"


def _micro(seconds: float) -> str:
    """Three digits."""
    value = seconds * 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _ratio_text(comparison: Comparison) -> str:
    ratio = comparison.ratio
    return "" if ratio is None else f"{ratio:.2f}\n[dim]{comparison.best_peer}[/]"


def rate_text(comparison: Comparison, machine: Machine) -> str:
    """GFLOP/s of matrix products, or GB/s of what must move, with the share of what the machine can do."""
    if OURS not in comparison.timings:
        return ""
    seconds = comparison.timings[OURS].median
    flops = comparison.workload.flops
    rate, unit, limit = (flops, "GFLOP/s", "gemm_float32") if flops else (comparison.bytes, "GB/s", "triad")
    rate /= seconds * 1e9
    return f"{rate:.3g} {unit}\n[dim]{rate / machine[limit]:.0%} of {limit.split('_')[0]}[/]"


def _first_text(comparison: Comparison) -> str:
    found = comparison.first_calls
    return f"{found['cold']:.2f} s\n{found['disk']:.2f} s" if found else ""


# --- JSON ---------------------------------------------------------------------------------------------------


def as_json(
    comparisons: Sequence[Comparison], overhead: dict[str, float] | None, machine: Machine, effort: Effort
) -> dict[str, Any]:
    """All figures in seconds, those of `overhead` in microseconds."""
    system = {"processor": processor_name(), "cores": os.cpu_count(), "system": platform.platform()}
    return {
        "machine": {**system, **machine},
        "versions": {"python": platform.python_version(), **installed_versions()},
        "rounds": effort.rounds,
        "workloads": [_comparison_json(one) for one in comparisons],
        "overhead_microseconds": overhead,
    }


def _comparison_json(comparison: Comparison) -> dict[str, Any]:
    timings = {}
    for peer, timing in comparison.timings.items():
        low, middle, high = timing.quartiles
        timings[peer] = {
            "median": middle,
            "quartiles": [low, high],
            "samples": timing.samples,
            "first": timing.first,
        }
    return {
        "name": comparison.workload.name,
        "bytes": comparison.bytes,
        "flops": comparison.workload.flops,
        "timings": timings,
        "failures": comparison.failures,
        "best_peer": comparison.best_peer,
        "ratio": comparison.ratio,
        "first_calls": comparison.first_calls,
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
