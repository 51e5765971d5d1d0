"""Expressions of the loop IR: scalar values, each with its dtype, in no language's syntax."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import field
from operator import attrgetter
from typing import Any, Literal, Union

import numpy as np

from pullback.tracer.origin import UNKNOWN, Origin
from pullback.tracer.spec import BOOL, INT64

from ...tracer.records import record

FLOAT64 = np.dtype("float64")
Role = Literal["input", "output", "saved", "scratch"]


@record(frozen=True, slots=True)
class Buffer:
    """An array that functions are given: the caller's, an output, what backward reads, or scratch."""

    name: str
    dtype: np.dtype
    dims: tuple[int, ...] = ()
    """Its shape in the call that was traced."""
    role: Role = "scratch"
    extents: tuple[int, ...] = ()
    """Of dimensions that are the same in all calls how many elements they have, 0 for others; () for none."""

    @property
    def nbytes(self) -> int:
        return math.prod(self.dims) * self.dtype.itemsize


@record(frozen=True, slots=True)
class Variable:
    """The value of a local variable, or of an integer that a function is given."""

    name: str
    dtype: np.dtype = INT64


@record(frozen=True, slots=True)
class Const:
    """A number."""

    value: bool | int | float
    dtype: np.dtype = INT64


@record(frozen=True, slots=True)
class Extent:
    """How many elements a buffer has along a dimension."""

    buffer: Buffer
    dim: int

    @property
    def dtype(self) -> np.dtype:
        return INT64


@record(frozen=True, slots=True)
class Load:
    """An element of a buffer."""

    buffer: Buffer
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> np.dtype:
        return self.buffer.dtype


@record(frozen=True, slots=True)
class Apply:
    """A scalar function of values: an operator such as "add" or "less", or a function such as "tanh"."""

    function: str
    arguments: tuple[Expr, ...]
    dtype: np.dtype
    origin: Origin = field(default=UNKNOWN, compare=False)
    """Where in the user's program it comes from, and by which rule."""


@record(frozen=True, slots=True)
class Select:
    """`inside` where the condition holds, else `outside`; the side not taken is not evaluated."""

    condition: Expr
    inside: Expr
    outside: Expr
    origin: Origin = field(default=UNKNOWN, compare=False)

    @property
    def dtype(self) -> np.dtype:
        return self.inside.dtype


@record(frozen=True, slots=True)
class Cast:
    """A value in another dtype."""

    value: Expr
    dtype: np.dtype
    origin: Origin = field(default=UNKNOWN, compare=False)


Expr = Union[Variable, Const, Extent, Load, Apply, Select, Cast]  # noqa: UP007  of forward references
PREDICATES = frozenset(
    {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "and", "or", "not"}
)
"""Functions whose result is a bool, whatever their arguments are."""
OF_INTEGERS = {
    "gcd": np.gcd, "bitwise_left_shift": np.bitwise_left_shift, "bitwise_right_shift": np.bitwise_right_shift,
}  # fmt: skip
"""Functions of integers alone: NumPy's, as they are."""


def apply(function: str, *arguments: Expr, origin: Origin = UNKNOWN) -> Apply:
    """A function of values of one dtype, which the result has too, if it is no predicate."""
    dtype = BOOL if function in PREDICATES else arguments[0].dtype
    return Apply(function, arguments, dtype, origin)


def number(value: int) -> Const:
    """A whole number of index arithmetic."""
    return Const(value, INT64)


_INSIDE: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Apply: attrgetter("arguments"),
    Load: attrgetter("indices"),
    Select: attrgetter("condition", "inside", "outside"),
    Cast: lambda cast: (cast.value,),
}


def children(expression: Expr) -> tuple[Expr, ...]:
    """The expressions that an expression is made of."""
    inside = _INSIDE.get(type(expression))
    return inside(expression) if inside else ()


def parts(*expressions: Expr) -> Iterator[Expr]:
    """The expressions and all that they are made of."""
    pending = [*reversed(expressions)]
    inside_of, take, defer = _INSIDE.get, pending.pop, pending.extend
    while pending:
        one = take()
        yield one
        if inside := inside_of(type(one)):
            defer(inside(one)[::-1])


def gathered_origins(origin: Origin | None, value: Expr) -> tuple[Origin, ...]:
    """The origin of what a statement is about, then those of what is computed in it, but not in indices."""
    found = [] if origin is None else [origin]
    pending = [*reversed(children(value))]
    while pending:
        one = pending.pop()
        if isinstance(one, Apply | Select | Cast):
            if one.origin is not UNKNOWN:
                found.append(one.origin)
            pending.extend(reversed(children(one)))
    return tuple(found)
