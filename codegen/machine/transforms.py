"""Fourier transforms in machine code: how threads share those of an array, and which function takes a part.

`transform_code.py` writes the functions, once on a machine for each kind and set of radices: lengths are
products of 2, 3, 4, 5 and 8.
"""

from __future__ import annotations

import ctypes
import functools
import math
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from ..cost.machine import Machine, this_machine
from . import transform_code as code
from . import workers
from .loading import load_llvm
from .threads import get_num_threads

LEAST_LANES, MOST_LANES = 4, 8
"""Of the vectors: more streams than 8 would leave the first-level cache."""
PARTS_OF_THREAD = 4
"""So that threads that begin late, or are slow, have less to do."""
APART = 128
"""Bytes between what threads write, a multiple of a vector's."""
ELEMENTS = {np.dtype(np.complex64): ir.FloatType(), np.dtype(np.complex128): ir.DoubleType()}


class _Part(ctypes.Structure):
    """Some of the blocks: what a thread is given. Strides count complex numbers."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in code.ADDRESSES),
        *((name, ctypes.c_int64) for name in code.COUNTS),
        *((name, ctypes.c_double) for name in code.NUMBERS),
    ]


@functools.lru_cache(maxsize=256)
def factors_of(size: int) -> tuple[int, ...] | None:
    """The radices of the passes; None if the size has other factors."""
    found = []
    for radix in (5, 3):
        while size % radix == 0:
            found.append(radix)
            size //= radix
    if size & size - 1:
        return None
    twos = size.bit_length() - 1
    count = -(-twos // 3)  # passes of at most 8, as few and as even as can be
    found += [2 ** (twos // count + (place < twos % count)) for place in range(count)]
    return tuple(sorted(found, reverse=True)) or (1,)


class Rows(NamedTuple):
    """Transforms along a dimension: how many there are, side by side in matrices or one after the other."""

    size: int
    rows: int
    matrices: int
    along: int
    """Numbers from one element of a transform to the next ..."""
    across: int
    """... and from a transform to the next."""
    lanes: int
    """Of the vectors that they are computed in: as many as the machine's have, as a pass of radix 8 fills its
    registers."""

    @property
    def lie_in_order(self) -> bool:
        return self.along == 1

    @property
    def is_by_itself(self) -> bool:
        """Whether each row is transformed alone, in vectors of its own numbers."""
        return self.lie_in_order and self.size % self.lanes**2 == 0

    @property
    def vectors(self) -> int:
        """Side by side in a block; two make better use of each page of memory."""
        return 2 if not self.lie_in_order and self.rows >= 2 * self.lanes else 1

    @property
    def in_block(self) -> int:
        return 1 if self.is_by_itself else self.lanes * self.vectors

    @property
    def radices(self) -> code.Radices:
        first, *others = self._factors
        return code.Radices(first, tuple(sorted({*others[:-1]})), others[-1] if others else None)

    @property
    def _factors(self) -> tuple[int, ...]:
        found = factors_of(self.size // self.lanes if self.is_by_itself else self.size)
        assert found is not None
        return found

    @property
    def passes_between(self) -> tuple[int, ...]:
        return self._factors[1:-1]

    def room(self, itemsize: int) -> int:
        """Bytes of the three arrays of a block, and of a number behind them."""
        return (3 * self.in_block * self.size + 1) * itemsize


class Plan(NamedTuple):
    """What calls for arrays of one shape have in common."""

    function: int
    parts: ctypes.Array[_Part]
    """Without the addresses of arrays."""
    threads: int
    room: int
    """Bytes of the room of each part."""
    tables: tuple[np.ndarray, ...]
    """Whose addresses the parts hold."""


def rows_of(shape: tuple[int, ...], dim: int, itemsize: int, machine: Machine) -> Rows:
    """The transforms along a dimension of an array that lies in order."""
    size, before, behind = shape[dim], math.prod(shape[:dim]), math.prod(shape[dim + 1 :])
    lanes = min(max(2 * machine.vector // itemsize, LEAST_LANES), MOST_LANES)
    if behind == 1:
        return Rows(size, before, 1, 1, size, lanes)
    return Rows(size, behind, before, behind, 1, lanes)


def suits(shape: tuple[int, ...], dim: int, itemsize: int) -> bool:
    """Whether transforms along a dimension are computed here: enough for vectors, and near enough.

    Args:
        shape, itemsize: of the complex numbers, half as many as real ones.
    """
    rows = rows_of(shape, dim, itemsize, this_machine())
    if not rows.size or factors_of(rows.size) is None:
        return False
    is_near = this_machine().stays_in_core(2 * rows.in_block * rows.size * itemsize)
    return (rows.is_by_itself or rows.rows >= rows.lanes) and is_near


def transform(x: np.ndarray, out: np.ndarray, dim: int, inverse: bool, scale: float) -> None:
    """The transform along a dimension, times a number, of complex numbers in order; `out` may be `x`."""
    _run(
        _planned("complex", x.dtype, x.shape, dim, inverse, scale, get_num_threads(), this_machine()), x, out
    )


def transform_real(x: np.ndarray, out: np.ndarray, scale: float) -> None:
    """The frequencies of rows of an even number of real numbers that are not negative, times a number."""
    shape, dim = (*x.shape[:-1], x.shape[-1] // 2), x.ndim - 1
    threads, machine = get_num_threads(), this_machine()
    _run(_planned("of_real", out.dtype, shape, dim, False, 0.5 * scale, threads, machine), x, out)


def transform_to_real(x: np.ndarray, out: np.ndarray, scale: float) -> None:
    """An even number of real numbers with these frequencies and their conjugates, times a number."""
    shape, dim = (*out.shape[:-1], out.shape[-1] // 2), out.ndim - 1
    threads, machine = get_num_threads(), this_machine()
    _run(_planned("to_real", x.dtype, shape, dim, True, scale, threads, machine), x, out)


def _run(plan: Plan, x: np.ndarray, out: np.ndarray) -> None:
    parts = type(plan.parts).from_buffer_copy(plan.parts)
    room = np.empty(plan.room * len(parts) + APART, np.uint8)
    from_address, to_address, first = _address(x), _address(out), -(-_address(room) // APART) * APART
    for place, part in enumerate(parts):
        part.x, part.out, part.room = from_address, to_address, first + place * plan.room
    workers.run_parts(plan.function, parts, plan.threads)


@functools.lru_cache(maxsize=256)
def _planned(
    kind: str, dtype: np.dtype, shape: tuple[int, ...], dim: int, inverse: bool, scale: float, threads: int,
    machine: Machine,
) -> Plan:  # fmt: skip
    """For an array of so many complex numbers, shared between so many threads where that pays."""
    rows = rows_of(shape, dim, dtype.itemsize, machine)
    if not machine.is_worth_sharing(nanoseconds(math.prod(shape), rows.size, dtype.itemsize)):
        threads = 1
    blocks = -(-rows.rows // rows.in_block)
    total = blocks * rows.matrices
    count = min(threads * PARTS_OF_THREAD, total) if threads > 1 else 1
    length = rows.size // rows.lanes if rows.is_by_itself else rows.size
    tables = (
        _roots(length, dtype), _crossing(rows.size, rows.lanes, dtype), _roots(2 * rows.size, dtype),
        np.array([*rows.passes_between, 0], np.int64),
    )  # fmt: skip
    from_row, to_row = (rows.across + (kind == one) for one in ("to_real", "of_real"))
    parts = (_Part * count)()
    for place in range(count):
        parts[place] = _Part(
            0, 0, *map(_address, tables), 0,
            rows.size, rows.along, from_row, to_row, rows.rows, blocks, rows.size * rows.rows,
            total * place // count, total * (place + 1) // count, scale, -1.0 if inverse else 1.0,
        )  # fmt: skip
    room = -(-rows.room(dtype.itemsize) // APART) * APART + APART
    function = _compiled(_writer(kind, rows), dtype, rows.lanes, rows.vectors, rows.radices)
    return Plan(function, parts, threads, room, tables)


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def nanoseconds(elements: int, size: int, itemsize: int) -> float:
    """What transforms of a size take, of so many complex numbers: as loops, each pass of radix 8."""
    passes = math.log(size, 8)
    return this_machine().nanoseconds_of_loop(elements * passes, 2, 12, itemsize // 2)


@functools.lru_cache(maxsize=64)
def _roots(size: int, dtype: np.dtype) -> np.ndarray:
    """The roots of unity, exp(-2 pi i k / size), right in the last digit."""
    k = np.arange(size)
    octant, rest = np.divmod(8 * k, size)  # angles up to pi / 4
    odd = octant % 2 == 1
    angle = (2 * np.pi / (8 * size)) * np.where(odd, size - rest, rest)
    cosine, sine = np.cos(angle), np.sin(angle)
    cosine, sine = np.where(odd, sine, cosine), np.where(odd, cosine, sine)
    quarter = octant // 2
    return (np.array([1, -1j, -1, 1j])[quarter] * (cosine - 1j * sine)).astype(dtype)


@functools.lru_cache(maxsize=64)
def _crossing(size: int, lanes: int, dtype: np.dtype) -> np.ndarray:
    """What the transforms in lanes are multiplied by before those across: vectors of parts, lane by lane."""
    if size % lanes**2:
        return np.empty(0, dtype)
    places = np.arange(size // lanes).reshape(-1, 1, lanes) * np.arange(lanes)[:, None]
    numbers = _roots(size, dtype)[places]
    return np.stack([numbers.real, numbers.imag], 2)


def _writer(kind: str, rows: Rows) -> str:
    """By which of `WRITERS` transforms of a kind are written."""
    if not rows.lie_in_order:
        return "columns"
    return f"row_{kind}" if rows.is_by_itself else f"rows_{kind}"


WRITERS: dict[str, type[code.Part]] = {
    "columns": code.Columns,
    "row_complex": code.Row, "row_of_real": code.RowOfReal, "row_to_real": code.RowToReal,
    "rows_complex": code.RowsSideBySide, "rows_of_real": code.RowsOfReal, "rows_to_real": code.RowsToReal,
}  # fmt: skip


@functools.cache
def _compiled(writer: str, dtype: np.dtype, lanes: int, vectors: int, radices: code.Radices) -> int:
    """The address of the function of a part."""
    name = f"pullback_transform_{writer}_{dtype.name}_{lanes}_{vectors}_{radices.name}"
    source = str(WRITERS[writer](name, ELEMENTS[dtype], lanes, vectors, radices).module)
    return load_llvm(name, source, {}, {}, [name])[name]
