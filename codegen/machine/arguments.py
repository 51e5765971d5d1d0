"""Reading the arguments of a call from Python: one function of machine code, which all kernels' entries call.

It checks arrays in place, so that a wrong one corrupts no memory (the exact type, dtype, rank, layout,
extents), and writes what a kernel takes of them. Numba's wrapper goes through a C function per array, which
copies its description and counts references: 70 ns an array; this takes some 4. Written into each entry, the
same would be as long as many a kernel, and take LLVM as long.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Iterable

from . import kernel_types
from .loading import load_llvm

READ = "pullback_read_arguments"
"""The function (objects, how many, how many there must be, words that describe them, where fields go).

It returns the number of elements of all arrays, or one of the next two.
"""
REFUSED, RAISED = -1, -2
_SWAPPED = ">" if sys.byteorder == "little" else "<"  # NumPy's sign for foreign byte order
_TRUTH, _FLOAT, _INTEGER = -1, -2, -3
_NUMBERS = {"b": _TRUTH, "f": _FLOAT}

Argument = kernel_types.ArrayType | kernel_types.ScalarType

_SOURCE = """
@pullback_object_ndarray = external global i8
declare i32 @PyObject_IsTrue(ptr)
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyErr_Occurred()
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define i64 @pullback_read_arguments(ptr %arguments, i64 %count, i64 %wanted_count, ptr %table, ptr %fields) {
entry:
  %same_count = icmp eq i64 %count, %wanted_count
  br i1 %same_count, label %next, label %refuse
next:
  %place = phi i64 [ 0, %entry ], [ %following, %array_end ], [ %following, %number ]
  %words = phi ptr [ %table, %entry ], [ %behind_extents, %array_end ], [ %extents, %number ]
  %field = phi ptr [ %fields, %entry ], [ %behind_array, %array_end ], [ %second_field, %number ]
  %elements = phi i64 [ 0, %entry ], [ %elements_now, %array_end ], [ %elements, %number ]
  %is_left = icmp slt i64 %place, %count
  br i1 %is_left, label %look, label %end
look:
  %following = add i64 %place, 1
  %at_value = getelementptr ptr, ptr %arguments, i64 %place
  %value = load ptr, ptr %at_value
  %word = load i64, ptr %words
  %extents = getelementptr i64, ptr %words, i64 1
  %second_field = getelementptr i64, ptr %field, i64 1
  switch i64 %word, label %array [ i64 <TRUTH>, label %truth
                                   i64 <FLOAT>, label %float
                                   i64 <INTEGER>, label %integer ]

array:
  %at_type = getelementptr i8, ptr %value, i64 <TYPE>
  %type = load ptr, ptr %at_type
  %is_array = icmp eq ptr %type, @pullback_object_ndarray
  br i1 %is_array, label %describe, label %refuse
describe:
  %at_descriptor = getelementptr i8, ptr %value, i64 <DESCRIPTOR>
  %descriptor = load ptr, ptr %at_descriptor
  %at_order = getelementptr i8, ptr %descriptor, i64 <BYTEORDER>
  %order = load i8, ptr %at_order
  %at_kind = getelementptr i8, ptr %descriptor, i64 <KIND>
  %kind_8 = load i8, ptr %at_kind
  %kind = zext i8 %kind_8 to i64
  %at_itemsize = getelementptr i8, ptr %descriptor, i64 <ITEMSIZE>
  %itemsize = load i64, ptr %at_itemsize
  %at_rank = getelementptr i8, ptr %value, i64 <NDIM>
  %rank_32 = load i32, ptr %at_rank
  %rank = zext i32 %rank_32 to i64
  %at_flags = getelementptr i8, ptr %value, i64 <FLAGS>
  %flags_32 = load i32, ptr %at_flags
  %flags = zext i32 %flags_32 to i64
  %wanted_flags = lshr i64 %word, 32
  %set = and i64 %flags, %wanted_flags
  %high = shl i64 %set, 32
  %middle = shl i64 %rank, 16
  %low = shl i64 %itemsize, 8
  %both = or i64 %high, %middle
  %three = or i64 %both, %low
  %found = or i64 %three, %kind
  %same = icmp eq i64 %found, %word
  %native = icmp ne i8 %order, <SWAPPED>
  %fits = and i1 %same, %native
  br i1 %fits, label %fill, label %refuse
fill:
  %at_data = getelementptr i8, ptr %value, i64 <DATA>
  %data = load i64, ptr %at_data
  store i64 %data, ptr %field
  %at_shape = getelementptr i8, ptr %value, i64 <SHAPE>
  %shape = load ptr, ptr %at_shape
  br label %next_dim
next_dim:
  %dim = phi i64 [ 0, %fill ], [ %following_dim, %keep ]
  %size = phi i64 [ 1, %fill ], [ %size_now, %keep ]
  %is_dim = icmp slt i64 %dim, %rank
  br i1 %is_dim, label %compare, label %behind_shape
compare:
  %at_extent = getelementptr i64, ptr %shape, i64 %dim
  %extent = load i64, ptr %at_extent
  %at_wanted = getelementptr i64, ptr %extents, i64 %dim
  %wanted = load i64, ptr %at_wanted
  %is_any = icmp eq i64 %wanted, 0
  %is_wanted = icmp eq i64 %wanted, %extent
  %may_be = or i1 %is_any, %is_wanted
  br i1 %may_be, label %keep, label %refuse
keep:
  %extent_field = getelementptr i64, ptr %second_field, i64 %dim
  store i64 %extent, ptr %extent_field
  %size_now = mul i64 %size, %extent
  %following_dim = add i64 %dim, 1
  br label %next_dim
behind_shape:
  %elements_now = add i64 %elements, %size
  %behind_extents = getelementptr i64, ptr %extents, i64 %rank
  %stride_fields = getelementptr i64, ptr %second_field, i64 %rank
  %follow = and i64 %wanted_flags, <C_CONTIGUOUS>
  %have_strides = icmp eq i64 %follow, 0
  br i1 %have_strides, label %keep_strides, label %array_end
keep_strides:
  %at_strides = getelementptr i8, ptr %value, i64 <STRIDES>
  %strides = load ptr, ptr %at_strides
  %bytes = mul i64 %rank, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %stride_fields, ptr %strides, i64 %bytes, i1 false)
  %behind_strides = getelementptr i64, ptr %stride_fields, i64 %rank
  br label %array_end
array_end:
  %behind_array = phi ptr [ %stride_fields, %behind_shape ], [ %behind_strides, %keep_strides ]
  br label %next

truth:
  %truth_32 = call i32 @PyObject_IsTrue(ptr %value)
  %truth_value = sext i32 %truth_32 to i64
  %no_truth = icmp slt i32 %truth_32, 0
  br i1 %no_truth, label %raised, label %number
float:
  %double = call double @PyFloat_AsDouble(ptr %value)
  %bits = bitcast double %double to i64
  %may_be_no_float = fcmp oeq double %double, -1.0
  br i1 %may_be_no_float, label %ask, label %number
integer:
  %whole = call i64 @PyLong_AsLongLong(ptr %value)
  %may_be_no_integer = icmp eq i64 %whole, -1
  br i1 %may_be_no_integer, label %ask, label %number
ask:
  %asked = phi i64 [ %bits, %float ], [ %whole, %integer ]
  %error = call ptr @PyErr_Occurred()
  %is_error = icmp ne ptr %error, null
  br i1 %is_error, label %raised, label %number
number:
  %content = phi i64 [ %truth_value, %truth ], [ %bits, %float ], [ %whole, %integer ], [ %asked, %ask ]
  store i64 %content, ptr %field
  br label %next

end:
  ret i64 %elements
refuse:
  ret i64 <REFUSED>
raised:
  ret i64 <RAISED>
}
"""


def words_of(argument: Argument) -> tuple[int, ...]:
    """What the words say of an argument: of an array all that is compared at once, then its extents."""
    dtype = argument.dtype
    if isinstance(argument, kernel_types.ScalarType):
        return (_NUMBERS.get(dtype.kind, _INTEGER),)
    first = ord(dtype.kind) | dtype.itemsize << 8 | argument.ndim << 16 | argument.required_flags << 32
    return (first, *(argument.extents or (0,) * argument.ndim))


def fields_of(argument: Argument) -> int:
    """How many fields there are of it: of an array its address, shape, and strides that do not follow."""
    if isinstance(argument, kernel_types.ScalarType):
        return 1
    return 1 + argument.ndim * (1 if argument.layout == "C" else 2)


def register_symbols(needed: Iterable[str]) -> None:
    """Let code that is loaded find the function, if it needs it."""
    if READ in needed:
        _load()


@functools.cache
def _load() -> None:
    places = {
        "TYPE": ObjectHead.type.offset,
        "DESCRIPTOR": ArrayObject.descriptor.offset,
        "FLAGS": ArrayObject.flags.offset,
        "DATA": ArrayObject.data.offset,
        "NDIM": ArrayObject.ndim.offset,
        "SHAPE": ArrayObject.shape.offset,
        "STRIDES": ArrayObject.strides.offset,
        "KIND": _DTypeObject.kind.offset,
        "BYTEORDER": _DTypeObject.byteorder.offset,
        "ITEMSIZE": _DTypeObject.itemsize.offset,
        "SWAPPED": ord(_SWAPPED),
        "TRUTH": _TRUTH,
        "FLOAT": _FLOAT,
        "INTEGER": _INTEGER,
        "C_CONTIGUOUS": 0x1,
        "REFUSED": REFUSED,
        "RAISED": RAISED,
    }
    load_llvm("arguments", _SOURCE, places, {}, (READ,))


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
