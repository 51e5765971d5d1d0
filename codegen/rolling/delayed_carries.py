"""Carries that a step only moves from another carry: what is carried is the other one, moved when it is read.

    now, rim = step(now) + rim, padded(rim_of(now))

becomes `now, before = step(now) + padded(rim_of(before)), now`, and `before`, which is `now` of a step ago,
needs no array and no copy (`nests/delays.py`).
"""

from __future__ import annotations

from pullback.tracer.graph import Graph, Node, make_input, substitute
from pullback.tracer.loop import LoopNode, replace_results
from pullback.tracer.ops import movement as m

from ..nests.versions import find_chain
from .bodies import made_again

MOST_MOVES = 4
"""From one carry to the other: more would be done again by each of its readers."""
MOVES = (m.slice_update, m.slice_, m.permute, m.flip, m.expand, m.pad)


def move_when_read(graph: Graph) -> Graph:
    """Loops whose carries are moved from other carries where they are read, not where they are stored."""

    def moved(loop: LoopNode) -> list[Node] | None:
        carries = _moved_carries(loop)
        return _delayed(loop, carries) if carries else None

    return replace_results(graph, moved)


def _moved_carries(loop: LoopNode) -> dict[int, int]:
    """The carries that are moved from another one, and from which; of each only one."""
    if loop.is_choice:
        return {}
    inputs, outputs = loop.body.inputs[: loop.carries], loop.body.outputs
    found: dict[int, int] = {}
    for index in range(2 * loop.goes_on, loop.carries):
        value = loop.node.operands[index].scalar_value
        source = None if value is None else _source(outputs[index], value)
        if source not in inputs or source is inputs[index] or source.spec != inputs[index].spec:
            continue
        leader = inputs.index(source)
        is_followed = leader in found.values() or source in outputs[: loop.carries]
        in_line = leader in found or index in found.values()  # one of them would be carried as something else
        if not is_followed and not in_line and find_chain(loop, leader) is None:
            found[index] = leader
    return found


def _source(node: Node, value: float) -> Node | None:
    """What a value is moved from, if moving that number everywhere gives that number everywhere."""
    for _ in range(MOST_MOVES):
        if node.operator not in MOVES:
            break
        others = [one.scalar_value for one in node.operands[1:]]
        if any(repr(one) != repr(value) for one in (*others, node.attributes.get("value", value))):
            return None
        node = node.operands[0]
    return node


def _delayed(loop: LoopNode, moved: dict[int, int]) -> list[Node]:
    """The results of the loop that carries what is moved."""
    body = loop.body
    before = {
        index: make_input(body.inputs[index].spec, body.inputs[leader].name)
        for index, leader in moved.items()
    }

    def moved_from(index: int, source: Node) -> Node:
        (node,) = substitute([body.outputs[index]], {body.inputs[moved[index]]: source})
        return node

    reads = {body.inputs[index]: moved_from(index, one) for index, one in before.items()}
    outputs = list(made_again(body, dict(zip(body.inputs, body.inputs)) | reads))
    for index, leader in moved.items():
        outputs[index] = body.inputs[leader]
    inputs = [before.get(index, one) for index, one in enumerate(body.inputs)]
    new = loop.again(
        Graph(body.name, tuple(inputs), tuple(outputs), body.origin), *loop.split(loop.node.operands)
    )
    results = new.results
    return [moved_from(index, one) if index in moved else one for index, one in enumerate(results)]
