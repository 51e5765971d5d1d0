"""Rows in blocks: what keeps a loop from vectorising goes into a loop of its own, a block at a time.

Where a loop over rows holds inner loops, and between them arithmetic on one number for each row, that is done
one number at a time, and may cost more than the rest. For a block of rows there are instead all first inner
loops, then one loop over the block with the arithmetic, then all others, with the block's rows still in the
cache. Condition: the arithmetic between the loops is dear, also against that in them (`ROW_SHARE`).

Likewise where dear values are computed and then added at positions from data, which may coincide, or are
operands of a scan: first the values of a block, in vectors, then the additions, one after another, then
what is computed of these, in vectors again.

Rows that are too short for vectors lie side by side: where dear values are computed in loops over a few
columns, each such loop runs outside of the rows of a block, and vectors hold the rows of one column.

And where two loops walk one array along its rows and another one across them: for a block of columns all
rows, so that the lines that are crossed are in the cache when the next row reads or writes what is beside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

from pullback.tracer.graph import Node
from pullback.tracer.ops.elementwise import reciprocal

from ..cost.machine import EXPENSIVE, this_machine
from .expression import (
    AnyIndex,
    Axis,
    Compute,
    Expression,
    Index,
    Select,
    arithmetic,
    axes_in,
    axes_of,
    children,
    loads,
    parts,
)
from .tree import Item, Loop, Root, Scan, roots_in

ROW_SHARE = 0.15
"""The arithmetic between a row's inner loops, against that in them, from which blocks pay."""
LEAST_GAIN = 0.8
"""Of the time that short rows take one by one, what they may take side by side."""
STORED_ACROSS = 3
"""Elements that are loaded across rows in the time to store one there, which also fetches its line."""


def row_values(root: Root, stored: set[Node]) -> set[Node]:
    """Expensive values inside a root that one of its loops does not change: worth a place of their own.

    Where an outer loop does not change a value, an inner one would compute it in each of its rounds: then it
    is expensive already if that takes longer than to load it.
    """
    found: set[Node] = set()
    pending = [root.value] if root.value is not None and len(root.axes) > 1 else []
    seen: set[int] = set()
    known: dict[Expression, set[Axis]] = {}
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        axes = axes_of(one, known)
        if axes.issuperset(root.axes) or not isinstance(one, Compute):
            pending.extend(children(one))
        elif axes and one.node not in stored and _is_row_value(one, axes, _rounds(root, axes)):
            found.add(one.node)
    return found


def _rounds(root: Root, axes: set[Axis]) -> int:
    """How often loops compute a value of these axes again, as they are around loops that change it."""
    changing = [root.axis_of(loop) in axes for loop in root.path]
    inside = len(changing) - changing[::-1].index(True) if any(changing) else 0
    return math.prod(loop.extent.value for loop, own in zip(root.path[:inside], changing) if not own)


def _is_row_value(one: Compute, axes: set[Axis], rounds: int) -> bool:
    """Whether it is dear, and has no more elements than rows: not a table that is gathered from."""
    size, effort = math.prod(axis.extent.value for axis in axes), arithmetic(one, set())
    if size != one.node.spec.size:
        return False
    is_dear = one.node.operator is reciprocal or effort >= EXPENSIVE
    return is_dear or this_machine().is_worth_loading(effort, len(loads(one)), rounds, one.node.spec.nbytes)


def serial_values(items: list[Item], stored: set[Node]) -> set[Node]:
    """What a loop computes and then adds, one element after another, where the loop is worth several."""
    loops = (one for one in items if isinstance(one, Loop) and any(map(_is_serial, one.items)))
    serial = (root for loop in loops for root in _worth_vectors(loop) if _is_serial(root))
    return {value.node for root in serial for value in _dear_values(root)} - stored


def _is_serial(item: Item) -> bool:
    return isinstance(item, Scan) or (isinstance(item, Root) and item.at_positions)


def _dear_values(root: Root) -> list[Compute | Select]:
    """What is added, if it is computed, and dear where it is an operand of a scan."""
    value = root.value
    if root.at_positions:
        return [value] if isinstance(value, Compute) else []
    has_several = len(root.node.operands) > 1
    operands = value.operands if has_several and isinstance(value, Compute) else (value,)
    computed = [one for one in operands if isinstance(one, Compute | Select)]
    return [one for one in computed if arithmetic(one, set()) >= EXPENSIVE]


def _worth_vectors(loop: Loop) -> list[Root]:
    """The statements of a loop that has nothing else, if their vectors pay for the way through memory."""
    roots = [one for one in loop.items if isinstance(one, Root)]
    if loop.extent.value < 2 * rows_of_block() or len(roots) < len(loop.items):
        return []
    if any(isinstance(one, Scan) for one in roots) and any(one.writes_over for one in roots):
        return []
    seen: set[Node] = set()
    effort = sum(arithmetic(root.value, seen) for root in roots if root.value is not None)
    return roots if effort >= EXPENSIVE else []


def split_into_blocks(items: list[Item], roots: list[Root], kept: dict[Node, tuple[int, ...]]) -> list[Item]:
    """The loops in order; those that gain by it in blocks of rows, also inside of each step of a loop."""
    return [_in_blocks(item, roots, kept) if isinstance(item, Loop) else item for item in items]


def _in_blocks(loop: Loop, roots: list[Root], kept: dict[Node, tuple[int, ...]]) -> Loop:
    if loop.block:
        return loop
    if loop.steps:
        loop.items = split_into_blocks(loop.items, roots, kept)
        return loop
    runs: list[list[Item]] = []
    if any(map(_is_serial, loop.items)):
        runs = _alternating(_worth_vectors(loop))
    elif _has_short_rows(loop):
        return _by_columns(loop, roots)
    elif _gains(loop, roots, kept):
        runs = [list(run) for _, run in groupby(loop.items, key=lambda item: isinstance(item, Loop))]
    return in_blocks_of(loop, runs, roots) if len(runs) > 1 else _in_tiles(loop, roots)


def _has_short_rows(loop: Loop) -> bool:
    """Whether the loops inside of one over rows are too short for vectors of what is dear in them."""
    inner = [one for one in loop.items if isinstance(one, Loop)]
    if not inner or loop.extent.value < 2 * rows_of_block():
        return False
    columns = inner[0].extent
    if any(one.extent is not columns or one.steps or one.outer or one.block for one in inner):
        return False
    inside = [*roots_in(loop.items)]  # comparisons of positions among them
    if any(root.path[-1] is not loop and root.path[-1] not in inner for root in inside):
        return False
    if not all(root.is_plain and _is_indexed(root) for root in inside):
        return False
    effort = accesses = 0
    seen: set[Node] = set()
    made = {root.node for root in inside}
    for one in inner:
        within = [root for root in inside if root.path[-1] is one]
        effort += sum(_arithmetic_along(root, one, seen) for root in within)
        accesses += len({place for root in within for place in _across(root, loop, made)})
    itemsize, machine = max(root.node.dtype.itemsize for root in inside), this_machine()
    by_rows = machine.nanoseconds_of_short_row(columns.value, len(inner), effort, itemsize)
    by_columns = machine.nanoseconds_by_columns(columns.value, accesses, effort, itemsize)
    return effort >= EXPENSIVE and by_columns < LEAST_GAIN * by_rows


def _arithmetic_along(root: Root, loop: Loop, seen: set[Node]) -> int:
    """Multiplications of what differs between the iterations of a loop: all else is computed before it."""
    if root.value is None:
        return 0
    known: dict[Expression, set[Axis]] = {}
    axes_of(root.value, known)
    axis = root.axis_of(loop)
    found = {one.node for one, axes in known.items() if isinstance(one, Compute) and axis in axes} - seen
    seen |= found
    return sum(node.operator.cost for node in found)


def _across(root: Root, loop: Loop, made: set[Node]) -> Iterator[tuple[Node, tuple[AnyIndex, ...]]]:
    """Where a root reads and writes elements that neighbouring rows have far apart, but for scratch."""
    axis = root.axis_of(loop)
    stored = [] if root.reduced else [(root.node, root.target)]
    for node, place in (*stored, *((one.node, one.indices) for one in root.reads if one.node not in made)):
        if any(axis in axes_in(index) for index in place[:-1]):
            yield node, place


def _is_indexed(root: Root) -> bool:
    """Whether all that it reads and writes lies where the loops say, not data."""
    places = (root.target, *(one.indices for one in root.reads))
    return all(isinstance(index, Index) for place in places for index in place)


def _by_columns(loop: Loop, roots: list[Root]) -> Loop:
    """A block of rows after another; in each its loops over columns, around those over rows."""
    runs: list[list[Item]] = []
    for is_loop, run in groupby(loop.items, key=lambda item: isinstance(item, Loop)):
        items = [*run]
        runs += [[one] for one in items] if is_loop else [items]
    blocks = in_blocks_of(loop, runs, roots)
    for place, part in enumerate(blocks.items):
        assert isinstance(part, Loop)
        inner = part.items[0]
        if isinstance(inner, Loop):
            part.items, inner.items, blocks.items[place] = inner.items, [part], inner
            for root in roots_in(part.items):
                root.path[-2:] = inner, part
    return blocks


def _in_tiles(loop: Loop, roots: list[Root]) -> Loop:
    """Two loops, one in the other, one of them in blocks around both if they walk across large arrays."""
    inner = loop.items[0]
    if len(loop.items) > 1 or not isinstance(inner, Loop) or inner.steps or inner.outer or inner.block:
        return loop
    if not all(isinstance(one, Root) for one in inner.items):
        loop.items = [_in_tiles(inner, roots)]
        return loop
    inside = [root for root in roots if inner in root.path]
    if not all(_may_be_tiled(root, loop, inner) for root in inside):
        return loop
    (least, vector), (most, _) = sorted(
        ((_crossings(inside, one), one) for one in (inner, loop)), key=lambda pair: pair[0]
    )
    if not least or not most:
        return loop
    blocks = Loop(vector.extent, block=rows_of_block())
    part = Loop(vector.extent, inner.items, outer=blocks)
    around = loop if vector is inner else inner
    blocks.items, around.items = [around], [part]
    for root in inside:
        axis, place = root.axis_of(vector), root.path.index(loop)
        assert axis is not None
        root.path = [*root.path[:place], blocks, around, part]
        root.bound[axis] = part
    return blocks


def _may_be_tiled(root: Root, outer: Loop, inner: Loop) -> bool:
    """Whether its elements are stored by themselves, or all added up, and no element asks for borders."""
    axes = {root.axis_of(outer), root.axis_of(inner)}
    is_alone = not root.reduced or root.reduced == {*root.axes} == axes
    has_borders = root.value is not None and any(isinstance(one, Select) for one in parts(root.value))
    return root.is_plain and None not in axes and is_alone and not has_borders


def _crossings(roots: list[Root], vector: Loop) -> int:
    """How many lines each iteration of a loop reads and writes, of large arrays that it walks across."""
    places: dict[Node, set[tuple[AnyIndex, ...]]] = {}
    for root in roots:
        axis = root.axis_of(vector)
        for node, place in ((root.node, root.target), *((one.node, one.indices) for one in root.reads)):
            crosses = any(axis in axes_in(index) for index in place[: _dims_across(node)])
            if crosses and not this_machine().stays_near(node.spec.nbytes):
                places.setdefault(node, set()).add(place)
    written = {root.node for root in roots}
    return sum(len(found) * (STORED_ACROSS if node in written else 1) for node, found in places.items())


def _dims_across(node: Node) -> int:
    """How many of the first dimensions lead from line to line of the cache, and not to a neighbour in one."""
    count, step = node.spec.ndim, node.dtype.itemsize
    while count and step < this_machine().line:
        count -= 1
        step *= node.shape[count]
    return count


def _alternating(roots: list[Root]) -> list[list[Item]]:
    """What vectors compute and what goes one element after another, in turn, each behind what it reads."""
    places: dict[Node, int] = {}
    runs: dict[int, list[Item]] = {}
    for one in roots:
        behind = max((places.get(load.node, 0) for load in one.reads), default=0)
        place = behind + (behind % 2 != _is_serial(one))
        places[one.node] = max(place, places.get(one.node, 0))
        runs.setdefault(place, []).append(one)
    return [runs[place] for place in sorted(runs)]


def _gains(loop: Loop, roots: list[Root], kept: dict[Node, tuple[int, ...]]) -> bool:
    """Whether rows have so much to do between inner loops that it is worth vectors."""
    if loop.extent.value < 2 * rows_of_block():
        return False
    inside = [root for root in roots if loop in root.path]
    leaves = [one for one in loop.items if isinstance(one, Root)]
    if len(leaves) == len(loop.items) or any(_keeps_a_row(root, loop, kept) for root in inside):
        return False
    if not all(root.is_plain for root in inside):
        return False
    seen: set[Node] = set()
    between = sum(arithmetic(root.value, seen) for root in leaves if root.value is not None)
    within = sum(_arithmetic_of_row(root, loop) for root in inside if root not in leaves)
    return between >= max(EXPENSIVE, ROW_SHARE * within)


def _keeps_a_row(root: Root, loop: Loop, kept: dict[Node, tuple[int, ...]]) -> bool:
    """Whether storage serves one row after the other, and would have to grow for a block."""
    axis = root.axis_of(loop)
    if axis in root.reduced or not kept[root.node]:
        return False
    return not any(getattr(root.target[dim], "axis", None) is axis for dim in kept[root.node])


def _arithmetic_of_row(root: Root, loop: Loop) -> int:
    inner = root.path[root.path.index(loop) + 1 :]
    return math.prod(one.extent.value for one in inner) * (2 + root.effort)


def rows_of_block() -> int:
    return this_machine().rows_of_block


def in_blocks_of(loop: Loop, runs: list[list[Item]], roots: list[Root], size: int = 0) -> Loop:
    """Runs of a loop's items, each in a loop over the rows of a block."""
    blocks = Loop(loop.extent, block=size or rows_of_block())
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
