"""Threads that share the iterations of a loop. Generated code runs without the interpreter's lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

Task = tuple[Callable[..., Any], tuple[Any, ...], "SimpleQueue[BaseException | None]"]


def available_cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


_number: int | None = None
_tasks: SimpleQueue[Task] = SimpleQueue()
_workers: list[threading.Thread] = []
_lock = threading.Lock()
_owner = os.getpid()


def get_num_threads() -> int:
    """How many threads share a large loop.

    >>> get_num_threads() >= 1
    True
    """
    return _number if _number is not None else available_cores()


def set_num_threads(number: int) -> None:
    """Set how many threads share a large loop; results of sums may differ in the last digits between numbers.

    Raises ValueError for a number below one.
    """
    global _number
    if number < 1:
        raise ValueError(f"set_num_threads: a number of at least 1 expected, found {number}.")
    _number = int(number)


def run_in_threads(function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]) -> None:
    """Call the function with each tuple of arguments, the first in this thread; return when all are done."""
    _start_workers(len(calls) - 1)
    done: SimpleQueue[BaseException | None] = SimpleQueue()
    for arguments in calls[1:]:
        _tasks.put((function, arguments, done))
    try:
        function(*calls[0])
    finally:
        errors = [done.get() for _ in calls[1:]]
    for error in errors:
        if error is not None:
            raise error


def _start_workers(number: int) -> None:
    global _owner, _tasks
    if len(_workers) >= number and _owner == os.getpid():
        return
    with _lock:
        if _owner != os.getpid():  # a forked process has none of its parent's threads
            _owner, _tasks = os.getpid(), SimpleQueue()
            _workers.clear()
        while len(_workers) < number:
            worker = threading.Thread(target=_work, args=(_tasks,), name="pullback", daemon=True)
            worker.start()
            _workers.append(worker)


def _work(tasks: SimpleQueue[Task]) -> None:
    while True:
        function, arguments, done = tasks.get()
        try:
            function(*arguments)
        except BaseException as error:  # handed to the thread that waits for it
            done.put(error)
        else:
            done.put(None)
