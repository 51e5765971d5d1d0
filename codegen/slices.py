"""Rewrites of slices: of slices, and of what was padded. They come with every stencil and its gradient."""

from __future__ import annotations

from pullback.tracer.graph import Node
from pullback.tracer.ops import movement as m

from .simplify import rewrite

Region = list[range]


def region_of(node: Node) -> Region:
    """The positions that slice, dilate and slice_update are about, in each dimension."""
    bounds = (node.attributes[name] for name in ("starts", "stops", "steps"))
    return [range(*one) for one in zip(*bounds)]


def bounds_of(region: Region) -> dict[str, tuple[int, ...]]:
    """A region as the attributes of an operator."""
    return {
        "starts": tuple(one.start for one in region),
        "stops": tuple(one.stop for one in region),
        "steps": tuple(one.step for one in region),
    }


@rewrite("slice")
def _slice_of_slice(node: Node) -> Node | None:
    (x,) = node.operands
    if x.operator is not m.slice_:
        return None
    pairs = zip(region_of(x), region_of(node))
    region = [inner[outer.start : outer.stop : outer.step] for inner, outer in pairs]
    return m.slice_(x.operands[0], **bounds_of(region))


@rewrite("slice")
def _slice_of_pad(node: Node) -> Node | None:
    """A slice that takes nothing of the padding is one of what was padded."""
    (x,) = node.operands
    if x.operator is not m.pad:
        return None
    (padded,), widths = x.operands, x.attributes["widths"]
    region = [
        range(one.start - before, one.stop - before, one.step)
        for one, (before, _) in zip(region_of(node), widths)
    ]
    within = all(_lies_in(one, extent) for one, extent in zip(region, padded.shape))
    return m.slice_(padded, **bounds_of(region)) if within else None


def _lies_in(positions: range, extent: int) -> bool:
    return len(positions) > 0 and positions[0] >= 0 and positions[-1] < extent


@rewrite("dilate")
def _dilate_is_pad(node: Node) -> Node | None:
    """Without gaps, the transpose of a slice is zeros around it."""
    (x,), region = node.operands, region_of(node)
    if any(one.step != 1 and len(one) > 1 for one in region):
        return None
    widths = tuple(
        (one.start, whole - one.start - extent) for one, whole, extent in zip(region, node.shape, x.shape)
    )
    return m.pad(x, widths=widths, value=0)


@rewrite("pad")
def _pad_of_pad(node: Node) -> Node | None:
    (x,), value = node.operands, node.attributes["value"]
    if x.operator is not m.pad or repr(float(x.attributes["value"])) != repr(float(value)):
        return None
    pairs = zip(node.attributes["widths"], x.attributes["widths"])
    widths = tuple((before + inner, after + outer) for (before, after), (inner, outer) in pairs)
    return m.pad(x.operands[0], widths=widths, value=value)
