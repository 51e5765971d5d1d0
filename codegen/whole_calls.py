"""Functions that generated code calls with whole rows or whole matrices: which one an operator stands for."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from pullback.tracer.graph import Node
from pullback.tracer.operator import WholeCall

from . import decompositions, matrices, ordering

MODULES = (ordering, matrices, decompositions)
FUNCTIONS: tuple[Callable[..., None], ...] = tuple(
    function for module in MODULES for function in module.FUNCTIONS
)
NAMES_OF_MODULES = {
    module.__name__: {function.__name__ for function in module.FUNCTIONS} for module in MODULES
}
BY_NAME = {function.__name__: function for function in FUNCTIONS}
MULTIPLYING = frozenset(function.__name__ for function in matrices.FUNCTIONS)
"""Functions that call `gemm`."""


def takes_wholes(node: Node) -> bool:
    return node.operator.call is not None


def call_of(node: Node) -> WholeCall:
    """What the operator's declaration says of its calls."""
    assert node.operator.call is not None
    return node.operator.call


def operations_of_call(node: Node) -> int:
    return node.spec.size * call_of(node).steps(node.operands[0].shape[-1])


def function_of(node: Node) -> FunctionType:
    """The function that is called for a node."""
    call = call_of(node)
    found: Any = BY_NAME[call.functions[call.choose(**node.attributes)]]
    return found
