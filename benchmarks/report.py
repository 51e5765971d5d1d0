"""Tables for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from .measure import Comparison
from .peers import NATIVE, OURS, PEERS
from .results import Machine
from .summary import Summary

TABLE_WIDTH = 200


def new_console() -> Console:
    """As wide as the terminal; in a file, as wide as the table."""
    console = Console()
    return console if console.is_terminal else Console(width=TABLE_WIDTH)


def machine_text(machine: Machine) -> str:
    return (
        f"This machine, {machine['threads']:.0f} threads: triad {machine['triad']:.1f} GB/s (one thread "
        f"{machine['triad_one_thread']:.1f}), gemm {machine['gemm_float32']:.0f} GFLOP/s in float32, "
        f"{machine['gemm_float64']:.0f} in float64."
    )


# --- times --------------------------------------------------------------------------------------------------


def times_table(comparisons: Sequence[Comparison], peers: Sequence[str], machine: Machine) -> Table:
    """A row for each workload: median and quartiles in microseconds."""
    table = _table("Microseconds a call: median and quartiles", peers)
    titles = ["best peer\n/ ours", *["C\n/ ours"] * (NATIVE in peers), "ours reaches"]
    for title in titles:
        table.add_column(title, justify="right")
    for one in comparisons:
        times = [_outcome(one, peer) or _time_text(one, peer) for peer in peers]
        native = [_ratio_text(one.native_ratio)] * (NATIVE in peers)
        best = _ratio_text(one.ratio, one.best_peer, one.workload.blas_bound)
        table.add_row(one.workload.name, *times, best, *native, rate_text(one, machine))
    return table


def summary_text(summary: Summary) -> str:
    """Geometric means, and the workloads where a peer is faster."""
    lines = []
    if summary.all is not None:
        line = f"Best peer / ours, geometric mean over {_workloads(summary.workloads)}: {summary.all:.2f}"
        if summary.small_calls is not None:
            line += f"; over {summary.small_workloads} with small calls: {summary.small_calls:.2f}"
        lines.append(f"{line}.")
        slower = [
            f"{name} {ratio:.2f} ({peer}{', BLAS-bound' if blas_bound else ''})"
            for name, ratio, peer, blas_bound in summary.slower
        ]
        lines.append(f"Slower than the best peer: {', '.join(slower) or 'none'}.")
    if summary.without_ours:
        lines.append(f"Ours has no figure, and no mean counts: {', '.join(summary.without_ours)}.")
    if summary.native is not None:
        lines.append(
            f"Hand-written C / ours, geometric mean over {_workloads(summary.native_workloads)}: "
            f"{summary.native:.2f}; at least its speed on {summary.native_reached}."
        )
    return "\n".join(lines)


def notes(comparison: Comparison) -> list[str]:
    """What went wrong with a workload, a line for each; tracebacks stand in the JSON."""
    kinds = {
        "failed: ": comparison.failures,
        "is too slow: ": comparison.too_slow,
        "": comparison.differences,
    }
    return [
        f"{comparison.workload.name}: {peer} {kind}{reason.strip().splitlines()[-1]}"
        for kind, found in kinds.items()
        for peer, reason in found.items()
    ]


def progress_text(comparison: Comparison) -> str:
    if OURS not in comparison.timings:
        return f"{comparison.workload.name}: ours {_outcome(comparison, OURS)}"
    text = f"{comparison.workload.name}: {micro(comparison.timings[OURS].median)} us"
    return text if comparison.ratio is None else f"{text}, {comparison.ratio:.2f} ({comparison.best_peer})"


def _table(title: str, peers: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("workload", no_wrap=True)
    for peer in peers:
        table.add_column(peer, justify="right", style="bold" if peer == OURS else "")
    return table


def _outcome(comparison: Comparison, peer: str) -> str:
    """In a word, why there is no figure; nothing where there is one."""
    kinds = {
        "failed": comparison.failures,
        "too slow": comparison.too_slow,
        "differs": comparison.differences,
        "-": comparison.not_offered,
    }
    return next((word for word, found in kinds.items() if peer in found), "")


def _time_text(comparison: Comparison, peer: str) -> str:
    low, middle, high = comparison.timings[peer].quartiles
    return f"{micro(middle)}\n[dim not bold]{micro(low)}-{micro(high)}[/]"


def micro(seconds: float) -> str:
    """Microseconds in three digits."""
    value = seconds * 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _ratio_text(ratio: float | None, peer: str | None = None, blas_bound: bool = False) -> str:
    if ratio is None:
        return ""
    text = f"{ratio:.2f}" if ratio >= 1.0 else f"[yellow]{ratio:.2f}[/]"
    remark = ", ".join([*[peer] * (peer is not None), *["BLAS"] * blas_bound])
    return f"{text}\n[dim]{remark}[/]" if remark else text


def rate_text(comparison: Comparison, machine: Machine) -> str:
    """GFLOP/s where arithmetic bounds, else GB/s of what must move; and the share of what the machine can."""
    if OURS not in comparison.timings:
        return ""
    seconds = comparison.timings[OURS].median
    workload = comparison.workload
    if workload.flops:
        dtype = workload.dtype(workload.inputs())
        rate, unit, limit = workload.flops, "GFLOP/s", f"gemm_{dtype}"
    else:
        rate, unit, limit = comparison.bytes, "GB/s", "triad"
    rate /= seconds * 1e9
    return f"{rate:.3g} {unit}\n[dim]{rate / machine[limit]:.0%} of {limit.split('_')[0]}[/]"


def _workloads(number: int) -> str:
    return "1 workload" if number == 1 else f"{number} workloads"


# --- memory, first calls, overhead --------------------------------------------------------------------------


def memory_table(comparisons: Sequence[Comparison], peers: Sequence[str]) -> Table:
    """A row for each workload: the most that calls hold, in MB; and ours beside the least of the others."""
    table = _table("Peak memory of calls, in MB", peers)
    table.add_column("least peer\n/ ours", justify="right")
    for one in comparisons:
        found = {peer: timing.memory for peer, timing in one.timings.items() if timing.memory is not None}
        cells = [_outcome(one, peer) or megabytes(found.get(peer)) for peer in peers]
        others = [held for peer, held in found.items() if peer != OURS and PEERS[peer].counts]
        least = min(others, default=0)
        ratio = least / found[OURS] if least and found.get(OURS) else None
        table.add_row(one.workload.name, *cells, _ratio_text(ratio))
    return table


def first_calls_table(comparisons: Sequence[Comparison], peers: Sequence[str]) -> Table:
    """A row for each workload: seconds of the first call in a new process."""
    table = _table("First call in a new process, after the import: seconds", peers)
    for title in (f"{OURS},\nnothing on disk", f"{OURS},\nfrom disk"):
        table.add_column(title, justify="right")
    for one in comparisons:
        firsts = [_outcome(one, peer) or f"{one.timings[peer].first:.3f}" for peer in peers]
        ours = [f"{one.first_calls[kind]:.3f}" if one.first_calls else "" for kind in ("cold", "disk")]
        table.add_row(one.workload.name, *firsts, *ours)
    return table


def overhead_table(overhead: dict[str, float]) -> Table:
    table = Table(title="A call with three small arrays: microseconds", title_justify="left")
    table.add_column("what")
    table.add_column("time", justify="right")
    table.add_column("over the machine code", justify="right")
    for name, taken in overhead.items():
        table.add_row(name, f"{taken:.2f}", f"{taken - overhead['machine code']:.2f}")
    return table


def megabytes(size: int | None) -> str:
    """Three digits; a page or two say nothing."""
    if size is None:
        return ""
    value = size / 1e6
    return "< 0.1" if value < 0.1 else f"{value:.0f}" if value >= 100 else f"{value:.3g}"
