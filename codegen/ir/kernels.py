"""A whole program in the loop IR: its arrays, and the functions that are called one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pullback.tracer.errors import PullbackError
from pullback.tracer.operator import Monoid

from .expressions import Buffer
from .statements import Function


class ProgramError(PullbackError, AssertionError):
    """A program of the loop IR is wrong, which is a defect of pullback."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """How threads share a function, in parts of the iterations of its parallel loops."""

    extent: int
    """How many iterations there are in the call that was traced."""
    totals: tuple[tuple[Buffer, Monoid], ...] = ()
    """What each part adds up for itself, to be combined in the order of the parts."""
    private: tuple[Buffer, ...] = ()
    """Scratch that each part has for itself."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A call of a function."""

    function: Function
    numbers: tuple[int | float, ...] = ()
    """The values of those of its parameters that are variables, but for the bounds of a part."""
    sharing: Sharing | None = None


@dataclass(frozen=True, slots=True)
class Loan:
    """A buffer that lies in the memory of another one, so many bytes from its start."""

    buffer: Buffer
    owner: Buffer
    offset: int


@dataclass(frozen=True)
class Program:
    """Buffers that are read and filled, and the kernels in the order in which they run."""

    inputs: tuple[Buffer, ...]
    filled: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]
    loans: tuple[Loan, ...] = ()
    growing: Mapping[Buffer, int] = field(default_factory=dict)
    """Buffers of which data decides how many rows they need: where the last buffer says so."""

    def lifetime(self, buffer: Buffer) -> tuple[int, int]:
        """The first and the last kernel that has a buffer; an output is read behind all of them."""
        places = [place for place, one in enumerate(self.kernels) if buffer in one.function.parameters]
        is_output = buffer.role in ("output", "saved")
        first, last = (places[0], places[-1]) if places else (0, 0)
        return first, len(self.kernels) if is_output else last
