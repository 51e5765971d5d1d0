"""Tangents walk the tape from the arguments to the outputs: a derivative along directions in one sweep.

A Wengert list is run forwards as well as backwards (A. Griewank and A. Walther, Evaluating Derivatives, SIAM
2008, section 3.1). The tape knows rules that pull cotangents back. Of an operator that works element by
element such a rule multiplies with the derivative of each element, and so pushes a tangent forward as it is;
an operator that is linear is applied to the tangent itself. Where another operator is on the way, nothing is
said, and the pull-back is pulled back (`transforms/inputs.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracer.array_rules import on_arrays
from ...tracer.operator import EACH, TOGETHER
from ...tracer.quiet import IGNORED, floating_errors
from ..values.nodes import Behind, GradNode, place_of
from ..values.operator_nodes import OperatorNode
from ..values.tensor import Tensor
from .anomaly import is_anomaly_enabled
from .direct_parts import PartBackward

ndarray = np.ndarray
Tangents = Sequence[Any]


def pushed_forward(
    behind: Behind, outputs: Sequence[Tensor], inputs: Sequence[Tensor], tangents: Sequence[np.ndarray]
) -> list[Any] | None:
    """The derivative of each output along tangents of the inputs, which are leaves: an array, or None for 0.

    None in the place of all where a node is on the way that pushes nothing. Outside of traces.

    Args:
        behind: the nodes and leaves behind the outputs.
    """
    if is_anomaly_enabled() or any(one.dtype.kind != "f" for one in tangents):
        return None
    arrived: dict[int, Any] = {}
    for leaf, tangent in zip(inputs, tangents):
        if leaf._grad_fn is not None or leaf._hooks is not None:
            return None
        arrived[id(leaf)] = tangent
    errors = floating_errors.set(IGNORED)
    try:
        for node in behind.nodes:
            found: list[Any] = []
            is_reached = False
            for edge in node.edges:
                one: Any = None if edge is None else arrived.get(id(edge[0]))
                found.append(one)
                is_reached = is_reached or one is not None
            if is_reached:
                arrived[id(node)] = value = _pushed(node, found)
                if value is None:
                    return None
    finally:
        floating_errors.reset(errors)
    return [arrived.get(id(place_of(output)[0])) if output._requires_grad else None for output in outputs]


def _pushed(node: GradNode, tangents: Tangents) -> Any:
    """The tangent of a node's output, given those of its operands, None for 0; None if that is not known."""
    if node.hooks is not None:
        return None
    if type(node) is OperatorNode:
        if node.versions:
            node.require_saved()
        operator = node.plan.operator
        if operator.linear == TOGETHER:
            return _of_sum(node, tangents)
        if operator.linear == EACH:
            return _of_product(node, tangents)
        return _of_elements(node, tangents) if operator.family == "elementwise" else None
    if isinstance(node, PartBackward):
        return np.asarray(tangents[0])[node.index]
    return None


def _of_elements(node: OperatorNode, tangents: Tangents) -> Any:
    plan, shape, total = node.plan, None, None
    if node.shapes is not None:
        if len(node.shapes) == len(plan.positions):
            return None  # nobody knows the shape of the result
        shape = node.shapes[-1]
    for position, tangent in enumerate(tangents):
        if tangent is None:
            continue
        if shape is not None and tangent.shape != shape:
            tangent = np.broadcast_to(tangent, shape)
        pull = plan.pull
        if len(plan.positions) > 1:
            pull = plan.operator.pulling((position,), plan.count, on_arrays, True)
        value: Any = pull(tangent, node)[position]
        if value.dtype.kind != "f":
            return None
        total = value if total is None else total + value
    return total


def _of_sum(node: OperatorNode, tangents: Tangents) -> Any:
    operands = list(node.operands or [None] * len(tangents))
    specs = node.specs[0] if node.specs is not None else ()
    operator = node.plan.operator
    for position, tangent in enumerate(tangents):
        if tangent is not None:
            operands[position] = np.asarray(tangent)
        elif operator.rule_for(position) is not None:
            if not specs:
                return None
            operands[position] = np.zeros(specs[position].shape, specs[position].dtype)
    value = operator.evaluate(*operands, **node.attributes)
    return value if value.dtype.kind == "f" else None


def _of_product(node: OperatorNode, tangents: Tangents) -> Any:
    total = None
    for position, tangent in enumerate(tangents):
        if tangent is not None:
            operands = list(node.operands or ())
            operands[position] = np.asarray(tangent)
            value = node.plan.operator.evaluate(*operands, **node.attributes)
            if value.dtype.kind != "f":
                return None
            total = value if total is None else total + value
    return total
