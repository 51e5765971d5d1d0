"""A function traced once more, where loops of its trace hold for certain numbers of turns alone.

The second time what counts the turns is a traced value (`counters.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np

from ...tracer.trace import ConstantNeeded
from ..tensors.growing import MOST_ROWS, MoreRows
from .counters import NONE, Counted, LoopCounter, LoopCounters

MOST_TIMES = 4
"""A function is traced anew with more counters, or with fewer."""


class Counts(Protocol):
    """A trace, or a part of one, which may hold for some numbers of turns alone."""

    @property
    def counters(self) -> LoopCounters: ...

    @property
    def counted(self) -> Counted: ...

    @property
    def has_effects(self) -> bool: ...


OfTurns = TypeVar("OfTurns", bound=Counts)


def trace_counting(
    trace: Callable[[Sequence[np.ndarray], LoopCounters], OfTurns],
    answers: Sequence[np.ndarray],
    counters: LoopCounters,
) -> OfTurns:
    """The trace of a call, with the counters that let loops hold for other numbers of turns.

    Args:
        trace: traces the call, given the answers to its first questions, and its counters.
        counters: those of the trace to whose questions these are the answers.
    """
    refused: LoopCounters = NONE

    def traced_with(answers: Sequence[np.ndarray], counters: LoopCounters) -> OfTurns:
        while True:
            try:
                return trace(answers, counters)
            except MoreRows as found:
                answers, counters = (), _with_more_rows(counters, found)

    try:
        traced = traced_with(answers, counters)
    except ConstantNeeded as needed:
        refused = _exact(needed)
        if not refused:
            raise
        traced = trace((), NONE)
    except Exception:
        if not counters:
            raise
        return trace((), NONE)
    counters = _without(_joined(traced.counters, counters, traced.counted.counters), refused)
    for _ in range(MOST_TIMES):
        if counters <= traced.counters or traced.has_effects:
            break
        try:
            other = traced_with((), counters)
        except ConstantNeeded as needed:
            refused |= _exact(needed)
            if counters == _without(counters, refused):
                break
            counters = _without(counters, refused)
            continue
        except Exception:  # code that takes numbers alone
            break
        if other.counted.repetitions >= traced.counted.repetitions:
            break
        traced = other
        counters = _without(_joined(traced.counters, traced.counted.counters), refused)
    return traced


def _joined(*several: LoopCounters) -> LoopCounters:
    """All counters; of a list the first that is there, which says for how many elements there is room."""
    found: dict[LoopCounter, LoopCounter] = {}
    for counters in several:
        for one in counters:
            found.setdefault(one.list, one)
    return frozenset(found.values())


def _without(counters: LoopCounters, refused: LoopCounters) -> LoopCounters:
    places = {one.list for one in refused}
    return frozenset(one for one in counters if one.list not in places)


def _with_more_rows(counters: LoopCounters, found: MoreRows) -> LoopCounters:
    """The counters with room for more elements of a list; without it where there is not enough."""
    others, rows = counters - {found.counter}, found.counter.grows
    if found.count >= MOST_ROWS:
        return others
    return others | {replace(found.counter, grows=rows.holding(found.count + 1))}


def _exact(needed: ConstantNeeded) -> LoopCounters:
    """The counters whose values are asked for, as indices of lists are."""
    return frozenset(one for one in needed.names if isinstance(one, LoopCounter))
