"""What the tape saves of memory that may be written to later, while a functional transform runs its function.

For `backward()` a write to a saved value is an error, as in PyTorch. A function that `grad`, `vjp` and their
kin differentiate may write as NumPy programs do: right before a write, the nodes that have saved values of
the memory get copies. Nothing is copied where nothing is written, and nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import numpy as np

Cell = list[Any]  # [version, the place of the last write]: see tensor.py


class Saver(Protocol):
    """What keeps values for a backward pass."""

    def keep(self, cell: Cell, copies: Copies) -> None:
        """Replace the values of the memory that `cell` belongs to by copies."""


class Copies:
    """Copies of arrays, one for each, with a version cell that nobody writes to."""

    def __init__(self) -> None:
        self._made: dict[int, np.ndarray] = {}
        self.cell: Cell = [0, None]

    def of(self, value: Any) -> Any:
        """The copy of an array; graph nodes are never overwritten."""
        if type(value) is not np.ndarray:
            return value
        found = self._made.get(id(value))
        if found is None:
            found = self._made[id(value)] = value.copy()
        return found


class SavedValues:
    """Who has saved what since it was last written to, by the version cell of the memory."""

    def __init__(self) -> None:
        self._savers: dict[int, tuple[Cell, list[Saver]]] = {}

    def note(self, cell: Cell, saver: Saver) -> None:
        """A saver has a value of the memory that `cell` belongs to."""
        found = self._savers.get(id(cell))
        if found is None:
            found = self._savers[id(cell)] = (cell, [])  # which keeps the cell alive, and so its id
        found[1].append(saver)

    def keep(self, cell: Cell) -> None:
        """The memory is going to be written to."""
        _, savers = self._savers.pop(id(cell), (cell, []))
        copies = Copies()
        for saver in savers:
            saver.keep(cell, copies)


_current: ContextVar[SavedValues | None] = ContextVar("saved_values", default=None)
saved_values = _current.get
"""Those of the transform that is running its function, or None."""


@contextmanager
def keeping_saved_values() -> Iterator[None]:
    """Inside, writes leave what the tape has saved as it was; an inner transform adds to the outer's."""
    token = _current.set(_current.get() or SavedValues())
    try:
        yield
    finally:
        _current.reset(token)
