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

Loops are found from the last to the first: the question at which one ends is where its turns begin.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
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
    name_results,
    serial_of,
    substitute,
    toposort,
    with_operands,
)
from pullback.tracer.loop import make_loop
from pullback.tracer.merge import SharedNodes
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops.control import DERIVATIVES, UNKNOWN_LENGTH
from pullback.tracer.ops.creation import iota
from pullback.tracer.ops.reduction import any_
from pullback.tracer.origin import UNKNOWN, Origin, located_at
from pullback.tracer.spec import BOOL, INT64, Spec
from pullback.tracer.trace import ENDLESS_TURNS, KNOWN_TURNS, UNKNOWN_TURN, Guard
from pullback.tracer.verify import checked

from .roll import roll

TRUTH = Spec((), BOOL)
COUNT = Spec((), INT64)


MOST_WORK = 1 << 30
"""Elements that a loop computes, some seconds of work, before Python takes its place: code rounds otherwise
than NumPy, so that a loop may go on for ever that ends in Python ..."""
FEWEST_ENDLESS = 1 << 14
"""... and turns that it takes at least."""

MOST_REFUSED = 8
"""Loops that cannot be rolled before the trace stays as it is: each takes time that its length decides."""
MOST_WAYS = 16
"""Through a turn: each is code of its own."""
LARGEST_COUNT = 1 << 10
"""From which numbers of turns are not known, where each is traced."""


class CannotRollTurns(Exception):
    """Why the turns of a loop stay as they were traced."""


@dataclass(frozen=True)
class RolledTurns:
    """Outputs and guards of a trace, its `while` loops rolled, and what there is to say about them."""

    outputs: tuple[Node, ...]
    guards: tuple[Guard, ...]
    notes: tuple[str, ...] = ()


Capture = Callable[[np.ndarray], Node]


def roll_turns(
    outputs: Sequence[Node], guards: Sequence[Guard], equal: Mapping[Node, Node], capture: Capture
) -> RolledTurns:
    """Roll the `while` loops of a trace.

    Args:
        equal: of inputs the ones that always have the same value.
        capture: makes an array that may change later an input.
    """
    refused: dict[int, str] = {}
    while len(refused) < MOST_REFUSED:
        done = RolledTurns(tuple(outputs), tuple(guards))
        loops = _loops(guards, refused)
        for heads in loops:
            shift = len(guards) - len(done.guards)
            try:
                done = _Rolled(done, [head - shift for head in heads], equal, capture).result
            except CannotRollTurns as reason:
                place = guards[heads[-1]].origin.place
                refused[heads[-1]] = f"not rolled: the turns at {place}, because {reason}"
                break
        else:
            return done if loops else replace(done, notes=tuple(refused.values()))
    return RolledTurns(tuple(outputs), tuple(guards), tuple(refused.values()))


def _loops(guards: Sequence[Guard], refused: Container[int]) -> list[list[int]]:
    """Of each loop the positions of the questions at which turns begin, then of that at which it ends."""
    places: dict[Any, list[int]] = {}
    for position, guard in enumerate(guards):
        if guard.standpoint is not None:
            places.setdefault(guard.standpoint.place, []).append(position)
    found: list[list[int]] = []
    stop = len(guards)
    while stop:
        stop -= 1
        standpoint = guards[stop].standpoint
        if standpoint is None:
            continue
        before = places[standpoint.place]
        del before[bisect_left(before, stop) :]
        if stop in refused:
            continue
        heads = _heads(guards, before, stop, _is_same_state)
        if len(heads) == 1:
            heads = _heads(guards, before, stop, _has_same_variables)
        if len(heads) > 1:
            found.insert(0, heads)
            stop = heads[0]
    return found


def _heads(
    guards: Sequence[Guard], before: Sequence[int], stop: int, are_alike: Callable[[Guard, Guard], bool]
) -> list[int]:
    """The positions of the questions right before one that are alike but for the answer, and its own."""
    heads = [stop]
    for position in reversed(before):
        is_other = guards[position].answer.tobytes() != guards[stop].answer.tobytes()
        if not is_other or not are_alike(guards[position], guards[stop]):
            break
        heads.insert(0, position)
    return heads


def _is_same_state(one: Guard, other: Guard) -> bool:
    """Whether Python held the same, but for values, at two questions of one place, the first of a turn."""
    mine, theirs = one.standpoint, other.standpoint
    assert mine is not None and theirs is not None
    is_same = theirs.rest is not None and mine.rest == theirs.rest and _has_same_variables(one, other)
    return is_same and mine.stays[bool(one.answer)]


def _has_same_variables(one: Guard, other: Guard) -> bool:
    """Whether the same variables held traced values, which are alike."""
    mine, theirs = one.standpoint, other.standpoint
    assert mine is not None and theirs is not None
    specs = ([(name, node.spec) for name, node in each.variables] for each in (mine, theirs))
    return one.node.spec == TRUTH and next(specs) == next(specs)


@dataclass(eq=False)
class _Way:
    """What is left of a turn after some answers: a question, and what follows each answer, or the end."""

    question: Node | None = None
    origin: Origin = UNKNOWN
    answers: dict[bytes, tuple[np.ndarray, _Way]] = field(default_factory=dict)
    after: tuple[Node, ...] = ()
    """At the end: what is asked at the start of the next turn, then what is carried."""


class _Rolled:
    """One loop of a trace, rolled.

    Args:
        heads: the positions of the questions at which turns begin, then that at which the loop ends.
    """

    def __init__(
        self, trace: RolledTurns, heads: Sequence[int], equal: Mapping[Node, Node], capture: Capture
    ) -> None:
        self.trace = trace
        self.heads = heads
        self.first, self.end = trace.guards[heads[0]], trace.guards[heads[-1]]
        self.counts = None if _is_same_state(self.first, self.end) else np.zeros(LARGEST_COUNT, np.bool_)
        self.capture = capture
        self.shared = SharedNodes()
        asked = [guard.node for guard in trace.guards]
        states = [node for head in heads for node in self._state(head)]
        self.same = self.shared.merge((*trace.outputs, *asked, *states), equal)
        """Of each node of the trace the one that stands for all that compute the same."""
        self._find_carried()
        self.outside: dict[Node, Node] = {}
        """What turns read of what was there before the loop, by what stands for it."""
        self.root = _Way()
        turns = list(pairwise(heads))
        for turn in reversed(turns):
            self._enter(*turn)
        for turn in turns:
            self._require_known(*turn)
        if _count(self.root) > MOST_WAYS:
            raise CannotRollTurns(f"it has more than {MOST_WAYS} ways through a turn")
        if self.counts is not None:
            if _count(self.root) > 1 or len(turns) >= LARGEST_COUNT:
                raise CannotRollTurns("its turns differ, and what Python holds does too")
            self.counts[len(turns)] = True
        self.result = self._made()

    def _state(self, head: int) -> tuple[Node, ...]:
        standpoint = self.trace.guards[head].standpoint
        assert standpoint is not None
        return tuple(node for _, node in standpoint.variables)

    def _carried_at(self, head: int) -> list[Node]:
        state = self._state(head)
        return [state[slot] for slot in self.carried]

    def _find_carried(self) -> None:
        """The variables that turns change."""
        states = [[self.same[node] for node in self._state(head)] for head in self.heads]
        self.carried = [slot for slot, nodes in enumerate(zip(*states)) if len(set(nodes)) > 1]
        assert self.first.standpoint is not None
        names = [name for name, _ in self.first.standpoint.variables]
        nodes = self._carried_at(self.heads[0])
        self.inputs = [make_input(node.spec, names[slot]) for slot, node in zip(self.carried, nodes)]

    # --- turns as functions of what is carried --------------------------------------------------------------

    def _enter(self, head: int, following: int) -> None:
        """Enter the way that a turn takes, unless it is known."""
        questions = self.trace.guards[head + 1 : following]
        found = self._expressed(head, [*(one.node for one in questions), *self._left_by(following)])
        if found is None:
            return
        way = self.root
        for guard, node in zip(questions, found):
            if guard.node.spec.shape or guard.node.spec.is_float:
                raise CannotRollTurns(f"a number is asked for ({guard.origin.place})")
            if way.after or way.question not in (None, node):
                raise CannotRollTurns("a turn asks for other things after the same answers")
            way.question, way.origin = node, guard.origin
            way = way.answers.setdefault(guard.answer.tobytes(), (guard.answer, _Way()))[1]
        if way.question is not None:
            raise CannotRollTurns("a turn ends where another one asks")
        way.after = way.after or found[len(questions) :]

    def _left_by(self, following: int) -> list[Node]:
        """What a turn leaves to the next one: its question, and what is carried."""
        return [self.trace.guards[following].node, *self._carried_at(following)]

    def _expressed(self, head: int, wanted: Sequence[Node]) -> tuple[Node, ...] | None:
        """What a turn computes, of inputs for what is carried, and of what was there before the loop.

        None where a carried value is another one as well, so that nothing tells which of them is read.
        """
        carried = self._carried_at(head)
        fixed = (node for slot, node in enumerate(self._state(head)) if slot not in self.carried)
        new = {node: self.same[node] for node in fixed}
        if len({*carried, *new}) < len(carried) + len(new) or any(node.is_input for node in carried):
            return None
        self.outside.update((same, node) for node, same in new.items())
        new.update(zip(carried, self.inputs))
        start, before = self.trace.guards[head].serial, self.first.serial
        inside: set[Node] = set()
        pending = list(wanted)
        while pending:
            node = pending.pop()
            if node in new or node in inside:
                continue
            if node.is_input or node.is_constant or node.serial < before:
                new[node] = self.same[node]
                self.outside[new[node]] = node
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

    def _require_known(self, head: int, following: int) -> None:
        """Raise CannotRollTurns unless the way of this turn, begun with its values, computes what it did."""
        way, values = self.root, (self.same[node] for node in self._carried_at(head))
        computed = dict(zip(self.inputs, values))
        pairs = []
        for guard in self.trace.guards[head + 1 : following]:
            if way.question is None or guard.answer.tobytes() not in way.answers:
                raise CannotRollTurns("a turn takes a way that it takes with values from outside alone")
            pairs.append((way.question, guard.node))
            way = way.answers[guard.answer.tobytes()][1]
        for node, traced in (*pairs, *zip(way.after, self._left_by(following))):
            if self._begun_with(node, computed) is not self.same[traced]:
                raise CannotRollTurns("its turns are not alike")
        if not way.after:
            raise CannotRollTurns("a turn takes a way that it takes with values from outside alone")

    def _begun_with(self, wanted: Node, computed: dict[Node, Node]) -> Node:
        """The value of a turn, given those of its inputs; what is found on the way is entered."""
        for node in toposort((wanted,), known={*computed, *self.outside}):
            operands = tuple(computed.get(operand, operand) for operand in node.operands)
            computed[node] = self.shared.made(node, operands)
        return computed.get(wanted, wanted)

    # --- the loop -------------------------------------------------------------------------------------------

    def _made(self) -> RolledTurns:
        """The trace with a loop in the place of the turns."""
        guards, first = self.trace.guards, self.first
        with located_at(first.origin):
            body, read = self._body()
            known, count = constant(True, TRUTH), constant(0, COUNT)
            inits = [self._begins(), count, known, *self._carried_at(self.heads[0])]
            outside = [self.outside[node] for node in read]
            loop = make_loop(body, inits, [], outside, UNKNOWN_LENGTH, first.origin, goes_on=True)
            results = loop.results
        later = guards[self.heads[-1] + 1 :]
        order = Order()
        new = self._after(results[3:], later, order)
        structure = loop.node.attributes["body"].structure
        with located_at(first.origin):
            kind = self._kind(results[1], results[2])
        known_turns = np.array(KNOWN_TURNS)
        known_ways = Guard(kind, known_turns, "while", first.origin, turns=structure, counts=self.counts)
        return RolledTurns(
            tuple(new[node] for node in self.trace.outputs),
            (*guards[: self.heads[0]], known_ways, *(_moved(one, new, order) for one in later)),
            (*self.trace.notes, self._note()),
        )

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
        ways = _count(self.root)
        if self.counts is not None:
            return f"rolled: turns at {self.first.origin.place}, for each number of them that was traced"
        through = "" if ways == 1 else f", {ways} ways through each"
        return f"rolled: any number of turns at {self.first.origin.place}{through}"

    def _begins(self) -> Node:
        """Whether there is a first turn; where the path is a wrong one there is none."""
        goes_on = _is(self.first.node, self.first.answer)
        for guard in self.trace.guards[: self.heads[0]]:
            if guard.node.spec.shape or guard.node.spec.is_float:
                raise CannotRollTurns(f"a number is asked for before it ({guard.origin.place})")
            goes_on = e.logical_and(goes_on, _is(guard.node, guard.answer))
        return goes_on

    def _body(self) -> tuple[Graph, list[Node]]:
        """A turn as a graph, and what it reads of what was there before the loop."""
        goes_on, turns, known = (make_input(spec, name) for spec, name in CONTROL)
        computed = {*self.inputs, known, *self.outside}
        following, is_known, *carried = self._chosen(self.root, known, computed)
        inputs = (goes_on, turns, known, *self.inputs)
        count = e.add(turns, constant(1, COUNT)).named("turns")
        work = sum(node.spec.size for node in toposort(carried, known=computed))
        self.most_turns = max(FEWEST_ENDLESS, MOST_WORK // max(work, 1))
        if self.counts is not None:
            self.most_turns = LARGEST_COUNT - 1
        is_short = e.less(count, constant(self.most_turns, COUNT))
        is_known = e.logical_and(is_known, e.logical_or(is_short, e.logical_not(following)))
        outputs = (e.logical_and(following, is_short), count, is_known, *carried)
        return _closed("turn", inputs, outputs, {*inputs, *self.outside}, self.first.origin)

    def _chosen(self, way: _Way, known: Node, computed: set[Node]) -> list[Node]:
        """Whether there is another turn, whether all is known, and what is carried, at the end of a turn.

        Args:
            computed: what is there when the way begins.
        """
        if way.question is None:
            following, *carried = way.after
            return [_is(following, self.first.answer), known, *carried]
        computed = {*computed, *toposort((way.question,), known=computed), way.question}
        branches = [
            (_is(way.question, answer), self._chosen(after, known, computed))
            for answer, after in way.answers.values()
        ]
        if len(branches) == 1:
            ((taken, values),) = branches
            return [e.logical_and(taken, values[0]), e.logical_and(taken, values[1]), *values[2:]]
        return _choice(branches, computed, way.origin)

    def _after(self, results: Sequence[Node], later: Sequence[Guard], order: Order) -> dict[Node, Node]:
        """What comes after the loop, made of its results.

        Raises CannotRollTurns where outputs or guards need what no variable holds at its end.
        """
        state, ends = self._state(self.heads[-1]), self._carried_at(self.heads[-1])
        new = {node: node for slot, node in enumerate(state) if slot not in self.carried}
        for node, result in zip(ends, results):
            if node in new or node.is_input or node.serial < self.first.serial:
                raise CannotRollTurns("what it leaves is the value of another variable as well")
            new[node] = result
        wanted = (*self.trace.outputs, *(guard.node for guard in later))
        standpoints = [one.standpoint for one in later if one.standpoint is not None]
        for node in toposort((*wanted, *(node for one in standpoints for _, node in one.variables))):
            if node in new:
                continue
            if node.is_input or node.is_constant or node.serial < self.first.serial:
                new[node] = node
            elif node.serial > self.end.serial and all(operand in new for operand in node.operands):
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
        standpoint = replace(standpoint, variables=variables, rest=standpoint.rest if known else None)
    serial = order.serial(guard.serial)
    return replace(guard, node=new[guard.node], serial=serial, standpoint=standpoint)


CONTROL = ((TRUTH, "goes_on"), (COUNT, "turns"), (TRUTH, "known"))


def _is(node: Node, answer: np.ndarray) -> Node:
    """Whether a question has this answer."""
    if node.spec == TRUTH:
        return node if answer else e.logical_not(node)
    return e.equal(node, constant(answer.item(), node.spec))


def _count(way: _Way) -> int:
    """How many ways there are."""
    return 1 if way.question is None else sum(_count(after) for _, after in way.answers.values())


def _choice(
    branches: Sequence[tuple[Node, Sequence[Node]]], computed: set[Node], origin: Origin
) -> list[Node]:
    """The values of the branch that is taken; of none, zeros: no other turn, and something unknown."""
    columns = list(zip(*(values for _, values in branches)))
    differs = [number for number, column in enumerate(columns) if number < 2 or len(set(column)) > 1]
    results: Sequence[Node] = [constant(0, columns[number][0].spec) for number in differs]
    for taken, values in branches:
        before = [make_input(node.spec, "") for node in results]
        chosen = [values[number] for number in differs]
        body, read = _closed("choice", before, chosen, computed, origin)
        results = make_loop(body, results, [], read, 1, origin, trips=taken).results
    found = [column[0] for column in columns]
    for number, result in zip(differs, results):
        found[number] = result
    return found


def _closed(
    name: str, inputs: Sequence[Node], outputs: Sequence[Node], computed: AbstractSet[Node], origin: Origin
) -> tuple[Graph, list[Node]]:
    """A graph with inputs for what it reads of what is computed, after those given, and what that is."""
    read = dict.fromkeys(node for node in outputs if node in computed)
    for node in toposort(outputs, known=computed):
        read.update(dict.fromkeys(operand for operand in node.operands if operand in computed))
    others = [node for node in read if node not in inputs and not node.is_constant]
    places = {node: make_input(node.spec, node.name, node.origin) for node in others}
    graph = Graph(name, (*inputs, *places.values()), name_results(substitute(outputs, places)), origin)
    return checked(roll(graph).graph, "roll turns"), others
