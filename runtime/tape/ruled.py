"""Graphs with a rule of their own, called in a trace: one node of the tape for all results of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ...tracer.graph import Graph, Node, make_input, make_node
from ...tracer.interpret import evaluate_graph
from ...tracer.ops.control import Body, ruled
from ...tracer.origin import backward_of
from ...tracer.trace import current_trace
from ..values.modes import is_recording
from ..values.nodes import Edge, GradNode, edge_of, tensor_at
from ..values.tensor import Tensor, make
from ..values.value_kinds import Auxiliary
from .apply import cut_off
from .bodies import as_tensor

_last_call: WeakKeyDictionary[Body, tuple[tuple[Any, ...], list[Tensor]]] = WeakKeyDictionary()
"""By the graph the operands of its last call, and the results, which are asked for one by one."""


def apply_ruled(operands: Sequence[Any], body: Body) -> list[Tensor]:
    """All results of a call: nodes of the graph, and one node of the tape if an operand requires grad."""
    trace = current_trace()
    values = [one.payload if isinstance(one, Tensor) else one for one in operands]
    nodes = tuple(one if isinstance(one, Node) else trace.capture(one) for one in values)
    made = [_result(nodes, body, index) for index in range(len(body.graph.outputs))]
    tensors = [make(cut_off(node), Auxiliary) for node in made]
    edges = [edge_of(one) if isinstance(one, Tensor) else None for one in operands]
    if is_recording() and any(edge is not None for edge in edges):
        grad_node = RuledNodeBackward(made, [one._value for one in tensors], edges)
        for number, one in enumerate(tensors):
            if one._value.dtype.kind == "f":
                one._grad_fn, one._output_nr, one._requires_grad = grad_node, number, True
    return tensors


def result_of_ruled(operands: tuple[Any, ...], body: Body, index: int) -> Tensor:
    """One result of a call; those of the same operands are of one call."""
    known = _last_call.get(body)
    if known is None or len(known[0]) != len(operands) or any(a is not b for a, b in zip(known[0], operands)):
        known = _last_call[body] = (operands, apply_ruled(operands, body))
    return known[1][index]


def _result(operands: tuple[Node, ...], body: Body, index: int) -> Node:
    output = body.graph.outputs[index]
    return make_node(ruled, operands, {"body": body, "index": index}, name=output.name)


class RuledNodeBackward(GradNode):
    """The tape's node of such a call."""

    __slots__ = ("made", "outputs", "results")
    is_in_graph = True

    def __init__(self, made: Sequence[Node], results: Sequence[Node], edges: Sequence[Edge | None]) -> None:
        super().__init__(edges)
        self.made = made
        self.results = results
        self.outputs = len(results)

    def name(self) -> str:
        return f"{self.made[0].attributes['body'].graph.name}Backward"

    def value_of(self, number: int) -> Node:
        return self.results[number]

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        from ...codegen.derivatives.ruled import pull_back_ruled  # not at start

        given = {index: one for index, one in enumerate(cotangents) if one is not None}
        call = self.made[0]
        with backward_of(call.origin, self.name()):
            if create_graph:
                found: dict[int, Any] = self._pull_recorded(given, wanted)
            else:
                trace = current_trace()
                nodes = {
                    index: one if isinstance(one, Node) else trace.capture(one)
                    for index, one in given.items()
                }
                found = pull_back_ruled(call, nodes, _asked(call, wanted))
        return [found.get(position) if asked else None for position, asked in enumerate(wanted)]

    def _pull_recorded(self, given: Mapping[int, Tensor], wanted: Sequence[bool]) -> dict[int, Tensor]:
        """The rule as a graph of its own, applied to tensors: so it is on the tape as well."""
        from ...codegen.derivatives.ruled import pull_back_ruled  # not at start

        operands = self.made[0].operands
        body: Body = self.made[0].attributes["body"]
        inputs = tuple(make_input(node.spec, node.name, node.origin) for node in operands)
        results = [make_input(node.spec, node.name, node.origin) for node in self.made]
        again = _result(inputs, body, 0)
        slots = {index: make_input(self.results[index].spec, "") for index in given}
        found = pull_back_ruled(again, slots, _asked(again, wanted), results)
        graph = Graph("reverse", (*inputs, *results, *slots.values()), tuple(found.values()))
        tensors = [tensor_at(node, edge, [0, None]) for node, edge in zip(operands, self.edges)]
        own = [tensor_at(node, (self, number), [0, None]) for number, node in enumerate(self.results)]
        values = evaluate_graph(graph, [*tensors, *own, *given.values()])
        return dict(zip(found, map(as_tensor, values)))


def _asked(call: Node, wanted: Sequence[bool]) -> set[Node]:
    return {node for node, asked in zip(call.operands, wanted) if asked}
