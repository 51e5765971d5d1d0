"""Rows of scratch that lie in the rows of an output: what the output is made of is written where it will be.

A row of exponentials becomes a row of probabilities, element by element. Where the probabilities exceed the
cache, a row of them would be fetched from memory only when all that is left to do is to write it; so it is
fetched while exponentials are computed. In the cache, a row of scratch is nearer than the output's rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pullback.tracer.graph import Node

from .expression import AnyIndex, Index
from .tree import Item, Loop, LoopTree, Root

CACHED_BYTES = 1 << 22
"""Outputs up to this size stay in the cache: rows of scratch are left where they are."""


def rows_of_outputs(tree: LoopTree, scratch: Iterable[Node], outputs: Sequence[Node]) -> dict[Node, Node]:
    """For rows of scratch of which a large output is made, that output, all of whose dimensions they get."""
    order = list(_roots_in(tree.items))
    taken: dict[Node, Node] = {}
    for node in scratch:
        makers = [root for root in order if root.node is node]
        readers = [root for root in order if any(load.node is node for load in root.reads)]
        if len(makers) != 1 or not readers or not _is_row(node, makers[0], tree):
            continue
        last = readers[-1]
        is_free = last.node in outputs and last.node not in (*taken.values(), *tree.rows)
        if is_free and last.node.spec.nbytes > CACHED_BYTES and _ends_as(makers[0], readers, last, tree):
            taken[node] = last.node
            tree.kept[node] = tree.kept[last.node]
    return taken


def _roots_in(items: Iterable[Item]) -> Iterator[Root]:
    for item in items:
        if isinstance(item, Loop):
            yield from _roots_in(item.items)
        else:
            yield item


def _is_row(node: Node, maker: Root, tree: LoopTree) -> bool:
    is_part = 0 < len(tree.kept[node]) < node.spec.ndim
    return is_part and maker.kind == "store" and not maker.steps and node not in tree.in_blocks


def _ends_as(maker: Root, readers: Sequence[Root], last: Root, tree: LoopTree) -> bool:
    """Whether the last reader puts what it makes of an element in its place, when nobody else needs it."""
    old, new = maker.node, last.node
    is_alike = old.dtype == new.dtype and tree.extents[old] == tree.extents[new]
    is_only_maker = sum(root.node is new for root in tree.roots) == 1
    if not (is_alike and is_only_maker and last.kind == "store" and not last.steps):
        return False
    target = _loops_at(last, last.target)
    rows = [loop for dim, loop in enumerate(_loops_at(maker, maker.target)) if dim not in tree.kept[old]]
    if None in target or any(loop not in target for loop in rows):
        return False
    inner = [loop for loop in last.path if loop not in rows]
    return not any(loop in maker.path for loop in inner) and all(
        _loops_at(root, load.indices) == target
        for root in readers
        if root is last or any(loop in root.path for loop in inner)
        for load in root.reads
        if load.node is old
    )


def _loops_at(root: Root, indices: Sequence[AnyIndex]) -> list[Loop | None]:
    """The loops whose iterations the indices of a place follow; None for an index that is not just that."""
    axes = [index.axis if isinstance(index, Index) else None for index in indices]
    return [root.bound.get(axis) if axis else None for axis in axes]
