"""Reductions of the segments of a dimension, which follow each other and may differ in length."""

from __future__ import annotations

import numpy as np

from ....tracer.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ...tape.apply import wrap
from ...values.tensor import Tensor
from .. import declared
from ..common import Scalar, array_dtype, fail, filled, floating, own_dim
from ..elements.arithmetic import add
from ..selections.selection import index_select
from ..shapes.movement import movedim, reshape_to
from . import masked

__all__ = ["segment_reduce"]

REDUCTIONS = {
    "sum": masked.sum, "mean": masked.mean, "prod": masked.prod, "max": masked.amax, "min": masked.amin,
}  # fmt: skip
COMBINED = {"sum": add, "prod": declared.mul, "max": declared.maximum, "min": declared.minimum}
"""How a first value joins them."""


def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
    offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False, initial: Scalar | None = None,
) -> Tensor:  # fmt: skip
    """Sums, means, products or extremes of parts of a dimension.

    Args:
        data: floats.
        reduce: "sum", "mean", "prod", "max" or "min".
        lengths: of the segments, integers, whose sum is the extent; or
        offsets: where they begin, and where the last one ends.
        axis: the dimension.
        unsafe: let segments be a part of the dimension.
        initial: what a reduction begins with; of nothing there is else 0, 1, an infinity, or a mean of nan.

    Raises:
        ArgumentError: another reduction, or both or neither of lengths and offsets are given.
        DTypeError: lengths or offsets that are no integers.
        ShapeError: the segments are not the whole dimension.
        UnsupportedError: segments that differ in other dimensions.

    Example:
        >>> segment_reduce(tensor([1.0, 2.0, 4.0]), "sum", lengths=tensor([2, 1]))
        tensor([3., 4.])
    """
    x = floating(data, "segment_reduce", "data")
    if reduce not in REDUCTIONS:
        known = ", ".join(REDUCTIONS)
        fail(ArgumentError, f"segment_reduce(): reduce must be one of {known}, found {reduce!r}")
    if (lengths is None) == (offsets is None) or indices is not None:
        fail(ArgumentError, "segment_reduce(): either lengths or offsets must be given, and no indices")
    dim = own_dim(axis, x, "segment_reduce")
    counts = _counts(lengths, offsets)
    rest = x.shape[dim] - counts.sum()
    if (counts < 0).any() or rest < 0 or (rest and not unsafe):
        fail(
            ShapeError,
            f"segment_reduce(): the segments must be all of dimension {dim} of size {x.shape[dim]}, found "
            f"lengths {counts.tolist()}",
        )
    longest = int(counts.max(initial=0))
    places = (np.cumsum(counts) - counts)[:, None] + np.arange(longest)
    shown = np.arange(longest) < counts[:, None]
    rows = movedim(x, dim, 0)
    others = tuple(rows.shape[1:])
    flat = index_select(rows, 0, wrap(np.where(shown, places, 0).reshape(-1)))
    taken = reshape_to(flat, (*shown.shape, *others))
    mask = wrap(shown.reshape(*shown.shape, *(1,) * len(others)))
    return movedim(_reduced(taken, mask, counts, reduce, initial), 0, dim)


def _counts(lengths: Tensor | None, offsets: Tensor | None) -> np.ndarray:
    """The lengths of the segments."""
    given = offsets if lengths is None else lengths
    assert given is not None
    if array_dtype(given).kind not in "iu":
        fail(DTypeError, f"segment_reduce(): lengths or offsets must be integers, found {given.dtype}.")
    if given.ndim != 1:
        fail(
            UnsupportedError,
            "segment_reduce(): lengths or offsets of one dimension are expected, found shape "
            f"{tuple(given.shape)}. Reduce each row on its own.",
        )
    values = np.asarray(given.tolist(), np.int64)  # in a trace a question with a guard
    return np.diff(values) if lengths is None else values


def _reduced(x: Tensor, mask: Tensor, counts: np.ndarray, reduce: str, initial: Scalar | None) -> Tensor:
    """Segments, shape (segments, longest, ...), over their second dimension."""
    if initial is not None and reduce == "mean":
        divisor = np.maximum(counts, 1).astype(array_dtype(x)).reshape(-1, *(1,) * (x.ndim - 2))
        return (masked.sum(x, 1, mask=mask) + initial) / wrap(divisor)
    if not x.shape[1]:
        empty = {"sum": 0.0, "mean": np.nan, "prod": 1.0, "max": -np.inf, "min": np.inf}[reduce]
        found = masked.sum(x, 1) + empty
    else:
        found = REDUCTIONS[reduce](x, 1, mask=mask)
    if initial is None:
        return found
    return COMBINED[reduce](found, filled((), initial, array_dtype(x)))
