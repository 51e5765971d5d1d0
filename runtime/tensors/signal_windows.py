"""Windows for signals: bell-shaped weights, by default one period of a periodic sequence.

Harris, "On the use of windows for harmonic analysis with the discrete Fourier transform" (1978).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError
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
    if kind.kind != "f":
        raise DTypeError(f"{name} expects a floating point dtype, got {dtypes.of(kind)}")
    values = shape(length + (periodic and length > 1))[:length]
    return finished(wrap(values.astype(kind)), requires_grad)


def _cosines(weights: Iterable[float]) -> Shape:
    """A sum of cosines of 0, 1, 2, ... periods, with these weights and signs that alternate."""

    def shape(count: int) -> np.ndarray:
        if count < 2:
            return np.ones(count)
        turn = 2 * np.pi * np.arange(count) / (count - 1)
        return np.sum([(-1) ** k * weight * np.cos(k * turn) for k, weight in enumerate(weights)], axis=0)

    return shape


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

    shape = _cosines((alpha, beta))
    return _window("hamming_window", shape, window_length, periodic, dtype, requires_grad)


def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    """Two cosines.

    Example:
        >>> blackman_window(1)
        tensor([1.])
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


# --- torch.signal.windows: symmetric unless told otherwise --------------------------------------------------


def _symmetric(
    name: str, shape: Shape, length: int, sym: bool = True, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Tensor:  # fmt: skip
    return _window(f"signal.windows.{name}", shape, length, not sym, dtype, requires_grad)


def _require_positive(number: float, name: str, argument: str) -> None:
    if number <= 0:
        raise ArgumentError(f"signal.windows.{name}: {argument} must be positive, found {number}.")


def bartlett(M: int, **options: Any) -> Tensor:
    """A triangle of M points. Options: `sym`, False for a period; `dtype`, `device`, `requires_grad`.

    Example:
        >>> signal.windows.bartlett(3)
        tensor([0., 1., 0.])
    """
    return _symmetric("bartlett", np.bartlett, M, **options)


def blackman(M: int, **options: Any) -> Tensor:
    """Two cosines. Options as of `bartlett`.

    Example:
        >>> signal.windows.blackman(1)
        tensor([1.])
    """
    return _symmetric("blackman", np.blackman, M, **options)


def hann(M: int, **options: Any) -> Tensor:
    """The squared sine. Options as of `bartlett`.

    Example:
        >>> signal.windows.hann(3)
        tensor([0., 1., 0.])
    """
    return _symmetric("hann", np.hanning, M, **options)


def general_cosine(M: int, *, a: Iterable[float], **options: Any) -> Tensor:
    """a[0] - a[1] cos(t) + a[2] cos(2 t) - ... Options as of `bartlett`.

    Raises:
        ArgumentError: `a` is empty, or no sequence of numbers.

    Example:
        >>> signal.windows.general_cosine(3, a=(0.5, 0.5))
        tensor([0., 1., 0.])
    """
    if not isinstance(a, Iterable):
        raise ArgumentError(
            f"signal.windows.general_cosine: coefficients `a` must be a list of numbers, found {a!r}."
        )
    weights = tuple(a)
    if not weights:
        raise ArgumentError("signal.windows.general_cosine: coefficients `a` cannot be empty.")
    return _symmetric("general_cosine", _cosines(weights), M, **options)


def general_hamming(M: int, *, alpha: float = 0.54, **options: Any) -> Tensor:
    """alpha - (1 - alpha) * cosine. Options as of `bartlett`.

    Example:
        >>> signal.windows.general_hamming(2, alpha=0.75)
        tensor([0.5000, 0.5000])
    """
    return general_cosine(M, a=(alpha, 1 - alpha), **options)


def hamming(M: int, **options: Any) -> Tensor:
    """0.54 - 0.46 * cosine. Options as of `bartlett`.

    Example:
        >>> signal.windows.hamming(2)
        tensor([0.0800, 0.0800])
    """
    return general_hamming(M, **options)


def nuttall(M: int, **options: Any) -> Tensor:
    """Three cosines (Nuttall, "Some windows with very good sidelobe behavior", 1981). Options as above.

    Example:
        >>> signal.windows.nuttall(1)
        tensor([1.])
    """
    return general_cosine(M, a=(0.3635819, 0.4891775, 0.1365995, 0.0106411), **options)


def kaiser(M: int, *, beta: float = 12.0, **options: Any) -> Tensor:
    """A Bessel function of a semicircle. Options as of `bartlett`.

    Raises:
        ArgumentError: `beta` is negative.

    Example:
        >>> signal.windows.kaiser(2, beta=0.0)
        tensor([1., 1.])
    """
    if beta < 0:
        raise ArgumentError(f"signal.windows.kaiser: beta must not be negative, found {beta}.")
    return _symmetric("kaiser", lambda count: np.kaiser(count, beta), M, **options)


def cosine(M: int, **options: Any) -> Tensor:
    """Half a period of a sine. Options as of `bartlett`.

    Example:
        >>> signal.windows.cosine(1)
        tensor([1.])
    """
    return _symmetric("cosine", lambda count: np.cos(np.pi * _distances(count) / max(count, 1)), M, **options)


def gaussian(M: int, *, std: float = 1.0, **options: Any) -> Tensor:
    """exp(-t * t / 2) of distances from the middle over `std`. Options as of `bartlett`.

    Raises:
        ArgumentError: `std` is not positive.

    Example:
        >>> signal.windows.gaussian(3)
        tensor([0.6065, 1.0000, 0.6065])
    """
    _require_positive(std, "gaussian", "std")
    return _symmetric("gaussian", lambda count: np.exp(-0.5 * (_distances(count) / std) ** 2), M, **options)


def exponential(
    M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, **options: Any
) -> Tensor:
    """exp(-t) of distances from the middle, or from `center`, over `tau`. Options as of `bartlett`.

    Raises:
        ArgumentError: `tau` is not positive, or a symmetric window has a `center`.

    Example:
        >>> signal.windows.exponential(3)
        tensor([0.3679, 1.0000, 0.3679])
    """
    _require_positive(tau, "exponential", "tau")
    if sym and center is not None:
        raise ArgumentError("signal.windows.exponential: center is for sym=False, found one with sym=True.")
    return _symmetric(
        "exponential", lambda count: np.exp(-np.abs(_distances(count, center)) / tau), M, sym, **options
    )


def _distances(count: int, center: float | None = None) -> np.ndarray:
    """Of `count` places from their middle, or from another one."""
    return np.arange(count) - ((count - 1) / 2 if center is None else center)
