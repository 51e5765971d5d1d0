"""Scratch that lies in an output: what the output is made of is written where it will be.

A gradient that a product has computed becomes new weights element by element, without an array of its own. A
row of exponentials becomes a row of probabilities: where these exceed the cache, a row of them would be
fetched from memory only when all that is left to do is to write it; so it is fetched while exponentials are
computed. In the cache, a row of scratch is nearer than the output's rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pullback.tracer.graph import Node

from .expression import AnyIndex, Index
from .tree import Call, Item, Loop, LoopTree, Root, Store, View

SMALLEST_SHARED = 1 << 15
"""Bytes of an output from which sharing its memory counts more than a name for each value."""
CACHED_BYTES = 1 << 22
"""Outputs up to this size stay in the cache: rows of scratch are left where they are."""


def scratch_in_outputs(tree: LoopTree, scratch: Iterable[Node], outputs: Sequence[Node]) -> dict[Node, Node]:
    """For scratch of which an output is made in its place, that output; rows get all of its dimensions."""
    makers_of: dict[Node, list[Root]] = {}
    readers_of: dict[Node, list[Root]] = {}
    for root in _roots_in(tree.items):
        makers_of.setdefault(root.node, []).append(root)
        for read in dict.fromkeys(load.node for load in root.reads):
            readers_of.setdefault(read, []).append(root)
    taken: dict[Node, Node] = {}
    for node in scratch:
        makers, readers = makers_of.get(node, []), readers_of.get(node, [])
        is_plain = all(isinstance(one, Store | Call) for one in makers)
        if not makers or not readers or not is_plain or any(isinstance(one, View) for one in readers):
            continue
        last = readers[-1]
        is_free = last.node in outputs and last.node not in (*taken.values(), *tree.rows)
        if is_free and _gains(node, last.node, tree) and _ends_as(makers, readers, last, tree):
            taken[node] = last.node
            tree.kept[node] = tree.kept[last.node]
    return taken


def _roots_in(items: Iterable[Item]) -> Iterator[Root]:
    for item in items:
        if isinstance(item, Loop):
            yield from _roots_in(item.items)
        else:
            yield item


def _gains(node: Node, output: Node, tree: LoopTree) -> bool:
    """Whether scratch is as large as the output, or a row of an output that exceeds the cache."""
    kept = len(tree.kept[node])
    is_whole = kept == node.spec.ndim
    is_plain = kept > 0 and node not in tree.in_blocks and node not in tree.rows
    return is_plain and output.spec.nbytes >= (SMALLEST_SHARED if is_whole else CACHED_BYTES)


def _ends_as(makers: Sequence[Root], readers: Sequence[Root], last: Root, tree: LoopTree) -> bool:
    """Whether the last reader puts what it makes of an element in its place, when nobody else needs it."""
    old, new = makers[0].node, last.node
    is_alike = old.dtype == new.dtype and tree.extents[old] == tree.extents[new]
    is_only_maker = sum(root.node is new for root in tree.roots) == 1
    if not (is_alike and is_only_maker and isinstance(last, Store)):
        return False
    if any(root.steps for root in (*makers, last)):
        return False
    target = _loops_at(last, last.target)
    if None in target:
        return False
    rows = [loop for dim, loop in enumerate(target) if dim not in tree.kept[old]]
    inner = [loop for loop in last.path if loop not in rows]
    if any(_walks_others(maker, rows, inner, tree) for maker in makers):
        return False
    return all(
        _loops_at(root, load.indices) == target
        for root in readers
        if root is last or any(loop in root.path for loop in inner)
        for load in root.reads
        if load.node is old
    )


def _walks_others(maker: Root, rows: Sequence[Loop | None], inner: Sequence[Loop], tree: LoopTree) -> bool:
    """Whether a maker is not in the loops over rows, or in the loops in which the output is made."""
    made = _loops_at(maker, maker.target)
    mine = [loop for dim, loop in enumerate(made) if dim not in tree.kept[maker.node]]
    return mine != rows or any(loop in maker.path for loop in inner)


def _loops_at(root: Root, indices: Sequence[AnyIndex]) -> list[Loop | None]:
    """The loops whose iterations the indices of a place follow; None for an index that is not just that."""
    axes = [index.axis if isinstance(index, Index) else None for index in indices]
    return [root.bound.get(axis) if axis else None for axis in axes]
