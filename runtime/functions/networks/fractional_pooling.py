"""Pooling to a given size by windows at random places (Graham, "Fractional max-pooling", 2014)."""

from __future__ import annotations

import math
from typing import Any

from ....tracer.errors import ArgumentError, ShapeError
from ....tracer.spec import INT64
from ...tensors.sampling import rand
from ...values.tensor import Tensor
from ..common import as_dtype, fail, filled, iota, require_float, tensor
from ..declared import floor
from ..reductions.reduction import max as largest
from ..selections.selection import take_along_dim
from ..shapes.joining import cat
from ..shapes.movement import reshape_to
from .ranks import of_rank
from .windows import Sizes, sizes_of

__all__ = [
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]  # fmt: skip


def _begins(samples: Tensor, extent: int, count: int, kernel: int) -> Tensor:
    """Where windows begin, shape (*samples.shape, count): the last at the end, the others by the samples."""
    last = filled((*samples.shape, 1), extent - kernel, INT64)
    if count == 1:
        return last
    step, drawn = (extent - kernel) / (count - 1), samples.unsqueeze(-1)
    steps = as_dtype(iota(count - 1), samples._value.dtype)
    others = floor((steps + drawn) * step) - floor(drawn * step)
    return cat([as_dtype(others, INT64), last], -1)


def _wanted(
    x: Tensor, kernel: tuple[int, ...], output_size: Sizes | None, output_ratio: Any, function: str
) -> tuple[int, ...]:
    """How many windows there are in each dimension."""
    rank = len(kernel)
    extents = tuple(x.shape[x.ndim - rank :])
    if (output_size is None) == (output_ratio is None):
        fail(ArgumentError, f"{function}(): either an output_size or an output_ratio must be given")
    if output_size is None:
        each = (output_ratio,) * rank if isinstance(output_ratio, float) else tuple(output_ratio)
        counts = tuple(int(extent * ratio) for extent, ratio in zip(extents, each, strict=True))
    else:
        counts = sizes_of(output_size, rank, function, "output_size")
    if any(count < 1 or count + size - 1 > extent for count, size, extent in zip(counts, kernel, extents)):
        fail(
            ShapeError,
            f"{function}(): {counts} windows of size {kernel} do not fit into input of size {list(x.shape)}",
        )
    return counts


def _pool_with_indices(
    input: Tensor, kernel_size: Sizes, output_size: Sizes | None = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Tensor | None = None, *, _rank: int = 2,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`fractional_max_pool2d`, with the positions of the largest elements.

    Example:
        >>> fractional_max_pool2d_with_indices(tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2, output_size=1)
        (tensor([[[3.]]]), tensor([[[1]]]))
    """
    function = f"fractional_max_pool{_rank}d"
    x = tensor(input, function)
    require_float(x, function)
    if x.ndim not in (_rank + 1, _rank + 2):
        fail(
            ShapeError,
            f"{function}(): Expected {_rank + 1}D or {_rank + 2}D input, but got input of size "
            f"{list(x.shape)}",
        )
    ahead, extents = tuple(x.shape[: x.ndim - _rank]), tuple(x.shape[x.ndim - _rank :])
    kernel = sizes_of(kernel_size, _rank, function, "kernel_size")
    counts = _wanted(x, kernel, output_size, output_ratio, function)
    samples = rand((*ahead, _rank), dtype=x.dtype) if _random_samples is None else _random_samples
    samples = reshape_to(samples, (*ahead, _rank))
    order = (1, 0) if _rank == 2 else (0, 1, 2)  # PyTorch's: of two dimensions the last one first
    positions = filled((*ahead, *(1,) * 2 * _rank), 0, INT64)
    for dim, place in enumerate(order):
        begins = _begins(samples.select(-1, place), extents[dim], counts[dim], kernel[dim])
        inside = begins.unsqueeze(-1) + iota(kernel[dim])
        ones = [1] * 2 * _rank
        ones[dim], ones[_rank + dim] = counts[dim], kernel[dim]
        positions = positions * extents[dim] + reshape_to(inside, (*ahead, *ones))
    flat = reshape_to(positions, (*ahead, math.prod(counts) * math.prod(kernel)))
    elements = take_along_dim(reshape_to(x, (*ahead, math.prod(extents))), flat, len(ahead))
    windows = (*ahead, math.prod(counts), math.prod(kernel))
    values, chosen = largest(reshape_to(elements, windows), -1)
    places = take_along_dim(reshape_to(flat, windows), chosen.unsqueeze(-1), -1)
    return reshape_to(values, (*ahead, *counts)), reshape_to(places, (*ahead, *counts))


def _pool(
    input: Tensor, kernel_size: Sizes, output_size: Sizes | None = None, output_ratio: Any = None,
    return_indices: bool = False, _random_samples: Tensor | None = None, *, _rank: int = 2,
) -> Any:  # fmt: skip
    """The largest of `output_size` windows, which begin at random places.

    Args:
        input: of shape (batch, channels, height, width), or without batch.
        kernel_size: of the windows.
        output_size: how many there are in each dimension; or
        output_ratio: their number over the extent.
        return_indices: give the positions as well.

    Raises:
        ArgumentError: neither size nor ratio is given, or both. ShapeError: the windows do not fit.

    Example:
        >>> fractional_max_pool2d(tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2, output_size=1)
        tensor([[[3.]]])
    """
    found = _pool_with_indices(
        input, kernel_size, output_size, output_ratio, True, _random_samples, _rank=_rank
    )
    return found if return_indices else found[0]


fractional_max_pool2d = of_rank(_pool, 2, "fractional_max_pool2d")
fractional_max_pool2d_with_indices = of_rank(_pool_with_indices, 2, "fractional_max_pool2d_with_indices")
fractional_max_pool3d = of_rank(
    _pool, 3, "fractional_max_pool3d", "The same over three dimensions; see `fractional_max_pool2d`.",
    ("tensor([[[[1.0, 3.0]]]]), (1, 1, 2), 1", "tensor([[[[3.]]]])"),
)  # fmt: skip
fractional_max_pool3d_with_indices = of_rank(
    _pool_with_indices, 3, "fractional_max_pool3d_with_indices",
    "`fractional_max_pool3d`, with the positions of the largest elements.",
    ("tensor([[[[1.0, 3.0]]]]), (1, 1, 2), 1", "(tensor([[[[3.]]]]), tensor([[[[1]]]]))"),
)  # fmt: skip
