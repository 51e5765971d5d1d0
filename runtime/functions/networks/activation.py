"""Activations, under the names of torch.nn.functional; softmax and its logarithm."""

from __future__ import annotations

import math
from typing import Any

from ....tracer.errors import ArgumentError, DTypeError, ShapeError
from ....tracer.ops import composite as c
from ....tracer.ops import elementwise as e
from ....tracer.spec import BOOL, normalised_dim
from ....tracer.trace import is_tracing
from ...tape.apply import apply
from ...values.modes import is_recording
from ...values.tensor import Tensor
from ..common import (
    Operand,
    array_dtype,
    as_dtype,
    fail,
    floating,
    numpy_dtype,
    numpy_names,
    one_dim,
    placed,
    require_float,
    tensor,
)  # fmt: skip
from ..shapes.parts import part

__all__ = [
    "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
    "log_softmax", "logsigmoid", "mish", "prelu", "relu", "relu6", "selu", "silu", "softmax", "softmin",
    "softplus", "softshrink", "softsign", "tanhshrink", "threshold",
]  # fmt: skip

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
"""The fixed point of zero mean and unit variance: Klambauer et al., Self-Normalizing Neural Networks
(2017)."""


def relu(input: Tensor) -> Tensor:
    """max(x, 0); the derivative at 0 is 0.

    Example:
        >>> relu(tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    x = tensor(input, "relu")
    if array_dtype(x) == BOOL:
        fail(DTypeError, "Boolean inputs not supported for relu. A mask stays itself.")
    return apply(e.relu, x)


def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x where positive, else negative_slope * x.

    Example:
        >>> leaky_relu(tensor([-1.0, 2.0]))
        tensor([-0.0100,  2.0000])
    """
    x = floating(input, "leaky_relu")
    below = apply(e.multiply, x, float(negative_slope))
    return apply(e.where, apply(e.greater, x, 0.0), x, below, grad_name="LeakyReluBackward0")


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where positive, else weight * x; a weight for each channel (dimension 1), or one for all.

    Example:
        >>> prelu(tensor([-1.0, 2.0]), tensor([0.25]))
        tensor([-0.2500,  2.0000])
    """
    x, slope = floating(input, "prelu"), floating(weight, "prelu", "weight")
    if slope.ndim > 1 or (slope.numel() > 1 and not x.ndim):
        fail(
            ShapeError,
            f"prelu: Expected `weight` to be a scalar or 1D tensor, for an input of {x.ndim} dimensions, but "
            f"got: ndim = {slope.ndim}",
        )
    if slope.numel() > 1 and x.ndim > 1:
        slope = slope.reshape(-1, *(1,) * (x.ndim - 2))
    elif not x.ndim and slope.numel() == 1:
        slope = slope.reshape(())
    return apply(
        e.where, apply(e.greater, x, 0.0), x, apply(e.multiply, x, slope), grad_name="PreluKernelBackward0"
    )


def _exponential_below(x: Tensor, alpha: float, scale: float, input_scale: float, grad_name: str) -> Tensor:
    """scale * (x where positive, else alpha * (exp(input_scale * x) - 1)).

    The exponential sees no positive x, where it would overflow and make the gradient nan.
    """
    below = apply(e.clamp, x, -math.inf, 0.0)
    if input_scale != 1:
        below = apply(e.multiply, below, input_scale)
    curve = apply(e.expm1, below)
    if is_tracing() or (x.requires_grad and is_recording()):
        # Its derivative keeps its digits where it is small, as expm1(x) + 1 does not.
        curve = apply(e.in_place_of, apply(e.exp, below), curve)
    curve = apply(e.multiply, curve, alpha * scale)
    line = x if scale == 1 else apply(e.multiply, x, scale)
    return apply(e.where, apply(e.greater, x, 0.0), line, curve, grad_name=grad_name)


def elu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """x where positive, else alpha * (exp(x) - 1).

    Example:
        >>> elu(tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return _exponential_below(floating(input, "elu"), alpha, 1.0, 1.0, "EluBackward0")


def selu(input: Tensor) -> Tensor:
    """`elu` with the scales that keep zero mean and unit variance (Klambauer et al., 2017).

    Example:
        >>> selu(tensor([-1.0, 2.0]))
        tensor([-1.1113,  2.1014])
    """
    return _exponential_below(floating(input, "selu"), SELU_ALPHA, SELU_SCALE, 1.0, "EluBackward0")


def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """x where positive, else alpha * (exp(x / alpha) - 1).

    Example:
        >>> celu(tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return _exponential_below(floating(input, "celu"), alpha, 1.0, 1.0 / alpha, "CeluBackward0")


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * Phi(x), Phi the normal distribution's: by erf, or approximately by tanh.

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units (2016).

    Raises:
        ArgumentError: approximate is neither "none" nor "tanh".

    Example:
        >>> gelu(tensor([-1.0, 2.0]))
        tensor([-0.1587,  1.9545])
    """
    x = floating(input, "gelu")
    if approximate == "none":
        gate = apply(e.erf, apply(e.multiply, x, math.sqrt(0.5)))
    elif approximate == "tanh":
        cubic = apply(e.multiply, apply(e.multiply, apply(e.square, x), x), 0.044715)
        gate = apply(e.tanh, apply(e.multiply, apply(e.add, x, cubic), math.sqrt(2.0 / math.pi)))
    else:
        fail(ArgumentError, f"gelu: approximate argument must be either none or tanh, found {approximate!r}.")
    half = apply(e.multiply, x, 0.5)
    return apply(e.multiply, half, apply(e.add, gate, 1.0), grad_name="GeluBackward0")


def silu(input: Tensor) -> Tensor:
    """x * sigmoid(x).

    Example:
        >>> silu(tensor([-1.0, 2.0]))
        tensor([-0.2689,  1.7616])
    """
    x = floating(input, "silu")
    return apply(e.multiply, x, apply(e.sigmoid, x), grad_name="SiluBackward0")


def mish(input: Tensor) -> Tensor:
    """x * tanh(softplus(x)).

    Example:
        >>> mish(tensor([-1.0, 2.0]))
        tensor([-0.3034,  1.9440])
    """
    x = floating(input, "mish")
    return apply(e.multiply, x, apply(e.tanh, apply(e.softplus, x)), grad_name="MishBackward0")


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold.

    Example:
        >>> softplus(tensor([0.0]))
        tensor([0.6931])
    """
    x = floating(input, "softplus")
    scaled = x if beta == 1 else apply(e.multiply, x, float(beta))
    smooth = apply(e.softplus, scaled)
    if beta != 1:
        smooth = apply(e.divide, smooth, float(beta))
    return apply(
        e.where, apply(e.greater, scaled, float(threshold)), x, smooth, grad_name="SoftplusBackward0"
    )


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)) without overflow.

    Example:
        >>> logsigmoid(tensor([0.0]))
        tensor([-0.6931])
    """
    x = floating(input, "logsigmoid")
    return apply(e.negative, apply(e.softplus, apply(e.negative, x)), grad_name="LogSigmoidBackward0")


def _between(x: Tensor, low: float, high: float, grad_name: str) -> Tensor:
    """x held between low and high; unlike clamp it passes no gradient on the bounds."""
    above = apply(e.where, apply(e.greater_equal, x, high), high, x)
    return apply(e.where, apply(e.less_equal, x, low), low, above, grad_name=grad_name)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x held between min_val and max_val; the derivative on the bounds is 0.

    Example:
        >>> hardtanh(tensor([-2.0, 0.5, 2.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        fail(ArgumentError, f"hardtanh: min_val {min_val} cannot be greater than max_val {max_val}")
    x = tensor(input, "hardtanh")
    if array_dtype(x).kind in "iu":
        return apply(e.minimum, apply(e.maximum, x, int(min_val)), int(max_val))
    return _between(floating(x, "hardtanh"), float(min_val), float(max_val), "HardtanhBackward0")


def relu6(input: Tensor) -> Tensor:
    """x held between 0 and 6; the derivative on the bounds is 0.

    Example:
        >>> relu6(tensor([-1.0, 7.0]))
        tensor([0., 6.])
    """
    return hardtanh(input, 0.0, 6.0)


def hardsigmoid(input: Tensor) -> Tensor:
    """x / 6 + 1/2 held between 0 and 1.

    Example:
        >>> hardsigmoid(tensor([-3.0, 0.0, 3.0]))
        tensor([0.0000, 0.5000, 1.0000])
    """
    x = apply(e.add, floating(input, "hardsigmoid"), 3.0)
    return apply(e.divide, _between(x, 0.0, 6.0, "HardtanhBackward0"), 6.0, grad_name="HardsigmoidBackward0")


def hardswish(input: Tensor) -> Tensor:
    """x * hardsigmoid(x).

    Example:
        >>> hardswish(tensor([-3.0, 1.0, 3.0]))
        tensor([-0.0000, 0.6667, 3.0000])
    """
    x = floating(input, "hardswish")
    return apply(e.multiply, x, hardsigmoid(x), grad_name="HardswishBackward0")


def softsign(input: Tensor) -> Tensor:
    """`x / (1 + |x|)`.

    Example:
        >>> softsign(tensor([-1.0, 1.0]))
        tensor([-0.5000,  0.5000])
    """
    x = floating(input, "softsign")
    return apply(e.divide, x, as_dtype(apply(e.add, apply(e.absolute, x), 1.0), array_dtype(x)))


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    Example:
        >>> tanhshrink(tensor([0.0]))
        tensor([0.])
    """
    x = floating(input, "tanhshrink")
    return apply(e.subtract, x, apply(e.tanh, x))


def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """x where above the threshold, else the value.

    Example:
        >>> threshold(tensor([0.5, 2.0]), 1.0, 0.0)
        tensor([0., 2.])
    """
    x = tensor(input, "threshold")
    if array_dtype(x).kind in "iu":
        return apply(e.where, apply(e.greater, x, int(threshold)), x, int(value))
    x = floating(x, "threshold")
    return apply(
        e.where, apply(e.greater, x, float(threshold)), x, float(value), grad_name="ThresholdBackward0"
    )


@numpy_names
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along a dimension times the sigmoid of the second.

    Example:
        >>> glu(tensor([2.0, 0.0]))
        tensor([1.])
    """
    x = floating(input, "glu")
    place = one_dim(dim, x.ndim, "glu")
    extent = x.shape[place] if x.ndim else 1
    if extent % 2:
        fail(
            ArgumentError,
            f"glu(): Halving dimension must be even, but dimension {dim} of shape {tuple(x.shape)} is not",
        )
    value, gate = (part(x, place, start, start + extent // 2) for start in (0, extent // 2))
    return apply(e.multiply, value, apply(e.sigmoid, gate), grad_name="GluBackward0")


# --- softmax ------------------------------------------------------------------------------------------


def _along_one_dim(operator: Any, input: Operand, dim: int | None, dtype: Any, function: str) -> Tensor:
    x = tensor(input, function)
    if dtype is not None:
        x = as_dtype(x, numpy_dtype(dtype))
    require_float(x, function)
    if dim is None:
        fail(ArgumentError, f"{function}(): say along which dimension: dim=-1 for the last.")
    place = int(placed(lambda: normalised_dim(dim, x.ndim, function)))
    if not x.numel():
        return x
    if not x.ndim:
        return apply(operator, x.reshape(1), dim=0).reshape(())
    return apply(operator, x, dim=place)


@numpy_names
def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """exp(x) over its sum along a dimension, without overflow.

    Args:
        input: a floating tensor.
        dim: the dimension whose elements add up to 1.
        dtype: what to convert to first.

    Raises:
        DTypeError: the tensor is not floating.
        DimensionError: there is no such dimension.

    Example:
        >>> softmax(tensor([0.0, 0.0]), dim=0)
        tensor([0.5000, 0.5000])
    """
    return _along_one_dim(c.softmax, input, dim, dtype, "softmax")


@numpy_names
def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The logarithm of `softmax`, without overflow and exact for small probabilities.

    Example:
        >>> log_softmax(tensor([0.0, 0.0]), dim=0)
        tensor([-0.6931, -0.6931])
    """
    return _along_one_dim(c.log_softmax, input, dim, dtype, "log_softmax")


@numpy_names
def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """softmax of -x.

    Example:
        >>> softmin(tensor([0.0, 0.0]), dim=0)
        tensor([0.5000, 0.5000])
    """
    return softmax(-tensor(input, "softmin"), dim, dtype)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x where `|x| > lambd`, else 0.

    Example:
        >>> hardshrink(tensor([-1.0, 0.2]))
        tensor([-1.,  0.])
    """
    x = floating(input, "hardshrink")
    above, below = apply(e.less_equal, x, float(lambd)), apply(e.greater_equal, x, -float(lambd))
    return apply(e.where, apply(e.logical_and, above, below), 0.0, x)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, and 0 where it would pass it.

    Example:
        >>> softshrink(tensor([-1.0, 0.2]))
        tensor([-0.5000,  0.0000])
    """
    if lambd < 0:
        fail(ArgumentError, f"lambda must be greater or equal to 0, but found to be {lambd}.")
    x = floating(input, "softshrink")
    bound = float(lambd)
    near = apply(e.multiply, x, 0.0)  # nan stays nan
    found = apply(e.where, apply(e.greater, x, bound), apply(e.subtract, x, bound), near)
    return apply(e.where, apply(e.less, x, -bound), apply(e.add, x, bound), found)
