"""Scratch that lies in memory which is not in use yet, or any more: of an output that later functions
write, or of larger scratch.

Arrays of one function must not overlap, as the compiler is told; so what lends and what borrows are used by
different ones. What one function can use again, `reuse` finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import ir

SMALLEST_LENT = 1 << 15
"""Bytes from which less memory counts more than the time that a view takes."""
ALIGNMENT = 64
"""Bytes: a line of the cache, and the longest vector."""


@dataclass(frozen=True)
class _Tenant:
    """Which bytes of a buffer are in use, from one kernel to another."""

    start: int
    stop: int
    first: int
    last: int

    def is_in_use(self, first: int, last: int) -> bool:
        return self.first <= last and first <= self.last


def lent_memory(program: ir.Program) -> tuple[ir.Loan, ...]:
    """For scratch that needs no memory of its own, where it lies; the largest is placed first."""
    tenants: dict[ir.Buffer, list[_Tenant]] = {}
    fixed = [one for one in program.filled if one not in program.growing]
    for buffer in (one for one in fixed if one.role in ("output", "saved")):
        tenants[buffer] = [_Tenant(0, buffer.nbytes, *program.lifetime(buffer))]
    loans: list[ir.Loan] = []
    for buffer in sorted((one for one in fixed if one.role == "scratch"), key=lambda one: -one.nbytes):
        if buffer.nbytes < SMALLEST_LENT:
            break
        first, last = program.lifetime(buffer)
        for owner, inside in tenants.items():
            start = _free_from(inside, buffer.nbytes, first, last)
            if start + buffer.nbytes <= owner.nbytes:
                inside.append(_Tenant(start, start + buffer.nbytes, first, last))
                loans.append(ir.Loan(buffer, owner, start))
                break
        else:
            tenants[buffer] = [_Tenant(0, buffer.nbytes, first, last)]
    return tuple(loans)


def _free_from(inside: Sequence[_Tenant], size: int, first: int, last: int) -> int:
    """The first offset of so many bytes that nobody uses from one kernel to another."""
    start = 0
    for tenant in sorted(inside, key=lambda one: one.start):
        if tenant.is_in_use(first, last) and start < tenant.stop and tenant.start < start + size:
            start = -(-tenant.stop // ALIGNMENT) * ALIGNMENT
    return start
