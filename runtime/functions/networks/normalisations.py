"""Normalisations, under the names of torch.nn.functional."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError
from ....tracer.ops import composite as c
from ....tracer.ops import elementwise as e
from ...tape.apply import apply
from ...values.modes import no_grad
from ...values.tensor import Tensor
from ..common import array_dtype, as_dtype, at_least_single, elementwise, fail, floating, require_real
from ..elements.arithmetic import pow
from ..reductions.reduction import mean
from ..selections.assignment import copy_
from ..shapes.movement import reshape_to
from ..shapes.padding import padded
from ..shapes.parts import part

__all__ = [
    "batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm",
]  # fmt: skip


def layer_norm(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None,
    bias: Tensor | None = None, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(variance + eps) over the last dimensions, times weight, plus bias. Source: Ba et al.
    (2016).

    Args:
        input: a floating tensor.
        normalized_shape: the sizes of the last dimensions, which are normalised together.
        weight, bias: of that shape.

    Raises:
        ShapeError: the input does not end in that shape.

    Example:
        >>> layer_norm(tensor([1.0, 3.0]), (2,))
        tensor([-1.0000,  1.0000])
    """
    x = require_real(floating(input, "layer_norm"), "layer_norm")
    dims = _last_dims(x, normalized_shape, "layer_norm")
    precise = at_least_single(x)
    centred = apply(e.subtract, precise, mean(precise, dims, True))
    spread = apply(c.var, precise, dims=dims, keepdim=True, correction=0)
    scale = apply(e.rsqrt, apply(e.add, spread, float(eps)))
    found = apply(e.multiply, centred, scale, grad_name="NativeLayerNormBackward0")
    return _affine(as_dtype(found, array_dtype(x)), weight, bias, "layer_norm")


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None, function: str) -> Tensor:
    name = "NativeLayerNormBackward0" if function == "layer_norm" else None
    if weight is not None:
        x = elementwise(e.multiply, x, weight, function=function, grad_name=name)
    return x if bias is None else elementwise(e.add, x, bias, function=function, grad_name=name)


def _last_dims(x: Tensor, shape: int | Sequence[int], function: str) -> tuple[int, ...]:
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    if not wanted or tuple(x._value.shape[-len(wanted) :]) != wanted:
        fail(
            ShapeError,
            f"{function}: Given normalized_shape={list(wanted)}, expected input with shape [*, "
            f"{', '.join(map(str, wanted))}], but got input of size {list(x.shape)}",
        )
    return tuple(range(x.ndim - len(wanted), x.ndim))


def rms_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """x / sqrt(mean(x * x) + eps) over the last dimensions, times weight. Source: Zhang and Sennrich (2019).

    Example:
        >>> rms_norm(tensor([1.0, 1.0]), (2,))
        tensor([1., 1.])
    """
    x = floating(input, "rms_norm")
    dims = _last_dims(x, normalized_shape, "rms_norm")
    smallest = float(np.finfo(array_dtype(x)).eps) if eps is None else float(eps)
    precise = at_least_single(x)
    scale = apply(e.rsqrt, apply(e.add, mean(apply(e.square, precise), dims, True), smallest))
    found = apply(e.multiply, precise, scale)
    return _affine(as_dtype(found, array_dtype(x)), weight, None, "rms_norm")


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(variance + eps) of each channel (dimension 1), times weight, plus bias.

    In training the mean and variance are the batch's, and the running ones are moved towards them, in place;
    else they are the running ones. Source: Ioffe and Szegedy (2015).

    Raises:
        ArgumentError: not training, and no running mean and variance.

    Example:
        >>> batch_norm(tensor([[1.0], [3.0]]), None, None, training=True).flatten()
        tensor([-1.0000,  1.0000])
    """
    given = require_real(floating(input, "batch_norm"), "batch_norm")
    x = at_least_single(given)
    if x.ndim < 2:
        fail(
            ShapeError,
            f"batch_norm: Expected input of at least 2 dimensions, but got input of size {list(x.shape)}",
        )
    if training:
        dims = tuple(axis for axis in range(x.ndim) if axis != 1)
        centre, spread = mean(x, dims, True), apply(c.var, x, dims=dims, keepdim=True, correction=0)
        count = x.numel() // max(x.shape[1], 1)
        if count <= 1 and x.numel():
            fail(
                ShapeError,
                "batch_norm: Expected more than 1 value per channel when training, got input size "
                f"{list(x.shape)}",
            )
        _update(running_mean, centre, momentum)
        if running_var is not None:
            _update(running_var, apply(e.multiply, spread, count / max(count - 1, 1)), momentum)
    elif running_mean is None or running_var is None:
        fail(
            ArgumentError,
            "batch_norm: Expected running_mean and running_var to be defined when training=False",
        )
    else:
        centre, spread = _per_channel(running_mean, x), _per_channel(running_var, x)
    scale = apply(e.rsqrt, apply(e.add, spread, float(eps)))
    result = apply(e.multiply, apply(e.subtract, x, centre), scale, grad_name="NativeBatchNormBackward0")
    result = as_dtype(result, array_dtype(given))
    factors: list[Any] = [None if one is None else _per_channel(one, x) for one in (weight, bias)]
    return _affine(result, factors[0], factors[1], "batch_norm")


def _per_channel(values: Tensor, x: Tensor) -> Tensor:
    return reshape_to(values, (values.numel(), *(1,) * (x.ndim - 2)))


def _update(running: Tensor | None, found: Tensor, momentum: float) -> None:
    """Move a running statistic towards that of a batch, in place."""
    if running is not None:
        with no_grad():
            latest = as_dtype(reshape_to(found._detached(), tuple(running.shape)), array_dtype(running))
            copy_(running, running * (1.0 - momentum) + latest * momentum)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(variance + eps) over each group of channels, times weight, plus bias. Source: Wu and
    He (2018).

    Args:
        input: of shape (batch, channels, ...).
        num_groups: how many groups the channels are divided into.
        weight, bias: one for each channel.

    Raises:
        ShapeError: the channels are not divisible into so many groups.

    Example:
        >>> group_norm(tensor([[1.0, 3.0]]), 1)
        tensor([[-1.0000,  1.0000]])
    """
    x = require_real(floating(input, "group_norm"), "group_norm")
    if x.ndim < 2 or num_groups < 1 or x.shape[1] % num_groups:
        fail(
            ShapeError,
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(x.shape)} and num_groups={num_groups}",
        )
    shape = tuple(x.shape)
    groups = reshape_to(x, (shape[0], num_groups, shape[1] // num_groups * math.prod(shape[2:])))
    found = reshape_to(_normalised(groups, (2,), eps), shape)
    factors = _channel_factors(x, weight, bias)
    return _affine(found, factors[0], factors[1], "group_norm")


def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(variance + eps) of each channel of each example, times weight, plus bias.

    Without `use_input_stats` by the running mean and variance, which are moved towards the batch's otherwise.
    Source: Ulyanov et al. (2016).

    Example:
        >>> instance_norm(tensor([[[1.0, 3.0]]]))
        tensor([[[-1.0000,  1.0000]]])
    """
    x = require_real(floating(input, "instance_norm"), "instance_norm")
    if not use_input_stats:
        return batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
    dims = tuple(range(2, x.ndim))
    count = int(np.prod(x.shape[2:]))
    if count <= 1:
        fail(
            ShapeError,
            "instance_norm: Expected more than 1 spatial element when training, got input size "
            f"{list(x.shape)}",
        )
    if running_mean is not None or running_var is not None:
        _update(running_mean, mean(mean(x, dims), 0), momentum)
        spread = apply(c.var, x, dims=dims, keepdim=False, correction=1)
        _update(running_var, mean(spread, 0), momentum)
    factors = _channel_factors(x, weight, bias)
    return _affine(_normalised(x, dims, eps), factors[0], factors[1], "instance_norm")


def _normalised(x: Tensor, dims: tuple[int, ...], eps: float) -> Tensor:
    precise = at_least_single(x)
    spread = apply(c.var, precise, dims=dims, keepdim=True, correction=0)
    scale = apply(e.rsqrt, apply(e.add, spread, float(eps)))
    found = apply(e.multiply, apply(e.subtract, precise, mean(precise, dims, True)), scale)
    return as_dtype(found, array_dtype(x))


def _channel_factors(x: Tensor, *factors: Tensor | None) -> list[Any]:
    return [None if one is None else _per_channel(one, x) for one in factors]


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """x / (k + alpha * the mean of the squares of `size` neighbouring channels) ** beta. Source: Krizhevsky
    et al. (2012).

    Example:
        >>> local_response_norm(tensor([[[1.0], [1.0]]]), 1, alpha=3.0, beta=0.5).flatten()
        tensor([0.5000, 0.5000])
    """
    x = require_real(floating(input, "local_response_norm"), "local_response_norm")
    if x.ndim < 3:
        fail(
            ShapeError,
            f"local_response_norm: Expected 3D or higher dimensionality input (got {x.ndim} dimensions)",
        )
    if not x.numel():
        return x
    widths = [(0, 0)] * x.ndim
    widths[1] = size // 2, (size - 1) // 2
    squares = padded(apply(e.square, x), widths, "constant", 0.0)
    channels = x.shape[1]
    total = part(squares, 1, 0, channels)
    for first in range(1, size):
        total = apply(e.add, total, part(squares, 1, first, first + channels))
    divisor = apply(e.add, apply(e.multiply, total, alpha / size), float(k))
    return apply(e.divide, x, pow(divisor, float(beta)))
