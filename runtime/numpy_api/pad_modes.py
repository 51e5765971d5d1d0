"""`np.pad` on Tensors, in every mode of NumPy but functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ...tracer.errors import ArgumentError, UnsupportedError
from ..functions.common import INTEGERS, array_dtype, as_dtype, fail
from ..functions.selections import selection
from ..functions.shapes import joining, movement, parts
from ..functions.shapes.padding import padded
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from .functions import FUNCTIONS, implements
from .values import averaged

Widths = list[tuple[int, int]]
MODES = {"edge": "replicate", "reflect": "reflect", "wrap": "circular", "symmetric": "symmetric"}
STATISTICS = {"maximum": np.amax, "minimum": np.amin, "mean": np.mean, "median": np.median}
OPTIONS_OF_MODES = {
    "constant_values": ("constant",), "end_values": ("linear_ramp",), "stat_length": tuple(STATISTICS),
    "reflect_type": ("reflect", "symmetric"),
}  # fmt: skip
"""The modes that take each option."""


@implements(np.pad, in_order="asked")
def pad(
    array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = None,
    end_values: Any = None, stat_length: Any = None, reflect_type: Any = None,
) -> Tensor:  # fmt: skip
    x, names = tensor_of(array), OPTIONS_OF_MODES
    given = zip(names, (constant_values, end_values, stat_length, reflect_type))
    if unknown := [name for name, value in given if value is not None and mode not in names[name]]:
        fail(ArgumentError, f"numpy.pad: unsupported keyword arguments for mode {mode!r}: {unknown}.")
    if isinstance(pad_width, dict):
        pad_width = [_pair(pad_width.get(dim, pad_width.get(dim - x.ndim, 0))) for dim in range(x.ndim)]
    if np.asarray(pad_width).dtype.kind not in "iu":
        fail(ArgumentError, f"numpy.pad: widths must be integers, found {pad_width}.")
    widths = [(int(a), int(b)) for a, b in np.broadcast_to(np.asarray(pad_width), (x.ndim, 2))]
    if any(one < 0 for pair in widths for one in pair):
        fail(ArgumentError, f"numpy.pad: widths must not be negative, found {pad_width}.")
    if mode == "constant":
        return _constant(x, widths, 0 if constant_values is None else constant_values)
    if mode == "empty":
        return padded(x, widths, "constant", 0)
    if mode == "linear_ramp":
        return _ramp(x, widths, 0 if end_values is None else end_values)
    if mode in STATISTICS:
        return _statistic(x, widths, STATISTICS[mode], stat_length)
    if mode not in MODES:
        fail(
            UnsupportedError,
            f"numpy.pad: mode={mode!r} is not supported on a Tensor, only constant, empty, linear_ramp, "
            f"{', '.join((*MODES, *STATISTICS))}.",
        )
    if reflect_type == "odd":
        return _odd(x, widths, mode)
    further = mode in ("reflect", "wrap") and any(
        max(pair) > extent - (mode == "reflect") for pair, extent in zip(widths, x.shape)
    )
    return (
        _places(x, widths, mode) if further or mode == "symmetric" else padded(x, widths, MODES[mode], None)
    )


def _pair(width: Any) -> tuple[int, int]:
    return (width, width) if isinstance(width, INTEGERS) else width


def _places(x: Tensor, widths: Widths, mode: str) -> Tensor:
    """Elements at the places where NumPy finds them."""
    for dim, pair in enumerate(widths):
        places = np.pad(np.arange(x.shape[dim]), [pair], cast(Any, mode))
        x = selection.index_select(x, dim, tensor_of(places)) if any(pair) else x
    return x


def _constant(x: Tensor, widths: Widths, values: Any) -> Tensor:
    if not isinstance(values, Tensor) and not np.ndim(values):
        return padded(x, widths, "constant", values)

    def filler(dim: int, side: int) -> Tensor:
        chosen = movement.broadcast_to(tensor_of(values), (x.ndim, 2))[dim, side]
        return as_dtype(chosen, array_dtype(x))

    return _beside(x, widths, lambda x, dim, side, width: filler(dim, side))


def _beside(x: Tensor, widths: Widths, block: Callable[[Tensor, int, int, int], Tensor]) -> Tensor:
    """x with blocks at both sides of each dimension, which may be one slice that is repeated."""
    for dim, pair in enumerate(widths):
        sides = []
        for side, width in enumerate(pair):
            shape = (*x.shape[:dim], width, *x.shape[dim + 1 :])
            sides.append([movement.broadcast_to(block(x, dim, side, width), shape)] if width else [])
        x = joining.cat([*sides[0], x, *sides[1]], dim) if any(pair) else x
    return x


def _ramp(x: Tensor, widths: Widths, end_values: Any) -> Tensor:
    """Along straight lines from given values at the ends."""
    ends = np.broadcast_to(np.asarray(end_values, float), (x.ndim, 2))

    def block(x: Tensor, dim: int, side: int, width: int) -> Tensor:
        edge = parts.part(x, dim, x.shape[dim] - 1, x.shape[dim]) if side else parts.part(x, dim, 0, 1)
        shares = np.arange(width) / width
        shares = (1 - shares) if not side else shares[::-1] * 0 + (np.arange(width) + 1) / width
        shape = [1] * x.ndim
        shape[dim] = width
        share = as_dtype(tensor_of(shares.reshape(shape)), array_dtype(averaged(edge)))
        values = edge + share * (float(ends[dim, side]) - edge)
        return values if array_dtype(x).kind == "f" else as_dtype(values, array_dtype(x))

    return _beside(x, widths, block)


def _statistic(x: Tensor, widths: Widths, function: Any, stat_length: Any) -> Tensor:
    """With a statistic of the elements nearest to each end."""
    lengths = None if stat_length is None else np.broadcast_to(np.asarray(stat_length), (x.ndim, 2))

    def block(x: Tensor, dim: int, side: int, width: int) -> Tensor:
        extent = x.shape[dim]
        length = extent if lengths is None else min(int(lengths[dim, side]), extent)
        near = parts.part(x, dim, extent - length, extent) if side else parts.part(x, dim, 0, length)
        value = FUNCTIONS[function](near, dim, keepdims=True)
        if array_dtype(x).kind in "iu" and array_dtype(value).kind == "f":
            value = FUNCTIONS[np.round](value)
        return as_dtype(value, array_dtype(x))

    before = x
    for dim in range(x.ndim):  # both sides of a dimension see it as it was
        one = [pair if place == dim else (0, 0) for place, pair in enumerate(widths)]
        before = _beside(before, one, block)
    return before


def _odd(x: Tensor, widths: Widths, mode: str) -> Tensor:
    """Reflected in a point: twice the edge less the reflection."""
    for dim, pair in enumerate(widths):
        if max(pair) > x.shape[dim] - (mode == "reflect"):
            fail(
                UnsupportedError, "numpy.pad: reflect_type='odd' over more than the extent is not supported."
            )
        one = [pair if place == dim else (0, 0) for place in range(x.ndim)]
        mirrored = _places(x, one, mode)
        extent, (before, after) = x.shape[dim], pair
        first, last = parts.part(x, dim, 0, 1), parts.part(x, dim, extent - 1, extent)
        front = 2 * first - parts.part(mirrored, dim, 0, before)
        back = 2 * last - parts.part(mirrored, dim, before + extent, before + extent + after)
        x = joining.cat([front, x, back], dim)
    return x
