"""Roots: for each stored value a space of axes, and the expression of one element.

Elementwise operators and movement are inlined into the expression, down to what is stored (`lower.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pullback.tracer.graph import Graph, Node
from pullback.tracer.ops import indexing as ix
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.contraction import gemm
from pullback.tracer.ops.windows import update_at

from ..host import runs_on_host
from ..rewriting.calls import start_of
from ..whole_calls import takes_wholes
from .expression import (
    ZERO,
    AnyIndex,
    Axis,
    Compute,
    Expression,
    Index,
    Literal,
    Load,
    loads,
    number,
    of_axis,
    of_symbol,
    plus,
    times,
    values_in,
)
from .extents import ONE, Extents, Symbol
from .library import call_roots, first_for_loops, starts_filled
from .loops import StepLoop
from .lower import Lowering, NotPlain, merges_dimensions
from .stored import is_copy_in_layout
from .tree import Overwrite, Reduction, Root, Scan, Scatter, Search, StepCount, Store, Update, View
from .updates import MOST_CHOICES, row_of_updates, visible_updates
from .versions import InPlace
from .whole_roots import host_root, whole_root

R = TypeVar("R", bound=Root)
S = TypeVar("S", bound=Scatter | Update)


def find_roots(graph: Graph, lowering: Lowering, loops: Mapping[Node, StepLoop]) -> list[Root]:
    """The roots of all that is stored of a graph, its loops included.

    Raises NotPlain with all values that must be stored first.
    """
    result: list[Root] = []
    asked: list[Node] = []
    places = next((one.places for one in loops.values()), InPlace())
    stacks = {node for one in loops.values() for node in one.stacks.values()}
    rows = {value: row for one in loops.values() for value, row in one.in_storage.items()}
    early = set(lowering.padded.values())

    def roots_at(node: Node) -> Iterator[Root]:
        if node in lowering.padded:  # made where the first reader may be, of what is inside
            yield from _roots_of(lowering.padded[node], lowering)
        if node in loops:
            yield from _roots_of_loop(loops[node], lowering, loops)
        elif places.writes(node):
            yield _root_of_write(node, places, lowering)
        elif node in rows and node.operator is gemm:
            storage, row = rows[node]
            yield from _roots_of_gemm(node, lowering, storage, (row,))
        elif node in rows and runs_on_host(node):
            storage, row = rows[node]
            yield host_root(node, lowering, storage, (row,))
        elif node in rows:
            yield from _row_roots(*rows[node], node, lowering.computed, lowering)
        elif node not in stacks and node in lowering.stored and not node.is_input and node not in early:
            yield from _roots_of(node, lowering)

    for node in graph.nodes:
        result += _made(asked, roots_at, node)
    if asked:
        raise NotPlain(*asked)
    return first_for_loops(result)


def _made(asked: list[Node], make: Callable[..., Iterable[Root]], *arguments: Any) -> list[Root]:
    """The roots that a function makes; none where values must be stored first, which join what is asked."""
    try:
        return [*make(*arguments)]
    except NotPlain as request:
        asked.extend(request.nodes)
        return []


def _roots_of_loop(loop: StepLoop, lowering: Lowering, loops: Mapping[Node, StepLoop]) -> Iterator[Root]:
    """The carries before the first step; then the body, and what is stored of it after each step."""
    asked: list[Node] = []
    for init, history, first in zip(loop.node.node.operands, loop.histories, loop.first):
        if history not in loop.replaced:
            for root in _made(asked, _row_roots, history, number(first), init, lowering.element, lowering):
                root.written_at = init.origin
                yield root
    if loop.node.trips is not None:
        yield _root(StepCount, loop.node.node, (), lowering.element(loop.node.trips, ()), ())
    inside = _made(asked, find_roots, loop.node.body, lowering, loops)
    for value, storage, row in loop.stores:
        if loop.in_storage.get(value) != (storage, row):
            inside += _made(asked, _row_roots, storage, row, value, lowering.element, lowering)
    if asked:
        raise NotPlain(*asked)
    for root in inside:
        root.steps = root.steps or loop.loops
        yield root


def _row_roots(
    storage: Node, row: Index, value: Node, element: Callable[..., Expression], lowering: Lowering
) -> Iterator[Root]:
    """A value of the body of a loop, written into a row of its storage; a concatenation part by part."""
    for part, offsets in _parts(value, lowering, lowering.stored):
        of_part = element if part is value else lowering.element

        def make(part: Node = part, offsets: tuple[Index, ...] = offsets, element: Any = of_part) -> Root:
            at = _at(axes := _axes(lowering.extents[part]))
            return _root(Store, storage, axes, element(part, at), (row, *_shifted(at, offsets)))

        yield _made_once((storage, row, part, offsets, of_part == lowering.element), make, lowering)


def _made_once(key: Hashable, make: Callable[[], R], lowering: Lowering) -> R:
    """A root that is not placed yet, of what a function makes of elements alone."""
    return replace(lowering.made(key, make), path=[], bound={})


def _axes(symbols: Sequence[Symbol]) -> tuple[Axis, ...]:
    return tuple(map(Axis, symbols))


def _at(axes: Sequence[Axis]) -> tuple[Index, ...]:
    return tuple(map(of_axis, axes))


def _roots_of(node: Node, lowering: Lowering) -> Iterator[Root]:
    extents = lowering.extents
    if node.operator is gemm:
        yield from _roots_of_gemm(node, lowering, node)
    elif node.operator is m.reshape and merges_dimensions(node):
        yield View(node, reads=(_whole(node.operands[0], extents),))
    elif node.operator.family == "reduction":
        yield _made_once(("reduction", node), lambda: _reduction(node, lowering), lowering)
    elif node.operator.family == "scan":
        axes = _axes(extents[node])
        elements = tuple(lowering.element(operand, _at(axes)) for operand in node.operands)
        value = elements[0] if len(elements) == 1 else Compute(node, elements)
        yield _root(Scan, node, axes, value, _at(axes))
    elif takes_wholes(node):
        yield whole_root(node, lowering)
    elif runs_on_host(node):
        yield host_root(node, lowering, node)
    elif node.operator in ix.SCATTERS:
        updates, *indices = node.operands
        for part, offsets in _parts(updates, lowering, lowering.stored, indices[0].spec.ndim):
            yield _scatter(Scatter, node, part, indices, lowering, offsets)
    elif node.operator is ix.index_update:
        axes = _axes(extents[node])
        yield _root(Store, node, axes, lowering.element(node.operands[0], _at(axes)), _at(axes))
        yield _update(node, node, lowering)
    elif node.operator is m.slice_update and len(row := _row_of_updates(node, lowering)) > MOST_CHOICES:
        yield from _roots_of_updates(node, row, lowering)
    elif node.operator is m.concatenate:
        for part, offsets in _parts(node, lowering, lowering.stored - {node}):
            at = _at(axes := _axes(extents[part]))
            yield _root(Store, node, axes, lowering.element(part, at), _shifted(at, offsets))
    else:
        yield _made_once(("value", node), lambda: _computed(node, lowering), lowering)


def _computed(node: Node, lowering: Lowering) -> Root:
    at = _at(axes := _axes(lowering.extents[node]))
    return _root(Store, node, axes, lowering.computed(node, at), at)


def _row_of_updates(node: Node, lowering: Lowering) -> list[Node]:
    return [*row_of_updates(node, lowering.stored - {node})][::-1]


def _roots_of_updates(node: Node, row: Sequence[Node], lowering: Lowering) -> Iterator[Root]:
    """What there was, then the parts, each over what was there before."""
    axes = _axes(lowering.extents[node])
    yield _root(Store, node, axes, lowering.element(row[0].operands[0], _at(axes)), _at(axes))
    for one in visible_updates(row):
        part = one.operands[1]
        axes = _axes(lowering.extents[part])
        places = zip(_at(axes), one.attributes["starts"], one.attributes["steps"])
        target = tuple(plus(times(index, step), lowering.number(start)) for index, start, step in places)
        root = _root(Overwrite, node, axes, lowering.element(part, _at(axes)), target)
        root.written_at = one.origin
        yield root


def _root_of_write(node: Node, places: InPlace, lowering: Lowering) -> Root:
    """A part of an array that a loop carries, written where it lies."""
    version = places.load(node, ZERO, ())
    write = _update if node.operator is ix.index_update else _overwrite
    root = write(node, version.node, lowering, (ZERO,))
    root.version = version.version
    return root


def _update(node: Node, storage: Node, lowering: Lowering, row: tuple[Index, ...] = ()) -> Update:
    """Elements that are stored where data says, into all of `storage` or a row of it."""
    _, updates, *indices = node.operands
    root = _scatter(Update, node, updates, indices, lowering)
    root.node, root.target, root.written_at = storage, (*row, *root.target), node.origin
    return root


def _overwrite(node: Node, storage: Node, lowering: Lowering, row: tuple[Index, ...]) -> Overwrite:
    """The part that a window, or numbers, say, in a row of `storage`."""
    update = node.operands[1]
    symbols = list(lowering.extents[update])
    if node.operator is update_at:
        for dim, symbol in lowering.extents.ragged(node, update).items():
            symbols[dim] = symbol
    at = _at(axes := _axes(symbols))
    regions = zip(at, lowering.starts(node), node.attributes["steps"])
    target = tuple(plus(times(index, step), start) for index, start, step in regions)
    root = _root(Overwrite, storage, axes, lowering.element(update, at), (*row, *target))
    root.written_at = node.origin
    return root


def _roots_of_gemm(
    node: Node, lowering: Lowering, storage: Node, row: tuple[Index, ...] = ()
) -> Iterator[Root]:
    """What the products are added to, then the products, one after another, all in one array.

    Calls in loops begin with zeros there, if the array is theirs.
    """
    start = start_of(node)
    if start is not None or (row and starts_filled(node)):
        at = _at(axes := _axes(lowering.extents[node]))
        element = lowering.element(start, at) if start is not None else Literal(0, node.dtype)
        yield _root(Store, storage, axes, element, (*row, *at))
    yield from call_roots(node, lowering, storage, row)


def _parts(
    node: Node, lowering: Lowering, stored: set[Node], first: int = 0
) -> Iterator[tuple[Node, tuple[Index, ...]]]:
    """What a value is concatenated from, in dimensions from `first` on, and where each part begins.

    Each part is written by itself: no element needs to find out which part it belongs to.
    """
    pending = [(node, (ZERO,) * node.spec.ndim)]
    while pending:
        one, offsets = pending.pop()
        dim = one.attributes["dim"] if one.operator is m.concatenate and one not in stored else -1
        if dim < first:
            yield one, offsets
            continue
        inside = []
        for part in one.operands:
            inside.append((part, offsets))
            end = plus(offsets[dim], _length(part, dim, lowering))
            offsets = (*offsets[:dim], end, *offsets[dim + 1 :])
        pending.extend(reversed(inside))


def _length(part: Node, dim: int, lowering: Lowering) -> Index:
    """How far the next part lies behind: by a size with a name, if the program makes the two equal."""
    symbol = lowering.extents[part][dim]
    is_named = symbol in lowering.extents.symbols_of_names
    return of_symbol(symbol) if is_named else lowering.number(part.shape[dim])


def _shifted(at: tuple[Index, ...], offsets: tuple[Index, ...]) -> tuple[Index, ...]:
    return tuple(map(plus, at, offsets))


def _whole(node: Node, extents: Extents) -> Load:
    """A read of a whole array: along axes that no loop walks."""
    return Load(node, _at(_axes(extents[node])))


def _reduction(node: Node, lowering: Lowering) -> Root:
    (x,), dims = node.operands, node.attributes["dims"]
    axes = _axes(lowering.extents[x])
    kept = [axis for dim, axis in enumerate(axes) if dim not in dims]
    reduced = frozenset(axes[dim] for dim in dims)
    kind = Search if node.operator.search else Reduction
    return _root(kind, node, axes, lowering.element(x, _at(axes)), _at(kept), reduced)


def _scatter(
    kind: type[S],
    node: Node,
    updates: Node,
    indices: Sequence[Node],
    lowering: Lowering,
    offsets: tuple[Index, ...] | None = None,
) -> S:
    axes = _axes(lowering.extents[updates])
    at, rank = _at(axes), indices[0].spec.ndim
    positions = tuple(lowering.position(index, at[:rank]) for index in indices)
    reduced = frozenset(axes)  # where an element goes is known only when it is there
    inner = at if offsets is None else _shifted(at, offsets)
    return _root(kind, node, axes, lowering.element(updates, at), (*positions, *inner[rank:]), reduced)


def _root(
    kind: type[R],
    node: Node,
    axes: tuple[Axis, ...],
    value: Expression,
    target: tuple[AnyIndex, ...],
    reduced: frozenset[Axis] = frozenset(),
) -> R:
    ends = (axis.extent.formula for axis in axes if axis.extent.formula is not None)
    computed = (value for index in (*target, *ends) for value in values_in(index))
    reads = list(dict.fromkeys(load for one in (value, *computed) for load in loads(one)))
    looped = frozenset(axis for axis in axes if axis.extent is not ONE)
    root = kind(node, axes, value, target, reduced & looped, tuple(reads))
    root.axes = _loop_order(root)
    return root


def _loop_order(root: Root) -> tuple[Axis, ...]:
    """The axes that need loops, outermost first, as most of the largest arrays that are touched lie.

    Where as many lie otherwise, as the value itself has them, so that roots of like values share loops.
    """
    wanted = [axis for axis in root.axes if axis.extent is not ONE]
    read = [load.indices for load in root.reads if not is_copy_in_layout(load.node)]
    orders = [
        tuple([index.axis for index in indices if isinstance(index, Index) and index.axis in wanted])
        for indices in (*read, root.target)
    ]
    votes = Counter(orders)
    best = max(orders, key=lambda order: (len(set(order)), votes[order], order == tuple(wanted)))
    missing = [axis for axis in wanted if axis not in best]
    result = list(dict.fromkeys(best))
    if isinstance(root, Search):  # its best value and index are local variables
        return tuple(sorted(wanted, key=lambda axis: axis in root.reduced))
    for axis in missing:  # in front of its successor in the natural order
        later = [one for one in wanted[wanted.index(axis) + 1 :] if one in result]
        result.insert(result.index(later[0]) if later else len(result), axis)
    return tuple(result)
