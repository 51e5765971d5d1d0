"""Whether dicts, functions and cells have changed, told by a few words of memory for each.

CPython up to 3.13 numbers the states of all dicts (PEP 509), and keeps what a function or a cell holds in
fields of its own. So thousands of them are compared as fast as memory is read. Where these fields lie is
found by looking at objects whose fields are known; where they are not found there, as in later versions,
nothing is said, and who asks has to look for himself.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
from collections.abc import Iterable, Sequence
from types import CellType, FunctionType, MappingProxyType
from typing import Any

import numpy as np

WORD = 8
SPACE = 1 << 46
"""Bytes of memory that a process can have objects in."""


MOST_RESTORED = 1 << 16
_restored: dict[int, tuple[int, int]] = {}
"""By the id of a dict the number of a state in which it holds what it did in an earlier one, and that one's.

No two states of dicts have a number in common, so another dict with this id is in none of them.
"""


class Versions:
    """What tells the states of some objects apart, which it keeps alive.

    Args:
        dicts: dicts, or views of the attributes of classes.

    Example:
        >>> variables = {"scale": 2.0}
        >>> versions = Versions([variables])
        >>> before = versions.read()
        >>> variables["scale"] = 3.0
        >>> before is not None and bool((versions.read() == before).all())
        False
    """

    def __init__(
        self, dicts: Iterable[Any], functions: Sequence[FunctionType] = (), cells: Sequence[CellType] = ()
    ) -> None:
        self._objects = list(map(_dict_of, dicts)), list(functions), list(cells)
        self._ids = list(map(id, self._objects[0]))
        self._memory: np.ndarray | None = None
        fields = _fields()
        if fields is None or any(type(one) is not dict for one in self._objects[0]):
            return
        places = [key + fields.version for key in self._ids]
        places += [id(one) + field for one in functions for field in fields.of_function]
        places += [id(one) + fields.content for one in cells]
        first = min(places, default=id(places))
        memory: Any = (ctypes.c_char * SPACE).from_address(first)
        self._memory = np.frombuffer(memory, dtype=np.int64)
        self._places = (np.array(places, np.int64) - first) // WORD

    @staticmethod
    def of_both(first: Versions, second: Versions) -> Versions:
        """Those of the objects of two."""
        dicts, functions, cells = map(list.__add__, first._objects, second._objects)
        return Versions(dicts, functions, cells)

    def read(self) -> np.ndarray | None:
        """Words that are the same where the objects are as they were; None where that can't be told."""
        if self._memory is None:
            return None
        words = self._memory.take(self._places)
        for place, restored in enumerate(map(_restored.get, self._ids)):
            if restored is not None and restored[0] == words[place]:
                words[place] = restored[1]
        return words

    def are(self, state: np.ndarray | None) -> bool:
        """Whether the objects are as they were when this was read; False where that can't be told."""
        if self._memory is None or state is None:
            return False
        words = self._memory.take(self._places)
        if words.tobytes() == state.tobytes():  # found sooner than where they differ
            return True
        (places,) = (words != state).nonzero()
        last, ids = len(self._ids), self._ids
        for place in places.tolist():
            if place >= last or _restored.get(ids[place]) != (words[place], state[place]):
                return False
        return True

    def note_restored(self, state: np.ndarray) -> None:
        """Say that the dicts, which have been changed, hold what they did when this was read."""
        assert self._memory is not None
        if len(_restored) > MOST_RESTORED:
            _restored.clear()
        words = self._memory.take(self._places[: len(self._ids)])
        _restored.update(zip(self._ids, zip(words.tolist(), state.tolist())))


class _Fields:
    """Where fields of objects lie, in bytes from where these begin."""

    def __init__(self) -> None:
        self.version = _place_of_version()
        self.of_function = _places_in_function()
        self.content = _place_in_cell()


@functools.cache
def _fields() -> _Fields | None:
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != WORD:
        return None
    is_enabled: Any = getattr(sys, "_is_gil_enabled", None)
    if is_enabled is not None and not is_enabled():
        return None
    try:
        return _Fields()
    except ValueError:
        return None


def _words_of(value: Any) -> list[int]:
    kind: Any = type(value)
    return list((ctypes.c_int64 * (kind.__basicsize__ // WORD)).from_address(id(value)))


def _place_of_version() -> int:
    """Where the number of a dict's state lies: the one word that any change of it makes another one."""
    sample: dict[str, Any] = {"a": 1, "b": 2}
    states = [_words_of(sample)]
    for change in (
        lambda: sample.__setitem__("a", 2.5),
        lambda: sample.__setitem__("a", "text"),
        lambda: sample.update(b=None),
        lambda: sample.setdefault("c", 3),
        lambda: sample.pop("c"),
        lambda: sample.__delitem__("b"),
        lambda: sample.clear(),
        lambda: sample.update(a=1),
    ):
        change()
        states.append(_words_of(sample))
    columns = [set(column) for column in zip(*states)]
    (place,) = [place for place, column in enumerate(columns) if len(column) == len(states)]
    return place * WORD


def _places_in_function() -> list[int]:
    """Where a function's code, its defaults and its attributes lie."""

    def sample(x: Any = WORD, *, y: Any = SPACE) -> Any:
        return x, y

    held = sample.__code__, sample.__defaults__, sample.__kwdefaults__, sample.__dict__
    words = _words_of(sample)
    return [words.index(id(one)) * WORD for one in held]


def _place_in_cell() -> int:
    content = [WORD]

    def sample() -> Any:
        return content

    (cell,) = sample.__closure__ or ()
    return _words_of(cell).index(id(content)) * WORD


def _dict_of(mapping: Any) -> Any:
    """The dict that a view of a class's attributes shows."""
    return gc.get_referents(mapping)[0] if type(mapping) is MappingProxyType else mapping
