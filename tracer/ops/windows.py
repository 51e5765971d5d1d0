"""Slices whose place is a value: read, written, and the transpose of reading.

`starts` are 0-d int64 values, one for each dimension of the array. Loops make these operators: what a step of
a Python loop reads at `x[t - 1]`, or writes to it, is a window that advances with the steps. Whoever makes one
sees to it that the window lies within the array.
"""

import numpy as np

from ..errors import ShapeError
from ..spec import INT64, Spec
from .elementwise import zeros_like
from .movement import movement

Shape = tuple[int, ...]
PLACE = Spec((), INT64)
"""What each of the starts is."""


def _require_starts(function: str, rank: int, starts: tuple[Spec, ...]) -> None:
    if len(starts) != rank or any(one != PLACE for one in starts):
        raise ShapeError(
            f"{function}: {rank} 0-d int64 starts expected, found {', '.join(map(str, starts))}."
        )


def _region(starts: tuple[np.ndarray, ...], shape: Shape, steps: Shape) -> tuple[slice, ...]:
    """The window as slices. Raises ShapeError if it begins before the array; NumPy would wrap it."""
    places = [int(start) for start in starts]
    if any(place < 0 for place in places):
        raise ShapeError(f"a window of shape {shape} begins at {tuple(places)}, before the array")
    ends = [place + extent * step for place, extent, step in zip(places, shape, steps)]
    return tuple(map(slice, places, ends, steps))


def _infer_slice_at(x: Spec, *starts: Spec, shape: Shape, steps: Shape) -> Spec:
    _require_starts("slice_at", x.ndim, starts)
    return x.with_shape(shape)


slice_at = movement(
    "slice_at",
    "x *starts",
    infer=_infer_slice_at,
    evaluate=lambda x, *starts, shape, steps: x[_region(starts, shape, steps)],
    grad_fn="Slice",
    vjp={"x": lambda g, x_spec, starts, steps: dilate_at(g, *starts, shape=x_spec.shape, steps=steps)},
    doc="the window of the given shape that begins at the starts",
)


def _infer_dilate_at(x: Spec, *starts: Spec, shape: Shape, steps: Shape) -> Spec:
    _require_starts("dilate_at", x.ndim, starts)
    return x.with_shape(shape)


def _evaluate_dilate_at(x: np.ndarray, *starts: np.ndarray, shape: Shape, steps: Shape) -> np.ndarray:
    result = np.zeros(shape, x.dtype)
    result[_region(starts, x.shape, steps)] = x
    return result


dilate_at = movement(
    "dilate_at",
    "x *starts",
    infer=_infer_dilate_at,
    evaluate=_evaluate_dilate_at,
    grad_fn="SliceBackward",
    vjp={"x": lambda g, x_spec, starts, steps: slice_at(g, *starts, shape=x_spec.shape, steps=steps)},
    doc="zeros of the given shape with x written from the starts on: the transpose of slice_at",
)


def _infer_update_at(x: Spec, update: Spec, *starts: Spec, steps: Shape) -> Spec:
    _require_starts("update_at", x.ndim, starts)
    if update.ndim != x.ndim or any(part > whole for part, whole in zip(update.shape, x.shape)):
        raise ShapeError(f"update_at: {update} is no part of {x}.")
    return x


def _evaluate_update_at(x: np.ndarray, update: np.ndarray, *starts: np.ndarray, steps: Shape) -> np.ndarray:
    result = np.array(x)
    result[_region(starts, update.shape, steps)] = update
    return result


update_at = movement(
    "update_at",
    "x update *starts",
    infer=_infer_update_at,
    evaluate=_evaluate_update_at,
    grad_fn="CopySlices",
    vjp={
        "x": lambda g, update_spec, starts, steps: update_at(
            g, zeros_like(slice_at(g, *starts, shape=update_spec.shape, steps=steps)), *starts, steps=steps
        ),
        "update": lambda g, update_spec, starts, steps: slice_at(
            g, *starts, shape=update_spec.shape, steps=steps
        ),
    },
    doc="x with the window that begins at the starts replaced by update",
)
