"""Lists that grow in the turns of a loop which values end, in a trace: arrays with a length that is a value.

A list of a traced function is Python's, with as many elements as its call has appended; so a trace of a loop
that appends holds for this number of turns alone. In its place stands a `GrowingList`: rows of an array that
is long enough, and how many there are. A turn that appends writes a row, as a person would write it who knows
how long the list gets. What NumPy makes of such a list is a `GrownArray` (`grown_arrays.py`). What lists do
besides growing, and giving back their last elements, raises ConstantNeeded: then the list stays Python's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...tracer.records import record
from ...tracer.trace import ConstantNeeded, innermost
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber
from .grown_arrays import GrownArray, Held

FEWEST_ROWS, MOST_ROWS = 64, 1 << 20
"""For which there is room when a list is first met, and as many as a list may get."""
FIRST_BYTES = 1 << 11
"""Of the rows of a list when it is first met."""
DOUBLE = np.dtype(np.float64)


@record(frozen=True)
class Rows:
    """What the elements of a growing list are, and how many there is room for.

    Attributes:
        of: their class; `tuple` for tuples of so many numbers as a row is long.
        shrinks: whether elements are taken from the list as well.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    of: type
    requires_grad: bool = False
    capacity: int = 0
    shrinks: bool = False

    def holding(self, count: int) -> Rows:
        """The same with room for twice as many, a power of two."""
        size = max(int(np.prod(self.shape)) * self.dtype.itemsize, 1)
        least = max(2 * count, FIRST_BYTES // size, FEWEST_ROWS)
        return replace(self, capacity=1 << (least - 1).bit_length())

    def takes(self, value: Any, writes: bool = True) -> bool:
        """Whether a value is one of such elements.

        An array without dimensions is one of NumPy's numbers for code that does not write in place.
        """
        row = row_of(value)
        if row is None or (row.shape, row.dtype) != (self.shape, self.dtype):
            return False
        return row.of is self.of or (not self.shape and not writes and self.of is NumpyScalar)


def row_of(value: Any) -> Rows | None:
    """What the elements are of a list that has this one; None if it stays Python's.

    Python's numbers of double precision are NumPy's, as variables are that begin as such.
    """
    if type(value) in (float, np.float64):
        return Rows((), DOUBLE, NumpyScalar)
    if type(value) is tuple:
        return _row_of_parts([row_of(one) for one in value])
    if type(value) is np.ndarray:
        return Rows(value.shape, value.dtype, NumpyTensor) if value.dtype.kind in "biuf" else None
    if not issubclass(type(value), NumpyTensor) or value._hooks is not None:
        return None
    payload = value._value
    if payload.dtype.kind not in "biuf":
        return None
    of = NumpyScalar if type(value) is PythonNumber and payload.dtype == DOUBLE else type(value)
    return Rows(tuple(map(int, payload.shape)), payload.dtype, of, value._requires_grad)


def _row_of_parts(parts: Sequence[Rows | None]) -> Rows | None:
    """What the elements are of a list of tuples of numbers of double precision."""
    numbers = [one for one in parts if one is not None and one.of is NumpyScalar and one.dtype == DOUBLE]
    if not parts or len(numbers) < len(parts):
        return None
    return Rows((len(parts),), DOUBLE, tuple, any(one.requires_grad for one in numbers))


class MoreRows(BaseException):
    """A list gets more elements than there is room for: the function is traced with more of it."""

    def __init__(self, counter: Any, count: int) -> None:
        super().__init__(count)
        self.counter = counter
        self.count = count


class GrowingList:
    """What stands for a list that only grows.

    Args:
        counter: which list of the function it is.
        row: what its elements are.
        least: how many it begins with.
        rows, count: where they lie, and how many they are, as traced values.
        held: notes what is an element.
    """

    __slots__ = ("_counter", "_held", "_least", "_row", "count", "rows")

    def __init__(self, counter: Any, row: Rows, least: int, rows: Any, count: Any, held: Held) -> None:
        self._counter = counter
        self._row = row
        self._least = 0 if row.shrinks else least
        self.rows = rows
        self.count = count
        self._held = held

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # isinstance(x, list) holds, as without us
        return list

    @property
    def identity(self) -> tuple[Any, int]:
        """What tells it from others, besides traced values."""
        return self._counter, self._least

    # --- growing ------------------------------------------------------------------------------------------

    def append(self, value: Any) -> None:
        trace = innermost()
        if trace is None or trace.bodies or not self._row.takes(value):
            self._refuse()
        count = int(trace.values.of(self.count._value))  # type: ignore[union-attr, arg-type]
        if count >= self._row.capacity:
            raise MoreRows(self._counter, count)
        self.write(self.count, value)
        self.count = self.count + 1

    def write(self, place: Any, value: Any) -> None:
        """Put an element at a place."""
        self._held.note(self._counter, value)
        if self._row.of is tuple:
            for column, part in enumerate(value):
                self.rows[place, column] = part
        else:
            self.rows[place] = value

    def _element(self, row: Any) -> Any:
        """The element that lies in a row."""
        return tuple(row[column] for column in range(self._row.shape[0])) if self._row.of is tuple else row

    def pop(self, *index: Any) -> Any:
        if not self._row.shrinks or index not in ((), (-1,)):
            self._refuse()
        if not self:
            raise IndexError("pop from empty list")
        found = self[-1]
        self.count = self.count - 1
        return found

    def extend(self, values: Any) -> None:
        if type(values) not in (list, tuple):
            self._refuse()
        for one in values:
            self.append(one)

    def __iadd__(self, values: Any) -> GrowingList:  # type: ignore[misc]
        self.extend(values)
        return self

    # --- reading ------------------------------------------------------------------------------------------

    @property
    def array(self) -> GrownArray:
        """What `np.array` makes of it."""
        self._held.require_unwritten()
        return GrownArray(self.rows, self.count, self._least, self._counter, self._held)

    def __getitem__(self, index: Any) -> Any:
        if type(index) is not int and not issubclass(type(index), Tensor):
            self._refuse()
        return self._element(self.array.element(index))

    def __bool__(self) -> bool:
        return self._least > 0 or bool(self.count > 0)

    def _refuse(self, *_: Any) -> Any:
        raise ConstantNeeded({self._counter})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(list, name):
            raise AttributeError(f"'list' object has no attribute '{name}'")
        return self._refuse()

    def __len__(self) -> int:
        return int(self._refuse())

    def __iter__(self) -> Iterator[Any]:
        return map(self._element, self.array)

    __setitem__ = __delitem__ = __contains__ = __add__ = __radd__ = __mul__ = __rmul__ = __imul__ = _refuse
    __reversed__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __repr__ = __str__ = _refuse
    __array__ = _refuse
    __hash__ = None  # type: ignore[assignment]


__all__ = ["MOST_ROWS", "GrowingList", "MoreRows", "Rows", "row_of"]
