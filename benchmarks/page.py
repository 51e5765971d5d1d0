"""The figures as a page: `python -m benchmarks.page FIGURES.json docs/measured.md` writes it again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .peers import NATIVE, OURS
from .report import machine_text, micro

BUSY = 0.5
"""The load before a run, for each core, from which the page says that other work was going on."""


def write_page(figures: dict[str, Any], path: Path) -> None:
    """Markdown: when and on what, then a row for each workload, from `results.as_json`."""
    path.write_text("\n".join(_lines(figures)) + "\n", encoding="utf-8")


def _lines(figures: dict[str, Any]) -> Iterator[str]:
    machine, versions = figures["machine"], figures["versions"]
    system = f"{machine['processor']}, {machine['cores']} cores; {machine['system']}"
    yield f"Measured on {figures['date']}: {system}."
    yield machine_text(machine)
    yield f"Libraries: {', '.join(f'{name} {version}' for name, version in versions.items())}."
    yield f"Of each library {figures['effort']['rounds']} turns of {figures['effort']['turn']} s."
    if machine["load"] > BUSY * machine["cores"]:
        yield (
            f"\n**The machine was busy with other work** (load {machine['load']:.1f} when the run began): "
            "the figures are a first impression, and are to be measured again.\n"
        )
    mean = figures["summary"]["all"]
    if mean is not None:
        count = figures["summary"]["workloads"]
        yield f"\nGeometric mean of best peer / pullback over {count} workloads: **{mean:.2f}**."
    yield "\n| workload | pullback | quartiles | best peer | its time | best peer / pullback | C |"
    yield "|---|--:|--:|---|--:|--:|--:|"
    for one in figures["workloads"]:
        yield _row(one)
    yield "\nMicroseconds a call, medians."


def _row(workload: dict[str, Any]) -> str:
    timings, peer = workload["timings"], workload["best_peer"]
    ours = timings.get(OURS)
    cells = [
        workload["name"],
        micro(ours["median"]) if ours else "no figure",
        "-".join(micro(one) for one in ours["quartiles"]) if ours else "",
        peer or "none",
        micro(timings[peer]["median"]) if peer else "",
        f"{workload['ratio']:.2f}" if workload["ratio"] else "",
        micro(timings[NATIVE]["median"]) if NATIVE in timings else "",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    write_page(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
