"""Where streams of random numbers stand, so that they can be compared, and put back.

NumPy and Python give the state of a Mersenne twister number by number, which takes longer than many a
function that may draw from it. Its words lie in memory side by side. Where they lie is found by looking at
streams whose states are known; where they are not found there, and for other streams, the state is asked for.
"""

from __future__ import annotations

import ctypes
import functools
import random
import struct
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

WORDS = 624
"""Those of a Mersenne twister."""
KEY_SIZE = 4 * WORDS
HEAD = object.__basicsize__
"""Bytes that all objects begin with."""


class _Words(NamedTuple):
    """The memory of a Mersenne twister, and the normal variate that it holds ready."""

    memory: bytes
    gauss: Any


def state_of(stream: Any) -> Any:
    """Where a stream stands; None for what has no state."""
    kind = type(stream)
    if kind is np.random.RandomState and (words := _words_of_numpy(stream)) is not None:
        return words
    if kind is random.Random and _is_python_known():
        return _words_of_python(stream)
    if isinstance(stream, np.random.Generator):
        return state_of(stream.bit_generator)
    if isinstance(stream, np.random.BitGenerator):
        children = getattr(stream.seed_seq, "n_children_spawned", 0)
        return {"state": stream.state, "children": children}
    if isinstance(stream, np.random.RandomState):
        return stream.get_state(legacy=False)
    try:
        return stream.getstate()
    except NotImplementedError:  # a SystemRandom has none
        return None


def set_state(stream: Any, state: Any) -> None:
    """Let a stream stand where it stood."""
    if isinstance(state, _Words) and state_of(stream) == state:
        return
    if isinstance(stream, np.random.Generator):
        stream.bit_generator.state = state["state"]
    elif isinstance(stream, np.random.BitGenerator):
        stream.state = state["state"]
    elif isinstance(stream, np.random.RandomState):
        stream.set_state(_as_numpy_gives(state) if isinstance(state, _Words) else state)
    elif state is not None:
        stream.setstate(_as_python_gives(state) if isinstance(state, _Words) else state)


def are_equal(one: Any, other: Any) -> bool:
    """Whether two states of a stream are the same."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(are_equal(one[key], other[key]) for key in one)
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


# --- NumPy's ----------------------------------------------------------------------------------------------


def _words_of_numpy(stream: Any) -> _Words | None:
    twister = stream._bit_generator
    place = _place_of_gauss()
    if place is None or type(twister) is not np.random.MT19937:
        return None
    with twister.lock:
        return _read_numpy(stream, twister, place)


def _read_numpy(stream: Any, twister: Any, place: int) -> _Words:
    memory = ctypes.string_at(twister.ctypes.state_address, KEY_SIZE + 4)
    return _Words(memory, ctypes.string_at(id(stream) + place, 16))


def _as_numpy_gives(words: _Words) -> dict[str, Any]:
    has_gauss, gauss = struct.unpack("=i4xd", words.gauss)
    (position,) = struct.unpack_from("=i", words.memory, KEY_SIZE)
    key = np.frombuffer(words.memory, np.uint32, WORDS).copy()
    state = {"key": key, "pos": position}
    return {"bit_generator": "MT19937", "state": state, "has_gauss": has_gauss, "gauss": gauss}


@functools.cache
def _place_of_gauss() -> int | None:
    """Where in a RandomState lies whether it holds a variate ready, and behind that the variate."""
    if sys.implementation.name != "cpython":
        return None
    stream = np.random.RandomState(1)
    stream.normal(size=3)
    given = stream.get_state(legacy=False)
    memory = ctypes.string_at(id(stream), type(stream).__basicsize__)
    found = memory.find(struct.pack("=i4xd", 1, given["gauss"]))
    if found < 0:
        found = memory.find(struct.pack("=d", given["gauss"])) - 8
    if found < HEAD:
        return None
    twister: Any = stream._bit_generator
    for count in (0, 1, 2, 700):
        stream.normal(size=count)
        read = _as_numpy_gives(_read_numpy(stream, twister, found))
        if not are_equal(read, stream.get_state(legacy=False)):
            return None
    return found


# --- Python's ---------------------------------------------------------------------------------------------


def _words_of_python(stream: Any) -> _Words:
    return _Words(ctypes.string_at(id(stream) + HEAD, KEY_SIZE + 4), stream.gauss_next)


def _as_python_gives(words: _Words) -> tuple[Any, ...]:
    position, *key = struct.unpack(f"={WORDS + 1}I", words.memory)
    return (random.Random.VERSION, (*key, position), words.gauss)


@functools.cache
def _is_python_known() -> bool:
    """Whether the words of Python's streams lie where they are looked for."""
    if sys.implementation.name != "cpython":
        return False
    stream = random.Random(1)
    if random.Random.__mro__[1].__basicsize__ < HEAD + KEY_SIZE + 4:
        return False
    for count in (0, 1, 700):
        for _ in range(count):
            stream.gauss()
        if _as_python_gives(_words_of_python(stream)) != stream.getstate():
            return False
    return True
