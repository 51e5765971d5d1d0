"""Operators that move elements and compute nothing; generated code has them as index arithmetic."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dims import Dim, equated, equated_shapes, part_of
from ..errors import DTypeError, ShapeError
from ..operator import (
    OWN_RULES,
    TOGETHER,
    Array,
    Movement,
    Operator,
    Part,
    Parts,
    PartsOf,
    Scalar,
    Walk,
    Walks,
    declare,
)
from ..spec import FLOATS, Spec, broadcast_shapes, complex_dtype, real_dtype, reshape_groups
from .elementwise import zeros_like


def movement(
    name: str, operands: str = "x", *, is_view: bool = False, rearranges: bool = False,
    shifts: bool = False, chooses: bool = False, walks: Walks | None = None, parts: PartsOf | None = None,
    linear: str = TOGETHER, **fields: Any,
) -> Operator:  # fmt: skip
    """Declare a movement operator; `Movement` says what the flags are, and every view rearranges."""
    moves = Movement(is_view, is_view or rearranges, shifts, chooses, walks, parts)
    return declare(name, "movement", operands, cost=0, movement=moves, linear=linear, **fields)


# --- reshape ------------------------------------------------------------------------------------------


def _infer_reshape(x: Spec, shape: tuple[int, ...]) -> Spec:
    if math.prod(map(int, shape)) != x.size:
        raise ShapeError(f"shape '{list(shape)}' is invalid for input of size {x.size}")
    return x.with_shape(_named_as_before(x.shape, shape))


def _named_as_before(old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """The new shape, in which the dimensions that stay keep their names."""
    if not any(isinstance(extent, Dim) for extent in old):
        return new
    named = list(new)
    for before, after in reshape_groups(old, new):
        if len(before) == len(after) == 1:
            named[after[0]] = equated(old[before[0]], new[after[0]])
    return tuple(named)


reshape = movement(
    "reshape",
    infer=_infer_reshape,
    evaluate=lambda x, shape: x.reshape(shape),
    grad_fn="View",
    vjp={"x": lambda g, x_spec: reshape(g, shape=x_spec.shape)},
    is_view=True,
    doc="the same elements in another shape",
)

# --- permute ------------------------------------------------------------------------------------------


def inverse_permutation(dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


permute = movement(
    "permute",
    infer=lambda x, dims: x.with_shape(tuple(x.shape[dim] for dim in dims)),
    evaluate=lambda x, dims: x.transpose(dims),
    vjp={"x": lambda g, dims: permute(g, dims=inverse_permutation(dims))},
    is_view=True,
    walks=lambda x, dims: tuple(map(Walk, inverse_permutation(dims))),
    doc="the dimensions in another order",
)

# --- complex numbers as pairs -------------------------------------------------------------------------


def _has_pairs(x: np.ndarray, dtype: np.dtype) -> bool:
    """Whether pairs lie where complex numbers could."""
    return x.strides[-1] == x.itemsize and all(step % dtype.itemsize == 0 for step in x.strides[:-1])


_WHOLES = {one.char: complex_dtype(one) for one in FLOATS}
"""By the character of the parts' dtype, which is found sooner than the dtype."""


def _evaluate_of_pairs(x: np.ndarray) -> np.ndarray:
    dtype = _WHOLES[x.dtype.char]
    if not (x.flags.c_contiguous or _has_pairs(x, dtype)):
        x = np.ascontiguousarray(x)
    return x.view(dtype)[..., 0]


pairs_of = declare(
    "pairs_of",
    "complex",
    "x",
    infer=lambda x: Spec((*x.shape, 2), real_dtype(x.dtype)),
    evaluate=lambda x: x[..., None].view(real_dtype(x.dtype)),
    grad_fn="ViewAsReal",
    vjp={"x": lambda g: of_pairs(g)},
    movement=Movement(is_view=True),
    of_complex=OWN_RULES,
    doc="complex numbers as pairs of real ones",
)
of_pairs = declare(
    "of_pairs",
    "complex",
    "x",
    infer=lambda x: Spec(x.shape[:-1], complex_dtype(x.dtype)),
    evaluate=_evaluate_of_pairs,
    grad_fn="ViewAsComplex",
    vjp={"x": lambda g: pairs_of(g)},
    movement=Movement(is_view=True),
    of_complex=OWN_RULES,
    doc="pairs of real numbers as complex ones",
)

# --- expand -------------------------------------------------------------------------------------------


def _infer_expand(x: Spec, shape: tuple[int, ...]) -> Spec:
    result = broadcast_shapes(x.shape, shape, function="expand")
    if result != shape:
        raise ShapeError(f"expand: {x} does not expand to {shape}.")
    return x.with_shape(result)


def _expanded(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """np.broadcast_to, which takes long for small arrays."""
    new = len(shape) - x.ndim
    if type(shape) is not tuple or new < 0 or not (x.size == 1 or x.flags.c_contiguous):
        return np.broadcast_to(x, shape)
    strides = [0] * new
    for extent, wanted, stride in zip(x.shape, shape[new:], x.strides):
        if extent != wanted and extent != 1:
            return np.broadcast_to(x, shape)
        strides.append(stride if extent == wanted else 0)
    shown = np.ndarray(shape, x.dtype, x, 0, strides)
    shown.flags.writeable = False
    return shown


expand = movement(
    "expand",
    infer=_infer_expand,
    evaluate=_expanded,
    vjp={"x": lambda g: g},  # differentiate sums it to the shape of x, as for every broadcast
    is_view=True,
    walks=lambda x, shape: tuple(
        None if extent == 1 else Walk(dim) for dim, extent in enumerate(x.shape, len(shape) - x.ndim)
    ),
    doc="dimensions of size 1 repeated, new ones in front",
)

# --- slice --------------------------------------------------------------------------------------------


def _infer_slice(x: Spec, starts: tuple[int, ...], stops: tuple[int, ...], steps: tuple[int, ...]) -> Spec:
    return x.with_shape(tuple(map(part_of, x.shape, starts, stops, steps)))


def _slices(starts: Sequence[int], stops: Sequence[int], steps: Sequence[int]) -> tuple[slice, ...]:
    return tuple(map(slice, starts, stops, steps))


slice_ = movement(
    "slice",
    infer=_infer_slice,
    evaluate=lambda x, starts, stops, steps: x[_slices(starts, stops, steps) or ...],  # a view of 0-d as well
    vjp={
        "x": lambda g, x_spec, starts, stops, steps: dilate(
            g, shape=x_spec.shape, starts=starts, stops=stops, steps=steps
        )
    },
    noun="part",
    is_view=True,
    shifts=True,
    walks=lambda x, starts, stops, steps: tuple(map(Walk, range(x.ndim), starts, steps)),
    doc="x[start:stop:step] on every dimension; steps are positive",
)


dilate = movement(
    "dilate",
    infer=lambda x, shape, starts, stops, steps: x.with_shape(shape),
    evaluate=lambda x, shape, **region: _written(np.zeros(shape, x.dtype), x, **region),
    grad_fn="SliceBackward",
    vjp={"x": lambda g, starts, stops, steps: slice_(g, starts=starts, stops=stops, steps=steps)},
    shifts=True,
    parts=lambda x, shape, starts, stops, steps: Parts((Part(0, starts, steps),)),
    doc="zeros of the given shape with x written at [start:stop:step]: the transpose of slice",
)


def _written(
    x: np.ndarray, update: np.ndarray, starts: Sequence[int], stops: Sequence[int], steps: Sequence[int]
) -> np.ndarray:
    x[_slices(starts, stops, steps)] = update
    return x


slice_update = movement(
    "slice_update",
    "x update",
    infer=lambda x, update, starts, stops, steps: x,
    evaluate=lambda x, update, **region: _written(np.array(x), update, **region),
    grad_fn="CopySlices",
    noun="state",
    vjp={
        "x": lambda g, starts, stops, steps: slice_update(
            g,
            zeros_like(slice_(g, starts=starts, stops=stops, steps=steps)),
            starts=starts,
            stops=stops,
            steps=steps,
        ),
        "update": lambda g, starts, stops, steps: slice_(g, starts=starts, stops=stops, steps=steps),
    },
    chooses=True,
    parts=lambda x, update, starts, stops, steps: Parts((Part(1, starts, steps),), base=0),
    doc="x with x[start:stop:step] replaced by update",
)


def between(x: Array, dim: int, start: int, stop: int, step: int = 1) -> Array:
    """x[start:stop:step] along one dimension."""
    place = dim % len(x.shape)
    if type(x) is np.ndarray:
        return x[(*(slice(None),) * place, slice(start, stop, step))]
    bounds = [(start, stop, step) if axis == place else (0, extent, 1) for axis, extent in enumerate(x.shape)]
    starts, stops, steps = zip(*bounds)
    return slice_(x, starts=starts, stops=stops, steps=steps)


def row_of(stack: Array, place: int) -> Array:
    """stack[place]."""
    return reshape(between(stack, 0, place, place + 1), shape=tuple(stack.shape[1:]))


def _at(g: Array, part: Part, spec: Spec) -> Array:
    """The elements that a part without gaps fills."""
    stops = tuple(start + extent for start, extent in zip(part.starts, spec.shape))
    return slice_(g, starts=part.starts, stops=stops, steps=part.steps)


# --- pad, concatenate, flip ---------------------------------------------------------------------------


def _infer_pad(x: Spec, widths: tuple[tuple[int, int], ...], value: float) -> Spec:
    return x.with_shape(tuple(before + extent + after for extent, (before, after) in zip(x.shape, widths)))


def _parts_of_pad(x: Spec, widths: tuple[tuple[int, int], ...], value: Scalar = 0) -> Parts:
    return Parts((Part(0, tuple(before for before, _ in widths), (1,) * x.ndim),), around=value)


def _evaluate_pad(x: np.ndarray, widths: tuple[tuple[int, int], ...], value: float) -> np.ndarray:
    """np.pad takes no 0-d arrays, and several times as long."""
    shape = tuple(before + extent + after for extent, (before, after) in zip(x.shape, widths))
    result = np.full(shape, value, x.dtype)
    result[tuple(slice(before, before + extent) for extent, (before, _) in zip(x.shape, widths))] = x
    return result


pad = movement(
    "pad",
    infer=_infer_pad,
    evaluate=_evaluate_pad,
    grad_fn="ConstantPadNd",
    vjp={"x": lambda g, x_spec, widths: _at(g, _parts_of_pad(x_spec, widths).parts[0], x_spec)},
    shifts=True,
    chooses=True,
    parts=_parts_of_pad,
    linear="",  # with a constant that is not 0
    doc="a constant before and after, on every dimension",
)


def _infer_concatenate(*specs: Spec, dim: int) -> Spec:
    first = specs[0]
    before, after = first.shape[:dim], first.shape[dim + 1 :]
    for position, spec in enumerate(specs):
        if spec.dtype != first.dtype:
            raise DTypeError(f"cat: tensors of one dtype expected, found {', '.join(map(str, specs))}.")
        others = spec.shape[:dim], spec.shape[dim + 1 :]
        if others != (before, after) or spec.ndim != first.ndim:
            raise ShapeError(
                f"cat: Sizes of tensors must match except in dimension {dim}. "
                f"Expected {first} but got {spec} for tensor number {position} in the list."
            )
        before, after = equated_shapes(before, others[0]), equated_shapes(after, others[1])
    total = sum([spec.shape[dim] for spec in specs])
    return first.with_shape((*before, total, *after))


def _piece(g: Array, specs: tuple[Spec, ...], index: int, dim: int) -> Array:
    """The part of the cotangent `g` that belongs to operand `index`."""
    start, shape = sum([spec.shape[dim] for spec in specs[:index]]), specs[index].shape
    stop = start + shape[dim]
    if type(g) is np.ndarray:
        return g[(slice(None),) * dim + (slice(start, stop),)]
    before, after = (0,) * dim, (0,) * (len(shape) - dim - 1)
    stops = (*shape[:dim], stop, *shape[dim + 1 :])
    return slice_(g, starts=(*before, start, *after), stops=stops, steps=(1,) * len(shape))


def _parts_of_concatenate(*specs: Spec, dim: int) -> Parts:
    starts = itertools.accumulate((spec.shape[dim] for spec in specs[:-1]), initial=0)
    rank = specs[0].ndim
    return Parts(
        tuple(
            Part(place, tuple(start if axis == dim else 0 for axis in range(rank)), (1,) * rank, dim)
            for place, start in enumerate(starts)
        )
    )


concatenate = movement(
    "concatenate",
    "*xs",
    infer=_infer_concatenate,
    evaluate=lambda *xs, dim: np.concatenate(xs, axis=dim),
    grad_fn="Cat",
    vjp={"xs": _piece},
    chooses=True,
    parts=_parts_of_concatenate,
    doc="arrays one after another along a dimension",
)

flip = movement(
    "flip",
    infer=lambda x, dims: x,
    evaluate=lambda x, dims: np.flip(x, dims),
    vjp={"x": lambda g, dims: flip(g, dims=dims)},
    is_view=True,
    shifts=True,
    walks=lambda x, dims: tuple(Walk(dim, backwards=dim in dims) for dim in range(x.ndim)),
    doc="the given dimensions backwards",
)


def _rotated(x: np.ndarray, dim: int, shift: int) -> np.ndarray:
    """np.roll, which takes longer to look at its arguments than to move a small array."""
    extent = x.shape[dim]
    cut = -shift % extent if extent else 0
    before = (slice(None),) * dim
    result = np.empty_like(x)
    result[(*before, slice(extent - cut, None))] = x[(*before, slice(cut))]
    result[(*before, slice(extent - cut))] = x[(*before, slice(cut, None))]
    return result


rotate = movement(
    "rotate",
    infer=lambda x, dim, shift: x,
    evaluate=_rotated,
    grad_fn="Roll",
    vjp={"x": lambda g, dim, shift: rotate(g, dim=dim, shift=-shift)},
    rearranges=True,
    shifts=True,
    walks=lambda x, dim, shift: tuple(
        Walk(axis, -shift, turns=True) if axis == dim else Walk(axis) for axis in range(x.ndim)
    ),
    doc="moved along a dimension, what leaves at one end coming in at the other",
)
