"""Fourier transforms, under the names of torch.fft.

Of each dimension `n`, or `s`, elements are transformed: what is there, cut or with zeros behind. `norm` says
which direction divides by their number: "backward" the inverse one, "forward" the other, "ortho" both by its
root. SciPy computes them, of compiled functions, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError
from ....tracer.ops import fourier as f
from ....tracer.ops.movement import pad as padded
from ....tracer.spec import complex_dtype
from ...tape.apply import apply
from ...tensors.creation import dtype_or, finished
from ...values import dtypes
from ...values.tensor import Tensor, make
from ..common import (
    array_dtype,
    as_dtype,
    conjugate,
    fail,
    floating,
    numpy_names,
    one_dim,
    own_dim,
    require_real,
    tensor,
)
from ..shapes.parts import part, roll

__all__: list[str] = []  # in a namespace of their own

FLOAT16 = np.dtype("float16")
INVERTED = f.ADJOINT | {None: "forward"}
"""The norm of a transform that is written as the other direction."""


# --- arguments ----------------------------------------------------------------------------------------


def _norm(norm: str | None, function: str) -> str:
    if norm not in INVERTED:
        fail(ArgumentError, f'fft.{function}: norm must be "backward", "forward" or "ortho"; found {norm!r}.')
    return norm or "backward"


def _values(input: Any, function: str, real: bool = False) -> Tensor:
    """Floating or complex numbers, of at least single precision."""
    x = floating(input, f"fft.{function}")
    if real:
        require_real(x, f"fft.{function}")
    return as_dtype(x, np.dtype("float32")) if array_dtype(x) == FLOAT16 else x


def _as_complex(x: Tensor) -> Tensor:
    return as_dtype(x, complex_dtype(array_dtype(x)))


def _resized(x: Tensor, dim: int, size: int, function: str) -> Tensor:
    """x with so many elements on a dimension: cut, or with zeros behind."""
    extent = x._value.shape[dim]
    if size < 1:
        fail(ArgumentError, f"fft.{function}: Invalid number of data points ({size}) specified.")
    if size < extent:
        return part(x, dim, 0, size)
    if size == extent:
        return x
    widths = tuple((0, size - extent) if axis == dim else (0, 0) for axis in range(x.ndim))
    return apply(padded, x, widths=widths, value=0.0, grad_name="ConstantPadNdBackward0")


def _one(x: Tensor, n: int | None, dim: int, function: str) -> tuple[int, int]:
    """The dimension, and how many elements of it are transformed."""
    dim = own_dim(dim, x, f"fft.{function}")
    return dim, int(x._value.shape[dim] if n is None else n)


def _several(
    x: Tensor, s: Sequence[int] | None, dim: int | Sequence[int] | None, function: str
) -> tuple[tuple[int, ...], list[int | None]]:
    """The dimensions, and how many elements are transformed of each; None for what there is."""
    sizes = None if s is None else [None if one == -1 else int(one) for one in s]
    if dim is None:
        count = x.ndim if sizes is None else len(sizes)
        dim = range(x.ndim - count, x.ndim)
    given = (dim,) if isinstance(dim, int) else dim
    dims = tuple(own_dim(int(one), x, f"fft.{function}") for one in given)
    if len(set(dims)) < len(dims):
        fail(ArgumentError, f"fft.{function}: FFT dims must be unique, found {tuple(given)}.")
    if sizes is not None and len(sizes) != len(dims):
        fail(ArgumentError, f"fft.{function}: s and dim must have one length, found {s} and {tuple(given)}.")
    return dims, [None] * len(dims) if sizes is None else sizes


def _whole(
    x: Tensor, dims: Sequence[int], sizes: Sequence[int | None], inverse: bool, norm: str, function: str
) -> Tensor:
    """The transform of complex numbers along dimensions."""
    found = _as_complex(x)
    for dim, size in zip(dims, sizes):
        found = _resized(found, dim, int(found._value.shape[dim] if size is None else size), function)
    return apply(f.fft, found, dims=tuple(dims), inverse=inverse, norm=norm) if dims else found


def _real(x: Tensor, dim: int, size: int, norm: str, function: str) -> Tensor:
    return apply(f.rfft, _resized(x, dim, size, function), dim=dim, norm=norm)


def _of_half(x: Tensor, dim: int, size: int | None, norm: str, function: str) -> Tensor:
    """The real signal of a half spectrum, by default of an even number of elements."""
    size = 2 * (int(x._value.shape[dim]) - 1) if size is None else size
    if size < 1:
        fail(ArgumentError, f"fft.{function}: Invalid number of data points ({size}) specified.")
    half = _resized(_as_complex(x), dim, size // 2 + 1, function)
    return apply(f.irfft, half, dim=dim, size=size, norm=norm)


# --- one dimension ------------------------------------------------------------------------------------


@numpy_names
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The discrete Fourier transform along a dimension: sum_j x[j] exp(-2 pi i j k / n).

    Args:
        input: real or complex.
        n: how many elements are transformed: the first, or all with zeros behind.
        norm: "backward" (default), "forward" or "ortho".

    Returns:
        Complex numbers, n of them on the dimension.

    Raises:
        DimensionError: there is no such dimension. ArgumentError: another norm, or n below 1.

    Example:
        >>> fft(tensor([1.0, 2.0]))
        tensor([ 3.+0.j, -1.+0.j])
    """
    return _one_way(input, n, dim, norm, False, "fft")


@numpy_names
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `fft`.

    Example:
        >>> ifft(tensor([3.0, -1.0]))
        tensor([1.+0.j, 2.+0.j])
    """
    return _one_way(input, n, dim, norm, True, "ifft")


def _one_way(input: Any, n: int | None, dim: int, norm: str | None, inverse: bool, function: str) -> Tensor:
    x = _values(input, function)
    dim, size = _one(x, n, dim, function)
    return _whole(x, (dim,), (size,), inverse, _norm(norm, function), function)


@numpy_names
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """`fft` of real numbers: the frequencies 0 to n // 2, of which the others are the conjugates.

    Raises:
        DTypeError: complex numbers.

    Example:
        >>> rfft(tensor([1.0, 2.0]))
        tensor([ 3.+0.j, -1.+0.j])
    """
    x = _values(input, "rfft", real=True)
    dim, size = _one(x, n, dim, "rfft")
    return _real(x, dim, size, _norm(norm, "rfft"), "rfft")


@numpy_names
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `rfft`: n real numbers, by default an even number.

    Example:
        >>> irfft(tensor([3.0, -1.0]))
        tensor([1., 2.])
    """
    x = _values(input, "irfft")
    dim, _ = _one(x, None, dim, "irfft")
    return _of_half(x, dim, n, _norm(norm, "irfft"), "irfft")


@numpy_names
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """`fft` of a signal whose negative times are the conjugates of the others: n real numbers.

    Example:
        >>> hfft(tensor([3.0, -1.0]))
        tensor([2., 4.])
    """
    x = _values(input, "hfft")
    dim, _ = _one(x, None, dim, "hfft")
    return _of_half(conjugate(x), dim, n, INVERTED[_norm(norm, "hfft")], "hfft")


@numpy_names
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """The inverse of `hfft`, of real numbers.

    Example:
        >>> ihfft(tensor([2.0, 4.0]))
        tensor([ 3.-0.j, -1.-0.j])
    """
    x = _values(input, "ihfft", real=True)
    dim, size = _one(x, n, dim, "ihfft")
    return conjugate(_real(x, dim, size, INVERTED[_norm(norm, "ihfft")], "ihfft"))


# --- several dimensions -------------------------------------------------------------------------------


def _n_way(input: Any, s: Any, dim: Any, norm: str | None, inverse: bool, function: str) -> Tensor:
    x = _values(input, function)
    dims, sizes = _several(x, s, dim, function)
    return _whole(x, dims, sizes, inverse, _norm(norm, function), function)


def _parted(x: Tensor, s: Any, dim: Any, function: str) -> tuple[int, int | None, Any, Any]:
    """The last of the dimensions and its size, and the others with theirs."""
    dims, sizes = _several(x, s, dim, function)
    if not dims:
        fail(ArgumentError, f"fft.{function}: must transform at least one axis.")
    return dims[-1], sizes[-1], dims[:-1], sizes[:-1]


def _n_real(input: Any, s: Any, dim: Any, norm: str | None, inverse: bool, function: str) -> Tensor:
    """Of real numbers: along the last dimension by half, then along the others; `inverse` is `ihfftn`."""
    x = _values(input, function, real=True)
    last, size, dims, sizes = _parted(x, s, dim, function)
    found, scale = _one(x, size, last, function)[1], _norm(norm, function)
    half = _real(x, last, found, INVERTED[scale] if inverse else scale, function)
    return _whole(conjugate(half) if inverse else half, dims, sizes, inverse, scale, function)


def _n_of_half(input: Any, s: Any, dim: Any, norm: str | None, inverse: bool, function: str) -> Tensor:
    """To real numbers: along the other dimensions, then along the last; without `inverse` it is `hfftn`."""
    x = _values(input, function)
    last, size, dims, sizes = _parted(x, s, dim, function)
    scale = _norm(norm, function)
    found = _whole(x, dims, sizes, inverse, scale, function)
    if inverse:
        return _of_half(found, last, size, scale, function)
    return _of_half(conjugate(found), last, size, INVERTED[scale], function)


def _made(
    name: str, transform: Callable[..., Tensor], inverse: bool, doc: str, of_two: bool
) -> Callable[..., Tensor]:
    def function(
        input: Tensor, s: Sequence[int] | None = None, dim: Any = (-2, -1) if of_two else None,
        norm: str | None = None,
    ) -> Tensor:  # fmt: skip
        return transform(input, s, dim, norm, inverse, name)

    which = "two dimensions, by default the last" if of_two else "dimensions, by default all, or as many as s"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{doc} along {which}.

    Args:
        s: how many elements are transformed of each, -1 for what there is; see `fft`.
        dim: the dimensions; of half spectra the last is the one by half.
        norm: "backward" (default), "forward" or "ortho".

    Example:
        >>> {name}(ones(2, 2)).shape
        torch.Size([2, 2])
    """
    return numpy_names(function)


_FORMS: tuple[tuple[str, Callable[..., Tensor], bool, str], ...] = (
    ("fft", _n_way, False, "`fft`"), ("ifft", _n_way, True, "`ifft`"), ("rfft", _n_real, False, "`rfft`"),
    ("irfft", _n_of_half, True, "`irfft`"), ("hfft", _n_of_half, False, "`hfft`"),
    ("ihfft", _n_real, True, "`ihfft`"),
)  # fmt: skip
fft2, ifft2, rfft2, irfft2, hfft2, ihfft2 = (
    _made(f"{name}2", transform, inverse, doc, True) for name, transform, inverse, doc in _FORMS
)
fftn, ifftn, rfftn, irfftn, hfftn, ihfftn = (
    _made(f"{name}n", transform, inverse, doc, False) for name, transform, inverse, doc in _FORMS
)

# --- frequencies and shifts ---------------------------------------------------------------------------


def _frequencies(n: int, d: float, numbers: np.ndarray, dtype: Any, requires_grad: bool, name: str) -> Tensor:
    kind = dtype_or(dtype, dtypes.default_float(), name)
    return finished(make((numbers / (n * d)).astype(kind)), requires_grad)


def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """The frequencies of `fft` of n numbers at distances d: 0, 1, ... and the negative ones, over n d.

    Example:
        >>> fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    numbers = np.arange(n)
    signed = np.where(numbers < (n + 1) // 2, numbers, numbers - n)
    return _frequencies(n, d, signed, dtype, requires_grad, "fftfreq")


def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """The frequencies of `rfft` of n numbers at distances d.

    Example:
        >>> rfftfreq(4)
        tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies(n, d, np.arange(n // 2 + 1), dtype, requires_grad, "rfftfreq")


def _shifted(input: Any, dim: Any, function: str, by: Callable[[int], int]) -> Tensor:
    x = tensor(input, f"fft.{function}")
    given = range(x.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = [one_dim(int(one), x.ndim, f"fft.{function}") for one in given]
    return roll(x, tuple(by(int(x._value.shape[one])) for one in dims), tuple(dims)) if dims else x.clone()


def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The frequency 0 moved to the middle of the dimensions, by default of all.

    Example:
        >>> fftshift(tensor([0, 1, -2, -1]))
        tensor([-2, -1,  0,  1])
    """
    return _shifted(input, dim, "fftshift", lambda extent: extent // 2)


def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`.

    Example:
        >>> ifftshift(tensor([-2, -1, 0, 1]))
        tensor([ 0,  1, -2, -1])
    """
    return _shifted(input, dim, "ifftshift", lambda extent: (extent + 1) // 2)
