"""Fusion: which values are stored, and one tree of loops in which all of them are computed.

Every stored value has one or more `Root`s: an iteration space and the expression of one element, into which
elementwise operators and movement have been inlined. Roots are placed one after another, each as deep in an
existing loop nest as what it reads allows: a value made in the same iteration, or one that an inner loop of
the same iteration has completed. So the passes of a softmax over a row share the loop over rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile

from pullback.tracer.errors import GraphError
from pullback.tracer.graph import Graph, Node
from pullback.tracer.ops import indexing as ix
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.elementwise import identity
from pullback.tracer.ops.windows import PLACE, update_at

from ..rewriting.calls import gemm, matrices_of
from ..rewriting.extremes import compared_with_extreme
from .blocking import row_values, scattered_values, split_into_blocks
from .cost import EXPENSIVE
from .expression import (
    ZERO,
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
    times,
    values_in,
)
from .extents import ONE, Extents, Symbol, find_extents
from .lanes import mark_short_sums
from .library import (
    call_roots,
    equal_operands,
    looped_dims,
    reads_for_calls,
    start_element,
    starts_filled,
    starts_loops,
    with_shared_operands,
)
from .loops import (
    StepLoop,
    bodies,
    enter,
    find_step_loops,
    inside_steps,
    is_from_before,
    keeps_from_vectors,
    needed_before,
    rows_of_histories,
    small_extents,
)
from .lower import Lowering, NotPlain, merges_dimensions
from .positions import range_checks
from .totals import sum_in_parts
from .tree import Item, Loop, LoopTree, Root
from .updates import MOST_CHOICES, row_of_updates, store_updates, visible_updates
from .versions import InPlace, find_late_reads

EFFORT_TO_REPEAT = 12
"""Operators up to which an element may be written out again for the places that it is read at."""
EFFORT_ACROSS_NESTS = 60
EFFORT_ACROSS_NESTS_CACHED = 24
"""Operators up to which an element is computed again in another nest: if kept in memory, in the cache."""
CACHED_BYTES = 1 << 15
MOST_PARTS = 4
"""Of a concatenation that a reader chooses from."""
MOST_NESTED = 16
"""Questions of which part of an array an element is in, one asked within the answer of another."""
CHOOSING = frozenset((m.slice_update, m.pad, m.concatenate))


def fuse(graph: Graph, outputs: Sequence[Node]) -> LoopTree:
    """The loop tree that stores `outputs`, nodes of the graph that are neither inputs nor constants."""
    extents = find_extents(graph)
    stored, padded = _required_storage(graph, outputs)
    barred: set[tuple[Node, int]] = set()
    loops = find_step_loops(graph, extents, places := InPlace())
    whole = {*outputs, *(history for one in loops for history in one.histories)}
    same: dict[Node, Node] = {}
    requested: set[Node] = set()
    while True:
        lowering = Lowering(extents, stored, padded)
        enter(loops, lowering, {*outputs, *requested})
        lowering.find_formulas()
        try:
            roots = _roots(graph, lowering, {one.node.node: one for one in loops})
            roots = with_shared_operands(roots, same)
            checks, compared = range_checks(graph, lowering)
        except NotPlain as request:
            if request.node in requested:
                raise GraphError(f"{request.node!r} is stored, and lies where it cannot be read") from None
            requested.add(request.node)
            stored.add(request.node)
            continue
        late = find_late_reads(places, roots, bodies(graph), stored)
        if late.values or late.arrays:
            stored |= late.values
            barred |= {(chain.loop.node, chain.carry) for one in late.arrays for chain in places.chains[one]}
            loops = find_step_loops(graph, extents, places := InPlace(), barred)
            whole = {*outputs, *(history for one in loops for history in one.histories)}
            continue
        items = _schedule(roots, checks)
        shared = _worth_storing(roots, stored) | scattered_values(items, stored)
        if not shared and (equal := equal_operands(roots)):
            same |= equal
        elif not shared:
            kept, _ = _storage(roots, whole, extents)
            items = split_into_blocks(items, roots, kept)
            items, roots = sum_in_parts(items, roots, extents)
            kept, in_blocks = _storage(roots, whole, extents)
            rows = rows_of_histories(loops, roots, lowering)
            small = small_extents(loops, extents)
            mark_short_sums(roots)
            return LoopTree(graph, extents, items, [*checks, *roots], kept, in_blocks, compared, rows, small)
        stored |= shared


# --- what must be stored ------------------------------------------------------------------------------------


def _required_storage(graph: Graph, outputs: Sequence[Node]) -> tuple[set[Node], dict[Node, Node]]:
    """What must be stored, and the values that are had from what is stored with padding around them."""
    stored = {node for node in graph.nodes if node.is_input} | set(graph.inputs) | set(outputs)
    every = bodies(graph)
    for node in (node for one in every for node in one.nodes):
        if node.operator.family in ("reduction", "scan", "contraction"):
            stored.add(node)
        if node.operator in (ix.scatter_add, ix.index_update):
            stored.add(node)
        if (value := compared_with_extreme(node)) is not None:
            stored.add(value)
        if node.operator is gemm:
            stored.update(one for one in matrices_of(node) if not one.is_input and not _is_part(one))
        if node.operator is m.reshape and merges_dimensions(node):
            stored.update((node, node.operands[0]))
        if _is_copy_in_layout(node):
            stored.add(node)
    stored.update(node for one in every for node in needed_before(one))
    required = set(stored)
    for one in every:
        users = _users(one)
        store_updates(one, users, stored)
        _store_what_repeats(one, users, stored)
        _store_deep_choices(one, stored)
    return stored, _store_padded(graph, stored, required)


def _is_copy_in_layout(node: Node) -> bool:
    """Whether it is a copy that was made for its layout (`layouts.py`): it follows the loops."""
    return node.operator is identity and node.operands[0].operator is m.permute


def _is_part(node: Node) -> bool:
    """Whether BLAS may read a value where it lies in another one."""
    is_split = node.operator is m.reshape and not merges_dimensions(node)
    return node.operator in (m.slice_, m.permute) or is_split


def _store_padded(graph: Graph, stored: set[Node], required: set[Node]) -> dict[Node, Node]:
    """Store padding with what it surrounds: no reader, say a stencil, then asks on which side it is."""
    padded: dict[Node, Node] = {}
    for node in graph.nodes:
        inside = node.operands[0] if node.operator is m.pad else None
        if inside in stored - required:
            stored.remove(inside)
            stored.add(node)
            padded[inside] = node
    return padded


def _store_what_repeats(graph: Graph, users: dict[Node, list[Node]], stored: set[Node]) -> None:
    """Add the values that movement would have computed again at several places, at a cost above storing.

    Each place is written out, so without this a stencil that is applied again and again would grow with the
    power of its rounds.
    """
    places = _places(graph, stored)
    numbers = {node for node in graph.nodes if node.spec.size == 1 and not node.is_constant}
    known = stored | numbers  # a number is computed once, outside of the loops
    for node in graph.nodes:
        repeats = node.operator.family == "elementwise" and places[node] > 1 and node.spec != PLACE
        if repeats and node not in stored:
            budget = EFFORT_TO_REPEAT // (places[node] - 1)
            if _costs_more(node, budget, known):
                stored.add(node)
                known.add(node)
        many = node.operator is m.concatenate and len(node.operands) > MOST_PARTS
        if many and any(user.operator is not ix.scatter_add for user in users[node]):
            stored.add(node)


def _store_deep_choices(graph: Graph, stored: set[Node]) -> None:
    """Add what would ask for its part of an array within answers to such questions, one in the other.

    Each is an `if` further in, and Python's parser takes a hundred of them.
    """
    depths: dict[Node, int] = {}
    for node in graph.nodes:
        inner = max((depths.get(one, 0) for one in node.operands if one not in stored), default=0)
        depths[node] = inner + (node.operator in CHOOSING)
        if depths[node] > MOST_NESTED:
            stored.add(node)


def _users(graph: Graph) -> dict[Node, list[Node]]:
    users: dict[Node, list[Node]] = {node: [] for node in graph.nodes}
    for node in graph.nodes:
        for operand in set(node.operands):
            users[operand].append(node)
    return users


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
    if len(outer) == 1:
        return node.operator.cost >= EXPENSIVE
    is_cached = node.spec.nbytes <= CACHED_BYTES
    return _costs_more(node, EFFORT_ACROSS_NESTS_CACHED if is_cached else EFFORT_ACROSS_NESTS, stored)


def _computed_nodes(root: Root) -> set[Node]:
    expressions = () if root.value is None else parts(root.value)
    return {one.node for one in expressions if isinstance(one, Compute)}


# --- roots --------------------------------------------------------------------------------------------------


def _roots(graph: Graph, lowering: Lowering, loops: Mapping[Node, StepLoop]) -> list[Root]:
    result: list[Root] = []
    places = next((one.places for one in loops.values()), InPlace())
    stacks = {node for one in loops.values() for node in one.stacks.values()}
    rows = {value: row for one in loops.values() for value, row in one.in_storage.items()}
    early = set(lowering.padded.values())
    for node in graph.nodes:
        if node in lowering.padded:  # made where the first reader may be, of what is inside
            result.extend(_roots_of(lowering.padded[node], lowering))
        if node in loops:
            result.extend(_roots_of_loop(loops[node], lowering, loops))
        elif places.writes(node):
            result.append(_root_of_write(node, places, lowering))
        elif node in rows and node.operator is gemm:
            storage, row = rows[node]
            result.extend(_roots_of_gemm(node, lowering, storage, (row,)))
        elif node in rows:
            result.append(_row_root(*rows[node], node, lowering.computed, lowering))
        elif node not in stacks and node in lowering.stored and not node.is_input and node not in early:
            result.extend(_roots_of(node, lowering))
    return sorted(result, key=lambda root: not (starts_loops(root) and not root.steps))


def _roots_of_loop(loop: StepLoop, lowering: Lowering, loops: Mapping[Node, StepLoop]) -> Iterator[Root]:
    """The carries before the first step; then the body, and what is stored of it after each step."""
    for init, history in zip(loop.node.node.operands, loop.histories):
        if history not in loop.replaced:
            yield _row_root(history, number(0), init, lowering.element, lowering)
    if loop.node.trips is not None:
        yield _root(loop.node.node, "trips", (), lowering.element(loop.node.trips, ()), ())
    inside = _roots(loop.node.body, lowering, loops)
    for value, storage, row in loop.stores:
        if loop.in_storage.get(value) != (storage, row):
            inside.append(_row_root(storage, row, value, lowering.element, lowering))
    for root in inside:
        root.steps = root.steps or loop.loops
        yield root


def _row_root(
    storage: Node, row: Index, value: Node, element: Callable[..., Expression], lowering: Lowering
) -> Root:
    """A value of the body of a loop, written into a row of its storage."""
    at = _at(axes := _axes(lowering.extents[value]))
    return _root(storage, "store", axes, element(value, at), (row, *at))


def _axes(symbols: Sequence[Symbol]) -> tuple[Axis, ...]:
    return tuple(map(Axis, symbols))


def _at(axes: Sequence[Axis]) -> tuple[Index, ...]:
    return tuple(map(of_axis, axes))


def _roots_of(node: Node, lowering: Lowering) -> Iterator[Root]:
    extents = lowering.extents
    if node.operator is gemm:
        yield from _roots_of_gemm(node, lowering, node)
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
    elif node.operator is m.slice_update and len(row := _row_of_updates(node, lowering)) > MOST_CHOICES:
        yield from _roots_of_updates(node, row, lowering)
    elif node.operator is m.concatenate:
        for part, offsets in _parts(node, lowering.stored - {node}):
            at = _at(axes := _axes(extents[part]))
            yield _root(node, "store", axes, lowering.element(part, at), _shifted(at, offsets))
    else:
        axes = _axes(extents[node])
        yield _root(node, "store", axes, lowering.computed(node, _at(axes)), _at(axes))


def _row_of_updates(node: Node, lowering: Lowering) -> list[Node]:
    return [*row_of_updates(node, lowering.stored - {node})][::-1]


def _roots_of_updates(node: Node, row: Sequence[Node], lowering: Lowering) -> Iterator[Root]:
    """What there was, then the parts, each over what was there before."""
    axes = _axes(lowering.extents[node])
    yield _root(node, "store", axes, lowering.element(row[0].operands[0], _at(axes)), _at(axes))
    for one in visible_updates(row):
        part = one.operands[1]
        axes = _axes(lowering.extents[part])
        places = zip(_at(axes), one.attributes["starts"], one.attributes["steps"])
        target = tuple(plus(times(index, step), number(start)) for index, start, step in places)
        root = _root(node, "overwrite", axes, lowering.element(part, _at(axes)), target)
        root.origin = one.origin
        yield root


def _root_of_write(node: Node, places: InPlace, lowering: Lowering) -> Root:
    """A part of an array that a loop carries, written where it lies."""
    update = node.operands[1]
    version = places.load(node, ZERO, ())
    symbols = list(lowering.extents[update])
    if node.operator is update_at:
        for dim, symbol in lowering.extents.ragged(node, update).items():
            symbols[dim] = symbol
    at = _at(axes := _axes(symbols))
    regions = zip(at, lowering.starts(node), node.attributes["steps"])
    target = tuple(plus(times(index, step), start) for index, start, step in regions)
    root = _root(version.node, "overwrite", axes, lowering.element(update, at), (ZERO, *target))
    root.version, root.origin = version.version, node.origin
    return root


def _roots_of_gemm(
    node: Node, lowering: Lowering, storage: Node, row: tuple[Index, ...] = ()
) -> Iterator[Root]:
    """What the products are added to, then the products, one after another, all in one array."""
    if starts_filled(node):
        at = _at(axes := _axes(lowering.extents[node]))
        yield _root(storage, "store", axes, start_element(node, lowering, at), (*row, *at))
    yield from call_roots(node, lowering, storage, row)


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
    """A read of a whole array: along axes that no loop walks."""
    return Load(node, _at(_axes(extents[node])))


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
    ends = (axis.extent.formula for axis in axes if axis.extent.formula is not None)
    computed = (value for index in (*target, *ends) for value in values_in(index))
    reads = list(dict.fromkeys(load for one in (value, *computed) for load in loads(one)))
    looped = frozenset(axis for axis in axes if axis.extent is not ONE)
    root = Root(node, kind, axes, value, target, reduced & looped, tuple(reads))
    root.axes = _loop_order(root)
    return root


def _loop_order(root: Root) -> tuple[Axis, ...]:
    """The axes that need loops, outermost first, as the largest array that is touched lies in memory."""
    wanted = [axis for axis in root.axes if axis.extent is not ONE]
    touched = [load.indices for load in root.reads if not _is_copy_in_layout(load.node)] + [root.target]
    orders = [
        [index.axis for index in indices if isinstance(index, Index) and index.axis in wanted]
        for indices in touched
    ]
    best = max(orders, key=lambda order: len(set(order)), default=[])
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
        if root.kind in ("update", "overwrite"):  # of what other roots have stored
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
    if root.kind == "search":
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
    if source.node is root.node and root.kind != "call":
        return False
    if root.version and any(load.node is root.node for load in source.reads):  # of what is overwritten now
        return False
    return all(isinstance(index := load.indices[dims[0]], Index) and index.axis is axis for load in reads)


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
    for root in roots:
        every = tuple(range(root.node.spec.ndim))
        if root.node in outputs or root.kind in ("view", "scan", "update", "overwrite"):
            kept[root.node] = every
            continue
        common = root.complete_in
        for user in users.get(root.node, ()):
            common = [mine for mine, _ in takewhile(lambda pair: pair[0] is pair[1], zip(common, user.path))]
        sized = zip(every, root.target, extents[root.node])
        own = {dim for dim, index, extent in sized if not _is_local(root, index, extent, common)}
        kept[root.node] = tuple(sorted(own.union(kept.get(root.node, ()))))
        for dim in own:
            if (loop := _loop_of(root, root.target[dim])) and loop.outer and loop.outer in common:
                in_blocks[root.node] = dim
    return kept, in_blocks


def _is_local(root: Root, index: AnyIndex, extent: Symbol, loops: list[Loop]) -> bool:
    """Whether a dimension is walked by a loop that encloses every use, or has size 1."""
    return extent is ONE or _loop_of(root, index) in loops


def _loop_of(root: Root, index: AnyIndex) -> Loop | None:
    """The loop whose iterations an index follows, if it is just that."""
    axis = index.axis if isinstance(index, Index) else None
    return root.bound.get(axis) if axis else None
