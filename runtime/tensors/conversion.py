"""Data as tensors: in which dtype, and nested lists that hold tensors as the array they stand for."""

from __future__ import annotations

from collections import deque
from typing import Any, cast

import numpy as np

from ...tracer.dims import python_type
from ...tracer.errors import DTypeError, ShapeError
from ...tracer.ops.composite import stack
from ...tracer.ops.elementwise import convert
from ...tracer.origin import fail
from ..captures.classes import CopiedClass
from ..tape.apply import apply, standing_for
from ..tape.local import local
from ..values.foreign import TracedObject
from ..values.plain_arrays import require_plain_array
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber, as_kind
from .growing import GrowingList
from .grown_arrays import GrownArray, plain


def array_dtype(x: Tensor) -> np.dtype:
    return cast(np.dtype, x._value.dtype)


def as_dtype(x: Tensor, dtype: np.dtype) -> Tensor:
    """x in a dtype: itself if it has it."""
    kind = dtype_of_numbers(x, dtype)
    return x if x._value.dtype == kind else apply(convert, x, dtype=kind)


def dtype_of_numbers(x: Tensor, dtype: np.dtype) -> np.dtype:
    """The dtype in which x is held: floats that are to be objects stay floats, which compute alike.

    Raises:
        DTypeError: no Tensor holds it.
    """
    if dtype.kind == "O" and x._value.dtype.kind in "fc":
        return array_dtype(x)
    require_numbers(dtype)
    return dtype


def require_numbers(dtype: np.dtype) -> None:
    """DTypeError for what no Tensor holds: strings, objects, dates."""
    if dtype.kind not in "biufc":
        fail(
            DTypeError,
            f"dtype {dtype} is not supported on a Tensor; expected a bool, integer, floating or complex "
            "dtype. Where no gradient is needed, use numpy.asarray(pullback.stop_gradient(x)).",
        )


SEQUENCES = (list, tuple, deque)
"""Of which NumPy makes arrays, and which may hold Tensors."""


def holds_tensor(data: Any) -> bool:
    """Whether data for an array have a Tensor among them, or what stands for a table."""
    kind = type(data)  # `isinstance` asks `__class__` as well, which is a property of Tensors
    if kind in (GrowingList, GrownArray) or issubclass(kind, (Tensor, TracedObject)):
        return True
    return issubclass(kind, SEQUENCES) and any(map(holds_tensor, data))


def given_array(value: Any) -> Any:
    """What `__array__` gives of an object whose class a trace has copied: a Tensor, which NumPy refuses.

    And the array of a list that grows, and of what stands for a table.

    All else as it is.
    """
    if type(value) is GrowingList:
        return value.array
    if issubclass(type(value), TracedObject):
        return value.as_array()
    is_copied = type(type(value)) is not type and isinstance(type(value), CopiedClass)
    return value.__array__() if is_copied and hasattr(value, "__array__") else value


def joined(data: Any) -> Any:
    """Nested lists with Tensors as the array that NumPy makes of them; data without any as they are."""
    if type(data) is GrowingList:
        return data.array
    if issubclass(type(data), TracedObject):
        return data.as_array()
    if not issubclass(type(data), SEQUENCES) or not holds_tensor(data):
        return data
    rows = [tensor_of(one) for one in data]
    dtype = np.result_type(*map(array_dtype, rows))  # in a list Python's numbers are not weak
    if len({tuple(x._value.shape) for x in rows}) > 1:
        shapes = ", ".join(str(tuple(x._value.shape)) for x in rows)
        fail(ShapeError, f"a list of values of the shapes {shapes} is no array: they differ.")
    stacked = apply(stack, *[as_dtype(x, dtype) for x in rows], dim=0, grad_name="StackBackward0")
    return as_kind(stacked, NumpyTensor)


def tensor_of(value: Any) -> Tensor:
    """The value as a Tensor."""
    if isinstance(value, Tensor):
        return value
    value = plain(joined(given_array(value)))
    if isinstance(value, Tensor):
        return value
    if isinstance(value, bool | int | float | complex | np.generic):
        found = standing_for(value)
        if isinstance(found._value, np.ndarray):  # a constant of the graph, not an array that may change
            found = local(found._value, type(found))
    else:
        require_plain_array(value, "an operand")
        value = np.asarray(value)
        require_numbers(value.dtype)
        found = standing_for(value)
    is_strong = type(found) is PythonNumber and python_type(value) not in (bool, int, float, complex)
    return as_kind(found, NumpyScalar) if is_strong else found
