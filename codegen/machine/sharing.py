"""The way in from Python to a kernel whose loop threads share: an `Entry` that runs it in parts.

Such a kernel takes the bounds of its loop as its last arguments; Python gives the extent, the number of
parts and that of threads in their place. A part has the arguments of all, but its own bounds, and its own
memory for scratch and for totals. The first part's totals lie in the output; the others are added in order.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from llvmlite import ir

from . import kernel_types
from .arguments import Argument
from .entry import Entry, element_type, with_known_extents
from .llvm_loops import counted
from .loading import SHARE

APART = 128
"""Bytes: what different threads write lies as far apart, so that they share no cache line."""

_INT8, _INT32, _INT64 = (ir.IntType(bits) for bits in (8, 32, 64))
_POINTER = _INT8.as_pointer()
_ZERO, _ONE = _INT64(0), _INT64(1)
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
        builder = self.builder
        (extent,), (parts,), (threads,) = given[-3:]
        given, arguments = given[:-3], arguments[:-3]
        fields = [value.type for values in given for value in values]
        kind = ir.LiteralStructType([_POINTER, *fields, _INT64, _INT64])
        places, size = self._own_memory(given, arguments)
        before = builder.mul(
            self._size_of(kind), parts
        )  # too much for the stack where there are many threads
        self.memory = memory = self._allocated(builder.add(before, builder.mul(size, parts)))
        first, scratch = builder.bitcast(memory, kind.as_pointer()), builder.gep(memory, [before])
        with counted(self.builder, _ZERO, parts) as part:
            values = self._with_own_memory(given, places, self._memory_of(part, scratch, size), part)
            ends = (builder.sdiv(builder.mul(extent, one), parts) for one in (part, builder.add(part, _ONE)))
            self._store_fields(builder.gep(first, [part]), [*values, *ends])
        thread = self._python("PyEval_SaveThread", _POINTER)
        self._share(self._part_function(kind, given, arguments), first, kind, parts, threads)
        with counted(self.builder, _ONE, parts) as part:
            self._add_totals(given, arguments, places, self._memory_of(part, scratch, size))
        self._python("PyEval_RestoreThread", ir.VoidType(), thread)
        with counted(self.builder, _ZERO, parts) as part:
            self._raise_if(builder.load(self._field_of(builder.gep(first, [part]), 0)))
        self._before_raising()
        builder.ret(self._python_result(_POINTER(None)))

    def _before_raising(self) -> None:
        self._python("PyMem_RawFree", ir.VoidType(), self.memory)

    # Memory of each part

    def _own_memory(
        self, given: Sequence[Values], arguments: Sequence[Argument]
    ) -> tuple[dict[int, ir.Value], ir.Value]:
        """Where in the memory of a part its own arrays begin, and how large that memory is."""
        builder = self.builder
        places: dict[int, ir.Value] = {}
        size: ir.Value = _ZERO
        for position in (*self.sharing.private, *(position for position, _ in self.sharing.totals)):
            places[position] = size
            itemsize = _INT64(arguments[position].dtype.itemsize)
            needed = builder.mul(self._elements(given[position], arguments[position]), itemsize)
            whole = builder.udiv(builder.add(needed, _INT64(APART - 1)), _INT64(APART))
            size = builder.add(size, builder.mul(builder.add(whole, _ONE), _INT64(APART)))
        return places, size

    def _elements(self, given: Values, argument: Argument) -> ir.Value:
        assert isinstance(argument, kernel_types.ArrayType)
        return functools.reduce(self.builder.mul, given[1 : argument.ndim + 1], _ONE)

    def _allocated(self, size: ir.Value) -> ir.Value:
        memory = self._python("PyMem_RawMalloc", _POINTER, size)
        with self.builder.if_then(self.builder.icmp_unsigned("==", memory, _POINTER(None)), likely=False):
            self.builder.ret(self._python("PyErr_NoMemory", _POINTER))
        return memory

    def _memory_of(self, part: ir.Value, scratch: ir.Value, size: ir.Value) -> ir.Value:
        """That of the first part is where all of it lies in the end."""
        return self.builder.gep(scratch, [self.builder.mul(self.builder.sub(part, _ONE), size)])

    def _with_own_memory(
        self, given: Sequence[Values], places: dict[int, ir.Value], memory: ir.Value, part: ir.Value
    ) -> Values:
        builder = self.builder
        is_first = builder.icmp_signed("==", part, _ZERO)
        values: Values = []
        for position, (first, *others) in enumerate(given):
            if position in places:
                first = builder.select(is_first, first, builder.gep(memory, [places[position]]))
            values += [first, *others]
        return values

    def _add_totals(
        self,
        given: Sequence[Values],
        arguments: Sequence[Argument],
        places: dict[int, ir.Value],
        memory: ir.Value,
    ) -> None:
        for position, operator in self.sharing.totals:
            dtype = arguments[position].dtype
            total, count = given[position][0], self._elements(given[position], arguments[position])
            function = self._combining(operator, dtype)
            self.builder.call(function, [total, self.builder.gep(memory, [places[position]]), count])

    def _combining(self, operator: str, dtype: np.dtype) -> ir.Function:
        """The function (totals, totals of another part, how many) that combines in place."""
        name = f"{self.function.name}.{operator}.{dtype.name}"
        if name in self.module.globals:
            return self.module.globals[name]
        function = ir.Function(
            self.module, ir.FunctionType(ir.VoidType(), [_POINTER, _POINTER, _INT64]), name
        )
        function.linkage = "internal"
        before, self.builder = self.builder, ir.IRBuilder(function.append_basic_block("entry"))
        element = element_type(dtype)
        total, other = (self.builder.bitcast(one, element.as_pointer()) for one in function.args[:2])
        with counted(self.builder, _ZERO, function.args[2]) as place:
            address = self.builder.gep(total, [place])
            one, another = self.builder.load(address), self.builder.load(self.builder.gep(other, [place]))
            self.builder.store(_combined(self.builder, operator, dtype, one, another), address)
        self.builder.ret_void()
        self.builder = before
        return function

    # Parts

    def _store_fields(self, part: ir.Value, values: Sequence[ir.Value]) -> None:
        """What a part is given, behind the place of its error."""
        for place, value in enumerate(values, start=1):
            self.builder.store(value, self._field_of(part, place))

    def _field_of(self, part: ir.Value, place: int) -> ir.Value:
        return self.builder.gep(part, [_INT32(0), _INT32(place)])

    def _part_function(
        self, kind: ir.Type, given: Sequence[Values], arguments: Sequence[Argument]
    ) -> ir.Function:
        """The function (part) that calls the kernel with the fields of a part."""
        function_type = ir.FunctionType(ir.VoidType(), [_POINTER])
        function = ir.Function(self.module, function_type, f"{self.function.name}.part")
        function.linkage = "internal"
        before, self.builder = self.builder, ir.IRBuilder(function.append_basic_block("entry"))
        builder = self.builder
        part = builder.bitcast(function.args[0], kind.as_pointer())
        fields = [builder.load(self._field_of(part, place)) for place in range(1, len(kind.elements))]
        native: Values = []
        for values, argument in zip(given, arguments):
            native += with_known_extents(argument, fields[: len(values)])
            fields = fields[len(values) :]
        builder.store(self._call_kernel([_POINTER(None), *native, *fields]), self._field_of(part, 0))
        builder.ret_void()
        self.builder = before
        return function

    def _share(
        self, function: ir.Function, first: ir.Value, kind: ir.Type, parts: ir.Value, threads: ir.Value
    ) -> None:
        builder, size = self.builder, self._size_of(kind)
        addresses = [builder.bitcast(one, _POINTER) for one in (function, first)]
        self._python(SHARE, ir.VoidType(), *addresses, size, parts, builder.sub(threads, _ONE))

    def _size_of(self, kind: ir.Type) -> ir.Value:
        """Bytes from one part to the next."""
        return self.builder.ptrtoint(self.builder.gep(kind.as_pointer()(None), [_ONE]), _INT64)


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
