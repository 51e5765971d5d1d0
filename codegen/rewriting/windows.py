"""Rewrites of windows: slices whose place is a value, and what they read and write."""

from __future__ import annotations

from pullback.tracer.graph import Node
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import windows as w

from .simplify import rewrite
from .slices import Region, bounds_of


def _region(node: Node, places: tuple[Node, ...], shape: tuple[int, ...]) -> Region | None:
    """A window as a region, if numbers say where it begins and where it ends."""
    steps, ragged = node.attributes["steps"], node.attributes["ragged"]
    if ragged or min(steps, default=1) < 1 or not all(place.is_constant for place in places):
        return None
    starts = [int(place.attributes["value"]) for place in places]
    return [range(first, first + extent * step, step) for first, extent, step in zip(starts, shape, steps)]


def _alike(one: Node, other: Node, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> bool:
    """Whether two windows are about the same elements; operands before their places may differ."""
    same = all(one.attributes[name] == other.attributes[name] for name in ("steps", "ragged"))
    return same and places_of(one) == places_of(other) and shapes[0] == shapes[1]


def places_of(node: Node) -> tuple[Node, ...]:
    """The operands that say where a window is."""
    return node.operands[2:] if node.operator is w.update_at else node.operands[1:]


def _again(node: Node) -> dict[str, tuple[int, ...]]:
    return {name: node.attributes[name] for name in ("steps", "ragged")}


@rewrite("slice_at")
def _slice_at_number(node: Node) -> Node | None:
    region = _region(node, places_of(node), node.shape)
    return None if region is None else m.slice_(node.operands[0], **bounds_of(region))


@rewrite("dilate_at")
def _dilate_at_number(node: Node) -> Node | None:
    x = node.operands[0]
    region = _region(node, places_of(node), x.shape)
    return None if region is None else m.dilate(x, shape=node.shape, **bounds_of(region))


@rewrite("update_at")
def _update_at_number(node: Node) -> Node | None:
    x, update = node.operands[:2]
    region = _region(node, places_of(node), update.shape)
    return None if region is None else m.slice_update(x, update, **bounds_of(region))


@rewrite("slice_at")
def _what_was_written(node: Node) -> Node | None:
    """The window that was just written is what was written."""
    x = node.operands[0]
    if x.operator is not w.update_at or node.attributes["ragged"]:
        return None
    return x.operands[1] if _alike(node, x, (node.shape, x.operands[1].shape)) else None


@rewrite("update_at")
def _written_again(node: Node) -> Node | None:
    """What is written over again need not have been written; nor what was there already."""
    x, update = node.operands[:2]
    if x.operator is w.update_at and _alike(node, x, (update.shape, x.operands[1].shape)):
        return w.update_at(x.operands[0], update, *places_of(node), **_again(node))
    is_own = update.operator is w.slice_at and update.operands[0] is x
    return x if is_own and _alike(node, update, (update.shape, update.shape)) else None


@rewrite("add")
def _windows_added_one_by_one(node: Node) -> Node | None:
    """A sum of small parts added to an array: part by part."""
    for x, total in (node.operands, node.operands[::-1]):
        parts = total.operands if total.operator is e.add else ()
        if w.dilate_at in [one.operator for one in parts] and x.operator is not w.dilate_at:
            first, second = parts if parts[0].operator is w.dilate_at else parts[::-1]
            if x.shape == first.shape == node.shape and not x.is_constant:
                written = _added_to_window(e.add(x, first))
                return None if written is None else e.add(written, second)
    return None


@rewrite("add")
def _added_to_window(node: Node) -> Node | None:
    """A small part added to an array is a write of that part, which loops do in place."""
    for x, padded in (node.operands, node.operands[::-1]):
        if padded.operator is not w.dilate_at or x.operator is w.dilate_at or x.shape != padded.shape:
            continue
        part, places = padded.operands[0], places_of(padded)
        if not x.is_constant:
            before = w.slice_at(x, *places, shape=part.shape, **_again(padded))
            return w.update_at(x, e.add(before, part), *places, **_again(padded))
    return None
