"""What the interpreter holds at an instruction: the variables that are read after it, and unnamed values."""

from __future__ import annotations

import dis
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from types import CodeType
from typing import Any

from ...tracer.records import record
from .code_names import MOST_CODES
from .write_instructions import instructions_of

ENDS = frozenset(("RETURN_VALUE", "RETURN_CONST", "RERAISE", "RAISE_VARARGS"))
JUMPS = frozenset(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"))
READS_ALL = frozenset(("locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"))
"""Functions that see all variables of the one that calls them."""


@record(frozen=True, slots=True)
class Flow:
    """Of one instruction: what it reads before it writes, what it writes, and what may follow."""

    reads: frozenset[str]
    writes: frozenset[str]
    following: tuple[int, ...]


@lru_cache(maxsize=MOST_CODES)
def _flows(code: CodeType) -> dict[int, Flow]:
    """The instructions of a function, by offset."""
    found = {}
    for offset, one in _instructions(code).items():
        reads, writes = _variables(one)
        handlers = tuple(place for place, _ in _handlers(code, offset))
        found[offset] = Flow(frozenset(reads), frozenset(writes), (*handlers, *_following(code, one)))
    return found


@lru_cache(maxsize=MOST_CODES)
def _instructions(code: CodeType) -> dict[int, dis.Instruction]:
    return {one.offset: one for one in instructions_of(code)}


@lru_cache(maxsize=MOST_CODES)
def _places(code: CodeType) -> dict[int, int | None]:
    """Of each instruction the one behind it."""
    places = list(_instructions(code))
    return dict(zip(places, [*places[1:], None]))


def _following(code: CodeType, one: dis.Instruction) -> tuple[int, ...]:
    """What may follow an instruction that raises nothing, where it jumps to first."""
    following = []
    if one.opcode in dis.hasjrel or one.opcode in dis.hasjabs:
        following.append(_at(list(_places(code)), one.argval))
    after = _places(code)[one.offset]
    if after is not None and one.opname not in ENDS | JUMPS:
        following.append(after)
    return tuple(following)


@lru_cache(maxsize=MOST_CODES)
def catches(code: CodeType, offset: int) -> bool:
    """Whether an `except` of the code may catch what an instruction raises; no `finally`, and no `with`."""
    for target, _ in _handlers(code, offset):
        behind = [one for one in _instructions(code).values() if one.offset >= target][1:]
        names = [one.opname for one in behind]
        ends = names.index("RERAISE") if "RERAISE" in names else len(names)
        if names[:1] == ["POP_TOP"] or "CHECK_EXC_MATCH" in names[:ends]:
            return True
    return False


def _handlers(code: CodeType, offset: int) -> tuple[tuple[int, int], ...]:
    """Where an error raised by an instruction leads, and how many values the interpreter holds there."""
    entries = (one for one in _entries(code) if one.start <= offset < one.end)
    places = list(_places(code))
    return tuple((_at(places, one.target), one.depth + one.lasti + 1) for one in entries)


@lru_cache(maxsize=MOST_CODES)
def _entries(code: CodeType) -> tuple[Any, ...]:
    return tuple(getattr(dis.Bytecode(code), "exception_entries", ()))


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
    return _live_after(flows[_instruction_at(code, instruction)], live)


def _live_after(flow: Flow, live: dict[int, frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*(live[offset] for offset in flow.following))


# --- questions ----------------------------------------------------------------------------------------------


@record(frozen=True, slots=True)
class Branch:
    """A question for a truth value: where the interpreter goes on, and whether it comes back as it was."""

    following: tuple[int, int]
    """If the answer is no, if it is yes. Of code that stands twice, as conditions do, the first place."""
    stays: tuple[bool, bool]
    """Whether, until it asks here again, it leaves alone the unnamed values that it holds here: the iterators
    of `for`, contexts of `with`, arguments of calls, and what whoever runs a generator holds."""
    leaves: tuple[bool, bool]
    """Whether the innermost loop ends with this answer."""


@lru_cache(maxsize=4096)
def branch_at(code: CodeType, instruction: int, known: frozenset[int] = frozenset()) -> Branch | None:
    """The branch of an instruction; None if that asks for no truth value, as one that calls `sorted`.

    Args:
        known: the places of unnamed values that are compared as variables are.
    """
    following = _branches(code).get(instruction)
    if following is None:
        return None
    stays = _stays(code, instruction, 0, known), _stays(code, instruction, 1, known)
    return Branch(following, stays, _leaves_loop(code, instruction))


@lru_cache(maxsize=MOST_CODES)
def _branches(code: CodeType) -> dict[int, tuple[int, int]]:
    """Of each instruction that asks for a truth value, where no and yes lead to."""
    found = {}
    for offset, (no, yes) in _targets(code).items():
        is_for = _instructions(code)[offset].opname == "FOR_ITER"
        found[offset] = (no, yes) if is_for else (_first_like(code, no), _first_like(code, yes))
    return found


@lru_cache(maxsize=MOST_CODES)
def _targets(code: CodeType) -> dict[int, tuple[int, int]]:
    """The same with the very instructions that follow."""
    found = {}
    for offset, one in _instructions(code).items():
        after = _places(code)[offset]
        if one.opname == "FOR_ITER":
            found[offset] = _following(code, one)[0], _following(code, one)[1]
            continue
        if after is None or not one.opname.startswith(ASKING):
            continue
        jump = one if "JUMP" in one.opname else _instructions(code)[after]
        is_truth = "_IF_TRUE" in jump.opname or "_IF_FALSE" in jump.opname
        no, yes = _ways(code, jump) if is_truth else (after, after)
        found[offset] = no, yes
    return found


ASKING = ("POP_JUMP", "JUMP_IF_", "TO_BOOL", "UNARY_NOT")


def _ways(code: CodeType, jump: dis.Instruction) -> tuple[int, ...]:
    """What follows a jump where its condition does not hold, and where it does: false, or none, and true."""
    ways = _following(code, jump)
    is_no = "_IF_FALSE" in jump.opname or jump.opname.endswith("_IF_NONE")
    return ways if is_no else ways[::-1]


@lru_cache(maxsize=4096)
def _first_like(code: CodeType, place: int) -> int:
    """The first place from which the interpreter does the same: the compiler writes conditions twice."""
    return next(one for one in _instructions(code) if _is_same(code, one, place, MOST_COMPARED))


MOST_COMPARED = 40
"""Instructions of a condition that stands twice, one after the other."""


def _is_same(code: CodeType, one: int, other: int, most: int) -> bool:
    """Whether the instructions from one place are those from another, up to where both go on as one."""
    if one == other:
        return True
    mine, theirs = _instructions(code)[one], _instructions(code)[other]
    if most == 0 or any(of(code, one) != of(code, other) for of in (_handlers, _depth)):
        return False
    is_jump = mine.opname.startswith("POP_JUMP"), theirs.opname.startswith("POP_JUMP")
    if all(is_jump) and mine.opname.endswith("NONE") == theirs.opname.endswith("NONE"):
        pairs = list(zip(_ways(code, mine), _ways(code, theirs)))
    elif (mine.opname, mine.arg, mine.argval) == (theirs.opname, theirs.arg, theirs.argval):
        pairs = list(zip(_following(code, mine), _following(code, theirs)))
    else:
        return False
    return all(_is_same(code, *pair, most - 1) for pair in pairs)


def _stays(code: CodeType, instruction: int, answer: int, known: frozenset[int]) -> bool:
    """Whether the unnamed values held at a question that are not known are left alone until the next one."""
    branches = _branches(code)
    same = {place for place, following in branches.items() if following == branches[instruction]}
    return _stay(code, (branches[instruction][answer],), same, unknown_values(code, instruction, known))


@lru_cache(maxsize=4096)
def stays_around(code: CodeType, instruction: int, known: frozenset[int] = frozenset()) -> bool:
    """The same of those held while an instruction calls, until it calls again."""
    place = _instruction_at(code, instruction)
    return _stay(code, _flows(code)[place].following, {place}, unknown_values(code, place, known))


def _stay(code: CodeType, following: Sequence[int], same: AbstractSet[int], held: int) -> bool:
    """Whether so many unnamed values are left alone on all ways to some instructions."""
    before: dict[int, list[int]] = {}
    pending, reached = [*following], set(same)
    while pending:
        place = pending.pop()
        if place not in reached:
            reached.add(place)
            pending += _flows(code)[place].following
            for one in _flows(code)[place].following:
                before.setdefault(one, []).append(place)
    returning: set[int] = set()
    pending = [place for one in same for place in before.get(one, ())]
    while pending:
        place = pending.pop()
        if place not in returning:
            returning.add(place)
            pending += before.get(place, ())
    return all(_leaves(code, place, held) for place in returning)


def _leaves_loop(code: CodeType, instruction: int) -> tuple[bool, bool]:
    """Of both answers to a question whether they end the innermost loop around it, if there is one."""
    around = [loop for loop in _loops(code) if instruction in loop]
    if not around:
        return True, True
    inside = min(around, key=len)

    def ends(place: int) -> bool:
        pending, reached = [place], set[int]()
        while pending:
            one = pending.pop()
            if one == inside.start:
                return False
            if one in inside and one not in reached:
                reached.add(one)
                pending += _following(code, _instructions(code)[one])
        return True

    no, yes = _targets(code)[instruction]
    return ends(no), ends(yes)


def _unnamed(code: CodeType, instruction: int) -> int | None:
    """How many values the interpreter holds at a question, besides the one that is asked."""
    depth = _depth(code, instruction)
    if depth is None or _instructions(code)[instruction].opname == "FOR_ITER":
        return depth
    return depth - 1


@lru_cache(maxsize=4096)
def unknown_values(code: CodeType, instruction: int, known: frozenset[int] = frozenset()) -> int:
    """How many unnamed values are held while an instruction asks, calls or yields, besides what that takes.

    Where nothing tells, as many as there may be.

    Args:
        known: the places of unnamed values that are compared as variables are: of the last ones.
    """
    place = _instruction_at(code, instruction)
    one, after = _instructions(code)[place], _places(code)[place]
    if place in _branches(code):
        found = _unnamed(code, place)
    elif one.opname in SUSPENDING:
        found = _before(code, place)
    else:
        found = None if after is None else _depth(code, after)
        if found is not None and one.opname in CALLS:
            found -= 1
    if found is None:
        return code.co_stacksize
    while found and found - 1 in known:
        found -= 1
    return found


def _before(code: CodeType, place: int) -> int | None:
    """How many there are before an instruction, besides the last one; none before a generator begins."""
    depth = _depth(code, place)
    return depth if depth is None else max(depth - 1, 0)


def _instruction_at(code: CodeType, place: int) -> int:
    """The instruction that a place is in: while it calls, Python may stand at its end."""
    return max(offset for offset in _instructions(code) if offset <= place)


@lru_cache(maxsize=4096)
def operation_at(code: CodeType, place: int) -> str:
    """The name of the instruction at a place."""
    return _instructions(code)[_instruction_at(code, place)].opname


CALLS = frozenset(("CALL", "CALL_KW", "CALL_FUNCTION_EX", "BINARY_OP", "BINARY_SUBSCR", "COMPARE_OP"))
"""Instructions that take what they need, and leave one value."""


def _leaves(code: CodeType, place: int, held: int) -> bool:
    """Whether an instruction leaves the first so many values alone that the interpreter holds."""
    one, depth = _instructions(code)[place], _depth(code, place)
    if depth is None or one.opname in SUSPENDING:
        return False
    after = [found for each in _following(code, one) if (found := _depth(code, each)) is not None]
    if one.opname in ADDING and min(after, default=depth) - (one.arg or 0) < held:
        return False
    return min(depth, *after, depth - (one.opname == "FOR_ITER")) >= held


ADDING = frozenset((
    "LIST_APPEND", "SET_ADD", "MAP_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE",
))  # fmt: skip
"""Instructions that write into the container which lies so deep as their argument says."""
SUSPENDING = frozenset(("YIELD_VALUE", "SEND", "RETURN_GENERATOR"))
"""Instructions at which whoever runs a generator goes on."""


def _depth(code: CodeType, place: int) -> int | None:
    return _depths(code).get(place)


# --- loops --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def loop_over(code: CodeType, instruction: int) -> int | None:
    """The `for` that runs through what a call gives, by the offset of its instruction."""
    get = _places(code).get(instruction)
    return None if get is None else loop_begun_by(code, get)


@lru_cache(maxsize=4096)
def loop_begun_by(code: CodeType, instruction: int) -> int | None:
    """The `for` that runs through the value of which an instruction makes an iterator."""
    one = _instructions(code).get(instruction)
    loop = _places(code)[instruction] if one is not None and one.opname == "GET_ITER" else None
    return loop if loop is not None and _instructions(code)[loop].opname == "FOR_ITER" else None


@lru_cache(maxsize=4096)
def is_in_loop(code: CodeType, instruction: int) -> bool:
    """Whether an instruction may run again in one run of its function."""
    return any(instruction in loop for loop in _loops(code))


@lru_cache(maxsize=MOST_CODES)
def _loops(code: CodeType) -> tuple[range, ...]:
    """The places of the loops of a function: from where they jump back to up to the last jump."""
    found: dict[int, int] = {}
    for offset, one in _instructions(code).items():
        if "BACKWARD" in one.opname:
            found[_at(list(_places(code)), one.argval)] = offset
    return tuple(range(first, last + 1) for first, last in found.items())


@lru_cache(maxsize=4096)
def loops_around(code: CodeType, instruction: int) -> dict[int, int]:
    """The `for` loops under way at an instruction, with the place of the iterator among unnamed values."""
    place = _instruction_at(code, instruction)
    found, depth = {}, _depth(code, place)
    for offset, one in _instructions(code).items():
        if one.opname == "FOR_ITER" and offset <= place < one.argval and depth is not None:
            inside = _depth(code, offset)
            if inside is not None and inside <= depth:
                found[offset] = inside - 1
    return found


@lru_cache(maxsize=MOST_CODES)
def _depths(code: CodeType) -> dict[int, int]:
    """How many values the interpreter holds before each instruction that it can come to."""
    found: dict[int, int] = {}
    pending = [(next(iter(_instructions(code))), 0)]
    while pending:
        place, depth = pending.pop()
        if place in found:
            continue
        found[place], one = depth, _instructions(code)[place]
        pending += _handlers(code, place)
        jumps = one.opcode in dis.hasjrel or one.opcode in dis.hasjabs
        for number, following in enumerate(_following(code, one)):
            effect = dis.stack_effect(one.opcode, one.arg, jump=jumps and number == 0)
            if one.opname == "RETURN_GENERATOR":  # Python 3.11 leaves out what a generator is sent at first
                effect = 1
            pending.append((following, depth + effect))
    return found


__all__ = [
    "Branch", "branch_at", "is_in_loop", "live_variables", "loop_begun_by", "loop_over", "loops_around",
    "operation_at", "stays_around", "unknown_values",
]  # fmt: skip
