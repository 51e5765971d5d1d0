"""Elements that are compared with the largest or the smallest of them: the gradient of an extreme asks so.

What is computed once more, in other code, may differ in its last bit, for machine code multiplies and adds at
once where it can, and then it equals no extreme. So the answers are saved, and elements are stored.
"""

from __future__ import annotations

from pullback.tracer.graph import Node
from pullback.tracer.ops.elementwise import equal
from pullback.tracer.ops.reduction import amax, amin


def compared_with_extreme(test: Node) -> Node | None:
    """What a node asks of whether it equals the extreme of its elements; None for all other nodes."""
    if test.operator is not equal:
        return None
    for value, extreme in (test.operands, test.operands[::-1]):
        if before_movement(extreme).operator in (amax, amin):
            return before_movement(value)
    return None


def before_movement(node: Node) -> Node:
    """The value that a chain of movement starts from, or the first that is put together from several."""
    while node.operator.family == "movement" and len(node.operands) == 1:
        (node,) = node.operands
    return node
