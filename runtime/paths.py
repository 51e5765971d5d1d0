"""The paths of a function that asks for values while it is traced (`if x.sum() > 0`, `while`, `float(t)`).

Each path is a Variant: the graph of one way through the function, and the guards under which it is the right
one. Paths with the same first answers share the first forks of a tree. A call runs the path that was taken
last, whose program gives the answers to all its guards as well. Where one differs, the call goes on at that
fork with a path of the other branch; where there is none, the function is traced along it.

A run of a wrong path leaves nothing behind: its results are dropped, its errors too, and what it drew from a
stream of random numbers is put back.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tracer.origin import Origin, user_frame
from ..tracer.trace import Guard, Stream
from .guards import Deviated, is_close
from .signature import Call
from .uncompiled import run_uncompiled
from .variant import STALE, Variant

if TYPE_CHECKING:
    from .compiled import CompiledFunction


@dataclass(eq=False)
class Path:
    """One way through the function."""

    variant: Variant
    calls: int = 0
    forks: list[Fork] = field(default_factory=list)
    """From the root; at each the path's guard of the same position is asked, the last is the end."""

    @property
    def guards(self) -> tuple[Guard, ...]:
        return self.variant.traced.guards.guards


@dataclass(eq=False)
class Fork:
    """What paths with the same answers so far have in common."""

    branches: dict[bytes, tuple[np.ndarray, Fork]] = field(default_factory=dict)
    """By the next answer."""
    path: Path | None = None
    """The path that ends here."""
    likely: Path | None = None
    """Of those that pass here the one with the most guards, which knows most, then the latest."""

    def branch(self, answer: np.ndarray) -> Fork | None:
        """Where an answer leads to; floats need only be close, as other code may round differently."""
        found = self.branches.get(answer.tobytes())
        if found is None and answer.dtype.kind == "f":
            near = (one for one in self.branches.values() if one[0].shape == answer.shape)
            found = next((one for one in near if is_close(answer, one[0])), None)
        return None if found is None else found[1]


class Paths:
    """The paths for one kind of arguments; `run` takes the array leaves of a call, as that of a Variant.

    Args:
        function: whose paths they are: it traces.
        call: one of the calls, for the arguments that are no arrays.
        variant: the first path.
        calls: how often it has run.
    """

    is_settled = True

    def __init__(self, function: CompiledFunction, call: Call, variant: Variant, calls: int) -> None:
        self.function = function
        self.call = call.with_arrays([None] * len(call.arrays))
        self.root = Fork()
        self.paths: list[Path] = []
        self.streams: dict[Stream, None] = {}
        """What the paths draw random numbers from."""
        self.traces = 0
        """How many paths were traced: those that replaced others count as well, so that it must end."""
        self.latest = self._enter(variant, calls)

    def is_valid(self) -> bool:
        """Whether what the function reaches is still as it was traced."""
        return self.latest.variant.is_valid()

    @property
    def size(self) -> int:
        return len(self.paths)

    # --- calls --------------------------------------------------------------------------------------------

    def run(self, leaves: Sequence[Any]) -> Any:
        """The results of a call, by its path; STALE where what the function reaches has changed."""
        path = self.latest
        if self.streams:
            with self.function._lock:
                return self._follow(path, leaves)
        try:
            result = path.variant.run(leaves)
        except Exception as raised:  # Deviated, or what the kernel of a wrong path met
            error = raised
        else:
            if result is not STALE:
                path.calls += 1
            return result
        return self._follow(path, leaves, error)  # not in the handler: an error of the user's has no context

    def _follow(self, path: Path, leaves: Sequence[Any], error: Exception | None = None) -> Any:
        """Run paths from one deviation to the next, `path` first; without a known path trace a new one.

        `error` is what running the first path raised, if it has run.
        """
        known = self.traces
        search = _Search(self, path)
        if error is not None:
            search.go_on(error)
        result: Any = STALE
        while search.path is not None:
            try:
                result = search.path.variant.run(leaves)
                break
            except Exception as raised:
                search.go_on(raised)
        if search.path is None:
            return self._run_anew(leaves, search, known)
        if result is not STALE:
            search.path.calls += 1
            self._remember(search.path)
        return result

    def _run_anew(self, leaves: Sequence[Any], search: _Search, known: int) -> Any:
        """Trace the path that begins with the answers found, and run it; `known` paths have been searched."""
        function = self.function
        with function._lock:
            if self.traces != known:  # another thread was quicker, perhaps with this path
                return self.run(leaves)
            function._later_misses += 1
            if self.traces < function.max_paths:
                variant = function._trace(self.call.with_arrays(leaves), search.answers())
                result = variant.run_traced(leaves)
                if result is not STALE:
                    self.latest = self._enter(variant, calls=1)
                return result
        if search.deviation is not None and not function._warned:
            function._warned = True
            self._warn(search.tried[-1].guards[search.deviation.position].origin)
        given = getattr(leaves, "given", leaves)  # which it may write into
        return run_uncompiled(function.__wrapped__, self.call.with_arrays(given), function.name)

    def _warn(self, origin: Origin) -> None:
        function, frame = self.function, user_frame()
        message = (
            f"{function.name} takes more than max_paths={function.max_paths} paths; values decide at "
            f"{origin.place}  {origin.text}\nCalls with an unknown path run uncompiled from now on. Keep "
            "what decides in the graph (pullback.where, pullback.cond, pullback.while_loop), pass it as a "
            "static argument, or raise max_paths."
        )
        place = ("", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        warnings.warn_explicit(message, UserWarning, *place)

    # --- the tree -----------------------------------------------------------------------------------------

    def _enter(self, variant: Variant, calls: int) -> Path:
        path = Path(variant, calls)
        fork = self.root
        path.forks.append(fork)
        for guard in path.guards:
            key = guard.answer.tobytes()
            if key not in fork.branches:
                fork.branches[key] = (guard.answer, Fork())
            fork = fork.branches[key][1]
            path.forks.append(fork)
        former, fork.path = fork.path, path
        if former is not None:
            self.paths.remove(former)
            path.calls += former.calls
        self.paths.append(path)
        self.traces += 1
        self.streams.update(dict.fromkeys(variant.traced.streams))
        for fork in path.forks:
            if fork.likely is None or fork.likely is former or len(fork.likely.forks) <= len(path.forks):
                fork.likely = path
        return path

    def _remember(self, path: Path) -> None:
        """Begin with this path next time, and choose it of those that know as much."""
        self.latest = path
        depth = len(path.forks)
        for fork in path.forks:
            if len(fork.likely.forks) == depth:  # type: ignore[union-attr]
                fork.likely = path

    # --- inspection ---------------------------------------------------------------------------------------

    def path_of(self, leaves: Sequence[Any]) -> Path:
        """The path that a call takes, traced if need be; nothing is compiled, and nothing stays drawn."""
        with self.function._lock:
            search = _Search(self, self.latest)
            while search.path is not None:
                try:
                    search.path.variant.check_guards(leaves)
                    search.put_back()
                    return search.path
                except Exception as raised:
                    search.go_on(raised)
            variant = self.function._trace_only(self.call.with_arrays(leaves))
            return self._enter(variant, calls=0) if self.traces < self.function.max_paths else Path(variant)


class _Search:
    """A search for the path of one call: which one to try next, after what the last one raised.

    Attributes:
        path: the one to try; None if no known path is left.
        tried: all so far.
        deviation: where the last one deviated, None if it failed.
    """

    def __init__(self, paths: Paths, first: Path) -> None:
        self.paths = paths
        self.path: Path | None = first
        self.tried = [first]
        self.deviation: Deviated | None = None
        self._states = {stream: stream.get_state() for stream in paths.streams}

    def go_on(self, raised: Exception) -> None:
        """Choose the next path."""
        self.put_back()
        last = self.tried[-1]
        if isinstance(raised, Deviated):
            self.deviation = raised
            fork = last.forks[raised.position].branch(raised.answer)
            self.path = None if fork is None else fork.likely
        else:  # of a wrong path, or the call's own: then the path that is traced raises it again
            self.deviation = None
            self.path = next((one for one in reversed(self.paths.paths) if one not in self.tried), None)
        if self.path in self.tried:
            self.path = None
        if self.path is not None:
            self.tried.append(self.path)

    def put_back(self) -> None:
        """Undo what was drawn from streams of random numbers."""
        for stream, state in self._states.items():
            stream.set_state(state)

    def answers(self) -> list[np.ndarray]:
        """What the call is known to answer to the first questions."""
        if self.deviation is None:
            return []
        guards = self.tried[-1].guards[: self.deviation.position]
        return [*(guard.answer for guard in guards), self.deviation.answer]
