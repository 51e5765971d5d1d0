"""Where Numba and LLVM are called: by one thread at a time, in one where no signal handler raises.

Python runs handlers of signals in the main thread, between any two of its instructions. What Ctrl-C raises
there while a module of LLVM changes hands makes two owners of it or none, and the process crashes later; or a
lock stays taken. So the main thread lets another one do such work, and waits. The exception ends only the
wait: the work goes on to its end, and the next call finds what it made.
"""

from __future__ import annotations

import _thread
import atexit
import contextvars
import functools
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from .forks import LONGEST_WAIT, before_forks, new_reentrant_lock, run_after_fork

P = ParamSpec("P")
T = TypeVar("T")

_lock = new_reentrant_lock()
_LONGEST_WAIT = 0.1
"""Seconds between two looks for signals, where a wait for a lock is not interrupted by them: on Windows."""


def uninterrupted(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function that calls Numba or LLVM, or imports much; it gives and raises the same."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        if threading.get_ident() != threading.main_thread().ident:
            with before_forks(), _lock:
                return function(*args, **kwargs)
        work = _Work(functools.partial(function, *args, **kwargs))
        _thread.start_new_thread(contextvars.copy_context().run, (work,))
        return work.result()

    return run


class _Work:
    """A call that another thread makes.

    The main thread takes locks of the C level only, and starts the thread there: in the methods of an Event
    or a Thread an exception may leave a lock taken.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._ends = threading.Lock()
        self._ends.acquire()
        self._value: Any = None
        self._error: BaseException | None = None

    def __call__(self) -> None:
        _unfinished.add(self)
        try:
            with before_forks(), _lock:
                self._value = self._call()
        except BaseException as error:
            self._error = error
        finally:
            _unfinished.discard(self)  # first: who has seen the end may be the end of the process
            self._ends.release()

    def result(self) -> Any:
        while not self._ends.acquire(timeout=_LONGEST_WAIT):
            pass
        self._ends.release()  # others may wait for it as well
        if self._error is not None:
            raise self._error
        return self._value

    def wait(self) -> bool:
        """Whether it has ended, within the longest wait."""
        has_ended = self._ends.acquire(timeout=LONGEST_WAIT)
        if has_ended:
            self._ends.release()
        return has_ended


_unfinished: set[_Work] = set()
run_after_fork(_unfinished.clear)


@atexit.register
def _wait_for_all() -> None:
    """The interpreter does not end while LLVM is at work."""
    for work in tuple(_unfinished):
        work.wait()
