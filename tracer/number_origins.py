"""How numbers follow from sizes where Python computes them without asking, as `0.5 * n`.

The instructions before the place where such a number is used say which numbers were combined. What they give
is compared with the number itself, so a formula that is found here computes it, whatever the code has done.
"""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from .dims import Formula, apply, formula_of, plain

OPERATORS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "//": "floor_divide", "%": "modulo"}
VARIABLES = ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_DEREF", "LOAD_NAME", "LOAD_GLOBAL")
ITEMS = frozenset(("BINARY_SUBSCR",))
TAKING_TWO = ITEMS | {"BINARY_OP"}
MOST_OPERANDS = 3
"""Of an instruction that may have a number among them."""
UNKNOWN, EMPTY = object(), object()
"""On the stack: what nobody follows, and the place that Python leaves free beside a function."""


def formula_in(frame: FrameType, number: int | float) -> Formula | None:
    """The formula of a number that the code which runs in a frame has computed of sizes, if it shows one."""
    for one in reversed(_stack(frame)[-MOST_OPERANDS:]):
        if type(plain(one)) is type(number) and one == number and formula_of(one) is not None:
            return formula_of(one)
    return None


def variable_in(frame: FrameType, number: int | float) -> str:
    """The variable that holds a number where it is used; "" if none does."""
    return next((name for name, value in frame.f_locals.items() if value is number), "")


def _stack(frame: FrameType) -> list[Any]:
    """What the current instruction is given, if those before it are read as one straight line."""
    variables: dict[str, Any] = {}
    stack: list[Any] = []
    for name, argument, effect in _instructions(frame.f_code, frame.f_lasti):
        if name == "LOAD_CONST":
            stack.append(argument)
        elif name in VARIABLES:
            value = frame.f_locals.get(argument, frame.f_globals.get(argument, UNKNOWN))
            known = variables.get(argument, UNKNOWN)
            value = known if type(value) in (int, float) and known == value else value
            stack += [value] if effect == 1 else [EMPTY, value]
        elif name == "STORE_FAST" and stack:
            variables[argument] = stack.pop()
        elif name == "LOAD_ATTR" and argument == "shape" and effect == 0 and stack:
            stack[-1] = getattr(stack[-1], argument, UNKNOWN)
        elif name in TAKING_TWO and len(stack) > 1:
            second, first = stack.pop(), stack.pop()
            stack.append(_item(first, second) if name in ITEMS else _applied(argument, first, second))
        elif name == "CALL" and len(stack) > argument + 1:
            *callee, given = *stack[-argument - 2 : len(stack) - argument], stack[len(stack) - argument :]
            stack[-argument - 2 :] = [_called([one for one in callee if one is not EMPTY], given)]
        elif name == "SWAP" and len(stack) >= argument:
            stack[-1], stack[-argument] = stack[-argument], stack[-1]
        else:
            stack = [UNKNOWN] * max(len(stack) + effect, 0)
    return stack


def _item(values: Any, place: Any) -> Any:
    is_one = type(values) is tuple and type(place) is int and -len(values) <= place < len(values)
    return values[place] if is_one else UNKNOWN


def _called(callee: list[Any], given: list[Any]) -> Any:
    """What a function of sizes gives, one that changes nothing."""
    is_known = len(callee) == 1 and getattr(callee[0], "is_of_sizes", False) is True
    return callee[0](*given) if is_known and not any(one is UNKNOWN for one in given) else UNKNOWN


def _applied(sign: str, first: Any, second: Any) -> Any:
    numbers = all(type(plain(one)) in (int, float) for one in (first, second))
    if not numbers or sign not in OPERATORS or (formula_of(first) or formula_of(second)) is None:
        return UNKNOWN
    try:
        return apply(OPERATORS[sign], first, second)
    except ArithmeticError:
        return UNKNOWN


@lru_cache(maxsize=1024)
def _instructions(code: CodeType, last: int) -> tuple[tuple[str, Any, int], ...]:
    """Of each instruction up to one its name, what it names, and by how much the stack grows."""
    found = []
    for one in dis.get_instructions(code):
        if one.offset >= last:
            break
        name = one.opname
        argument = one.argrepr.rstrip("=") if name == "BINARY_OP" else one.argval
        if argument == "[]":  # how Python 3.14 has it
            name = "BINARY_SUBSCR"
        if name not in ("CACHE", "RESUME", "EXTENDED_ARG", "NOP", "PRECALL"):
            found.append((name, argument, dis.stack_effect(one.opcode, one.arg, jump=False)))
    return tuple(found)
