"""The paths of a function that asks for values while it is traced (`if x.sum() > 0`, `while`, `float(t)`).

Each path is a trace: the graph of one way through the function, and the guards under which it is the right
one. What several paths begin with is one program, a prefix (`prefixes.py`). Paths that cannot be taken apart
like that are searched (`siblings.py`). A call with answers that no known path begins with is traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracer.draw_order import drawing_nothing
from ...tracer.errors import EagerOnlyError, GradientError
from ...tracer.forks import before_forks
from ...tracer.origin import UNKNOWN
from ...tracer.records import duplicate
from ...tracer.trace import ConstantNeeded, Guard, Stream
from ..tracing.counters import LoopCounters
from ..tracing.guards import Deviated
from ..tracing.signature import Call
from ..tracing.traced import Traced
from ..values.differentiated import is_differentiated
from ..values.tensor import Tensor
from .prefixes import Prefix
from .siblings import Path, Siblings, UnknownPath
from .table import STALE, Runs
from .traced_function import TracedFunction
from .uncompiled import run_uncompiled
from .variant import Variant, check_guards

FEWEST_WARNED = 3
"""Paths through one loop, of which the last is compiled with a warning."""


class Paths(Runs):
    """The paths for one kind of arguments; `run` takes the array leaves of a call, as that of a Variant.

    Args:
        function: whose paths they are: it traces.
        call: one of the calls, for the arguments that are no arrays.
        variant: the first path.
        calls: how often it has run.
    """

    paths: list[Path]
    start: Prefix | Siblings
    """What a call runs first."""

    def __init__(self, function: TracedFunction, call: Call, variant: Variant, calls: int) -> None:
        self.function = function
        self.call = call.with_arrays([None] * len(call.arrays))
        self.traces = 0
        """How many paths were traced: those that replaced others count as well, so that it must end."""
        self.streams: dict[Stream, None] = {}
        """What the paths draw random numbers from."""
        self.drops_gradients = False
        """Whether some path drops a gradient as PyTorch does, for which a transform is refused."""
        self._prefixes = function.plans(function.variant)
        self.identities_hold = variant.traced.identities_hold
        first = Path(variant.traced, function.variant, calls)
        first.variant = variant
        self._enter(first, [first], self._prefixes.plan([first]))

    def copied(self, function: TracedFunction | None, call: Call, paths: list[Path]) -> Paths:
        """The same for another function object, or for none, by `paths` of its own; `start` is set later."""
        other: Any = duplicate(self)
        other.function, other.paths, other.traces = function, paths, len(paths)
        other.call = None if function is None else call.with_arrays([None] * len(call.arrays))
        other.streams = dict(self.streams)
        other.identities_hold = paths[-1].traced.identities_hold
        other._prefixes = None if function is None else function.plans(function.variant)
        return other

    def is_valid(self) -> bool:
        """Whether what the function reaches is still as it was traced."""
        read = self.paths[-1].traced.reading.read
        return read is None or read() is not None

    @property
    def size(self) -> int:
        return len(self.paths)

    # --- calls --------------------------------------------------------------------------------------------

    def run(self, leaves: Sequence[Any]) -> Any:
        if not self.streams:
            return self._run(leaves)
        with self.function.lock:  # a wrong path puts back what it has drawn
            return self._run(leaves)

    def _run(self, leaves: Sequence[Any]) -> Any:
        known = self.traces
        if self.identities_hold is not None and not self.identities_hold(leaves):
            return STALE
        if self.drops_gradients:
            self._refuse_drop(leaves)
        try:
            return self.start.run(leaves)
        except UnknownPath as raised:
            unknown = raised
        return self._run_anew(leaves, unknown, known)  # not in the handler: an error has no context

    def _run_anew(self, leaves: Sequence[Any], unknown: UnknownPath, known: int) -> Any:
        """Trace the path that begins with the answers found, and run it; `known` paths have been searched."""
        function = self.function
        if unknown.is_endless:
            function.warn(_endless(function.name, unknown.guard))
            return self._run_uncompiled(leaves)
        with before_forks(), function.lock:
            if self.traces != known:  # another thread was quicker, perhaps with this path
                return self.run(leaves)
            function.later_misses += 1
            if self.traces < function.max_paths:
                return self._trace_and_run(leaves, unknown.answers)
        if unknown.guard is not None:
            function.warn(self._too_many(unknown.guard))
        return self._run_uncompiled(leaves)

    def _trace_and_run(
        self, leaves: Sequence[Any], answers: Sequence[np.ndarray], rolls_turns: bool = True
    ) -> Any:
        """Trace the path of a call, run it, and keep it, unless it is known.

        Code may round otherwise, so that a loop takes other turns in it: then the path is that of this call.
        """
        function = self.function
        try:
            traced = function.trace(self.call.with_arrays(leaves), answers, rolls_turns, self._counters)
        except EagerOnlyError as error:
            function.warn_uncompiled(error)
            self.traces += 1
            return self._run_uncompiled(leaves)
        except ConstantNeeded as needed:
            return function.call_with_constants(self.call.with_arrays(leaves), needed)
        path = Path(traced, function.variant)
        same = self._alike(path)
        paths = self.paths if same is not None else self._paths_with(path)
        start = self.start if same is not None else self._prefixes.plan(paths)
        known = function.counters.programs
        try:
            if same is not None and not same.learn(path):
                return self._trace_and_run(leaves, answers, rolls_turns=False)
            result = start.run_traced(leaves, path if same is None else same)
        except Deviated:  # code of a prefix, made anew, gives a float other bits than before
            try:
                result = path.variant.run_traced(leaves)
            except Deviated:
                return self._trace_and_run(leaves, answers, rolls_turns=False)
            path.calls += 1
        if result is not STALE and same is None:
            self._enter(path, paths, start)
            self._stay()
            function.share(self.call, self)
            if function.counters.programs > known:
                self._warn_of_turns(traced)
        return result

    def _warn_of_turns(self, traced: Traced) -> None:
        """Warn where each number of turns of a loop, or depth of a recursion, is a program of its own."""
        counted = traced.counted
        if counted.recursion is not UNKNOWN and len(self.paths) >= FEWEST_WARNED:
            self.function.warn(
                f"{self.function.name} is compiled once more, as a function calls itself to a depth that "
                f"values decide: {counted.recursion.place_and_text}\nWrite it as a loop: of "
                "what it calls itself with, where it does so once; of what is left to do, in an array "
                "(`todo = np.zeros((100, 3))`, `todo[n] = left, right, tolerance; n += 1`), where it does so "
                "more often."
            )
        alike = [one for one in self.paths if one.traced.counted.origin == counted.origin]
        if counted.is_of_some_turns and len(alike) >= FEWEST_WARNED:
            self.function.warn(
                f"{self.function.name} is compiled once more for another number of turns of the loop at "
                f"{counted.origin.place_and_text}\n{counted.differing or 'What Python holds'} "
                "differs from turn to turn, as a list that is written into, a number that is an index of a "
                "list, or a way through a turn that is new. In place of a list, write into an array that is "
                "long enough (`ts = np.zeros(1000)`, then `ts[n] = t; n += 1`), or write the loop as "
                "pullback.while_loop, or fori_loop."
            )

    def _run_uncompiled(self, leaves: Sequence[Any]) -> Any:
        given = getattr(leaves, "given", leaves)  # which it may write into
        return run_uncompiled(self.function.function, self.call.with_arrays(given), self.function.name)

    def _too_many(self, guard: Guard) -> str:
        function = self.function
        remedy = "keep what decides in the graph (pullback.where, pullback.cond, pullback.while_loop)"
        if guard.question in ("float()", "item()"):
            remedy = "compare tensors, not numbers (`t > 1`, not `t.item() > 1`)"
        return (
            f"{function.name} takes more than max_paths={function.max_paths} paths; values decide at "
            f"{guard.origin.place_and_text}\nCalls with an unknown path run uncompiled from now "
            f"on. To avoid it, {remedy}, pass what decides as a static argument, or raise max_paths."
        )

    def _refuse_drop(self, leaves: Sequence[Any]) -> None:
        """Raise what a trace under the transform raises, where the path has been traced for `backward()`."""
        read = self.paths[-1].traced.reading.read
        reached = (read() or ()) if read is not None else ()
        if any(isinstance(one, Tensor) and is_differentiated(one) for one in (*leaves, *reached)):
            dropped = self.path_of(leaves).traced.dropped
            if dropped:
                raise GradientError(dropped)

    # --- the tree -----------------------------------------------------------------------------------------

    def _alike(self, path: Path) -> Path | None:
        """The known path that is the same program, for other numbers of turns."""
        if not path.counts_turns or not self.function.table.holds(self.call, self):
            return None
        return next((one for one in self.paths if one.is_alike(path)), None)

    def _paths_with(self, path: Path) -> list[Path]:
        """All paths, this one in the place of one with the same answers.

        None but this one, if it is the first to change a container that the others may have read, or
        has other counters, so that its questions are others.
        """
        if not self.function.table.holds(self.call, self) or path.traced.counters != self._counters:
            return [path]
        same = [one for one in self.paths if one.key == path.key and one.turns == path.turns]
        if path.counts_turns:  # where it goes on otherwise after other numbers of turns
            same = []
        path.calls += sum(one.calls for one in same)
        return [*(one for one in self.paths if one not in same), path]

    def _enter(self, path: Path, paths: list[Path], start: Prefix | Siblings) -> None:
        self.paths, self.start = paths, start
        self.drops_gradients = any(one.traced.dropped for one in paths)
        self.traces += 1
        self.streams.update(dict.fromkeys(path.traced.streams))

    def _stay(self) -> None:
        """Be found by calls, also after the other paths have gone."""
        if not self.function.table.holds(self.call, self):
            self.function.keep(self.call, self)

    @property
    def _counters(self) -> LoopCounters:
        """What counts the turns of loops, in all paths."""
        return self.paths[-1].traced.counters

    # --- inspection ---------------------------------------------------------------------------------------

    def path_of(self, leaves: Sequence[Any]) -> Path:
        """The path that a call takes, traced if need be; nothing is compiled, and nothing stays drawn."""
        with before_forks(), self.function.lock:
            known = self._known_path_of(leaves)
            if known is not None:
                return known
            function = self.function
            path = Path(function.trace_only(self.call.with_arrays(leaves), self._counters), function.variant)
            if self.traces < self.function.max_paths:
                paths = self._paths_with(path)
                self._enter(path, paths, self._prefixes.plan(paths))
                self._stay()
            return path

    def _known_path_of(self, leaves: Sequence[Any]) -> Path | None:
        answers: list[np.ndarray] = []
        for path in reversed(self.paths):
            if not path.begins_with(answers):
                continue
            try:
                with drawing_nothing(path.traced.streams):
                    check_guards(path.traced, leaves)
                return path
            except Deviated as deviated:
                answers = [*path.answers[: deviated.position], deviated.answer]
            except Exception:  # of a wrong path
                continue
        return None

    def programs(self, path: Path) -> list[Variant]:
        """What runs for a path, in order."""
        return self.start.programs(path) if path in self.paths else [path.variant]


def _endless(name: str, guard: Guard | None) -> str:
    place = "" if guard is None else f" at {guard.origin.place_and_text}"
    return (
        f"{name} runs uncompiled for a call whose loop{place} takes very many turns in compiled code, which "
        "rounds otherwise than NumPy. Give the loop a tolerance that rounding cannot miss, or write it as "
        "pullback.while_loop."
    )
