"""Scratch used again: a value takes the array of another that nothing reads any more.

Only arrays of one dtype and of the same extents are shared, not of sizes that happen to agree, and under one
name: the compiler is told that arrays of different names do not overlap.
"""

from __future__ import annotations

from collections.abc import Iterable

from pullback.tracer.graph import Node

from .stages import Stage
from .tree import LoopTree, Root, Store

Lifetime = tuple[int, int]
"""The positions, among the outermost loops, of the first write and of the last use."""


def shared_arrays(tree: LoopTree, scratch: Iterable[Node], stages: Iterable[Stage]) -> dict[Node, Node]:
    """For each of the scratch arrays that needs no memory of its own, the one whose memory it takes."""
    lifetimes = _lifetimes(tree)
    begins = _places_where_others_have_ended(stages)
    totals = {root.node for root in tree.roots if root.reduced}  # of which each thread may have its own
    whole = [node for node in scratch if node in lifetimes and node not in totals and _is_whole(node, tree)]
    free_from: dict[Node, int] = {}
    holder: dict[Node, Node] = {}
    """For each array, the value that it holds last."""
    taken: dict[Node, Node] = {}
    for node in sorted(whole, key=lambda one: lifetimes[one][0]):
        first, last = lifetimes[node]
        ended = [
            one
            for one, end in free_from.items()
            if _are_alike(one, node, tree)
            and (end < begins[first] or (end == first and _is_updated_in_place(holder[one], node, tree)))
        ]
        owner = ended[-1] if ended else node
        if owner is not node:
            taken[node] = owner
        free_from[owner] = last
        holder[owner] = node
    return taken


def _places_where_others_have_ended(stages: Iterable[Stage]) -> list[int]:
    """For each outermost loop, the first that some thread may still be in when it begins."""
    places: list[int] = []
    for stage in stages:
        first = len(places)
        places += [first if stage.shared else first + place for place in range(len(stage.items))]
    return places


def _is_whole(node: Node, tree: LoopTree) -> bool:
    """Whether its storage has all dimensions: what has fewer belongs to a thread, and is small."""
    return len(tree.kept[node]) == node.spec.ndim > 0 and node not in tree.in_blocks


def _are_alike(one: Node, other: Node, tree: LoopTree) -> bool:
    return one.dtype == other.dtype and tree.extents[one] == tree.extents[other]


def _is_updated_in_place(old: Node, new: Node, tree: LoopTree) -> bool:
    """Whether the last use of an old element is to make the new one in its place."""
    makers = [root for root in tree.roots if root.node is new]
    outermost = {id(root.outermost) for root in makers}
    last = [root for root in tree.roots if id(root.outermost) in outermost and _reads(root, old)]
    if len(makers) != 1 or last != makers or not isinstance(makers[0], Store) or makers[0].steps:
        return False
    return all(load.indices == makers[0].target for load in makers[0].reads if load.node is old)


def _reads(root: Root, node: Node) -> bool:
    return root.node is node or any(load.node is node for load in root.reads)


def _lifetimes(tree: LoopTree) -> dict[Node, Lifetime]:
    position = {id(item): place for place, item in enumerate(tree.items)}
    views = tree.views
    found: dict[Node, Lifetime] = {}
    for root in tree.roots:
        place = position[id(root.outermost)]
        for node in (root.node, *(load.node for load in root.reads)):
            while node in views:
                node = views[node]
            first, last = found.get(node, (place, place))
            found[node] = (min(first, place), max(last, place))
    return found
