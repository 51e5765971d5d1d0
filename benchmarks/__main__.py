"""`python -m benchmarks`: time of value and gradient beside other libraries."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from . import report
from .measure import FULL, QUICK, Comparison, Effort, compare, first_calls, run_module
from .page import write_page
from .peers import OURS, PEERS
from .picture import draw
from .results import as_json
from .summary import summarise
from .workload import Workload
from .workloads import ON_REQUEST, WORKLOADS

OVERHEAD = "call-overhead"


def parse_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Time of value and gradient beside other libraries."
    )
    parser.add_argument(
        "--only", type=_names, metavar="NAME,...", help="workloads whose names begin with one of these"
    )
    parser.add_argument(
        "--peers", type=_names, metavar="NAME,...", help=f"libraries (all installed ones): {', '.join(PEERS)}"
    )
    parser.add_argument("--quick", action="store_true", help="few rounds, no first calls of ours from disk")
    parser.add_argument("--threads", type=int, metavar="N", help="for every library, in place of its default")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw the ratios: .png, .svg or .pdf")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the documentation's page of them")
    parser.add_argument("--list", action="store_true", help="print the names of the workloads")
    chosen = parser.parse_args(arguments)
    for name in chosen.peers or ():
        if name not in PEERS:
            parser.error(f"no library is called {name!r}; there are {', '.join(PEERS)}")
    for name in chosen.only or ():
        if not any(one.startswith(name) for one in all_names()):
            parser.error(f"no workload begins with {name!r}; there are {', '.join(all_names())}")
    if chosen.picture and importlib.util.find_spec("matplotlib") is None:
        parser.error("--picture needs matplotlib")
    return chosen


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def all_names() -> list[str]:
    return [*(workload.name for workload in (*WORKLOADS, *ON_REQUEST)), OVERHEAD]


def main() -> int:
    chosen = parse_arguments()
    if chosen.list:
        on_request = {workload.name for workload in ON_REQUEST}
        print("\n".join(name + "  (only by its whole name)" * (name in on_request) for name in all_names()))
        return 0
    if chosen.threads:
        use_threads(chosen.threads)
    workloads = wanted_workloads(chosen.only)
    with_overhead = chosen.only is None or OVERHEAD.startswith(tuple(chosen.only))
    asked = [name for name in PEERS if chosen.peers is None or name == OURS or name in chosen.peers]
    peers = [name for name in asked if PEERS[name].installed()]
    effort = QUICK if chosen.quick else FULL
    console = report.new_console()
    if len(peers) < len(asked):
        console.print(f"Not installed: {', '.join(name for name in asked if name not in peers)}.")
    machine = run_module("machine")
    console.print(report.machine_text(machine), highlight=False)

    comparisons: list[Comparison] = []
    for comparison in compared(workloads, peers, effort, with_first_calls=not chosen.quick):
        comparisons.append(comparison)
        for line in (report.progress_text(comparison), *report.notes(comparison)):
            print(line, file=sys.stderr, flush=True)
        if chosen.json:  # each time, so that nothing is lost if a long run is stopped
            write_json(chosen.json, as_json(comparisons, None, machine, effort))
    if comparisons:
        console.print(report.times_table(comparisons, peers, machine))
        console.print(report.summary_text(summarise(comparisons)), highlight=False)
        console.print(report.memory_table(comparisons, peers))
        console.print(report.first_calls_table(comparisons, peers))
    overhead = run_module("overhead", *["--quick"] * chosen.quick) if with_overhead else None
    if overhead:
        console.print(report.overhead_table(overhead))
    found = as_json(comparisons, overhead, machine, effort)
    if chosen.json:
        write_json(chosen.json, found)
    if chosen.page:
        write_page(found, chosen.page)
    if chosen.picture and found["summary"]["workloads"]:
        draw(found, chosen.picture)
    return 1 if any(one.failures or one.differences or OURS in one.too_slow for one in comparisons) else 0


def wanted_workloads(only: Sequence[str] | None) -> list[Workload]:
    """Those whose names begin with one of `only`, and those on request whose names are there in full."""
    if only is None:
        return list(WORKLOADS)
    chosen = [workload for workload in WORKLOADS if workload.name.startswith(tuple(only))]
    return chosen + [workload for workload in ON_REQUEST if workload.name in only]


def use_threads(number: int) -> None:
    """For this process and those that it starts: what the libraries read when they are imported."""
    for name in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = str(number)
    if hasattr(os, "sched_setaffinity"):  # XLA has no other setting
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:number])


def compared(
    workloads: Sequence[Workload], peers: Sequence[str], effort: Effort, with_first_calls: bool
) -> Iterator[Comparison]:
    """Each workload on all libraries, as it is done."""
    for workload in workloads:
        comparison = compare(workload, peers, effort)
        if with_first_calls and OURS in comparison.timings:
            try:
                comparison.first_calls = first_calls(workload)
            except subprocess.CalledProcessError as error:
                comparison.note(OURS, error)
        yield comparison


def write_json(path: Path, figures: dict[str, Any]) -> None:
    path.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
