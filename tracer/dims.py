"""Numbers that follow from the sizes of arrays, and how: `Dim` for whole ones, `Measure` for others.

A trace gives the dimensions of its inputs `Dim`s, integers that know where they come from. Shape rules hand
them on, and arithmetic keeps account of what is done with them. What Python makes of them where nobody sees
it (`len(x)`, `math.lgamma(n)`, `0.5 * n`) has an origin of its own: generated code is given the number.

They are numbers like others wherever only the value matters: equality and hashes are those of int and float.
A formula and a value belong together, so code that is written by the formula computes the value.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, Union

import numpy as np

from .records import record

EXTENTS = ("n", "m", "p", "q", "r", "s", "t", "u")
"""What generated code calls sizes."""
LARGEST_PLAIN = 8
"""Counts up to which are numbers like others if they have no formula, as those of small vectors."""
LARGEST_CUT = 16
"""Elements that a part may leave out of a dimension for its extent to be that of the whole less so many."""
DEEPEST = 20
"""Operations inside one another in a formula; what takes more has an origin of its own."""


@record(eq=False, slots=True)
class Source:
    """Where a number comes from: a dimension of an array, or Python code that nobody has seen."""

    label: str
    """The same in each trace of a function."""
    equal: Formula | None = None
    """What an operator demands it to be equal to: the older one of two."""
    letter: str = ""
    """What generated code calls it."""
    serial: int = field(default_factory=itertools.count().__next__)

    @property
    def depth(self) -> int:
        return 0


@record(frozen=True, slots=True)
class Computed:
    """An operator's result for numbers of which one at least has a formula."""

    function: str
    operands: tuple[Formula | int | float, ...]
    depth: int = field(compare=False)
    letter: str = field(default="", compare=False)
    """The user's variable that holds it, if it is known."""


Formula = Union[Source, Computed]  # noqa: UP007  of forward references
_FORMULAS = (Source, Computed)
OF_FLOATS = (
    "sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
)  # fmt: skip
"""Functions of `math` that code has under the same names."""
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "negative": operator.neg,
    "modulo": operator.mod,
    "maximum": max,
    "minimum": min,
    "power": operator.pow,
    "float": float,
    "round": round,
    **{name: getattr(math, name) for name in (*OF_FLOATS, "ceil", "floor", "trunc")},
}
OF_INTEGERS = frozenset(("floor_divide", "modulo", "maximum", "minimum"))
"""Functions that code computes of whole numbers alone."""
ROUNDING = frozenset(("ceil", "floor", "round", "trunc"))
"""Functions of floats that give whole numbers: code, which may round floats otherwise, is given these."""
LARGEST_EXACT = 2**53
"""Up to here whole numbers are floats too; code, which computes in 64 bits, is given larger ones."""
NEUTRAL = {"add": 0, "subtract": 0, "multiply": 1, "divide": 1}
"""The second operand that changes nothing."""


class _Sized:
    """What a `Dim` and a `Measure` have in common: arithmetic that keeps account of what is done."""

    __slots__ = ()
    formula: Formula

    def __add__(self, other: Any) -> Any:
        return _combined("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _combined("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _combined("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _combined("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return _combined("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _combined("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _combined("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _combined("divide", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _combined("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _combined("floor_divide", other, self)

    def __mod__(self, other: Any) -> Any:
        return _combined("modulo", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _combined("modulo", other, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        if type(self) is Dim and modulo is None and type(other) is int and 0 < other <= LARGEST_PLAIN:
            return functools.reduce(operator.mul, [self] * other)
        return _power(self, other, modulo)

    def __rpow__(self, other: Any, modulo: Any = None) -> Any:
        return _power(other, self, modulo)

    def __neg__(self) -> Any:
        return apply("negative", self)

    def __abs__(self) -> Any:
        return self if self >= 0 else -self  # type: ignore[operator]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Beside arrays it is a Python number, which leaves their dtype alone."""
        return getattr(ufunc, method)(*map(plain, inputs), **options)

    def __reduce__(self) -> Any:
        return type(plain(self)), (plain(self),)


class Dim(_Sized, int):
    """A whole number that follows from sizes.

    Example:
        >>> n = Dim(5, Source("n"))
        >>> (n - 1) * 2, ((n - 1) * 2).formula == ((n - 1) * 2).formula
        (8, True)
    """

    def __new__(cls, value: int, formula: Formula) -> Dim:
        made = int.__new__(cls, value)
        made.formula = formula
        return made

    def __add__(self, other: Any) -> Any:
        return _moved(self, other) if type(other) is int else _combined("add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return _moved(self, -other) if type(other) is int else _combined("subtract", self, other)


class Measure(_Sized, float):
    """Another number that follows from sizes, as 1 / n."""

    __slots__ = ("formula",)

    def __new__(cls, value: float, formula: Formula) -> Measure:
        made = float.__new__(cls, value)
        made.formula = formula
        return made

    def __round__(self, digits: Any = None) -> Any:
        return apply("round", self) if digits is None else round(plain(self), digits)

    def __floor__(self) -> Any:
        return apply("floor", self)

    def __ceil__(self) -> Any:
        return apply("ceil", self)

    def __trunc__(self) -> Any:
        return apply("trunc", self)


def plain(value: Any) -> Any:
    """The number alone; all else as it is."""
    if isinstance(value, Dim):
        return int(value)
    return float(value) if isinstance(value, Measure) else value


def python_type(value: Any) -> type:
    """The type that a value has where the function runs as it is: of sizes it is Python's."""
    if isinstance(value, _Sized):
        return int if isinstance(value, Dim) else float
    return type(value)


def canonical(formula: Formula) -> Formula:
    """The formula in terms of what its sources are equal to."""
    if isinstance(formula, Source):
        return formula if formula.equal is None else canonical(formula.equal)
    operands = tuple([canonical(one) if isinstance(one, _FORMULAS) else one for one in formula.operands])
    return Computed(formula.function, operands, formula.depth, formula.letter)


def _label(source: Source) -> str:
    return source.label


def spelled(formula: Formula | int | float, name: Callable[[Source], str] = _label) -> str:
    """The formula as text: that of a size of the same place in another trace of the function is the same."""
    if isinstance(formula, Source):
        return name(formula) if formula.equal is None else spelled(formula.equal, name)
    if isinstance(formula, Computed):
        return f"{formula.function}({', '.join([spelled(one, name) for one in formula.operands])})"
    return repr(formula)


def sources_of(formula: Formula | int | float) -> Iterator[Source]:
    if isinstance(formula, Source):
        yield formula
    elif isinstance(formula, Computed):
        for one in formula.operands:
            yield from sources_of(one)


def equated(first: int, second: int) -> int:
    """One of two sizes that an operator demands to be equal; from here on they have one name."""
    if not isinstance(first, Dim) or not isinstance(second, Dim):
        return second if isinstance(second, Dim) else first
    if first.formula is not second.formula:
        one, other = canonical(first.formula), canonical(second.formula)
        if one != other:
            _note_equal(*sorted((one, other), key=_age))
    return first


def _note_equal(older: Formula, younger: Formula) -> None:
    if isinstance(younger, Source) and younger not in sources_of(older):
        younger.equal = older


def _age(formula: Formula) -> float:
    """A source that is computed otherwise is the younger one."""
    return formula.serial if isinstance(formula, Source) else -1


def equated_shapes(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """The same of shapes that have to be equal, and are."""
    return first if first is second else tuple(map(equated, first, second))


def formula_of(value: Any) -> Formula | None:
    return value.formula if isinstance(value, _Sized) else None


def formulas_in(value: Any, of_size: Callable[[Formula], Any]) -> Any:
    """What sizes are, by their formulas, in a number or in nested tuples of such; None for all else."""
    if isinstance(value, tuple):
        return tuple([formulas_in(one, of_size) for one in value])
    formula = formula_of(value)
    return None if formula is None else of_size(formula)


def with_formula(value: Any, formula: Formula | None) -> Any:
    """A number of Python's that a formula gives; 0, infinity, nan and complex ones say more without one."""
    if formula is None or isinstance(value, bool | complex) or not value or not math.isfinite(value):
        return value
    return Dim(value, formula) if isinstance(value, int) else Measure(value, formula)


def result_of(function: str, operands: Sequence[Any], result: Any) -> Any:
    """What a function gives for numbers, with a formula if one of them has one."""
    unchanged = _unchanged(function, operands)
    if unchanged is not None:
        return with_formula(result, formula_of(unchanged))
    if function == "multiply":
        turned = [one for one in operands if formula_of(one) is not None or one != -1]
        if len(turned) == 1:
            return result_of("negative", turned, result)
    formulas = tuple([formula_of(one) or plain(one) for one in operands])
    rest = _scaled(*formulas) if function == "multiply" else None
    if function == "negative":
        rest = _without_sign(formulas[0])
    if rest is not None:
        return with_formula(plain(result), rest)
    inner = [one.depth for one in formulas if isinstance(one, _FORMULAS)]
    if not inner:
        return result
    is_unknown = function in OF_INTEGERS and any(type(plain(one)) is not int for one in operands)
    is_large = type(result) is int and abs(result) > LARGEST_EXACT
    if is_unknown or is_large or max(inner) == DEEPEST:
        return lost(result)
    return with_formula(plain(result), Computed(function, formulas, 1 + max(inner)))


def called(name: str, number: Any) -> Any:
    """A number with the name of the user's variable that holds it, if it follows from sizes and has none."""
    formula = formula_of(number)
    if not isinstance(formula, Computed) or formula.letter:
        return number
    return with_formula(number, replace(formula, letter=name))


def lost(value: Any, label: str = "number") -> Any:
    """A number that follows from sizes nobody knows how."""
    return with_formula(plain(value), Source(label))


def give_letters(shapes: Iterable[tuple[int, ...]], taken: Iterable[str]) -> None:
    """Say what code calls the sizes of a function's inputs, in their order; equal ones the same."""
    letters = iter([one for one in EXTENTS if one not in {*taken}])
    for extent in (extent for shape in shapes for extent in shape):
        formula = canonical(extent.formula) if isinstance(extent, Dim) else None
        if isinstance(formula, Source) and not formula.letter:
            formula.letter = next(letters, "")


def part_of(whole: int, start: int, stop: int, step: int) -> int:
    """The extent of a part of a dimension: all of it, what its ends say, or so many as Python has found."""
    if stop is whole and not start and step == 1:
        return whole
    extent = len(range(int(start), int(stop), step))
    if not isinstance(whole, Dim) or extent < 2:
        return extent
    found = stop - start if step == 1 else extent
    return found if isinstance(found, Dim) else Dim(extent, Source("part"))


class SizedRange:
    """As a `range`, whose numbers may follow from sizes and keep their formulas."""

    __slots__ = ("_plain", "start", "step", "stop")

    def __init__(self, start: int, stop: int, step: int = 1) -> None:
        self.start, self.stop, self.step = start, stop, step
        self._plain = range(int(start), int(stop), step)

    @classmethod
    def of(cls, start: int, extent: int, step: int) -> SizedRange:
        """So many numbers."""
        return cls(start, start + extent * step, step)

    def __len__(self) -> int:
        return len(self._plain)

    def __getitem__(self, place: int) -> int:
        return self._plain[place]

    def __contains__(self, number: int) -> bool:
        return number in self._plain

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SizedRange) and self._plain == other._plain

    def __hash__(self) -> int:
        return hash(self._plain)

    def index(self, number: int) -> int:
        """The place of a number that it contains."""
        return self._plain.index(number)

    def at(self, places: SizedRange) -> SizedRange:
        """The numbers at these places."""
        start, stop = (self.start + place * self.step for place in (places.start, places.stop))
        return SizedRange(start, stop, self.step * places.step)


def named(shape: tuple[int, ...], label: str) -> tuple[int, ...]:
    """The shape with a `Dim` of its own for each extent; that one is 1 is part of a program's structure."""
    return tuple(
        extent if extent == 1 or isinstance(extent, Dim) else Dim(extent, Source(f"{label}.shape[{axis}]"))
        for axis, extent in enumerate(shape)
    )


def apply(function: str, *operands: Any) -> Any:
    """A function of `FUNCTIONS`, of numbers of which any may follow from sizes, in whatever order."""
    result = FUNCTIONS[function](*map(plain, operands))
    first, second = operands if len(operands) == 2 else (None, None)
    if function in ("add", "subtract") and isinstance(first, Dim) and type(second) is int:
        return _moved(first, second if function == "add" else -second)
    if function == "add" and isinstance(second, Dim) and type(first) is int:
        return _moved(second, first)
    if isinstance(first, Dim) and isinstance(second, Dim):
        if function in ("divide", "floor_divide") and canonical(first.formula) == canonical(second.formula):
            return result
        if function in ("add", "subtract"):
            found = _summed(first.formula, second.formula, 1 if function == "add" else -1)
            if found is not None:
                return found if isinstance(found, int) else with_formula(result, found)
    return result_of(function, operands, result)


def _unchanged(function: str, operands: Sequence[Any]) -> Any:
    """The operand to which another adds nothing; None if each counts."""
    if function == "float" or (function in ROUNDING and type(plain(operands[0])) is int):
        return operands[0]
    neutral = NEUTRAL.get(function)
    if neutral is None or len(operands) != 2:
        return None
    first, second = operands
    if formula_of(second) is None and second == neutral:
        return first
    is_symmetric = function in ("add", "multiply")
    return second if is_symmetric and formula_of(first) is None and first == neutral else None


def _scaled(first: Any, second: Any) -> Formula | None:
    """Of a quotient or product with a number times a power of two, `2 * (1 / n)`: it loses no digit."""
    factor, formula = (second, first) if isinstance(first, _FORMULAS) else (first, second)
    if not isinstance(formula, Computed) or formula.letter or isinstance(factor, _FORMULAS):
        return None
    number, of = formula.operands[0], formula.operands[-1]
    is_exact = not isinstance(number, _FORMULAS) and math.frexp(abs(factor))[0] == 0.5
    if not is_exact or formula.function not in ("divide", "multiply"):
        return None
    return Computed(formula.function, (number * factor, of), formula.depth)


def _without_sign(formula: Any) -> Formula | None:
    """What a negative of this has been taken from."""
    is_negative = isinstance(formula, Computed) and formula.function == "negative"
    inner = formula.operands[0] if is_negative else None
    return inner if isinstance(inner, _FORMULAS) else None


def _moved(size: Dim, difference: int) -> int:
    """A size and some more or less, in whose formula what was added before is added up."""
    whole, before = base_of(size.formula)
    return with_formula(int(size) + difference, _plus(whole, difference + before))


def _plus(whole: Formula, difference: int) -> Formula:
    if not difference:
        return whole
    function = "add" if difference > 0 else "subtract"
    return Computed(function, (whole, abs(difference)), whole.depth + 1)


def _summed(first: Formula, second: Formula, sign: int) -> Formula | int | None:
    """A sum or difference in which sizes cancel or are taken several times; None of all else.

    `3 * n - 2 * n` is `n`, `(n + m) - n` is `m`, and `(n + 2) - n` the number 2.
    """
    (one, more), (other, less) = terms_of(first), terms_of(second)
    total = _added(one, other, sign)
    if len(total) == len(one) + len(other):
        return None
    kept = {size: times for size, times in total.items() if times}
    more += sign * less
    if not kept:
        return more
    (size, times), *rest = sorted(kept.items(), key=lambda item: item[1] < 0)
    if times < 1:
        return None
    written = _times(size, times)
    for size, times in rest:
        part = _times(size, abs(times))
        depth = 1 + max(written.depth, part.depth)
        written = Computed("add" if times > 0 else "subtract", (written, part), depth)
    return _plus(written, more)


def _added(one: dict[Formula, int], other: dict[Formula, int], sign: int) -> dict[Formula, int]:
    return {size: one.get(size, 0) + sign * other.get(size, 0) for size in (*one, *other)}


def _times(size: Formula, times: int) -> Formula:
    return size if times == 1 else Computed("multiply", (times, size), size.depth + 1)


def terms_of(formula: Formula) -> tuple[dict[Formula, int], int]:
    """The sizes in `3 * n + m - 1`, how many times each is taken, and how many elements it then has more."""
    if isinstance(formula, Computed):
        first, second = formula.operands if len(formula.operands) == 2 else (None, None)
        if formula.function in ("add", "subtract"):
            (one, more), (other, less) = (
                terms_of(part) if isinstance(part, _FORMULAS) else ({}, part) for part in formula.operands
            )
            if isinstance(more, int) and isinstance(less, int):
                sign = 1 if formula.function == "add" else -1
                return _added(one, other, sign), more + sign * less
        if formula.function == "multiply":
            size, times = (first, second) if isinstance(first, _FORMULAS) else (second, first)
            if isinstance(times, int) and isinstance(size, _FORMULAS):
                inner, more = terms_of(size)
                return {size: times * count for size, count in inner.items()}, times * more
    return {formula: 1}, 0


def base_of(formula: Formula) -> tuple[Formula, int]:
    """The size that another is some elements more than, and how many."""
    if isinstance(formula, Computed) and formula.function in ("add", "subtract"):
        whole, difference = formula.operands
        if isinstance(whole, _FORMULAS) and isinstance(difference, int):
            return whole, difference if formula.function == "add" else -difference
    return formula, 0


def known(count: Any) -> Any:
    """How many elements are combined: where nobody knows why so many, an origin of its own."""
    return count if isinstance(count, _Sized) or count <= LARGEST_PLAIN else lost(count, "count")


def share(count: Any, of: float = 1.0) -> Any:
    """1 / count, as a mean needs it."""
    return apply("divide", of, known(count))


def _power(base: Any, exponent: Any, modulo: Any) -> Any:
    """A power; of whole numbers, which may be larger than code computes with, the number alone."""
    if python_type(base) is python_type(exponent) is int:
        return pow(plain(base), plain(exponent), modulo)
    return NotImplemented if modulo is not None else _combined("power", base, exponent)


def _combined(function: str, *operands: Any) -> Any:
    first, second = operands
    if _WHOLE.issuperset((type(first), type(second))):
        found = _of_sizes(function, first, second, id(formula_of(first)), id(formula_of(second)))
        return apply(function, first, second) if found is None else found
    if any(python_type(one) not in (int, float, bool) for one in operands):  # NumPy's compute on their own
        return NotImplemented
    from .lost_numbers import traced_operand  # which makes sizes

    return apply(function, *map(traced_operand, operands))


_WHOLE = frozenset((int, Dim))


@functools.lru_cache(maxsize=1024)
def _of_sizes(function: str, first: int, second: int, *formulas: int) -> int | float | None:
    """What sizes give, which the steps of a loop ask again and again; None if it has an origin of its own.

    `formulas` are the ids of the sizes' formulas, which the sizes keep: of equal sizes they may differ.
    """
    found = apply(function, first, second)
    formula = formula_of(found)
    is_known = formula is None or isinstance(formula, Computed)
    given = (one.formula for one in (first, second) if isinstance(one, Dim))
    return found if is_known or any(formula in terms_of(one)[0] for one in given) else None
