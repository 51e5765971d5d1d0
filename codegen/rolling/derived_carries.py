"""Carries that a step computes of another carry at its end: they are computed where they are read.

    now, scaled = scaled + x, 0.9 * (scaled + x)

becomes `now = 0.9 * now + x`. A Python loop leaves such steps whose first one has less to do, as
`m = 0.9 * m + x` where `m` begins as the number 0: then its steps repeat from another operation on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from pullback.tracer.graph import Graph, Node, make_node
from pullback.tracer.loop import LoopNode, replace_results

from .bodies import made_again

MOST_OPERATIONS = 4
"""From one carry to the other."""


def compute_when_read(graph: Graph) -> Graph:
    """Loops without carries that are computed of other carries, where they begin like that as well."""

    def computed(loop: LoopNode) -> list[Node] | None:
        for index in range(2 * loop.goes_on, loop.carries):
            found = _leader(loop, index)
            if found is not None:
                return _without(loop, index, *found)
        return None

    return replace_results(graph, computed)


def _leader(loop: LoopNode, index: int) -> tuple[int, list[Node]] | None:
    """The carry of which one is computed, and the operations from the one to the other; None if it is not."""
    body, first = loop.body, 2 * loop.goes_on
    if loop.is_choice:
        return None
    uses = Counter(operand for node in body.nodes for operand in node.operands)
    uses.update(body.outputs)
    carried = {node: place for place, node in enumerate(body.outputs[: loop.carries]) if place >= first}
    node, chain = body.outputs[index], list[Node]()
    while len(chain) < MOST_OPERATIONS:
        values = [one for one in node.operands if one.scalar_value is None]
        if node.operator.family != "elementwise" or len(values) != 1 or uses[node] > 1:
            return None
        chain.insert(0, node)
        (node,) = values
        leader = carried.get(node)
        if leader is not None and leader != index and not node.is_input:
            starts = [loop.node.operands[place].scalar_value for place in (leader, index)]
            return (leader, chain) if _begin_alike(chain, node, *starts) else None
    return None


def _begin_alike(chain: Sequence[Node], first: Node, start: float | None, other: float | None) -> bool:
    """Whether the operations make of the number that one carry begins with that of the other."""
    if start is None or other is None:
        return False
    value, before = np.array(start, first.dtype), first
    with np.errstate(all="ignore"):
        for node in chain:
            operands = [
                value if one is before else np.array(one.scalar_value, one.dtype) for one in node.operands
            ]
            value, before = np.asarray(node.operator.evaluate(*operands, **node.attributes)), node
    return value.tobytes() == np.array(other, before.dtype).tobytes()


def _without(loop: LoopNode, index: int, leader: int, chain: Sequence[Node]) -> list[Node]:
    """The results of the loop without a carry."""
    body = loop.body

    def computed_of(source: Node) -> Node:
        before = body.outputs[leader]
        for node in chain:
            operands = tuple(source if one is before else one for one in node.operands)
            source, before = make_node(node.operator, operands, node.attributes, node.origin, ""), node
        return source

    given = dict(zip(body.inputs, body.inputs))
    outputs = made_again(body, given | {body.inputs[index]: computed_of(body.inputs[leader])})
    inputs = [one for place, one in enumerate(body.inputs) if place != index]
    kept = [one for place, one in enumerate(outputs) if place != index]
    inits, stacked, constants = loop.split(loop.node.operands)
    starts = [one for place, one in enumerate(inits) if place != index]
    new = loop.again(Graph(body.name, tuple(inputs), tuple(kept), body.origin), starts, stacked, constants)
    results = [*new.results]
    return [*results[:index], computed_of(results[leader - (leader > index)]), *results[index:]]
