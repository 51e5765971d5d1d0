"""Loops in LLVM's instructions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from llvmlite import ir


@contextlib.contextmanager
def counted(builder: ir.IRBuilder, start: ir.Value, stop: ir.Value) -> Iterator[ir.Value]:
    """The body of a loop over integers, where the builder stands; it goes on behind the loop."""
    before = builder.block
    head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(start.type)
    index.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", index, stop), body, end)
    builder.position_at_end(body)
    yield index
    index.add_incoming(builder.add(index, start.type(1)), builder.block)
    builder.branch(head)
    builder.position_at_end(end)
