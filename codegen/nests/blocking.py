"""Rows in blocks: what keeps a loop from vectorising goes into a loop of its own, a block at a time.

Where a loop over rows holds inner loops, and between them arithmetic on one number for each row, that is done
one number at a time, and may cost more than the rest. For a block of rows there are instead all first inner
loops, then one loop over the block with the arithmetic, then all others, with the block's rows still in the
cache. Condition: the arithmetic between the loops is dear, also against that in them (`ROW_SHARE`).

Likewise where dear values are computed and then added at positions from data, which may coincide: first the
values of a block, in vectors, then the additions, one after another.
"""

from __future__ import annotations

import math
from itertools import groupby

from pullback.tracer.graph import Node
from pullback.tracer.ops.elementwise import reciprocal

from ..cost.machine import EXPENSIVE
from .expression import Axis, Compute, arithmetic, axes_of, children
from .extents import ONE
from .tree import Item, Loop, Root

BLOCK = 64
"""Rows: enough that a loop over them is one of vectors, few enough that they stay in the cache meanwhile."""
ROW_SHARE = 0.15
"""The arithmetic between a row's inner loops, against that in them, from which blocks pay."""


def row_values(root: Root, stored: set[Node]) -> set[Node]:
    """Expensive values inside a root that one of its loops does not change: worth a place of their own."""
    found: set[Node] = set()
    pending = [root.value] if root.value is not None and len(root.axes) > 1 else []
    seen: set[int] = set()
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        axes = axes_of(one)
        if axes.issuperset(root.axes) or not isinstance(one, Compute):
            pending.extend(children(one))
        elif axes and one.node not in stored and _is_row_value(one, axes):
            found.add(one.node)
    return found


def _is_row_value(one: Compute, axes: set[Axis]) -> bool:
    """Whether it is dear, and has no more elements than rows: not a table that is gathered from."""
    size = math.prod(axis.extent.value for axis in axes)
    is_dear = one.node.operator is reciprocal or arithmetic(one, set()) >= EXPENSIVE
    return size == one.node.spec.size and is_dear


def scattered_values(items: list[Item], stored: set[Node]) -> set[Node]:
    """What is computed in a loop and added at positions from data, where the loop is worth two."""
    found: set[Node] = set()
    for loop in items:
        scatters = [one for one in loop.items if _is_scatter(one)] if isinstance(loop, Loop) else []
        if scatters and _gains_by_vectors(loop):  # type: ignore[arg-type]
            values = [root.value for root in scatters]  # type: ignore[union-attr]
            found |= {one.node for one in values if isinstance(one, Compute)}
    return found - stored


def _is_scatter(item: Item) -> bool:
    return isinstance(item, Root) and item.at_positions


def _gains_by_vectors(loop: Loop) -> bool:
    """Whether a loop of statements alone computes so much that vectors pay for the way through memory."""
    if loop.extent.value < 2 * BLOCK or not all(isinstance(item, Root) for item in loop.items):
        return False
    seen: set[Node] = set()
    values = [root.value for root in loop.items if isinstance(root, Root) and root.value is not None]
    return sum(arithmetic(value, seen) for value in values) >= EXPENSIVE


def split_into_blocks(items: list[Item], roots: list[Root], kept: dict[Node, tuple[int, ...]]) -> list[Item]:
    """The loops in order; those that gain by it in blocks of rows."""
    return [_in_blocks(item, roots, kept) if isinstance(item, Loop) else item for item in items]


def _in_blocks(loop: Loop, roots: list[Root], kept: dict[Node, tuple[int, ...]]) -> Loop:
    if loop.block:
        return loop
    runs: list[list[Item]] = []
    if loop.steps:
        return loop
    if any(map(_is_scatter, loop.items)):
        if _gains_by_vectors(loop):  # nothing in the loop reads what is scattered: it may come last
            runs = [list(run) for _, run in groupby(sorted(loop.items, key=_is_scatter), key=_is_scatter)]
    elif _gains(loop, roots, kept):
        runs = [list(run) for _, run in groupby(loop.items, key=lambda item: isinstance(item, Loop))]
    return in_blocks_of(loop, runs, roots) if len(runs) > 1 else loop


def _gains(loop: Loop, roots: list[Root], kept: dict[Node, tuple[int, ...]]) -> bool:
    """Whether rows have so much to do between inner loops that it is worth vectors."""
    if loop.extent.value < 2 * BLOCK:
        return False
    inside = [root for root in roots if root.path[:1] == [loop]]
    leaves = [one for one in loop.items if isinstance(one, Root)]
    if len(leaves) == len(loop.items) or any(_keeps_a_row(root, loop, kept) for root in inside):
        return False
    if not all(root.is_plain for root in inside):
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
    return points * (2 + root.effort)


def in_blocks_of(loop: Loop, runs: list[list[Item]], roots: list[Root], size: int = BLOCK) -> Loop:
    """Runs of a loop's items, each in a loop over the rows of a block."""
    blocks = Loop(loop.extent, block=size)
    inside = [root for root in roots if loop in root.path]
    for run in runs:
        part = Loop(loop.extent, run, outer=blocks)
        blocks.items.append(part)
        for root in inside:
            if any(root is item or item in root.path for item in part.items):
                axis, place = root.axis_of(loop), root.path.index(loop)
                assert axis is not None
                root.path = [*root.path[:place], blocks, part, *root.path[place + 1 :]]
                root.bound[axis] = part
    return blocks
