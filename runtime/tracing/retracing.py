"""A function traced once more, where loops of its trace hold for certain numbers of turns alone.

The second time what counts the turns is a traced value (`counters.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...tracer.trace import ConstantNeeded
from .counters import NONE, LoopCounter, LoopCounters
from .tracing import Traced

MOST_TIMES = 4
"""A function is traced anew with more counters, or with fewer."""


def trace_counting(
    trace: Callable[[Sequence[np.ndarray], LoopCounters], Traced],
    answers: Sequence[np.ndarray],
    counters: LoopCounters,
) -> Traced:
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
        if counters <= traced.counters or not _can_be_dropped(traced):
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


def _can_be_dropped(traced: Traced) -> bool:
    """Whether a trace has left nothing behind."""
    return not (traced.streams or traced.updates or traced.gradient)
