"""Forks while other threads are at work: a forked process has none of these threads, but all that they held.

`before_forks` marks work that must not be cut in two: a fork waits for its end, so that the child finds
modules imported, LLVM at rest and nothing half made. Locks of `new_lock` are free in the child.
"""

from __future__ import annotations

import logging  # noqa: F401  it has hooks of its own for forks, which must not come while ours wait
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

LONGEST_WAIT = 60.0
"""Seconds after which a process is forked all the same: what is waited for may itself wait for the fork."""


class _Living:
    """The locks that are still in use. Unlike those of a WeakSet, its references call nothing when they end.

    In what they call, an exception that a signal handler raises would be lost.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._references: list[weakref.ref[Any]] = []
        self._most = 100

    def add(self, one: Any) -> None:
        with self.lock:
            self._references.append(weakref.ref(one))
            if len(self._references) > self._most:
                self._references = [weakref.ref(living) for living in self]
                self._most = 100 + 2 * len(self._references)

    def __iter__(self) -> Iterator[Any]:
        found = [reference() for reference in self._references]
        return (one for one in found if one is not None)


_locks = _Living()


def new_lock() -> Any:
    """As `threading.Lock()`."""
    return _entered(threading.Lock())


def new_reentrant_lock() -> Any:
    """As `threading.RLock()`."""
    return _entered(threading.RLock())


def _entered(lock: Any) -> Any:
    _locks.add(lock)
    return lock


def _free_locks() -> None:
    for lock in (_locks.lock, *_locks):
        lock._at_fork_reinit()


if TYPE_CHECKING:
    from functools import cached_property as kept
else:

    class kept:
        """An attribute that is made when it is asked for first; from then on it is in the instance's dict.

        Threads that ask at once may each make it, and all get the first. That of `functools` holds a lock
        meanwhile in Python 3.11, which a fork leaves taken; and what traces or compiles may hold none.
        """

        def __init__(self, make: Callable[[Any], Any]) -> None:
            self._make = make
            self.__doc__ = make.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            return instance.__dict__.setdefault(self._name, self._make(instance))


_making = new_reentrant_lock()


class made_once:
    """As `kept`, of which there is one only: it is made under a lock, so it may neither trace nor compile."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with _making:
            found = vars(instance)
            if self._name not in found:
                found[self._name] = self._make(instance)
            return found[self._name]


class _OfThread(threading.local):
    """A lock that this thread takes while it is at work."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        _of_threads.add(self.lock)


_of_threads = _Living()
_mine = _OfThread()


def before_forks() -> Any:
    """A context manager for work that has to end before another thread forks; it may be entered again.

    It is to be entered before other locks are taken, since it waits while another thread forks. As a lock, it
    is left whatever a signal handler raises.
    """
    return _mine.lock


_others_locks: list[Any] = []
_taken: list[Any] = []


def hold_in_forks(lock: Any) -> None:
    """A fork takes this lock of somebody else as well, in the order in which they are named here."""
    _others_locks.append(lock)


def run_after_fork(function: Callable[[], object]) -> None:
    """Have it called in processes that are forked, once locks are free; it is kept for ever."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def _prepare() -> None:
    """Take the locks of all threads, also of those that begin meanwhile; then none can begin."""
    latest = time.monotonic() + LONGEST_WAIT
    seen: set[Any] = set()
    while True:
        _of_threads.lock.acquire()
        new = {*_of_threads} - seen
        if not new:
            break
        _of_threads.lock.release()
        seen |= new
        for lock in sorted(new, key=id):  # in one order, for threads that fork at once
            _take(lock, latest)
    _taken.append(_of_threads.lock)
    for lock in _others_locks:
        _take(lock, latest)


def _take(lock: Any, latest: float) -> None:
    if lock.acquire(timeout=max(0.0, latest - time.monotonic())):
        _taken.append(lock)


def _go_on() -> None:
    while _taken:
        _taken.pop().release()


def _go_on_in_child() -> None:
    _free_locks()
    _go_on()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_prepare, after_in_parent=_go_on, after_in_child=_go_on_in_child)
