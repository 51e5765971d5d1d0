"""Threads that share the parts of a loop: a pool in machine code, which no interpreter's lock slows down.

A loop of 100 us gains from a second thread only if that one begins at once. So a worker that has nothing
to do looks for work for a while (`PATIENCE`) before it sleeps, as OpenMP's do; whoever has work does not wait
until a worker is awake, but begins, and also does whatever parts no worker has taken. A part is the same
whoever does it, so results depend on the number of parts alone.

Each worker has a slot: 0 is nothing to do, 1 is at work, anything else the address of a job that is offered.
The one who offers takes it back at the end if the worker has not come. A worker's last access to a job is to
count itself as finished, and the caller, in whose stack the job lies, waits for that.

A worker that has missed a job had no processor: it sleeps at once then, since the system prefers threads that
have slept. One that finds itself on the processor of the caller, who waits for it there, moves to another one
and keeps away from that: on a busy machine, Linux leaves the two together for seconds.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import time
from typing import Any

from ...tracer.forks import new_lock, run_after_fork
from .loading import SHARE, load_llvm

MOST_WORKERS = 255
PATIENCE = 100e-6
"""Seconds that a worker looks for work before it sleeps; to wake it takes half of that."""

_SOURCE = """
; how many parts are taken, finished helpers, what to call, the parts, bytes of a part, their number, whose
; processor, how many parts workers have taken
%Job = type { i64, i64, ptr, ptr, i64, i64, i64, i64 }
; the job, whether the worker sleeps, what it sleeps on, whether it has missed a job; two cache lines, since
; processors fetch pairs
%Slot = type { i64, i64, ptr, i64, [96 x i8] }

@pullback_slots = global [<MOST_WORKERS> x %Slot] zeroinitializer, align 128
@pullback_started = global i64 0
@pullback_patience = global i64 0

declare i32 @PyThread_acquire_lock(ptr, i32)
declare void @PyThread_release_lock(ptr)
declare i32 @pullback_yield()
<PAUSE_DECLARATION>
<PROCESSORS>

define void @pullback_pause(i64 %times) {
entry:
  br label %again
again:
  %left = phi i64 [ %times, %entry ], [ %less, %again ]
  <PAUSE>
  %less = sub i64 %left, 1
  %ends = icmp sle i64 %less, 0
  br i1 %ends, label %end, label %again
end:
  ret void
}

; A part that takes the time of so many pauses.
define void @pullback_spin(ptr %part) {
  %times = load i64, ptr %part
  call void @pullback_pause(i64 %times)
  ret void
}

; Parts that nobody has taken: the caller takes the first of them, workers the last. So each has the same ones
; when the next job is over the same rows, and finds them in the cache of its processor.
define internal void @take_parts(ptr %job, i1 %is_caller) {
entry:
  %at_from_end = getelementptr %Job, ptr %job, i64 0, i32 7
  %at_function = getelementptr %Job, ptr %job, i64 0, i32 2
  %at_parts = getelementptr %Job, ptr %job, i64 0, i32 3
  %at_size = getelementptr %Job, ptr %job, i64 0, i32 4
  %at_count = getelementptr %Job, ptr %job, i64 0, i32 5
  %function = load ptr, ptr %at_function
  %parts = load ptr, ptr %at_parts
  %size = load i64, ptr %at_size
  %count = load i64, ptr %at_count
  br label %take
take:
  %first = phi i64 [ 0, %entry ], [ %following, %run ]
  %taken = atomicrmw add ptr %job, i64 1 seq_cst
  %is_part = icmp slt i64 %taken, %count
  br i1 %is_part, label %choose, label %end
choose:
  %following = add i64 %first, 1
  br i1 %is_caller, label %run, label %from_end
from_end:
  %before_last = atomicrmw add ptr %at_from_end, i64 1 seq_cst
  %last = sub i64 %count, 1
  %from_last = sub i64 %last, %before_last
  br label %run
run:
  %place = phi i64 [ %first, %choose ], [ %from_last, %from_end ]
  %offset = mul i64 %place, %size
  %part = getelementptr i8, ptr %parts, i64 %offset
  call void %function(ptr %part)
  br label %take
end:
  ret void
}

define void @pullback_share(ptr %function, ptr %parts, i64 %size, i64 %count, i64 %helpers) {
entry:
  %job = alloca %Job, align 64
  %at_finished = getelementptr %Job, ptr %job, i64 0, i32 1
  %at_function = getelementptr %Job, ptr %job, i64 0, i32 2
  %at_parts = getelementptr %Job, ptr %job, i64 0, i32 3
  %at_size = getelementptr %Job, ptr %job, i64 0, i32 4
  %at_count = getelementptr %Job, ptr %job, i64 0, i32 5
  store i64 0, ptr %job
  store i64 0, ptr %at_finished
  %at_from_end = getelementptr %Job, ptr %job, i64 0, i32 7
  store i64 0, ptr %at_from_end
  store ptr %function, ptr %at_function
  store ptr %parts, ptr %at_parts
  store i64 %size, ptr %at_size
  store i64 %count, ptr %at_count
  %at_processor = getelementptr %Job, ptr %job, i64 0, i32 6
  %processor = call i64 @processor()
  store i64 %processor, ptr %at_processor
  %address = ptrtoint ptr %job to i64
  %started = load atomic i64, ptr @pullback_started seq_cst, align 8
  br label %find

; Offer the job to workers that have none, and wake those that sleep.
find:
  %place = phi i64 [ 0, %entry ], [ %next, %found ]
  %offered = phi i64 [ 0, %entry ], [ %offered_now, %found ]
  %exists = icmp slt i64 %place, %started
  %wanted = icmp slt i64 %offered, %helpers
  %goes_on = and i1 %exists, %wanted
  br i1 %goes_on, label %offer, label %work
offer:
  %slot = getelementptr %Slot, ptr @pullback_slots, i64 %place
  %exchange = cmpxchg ptr %slot, i64 0, i64 %address seq_cst seq_cst
  %was_free = extractvalue { i64, i1 } %exchange, 1
  br i1 %was_free, label %rouse, label %found
rouse:
  %at_sleeps = getelementptr %Slot, ptr %slot, i64 0, i32 1
  %slept = atomicrmw xchg ptr %at_sleeps, i64 0 seq_cst
  %must_wake = icmp ne i64 %slept, 0
  br i1 %must_wake, label %wake, label %found
wake:
  %at_lock = getelementptr %Slot, ptr %slot, i64 0, i32 2
  %lock = load ptr, ptr %at_lock
  call void @PyThread_release_lock(ptr %lock)
  br label %found
found:
  %one = zext i1 %was_free to i64
  %offered_now = add i64 %offered, %one
  %next = add i64 %place, 1
  br label %find

work:
  call void @take_parts(ptr %job, i1 true)
  br label %retract

; Take the job back from workers that have not come.
retract:
  %other = phi i64 [ 0, %work ], [ %after, %retracted ]
  %expected = phi i64 [ %offered, %work ], [ %expected_now, %retracted ]
  %is_other = icmp slt i64 %other, %place
  br i1 %is_other, label %take_back, label %wait
take_back:
  %its_slot = getelementptr %Slot, ptr @pullback_slots, i64 %other
  %return = cmpxchg ptr %its_slot, i64 %address, i64 0 seq_cst seq_cst
  %is_back = extractvalue { i64, i1 } %return, 1
  br i1 %is_back, label %missed, label %retracted
missed:
  %at_missed = getelementptr %Slot, ptr %its_slot, i64 0, i32 3
  store atomic i64 1, ptr %at_missed seq_cst, align 8
  br label %retracted
retracted:
  %back = zext i1 %is_back to i64
  %expected_now = sub i64 %expected, %back
  %after = add i64 %other, 1
  br label %retract

; Others are at their last part: look often, but not so that they get no processor.
wait:
  %looks = phi i64 [ 0, %retract ], [ %looked, %look_again ]
  %finished = load atomic i64, ptr %at_finished seq_cst, align 8
  %all = icmp sge i64 %finished, %expected
  br i1 %all, label %end, label %pause
pause:
  <PAUSE>
  %looked = add i64 %looks, 1
  %patience = load i64, ptr @pullback_patience
  %a_while = sdiv i64 %patience, 4
  %is_long = icmp sgt i64 %looked, %a_while
  br i1 %is_long, label %yield, label %look_again
yield:
  call i32 @pullback_yield()
  br label %look_again
look_again:
  br label %wait
end:
  ret void
}

; What a worker does, for ever.
define void @pullback_serve(ptr %slot) {
entry:
  %at_sleeps = getelementptr %Slot, ptr %slot, i64 0, i32 1
  %at_lock = getelementptr %Slot, ptr %slot, i64 0, i32 2
  %at_missed = getelementptr %Slot, ptr %slot, i64 0, i32 3
  %lock = load ptr, ptr %at_lock
  br label %begin
begin:
  %patience = load i64, ptr @pullback_patience
  br label %look
look:
  %left = phi i64 [ %patience, %begin ], [ %less, %idle ]
  %found = load atomic i64, ptr %slot seq_cst, align 8
  %is_job = icmp ne i64 %found, 0
  br i1 %is_job, label %accept, label %idle
idle:
  <PAUSE>
  %missed = load atomic i64, ptr %at_missed seq_cst, align 8
  %has_missed = icmp ne i64 %missed, 0
  %less = sub i64 %left, 1
  %is_over = icmp sle i64 %less, 0
  %is_tired = or i1 %has_missed, %is_over
  br i1 %is_tired, label %lie_down, label %look

accept:
  %exchange = cmpxchg ptr %slot, i64 %found, i64 1 seq_cst seq_cst
  %is_ours = extractvalue { i64, i1 } %exchange, 1
  br i1 %is_ours, label %work, label %begin
work:
  %job = inttoptr i64 %found to ptr
  %at_processor = getelementptr %Job, ptr %job, i64 0, i32 6
  %callers = load i64, ptr %at_processor
  %mine = call i64 @processor()
  %is_same = icmp eq i64 %callers, %mine
  %is_known = icmp sge i64 %mine, 0
  %is_in_the_way = and i1 %is_same, %is_known
  br i1 %is_in_the_way, label %step_aside, label %take
step_aside:
  call void @avoid(i64 %callers)
  br label %take
take:
  call void @take_parts(ptr %job, i1 false)
  store atomic i64 0, ptr %slot seq_cst, align 8 ; before the caller goes on, who may offer the next job
  %at_finished = getelementptr %Job, ptr %job, i64 0, i32 1
  atomicrmw add ptr %at_finished, i64 1 seq_cst
  br label %begin

; Whoever offers a job now either sees that this one sleeps, or is seen.
lie_down:
  store atomic i64 0, ptr %at_missed seq_cst, align 8
  atomicrmw xchg ptr %at_sleeps, i64 1 seq_cst
  %late = load atomic i64, ptr %slot seq_cst, align 8
  %is_late = icmp ne i64 %late, 0
  br i1 %is_late, label %get_up, label %sleep
get_up:
  %still = atomicrmw xchg ptr %at_sleeps, i64 0 seq_cst
  %nobody_woke = icmp ne i64 %still, 0
  br i1 %nobody_woke, label %begin, label %sleep
sleep:
  call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  br label %begin
}
"""

_PROCESSORS_OF_LINUX = """
declare i32 @sched_getcpu()
declare i32 @getpid()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)

define internal i64 @processor() {
  %number = call i32 @sched_getcpu()
  %wide = sext i32 %number to i64
  ret i64 %wide
}

; This thread may run wherever the process may but on one processor; if that is all, nothing changes.
define internal void @avoid(i64 %processor) {
entry:
  %mask = alloca [16 x i64]
  %process = call i32 @getpid()
  %size = call i32 @sched_getaffinity(i32 %process, i64 128, ptr %mask)
  %word = udiv i64 %processor, 64
  %is_found = icmp sge i32 %size, 0
  %fits = icmp ult i64 %word, 16
  %goes_on = and i1 %is_found, %fits
  br i1 %goes_on, label %change, label %end
change:
  %at_word = getelementptr i64, ptr %mask, i64 %word
  %bits = load i64, ptr %at_word
  %place = urem i64 %processor, 64
  %bit = shl i64 1, %place
  %others = xor i64 %bit, -1
  %left = and i64 %bits, %others
  store i64 %left, ptr %at_word
  call i32 @sched_setaffinity(i32 0, i64 128, ptr %mask)
  br label %end
end:
  ret void
}
"""
_PROCESSORS_OF_OTHERS = """
define internal i64 @processor() {
  ret i64 -1
}

define internal void @avoid(i64 %processor) {
  ret void
}
"""
_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
_ALIASES = {"amd64": "x86_64", "arm64": "aarch64"}
_NAMES = ("share", "serve", "pause", "spin", "slots", "started", "patience")
_WANTED = tuple(f"pullback_{name}" for name in _NAMES)


class _Pool:
    """The code above, loaded, and its workers."""

    def __init__(self) -> None:
        name = platform.machine().lower()
        declaration, pause = _PAUSES.get(_ALIASES.get(name, name), ("", ""))
        replacements = {"MOST_WORKERS": MOST_WORKERS, "PAUSE_DECLARATION": declaration, "PAUSE": pause}
        is_linux = sys.platform == "linux"
        replacements["PROCESSORS"] = _PROCESSORS_OF_LINUX if is_linux else _PROCESSORS_OF_OTHERS
        symbols = {"pullback_yield": _address_of_yield()}
        places = load_llvm("workers", _SOURCE, replacements, symbols, _WANTED, level=0)
        self._lock = new_lock()
        self._started, self._patience = (
            ctypes.c_int64.from_address(places[name]) for name in ("pullback_started", "pullback_patience")
        )
        self._pause = ctypes.CFUNCTYPE(None, ctypes.c_int64)(places["pullback_pause"])
        self._share = ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * 2, *(ctypes.c_int64,) * 3)(places[SHARE])
        self._slots, self._serve = places["pullback_slots"], places["pullback_serve"]
        self._spin = places["pullback_spin"]
        self.count = 0
        run_after_fork(self._forget)

    def start(self, number: int) -> None:
        """Have so many workers at least, or as many as there can be."""
        with self._lock:
            if self.count == 0:
                self._patience.value = self._pauses_in(PATIENCE)
            while self.count < min(number, MOST_WORKERS):
                slot = _Slot.from_address(self._slots + self.count * ctypes.sizeof(_Slot))
                slot.job, slot.sleeps, slot.missed, slot.lock = 0, 0, 0, _new_lock()
                if not _start_thread(self._serve, ctypes.addressof(slot)):
                    return  # those that there are do the work
                self.count += 1
                self._started.value = self.count

    def time_of_parts(self, count: int, seconds: float, helpers: int) -> float:
        """How long it takes to run so many parts of so long, with workers or without."""
        times = (ctypes.c_int64 * count)(*[self._pauses_in(seconds)] * count)
        start = time.perf_counter()
        self._share(self._spin, ctypes.addressof(times), ctypes.sizeof(ctypes.c_int64), count, helpers)
        return time.perf_counter() - start

    def run(self, function: int, parts: ctypes.Array[Any], helpers: int) -> None:
        size = ctypes.sizeof(parts) // len(parts)
        self._share(function, ctypes.addressof(parts), size, len(parts), helpers)

    def _pauses_in(self, seconds: float) -> int:
        """How often a thread can look for work in that time, on this processor."""
        times = 500
        taken = []
        for _ in range(3):
            start = time.perf_counter()
            self._pause(times)
            taken.append(time.perf_counter() - start)
        return max(1, int(times * seconds / max(min(taken), 1e-9)))

    def _forget(self) -> None:
        """A forked process has none of its parent's threads."""
        self.count = self._started.value = 0


class _Slot(ctypes.Structure):
    _fields_ = [
        ("job", ctypes.c_int64),
        ("sleeps", ctypes.c_int64),
        ("lock", ctypes.c_void_p),
        ("missed", ctypes.c_int64),
        ("padding", ctypes.c_char * 96),
    ]


_pool: _Pool | None = None
_lock = new_lock()


def load() -> None:
    """Load the code, so that other code finds `SHARE`; it has no workers yet."""
    global _pool
    with _lock:
        _pool = _pool or _Pool()


def have_workers(number: int) -> None:
    """Start threads until there are so many."""
    if _pool is not None and _pool.count < number:
        _pool.start(number)


def time_of_parts(count: int, seconds: float, helpers: int) -> float:
    """How many seconds it takes to run so many parts of so many seconds, shared with workers."""
    load()
    have_workers(helpers)
    assert _pool is not None
    return _pool.time_of_parts(count, seconds, helpers)


def run_parts(function: int, parts: ctypes.Array[Any], threads: int) -> None:
    """Call the function at an address with that of each part, in so many threads, this one among them."""
    load()
    have_workers(threads - 1)
    assert _pool is not None
    _pool.run(function, parts, threads - 1)


def number() -> int:
    """How many workers there are."""
    return 0 if _pool is None else _pool.count


def _new_lock() -> int:
    """A lock of Python's C API that is taken; these need no interpreter's lock."""
    api = ctypes.pythonapi
    api.PyThread_allocate_lock.restype = ctypes.c_void_p
    api.PyThread_acquire_lock.argtypes = [ctypes.c_void_p, ctypes.c_int]
    lock = api.PyThread_allocate_lock()
    if lock is None:
        raise MemoryError("no lock for another thread")
    api.PyThread_acquire_lock(lock, 1)
    return int(lock)


def _start_thread(function: int, argument: int) -> bool:
    """Run machine code in a new thread, of which Python knows nothing; False if the system has none left."""
    start = ctypes.pythonapi.PyThread_start_new_thread
    start.restype, start.argtypes = ctypes.c_ulong, [ctypes.c_void_p, ctypes.c_void_p]
    return bool(start(function, argument) != ctypes.c_ulong(-1).value)


def _address_of_yield() -> int:
    """The system's function by which a thread lets others run."""
    if sys.platform == "win32":
        function: Any = ctypes.windll.kernel32.SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)
