"""NumPy's functions that write into an array that they are given, for Tensors: `np.copyto`, `np.add.at`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracer.errors import GradientError, UnsupportedError
from ..functions import PUBLIC
from ..functions.common import array_dtype, as_dtype, fail, iota
from ..functions.selections.assignment import copy_, set_item
from ..functions.selections.indexing import updated
from ..functions.selections.scattering import scatter_reduce
from ..functions.selections.selection import index_put
from ..functions.shapes.movement import broadcast_to, reshape_to
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from .functions import implements
from .values import require_castable


def _target(array: Any, function: str) -> Tensor:
    """What is written to; GradientError for an ndarray, which keeps no gradient."""
    if isinstance(array, Tensor):
        return array
    fail(
        GradientError,
        f"numpy.{function}: an ndarray cannot hold the values of a Tensor. Make it with numpy.zeros(..., "
        "like=tensor), or write the values of tensor.detach().",
    )


@implements(np.copyto)
def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    target, source = _target(dst, "copyto"), tensor_of(src)
    is_weak = isinstance(src, int | float) and not isinstance(src, Tensor | np.generic)
    weak = np.result_type(type(src), array_dtype(target)) if is_weak else array_dtype(source)
    require_castable(weak, array_dtype(target), casting, "numpy.copyto")
    if where is not True:
        source = PUBLIC["where"](tensor_of(where), as_dtype(source, array_dtype(target)), target)
    copy_(target, source)


@implements(np.putmask)
def _putmask(a: Any, mask: Any, values: Any) -> None:
    target, filler = _target(a, "putmask"), tensor_of(values)
    if filler.ndim and filler.shape != target.shape:
        fail(UnsupportedError, "numpy.putmask: values of another shape are not supported on a Tensor.")
    _copyto(target, filler, "unsafe", mask)


@implements(np.place)
def _place(arr: Any, mask: Any, vals: Any) -> None:
    """The values in turn at the places of the mask, of which the first one has the first value."""
    target, values, chosen = _target(arr, "place"), tensor_of(vals).reshape(-1), tensor_of(mask).reshape(-1)
    if values.numel() > 1:
        turn = PUBLIC["cumsum"](as_dtype(chosen, np.dtype(np.int64)), 0) - 1
        values = values[turn % values.numel()]
    _putmask(target, tensor_of(mask).reshape(tuple(target.shape)), values.reshape(_shape_of(values, target)))


def _shape_of(values: Tensor, target: Tensor) -> tuple[int, ...]:
    """Of one value no dimensions, of as many as the target has its own."""
    return () if values.numel() == 1 else tuple(target.shape)


@implements(np.put)
def _put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    target, values, index = _target(a, "put"), tensor_of(v), tensor_of(ind).reshape(-1)
    if mode != "raise":
        fail(UnsupportedError, f"numpy.put: mode={mode!r} is not supported on a Tensor, only 'raise'.")
    if values.ndim and values.numel() != index.numel():
        fail(UnsupportedError, "numpy.put: as many values as indices, or one, are supported on a Tensor.")
    if values.ndim:
        values = values.reshape(-1)
    copy_(target, updated(target.reshape(-1), index, values).reshape(tuple(target.shape)))


@implements(np.put_along_axis)
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None = -1) -> None:
    target, index = _target(arr, "put_along_axis"), tensor_of(indices)
    if axis is None:
        _put(target, index, broadcast_to(tensor_of(values), tuple(index.shape)))
        return
    axis = range(target.ndim)[axis]
    own = (*target.shape[:axis], index.shape[axis], *target.shape[axis + 1 :])
    shape = np.broadcast_shapes(tuple(index.shape), own)
    places = [
        np.arange(extent).reshape([-1 if one == place else 1 for one in range(target.ndim)])
        for place, extent in enumerate(shape)
    ]
    given = broadcast_to(tensor_of(values), shape)
    set_item(target, tuple(index if place == axis else one for place, one in enumerate(places)), given)


@implements(np.fill_diagonal)
def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    target = _target(a, "fill_diagonal")
    if target.ndim < 2 or wrap:
        fail(UnsupportedError, "numpy.fill_diagonal: only arrays of two dimensions or more, without wrap.")
    index = np.arange(min(target.shape))
    set_item(target, (index,) * target.ndim, broadcast_to(tensor_of(val), (len(index),)))


COMBINED: dict[Any, str] = {
    np.add: "sum", np.subtract: "sum", np.multiply: "prod", np.maximum: "amax", np.minimum: "amin",
}  # fmt: skip
"""NumPy's ufunc -> how `scatter_reduce` combines what comes to one place."""


def combine_at(ufunc: np.ufunc, a: Any, indices: Any, b: Any) -> None:
    """`ufunc.at`: combine the elements that `indices` selects with values, one after the other."""
    target, values = _target(a, f"{ufunc.__name__}.at"), tensor_of(b)
    dtype, shape = array_dtype(target), tuple(target._value.shape)
    if not np.can_cast(np.result_type(dtype, _weak(b, values)), dtype, "same_kind"):
        fail(
            UnsupportedError,
            f"numpy.{ufunc.__name__}.at: {array_dtype(values)} values in an array of {dtype}, which NumPy "
            "casts one after the other, are not supported on a Tensor. Convert the array or the values.",
        )
    values = as_dtype(-values if ufunc is np.subtract else values, dtype)
    index = indices if isinstance(indices, tuple) else (indices,)
    if COMBINED[ufunc] == "sum" and all(isinstance(one, Tensor | np.ndarray | list | int) for one in index):
        copy_(target, index_put(target, tuple(map(tensor_of, index)), values, accumulate=True))
        return
    places = reshape_to(iota(target.numel()), shape)[indices]
    values = broadcast_to(values, places.shape).reshape(-1)
    found = scatter_reduce(target.reshape(-1), 0, places.reshape(-1), values, COMBINED[ufunc])
    copy_(target, reshape_to(found, shape))


def _weak(given: Any, values: Tensor) -> Any:
    """What decides the dtype of a result: numbers of Python's do by their kind alone."""
    is_weak = type(given) in (bool, int, float, complex)
    return given if is_weak else array_dtype(values)
