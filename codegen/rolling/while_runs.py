"""The runs of `while` loops in a trace, by the questions at which their turns begin.

Loops are found from the last to the first: the question at which one ends is where its turns begin. Those in
the turns of another one go first, all runs of one as one loop; so the turns around them are alike whatever
number of turns they took.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any

from pullback.tracer.graph import Node
from pullback.tracer.trace import Guard

from ...tracer.records import record
from .ways import TRUTH


@record(frozen=True)
class RolledTurns:
    """Outputs and guards of a trace, its `while` loops rolled, and what there is to say about them."""

    outputs: tuple[Node, ...]
    guards: tuple[Guard, ...]
    numbers: tuple[int, ...]
    """Of each guard its number in the trace; of that of a loop the number of the first question in it."""
    notes: tuple[str, ...] = ()
    starts: tuple[int, ...] = (0,)
    """Where parts begin of which each knows nothing of the answers in others."""

    def place(self, number: int) -> int:
        """Where a guard is now."""
        return bisect_left(self.numbers, number)

    def guard(self, number: int) -> Guard:
        return self.guards[self.place(number)]

    def state(self, number: int) -> list[Node]:
        """The traced values that Python held at a question."""
        standpoint = self.guard(number).standpoint
        assert standpoint is not None
        return [node for _, node in standpoint.variables]


@record(frozen=True)
class Run:
    """A run of a `while` loop, by the numbers of the questions at which its turns begin."""

    heads: tuple[int, ...]
    """The last is that at which the loop ends."""
    outer: int | None = None
    """Where the loop ends in one of whose turns it runs, if that may be rolled."""
    since: int = -1
    """Where that turn begins."""

    @property
    def end(self) -> int:
        return self.heads[-1]


@record
class Refused:
    """What stays as it was traced."""

    ends: dict[int, str] = field(default_factory=dict)
    """Where loops end that cannot be rolled, and why."""
    alone: set[int] = field(default_factory=set)
    """Where runs end that are not like other runs of their loop."""
    late: set[int] = field(default_factory=set)
    """Where runs end whose first turn is not like the others."""
    attempts: int = 0

    def enter(self, runs: Sequence[Run], guards: Sequence[Guard], reason: str) -> None:
        self.attempts += 1
        if len(runs) > 1:
            self.alone.update(one.end for one in runs)
        elif len(runs[0].heads) > 2 and runs[0].end not in self.late:
            self.late.add(runs[0].end)
        else:
            place = guards[runs[0].end].origin.place
            self.ends[runs[0].end] = f"not rolled: the turns at {place}, because {reason}"

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self.ends.values())


def next_runs(trace: RolledTurns, refused: Refused) -> list[Run]:
    """The runs of a loop that has no others in it; none if there are no more loops.

    Those that took no turn are among them, where a loop around may take as many turns as it likes.
    """
    windows = [
        (range(trace.place(start), trace.place(stop)), start - 1)
        for start, stop in zip(trace.starts, (*trace.starts[1:], sys.maxsize))
    ]
    runs = [run for window, since in windows for run in _runs(trace, window, refused, since=since)]
    if not runs:
        return []
    chosen, outer = runs[0], {one.outer for one in runs}
    first = trace.guard(chosen.heads[0])
    if chosen.end in refused.alone or not is_same_state(first, trace.guard(chosen.end)):
        return [chosen]
    taken = {number for one in runs for number in one.heads}
    idle = [
        Run((number,), around.end, around.heads[bisect_left(around.heads, number) - 1])
        for number, guard in zip(trace.numbers, trace.guards)
        if number not in taken and guard.answer.tobytes() != first.answer.tobytes()
        for around in [one for one in runs if one.heads[0] < number < one.end][:1]
    ]
    found = (one for one in (*runs, *idle) if one.end not in outer and one.end not in refused.alone)
    alike = (one for one in found if _is_same_loop(first, trace.guard(one.heads[0])))
    return sorted(alike, key=lambda one: one.end)


def _leaves_loop(end: Guard) -> bool:
    """Whether the answer to a question ends the loop around it, as the program is written."""
    return end.standpoint is not None and end.standpoint.leaves[bool(end.answer.any())]


def _is_any(end: Guard) -> bool:
    return True


def _runs(
    trace: RolledTurns, window: range, refused: Refused, outer: int | None = None, since: int = -1
) -> Iterator[Run]:
    """The runs of loops among some guards, those in the turns of others before these.

    In front of those that end with an answer, as the program is written, questions with one answer again and
    again are a loop, too.
    """
    found = _loops(trace, window, refused, _leaves_loop, is_inner=outer is not None)
    before = range(window.start, found[0][0]) if found else window
    found[:0] = _loops(trace, before, refused, _is_any, is_inner=outer is not None)
    for heads in found:
        run = Run(tuple(trace.numbers[head] for head in heads), outer, since)
        for head, following in pairwise(heads):
            inside = range(head + 1, following)
            yield from _runs(trace, inside, refused, run.end, trace.numbers[head])
        yield run


def _loops(
    trace: RolledTurns, window: range, refused: Refused, is_end: Callable[[Guard], bool], is_inner: bool
) -> list[list[int]]:
    """Of each loop where the questions are at which turns begin, then that at which it ends."""
    guards = trace.guards
    places: dict[Any, list[int]] = {}
    for position in window:
        standpoint = guards[position].standpoint
        if standpoint is not None:
            places.setdefault(standpoint.place, []).append(position)
    found: list[list[int]] = []
    stop = window.stop
    while stop > window.start:
        stop -= 1
        standpoint, number = guards[stop].standpoint, trace.numbers[stop]
        if standpoint is None:
            continue
        before = places[standpoint.place]
        del before[bisect_left(before, stop) :]
        if number in refused.ends or not is_end(guards[stop]):
            continue
        heads = _heads(guards, before, stop, is_same_state)
        if len(heads) == 1 and not is_inner:
            heads = _heads(guards, before, stop, _has_same_variables)
        if number in refused.late:
            heads = heads[1:]
        if len(heads) > 1:
            found.insert(0, heads)
            stop = heads[0]
    return found


def _heads(
    guards: Sequence[Guard], before: Sequence[int], stop: int, are_alike: Callable[[Guard, Guard], bool]
) -> list[int]:
    """The positions of the questions right before one that are alike but for the answer, and its own."""
    heads = [stop]
    for position in reversed(before):
        is_other = guards[position].answer.tobytes() != guards[stop].answer.tobytes()
        if not is_other or not are_alike(guards[position], guards[stop]):
            break
        heads.insert(0, position)
    return heads


def is_same_state(one: Guard, other: Guard) -> bool:
    """Whether Python held the same, but for values, at two questions of one place, the first of a turn."""
    mine, theirs = one.standpoint, other.standpoint
    assert mine is not None and theirs is not None
    is_same = theirs.held is not None and mine.held == theirs.held and _has_same_variables(one, other)
    return is_same and mine.stays[bool(one.answer)]


def _is_same_loop(one: Guard, other: Guard) -> bool:
    """Whether Python does the same from two questions on, as long as it runs the function of the turns."""
    mine, theirs = one.standpoint, other.standpoint
    if mine is None or theirs is None or mine.held is None or theirs.held is None:
        return False
    is_same = mine.code == theirs.code and mine.held_within == theirs.held_within
    return is_same and _has_same_variables(one, other)


def _has_same_variables(one: Guard, other: Guard) -> bool:
    """Whether the same variables held traced values, which are alike."""
    mine, theirs = one.standpoint, other.standpoint
    assert mine is not None and theirs is not None
    specs = ([(name, node.spec) for name, node in each.variables] for each in (mine, theirs))
    return one.node.spec == other.node.spec == TRUTH and next(specs) == next(specs)
