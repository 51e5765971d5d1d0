"""How numbers follow from sizes where Python computes them without asking, as `0.5 * n` or `np.log(n)`.

The instructions before the place where such a number is used say which numbers were combined. What they give
is compared with the number itself, so a formula that is found here computes it, whatever the code has done.
"""

from __future__ import annotations

import dis
import math
import re
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from .dims import OF_FLOATS, Formula, apply, called, formula_of, plain

OPERATORS = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide", "%": "modulo",
    "**": "power",
}  # fmt: skip
CALLED = {
    **{getattr(math, name): name for name in (*OF_FLOATS, "ceil", "floor", "trunc")},
    **{one: one.__name__ for one in (np.sqrt, np.exp, np.expm1, np.log, np.log2, np.log10, np.log1p)},
    float: "float", int: "trunc", round: "round",
}  # fmt: skip
"""Functions that change nothing, by what formulas call them."""
VARIABLES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_NAME", "LOAD_GLOBAL")
CONSTANTS = ("LOAD_CONST", "LOAD_SMALL_INT")
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
WITHOUT_EFFECT = ("CACHE", "RESUME", "EXTENDED_ARG", "NOP", "NOT_TAKEN", "PRECALL", "COPY_FREE_VARS")
ITEMS = "BINARY_SUBSCR"
MADE_OF_ENDS = {"BUILD_SLICE": list, "BUILD_TUPLE": tuple}
"""Of several values on the stack: the ends of a slice, and the slices of several dimensions."""
TAKING_TWO = (ITEMS, "BINARY_OP")
MOST_OPERANDS = 3
"""Of an instruction that may have a number among them."""
UNKNOWN, EMPTY = object(), object()
"""On the stack: what nobody follows, and the place that Python leaves free beside a function."""


def formula_in(frame: FrameType, number: int | float) -> Formula | None:
    """The formula of a number that the code which runs in a frame has computed of sizes, if it shows one."""
    for one in _parts(_stack(frame)[-MOST_OPERANDS:]):
        if type(plain(one)) is type(number) and one == number and formula_of(one) is not None:
            return formula_of(one)
    return None


def _parts(values: Sequence[Any]) -> Iterator[Any]:
    """What values are made of, the last one first."""
    for one in reversed(values):
        if isinstance(one, tuple | list):
            yield from _parts(one)
        else:
            yield one


def variable_in(frame: FrameType, number: int | float) -> str:
    """The variable that holds a number where it is used; "" if none does."""
    return next((name for name, value in frame.f_locals.items() if value is number), "")


def _stack(frame: FrameType) -> list[Any]:
    """What the current instruction is given, if those before it are read as one straight line."""
    variables: dict[str, Any] = {}
    stack: list[Any] = []
    spaces = frame.f_locals, frame.f_globals, frame.f_builtins
    for name, argument, effect in _instructions(frame.f_code, frame.f_lasti):
        if name in CONSTANTS:
            stack.append(argument)
        elif name == "PUSH_NULL":
            stack.append(EMPTY)
        elif name in VARIABLES:
            value = next((space[argument] for space in spaces if argument in space), UNKNOWN)
            known = variables.get(argument, UNKNOWN)
            value = known if type(plain(value)) in (int, float) and known == value else value
            stack += [value] if effect == 1 else [EMPTY, value]
        elif name == "STORE_FAST" and stack:
            variables[argument] = called(argument, stack.pop())
        elif name in ATTRIBUTES and stack:
            value = _attribute(stack.pop(), argument)
            stack += [value] if effect == 0 else [EMPTY, value]
        elif name in TAKING_TWO and len(stack) > 1:
            second, first = stack.pop(), stack.pop()
            stack.append(_item(first, second) if name == ITEMS else _applied(argument, first, second))
        elif name == "CALL" and len(stack) > argument + 1:
            *callee, given = *stack[-argument - 2 : len(stack) - argument], stack[len(stack) - argument :]
            stack[-argument - 2 :] = [_called([one for one in callee if one is not EMPTY], given)]
        elif name in MADE_OF_ENDS and len(stack) >= argument:
            stack[len(stack) - argument :] = [MADE_OF_ENDS[name](stack[len(stack) - argument :])]
        elif name == "SWAP" and len(stack) >= argument:
            stack[-1], stack[-argument] = stack[-argument], stack[-1]
        else:
            stack = [UNKNOWN] * max(len(stack) + effect, 0)
    return stack


def _attribute(value: Any, name: str) -> Any:
    """An array's shape or size, or what a module has; others may run code."""
    is_plain = name in ("shape", "size") or isinstance(value, ModuleType)
    return getattr(value, name, UNKNOWN) if is_plain else UNKNOWN


def _item(values: Any, place: Any) -> Any:
    is_one = isinstance(values, tuple) and type(place) is int and -len(values) <= place < len(values)
    return tuple.__getitem__(values, place) if is_one else UNKNOWN


def _called(callee: list[Any], given: list[Any]) -> Any:
    """What a function of sizes gives, one that changes nothing."""
    if len(callee) != 1 or any(one is UNKNOWN for one in given):
        return UNKNOWN
    if getattr(callee[0], "is_of_sizes", False) is True:
        return callee[0](*given)
    name = CALLED.get(callee[0], "") if isinstance(callee[0], Hashable) else ""
    return _of_numbers(name, given)


def _applied(sign: str, first: Any, second: Any) -> Any:
    return _of_numbers(OPERATORS.get(sign, ""), [first, second])


def _of_numbers(function: str, given: list[Any]) -> Any:
    """What a function gives for numbers that may follow from sizes; powers of others may be huge."""
    are_numbers = all(type(plain(one)) in (int, float) for one in given)
    is_huge = function == "power" and not any(map(formula_of, given))
    if not function or not are_numbers or is_huge:
        return UNKNOWN
    try:
        return apply(function, *given)
    except (ArithmeticError, TypeError, ValueError):
        return UNKNOWN


@lru_cache(maxsize=1024)
def _instructions(code: CodeType, last: int) -> tuple[tuple[str, Any, int], ...]:
    """Of each instruction before the one at `last` its name, what it names, and how the stack grows.

    The frame of an instruction that calls Python code may be behind its place, at what is kept there.
    """
    begun = [*takewhile(lambda one: one.offset <= last, dis.get_instructions(code))]
    found = (simple for one in begun[:-1] for simple in _simple(one))
    return tuple([one for one in found if one[0] not in WITHOUT_EFFECT])


def _simple(one: dis.Instruction) -> Iterator[tuple[str, Any, int]]:
    """An instruction as those of Python 3.11, of which later versions have several in one."""
    name = one.opname.replace("_BORROW", "").replace("_CHECK", "")
    effect = dis.stack_effect(one.opcode, one.arg, jump=False)
    parts = re.findall("(?:LOAD|STORE)_FAST", name)
    if len(parts) > 1:
        yield from ((part, variable, 1) for part, variable in zip(parts, one.argval))
    elif name == "BINARY_OP":
        sign = one.argrepr.rstrip("=")
        yield (ITEMS if sign == "[]" else name), sign, effect
    else:
        yield name, one.argval, effect
