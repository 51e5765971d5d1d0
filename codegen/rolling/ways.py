"""Ways through code that asks: what follows each answer, as a tree, and as choices in a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from typing import Any

import numpy as np

from pullback.tracer.graph import (
    Graph,
    Node,
    constant,
    inputs_of,
    make_input,
    name_results,
    new_node,
    substitute,
    toposort,
)
from pullback.tracer.loop import loops_of, make_loop
from pullback.tracer.operator import NEVER_RAISING
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops.control import loop_result
from pullback.tracer.origin import UNKNOWN, Origin
from pullback.tracer.spec import BOOL, Spec
from pullback.tracer.verify import checked

from ...tracer.records import record
from .roll import roll

TRUTH = Spec((), BOOL)
MOST_WAYS = 16
"""Through one piece of code: each is code of its own."""
Column = tuple[Node, ...]
"""A value in each branch of a choice."""


@record(eq=False)
class Way:
    """What is left of a run after some answers: a question, and what follows each answer, or the end."""

    question: Node | None = None
    origin: Origin = UNKNOWN
    answers: dict[bytes, tuple[np.ndarray, Way]] = field(default_factory=dict)
    after: tuple[Node, ...] = ()
    """At the end: what the way leads to."""
    to: Any = None
    """At the end: where other ways meet this one (`junctions.py`); None where the code ends."""

    @property
    def count(self) -> int:
        """How many ways there are."""
        return len(self.ends)

    @property
    def ends(self) -> list[Way]:
        """The ends of the ways."""
        if self.question is None:
            return [self]
        return [end for _, after in self.answers.values() for end in after.ends]

    def of(self, values: Mapping[Node, Node]) -> Way:
        """The same with values in the place of what stands for them."""
        if not values:
            return self
        every: list[Way] = [self]
        for one in every:
            every += [after for _, after in one.answers.values()]
        questions = [one.question for one in every if one.question is not None]
        new = iter(substitute([*questions, *(node for one in every for node in one.after)], values))
        asked = {id(one): next(new) for one in every if one.question is not None}
        after = {id(one): tuple(next(new) for _ in one.after) for one in every}

        def made(way: Way) -> Way:
            answers = {key: (answer, made(one)) for key, (answer, one) in way.answers.items()}
            return Way(asked.get(id(way)), way.origin, answers, after[id(way)], way.to)

        return made(self)

    def agrees(self, questions: Iterable[tuple[Node, np.ndarray]]) -> bool:
        """Whether a way that these questions and answers take may be entered."""
        way = self
        for node, answer in questions:
            if way.question is None:
                return not way.after
            if way.question is not node:
                return False
            if answer.tobytes() not in way.answers:
                return True
            way = way.answers[answer.tobytes()][1]
        return way.question is None

    def goes_on(self, node: Node, answer: np.ndarray, origin: Origin) -> Way:
        """What follows an answer to the next question."""
        self.question, self.origin = node, origin
        return self.answers.setdefault(answer.tobytes(), (answer, Way()))[1]


def has_answer(node: Node, answer: np.ndarray) -> Node:
    """Whether a question has this answer."""
    if node.spec == TRUTH:
        return node if answer else e.logical_not(node)
    return e.equal(node, constant(answer.item(), node.spec))


def chosen(
    way: Way,
    computed: AbstractSet[Node],
    at_end: Callable[[Way, AbstractSet[Node]], list[Node]],
    flags: int,
) -> list[Node]:
    """What a way leads to, by the answers to its questions.

    Args:
        computed: what is there when the way begins.
        at_end: of the end of a way the results, made of what is there.
        flags: how many of the first results are truth values, which are false after other answers.
    """
    if way.question is None:
        return at_end(way, computed)
    computed = {*computed, *toposort((way.question,), known=computed), way.question}
    branches = [
        (has_answer(way.question, answer), chosen(after, computed, at_end, flags))
        for answer, after in way.answers.values()
    ]
    if len(branches) == 1:
        ((taken, values),) = branches
        values = started_if(taken, values, computed, way.origin)
        return [*(e.logical_and(taken, one) for one in values[:flags]), *values[flags:]]
    columns = list(zip(*(values for _, values in branches)))
    is_either = way.question.spec == TRUTH  # one of the branches is taken
    if is_either:
        starts, made = behind_both(columns[flags:], computed)
        columns[flags:] = starts.values()
    always = 0 if is_either else flags
    differs = [number for number, column in enumerate(columns) if number < always or len(set(column)) > 1]
    results: Sequence[Node] = [constant(0, columns[number][0].spec) for number in differs]
    for place, (taken, _) in enumerate(branches):
        values = [columns[number][place] for number in differs]
        results = replaced_if(taken, results, values, computed, way.origin)
    found = [column[0] for column in columns]
    for number, result in zip(differs, results):
        found[number] = result
    if is_either:
        found[flags:] = substitute(made, dict(zip(starts, found[flags:])))
    return found


def behind_both(
    columns: Sequence[Column], computed: AbstractSet[Node]
) -> tuple[dict[Node, Column], list[Node]]:
    """What both branches of a choice compute alike of what differs: it can stand behind the choice.

    Args:
        columns: of each result what it is in the branches.
        computed: what is there when they begin.

    Returns:
        What differs, by inputs that stand for it, and the results made of these. No more differs than results
        do: work that takes more from the choice than it gives stays in the branches.
    """
    made: dict[Column, Node] = {}
    inputs: dict[Node, Column] = {}
    for column in sorted(_compared(columns, computed), key=lambda column: column[0].serial):
        first = column[0]
        if len(set(column)) == 1:
            made[column] = first
        elif _are_alike(column, computed):
            operands = tuple(made[one] for one in zip(*(node.operands for node in column)))
            made[column] = new_node(
                first.operator, operands, first.attributes, first.spec, first.origin, first.name
            )
        else:
            made[column] = make_input(first.spec, first.name)
            inputs[made[column]] = column
    results = [made[column] for column in columns]
    read = inputs_of(results)
    starts = {stands: column for stands, column in inputs.items() if stands in read}
    if len(starts) <= sum(len(set(column)) > 1 for column in columns):
        return starts, results
    starts = {make_input(column[0].spec, column[0].name): column for column in columns}
    return starts, [*starts]


def _compared(columns: Iterable[Column], computed: AbstractSet[Node]) -> set[Column]:
    """The columns, and those of the operands of what is alike in the branches."""
    found, pending = {*columns}, [*columns]
    while pending:
        column = pending.pop()
        if len(set(column)) > 1 and _are_alike(column, computed):
            operands = {*zip(*(node.operands for node in column))} - found
            found |= operands
            pending += operands
    return found


def _are_alike(column: Column, computed: AbstractSet[Node]) -> bool:
    """Whether nodes are one operation in all branches, of operands that may differ."""
    first = column[0]
    if first.is_constant or first.is_input or first.operator.family not in NEVER_RAISING:
        return False
    kept = first.operator, first.spec, first.attributes, len(first.operands)
    return not any(
        node in computed or (node.operator, node.spec, node.attributes, len(node.operands)) != kept
        for node in column
    )


def replaced_if(
    taken: Node, values: Sequence[Node], others: Sequence[Node], computed: AbstractSet[Node], origin: Origin
) -> list[Node]:
    """Values, in whose places are others, computed then alone, if something is true."""
    before = [make_input(node.spec, "") for node in values]
    body, read = closed("choice", before, others, computed, origin)
    return make_loop(body, values, [], read, 1, origin, trips=taken).results


def started_if(
    condition: Node, values: Sequence[Node], computed: AbstractSet[Node], origin: Origin
) -> list[Node]:
    """Values; loops in them that may not end begin only if something is true."""
    if not any(one.goes_on for one in loops_of(toposort(values, known=computed))):
        return [*values]
    zeros = [constant(0, node.spec) for node in values]
    return replaced_if(condition, zeros, values, computed, origin)


def closed(
    name: str, inputs: Sequence[Node], outputs: Sequence[Node], computed: AbstractSet[Node], origin: Origin
) -> tuple[Graph, list[Node]]:
    """A graph with inputs for what it reads of what is computed, after those given, and what that is."""
    results = [node for node in toposort(outputs, known=computed) if _is_result(node, computed)]
    computed = {*computed, *results}
    read = dict.fromkeys(node for node in outputs if node in computed)
    for node in toposort(outputs, known=computed):
        read.update(dict.fromkeys(operand for operand in node.operands if operand in computed))
    others = [node for node in read if node not in inputs and not node.is_constant]
    places = {node: make_input(node.spec, node.name, node.origin) for node in others}
    graph = name_results(Graph(name, (*inputs, *places.values()), substitute(outputs, places), origin))
    return checked(roll(graph).graph, "roll turns"), others


def _is_result(node: Node, computed: AbstractSet[Node]) -> bool:
    """Whether a node is one of the values of a loop that is computed."""
    return node.operator is loop_result and node.operands[0] in computed


__all__ = ["MOST_WAYS", "TRUTH", "Way", "chosen", "closed", "has_answer", "replaced_if", "started_if"]
