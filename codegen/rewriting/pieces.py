"""Slices of concatenations: one that takes a single piece reads that piece, whatever is computed between.

The gates of a network are computed at once, of concatenated inputs, and then taken apart again. Each gate
by itself needs neither the concatenation nor a place for the whole.
"""

from __future__ import annotations

from pullback.tracer.graph import Node, make_node
from pullback.tracer.ops import movement as m

from .simplify import rewrite
from .slices import Region, bounds_of, place_of, region_of

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
            found = place_of(x, region)
            assert found is not None
            return self.part(x.operands[found[0]], found[1])
        operands = tuple(self.part(one, _aligned(one, region)) for one in x.operands)
        return make_node(x.operator, operands, x.attributes, origin=x.origin, name=name or x.name)

    def leads_to_piece(self, x: Node, region: Region, depth: int) -> bool:
        if x.operator is m.concatenate:
            return place_of(x, region) is not None
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
