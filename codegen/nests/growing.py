"""Arrays whose number of rows only data tells: the tapes of loops that run as long as something is true.

A function is given room for some rows. Where that is too small it says how many rows it needs and returns;
it is then called again with more, which later calls have at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pullback.tracer.graph import Node, make_input
from pullback.tracer.spec import INT64, Spec

from ..ir.names import NEEDED
from .expression import AnyIndex, Index
from .extents import Symbol
from .tree import Item, Loop, LoopTree, Root, StepCount

FIRST_ROOM = 64


def growing_arrays(tree: LoopTree, filled: Sequence[Node]) -> dict[Node, Symbol]:
    """The arrays of which a dimension is a number of steps that data decides, which is the first."""
    found: dict[Node, Symbol] = {}
    for node in filled:
        for dim in tree.kept.get(node, ()):
            symbol = tree.extents[node][dim]
            if symbol.is_counted and node not in tree.rows:
                found[node] = symbol
    return found


def needed_node(count: int) -> Node:
    """The array in which a function writes how many rows it needs: one number for each count of steps."""
    return make_input(Spec((count,), INT64), NEEDED)


class Room:
    """How many rows there is room for: of each count of steps, as many as a call has needed."""

    def __init__(self, count: int) -> None:
        self.rows = [FIRST_ROOM] * count

    def enlarge(self, needed: np.ndarray) -> None:
        """Make room for what a call has asked for, and for more to come."""
        self.rows = [max(now, int(rows + rows // 2)) for now, rows in zip(self.rows, needed)]


# --- what belongs together ----------------------------------------------------------------------------------


def counts_steps(item: Item, tree: LoopTree) -> bool:
    """Whether an item counts steps, or uses a number that another has counted: they share a function."""
    if isinstance(item, Loop):
        if item.extent.find().is_counted or item.goes_on is not None:
            return True
        return any(counts_steps(one, tree) for one in item.items)
    return isinstance(item, StepCount) or any(map(_is_counted, _places(item)))


def _places(root: Root) -> list[AnyIndex]:
    found = list(root.target)
    for load in root.reads:
        found.extend(load.indices)
    return found


def _is_counted(index: AnyIndex) -> bool:
    if not isinstance(index, Index):
        return False
    factors = (factor for term in index.terms for factor in term.factors)
    return any(isinstance(factor, Symbol) and factor.find().is_counted for factor in factors)
