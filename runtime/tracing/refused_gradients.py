"""Results that have no gradient left, or none through some nodes: what these had saved was overwritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...tracer.graph import Node
from ...tracer.records import record
from ..values.nodes import GradNode, targets_behind
from ..values.tensor import Tensor
from .traced import Overwritten


@record(frozen=True, eq=False)
class RefusedNode:
    """As `Overwritten`, with the nodes of the inputs."""

    message: str
    outputs: frozenset[int]
    inputs: Sequence[Node]

    def among(self, inputs: Sequence[Node], needs_grad: Sequence[bool]) -> Overwritten:
        wanted = [node for node, needed in zip(inputs, needs_grad) if needed]
        edges = frozenset(wanted.index(one) for one in self.inputs if one in wanted)
        return Overwritten(self.message, self.outputs, edges)


def recorded(leaves: Sequence[Any]) -> dict[int, GradNode]:
    """The tape's nodes of results, by position."""
    tensors = {position: one for position, one in enumerate(leaves) if isinstance(one, Tensor)}
    nodes = {position: one.grad_fn for position, one in tensors.items() if one.requires_grad}
    return {position: node for position, node in nodes.items() if node is not None}


def results_without(leaves: Sequence[Any]) -> dict[int, str]:
    """The results from which no way leads to a leaf but through nodes whose backward is an error."""
    gone = {}
    for position, node in recorded(leaves).items():
        broken = [one for one in targets_behind([node]).nodes if one.refusal()]
        ends = {(id(one), number) for one in broken for number in range(one.outputs)}
        if broken and (node in broken or not targets_behind([node], ends=ends).leaves):
            gone[position] = broken[-1].refusal()
    return gone


def refused_nodes(
    leaves: Sequence[Any], gone: Mapping[int, str], stand_ins: Mapping[int, Node]
) -> list[RefusedNode]:
    """The nodes behind the other results whose backward is an error.

    Args:
        stand_ins: by identity, the input nodes of what stands for inputs.
    """
    found: dict[GradNode, list[int]] = {}
    for position, node in recorded(leaves).items():
        for one in targets_behind([node]).nodes if position not in gone else ():
            if one.refusal():
                found.setdefault(one, []).append(position)
    return [
        RefusedNode(
            node.refusal(),
            frozenset(positions),
            [stand_ins[id(leaf)] for leaf in targets_behind([node]).leaves if id(leaf) in stand_ins],
        )
        for node, positions in found.items()
    ]
