"""Save or recompute: which forward values the backward function is given, by a minimum cut.

Of the values that backward needs, those are saved whose bytes are fewest, if what lies between them and the
need is computed again. M. Tao et al. call it the min-cut formulation of rematerialisation; the flow is found
by shortest augmenting paths (J. Edmonds and R. M. Karp, JACM 19, 1972).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence

from pullback.tracer.graph import Node, toposort
from pullback.tracer.loop import LoopNode
from pullback.tracer.ops import creation
from pullback.tracer.ops.control import UNKNOWN_LENGTH, loop_result
from pullback.tracer.ops.indexing import gather
from pullback.tracer.ops.movement import slice_
from pullback.tracer.ops.windows import slice_at

from ...tracer.records import record
from ..cost.machine import EXPENSIVE, this_machine
from ..rewriting.extremes import compared_with_extreme

FOREVER = 1 << 60
"""A capacity of the network that no cut goes through."""


@record(frozen=True)
class Partition:
    """What backward is given, and why."""

    saved: tuple[Node, ...]
    reasons: tuple[tuple[Node, str], ...]
    """Of each saved value that is neither input nor output: bytes, and why it is not computed again."""
    recomputed: tuple[Node, ...]
    """The user's variables that backward computes again."""


def needed_by_backward(gradients: Sequence[Node], cotangents: set[Node]) -> list[Node]:
    """The forward values that the backward part reads: those without a cotangent behind them."""
    nodes = toposort(gradients)
    backward: set[Node] = set(cotangents)
    for node in nodes:
        if any(operand in backward for operand in node.operands):
            backward.add(node)
    needed = {
        operand for node in nodes if node in backward for operand in node.operands if operand not in backward
    }
    needed |= {node for node in gradients if node not in backward}
    return [node for node in nodes if node in needed and not node.is_constant]


def partition(needed: Sequence[Node], free: Iterable[Node], at_hand: Collection[Node] = ()) -> Partition:
    """The values to save so that `needed` can be had.

    Args:
        free: values that are in memory anyway, as inputs and outputs.
        at_hand: values that backward has just read when it needs them.
    """
    free = {*free, *at_hand}
    network = _Network()
    nodes = [node for node in toposort(needed) if not node.is_constant]
    unsized, windows = _unsized(nodes), _windows(nodes)
    for node in nodes:
        bytes_to_keep = 1 if node in at_hand else _bytes_to_keep(node, free, windows.get(node, ()))
        network.add((node, "in"), (node, "out"), FOREVER if node in unsized else bytes_to_keep)
        if node not in unsized and (node in free or not _may_recompute(node)):
            network.add("source", (node, "in"), FOREVER)
        for operand in node.operands:
            if not operand.is_constant:
                network.add((operand, "out"), (node, "in"), FOREVER)
    for node in needed:
        network.add((node, "out"), "sink", FOREVER)
    reached = network.cut("source", "sink")
    saved = tuple(node for node in nodes if (node, "in") in reached and (node, "out") not in reached)
    reasons = tuple((node, _reason(node)) for node in saved if node not in free)
    return Partition(saved, reasons, tuple(_recomputed(needed, set(saved))))


def _unsized(nodes: Sequence[Node]) -> set[Node]:
    """Tapes of loops whose length only data tells, which have no room, and what follows from these loops.

    Backward runs them again, where other rounding may lead to other steps. So what is made of their results
    is computed again as well: what the first steps gave would not fit those on the tape.
    """
    found: set[Node] = set()
    for node in nodes:
        if node.operator is loop_result:
            loop = LoopNode(node.operands[0])
            is_stack = node.attributes["index"] >= loop.carries
            if is_stack and loop.is_dynamic and loop.length == UNKNOWN_LENGTH:
                found.add(loop.node)
    for node in nodes:
        if not found.isdisjoint(node.operands):
            found.add(node)
    return found


def _recomputed(needed: Sequence[Node], saved: set[Node]) -> Iterator[Node]:
    """The named values between what is saved and what is needed."""
    pending, seen = list(needed), set(saved)
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            pending.extend(node.operands)
            if node.name and not node.is_input:
                yield node


def _windows(nodes: Sequence[Node]) -> dict[Node, Sequence[Node]]:
    """What is read of the values of which only parts are read."""
    readers: dict[Node, list[Node]] = {}
    for node in nodes:
        for operand in node.operands:
            readers.setdefault(operand, []).append(node)
    return {
        node: found
        for node, found in readers.items()
        if all(one.operator in (slice_, slice_at) for one in found)
    }


def _bytes_to_keep(node: Node, free: set[Node], windows: Sequence[Node]) -> int:
    """Traffic: a saved value is written once and read once; what is in memory anyway is read, in parts."""
    if node.operator in (creation.full, creation.iota):
        return FOREVER
    if node not in free:
        return 1 + 2 * node.spec.nbytes
    parts = sum(one.spec.nbytes for one in windows)
    return 1 + (min(parts, node.spec.nbytes) if windows else node.spec.nbytes)


def _may_recompute(node: Node) -> bool:
    if compared_with_extreme(node) is not None:
        return False
    if node.operator.family in ("elementwise", "movement"):
        is_dear = node.operator.cost >= EXPENSIVE
        return not (is_dear and this_machine().stays_until_backward(node.spec.nbytes))
    return node.operator in (creation.full, creation.iota, gather)


def _reason(node: Node) -> str:
    why = "backward needs it" if _may_recompute(node) else f"{node.operator.name} costs more than a load"
    if compared_with_extreme(node) is not None:
        why = "computed again, an element might not equal the extreme"
    return f"{node.spec.nbytes} bytes, {why}"


class _Network:
    """A flow network as nested dictionaries of capacities."""

    def __init__(self) -> None:
        self.capacity: dict[object, dict[object, int]] = {}

    def add(self, tail: object, head: object, capacity: int) -> None:
        self.capacity.setdefault(tail, {})
        self.capacity.setdefault(head, {}).setdefault(tail, 0)
        self.capacity[tail][head] = max(self.capacity[tail].get(head, 0), capacity)

    def cut(self, source: object, sink: object) -> set[object]:
        """The side of the source of a minimum cut."""
        if source not in self.capacity or sink not in self.capacity:
            return set()
        while True:
            before = self._reachable(source, sink)
            if sink not in before:
                return set(before)
            path = [sink]
            while path[-1] is not source:
                path.append(before[path[-1]])
            edges = list(zip(path[1:], path[:-1]))
            flow = min(self.capacity[tail][head] for tail, head in edges)
            for tail, head in edges:
                self.capacity[tail][head] -= flow
                self.capacity[head][tail] += flow

    def _reachable(self, source: object, sink: object) -> dict[object, object]:
        """Every node that has a path of free capacity from the source, with the node before it."""
        before: dict[object, object] = {source: source}
        pending = deque([source])
        while pending and sink not in before:
            tail = pending.popleft()
            for head, capacity in self.capacity[tail].items():
                if capacity > 0 and head not in before:
                    before[head] = tail
                    pending.append(head)
        return before
