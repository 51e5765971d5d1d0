"""Functions of one tensor, element by element.

Those on real numbers turn integers and bools into the default floating dtype first, as PyTorch's do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....tracer.errors import DTypeError
from ....tracer.ops import elementwise as e
from ....tracer.ops import special
from ....tracer.spec import CONTINUOUS
from ...tape.apply import apply
from ...values.tensor import Tensor
from .. import conventions
from ..common import (
    Operand,
    array_dtype,
    as_dtype,
    fail,
    floating,
    numpy_dtype,
    require_real,
    tensor,
    unsupported,
)  # fmt: skip

__all__ = [
    "bitwise_not", "clone", "deg2rad", "frac", "logit", "nan_to_num", "neg", "negative", "positive",
    "rad2deg", "round", "sgn", "sign", "sinc", "square",
]  # fmt: skip


# --- signs and squares: every dtype --------------------------------------------------------------------


def neg(input: Operand) -> Tensor:
    """-input. Bools raise DTypeError.

    Example:
        >>> neg(tensor([1.0, -2.0]))
        tensor([-1.,  2.])
    """
    x = tensor(input, "neg")
    if array_dtype(x).kind == "b":
        fail(
            DTypeError,
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
            "mask, use the `~` or `logical_not()` operator instead.",
        )
    return apply(e.negative, x)


def positive(input: Operand) -> Tensor:
    """input itself. Bools raise DTypeError.

    Example:
        >>> positive(tensor([1.0]))
        tensor([1.])
    """
    x = tensor(input, "positive")
    if array_dtype(x).kind == "b":
        fail(DTypeError, "The `+` operator, on a bool tensor is not supported.")
    return x


def sign(input: Operand) -> Tensor:
    """-1, 0 or 1; the derivative is 0.

    Example:
        >>> sign(tensor([-3.0, 0.0, 2.0]))
        tensor([-1.,  0.,  1.])
    """
    x = require_real(tensor(input, "sign"), "sign")
    if array_dtype(x).kind == "b":
        return x
    return apply(e.sign, x)


def sgn(input: Operand) -> Tensor:
    """`x / |x|` of complex numbers, 0 of 0; `sign` of real ones.

    Example:
        >>> sgn(tensor([-3.0, 0.0, 2.0])), sgn(tensor([3 + 4j]))
        (tensor([-1.,  0.,  1.]), tensor([0.6000+0.8000j]))
    """
    x = tensor(input, "sgn")
    kind = array_dtype(x).kind
    return x if kind == "b" else apply(e.sgn if kind == "c" else e.sign, x, grad_name="SgnBackward0")


def square(input: Operand) -> Tensor:
    """input * input; bools become integers.

    Example:
        >>> square(tensor([3.0]))
        tensor([9.])
    """
    x = tensor(input, "square")
    return apply(e.square, as_dtype(x, np.dtype("int64")) if array_dtype(x).kind == "b" else x)


# --- rounding: integers stay as they are -----------------------------------------------------------------


def round(input: Operand, *, decimals: int = 0) -> Tensor:
    """Rounded to the nearest number of `decimals` digits, halves to the even one; the derivative is 0.

    Example:
        >>> round(tensor([0.5, 1.5, 2.34]), decimals=0)
        tensor([0., 2., 2.])
    """
    if not decimals:
        return conventions.rounded(e.round_half_even, input, "round")
    x = tensor(input, "round")
    if array_dtype(x).kind != "f":
        unsupported("round", "decimals with integers", "Convert the tensor first, e.g. with .float().")
    scale = 10.0 ** math.fabs(decimals)
    enlarge, reduce = (e.multiply, e.divide) if decimals > 0 else (e.divide, e.multiply)
    rounded = apply(e.round_half_even, apply(enlarge, x, scale))
    return apply(reduce, rounded, scale, grad_name="RoundBackward1")


def frac(input: Operand) -> Tensor:
    """input - trunc(input): what is behind the point.

    Example:
        >>> frac(tensor([1.25, -1.25]))
        tensor([ 0.2500, -0.2500])
    """
    x = floating(input, "frac")
    return apply(e.subtract, x, apply(e.trunc, x), grad_name="FracBackward0")


# --- other functions of one real number ------------------------------------------------------------------


def logit(input: Operand, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), the inverse of `sigmoid`; x is held in [eps, 1 - eps] if eps is given.

    Example:
        >>> logit(tensor([0.5]))
        tensor([0.])
    """
    x = floating(input, "logit")
    if eps is not None:
        x = apply(e.clamp, x, float(eps), 1.0 - eps)
    return apply(special.logit, x)


def sinc(input: Operand) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0, where its Taylor series gives the derivatives.

    Example:
        >>> sinc(tensor([0.0, 0.5]))
        tensor([1.0000, 0.6366])
    """
    x = apply(e.multiply, floating(input, "sinc"), math.pi)
    at_zero = apply(e.equal, x, 0.0)
    safe = apply(e.where, at_zero, 1.0, x)
    series = apply(e.subtract, 1.0, apply(e.divide, apply(e.square, x), 6.0))
    return apply(
        e.where, at_zero, series, apply(e.divide, apply(e.sin, safe), safe), grad_name="SincBackward0"
    )


def deg2rad(input: Operand) -> Tensor:
    """Degrees in radians.

    Example:
        >>> deg2rad(tensor([180.0]))
        tensor([3.1416])
    """
    return apply(e.multiply, floating(input, "deg2rad"), math.pi / 180.0, grad_name="Deg2RadBackward0")


def rad2deg(input: Operand) -> Tensor:
    """Radians in degrees.

    Example:
        >>> rad2deg(tensor([3.1415927]))
        tensor([180.])
    """
    return apply(e.multiply, floating(input, "rad2deg"), 180.0 / math.pi, grad_name="Rad2DegBackward0")


def nan_to_num(
    input: Operand, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """nan replaced by `nan`, infinities by `posinf` and `neginf` (by default the largest finite numbers).

    Example:
        >>> nan_to_num(tensor([float("nan"), 1.0]))
        tensor([0., 1.])
    """
    x = tensor(input, "nan_to_num")
    dtype = array_dtype(x)
    if dtype.kind == "c":
        parts = (nan_to_num(one, nan, posinf, neginf) for one in (apply(e.real, x), apply(e.imag, x)))
        return apply(e.complex_of, *parts, grad_name="NanToNumBackward0")
    if dtype.kind != "f":
        return x
    limits = np.finfo(dtype)
    replacements = (
        (apply(e.equal, x, math.inf), float(limits.max) if posinf is None else float(posinf)),
        (apply(e.equal, x, -math.inf), float(limits.min) if neginf is None else float(neginf)),
        (apply(e.isnan, x), float(nan or 0.0)),
    )
    for position, (mask, value) in enumerate(replacements):
        x = apply(e.where, mask, value, x, grad_name="NanToNumBackward0" if position == 2 else None)
    return x


def bitwise_not(input: Operand) -> Tensor:
    """~input: the bits of integers inverted, bools negated. Floats raise DTypeError.

    Example:
        >>> bitwise_not(tensor([True, False])), bitwise_not(tensor([1]))
        (tensor([False,  True]), tensor([-2]))
    """
    x = tensor(input, "bitwise_not")
    kind = array_dtype(x).kind
    if kind in CONTINUOUS:
        fail(
            DTypeError,
            f"~ (operator.invert) is only implemented on integer and Boolean-type tensors, found {x.dtype}",
        )
    return apply(e.logical_not if kind == "b" else e.bitwise_not, x)


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy that the gradient passes through; `memory_format` is accepted and has no meaning here.

    Example:
        >>> clone(tensor([1.0]))
        tensor([1.])
    """
    return apply(e.identity, tensor(input, "clone"))


def convert(input: Tensor, dtype: Any) -> Tensor:
    """The tensor in a dtype; itself if it has it. The gradient comes back in the dtype of `input`.

    Example:
        >>> convert(tensor([1, 2]), float64)
        tensor([1., 2.], dtype=torch.float64)
    """
    return as_dtype(tensor(input, "convert"), numpy_dtype(dtype))


negative = neg
