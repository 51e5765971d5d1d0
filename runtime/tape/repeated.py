"""A backward pass that runs again and again over the same nodes, as where what `vjp` gives is called.

Where the nodes are those of operators alone, and nobody looks at cotangents on their way, it is planned once
which node comes when, and where what it gives is added.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ...tracer.quiet import IGNORED, floating_errors
from ...tracer.trace import innermost
from ..values.nodes import Behind, Edge
from ..values.operator_nodes import OperatorNode
from ..values.tensor import Tensor
from .anomaly import is_anomaly_enabled
from .plain_sweeps import refuse_matrix

Step = tuple[OperatorNode, int, list[bool] | None, list[tuple[int, int]]]
"""A node, the place of its cotangent, which edges are wanted if not all, and of edges where theirs go."""


class Repeated:
    """A pass from the roots to leaves, to be run outside of traces."""

    def __init__(
        self, steps: Sequence[Step], roots: Sequence[int], leaves: Sequence[Tensor], size: int
    ) -> None:
        self._steps = steps
        self._roots = roots
        self._leaves = leaves
        """They have the first places."""
        self._size = size

    def run(self, cotangents: Sequence[np.ndarray]) -> list[Any] | None:
        """What arrives at each leaf, or None; None in the place of all where the plan does not hold now."""
        if innermost() is not None or is_anomaly_enabled():
            return None
        for leaf in self._leaves:
            if leaf._hooks is not None:
                return None
        values: list[Any] = [None] * self._size
        for place, cotangent in zip(self._roots, cotangents):
            values[place] = cotangent if values[place] is None else values[place] + cotangent
        errors = floating_errors.set(IGNORED)
        try:
            for node, place, wanted, targets in self._steps:
                if node.hooks is not None:
                    return None
                g = values[place]
                if g is None:
                    continue
                pulled = node.pull_all(g) if wanted is None else node.pull([g], wanted, False)
                for position, target in targets:
                    value = pulled[position]
                    if value is not None:
                        mine = values[target]
                        values[target] = value if mine is None else mine + value
        except np.linalg.LinAlgError as error:
            refuse_matrix(error)
        finally:
            floating_errors.reset(errors)
        return values[: len(self._leaves)]


def repeated(
    roots: Sequence[Edge], leaves: Sequence[Tensor], behind: Behind, wanted: Collection[int] | None
) -> Repeated | None:
    """The plan of a pass from roots to leaves, given what is behind the roots, and which of that is wanted on
    the way; None where there are other nodes, or leaves with a history."""
    nodes = [node for node in behind.nodes if wanted is None or id(node) in wanted]
    if not all(isinstance(node, OperatorNode) for node in nodes):
        return None
    places = {id(one): place for place, one in enumerate((*leaves, *reversed(nodes)))}
    if any(one._grad_fn is not None for one in leaves) or any(
        id(target) not in places for target, _ in roots
    ):
        return None
    steps: list[Step] = []
    for node in reversed(nodes):
        assert isinstance(node, OperatorNode)
        is_wanted = [edge is not None and id(edge[0]) in places for edge in node.edges]
        asked = None if all(one or edge is None for one, edge in zip(is_wanted, node.edges)) else is_wanted
        targets = [
            (position, places[id(edge[0])])
            for position, edge in enumerate(node.edges)
            if edge is not None and is_wanted[position]
        ]
        steps.append((node, places[id(node)], asked, targets))
    return Repeated(steps, [places[id(target)] for target, _ in roots], leaves, len(places))
