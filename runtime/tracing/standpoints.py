"""Where Python stands while it is traced, and all that its next instructions can read.

Where two standpoints of a trace are equal but for the values of tensors, Python goes on from both in the
same way, as far as it gets the same answers. So what a `while` loop does from one of them on holds for any
number of turns (`codegen/rolling/turns.py`). Instructions read variables, iterators and what these hold: a
standpoint says nothing (its `held` is None) where part of that cannot be compared, as an iterator that a
`for` runs through.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import struct
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from types import (
    BuiltinFunctionType,
    CodeType,
    FrameType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any

import numpy as np

from ...tracer.dims import formula_of
from ...tracer.graph import Node
from ...tracer.origin import frames_within, is_own, is_users_file
from ...tracer.trace import Standpoint, Trace
from ..bytecode.interpreter_frames import free_cells, is_called_by_python, unnamed_value
from ..bytecode.liveness import (
    branch_at,
    is_in_loop,
    live_variables,
    loops_around,
    operation_at,
    stays_around,
    unknown_values,
)
from ..captures.contents import content_of_cell
from ..tensors import growing, grown_arrays
from ..values import asked, dtypes
from ..values.modes import is_recording
from ..values.tensor import Device, PartAt, Rearranged, Tensor
from ..values.value_kinds import NumpyScalar
from . import asked_numbers, counters
from .counters import CountedSteps, Counting

MOST_VALUES = 2000
"""That are compared at a standpoint."""
MOST_BYTES = 1 << 12
"""Of an array without traced values that is compared."""
NUMBERS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range)
DESCRIPTORS = (GetSetDescriptorType, MemberDescriptorType, WrapperDescriptorType)
FIXED = (np.ufunc, np.dtype, dtypes.DType, Device, *DESCRIPTORS)
"""What never changes, so that it is enough that it is the same object."""


def _iterators_of(frame: FrameType) -> dict[int, Any]:
    """The generators, and objects of classes with `__next__` in Python, that a function runs through."""
    found = {}
    for place in loops_around(frame.f_code, frame.f_lasti).values():
        value = unnamed_value(frame, place)
        if type(value) is GeneratorType or _next_of(value) is not None:
            found[place] = value
    return found


def _next_of(value: Any) -> CodeType | None:
    """The code that gives the next element of an object of a user's class."""
    found = getattr(type(value), "__next__", None)
    return found.__code__ if type(found) is FunctionType and not is_own(found.__code__) else None


def _suspended(frames: Sequence[FrameType]) -> Iterator[FrameType]:
    """The generators that functions under way run through, or hold in variables, and that wait."""
    seen = {*frames}
    pending = [*frames]
    while pending:
        frame = pending.pop(0)
        for value in (*_iterators_of(frame).values(), *frame.f_locals.values()):
            if type(value) is GeneratorType and value.gi_frame is not None and value.gi_frame not in seen:
                seen.add(value.gi_frame)
                pending.append(value.gi_frame)
                yield value.gi_frame


def _unknown(frame: FrameType, iterators: Mapping[int, Any]) -> int:
    """How many unnamed values of a function are not compared."""
    return unknown_values(frame.f_code, frame.f_lasti, frozenset(iterators))


def _is_alike_in_all_runs(frame: FrameType) -> bool:
    """Whether another run of a function that holds the same does the same: none shares its variables."""
    return not frame.f_code.co_cellvars and free_cells(frame) is not None


def _compared(users: Sequence[FrameType], iterators: Sequence[Mapping[int, Any]]) -> tuple[int, int]:
    """How many functions hold nothing that is not compared, and in which one turns run.

    That is one which leaves alone what it holds besides until it calls the same again.
    """
    compared = 0
    for place, (frame, caller) in enumerate(pairwise(users)):
        is_whole = not _unknown(frame, iterators[place]) and _is_alike_in_all_runs(frame)
        if not is_whole or not _is_called_by(frame, caller, iterators[place + 1]):
            break
        compared += 1
    for anchor in range(compared, 0, -1):
        frame = users[anchor]
        if stays_around(frame.f_code, frame.f_lasti, frozenset(iterators[anchor])):
            return compared, anchor
    return compared, 0


def _is_called_by(frame: FrameType, caller: FrameType, iterators: Mapping[int, Any]) -> bool:
    """Whether nothing holds anything between a function and the one that has called it."""
    if frame.f_back is not caller:
        return False
    operation = operation_at(caller.f_code, caller.f_lasti)
    if operation == "CALL":
        return is_called_by_python(frame)
    over = iterators.get(unknown_values(caller.f_code, caller.f_lasti) - 1)
    if operation != "FOR_ITER" or over is None:
        return False
    return over.gi_frame is frame if type(over) is GeneratorType else _next_of(over) is frame.f_code


class Incomparable(Exception):
    """Something that may change in ways that nothing shows."""


class Standpoints:
    """The standpoints of one trace.

    Args:
        trace: what is under way; it calls `now` where Python asks.
        asks_identity: whether code asks which values are one object, numbers too.
        counting: its counters.
    """

    def __init__(self, trace: Trace, asks_identity: bool, counting: Counting) -> None:
        self.trace = trace
        self.asks_identity = asks_identity
        self.counting = counting
        self._numbers = itertools.count()
        self._runs: dict[FrameType, int] = {}
        """Runs of functions that have asked, or called what has, numbered: held, so that no other run takes
        the place of one."""

    def forget(self) -> None:
        """Let go of all functions that have asked."""
        self.forget_returned()
        self._runs.clear()

    def forget_returned(self) -> None:
        """Let go of the variables of functions that have returned."""
        for frame in [*self._runs]:
            with contextlib.suppress(RuntimeError):  # it is running
                if not frame.f_code.co_flags & inspect.CO_GENERATOR:  # which goes on, perhaps
                    frame.clear()
                del self._runs[frame]
                self.counting.forget(frame)

    def now(self) -> Standpoint | None:
        """Where Python stands.

        None where a function asks that the user's code has called, of which no turn begins; and in the body
        of a loop or a choice, which is one for all its runs, unless its values are those of a row.
        """
        if self.trace.is_in_loop:
            return None
        frames = list(frames_within(self.trace.lost_numbers.root))
        users = [frame for frame in frames if not is_own(frame.f_code)]
        before = frames[: frames.index(users[0])] if users else []
        if not users or {frame.f_code.co_filename for frame in before} - ASKING:
            return None
        suspended = [*_suspended(users)]
        for frame in (*users, *suspended):
            self.counting.enter(frame)
            if not self.asks_identity:
                self.counting.part(frame)
        iterators = [self._iterators(frame) for frame in users]
        compared, anchor = _compared(users, iterators)
        branch = branch_at(users[0].f_code, users[0].f_lasti, frozenset(iterators[0]))
        callers = tuple((frame.f_code, frame.f_lasti) for frame in frames[len(before) + 1 :])
        following = (users[0].f_lasti,) if branch is None else branch.following
        code = users[0].f_code, following, *callers
        described = _Described(self.trace, self.asks_identity, users, self._iterators)
        may_be_others = [place < anchor for place in range(len(users))]
        functions = tuple(map(described.frame, users, iterators, may_be_others))
        under_way = [(self._run(frame), frame) for frame in (*users, *suspended)]
        known = Standpoint(
            code,
            (under_way[anchor][0], code),
            tuple(described.tensors),
            numbers=tuple(one for _, frame in under_way for one in self.counting.numbers(frame)),
            is_in_loop=any(is_in_loop(frame.f_code, frame.f_lasti) for frame in users),
            lists=tuple(one for _, frame in under_way for one in self.counting.lists(frame)),
            values=tuple(one for run, frame in under_way for one in self.counting.values(run, frame)),
            calls_itself=any(frame.f_code is users[0].f_code for frame in users[1:]),
            leaves=(True, True) if branch is None else branch.leaves,
            anchor=anchor,
            compared=compared,
            unknown=tuple(map(_unknown, users, iterators)),
        )
        if branch is None or not described.is_whole:
            return known
        stays = (True, True) if anchor else branch.stays
        return replace(known, held=(self._modes(), functions), stays=stays)

    def _iterators(self, frame: FrameType) -> dict[int, Any]:
        """The iterators of the loops of a function that can be compared, by their places."""
        return {**_iterators_of(frame), **self.counting.held(frame)}

    def _run(self, frame: FrameType) -> int:
        """The number of the run of a function."""
        found = self._runs.get(frame)
        if found is None:
            found = self._runs[frame] = next(self._numbers)
        return found

    def _modes(self) -> Any:
        trace = self.trace
        return is_recording(), len(trace.drawn), len(trace.counts), trace.counts[-1]


ASKING = frozenset(
    one.__file__
    for one in (asked, asked_numbers, counters, growing, grown_arrays, sys.modules[Trace.__module__])
)
"""The files that a question passes through on its way from a truth value."""


class _Described:
    """Values in a form that compares them, with the traced ones apart.

    Attributes:
        tensors: of each traced value its name and its node.
        is_whole: whether there is nothing else that cannot be compared.
    """

    def __init__(
        self,
        trace: Trace,
        asks_identity: bool,
        users: Sequence[FrameType],
        iterators: Callable[[FrameType], dict[int, Any]],
    ) -> None:
        self.trace = trace
        self.asks_identity = asks_identity
        self.users = users
        self.iterators = iterators
        self.tensors: list[tuple[str, Node]] = []
        self._known: dict[int, int] = {}
        """The number of each object that has been seen: what is one object at one standpoint is at others."""
        self._kept: list[Any] = []
        self.is_whole = True

    def frame(self, frame: FrameType, iterators: Mapping[int, Any], is_other: bool) -> Any:
        """All that a function under way can read, iterators of loops among it.

        Args:
            is_other: whether another run of the function may be in its place: then what it shares with
                functions around it must lie in the same cells.
        """
        code = frame.f_code
        live = live_variables(code, frame.f_lasti)
        shared = {*code.co_cellvars, *code.co_freevars}
        variables = tuple(
            (name, self._variable(value, name))
            for name, value in frame.f_locals.items()
            if live is None or name in live or name in shared
        )
        steps = tuple((place, self._iterator(one)) for place, one in iterators.items())
        return variables, steps, tuple(map(_Same, free_cells(frame) or ())) if is_other else ()

    def _iterator(self, value: Any) -> Any:
        if not isinstance(value, CountedSteps):
            return self._variable(value, "over")
        following = self.value(value.following, "step")
        return repr(value.steps), following, self._variable(value.held, "over")

    def _variable(self, value: Any, name: str) -> Any:
        try:
            return self.value(value, name)
        except Incomparable:
            self.is_whole = False
            return None

    def value(self, value: Any, name: str) -> Any:
        """A value, as what is equal for values alike.

        Raises Incomparable.
        """
        kind = type(value)  # not isinstance: a tensor is one of what it stands for
        if kind in NUMBERS or (issubclass(kind, np.generic) and kind is not np.void):
            return kind, repr(value)
        if formula_of(value) is not None:
            return kind, repr(value), formula_of(value)
        if _is_fixed(value):
            return _Same(value)
        if issubclass(kind, NumpyScalar) and not self.asks_identity:  # nobody writes into it
            return kind, self._tensor(value, name)
        if id(value) in self._known:
            return self._known[id(value)]
        if len(self._kept) >= MOST_VALUES:
            raise Incomparable
        self._known[id(value)] = len(self._kept)
        self._kept.append(value)
        return self._class_of(value), self._parts(value, name)

    def _class_of(self, value: Any) -> Any:
        kind = type(value)
        return kind if kind.__module__ == "builtins" or issubclass(kind, Tensor) else self.value(kind, "")

    def _parts(self, value: Any, name: str) -> Any:
        kind = type(value)  # by which no stand-in is what it stands for
        if issubclass(kind, Tensor):
            return self._tensor(value, name)
        if issubclass(kind, type):
            return self._class(value)
        if kind is GeneratorType:
            return self._generator(value)
        if kind is growing.GrowingList:
            count = self.value(value.count, f"{name}_count")
            return value.identity, self.value(value.rows, name), count
        if _has_hidden_state(kind):
            raise Incomparable
        attributes = self.value(getattr(value, "__dict__", None), name)
        return self._content(value, name), attributes, self._held_in_slots(value)

    def _generator(self, value: GeneratorType[Any, Any, Any]) -> Any:
        """One that waits, or that runs."""
        frame, code = value.gi_frame, value.gi_code
        if frame is None:
            return code
        running = [place for place, one in enumerate(self.users) if one is frame]
        if running or value.gi_running:
            return code, running
        iterators = self.iterators(frame)
        if _unknown(frame, iterators) or not _is_alike_in_all_runs(frame):
            raise Incomparable
        return code, frame.f_lasti, self.frame(frame, iterators, is_other=True)

    def _held_in_slots(self, value: Any) -> Any:
        found = []
        for slot in _slots(type(value)):
            try:
                held = slot.__get__(value)
            except AttributeError:  # nothing is in it
                continue
            found.append((slot.__objclass__, slot.__name__, self.value(held, slot.__name__)))
        return tuple(found)

    def _content(self, value: Any, name: str) -> Any:
        """What an object holds besides attributes."""
        kind = type(value)
        if issubclass(kind, NUMBERS):
            return repr(value)
        if issubclass(kind, np.ndarray):
            return self._array(value)
        if issubclass(kind, tuple | list):
            return tuple(self.value(one, f"{name}_{place}") for place, one in enumerate(value))
        if issubclass(kind, dict):
            items = value.items()
            return tuple((self.value(key, name), self.value(one, f"{name}_{key}")) for key, one in items)
        if issubclass(kind, FunctionType):
            cells = tuple(map(content_of_cell, value.__closure__ or ()))
            given = (value.__defaults__, value.__kwdefaults__, cells)
            return value.__code__, id(value.__globals__), self.value(given, name)
        if issubclass(kind, BuiltinFunctionType):
            return value.__name__, self.value(value.__self__, name)
        return tuple(self.value(part, name) for known in HOLDING for part in _held(value, known))

    def _class(self, value: type) -> Any:
        """What a class holds that the traced function has made."""
        own = vars(value).items()
        held = {key: one for key, one in own if not _is_special(key) or issubclass(type(one), FunctionType)}
        return self.value(value.__mro__[1:], value.__name__), self.value(held, value.__name__)

    def _tensor(self, value: Tensor, name: str) -> Any:
        payload, view = value.payload, value._view
        if value._hooks is not None or value._grad is not None:
            raise Incomparable
        shown = None
        if view is not None:
            steps = tuple((step.name, self._place(place, name)) for step, place in view.steps)
            shown = self.value(view.base, f"{name}_base"), steps, view.tracks, view.of_several
        state = value._requires_grad, value._grad_fn is None, value._frozen, shown
        if not isinstance(payload, Node):
            return state, self._array(payload)
        self.tensors.append((name, payload))
        return state, payload.spec, self.trace.known_answers(payload)

    def _place(self, place: Mapping[str, Any] | PartAt | Rearranged, name: str) -> Any:
        return self.value(place.indices, f"{name}_place") if isinstance(place, PartAt) else repr(place)

    def _array(self, value: np.ndarray) -> Any:
        if value.dtype.kind == "O" or value.nbytes > MOST_BYTES:
            raise Incomparable
        return value.dtype, value.shape, value.tobytes(), None if value.base is None else id(value.base)


HOLDING: dict[type, Callable[[Any], Any]] = {
    MethodType: attrgetter("__func__", "__self__"),
    functools.partial: attrgetter("func", "args", "keywords"),
    property: attrgetter("fget", "fset", "fdel"),
    classmethod: attrgetter("__func__"),
    staticmethod: attrgetter("__func__"),
}
"""What objects hold that hold nothing else, but for attributes."""
CONTAINERS = (tuple, list, dict, OrderedDict, np.ndarray)
KNOWN = (*NUMBERS, *HOLDING, *CONTAINERS, object, FunctionType, BuiltinFunctionType)
"""Classes made in C of whose objects all is known."""


def _held(value: Any, kind: type) -> tuple[Any, ...]:
    return (HOLDING[kind](value),) if issubclass(type(value), kind) else ()


def _is_special(name: str) -> bool:
    """Whether a name in a class is one that Python itself enters there."""
    return name == "_abc_impl" or (name.startswith("__") and name.endswith("__"))


def _is_fixed(value: Any) -> bool:
    """Whether a value never changes while a function runs, or the trace finds out that it does."""
    kind = type(value)
    if issubclass(kind, ModuleType):
        path = getattr(value, "__file__", None)
        return value.__name__ in sys.builtin_module_names or (path is not None and not is_users_file(path))
    if issubclass(kind, type):  # what a module has is explored, and what changes it (`captures/closure.py`)
        with contextlib.suppress(AttributeError, KeyError):
            return attrgetter(value.__qualname__)(sys.modules[value.__module__]) is value
    return issubclass(kind, FIXED)


POINTER = struct.calcsize("P")
MANAGED_DICT, MANAGED_WEAKREFS = 1 << 4, 1 << 3
"""Of `type.__flags__`: these do not lie in the object."""


def _has_hidden_state(kind: type) -> bool:
    """Whether objects of a class hold what no attribute shows: in slots, or for C code."""
    base = next(one for one in kind.__mro__ if one in KNOWN)
    places = (
        (kind.__dictoffset__, base.__dictoffset__, MANAGED_DICT),
        (kind.__weakrefoffset__, base.__weakrefoffset__, MANAGED_WEAKREFS),
    )
    added = sum(bool(mine and not known and not kind.__flags__ & flag) for mine, known, flag in places)
    added += len(_slots(kind))
    return kind.__basicsize__ != base.__basicsize__ + POINTER * added


def _slots(kind: type) -> tuple[Any, ...]:
    """The slots of objects of a user's class, each the descriptor that reads it."""
    users = kind.__mro__[: next(place for place, one in enumerate(kind.__mro__) if one in KNOWN)]
    return tuple(one for own in users for one in vars(own).values() if type(one) is MemberDescriptorType)


class _Same:
    """Equal to what stands for the same object."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    __hash__ = None  # type: ignore[assignment]


__all__ = ["Standpoints"]
