"""Numbers that advance by a constant from step to step of a loop, or begin anew after so many steps.

The latter are positions such as `season[t % 12]` in a Python loop over `t`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracer.records import record

SHORTEST_CYCLE = 3
"""Steps. Where two turns repeat, they are one step, in which each has positions of its own."""


@record(frozen=True)
class Progression:
    """The numbers `first + advance * t`; where there is a cycle, `(t + phase) % cycle` stands for t."""

    first: Any
    advance: Any
    cycle: int = 0
    phase: int = 0

    def at(self, step: int) -> Any:
        """The number of a step, which may lie before the first one or behind the last one."""
        return self.first + self.advance * ((step + self.phase) % self.cycle if self.cycle else step)


def progression_of(numbers: Sequence[Any], dtype: Any = np.int64) -> Progression | None:
    """What gives the numbers of all steps, computed in a dtype; None if they are no progression.

    >>> progression_of([10, 11, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0])
    Progression(first=0, advance=1, cycle=12, phase=10)
    """
    if len(numbers) < 2:
        return Progression(numbers[0], 0)
    values = np.array(numbers, dtype)
    steps = np.arange(len(values), dtype=dtype)
    advances = values[1:] - values[:-1]
    if np.array_equal(values[0] + advances[0] * steps, values):
        is_whole = values.dtype.kind == "i"  # then the difference knows the sizes that it is made of
        return Progression(numbers[0], numbers[1] - numbers[0] if is_whole else advances[0].item())
    advance = np.median(advances)  # of most steps, if there is a cycle
    last = int(np.argmax(advances != advance))  # of a cycle
    cycle = (values[last] - values[last + 1]) / advance + 1 if advance else 0
    if cycle < SHORTEST_CYCLE or not float(cycle).is_integer() or last >= cycle:
        return None
    length = int(cycle)
    found = Progression(numbers[last + 1], values.dtype.type(advance).item(), length, length - 1 - last)
    expected = values[last + 1] + advance * ((steps + found.phase) % length)
    return found if np.array_equal(expected, values) else None
