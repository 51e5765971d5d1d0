"""Functions of whole rows or matrices in the loop IR, read from the Python that they are written in.

What `codegen.matrices` and its like say in plain loops is printed by a target that can't call them. A
variable has the dtype of its first value, numbers are int64 or float64, and operands are converted to the
dtype that both fit in, as Numba has it. A function that says whether there is a result ends with a Check.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numpy as np

from pullback.tracer.spec import BOOL, INT64

from .expressions import FLOAT64, PREDICATES, Apply, Buffer, Cast, Const, Expr, Extent, Load, Select, Variable
from .formulas import FUNCTIONS
from .statements import (
    Assign,
    Body,
    Check,
    For,
    Function,
    If,
    Let,
    Library,
    Section,
    Span,
    Stmt,
    Store,
    While,
)  # fmt: skip

NO_RESULT = "no result"
DTYPES = {"int": INT64, "float": FLOAT64, "bool": BOOL, "int | int64": INT64}


def read_function(function: FunctionType, arrays: Sequence[tuple[np.dtype, int]]) -> Function:
    """The function in the loop IR.

    Args:
        arrays: the dtype and the number of dimensions of each array among its parameters, in order.

    Raises SyntaxError for Python that such functions are not written in.
    """
    definition = _parsed(function)
    reader = _Reader(function.__globals__, function.__name__)
    given = iter(arrays)
    parameters = tuple(reader.parameter(one, given) for one in definition.args.args)
    _, *statements, last = definition.body
    body = reader.body(statements)
    end = (reader.result(last),) if isinstance(last, ast.Return) else reader.body([last])
    return Function(function.__name__, parameters, (), (*body, *end))


@functools.cache
def _parsed(function: FunctionType) -> ast.FunctionDef:
    (definition,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(definition, ast.FunctionDef)
    return definition


class _Reader:
    """Reads the statements of one function."""

    def __init__(self, module: dict[str, Any], name: str, prefix: str = "") -> None:
        self.module = module
        self.name = name
        self.prefix = prefix
        """Stands before the names of variables."""
        self.arrays: dict[str, Buffer] = {}
        self.values: dict[str, Expr] = {}
        """What names stand for: variables, or in a function of numbers its arguments."""

    def parameter(self, one: ast.arg, arrays: Any) -> Buffer | Variable:
        assert one.annotation is not None
        kind = ast.unparse(one.annotation)
        if kind == "np.ndarray":
            dtype, rank = next(arrays)
            self.arrays[one.arg] = Buffer(one.arg, dtype, (0,) * rank)
            return self.arrays[one.arg]
        self.values[one.arg] = variable = Variable(one.arg, DTYPES[kind])
        return variable

    # --- statements ---------------------------------------------------------------------------------------

    def body(self, statements: Sequence[ast.stmt]) -> Body:
        return tuple(one for statement in statements for one in self._read(statement))

    def _read(self, one: ast.stmt) -> list[Stmt]:
        match one:
            case ast.Assign([ast.Name(name)], ast.Call(ast.Name(function), operands)) if any(
                isinstance(operand, ast.Name) and operand.id in self.arrays for operand in operands
            ):
                statements, value = self._written_out(self.module[function], operands)
                return [*statements, self._let(name, value)]
            case ast.Assign([ast.Name(name)], value):
                return [self._let(name, self.value(value))]
            case ast.Assign([ast.Tuple(names)], ast.Attribute(ast.Name(array), "shape")):
                extents = (Extent(self.arrays[array], dim) for dim in range(len(names)))
                return [self._let(ast.unparse(name), extent) for name, extent in zip(names, extents)]
            case ast.Assign([ast.Subscript() as target], value):
                return [self._store(target, self.value(value))]
            case ast.AugAssign(ast.Subscript() as target, operator, value):
                return [self._store(target, self._binary(operator, self.value(target), self.value(value)))]
            case ast.AugAssign(ast.Name(name), operator, value):
                variable = self.values[name]
                assert isinstance(variable, Variable)
                changed = self._binary(operator, variable, self.value(value))
                return [Assign(variable, _as(changed, variable.dtype))]
            case ast.For(ast.Name(name), ast.Call(ast.Name("range"), limits), body):
                return [self._loop(name, [*map(self.value, limits)], body)]
            case ast.While(condition, body):
                return [While(self.value(condition), self.body(body))]
            case ast.If(condition, body, otherwise):
                return [If(((self.value(condition), self.body(body)),), self.body(otherwise))]
            case ast.Expr(ast.Call(ast.Name(function), operands)):
                return [Library(function, tuple(map(self._operand, operands)))]
        raise self._refused(one)

    def result(self, one: ast.Return) -> Stmt:
        """What a function says at its end: whether there is a result."""
        match one.value:
            case ast.Call(ast.Name(function), operands):
                return Library(function, tuple(map(self._operand, operands)), failure=0)
            case ast.expr() as value:
                return Check(self.value(value), NO_RESULT)
        raise self._refused(one)

    def _written_out(self, function: FunctionType, operands: Sequence[ast.expr]) -> tuple[Body, Expr]:
        """The statements of a function of whole arrays, with names of their own, and what it returns."""
        definition, name = _parsed(function), function.__name__
        inner = _Reader(function.__globals__, name, f"{name}_")
        for one, operand in zip(definition.args.args, operands):
            if isinstance(operand, ast.Name) and operand.id in self.arrays:
                inner.arrays[one.arg] = self.arrays[operand.id]
            else:
                inner.values[one.arg] = self.value(operand)
        match definition.body:
            case [_, *statements, ast.Return(ast.expr() as result)]:
                return inner.body(statements), inner.value(result)
        raise self._refused(definition)

    def _let(self, name: str, value: Expr) -> Let:
        known = self.values.setdefault(name, Variable(f"{self.prefix}{name}", value.dtype))
        assert isinstance(known, Variable)
        return Let(known, _as(value, known.dtype))

    def _store(self, target: ast.Subscript, value: Expr) -> Store:
        place = self.value(target)
        assert isinstance(place, Load)
        return Store(place, _as(value, place.dtype))

    def _loop(self, name: str, limits: list[Expr], body: Sequence[ast.stmt]) -> For:
        start, stop = (Const(0), *limits) if len(limits) == 1 else limits[:2]
        step = limits[2] if len(limits) == 3 else Const(1)
        assert isinstance(step, Const)
        self.values[name] = variable = Variable(f"{self.prefix}{name}")
        return For(variable, start, stop, self.body(body), step=int(step.value))

    def _operand(self, one: ast.expr) -> Section | Expr:
        """An array, `out[:start, k:].T` of one, or a number."""
        match one:
            case ast.Name(name) if name in self.arrays:
                return Section(self.arrays[name])
            case ast.Attribute(value, "T"):
                section = self._operand(value)
                assert isinstance(section, Section)
                return Section(section.buffer, section.places, transposed=True)
            case ast.Subscript(ast.Name(name), index):
                places = [*map(self._place, index.elts if isinstance(index, ast.Tuple) else [index])]
                if any(isinstance(place, Span) for place in places):
                    return Section(self.arrays[name], tuple(places))
        return self.value(one)

    def _place(self, one: ast.expr) -> Expr | Span:
        if isinstance(one, ast.Slice):
            lower, upper = (None if limit is None else self.value(limit) for limit in (one.lower, one.upper))
            return Span(lower, upper)
        return self.value(one)

    def _refused(self, one: ast.AST) -> SyntaxError:
        line = getattr(one, "lineno", 0)
        return SyntaxError(f"{self.name}, line {line}: {ast.unparse(one)} is not understood")

    # --- expressions --------------------------------------------------------------------------------------

    def value(self, one: ast.expr) -> Expr:
        match one:
            case ast.Name(name):
                return self.values[name] if name in self.values else _constant(self.module[name])
            case ast.Constant(bool() | int() | float() as number):
                return _constant(number)
            case ast.Subscript(ast.Attribute(ast.Name(array), "shape"), ast.Constant(int(dim))):
                return Extent(self.arrays[array], dim)
            case ast.Subscript(ast.Name(array), index):
                indices = index.elts if isinstance(index, ast.Tuple) else [index]
                return Load(self.arrays[array], tuple(map(self.value, indices)))
            case ast.BinOp(left, operator, right) | ast.Compare(left, [operator], [right]):
                return self._binary(operator, self.value(left), self.value(right))
            case ast.BoolOp(operator, values):
                return Apply(FUNCTIONS[type(operator)], tuple(map(self.value, values)), BOOL)
            case ast.UnaryOp(operator, operand):
                return _unary(FUNCTIONS[type(operator)], self.value(operand))
            case ast.IfExp(condition, inside, outside):
                one_side, other = _alike(self.value(inside), self.value(outside))
                return Select(self.value(condition), one_side, other)
            case ast.Call(ast.Name("int64"), [number]):
                return Cast(self.value(number), INT64)
            case ast.Call(ast.Name(function), arguments):
                return self._called(function, tuple(map(self.value, arguments)))
        raise self._refused(one)

    def _called(self, function: str, arguments: tuple[Expr, ...]) -> Expr:
        """A function of numbers; one of the same module is what it returns."""
        found = self.module.get(function)
        if found is None or found.__module__ != self.module["__name__"]:
            return Apply(function, arguments, arguments[0].dtype)
        definition, inner = _parsed(found), _Reader(self.module, function)
        inner.values = {one.arg: value for one, value in zip(definition.args.args, arguments)}
        for one in definition.body:
            match one:
                case ast.Assign([ast.Name(name)], value):
                    inner.values[name] = inner.value(value)
                case ast.Return(ast.expr() as result):
                    return inner.value(result)
        raise self._refused(definition)

    def _binary(self, operator: ast.AST, left: Expr, right: Expr) -> Expr:
        function = FUNCTIONS[type(operator)]
        left, right = _alike(left, right)
        if function == "divide" and left.dtype.kind != "f":
            left, right = _as(left, FLOAT64), _as(right, FLOAT64)
        return Apply(function, (left, right), BOOL if function in PREDICATES else left.dtype)


def _constant(number: bool | int | float) -> Const:
    dtype = BOOL if isinstance(number, bool) else INT64 if isinstance(number, int) else FLOAT64
    return Const(number, dtype)


def _unary(function: str, value: Expr) -> Expr:
    if isinstance(value, Const):
        return Const(-value.value, value.dtype)
    return Apply(function, (value,), value.dtype)


def _alike(*values: Expr) -> tuple[Expr, ...]:
    """Values in the dtype that fits both."""
    dtype = np.result_type(*(value.dtype for value in values))
    return tuple(_as(value, dtype) for value in values)


def _as(value: Expr, dtype: np.dtype) -> Expr:
    return value if value.dtype == dtype else Cast(value, dtype)
