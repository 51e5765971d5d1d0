"""Calls of functions that take whole rows or matrices (`whole_calls.py`): as roots, and as statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pullback.tracer.graph import Node

from ..whole_calls import call_of, function_of, takes_wholes
from ..writing import spelling as sp
from ..writing.layout import Block, Line
from .expression import ZERO, AnyIndex, Axis, Index, Load, of_axis
from .extents import ONE
from .lower import Lowering, NotPlain
from .tree import Root

if TYPE_CHECKING:
    from ..writing.indices import Scope
    from ..writing.write import Writer


def whole_root(node: Node, lowering: Lowering) -> Root:
    """The call for an operator, in loops over the dimensions of operands that it does not take whole."""
    extents, taken = lowering.extents, call_of(node).dims
    batch = tuple(map(Axis, extents[node.operands[0]][:-taken]))
    around = tuple(map(of_axis, batch))
    reads = tuple(_read(x, around, lowering) for x in node.operands)
    target = (*around, *map(of_axis, map(Axis, extents[node][len(batch) :])))
    looped = tuple(axis for axis in batch if axis.extent is not ONE)
    return Root(node, "call", looped, None, target, reads=reads)


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


def write_whole_call(root: Root, writer: Writer, scope: Scope) -> Line | Block:
    """`sort_positions(x[i], positions[i])` in the loops over rows; raises where there is no result."""
    from ..writing.element import comment_of

    function, declared = function_of(root.node).__name__, call_of(root.node)
    taken = declared.dims
    operands = [
        _part(read.node, read.indices[: len(read.indices) - taken], writer, scope) for read in root.reads
    ]
    if declared.transposes(**root.node.attributes):
        operands[0] += ".T"
    batch = root.node.operands[0].spec.ndim - taken
    out = _part(root.node, root.target[:batch], writer, scope)
    writer.called.add(function)
    call, comment = f"{function}({', '.join(operands)}, {out})", comment_of([root.node.origin])
    if declared.refusal is None:
        return Line(call, comment)
    number = writer.tree.may_fail.setdefault(root.node, len(writer.tree.may_fail))
    return Block(f"if not {call}", (Line(f"raise ArithmeticError({number})", comment),))


def _part(node: Node, place: Sequence[AnyIndex], writer: Writer, scope: Scope) -> str:
    """What of an array the loops have come to: `x`, `x[i]`."""
    stored = range(node.spec.ndim) if node.is_input else writer.tree.kept[node]
    indices = [
        sp.unparse(writer.position_in_storage(node, dim, place[dim], scope))
        for dim in stored
        if dim < len(place)
    ]
    return writer.array(node) + (f"[{', '.join(indices)}]" if indices else "")
