"""Loops of few iterations: where a function has many of them, vectors take longer to compile than they save.

LLVM writes a loop several times over: for several vectors, one vector, what remains. A loop that is over
before it fills a vector only pays for that.
"""

from __future__ import annotations

from collections.abc import Iterator

from .layout import Block, ForLoop, Item

MANY_LOOPS = 32
"""In one function: fewer are compiled in no time."""
FEW_ITERATIONS = 512


def brief_loops(body: tuple[Item, ...]) -> frozenset[int]:
    """The positions of such loops among all loops of a function, in the order of the text."""
    totals = list(_iterations(body, 1))
    if len(totals) < MANY_LOOPS:
        return frozenset()
    return frozenset(place for place, total in enumerate(totals) if 0 < total <= FEW_ITERATIONS)


def _iterations(items: tuple[Item, ...], outside: int) -> Iterator[int]:
    """Of each loop how often its body runs in all, if `items` run so often; 0 where that is unknown."""
    for item in items:
        if isinstance(item, ForLoop):
            yield outside * item.count
            yield from _iterations(item.body, outside * item.count)
        elif isinstance(item, Block):  # perhaps a `while`
            yield from _iterations(item.body, 0)
