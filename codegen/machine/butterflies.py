"""Transforms of a few complex numbers in vectors, in LLVM's instructions: what longer ones consist of.

A complex number of each lane is two vectors, its real and its imaginary part. In a buffer they lie one behind
the other, in an array as NumPy has it side by side, lane after lane.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager

from llvmlite import ir

from .llvm_loops import counted

INT64, INT32, BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
POINTER = BYTE.as_pointer()
Complex = tuple[ir.Value, ir.Value]
"""Vectors of real and imaginary parts."""
CONTRACT = ("contract",)
"""Products and sums may be one instruction."""


class Butterflies:
    """Writes arithmetic of complex vectors, their loads and stores, and loops, where its builder stands."""

    builder: ir.IRBuilder

    def __init__(self, element: ir.Type, lanes: int) -> None:
        self.element, self.lanes = element, lanes
        self.alignment = 8 if element == ir.DoubleType() else 4
        self.vector = ir.VectorType(element, lanes)
        self.both = ir.VectorType(element, 2 * lanes)
        self.number = ir.VectorType(element, 2)

    # --- transforms -----------------------------------------------------------------------------------------

    def transformed(self, x: Sequence[Complex]) -> list[Complex]:
        """The transform, forward, of up to 5 or of 8 numbers."""
        if len(x) % 2:
            return self._odd(x)
        if len(x) == 2:
            return [self.sum(*x), self.difference(*x)]
        even, odd = self.transformed(x[::2]), self.transformed(x[1::2])
        odd = [self._turned(one, 8 * k // len(x)) for k, one in enumerate(odd)]
        pairs = list(zip(even, odd))
        return [*(self.sum(*pair) for pair in pairs), *(self.difference(*pair) for pair in pairs)]

    def _turned(self, x: Complex, eighths: int) -> Complex:
        """Turned back by so many eighths of a circle."""
        for _ in range(eighths // 2):
            x = self.times_minus_i(x)
        if eighths % 2 == 0:
            return x
        return self.scaled((self.fadd(*x), self.fsub(x[1], x[0])), math.sqrt(0.5))

    def _odd(self, x: Sequence[Complex]) -> list[Complex]:
        radix, half = len(x), len(x) // 2
        sums = [self.sum(x[j], x[radix - j]) for j in range(1, half + 1)]
        differences = [self.difference(x[j], x[radix - j]) for j in range(1, half + 1)]
        found = [functools.reduce(self.sum, sums, x[0])] + [x[0]] * (radix - 1)
        for k in range(1, half + 1):
            even, odd = x[0], None
            for j in range(1, half + 1):
                angle = 2 * math.pi * (j * k % radix) / radix
                even = self.sum(even, self.scaled(sums[j - 1], math.cos(angle)))
                term = self.scaled(differences[j - 1], math.sin(angle))
                odd = term if odd is None else self.sum(odd, term)
            assert odd is not None
            turned = self.times_minus_i(odd)
            found[k], found[radix - k] = self.sum(even, turned), self.difference(even, turned)
        return found

    # --- arithmetic -----------------------------------------------------------------------------------------

    def sum(self, a: Complex, b: Complex) -> Complex:
        return self.fadd(a[0], b[0]), self.fadd(a[1], b[1])

    def difference(self, a: Complex, b: Complex) -> Complex:
        return self.fsub(a[0], b[0]), self.fsub(a[1], b[1])

    def product(self, a: Complex, b: Complex) -> Complex:
        times = functools.partial(self.builder.fmul, flags=CONTRACT)
        re = self.fsub(times(a[0], b[0]), times(a[1], b[1]))
        return re, self.fadd(times(a[0], b[1]), times(a[1], b[0]))

    def times_minus_i(self, a: Complex) -> Complex:
        return a[1], self.builder.fneg(a[0])

    def times_i(self, a: Complex) -> Complex:
        return self.builder.fneg(a[1]), a[0]

    def conjugate(self, a: Complex) -> Complex:
        return a[0], self.builder.fneg(a[1])

    def scaled(self, a: Complex, factor: float) -> Complex:
        return self.times(a, self.constant(factor), self.constant(factor))

    def times(self, a: Complex, re: ir.Value, im: ir.Value) -> Complex:
        """Each part times a factor of its own."""
        return self.builder.fmul(a[0], re, CONTRACT), self.builder.fmul(a[1], im, CONTRACT)

    def fadd(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.fadd(a, b, CONTRACT)

    def fsub(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.fsub(a, b, CONTRACT)

    def constant(self, number: float) -> ir.Value:
        return ir.Constant(self.vector, [self.element(number)] * self.lanes)

    def spread(self, number: ir.Value) -> ir.Value:
        """The number in all lanes."""
        single = self.builder.insert_element(ir.Constant(self.vector, ir.Undefined), number, INT32(0))
        return self.shuffled(single, single, [0] * self.lanes)

    # --- lanes ----------------------------------------------------------------------------------------------

    def shuffled(self, a: ir.Value, b: ir.Value, places: Sequence[int]) -> ir.Value:
        mask = ir.Constant(ir.VectorType(INT32, len(places)), [*places])
        return self.builder.shuffle_vector(a, b, mask)

    def apart(self, numbers: ir.Value) -> Complex:
        """Numbers that lie side by side."""
        re, im = (self.shuffled(numbers, numbers, range(k, 2 * self.lanes, 2)) for k in range(2))
        return re, im

    def together(self, a: Complex) -> ir.Value:
        return self.shuffled(*a, [k // 2 + self.lanes * (k % 2) for k in range(2 * self.lanes)])

    def reversed(self, a: Complex) -> Complex:
        re, im = (self.shuffled(part, part, range(self.lanes - 1, -1, -1)) for part in a)
        return re, im

    def transposed(self, rows: Sequence[ir.Value]) -> list[ir.Value]:
        """As many vectors as there are lanes, lanes and vectors exchanged: halves, then quarters, ..."""
        rows, width = list(rows), len(rows) // 2
        while width:
            for first in range(len(rows)):
                if not first & width:
                    rows[first], rows[first + width] = self._exchanged(
                        rows[first], rows[first + width], width
                    )
            width //= 2
        return rows

    def _exchanged(self, a: ir.Value, b: ir.Value, width: int) -> tuple[ir.Value, ir.Value]:
        """Blocks of lanes of this width: a's second ones and b's first ones change places."""
        lanes = range(self.lanes)
        first = [self.lanes + lane - width if lane & width else lane for lane in lanes]
        second = [self.lanes + lane if lane & width else lane + width for lane in lanes]
        return self.shuffled(a, b, first), self.shuffled(a, b, second)

    # --- memory ---------------------------------------------------------------------------------------------

    def at(self, buffer: ir.Value, place: ir.Value) -> Complex:
        """The complex vector at a place of a buffer."""
        first = self.builder.mul(place, INT64(2))
        re, im = (
            self.builder.load(self.builder.gep(buffer, [self.builder.add(first, INT64(k))])) for k in range(2)
        )
        return re, im

    def put(self, value: Complex, buffer: ir.Value, place: ir.Value) -> None:
        first = self.builder.mul(place, INT64(2))
        for k, part in enumerate(value):
            self.builder.store(part, self.builder.gep(buffer, [self.builder.add(first, INT64(k))]))

    def numbers_at(self, array: ir.Value, place: ir.Value) -> Complex:
        """As many numbers as there are lanes, from a place of an array on."""
        return self.apart(self.builder.load(self._address(array, place, self.both), align=self.alignment))

    def put_numbers(self, value: Complex, array: ir.Value, place: ir.Value) -> None:
        address = self._address(array, place, self.both)
        self.builder.store(self.together(value), address, align=self.alignment)

    def number_at(self, array: ir.Value, place: ir.Value) -> ir.Value:
        """A single number, its parts side by side."""
        return self.builder.load(self._address(array, place, self.number), align=self.alignment)

    def put_number(self, value: ir.Value, array: ir.Value, place: ir.Value) -> None:
        self.builder.store(value, self._address(array, place, self.number), align=self.alignment)

    def root_at(self, table: ir.Value, place: ir.Value) -> Complex:
        """A number of an array, in all lanes."""
        elements = self.builder.bitcast(table, self.element.as_pointer())
        first = self.builder.mul(place, INT64(2))
        re, im = (
            self.spread(self.builder.load(self.builder.gep(elements, [self.builder.add(first, INT64(k))])))
            for k in range(2)
        )
        return re, im

    def _address(self, array: ir.Value, place: ir.Value, kind: ir.Type) -> ir.Value:
        numbers = self.builder.bitcast(array, self.number.as_pointer())
        return self.builder.bitcast(self.builder.gep(numbers, [place]), kind.as_pointer())

    # --- loops ----------------------------------------------------------------------------------------------

    def counted(self, start: ir.Value, stop: ir.Value) -> AbstractContextManager[ir.Value]:
        """The body of a loop over integers."""
        return counted(self.builder, start, stop)
