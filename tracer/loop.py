"""Loop nodes: made from a body, and read again.

A body is a graph. Its inputs are the carries, then one row of each stacked operand, then constants (values
that no step changes); its outputs the carries after the step, then what is stacked.

    carries, stacks = make_loop(body, inits=[h], stacked=[xs], constants=[w], length=len(xs))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .graph import Graph, Node, make_node
from .ops.control import Body, loop, loop_result
from .origin import UNKNOWN, Origin


@dataclass(frozen=True, eq=False)
class LoopNode:
    """A node of the operator `loop`, with names for the parts of its operands and of its body."""

    node: Node

    @property
    def body(self) -> Graph:
        return self.node.attributes["body"].graph

    @property
    def length(self) -> int:
        return self.node.attributes["length"]

    @property
    def backwards(self) -> bool:
        return self.node.attributes["backwards"]

    @property
    def carries(self) -> int:
        return self.node.attributes["carries"]

    @property
    def constants_from(self) -> int:
        """The position of the first constant among the operands."""
        return self.carries + self.node.attributes["stacked"]

    def split(self, values: Sequence[Node]) -> tuple[Sequence[Node], Sequence[Node], Sequence[Node]]:
        """Operands or body inputs as (carries, stacked, constants)."""
        return (
            values[: self.carries],
            values[self.carries : self.constants_from],
            values[self.constants_from :],
        )

    def result(self, index: int) -> Node:
        """The node of one result: of a carry at the end, or of a stack."""
        output = self.body.outputs[index]
        spec = output.spec
        if index >= self.carries:
            spec = spec.with_shape((self.length, *spec.shape))
        attributes = {"index": index, "spec": spec}
        return make_node(loop_result, (self.node,), attributes, origin=output.origin, name=output.name)

    @property
    def results(self) -> list[Node]:
        return [self.result(index) for index in range(len(self.body.outputs))]

    def with_body(self, graph: Graph, extends: Body | None = None) -> LoopNode:
        """The same loop around another body with the same inputs and carries."""
        attributes = {**self.node.attributes, "body": Body(graph, extends)}
        return LoopNode(make_node(loop, self.node.operands, attributes, origin=self.node.origin, name=""))


def make_loop(
    body: Graph,
    inits: Sequence[Node],
    stacked: Sequence[Node],
    constants: Sequence[Node],
    length: int,
    origin: Origin = UNKNOWN,
    backwards: bool = False,
) -> LoopNode:
    """The loop that runs `body` `length` times; `backwards` from the last rows to the first.

    Raises ShapeError where operands do not fit the body.
    """
    attributes = {
        "body": Body(body),
        "length": length,
        "carries": len(inits),
        "stacked": len(stacked),
        "backwards": backwards,
    }
    operands = (*inits, *stacked, *constants)
    return LoopNode(make_node(loop, operands, attributes, origin=origin, name=""))


def is_loop(node: Node) -> bool:
    return node.operator is loop


def loops_of(nodes: Iterable[Node]) -> list[LoopNode]:
    return [LoopNode(node) for node in nodes if is_loop(node)]
