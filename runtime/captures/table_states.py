"""Whether a table or column of pandas's is as it was when it was compared last, found by its blocks.

Taken apart by columns and labels (`contents.py`) that takes twenty times as long, which calls of an optimiser
pay that reads its data out of a table.
"""

from __future__ import annotations

from operator import is_
from typing import Any

import numpy as np

MOST_BYTES = 1 << 24
"""Of columns, which are kept."""
MEMORY = ("_ndarray",), ("_data", "_mask"), ("_pa_array",)
"""Where pandas's own arrays have theirs: of dates and categories, with missing values, of Arrow."""
UNCHANGING = frozenset((str, bytes, bool, int, float, type(None)))
"""Classes of objects in columns that are told apart by their addresses."""


class TableState:
    """What a table holds: its labels, which never change, as objects, and the bytes of its columns.

    Of columns of text these are the addresses of the texts, which never change and are kept.

    Example:
        >>> import pandas
        >>> table = pandas.DataFrame({"a": [1.0, 2.0]})
        >>> state = TableState.of(table)
        >>> table.loc[0, "a"] = 3.0
        >>> state.is_of(table)
        False
    """

    __slots__ = ("_axes", "_content", "_kept")

    def __init__(self, axes: tuple[Any, ...], content: list[Any], kept: list[Any]) -> None:
        self._axes = axes
        self._content = content
        self._kept = kept

    @classmethod
    def of(cls, table: Any) -> TableState | None:
        """That of a table; None where it holds what may change unseen, or is no table of pandas's."""
        blocks = getattr(getattr(table, "_mgr", None), "blocks", None)
        if blocks is None or _has_more(table):
            return None
        memory = [_memory(block.values) for block in blocks]
        if None in memory or sum(block.values.nbytes for block in blocks) > MOST_BYTES:
            return None
        if not all(map(_is_text, _names(table._mgr, table))):
            return None
        objects = [one for part in memory for one in part or () if _has_objects(one)]
        if not all({*map(type, one.reshape(-1).tolist())} <= UNCHANGING for one in objects):
            return None
        return cls(tuple(table._mgr.axes), _content(table), [one.copy() for one in objects])

    def is_of(self, table: Any) -> bool:
        """Whether a table has these very labels and columns; another one that is equal may have others."""
        axes = table._mgr.axes
        return (
            len(axes) == len(self._axes)
            and all(map(is_, axes, self._axes))
            and not _has_more(table)
            and _content(table) == self._content
        )


def _content(table: Any) -> list[Any]:
    """The names of labels, and of each block of columns where it stands, its dtype, shape and bytes."""
    manager = table._mgr
    found = _names(manager, table)
    for block in manager.blocks:
        values = block.values
        place = block.mgr_locs.as_array.tobytes() if manager.ndim > 1 else None
        found += (place, values.dtype, values.shape)
        for one in _memory(values) or (object(),):
            found.append(one.tobytes() if type(one) is np.ndarray else one)
    return found


def _memory(values: Any) -> tuple[Any, ...] | None:
    """The arrays that columns lie in, or Arrow's, which never change; None if that is not known."""
    if type(values) is np.ndarray:
        return (values,)
    for names in MEMORY:
        found = tuple([getattr(values, name, None) for name in names])
        if all(one is not None for one in found):
            return found
    return None


def _has_objects(memory: Any) -> bool:
    return type(memory) is np.ndarray and memory.dtype.hasobject


def _has_more(table: Any) -> bool:
    """Whether a user has written something on it: an entry in `attrs`, or an attribute."""
    return bool(table.__dict__.get("_attrs")) or any(name[0] != "_" for name in table.__dict__)


def _names(manager: Any, table: Any) -> list[Any]:
    """What its rows and columns are called, and a column itself."""
    names = [table.name] if manager.ndim == 1 else []
    return [*names, *(name for axis in manager.axes for name in axis.names)]


def _is_text(name: Any) -> bool:
    """Whether it is text, or a tuple of texts, or nothing: what equals such a name is the same."""
    return name is None or type(name) is str or (type(name) is tuple and all(map(_is_text, name)))
