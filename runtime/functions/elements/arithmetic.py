"""Arithmetic of two operands, under PyTorch's names and dtype promotion.

Operands are tensors that broadcast, or Python numbers, which take the tensor's dtype.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, DTypeError
from ....tracer.ops import elementwise as e
from ....tracer.ops import special
from ....tracer.ops.reduction import highest, lowest
from ....tracer.spec import CONTINUOUS
from ....tracer.trace import innermost
from ...tape.apply import apply
from ...tape.direct import direct
from ...values.dtypes import is_number, promote_dtypes
from ...values.tensor import Tensor, TorchTensor
from ...values.value_kinds import NumpyTensor
from ..common import (
    Operand,
    Scalar,
    array_dtype,
    as_dtype,
    common_dtype,
    elementwise,
    fail,
    filled,
    floating,
    is_scalar,
    operand,
    promoted,
    promoted_pair,
    require_broadcast,
    require_real,
    scalar_of,
    tensor,
    with_short_way,
)  # fmt: skip
from ..declared import mul

__all__ = [
    "add", "addcdiv", "addcmul", "clamp", "clamp_max", "clamp_min", "clip", "div", "divide", "float_power",
    "fmax", "fmin", "fmod", "lerp", "logaddexp2", "pow", "remainder", "rsub", "sub", "subtract",
    "true_divide", "xlogy",
]  # fmt: skip


def _scaled(other: Any, alpha: Scalar, function: str) -> Any:
    """alpha * other."""
    if alpha == 1:
        return other
    if isinstance(alpha, float) and isinstance(other, Tensor) and array_dtype(other).kind not in CONTINUOUS:
        fail(
            ArgumentError,
            f"{function}(): For integral input tensors, argument alpha must not be a floating point number.",
        )
    return mul(other, alpha) if isinstance(other, Tensor) else operand(other, function) * alpha


def _are_bools(a: Any, b: Any) -> bool:
    return all(
        array_dtype(one) == np.bool_ if isinstance(one, Tensor) else isinstance(one, bool) for one in (a, b)
    )


def _refuse_pytorchs_bools(function: str, a: Any, b: Any) -> None:
    """NumPy's give int8."""
    if any(isinstance(one, TorchTensor) for one in (a, b)) and _are_bools(a, b):
        fail(DTypeError, f"\"{function}\" not implemented for 'Bool': convert one first, e.g. with .int().")


def _refuse_bools(a: Any, b: Any) -> None:
    if _are_bools(a, b):
        fail(
            DTypeError,
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead.",
        )


def add(input: Operand, other: Operand, *, alpha: Scalar = 1) -> Tensor:
    """input + alpha * other.

    Args:
        input, other: tensors whose shapes broadcast, or one of them a number.
        alpha: a factor of `other`.

    Returns:
        A tensor of the common shape and dtype.

    Raises:
        ShapeError: the shapes do not broadcast.

    Example:
        >>> add(tensor([1.0, 2.0]), 1, alpha=10)
        tensor([11., 12.])
    """
    return elementwise(e.add, input, _scaled(other, alpha, "add"), function="add", grad_name="AddBackward0")


def sub(input: Operand, other: Operand, *, alpha: Scalar = 1) -> Tensor:
    """input - alpha * other; see `add`. Two bool tensors raise DTypeError.

    Example:
        >>> sub(tensor([1.0, 2.0]), 1)
        tensor([0., 1.])
    """
    _refuse_bools(input, other)
    name = "RsubBackward1" if is_scalar(input) else "SubBackward0"
    return elementwise(e.subtract, input, _scaled(other, alpha, "sub"), function="sub", grad_name=name)


def rsub(input: Operand, other: Operand, *, alpha: Scalar = 1) -> Tensor:
    """other - alpha * input; see `add`.

    Example:
        >>> rsub(tensor([1.0, 2.0]), 1)
        tensor([ 0., -1.])
    """
    _refuse_bools(input, other)
    name = "RsubBackward1" if is_scalar(other) else "RsubBackward0"
    return elementwise(e.subtract, other, _scaled(input, alpha, "rsub"), function="rsub", grad_name=name)


def div(input: Operand, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """input / other: the true quotient, or rounded to zero ("trunc") or to minus infinity ("floor").

    Args:
        input, other: tensors whose shapes broadcast, or one of them a number. Integers divide to the
            default floating dtype, unless a rounding mode is given.
        rounding_mode: None, "trunc" or "floor"; the derivative of a rounded quotient is 0.

    Raises:
        ArgumentError: another rounding mode.
        ShapeError: the shapes do not broadcast.

    Example:
        >>> div(tensor([7, -7]), 2), div(tensor([7, -7]), 2, rounding_mode="trunc")
        (tensor([ 3.5000, -3.5000]), tensor([ 3, -3]))
    """
    if rounding_mode is None:
        name = "MulBackward0" if is_scalar(input) else "DivBackward0"
        return elementwise(e.divide, input, other, function="div", grad_name=name, as_float=True)
    if rounding_mode == "floor":
        return elementwise(e.floor_divide, input, other, function="div", grad_name="DivBackward2")
    if rounding_mode != "trunc":
        fail(
            ArgumentError,
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'",
        )
    a, b = promoted("div", input, other)
    if array_dtype(a if isinstance(a, Tensor) else b).kind == "f":
        return apply(e.trunc, apply(e.divide, a, b), grad_name="DivBackward2")
    quotient = apply(e.floor_divide, a, b)
    inexact = apply(e.not_equal, apply(e.multiply, quotient, b), a)
    rounded_down = apply(e.logical_and, inexact, apply(e.less, quotient, 0))
    return apply(e.where, rounded_down, apply(e.add, quotient, 1), quotient)


def true_divide(input: Operand, other: Operand) -> Tensor:
    """input / other; see `div`.

    Example:
        >>> true_divide(tensor([1, 2]), 2)
        tensor([0.5000, 1.0000])
    """
    return div(input, other)


def remainder(input: Operand, other: Operand) -> Tensor:
    """input % other, with the sign of other, as in Python.

    Example:
        >>> remainder(tensor([5, -5]), 3)
        tensor([2, 1])
    """
    _refuse_pytorchs_bools("remainder", input, other)
    name = "RemainderBackward0" if is_scalar(other) else "RemainderBackward1"
    return elementwise(e.remainder, input, other, function="remainder", grad_name=name)


def fmod(input: Operand, other: Operand) -> Tensor:
    """The remainder of input / other with the sign of input, as in C.

    Example:
        >>> fmod(tensor([5, -5]), 3)
        tensor([ 2, -2])
    """
    a, b = promoted("fmod", input, other)
    dtype = array_dtype(a if isinstance(a, Tensor) else b)
    a = a if isinstance(a, Tensor) else filled((), a, dtype)
    if dtype.kind in "iu":
        return _fmod_of_integers(a, b if isinstance(b, Tensor) else filled((), b, dtype))
    sign = apply(e.where, apply(e.less, a, 0), scalar_of(-1, dtype), filled((), 1, dtype))
    name = "FmodBackward0" if is_scalar(other) else "FmodBackward1"
    magnitude = apply(e.absolute, b) if isinstance(b, Tensor) else abs(b)
    return apply(e.multiply, apply(e.remainder, apply(e.multiply, a, sign), magnitude), sign, grad_name=name)


def _fmod_of_integers(a: Tensor, b: Tensor) -> Tensor:
    """Without the absolute value, which the least integer has not."""
    rest = apply(e.remainder, a, b)
    other_sign = apply(e.not_equal, apply(e.less, a, 0), apply(e.less, b, 0))
    is_of_divisor = apply(e.logical_and, apply(e.not_equal, rest, 0), other_sign)
    return apply(e.where, is_of_divisor, apply(e.subtract, rest, b), rest)


def pow(input: Operand, exponent: Operand) -> Tensor:
    """input ** exponent.

    Args:
        input, exponent: tensors whose shapes broadcast, or one of them a number. A constant exponent is
            cheaper and has the better derivative: 0 at 0 where the exponent is at least 1.

    Raises:
        ArgumentError: integers to a negative integer power.
        ShapeError: the shapes do not broadcast.

    Example:
        >>> pow(tensor([1.0, 2.0, 3.0]), 2)
        tensor([1., 4., 9.])
    """
    if (short := pow_directly(input, exponent)) is not NotImplemented:
        return short
    if not is_scalar(exponent):
        return _pow_tensor(input, exponent)
    base, power = promoted("pow", tensor(input, "pow"), exponent)
    dtype = array_dtype(base)
    if dtype == np.bool_ and isinstance(base, TorchTensor):
        return apply(e.logical_or, base, not exponent)  # 0 ** 0 is 1
    if dtype.kind not in CONTINUOUS and power < 0:
        fail(
            ArgumentError,
            f"Integers to negative integer powers are not allowed: found {dtype} ** {power}. Convert the "
            "base first, e.g. with .float().",
        )
    if power == 2:
        return apply(e.square, base, grad_name="PowBackward0")
    return apply(e.power_constant, base, exponent=power, grad_name="PowBackward0")


_squared = direct(e.square, grad_name="PowBackward0")
_powered = direct(e.power_constant, grad_name="PowBackward0")


def pow_directly(input: Any, exponent: Any) -> Any:
    """A power with a constant exponent by its short way; else NotImplemented."""
    if type(exponent) is not float and type(exponent) is not int:
        return NotImplemented
    return _squared(input) if exponent == 2 else _powered(input, exponent=float(exponent))


NEGATIVE_POWERS = "Integers to negative integer powers are not allowed. Convert the base to floats first."
"""NumPy's; PyTorch drops the fractions."""


def _pow_tensor(input: Operand, exponent: Any) -> Tensor:
    _refuse_pytorchs_bools("pow", input, exponent)
    base, power = promoted("pow", input, exponent)
    if array_dtype(power).kind == "i" and not any(isinstance(one, TorchTensor) for one in (base, power)):
        from ...solvers.requirements import Failure, require  # which has functions of its own

        power = require(power, apply(e.greater_equal, power, 0), Failure(NEGATIVE_POWERS, ArgumentError))
    if isinstance(base, Tensor):
        return apply(e.power, base, power, grad_name="PowBackward1")
    return apply(e.power, filled((), base, array_dtype(power)), power, grad_name="PowBackward2")


def float_power(input: Operand, exponent: Operand) -> Tensor:
    """input ** exponent in float64, or complex128.

    Example:
        >>> float_power(tensor([2, 4]), -1)
        tensor([0.5000, 0.2500], dtype=torch.float64)
    """
    given = operand(input, "float_power", "input"), operand(exponent, "float_power", "exponent")
    double = promote_dtypes(common_dtype(*given), np.dtype("float64"))
    return pow(
        *(as_dtype(one, double) if isinstance(one, Tensor) else scalar_of(one, double) for one in given)
    )


def _ignoring_nan(chosen: Any, input: Operand, other: Operand, name: str) -> Tensor:
    """a where `chosen(a, b)` or b is nan, else b. The gradient goes to the element that was taken."""
    a, b = promoted(name, input, other)
    dtype = array_dtype(a if isinstance(a, Tensor) else b)
    a, b = (one if isinstance(one, Tensor) else filled((), one, dtype) for one in (a, b))
    takes_a = apply(chosen, a, b)
    if dtype.kind == "f":
        takes_a = apply(e.logical_or, takes_a, apply(e.isnan, b))
    return apply(e.where, takes_a, a, b, grad_name=f"{name.capitalize()}Backward0")


def fmax(input: Operand, other: Operand) -> Tensor:
    """The larger of each pair; where one is nan, the other.

    Example:
        >>> fmax(tensor([1.0, float("nan")]), tensor([2.0, 3.0]))
        tensor([2., 3.])
    """
    return _ignoring_nan(e.greater_equal, input, other, "fmax")


def fmin(input: Operand, other: Operand) -> Tensor:
    """The smaller of each pair; where one is nan, the other.

    Example:
        >>> fmin(tensor([1.0, float("nan")]), tensor([2.0, 3.0]))
        tensor([1., 3.])
    """
    return _ignoring_nan(e.less_equal, input, other, "fmin")


def clamp(input: Operand, min: Operand | None = None, max: Operand | None = None) -> Tensor:
    """input held between min and max; the gradient passes between the bounds and on them.

    Args:
        input: a tensor.
        min, max: numbers, or tensors that broadcast; None for no bound on that side, but not on both.

    Raises:
        ArgumentError: neither min nor max is given.

    Example:
        >>> clamp(tensor([-1.0, 0.5, 2.0]), 0, 1)
        tensor([0.0000, 0.5000, 1.0000])
    """
    return _clamped(input, min, max)


def _clamped(
    input: Operand, min: Operand | None, max: Operand | None, grad_name: str | None = None
) -> Tensor:
    if min is None and max is None:
        fail(ArgumentError, "clamp(): At least one of 'min' or 'max' must not be None")
    bounds = [bound for bound in (min, max) if bound is not None]
    x, *found = promoted("clamp", tensor(input, "clamp"), *bounds)
    dtype = array_dtype(require_real(x, "clamp"))
    low = lowest(dtype) if min is None else found.pop(0)
    high = highest(dtype) if max is None else found.pop(0)
    name = "ClampBackward0" if any(isinstance(one, Tensor) for one in (low, high)) else "ClampBackward1"
    return apply(e.clamp, x, low, high, grad_name=grad_name or name)


def clamped_directly(input: Any = None, min: Any = None, max: Any = None, *more: Any) -> Any:
    """Floats held between numbers, by a short way; NotImplemented for what takes a closer look."""
    kind = type(input)
    if (kind is not TorchTensor and kind is not NumpyTensor) or more or innermost() is not None:
        return NotImplemented
    value = input._value
    if type(value) is not np.ndarray or value.dtype.kind != "f" or (min is None and max is None):
        return NotImplemented
    if type(min) not in _BOUNDS or type(max) not in _BOUNDS:
        return NotImplemented
    low = lowest(value.dtype) if min is None else min
    high = highest(value.dtype) if max is None else max
    return _clamp_by_numbers(input, low, high)


_clamp_by_numbers = direct(
    e.clamp, functools.partial(apply, e.clamp, grad_name="ClampBackward1"), "ClampBackward1"
)
_BOUNDS = (float, type(None))
with_short_way(clamp, clamped_directly)


def clamp_min(input: Operand, min: Operand) -> Tensor:
    """input, but at least min; see `clamp`.

    Example:
        >>> clamp_min(tensor([-1.0, 2.0]), 0)
        tensor([0., 2.])
    """
    return _clamped(input, min, None, "ClampMinBackward0")


def clamp_max(input: Operand, max: Operand) -> Tensor:
    """input, but at most max; see `clamp`.

    Example:
        >>> clamp_max(tensor([-1.0, 2.0]), 0)
        tensor([-1.,  0.])
    """
    return _clamped(input, None, max, "ClampMaxBackward0")


def lerp(input: Tensor, end: Tensor, weight: Operand) -> Tensor:
    """input + weight * (end - input): between input (weight 0) and end (weight 1).

    Example:
        >>> lerp(tensor([0.0, 10.0]), tensor([1.0, 20.0]), 0.5)
        tensor([ 0.5000, 15.0000])
    """
    start, stop, fraction = promoted("lerp", tensor(input, "lerp"), tensor(end, "lerp", "end"), weight)
    step = apply(e.multiply, apply(e.subtract, stop, start), fraction)
    return apply(e.add, start, step, grad_name="LerpBackward0" if is_scalar(weight) else "LerpBackward1")


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """input + value * tensor1 * tensor2.

    Example:
        >>> addcmul(tensor([1.0]), tensor([2.0]), tensor([3.0]), value=10)
        tensor([61.])
    """
    x, a, b = promoted("addcmul", input, tensor1, tensor2)
    return apply(e.add, x, _times(apply(e.multiply, a, b), value), grad_name="AddcmulBackward0")


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Scalar = 1) -> Tensor:
    """input + value * tensor1 / tensor2; integers raise DTypeError.

    Example:
        >>> addcdiv(tensor([1.0]), tensor([3.0]), tensor([2.0]))
        tensor([2.5000])
    """
    x, a, b = promoted("addcdiv", input, tensor1, tensor2)
    if array_dtype(x).kind not in CONTINUOUS:
        fail(
            DTypeError,
            "Integer division with addcdiv is no longer supported. Use (input + value * tensor1 / tensor2) "
            "for true division.",
        )
    return apply(e.add, x, _times(apply(e.divide, a, b), value), grad_name="AddcdivBackward0")


def _times(x: Tensor, value: Scalar) -> Tensor:
    return x if value == 1 else apply(e.multiply, x, scalar_of(value, array_dtype(x)))


def logaddexp2(input: Operand, other: Operand) -> Tensor:
    """log2(2**input + 2**other) without overflow.

    Example:
        >>> logaddexp2(tensor([0.0]), tensor([0.0]))
        tensor([1.])
    """
    a, b = promoted("logaddexp2", input, other, as_float=True)
    natural = apply(e.logaddexp, _times_log2(a), _times_log2(b))
    return apply(e.multiply, natural, 1.0 / e.LOG_2, grad_name="Logaddexp2Backward0")


def _times_log2(x: Any) -> Any:
    return apply(e.multiply, x, e.LOG_2) if isinstance(x, Tensor) else x * e.LOG_2


def xlogy(input: Operand, other: Operand) -> Tensor:
    """input * log(other), 0 where input is 0 (but nan where other is nan).

    Example:
        >>> xlogy(tensor([0.0, 1.0]), tensor([0.0, 1.0]))
        tensor([0., 0.])
    """
    return apply(special.xlogy, *promoted_pair("xlogy", input, other, as_float=True))


def product_with_log(input: Operand, other: Operand) -> Tensor:
    """`xlogy` whose slopes are 0 where input is 0 and log(other) infinite or none."""
    a, b = promoted_pair("xlogy", input, other, as_float=True)
    require_broadcast("xlogy", [a, b])
    has_no_number = apply(e.logical_or, apply(e.less_equal, b, 0.0), apply(e.equal, b, math.inf))
    vanishes = apply(e.logical_and, apply(e.equal, a, 0.0), has_no_number)
    return apply(e.multiply, a, apply(e.log, apply(e.where, vanishes, 1.0, b)))


subtract, divide, clip = sub, div, clamp


def float_pair(function: str, input: Operand, other: Operand) -> tuple[Tensor, Tensor]:
    """Two tensors of one floating dtype."""
    a, b = promoted(function, floating(input, function), floating(other, function, "other"))
    return a, b


def broadcast_float_pair(function: str, input: Operand, other: Operand) -> tuple[Tensor, Tensor]:
    """The same where PyTorch broadcasts first: a tensor without dimensions has a say in the dtype."""
    a, b = floating(input, function), floating(other, function, "other")
    if not (is_number(a) or is_number(b)):
        dtype = promote_dtypes(array_dtype(a), array_dtype(b))
        a, b = as_dtype(a, dtype), as_dtype(b, dtype)
    return float_pair(function, a, b)
