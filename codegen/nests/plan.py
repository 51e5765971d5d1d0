"""The plan of a program: its arrays and their names, and the stages in which its loops run.

Most programs have one stage, one generated function. A loop with enough work to share between threads is a
stage of its own, a function over `range(start, stop)` of its iterations; what threads add up is kept apart
for each and combined afterwards, in order, so that results depend on the number of threads only.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pullback.tracer.graph import Graph, Node
from pullback.tracer.ops import movement as m
from pullback.tracer.spec import Spec

from ..machine.compile import ArrayType, ScalarType, Sharing
from ..rewriting.unroll import SMALL
from ..writing.brief import brief_loops
from ..writing.element import Arrays
from ..writing.layout import Block, ForLoop, Kernel, Line
from ..writing.names import NamePool, noun
from ..writing.write import Writer
from .blocking import BLOCK
from .cost import arithmetic
from .expression import AnyIndex, Index, is_number
from .fuse import fuse
from .growing import counts_steps, growing_arrays, needed_node
from .in_place import scratch_in_outputs
from .reuse import shared_arrays
from .tree import Item, Loop, LoopTree, Root

INT64 = np.dtype("int64")
WORTH_THREADS = 250_000.0
"""Estimated nanoseconds of a loop above which threads gain more than they cost (15,000 to 45,000)."""
LONG = 12
"""Values stored in a loop over steps from which it is a function of its own: it compiles sooner alone."""
MULTIPLIED_BYTES = 150.0
"""Bytes of numbers that gemm multiplies in a nanosecond, in one thread."""
SMALLEST_PART = 16
NANOSECONDS_PER_ACCESS = 0.1
NANOSECONDS_PER_COST = 0.02
COMBINED = frozenset({"sum", "scatter_add", "prod", "amax", "amin", "all", "any"})
"""Operators whose totals of parts can be combined: `machine.sharing` does."""


@dataclass(frozen=True)
class Output:
    """How an output of the graph is had: from an array that is filled, an input, or a constant."""

    node: Node
    shape: tuple[int, ...]
    position: int = -1
    """Among the arrays that are filled; -1 for an input or a constant."""


@dataclass
class Stage:
    """One generated function."""

    items: list[Item]
    shared: Loop | None = None
    """The loop whose iterations are shared between threads, if any."""
    arrays: list[Node] = field(default_factory=list)
    integers: dict[str, int] = field(default_factory=dict)
    partial: list[Node] = field(default_factory=list)
    """Totals that each thread has for itself, to be combined."""
    private: list[Node] = field(default_factory=list)
    """Scratch that each thread has for itself."""
    prologue: tuple[Line, ...] = ()
    body: tuple[Line | ForLoop | Block, ...] = ()
    called: frozenset[str] = frozenset()
    brief: frozenset[int] = frozenset()
    """The positions of loops of few iterations, where there are many such loops."""
    parameters: tuple[str, ...] = ()

    @property
    def sharing(self) -> Sharing | None:
        """Which arrays each thread has for itself."""
        if self.shared is None:
            return None
        places = {node: place for place, node in enumerate(self.arrays)}
        totals = tuple((places[node], node.operator.name) for node in self.partial if node in places)
        return Sharing(tuple(places[node] for node in self.private), totals)

    def kernel(self, name: str) -> Kernel:
        return Kernel(name, self.parameters, self.prologue, self.body)


class Plan:
    """Everything about a program that generation decides."""

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
        self.stages = _split_into_stages(self.tree, parallel)
        self._places = _places(self.tree)
        used = {load.node for root in self.tree.roots for load in root.reads if load.node.is_input}
        self.used_inputs = [position for position, node in enumerate(graph.inputs) if node in used]
        self.inputs = [graph.inputs[position] for position in self.used_inputs]
        scratch = [node for node in self.tree.kept if self._needs_scratch(node, stored)]
        in_place = scratch_in_outputs(self.tree, scratch, stored)
        self.shared = in_place | shared_arrays(self.tree, [node for node in scratch if node not in in_place])
        self.filled = [*stored, *(node for node in scratch if node not in self.shared)]
        self.growing = growing_arrays(self.tree, self.filled)
        """Arrays of which data decides how many rows they need; `needed` is where functions say so."""
        self.counts = list(dict.fromkeys(self.growing.values()))
        if self.counts:
            self.filled.append(needed_node(len(self.counts)))
        self.names = self._array_names(NamePool({"np", "range", "kernel", stem}), len(stored), residuals)
        self.extent_names: dict[Any, str] = {}
        for stage in self.stages:
            self._write(stage, stem)

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
        return (*arrays, *(ScalarType(INT64) for _ in stage.parameters[len(arrays) :]))

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
        return bool(self.tree.kept[node]) or whole or self._crosses_stages(node, roots)

    def _crosses_stages(self, node: Node, roots: list[Root]) -> bool:
        """Whether a total is made in one function and read in another."""
        readers = [root for root in self.tree.roots if any(load.node is node for load in root.reads)]
        return len({id(self._stage_of(root)) for root in (*roots, *readers)}) > 1

    def _stage_of(self, root: Root) -> Stage:
        top: Item = root.path[0] if root.path else root
        return next(stage for stage in self.stages if any(item is top for item in stage.items))

    def _array_names(self, pool: NamePool, outputs: int, residuals: frozenset[Node]) -> dict[Node, str]:
        names = {node: pool.take(node.name or "x") for node in self.inputs}
        for place, node in enumerate(self.filled):
            if node.is_input:
                names[node] = node.name  # `needed`
                continue
            holds = [node, *(one for one, owner in self.shared.items() if owner is node)]
            named = node if place < outputs else next((one for one in holds if one.name), node)
            names[node] = pool.take(_array_name(named, place < outputs, node in residuals))
        names.update((node, names[owner]) for node, owner in self.shared.items())
        return names

    # --- stages -------------------------------------------------------------------------------------------

    def _write(self, stage: Stage, stem: str) -> None:
        pool = NamePool({"np", "range", "kernel", "start", "stop", stem, *self.names.values()})
        rooms = {symbol: self.names[node] for node, symbol in reversed(self.growing.items())}
        growing = {symbol: rooms[symbol] for symbol in self.counts}
        arrays = Arrays(self.names, pool, stage.integers, growing)
        writer = Writer(self.tree, arrays)
        self.extent_names = writer.reserved
        stage.body = writer.write(stage.items, stage.shared)
        stage.prologue = tuple(writer.prologue)
        stage.called = frozenset(writer.called)
        stage.brief = brief_loops(stage.body)
        words = set(re.findall(r"\w+", repr((stage.prologue, stage.body))))
        stage.arrays = [node for node in (*self.inputs, *self.filled) if self.names[node] in words]
        bounds = ("start", "stop") if stage.shared else ()
        stage.parameters = (*(self.names[node] for node in stage.arrays), *stage.integers, *bounds)
        if stage.shared:
            roots = [root for root in self.tree.roots if root.path[:1] == [stage.shared]]
            inside = {root.node for root in roots}
            totals = [
                root.node for root in roots if root.first_reduced is stage.shared and root.kind != "check"
            ]
            stage.partial = [node for node in dict.fromkeys(totals) if node in self.names]
            stage.private = [
                node
                for node in stage.arrays
                if node in inside and node not in stage.partial and self._is_private(node, stage.shared)
            ]

    def _is_private(self, node: Node, loop: Loop) -> bool:
        """Whether the storage of a node lacks the dimension that the shared loop walks."""
        root = next(one for one in self.tree.roots if one.node is node)
        axis = root.axis_of(loop)
        dims = [dim for dim, index in enumerate(root.target) if getattr(index, "axis", None) is axis]
        shared = {*self.tree.kept[node]} - {self.tree.in_blocks.get(node)}
        return not any(dim in shared for dim in dims)


def _places(tree: LoopTree) -> dict[Node, list[tuple[AnyIndex, ...]]]:
    """Where the elements are that loops read and write, for each stored array."""
    places: dict[Node, list[tuple[AnyIndex, ...]]] = {}
    for root in tree.roots:
        for load in root.reads:
            places.setdefault(load.node, []).append(load.indices)
        if root.target:
            places.setdefault(root.node, []).append(root.target)
    return places


def _array_name(node: Node, is_output: bool, is_residual: bool) -> str:
    if is_residual:
        return f"saved_{node.name or noun(node.operator.name)}"
    if node.name:
        return node.name
    if is_output:
        return "gradient" if node.origin.is_backward else "value"
    return f"{noun(node.operator.name)}s"


def _base(node: Node) -> Node:
    """The node behind reshapes of an output: its array is filled, and handed out in the other shape."""
    while node.operator is m.reshape:
        node = node.operands[0]
    return node


# --- which loops threads share ------------------------------------------------------------------------------


def _split_into_stages(tree: LoopTree, parallel: bool | None) -> list[Stage]:
    stages: list[Stage] = []
    counting = [place for place, item in enumerate(tree.items) if counts_steps(item, tree)]
    first, last = (counting[0], counting[-1]) if counting else (0, -1)
    for place, item in enumerate(tree.items):
        begins = place == first <= last
        if first < place <= last or (begins and stages and stages[-1].shared is None):
            stages[-1].items.append(item)
        elif begins:
            stages.append(Stage([item]))
        elif isinstance(item, Loop) and _is_shared(item, tree, parallel):
            stages.append(Stage([item], item))
        elif isinstance(item, Root) and parallel is not False and _is_large_product(item, tree):
            stages.append(Stage([item], Loop(tree.extents[item.node][0])))  # of the rows of the result
        elif stages and stages[-1].shared is None and not _is_long_loop(item, tree):
            stages[-1].items.append(item)
        else:
            stages.append(Stage([item]))
    return stages


def _is_large_product(root: Root, tree: LoopTree) -> bool:
    """Whether a call of gemm on whole matrices is worth a part of the rows for each thread."""
    if root.kind != "call" or root.node.spec.ndim != 2 or len(tree.kept[root.node]) != 2:
        return False
    operands = [load.node for load in root.reads[:2]]
    plain = all(isinstance(one, Index) and one.axis for load in root.reads[:2] for one in load.indices)
    if not plain or any(one.spec.ndim != 2 for one in operands) or min(root.node.shape) < SMALLEST_PART:
        return False
    multiplications = math.sqrt(math.prod(one.spec.size for one in (*operands, root.node)))
    return multiplications * root.node.dtype.itemsize / MULTIPLIED_BYTES > WORTH_THREADS


def _is_long_loop(item: Item, tree: LoopTree) -> bool:
    """Whether a loop over steps holds so much that it is better compiled by itself."""
    if not isinstance(item, Loop) or not item.steps:
        return False
    return sum(item in root.path for root in tree.roots) > LONG


def _is_shared(loop: Loop, tree: LoopTree, parallel: bool | None) -> bool:
    roots = [root for root in tree.roots if root.path[:1] == [loop]]
    if parallel is False or loop.steps or loop.extent.value < 4:
        return False
    if not all(_can_share(root, loop) for root in roots):
        return False
    scattered = {root.node for root in roots if root.kind == "scatter"}
    elsewhere = (root for root in tree.roots if root.kind == "scatter" and root not in roots)
    if any(root.node in scattered for root in elsewhere):
        return False
    return parallel is True or _estimated_nanoseconds(roots) > WORTH_THREADS


def _can_share(root: Root, loop: Loop) -> bool:
    """Whether the iterations of the loop are independent, but for totals that can be combined."""
    axis = root.axis_of(loop)
    if root.kind == "check":
        return True
    if root.kind in ("store", "reduce", "scatter", "search", "overwrite", "call"):
        return axis not in root.reduced or root.node.operator.name in COMBINED
    return root.kind == "scan" and not _scans(root, axis)


def _scans(root: Root, axis: Any) -> bool:
    return getattr(root.target[root.node.attributes["dim"]], "axis", None) is axis


def _estimated_nanoseconds(roots: list[Root]) -> float:
    """Time of a loop; what several roots load or compute at the same place counts once."""
    seen: set[Node] = set()
    total = 0.0
    for root in roots:
        if root.product is not None:
            total += root.product.indices.nanoseconds
            continue
        points = math.prod(axis.extent.value for axis in root.axes)
        new_loads = {load.node for load in root.reads} - seen
        seen |= new_loads
        cost = 0 if root.value is None else arithmetic(root.value, seen)
        each = NANOSECONDS_PER_ACCESS * (1 + len(new_loads)) + NANOSECONDS_PER_COST * cost
        total += points * each * root.node.dtype.itemsize / 8  # vectors hold more of smaller numbers
    return total


def stage_names(stem: str, stages: Sequence[Stage]) -> list[str]:
    return [stem] if len(stages) == 1 else [f"{stem}_{number}" for number in range(1, len(stages) + 1)]
