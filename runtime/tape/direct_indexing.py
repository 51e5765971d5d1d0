"""The short way of an operator that reads an array at positions, or writes zeros there: see `direct.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.operator import Operator
from ...tracer.trace import innermost
from ..values.modes import is_recording
from ..values.nodes import observers
from ..values.operator_nodes import OperatorNode, Plan, specs_of
from ..values.saved import saved_values
from ..values.tensor import Tensor, TorchTensor, make
from ..values.value_kinds import NumpyTensor

ndarray = np.ndarray


def is_at_positions(operator: Operator) -> bool:
    """Whether its operands are an array and arrays of positions."""
    return operator.operands[1:] == ("*indices",)


def direct_at(operator: Operator, grad_name: str | None = None) -> Callable[..., Any]:
    """The short way of an operator on a floating array and arrays of positions.

    It takes the array as a Tensor, positions as Tensors or arrays, and the operator's attributes by name;
    what it is not for is NotImplemented.
    """
    evaluate, has_rule = operator.evaluate, operator.rule_for(0) is not None
    plans: dict[int, Plan] = {}

    def function(input: Any, *indices: Any, **attributes: Any) -> Any:
        kind = type(input)
        if (kind is not TorchTensor and kind is not NumpyTensor) or innermost() is not None:
            return NotImplemented
        input.refresh()
        value = input._value
        if type(value) is not ndarray or value.dtype.kind != "f":
            return NotImplemented
        values = [value]
        for one in indices:
            if isinstance(one, Tensor):
                if type(one) is TorchTensor:
                    kind = TorchTensor
                one.refresh()
                one = one._value
            if type(one) is not ndarray:
                return NotImplemented
            values.append(one)
        try:
            result = evaluate(*values, **attributes)
        except Exception:  # which the general way explains
            return NotImplemented
        if type(result) is not ndarray or not result.ndim:  # an array, or a number, by who asks
            return NotImplemented
        tensor = make(result, kind)
        if not (has_rule and input._requires_grad and is_recording()):
            return tensor
        plan = plans.get(len(values))
        if plan is None:
            name = grad_name or f"{operator.grad_fn}Backward0"
            plan = plans[len(values)] = Plan(operator, 1, len(values), name)
        edges = ((input._grad_fn or input, input._output_nr), *(None,) * len(indices))
        node = plan.node(attributes, edges)
        node.shapes = (value.shape,)
        if plan.saves_specs:
            node.specs = specs_of(values, result)
        versions: tuple[Any, ...] = ()
        noted = saved_values()
        for place, one in enumerate(indices, 1):
            if isinstance(one, Tensor):
                versions += (place, one._cell, one._cell[0])
            elif noted is not None:
                values[place] = noted.of_array(one)
        node.operands = [None, *values[1:]]
        tensor._grad_fn = node
        tensor._requires_grad = True
        if versions or observers:
            note(node, versions)
        return tensor

    return function


def note(node: OperatorNode, versions: tuple[Any, ...]) -> None:
    """Let those know of a node that want to: writes inside of a transform, and whoever observes."""
    if versions:
        node.versions = versions
        noted = saved_values()
        if noted is not None:
            noted.note(node)
    for observe in observers:
        observe(node)
