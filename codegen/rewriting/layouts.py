"""Tables in the layout in which they are read fastest: by sums over a short dimension.

A sum over a short last dimension, for each of many rows of a table, is best computed in vectors of sums, side
by side. They read the same column of neighbouring rows, which lie far apart. A small table that is read again
and again, for each point of the dimensions before, is worth a transposed copy.
"""

from __future__ import annotations

import math

from pullback.tracer.graph import Graph, Node, rebuild, with_operands
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import reduction as r
from pullback.tracer.origin import located_at

from ..cost.machine import this_machine

LONGEST_ROW = 32
"""Terms of a sum that are written out, without a loop, so that the loop around it is the one in vectors."""
FEWEST_READS = 64
"""How often a table is read as a whole, from which a copy pays."""


def transpose_tables(graph: Graph) -> Graph:
    """The same sums over the last dimension; small operands without the dimensions before lie transposed."""
    made: dict[Node, Node] = {}

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        node = with_operands(node, operands)
        if node.operator is not r.sum_ or not _reads_tables(node):
            return node
        with located_at(node.origin):
            (x,) = node.operands
            return with_operands(node, (_transposed(x, x.shape[-2:], made),))

    return rebuild(graph, change)


def _reads_tables(node: Node) -> bool:
    (x,) = node.operands
    if x.spec.ndim < 3 or node.attributes["dims"] != (x.spec.ndim - 1,) or node.attributes["keepdim"]:
        return False
    *reads, rows, columns = x.shape
    fills_vectors = rows >= this_machine().lanes
    fits = 1 < columns <= LONGEST_ROW and fills_vectors and math.prod(reads) >= FEWEST_READS
    return fits and _is_of_tables(x, x.shape[-2:])


def _is_of_tables(x: Node, table: tuple[int, ...]) -> bool:
    """Whether what an expression reads for neighbouring rows is in tables, or the same."""
    if _is_table(x, table) or x.spec.ndim < 2 or x.shape[-2] == 1:
        return True
    return x.operator.family == "elementwise" and all(_is_of_tables(one, table) for one in x.operands)


def _transposed(x: Node, table: tuple[int, ...], made: dict[Node, Node]) -> Node:
    """An elementwise expression with copies of those of its operands that are tables of the shape."""
    if _is_table(x, table):
        if x not in made:
            order = (*range(x.spec.ndim - 2), x.spec.ndim - 1, x.spec.ndim - 2)
            made[x] = m.permute(e.identity(m.permute(x, dims=order)), dims=order)
        return made[x]
    if x.operator.family != "elementwise":
        return x
    return with_operands(x, tuple(_transposed(one, table, made) for one in x.operands))


def _is_table(x: Node, table: tuple[int, ...]) -> bool:
    is_stored = x.is_input or x.operator.family in ("reduction", "contraction", "movement")
    is_whole = x.shape[-2:] == table and x.spec.size == math.prod(table)
    return is_stored and is_whole and not this_machine().is_large_table(x.spec.size)
