"""From the scalar formulas of operators' declarations, as `exp({x})` or `{a} + {b}`, to expressions."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from pullback.tracer.operator import Operator
from pullback.tracer.origin import UNKNOWN, Origin

from .expressions import Apply, Const, Expr, Select, apply

FUNCTIONS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide",
    ast.BitAnd: "bit_and", ast.BitOr: "bit_or", ast.BitXor: "bit_xor",
    ast.USub: "negative", ast.Not: "not", ast.Invert: "bit_not", ast.And: "and", ast.Or: "or",
    ast.Eq: "equal", ast.NotEq: "not_equal", ast.Lt: "less", ast.LtE: "less_equal",
    ast.Gt: "greater", ast.GtE: "greater_equal",
}  # fmt: skip


def fill(formula: str, operands: Mapping[str, Expr], dtype: np.dtype, origin: Origin = UNKNOWN) -> Expr:
    """A formula of operands; its numbers are of a dtype, and so are the values of its functions."""
    return _filled(_parsed(formula), operands, dtype, origin)


def apply_operator(operator: Operator, operands: Sequence[Expr], dtype: np.dtype) -> Expr:
    """An elementwise operator of elements."""
    assert operator.scalar is not None
    return fill(operator.scalar, dict(zip(operator.operands, operands)), dtype)


@lru_cache(maxsize=1024)
def _parsed(formula: str) -> ast.expr:
    """The formula's structure; a placeholder `{x}` is a set of one name."""
    return ast.parse(formula, mode="eval").body


def _filled(part: ast.expr, operands: Mapping[str, Expr], dtype: np.dtype, origin: Origin) -> Expr:
    def filled(*parts: ast.expr) -> list[Expr]:
        return [_filled(one, operands, dtype, origin) for one in parts]

    match part:
        case ast.Set([ast.Name(name)]):
            return operands[name]
        case ast.Name("inf"):
            return Const(math.inf, dtype)
        case ast.Constant(value):
            return Const(value, dtype)  # type: ignore[arg-type]
        case ast.BinOp(left, operator, right) | ast.Compare(left, [operator], [right]):
            return apply(FUNCTIONS[type(operator)], *filled(left, right), origin=origin)
        case ast.UnaryOp(operator, operand):
            return apply(FUNCTIONS[type(operator)], *filled(operand), origin=origin)
        case ast.BoolOp(operator, values):
            return apply(FUNCTIONS[type(operator)], *filled(*values), origin=origin)
        case ast.IfExp(test, body, orelse):
            condition, inside, outside = filled(test, body, orelse)
            return Select(condition, inside, outside, origin)
        case ast.Call(ast.Name(function), arguments):
            given = tuple(filled(*arguments))
            return Apply(function, given, given[0].dtype, origin)
    raise ValueError(f"{ast.unparse(part)} is no part of a scalar formula")
