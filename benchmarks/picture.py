"""The ratios as a picture: `python -m benchmarks.picture FIGURES.json PICTURE.png` draws it again."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FASTER, SLOWER, INK, FAINT = "#2f6f9f", "#d9822b", "#222222", "#8a8a8a"
INCHES_PER_BAR = 0.27


def draw(figures: dict[str, Any], path: Path) -> None:
    """A bar for each workload, from `results.as_json`; the file's suffix says the format.

    Raises ImportError without matplotlib, ValueError if no workload has a ratio.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    workloads = [one for one in figures["workloads"] if one["ratio"] is not None]
    if not workloads:
        raise ValueError("No workload has a ratio: nothing to draw.")
    workloads.sort(key=lambda one: one["ratio"])
    height = INCHES_PER_BAR * len(workloads) + 1.7
    figure = Figure(figsize=(9.5, height), dpi=160, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.33, 0.75 / height, 0.62, 1.0 - 1.55 / height))
    _draw_bars(axes, workloads)
    _draw_scale(axes, workloads)
    _draw_mean(axes, figures["summary"]["all"])
    title = "pullback beside the fastest other library"
    figure.text(0.02, 1.0 - 0.32 / height, title, size=14, weight="bold", color=INK)
    figure.text(0.02, 1.0 - 0.56 / height, _subtitle(figures), size=8, color=FAINT)
    figure.savefig(path)


def _draw_bars(axes: Any, workloads: list[dict[str, Any]]) -> None:
    """Bars begin at one, where both are equally fast; behind them stand the ratio and the peer's name."""
    for place, one in enumerate(workloads):
        ratio = one["ratio"]
        axes.barh(place, ratio - 1.0, left=1.0, height=0.68, color=FASTER if ratio >= 1.0 else SLOWER)
        axes.annotate(
            f"{ratio:.3g}  {one['best_peer']}{', BLAS-bound' if one['blas_bound'] else ''}",
            (max(ratio, 1.0, one["native_ratio"] or 0.0), place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            size=7.5,
            color=INK,
        )
    with_c = [(one["native_ratio"], place) for place, one in enumerate(workloads) if one["native_ratio"]]
    if with_c:
        axes.scatter(*zip(*with_c), marker="D", s=16, color=INK, edgecolor="white", linewidth=0.7, zorder=3)
    axes.set_yticks(range(len(workloads)), [one["name"] for one in workloads], size=8, color=INK)
    axes.set_ylim(-0.7, len(workloads) - 0.3)


def _draw_scale(axes: Any, workloads: list[dict[str, Any]]) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    ratios = [one[key] for one in workloads for key in ("ratio", "native_ratio") if one[key]]
    low, high = min(0.8, 0.85 * min(ratios)), max(2.0, max(ratios))
    axes.set_xscale("log")
    axes.set_xlim(low, high * (high / low) ** 0.28)  # room for the words behind the longest bar
    ticks = [step * 10.0**power for power in range(-3, 6) for step in (1, 2, 5)]
    shown = [tick for tick in ticks if low <= tick <= 1.1 * high]
    axes.xaxis.set_major_locator(FixedLocator(shown))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{tick:g}" for tick in shown], size=8, color=FAINT)
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.axvline(1.0, color=INK, linewidth=1.0)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    label = "time of the best peer / time of pullback"
    if any(one["native_ratio"] for one in workloads):
        label += "     (\u25c6 of hand-written C)"
    axes.set_xlabel(label, size=8.5, color=INK)


def _draw_mean(axes: Any, mean: float) -> None:
    axes.axvline(mean, color=FASTER, linewidth=1.0, linestyle=(0, (4, 3)), zorder=0.5)
    axes.annotate(
        f"geometric mean {mean:.2f}",
        (mean, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 3),
        textcoords="offset points",
        ha="center",
        size=7.5,
        color=FASTER,
    )


def _subtitle(figures: dict[str, Any]) -> str:
    machine, versions = figures["machine"], figures["versions"]
    libraries = [name for name in ("pullback", "jax", "torch", "pytensor") if name in versions]
    named = [f"{name} {versions[name]}" for name in libraries]
    return f"{machine['processor']}, {machine['threads']:.0f} threads \u00b7 {', '.join(named)}"


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
