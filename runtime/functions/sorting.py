"""Sorting in traced functions, out of the graph's operators: a network of comparisons.

K. E. Batcher, Sorting networks and their applications (1968): in each step every position is compared with
the one at some distance, and the two of them are put in order, rising or falling by turns. Which positions
those are depends on no value, so that a step is elementwise and all steps are one loop, of n log(n)^2 / 4
comparisons.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracer.ops import elementwise as e
from ...tracer.ops import indexing as x_ops
from ...tracer.ops import movement as m
from ...tracer.spec import INT64
from ..modes import no_grad
from ..tape import apply, wrap
from ..tensor import Tensor
from .common import array_dtype, as_dtype, iota
from .control_flow import scan
from .movement import expand_to, reshape_to
from .parts import sliced

FLOAT64 = np.dtype("float64")


@no_grad()
def sorting_positions(x: Tensor) -> Tensor:
    """The positions that sort a tensor along its first dimension: equal elements in order, nan behind all."""
    extent, *rest = x._value.shape
    levels = max(extent - 1, 0).bit_length()
    count = 2**levels
    column = (count, *(1 for _ in rest))
    place = reshape_to(iota(count), column)
    keys = x if array_dtype(x).kind in "fiu" else as_dtype(x, INT64)
    last = np.nan if array_dtype(keys).kind == "f" else np.iinfo(array_dtype(keys)).max
    widths = ((0, count - extent), *((0, 0) for _ in rest))
    keys = apply(m.pad, keys, widths=widths, value=last)
    order = expand_to(place, (count, *rest))
    steps = [(2**level, 2**below) for level in range(1, levels + 1) for below in reversed(range(level))]
    real = as_dtype(place, FLOAT64)  # of which a division by a power of two is exact, and done in vectors
    if not steps:
        return expand_to(place, x._value.shape)

    def step(carry: Any, row: Any) -> Any:
        keys, order = carry
        distance, of_distance, of_span = row
        is_first = _is_even(apply(e.multiply, real, of_distance))
        partner = apply(e.where, is_first, apply(e.add, place, distance), apply(e.subtract, place, distance))
        positions = reshape_to(partner, (count,))
        others = [apply(x_ops.gather, one, positions) for one in carry]
        stays_smaller = apply(e.equal, is_first, _is_even(apply(e.multiply, real, of_span)))
        stays = apply(e.equal, _precedes(keys, order, *others), stays_smaller)
        return [apply(e.where, stays, one, other) for one, other in zip(carry, others)], None

    spans, distances = map(np.array, zip(*steps))
    rows = [wrap(one) for one in (distances, 1.0 / distances, 1.0 / spans)]
    (_, order), _ = scan(step, [keys, order], rows)
    return sliced(order, (0,) * order.ndim, x._value.shape, (1,) * order.ndim)


def _is_even(blocks: Tensor) -> Tensor:
    """Whether a place, counted in blocks, is in the first, third, ... of them."""
    pairs = apply(e.floor, apply(e.multiply, blocks, 0.5))
    return apply(e.equal, apply(e.floor, blocks), apply(e.add, pairs, pairs))


def _precedes(key: Tensor, place: Tensor, other: Tensor, other_place: Tensor) -> Tensor:
    """Whether one element comes before another in the sorted tensor."""
    earlier = apply(e.less, place, other_place)
    ties = apply(e.logical_and, apply(e.equal, key, other), earlier)
    before = apply(e.logical_or, apply(e.less, key, other), ties)
    if array_dtype(key).kind != "f":
        return before
    behind_nan = apply(e.logical_or, apply(e.equal, key, key), earlier)
    to_nan = apply(e.logical_and, apply(e.not_equal, other, other), behind_nan)
    return apply(e.logical_or, before, to_nan)
