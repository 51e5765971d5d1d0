"""Arrays that a program writes part by part, `x[1:-1] = v`: each part is stored where it belongs.

In the graph every write is a new array, `slice_update`. One or two of them are a choice by element, which
fuses with what reads it. A longer row of writes becomes one array in memory: first what there was, then the
parts, one after another. An array that is read between two rows of writes is stored by itself, and copied for
the second row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pullback.tracer.graph import Graph, Node
from pullback.tracer.ops import movement as m

from ..rewriting.slices import Region, covers, region_of

MOST_CHOICES = 2
"""Writes of which an element finds out by itself whether one concerns it."""


def store_updates(graph: Graph, users: Mapping[Node, list[Node]], stored: set[Node]) -> None:
    """Add to `stored` the arrays after long rows of writes, and what is written, if it reads the array."""
    written: dict[Node, int] = {}
    outputs = set(graph.outputs)
    for node in graph.nodes:
        if node.operator is not m.slice_update:
            continue
        base = node.operands[0]
        written[node] = 1 if base in stored else written.get(base, 0) + 1
        if written[node] > MOST_CHOICES and (node in outputs or not _is_only_written(node, users)):
            stored.add(node)
        if node in stored and written[node] > MOST_CHOICES:
            row = list(row_of_updates(node, stored - {node}))
            arrays = {one.operands[0] for one in row}
            stored.update(one.operands[1] for one in row if _reads(one.operands[1], arrays, stored))


def _is_only_written(node: Node, users: Mapping[Node, list[Node]]) -> bool:
    """Whether the array serves for nothing but one more write."""
    found = users[node]
    return len(found) == 1 and found[0].operator is m.slice_update and found[0].operands[0] is node


def visible_updates(row: Sequence[Node]) -> list[Node]:
    """Of a row of writes, the first one first, those that no later one covers."""
    seen: list[Region] = []
    visible = []
    for node in reversed(row):
        region = region_of(node)
        if not any(covers(later, region) for later in seen):
            seen.append(region)
            visible.append(node)
    return visible[::-1]


def row_of_updates(node: Node, stored: set[Node]) -> Iterator[Node]:
    """The writes that lead to an array, the last one first, from the last array that is stored."""
    while node.operator is m.slice_update and node not in stored:
        yield node
        node = node.operands[0]


def _reads(value: Node, arrays: set[Node], stored: set[Node]) -> bool:
    """Whether an element of a value is computed from elements of one of the arrays."""
    if value in stored or value.is_constant:
        return False
    pending, seen = [value], {value}
    while pending:
        one = pending.pop()
        if one in arrays:
            return True
        if one not in stored:
            pending += [operand for operand in one.operands if operand not in seen]
            seen.update(one.operands)
    return False
