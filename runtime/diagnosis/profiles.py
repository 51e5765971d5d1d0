"""What takes the time of a compiled function, by the user's lines and by loop nests, as data and tables."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...tracer.errors import ArgumentError
from ...tracer.records import record

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

WIDTH = 110
"""Columns of the text."""
LONGEST_TEXT = 44
"""Characters of a line, or of what a nest does, that a table shows."""


@record(frozen=True)
class Work:
    """What one call spends on something."""

    seconds: float
    nbytes: float
    """Read from and written to arrays, in a loop nest each array once."""
    operations: float
    """Multiplications and additions; an elementary function counts as its cost in multiplications."""

    @property
    def gigaflops(self) -> float:
        """Operations a second, in 1e9."""
        return 1e-9 * self.operations / self.seconds if self.seconds else 0.0

    @property
    def gigabytes(self) -> float:
        """Bytes a second, in 1e9."""
        return 1e-9 * self.nbytes / self.seconds if self.seconds else 0.0


@record(frozen=True)
class Nest(Work):
    """A loop nest, or a call of a library: timed, or where threads share it, its part of what was."""

    program: str
    """What its program is: `forward of loss`."""
    function: str
    """The generated function that it is in."""
    title: str
    is_shared: bool
    lines: tuple[tuple[str, float], ...]
    """Of each line in it the part of its time."""


@record(frozen=True)
class Line(Work):
    """A line of the user's: its parts of the nests that it is in, as the machine model divides these."""

    place: str
    """`model.py:5`; empty for what belongs to no line."""
    text: str
    backward_seconds: float
    """Of its time that which its gradient takes."""


@record(frozen=True)
class Program:
    """A generated program."""

    title: str
    seconds: float
    """Of a call, without any reading of clocks."""
    seconds_of_nests: float
    """What its nests take, timed one by one. The rest is the way into machine code, and new memory."""

    @property
    def rest(self) -> float:
        """The difference; below 0 where reading clocks has taken longer than is known of it."""
        return self.seconds - self.seconds_of_nests


@record(frozen=True)
class Roofs:
    """What the cores that calls use can do together, in 1e9 a second."""

    operations: float
    caches: float
    """Bytes from the first caches ..."""
    memory: float
    """... and from memory."""


@record(frozen=True, repr=False)
class Profile:
    """Where a call of a function spends its time; `str()` is a table, `plot()` a picture.

    Attributes:
        name: of the function.
        programs: the generated programs, forward and backward, in their order.
        nests: their loop nests and calls, in their order.
        lines: the user's lines, what takes longest first.
        roofs: what the machine model says of this machine.
    """

    name: str
    programs: tuple[Program, ...]
    nests: tuple[Nest, ...]
    lines: tuple[Line, ...]
    roofs: Roofs

    @property
    def seconds(self) -> float:
        """Of one call, forward and backward."""
        return sum(one.seconds for one in self.programs)

    def as_data(self) -> dict[str, Any]:
        """The same in dicts, lists, texts and numbers, as `json.dumps` takes them.

        Example:
            >>> profile.as_data()["lines"][0]["place"]  # doctest: +SKIP
            'model.py:7'
        """
        return asdict(self)

    def plot(self, kind: str = "flame") -> Figure:
        """A picture, made with matplotlib (`pip install pullback[plot]`): `profile.plot().savefig("a.png")`.

        Args:
            kind: "flame" for programs, nests in them and lines in these, as wide as they take long;
                "roofline" for the speed of nests over their operations for each byte, under what the
                machine can do.

        Raises:
            ArgumentError: there is no such kind, or no matplotlib.
        """
        from . import pictures  # which takes matplotlib

        makers = {"flame": pictures.flame, "roofline": pictures.roofline}
        if kind not in makers:
            raise ArgumentError(f"profile.plot: kind must be one of {', '.join(makers)}, found {kind!r}.")
        return makers[kind](self)

    # --- tables -------------------------------------------------------------------------------------------

    def __rich_console__(self, console: Any, options: Any) -> Iterable[Table]:
        yield self._table_of_lines()
        yield self._table_of_nests()
        yield self._table_of_programs()

    def __str__(self) -> str:
        from rich.console import Console  # not at start

        text = io.StringIO()
        Console(file=text, width=WIDTH, color_system=None, legacy_windows=False).print(self)
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    __repr__ = __str__  # what a terminal and a notebook show

    def _table_of_lines(self) -> Table:
        whole = sum(one.seconds for one in self.lines)
        rows = [
            (
                one.place or "no line", _cut(one.text), time_text(one.seconds),
                time_text(one.backward_seconds) if one.backward_seconds else "",
                f"{100 * one.seconds / whole:.0f} %" if whole else "",
                f"{one.gigaflops:.2f}", f"{one.gigabytes:.2f}",
            )
            for one in self.lines
        ]  # fmt: skip
        return _table(
            f"{self.name}, by line (nests are divided among lines as the machine model says)",
            ("line", "", "time", "backward", "share", "GFLOP/s", "GB/s"), rows,
        )  # fmt: skip

    def _table_of_nests(self) -> Table:
        from ...codegen.writing.explain import in_bytes  # not at start

        rows = [
            (
                one.program, _cut(one.title) + (" *" if one.is_shared else ""),
                time_text(one.seconds), in_bytes(one.nbytes), f"{one.operations:,.0f}",
                f"{one.gigaflops:.2f}", f"{one.gigabytes:.2f}",
            )
            for one in self.nests
        ]  # fmt: skip
        shared = any(one.is_shared for one in self.nests)
        note = " (* shared between threads: its function is timed as a whole)" if shared else ""
        return _table(
            f"by loop nest{note}",
            ("program", "nest", "time", "bytes", "operations", "GFLOP/s", "GB/s"), rows,
        )  # fmt: skip

    def _table_of_programs(self) -> Table:
        rows = [
            (one.title, time_text(one.seconds), time_text(one.seconds_of_nests), time_text(one.rest))
            for one in self.programs
        ]
        return _table("by program", ("program", "a call", "its nests", "the rest"), rows)


def _table(title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    from rich.table import Table  # not at start
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    texts = 1 if columns[1] == "a call" else 2
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < texts else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 4]} ..."


def time_text(seconds: float) -> str:
    """`1.25 us`"""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"
