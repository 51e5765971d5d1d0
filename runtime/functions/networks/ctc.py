"""The loss of connectionist temporal classification: alignments of unknown places, summed over."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError
from ....tracer.ops import elementwise as e
from ...tape.apply import apply, wrap
from ...values.tensor import Tensor
from ..common import array_dtype, as_dtype, fail, filled, floating, require_rank, tensor
from ..declared import sum
from ..reductions.reduction import mean
from ..selections.selection import take_along_dim
from ..shapes.joining import cat
from ..shapes.movement import expand_to
from ..shapes.parts import part

__all__ = ["ctc_loss"]

IMPOSSIBLE = -1e30
"""The logarithm of 0, of which differences are numbers."""


def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Minus the logarithm of the probability of target sequences, over all alignments with the inputs.

    "mean" divides by the target's lengths first. Source: Graves et al. (2006), the forward recursion. The
    gradient is the function's own, also where PyTorch's holds for results of `log_softmax` alone.

    Args:
        log_probs: logarithms of probabilities, of shape (steps, batch, classes), or without batch.
        targets: classes, of shape (batch, longest), or all one after the other.
        input_lengths, target_lengths: how many steps and classes of each example count.
        blank: the class that stands between others.
        zero_infinity: 0 where no alignment is possible, in place of infinity.

    Raises:
        ArgumentError: another reduction, or no such class. ShapeError: the shapes do not fit.

    Example:
        >>> ctc_loss(tensor([[[-1.0, -0.5]]]), tensor([[1]]), (1,), (1,))
        tensor(0.5000)
    """
    x = require_rank(floating(log_probs, "ctc_loss", "log_probs"), (2, 3), "ctc_loss", "log_probs")
    targets = require_rank(tensor(targets, "ctc_loss", "targets"), (1, 2), "ctc_loss", "targets")
    if x.ndim == 2:
        one = x.unsqueeze(1)
        found = ctc_loss(one, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
        return found.squeeze(0) if reduction == "none" else found
    steps, batch, classes = x.shape
    if not 0 <= blank < classes:
        fail(ArgumentError, f"ctc_loss(): blank must be in label range, found {blank} of {classes} classes")
    inputs, lengths = (_known(one, batch) for one in (input_lengths, target_lengths))
    if inputs.shape != (batch,) or lengths.shape != (batch,) or (inputs > steps).any():
        fail(
            ShapeError,
            f"ctc_loss(): {batch} input_lengths up to {steps} and as many target_lengths are expected, found "
            f"{inputs.tolist()} and {lengths.tolist()}",
        )
    table = _table(targets, lengths)
    places = 2 * table.shape[1] + 1
    between = filled((batch, table.shape[1], 1), blank, np.dtype("int64"))
    labels = cat([between, table.unsqueeze(2)], 2).reshape(batch, places - 1)
    labels = cat([labels, filled((batch, 1), blank, np.dtype("int64"))], 1)
    skips = filled((batch, places), False, np.dtype("bool"))
    if places > 2:
        differs = apply(e.not_equal, part(labels, 1, 2, places), part(labels, 1, 0, places - 2))
        wanted = apply(e.logical_and, differs, apply(e.not_equal, part(labels, 1, 2, places), blank))
        skips = cat([part(skips, 1, 0, 2), wanted], 1)
    losses = _forward(x, labels, skips, inputs, lengths)
    if zero_infinity:
        losses = apply(e.where, apply(e.equal, losses, np.inf), 0.0, losses)
    if reduction == "mean":
        divisor = wrap(np.maximum(lengths, 1).astype(array_dtype(x)))
        return mean(apply(e.divide, losses, divisor))
    if reduction not in ("sum", "none"):
        fail(ArgumentError, f"ctc_loss(): {reduction} is not a valid value for reduction")
    return sum(losses) if reduction == "sum" else losses


def _known(lengths: Any, batch: int) -> np.ndarray:
    if isinstance(lengths, Tensor):
        lengths = lengths._detached()._concrete("ctc_loss")
    return np.atleast_1d(np.asarray(lengths, dtype=np.int64))


def _table(targets: Tensor, lengths: np.ndarray) -> Tensor:
    """The targets as a matrix, however they were given."""
    targets = as_dtype(targets, np.dtype("int64"))
    if targets.ndim == 2:
        return part(targets, 1, 0, int(lengths.max(initial=0)))
    longest = int(lengths.max(initial=0))
    starts = np.cumsum(lengths) - lengths
    places = np.minimum(starts[:, None] + np.arange(longest), max(targets.shape[0] - 1, 0))
    if not longest:
        return filled((len(lengths), 0), 0, np.dtype("int64"))
    return take_along_dim(targets, wrap(places.reshape(-1)), 0).reshape(places.shape)


def _forward(x: Tensor, labels: Tensor, skips: Tensor, inputs: np.ndarray, lengths: np.ndarray) -> Tensor:
    """Minus the logarithm of the sum over alignments."""
    steps, batch, _ = x.shape
    places = labels.shape[1]
    emitted = take_along_dim(x, expand_to(labels.unsqueeze(0), (steps, batch, places)), 2)
    emitted = apply(e.maximum, emitted, IMPOSSIBLE)
    starting = wrap(np.arange(places)[None, :] < np.minimum(2, 2 * lengths + 1)[:, None])
    never = filled((batch, places), IMPOSSIBLE, array_dtype(x))
    counts = wrap(np.arange(steps)[:, None, None] < inputs[:, None])
    alpha = apply(e.where, starting, emitted[0], never)
    for step in range(1, steps):
        before = cat([part(never, 1, 0, 1), part(alpha, 1, 0, places - 1)], 1)
        total = apply(e.logaddexp, alpha, before)
        if places > 2:
            skipped = cat([part(never, 1, 0, 2), part(alpha, 1, 0, places - 2)], 1)
            total = apply(e.logaddexp, total, apply(e.where, skips, skipped, IMPOSSIBLE))
        following = apply(e.maximum, apply(e.add, total, emitted[step]), IMPOSSIBLE)
        alpha = apply(e.where, counts[step], following, alpha)
    last = take_along_dim(alpha, wrap(2 * lengths[:, None]), 1).squeeze(1)
    if places > 1:
        one_before = take_along_dim(alpha, wrap(np.maximum(2 * lengths[:, None] - 1, 0)), 1).squeeze(1)
        last = apply(e.where, wrap(lengths > 0), apply(e.logaddexp, last, one_before), last)
    is_impossible = apply(e.less, last, IMPOSSIBLE / 2)
    return apply(e.where, is_impossible, np.inf, apply(e.negative, last))
