"""Calls of functions that take whole rows (`codegen/ordering.py`) or matrices (`codegen/matrices.py`): as
roots, and as statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pullback.tracer.graph import Node

from .. import matrices, ordering
from ..writing import spelling as sp
from ..writing.layout import Line
from .expression import AnyIndex, Axis, Load, of_axis
from .extents import ONE
from .lower import Lowering, NotPlain
from .tree import Root

if TYPE_CHECKING:
    from ..writing.indices import Scope
    from ..writing.write import Writer


FUNCTIONS: dict[str, Callable[..., None]] = {**ordering.FUNCTIONS, **matrices.FUNCTIONS}
"""By the operator of whose rows or matrices a call computes one."""


def _taken(node: Node) -> int:
    """How many of the last dimensions of its operand a call takes."""
    return 2 if node.operator.family == "matrix" else 1


def row_root(node: Node, lowering: Lowering) -> Root:
    """The call for an operator, in loops over all but the dimensions of its operand that the call takes."""
    (x,), extents, taken = node.operands, lowering.extents, _taken(node)
    axes = tuple(map(Axis, extents[x]))
    batch, whole = axes[: len(axes) - taken], axes[len(axes) - taken :]
    added = map(Axis, extents[node][len(batch) : -taken])
    looped = tuple(axis for axis in batch if axis.extent is not ONE)
    around = tuple(map(of_axis, batch))
    target = (*around, *map(of_axis, added), *map(of_axis, whole))
    read = lowering.element(x, (*around, *map(of_axis, whole)))
    if not isinstance(read, Load):
        raise NotPlain(x)
    return Root(node, "call", looped, None, target, reads=(read,))


def write_row_call(root: Root, writer: Writer, scope: Scope) -> Line:
    """`sort_positions(x[i], positions[i])` in the loops over rows."""
    from ..writing.element import comment_of

    function = FUNCTIONS[root.node.operator.name].__name__
    (read,) = root.reads
    batch = root.node.operands[0].spec.ndim - _taken(root.node)
    row = _part(read.node, read.indices[: len(read.indices) - _taken(root.node)], writer, scope)
    out = _part(root.node, root.target[:batch], writer, scope)
    writer.called.add(function)
    return Line(f"{function}({row}, {out})", comment_of([root.node.origin]))


def _part(node: Node, place: Sequence[AnyIndex], writer: Writer, scope: Scope) -> str:
    """What of an array the loops have come to: `x`, `x[i]`, with sizes of 1 that are not stored."""
    stored = range(node.spec.ndim) if node.is_input else writer.tree.kept[node]
    indices = [
        sp.unparse(writer.position_in_storage(node, dim, place[dim], scope))
        for dim in stored
        if dim < len(place)
    ]
    written = writer.array(node) + (f"[{', '.join(indices)}]" if indices else "")
    taken = range(len(place), node.spec.ndim)
    if all(dim in stored for dim in taken):
        return written
    extents = writer.tree.extents[node]
    return f"{written}.reshape(({', '.join(writer.extent(extents[dim]) for dim in taken)},))"
