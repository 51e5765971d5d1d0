"""Functions that generated code calls with whole rows or whole matrices: which one an operator stands for."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from pullback.tracer.graph import Node

from . import decompositions, matrices, ordering

MODULES = (ordering, matrices, decompositions)
FUNCTIONS: tuple[Callable[..., None], ...] = tuple(
    function for module in MODULES for function in module.FUNCTIONS
)
NAMES_OF_MODULES = {
    module.__name__: {function.__name__ for function in module.FUNCTIONS} for module in MODULES
}
MULTIPLYING = frozenset(function.__name__ for function in matrices.FUNCTIONS)
"""Functions that call `gemm`."""
SAYING_WHETHER = frozenset({"cholesky_factor", "eliminated_solution"})
"""Operators whose functions say whether there is a result."""
DIMS = {"ordering": 1, "matrix": 2, "decomposition": 2}
"""By family of operators: how many of the last dimensions a call takes."""


def takes_wholes(node: Node) -> bool:
    return node.operator.family in DIMS


def operations_of_call(node: Node) -> int:
    extent = node.operands[0].shape[-1]
    return node.spec.size * (max(extent, 2).bit_length() if node.operator.family == "ordering" else extent)


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
            "eigh": decompositions.eigen_symmetric,
            "svd": decompositions.singular,
            "qr": decompositions.orthogonal_triangular,
            "row_exchanges": decompositions.exchanged_rows,
            "lu": decompositions.triangles,
            "exponentials": decompositions.exponential,
        }[name]
    return found
