"""Fourier transforms as a program calls them: several rows at once by machine code, others by SciPy."""

from __future__ import annotations

import functools
import math

import numpy as np

from ..tracer.ops.fourier import ADJOINT, fft, irfft, rfft
from .cost.machine import Machine, this_machine

SHARES = {"backward": 0.0, "ortho": 0.5, "forward": 1.0}
"""Which power of the number of elements a transform is divided by on the way forward."""


def _scale(count: int, norm: str) -> float:
    """What a transform forward is multiplied by."""
    return float(count ** -SHARES[norm])


def fill_fft(x: np.ndarray, out: np.ndarray, dims: tuple[int, ...], inverse: bool, norm: str) -> None:
    """As the operator `fft` evaluates it."""
    from .machine import transforms  # LLVM

    longer = [dim for dim in dims if x.shape[dim] > 1]
    if not longer or not _is_by_rows(x, out, x.shape, longer):
        assert fft.into is not None
        fft.into(x, out, dims=dims, inverse=inverse, norm=norm)
        return
    scale = _scale(math.prod(x.shape[dim] for dim in longer), ADJOINT[norm] if inverse else norm)
    for dim in reversed(longer):
        transforms.transform(x, out, dim, inverse, scale)
        x, scale = out, 1.0


def fill_rfft(x: np.ndarray, out: np.ndarray, dim: int, norm: str) -> None:
    """As the operator `rfft` evaluates it."""
    from .machine import transforms  # LLVM

    size = x.shape[dim]
    if _is_half(x, dim, size) and _is_by_rows(x, out, (*x.shape[:-1], size // 2), [dim]):
        transforms.transform_real(x, out, _scale(size, norm))
    else:
        assert rfft.into is not None
        rfft.into(x, out, dim=dim, norm=norm)


def fill_irfft(x: np.ndarray, out: np.ndarray, dim: int, norm: str) -> None:
    """As the operator `irfft` evaluates it."""
    from .machine import transforms  # LLVM

    size = out.shape[dim]
    is_whole = x.shape[dim] == size // 2 + 1
    if is_whole and _is_half(x, dim, size) and _is_by_rows(x, out, (*x.shape[:-1], size // 2), [dim]):
        transforms.transform_to_real(x, out, _scale(size, ADJOINT[norm]))
    else:
        assert irfft.into is not None
        irfft.into(x, out, dim=dim, norm=norm)


def _is_half(x: np.ndarray, dim: int, size: int) -> bool:
    """Whether rows of so many real numbers are half as many complex ones."""
    return dim == x.ndim - 1 and size % 2 == 0


def _is_by_rows(x: np.ndarray, out: np.ndarray, shape: tuple[int, ...], dims: list[int]) -> bool:
    """Whether all transforms, of complex numbers of a shape, are for machine code, and it pays."""
    itemsize = max(x.itemsize, out.itemsize)
    in_order = x.flags.c_contiguous and out.flags.c_contiguous
    return in_order and _pays(shape, tuple(dims), itemsize, this_machine())


@functools.lru_cache(maxsize=256)
def _pays(shape: tuple[int, ...], dims: tuple[int, ...], itemsize: int, machine: Machine) -> bool:
    from .machine import transforms  # LLVM

    count = math.prod(shape)
    time = sum(transforms.nanoseconds(count, max(shape[dim], 1), itemsize) for dim in dims)
    return machine.is_worth_preparing(time) and all(transforms.suits(shape, dim, itemsize) for dim in dims)


OWN = {"fft": fill_fft, "rfft": fill_rfft, "irfft": fill_irfft}
"""By operator, what writes its value into the last array."""
