"""Forks while other threads are at work: a forked process has none of these threads, but all that they held.

`before_forks` marks work that must not be cut in two: a fork waits for its end, so that the child finds
modules imported, LLVM at rest and nothing half made. Locks of `new_lock` are free in the child.
"""

from __future__ import annotations

import logging  # noqa: F401  it has hooks of its own for forks, which must not come while ours wait
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

LONGEST_WAIT = 60.0
"""Seconds after which a process is forked all the same: what is waited for may itself wait for the fork."""

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


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
    for lock in list(_locks):
        lock._at_fork_reinit()


class _BeforeForks:
    """A context manager for any number of threads, any number of times in each."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._depths: dict[int, int] = {}
        """Of each thread that is inside, how often it is."""
        self._is_forking = False

    def __enter__(self) -> None:
        thread = threading.get_ident()
        with self._changed:
            if thread not in self._depths:  # who is inside goes on, so that it comes to its end
                self._changed.wait_for(lambda: not self._is_forking, LONGEST_WAIT)
            self._depths[thread] = self._depths.get(thread, 0) + 1

    def __exit__(self, *error: object) -> None:
        thread = threading.get_ident()
        with self._changed:
            self._depths[thread] -= 1
            if not self._depths[thread]:
                del self._depths[thread]
                self._changed.notify_all()

    def wait(self) -> None:
        """Until no other thread is inside; none enters then."""
        thread = threading.get_ident()
        with self._changed:
            self._is_forking = True
            self._changed.wait_for(lambda: self._depths.keys() <= {thread}, LONGEST_WAIT)

    def let_others_in(self) -> None:
        with self._changed:
            self._is_forking = False
            self._changed.notify_all()

    def forget_others(self) -> None:
        """In a forked process, which has one thread."""
        thread = threading.get_ident()
        self._changed = threading.Condition(threading.Lock())
        self._depths = {one: depth for one, depth in self._depths.items() if one == thread}
        self._is_forking = False


before_forks = _BeforeForks()
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
    before_forks.wait()
    for lock in _others_locks:
        lock.acquire()
        _taken.append(lock)


def _release() -> None:
    while _taken:
        _taken.pop().release()


def _go_on_in_parent() -> None:
    _release()
    before_forks.let_others_in()


def _go_on_in_child() -> None:
    _free_locks()
    before_forks.forget_others()
    _release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_prepare, after_in_parent=_go_on_in_parent, after_in_child=_go_on_in_child)
