"""A whole program in the loop IR: its arrays, and the functions that are called one after another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from pullback.tracer.errors import PullbackError

from ...tracer.forks import kept
from ...tracer.records import record
from .expressions import Buffer
from .statements import THREADS, Function, Sharing, buffers


class ProgramError(PullbackError, AssertionError):
    """A program of the loop IR is wrong, which is a defect of pullback."""

    is_defect = True


@record(frozen=True, slots=True)
class Kernel:
    """A call of a function."""

    function: Function
    numbers: tuple[int | float, ...] = ()
    """The values of its parameters that are variables, but for the bounds of a part and `THREADS`."""
    sharing: Sharing | None = None

    @property
    def shares_bodies(self) -> bool:
        """Whether threads share bodies inside of it, so that it is told how many there are."""
        return THREADS in self.function.parameters

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """What it reads and fills, in the order of its parameters."""
        return tuple(one for one in self.function.parameters if isinstance(one, Buffer))


@record(frozen=True, slots=True)
class Loan:
    """A buffer that lies in the memory of another one, so many bytes from its start."""

    buffer: Buffer
    owner: Buffer
    offset: int


@record(frozen=True)
class Program:
    """Buffers that are read and filled, and the kernels in the order in which they run."""

    inputs: tuple[Buffer, ...]
    filled: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]
    loans: tuple[Loan, ...] = ()
    growing: Mapping[Buffer, int] = field(default_factory=dict)
    """Buffers of which data decides how many rows they need: where the last buffer says so."""

    @property
    def scratch(self) -> tuple[Buffer, ...]:
        """What is filled for the kernels alone."""
        return tuple(one for one in self.filled if one.role == "scratch")

    @property
    def counts(self) -> int:
        """How many numbers of rows data decides."""
        return len({*self.growing.values()})

    def names(self, stem: str) -> list[str]:
        """What the functions are called, with this stem."""
        alone = len(self.kernels) == 1
        return [stem] if alone else [f"{stem}_{place}" for place in range(1, len(self.kernels) + 1)]

    def functions(self, stem: str) -> list[Function]:
        """The functions under these names."""
        return [replace(one.function, name=name) for one, name in zip(self.kernels, self.names(stem))]

    @kept
    def _used(self) -> list[set[Buffer]]:
        return [buffers(one.function.statements, asked=False) for one in self.kernels]

    def lifetime(self, buffer: Buffer) -> tuple[int, int]:
        """The first and the last kernel that uses a buffer's memory; an output is read behind all of them."""
        places = [place for place, used in enumerate(self._used) if buffer in used]
        is_output = buffer.role in ("output", "saved")
        first, last = (places[0], places[-1]) if places else (0, 0)
        return first, len(self.kernels) if is_output else last
