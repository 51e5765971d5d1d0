"""Elementary functions in C: what their one source in Python does, instruction by instruction.

As `vector_math.staged` writes LLVM's instructions, a `Printed` number writes a line of C for each step that
is taken with it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...vector_math.primitives import Condition, GoesOn, Number, State, Step, Symbol
from .c_names import type_name

BITS = {"float32": "uint32", "float64": "uint64"}
FLOATS = {bits: name for name, bits in BITS.items()}
EXTREMES = {"maximum": ">", "minimum": "<"}
"""What C's library has only without regard to nan; other instructions it has under their own name."""


class Definitions:
    """The functions of a file by their names, each behind those that it calls."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def define(self, function: Callable[..., Number], dtype: str) -> str:
        """Define what computes `function` of numbers of a dtype; its name."""
        name = f"{function.__name__.strip('_')}_{dtype}"
        if name not in self.texts:
            body = _Body(self)
            given = [*inspect.signature(function).parameters]
            result = function(*(Printed(body, one, dtype) for one in given))
            kind = type_name(np.dtype(dtype))
            parameters = ", ".join(f"{kind} {one}" for one in given)
            lines = [f"static inline {kind} {name}({parameters})", "{", *body.lines]
            self.texts[name] = "\n".join((*lines, f"    return {result.text};", "}"))
        return name


class _Body:
    """The lines of a function."""

    def __init__(self, definitions: Definitions) -> None:
        self.definitions = definitions
        self.lines: list[str] = []
        self.count = 0

    def value(self, text: str, dtype: str) -> Printed:
        """A line that gives a value a name."""
        self.count += 1
        name = f"v{self.count}"
        self.lines.append(f"    const {type_name(np.dtype(dtype))} {name} = {text};")
        return Printed(self, name, dtype)

    def variable(self, first: Printed) -> Printed:
        """A variable that begins as a value."""
        self.count += 1
        name = f"w{self.count}"
        self.lines.append(f"    {type_name(np.dtype(first.dtype))} {name} = {first.text};")
        return Printed(self, name, first.dtype)


class Printed(Symbol):
    """A number that a variable of C holds; integers are unsigned."""

    def __init__(self, body: _Body, text: str, dtype: str) -> None:
        self.body = body
        self.text = text
        self.dtype = dtype

    @property
    def format_name(self) -> str:
        return self.dtype

    def like(self, number: Any) -> Printed:
        if isinstance(number, Printed):
            return number
        return Printed(self.body, self._constant(number), self.dtype)

    def _constant(self, number: Any) -> str:
        if self.dtype in FLOATS:
            return f"UINT{np.dtype(self.dtype).itemsize * 8}_C({number})"
        if self.dtype == "bool":
            return "true" if number else "false"
        rounded = np.dtype(self.dtype).type(number)
        if not math.isfinite(rounded):
            return "NAN" if math.isnan(rounded) else "INFINITY" if rounded > 0 else "(-INFINITY)"
        return f"({rounded!s}{'f' if self.dtype == 'float32' else ''})"

    def _made(self, text: str, dtype: str = "") -> Printed:
        return self.body.value(text, dtype or self.dtype)

    def __bool__(self) -> bool:
        raise TypeError("A branch on a number that is not known yet: use select().")

    def __abs__(self) -> Printed:
        return self.intrinsic("fabs")

    def __neg__(self) -> Printed:
        return self._made(f"-{self.text}")

    def __invert__(self) -> Printed:
        return self._made(f"{'!' if self.dtype == 'bool' else '~'}{self.text}")

    def unfused_product(self, other: Any) -> Printed:
        product: Printed = self * other
        return product

    def replace_rare(
        self, usual: Any, is_rare: Callable[[Number], Condition], slow: Callable[[Number], Number]
    ) -> Printed:
        called = self.body.definitions.define(slow, self.dtype)
        return self._made(f"{is_rare(self).text} ? {called}({self.text}) : {self.like(usual).text}")

    def repeat_while(self, goes_on: GoesOn, step: Step, state: State) -> State:
        current = tuple(self.body.variable(one) for one in state)
        lines = self.body.lines
        lines.append("    for (;;) {")
        lines.append(f"    if (!{goes_on(*current).text}) break;")
        following = [one._made(one.text) for one in step(*current)]
        lines += [f"    {one.text} = {new.text};" for one, new in zip(current, following)]
        lines.append("    }")
        return tuple(one._made(one.text) for one in current)

    def intrinsic(self, name: str, *others: Any) -> Printed:
        if name in EXTREMES:
            return self._extreme(EXTREMES[name], self.like(others[0]))
        function = f"{name}f" if self.dtype == "float32" else name
        return self._made(f"{function}({', '.join((self.text, *(self.like(one).text for one in others)))})")

    def _extreme(self, sign: str, other: Printed) -> Printed:
        """The larger or the smaller number; of zeros the one with that sign; nan if either is."""
        one, two = self.text, other.text
        of_zeros = f"signbit({two if sign == '>' else one}) ? {one} : {two}"
        chosen = f"{one} {sign} {two} ? {one} : {two} {sign} {one} ? {two} : {of_zeros}"
        return self._made(f"{one} != {one} ? {one} : {two} != {two} ? {two} : {chosen}")

    def select(self, chosen: Any, other: Any) -> Printed:
        typed = chosen if isinstance(chosen, Printed) else other
        texts = f"{typed.like(chosen).text} : {typed.like(other).text}"
        return self._made(f"{self.text} ? {texts}", typed.dtype)

    def to_bits(self) -> Printed:
        return self._made(f"bits_of_{self.dtype}({self.text})", BITS[self.dtype])

    def from_bits(self) -> Printed:
        return self._made(f"{FLOATS[self.dtype]}_of_bits({self.text})", FLOATS[self.dtype])

    def from_integer(self) -> Printed:
        return self.converted(FLOATS[self.dtype])

    def converted(self, format_name: str) -> Printed:
        return self._made(f"({type_name(np.dtype(format_name))}){self.text}", format_name)

    def entry_of(self, table: tuple[int, ...]) -> Printed:
        entries = ", ".join(self._constant(entry) for entry in table)
        name = f"table{len(self.body.lines)}"
        kind = type_name(np.dtype(self.dtype))
        self.body.lines.append(f"    static const {kind} {name}[] = {{{entries}}};")
        return self._made(f"{name}[{self.text}]")


def _operator(sign: str, gives_truth: bool, is_reflected: bool) -> Callable[[Printed, Any], Printed]:
    def operate(own: Printed, given: Any) -> Printed:
        left, right = own, own.like(given)
        if is_reflected:
            left, right = right, left
        return own._made(f"{left.text} {sign} {right.text}", "bool" if gives_truth else "")

    return operate


for _name, _sign in {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "and": "&", "or": "|", "xor": "^",
    "lshift": "<<", "rshift": ">>",
}.items():  # fmt: skip
    setattr(Printed, f"__{_name}__", _operator(_sign, False, False))
    setattr(Printed, f"__r{_name}__", _operator(_sign, False, True))
for _name, _sign in {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items():
    setattr(Printed, f"__{_name}__", _operator(_sign, True, False))
