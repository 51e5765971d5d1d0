"""A function whose calls are compiled: how it is traced, and the table of what came of it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...codegen.options import Options
from ...tracer.errors import EagerOnlyError
from ...tracer.forks import new_reentrant_lock
from ...tracer.origin import user_frame
from ...tracer.recompilation import refuse_recompilation
from ...tracer.trace import ConstantNeeded
from ..captures.randomness import UnnoticedDraw
from ..tracing.counters import NONE, LoopCounters
from ..tracing.retracing import trace_counting
from ..tracing.signature import ALL, Call, Signature, described
from ..tracing.traced import Traced
from ..tracing.tracing import trace_call
from .prefixes import Prefixes
from .table import Entry, Runs, Table
from .variant import Counters, Variant

MOST_TRACES = 4
"""Of a function that seems to draw random numbers, in a process with several threads."""
MOST_SHOWN = 4
"""Kinds of calls that an error lists."""


class Newest:
    """What was traced latest.

    Args:
        made_of: that of the function which this one's is a transform of.
    """

    __slots__ = ("made_of", "of_transforms", "own")

    def __init__(self, made_of: Newest | None = None) -> None:
        self.made_of = made_of
        self.forget()

    def forget(self) -> None:
        self.own: Any = None
        self.of_transforms: Any = None
        """The same of the functions that transforms have made of this one."""

    def show(self, made: Runs) -> None:
        """Let it be what is shown of this function, and of those that it is made of."""
        self.own, one = made, self.made_of
        while one is not None:
            one.of_transforms, one = made, one.made_of


class TracedFunction:
    """What paths, and programs that functions share, have to know of the function that they belong to.

    Args:
        function: the Python function.
        name: what errors and generated code call it.
        signature: its parameters.
        options: how code is generated.
        max_paths: how many paths are compiled for one kind of arguments.
        compile: makes a compiled function, as which a gradient is differentiated again.
    """

    variants = Variant
    """What gives a trace its programs ..."""
    plans = Prefixes
    """... and what plans those of several paths."""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str,
        signature: Signature,
        options: Options,
        max_paths: int,
        compile: Callable[..., Any],
    ) -> None:
        self.function = function
        self.name = name
        self.signature = signature
        self.options = options
        self.max_paths = max_paths
        self.compile = compile
        self.lock = new_reentrant_lock()
        self.table = Table()
        self.newest = Newest()
        self.written: dict[int, Any] = {}
        """The containers that traces have changed, by identity."""
        self.indexes_arrays = False
        """Whether arrays that the function makes are Tensors in its traces; see `trace_call`."""
        self.unfollowed = ""
        """Why what it asks of tables is not followed in its traces; empty where it is."""
        self.forget_counts()

    def forget_counts(self) -> None:
        self.counters = Counters()
        self.misses = self.later_misses = self.traces = 0
        self.has_warned = False

    # --- traces -------------------------------------------------------------------------------------------

    def trace(
        self,
        call: Call,
        answers: Sequence[np.ndarray] = (),
        rolls_turns: bool = True,
        counters: LoopCounters = NONE,
    ) -> Traced:
        """The graph of a call, whose first questions have these answers; see `trace_counting`.

        Raises:
            ConstantNeeded: structure needs numbers of the call; all of them, where the function fails on what
                stands for them, which one of NumPy's may not take.
        """
        refuse_recompilation(lambda: self._what_is_new(call))
        known = len(self.written)
        try:
            traced = self._traced(call, answers, rolls_turns, counters)
        except EagerOnlyError:
            raise
        except Exception as error:
            if self.signature.has_numbers(call):
                raise ConstantNeeded({ALL}, error) from None
            raise
        self.traces += 1
        self.indexes_arrays |= traced.indexes_arrays
        self.unfollowed = self.unfollowed or traced.unfollowed
        if len(self.written) > known:  # which other traces may have read
            self.table.forget_variants()
        return traced

    def _traced(
        self, call: Call, answers: Sequence[np.ndarray], rolls_turns: bool, counters: LoopCounters
    ) -> Traced:
        """The trace; anew where other threads may be what has drawn random numbers meanwhile."""

        def trace(answers: Sequence[np.ndarray], counters: LoopCounters) -> Traced:
            return trace_call(
                self.function,
                call,
                self.name,
                answers,
                self.written,
                rolls_turns,
                counters,
                self.indexes_arrays,
                self.unfollowed,
            )

        for _ in range(MOST_TRACES - 1):
            try:
                return trace_counting(trace, answers, counters)
            except UnnoticedDraw:
                if threading.active_count() == 1:
                    raise
        return trace_counting(trace, answers, counters)

    def _what_is_new(self, call: Call) -> str:
        """Why a call has to be traced."""
        if call.key in self.table.entries:
            return (
                f"{self.name} was called with {described(call)} before, but what it reaches from outside, or "
                "the way that values have it take, is new"
            )
        known = [str(entry.description) for entry in [*self.table.entries.values()][-MOST_SHOWN:]]
        before = f"known are: {'; '.join(known)}" if known else "it was not compiled for anything yet"
        return f"{self.name} is called with {described(call)}, which is new; {before}"

    def trace_only(self, call: Call, counters: LoopCounters = NONE) -> Traced:
        """The same for a look at it: no random number counts as drawn."""
        traced = self.trace(call, counters=counters)
        traced.put_back()
        for draw in traced.drawn:
            draw.forget()
        return traced

    def variant(self, traced: Traced) -> Variant:
        """Its programs.

        Raises:
            EagerOnlyError: backward would draw again; what the trace has drawn is put back.
        """
        try:
            return self.variants(traced, self.options, self.counters, self.compile)
        except EagerOnlyError:
            traced.put_back()
            raise

    def keep(self, call: Call, made: Runs) -> Entry:
        """Let calls like this one run it from now on."""
        self.newest.show(made)
        return self.table.enter(call, made)

    # --- what only whoever dispatches calls can do --------------------------------------------------------

    def share(self, call: Call, made: Any) -> None:
        """Let other functions that are made of the same code find it."""
        raise NotImplementedError

    def call_with_constants(self, call: Call, needed: ConstantNeeded) -> Any:
        """A call in which some of the numbers are constants from now on: structure needs them."""
        raise NotImplementedError

    # --- warnings -----------------------------------------------------------------------------------------

    def warn(self, message: str) -> None:
        """Warn at the user's line, once for this function."""
        if not self.has_warned:
            self.has_warned = True
            frame = user_frame()
            place = ("", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
            warnings.warn_explicit(message, UserWarning, *place)

    def warn_uncompiled(self, error: EagerOnlyError) -> None:
        """Say why calls run uncompiled."""
        self.warn(f"{self.name} runs uncompiled: {error}")
