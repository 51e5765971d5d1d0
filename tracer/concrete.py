"""The values that nodes have in the call that is being traced: computed when asked for, and remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any

import numpy as np

from .errors import DimensionError
from .graph import Node, made_anew


class ConcreteValues:
    """Values by node. Asking for n values of one growing graph takes time linear in the graph."""

    def __init__(self) -> None:
        self._known: dict[Node, Any] = {}
        self._varying: dict[Node, bool] = {}
        self._defined: dict[Node, Callable[[], Node]] = {}
        self._plain: dict[Node, Node] = {}

    def give(self, node: Node, array: np.ndarray, varies: bool = True) -> None:
        """Say what an input is now, and whether it may be something else in other calls."""
        self._known[node] = array
        self._varying[node] = varies

    def define(self, node: Node, made: Callable[[], Node]) -> None:
        """Say how to make the node that has the value of one that operands alone do not tell."""
        self._defined[node] = made

    def plain(self, node: Node) -> Node:
        """The same value made of operators that all have one: derivatives are taken."""
        if not self._defined:
            return node
        for one in _missing(node, self._plain):
            if one in self._defined:
                self._plain[one] = self._defined[one]()
                continue
            operands = tuple([self._plain[operand] for operand in one.operands])
            is_same = all(new is old for new, old in zip(operands, one.operands))
            self._plain[one] = one if is_same else made_anew(one, operands)
        return self._plain[node]

    def varies(self, node: Node) -> bool:
        """Whether a value may differ between calls; inputs that nobody gave do."""
        node = self.plain(node)
        for one in _missing(node, self._varying):
            self._varying[one] = one.is_input or any(self._varying[operand] for operand in one.operands)
        return self._varying[node]

    def of(self, node: Node) -> np.ndarray | None:
        """The value; None where it depends on an input that has none.

        Raises:
            DimensionError: on the way to it, an index is out of range.
            NotDrawnError: it depends on random numbers that code will draw.
        """
        node = self.plain(node)
        missing = _missing(node, self._known)
        if any(one.is_input for one in missing):
            return None
        Context().run(self._compute, missing)  # not in the trace
        return np.asarray(self._known[node])

    @np.errstate(all="ignore")
    def _compute(self, nodes: Sequence[Node]) -> None:
        for one in nodes:
            operands = [self._known[operand] for operand in one.operands]
            try:
                self._known[one] = one.operator(*operands, **one.attributes)
            except IndexError as error:
                raise DimensionError(f"{error}, at {one.origin.place_and_text}") from None


def _missing(node: Node, known: dict[Node, Any]) -> list[Node]:
    """What has to be known first, and the node itself, operands before results."""
    found: set[Node] = set()
    pending = [node]
    while pending:
        one = pending.pop()
        if one not in known and one not in found:
            found.add(one)
            pending.extend(one.operands)
    return sorted(found, key=lambda one: one.serial)
