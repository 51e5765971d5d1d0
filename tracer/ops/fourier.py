"""Fourier transforms. SciPy evaluates them; each is linear, and its rule is its adjoint.

`norm` says which direction divides by the number of elements, "backward", "forward", or both by its root,
"ortho". The adjoint of a transform is the other direction with the other one divided.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DTypeError
from ..operator import OWN_RULES, Array, declare
from ..spec import Spec, complex_dtype, real_dtype
from .lazy import pocketfft, scipy_fft
from .movement import pad, slice_

ADJOINT = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
DIVISORS = {"backward": 0, "ortho": 1, "forward": 2}
"""What pocketfft divides by on the way forward: 1, the root of the number of elements, this number."""


def _divisor(norm: str, inverse: bool) -> int:
    return DIVISORS[ADJOINT[norm] if inverse else norm]


def _filling(
    compute: Callable[..., Any],
    evaluate: Callable[..., np.ndarray],
    told: Callable[..., dict[str, Any]] = lambda out, **attributes: attributes,
) -> Callable[..., None]:
    """A function that writes into its last array, by SciPy's pocketfft, or where there is none by SciPy.

    Args:
        told: (result, **attributes): all of them, from those that it is given.
    """

    def fill(x: np.ndarray, out: np.ndarray, **given: Any) -> None:
        attributes = told(out, **given)
        if out.size and (transforms := pocketfft()):
            compute(transforms, x, out, **attributes)
        else:
            out[...] = evaluate(x, **attributes)

    return fill


# --- complex numbers ------------------------------------------------------------------------------------


def _infer_fft(x: Spec, dims: tuple[int, ...], inverse: bool, norm: str) -> Spec:
    if x.dtype.kind != "c":
        raise DTypeError(f"fft: complex numbers expected, found {x}.")
    return x


def _evaluate_fft(x: np.ndarray, dims: tuple[int, ...], inverse: bool, norm: str) -> np.ndarray:
    if not x.size:
        return x.copy()
    return (scipy_fft().ifftn if inverse else scipy_fft().fftn)(x, axes=dims, norm=norm)


fft = declare(
    "fft", "eager", "x", infer=_infer_fft, evaluate=_evaluate_fft, grad_fn="FftC2C",
    into=_filling(
        lambda transforms, x, out, dims, inverse, norm: transforms.c2c(
            x, dims, not inverse, _divisor(norm, inverse), out, 1
        ),
        _evaluate_fft,
    ),
    vjp={"x": lambda g, dims, inverse, norm: fft(g, dims=dims, inverse=not inverse, norm=ADJOINT[norm])},
    of_complex=OWN_RULES, noun="spectrum", doc="the discrete Fourier transform of complex numbers",
)  # fmt: skip


# --- real ones, and half of their spectrum -----------------------------------------------------------------


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


def _evaluate_rfft(x: np.ndarray, dim: int, norm: str) -> np.ndarray:
    return scipy_fft().rfft(x, axis=dim, norm=norm)


rfft = declare(
    "rfft", "eager", "x", evaluate=_evaluate_rfft, grad_fn="FftR2C", noun="spectrum",
    into=_filling(
        lambda transforms, x, out, dim, norm: transforms.r2c(x, (dim,), True, _divisor(norm, False), out, 1),
        _evaluate_rfft,
    ),
    infer=lambda x, dim, norm: _with_extent(x, dim, x.shape[dim] // 2 + 1, complex_dtype(x.dtype)),
    vjp={
        "x": lambda g, x_spec, dim, norm: irfft(
            _plus_inner(g, dim, x_spec.shape[dim], -0.5), dim=dim, size=x_spec.shape[dim], norm=ADJOINT[norm]
        )
    },
    of_complex=OWN_RULES, doc="the Fourier transform of real numbers: the frequencies that are not negative",
)  # fmt: skip


def _evaluate_irfft(x: np.ndarray, dim: int, size: int, norm: str) -> np.ndarray:
    return scipy_fft().irfft(x, n=size, axis=dim, norm=norm)


irfft = declare(
    "irfft", "eager", "x", evaluate=_evaluate_irfft, grad_fn="FftC2R", noun="signal",
    into=_filling(
        lambda transforms, x, out, dim, size, norm: transforms.c2r(
            x, (dim,), size, False, _divisor(norm, True), out, 1
        ),
        _evaluate_irfft,
        lambda out, dim, norm: {"dim": dim, "size": out.shape[dim], "norm": norm},
    ),
    told_by_result=("size",),
    infer=lambda x, dim, size, norm: _with_extent(x, dim, size, real_dtype(x.dtype)),
    vjp={"x": lambda g, dim, size, norm: _plus_inner(rfft(g, dim=dim, norm=ADJOINT[norm]), dim, size, 1.0)},
    of_complex=OWN_RULES,
    doc="the real numbers with these frequencies, and their conjugates as negative ones",
)  # fmt: skip
