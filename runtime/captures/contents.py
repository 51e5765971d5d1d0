"""What an object holds that is neither an array nor taken apart, to tell whether it has changed since.

Sets, tables of pandas, sparse matrices, objects of libraries: their values end up in a trace as constants. So
what they hold is written down when they are found, and compared in each call. What can't be read without
using it up (an iterator, an open file) is `Unreadable`.
"""

from __future__ import annotations

import array
import contextvars
import functools
import io
import math
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, MappingView, Set
from types import BuiltinFunctionType, CellType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..values.dtypes import DType
from ..values.foreign import module_of
from ..values.tensor import Tensor
from .objects import Unread, attributes_of
from .randomness import RANDOM
from .table_states import TableState

PLAIN_TYPES = (bool, int, float, complex, str, bytes, type(None), range, slice, type(...))
"""Values that are the same if they are equal and of one type."""
_IDENTICAL = (type, ModuleType, FunctionType, BuiltinFunctionType, np.ufunc, np.dtype, DType)
_WITHOUT_PARTS = (*PLAIN_TYPES, np.generic, *_IDENTICAL, *RANDOM)
_PLAIN_CLASSES = frozenset(PLAIN_TYPES)
_BUFFERS = (bytearray, memoryview, array.array)
_PLAIN_PARTS = (*PLAIN_TYPES, frozenset, tuple, *_IDENTICAL)
LIMIT = 200_000
"""Parts that an object may have, to be compared in each call."""
MOST_KEPT = 1 << 24
"""Bytes of copies of arrays by which programs that function objects share may be told apart."""


class Unreadable(Exception):
    """An object whose content can't be known: it would be used up, has too many parts, or refuses."""

    def __init__(self, value: Any) -> None:
        super().__init__(type(value).__name__)
        self.value = value


class Content:
    """What an object held when it was looked at.

    Args:
        met: gets the arrays that were met on the way, which show the object's memory.

    Attributes:
        streams: random generators that were met on the way; what they draw is another matter.

    Raises:
        Unreadable: it is, or holds, an iterator or an open file.
    """

    def __init__(self, value: Any, met: list[np.ndarray] | None = None) -> None:
        kind: Any = type(value)
        self._kind = kind
        parts = parts_of(value)
        if met is not None:
            labels = [label for part in parts if isinstance(part, _Labels) for label in part.parts()]
            met += [part for part in (*parts, *labels) if isinstance(part, np.ndarray)]
        self._parts = [part.copy() if isinstance(part, np.ndarray) else part for part in parts]
        self.streams = [part for part in self._parts if isinstance(part, RANDOM)]
        self._is_table = _is_table(kind)
        self._state: TableState | None = None
        """Of the table that was the same last, as the next one is likely to be."""

    def is_of(self, value: Any) -> bool:
        """Whether an object holds the same: type, structure, numbers, and the identity of all else."""
        if type(value) is not self._kind:
            return False
        if self._state is not None and self._state.is_of(value):
            return True
        try:
            now = parts_of(value)
        except Unreadable:
            return False
        if len(now) != len(self._parts):
            return False
        is_same = all(one is other or same(one, other) for one, other in zip(self._parts, now))
        if is_same and self._is_table:
            self._state = TableState.of(value)
        return is_same

    @property
    def is_plain(self) -> bool:
        """Whether it keeps nothing alive but numbers, text and the like."""
        return all(isinstance(part, _PLAIN_PARTS) for part in self._parts)

    @property
    def is_copied(self) -> bool:
        """Whether it keeps nothing alive but such and copies of arrays, and of these not too much."""
        kept = 0
        labels = [part for one in self._parts if isinstance(one, _Labels) for part in one.parts()]
        for part in (*self._parts, *labels):
            if isinstance(part, _Labels):
                continue
            if not isinstance(part, (*_PLAIN_PARTS, np.generic, np.ndarray)):
                return False
            kept += part.nbytes if isinstance(part, np.ndarray) else 0
        return kept <= MOST_KEPT


def same(one: Any, other: Any) -> bool:
    """Whether parts are of one type and equal in every respect, as nan to nan and 0.0 not to -0.0."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, _Labels):
        return one.are_those_of(other)
    if isinstance(one, np.ndarray):
        is_alike = one.dtype == other.dtype and one.shape == other.shape
        return is_alike and one.tobytes() == other.tobytes()  # nan is nan, and 0.0 is not -0.0
    if isinstance(one, tuple) and 0.0 in one:  # which equals -0.0
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return (one == other and math.copysign(1, one) == math.copysign(1, other)) or (
            math.isnan(one) and math.isnan(other)
        )
    return isinstance(one, (*PLAIN_TYPES, np.generic, np.dtype, frozenset, tuple)) and bool(one == other)


def parts_of(value: Any) -> list[Any]:
    """Types, numbers, arrays and objects without parts that it is made of, in an order of its own."""
    found: list[Any] = []
    seen: set[int] = set()
    kept: list[Any] = []
    pending: list[Any] = [value]
    count = 0
    while pending:
        one = pending.pop()
        count += 1
        if count > LIMIT:
            raise Unreadable(value)
        kind = type(one)
        if kind in _PLAIN_CLASSES:
            found.append(one)
            continue
        is_array = kind is np.ndarray
        if not is_array and isinstance(one, _WITHOUT_PARTS):
            found.append(one)
            if not isinstance(one, FunctionType) or not one.__closure__ or id(one) in seen:
                continue
        if id(one) in seen:
            found.append(...)
            continue
        seen.add(id(one))
        kept.append(one)  # so that no other object gets its id
        found.append(kind)
        if is_array and not one.dtype.hasobject:
            found.append(one)
            continue
        own, inner = _taken_apart(one)
        found += own
        pending += inner
    return found


def _taken_apart(value: Any) -> tuple[list[Any], list[Any]]:
    """What is compared of an object, and the objects in it to go on with."""
    kind: Any = type(value)
    if kind in (list, tuple):
        if all(isinstance(one, PLAIN_TYPES) for one in value):
            return [tuple(map(type, value)), tuple(value)], []
        return [len(value)], [*value]
    if kind is dict:
        return [len(value)], [*value, *value.values()]
    if _is_table(kind):
        return _table(value)
    if issubclass(kind, Unread):
        return [], []
    if isinstance(value, FunctionType):
        return [], [content for cell in value.__closure__ or () for content in content_of_cell(cell)]
    if isinstance(value, Tensor):
        return [value._value], []
    if isinstance(value, np.ndarray):
        return ([], value.reshape(-1).tolist()) if value.dtype.hasobject else ([np.asarray(value)], [])
    if isinstance(value, _BUFFERS):
        return [bytes(value)], []
    if isinstance(value, Mapping | MappingProxyType):
        return [len(value)], [*_attributes(value), *value.keys(), *value.values()]
    if isinstance(value, Set) and not isinstance(value, MappingView):
        elements = tuple(value)  # a weak reference that dies takes itself out of a set
        plain = frozenset((type(one), one) for one in elements if isinstance(one, PLAIN_TYPES))
        others: list[Any] = [one for one in elements if not isinstance(one, PLAIN_TYPES)]
        return [plain, len(elements)], [*_attributes(value), *others]
    if isinstance(value, MappingView):
        shown: Any = value
        return [], [list(shown)]
    if isinstance(value, contextvars.ContextVar):
        return [], [value.get(None)]
    if isinstance(value, weakref.ref):
        return [], [value()]
    if isinstance(value, MethodType):
        return [value.__func__], [value.__self__]
    if module_of(kind).partition(".")[0] in ("pandas", "xarray"):
        return _table(value)
    if kind is deque and all(isinstance(one, PLAIN_TYPES) for one in value):
        return [tuple(map(type, value)), tuple(value)], []
    if isinstance(value, list | tuple | deque):
        return [len(value)], [*_attributes(value), *value]
    if hasattr(type(value), "__array__"):
        try:
            return [np.array(value)], []
        except Exception as error:  # as of another library's tensor with a gradient, whatever it raises
            raise Unreadable(value) from error
    require_readable(value)
    attributes = _attributes(value)
    memory = _memory_of(getattr(value, "_obj", value))  # in which one that processes share has its number
    if memory is not None:
        return [memory], attributes
    return ([], attributes) if attributes else _state(value)


@functools.lru_cache(maxsize=1024)
def _is_table(kind: type) -> bool:
    """Whether objects of a class are tables or columns of pandas's: no mapping, and no array of its own."""
    return module_of(kind).partition(".")[0] == "pandas" and not issubclass(kind, (Mapping, Set, np.ndarray))


def _memory_of(value: Any) -> bytes | None:
    """The bytes of what shows its memory, as numbers of `ctypes` and mapped files do."""
    try:
        return memoryview(value).tobytes()
    except (TypeError, ValueError, BufferError):
        return None


def _is_extension(kind: type) -> bool:
    """Whether a class was written in C, so that its objects may hold what is no attribute."""
    return not kind.__flags__ & (1 << 9)  # Py_TPFLAGS_HEAPTYPE


def require_readable(value: Any) -> None:
    """Raise Unreadable for an iterator or a file that is open for reading."""
    if isinstance(value, io.IOBase):
        if not isinstance(value, io.StringIO | io.BytesIO) and not value.closed and value.readable():
            raise Unreadable(value)
    elif isinstance(value, Iterator) and _is_extension(type(value)):
        raise Unreadable(value)


def content_of_cell(cell: CellType) -> list[Any]:
    """What a variable of an enclosing function holds: nothing where it is assigned only later, or never."""
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def _attributes(value: Any) -> list[Any]:
    """Names and values of attributes, of slots as well."""
    found = attributes_of(value)
    return [part for name in sorted(found) for part in (name, found[name])]


def _state(value: Any) -> tuple[list[Any], list[Any]]:
    """What an object of a class written in C would be pickled as; itself if it can't be."""
    try:
        reduced = value.__reduce_ex__(2)
    except Exception:  # a lock, a logger's stream: nothing that is computed with
        return [value], []
    return ([reduced], []) if isinstance(reduced, str) else ([], [*reduced[1:3]])


def _table(value: Any) -> tuple[list[Any], list[Any]]:
    """The columns and labels of what pandas and xarray have, whose own attributes are caches."""
    kind: Any = type(value)
    return _table_way(kind)(value)


@functools.lru_cache(maxsize=1024)
def _table_way(kind: type) -> Callable[[Any], tuple[list[Any], list[Any]]]:
    """How objects of a class are taken apart: the class is asked, as labels of an object are attributes."""
    has = functools.partial(hasattr, kind)
    if has("columns") and has("items"):
        return _frame
    if has("data_vars"):
        return _dataset
    if has("coords") and has("values"):
        return _data_array
    if has("get_indexer") and has("names"):
        return lambda value: ([_Labels(value), tuple(value.names)], [])
    if has("index") and has("to_numpy"):
        return _column
    return _of_values if has("to_numpy") else lambda value: ([value], [])


def _frame(value: Any) -> tuple[list[Any], list[Any]]:
    blocks = getattr(getattr(value, "_mgr", None), "blocks", ())  # where all are found far sooner than each
    is_of_one_dtype = len({block.dtype for block in blocks}) == 1
    columns = value.to_numpy().T if is_of_one_dtype else [column.to_numpy() for _, column in value.items()]
    return [], [value.columns, value.index, *columns, *_written_on(value)]


def _written_on(table: Any) -> list[Any]:
    """What a user has noted on a table of pandas's: `attrs`, and attributes."""
    own = getattr(table, "__dict__", {})
    return [own.get("_attrs") or None, {name: own[name] for name in own if name[0] != "_"} or None]


def _dataset(value: Any) -> tuple[list[Any], list[Any]]:
    return [], [part for name, one in value.variables.items() for part in (name, one.values)]


def _data_array(value: Any) -> tuple[list[Any], list[Any]]:
    return [], [value.values, value.dims, *(one.values for one in value.coords.values())]


def _column(value: Any) -> tuple[list[Any], list[Any]]:
    labels = value.index if not callable(value.index) else None
    return [], [value.to_numpy(), labels, value.name, *_written_on(value)]


def _of_values(value: Any) -> tuple[list[Any], list[Any]]:
    return [], [value.to_numpy(), getattr(value, "name", None)]


class _Labels:
    """The labels of rows or columns, an index of pandas's: its labels never change, only its name does."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def are_those_of(self, other: _Labels) -> bool:
        """Whether two have the same; the other is remembered, as the next call is likely to have it too."""
        if self._index is other._index:
            return True
        ours, theirs = self.parts(), other.parts()
        is_same = len(ours) == len(theirs) and all(map(same, ours, theirs))
        if is_same:
            self._index = other._index
        return is_same

    def parts(self) -> list[Any]:
        """The labels themselves."""
        return parts_of(self._index.to_numpy())
