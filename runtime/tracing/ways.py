"""The ways that the rows of a batch take through a function: one body of a loop over them.

What Python asks in the body (`while error > tolerance`) has an answer for each row. The function is traced
for a first row, with its values, then for each row of the call that takes a way which is not known yet. The
loops of all of them are rolled together (`codegen/rolling/turns.py`), and the ways become choices in the
body. It says of each row whether its way was one of these; that all were is a guard of the path, so a call
with a row that goes another way is traced once more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...tracer.errors import EagerOnlyError
from ...tracer.graph import Graph, Node, constant, make_input, name_results, substitute, toposort
from ...tracer.interpret import evaluate_graph
from ...tracer.merge import SharedNodes
from ...tracer.ops import elementwise as e
from ...tracer.ops.control import Body
from ...tracer.ops.reduction import all_
from ...tracer.origin import current_origin, located_at
from ...tracer.records import record
from ...tracer.spec import INT64
from ...tracer.trace import KNOWN_TURNS, ROWS, Guard, Trace, current_trace
from ..tape.bodies import BodyInput, BodyRun, TracedBody, body_of, outer_nodes, run_body, trace_body
from ..values.tensor import Tensor
from .counters import Counted, LoopCounters, counted
from .retracing import trace_counting
from .standpoints import Standpoints

if TYPE_CHECKING:
    from ...codegen.rolling.ways import Way

MOST_TREES = 4
"""Of rows that do not ask the same after the same answers: each is tried where those before know no way."""
REMEDY = "Use pullback.where, cond or while_loop for what values decide"


@record(frozen=True, eq=False)
class _Row:
    """A row that the function has been traced for."""

    place: int
    run: BodyRun
    first: int
    """The number of its first question."""


@record(frozen=True, eq=False)
class _Known:
    """The body for the rows that have been traced."""

    body: TracedBody
    asks: bool
    """Whether its last output says if the way of a row is known."""
    counters: LoopCounters
    counted: Counted = field(default_factory=Counted)
    notes: tuple[str, ...] = ()
    has_effects: bool = False


class RowsOfBatch:
    """What traces the bodies of loops over rows of batches.

    Args:
        rolls_turns: whether `while` loops may become loops of other numbers of turns than rows take.
    """

    def __init__(self, trace: Trace, standpoints: Standpoints, rolls_turns: bool) -> None:
        self.trace = trace
        self.standpoints = standpoints
        self.rolls_turns = rolls_turns

    def body(
        self,
        name: str,
        run: Callable[[list[Tensor]], Sequence[Any]],
        inputs: Sequence[BodyInput],
        stacks: Sequence[Tensor],
        alike: Callable[[int], list[Sequence[Tensor]]],
    ) -> tuple[TracedBody, bool]:
        """The body of a loop over the rows of stacks, and whether its last output says if a way is known.

        Args:
            alike: makes the results of the last so many runs alike, and gives their leaves.

        Raises:
            EagerOnlyError: rows take too many ways.
        """
        trace, counting = self.trace, self.standpoints.counting
        if trace.is_in_loop:
            return trace_body(name, run, inputs, may_draw=True), False
        following = _Following(self, name, run, inputs, stacks, alike)
        found = trace_counting(lambda answers, counters: following.known(counters), (), counting.counters)
        counting.count(found.counters)
        trace.notes += found.notes
        return found.body, found.asks


class _Following:
    """The rows of one loop, followed one after another."""

    def __init__(
        self,
        rows: RowsOfBatch,
        name: str,
        run: Callable[[list[Tensor]], Sequence[Any]],
        inputs: Sequence[BodyInput],
        stacks: Sequence[Tensor],
        alike: Callable[[int], list[Sequence[Tensor]]],
    ) -> None:
        self.rows = rows
        self.trace = rows.trace
        self.name = name
        self.run = run
        self.inputs = inputs
        self.stacks = [self._node_of(one) for one in stacks]
        self.alike = alike

    def _node_of(self, stack: Tensor) -> Node:
        value = stack.payload
        return value if isinstance(value, Node) else self.trace.capture(value)

    def known(self, counters: LoopCounters) -> _Known:
        """The body for all rows of the call."""
        from ...codegen.rolling.ways import MOST_WAYS  # not at start

        self.rows.standpoints.counting.count(counters)
        self.asked: list[Guard] = []
        self.traced: list[_Row] = []
        self._trace_row(0)
        if not self.asked:
            (one,) = self.traced
            return _Known(body_of(self.name, [one.run], one.run.outputs), False, counters)
        if not self.rows.rolls_turns:
            raise EagerOnlyError(
                f"{self.name}: loops of the rows of a batch hold for no other rows, as the function writes "
                f"outside of itself, or code rounds otherwise than NumPy. {REMEDY}."
            )
        place: int | None = 0
        while place is not None:
            if place:
                self._trace_row(place)
            found = self._found()
            place = self._unknown_after(place, found.body)
            if len(self.traced) == MOST_WAYS and place is not None:
                raise EagerOnlyError(
                    f"{self.name}: the rows of a batch take more than {MOST_WAYS} ways through what they "
                    f"compute, which values decide at {self.asked[0].origin.place}. {REMEDY}."
                )
        return found

    def _trace_row(self, place: int) -> None:
        """Trace the function for one row of the call."""
        trace = self.trace
        first, drawn = len(self.asked), len(trace.drawn)
        trace.asked_of_rows.append(self.asked)

        def give_row(inputs: Sequence[Node]) -> None:
            for node, stack in zip(inputs, self.stacks):
                trace.give_row(node, stack, place)

        try:
            run = run_body(self.name, self.run, self.inputs, may_draw=True, prepare=give_row)
        finally:
            trace.asked_of_rows.pop()
        if self.asked and len(trace.drawn) > drawn:
            raise EagerOnlyError(
                f"{self.name}: the rows of a batch draw random numbers, and take ways that values decide. "
                f"{REMEDY}."
            )
        self.traced.append(_Row(place, run, first))

    # --- from what was traced to a body -------------------------------------------------------------------

    def _found(self) -> _Known:
        """The body for the rows that have been traced."""
        from ...codegen.rolling.turns import roll_turns  # not at start

        trace, counting = self.trace, self.rows.standpoints.counting
        self.rows.standpoints.forget_returned()
        found = self.alike(len(self.traced))
        runs = [replace(one.run, leaves=list(leaves)) for one, leaves in zip(self.traced, found)]
        outputs = [one.outputs for one in runs]
        starts = [one.first for one in self.traced]
        equal = trace.equal_captured()
        every = [node for nodes in outputs for node in nodes]
        rolled = roll_turns(every, self.asked, equal, trace.capture, starts)
        waiting = iter(rolled.outputs)
        ways = []
        for nodes, first, stop in zip(outputs, starts, (*starts[1:], len(self.asked))):
            guards = rolled.guards[rolled.place(first) : rolled.place(stop)]
            ways.append((guards, [next(waiting) for _ in nodes]))
        made = _Ways(self.name, runs, ways, equal)
        lengths = [stop - first for first, stop in zip(starts, (*starts[1:], len(self.asked)))]
        for row in sorted(range(len(runs)), key=lengths.__getitem__, reverse=True):
            if not made.enter(row):
                place = self.traced[row].place
                if self._unknown_after(place, made.body(), only_one=True) is not None:
                    made.begin(row)  # else it is one that takes no turn of a loop in which others take some
        asks_identity = self.rows.standpoints.asks_identity
        numbers = counted(self.asked, rolled.guards, rolled.numbers, counting.ranges, asks_identity)
        return _Known(made.body(), True, counting.counters, numbers, rolled.notes)

    def _unknown_after(self, first: int, body: TracedBody, only_one: bool = False) -> int | None:
        """The first row of the call from some place on whose way is not known."""
        from ...codegen.rolling.bodies import prune_loops  # not at start

        given = [self._value(one.payload) for one in body.constants]
        stacks = [self._value(one) for one in self.stacks]
        graph = prune_loops(Graph(self.name, body.inputs, body.outputs[-1:]))
        for place in range(first, first + 1 if only_one else len(stacks[0])):
            if not Context().run(_is_true, graph, [*(one[place] for one in stacks), *given]):
                return place
        return None

    def _value(self, value: Any) -> np.ndarray:
        known = self.trace.values.of(value) if isinstance(value, Node) else value
        assert known is not None  # or it would not have been known what rows answer
        return known


@np.errstate(all="ignore")
def _is_true(graph: Graph, values: Sequence[np.ndarray]) -> bool:
    """Whether a graph, evaluated outside of the trace, gives true."""
    try:
        return bool(evaluate_graph(graph, values)[0])
    except IndexError:  # on a way of other rows
        return False


class _Ways:
    """The body that ways are put together to.

    Args:
        ways: of each row what it asked, and its results.
        equal: of inputs the ones that always have the same value.
    """

    def __init__(
        self,
        name: str,
        runs: Sequence[BodyRun],
        ways: Sequence[tuple[Sequence[Guard], Sequence[Node]]],
        equal: Mapping[Node, Node],
    ) -> None:
        from ...codegen.derivatives.taken import Taken  # not at start
        from ...codegen.rewriting.split_complex import Split

        self.name = name
        self.runs = runs
        self.origin = ways[0][0][0].origin
        self.inputs = {mine: one for run in runs for mine, one in zip(run.inputs, runs[0].inputs)}
        self.outside: dict[Node, Node] = {}
        """What stands for what is there outside, and that."""
        every = [node for asked, results in ways for node in (*results, *(one.node for one in asked))]
        places: dict[Node, Node] = {}
        for node in outer_nodes(every, {*self.inputs}, runs[0].start):
            same = equal.get(node, node)
            places[node] = same
            if same.is_input or same is node:
                places[node] = next((one for one, known in self.outside.items() if known is same), node)
                if places[node] is node:
                    places[node] = make_input(same.spec, same.name, same.origin)
                    self.outside[places[node]] = same
        shared = SharedNodes()
        self.ways: list[tuple[list[tuple[Node, Guard]], tuple[Node, ...]]] = []
        for asked, results in ways:
            values = substitute([*results, *(one.node for one in asked)], self.inputs | places)
            taken = Taken(Split(name_results(Graph(name, (), values)), joins=True).graph).outputs
            new = shared.merge(taken, {})
            kept = [new.get(node, node) for node in taken]
            self.ways.append(([*zip(kept[len(results) :], asked)], tuple(kept[: len(results)])))
        self.trees: list[Way] = []

    def enter(self, row: int) -> bool:
        """Enter the way of a row where it belongs; False if there is no such place."""
        from ...codegen.rolling.ways import Way  # not at start

        asked, results = self.ways[row]
        questions = [(node, guard.answer) for node, guard in asked]
        tree = next((one for one in self.trees if one.agrees(questions)), None)
        if tree is None and self.trees:
            return False
        if tree is None:
            self.trees.append(tree := Way())
        for node, guard in asked:
            tree = tree.goes_on(node, guard.answer, guard.origin)
        if tree.after and tree.after != results:
            raise EagerOnlyError(
                f"{self.name}: rows with the same answers compute other things, at {self.origin.place}. "
                f"{REMEDY}."
            )
        tree.after = results
        return True

    def begin(self, row: int) -> None:
        """Enter the way of a row, which asks other things, in a tree of its own.

        Raises EagerOnlyError where there are too many.
        """
        if len(self.trees) == MOST_TREES:
            raise EagerOnlyError(
                f"{self.name}: the rows of a batch ask different things, which are first asked at "
                f"{self.origin.place}. {REMEDY}."
            )
        trees, self.trees = self.trees, []
        self.enter(row)
        self.trees[:0] = trees

    def body(self) -> TracedBody:
        """The body: its results, then whether the way is known."""
        from ...codegen.rolling.ways import TRUTH, chosen, replaced_if  # not at start

        with located_at(self.origin):
            computed = {*self.runs[0].inputs, *self.outside}
            known = constant(True, TRUTH)
            found: list[Node] = []
            for tree in self.trees:
                more = chosen(tree, computed, lambda way, _: [known, *way.after], flags=1)
                if found:
                    more = replaced_if(e.logical_not(found[0]), found, more, computed, self.origin)
                found = more
                computed |= {*toposort(found, known=computed), *found}
        found = [*substitute(found, self.outside)]
        return body_of(self.name, self.runs, [*found[1:], found[0]])


def require_known(known: Tensor, body: Body) -> None:
    """Let the trace hold for calls of whose rows all take known ways.

    Args:
        known: of each row whether it does.
    """
    node = known.payload
    assert isinstance(node, Node)
    answer = e.convert(all_(node, dims=(0,), keepdim=False), dtype=INT64)
    current_trace().require(
        Guard(answer, np.array(KNOWN_TURNS), ROWS, current_origin(), turns=body.structure)
    )


__all__ = ["RowsOfBatch", "require_known"]
