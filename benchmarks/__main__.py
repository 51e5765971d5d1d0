"""`python -m benchmarks`: time of value and gradient beside other libraries."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from . import report
from .measure import FULL, QUICK, Comparison, Effort, Mismatch, compare, first_calls, run_module
from .peers import OURS, PEERS
from .worker import Worker
from .workloads import WORKLOADS, Workload

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
    parser.add_argument("--quick", action="store_true", help="few rounds, no first calls in new processes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    parser.add_argument("--list", action="store_true", help="print the names of the workloads")
    chosen = parser.parse_args(arguments)
    for name in chosen.peers or ():
        if name not in PEERS:
            parser.error(f"no library is called {name!r}; there are {', '.join(PEERS)}")
    for name in chosen.only or ():
        if not any(one.startswith(name) for one in all_names()):
            parser.error(f"no workload begins with {name!r}; there are {', '.join(all_names())}")
    return chosen


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def all_names() -> list[str]:
    return [*(workload.name for workload in WORKLOADS), OVERHEAD]


def main() -> int:
    chosen = parse_arguments()
    if chosen.list:
        print("\n".join(all_names()))
        return 0
    wanted = [name for name in all_names() if chosen.only is None or name.startswith(tuple(chosen.only))]
    asked = [name for name in PEERS if chosen.peers is None or name == OURS or name in chosen.peers]
    peers = [name for name in asked if PEERS[name].installed()]
    effort = QUICK if chosen.quick else FULL
    console = report.new_console()
    if len(peers) < len(asked):
        console.print(f"Not installed: {', '.join(name for name in asked if name not in peers)}.")
    machine = run_module("machine")
    console.print(report.machine_text(machine), highlight=False)

    workloads = [workload for workload in WORKLOADS if workload.name in wanted]
    try:
        comparisons = run_workloads(workloads, peers, effort, with_first_calls=not chosen.quick)
    except Mismatch as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    overhead = run_module("overhead", *["--quick"] * chosen.quick) if OVERHEAD in wanted else None

    if comparisons:
        console.print(report.main_table(comparisons, peers, machine))
    if overhead:
        console.print(report.overhead_table(overhead))
    if chosen.json:
        found = report.as_json(comparisons, overhead, machine, effort)
        chosen.json.write_text(json.dumps(found, indent=2) + "\n")
    return 1 if any(one.failures for one in comparisons) else 0


def run_workloads(
    workloads: Sequence[Workload], peers: Sequence[str], effort: Effort, with_first_calls: bool
) -> list[Comparison]:
    """Each workload on all libraries, one process each, which lives as long as there are workloads."""
    if not workloads:
        return []
    comparisons = []
    workers = [Worker(peer) for peer in peers]
    try:
        for workload in workloads:
            print(f"{workload.name} ...", file=sys.stderr, flush=True)
            comparison = compare(workload, workers, effort)
            for peer, reason in comparison.failures.items():
                print(f"{workload.name}: {peer} failed:\n{reason}", file=sys.stderr)
            if with_first_calls:
                comparison.first_calls = first_calls(workload)
            comparisons.append(comparison)
    finally:
        for worker in workers:
            worker.close()
    return comparisons


if __name__ == "__main__":
    raise SystemExit(main())
