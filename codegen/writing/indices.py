"""Extents, indices and constants: whole numbers that follow from the shapes of arrays."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from pullback.tracer.dims import (
    EXTENTS,
    FUNCTIONS,
    OF_FLOATS,
    ROUNDING,
    Computed,
    Formula,
    Source,
    canonical,
    formula_of,
    plain,
)
from pullback.tracer.graph import Node
from pullback.tracer.spec import INT64

from ...tracer.forks import kept
from ...tracer.records import record
from .. import ir
from ..host import HostCall
from ..ir.names import NamePool
from ..nests.expression import (
    AnyIndex,
    Axis,
    Expression,
    Factor,
    Index,
    Literal,
    Quotient,
    Term,
    number,
    of_symbol,
    plus,
    product,
)
from ..nests.extents import ONE, Symbol
from ..nests.tree import Loop, LoopTree

GIVEN = (ir.FLOAT64, np.dtype("float32"), INT64)
"""What a function takes as numbers."""


OF_WHOLE_NUMBERS = {"floor_divide": "quotient", "maximum": "max", "minimum": "min"}
"""What functions of whole numbers are called in index arithmetic."""
ELEMENTARY = frozenset(("power", *OF_FLOATS))


@record
class Arrays:
    """A function's arrays and integers, and which extents can be read from which array."""

    buffers: dict[Node, ir.Buffer]
    pool: NamePool
    extent_names: dict[Symbol, str]
    """What the extents of the program's inputs are called."""
    numbers: dict[ir.Variable, int | float] = field(default_factory=dict)
    """Extents, offsets and constants that no array's shape tells: extra arguments, with their values in this
    call."""
    growing: dict[Symbol, ir.Buffer] = field(default_factory=dict)
    """For numbers of steps that data decides, an array that must have as many rows."""
    needed: ir.Buffer | None = None
    """Where the function says how many rows it needs."""
    host_calls: dict[HostCall, str] = field(default_factory=dict)
    """What functions that Python runs are called."""

    @kept
    def names(self) -> frozenset[str]:
        """What the arrays are called."""
        return frozenset(one.name for one in self.buffers.values())


@record(eq=False)
class Scope:
    """The body of a loop while it is written: its statements, and the expressions that have names there."""

    loop: Loop | None
    parent: Scope | None
    statements: list[ir.Stmt] = field(default_factory=list)
    known: dict[int, ir.Variable] = field(default_factory=dict)
    checked: set[tuple[int, ir.Expr]] = field(default_factory=set)
    """Positions from data that have been compared with an extent."""
    is_branch: bool = False
    """Whether it is one side of a choice: what is computed there is computed nowhere else."""

    @property
    def chain(self) -> list[Scope]:
        """The scopes from the outermost to this one."""
        return [*(self.parent.chain if self.parent else ()), self]


class IndexWriter:
    """Writes the whole numbers of one generated function, and reads extents where it begins."""

    def __init__(self, tree: LoopTree, arrays: Arrays) -> None:
        self.tree = tree
        self.arrays = arrays
        self.prologue: list[ir.Let | ir.View] = []
        self._extents: dict[Symbol, ir.Variable] = {}
        self._constants: dict[tuple[Formula, np.dtype], ir.Expr] = {}
        self._root_variables: dict[Axis, ir.Variable] = {}
        self._standing: dict[ir.Variable, Index] = {}
        """Of loops of one iteration where that is."""

    def value(self, expression: Expression, scope: Scope, conditional: bool = False) -> ir.Expr:
        """An index may be a value that is computed."""
        raise NotImplementedError

    def extent(self, symbol: Symbol) -> ir.Variable | ir.Const:
        """An extent, read once at the top of the function from an array or given as an argument."""
        symbol = symbol.find()
        if symbol is ONE or symbol in self.tree.small:
            return ir.number(symbol.value)
        if symbol not in self._extents:
            assert not symbol.is_counted, "a number of steps is read before it is known"
            source = self._arrays_with.get(symbol)
            name = self.arrays.extent_names.get(symbol) or self.arrays.pool.take_first(EXTENTS)
            variable = self._extents[symbol] = ir.Variable(name)
            if source is None and symbol.base is not None:
                difference = symbol.value - symbol.base.value
                function = "subtract" if difference < 0 else "add"
                source = ir.apply(function, self.extent(symbol.base), ir.number(abs(difference)))
            if source is None:
                source = self._by_formula(symbol)
            if source is not None:
                self.prologue.append(ir.Let(variable, source))
            else:
                self.arrays.numbers[variable] = symbol.value
        return self._extents[symbol]

    def _by_formula(self, symbol: Symbol) -> ir.Expr | None:
        """An extent that follows from those of arrays of this function."""
        named = self.tree.extents.named.items()
        for formula, one in named:
            if one.find() is symbol and isinstance(formula, Computed) and self._is_readable(formula, symbol):
                return self._applied(formula)
        return None

    def _is_readable(self, formula: Computed, result: Symbol) -> bool:
        """Whether arrays of this function tell all that a formula takes, and that without its result."""
        for one in formula.operands:
            if isinstance(one, int | float):
                continue
            known = self.tree.extents.named.get(one)
            if known is not None and known.find() is result:
                return False
            if known is not None and known.find() in self._arrays_with:
                continue
            if isinstance(one, Source) or not self._is_readable(one, result):
                return False
        return True

    def size(self, symbol: Symbol) -> ir.Expr:
        """An extent, as what it is more or less than another that an array of the function has."""
        base = symbol.find()
        while base.base is not None:
            base = base.base.find()
        is_known = base in self._extents or base in self._arrays_with
        return self.index(of_symbol(symbol), Scope(None, None)) if is_known else self.extent(symbol)

    @kept
    def _arrays_with(self) -> dict[Symbol, ir.Expr]:
        """Extents of the arrays of this function, by their symbols."""
        found: dict[Symbol, ir.Expr] = {}
        for node, buffer in self.arrays.buffers.items():
            if node not in self.tree.extents.of:  # `needed`, which is no value of the graph
                continue
            dims = range(node.spec.ndim) if node.is_input else self.tree.kept.get(node, ())
            symbols = self.tree.extents[node]
            for position, dim in enumerate(dims):
                if self.tree.in_blocks.get(node) != dim:
                    found.setdefault(symbols[dim], ir.Extent(buffer, position))
        return found

    def _integer(self, value: int) -> ir.Expr:
        """A number in index arithmetic; one that follows from sizes is computed of them at the top."""
        return self._number(value, INT64, "offset")

    def index(self, index: AnyIndex, scope: Scope) -> ir.Expr:
        if isinstance(index, Quotient):
            return ir.apply("quotient", self.index(index.index, scope), self._integer(index.divisor))
        if not isinstance(index, Index):
            return self.value(index, scope)
        if self._standing or any(map(self._is_written_out, index.terms)):
            index = plus(*map(self._placed, index.terms))
        result: ir.Expr | None = None
        for term in sorted(index.terms, key=lambda one: (one.coefficient < 0, not one.factors)):
            result = self._add_term(result, term, scope)
        return result or ir.number(0)

    def _is_written_out(self, term: Term) -> bool:
        """Whether it has an extent that code has as a number."""
        return any(isinstance(one, Symbol) and one.find() in self.tree.small for one in term.factors)

    def _placed(self, term: Term) -> Index:
        """A term with what is known of the places of loops, and with extents that are written as numbers."""
        placed = number(term.coefficient)
        for factor in term.factors:
            place = self._standing.get(self._root_variables[factor]) if isinstance(factor, Axis) else None
            if isinstance(factor, Symbol) and factor.find() in self.tree.small:
                place = number(factor.find().value)
            placed = product(placed, Index((Term(1, (factor,)),)) if place is None else place)
        return placed

    def _add_term(self, total: ir.Expr | None, term: Term, scope: Scope) -> ir.Expr:
        coefficient = term.coefficient if total is None else abs(term.coefficient)
        product: ir.Expr | None = None
        for factor in term.factors:
            value = self._factor(factor, scope)
            product = value if product is None else ir.apply("multiply", product, value)
        if product is None:
            product = self._integer(coefficient)
        elif coefficient != 1:
            product = ir.apply("multiply", self._integer(coefficient), product)
        if total is None:
            return product
        return ir.apply("subtract" if term.coefficient < 0 else "add", total, product)

    def _factor(self, factor: Factor, scope: Scope) -> ir.Expr:
        if isinstance(factor, Axis):
            return self._root_variables[factor]
        return self.extent(factor) if isinstance(factor, Symbol) else self.value(factor, scope)

    def _literal(self, literal: Literal) -> ir.Expr:
        """A constant; one that follows from sizes is computed from them at the top, or is an argument."""
        return self._number(literal.value, literal.dtype, "scale")

    def _number(self, value: int | float, dtype: np.dtype, name: str) -> ir.Expr:
        formula = formula_of(value)
        if formula is None:
            return ir.Const(value, dtype)
        key = canonical(formula), dtype
        if key not in self._constants:
            self._constants[key] = self._sized(plain(value), key[0], dtype, name)
        return self._constants[key]

    def _sized(self, value: int | float, formula: Formula, dtype: np.dtype, name: str) -> ir.Expr:
        written = self._formula(formula, is_whole=True)
        if isinstance(written, ir.Const):
            return ir.Const(value, dtype)
        if isinstance(written, ir.Variable) and dtype == written.dtype:
            return written
        given = dtype if dtype in GIVEN else ir.FLOAT64 if dtype.kind == "f" else INT64
        if written is None:
            letter = formula.letter if isinstance(formula, Source) else ""
            written = ir.Variable(self.arrays.pool.take(letter or "number"), given)
            self.arrays.numbers[written] = value
        if written.dtype != dtype:
            written = ir.Cast(written, dtype)
        if isinstance(written, ir.Variable):
            return written
        return self._let(formula.letter or name, written)

    def _let(self, name: str, value: ir.Expr) -> ir.Variable:
        variable = ir.Variable(self.arrays.pool.take(name), value.dtype)
        self.prologue.append(ir.Let(variable, value))
        return variable

    def _formula(self, formula: Formula | int | float, is_whole: bool = False) -> ir.Expr | None:
        """A formula in extents that this function knows; None if it takes others.

        What the user has given a name has it here, also inside of another formula.
        """
        if isinstance(formula, int | float):
            return ir.Const(formula, INT64 if isinstance(formula, int) else ir.FLOAT64)
        if formula in self.tree.extents.named:
            return self.extent(self.tree.extents.named[formula])
        if isinstance(formula, Source):
            return None
        value = self._applied(formula)
        if is_whole or value is None or not formula.letter:
            return value
        key = formula, value.dtype
        if key not in self._constants:
            self._constants[key] = self._let(formula.letter, value)
        return self._constants[key]

    def _applied(self, formula: Computed) -> ir.Expr | None:
        """What a function gives for formulas in extents; None if code does not compute it."""
        if formula.function not in FUNCTIONS or formula.function in ROUNDING:
            return None
        operands = [self._formula(one) for one in formula.operands]
        if any(one is None for one in operands):
            return None
        return _applied(formula.function, [one for one in operands if one is not None])


def _applied(function: str, operands: list[ir.Expr]) -> ir.Expr:
    """A function as Python computes it of integers and floats."""
    if all(isinstance(one, ir.Const) for one in operands):
        value = FUNCTIONS[function](*(one.value for one in operands if isinstance(one, ir.Const)))
        return ir.Const(value, INT64 if isinstance(value, int) else ir.FLOAT64)
    if function == "power" and isinstance(operands[0], ir.Variable) and operands[1] == ir.number(2):
        function, operands = "multiply", [operands[0]] * 2
    if function in ELEMENTARY:
        operands = [*map(_as_float, operands)]
    elif function == "divide" or any(one.dtype == ir.FLOAT64 for one in operands):
        operands[0] = _as_float(operands[0])
    return ir.apply(OF_WHOLE_NUMBERS.get(function, function), *operands)


def _as_float(number: ir.Expr) -> ir.Expr:
    if number.dtype == ir.FLOAT64:
        return number
    if isinstance(number, ir.Const):
        return ir.Const(float(number.value), ir.FLOAT64)
    return ir.Cast(number, ir.FLOAT64)
