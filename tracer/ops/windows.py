"""Slices whose place is a value: read, written, and the transpose of reading.

`places` are 0-d int64 values: where the window begins, one for each dimension of the array, then the sizes of
the dimensions in `ragged`, of which the window's shape says the largest. What lies beyond a size is zero when
read, and ignored when written. Steps may be negative; then a window begins at its largest position.

Loops make these operators: what a step of a Python loop reads at `x[t - 1]`, or writes to `y[:t]`, is a
window that advances, or grows, with the steps. Whoever makes one sees to it that it lies within the array.
"""

from collections.abc import Callable, Sequence

import numpy as np

from ..errors import ShapeError
from ..operator import Part, Parts
from ..spec import BOOL, INT64, Spec
from .elementwise import zeros_like
from .indexing import index_update
from .movement import dilate, movement, slice_, slice_update

Shape = tuple[int, ...]
PLACE = Spec((), INT64)
"""What each of the places is."""


def _require_places(function: str, rank: int, places: tuple[Spec, ...], ragged: Shape) -> None:
    if len(places) != rank + len(ragged) or any(one != PLACE for one in places):
        found = ", ".join(map(str, places))
        raise ShapeError(f"{function}: {rank} starts and {len(ragged)} sizes, 0-d int64, found {found}.")


def _regions(
    places: Sequence[np.ndarray], shape: Shape, steps: Shape, ragged: Shape
) -> tuple[tuple[np.ndarray, ...], tuple[slice, ...]]:
    """The positions in the array, and the part of the window, that are about what is within the sizes.

    Raises ShapeError for a window that begins before the array; NumPy would wrap it.
    """
    extents = list(shape)
    for dim, size in zip(ragged, places[len(shape) :]):
        extents[dim] = int(size)
    positions = [int(start) + step * np.arange(n) for start, step, n in zip(places, steps, extents)]
    if any((one < 0).any() for one in positions):
        raise ShapeError(
            f"a window of shape {shape} at {[int(one) for one in places]} begins before the array"
        )
    return np.ix_(*positions), tuple(map(slice, extents))


within = movement(
    "within",
    "size",
    infer=lambda size, extent: Spec((extent,), BOOL),
    evaluate=lambda size, extent: np.arange(extent) < size,
    doc="for each position along a dimension, whether it lies within the size",
)


def _infer_shape(function: str) -> Callable[..., Spec]:
    def infer(x: Spec, *places: Spec, shape: Shape, steps: Shape, ragged: Shape = ()) -> Spec:
        _require_places(function, x.ndim, places, ragged)
        return x.with_shape(shape)

    return infer


def _evaluate_slice_at(
    x: np.ndarray, *places: np.ndarray, shape: Shape, steps: Shape, ragged: Shape = ()
) -> np.ndarray:
    result = np.zeros(shape, x.dtype)
    positions, part = _regions(places, shape, steps, ragged)
    result[part] = x[positions]
    return result


slice_at = movement(
    "slice_at",
    "x *places",
    infer=_infer_shape("slice_at"),
    evaluate=_evaluate_slice_at,
    grad_fn="Slice",
    vjp={
        "x": lambda g, x_spec, places, steps, ragged: dilate_at(
            g, *places, shape=x_spec.shape, steps=steps, ragged=ragged
        )
    },
    noun="part",
    doc="the window of the given shape that begins at the places",
)


def _evaluate_dilate_at(
    x: np.ndarray, *places: np.ndarray, shape: Shape, steps: Shape, ragged: Shape = ()
) -> np.ndarray:
    return _evaluate_update_at(np.zeros(shape, x.dtype), x, *places, steps=steps, ragged=ragged)


dilate_at = movement(
    "dilate_at",
    "x *places",
    infer=_infer_shape("dilate_at"),
    evaluate=_evaluate_dilate_at,
    grad_fn="SliceBackward",
    vjp={
        "x": lambda g, x_spec, places, steps, ragged: slice_at(
            g, *places, shape=x_spec.shape, steps=steps, ragged=ragged
        )
    },
    parts=lambda x, *places, shape, steps, ragged: Parts((Part(0, (), steps),)),
    doc="zeros of the given shape with x written from the places on: the transpose of slice_at",
)


def _infer_update_at(x: Spec, update: Spec, *places: Spec, steps: Shape, ragged: Shape = ()) -> Spec:
    _require_places("update_at", x.ndim, places, ragged)
    if update.ndim != x.ndim or any(part > whole for part, whole in zip(update.shape, x.shape)):
        raise ShapeError(f"update_at: {update} is no part of {x}.")
    return x


def _evaluate_update_at(
    x: np.ndarray, update: np.ndarray, *places: np.ndarray, steps: Shape, ragged: Shape = ()
) -> np.ndarray:
    result = np.array(x)
    positions, part = _regions(places, update.shape, steps, ragged)
    result[positions] = update[part]
    return result


update_at = movement(
    "update_at",
    "x update *places",
    infer=_infer_update_at,
    evaluate=_evaluate_update_at,
    grad_fn="CopySlices",
    noun="state",
    vjp={
        "x": lambda g, update_spec, places, steps, ragged: update_at(
            g,
            zeros_like(slice_at(g, *places, shape=update_spec.shape, steps=steps, ragged=ragged)),
            *places,
            steps=steps,
            ragged=ragged,
        ),
        "update": lambda g, update_spec, places, steps, ragged: slice_at(
            g, *places, shape=update_spec.shape, steps=steps, ragged=ragged
        ),
    },
    parts=lambda x, update, *places, steps, ragged: Parts((Part(1, (), steps),), base=0),
    doc="x with the window that begins at the places replaced by update",
)
AT_PLACES = {slice_: slice_at, slice_update: update_at, dilate: dilate_at}
"""The operators on a part that attributes place, and those on a window."""

WRITES = (update_at, index_update, slice_update)
"""What writes a part of an array and leaves the rest: where windows, positions from data, or numbers say."""
