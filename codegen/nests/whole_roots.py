"""Calls of functions that take whole rows or matrices (`whole_calls.py`), in the loop tree."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.tracer.graph import Node

from ..whole_calls import call_of, takes_wholes
from .expression import ZERO, Axis, Index, Load, of_axis
from .extents import ONE
from .lower import Lowering, NotPlain
from .tree import Call, Root


def whole_root(node: Node, lowering: Lowering) -> Call:
    """The call for an operator, in loops over the dimensions of operands that it does not take whole."""
    extents, taken = lowering.extents, call_of(node).dims
    batch = tuple(map(Axis, extents[node.operands[0]][:-taken]))
    around = tuple(map(of_axis, batch))
    reads = tuple(_read(x, around, lowering) for x in node.operands)
    target = (*around, *map(of_axis, map(Axis, extents[node][len(batch) :])))
    looped = tuple(axis for axis in batch if axis.extent is not ONE)
    return Call(node, looped, None, target, reads=reads)


def dims_taken_whole(roots: Sequence[Root]) -> dict[Node, range]:
    """Of operands and results of calls the dimensions that each call takes, also where their size is 1."""
    found: dict[Node, range] = {}
    for root in roots:
        if takes_wholes(root.node):
            batch = root.node.operands[0].spec.ndim - call_of(root.node).dims
            for node in (root.node, *(load.node for load in root.reads)):
                found[node] = range(batch, node.spec.ndim)
    return found


def _read(x: Node, around: tuple[Index, ...], lowering: Lowering) -> Load:
    """What a call reads: it must lie in memory as the last dimensions of an array, else it is stored so."""
    sizes = lowering.extents[x][len(around) :]
    inner = tuple(ZERO if size is ONE else of_axis(Axis(size)) for size in sizes)
    read = lowering.element(x, (*around, *inner))
    if isinstance(read, Load):
        last = slice(-len(inner), None)
        if (read.indices[last], lowering.extents[read.node][last]) == (inner, sizes):
            return read
    while x in lowering.outside:  # an input of a loop's body has no memory of its own
        x = lowering.outside[x]
    raise NotPlain(x)
