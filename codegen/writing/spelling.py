"""How indices, constants and scalar expressions are spelled as Python."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np

from pullback.tracer.operator import Operator
from pullback.tracer.spec import INT64

FLOAT64 = np.dtype("float64")


@lru_cache(maxsize=1024)
def _parsed(template: str, names: tuple[str, ...]) -> ast.expr:
    text = template.format(**{name: f"__{name}__" for name in names})
    return ast.parse(text, mode="eval").body


class _Fill(ast.NodeVisitor):
    """A copy of a template with its placeholders replaced, and with literals of the operator's dtype."""

    def __init__(self, operands: dict[str, ast.expr], dtype: np.dtype) -> None:
        self.operands = operands
        self.dtype = dtype

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "inf":
            return literal(math.inf, self.dtype)
        return self.operands.get(node.id, node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return literal(node.value, self.dtype)  # type: ignore[arg-type]

    def generic_visit(self, node: ast.AST) -> ast.AST:
        return type(node)(**{field: self._copied(value) for field, value in ast.iter_fields(node)})

    def _copied(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.visit(one) for one in value]
        return self.visit(value) if isinstance(value, ast.AST) else value


def fill(template: str, operands: dict[str, ast.expr], dtype: np.dtype) -> ast.expr:
    """A scalar template with expressions for its operands; brackets come from ast.unparse."""
    names = tuple(operands)
    filled = _Fill({f"__{name}__": value for name, value in operands.items()}, dtype)
    return filled.visit(_parsed(template, names))


def filled(operator: Operator, operands: Sequence[ast.expr], dtype: np.dtype) -> ast.expr:
    """An elementwise operator on elements."""
    assert operator.scalar is not None
    return fill(operator.scalar, dict(zip(operator.operands, operands)), dtype)


@cache
def sign_of(operator: Operator) -> str:
    """The sign of Python's arithmetic that an operator on two elements is; empty for other operators."""
    a, b = operator.operands
    signs = (sign for sign in ("+", "*") if operator.scalar == f"{{{a}}} {sign} {{{b}}}")
    return next(signs, "")


def literal(value: bool | int | float, dtype: np.dtype) -> ast.expr:
    """A constant of a dtype: plain for float64, int64 and bool, else in a conversion."""
    if dtype.kind == "b":
        return ast.Constant(bool(value))
    plain = _float(float(value)) if dtype.kind == "f" else ast.Constant(int(value))
    if dtype in (FLOAT64, INT64):
        return plain
    if dtype.kind == "f" and math.isfinite(value):
        plain = ast.Constant(float(str(dtype.type(value))))  # as short as the dtype allows
    return call(dtype.name, plain)


def _float(value: float) -> ast.expr:
    if math.isnan(value):
        return ast.Name("nan")
    if math.isinf(value):
        return ast.Name("inf") if value > 0 else ast.UnaryOp(ast.USub(), ast.Name("inf"))
    return ast.Constant(value)


def call(function: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(function), list(arguments), [])


def unparse(expression: ast.expr) -> str:
    """The text; the expression, which nobody changes, remembers it: first its length is asked for."""
    if isinstance(expression, ast.Name):
        return expression.id
    text: str | None = getattr(expression, "text", None)
    if text is None:
        text = expression.text = ast.unparse(expression)  # type: ignore[attr-defined]
    return text


def called_names(expression: ast.expr) -> set[str]:
    """The functions and constants that an expression needs imported."""
    names = set()
    for node in ast.walk(expression):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names.add(node.func.id)
        elif isinstance(node, ast.Name) and node.id in ("inf", "nan"):
            names.add(node.id)
    return names
