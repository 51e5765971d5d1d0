"""What a NumPy array has and PyTorch's tensor has not, as methods of Tensor: `x.copy()`, `x.astype(float)`.

Where both have a name that means different things, it is PyTorch's, but in NumPy's programs, for which see
`numpy_api/methods`. NumPy's functions, `np.std(x)`, mean what they mean in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.lost_numbers import note_size_asked
from ...tracer.ops.elementwise import convert
from ...tracer.spec import normalised_dim
from ..functions import METHODS
from ..functions.elements import complex_numbers
from ..functions.selections.assignment import fill_
from ..numpy_api.array_creation import FUNCTIONS
from ..numpy_api.array_methods import Flat
from ..numpy_api.values import require_castable
from ..tape.apply import apply, copied_in_order, laid_out
from ..tensors.conversion import dtype_of_numbers
from ..values.lost_gradients import refuse_loss
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyTensor, as_kind


class Count(int):
    """A number of elements. Called, it is what PyTorch's method `size` gives."""

    shape: Any

    def __call__(self, dim: int | None = None) -> Any:
        """The shape, or the extent of one dimension."""
        return self.shape if dim is None else self.shape[normalised_dim(dim, len(self.shape), "size")]


def size(self: Tensor) -> Count:
    """`x.size` is NumPy's number of elements; `x.size()` the shape, `x.size(dim)` one extent."""
    note_size_asked()
    count = Count(self.numel())
    count.shape = self.shape
    return count


def copy(self: Tensor, order: str = "C") -> Tensor:
    """A copy in memory of its own, which gradients flow through."""
    return as_kind(copied_in_order(self, order), type(self))


def astype(
    self: Tensor, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Tensor:
    """The tensor in another dtype; a copy even if it has it, unless `copy` is False."""
    kind = dtype_of_numbers(self, np.dtype(getattr(dtype, "numpy", dtype)))
    if casting != "unsafe":
        require_castable(self._value.dtype, kind, casting, "astype")
    if kind != self._value.dtype:
        converted = apply(convert, self, dtype=kind, grad_name="ToCopyBackward0")
        return as_kind(laid_out(converted, order), type(self))
    return as_kind(copied_in_order(self, order) if copy else laid_out(self, order), type(self))


def fill(self: Tensor, value: Any) -> None:
    """Write one value everywhere."""
    fill_(self, value)


def tobytes(self: Tensor, order: Any = "C") -> bytes:
    """The memory of an ndarray of these elements, as bytes."""
    if self.requires_grad:
        refuse_loss(self, "tobytes()")
    return self._concrete("tobytes()").tobytes(order)


def dot(self: Tensor, tensor: Any) -> Tensor:
    """`np.dot`; of two vectors PyTorch's."""
    if self.ndim == 1 and isinstance(tensor, Tensor) and tensor.ndim == 1:
        return METHODS["dot"](self, tensor)
    return FUNCTIONS[np.dot](self, tensor)


def transpose(self: Tensor, *dims: Any, dim0: int | None = None, dim1: int | None = None) -> Tensor:
    """PyTorch's with two dimensions, which it exchanges; NumPy's with none, more, or a tuple of all."""
    dims = (*dims, *(dim for dim in (dim0, dim1) if dim is not None))
    if len(dims) == 2:
        return METHODS["transpose"](self, *dims)
    axes = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    return FUNCTIONS[np.transpose](self, axes or None)


def rounded(self: Tensor, decimals: int = 0) -> Tensor:
    """Rounded to a number of decimals, halves to even."""
    return METHODS["round"](self, decimals=decimals)


def cumulated(name: str) -> Callable[..., Tensor]:
    def method(self: Tensor, *arguments: Any, **options: Any) -> Tensor:
        return METHODS[name](
            *((self, *arguments) if arguments or options else (self.reshape(-1), 0)), **options
        )

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`{name}` along a dimension; without one that of all elements in order, as in NumPy."
    return method


def with_ddof(name: str) -> Callable[..., Tensor]:
    def method(self: Tensor, *arguments: Any, ddof: float | None = None, **options: Any) -> Tensor:
        if ddof is not None:
            options["correction"] = ddof
        return METHODS[name](self, *arguments, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"PyTorch's `{name}`, which divides by n - 1; NumPy's with `ddof`."
    return method


def ptp(self: Tensor, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The largest element less the smallest."""
    return FUNCTIONS[np.ptp](self, axis, keepdims=keepdims)


def imag(self: Tensor) -> Tensor:
    """The imaginary part of complex numbers, a view; zeros for an array of real ones.

    Raises:
        DTypeError: a Tensor is real.
    """
    is_zero = isinstance(self, NumpyTensor) and not self.is_complex()
    return FUNCTIONS[np.zeros_like](self) if is_zero else complex_numbers.imag(self)


def _set_real(self: Tensor, value: Any) -> None:
    complex_numbers.real(self)[...] = value


def _set_imag(self: Tensor, value: Any) -> None:
    complex_numbers.imag(self)[...] = value


def flat(self: Tensor) -> Flat:
    """The elements in order, to be read and written."""
    return Flat(self)


NDARRAY_METHODS: dict[str, Any] = {
    "copy": copy, "astype": astype, "fill": fill, "dot": dot, "transpose": transpose, "round": rounded,
    "ptp": ptp, "conj": complex_numbers.conj, "conjugate": complex_numbers.conj_physical,
    "size": property(size),
    "real": property(complex_numbers.real, _set_real), "imag": property(imag, _set_imag),
    "flat": property(flat), "cumsum": cumulated("cumsum"),
    "cumprod": cumulated("cumprod"), "std": with_ddof("std"), "var": with_ddof("var"),
    "tobytes": tobytes,
}  # fmt: skip
