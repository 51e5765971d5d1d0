"""Rewrites of slices: of slices, and of what was padded. Gradients of slices are padded."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache

from pullback.tracer.dims import SizedRange
from pullback.tracer.graph import Node, constant
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import windows as w

from .simplify import rewrite

Region = list[SizedRange]
NOTHING = {e.add: -0.0, e.subtract: 0.0}
"""What changes no number, not even -0.0."""
PART = 2
"""The least number of times that a small part of an array goes into it."""


def region_of(node: Node) -> Region:
    """The positions that slice, dilate and slice_update are about, in each dimension."""
    bounds = (node.attributes[name] for name in ("starts", "stops", "steps"))
    return [SizedRange(*one) for one in zip(*bounds)]


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
    return m.slice_(x.operands[0], **bounds_of([inner.at(outer) for inner, outer in pairs]))


@rewrite("concatenate")
def _slices_side_by_side(node: Node) -> Node | None:
    whole = joined(node.operands, node.attributes["dim"])
    return None if whole.operands == node.operands else whole


def joined(parts: Sequence[Node], dim: int) -> Node:
    """The parts side by side; slices that lie so in one array, as rows of a loop's stack, as one slice."""
    runs: list[list[Node]] = []
    for part in parts:
        if runs and _follows(runs[-1][-1], part, dim % part.ndim):
            runs[-1].append(part)
        else:
            runs.append([part])
    found = [run[0] if len(run) == 1 else _from_to(_viewed(run[0]), _viewed(run[-1])) for run in runs]
    return found[0] if len(found) == 1 else m.concatenate(*found, dim=dim)


def _viewed(node: Node) -> Node:
    """What has been reshaped to it, if of the same shape."""
    source = node
    while source.operator is m.reshape:
        source = source.operands[0]
    return source if source.shape == node.shape else node


def _follows(before: Node, after: Node, dim: int) -> bool:
    """Whether two values are slices of one array, the second where the first ends."""
    one, other = _viewed(before), _viewed(after)
    if not one.operator is other.operator is m.slice_ or one.operands != other.operands:
        return False
    pairs = enumerate(zip(region_of(one), region_of(other)))
    return all(
        a.step == b.step == 1 and a.stop == b.start if place == dim else a == b for place, (a, b) in pairs
    )


def _from_to(first: Node, last: Node) -> Node:
    bounds = bounds_of(region_of(first)) | {"stops": bounds_of(region_of(last))["stops"]}
    return m.slice_(first.operands[0], **bounds)


@rewrite("slice")
def _slice_of_part(node: Node) -> Node | None:
    """A slice that lies in one operand of what is put together from several is one of that operand."""
    (x,) = node.operands
    found = _place_of(x, region_of(node))
    return None if found is None else m.slice_(x.operands[found[0]], **bounds_of(found[1]))


def _place_of(x: Node, wanted: Region) -> tuple[int, Region] | None:
    """Which operand a region of a value shows, and which region of that; None if it is not one alone."""
    regions = _filled(x)
    if x.operator is m.concatenate:
        dim = x.attributes["dim"]
        count = bisect_right(regions, wanted[dim].start, key=lambda one: one[1][dim].start)
        regions = regions[count - 1 : count]
    for operand, filled in regions:
        if len(filled) < len(wanted):  # a window
            return None
        if not any(map(_are_apart, wanted, filled)):
            inside = [_places_in(one, whole) for one, whole in zip(wanted, filled)]
            found = [one for one in inside if one is not None]
            return (operand, found) if len(found) == len(wanted) else None
    return None if (base := x.parts.base) is None else (base, wanted)


@lru_cache(maxsize=16)
def _filled(x: Node) -> list[tuple[int, Region]]:
    """The regions that operands fill; looked up for each of the slices of a long concatenation."""
    return [(part.operand, part.region(x.operands[part.operand].shape)) for part in x.parts.parts]


def is_in_zeros(node: Node) -> bool:
    """Whether a value is its one operand, or that and places, with zeros around it."""
    parts = node.parts
    is_zero = parts.around == 0 and math.copysign(1, parts.around) > 0
    return is_zero and len(parts.parts) == 1 and parts.base is None


def region_inside(padded: Node) -> Region:
    """Where in a padded array what is padded lies."""
    return padded.parts.parts[0].region(padded.operands[0].shape)


def part_of(node: Node) -> Node:
    """The part that an operator writes; for all others the value itself."""
    parts = node.parts.parts
    return node.operands[parts[0].operand] if len(parts) == 1 else node


def places_of(window: Node) -> tuple[Node, ...]:
    """The operands that say where a window is."""
    return window.operands[2:] if window.operator is w.update_at else window.operands[1:]


def with_part_added(x: Node, padded: Node) -> Node:
    """The sum of an array and of a part with zeros around it, as a write of the part."""
    part = padded.operands[0]
    if padded.operator is not w.dilate_at:
        bounds = bounds_of(region_inside(padded))
        return m.slice_update(x, e.add(m.slice_(x, **bounds), part), **bounds)
    places, others = places_of(padded), {name: padded.attributes[name] for name in ("steps", "ragged")}
    before = w.slice_at(x, *places, shape=part.shape, **others)
    return w.update_at(x, e.add(before, part), *places, **others)


def _places_in(wanted: SizedRange, written: SizedRange) -> SizedRange | None:
    """Where the wanted positions lie among those that were written, if all of them do."""
    if len(wanted) == 0 or not (wanted[0] in written and wanted[-1] in written):
        return None
    if len(wanted) > 1 and wanted.step % written.step:
        return None
    if wanted.step == written.step == 1:
        return SizedRange(wanted.start - written.start, wanted.stop - written.start)
    first, last = written.index(wanted[0]), written.index(wanted[-1])
    return SizedRange(first, last + 1, max(wanted.step // written.step, 1))


def covers(written: Region, wanted: Region) -> bool:
    """Whether a write concerns all of a region."""
    return all(_places_in(one, whole) is not None for one, whole in zip(wanted, written))


def _are_apart(one: SizedRange, other: SizedRange) -> bool:
    """Whether two stretches do not overlap; of those with gaps that overlap nothing is known."""
    return len(one) == 0 or len(other) == 0 or one[-1] < other[0] or other[-1] < one[0]


def lies_apart(node: Node, others: Iterable[Node]) -> bool:
    """Whether a slice has no element in common with other slices of the same value."""
    own = region_of(node)
    return all(any(map(_are_apart, own, region_of(other))) for other in others)


@rewrite("slice_update")
def _update_of_update(node: Node) -> Node | None:
    """What is written over again need not have been written; a write everywhere leaves nothing of before."""
    x, part = node.operands
    written = region_of(node)
    if part.spec.size == 0:
        return x
    if all(len(one) == extent for one, extent in zip(written, x.shape)):
        return part
    if x.operator is m.slice_update and covers(written, region_of(x)):
        return m.slice_update(x.operands[0], part, **bounds_of(written))
    return None


@rewrite("slice_update")
def _added_to_part(node: Node) -> Node | None:
    """Most of an array that is added to, `x[1:] += y`, is a sum with zeros around, which takes one pass."""
    x, changed = node.operands
    if changed.operator not in NOTHING or not x.spec.is_float:
        return None
    region = region_of(node)
    if any(one.step != 1 for one in region) or x.spec.size >= PART * changed.spec.size:
        return None
    for part, other in (changed.operands, changed.operands[::-1]):
        is_part = part.operator is m.slice_ and part.operands[0] is x and region_of(part) == region
        if not is_part or (changed.operator is e.subtract and part is not changed.operands[0]):
            continue
        widths = tuple((one.start, extent - one.stop) for one, extent in zip(region, x.shape))
        term = other if other.shape == changed.shape else m.expand(other, shape=changed.shape)
        return changed.operator(x, m.pad(term, widths=widths, value=NOTHING[changed.operator]))
    return None


@rewrite("add")
def _part_given_back(node: Node) -> Node | None:
    """In gradients, an array without a part and that part with zeros around it are the array.

    So goes the cotangent of an array of which a part is added to, `x[1:] += y`.
    """
    for without, padded in (node.operands, node.operands[::-1]) if node.origin.is_backward else ():
        if without.operator is not m.slice_update or padded.operator not in (m.pad, m.dilate):
            continue
        (x, zeros), (part,) = without.operands, padded.operands
        is_part = part.operator is m.slice_ and part.operands[0] is x and is_in_zeros(padded)
        if is_part and zeros.scalar_value == 0 and padded.spec == x.spec:
            region = region_of(without)
            if region == region_of(part) == region_inside(padded):
                return x
    return None


@rewrite("dilate")
def _dilate_is_pad(node: Node) -> Node | None:
    """Without gaps, the transpose of a slice is zeros around it."""
    (x,), region = node.operands, region_of(node)
    if any(one.step != 1 and len(one) > 1 for one in region):
        return None
    extents = zip(node.attributes["starts"], node.shape, x.shape)
    widths = tuple((start, whole - (start + extent)) for start, whole, extent in extents)
    return m.pad(x, widths=widths, value=0)


@rewrite("pad")
def _pad_of_nothing(node: Node) -> Node | None:
    (x,), value = node.operands, node.attributes["value"]
    return constant(value, node.spec) if x.spec.size == 0 else None


@rewrite("pad")
def _pad_of_pad(node: Node) -> Node | None:
    (x,), value = node.operands, node.attributes["value"]
    if x.operator is not m.pad or repr(float(x.attributes["value"])) != repr(float(value)):
        return None
    pairs = zip(node.attributes["widths"], x.attributes["widths"])
    widths = tuple((before + inner, after + outer) for (before, after), (inner, outer) in pairs)
    return m.pad(x.operands[0], widths=widths, value=value)
