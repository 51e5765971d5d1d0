"""The plan of a program: its arrays and their names, and the stages in which its loops run.

Most programs have one stage, one generated function; see `stages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pullback.tracer.graph import Graph, Node
from pullback.tracer.loop import LoopNode
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.control import loop_result
from pullback.tracer.spec import Spec

from .. import ir
from ..machine.kernel_types import ArrayType, ScalarType
from ..rewriting.unroll import SMALL
from ..writing.names import NamePool
from .blocking import BLOCK
from .expression import AnyIndex, axes_in, is_number
from .fuse import fuse
from .growing import growing_arrays, needed_node
from .in_place import scratch_in_outputs
from .lending import Loan, lent_memory
from .reuse import shared_arrays
from .stages import PARTS_PER_THREAD, SMALL_PART, Stage, split_into_stages, stage_names
from .tree import Item, LoopTree, Root

INT64 = np.dtype("int64")


@dataclass(frozen=True)
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
        scratch = [node for node in self.tree.kept if self._needs_scratch(node, stored)]
        in_place = scratch_in_outputs(self.tree, scratch, stored)
        self.shared = in_place | shared_arrays(
            self.tree, [node for node in scratch if node not in in_place], self.stages
        )
        self.filled = [*stored, *(node for node in scratch if node not in self.shared)]
        self.growing = growing_arrays(self.tree, self.filled)
        """Arrays of which data decides how many rows they need; `needed` is where functions say so."""
        self.counts = list(dict.fromkeys(self.growing.values()))
        if self.counts:
            self.filled.append(needed_node(len(self.counts)))
        taken = {stem, *(one.name for stage in self.stages if stage.shared for one in ir.PART)}
        self.buffers = self._buffers(NamePool(taken), len(stored))
        self.extent_names: dict[Any, str] = {}
        for stage in self.stages:
            if stage.shared:
                self._find_own(stage)

    @property
    def allocated(self) -> list[Spec]:
        """The specs of the arrays that the program fills: outputs, then scratch."""
        return [self.storage_spec(node) for node in self.filled]

    def allocated_for(self, rows: Sequence[int]) -> list[Spec]:
        """The specs, with so many rows for each of `counts` in the arrays that grow."""
        room = dict(zip(self.counts, rows))
        specs = []
        for node, spec in zip(self.filled, self.allocated):
            grows = node in self.growing
            specs.append(spec.with_shape((room[self.growing[node]], *spec.shape[1:])) if grows else spec)
        return specs

    @cached_property
    def loans(self) -> dict[Node, Loan]:
        """Where scratch lies that needs no memory of its own, once it is known which functions have it."""
        fixed = [node for node in self.filled if not node.is_input and node not in self.growing]
        is_stored = {output.node for output in self.outputs}
        stored = [node for node in fixed if node in is_stored]
        scratch = [node for node in fixed if node not in is_stored]
        return lent_memory(scratch, stored, self.stages, self.storage_spec)

    def storage_spec(self, node: Node) -> Spec:
        if node.is_input:
            return node.spec
        block = self.tree.in_blocks.get(node)
        shape = [BLOCK if dim == block else node.shape[dim] for dim in self.tree.kept[node]]
        if node in self.tree.rows:
            shape[0] = self.tree.rows[node]
        return Spec(tuple(shape), node.dtype)

    def argument_types(self, stage: Stage) -> tuple[ArrayType | ScalarType, ...]:
        arrays = [self._array_type(node) for node in stage.arrays]
        return (*arrays, *(ScalarType(one.dtype) for one in stage.function.parameters[len(arrays) :]))

    def _array_type(self, node: Node) -> ArrayType:
        """With the extents of dimensions in which only constant positions are used: they were unrolled."""
        spec = self.storage_spec(node)
        dims = range(spec.ndim) if node.is_input else self.tree.kept[node]
        unrolled = [
            dim > 0 and (self._is_unrolled(node, dim) or self.tree.extents[node][dim] in self.tree.small)
            for dim in dims
        ]
        extents = tuple(node.shape[dim] if known else 0 for dim, known in zip(dims, unrolled))
        return ArrayType(spec.dtype, spec.ndim, "C", extents if any(extents) else ())

    def _is_unrolled(self, node: Node, dim: int) -> bool:
        places = self._places.get(node, ())
        return 1 < node.shape[dim] <= 2 * SMALL and all(is_number(place[dim]) for place in places)

    # --- arrays -------------------------------------------------------------------------------------------

    def _needs_scratch(self, node: Node, stored: list[Node]) -> bool:
        roots = [root for root in self.tree.roots if root.node is node]
        if node in stored or any(root.kind == "view" for root in roots):
            return False
        whole = any(root.kind in ("call", "scatter", "update", "overwrite", "scan") for root in roots)
        return bool(self.tree.kept[node]) or whole or _is_of_choice(node) or self._crosses_stages(node, roots)

    def _crosses_stages(self, node: Node, roots: list[Root]) -> bool:
        """Whether a total is made in one function and read in another."""
        readers = [root for root in self.tree.roots if any(load.node is node for load in root.reads)]
        return len({id(self._stage_of(root)) for root in (*roots, *readers)}) > 1

    def _stage_of(self, root: Root) -> Stage:
        top: Item = root.path[0] if root.path else root
        return next(stage for stage in self.stages if any(item is top for item in stage.items))

    def _buffers(self, pool: NamePool, outputs: int) -> dict[Node, ir.Buffer]:
        """The arrays that functions are given, each under a name of its own."""
        buffers = {node: self._buffer(node, pool.take(node.name or "x"), "input") for node in self.inputs}
        for place, node in enumerate(self.filled):
            if node.is_input:  # `needed`
                buffers[node] = self._buffer(node, node.name, "output")
                continue
            role: ir.Role = "scratch" if place >= outputs else "saved" if node in self.residuals else "output"
            holds = [node, *(one for one, owner in self.shared.items() if owner is node)]
            named = next((one for one in holds if one.name), node) if role == "scratch" else node
            buffers[node] = self._buffer(node, pool.take(_array_name(named, role)), role)
        return buffers | {node: buffers[owner] for node, owner in self.shared.items()}

    def _buffer(self, node: Node, name: str, role: ir.Role) -> ir.Buffer:
        return ir.Buffer(name, node.dtype, self.storage_spec(node).shape, role)

    def name_of(self, node: Node, other: str = "") -> str:
        """What generated code calls an array, or another name for what has no array."""
        return self.buffers[node].name if node in self.buffers else other

    # --- stages -------------------------------------------------------------------------------------------

    @property
    def program(self) -> ir.Program:
        """The whole program in the loop IR."""
        growing = {self.buffers[node]: self.counts.index(symbol) for node, symbol in self.growing.items()}
        return ir.Program(
            tuple(self.buffers[node] for node in self.inputs),
            tuple(self.buffers[node] for node in self.filled),
            tuple(stage.kernel(self.buffers) for stage in self.stages),
            tuple(
                ir.Loan(self.buffers[node], self.buffers[loan.owner], loan.offset)
                for node, loan in self.loans.items()
            ),
            growing,
        )

    def functions(self, stem: str) -> list[ir.Function]:
        """The program's functions, under names with this stem."""
        names = stage_names(stem, self.stages)
        return [replace(stage.function, name=name) for name, stage in zip(names, self.stages)]

    def _find_own(self, stage: Stage) -> None:
        """The totals and the scratch that each part of a shared stage has for itself."""
        roots = [root for root in self.tree.roots if root.path and self._stage_of(root) is stage]
        roots = [root for root in roots if root.kind != "check"]
        totals = [root.node for root in roots if root.first_reduced is root.path[0]]
        stage.partial = [node for node in dict.fromkeys(totals) if node in self.buffers]
        common = {*stage.partial, *(root.node for root in roots if not self._is_private(root))}
        inside = {root.node for root in roots} - common
        stage.private = [node for node in self.filled if node in inside]
        memory = sum(self.storage_spec(node).nbytes for node in (*stage.partial, *stage.private))
        multiplies = any(root.product for root in self.tree.roots if self._stage_of(root) is stage)
        if not multiplies and memory <= SMALL_PART:
            stage.parts_per_thread = PARTS_PER_THREAD

    def _is_private(self, root: Root) -> bool:
        """Whether the storage of a node lacks the dimension that the shared loop walks."""
        axis = root.axis_of(root.path[0])
        walked = {dim for dim, index in enumerate(root.target) if axis in axes_in(index)}
        return not walked & ({*self.tree.kept[root.node]} - {self.tree.in_blocks.get(root.node)})


def _is_of_choice(node: Node) -> bool:
    """Whether a value is made on one side of a choice alone: who reads it may come from the other side."""
    if node.operator is not loop_result:
        return False
    loop = LoopNode(node.operands[0])
    return loop.is_choice and node.attributes["index"] >= loop.carries


def _places(tree: LoopTree) -> dict[Node, list[tuple[AnyIndex, ...]]]:
    """Where the elements are that loops read and write, for each stored array."""
    places: dict[Node, list[tuple[AnyIndex, ...]]] = {}
    for root in tree.roots:
        for load in root.reads:
            places.setdefault(load.node, []).append(load.indices)
        if root.target:
            places.setdefault(root.node, []).append(root.target)
    return places


def _array_name(node: Node, role: ir.Role) -> str:
    if role == "saved":
        return f"saved_{node.name or node.operator.noun}"
    if node.name:
        return node.name
    if role == "output":
        return "gradient" if node.origin.is_backward else "value"
    return f"{node.operator.noun}s"


def _base(node: Node) -> Node:
    """The node behind reshapes of an output: its array is filled, and handed out in the other shape."""
    while node.operator is m.reshape:
        node = node.operands[0]
    return node
