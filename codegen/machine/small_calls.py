"""The two ends of a call of a small function, in machine code: what the interpreter would do takes longer.

`dispatcher` makes the function that finds what runs a call by its arguments, and runs it; `caller` one that
allocates the arrays which a kernel fills, calls it and hands them out. Both are built-in functions of Python,
each with a tuple as its `self`: bytes that describe what it expects, then whatever has to live as long as it.
They read the fields of ndarrays in place, as `arguments` does.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from pullback.tracer.spec import Spec

from .arguments import ArrayObject, ObjectHead
from .loading import built_in, load_llvm

C_ARRAY = 0x1 | 0x100 | 0x400
"""The flags that say contiguous, aligned, writable: `array.flags.carray`."""
NEW_FROM_DESCRIPTOR = 94
"""The place of PyArray_NewFromDescr in the table of NumPy's C API, which keeps its order."""
SAME, ARRAY, FLOAT, INTEGER, TENSOR, TUPLE = range(6)
"""What an argument of a call may have to be; see `Argument`."""

_SOURCE = """
@pullback_object_ndarray = external global i8
@pullback_object_tuple = external global i8
@pullback_object_None = external global i8
@pullback_object_True = external global i8
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PySequence_Tuple(ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @pullback_new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)

define internal ptr @description(ptr %self) {
  %first = getelementptr i8, ptr %self, i64 <ITEMS>
  %bytes = load ptr, ptr %first
  %start = getelementptr i8, ptr %bytes, i64 <BYTES>
  ret ptr %start
}

; Puts items and, behind each that is a tuple, its items behind the `count` values that are there already, and
; returns how many there are then; -1: more than `most`.
define internal i64 @spread(ptr %items, i64 %length, ptr %values, i64 %count, i64 %most) {
entry:
  br label %next
next:
  %place = phi i64 [ 0, %entry ], [ %following, %put ], [ %following, %inner ]
  %filled = phi i64 [ %count, %entry ], [ %behind, %put ], [ %inner_filled, %inner ]
  %following = add i64 %place, 1
  %is_item = icmp slt i64 %place, %length
  br i1 %is_item, label %look, label %end
look:
  %has_room = icmp slt i64 %filled, %most
  br i1 %has_room, label %put, label %full
put:
  %at_item = getelementptr ptr, ptr %items, i64 %place
  %item = load ptr, ptr %at_item
  %at_value = getelementptr ptr, ptr %values, i64 %filled
  store ptr %item, ptr %at_value
  %behind = add i64 %filled, 1
  %at_type = getelementptr i8, ptr %item, i64 <TYPE>
  %type = load ptr, ptr %at_type
  %is_tuple = icmp eq ptr %type, @pullback_object_tuple
  br i1 %is_tuple, label %inner, label %next
inner:
  %at_inner_length = getelementptr i8, ptr %item, i64 <LENGTH>
  %inner_length = load i64, ptr %at_inner_length
  %inner_items = getelementptr i8, ptr %item, i64 <ITEMS>
  %inner_filled = call i64 @spread(ptr %inner_items, i64 %inner_length, ptr %values, i64 %behind, i64 %most)
  %fits = icmp sge i64 %inner_filled, 0
  br i1 %fits, label %next, label %full
full:
  ret i64 -1
end:
  ret i64 %filled
}

; Expected: how many rows there are; what says that none fits; the functions that conform arguments and look
; at a view; the variable that says whether operations are recorded; where a Tensor has its value, its view
; and whether it requires a gradient; the largest integer; the most arguments of a row; then the rows. Each
; has its number of words, the number of arguments, the default dtype, what runs it, where its calls are
; counted, how many arguments a program takes (-1: all, as they are), and the arguments: kind, number of
; words, object, type or length; see `Argument`. Given are a tuple, the arguments of a call, and the default
; dtype.
define ptr @pullback_dispatch(ptr %self, ptr %arguments, i64 %count) {
entry:
  %overflow = alloca i32
  %mode = alloca ptr
  %words = call ptr @description(ptr %self)
  %rows = load i64, ptr %words
  %at_unknown = getelementptr i64, ptr %words, i64 1
  %unknown = load ptr, ptr %at_unknown
  %at_most = getelementptr i64, ptr %words, i64 9
  %most = load i64, ptr %at_most
  %items = alloca ptr, i64 %most
  %first_row = getelementptr i64, ptr %words, i64 10
  %given = load ptr, ptr %arguments
  %at_default = getelementptr ptr, ptr %arguments, i64 1
  %default = load ptr, ptr %at_default
  %at_length = getelementptr i8, ptr %given, i64 <LENGTH>
  %given_length = load i64, ptr %at_length
  %given_items = getelementptr i8, ptr %given, i64 <ITEMS>
  %length = call i64 @spread(ptr %given_items, i64 %given_length, ptr %items, i64 0, i64 %most)
  br label %next_row

next_row:
  %row_number = phi i64 [ 0, %entry ], [ %following_row, %other_row ]
  %row = phi ptr [ %first_row, %entry ], [ %behind_row, %other_row ]
  %is_row = icmp slt i64 %row_number, %rows
  br i1 %is_row, label %begin_row, label %none
begin_row:
  %row_words = load i64, ptr %row
  %behind_row = getelementptr i64, ptr %row, i64 %row_words
  %at_wanted_count = getelementptr i64, ptr %row, i64 1
  %wanted_count = load i64, ptr %at_wanted_count
  %at_wanted_default = getelementptr i64, ptr %row, i64 2
  %wanted_default = load ptr, ptr %at_wanted_default
  %first_argument = getelementptr i64, ptr %row, i64 6
  %same_count = icmp eq i64 %length, %wanted_count
  %same_default = icmp eq ptr %default, %wanted_default
  %may_fit = and i1 %same_count, %same_default
  br i1 %may_fit, label %next_argument, label %other_row
other_row:
  %following_row = add i64 %row_number, 1
  br label %next_row
none:
  call void @Py_IncRef(ptr %unknown)
  ret ptr %unknown

next_argument:
  %place = phi i64 [ 0, %begin_row ], [ %following, %matched ]
  %cursor = phi ptr [ %first_argument, %begin_row ], [ %behind, %matched ]
  %all_fit = phi i1 [ true, %begin_row ], [ %fit_so_far, %matched ]
  %following = add i64 %place, 1
  %is_argument = icmp slt i64 %place, %length
  br i1 %is_argument, label %look, label %found
look:
  %at_value = getelementptr ptr, ptr %items, i64 %place
  %value = load ptr, ptr %at_value
  %at_type = getelementptr i8, ptr %value, i64 <TYPE>
  %type = load ptr, ptr %at_type
  %kind = load i64, ptr %cursor
  %at_size = getelementptr i64, ptr %cursor, i64 1
  %size = load i64, ptr %at_size
  %behind = getelementptr i64, ptr %cursor, i64 %size
  %at_wanted = getelementptr i64, ptr %cursor, i64 2
  %wanted = load ptr, ptr %at_wanted
  %at_fourth = getelementptr i64, ptr %cursor, i64 3
  %at_fifth = getelementptr i64, ptr %cursor, i64 4
  %same_type = icmp eq ptr %type, %wanted
  switch i64 %kind, label %same [ i64 <ARRAY>, label %array
                                  i64 <FLOAT>, label %float
                                  i64 <INTEGER>, label %integer
                                  i64 <TENSOR>, label %tensor
                                  i64 <TUPLE>, label %tuple_of ]
same:
  %is_same = icmp eq ptr %value, %wanted
  br i1 %is_same, label %matched, label %other_row
tuple_of:
  %is_of_tuple = icmp eq ptr %type, @pullback_object_tuple
  br i1 %is_of_tuple, label %inner_items, label %other_row
inner_items:
  %at_inner_length = getelementptr i8, ptr %value, i64 <LENGTH>
  %inner_length = load ptr, ptr %at_inner_length
  %same_length = icmp eq ptr %inner_length, %wanted
  br i1 %same_length, label %matched, label %other_row
float:
  br i1 %same_type, label %matched, label %other_row
integer:
  br i1 %same_type, label %range, label %other_row
range:
  %at_largest = getelementptr i64, ptr %words, i64 8
  %largest = load i64, ptr %at_largest
  %smallest = sub i64 0, %largest
  %whole = call i64 @PyLong_AsLongLongAndOverflow(ptr %value, ptr %overflow)
  %overflown = load i32, ptr %overflow
  %is_long = icmp eq i32 %overflown, 0
  %not_below = icmp sge i64 %whole, %smallest
  %not_above = icmp sle i64 %whole, %largest
  %in_range = and i1 %not_below, %not_above
  %is_exact = and i1 %in_range, %is_long
  br i1 %is_exact, label %matched, label %other_row
array:
  br i1 %same_type, label %described, label %other_row

tensor:
  br i1 %same_type, label %view, label %other_row
view:
  %at_view_place = getelementptr i64, ptr %words, i64 6
  %view_place = load i64, ptr %at_view_place
  %at_view = getelementptr i8, ptr %value, i64 %view_place
  %shown = load ptr, ptr %at_view
  %is_whole = icmp eq ptr %shown, @pullback_object_None
  br i1 %is_whole, label %gradient, label %refresh
refresh:
  %at_refreshing = getelementptr i64, ptr %words, i64 3
  %refreshing = load ptr, ptr %at_refreshing
  %refreshed = call ptr @PyObject_CallOneArg(ptr %refreshing, ptr %value)
  %is_refreshed = icmp ne ptr %refreshed, null
  br i1 %is_refreshed, label %drop_none, label %fail
drop_none:
  call void @Py_DecRef(ptr %refreshed)
  br label %gradient
gradient:
  %at_requires_place = getelementptr i64, ptr %words, i64 7
  %requires_place = load i64, ptr %at_requires_place
  %at_requires = getelementptr i8, ptr %value, i64 %requires_place
  %requires = load ptr, ptr %at_requires
  %is_required = icmp eq ptr %requires, @pullback_object_True
  br i1 %is_required, label %recording, label %payload
recording:
  %at_variable = getelementptr i64, ptr %words, i64 4
  %variable = load ptr, ptr %at_variable
  %status = call i32 @PyContextVar_Get(ptr %variable, ptr null, ptr %mode)
  %is_known = icmp eq i32 %status, 0
  br i1 %is_known, label %compare_mode, label %fail
compare_mode:
  %current = load ptr, ptr %mode
  call void @Py_DecRef(ptr %current)
  %is_recording = icmp eq ptr %current, @pullback_object_True
  br label %payload
payload:
  %asked = phi i1 [ false, %gradient ], [ %is_recording, %compare_mode ]
  %asked_word = zext i1 %asked to i64
  %wanted_asked = load i64, ptr %at_fourth
  %same_asked = icmp eq i64 %asked_word, %wanted_asked
  %at_payload_place = getelementptr i64, ptr %words, i64 5
  %payload_place = load i64, ptr %at_payload_place
  %at_payload = getelementptr i8, ptr %value, i64 %payload_place
  %held = load ptr, ptr %at_payload
  %is_held = icmp ne ptr %held, null
  %may_be_array = and i1 %same_asked, %is_held
  br i1 %may_be_array, label %payload_type, label %other_row
payload_type:
  %at_held_type = getelementptr i8, ptr %held, i64 <TYPE>
  %held_type = load ptr, ptr %at_held_type
  %holds_array = icmp eq ptr %held_type, @pullback_object_ndarray
  br i1 %holds_array, label %described, label %other_row

; Of an array: its dtype, rank and extents. One of another layout is conformed, but for that of a Tensor.
described:
  %found_array = phi ptr [ %value, %array ], [ %held, %payload_type ]
  %at_wanted_dtype = phi ptr [ %at_fourth, %array ], [ %at_fifth, %payload_type ]
  %stays = phi i1 [ false, %array ], [ true, %payload_type ]
  %at_dtype = getelementptr i8, ptr %found_array, i64 <DESCRIPTOR>
  %dtype = load ptr, ptr %at_dtype
  %wanted_dtype = load ptr, ptr %at_wanted_dtype
  %at_rank = getelementptr i8, ptr %found_array, i64 <NDIM>
  %rank_32 = load i32, ptr %at_rank
  %rank = sext i32 %rank_32 to i64
  %at_wanted_rank = getelementptr i64, ptr %at_wanted_dtype, i64 1
  %wanted_rank = load i64, ptr %at_wanted_rank
  %at_shape = getelementptr i8, ptr %found_array, i64 <SHAPE>
  %shape = load ptr, ptr %at_shape
  %first_dim = getelementptr i64, ptr %at_wanted_dtype, i64 2
  %at_flags = getelementptr i8, ptr %found_array, i64 <FLAGS>
  %flags = load i32, ptr %at_flags
  %set = and i32 %flags, <C_ARRAY>
  %has_layout = icmp eq i32 %set, <C_ARRAY>
  %fits = or i1 %has_layout, %stays
  %all_fit_now = and i1 %all_fit, %fits
  %same_dtype = icmp eq ptr %dtype, %wanted_dtype
  %same_rank = icmp eq i64 %rank, %wanted_rank
  %both = and i1 %same_dtype, %same_rank
  br i1 %both, label %dims, label %other_row
dims:
  %dim = phi i64 [ 0, %described ], [ %next_dim, %compare ]
  %at_dim = getelementptr i64, ptr %first_dim, i64 %dim
  %has_dim = icmp slt i64 %dim, %rank
  br i1 %has_dim, label %compare, label %matched
compare:
  %at_extent = getelementptr i64, ptr %shape, i64 %dim
  %extent = load i64, ptr %at_extent
  %wanted_extent = load i64, ptr %at_dim
  %same_extent = icmp eq i64 %extent, %wanted_extent
  %next_dim = add i64 %dim, 1
  br i1 %same_extent, label %dims, label %other_row
matched:
  %fit_so_far = phi i1 [ %all_fit, %same ], [ %all_fit, %inner_items ], [ %all_fit, %float ],
                       [ %all_fit, %range ], [ %all_fit_now, %dims ]
  br label %next_argument

found:
  %at_taken = getelementptr i64, ptr %row, i64 5
  %taken = load i64, ptr %at_taken
  %takes_all = icmp slt i64 %taken, 0
  br i1 %takes_all, label %take_given, label %take_some
take_given:
  call void @Py_IncRef(ptr %given)
  br label %taken_all
take_some:
  %tuple = call ptr @PyTuple_New(i64 %taken)
  %is_tuple = icmp ne ptr %tuple, null
  br i1 %is_tuple, label %next_taken, label %fail
next_taken:
  %from = phi i64 [ 0, %take_some ], [ %next_from, %skip ]
  %to = phi i64 [ 0, %take_some ], [ %next_to, %skip ]
  %taking = phi ptr [ %first_argument, %take_some ], [ %behind_taking, %skip ]
  %next_from = add i64 %from, 1
  %is_from = icmp slt i64 %from, %length
  br i1 %is_from, label %take, label %taken_all
take:
  %at_taking_value = getelementptr ptr, ptr %items, i64 %from
  %taking_value = load ptr, ptr %at_taking_value
  %taking_kind = load i64, ptr %taking
  %at_taking_size = getelementptr i64, ptr %taking, i64 1
  %taking_size = load i64, ptr %at_taking_size
  %behind_taking = getelementptr i64, ptr %taking, i64 %taking_size
  %at_number_dtype = getelementptr i64, ptr %taking, i64 3
  switch i64 %taking_kind, label %keep [ i64 <SAME>, label %skip
                                         i64 <TUPLE>, label %skip
                                         i64 <FLOAT>, label %take_float
                                         i64 <INTEGER>, label %take_integer ]
keep:
  call void @Py_IncRef(ptr %taking_value)
  br label %put
take_float:
  %number = call double @PyFloat_AsDouble(ptr %taking_value)
  %bits = bitcast double %number to i64
  br label %make
take_integer:
  %integer_value = call i64 @PyLong_AsLongLongAndOverflow(ptr %taking_value, ptr %overflow)
  br label %make
make:
  %content = phi i64 [ %bits, %take_float ], [ %integer_value, %take_integer ]
  %number_dtype = load ptr, ptr %at_number_dtype
  call void @Py_IncRef(ptr %number_dtype)
  %number_array = call ptr @pullback_new_array(ptr @pullback_object_ndarray, ptr %number_dtype, i32 0,
                                               ptr null, ptr null, ptr null, i32 0, ptr null)
  %is_made = icmp ne ptr %number_array, null
  br i1 %is_made, label %fill, label %drop_and_fail
fill:
  %at_data = getelementptr i8, ptr %number_array, i64 <DATA>
  %data = load ptr, ptr %at_data
  store i64 %content, ptr %data
  br label %put
put:
  %element = phi ptr [ %taking_value, %keep ], [ %number_array, %fill ]
  call i32 @PyTuple_SetItem(ptr %tuple, i64 %to, ptr %element)
  %behind_put = add i64 %to, 1
  br label %skip
skip:
  %next_to = phi i64 [ %to, %take ], [ %to, %take ], [ %behind_put, %put ]
  br label %next_taken

taken_all:
  %leaves = phi ptr [ %given, %take_given ], [ %tuple, %next_taken ]
  br i1 %all_fit, label %run, label %conform
conform:
  %at_conforming = getelementptr i64, ptr %words, i64 2
  %conforming = load ptr, ptr %at_conforming
  %conformed = call ptr @PyObject_CallOneArg(ptr %conforming, ptr %leaves)
  call void @Py_DecRef(ptr %leaves)
  %is_conformed = icmp ne ptr %conformed, null
  br i1 %is_conformed, label %run, label %fail
run:
  %passed = phi ptr [ %leaves, %taken_all ], [ %conformed, %conform ]
  %at_runner = getelementptr i64, ptr %row, i64 3
  %runner = load ptr, ptr %at_runner
  %result = call ptr @PyObject_CallOneArg(ptr %runner, ptr %passed)
  call void @Py_DecRef(ptr %passed)
  %at_counter = getelementptr i64, ptr %row, i64 4
  %counter = load ptr, ptr %at_counter
  %calls = load i64, ptr %counter
  %counts = icmp ne ptr %result, %unknown
  %one_call = zext i1 %counts to i64
  %calls_now = add i64 %calls, %one_call
  store i64 %calls_now, ptr %counter
  ret ptr %result
drop_and_fail:
  call void @Py_DecRef(ptr %tuple)
  br label %fail
fail:
  ret ptr null
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
  %items = getelementptr i8, ptr %read, i64 <ITEMS>
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

declare ptr @PyObject_CallOneArg(ptr, ptr)
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare double @PyFloat_AsDouble(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""


class Argument(NamedTuple):
    """What an argument of a call has to be, so that a row of the dispatcher serves the call."""

    words: tuple[int, ...]
    """Its kind, the object, type or length, and more by kind: a dtype, rank and extents."""
    kept: tuple[Any, ...]
    """The objects whose addresses these are."""

    @property
    def is_number(self) -> bool:
        return self.words[0] in (FLOAT, INTEGER)

    @property
    def is_taken(self) -> bool:
        """Whether programs take it."""
        return self.words[0] not in (SAME, TUPLE)

    @staticmethod
    def same(value: object) -> Argument:
        """This object, which programs do not take."""
        return Argument((SAME, id(value)), (value,))

    @staticmethod
    def tuple_of(length: int) -> Argument:
        """A tuple of so many items, which are the next arguments."""
        return Argument((TUPLE, length), ())

    @staticmethod
    def array(dtype: np.dtype, shape: Sequence[int]) -> Argument:
        """An ndarray."""
        return Argument((ARRAY, id(np.ndarray), id(dtype), len(shape), *shape), (dtype,))

    @staticmethod
    def number(kind: type) -> Argument:
        """A float, or an integer that is not larger than the largest one: programs take an array."""
        dtype = np.asarray(kind()).dtype
        return Argument((FLOAT if kind is float else INTEGER, id(kind), id(dtype)), (dtype,))

    @staticmethod
    def tensor(kind: type, asked: bool, dtype: np.dtype, shape: Sequence[int]) -> Argument:
        """An object of this very class, which holds an ndarray; whether a gradient is asked of it."""
        return Argument((TENSOR, id(kind), asked, id(dtype), len(shape), *shape), (kind, dtype))


class Row(NamedTuple):
    """One kind of call, and what runs it."""

    default: np.dtype
    """The default dtype."""
    arguments: tuple[Argument, ...]
    run: Callable[[Any], Any]
    """It gets a sequence of what programs take."""
    calls: ctypes.c_int64
    """How often it has run: counted unless its result says that it has not."""

    @property
    def has_numbers(self) -> bool:
        return any(one.is_number for one in self.arguments)

    def words(self) -> list[int]:
        taken = sum(one.is_taken for one in self.arguments)
        as_they_are = taken == len(self.arguments) and not self.has_numbers
        words = [len(self.arguments), id(self.default), id(self.run), ctypes.addressof(self.calls)]
        words.append(-1 if as_they_are else taken)
        for one in self.arguments:
            words += [one.words[0], len(one.words) + 1, *one.words[1:]]
        return [len(words) + 1, *words]


class Surroundings(NamedTuple):
    """What the dispatcher has to know of Tensors and of calls."""

    unknown: object
    """What says that no row fits, or that what a row runs does not serve the call."""
    conform: Callable[[Any], Any]
    """Gives arrays of another layout that of programs, all arguments at once."""
    refresh: Callable[[Any], Any]
    """Is called with a Tensor that is a view."""
    recording: ContextVar[bool]
    """Whether a gradient may be asked for."""
    value: Any
    view: Any
    requires_grad: Any
    """The slots of the class of Tensors."""
    largest: int
    """Of the integers that are taken."""

    @functools.cache  # noqa: B019  there is one
    def words(self) -> list[int]:
        objects = [self.unknown, self.conform, self.refresh, self.recording]
        slots = [self.value, self.view, self.requires_grad]
        return [*map(id, objects), *map(_offset, slots), self.largest]


def dispatcher(rows: Sequence[Row], surroundings: Surroundings) -> Callable[[tuple[Any, ...], np.dtype], Any]:
    """The function of a call's positional arguments and the default dtype that runs the first row that fits.

    A dtype that is equal and another object does not fit.
    """
    most = max((len(row.arguments) for row in rows), default=0)
    words, kept = [len(rows), *surroundings.words(), most], [surroundings, *rows]
    for row in rows:
        words += row.words()
    return _function("pullback_dispatch", words, kept)


def _offset(member: Any) -> int:
    """Where the objects of a class have what one of its `__slots__` names."""
    return int(_Member.from_address(_MemberDescriptor.from_address(id(member)).member).offset)


class _MemberDescriptor(ctypes.Structure):
    """PyMemberDescrObject of Python's C API."""

    _fields_ = [
        ("head", ObjectHead),
        ("owner", ctypes.c_void_p),
        ("name", ctypes.c_void_p),
        ("qualified_name", ctypes.c_void_p),
        ("member", ctypes.c_void_p),
    ]


class _Member(ctypes.Structure):
    """PyMemberDef of Python's C API."""

    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t)]


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
        "ITEMS": tuple.__basicsize__,
        "LENGTH": tuple.__basicsize__ - ctypes.sizeof(ctypes.c_ssize_t),
        "BYTES": bytes.__basicsize__ - 1,
        "TYPE": ObjectHead.type.offset,
        "DESCRIPTOR": ArrayObject.descriptor.offset,
        "FLAGS": ArrayObject.flags.offset,
        "DATA": ArrayObject.data.offset,
        "NDIM": ArrayObject.ndim.offset,
        "SHAPE": ArrayObject.shape.offset,
        "C_ARRAY": C_ARRAY,
        "SAME": SAME,
        "ARRAY": ARRAY,
        "FLOAT": FLOAT,
        "INTEGER": INTEGER,
        "TENSOR": TENSOR,
        "TUPLE": TUPLE,
    }
    symbols = {"pullback_new_array": numpy_pointer(NEW_FROM_DESCRIPTOR)}
    names = ("pullback_dispatch", "pullback_call")
    return load_llvm("calls", _SOURCE, places, symbols, names)


def numpy_pointer(place: int) -> int:
    """An entry of the table of NumPy's C API: the address of a function or a variable."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = get(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    return int((ctypes.c_void_p * (place + 1)).from_address(table)[place] or 0)
