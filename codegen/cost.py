"""What computing costs, in multiplications: fusion, blocks, partition and threads decide by it."""

from __future__ import annotations

from pullback.tracer.graph import Node
from pullback.tracer.ops.elementwise import TRANSCENDENTAL

from .expression import Compute, Expression, children

EXPENSIVE = TRANSCENDENTAL
"""Arithmetic per element from which a value is worth a place in the cache, not a second computation."""


def arithmetic(expression: Expression, seen: set[Node]) -> int:
    """Multiplications that an element takes, each operator counted once."""
    own = 0
    if isinstance(expression, Compute):
        if expression.node in seen:
            return 0
        seen.add(expression.node)
        own = expression.node.operator.cost
    return own + sum(arithmetic(child, seen) for child in children(expression))
