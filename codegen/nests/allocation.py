"""Where values lie: in local variables, in arrays, and arrays in memory, by how long each is needed.

The storage of a value has the dimensions that `fuse` has left it; without any it is a local variable. Else
it lies, if it can, in the array of another value, under one name, as the compiler is told that arrays of
different names do not overlap:

- of the output that is made of it, element by element, so that it needs no array of its own. A row of scratch
  lies there if the output exceeds the caches: a row of that would else be fetched from memory when all that
  is left to do is to write it, and is so fetched while the scratch is computed. In the cache, scratch is
  nearer;
- of a value that nobody reads any more, of the same dtype and extents, not of a size that happens to agree.

Arrays that different functions use may overlap: scratch lies in memory that is not in use yet, or any more,
of an output that later functions write, or of larger scratch. An array of which data decides the number of
rows has memory of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pullback.tracer.graph import Node
from pullback.tracer.loop import LoopNode
from pullback.tracer.ops.control import loop_result
from pullback.tracer.spec import Spec

from ...tracer.forks import kept
from ...tracer.records import record
from ..cost.machine import this_machine
from .blocking import rows_of_block
from .expression import AnyIndex, Index, Load
from .extents import Symbol
from .tree import Call, Host, Loop, LoopTree, Root, Stage, Store, View, roots_in

Room = tuple[np.dtype, tuple[Symbol, ...], int]
"""What storage a value takes: dtype, dimensions that are kept, and rows that take turns."""
Lifetime = tuple[int, int]
"""The positions of the first write and of the last use, among the outermost loops or the stages."""


@record(frozen=True)
class Loan:
    """Where an array lies: in the memory of `owner`, `offset` bytes from its start."""

    owner: Node
    offset: int


@record(frozen=True)
class _Tenant:
    """Which bytes of an array are in use, from one stage to another."""

    start: int
    stop: int
    lifetime: Lifetime

    def is_in_use(self, lifetime: Lifetime) -> bool:
        return self.lifetime[0] <= lifetime[1] and lifetime[0] <= self.lifetime[1]


class Allocation:
    """Where the values of a program lie that are no local variables."""

    def __init__(self, tree: LoopTree, stages: Sequence[Stage], outputs: Sequence[Node]) -> None:
        self.tree = tree
        self.outputs = outputs
        self.makers: dict[Node, list[Root]] = {}
        self.readers: dict[Node, list[Root]] = {}
        self.lifetimes: dict[Node, Lifetime] = {}
        self._stage_at = [number for number, stage in enumerate(stages) for _ in stage.items]
        self._is_shared = [stage.shared is not None for stage in stages]
        self._find_lifetimes()
        scratch = [node for node in tree.kept if node not in outputs and self._needs_array(node)]
        self.shared = self._shared(scratch)
        """For values without an array of their own, the one in whose array they lie."""
        self.arrays = [*outputs, *(node for node in scratch if node not in self.shared)]
        """The values that have arrays: outputs, then scratch."""
        self.growing = {node: symbol for node in self.arrays if (symbol := self._counted_rows(node))}
        """Arrays of which data decides how many rows they need, with the number of steps that it is."""

    def spec_of(self, node: Node) -> Spec:
        """What an array has room for."""
        if node.is_input:
            return node.spec
        block = self.tree.in_blocks.get(node)
        shape = [rows_of_block() if dim == block else node.shape[dim] for dim in self.tree.kept[node]]
        if self._takes_turns(node):
            shape[0] = self.tree.rows[node]
        return Spec(tuple(shape), node.dtype)

    def held_by(self, node: Node) -> list[Node]:
        """The values that lie in the array of a node, its own the first."""
        return [node, *(one for one, owner in self.shared.items() if owner is node)]

    def only_in(self, stage: int) -> list[Node]:
        """The scratch that one stage alone uses, in memory of its own."""
        lent = {*self.loans, *(loan.owner for loan in self.loans.values())}
        scratch = (node for node in self.arrays if node not in self.outputs and node not in lent)
        own = (node for node in scratch if node not in self.growing)
        return [node for node in own if self._stages(*self.held_by(node)) == (stage, stage)]

    # --- lifetimes ----------------------------------------------------------------------------------------

    def _find_lifetimes(self) -> None:
        views = self.tree.views
        for place, item in enumerate(self.tree.items):
            for root in roots_in([item]):
                self.makers.setdefault(root.node, []).append(root)
                for node in dict.fromkeys(load.node for load in root.reads):
                    self.readers.setdefault(node, []).append(root)
                for node in (root.node, *(load.node for load in root.reads)):
                    while node in views:
                        node = views[node]
                    first, _ = self.lifetimes.get(node, (place, place))
                    self.lifetimes[node] = first, place

    def _needs_array(self, node: Node) -> bool:
        makers = self.makers[node]
        if any(isinstance(root, View) for root in makers):
            return False
        is_called_with = any(isinstance(root, Host) for root in self.readers.get(node, ()))
        needs_array = bool(self.tree.kept[node]) or any(root.needs_array for root in makers) or is_called_with
        crosses_stages = len({*self._stages(node)}) > 1 or self._leaves_shared_stage(node)
        return needs_array or _is_of_choice(node) or crosses_stages

    def _leaves_shared_stage(self, node: Node) -> bool:
        """Whether threads that share a stage of a step make what others read."""
        makers, readers = (
            {_shared_stage(root) for root in roots}
            for roots in (self.makers[node], self.readers.get(node, ()))
        )
        return any(one is not None and readers - {one} for one in makers)

    def _stages(self, *nodes: Node) -> Lifetime:
        """The first and the last stage that use some values."""
        first, last = zip(*(self.lifetimes[node] for node in nodes))
        return self._stage_at[min(first)], self._stage_at[max(last)]

    def _counted_rows(self, node: Node) -> Symbol | None:
        symbols = (self.tree.extents[node][dim] for dim in self.tree.kept[node])
        return next((one for one in symbols if one.is_counted and node not in self.tree.rows), None)

    # --- values in one array ------------------------------------------------------------------------------

    def _shared(self, scratch: Sequence[Node]) -> dict[Node, Node]:
        shared: dict[Node, Node] = {}
        by_room: dict[Room, dict[Node, Node]] = {}
        """For each array that may be used again, by its room, the value that it holds last."""
        for node in sorted(scratch, key=lambda one: self.lifetimes[one][0]):
            output = self._output_made_of(node)
            if output is not None and output not in shared.values():
                shared[node] = output
                if node not in self.tree.rows:
                    self.tree.kept[node] = self.tree.kept[output]  # a row gets all dimensions
            elif self._is_whole(node) and not any(root.reduced for root in self.makers[node]):
                holds = by_room.setdefault(self._room(node), {})
                owner = next((one for one in reversed(holds) if self._may_follow(node, holds[one])), node)
                holds[owner] = node
                if owner is not node:
                    shared[node] = owner
        return shared

    def _is_whole(self, node: Node) -> bool:
        """Whether its storage has all dimensions: what has fewer belongs to a thread, and is small."""
        rank = node.spec.ndim - (node in self.tree.rows and not self._takes_turns(node))
        return len(self.tree.kept[node]) == rank > 0 and node not in self.tree.in_blocks

    def _takes_turns(self, node: Node) -> bool:
        """Whether it has rows for what a loop carries; one alone is no dimension of its array."""
        return node in self.tree.rows and 0 in self.tree.kept[node]

    def _are_alike(self, one: Node, other: Node) -> bool:
        return one.dtype == other.dtype and self.tree.extents[one] == self.tree.extents[other]

    def _room(self, node: Node) -> Room:
        """What storage it takes: values that take the same fit into one array."""
        symbols = self.tree.extents[node]
        rows = self.tree.rows[node] if self._takes_turns(node) else 0
        return node.dtype, tuple([symbols[dim] for dim in self.tree.kept[node]]), rows

    def _may_follow(self, node: Node, held: Node) -> bool:
        """Whether a value may take an array of its room that holds another value now."""
        begin, end = self.lifetimes[node][0], self.lifetimes[held][1]
        return end < self._others_end_before(begin) or (
            end == begin and self._is_updated_in_place(held, node)
        )

    def _others_end_before(self, place: int) -> int:
        """The first of the outermost loops that some thread may still be in when another begins."""
        stage = self._stage_at[place]
        return self._stage_at.index(stage) if self._is_shared[stage] else place

    def _is_updated_in_place(self, old: Node, new: Node) -> bool:
        """Whether the last use of an old element is to make the new one in its place."""
        maker, *others = self.makers[new]
        shown = self._shown_as(old)
        users = (*self.makers[old], *(root for one in shown for root in self.readers.get(one, ())))
        is_last = [root for root in users if root.outermost is maker.outermost] == [maker]
        if others or not is_last or not isinstance(maker, Store) or maker.steps:
            return False
        return all(
            load.node is old and load.indices == maker.target for load in maker.reads if load.node in shown
        )

    def _shown_as(self, node: Node) -> list[Node]:
        """A value and its views, by which others read its elements at other places."""
        shown = [node]
        for view, base in self.tree.views.items():  # views of views come later
            if base in shown:
                shown.append(view)
        return shown

    # --- scratch in outputs -------------------------------------------------------------------------------

    def _output_made_of(self, node: Node) -> Node | None:
        """The output whose elements are made of those of scratch in their place, if that saves memory."""
        if node in self.tree.rows:
            return self._output_left_in(node)
        makers, readers = self.makers[node], self.readers.get(node, ())
        is_plain = all(isinstance(one, Store | Call) for one in makers)
        if not readers or not is_plain or any(isinstance(one, View) for one in readers):
            return None
        output = readers[-1].node
        is_output = output in self.outputs and output not in self.tree.rows
        return output if is_output and self._gains(node, output) and self._ends_as(node, output) else None

    def _output_left_in(self, history: Node) -> Node | None:
        """The output that is what the last step of a loop leaves of a carry with one row."""
        if self._takes_turns(history):
            return None
        for reader in self.readers.get(history, ()):
            value, output = reader.value, reader.node
            is_alone = type(reader) is Store and not reader.steps and self.makers[output] == [reader]
            is_copy = isinstance(value, Load) and value.node is history and value.indices[1:] == reader.target
            if is_alone and is_copy and output in self.outputs and self._room(history) == self._room(output):
                return output
        return None

    def _gains(self, node: Node, output: Node) -> bool:
        """Whether scratch is as large as the output, or a row of an output that exceeds the cache."""
        kept = len(self.tree.kept[node])
        is_plain = kept > 0 and node not in self.tree.in_blocks and node not in self.tree.rows
        machine, nbytes = this_machine(), output.spec.nbytes
        is_whole = kept == node.spec.ndim
        return is_plain and (
            machine.is_worth_lending(nbytes) if is_whole else machine.leaves_caches_when_written(nbytes)
        )

    def _ends_as(self, old: Node, new: Node) -> bool:
        """Whether the last reader puts what it makes of an element in its place, which nobody else needs."""
        makers, readers, kept = self.makers[old], self.readers[old], self.tree.kept[old]
        last = readers[-1]
        if not (self._are_alike(old, new) and self.makers[new] == [last] and isinstance(last, Store)):
            return False
        if any(root.steps for root in (*makers, last)):
            return False
        target = _loops_at(last, last.target)
        if None in target:
            return False
        rows = [loop for dim, loop in enumerate(target) if dim not in kept]
        inner = [loop for loop in last.path if loop not in rows]
        for maker in makers:  # it must be in the loops over rows, but not in those that make the output
            walked = [loop for dim, loop in enumerate(_loops_at(maker, maker.target)) if dim not in kept]
            if walked != rows or any(loop in maker.path for loop in inner):
                return False
        return all(
            _loops_at(root, load.indices) == target
            for root in readers
            if root is last or any(loop in root.path for loop in inner)
            for load in root.reads
            if load.node is old
        )

    # --- arrays in the memory of others -------------------------------------------------------------------

    @kept
    def loans(self) -> dict[Node, Loan]:
        """For scratch that needs no memory of its own, where it lies; the largest is placed first."""
        is_worth_lending = this_machine().is_worth_lending
        fixed = [node for node in self.arrays if node not in self.growing]
        sizes = {node: self.spec_of(node).nbytes for node in fixed}
        lifetimes = {node: self._stages(*self.held_by(node)) for node in fixed}
        behind = len(self._is_shared)  # outputs are read behind all stages
        tenants: dict[Node, list[_Tenant]] = {
            node: [_Tenant(0, sizes[node], (lifetimes[node][0], behind))]
            for node in fixed
            if node in self.outputs
        }
        loans: dict[Node, Loan] = {}
        scratch = [node for node in fixed if node not in tenants and is_worth_lending(sizes[node])]
        for node in sorted(scratch, key=lambda one: -sizes[one]):
            size, lifetime = sizes[node], lifetimes[node]
            places = ((owner, _free_from(inside, size, lifetime)) for owner, inside in tenants.items())
            owner, start = next((one for one in places if one[1] + size <= sizes[one[0]]), (node, 0))
            tenants.setdefault(owner, []).append(_Tenant(start, start + size, lifetime))
            if owner is not node:
                loans[node] = Loan(owner, start)
        return loans


def _is_of_choice(node: Node) -> bool:
    """Whether a value is made on one side of a choice alone: who reads it may come from the other side."""
    if node.operator is not loop_result:
        return False
    loop = LoopNode(node.operands[0])
    return loop.is_choice and node.attributes["index"] >= loop.carries


def _shared_stage(root: Root) -> Stage | None:
    """The stage of a step that it is in, if threads share that."""
    stages = root.steps[-1].stages if root.steps else []
    return next((one for one in stages if one.shared and any(item is root.nest for item in one.items)), None)


def _loops_at(root: Root, indices: Sequence[AnyIndex]) -> list[Loop | None]:
    """The loops whose iterations the indices of a place follow; None for an index that is not just that."""
    axes = [index.axis if isinstance(index, Index) else None for index in indices]
    return [root.bound.get(axis) if axis else None for axis in axes]


def _free_from(inside: Sequence[_Tenant], size: int, lifetime: Lifetime) -> int:
    """The first offset of so many bytes that nobody uses from one stage to another."""
    start, alignment = 0, this_machine().alignment
    for tenant in sorted(inside, key=lambda one: one.start):
        if tenant.is_in_use(lifetime) and start < tenant.stop and tenant.start < start + size:
            start = -(-tenant.stop // alignment) * alignment
    return start
