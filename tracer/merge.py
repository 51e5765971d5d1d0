"""Graphs of one function made one graph: nodes that compute the same from the same inputs are one node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .dims import Formula, canonical, formulas_in, spelled
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
            new[node] = self.made(node, tuple(new[operand] for operand in node.operands))
        return new

    def made(self, node: Node, operands: tuple[Node, ...]) -> Node:
        """The node that is kept of those that do what `node` does, with these operands."""
        here = with_operands(node, operands)
        return self._known.setdefault(identity_of(here, _structure, spelled), here)


def identity_of(
    node: Node, of_body: Callable[[Body], Any] = repr, of_size: Callable[[Formula], Any] = canonical
) -> Any:
    """What a node shares with nodes of the same value.

    Args:
        of_body: what bodies of loops that are alike share.
        of_size: what sizes that are equal for a reason share; others may agree by chance.
    """
    if not node.attributes:
        return node.operator, node.operands, ()
    attributes = (  # as text: 0.0 is not -0.0
        (name, type(value), _text(value, of_body), formulas_in(value, of_size))
        for name, value in sorted(node.attributes.items())
    )
    return node.operator, node.operands, tuple(attributes)


def _text(value: Any, of_body: Callable[[Body], Any]) -> Any:
    return of_body(value) if isinstance(value, Body) else repr(value)


def _structure(body: Body) -> Any:
    return body.structure
