"""Loops of few iterations: where a function has many of them, vectors take longer to compile than they save.

LLVM writes a loop several times over: for several vectors, one vector, what remains. A loop that is over
before it fills a vector only pays for that.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import ir

MANY_LOOPS = 32
"""In one function: fewer are compiled in no time."""
FEW_ITERATIONS = 32
"""Of one run of the loop: four vectors of numbers in double precision."""
FEW_IN_ALL = 512
"""Of all its runs, in a nest: more are worth a longer compilation."""


def brief_loops(body: ir.Body) -> frozenset[int]:
    """The positions of such loops among all loops of a function, in the order of the text."""
    counts = list(_counts(body, 1))
    if len(counts) < MANY_LOOPS:
        return frozenset()
    return frozenset(
        place
        for place, (count, in_all) in enumerate(counts)
        if count <= FEW_ITERATIONS and 0 < in_all <= FEW_IN_ALL
    )


def _counts(body: ir.Body, outside: int) -> Iterator[tuple[int, int]]:
    """Of each loop the iterations of a run, and of all if the body runs so often; 0 where that is unknown."""
    for statement in body:
        count = 0  # of a choice, or of a `while`
        if isinstance(statement, ir.For):
            count = statement.count
            yield count, outside * count
        for inner in ir.bodies(statement):
            yield from _counts(inner, outside * count)
