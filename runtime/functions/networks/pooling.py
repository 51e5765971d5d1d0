"""Pooling: the largest or the mean of each window, under the names of torch.nn.functional."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError
from ....tracer.ops import elementwise as e
from ....tracer.ops import indexing as x_ops
from ....tracer.ops.reduction import lowest
from ...tape.apply import apply, wrap
from ...values.tensor import Tensor
from ..common import array_dtype, fail, filled, iota, require_float, tensor
from ..declared import sum
from ..elements.arithmetic import div, pow
from ..reductions.reduction import max as largest
from ..reductions.reduction import mean
from ..selections.selection import index_positions, take_along_dim
from ..shapes.joining import cat, stack
from ..shapes.movement import expand_to, reshape_to
from ..shapes.padding import padded
from ..shapes.parts import part, positions_along
from .ranks import of_rank
from .windows import Sizes, places_of, sizes_of

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d",
    "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
    "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d",
    "max_unpool3d",
]  # fmt: skip


class _Windows:
    """The sizes of windows, checked, and how much they need around the tensor."""

    def __init__(
        self, rank: int, x: Tensor, kernel_size: Sizes, stride: Sizes | None, padding: Sizes,
        dilation: Sizes, ceil_mode: bool, function: str,
    ) -> None:  # fmt: skip
        if x.ndim not in (rank + 1, rank + 2):
            fail(
                ShapeError,
                f"{function}(): Expected {rank + 1}D or {rank + 2}D input, but got input of size "
                f"{list(x.shape)}",
            )
        self.rank, self.function = rank, function
        self.extents = tuple(x.shape[x.ndim - rank :])
        self.kernel = sizes_of(kernel_size, rank, function, "kernel_size")
        given = self.kernel if stride is None or stride in ((), []) else stride
        self.jumps = sizes_of(given, rank, function, "stride")
        self.around = sizes_of(padding, rank, function, "padding")
        self.steps = sizes_of(dilation, rank, function, "dilation")
        if any(one < 0 or 2 * one > size for one, size in zip(self.around, self.kernel)):
            fail(ArgumentError, f"{function}(): pad should be at most half of effective kernel size")
        self.behind = tuple(map(self._behind, range(rank))) if ceil_mode else self.around

    def _behind(self, dim: int) -> int:
        """What is added at the end for a last window that begins inside but ends outside."""
        extent, around, jump = self.extents[dim], self.around[dim], self.jumps[dim]
        reach = self.steps[dim] * (self.kernel[dim] - 1) + 1
        count = -((reach - extent - 2 * around) // jump) + 1
        if (count - 1) * jump >= extent + around:
            count -= 1
        return max(around, (count - 1) * jump + reach - extent - around)

    def of(self, x: Tensor, filler: float) -> tuple[Tensor, tuple[int, ...]]:
        """The elements of each window along a new last dimension; and how many windows there are."""
        widths = [(0, 0)] * (x.ndim - self.rank) + list(zip(self.around, self.behind))
        x = padded(x, widths, "constant", filler) if any(map(any, widths)) else x
        places, counts = places_of(x, self.kernel, self.jumps, self.steps, self.function)
        return stack(places, -1), counts


# --- the largest --------------------------------------------------------------------------------------------


def _positions(sizes: _Windows, places: Tensor, counts: tuple[int, ...]) -> Tensor:
    """Where in the last dimensions of the tensor, flattened, each window's largest element is."""
    position: Tensor | None = None
    offsets = np.unravel_index(np.arange(math.prod(sizes.kernel)), sizes.kernel)
    for dim, extent in enumerate(sizes.extents):
        begin = np.arange(counts[dim]) * sizes.jumps[dim] - sizes.around[dim]
        begin = begin.reshape([-1 if one == dim else 1 for one in range(sizes.rank)])
        offset = take_along_dim(
            wrap(offsets[dim] * sizes.steps[dim]), reshape_to(places, (places.numel(),)), 0
        )
        along = apply(e.add, reshape_to(offset, tuple(places.shape)), wrap(begin))
        position = along if position is None else apply(e.add, apply(e.multiply, position, extent), along)
    assert position is not None
    return position


def _pool_largest(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False, return_indices: bool = False, *, _rank: int = 1,
) -> Any:  # fmt: skip
    """The largest of each window along the last dimension; the first of equal ones has the gradient.

    Args:
        input: of shape (batch, channels, length), or without batch.
        kernel_size, stride, padding, dilation: of the windows; they follow each other without `stride`.
        ceil_mode: let a last window end outside.
        return_indices: give the positions as well.

    Raises:
        ShapeError: the window is larger than the padded input. ArgumentError: padding is more than half
            of it.

    Example:
        >>> max_pool1d(tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[3., 2.]])
    """
    function = f"max_pool{_rank}d"
    x = tensor(input, function)
    sizes = _Windows(_rank, x, kernel_size, stride, padding, dilation, ceil_mode, function)
    windows, counts = sizes.of(x, lowest(array_dtype(x)))
    values, places = largest(windows, -1)
    return (values, _positions(sizes, places, counts)) if return_indices else values


max_pool1d = of_rank(_pool_largest, 1, "max_pool1d")
max_pool2d = of_rank(
    _pool_largest, 2, "max_pool2d",
    "The largest of each window over the last two dimensions; see `max_pool1d`.",
    ("tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2", "tensor([[[3.]]])"),
)  # fmt: skip
max_pool3d = of_rank(
    _pool_largest, 3, "max_pool3d",
    "The largest of each window over the last three dimensions; see `max_pool1d`.",
    ("tensor([[[[1.0, 3.0]]]]), (1, 1, 2)", "tensor([[[[3.]]]])"),
)  # fmt: skip


def _pool_with_indices(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False, return_indices: bool = False, *, _rank: int = 1,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`max_pool1d`, with the positions of the largest elements, whatever `return_indices` says.

    Example:
        >>> max_pool1d_with_indices(tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        (tensor([[3., 2.]]), tensor([[1, 2]]))
    """
    return _pool_largest(input, kernel_size, stride, padding, dilation, ceil_mode, True, _rank=_rank)


max_pool1d_with_indices = of_rank(_pool_with_indices, 1, "max_pool1d_with_indices")
max_pool2d_with_indices = of_rank(
    _pool_with_indices, 2, "max_pool2d_with_indices",
    "`max_pool2d`, with the positions of the largest elements.",
    ("tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2", "(tensor([[[3.]]]), tensor([[[1]]]))"),
)  # fmt: skip
max_pool3d_with_indices = of_rank(
    _pool_with_indices, 3, "max_pool3d_with_indices",
    "`max_pool3d`, with the positions of the largest elements.",
    ("tensor([[[[1.0, 3.0]]]]), (1, 1, 2)", "(tensor([[[[3.]]]]), tensor([[[[1]]]]))"),
)  # fmt: skip


def _unpool(
    input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    output_size: Sequence[int] | None = None, *, _rank: int = 1,
) -> Tensor:  # fmt: skip
    """Zeros, with the elements at the positions that `max_pool1d` has given.

    Example:
        >>> max_unpool1d(tensor([[3.0, 2.0]]), tensor([[1, 2]]), 2)
        tensor([[0., 3., 2., 0.]])
    """
    function = f"max_unpool{_rank}d"
    x, places = tensor(input, function), tensor(indices, function, "indices")
    kernel = sizes_of(kernel_size, _rank, function, "kernel_size")
    jumps = kernel if stride is None else sizes_of(stride, _rank, function, "stride")
    around = sizes_of(padding, _rank, function, "padding")
    ahead, extents = tuple(x.shape[: x.ndim - _rank]), tuple(x.shape[x.ndim - _rank :])
    if output_size is None:
        sizes = [
            (extent - 1) * jump - 2 * one + size
            for extent, jump, one, size in zip(extents, jumps, around, kernel)
        ]
    else:
        sizes = list(output_size)[-_rank:]
    flat = (*ahead, math.prod(extents))
    nothing = filled((*ahead, math.prod(sizes)), 0, array_dtype(x))
    elements, places, dim = reshape_to(x, flat), reshape_to(places, flat), x.ndim - _rank
    places = index_positions(places, math.prod(sizes), dim, function)
    found = apply(x_ops.placed, nothing, elements, *positions_along(places, dim))
    return reshape_to(found, (*ahead, *sizes))


max_unpool1d = of_rank(_unpool, 1, "max_unpool1d")
max_unpool2d = of_rank(
    _unpool, 2, "max_unpool2d", "The same over two dimensions; see `max_unpool1d`.",
    ("tensor([[[3.0]]]), tensor([[[1]]]), 2", "tensor([[[0., 3.],\n         [0., 0.]]])"),
)  # fmt: skip
max_unpool3d = of_rank(
    _unpool, 3, "max_unpool3d", "The same over three dimensions; see `max_unpool1d`.",
    ("tensor([[[[3.0]]]]), tensor([[[[1]]]]), (1, 1, 2)", "tensor([[[[0., 3.]]]])"),
)  # fmt: skip


# --- the mean -----------------------------------------------------------------------------------------------


def _shared(total: Tensor, divisor: Tensor) -> Tensor:
    if array_dtype(total).kind != "f":
        return div(total, apply(e.convert, divisor, dtype=array_dtype(total)), rounding_mode="trunc")
    return apply(e.divide, total, apply(e.convert, divisor, dtype=array_dtype(total)))


def avg_pool1d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    ceil_mode: bool = False, count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """The mean of each window along the last dimension; padding counts as zeros, if `count_include_pad`.

    Example:
        >>> avg_pool1d(tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[2., 1.]])
    """
    return _pool_mean(input, kernel_size, stride, padding, ceil_mode, count_include_pad, _rank=1)


def _pool_mean(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
    *, _rank: int = 1,
) -> Tensor:  # fmt: skip
    """The mean of each window over the last two dimensions; or its sum over `divisor_override`.

    Example:
        >>> avg_pool2d(tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2)
        tensor([[[1.5000]]])
    """
    function = f"avg_pool{_rank}d"
    x = tensor(input, function)
    sizes = _Windows(_rank, x, kernel_size, stride, padding, 1, ceil_mode, function)
    windows, counts = sizes.of(x, 0)
    if divisor_override is not None:
        if divisor_override == 0:
            fail(ArgumentError, "divisor must be not zero")
        return _shared(sum(windows, -1), wrap(np.asarray(divisor_override)))
    divisor = np.ones((), int)
    for dim, extent in enumerate(sizes.extents):
        around, size = sizes.around[dim], sizes.kernel[dim]
        begin = np.arange(counts[dim]) * sizes.jumps[dim] - around
        end = np.minimum(begin + size, extent + around)
        if not count_include_pad:
            begin, end = np.maximum(begin, 0), np.minimum(end, extent)
        divisor = np.multiply.outer(divisor, end - begin)
    is_whole = bool((divisor == math.prod(sizes.kernel)).all())
    if is_whole and array_dtype(x).kind == "f":
        return mean(windows, -1)
    return _shared(sum(windows, -1), wrap(divisor))


avg_pool2d = of_rank(_pool_mean, 2, "avg_pool2d")
avg_pool3d = of_rank(
    _pool_mean, 3, "avg_pool3d", "The mean of each window over the last three dimensions; see `avg_pool2d`.",
    ("tensor([[[[1.0, 3.0]]]]), (1, 1, 2)", "tensor([[[[2.]]]])"),
)  # fmt: skip


def _pool_norm(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None,
    ceil_mode: bool = False, *,
    _rank: int = 1,
) -> Tensor:  # fmt: skip
    """The sum of the powers of each window, and its root.

    Example:
        >>> lp_pool1d(tensor([[3.0, 4.0]]), 2, 2)
        tensor([[5.]])
    """
    size = math.prod(sizes_of(kernel_size, _rank, f"lp_pool{_rank}d", "kernel_size"))
    power = pow(tensor(input, f"lp_pool{_rank}d"), norm_type)
    found = _pool_mean(power, kernel_size, stride, 0, ceil_mode, _rank=_rank)
    positive = apply(e.multiply, apply(e.sign, found), apply(e.relu, apply(e.absolute, found)))
    return pow(apply(e.multiply, positive, size), 1.0 / norm_type)


lp_pool1d = of_rank(_pool_norm, 1, "lp_pool1d")
lp_pool2d = of_rank(
    _pool_norm, 2, "lp_pool2d", "The same over two dimensions; see `lp_pool1d`.",
    ("tensor([[[3.0, 4.0]]]), 2, (1, 2)", "tensor([[[5.]]])"),
)  # fmt: skip
lp_pool3d = of_rank(
    _pool_norm, 3, "lp_pool3d", "The same over three dimensions; see `lp_pool1d`.",
    ("tensor([[[[3.0, 4.0]]]]), 2, (1, 1, 2)", "tensor([[[[5.]]]])"),
)  # fmt: skip


# --- as many windows as wanted ------------------------------------------------------------------------------


def _wanted(rank: int, x: Tensor, output_size: Any, function: str) -> list[int]:
    if x.ndim not in (rank + 1, rank + 2):
        fail(
            ShapeError,
            f"{function}(): Expected {rank + 1}D or {rank + 2}D tensor, but got {list(x.shape)}",
        )
    extents = tuple(x.shape[x.ndim - rank :])
    sizes = (output_size,) * rank if isinstance(output_size, int) or output_size is None else output_size
    sizes = tuple(sizes) * rank if len(sizes) == 1 else sizes
    found = [extent if one is None else one for one, extent in zip(sizes, extents)]
    if len(found) != rank or len(sizes) != rank or any(size < 0 for size in found):
        fail(ArgumentError, f"{function}(): output_size must be {rank} integers, found {output_size!r}")
    return found


def _bounds(extent: int, count: int) -> list[tuple[int, int]]:
    """Where each of so many windows begins and ends."""
    return [(place * extent // count, -(-(place + 1) * extent // count)) for place in range(count)]


def _adaptive_avg_pool(input: Tensor, output_size: Any, *, _rank: int = 1) -> Tensor:
    """Means over `output_size` windows, whose sizes differ by one where that does not divide the extent.

    Example:
        >>> adaptive_avg_pool1d(tensor([[1.0, 3.0, 2.0, 0.0]]), 1)
        tensor([[1.5000]])
    """
    function = f"adaptive_avg_pool{_rank}d"
    x = tensor(input, function)
    require_float(x, function)
    wanted = _wanted(_rank, x, output_size, function)
    extents = tuple(x.shape[x.ndim - _rank :])
    if all(size and extent % size == 0 for size, extent in zip(wanted, extents)):
        kernel = tuple(extent // size for size, extent in zip(wanted, extents))
        return _pool_mean(x, kernel, _rank=_rank)
    for dim, size in enumerate(wanted, x.ndim - _rank):
        pieces = [mean(part(x, dim, *one), dim, True) for one in _bounds(x.shape[dim], size)]
        x = cat(pieces, dim) if pieces else part(x, dim, 0, 0)
    return x


adaptive_avg_pool1d = of_rank(_adaptive_avg_pool, 1, "adaptive_avg_pool1d")
adaptive_avg_pool2d = of_rank(
    _adaptive_avg_pool, 2, "adaptive_avg_pool2d",
    "Means over windows of the last two dimensions; see `adaptive_avg_pool1d`. None keeps an extent.",
    ("tensor([[[1.0, 3.0], [2.0, 0.0]]]), (1, 1)", "tensor([[[1.5000]]])"),
)  # fmt: skip
adaptive_avg_pool3d = of_rank(
    _adaptive_avg_pool, 3, "adaptive_avg_pool3d",
    "Means over windows of the last three dimensions; see `adaptive_avg_pool1d`.",
    ("tensor([[[[1.0, 3.0]]]]), 1", "tensor([[[[2.]]]])"),
)  # fmt: skip


def _adaptive_max_pool(
    input: Tensor, output_size: Any, return_indices: bool = False, *, _rank: int = 1
) -> Any:
    """The largest of `output_size` windows; see `adaptive_avg_pool1d`.

    Example:
        >>> adaptive_max_pool1d(tensor([[1.0, 3.0, 2.0, 0.0]]), 1)
        tensor([[3.]])
    """
    function = f"adaptive_max_pool{_rank}d"
    x = tensor(input, function)
    wanted = _wanted(_rank, x, output_size, function)
    extents = tuple(x.shape[x.ndim - _rank :])
    places = expand_to(reshape_to(iota(math.prod(extents)), extents), tuple(x.shape))
    for dim in reversed(range(x.ndim - _rank, x.ndim)):
        values, positions = [], []
        for begin, end in _bounds(x.shape[dim], wanted[dim - x.ndim + _rank]):
            value, index = largest(part(x, dim, begin, end), dim, True)
            values.append(value)
            positions.append(take_along_dim(part(places, dim, begin, end), index, dim))
        x = cat(values, dim) if values else part(x, dim, 0, 0)
        places = cat(positions, dim) if positions else part(places, dim, 0, 0)
    return (x, places) if return_indices else x


adaptive_max_pool1d = of_rank(_adaptive_max_pool, 1, "adaptive_max_pool1d")
adaptive_max_pool2d = of_rank(
    _adaptive_max_pool, 2, "adaptive_max_pool2d",
    "The largest of windows of the last two dimensions; see `adaptive_avg_pool1d`.",
    ("tensor([[[1.0, 3.0], [2.0, 0.0]]]), (1, 1)", "tensor([[[3.]]])"),
)  # fmt: skip
adaptive_max_pool3d = of_rank(
    _adaptive_max_pool, 3, "adaptive_max_pool3d",
    "The largest of windows of the last three dimensions; see `adaptive_avg_pool1d`.",
    ("tensor([[[[1.0, 3.0]]]]), 1", "tensor([[[[3.]]]])"),
)  # fmt: skip
