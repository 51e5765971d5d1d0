"""The way in from Python to a compiled kernel: a C function, built from LLVM instructions.

It has the calling convention of built-in functions with positional arguments (`METH_FASTCALL`). Numba's own
wrapper goes through a C function per array, which copies its description and counts references: 70 ns an
array. Here the fields of the array object are read in place, after checks that keep a wrong argument from
corrupting memory (the exact type, dtype, rank, layout): some 4 ns an array.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from . import kernel_types
from .loading import OBJECT_PREFIX

FEW_ARRAYS = 16  # with more, to check each is a call: it compiles sooner
RELEASE_GIL_FROM = 4096  # elements of all arrays; with fewer, the loop is over before another thread runs

Argument = kernel_types.ArrayType | kernel_types.ScalarType
Result = np.dtype | tuple[np.dtype, ...] | None

_INT1, _INT8, _INT32, _INT64, _DOUBLE = (
    ir.IntType(1),
    ir.IntType(8),
    ir.IntType(32),
    ir.IntType(64),
    ir.DoubleType(),
)
_LONG, _POINTER = ir.IntType(8 * ctypes.sizeof(ctypes.c_long)), _INT8.as_pointer()
_SWAPPED = ">" if sys.byteorder == "little" else "<"  # NumPy's sign for foreign byte order


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
        builder, values = self.builder, self.function.args[1]
        self._require([builder.icmp_signed("==", self.function.args[2], _INT64(len(arguments)))])
        objects = [builder.load(builder.gep(values, [_INT64(index)])) for index in range(len(arguments))]
        arrays = [
            (value, argument)
            for value, argument in zip(objects, arguments)
            if isinstance(argument, kernel_types.ArrayType)
        ]
        accepts = self._accepts(len(arrays))
        self._require([self._is_accepted(accepts, value, argument) for value, argument in arrays])
        self._require([check for value, argument in arrays for check in self._extent_checks(value, argument)])
        self._run(objects, arguments)

    def _run(self, objects: Sequence[ir.Value], arguments: Sequence[Argument]) -> None:
        """Call the kernel with objects that have been checked, and return what it does."""
        builder = self.builder
        native: list[ir.Value] = []
        elements = _INT64(0)
        for value, argument in zip(objects, arguments):
            if isinstance(argument, kernel_types.ArrayType):
                data, *extents = self._array(value, argument)
                native += [data, *extents]
                shape = extents[: argument.ndim]
                elements = builder.add(elements, functools.reduce(builder.mul, shape, _INT64(1)))
            else:
                native.append(self._scalar(value, argument.dtype))
        results = self.result if isinstance(self.result, tuple) else (self.result,)
        place = builder.bitcast(builder.alloca(ir.ArrayType(_INT64, len(results))), _POINTER)
        thread = self._release_gil(elements)
        error = self._call_kernel([place, *native])
        self._restore_gil(thread)
        self._raise_if(error)
        builder.ret(self._python_result(place))

    # Arguments

    def _require(self, checks: Sequence[ir.Value]) -> None:
        """Go on if all checks hold, else return what `refuse(*arguments)` does, which is to raise."""
        if not checks:
            return
        builder = self.builder
        holds = functools.reduce(builder.and_, checks)
        with builder.if_then(builder.not_(holds), likely=False):
            builder.ret(self._python("PyObject_Vectorcall", _POINTER, *self.function.args, _POINTER(None)))

    def _field(self, structure: ir.Value, field: Any, kind: ir.Type) -> ir.Value:
        """The value of a field of a C structure, both described by ctypes."""
        address = self.builder.gep(structure, [_INT64(field.offset)])
        return self.builder.load(self.builder.bitcast(address, kind.as_pointer()))

    def _accepts(self, calls: int) -> ir.Function:
        """The function (object, kind, item size, rank, flags) that says whether an object is such an array.

        It wants an ndarray with this dtype, in native byte order, and these of its flags.
        """
        kind = ir.FunctionType(_INT1, [_POINTER, _INT8, _INT64, _INT32, _INT32])
        function = ir.Function(self.module, kind, f"{self.function.name}.accepts")
        function.linkage = "internal"
        if calls > FEW_ARRAYS:
            function.attributes.add("noinline")
        value, *wanted, flags = function.args
        before, self.builder = self.builder, ir.IRBuilder(function.append_basic_block("entry"))
        builder = self.builder
        is_array = builder.icmp_unsigned(
            "==", self._field(value, ObjectHead.type, _POINTER), self._object("ndarray")
        )
        with builder.if_then(builder.not_(is_array), likely=False):
            builder.ret(_INT1(0))
        descriptor = self._field(value, ArrayObject.descriptor, _POINTER)
        byteorder = self._field(descriptor, _DTypeObject.byteorder, _INT8)
        found = [
            self._field(descriptor, _DTypeObject.kind, _INT8),
            self._field(descriptor, _DTypeObject.itemsize, _INT64),
            self._field(value, ArrayObject.ndim, _INT32),
            builder.and_(self._field(value, ArrayObject.flags, _INT32), flags),
        ]
        checks = [builder.icmp_unsigned("==", one, other) for one, other in zip(found, [*wanted, flags])]
        checks.append(builder.icmp_unsigned("!=", byteorder, _INT8(ord(_SWAPPED))))
        builder.ret(functools.reduce(builder.and_, checks))
        self.builder = before
        return function

    def _is_accepted(
        self, accepts: ir.Function, value: ir.Value, argument: kernel_types.ArrayType
    ) -> ir.Value:
        dtype = argument.dtype
        return self.builder.call(
            accepts,
            [
                value,
                _INT8(ord(dtype.kind)),
                _INT64(dtype.itemsize),
                _INT32(argument.ndim),
                _INT32(argument.required_flags),
            ],
        )

    def _extent_checks(self, value: ir.Value, argument: kernel_types.ArrayType) -> list[ir.Value]:
        """Whether the ndarray `value` has the extents that the kernel is compiled for."""
        first = self._field(value, ArrayObject.shape, _INT64.as_pointer()) if any(argument.extents) else None
        return [
            self.builder.icmp_unsigned(
                "==", self.builder.load(self.builder.gep(first, [_INT64(axis)])), _INT64(extent)
            )
            for axis, extent in enumerate(argument.extents)
            if extent
        ]

    def _array(self, value: ir.Value, argument: kernel_types.ArrayType) -> list[ir.Value]:
        """The ndarray as kernels take arrays: data, shape, strides if they do not follow from it."""
        return self._native_array(argument, *self._described(value, argument))

    def _described(
        self, value: ir.Value, argument: kernel_types.ArrayType
    ) -> tuple[ir.Value, list[ir.Value], list[ir.Value]]:
        """Where the data is, the shape, and strides where they do not follow from it."""
        shape = self._integers(value, ArrayObject.shape, argument.ndim)
        is_c = argument.layout == "C"
        strides = [] if is_c else self._integers(value, ArrayObject.strides, argument.ndim)
        return self._field(value, ArrayObject.data, _POINTER), shape, strides

    def _native_array(
        self, argument: kernel_types.ArrayType, data: ir.Value, shape: list[ir.Value], strides: list[ir.Value]
    ) -> list[ir.Value]:
        for axis, extent in enumerate(argument.extents):
            shape[axis] = _INT64(extent) if extent else shape[axis]  # which LLVM propagates into the kernel
        return [data, *shape, *strides]

    def _integers(self, value: ir.Value, field: Any, count: int) -> list[ir.Value]:
        """The numbers that a field of an ndarray points to."""
        builder = self.builder
        first = self._field(value, field, _INT64.as_pointer()) if count else None
        return [builder.load(builder.gep(first, [_INT64(place)])) for place in range(count)]

    def _scalar(self, value: ir.Value, dtype: np.dtype) -> ir.Value:
        builder = self.builder
        if dtype.kind == "b":
            truth = self._checked(self._python("PyObject_IsTrue", _INT32, value))
            return builder.icmp_signed("!=", truth, _INT32(0))
        if dtype.kind == "f":
            number = self._checked(self._python("PyFloat_AsDouble", _DOUBLE, value))
            return number if dtype.itemsize == 8 else builder.fptrunc(number, ir.FloatType())
        number = self._checked(self._python("PyLong_AsLongLong", _INT64, value))
        return number if dtype.itemsize == 8 else builder.trunc(number, ir.IntType(8 * dtype.itemsize))

    def _checked(self, number: ir.Value) -> ir.Value:
        """`number`, unless it is -1 because Python could not convert the object."""
        builder = self.builder
        is_float = isinstance(number.type, ir.DoubleType)
        compare = builder.fcmp_ordered if is_float else builder.icmp_signed
        with builder.if_then(compare("==", number, number.type(-1.0 if is_float else -1)), likely=False):
            error = self._python("PyErr_Occurred", _POINTER)
            with builder.if_then(builder.icmp_unsigned("!=", error, _POINTER(None)), likely=False):
                builder.ret(_POINTER(None))
        return number

    # The call

    def _call_kernel(self, arguments: Sequence[ir.Value]) -> ir.Value:
        """Call the kernel; returns its error, or null."""
        fitting = zip(arguments, self.kernel.function_type.args)
        return self.builder.call(self.kernel, [self._as(argument, kind) for argument, kind in fitting])

    def _as(self, value: ir.Value, kind: ir.Type) -> ir.Value:
        """A pointer of another type."""
        return value if value.type == kind else self.builder.bitcast(value, kind)

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
        """A call of a function of Python's C API."""
        function = self.module.globals.get(name)
        if function is None:
            function_type = ir.FunctionType(result, [argument.type for argument in arguments])
            function = ir.Function(self.module, function_type, name)
        return self.builder.call(function, arguments)


def element_type(dtype: np.dtype) -> ir.Type:
    """LLVM's type of a number in memory."""
    if dtype.kind == "f":
        return ir.FloatType() if dtype.itemsize == 4 else _DOUBLE
    return ir.IntType(8 * dtype.itemsize)


class ObjectHead(ctypes.Structure):
    """PyObject_HEAD: reference count and type; longer in free-threaded builds."""

    _fields_ = [
        ("counts", ctypes.c_char * (object.__basicsize__ - ctypes.sizeof(ctypes.c_void_p))),
        ("type", ctypes.c_void_p),
    ]


class ArrayObject(ctypes.Structure):
    """PyArrayObject_fields of NumPy's C API, which has not changed since 1.7."""

    _fields_ = [
        ("head", ObjectHead),
        ("data", ctypes.c_void_p),
        ("ndim", ctypes.c_int),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("base", ctypes.c_void_p),
        ("descriptor", ctypes.c_void_p),
        ("flags", ctypes.c_int),
    ]


class _DTypeObject(ctypes.Structure):
    """The head of _PyArray_Descr of NumPy 2."""

    _fields_ = [
        ("head", ObjectHead),
        ("scalar_type", ctypes.c_void_p),
        ("kind", ctypes.c_char),
        ("character", ctypes.c_char),
        ("byteorder", ctypes.c_char),
        ("former_flags", ctypes.c_char),
        ("number", ctypes.c_int),
        ("flags", ctypes.c_uint64),
        ("itemsize", ctypes.c_ssize_t),
    ]
