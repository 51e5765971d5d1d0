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

from collections.abc import Callable, Iterator, Mapping, Sequence
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

from ...tracer.records import record
from .junctions import Junction, Led, TooManyEnds, met_again
from .ways import MOST_WAYS, TRUTH, Way, closed, has_answer
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


class _IsOther(Exception):
    """A variable that is not always what others are, by the numbers of a junction and its place there."""

    def __init__(self, variable: tuple[tuple[int, ...], int]) -> None:
        super().__init__(variable)
        self.variable = variable


class _Values(SharedNodes):
    """Nodes, one of those that are the same value: what variables have of their own is what it is made of."""

    def made(self, node: Node, operands: tuple[Node, ...]) -> Node:
        return operands[0] if node.operator is e.identity else super().made(node, operands)


Capture = Callable[[np.ndarray], Node]
Turn = tuple[Run, int, int]
"""A run, and the numbers of the questions at which one of its turns begins, and the next one."""


@record(frozen=True, eq=False)
class Stretch:
    """A part of a turn.

    Attributes:
        start, number: where it begins, and the number of that question.
        questions: what is asked, at its start as well if that is in the turn.
        end, following: where it leads to, None for the end of the turn, and the number of that question.
    """

    run: Run
    start: Junction
    number: int
    questions: tuple[Guard, ...]
    end: Junction | None
    following: int


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
        found = (trace.guards[trace.place(run.heads[0]) : trace.place(run.end) + 1] for run in runs)
        held = [guard.standpoint.variables for one in found for guard in one if guard.standpoint]
        states = [node for variables in held for _, node in variables]
        self.same = self.shared.merge((*trace.outputs, *asked, *states), equal)
        """Of each node of the trace the one that stands for all that compute the same."""
        self.turns = turns
        self.others: set[tuple[tuple[int, ...], int]] = set()
        """Of junctions, none of them where turns begin, variables that are not always what others are."""
        self._find_places()
        met = [] if self.counts is not None else met_again(self.first, [*map(self._asked, turns)])
        while True:
            try:
                self._enter_turns(met)
                break
            except _IsOther as found:
                self.others.add(found.variable)
                self._find_places()
            except CannotRollTurns:
                if not met:
                    raise
                met = [one for one in met if one != self.doubtful]
        if self.counts is not None:
            if self.root.way.count > 1 or len(turns) >= LARGEST_COUNT:
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
            is_other = ((), slot) in self.others
            changes = is_other or any(len(set(column)) > 1 for column in values)
            same = slot if is_other else found.setdefault(tuple(values), slot)
            if same < slot:
                self.places.append(self.places[same])
            elif changes or len({column[0] for column in values}) > 1:
                self.places.append(make_input(node.spec, name))
            else:
                self.places.append(None)
            if changes and same == slot:
                self.carried.append(slot)
                self.inputs.append(self.places[slot])  # type: ignore[arg-type]
        self._read_outside()

    def _read_outside(self) -> None:
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

    def _asked(self, turn: Turn) -> list[tuple[int, Guard]]:
        """What is asked within a turn, by the numbers of the questions."""
        _, head, following = turn
        places = range(self.trace.place(head) + 1, self.trace.place(following))
        return [(self.trace.numbers[place], self.trace.guards[place]) for place in places]

    def _enter_turns(self, met: Sequence[tuple[int, ...]]) -> None:
        """Enter the ways that turns take.

        Args:
            met: of each question at which ways meet its numbers in the trace. Where CannotRollTurns is
                raised, `doubtful` is the one that may be why.
        """
        self._read_outside()
        self.doubtful = met[-1] if met else ()
        heads = tuple(head for _, head, _ in self.turns)
        slots, inputs = tuple(self.carried), tuple(self.inputs)
        self.root = Junction(heads, None, slots, inputs, tuple(self.places), Way())
        self.junctions = {
            number: one for visits in met for one in [self._junction(visits)] for number in visits
        }
        stretches = [one for turn in self.turns for one in self._stretches(turn)]
        for one in reversed(stretches):
            self._enter(one)
        for one in stretches:
            self._require_known(one)
        for junction in {self.root: None, **dict.fromkeys(self.junctions.values())}:
            if junction.way.count > MOST_WAYS:
                raise CannotRollTurns(f"it has more than {MOST_WAYS} ways through a turn")

    def _junction(self, visits: tuple[int, ...]) -> Junction:
        """A question at which ways meet, with what stands for all that Python holds there."""
        runs = [self._run_of(number) for number in visits]
        states = [self.trace.state(number) for number in visits]
        first = self.trace.guard(visits[0]).standpoint
        assert first is not None
        found: dict[Any, Node | None] = {}
        slots: list[int] = []
        places: list[Node | None] = []
        for slot, ((name, _), *nodes) in enumerate(zip(first.variables, *states)):
            is_other = (visits, slot) in self.others
            column = (slot,) if is_other else tuple(self.same[node] for node in nodes)
            if is_other:
                found[column] = make_input(nodes[0].spec, name)
                slots.append(slot)
            elif column not in found:
                is_fixed = len(set(column)) == 1 and all(map(self._is_before, nodes, runs))
                found[column] = None if is_fixed else make_input(nodes[0].spec, name)
                if is_fixed:
                    for run, node in zip(runs, nodes):
                        self.outside[self.runs.index(run)].setdefault(self.same[node], node)
                else:
                    slots.append(slot)
            places.append(found[column])
        asked = make_input(TRUTH, "asked")
        inputs = [asked, *(places[slot] for slot in slots)]
        return Junction(visits, asked, tuple(slots), tuple(inputs), tuple(places), Way())  # type: ignore[arg-type]

    def _run_of(self, number: int) -> Run:
        return next(run for run in self.runs if run.heads[0] < number < run.end)

    def _is_before(self, node: Node, run: Run) -> bool:
        """Whether a node is there before a run."""
        return node.is_input or node.is_constant or node.serial < self.trace.guard(run.heads[0]).serial

    def _stretches(self, turn: Turn) -> Iterator[Stretch]:
        """The parts of a turn, from one junction to the next."""
        run, head, following = turn
        start, number, questions = self.root, head, list[Guard]()
        for other, guard in self._asked(turn):
            if other in self.junctions:
                yield Stretch(run, start, number, tuple(questions), self.junctions[other], other)
                start, number, questions = self.junctions[other], other, []
            questions.append(guard)
        yield Stretch(run, start, number, tuple(questions), None, following)

    def _enter(self, one: Stretch) -> None:
        """Enter the way that a part of a turn takes, unless it is known."""
        self._doubt(one)
        questions = one.questions[one.start.asked is not None :]
        wanted = [*(guard.node for guard in questions), *self._left_by(one)]
        found = self._expressed(one, [*wanted, *self.trace.state(one.following)])
        if found is None:
            return
        found, left = found[: len(wanted)], found[len(wanted) :]
        self._require_same_places(one, left)
        asked = found[: len(questions)]
        way = one.start.way
        for guard, node in zip(
            one.questions, asked if one.start.asked is None else (one.start.asked, *asked)
        ):
            if guard.node.spec.shape or guard.node.spec.is_float:
                raise CannotRollTurns(f"a number is asked for ({guard.origin.place})")
            if guard.counts is not None:
                raise CannotRollTurns(f"numbers of turns in it are not known ({guard.origin.place})")
            if way.after or way.question not in (None, node):
                raise CannotRollTurns("a turn asks for other things after the same answers")
            way = way.goes_on(node, guard.answer, guard.origin)
        if way.question is not None:
            raise CannotRollTurns("a turn ends where another one asks")
        if not way.after:
            way.after, way.to = found[len(questions) :], one.end

    def _require_same_places(self, one: Stretch, left: Sequence[Node]) -> None:
        """Raise _IsOther if a variable that is what others are, or the same in all turns, is it by chance.

        Args:
            left: what the way leaves in each variable.
        """
        end = self.root if one.end is None else one.end
        own = end.inputs[end.asked is not None :]
        first = {place: left[slot] for place, slot in zip(own, end.slots)}
        for slot, (place, node) in enumerate(zip(end.places, self.trace.state(one.following))):
            same = self.same[node] if place is None else first.get(place, place)
            if left[slot] is not same:
                raise _IsOther((() if one.end is None else end.visits, slot))

    def _doubt(self, one: Stretch) -> None:
        """Note the junction without which a part of a turn might be like others."""
        doubtful = one.end if one.start is self.root else one.start
        if doubtful is not None:
            self.doubtful = doubtful.visits

    def _left_by(self, one: Stretch) -> list[Node]:
        """What a part of a turn leaves to the next one, or to the next turn: its question, and variables."""
        state = self.trace.state(one.following)
        slots = self.carried if one.end is None else one.end.slots
        return [self.trace.guard(one.following).node, *(state[slot] for slot in slots)]

    def _carried_at(self, trace: RolledTurns, head: int) -> list[Node]:
        state = trace.state(head)
        return [state[slot] for slot in self.carried]

    def _expressed(self, one: Stretch, wanted: Sequence[Node]) -> tuple[Node, ...] | None:
        """What a part of a turn computes, of inputs for what variables hold, and of what was there before the
        loop.

        None where a variable's value is another one as well, so that nothing tells which of them is read.
        """
        new: dict[Node, Node] = {}
        for place, node in zip(one.start.places, self.trace.state(one.number)):
            stands = self.same[node] if place is None else place
            if new.setdefault(node, stands) is not stands or (node.is_input and place is not None):
                return None
        outside = self.outside[self.runs.index(one.run)]
        start = self.trace.guard(one.number).serial
        inside: set[Node] = set()
        pending = list(wanted)
        while pending:
            node = pending.pop()
            if node in new or node in inside:
                continue
            if self._is_before(node, one.run):
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

    def _require_known(self, one: Stretch) -> None:
        """Raise CannotRollTurns unless the way of this part, begun with its values, computes what it did."""
        self._doubt(one)
        way, values = one.start.way, (self.same[node] for node in self.trace.state(one.number))
        computed = {place: value for place, value in zip(one.start.places, values) if place is not None}
        if one.start.asked is not None:
            computed[one.start.asked] = self.same[self.trace.guard(one.number).node]
        before = self.before
        pairs = []
        for guard in one.questions:
            if way.question is None or guard.answer.tobytes() not in way.answers:
                raise CannotRollTurns("a turn takes a way that it takes with values from outside alone")
            pairs.append((way.question, guard.node))
            way = way.answers[guard.answer.tobytes()][1]
        if not way.after or way.to is not one.end:
            raise CannotRollTurns("a turn takes a way that it takes with values from outside alone")
        for node, traced in (*pairs, *zip(way.after, self._left_by(one))):
            if self._begun_with(node, computed, before) is not self.same[traced]:
                raise CannotRollTurns("its turns are not alike")

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
        ways = self.root.way.count
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
        led = Led(self.root, self._end_of, 2, self.first.origin)
        try:
            following, is_known, *carried = led.results(known, computed)
        except TooManyEnds:
            raise CannotRollTurns(f"it has more than {led.ends - 1} ways through a turn") from None
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

    def _end_of(self, known: Node, way: Way) -> list[Node]:
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
