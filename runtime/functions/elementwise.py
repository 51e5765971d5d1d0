"""Functions of one tensor, element by element.

Those on real numbers turn integers and bools into the default floating dtype first, as PyTorch's do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import DTypeError
from ...tracer.operator import Operator
from ...tracer.ops import elementwise as e
from ..tape import apply
from ..tensor import Tensor
from .common import (
    Operand,
    array_dtype,
    as_dtype,
    fail,
    floating,
    numpy_dtype,
    scalar_of,
    tensor,
    unsupported,
)  # fmt: skip

__all__ = [
    "abs", "absolute", "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh",
    "asin", "asinh", "atan", "atanh", "bitwise_not", "cbrt", "ceil", "clone", "cos", "cosh", "deg2rad",
    "digamma", "erf", "erfc", "exp", "exp2", "expit", "expm1", "fix", "floor", "frac", "lgamma", "log",
    "log10", "log1p", "log2", "logit", "nan_to_num", "neg", "negative", "positive", "rad2deg",
    "reciprocal", "round", "rsqrt", "sgn", "sigmoid", "sign", "sin", "sinc", "sinh", "sqrt", "square",
    "tan", "tanh", "trunc",
]  # fmt: skip

UnaryFunction = Callable[[Operand], Tensor]


def _real_function(
    name: str, operator: Operator, grad_name: str | None = None, note: str = ""
) -> UnaryFunction:
    """The public function of an operator on real numbers."""

    def function(input: Operand) -> Tensor:
        return apply(operator, floating(input, name), grad_name=grad_name)

    function.__doc__ = f"""{operator.doc}, element by element.{note and " " + note}

    Args:
        input: a tensor of any shape; integers and bools become the default floating dtype.

    Returns:
        A tensor of the same shape.

    Raises:
        ArgumentError: `input` is no tensor.

    Example:
        >>> {name}(tensor([{max(operator.domain[0], 0.25)}]))
    """
    function.__name__ = function.__qualname__ = name
    return function


sqrt = _real_function("sqrt", e.sqrt, note="nan for negative numbers.")
rsqrt = _real_function("rsqrt", e.rsqrt)
cbrt = _real_function("cbrt", e.cbrt)
exp = _real_function("exp", e.exp)
exp2 = _real_function("exp2", e.exp2)
expm1 = _real_function("expm1", e.expm1)
log = _real_function("log", e.log, note="-inf at 0, nan below.")
log2 = _real_function("log2", e.log2)
log10 = _real_function("log10", e.log10)
log1p = _real_function("log1p", e.log1p, "Log1PBackward0")
sin = _real_function("sin", e.sin)
cos = _real_function("cos", e.cos)
tan = _real_function("tan", e.tan)
asin = _real_function("asin", e.asin)
acos = _real_function("acos", e.acos)
atan = _real_function("atan", e.atan)
sinh = _real_function("sinh", e.sinh)
cosh = _real_function("cosh", e.cosh)
tanh = _real_function("tanh", e.tanh)
asinh = _real_function("asinh", e.asinh)
acosh = _real_function("acosh", e.acosh)
atanh = _real_function("atanh", e.atanh)
sigmoid = _real_function("sigmoid", e.sigmoid)
erf = _real_function("erf", e.erf)
erfc = _real_function("erfc", e.erfc)
lgamma = _real_function("lgamma", e.lgamma)
digamma = _real_function("digamma", e.digamma)
reciprocal = _real_function("reciprocal", e.reciprocal)
arcsin, arccos, arctan = asin, acos, atan
arcsinh, arccosh, arctanh = asinh, acosh, atanh
expit = sigmoid

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


def abs(input: Operand) -> Tensor:
    """The magnitude; the derivative at 0 is 0.

    Example:
        >>> abs(tensor([-1.0, 2.0]))
        tensor([1., 2.])
    """
    return apply(e.absolute, tensor(input, "abs"))


def sign(input: Operand) -> Tensor:
    """-1, 0 or 1; the derivative is 0.

    Example:
        >>> sign(tensor([-3.0, 0.0, 2.0]))
        tensor([-1.,  0.,  1.])
    """
    x = tensor(input, "sign")
    if array_dtype(x).kind == "b":
        return x
    return apply(e.sign, x)


def sgn(input: Operand) -> Tensor:
    """`sign`, which it is for real numbers.

    Example:
        >>> sgn(tensor([-3.0, 0.0, 2.0]))
        tensor([-1.,  0.,  1.])
    """
    x = tensor(input, "sgn")
    return x if array_dtype(x).kind == "b" else apply(e.sign, x, grad_name="SgnBackward0")


def square(input: Operand) -> Tensor:
    """input * input; bools become integers.

    Example:
        >>> square(tensor([3.0]))
        tensor([9.])
    """
    x = tensor(input, "square")
    return apply(e.square, as_dtype(x, np.dtype("int64")) if array_dtype(x).kind == "b" else x)


# --- rounding: integers stay as they are -----------------------------------------------------------------


def _rounding(operator: Operator, input: Operand, function: str) -> Tensor:
    x = tensor(input, function)
    if array_dtype(x).kind == "b":
        fail(DTypeError, f"\"{function}\" not implemented for 'Bool': found a bool tensor; convert it first.")
    return apply(operator, x) if array_dtype(x).kind == "f" else x


def floor(input: Operand) -> Tensor:
    """Rounded to minus infinity; the derivative is 0.

    Example:
        >>> floor(tensor([1.7, -1.2]))
        tensor([ 1., -2.])
    """
    return _rounding(e.floor, input, "floor")


def ceil(input: Operand) -> Tensor:
    """Rounded to infinity; the derivative is 0.

    Example:
        >>> ceil(tensor([1.7, -1.2]))
        tensor([ 2., -1.])
    """
    return _rounding(e.ceil, input, "ceil")


def trunc(input: Operand) -> Tensor:
    """Rounded to zero; the derivative is 0.

    Example:
        >>> trunc(tensor([1.7, -1.2]))
        tensor([ 1., -1.])
    """
    return _rounding(e.trunc, input, "trunc")


fix = trunc


def round(input: Operand, *, decimals: int = 0) -> Tensor:
    """Rounded to the nearest number of `decimals` digits, halves to the even one; the derivative is 0.

    Example:
        >>> round(tensor([0.5, 1.5, 2.34]), decimals=0)
        tensor([0., 2., 2.])
    """
    if not decimals:
        return _rounding(e.round_half_even, input, "round")
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
    odds = apply(e.divide, x, apply(e.subtract, 1.0, x))
    return apply(e.log, odds, grad_name="LogitBackward0")


def sinc(input: Operand) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0, where its Taylor series gives the derivatives.

    Example:
        >>> sinc(tensor([0.0, 1.0]))
        tensor([1.0000e+00, -8.7423e-08])
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
    if kind == "f":
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


absolute, negative = abs, neg


def constant_like(x: Tensor, value: float) -> float | int | bool:
    """A number in the kind of x's dtype."""
    return scalar_of(value, array_dtype(x))
