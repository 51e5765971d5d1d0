"""`np.nditer` over Tensors: NumPy's own iterator goes over positions of arrays that lie as they do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracer.errors import UnsupportedError
from ..functions.common import array_dtype, fail
from ..values.memory_order import asked_strides_of, laid
from ..values.tensor import Tensor
from .array_creation import CREATION

FLAGS = frozenset((
    "multi_index", "c_index", "f_index", "refs_ok", "zerosize_ok", "reduce_ok", "common_dtype",
    "copy_if_overlap",
))  # fmt: skip
"""The flags that leave each element where it is."""


class Iteration:
    """What `np.nditer(op)` is: each element is an array without dimensions, which shows its operand's memory.

    Raises:
        UnsupportedError: an option or a flag that gives several elements at once, or copies of them.
    """

    def __init__(
        self, op: Any, flags: Any = None, op_flags: Any = None, op_dtypes: Any = None,
        order: Any = "K", casting: Any = "safe", **options: Any,
    ) -> None:  # fmt: skip
        unknown = [name for name, one in (("op_dtypes", op_dtypes), *options.items()) if one is not None]
        unknown += sorted(set(flags or ()) - FLAGS)
        if unknown:
            fail(UnsupportedError, f"numpy.nditer: {', '.join(unknown)} is not supported on a Tensor.")
        given = list(op) if isinstance(op, list | tuple) else [op]
        self._is_alone = not isinstance(op, list | tuple)
        places: Any = [None if one is None else _places_in(one) for one in given]
        self._places = np.nditer(places, flags, op_flags, None, order, casting)
        self.operands = tuple(
            self._made(place, given) if one is None else one for place, one in enumerate(given)
        )

    def _made(self, place: int, given: Sequence[Any]) -> Any:
        """The array that NumPy would make for results, whose positions are written where it iterates."""
        places = self._places.operands[place]
        places[...] = np.arange(places.size).reshape(places.shape)
        dtype = np.result_type(*(_dtype_of(one) for one in given if one is not None))
        return CREATION[np.zeros](places.shape, dtype, "C" if places.flags.c_contiguous else "F")

    def __getitem__(self, place: int) -> Any:
        operand = self.operands[place]
        found = np.unravel_index(int(self._places[place]), np.shape(operand))
        return operand[(*found, ...)]

    def __setitem__(self, place: int, value: Any) -> None:
        self[place][...] = value

    @property
    def value(self) -> Any:
        found = tuple(self[place] for place in range(len(self.operands)))
        return found[0] if self._is_alone else found

    def __iter__(self) -> Iteration:
        return self

    def __next__(self) -> Any:
        next(self._places)
        return self.value

    def __len__(self) -> int:
        return len(self.operands)

    def __enter__(self) -> Iteration:
        return self

    def __exit__(self, *error: object) -> None:
        self._places.close()

    def __getattr__(self, name: str) -> Any:
        if name not in ("multi_index", "index", "finished", "shape", "ndim", "nop", "itersize", "iterindex",
                        "iternext", "reset", "close", "has_index", "has_multi_index"):  # fmt: skip
            raise AttributeError(f"numpy.nditer: {name} is not supported on a Tensor")
        return getattr(self._places, name)


def _dtype_of(operand: Any) -> np.dtype:
    return array_dtype(operand) if isinstance(operand, Tensor) else np.asarray(operand).dtype


def _places_in(operand: Any) -> np.ndarray:
    """The position of each element of an operand, in an array that lies as it does."""
    value = operand._value if isinstance(operand, Tensor) else np.asarray(operand)
    if isinstance(value, np.ndarray):
        strides = tuple(step // value.itemsize for step in value.strides)
    else:
        strides = asked_strides_of(value)
    return laid(np.arange(np.prod(value.shape, dtype=int)).reshape(value.shape), strides)
