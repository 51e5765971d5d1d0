"""Convolutions of `scipy.signal` on Tensors: of any dimensions, directly or by Fourier transforms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ...tracer.errors import ArgumentError, ShapeError
from ..functions import PUBLIC
from ..functions.common import INTEGERS, array_dtype, as_dtype, conjugate, fail
from ..functions.matrices.einsum import einsum
from ..functions.shapes import parts
from ..functions.signals import fourier
from ..numpy_api.differences import LONGEST_WRITTEN_OUT
from ..numpy_api.indices import sliding_window_view
from ..numpy_api.pad_modes import pad
from ..numpy_api.values import floats, promoted
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor

Region = Sequence[tuple[int, int]]
"""Of each dimension of the full convolution the first place that is wanted, and the one behind the last."""
METHODS = ("auto", "direct", "fft")
BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}
"""SciPy's names of what is around an array, and those of `np.pad`."""


# --- where --------------------------------------------------------------------------------------------------


def _operands(function: str, in1: Any, in2: Any) -> tuple[Tensor, Tensor]:
    x, kernel = promoted([tensor_of(one) for one in (in1, in2)], as_arrays=True)
    if x.ndim != kernel.ndim:
        fail(
            ShapeError,
            f"scipy.signal.{function}: both arrays must have one number of dimensions, found the shapes "
            f"{tuple(x.shape)} and {tuple(kernel.shape)}.",
        )
    return x, kernel


def _axes(function: str, axes: Any, rank: int) -> list[int]:
    given = range(rank) if axes is None else (axes,) if isinstance(axes, INTEGERS) else axes
    found = [int(one) + rank * (one < 0) for one in given]
    if len(set(found)) < len(found) or not all(0 <= one < rank for one in found):
        fail(ArgumentError, f"scipy.signal.{function}: axes={axes!r} do not fit {rank} dimensions.")
    return found


def _region(
    function: str, mode: str, x: Tensor, kernel: Tensor, axes: Sequence[int], late: bool = False
) -> Region:
    """What a mode wants of the full convolution: all, what is like x, or where nothing is added around.

    Args:
        late: whether between two middles the later one is taken.
    """
    pairs = [(x.shape[one], kernel.shape[one]) for one in axes]
    if mode == "full":
        return [(0, n + m - 1) for n, m in pairs]
    if mode == "same":
        starts = [(m - (not late)) // 2 for _, m in pairs]
        return [(start, start + n) for start, (n, _) in zip(starts, pairs)]
    if mode != "valid":
        fail(
            ArgumentError,
            f"scipy.signal.{function}: mode must be 'full', 'same' or 'valid', found {mode!r}.",
        )
    if not (all(n >= m for n, m in pairs) or all(m >= n for n, m in pairs)):
        fail(
            ShapeError,
            f"scipy.signal.{function}: for mode='valid' one array must be at least as large as the other in "
            f"every dimension, found the shapes {tuple(x.shape)} and {tuple(kernel.shape)}.",
        )
    return [(min(n, m) - 1, max(n, m)) for n, m in pairs]


def _cut(x: Tensor, axes: Sequence[int], region: Region) -> Tensor:
    for axis, (start, stop) in zip(axes, region):
        if (start, stop) != (0, x.shape[axis]):
            x = parts.part(x, axis, start, stop)
    return x


# --- how ----------------------------------------------------------------------------------------------------


def directly(x: Tensor, kernel: Tensor, region: Region) -> Tensor:
    """The region of the convolution along all dimensions, as sums of products."""
    if math.prod(kernel.shape) > math.prod(x.shape):
        x, kernel = kernel, x
    whole = [(0, n + m - 1) for n, m in zip(x.shape, kernel.shape)]
    needed = [m - 1 - start for m, (start, _) in zip(kernel.shape, region)]
    if any(one < 0 for one in needed):  # what has been exchanged is smaller than the region's place
        return _cut(directly(x, kernel, whole), range(x.ndim), region)
    widths = [(low, stop - n) for low, (_, stop), n in zip(needed, region, x.shape)]
    if any(high < 0 for _, high in widths):
        return _cut(directly(x, kernel, whole), range(x.ndim), region)
    around = pad(x, widths) if any(map(any, widths)) else x
    if math.prod(kernel.shape) <= LONGEST_WRITTEN_OUT:
        return _written_out(around, kernel, [stop - start for start, stop in region])
    outer, inner = list(range(x.ndim)), list(range(x.ndim, 2 * x.ndim))
    windows = sliding_window_view(around, tuple(kernel.shape))
    return einsum(windows, [*outer, *inner], parts.flip(kernel, tuple(range(kernel.ndim))), inner, outer)


def _written_out(around: Tensor, kernel: Tensor, sizes: Sequence[int]) -> Tensor:
    """A sum of as many shifted products as the kernel has elements."""
    total: Any = None
    for place in itertools.product(*map(range, kernel.shape)):
        starts = [m - 1 - one for m, one in zip(kernel.shape, place)]
        shifted = _cut(around, range(around.ndim), [(one, one + n) for one, n in zip(starts, sizes)])
        total = shifted * kernel[place] if total is None else total + shifted * kernel[place]
    return total


def _by_transforms(x: Tensor, kernel: Tensor, axes: Sequence[int], region: Region) -> Tensor:
    """The region of the convolution along axes, as a product of spectra; other dimensions are broadcast."""
    from scipy.fft import next_fast_len  # not at start

    x, kernel = floats(x, kernel)  # of integers in double precision, as NumPy's transforms
    is_real = not x.is_complex()
    forward, backward = (fourier.rfftn, fourier.irfftn) if is_real else (fourier.fftn, fourier.ifftn)
    moved = [axis for axis in axes if x.shape[axis] > 1 and kernel.shape[axis] > 1]
    if not moved:
        return _cut(x * kernel, axes, region)
    sizes = [next_fast_len(int(x.shape[axis] + kernel.shape[axis] - 1), is_real) for axis in moved]
    product = forward(x, sizes, moved) * forward(kernel, sizes, moved)
    return _cut(backward(product, sizes, moved), axes, region)


# --- SciPy's names ------------------------------------------------------------------------------------------


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Tensor:
    """By transforms where the smaller array has more elements than are written out, unless of integers."""
    x, kernel = _operands("convolve", in1, in2)
    if method not in METHODS:
        known = ", ".join(map(repr, METHODS))
        fail(ArgumentError, f"scipy.signal.convolve: method must be one of {known}, found {method!r}.")
    if not x.ndim:
        return x * kernel
    axes = range(x.ndim)
    region = _region("convolve", mode, x, kernel, axes)
    if not math.prod(x.shape) or not math.prod(kernel.shape):
        return x[(slice(0, 0),) * x.ndim].reshape(-1)
    is_of_integers = array_dtype(x).kind in "biu"
    is_small = min(math.prod(x.shape), math.prod(kernel.shape)) <= LONGEST_WRITTEN_OUT
    if method == "direct" or (method == "auto" and (is_of_integers or is_small)):
        return directly(x, kernel, region)
    found = _by_transforms(x, kernel, axes, region)
    return as_dtype(PUBLIC["round"](found), array_dtype(x)) if is_of_integers else found


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Tensor:
    return _along("fftconvolve", in1, in2, mode, axes)


def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Tensor:
    return _along("oaconvolve", in1, in2, mode, axes)


def _along(function: str, in1: Any, in2: Any, mode: str, axes: Any) -> Tensor:
    x, kernel = _operands(function, in1, in2)
    if not x.ndim:
        return x * kernel
    chosen = _axes(function, axes, x.ndim)
    pairs = [(n, m) for dim, (n, m) in enumerate(zip(x.shape, kernel.shape)) if dim not in chosen]
    if any(n != m and 1 not in (n, m) for n, m in pairs):
        fail(
            ShapeError,
            f"scipy.signal.{function}: shapes {tuple(x.shape)} and {tuple(kernel.shape)} do not fit along "
            f"other axes than {chosen}.",
        )
    region = _region(function, mode, x, kernel, chosen)
    if not math.prod(x.shape) or not math.prod(kernel.shape):
        return x[(slice(0, 0),) * x.ndim].reshape(-1)
    return _by_transforms(x, kernel, chosen, region)


def _turned(kernel: Any) -> Tensor:
    """Backwards along all dimensions, and conjugated: what a correlation convolves with."""
    found = tensor_of(kernel)
    return conjugate(parts.flip(found, tuple(range(found.ndim)))) if found.ndim else conjugate(found)


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Tensor:
    return convolve(in1, _turned(in2), mode, method)


def _of_planes(function: str, turn: Callable[[Any], Any]) -> Callable[..., Tensor]:
    """A convolution of two matrices, the second of which is turned before; then it is a correlation."""

    def call(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Tensor:
        x, kernel = _operands(function, in1, turn(in2))
        if x.ndim != 2 or boundary not in BOUNDARIES:
            fail(
                ArgumentError,
                f"scipy.signal.{function}: matrices and a boundary among {', '.join(BOUNDARIES)} expected, "
                f"found the shape {tuple(x.shape)} and boundary={boundary!r}.",
            )
        region = _region(function, mode, x, kernel, (0, 1), late=turn is _turned)
        if mode == "valid" or (boundary == "fill" and _is_zero(fillvalue)):
            return directly(x, kernel, region)
        value = {"constant_values": fillvalue} if boundary == "fill" else {}
        around = pad(x, [(m - 1, m - 1) for m in kernel.shape], BOUNDARIES[boundary], **value)
        inner = _region(function, "valid", around, kernel, (0, 1))
        return _cut(directly(around, kernel, inner), (0, 1), region)

    return call


def _is_zero(value: Any) -> bool:
    return not isinstance(value, Tensor) and not value


CONVOLUTIONS: dict[str, Callable[..., Any]] = {
    "convolve": convolve, "correlate": correlate, "fftconvolve": fftconvolve, "oaconvolve": oaconvolve,
    "convolve2d": _of_planes("convolve2d", tensor_of), "correlate2d": _of_planes("correlate2d", _turned),
}  # fmt: skip
"""By name what functions of scipy.signal do on Tensors."""
