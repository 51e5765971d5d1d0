"""Stretches of a sequence of operations in which the same operators repeat with a period.

Each operation is a token: operator, shape, dtype, and what attributes must agree. Periods are the distances
between equal short runs of tokens; a stretch is where tokens equal those one period later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.tracer.graph import Node, make_node
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import windows as w
from pullback.tracer.ops.control import Body, loop, ruled

from ...tracer.records import record
from ..rewriting.slices import part_of

RUN = 8
"""Tokens that are compared to find the distances."""
OCCURRENCES = 8
"""How many equal runs back are looked at."""
MOST_PERIODS = 64
"""That are tried, the shortest first."""


class CannotRoll(Exception):
    """Why a stretch that repeats is no loop."""


@record(frozen=True)
class Stretch:
    """`steps` times `period` operations, from `start` on."""

    start: int
    period: int
    steps: int
    spare: int = 0
    """Operations behind the last step that are as if there were one more, which is not whole."""

    @property
    def stop(self) -> int:
        return self.start + self.steps * self.period


def find_stretches(
    sequence: Sequence[Node],
    fewest_steps: Callable[[int], int],
    fewest_saved: int,
    ragged: bool = False,
    occurrences: int = OCCURRENCES,
) -> Iterator[Stretch]:
    """Stretches of at least so many steps of a period that save so many operations, shortest periods first.

    Those of `ragged` operations may have other extents in each step. A step may itself hold as many similar
    parts as there are `occurrences`.
    """
    tokens = _tokens(sequence, _ragged_token if ragged else _token)
    weights = np.cumsum([0, *map(weight, sequence)])
    for period in _periods(tokens, fewest_steps, occurrences):
        equal = np.concatenate([[False], tokens[:-period] == tokens[period:], [False]])
        edges = np.flatnonzero(equal[1:] != equal[:-1])
        for start, stop in zip(edges[::2], edges[1::2]):
            steps = (int(stop) - int(start)) // period + 1
            saved = weights[start + (steps - 1) * period] - weights[start]
            if steps >= fewest_steps(period) and saved >= fewest_saved:
                yield Stretch(int(start), period, steps, (int(stop) - int(start)) % period)


def find_shorter(sequence: Sequence[Node], found: Sequence[Stretch], fewest_steps: int) -> Iterator[Stretch]:
    """Shorter stretches of the same operations as those found: of the first passes of a triangular loop."""
    taken = np.zeros(len(sequence) + 1, bool)
    for one in found:
        taken[one.start : one.stop] = True
    numbers: dict[Any, int] = {}
    steps = {
        tuple(
            numbers.setdefault(_ragged_token(node), len(numbers))
            for node in sequence[one.start : one.start + one.period]
        )
        for one in found
    }
    free = np.flatnonzero(~taken[:-1]).tolist()
    tokens = np.full(len(sequence), -1)  # of what is taken nothing is asked
    tokens[free] = [numbers.get(_ragged_token(sequence[index]), -1) for index in free]
    for step in sorted(steps, key=len):
        period = len(step)
        starts = np.flatnonzero(tokens[: len(tokens) - period + 1] == step[0])
        for offset in range(1, period):
            starts = starts[tokens[starts + offset] == step[offset]]
        after = -1
        for start in starts.tolist():
            if start < after or taken[start : start + period].any():
                continue
            count = 1
            while _goes_on(tokens, step, start + count * period) and not taken[start + count * period]:
                count += 1
            after = start + count * period
            if count >= fewest_steps:
                yield Stretch(start, period, count)


def _goes_on(tokens: np.ndarray, step: tuple[int, ...], start: int) -> bool:
    return tuple(tokens[start : start + len(step)].tolist()) == step


def weight(node: Node) -> int:
    """How many operations a node stands for: a loop, or a call with a rule, for those of its graphs."""
    body = node.attributes.get("body") if node.operator in (loop, ruled) else None
    return 1 if body is None else _weight_of(body)


@lru_cache(maxsize=4096)
def _weight_of(body: Body) -> int:
    of_rule = () if body.rule is None or body.rule.graph is None else body.rule.graph.nodes
    return sum(map(weight, (*body.graph.nodes, *of_rule)))


def _tokens(sequence: Sequence[Node], token: Callable[[Node], Any]) -> np.ndarray:
    numbers: dict[Any, int] = {}
    known: dict[tuple[int, int, int], int] = {}  # of operators without attributes, on one spec as an object
    found = []
    for node in sequence:
        key = id(node.operator), id(node.spec), len(node.operands)
        number = None if node.attributes else known.get(key)
        if number is None:
            number = numbers.setdefault(token(node), len(numbers))
            if not node.attributes:
                known[key] = number
        found.append(number)
    return np.array(found, np.int64)


def _token(node: Node) -> Any:
    attributes: Any
    if is_part(node):  # at places that may advance
        attributes = (node.attributes["steps"], part_of(node).shape)
    else:
        attributes = tuple(
            [value.structure if isinstance(value, Body) else value for value in node.attributes.values()]
        )
    spec = node.spec
    return node.operator, spec.shape, spec.dtype, attributes, len(node.operands)


def window_for(node: Node, operands: Sequence[Node], starts: Sequence[Node]) -> Node:
    """A slice, or a write, at a place that values say."""
    attributes: dict[str, Any] = {"steps": node.attributes["steps"], "ragged": ()}
    if node.operator is not m.slice_update:
        attributes["shape"] = node.shape
    places = (*operands, *starts)
    return make_node(w.AT_PLACES[node.operator], places, attributes, origin=node.origin, name=node.name)


def _ragged_token(node: Node) -> Any:
    """What operations have in common that differ in their extents alone."""
    if node.operator is loop:
        kept = (value for name, value in node.attributes.items() if name not in ("body", "length"))
        return node.operator, ragged_structure(node.attributes["body"]), *kept, len(node.operands)
    dropped = (*EXTENTS, "starts", "stops") if is_part(node) else EXTENTS
    others = {name: value for name, value in node.attributes.items() if name not in dropped}
    return node.operator, node.dtype, node.spec.ndim, tuple(others.values()), len(node.operands)


@lru_cache(maxsize=4096)
def ragged_structure(body: Body) -> tuple[Any, ...]:
    """What bodies have in common that differ in extents, and in numbers, alone."""
    numbers: dict[Node, int] = {}
    lines: list[Any] = []
    for node in (*body.graph.inputs, *body.graph.nodes):
        if node not in numbers:
            numbers[node] = len(numbers)
            token = (node.dtype, node.spec.ndim) if node.is_constant or node.is_input else _ragged_token(node)
            lines.append((token, *(numbers[operand] for operand in node.operands)))
    return (*lines, *(numbers[output] for output in body.graph.outputs))


EXTENTS = ("shape", "size", "extent", "spec")


def is_part(node: Node) -> bool:
    """Whether an operator reads or writes a part of an array, at a place that attributes say."""
    return node.operator in w.AT_PLACES


def whole_of(node: Node) -> Node:
    """What a slice or a write concerns a part of."""
    return node.operands[0] if node.operator is m.slice_ else node


def _periods(tokens: np.ndarray, fewest_steps: Callable[[int], int], occurrences: int) -> list[int]:
    """Distances at which enough runs of tokens repeat, short ones first."""
    count = len(tokens) - RUN + 1
    if count < 2:
        return []
    runs = np.zeros(count, np.uint64)
    for offset in range(RUN):
        runs = runs * np.uint64(1_000_003) + tokens[offset : offset + count].astype(np.uint64)
    order = np.argsort(runs, kind="stable")
    found: dict[int, int] = {}
    for back in range(1, occurrences + 1):
        earlier, later = order[:-back], order[back:]
        distances = (later - earlier)[runs[later] == runs[earlier]]
        for distance, times in zip(*np.unique(distances, return_counts=True)):
            found[int(distance)] = found.get(int(distance), 0) + int(times)
    enough = [period for period, times in found.items() if times >= (fewest_steps(period) - 2) * period - RUN]
    return sorted(enough)[:MOST_PERIODS]
