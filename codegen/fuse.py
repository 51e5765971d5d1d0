"""Fusion: which values are stored, and one tree of loops in which all of them are computed.

Every stored value has one or more `Root`s: an iteration space and the expression of one element, into which
elementwise operators and movement have been inlined. Roots are placed one after another, each as deep in an
existing loop nest as what it reads allows: a value made in the same iteration, or one that an inner loop of
the same iteration has completed. So the passes of a softmax over a row share the loop over rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from pullback.tracer.graph import Graph, Node
from pullback.tracer.ops import indexing as ix
from pullback.tracer.ops import movement as m

from .blocking import row_values, split_into_blocks
from .cost import EXPENSIVE
from .expression import (
    AnyIndex,
    Axis,
    Compute,
    Expression,
    Index,
    Load,
    loads,
    number,
    of_axis,
    parts,
    plus,
)
from .extents import ONE, Extents, Symbol, find_extents
from .library import untransposed
from .lower import Lowering, NotPlain, merges_dimensions
from .positions import range_checks
from .tree import Item, Loop, LoopTree, Root

EFFORT_TO_REPEAT = 12
"""Operators up to which an element may be written out again for the places that it is read at."""
EXPENSIVE_ACROSS_NESTS = 60
"""The same for a value that would have to go through memory."""


def fuse(graph: Graph, outputs: Sequence[Node]) -> LoopTree:
    """The loop tree that stores `outputs`, nodes of the graph that are neither inputs nor constants."""
    extents = find_extents(graph)
    stored = _required_storage(graph, outputs)
    while True:
        lowering = Lowering(extents, stored)
        try:
            roots = _roots(graph, lowering)
            checks, compared = range_checks(graph, lowering)
        except NotPlain as request:
            stored.add(request.node)
            continue
        items = _schedule(roots, checks)
        shared = _worth_storing(roots, stored)
        if not shared:
            kept = _storage(roots, set(outputs), extents)
            items = split_into_blocks(items, roots, kept)
            kept = _storage(roots, set(outputs), extents)
            return LoopTree(graph, extents, items, [*checks, *roots], kept, compared)
        stored |= shared


# --- what must be stored ------------------------------------------------------------------------------------


def _required_storage(graph: Graph, outputs: Sequence[Node]) -> set[Node]:
    stored = {node for node in graph.nodes if node.is_input} | set(graph.inputs) | set(outputs)
    for node in graph.nodes:
        if node.operator.family in ("reduction", "scan", "contraction"):
            stored.add(node)
        if node.operator in (ix.scatter_add, ix.index_update):
            stored.add(node)
        if node.operator.family == "contraction":
            stored.update(operand for operand in map(untransposed, node.operands) if not operand.is_input)
        if node.operator is m.reshape and merges_dimensions(node):
            stored.update((node, node.operands[0]))
    _store_what_repeats(graph, stored)
    return stored


def _store_what_repeats(graph: Graph, stored: set[Node]) -> None:
    """Add the values that movement would have computed again at several places, at a cost above storing.

    Each place is written out, so without this a stencil that is applied again and again would grow with the
    power of its rounds.
    """
    places = _places(graph, stored)
    for node in graph.nodes:
        if node.operator.family == "elementwise" and node not in stored and places[node] > 1:
            budget = EFFORT_TO_REPEAT // (places[node] - 1)
            if _costs_more(node, budget, stored):
                stored.add(node)


def _places(graph: Graph, stored: set[Node]) -> dict[Node, int]:
    """At how many places the users of each node read it: one that all of them share, and each movement's."""
    places = dict.fromkeys(graph.nodes, 0)
    read_in_place: set[Node] = set()
    for node in reversed(graph.nodes):
        for operand in set(node.operands):
            if node not in stored and _moves(node) and not (places[node] <= 1 and _is_index(operand, node)):
                places[operand] += max(places[node], 1)
            elif operand not in read_in_place:
                read_in_place.add(operand)
                places[operand] += 1
    return places


def _costs_more(node: Node, budget: int, stored: set[Node]) -> bool:
    """Whether computing one element of a node from what is stored costs more than the budget.

    A place is named by the movement that leads there; a value counts once at each.
    """
    start: tuple[Node, tuple[object, ...]] = (node, ())
    seen = {start}
    pending = [start]
    while pending and budget >= 0:
        one, place = pending.pop()
        budget -= max(one.operator.cost, 1)
        inner = (one, place) if _moves(one) else place
        for operand in one.operands:
            read = (operand, inner)
            if operand not in stored and read not in seen:
                seen.add(read)
                pending.append(read)
    return budget < 0


def _is_index(operand: Node, node: Node) -> bool:
    """Whether the operand of a gather is an index array, which is read at the place of the result."""
    return node.operator is ix.gather and operand in node.operands[1:]


def _moves(node: Node) -> bool:
    return node.operator.family in ("movement", "indexing")


def _worth_storing(roots: list[Root], stored: set[Node]) -> set[Node]:
    """Values that several loops would compute again, at a cost above that of keeping them."""
    users: dict[Node, dict[int, Root]] = {}
    for root in roots:
        for node in _computed_nodes(root):
            users.setdefault(node, {})[id(root.path[-1]) if root.path else id(root)] = root
    shared = {
        node for node, found in users.items() if _recomputed_too_often(node, list(found.values()), stored)
    }
    shared |= {node for root in roots for node in row_values(root, stored)}
    # What is only needed for another stored value need not be stored itself.
    return {
        node
        for node in shared
        if not any(node in one.operands and users[one].keys() >= users[node].keys() for one in shared)
    }


def _recomputed_too_often(node: Node, users: list[Root], stored: set[Node]) -> bool:
    if node in stored or len(users) < 2 or node.spec.ndim == 0:
        return False
    outer = {id(root.path[0]) if root.path else id(root) for root in users}
    return node.operator.cost >= (EXPENSIVE if len(outer) == 1 else EXPENSIVE_ACROSS_NESTS)


def _computed_nodes(root: Root) -> set[Node]:
    expressions = () if root.value is None else parts(root.value)
    return {one.node for one in expressions if isinstance(one, Compute)}


# --- roots --------------------------------------------------------------------------------------------------


def _roots(graph: Graph, lowering: Lowering) -> list[Root]:
    result: list[Root] = []
    for node in graph.nodes:
        if node in lowering.stored and not node.is_input:
            result.extend(_roots_of(node, lowering))
    return result


def _axes(symbols: Sequence[Symbol]) -> tuple[Axis, ...]:
    return tuple(map(Axis, symbols))


def _at(axes: Sequence[Axis]) -> tuple[Index, ...]:
    return tuple(map(of_axis, axes))


def _roots_of(node: Node, lowering: Lowering) -> Iterator[Root]:
    extents = lowering.extents
    if node.operator.family == "contraction":
        yield Root(node, "call", reads=tuple(_whole(untransposed(one), extents) for one in node.operands))
    elif node.operator is m.reshape and merges_dimensions(node):
        yield Root(node, "view", reads=(_whole(node.operands[0], extents),))
    elif node.operator.family == "reduction":
        yield _reduction(node, lowering)
    elif node.operator.family == "scan":
        axes = _axes(extents[node])
        elements = tuple(lowering.element(operand, _at(axes)) for operand in node.operands)
        value = elements[0] if len(elements) == 1 else Compute(node, elements)
        yield _root(node, "scan", axes, value, _at(axes))
    elif node.operator is ix.scatter_add:
        updates, *indices = node.operands
        for part, offsets in _parts(updates, lowering.stored, indices[0].spec.ndim):
            yield _scatter(node, "scatter", part, indices, lowering, offsets)
    elif node.operator is ix.index_update:
        axes = _axes(extents[node])
        yield _root(node, "store", axes, lowering.element(node.operands[0], _at(axes)), _at(axes))
        yield _scatter(node, "update", node.operands[1], node.operands[2:], lowering)
    elif node.operator is m.concatenate:
        for part, offsets in _parts(node, lowering.stored - {node}):
            at = _at(axes := _axes(extents[part]))
            yield _root(node, "store", axes, lowering.element(part, at), _shifted(at, offsets))
    else:
        axes = _axes(extents[node])
        yield _root(node, "store", axes, lowering.computed(node, _at(axes)), _at(axes))


def _parts(node: Node, stored: set[Node], first: int = 0) -> Iterator[tuple[Node, tuple[int, ...]]]:
    """What a value is concatenated from, in dimensions from `first` on, and where each part begins.

    Each part is written by itself: no element needs to find out which part it belongs to.
    """
    pending = [(node, (0,) * node.spec.ndim)]
    while pending:
        one, offsets = pending.pop()
        dim = one.attributes["dim"] if one.operator is m.concatenate and one not in stored else -1
        if dim < first:
            yield one, offsets
            continue
        inside = []
        for part in one.operands:
            inside.append((part, offsets))
            offsets = (*offsets[:dim], offsets[dim] + part.shape[dim], *offsets[dim + 1 :])
        pending.extend(reversed(inside))


def _shifted(at: tuple[Index, ...], offsets: tuple[int, ...]) -> tuple[Index, ...]:
    return tuple(plus(index, number(offset)) for index, offset in zip(at, offsets))


def _whole(node: Node, extents: Extents) -> Load:
    """A read of a whole array, at no particular place."""
    return Load(node, tuple(Index() for _ in extents[node]))


def _reduction(node: Node, lowering: Lowering) -> Root:
    (x,), dims = node.operands, node.attributes["dims"]
    axes = _axes(lowering.extents[x])
    kept = [axis for dim, axis in enumerate(axes) if dim not in dims]
    reduced = frozenset(axes[dim] for dim in dims)
    kind = "search" if node.operator.name.startswith("arg") else "reduce"
    return _root(node, kind, axes, lowering.element(x, _at(axes)), _at(kept), reduced)


def _scatter(
    node: Node,
    kind: str,
    updates: Node,
    indices: Sequence[Node],
    lowering: Lowering,
    offsets: tuple[int, ...] | None = None,
) -> Root:
    axes = _axes(lowering.extents[updates])
    at, rank = _at(axes), indices[0].spec.ndim
    positions = tuple(lowering.position(index, at[:rank]) for index in indices)
    reduced = frozenset(axes)  # where an element goes is known only when it is there
    inner = at if offsets is None else _shifted(at, offsets)
    return _root(node, kind, axes, lowering.element(updates, at), (*positions, *inner[rank:]), reduced)


def _root(
    node: Node,
    kind: str,
    axes: tuple[Axis, ...],
    value: Expression,
    target: tuple[AnyIndex, ...],
    reduced: frozenset[Axis] = frozenset(),
) -> Root:
    reads = list(loads(value))
    for index in target:
        if not isinstance(index, Index):
            reads.extend(loads(index))  # type: ignore[arg-type]
    looped = frozenset(axis for axis in axes if axis.extent is not ONE)
    root = Root(node, kind, axes, value, target, reduced & looped, tuple(reads))
    root.axes = _loop_order(root)
    return root


def _loop_order(root: Root) -> tuple[Axis, ...]:
    """The axes that need loops, outermost first, as the largest array that is touched lies in memory."""
    wanted = [axis for axis in root.axes if axis.extent is not ONE]
    touched = [load.indices for load in root.reads] + [root.target]
    orders = [
        [index.axis for index in indices if isinstance(index, Index) and index.axis] for indices in touched
    ]
    best: list[Axis] = max(orders, key=lambda order: len(set(order)), default=[])
    missing = [axis for axis in wanted if axis not in best]
    result = list(dict.fromkeys(best))
    if root.kind == "search":  # its best value and index are local variables
        return tuple(sorted(wanted, key=lambda axis: axis in root.reduced))
    for axis in missing:  # in front of its successor in the natural order
        later = [one for one in wanted[wanted.index(axis) + 1 :] if one in result]
        result.insert(result.index(later[0]) if later else len(result), axis)
    return tuple(result)


# --- the loop tree ------------------------------------------------------------------------------------------


def _schedule(roots: list[Root], checks: list[Root]) -> list[Item]:
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
        if root.kind == "reduce"
        and root.node.spec.ndim == 0
        and root.node in read_in_loops
        and all(load.node.is_input for load in root.reads)
    }


def _place_all(roots: list[Root], by_node: dict[Node, list[Root]]) -> list[Item]:
    items: list[Item] = []
    for root in roots:
        sources = [one for load in root.reads for one in by_node.get(load.node, ())]
        if root.kind == "update":  # of what another root has stored
            sources += by_node[root.node]
        _place(items, root, list(root.axes), sources)
        by_node.setdefault(root.node, []).append(root)
    return items


def _place(items: list[Item], root: Root, remaining: list[Axis], sources: list[Root]) -> None:
    """Put a root at its place below `items`, whose enclosing loops it has joined already."""
    if not remaining:
        items.append(root)
        return
    axis = remaining[0]
    loop = _loop_to_join(items, root, axis, sources)
    if loop is None:
        loop = Loop(axis.extent)
        items.append(loop)
    root.path.append(loop)
    root.bound[axis] = loop
    _place(loop.items, root, remaining[1:], sources)


def _loop_to_join(items: list[Item], root: Root, axis: Axis, sources: list[Root]) -> Loop | None:
    """The last loop that the root fits into, with nothing that it reads made later on."""
    for item in reversed(items):
        inside = [one for one in sources if _contains(item, one)]
        fits = isinstance(item, Loop) and item.extent is axis.extent
        if fits and all(_same_iteration(item, one, root, axis) for one in inside):
            return item  # type: ignore[return-value]
        if inside:
            return None
    return None


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
    if source.node is root.node:
        return False
    return all(isinstance(index := load.indices[dims[0]], Index) and index.axis is axis for load in reads)


# --- storage ------------------------------------------------------------------------------------------------


def _storage(roots: list[Root], outputs: set[Node], extents: Extents) -> dict[Node, tuple[int, ...]]:
    """The dimensions that each node's storage needs: those of loops that end before it is read do not go."""
    users: dict[Node, list[Root]] = {}
    for root in roots:
        for load in root.reads:
            users.setdefault(load.node, []).append(root)
    kept: dict[Node, tuple[int, ...]] = {}
    for root in roots:
        every = tuple(range(len(root.target) if root.kind not in ("call", "view") else root.node.spec.ndim))
        if root.node in outputs or root.kind in ("call", "view", "scan", "update"):
            kept[root.node] = every
            continue
        common = root.complete_in
        for user in users.get(root.node, ()):
            common = [mine for mine, _ in takewhile(lambda pair: pair[0] is pair[1], zip(common, user.path))]
        sized = zip(every, root.target, extents[root.node])
        own = {dim for dim, index, extent in sized if not _is_local(root, index, extent, common)}
        kept[root.node] = tuple(sorted(own.union(kept.get(root.node, ()))))
    return kept


def _is_local(root: Root, index: AnyIndex, extent: Symbol, loops: list[Loop]) -> bool:
    """Whether a dimension is walked by a loop that encloses every use, or has size 1."""
    if extent is ONE:
        return True
    if not isinstance(index, Index) or index.axis is None:
        return False
    return root.bound.get(index.axis) in loops
