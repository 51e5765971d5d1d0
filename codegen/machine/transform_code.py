"""The code of Fourier transforms: LLVM functions that transform some of the rows of an array.

Stockham's algorithm (Van Loan, Computational Frameworks for the Fast Fourier Transform, 1992, section 1.7):
the first pass reads from memory, the last one writes there, and in between numbers lie in two buffers that
stay in the caches. Each lane of a vector holds another transform, where several lie side by side (`Columns`)
or have a length that leaves no other way (`RowsSideBySide`). A row whose length is a multiple of the square
of the number of lanes (`Row`) is transforms of every so many numbers, one in each lane, and then short ones
across the lanes (section 3.3). A row of real numbers is taken for half as many complex ones, whose spectrum
tells that of the row (section 4.3).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from llvmlite import ir

from .butterflies import INT32, INT64, POINTER, Butterflies, Complex

ADDRESSES = ("x", "out", "roots", "crossing", "halves", "passes", "room")
COUNTS = ("size", "along", "from_row", "to_row", "rows", "blocks", "matrix", "start", "stop")
NUMBERS = ("scale", "sign")
"""What a part is given: `sign` is -1 for inverse transforms, which are those of conjugates."""

Read = Callable[[ir.Value, ir.Value], Complex]
Write = Callable[[ir.Value, ir.Value, Complex], None]
"""Of a place of the transforms, and of which of the vectors that lie side by side there."""
ZERO, ONE = INT64(0), INT64(1)


class Radices(NamedTuple):
    """Those of the passes. What lies between first and last comes in an order that the function is given."""

    first: int
    between: tuple[int, ...]
    """Without repetition."""
    last: int | None
    """None if there is only one pass."""

    @property
    def name(self) -> str:
        return "_".join(map(str, (self.first, *self.between, self.last or 1)))


class Part(Butterflies):
    """Writes the function of a part, which is given where the fields above lie."""

    def __init__(self, name: str, element: ir.Type, lanes: int, side_by_side: int, radices: Radices) -> None:
        """`side_by_side` vectors are transformed in each block."""
        super().__init__(element, lanes)
        self.side_by_side, self.radices = side_by_side, radices
        self.module = ir.Module(name)
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [POINTER]), name)
        self.builder = builder = ir.IRBuilder(function.append_basic_block("entry"))
        fields = [*[POINTER] * len(ADDRESSES), *[INT64] * len(COUNTS), *[ir.DoubleType()] * len(NUMBERS)]
        part = builder.bitcast(function.args[0], ir.LiteralStructType(fields).as_pointer())
        self.given = {
            one: builder.load(builder.gep(part, [INT32(0), INT32(place)]))
            for place, one in enumerate((*ADDRESSES, *COUNTS, *NUMBERS))
        }
        self.size = self.given["size"]
        self.scale, self.sign = self._factor("scale"), self._factor("sign")
        self.scale_of_imag = builder.fmul(self.scale, self.sign)
        numbers = builder.bitcast(self.given["room"], self.number.as_pointer())
        of_block = builder.mul(self.size, INT64(self._rows_of_block()))
        starts = [builder.gep(numbers, [builder.mul(of_block, INT64(k))]) for k in range(3)]
        self.buffers = [builder.bitcast(one, self.vector.as_pointer()) for one in starts[:2]]
        self.third = builder.bitcast(starts[2], POINTER)
        with self.counted(self.given["start"], self.given["stop"]) as block:
            matrix = builder.sdiv(block, self.given["blocks"])
            self._transform_block(
                builder.mul(matrix, self.given["matrix"]), builder.srem(block, self.given["blocks"])
            )
        builder.ret_void()

    def _rows_of_block(self) -> int:
        return self.lanes * self.side_by_side

    def _factor(self, name: str) -> ir.Value:
        number = self.given[name]
        is_double = self.element == ir.DoubleType()
        return self.spread(number if is_double else self.builder.fptrunc(number, self.element))

    def _transform_block(self, base: ir.Value, block: ir.Value) -> None:
        """Transform the rows of a block of the matrix that begins at `base`."""
        raise NotImplementedError

    def _given(self, x: Complex) -> Complex:
        """A number as the passes take it: its conjugate, if the transforms are inverse ones."""
        return x[0], self.builder.fmul(x[1], self.sign)

    def _found(self, x: Complex) -> Complex:
        """A result of the passes as it is wanted."""
        return self.times(x, self.scale, self.scale_of_imag)

    # --- passes ---------------------------------------------------------------------------------------------

    def _passes(self, size: ir.Value, read: Read, write: Write | None) -> ir.Value:
        """All passes. What `write` does not take is in the buffer that is returned."""
        first, second = self.buffers
        if self.radices.last is None:
            self._last_pass(self.radices.first, ONE, read, write or self._putting(first))
            return first
        self._first_pass(self.radices.first, size, read)
        if self.radices.between:
            first, second = self._passes_between(size)
        self._last_pass(
            self.radices.last, self.builder.sdiv(size, INT64(self.radices.last)), self._taking(first),
            write or self._putting(second),
        )  # fmt: skip
        return second

    def _taking(self, buffer: ir.Value) -> Read:
        return lambda place, which: self.at(buffer, self._in_buffer(place, which))

    def _putting(self, buffer: ir.Value) -> Write:
        return lambda place, which, value: self.put(value, buffer, self._in_buffer(place, which))

    def _in_buffer(self, place: ir.Value, which: ir.Value) -> ir.Value:
        return self.builder.add(self.builder.mul(place, INT64(self.side_by_side)), which)

    def _each_side_by_side(self) -> AbstractContextManager[ir.Value]:
        return (
            contextlib.nullcontext(ZERO)
            if self.side_by_side == 1
            else self.counted(ZERO, INT64(self.side_by_side))
        )

    def _first_pass(self, radix: int, size: ir.Value, read: Read) -> None:
        builder, put = self.builder, self._putting(self.buffers[0])
        count = builder.sdiv(size, INT64(radix))
        distances = [builder.mul(count, INT64(j)) for j in range(radix)]
        with self.counted(ZERO, count) as p:
            roots = self._roots(p, radix)
            with self._each_side_by_side() as which:
                values = self.transformed([read(builder.add(p, one), which) for one in distances])
                for k, value in enumerate(self._rotated(values, roots)):
                    put(builder.add(builder.mul(p, INT64(radix)), INT64(k)), which, value)

    def _last_pass(self, radix: int, step: ir.Value, read: Read, write: Write) -> None:
        builder = self.builder
        distances = [builder.mul(step, INT64(j)) for j in range(radix)]
        with self.counted(ZERO, step) as q, self._each_side_by_side() as which:
            places = [builder.add(q, one) for one in distances]
            for place, value in zip(places, self.transformed([read(place, which) for place in places])):
                write(place, which, value)

    def _roots(self, place: ir.Value, radix: int) -> list[Complex]:
        """The powers of a root of unity but the first, which is 1."""
        places = (self.builder.mul(place, INT64(k)) for k in range(1, radix))
        return [self.root_at(self.given["roots"], one) for one in places]

    def _rotated(self, values: Sequence[Complex], roots: Sequence[Complex]) -> list[Complex]:
        first, *others = values
        return [first, *(self.product(*pair) for pair in zip(others, roots))]

    def _passes_between(self, size: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The passes between the first and the last; the buffer with the result, and the other one."""
        builder = self.builder
        before = builder.block
        step_before = INT64(self.radices.first)
        left_before = builder.sdiv(size, step_before)
        head, body, after, end = (
            builder.append_basic_block(name) for name in ("pass", "radix", "after", "done")
        )
        builder.branch(head)
        builder.position_at_end(head)
        number, step, left = (builder.phi(INT64) for _ in range(3))
        source, target = (builder.phi(one.type) for one in self.buffers)
        starts = (ZERO, step_before, left_before, *self.buffers)
        variables = (number, step, left, source, target)
        for phi, value in zip(variables, starts):
            phi.add_incoming(value, before)
        radices = builder.bitcast(self.given["passes"], INT64.as_pointer())
        radix = builder.load(builder.gep(radices, [number]))
        builder.cbranch(builder.icmp_signed("!=", radix, ZERO), body, end)
        builder.position_at_end(body)
        count = builder.sdiv(left, radix)
        switch = builder.switch(radix, after)
        for one in self.radices.between:
            block = builder.append_basic_block(f"radix_{one}")
            switch.add_case(INT64(one), block)
            builder.position_at_end(block)
            self._pass_between(one, source, target, step, count)
            builder.branch(after)
        builder.position_at_end(after)
        following = (builder.add(number, ONE), builder.mul(step, radix), count, target, source)
        for phi, value in zip(variables, following):
            phi.add_incoming(value, after)
        builder.branch(head)
        builder.position_at_end(end)
        return source, target

    def _pass_between(
        self, radix: int, source: ir.Value, target: ir.Value, step: ir.Value, count: ir.Value
    ) -> None:
        """From `radix` transforms of the same length one that is so many times as long, `step` times."""
        builder = self.builder
        row = builder.mul(step, INT64(self.side_by_side))
        distance = builder.mul(row, count)
        sources = [builder.mul(distance, INT64(j)) for j in range(radix)]
        targets = [builder.mul(row, INT64(k)) for k in range(radix)]
        with self.counted(ZERO, count) as p:
            roots = self._roots(builder.mul(p, step), radix)
            from_row = builder.mul(p, row)
            to_row = builder.mul(from_row, INT64(radix))
            with self.counted(ZERO, row) as q:
                origin, goal = builder.add(from_row, q), builder.add(to_row, q)
                values = self.transformed([self.at(source, builder.add(origin, one)) for one in sources])
                for one, value in zip(targets, self._rotated(values, roots)):
                    self.put(value, target, builder.add(goal, one))


class Columns(Part):
    """Transforms side by side. Behind the last whole block are fewer, which are copied to make one."""

    def _transform_block(self, base: ir.Value, block: ir.Value) -> None:
        builder, given = self.builder, self.given
        width = INT64(self.lanes * self.side_by_side)
        first = builder.mul(block, width)
        there = builder.sub(given["rows"], first)
        is_whole = builder.icmp_signed(">=", there, width)
        start = builder.add(base, first)
        x, out = (self._advanced(given[name], start) for name in ("x", "out"))
        with builder.if_then(builder.not_(is_whole)):
            last = builder.sub(there, ONE)
            with self.counted(ZERO, self.size) as place, self.counted(ZERO, width) as lane:
                nearest = builder.select(builder.icmp_signed("<", lane, last), lane, last)
                number = self.number_at(x, builder.add(builder.mul(place, given["along"]), nearest))
                self.put_number(number, self.third, builder.add(builder.mul(place, width), lane))
        source, target = (builder.select(is_whole, one, self.third) for one in (x, out))
        along = builder.select(is_whole, given["along"], width)

        def address(place: ir.Value, which: ir.Value) -> ir.Value:
            return builder.add(builder.mul(place, along), builder.mul(which, INT64(self.lanes)))

        self._passes(
            self.size,
            lambda place, which: self._given(self.numbers_at(source, address(place, which))),
            lambda place, which, value: self.put_numbers(self._found(value), target, address(place, which)),
        )
        with (
            builder.if_then(builder.not_(is_whole)),
            self.counted(ZERO, self.size) as place,
            self.counted(ZERO, there) as lane,
        ):
            number = self.number_at(self.third, builder.add(builder.mul(place, width), lane))
            self.put_number(number, out, builder.add(builder.mul(place, given["along"]), lane))

    def _advanced(self, array: ir.Value, places: ir.Value) -> ir.Value:
        numbers = self.builder.bitcast(array, self.number.as_pointer())
        return self.builder.bitcast(self.builder.gep(numbers, [places]), POINTER)


class Row(Part):
    """A row at a time, of a multiple of the square of the number of lanes."""

    def _rows_of_block(self) -> int:
        return 1

    def _transform_block(self, base: ir.Value, block: ir.Value) -> None:
        x, out = self._row("x", "from_row", block), self._row("out", "to_row", block)
        self._transform_row(x, out, self._given, self._found)

    def _row(self, name: str, distance: str, block: ir.Value) -> ir.Value:
        builder = self.builder
        numbers = builder.bitcast(self.given[name], self.number.as_pointer())
        start = builder.mul(block, self.given[distance])
        return builder.bitcast(builder.gep(numbers, [start]), POINTER)

    def _transform_row(
        self,
        x: ir.Value,
        out: ir.Value,
        given: Callable[[Complex], Complex],
        found: Callable[[Complex], Complex],
    ) -> None:
        """From one array to another, which may be the same."""
        builder, lanes = self.builder, INT64(self.lanes)
        length = builder.sdiv(self.size, lanes)
        buffer = self._passes(
            length, lambda place, which: given(self.numbers_at(x, builder.mul(place, lanes))), None
        )
        crossing = builder.bitcast(self.given["crossing"], self.vector.as_pointer())
        with self.counted(ZERO, builder.sdiv(length, lanes)) as group:
            first = builder.mul(group, lanes)
            places = [builder.add(first, INT64(lane)) for lane in range(self.lanes)]
            parts = zip(*(self.at(buffer, place) for place in places))
            values = list(zip(*(self.transposed(part) for part in parts)))
            roots = [self._root_across(crossing, place) for place in places[1:]]
            for k, value in enumerate(self.transformed(self._rotated(values, roots))):
                place = builder.add(first, builder.mul(length, INT64(k)))
                self.put_numbers(found(value), out, place)

    def _root_across(self, crossing: ir.Value, place: ir.Value) -> Complex:
        re, im = (
            self.builder.load(
                self.builder.gep(crossing, [self.builder.add(self.builder.mul(place, INT64(2)), INT64(k))]),
                align=self.alignment,
            )
            for k in range(2)
        )
        return re, im


class RowOfReal(Row):
    """The same for a row of real numbers, taken for half as many complex ones, z."""

    def _transform_block(self, base: ir.Value, block: ir.Value) -> None:
        """(z[k] + z[-k]*) / 2 is the spectrum of even places, (z[k] - z[-k]*) / 2i that of odd ones."""
        builder, third = self.builder, self.third
        out = self._row("out", "to_row", block)
        self._transform_row(self._row("x", "from_row", block), third, lambda x: x, lambda x: x)
        self.put_number(self.number_at(third, ZERO), third, self.size)
        last = builder.sub(builder.sdiv(self.size, INT64(2)), INT64(self.lanes - 1))
        with self._vectors_up_to(last) as k:
            opposite = builder.sub(builder.sub(self.size, k), INT64(self.lanes - 1))
            one = self.numbers_at(third, k)
            other = self.conjugate(self.reversed(self.numbers_at(third, opposite)))
            even, odd = of_halves(self, one, other, self.numbers_at(self.given["halves"], k))
            self.put_numbers(self.sum(even, odd), out, k)
            self.put_numbers(self.reversed(self.conjugate(self.difference(even, odd))), out, opposite)

    @contextlib.contextmanager
    def _vectors_up_to(self, last: ir.Value) -> Iterator[ir.Value]:
        """Where vectors begin, the last of them at `last`, which may overlap with the one before."""
        builder, lanes = self.builder, INT64(self.lanes)
        count = builder.add(builder.sdiv(builder.add(last, INT64(self.lanes - 1)), lanes), ONE)
        with self.counted(ZERO, count) as vector:
            place = builder.mul(vector, lanes)
            yield builder.select(builder.icmp_signed("<", place, last), place, last)


class RowToReal(Row):
    """The same for what gives a row of real numbers, as half as many complex ones."""

    def _transform_block(self, base: ir.Value, block: ir.Value) -> None:
        """Of the first and the last frequency the imaginary part counts as 0."""
        builder, lanes = self.builder, INT64(self.lanes)
        x = self._row("x", "from_row", block)
        with self.counted(ZERO, builder.sdiv(self.size, lanes)) as vector:
            k = builder.mul(vector, lanes)
            opposite = builder.sub(builder.sub(self.size, k), INT64(self.lanes - 1))
            is_first = builder.icmp_signed("==", k, ZERO)
            one = self._real_in_front(self.numbers_at(x, k), is_first)
            other = self._real_in_front(self.reversed(self.numbers_at(x, opposite)), is_first)
            found = whole_of_halves(
                self, one, self.conjugate(other), self.numbers_at(self.given["halves"], k)
            )
            self.put_numbers(found, self.third, k)
        out = self._row("out", "to_row", block)
        self._transform_row(self.third, out, self._given, self._found)

    def _real_in_front(self, x: Complex, is_first: ir.Value) -> Complex:
        real = self.builder.insert_element(x[1], self.element(0.0), INT32(0))
        return x[0], self.builder.select(is_first, real, x[1])


class RowsSideBySide(Part):
    """Rows of any length, one in each lane; those behind the last row hold that as well."""

    def _transform_block(self, base: ir.Value, block: ir.Value) -> None:
        x, out = self._rows("from_row", block), self._rows("to_row", block)
        self._passes(
            self.size,
            lambda place, which: self._given(self._gathered(x, place)),
            lambda place, which, value: self._scatter(self._found(value), out, place),
        )

    def _rows(self, distance: str, block: ir.Value) -> list[ir.Value]:
        """Where the row of each lane begins."""
        builder = self.builder
        first, last = builder.mul(block, INT64(self.lanes)), builder.sub(self.given["rows"], ONE)
        rows = [builder.add(first, INT64(lane)) for lane in range(self.lanes)]
        rows = [builder.select(builder.icmp_signed("<", row, last), row, last) for row in rows]
        return [builder.mul(row, self.given[distance]) for row in rows]

    def _gathered(self, rows: Sequence[ir.Value], place: ir.Value) -> Complex:
        """The numbers of all lanes at a place of their rows."""
        numbers = [self.number_at(self.given["x"], self.builder.add(row, place)) for row in rows]
        return self._joined(numbers, 0), self._joined(numbers, 1)

    def _joined(self, numbers: Sequence[ir.Value], k: int) -> ir.Value:
        """One part of all lanes' numbers."""
        pairs = [self.shuffled(a, b, (k, 2 + k)) for a, b in zip(numbers[::2], numbers[1::2])]
        while len(pairs) > 1:
            count = 2 * pairs[0].type.count
            pairs = [self.shuffled(a, b, range(count)) for a, b in zip(pairs[::2], pairs[1::2])]
        return pairs[0]

    def _scatter(self, numbers: Complex, rows: Sequence[ir.Value], place: ir.Value) -> None:
        for lane, row in enumerate(rows):
            number = self.shuffled(*numbers, (lane, self.lanes + lane))
            self.put_number(number, self.given["out"], self.builder.add(row, place))


class RowsOfReal(RowsSideBySide):
    """The same for rows of real numbers, taken for half as many complex ones."""

    def _transform_block(self, base: ir.Value, block: ir.Value) -> None:
        """As `RowOfReal` does."""
        builder = self.builder
        x, out = self._rows("from_row", block), self._rows("to_row", block)
        buffer = self._passes(self.size, lambda place, which: self._gathered(x, place), None)
        with self.counted(ZERO, builder.add(builder.sdiv(self.size, INT64(2)), ONE)) as k:
            opposite = builder.sub(self.size, k)
            other = builder.select(builder.icmp_signed("==", k, ZERO), k, opposite)
            conjugate = self.conjugate(self.at(buffer, other))
            even, odd = of_halves(self, self.at(buffer, k), conjugate, self.root_at(self.given["halves"], k))
            self._scatter(self.sum(even, odd), out, k)
            self._scatter(self.conjugate(self.difference(even, odd)), out, opposite)


class RowsToReal(RowsSideBySide):
    """The same for what gives rows of real numbers, as half as many complex ones."""

    def _transform_block(self, base: ir.Value, block: ir.Value) -> None:
        """As `RowToReal` does."""
        builder = self.builder
        x, out = self._rows("from_row", block), self._rows("to_row", block)
        third = builder.bitcast(self.third, self.vector.as_pointer())
        (lowest, _), (highest, _) = (self._gathered(x, place) for place in (ZERO, self.size))
        self.put((self.fadd(lowest, highest), self.fsub(lowest, highest)), third, ZERO)
        with self.counted(ONE, self.size) as k:
            other = self.conjugate(self._gathered(x, builder.sub(self.size, k)))
            found = whole_of_halves(self, self._gathered(x, k), other, self.root_at(self.given["halves"], k))
            self.put(found, third, k)
        take = self._taking(third)
        self._passes(
            self.size,
            lambda place, which: self._given(take(place, which)),
            lambda place, which, value: self._scatter(self._found(value), out, place),
        )


def of_halves(part: Part, one: Complex, other: Complex, root: Complex) -> tuple[Complex, Complex]:
    """The spectra of even and odd places, of that of the numbers and its conjugate at the opposite place."""
    even = part.times(part.sum(one, other), part.scale, part.scale)
    odd = part.times(part.difference(one, other), part.scale, part.scale)
    return even, part.times_minus_i(part.product(odd, root))


def whole_of_halves(part: Part, one: Complex, other: Complex, root: Complex) -> Complex:
    """The spectrum of pairs of numbers taken for complex ones, of that of all and its opposite conjugate."""
    odd = part.product(part.difference(one, other), part.conjugate(root))
    return part.sum(part.sum(one, other), part.times_i(odd))
