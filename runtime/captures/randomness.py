"""Random numbers that are not pullback's: NumPy's, Python's, and what comes from a clock or the system.

Generated code would repeat what was drawn in the trace. So a trace notes where the streams in reach stand,
and where one has moved, it is put back and the function runs uncompiled. What leaves no trace in a stream, a
clock or a generator seeded by the system, is refused where it is called, by a stand-in.
"""

from __future__ import annotations

import os
import random
import secrets
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from ...tracer.errors import EagerOnlyError, TraceError
from ...tracer.origin import at_caller
from ...tracer.trace import is_tracing

RANDOM = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)
"""Classes whose objects are streams of random numbers."""
_global = np.random.mtrand._rand  # what the functions of `np.random` draw from
REMEDY = (
    "Draw them outside and pass them as an argument, or use pullback.rand and its kin, which are compiled"
)


class Streams:
    """Streams of random numbers, NumPy's and Python's own among them, and where they stood.

    Args:
        found: streams with what to call them.
    """

    def __init__(self, found: Iterable[tuple[Any, str]] = ()) -> None:
        labels = {id(one): (one, label) for one, label in found}
        self._streams = [*labels.values(), (_global, "numpy.random"), (random._inst, "random")]
        self._states = [_state(one) for one, _ in self._streams]

    def moved(self) -> str:
        """What to call the first stream that has been drawn from since; empty if there is none."""
        for (one, label), before in zip(self._streams, self._states):
            if not _equal(_state(one), before):
                return label
        return ""

    def put_back(self) -> None:
        """Let the streams stand where they stood."""
        for (one, _), state in zip(self._streams, self._states):
            _set_state(one, state)

    @contextmanager
    def replayed(self) -> Any:
        """Let the streams give again what they gave after they were noted, and go on afterwards as if not."""
        now = Streams(self._streams)
        self.put_back()
        try:
            yield
        finally:
            now.put_back()


def refuse_moved(streams: Streams, function: str) -> None:
    """Put back what a trace has drawn.

    Raises:
        EagerOnlyError: it has drawn. TraceError: it has spawned generators, which can't be put back.
    """
    label = streams.moved()
    if label:
        streams.put_back()
        if streams.moved():
            raise TraceError(
                f"{function} spawns generators of {label} while it is traced, which can't be undone. Spawn "
                "them outside of the compiled function and pass what they give as an argument."
            )
        raise EagerOnlyError(
            f"{function} draws random numbers from {label}, which compiled code would repeat in every call. "
            f"{REMEDY}."
        )


def _state(stream: Any) -> Any:
    if isinstance(stream, np.random.Generator):
        return _state(stream.bit_generator)
    if isinstance(stream, np.random.BitGenerator):
        children = getattr(stream.seed_seq, "n_children_spawned", 0)
        return {"state": stream.state, "children": children}
    if isinstance(stream, np.random.RandomState):
        return stream.get_state(legacy=False)
    try:
        return stream.getstate()
    except NotImplementedError:  # a SystemRandom has none
        return None


def _set_state(stream: Any, state: Any) -> None:
    if isinstance(stream, np.random.Generator):
        stream.bit_generator.state = state["state"]
    elif isinstance(stream, np.random.BitGenerator):
        stream.state = state["state"]
    elif isinstance(stream, np.random.RandomState):
        stream.set_state(state)
    elif state is not None:
        stream.setstate(state)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


# --- what has no state to compare ---------------------------------------------------------------------


def _refuse(name: str) -> NoReturn:
    raise EagerOnlyError(
        f"{name}() gives another value in every call{at_caller()}, and compiled code "
        "would keep that of its trace. Call it outside of the compiled function and pass its result in, or "
        "leave that function uncompiled."
    )


def _refused(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        return _refuse(name) if is_tracing() else real(*arguments, **options)

    call.__name__ = name
    return call


def _refused_stream(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        if is_tracing():
            raise EagerOnlyError(
                f"{name}() draws random numbers from {name.rpartition('.')[0]}{at_caller()}, which compiled "
                f"code would repeat in every call. {REMEDY}."
            )
        return real(*arguments, **options)

    call.__name__ = name
    return call


def _refused_unseeded(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **options: Any) -> Any:
        if is_tracing() and all(one is None for one in (*arguments, *options.values())):
            _refuse(name)
        return real(*arguments, **options)

    call.__name__ = name
    return call


_OF_THE_SYSTEM = {
    time: "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time process_time_ns "
    "thread_time thread_time_ns",
    os: "urandom getrandom",
    secrets: "randbits randbelow choice token_bytes token_hex token_urlsafe SystemRandom",
    uuid: "uuid1 uuid4",
    random: "SystemRandom",
}
_SEEDED = {
    np.random: "default_rng RandomState SeedSequence PCG64 PCG64DXSM MT19937 Philox SFC64",
    random: "Random",
}
MODULES = (np.random, time, os, secrets, uuid, random)


def _functions_of(table: Mapping[Any, str], refused: Callable[..., Any]) -> dict[Any, Callable[..., Any]]:
    return {
        getattr(module, name): refused(f"{module.__name__}.{name}", getattr(module, name))
        for module, names in table.items()
        for name in names.split()
        if hasattr(module, name)
    }


_DRAWING = {
    value: _refused_stream(f"{module.__name__}.{name}", value)
    for module, stream in ((np.random, _global), (random, random._inst))
    for name, value in vars(module).items()
    if getattr(value, "__self__", None) is stream or name in ("seed", "ranf", "sample")
}
UNPREDICTABLE = _DRAWING | _functions_of(_OF_THE_SYSTEM, _refused) | _functions_of(_SEEDED, _refused_unseeded)
"""Functions and classes -> what a trace finds in their place."""
