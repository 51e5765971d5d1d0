"""The short way of an operator that puts any number of operands beside each other: see `direct.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.operator import Operator
from ...tracer.trace import innermost
from ..values.modes import is_recording
from ..values.nodes import observers
from ..values.operator_nodes import Plan, specs_of
from ..values.tensor import Tensor, TorchTensor, make
from ..values.value_kinds import NumpyScalar, NumpyTensor

ndarray = np.ndarray


def direct_joined(operator: Operator, grad_name: str) -> Callable[..., Any]:
    """The short way of an operator that puts any number of operands beside each other, and saves no values.

    It takes Tensors, arrays among them, and the operator's attributes by name; what it is not for is
    NotImplemented.
    """
    evaluate = operator.evaluate
    plans: dict[tuple[int, int], Plan] = {}

    def function(operands: Any, **attributes: Any) -> Any:
        if innermost() is not None:
            return NotImplemented
        kind: type[Tensor] | None = None
        dtype, mask, bit, values = None, 0, 1, []
        for operand in operands:
            value, own = operand, type(operand)
            if own is TorchTensor or own is NumpyTensor or own is NumpyScalar:
                operand.refresh()
                value = operand._value
                if kind is None or own is TorchTensor:
                    kind = own
                if operand._requires_grad:
                    mask |= bit
            if type(value) is not ndarray:
                return NotImplemented
            if dtype is None:
                dtype = value.dtype
            elif value.dtype is not dtype and value.dtype != dtype:
                return NotImplemented
            values.append(value)
            bit <<= 1
        if dtype is None or kind is None or dtype.kind != "f":
            return NotImplemented
        try:
            result = evaluate(*values, **attributes)
        except Exception:  # which the general way explains
            return NotImplemented
        tensor = make(result, TorchTensor if kind is TorchTensor else NumpyTensor)
        if not (mask and is_recording()):
            return tensor
        count = len(values)
        plan = plans.get((mask, count))
        if plan is None:
            plan = plans[mask, count] = Plan(operator, mask, count, grad_name)
        tensor._grad_fn = node = plan.node(
            attributes,
            [
                (operand._grad_fn or operand, operand._output_nr) if mask >> position & 1 else None
                for position, operand in enumerate(operands)
            ],
        )
        tensor._requires_grad = True
        node.shapes = [values[position].shape for position in plan.positions]
        if plan.saves_specs:
            node.specs = specs_of(values, result)
        for observe in observers:
            observe(node)
        return tensor

    return function
