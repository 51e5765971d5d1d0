"""Which functions are methods of Tensor, and what Python's operators on tensors call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ...tracer.ops.elementwise import negative
from ..tape.direct import direct
from ..values.foreign import unboxed
from ..values.tensor import Tensor
from . import declared, kinds
from .common import is_operand
from .conventions import FUNCTIONS, OFFERED
from .elements import arithmetic, comparison, complex_numbers, elementwise, numbers, special
from .matrices import (
    contraction,
    decompositions,
    elimination,
    lapack_factors,
    least_squares,
    linalg,
    tensor_equations,
)  # fmt: skip
from .networks import activation, windows
from .reductions import calculus, counting, ordering, reduction, running, statistics
from .selections import indexing, scattering, selection
from .shapes import grids, joining, movement, parts
from .signals import spectrograms

Function = Callable[..., Any]

_NO_METHODS = """
    alias_copy as_strided_copy atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes
    broadcast_tensors bucketize cartesian_prod cat celu column_stack combinations complex concat concatenate
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity
    cumulative_trapezoid detach_copy diagonal_copy dstack elu expand_copy fill gelu glu gradient
    hardsigmoid hardswish hardtanh histogramdd hstack is_complex is_inference isin leaky_relu linalg_norm
    linear imag logsigmoid lu_unpack matrix_norm meshgrid mish normalize numel one_hot permute_copy polar
    polygamma real relu6 row_stack searchsorted select_copy selu silu softmin softplus softshrink softsign
    solve_triangular split_with_sizes_copy squeeze_copy stack std_mean t_copy tanhshrink tensordot
    threshold transpose_copy trapezoid trapz tril_indices triu_indices unbind_copy unfold_copy
    unravel_index unsqueeze_copy vander var_mean vector_norm view_as_complex view_as_complex_copy view_as_real
    view_as_real_copy view_copy vstack where
"""
NO_METHODS = frozenset(_NO_METHODS.split())
"""Functions for which PyTorch has no method, or one with other arguments."""

WITH_METHODS: tuple[ModuleType, ...] = (
    elementwise, arithmetic, comparison, reduction, statistics, movement, parts, joining, selection,
    ordering, contraction, linalg, windows, activation, special, numbers, calculus, running, grids,
    counting, scattering, complex_numbers, kinds, decompositions, least_squares, elimination,
    lapack_factors, spectrograms, tensor_equations,
)  # fmt: skip

BINARY = {
    "add": arithmetic.add, "sub": arithmetic.sub, "mul": declared.mul, "truediv": arithmetic.div,
    "floordiv": declared.floor_divide, "mod": arithmetic.remainder, "pow": arithmetic.pow,
    "matmul": contraction.matmul, "and": comparison.bitwise_and, "or": comparison.bitwise_or,
    "xor": comparison.bitwise_xor, "lshift": numbers.bitwise_left_shift,
    "rshift": numbers.bitwise_right_shift,
}  # fmt: skip
COMPARISONS = {
    "eq": declared.eq, "ne": declared.ne, "lt": declared.lt, "le": declared.le, "gt": declared.gt,
    "ge": declared.ge,
}  # fmt: skip
UNARY = {
    "neg": direct(negative, elementwise.neg), "pos": elementwise.positive, "abs": declared.abs,
    "invert": elementwise.bitwise_not,
}  # fmt: skip


def _operator(function: Function) -> Function:
    """self (op) other; NotImplemented for what is no operand, so that Python asks the other side."""

    @functools.wraps(function)
    def method(self: Tensor, other: Any) -> Any:
        other = other if is_operand(other) else unboxed(other)
        return function(self, other) if is_operand(other) else NotImplemented

    return method


def _reflected(function: Function) -> Function:
    """other (op) self."""

    @functools.wraps(function)
    def method(self: Tensor, other: Any) -> Any:
        other = other if is_operand(other) else unboxed(other)
        return function(other, self) if is_operand(other) else NotImplemented

    return method


def _where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The tensor's elements where the condition holds, else those of `other`."""
    return comparison.where(condition, self, other)


def _round(self: Tensor, ndigits: int = 0) -> Tensor:
    """What Python's round() gives."""
    return elementwise.round(self, decimals=ndigits)


def _polygamma(self: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma."""
    return special.polygamma(n, self)


def _methods() -> dict[str, Function]:
    public = {name: getattr(module, name) for module in WITH_METHODS for name in module.__all__}
    found = {name: function for name, function in public.items() if name not in NO_METHODS}
    for name, function in (BINARY | COMPARISONS).items():
        found[f"__{name}__"] = _operator(function)
    for name, function in BINARY.items():
        found[f"__r{name}__"] = _reflected(function)
    found["__rdiv__"] = found["__rtruediv__"]
    found |= {f"__{name}__": function for name, function in UNARY.items()}
    made = FUNCTIONS["pullback"]
    found |= {name: made[name] for name in OFFERED if name in made}
    return found | {
        "__getitem__": indexing.getitem, "__round__": _round, "where": _where, "polygamma": _polygamma,
    }  # fmt: skip


METHODS = _methods()
"""Name of the method -> function; in-place forms are the runtime's."""
