"""Fourier transforms. SciPy evaluates them; each is linear, and its rule is its adjoint.

`norm` says which direction divides by the number of elements, "backward", "forward", or both by its root,
"ortho". The adjoint of a transform is the other direction with the other one divided.
"""

from __future__ import annotations

import numpy as np

from ..errors import DTypeError
from ..operator import OWN_RULES, Array, declare
from ..spec import Spec, complex_dtype, real_dtype
from .lazy import scipy_fft
from .movement import pad, slice_

ADJOINT = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _infer_fourier(x: Spec, dims: tuple[int, ...], inverse: bool, norm: str) -> Spec:
    if x.dtype.kind != "c":
        raise DTypeError(f"fft: complex numbers expected, found {x}.")
    return x


def _evaluate_fourier(x: np.ndarray, dims: tuple[int, ...], inverse: bool, norm: str) -> np.ndarray:
    if not x.size:
        return x.copy()
    return (scipy_fft().ifftn if inverse else scipy_fft().fftn)(x, axes=dims, norm=norm)


fourier = declare(
    "fourier", "eager", "x", infer=_infer_fourier, evaluate=_evaluate_fourier, grad_fn="FftC2C",
    vjp={"x": lambda g, dims, inverse, norm: fourier(g, dims=dims, inverse=not inverse, norm=ADJOINT[norm])},
    of_complex=OWN_RULES, noun="spectrum", doc="the discrete Fourier transform of complex numbers",
)  # fmt: skip


def _with_extent(spec: Spec, dim: int, extent: int, dtype: np.dtype) -> Spec:
    return Spec((*spec.shape[:dim], extent, *spec.shape[dim + 1 :]), dtype)


def _plus_inner(x: Array, dim: int, size: int, factor: float) -> Array:
    """x and `factor` times those frequencies that stand for two of a signal of `size` numbers."""
    shape, stop = tuple(x.shape), (size + 1) // 2
    starts = tuple(int(axis == dim) for axis in range(len(shape)))
    stops = tuple(max(stop, 1) if axis == dim else extent for axis, extent in enumerate(shape))
    widths = tuple((1, end - max(stop, 1)) if axis == dim else (0, 0) for axis, end in enumerate(shape))
    inner = slice_(x, starts=starts, stops=stops, steps=(1,) * len(shape))
    return x + factor * pad(inner, widths=widths, value=0.0)


def _evaluate_real(x: np.ndarray, dim: int, norm: str) -> np.ndarray:
    return scipy_fft().rfft(x, axis=dim, norm=norm)


real_fourier = declare(
    "real_fourier", "eager", "x", evaluate=_evaluate_real, grad_fn="FftR2C", noun="spectrum",
    infer=lambda x, dim, norm: _with_extent(x, dim, x.shape[dim] // 2 + 1, complex_dtype(x.dtype)),
    vjp={
        "x": lambda g, x_spec, dim, norm: hermitian_inverse(
            _plus_inner(g, dim, x_spec.shape[dim], -0.5), dim=dim, size=x_spec.shape[dim], norm=ADJOINT[norm]
        )
    },
    of_complex=OWN_RULES, doc="the Fourier transform of real numbers: the frequencies that are not negative",
)  # fmt: skip
hermitian_inverse = declare(
    "hermitian_inverse", "eager", "x", grad_fn="FftC2R", noun="signal",
    infer=lambda x, dim, size, norm: _with_extent(x, dim, size, real_dtype(x.dtype)),
    evaluate=lambda x, dim, size, norm: scipy_fft().irfft(x, n=size, axis=dim, norm=norm),
    vjp={
        "x": lambda g, dim, size, norm: _plus_inner(
            real_fourier(g, dim=dim, norm=ADJOINT[norm]), dim, size, 1.0
        )
    },
    of_complex=OWN_RULES,
    doc="the real numbers with these frequencies, and their conjugates as negative ones",
)  # fmt: skip
