"""Paths that are told apart by running one of them, which gives the answers to its guards as well.

A call runs the path that was taken last. Where an answer differs, the call goes on at that fork with a path
of the other branch. A run of a wrong path leaves nothing behind: its results are dropped, its errors too, and
what it drew from a stream of random numbers is put back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ...tracer.errors import AnomalyError
from ...tracer.forks import kept
from ...tracer.ops.control import Body
from ...tracer.records import duplicate, record
from ...tracer.trace import ENDLESS_TURNS, Guard, Stream, answers_of
from ..tracing.guards import Deviated, is_close
from ..tracing.traced import Traced
from .table import STALE
from .variant import Variant


class Path:
    """One way through a function, and how many calls took it.

    Args:
        traced: the trace of this way.
        make_variant: gives a traced graph its programs; None for a path that belongs to no function.
        calls: how many calls took it so far.
    """

    def __init__(
        self, traced: Traced, make_variant: Callable[[Traced], Variant] | None, calls: int = 0
    ) -> None:
        self.traced = traced
        self.make_variant = make_variant
        self.calls = calls
        self.answers = [guard.answer for guard in traced.guards.guards]
        self.key = tuple(answer.tobytes() for answer in self.answers)
        self.turns = [guard.turns for guard in traced.guards.guards]
        self.lines = [(guard.origin.filename, guard.origin.line) for guard in traced.guards.guards]

    def copied(self, traced: Traced, make_variant: Callable[[Traced], Variant] | None) -> Path:
        """The same of another function object, or of none; `variant` is set later."""
        other: Path = duplicate(self)
        other.traced, other.make_variant, other.calls = traced, make_variant, 0
        other.__dict__.pop("variant", None)
        return other

    @kept
    def variant(self) -> Variant:
        """The whole path as one program."""
        assert self.make_variant is not None
        return self.make_variant(self.traced)

    def is_alike(self, other: Path) -> bool:
        """Whether another path is the same program, but for the numbers of turns that are known."""
        mine, theirs = self.traced, other.traced
        return (
            self.key == other.key
            and self.turns == other.turns
            and mine.is_alike(theirs)
            and Body(mine.graph).structure == Body(theirs.graph).structure
        )

    def learn(self, other: Path) -> bool:
        """Take over the numbers of turns that are known of a path that is alike; whether some are new."""
        is_new = False
        for mine, theirs in zip(self.traced.guards.guards, other.traced.guards.guards):
            if mine.counts is not None and theirs.counts is not None:
                is_new |= bool((theirs.counts & ~mine.counts).any())
                np.logical_or(mine.counts, theirs.counts, out=mine.counts)
        return is_new

    @property
    def counts_turns(self) -> bool:
        """Whether only some numbers of turns are known."""
        return any(guard.counts is not None for guard in self.traced.guards.guards)

    def begins_with(self, answers: Sequence[np.ndarray]) -> bool:
        return self.key[: len(answers)] == tuple(answer.tobytes() for answer in answers)


class UnknownPath(Exception):
    """A call that takes none of the known paths: the answers found so far, and which one was new.

    Attributes:
        answers: to the first questions of the function.
        guard: whose answer was new; None if the call failed before, so that none is known to be.
        is_endless: whether code seemed to go on for ever.
    """

    def __init__(
        self, answers: Sequence[np.ndarray], guard: Guard | None, is_endless: bool = False
    ) -> None:
        super().__init__(len(answers))
        self.answers = list(answers)
        self.guard = guard
        self.is_endless = is_endless


@record(eq=False)
class Sibling:
    """A path, with the program for what is left of it."""

    path: Path
    variant: Variant
    forks: list[Fork] = field(default_factory=list)
    """From the first question on; at each the guard of the same position is asked, the last is the end."""

    @property
    def guards(self) -> tuple[Guard, ...]:
        return self.variant.traced.guards.guards


@record(eq=False)
class Fork:
    """What siblings with the same answers so far have in common."""

    branches: dict[bytes, tuple[np.ndarray, Fork]] = field(default_factory=dict)
    """By the next answer."""
    likely: Sibling | None = None
    """Of those that pass here the one with the most guards, which knows most, then the latest."""

    def branch(self, answer: np.ndarray) -> Fork | None:
        """Where an answer leads to; floats need only be close, as other code may round differently."""
        found = self.branches.get(answer.tobytes())
        if found is None and answer.dtype.kind == "f":
            near = (one for one in self.branches.values() if one[0].shape == answer.shape)
            found = next((one for one in near if is_close(answer, one[0])), None)
        return None if found is None else found[1]


class Siblings:
    """The paths below one place in the tree, and their search.

    Args:
        siblings: in the order in which they were traced.
        streams: what they draw random numbers from.
    """

    def __init__(self, siblings: Iterable[Sibling], streams: Iterable[Stream] = ()) -> None:
        self.members = list(siblings)
        self.streams = tuple(streams)
        self.root = Fork()
        for one in self.members:
            self._enter(one)
        self.latest = self.members[-1]

    @property
    def paths(self) -> list[Path]:
        return [one.path for one in self.members]

    def programs(self, path: Path) -> list[Variant]:
        """What runs for a path, in order."""
        return [self._member(path).variant]

    def run(self, leaves: Sequence[Any]) -> Any:
        """The results of a call, by its path; STALE where what the function reaches has changed.

        Raises:
            UnknownPath: it is none of these.
        """
        latest = self.latest
        if self.streams:
            return self._search(latest, leaves)
        try:
            result = latest.variant.runner(leaves)
        except AnomalyError:  # its guards have held
            raise
        except Exception as raised:  # Deviated, or what the kernel of a wrong path met
            error = raised
        else:
            if result is not STALE:
                latest.path.calls += 1
            return result
        return self._search(latest, leaves, error)  # not in the handler: an error has no context

    def run_traced(self, leaves: Sequence[Any], path: Path) -> Any:
        """The results of the call that was traced: it takes this path, whatever code makes of the guards."""
        one = self._member(path)
        result = one.variant.run_traced(leaves)
        if result is not STALE:
            path.calls += 1
            self._remember(one)
        return result

    def _search(self, first: Sibling, leaves: Sequence[Any], error: Exception | None = None) -> Any:
        """Run siblings from one deviation to the next; `error` is what the first raised, if it has run."""
        search = _Search(self, first)
        if error is not None:
            search.go_on(error)
        result: Any = STALE
        while search.sibling is not None:
            try:
                result = search.sibling.variant.runner(leaves)
                break
            except AnomalyError:
                raise
            except Exception as raised:
                search.go_on(raised)
        if search.sibling is None:
            raise search.unknown()
        if result is not STALE:
            search.sibling.path.calls += 1
            self._remember(search.sibling)
        return result

    # --- the tree of answers ------------------------------------------------------------------------------

    def _member(self, path: Path) -> Sibling:
        return next(one for one in self.members if one.path is path)

    def _enter(self, one: Sibling) -> None:
        fork = self.root
        one.forks.append(fork)
        for guard in one.guards:
            key = guard.answer.tobytes()
            if key not in fork.branches:
                fork.branches[key] = (guard.answer, Fork())
            fork = fork.branches[key][1]
            one.forks.append(fork)
        for fork in one.forks:
            if fork.likely is None or len(fork.likely.forks) <= len(one.forks):
                fork.likely = one

    def _remember(self, one: Sibling) -> None:
        """Begin with this one next time, and choose it of those that know as much."""
        self.latest = one
        depth = len(one.forks)
        for fork in one.forks:
            if len(fork.likely.forks) == depth:  # type: ignore[union-attr]
                fork.likely = one


class _Search:
    """A search for the path of one call: which one to try next, after what the last one raised.

    Attributes:
        sibling: the one to try; None if no known one is left.
    """

    def __init__(self, siblings: Siblings, first: Sibling) -> None:
        self.siblings = siblings
        self.sibling: Sibling | None = first
        self._tried = [first]
        self._deviation: Deviated | None = None
        """Where the last one deviated, None if it failed."""
        self._states = {stream: stream.get_state() for stream in siblings.streams}

    def go_on(self, raised: Exception) -> None:
        """Choose the next one."""
        for stream, state in self._states.items():
            stream.set_state(state)
        last = self._tried[-1]
        if isinstance(raised, Deviated):
            self._deviation = raised
            if last.guards[raised.position].turns is None:
                fork = last.forks[raised.position].branch(raised.answer)
                self.sibling = None if fork is None else fork.likely
            else:  # a turn that its loop does not know, but perhaps another's
                fork = last.forks[raised.position]
                self.sibling = self._untried(one for one in self.siblings.members if fork in one.forks)
        else:  # of a wrong path, or the call's own: then the path that is traced raises it again
            self._deviation = None
            self.sibling = self._untried(self.siblings.members)
        if self.sibling in self._tried:
            self.sibling = None
        if self.sibling is not None:
            self._tried.append(self.sibling)

    def _untried(self, members: Iterable[Sibling]) -> Sibling | None:
        """The latest that has not run."""
        return next((one for one in reversed([*members]) if one not in self._tried), None)

    def unknown(self) -> UnknownPath:
        """What the call is known to answer to the first questions."""
        if self._deviation is None:
            return UnknownPath([], None)
        return unknown_path(self._tried[-1].guards, self._deviation)


def unknown_path(guards: Sequence[Guard], deviated: Deviated) -> UnknownPath:
    """What a call is known to answer that deviates from a path with these guards."""
    position = deviated.position
    guard, answers = guards[position], answers_of(guards[: position + 1])
    if len(answers) > position:
        answers[position] = deviated.answer
    is_endless = guard.turns is not None and bool(deviated.answer == ENDLESS_TURNS)
    return UnknownPath(answers, guard, is_endless)
