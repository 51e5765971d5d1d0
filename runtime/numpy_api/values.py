"""What NumPy's functions share: promotion of what they take for arrays, and the kind of what they give."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np

from ...tracer.dims import python_type
from ...tracer.errors import ArgumentError, DTypeError, ShapeError
from ...tracer.lost_numbers import traced_number
from ...tracer.ops.movement import reshape
from ...tracer.spec import CONTINUOUS
from ...tracer.trace import is_tracing
from ..functions.common import INTEGERS, fail, filled, own_dim
from ..tape.apply import apply, of_kind
from ..tensors.conversion import array_dtype, as_dtype, tensor_of
from ..values.flatten import flatten, unflatten
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyTensor, PythonNumber, kind_of_result


def promoted(values: Sequence[Any], as_arrays: bool = False) -> list[Tensor]:
    """The values as Tensors of NumPy's common dtype; Python's numbers count as arrays, or take a dtype."""
    tensors = [tensor_of(one) for one in values]
    dtype = np.result_type(*map(array_dtype if as_arrays else _promoting, tensors))
    return [as_dtype(x, dtype) for x in tensors]


def require_castable(dtype: np.dtype, wanted: np.dtype, casting: Any, function: str) -> None:
    """DTypeError where a rule of NumPy's forbids to make numbers of one dtype those of another."""
    try:
        is_allowed = np.can_cast(dtype, wanted, casting)
    except ValueError as error:
        fail(ArgumentError, f"{function}: {error}")
    if not is_allowed:
        fail(
            DTypeError,
            f"{function}: Cannot cast array data from {dtype!r} to {wanted!r} according to the rule "
            f"{casting!r}.",
        )


def _promoting(x: Tensor) -> Any:
    """What promotes as the tensor does: its dtype, or a Python number."""
    return array_dtype(x).type(0).item() if type(x) is PythonNumber else array_dtype(x)


def at_hand(value: Any) -> np.ndarray | None:
    """The array that a value is; None of a traced one, which may be another in each call."""
    array = tensor_of(value)._value
    return array if type(array) is np.ndarray else None


def as_python_number(value: Any) -> Any:
    """What `float(value)` would be, as what stands for a Python number."""
    if not isinstance(value, Tensor):
        return value.item() if isinstance(value, np.generic) else value
    number = value if not value._value.shape else apply(reshape, value, shape=())
    return of_kind(as_dtype(number, np.dtype("float64")), PythonNumber)


def of_arrays(result: Any) -> Any:
    """What a function gives that asks no argument what it is, but makes arrays of all: of NumPy's kind."""
    if isinstance(result, list | tuple):
        return getattr(type(result), "_make", type(result))(map(of_arrays, result))
    if not isinstance(result, Tensor) or type(result) is NumpyTensor:
        return result
    return of_kind(result, kind_of_result(NumpyTensor, result._value.shape, is_view=False))


def as_array(result: Tensor) -> Tensor:
    """What a function gives that makes no number of an array without dimensions."""
    return of_kind(result, NumpyTensor)


def axis_of(axis: Any, x: Tensor, function: str) -> int:
    """An axis counted from the front; DimensionError where x has none of this number."""
    return own_dim(axis, x, f"numpy.{function}")


def axes_of(axes: Any, x: Tensor, function: str) -> tuple[int, ...]:
    """One axis or several, each of which is there once; all of them for None."""
    given = range(x.ndim) if axes is None else (axes,) if isinstance(axes, INTEGERS) else axes
    return each_once([axis_of(one, x, function) for one in given], function)


def each_once(axes: Sequence[int], function: str) -> tuple[int, ...]:
    if len(set(axes)) < len(axes):
        fail(ArgumentError, f"numpy.{function}: each axis is expected once, found {tuple(axes)}.")
    return tuple(axes)


def require_vector(x: Tensor, function: str, argument: str) -> Tensor:
    if x.ndim != 1:
        fail(ShapeError, f"numpy.{function}: {argument} must be a vector, found the shape {tuple(x.shape)}.")
    return x


def require_choice(
    value: Any, choices: Sequence[Any], function: str, option: str, module: str = "numpy"
) -> None:
    if value not in choices:
        known = ", ".join(map(repr, choices))
        fail(ArgumentError, f"{module}.{function}: {option} must be one of {known}; found {value!r}.")


def averaged(value: Any) -> Tensor:
    """In the dtype in which NumPy averages: integers and bools as float64."""
    x = tensor_of(value)
    return x if array_dtype(x).kind in CONTINUOUS else as_dtype(x, np.dtype("float64"))


def floats(*values: Any) -> list[Tensor]:
    """The values in NumPy's common dtype, or float64 for integers; a Python number is a constant in code."""
    tensors = [tensor_of(one) for one in values]
    dtype = np.result_type(*map(_promoting, tensors))
    dtype = dtype if dtype.kind in CONTINUOUS else np.dtype("float64")
    return [_in_dtype(given, x, dtype) for given, x in zip(values, tensors)]


def _in_dtype(given: Any, x: Tensor, dtype: np.dtype) -> Tensor:
    is_number = python_type(given) in (bool, int, float, complex)
    if is_number and is_tracing():
        return of_kind(filled((), traced_number(given), dtype), type(x))
    return as_dtype(x, dtype)


def calls_from_scipy(frame: FrameType) -> bool:
    """Whether a frame is of SciPy's code, which is written for arrays, and goes on in C."""
    return frame.f_globals.get("__name__", "").startswith("scipy.")


def without_tensors(arguments: list[Any], keywords: dict[str, Any]) -> Any:
    """Both with arrays in the place of Tensors; None where a gradient or a trace would end."""
    leaves, structure = flatten((arguments, keywords))
    found = []
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            if leaf.requires_grad or type(leaf._value) is not np.ndarray:
                return None
            leaf = leaf._value
        found.append(leaf)
    return unflatten(structure, found)


def known(function: str, *values: Any) -> list[np.ndarray]:
    """The arrays that the values are now; of a traced one that is a question with a guard."""
    return [tensor_of(one)._detached()._concrete(f"numpy.{function}") for one in values]


def places(function: str, given: Any) -> Any:
    """Positions, slices or a mask as NumPy takes them; tensors, also in lists, are asked for their values."""
    if isinstance(given, Tensor):
        return known(function, given)[0][()]
    if isinstance(given, list | tuple):
        return [places(function, one) for one in given]
    return given
