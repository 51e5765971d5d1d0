"""Windows for signals: bell-shaped weights, by default one period of a periodic sequence.

Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform" (1978).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError
from ..tape.apply import wrap
from ..values import dtypes
from ..values.tensor import Tensor
from .creation import dtype_or, finished

Shape = Callable[..., np.ndarray]
"""(number of points) -> symmetric window."""


def _window(name: str, shape: Shape, length: int, periodic: bool, dtype: Any, requires_grad: bool) -> Tensor:
    if length < 0:
        raise ArgumentError(f"{name} requires non-negative window_length, got window_length={length}")
    kind = dtype_or(dtype, dtypes.default_float(), name)
    values = np.ones(length) if length < 2 else shape(length + periodic)[:length]
    return finished(wrap(values.astype(kind)), requires_grad)


def hann_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """The squared sine.

    Example:
        >>> hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("hann_window", np.hanning, window_length, periodic, dtype, requires_grad)


def hamming_window(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """alpha - beta * cosine.

    Example:
        >>> hamming_window(2, periodic=False)
        tensor([0.0800, 0.0800])
    """

    def shape(count: int) -> np.ndarray:
        return alpha - beta * np.cos(2 * np.pi * np.arange(count) / (count - 1))

    return _window("hamming_window", shape, window_length, periodic, dtype, requires_grad)


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Two cosines.

    Example:
        >>> blackman_window(2)
        tensor([-2.9802e-08,  1.0000e+00])
    """
    return _window("blackman_window", np.blackman, window_length, periodic, dtype, requires_grad)


def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A triangle.

    Example:
        >>> bartlett_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("bartlett_window", np.bartlett, window_length, periodic, dtype, requires_grad)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """A Bessel function of a semicircle.

    Example:
        >>> kaiser_window(1)
        tensor([1.])
    """

    def shape(count: int) -> np.ndarray:
        return np.kaiser(count, beta)

    return _window("kaiser_window", shape, window_length, periodic, dtype, requires_grad)
