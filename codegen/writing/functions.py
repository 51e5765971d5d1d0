"""The functions of a program: for each stage of its plan the statements, and what they are given."""

from __future__ import annotations

from collections.abc import Callable

from .. import ir
from ..nests.plan import Plan
from ..nests.stages import Stage
from .brief import brief_loops
from .indices import Arrays
from .names import NamePool
from .write import Writer


def write_functions(plan: Plan, stem: str, width: Callable[[ir.Expr], int]) -> None:
    """Write the function of each stage.

    Args:
        stem: the name that the functions will have, and so no variable.
        width: how long an expression is where people read it: parts of long ones get names.
    """
    for stage in plan.stages:
        _write(stage, plan, stem, width)


def _write(stage: Stage, plan: Plan, stem: str, width: Callable[[ir.Expr], int]) -> None:
    taken = {stem, *(one.name for one in ir.PART), *(one.name for one in plan.buffers.values())}
    rooms = {symbol: plan.buffers[node] for node, symbol in reversed(plan.growing.items())}
    growing = {symbol: rooms[symbol] for symbol in plan.counts}
    needed = plan.buffers[plan.filled[-1]] if plan.counts else None
    arrays = Arrays(plan.buffers, NamePool(taken), growing=growing, needed=needed)
    writer = Writer(plan.tree, arrays, width)
    plan.extent_names = writer.reserved
    body = writer.write(stage.items, stage.shared is not None)
    prologue = tuple(writer.prologue)
    used = ir.buffers((*prologue, *body))
    stage.brief = brief_loops(body)
    stage.arrays = [node for node in (*plan.inputs, *plan.filled) if plan.buffers[node] in used]
    stage.numbers = arrays.numbers
    buffers = [plan.buffers[node] for node in stage.arrays]
    bounds = ir.PART if stage.shared else ()
    stage.function = ir.Function("kernel", (*buffers, *stage.numbers, *bounds), prologue, body)
