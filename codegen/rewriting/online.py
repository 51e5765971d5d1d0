"""Totals that wait for other totals, in one pass over memory, where what is summed exceeds the caches.

sum(exp(x - max(x))) reads x twice: for the largest, then for the sum; so does a variance. In blocks that stay
in a cache, each has a largest element and a sum of its own, so that memory is read once; finally these are
brought to the common shift and added. Smaller arrays gain nothing by it.

- Exponentials: M. Milakov, N. Gimelshein, Online normalizer calculation for softmax, 2018. No exponential
  exceeds 1, so nothing overflows that did not before.
- Squares: T. F. Chan, G. H. Golub, R. J. LeVeque, Algorithms for computing the sample variance, 1983.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce

from pullback.tracer.dims import known, share
from pullback.tracer.graph import Graph, Node, rebuild, users_of, with_operands
from pullback.tracer.operator import Operator
from pullback.tracer.ops.composite import finite
from pullback.tracer.ops.elementwise import add, clamp, divide, exp, maximum, multiply, subtract
from pullback.tracer.ops.movement import between, reshape
from pullback.tracer.ops.reduction import amax, sum_
from pullback.tracer.origin import located_at

from ...tracer.records import record
from ..cost.machine import this_machine
from .extremes import before_movement

MOST_USERS = 2
"""Of exponentials, their sum among them: what more read is computed once and stored."""


def sum_online(graph: Graph) -> Graph:
    """The same totals of exponentials and squares; of what exceeds the caches, in blocks."""
    users = users_of(graph.nodes)
    waiting = {node: first for node in graph.nodes if (first := _first_of(node, users)) is not None}
    firsts = set(waiting.values())
    blocks_of: dict[Node, list[_Blocks]] = {}

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if node not in firsts and node not in waiting:
            return with_operands(node, operands)
        with located_at(node.origin):
            if node in firsts:
                blocks_of[node] = blocks = _split(operands[0], node.attributes["dims"])
                total = _largest(blocks) if node.operator is amax else _sum(blocks)
            else:
                blocks = blocks_of[waiting[node]]
                (value,) = operands
                _, shift = value.operands[0].operands
                total = _exponentials(blocks, shift) if value.operator is exp else _squares(blocks, shift)
            return reshape(total, shape=node.shape)

    return rebuild(graph, change) if waiting else graph


def _first_of(total: Node, users: Mapping[Node, list[Node]]) -> Node | None:
    """Of a sum of exp(x - shift) or (x - shift)**2: the total of x behind the shift, if blocks pay."""
    if total.operator is not sum_:
        return None
    (value,) = total.operands
    is_square = value.operator is multiply and value.operands[0] is value.operands[1]
    if not (value.operator is exp or is_square) or value.operands[0].operator is not subtract:
        return None
    x, shift = value.operands[0].operands
    first = _behind_mean(shift) if is_square else _behind_finite(shift)
    dims = total.attributes["dims"]
    if first.operator is not (sum_ if is_square else amax) or first.operands[0] is not x:
        return None
    if first.attributes["dims"] != dims or shift.spec.size != first.spec.size:
        return None
    if value.operator is exp and len(users[value]) > MOST_USERS:
        return None
    nbytes = math.prod(x.shape[dims[0] :]) * x.dtype.itemsize
    return first if this_machine().is_read_from_memory_twice(nbytes) else None


def _behind_finite(shift: Node) -> Node:
    """What a shift is, where that is finite."""
    value = before_movement(shift)
    if value.operator is clamp:
        return before_movement(value.operands[0])
    return value


def _behind_mean(shift: Node) -> Node:
    """What has been divided by a number."""
    value = before_movement(shift)
    if value.operator in (multiply, divide):
        numbers = [one for one in value.operands if not one.is_constant]
        return before_movement(numbers[0]) if len(numbers) == 1 else value
    return value


# --- blocks -------------------------------------------------------------------------------------------------


@record(frozen=True)
class _Blocks:
    """A part of what is reduced: a block over `dims`, and the totals of all blocks over `outer`."""

    x: Node
    dims: tuple[int, ...]
    outer: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of elements that are combined in a block."""
        return math.prod(self.x.shape[dim] for dim in self.dims)

    def each(self, operator: Operator, value: Node) -> Node:
        """A total of each block, with dimensions of size 1 for all that it is taken over."""
        return operator(value, dims=self.dims, keepdim=True)

    def all(self, operator: Operator, totals: Node) -> Node:
        """The total of those of all blocks, given without the dimension of a block's elements."""
        return operator(totals, dims=self.outer, keepdim=True)

    def listed(self, totals: Node) -> Node:
        """Totals of each block, without the dimension of a block's elements."""
        first = self.dims[0]
        return reshape(totals, shape=(*totals.shape[:first], *totals.shape[first + 1 :]))


def _largest(parts: list[_Blocks]) -> Node:
    return reduce(maximum, (one.all(amax, one.listed(one.each(amax, one.x))) for one in parts))


def _sum(parts: list[_Blocks]) -> Node:
    return reduce(add, (one.all(sum_, one.listed(one.each(sum_, one.x))) for one in parts))


def _exponentials(parts: list[_Blocks], shift: Node) -> Node:
    """sum(exp(x - shift)): each block's less its largest element, times exp(largest - shift)."""
    totals = []
    for one in parts:
        largest = one.each(amax, one.x)
        own = finite(largest)
        sums = one.each(sum_, exp(one.x - own))
        # A block of -inf alone has the sum 0 and the factor 0.
        totals.append(one.all(sum_, one.listed(sums) * exp(one.listed(largest) - shift)))
    return reduce(add, totals)


def _squares(parts: list[_Blocks], shift: Node) -> Node:
    """sum((x - shift)**2): each block's about its own mean, and what the mean differs from the shift."""
    totals = []
    for one in parts:
        mean = one.each(sum_, one.x) * share(one.size)
        centred = one.x - mean
        distance = one.listed(mean) - shift
        sums = one.listed(one.each(sum_, centred * centred))
        totals.append(one.all(sum_, sums + distance * distance * known(one.size)))
    return reduce(add, totals)


def _split(x: Node, dims: tuple[int, ...]) -> list[_Blocks]:
    """The first dimension whose rows fit a cache, in blocks of as many as it holds, and what is left over."""
    block_bytes = this_machine().block_bytes
    row_bytes = {dim: math.prod(x.shape[dim + 1 :]) * x.dtype.itemsize for dim in dims}
    split = next((dim for dim in dims if row_bytes[dim] <= block_bytes), dims[-1])
    size, extent = max(1, block_bytes // row_bytes[split]), x.shape[split]
    inside = tuple(dim + 1 for dim in dims if dim >= split)
    outer = tuple(dim for dim in dims if dim <= split)
    whole = extent // size * size
    parts = []
    for start, stop in ((0, whole), (whole, extent)):
        if start < stop:
            length = min(size, stop - start)
            shape = (*x.shape[:split], (stop - start) // length, length, *x.shape[split + 1 :])
            parts.append(_Blocks(reshape(between(x, split, start, stop), shape=shape), inside, outer))
    return parts
