"""Equations that are solved with both triangles of Cholesky's factor: those of the matrix that it is of.

The gradient then takes one more solution and a product. By way of the factor it takes four and three.
"""

from __future__ import annotations

from pullback.tracer.graph import Graph, Node, rebuild, with_operands
from pullback.tracer.ops.linalg import cholesky, definite_solution, solve, triangular_solve, untransposed
from pullback.tracer.origin import located_at


def solve_definite_equations(graph: Graph) -> Graph:
    """The same solutions, which know of the matrix; for a graph that is about to be differentiated."""

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        node = with_operands(node, operands)
        factor = _factor(node, True)
        if factor is None or _factor(node.operands[1], False) is not factor:
            return node
        with located_at(node.origin):
            return definite_solution(factor.operands[0], factor, node.operands[1].operands[1])

    return rebuild(graph, change) if any(node.operator is cholesky for node in graph.nodes) else graph


def _factor(node: Node, transposed: bool) -> Node | None:
    """Cholesky's factor of a real matrix that equations are solved with, or if `transposed` its transpose."""
    if node.operator not in (solve, triangular_solve) or node.dtype.kind != "f":
        return None
    factor, is_transposed = untransposed(node.operands[0])
    reads_lower = True
    if node.operator is triangular_solve:
        reads_lower = node.attributes["lower"] != is_transposed and not node.attributes["right"]
        is_transposed = is_transposed != node.attributes["transposed"]
    is_found = factor.operator is cholesky and reads_lower and is_transposed == transposed
    return factor if is_found else None
