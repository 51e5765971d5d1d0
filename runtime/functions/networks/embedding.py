"""Embeddings: rows of a table at integer positions, one by one or combined."""

from __future__ import annotations

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError, UnsupportedError
from ....tracer.ops import elementwise as e
from ....tracer.ops import indexing as x_ops
from ....tracer.spec import INT64
from ...tape.apply import apply, wrap
from ...values.modes import no_grad
from ...values.tensor import Tensor
from ..common import array_dtype, as_dtype, fail, filled, tensor
from ..declared import amax, any, sum
from ..selections.assignment import set_item
from ..selections.scattering import renorm
from ..selections.selection import index_select
from ..shapes.movement import reshape_to

__all__ = ["embedding", "embedding_bag"]


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of `weight` at integer positions; that at `padding_idx` gets no gradient.

    Args:
        input: positions, of any shape.
        weight: the table, of shape (rows, columns).
        max_norm: rows that are read and whose p-norm, with p = `norm_type`, is above it are scaled down to it
            in the table itself.
        scale_grad_by_freq: the gradient of a row is the mean over the places where it is read, not the sum.

    Raises:
        ShapeError: the table is no matrix. IndexError: there is no such row.

    Example:
        >>> embedding(tensor([1, 0]), tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[3., 4.],
                [1., 2.]])
    """
    index, rows = tensor(input, "embedding"), tensor(weight, "embedding", "weight")
    if rows.ndim != 2:
        fail(ShapeError, f"embedding(): 'weight' must be 2-D, found shape {tuple(rows.shape)}")
    if max_norm is not None:
        _scale_down(rows, index, max_norm, norm_type)
    flat = reshape_to(index, (index.numel(),))
    taken = index_select(rows, 0, flat)
    if scale_grad_by_freq:
        taken = apply(e.in_place_of, apply(e.divide, taken, _counts(flat, rows)), taken)
    found = reshape_to(taken, (*index.shape, *rows.shape[1:]))
    if padding_idx is None:
        return found
    is_padding = apply(e.equal, index, padding_idx % rows.shape[0]).unsqueeze(-1)
    return apply(e.where, is_padding, found._detached(), found)


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """The "sum", "mean" or largest ("max") of the rows of each bag.

    Args:
        input: a matrix of positions, whose rows are bags; or a vector with
        offsets: where each bag begins (and where the last ends, if `include_last_offset`).
        weight: the table.
        max_norm, norm_type: as for `embedding`.
        per_sample_weights: factors of the rows, for "sum" alone.
        padding_idx: a position that does not count.

    Raises:
        ShapeError: the shapes do not fit. UnsupportedError: `scale_grad_by_freq`.

    Example:
        >>> embedding_bag(tensor([[0, 1]]), tensor([[1.0, 2.0], [3.0, 4.0]]), mode="sum")
        tensor([[4., 6.]])
    """
    if scale_grad_by_freq:
        fail(UnsupportedError, "embedding_bag(): scale_grad_by_freq is not supported. embedding() has it.")
    index, table = tensor(input, "embedding_bag"), tensor(weight, "embedding_bag", "weight")
    if mode not in ("sum", "mean", "max"):
        fail(ArgumentError, f"embedding_bag(): mode has to be one of sum, mean or max, found {mode!r}")
    if per_sample_weights is not None and (mode != "sum" or per_sample_weights.shape != index.shape):
        fail(
            ArgumentError,
            "embedding_bag(): per_sample_weights fit the shape of input, and mode 'sum' alone; found shape "
            f"{list(per_sample_weights.shape)} and mode {mode!r}",
        )
    if max_norm is not None:
        _scale_down(table, index, max_norm, norm_type)
    if index.ndim == 1:
        index, present = _bags(index, offsets, include_last_offset)
        if per_sample_weights is not None:
            per_sample_weights, _ = _bags(per_sample_weights, offsets, include_last_offset)
    elif index.ndim == 2 and offsets is None:
        present = filled(tuple(index.shape), True, np.dtype("bool"))
    else:
        fail(
            ShapeError,
            "embedding_bag(): input has to be a matrix, or a vector with offsets, found shape "
            f"{list(index.shape)}",
        )
    if padding_idx is not None:
        present = apply(e.logical_and, present, apply(e.not_equal, index, padding_idx % table.shape[0]))
    return _combined(embedding(index, table), present.unsqueeze(-1), mode, per_sample_weights)


def _bags(values: Tensor, offsets: Tensor | None, include_last: bool) -> tuple[Tensor, Tensor]:
    """A matrix whose rows are the bags, filled up, and where there is something in it."""
    if offsets is None:
        fail(ArgumentError, "embedding_bag(): offsets has to be a 1D Tensor but got None")
    starts = tensor(offsets, "embedding_bag", "offsets")._detached()._concrete("embedding_bag()")
    ends = starts[1:] if include_last else np.append(starts[1:], values.shape[0])
    starts = starts[: len(ends)]
    longest = int((ends - starts).max(initial=0))
    places = starts[:, None] + np.arange(longest)
    present = places < ends[:, None]
    found = index_select(values, 0, wrap(np.where(present, places, 0).reshape(-1)))
    return reshape_to(found, places.shape), wrap(present)


def _combined(rows: Tensor, present: Tensor, mode: str, factors: Tensor | None) -> Tensor:
    """What the rows of each bag, in dimension 1, are combined to; 0 of an empty bag."""
    if mode == "max":
        if not rows.shape[1]:
            return filled((rows.shape[0], rows.shape[2]), 0, array_dtype(rows))
        largest = amax(apply(e.where, present, rows, -np.inf), 1)
        return apply(e.where, any(present, 1), largest, 0.0)
    if factors is not None:
        rows = apply(e.multiply, rows, factors.unsqueeze(-1))
    total = sum(apply(e.where, present, rows, 0.0), 1)
    if mode == "sum":
        return total
    count = sum(as_dtype(present, array_dtype(rows)), 1)
    return apply(e.divide, total, apply(e.maximum, count, 1.0))


def _scale_down(table: Tensor, index: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows at the positions down to a norm, where they lie and without a gradient."""
    flat = as_dtype(reshape_to(index, (index.numel(),)), INT64)
    with no_grad():
        set_item(table, flat, renorm(index_select(table, 0, flat), norm_type, 0, max_norm))


def _counts(positions: Tensor, table: Tensor) -> Tensor:
    """How often the row at each of the positions is read, as a column."""
    ones = filled(tuple(positions.shape), 1, array_dtype(table))
    counts = apply(x_ops.scatter_add, ones, positions, shape=(table.shape[0],))
    return index_select(counts, 0, positions).unsqueeze(-1)
