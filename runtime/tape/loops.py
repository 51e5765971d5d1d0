"""Loops of the graph on the tape: one node for all results of a loop, whose backward is its reverse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...tracer.errors import GraphError
from ...tracer.graph import Graph, Node, make_input, make_node
from ...tracer.interpret import evaluate_graph
from ...tracer.loop import LoopNode
from ...tracer.operator import Operator, Value
from ...tracer.ops.control import loop, loop_result, ruled
from ...tracer.origin import backward_of
from ...tracer.trace import current_trace
from ..values.modes import is_recording
from ..values.nodes import Edge, GradNode, edge_of, tensor_at
from ..values.tensor import Tensor, make
from ..values.value_kinds import Auxiliary
from .apply import apply, cut_off
from .bodies import as_tensor
from .ruled import result_of_ruled


class LoopResults(Value):
    """All results of a loop on tensors; the operator `loop_result` picks one."""

    __slots__ = ("tensors",)
    rank = 3

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.tensors = tensors

    @classmethod
    def apply(cls, operator: Operator, operands: tuple[Any, ...], attributes: Mapping[str, Any]) -> Tensor:
        if operator is not loop_result:
            raise GraphError(f"{operator.name} of a loop with several results")
        return operands[0].tensors[attributes["index"]]


def apply_loop(operands: Sequence[Any], attributes: Mapping[str, Any]) -> LoopResults:
    """A loop on traced tensors: a node of the graph, and one of the tape if an operand requires grad."""
    trace = current_trace()
    values = [one.payload if isinstance(one, Tensor) else one for one in operands]
    nodes = tuple(one if isinstance(one, Node) else trace.capture(one) for one in values)
    made = LoopNode(make_node(loop, nodes, attributes, name=""))
    tensors = [make(cut_off(node), Auxiliary) for node in made.results]
    edges = [edge_of(one) if isinstance(one, Tensor) else None for one in operands]
    if is_recording() and any(edge is not None for edge in edges):
        from ...codegen.derivatives.reverse import active_results  # not at start

        active = active_results(made, {node for node, edge in zip(nodes, edges) if edge is not None})
        grad_node = LoopBackward(made, [one._value for one in tensors], edges)
        for number in active:
            tensors[number]._grad_fn = grad_node
            tensors[number]._output_nr = number
            tensors[number]._requires_grad = True
    return LoopResults(tensors)


class LoopBackward(GradNode):
    """The tape's node of a loop in a trace."""

    __slots__ = ("loop", "outputs", "results")
    is_in_graph = True

    def __init__(self, made: LoopNode, results: Sequence[Node], edges: Sequence[Edge | None]) -> None:
        super().__init__(edges)
        self.loop = made
        self.results = results
        self.outputs = len(results)

    def value_of(self, number: int) -> Node:
        return self.results[number]

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        from ...codegen.derivatives.reverse import pull_back_loop  # not at start

        given = {index: one for index, one in enumerate(cotangents) if one is not None}
        with backward_of(self.loop.node.origin, "loop"):
            if create_graph:
                found: dict[int, Any] = self._pull_recorded(given, wanted)
            else:
                trace = current_trace()
                nodes = {
                    index: one if isinstance(one, Node) else trace.capture(one)
                    for index, one in given.items()
                }
                found = pull_back_loop(self.loop, nodes, self._active(self.loop, wanted))
        return [found.get(position) if asked else None for position, asked in enumerate(wanted)]

    def _active(self, made: LoopNode, wanted: Sequence[bool]) -> set[Node]:
        return {node for node, asked in zip(made.node.operands, wanted) if asked}

    def _pull_recorded(self, given: Mapping[int, Tensor], wanted: Sequence[bool]) -> dict[int, Tensor]:
        """The reverse as a graph of its own, applied to tensors: so it is on the tape as well."""
        from ...codegen.derivatives.reverse import pull_back_loop  # not at start

        operands = self.loop.node.operands
        inputs = tuple(make_input(node.spec, node.name, node.origin) for node in operands)
        made = LoopNode(make_node(loop, inputs, self.loop.node.attributes, origin=self.loop.node.origin))
        slots = {index: make_input(self.results[index].spec, "") for index in given}
        found = pull_back_loop(made, slots, self._active(made, wanted))
        graph = Graph("reverse", (*inputs, *slots.values()), tuple(found.values()))
        tensors = [tensor_at(node, edge, [0, None]) for node, edge in zip(operands, self.edges)]
        values = evaluate_graph(graph, [*tensors, *given.values()])
        return dict(zip(found, map(as_tensor, values)))


def apply_operator(cls: type, operator: Operator, operands: tuple[Any, ...], attributes: Any) -> Any:
    """An operator that is called on tensors."""
    if operator is loop:
        return apply_loop(operands, attributes)
    if operator is ruled:
        return result_of_ruled(operands, **attributes)
    return apply(operator, *operands, **attributes)


__all__ = ["LoopBackward", "LoopResults", "apply_loop", "apply_operator"]
