"""A trace under way: what the traced function touches besides its arguments, and what it asks.

An array that reaches an operator and is no argument is captured: it becomes an input of the graph, so that
its value is read again in every call and never baked into code. Where it comes from is for the runtime to
find out (`runtime/captures/closure.py`).

Where Python asks for a value (`if x.sum() > 0`), it gets that of the call which is being traced, and a guard
is recorded: the graph holds for calls in which all guards have the same answers.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from itertools import takewhile
from typing import Any, Protocol

import numpy as np

from . import lost_numbers
from .concrete import ConcreteValues
from .dims import equated_shapes
from .errors import LeakedTraceError
from .graph import Node, make_named_input, make_node, next_serial, toposort
from .ops import elementwise as e
from .ops.creation import full, iota
from .ops.movement import of_pairs, pairs_of, reshape, row_of, slice_
from .origin import UNKNOWN, Origin, current_origin, located_at
from .records import record
from .spec import INT64, Spec, real_dtype, require_supported, spec_of
from .views import region_of_view

_current: ContextVar[Trace | None] = ContextVar("trace", default=None)


innermost = _current.get  # the trace under way, or None: what a compiled call asks first


class Stream(Protocol):
    """Where random numbers come from."""

    def get_state(self) -> Any: ...

    def set_state(self, state: Any) -> None: ...


class Draw:
    """Draws arrays in every call; in the first one it gives what was drawn while tracing.

    Args:
        several: gives the arrays of so many calls at once, one behind the other, and leaves the stream where
            these would; None if nothing does.
    """

    def __init__(
        self,
        arrays: Sequence[np.ndarray],
        draw: Callable[[], Sequence[np.ndarray]],
        several: Callable[[int], np.ndarray] | None = None,
    ) -> None:
        self._arrays = [arrays]
        self._draw = draw
        self._several = several

    def __call__(self) -> Sequence[np.ndarray]:
        try:
            return self._arrays.pop()
        except IndexError:  # taken, perhaps by another thread
            return self._draw()

    def forget(self) -> None:
        """Draw in the first call as well."""
        self._arrays.clear()

    @staticmethod
    def in_steps(draws: Sequence[Draw], specs: Sequence[Spec], times: int) -> list[np.ndarray]:
        """Stacks of what draws give, one after the other, in each of so many steps."""
        if len(draws) == 1 and draws[0]._several and not draws[0]._arrays:
            return [draws[0]._several(times)]
        tables = [np.empty((times, *map(int, spec.shape)), spec.dtype) for spec in specs]
        for step in range(times):
            arrays = [array for one in draws for array in one()]
            for table, array in zip(tables, arrays):
                table[step] = array
        return tables


@record(frozen=True, eq=False, slots=True)
class Standpoint:
    """Where Python stood when it asked, and what its next instructions can read."""

    code: Any
    """The instruction; equal where Python asks there again, in this run of its function or in another one."""
    place: Any
    """The same, in one run of the function that turns run in."""
    variables: tuple[tuple[str, Node], ...]
    """Names and nodes of the traced values."""
    held: tuple[Any, Any] | None = None
    """Everything else, in a form that is equal only where it is the same: modes, and what functions under way
    can read, the one that asks first. None where nothing can tell."""
    anchor: int = 0
    """Which of these functions turns run in: of those before it each turn may have runs of its own."""
    compared: int = 0
    """How many of the functions hold nothing else, and were called by the one behind them, not from C."""
    numbers: tuple[tuple[Any, Any], ...] = ()
    """What may be counters: Python's numbers that variables hold, and loops over what may be a `range`."""
    is_in_loop: bool = False
    """Whether the function, or one that has called it, may come here again."""
    stays: tuple[bool, bool] = (False, False)
    """Whether, after no and after yes, what Python holds without a name stays until it asks here again."""
    leaves: tuple[bool, bool] = (True, True)
    """Whether no and yes end the innermost loop around the question."""
    lists: tuple[tuple[Any, int, int, Any], ...] = ()
    """What may grow: lists that variables hold, how long they are, and what their last elements are."""
    values: tuple[tuple[int, Any, Any, Any], ...] = ()
    """What may be of one kind in all turns: numbers, plain arrays and traced values that variables hold.
    Of each the run of the function, the variable, the node, and the kind, which is None for a number."""
    calls_itself: bool = False
    """Whether the function that asks has been called by itself."""
    unknown: tuple[int, ...] = ()
    """How many unnamed values of each function under way are not compared."""

    @property
    def held_within(self) -> Any:
        """What is held up to the function that turns run in."""
        modes, functions = self.held or (None, ())
        return modes, functions[: self.anchor + 1]


@record(frozen=True, eq=False, slots=True)
class Guard:
    """What Python asked of a traced value, and the answer for which the graph holds."""

    node: Node
    answer: np.ndarray
    question: str
    """How it was asked, as "float()"."""
    origin: Origin
    start: int = 0
    """Where the answer begins among the elements of `node`, if that has the answers to several guards."""
    serial: int = field(default_factory=next_serial)
    """Larger than those of the nodes that had been made when Python asked."""
    standpoint: Standpoint | None = None
    """Where Python asked, if it can be told."""
    turns: Any = None
    """Of the guard of a loop with any number of turns (`codegen/rolling/turns.py`), what tells its body from
    others: the answer is KNOWN_TURNS, or another one. None for what Python asked."""
    counts: np.ndarray | None = None
    """Where only some numbers of turns are known, an input that says of each whether it is."""


def answers_of(guards: Iterable[Guard]) -> list[np.ndarray]:
    """The answers with which a trace takes the way of these guards: up to a loop, whose turns it finds."""
    return [guard.answer for guard in takewhile(lambda one: one.turns is None, guards)]


class ConstantNeeded(BaseException):
    """The structure of a traced function depends on the value of numbers among its arguments.

    No Exception, for the function must not catch it.
    """

    def __init__(self, names: set[Any], error: Exception | None = None) -> None:
        super().__init__(names)
        self.names = names
        self.error = error
        """What was raised where they were operands, if that is the reason."""


class DeeperRuleNeeded(BaseException):
    """A derivative asks for the rule of a call inside of more other calls with rules than the trace has it.

    No Exception, for the function must not catch it.
    """

    def __init__(self, depth: int) -> None:
        super().__init__(depth)
        self.depth = depth


def itself(node: Node) -> Node:
    return node


def truth(node: Node) -> Node:
    """What `bool()` makes of it."""
    return node if node.dtype.kind == "b" else e.not_equal(node, 0)


def whole(node: Node) -> Node:
    """What `int()` makes of it, in its own dtype."""
    return e.trunc(node) if node.dtype.kind == "f" else node


def below(node: Node) -> Node:
    """What `math.floor` makes of it, in its own dtype."""
    return e.floor(node) if node.dtype.kind == "f" else node


def above(node: Node) -> Node:
    """What `math.ceil` makes of it, in its own dtype."""
    return e.ceil(node) if node.dtype.kind == "f" else node


def nearest(node: Node) -> Node:
    """What `round()` makes of it, in its own dtype."""
    return e.round_half_even(node) if node.dtype.kind == "f" else node


UNKNOWN_TURN, KNOWN_TURNS, ENDLESS_TURNS = 0, 1, 2
"""Answers of the guard of a loop with any number of turns."""
ROWS = "rows"
"""The question whether the ways of all rows of a batch are known."""
FORMS = (itself, truth, whole, below, above, nearest)

LARGEST_TABLE = 1 << 20
"""Bytes of an array that is captured as a whole when a second part of it is used."""
TABLE_SHARE = 4
"""A larger one is, once the parts that were used are more than one in so many."""
FEWEST_SERVED = 4
"""Parts that one copy of an array must have served before another copy is made of it."""


NO_DRAWS = np.zeros((), INT64)
FEWEST_STACKED = 4
"""Draws of one shape and dtype that are rows of one input."""
OWN_REFERENCES = 2
"""To a captured array that only the trace holds: its own, and that of the call that counts them."""
LARGEST_SHARED = 1 << 16
"""Bytes of a captured array that is compared with others."""


class Trace:
    """The state of one trace: the arrays that it captured, each with its input node.

    Args:
        name: the traced function, for messages.
        differentiable: whether gradients will be taken of the graph; then what the function computes under
            `no_grad` must be cut off in the graph.
        answers: to the first questions that Python asks, whatever the values are; later ones get the values.
        rule_depth: how many calls with rules of their own, one in the function or the rule of the other, have
            their rules traced. A rule that has n calls costs n of those inside, of which a first derivative
            needs none.
    """

    def __init__(
        self,
        name: str,
        differentiable: bool = False,
        answers: Sequence[np.ndarray] = (),
        rule_depth: float = math.inf,
    ) -> None:
        self.name = name
        self.rule_depth = rule_depth
        self.differentiable = self.records = differentiable
        self.values = ConcreteValues()
        """Of the call that is being traced; where no input has been given a value, there are none."""
        self.guards: list[Guard] = []
        self.without_gradient: set[Node] = set()
        """Results that are made of what gradients are cut off from, and of nothing else."""
        self.strides: dict[Node, tuple[int, ...]] = {}
        """How values would lie in memory, as far as that was asked."""
        self.input_strides: dict[Node, tuple[int, ...]] = {}
        """Of inputs that do not lie in C's order how they do."""
        self.made_of: dict[Node, tuple[list[Node], Any]] = {}
        """The arrays of which a function of NumPy's has made a value: if these lie in C's order, it does; and
        whether it lies as the first one in any case, or else what calls that function, to see how it lies."""
        self.layouts_matter = False
        """Whether the function has written into anything, as then it matters which reshapes are copies, or
        has asked how values lie."""
        self._answers = answers
        self._asked: dict[tuple[Node, Any], np.ndarray] = {}
        self.streams: dict[Stream, Any] = {}
        """The streams of random numbers that were drawn from, and their state before."""
        self.standpoint: Callable[[], Standpoint | None] = lambda: None
        """Where Python stands."""
        self.over: Callable[[range, Any], Any] = lambda steps, frame: steps
        """What a function gets that calls `range`."""
        self.over_elements: Callable[[Any, Any, Any], Any] = lambda elements, loop, frame: None
        """What a `for` gets that runs through an array or the like; None for what it gets in any case."""
        self.stood: Callable[[Any], Any] = itself
        """Where a stream of the user's stood before the trace."""
        self.drawn: list[tuple[Draw, tuple[Node, ...]]] = []
        """What is drawn anew in each call: the function that draws, and the input nodes of what it gives."""
        self.counts: list[Node | None] = [None]
        """Of the function, then of each body under way, the count of draws of code's (`draw_order.py`)."""
        self.drawn_by_code: dict[Stream, Any] = {}
        """The streams that code draws from, and their state before it does."""
        self.numbers: dict[Node, Any] = {}
        """The inputs that are Python's numbers, with their names: their exact values are no guards."""
        self.counters: frozenset[Any] = frozenset()
        """Those that count the turns of loops."""
        self.lost_numbers = lost_numbers.LostNumbers()
        self.notes: tuple[str, ...] = ()
        """What was found out about the function while it was traced, for `explain()`."""
        self.dropped = ""
        """Why a transform must not use the graph: it drops a gradient as PyTorch does. Empty if it may."""
        self.recorded_writes: set[int] = set()
        """The ids of the version cells of memory that was written to while operations were recorded."""
        self.at_gradient: Callable[[Any, bool], None] = lambda tensor, accumulates: None
        """Called with a tensor before its `.grad` is looked at, set or added to."""
        self.chosen: dict[int, tuple[Any, tuple[Any, Any, Any]]] = {}
        """By identity, numbers that are Python's or NumPy's by a question which code answers: the number
        itself, then the question, and what it is if so, and if not."""
        self.rebound: set[int] = set()
        """The ids of stand-ins that the function has given other memory."""
        self.bodies: list[int] = []
        """Of each body of a loop that is being traced, the serial number of its first node."""
        self.asked_of_rows: list[list[Guard]] = []
        """Of the first of these, which are traced with the values of a row of a batch, what they ask."""
        self.follows_rows: Any = None
        """Traces the body of a loop over the rows of a batch, which may ask (`runtime/tracing/ways.py`)."""
        self._depths: dict[Node, int] = {}
        """Of values how many bodies are around what they are made of; those not in it are made of others."""
        self._presets: dict[int, tuple[np.ndarray, Node]] = {}
        self._captured: list[_Captured] = []
        self._latest_pairs: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        """By id, complex arrays that were captured, and their pairs, which show the same memory."""
        self._latest: dict[int, _Captured] = {}
        """By the id of the array."""
        self._tables: dict[int, _Table] = {}
        """The arrays of which views were captured, by id."""

    def require_rules(self, depth: int) -> None:
        """Raises DeeperRuleNeeded unless rules are traced inside of so many calls."""
        if depth > self.rule_depth:
            raise DeeperRuleNeeded(depth)

    @property
    def is_in_loop(self) -> bool:
        """Whether what is traced is the body of a loop, of whose values none are known."""
        return len(self.bodies) > len(self.asked_of_rows)

    def preset(self, array: np.ndarray, node: Node) -> None:
        """Let `node` stand for a concrete array whose place is known, wherever the array turns up."""
        self._presets.setdefault(id(array), (array, node))

    def capture(self, array: np.ndarray) -> Node:
        """The input node of a concrete array: one for as long as nobody writes into the array."""
        preset = self._presets.get(id(array))
        if preset is not None:
            return preset[1]
        found = self._latest.get(id(array))
        if found is None or not found.is_unchanged():
            part = self._part_of_captured(array)
            if part is not None:
                return part
            require_supported(array.dtype, self.name, "a captured array")
            if array.dtype.kind == "c":
                return of_pairs(self._pairs(array))
            node = make_named_input(spec_of(array), f"captured_{len(self._captured)}")
            found = self._latest[id(array)] = _Captured(array, array.copy(), node)
            self._captured.append(found)
            self.values.give(node, found.content, varies=False)
        return found.node

    def _pairs(self, array: np.ndarray) -> Node:
        """The input node of complex numbers as pairs of real ones, one for all uses of an array."""
        whole, pairs = self._latest_pairs.get(id(array), (None, array))
        if whole is None:
            pairs = np.asarray(array, order="C")[..., None].view(real_dtype(array.dtype))
            if np.may_share_memory(pairs, array):
                self._latest_pairs[id(array)] = array, pairs
        return self.capture(pairs)

    def _part_of_captured(self, view: np.ndarray) -> Node | None:
        """A view of an array of which other parts were captured, as a slice of that array.

        So the rows of a table that a loop reads are rows of one input.
        """
        base = view.base
        if not isinstance(base, np.ndarray):
            return None
        table = self._tables.setdefault(id(base), _Table(base))
        table.parts += 1
        if table.parts == 1 or base.nbytes > max(LARGEST_TABLE, TABLE_SHARE * table.parts * view.nbytes):
            return None
        region = region_of_view(view, base)
        if region is None:
            return None
        preset, found = self._presets.get(id(base)), self._latest.get(id(base))
        if preset is not None:
            node = preset[1]
        elif found is not None and np.array_equal(region.of(found.content).reshape(view.shape), view):
            node = found.node
        elif found is None or table.served >= FEWEST_SERVED:
            node, table.served = self.capture(base), 0
        else:  # it is written to between one use and the next
            return None
        table.served += 1
        part = slice_(node, starts=region.starts, stops=region.stops, steps=region.steps)
        return reshape(part, shape=view.shape) if part.shape != view.shape else part

    def capture_drawn(
        self,
        draw: Callable[[], np.ndarray],
        stream: Stream,
        several: Callable[[int], np.ndarray] | None = None,
    ) -> Node:
        """The input node of random numbers: each call of the compiled function calls `draw` for its value.

        `draw` returns an array of one shape and dtype, fresh numbers of the stream each time. It is called
        once now, to know them; the first call of the compiled function takes these numbers, so a seed gives
        the same sequence as without compiling.
        """
        self.streams.setdefault(stream, stream.get_state())
        (node,) = self._enter_drawn((draw(),), lambda: (draw(),), several)
        return node

    def capture_count(self) -> Node:
        """The input node that the first draw of code takes: no draw yet."""
        (node,) = self._enter_drawn((NO_DRAWS,), lambda: (NO_DRAWS,))
        return node

    def _enter_drawn(
        self,
        arrays: Sequence[np.ndarray],
        draw: Callable[[], Sequence[np.ndarray]],
        several: Callable[[int], np.ndarray] | None = None,
    ) -> tuple[Node, ...]:
        first = sum(len(nodes) for _, nodes in self.drawn)
        nodes = tuple(
            make_named_input(spec_of(array), f"drawn_{place}", current_origin())
            for place, array in enumerate(arrays, first)
        )
        for node, array in zip(nodes, arrays):
            self.values.give(node, array)
        self.drawn.append((Draw(arrays, draw, several), nodes))
        return nodes

    def repeat_drawn(self, since: int, times: int, backwards: bool) -> dict[Node, Node]:
        """Draw in each of so many steps of a loop what its body, traced once, has drawn.

        Args:
            since: how much had been drawn before the body.
            backwards: whether the first step takes the last row.

        Returns, for each input node of the body's draws, that of a stack of what all steps draw.
        """
        inside = self.drawn[since:]
        if not inside:
            return {}
        del self.drawn[since:]

        draws, inputs = [one for one, _ in inside], [node for _, nodes in inside for node in nodes]

        def draw() -> list[np.ndarray]:
            tables = Draw.in_steps(draws, [node.spec for node in inputs], times)
            return [np.ascontiguousarray(table[::-1]) if backwards else table for table in tables]

        return dict(zip(inputs, self._enter_drawn(draw(), draw)))

    def stack_drawn(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """The nodes, made of rows of one input for all draws that are alike, if there are some.

        So a loop of Python's that draws in each step can be rolled.
        """
        nodes = tuple(nodes)
        alike: dict[Spec, list[Node]] = {}
        for node in (node for _, drawn in self.drawn for node in drawn):
            alike.setdefault(node.spec, []).append(node)
        tables = [drawn for drawn in alike.values() if len(drawn) >= FEWEST_STACKED]
        if not tables:
            return nodes
        inside, self.drawn = self.drawn, []
        singles = [node for drawn in alike.values() if len(drawn) < FEWEST_STACKED for node in drawn]

        def draw() -> list[np.ndarray]:
            found = {node: array for one, drawn in inside for node, array in zip(drawn, one())}
            return [np.stack([found[node] for node in table]) for table in tables] + [
                found[node] for node in singles
            ]

        inputs = self._enter_drawn(draw(), draw)
        new: dict[Node, Node] = dict(zip(singles, inputs[len(tables) :]))
        for stack, table in zip(inputs, tables):
            new.update((node, row_of(stack, place)) for place, node in enumerate(table))
        return _made_of(nodes, new)

    def ask(self, node: Node, question: str, form: Callable[[Node], Node] = itself) -> np.ndarray | None:
        """The value of `form(node)` in the call that is traced; None if there is none.

        It becomes a guard, unless it is the same in all calls.
        """
        known = self._asked.get((node, form))
        if known is not None:
            return known
        asked = form(node)
        if asked.dtype.kind == "c":  # guards are real
            pairs = self.ask(pairs_of(asked), question)
            if pairs is not None:
                self._asked[node, form] = of_pairs.evaluate(pairs)
            return self._asked.get((node, form))
        varies = self.values.varies(asked)
        if varies and form is not truth and asked.dtype.kind != "b":
            self.require_no_numbers(asked)
        depth = self.depth_of(asked)
        if depth and (asked.spec.shape or asked.spec.is_float):  # rows have as many answers as values
            return None
        guards = self.asked_of_rows[depth - 1] if depth else self.guards
        position = len(guards)
        if (
            varies
            and not depth
            and position < len(self._answers)
            and self._answers[position].shape == asked.shape
        ):
            answer = self._answers[position]
        else:
            value = self.values.of(asked)
            if value is None:
                return None
            answer = np.array(value, asked.dtype)
        answer.setflags(write=False)
        if varies:
            is_innermost = depth == len(self.asked_of_rows)
            standpoint = self.standpoint() if is_innermost else None
            guards.append(Guard(asked, answer, question, current_origin(), standpoint=standpoint))
        self._asked[node, form] = answer
        return answer

    def give_row(self, node: Node, stack: Node, place: int) -> None:
        """Let the input of a body be a row of a stack for as long as the body is traced."""
        self.values.define(node, lambda: row_of(stack, place))
        self._depths[node] = len(self.asked_of_rows)

    def depth_of(self, node: Node) -> int:
        """In how many bodies of loops over rows of batches what a value is made of is given; 0 for none."""
        if not self._depths:
            return 0
        pending = [node]
        while pending:
            one = pending[-1]
            missing = [operand for operand in one.operands if operand not in self._depths]
            if one not in self._depths and not missing:
                self._depths[one] = max((self._depths[operand] for operand in one.operands), default=0)
            pending = [*pending, *missing] if missing else pending[:-1]
        return self._depths[node]

    def require(self, guard: Guard) -> None:
        """Let the graph hold for calls alone in which a question has this answer."""
        depth = self.depth_of(guard.node)
        (self.asked_of_rows[depth - 1] if depth else self.guards).append(guard)

    def known_answers(self, node: Node) -> tuple[tuple[str, bytes], ...]:
        """What Python knows of a value, which it need not ask again."""
        found = ((form, self._asked.get((node, form))) for form in FORMS)
        return tuple((form.__name__, answer.tobytes()) for form, answer in found if answer is not None)

    def numbers_of(self, node: Node) -> set[Any]:
        """The Python numbers among the arguments that a value is made of; none where it is of others too."""
        if not self.numbers:
            return set()
        inputs = {one for one in toposort((node,)) if one.is_input}
        return {self.numbers[one] for one in inputs} if inputs <= self.numbers.keys() else set()

    def is_count(self, node: Node) -> bool:
        """Whether a value is made of what counts the turns of loops alone."""
        names = self.numbers_of(node)
        return bool(names) and names <= self.counters

    def require_no_numbers(self, node: Node) -> None:
        """Raises ConstantNeeded: the value is that of Python's numbers among the arguments alone."""
        names = self.numbers_of(node)
        if names:
            raise ConstantNeeded(names)

    def share_captured(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        """The nodes, made of one of those captured arrays that are equal and that nobody else holds.

        So `np.eye(3)` in each step of a loop is one constant, and the loop can be rolled. What code can
        write as well, as that, is made there.
        """
        same = self.equal_captured()
        return _made_of(nodes, same) if same else tuple(nodes)

    @property
    def own_contents(self) -> dict[Node, np.ndarray]:
        """What those captured arrays hold that nobody else does, by their nodes."""
        return {one.node: one.content for one in self._captured if self._is_own(one)}

    def _is_own(self, one: _Captured) -> bool:
        is_held_here_alone = one.array.base is None and sys.getrefcount(one.array) <= OWN_REFERENCES
        return is_held_here_alone and one.array.nbytes <= LARGEST_SHARED and one.is_unchanged()

    def equal_captured(self) -> dict[Node, Node]:
        """Of those captured arrays that nobody else holds, what is the same value as a captured one.

        Their sizes have one name from here on, in what has been traced as well.
        """
        first: dict[tuple[Spec, bytes], Node] = {}
        shared: dict[Node, Node] = {}
        same: dict[Node, Node] = {}
        for one in self._captured:
            if self._is_own(one):
                found = first.setdefault((one.node.spec, one.content.tobytes()), one.node)
                equated_shapes(found.shape, one.node.shape)
                if found not in shared:
                    with located_at(UNKNOWN):
                        made = created(one.content)
                    shared[found] = found if made is None else made
                if shared[found] is not one.node:
                    same[one.node] = shared[found]
        return same

    def keep_contents(self, is_constant: Callable[[np.ndarray], bool]) -> None:
        """Take copies of those captured arrays that are constants as long as the guards hold."""
        self._captured = [
            replace(one, array=one.content) if is_constant(one.array) else one for one in self._captured
        ]

    def owns_captured(self) -> bool:
        """Whether nobody but the trace holds what it has captured."""
        views = Counter(id(one.array.base) for one in self._captured)
        return all(one.array is one.content or self._holds_alone(one, views) for one in self._captured)

    def _holds_alone(self, captured: _Captured, views: Mapping[int, int]) -> bool:
        base = captured.array.base
        if isinstance(base, np.ndarray) and base.base is None:
            known = views[id(base)] + (id(base) in self._tables)
            is_own = sys.getrefcount(base) <= known + OWN_REFERENCES  # the variable here, and the call's
        else:
            is_own = base is None
        return is_own and sys.getrefcount(captured.array) <= OWN_REFERENCES

    @property
    def captured(self) -> list[tuple[np.ndarray, Node]]:
        """The captured arrays whose place is not known, and their nodes, in the order of first use.

        Of an array that was written to after it was captured it is the former content.
        """
        return [(one.array if one.is_unchanged() else one.content, one.node) for one in self._captured]


def created(array: np.ndarray) -> Node | None:
    """An array that code can write: zeros, ones, `np.arange(n)` and `np.eye(n)`."""
    kind, size = array.dtype.kind, len(array) if array.ndim else 0
    if size < 2 or not array.size or kind not in "fiu":
        return None
    if array.flat[0] in (0, 1) and (array == array.flat[0]).all() and not np.signbit(array).any():
        attributes = {"shape": array.shape, "value": array.flat[0].item(), "dtype": array.dtype}
        return make_node(full, (), attributes)
    if array.ndim == 1 and kind == "i" and array[1] == 1 and np.array_equal(array, np.arange(size)):
        return make_node(iota, (), {"size": size, "dtype": array.dtype})
    if array.shape == (size, size) and array[0, 0] == 1 and np.array_equal(array, np.eye(size)):
        places = make_node(iota, (), {"size": size, "dtype": INT64})
        is_on_diagonal = e.equal(reshape(places, shape=(size, 1)), places)
        return e.convert(is_on_diagonal, dtype=array.dtype)
    return None


@record(frozen=True, eq=False, slots=True)
class _Captured:
    """An array, kept alive and with it its id, what it held when it was captured, and the node of that."""

    array: np.ndarray
    content: np.ndarray
    node: Node

    def is_unchanged(self) -> bool:
        return np.array_equal(self.array, self.content, equal_nan=self.array.dtype.kind == "f")


@record(slots=True)
class _Table:
    """An array of which parts were captured: how many, and how many of them as parts of its last copy."""

    base: np.ndarray
    parts: int = 0
    served: int = 0


def _made_of(nodes: Iterable[Node], inputs: Mapping[Node, Node]) -> tuple[Node, ...]:
    """The nodes, of other inputs: all of them anew, which keeps their order."""
    new, nodes = dict(inputs), tuple(nodes)
    for node in toposort(nodes):
        if node.operands:
            operands = tuple(new.get(one, one) for one in node.operands)
            new[node] = make_node(
                node.operator, operands, node.attributes, origin=node.origin, name=node.name
            )
    return tuple(new.get(node, node) for node in nodes)


def is_tracing() -> bool:
    return _current.get() is not None


def current_trace() -> Trace:
    """The innermost trace; LeakedTraceError outside of any."""
    trace = _current.get()
    if trace is None:
        raise LeakedTraceError(
            "A traced value was used after its trace had ended. A compiled function must return its results, "
            "not store them in globals or attributes."
        )
    return trace


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    token, numbers = _current.set(trace), lost_numbers.current.set(trace.lost_numbers)
    try:
        yield trace
    finally:
        _current.reset(token)
        lost_numbers.current.reset(numbers)
