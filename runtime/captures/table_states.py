"""Whether a table or column of pandas's is as it was when it was compared last, found by its blocks.

Taken apart by columns and labels (`contents.py`) that takes twenty times as long, which calls of an optimiser
pay that reads its data out of a table.
"""

from __future__ import annotations

from operator import is_
from typing import Any

import numpy as np

MOST_BYTES = 1 << 24
"""Of numbers, which are kept."""


class TableState:
    """What a table holds: its labels, which never change, as objects, and the bytes of its numbers.

    Example:
        >>> import pandas
        >>> table = pandas.DataFrame({"a": [1.0, 2.0]})
        >>> state = TableState.of(table)
        >>> table.loc[0, "a"] = 3.0
        >>> state.is_of(table)
        False
    """

    __slots__ = ("_axes", "_content")

    def __init__(self, axes: tuple[Any, ...], content: list[Any]) -> None:
        self._axes = axes
        self._content = content

    @classmethod
    def of(cls, table: Any) -> TableState | None:
        """That of a table; None where it holds something else than numbers, or is no table of pandas's."""
        blocks = getattr(getattr(table, "_mgr", None), "blocks", None)
        if blocks is None:
            return None
        values = [block.values for block in blocks]
        if any(type(one) is not np.ndarray or one.dtype.hasobject for one in values):
            return None
        if sum(one.nbytes for one in values) > MOST_BYTES:
            return None
        if not all(map(_is_text, _names(table._mgr, table))):
            return None
        return cls(tuple(table._mgr.axes), _content(table))

    def is_of(self, table: Any) -> bool:
        """Whether a table has these very labels and numbers; another one that is equal may have others."""
        axes = table._mgr.axes
        return (
            len(axes) == len(self._axes)
            and all(map(is_, axes, self._axes))
            and all(type(block.values) is np.ndarray for block in table._mgr.blocks)
            and _content(table) == self._content
        )


def _content(table: Any) -> list[Any]:
    """The names of labels, and of each block of numbers where it stands, its dtype, shape and bytes."""
    manager = table._mgr
    found = _names(manager, table)
    for block in manager.blocks:
        values = block.values
        place = block.mgr_locs.as_array.tobytes() if manager.ndim > 1 else None
        found += (place, values.dtype, values.shape, values.tobytes())
    return found


def _names(manager: Any, table: Any) -> list[Any]:
    """What its rows and columns are called, and a column itself."""
    names = [table.name] if manager.ndim == 1 else []
    return [*names, *(name for axis in manager.axes for name in axis.names)]


def _is_text(name: Any) -> bool:
    """Whether it is text, or a tuple of texts, or nothing: what equals such a name is the same."""
    return name is None or type(name) is str or (type(name) is tuple and all(map(_is_text, name)))
