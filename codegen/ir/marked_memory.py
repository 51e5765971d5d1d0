"""Memory that knows which of its elements have been written, by which buffer and by which part."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ...tracer.forks import kept
from ...tracer.records import record
from .expressions import Buffer


@record
class Touches:
    """Which parts of what threads share have read, or written, the bytes at which an element begins."""

    read: dict[int, set[int]] = field(default_factory=dict)
    written: dict[int, set[int]] = field(default_factory=dict)

    def note(self, address: int, part: int, writes: bool) -> bool:
        """Whether an access is safe: no other part writes what one reads or writes."""
        (self.written if writes else self.read).setdefault(address, set()).add(part)
        writers, readers = self.written.get(address, set()), self.read.get(address, set())
        return not writers or len(writers | readers) == 1


@record
class Memory:
    """A buffer's values, and beside each of its bytes who has written it last."""

    values: np.ndarray
    marks: np.ndarray
    """Bytes, seen as numbers as long as the values: 0 where nobody has written."""
    mark: int = 1

    @classmethod
    def of(cls, array: np.ndarray) -> Memory:
        memory = cls.poisoned(array.shape, array.dtype)
        memory.fill(array)
        return memory

    @classmethod
    def poisoned(cls, shape: Sequence[int], dtype: np.dtype) -> Memory:
        values = np.empty(shape, dtype)
        values.reshape(-1).view(np.uint8)[...] = 0xFF  # nan, and no sensible integer
        return cls(values, np.zeros(shape, f"u{dtype.itemsize}"))

    def lent(self, buffer: Buffer, offset: int, mark: int) -> Memory:
        """Some of the memory, for another buffer."""
        values = np.ndarray(buffer.dims, buffer.dtype, self.values, offset)
        marks = np.ndarray(buffer.dims, f"u{buffer.dtype.itemsize}", self.marks, offset)
        return Memory(values, marks, mark)

    @kept
    def written(self) -> int:
        """What the marks of an element are that this buffer has written."""
        return int.from_bytes(bytes([self.mark]) * self.values.itemsize, "little")

    def fill(self, values: Any) -> None:
        self.values[...] = values
        self.marks[...] = self.written

    @kept
    def address(self) -> int:
        """Of its first element."""
        first: int = self.values.__array_interface__["data"][0]
        return first

    def address_of(self, place: Sequence[int]) -> int:
        return self.address + sum(map(operator.mul, place, self.values.strides))

    def addresses(self) -> Iterator[int]:
        """Of all elements."""
        return map(self.address_of, np.ndindex(self.values.shape))

    def part(self, change: Callable[[np.ndarray], np.ndarray]) -> Memory:
        """A view of some of it."""
        return Memory(change(self.values), change(self.marks), self.mark)

    @property
    def is_written(self) -> bool:
        return bool((self.marks == self.written).all())
