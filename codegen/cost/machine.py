"""The machine that code is generated for: its caches, vectors and threads, and the questions that passes ask.

A pass that chooses loops, storage or threads asks a `Machine`, and holds no number about one. Sizes are in
bytes, times in nanoseconds and rates per nanosecond (so a bandwidth is in GB/s), all of one core. Caches,
vectors and cores are read from the system (`system.py`). The time that threads take to begin is measured
(`machine/waking.py`), and how fast it computes beside the reference machine (`machine/rates.py`), of which
the rates were chosen by what its benchmarks gain.

A process has one machine, so a cache in memory needs in its keys at most which one is assumed in its place;
on disk the key is the generated text.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from typing import Any

from pullback.tracer.ops.elementwise import TRANSCENDENTAL

from ...tracer.records import record
from . import system

EXPENSIVE = TRANSCENDENTAL
"""Multiplications per element from which a value is worth a place in the cache, not a second computation."""
LEAST_HAND_OVER, MOST_HAND_OVER = 20_000.0, 80_000.0
"""Work is never shared among threads below, and always above, whatever a busy machine measures."""
LEAST_AGAIN = 8_000.0
"""The same of work that is done again before the other thread sleeps: to hand it over takes 1 to 2 us."""
MOST_SPARED = 2
"""Of the three times that a value which is kept moves between memory and processor."""
NUMBER = 8
"""Bytes of a number in double precision, in which rates and vectors are counted."""


@record(frozen=True)
class Gemm:
    """What a call of BLAS takes, in double precision and one thread: SciPy's OpenBLAS, in nanoseconds."""

    call: float = 100.0
    """By itself: 60 to 150, more on older processors."""
    multiplication: float = 0.03
    """0.02 to 0.05."""
    element: float = 0.15
    """Of an operand or the result, which the call packs or updates, and which must be in memory."""
    element_beyond_cache: float = 0.3
    """In addition, of a result that exceeds the second-level cache: it is written more than once."""
    large: int = 32**3
    """Multiplications in a call from which summing over several calls costs less than copying an operand."""
    bytes_multiplied: float = 150.0
    """Bytes of numbers multiplied in a nanosecond, packing and all, where a product is worth threads."""


@record(frozen=True)
class Loops:
    """Nanoseconds that a multiplication of a product of matrices takes in loops, in double precision."""

    summed: float = 0.08
    """In loops that sum contiguous elements, or that are unrolled over a few summed ones: 0.05 to 0.1."""
    into_rows: float = 0.13
    """In loops that load and store a row of the result for each summed index: 0.1 to 0.2."""
    alone: float = 0.5
    """In loops that do not vectorise, of numbers of any size."""
    begun: float = 5.0
    """Before and behind the vectors of a loop, whatever it computes."""


@record(frozen=True)
class Machine:
    """A processor, its memory and its threads; by default the reference machine, two cores of an AMD Zen 5.

    >>> REFERENCE.stays_near(32768), REFERENCE.stays_near(65536)
    (True, False)
    """

    first_level: int = 48 << 10
    """Bytes of the first-level data cache of a core."""
    second_level: int = 1 << 20
    """Of the second-level cache of a core."""
    last_level: int = 32 << 20
    """Of the largest cache, which cores share."""
    line: int = 64
    """Of a line of a cache."""
    vector: int = 64
    """Of the longest vector."""
    cores: int = 2
    """That this process may use."""
    hand_over: float | None = 60_000.0
    """Nanoseconds until a sleeping thread begins with what it is given; None: measured when asked for."""
    multiplications: float = 50.0
    """In a nanosecond, in a loop of vectors: two vectors in each cycle of 3 GHz."""
    access: float = 0.1
    """Nanoseconds to load or store a number in double precision in such a loop, whichever cache it is in."""
    keeping: float = 0.48
    """Nanoseconds to store a number in one nest and to load it in another, where it stays near meanwhile."""
    memory_bandwidth: float = 20.0
    """Bytes of memory that are read or written in a nanosecond."""
    planning: float = 4_000.0
    """Nanoseconds for which Python plans a call."""
    gemm: Gemm = Gemm()
    loops: Loops = Loops()

    def at_rates(self, arithmetic: float, access: float) -> Machine:
        """A machine that multiplies so many times as fast, and reads and writes its first cache."""
        gemm, loops = self.gemm, self.loops
        return replace(
            self,
            multiplications=self.multiplications * arithmetic,
            access=self.access / access,
            keeping=self.keeping / access,
            gemm=replace(
                gemm,
                multiplication=gemm.multiplication / arithmetic,
                bytes_multiplied=gemm.bytes_multiplied * arithmetic,
                element=gemm.element / access,
            ),
            loops=replace(
                loops,
                summed=loops.summed / arithmetic,
                into_rows=loops.into_rows / access,
                alone=loops.alone / arithmetic,
            ),
        )

    # --- caches ---------------------------------------------------------------------------------------------

    def stays_near(self, nbytes: int) -> bool:
        """Whether a value is still in the first-level cache when the next loops read it.

        Two thirds of that cache: the rest holds what else these loops walk.
        """
        return nbytes <= self._near

    def is_worth_lending(self, nbytes: int) -> bool:
        """Whether an array had better lie in the memory of another: what stays near costs no less there."""
        return nbytes >= self._near

    @property
    def _near(self) -> int:
        return self.first_level * 2 // 3

    def is_free_for_each_part(self, nbytes: int) -> bool:
        """Whether scratch of a part of a loop costs nothing, so that there may be more parts than threads.

        A third of the first-level cache, next to what stays near.
        """
        return nbytes <= self.first_level // 3

    def stays_until_backward(self, nbytes: int) -> bool:
        """Whether a saved value is still in the cache of its core when the backward function reads it."""
        return nbytes <= self.second_level

    def stays_in_core(self, nbytes: int) -> bool:
        """Whether what is walked again and again stays in the caches of a core."""
        return nbytes <= self.second_level

    @property
    def block_bytes(self) -> int:
        """Of a block that is read twice in a row: an eighth of the second-level cache."""
        return self.second_level // 8

    def is_large_table(self, numbers: int) -> bool:
        """Whether a table that is read again and again takes more than a sixteenth of that cache."""
        return numbers * NUMBER > self.second_level // 16

    def leaves_caches_when_written(self, nbytes: int) -> bool:
        """Whether an output pushes scratch out of the caches: it fills an eighth of the last, shared one."""
        return nbytes >= self.last_level // 8

    def is_read_from_memory_twice(self, nbytes: int) -> bool:
        """Whether a second pass over an array finds none of it in a cache: it exceeds half of the last."""
        return nbytes > self.last_level // 2

    @property
    def alignment(self) -> int:
        """At which arrays begin: neither lines nor vectors are shared with what lies before."""
        return max(self.line, self.vector)

    @property
    def lanes(self) -> int:
        """How many numbers in double precision a vector holds."""
        return self.vector // NUMBER

    @property
    def rows_of_block(self) -> int:
        """Rows of a block that one loop after another walks: eight vectors, which stay near meanwhile."""
        return 8 * self.lanes

    # --- arithmetic against memory --------------------------------------------------------------------------

    def multiplications_to_keep(self, nbytes: int, spared: int = 0) -> float:
        """How many multiplications an element is worth that is kept, and not computed again in another nest.

        As many as fit in the time to keep it: in memory, to write it, which fetches its line, and to read it,
        less what that nest is spared of reading and fetching then.
        """
        in_memory = (3 - min(spared, MOST_SPARED)) * NUMBER / self.memory_bandwidth
        return self.multiplications * (self.keeping if self.stays_near(nbytes) else in_memory)

    def is_worth_loading(self, effort: int, loads: int, rounds: int, nbytes: int) -> bool:
        """Whether a value that each round of a loop computes had better be stored in front of them.

        It takes some multiplications and loads, and must save as much as two loads in each round.
        """
        load = self.multiplications * self.access
        saved = effort + (loads - 1) * load
        return saved >= 2 * load and (rounds - 1) * saved >= self.multiplications_to_keep(nbytes)

    def nanoseconds_of_short_row(self, count: int, loops: int, effort: int, itemsize: int) -> float:
        """What a row of few elements takes in loops over it, each of which has a share of the arithmetic.

        It fills some vectors, and what remains is computed one element at a time, which takes as long as a
        vector each.
        """
        lanes = self.vector // itemsize
        filled = (count // lanes + count % lanes) * lanes
        return loops * self.loops.begun + filled * self._each(effort, itemsize)

    def nanoseconds_by_columns(self, count: int, accesses: int, effort: int, itemsize: int) -> float:
        """The same where vectors hold elements of neighbouring rows, which arrays have far apart."""
        return count * (self._each(effort, itemsize) + accesses * self.access)

    def _each(self, effort: int, itemsize: int) -> float:
        return self.nanoseconds_of_arithmetic(effort) * itemsize / NUMBER

    def nanoseconds_of_loop(self, elements: float, accesses: int, arithmetic: int, itemsize: int) -> float:
        """What a loop in vectors takes whose elements need some accesses and multiplications each."""
        each = accesses * self.access + arithmetic / self.multiplications
        return elements * each * itemsize / NUMBER  # vectors hold more of smaller numbers

    def nanoseconds_of_arithmetic(self, multiplications: float) -> float:
        """What calls take that do nothing but compute."""
        return multiplications / self.multiplications

    # --- products of matrices -------------------------------------------------------------------------------

    def nanoseconds_of_gemm(self, rows: int, columns: int, summed: int, itemsize: int) -> float:
        """What a call of BLAS takes for a product of matrices (rows, summed) and (summed, columns)."""
        result, operands = rows * columns, (rows + columns) * summed
        time = self.gemm.multiplication * result * summed + self.gemm.element * (result + operands)
        if result * NUMBER > self.second_level:
            time += self.gemm.element_beyond_cache * result
        return self.gemm.call + time * itemsize / NUMBER

    def is_worth_several_calls(self, multiplications: int) -> bool:
        """Whether to sum over calls of so many each costs less than to copy an operand for a single one."""
        return multiplications >= self.gemm.large

    def nanoseconds_of_large_gemm(self, multiplications: float, itemsize: int) -> float:
        """What a product takes that is large enough for threads, in one of them."""
        return multiplications * itemsize / self.gemm.bytes_multiplied

    def nanoseconds_of_sums(self, multiplications: int, itemsize: int = NUMBER) -> float:
        """What products take in loops that sum contiguous elements, or over few summed ones."""
        return multiplications * self.loops.summed * itemsize / NUMBER

    def nanoseconds_into_rows(self, multiplications: int, itemsize: int) -> float:
        """What products take in loops over rows of the result, for each summed index."""
        return multiplications * self.loops.into_rows * itemsize / NUMBER

    def nanoseconds_alone(self, multiplications: int) -> float:
        """What products take in loops that do not vectorise."""
        return multiplications * self.loops.alone

    # --- calls of Python ------------------------------------------------------------------------------------

    def is_worth_preparing(self, nanoseconds: float) -> bool:
        """Whether a call of Python does enough work to plan it, and to hand it over to code of its own."""
        return nanoseconds >= self.planning

    # --- threads --------------------------------------------------------------------------------------------

    def may_begin_sharing(self, nanoseconds: float) -> bool:
        """Whether a loop may be the first of those that threads share: it has a fifth of the least work."""
        return nanoseconds >= LEAST_HAND_OVER / 5

    def is_worth_sharing(self, nanoseconds: float, times: int = 1) -> bool:
        """Whether work that is done so many times in a row gains by another thread.

        Whoever has work for T is done after (T + L) / 2 with a thread that begins after L: sharing never
        loses time where T is more than L, and halves it where the thread is awake. It sleeps the first time
        only.
        """
        least = LEAST_HAND_OVER if times == 1 else LEAST_AGAIN
        return nanoseconds > least and nanoseconds * times > self._hand_over

    @property
    def _hand_over(self) -> float:
        if self.cores == 1:
            return MOST_HAND_OVER
        found = self.hand_over
        if found is None:
            from ..machine.waking import hand_over  # threads, which take LLVM

            found = hand_over()
        return min(max(LEAST_HAND_OVER, found), MOST_HAND_OVER)


REFERENCE = Machine()
"""What tests and golden files are generated for, and where the numbers were measured that no system tells."""

_assumed: ContextVar[Machine | None] = ContextVar("machine", default=None)


def this_machine() -> Machine:
    """The machine that code is generated for: that which runs this, or the reference machine, as in tests.

    `PULLBACK_MACHINE=reference` in the environment asks for the latter, so that text is the same everywhere.
    """
    return _assumed.get() or _own_machine()


def assumed_machine() -> Machine | None:
    """The one that `assuming` has put in the place of this one."""
    return _assumed.get()


@cache
def _own_machine() -> Machine:
    if wanted := os.environ.get("PULLBACK_MACHINE"):
        if wanted != "reference":
            raise ValueError(f"PULLBACK_MACHINE: 'reference' expected, or nothing, found {wanted!r}.")
        return REFERENCE
    from ..machine.rates import rates  # which are kept on disk

    known: dict[str, Any] = {**system.facts()}
    return replace(REFERENCE, hand_over=None, **known).at_rates(**rates())


@contextlib.contextmanager
def assuming(machine: Machine) -> Iterator[None]:
    """Code is generated for another machine; programs that are made before keep theirs.

    >>> with assuming(replace(REFERENCE, first_level=32 << 10)):
    ...     source = compile(f).source(x)
    """
    token = _assumed.set(machine)
    try:
        yield
    finally:
        _assumed.reset(token)
