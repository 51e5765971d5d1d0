"""Sums of products of parts: one product of the parts put side by side.

In `x[0:n] @ w[0] + x[1:n+1] @ w[1] + ...` each product adds a few terms to every element of the result, which
is read and written as often as there are products. With the parts stacked along one more summed index it is a
single product, and so are the gradients. Condition: three products at least, of parts of the same two arrays
in the same pattern, whose product BLAS computes.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from functools import reduce

from pullback.tracer.graph import Graph, Node, rebuild_from, with_operands
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.contraction import contract, split_subscripts
from pullback.tracer.origin import located_at

from ...tracer.records import record
from .contractions import Indices
from .sums import inner_sums, terms_of

FEWEST = 3
"""Products in a sum from which they are put together."""


@record(frozen=True)
class Stack:
    """Arrays of one shape along a new dimension `dim` of `node`."""

    members: tuple[Node, ...]
    node: Node
    dim: int


def stack_products(graph: Graph) -> Graph:
    """The graph with products of the parts of two arrays put together, where they are added up.

    Where each part of a stack is multiplied by one and the same array, as in the gradient, that is one
    product with the stack.
    """
    summed, stacks = _stack_sums(graph)
    return _share_stacks(summed, stacks) if stacks else graph


# --- sums -------------------------------------------------------------------------------------------------


def _stack_sums(graph: Graph) -> tuple[Graph, list[Stack]]:
    inner = inner_sums(graph)
    stacks: list[Stack] = []

    def change(node: Node, new: dict[Node, Node]) -> Node:
        found = None
        if node.operator is e.add and node not in inner:
            found = _stacked_sum(node, [new[term] for term in terms_of(node, inner)], stacks)
        operands = tuple(new[operand] for operand in node.operands)
        return with_operands(node, operands) if found is None else found

    return rebuild_from(graph, change), stacks


def _stacked_sum(node: Node, terms: Sequence[Node], stacks: list[Stack]) -> Node | None:
    """The sum with products of one kind put together, and their stacks entered; None if there are none."""
    kinds: dict[object, list[Node]] = {}
    for term in terms:
        if term.operator is contract and term.shape == node.shape:
            kinds.setdefault(_kind(term), []).append(term)
    summands = list(terms)
    for products in kinds.values():
        with located_at(products[0].origin):
            pair = _stacks_of(products)
            if pair:
                stacks += pair
                total = _product(products[0], dict(enumerate(pair)))
                summands = [*(term for term in summands if term not in products), total]
    if len(summands) == len(terms):
        return None
    with located_at(node.origin):
        return reduce(e.add, summands).named(node.name)


def become_one(products: Sequence[Node]) -> bool:
    """Whether the sum of these products is put together to one product."""
    return len(set(map(_kind, products))) == 1 and bool(_stacks_of(products))


def _kind(product: Node) -> tuple[object, ...]:
    """What products have in common that are put together."""
    specs, roots = zip(*((operand.spec, _root(operand)) for operand in product.operands))
    return product.attributes["subscripts"], specs, roots


def _root(node: Node) -> Node:
    """The array that a value is a part of."""
    while node.operator in (m.slice_, m.pad, m.reshape, m.permute):
        node = node.operands[0]
    return node


def _stacks_of(products: Sequence[Node]) -> list[Stack]:
    """The operands of products of one kind as two stacks, if BLAS computes the product of these."""
    left, right, result = split_subscripts(products[0].attributes["subscripts"])
    summed = [index for index in left if index not in result]
    sides = [[product.operands[position] for product in products] for position in (0, 1)]
    if len(products) < FEWEST or not summed or any(len(set(side)) < len(side) for side in sides):
        return []
    first = [min(map(text.index, summed)) for text in (left, right)]
    stacks = [_stack(side, dim) for side, dim in zip(sides, first)]
    product = _product(products[0], dict(enumerate(stacks)))
    return stacks if Indices.of(product.attributes["subscripts"], *product.operands).suit_blas else []


def _stack(members: Sequence[Node], dim: int) -> Stack:
    rows = [m.reshape(one, shape=(*one.shape[:dim], 1, *one.shape[dim:])) for one in members]
    name = f"{_root(members[0]).name}_parts".lstrip("_")
    return Stack(tuple(members), m.concatenate(*rows, dim=dim).named(name), dim)


def _product(like: Node, stacks: Mapping[int, Stack]) -> Node:
    """A product as `like`, with stacks in the place of some operands.

    The index of the stacks is summed over if both operands are stacks. Else the result has it, in front of
    the index that it is in front of in the stack.
    """
    *texts, result = split_subscripts(like.attributes["subscripts"])
    new = next(index for index in string.ascii_letters if index not in "".join(texts))
    operands = list(like.operands)
    for position, stack in stacks.items():
        text, operands[position] = texts[position], stack.node
        texts[position] = text[: stack.dim] + new + text[stack.dim :]
        if len(stacks) == 1:
            result = result.replace(text[stack.dim], new + text[stack.dim])
    return contract(*operands, subscripts=f"{texts[0]},{texts[1]}->{result}")


# --- products that share an operand -----------------------------------------------------------------------


def _share_stacks(graph: Graph, stacks: Sequence[Stack]) -> Graph:
    """Products of one array with every member of a stack as parts of its product with the stack."""
    shared = _products_with_stacks(graph, stacks)
    products: dict[object, Node] = {}

    def change(node: Node, new: dict[Node, Node]) -> Node:
        def renewed(node: Node) -> Node:
            if node not in new:
                new[node] = with_operands(node, tuple(map(renewed, node.operands)))
            return new[node]

        if node not in shared:
            return renewed(node)
        position, stack = shared[node]
        other = node.operands[1 - position]
        key = other, stack, node.attributes["subscripts"]
        with located_at(node.origin):
            if key not in products:
                operands = (new[other], node.operands[position])
                like = with_operands(node, operands if position else operands[::-1])
                products[key] = _product(like, {position: Stack((), renewed(stack.node), stack.dim)})
            row = stack.members.index(node.operands[position])
            return _row(products[key], node, row)

    return rebuild_from(graph, change)


def _products_with_stacks(graph: Graph, stacks: Sequence[Stack]) -> dict[Node, tuple[int, Stack]]:
    """The products to exchange: which operand is a member of which stack."""
    by_members = {frozenset(stack.members): stack for stack in stacks}
    groups: dict[tuple[Node, int, str], dict[Node, Node]] = {}
    for node in graph.nodes:
        if node.operator is contract:
            for position in (0, 1):
                key = node.operands[1 - position], position, node.attributes["subscripts"]
                groups.setdefault(key, {})[node.operands[position]] = node
    found: dict[Node, tuple[int, Stack]] = {}
    for (_, position, _), members in groups.items():
        stack = by_members.get(frozenset(members))
        if stack is not None:
            found.update((product, (position, stack)) for product in members.values())
    return found


def _row(product: Node, like: Node, row: int) -> Node:
    """The part of a product with a stack that belongs to one member, as the product `like` with it."""
    result = split_subscripts(product.attributes["subscripts"])[2]
    old = split_subscripts(like.attributes["subscripts"])[2]
    dim = next(place for place, index in enumerate(result) if index not in old)
    return m.reshape(m.between(product, dim, row, row + 1), shape=like.shape)
