"""Loops of the graph in the loop tree: where carries, rows and stacks are stored.

A carry is stored as its history: row t is its value before step t, row n its final value. Only where a
later loop reads all rows are all kept; else two rows take turns, or one is written in place. What a carry was
a step ago lies in the same history (`delays.py`). Rows of stacked operands are elements of the operands, and
stacked results are written row by row. Nothing is copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import field

from pullback.tracer.graph import Graph, Node, new_node
from pullback.tracer.loop import LoopNode, is_loop, loops_of
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.contraction import gemm
from pullback.tracer.ops.control import loop_result
from pullback.tracer.ops.windows import PLACE

from ...tracer.forks import kept
from ...tracer.records import record
from ..cost.machine import EXPENSIVE
from ..host import runs_on_host
from ..rewriting.calls import matrices_of
from ..rewriting.unroll import SMALL
from .delays import delay_in, find_delays
from .expression import Axis, Expression, Index, Load, arithmetic, minus, number, of_axis, of_symbol, plus
from .extents import ONE, Extents, Symbol
from .lower import Indices, Lowering, NotPlain, merges_dimensions
from .tree import Item, Loop, Reduction, Root
from .versions import InPlace, find_chain


@record(eq=False)
class StepLoop:
    """A loop of the graph on its way into the tree."""

    node: LoopNode
    extent: Symbol
    """How many rows its stacks have."""
    count: Symbol
    """How many steps it has."""
    histories: list[Node]
    """Where each carry is stored."""
    first: list[int]
    """In which row of its history each carry begins: what another one was a step ago, in front of that."""
    results: dict[int, list[Node]]
    """The nodes that read each result."""
    viewed: set[Node]
    """Results that are read in another shape, as an array of their own."""
    around: tuple[StepLoop, ...]
    """The step loops that it is inside of, outermost first."""
    replaced: frozenset[Node] = frozenset()
    """The histories that hold the right values when it begins: of a choice before it, of a loop around it."""
    places: InPlace = field(default_factory=InPlace)
    """The histories that are written in place."""
    item: Loop = field(init=False)
    stacks: dict[int, Node] = field(default_factory=dict)
    """Results that are written row by row into an array of their own."""
    in_storage: dict[Node, tuple[Node, Index]] = field(default_factory=dict)
    """Results of the body that are computed straight into a row of a history or a stack."""

    @kept
    def merged(self) -> frozenset[Node]:
        """The values of the body whose dimensions a reader merges."""
        readers = (one for one in self.node.body.nodes if one.operator is m.reshape)
        return frozenset(operand for one in readers if merges_dimensions(one) for operand in one.operands)

    @kept
    def steps(self) -> Axis:
        """Its steps as an axis."""
        return Axis(self.count)

    @property
    def step(self) -> Index:
        return of_axis(self.steps)

    @property
    def row(self) -> Index:
        """Which row of the stacked operands and results the step is about."""
        if self.extent is ONE:
            return number(0)
        return minus(of_symbol(self.count), plus(self.step, number(1))) if self.node.backwards else self.step

    @property
    def loops(self) -> tuple[Loop, ...]:
        """The loops of the tree that its body is inside of."""
        return (*(one.item for one in self.around), self.item)

    def row_before(self, carry: int) -> Index:
        """The row that has the value of a carry when the step begins."""
        return plus(self.step, number(self.first[carry]))

    def row_after(self, carry: int) -> Index:
        return plus(self.row_before(carry), number(1))

    @property
    def stored_carries(self) -> list[int]:
        """The carries of which each step stores a new row."""
        return [
            index
            for index, history in enumerate(self.histories)
            if history not in self.places.chains and self.first[index] == delay_in(history)
        ]

    @property
    def stores(self) -> list[tuple[Node, Node, Index]]:
        """Each result of the body, where it is stored, and in which row."""
        outputs = self.node.body.outputs
        carried = [(outputs[one], self.histories[one], self.row_after(one)) for one in self.stored_carries]
        return carried + [(outputs[index], stack, self.row) for index, stack in self.stacks.items()]


def find_step_loops(
    graph: Graph,
    extents: Extents,
    places: InPlace,
    barred: Container[tuple[Node, int]] = (),
    around: tuple[StepLoop, ...] = (),
) -> list[StepLoop]:
    """All loops of a graph and of their bodies, outer ones first.

    Args:
        places: is told which carries are written in place.
        barred: loops with carries for which that is not possible.
    """
    found: list[StepLoop] = []
    readers: dict[Node, dict[int, list[Node]]] = {}
    for node in graph.nodes:
        if node.operator is loop_result:
            readers.setdefault(node.operands[0], {}).setdefault(node.attributes["index"], []).append(node)
    viewed = {
        node.operands[0] for node in graph.nodes if node.operator is m.reshape and merges_dimensions(node)
    }
    uses = Counter([*graph.outputs, *(one for node in graph.nodes for one in node.operands)])
    for node in graph.nodes:
        if is_loop(node):
            loop = LoopNode(node)
            held = [places.holder.get(carry) for carry in loop.body.inputs[: loop.carries]]
            shared = [
                _left_by_another(loop, index, found, uses) if one is None else one
                for index, one in enumerate(held)
            ]
            histories, first = _histories(loop, shared, barred, extents)
            replaced = frozenset(one for one in shared if one is not None)
            for index, history in enumerate(histories):
                chain = None if history in replaced or (node, index) in barred else find_chain(loop, index)
                if chain is not None and places.holder.keys().isdisjoint(chain.versions):
                    places.add(chain, history)
            extent = extents.steps[node].find()
            count = extents.trips.get(node, extent).find()
            results = readers.get(node, {})
            one = StepLoop(loop, extent, count, histories, first, results, viewed, around, replaced, places)
            found += [one, *find_step_loops(loop.body, extents, places, barred, (*around, one))]
    return found


def _left_by_another(loop: LoopNode, index: int, before: list[StepLoop], uses: Counter[Node]) -> Node | None:
    """The history of a choice before that leaves a value for this one to replace: both write one place."""
    init = loop.node.operands[index]
    if init.operator is not loop_result or uses[init] > 1 or not _replaces(loop, index):
        return None
    place = init.attributes["index"]
    found = next((one for one in before if one.node.node is init.operands[0]), None)
    if found is None or place >= found.node.carries or not _replaces(found.node, place):
        return None
    return found.histories[place]


def _replaces(loop: LoopNode, index: int) -> bool:
    """Whether a loop is a choice that does not read what was there before."""
    inside = loop.body.inputs[index]
    return loop.is_choice and inside not in loop.body.nodes and inside not in loop.body.outputs


def _histories(
    loop: LoopNode, shared: list[Node | None], barred: Container[tuple[Node, int]], extents: Extents
) -> tuple[list[Node], list[int]]:
    """The history of each carry, and in which of its rows the carry begins; some have one already."""
    own = [index for index, one in enumerate(shared) if one is None]
    may_follow = [
        index
        for index in own[2 * loop.goes_on :]
        if not loop.is_choice and ((loop.node, index) in barred or find_chain(loop, index) is None)
    ]
    followers = find_delays(loop, may_follow)
    histories: dict[int, Node] = {index: one for index, one in enumerate(shared) if one is not None}
    first = dict.fromkeys(range(loop.carries), 0)
    for index in own:
        if not any(index in line for line in followers.values()):
            line = [index, *followers.get(index, ())]
            histories |= dict.fromkeys(line, _history(loop, index, len(line) - 1, extents))
            first |= {one: row for row, one in enumerate(reversed(line))}
    return [histories[index] for index in range(loop.carries)], list(first.values())


def _history(loop: LoopNode, index: int, delay: int, extents: Extents) -> Node:
    start, end = loop.body.inputs[index], loop.body.outputs[index]
    rows = loop.length + 1 + delay
    spec = start.spec.with_shape((rows, *start.shape))
    init = loop.node.operands[index]
    name = end.name or start.name or init.name or f"{end.operator.noun}s"
    node = new_node(loop_result, (loop.node,), {"index": index, "delay": delay}, spec, end.origin, name)
    extents.of[node] = (Symbol(rows), *extents.of[start])
    return node


def bodies(graph: Graph) -> list[Graph]:
    """The graph and the bodies of its loops, at any depth."""
    inner = [one for node in graph.nodes if is_loop(node) for one in bodies(LoopNode(node).body)]
    return [graph, *inner]


def needed_before(graph: Graph) -> set[Node]:
    """What loops read in every step and is computed before: it must be stored, or each step repeats it.

    Movement of what is stored is index arithmetic; what a call of BLAS reads must be an array.
    """
    found: set[Node] = set()
    for loop in loops_of(graph.nodes):
        if loop.is_choice:  # which repeats nothing
            continue
        in_calls = {one for node in loop.body.nodes if node.operator is gemm for one in matrices_of(node)}
        for position, (operand, inside) in enumerate(zip(loop.node.operands, loop.body.inputs)):
            if position >= loop.carries and inside in in_calls and not operand.is_input:
                found.add(operand)
            if position >= loop.carries:
                found |= {one for one in _moved(operand) if not one.is_input}
    return found


def _moved(node: Node) -> Iterator[Node]:
    """The values that a chain of movement starts from, but for constants and results of loops."""
    pending = [node]
    while pending:
        one = pending.pop()
        if one.operator.family == "movement":
            pending.extend(one.operands)
        elif one.operator is not loop_result and one.operator.family != "creation" and not _is_place(one):
            yield one


def _is_place(node: Node) -> bool:
    """Whether a value may be where a window begins: such are index arithmetic."""
    return node.spec == PLACE and node.operator.family == "elementwise"


# --- elements -----------------------------------------------------------------------------------------------


def enter(loops: list[StepLoop], lowering: Lowering, outputs: set[Node]) -> None:
    """Tell the lowering where the values are that a loop's body reads, and those that it makes."""
    lowering.forget_places()
    for one in loops:
        one.item = Loop(one.count, steps=one.steps)
        one.item.once = one.node.is_choice
        if one.node.goes_on:
            one.item.goes_on = Load(one.histories[0], (one.step,))
        one.stacks, one.in_storage = {}, {}
        _enter_inputs(one, lowering)
        for index in one.stored_carries:
            end = one.node.body.outputs[index]
            _compute_into(one, end, one.histories[index], one.row_after(index), lowering, outputs)
        _enter_versions(one, lowering)
        for index, readers in one.results.items():
            _enter_result(one, index, readers, lowering, outputs)
    lowering.settle()


def _enter_inputs(one: StepLoop, lowering: Lowering) -> None:
    carries, rows, constants = one.node.split(one.node.body.inputs)
    _, stacked, invariant = one.node.split(one.node.node.operands)
    for index, (node, history) in enumerate(zip(carries, one.histories)):
        is_version, row = node in one.places.holder, one.row_before(index)
        lowering.elsewhere[node] = VersionOf(one.places, node, row) if is_version else RowOf(history, row)
    for node, whole in zip(rows, stacked):
        lowering.elsewhere[node] = Same(whole, (one.row,))
        lowering.outside[node] = whole
    for node, value in zip(constants, invariant):
        lowering.elsewhere[node] = Same(value)
        lowering.outside[node] = value


@record(frozen=True)
class Same:
    """Another value, or, behind what is given, a part of it."""

    node: Node
    first: tuple[Index, ...] = ()

    def __call__(self, lowering: Lowering, at: Indices) -> Expression:
        return lowering.element(self.node, (*self.first, *at))


@record(frozen=True)
class RowOf:
    """A row of what is stored."""

    storage: Node
    row: Index

    def __call__(self, lowering: Lowering, at: Indices) -> Expression:
        return Load(self.storage, (self.row, *at))


@record(frozen=True)
class VersionOf:
    """A version of an array that is written in place."""

    places: InPlace
    version: Node
    row: Index

    def __call__(self, lowering: Lowering, at: Indices) -> Expression:
        return self.places.load(self.version, self.row, at)


@record(frozen=True)
class RowsFrom:
    """The rows of a history from one on, as `reader`."""

    history: Node
    offset: int
    reader: Node

    def __call__(self, lowering: Lowering, at: Indices) -> Expression:
        if not isinstance(at[0], Index):
            raise NotPlain(self.reader)
        return Load(self.history, (plus(at[0], number(self.offset)), *at[1:]))


def _enter_versions(one: StepLoop, lowering: Lowering) -> None:
    """The versions of arrays that a step writes in place are read where they all lie."""
    for node in one.node.body.nodes:
        if node in one.places.holder and not node.is_input:
            lowering.stored.discard(node)
            lowering.elsewhere[node] = VersionOf(one.places, node, plus(one.step, number(1)))


def _compute_into(
    one: StepLoop, node: Node, storage: Node, row: Index, lowering: Lowering, outputs: set[Node]
) -> None:
    """Let a value of the body be computed into its row, unless it has a place already."""
    is_computed = node.operands and node.operator is not loop_result
    if node.operator is gemm or _may_be_row(node, one, outputs):
        lowering.stored.discard(node)
    if is_computed and node not in lowering.stored and node not in lowering.elsewhere:
        lowering.elsewhere[node] = RowOf(storage, row)
        one.in_storage[node] = storage, row


def _may_be_row(node: Node, one: StepLoop, outputs: set[Node]) -> bool:
    """Whether whatever reads a value may read it in a row: BLAS, and Python, take it from there."""
    has_rows = node.operator.family == "elementwise" or (runs_on_host(node) and node.spec.ndim > 0)
    return has_rows and node not in outputs and node not in one.merged


def _enter_result(
    one: StepLoop, index: int, readers: list[Node], lowering: Lowering, outputs: set[Node]
) -> None:
    output, carries = one.node.body.outputs[index], one.node.carries
    for reader in readers:
        if reader in one.places.holder:  # a version of what a loop around this one carries
            continue
        if index < carries:
            last = plus(of_symbol(one.count), number(one.first[index]))
            lowering.elsewhere[reader] = RowOf(one.histories[index], last)
            continue
        shift = _place_in_history(one, output)
        if shift is not None and reader not in outputs and reader not in one.viewed:
            lowering.stored.discard(reader)
            history, offset = shift
            lowering.rows[history] = history.shape[0]
            lowering.elsewhere[reader] = RowsFrom(history, offset, reader)
            continue
        first = one.stacks.setdefault(index, reader)
        lowering.stored.add(first)
        if reader is not first:
            lowering.elsewhere[reader] = Same(first)
        _compute_into(one, output, first, one.row, lowering, outputs)


def _place_in_history(one: StepLoop, output: Node) -> tuple[Node, int] | None:
    """The history that has a value as its rows, and from which row on."""
    if one.node.backwards or one.node.is_dynamic:
        return None
    for index, history in enumerate(one.histories):
        if history in one.places.chains:  # which has one row
            continue
        if output is one.node.body.inputs[index]:
            return history, one.first[index]
        if output is one.node.body.outputs[index]:
            return history, one.first[index] + 1
    return None


# --- places in the tree -------------------------------------------------------------------------------------


def inside_steps(items: list[Item], root: Root) -> list[Item]:
    """The items of the innermost loop over steps that a root belongs to."""
    for loop in root.steps:
        assert loop.steps is not None
        if loop not in items:
            items.append(loop)
        root.path.append(loop)
        root.bound[loop.steps] = loop
        items = loop.items
    return items


def keeps_from_vectors(loop: Item, source: Root, root: Root) -> bool:
    """Whether an expensive value would wait, one at a time, for totals of loops inside of the loop."""
    if not root.steps or not isinstance(source, Reduction) or source.path[-1] is loop or root.value is None:
        return False
    last = isinstance(loop, Loop) and bool(root.axes) and root.axes[-1].extent is loop.extent
    return last and arithmetic(root.value, set()) >= EXPENSIVE


# --- storage ------------------------------------------------------------------------------------------------


def rows_of_histories(loops: list[StepLoop], roots: list[Root], lowering: Lowering) -> dict[Node, int]:
    """How many rows each history has: all, or as many as are read later, which take turns.

    A new row takes the place of the oldest, unless somebody reads elements of that after they are written.
    """
    readers: dict[Node, list[Root]] = {}
    for root in roots:
        for node in {load.node for load in root.reads}:
            readers.setdefault(node, []).append(root)
    rows = dict(lowering.rows)
    for one in loops:
        for history in one.histories:
            if history in one.places.chains:
                rows[history] = 1
            elif history not in rows:
                in_place = all(
                    _reads_only_after(root, history, one) or _reads_in_place(root, history, one)
                    for root in readers.get(history, ())
                )
                rows[history] = delay_in(history) + (1 if in_place else 2)
    return rows


def _reads_only_after(root: Root, history: Node, one: StepLoop) -> bool:
    return all(load.indices[0] != one.step for load in root.reads if load.node is history)


def _reads_in_place(root: Root, history: Node, one: StepLoop) -> bool:
    """Whether a root writes each element of a history where it alone has read it."""
    if root.node is not history:
        return False
    oldest = [load for load in root.reads if load.node is history and load.indices[0] == one.step]
    return all(load.indices[1:] == root.target[1:] for load in oldest)


def small_extents(loops: list[StepLoop], extents: Extents) -> set[Symbol]:
    """The extents of small dimensions inside of loops, which machine code shall know."""
    inside = {symbol for one in loops for node in one.node.body.nodes for symbol in extents[node]}
    small = {symbol for symbol in inside if 1 < symbol.value <= SMALL and symbol.size is None}
    return small - {one.extent.find() for one in loops}


def is_from_before(load: Load, root: Root) -> bool:
    """Whether a root reads a carry as an earlier step has left it."""
    if not is_history(load.node):
        return False
    row, delay = load.indices[0], delay_in(load.node)
    return any(
        loop.steps is not None and row == plus(of_axis(loop.steps), number(ago))
        for loop in root.steps
        for ago in range(delay + 1)
    )


def is_history(node: Node) -> bool:
    return node.operator is loop_result and "spec" not in node.attributes
