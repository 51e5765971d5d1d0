"""Fourier transforms of the windows of a signal, and the signal of such a spectrogram."""

from __future__ import annotations

import numpy as np

from ....tracer.errors import ArgumentError, DTypeError, ShapeError
from ....tracer.ops import elementwise as e
from ...tape.apply import apply, wrap
from ...values.tensor import Tensor
from ..common import array_dtype, as_dtype, fail, filled, floating, tensor
from ..elements.complex_numbers import view_as_real
from ..networks.windows import unfold
from ..selections.selection import index_add
from ..shapes.movement import expand_to, reshape_to, transpose
from ..shapes.padding import constant_pad_nd, padded
from ..shapes.parts import part
from .fourier import fft, ifft, irfft, rfft

__all__ = ["istft", "stft"]

NEGLIGIBLE = 1e-11
"""Below it the sum of squared windows is no divisor, as in PyTorch."""


def _window(
    window: Tensor | None, n_fft: int, win_length: int | None, dtype: np.dtype, function: str
) -> Tensor:
    """The window, ones unless given, with zeros on both sides up to the size of the transform."""
    length = n_fft if win_length is None else int(win_length)
    if not 0 < length <= n_fft:
        fail(ArgumentError, f"{function}: expected 0 < win_length <= n_fft, but got win_length={length}")
    found = filled((length,), 1, dtype) if window is None else tensor(window, function, "window")
    if tuple(found.shape) != (length,):
        fail(
            ShapeError,
            f"{function}: expected a 1D window tensor of size equal to win_length={length}, but got window "
            f"with size {tuple(found.shape)}",
        )
    before = (n_fft - length) // 2
    return constant_pad_nd(found, (before, n_fft - length - before)) if length < n_fft else found


def _hop(hop_length: int | None, n_fft: int, function: str) -> int:
    hop = n_fft // 4 if hop_length is None else int(hop_length)
    if hop < 1:
        fail(ArgumentError, f"{function}: expected hop_length > 0, but got hop_length={hop}")
    return hop


def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None,
) -> Tensor:  # fmt: skip
    """The Fourier transforms of windows of a signal, one behind the other in the last dimension.

    Args:
        input: signals in the last dimension, one or a batch of them.
        n_fft: how many elements are transformed at a time, every `hop_length`, n_fft / 4 unless given.
        window: of `win_length` elements, n_fft unless given; they are multiplied by it.
        center: whether the first window is around the first element; `pad_mode` says how the ends go on.
        normalized: divide by the root of n_fft.
        onesided: leave out the negative frequencies; the default for real input and window.
        return_complex: else the parts are in a new last dimension. Real input needs it to be said.

    Returns:
        (..., frequencies, windows).

    Raises:
        ShapeError: the input has other dimensions, or is shorter than n_fft. ArgumentError: a size is out of
            its range. DTypeError: `onesided` of complex numbers.

    Example:
        >>> stft(tensor([1.0, 2.0, 3.0, 4.0]), 2, 2, center=False, return_complex=True)
        tensor([[ 3.+0.j,  7.+0.j],
                [-1.+0.j, -1.+0.j]])
    """
    x = floating(input, "stft")
    if x.ndim not in (1, 2):
        fail(ShapeError, f"stft: expected a 1D or 2D tensor, but got shape {tuple(x.shape)}")
    shape = _window(window, n_fft, win_length, array_dtype(x), "stft")
    is_complex = x.is_complex() or shape.is_complex()
    if return_complex is None and not is_complex:
        fail(ArgumentError, "stft requires the return_complex parameter be given for real inputs.")
    if onesided and is_complex:
        fail(DTypeError, "Cannot have onesided output if window or input is complex.")
    if center:
        x = padded(x, [(0, 0)] * (x.ndim - 1) + [(n_fft // 2, n_fft // 2)], pad_mode, None)
    if not 0 < n_fft <= x.shape[-1]:
        fail(ShapeError, f"stft: expected 0 < n_fft <= {x.shape[-1]}, but got n_fft={n_fft}")
    windows = unfold(x, -1, n_fft, _hop(hop_length, n_fft, "stft")) * shape
    transform = fft if is_complex or onesided is False else rfft
    found = transpose(transform(windows, norm="ortho" if normalized else None), -1, -2)
    return view_as_real(found) if return_complex is False else found


def istft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Tensor:  # fmt: skip
    """The signal whose `stft`, with the same arguments, is nearest to the input.

    Args:
        length: how many elements there are; otherwise what whole windows give.
        return_complex: whether the signal is complex, as the input of a transform with all frequencies.

    Raises:
        DTypeError: the input is real, or `return_complex` asks for more than one side tells. ShapeError: it
            has other dimensions, or not the frequencies of n_fft. ArgumentError: windows leave places out.

    Example:
        >>> x = tensor([1.0, 2.0, 3.0, 4.0])
        >>> istft(stft(x, 2, 2, center=False, return_complex=True), 2, 2, center=False)
        tensor([1., 2., 3., 4.])
    """
    x = tensor(input, "istft")
    if not x.is_complex():
        fail(DTypeError, f"istft requires a complex-valued input tensor, as of stft; found {x.dtype}.")
    one_side = n_fft // 2 + 1
    if onesided is None:
        onesided = x.ndim > 1 and x.shape[-2] != n_fft
    if x.ndim not in (2, 3) or x.shape[-2] != (one_side if onesided else n_fft):
        fail(
            ShapeError,
            f"istft: expected (..., {one_side if onesided else n_fft} frequencies, windows) for "
            f"n_fft={n_fft}, onesided={onesided}, but got {tuple(x.shape)}",
        )
    if return_complex and onesided:
        fail(DTypeError, "cannot have onesided input if return_complex is True")
    spectra, norm = transpose(x, -1, -2), "ortho" if normalized else None
    if return_complex:
        parts = ifft(spectra, norm=norm)
    else:
        parts = irfft(part(spectra, x.ndim - 1, 0, one_side), n_fft, norm=norm)
    shape = _window(window, n_fft, win_length, array_dtype(parts), "istft")
    hop = _hop(hop_length, n_fft, "istft")
    signal = _overlapping(parts * shape, hop)
    weights = _overlapping(expand_to(shape * shape, tuple(parts.shape[-2:])), hop)
    whole, start = signal.shape[-1], n_fft // 2 if center else 0
    stop = whole - start if length is None else min(start + length, whole)
    signal, weights = part(signal, signal.ndim - 1, start, stop), part(weights, 0, start, stop)
    if not bool((abs(weights._detached()) > NEGLIGIBLE).all()):
        fail(ArgumentError, "istft: window overlap add min: some places are in no window, or it is 0 there.")
    missing = 0 if length is None else start + length - stop
    found = apply(e.divide, signal, as_dtype(weights, array_dtype(signal)))
    return constant_pad_nd(found, (0, missing)) if missing else found


def _overlapping(windows: Tensor, hop: int) -> Tensor:
    """The sum of windows of (..., windows, size) that begin every `hop` elements."""
    *batch, count, size = windows._value.shape
    places = (hop * np.arange(count)[:, None] + np.arange(size)).reshape(-1)
    total = filled((*batch, size + hop * (count - 1)), 0, array_dtype(windows))
    flat = reshape_to(windows, (*batch, count * size))
    return index_add(total, len(batch), wrap(places), flat)
