"""What NumPy's functions take for arrays: Tensors, ndarrays, numbers, nested lists that hold Tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..functions.common import array_dtype, as_dtype
from ..functions.joining import stack
from ..plain_arrays import require_plain_array
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
    require_plain_array(value, "an operand")
    return value if isinstance(value, Tensor) else wrap(np.asarray(value))


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


def known(function: str, *values: Any) -> list[np.ndarray]:
    """The arrays that the values are now; of a traced one that is a question with a guard."""
    return [tensor_of(one).detach()._concrete(f"numpy.{function}") for one in values]
