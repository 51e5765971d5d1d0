"""What the code generator decided, and by which figures, as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pullback.tracer.graph import Node
from pullback.tracer.ops.control import loop_result

from ..nests.cost import EXPENSIVE, arithmetic
from ..nests.expression import Select, parts
from ..nests.tree import Item, Loop, Root
from ..whole_calls import operations_of_call

if TYPE_CHECKING:
    from ..nests.plan import Plan

VERBS = {
    "call": "{name} into", "view": "reshaped view", "store": "store", "reduce": "{name} into",
    "search": "{name} into", "scan": "{name} into", "scatter": "scatter-add into",
    "update": "write at indices into", "overwrite": "write a part of",
    "check": "compare positions with the extent of", "trips": "count of steps",
}  # fmt: skip


def explain_plan(title: str, plan: Plan) -> str:
    """The loops with what they move and compute, each value that is stored and why, and the memory."""
    lines = [title]
    for item in plan.tree.items:
        lines.append(f"  {_cost_line(item, plan)}")
        lines.extend(_item_lines(item, plan, 2))
    return "\n".join([*lines, *_memory_lines(plan)])


def _cost_line(item: Item, plan: Plan) -> str:
    """Bytes to and from arrays, each array once, and operations: what the item must cost at least."""
    roots = list(_roots_in(item))
    made = {root.node for root in roots if root.kind not in ("view", "check")}
    read = {load.node for root in roots for load in root.reads} - made
    reads, writes = (
        sum(plan.storage_spec(node).nbytes for node in some if node in plan.buffers) for some in (read, made)
    )
    operations = sum(map(_operations, roots))
    threads = (
        ", shared between threads"
        if any(stage.shared and item in stage.items for stage in plan.stages)
        else ""
    )
    return f"reads {_bytes(reads)}, writes {_bytes(writes)}, {_count(operations)} operations{threads}"


def _roots_in(item: Item) -> Iterator[Root]:
    if isinstance(item, Root):
        yield item
    else:
        for one in item.items:
            yield from _roots_in(one)


def _operations(root: Root) -> int:
    """Multiplications and additions, an elementary function as its cost; those of a choice on both sides."""
    if root.kind == "call":
        if root.product is None:
            return operations_of_call(root.node)
        return 2 * math.prod(root.product.indices.extents.values())
    points = math.prod(axis.extent.value for axis in root.axes)
    own = arithmetic(root.value, set()) if root.value is not None else 0
    return points * (own + (root.kind in ("reduce", "scatter", "scan")))


def _item_lines(item: Item, plan: Plan, depth: int) -> list[str]:
    indent = "  " * depth
    if isinstance(item, Loop):
        inner = [line for one in item.items for line in _item_lines(one, plan, depth + 1)]
        if item.once:
            return [f"{indent}if that is 1", *inner]
        if item.goes_on:
            return [f"{indent}loop while its condition is true", *inner]
        counted = item.extent.find().is_counted
        over = "the iterations of the block" if item.outer else str(item.extent.value)
        over = "the steps counted" if counted else over
        blocks = f", in blocks of {item.block}" if item.block else ""
        return [f"{indent}loop over {over}{blocks}", *inner]
    return [f"{indent}{_root_line(item, plan)}"]


def _root_line(root: Root, plan: Plan) -> str:
    node = root.node
    origin = f"  # {node.origin.place}" if node.origin.line else ""
    verb = VERBS[root.kind].format(name=node.operator.name)
    if root.kind == "trips":
        return f"{verb} of the next loop, which data decides{origin}"
    if root.kind == "check":
        return f"{verb} what they index{origin}"
    name = plan.name_of(node)
    kept = f"array {name} ({_spec_text(node, plan)})" if name else "a local variable"
    border = (
        "; border apart" if root.value and any(isinstance(one, Select) for one in parts(root.value)) else ""
    )
    return f"{verb} {kept}: {_reason(root, plan)}{border}{origin}"


def _spec_text(node: Node, plan: Plan) -> str:
    """Shape and dtype; what data decides is `steps`."""
    spec = plan.storage_spec(node)
    if node not in plan.growing:
        return str(spec)
    return f"{spec.dtype}[{', '.join(['steps', *map(str, spec.shape[1:])])}]"


def _reason(root: Root, plan: Plan) -> str:
    """Why a value has a place of its own."""
    node, tree = root.node, plan.tree
    is_stack = node.operator is loop_result and node not in tree.rows
    if node in plan.residuals or (is_stack and not any(output.node is node for output in plan.outputs)):
        each = ", a row each step" if root.steps else ""
        return f"taped for backward{each}" if node in plan.residuals else f"a tape{each}"
    if any(output.node is node for output in plan.outputs):
        return "an output"
    if root.kind != "store":
        return {"view": "the same memory", "call": "a product of matrices"}.get(
            root.kind if root.kind != "call" or root.product else "", "complete after its loop"
        )
    readers = [one for one in tree.roots if any(load.node is node for load in one.reads)]
    call = next((one for one in readers if one.kind == "call"), None)
    if call is not None:
        return f"an operand of {call.node.operator.name}"
    effort = arithmetic(root.value, set()) if root.value is not None else 0
    dear = "dear" if effort >= EXPENSIVE else "long"
    places, operations = _number(len(readers), "place"), _number(effort, "operation")
    return f"read in {places}, too {dear} to compute again ({operations})"


def _memory_lines(plan: Plan) -> Iterable[str]:
    scratch = [node for node in plan.filled if not any(output.node is node for output in plan.outputs)]
    own = [node for node in scratch if node not in plan.loans]
    if scratch:
        total = sum(plan.storage_spec(node).nbytes for node in own)
        yield f"  scratch: {_bytes(total)} in {_number(len(own), 'array')}"
    for node, loan in plan.loans.items():
        array = f"{plan.name_of(node)} ({_spec_text(node, plan)})"
        yield f"    {array} lies in {plan.name_of(loan.owner)} while that is not in use"
    for node, owner in plan.shared.items():
        ends_here = any(output.node is owner for output in plan.outputs)
        first, then = (node, owner) if ends_here else (owner, node)
        values = f"{first.operator.name}, then of {then.operator.name}"
        yield f"    {plan.name_of(owner)} ({node.spec}) holds the results of {values}"


def _bytes(number: float) -> str:
    return _scaled(number, (" B", " kB", " MB", " GB"))


def _count(number: float) -> str:
    return _scaled(number, ("", " thousand", " million", " billion"))


def _scaled(number: float, units: Sequence[str]) -> str:
    """A number to three digits, in the first unit that keeps it short; each is a thousand times the last."""
    *smaller, largest = units
    for unit in smaller:
        if number < 1000:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g}{largest}"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
