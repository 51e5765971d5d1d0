"""Which functions are methods of Tensor, and what Python's operators on tensors call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..tensor import Tensor
from . import (
    activation,
    arithmetic,
    comparison,
    contraction,
    elementwise,
    indexing,
    joining,
    linalg,
    movement,
    ordering,
    parts,
    reduction,
    selection,
    statistics,
    windows,
)  # fmt: skip
from .common import is_operand

Function = Callable[..., Any]

_NO_METHODS = """
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    atleast_1d atleast_2d atleast_3d bilinear broadcast_tensors cat celu chain_matmul column_stack concat
    concatenate corrcoef cosine_similarity cov dstack elu expit gelu getitem glu hardsigmoid hardswish
    hardtanh hstack leaky_relu linalg_norm linear logsigmoid matrix_norm meshgrid mish multi_dot
    normalize one_hot polygamma relu6 row_stack searchsorted selu silu softmin softplus softshrink softsign
    solve_triangular stack
    std_mean tanhshrink tensordot threshold updated var_mean vector_norm vstack where
"""
NO_METHODS = frozenset(_NO_METHODS.split())
"""Functions for which PyTorch has no method, or one with other arguments."""

MODULES: tuple[ModuleType, ...] = (
    elementwise, arithmetic, comparison, reduction, statistics, movement, parts, joining, selection, ordering,
    contraction, linalg, windows, activation,
)  # fmt: skip

BINARY = {
    "add": arithmetic.add, "sub": arithmetic.sub, "mul": arithmetic.mul, "truediv": arithmetic.div,
    "floordiv": arithmetic.floor_divide, "mod": arithmetic.remainder, "pow": arithmetic.pow,
    "matmul": contraction.matmul, "and": comparison.bitwise_and, "or": comparison.bitwise_or,
    "xor": comparison.bitwise_xor,
}  # fmt: skip
COMPARISONS = {
    "eq": comparison.eq, "ne": comparison.ne, "lt": comparison.lt, "le": comparison.le, "gt": comparison.gt,
    "ge": comparison.ge,
}  # fmt: skip
UNARY = {
    "neg": elementwise.neg, "pos": elementwise.positive, "abs": elementwise.abs,
    "invert": elementwise.bitwise_not,
}  # fmt: skip


def _operator(function: Function) -> Function:
    """self (op) other; NotImplemented for what is no operand, so that Python asks the other side."""

    @functools.wraps(function)
    def method(self: Tensor, other: Any) -> Any:
        return function(self, other) if is_operand(other) else NotImplemented

    return method


def _reflected(function: Function) -> Function:
    """other (op) self."""

    @functools.wraps(function)
    def method(self: Tensor, other: Any) -> Any:
        return function(other, self) if is_operand(other) else NotImplemented

    return method


def _where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The tensor's elements where the condition holds, else those of `other`."""
    return comparison.where(condition, self, other)


def _round(self: Tensor, ndigits: int = 0) -> Tensor:
    """What Python's round() gives."""
    return elementwise.round(self, decimals=ndigits)


def _methods() -> dict[str, Function]:
    found = {
        name: getattr(module, name) for module in MODULES for name in module.__all__ if name not in NO_METHODS
    }
    for name, function in (BINARY | COMPARISONS).items():
        found[f"__{name}__"] = _operator(function)
    for name, function in BINARY.items():
        found[f"__r{name}__"] = _reflected(function)
    found |= {f"__{name}__": function for name, function in UNARY.items()}
    return found | {"__getitem__": indexing.getitem, "__round__": _round, "where": _where}


METHODS = _methods()
"""Name of the method -> function; in-place forms are the runtime's."""
