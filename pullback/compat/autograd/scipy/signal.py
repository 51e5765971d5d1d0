"""`convolve` along chosen dimensions, as HIPS autograd has it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.compat.autograd.insides import missing_of
from pullback.errors import ArgumentError, ShapeError, UnsupportedError
from pullback.nn.functional import conv1d, conv2d, conv3d

__all__ = ["convolve"]

BY_DIMENSIONS: dict[int, Any] = {1: conv1d, 2: conv2d, 3: conv3d}


def convolve(
    A: Any,
    B: Any,
    axes: Sequence[Sequence[int]] | None = None,
    dot_axes: Sequence[Sequence[int]] | None = None,
    mode: str = "full",
) -> Any:
    """The convolution of two arrays along some dimensions, summed over others, each with each of the rest.

    Args:
        axes: the dimensions of A and of B that are convolved, pair by pair; all unless given.
        dot_axes: those that are multiplied and summed; none unless given.
        mode: "full", "valid" or "same" (as long as A).

    Returns:
        An array of the dimensions of A that are neither, then those of B, then the convolved ones.

    Raises:
        ArgumentError: another mode. ShapeError: with "valid" neither array holds the other.
        UnsupportedError: more than three dimensions are convolved.

    Example:
        >>> convolve(np.array([1.0, 2.0]), np.array([1.0, 10.0]))
        array([ 1., 12., 20.])
    """
    if mode not in ("full", "valid", "same"):
        raise ArgumentError(f"convolve: mode={mode!r} is not known. Give 'full', 'valid' or 'same'.")
    convolved = axes or [range(np.ndim(A)), range(np.ndim(B))]
    dotted = dot_axes or [(), ()]
    signals, rest_of_A = _arranged(A, convolved[0], dotted[0])
    kernels, rest_of_B = _arranged(B, convolved[1], dotted[1])
    sizes, extents = np.shape(signals)[2:], np.shape(kernels)[2:]
    if mode == "valid" and any(size < extent for size, extent in zip(sizes, extents)):
        if any(size > extent for size, extent in zip(sizes, extents)):
            raise ShapeError(
                f"convolve: mode='valid' wants one array to hold the other, found sizes {sizes}, {extents}."
            )
        found = np.swapaxes(_valid(kernels, signals), 0, 1)
    else:
        found = _valid(np.pad(signals, [(0, 0), (0, 0), *_borders(mode, extents)]), kernels)
    return np.reshape(found, (*rest_of_A, *rest_of_B, *np.shape(found)[2:]))


def _arranged(x: Any, convolved: Sequence[int], dotted: Sequence[int]) -> tuple[Any, tuple[int, ...]]:
    """(the array as rows, summed dimensions and convolved ones; the shape of the rows)."""
    shape = np.shape(x)
    rest = [axis for axis in range(len(shape)) if axis not in convolved and axis not in dotted]
    rows, sums, windows = (tuple(shape[axis] for axis in some) for some in (rest, dotted, convolved))
    ordered = np.transpose(x, (*rest, *dotted, *convolved))
    return np.reshape(ordered, (math.prod(rows), math.prod(sums), *windows)), rows


def _borders(mode: str, extents: Sequence[int]) -> list[tuple[int, int]]:
    if mode == "valid":
        return [(0, 0)] * len(extents)
    after = [(extent - 1) // 2 if mode == "same" else extent - 1 for extent in extents]
    return [(extent - 1 if mode == "full" else extent - 1 - end, end) for extent, end in zip(extents, after)]


def _valid(signals: Any, kernels: Any) -> Any:
    """The convolution where all of a kernel lies within the signal: rows of one by rows of the other."""
    count = np.ndim(signals) - 2
    if not count:
        return np.einsum("ad,bd->ab", signals, kernels)
    if count not in BY_DIMENSIONS:
        raise UnsupportedError(f"convolve: along {count} dimensions; at most three are supported.")
    dtype = np.result_type(signals, kernels)
    flipped = np.flip(kernels, tuple(range(2, 2 + count)))
    return BY_DIMENSIONS[count](np.astype(signals, dtype), np.astype(flipped, dtype))


__getattr__ = missing_of(__name__)
