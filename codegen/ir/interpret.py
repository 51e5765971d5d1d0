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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from pullback.tracer.operator import OPERATORS
from pullback.tracer.spec import INT64

from ...tracer.records import record
from ..blas import gemm
from ..whole_calls import FUNCTIONS as WHOLE_FUNCTIONS
from .expressions import Apply, Buffer, Cast, Const, Expr, Extent, Load, Select, Variable
from .kernels import Kernel, Program, ProgramError
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
    memory = {one: _Memory.of(array) for one, array in zip(program.inputs, arrays, strict=True)}
    for one in program.filled:
        dims = (rows[program.growing[one]], *one.dims[1:]) if one in program.growing else one.dims
        memory[one] = _Memory.poisoned(dims, one.dtype)
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


def _run(kernel: Kernel, memory: Mapping[Buffer, _Memory], chance: random.Random, left: _Budget) -> None:
    function, sharing = kernel.function, kernel.sharing
    given = [one for one in function.parameters if isinstance(one, Variable)]
    numbers = [one for one in given if one not in (*PART, THREADS)]
    variables = {one.name: value for one, value in zip(numbers, kernel.numbers, strict=True)}
    run = _Run(memory, variables, chance, left)
    if sharing is None:
        run.body(function.statements)
    else:
        run.in_parts(function.statements, sharing.extent, sharing)


def _own_memory(memory: Mapping[Buffer, _Memory], sharing: Sharing) -> dict[Buffer, _Memory]:
    """What a part works on: its totals and its scratch are its own."""
    own = {one: _Memory.poisoned(memory[one].values.shape, one.dtype) for one in sharing.own}
    return {**memory, **own}


@record
class _Touches:
    """Which parts of what threads share have read, or written, the bytes at which an element begins."""

    read: dict[int, set[int]] = field(default_factory=dict)
    written: dict[int, set[int]] = field(default_factory=dict)

    def note(self, address: int, part: int, writes: bool) -> bool:
        """Whether an access is safe: no other part writes what one reads or writes."""
        (self.written if writes else self.read).setdefault(address, set()).add(part)
        writers, readers = self.written.get(address, set()), self.read.get(address, set())
        return not writers or len(writers | readers) == 1


@record
class _Memory:
    """A buffer's values, and beside each of its bytes who has written it last."""

    values: np.ndarray
    marks: np.ndarray
    """Bytes, seen as numbers as long as the values: 0 where nobody has written."""
    mark: int = 1

    @classmethod
    def of(cls, array: np.ndarray) -> _Memory:
        memory = cls.poisoned(array.shape, array.dtype)
        memory.fill(array)
        return memory

    @classmethod
    def poisoned(cls, shape: Sequence[int], dtype: np.dtype) -> _Memory:
        values = np.empty(shape, dtype)
        values.reshape(-1).view(np.uint8)[...] = 0xFF  # nan, and no sensible integer
        return cls(values, np.zeros(shape, f"u{dtype.itemsize}"))

    def lent(self, buffer: Buffer, offset: int, mark: int) -> _Memory:
        """Some of the memory, for another buffer."""
        values = np.ndarray(buffer.dims, buffer.dtype, self.values, offset)
        marks = np.ndarray(buffer.dims, f"u{buffer.dtype.itemsize}", self.marks, offset)
        return _Memory(values, marks, mark)

    @property
    def written(self) -> int:
        """What the marks of an element are that this buffer has written."""
        return int.from_bytes(bytes([self.mark]) * self.values.itemsize, "little")

    def fill(self, values: Any) -> None:
        self.values[...] = values
        self.marks[...] = self.written

    @cached_property
    def address(self) -> int:
        """Of its first element."""
        first: int = self.values.__array_interface__["data"][0]
        return first

    def address_of(self, place: Sequence[int]) -> int:
        return self.address + sum(map(operator.mul, place, self.values.strides))

    def addresses(self) -> Iterator[int]:
        """Of all elements."""
        return map(self.address_of, np.ndindex(self.values.shape))

    def part(self, change: Callable[[np.ndarray], np.ndarray]) -> _Memory:
        """A view of some of it."""
        return _Memory(change(self.values), change(self.marks), self.mark)

    @property
    def is_written(self) -> bool:
        return bool((self.marks == self.written).all())


class _Returned(Exception):
    """The function has ended before its last statement."""


class _Run:
    """One run of a function."""

    def __init__(
        self,
        memory: Mapping[Buffer, _Memory],
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
        self.touches: _Touches | None = None
        """... and what all of them have read and written; None where nothing is shared."""

    def body(self, statements: Body) -> None:
        with contextlib.suppress(_Returned):
            self._run(statements)

    def _run(self, statements: Body) -> None:
        self.left.statements -= len(statements)
        if self.left.statements < 0:
            raise TooLong
        for one in statements:
            self.statement = one
            self._step(one)

    def _step(self, one: Stmt) -> None:
        match one:
            case Let(variable, value) | Assign(variable, value):
                self.variables[variable.name] = self.value(value)
            case Store(target, Load() as source):
                self._copy(target, source)
            case Store(target, value):
                self._store(target, self.value(value))
            case Accumulate(target):
                combined = self.value(one.combined)
                if isinstance(target, Load):
                    self._store(target, combined)
                else:
                    self.variables[target.name] = combined
            case For():
                self._loop(one)
            case While(condition, body):
                while self.value(condition):
                    self._run(body)
            case If(cases, otherwise):
                self._run(next((body for truth, body in cases if self.value(truth)), otherwise))
            case Shared(extent, body, sharing):
                self.in_parts(body, self.value(extent), sharing)
            case Check(condition, error):
                if not self.value(condition):
                    raise IndexError(error)
            case View(buffer, source, shape):
                dims = tuple(map(self.value, shape))
                self.memory[buffer] = self.memory[source].part(lambda array: array.reshape(dims))
            case Library():
                self._call(one)
            case Host():
                self._call_host(one)
            case Return():
                raise _Returned

    def _loop(self, loop: For) -> None:
        steps: Sequence[int] = range(self.value(loop.start), self.value(loop.stop), loop.step)
        if loop.kind == "parallel":
            steps = self.chance.sample(steps, len(steps))
        elif loop.kind not in ("serial", "block", "unrolled"):
            self._fail(f"a loop of kind {loop.kind!r} runs in no known order")
        for step in steps:
            self.variables[loop.variable.name] = step
            self._run(loop.body)

    def in_parts(self, statements: Body, extent: int, sharing: Sharing) -> None:
        """Statements that threads share, in some number of parts and in any order."""
        count = self.chance.randint(1, min(MOST_PARTS, extent))
        ends = [extent * place // count for place in range(count + 1)]
        memory, variables, touches = self.memory, self.variables, _Touches()
        parts = [_own_memory(memory, sharing) for _ in range(count)]
        for place in self.chance.sample(range(count), count):
            bounds = {one.name: end for one, end in zip(PART, ends[place : place + 2])}
            run = _Run(parts[place], variables | bounds, self.chance, self.left)
            run.part, run.touches = place, touches
            run.body(statements)
        for buffer, monoid in sharing.totals:
            total = memory[buffer]
            for place, part in enumerate(parts):
                combined = part[buffer].values
                if place:
                    combined = monoid.fold.evaluate(total.values, combined)
                total.values[...] = combined
                total.marks[...] = part[buffer].marks

    def _touch(self, memory: _Memory, place: Sequence[int] | None = None, writes: bool = False) -> None:
        """Note an access to an element, or to all: no other part may write what this one uses."""
        if self.touches is None:
            return
        for address in [memory.address_of(place)] if place is not None else memory.addresses():
            if not self.touches.note(address, self.part, writes):
                self._fail("a part writes what another one uses")

    # --- expressions --------------------------------------------------------------------------------------

    def value(self, one: Expr) -> Any:
        match one:
            case Variable(name):
                if name not in self.variables:
                    self._fail(f"{name} has no value")
                return self.variables[name]
            case Load(buffer, indices):
                memory = self.memory[buffer]
                place = self._place(buffer, indices)
                if memory.marks[place] != memory.written:
                    self._fail(f"{buffer.name}{list(place)} is read before it is written")
                self._touch(memory, place)
                return memory.values[place]
            case Const(value, dtype):
                return int(value) if dtype == INT64 else dtype.type(value)
            case Apply("and", arguments):
                return all(map(self.value, arguments))
            case Apply("or", arguments):
                return any(map(self.value, arguments))
            case Apply(function, arguments, dtype):
                return _applied(function, tuple(map(self.value, arguments)), dtype)
            case Select(condition, inside, outside):
                return self.value(inside if self.value(condition) else outside)
            case Cast(value, dtype):
                return np.asarray(self.value(value)).astype(dtype)[()]
            case Extent(buffer, dim):
                return self.memory[buffer].values.shape[dim]

    def _place(self, buffer: Buffer, indices: Sequence[Expr]) -> tuple[int, ...]:
        place = tuple(int(self.value(index)) for index in indices)
        shape = self.memory[buffer].values.shape
        if len(place) != len(shape) or not all(0 <= at < size for at, size in zip(place, shape)):
            self._fail(f"{buffer.name}{list(place)} is no place in an array of shape {shape}")
        return place

    def _store(self, target: Load, value: Any) -> tuple[int, ...]:
        """Write an element; its place."""
        memory, place = self.memory[target.buffer], self._place(target.buffer, target.indices)
        memory.values[place] = value
        memory.marks[place] = memory.written
        self._touch(memory, place, writes=True)
        return place

    def _copy(self, target: Load, source: Load) -> None:
        """A copy of what nobody has written is as little written: of a choice the side that is not taken."""
        memory, place = self.memory[source.buffer], self._place(source.buffer, source.indices)
        self._touch(memory, place)
        copied = self._store(target, memory.values[place])
        if memory.marks[place] != memory.written:
            self.memory[target.buffer].marks[copied] = 0

    # --- library calls ------------------------------------------------------------------------------------

    def _call(self, one: Library) -> None:
        given = [self._operand(operand) for operand in one.operands]
        *read, out = (operand for operand in given if isinstance(operand, _Memory))
        if one.function == "gemm" and given[3] != 0:
            read.append(out)
        for operand in read:
            if not operand.is_written:
                self._fail(f"{one.function} reads what is not written")
            self._touch(operand)
        self._touch(out, writes=True)
        plain = [operand.values if isinstance(operand, _Memory) else operand for operand in given]
        result = LIBRARY[one.function](*plain)
        out.marks[...] = out.written
        if one.failure is not None and not result:
            raise ArithmeticError(one.failure)

    def _call_host(self, one: Host) -> None:
        *read, out = map(self._operand, one.operands)
        for operand in read:
            if not operand.is_written:
                self._fail(f"{one.name} reads what is not written")
        one.function(*(operand.values for operand in (*read, out)))
        out.marks[...] = out.written

    def _operand(self, operand: Section | Expr) -> Any:
        if not isinstance(operand, Section):
            return self.value(operand)
        shape = self.memory[operand.buffer].values.shape
        places = tuple(self._along(place, size) for place, size in zip(operand.places, shape))
        memory = self.memory[operand.buffer].part(lambda array: array[(*places, ...)])
        if operand.shape:
            dims = tuple(map(self.value, operand.shape))
            memory = memory.part(lambda array: _reshaped(array, dims))
        if operand.rows != WHOLE:
            dim = -1 if operand.transposed else 0
            rows = self._along(operand.rows, memory.values.shape[dim])
            memory = memory.part(lambda array: array[:, rows] if operand.transposed else array[rows])
        return memory.part(np.transpose) if operand.transposed else memory

    def _along(self, place: Expr | Span, size: int) -> int | slice:
        if not isinstance(place, Span):
            start = int(self.value(place))
            if not 0 <= start < size:
                self._fail(f"{start} is no place in a dimension of {size}")
            return start
        start = 0 if place.start is None else self.value(place.start)
        stop = size if place.stop is None else self.value(place.stop)
        if not 0 <= start <= stop <= size:
            self._fail(f"{start}:{stop} is no part of a dimension of {size}")
        return slice(start, stop)

    def _fail(self, what: str) -> None:
        places = ", ".join(one.place_and_text for one in origins_of(self.statement)[:1])
        raise ProgramError(f"{what} in {type(self.statement).__name__} of {places or 'no line'}")


def _applied(function: str, values: tuple[Any, ...], dtype: np.dtype) -> Any:
    """A scalar function of numbers; whole numbers of indices stay plain.

    NumPy has shortcuts for numbers, for which -inf ** 0.5 is nan: its functions are given arrays.
    """
    if function in OPERATIONS:
        result = OPERATIONS[function](*values)
    else:
        (result,) = OPERATORS[function].evaluate(*(np.reshape(value, 1) for value in values))
    return result if dtype == INT64 else dtype.type(result)


def _reshaped(array: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    """A matrix of dimensions that are put together, in the same memory."""
    result = array.reshape(dims)
    if not np.shares_memory(result, array) and array.size:
        raise ProgramError(f"an array of shape {array.shape} is no matrix of shape {dims} in memory")
    return result
