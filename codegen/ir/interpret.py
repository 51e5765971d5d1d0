"""Runs programs of the loop IR statement by statement: slow, and nothing goes unnoticed.

Every access is compared with the extents of its buffer. Memory begins as nan, and what is read before this
buffer has written it is an error, also where buffers share memory. Iterations of parallel loops, and the
parts that threads would have, run in random order, and a part that uses what another one writes is an error.
Scalar functions are NumPy's and SciPy's, so this is what compiled code is compared with.
"""

from __future__ import annotations

import contextlib
import math
import operator
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from pullback.tracer.operator import OPERATORS
from pullback.tracer.spec import INT64

from ...tracer.records import record
from ..blas import gemm
from ..whole_calls import FUNCTIONS as WHOLE_FUNCTIONS
from .expressions import Apply, Buffer, Cast, Const, Expr, Extent, Load, Select, Variable
from .kernels import Kernel, Program, ProgramError
from .marked_memory import Memory, Touches
from .statements import (
    PART,
    THREADS,
    WHOLE,
    Accumulate,
    Assign,
    Body,
    Check,
    For,
    Host,
    If,
    Let,
    Library,
    Return,
    Section,
    Shared,
    Sharing,
    Span,
    Stmt,
    Store,
    View,
    While,
    origins_of,
)

MOST_PARTS = 4
OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": np.true_divide,
    "quotient": operator.floordiv, "modulo": operator.mod,
    "bit_and": operator.and_, "bit_or": operator.or_, "bit_xor": operator.xor, "bit_not": np.invert,
    "negative": operator.neg, "not": operator.not_, "abs": abs, "min": min, "max": max,
    "equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip
LIBRARY: dict[str, Callable[..., Any]] = {one.__name__: one for one in (gemm, *WHOLE_FUNCTIONS)}


class TooLong(Exception):
    """A program has run more statements than it was given."""


def interpret(
    program: Program,
    arrays: Sequence[np.ndarray],
    seed: int = 0,
    rows: Sequence[int] = (),
    most: float = math.inf,
) -> tuple[np.ndarray, ...]:
    """What a program makes of arrays: all that it fills, in order.

    Args:
        arrays: one for each of `program.inputs`, of its shape and dtype.
        seed: of the order in which parallel parts run.
        rows: how many there are in each group of growing buffers. Where that is too small, the last array
            says how many are needed.
        most: statements that may run.

    Raises ProgramError for an access out of range, for reading what nobody has written other than to copy it,
    and for an output that is not written; IndexError where a check fails and ArithmeticError where a call has
    no result, as generated code does; TooLong after so many statements.
    """
    memory = {one: Memory.of(array) for one, array in zip(program.inputs, arrays, strict=True)}
    for one in program.filled:
        dims = (rows[program.growing[one]], *one.dims[1:]) if one in program.growing else one.dims
        memory[one] = Memory.poisoned(dims, one.dtype)
    for mark, loan in enumerate(program.loans, 2):
        memory[loan.buffer] = memory[loan.owner].lent(loan.buffer, loan.offset, mark)
    if program.growing:
        memory[program.filled[-1]].fill(0)
    chance, left = random.Random(seed), _Budget(most)
    with np.errstate(all="ignore"):
        for kernel in program.kernels:
            _run(kernel, memory, chance, left)
    is_complete = not program.growing or not memory[program.filled[-1]].values.any()
    for one in program.filled:
        if is_complete and one.role == "output" and not memory[one].is_written:
            raise ProgramError(f"{one.name} is an output, and not written")
    return tuple(memory[one].values for one in program.filled)


@record
class _Budget:
    statements: float


def _run(kernel: Kernel, memory: Mapping[Buffer, Memory], chance: random.Random, left: _Budget) -> None:
    function, sharing = kernel.function, kernel.sharing
    given = [one for one in function.parameters if isinstance(one, Variable)]
    numbers = [one for one in given if one not in (*PART, THREADS)]
    variables = {one.name: value for one, value in zip(numbers, kernel.numbers, strict=True)}
    steps = _Steps()
    body = steps.of(function.statements)
    run = _Run({steps.place_of(one): found for one, found in memory.items()}, variables, chance, left)
    if sharing is None:
        run.whole(body)
    else:
        run.in_parts(body, sharing.extent, steps.shared(sharing))


class _Returned(Exception):
    """The function has ended before its last statement."""


@record
class _SharedBuffers:
    """What each part of a shared body has for itself, by place, and how totals are combined."""

    own: list[tuple[int, np.dtype]]
    totals: list[tuple[int, Callable[..., Any]]]


class _Run:
    """One run of a function, or of a part of a shared body."""

    def __init__(
        self,
        memory: Mapping[int, Memory],
        variables: Mapping[str, Any],
        chance: random.Random,
        left: _Budget,
    ) -> None:
        self.memory = dict(memory)
        self.variables = dict(variables)
        self.chance = chance
        self.left = left
        self.statement: Stmt = Return()
        """The one that is run."""
        self.part = 0
        """Which part of what threads share is run ..."""
        self.touches: Touches | None = None
        """... and what all of them have read and written; None where nothing is shared."""

    def whole(self, body: _Step) -> None:
        with contextlib.suppress(_Returned):
            body(self)

    def in_parts(self, body: _Step, extent: int, shared: _SharedBuffers) -> None:
        """What threads share, in some number of parts and in any order."""
        count = self.chance.randint(1, min(MOST_PARTS, extent))
        ends = [extent * place // count for place in range(count + 1)]
        memory, touches = self.memory, Touches()
        own = [
            {place: Memory.poisoned(memory[place].values.shape, dtype) for place, dtype in shared.own}
            for _ in range(count)
        ]
        for number in self.chance.sample(range(count), count):
            bounds = {one.name: end for one, end in zip(PART, ends[number : number + 2])}
            run = _Run(memory | own[number], self.variables | bounds, self.chance, self.left)
            run.part, run.touches = number, touches
            run.whole(body)
        for place, fold in shared.totals:
            total = memory[place]
            for number, part in enumerate(own):
                combined = part[place].values
                if number:
                    combined = fold(total.values, combined)
                total.values[...] = combined
                total.marks[...] = part[place].marks

    def touch(self, memory: Memory, place: Sequence[int] | None = None, writes: bool = False) -> None:
        """Note an access to an element, or to all: no other part may write what this one uses."""
        if self.touches is None:
            return
        for address in [memory.address_of(place)] if place is not None else memory.addresses():
            if not self.touches.note(address, self.part, writes):
                self.fail("a part writes what another one uses")

    def fail(self, what: str) -> NoReturn:
        places = ", ".join(one.place_and_text for one in origins_of(self.statement)[:1])
        raise ProgramError(f"{what} in {type(self.statement).__name__} of {places or 'no line'}")


_Step = Callable[[_Run], None]
_Value = Callable[[_Run], Any]


class _Steps:
    """Statements and expressions as functions of a run: each is looked at once, however often it runs."""

    def __init__(self) -> None:
        self._places: dict[Buffer, int] = {}

    def place_of(self, buffer: Buffer) -> int:
        """Where a run has the memory of a buffer: to compare buffers takes longer than to read an element."""
        return self._places.setdefault(buffer, len(self._places))

    def shared(self, sharing: Sharing) -> _SharedBuffers:
        return _SharedBuffers(
            [(self.place_of(one), one.dtype) for one in sharing.own],
            [(self.place_of(one), monoid.fold.evaluate) for one, monoid in sharing.totals],
        )

    def of(self, statements: Body) -> _Step:
        steps = [(one, self._step(one)) for one in statements]

        def body(run: _Run) -> None:
            run.left.statements -= len(steps)
            if run.left.statements < 0:
                raise TooLong
            for statement, step in steps:
                run.statement = statement
                step(run)

        return body

    def _step(self, one: Stmt) -> _Step:
        match one:
            case Let(variable, value) | Assign(variable, value):
                return _assign(variable.name, self._value(value))
            case Store(target, Load() as source):
                return self._copy(target, source)
            case Store(target, value):
                return self._store(target, self._value(value))
            case Accumulate(Variable(name)):
                return _assign(name, self._value(one.combined))
            case Accumulate(Load() as target):
                return self._store(target, self._value(one.combined))
            case For():
                return self._for(one)
            case While(condition, body):
                return _while(self._value(condition), self.of(body))
            case If(cases, otherwise):
                return _if([(self._value(truth), self.of(body)) for truth, body in cases], self.of(otherwise))
            case Shared(extent, body, sharing):
                count, inside, shared = self._value(extent), self.of(body), self.shared(sharing)
                return lambda run: run.in_parts(inside, count(run), shared)
            case Check(condition, error):
                return _check(self._value(condition), error)
            case View(buffer, source, shape):
                return self._view(self.place_of(buffer), self.place_of(source), shape)
            case Library():
                return self._call(one)
            case Host():
                return self._call_host(one)
            case Return():
                return _return
        raise ProgramError(f"{type(one).__name__} is no statement")

    def _for(self, loop: For) -> _Step:
        start, stop, inside = self._value(loop.start), self._value(loop.stop), self.of(loop.body)
        name, is_parallel = loop.variable.name, loop.kind == "parallel"

        def step(run: _Run) -> None:
            numbers: Sequence[int] = range(start(run), stop(run), loop.step)
            if is_parallel:
                numbers = run.chance.sample(numbers, len(numbers))
            elif loop.kind not in ("serial", "block", "unrolled"):
                run.fail(f"a loop of kind {loop.kind!r} runs in no known order")
            for number in numbers:
                run.variables[name] = number
                inside(run)

        return step

    def _store(self, target: Load, value: _Value) -> _Step:
        buffer, place_in = self.place_of(target.buffer), self._place(target)

        def step(run: _Run) -> None:
            stored = value(run)
            memory, place = run.memory[buffer], place_in(run)
            memory.values[place] = stored
            memory.marks[place] = memory.written
            run.touch(memory, place, writes=True)

        return step

    def _copy(self, target: Load, source: Load) -> _Step:
        """A copy of what nobody has written is as little written: of a choice the side that is not taken."""
        read_from, read_at = self.place_of(source.buffer), self._place(source)
        buffer, place_in = self.place_of(target.buffer), self._place(target)

        def step(run: _Run) -> None:
            source, at = run.memory[read_from], read_at(run)
            run.touch(source, at)
            is_written = source.marks[at] == source.written
            memory, place = run.memory[buffer], place_in(run)
            memory.values[place] = source.values[at]
            memory.marks[place] = memory.written if is_written else 0
            run.touch(memory, place, writes=True)

        return step

    def _view(self, buffer: int, source: int, shape: Sequence[Expr]) -> _Step:
        dims = self._all(shape)

        def step(run: _Run) -> None:
            run.memory[buffer] = run.memory[source].part(lambda array: array.reshape(dims(run)))

        return step

    # --- expressions --------------------------------------------------------------------------------------

    def _value(self, one: Expr) -> _Value:
        match one:
            case Variable(name):
                return _variable(name)
            case Load():
                return self._load(one)
            case Const(value, dtype):
                constant = int(value) if dtype == INT64 else dtype.type(value)
                return lambda run: constant
            case Apply("and", arguments):
                every = [self._value(argument) for argument in arguments]
                return lambda run: all(value(run) for value in every)
            case Apply("or", arguments):
                some = [self._value(argument) for argument in arguments]
                return lambda run: any(value(run) for value in some)
            case Apply(function, arguments, dtype):
                return _applied(function, [self._value(argument) for argument in arguments], dtype)
            case Select(condition, inside, outside):
                truth, chosen, other = map(self._value, (condition, inside, outside))
                return lambda run: chosen(run) if truth(run) else other(run)
            case Cast(value, dtype):
                cast = self._value(value)
                return lambda run: np.asarray(cast(run)).astype(dtype)[()]
            case Extent(buffer, dim):
                place = self.place_of(buffer)
                return lambda run: run.memory[place].values.shape[dim]

    def _all(self, expressions: Sequence[Expr]) -> Callable[[_Run], tuple[Any, ...]]:
        values = [self._value(one) for one in expressions]
        return lambda run: tuple([value(run) for value in values])

    def _load(self, one: Load) -> _Value:
        buffer, place_in, name = self.place_of(one.buffer), self._place(one), one.buffer.name

        def value(run: _Run) -> Any:
            memory, place = run.memory[buffer], place_in(run)
            if memory.marks[place] != memory.written:
                run.fail(f"{name}{list(place)} is read before it is written")
            run.touch(memory, place)
            return memory.values[place]

        return value

    def _place(self, one: Load) -> Callable[[_Run], tuple[int, ...]]:
        buffer, name = self.place_of(one.buffer), one.buffer.name
        indices = [self._value(index) for index in one.indices]

        def place_in(run: _Run) -> tuple[int, ...]:
            place = tuple([int(index(run)) for index in indices])
            shape = run.memory[buffer].values.shape
            is_inside = len(place) == len(shape)
            for at, size in zip(place, shape):
                is_inside = is_inside and 0 <= at < size
            if not is_inside:
                run.fail(f"{name}{list(place)} is no place in an array of shape {shape}")
            return place

        return place_in

    # --- library calls ------------------------------------------------------------------------------------

    def _call(self, one: Library) -> _Step:
        operands = [self._operand(operand) for operand in one.operands]
        function = LIBRARY[one.function]

        def step(run: _Run) -> None:
            given = [operand(run) for operand in operands]
            *read, out = (operand for operand in given if isinstance(operand, Memory))
            if one.function == "gemm" and given[3] != 0:
                read.append(out)
            for operand in read:
                if not operand.is_written:
                    run.fail(f"{one.function} reads what is not written")
                run.touch(operand)
            run.touch(out, writes=True)
            result = function(*(one.values if isinstance(one, Memory) else one for one in given))
            out.marks[...] = out.written
            if one.failure is not None and not result:
                raise ArithmeticError(one.failure)

        return step

    def _call_host(self, one: Host) -> _Step:
        operands = [self._operand(operand) for operand in one.operands]

        def step(run: _Run) -> None:
            *read, out = (operand(run) for operand in operands)
            for operand in read:
                if not operand.is_written:
                    run.fail(f"{one.name} reads what is not written")
            one.function(*(operand.values for operand in (*read, out)))
            out.marks[...] = out.written

        return step

    def _operand(self, operand: Section | Expr) -> _Value:
        if not isinstance(operand, Section):
            return self._value(operand)
        buffer, dims_of = self.place_of(operand.buffer), self._all(operand.shape)
        places, rows = [self._along(place) for place in operand.places], self._along(operand.rows)

        def value(run: _Run) -> Memory:
            memory = run.memory[buffer]
            taken = tuple([place(run, size) for place, size in zip(places, memory.values.shape)])
            memory = memory.part(lambda array: array[(*taken, ...)])
            if dims := dims_of(run):
                memory = memory.part(lambda array: _reshaped(array, dims))
            if operand.rows != WHOLE:
                some = rows(run, memory.values.shape[-1 if operand.transposed else 0])
                memory = memory.part(lambda array: array[:, some] if operand.transposed else array[some])
            return memory.part(np.transpose) if operand.transposed else memory

        return value

    def _along(self, place: Expr | Span) -> Callable[[_Run, int], int | slice]:
        """What is taken of a dimension of some size."""
        if not isinstance(place, Span):
            return _position(self._value(place))
        first = None if place.start is None else self._value(place.start)
        last = None if place.stop is None else self._value(place.stop)

        def part(run: _Run, size: int) -> slice:
            start, stop = 0 if first is None else first(run), size if last is None else last(run)
            if not 0 <= start <= stop <= size:
                run.fail(f"{start}:{stop} is no part of a dimension of {size}")
            return slice(start, stop)

        return part


def _assign(name: str, value: _Value) -> _Step:
    def step(run: _Run) -> None:
        run.variables[name] = value(run)

    return step


def _while(condition: _Value, body: _Step) -> _Step:
    def step(run: _Run) -> None:
        while condition(run):
            body(run)

    return step


def _if(cases: Sequence[tuple[_Value, _Step]], otherwise: _Step) -> _Step:
    def step(run: _Run) -> None:
        for condition, body in cases:
            if condition(run):
                return body(run)
        return otherwise(run)

    return step


def _check(condition: _Value, error: str) -> _Step:
    def step(run: _Run) -> None:
        if not condition(run):
            raise IndexError(error)

    return step


def _return(run: _Run) -> NoReturn:
    raise _Returned


def _variable(name: str) -> _Value:
    def value(run: _Run) -> Any:
        try:
            return run.variables[name]
        except KeyError:
            run.fail(f"{name} has no value")

    return value


def _position(index: _Value) -> Callable[[_Run, int], int]:
    def position(run: _Run, size: int) -> int:
        at = int(index(run))
        if not 0 <= at < size:
            run.fail(f"{at} is no place in a dimension of {size}")
        return at

    return position


def _applied(function: str, arguments: Sequence[_Value], dtype: np.dtype) -> _Value:
    """A scalar function of numbers; whole numbers of indices stay plain.

    NumPy has shortcuts for numbers, for which -inf ** 0.5 is nan: its functions are given arrays.
    """
    if function in OPERATIONS:
        compute = OPERATIONS[function]
    else:
        evaluate = OPERATORS[function].evaluate

        def compute(*numbers: Any) -> Any:
            (result,) = evaluate(*(np.reshape(number, 1) for number in numbers))
            return result

    kind = None if dtype == INT64 else dtype.type
    if len(arguments) == 2:
        first, second = arguments

        def value(run: _Run) -> Any:
            result = compute(first(run), second(run))
            return result if kind is None or type(result) is kind else kind(result)

    else:

        def value(run: _Run) -> Any:
            result = compute(*[argument(run) for argument in arguments])
            return result if kind is None or type(result) is kind else kind(result)

    return value


def _reshaped(array: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """A matrix of dimensions that are put together, in the same memory."""
    result = array.reshape(dims)
    if not np.shares_memory(result, array) and array.size:
        raise ProgramError(f"an array of shape {array.shape} is no matrix of shape {dims} in memory")
    return result
