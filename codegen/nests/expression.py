"""One element of a value, as an expression: loads of stored arrays, arithmetic on them, index arithmetic.

An `Index` says where: a polynomial in loop positions and extents, so that slices, flips, transposes and
splits of dimensions are index arithmetic and nothing is moved. An `Expression` says what; it is a graph of
its own, in which equal parts are one object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Union

import numpy as np

from pullback.tracer.graph import Node
from pullback.tracer.ops import elementwise as e

from ...tracer.records import record
from .extents import ONE, Symbol


@record(eq=False, slots=True)
class Axis:
    """A dimension of an iteration space; scheduling binds it to a loop."""

    extent: Symbol

    def __repr__(self) -> str:
        return f"<axis {self.extent.value}>"


Factor = Union[Axis, Symbol, "Expression"]  # a value only where the place of a window is one


@record(frozen=True, slots=True)
class Term:
    """`coefficient` times the product of `factors`."""

    coefficient: int
    factors: tuple[Factor, ...] = ()


@record(frozen=True, slots=True)
class Index:
    """A sum of terms, e.g. `2 * i + n - 1`."""

    terms: tuple[Term, ...] = ()

    @property
    def axis(self) -> Axis | None:
        """The axis, if the index is exactly that."""
        if len(self.terms) == 1 and self.terms[0].coefficient == 1 and len(self.terms[0].factors) == 1:
            factor = self.terms[0].factors[0]
            return factor if isinstance(factor, Axis) else None
        return None

    @property
    def own_axes(self) -> set[Axis]:
        """The axes that are terms of it."""
        return {factor for term in self.terms for factor in term.factors if isinstance(factor, Axis)}

    @property
    def axes(self) -> set[Axis]:
        return self.own_axes.union(*map(axes_of, self.values))

    @property
    def values(self) -> list[Expression]:
        """The values from arrays that the index is computed from."""
        return [one for term in self.terms for one in term.factors if not isinstance(one, Axis | Symbol)]

    @property
    def is_of_shapes(self) -> bool:
        """Whether the shapes of arrays tell what it is."""
        factors = (factor for term in self.terms for factor in term.factors)
        return all(isinstance(one, Symbol) and one.find().is_shape for one in factors)


@record(frozen=True, slots=True)
class Quotient:
    """index // divisor, where the division is exact."""

    index: Index
    divisor: int

    @property
    def own_axes(self) -> set[Axis]:
        return self.index.own_axes

    @property
    def axes(self) -> set[Axis]:
        return self.index.axes


@record(eq=False, slots=True)
class Load:
    """An element of a stored array: of an input, or of a node that is materialised."""

    node: Node
    indices: tuple[AnyIndex, ...]
    version: int = 0
    """Of an array that is written in place: which of its versions is read."""


@record(eq=False, slots=True)
class Compute:
    """An elementwise operator on elements."""

    node: Node
    operands: tuple[Expression, ...]


@record(eq=False, slots=True)
class Literal:
    """A constant."""

    value: bool | int | float
    dtype: np.dtype


@record(eq=False, slots=True)
class Position:
    """An index as a value (of iota)."""

    index: AnyIndex
    dtype: np.dtype


@record(frozen=True, slots=True)
class Bound:
    """low <= index < high, and (index - low) % step == 0."""

    index: Index
    low: Index | None
    high: Index | None
    step: int = 1


Ranges = Mapping[Axis, tuple[int, int]]
"""From where and up to where axes go, that included, if not over all of their extent."""
ALL: Ranges = {}


def known_truth(bound: Bound, ranges: Ranges = ALL) -> bool | None:
    """Whether a bound holds in all iterations, or in none; None if that differs between them."""
    first, last = range_of(bound.index, ranges)
    lows = (first, first) if bound.low is None else range_of(bound.low, ranges)
    highs = (last + 1, last + 1) if bound.high is None else range_of(bound.high, ranges)
    if last < lows[0] or first >= highs[1]:
        return False
    return True if lows[1] <= first and last < highs[0] and bound.step == 1 else None


def range_of(index: Index, ranges: Ranges = ALL) -> tuple[int, int]:
    """The smallest and the largest value of an index, at the traced sizes."""
    if index.values:
        return -ANYWHERE, ANYWHERE
    smallest = largest = 0
    for term in index.terms:
        ends = [term.coefficient]
        for factor in term.factors:
            if isinstance(factor, Axis):
                ends = [
                    end * place
                    for end in ends
                    for place in ranges.get(factor) or (0, factor.extent.value - 1)
                ]
            elif isinstance(factor, Symbol):
                ends = [end * factor.value for end in ends]
        smallest, largest = smallest + min(ends), largest + max(ends)
    return smallest, largest


@record(eq=False, slots=True)
class Select:
    """`inside` where all bounds hold, else `outside`; the side not taken is not evaluated."""

    node: Node
    bounds: tuple[Bound, ...]
    inside: Expression
    outside: Expression


@record(eq=False, slots=True)
class Within:
    """Whether a position from data lies within a dimension of an array."""

    node: Node
    dim: int
    position: Expression
    extent: Symbol


ANYWHERE = 1 << 60
"""Beyond every position: the range of one that data decides."""
Expression = Union[Load, Compute, Literal, Position, Select, Within]  # noqa: UP007  of forward references
AnyIndex = Union[Index, Quotient, Expression]  # noqa: UP007
Compared = set[tuple[Expression, Symbol]]
"""Positions, with extents that they are known to be less than."""
ZERO = Index()


def of_axis(axis: Axis) -> Index:
    return ZERO if axis.extent is ONE else Index((Term(1, (axis,)),))


def of_symbol(symbol: Symbol) -> Index:
    """An extent; one that is another and some more as just that, so that both compare."""
    symbol = symbol.find()
    if symbol is ONE:
        return number(1)
    if symbol.formula is not None:
        return symbol.formula
    if symbol.base is not None:
        return plus(of_symbol(symbol.base), number(symbol.value - symbol.base.value))
    return Index((Term(1, (symbol,)),))


def number(value: int) -> Index:
    return Index((Term(value),)) if value else ZERO


def affine(value: Expression) -> Index:
    """An integer value as an index: positions, numbers, their sums and multiples are index arithmetic."""
    if isinstance(value, Position) and isinstance(value.index, Index):
        return value.index
    if isinstance(value, Literal):
        return number(int(value.value))
    if isinstance(value, Compute) and value.node.operator in (e.add, e.subtract):
        left, right = map(affine, value.operands)
        return plus(left, right) if value.node.operator is e.add else minus(left, right)
    if isinstance(value, Compute) and value.node.operator is e.multiply:
        for factor, other in (value.operands, value.operands[::-1]):
            if isinstance(factor, Literal):
                return times(affine(other), int(factor.value))
    return Index((Term(1, (value,)),))


def is_number(index: AnyIndex) -> bool:
    """Whether a position is the same in every iteration."""
    return isinstance(index, Index) and all(not term.factors for term in index.terms)


def plus(*indices: Index) -> Index:
    """The sum, like terms merged, as they are in each of the indices."""
    indices = tuple([index for index in indices if index.terms])
    if len(indices) == 1:
        return indices[0]
    total: dict[frozenset[tuple[Factor, int]], tuple[int, tuple[Factor, ...]]] = {}
    for index in indices:
        for term in index.terms:
            key = frozenset((factor, term.factors.count(factor)) for factor in term.factors)
            coefficient, factors = total.get(key, (0, term.factors))
            total[key] = (coefficient + term.coefficient, factors)
    return Index(tuple(Term(coefficient, factors) for coefficient, factors in total.values() if coefficient))


def times(index: Index, factor: int | Symbol) -> Index:
    if isinstance(factor, Symbol):
        if factor is ONE:
            return index
        return Index(tuple(Term(term.coefficient, (*term.factors, factor)) for term in index.terms))
    return (
        Index(tuple(Term(term.coefficient * factor, term.factors) for term in index.terms))
        if factor
        else ZERO
    )


def product(first: Index, second: Index) -> Index:
    """Two indices multiplied."""
    pairs = [(one, other) for one in first.terms for other in second.terms]
    return plus(*(Index((Term(a.coefficient * b.coefficient, a.factors + b.factors),)) for a, b in pairs))


def minus(first: Index, second: Index) -> Index:
    return plus(first, times(second, -1))


def children(expression: Expression) -> tuple[Expression, ...]:
    """The expressions that an expression is made of, those in its indices included."""
    if isinstance(expression, Load):
        return tuple(one for index in expression.indices for one in values_in(index))
    if isinstance(expression, Compute):
        return expression.operands
    if isinstance(expression, Select):
        limits = (limit for one in expression.bounds for limit in (one.index, one.low, one.high))
        tested = (value for limit in limits if limit is not None for value in limit.values)
        return (expression.inside, expression.outside, *tested)
    if isinstance(expression, Position):
        return tuple(values_in(expression.index))
    return (expression.position,) if isinstance(expression, Within) else ()


def values_in(index: AnyIndex) -> list[Expression]:
    """The values from arrays that a position is computed from."""
    if isinstance(index, Quotient):
        index = index.index
    return index.values if isinstance(index, Index) else [index]


def parts(expression: Expression, without: Node | None = None) -> Iterator[Expression]:
    """The expression and all that it is made of, each once; what is computed as `without` left out."""
    seen: set[Expression] = set()
    pending: list[Expression] = [expression]
    while pending:
        one = pending.pop()
        if one not in seen and not (isinstance(one, Compute) and one.node is without):
            seen.add(one)
            yield one
            pending.extend(children(one))


def arithmetic(expression: Expression, seen: set[Node]) -> int:
    """Multiplications that an element takes, each operator counted once."""
    total = 0
    visited: set[Expression] = set()
    pending = [expression]
    while pending:
        one = pending.pop()
        known = isinstance(one, Compute) and one.node in seen
        if known or one in visited:
            continue
        visited.add(one)
        if isinstance(one, Compute):
            seen.add(one.node)
            total += one.node.operator.cost
        pending.extend(children(one))
    return total


def loads(expression: Expression, without: Node | None = None) -> list[Load]:
    """Every load in an expression, each once; of what is computed as `without` none."""
    return [one for one in parts(expression, without) if isinstance(one, Load)]


def axes_of(expression: Expression, known: dict[Expression, set[Axis]] | None = None) -> set[Axis]:
    """The axes that the value of an expression depends on; `known` takes those of all its parts."""
    known = {} if known is None else known
    pending = [expression]
    while pending:
        one = pending[-1]
        if new := [inner for inner in children(one) if inner not in known]:
            pending.extend(new)
            continue
        own = {axis for index in _own_indices(one) for axis in index.own_axes}
        known[one] = own.union(*(known[inner] for inner in children(one)))
        pending.pop()
    return known[expression]


def axes_in(index: AnyIndex) -> set[Axis]:
    """The axes that an index of any kind depends on."""
    return index.axes if isinstance(index, Index | Quotient) else axes_of(index)


def _own_indices(expression: Expression) -> list[Index | Quotient]:
    if isinstance(expression, Select):
        limits = (limit for one in expression.bounds for limit in (one.index, one.low, one.high))
        return [limit for limit in limits if limit is not None]
    indices: tuple[AnyIndex, ...] = ()
    if isinstance(expression, Load):
        indices = expression.indices
    elif isinstance(expression, Position):
        indices = (expression.index,)
    return [index for index in indices if isinstance(index, Index | Quotient)]
