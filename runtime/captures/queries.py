"""What a traced function asks of tables of another library: each call asks it anew, of the tables it has.

In a trace an `AskedTable` (`asked_tables.py`) stands for each table in reach. What is asked of it is asked of
a copy of the table, and noted as a `Query`. An answer that is a table, or another object of the library, has
a stand-in again; an array of numbers, or a float, is an input of the trace; all else is a plain value, and a
condition: a call for which it is another one is traced anew. So what only the library can do, such as
grouping by text, is done by the library, for each table once, and programs hold for other numbers.

What depends on the answers alone (`np.log(table["t"].to_numpy())`) may go back into a table: then it is
computed by NumPy between the queries. What depends on arguments can't: labels end there, or its value in the
call is a guard, or the trace is `Unfollowed`: made once more, with the content of all tables a constant.
"""

from __future__ import annotations

import builtins
import contextvars
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, MappingView, Sequence, Set
from dataclasses import field
from types import BuiltinFunctionType, CodeType, FunctionType
from typing import Any, NoReturn

import numpy as np

from ...tracer.errors import LeakedTraceError
from ...tracer.graph import Graph, Node, toposort
from ...tracer.interpret import evaluate_graph
from ...tracer.origin import at_caller
from ...tracer.records import record
from ...tracer.spec import SUPPORTED
from ...tracer.trace import innermost
from ..bytecode.code_names import names_of
from ..tracing.signature import conform
from ..values.dtypes import DType
from ..values.foreign import module_of
from ..values.memory_order import layout_of
from ..values.tensor import Tensor, make
from ..values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber, kind_of_value
from .asked_tables import AskedTable
from .contents import PLAIN_TYPES, Content, same
from .objects import StandingFunction, is_users
from .state import Counted
from .tables import Library, State, library_with

MOST_QUERIES = 10_000
"""In a trace: a call whose tables are others asks them all."""
MOST_NUMBERS = 100
"""Single numbers that are inputs of a trace: of more a program takes long to compile."""
Expected = Callable[[Any], bool]
FOLLOWED = [dtype for dtype in SUPPORTED if dtype.kind in "iuf"] + [np.dtype(bool)]
"""The dtypes of answers that are inputs."""
VALUES: frozenset[type] = frozenset((bool, int, float, complex, str, bytes, type(None), type(...), range))
"""Classes of answers that are conditions."""
CONTAINERS = (list, tuple, dict)
PURE: frozenset[Hashable] = frozenset((
    getattr, len, bool, iter, operator.getitem, operator.contains, operator.and_, operator.or_, operator.xor,
    operator.neg, operator.pos, operator.abs, operator.invert, operator.add, operator.sub, operator.mul,
    operator.truediv, operator.floordiv, operator.mod, operator.pow, operator.matmul, operator.eq,
    operator.ne, round, operator.lt, operator.le, operator.gt, operator.ge,
))  # fmt: skip
"""Functions that change no object: asked twice, they have one answer."""
WRITING = frozenset((np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis))
"""Functions of NumPy's that write into an argument."""


class Unfollowed(BaseException):
    """A trace whose function does with a table what is not followed. Not for handlers of the user's."""


@record(frozen=True, slots=True)
class Answer:
    """In the arguments of a query: what an earlier one gave."""

    place: int


@record(frozen=True, slots=True)
class Slice:
    """In them, a slice."""

    start: Any
    stop: Any
    step: Any


@record(frozen=True, slots=True)
class Query:
    """A question to tables: a function, with arguments in which `Answer`s stand for tables."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    key: Any
    """What equal queries share."""
    is_expected: Expected
    """Whether an answer, or an error that it raised, is one that the trace holds for."""
    is_input: bool
    """Whether the answer is an input of the trace."""


@record(eq=False)
class Queries:
    """What is asked of the tables that a function reaches: noted by a trace, then asked in each call.

    Attributes:
        labels: of the tables, what to call them ...
        kinds: ... and their classes.
        asked: the queries; the places of their answers count from the tables on.
        inputs: the answers that are inputs of the trace, with what to call them.
        enter: makes a node of one; None where no trace is under way.
    """

    labels: list[str] = field(default_factory=list)
    kinds: list[type] = field(default_factory=list)
    asked: list[Query] = field(default_factory=list)
    inputs: list[tuple[np.ndarray, str]] = field(default_factory=list)
    enter: Callable[[np.ndarray, str], Node] | None = None
    _tables: list[Any] = field(default_factory=list)
    _specs: list[Any] = field(default_factory=list)
    """Of the inputs, their shapes and dtypes."""
    _values: list[Any] = field(default_factory=list)
    """What is at each place in the trace: first copies of the tables."""
    _first: list[int] = field(default_factory=list)
    """Of each place the first one that holds an equal object."""
    _writes: int = 0
    """How many queries may have changed an object."""
    _numbers: int = 0
    _by_key: dict[Any, int] = field(default_factory=dict)
    _nodes: dict[Node, int] = field(default_factory=dict)
    """Nodes whose values follow from answers alone -> their places."""
    _inputs: dict[int, Node] = field(default_factory=dict)
    _shown: list[tuple[Tensor, Node]] = field(default_factory=list)
    """Tensors of arrays that tables may show as well."""
    _stand_ins: dict[int, AskedTable] = field(default_factory=dict)
    _known: tuple[list[State], tuple[np.ndarray, ...]] | None = None
    """Of the tables that were asked last their states, and the inputs that they gave."""

    # --- in a call --------------------------------------------------------------------------------------

    def __call__(self, *tables: Any) -> tuple[np.ndarray, ...] | None:
        """The inputs of a call with these tables; None where they answer otherwise than in the trace."""
        if [*map(type, tables)] != self.kinds:
            return None
        known = self._known
        if known is not None and all(state.is_of(table) for state, table in zip(known[0], tables)):
            return known[1]
        found = self._ask_all(tables)
        if found is None:
            return None
        states = [state for table in tables if (state := self.library.state(table)) is not None]
        if len(states) < len(tables):
            return found
        found = tuple(np.array(one) for one in found)  # which nobody writes into
        self._known = states, found
        return found

    def _ask_all(self, tables: Sequence[Any]) -> tuple[np.ndarray, ...] | None:
        writes = self._writes > 0
        answers = [self.library.copied(table) for table in tables] if writes else [*tables]
        places: dict[Any, int] = {}
        found: list[np.ndarray] = []
        for query in self.asked:
            first = None if writes else places.setdefault(query.key, len(answers))
            if first is not None and first < len(answers):
                answers.append(answers[first])
                continue
            try:
                arguments, options = built(query.arguments, answers), built(query.options, answers)
                answer = query.function(*arguments, **options)
            except Exception as error:
                answer = error
            if not query.is_expected(answer):
                return None
            answers.append(answer)
            if query.is_input:
                found.append(conform(answer).view())  # an object of its own
        return tuple(found)

    @property
    def library(self) -> Library:
        """That of the tables."""
        found = library_with(self.kinds[0])
        assert found is not None
        return found

    @property
    def form(self) -> tuple[Any, ...]:
        """What those of two traces share that give the same inputs."""
        return tuple(query.key for query in self.asked), tuple(self._specs)

    # --- a trace ----------------------------------------------------------------------------------------

    def add(self, table: Any, label: str) -> int:
        """The place of a table that is in reach."""
        self.labels.append(label)
        self.kinds.append(type(table))
        self._values.append(table)
        self._first.append(len(self._first))
        return len(self.labels) - 1

    def begin(self, enter: Callable[[np.ndarray, str], Node]) -> None:
        """Let a trace ask, which makes nodes of what is given to it, and of what to call that."""
        self.enter = enter
        self._tables = [*self._values]
        self._values = [self.library.copied(table) for table in self._tables]

    def end(self) -> None:
        """Let no more be asked, as the trace is over, and keep nothing of the user's alive.

        Raises:
            Unfollowed: the function has changed a table in reach, or what it shows.
        """
        self.enter = None
        for tensor, node in self._shown:
            tensor.refresh()
            if tensor._value is not node:
                raise Unfollowed("the memory of a table is written into")
        for table, now, label in zip(self._tables, self._values, self.labels) if self._writes else ():
            if not Content(table).is_of(now):
                raise Unfollowed(f"{label} is changed")
        self._forget()

    def drop(self) -> None:
        """Let nothing have been asked, as there is no trace."""
        self.enter, self.asked, self.inputs = None, [], []
        self._forget()

    def _forget(self) -> None:
        self._tables, self._values, self._shown = [], [], []
        self._by_key, self._nodes, self._inputs, self._stand_ins = {}, {}, {}, {}

    def stand_in(self, place: int) -> AskedTable:
        """What stands for a table in reach."""
        return self._standing(self._values[place], place, self.labels[place])

    def ask(self, function: Callable[..., Any] | str, text: str, *arguments: Any, **options: Any) -> Any:
        """The answer of a query, with what stands for it in the trace.

        Args:
            function: what to call; the name of a method of the first argument.
            text: the query as the user would write it.

        Raises:
            Unfollowed: something among the arguments, or the answer, is not followed.
            LeakedTraceError: the trace is over.
        """
        if self.enter is None:
            raise LeakedTraceError(
                f"A table of a trace that has ended is used{at_caller()}. A compiled function must return "
                "its results, not store them."
            )
        if innermost() is None or len(self.asked) > MOST_QUERIES:
            raise Unfollowed("too much is asked of it")
        if options.get("out") is not None or function in WRITING:
            raise Unfollowed("an array is written into")
        is_pure = self._is_pure(function) and not options.get("inplace")
        forms = self._form_of(list(arguments)), self._form_of(options)
        call = method(function) if isinstance(function, str) else function
        key = self._key_of(function, forms) if is_pure else object()
        if not is_pure:  # whether it works or raises
            self._writes += 1
            self._first = [*range(len(self._first))]
        try:
            answer = call(*built(forms[0], self._values), **built(forms[1], self._values))
        except Exception as error:
            self._note(call, forms, key, error, is_of(type(error)))
            raise
        if isinstance(answer, Iterator | MappingView):
            elements: Any = answer
            found: list[Any] = self._answered([*elements], listing(call), forms, (key,), text)
            return iter(found)
        return self._answered(answer, call, forms, key, text)

    def _is_pure(self, function: Any) -> bool:
        """Whether a query changes no object."""
        if isinstance(function, str):
            return function in self.library.pure
        if function in PURE or function is self.library.array or isinstance(function, np.ufunc):
            return True
        return module_of(function).partition(".")[0] == "numpy" or library_with(function) is self.library

    def _note(
        self, call: Any, forms: Any, key: Any, answer: Any, is_expected: Expected, is_input: bool = False
    ) -> int:
        """Note a query; the place of its answer."""
        place = len(self._values)
        self.asked.append(Query(call, forms[0], forms[1], key, is_expected, is_input))
        self._values.append(answer)
        self._first.append(self._by_key.setdefault(key, place))
        return place

    def _answered(self, answer: Any, call: Any, forms: Any, key: Any, text: str) -> Any:
        """What stands for an answer."""
        kind = type(answer)
        library = library_with(kind)
        if id(answer) in self._stand_ins:
            self._note(call, forms, key, answer, is_of(kind))
            return self._stand_ins[id(answer)]
        is_numbers = kind is np.ndarray or (isinstance(answer, np.generic) and kind is not np.bool_)
        if kind is float or (is_numbers and answer.dtype in FOLLOWED):
            return self._input(answer, call, forms, key, text)
        if kind in VALUES or isinstance(answer, np.dtype | DType | type | np.generic):
            self._note(call, forms, key, answer, is_same_as(answer))
            return answer
        if library is not None and library.is_plain(answer):
            self._note(call, forms, key, answer, is_same_as(answer))
            return answer
        if isinstance(answer, np.ndarray) or (kind in CONTAINERS and are_plain(answer, VALUES - {float})):
            self._note(call, forms, key, answer, Content(answer).is_of)
            return answer.copy() if isinstance(answer, np.ndarray | dict | list) else answer
        if library is not None and not isinstance(answer, FunctionType | tuple):
            place = self._note(call, forms, key, answer, is_of(kind))
            return self._standing(answer, place, text)
        if kind in CONTAINERS or (isinstance(answer, tuple) and hasattr(kind, "_make")):
            return self._elements(answer, call, forms, key, text)
        raise Unfollowed(f"{text} is of {kind.__name__}")

    def _standing(self, value: Any, place: int, text: str) -> AskedTable:
        found = AskedTable(self, place, value, text)
        return self._stand_ins.setdefault(id(value), found)

    def _input(self, answer: Any, call: Any, forms: Any, key: Any, text: str) -> Tensor:
        kind = kind_of_value(answer)
        known = self._by_key.get(key)
        place = self._note(call, forms, key, answer, is_array_like(answer), is_input=known is None)
        if known is None:
            self._numbers += issubclass(kind, NumpyScalar)
            if self._numbers > MOST_NUMBERS:
                raise Unfollowed("many single numbers are taken from it")
            assert self.enter is not None
            array = conform(answer).view()
            self._inputs[place] = self.enter(array, text)
            self.inputs.append((array, text))
            self._specs.append((array.shape, array.dtype))
        node = self._inputs[place if known is None else known]
        self._nodes.setdefault(node, place)
        tensor = make(node, kind)
        if kind is NumpyTensor and not self.library.is_own(answer):
            self._shown.append((tensor, node))
        return tensor

    def _elements(self, answer: Any, call: Any, forms: Any, key: Any, text: str) -> Any:
        """A list or the like, of whose elements some are followed."""
        kind = type(answer)
        keys = [*answer] if kind is dict else [*range(len(answer))]
        if not all(map(are_plain, keys)):
            raise Unfollowed(f"{text} has keys that are not followed")
        place = self._note(call, forms, key, answer, has_keys(kind, keys))
        fields = getattr(kind, "_fields", ())
        data = {one for one in keys if fields and fields[one] != "Index"}
        """The fields of a row of a table, whose integers decide no more than its floats."""
        found = []
        for one in keys:
            inner: Any = ((Answer(place), one), {})
            key = self._key_of(operator.getitem, inner)
            given = answer[one], operator.getitem, inner, key, f"{text}[{one!r}]"
            is_number = one in data and type(answer[one]) is int
            found.append(self._input(*given) if is_number else self._answered(*given))
        if kind is dict:
            return dict(zip(keys, found))
        return kind._make(found) if hasattr(kind, "_make") else kind(found)

    # --- arguments --------------------------------------------------------------------------------------

    def refuse(self, reason: str) -> NoReturn:
        """Let the trace be made once more, with the content of all tables a constant."""
        raise Unfollowed(reason)

    def concern(self, values: Any) -> bool:
        """Whether there is a table, or a value that follows from tables, among values."""
        if isinstance(values, Tensor):
            return self.follows(values)
        if type(values) in (list, tuple):
            return any(map(self.concern, values))
        if type(values) is dict:
            return any(map(self.concern, values.values()))
        return type(values) is AskedTable

    def follows(self, tensor: Tensor) -> bool:
        """Whether the value of a Tensor depends on answers alone."""
        return self._place_of(tensor) is not None

    def _form_of(self, value: Any) -> Any:
        """An argument, with `Answer`s in the place of what follows from tables."""
        kind = type(value)
        if kind is AskedTable:
            if value._queries is not self:
                raise Unfollowed("it is of another trace")
            return Answer(value._place)
        if issubclass(kind, StandingFunction):
            return self._form_of(value._real)
        if issubclass(kind, Tensor):
            place = self._place_of(value)
            if place is not None:
                return Answer(place)
            array = np.array(value)  # a guard
            if not issubclass(kind, NumpyScalar):
                return array
            return array.item() if kind is PythonNumber else array[()]
        if kind in (list, tuple):
            return kind([self._form_of(one) for one in value])
        if kind is dict:
            return {key: self._form_of(one) for key, one in value.items()}
        if kind is slice:
            return Slice(*(self._form_of(one) for one in (value.start, value.stop, value.step)))
        if kind is np.ndarray and (not value.dtype.hasobject or are_plain(value.tolist())):
            return value.copy()
        if isinstance(value, Counted):
            raise Unfollowed("it is given a number that the function counts")
        if isinstance(value, (*PLAIN_TYPES, np.generic, np.dtype, type, np.ufunc, BuiltinFunctionType)):
            return value
        if module_of(kind) == "datetime":
            return value
        library = library_with(kind)
        if library is not None and library.is_plain(value):
            return value
        if library is not None and library.is_table(kind):
            return value.copy()
        if callable(value) and module_of(value).partition(".")[0] == "numpy":
            return value
        if isinstance(value, FunctionType) and not value.__closure__:
            if not is_users(value):
                return value
            if not (value.__defaults__ or value.__kwdefaults__) and is_closed(value.__code__):
                return FunctionType(value.__code__, {})
        raise Unfollowed(f"it is given an object of {kind.__name__}")

    def _place_of(self, tensor: Tensor) -> int | None:
        """The place of the value of a Tensor; None if it depends on more than answers.

        An argument of the function, or a draw, varies from call to call.
        """
        tensor.refresh()
        node, trace = tensor._value, innermost()
        if not isinstance(node, Node) or trace is None or trace.depth_of(node) or tensor._is_torch:
            return None
        if node in self._nodes:
            return self._nodes[node]
        plain = trace.values.plain(node)
        inputs = [one for one in toposort((plain,)) if one.is_input]
        known = [one for one in inputs if one in self._nodes]
        if not known or any(trace.values.varies(one) for one in inputs if one not in self._nodes):
            return None
        constants = {one: trace.values.of(one) for one in inputs if one not in self._nodes}
        if any(value is None for value in constants.values()):
            return None
        computed = Computed(Graph("answer", tuple(inputs), (plain,)), type(tensor), constants)
        forms: Any = (tuple(Answer(self._nodes[one]) for one in known), {})
        answer = computed(*built(forms[0], self._values))
        self._nodes[node] = self._note(computed, forms, (node,), answer, is_array_like(answer))
        return self._nodes[node]

    def _key_of(self, function: Any, forms: Any) -> Any:
        """What equal queries share; an object of its own where that is not known."""
        try:
            return self._writes, function, *(self._key_of_form(form) for form in forms)
        except TypeError:
            return object()

    def _key_of_form(self, form: Any) -> Any:
        kind = type(form)
        if kind is Answer:
            return Answer, self._first[form.place]
        if kind in (list, tuple):
            return kind, tuple(map(self._key_of_form, form))
        if kind is dict:
            return dict, tuple((key, self._key_of_form(one)) for key, one in form.items())
        if kind is Slice:
            return Slice, tuple(map(self._key_of_form, (form.start, form.stop, form.step)))
        if kind is np.ndarray and not form.dtype.hasobject:
            return form.dtype, form.shape, form.tobytes()
        if isinstance(form, float):
            return kind, form.hex()
        if not isinstance(form, (*PLAIN_TYPES, np.dtype, type)):
            raise TypeError
        return kind, form


class Computed:
    """What follows from answers, computed by NumPy.

    Args:
        graph: from its inputs to the value.
        kind: what the value is of.
        constants: the inputs that are no answers.
    """

    def __init__(self, graph: Graph, kind: type[Tensor], constants: Mapping[Node, Any]) -> None:
        self._graph = graph
        self._kind = kind
        self._constants = constants

    def __call__(self, *answers: Any) -> Any:
        waiting = iter(answers)
        given = [
            self._constants[one] if one in self._constants else np.asarray(next(waiting))
            for one in self._graph.inputs
        ]
        with np.errstate(all="ignore"):
            value = np.asarray(contextvars.Context().run(evaluate_graph, self._graph, given)[0])
        if not issubclass(self._kind, NumpyScalar):
            return value
        return value.item() if self._kind is PythonNumber else value[()]


# --- the parts of queries -----------------------------------------------------------------------------


def built(form: Any, answers: Sequence[Any]) -> Any:
    """The arguments of a query, from what earlier ones have given."""
    kind = type(form)
    if kind is Answer:
        return answers[form.place]
    if kind in (list, tuple):
        return kind([built(one, answers) for one in form])
    if kind is dict:
        return {key: built(one, answers) for key, one in form.items()}
    if kind is Slice:
        return slice(*(built(one, answers) for one in (form.start, form.stop, form.step)))
    return form


def method(name: str) -> Callable[..., Any]:
    """What calls the method of that name of its first argument."""
    return lambda owner, *arguments, **options: getattr(owner, name)(*arguments, **options)


def listing(call: Callable[..., Any]) -> Callable[..., Any]:
    """What gives what another function iterates over as a list."""
    return lambda *arguments, **options: [*call(*arguments, **options)]


def is_closed(code: CodeType) -> bool:
    """Whether code of the user's names nothing from outside but what is built in."""
    names = names_of(code)
    return not names.stored and vars(builtins).keys() >= {*names.loaded} - {"globals"}


def are_plain(value: Any, kinds: Set[type] = VALUES) -> bool:
    """Whether a value is nothing but plain values of some kinds, in containers of Python's."""
    if type(value) in CONTAINERS:
        elements = [*value, *value.values()] if type(value) is dict else value
        return all(are_plain(one, kinds) for one in elements)
    return type(value) in kinds


# --- what is expected of answers ----------------------------------------------------------------------


def is_of(kind: type) -> Expected:
    return lambda answer: type(answer) is kind


def is_same_as(expected: Any) -> Expected:
    def is_expected(answer: Any) -> bool:
        return same(expected, answer) or (type(expected) is type(answer) and bool(expected == answer))

    return is_expected


def is_array_like(expected: Any) -> Expected:
    """Whether an answer is an array of a dtype, shape and order in memory, or a number of a dtype."""
    kind = type(expected)
    if kind in (float, int):
        return is_of(kind)
    dtype, shape = expected.dtype, expected.shape
    layout = layout_of(expected) if len(shape) > 1 else ()

    def is_expected(answer: Any) -> bool:
        if type(answer) is not kind or answer.dtype != dtype or answer.shape != shape:
            return False
        return not layout or layout_of(answer) == layout

    return is_expected


def has_keys(kind: type, keys: Sequence[Any]) -> Expected:
    """Whether an answer is a container of a class and length, a dict with these keys."""

    def is_expected(answer: Any) -> bool:
        if type(answer).__name__ != kind.__name__ or len(answer) != len(keys):
            return False
        return kind is not dict or same(tuple(answer), tuple(keys))

    return is_expected
