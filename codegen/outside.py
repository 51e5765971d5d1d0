"""Which position of a call lies beyond which array, and on whose line: what code only knows the array of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pullback.tracer.graph import Graph, Node
from pullback.tracer.loop import LoopNode, is_loop
from pullback.tracer.ops.foreign import foreign

from .drawn_once import draws


def position_outside(graph: Graph, arrays: Sequence[np.ndarray]) -> str:
    """The first one, its extent and its line, or nothing: the graph is evaluated up to it, by NumPy.

    Of a loop, and of what may not be run again, the lines that read or write at positions.
    """
    calls = any(node.operator is foreign for node in graph.nodes)
    if calls or draws(graph) or len(graph.inputs) != len(arrays):
        return _lines(graph)
    known: dict[Node, Any] = dict(zip(graph.inputs, arrays))
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if node in known:
                continue
            operands = [known[operand] for operand in node.operands]
            if node.operator.family == "indexing" and (found := _outside(node, operands)):
                return f"{found}\n  at {node.origin.place}  {node.origin.text}"
            try:
                known[node] = node.operator(*operands, **node.attributes)
            except IndexError:
                break
    return _lines(graph)


def _outside(node: Node, operands: Sequence[Any]) -> str:
    count = len(node.operator.operands) - 1  # the last stands for all that are positions
    shape = node.attributes.get("shape", operands[0].shape)
    for dim, positions in enumerate(operands[count:]):
        beyond = np.asarray(positions)[(positions < 0) | (positions >= shape[dim])]
        if beyond.size:
            place = int(beyond.flat[0])
            counted = f"Position {place}" if place >= 0 else f"A position below {-shape[dim]}"
            return f" {counted} of dimension {dim} with size {shape[dim]}."
    return ""


def _lines(graph: Graph) -> str:
    """Where the graph reads or writes at positions."""
    found: dict[str, None] = {}
    for node in _all_nodes(graph):
        if node.operator.family == "indexing":
            found[f"{node.origin.place}  {node.origin.text}"] = None
    return "\n  at " + ", or\n  at ".join(found) if found else ""


def _all_nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        if is_loop(node):
            yield from _all_nodes(LoopNode(node).body)
