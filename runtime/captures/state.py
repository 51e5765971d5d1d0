"""Plain values that a function reads and changes where it reaches them: `self.nfev += 1`, `global count`.

Each call reads them at its start and writes them at its end. In a trace a `Counted` stands for such a number.
It knows what was added to it, so that a counter costs no new trace, and what it was compared with, which is
a guard. Whatever else is computed with it would be a constant in code: then the function runs uncompiled.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from ...tracer.dims import plain, python_type
from ...tracer.errors import EagerOnlyError
from ...tracer.origin import at_caller
from ...tracer.records import record
from ...tracer.trace import innermost, is_tracing

MOST_STEPS = 100
"""That a float, whose additions round, is followed through."""
NUMBERS = (int, float)
_COMPARISONS = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


@record
class _Origin:
    """The number that counted ones began as."""

    value: int | float
    questions: list[str] = field(default_factory=list)
    """What was asked of it, as Python in which `{}` stands for the number, and true for it."""


class Counted:
    """A number of a trace that began as one which each call reads; an int or a float for whoever asks."""

    __slots__ = ("_origin", "_steps", "_value")

    def __init__(self, value: Any, origin: _Origin, steps: tuple[int | float, ...]) -> None:
        self._value, self._origin, self._steps = value, origin, steps

    @classmethod
    def of(cls, value: int | float) -> Counted:
        return cls(value, _Origin(value), ())

    @property
    def text(self) -> str:
        """How it comes from what `{}` stands for."""
        return "(" * len(self._steps) + "{}" + "".join(f" + {step!r})" for step in self._steps)

    @property
    def origin(self) -> int:
        """Tells apart what numbers it may come from."""
        return id(self._origin)

    @property
    def questions(self) -> list[str]:
        return self._origin.questions

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._value)

    def _with(self, step: int | float) -> Counted:
        steps, trace = self._steps, innermost()
        if trace is not None and trace.bodies:  # which are traced once, and run as often as they do
            self._refuse()
        if all(type(one) is int for one in (self._value, step, *steps[-1:])):
            steps, last = steps[:-1], (steps or (0,))[-1] + step
        else:
            last = step
        if len(steps) >= MOST_STEPS:
            self._refuse()
        return Counted(self._value + step, self._origin, (*steps, last))

    def _refuse(self) -> Any:
        """The value, for whoever computes with it outside of a trace."""
        if not is_tracing():
            return self._value
        raise EagerOnlyError(
            f"a number that the function changes where it is reached from outside decides what is computed"
            f"{at_caller()}. Add to it and compare it alone, pass it as an argument, or "
            "return the new one."
        )

    def _compare(self, sign: str, other: Any) -> Any:
        if type(other) is Counted:
            other = other._refuse()
        other = plain(other)
        if type(other) not in (*NUMBERS, bool):
            return _COMPARISONS[sign](self._refuse(), other)
        found = _COMPARISONS[sign](self._value, other)
        test = f"{self.text} {sign} {other!r}"
        if other == other and abs(other) != float("inf"):
            self._origin.questions.append(test if found else f"not {test}")
            return found
        return _COMPARISONS[sign](self._refuse(), other)

    def __add__(self, other: Any) -> Any:
        return self._with(plain(other)) if python_type(other) in NUMBERS else self._refuse() + _plain(other)

    def __radd__(self, other: Any) -> Any:
        return self._with(plain(other)) if python_type(other) in NUMBERS else _plain(other) + self._refuse()

    def __sub__(self, other: Any) -> Any:
        return self._with(-plain(other)) if python_type(other) in NUMBERS else self._refuse() - _plain(other)

    def __lt__(self, other: Any) -> Any:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Any:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Any:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Any:
        return self._compare(">=", other)

    def __eq__(self, other: Any) -> Any:
        return self._compare("==", other)

    def __ne__(self, other: Any) -> Any:
        return self._compare("!=", other)

    def __bool__(self) -> bool:
        return bool(self._compare("!=", 0))

    def __repr__(self) -> str:
        return repr(self._value)

    def __format__(self, form: str) -> str:
        return format(self._value, form)

    def __hash__(self) -> int:
        return hash(self._refuse())

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        return self._refuse()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._refuse(), name)


def _plain(value: Any) -> Any:
    return value._refuse() if type(value) is Counted else value


def _delegated(name: str) -> Callable[..., Any]:
    def method(self: Counted, *others: Any) -> Any:
        return getattr(self._refuse(), name)(*map(_plain, others))

    method.__name__ = name
    return method


for _name in [
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "floordiv",
    "rfloordiv",
    "mod",
    "rmod",
    "pow",
    "rpow",
    "divmod",
    "rdivmod",
    "neg",
    "pos",
    "abs",
    "and",
    "rand",
    "or",
    "ror",
    "xor",
    "rxor",
    "lshift",
    "rlshift",
    "rshift",
    "rrshift",
    "invert",
    "int",
    "float",
    "index",
    "round",
    "trunc",
    "floor",
    "ceil",
    "complex",
]:
    setattr(Counted, f"__{_name}__", _delegated(f"__{_name}__"))


class Updates:
    """What a path does to the numbers that it reaches.

    Args:
        numbers: for each how Python writes the way from what holds it; what stood for it; what became of it.
        first: the position of the first of them in what is read: of each its owner, then its value.
    """

    def __init__(self, numbers: Sequence[tuple[str, Any, Any]], first: int) -> None:
        writes: list[str] = []
        questions: dict[str, None] = {}
        names: dict[str, Any] = {}
        values = {
            before.origin: f"values[{first + 2 * index + 1}]"
            for index, (_, before, _) in enumerate(numbers)
            if type(before) is Counted
        }
        for index, (suffix, before, after) in enumerate(numbers):
            owner, value = f"values[{first + 2 * index}]", f"values[{first + 2 * index + 1}]"
            if type(before) is Counted:
                questions.update({one.replace("{}", value): None for one in before.questions})
            if after is before:
                continue
            if type(after) is Counted:
                text = after.text.replace("{}", values[after.origin])
            else:
                text = f"c{index}"
                names[text] = plain(after)
            writes.append(f"    {owner}{suffix} = {text}")
        held = "".join(f" and {one}" for one in questions)
        tests = ["def holds(values):", f"    return True{held}"]
        text = "\n".join([*tests, "def write(values):", *writes, "    return None"])
        exec(compile(text, "<numbers that a compiled function changes>", "exec"), names)
        self.holds: Callable[[tuple[Any, ...]], bool] = names["holds"]
        self.write: Callable[[tuple[Any, ...]], None] = names["write"]
