"""Where a view lies in the array that owns its memory: as a slice of it."""

from __future__ import annotations

import numpy as np

from .records import record


@record(frozen=True)
class Region:
    """A slice of an array; the view has its elements, perhaps without dimensions of size 1."""

    starts: tuple[int, ...]
    stops: tuple[int, ...]
    steps: tuple[int, ...]

    def of(self, base: np.ndarray) -> np.ndarray:
        return base[tuple(map(slice, self.starts, self.stops, self.steps))]


def region_of_view(view: np.ndarray, base: np.ndarray) -> Region | None:
    """The slice of `base` that a view of it is; None if it is none with positive steps.

    Example:
        >>> table = np.zeros((4, 5))
        >>> region_of_view(table[1, 2:], table)
        Region(starts=(1, 2), stops=(2, 5), steps=(1, 1))
    """
    if view.dtype != base.dtype or not base.flags.c_contiguous or view.size == 0:
        return None
    offset = (view.ctypes.data - base.ctypes.data) // base.itemsize
    if not 0 <= offset < base.size:
        return None
    starts = tuple(map(int, np.unravel_index(offset, base.shape)))
    stops, steps = [start + 1 for start in starts], [1] * base.ndim
    dims = [(extent, stride) for extent, stride in zip(view.shape, view.strides) if extent > 1]
    for dim, unit in enumerate(base.strides):
        if dims and unit and dims[0][1] > 0 and dims[0][1] % unit == 0:
            extent, stride = dims[0]
            step = stride // unit
            last = starts[dim] + (extent - 1) * step
            if last < base.shape[dim]:
                stops[dim], steps[dim] = last + 1, step
                dims.pop(0)
    region = Region(starts, tuple(stops), tuple(steps))
    found = region.of(base)
    kept = [(extent, stride) for extent, stride in zip(found.shape, found.strides) if extent > 1]
    wanted = [(extent, stride) for extent, stride in zip(view.shape, view.strides) if extent > 1]
    return region if kept == wanted and found.ctypes.data == view.ctypes.data else None
