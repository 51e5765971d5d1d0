"""Rows for a loop: one stacked array for the values that each step takes from outside.

A slice that advances by a constant, numbers that do, and rows of one stack cost index arithmetic only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.tracer.graph import Node, constant, make_node, new_node
from pullback.tracer.ops import creation
from pullback.tracer.ops import movement as m
from pullback.tracer.spec import INT64

from .progressions import Progression, progression_of

WIDEST = 8
"""Positions that a slice may take in the dimension in which it advances."""
MOST_STACKED = 64
"""Values that are copied one by one into a stack."""


def advance_of(slices: Sequence[Node]) -> tuple[int, int, int] | None:
    """(dimension, first start, advance) of slices that advance in one dimension, else None."""
    starts = np.array([node.attributes["starts"] for node in slices])
    differences = starts[1:] - starts[:-1]
    dims = np.flatnonzero(differences.any(axis=0))
    if len(dims) != 1 or (differences != differences[0]).any():
        return None
    (dim,) = dims
    wide = slices[0].shape[dim]
    return (int(dim), int(starts[0, dim]), int(differences[0, dim])) if 1 <= wide <= WIDEST else None


def starts_of(column: Sequence[Node]) -> list[tuple[int, ...]]:
    """Where the slices, or writes, of all steps begin, by dimension."""
    return [*zip(*(node.attributes["starts"] for node in column))]


def have_progressing_starts(column: Sequence[Node]) -> bool:
    """Whether slices, or writes, begin at places that are a progression in each dimension."""
    return all(progression_of(starts) is not None for starts in starts_of(column))


def part_in_step(column: Sequence[Node], step: int) -> Mapping[str, Any] | None:
    """The attributes of the slice or write in a step before those of a column, or behind; None if outside."""
    first = column[0]
    attributes = dict(first.attributes)
    starts = []
    for numbers in starts_of(column):
        progression = progression_of(numbers)
        if progression is None:
            return None
        starts.append(progression.at(step))
    ends = zip(starts, attributes["starts"], attributes["stops"])
    attributes |= {"starts": tuple(starts), "stops": tuple(start + (stop - old) for start, old, stop in ends)}
    within = zip(starts, attributes["stops"], first.operands[0].shape)
    return attributes if all(start >= 0 and stop <= extent for start, stop, extent in within) else None


def row_in_step(nodes: Sequence[Node], step: int) -> Node | None:
    """The row of a step in front of those given, or behind; None outside, and of what is no progression."""
    first = nodes[0]
    numbers, slices = progression_of_constants(nodes), _slices_behind(nodes)
    if numbers is not None:
        return constant(numbers.at(step), first.spec)
    attributes = None if slices is None else part_in_step(slices, step)
    if slices is None or attributes is None:
        return None
    part = new_node(m.slice_, slices[0].operands, attributes, slices[0].spec, slices[0].origin)
    return part if slices[0] is first else m.reshape(part, shape=first.shape)


def rows_of_slices(slices: Sequence[Node], base: Node) -> Node | None:
    """The results of slices that advance, stacked, as movement of what they slice."""
    found = advance_of(slices)
    if found is None:
        return None
    dim, start, advance = found
    first = slices[0]
    wide, step = first.shape[dim], first.attributes["steps"][dim]
    parts = [_every(base, first, dim, start + one * step, advance, len(slices)) for one in range(wide)]
    whole = parts[0] if wide == 1 else m.concatenate(*parts, dim=dim + 1)
    return whole


def _every(base: Node, like: Node, dim: int, start: int, advance: int, count: int) -> Node:
    """base[start + advance * t] along a dimension for all t in front, size 1 in its place."""
    last = start + (count - 1) * advance
    starts, stops, steps = (list(like.attributes[name]) for name in ("starts", "stops", "steps"))
    starts[dim], stops[dim], steps[dim] = min(start, last), max(start, last) + 1, abs(advance)
    part = m.slice_(base, starts=tuple(starts), stops=tuple(stops), steps=tuple(steps))
    if advance < 0:
        part = m.flip(part, dims=(dim,))
    rank = base.spec.ndim
    order = (dim, *(one for one in range(rank) if one != dim))
    rest = list(part.shape)
    rest[dim] = 1
    return m.reshape(m.permute(part, dims=order), shape=(count, *rest))


def progression_of_constants(nodes: Sequence[Node]) -> Progression | None:
    """What gives the numbers that constants are; None if nothing does, and of what are no numbers."""
    dtype = nodes[0].dtype
    if dtype.kind not in "if" or len(nodes) < 2 or not all(node.is_constant for node in nodes):
        return None
    return progression_of([node.attributes["value"] for node in nodes], dtype)


def counter(steps: int) -> Node:
    """The numbers of the steps."""
    return make_node(creation.iota, (), {"size": steps, "dtype": INT64})


def can_stack(nodes: Sequence[Node]) -> bool:
    """Whether values from before a loop are rows of one array, or so few that they may be copied."""
    if any(node.spec != nodes[0].spec for node in nodes):
        return False
    return not is_copied(nodes) or len(nodes) <= MOST_STACKED


def is_copied(nodes: Sequence[Node]) -> bool:
    """Whether a stack of values must be made, since they are no rows of one array."""
    return progression_of_constants(nodes) is None and _slices_behind(nodes) is None


def rows_of_nodes(nodes: Sequence[Node], value: Callable[[Node], Node]) -> Node:
    """Values from before the loop in a stack. `value` says what a node of the old graph is in the new one."""
    slices = _slices_behind(nodes)
    first = nodes[0]
    if slices is not None:
        rows = rows_of_slices(slices, value(slices[0].operands[0]))
        assert rows is not None
        return m.reshape(rows, shape=(len(nodes), *first.shape))
    return m.concatenate(*(m.reshape(value(node), shape=(1, *node.shape)) for node in nodes), dim=0)


def _slices_behind(nodes: Sequence[Node]) -> list[Node] | None:
    """The slices of one array that values are, perhaps in another shape; None unless they advance."""
    slices = [node.operands[0] if node.operator is m.reshape else node for node in nodes]
    first = slices[0]
    if first.operator is not m.slice_ or any(
        one.operator is not m.slice_ or one.operands[0] is not first.operands[0] or one.spec != first.spec
        for one in slices
    ):
        return None
    return slices if advance_of(slices) else None
