"""Rewrites of what is written, or added, at positions that data decides."""

from __future__ import annotations

from pullback.tracer.graph import Node
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import indexing as ix

from .simplify import rewrite


def positions_of(node: Node) -> tuple[Node, ...]:
    """The operands of an operator on positions that say where."""
    return node.operands[2:] if node.operator is ix.index_update else node.operands[1:]


def is_at_one_position(node: Node) -> bool:
    """Whether it is about one position, which has no equals among others."""
    return positions_of(node)[0].spec.size == 1


@rewrite("index_update")
def _written_again(node: Node) -> Node | None:
    """What is written over again need not have been written."""
    x, updates, *positions = node.operands
    if x.operator is ix.index_update and positions_of(x) == tuple(positions):
        return ix.index_update(x.operands[0], updates, *positions)
    return None


def with_updates_added(x: Node, scattered: Node) -> Node:
    """The sum of an array and of an update at one position, as a write there."""
    update, positions = scattered.operands[0], positions_of(scattered)
    before, array = ix.gather(x, *positions), x
    if x.operator is ix.index_update and positions_of(x) == positions:
        array, before = x.operands[:2]
    return ix.index_update(array, update if before.scalar_value == 0 else e.add(before, update), *positions)
