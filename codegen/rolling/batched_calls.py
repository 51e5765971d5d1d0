"""Calls of Python in the steps of a loop that no step before decides, made one call for all steps.

What the call needs is computed by a loop of its own, and stacked; the rest of each step reads a row of what
the call gives. So is called what `vmap` maps, where the function takes batches.
"""

from __future__ import annotations

from pullback.tracer.graph import Graph, Node, make_input, make_node, substitute
from pullback.tracer.loop import LoopNode, replace_results
from pullback.tracer.ops.foreign import foreign


def batch_calls(graph: Graph) -> Graph:
    """The graph with such calls of functions that take batches in front of loops."""
    return replace_results(graph, _results)


def _results(loop: LoopNode) -> list[Node] | None:
    call = None if loop.is_dynamic or loop.recompute or not loop.length else _call_of(loop)
    if call is None:
        return None
    rest = _split_at(call, loop)
    return _results(rest) or rest.results


def _call_of(loop: LoopNode) -> Node | None:
    """The first call of the body that takes batches, of values that do not depend on carries."""
    carries, _, _ = loop.split(loop.body.inputs)
    carried = set(carries)
    for node in loop.body.nodes:
        if any(operand in carried for operand in node.operands):
            carried.add(node)
        elif node.operator is foreign and node.attributes["function"].batched is not None:
            return node
    return None


def _split_at(call: Node, loop: LoopNode) -> LoopNode:
    """The rest of a loop, given the results of a call in all steps."""
    carries, rows, constants = loop.split(loop.body.inputs)
    inits, stacked, values = loop.split(loop.node.operands)
    known = dict(zip(rows, stacked))
    computed = list(dict.fromkeys(one for one in call.operands if one not in known))
    if computed:
        body = Graph(loop.body.name, (*rows, *constants), tuple(computed), loop.body.origin)
        known.update(zip(computed, loop.again(body, [], stacked, values).results))
    attributes = call.attributes
    spec = attributes["spec"]
    batch = make_node(
        foreign,
        tuple(known[one] for one in call.operands),
        {"function": attributes["function"].batched, "spec": spec.with_shape((loop.length, *spec.shape))},
        origin=call.origin,
        name=call.name,
    )
    row = make_input(call.spec, call.name, call.origin)
    outputs = substitute(loop.body.outputs, {call: row})
    body = Graph(loop.body.name, (*carries, *rows, row, *constants), tuple(outputs), loop.body.origin)
    return loop.again(body, inits, [*stacked, batch], values)
