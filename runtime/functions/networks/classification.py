"""Losses of classes: negative log-likelihoods and cross entropies, under the names of torch.nn.functional."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, DimensionError, DTypeError, ShapeError
from ....tracer.ops import elementwise as e
from ....tracer.ops import indexing as x_ops
from ....tracer.ops import special
from ....tracer.spec import INT64
from ....tracer.trace import is_tracing
from ...tape.apply import apply, unwrap
from ...values.tensor import Tensor
from ..common import (
    array_dtype,
    as_dtype,
    elementwise,
    fail,
    floating,
    iota,
    require_broadcast,
    require_float,
    tensor,
)  # fmt: skip
from ..declared import sum
from ..elements.arithmetic import float_pair
from ..matrices.contraction import linear
from ..shapes.movement import movedim, reshape_to
from .activation import log_softmax
from .losses import reduced, takes_old_options, titled, weighted

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "linear_cross_entropy",
    "nll_loss",
]  # fmt: skip

EXCLUDED = -100
"""PyTorch's default for the class that `ignore_index` leaves out."""


@takes_old_options
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = EXCLUDED,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log-probability of the right class; see `cross_entropy`.

    Args:
        input: log-probabilities, shape (classes,), (n, classes) or (n, classes, ...).
        target: classes, integers of shape (), (n,) or (n, ...).
        weight: a factor for each class.
        ignore_index: a class whose samples do not count.
        reduction: "none", "mean" (over the weights that count) or "sum".

    Raises:
        DTypeError: the input does not hold floats, or the target no integers. ShapeError: the shapes do not
            fit. DimensionError: a class out of bounds, where the values are known.

    Example:
        >>> nll_loss(tensor([[-1.0, -2.0]]), tensor([1]))
        tensor(2.)
    """
    logs = tensor(input, "nll_loss")
    require_float(logs, "nll_loss")
    scores, classes = _classes_last(logs, tensor(target, "nll_loss", "target"), "nll_loss")
    losses, weights = _picked(scores, classes, weight, ignore_index, "nll_loss")
    if reduction == "mean" and weights is not None:
        total = apply(e.divide, sum(losses), sum(weights), grad_name="NllLossBackward0")
        return total
    return titled(losses, reduction, "NllLossBackward0")


def _classes_last(scores: Tensor, target: Tensor, function: str) -> tuple[Tensor, Tensor]:
    """The scores with the classes as last dimension, and the target, which has the shape of the rest."""
    if array_dtype(target).kind not in "iu":
        fail(
            DTypeError,
            f"{function}(): expected integers as target classes, found {target.dtype}. Convert it with "
            ".long().",
        )
    if scores.ndim > 2:
        scores = movedim(scores, 1, -1)
    if scores.ndim == 1 and tuple(target._value.shape) == (1,):
        target = reshape_to(target, ())
    if not scores.ndim or tuple(scores._value.shape[:-1]) != tuple(target._value.shape):
        fail(
            ShapeError,
            f"{function}(): Expected target of shape {tuple(scores._value.shape[:-1])}, one class for each "
            f"sample of the input, found {tuple(target.shape)}",
        )
    return scores, as_dtype(target, INT64)


def _picked(
    scores: Tensor, classes: Tensor, weight: Tensor | None, ignored: int, function: str
) -> tuple[Tensor, Tensor | None]:
    """-scores of the right class times its weight, and the weights; None if all are 1."""
    counts: Tensor | None = None
    values = unwrap(classes)
    known = isinstance(values, np.ndarray) and not is_tracing()
    if known:
        _require_classes(values, scores._value.shape[-1], ignored)
    if (
        (not known and ignored >= 0)
        or (known and bool((values == ignored).any()))
        or (is_tracing() and ignored < 0)
    ):
        counts = apply(e.not_equal, classes, ignored)
        classes = apply(e.where, counts, classes, 0)
    losses = apply(e.negative, _of_class(scores, classes))
    if counts is not None:
        losses = apply(e.where, counts, losses, 0.0)
        counts = as_dtype(counts, array_dtype(scores))
    if weight is not None:
        factors = apply(
            x_ops.gather, as_dtype(tensor(weight, function, "weight"), array_dtype(scores)), classes
        )
        counts = factors if counts is None else apply(e.multiply, factors, counts)
        losses = apply(e.multiply, losses, factors)
    return losses, counts


def _require_classes(values: np.ndarray, count: int, ignored: int) -> None:
    wrong = (values < 0) | (values >= count)
    wrong &= values != ignored
    if wrong.any():
        fail(
            DimensionError, f"Target {int(values[wrong][0])} is out of bounds: classes are 0 to {count - 1}."
        )


def _of_class(scores: Tensor, classes: Tensor) -> Tensor:
    """scores[..., class]"""
    count = scores._value.shape[-1]
    rows = classes.numel()
    flat = reshape_to(scores, (rows, count))
    picked = apply(x_ops.gather, flat, iota(rows), reshape_to(classes, (rows,)))
    return reshape_to(picked, tuple(classes._value.shape))


@takes_old_options
def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = EXCLUDED,
    reduction: str = "mean", label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """Minus the log of softmax's probability of the right class, or of a distribution over classes.

    Args:
        input: scores, shape (classes,), (n, classes) or (n, classes, ...).
        target: classes, integers of shape (), (n,) or (n, ...); or probabilities, of the input's shape.
        weight: a factor for each class.
        ignore_index: a class whose samples do not count.
        reduction: "none", "mean" or "sum".
        label_smoothing: the part of the target that is spread evenly over all classes.

    Raises:
        ShapeError: the shapes do not fit. DimensionError: a class out of bounds, where the values are known.

    Example:
        >>> cross_entropy(tensor([[0.0, 0.0]]), tensor([1]))
        tensor(0.6931)
    """
    scores, wanted = floating(input, "cross_entropy"), tensor(target, "cross_entropy", "target")
    if not 0 <= label_smoothing <= 1:
        fail(ArgumentError, f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    logs = log_softmax(scores, 1 if scores.ndim > 1 else 0)
    if array_dtype(wanted).kind == "f":
        return _soft_cross_entropy(logs, wanted, weight, reduction, label_smoothing)
    if not label_smoothing:
        return nll_loss(logs, wanted, weight, ignore_index, reduction)
    return _smoothed(logs, wanted, weight, ignore_index, reduction, label_smoothing)


def linear_cross_entropy(
    input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
    weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
    label_smoothing: float = 0.0, options: Any = None,
) -> Tensor:  # fmt: skip
    """`cross_entropy` of `linear(input, linear_weight, linear_bias)`.

    Args:
        input: shape (features,) or (n, features).
        linear_weight: shape (classes, features) or (classes, ..., features).
        linear_bias: shape (classes,) or (classes, ...).
        target, weight, reduction, ignore_index, label_smoothing: see `cross_entropy`.
        options: how PyTorch saves memory, of which the result does not depend.

    Raises:
        ShapeError: the shapes do not fit.

    Example:
        >>> linear_cross_entropy(tensor([[1.0]]), tensor([[0.0], [0.0]]), tensor([1]))
        tensor(0.6931)
    """
    x = tensor(input, "linear_cross_entropy")
    rows = tensor(linear_weight, "linear_cross_entropy", "linear_weight")
    if x.ndim not in (1, 2) or rows.ndim < 2 or (x.ndim == 1 and rows.ndim > 2):
        fail(
            ShapeError,
            "linear_cross_entropy(): input is (features,) or (n, features), of which the latter alone goes "
            f"with a linear_weight of more dimensions than 2: found {tuple(x.shape)} and {tuple(rows.shape)}",
        )
    sizes = (*x.shape[:-1], *rows.shape[:-1])
    flat = reshape_to(rows, (math.prod(rows.shape[:-1]), rows.shape[-1]))
    bias = None if linear_bias is None else reshape_to(linear_bias, (flat.shape[0],))
    if ignore_index is not None and target.is_floating_point():
        fail(ArgumentError, "linear_cross_entropy(): probabilities as target have no ignore_index")
    scores = reshape_to(linear(x, flat, bias), sizes)
    excluded = EXCLUDED if ignore_index is None else ignore_index
    return cross_entropy(scores, target, weight, excluded, reduction, label_smoothing)


def _weighted_classes(logs: Tensor, weight: Tensor | None) -> Tensor:
    """logs times the weight of each class, the classes being the last dimension."""
    if weight is None:
        return logs
    return elementwise(e.multiply, logs, tensor(weight, "cross_entropy", "weight"), function="cross_entropy")


def _soft_cross_entropy(
    logs: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float
) -> Tensor:
    if tuple(logs._value.shape) != tuple(target._value.shape):
        fail(
            ShapeError,
            "cross_entropy(): a floating target holds probabilities and needs the input's shape "
            f"{tuple(logs.shape)}, found {tuple(target.shape)}. Classes are integers.",
        )
    if logs.ndim > 2:
        logs, target = movedim(logs, 1, -1), movedim(target, 1, -1)
    count = logs._value.shape[-1]
    if smoothing:
        target = apply(e.add, apply(e.multiply, target, 1.0 - smoothing), smoothing / count)
    products = elementwise(e.multiply, _weighted_classes(logs, weight), target, function="cross_entropy")
    losses = apply(e.negative, sum(products, -1))
    if reduction == "mean" and losses.ndim:
        return apply(e.divide, sum(losses), losses.numel(), grad_name="DivBackward1")
    return reduced(losses, "sum" if reduction == "mean" else reduction, "cross_entropy")


def _smoothed(
    logs: Tensor, target: Tensor, weight: Tensor | None, ignored: int, reduction: str, smoothing: float
) -> Tensor:
    """(1 - s) * the loss of the right class + s / classes * the losses of all."""
    scores, classes = _classes_last(logs, target, "cross_entropy")
    losses, weights = _picked(scores, classes, weight, ignored, "cross_entropy")
    spread = apply(e.negative, sum(_weighted_classes(scores, weight), -1))
    counted = as_dtype(apply(e.not_equal, classes, ignored), array_dtype(scores))
    spread = apply(e.multiply, spread, counted)
    share = smoothing / scores._value.shape[-1]
    total = apply(e.add, apply(e.multiply, losses, 1.0 - smoothing), apply(e.multiply, spread, share))
    if reduction == "mean":
        return apply(e.divide, sum(total), sum(counted if weights is None else weights))
    return reduced(total, reduction, "cross_entropy")


@takes_old_options
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """-(t * log(p) + (1 - t) * log(1 - p)) of probabilities p, the logarithms held above -100.

    Raises:
        ShapeError: the shapes differ. ArgumentError: a probability outside [0, 1], where the values are
            known.

    Example:
        >>> binary_cross_entropy(tensor([0.5]), tensor([1.0]))
        tensor(0.6931)
    """
    p, t = _same_shapes(input, target, "binary_cross_entropy")
    values = unwrap(p)
    if isinstance(values, np.ndarray) and values.size and not (values.min() >= 0 and values.max() <= 1):
        fail(
            ArgumentError,
            "binary_cross_entropy: all elements of input should be between 0 and 1; see sigmoid().",
        )
    losses = apply(special.binary_cross_entropy, p, t)
    return titled(weighted(losses, weight), reduction, "BinaryCrossEntropyBackward0")


def _same_shapes(input: Tensor, target: Tensor, function: str) -> tuple[Tensor, Tensor]:
    x, t = tensor(input, function), tensor(target, function, "target")
    if tuple(x._value.shape) != tuple(t._value.shape):
        fail(
            ShapeError,
            f"{function}: Target size ({tuple(t.shape)}) must be the same as input size ({tuple(x.shape)})",
        )
    return float_pair(function, x, t)


@takes_old_options
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """`binary_cross_entropy` of sigmoid(x), without overflow; pos_weight is a factor of the positive class.

    Example:
        >>> binary_cross_entropy_with_logits(tensor([0.0]), tensor([1.0]))
        tensor(0.6931)
    """
    x, t = _same_shapes(input, target, "binary_cross_entropy_with_logits")
    rest = apply(e.multiply, apply(e.subtract, 1.0, t), x)
    tail = apply(e.softplus, apply(e.negative, x))
    if pos_weight is not None:
        require_broadcast("binary_cross_entropy_with_logits", [x, pos_weight])
        factor = apply(e.add, apply(e.multiply, t, apply(e.subtract, pos_weight, 1.0)), 1.0)
        tail = apply(e.multiply, tail, factor)
    losses = weighted(apply(e.add, rest, tail), weight)
    return titled(losses, reduction, "BinaryCrossEntropyWithLogitsBackward0")
