"""How expressions of the loop IR are spelled in Python, with the brackets that precedence asks for."""

from __future__ import annotations

import math

import numpy as np

from pullback.tracer.spec import INT64

from ...ir import FLOAT64, Apply, Cast, Const, Expr, Extent, Load, Variable

TEST, OR, AND, NOT, COMPARISON, BIT_OR, BIT_XOR, BIT_AND, SUM, PRODUCT, FACTOR, ATOM = range(12)
"""Python's levels of precedence, the loosest first."""
BINARY = {
    "add": ("+", SUM), "subtract": ("-", SUM), "multiply": ("*", PRODUCT), "divide": ("/", PRODUCT),
    "quotient": ("//", PRODUCT), "modulo": ("%", PRODUCT),
    "bit_and": ("&", BIT_AND), "bit_or": ("|", BIT_OR), "bit_xor": ("^", BIT_XOR),
}  # fmt: skip
BITS = (BIT_AND, BIT_OR, BIT_XOR)
COMPARISONS = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
UNARY = {"negative": ("-", FACTOR), "bit_not": ("~", FACTOR), "not": ("not ", NOT)}
CHAINS = {"and": AND, "or": OR}


def spell(expression: Expr, level: int = TEST) -> str:
    """The Python of an expression, in brackets if it binds looser than `level` where it stands."""
    if isinstance(expression, Variable):
        return expression.name
    if isinstance(expression, Load):
        return f"{expression.buffer.name}[{', '.join(map(spell, expression.indices)) or '()'}]"
    if isinstance(expression, Const):
        return _number(expression.value, expression.dtype)
    if isinstance(expression, Cast):
        return f"{dtype_name(expression.dtype)}({spell(expression.value)})"
    if isinstance(expression, Extent):
        return f"{expression.buffer.name}.shape[{expression.dim}]"
    if isinstance(expression, Apply):
        text, own = _applied(expression)
    else:
        sides = spell(expression.inside, OR), spell(expression.condition, OR), spell(expression.outside)
        text, own = "{} if {} else {}".format(*sides), TEST
    return f"({text})" if own < level else text


def width(expression: Expr) -> int:
    """How many characters an expression takes."""
    return len(spell(expression))


def _applied(one: Apply) -> tuple[str, int]:
    """A function's text and its level."""
    function, arguments = one.function, one.arguments
    if function in BINARY:
        sign, own = BINARY[function]
        if own in BITS:
            return f" {sign} ".join(_between_bits(one, function) for one in arguments), own
        return f"{spell(arguments[0], own)} {sign} {spell(arguments[1], own + 1)}", own
    if function in COMPARISONS:
        left, right = (spell(argument, COMPARISON + 1) for argument in arguments)
        return f"{left} {COMPARISONS[function]} {right}", COMPARISON
    if function in UNARY:
        sign, own = UNARY[function]
        return f"{sign}{spell(arguments[0], own)}", own
    if function in CHAINS:
        own = CHAINS[function]
        return f" {function} ".join(spell(argument, NOT) for argument in arguments), own
    return f"{function}({', '.join(map(spell, arguments))})", ATOM


def _between_bits(operand: Expr, function: str) -> str:
    """In brackets where Python needs none, but few know that."""
    is_same = isinstance(operand, Apply) and operand.function == function
    return spell(operand, BINARY[function][1] if is_same else FACTOR)


def _number(value: bool | int | float, dtype: np.dtype) -> str:
    """A constant of a dtype: plain for float64, int64 and bool, else in a conversion."""
    if dtype.kind == "b":
        return repr(bool(value))
    if dtype.kind != "f":
        plain = repr(int(value))
    elif math.isfinite(value):  # as short as the dtype allows
        plain = repr(float(value) if dtype == FLOAT64 else float(str(dtype.type(value))))
    else:
        plain = "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return plain if dtype in (FLOAT64, INT64) else f"{dtype.name}({plain})"


def dtype_name(dtype: np.dtype) -> str:
    """The function that converts to a dtype."""
    return "bool" if dtype.kind == "b" else dtype.name
