"""Work in parts that threads share: a kernel's own loops, or the body of a `parts_of` in it.

Both are a function whose last two arguments are the bounds of a part. Where threads share a whole kernel,
Python gives the extent of its loops, the number of parts and that of threads in their place (`SharedEntry`).
A part has the arguments of all, but its own bounds, and its own memory for scratch and for totals. The first
part's totals lie in the array; the others are added in order.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from . import kernel_types
from .arguments import Argument
from .entry import Entry, call_external, call_fitting, element_type, with_known_extents
from .llvm_loops import counted
from .loading import SHARE

APART = 128
"""Bytes: what different threads write lies as far apart, so that they share no cache line."""

_INT8, _INT32, _INT64 = (ir.IntType(bits) for bits in (8, 32, 64))
_POINTER = _INT8.as_pointer()
_ZERO, _ONE = _INT64(0), _INT64(1)
PART = ir.LiteralStructType([_POINTER, _INT64, _INT64, _POINTER, _POINTER])
"""A part: its error, start, stop, its own memory (null of the first, which has everyone's), the arguments."""
BYTES_OF_PART = 8 * len(PART.elements)
Values = list[ir.Value]


class SharedEntry(Entry):
    """`entry(refuse, arguments, count)`, the last arguments being extent, parts and threads."""

    def __init__(
        self, kernel: ir.Function, arguments: Sequence[Argument], symbol: str, sharing: kernel_types.Sharing
    ) -> None:
        """`arguments` are those of the kernel, as for `Entry`; it returns nothing."""
        self.sharing = sharing
        super().__init__(kernel, kernel_types.given_arguments(arguments, sharing), None, symbol)

    def _run(self, given: list[Values], arguments: Sequence[Argument], elements: ir.Value) -> None:
        (extent,), (count,), (threads,) = given[-3:]
        parts = Parts(self.builder, self.kernel, given[:-3], arguments[:-3], self.sharing)
        thread = self._python("PyEval_SaveThread", _POINTER)
        error = parts.run(self.builder.alloca(parts.frame), self.builder.alloca(PART), extent, count, threads)
        self._python("PyEval_RestoreThread", ir.VoidType(), thread)
        self._raise_if(error)
        self.builder.ret(self._python_result(_POINTER(None)))


class Parts:
    """Instructions that run a function in parts, where a builder stands."""

    def __init__(
        self,
        builder: ir.IRBuilder,
        function: ir.Function,
        given: Sequence[Values],
        arguments: Sequence[Any],
        sharing: kernel_types.Sharing,
    ) -> None:
        """`function` takes a null address, what all parts are given, and the bounds; it returns its error.

        `arguments` are what `given` consists of: arrays have a `dtype`, perhaps `extents`.
        """
        self.builder, self.module = builder, builder.module
        self.function, self.given, self.arguments, self.sharing = function, given, arguments, sharing
        self.own = [*sharing.private, *(position for position, _ in sharing.totals)]
        """The arrays of which each part has one."""
        self.fields = [*(value.type for values in given for value in values), *[_INT64] * len(self.own)]
        """Of what all parts are given: arguments, and where their own arrays lie in their memory."""
        self.frame = ir.ArrayType(_INT64, len(self.fields))
        """The type of memory for it, a word each: every address in a structure would spell all fields."""

    def run(
        self, frame: ir.Value, only: ir.Value, extent: ir.Value, count: ir.Value, threads: ir.Value
    ) -> ir.Value:
        """Run so many parts of an extent in so many threads; the first one's error, or null.

        Args:
            frame: memory for what all parts are given.
            only: memory for a part, the only one if there is none for more.
        """
        builder = self.builder
        places, size = self._own_memory()
        fields = (value for values in self.given for value in values)
        for place, value in enumerate((*fields, *places.values())):
            builder.store(value, self._word(frame, place))
        before = builder.mul(_INT64(BYTES_OF_PART), count)  # of the parts themselves
        needed = builder.add(before, builder.mul(size, builder.sub(count, _ONE)))
        memory = call_external(builder, "PyMem_RawMalloc", _POINTER, needed)
        has_none = builder.icmp_unsigned("==", memory, _POINTER(None))
        count = builder.select(has_none, _ONE, count)
        first = builder.select(has_none, only, builder.bitcast(memory, PART.as_pointer()))
        own = builder.gep(memory, [before])
        with counted(builder, _ZERO, count) as part:
            self._write_part(builder.gep(first, [part]), part, frame, own, size, extent, count)
        function = self._part_function()
        given = [builder.bitcast(one, _POINTER) for one in (function, first)]
        helpers = builder.sub(threads, _ONE)
        call_external(builder, SHARE, ir.VoidType(), *given, _INT64(BYTES_OF_PART), count, helpers)
        with counted(builder, _ONE, count) as part:
            self._combine_totals(places, builder.load(self._field(builder.gep(first, [part]), 3)))
        error = self._first_error(first, count)
        call_external(builder, "PyMem_RawFree", ir.VoidType(), memory)
        return error

    # Memory of each part

    def _own_memory(self) -> tuple[dict[int, ir.Value], ir.Value]:
        """Where in the memory of a part its own arrays begin, and how large that memory is."""
        builder = self.builder
        places: dict[int, ir.Value] = {}
        size: ir.Value = _ZERO
        for position in self.own:
            places[position] = size
            needed = builder.mul(self._elements(position), _INT64(self.arguments[position].dtype.itemsize))
            whole = builder.udiv(builder.add(needed, _INT64(APART - 1)), _INT64(APART))
            size = builder.add(size, builder.mul(builder.add(whole, _ONE), _INT64(APART)))
        return places, size

    def _elements(self, position: int) -> ir.Value:
        """Of an array in C order, which consists of an address and extents."""
        return functools.reduce(self.builder.mul, self.given[position][1:], _ONE)

    def _combine_totals(self, places: dict[int, ir.Value], memory: ir.Value) -> None:
        for position, operator in self.sharing.totals:
            function = self._combining(operator, self.arguments[position].dtype)
            total = self.builder.bitcast(self.given[position][0], _POINTER)
            other = self.builder.gep(memory, [places[position]])
            self.builder.call(function, [total, other, self._elements(position)])

    def _combining(self, operator: str, dtype: np.dtype) -> ir.Function:
        """The function (totals, totals of another part, how many) that combines in place."""
        name = f"pullback.combine.{operator}.{dtype.name}"
        if name in self.module.globals:
            return self.module.globals[name]
        function = ir.Function(
            self.module, ir.FunctionType(ir.VoidType(), [_POINTER, _POINTER, _INT64]), name
        )
        function.linkage = "internal"
        function.attributes.add("noinline")  # for each total there would be vectors of it
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        element = element_type(dtype)
        total, other = (builder.bitcast(one, element.as_pointer()) for one in function.args[:2])
        with counted(builder, _ZERO, function.args[2]) as place:
            address = builder.gep(total, [place])
            one, another = builder.load(address), builder.load(builder.gep(other, [place]))
            builder.store(_combined(builder, operator, dtype, one, another), address)
        builder.ret_void()
        return function

    # Parts

    def _field(self, struct: ir.Value, place: int) -> ir.Value:
        return self.builder.gep(struct, [_INT32(0), _INT32(place)])

    def _word(self, frame: ir.Value, place: int) -> ir.Value:
        """Where a field of what all parts are given lies."""
        return self.builder.bitcast(self._field(frame, place), self.fields[place].as_pointer())

    def _write_part(
        self,
        address: ir.Value,
        part: ir.Value,
        frame: ir.Value,
        own: ir.Value,
        size: ir.Value,
        extent: ir.Value,
        count: ir.Value,
    ) -> None:
        builder = self.builder
        ends = (builder.sdiv(builder.mul(extent, one), count) for one in (part, builder.add(part, _ONE)))
        is_first = builder.icmp_signed("==", part, _ZERO)
        behind = builder.gep(own, [builder.mul(builder.sub(part, _ONE), size)])
        memory = builder.select(is_first, _POINTER(None), behind)
        for place, value in enumerate((_POINTER(None), *ends, memory, builder.bitcast(frame, _POINTER))):
            builder.store(value, self._field(address, place))

    def _part_function(self) -> ir.Function:
        """The function (part) that calls the function, with the arguments of all and what is the part's."""
        kind = ir.FunctionType(ir.VoidType(), [_POINTER])
        function = ir.Function(self.module, kind, f"{self.function.name}.part")
        function.linkage = "internal"
        outside, self.builder = self.builder, ir.IRBuilder(function.append_basic_block("entry"))
        builder = self.builder
        part = builder.bitcast(function.args[0], PART.as_pointer())
        start, stop, memory, frame = (builder.load(self._field(part, place)) for place in range(1, 5))
        frame = builder.bitcast(frame, self.frame.as_pointer())
        fields = [builder.load(self._word(frame, place)) for place in range(len(self.fields))]
        own = dict(zip(self.own, fields[len(fields) - len(self.own) :]))
        is_first = builder.icmp_unsigned("==", memory, _POINTER(None))
        arguments: Values = [_POINTER(None)]
        for position, (values, argument) in enumerate(zip(self.given, self.arguments)):
            (first, *others), fields = fields[: len(values)], fields[len(values) :]
            if position in own:
                apart = builder.bitcast(builder.gep(memory, [own[position]]), first.type)
                first = builder.select(is_first, first, apart)
            arguments += with_known_extents(argument, [first, *others])
        builder.store(call_fitting(builder, self.function, [*arguments, start, stop]), self._field(part, 0))
        builder.ret_void()
        self.builder = outside
        return function

    def _first_error(self, first: ir.Value, count: ir.Value) -> ir.Value:
        """The error of the first part that has one, or null."""
        builder, start = self.builder, self.builder.block
        head, look, end = (builder.append_basic_block(name) for name in ("errors", "error", "looked"))
        builder.branch(head)
        builder.position_at_end(head)
        part, found = builder.phi(_INT64), builder.phi(_POINTER)
        is_left = builder.icmp_signed("<", part, count)
        goes_on = builder.and_(is_left, builder.icmp_unsigned("==", found, _POINTER(None)))
        builder.cbranch(goes_on, look, end)
        builder.position_at_end(look)
        following = builder.load(self._field(builder.gep(first, [part]), 0))
        for phi, begin, value in ((part, _ZERO, builder.add(part, _ONE)), (found, _POINTER(None), following)):
            phi.add_incoming(begin, start)
            phi.add_incoming(value, look)
        builder.branch(head)
        builder.position_at_end(end)
        return found


def _combined(
    builder: ir.IRBuilder, operator: str, dtype: np.dtype, one: ir.Value, other: ir.Value
) -> ir.Value:
    """As NumPy's functions of these names, those of `kernel_types.COMBINED`; truth values are 0 and 1."""
    is_float, is_truth = dtype.kind == "f", dtype.kind == "b"
    if operator == "logical_and" or (is_truth and operator in ("multiply", "minimum")):
        return builder.and_(one, other)
    if operator == "logical_or" or is_truth:
        return builder.or_(one, other)
    if operator == "add":
        return (builder.fadd if is_float else builder.add)(one, other)
    if operator == "multiply":
        return (builder.fmul if is_float else builder.mul)(one, other)
    sign = {"maximum": ">", "minimum": "<"}[operator]
    if not is_float:
        compare = builder.icmp_signed if dtype.kind == "i" else builder.icmp_unsigned
        return builder.select(compare(sign, one, other), one, other)
    keeps = builder.or_(builder.fcmp_ordered(sign, one, other), builder.fcmp_unordered("uno", one, one))
    return builder.select(keeps, one, other)
