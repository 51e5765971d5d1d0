"""The loop: an operator that holds a graph and runs it once for each step. And derivatives in a trace.

A loop has several results, a node one value. So `loop` itself has none (its spec is a placeholder), and
`loop_result` names one result of it. `tracer/loop.py` makes both and says what the operands are.

A choice is a loop of one step or none, so what holds for loops (reverse, tape, code) holds for choices.

A `jacobian`, a `gradient` and a `tangent` are derivatives of the graph between their operands, taken when
the trace ends: no pass sees one.

A `ruled` result is one of a graph that has a rule of its own for its derivative (`Rule`). It is a composite:
its graph takes its place once the graph around has been differentiated.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..dims import Formula, formulas_in, spelled
from ..errors import GraphError, ShapeError
from ..forks import kept
from ..interpret import evaluate_graph
from ..operator import Array, declare
from ..records import record
from ..spec import BOOL, INT64, Spec

if TYPE_CHECKING:
    from ..graph import Graph, Node

NO_VALUE = Spec((), BOOL)


@record(frozen=True, eq=False)
class Rule:
    """What pulls cotangents back through a graph in the place of its derivative.

    Attributes:
        function: the name of the function that has the rule, for messages.
        graph: from residuals, operands and cotangents, in the order of the next three, to gradients. None
            where no derivative has asked for it yet, and in a rule that calls its own function, inside of
            some others of these.
        residuals: the outputs of the graph with the rule that are read.
        operands: the positions of the operands that are read.
        results: the outputs that have cotangents.
        gradients: the position of the operand that each output of `graph` is the cotangent of.
        arguments: the number of operands that are arguments; what follows the function takes from outside.
        missing: of the arguments that the rule does not speak of the operand, and the place in the call.
        depth: inside of how many calls with rules, itself counted, the call is: of traces that have rules so
            deep, its graph is part.
    """

    function: str
    graph: Graph | None
    residuals: tuple[int, ...]
    operands: tuple[int, ...]
    results: tuple[int, ...]
    gradients: tuple[int, ...]
    arguments: int
    missing: tuple[tuple[int, int], ...] = ()
    depth: int = 0


def no_rule_message(function: str, position: int) -> str:
    return (
        f"{function} has no rule for argument {position}, of which a gradient is taken. Give it one (None "
        "stands for zero), or stop the gradient of the argument."
    )


@record(frozen=True, eq=False)
class Body:
    """The graph that a node holds; two bodies are equal only if they are one, whatever they compute."""

    graph: Graph
    extends: Body | None = None
    """The body with the same inputs that this one has more results than."""
    rule: Rule | None = None

    @kept
    def structure(self) -> tuple[Any, ...]:
        """What the graph computes, without names and places: equal for bodies that compute the same."""
        return self._structure(spelled)

    @kept
    def structure_of_any_sizes(self) -> tuple[Any, ...]:
        """The same, whatever sizes are called: equal where those that agree do so in both bodies."""
        names: dict[int, str] = {}
        name = lambda source: names.setdefault(source.serial, str(len(names)))  # noqa: E731  of one line
        return self._structure(partial(spelled, name=name))

    def _structure(self, spell: Callable[[Formula], str]) -> tuple[Any, ...]:
        rule = self.rule
        if rule is None:
            return _structure(self.graph, spell)
        places = (rule.residuals, rule.operands, rule.results, rule.gradients, rule.arguments, rule.missing)
        of_rule = None if rule.graph is None else _structure(rule.graph, spell)
        return (*_structure(self.graph, spell), places, of_rule)

    def __repr__(self) -> str:
        return f"<body of {len(self.graph.nodes)} nodes at {id(self):#x}>"


def _compared(value: Any, spell: Callable[[Formula], str]) -> Any:
    """An attribute with what its sizes are: some that are equal agree by chance."""
    if isinstance(value, Body):
        return value.structure if spell is spelled else value._structure(spell)
    return value, formulas_in(value.shape if isinstance(value, Spec) else value, spell)


def _structure(graph: Graph, spell: Callable[[Formula], str]) -> tuple[Any, ...]:
    numbers: dict[Any, int] = {}
    lines: list[Any] = []
    for node in (*graph.inputs, *graph.nodes):
        if node not in numbers:
            numbers[node] = len(numbers)
            values = (_compared(one, spell) for one in node.attributes.values())
            lines.append((node.operator, *values, *(numbers[operand] for operand in node.operands)))
    return (*lines, *(numbers[output] for output in graph.outputs))


UNKNOWN_LENGTH = 1021
"""What the specs of stacks say of a loop whose number of steps only data tells: a number unlike others."""
ALL, GIVEN, WHILE = "all", "given", "while"


def _infer_loop(
    *specs: Spec,
    body: Body,
    length: int,
    carries: int,
    stacked: int,
    backwards: bool,
    trips: str = ALL,
    recompute: bool = False,
) -> Spec:
    graph = body.graph
    count = len(specs) - (trips == GIVEN)
    if count != len(graph.inputs):
        raise ShapeError(f"loop: {len(graph.inputs)} operands expected, found {count}.")
    for position, (spec, one) in enumerate(zip(specs, graph.inputs)):
        is_stacked = carries <= position < carries + stacked
        expected = one.spec.with_shape((length, *one.shape)) if is_stacked else one.spec
        if spec != expected:
            raise ShapeError(f"loop: operand {position} must be {expected}, found {spec}.")
    for position, (start, end) in enumerate(zip(graph.inputs[:carries], graph.outputs)):
        if start.spec != end.spec:
            raise ShapeError(f"loop: carry {position} is {start.spec} before a step, {end.spec} after it.")
    if trips == GIVEN and (specs[-1].shape != () or specs[-1].is_float):
        raise ShapeError(f"loop: the number of steps is an integer or a bool, found {specs[-1]}.")
    if trips == WHILE and (specs[0] != NO_VALUE or specs[1] != Spec((), INT64)):
        raise ShapeError("loop: the first carries say whether it goes on, and count the steps.")
    return NO_VALUE


def run_body(
    *operands: Array,
    body: Body,
    length: int,
    carries: int,
    stacked: int,
    backwards: bool,
    trips: str = ALL,
    recompute: bool = False,
    run: Callable[[Graph, Sequence[Array]], tuple[Array, ...]] = evaluate_graph,
) -> tuple[Array, ...]:
    """The results of a loop: the carries after the last step, then the stacked results.

    With `backwards` the first step takes the last rows, and makes the last rows of the stacks.

    Args:
        trips: ALL for `length` steps; GIVEN for as many as the last operand says (at most `length`, unless
            that is UNKNOWN_LENGTH); WHILE for as many as the first carry is true, counted by the second.
        recompute: whether the reverse gets the inputs of each step only, and computes the step again.
        run: computes a step.
    """
    values = list(operands[:carries])
    rows = operands[carries : carries + stacked]
    constants = operands[carries + stacked : len(body.graph.inputs)]
    count = int(operands[-1]) if trips == GIVEN else length
    steps: Iterable[int] = reversed(range(count)) if backwards else range(count)
    collected: list[tuple[Array, ...]] = []
    for step in steps if trips != WHILE else itertools.count():
        if trips == WHILE and not values[0]:
            break
        found = run(body.graph, [*values, *(one[step] for one in rows), *constants])
        values = list(found[:carries])
        collected.append(found[carries:])
    stacks = []
    for position, node in enumerate(body.graph.outputs[carries:]):
        every = [one[position] for one in (reversed(collected) if backwards else collected)]
        stacks.append(np.stack(every) if every else np.zeros((0, *node.shape), node.dtype))
    return (*values, *stacks)


loop = declare(
    "loop",
    "control",
    "*operands",
    infer=_infer_loop,
    evaluate=run_body,
    doc="a graph run once for each step, its carries handed from step to step",
)


def _evaluate_result(results: Any, index: int, spec: Spec) -> np.ndarray:
    return np.asarray(results[index])


loop_result = declare(
    "loop_result",
    "control",
    "loop",
    infer=lambda loop, index, spec: spec,
    evaluate=_evaluate_result,
    noun="result",
    doc="one result of a loop: a carry after the last step, or a value of every step, stacked",
)


def _no_derivative(*operands: Array, call: int) -> NoReturn:
    raise GraphError("a derivative in a trace has a value once its graph is differentiated")


jacobian = declare(
    "jacobian",
    "control",
    "result variable",
    infer=lambda result, variable, call: variable.with_shape((*result.shape, *variable.shape)),
    evaluate=_no_derivative,
    doc="all derivatives of a value by one that it is made of; those of one `call` are taken together",
)
gradient = declare(
    "gradient",
    "control",
    "*operands",
    infer=lambda *operands, call: operands[-1],
    evaluate=_no_derivative,
    doc="the gradient of values, with a cotangent each, which follow them, by the last operand",
)
tangent = declare(
    "tangent",
    "control",
    "*operands",
    infer=lambda *operands, call: operands[-1],
    evaluate=_no_derivative,
    doc="the derivative by variables, along a tangent each, which follow them, of the last operand",
)
DERIVATIVES = frozenset((jacobian, gradient, tangent))


def variables_of(node: Node) -> tuple[Node, ...]:
    """What a derivative is taken by."""
    operands = node.operands
    return operands[: len(operands) // 2] if node.operator is tangent else operands[-1:]


def _result_of_body(*operands: Array, body: Body, index: int) -> Array:
    return evaluate_graph(body.graph, operands)[index]


ruled = declare(
    "ruled",
    "composite",
    "*operands",
    infer=lambda *operands, body, index: body.graph.outputs[index].spec,
    evaluate=_result_of_body,
    body=_result_of_body,
    needs_own_rule=True,
    noun="result",
    doc="one result of a graph that has a rule of its own for its derivative",
)
