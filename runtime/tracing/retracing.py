"""A function traced once more, where loops of its trace hold for certain numbers of turns alone.

The second time what counts the turns is a traced value (`counters.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.trace import ConstantNeeded
from .counters import NONE, LoopCounter, LoopCounters
from .signature import Call
from .tracing import Traced, trace_call

MOST_TIMES = 4
"""A function is traced anew with more counters, or with fewer."""


def trace_counting(
    function: Callable[..., Any],
    call: Call,
    name: str,
    answers: Sequence[np.ndarray] = (),
    containers: dict[int, Any] | None = None,
    rolls_turns: bool = True,
    counters: LoopCounters = NONE,
) -> Traced:
    """As `trace_call`, with the counters that let loops hold for other numbers of turns.

    Args:
        counters: those of the trace to whose questions these are the answers.
    """
    given = function, call, name
    options = containers, rolls_turns
    refused: LoopCounters = NONE
    try:
        traced = trace_call(*given, answers, *options, counters)
    except ConstantNeeded as needed:
        refused = _exact(needed)
        if not refused:
            raise
        traced = trace_call(*given, (), *options)
    except Exception:
        if not counters:
            raise
        return trace_call(*given, (), *options)
    counters = (counters | traced.counted.counters) - refused
    for _ in range(MOST_TIMES):
        if counters <= traced.counters or not _can_be_dropped(traced):
            break
        try:
            other = trace_call(*given, (), *options, counters)
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
