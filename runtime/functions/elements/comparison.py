"""Comparison, logic, bits, and choosing by a condition."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ....tracer.errors import ArgumentError, DTypeError
from ....tracer.operator import Operator
from ....tracer.ops import elementwise as e
from ....tracer.spec import BOOL, CONTINUOUS
from ...tape.apply import apply
from ...tape.direct import direct
from ...values import dtypes
from ...values.tensor import Tensor
from ..common import (
    Operand,
    array_dtype,
    fail,
    filled,
    is_traced,
    operand,
    promoted,
    require_broadcast,
    require_real,
    tensor,
    truth,
    with_short_way,
)  # fmt: skip
from ..declared import eq, isnan, le, logical_and, logical_or, lt
from ..selections.selection import nonzero

__all__ = [
    "allclose", "bitwise_and", "bitwise_or", "bitwise_xor", "equal", "isclose", "isneginf", "isposinf",
    "signbit", "where",
]  # fmt: skip


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements: a Python bool.

    Example:
        >>> equal(tensor([1, 2]), tensor([1, 2]))
        True
    """
    a, b = tensor(input, "equal"), tensor(other, "equal", "other")
    if is_traced(a) or is_traced(b):
        return a.shape == b.shape and bool(eq(a, b).all())
    return bool(np.array_equal(cast(np.ndarray, a._value), cast(np.ndarray, b._value)))


# --- floats -------------------------------------------------------------------------------------------


def isposinf(input: Operand) -> Tensor:
    """Where input is +inf.

    Example:
        >>> isposinf(tensor([float("inf"), float("-inf")]))
        tensor([ True, False])
    """
    return eq(require_real(tensor(input, "isposinf"), "isposinf"), float("inf"))


def isneginf(input: Operand) -> Tensor:
    """Where input is -inf.

    Example:
        >>> isneginf(tensor([float("inf"), float("-inf")]))
        tensor([False,  True])
    """
    return eq(require_real(tensor(input, "isneginf"), "isneginf"), float("-inf"))


def signbit(input: Operand) -> Tensor:
    """Where input is negative; of -0.0 the sign is seen through its reciprocal.

    Example:
        >>> signbit(tensor([-1.0, 1.0]))
        tensor([ True, False])
    """
    x = require_real(tensor(input, "signbit"), "signbit")
    negative = lt(x, 0)
    if array_dtype(x).kind != "f":
        return negative
    below_zero = logical_and(eq(x, 0), lt(apply(e.divide, 1.0, x), 0))
    return logical_or(negative, below_zero)


def isclose(
    input: Operand, other: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Where `|input - other| <= atol + rtol * |other|`; equal infinities are close, nans if `equal_nan`.

    Example:
        >>> isclose(tensor([1.0, 1.0]), tensor([1.0 + 1e-7, 1.1]))
        tensor([ True, False])
    """
    if rtol < 0 or atol < 0:
        fail(ArgumentError, f"isclose(): rtol and atol must not be negative, found {rtol} and {atol}.")
    a, b = promoted("isclose", input, other)
    same = apply(e.equal, a, b)
    if array_dtype(a if isinstance(a, Tensor) else b).kind not in CONTINUOUS:
        a, b = (one.double() if isinstance(one, Tensor) else float(one) for one in (a, b))
    tolerance = abs(b) * rtol + atol
    finite = apply(e.isfinite, a if isinstance(a, Tensor) else tensor(np.asarray(a), "isclose"))
    near = logical_and(le(abs(apply(e.subtract, a, b)), tolerance), lt(abs(b), float("inf")))
    close = logical_or(same, logical_and(near, finite))
    return logical_or(close, logical_and(isnan(a), isnan(b))) if equal_nan else close


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all pairs are close, see `isclose`: a Python bool.

    Example:
        >>> allclose(tensor([1.0]), tensor([1.0 + 1e-7]))
        True
    """
    return bool(isclose(input, other, rtol, atol, equal_nan).all())


# --- logic and bits -----------------------------------------------------------------------------------


def _bitwise(
    on_bools: Operator, on_integers: Operator, input: Operand, other: Operand, function: str
) -> Tensor:
    a, b = promoted(function, input, other)
    dtype = array_dtype(a if isinstance(a, Tensor) else b)
    if dtype.kind in CONTINUOUS:
        fail(
            DTypeError,
            f"{function}: bool or integer operands expected, found {dtype}. Compare or convert first.",
        )
    return apply(on_bools if dtype.kind == "b" else on_integers, a, b)


def bitwise_and(input: Operand, other: Operand) -> Tensor:
    """input & other, of integers or bools.

    Example:
        >>> bitwise_and(tensor([6]), 3)
        tensor([2])
    """
    return _bitwise(e.logical_and, e.bitwise_and, input, other, "bitwise_and")


def bitwise_or(input: Operand, other: Operand) -> Tensor:
    """input | other, of integers or bools.

    Example:
        >>> bitwise_or(tensor([6]), 3)
        tensor([7])
    """
    return _bitwise(e.logical_or, e.bitwise_or, input, other, "bitwise_or")


def bitwise_xor(input: Operand, other: Operand) -> Tensor:
    """input ^ other, of integers or bools.

    Example:
        >>> bitwise_xor(tensor([6]), 3)
        tensor([5])
    """
    return _bitwise(e.logical_xor, e.bitwise_xor, input, other, "bitwise_xor")


# --- choice -------------------------------------------------------------------------------------------


def where(condition: Tensor, input: Operand | None = None, other: Operand | None = None) -> Any:
    """input where the condition holds, else other; with a condition alone, the indices where it holds.

    Args:
        condition: a bool tensor.
        input, other: tensors that broadcast with the condition, or numbers.

    Returns:
        A tensor of the common shape; with a condition alone, `nonzero(condition, as_tuple=True)`.

    Raises:
        DTypeError: the condition is not bool.
        ShapeError: the shapes do not broadcast.

    Example:
        >>> where(tensor([True, False]), tensor([1.0, 2.0]), 0.0)
        tensor([1., 0.])
    """
    mask = tensor(condition, "where", "condition")
    if input is None and other is None:
        return nonzero(mask, as_tuple=True)
    if input is None or other is None:
        fail(ArgumentError, "where(): give both of 'input' and 'other', or neither.")
    if array_dtype(mask) != BOOL:
        if array_dtype(mask) != np.uint8:
            fail(
                DTypeError,
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{mask.dtype}. Compare first, e.g. condition > 0.",
            )
        mask = truth(mask)
    return apply(e.where, mask, *_choices(mask, input, other), grad_name="WhereBackward0")


where_directly = direct(e.where, grad_name="WhereBackward0")
"""A choice among floats of one dtype by its short way; NotImplemented for what takes a closer look."""
with_short_way(where, where_directly)


def _choices(mask: Tensor, input: Any, other: Any) -> list[Any]:
    values = [operand(input, "where", "input"), operand(other, "where")]
    if not any(isinstance(one, Tensor) for one in values):
        dtype = dtypes.common_dtype(*values)
        return [filled((), cast(Any, one), dtype) for one in values]
    chosen = promoted("where", *values)
    require_broadcast("where", [mask, *(one for one in chosen if isinstance(one, Tensor))])
    return chosen
