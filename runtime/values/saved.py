"""What the tape saves of memory that may be written to later, while a functional transform runs its function.

For `backward()` a write to a saved value is an error, as in PyTorch. A function that `grad`, `vjp` and their
kin differentiate may write as NumPy programs do: right before a write, the nodes that have saved values of
the memory get copies. Nothing is copied where nothing is written, and nothing twice.

Of memory that is no Tensor's nobody says when it is written. So a function that writes into arrays at all
saves copies of such arrays; one copy for as long as the array stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from typing import Any, Protocol

import numpy as np

SMALL = 4096
"""Bytes of an array that is copied sooner than compared with a copy."""
Cell = list[Any]  # [version, the place of the last write]: see tensor.py


class Saver(Protocol):
    """What keeps values for a backward pass."""

    @property
    def cells(self) -> Sequence[Cell]:
        """Those of the memory that its values are of."""

    def keep(self, cell: Cell, copies: Copies) -> None:
        """Replace the values of the memory that `cell` belongs to by copies."""


class Copies:
    """Copies of arrays, one for each as long as it stays the same, with a version cell that stays as well."""

    def __init__(self) -> None:
        self._made: dict[Any, np.ndarray] = {}
        self.cell: Cell = [0, None]

    def of(self, value: Any) -> Any:
        """The copy of an array; graph nodes are never overwritten."""
        if type(value) is not np.ndarray:
            return value
        place = (value.ctypes.data, value.dtype, value.shape, value.strides)
        found = self._made.get(place)
        if found is None or not np.array_equal(found, value):
            found = self._made[place] = value.copy()
        return found


class SavedValues:
    """Who has saved what since it was last written to, by the version cell of the memory."""

    __slots__ = ("_copies", "_new", "_of_arrays", "_savers", "copies_arrays", "note")
    copies_arrays: bool
    """Whether what is saved of memory that is no Tensor's is copied at once."""
    note: Callable[[Saver], None]
    """Called with who has saved values."""

    def __init__(self) -> None:
        self.copies_arrays = False
        self._new: list[Saver] = []
        """Who has saved values since the last write, which sorts them into `_savers`."""
        self._savers: dict[int, tuple[Cell, list[Saver]]] | None = None
        self._of_arrays: dict[int, Cell] = {}
        self._copies: Copies | None = None
        self.note = self._new.append

    def share(self, cell: Cell) -> None:
        """`cell` belongs to a Tensor around an array that is written to without asking."""
        if self.copies_arrays:
            self._of_arrays[id(cell)] = cell
            self.note = self._note_of_arrays

    def of_array(self, array: np.ndarray) -> np.ndarray:
        """What is saved of an array that is no Tensor's: itself, or a copy where it may be written to."""
        if not self.copies_arrays:
            return array
        return array.copy() if array.nbytes <= SMALL else self._of_arrays_so_far().of(array)

    def _of_arrays_so_far(self) -> Copies:
        self._copies = self._copies or Copies()
        return self._copies

    def _note_of_arrays(self, saver: Saver) -> None:
        self._new.append(saver)
        for cell in saver.cells:
            if id(cell) in self._of_arrays:
                saver.keep(cell, self._of_arrays_so_far())

    def keep(self, cell: Cell) -> None:
        """The memory is going to be written to."""
        known = self._savers = self._savers or {}
        for saver in self._new:
            for own in saver.cells:
                found = known.get(id(own))
                if found is None:
                    found = known[id(own)] = (own, [])  # which keeps the cell alive, and so its id
                found[1].append(saver)
        self._new.clear()
        _, savers = known.pop(id(cell), (cell, []))
        copies = Copies()
        for saver in savers:
            saver.keep(cell, copies)


_current: ContextVar[SavedValues | None] = ContextVar("saved_values", default=None)
saved_values = _current.get
"""Those of the transform that is running its function, or None."""


def keep_saved_values() -> Token[SavedValues | None]:
    """From now on, until `end_keeping(token)`, writes leave what the tape has saved as it was; an inner
    transform adds to the outer's."""
    return _current.set(_current.get() or SavedValues())


end_keeping = _current.reset


class keeping_saved_values:
    """The same for what is inside."""

    def __enter__(self) -> None:
        self._token = keep_saved_values()

    def __exit__(self, *error: object) -> None:
        end_keeping(self._token)
