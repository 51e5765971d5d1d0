"""Running passes: functions from graph to graph that leave what they are given as it is."""

from __future__ import annotations

from collections.abc import Callable

from pullback.tracer.graph import Graph
from pullback.tracer.verify import checked

Pass = Callable[[Graph], Graph]


def run_passes(graph: Graph, *passes: Pass) -> Graph:
    """What the passes make of a graph, one after another."""
    checked(graph, "all that came before the passes")
    for one in passes:
        graph = run_pass(one, graph)
    return graph


def run_pass(one: Pass, graph: Graph) -> Graph:
    """What a pass makes of a graph that is right; what it has changed is verified where that is asked for."""
    return checked(one(graph), name_of(one), graph)


def name_of(one: Pass) -> str:
    """The name of a function; of an object that is called, that of its class."""
    return getattr(one, "__name__", type(one).__name__)
