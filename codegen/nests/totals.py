"""Sums in small precision in parts, so that no total takes more than some thousand terms one after another.

A total that is one variable while a loop runs gets a part where the loop is written (`write.py`). The totals
of columns lie in an array: another one holds the parts, and every so many rows it is added and begun anew.
"""

from __future__ import annotations

from typing import TypeGuard

from pullback.tracer.graph import Node, new_node
from pullback.tracer.ops.reduction import sum_

from .blocking import in_blocks_of
from .expression import AnyIndex, Axis, Index, Load, of_axis
from .extents import Extents
from .tree import Item, Loop, Reduction, Root

LONGEST_SUM = 4096
"""Terms after which a sum in float32 goes on with a new total, so that its error grows with the blocks
(N. J. Higham, Accuracy and Stability of Numerical Algorithms, 4.2)."""


def is_imprecise_sum(root: Root) -> TypeGuard[Reduction]:
    return isinstance(root, Reduction) and root.node.operator is sum_ and root.node.dtype.itemsize < 8


def sum_in_parts(items: list[Item], roots: list[Root], extents: Extents) -> tuple[list[Item], list[Root]]:
    """The same sums with bounded errors: long loops in blocks, totals that are arrays in two steps."""
    items = [_long_sums_in_blocks(item, roots) if isinstance(item, Loop) else item for item in items]
    added = []
    for root in filter(is_imprecise_sum, roots):
        loop = _loop_of_parts(root)
        if loop is not None:
            added.append(_split_total(root, loop, extents))
    return items, [*roots, *added]


def _long_sums_in_blocks(loop: Loop, roots: list[Root]) -> Loop:
    """The loop, or the first long ones inside it, in blocks."""
    if loop.block:
        return loop
    sums = [root for root in roots if loop in root.path and is_imprecise_sum(root)]
    is_long = loop.extent.value >= 2 * LONGEST_SUM and not loop.steps
    if is_long and any(root.axis_of(loop) in root.reduced for root in sums):
        return in_blocks_of(loop, [loop.items], roots, LONGEST_SUM)
    if sums:
        loop.items[:] = [
            _long_sums_in_blocks(one, roots) if isinstance(one, Loop) else one for one in loop.items
        ]
    return loop


def _loop_of_parts(root: Root) -> Loop | None:
    """The loop each of whose iterations is worth a part, of a total that is an array; None if none is."""
    kept = [loop for loop in root.path if not loop.block and root.axis_of(loop) not in root.reduced]
    if not kept:
        return None
    outside = root.path[: root.path.index(kept[-1])]
    terms = 1
    for place in reversed(range(len(outside))):
        loop = outside[place]
        if loop.block or root.axis_of(loop) not in root.reduced:
            continue
        terms *= loop.extent.value
        if terms >= 2 * LONGEST_SUM:
            return loop.outer or loop
    return None


def _split_total(root: Reduction, loop: Loop, extents: Extents) -> Reduction:
    """Let the root make parts of its total, and add them at the end of each iteration of the loop."""
    total = root.node
    part = new_node(total.operator, total.operands, total.attributes, total.spec, total.origin, _name(total))
    extents.of[part] = extents.of[total]
    walked = root.axis_of(loop)
    assert walked is not None
    path = root.path[: root.path.index(loop) + 1]
    bound = {axis: one for axis, one in root.bound.items() if one in path}
    over_parts = Axis(walked.extent)
    bound[over_parts] = loop
    at: list[AnyIndex] = []
    items = loop.items
    for index in root.target:
        axis = index.axis if isinstance(index, Index) else None
        if axis is not None and axis in root.bound and axis not in bound:
            axis = Axis(axis.extent)
            bound[axis] = inner = Loop(axis.extent)
            items.append(inner)
            path.append(inner)
            items = inner.items
            index = of_axis(axis)
        at.append(index)
    bound.pop(walked, None)
    read = Load(part, tuple(at))
    axes = tuple(axis for axis in bound)
    whole = Reduction(total, axes, read, tuple(at), frozenset({over_parts}), (read,), path=path, bound=bound)
    whole.steps = root.steps
    items.append(whole)
    root.node, root.part_of = part, loop
    return whole


def _name(total: Node) -> str:
    return f"part_of_{total.name}" if total.name else "part"
