"""Calls of BLAS in graphs: their operands and results as they lie in memory, sums and factors taken in.

`gemm` computes `start + scale * a b + scale * c d + ...` in one array. So what is a sum of
products is accumulated, not added up from two arrays, and a factor costs nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import reduce

from pullback.tracer.graph import Graph, Node, constant, make_node, rebuild, rebuild_from, with_operands
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.contraction import contract, gemm, split_subscripts
from pullback.tracer.origin import UNKNOWN, Origin, located_at

from ...tracer.records import record
from .contractions import Indices

CHEAP = 12
"""Multiplications per element up to which a value is computed anew for each call that takes it."""


@record(frozen=True)
class Product:
    """One scaled contraction of a sum."""

    indices: Indices
    scale: float = 1.0
    origin: Origin = UNKNOWN

    @property
    def subscripts(self) -> str:
        return self.indices.subscripts


# --- transposes -------------------------------------------------------------------------------------------


def absorb_permutes(graph: Graph) -> Graph:
    """Products of transposed arrays, and transposed products, as products with indices in another order."""
    uses = _uses(graph)

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if node.operator is contract:
            return _with_untransposed_operands(node, operands)
        if (
            node.operator is m.permute
            and node.operands[0].operator is contract
            and uses[node.operands[0]] == 1
        ):
            return _with_permuted_result(node, operands[0])
        return with_operands(node, operands)

    return rebuild(graph, change)


def _uses(graph: Graph) -> Counter[Node]:
    """How many operands of nodes, and outputs, each node is."""
    return Counter([operand for node in graph.nodes for operand in node.operands] + list(graph.outputs))


def _with_untransposed_operands(node: Node, operands: tuple[Node, ...]) -> Node:
    *texts, result = split_subscripts(node.attributes["subscripts"])
    plain = []
    for place, operand in enumerate(operands):
        while operand.operator is m.permute:
            text, dims = texts[place], operand.attributes["dims"]
            texts[place] = "".join(text[dims.index(dim)] for dim in range(len(dims)))
            operand = operand.operands[0]
        plain.append(operand)
    subscripts = f"{texts[0]},{texts[1]}->{result}"
    return make_node(contract, tuple(plain), {"subscripts": subscripts}, origin=node.origin, name=node.name)


def _with_permuted_result(node: Node, product: Node) -> Node:
    left, right, result = split_subscripts(product.attributes["subscripts"])
    permuted = "".join(result[dim] for dim in node.attributes["dims"])
    attributes = {"subscripts": f"{left},{right}->{permuted}"}
    name = node.name or product.name
    return make_node(contract, product.operands, attributes, origin=product.origin, name=name)


# --- sums and factors -------------------------------------------------------------------------------------

Terms = list[tuple[float, Node]]


def form_calls(graph: Graph) -> Graph:
    """Contractions as `gemm`: with what is added to them, and with their factors."""
    return rebuild_from(graph, _Sums(graph).changed)


class _Sums:
    """Which sums of a graph are computed in one array."""

    def __init__(self, graph: Graph) -> None:
        self.outputs = set(graph.outputs)
        self.uses = _uses(graph)
        users: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            for operand in node.operands:
                users.setdefault(operand, []).append(node)
        self.users = users
        self.terms: dict[Node, Terms] = {}
        inside: set[Node] = set()
        for node in reversed(graph.nodes):
            if node not in inside and _is_linear(node):
                self.terms[node] = self._terms(node, 1.0, inside)

    def _terms(self, node: Node, scale: float, inside: set[Node]) -> Terms:
        """The node as a sum of scaled nodes, through sums that nothing else needs."""
        found: Terms = []
        pending = [(node, scale, True)]  # whether to look into it; a chain of sums may be long
        while pending:
            one, scale, is_open = pending.pop()
            if not is_open or not _is_linear(one) or not (one is node or self._is_private(one)):
                found.append((scale, one))
                continue
            if one is not node:
                inside.add(one)
            if one.operator is e.multiply:
                scales = [scale * _factor(one)]
            elif one.operator is e.negative:
                scales = [-scale]
            else:
                scales = [scale, -scale if one.operator is e.subtract else scale]
            pending += [
                (operand, scale, operand.shape == one.shape) for scale, operand in zip(scales, one.operands)
            ][::-1]
        return found

    def _is_private(self, node: Node) -> bool:
        return self.uses[node] == 1 and node not in self.outputs

    def changed(self, node: Node, new: dict[Node, Node]) -> Node:
        if node.operator is contract:
            return self._sum(node, [(1.0, node)], [], new)
        products, rest = self._products_and_rest(node)
        is_multiple = len(products) == 1 and not rest
        if (products and self._is_stored_alone(node)) or (is_multiple and self._is_operand(node)):
            return self._sum(node, products, rest, new)
        if len(products) > 1:
            return _added(rest, self._sum(node, products, [], new), node, new)
        return with_operands(node, tuple(new[operand] for operand in node.operands))

    def _products_and_rest(self, node: Node) -> tuple[Terms, Terms]:
        """The terms of a sum: products that nothing else needs, and others."""
        products: Terms = []
        rest: Terms = []
        for scale, one in self.terms.get(node, ()):
            is_product = one.operator is contract and self._is_private(one) and one.shape == node.shape
            (products if is_product else rest).append((scale, one))
        return products, rest

    def _is_operand(self, node: Node) -> bool:
        return any(user.operator is contract for user in self.users.get(node, ()))

    def _is_stored_alone(self, node: Node) -> bool:
        """Whether the node must be in memory, and no loop reads it there."""
        calls = [user.operator is contract for user in self.users.get(node, ())]
        return all(calls) and (bool(calls) or node in self.outputs)

    def _sum(self, node: Node, products: Terms, rest: Terms, new: dict[Node, Node]) -> Node:
        """The terms as one `gemm`."""
        operands: list[Node] = []
        calls: list[Product] = []
        for scale, one in products:
            for operand in one.operands:
                factor, inner = _without_factor(operand)
                scale *= factor
                operands.append(new[inner])
            indices = Indices.of(one.attributes["subscripts"], *one.operands)
            calls.append(Product(indices, scale, one.origin))
        if rest:
            operands.append(_expanded(_added(rest, None, node, new), node))
        return make_node(
            gemm, tuple(operands), {"products": tuple(calls)}, origin=node.origin, name=node.name
        )


def _is_linear(node: Node) -> bool:
    return node.spec.is_float and (node.operator in (e.add, e.subtract, e.negative) or bool(_factor(node)))


def _factor(node: Node) -> float:
    """The number that a node is its first operand multiplied by; 0 if it is no such node.

    A factor of 0, inf or nan counts as none: BLAS does not multiply by 0.
    """
    value = node.operands[1].scalar_value if node.operator is e.multiply else None
    return value if value is not None and math.isfinite(value) else 0.0


def _without_factor(operand: Node) -> tuple[float, Node]:
    """(2, x) of 2 x, if x is in memory anyway: the call multiplies, and 2 x need not be stored."""
    factor = _factor(operand)
    inner = operand.operands[0] if factor else operand
    in_memory = inner.is_input or inner.operator is contract
    return (factor, inner) if in_memory and factor and inner.shape == operand.shape else (1.0, operand)


def _added(terms: Terms, product: Node | None, node: Node, new: dict[Node, Node]) -> Node:
    """The sum of the terms, and of a product."""
    with located_at(node.origin):
        summands = [_scaled(new[one], scale) for scale, one in terms]
        total = reduce(_plus, [*summands, *([] if product is None else [(1.0, product)])])
        scale, result = total
        return result if scale > 0 else e.negative(result)


def _scaled(node: Node, scale: float) -> tuple[float, Node]:
    """A term as one that is added (1) or subtracted (-1)."""
    if abs(scale) != 1:
        node = e.multiply(node, constant(abs(scale), node.spec.with_shape(())))
    return (1.0 if scale > 0 else -1.0), node


def _plus(first: tuple[float, Node], second: tuple[float, Node]) -> tuple[float, Node]:
    (sign, a), (other, b) = first, second
    if sign < 0 < other:
        return 1.0, e.subtract(b, a)
    return sign, (e.add(a, b) if sign == other else e.subtract(a, b))


def _expanded(node: Node, like: Node) -> Node:
    return node if node.shape == like.shape else m.expand(node, shape=like.shape)


# --- operands that are cheap to compute -------------------------------------------------------------------


def copy_operands(graph: Graph) -> Graph:
    """A copy for each call in a loop of an operand that is cheap to compute, and that others use as well.

    Each is then computed where its call is, for one iteration at a time, instead of being stored as a whole.
    Fusion makes one of copies that it finds in the same loop.
    """
    uses = _uses(graph)

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if node.operator is not gemm:
            return with_operands(node, operands)
        looped = {
            operand
            for product, *pair in pairs_of(node)
            for operand in pair
            if product.indices.looped and uses[operand] > 1 and _is_cheap(operand)
        }
        copies = {old: _copy(new) for old, new in zip(node.operands, operands) if old in looped}
        return with_operands(node, tuple(copies.get(old, new) for old, new in zip(node.operands, operands)))

    return rebuild(graph, change)


def _copy(node: Node) -> Node:
    name = node.name or f"{node.operator.noun}s"
    return make_node(e.identity, (node,), {}, origin=node.origin, name=name)


def _is_cheap(node: Node) -> bool:
    """Whether an element is computed, and from inputs, reductions and products takes little arithmetic."""
    budget, pending, seen = CHEAP, [node], {node}
    while pending and budget >= 0:
        one = pending.pop()
        if one.operator.family in ("elementwise", "movement") and not one.is_input:
            budget -= one.operator.cost
            pending += [operand for operand in one.operands if operand not in seen]
            seen.update(one.operands)
    computed = any(one.operator.family == "elementwise" for one in seen)
    return computed and budget >= 0 and node.operator is not m.concatenate


def pairs_of(node: Node) -> Sequence[tuple[Product, Node, Node]]:
    """The products of a `gemm`, each with its operands."""
    return list(zip(node.attributes["products"], node.operands[::2], node.operands[1::2]))


def matrices_of(node: Node) -> Sequence[Node]:
    """The operands of a `gemm` that BLAS reads."""
    return node.operands[: 2 * len(node.attributes["products"])]


def start_of(node: Node) -> Node | None:
    """What the products of a `gemm` are added to, if anything."""
    return node.operands[-1] if len(node.operands) % 2 else None
