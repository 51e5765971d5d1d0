"""Scratch that lies in memory which is not in use yet, or any more: of an output that later functions
write, or of larger scratch.

Arrays of one function must not overlap, as the compiler is told; so what lends and what borrows are used by
different ones. What one function can use again, `reuse` finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pullback.tracer.graph import Node
from pullback.tracer.spec import Spec

from .stages import Stage

SMALLEST_LENT = 1 << 15
"""Bytes from which less memory counts more than the time that a view takes."""
ALIGNMENT = 64
"""Bytes: a line of the cache, and the longest vector."""


@dataclass(frozen=True)
class Loan:
    """Where scratch lies: in the memory of `owner`, `offset` bytes from its start."""

    owner: Node
    offset: int


@dataclass(frozen=True)
class _Tenant:
    """Which bytes of an array are in use, from one stage to another."""

    start: int
    stop: int
    first: int
    last: int

    def is_in_use(self, first: int, last: int) -> bool:
        return self.first <= last and first <= self.last


def lent_memory(
    scratch: Sequence[Node], outputs: Sequence[Node], stages: Sequence[Stage], spec_of: Callable[[Node], Spec]
) -> dict[Node, Loan]:
    """For scratch that needs no memory of its own, where it lies; the largest is placed first."""
    tenants: dict[Node, list[_Tenant]] = {}
    last_stage = len(stages)
    for node in outputs:
        first, _ = _stages_using(node, stages)
        tenants[node] = [_Tenant(0, spec_of(node).nbytes, first, last_stage)]
    loans: dict[Node, Loan] = {}
    for node in sorted(scratch, key=lambda one: -spec_of(one).nbytes):
        size = spec_of(node).nbytes
        if size < SMALLEST_LENT:
            break
        first, last = _stages_using(node, stages)
        for owner, inside in tenants.items():
            start = _free_from(inside, size, first, last)
            if start + size <= spec_of(owner).nbytes:
                inside.append(_Tenant(start, start + size, first, last))
                loans[node] = Loan(owner, start)
                break
        else:
            tenants[node] = [_Tenant(0, size, first, last)]
    return loans


def _stages_using(node: Node, stages: Sequence[Stage]) -> tuple[int, int]:
    """The first and the last stage that have an array."""
    places = [place for place, stage in enumerate(stages) if node in stage.arrays]
    return (places[0], places[-1]) if places else (0, len(stages))


def _free_from(inside: Sequence[_Tenant], size: int, first: int, last: int) -> int:
    """The first offset of so many bytes that nobody uses from one stage to another."""
    start = 0
    for tenant in sorted(inside, key=lambda one: one.start):
        if tenant.is_in_use(first, last) and start < tenant.stop and tenant.start < start + size:
            start = -(-tenant.stop // ALIGNMENT) * ALIGNMENT
    return start
