"""Graphs with a rule of their own, called in a trace: one node of the tape for all results of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ...tracer.graph import Node, make_node
from ...tracer.ops.control import Body, ruled
from ...tracer.spec import CONTINUOUS
from ...tracer.trace import current_trace
from ..values.modes import is_recording
from ..values.nodes import edge_of
from ..values.tensor import Tensor, make
from ..values.value_kinds import Auxiliary
from .apply import cut_off
from .complex_ends import apart, is_of_complex, joined
from .derivatives import GraphBackward

_last_call: WeakKeyDictionary[Body, tuple[tuple[Any, ...], list[Tensor]]] = WeakKeyDictionary()
"""By the graph the operands of its last call, and the results, which are asked for one by one."""


def apply_ruled(operands: Sequence[Any], body: Body) -> list[Tensor]:
    """All results of a call: nodes of the graph, and one node of the tape if an operand requires grad.

    Of complex values it is a call on their parts.
    """
    if is_of_complex(body):
        from ...codegen.rewriting.split_complex import rule_of_parts  # not at start

        own, results = rule_of_parts(body)
        return joined(apply_ruled(apart(operands), own), results)
    trace = current_trace()
    values = [one.payload if isinstance(one, Tensor) else one for one in operands]
    nodes = tuple(one if isinstance(one, Node) else trace.capture(one) for one in values)
    made = [_result(nodes, body, index) for index in range(len(body.graph.outputs))]
    tensors = [make(cut_off(node), Auxiliary) for node in made]
    edges = [edge_of(one) if isinstance(one, Tensor) else None for one in operands]
    if is_recording() and any(edge is not None for edge in edges):
        grad_node = GraphBackward([one._value for one in tensors], nodes, edges)
        for number, one in enumerate(tensors):
            if one._value.dtype.kind in CONTINUOUS:
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
