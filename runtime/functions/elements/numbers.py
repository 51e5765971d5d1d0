"""How numbers are made: signs, powers of two, neighbours, divisors, bits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....tracer.errors import DTypeError
from ....tracer.operator import Operator
from ....tracer.ops import elementwise as e
from ....tracer.ops import special as s
from ...tape.apply import apply
from ...values.dtypes import promote_dtypes
from ...values.tensor import Tensor
from ..common import (
    Operand,
    array_dtype,
    as_dtype,
    fail,
    floating,
    promoted_pair,
    tensor,
)
from ..declared import mul
from .arithmetic import pow
from .comparison import signbit

__all__ = [
    "bitwise_left_shift", "bitwise_right_shift", "copysign", "frexp", "gcd", "heaviside", "lcm", "ldexp",
    "nextafter",
]  # fmt: skip


class MantissaExponent(NamedTuple):
    """What `frexp` returns."""

    mantissa: Tensor
    exponent: Tensor


def copysign(input: Operand, other: Operand) -> Tensor:
    """The size of input with the sign of other, of -0.0 as well.

    Example:
        >>> copysign(tensor([1.0, 2.0]), tensor([-1.0, 0.0]))
        tensor([-1.,  2.])
    """
    a, b = promoted_pair("copysign", input, other, as_float=True)
    size = apply(e.absolute, a)
    negative = signbit(b._detached())
    return apply(e.where, negative, apply(e.negative, size), size, grad_name="CopysignBackward0")


def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below zero, 1 above, and `values` at zero, whose gradient is that of these elements.

    Raises:
        DTypeError: the dtypes differ.

    Example:
        >>> heaviside(tensor([-1.0, 0.0, 2.0]), tensor(0.5))
        tensor([0.0000, 0.5000, 1.0000])
    """
    a, b = promoted_pair("heaviside", input, values)
    if isinstance(input, Tensor) and isinstance(values, Tensor) and input.dtype != values.dtype:
        fail(DTypeError, "heaviside is not yet implemented for tensors with different dtypes.")
    a = a._detached()
    return apply(e.where, apply(e.equal, a, 0), b, as_dtype(apply(e.greater, a, 0), array_dtype(a)))


def ldexp(input: Tensor, other: Operand) -> Tensor:
    """input * 2 ** other; of floats in their dtype, if `other` holds integers.

    Example:
        >>> ldexp(tensor([1.0]), tensor([3]))
        tensor([8.])
    """
    x = tensor(input, "ldexp")
    if not isinstance(other, Tensor):
        return mul(x, 2.0**other)
    if array_dtype(x).kind != "f" or array_dtype(other).kind not in "iu":
        return mul(x, pow(2.0, other))
    factor = as_dtype(other, promote_dtypes(array_dtype(x), np.dtype("float32")))
    return as_dtype(mul(as_dtype(x, array_dtype(factor)), pow(2.0, factor)), array_dtype(x))


def frexp(input: Tensor) -> MantissaExponent:
    """(mantissa, exponent) with `input = mantissa * 2 ** exponent` and `0.5 <= |mantissa| < 1`.

    Example:
        >>> frexp(tensor([8.0])).exponent
        tensor([4], dtype=torch.int32)
    """
    if isinstance(input, Tensor) and array_dtype(input).kind != "f":
        fail(DTypeError, "torch.frexp() only supports floating-point dtypes. Convert it first.")
    x = floating(input, "frexp")
    exponent = apply(s.exponent, x._detached())
    return MantissaExponent(apply(s.mantissa, x), as_dtype(exponent, np.dtype("int32")))


def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The next number after input in the direction of other.

    Example:
        >>> nextafter(tensor([1.0]), tensor([2.0])) > 1
        tensor([True])
    """
    a, b = promoted_pair("nextafter", input, other)
    if array_dtype(a).kind != "f":
        fail(DTypeError, f'"nextafter" not implemented for integers: found {a.dtype}. Convert it first.')
    return apply(s.nextafter, a, b)


def _of_integers(operator: Operator, input: Operand, other: Operand) -> Tensor:
    a, b = promoted_pair(operator.name, input, other)
    if array_dtype(a).kind not in "iu":
        fail(DTypeError, f'"{operator.name}" is implemented for integers alone: found {a.dtype}.')
    return apply(operator, a, b)


def gcd(input: Tensor, other: Tensor) -> Tensor:
    """The greatest common divisor of integers.

    Example:
        >>> gcd(tensor([12, 5]), tensor([18, 10]))
        tensor([6, 5])
    """
    return _of_integers(s.gcd, input, other)


def lcm(input: Tensor, other: Tensor) -> Tensor:
    """The least common multiple of integers.

    Example:
        >>> lcm(tensor([4]), tensor([6]))
        tensor([12])
    """
    return _of_integers(s.lcm, input, other)


def bitwise_left_shift(input: Operand, other: Operand) -> Tensor:
    """The bits of integers moved left by `other` places.

    Example:
        >>> bitwise_left_shift(tensor([1, 2]), 3)
        tensor([ 8, 16])
    """
    return _of_integers(s.bitwise_left_shift, input, other)


def bitwise_right_shift(input: Operand, other: Operand) -> Tensor:
    """The bits of integers moved right by `other` places; the sign stays.

    Example:
        >>> bitwise_right_shift(tensor([8, -16]), 3)
        tensor([ 1, -2])
    """
    return _of_integers(s.bitwise_right_shift, input, other)
