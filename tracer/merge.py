"""Graphs of one function made one graph: nodes that compute the same from the same inputs are one node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .graph import Node, toposort, with_operands
from .ops.control import Body


class SharedNodes:
    """The nodes of several graphs; of those that are equal the one that came first.

    Example:
        >>> shared = SharedNodes()
        >>> found = shared.merge(one.outputs, {})
        >>> found = shared.merge(other.outputs, dict(zip(other.inputs, one.inputs)))
        >>> [found[output] for output in other.outputs]
    """

    def __init__(self) -> None:
        self._known: dict[Any, Node] = {}

    def merge(self, outputs: Iterable[Node], inputs: Mapping[Node, Node]) -> dict[Node, Node]:
        """For each node that the outputs need the one that is kept; `inputs` are exchanged for others."""
        new = dict(inputs)
        for node in toposort(outputs):
            if node in new:
                continue
            if node.is_input:
                new[node] = node
                continue
            node_here = with_operands(node, tuple(new[operand] for operand in node.operands))
            new[node] = self._known.setdefault(_identity(node_here), node_here)
        return new


def _identity(node: Node) -> Any:
    attributes = tuple((name, _identity_of_value(value)) for name, value in sorted(node.attributes.items()))
    return node.operator, node.operands, attributes


def _identity_of_value(value: Any) -> Any:
    if isinstance(value, Body):
        return value.structure
    return type(value), repr(value)  # 0.0 is not -0.0
