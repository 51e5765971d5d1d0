"""Losses, under the names of torch.nn.functional; of classes in `classification`, of pairs in `margins`."""

from __future__ import annotations

import functools
import math
from typing import Any, cast

from ....tracer.errors import ArgumentError, ShapeError
from ....tracer.ops import composite as c
from ....tracer.ops import elementwise as e
from ....tracer.ops import reduction as r
from ...tape.apply import apply
from ...values.tensor import Tensor
from ..common import (
    F,
    Operand,
    elementwise,
    fail,
    floating,
    promoted,
    require_real,
)  # fmt: skip
from ..declared import sum
from ..elements.arithmetic import broadcast_float_pair, float_pair, xlogy
from ..reductions.reduction import mean

__all__ = [
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "mse_loss",
    "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss",
]  # fmt: skip


def takes_old_options(function: F) -> F:
    """Let a loss take `size_average` and `reduce`, PyTorch's options before `reduction`."""

    @functools.wraps(function)
    def call(*arguments: Any, size_average: Any = None, reduce: Any = None, **options: Any) -> Tensor:
        if size_average is not None or reduce is not None:
            mean_or_sum = "sum" if size_average is False else "mean"
            options["reduction"] = "none" if reduce is False else mean_or_sum
        return function(*arguments, **options)

    return cast(F, call)


def reduced(losses: Tensor, reduction: str, function: str) -> Tensor:
    """The losses themselves ("none"), or their "sum" or "mean"."""
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        fail(
            ArgumentError,
            f"{function}(): {reduction} is not a valid value for reduction; expected none, mean or sum",
        )
    return mean(losses) if reduction == "mean" else sum(losses)


def _shared(losses: Tensor, weight: Tensor, reduction: str, function: str) -> Tensor:
    """Losses times weights; their mean is divided by the sum of the weights."""
    if tuple(weight.shape) != tuple(losses.shape):
        fail(ShapeError, f"{function}(): Weights and input must have the same size.")
    weighted = apply(e.multiply, losses, weight)
    if reduction == "mean":
        return apply(e.divide, sum(weighted), sum(weight))
    return reduced(weighted, reduction, function)


def titled(losses: Tensor, reduction: str, title: str) -> Tensor:
    """`_reduced`, with PyTorch's name for the tape's node."""
    dims = tuple(range(losses.ndim))
    if reduction == "mean":
        return apply(c.mean, losses, dims=dims, keepdim=False, grad_name=title)
    if reduction == "sum":
        return apply(r.sum_, losses, dims=dims, keepdim=False, grad_name=title)
    return reduced(losses, reduction, title.removesuffix("Backward0"))


@takes_old_options
def mse_loss(input: Tensor, target: Operand, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The squared differences, or their mean or sum.

    Args:
        input, target: tensors that broadcast.
        reduction: "none", "mean" or "sum".
        weight: a factor for each loss; the mean is divided by their sum.

    Raises:
        ShapeError: the shapes do not broadcast. ArgumentError: another reduction.

    Example:
        >>> mse_loss(tensor([1.0, 2.0]), tensor([1.0, 4.0]))
        tensor(2.)
    """
    a, b = broadcast_float_pair("mse_loss", input, target)
    require_real(a, "mse_loss")
    losses = apply(e.square, apply(e.subtract, a, b))
    if weight is not None:
        return _shared(losses, weight, reduction, "mse_loss")
    return titled(losses, reduction, "MseLossBackward0")


@takes_old_options
def l1_loss(input: Tensor, target: Operand, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The absolute differences, or their mean or sum.

    Example:
        >>> l1_loss(tensor([1.0, 2.0]), tensor([1.0, 4.0]))
        tensor(1.)
    """
    a, b = broadcast_float_pair("l1_loss", input, target)
    losses = apply(e.absolute, apply(e.subtract, a, b))
    if weight is not None:
        return _shared(losses, weight, reduction, "l1_loss")
    return reduced(losses, reduction, "l1_loss")


def _quadratic_near_zero(distance: Tensor, width: float, scale: float) -> Tensor:
    """scale * (d*d / 2 below the width, else width * (|d| - width / 2))."""
    magnitude = apply(e.absolute, require_real(distance, "huber_loss"))
    near = apply(e.multiply, apply(e.square, distance), 0.5 * scale)
    far = apply(e.multiply, apply(e.subtract, magnitude, 0.5 * width), width * scale)
    return apply(e.where, apply(e.less, magnitude, width), near, far)


def huber_loss(
    input: Tensor, target: Operand, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """`d*d / 2` for differences below delta, else `delta * (|d| - delta / 2)`. Source: P. J. Huber (1964).

    Example:
        >>> huber_loss(tensor([0.0, 0.0]), tensor([1.0, 3.0]), reduction="none")
        tensor([0.5000, 2.5000])
    """
    if delta <= 0:
        fail(ArgumentError, f"huber_loss does not support non-positive values for delta, found {delta}.")
    a, b = float_pair("huber_loss", input, target)
    losses = _quadratic_near_zero(apply(e.subtract, a, b), float(delta), 1.0)
    return titled(weighted(losses, weight), reduction, "HuberLossBackward0")


@takes_old_options
def smooth_l1_loss(input: Tensor, target: Operand, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """`d*d / (2 beta)` for differences below beta, else `|d| - beta / 2`.

    Example:
        >>> smooth_l1_loss(tensor([0.0, 0.0]), tensor([1.0, 3.0]), reduction="none")
        tensor([0.5000, 2.5000])
    """
    if beta < 0:
        fail(ArgumentError, f"smooth_l1_loss does not support negative values for beta, found {beta}.")
    if beta == 0:
        return l1_loss(input, target, reduction)
    a, b = broadcast_float_pair("smooth_l1_loss", input, target)
    losses = _quadratic_near_zero(apply(e.subtract, a, b), float(beta), 1.0 / beta)
    return titled(losses, reduction, "SmoothL1LossBackward0")


def weighted(losses: Tensor, weight: Tensor | None) -> Tensor:
    return losses if weight is None else elementwise(e.multiply, losses, weight, function="loss")


# --- distributions and margins ------------------------------------------------------------------------------


@takes_old_options
def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """t * (log(t) - x) of log-probabilities x and probabilities t (or their logarithms).

    Example:
        >>> kl_div(tensor([-0.5]), tensor([0.0]), log_target=True, reduction="sum")
        tensor(0.5000)
    """
    x, t = float_pair("kl_div", input, target)
    require_real(x, "kl_div")
    if log_target:
        losses = apply(e.multiply, apply(e.exp, t), apply(e.subtract, t, x))
    else:
        losses = apply(e.subtract, xlogy(t, t), apply(e.multiply, t, x))
    if reduction == "batchmean":
        return apply(e.divide, sum(losses), x._value.shape[0])
    return reduced(losses, reduction, "kl_div")


@takes_old_options
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Minus the log-likelihood of counts under a Poisson distribution of (the exponential of) the given rate.

    `full` adds Stirling's approximation of log(t!) for t above 1.

    Example:
        >>> poisson_nll_loss(tensor([0.0]), tensor([1.0]))
        tensor(1.)
    """
    x, t = float_pair("poisson_nll_loss", input, target)
    require_real(x, "poisson_nll_loss")
    if log_input:
        losses = apply(e.subtract, apply(e.exp, x), apply(e.multiply, t, x))
    else:
        losses = apply(e.subtract, x, apply(e.multiply, t, apply(e.log, apply(e.add, x, float(eps)))))
    if full:
        large = apply(e.greater, t, 1.0)
        safe = apply(e.where, large, t, 1.0)
        log_safe = apply(e.log, safe)
        stirling = safe * log_safe - safe + 0.5 * (log_safe + math.log(2.0 * math.pi))
        losses = apply(e.add, losses, apply(e.where, large, stirling, 0.0))
    return reduced(losses, reduction, "poisson_nll_loss")


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Operand,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Minus the log-likelihood of the target under normal distributions of the given means and variances.

    The variance is held above eps, with no gradient through that.

    Example:
        >>> gaussian_nll_loss(tensor([0.0]), tensor([1.0]), tensor([1.0]))
        tensor(0.5000)
    """
    if isinstance(var, Tensor) and input.ndim and tuple(var.shape) == tuple(input.shape[:-1]):
        var = var.unsqueeze(-1)  # one for each row
    x, t, spread = promoted("gaussian_nll_loss", floating(input, "gaussian_nll_loss"), target, var)
    spread = spread if isinstance(spread, Tensor) else apply(e.add, apply(e.zeros_like, x), spread)
    held = apply(
        e.add, spread, apply(e.stop_gradient, apply(e.maximum, apply(e.subtract, float(eps), spread), 0.0))
    )
    distance = apply(e.divide, apply(e.square, apply(e.subtract, x, t)), held)
    losses = apply(e.multiply, apply(e.add, apply(e.log, held), distance), 0.5)
    if full:
        losses = apply(e.add, losses, 0.5 * math.log(2.0 * math.pi))
    return reduced(losses, reduction, "gaussian_nll_loss")


@takes_old_options
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1.

    Example:
        >>> hinge_embedding_loss(tensor([0.5, 0.5]), tensor([1.0, -1.0]))
        tensor(0.5000)
    """
    x, t = float_pair("hinge_embedding_loss", input, target)
    far = apply(e.relu, apply(e.subtract, float(margin), x))
    near = apply(e.where, apply(e.not_equal, t, -1.0), x, 0.0)
    losses = apply(e.add, near, apply(e.where, apply(e.not_equal, t, 1.0), far, 0.0))
    return reduced(losses, reduction, "hinge_embedding_loss")


@takes_old_options
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-t * x)) for targets 1 and -1.

    Example:
        >>> soft_margin_loss(tensor([0.0]), tensor([1.0]))
        tensor(0.6931)
    """
    x, t = float_pair("soft_margin_loss", input, target)
    losses = apply(e.softplus, apply(e.negative, apply(e.multiply, t, x)))
    return titled(losses, reduction, "SoftMarginLossBackward0")
