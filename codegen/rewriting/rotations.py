"""Rotations: an array's end put in front of its start, as `np.roll` and periodic borders have it.

Such a concatenation is one movement. It asks where an element is read, not which of two values it is: so
what is computed from it is written once, and a rotation back undoes it.
"""

from __future__ import annotations

from pullback.tracer.dims import SizedRange
from pullback.tracer.graph import Node
from pullback.tracer.ops import movement as m

from .simplify import rewrite
from .slices import region_of
from .unroll import SMALL


@rewrite("concatenate")
def _concatenation_is_rotation(node: Node) -> Node | None:
    """The two parts of an array in the other order; in small ones each element has a name (`unroll.py`)."""
    dim = node.attributes["dim"]
    if len(node.operands) != 2 or node.shape[dim] <= 2 * SMALL:
        return None
    end, start = node.operands
    if not (end.operator is start.operator is m.slice_) or end.operands != start.operands:
        return None
    (x,), behind, before = end.operands, region_of(end), region_of(start)
    cut = behind[dim].start
    wanted = [SizedRange(0, extent) for extent in x.shape]
    first, last = [*wanted], [*wanted]
    first[dim], last[dim] = SizedRange(0, cut), SizedRange(cut, x.shape[dim])
    return _rotated(x, dim, x.shape[dim] - cut) if (behind, before) == (last, first) else None


def _rotated(x: Node, dim: int, shift: int) -> Node:
    """Moved by the shift, or by as much less as the array is long."""
    extent = x.shape[dim]
    while 2 * abs(shift) > extent or 2 * shift == -extent:
        shift = shift - extent if shift > 0 else shift + extent
    return m.rotate(x, dim=dim, shift=shift) if shift else x


@rewrite("rotate")
def _rotation_of_rotation(node: Node) -> Node | None:
    (x,), dim, shift = node.operands, node.attributes["dim"], node.attributes["shift"]
    if x.operator is m.rotate and x.attributes["dim"] == dim:
        return _rotated(x.operands[0], dim, x.attributes["shift"] + shift)
    return None if x.shape[dim] > 1 else x
