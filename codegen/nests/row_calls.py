"""Calls of functions that take whole rows (`codegen/ordering.py`): as roots, and as statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pullback.tracer.graph import Node

from ..ordering import FUNCTIONS
from ..writing import spelling as sp
from ..writing.layout import Line
from .expression import AnyIndex, Axis, Load, of_axis
from .extents import ONE
from .lower import Lowering, NotPlain
from .tree import Root

if TYPE_CHECKING:
    from ..writing.indices import Scope
    from ..writing.write import Writer


def row_root(node: Node, lowering: Lowering) -> Root:
    """The call for an operator, in loops over all but the last dimension of its operand."""
    (x,), extents = node.operands, lowering.extents
    *batch, row = map(Axis, extents[x])
    added = map(Axis, extents[node][len(batch) : -1])
    looped = tuple(axis for axis in batch if axis.extent is not ONE)
    around = tuple(map(of_axis, batch))
    target = (*around, *map(of_axis, added), of_axis(row))
    read = lowering.element(x, (*around, of_axis(row)))
    if not isinstance(read, Load):
        raise NotPlain(x)
    return Root(node, "call", looped, None, target, reads=(read,))


def write_row_call(root: Root, writer: Writer, scope: Scope) -> Line:
    """`sort_positions(x[i], positions[i])` in the loops over rows."""
    from ..writing.element import comment_of

    function = FUNCTIONS[root.node.operator.name].__name__
    (read,) = root.reads
    batch = root.node.operands[0].spec.ndim - 1
    row = _part(read.node, read.indices[: len(read.indices) - 1], writer, scope)
    out = _part(root.node, root.target[:batch], writer, scope)
    writer.called.add(function)
    return Line(f"{function}({row}, {out})", comment_of([root.node.origin]))


def _part(node: Node, place: Sequence[AnyIndex], writer: Writer, scope: Scope) -> str:
    """What of an array the loops have come to: `x`, `x[i]`."""
    stored = range(len(place)) if node.is_input else writer.tree.kept[node]
    indices = [
        sp.unparse(writer.position_in_storage(node, dim, place[dim], scope))
        for dim in stored
        if dim < len(place)
    ]
    return writer.array(node) + (f"[{', '.join(indices)}]" if indices else "")
