"""How expressions of the loop IR are spelled in C, with the brackets that precedence asks for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import reduce

import numpy as np

from pullback.tracer.spec import INT64

from ...ir import FLOAT64, OF_INTEGERS, Apply, Buffer, Cast, Const, Expr, Extent, Load, Variable, apply
from ...vector_math.primitives import OF_INTEGERS as OF_ALL
from .c_names import Names, type_name

TERNARY, OR, AND, BIT_OR, BIT_XOR, BIT_AND, EQUALITY, RELATION, SUM, PRODUCT, UNARY, ATOM = range(12)
"""C's levels of precedence, the loosest first."""
BINARY = {
    "add": ("+", SUM), "subtract": ("-", SUM), "multiply": ("*", PRODUCT), "divide": ("/", PRODUCT),
    "bit_and": ("&", BIT_AND), "bit_or": ("|", BIT_OR), "bit_xor": ("^", BIT_XOR),
    "equal": ("==", EQUALITY), "not_equal": ("!=", EQUALITY), "less": ("<", RELATION),
    "less_equal": ("<=", RELATION), "greater": (">", RELATION), "greater_equal": (">=", RELATION),
    "and": ("&&", AND), "or": ("||", OR),
}  # fmt: skip
INSIDE = {OR: BIT_OR, BIT_OR: UNARY, BIT_XOR: UNARY, BIT_AND: UNARY}
"""From which level operands need no brackets, where few readers know the levels."""
UNARY_SIGNS = {"negative": "-", "bit_not": "~", "not": "!"}
CALLED = {
    "quotient": "floor_divide",
    "modulo": "remainder",
    "min": "minimum",
    "max": "maximum",
    "abs": "absolute",
}
EXTREMES = ("maximum", "minimum")
"""Functions that C lacks, or has under a name for each type."""


class Spelling:
    """Spells the expressions of one function.

    Attributes:
        names: of its variables and arrays.
        extents: the name, or the number, of each extent that is no field of an array.
        strided: the arrays that are views: structures of an address, extents and strides.
        called: is told each function of the file that an expression calls, and the dtype of its instance.
    """

    def __init__(
        self,
        names: Names,
        extents: Mapping[tuple[Buffer, int], str],
        strided: Iterable[Buffer],
        called: Callable[[str, np.dtype], None],
    ) -> None:
        self.names = names
        self.extents = extents
        self.strided = frozenset(strided)
        self.called = called

    def __call__(self, expression: Expr, level: int = TERNARY) -> str:
        """The C of an expression, in brackets if it binds looser than `level` where it stands."""
        text, own = self._spelled(expression)
        return f"({text})" if own < level else text

    def _spelled(self, one: Expr) -> tuple[str, int]:
        """An expression's text and its level."""
        if isinstance(one, Variable):
            return self.names[one.name], ATOM
        if isinstance(one, Const):
            text = number(one.value, one.dtype)
            return text, UNARY if text.startswith(("-", "(")) else ATOM
        if isinstance(one, Cast):
            return f"({type_name(one.dtype)}){self(one.value, UNARY)}", UNARY
        if isinstance(one, Extent):
            return self.extent(one.buffer, one.dim), ATOM
        if isinstance(one, Load):
            return self.element(one), ATOM
        if isinstance(one, Apply):
            return self._applied(one)
        condition, inside, outside = self(one.condition, OR), self(one.inside, OR), self(one.outside)
        return f"{condition} ? {inside} : {outside}", TERNARY

    def extent(self, buffer: Buffer, dim: int) -> str:
        """How many elements an array has along a dimension."""
        if buffer in self.strided:
            return f"{self.names[buffer.name]}.extents[{dim}]"
        return self.extents[buffer, dim]

    def element(self, load: Load) -> str:
        """`x[i * m + j]`, or of a view `x.data[i * x.strides[0] + j * x.strides[1]]`."""
        name = self.names[load.buffer.name]
        if load.buffer in self.strided:
            terms = (
                f"{self(index, PRODUCT)} * {name}.strides[{dim}]" for dim, index in enumerate(load.indices)
            )
            return f"{name}.data[{' + '.join(terms)}]"
        return f"{name}[{self(self.position(load.buffer, load.indices))}]"

    @staticmethod
    def position(buffer: Buffer, indices: tuple[Expr, ...]) -> Expr:
        """How many elements lie before one of an array by rows."""
        first, *others = indices or (Const(0, INT64),)
        along = [(index, Extent(buffer, dim)) for dim, index in enumerate(others, 1)]
        return reduce(
            lambda so_far, one: apply("add", apply("multiply", so_far, one[1]), one[0]), along, first
        )

    def _applied(self, one: Apply) -> tuple[str, int]:
        """A function's text and its level; C computes small integers as `int`, so they are cut back."""
        function, arguments = one.function, one.arguments
        if function in BINARY:
            sign, own = BINARY[function]
            levels = (INSIDE.get(own, own + (place > 0)) for place in range(len(arguments)))
            text = f" {sign} ".join(map(self, arguments, levels))
        elif function in UNARY_SIGNS:
            is_truth = function == "bit_not" and one.dtype.kind == "b"
            own = UNARY
            text = f"{'!' if is_truth else UNARY_SIGNS[function]}{self(arguments[0], own + 1)}"
        else:
            return self._called(CALLED.get(function, function), one)
        if one.dtype.kind in "iu" and one.dtype.itemsize < 8:
            return f"({type_name(one.dtype)})({text})", UNARY
        return text, own

    def _called(self, function: str, one: Apply) -> tuple[str, int]:
        """A function of the file: there is one for each type; extremes are of two numbers at a time."""
        if function in EXTREMES and len(one.arguments) > 2:
            *others, last = one.arguments
            return self._called(
                function, replace(one, arguments=(replace(one, arguments=tuple(others)), last))
            )
        given = {argument.dtype for argument in one.arguments}
        of_integers = function in OF_INTEGERS or function in OF_ALL or function == "absolute"
        if of_integers and one.dtype.kind in "iub" and given == {one.dtype}:
            dtype = one.dtype
        else:
            dtype = np.dtype("float32") if given == {np.dtype("float32")} else FLOAT64
        self.called(function, dtype)
        text = f"{function}_{dtype.name}({', '.join(map(self, one.arguments))})"
        return (text, ATOM) if dtype == one.dtype else (f"({type_name(one.dtype)}){text}", UNARY)


def number(value: bool | int | float, dtype: np.dtype) -> str:
    """A constant of a dtype: plain for double, int64_t and bool, else with its suffix or a conversion."""
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.kind == "f":
        is_single = dtype != FLOAT64
        if not math.isfinite(value):
            text = "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
            return f"({type_name(dtype)}){text}" if is_single else text
        return f"{float(str(dtype.type(value)))!r}f" if is_single else repr(float(value))
    plain = int(value)
    if dtype != INT64:
        return f"({type_name(dtype)}){plain}" + ("u" if dtype.kind == "u" else "")
    if plain == np.iinfo(INT64).min:
        return "INT64_MIN"
    return f"INT64_C({plain})" if abs(plain) > np.iinfo("int32").max else str(plain)
