"""Numbers in a trace that may follow from sizes, where Python does not say how: `0.5 * len(x)`.

Once the traced function has asked for a size, a number that it hands to an operator, and that no line of its
code spells, may have been computed from it. Generated code is given such numbers as arguments. That is right
for any number; one that is written into the code is faster, and compiles anew where it differs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextvars import ContextVar
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from . import dims
from .dims import Formula, Source, called, formula_of, with_formula
from .number_origins import formula_in, variable_in
from .origin import frames_within, is_own, user_frame

current: ContextVar[LostNumbers | None] = ContextVar("lost_numbers", default=None)


class LostNumbers:
    """The numbers of one trace, told apart by where they entered it, not by what they are."""

    def __init__(self) -> None:
        self.sizes_are_asked = False
        self.root: CodeType | None = None
        """What calls the function that is traced."""
        self._by_object: dict[int, tuple[float, Formula]] = {}
        self._by_place: dict[Any, Source] = {}
        self._lost: dict[Any, tuple[list[CodeType], Source]] = {}
        """The same by identities of all code that runs, pullback's too, with the code, which keeps these."""
        self._spelled: dict[tuple[float, int], tuple[CodeType, bool]] = {}
        """Whether code spells a number, by the number and the identity of the code, with this."""

    def named(self, number: Any) -> Any:
        """The number, with an origin of its own if it may follow from sizes."""
        if isinstance(number, bool):
            return number
        if formula_of(number) is not None:
            frame = user_frame()
            return number if frame is None else called(variable_in(frame, number), number)
        known = self._by_object.get(id(number))
        if known is not None:
            return with_formula(number, known[1])
        frames = list(frames_within(self.root))
        users = [one for one in frames if not is_own(one.f_code)]
        if any(id(number) in _constants(user.f_code) for user in users):
            return number
        place = (number, *[(id(one.f_code), one.f_lasti) for one in frames])
        if (before := self._lost.get(place)) is not None:
            return self._noted(number, before[1])
        formula = formula_in(users[0], number) if users else None
        if formula is not None:
            return self._noted(number, formula)
        if any(self._is_spelled(number, one) for one in frames):
            return number
        stack = tuple([(one.f_code, one.f_lasti) for one in users])
        label = "".join(f"{code.co_name} {_position(code, instruction)} " for code, instruction in stack)
        name = variable_in(users[0], number) if users else ""
        source = self._by_place.setdefault((stack, number), Source(label, letter=name))
        self._lost[place] = [one.f_code for one in frames], source
        return self._noted(number, source)

    def _is_spelled(self, number: float, frame: FrameType) -> bool:
        key = number, id(frame.f_code)
        known = self._spelled.get(key)
        if known is None:
            known = self._spelled[key] = frame.f_code, _is_spelled(number, frame)
        return known[1]

    def _noted(self, number: Any, formula: Formula) -> Any:
        if isinstance(number, float):  # a new object for each that is computed
            self._by_object[id(number)] = number, formula
        return with_formula(number, formula)


def note_size_asked(depth: int = 2) -> None:
    """Note that the function which is traced has asked for a size, if it was the user's code that did.

    Args:
        depth: how many calls the code that asked is away.
    """
    numbers = current.get()
    if numbers is not None and not numbers.sizes_are_asked:
        numbers.sizes_are_asked = not is_own(sys._getframe(depth).f_code)


def sizes_are_asked() -> None:
    """Note that the function which is traced has asked for a size."""
    if (numbers := current.get()) is not None:
        numbers.sizes_are_asked = True


def traced_number(number: Any) -> Any:
    """A number of Python's as the graph takes it."""
    numbers = current.get()
    return numbers.named(number) if numbers is not None and numbers.sizes_are_asked else number


def traced_operand(number: Any) -> Any:
    """What the traced function's code computes with beside a size; a float may follow from sizes too."""
    numbers = current.get()
    if not isinstance(number, float) or numbers is None or not numbers.sizes_are_asked:
        return number
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == dims.__file__:
        frame = frame.f_back
    return number if is_own(frame.f_code) else numbers.named(number)


def traced_size(number: Any) -> Any:
    """A whole number of the traced function, with its formula if the function's code shows one."""
    numbers = current.get()
    if type(number) is not int or numbers is None or not numbers.sizes_are_asked:
        return number
    frame = user_frame()
    return number if frame is None else with_formula(number, formula_in(frame, number))


def _is_spelled(number: float, frame: FrameType) -> bool:
    """Whether the code that runs there has the number as a constant, or names a global variable with it."""
    constants, names = _spelled(frame.f_code)
    if abs(number) in constants:
        return True
    variables: Iterator[Any] = map(frame.f_globals.get, names)
    return any(_is_number(found) and abs(found) == abs(number) for found in variables)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _position(code: CodeType, instruction: int) -> str:
    """Where in the source an instruction is from; its number may change when the interpreter adapts it."""
    line, _, column, _ = _positions(code)[instruction // 2]
    return f"{(line or 0) - code.co_firstlineno}:{column}"


@lru_cache(maxsize=4096)
def _positions(code: CodeType) -> tuple[tuple[int | None, ...], ...]:
    return tuple(code.co_positions())


@lru_cache(maxsize=4096)
def _constants(code: CodeType) -> frozenset[int]:
    """The identities of the constants of code, which keeps them."""
    return frozenset(map(id, code.co_consts))


@lru_cache(maxsize=4096)
def _spelled(code: CodeType) -> tuple[frozenset[float], tuple[str, ...]]:
    """The sizes of the numbers in code, and the names that it looks up."""
    found: set[float] = set()
    pending = [*code.co_consts]
    while pending:
        one = pending.pop()
        if isinstance(one, tuple | frozenset):
            pending.extend(one)
        elif _is_number(one):
            found.add(abs(one))
    return frozenset(found), code.co_names
