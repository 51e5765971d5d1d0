"""Sorting in traced functions."""

from __future__ import annotations

from ...tracer.ops.ordering import sorted_positions
from ...tracer.spec import INT64
from ..tape.apply import apply
from ..values.modes import no_grad
from ..values.tensor import Tensor
from .common import array_dtype, as_dtype


@no_grad()
def sorting_positions(x: Tensor) -> Tensor:
    """The positions that sort a tensor along its last dimension: equal elements in order, nan behind all."""
    return apply(sorted_positions, x if array_dtype(x).kind in "fiu" else as_dtype(x, INT64))
