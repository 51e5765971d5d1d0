"""What the interpreter holds at an instruction: the variables that are read after it, and unnamed values."""

from __future__ import annotations

import dis
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from types import CodeType

from .code_names import MOST_CODES
from .write_instructions import instructions_of

ENDS = frozenset(("RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS"))
JUMPS = frozenset(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"))
READS_ALL = frozenset(("locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"))
"""Functions that see all variables of the one that calls them."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Of one instruction: what it reads before it writes, what it writes, and what may follow."""

    reads: frozenset[str]
    writes: frozenset[str]
    following: tuple[int, ...]


@lru_cache(maxsize=MOST_CODES)
def _flows(code: CodeType) -> dict[int, Flow]:
    """The instructions of a function, by offset."""
    instructions = instructions_of(code)
    places = [one.offset for one in instructions]
    handlers = list(getattr(dis.Bytecode(code), "exception_entries", ()))
    found = {}
    for one, after in zip(instructions, [*places[1:], None]):
        following = [entry.target for entry in handlers if entry.start <= one.offset < entry.end]
        if one.opcode in dis.hasjrel or one.opcode in dis.hasjabs:
            following.append(one.argval)
        if after is not None and one.opname not in ENDS | JUMPS:
            following.append(after)
        reads, writes = _variables(one)
        behind = (_at(places, target) for target in following)
        found[one.offset] = Flow(frozenset(reads), frozenset(writes), tuple(behind))
    return found


def _at(places: list[int], target: int) -> int:
    """The first instruction from an offset on, where one may stand that carries a part of an argument."""
    return next(place for place in places if place >= target)


def _variables(one: dis.Instruction) -> tuple[set[str], set[str]]:
    """What an instruction reads of local variables before it writes, and what it writes."""
    reads: set[str] = set()
    writes: set[str] = set()
    if "_FAST" not in one.opname:
        return reads, writes
    parts = [part.split("_FAST")[0] for part in one.opname.split("_FAST_")]
    names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
    for part, name in zip(parts if len(parts) == len(names) else ["LOAD"] * len(names), names):
        if part == "LOAD":
            reads |= {name} - writes
        else:
            writes.add(name)
    return reads, writes


@lru_cache(maxsize=4096)
def live_variables(code: CodeType, instruction: int) -> frozenset[str] | None:
    """The local variables that may be read after an instruction, before they are written; None for all.

    A place inside of an instruction, where Python stands while it calls, is that of the instruction.
    Variables that inner functions share are not among them: they count in any case.
    """
    if READS_ALL.intersection(code.co_names):
        return None
    flows = _flows(code)
    live: dict[int, frozenset[str]] = dict.fromkeys(flows, frozenset())
    changes = True
    while changes:
        changes = False
        for offset, flow in reversed(flows.items()):
            found = flow.reads | (_live_after(flow, live) - flow.writes)
            changes = changes or found != live[offset]
            live[offset] = found
    return _live_after(flows[max(offset for offset in flows if offset <= instruction)], live)


def _live_after(flow: Flow, live: dict[int, frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*(live[offset] for offset in flow.following))


@lru_cache(maxsize=4096)
def asks_at_statement(code: CodeType, instruction: int) -> bool:
    """Whether the interpreter asks there for a truth value, and holds no other than those in variables.

    Inside of a `for`, a `with` or a call it holds an iterator, a context or arguments; and what calls `bool`,
    as `sorted` does, has a state of its own.
    """
    names = {one.offset: one.opname for one in instructions_of(code)}
    asks = names.get(instruction, "").startswith(("POP_JUMP", "TO_BOOL", "UNARY_NOT"))
    return asks and _depths(code).get(instruction) == 1


@lru_cache(maxsize=MOST_CODES)
def _depths(code: CodeType) -> dict[int, int]:
    """How many values the interpreter holds before each instruction that it can come to."""
    instructions = {one.offset: one for one in instructions_of(code)}
    places = list(instructions)
    after = dict(pairwise(places))
    found: dict[int, int] = {}
    pending = [(places[0], 0)]
    while pending:
        place, depth = pending.pop()
        if place in found:
            continue
        found[place], one = depth, instructions[place]
        if one.opcode in dis.hasjrel or one.opcode in dis.hasjabs:
            effect = dis.stack_effect(one.opcode, one.arg, jump=True)
            pending.append((_at(places, one.argval), depth + effect))
        if place in after and one.opname not in ENDS | JUMPS:
            effect = dis.stack_effect(one.opcode, one.arg, jump=False)
            pending.append((after[place], depth + effect))
    return found


__all__ = ["asks_at_statement", "live_variables"]
