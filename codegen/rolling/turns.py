"""The turns of a `while` loop that values steer, rolled: one loop for any number of turns.

A trace follows the answers of one call, so it has as many turns as that call takes. Where Python stands at
the start of two turns (the same instruction, the same variables but for the values of tensors:
`Standpoint`), it goes on in the same way, as far as it gets the same answers. So turns that end where they
began can be repeated, in any order and number: the trace becomes a loop, which goes on while the question
at the start of a turn is answered as before. In a turn, further questions (a step is accepted or not)
choose among the ways that the trace has seen. A call that takes another way ends the loop and says so: the
answer to the loop's own guard is whether all was known.

Where Python's variables differ from turn to turn, as a counter does, or nothing tells whether they do, each
number of turns is traced once. What is traced is rolled as well, if the turns are alike; where it gives a
program that is there, this runs from then on for one more number of turns (`Guard.counts`), and nothing is
compiled.

`while_runs.py` finds the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from pullback.tracer.graph import (
    Graph,
    Node,
    Order,
    constant,
    made_anew,
    make_input,
    make_node,
    serial_of,
    toposort,
    with_operands,
)
from pullback.tracer.loop import make_loop
from pullback.tracer.merge import SharedNodes
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops.control import DERIVATIVES, UNKNOWN_LENGTH
from pullback.tracer.ops.creation import iota
from pullback.tracer.ops.reduction import any_
from pullback.tracer.origin import located_at
from pullback.tracer.spec import INT64, Spec
from pullback.tracer.trace import ENDLESS_TURNS, KNOWN_TURNS, UNKNOWN_TURN, Guard

from .ways import MOST_WAYS, TRUTH, Way, chosen, closed, has_answer
from .while_runs import Refused, RolledTurns, Run, is_same_state, next_runs

COUNT = Spec((), INT64)


MOST_WORK = 1 << 30
"""Elements that a loop computes, some seconds of work, before Python takes its place: code rounds otherwise
than NumPy, so that a loop may go on for ever that ends in Python ..."""
FEWEST_ENDLESS = 1 << 14
"""... and turns that it takes at least."""

MOST_REFUSED = 8
"""Loops that cannot be rolled before the trace stays as it is: each takes time that its length decides."""
LARGEST_COUNT = 1 << 10
"""From which numbers of turns are not known, where each is traced."""


class CannotRollTurns(Exception):
    """Why the turns of a loop stay as they were traced."""


class _Values(SharedNodes):
    """Nodes, one of those that are the same value: what variables have of their own is what it is made of."""

    def made(self, node: Node, operands: tuple[Node, ...]) -> Node:
        return operands[0] if node.operator is e.identity else super().made(node, operands)


Capture = Callable[[np.ndarray], Node]


def roll_turns(
    outputs: Sequence[Node],
    guards: Sequence[Guard],
    equal: Mapping[Node, Node],
    capture: Capture,
    starts: Sequence[int] = (),
) -> RolledTurns:
    """Roll the `while` loops of a trace, inner ones first.

    Args:
        equal: of inputs the ones that always have the same value.
        capture: makes an array that may change later an input.
        starts: where the questions of parts begin that know nothing of each other. Then no loop is rolled
            that holds for the numbers of turns alone which one of them takes.
    """
    numbers = tuple(range(len(guards)))
    given = RolledTurns(tuple(outputs), tuple(guards), numbers, starts=tuple(starts) or (0,))
    refused = Refused()
    done, waiting = given, set[int | None]()
    while refused.attempts < MOST_REFUSED:
        runs = next_runs(done, refused)
        if not runs and not waiting:
            return done if done is not given else replace(done, notes=refused.notes)
        try:
            if not runs:
                raise CannotRollTurns("what Python holds after the loops in it differs")
            done = _Rolled(done, runs, equal, capture, of_any=bool(starts)).result
            waiting = (waiting | {one.outer for one in runs}) - {None, *(one.end for one in runs)}
        except CannotRollTurns as reason:
            refused.enter(runs or [Run((end,)) for end in waiting if end is not None], guards, str(reason))
            if waiting:  # for a loop that is none, without which a wrong path may run those in it
                done, waiting = given, set()
    return replace(given, notes=refused.notes)


class _Rolled:
    """One loop of a trace, rolled.

    Args:
        runs: where its turns begin, and where they end.
        of_any: whether it must hold for any number of turns.
    """

    def __init__(
        self,
        trace: RolledTurns,
        runs: Sequence[Run],
        equal: Mapping[Node, Node],
        capture: Capture,
        of_any: bool = False,
    ) -> None:
        self.trace = trace
        self.runs = runs
        turns = [(run, head, following) for run in runs for head, following in pairwise(run.heads)]
        run, head, _ = turns[0]
        self.first = trace.guard(head)
        is_any = is_same_state(self.first, trace.guard(run.end))
        if of_any and not is_any:
            raise CannotRollTurns("what Python holds differs from turn to turn")
        self.counts = None if is_any else np.zeros(LARGEST_COUNT, np.bool_)
        self.capture = capture
        self.shared = _Values()
        asked = [guard.node for guard in trace.guards]
        states = [node for run in runs for head in run.heads for node in trace.state(head)]
        self.same = self.shared.merge((*trace.outputs, *asked, *states), equal)
        """Of each node of the trace the one that stands for all that compute the same."""
        self._find_places()
        self.root = Way()
        for turn in reversed(turns):
            self._enter(*turn)
        for turn in turns:
            self._require_known(*turn)
        if self.root.count > MOST_WAYS:
            raise CannotRollTurns(f"it has more than {MOST_WAYS} ways through a turn")
        if self.counts is not None:
            if self.root.count > 1 or len(turns) >= LARGEST_COUNT:
                raise CannotRollTurns("its turns differ, and what Python holds does too")
            self.counts[len(turns)] = True
        self.result = self._made()

    def _find_places(self) -> None:
        """Find what turns change of the variables, and what differs between runs.

        Variables that are always the same value are one.
        """
        states = [[[*map(self.same.get, self.trace.state(head))] for head in run.heads] for run in self.runs]
        columns = [tuple(zip(*run)) for run in states]
        first = self.trace.guard(self.runs[0].heads[0]).standpoint
        assert first is not None
        found: dict[Any, int] = {}
        self.carried: list[int] = []
        """Of the variables that turns change the first that has the value."""
        self.inputs: list[Node] = []
        """What stands for them."""
        self.places: list[Node | None] = []
        """For each variable what stands for it; None for what is the same in all runs."""
        for slot, ((name, node), *values) in enumerate(zip(first.variables, *columns)):
            changes = any(len(set(column)) > 1 for column in values)
            same = found.setdefault(tuple(values), slot)
            if same < slot:
                self.places.append(self.places[same])
            elif changes or len({column[0] for column in values}) > 1:
                self.places.append(make_input(node.spec, name))
            else:
                self.places.append(None)
            if changes and same == slot:
                self.carried.append(slot)
                self.inputs.append(self.places[slot])  # type: ignore[arg-type]
        self.outside: list[dict[Node, Node]] = [{} for _ in self.runs]
        """Of each run what turns read of what was there before it, by what stands for it."""
        for run, outside in zip(self.runs, self.outside):
            for place, node in zip(self.places, self.trace.state(run.heads[0])):
                if place not in self.inputs:
                    outside[self.same[node] if place is None else place] = node

    @property
    def before(self) -> set[Node]:
        """All that stands for what was there before the runs."""
        return set[Node]().union(*self.outside)

    # --- turns as functions of what is carried --------------------------------------------------------------

    def _enter(self, run: Run, head: int, following: int) -> None:
        """Enter the way that a turn takes, unless it is known."""
        questions = self._questions(head, following)
        found = self._expressed(run, head, [*(one.node for one in questions), *self._left_by(following)])
        if found is None:
            return
        way = self.root
        for guard, node in zip(questions, found):
            if guard.node.spec.shape or guard.node.spec.is_float:
                raise CannotRollTurns(f"a number is asked for ({guard.origin.place})")
            if guard.counts is not None:
                raise CannotRollTurns(f"numbers of turns in it are not known ({guard.origin.place})")
            if way.after or way.question not in (None, node):
                raise CannotRollTurns("a turn asks for other things after the same answers")
            way = way.goes_on(node, guard.answer, guard.origin)
        if way.question is not None:
            raise CannotRollTurns("a turn ends where another one asks")
        way.after = way.after or found[len(questions) :]

    def _questions(self, head: int, following: int) -> Sequence[Guard]:
        """What is asked within a turn."""
        return self.trace.guards[self.trace.place(head) + 1 : self.trace.place(following)]

    def _left_by(self, following: int) -> list[Node]:
        """What a turn leaves to the next one: its question, and what is carried."""
        return [self.trace.guard(following).node, *self._carried_at(self.trace, following)]

    def _carried_at(self, trace: RolledTurns, head: int) -> list[Node]:
        state = trace.state(head)
        return [state[slot] for slot in self.carried]

    def _expressed(self, run: Run, head: int, wanted: Sequence[Node]) -> tuple[Node, ...] | None:
        """What a turn computes, of inputs for what is carried, and of what was there before the loop.

        None where a carried value is another one as well, so that nothing tells which of them is read.
        """
        new: dict[Node, Node] = {}
        for place, node in zip(self.places, self.trace.state(head)):
            stands = self.same[node] if place is None else place
            if new.setdefault(node, stands) is not stands or (node.is_input and place is not None):
                return None
        outside = self.outside[self.runs.index(run)]
        start, before = (self.trace.guard(number).serial for number in (head, run.heads[0]))
        inside: set[Node] = set()
        pending = list(wanted)
        while pending:
            node = pending.pop()
            if node in new or node in inside:
                continue
            if node.is_input or node.is_constant or node.serial < before:
                new[node] = self.same[node]
                outside[new[node]] = node
            elif node.serial < start:
                raise CannotRollTurns("a turn reads what no variable holds at its start")
            elif node.operator in DERIVATIVES or node.dtype.kind == "c":
                raise CannotRollTurns(f"a turn computes a {node.operator.name} of {node.dtype}")
            else:
                inside.add(node)
                pending.extend(node.operands)
        for node in sorted(inside, key=serial_of):
            new[node] = self.shared.made(node, tuple(new[operand] for operand in node.operands))
        return tuple(new[node] for node in wanted)

    def _require_known(self, run: Run, head: int, following: int) -> None:
        """Raise CannotRollTurns unless the way of this turn, begun with its values, computes what it did."""
        way, values = self.root, (self.same[node] for node in self.trace.state(head))
        computed = {place: value for place, value in zip(self.places, values) if place is not None}
        before = self.before
        pairs = []
        for guard in self._questions(head, following):
            if way.question is None or guard.answer.tobytes() not in way.answers:
                raise CannotRollTurns("a turn takes a way that it takes with values from outside alone")
            pairs.append((way.question, guard.node))
            way = way.answers[guard.answer.tobytes()][1]
        for node, traced in (*pairs, *zip(way.after, self._left_by(following))):
            if self._begun_with(node, computed, before) is not self.same[traced]:
                raise CannotRollTurns("its turns are not alike")
        if not way.after:
            raise CannotRollTurns("a turn takes a way that it takes with values from outside alone")

    def _begun_with(self, wanted: Node, computed: dict[Node, Node], before: AbstractSet[Node]) -> Node:
        """The value of a turn, given those of its inputs; what is found on the way is entered."""
        for node in toposort((wanted,), known={*computed, *before}):
            operands = tuple(computed.get(operand, operand) for operand in node.operands)
            computed[node] = self.shared.made(node, operands)
        return computed.get(wanted, wanted)

    # --- the loop -------------------------------------------------------------------------------------------

    def _made(self) -> RolledTurns:
        """The trace with loops in the place of the runs."""
        trace = self.trace
        with located_at(self.first.origin):
            body, read = self._body()
        common = dict(item for outside in reversed(self.outside) for item in outside.items())
        given = [[outside.get(node, common[node]) for node in read] for outside in self.outside]
        self.read = self._read_after()
        for number, run in enumerate(self.runs):
            trace, new = self._replaced(trace, run, body, given[number])
            given = [[new.get(node, node) for node in nodes] for nodes in given]
        return replace(trace, notes=(*trace.notes, self._note()))

    def _read_after(self) -> set[Node]:
        """What stands for the variables that are read after runs of some turns."""
        found: set[Node] = set()
        for run in self.runs:
            if len(run.heads) > 1:
                end = self.trace.guard(run.end).serial
                later = self.trace.guards[self.trace.place(run.end) + 1 :]
                wanted = {*self.trace.outputs, *(guard.node for guard in later)}
                wanted |= {node for one in later if one.standpoint for _, node in one.standpoint.variables}
                read = wanted | {operand for node in toposort(wanted, end) for operand in node.operands}
                pairs = zip(self.trace.state(run.end), self.places)
                found |= {place for node, place in pairs if place is not None and node in read}
        return found

    def _replaced(
        self, trace: RolledTurns, run: Run, body: Graph, given: Sequence[Node]
    ) -> tuple[RolledTurns, dict[Node, Node]]:
        """The trace with a loop in the place of a run, and what has become of the nodes behind it."""
        first, start = trace.guard(run.heads[0]), trace.place(run.heads[0])
        if not all(node.is_input or node.is_constant or node.serial < first.serial for node in given):
            raise CannotRollTurns("a turn reads what there is in other runs alone")
        with located_at(self.first.origin):
            known, count = constant(True, TRUTH), constant(0, COUNT)
            begins = self._begins(first, trace.guards[trace.place(run.since + 1) : start])
            inits = [begins, count, known, *self._carried_at(trace, run.heads[0])]
            loop = make_loop(body, inits, [], given, UNKNOWN_LENGTH, self.first.origin, goes_on=True)
            results = loop.results
            kind = self._kind(results[1], results[2])
        stop = trace.place(run.end) + 1
        later, order = trace.guards[stop:], Order()
        new = self._after(trace, run, results[3:], later, order)
        structure, answer = loop.node.attributes["body"].structure, np.array(KNOWN_TURNS)
        known_ways = Guard(kind, answer, "while", self.first.origin, turns=structure, counts=self.counts)
        made = RolledTurns(
            tuple(new[node] for node in trace.outputs),
            (*trace.guards[:start], known_ways, *(_moved(one, new, order) for one in later)),
            (*trace.numbers[: start + 1], *trace.numbers[stop:]),
            trace.notes,
            trace.starts,
        )
        return made, new

    def _kind(self, turns: Node, known: Node) -> Node:
        """The answer to the guard of the loop."""
        if self.counts is not None:
            is_count = e.equal(make_node(iota, (), {"size": LARGEST_COUNT, "dtype": INT64}), turns)
            found = any_(e.logical_and(self.capture(self.counts), is_count), dims=(0,), keepdim=False)
            return e.convert(e.logical_and(known, found), dtype=INT64)
        is_long = e.greater_equal(turns, constant(self.most_turns, COUNT))
        others = e.where(is_long, constant(ENDLESS_TURNS, COUNT), constant(UNKNOWN_TURN, COUNT))
        return e.where(known, constant(KNOWN_TURNS, COUNT), others)

    def _note(self) -> str:
        ways = self.root.count
        if self.counts is not None:
            return f"rolled: turns at {self.first.origin.place}, for each number of them that was traced"
        through = "" if ways == 1 else f", {ways} ways through each"
        return f"rolled: any number of turns at {self.first.origin.place}{through}"

    def _begins(self, first: Guard, before: Sequence[Guard]) -> Node:
        """Whether there is a first turn; where the path is a wrong one there is none."""
        goes_on = has_answer(first.node, self.first.answer)
        for guard in before:
            if guard.node.spec.shape or guard.node.spec.is_float:
                raise CannotRollTurns(f"a number is asked for before it ({guard.origin.place})")
            goes_on = e.logical_and(goes_on, has_answer(guard.node, guard.answer))
        return goes_on

    def _body(self) -> tuple[Graph, list[Node]]:
        """A turn as a graph, and what it reads of what was there before the loop."""
        goes_on, turns, known = (make_input(spec, name) for spec, name in CONTROL)
        computed = {*self.inputs, known, *self.before}
        following, is_known, *carried = chosen(
            self.root, computed, lambda way: self._end_of(way, known), flags=2
        )
        inputs = (goes_on, turns, known, *self.inputs)
        count = e.add(turns, constant(1, COUNT)).named("turns")
        work = sum(node.spec.size for node in toposort(carried, known=computed))
        self.most_turns = max(FEWEST_ENDLESS, MOST_WORK // max(work, 1))
        if self.counts is not None:
            self.most_turns = LARGEST_COUNT - 1
        is_short = e.less(count, constant(self.most_turns, COUNT))
        is_known = e.logical_and(is_known, e.logical_or(is_short, e.logical_not(following)))
        outputs = (e.logical_and(following, is_short), count, is_known, *carried)
        return closed("turn", inputs, outputs, {*inputs, *self.before}, self.first.origin)

    def _end_of(self, way: Way, known: Node) -> list[Node]:
        """Whether there is another turn, whether all is known, and what is carried, at the end of a turn."""
        following, *carried = way.after
        return [has_answer(following, self.first.answer), known, *carried]

    def _after(
        self, trace: RolledTurns, run: Run, results: Sequence[Node], later: Sequence[Guard], order: Order
    ) -> dict[Node, Node]:
        """What comes after the loop, made of its results.

        Where there was no turn, what is carried is what was there before: of these is read what other runs
        read as well, which shows where the turns around are compared. Raises CannotRollTurns where outputs or
        guards need what no variable holds at its end.
        """
        first, end = (trace.guard(number).serial for number in (run.heads[0], run.end))
        carried = dict(zip(self.inputs, results))
        state = [*zip(trace.state(run.end), self.places)]
        new = {node: node for node, place in state if place not in carried}
        for node, place in state:
            if place is not None and place in carried:
                result = carried[place]
                is_other = new.get(node, result) is not result or node.is_input or node.serial < first
                if is_other and len(run.heads) > 1:
                    raise CannotRollTurns("what it leaves is the value of another variable as well")
                if node not in new or place in self.read or len(run.heads) > 1:
                    new[node] = result
        wanted = (*trace.outputs, *(guard.node for guard in later))
        standpoints = [one.standpoint for one in later if one.standpoint is not None]
        for node in toposort((*wanted, *(node for one in standpoints for _, node in one.variables))):
            if node in new:
                continue
            if node.is_input or node.is_constant or node.serial < first:
                new[node] = node
            elif node.serial > end and all(operand in new for operand in node.operands):
                order.visit(node)
                operands = tuple(new[operand] for operand in node.operands)
                made = with_operands(node, operands)
                new[node] = made_anew(node, operands) if made is node else made  # later than what is rolled
        if any(node not in new for node in wanted):
            raise CannotRollTurns("what comes after it reads what no variable holds at its end")
        return new


def _moved(guard: Guard, new: Mapping[Node, Node], order: Order) -> Guard:
    """A guard after a loop that has been rolled."""
    standpoint = guard.standpoint
    if standpoint is not None:
        known = all(node in new for _, node in standpoint.variables)
        variables = tuple((name, new.get(node, node)) for name, node in standpoint.variables)
        standpoint = replace(standpoint, variables=variables, held=standpoint.held if known else None)
    serial = order.serial(guard.serial)
    return replace(guard, node=new[guard.node], serial=serial, standpoint=standpoint)


CONTROL = ((TRUTH, "goes_on"), (COUNT, "turns"), (TRUTH, "known"))
