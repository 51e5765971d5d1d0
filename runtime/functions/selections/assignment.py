"""What replaces the elements of a tensor: `x.copy_(y)`, `x.fill_(1)`, `x[i] = y`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....tracer.errors import ShapeError
from ....tracer.ops.elementwise import convert, identity, where
from ....tracer.origin import fail
from ....tracer.spec import BOOL
from ....tracer.trace import is_tracing
from ...tape.apply import apply
from ...tape.direct_parts import is_simple, write_part
from ...tape.inplace import assign, fitted, keep_saved, require_assignable
from ...tape.local import is_local, local
from ...tensors.conversion import joined
from ...tensors.creation import as_tensor, scalar_tensor
from ...values.modes import is_recording
from ...values.tensor import PartAt, Tensor, mark_written, require_writable
from ...values.value_kinds import Auxiliary, NumpyTensor
from ..common import require_fitting_dtype
from ..shapes.movement import reshape_to
from .indexing import updated, view_at, without_leading
from .parsed_index import without_bytes


def copy_(self: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    """Write the elements of `source`, which may broadcast; gradients flow to it, no more to the former."""
    require_assignable(self)
    return assign(self, _replacing(self, as_tensor(source), "CopyBackwards"))


def fill_(self: Tensor, value: Any) -> Tensor:
    """Write one value everywhere.

    Raises:
        ShapeError: it is a tensor with dimensions.
    """
    require_assignable(self)
    if isinstance(value, Tensor) and value.ndim and (self._is_torch or value.numel() != 1):
        fail(ShapeError, f"fill_: the value must have no dimensions, found the shape {tuple(value.shape)}.")
    if is_local(self) and not isinstance(value, Tensor):
        filler = local(np.asarray(value, self._value.dtype), Auxiliary)
    else:
        filler = value if isinstance(value, Tensor) else scalar_tensor(value, dtype=self.dtype)
    return assign(self, _replacing(self, filler, "FillBackward2"))


def zero_(self: Tensor) -> Tensor:
    """Write zeros."""
    require_assignable(self)
    return assign(self, _replacing(self, scalar_tensor(0, dtype=self.dtype), "ZeroBackward0"))


def _replacing(target: Tensor, value: Tensor, name: str) -> Tensor:
    """The value, on the tape as what took the place of `target`, whose gradient from here on is zero."""
    if is_recording():
        if target.requires_grad:
            return apply(where, True, fitted(value, target), target, grad_name=name)
        if value.requires_grad:
            return apply(identity, value, grad_name=name)
    return value


# --- x[index] = value -------------------------------------------------------------------------------------


def set_item(self: Tensor, index: Any, value: Any) -> None:
    """Write `value`, which may broadcast, to what `index` selects: slices, integers, masks, index arrays."""
    if is_simple(index) and write_part(self, index, value):
        return
    value = joined(value)
    if not isinstance(value, Tensor):
        is_number = isinstance(value, bool | int | float | complex | np.generic) and is_local(self)
        array = np.asarray(value, self._value.dtype) if is_number else None
        value = as_tensor(value, dtype=self.dtype) if array is None else local(array, Auxiliary)
    if _is_basic(index):
        shown = view_at(self, index)
        if not _is_same_view(shown, value):
            copy_(shown, without_leading(value, shown.ndim))
        return
    require_assignable(self)
    if _may_show(value, self, index) and _is_same_view(view_at(self, index), value):
        return
    if not isinstance(self, NumpyTensor):
        index = without_bytes(index)
    require_fitting_dtype(self, value, "Index put")
    if _is_plain(self, index, value):
        require_writable(self)
        keep_saved(self)
        self._value[unwrapped(index)] = value._value
        mark_written(self)
    elif _is_filled_mask(index, value):
        mask = reshape_to(index, (*index._value.shape, *(1,) * (self.ndim - index.ndim)))
        assign(self, apply(where, mask, _in_dtype(value, self), self, grad_name="IndexPutBackward0"))
    else:
        assign(self, updated(self, index, value))


def _may_show(value: Tensor, x: Tensor, index: Any) -> bool:
    """Whether a value may be what x has at single computed positions; of masks nothing is asked for that."""
    view, parts = value._view, index if isinstance(index, tuple) else (index,)
    if view is None or view.base is not (x if x._view is None else x._view.base):
        return False
    is_single = not any(getattr(part, "ndim", 0) for part in parts)
    return is_single and any(isinstance(place, PartAt) for _, place in view.steps)


def _is_same_view(shown: Tensor, value: Tensor) -> bool:
    """Whether a value is what is shown, and so written already: `x[i] += v` ends with `x[i] = x[i]`."""
    one, other = shown._view, value._view
    return one is not None and other is not None and one.base is other.base and one.steps == other.steps


def _is_basic(index: Any) -> bool:
    """Whether the index selects a view: no arrays in it."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        part is None or part is Ellipsis or isinstance(part, slice)
        or (isinstance(part, int | np.integer) and not isinstance(part, bool | Tensor))
        for part in parts
    )  # fmt: skip


def _is_plain(self: Tensor, index: Any, value: Tensor) -> bool:
    """Whether NumPy's own assignment does: nothing is traced, nothing recorded."""
    if is_tracing() or type(self._value) is not np.ndarray or type(value._value) is not np.ndarray:
        return False
    return not (is_recording() and (self.requires_grad or value.requires_grad))


def unwrapped(index: Any) -> Any:
    """The index with arrays in the place of tensors."""
    if isinstance(index, tuple):
        return tuple(map(unwrapped, index))
    return index._concrete("an index") if isinstance(index, Tensor) else index


def _in_dtype(value: Tensor, target: Tensor) -> Tensor:
    dtype = target._value.dtype
    return value if value._value.dtype == dtype else apply(convert, value, dtype=dtype)


def _is_filled_mask(index: Any, value: Tensor) -> bool:
    """Whether one value goes to all places of a mask, so that their number does not matter."""
    return isinstance(index, Tensor) and index._value.dtype == BOOL and value.ndim == 0
