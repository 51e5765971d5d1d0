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
from itertools import repeat
from types import CellType, FunctionType, MappingProxyType
from typing import Any

import numpy as np

WORD = 8
SPACE = 1 << 46
"""Bytes of memory that a process can have objects in."""


MOST_RESTORED = 1 << 16
NO_STATE = -1


class _Restored:
    """Of dicts the number of a state in which each holds what it did in an earlier one, and that one's.

    No two states of dicts have a number in common, so another dict with the id of one is in none of them.

    Attributes:
        now, former: these numbers by place; at place 0, that of all other dicts, there is no state.
        count: how often dicts have got places.
    """

    def __init__(self) -> None:
        self.count = 0
        self._places: dict[int, int] = {}
        """By the ids of dicts."""
        self.now, self.former = np.full((2, 1024), NO_STATE, np.int64)

    def places_of(self, ids: Sequence[int]) -> np.ndarray:
        return np.fromiter(map(self._places.get, ids, repeat(0)), np.int64, len(ids))

    def place_all(self, ids: Sequence[int]) -> None:
        """Give dicts a place that have none."""
        if len(self._places) + len(ids) > MOST_RESTORED:
            self._places = {}
            self.now.fill(NO_STATE)
        while len(self._places) + len(ids) >= len(self.now):  # first, as other threads may read meanwhile
            more = np.full_like(self.now, NO_STATE)
            self.former = np.append(self.former, more)
            self.now = np.append(self.now, more)
        for one in ids:
            self._places.setdefault(one, len(self._places) + 1)
        self.count += 1

    def note(self, places: np.ndarray, now: np.ndarray, former: np.ndarray) -> None:
        self.now[places] = NO_STATE  # while another thread may see one of them alone
        self.former[places] = former
        self.now[places] = now


_restored = _Restored()


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
        self._restored_places, self._count = np.zeros(0, np.int64), NO_STATE
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
        of_dicts, places = words[: len(self._ids)], self._places_of_restored()
        np.copyto(of_dicts, _restored.former[places], where=_restored.now[places] == of_dicts)
        return words

    def are(self, state: np.ndarray | None) -> bool:
        """Whether the objects are as they were when this was read; False where that can't be told."""
        return self.changed(state) == []

    def changed(self, state: np.ndarray | None) -> list[int] | None:
        """Which of the objects are no longer as they were when this was read; None where that can't be told.

        They are counted as they were given, dicts first, then four fields of each function, then the cells.
        """
        if self._memory is None or state is None:
            return None
        words = self._memory.take(self._places)
        if words.tobytes() == state.tobytes():  # found sooner than where they differ
            return []
        (changed,) = (words != state).nonzero()
        count = np.searchsorted(changed, len(self._ids))
        of_dicts, others = changed[:count], changed[count:]
        places = self._places_of_restored()[of_dicts]
        is_another = _restored.now[places] != words[of_dicts]
        is_another |= _restored.former[places] != state[of_dicts]
        return [*of_dicts[is_another].tolist(), *others.tolist()]

    def note_restored(self, state: np.ndarray) -> None:
        """Say that the dicts, which have been changed, hold what they did when this was read."""
        assert self._memory is not None
        count = len(self._ids)
        if not self._places_of_restored().all():
            _restored.place_all(self._ids)
        _restored.note(self._places_of_restored(), self._memory.take(self._places[:count]), state[:count])

    def _places_of_restored(self) -> np.ndarray:
        """The places of the dicts in `_restored`."""
        if self._count != _restored.count:
            self._restored_places, self._count = _restored.places_of(self._ids), _restored.count
        return self._restored_places


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
