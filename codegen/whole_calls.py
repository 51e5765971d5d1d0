"""Functions that generated code calls with whole rows or whole matrices: which one an operator stands for."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from pullback.tracer.graph import Node
from pullback.tracer.lapack import SMALL
from pullback.tracer.operator import WholeCall

from . import (
    cholesky_gradients,
    complex_decompositions,
    complex_matrices,
    decompositions,
    exponentials,
    general_eigenvalues,
    matrices,
    ordering,
)
from .ir.statements import Library, Section

WITH_LOOPS = (decompositions, general_eigenvalues, exponentials)
MODULES = (
    ordering, matrices, complex_matrices, cholesky_gradients, *WITH_LOOPS, complex_decompositions,
)  # fmt: skip
FUNCTIONS: tuple[Callable[..., None], ...] = tuple(
    function for module in MODULES for function in module.FUNCTIONS
)
NAMES_OF_MODULES = {
    module.__name__: {function.__name__ for function in module.FUNCTIONS} for module in MODULES
}
BY_NAME = {function.__name__: function for function in FUNCTIONS}
MULTIPLYING = frozenset(BY_NAME).difference(one.__name__ for one in ordering.FUNCTIONS)
"""Functions that call BLAS or LAPACK ..."""
BY_LOOPS = frozenset(one.__name__ for module in WITH_LOOPS for one in module.FUNCTIONS)
"""... and those of them that don't for small matrices, or for so small ones that these take no threads."""


def calls_blas(call: Library) -> bool:
    """Whether BLAS may want threads in a call."""
    (first, *_) = (one for one in call.operands if isinstance(one, Section))
    is_small = call.function in BY_LOOPS and first.buffer.dims[-1] <= SMALL
    return call.function == "gemm" or (call.function in MULTIPLYING and not is_small)


def takes_wholes(node: Node) -> bool:
    return node.operator.call is not None


def call_of(node: Node) -> WholeCall:
    """What the operator's declaration says of its calls."""
    assert node.operator.call is not None
    return node.operator.call


def operations_of_call(node: Node) -> int:
    call = call_of(node)
    return node.spec.size * call.steps(node.operands[0].shape[-max(call.dims - 1, 1)])


def function_of(node: Node) -> FunctionType:
    """The function that is called for a node."""
    call = call_of(node)
    found: Any = BY_NAME[call.functions[call.choose(node.operands[0].spec, **node.attributes)]]
    return found
