"""Loops of the graph on the tape: one node for all results of a loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...tracer.errors import GraphError
from ...tracer.graph import Node, make_node
from ...tracer.loop import LoopNode
from ...tracer.operator import Operator, Value
from ...tracer.ops.control import loop, loop_result, ruled
from ...tracer.trace import current_trace
from ..values.modes import is_recording
from ..values.nodes import edge_of
from ..values.tensor import Tensor, make
from ..values.value_kinds import Auxiliary
from .apply import apply, cut_off
from .complex_ends import apart, is_of_complex, joined
from .derivatives import GraphBackward
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
    """A loop on traced tensors: a node of the graph, and one of the tape if an operand requires grad.

    One of complex values is a loop of their parts.
    """
    if is_of_complex(attributes["body"]):
        from ...codegen.rewriting.split_complex import loop_of_parts  # not at start

        own, results = loop_of_parts(attributes)
        return LoopResults(joined(apply_loop(apart(operands), own).tensors, results))
    trace = current_trace()
    values = [one.payload if isinstance(one, Tensor) else one for one in operands]
    nodes = tuple(one if isinstance(one, Node) else trace.capture(one) for one in values)
    made = LoopNode(make_node(loop, nodes, attributes, name=""))
    tensors = [make(cut_off(node), Auxiliary) for node in made.results]
    edges = [edge_of(one) if isinstance(one, Tensor) else None for one in operands]
    if is_recording() and any(edge is not None for edge in edges):
        from ...codegen.derivatives.reverse import active_results  # not at start

        active = active_results(made, {node for node, edge in zip(nodes, edges) if edge is not None})
        grad_node = LoopBackward([one._value for one in tensors], nodes, edges)
        for number in active:
            tensors[number]._grad_fn = grad_node
            tensors[number]._output_nr = number
            tensors[number]._requires_grad = True
    return LoopResults(tensors)


class LoopBackward(GraphBackward):
    """The tape's node of a loop in a trace."""

    __slots__ = ()


def apply_operator(cls: type, operator: Operator, operands: tuple[Any, ...], attributes: Any) -> Any:
    """An operator that is called on tensors."""
    if operator is loop:
        return apply_loop(operands, attributes)
    if operator is ruled:
        return result_of_ruled(operands, **attributes)
    return apply(operator, *operands, **attributes)


__all__ = ["LoopBackward", "LoopResults", "apply_loop", "apply_operator"]
