"""Factors that no term of a sum changes, in gradients: they are multiplied with the sum.

The sum over points of `chosen * v * 2`, where `v` is the same for all points, is `2 * v` times a sum. Only
gradients are rewritten: in the user's own sums infinity times a sum would not be what is written there, a sum
of terms one of which may be nan.
"""

from __future__ import annotations

from collections import Counter
from functools import reduce

from pullback.tracer.graph import Graph, Node, constant, rebuild, with_operands
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import reduction as r
from pullback.tracer.origin import located_at


def factor_sums(graph: Graph) -> Graph:
    """The same sums, common factors outside; products that something else needs stay as they are."""
    uses = Counter([operand for node in graph.nodes for operand in node.operands] + list(graph.outputs))

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        is_sum = node.operator is r.sum_ and node.origin.is_backward and node.spec.is_float
        if is_sum and not node.attributes["keepdim"]:
            with located_at(node.origin):
                found = _factored(with_operands(node, operands), _alone(node.operands[0], operands[0], uses))
            if found is not None:
                return found
        return with_operands(node, operands)

    return rebuild(graph, change)


def _alone(old: Node, new: Node, uses: Counter[Node]) -> list[Node]:
    """The factors of a product, as far as only the product needs them multiplied."""
    if (
        uses[old] > 1
        or old.operator not in (e.multiply, e.negative)
        or len(old.operands) != len(new.operands)
    ):
        return [new]
    factors = [constant(-1, new.spec.with_shape(()))] if old.operator is e.negative else []
    for pair in zip(old.operands, new.operands):
        factors += _alone(*pair, uses)
    return factors


def _factored(node: Node, factors: list[Node]) -> Node | None:
    (x,), dims = node.operands, node.attributes["dims"]
    outside = [one for one in factors if _is_same_along(one, dims, x.spec.ndim)]
    inside = [one for one in factors if one not in outside]
    if not inside or all(one.spec.size == 1 for one in outside):  # numbers alone are not worth another loop
        return None
    rest = reduce(e.multiply, inside)
    shift = x.spec.ndim - rest.spec.ndim
    if any(dim < shift or rest.shape[dim - shift] != x.shape[dim] for dim in dims):
        return None
    total = r.sum_(rest, dims=tuple(dim - shift for dim in dims), keepdim=False)
    for one in outside:
        total = e.multiply(total, _without_dims(one, dims, x.spec.ndim))
    return m.expand(total, shape=node.shape) if total.shape != node.shape else total


def _is_same_along(factor: Node, dims: tuple[int, ...], rank: int) -> bool:
    shift = rank - factor.spec.ndim
    return all(dim < shift or factor.shape[dim - shift] == 1 for dim in dims)


def _without_dims(factor: Node, dims: tuple[int, ...], rank: int) -> Node:
    shift = rank - factor.spec.ndim
    shape = tuple(extent for dim, extent in enumerate(factor.shape) if dim + shift not in dims)
    return m.reshape(factor, shape=shape)
