"""What a program draws from the user's streams, it draws once: no backward runs such a loop again."""

from __future__ import annotations

from typing import NoReturn

from pullback.tracer.errors import EagerOnlyError
from pullback.tracer.graph import Graph, Node
from pullback.tracer.loop import LoopNode, is_loop
from pullback.tracer.ops.control import loop_result
from pullback.tracer.ops.foreign import draw


def draws(graph: Graph) -> bool:
    """Whether code draws."""
    loops = [LoopNode(node) for node in graph.nodes if is_loop(node)]
    return any(node.operator is draw for node in graph.nodes) or any(draws(one.body) for one in loops)


def require_drawn_once(graph: Graph) -> None:
    """Raises EagerOnlyError where a derivative runs a loop that draws a second time: two take one count."""
    taken = [_origin_of(count) for node in graph.nodes for count in _counts_taken(node)]
    if len(set(taken)) < len(taken):
        refuse_second_draw()
    for node in graph.nodes:
        if is_loop(node):
            require_drawn_once(LoopNode(node).body)


def refuse_second_draw() -> NoReturn:
    raise EagerOnlyError(
        "Backward would run a loop again that draws random numbers. Draw them before, and pass them in."
    )


def _counts_taken(node: Node) -> list[Node]:
    """The counts that a node takes: one if it draws."""
    if node.operator is draw:
        return [node.operands[0]]
    if not is_loop(node):
        return []
    made = LoopNode(node)
    inside = [_origin_of(count) for one in made.body.nodes for count in _counts_taken(one)]
    return [init for init, place in zip(node.operands, made.body.inputs[: made.carries]) if place in inside]


def _origin_of(count: Node) -> Node:
    """The draw, loop result or input that a count comes from."""
    while len(count.operands) == 1 and count.operator not in (draw, loop_result):
        (count,) = count.operands
    return count
