"""Pictures of profiles; what alone takes matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...tracer.errors import ArgumentError
from .profiles import Profile, time_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NARROW = 0.02
"""Bars that are a smaller part of the whole have no text."""


def flame(profile: Profile) -> Figure:
    """Programs, the nests in them, and the lines in these, each as wide as it takes long."""
    figure, axes = _figure(f"{profile.name}: {time_text(profile.seconds)} a call")
    whole = max(profile.seconds, sum(one.seconds for one in profile.nests))
    start = 0.0
    for program in profile.programs:
        _bar(axes, 0, start, max(program.seconds, program.seconds_of_nests), whole, program.title)
        place = start
        for nest in (one for one in profile.nests if one.program == program.title):
            _bar(axes, 1, place, nest.seconds, whole, nest.title)
            at = place
            for line, share in nest.lines:
                _bar(axes, 2, at, share * nest.seconds, whole, line)
                at += share * nest.seconds
            place += nest.seconds
        start += max(program.seconds, program.seconds_of_nests)
    axes.set_yticks([0, 1, 2], ["program", "nest", "line"])
    axes.set_xlim(0, 1e6 * start)
    axes.set_xlabel("microseconds")
    return figure


def _bar(axes: Axes, row: int, start: float, seconds: float, whole: float, text: str) -> None:
    colour = f"C{sum(text.encode()) % 10}"
    bar = axes.barh(row, 1e6 * seconds, left=1e6 * start, color=colour, alpha=0.6, edgecolor="white")[0]
    if seconds > NARROW * whole:
        middle = 1e6 * (start + seconds / 2)
        axes.text(middle, row, text, ha="center", va="center", fontsize=8).set_clip_path(bar)


def roofline(profile: Profile) -> Figure:
    """S. Williams, A. Waterman and D. Patterson, Roofline, Communications of the ACM 52(4), 2009."""
    figure, axes = _figure(f"{profile.name}: speed of loop nests")
    nests = [one for one in profile.nests if one.operations and one.nbytes and one.seconds]
    intensities = [one.operations / one.nbytes for one in nests]
    roofs = profile.roofs
    corners = [roofs.operations / bandwidth for bandwidth in (roofs.caches, roofs.memory)]
    along = np.geomspace(min(*intensities, *corners) / 4, max(*intensities, *corners) * 4, 64)
    for label, style, bandwidth in (("caches", "--", roofs.caches), ("memory", "-", roofs.memory)):
        roof = np.minimum(roofs.operations, bandwidth * along)
        axes.loglog(along, roof, style, color="black", label=f"from {label}, by the machine model")
    for nest, intensity in zip(nests, intensities):
        axes.loglog([intensity], [nest.gigaflops], "o")
        axes.annotate(nest.title, (intensity, nest.gigaflops), fontsize=8)
    axes.set_xlabel("operations for each byte")
    axes.set_ylabel("GFLOP/s")
    axes.legend(loc="lower right")
    return figure


def _figure(title: str) -> tuple[Figure, Axes]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ArgumentError(
            f"profile.plot: matplotlib cannot be imported ({error}). pip install pullback[plot] has it."
        ) from None
    figure = Figure(figsize=(11, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title)
    return figure, axes
