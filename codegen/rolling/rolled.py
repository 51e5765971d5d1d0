"""The graph with stretches of it replaced by loop nodes, everything else in the order that it had."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any

from pullback.tracer.dims import Dim, formula_of, lost
from pullback.tracer.graph import Graph, Node, constant, make_input, new_node
from pullback.tracer.loop import LoopNode, is_loop, make_loop
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.composite import stack
from pullback.tracer.ops.windows import PLACE
from pullback.tracer.origin import located_at
from pullback.tracer.spec import Spec

from ...tracer.records import record
from ..rewriting.slices import part_of
from .periods import CannotRoll, window_for
from .progressions import Progression
from .ragged import Value, padded_shape, ragged_value, starts_in_step
from .ragged_loops import padded_loop
from .rows import counter, progression_of_constants, rows_of_nodes, rows_of_slices
from .steps import Carried, Fixed, Local, Operand, Row, StepsOfLoop


class CannotRollLoop(Exception):
    """A loop that cannot be made after all, and why."""

    def __init__(self, loop: StepsOfLoop, reason: str) -> None:
        super().__init__(reason)
        self.loop = loop


@record
class RolledGraph:
    """The graph with some stretches replaced, everything else in the order that it had."""

    old: Graph
    sequence: Sequence[Node]
    place: dict[Node, int]
    loops: Sequence[StepsOfLoop]
    new: dict[Node, Node] = field(default_factory=dict)
    rows: dict[Node, tuple[Node, int]] = field(default_factory=dict)
    """Old values of single steps: the stack that they are in now, and their row."""

    def __post_init__(self) -> None:
        self.inside: set[Node] = set()
        self.used_outside = self._used_outside()
        index = self.loops[0].start
        for loop in self.loops:
            self._copy(self.sequence[index : loop.start])
            try:
                _MadeLoop(self, loop).hand_out()
            except CannotRoll as reason:
                raise CannotRollLoop(loop, str(reason)) from None
            index = loop.stop
        self._copy(self.sequence[index:])
        self.graph = self.old.with_outputs([self.value(output) for output in self.old.outputs])

    def _used_outside(self) -> set[Node]:
        """The values of loops that something outside of their loop reads."""
        owner: list[int | None] = [None] * (len(self.sequence) + 1)  # at the end that of all else
        for number, loop in enumerate(self.loops):
            owner[loop.start : loop.stop] = [number] * (loop.stop - loop.start)
        place = self.place.get
        replaced = {old: (made, loop.stop) for loop in self.loops for old, made in loop.replaced.items()}
        used: set[Node] = set()
        readers = [
            *((node.operands, mine) for mine, node in zip(owner, self.sequence)),
            (self.old.outputs, None),
        ]
        for index, (operands, mine) in enumerate(readers):
            for value in operands:
                if value in replaced:
                    made, stop = replaced[value]
                    value = made if index >= stop else value
                theirs = owner[place(value, -1)]
                if theirs is not None and theirs != mine:
                    used.add(value)
        return used

    def value(self, node: Node) -> Node:
        """What a node of the old graph is in the new one."""
        if node not in self.new:
            if node in self.rows:
                self.new[node] = _row(*self.rows[node], node)
            elif node in self.inside:  # a slice of what the loop does not change
                self.new[node] = self._remade(node)
            else:
                self.new[node] = node
        return self.new[node]

    def _remade(self, node: Node) -> Node:
        operands = tuple(map(self.value, node.operands))
        return new_node(node.operator, operands, node.attributes, node.spec, node.origin, node.name)

    def _copy(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if node.operator is m.reshape and node.operands[0] in self.rows:
                self.inside.add(node)  # made when something but a stack of all asks for it
            elif node.operator in (m.concatenate, stack) and (stacked := self._stacked(node)) is not None:
                self.new[node] = stacked.named(node.name)
            else:
                self.new[node] = self._remade(node)

    def _stacked(self, node: Node) -> Node | None:
        """Values concatenated or stacked, those of consecutive steps as they lie already; None if none do."""
        runs: list[list[Node]] = []
        before: tuple[Node | None, int] = (None, 0)
        for operand in node.operands:
            source = operand.operands[0] if operand.operator is m.reshape else operand
            rows, row = self.rows.get(source, (None, 0))
            if rows is not None and (rows, row - 1) == before:
                runs[-1].append(operand)
            else:
                runs.append([operand])
            before = (rows, row)
        if all(len(run) == 1 for run in runs):
            return None
        dim = node.attributes["dim"] % node.spec.ndim
        with located_at(node.origin):
            parts = [self._part(run, node, dim) for run in runs]
            return parts[0] if len(parts) == 1 else m.concatenate(*parts, dim=dim)

    def _part(self, run: Sequence[Node], whole: Node, dim: int) -> Node:
        """A run of consecutive rows as a part of what they are concatenated or stacked to."""
        piece = run[0].shape
        shape = list(whole.shape)
        shape[dim] = len(run) * (piece[dim] if whole.operator is m.concatenate else 1)
        if len(run) == 1:
            return m.reshape(self.value(run[0]), shape=tuple(shape))
        ends = [one.operands[0] if one.operator is m.reshape else one for one in (run[0], run[-1])]
        rows, first = self.rows[ends[0]]
        part = m.reshape(m.between(rows, 0, first, self.rows[ends[1]][1] + 1), shape=(len(run), *piece))
        order = (*range(1, dim + 1), 0, *range(dim + 1, len(piece) + 1))
        return m.reshape(m.permute(part, dims=order), shape=tuple(shape))


def _row(rows: Node, row: int, like: Node) -> Node:
    with located_at(like.origin):
        return m.reshape(m.between(rows, 0, row, row + 1), shape=like.shape)


class _MadeLoop:
    """One stretch as a loop node."""

    def __init__(self, graph: RolledGraph, loop: StepsOfLoop) -> None:
        self.graph, self.loop = graph, loop
        self.period, self.steps = loop.stretch.period, loop.stretch.steps
        self.first = graph.sequence[loop.start : loop.start + self.period]
        for node in graph.sequence[loop.start : loop.stop]:
            graph.inside.add(node)
        for offset in sorted(loop.invariant):
            graph.new[self.first[offset]] = graph._remade(self.first[offset])
            for node in self.column(offset)[1:]:
                graph.new[node] = graph.new[self.first[offset]]
        self.carries: dict[Any, tuple[Node, int, int]] = {}
        """By what they carry and start with: the body's input, the operation carried, and how long ago."""
        self.inits: list[Node] = []
        self.stacked: dict[Any, tuple[Node, Node]] = {}
        self.constants: dict[Node, Node] = {}
        self.lifted: dict[Any, tuple[Node, Node]] = {}
        """Numbers that the steps start with: the body's input, and the number."""
        self.values: list[Node | None] = [None] * self.period
        self.ragged: dict[int, Value] = {}
        with located_at(self.first[-1].origin):
            self._make_body()
            self._make_loop()

    def column(self, offset: int) -> Sequence[Node]:
        return self.graph.sequence[self.loop.start + offset : self.loop.stop : self.period]

    def _make_body(self) -> None:
        for offset, operands in enumerate(self.loop.operands):  # carries are inputs whoever comes first
            for one in operands:
                if isinstance(one, Carried) and offset not in self.loop.invariant:
                    self._carry(one)
        for offset, node in enumerate(self.first):
            if offset in self.loop.invariant:
                continue
            if offset in self.loop.slices:
                self.values[offset] = self._row_input(("slice", offset), node, offset)
                continue
            made = tuple(
                self._operand(one, (offset, slot)) for slot, one in enumerate(self.loop.operands[offset])
            )
            model = self.column(offset)[-1]  # the first step may have other names
            if offset in self.loop.ragged:
                self.values[offset] = self._ragged(offset, made, model)
                continue
            if offset in self.loop.windows:
                self.values[offset] = self._window(offset, made, model)
                continue
            self.values[offset] = new_node(
                node.operator, made, node.attributes, node.spec, model.origin, model.name
            )

    def _operand(self, operand: Operand, where: tuple[int, int]) -> Node:
        if isinstance(operand, Local):
            made = self.values[operand.offset]
            return made if made is not None else self._constant(self.graph.value(self.first[operand.offset]))
        if isinstance(operand, Carried):
            return self._carry(operand)
        if isinstance(operand, Fixed):
            return (
                operand.node if operand.node.is_constant else self._constant(self.graph.value(operand.node))
            )
        return self._rows_from_outside(operand, where)

    def _window(self, offset: int, made: tuple[Node, ...], model: Node) -> Node:
        """A slice, or a write, at a place that is computed from the number of the step.

        Where it begins in the first step is a constant of the loop, not of its body: a loop around this one
        may have it advance.
        """
        starts = starts_in_step(self.column(offset), part_of(model).shape, self._advancing, (offset,))
        return window_for(model, made, starts)

    def _ragged(self, offset: int, made: tuple[Node, ...], model: Node) -> Node:
        """An operation whose extents differ between steps."""
        extents = self.loop.ragged[offset]
        operands = tuple(
            self.ragged.get(operand.offset if isinstance(operand, Local) else -1, Value(node, {}))
            for operand, node in zip(self.loop.operands[offset], made)
        )
        if is_loop(model):
            return padded_loop(self.column(offset), operands, self._advancing, (offset,))
        shape = padded_shape(part_of(model), extents)
        is_window = offset in self.loop.windows
        starts = starts_in_step(self.column(offset), shape, self._advancing, (offset,)) if is_window else ()
        self.ragged[offset] = ragged_value(model, operands, extents, starts, self._advancing, (offset,))
        return self.ragged[offset].node

    def _advancing(self, numbers: Progression, spec: Spec, key: Any) -> Node:
        """The number of a progression in a step."""
        if key not in self.lifted:
            self.lifted[key] = make_input(spec, ""), constant(numbers.first, spec)
        first = self.lifted[key][0]
        if not numbers.advance:
            return first
        number = self._counter()
        if numbers.cycle:
            number = e.remainder(number + constant(numbers.phase, PLACE), constant(numbers.cycle, PLACE))
        if spec.dtype != number.dtype:
            number = e.convert(number, dtype=spec.dtype)
        return first + constant(numbers.advance, Spec((), spec.dtype)) * number

    def _counter(self) -> Node:
        """The number of the step."""
        if "counter" not in self.stacked:
            self.stacked["counter"] = make_input(PLACE, "step"), counter(self.steps)
        return self.stacked["counter"][0]

    def _constant(self, node: Node) -> Node:
        if node not in self.constants:
            self.constants[node] = make_input(node.spec, node.name, node.origin)
        return self.constants[node]

    def _carry(self, operand: Carried) -> Node:
        inits = tuple(map(self.graph.value, operand.inits))
        found = None
        for lag in range(1, operand.lag + 1):  # one for each step ago; the last is what is asked for
            key = (operand.offset, tuple(map(_identity, inits[len(inits) - lag :])))
            if key not in self.carries:
                model = self.column(operand.offset)[-1]
                self.carries[key] = (make_input(model.spec, model.name, model.origin), operand.offset, lag)
                self.inits.append(inits[len(inits) - lag])
            found = self.carries[key][0]
        assert found is not None
        return found

    def _row_input(self, key: Any, node: Node, offset: int) -> Node:
        """The rows of a slice that advances."""
        column = self.column(offset)
        base = self.graph.value(node.operands[0])
        rows = rows_of_slices(column, base)
        if rows is None:
            raise AssertionError("checked before")
        made = make_input(node.spec, node.name or base.name, node.origin)
        self.stacked[key] = made, rows
        return made

    def _rows_from_outside(self, operand: Row, where: Any) -> Node:
        first = operand.nodes[0]
        numbers = progression_of_constants(operand.nodes)
        if numbers is not None:
            return self._advancing(numbers, first.spec, where)
        key = ("rows", tuple(map(id, operand.nodes)))
        if key not in self.stacked:
            rows = rows_of_nodes(operand.nodes, self.graph.value)
            self.stacked[key] = make_input(first.spec, first.name, first.origin), rows
        return self.stacked[key][0]

    # --- results ------------------------------------------------------------------------------------------

    def _make_loop(self) -> None:
        outputs = [self._carried_on(key) for key in self.carries]
        self.finals: dict[Node, int] = {}
        self.stacks: dict[int, int] = {}
        inits, carries = list(self.inits), [one[0] for one in self.carries.values()]
        for position, (_, offset, lag) in enumerate(self.carries.values()):
            self.finals.setdefault(self.column(offset)[-lag], position)
        stacks: list[Node] = []
        for offset in range(self.period):
            used = [node for node in self.column(offset) if node in self.graph.used_outside]
            value = self.values[offset]
            if used and is_loop(used[0]):
                raise CannotRoll("something else reads the results of a loop inside")
            if value is None or offset in self.loop.slices or all(node in self.finals for node in used):
                continue
            if used == [self.column(offset)[-1]]:
                self.finals[used[0]] = len(carries)
                carries.append(make_input(value.spec, value.name, value.origin))
                inits.append(constant(0, value.spec))
                outputs.append(value)
            else:
                self.stacks[offset] = len(stacks)
                stacks.append(value)
        lifted = self.lifted.values()
        inputs = (
            *carries,
            *(one for one, _ in self.stacked.values()),
            *self.constants.values(),
            *(one for one, _ in lifted),
        )
        origin = self.first[0].origin
        body = Graph(f"{self.graph.old.name}_step", inputs, (*outputs, *stacks), origin)
        rows = [rows for _, rows in self.stacked.values()]
        constants = [*self.constants, *(start for _, start in lifted)]
        known = [one.shape[0] for one in rows if isinstance(one.shape[0], Dim)]
        length = known[0] if known else lost(self.steps, "steps")  # which is no number of the user's
        self.made: LoopNode = make_loop(body, inits, rows, constants, length, origin)
        self.results = self.made.results
        self.stacks = {offset: len(carries) + index for offset, index in self.stacks.items()}

    def _carried_on(self, key: Any) -> Node:
        """What a carry is after a step: the value itself, or the carry that is one step younger."""
        offset, inits = key
        if len(inits) > 1:
            return self.carries[offset, inits[1:]][0]
        value = self.values[offset]
        if value is None:
            return self._constant(self.graph.value(self.first[offset]))
        return value

    def hand_out(self) -> None:
        for node, position in self.finals.items():
            self.graph.new[node] = self.results[position]
        for offset, position in self.stacks.items():
            for row, node in enumerate(self.column(offset)):
                self.graph.rows[node] = self.results[position], row
        for old, made in self.loop.replaced.items():
            if made in self.graph.rows:
                self.graph.rows[old] = self.graph.rows[made]
                self.graph.new.pop(old, None)


def _identity(node: Node) -> Any:
    if node.is_constant:
        return repr(node.attributes["value"]), formula_of(node.attributes["value"]), node.spec
    return node
