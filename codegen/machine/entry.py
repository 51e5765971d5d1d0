"""The way in from Python to a compiled kernel: a C function, built from LLVM instructions.

It has the calling convention of built-in functions with positional arguments (`METH_FASTCALL`). It has them
read (by `arguments`), calls the kernel with what that finds, and gives Python what the kernel says.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from . import kernel_types
from .arguments import READ, REFUSED, Argument, fields_of, words_of
from .loading import OBJECT_PREFIX

RELEASE_GIL_FROM = 4096  # elements of all arrays; with fewer, the loop is over before another thread runs

Result = np.dtype | tuple[np.dtype, ...] | None

_INT1, _INT8, _INT32, _INT64, _DOUBLE = (
    ir.IntType(1),
    ir.IntType(8),
    ir.IntType(32),
    ir.IntType(64),
    ir.DoubleType(),
)
_LONG, _POINTER = ir.IntType(8 * ctypes.sizeof(ctypes.c_long)), _INT8.as_pointer()


class Entry:
    """`PyObject *entry(PyObject *refuse, PyObject **arguments, Py_ssize_t count)`, in an LLVM module.

    If an argument is not what it must be, `refuse(*arguments)` raises the error.
    """

    def __init__(
        self, kernel: ir.Function, arguments: Sequence[Argument], result: Result, symbol: str
    ) -> None:
        """Call a kernel of the same module; `result` is what it writes to where its first parameter says."""
        self.kernel, self.result = kernel, result
        self.module = kernel.module
        entry_type = ir.FunctionType(_POINTER, [_POINTER, _POINTER.as_pointer(), _INT64])
        self.function = ir.Function(self.module, entry_type, symbol)
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))
        self._build(arguments)

    def _build(self, arguments: Sequence[Argument]) -> None:
        builder, (refuse, objects, count) = self.builder, self.function.args
        counts = [fields_of(one) for one in arguments]
        fields = builder.alloca(_INT64, sum(counts))
        table = self._table([word for one in arguments for word in words_of(one)])
        elements = self._python(READ, _INT64, objects, count, _INT64(len(arguments)), table, fields)
        with builder.if_then(builder.icmp_signed("<", elements, _INT64(0)), likely=False):
            with builder.if_then(builder.icmp_signed("==", elements, _INT64(REFUSED))):
                builder.ret(
                    self._python("PyObject_Vectorcall", _POINTER, refuse, objects, count, _POINTER(None))
                )
            builder.ret(_POINTER(None))
        places = itertools.accumulate(counts, initial=0)
        self._run([self._given(fields, *one) for one in zip(places, arguments)], arguments, elements)

    def _table(self, words: Sequence[int]) -> ir.Value:
        """The address of constants."""
        kind = ir.ArrayType(_INT64, len(words))
        table = ir.GlobalVariable(self.module, kind, f"{self.function.name}.arguments")
        table.linkage, table.global_constant, table.initializer = "internal", True, ir.Constant(kind, words)
        return self.builder.bitcast(table, _INT64.as_pointer())

    def _given(self, fields: ir.Value, place: int, argument: Argument) -> list[ir.Value]:
        """What an argument consists of: of an array the address of the data, its shape, perhaps strides."""
        builder = self.builder
        addresses = (builder.gep(fields, [_INT64(place + number)]) for number in range(fields_of(argument)))
        first, *rest = map(builder.load, addresses)
        if isinstance(argument, kernel_types.ScalarType):
            return [self._number(first, argument.dtype)]
        return with_known_extents(argument, [builder.inttoptr(first, _POINTER), *rest])

    def _number(self, word: ir.Value, dtype: np.dtype) -> ir.Value:
        """A scalar argument, from the bits that were read of it."""
        builder = self.builder
        if dtype.kind == "b":
            return builder.icmp_signed("!=", word, _INT64(0))
        if dtype.kind == "f":
            number = builder.bitcast(word, _DOUBLE)
            return number if dtype.itemsize == 8 else builder.fptrunc(number, ir.FloatType())
        return word if dtype.itemsize == 8 else builder.trunc(word, ir.IntType(8 * dtype.itemsize))

    def _run(self, given: list[list[ir.Value]], arguments: Sequence[Argument], elements: ir.Value) -> None:
        """Call the kernel with arguments that have been checked, and return what it does."""
        builder = self.builder
        results = self.result if isinstance(self.result, tuple) else (self.result,)
        place = builder.bitcast(builder.alloca(ir.ArrayType(_INT64, len(results))), _POINTER)
        thread = self._release_gil(elements)
        error = self._call_kernel([place, *(value for values in given for value in values)])
        self._restore_gil(thread)
        self._raise_if(error)
        builder.ret(self._python_result(place))

    # The call

    def _call_kernel(self, arguments: Sequence[ir.Value]) -> ir.Value:
        """Call the kernel; returns its error, or null."""
        return call_fitting(self.builder, self.kernel, arguments)

    def _release_gil(self, elements: ir.Value) -> ir.Value:
        """Let other threads run while the kernel does, where that is worth it; returns the thread's slot."""
        builder = self.builder
        slot = builder.alloca(_POINTER)
        builder.store(_POINTER(None), slot)
        with builder.if_then(builder.icmp_signed(">=", elements, _INT64(RELEASE_GIL_FROM))):
            builder.store(self._python("PyEval_SaveThread", _POINTER), slot)
        return slot

    def _restore_gil(self, slot: ir.Value) -> None:
        thread = self.builder.load(slot)
        with self.builder.if_then(self.builder.icmp_unsigned("!=", thread, _POINTER(None))):
            self._python("PyEval_RestoreThread", ir.VoidType(), thread)

    def _raise_if(self, error: ir.Value) -> None:
        """Raise what the kernel raised, if it did: `loading.raise_kernel_error(pickled)` does, in Python.

        Unless Python has raised it, in a function that the kernel called.
        """
        builder = self.builder
        is_error = builder.icmp_unsigned("!=", error, _POINTER(None))
        with builder.if_then(is_error, likely=False):
            raised = self._python("PyErr_Occurred", _POINTER)
            with builder.if_then(builder.icmp_unsigned("!=", raised, _POINTER(None))):
                self._before_raising()
                builder.ret(_POINTER(None))
            size = builder.load(builder.bitcast(error, _INT64.as_pointer()))
            text = builder.gep(error, [_INT64(8)])
            self._before_raising()
            pickled = self._python("PyBytes_FromStringAndSize", _POINTER, text, size)
            raiser = self._object("raise_kernel_error")
            builder.ret(self._python("PyObject_CallOneArg", _POINTER, raiser, pickled))

    def _before_raising(self) -> None:
        pass

    # Python objects

    def _python_result(self, place: ir.Value) -> ir.Value:
        """A new reference to the Python object for what the kernel has written, 8 bytes for each number."""
        if self.result is None:
            none = self._object("None")
            self._python("Py_IncRef", ir.VoidType(), none)
            return none
        if not isinstance(self.result, tuple):
            return self._python_number(place, self.result)
        items = self._python("PyTuple_New", _POINTER, _INT64(len(self.result)))
        for index, dtype in enumerate(self.result):
            item = self._python_number(self.builder.gep(place, [_INT64(8 * index)]), dtype)
            self._python("PyTuple_SetItem", _INT32, items, _INT64(index), item)
        return items

    def _python_number(self, address: ir.Value, dtype: np.dtype) -> ir.Value:
        builder = self.builder
        kind = _INT1 if dtype.kind == "b" else element_type(dtype)
        value = builder.load(builder.bitcast(address, kind.as_pointer()))
        if dtype.kind == "b":
            return self._python("PyBool_FromLong", _POINTER, builder.zext(value, _LONG))
        if dtype.kind == "f":
            wide = value if dtype.itemsize == 8 else builder.fpext(value, _DOUBLE)
            return self._python("PyFloat_FromDouble", _POINTER, wide)
        extend = builder.sext if dtype.kind == "i" else builder.zext
        wide = value if dtype.itemsize == 8 else extend(value, _INT64)
        make = "PyLong_FromLongLong" if dtype.kind == "i" else "PyLong_FromUnsignedLongLong"
        return self._python(make, _POINTER, wide)

    def _object(self, name: str) -> ir.Value:
        """The Python object that `compile` registers under this name when it loads the code."""
        symbol = f"{OBJECT_PREFIX}{name}"
        if symbol not in self.module.globals:
            ir.GlobalVariable(self.module, _INT8, symbol).linkage = "external"
        return self.module.globals[symbol]

    def _python(self, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
        return call_external(self.builder, name, result, *arguments)


def call_fitting(builder: ir.IRBuilder, function: ir.Function, arguments: Sequence[ir.Value]) -> ir.Value:
    """A call with pointers of whichever types."""
    fitting = zip(arguments, function.function_type.args)
    return builder.call(
        function, [one if one.type == kind else builder.bitcast(one, kind) for one, kind in fitting]
    )


def call_external(builder: ir.IRBuilder, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
    """A call of a function that is found when the code is loaded, as of Python's C API."""
    function = builder.module.globals.get(name)
    if function is None:
        function_type = ir.FunctionType(result, [argument.type for argument in arguments])
        function = ir.Function(builder.module, function_type, name)
    return builder.call(function, arguments)


def with_known_extents(argument: Any, values: list[ir.Value]) -> list[ir.Value]:
    """What an argument consists of, with constants for extents, which LLVM propagates into the kernel."""
    extents = getattr(argument, "extents", ())
    known = {1 + axis: _INT64(extent) for axis, extent in enumerate(extents) if extent}
    return [known.get(place, value) for place, value in enumerate(values)]


def element_type(dtype: np.dtype) -> ir.Type:
    """LLVM's type of a number in memory."""
    if dtype.kind == "f":
        return ir.FloatType() if dtype.itemsize == 4 else _DOUBLE
    return ir.IntType(8 * dtype.itemsize)
