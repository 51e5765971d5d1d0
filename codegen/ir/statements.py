"""Statements of the loop IR, and how to walk them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, fields, is_dataclass, replace
from typing import Any, Literal, Union, get_args

from pullback.tracer.operator import Monoid
from pullback.tracer.origin import Origin

from ...tracer.records import record
from ..host import HostCall
from .expressions import Buffer, Cast, Const, Expr, Extent, Load, Variable, parts
from .formulas import apply_operator

Origins = tuple[Origin, ...]
"""Where a statement comes from: first the value that it is about, then what is computed on the way."""
Kind = Literal["serial", "parallel", "block", "unrolled"]


@record(frozen=True, slots=True)
class Let:
    """A variable that begins here."""

    variable: Variable
    value: Expr
    origins: Origins = field(default=(), compare=False)

    @property
    def defined(self) -> str:
        """The name that it gives to something."""
        return self.variable.name


@record(frozen=True, slots=True)
class Assign:
    """Another value of a variable; or its first one, on each side of a choice."""

    variable: Variable
    value: Expr
    origins: Origins = field(default=(), compare=False)


@record(frozen=True, slots=True)
class Store:
    """An element of a buffer is written."""

    target: Load
    value: Expr
    origins: Origins = field(default=(), compare=False)


@record(frozen=True, slots=True)
class Accumulate:
    """A value is combined with what a variable or an element holds."""

    target: Variable | Load
    value: Expr
    monoid: Monoid
    in_any_order: bool = True
    """Whether a compiler may combine the values of a loop in another order, as vectors do."""
    origins: Origins = field(default=(), compare=False)

    @property
    def combined(self) -> Expr:
        """What the target becomes."""
        return narrowed(apply_operator(self.monoid.fold, (self.target, self.value), self.target.dtype))


@record(frozen=True, slots=True)
class For:
    """A loop over whole numbers from `start` up to `stop`, without that."""

    variable: Variable
    start: Expr
    stop: Expr
    body: Body
    kind: Kind = "serial"
    """A parallel loop's iterations may run at once; those of a block loop are `step` apart."""
    step: int = 1
    count: int = field(default=0, compare=False)
    """How many iterations there are at most in the call that was traced; 0 where that is not known."""


@record(frozen=True, slots=True)
class While:
    """A loop that goes on as long as its condition is true."""

    condition: Expr
    body: Body


@record(frozen=True, slots=True)
class If:
    """The body of the first case whose condition is true, else `otherwise`."""

    cases: tuple[tuple[Expr, Body], ...]
    otherwise: Body = ()


@record(frozen=True, slots=True)
class Check:
    """An error unless the condition holds: a position from data lies beyond the end of an array."""

    condition: Expr
    error: str


@record(frozen=True, slots=True)
class Return:
    """The function ends."""


@record(frozen=True, slots=True)
class View:
    """The memory of a buffer in another shape, under a name of its own."""

    buffer: Buffer
    source: Buffer
    shape: tuple[Expr, ...]
    origins: Origins = field(default=(), compare=False)

    @property
    def defined(self) -> str:
        """The name that it gives to something."""
        return self.buffer.name


@record(frozen=True, slots=True)
class Span:
    """From `start` up to `stop`, without that; all of a dimension where there are no limits."""

    start: Expr | None = None
    stop: Expr | None = None


WHOLE = Span()
PART = (Variable("start"), Variable("stop"))
"""Where threads share a function or a body: which iterations of its parallel loops a part runs."""
THREADS = Variable("threads")
"""The parameter of a function in which threads share bodies: how many threads there are."""


@record(frozen=True, slots=True)
class Sharing:
    """How threads share a function or a body, in parts of the iterations of its parallel loops."""

    extent: int
    """How many iterations there are in the call that was traced."""
    totals: tuple[tuple[Buffer, Monoid], ...] = ()
    """What each part adds up for itself, to be combined in the order of the parts."""
    private: tuple[Buffer, ...] = ()
    """Scratch that each part has for itself."""
    parts_per_thread: int = 1
    """With more, whoever has been held up does fewer of them; products are slower in smaller parts."""

    @property
    def own(self) -> tuple[Buffer, ...]:
        """The buffers of which each part has one."""
        return (*self.private, *(total for total, _ in self.totals))


@record(frozen=True, slots=True)
class Shared:
    """A body that threads run at once, each some parts of so many iterations: those from `start` to `stop`.

    Nothing that is defined in it is known behind it.
    """

    extent: Expr
    body: Body
    sharing: Sharing


@record(frozen=True, slots=True)
class Section:
    """A part of a buffer that a library is given: `x[i].T`, `x[:, i]`, `x.reshape((n * m, p))`."""

    buffer: Buffer
    places: tuple[Expr | Span, ...] = ()
    """In the first dimensions; the others are taken whole."""
    shape: tuple[Expr, ...] = ()
    """What it is seen as, if dimensions are put together."""
    transposed: bool = False
    rows: Span = WHOLE
    """Of the matrix, before it is transposed: some columns if it is."""


@record(frozen=True, slots=True)
class Library:
    """A call of a function that takes whole rows or matrices, the last of which is its result."""

    function: str
    operands: tuple[Section | Expr, ...]
    failure: int | None = None
    """The number of the error, of a function that says whether there is a result."""
    origins: Origins = field(default=(), compare=False)


@record(frozen=True, slots=True)
class Host:
    """A call of a function that Python runs, with whole arrays, the last of which is its result."""

    name: str
    """What the program calls it."""
    function: HostCall
    operands: tuple[Section, ...]
    origins: Origins = field(default=(), compare=False)


Stmt = Union[  # noqa: UP007  of forward references
    Let, Assign, Store, Accumulate, For, While, If, Shared, Check, Return, View, Library, Host
]
Body = tuple[Stmt, ...]
_STATEMENTS = frozenset(get_args(Stmt))


def narrowed(value: Expr) -> Expr:
    """What is computed of small integers, in their dtype: machine code widens them."""
    dtype = value.dtype
    return Cast(value, dtype) if dtype.kind in "iu" and dtype.itemsize < 8 else value


def bodies(statement: Stmt) -> tuple[Body, ...]:
    """The statements inside of a statement, in order."""
    if isinstance(statement, For | While | Shared):
        return (statement.body,)
    if isinstance(statement, If):
        return (*(body for _, body in statement.cases), statement.otherwise)
    return ()


def with_bodies(statement: Stmt, change: Callable[[Body], Body]) -> Stmt:
    """The statement with other statements inside; itself, if `change` gives none."""
    before = bodies(statement)
    inside = tuple([change(body) for body in before])
    if all(map(operator.is_, inside, before)):
        return statement
    if isinstance(statement, If):
        cases = tuple((condition, body) for (condition, _), body in zip(statement.cases, inside))
        return If(cases, inside[-1])
    assert isinstance(statement, For | While | Shared)
    return replace(statement, body=inside[0])


def with_expressions(
    body: Body, change: Callable[[Expr], Expr | None], concerns: Callable[[Stmt], bool] = lambda _: True
) -> Body:
    """Statements with other expressions: `change` gives what takes the place of one, None for what stays.

    Those that it does not concern are not looked into.
    """
    return _with_expressions(body, change, concerns)


def _with_expressions(
    part: Any, change: Callable[[Expr], Expr | None], concerns: Callable[[Stmt], bool]
) -> Any:
    """The same of whatever statements consist of."""
    kind = type(part)
    if kind is tuple:
        new = tuple([_with_expressions(one, change, concerns) for one in part])
        return part if all(map(operator.is_, new, part)) else new
    if (kind is Variable or kind is Load) and (other := change(part)) is not None:
        return other
    if kind in _STATEMENTS and not concerns(part):
        return part
    changed = {}
    for name in _changeable(kind):  # type: ignore[arg-type]
        old = getattr(part, name)
        if (other := _with_expressions(old, change, concerns)) is not old:
            changed[name] = other
    if isinstance(part, Store) and isinstance(target := changed.get("target"), Variable):
        return Assign(target, changed.get("value", part.value), part.origins)
    return replace(part, **changed) if changed else part


UNTOUCHED = frozenset(
    ("origin", "origins", "monoid", "dtype", "function", "kind", "buffer", "source", "sharing")
)
"""What has no expressions in it."""


@functools.cache
def _changeable(kind: type) -> tuple[str, ...]:
    """The fields of statements and expressions of a kind that may have expressions in them."""
    if not is_dataclass(kind) or issubclass(kind, Buffer | Const | Extent):
        return ()
    return tuple(one.name for one in fields(kind) if one.name not in UNTOUCHED)


def origins_of(statement: Stmt) -> Origins:
    """Where a statement comes from; what only holds others comes from nowhere."""
    holds_others = isinstance(statement, For | While | If | Shared | Check | Return)
    return () if holds_others else statement.origins  # type: ignore[union-attr]


def walk(statements: Iterable[Stmt]) -> Iterator[Stmt]:
    """The statements and all inside of them, in order."""
    for one in statements:
        yield one
        for body in bodies(one):
            yield from walk(body)


def own_expressions(statement: Stmt) -> Iterator[Expr]:
    """The expressions of a statement itself, with the places that it writes."""
    match statement:
        case Let(variable, value) | Assign(variable, value):
            yield from (variable, value)
        case Store(target, value) | Accumulate(target, value):
            yield from (target, value)
        case For(variable, start, stop):
            yield from (variable, start, stop)
        case While(condition) | Check(condition):
            yield condition
        case Shared(extent):
            yield from (extent, THREADS)
        case If(cases):
            yield from (condition for condition, _ in cases)
        case View(_, _, shape):
            yield from shape
        case Library(_, operands) | Host(_, _, operands):
            for operand in operands:
                yield from _in_operand(operand)


def _in_operand(operand: Section | Expr) -> Iterator[Expr]:
    if not isinstance(operand, Section):
        yield operand
        return
    for place in (*operand.places, operand.rows):
        limits = (place.start, place.stop) if isinstance(place, Span) else (place,)
        yield from (limit for limit in limits if limit is not None)
    yield from operand.shape


def expressions(statements: Iterable[Stmt]) -> Iterator[Expr]:
    """Every expression in statements, those that others are made of included."""
    for one in walk(statements):
        yield from parts(*own_expressions(one))


def mentions(variable: Variable, statements: Iterable[Stmt]) -> bool:
    """Whether statements read or write a variable."""
    return any(one == variable for one in expressions(statements))


def defined_in(statements: Iterable[Stmt]) -> set[str]:
    """The names of the variables that statements give values."""
    return {one.variable.name for one in walk(statements) if isinstance(one, Let | Assign | For)}


def buffers(statements: Iterable[Stmt], asked: bool = True) -> set[Buffer]:
    """The buffers that statements read or write, or, if `asked`, ask for their extents."""
    return set[Buffer]().union(*(own_buffers(one, asked) for one in walk(statements)))


def own_buffers(statement: Stmt, asked: bool = True) -> set[Buffer]:
    """The same of a statement itself, without those inside."""
    kinds = (Load, Extent) if asked else (Load,)
    found = {part.buffer for part in parts(*own_expressions(statement)) if isinstance(part, kinds)}
    if isinstance(statement, View):
        found |= {statement.buffer, statement.source}
    if isinstance(statement, Library | Host):
        found |= {operand.buffer for operand in statement.operands if isinstance(operand, Section)}
    return found


def may_raise(statements: Iterable[Stmt]) -> bool:
    """Whether data decides if statements end with an error."""
    return any(
        isinstance(one, Check | Host) or (isinstance(one, Library) and one.failure is not None)
        for one in walk(statements)
    )


def called_functions(statements: Iterable[Stmt]) -> set[str]:
    """The library functions that statements call."""
    return {one.function for one in walk(statements) if isinstance(one, Library)}


def host_calls(statements: Iterable[Stmt]) -> Iterator[Host]:
    """The calls of functions that Python runs."""
    return (one for one in walk(statements) if isinstance(one, Host))


@record(frozen=True, slots=True)
class Function:
    """One generated function: it reads its inputs, and fills outputs and scratch that it is given."""

    name: str
    parameters: tuple[Buffer | Variable, ...]
    prologue: Body
    """Extents, views and constants that the body uses."""
    body: Body

    @property
    def statements(self) -> Body:
        return (*self.prologue, *self.body)
