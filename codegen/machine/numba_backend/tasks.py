"""Work that other cores do while Python goes on: of LLVM, which needs no interpreter's lock."""

from __future__ import annotations

import _thread
import contextlib
from collections import deque
from collections.abc import Callable

from ...cost.system import available_cores


class Task:
    """Done by whoever comes first: another thread, or the one that needs it."""

    def __init__(self, work: Callable[[], bytes]) -> None:
        self._work = work
        self._begun, self._ended = _thread.allocate_lock(), _thread.allocate_lock()
        self._ended.acquire()
        self._value = b""
        self._error: BaseException | None = None

    def run(self) -> None:
        """Do the work, unless another thread has begun."""
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._value = self._work()
        except BaseException as error:
            self._error = error
        finally:
            self._ended.release()

    def value(self) -> bytes:
        """What the work gives; raises what it raises."""
        self.run()
        with self._ended:
            if self._error is not None:
                raise self._error
            return self._value

    def drop(self) -> None:
        """Have nobody begin; who has begun comes to the end."""
        if self._begun.acquire(blocking=False):
            self._ended.release()
        with self._ended:
            pass


class Tasks:
    """Nobody is at work any more where its block ends.

    >>> with Tasks() as tasks:
    ...     code = tasks.add(partial(make_object, text)).value()
    """

    def __init__(self) -> None:
        self._all: list[Task] = []
        self._waiting: deque[Task] = deque()
        self._threads = 0

    def add(self, work: Callable[[], bytes]) -> Task:
        """Something to do for the next core that is free."""
        task = Task(work)
        self._all.append(task)
        self._waiting.append(task)
        if self._threads < min(len(self._all), available_cores() - 1):
            self._threads += 1
            _thread.start_new_thread(self._work, ())
        return task

    def _work(self) -> None:
        with contextlib.suppress(IndexError):
            while True:
                self._waiting.popleft().run()
        self._threads -= 1

    def __enter__(self) -> Tasks:
        return self

    def __exit__(self, *error: object) -> None:
        for task in self._all:
            task.drop()
