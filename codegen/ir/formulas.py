"""The scalar formulas of operators' declarations, `exp({x})` or `{a} + {b}`, as expressions.

A declaration is text that people read, and this is the one place that parses it: once for each formula and
dtypes of operands, to an expression with a variable for each operand, in whose place an operand is put.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from pullback.tracer.operator import Operator
from pullback.tracer.origin import UNKNOWN, Origin
from pullback.tracer.spec import INT64

from .expressions import Apply, Const, Expr, Select, Variable, apply, children

FUNCTIONS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
    ast.FloorDiv: "quotient", ast.Mod: "modulo",
    ast.BitAnd: "bit_and", ast.BitOr: "bit_or", ast.BitXor: "bit_xor",
    ast.USub: "negative", ast.Not: "not", ast.Invert: "bit_not", ast.And: "and", ast.Or: "or",
    ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal",
    ast.Gt: "greater", ast.GtE: "greater_equal",
}  # fmt: skip
SIGNS = {"add": "subtract", "subtract": "add"}
OF_WHOLE_NUMBERS = {"remainder": "modulo", "floor_divide": "quotient"}
"""Functions that are Python's operators where whole numbers are divided by one that is not 0."""
LARGEST_TURNED = 10**9
"""Integers of more digits may have no opposite in their dtype."""
Dtypes = tuple[tuple[str, np.dtype], ...]


def fill(formula: str, operands: Mapping[str, Expr], dtype: np.dtype, origin: Origin = UNKNOWN) -> Expr:
    """A formula of operands; its numbers are of a dtype."""
    expression = _expression(formula, tuple((name, one.dtype) for name, one in operands.items()), dtype)
    return _with(expression, operands, origin)


def apply_operator(operator: Operator, operands: Sequence[Expr], dtype: np.dtype) -> Expr:
    """An elementwise operator of elements."""
    assert operator.scalar is not None
    return fill(operator.scalar, dict(zip(operator.operands, operands)), dtype)


@lru_cache(maxsize=1024)
def _expression(formula: str, operands: Dtypes, dtype: np.dtype) -> Expr:
    """A formula of variables with the operands' names and dtypes."""
    variables = {name: Variable(name, own) for name, own in operands}
    return _parsed(ast.parse(formula, mode="eval").body, variables, dtype)


def _parsed(part: ast.expr, variables: Mapping[str, Variable], dtype: np.dtype) -> Expr:
    def parsed(*parts: ast.expr) -> list[Expr]:
        return [_parsed(one, variables, dtype) for one in parts]

    match part:
        case ast.Set([ast.Name(name)]):  # as Python reads `{x}`
            return variables[name]
        case ast.Name("inf"):
            return Const(math.inf, dtype)
        case ast.Constant(bool() | int() | float() as value):
            return Const(value, dtype)
        case ast.BinOp(left, operator, right) | ast.Compare(left, [operator], [right]):
            return apply(FUNCTIONS[type(operator)], *parsed(left, right))
        case ast.UnaryOp(operator, operand):
            return apply(FUNCTIONS[type(operator)], *parsed(operand))
        case ast.BoolOp(operator, values):
            return apply(FUNCTIONS[type(operator)], *parsed(*values))
        case ast.IfExp(test, body, orelse):
            condition, inside, outside = parsed(test, body, orelse)
            return Select(condition, inside, outside)
        case ast.Call(ast.Name(function), arguments):
            return apply(function, *parsed(*arguments))
    raise ValueError(f"{ast.unparse(part)} is no part of a scalar formula")


def _with(part: Expr, operands: Mapping[str, Expr], origin: Origin) -> Expr:
    """A formula with operands in the place of its variables."""
    inner = [_with(one, operands, origin) for one in children(part)]
    match part:
        case Variable(name):
            return operands[name]
        case Apply(function, _, dtype):
            return _plainer(Apply(function, tuple(inner), dtype, origin))
        case Select():
            condition, inside, outside = inner
            return Select(condition, inside, outside, origin)
    return part


def _plainer(one: Apply) -> Expr:
    """The same value, to the last bit, with less to read: `a - b` for `a + -b`, `a` for `1 * a`, `i % 12`."""
    if one.function == "negative":
        return _opposite(one.arguments[0]) or one
    if len(one.arguments) != 2:
        return one
    left, right = one.arguments
    if one.function in ("multiply", "divide") and _is_one(right):
        return left
    if one.function == "multiply" and _is_one(left):
        return right
    is_by_number = one.dtype == INT64 and isinstance(right, Const) and right.value > 0
    if one.function in OF_WHOLE_NUMBERS and is_by_number:
        return replace(one, function=OF_WHOLE_NUMBERS[one.function])
    if one.function in SIGNS and (opposite := _opposite(right)) is not None:
        return replace(one, function=SIGNS[one.function], arguments=(left, opposite))
    if one.function == "add" and isinstance(left, Apply) and (opposite := _opposite(left)) is not None:
        return replace(one, function="subtract", arguments=(right, opposite))
    return one


def _is_one(number: Expr) -> bool:
    return isinstance(number, Const) and number.dtype.kind in "iuf" and number.value == 1


def _opposite(value: Expr) -> Expr | None:
    """What a value is the opposite of: another value, or a positive number."""
    if isinstance(value, Apply) and value.function == "negative":
        return value.arguments[0]
    if isinstance(value, Const) and value.dtype.kind in "if" and -LARGEST_TURNED < value.value < 0:
        return replace(value, value=-value.value)
    return None
