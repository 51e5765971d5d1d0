"""Memory for what kernels fill. The memory of large arrays is used again when nobody holds them any more.

A new large array is paid for with page faults, which cost as much as a memory-bound kernel itself: 7 of
11.5 ms for three float32 arrays of 4 million, and 1 of 4 ms for a step of training. So when a large array
goes, its block of memory is kept for the next array of that size.

Each array is a new object that owns its data, whatever its holder does with it: views, buffers and weak
references are those of any array, and `resize` works. What is ours is how NumPy gets and frees its memory, by
the functions of a memory handler (NEP 49); they are machine code, since arrays may go when the interpreter
ends. They are called while the interpreter's lock is held, or else guarded by a lock of their own.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from pullback.tracer.forks import run_after_fork
from pullback.tracer.spec import Spec

from .loading import load_llvm
from .small_calls import NEW_FROM_DESCRIPTOR, built_in_with, numpy_pointer

SMALLEST_KEPT = 1 << 17
LARGEST_KEPT = 1 << 28
"""Bytes: below, `malloc` does not give memory back to the system, and programs keep their scratch; above,
keeping it would be dear."""
MOST_KEPT = 1 << 29
"""Bytes of all blocks that are kept, of any size; those that were freed first go first."""
MOST_BLOCKS = 256
POISONED = bool(os.environ.get("PULLBACK_POISON_MEMORY"))
"""Whether new arrays are filled with nan, or -1 in integers: for tests, which then see where a kernel leaves
out an element, or reads what it has not written."""

SET_HANDLER, DEFAULT_HANDLER = 304, 306
"""The places of PyDataMem_SetHandler and of PyDataMem_DefaultHandler in the table of NumPy's C API."""

_SOURCE = r"""
%Block = type { i64, ptr }
%Handler = type { [127 x i8], i8, [5 x ptr] }

@pullback_handler_name = global [12 x i8] c"mem_handler\00"
@pullback_handler = global %Handler { [127 x i8] c"pullback<PADDING>", i8 1,
                                      [5 x ptr] [ptr null, ptr @take, ptr @clear, ptr @resize, ptr @keep] }
@pullback_default_handler = external global %Handler
@pullback_object_ndarray = external global i8

@pullback_kept_limit = global i64 <MOST_KEPT>
@pullback_kept_bytes = global i64 0
@pullback_kept_lock = global i64 0
@kept_count = internal global i64 0
; the oldest first
@kept = internal global [<MOST_BLOCKS> x %Block] zeroinitializer

declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @pullback_new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @pullback_set_handler(ptr)

define internal void @acquire() {
entry:
  br label %again
again:
  %exchange = cmpxchg ptr @pullback_kept_lock, i64 0, i64 1 seq_cst seq_cst
  %is_ours = extractvalue { i64, i1 } %exchange, 1
  br i1 %is_ours, label %end, label %again
end:
  ret void
}

define internal void @release() {
  store atomic i64 0, ptr @pullback_kept_lock seq_cst, align 8
  ret void
}

; A function of NumPy's own handler, and what it is given first.
define internal ptr @usual(i64 %function) {
  %address = getelementptr %Handler, ptr @pullback_default_handler, i64 0, i32 2, i64 %function
  %value = load ptr, ptr %address
  ret ptr %value
}

define internal i1 @is_kept(i64 %size) {
  %limit = load i64, ptr @pullback_kept_limit
  %is_large = icmp uge i64 %size, <SMALLEST_KEPT>
  %is_small = icmp ule i64 %size, <LARGEST_KEPT>
  %fits = icmp ule i64 %size, %limit
  %between = and i1 %is_large, %is_small
  %both = and i1 %between, %fits
  ret i1 %both
}

; Take a block out of those that are kept; the lock is held.
define internal %Block @taken_out(i64 %place) {
  %at = getelementptr [<MOST_BLOCKS> x %Block], ptr @kept, i64 0, i64 %place
  %block = load %Block, ptr %at
  %size = extractvalue %Block %block, 0
  %bytes = load i64, ptr @pullback_kept_bytes
  %bytes_left = sub i64 %bytes, %size
  store i64 %bytes_left, ptr @pullback_kept_bytes
  %count = load i64, ptr @kept_count
  %left = sub i64 %count, 1
  store i64 %left, ptr @kept_count
  %behind = sub i64 %left, %place
  %moved = mul i64 %behind, 16
  %next = getelementptr %Block, ptr %at, i64 1
  call void @llvm.memmove.p0.p0.i64(ptr %at, ptr %next, i64 %moved, i1 false)
  ret %Block %block
}

; malloc: the youngest block of this size.
define internal ptr @take(ptr %context, i64 %size) {
entry:
  %wanted = call i1 @is_kept(i64 %size)
  br i1 %wanted, label %search, label %new
search:
  call void @acquire()
  %count = load i64, ptr @kept_count
  br label %look
look:
  %behind = phi i64 [ %count, %search ], [ %place, %compare ]
  %place = sub i64 %behind, 1
  %exists = icmp sge i64 %place, 0
  br i1 %exists, label %compare, label %none
compare:
  %at = getelementptr [<MOST_BLOCKS> x %Block], ptr @kept, i64 0, i64 %place
  %its_size = load i64, ptr %at
  %fits = icmp eq i64 %its_size, %size
  br i1 %fits, label %found, label %look
found:
  %block = call %Block @taken_out(i64 %place)
  call void @release()
  %memory = extractvalue %Block %block, 1
  ret ptr %memory
none:
  call void @release()
  br label %new
new:
  %usual_context = call ptr @usual(i64 0)
  %malloc = call ptr @usual(i64 1)
  %fresh = call ptr %malloc(ptr %usual_context, i64 %size)
  ret ptr %fresh
}

define internal ptr @clear(ptr %context, i64 %count, i64 %size) {
  %usual_context = call ptr @usual(i64 0)
  %calloc = call ptr @usual(i64 2)
  %memory = call ptr %calloc(ptr %usual_context, i64 %count, i64 %size)
  ret ptr %memory
}

define internal ptr @resize(ptr %context, ptr %memory, i64 %size) {
  %usual_context = call ptr @usual(i64 0)
  %realloc = call ptr @usual(i64 3)
  %moved = call ptr %realloc(ptr %usual_context, ptr %memory, i64 %size)
  ret ptr %moved
}

define internal void @drop(ptr %memory, i64 %size) {
  %usual_context = call ptr @usual(i64 0)
  %free = call ptr @usual(i64 4)
  call void %free(ptr %usual_context, ptr %memory, i64 %size)
  ret void
}

; free: older blocks make room.
define internal void @keep(ptr %context, ptr %memory, i64 %size) {
entry:
  %wanted = call i1 @is_kept(i64 %size)
  br i1 %wanted, label %try, label %give_back
try:
  call void @acquire()
  %bytes = load i64, ptr @pullback_kept_bytes
  %limit = load i64, ptr @pullback_kept_limit
  %count = load i64, ptr @kept_count
  %bytes_then = add i64 %bytes, %size
  %has_bytes = icmp ule i64 %bytes_then, %limit
  %has_place = icmp slt i64 %count, <MOST_BLOCKS>
  %has_room = and i1 %has_bytes, %has_place
  br i1 %has_room, label %put, label %make_room
put:
  %at = getelementptr [<MOST_BLOCKS> x %Block], ptr @kept, i64 0, i64 %count
  store i64 %size, ptr %at
  %at_memory = getelementptr %Block, ptr %at, i64 0, i32 1
  store ptr %memory, ptr %at_memory
  %count_then = add i64 %count, 1
  store i64 %count_then, ptr @kept_count
  store i64 %bytes_then, ptr @pullback_kept_bytes
  call void @release()
  ret void
make_room:
  call void @drop_oldest()
  br label %try
give_back:
  call void @drop(ptr %memory, i64 %size)
  ret void
}

; The lock is held before, and not after.
define internal void @drop_oldest() {
  %block = call %Block @taken_out(i64 0)
  call void @release()
  %size = extractvalue %Block %block, 0
  %memory = extractvalue %Block %block, 1
  call void @drop(ptr %memory, i64 %size)
  ret void
}

; Until no more than so many bytes are left.
define void @pullback_drop_kept(i64 %most) {
entry:
  br label %look
look:
  call void @acquire()
  %bytes = load i64, ptr @pullback_kept_bytes
  %is_more = icmp ugt i64 %bytes, %most
  br i1 %is_more, label %drop_one, label %end
drop_one:
  call void @drop_oldest()
  br label %look
end:
  call void @release()
  ret void
}

; Expected: the handler as an object, dtype, rank, extents.
define ptr @pullback_new_large_array(ptr %self, ptr %arguments, i64 %count) {
entry:
  %first = getelementptr i8, ptr %self, i64 <TUPLE>
  %bytes = load ptr, ptr %first
  %expected = getelementptr i8, ptr %bytes, i64 <BYTES>
  %handler = load ptr, ptr %expected
  %at_dtype = getelementptr i64, ptr %expected, i64 1
  %dtype = load ptr, ptr %at_dtype
  %at_rank = getelementptr i64, ptr %expected, i64 2
  %rank = load i64, ptr %at_rank
  %rank_32 = trunc i64 %rank to i32
  %shape = getelementptr i64, ptr %expected, i64 3
  %before = call ptr @pullback_set_handler(ptr %handler)
  %is_set = icmp ne ptr %before, null
  br i1 %is_set, label %make, label %fail
make:
  call void @Py_IncRef(ptr %dtype)
  %array = call ptr @pullback_new_array(ptr @pullback_object_ndarray, ptr %dtype, i32 %rank_32, ptr %shape,
                                        ptr null, ptr null, i32 0, ptr null)
  %ours = call ptr @pullback_set_handler(ptr %before)
  call void @Py_DecRef(ptr %before)
  %is_back = icmp ne ptr %ours, null
  br i1 %is_back, label %end, label %fail
end:
  call void @Py_DecRef(ptr %ours)
  ret ptr %array
fail:
  ret ptr null
}
"""
_WANTED = ("new_large_array", "drop_kept", "handler", "handler_name", "kept_limit", "kept_bytes", "kept_lock")


class _Pool:
    """The code above, loaded."""

    def __init__(self) -> None:
        replacements = {
            "TUPLE": tuple.__basicsize__,
            "BYTES": bytes.__basicsize__ - 1,
            "PADDING": r"\00" * (127 - len("pullback")),
            "SMALLEST_KEPT": SMALLEST_KEPT,
            "LARGEST_KEPT": LARGEST_KEPT,
            "MOST_KEPT": MOST_KEPT,
            "MOST_BLOCKS": MOST_BLOCKS,
        }
        symbols = {
            "pullback_new_array": numpy_pointer(NEW_FROM_DESCRIPTOR),
            "pullback_set_handler": numpy_pointer(SET_HANDLER),
            "pullback_default_handler": _default_handler(),
        }
        names = [f"pullback_{name}" for name in _WANTED]
        found = load_llvm("memory", _SOURCE, replacements, symbols, names, level=0)
        self._places = dict(zip(_WANTED, found.values()))
        self.limit, self.bytes, lock = (
            ctypes.c_int64.from_address(self._places[f"kept_{name}"]) for name in ("limit", "bytes", "lock")
        )
        self.drop = ctypes.CFUNCTYPE(None, ctypes.c_int64)(self._places["drop_kept"])
        new_capsule = ctypes.pythonapi.PyCapsule_New
        new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
        self.handler = new_capsule(self._places["handler"], self._places["handler_name"], None)
        run_after_fork(lambda: setattr(lock, "value", 0))

    def allocator(self, spec: Spec) -> Callable[[], np.ndarray]:
        words = [id(self.handler), id(spec.dtype), spec.ndim, *spec.shape]
        return built_in_with(
            "new_large_array", self._places["new_large_array"], words, [self.handler, spec.dtype]
        )


@functools.cache
def _pool() -> _Pool:
    return _Pool()


def _default_handler() -> int:
    """The address of NumPy's own memory handler."""
    capsule = ctypes.cast(numpy_pointer(DEFAULT_HANDLER), ctypes.POINTER(ctypes.py_object)).contents.value
    get: Any = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, b"mem_handler"))


def allocator(spec: Spec) -> Callable[[], np.ndarray]:
    """A function that gives a new uninitialised array, which owns its data."""
    allocate = _allocator(spec)
    return functools.partial(_poisoned, allocate) if POISONED else allocate


def is_large(spec: Spec) -> bool:
    """Whether the memory of such an array is worth keeping for the next one."""
    return spec.nbytes >= SMALLEST_KEPT


def _poisoned(allocate: Callable[[], np.ndarray]) -> np.ndarray:
    array = allocate()
    array.reshape(-1).view(np.uint8).fill(0xFF)
    return array


def _allocator(spec: Spec) -> Callable[[], np.ndarray]:
    if is_large(spec) and spec.nbytes <= LARGEST_KEPT:
        return _pool().allocator(spec)
    shape, dtype = spec.shape, spec.dtype
    return lambda: np.empty(shape, dtype)


class Scratch:
    """The arrays that a program fills; small ones that nobody gets are kept for the next call.

    Attributes:
        anew: the places of those that each call gets new.
    """

    def __init__(
        self, specs: Sequence[Spec], allocators: Sequence[Callable[[], Any]], given: Collection[int]
    ) -> None:
        self.allocators = allocators
        by_size = sorted(range(len(specs)), key=lambda place: specs[place].nbytes)
        sizes = itertools.accumulate(specs[place].nbytes for place in by_size)
        small = {place for place, size in zip(by_size, sizes) if size < SMALLEST_KEPT}
        self.anew = [one for one in range(len(specs)) if one in given or one not in small or POISONED]
        self.spare: list[list[Any]] = []

    def take(self) -> list[Any]:
        """All arrays: those of a call that has ended, if there are any that no other call has."""
        try:
            filled = self.spare.pop()
        except IndexError:
            return [allocate() for allocate in self.allocators]
        for place in self.anew:
            filled[place] = self.allocators[place]()
        return filled

    def give_back(self, filled: list[Any]) -> None:
        """Keep what may be used again."""
        for place in self.anew:
            filled[place] = None
        self.spare.append(filled)


def kept_bytes() -> int:
    """How much memory is kept for arrays to come."""
    return _pool().bytes.value


def set_most_kept(limit: int) -> int:
    """Keep so many bytes at most from now on; returns how many it was before."""
    pool = _pool()
    before, pool.limit.value = pool.limit.value, limit
    pool.drop(limit)
    return before


def release() -> None:
    """Give back all memory that is kept; the next calls get new."""
    _pool().drop(0)
