"""Fourier transforms of NumPy and SciPy on Tensors: `np.fft.rfft(x, axis=0)`, `scipy.fft.fft2(x)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..functions.signals import fourier
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from .functions import implements
from .values import averaged

Transform = Callable[..., Tensor]


def _of_one(transform: Transform) -> Transform:
    def call(a: Any, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
        return transform(averaged(a), n, axis, norm)

    return call


def _of_several(transform: Transform, of_two: bool) -> Transform:
    def call(
        a: Any, s: Any = None, axes: Any = (-2, -1) if of_two else None, norm: str | None = None
    ) -> Tensor:
        return transform(averaged(a), s, axes, norm)

    return call


def _shift(transform: Transform) -> Transform:
    return lambda x, axes=None: transform(tensor_of(x), axes)


def _by_name(name: str) -> Transform:
    transform = getattr(fourier, name)
    if name.endswith("shift"):
        return _shift(transform)
    return _of_several(transform, name.endswith("2")) if name[-1] in "2n" else _of_one(transform)


ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
TRANSFORMS = {
    name: _by_name(name)
    for name in (*ONE, *(f"{one}{count}" for one in ONE for count in "2n"), "fftshift", "ifftshift")
}
"""By the names of SciPy's functions, of which NumPy has most."""

for _name, _transform in TRANSFORMS.items():
    if hasattr(np.fft, _name):
        implements(getattr(np.fft, _name), in_order="asked")(_transform)


def _plainly(transform: Transform) -> Transform:
    """The transform, which ignores SciPy's options about how it is computed."""

    def call(x: Any, *arguments: Any, **options: Any) -> Tensor:
        given = {name: one for name, one in options.items() if name not in ("overwrite_x", "workers", "plan")}
        return transform(x, *arguments[:3], **given)

    return call


OF_SCIPY = {name: _plainly(transform) for name, transform in TRANSFORMS.items()}
