"""Python's numbers that differ from turn to turn of a loop, as traced values: counters, and `range`.

A trace of a loop that values end has them as constants, other ones in each turn, so it holds for this number
of turns alone. What differs is noted (`counted`), and the function is traced once more (`retracing.py`), now
with a traced value in the place of each such number, from the loop's first question on. Then turns are alike
(`codegen/rolling/turns.py`), and what Python asks of a counter (`if n > 100`) is a question as others are.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

import numpy as np

from ...tracer.dims import Dim
from ...tracer.graph import Node, constant, make_node
from ...tracer.ops.creation import full
from ...tracer.ops.elementwise import add, identity
from ...tracer.origin import UNKNOWN, Origin, is_own
from ...tracer.records import record
from ...tracer.trace import ConstantNeeded, Guard, Standpoint, Trace
from ..bytecode.liveness import is_in_loop, live_variables, loop_begun_by, loop_over, loops_around
from ..bytecode.write_instructions import instructions_of
from ..tape.apply import apply, of_kind
from ..tensors.growing import GrowingList, Rows, row_of
from ..tensors.grown_arrays import Held
from ..values.tensor import Tensor, make
from ..values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber
from .counted_loops import Elements, elements_of
from .first_turns import (
    Kind,
    can_become,
    is_number,
    is_traced,
    kind_of_plain,
    kind_on_tape,
    may_become,
    writes_in_place,
)
from .held_numbers import Way, numbers_within, replaced

FEWEST_REPEATED = 3
"""Questions that come again, for which a function is traced once more: fewer are those of one other turn."""
OF_SOME_TURNS = 4
"""Questions as which a loop counts that holds for some numbers of turns: more than for one other turn."""
KNOWN_TO_ONE_VARIABLE, KNOWN_TO_ONE_HOLDER = 6 if sys.version_info < (3, 13) else 5, 3
"""References to what a variable holds where it is looked at, as older versions of Python copy variables, and
to what a part of it is."""


@record(frozen=True)
class LoopCounter:
    """What is another number in each turn: a variable, a part of what it holds, the `for` over a `range`."""

    code: CodeType
    place: str | int
    """The variable's name, or the offset of the loop's instruction."""
    way: Way = ()
    """To a part of what the variable holds, as `("steps",)` of `state.steps`."""
    becomes: Kind | None = None
    """What a variable is from some turn on that begins as a number: then it is that from the first one on."""
    grows: Rows | None = None
    """What the elements are of a list that gets more from turn to turn."""

    @property
    def is_from_start(self) -> bool:
        """Whether it is a traced value from the loop's first line on, before anything is asked there."""
        return self.becomes is not None or self.grows is not None

    def is_in(self, other: LoopCounter) -> bool:
        """Whether it is a part of what another one is."""
        is_same = (self.code, self.place) == (other.code, other.place)
        return is_same and self.way[: len(other.way)] == other.way and self.way != other.way

    @property
    def list(self) -> LoopCounter:
        """The same whatever it is that grows."""
        return self if self.grows is None else replace(self, grows=None)


LoopCounters = frozenset[LoopCounter]
NONE: LoopCounters = frozenset()


@record(frozen=True)
class Counted:
    """How a trace depends on numbers of turns: how many questions come again, and what the counters are."""

    repetitions: int = 0
    counters: LoopCounters = NONE
    origin: Origin = UNKNOWN
    """Of the question that comes again most often."""
    differing: str = ""
    """The first variable there that differs from turn to turn in more than values, if that is known."""
    recursion: Origin = UNKNOWN
    """Of the first question that is asked as a function has called itself, if one is."""

    @property
    def is_of_some_turns(self) -> bool:
        """Whether other numbers of turns are other traces."""
        return self.repetitions >= FEWEST_REPEATED


def counted(
    guards: Sequence[Guard],
    rolled: Sequence[Guard],
    numbers: Sequence[int],
    ranges: Iterable[LoopCounter],
    asks_identity: bool,
) -> Counted:
    """The counters of the loops that a trace holds for certain numbers of turns of.

    Args:
        guards: of the trace.
        rolled: those that are left of them with loops rolled.
        numbers: of each of these its place among `guards`, of that of a loop the place of its first.
        ranges: the loops over ranges that the function has begun.
        asks_identity: whether code asks which values are one object.
    """
    repeated: Tally[Any] = Tally()
    for number, end, guard in zip(numbers, (*numbers[1:], len(guards)), rolled):
        standpoint = guards[number].standpoint
        asked = guards[number:end] if guard.counts is not None else guards[number : number + 1]
        if standpoint is not None and any(one.standpoint and one.standpoint.is_in_loop for one in asked):
            repeated[standpoint.code] += 1 if guard.counts is None else OF_SOME_TURNS
    seen: dict[Any, dict[LoopCounter, set[str]]] = {}
    for guard in guards:
        standpoint = guard.standpoint
        if standpoint is not None and repeated[standpoint.code] > 1:
            for counter, value in standpoint.numbers:
                seen.setdefault(standpoint.code, {}).setdefault(counter, set()).add(repr(value))
    known = set(ranges)
    found = frozenset(
        counter
        for values in seen.values()
        for counter, numbers in values.items()
        if (counter in known if isinstance(counter.place, int) else len(numbers) > 1)
    )
    inside = [one.standpoint for one in guards if one.standpoint and one.standpoint.is_in_loop]
    becoming = {} if asks_identity else _becoming(inside)
    found = frozenset(one for one in found if replace(one, becomes=None) not in becoming)
    found |= frozenset(becoming.values())
    growing = NONE if asks_identity else _growing(inside)
    found = growing | frozenset(one for one in found if not any(map(one.is_in, growing)))
    often = max(repeated.values(), default=0)
    asked = [one for one in guards if one.standpoint and repeated[one.standpoint.code] == often]
    origin = asked[0].origin if asked else UNKNOWN
    deep = (one.origin for one in guards if one.standpoint and one.standpoint.calls_itself)
    again = sum(repeated.values()) - len(repeated)
    made = Counted(again, found, origin, _differing(asked), next(deep, UNKNOWN))
    grows = any(one.grows is not None for one in found)
    is_worth_it = made.is_of_some_turns or ((becoming or grows) and made.repetitions)
    return made if is_worth_it else replace(made, counters=NONE)


def _becoming(asked: Sequence[Standpoint]) -> dict[LoopCounter, LoopCounter]:
    """What begins as a number in loops that ask, and is a traced value later: variables, and parts of these.

    Or as a plain array, as an argument, or as a traced value that does not require grad yet. Numbers are of
    double precision, of which it makes no difference whether they are Python's.
    """
    runs: dict[tuple[int, LoopCounter], list[tuple[Node | None, Kind | None]]] = {}
    for standpoint in asked:
        for run, counter, node, kind in standpoint.values:
            runs.setdefault((run, counter), []).append((node, kind))
    found: dict[LoopCounter, LoopCounter] = {}
    for (_, counter), states in runs.items():
        (before, former), (node, kind) = states[0], states[-1]
        if node is None or kind is None or node.is_input:
            continue
        if can_become(counter.code, former, kind, is_given=before is None or before.is_input):
            found[counter] = replace(counter, becomes=kind)
    return found


def _growing(asked: Sequence[Standpoint]) -> LoopCounters:
    """The lists that get more elements from turn to turn, all of them alike."""
    seen: dict[tuple[LoopCounter, int], list[tuple[int, Rows | None]]] = {}
    for one in asked:
        for counter, which, count, row in one.lists:
            seen.setdefault((counter, which), []).append((count, row))
    found: dict[LoopCounter, Rows | None] = {}
    for (counter, _), states in seen.items():
        counts = [count for count, _ in states]
        if any(one < other for one, other in pairwise(counts)):
            last = states[counts.index(max(counts))][1]
            shrinks = any(one > other for one, other in pairwise(counts))
            found[counter] = None if last is None else replace(last.holding(max(counts)), shrinks=shrinks)
    return frozenset(replace(one, grows=rows) for one, rows in found.items() if rows is not None)


def _differing(asked: Sequence[Guard]) -> str:
    """The first variable that the last turns differ in; the first turn may differ from others in more."""
    standpoints = [one.standpoint for one in asked]
    variables = [dict(one.held[1][0][0]) for one in standpoints if one is not None and one.held is not None]
    for before, after in pairwise(reversed(variables)):
        for name, value in after.items():
            if name in before and before[name] != value:
                return name
    return ""


class Counting:
    """The counters of one trace.

    Args:
        counters: those that are traced values.
        outside: of what the function reaches the identities: nothing is written into that.

    Attributes:
        ranges: the loops over ranges that have begun.
    """

    def __init__(self, trace: Trace, counters: LoopCounters, outside: AbstractSet[int]) -> None:
        self.trace = trace
        self._outside = outside
        self._written: list[tuple[Any, Any, Any, Any]] = []
        """Containers and keys, with what was there and what is there now."""
        self.ranges: set[LoopCounter] = set()
        self._running: dict[FrameType, dict[int, CountedSteps]] = {}
        self.elements = Held()
        self._made_numbers: set[LoopCounter] = set()
        """The variables whose arrays without dimensions are numbers: `x += y` does not write into these."""
        self._may_write = False
        """Whether code of the user's has run since the trace began that may write into them."""
        self._began: dict[int, tuple[Tensor, Any]] = {}
        """By identity, what stands for numbers that become something else, and the numbers."""
        self.count(counters)

    def count(self, counters: LoopCounters) -> None:
        """Let these be the counters that are traced values, from here on."""
        self.counters = self.trace.counters = counters
        self._named: dict[CodeType, list[tuple[str, LoopCounter]]] = {}
        for one in sorted(counters, key=lambda one: (str(one.place), repr(one.way))):  # alike in each process
            if isinstance(one.place, str):
                self._named.setdefault(one.code, []).append((one.place, one))

    def forget(self, frame: FrameType) -> None:
        """Let go of a function that has returned."""
        self._running.pop(frame, None)

    def over(self, steps: range, frame: FrameType) -> Any:
        """What a function gets that calls `range`."""
        loop = loop_over(frame.f_code, frame.f_lasti)
        if loop is None:
            return steps
        counter = LoopCounter(frame.f_code, loop)
        self.ranges.add(counter)
        return CountedRange(self, counter, steps) if counter in self.counters else steps

    def over_elements(self, values: Any, loop: int | None, frame: FrameType) -> Any:
        """An iterator for a `for` that counts its steps; None for others.

        Args:
            values: an array, or what another iterator gives, by its places.
            loop: the `for`, if it is not the one that begins at the instruction of the function.
        """
        loop = loop_begun_by(frame.f_code, frame.f_lasti) if loop is None else loop
        elements = values if loop is None or type(values) is Elements else elements_of(values)
        if loop is None or elements is None:
            return None
        counter = LoopCounter(frame.f_code, loop)
        self.ranges.add(counter)
        return CountedElements(self, counter, elements) if counter in self.counters else None

    def traced(self, value: Any, counter: LoopCounter) -> Any:
        """A traced value for a number."""
        if counter.becomes is not None:
            return self._become(value, counter, counter.becomes)
        node = self._captured(value)
        self.trace.numbers[node] = counter
        names = [one for one in ("step", counter.place, *counter.way) if isinstance(one, str)]
        kind = NumpyScalar if isinstance(value, np.generic) else PythonNumber
        return make(make_node(identity, (node,), {}, name=names[-1]), kind)

    def _captured(self, value: Any) -> Node:
        """An input of the graph whose value is known: those of equal numbers are one constant."""
        value = int(value) if type(value) is Dim else value  # each of the two arrays has its own memory
        node = self.trace.capture(np.array(value))
        self.trace.values.give(node, np.array(value))
        return node

    def _growing(self, found: Any, counter: LoopCounter) -> Any:
        """What stands for a list; None where others may know the list, or it has other elements by now."""
        assert counter.grows is not None
        row = counter.grows
        known = KNOWN_TO_ONE_HOLDER if counter.way else KNOWN_TO_ONE_VARIABLE
        if type(found) is not list or sys.getrefcount(found) > known:
            return None
        writes = writes_in_place(counter.code)
        if len(found) > row.capacity or not all(row.takes(one, writes) for one in found):
            return None
        node = self._captured(len(found))
        count = make(make_node(identity, (node,), {}, name=f"{counter.place}_count"), PythonNumber)
        zeros = make_node(full, (), {"shape": (row.capacity, *row.shape), "value": 0, "dtype": row.dtype})
        rows = make(zeros.named(str(counter.place)), NumpyTensor)
        if row.requires_grad:  # as it does in later turns
            rows._requires_grad = True
            rows = apply(identity, rows)
        made = GrowingList(counter, row, len(found), rows, count, self.elements)
        for place, one in enumerate(found):
            made.write(place, one)
        return made

    def returned(self, leaf: Any) -> Any:
        """A result of the function, of the kind that a plain call gives: a number, where a loop without turns
        has left that."""
        while id(leaf) in self.trace.chosen and self.trace.chosen[id(leaf)][0] is leaf:
            is_second, second, first = self.trace.chosen[id(leaf)][1]
            leaf = second if is_second else first
        if type(leaf) is float:
            return make(self.trace.capture(np.array(leaf)), PythonNumber)
        tensor, value = self._began.get(id(leaf), (None, None))
        if tensor is not leaf or value is None:
            return leaf
        if issubclass(type(value), Tensor):
            return value
        kind = NumpyScalar if isinstance(value, np.generic) else PythonNumber
        return make(self.trace.capture(np.array(value)), kind)

    def _become(self, value: Any, counter: LoopCounter, becomes: Kind) -> Any:
        """What a variable holds as what it is in later turns."""
        made = self._made(value, becomes)
        self.elements.note(counter, value)
        self.elements.note(counter, made)
        if becomes.of is NumpyScalar and type(value) is NumpyTensor:
            self._made_numbers.add(counter)
        is_plain = not issubclass(type(value), Tensor) or type(value) is NumpyTensor
        if is_plain and not becomes.spec.shape:
            self._began[id(made)] = made, value
        return made

    def _made(self, value: Any, becomes: Kind) -> Any:
        if not is_traced(value):
            plain = value.payload if issubclass(type(value), Tensor) else value
            value = make(self._captured(np.array(plain, becomes.spec.dtype)), becomes.of)
        same = make(make_node(identity, (value.payload,), {}, name=value.payload.name), becomes.of)
        if becomes.is_leaf:
            return same
        if value._requires_grad or not becomes.requires_grad:
            return apply(identity, of_kind(value, becomes.of))
        same._requires_grad = True  # a leaf of whose gradient nobody asks
        return apply(identity, same)

    def begin(self, frame: FrameType, steps: CountedSteps) -> None:
        assert isinstance(steps.counter.place, int)
        self._running.setdefault(frame, {})[steps.counter.place] = steps

    def enter(self, frame: FrameType) -> None:
        """Let the counters of a function under way be traced values from here on."""
        for name, counter in self._named.get(frame.f_code, ()):
            variables = frame.f_locals
            found = variables.get(name)
            made = self._counted(frame.f_code, found, counter)
            if made is None:
                continue
            new = replaced(found, counter.way, made, lambda *one: self._written.append(one))
            if new is not found:
                _put(frame, name, new)

    def _counted(self, code: CodeType, found: Any, counter: LoopCounter) -> Any:
        """What takes the place of what a variable holds, or of a part of it; None if that stays."""
        if counter.grows is not None:
            return self._growing(self._list_at(found, counter.way) if counter.way else found, counter)
        if counter.becomes is not None:
            value = dict(self._values_of(found)).get(counter.way)
            return self.traced(value, counter) if may_become(code, value, counter.becomes) else None
        value = dict(self._numbers_of(found)).get(counter.way)
        return None if value is None else self.traced(value, counter)

    def part(self, frame: FrameType) -> None:
        """Let each variable of a function that asks in a loop have a value of its own.

        So a turn shows which of them it reads: of numbers nothing else tells.
        """
        if frame.f_lineno not in _lines_of_loops(frame.f_code):
            return
        variables, seen = frame.f_locals, set[Node]()
        for name, value in [*variables.items()]:
            if type(value) not in (NumpyScalar, PythonNumber) or not isinstance(value._value, Node):
                continue
            if value._value in seen and name in _own_names(frame.f_code):
                _put(frame, name, of_kind(apply(identity, value), type(value)))
            seen.add(value._value)

    @contextlib.contextmanager
    def entering(self) -> Iterator[None]:
        """Let variables that become traced values be that where loops begin, before these ask anything.

        Not where something else, as a debugger, follows the lines: then a first turn is one of its own.
        """
        if not any(one.is_from_start for one in self.counters) or sys.gettrace() is not None:
            yield
            return

        def called(frame: FrameType, event: str, arg: Any) -> Any:
            self._may_write = self._may_write or (not is_own(frame.f_code) and writes_in_place(frame.f_code))
            named = self._named.get(frame.f_code, ())
            return at_line if any(one.is_from_start for _, one in named) else None

        def at_line(frame: FrameType, event: str, arg: Any) -> Any:
            if event == "line" and frame.f_lineno in _lines_of_loops(frame.f_code):
                self.enter(frame)
            return at_line

        sys.settrace(called)
        try:
            yield
        finally:
            sys.settrace(None)

    def require_unwritten(self) -> None:
        """Raises ConstantNeeded where code has written into what something else stands for."""
        self.elements.require_unwritten()
        if self._may_write and self._made_numbers:
            raise ConstantNeeded({*self._made_numbers})

    def put_back(self) -> None:
        """Let what holds traced values as they were given hold the numbers again: others may see it, too."""
        for holder, key, value, new in reversed(self._written):
            with contextlib.suppress(LookupError):
                if holder[key] is new:
                    holder[key] = value
        self._written.clear()

    def held(self, frame: FrameType) -> dict[int, CountedSteps]:
        """What the interpreter holds without a name that is known: by its place, loops over ranges."""
        running = self._running.get(frame, {})
        around = loops_around(frame.f_code, frame.f_lasti)
        return {place: running[loop] for loop, place in around.items() if loop in running}

    def numbers(self, frame: FrameType) -> Iterator[tuple[LoopCounter, Any]]:
        """What may be counters of a function under way, and their values."""
        code = frame.f_code
        for name, value in frame.f_locals.items():
            if name in _own_names(code):
                yield from ((LoopCounter(code, name, way), one) for way, one in self._numbers_of(value))
        for loop in loops_around(code, frame.f_lasti):
            yield LoopCounter(code, loop), None

    def lists(self, frame: FrameType) -> Iterator[tuple[LoopCounter, int, int, Rows | None]]:
        """The lists that variables of a function under way hold, or what these hold does.

        Of each its identity, how long it is, and what its last element is.
        """
        code = frame.f_code
        for name, value in frame.f_locals.items():
            if name in _own_names(code):
                for way, one in self._lists_of(value):
                    row = row_of(one[-1]) if one else None
                    yield LoopCounter(code, name, way), id(one), len(one), row

    def _list_at(self, value: Any, way: Way) -> list[Any] | None:
        return next((one for place, one in self._lists_of(value) if place == way), None)

    def _lists_of(self, value: Any) -> Iterator[tuple[Way, list[Any]]]:
        if type(value) is list:
            return iter([((), value)] if id(value) not in self._outside else [])
        return numbers_within(value, lambda one: type(one) is list, lambda one: id(one) in self._outside)

    def values(
        self, run: int, frame: FrameType
    ) -> Iterator[tuple[int, LoopCounter, Node | None, Kind | None]]:
        """The numbers, plain arrays and traced values that the next instructions of a function can read.

        Of each the run of the function, the node of a traced value, and the kind, which is None for a number.
        """
        code = frame.f_code
        live = live_variables(code, frame.f_lasti)
        for name, value in frame.f_locals.items():
            if name not in _own_names(code) or not (live is None or name in live or name in code.co_cellvars):
                continue
            for way, one in self._values_of(value):
                node = one.payload if is_traced(one) else None
                kind = kind_of_plain(one) if node is None else kind_on_tape(one)
                yield run, LoopCounter(code, name, way), node, kind

    def _values_of(self, value: Any) -> Iterator[tuple[Way, Any]]:
        """The numbers, plain arrays and traced values of what a variable holds, with the ways to them."""
        if _may_be_traced(value):
            return iter([((), value)])
        return numbers_within(value, _may_be_traced, lambda one: id(one) in self._outside)

    def _numbers_of(self, value: Any) -> Iterator[tuple[Way, Any]]:
        """The numbers of what a variable holds, with the ways to them."""
        if is_number(value):
            return iter([((), value)])
        return numbers_within(value, is_number, lambda one: id(one) in self._outside)


def _may_be_traced(value: Any) -> bool:
    return is_number(value) or is_traced(value) or kind_of_plain(value) is not None


def _put(frame: FrameType, name: str, value: Any) -> None:
    """Let a variable of a function under way hold another value."""
    frame.f_locals[name] = value
    if sys.version_info < (3, 13):  # later ones write through
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


@lru_cache(maxsize=4096)
def _lines_of_loops(code: CodeType) -> frozenset[int]:
    """The lines of a function that are in a loop, or stand for one: its condition is written twice."""
    inside = (one for one in instructions_of(code) if is_in_loop(code, one.offset))
    return frozenset(one.positions.lineno for one in inside if one.positions and one.positions.lineno)


@lru_cache(maxsize=4096)
def _own_names(code: CodeType) -> frozenset[str]:
    """The variables of a function that each run of it has its own of."""
    return frozenset((*code.co_varnames, *code.co_cellvars))


class CountedRange:
    """A `range` in a loop whose steps are traced values."""

    def __init__(self, counting: Counting, counter: LoopCounter, steps: range) -> None:
        self._counting = counting
        self._counter = counter
        self._steps = steps

    def __iter__(self) -> CountedSteps:
        return CountedSteps(self._counting, self._counter, self._steps)


class CountedSteps:
    """Its iterator.

    Attributes:
        following: the next number, a traced value.
        held: what else it is made of, which may change.
    """

    held: tuple[Any, ...] = ()

    def __init__(self, counting: Counting, counter: LoopCounter, steps: Any) -> None:
        self.counter = counter
        self.steps = steps
        self.following = counting.traced(steps.start, counter)
        self._counting = counting

    def __iter__(self) -> CountedSteps:
        return self

    def __next__(self) -> Any:
        self._counting.begin(sys._getframe(1), self)
        present, stop, step = self.following, self.steps.stop, self.steps.step
        if stop is None or (present < stop if step > 0 else present > stop):
            self.following = make(add(present._value, constant(step, present._value.spec)), PythonNumber)
            return self.at(present)
        raise StopIteration

    @staticmethod
    def at(place: Any) -> Any:
        """What the iterator gives for a number."""
        return place


class CountedElements(CountedSteps):
    """The iterator over what has places, in a loop whose steps are traced values."""

    def __init__(self, counting: Counting, counter: LoopCounter, elements: Elements) -> None:
        super().__init__(counting, counter, slice(0, elements.length, 1))
        self.held = elements.held
        self.at = elements.at  # type: ignore[method-assign, assignment]
