"""Sorting in traced functions."""

from __future__ import annotations

from ...tracer.ops.ordering import sorted_positions
from ...tracer.spec import INT64
from ..tape.apply import apply
from ..values.modes import no_grad
from ..values.tensor import Tensor
from .common import array_dtype, as_dtype
from .movement import reshape_to
from .parts import sliced


@no_grad()
def sorting_positions(x: Tensor) -> Tensor:
    """The positions that sort a tensor along its last dimension: equal elements in order, nan behind all."""
    shape = x._value.shape
    keys = x if array_dtype(x).kind in "fiu" else as_dtype(x, INT64)
    both = apply(sorted_positions, keys)
    start = (0,) * both.ndim
    return reshape_to(sliced(both, start, (*shape[:-1], 1, shape[-1]), (1,) * both.ndim), shape)
