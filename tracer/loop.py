"""Loop nodes: made from a body, and read again.

A body is a graph. Its inputs are the carries, then one row of each stacked operand, then constants (values
that no step changes); its outputs the carries after the step, then what is stacked.

    loop = make_loop(body, inits=[h], stacked=[xs], constants=[w], length=len(xs))
    last, rows = loop.results

The number of steps is `length`, or a value: `trips`, which is the last operand and no input of the body. Made
with `goes_on`, a loop runs as long as its first carry is true; its second carry counts the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .graph import Graph, Node, make_node, rebuild, with_operands
from .ops.control import ALL, GIVEN, WHILE, Body, loop, loop_result
from .origin import UNKNOWN, Origin
from .records import record
from .spec import Spec


@record(frozen=True, eq=False)
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

    @property
    def trips(self) -> Node | None:
        """The value that is the number of steps, if the loop has one."""
        return self.node.operands[-1] if self.node.attributes["trips"] == GIVEN else None

    @property
    def goes_on(self) -> bool:
        """Whether it runs as long as its first carry is true."""
        return self.node.attributes["trips"] == WHILE

    @property
    def is_dynamic(self) -> bool:
        """Whether only data tells the number of steps; it may be none."""
        return self.node.attributes["trips"] != ALL

    @property
    def is_choice(self) -> bool:
        """Whether it has one step or none, which a truth value decides."""
        return self.trips is not None and self.length == 1

    @property
    def recompute(self) -> bool:
        """Whether its reverse computes each step again."""
        return self.node.attributes["recompute"]

    def split(self, values: Sequence[Node]) -> tuple[Sequence[Node], Sequence[Node], Sequence[Node]]:
        """Operands or body inputs as (carries, stacked, constants)."""
        return (
            values[: self.carries],
            values[self.carries : self.constants_from],
            values[self.constants_from : len(self.body.inputs)],
        )

    def result(self, index: int, name: str | None = None) -> Node:
        """The node of one result: of a carry at the end, or of a stack; named as in the body unless given."""
        output = self.body.outputs[index]
        attributes = {"index": index, "spec": self.result_spec(index)}
        name = output.name if name is None else name
        return make_node(loop_result, (self.node,), attributes, origin=output.origin, name=name)

    def result_spec(self, index: int) -> Spec:
        spec = self.body.outputs[index].spec
        return spec if index < self.carries else spec.with_shape((self.length, *spec.shape))

    @property
    def results(self) -> list[Node]:
        return [self.result(index) for index in range(len(self.body.outputs))]

    def with_body(self, graph: Graph, extends: Body | None = None) -> LoopNode:
        """The same loop around another body with the same inputs and carries."""
        attributes = {**self.node.attributes, "body": Body(graph, extends)}
        return LoopNode(make_node(loop, self.node.operands, attributes, origin=self.node.origin, name=""))

    def again(
        self, body: Graph, inits: Sequence[Node], stacked: Sequence[Node], constants: Sequence[Node]
    ) -> LoopNode:
        """A loop over the same steps that does something else."""
        return make_loop(
            body,
            inits,
            stacked,
            constants,
            self.length,
            self.node.origin,
            self.backwards,
            self.trips,
            self.goes_on,
            self.recompute,
        )

    def counted(self) -> LoopNode:
        """A loop that goes on while something is true as one whose number of steps is known before."""
        if not self.goes_on:
            return self
        inits, _, constants = self.split(self.node.operands)
        attributes = {**self.node.attributes, "trips": GIVEN}
        operands = (*inits, *constants, self.result(1))
        return LoopNode(make_node(loop, operands, attributes, origin=self.node.origin, name=""))


def attributes_of_loop(
    body: Graph,
    length: int,
    carries: int,
    stacked: int = 0,
    backwards: bool = False,
    trips: str = ALL,
    recompute: bool = False,
) -> dict[str, Any]:
    """The attributes of a loop node; `trips` is ALL, GIVEN or WHILE."""
    return {
        "body": Body(body),
        "length": length,
        "carries": carries,
        "stacked": stacked,
        "backwards": backwards,
        "trips": trips,
        "recompute": recompute,
    }


def make_loop(
    body: Graph,
    inits: Sequence[Node],
    stacked: Sequence[Node],
    constants: Sequence[Node],
    length: int,
    origin: Origin = UNKNOWN,
    backwards: bool = False,
    trips: Node | None = None,
    goes_on: bool = False,
    recompute: bool = False,
) -> LoopNode:
    """The loop that runs `body` `length` times; `backwards` from the last rows to the first.

    Args:
        length: the number of steps, or the most that there can be; UNKNOWN_LENGTH where data tells it.
        trips: the number of steps, a 0-d integer or bool.
        goes_on: the first carry says whether there is another step, the second counts them.
        recompute: its reverse is given the inputs of each step, and nothing else.

    Raises ShapeError where operands do not fit the body.
    """
    kind = WHILE if goes_on else ALL if trips is None else GIVEN
    attributes = attributes_of_loop(body, length, len(inits), len(stacked), backwards, kind, recompute)
    operands = (*inits, *stacked, *constants, *(() if trips is None else (trips,)))
    return LoopNode(make_node(loop, operands, attributes, origin=origin, name=""))


def is_loop(node: Node) -> bool:
    return node.operator is loop


def has_loops(graph: Graph) -> bool:
    return any(map(is_loop, graph.nodes))


def change_loops(graph: Graph, change: Callable[[LoopNode], LoopNode]) -> Graph:
    """The graph with each loop replaced by one that has the same results."""

    def changed(node: Node, operands: tuple[Node, ...]) -> Node:
        node = with_operands(node, operands)
        return change(LoopNode(node)).node if is_loop(node) else node

    return rebuild(graph, changed) if has_loops(graph) else graph


def replace_results(graph: Graph, find: Callable[[LoopNode], Sequence[Node] | None]) -> Graph:
    """The graph with the results of loops replaced by the nodes that `find` gives, where it gives any."""
    every: dict[Node, Sequence[Node]] = {}

    def changed(node: Node, operands: tuple[Node, ...]) -> Node:
        if node.operator is loop_result and node.operands[0] in every:
            return every[node.operands[0]][node.attributes["index"]]
        new = with_operands(node, operands)
        if is_loop(new) and (results := find(LoopNode(new))) is not None:
            every[node] = results
        return new

    return rebuild(graph, changed) if has_loops(graph) else graph


def loops_of(nodes: Iterable[Node]) -> list[LoopNode]:
    return [LoopNode(node) for node in nodes if is_loop(node)]
