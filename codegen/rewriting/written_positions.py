"""Rewrites of what is written, or added, at positions that data decides."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from pullback.tracer.graph import Node
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import indexing as ix
from pullback.tracer.ops.windows import WRITES

from .simplify import rewrite

MOST_TERMS = 16
"""Of a sum that are looked at, one inside of the other."""


def _positions_of(node: Node) -> tuple[Node, ...]:
    return node.operands[2:] if node.operator is ix.index_update else node.operands[1:]


@rewrite("index_update")
def _written_again(node: Node) -> Node | None:
    """What is written over again need not have been written."""
    x, updates, *positions = node.operands
    if x.operator is ix.index_update and _positions_of(x) == tuple(positions):
        return ix.index_update(x.operands[0], updates, *positions)
    return None


@rewrite("add")
def _added_where_it_belongs(node: Node) -> Node | None:
    """A cotangent that comes to one position is written there, where others are added to an array.

    The array is one that a step begins with, or has written: loops do such writes in place.
    """
    if not node.origin.is_backward:
        return None
    terms = [*_terms(node, MOST_TERMS)]
    updates = [one for one in terms if _is_at_one_position(one)]
    array = next((one for one in terms if one.is_input or one.operator in WRITES), None)
    if array is None or not updates or array.shape != node.shape:
        return None
    others = [one for one in terms if one is not array and one not in updates]
    return reduce(e.add, [reduce(_with_update_added, updates, array), *others])


def _terms(total: Node, depth: int) -> Iterator[Node]:
    """The terms of a sum, each of its shape."""
    for one in total.operands:
        if one.operator is e.add and one.shape == total.shape and depth:
            yield from _terms(one, depth - 1)
        else:
            yield one


def _is_at_one_position(node: Node) -> bool:
    """Whether it is zeros but for one position, which has no equals among others."""
    return node.operator is ix.scatter_add and _positions_of(node)[0].spec.size == 1


def _with_update_added(x: Node, scattered: Node) -> Node:
    update, positions = scattered.operands[0], _positions_of(scattered)
    array, before = x, ix.gather(x, *positions)
    if x.operator is ix.index_update and _positions_of(x) == positions:
        array, before = x.operands[:2]
    return ix.index_update(array, update if before.scalar_value == 0 else e.add(before, update), *positions)
