"""Fourier transforms of several rows at once, in machine code: each lane of a vector holds another row.

Stockham's algorithm (Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992, section 1.7)
between two small arrays that stay in the caches, for lengths that are products of 2, 3, 4 and 5. A block of
transforms is read into the first array, its real and imaginary parts apart; threads share the blocks. Lanes
lie side by side in memory where the transform is along another dimension than the last one. A row of real
numbers is taken for half as many complex ones, whose spectrum tells that of the row (section 4.3).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from llvmlite import ir

from ..cost.machine import this_machine
from . import workers
from .loading import load_llvm
from .threads import get_num_threads

LANES_APART, LANES_TOGETHER = 8, 16
"""Transforms that are computed side by side: more streams than 8 would leave the first-level cache."""
RADICES = (4, 5, 3, 2)
"""Factors that have a pass of their own; those in front are divided out first."""
_INT64, _INT32, _BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
_POINTER = _BYTE.as_pointer()
PARTS_OF_THREAD = 4
"""So that threads that begin late, or are slow, have less to do."""
APART = 128
"""Bytes between what threads write, a multiple of a vector's."""
ELEMENTS = {np.dtype(np.complex64): ir.FloatType(), np.dtype(np.complex128): ir.DoubleType()}


_ADDRESSES = ("x", "out", "table", "halves", "passes", "room")
_COUNTS = ("size", "along", "from_row", "to_row", "rows", "blocks", "matrix", "start", "stop", "inverse")


class _Part(ctypes.Structure):
    """Some of the blocks: what a thread is given. Strides count complex numbers."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in _ADDRESSES),
        *((name, ctypes.c_int64) for name in _COUNTS),
        ("scale", ctypes.c_double),
    ]


def factors_of(size: int) -> tuple[int, ...] | None:
    """The radices of the passes; None if the size has other factors."""
    found = []
    for radix in RADICES:
        while size % radix == 0:
            found.append(radix)
            size //= radix
    return tuple(found) if size == 1 else None


class Rows(NamedTuple):
    """Transforms along a dimension: how many there are, side by side in matrices or one after the other."""

    size: int
    rows: int
    matrices: int
    along: int
    """Numbers from one element of a transform to the next ..."""
    across: int
    """... and from a transform to the next."""

    @property
    def lanes(self) -> int:
        together = self.across == 1 and self.rows >= LANES_TOGETHER
        return LANES_TOGETHER if together else LANES_APART

    def room(self, itemsize: int) -> int:
        """Bytes of the two arrays of a block."""
        return 2 * self.lanes * self.size * itemsize


class Plan(NamedTuple):
    """What calls for arrays of one shape have in common."""

    function: int
    parts: ctypes.Array[_Part]
    """Without the addresses of arrays."""
    room: int
    """Bytes of the room of each part."""
    tables: tuple[np.ndarray, ...]
    """Whose addresses the parts hold."""


def rows_of(shape: tuple[int, ...], dim: int) -> Rows:
    """The transforms along a dimension of an array that lies in order."""
    size, before, behind = shape[dim], math.prod(shape[:dim]), math.prod(shape[dim + 1 :])
    return Rows(size, before, 1, 1, size) if behind == 1 else Rows(size, behind, before, behind, 1)


def suits(shape: tuple[int, ...], dim: int, itemsize: int) -> bool:
    """Whether transforms along a dimension are computed here: several, short enough to stay in the caches.

    Args:
        shape, itemsize: of the complex numbers, half as many as real ones.
    """
    rows = rows_of(shape, dim)
    is_near = this_machine().stays_in_core(rows.room(itemsize))
    return rows.rows >= LANES_APART and is_near and factors_of(rows.size) is not None


def transform(x: np.ndarray, out: np.ndarray, dim: int, inverse: bool, scale: float) -> None:
    """The transform along a dimension, times a number, of complex numbers in order; `out` may be `x`."""
    rows = rows_of(x.shape, dim)
    _run("complex", x, out, rows, rows.across, rows.across, inverse, scale)


def transform_real(x: np.ndarray, out: np.ndarray, scale: float) -> None:
    """The frequencies of rows of an even number of real numbers that are not negative, times a number."""
    half = x.shape[-1] // 2
    rows = Rows(half, x.size // x.shape[-1], 1, 1, half)
    _run("of_real", x, out, rows, half, half + 1, False, 0.5 * scale)


def transform_to_real(x: np.ndarray, out: np.ndarray, scale: float) -> None:
    """An even number of real numbers with these frequencies and their conjugates, times a number."""
    half = out.shape[-1] // 2
    rows = Rows(half, out.size // out.shape[-1], 1, 1, half)
    _run("to_real", x, out, rows, half + 1, half, True, scale)


def _run(
    kind: str, x: np.ndarray, out: np.ndarray, rows: Rows, from_row: int, to_row: int, inverse: bool,
    scale: float,
) -> None:  # fmt: skip
    dtype = x.dtype if x.dtype.kind == "c" else out.dtype
    elements = rows.size * rows.rows * rows.matrices
    is_shared = this_machine().is_worth_sharing(nanoseconds(elements, rows.size, dtype.itemsize))
    threads = get_num_threads() if is_shared else 1
    plan = _planned(kind, dtype, rows, from_row, to_row, inverse, scale, threads)
    parts = type(plan.parts).from_buffer_copy(plan.parts)
    room = np.empty(plan.room * len(parts) + APART, np.uint8)
    from_address, to_address, first = _address(x), _address(out), -(-_address(room) // APART) * APART
    for place, part in enumerate(parts):
        part.x, part.out, part.room = from_address, to_address, first + place * plan.room
    workers.run_parts(plan.function, parts, threads)


@functools.lru_cache(maxsize=256)
def _planned(
    kind: str, dtype: np.dtype, rows: Rows, from_row: int, to_row: int, inverse: bool, scale: float,
    threads: int,
) -> Plan:  # fmt: skip
    blocks = -(-rows.rows // rows.lanes)
    total = blocks * rows.matrices
    count = min(threads * PARTS_OF_THREAD, total) if threads > 1 else 1
    tables = _table(rows.size, dtype), _table(2 * rows.size, dtype), _passes(rows.size)
    parts = (_Part * count)()
    for place in range(count):
        parts[place] = _Part(
            0, 0, *map(_address, tables), 0,
            rows.size, rows.along, from_row, to_row, rows.rows, blocks, rows.size * rows.rows,
            total * place // count, total * (place + 1) // count, inverse, scale,
        )  # fmt: skip
    return Plan(_compiled(kind, dtype, rows.lanes), parts, rows.room(dtype.itemsize) + APART, tables)


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def nanoseconds(elements: int, size: int, itemsize: int) -> float:
    """What transforms of a size take, of so many complex numbers: as loops, each pass of radix 4."""
    passes = math.log(size, 4)
    return this_machine().nanoseconds_of_loop(elements * passes, 4, 9, itemsize // 2)


@functools.lru_cache(maxsize=64)
def _table(size: int, dtype: np.dtype) -> np.ndarray:
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
def _passes(size: int) -> np.ndarray:
    """The radices, and a zero behind them."""
    return np.array([*(factors_of(size) or ()), 0], np.int64)


@functools.cache
def _compiled(kind: str, dtype: np.dtype, lanes: int) -> int:
    """The address of the function of a part."""
    name = f"pullback_transform_{kind}_{dtype.name}_{lanes}"
    source = str(WRITERS[kind](name, ELEMENTS[dtype], lanes).module)
    return load_llvm(name, source, {}, {}, [name])[name]


Vector = tuple[ir.Value, ir.Value]
"""Real and imaginary parts of complex numbers."""


class _Writer:
    """Writes the function of a part."""

    def __init__(self, name: str, element: ir.Type, lanes: int) -> None:
        self.module = ir.Module(name)
        self.element, self.lanes = element, lanes
        self.alignment = 8 if element == ir.DoubleType() else 4
        self.vector = ir.VectorType(element, self.lanes)
        self.number = ir.VectorType(element, 2)
        self.function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [_POINTER]), name)
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        kinds = [*[_POINTER] * len(_ADDRESSES), *[_INT64] * len(_COUNTS), ir.DoubleType()]
        part = self.builder.bitcast(self.function.args[0], ir.LiteralStructType(kinds).as_pointer())
        self.given = {
            one: self.builder.load(self.builder.gep(part, [_INT32(0), _INT32(place)]))
            for place, one in enumerate((*_ADDRESSES, *_COUNTS, "scale"))
        }
        self.size = self.given["size"]
        self._write()
        self.builder.ret_void()

    def _write(self) -> None:
        builder, given = self.builder, self.given
        scale = given["scale"]
        if self.element != ir.DoubleType():
            scale = builder.fptrunc(scale, self.element)
        self.scale = self._spread(scale)
        vectors = builder.bitcast(given["room"], self.vector.as_pointer())
        self.parts = [builder.gep(vectors, [builder.mul(self.size, _INT64(k))]) for k in range(4)]
        is_inverse = builder.icmp_signed("!=", given["inverse"], _INT64(0))  # forward, with parts exchanged
        named = [builder.select(is_inverse, self.parts[k ^ 1], self.parts[k]) for k in range(4)]
        with self._counted(given["start"], given["stop"]) as block:
            base = builder.mul(builder.sdiv(block, given["blocks"]), given["matrix"])
            first = builder.mul(builder.srem(block, given["blocks"]), _INT64(self.lanes))
            self._read(base, first, named[:2])
            is_second = builder.icmp_signed("!=", self._passes(), _INT64(0))
            self._give(base, first, [builder.select(is_second, named[2 + k], named[k]) for k in range(2)])

    def _read(self, base: ir.Value, first: ir.Value, parts: list[ir.Value]) -> None:
        offsets = self._offsets(base, first, "from_row")
        with self.builder.if_else(self._are_together(first, "from_row")) as (together, apart):
            with together:
                self._read_together(offsets[0], parts)
            with apart:
                self._read_apart(offsets, parts)

    def _give(self, base: ir.Value, first: ir.Value, parts: list[ir.Value]) -> None:
        offsets = self._offsets(base, first, "to_row")
        with self.builder.if_else(self._are_together(first, "to_row")) as (together, apart):
            with together:
                self._write_together(offsets[0], parts)
            with apart:
                self._write_apart(offsets, parts)

    def _offsets(self, base: ir.Value, first: ir.Value, distance: str) -> list[ir.Value]:
        """Where the row of each lane begins; lanes behind the last row hold that as well."""
        builder = self.builder
        last = builder.sub(self.given["rows"], _INT64(1))
        rows = [builder.add(first, _INT64(lane)) for lane in range(self.lanes)]
        rows = [builder.select(builder.icmp_signed("<", row, last), row, last) for row in rows]
        return [builder.add(base, builder.mul(row, self.given[distance])) for row in rows]

    def _are_together(self, first: ir.Value, distance: str) -> ir.Value:
        builder = self.builder
        behind = builder.add(first, _INT64(self.lanes))
        are_whole = builder.icmp_signed("<=", behind, self.given["rows"])
        return builder.and_(are_whole, builder.icmp_signed("==", self.given[distance], _INT64(1)))

    # --- between memory and lanes -------------------------------------------------------------------------

    def _numbers(self, name: str, kind: ir.Type, offset: ir.Value, place: ir.Value) -> ir.Value:
        """The address of what begins at a complex number."""
        position = self.builder.add(offset, self.builder.mul(place, self.given["along"]))
        numbers = self.builder.bitcast(self.given[name], self.number.as_pointer())
        return self.builder.bitcast(self.builder.gep(numbers, [position]), kind.as_pointer())

    def _read_together(self, offset: ir.Value, parts: list[ir.Value]) -> None:
        wide = ir.VectorType(self.element, 2 * self.lanes)
        with self._counted(_INT64(0), self.size) as place:
            both = self._load(self._numbers("x", wide, offset, place))
            for k in range(2):
                self._store(self._shuffled(both, both, range(k, 2 * self.lanes, 2)), parts[k], place)

    def _write_together(self, offset: ir.Value, parts: list[ir.Value]) -> None:
        wide = ir.VectorType(self.element, 2 * self.lanes)
        with self._counted(_INT64(0), self.size) as place:
            re, im = (self.builder.fmul(self._at(part, place), self.scale) for part in parts)
            both = self._shuffled(re, im, [k // 2 + self.lanes * (k % 2) for k in range(2 * self.lanes)])
            self._save(both, self._numbers("out", wide, offset, place))

    def _read_apart(self, offsets: list[ir.Value], parts: list[ir.Value]) -> None:
        with self._counted(_INT64(0), self.size) as place:
            self._store_number(self._gathered(offsets, place), parts, place)

    def _gathered(self, offsets: list[ir.Value], place: ir.Value) -> Vector:
        """The numbers of all lanes at a place of their rows."""
        pieces = [self._load(self._numbers("x", self.number, one, place)) for one in offsets]
        return self._joined(pieces, 0), self._joined(pieces, 1)

    def _joined(self, pieces: list[ir.Value], k: int) -> ir.Value:
        """One part of all lanes' numbers."""
        pairs = [self._shuffled(a, b, (k, 2 + k)) for a, b in zip(pieces[::2], pieces[1::2])]
        while len(pairs) > 1:
            count = 2 * pairs[0].type.count
            pairs = [self._shuffled(a, b, range(count)) for a, b in zip(pairs[::2], pairs[1::2])]
        return pairs[0]

    def _write_apart(self, offsets: list[ir.Value], parts: list[ir.Value]) -> None:
        with self._counted(_INT64(0), self.size) as place:
            re, im = (self.builder.fmul(self._at(part, place), self.scale) for part in parts)
            self._scatter((re, im), offsets, place)

    def _scatter(self, numbers: Vector, offsets: list[ir.Value], place: ir.Value) -> None:
        for lane, offset in enumerate(offsets):
            number = self._shuffled(*numbers, (lane, self.lanes + lane))
            self._save(number, self._numbers("out", self.number, offset, place))

    # --- passes -------------------------------------------------------------------------------------------

    def _passes(self) -> ir.Value:
        """All passes, from one array to the other; which of them holds the result."""
        builder = self.builder
        before = builder.block
        head, body, end = (builder.append_basic_block(name) for name in ("pass", "radix", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        number, which, step, left = (builder.phi(_INT64) for _ in range(4))
        for phi, first in zip((number, which, step, left), (_INT64(0), _INT64(0), _INT64(1), self.size)):
            phi.add_incoming(first, before)
        radices = builder.bitcast(self.given["passes"], _INT64.as_pointer())
        radix = builder.load(builder.gep(radices, [number]))
        builder.cbranch(builder.icmp_signed("!=", radix, _INT64(0)), body, end)
        builder.position_at_end(body)
        is_second = builder.icmp_signed("!=", which, _INT64(0))
        source, target = (
            [builder.select(is_second, self.parts[one ^ 2], self.parts[one]) for one in ones]
            for ones in ((0, 1), (2, 3))
        )
        count = builder.sdiv(left, radix)
        after = builder.append_basic_block("after")
        switch = builder.switch(radix, after)
        for one in RADICES:
            block = builder.append_basic_block(f"radix_{one}")
            switch.add_case(_INT64(one), block)
            builder.position_at_end(block)
            self._pass(one, source, target, step, count)
            builder.branch(after)
        builder.position_at_end(after)
        following = (
            builder.add(number, _INT64(1)), builder.sub(_INT64(1), which), builder.mul(step, radix), count,
        )  # fmt: skip
        for phi, value in zip((number, which, step, left), following):
            phi.add_incoming(value, after)
        builder.branch(head)
        builder.position_at_end(end)
        return which

    def _pass(
        self, radix: int, source: list[ir.Value], target: list[ir.Value], step: ir.Value, count: ir.Value
    ) -> None:
        """From `radix` transforms of the same length one that is so many times as long, `step` times."""
        builder = self.builder
        with self._counted(_INT64(0), count) as p:
            places = (builder.mul(builder.mul(p, step), _INT64(k)) for k in range(1, radix))
            twiddles = [self._root("table", place) for place in places]
            with self._counted(_INT64(0), step) as q:
                values = []
                for j in range(radix):
                    row = builder.add(p, builder.mul(count, _INT64(j)))
                    place = builder.add(q, builder.mul(step, row))
                    values.append((self._at(source[0], place), self._at(source[1], place)))
                found = self._small_transform(values)
                for k, value in enumerate(found):
                    row = builder.add(builder.mul(p, _INT64(radix)), _INT64(k))
                    place = builder.add(q, builder.mul(step, row))
                    turned = self._product(value, twiddles[k - 1]) if k else value
                    self._store_number(turned, target, place)

    def _root(self, table: str, place: ir.Value) -> Vector:
        """A root of unity, in all lanes."""
        builder = self.builder
        first = builder.mul(place, _INT64(2))
        numbers = builder.bitcast(self.given[table], self.element.as_pointer())
        re, im = (builder.load(builder.gep(numbers, [builder.add(first, _INT64(k))])) for k in range(2))
        return self._spread(re), self._spread(im)

    def _small_transform(self, x: list[Vector]) -> list[Vector]:
        """Of as many numbers as the radix."""
        if len(x) == 2:
            return [self._sum(*x), self._difference(*x)]
        if len(x) == 4:
            even = self._small_transform(x[::2])
            first, (re, im) = self._small_transform(x[1::2])
            turned = im, self.builder.fneg(re)  # times -i
            return [
                self._sum(even[0], first),
                self._sum(even[1], turned),
                self._difference(even[0], first),
                self._difference(even[1], turned),
            ]
        return self._odd_transform(x)

    def _odd_transform(self, x: list[Vector]) -> list[Vector]:
        radix, half = len(x), len(x) // 2
        sums = [self._sum(x[j], x[radix - j]) for j in range(1, half + 1)]
        differences = [self._difference(x[j], x[radix - j]) for j in range(1, half + 1)]
        found = [functools.reduce(self._sum, sums, x[0])] + [x[0]] * (radix - 1)
        for k in range(1, half + 1):
            even, odd = x[0], None
            for j in range(1, half + 1):
                angle = 2 * math.pi * (j * k % radix) / radix
                even = self._sum(even, self._scaled(sums[j - 1], math.cos(angle)))
                term = self._scaled(differences[j - 1], math.sin(angle))
                odd = term if odd is None else self._sum(odd, term)
            assert odd is not None
            turned = odd[1], self.builder.fneg(odd[0])
            found[k], found[radix - k] = self._sum(even, turned), self._difference(even, turned)
        return found

    # --- arithmetic of vectors ----------------------------------------------------------------------------

    def _sum(self, a: Vector, b: Vector) -> Vector:
        return self._fadd(a[0], b[0]), self._fadd(a[1], b[1])

    def _difference(self, a: Vector, b: Vector) -> Vector:
        return self.builder.fsub(a[0], b[0], CONTRACT), self.builder.fsub(a[1], b[1], CONTRACT)

    def _product(self, a: Vector, b: Vector) -> Vector:
        times = functools.partial(self.builder.fmul, flags=CONTRACT)
        re = self.builder.fsub(times(a[0], b[0]), times(a[1], b[1]), CONTRACT)
        return re, self._fadd(times(a[0], b[1]), times(a[1], b[0]))

    def _scaled(self, a: Vector, factor: float) -> Vector:
        return self._times(a, self._spread(self.element(factor)))

    def _times(self, a: Vector, factor: ir.Value) -> Vector:
        return self.builder.fmul(a[0], factor, CONTRACT), self.builder.fmul(a[1], factor, CONTRACT)

    def _fadd(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.fadd(a, b, CONTRACT)

    def _spread(self, number: ir.Value) -> ir.Value:
        """The number in all lanes."""
        single = self.builder.insert_element(ir.Constant(self.vector, ir.Undefined), number, _INT32(0))
        return self._shuffled(single, single, [0] * self.lanes)

    def _shuffled(self, a: ir.Value, b: ir.Value, places: range | list[int] | tuple[int, ...]) -> ir.Value:
        mask = ir.Constant(ir.VectorType(_INT32, len(places)), [*places])
        return self.builder.shuffle_vector(a, b, mask)

    # --- memory and loops ---------------------------------------------------------------------------------

    def _at(self, part: ir.Value, place: ir.Value) -> ir.Value:
        return self.builder.load(self.builder.gep(part, [place]))

    def _store(self, value: ir.Value, part: ir.Value, place: ir.Value) -> None:
        self.builder.store(value, self.builder.gep(part, [place]))

    def _store_number(self, number: Vector, parts: list[ir.Value], place: ir.Value) -> None:
        for value, part in zip(number, parts):
            self._store(value, part, place)

    def _load(self, address: ir.Value) -> ir.Value:
        return self.builder.load(address, align=self.alignment)

    def _save(self, value: ir.Value, address: ir.Value) -> None:
        self.builder.store(value, address, align=self.alignment)

    @contextlib.contextmanager
    def _counted(self, start: ir.Value, stop: ir.Value) -> Iterator[ir.Value]:
        """The body of a loop over integers."""
        builder = self.builder
        before = builder.block
        head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(_INT64)
        index.add_incoming(start, before)
        builder.cbranch(builder.icmp_signed("<", index, stop), body, end)
        builder.position_at_end(body)
        yield index
        index.add_incoming(builder.add(index, _INT64(1)), builder.block)
        builder.branch(head)
        builder.position_at_end(end)


class _OfReal(_Writer):
    """Writes the same for rows of real numbers, taken for half as many complex ones, z."""

    def _give(self, base: ir.Value, first: ir.Value, parts: list[ir.Value]) -> None:
        """(z[k] + z[-k]*) / 2 is the spectrum of even places, (z[k] - z[-k]*) / 2i that of odd ones."""
        builder, offsets = self.builder, self._offsets(base, first, "to_row")
        with self._counted(_INT64(0), builder.add(builder.sdiv(self.size, _INT64(2)), _INT64(1))) as k:
            is_first = builder.icmp_signed("==", k, _INT64(0))
            opposite = builder.sub(self.size, k)
            other = builder.select(is_first, k, opposite)
            one = self._at(parts[0], k), self._at(parts[1], k)
            conjugate = self._at(parts[0], other), builder.fneg(self._at(parts[1], other))
            even = self._times(self._sum(one, conjugate), self.scale)
            odd = self._times(self._difference(one, conjugate), self.scale)
            re, im = self._product(odd, self._root("halves", k))
            turned = im, builder.fneg(re)
            self._scatter(self._sum(even, turned), offsets, k)
            re, im = self._difference(even, turned)
            self._scatter((re, builder.fneg(im)), offsets, opposite)


class _ToReal(_Writer):
    """Writes the same for what gives rows of real numbers, as half as many complex ones."""

    def _read(self, base: ir.Value, first: ir.Value, parts: list[ir.Value]) -> None:
        """Of the first and the last frequency the imaginary part counts as 0."""
        builder, offsets = self.builder, self._offsets(base, first, "from_row")
        (lowest, _), (highest, _) = (self._gathered(offsets, place) for place in (_INT64(0), self.size))
        ends = self._fadd(lowest, highest), builder.fsub(lowest, highest, CONTRACT)
        self._store_number(ends, parts, _INT64(0))
        with self._counted(_INT64(1), self.size) as k:
            one = self._gathered(offsets, k)
            re, im = self._gathered(offsets, builder.sub(self.size, k))
            conjugate = re, builder.fneg(im)
            cosine, sine = self._root("halves", k)
            odd = self._product(self._difference(one, conjugate), (cosine, builder.fneg(sine)))
            turned = builder.fneg(odd[1]), odd[0]
            self._store_number(self._sum(self._sum(one, conjugate), turned), parts, k)


WRITERS = {"complex": _Writer, "of_real": _OfReal, "to_real": _ToReal}
CONTRACT = ("contract",)
"""Products and sums may be one instruction."""
