"""The loop tree: roots placed one after another, each as deep in existing loops as what it reads allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pullback.tracer.graph import Node

from .expression import AnyIndex, Axis, Index
from .extents import Symbol
from .library import looped_dims, reads_for_calls
from .loops import inside_steps, is_from_before, keeps_from_vectors
from .tree import Call, Item, Loop, Reduction, Root, Search


def schedule(roots: list[Root], checks: list[Root]) -> list[Item]:
    """All roots in loops: first the checks and totals that other loops wait for, in loops of their own."""
    by_node: dict[Node, list[Root]] = {}
    awaited = _awaited_totals(roots)
    first = _place_all(checks, {})
    first += _place_all([root for root in roots if root in awaited], by_node)
    return first + _place_all([root for root in roots if root not in awaited], by_node)


def _awaited_totals(roots: list[Root]) -> set[Root]:
    """Totals of inputs alone that a loop reads: in a loop with other work they would make that loop end."""
    read_in_loops = {load.node for root in roots if root.axes for load in root.reads}
    return {
        root
        for root in roots
        if isinstance(root, Reduction)
        and not root.steps
        and root.node.spec.ndim == 0
        and root.node in read_in_loops
        and all(load.node.is_input for load in root.reads)
    }


def _place_all(roots: list[Root], by_node: dict[Node, list[Root]]) -> list[Item]:
    items: list[Item] = []
    looped, reads = looped_dims(roots), reads_for_calls(roots)
    placed: list[Root] = []
    for root in roots:
        made = {load.node: None for load in root.reads if not is_from_before(load, root)}
        made |= dict.fromkeys(reads.get(root.node, ()))
        sources = [one for node in made for one in by_node.get(node, ())]
        if root.writes_over:  # of what other roots have stored
            sources += by_node[root.node]
        if root.version:
            sources += [one for one in placed if any(load.node is root.node for load in one.reads)]
        inside = inside_steps(items, root)
        _place(inside, root, _order_to_join(inside, root, looped, sources), sources)
        by_node.setdefault(root.node, []).append(root)
        placed.append(root)
    return items


def _order_to_join(
    items: list[Item], root: Root, looped: Mapping[Node, tuple[int, ...]], sources: list[Root]
) -> list[Axis]:
    """The axes, first those of loops around a call whose operand the root makes or whose result it uses."""
    axes = list(root.axes)
    if isinstance(root, Search) or not axes:  # as of a view, which has no places of its own
        return axes
    for node, place in ((root.node, root.target), *((load.node, load.indices) for load in root.reads)):
        first = [axis for dim in looped.get(node, ()) if (axis := _axis_at(place, dim)) in axes]
        if first and (node is root.node or _joins(items, root, first[0], node, sources)):
            return [*first, *(axis for axis in axes if axis not in first)]
    return axes


def _axis_at(place: Sequence[AnyIndex], dim: int) -> Axis | None:
    index = place[dim]
    return index.axis if isinstance(index, Index) else None


def _joins(items: list[Item], root: Root, axis: Axis, node: Node, sources: list[Root]) -> bool:
    """Whether a loop over the axis may be that in which the node is made."""
    loop = _loop_to_join(items, root, axis, sources)
    return loop is not None and any(one.node is node and _contains(loop, one) for one in sources)


def _place(items: list[Item], root: Root, remaining: list[Axis], sources: list[Root]) -> None:
    """Put a root at its place below `items`, whose enclosing loops it has joined already."""
    if not remaining:
        items.append(root)
        return
    axis = remaining[0]
    inner = remaining[1].extent if len(remaining) > 1 else None
    loop = _loop_to_join(items, root, axis, sources, inner)
    if loop is None:
        loop = Loop(axis.extent)
        items.append(loop)
    root.path.append(loop)
    root.bound[axis] = loop
    _place(loop.items, root, remaining[1:], sources)


def _loop_to_join(
    items: list[Item], root: Root, axis: Axis, sources: list[Root], inner: Symbol | None = None
) -> Loop | None:
    """The last loop that the root fits into, with nothing that it reads made later on.

    One that has a loop over the extent `inner` in it, which the root may join as well, comes before others.
    """
    found: Loop | None = None
    for item in reversed(items):
        inside = [one for one in sources if _contains(item, one)]
        fits = isinstance(item, Loop) and item.extent is axis.extent
        if fits and (item.steps or any(keeps_from_vectors(item, one, root) for one in inside)):
            fits = False
        if fits and all(_same_iteration(item, one, root, axis) for one in inside):
            if inner is None or _has_loop(item, inner):  # type: ignore[arg-type]
                return item  # type: ignore[return-value]
            found = found or item  # type: ignore[assignment]
        if inside:
            break
    return found


def _has_loop(loop: Loop, extent: Symbol) -> bool:
    return any(isinstance(item, Loop) and item.extent is extent for item in loop.items)


def _contains(item: Item, root: Root) -> bool:
    return item is root or (isinstance(item, Loop) and item in root.path)


def _same_iteration(loop: Item, source: Root, root: Root, axis: Axis) -> bool:
    """Whether each iteration of the loop reads of `source` only what the same iteration has made."""
    made = source.axis_of(loop)  # type: ignore[arg-type]
    if made is None or made in source.reduced or loop not in source.complete_in:
        return False
    dims = [dim for dim, index in enumerate(source.target) if isinstance(index, Index) and index.axis is made]
    if len(dims) != 1:
        return False
    reads = [load for load in root.reads if load.node is source.node]
    if source.node is root.node and not isinstance(root, Call):
        return False
    if root.version and any(load.node is root.node for load in source.reads):  # of what is overwritten now
        return False
    return all(isinstance(index := load.indices[dims[0]], Index) and index.axis is axis for load in reads)
