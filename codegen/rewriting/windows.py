"""Rewrites of windows: slices whose place is a value, and what they read and write."""

from __future__ import annotations

from pullback.tracer.graph import Node
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import windows as w

from .simplify import rewrite
from .slices import PART, Region, bounds_of


def _region(starts: tuple[Node, ...], shape: tuple[int, ...], steps: tuple[int, ...]) -> Region | None:
    """A window as a region, if numbers say where it begins."""
    if not all(start.is_constant for start in starts):
        return None
    places = [int(start.attributes["value"]) for start in starts]
    return [range(first, first + extent * step, step) for first, extent, step in zip(places, shape, steps)]


@rewrite("slice_at")
def _slice_at_number(node: Node) -> Node | None:
    x, *starts = node.operands
    region = _region(tuple(starts), node.shape, node.attributes["steps"])
    return None if region is None else m.slice_(x, **bounds_of(region))


@rewrite("dilate_at")
def _dilate_at_number(node: Node) -> Node | None:
    x, *starts = node.operands
    region = _region(tuple(starts), x.shape, node.attributes["steps"])
    return None if region is None else m.dilate(x, shape=node.shape, **bounds_of(region))


@rewrite("update_at")
def _update_at_number(node: Node) -> Node | None:
    x, update, *starts = node.operands
    region = _region(tuple(starts), update.shape, node.attributes["steps"])
    return None if region is None else m.slice_update(x, update, **bounds_of(region))


@rewrite("slice_at")
def _what_was_written(node: Node) -> Node | None:
    """The window that was just written is what was written; one of a constant is that."""
    x, *starts = node.operands
    if x.operator is not w.update_at or x.operands[2:] != tuple(starts):
        return None
    same = x.operands[1].shape == node.shape and x.attributes["steps"] == node.attributes["steps"]
    return x.operands[1] if same else None


@rewrite("update_at")
def _written_again(node: Node) -> Node | None:
    """What is written over again need not have been written; nor what was there already."""
    x, update, *starts = node.operands
    steps = node.attributes["steps"]
    if x.operator is w.update_at and x.operands[2:] == tuple(starts):
        if x.operands[1].shape == update.shape and x.attributes["steps"] == steps:
            return w.update_at(x.operands[0], update, *starts, steps=steps)
    is_own = update.operator is w.slice_at and update.operands == (x, *starts)
    return x if is_own and update.attributes["steps"] == steps else None


@rewrite("add")
def _added_to_window(node: Node) -> Node | None:
    """A small part added to an array is a write of that part: loops do that in place."""
    for x, padded in (node.operands, node.operands[::-1]):
        if padded.operator is not w.dilate_at or x.operator is w.dilate_at or x.shape != padded.shape:
            continue
        part, *starts = padded.operands
        steps = padded.attributes["steps"]
        if PART * part.spec.size <= x.spec.size and not x.is_constant:
            before = w.slice_at(x, *starts, shape=part.shape, steps=steps)
            return w.update_at(x, e.add(before, part), *starts, steps=steps)
    return None
