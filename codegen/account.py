"""What the code generator decided for a program, as data; `writing/explain.py` says it in words."""

from __future__ import annotations

from collections.abc import Iterator

from ..tracer.records import record


@record(frozen=True)
class Statement:
    """One piece of work in the loops around it."""

    kind: str
    """What is done with each element, e.g. "store", "reduce", "scatter", "call", "check"."""
    operator: str
    array: str | None
    """The name of the array that holds the result; None for a local variable."""
    reason: str
    """Why the result has a place of its own."""
    place: str
    """The user's line, `model.py:5`; empty if there is none."""
    border_apart: bool = False
    """Whether its loop is written in stretches, the interior and the border."""


@record(frozen=True)
class LoopNest:
    """A loop, with what runs in each iteration."""

    kind: str
    """"iterations"; "block" (of the iterations of the loop around it), "counted" (as many as a loop before
    it counted), "while" or "choice"."""
    trip_count: int
    """For the shapes that were traced; of what data decides, the room that there is."""
    block: int
    """If not 0, iterations are taken in blocks of so many."""
    body: tuple[LoopNest | Statement, ...]
    is_shared: bool = False
    """Whether threads share its iterations in each step of the loop over steps around it."""


@record(frozen=True)
class Step:
    """One loop nest, or one call of a library, and what it must cost at least."""

    work: LoopNest | Statement
    bytes_read: int
    bytes_written: int
    operations: float
    """Multiplications and additions; an elementary function counts as its cost."""
    is_shared: bool
    """Whether threads share its iterations."""


@record(frozen=True)
class Function:
    """One generated function."""

    name: str
    is_shared: bool
    parts_per_thread: int
    called: frozenset[str]
    """Functions that it calls, e.g. "gemm"."""
    arrays: tuple[str, ...]
    """Its arrays, by name."""


@record(frozen=True)
class Array:
    """One array that a program fills."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    """As stored; "steps" where data decides."""
    nbytes: int
    is_output: bool
    rows: int = 0
    """Of a carry, how many steps' values it has room for; they take turns."""
    lies_in: str = ""
    """The array in whose memory it lies, `offset` bytes from its start, while that is not in use."""
    offset: int = 0
    holds: tuple[str, ...] = ()
    """The operators of the values that it holds one after another, if there are several."""


@record(frozen=True)
class Account:
    """What was decided for one program."""

    title: str
    steps: tuple[Step, ...]
    functions: tuple[Function, ...]
    arrays: tuple[Array, ...]
    notes: tuple[str, ...] = ()
    """What was found out on the way, e.g. of loops that were rolled."""

    @property
    def scratch(self) -> tuple[Array, ...]:
        """Arrays that the caller does not get."""
        return tuple(one for one in self.arrays if not one.is_output)

    @property
    def nbytes(self) -> int:
        """The memory of all arrays."""
        return sum(one.nbytes for one in self.arrays if not one.lies_in)

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All pieces of work, in order."""
        return tuple(one for step in self.steps for one in _statements_in(step.work))

    @property
    def host_calls(self) -> tuple[Statement, ...]:
        """What Python evaluates, as it has no form in code."""
        return tuple(one for one in self.statements if one.kind == "host")


def _statements_in(work: LoopNest | Statement) -> Iterator[Statement]:
    if isinstance(work, Statement):
        yield work
    else:
        for one in work.body:
            yield from _statements_in(one)


def numbered(count: int, noun: str) -> str:
    """`1 place`, `2 places`"""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
