"""Slices of concatenations: one that takes a single piece reads that piece, whatever is computed between.

Where values are put together, computed with at once, and then taken apart again as they were put together,
each by itself needs neither the concatenation nor a place for the whole.
"""

from __future__ import annotations

from pullback.tracer.graph import Node, make_node
from pullback.tracer.ops import movement as m

from .simplify import rewrite
from .slices import Region, bounds_of, region_of

DEEPEST = 8
"""Elementwise operators between a slice and the concatenation."""


@rewrite("slice", expands=True)
def _slice_of_pieces(node: Node) -> Node | None:
    (x,), region = node.operands, region_of(node)
    parts = _Parts()
    return parts.part(x, region, node.name) if parts.leads_to_piece(x, region, DEEPEST) else None


class _Parts:
    """Parts of values, each made once however many ways lead to it."""

    def __init__(self) -> None:
        self._made: dict[tuple[Node, tuple[range, ...]], Node] = {}
        self._leading: dict[tuple[Node, tuple[range, ...], int], bool] = {}

    def part(self, x: Node, region: Region, name: str = "") -> Node:
        """A slice, taken of the pieces and through elementwise operators as far as that leads to pieces."""
        key = (x, tuple(region))
        if key not in self._made:
            self._made[key] = self._part(x, region, name)
        return self._made[key]

    def _part(self, x: Node, region: Region, name: str) -> Node:
        if not self.leads_to_piece(x, region, DEEPEST):
            return m.slice_(x, **bounds_of(region)) if x.spec.ndim else x
        if x.operator is m.concatenate:
            return self._piece(x, region)
        operands = tuple(self.part(one, _aligned(one, region)) for one in x.operands)
        return make_node(x.operator, operands, x.attributes, origin=x.origin, name=name or x.name)

    def _piece(self, x: Node, region: Region) -> Node:
        """The part of a concatenation that lies in one of the pieces."""
        found = _place(x, region)
        assert found is not None
        (position, start), dim = found, x.attributes["dim"]
        inside = range(region[dim].start - start, region[dim].stop - start, region[dim].step)
        return self.part(x.operands[position], [*region[:dim], inside, *region[dim + 1 :]])

    def leads_to_piece(self, x: Node, region: Region, depth: int) -> bool:
        if x.operator is m.concatenate:
            return _place(x, region) is not None
        if depth == 0 or x.operator.family != "elementwise":
            return False
        key = (x, tuple(region), depth)
        if key not in self._leading:
            self._leading[key] = any(
                bool(one.spec.ndim) and self.leads_to_piece(one, _aligned(one, region), depth - 1)
                for one in x.operands
            )
        return self._leading[key]


def _aligned(operand: Node, region: Region) -> Region:
    """The part of an operand, which may be broadcast, that a part of the result is made of."""
    own = region[len(region) - operand.spec.ndim :]
    return [range(1) if extent == 1 else one for one, extent in zip(own, operand.shape)]


def _place(x: Node, region: Region) -> tuple[int, int] | None:
    """Which piece of a concatenation a region lies in, and where that begins."""
    dim, start = x.attributes["dim"], 0
    wanted = region[dim]
    for position, piece in enumerate(x.operands):
        stop = start + piece.shape[dim]
        if wanted and start <= wanted.start and wanted[-1] < stop:
            return position, start
        start = stop
    return None
