"""Reversal of a loop of which few carries are kept: the binomial schedule.

A. Griewank and A. Walther, Algorithm 799: revolve (ACM TOMS 26, 2000). With s carries kept and no step
computed more than r times again, a loop of C(s + r, s) steps can be reversed, and none longer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import Any

from ..shapes.joining import cat
from ..structures import Structured, structured
from .checkpointing import checkpoint

Run = Callable[[Any, Any, int], tuple[Any, Any]]
"""(carry, rows, length) -> (last carry, stacked results), of which backward is given the carries only."""


def run_binomially(
    run: Run, carry: Any, rows: Structured, length: int, kept: int, backwards: bool
) -> tuple[Any, Any]:
    """A loop on the tape. Its first part is computed again when the gradient of the rest is done.

    Args:
        kept: how many carries backward may hold at a time.
        backwards: whether the last rows are the first steps.
    """
    if length <= kept:
        return run(carry, rows.restored(rows.tensors), length)
    first = steps_before_split(length, kept)
    split = length - first if backwards else first
    lower, upper = (
        rows.with_tensors([row[part] for row in rows.tensors])
        for part in (slice(0, split), slice(split, None))
    )
    early, late = (upper, lower) if backwards else (lower, upper)

    def first_part(carry: Any, tensors: list[Any]) -> tuple[Any, Any]:
        return run_binomially(run, carry, rows.with_tensors(tensors), first, kept, backwards)

    carry, of_early = checkpoint(first_part)(carry, early.tensors)
    carry, of_late = run_binomially(run, carry, late, length - first, max(kept - 1, 1), backwards)
    return carry, _joined((of_late, of_early) if backwards else (of_early, of_late))


def _joined(parts: Sequence[Any]) -> Any:
    found = [structured(one, "scan", "y") for one in parts]
    return found[0].restored([cat(pair) for pair in zip(*(one.tensors for one in found))])


def steps_before_split(length: int, kept: int) -> int:
    """How many steps come before the next carry that is kept."""
    if kept == 1:
        return length - 1
    repeats = next(number for number in range(1, length) if comb(kept + number, kept) >= length)
    return min(comb(kept + repeats - 1, kept), length - comb(kept + repeats - 2, kept - 1))


def block_sizes(length: int, kept: int) -> tuple[int, ...]:
    """Blocks in blocks that keep about as many carries, for loops whose tapes are laid out beforehand."""
    for levels in range(1, length.bit_length() + 1):
        each = next(size for size in range(1, length + 1) if size**levels >= length)
        if each * levels <= kept or each <= 2:
            break
    return tuple(each**power for power in range(levels - 1, 0, -1))
