"""A function traced once more, where loops of its trace hold for certain numbers of turns alone.

The second time what counts the turns is a traced value (`counters.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from ...tracer.trace import ConstantNeeded
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
    try:
        traced = trace(answers, counters)
    except ConstantNeeded as needed:
        refused = _exact(needed)
        if not refused:
            raise
        traced = trace((), NONE)
    except Exception:
        if not counters:
            raise
        return trace((), NONE)
    counters = (counters | traced.counted.counters) - refused
    for _ in range(MOST_TIMES):
        if counters <= traced.counters or traced.has_effects:
            break
        try:
            other = trace((), counters)
        except ConstantNeeded as needed:
            refused |= _exact(needed)
            if not counters & refused:
                break
            counters -= refused
            continue
        except Exception:  # code that takes numbers alone
            break
        if other.counted.repetitions >= traced.counted.repetitions:
            break
        traced = other
        counters = (counters | traced.counted.counters) - refused
    return traced


def _exact(needed: ConstantNeeded) -> LoopCounters:
    """The counters whose values are asked for, as indices of lists are."""
    return frozenset(one for one in needed.names if isinstance(one, LoopCounter))
