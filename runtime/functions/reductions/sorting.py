"""Sorting in traced functions, and places in what is sorted."""

from __future__ import annotations

from ....tracer.ops.ordering import searchsorted, sorted_positions
from ....tracer.spec import INT64
from ...tape.apply import apply, with_own_memory
from ...values.modes import no_grad
from ...values.tensor import Tensor
from ..common import array_dtype, as_dtype, promoted
from ..shapes.movement import reshape_to


@no_grad()
def sorting_positions(x: Tensor, stable: bool = True) -> Tensor:
    """The positions that sort a tensor along its last dimension, nan behind all; equal elements in order if
    `stable`, else as NumPy leaves them.
    """
    return apply(sorted_positions, _of_numbers(x), stable=stable or array_dtype(x).kind not in "fiu")


@no_grad()
def insertion_places(ordered: Tensor, wanted: Tensor, right: bool) -> Tensor:
    """How many elements of an ordered vector, or of the row of the same place, are less than each one that is
    wanted; if `right`, less or equal. nan is the largest.
    """
    ordered, wanted = map(_of_numbers, promoted("searchsorted", ordered, wanted, broadcast=False))
    row = reshape_to(wanted, (wanted.numel(),)) if ordered.ndim == 1 else wanted
    return with_own_memory(reshape_to(apply(searchsorted, ordered, row, right=right), tuple(wanted.shape)))


def _of_numbers(x: Tensor) -> Tensor:
    return x if array_dtype(x).kind in "fiu" else as_dtype(x, INT64)
