"""The functions of a program: for each stage of its plan the statements, and what they are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .. import ir
from ..nests.plan import Plan
from ..nests.tree import LoopTree, Stage
from .indices import Arrays
from .local_carries import with_local_carries
from .local_names import with_plain_names, without_unread
from .store_order import with_stores_behind_loads
from .write import Writer


def write_program(
    plan: Plan,
    width: Callable[[ir.Expr], int],
    writer: Callable[..., Writer] = Writer,
    further: tuple[ir.Buffer, ...] = (),
) -> ir.Program:
    """The program in the loop IR, with a kernel for each stage.

    Args:
        width: how long an expression is where people read it: parts of long ones get names.
        writer: what writes a function, of these arguments: as the class `Writer`.
        further: scratch that it fills besides that of the plan.
    """
    inputs, filled = (tuple(plan.buffers[node] for node in some) for some in (plan.inputs, plan.filled))
    allocation, buffers = plan.allocation, plan.buffers
    growing = {buffers[node]: plan.counts.index(symbol) for node, symbol in allocation.growing.items()}
    loans = tuple(
        ir.Loan(buffers[node], buffers[one.owner], one.offset) for node, one in allocation.loans.items()
    )
    counts = filled[len(filled) - bool(plan.counts) :]
    filled = (*filled[: len(filled) - len(counts)], *further, *counts)
    writing = partial(writer, width=width, sharing=plan.sharing)
    written = (
        _kernel(stage, plan, number, (*inputs, *filled), writing) for number, stage in enumerate(plan.stages)
    )
    kernels = tuple(one for one in written if one.function.body)  # some values lie where they are wanted
    used = {buffer for kernel in kernels for buffer in kernel.buffers}
    filled = tuple(one for one in filled if one.role != "scratch" or one in used)
    return ir.Program(inputs, filled, kernels, loans, growing)


def _kernel(
    stage: Stage,
    plan: Plan,
    number: int,
    buffers: Sequence[ir.Buffer],
    writer: Callable[[LoopTree, Arrays], Writer],
) -> ir.Kernel:
    rooms = {symbol: plan.buffers[node] for node, symbol in reversed(plan.allocation.growing.items())}
    growing = {symbol: rooms[symbol] for symbol in plan.counts}
    needed = plan.buffers[plan.filled[-1]] if plan.counts else None
    arrays = Arrays(
        plan.buffers,
        plan.names.copy(),
        plan.extent_names,
        growing=growing,
        needed=needed,
        host_calls=plan.host_calls,
    )
    written = writer(plan.tree, arrays)
    body = written.write(stage.items, stage.shared is not None)
    prologue = tuple(written.prologue)
    body = with_stores_behind_loads(without_unread(body))
    body = with_plain_names(body, (*prologue, *arrays.numbers), arrays.pool)
    if not stage.shared:
        own = [plan.buffers[node] for node in plan.allocation.only_in(number)]
        body = with_local_carries(body, own, arrays.pool)
    used = ir.buffers((*prologue, *body))
    shares_bodies = any(isinstance(one, ir.Shared) for one in ir.walk(body))
    bounds: tuple[ir.Variable, ...] = ir.PART if stage.shared else (ir.THREADS,) * shares_bodies
    parameters: tuple[ir.Buffer | ir.Variable, ...] = (
        *(one for one in dict.fromkeys(buffers) if one in used),
        *arrays.numbers,
        *bounds,
    )
    function = ir.Function("kernel", parameters, prologue, body)
    return ir.Kernel(function, tuple(arrays.numbers.values()), plan.sharing(stage, used))
