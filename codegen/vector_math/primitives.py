"""What elementary functions are made of besides arithmetic: selection, bits, rounding, polynomials.

Each works on NumPy scalars and arrays, and on symbols, for which `staged` writes LLVM instructions.
"""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pullback.tracer.ops.elementwise import power_value

from ...tracer.records import record

Number = Any  # a NumPy float, an array of floats, or a Symbol
Bits = Any  # the same with unsigned integers
Condition = Any  # the same with truth values
State = tuple[Number, ...]
GoesOn = Callable[..., Condition]
Step = Callable[..., State]

FUNCTIONS: dict[str, Callable[..., Number]] = {}
OF_INTEGERS: dict[str, Callable[..., Any]] = {
    "floor_divide": np.floor_divide, "maximum": np.maximum, "minimum": np.minimum, "power": power_value,
    "remainder": np.remainder,
}  # fmt: skip
"""Functions that stay among integers: in floating point, large ones would be rounded."""


class Symbol:
    """A number that is not known yet, which has arithmetic and what follows; see `staged.Staged`.

    No `ABC`: every primitive asks for it, and `isinstance` takes five times as long with one.
    """

    @property
    @abstractmethod
    def format_name(self) -> str:
        """Which format this float has: float32 or float64."""

    @abstractmethod
    def like(self, number: Any) -> Symbol:
        """`number` as a symbol of the own type."""

    @abstractmethod
    def select(self, chosen: Any, other: Any) -> Symbol:
        """`chosen` where this truth value holds, else `other`."""

    @abstractmethod
    def to_bits(self) -> Symbol:
        """The bits of this float."""

    @abstractmethod
    def from_bits(self) -> Symbol:
        """The float with these bits."""

    @abstractmethod
    def intrinsic(self, name: str, *others: Any) -> Symbol:
        """LLVM's intrinsic `name`, whose operands and result have one type."""

    @abstractmethod
    def unfused_product(self, other: Any) -> Symbol:
        """The rounded product, which no addition may absorb."""

    @abstractmethod
    def entry_of(self, table: tuple[int, ...]) -> Symbol:
        """The entry of a table of integers at this one."""

    @abstractmethod
    def from_integer(self) -> Symbol:
        """This unsigned integer as a float of the same size."""

    @abstractmethod
    def converted(self, format_name: str) -> Symbol:
        """This float in another format."""

    @abstractmethod
    def replace_rare(
        self, usual: Any, is_rare: Callable[[Number], Condition], slow: Callable[[Number], Number]
    ) -> Symbol:
        """slow(self) where is_rare(self), and `usual` elsewhere; see `replace_rare`."""

    @abstractmethod
    def repeat_while(self, goes_on: GoesOn, step: Step, state: State) -> State:
        """`state` after as many steps as it goes on; see `repeat_while`."""


def elementary(function: Callable[..., Number]) -> Callable[..., Number]:
    """Declare a function for generated code; uncompiled, it takes floats, NumPy scalars and arrays."""
    of_integers = OF_INTEGERS.get(function.__name__)

    @functools.wraps(function)
    def call(*arguments: Number) -> Number:
        if any(isinstance(argument, Symbol) for argument in arguments):
            return function(*arguments)
        if of_integers and all(isinstance(x, int | np.integer | np.bool_) for x in arguments):
            with np.errstate(all="ignore"):
                return of_integers(*arguments)
        numbers = [x if isinstance(x, (np.floating, np.ndarray)) else np.float64(x) for x in arguments]
        with np.errstate(all="ignore"):
            return function(*numbers)

    FUNCTIONS[function.__name__] = call
    return call


@record(frozen=True)
class Format:
    """A binary floating-point format (IEEE 754-2019, section 3.4)."""

    name: str
    float_type: type
    bits_type: type
    fraction_bits: int
    bias: int

    @property
    def rounder(self) -> float:
        """Adding 1.5 * 2**fraction_bits leaves the nearest integer of a number in the lowest bits."""
        return 1.5 * 2.0**self.fraction_bits

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    def bits_of(self, x: float) -> int:
        return int(self.float_type(x).view(self.bits_type))


FLOAT32 = Format("float32", np.float32, np.uint32, fraction_bits=23, bias=127)
FLOAT64 = Format("float64", np.float64, np.uint64, fraction_bits=52, bias=1023)
_FORMATS = {"float32": FLOAT32, "float64": FLOAT64}
_BY_CHARACTER = {np.dtype(name).char: found for name, found in _FORMATS.items()}


def format_of(x: Number) -> Format:
    """The format of a number: the degree of a polynomial and the parts of a constant depend on it."""
    return _FORMATS[x.format_name] if isinstance(x, Symbol) else _BY_CHARACTER[x.dtype.char]


def select(condition: Condition, chosen: Number, other: Number) -> Number:
    """`chosen` where the condition holds, else `other`; both are computed."""
    if isinstance(condition, Symbol):
        return condition.select(chosen, other)
    if isinstance(condition, np.bool_) and type(chosen) is type(other) and isinstance(chosen, np.generic):
        return chosen if condition else other
    either: Any = np.where(condition, chosen, other)
    return either[()]  # a scalar, unless it is an array


def typed(number: float, like: Number) -> Number:
    """A constant of the type of `like`, where no other operand gives it one."""
    return like.like(number) if isinstance(like, Symbol) else like.dtype.type(number)


def to_bits(x: Number) -> Bits:
    """The bits of a number as an unsigned integer."""
    return x.to_bits() if isinstance(x, Symbol) else x.view(format_of(x).bits_type)


def from_bits(bits: Bits) -> Number:
    """The number with these bits."""
    return bits.from_bits() if isinstance(bits, Symbol) else bits.view(f"float{8 * bits.itemsize}")


def _intrinsic(name: str, compute: Callable[..., Any]) -> Callable[..., Number]:
    """A function that is one instruction of most processors: LLVM's name for it, and NumPy's function."""

    def call(x: Number, *others: Number) -> Number:
        for operand in (x, *others):
            if isinstance(operand, Symbol):
                return operand.like(x).intrinsic(name, *others)
        return compute(x, *others)

    return call


def _multiply_add(a: Number, b: Number, c: Number) -> Number:
    """a * b + c for NumPy, to twice the precision and then rounded.

    The error of the product is found by splitting the factors (Dekker 1971), that of the sum by Knuth's
    two-sum.
    """
    if not any(isinstance(x, np.ndarray) for x in (a, b, c)):
        is_double = any(isinstance(x, np.float64) for x in (a, b, c))
        a, b, c = float(a), float(b), float(c)  # in a third of the time
        if not is_double:
            return np.float32(a * b + c)
        exact, total = _exact_multiply_add(a, b, c)
        return np.float64(exact if math.isfinite(exact) else total)
    if np.result_type(a, b, c) == np.float32:
        return (np.float64(a) * np.float64(b) + c).astype(np.float32)
    exact, total = _exact_multiply_add(a, b, c)
    return select(np.isfinite(exact), exact, total)


def _exact_multiply_add(a: Number, b: Number, c: Number) -> tuple[Number, Number]:
    """a * b + c, and what stands for it where its factors can't be split: the same, rounded twice."""
    splitter = 2.0**27 + 1.0
    product = a * b
    a_high, b_high = (x * splitter - (x * splitter - x) for x in (a, b))
    a_low, b_low = a - a_high, b - b_high
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    total = product + c
    other = total - product
    rest = (product - (total - other)) + (c - other)
    return total + (rest + error), total


hardware_sqrt = _intrinsic("sqrt", np.sqrt)
hardware_floor = _intrinsic("floor", np.floor)
hardware_ceil = _intrinsic("ceil", np.ceil)
hardware_trunc = _intrinsic("trunc", np.trunc)
hardware_rint = _intrinsic("rint", np.rint)
hardware_maximum = _intrinsic("maximum", np.maximum)
hardware_minimum = _intrinsic("minimum", np.minimum)
copysign = _intrinsic("copysign", np.copysign)
fused_multiply_add = _intrinsic("fma", _multiply_add)


def entry_of(table: tuple[int, ...], index: Bits) -> Bits:
    """The entry at `index`, which must be one, of a table of unsigned integers of the index's type."""
    return index.entry_of(table) if isinstance(index, Symbol) else np.array(table, index.dtype)[index]


def from_integer(bits: Bits) -> Number:
    """The unsigned integer as a float of the same size."""
    return bits.from_integer() if isinstance(bits, Symbol) else bits.astype(f"float{8 * bits.itemsize}")


def to_float64(x: Number) -> Number:
    """x as a float64."""
    return x.converted("float64") if isinstance(x, Symbol) else x.astype(np.float64)


def to_format_of(x: Number, y: Number) -> Number:
    """x as a float of y's format."""
    return x.converted(format_of(y).name) if isinstance(x, Symbol) else x.astype(y.dtype)


def replace_rare(
    usual: Number, x: Number, is_rare: Callable[[Number], Condition], slow: Callable[[Number], Number]
) -> Number:
    """slow(x) where is_rare(x), and `usual` elsewhere.

    Compiled, this costs a vector one comparison and a jump past `slow`, which takes one number at a time. So
    it is for arguments that programs hardly have, and that all others must not wait for.
    """
    if isinstance(x, Symbol):
        return x.replace_rare(usual, is_rare, slow)
    rare = is_rare(x)
    if not np.any(rare):
        return usual
    if np.ndim(x) == 0:
        return slow(x)
    result = np.array(usual)
    result[rare] = slow(x[rare])
    return result


def repeat_while(goes_on: GoesOn, step: Step, *state: Number) -> State:
    """The state after as many steps, `state = step(*state)`, as `goes_on(*state)` holds; for nan it must not.

    Of numbers side by side each takes as many steps as it needs, a vector as long as any of them.
    """
    for one in state:
        if isinstance(one, Symbol):
            return one.repeat_while(goes_on, step, tuple(map(one.like, state)))
    open_ones = goes_on(*state)
    while np.any(open_ones):
        state = tuple(select(open_ones, new, old) for new, old in zip(step(*state), state))
        open_ones = goes_on(*state)
    return state


def exact_product(a: Number, b: Number) -> tuple[Number, Number]:
    """The rounded product and its rounding error."""
    product: Number = a.unfused_product(b) if isinstance(a, Symbol) else a * b
    return product, fused_multiply_add(a, b, -product)


def polynomial(x: Number, coefficients: Sequence[float]) -> Number:
    """The sum of coefficients[k] * x**k: four terms at a time by Estrin's scheme, and those by Horner's.

    Estrin's alone has the shortest chain of dependent operations, and takes a multiplication for each power.
    """
    if isinstance(x, np.float64):
        return np.float64(polynomial(float(x), coefficients))  # Python's floats take a third of the time
    square = x * x
    pairs: list[Any] = [low + high * x for low, high in zip(coefficients[::2], coefficients[1::2])]
    pairs += coefficients[len(pairs) * 2 :]
    fours = [low + high * square for low, high in zip(pairs[::2], pairs[1::2])] + pairs[len(pairs) // 2 * 2 :]
    total = fours.pop()
    if fours:
        fourth_power = square * square
        for four in reversed(fours):
            total = four + total * fourth_power
    return total


def polynomial_parts(x: Number, coefficients: Sequence[float]) -> tuple[Number, Number]:
    """The polynomial whose first coefficient is the sum of the first two, and its rounding error."""
    first, first_low, *others = coefficients
    rest = x * polynomial(x, others)
    y = first + rest
    return y, ((first - y) + rest) + first_low


def split(value: Fraction, number_format: Format, *bits: int) -> list[float]:
    """Floats that add up to `value`: the k-th has at most `bits[k]` bits, a last one is the rest.

    A product of a short part with a small integer is exact.
    """
    parts = []
    for size in bits:
        exponent = value.numerator.bit_length() - value.denominator.bit_length() - size  # or one more
        while abs(value) * Fraction(2) ** -exponent >= 2**size:
            exponent += 1
        part = Fraction(int(value * Fraction(2) ** -exponent)) * Fraction(2) ** exponent
        parts.append(float(part))
        value -= part
    return [*parts, float(number_format.float_type(float(value)))]


def by_format(make: Callable[[Format], Any]) -> Mapping[str, Any]:
    """`make(format)` for each format, by its name."""
    return {name: make(number_format) for name, number_format in _FORMATS.items()}
