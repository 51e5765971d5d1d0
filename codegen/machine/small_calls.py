"""The two ends of a call of a small function, in machine code: what the interpreter would do takes longer.

`matcher` makes a function that says whether arguments are arrays of certain dtypes and shapes;
`numbers_as_arrays` one that puts arrays in the places of numbers; `caller` one that allocates the arrays
which a kernel fills, calls it and hands them out. All are built-in functions of Python, each with a tuple as
its `self`: bytes that describe what it expects, then whatever has to live as long as it. They read the fields
of ndarrays in place, as `entry` does.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.tracer.spec import Spec

from .entry import ArrayObject, ObjectHead
from .loading import built_in, load_llvm

C_ARRAY = 0x1 | 0x100 | 0x400
"""The flags that say contiguous, aligned, writable: `array.flags.carray`."""
NEW_FROM_DESCRIPTOR = 94
"""The place of PyArray_NewFromDescr in the table of NumPy's C API, which keeps its order."""

_SOURCE = """
@pullback_object_ndarray = external global i8
@pullback_object_None = external global i8
@pullback_object_True = external global i8
@pullback_object_False = external global i8
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PySequence_Tuple(ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @pullback_new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)

define internal ptr @description(ptr %self) {
  %first = getelementptr i8, ptr %self, i64 <TUPLE>
  %bytes = load ptr, ptr %first
  %start = getelementptr i8, ptr %bytes, i64 <BYTES>
  ret ptr %start
}

; Expected: the number of arrays; of each its dtype, rank and extents.
define ptr @pullback_matches(ptr %self, ptr %arguments, i64 %count) {
entry:
  %expected = call ptr @description(ptr %self)
  %wanted = load i64, ptr %expected
  %first = getelementptr i64, ptr %expected, i64 1
  %same_count = icmp eq i64 %wanted, %count
  br i1 %same_count, label %next, label %no
next:
  %place = phi i64 [ 0, %entry ], [ %following, %dims ]
  %cursor = phi ptr [ %first, %entry ], [ %at_dim, %dims ]
  %exists = icmp slt i64 %place, %count
  br i1 %exists, label %array, label %yes
array:
  %at_value = getelementptr ptr, ptr %arguments, i64 %place
  %value = load ptr, ptr %at_value
  %at_type = getelementptr i8, ptr %value, i64 <TYPE>
  %type = load ptr, ptr %at_type
  %is_array = icmp eq ptr %type, @pullback_object_ndarray
  br i1 %is_array, label %look, label %no
look:
  %at_dtype = getelementptr i8, ptr %value, i64 <DESCRIPTOR>
  %dtype = load ptr, ptr %at_dtype
  %wanted_dtype = load ptr, ptr %cursor
  %at_flags = getelementptr i8, ptr %value, i64 <FLAGS>
  %flags = load i32, ptr %at_flags
  %set = and i32 %flags, <C_ARRAY>
  %at_rank = getelementptr i8, ptr %value, i64 <NDIM>
  %rank_32 = load i32, ptr %at_rank
  %rank = sext i32 %rank_32 to i64
  %at_wanted_rank = getelementptr i64, ptr %cursor, i64 1
  %wanted_rank = load i64, ptr %at_wanted_rank
  %at_shape = getelementptr i8, ptr %value, i64 <SHAPE>
  %shape = load ptr, ptr %at_shape
  %first_dim = getelementptr i64, ptr %cursor, i64 2
  %same_dtype = icmp eq ptr %dtype, %wanted_dtype
  %same_flags = icmp eq i32 %set, <C_ARRAY>
  %same_rank = icmp eq i64 %rank, %wanted_rank
  %both = and i1 %same_dtype, %same_flags
  %all = and i1 %both, %same_rank
  %following = add i64 %place, 1
  br i1 %all, label %dims, label %no
dims:
  %dim = phi i64 [ 0, %look ], [ %next_dim, %compare ]
  %at_dim = getelementptr i64, ptr %first_dim, i64 %dim
  %has_dim = icmp slt i64 %dim, %rank
  br i1 %has_dim, label %compare, label %next
compare:
  %at_extent = getelementptr i64, ptr %shape, i64 %dim
  %extent = load i64, ptr %at_extent
  %wanted_extent = load i64, ptr %at_dim
  %same_extent = icmp eq i64 %extent, %wanted_extent
  %next_dim = add i64 %dim, 1
  br i1 %same_extent, label %dims, label %no
yes:
  call void @Py_IncRef(ptr @pullback_object_True)
  ret ptr @pullback_object_True
no:
  call void @Py_IncRef(ptr @pullback_object_False)
  ret ptr @pullback_object_False
}

; Expected: the kernel and its `self`; how many arrays to fill, to hand out, and other arguments; those;
; of each array to fill its dtype, rank and extents. The one argument holds what the kernel reads.
define ptr @pullback_call(ptr %self, ptr %arguments, i64 %count) {
entry:
  %expected = call ptr @description(ptr %self)
  %kernel = load ptr, ptr %expected
  %at_its_self = getelementptr i64, ptr %expected, i64 1
  %its_self = load ptr, ptr %at_its_self
  %at_filled = getelementptr i64, ptr %expected, i64 2
  %filled = load i64, ptr %at_filled
  %at_handed = getelementptr i64, ptr %expected, i64 3
  %handed = load i64, ptr %at_handed
  %at_others = getelementptr i64, ptr %expected, i64 4
  %others = load i64, ptr %at_others
  %first_other = getelementptr i64, ptr %expected, i64 5
  %first_filled = getelementptr i64, ptr %first_other, i64 %others
  %given = load ptr, ptr %arguments
  %read = call ptr @PySequence_Tuple(ptr %given)
  %is_sequence = icmp ne ptr %read, null
  br i1 %is_sequence, label %begin, label %fail
begin:
  %at_length = getelementptr i8, ptr %read, i64 <LENGTH>
  %length = load i64, ptr %at_length
  %items = getelementptr i8, ptr %read, i64 <TUPLE>
  %with_filled = add i64 %length, %filled
  %total = add i64 %with_filled, %others
  %values = alloca ptr, i64 %total
  %new = getelementptr ptr, ptr %values, i64 %length
  %behind_new = getelementptr ptr, ptr %values, i64 %with_filled
  %bytes_read = mul i64 %length, 8
  %bytes_of_others = mul i64 %others, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %values, ptr %items, i64 %bytes_read, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %behind_new, ptr %first_other, i64 %bytes_of_others, i1 false)
  br label %allocate

allocate:
  %place = phi i64 [ 0, %begin ], [ %following, %allocated ]
  %cursor = phi ptr [ %first_filled, %begin ], [ %behind, %allocated ]
  %is_filled = icmp slt i64 %place, %filled
  br i1 %is_filled, label %new_array, label %run
new_array:
  %dtype = load ptr, ptr %cursor
  %at_rank = getelementptr i64, ptr %cursor, i64 1
  %rank = load i64, ptr %at_rank
  %rank_32 = trunc i64 %rank to i32
  %shape = getelementptr i64, ptr %cursor, i64 2
  %behind = getelementptr i64, ptr %shape, i64 %rank
  call void @Py_IncRef(ptr %dtype)
  %array = call ptr @pullback_new_array(ptr @pullback_object_ndarray, ptr %dtype, i32 %rank_32, ptr %shape,
                                        ptr null, ptr null, i32 0, ptr null)
  %at_new = getelementptr ptr, ptr %new, i64 %place
  store ptr %array, ptr %at_new
  %is_array = icmp ne ptr %array, null
  %following = add i64 %place, 1
  br i1 %is_array, label %allocated, label %drop_all
allocated:
  br label %allocate

run:
  %result = call ptr %kernel(ptr %its_self, ptr %values, i64 %total)
  %has_run = icmp ne ptr %result, null
  br i1 %has_run, label %hand_out, label %drop_all
hand_out:
  call void @Py_DecRef(ptr %result)
  %tuple = call ptr @PyTuple_New(i64 %handed)
  %is_tuple = icmp ne ptr %tuple, null
  br i1 %is_tuple, label %hand, label %drop_all
hand:
  %position = phi i64 [ 0, %hand_out ], [ %next_position, %handed_one ]
  %is_left = icmp slt i64 %position, %filled
  br i1 %is_left, label %hand_one, label %end
hand_one:
  %at_one = getelementptr ptr, ptr %new, i64 %position
  %one = load ptr, ptr %at_one
  %is_result = icmp slt i64 %position, %handed
  br i1 %is_result, label %keep, label %drop
keep:
  call i32 @PyTuple_SetItem(ptr %tuple, i64 %position, ptr %one)
  br label %handed_one
drop:
  call void @Py_DecRef(ptr %one)
  br label %handed_one
handed_one:
  %next_position = add i64 %position, 1
  br label %hand
end:
  call void @Py_DecRef(ptr %read)
  ret ptr %tuple

; An error: what has been allocated goes.
drop_all:
  %made = phi i64 [ %place, %new_array ], [ %filled, %run ], [ %filled, %hand_out ]
  br label %drop_next
drop_next:
  %dropped = phi i64 [ 0, %drop_all ], [ %dropped_now, %drop_one ]
  %is_made = icmp slt i64 %dropped, %made
  br i1 %is_made, label %drop_one, label %dropped_all
drop_one:
  %at_dropped = getelementptr ptr, ptr %new, i64 %dropped
  %old = load ptr, ptr %at_dropped
  call void @Py_DecRef(ptr %old)
  %dropped_now = add i64 %dropped, 1
  br label %drop_next
dropped_all:
  call void @Py_DecRef(ptr %read)
  br label %fail
fail:
  ret ptr null
}

; Expected: the number of arguments, the largest integer; of each argument the type of a number, the dtype of
; its array, and whether it is an integer; zeros where it stays. The one argument is a tuple. What it gives is
; another one, without elements where the arguments are others.
define ptr @pullback_with_arrays(ptr %self, ptr %arguments, i64 %count) {
entry:
  %expected = call ptr @description(ptr %self)
  %wanted = load i64, ptr %expected
  %at_largest = getelementptr i64, ptr %expected, i64 1
  %largest = load i64, ptr %at_largest
  %smallest = sub i64 0, %largest
  %first = getelementptr i64, ptr %expected, i64 2
  %overflow = alloca i32
  %given = load ptr, ptr %arguments
  %at_length = getelementptr i8, ptr %given, i64 <LENGTH>
  %length = load i64, ptr %at_length
  %items = getelementptr i8, ptr %given, i64 <TUPLE>
  %same_count = icmp eq i64 %wanted, %length
  br i1 %same_count, label %begin, label %others
begin:
  %tuple = call ptr @PyTuple_New(i64 %length)
  %is_tuple = icmp ne ptr %tuple, null
  br i1 %is_tuple, label %next, label %fail
next:
  %place = phi i64 [ 0, %begin ], [ %following, %put ]
  %cursor = phi ptr [ %first, %begin ], [ %behind, %put ]
  %following = add i64 %place, 1
  %behind = getelementptr i64, ptr %cursor, i64 3
  %exists = icmp slt i64 %place, %length
  br i1 %exists, label %look, label %done
look:
  %at_value = getelementptr ptr, ptr %items, i64 %place
  %value = load ptr, ptr %at_value
  %kind = load ptr, ptr %cursor
  %stays = icmp eq ptr %kind, null
  br i1 %stays, label %keep, label %compare
keep:
  call void @Py_IncRef(ptr %value)
  br label %put
compare:
  %at_type = getelementptr i8, ptr %value, i64 <TYPE>
  %type = load ptr, ptr %at_type
  %same_type = icmp eq ptr %type, %kind
  %at_dtype = getelementptr i64, ptr %cursor, i64 1
  %dtype = load ptr, ptr %at_dtype
  %at_is_integer = getelementptr i64, ptr %cursor, i64 2
  %integer_word = load i64, ptr %at_is_integer
  %is_integer = icmp ne i64 %integer_word, 0
  br i1 %same_type, label %convert, label %drop
convert:
  br i1 %is_integer, label %integer, label %float
integer:
  %whole = call i64 @PyLong_AsLongLongAndOverflow(ptr %value, ptr %overflow)
  %overflown = load i32, ptr %overflow
  %fits = icmp eq i32 %overflown, 0
  %not_below = icmp sge i64 %whole, %smallest
  %not_above = icmp sle i64 %whole, %largest
  %in_range = and i1 %not_below, %not_above
  %is_exact = and i1 %in_range, %fits
  br i1 %is_exact, label %make, label %drop
float:
  %number = call double @PyFloat_AsDouble(ptr %value)
  %bits = bitcast double %number to i64
  br label %make
make:
  %content = phi i64 [ %whole, %integer ], [ %bits, %float ]
  call void @Py_IncRef(ptr %dtype)
  %array = call ptr @pullback_new_array(ptr @pullback_object_ndarray, ptr %dtype, i32 0, ptr null,
                                        ptr null, ptr null, i32 0, ptr null)
  %is_array = icmp ne ptr %array, null
  br i1 %is_array, label %fill, label %drop_and_fail
fill:
  %at_data = getelementptr i8, ptr %array, i64 <DATA>
  %data = load ptr, ptr %at_data
  store i64 %content, ptr %data
  br label %put
put:
  %element = phi ptr [ %value, %keep ], [ %array, %fill ]
  call i32 @PyTuple_SetItem(ptr %tuple, i64 %place, ptr %element)
  br label %next
done:
  ret ptr %tuple
drop:
  call void @Py_DecRef(ptr %tuple)
  br label %others
others:
  %nothing = call ptr @PyTuple_New(i64 0)
  ret ptr %nothing
drop_and_fail:
  call void @Py_DecRef(ptr %tuple)
  br label %fail
fail:
  ret ptr null
}
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare double @PyFloat_AsDouble(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


def matcher(arrays: Sequence[np.ndarray]) -> Callable[..., bool]:
    """The function that says whether its arguments are ndarrays like these: dtype, shape, C-contiguous.

    A dtype that is equal and another object does not match.

    >>> matcher([np.ones(3)])(np.zeros(3))
    True
    """
    words = [len(arrays)]
    for array in arrays:
        words += [id(array.dtype), array.ndim, *array.shape]
    return _function("pullback_matches", words, [array.dtype for array in arrays])


@functools.lru_cache(maxsize=256)
def numbers_as_arrays(kinds: tuple[type, ...], largest: int) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """The function from the arguments of a call to those of a program: arrays for floats and integers.

    Args:
        kinds: the types of the arguments. Others in the places of numbers, and integers beyond `largest`,
            give a tuple without elements.

    >>> numbers_as_arrays((np.ndarray, float), 2**53)((np.ones(1), 2.5))
    (array([1.]), array(2.5))
    """
    words, dtypes = [len(kinds), largest], []
    for kind in kinds:
        if kind in (float, int):
            dtypes.append(np.asarray(kind()).dtype)
            words += [id(kind), id(dtypes[-1]), kind is int]
        else:
            words += [0, 0, 0]
    return _function("pullback_with_arrays", words, dtypes)


def caller(
    kernel: Callable[..., Any], filled: Sequence[Spec], numbers: Sequence[int | float], count: int
) -> Callable[[Sequence[np.ndarray]], tuple[np.ndarray, ...]]:
    """The function that calls a kernel with the arrays of a sequence, then new ones, then numbers.

    It returns the first `count` of the new ones.
    """
    api = ctypes.pythonapi
    for get in (api.PyCFunction_GetFunction, api.PyCFunction_GetSelf):
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object]
    words = [api.PyCFunction_GetFunction(kernel), api.PyCFunction_GetSelf(kernel)]
    words += [len(filled), count, len(numbers), *map(id, numbers)]
    for spec in filled:
        words += [id(spec.dtype), spec.ndim, *spec.shape]
    return _function("pullback_call", words, [kernel, *numbers, *(spec.dtype for spec in filled)])


def _function(symbol: str, words: Sequence[int], kept: Sequence[Any]) -> Callable[..., Any]:
    return built_in_with(symbol.removeprefix("pullback_"), _addresses()[symbol], words, kept)


def built_in_with(name: str, address: int, words: Sequence[int], kept: Sequence[Any]) -> Callable[..., Any]:
    """A function of Python whose machine code reads words; what is kept lives as long as it."""
    return built_in(name, address, (struct.pack(f"={len(words)}q", *words), *kept))


@functools.cache
def _addresses() -> dict[str, int]:
    """Where the functions are, once the code is loaded."""
    places = {
        "TUPLE": tuple.__basicsize__,
        "LENGTH": tuple.__basicsize__ - ctypes.sizeof(ctypes.c_ssize_t),
        "BYTES": bytes.__basicsize__ - 1,
        "TYPE": ObjectHead.type.offset,
        "DESCRIPTOR": ArrayObject.descriptor.offset,
        "FLAGS": ArrayObject.flags.offset,
        "DATA": ArrayObject.data.offset,
        "NDIM": ArrayObject.ndim.offset,
        "SHAPE": ArrayObject.shape.offset,
        "C_ARRAY": C_ARRAY,
    }
    symbols = {"pullback_new_array": numpy_pointer(NEW_FROM_DESCRIPTOR)}
    names = ("pullback_matches", "pullback_call", "pullback_with_arrays")
    return load_llvm("calls", _SOURCE, places, symbols, names)


def numpy_pointer(place: int) -> int:
    """An entry of the table of NumPy's C API: the address of a function or a variable."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    return int((ctypes.c_void_p * (place + 1)).from_address(table)[place] or 0)
