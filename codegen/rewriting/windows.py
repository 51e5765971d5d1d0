"""Rewrites of windows: slices whose place is a value, and what they read and write."""

from __future__ import annotations

from pullback.tracer.dims import SizedRange
from pullback.tracer.graph import Graph, Node, rebuild, with_operands
from pullback.tracer.loop import LoopNode, change_loops
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import windows as w
from pullback.tracer.ops.control import loop_result
from pullback.tracer.origin import located_at

from .simplify import rewrite
from .slices import PART, Region, bounds_of, is_in_zeros, part_of, places_of, with_part_added


def _region(node: Node, places: tuple[Node, ...], shape: tuple[int, ...]) -> Region | None:
    """A window as a region, if numbers say where it begins and where it ends."""
    steps, ragged = node.attributes["steps"], node.attributes["ragged"]
    if ragged or min(steps, default=1) < 1 or not all(place.is_constant for place in places):
        return None
    starts = [int(place.attributes["value"]) for place in places]
    return [*map(SizedRange.of, starts, shape, steps)]


@rewrite("slice_at", "dilate_at", "update_at")
def _at_numbers(node: Node) -> Node | None:
    """A window whose place numbers say is a region."""
    places = places_of(node)
    region = _region(node, places, part_of(node).shape)
    if region is None:
        return None
    operator = next(plain for plain, at_places in w.AT_PLACES.items() if at_places is node.operator)
    shape = {"shape": node.shape} if operator is m.dilate else {}
    arrays = node.operands[: len(node.operands) - len(places)]
    return operator(*arrays, **shape, **bounds_of(region))


@rewrite("add")
def _windows_added_one_by_one(node: Node) -> Node | None:
    """A sum with small parts among its terms, added to an array: the parts by themselves."""
    for x, total in (node.operands, node.operands[::-1]):
        if total.operator is not e.add or x.is_constant or x.shape != node.shape or _has_window(x):
            continue
        found = _without_window(total)
        if found is not None and found[0].shape == x.shape:
            written = _added_to_window(e.add(x, found[0]))
            return None if written is None else e.add(written, found[1])
    return None


MOST_TERMS = 16
"""Of a sum that are searched for a window, one inside of the other."""


def _has_window(total: Node, depth: int = MOST_TERMS) -> bool:
    if total.operator is e.add and depth:
        return any(_has_window(one, depth - 1) for one in total.operands)
    return total.operator is w.dilate_at


def _without_window(total: Node, depth: int = MOST_TERMS) -> tuple[Node, Node] | None:
    """A window among the terms of a sum, and the other terms."""
    for term, other in (total.operands, total.operands[::-1]):
        if term.operator is w.dilate_at and other.shape == total.shape:
            return term, other
        inner = _without_window(term, depth - 1) if term.operator is e.add and depth else None
        if inner is not None:
            return inner[0], e.add(inner[1], other)
    return None


@rewrite("add")
def _added_to_window(node: Node) -> Node | None:
    """A small part added to an array is a write of that part, which loops do in place."""
    for x, padded in (node.operands, node.operands[::-1]):
        if padded.operator is not w.dilate_at or _has_window(x) or x.shape != padded.shape:
            continue
        if not x.is_constant:
            return with_part_added(x, padded)
    return None


# --- writes in loops ----------------------------------------------------------------------------------------


def add_in_place(graph: Graph) -> Graph:
    """Small parts that the steps of a loop add to a carry are written where they belong."""
    return change_loops(graph, _with_writes)


def _with_writes(loop: LoopNode) -> LoopNode:
    sums: dict[Node, tuple[Node, Node]] = {}
    for start, end in zip(loop.body.inputs[: loop.carries], loop.body.outputs):
        sums |= _sums_between(start, end)
    if not sums:
        return loop

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if node not in sums:
            return with_operands(node, operands)
        x, padded = (operands[node.operands.index(one)] for one in sums[node])
        with located_at(node.origin):
            return with_part_added(x, padded)

    return loop.with_body(rebuild(loop.body, change))


def _sums_between(start: Node, end: Node) -> dict[Node, tuple[Node, Node]]:
    """The sums of an array and a part on the way from a carry to what it is after a step, if all are such."""
    found: dict[Node, tuple[Node, Node]] = {}
    node = end
    while node is not start:
        if node.operator in w.WRITES:
            node = node.operands[0]
        elif node.operator is loop_result and node.attributes["index"] < LoopNode(node.operands[0]).carries:
            node = node.operands[0].operands[node.attributes["index"]]
        elif node.operator is e.add and (pair := _array_and_part(node)) is not None:
            found[node] = pair
            node = pair[0]
        else:
            return {}
    return found


def _array_and_part(node: Node) -> tuple[Node, Node] | None:
    for x, padded in (node.operands, node.operands[::-1]):
        is_added = is_in_zeros(padded) and x.shape == node.shape
        if is_added and PART * padded.operands[0].spec.size <= x.spec.size:
            return x, padded
    return None
