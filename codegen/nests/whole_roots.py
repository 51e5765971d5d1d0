"""Calls of functions that take whole rows or matrices (`whole_calls.py`), or arrays (`host.py`)."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.tracer.graph import Node

from ..whole_calls import call_of, takes_wholes
from .expression import ZERO, Axis, Index, Load, of_axis
from .extents import ONE
from .lower import Lowering, NotPlain
from .tree import Call, Host, Root


def whole_root(node: Node, lowering: Lowering) -> Call:
    """The call for an operator, in loops over the dimensions of operands that it does not take whole."""
    extents, taken = lowering.extents, call_of(node).dims
    batch = tuple(map(Axis, extents[node.operands[0]][:-taken]))
    around = tuple(map(of_axis, batch))
    reads = tuple(_read(x, around, lowering) for x in node.operands)
    target = (*around, *map(of_axis, map(Axis, extents[node][len(batch) :])))
    looped = tuple(axis for axis in batch if axis.extent is not ONE)
    return Call(node, looped, None, target, reads=reads)


def host_root(node: Node, lowering: Lowering, storage: Node, row: tuple[Index, ...] = ()) -> Host:
    """The call of what Python evaluates, with arrays as they are, or rows of them."""
    reads = tuple(_read(x, (), lowering) for x in node.operands)
    target = (*row, *map(of_axis, map(Axis, lowering.extents[node])))
    return Host(storage, (), None, target, reads=reads, called=node)


def dims_taken_whole(roots: Sequence[Root]) -> dict[Node, range]:
    """Of operands and results of calls the dimensions that each call takes, also where their size is 1."""
    found: dict[Node, range] = {}
    for root in roots:
        if isinstance(root, Host):
            arrays = (root.node, *(load.node for load in root.reads))
            for node, taken in zip(arrays, (root.called, *root.called.operands)):
                found[node] = range(node.spec.ndim - taken.spec.ndim, node.spec.ndim)
        elif takes_wholes(root.node):
            batch = root.node.operands[0].spec.ndim - call_of(root.node).dims
            for node in (root.node, *(load.node for load in root.reads)):
                found[node] = range(batch, node.spec.ndim)
    return found


def _read(x: Node, around: tuple[Index, ...], lowering: Lowering) -> Load:
    """What a call reads: it must lie in memory as the last dimensions of an array, else it is stored so."""
    sizes = lowering.extents[x][len(around) :]
    inner = tuple(ZERO if size is ONE else of_axis(Axis(size)) for size in sizes)
    read = lowering.element(x, (*around, *inner))
    if isinstance(read, Load) and all(isinstance(one, Index) for one in read.indices):
        last = slice(len(read.indices) - len(inner), None)
        if (read.indices[last], lowering.extents[read.node][last]) == (inner, sizes):
            return read
    while x in lowering.outside:  # an input of a loop's body has no memory of its own
        x = lowering.outside[x]
    raise NotPlain(x)
