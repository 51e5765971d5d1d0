"""Images in other sizes and orders, under the names of torch.nn.functional: interpolation, grids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, DTypeError, ShapeError
from ....tracer.ops import elementwise as e
from ...tape.apply import apply, wrap
from ...values.tensor import Tensor
from ..common import INT64, array_dtype, as_dtype, fail, filled, floating, tensor
from ..declared import floor
from ..elements.arithmetic import clamp
from ..elements.elementwise import round
from ..matrices.contraction import contracted, matmul
from ..selections.selection import index_add, index_select, take_along_dim
from ..shapes.joining import stack
from ..shapes.movement import expand_to, permute, reshape_to, transpose
from ..shapes.padding import padded
from ..shapes.parts import part
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .windows import Sizes, places_of, sizes_of

__all__ = [
    "affine_grid", "channel_shuffle", "fold", "grid_sample", "interpolate", "native_channel_shuffle",
    "pixel_shuffle", "pixel_unshuffle", "unfold_windows", "upsample", "upsample_bilinear",
    "upsample_nearest",
]  # fmt: skip

CUBIC = -0.75
"""The slope of the cubic kernel at 1, as in PyTorch. Source: R. Keys (1981)."""
SMOOTH_CUBIC = -0.5
"""The same where `antialias` is asked for."""
SUPPORTS = {"bilinear": 1.0, "bicubic": 2.0}
"""How far kernels reach that `antialias` widens."""

# --- interpolation ------------------------------------------------------------------------------------------

DIMENSIONS = {"linear": (1,), "bilinear": (2,), "bicubic": (2,), "trilinear": (3,)}
AVERAGES = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}


def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """Images in another size.

    Args:
        input: of shape (batch, channels, ...) with one to three dimensions behind.
        size: the new extents; or
        scale_factor: by how much the old ones are multiplied.
        mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear" or "area".
        align_corners: whether the first and last elements stay where they are, or the edges of the image.
        recompute_scale_factor: compute with the ratio of the extents, not with the given factor.
        antialias: where the image gets smaller, let each new element be a mean of all that it covers.

    Raises:
        ArgumentError: the options exclude each other.
        DTypeError: the input is not floating; "nearest" takes uint8 as well.

    Example:
        >>> interpolate(tensor([[[1.0, 2.0]]]), size=4)
        tensor([[[1., 1., 2., 2.]]])
    """
    x = tensor(input, "interpolate")
    rank = x.ndim - 2
    if antialias and mode not in SUPPORTS:
        fail(ArgumentError, f"interpolate(): antialias is for modes bilinear and bicubic, found {mode!r}")
    if mode in ("nearest", "nearest-exact", "area"):
        if align_corners is not None:
            fail(
                ArgumentError,
                "align_corners option can only be set with the interpolating modes: linear | bilinear | "
                "bicubic | trilinear",
            )
    elif mode not in DIMENSIONS or rank not in DIMENSIONS[mode]:
        fail(ArgumentError, f"interpolate(): mode {mode!r} does not fit an input of {x.ndim} dimensions")
    _require_pixels(x, mode)
    sizes, factors = _extents(tuple(x.shape[2:]), size, scale_factor, rank)
    if recompute_scale_factor or size is not None:
        factors = [None] * rank
    if mode == "area":
        return AVERAGES[rank](x, sizes)
    resized = _averaged if antialias else _resized
    for dim, (count, factor) in enumerate(zip(sizes, factors)):
        x = resized(x, dim + 2, count, factor, mode, bool(align_corners))
    return x


def _require_pixels(x: Tensor, mode: str) -> None:
    """Weights between 0 and 1 have no integers."""
    kind = array_dtype(x)
    if kind.kind != "f" and not (mode.startswith("nearest") and kind == np.uint8):
        fail(
            DTypeError,
            f"interpolate(): mode {mode!r} is not implemented for {x.dtype}; expected a floating input"
            f"{' or uint8' if mode.startswith('nearest') else ''}. Convert it with .float(), and round.",
        )


def _extents(
    extents: tuple[int, ...], size: Any, scale_factor: Any, rank: int
) -> tuple[list[int], list[float | None]]:
    """The new extents, and the factors that were given."""
    if (size is None) == (scale_factor is None):
        fail(ArgumentError, "interpolate(): one of size and scale_factor must be given, and not both")
    given = size if scale_factor is None else scale_factor
    each = [given] * rank if isinstance(given, int | float) else list(given)
    if len(each) != rank:
        fail(
            ArgumentError,
            f"interpolate(): {len(each)} sizes or factors were given for {rank} dimensions of the image",
        )
    if scale_factor is None:
        return [int(one) for one in each], [None] * rank
    return [math.floor(extent * one) for extent, one in zip(extents, each)], [float(one) for one in each]


def _resized(x: Tensor, dim: int, count: int, factor: float | None, mode: str, aligned: bool) -> Tensor:
    extent = x.shape[dim]
    at: Any
    ratio: Any
    if mode.startswith("nearest"):
        ratio = np.float32(1.0 / factor if factor else extent / count)
        at = np.arange(count, dtype=np.float32) + np.float32(0.5 if mode == "nearest-exact" else 0.0)
        places = np.minimum((at * ratio).astype(int), extent - 1)
        return index_select(x, dim, wrap(places))
    kind: Any = np.dtype("float64") if array_dtype(x) == np.float64 else np.dtype("float32")
    if aligned:
        at = np.arange(count, dtype=kind) * kind.type((extent - 1) / (count - 1) if count > 1 else 0.0)
    else:
        ratio = kind.type(1.0 / factor if factor else extent / count)
        at = (np.arange(count, dtype=kind) + kind.type(0.5)) * ratio - kind.type(0.5)
        at = at if mode == "bicubic" else np.maximum(at, 0)
    first = np.floor(at).astype(int)
    share = at - first
    weights = _cubic(share) if mode == "bicubic" else [1 - share, share]
    begin = -1 if mode == "bicubic" else 0
    total: Tensor | None = None
    for offset, weight in enumerate(weights, begin):
        taken = index_select(x, dim, wrap(np.clip(first + offset, 0, extent - 1)))
        shaped = wrap(np.asarray(weight, array_dtype(x)).reshape((-1, *(1,) * (x.ndim - dim - 1))))
        term = apply(e.multiply, taken, shaped)
        total = term if total is None else apply(e.add, total, term)
    assert total is not None
    return total


def _near(d: Any, slope: float) -> Any:
    """The cubic kernel at distances up to 1."""
    return ((slope + 2) * d - (slope + 3)) * d * d + 1


def _far(d: Any, slope: float) -> Any:
    """The cubic kernel at distances from 1 to 2."""
    return ((slope * d - 5 * slope) * d + 8 * slope) * d - 4 * slope


def _cubic(t: Any) -> list[Any]:
    """The weights of the four neighbours at distances 1 + t, t, 1 - t, 2 - t."""
    return [_far(t + 1, CUBIC), _near(t, CUBIC), _near(1 - t, CUBIC), _far(2 - t, CUBIC)]


def _averaged(x: Tensor, dim: int, count: int, factor: float | None, mode: str, aligned: bool) -> Tensor:
    """Each new element a mean with the weights of a kernel that is as wide as the elements are apart."""
    extent = x.shape[dim]
    if aligned:
        ratio = (extent - 1) / (count - 1) if count > 1 else 0.0
    else:
        ratio = 1.0 / factor if factor else extent / count
    width = max(ratio, 1.0)
    reach = SUPPORTS[mode] * width
    centres = ratio * (np.arange(count)[:, None] + 0.5)
    places = np.arange(extent)
    covered = (places >= np.floor(centres - reach + 0.5)) & (places < np.floor(centres + reach + 0.5))
    distance = np.abs(places - centres + 0.5) / width
    if mode == "bilinear":
        kernel = np.maximum(1 - distance, 0)
    else:
        kernel = np.where(distance < 1, _near(distance, SMOOTH_CUBIC), _far(distance, SMOOTH_CUBIC))
        kernel = np.where(distance < 2, kernel, 0)
    weights = np.where(covered, kernel, 0)
    weights /= weights.sum(1, keepdims=True)
    names = "abcd"[: x.ndim]
    result = names.replace(names[dim], "x")
    return contracted(x, wrap(weights.astype(array_dtype(x))), f"{names},x{names[dim]}->{result}")


def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    """`interpolate`, under its old name.

    Example:
        >>> upsample(tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode "nearest".

    Example:
        >>> upsample_nearest(tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode "bilinear" and aligned corners.

    Example:
        >>> upsample_bilinear(tensor([[[[1.0, 2.0]]]]), size=(1, 3))
        tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """
    return interpolate(input, size, scale_factor, "bilinear", True)


# --- shuffles -----------------------------------------------------------------------------------------------


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels become pixels: (*, C r r, H, W) as (*, C, H r, W r).

    Example:
        >>> pixel_shuffle(tensor([[[1.0]], [[2.0]], [[3.0]], [[4.0]]]), 2)
        tensor([[[1., 2.],
                 [3., 4.]]])
    """
    x, r = tensor(input, "pixel_shuffle"), upscale_factor
    if x.ndim < 3 or r < 1 or x.shape[-3] % (r * r):
        fail(
            ShapeError,
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but got input of shape {list(x.shape)} and upscale_factor={r}",
        )
    *ahead, channels, height, width = x.shape
    split = reshape_to(x, (*ahead, channels // (r * r), r, r, height, width))
    n = len(ahead)
    mixed = permute(split, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return reshape_to(mixed, (*ahead, channels // (r * r), height * r, width * r))


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Pixels become channels: what undoes `pixel_shuffle`.

    Example:
        >>> pixel_unshuffle(tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2).flatten()
        tensor([1., 2., 3., 4.])
    """
    x, r = tensor(input, "pixel_unshuffle"), downscale_factor
    if x.ndim < 3 or r < 1 or x.shape[-1] % r or x.shape[-2] % r:
        fail(
            ShapeError,
            "pixel_unshuffle expects height and width to be divisible by downscale_factor, but got input of "
            f"shape {list(x.shape)} and downscale_factor={r}",
        )
    *ahead, channels, height, width = x.shape
    split = reshape_to(x, (*ahead, channels, height // r, r, width // r, r))
    n = len(ahead)
    mixed = permute(split, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return reshape_to(mixed, (*ahead, channels * r * r, height // r, width // r))


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of groups one after the other: the first of each group, then the second of each.

    Example:
        >>> channel_shuffle(tensor([[[1.0], [2.0], [3.0], [4.0]]]), 2).flatten()
        tensor([1., 3., 2., 4.])
    """
    x = tensor(input, "channel_shuffle")
    if x.ndim < 3 or groups < 1 or x.shape[1] % groups:
        fail(
            ShapeError,
            "Number of channels must be divisible by groups. Got input of shape "
            f"{list(x.shape)} and groups={groups}",
        )
    batch, channels, *rest = x.shape
    split = reshape_to(x, (batch, groups, channels // groups, *rest))
    return reshape_to(transpose(split, 1, 2), tuple(x.shape))


native_channel_shuffle = channel_shuffle

# --- windows as columns -------------------------------------------------------------------------------------


def unfold_windows(
    input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> Tensor:
    """All windows of images as columns: (batch, channels * places in a window, windows). It is `F.unfold`.

    Example:
        >>> unfold(tensor([[[[1.0, 2.0, 3.0]]]]), (1, 2))
        tensor([[[1., 2.],
                 [2., 3.]]])
    """
    x = tensor(input, "unfold")
    if x.ndim == 3:
        found = unfold_windows(x.unsqueeze(0), kernel_size, dilation, padding, stride)
        return reshape_to(found, tuple(found.shape[1:]))
    if x.ndim != 4:
        fail(ShapeError, f"unfold(): Expected 3D or 4D input tensor, but got input of size {list(x.shape)}")
    names = ("kernel_size", "dilation", "padding", "stride")
    given = (kernel_size, dilation, padding, stride)
    kernel, steps, around, jumps = (sizes_of(one, 2, "unfold", name) for one, name in zip(given, names))
    widths = [(0, 0), (0, 0), *((one, one) for one in around)]
    x = padded(x, widths, "constant", 0) if any(around) else x
    places, counts = places_of(x, kernel, jumps, steps, "unfold")
    columns = stack(places, 2)
    return reshape_to(columns, (x.shape[0], x.shape[1] * math.prod(kernel), math.prod(counts)))


def fold(
    input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:  # fmt: skip
    """Images of columns: each element is the sum of all that `unfold` would put there.

    Example:
        >>> fold(tensor([[[1.0, 2.0], [2.0, 3.0]]]), (1, 3), (1, 2))
        tensor([[[[1., 4., 3.]]]])
    """
    x = tensor(input, "fold")
    if x.ndim == 2:
        found = fold(x.unsqueeze(0), output_size, kernel_size, dilation, padding, stride)
        return reshape_to(found, tuple(found.shape[1:]))
    names = ("output_size", "kernel_size", "dilation", "padding", "stride")
    given = (output_size, kernel_size, dilation, padding, stride)
    sizes, kernel, steps, around, jumps = (sizes_of(one, 2, "fold", name) for one, name in zip(given, names))
    wide = [size + 2 * one for size, one in zip(sizes, around)]
    counts = [
        (extent - step * (k - 1) - 1) // jump + 1 for extent, step, k, jump in zip(wide, steps, kernel, jumps)
    ]
    taps, windows = math.prod(kernel), math.prod(max(count, 0) for count in counts)
    if x.ndim != 3 or x.shape[1] % taps or x.shape[2] != windows:
        fail(
            ShapeError,
            f"fold(): Expected size of input's dimensions 1 and 2 to be divisible by {taps} and equal to "
            f"{windows}, but got input of size {list(x.shape)}",
        )
    rows, columns = (
        np.add.outer(np.arange(k) * step, np.arange(count) * jump)
        for k, step, count, jump in zip(kernel, steps, counts, jumps)
    )
    places = rows[:, None, :, None] * wide[1] + columns[None, :, None, :]
    channels = x.shape[1] // taps
    elements = reshape_to(x, (x.shape[0], channels, taps * windows))
    nothing = filled((x.shape[0], channels, math.prod(wide)), 0, array_dtype(x))
    total = index_add(nothing, 2, wrap(places.reshape(-1)), elements)
    whole = reshape_to(total, (x.shape[0], channels, *wide))
    for dim, (size, one) in enumerate(zip(sizes, around), 2):
        whole = part(whole, dim, one, one + size)
    return whole


# --- grids --------------------------------------------------------------------------------------------------


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The places, from -1 to 1, that `grid_sample` reads for affine maps of images.

    Args:
        theta: the maps, of shape (batch, 2, 3), or (batch, 3, 4) for volumes.
        size: the shape of the result of `grid_sample`, (batch, channels, ...).
        align_corners: whether -1 and 1 are the first and last elements, or the edges of the image.

    Example:
        >>> affine_grid(tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2), align_corners=True)
        tensor([[[[-1.,  0.],
                  [ 1.,  0.]]]])
    """
    maps = floating(theta, "affine_grid", "theta")
    extents = [int(one) for one in size[2:]]
    rank = len(extents)
    if maps.ndim != 3 or tuple(maps.shape[1:]) != (rank, rank + 1):
        fail(
            ShapeError,
            f"affine_grid(): Expected a batch of {rank}x{rank + 1} matrices for size {tuple(size)}, but got "
            f"theta of size {list(maps.shape)}",
        )
    lines = []
    for extent in extents:
        line = np.linspace(-1.0, 1.0, extent) if extent > 1 else np.zeros(extent)
        lines.append(line if align_corners else line * (extent - 1) / extent)
    grid = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(extents)], -1)
    base = wrap(grid.reshape(-1, rank + 1).astype(array_dtype(maps)))
    return reshape_to(matmul(base, transpose(maps, 1, 2)), (maps.shape[0], *extents, rank))


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    """Images read at places between -1 and 1.

    Args:
        input: of shape (batch, channels, height, width), or with a depth in front of the height.
        grid: of shape (batch, ..., 2) or (batch, ..., 3): x, y and z of each place.
        mode: "bilinear", "nearest" or "bicubic".
        padding_mode: what is outside: "zeros", the "border", or a "reflection".
        align_corners: whether -1 and 1 are the first and last elements, or the edges of the image.

    Raises:
        ShapeError: the shapes do not fit. ArgumentError: another mode.

    Example:
        >>> grid_sample(tensor([[[[1.0, 3.0]]]]), tensor([[[[0.0, 0.0]]]]), align_corners=True)
        tensor([[[[2.]]]])
    """
    x, places = floating(input, "grid_sample"), floating(grid, "grid_sample", "grid")
    rank = x.ndim - 2
    if (
        rank not in (2, 3)
        or places.ndim != x.ndim
        or places.shape[-1] != rank
        or places.shape[0] != x.shape[0]
    ):
        fail(
            ShapeError,
            f"grid_sample(): a grid of {rank} coordinates for each place and image is expected, found input "
            f"of size {list(x.shape)} and grid of size {list(places.shape)}",
        )
    if mode not in ("bilinear", "nearest", "bicubic") or (mode == "bicubic" and rank != 2):
        fail(ArgumentError, f"grid_sample(): mode {mode!r} is not possible for {rank} dimensions")
    if padding_mode not in ("zeros", "border", "reflection"):
        fail(ArgumentError, f"grid_sample(): padding_mode {padding_mode!r} does not exist")
    extents, aligned = tuple(x.shape[2:]), bool(align_corners)
    shape = tuple(places.shape[1:-1])
    flat = reshape_to(places, (x.shape[0], math.prod(shape), rank))
    at = [
        _unnormalised(flat[:, :, rank - 1 - dim], extent, aligned) for dim, extent in enumerate(extents)
    ]  # the last dimension first, as the grid has it
    if mode != "bicubic":
        at = [_inside(one, extent, padding_mode, aligned) for one, extent in zip(at, extents)]
    images = reshape_to(x, (x.shape[0], x.shape[1], math.prod(extents)))
    within = padding_mode if mode == "bicubic" else "zeros"
    total: Tensor | None = None
    for taps in _products([_taps(one, mode) for one in at]):
        term = _tap(images, [tap[0] for tap in taps], extents, within, aligned)
        for _, weight in taps:
            term = term if weight is None else apply(e.multiply, term, weight.unsqueeze(1))
        total = term if total is None else apply(e.add, total, term)
    assert total is not None
    return reshape_to(total, (x.shape[0], x.shape[1], *shape))


def _unnormalised(place: Tensor, extent: int, aligned: bool) -> Tensor:
    if aligned:
        return (place + 1.0) * ((extent - 1) / 2)
    return ((place + 1.0) * extent - 1.0) * 0.5


def _inside(at: Tensor, extent: int, padding_mode: str, aligned: bool) -> Tensor:
    """The place with what is outside brought in; "zeros" leaves it."""
    if padding_mode == "zeros":
        return at
    if padding_mode == "reflection":
        low, span = (0.0, float(extent - 1)) if aligned else (-0.5, float(extent))
        if not span:
            return apply(e.multiply, at, 0.0)
        distance = apply(e.absolute, at - low)
        flips = floor(distance / span)._detached()
        rest = distance - flips * span
        is_even = apply(e.equal, apply(e.remainder, flips, 2.0), 0.0)
        at = apply(e.where, is_even, rest + low, span - rest + low)
    return clamp(at, 0.0, float(extent - 1))


Taps = list[tuple[Tensor, Tensor | None]]


def _taps(at: Tensor, mode: str) -> Taps:
    """The neighbours along a dimension that a place is made of, each with its weight."""
    if mode == "nearest":
        return [(round(at._detached()), None)]
    first = floor(at._detached())
    share = at - first
    weights = _cubic(share) if mode == "bicubic" else [1.0 - share, share]
    begin = -1 if mode == "bicubic" else 0
    return [(first + float(offset), weight) for offset, weight in enumerate(weights, begin)]


def _products(dims: list[Taps]) -> list[Taps]:
    found: list[Taps] = [[]]
    for taps in dims:
        found = [[*one, tap] for one in found for tap in taps]
    return found


def _tap(
    images: Tensor, at: list[Tensor], extents: tuple[int, ...], padding_mode: str, aligned: bool
) -> Tensor:
    """The elements at whole places; 0 outside."""
    position: Tensor | None = None
    inside: Tensor | None = None
    for one, extent in zip(at, extents):
        brought = _inside(one, extent, padding_mode, aligned)
        fits = apply(
            e.logical_and,
            apply(e.greater_equal, brought, 0.0),
            apply(e.less_equal, brought, float(extent - 1)),
        )
        inside = fits if inside is None else apply(e.logical_and, inside, fits)
        safe = as_dtype(apply(e.where, fits, brought, 0.0), INT64)
        position = safe if position is None else position * extent + safe
    assert position is not None and inside is not None
    shape = (*images.shape[:2], position.shape[1])
    found = take_along_dim(images, expand_to(position.unsqueeze(1), shape), 2)
    return apply(e.where, inside.unsqueeze(1), found, 0.0)
