"""Positions from data, compared with extents in loops of their own before any loop uses them.

A comparison that may raise keeps its loop from vectorising. So index arrays that are inputs are compared
first, all their elements; positions that are themselves looked up are compared where they are used. What was
found along a dimension is a position in all of its extent.
"""

from __future__ import annotations

from pullback.tracer.graph import Graph, Node
from pullback.tracer.loop import LoopNode
from pullback.tracer.ops import indexing as ix
from pullback.tracer.ops.control import loop_result
from pullback.tracer.spec import INT64

from .expression import Axis, Compared, Index, Load, Position, Quotient, Within, loads, of_axis
from .extents import ONE, Symbol
from .loops import bodies
from .lower import Lowering
from .tree import RangeCheck, Root


def range_checks(graph: Graph, lowering: Lowering) -> tuple[list[Root], Compared]:
    """A comparison for each index array and extent, and the positions that these have compared."""
    roots: dict[tuple[Node, Symbol], Root] = {}
    found: set[tuple[Node, Symbol]] = set()
    own = {*graph.nodes}
    for node in (one for inner in bodies(graph) for one in inner.nodes):
        for dim, index in enumerate(_indices(node)):
            extent = lowering.extents[_indexed(node)][dim]
            if _is_found_along(index, extent, lowering):
                found.add((index, extent))
            elif (index, extent) not in roots and node in own:
                root = _check(node, dim, index, extent, lowering)
                if root is not None:
                    roots[index, extent] = root
    compared = {
        (expression, extent)
        for expression, nodes in lowering.looked_up.items()
        for index, extent in (*roots, *found)
        if index in nodes
    }
    return list(roots.values()), compared


def _indices(node: Node) -> tuple[Node, ...]:
    first = {ix.gather: 1, ix.index_update: 2, **dict.fromkeys(ix.SCATTERS, 1)}.get(node.operator)
    return node.operands[first:] if first else ()


def _indexed(node: Node) -> Node:
    return node.operands[0] if node.operator is ix.gather else node


def _is_found_along(index: Node, extent: Symbol, lowering: Lowering) -> bool:
    """Whether positions are those of a search along a dimension of this extent, in any step or loop."""
    while index.operator.search is None:
        result = index.operator is loop_result and LoopNode(index.operands[0])
        if index in lowering.outside:
            index = lowering.outside[index]
        elif result and not result.is_dynamic and index.attributes["index"] >= result.carries:
            index = result.body.outputs[index.attributes["index"]]
        elif index.operator.movement.rearranges and len(index.operands) == 1:
            (index,) = index.operands
        else:
            return False
    (x,), dims = index.operands, index.attributes["dims"]
    return len(dims) == 1 and lowering.extents[x][dims[0]] is extent


def _check(node: Node, dim: int, index: Node, extent: Symbol, lowering: Lowering) -> RangeCheck | None:
    axes = tuple(map(Axis, lowering.extents[index]))
    position = lowering.position(index, tuple(map(of_axis, axes)))
    if isinstance(position, Index | Quotient):
        if extent.value:  # of arange: in range by construction
            return None
        position = Position(position, INT64)
    reads = tuple(loads(position))
    if not all(load.node.is_input and _is_plain(load) for load in reads):
        return None
    walked = tuple(axis for axis in axes if axis.extent is not ONE)
    value = Within(_indexed(node), dim, position, extent)
    return RangeCheck(node, walked, value, reduced=frozenset(walked), reads=reads)


def _is_plain(load: Load) -> bool:
    return all(isinstance(index, Index | Quotient) for index in load.indices)
