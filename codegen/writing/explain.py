"""The account of a program in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..account import Account, Array, LoopNest, Statement, Step, numbered

VERBS = {
    "call": "{name} into", "host": "{name} by Python into", "view": "reshaped view", "store": "store",
    "reduce": "{name} into", "search": "{name} into", "scan": "{name} into", "scatter": "scatter-add into",
    "update": "write at indices into", "overwrite": "write a part of",
    "check": "compare positions with the extent of what they index",
    "trips": "count of steps of the next loop, which data decides",
}  # fmt: skip
LOOPS = {
    "iterations": "loop over {count}",
    "counted": "loop over the steps counted",
    "block": "loop over the iterations of the block",
    "while": "loop while its condition is true",
    "choice": "if that is 1",
}


def explain(account: Account) -> str:
    """The loops with what they move and compute, each value that is stored and why, and the memory."""
    arrays = {one.name: one for one in account.arrays}
    lines = [account.title]
    for step in account.steps:
        lines.append(f"  {cost_line(step)}")
        lines.extend(_lines(step.work, arrays, 2))
    return "\n".join([*lines, *_host_lines(account), *_memory_lines(account), *account.notes])


def cost_line(step: Step) -> str:
    """What a step moves and computes."""
    threads = ", shared between threads" if step.is_shared else ""
    return (
        f"reads {in_bytes(step.bytes_read)}, writes {in_bytes(step.bytes_written)}, "
        f"{_count(step.operations)} operations{threads}"
    )


def _lines(work: LoopNest | Statement, arrays: dict[str, Array], depth: int) -> list[str]:
    indent = "  " * depth
    if isinstance(work, Statement):
        return [f"{indent}{statement_line(work, arrays)}"]
    inner = [line for one in work.body for line in _lines(one, arrays, depth + 1)]
    return [f"{indent}{loop_line(work)}", *inner]


def loop_line(loop: LoopNest) -> str:
    """`loop over 1000`"""
    blocks = f", in blocks of {loop.block}" if loop.block else ""
    threads = ", shared between threads" if loop.is_shared else ""
    return LOOPS[loop.kind].format(count=loop.trip_count) + blocks + threads


def statement_line(statement: Statement, arrays: dict[str, Array]) -> str:
    """`store array h (float64[3]): an output  # model.py:5`"""
    verb = VERBS[statement.kind].format(name=statement.operator)
    origin = f"  # {statement.place}" if statement.place else ""
    if not statement.reason:
        return f"{verb}{origin}"
    array = arrays.get(statement.array or "")
    kept = f"array {array.name} ({spec_of(array)})" if array else "a local variable"
    border = "; border apart" if statement.border_apart else ""
    return f"{verb} {kept}: {statement.reason}{border}{origin}"


def spec_of(array: Array) -> str:
    """`float64[3, steps]`"""
    return f"{array.dtype}[{', '.join(map(str, array.shape))}]"


def _host_lines(account: Account) -> Iterator[str]:
    called = [one.operator for one in account.host_calls]
    if called:
        yield f"  {numbered(len(called), 'call')} of Python: {', '.join(called)}"


def _memory_lines(account: Account) -> Iterator[str]:
    own = [one for one in account.scratch if not one.lies_in]
    if account.scratch:
        yield f"  scratch: {in_bytes(sum(one.nbytes for one in own))} in {numbered(len(own), 'array')}"
    for one in account.arrays:
        if one.lies_in:
            yield f"    {one.name} ({spec_of(one)}) lies in {one.lies_in} while that is not in use"
    for one in account.arrays:
        if one.holds:
            first, *others = one.holds
            values = ", then of ".join((first, *others))
            yield f"    {one.name} ({spec_of(one)}) holds the results of {values}"


def in_bytes(number: float) -> str:
    """`12.3 kB`"""
    return _scaled(number, (" B", " kB", " MB", " GB"))


def _count(number: float) -> str:
    return _scaled(number, ("", " thousand", " million", " billion"))


def _scaled(number: float, units: Sequence[str]) -> str:
    """A number to three digits, in the first unit that keeps it short; each is a thousand times the last."""
    *smaller, largest = units
    for unit in smaller:
        if number < 1000:
            return f"{number:.3g}{unit}"
        number /= 1000
    return f"{number:.3g}{largest}"
