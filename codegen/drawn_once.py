"""What a program draws, it draws once: nothing is drawn in advance, and nothing again in backward."""

from __future__ import annotations

from typing import Any, NoReturn

from pullback.tracer.errors import EagerOnlyError
from pullback.tracer.graph import Graph, Node
from pullback.tracer.loop import LoopNode, is_loop
from pullback.tracer.ops.control import loop_result
from pullback.tracer.ops.foreign import draw


def draws(graph: Graph) -> bool:
    """Whether code draws."""
    return any(map(draws_itself, graph.nodes))


def draws_itself(node: Node) -> bool:
    """Whether a node is a draw, or a loop that draws."""
    return node.operator is draw or (is_loop(node) and draws(LoopNode(node).body))


def streams_of(graph: Graph) -> set[Any]:
    """What code draws from."""
    inside = [streams_of(LoopNode(node).body) for node in graph.nodes if is_loop(node)]
    own = {node.attributes["function"].stream for node in graph.nodes if node.operator is draw}
    return own.union(*inside)


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
