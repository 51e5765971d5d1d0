"""Rows in blocks: what is computed once for each row between inner loops becomes a loop that vectorises.

A row of a logistic regression is a dot product, a sigmoid of one number, and an update: the sigmoid, one at a
time, costs more than the rest. For a block of rows there are instead all dot products, then one loop over
the block with the sigmoids, then all updates, with the block's rows still in the cache.
"""

from __future__ import annotations

import math
from itertools import groupby

from pullback.tracer.graph import Node

from .cost import EXPENSIVE, arithmetic
from .expression import Axis, Compute, axes_of, children
from .extents import ONE
from .tree import Item, Loop, Root

BLOCK = 64
ROW_SHARE = 0.15
"""The arithmetic between a row's inner loops, against that in them, from which blocks pay."""


def row_values(root: Root, stored: set[Node]) -> set[Node]:
    """Expensive values inside a root that its innermost loop does not change: worth a place of their own."""
    found: set[Node] = set()
    pending = [root.value] if root.value is not None and len(root.axes) > 1 else []
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        axes = axes_of(one)
        if root.axes[-1] in axes or not isinstance(one, Compute):
            pending.extend(children(one))
        elif axes and one.node not in stored and _is_row_value(one, axes):
            found.add(one.node)
    return found


def _is_row_value(one: Compute, axes: set[Axis]) -> bool:
    """Whether it is dear, and has no more elements than rows: not a table that is gathered from."""
    size = math.prod(axis.extent.value for axis in axes)
    return size == one.node.spec.size and arithmetic(one, set()) >= EXPENSIVE


def split_into_blocks(items: list[Item], roots: list[Root], kept: dict[Node, tuple[int, ...]]) -> list[Item]:
    """The loops in order; one whose rows have much to do between inner loops in blocks of rows."""
    return [_blocks_of(item, roots) if _gains(item, roots, kept) else item for item in items]  # type: ignore[arg-type]


def _gains(item: Item, roots: list[Root], kept: dict[Node, tuple[int, ...]]) -> bool:
    if not isinstance(item, Loop) or item.extent.value < 2 * BLOCK:
        return False
    inside = [root for root in roots if root.path[:1] == [item]]
    leaves = [one for one in item.items if isinstance(one, Root)]
    if len(leaves) == len(item.items) or any(_keeps_a_row(root, item, kept) for root in inside):
        return False
    if any(root.kind not in ("store", "reduce") for root in inside):
        return False
    seen: set[Node] = set()
    between = sum(arithmetic(root.value, seen) for root in leaves if root.value is not None)
    within = sum(_arithmetic_of_row(root) for root in inside if root not in leaves)
    return between >= max(EXPENSIVE, ROW_SHARE * within)


def _keeps_a_row(root: Root, loop: Loop, kept: dict[Node, tuple[int, ...]]) -> bool:
    """Whether storage serves one row after the other, and would have to grow for a block."""
    axis = root.axis_of(loop)
    if axis in root.reduced or not kept[root.node]:
        return False
    return not any(getattr(root.target[dim], "axis", None) is axis for dim in kept[root.node])


def _arithmetic_of_row(root: Root) -> int:
    points = math.prod(axis.extent.value for axis in root.axes[1:] if axis.extent is not ONE)
    return points * (2 + (arithmetic(root.value, set()) if root.value is not None else 0))


def _blocks_of(loop: Loop, roots: list[Root]) -> Loop:
    """Runs of inner loops and runs of statements, each in a loop over the rows of a block."""
    blocks = Loop(loop.extent, block=BLOCK)
    inside = [root for root in roots if root.path[:1] == [loop]]
    for _, run in groupby(loop.items, key=lambda item: isinstance(item, Loop)):
        part = Loop(loop.extent, list(run), outer=blocks)
        blocks.items.append(part)
        for root in inside:
            if any(root is item or item in root.path for item in part.items):
                axis = root.axis_of(loop)
                assert axis is not None
                root.path = [blocks, part, *root.path[1:]]
                root.bound[axis] = part
    return blocks
