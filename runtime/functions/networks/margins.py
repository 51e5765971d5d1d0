"""Losses of margins, pairs and triplets, under the names of torch.nn.functional."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....tracer.errors import ArgumentError, DimensionError, ShapeError
from ....tracer.ops import elementwise as e
from ...tape.apply import apply
from ...values.tensor import Tensor
from ..common import as_dtype, elementwise, fail, floating, iota, tensor
from ..declared import cumsum, sum
from ..elements.arithmetic import float_pair
from ..elements.elementwise import neg
from ..matrices.distances import pairwise_distance
from ..reductions.reduction import mean
from ..selections.selection import take_along_dim
from .activation import logsigmoid
from .losses import reduced, takes_old_options

__all__ = [
    "cosine_embedding_loss", "margin_ranking_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip


@takes_old_options
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """max(0, -t * (x1 - x2) + margin), for targets 1 and -1.

    Example:
        >>> margin_ranking_loss(tensor([1.0]), tensor([2.0]), tensor([1.0]))
        tensor(1.)
    """
    a, b = float_pair("margin_ranking_loss", input1, input2)
    if not a.ndim == b.ndim == target.ndim:
        fail(
            ShapeError,
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{list(a.shape)}, input2: {list(b.shape)}, target: {list(target.shape)}",
        )
    signs = neg(tensor(target, "margin_ranking_loss", "target"))
    distance = elementwise(e.multiply, signs, apply(e.subtract, a, b), function="margin_ranking_loss")
    return reduced(apply(e.relu, apply(e.add, distance, float(margin))), reduction, "margin_ranking_loss")


@takes_old_options
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - margin) where it is -1.

    Example:
        >>> cosine_embedding_loss(tensor([[1.0, 0.0]]), tensor([[0.0, 1.0]]), tensor([1]))
        tensor(1.)
    """
    a, b = float_pair("cosine_embedding_loss", input1, input2)
    small = 1e-12
    product = sum(apply(e.multiply, a, b), -1)
    squares = [apply(e.add, sum(apply(e.square, one), -1), small) for one in (a, b)]
    cosine = apply(e.divide, product, apply(e.sqrt, apply(e.multiply, *squares)))
    alike = apply(e.where, apply(e.equal, target, 1), apply(e.subtract, 1.0, cosine), 0.0)
    apart = apply(e.relu, apply(e.subtract, cosine, float(margin)))
    unlike = apply(e.where, apply(e.equal, target, -1), apart, 0.0)
    return reduced(apply(e.add, alike, unlike), reduction, "cosine_embedding_loss")


@takes_old_options
def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """The mean over classes i of max(0, margin - x[t] + x[i]) ** p, i = t apart.

    Example:
        >>> multi_margin_loss(tensor([[1.0, 0.5]]), tensor([0]))
        tensor(0.2500)
    """
    x, t = floating(input, "multi_margin_loss"), tensor(target, "multi_margin_loss", "target")
    if p not in (1, 2):
        fail(ArgumentError, f"only p == 1 and p == 2 supported, found {p}")
    single = x.ndim < 2
    if single:
        x, t = x.reshape(1, -1), t.reshape(1)
    if x.ndim != 2 or t.ndim != 1 or x.shape[0] != t.shape[0]:
        fail(ShapeError, f"inconsistent target size: {list(t.shape)} for input of size {list(x.shape)}")
    places = t.unsqueeze(1)
    of_class = take_along_dim(x, places, 1)
    distance = apply(e.relu, apply(e.add, apply(e.subtract, x, of_class), float(margin)))
    losses = distance if p == 1 else apply(e.square, distance)
    if weight is not None:
        losses = apply(e.multiply, losses, take_along_dim(weight, t, 0).unsqueeze(1))
    is_own = apply(e.equal, iota(x.shape[1]), places)
    found = mean(apply(e.where, is_own, 0.0, losses), 1)
    return reduced(found[0] if single else found, reduction, "multi_margin_loss")


@takes_old_options
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The sum over labels j and other classes i of max(0, 1 - (x[j] - x[i])), over the number of classes.

    The labels of a row of the target end at the first -1.

    Example:
        >>> multilabel_margin_loss(tensor([[1.0, 0.5]]), tensor([[0, -1]]))
        tensor(0.2500)
    """
    x, t = floating(input, "multilabel_margin_loss"), tensor(target, "multilabel_margin_loss", "target")
    if tuple(x.shape) != tuple(t.shape):
        fail(ShapeError, f"inconsistent target size: {list(t.shape)} for input of size {list(x.shape)}")
    single = x.ndim < 2
    if single:
        x, t = x.reshape(1, -1), t.reshape(1, -1)
    count = x.shape[1]
    listed = apply(e.greater_equal, t, 0)
    open_yet = apply(e.equal, cumsum(as_dtype(apply(e.logical_not, listed), np.dtype("int64")), 1), 0)
    labels = apply(e.where, open_yet, t, 0)
    of_label = take_along_dim(x, labels, 1)
    is_class = apply(e.equal, labels.unsqueeze(2), iota(count))
    is_label = apply(e.logical_and, is_class, open_yet.unsqueeze(2))
    is_any = apply(e.greater, sum(as_dtype(is_label, np.dtype("int64")), 1), 0)
    distance = apply(e.add, apply(e.subtract, x.unsqueeze(1), of_label.unsqueeze(2)), 1.0)
    counted = apply(e.logical_and, open_yet.unsqueeze(2), apply(e.logical_not, is_any.unsqueeze(1)))
    losses = apply(e.where, counted, apply(e.relu, distance), 0.0)
    found = apply(e.divide, sum(losses, (1, 2)), max(count, 1))
    return reduced(found[0] if single else found, reduction, "multilabel_margin_loss")


@takes_old_options
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The mean over classes of the cross entropy between targets and sigmoid(x).

    Example:
        >>> multilabel_soft_margin_loss(tensor([[0.0]]), tensor([[1.0]]))
        tensor(0.6931)
    """
    x, t = float_pair("multilabel_soft_margin_loss", input, target)
    if not x.ndim:
        fail(DimensionError, "multilabel_soft_margin_loss(): the input has no dimensions, and so no classes.")
    along = x.ndim - 1  # of the input, also where a target of more dimensions is beside it
    of_ones = apply(e.multiply, t, logsigmoid(x))
    of_zeros = apply(e.multiply, apply(e.subtract, 1.0, t), logsigmoid(apply(e.negative, x)))
    losses = apply(e.negative, apply(e.add, of_ones, of_zeros))
    losses = losses if weight is None else apply(e.multiply, losses, weight)
    found = apply(e.divide, sum(losses, along), x._value.shape[along])
    return reduced(found, reduction, "multilabel_soft_margin_loss")


@takes_old_options
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0,
    eps: float = 1e-6, swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """`max(0, |a - p| - |a - n| + margin)`, in p-norms; `swap` takes the smaller of `|a - n|` and `|p - n|`.

    Source: Balntas et al. (2016).

    Example:
        >>> triplet_margin_loss(tensor([[0.0]]), tensor([[1.0]]), tensor([[3.0]]), margin=3.0)
        tensor(1.)
    """

    def distance(a: Tensor, b: Tensor) -> Tensor:
        return pairwise_distance(a, b, p, eps)

    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap, reduction=reduction
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
    swap: bool = False, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """`triplet_margin_loss` with any distance.

    Example:
        >>> a, b = tensor([[0.0]]), tensor([[1.0]])
        >>> triplet_margin_with_distance_loss(a, b, b, distance_function=lambda x, y: (x - y).abs().sum(-1))
        tensor(1.)
    """
    if margin <= 0:
        fail(ArgumentError, f"margin must be greater than 0, got {margin}")
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = apply(e.minimum, far, distance(positive, negative))
    losses = apply(e.relu, apply(e.add, apply(e.subtract, near, far), float(margin)))
    return reduced(losses, reduction, "triplet_margin_loss")
