"""Sliding windows: convolutions and unfolding; pooling is in `pooling`.

A window is as many slices of the tensor as it has places, so that none of its elements is looked up. So code
is for one size of windows, and so are all places in it: they are plain numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....tracer.dims import plain
from ....tracer.errors import ArgumentError, DTypeError, ShapeError
from ....tracer.graph import Node
from ....tracer.ops import elementwise as e
from ....tracer.trace import current_trace
from ...tape.apply import apply, rearranged
from ...values.memory_order import strides_of
from ...values.tensor import Rearranged, Tensor
from ..common import array_dtype, fail, own_dim, tensor, torch_name
from ..matrices.contraction import matmul
from ..shapes.joining import cat, stack
from ..shapes.movement import movedim, reshape_to
from ..shapes.padding import padded
from ..shapes.parts import flip, part, sliced
from .ranks import of_rank

__all__ = [
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "unfold",
]  # fmt: skip

Sizes = int | Sequence[int]
TITLE = "ConvolutionBackward0"


def sizes_of(sizes: Sizes, count: int, function: str, name: str) -> tuple[int, ...]:
    """A size for each dimension that windows slide along."""
    found = (sizes,) * count if isinstance(sizes, int | np.integer) else tuple(sizes)
    found = found * count if len(found) == 1 else found
    if len(found) != count or any(isinstance(one, bool) or not isinstance(one, int) for one in found):
        fail(ArgumentError, f"{function}(): {name} must be an int or {count} ints, found {sizes!r}")
    return tuple(map(plain, found))


def places_of(
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


def _require_one_dtype(function: str, x: Tensor, **others: Tensor | None) -> None:
    for name, other in others.items():
        if other is not None and array_dtype(other) != array_dtype(x):
            fail(
                DTypeError,
                f"{function}(): Input type ({torch_name(x)}) and {name} type ({torch_name(other)}) should be "
                "the same. Convert one, e.g. with .to(x.dtype).",
            )


def _conv(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes | str = 0,
    dilation: Sizes = 1, groups: int = 1, *, _rank: int = 1,
) -> Tensor:  # fmt: skip
    """Windows of (batch, channels, length) times weight of (outputs, channels / groups, size).

    Raises:
        ShapeError: the shapes do not fit, or the window is larger than the padded input.

    Example:
        >>> conv1d(tensor([[[1.0, 2.0, 4.0]]]), tensor([[[1.0, -1.0]]]))
        tensor([[[-1., -2.]]])
    """
    function = f"conv{_rank}d"
    x, w = tensor(input, function), tensor(weight, function, "weight")
    _require_one_dtype(function, x, weight=w, bias=bias)
    if x.ndim == _rank + 1:
        return _conv(x.unsqueeze(0), w, bias, stride, padding, dilation, groups, _rank=_rank).squeeze(0)
    if x.ndim != _rank + 2 or w.ndim != _rank + 2 or x.shape[1] != w.shape[1] * groups or w.shape[0] % groups:
        fail(
            ShapeError,
            f"{function}(): Given groups={groups}, weight of size {list(w.shape)}, expected input of "
            f"{_rank + 2} dimensions with channels to match, but got input of size {list(x.shape)} instead",
        )
    jumps, steps = (
        sizes_of(one, _rank, function, name) for one, name in ((stride, "stride"), (dilation, "dilation"))
    )
    kernel = tuple(map(plain, w.shape[2:]))
    if padding == "same" and any(one != 1 for one in jumps):
        fail(ArgumentError, f"{function}(): padding='same' is not supported for strided convolutions")
    if padding == "same":
        whole = [step * (size - 1) for step, size in zip(steps, kernel)]
        widths = [(0, 0), (0, 0), *((one // 2, one - one // 2) for one in whole)]
        x = padded(x, widths, "constant", 0.0)
    elif padding != "valid":
        around = sizes_of(padding, _rank, function, "padding")  # type: ignore[arg-type]
        if any(one < 0 for one in around):
            fail(ArgumentError, f"{function}(): negative padding is not supported, found {padding}")
        x = _around(x, around, 0.0)
    places, counts = places_of(x, kernel, jumps, steps, function)
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
    return found if bias is None else apply(e.add, found, bias.reshape((-1, *(1,) * _rank)), grad_name=TITLE)


conv1d = of_rank(_conv, 1, "conv1d")
conv2d = of_rank(
    _conv, 2, "conv2d", "Windows of (batch, channels, height, width) times weight; see `conv1d`.",
    ("tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), tensor([[[[1.0, 1.0], [1.0, 1.0]]]])", "tensor([[[[10.]]]])"),
)  # fmt: skip
conv3d = of_rank(
    _conv, 3, "conv3d", "Windows of (batch, channels, depth, height, width) times weight; see `conv1d`.",
    ("tensor([[[[[1.0, 2.0]]]]]), tensor([[[[[1.0, 1.0]]]]])", "tensor([[[[[3.]]]]])"),
)  # fmt: skip


# --- transposed convolutions --------------------------------------------------------------------------------


def _spread_out(x: Tensor, dim: int, jump: int) -> Tensor:
    """x with `jump` - 1 zeros between its elements along a dimension."""
    if jump == 1 or not x.shape[dim]:
        return x
    extent = x.shape[dim]
    widths = [(0, jump - 1 if one == dim + 1 else 0) for one in range(x.ndim + 1)]
    apart = padded(x.unsqueeze(dim + 1), widths, "constant", 0.0)
    joined = reshape_to(apart, (*x.shape[:dim], extent * jump, *x.shape[dim + 1 :]))
    return part(joined, dim, 0, (extent - 1) * jump + 1)


def _conv_transpose(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0,
    output_padding: Sizes = 0, groups: int = 1, dilation: Sizes = 1, *, _rank: int = 1,
) -> Tensor:  # fmt: skip
    """What the gradient of `conv1d` by its input is: each element times weight, added up where windows are.

    Args:
        input: of shape (batch, channels, length).
        weight: of shape (channels, outputs / groups, size).
        output_padding: how much longer the result is, at its end, than the shortest that fits.

    Raises:
        ShapeError: the shapes do not fit. ArgumentError: so much output_padding is not allowed.

    Example:
        >>> conv_transpose1d(tensor([[[1.0, 2.0]]]), tensor([[[1.0, 1.0]]]))
        tensor([[[1., 3., 2.]]])
    """
    function = f"conv_transpose{_rank}d"
    x, w = tensor(input, function), tensor(weight, function, "weight")
    _require_one_dtype(function, x, weight=w, bias=bias)
    if x.ndim == _rank + 1:
        others = (stride, padding, output_padding, groups, dilation)
        return _conv_transpose(x.unsqueeze(0), w, bias, *others, _rank=_rank).squeeze(0)
    if x.ndim != _rank + 2 or w.ndim != _rank + 2 or x.shape[1] != w.shape[0] or w.shape[0] % groups:
        fail(
            ShapeError,
            f"{function}(): Given groups={groups}, weight of size {list(w.shape)}, expected input of "
            f"{_rank + 2} dimensions with channels to match, but got input of size {list(x.shape)} instead",
        )
    given = (stride, padding, output_padding, dilation)
    names = ("stride", "padding", "output_padding", "dilation")
    jumps, around, more, steps = (sizes_of(one, _rank, function, name) for one, name in zip(given, names))
    if any(one >= max(jump, step) for one, jump, step in zip(more, jumps, steps)):
        fail(
            ArgumentError,
            f"{function}(): output padding must be smaller than either stride or dilation, but got "
            f"output_padding: {more} stride: {jumps} dilation: {steps}",
        )
    for dim, jump in enumerate(jumps, 2):
        x = _spread_out(x, dim, jump)
    reach = [step * (size - 1) for step, size in zip(steps, map(plain, w.shape[2:]))]
    widths = [(one - taken, one - taken + rest) for one, taken, rest in zip(reach, around, more)]
    x = padded(x, [(0, 0), (0, 0), *widths], "constant", 0.0)
    inputs, outputs, kernel = w.shape[0] // groups, w.shape[1], tuple(map(plain, w.shape[2:]))
    grouped = movedim(reshape_to(w, (groups, inputs, outputs, *kernel)), 2, 1)
    turned = flip(reshape_to(grouped, (groups * outputs, inputs, *kernel)), *range(2, _rank + 2))
    return _conv(x, turned, bias, 1, 0, dilation, groups, _rank=_rank)


conv_transpose1d = of_rank(_conv_transpose, 1, "conv_transpose1d")
conv_transpose2d = of_rank(
    _conv_transpose, 2, "conv_transpose2d", "The same over 2 dimensions; see `conv_transpose1d`.",
    ("tensor([[[[1.0, 2.0]]]]), tensor([[[[1.0, 1.0]]]])", "tensor([[[[1., 3., 2.]]]])"),
)  # fmt: skip
conv_transpose3d = of_rank(
    _conv_transpose, 3, "conv_transpose3d", "The same over 3 dimensions; see `conv_transpose1d`.",
    ("tensor([[[[[1.0, 2.0]]]]]), tensor([[[[[1.0, 1.0]]]]])", "tensor([[[[[1., 3., 2.]]]]])"),
)  # fmt: skip


# --- windows themselves -------------------------------------------------------------------------------------


def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of a size along a dimension, in a new last dimension: a view.

    Where windows overlap it can't be written to.

    Example:
        >>> unfold(tensor([1, 2, 3]), 0, 2, 1)
        tensor([[1, 2],
                [2, 3]])
    """
    x = tensor(input, "unfold")
    if not x.ndim and size <= 1:
        return reshape_to(x, (size,)) if size else part(reshape_to(x, (1,)), 0, 0, 0)
    dim = own_dim(dimension, x, "unfold")

    def windows_of(x: Tensor) -> Tensor:
        places, _ = places_of(movedim(x, dim, -1), (size,), (step,), (1,), "unfold")
        shown = movedim(stack(places, -1), -2, dim)
        if isinstance(x._value, Node):
            current_trace().strides[shown._value] = _strides_of_windows(strides_of(x._value), dim, step)
        return shown

    def memory(array: np.ndarray) -> np.ndarray:
        strides = _strides_of_windows(array.strides, dim, step)
        count = (array.shape[dim] - size) // step + 1
        shape = (*array.shape[:dim], count, *array.shape[dim + 1 :], size)
        return as_strided(array, shape, strides, writeable=array.flags.writeable)

    windows = Rearranged(f"unfold({dim}, {size}, {step})", windows_of)
    return rearranged(x, windows, memory, is_shared=size > step and x.shape[dim] >= size + step)


def _strides_of_windows(strides: Sequence[int], dim: int, step: int) -> tuple[int, ...]:
    return (*strides[:dim], strides[dim] * step, *strides[dim + 1 :], strides[dim])
