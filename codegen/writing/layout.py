"""What the templates lay out: text that is ready, in frozen dataclasses. No template computes anything."""

from __future__ import annotations

from dataclasses import dataclass, field

LINE_LENGTH = 110


@dataclass(frozen=True, slots=True)
class Line:
    """A statement, and where in the user's program it comes from."""

    text: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ForLoop:
    """`for variable in range(start, stop)` around lines and loops."""

    variable: str
    start: str
    stop: str
    body: tuple[Item, ...]
    step: str = ""
    count: int = field(default=0, repr=False, compare=False)
    """How many iterations there are at most with the shapes of this graph; 0 where that is not known."""


@dataclass(frozen=True, slots=True)
class Block:
    """`header:` around lines and loops: a choice, or a loop that goes on as long as something is true."""

    header: str
    body: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One generated function."""

    name: str
    parameters: tuple[str, ...]
    prologue: tuple[Line, ...]
    body: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Module:
    """A generated file: a header of comments, imports, functions."""

    header: tuple[str, ...]
    imports: tuple[str, ...]
    kernels: tuple[Kernel, ...]


Item = Line | ForLoop | Block
