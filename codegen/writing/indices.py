"""Extents, indices and constants: whole numbers that follow from the shapes of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial, reduce

import numpy as np

from pullback.tracer.graph import Node
from pullback.tracer.spec import INT64, FromShape

from .. import ir
from ..ir.names import EXTENTS, NamePool
from ..nests.constants import Formulas
from ..nests.expression import AnyIndex, Axis, Expression, Factor, Index, Literal, Quotient, Term
from ..nests.extents import ONE, Symbol
from ..nests.tree import Loop, LoopTree

LARGEST_LITERAL_OFFSET = 8


@dataclass
class Arrays:
    """A function's arrays and integers, and which extents can be read from which array."""

    buffers: dict[Node, ir.Buffer]
    pool: NamePool
    extent_names: dict[Symbol, str]
    """What the extents of the program's inputs are called."""
    integers: dict[ir.Variable, int] = field(default_factory=dict)
    """Extents and offsets that no array's shape tells: extra arguments, with their values in this call."""
    growing: dict[Symbol, ir.Buffer] = field(default_factory=dict)
    """For numbers of steps that data decides, an array that must have as many rows."""
    needed: ir.Buffer | None = None
    """Where the function says how many rows it needs."""


@dataclass(eq=False)
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
        self._offsets: dict[int, ir.Variable] = {}
        self._constants: dict[tuple[object, ...], ir.Variable] = {}
        self._root_variables: dict[Axis, ir.Variable] = {}
        sized = (*tree.graph.inputs, *tree.graph.nodes)  # those of inputs are found first
        self._formulas = Formulas([symbol for node in sized for symbol in tree.extents[node]])

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
            source = self._array_with(symbol)
            name = self.arrays.extent_names.get(symbol) or self.arrays.pool.take_first(EXTENTS)
            variable = self._extents[symbol] = ir.Variable(name)
            if source is None and symbol.base is not None:
                difference = symbol.value - symbol.base.value
                function = "subtract" if difference < 0 else "add"
                source = ir.apply(function, self.extent(symbol.base), ir.number(abs(difference)))
            if source is not None:
                self.prologue.append(ir.Let(variable, source))
            else:
                self.arrays.integers[variable] = symbol.value
        return self._extents[symbol]

    def _array_with(self, symbol: Symbol) -> ir.Expr | None:
        for node, buffer in self.arrays.buffers.items():
            if node not in self.tree.extents.of:  # `needed`, which is no value of the graph
                continue
            dims = range(node.spec.ndim) if node.is_input else self.tree.kept.get(node, ())
            symbols = self.tree.extents[node]
            for position, dim in enumerate(dims):
                if symbols[dim] is symbol and self.tree.in_blocks.get(node) != dim:
                    return ir.Extent(buffer, position)
        return None

    def _integer(self, value: int) -> ir.Variable | ir.Const:
        """A number in index arithmetic; a large one depends on shapes and is an argument."""
        if abs(value) <= LARGEST_LITERAL_OFFSET:
            return ir.number(value)
        if value not in self._offsets:
            offset = self._offsets[value] = ir.Variable(self.arrays.pool.take("offset"))
            self.arrays.integers[offset] = value
        return self._offsets[value]

    def index(self, index: AnyIndex, scope: Scope) -> ir.Expr:
        if isinstance(index, Quotient):
            return ir.apply("quotient", self.index(index.index, scope), self._integer(index.divisor))
        if not isinstance(index, Index):
            return self.value(index, scope)
        result: ir.Expr | None = None
        for term in sorted(index.terms, key=lambda one: (one.coefficient < 0, not one.factors)):
            result = self._add_term(result, term, scope)
        return result or ir.number(0)

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
        """A constant; one that follows from extents is computed from them at the top."""
        value, dtype = literal.value, literal.dtype
        if dtype.kind in "iu":
            return self._whole_number(int(value), dtype)
        may_follow = isinstance(value, FromShape) or float(value).is_integer()
        found = self._formulas.find(float(value), dtype) if dtype.kind == "f" and may_follow else None
        if found is None:
            return ir.Const(value, dtype)
        if (*found, dtype) not in self._constants:
            variable = ir.Variable(self.arrays.pool.take("scale"), dtype)
            formula = self._formula(*found)
            if dtype != ir.FLOAT64:
                formula = ir.Cast(formula, dtype)
            self._constants[(*found, dtype)] = variable
            self.prologue.append(ir.Let(variable, formula))
        return self._constants[(*found, dtype)]

    def _formula(self, operation: str, factors: Sequence[Symbol], less: int, numerator: float) -> ir.Expr:
        """A number times a product of extents, or divided by it."""
        extents: list[ir.Expr] = [self.extent(symbol) for symbol in factors]
        product = reduce(partial(ir.apply, "multiply"), extents)
        if less:
            product = ir.apply("subtract", product, ir.number(less))
        return ir.apply(operation, ir.Const(numerator, ir.FLOAT64), product)

    def _whole_number(self, value: int, dtype: np.dtype) -> ir.Expr:
        """An integer constant; one that is an extent is written as that."""
        factors, less = self._formulas.products.get(value, ((), 0))
        if dtype == INT64 and len(factors) == 1 and not less:
            return self.extent(factors[0])
        return ir.Const(value, dtype)
