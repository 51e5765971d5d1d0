"""The kinds of values that kernels consist of: numbers, arrays, tuples, functions; how LLVM holds them.

They follow NumPy's promotion and Numba's arithmetic: integers are computed with 64 bits, as in Python.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple, Union

import numpy as np
from llvmlite import ir

from pullback.tracer.spec import BOOL, INT64

from ....tracer.records import record
from ...ir.expressions import FLOAT64
from ..entry import element_type

FLOAT32 = np.dtype("float32")
LARGEST = 2**63 - 1
_INT64 = ir.IntType(64)


@record(frozen=True)
class Array:
    """An array, with strides of its own unless it is in C order."""

    dtype: np.dtype
    ndim: int
    layout: str
    extents: tuple[int, ...] = field(default=(), compare=False)
    """Those that are known, as of `ArrayType`."""

    @property
    def transposed(self) -> Array:
        layout = {"C": "F", "F": "C"}.get(self.layout, "A")
        return replace(self, layout=layout, extents=self.extents[::-1]) if self.ndim > 1 else self

    def part(self, indices: Sequence[Kind]) -> Kind:
        """What `array[indices]` is."""
        taken = sum(is_integer(one) for one in indices)
        if len(indices) > self.ndim or any(one is not SLICE and not is_integer(one) for one in indices):
            raise TypeError(f"an array of {self.ndim} dimensions has no element {indices}")
        if taken == self.ndim:
            return self.dtype
        keeps_order = self.layout == "C" and all(is_integer(one) for one in indices[:-1])
        return Array(self.dtype, self.ndim - taken, "C" if keeps_order else "A")


@record(frozen=True)
class Tuple:
    """Several values."""

    items: tuple[Kind, ...]


@record(frozen=True)
class Other:
    """What is no value at run time: a function, a method of an array, None."""

    what: Any


Kind = Union[np.dtype, Array, Tuple, Other]  # noqa: UP007  of forward references
NONE, SLICE = Other(None), Other(slice)


class ArrayValue(NamedTuple):
    """An array in pieces: the address of its data, extents, strides in bytes."""

    data: ir.Value
    shape: Sequence[ir.Value]
    strides: Sequence[ir.Value]


# --- numbers ----------------------------------------------------------------------------------------------


def is_number(kind: Kind) -> bool:
    return isinstance(kind, np.dtype)


def is_integer(kind: Kind) -> bool:
    return isinstance(kind, np.dtype) and kind.kind in "iu"


def of_constant(value: Any) -> Kind:
    """The kind of a number in the text, of None, or of a function."""
    if isinstance(value, bool | np.bool_):
        return BOOL
    if isinstance(value, int):
        return INT64 if value <= LARGEST else np.dtype("uint64")
    return FLOAT64 if isinstance(value, float) else Other(value)


@functools.cache
def common(*kinds: Kind) -> np.dtype:
    """What holds the numbers of all the kinds. Raises TypeError for what are no numbers."""
    if not all(map(is_number, kinds)):
        raise TypeError(f"{', '.join(map(str, kinds))} have no common kind")
    return functools.reduce(np.promote_types, kinds)  # type: ignore[arg-type]


@functools.cache
def of_arithmetic(*kinds: Kind) -> np.dtype:
    """Of a sum: 64 bits for integers, signed if any is."""
    kind = common(*kinds)
    if all(one.kind in "biu" for one in kinds):  # type: ignore[union-attr]
        is_unsigned = all(one.kind == "u" for one in kinds)  # type: ignore[union-attr]
        return np.dtype("uint64") if is_unsigned else INT64
    return kind


# --- LLVM's types -----------------------------------------------------------------------------------------


@functools.cache
def number_type(dtype: np.dtype) -> ir.Type:
    """Of a number in a register: a truth value has one bit."""
    return ir.IntType(1) if dtype.kind == "b" else element_type(dtype)


def field_types(kind: Kind) -> list[ir.Type]:
    """Of the numbers and addresses that a value consists of."""
    if isinstance(kind, np.dtype):
        return [number_type(kind)]
    if isinstance(kind, Array):
        return [element_type(kind.dtype).as_pointer(), *[_INT64] * _extents(kind)]
    if isinstance(kind, Tuple):
        return [one for item in kind.items for one in field_types(item)]
    return []


def _extents(kind: Array) -> int:
    return kind.ndim if kind.layout == "C" else 2 * kind.ndim


def fields(kind: Kind, value: Any) -> list[ir.Value]:
    """The numbers and addresses that a value consists of."""
    if isinstance(kind, np.dtype):
        return [value]
    if isinstance(kind, Array):
        return [value.data, *value.shape, *(() if kind.layout == "C" else value.strides)]
    if isinstance(kind, Tuple):
        return [one for item, part in zip(kind.items, value) for one in fields(item, part)]
    return []


def from_fields(builder: ir.IRBuilder, kind: Kind, given: Iterator[ir.Value]) -> Any:
    """The value that consists of the next of `given`."""
    if isinstance(kind, np.dtype):
        return next(given)
    if isinstance(kind, Array):
        data, *extents = (next(given) for _ in range(1 + _extents(kind)))
        if kind.layout == "C":
            return in_order(builder, kind.dtype, data, extents)
        return ArrayValue(data, extents[: kind.ndim], extents[kind.ndim :])
    if isinstance(kind, Tuple):
        return [from_fields(builder, item, given) for item in kind.items]
    return kind.what


def in_order(builder: ir.IRBuilder, dtype: np.dtype, data: ir.Value, shape: Sequence[ir.Value]) -> ArrayValue:
    """An array in C order, whose strides follow from its shape."""
    strides: list[ir.Value] = [_INT64(dtype.itemsize)] if shape else []
    for extent in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], extent))
    return ArrayValue(data, shape, strides)


def results(builder: ir.IRBuilder, place: ir.Value, types: Sequence[ir.Type]) -> list[ir.Value]:
    """What a function has written, 8 bytes each."""
    addresses = (builder.gep(place, [_INT64(8 * number)]) for number in range(len(types)))
    return [builder.load(builder.bitcast(one, kind.as_pointer())) for one, kind in zip(addresses, types)]
