"""Extents, indices and constants as Python: whole numbers that follow from the shapes of arrays."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

import numpy as np

from pullback.tracer.graph import Node
from pullback.tracer.spec import INT64, FromShape

from ..nests.constants import Formulas
from ..nests.expression import AnyIndex, Axis, Expression, Factor, Index, Literal, Quotient, Term
from ..nests.extents import ONE, Symbol
from ..nests.tree import Loop, LoopTree
from . import spelling as sp
from .layout import Block, ForLoop, Line
from .names import EXTENTS, NamePool

LARGEST_LITERAL_OFFSET = 8


@dataclass
class Arrays:
    """The names of a kernel's arrays and integers, and which extents can be read from which array."""

    names: dict[Node, str]
    pool: NamePool
    integers: dict[str, int] = field(default_factory=dict)
    """Extents and offsets that no array's shape tells: extra arguments, with their values in this call."""
    growing: dict[Symbol, str] = field(default_factory=dict)
    """For numbers of steps that data decides, an array that must have as many rows."""


@dataclass(eq=False)
class Scope:
    """The body of a loop while it is written: its statements, and the expressions that have names there."""

    loop: Loop | None
    parent: Scope | None
    lines: list[Line | ForLoop | Block] = field(default_factory=list)
    known: dict[int, str] = field(default_factory=dict)
    checked: set[tuple[int, str]] = field(default_factory=set)
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
        self.called: set[str] = set()
        self.prologue: list[Line] = []
        self._extent_names: dict[Symbol, str] = {}
        self._offset_names: dict[int, str] = {}
        self._constant_names: dict[tuple[object, ...], str] = {}
        self._root_variables: dict[Axis, str] = {}
        self.reserved: dict[Symbol, str] = {}
        for symbol in (one for node in tree.graph.inputs for one in tree.extents[node] if one is not ONE):
            if symbol not in self.reserved:
                self.reserved[symbol] = arrays.pool.take_first(EXTENTS)
        sized = (*tree.graph.inputs, *tree.graph.nodes)  # those of inputs are found first
        self._formulas = Formulas([symbol for node in sized for symbol in tree.extents[node]])

    def value(self, expression: Expression, scope: Scope, conditional: bool = False) -> ast.expr:
        """An index may be a value that is computed."""
        raise NotImplementedError

    def extent(self, symbol: Symbol) -> str:
        """The name of an extent, read once at the top of the kernel from an array or given as an argument."""
        symbol = symbol.find()
        if symbol is ONE or symbol in self.tree.small:
            return str(symbol.value)
        if symbol not in self._extent_names:
            assert not symbol.is_counted, "a number of steps is read before it is known"
            source = self._array_with(symbol)
            name = self._extent_names[symbol] = self.reserved.get(symbol) or self.arrays.pool.take_first(
                EXTENTS
            )
            if source is not None:
                self.prologue.append(Line(f"{name} = {source}"))
            elif symbol.base is not None:
                difference = symbol.value - symbol.base.value
                sign = "-" if difference < 0 else "+"
                base = self.extent(symbol.base)
                self.prologue.append(Line(f"{name} = {base} {sign} {abs(difference)}"))
            else:
                self.arrays.integers[name] = symbol.value
        return self._extent_names[symbol]

    def _array_with(self, symbol: Symbol) -> str | None:
        for node, name in self.arrays.names.items():
            if node not in self.tree.extents.of:  # `needed`, which is no value of the graph
                continue
            dims = range(node.spec.ndim) if node.is_input else self.tree.kept.get(node, ())
            symbols = self.tree.extents[node]
            for position, dim in enumerate(dims):
                if symbols[dim] is symbol and self.tree.in_blocks.get(node) != dim:
                    return f"{name}.shape[{position}]"
        return None

    def _integer(self, value: int) -> ast.expr:
        """A number in index arithmetic; a large one depends on shapes and is an argument."""
        if abs(value) <= LARGEST_LITERAL_OFFSET:
            return ast.Constant(value)
        if value not in self._offset_names:
            name = self.arrays.pool.take("offset")
            self._offset_names[value] = name
            self.arrays.integers[name] = value
        return ast.Name(self._offset_names[value])

    def index(self, index: AnyIndex, scope: Scope) -> ast.expr:
        if isinstance(index, Quotient):
            return ast.BinOp(self.index(index.index, scope), ast.FloorDiv(), self._integer(index.divisor))
        if not isinstance(index, Index):
            return self.value(index, scope)
        result: ast.expr | None = None
        for term in sorted(index.terms, key=lambda one: (one.coefficient < 0, not one.factors)):
            result = self._add_term(result, term, scope)
        return result or ast.Constant(0)

    def _add_term(self, total: ast.expr | None, term: Term, scope: Scope) -> ast.expr:
        coefficient = term.coefficient if total is None else abs(term.coefficient)
        product: ast.expr | None = None
        for factor in term.factors:
            name = self._written_factor(factor, scope)
            product = name if product is None else ast.BinOp(product, ast.Mult(), name)
        if product is None:
            product = self._integer(coefficient)
        elif coefficient != 1:
            product = ast.BinOp(self._integer(coefficient), ast.Mult(), product)
        if total is None:
            return product
        return ast.BinOp(total, ast.Sub() if term.coefficient < 0 else ast.Add(), product)

    def _written_factor(self, factor: Factor, scope: Scope) -> ast.expr:
        if isinstance(factor, Axis):
            return ast.Name(self._root_variables[factor])
        return ast.Name(self.extent(factor)) if isinstance(factor, Symbol) else self.value(factor, scope)

    def _literal(self, literal: Literal) -> ast.expr:
        """A constant; one that follows from extents is computed from them at the top."""
        value = literal.value
        if literal.dtype.kind in "iu":
            return self._whole_number(int(value), literal.dtype)
        may_follow = isinstance(value, FromShape) or float(value).is_integer()
        is_formula = literal.dtype.kind == "f" and may_follow
        found = self._formulas.find(float(value), literal.dtype) if is_formula else None
        if found is None:
            return sp.literal(literal.value, literal.dtype)
        if (*found, literal.dtype) not in self._constant_names:
            operation, factors, less, numerator = found
            product = " * ".join(self.extent(symbol) for symbol in factors) + (f" - {less}" if less else "")
            product = f"({product})" if " " in product else product
            name = self.arrays.pool.take("scale")
            self._constant_names[(*found, literal.dtype)] = name
            formula = ast.parse(f"{numerator!r} {operation} {product}", mode="eval").body
            if literal.dtype.itemsize < 8:
                formula = sp.call(literal.dtype.name, formula)
                self.called.add(literal.dtype.name)
            self.prologue.append(Line(f"{name} = {sp.unparse(formula)}"))
        return ast.Name(self._constant_names[(*found, literal.dtype)])

    def _whole_number(self, value: int, dtype: np.dtype) -> ast.expr:
        """An integer constant; one that is an extent is written as that."""
        factors, less = self._formulas.products.get(value, ((), 0))
        if dtype == INT64 and len(factors) == 1 and not less:
            return ast.Name(self.extent(factors[0]))
        return sp.literal(value, dtype)
