"""What a program draws, it draws once, and what it calls for an effect: nothing in advance, nothing again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from pullback.tracer.errors import EagerOnlyError
from pullback.tracer.graph import Graph, Node, constant, rebuild, with_operands
from pullback.tracer.loop import LoopNode, is_loop
from pullback.tracer.ops.control import loop_result
from pullback.tracer.ops.foreign import draw


def draws(graph: Graph) -> bool:
    """Whether code draws."""
    return any(map(draws_itself, graph.nodes))


def draws_itself(node: Node) -> bool:
    """Whether a node is a draw, or a loop that draws."""
    return node.operator is draw or (is_loop(node) and draws(LoopNode(node).body))


def calls_for_effect(node: Node) -> bool:
    """Whether a node is there for what its function does, not for what it gives."""
    return node.operator is draw and node.attributes["function"].stream is None


def has_effects(graph: Graph) -> bool:
    """Whether code calls functions for their effect."""
    return any(calls_for_effect(node) or _inside(node, has_effects) for node in graph.nodes)


def stops(graph: Graph) -> bool:
    """Whether it is to stop in the debugger."""
    return any(
        (calls_for_effect(node) and node.attributes["function"].stops) or _inside(node, stops)
        for node in graph.nodes
    )


def _inside(node: Node, question: Callable[[Graph], bool]) -> bool:
    return is_loop(node) and question(LoopNode(node).body)


def silent(graph: Graph) -> Graph:
    """The graph without its own calls for an effect, of which those after it take nothing."""

    def changed(node: Node, operands: tuple[Node, ...]) -> Node:
        return constant(0, node.spec) if calls_for_effect(node) else with_operands(node, operands)

    return rebuild(graph, changed)


def streams_of(graph: Graph) -> set[Any]:
    """What code draws from."""
    inside = [streams_of(LoopNode(node).body) for node in graph.nodes if is_loop(node)]
    own = {node.attributes["function"].stream for node in graph.nodes if node.operator is draw}
    return own.union(*inside) - {None}


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
        "Backward would run a loop again that draws random numbers, or calls a function for its effect. Draw "
        "them before, and pass them in; call the function outside of the loop."
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
