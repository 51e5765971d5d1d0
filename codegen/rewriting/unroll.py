"""Small dimensions unrolled: a batch of 3-vectors becomes three vectors over the batch.

A loop of three iterations inside a loop over a batch is mostly overhead, and no vector instruction helps it.
So a value with a small dimension behind a large one is split into pieces, one for each position along the
small dimension. Sums over it are additions, slices and stacks choose pieces, products of small matrices are
sums of products; only the batch remains as a loop, and that vectorises. `in_pieces.py` says what becomes of
each operator.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from pullback.tracer.graph import Graph, Node
from pullback.tracer.ops import movement as m

from ..nests.extents import ONE, Extents, Symbol, find_extents
from ..whole_calls import takes_wholes
from .in_pieces import MOST_PIECES, Dims, Unroller, rule_of

SMALL = 8
"""The largest dimension that is unrolled, and twice that where the program slices, stacks or pads it:
the positions of such a dimension mean different things."""
SMALLEST_BATCH = 64
"""Elements of the other dimensions from which the loop over them is worth having alone."""
MOST_NODES = 600
"""By which the whole graph may grow; each costs some milliseconds to compile. Above, less is unrolled."""


def unroll_small_dimensions(graph: Graph) -> Graph:
    """The same values, those with small dimensions computed in pieces."""
    extents = find_extents(graph)
    for largest in (SMALL, 4, 3, 2):
        small = _small_symbols(graph, extents, largest)
        split = _split_dimensions(graph, extents, small)
        folded = _folded_dimensions(graph, extents, small)
        terms = ((node.operands[0], dims) for node, dims in folded.items())
        in_pieces = itertools.chain(split.items(), terms)
        growth = sum(math.prod(node.shape[dim] for dim in dims) for node, dims in in_pieces)
        if growth <= MOST_NODES:
            return Unroller(split, folded).rebuild(graph) if split or folded else graph
    return graph


# --- which dimensions ---------------------------------------------------------------------------------------


def _split_dimensions(graph: Graph, extents: Extents, small: set[Symbol]) -> dict[Node, Dims]:
    """For each node the dimensions along which it is computed in pieces; nodes without any are left out."""
    split: dict[Node, Dims] = {}
    in_loops = _used_in_loops(graph)
    for node in graph.nodes if small else ():
        if node.is_input or _is_call(node) or rule_of(node) is None:
            continue
        if node not in in_loops and not _is_made_of_pieces(node, split):
            continue
        dims = [dim for dim, symbol in enumerate(extents[node]) if symbol in small]
        while math.prod(node.shape[dim] for dim in dims) > MOST_PIECES:
            dims.pop(0)
        batch = math.prod(extent for dim, extent in enumerate(node.shape) if dim not in dims)
        if dims and (batch >= SMALLEST_BATCH or _reduces_pieces(node, split)):
            split[node] = frozenset(dims)
    return split


def _folded_dimensions(graph: Graph, extents: Extents, small: set[Symbol]) -> dict[Node, Dims]:
    """For each sum, or the like, of what lies in memory the small dimensions that its terms are along."""
    folded: dict[Node, Dims] = {}
    for node in graph.nodes:
        if node.operator.family == "reduction" and node.operator.monoid is not None:
            (x,) = node.operands
            dims = [dim for dim in node.attributes["dims"] if extents[x][dim] in small]
            is_stored = x.is_input or _is_call(x)
            terms = math.prod(x.shape[dim] for dim in dims)
            if dims and is_stored and terms <= MOST_PIECES and x.spec.size >= SMALLEST_BATCH * terms:
                folded[node] = frozenset(dims)
    return folded


def _is_made_of_pieces(node: Node, split: dict[Node, Dims]) -> bool:
    """Whether it has elements that others are computed of in pieces: as a whole they would be joined, too."""
    computed = (one for one in (node, *node.operands) if one.operator.family == "elementwise")
    return node.operator.family == "elementwise" and any(one in split for one in computed)


def _reduces_pieces(node: Node, split: dict[Node, Dims]) -> bool:
    """Whether it sums up a batch in pieces: joined for that, they would be written row by row."""
    is_total = node.operator.family == "reduction" and node.operator.monoid is not None
    if not is_total or node.operands[0] not in split:
        return False
    (x,) = node.operands
    return math.prod(x.shape[dim] for dim in node.attributes["dims"]) >= SMALLEST_BATCH


def _small_symbols(graph: Graph, extents: Extents, largest: int) -> set[Symbol]:
    by_place = {symbol for node in graph.nodes for symbol in _used_by_place(node, extents, 2 * largest)}
    called = {symbol for node in graph.nodes if _is_call(node) for symbol in extents[node]}
    small = {symbol for symbol in by_place - called if symbol.value > 1}
    places = [
        (node, symbol) for node in graph.nodes for symbol in extents[node] if 1 < symbol.value <= largest
    ]
    behind = {symbol for node, symbol in places if _is_behind_batch(node, symbol, extents)}
    before = {symbol for node, symbol in places if not _is_last_large(node, symbol, extents)}
    return (small | (behind - before)) - _in_loops(graph, extents)


def _is_behind_batch(node: Node, symbol: Symbol, extents: Extents) -> bool:
    symbols = extents[node]
    return math.prod(one.value for one in symbols[: symbols.index(symbol)]) >= SMALLEST_BATCH


def _in_loops(graph: Graph, extents: Extents) -> set[Symbol]:
    """The symbols of what loops of the graph take and give: whole arrays, in pieces they would be copied."""
    loops = [node for node in graph.nodes if node.operator.family == "control"]
    ends = [one for node in loops for one in (node, *node.operands)]
    return {symbol for node in ends for symbol in extents[node]}


def _is_call(node: Node) -> bool:
    """Whether it takes its operands as wholes."""
    return node.operator.family == "contraction" or takes_wholes(node)


def _used_in_loops(graph: Graph) -> set[Node]:
    """Outputs, and what leads to anything but operands of calls, for which pieces would have to be joined."""
    found = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node in found and not _is_call(node):
            found.update(node.operands)
    return found


def _is_last_large(node: Node, symbol: Symbol, extents: Extents) -> bool:
    """Whether only small dimensions follow: a large one would be a loop that vectorises already."""
    symbols = extents[node]
    return all(one.value <= SMALL for one in symbols[symbols.index(symbol) :])


def _used_by_place(node: Node, extents: Extents, largest: int) -> Iterator[Symbol]:
    """The symbols of dimensions in which an operator treats some positions of a batch unlike others.

    None if the whole of which it takes or makes a part is larger: in the part all positions are alike.
    """
    if node.operator in (m.slice_, m.pad, m.dilate, m.slice_update, m.concatenate):
        for operand in node.operands:
            for before, after in zip(extents[operand], extents[node]):
                large = max(node.spec.size, operand.spec.size)
                if before is not after and max(before.value, after.value) <= largest:
                    found = (one for one in (before, after) if one is not ONE)
                    yield from (one for one in found if large >= SMALLEST_BATCH * one.value)
