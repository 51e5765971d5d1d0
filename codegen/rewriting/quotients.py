"""Quotients in gradients that share a denominator: one division, then multiplications by its reciprocal.

A division takes as long as a dozen multiplications, and derivatives divide again and again by what the
function has divided by. Values of the function itself stay quotients, rounded once, as NumPy has them; a
gradient's last digit may differ. Where a denominator is subnormal its reciprocal is infinite.
"""

from __future__ import annotations

from pullback.tracer.graph import Graph, Node, rebuild, with_operands
from pullback.tracer.ops.elementwise import divide, multiply, reciprocal
from pullback.tracer.origin import located_at

FEWEST_ELEMENTS = 4
"""That a denominator is broadcast to, from which its reciprocal pays for a single quotient."""


def share_reciprocals(graph: Graph) -> Graph:
    """The same values, with one reciprocal for all quotients of gradients by one value."""
    quotients: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        if node.operator is divide and node.origin.is_backward and not node.operands[1].is_constant:
            quotients.setdefault(node.operands[1], []).append(node)
    shared = {node for denominator, nodes in quotients.items() if _pays(denominator, nodes) for node in nodes}
    made: dict[Node, Node] = {}

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if node not in shared:
            return with_operands(node, operands)
        numerator, denominator = operands
        with located_at(node.origin):
            inverse = made.setdefault(denominator, reciprocal(denominator))
            return multiply(numerator, inverse)

    return rebuild(graph, change) if shared else graph


def _pays(denominator: Node, quotients: list[Node]) -> bool:
    elements = max(node.spec.size for node in quotients)
    return len(quotients) > 1 or elements >= FEWEST_ELEMENTS * denominator.spec.size
