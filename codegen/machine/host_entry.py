"""The way out of machine code to a function of Python's: arrays are made of memory where it lies, and passed.

No array is copied. Operands are read-only; they end with the call, so the function must not keep them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from ..host import SYMBOL_PREFIX, function_of
from .loading import define, load_llvm
from .small_calls import NEW_FROM_DESCRIPTOR, numpy_pointer

CALL = "pullback_call_host"
"""The function (Python function, number of arrays, words) that is 0 if the call has raised nothing."""
WORDS = 5
"""Of each array: dtype, rank, data, shape, strides. The last one is the result."""
WRITEABLE = 0x400

_SOURCE = """
@pullback_object_ndarray = external global i8
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @pullback_new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)

define i32 @pullback_call_host(ptr %function, i64 %count, ptr %words) {
entry:
  %state = call i32 @PyGILState_Ensure()
  %arrays = alloca ptr, i64 %count
  br label %next
next:
  %place = phi i64 [ 0, %entry ], [ %following, %made ]
  %following = add i64 %place, 1
  %is_array = icmp slt i64 %place, %count
  br i1 %is_array, label %make, label %call
make:
  %offset = mul i64 %place, <WORDS>
  %at_dtype = getelementptr i64, ptr %words, i64 %offset
  %dtype = load ptr, ptr %at_dtype
  call void @Py_IncRef(ptr %dtype)
  %at_rank = getelementptr i64, ptr %at_dtype, i64 1
  %rank_64 = load i64, ptr %at_rank
  %rank = trunc i64 %rank_64 to i32
  %at_data = getelementptr i64, ptr %at_dtype, i64 2
  %data = load ptr, ptr %at_data
  %at_shape = getelementptr i64, ptr %at_dtype, i64 3
  %shape = load ptr, ptr %at_shape
  %at_strides = getelementptr i64, ptr %at_dtype, i64 4
  %strides = load ptr, ptr %at_strides
  %is_result = icmp eq i64 %following, %count
  %flags = select i1 %is_result, i32 <WRITEABLE>, i32 0
  %array = call ptr @pullback_new_array(ptr @pullback_object_ndarray, ptr %dtype, i32 %rank, ptr %shape,
                                        ptr %strides, ptr %data, i32 %flags, ptr null)
  %is_made = icmp ne ptr %array, null
  br i1 %is_made, label %made, label %release
made:
  %at_array = getelementptr ptr, ptr %arrays, i64 %place
  store ptr %array, ptr %at_array
  br label %next
call:
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %arrays, i64 %count, ptr null)
  %is_returned = icmp ne ptr %result, null
  br i1 %is_returned, label %returned, label %release
returned:
  call void @Py_DecRef(ptr %result)
  br label %release
release:
  %status = phi i32 [ -1, %make ], [ -1, %call ], [ 0, %returned ]
  br label %next_release
next_release:
  %left = phi i64 [ %place, %release ], [ %last, %drop ]
  %last = sub i64 %left, 1
  %is_left = icmp sgt i64 %left, 0
  br i1 %is_left, label %drop, label %done
drop:
  %at_dropped = getelementptr ptr, ptr %arrays, i64 %last
  %dropped = load ptr, ptr %at_dropped
  call void @Py_DecRef(ptr %dropped)
  br label %next_release
done:
  call void @PyGILState_Release(i32 %state)
  ret i32 %status
}
"""


def register_symbols(needed: Iterable[str]) -> None:
    """Tell LLVM where those of the needed functions are that Python runs, and what calls them."""
    functions = [symbol for symbol in needed if symbol.startswith(SYMBOL_PREFIX)]
    if functions:
        _load()
    define({symbol: id(function_of(symbol)) for symbol in functions})


@functools.cache
def _load() -> None:
    places = {"WORDS": WORDS, "WRITEABLE": WRITEABLE}
    load_llvm("host", _SOURCE, places, {"pullback_new_array": numpy_pointer(NEW_FROM_DESCRIPTOR)}, [CALL])
