"""Functions that generated code calls with whole rows or whole matrices: which one an operator stands for."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from pullback.tracer.graph import Node

from . import matrices, ordering

FUNCTIONS: tuple[Callable[..., None], ...] = (*ordering.FUNCTIONS, *matrices.FUNCTIONS)
NAMES_OF_MODULES = {
    module.__name__: {function.__name__ for function in module.FUNCTIONS} for module in (ordering, matrices)
}
MULTIPLYING = frozenset(function.__name__ for function in matrices.FUNCTIONS)
"""Functions that call `gemm`."""
DIMS = {"ordering": 1, "matrix": 2}
"""By family of operators: how many of the last dimensions a call takes."""


def takes_wholes(node: Node) -> bool:
    return node.operator.family in DIMS


def operations_of_call(node: Node) -> int:
    extent = node.operands[0].shape[-1]
    return node.spec.size * (extent if node.operator.family == "matrix" else max(extent, 2).bit_length())


def function_of(node: Node) -> FunctionType:
    """The function for an operator; a `transposed` triangle is handed to it transposed."""
    name, attributes = node.operator.name, node.attributes
    found: Any
    if name == "triangular_solution":
        found = (
            matrices.solve_lower if attributes["lower"] != attributes["transposed"] else matrices.solve_upper
        )
    elif name == "eliminated_solution":
        found = (
            matrices.solve_eliminated_transposed if attributes["transposed"] else matrices.solve_eliminated
        )
    else:
        found = {
            "sorted_positions": ordering.sort_positions,
            "cholesky_factor": matrices.factor_cholesky,
            "eliminated": matrices.eliminate,
        }[name]
    return found
