"""Rows in order whose order is asked for as well, as by gradients: sorted once, and gathered."""

from __future__ import annotations

from pullback.tracer.graph import Graph, Node, rebuild, with_operands
from pullback.tracer.ops.indexing import gather
from pullback.tracer.ops.ordering import rows_of_positions, sorted_positions, sorted_values
from pullback.tracer.origin import located_at


def sort_once(graph: Graph) -> Graph:
    """The same values, with elements that positions put in order gathered by these, not sorted again."""
    have_positions = {
        node.operands[0]
        for node in graph.nodes
        if node.operator is sorted_positions and node.attributes["stable"]
    }
    found = {
        node for node in graph.nodes if node.operator is sorted_values and node.operands[0] in have_positions
    }

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if node not in found:
            return with_operands(node, operands)
        (x,) = operands
        with located_at(node.origin):
            order = sorted_positions(x, stable=True)
            return gather(x, *rows_of_positions(x, order), order)

    return rebuild(graph, change) if found else graph
