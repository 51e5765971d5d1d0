"""The plan of a program: its arrays and their names, and the stages in which its loops run.

Most programs have one stage, one generated function; see `stages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from pullback.tracer.dims import EXTENTS, Source
from pullback.tracer.graph import Graph, Node, make_input
from pullback.tracer.loop import LoopNode, is_loop
from pullback.tracer.operator import Monoid
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.windows import update_at
from pullback.tracer.spec import INT64, Spec

from ...tracer.records import record
from .. import ir
from ..cost.machine import this_machine
from ..host import HostCall
from ..ir.names import NEEDED, NamePool
from ..rewriting.unroll import SMALL
from .allocation import Allocation
from .expression import AnyIndex, is_number
from .extents import ONE, Symbol
from .fuse import fuse
from .stages import is_private, split_into_stages
from .tree import Call, Host, Loop, LoopTree, MatrixProduct, RangeCheck, Stage

PARTS_PER_THREAD = 4
"""Where parts cost nothing: a thread that is held up leaves some to the others."""


@record(frozen=True)
class Output:
    """How an output of the graph is had: from an array that is filled, an input, or a constant."""

    node: Node
    shape: tuple[int, ...]
    position: int = -1
    """Among the arrays that are filled; -1 for an input or a constant."""


class Plan:
    """Everything about a program that is decided before its statements are written."""

    def __init__(self, graph: Graph, stem: str, residuals: frozenset[Node], parallel: bool | None) -> None:
        self.graph = graph
        self.residuals = residuals
        bases = [_base(node) for node in graph.outputs]
        stored = list(dict.fromkeys(node for node in bases if not node.is_input and not node.is_constant))
        self.tree: LoopTree = fuse(graph, stored)
        self.outputs = [
            Output(base, node.shape, stored.index(base) if base in stored else -1)
            for node, base in zip(graph.outputs, bases)
        ]
        self.stages = split_into_stages(self.tree, parallel)
        self.tree.items = [item for stage in self.stages for item in stage.items]
        self._places = _places(self.tree)
        used = {load.node for root in self.tree.roots for load in root.reads if load.node.is_input}
        self.used_inputs = [position for position, node in enumerate(graph.inputs) if node in used]
        self.inputs = [graph.inputs[position] for position in self.used_inputs]
        self.allocation = Allocation(self.tree, self.stages, stored)
        self.filled = list(self.allocation.arrays)
        self.counts = list(dict.fromkeys(self.allocation.growing.values()))
        """The numbers of steps that data decides; in the last array functions say how many there are."""
        if self.counts:
            self.filled.append(make_input(Spec((len(self.counts),), INT64), NEEDED))
        bounds = {one.name for one in ir.PART}
        if shares_steps := any(one.stages for root in self.tree.roots for one in root.steps):
            bounds.add(ir.THREADS.name)
        is_shared = shares_steps or any(stage.shared for stage in self.stages)
        given = [node.name for node in self.inputs]
        self._named_after = names_after_others(graph)
        self.buffers = self._buffers(NamePool({stem} | bounds if is_shared else {stem}, given), len(stored))
        self.names = NamePool({stem, *bounds, *(one.name for one in self.buffers.values())}, given)
        """From which functions take the names of their variables, each from a copy."""
        self.extent_names = self._extent_names()
        called = dict.fromkeys(HostCall.of(one.called) for one in self.tree.roots if isinstance(one, Host))
        self.host_calls = {one: self.names.take(one.public_name) for one in called}
        """Functions that Python runs, with their names."""

    def _extent_names(self) -> dict[Symbol, str]:
        """What sizes are called: as in all functions of the trace, else what comes next."""
        extents, found = self.tree.extents, dict[Symbol, str]()
        for formula, symbol in extents.named.items():
            if isinstance(formula, Source) and formula.letter and symbol.find() not in found:
                found[symbol.find()] = self.names.take(formula.letter)
        for symbol in (one for node in self.graph.inputs for one in extents[node] if one is not ONE):
            if symbol not in found:
                found[symbol] = self.names.take_first(EXTENTS)
        return found

    def _extents(self, node: Node) -> tuple[int, ...]:
        """Of dimensions in which only constant positions are used the extents: they were unrolled."""
        dims = self._dims(node)
        unrolled = [
            dim > 0 and (self._is_unrolled(node, dim) or self.tree.extents[node][dim] in self.tree.small)
            for dim in dims
        ]
        extents = tuple(node.shape[dim] if known else 0 for dim, known in zip(dims, unrolled))
        return extents if any(extents) else ()

    @property
    def written_out(self) -> set[Symbol]:
        """The dimensions whose extent functions have as a number: in their loops, or written out without."""
        return self.tree.small | {
            self.tree.extents[node][dim]
            for node, buffer in self.buffers.items()
            if node in self.tree.extents.of
            for dim, extent in zip(self._dims(node), buffer.extents)
            if extent
        }

    def _dims(self, node: Node) -> Iterable[int]:
        """The dimensions that the array of a node has."""
        return range(node.spec.ndim) if node.is_input else self.tree.kept[node]

    def _is_unrolled(self, node: Node, dim: int) -> bool:
        places = self._places.get(node, ())
        return 1 < node.shape[dim] <= 2 * SMALL and all(is_number(place[dim]) for place in places)

    # --- arrays -------------------------------------------------------------------------------------------

    def _buffers(self, pool: NamePool, outputs: int) -> dict[Node, ir.Buffer]:
        """The arrays that functions are given, each under a name of its own."""
        buffers = {node: self._buffer(node, pool.take(node.name or "x"), "input") for node in self.inputs}
        for place, node in enumerate(self.filled):
            if node.is_input:  # `needed`
                buffers[node] = self._buffer(node, node.name, "output")
                continue
            role: ir.Role = "scratch" if place >= outputs else "saved" if node in self.residuals else "output"
            holds = self.allocation.held_by(node) if role == "scratch" else [node]
            name = next(filter(None, (one.name or self._named_after.get(one) for one in holds)), "")
            buffers[node] = self._buffer(node, pool.take(_array_name(node, name, role)), role)
        return buffers | {node: buffers[owner] for node, owner in self.allocation.shared.items()}

    def _buffer(self, node: Node, name: str, role: ir.Role) -> ir.Buffer:
        return ir.Buffer(name, node.dtype, self.allocation.spec_of(node).shape, role, self._extents(node))

    def name_of(self, node: Node, other: str = "") -> str:
        """What generated code calls an array, or another name for what has no array."""
        return self.buffers[node].name if node in self.buffers else other

    # --- stages -------------------------------------------------------------------------------------------

    def sharing(self, stage: Stage, used: Set[ir.Buffer]) -> ir.Sharing | None:
        """How threads share a stage whose statements use these buffers, if they do."""
        if stage.shared is None:
            return None
        own = [root for root in self.tree.roots if any(root.nest is item for item in stage.items)]
        roots = [root for root in own if isinstance(root.nest, Loop) and not isinstance(root, RangeCheck)]
        totals = dict.fromkeys(root.node for root in roots if root.first_reduced is root.nest)
        partial = [node for node in totals if node in self.buffers]
        common = {*partial, *(root.node for root in roots if not is_private(root, self.tree))}
        inside = {root.node for root in roots} - common
        private = tuple(self.buffers[node] for node in self.filled if node in inside)
        memory = sum(self.buffers[node].nbytes for node in partial) + sum(one.nbytes for one in private)
        multiplies = any(isinstance(root, MatrixProduct) for root in own)
        has_small_parts = not multiplies and this_machine().is_free_for_each_part(memory)
        combined = tuple(
            (self.buffers[node], _monoid_of(node)) for node in partial if self.buffers[node] in used
        )
        return ir.Sharing(stage.shared.value, combined, private, PARTS_PER_THREAD if has_small_parts else 1)


def _monoid_of(total: Node) -> Monoid:
    """How one total is made of those of two parts."""
    assert total.operator.monoid is not None
    return total.operator.monoid


def _places(tree: LoopTree) -> dict[Node, list[tuple[AnyIndex, ...]]]:
    """Where the elements are that loops read and write, for each stored array.

    Calls take whole arrays, of any extents: they ask for no place in what loops read or write as well.
    """
    places: dict[Node, list[tuple[AnyIndex, ...]]] = {}
    by_calls: dict[Node, list[tuple[AnyIndex, ...]]] = {}
    for root in tree.roots:
        found = by_calls if isinstance(root, Call) else places
        for load in root.reads:
            found.setdefault(load.node, []).append(load.indices)
        if root.target:
            found.setdefault(root.node, []).append(root.target)
    return by_calls | places


def _array_name(node: Node, name: str, role: ir.Role) -> str:
    if role == "saved":
        return f"saved_{name or node.operator.noun}"
    if name:
        return name
    if role == "output":
        return "gradient" if node.origin.is_backward else "value"
    if node.is_constant and node.attributes["value"] in (0, 1):
        return "ones" if node.attributes["value"] else "zeros"
    return f"{node.operator.noun}s"


def names_after_others(graph: Graph) -> dict[Node, str]:
    """Of values without a name what they are called after: an array that they are a part of, or the like."""
    found: dict[Node, str] = {}
    for node in graph.nodes:
        if is_loop(node):
            found |= names_after_others(LoopNode(node).body)
        elif node.operator in (m.slice_update, update_at) and node.name:
            found.setdefault(node.operands[1], f"{node.name}_part")
        elif node.operator.movement.rearranges and node.name:
            found.setdefault(node.operands[0], node.name)
        elif node.operator.movement.rearranges and node.operands[0].name:
            found.setdefault(node, f"{node.operands[0].name}_copy")
    return {node: name for node, name in found.items() if not node.name}


def _base(node: Node) -> Node:
    """The node behind reshapes of an output: its array is filled, and handed out in the other shape."""
    while node.operator is m.reshape:
        node = node.operands[0]
    return node
