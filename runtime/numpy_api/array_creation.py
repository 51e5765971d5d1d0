"""NumPy's functions that make arrays, making Tensors: what `np.zeros(n)` is in a function that fills it.

A plain ndarray can hold neither a gradient nor a traced value. So in functions that are differentiated or
traced, and write into arrays, these take the place of NumPy's: see `stand_ins.py`. With `like=tensor` NumPy's
own functions come here as well.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from ...tracer.errors import ArgumentError
from ...tracer.ops.movement import expand, reshape
from ...tracer.spec import SUPPORTED
from ..functions.common import as_dtype, fail
from ..tape.apply import apply, copied_in_order, laid_out
from ..tape.local import local
from ..tensors.conversion import given_array, holds_tensor, joined, tensor_of
from ..tensors.creation import size_of
from ..tensors.grown_arrays import GrownArray
from ..values.memory_order import pattern_of
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyTensor, as_kind, settled
from .functions import FUNCTIONS

Creation = Callable[..., Any]


def _dtype(dtype: Any) -> np.dtype:
    return np.dtype(float if dtype is None else getattr(dtype, "numpy", dtype))


def _constant(number: int) -> Callable[..., Any]:
    def create(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None) -> Any:
        return full(shape, number, _dtype(dtype), order)

    return create


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None
) -> np.ndarray | Tensor:
    """`np.full` as a Tensor; gradients flow to a `fill_value` that is a Tensor."""
    extents = size_of((shape,), "numpy.full")
    if dtype is not None and _dtype(dtype) not in SUPPORTED:
        return np.full(extents, fill_value, _dtype(dtype), cast(Any, order))
    if _is_plain_number(fill_value):
        kind = None if dtype is None else _dtype(dtype)
        return local(np.full(extents, fill_value, kind, cast(Any, order)), NumpyTensor)
    filler = tensor_of(fill_value)
    filler = filler if dtype is None else as_dtype(filler, _dtype(dtype))
    return as_kind(copied_in_order(apply(expand, filler, shape=extents), order), NumpyTensor)


def _is_plain_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | complex) and not isinstance(value, Tensor)


def _like(a: Any, made: np.ndarray | Tensor) -> np.ndarray | Tensor:
    """What is new in the kind of `a`: NumPy asks `a` alone, and no list what is in it."""
    return settled(made, (a,) if isinstance(a, Tensor) else ())


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None,
    *, device: Any = None,
) -> np.ndarray | Tensor:  # fmt: skip
    """`np.full_like` as a Tensor, of the kind of `a`, whose elements lie as those of `a`."""
    pattern = joined(a)
    pattern = pattern if isinstance(pattern, Tensor) else np.asarray(pattern)
    kind = _dtype(dtype or pattern.dtype)
    if shape is None:
        if isinstance(pattern, Tensor):
            pattern.refresh()
            pattern = pattern_of(pattern._value)
        is_plain = _is_plain_number(fill_value)
        number, lying = fill_value if is_plain else 0, cast(Any, order)
        made = np.full_like(pattern, number, kind, lying, subok=False)
        if is_plain or not made.flags.c_contiguous:
            filled = _tensor(made)
            if not is_plain:
                filled[...] = fill_value
            return _like(a, filled)
    extents = pattern.shape if shape is None else shape
    shape = tuple(extents) if np.iterable(extents) else extents
    return _like(a, full(shape, fill_value, kind, "F" if order == "F" else "C"))


def _constant_like(number: int) -> Callable[..., Any]:
    def create(
        a: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None,
        *, device: Any = None,
    ) -> Any:  # fmt: skip
        return full_like(a, number, dtype, order, shape=shape)

    return create


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = None, order: str = "C", *, device: Any = None
) -> np.ndarray | Tensor:
    """`np.eye` as a Tensor."""
    return _tensor(np.eye(int(N), None if M is None else int(M), int(k), _dtype(dtype), cast(Any, order)))


def identity_matrix(n: int, dtype: Any = None) -> np.ndarray | Tensor:
    """`np.identity` as a Tensor."""
    return eye(n, dtype=dtype)


def _tensor(array: np.ndarray) -> np.ndarray | Tensor:
    """New data as a Tensor, where Tensors have the dtype."""
    return local(array, NumpyTensor) if array.dtype in SUPPORTED else array


# --- from data ------------------------------------------------------------------------------------------


def array(
    object: Any, dtype: Any = None, *, copy: bool | None = True, order: str = "K", subok: bool = False,
    ndmin: int = 0,
) -> np.ndarray | Tensor:  # fmt: skip
    """`np.array` as a Tensor; lists may hold Tensors."""
    object = given_array(object)
    if not holds_tensor(object):
        kind = None if dtype is None else _dtype(dtype)
        return _tensor(np.array(object, kind, copy=copy, order=order, ndmin=ndmin))  # type: ignore[call-overload]
    values: Any = joined(object)
    if type(values) is GrownArray:
        if (dtype is None or _dtype(dtype) == values.rows.dtype) and ndmin <= values.rows.ndim:
            return cast(Tensor, values)  # nobody can write into it
        values = values.known
    result = values if dtype is None else as_dtype(values, _dtype(dtype))
    if result is object:
        if not copy and type(result) is NumpyTensor:
            return laid_out(result, order)
        if not copy:
            result = apply(reshape, result, shape=result._value.shape)
        else:
            result = copied_in_order(result, order if type(result) is NumpyTensor else "C")
    result = as_kind(laid_out(result, order), NumpyTensor)
    return result[(None,) * (ndmin - result.ndim)] if result.ndim < ndmin else result


def of_elements(iter: Any, dtype: Any, count: int = -1) -> np.ndarray | Tensor:
    """`np.fromiter` as a Tensor; the elements may be Tensors."""
    elements = list(iter if count < 0 else itertools.islice(iter, count))
    if not holds_tensor(elements):
        return _tensor(np.fromiter(elements, _dtype(dtype), count))
    if len(elements) < count:
        fail(
            ArgumentError,
            f"iterator too short: Expected {count} but iterator had only {len(elements)} items.",
        )
    return array(elements, dtype)


def asarray(
    a: Any, dtype: Any = None, order: str = "K", *, device: Any = None, copy: bool | None = None
) -> np.ndarray | Tensor:
    """`np.asarray`: an ndarray stays what it is, lists become Tensors."""
    if isinstance(a, np.ndarray | np.generic) and not isinstance(a, Tensor | GrownArray):
        return np.asarray(a, None if dtype is None else _dtype(dtype), cast(Any, order))
    return array(a, dtype, copy=copy, order=order)


def contiguous(a: Any, dtype: Any = None) -> np.ndarray | Tensor:
    """`np.ascontiguousarray`, which has at least one dimension."""
    found = asarray(a, dtype)
    if not isinstance(found, Tensor):
        return np.ascontiguousarray(found)
    if not found.is_contiguous():
        return copied_in_order(found)
    return found if found.ndim else found.reshape(1)


def required(a: Any, dtype: Any = None, requirements: Any = None) -> np.ndarray | Tensor:
    """`np.require`: writable and aligned every Tensor is."""
    wanted = {str(one).upper()[0] for one in requirements or ()}
    order = fortran if "F" in wanted else contiguous if "C" in wanted else asarray
    found = order(a, dtype)
    is_view = isinstance(found, Tensor) and found._view is not None
    return copied(found) if is_view and "O" in wanted else found


def fortran(a: Any, dtype: Any = None) -> np.ndarray | Tensor:
    """`np.asfortranarray`: the first dimension has the shortest steps."""
    return contiguous(asarray(a, dtype).T).T


def ndarray(
    shape: Any, dtype: Any = None, buffer: Any = None, offset: int = 0, strides: Any = None, order: Any = "C"
) -> np.ndarray | Tensor:
    """`np.ndarray`, called as `np.empty` is; over memory of others it is NumPy's."""
    if buffer is None and strides is None:
        return full(shape, 0, _dtype(dtype), order)
    return np.ndarray(shape, _dtype(dtype), buffer, offset, strides, order)


def copied(a: Any, order: str = "K", subok: bool = False) -> np.ndarray | Tensor:
    """`np.copy` as a Tensor, of the kind of `a`."""
    return _like(a, array(a, order=order))


def _as_tensors(name: str, *args: Any, **kwargs: Any) -> Any:
    """What NumPy's function makes, as a Tensor; it hands Tensors over to `front.py` itself."""
    made = getattr(np, name)(*args, **kwargs)
    return _tensor(made) if type(made) is np.ndarray else made


def _made_by_numpy(*names: str) -> dict[Any, Creation]:
    return {getattr(np, name): functools.partial(_as_tensors, name) for name in names}


OF_SEVERAL = _made_by_numpy(
    "stack", "concatenate", "hstack", "vstack", "dstack", "column_stack", "tile", "repeat"
)
"""NumPy's function -> what makes a Tensor of plain arrays and numbers."""
CREATION: dict[Any, Creation] = {
    np.empty: _constant(0), np.zeros: _constant(0), np.ones: _constant(1), np.full: full,
    np.empty_like: _constant_like(0), np.zeros_like: _constant_like(0), np.ones_like: _constant_like(1),
    np.full_like: full_like, np.eye: eye, np.identity: identity_matrix, np.array: array,
    np.asarray: asarray, np.copy: copied, np.asanyarray: asarray, np.ascontiguousarray: contiguous,
    np.asfortranarray: fortran, np.ndarray: ndarray, np.require: required,
    np.fromiter: of_elements,
}  # fmt: skip
"""NumPy's function -> what makes a Tensor."""
SEQUENCES = _made_by_numpy("arange", "linspace", "logspace", "geomspace")
"""Those whose arrays code seldom writes into, but may read at positions that are Tensors."""
JOINING: dict[Any, Creation] = {
    np.array: array, np.asarray: asarray, np.asanyarray: asarray, np.ascontiguousarray: contiguous,
    np.asfortranarray: fortran, np.require: required,
}  # fmt: skip
"""Those that take lists with Tensors."""
FILLED: dict[Any, Creation] = {np.full: full, np.full_like: full_like}
"""Those that take a Tensor for each element."""
FUNCTIONS.update(CREATION)
