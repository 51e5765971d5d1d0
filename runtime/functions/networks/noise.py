"""Functions that draw random numbers: dropout and its kin, noisy activations."""

from __future__ import annotations

import math
from typing import Any

from ....tracer.errors import ArgumentError, UnsupportedError
from ....tracer.ops import elementwise as e
from ...tape.apply import apply
from ...tensors.sampling import rand
from ...values.tensor import Tensor
from ..common import array_dtype, fail, filled, floating, tensor
from ..reductions.reduction import max as largest
from ..selections.scattering import scatter
from .activation import SELU_ALPHA, SELU_SCALE, leaky_relu, softmax

__all__ = [
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
    "feature_dropout", "gumbel_softmax", "rrelu",
]  # fmt: skip


def _drawn(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Uniform random numbers."""
    return rand(shape, dtype=like.dtype)


def _checked(input: Tensor, p: float, inplace: bool, function: str) -> Tensor:
    if not 0 <= p <= 1:
        fail(ArgumentError, f"dropout probability has to be between 0 and 1, but got {p}")
    if inplace:
        fail(UnsupportedError, f"{function}(): inplace is not supported. Assign the result.")
    return tensor(input, function)


def _per_channel(x: Tensor, dims: int | None = None) -> tuple[int, ...]:
    """One random number for each channel of each example; without a batch the channels come first."""
    ahead = 1 if dims is not None and x.ndim == dims + 1 else 2
    return (*x.shape[:ahead], *(1,) * (x.ndim - ahead))


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability p, else divided by 1 - p; the input itself unless `training`.

    Example:
        >>> dropout(tensor([1.0, 2.0]), 0.5, training=False)
        tensor([1., 2.])
    """
    x = _checked(input, p, inplace, "dropout")
    return x if not training or p == 0 else _dropped(x, p, tuple(x.shape))


def _dropped(x: Tensor, p: float, shape: tuple[int, ...]) -> Tensor:
    x = floating(x, "dropout")
    kept = apply(e.greater_equal, _drawn(shape, x), p)
    return apply(e.where, kept, apply(e.multiply, x, 1 / (1 - p) if p < 1 else 0.0), 0.0)


def feature_dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels: dimension 1.

    Example:
        >>> feature_dropout(tensor([[[1.0, 2.0]]]), 0.5, training=False)
        tensor([[[1., 2.]]])
    """
    x = _checked(input, p, inplace, "feature_dropout")
    return x if not training or p == 0 else _dropped(x, p, _per_channel(x))


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of (batch, channels, length), or without batch.

    Example:
        >>> dropout1d(tensor([[1.0, 2.0]]), 0.0)
        tensor([[1., 2.]])
    """
    x = _checked(input, p, inplace, "dropout1d")
    return x if not training or p == 0 else _dropped(x, p, _per_channel(x, 1))


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels: dimension 1 of (batch, channels, height, width).

    Example:
        >>> dropout2d(tensor([[[[1.0, 2.0]]]]), 0.0)
        tensor([[[[1., 2.]]]])
    """
    return feature_dropout(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels: dimension 1 of (batch, channels, depth, height, width).

    Example:
        >>> dropout3d(tensor([[[[[1.0, 2.0]]]]]), 0.0)
        tensor([[[[[1., 2.]]]]])
    """
    return feature_dropout(input, p, training, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of what `selu` gives. Source: Klambauer et al. (2017).

    Example:
        >>> alpha_dropout(tensor([1.0, 2.0]))
        tensor([1., 2.])
    """
    x = _checked(input, p, inplace, "alpha_dropout")
    return x if not training or p == 0 else _alpha_dropped(x, p, tuple(x.shape))


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels: dimension 1.

    Example:
        >>> feature_alpha_dropout(tensor([[[1.0, 2.0]]]))
        tensor([[[1., 2.]]])
    """
    x = _checked(input, p, inplace, "feature_alpha_dropout")
    return x if not training or p == 0 else _alpha_dropped(x, p, _per_channel(x))


def _alpha_dropped(x: Tensor, p: float, shape: tuple[int, ...]) -> Tensor:
    x = floating(x, "alpha_dropout")
    if p == 1:
        return apply(e.multiply, x, 0.0)
    low = -SELU_ALPHA * SELU_SCALE
    scale = 1.0 / math.sqrt((low * low * p + 1.0) * (1.0 - p))
    kept = apply(e.greater_equal, _drawn(shape, x), p)
    chosen = apply(e.where, kept, x, low)
    return apply(e.add, apply(e.multiply, chosen, scale), -low * p * scale)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    inplace: bool = False,
) -> Tensor:  # fmt: skip
    """x where positive, else x times a random number between the two; their mean unless `training`.

    Example:
        >>> rrelu(tensor([-1.0, 2.0]), 0.25, 0.75)
        tensor([-0.5000,  2.0000])
    """
    x = floating(_checked(input, 0.0, inplace, "rrelu"), "rrelu")
    if lower > upper:
        fail(
            ArgumentError,
            f"rrelu: Lower bound should be less than or equal to the upper bound: {lower}, {upper}",
        )
    if not training:
        return leaky_relu(x, (lower + upper) / 2)
    slope = apply(e.add, apply(e.multiply, _drawn(tuple(x.shape), x), upper - lower), lower)
    return apply(e.where, apply(e.greater, x, 0.0), x, apply(e.multiply, x, slope))


def gumbel_softmax(
    logits: Tensor, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Random shares that are nearly one-hot; with `hard` one-hot, with the gradient of the shares. Source:
    Jang et al. (2016).

    Example:
        >>> gumbel_softmax(tensor([[0.0, 100.0]]), hard=True)
        tensor([[0., 1.]])
    """
    x = floating(logits, "gumbel_softmax", "logits")
    uniform = apply(e.maximum, _drawn(tuple(x.shape), x), 1e-20)
    noise = apply(e.negative, apply(e.log, apply(e.negative, apply(e.log, uniform))))
    shares = softmax(apply(e.divide, apply(e.add, x, noise), float(tau)), dim)
    if not hard:
        return shares
    index: Any = largest(shares, dim, True).indices
    chosen = scatter(filled(tuple(x.shape), 0, array_dtype(x)), dim, index, 1.0)
    return apply(e.add, apply(e.subtract, chosen, shares._detached()), shares)
