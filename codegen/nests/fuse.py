"""Fusion: which values are stored, and one tree of loops in which all of them are computed.

Every stored value has one or more `Root`s: an iteration space and the expression of one element, into which
elementwise operators and movement have been inlined. Roots are placed one after another, each as deep in an
existing loop nest as what it reads allows: a value made in the same iteration, or one that an inner loop of
the same iteration has completed. So what is done with the sums over a row is in the loop over rows that made
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from pullback.tracer.errors import GraphError
from pullback.tracer.graph import Graph, Node

from .blocking import serial_values, split_into_blocks
from .expression import AnyIndex, Index
from .extents import ONE, Extents, Symbol, find_extents
from .lanes import mark_short_sums
from .library import equal_operands, with_shared_operands
from .loops import bodies, enter, find_step_loops, rows_of_histories, small_extents
from .lower import Lowering, NotPlain
from .positions import range_checks
from .roots import find_roots
from .schedule import schedule
from .stored import required_storage, worth_storing
from .totals import sum_in_parts
from .tree import Loop, LoopTree, Root
from .versions import InPlace, find_late_reads
from .whole_roots import dims_taken_whole


def fuse(graph: Graph, outputs: Sequence[Node]) -> LoopTree:
    """The loop tree that stores `outputs`, nodes of the graph that are neither inputs nor constants."""
    extents = find_extents(graph)
    stored, padded = required_storage(graph, outputs)
    required = frozenset(stored)
    barred: set[tuple[Node, int]] = set()
    loops = find_step_loops(graph, extents, places := InPlace())
    whole = {*outputs, *(history for one in loops for history in one.histories)}
    same: dict[Node, Node] = {}
    requested: set[Node] = set()
    lowering = Lowering(extents, stored, padded)
    while True:
        enter(loops, lowering, {*outputs, *requested})
        try:
            roots = find_roots(graph, lowering, {one.node.node: one for one in loops})
            roots = with_shared_operands(roots, same)
            checks, compared = range_checks(graph, lowering)
        except NotPlain as request:
            for node in request.nodes:
                if node in requested:
                    raise GraphError(f"{node!r} is stored, and lies where it cannot be read") from None
            requested.update(request.nodes)
            stored.update(request.nodes)
            continue
        late = find_late_reads(places, roots, bodies(graph), stored)
        if late.values or late.arrays:
            stored |= late.values | required  # of which versions in place were taken out
            barred |= {(chain.loop.node, chain.carry) for one in late.arrays for chain in places.chains[one]}
            loops = find_step_loops(graph, extents, places := InPlace(), barred)
            whole = {*outputs, *(history for one in loops for history in one.histories)}
            lowering = Lowering(extents, stored, padded)
            continue
        items = schedule(roots, checks)
        shared = worth_storing(roots, stored) | serial_values(items, stored)
        if not shared and (equal := equal_operands(roots)):
            same |= equal
        elif not shared:
            kept, _ = _storage(roots, whole, extents)
            items = split_into_blocks(items, roots, kept)
            items, roots = sum_in_parts(items, roots, extents)
            kept, in_blocks = _storage(roots, whole, extents)
            rows = rows_of_histories(loops, roots, lowering)
            kept |= {one: kept[one][1:] for one, count in rows.items() if count == 1 and kept[one][1:]}
            small = small_extents(loops, extents)
            mark_short_sums(roots)
            return LoopTree(graph, extents, items, [*checks, *roots], kept, in_blocks, compared, rows, small)
        stored |= shared


# --- storage ------------------------------------------------------------------------------------------------


def _storage(
    roots: list[Root], outputs: set[Node], extents: Extents
) -> tuple[dict[Node, tuple[int, ...]], dict[Node, int]]:
    """The dimensions that each node's storage needs: those of loops that end before it is read do not go.

    The second result names a dimension of which it is enough to store one block.
    """
    users: dict[Node, list[Root]] = {}
    for root in roots:
        for load in root.reads:
            users.setdefault(load.node, []).append(root)
    kept: dict[Node, tuple[int, ...]] = {}
    in_blocks: dict[Node, int] = {}
    taken = dims_taken_whole(roots)
    for root in roots:
        every = tuple(range(root.node.spec.ndim))
        if root.node in outputs or root.needs_all_dims:
            kept[root.node] = every
            continue
        common = root.complete_in
        for user in users.get(root.node, ()):
            common = [mine for mine, _ in takewhile(lambda pair: pair[0] is pair[1], zip(common, user.path))]
        sized = zip(every, root.target, extents[root.node])
        own = {dim for dim, index, extent in sized if not _is_local(root, index, extent, common)}
        kept[root.node] = tuple(sorted(own.union(kept.get(root.node, ()), taken.get(root.node, ()))))
        for dim in own:
            if (loop := _loop_of(root, root.target[dim])) and loop.outer and loop.outer in common:
                in_blocks[root.node] = dim
                if loop is root.path[-1]:  # rows lie side by side
                    kept[root.node] = tuple(sorted(kept[root.node], key=lambda one: (one == dim, one)))
    return kept, in_blocks


def _is_local(root: Root, index: AnyIndex, extent: Symbol, loops: list[Loop]) -> bool:
    """Whether a dimension is walked by a loop that encloses every use, or has size 1."""
    return extent is ONE or _loop_of(root, index) in loops


def _loop_of(root: Root, index: AnyIndex) -> Loop | None:
    """The loop whose iterations an index follows, if it is just that."""
    axis = index.axis if isinstance(index, Index) else None
    return root.bound.get(axis) if axis else None
