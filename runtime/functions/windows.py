"""Sliding windows: convolutions, pooling, unfolding. And rows: embeddings, dropout, distances.

A window is as many slices of the tensor as it has places, so that none of its elements is looked up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, ShapeError, UnsupportedError
from ...tracer.ops import elementwise as e
from ..tape import apply
from ..tensor import Tensor
from .common import as_dtype, common_dtype, fail, floating, own_dim, tensor
from .contraction import matmul
from .joining import cat, stack
from .movement import movedim, reshape_to
from .padding import padded
from .parts import part, sliced
from .reduction import max as largest
from .reduction import mean
from .selection import index_select
from .statistics import vector_norm

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "avg_pool1d", "avg_pool2d", "cdist", "conv1d", "conv2d",
    "dropout", "embedding", "max_pool1d", "max_pool2d", "unfold",
]  # fmt: skip

Sizes = int | Sequence[int]
TITLE = "ConvolutionBackward0"


def _each(sizes: Sizes, count: int, function: str, name: str) -> tuple[int, ...]:
    """A size for each dimension that windows slide along."""
    found = (sizes,) * count if isinstance(sizes, int | np.integer) else tuple(sizes)
    found = found * count if len(found) == 1 else found
    if len(found) != count or any(isinstance(one, bool) or not isinstance(one, int) for one in found):
        fail(ArgumentError, f"{function}(): {name} must be an int or {count} ints, found {sizes!r}")
    return found


def _places(
    x: Tensor, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int], function: str
) -> tuple[list[Tensor], tuple[int, ...]]:
    """For each place in a window its elements in all windows, along the last dimensions; and how many."""
    extents = tuple(x.shape[x.ndim - len(kernel) :])
    if any(one < 1 for one in (*kernel, *stride, *dilation)):
        fail(ArgumentError, f"{function}(): sizes of windows, strides and dilations must be positive.")
    counts = tuple(
        (extent - step * (size - 1) - 1) // jump + 1
        for extent, size, jump, step in zip(extents, kernel, stride, dilation)
    )
    if any(one < 1 for one in counts):
        fail(
            ShapeError,
            f"{function}(): Kernel size can't be greater than actual input size: {kernel} in {extents}.",
        )
    ahead = x.ndim - len(kernel)
    found = []
    for place in itertools.product(*map(range, kernel)):
        starts = [one * step for one, step in zip(place, dilation)]
        stops = [first + (count - 1) * jump + 1 for first, count, jump in zip(starts, counts, stride)]
        found.append(
            sliced(
                x,
                [*(0,) * ahead, *starts],
                [*x.shape[:ahead], *stops],
                [*(1,) * ahead, *stride],
            )
        )
    return found, counts


def _around(x: Tensor, padding: Sequence[int], value: float) -> Tensor:
    widths = [(0, 0)] * (x.ndim - len(padding)) + [(one, one) for one in padding]
    return padded(x, widths, "constant", value) if any(padding) else x


# --- convolutions -------------------------------------------------------------------------------------------


def _convolution(
    rank: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes | str,
    dilation: Sizes, groups: int,
) -> Tensor:  # fmt: skip
    function = f"conv{rank}d"
    x, w = floating(input, function), floating(weight, function, "weight")
    dtype = common_dtype(x, w)
    x, w = as_dtype(x, dtype), as_dtype(w, dtype)
    if x.ndim == rank + 1:
        return _convolution(rank, x.unsqueeze(0), w, bias, stride, padding, dilation, groups).squeeze(0)
    if x.ndim != rank + 2 or w.ndim != rank + 2 or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        fail(
            ShapeError,
            f"{function}(): Given groups={groups}, weight of size {list(w.shape)}, expected input of "
            f"{rank + 2} dimensions with channels to match, but got input of size {list(x.shape)} instead",
        )
    jumps, steps = (
        _each(one, rank, function, name) for one, name in ((stride, "stride"), (dilation, "dilation"))
    )
    kernel = tuple(w.shape[2:])
    if padding == "same":
        whole = [step * (size - 1) for step, size in zip(steps, kernel)]
        widths = [(0, 0), (0, 0), *((one // 2, one - one // 2) for one in whole)]
        x = padded(x, widths, "constant", 0.0)
    elif padding != "valid":
        x = _around(x, _each(padding, rank, function, "padding"), 0.0)  # type: ignore[arg-type]
    places, counts = _places(x, kernel, jumps, steps, function)
    windows = stack(places, 2)  # batch, channels, places in a window, windows
    channels, outputs = w.shape[1], w.shape[0] // groups
    results = []
    for group in range(groups):
        mine = part(windows, 1, group * channels, (group + 1) * channels) if groups > 1 else windows
        kernels = part(w, 0, group * outputs, (group + 1) * outputs) if groups > 1 else w
        rows = reshape_to(kernels, (outputs, channels * math.prod(kernel)))
        columns = reshape_to(mine, (x.shape[0], channels * math.prod(kernel), math.prod(counts)))
        results.append(matmul(rows, columns))
    joined = cat(results, 1) if groups > 1 else results[0]
    found = reshape_to(joined, (x.shape[0], w.shape[0], *counts), TITLE)
    return found if bias is None else apply(e.add, found, bias.reshape((-1, *(1,) * rank)), grad_name=TITLE)


def conv1d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0,
    dilation: Sizes = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Windows of (batch, channels, length) times weight of (outputs, channels / groups, size).

    Raises:
        ShapeError: the shapes do not fit, or the window is larger than the padded input.

    Example:
        >>> conv1d(tensor([[[1.0, 2.0, 4.0]]]), tensor([[[1.0, -1.0]]]))
        tensor([[[-1., -2.]]])
    """
    return _convolution(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0,
    dilation: Sizes = 1, groups: int = 1,
) -> Tensor:  # fmt: skip
    """Windows of (batch, channels, height, width) times weight; see `conv1d`.

    Example:
        >>> conv2d(tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), tensor([[[[1.0, 1.0], [1.0, 1.0]]]]))
        tensor([[[[10.]]]])
    """
    return _convolution(2, input, weight, bias, stride, padding, dilation, groups)


# --- pooling ------------------------------------------------------------------------------------------------


def _pooled(
    rank: int, input: Tensor, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes,
    ceil_mode: bool, function: str, filler: float,
) -> Tensor:  # fmt: skip
    """The elements of each window along a new last dimension."""
    if ceil_mode:
        fail(UnsupportedError, f"{function}(): ceil_mode is not supported. Pad the input instead.")
    kernel = _each(kernel_size, rank, function, "kernel_size")
    jumps = kernel if stride is None else _each(stride, rank, function, "stride")
    around = _each(padding, rank, function, "padding")
    if any(2 * one > size for one, size in zip(around, kernel)):
        fail(ArgumentError, f"{function}(): pad should be at most half of effective kernel size")
    x = _around(floating(input, function), around, filler)
    return stack(_places(x, kernel, jumps, _each(dilation, rank, function, "dilation"), function)[0], -1)


def max_pool1d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """The largest of each window along the last dimension; the first of equal ones has the gradient.

    Example:
        >>> max_pool1d(tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[3., 2.]])
    """
    windows = _pooled(1, input, kernel_size, stride, padding, dilation, ceil_mode, "max_pool1d", -math.inf)
    return largest(windows, -1).values


def max_pool2d(
    input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1,
    ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """The largest of each window over the last two dimensions; see `max_pool1d`.

    Example:
        >>> max_pool2d(tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2)
        tensor([[[3.]]])
    """
    windows = _pooled(2, input, kernel_size, stride, padding, dilation, ceil_mode, "max_pool2d", -math.inf)
    return largest(windows, -1).values


def avg_pool1d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
) -> Tensor:
    """The mean of each window along the last dimension; padding counts as zeros.

    Example:
        >>> avg_pool1d(tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[2., 1.]])
    """
    return mean(_pooled(1, input, kernel_size, stride, padding, 1, ceil_mode, "avg_pool1d", 0.0), -1)


def avg_pool2d(
    input: Tensor,
    kernel_size: Sizes,
    stride: Sizes | None = None,
    padding: Sizes = 0,
    ceil_mode: bool = False,
) -> Tensor:
    """The mean of each window over the last two dimensions; padding counts as zeros.

    Example:
        >>> avg_pool2d(tensor([[[1.0, 3.0], [2.0, 0.0]]]), 2)
        tensor([[[1.5000]]])
    """
    return mean(_pooled(2, input, kernel_size, stride, padding, 1, ceil_mode, "avg_pool2d", 0.0), -1)


def _adaptive(rank: int, input: Tensor, output_size: Any, function: str) -> Tensor:
    extents = tuple(input.shape[input.ndim - rank :])
    wanted = (output_size,) * rank if isinstance(output_size, int) or output_size is None else output_size
    sizes = [extent if one is None else one for one, extent in zip(wanted, extents)]
    if len(sizes) != rank or any(size < 1 or extent % size for size, extent in zip(sizes, extents)):
        fail(
            UnsupportedError,
            f"{function}(): output_size {output_size!r} does not divide {extents}. Use avg_pool{rank}d.",
        )
    kernel = tuple(extent // size for extent, size in zip(extents, sizes))
    return mean(_pooled(rank, input, kernel, None, 0, 1, False, function, 0.0), -1)


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows of one size, of which there are `output_size`; it must divide the extent.

    Example:
        >>> adaptive_avg_pool1d(tensor([[1.0, 3.0, 2.0, 0.0]]), 1)
        tensor([[1.5000]])
    """
    return _adaptive(1, input, output_size, "adaptive_avg_pool1d")


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Means over windows of the last two dimensions; see `adaptive_avg_pool1d`.

    Example:
        >>> adaptive_avg_pool2d(tensor([[[1.0, 3.0], [2.0, 0.0]]]), (1, 1))
        tensor([[[1.5000]]])
    """
    return _adaptive(2, input, output_size, "adaptive_avg_pool2d")


# --- others -------------------------------------------------------------------------------------------------


def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of a size along a dimension, in a new last dimension.

    Example:
        >>> unfold(tensor([1, 2, 3]), 0, 2, 1)
        tensor([[1, 2],
                [2, 3]])
    """
    x = tensor(input, "unfold")
    if not x.ndim and size <= 1:
        return reshape_to(x, (size,)) if size else part(reshape_to(x, (1,)), 0, 0, 0)
    dim = own_dim(dimension, x, "unfold")
    places, _ = _places(movedim(x, dim, -1), (size,), (step,), (1,), "unfold")
    return movedim(stack(places, -1), -2, dim)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """The rows of `weight` at integer positions; that at `padding_idx` gets no gradient.

    Example:
        >>> embedding(tensor([1, 0]), tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[3., 4.],
                [1., 2.]])
    """
    index, rows = tensor(input, "embedding"), tensor(weight, "embedding", "weight")
    flat = reshape_to(index, (index.numel(),))
    found = reshape_to(index_select(rows, 0, flat), (*index.shape, *rows.shape[1:]))
    if padding_idx is None:
        return found
    is_padding = apply(e.equal, index, padding_idx % rows.shape[0]).unsqueeze(-1)
    return apply(e.where, is_padding, found.detach(), found)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element 0 with probability p, else divided by 1 - p; the input itself unless `training`.

    Example:
        >>> dropout(tensor([1.0, 2.0]), 0.5, training=False)
        tensor([1., 2.])
    """
    from ..sampling import rand_like

    x = floating(input, "dropout")
    if not 0 <= p <= 1:
        fail(ArgumentError, f"dropout probability has to be between 0 and 1, but got {p}")
    if inplace:
        fail(UnsupportedError, "dropout(): inplace is not supported. Assign the result.")
    if not training or p == 0:
        return x
    kept = apply(e.greater_equal, rand_like(x.detach()), p)
    return apply(e.where, kept, apply(e.multiply, x, 1 / (1 - p) if p < 1 else 0.0), 0.0)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """The p-norms of the differences between all rows of x1 and all rows of x2.

    `compute_mode` is accepted; the differences are always computed.

    Example:
        >>> cdist(tensor([[0.0, 0.0]]), tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5., 1.]])
    """
    a, b = floating(x1, "cdist", "x1"), floating(x2, "cdist", "x2")
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
        fail(
            ShapeError,
            f"cdist(): rows of one size expected, found shapes {tuple(a.shape)} and {tuple(b.shape)}",
        )
    return vector_norm(apply(e.subtract, a.unsqueeze(-2), b.unsqueeze(-3)), p, -1)
