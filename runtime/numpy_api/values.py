"""What NumPy's functions take for arrays: Tensors, ndarrays, numbers, nested lists that hold Tensors."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any

import numpy as np

from ..flatten import flatten, unflatten
from ..functions.common import array_dtype, as_dtype, require_numbers
from ..functions.joining import stack
from ..tape import wrap
from ..tensor import Tensor


def holds_tensor(data: Any) -> bool:
    """Whether data for an array have a Tensor among them."""
    return isinstance(data, Tensor) or (isinstance(data, list | tuple) and any(map(holds_tensor, data)))


def joined(data: Any) -> Any:
    """Nested lists with Tensors as one Tensor; data without any as they are."""
    if not isinstance(data, list | tuple) or not holds_tensor(data):
        return data
    return stack(promoted([joined(one) for one in data]), 0)


def tensor_of(value: Any) -> Tensor:
    """The value as a Tensor."""
    if isinstance(value, Tensor):
        return value
    value = joined(value)
    if isinstance(value, Tensor):
        return value
    array = np.asarray(value)
    require_numbers(array.dtype)
    return wrap(array)


def promoted(values: Sequence[Any]) -> list[Tensor]:
    """The values as Tensors of NumPy's common dtype."""
    weak = [
        one if isinstance(one, int | float) and not isinstance(one, np.generic) else None for one in values
    ]
    tensors = [tensor_of(one) for one in values]
    kinds: list[Any] = [array_dtype(x) if one is None else one for x, one in zip(tensors, weak)]
    dtype = np.result_type(*kinds)
    return [as_dtype(x, dtype) for x in tensors]


def averaged(value: Any) -> Tensor:
    """In the dtype in which NumPy averages: integers and bools as float64."""
    x = tensor_of(value)
    return x if array_dtype(x).kind == "f" else as_dtype(x, np.dtype("float64"))


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
    return [tensor_of(one).detach()._concrete(f"numpy.{function}") for one in values]
