"""Stretches of a sequence of operations in which the same operators repeat with a period.

Each operation is a token: operator, shape, dtype, and what attributes must agree. Periods are the distances
between equal short runs of tokens; a stretch is where tokens equal those one period later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pullback.tracer.graph import Node
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.control import loop

from ..rewriting.slices import region_of

RUN = 8
"""Tokens that are compared to find the distances."""
OCCURRENCES = 8
"""How many equal runs back are looked at: a step may itself hold so many similar parts."""


@dataclass(frozen=True)
class Stretch:
    """`steps` times `period` operations, from `start` on."""

    start: int
    period: int
    steps: int

    @property
    def stop(self) -> int:
        return self.start + self.steps * self.period


def find_stretches(sequence: Sequence[Node], fewest_steps: int, fewest_saved: int) -> Iterator[Stretch]:
    """Stretches of at least so many steps that save so many operations, shortest periods first."""
    tokens = _tokens(sequence)
    weights = np.cumsum([0, *map(weight, sequence)])
    for period in _periods(tokens, fewest_steps):
        equal = np.concatenate([[False], tokens[:-period] == tokens[period:], [False]])
        edges = np.flatnonzero(equal[1:] != equal[:-1])
        for start, stop in zip(edges[::2], edges[1::2]):
            steps = (int(stop) - int(start)) // period + 1
            saved = weights[start + (steps - 1) * period] - weights[start]
            if steps >= fewest_steps and saved >= fewest_saved:
                yield Stretch(int(start), period, steps)


def weight(node: Node) -> int:
    """How many operations a node stands for: a loop for those of its body."""
    return sum(map(weight, node.attributes["body"].graph.nodes)) if node.operator is loop else 1


def _tokens(sequence: Sequence[Node]) -> np.ndarray:
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(_token(node), len(numbers)) for node in sequence], np.int64)


def _token(node: Node) -> Any:
    attributes: Any
    if node.operator in (m.slice_, m.slice_update):  # at places that may advance
        attributes = (node.attributes["steps"], region_shape(node))
    elif node.operator is loop:
        attributes = tuple(
            value.structure if key == "body" else value for key, value in node.attributes.items()
        )
    else:
        attributes = tuple(node.attributes.values())
    return node.operator, node.spec, attributes, len(node.operands)


def region_shape(node: Node) -> tuple[int, ...]:
    """The extents of what a slice reads, or of what a write is about."""
    return tuple(map(len, region_of(node)))


def _periods(tokens: np.ndarray, fewest_steps: int) -> list[int]:
    """Distances at which enough runs of tokens repeat, short ones first."""
    count = len(tokens) - RUN + 1
    if count < 2:
        return []
    runs = np.zeros(count, np.uint64)
    for offset in range(RUN):
        runs = runs * np.uint64(1_000_003) + tokens[offset : offset + count].astype(np.uint64)
    order = np.argsort(runs, kind="stable")
    found: dict[int, int] = {}
    for back in range(1, OCCURRENCES + 1):
        earlier, later = order[:-back], order[back:]
        distances = (later - earlier)[runs[later] == runs[earlier]]
        for distance, times in zip(*np.unique(distances, return_counts=True)):
            found[int(distance)] = found.get(int(distance), 0) + int(times)
    enough = [period for period, times in found.items() if times >= (fewest_steps - 2) * period - RUN]
    return sorted(enough)[:64]
