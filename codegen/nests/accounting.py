"""The account of a planned program: what was decided, and by which figures."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from pullback.tracer.graph import Node
from pullback.tracer.ops.control import loop_result

from .. import ir
from ..account import Account, Array, Function, LoopNest, Statement, Step, numbered
from ..cost.machine import EXPENSIVE
from ..host import HostCall
from .expression import Select, parts
from .plan import Plan
from .tree import Call, Host, Item, Loop, RangeCheck, Root, StepCount, Store, roots_in


def account_of(
    title: str, plan: Plan, program: ir.Program, stem: str, notes: tuple[str, ...] = ()
) -> Account:
    """The account of a program, by its plan, whose functions have names with this stem."""
    functions = tuple(_function(name, one) for name, one in zip(program.names(stem), program.kernels))
    known = {name for one in functions for name in one.arrays}
    steps = tuple(_step(item, plan, known) for item in plan.tree.items)
    arrays = tuple(_array(node, plan) for node in plan.filled if _in_array(node, plan, known))
    return Account(title, steps, functions, arrays, notes)


def _function(name: str, kernel: ir.Kernel) -> Function:
    sharing, called = kernel.sharing, frozenset(ir.called_functions(kernel.function.body))
    arrays = tuple(one.name for one in kernel.buffers)
    return Function(name, sharing is not None, sharing.parts_per_thread if sharing else 1, called, arrays)


# --- work -------------------------------------------------------------------------------------------------


def _step(item: Item, plan: Plan, arrays: AbstractSet[str]) -> Step:
    """With the bytes to and from arrays, each array once; what else was planned became variables."""
    roots = list(roots_in([item]))
    made = {root.node for root in roots if root.makes_value}
    read = {load.node for root in roots for load in root.reads} - made
    reads, writes = (
        sum(plan.allocation.spec_of(node).nbytes for node in some if _in_array(node, plan, arrays))
        for some in (read, made)
    )
    is_shared = any(stage.shared and item in stage.items for stage in plan.stages)
    return Step(_work(item, plan, arrays), reads, writes, sum(root.operations for root in roots), is_shared)


def _in_array(node: Node, plan: Plan, arrays: AbstractSet[str]) -> bool:
    return node in plan.buffers and plan.buffers[node].name in arrays


def _work(item: Item, plan: Plan, arrays: AbstractSet[str]) -> LoopNest | Statement:
    if isinstance(item, Root):
        return _statement(item, plan, arrays)
    shared = [id(one) for stage in item.stages if stage.shared for one in stage.items]
    body = tuple(_marked(_work(one, plan, arrays), id(one) in shared) for one in item.items)
    return LoopNest(_kind_of_loop(item), item.extent.value, item.block, body)


def _marked(work: LoopNest | Statement, is_shared: bool) -> LoopNest | Statement:
    return replace(work, is_shared=True) if is_shared and isinstance(work, LoopNest) else work


def _kind_of_loop(loop: Loop) -> str:
    if loop.once:
        return "choice"
    if loop.goes_on:
        return "while"
    if loop.extent.find().is_counted:
        return "counted"
    return "block" if loop.outer else "iterations"


def _statement(root: Root, plan: Plan, arrays: AbstractSet[str]) -> Statement:
    node = root.node
    choices = root.value is not None and any(isinstance(one, Select) for one in parts(root.value))
    place = node.origin.place if node.origin.line else ""
    name = HostCall.of(root.called).public_name if isinstance(root, Host) else node.operator.name
    array = plan.name_of(node) if _in_array(node, plan, arrays) else None
    reason = "held between steps" if array is None and node in plan.buffers else _reason(root, plan)
    return Statement(root.name, name, array, reason, place, choices)


def _reason(root: Root, plan: Plan) -> str:
    """Why a value has a place of its own."""
    node, tree = root.node, plan.tree
    if isinstance(root, RangeCheck | StepCount):
        return ""
    is_stack = node.operator is loop_result and node not in tree.rows
    if node in plan.residuals or (is_stack and not _is_output(node, plan)):
        each = ", a row each step" if root.steps else ""
        return f"taped for backward{each}" if node in plan.residuals else f"a tape{each}"
    if _is_output(node, plan):
        return "an output"
    if not isinstance(root, Store):
        return root.reason
    readers = [one for one in tree.roots if any(load.node is node for load in one.reads)]
    call = next((one for one in readers if isinstance(one, Call)), None)
    if call is not None:
        return f"an operand of {call.node.operator.name}"
    dear = "dear" if root.effort >= EXPENSIVE else "long"
    return (
        f"read in {numbered(len(readers), 'place')}, too {dear} to compute again "
        f"({numbered(root.effort, 'operation')})"
    )


# --- memory -----------------------------------------------------------------------------------------------


def _is_output(node: Node, plan: Plan) -> bool:
    return any(output.node is node for output in plan.outputs)


def _array(node: Node, plan: Plan) -> Array:
    buffer, loan = plan.buffers[node], plan.allocation.loans.get(node)
    shape: tuple[int | str, ...] = (
        ("steps", *buffer.dims[1:]) if node in plan.allocation.growing else buffer.dims
    )
    return Array(
        buffer.name,
        buffer.dtype.name,
        shape,
        buffer.nbytes,
        _is_output(node, plan),
        plan.tree.rows.get(node, 0),
        plan.name_of(loan.owner) if loan else "",
        loan.offset if loan else 0,
        _held_in_turn(node, plan),
    )


def _held_in_turn(node: Node, plan: Plan) -> tuple[str, ...]:
    """The operators of the values that share the array of a node, the first one first."""
    own, *others = (one.operator.name for one in plan.allocation.held_by(node))
    if not others:
        return ()
    return (*others, own) if _is_output(node, plan) else (own, *others)
