"""Methods of Tensor about its memory, and those that call Python for each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import GradientError, ShapeError, UnsupportedError
from ..functions.elements import complex_numbers
from ..functions.selections.assignment import copy_
from ..functions.shapes import movement, parts
from ..tensors.creation import as_tensor, empty
from ..values import dtypes
from ..values.tensor import Tensor, make


def storage_offset(self: Tensor) -> int:
    """How many elements lie in the memory before the first: of a part of another tensor."""
    array, base = self._array("storage_offset()"), self if self._view is None else self._view.base
    start = base._array("storage_offset()").__array_interface__["data"][0]
    return int((array.__array_interface__["data"][0] - start) // array.itemsize)


def dim_order(self: Tensor) -> tuple[int, ...]:
    """The dimensions in the order of their strides, the largest first.

    Example:
        >>> ones(2, 3).T.dim_order()
        (1, 0)
    """
    return tuple(sorted(range(self.ndim), key=lambda dim: -self.stride(dim)))


def reversed_(self: Tensor) -> Tensor:
    """All dimensions backwards: what `reversed(x)` gives."""
    return parts.flip(self, tuple(range(self.ndim)))


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a Python function returns for it."""
    _require_no_grad(self, "apply_")
    values = [callable(one) for one in self._array("apply_()").reshape(-1).tolist()]
    return copy_(self, as_tensor(values, dtype=self.dtype).reshape(tuple(self.shape)))


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by what a Python function returns for it and that of another tensor."""
    _require_no_grad(self, "map_")
    others = np.broadcast_to(tensor._array("map_()"), tuple(self.shape)).reshape(-1).tolist()
    pairs = zip(self._array("map_()").reshape(-1).tolist(), others)
    values = [callable(one, other) for one, other in pairs]
    return copy_(self, as_tensor(values, dtype=self.dtype).reshape(tuple(self.shape)))


def _require_no_grad(self: Tensor, function: str) -> None:
    if self.requires_grad:
        raise GradientError(f"Can't call {function} on Variable that requires grad. detach() it first.")


def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Another shape: the elements in order, those in front if there are too many; new ones are not set.

    Raises:
        GradientError: the tensor requires grad. UnsupportedError: it shares its memory with others.
    """
    _require_no_grad(self, "resize_")
    if self._view is not None:
        raise UnsupportedError("resize_(): the tensor is a view of another. clone() it first.")
    shape = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else sizes
    former = self._array("resize_()").reshape(-1)
    resized = empty(shape, dtype=self.dtype)._value
    count = min(former.size, resized.size)
    resized.reshape(-1)[:count] = former[:count]
    self._value = resized
    return self


def resize_as_(self: Tensor, other: Tensor) -> Tensor:
    """`resize_` to the shape of another tensor.

    Example:
        >>> resize_as_(tensor([1.0, 2.0]), zeros(1, 2))
        tensor([[1., 2.]])
    """
    return resize_(self, *other.shape)


def set_(self: Tensor, source: Tensor) -> Tensor:
    """Share the memory, the shape and the dtype of another tensor.

    Raises:
        GradientError: one of them requires grad.
    """
    _require_no_grad(self, "set_")
    _require_no_grad(source, "set_")
    shown = movement.view(source, tuple(source.shape))
    self._value, self._cell, self._view, self._frozen = shown._value, shown._cell, shown._view, shown._frozen
    return self


def view(self: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """The same memory in another shape, or, given a dtype, its bytes as that.

    Raises:
        ShapeError: the elements do not lie so in memory that it could be shown without a copy.

    Example:
        >>> ones(2, 3).view(3, 2).shape
        torch.Size([3, 2])
    """
    given = [one for one in (size, dtype) if one is not None]
    shape = (*shape, *given)
    if len(shape) == 1 and (isinstance(shape[0], dtypes.DType) or shape[0] in (float, int, bool)):
        return _as_bytes(self, dtypes.as_numpy_dtype(shape[0], "view"))
    shown = movement.view(self, *shape)
    one, other = shown._value, self._value
    if isinstance(one, np.ndarray) and one.size and not np.may_share_memory(one, other):
        raise ShapeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans "
            "across two contiguous subspaces). Use .reshape(...) instead."
        )
    return shown


def _as_bytes(self: Tensor, dtype: np.dtype) -> Tensor:
    _require_no_grad(self, "view(dtype)")
    shown = make(self._array("view(dtype)").view(dtype))
    shown._cell = self._cell
    return shown


def dlpack(self: Tensor, **options: Any) -> Any:
    """The memory for other libraries: https://dmlc.github.io/dlpack."""
    _require_no_grad(self, "__dlpack__")
    return self._array("__dlpack__()").__dlpack__(**options)


def from_dlpack(ext_tensor: Any) -> Tensor:
    """A tensor that shares the memory of another library's.

    Example:
        >>> from_dlpack(np.ones(2))
        tensor([1., 1.], dtype=torch.float64)
    """
    return make(np.from_dlpack(ext_tensor))


METHODS: dict[str, Any] = {
    "storage_offset": storage_offset,
    "dim_order": dim_order,
    "apply_": apply_,
    "map_": map_,
    "resize_": resize_,
    "resize_as_": resize_as_,
    "set_": set_,
    "view": view,
    "__reversed__": reversed_,
    "__dlpack__": dlpack,
    "__dlpack_device__": lambda self: (1, 0),
    "is_pinned": lambda self: False,
    "is_shared": lambda self: False,
    "is_inference": lambda self: False,
    "pin_memory": lambda self: self,
    "to_dense": lambda self: self,
    "share_memory_": lambda self: self,
    "const_data_ptr": lambda self: self.data_ptr(),
    "is_set_to": lambda self, other: self.data_ptr() == other.data_ptr() and self.shape == other.shape,
    "is_cpu": True,
    "is_sparse_csr": False,
    "name": None,
    "mH": property(complex_numbers.adjoint, doc="The last two dimensions exchanged, and conjugated."),
}
for _name, _doc in {
    "is_pinned": "False: there is no memory of another kind.",
    "is_shared": "False: no other process sees the elements.",
    "is_inference": "False: there are no tensors of inference mode.",
    "pin_memory": "The tensor itself.",
    "to_dense": "The tensor itself, which is dense.",
    "share_memory_": "The tensor itself; no memory is shared with other processes.",
    "const_data_ptr": "The address of the first element.",
    "is_set_to": "Whether the other shows the same elements in the same shape.",
}.items():
    METHODS[_name].__doc__ = _doc
