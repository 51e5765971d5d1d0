"""What computing costs, in multiplications: fusion, blocks, partition and threads decide by it."""

from __future__ import annotations

from pullback.tracer.graph import Node
from pullback.tracer.ops.elementwise import TRANSCENDENTAL

from .expression import Compute, Expression, children

EXPENSIVE = TRANSCENDENTAL
"""Arithmetic per element from which a value is worth a place in the cache, not a second computation."""


def arithmetic(expression: Expression, seen: set[Node]) -> int:
    """Multiplications that an element takes, each operator counted once."""
    total = 0
    visited: set[Expression] = set()
    pending = [expression]
    while pending:
        one = pending.pop()
        known = isinstance(one, Compute) and one.node in seen
        if known or one in visited:
            continue
        visited.add(one)
        if isinstance(one, Compute):
            seen.add(one.node)
            total += one.node.operator.cost
        pending.extend(children(one))
    return total
