"""A process that holds one library and one workload, and runs calls when told to."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from . import memory
from .peers import PEERS
from .workload import NotOffered
from .workloads import workload_named


class PeerError(Exception):
    """A library could not run a workload; the text says why, at length."""


class TooSlow(PeerError):
    """It did not answer in time, and its process was ended."""


class Worker:
    """The process, seen from the one that measures. It starts on its own; `wait` until it is ready."""

    def __init__(self, peer: str, workload: str) -> None:
        self.peer = peer
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, peer, workload), daemon=True)
        self._process.start()
        theirs.close()

    def wait(self, limit: float) -> None:
        """Until the library is imported and has the inputs."""
        self._answer(limit)

    def first_call(self, limit: float) -> FirstCall:
        """Build the function and call it once."""
        return self._ask(limit, "first_call")

    def results(self, limit: float) -> list[np.ndarray]:
        """All arrays that one call gives."""
        return self._ask(limit, "results")

    def seconds(self, calls: int, limit: float, warm_up: int = 1) -> float:
        """Run so many calls now; the mean seconds of one. `warm_up` calls before them are not timed."""
        return self._ask(limit, "seconds", calls, warm_up)

    def memory(self, calls: int, limit: float) -> int | None:
        """The most bytes that so many calls hold, results and all that they need in between."""
        return self._ask(limit, "memory", calls)

    def close(self) -> None:
        if self._process.is_alive():
            with contextlib.suppress(OSError):
                self._connection.send(("close", ()))
        self._process.join(timeout=5)
        if self._process.is_alive():
            self._kill()
        self._connection.close()

    def _ask(self, limit: float, request: str, *arguments: Any) -> Any:
        try:
            self._connection.send((request, arguments))
        except OSError:
            self._ended()
        return self._answer(limit)

    def _answer(self, limit: float) -> Any:
        try:
            if not self._connection.poll(limit):
                self._kill()
                raise TooSlow(f"no answer in {limit:.0f} s")
            answer = self._connection.recv()
        except (EOFError, OSError):
            self._ended()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _ended(self) -> None:
        self._process.join(timeout=10)
        raise PeerError(f"the process of {self.peer} ended with code {self._process.exitcode}") from None

    def _kill(self) -> None:
        """The process, and the compilers that it may have started."""
        if hasattr(os, "killpg") and self._process.is_alive():
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):  # it has no group of its own yet
                self._process.kill()
        else:
            self._process.kill()
        self._process.join(timeout=10)


@dataclass(frozen=True)
class FirstCall:
    """What the first call took in its process, of seconds and of bytes."""

    seconds: float
    memory: int | None


def _serve(connection: Connection, peer: str, workload: str) -> None:
    """The process: it starts, then does what is asked; each answer is a result or an exception."""
    if hasattr(os, "setsid"):
        os.setsid()
    session = _Session(peer, workload)
    request, arguments = "start", ()
    while request != "close":
        try:
            answer = getattr(session, request)(*arguments)
        except NotOffered as error:
            answer = error
        except Exception:  # whatever a library raises is an answer
            answer = PeerError(traceback.format_exc())
        try:
            connection.send(answer)
            request, arguments = connection.recv()
        except (EOFError, OSError):  # nobody asks any more
            return


class _Session:
    """The library's side."""

    def __init__(self, peer: str, workload: str) -> None:
        self.peer = peer
        self.library = PEERS[peer]()
        self.workload = workload_named(workload)

    def start(self) -> None:
        inputs = self.workload.inputs()
        self.library.configure(self.workload, inputs)
        self.workload.import_module(self.peer)
        self.arguments = self.library.arguments(self.workload, inputs)

    def first_call(self) -> FirstCall:
        memory.trim()
        start, before = time.perf_counter(), _start_of_peak()
        self.call = self.library.prepare(self.workload, self.arguments)
        self.call()
        return FirstCall(time.perf_counter() - start, _peak_above(before))

    def results(self) -> list[np.ndarray]:
        return [self.library.to_numpy(one) for one in flat(self.call())]

    def seconds(self, calls: int, warm_up: int) -> float:
        return seconds_per_call(self.call, calls, warm_up)

    def memory(self, calls: int) -> int | None:
        """Code and modules are there since the first call; what a library keeps between calls counts."""
        self.library.release()
        memory.trim()
        before = _start_of_peak()
        for _ in range(calls):
            self.call()
        return _peak_above(before)


def _start_of_peak() -> int | None:
    if memory.reset_peak():
        return memory.resident()
    return memory.peak()


def _peak_above(before: int | None) -> int | None:
    after = memory.peak()
    return None if before is None or after is None else max(0, after - before)


def flat(results: Any) -> list[Any]:
    """The arrays in nested tuples and lists."""
    if isinstance(results, tuple | list):
        return [array for one in results for array in flat(one)]
    return [results]


def seconds_per_call(call: Callable[[], Any], calls: int, warm_up: int) -> float:
    """The mean of `calls` calls, after some that are not timed, without the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        for _ in range(warm_up):
            call()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - start) / calls
    finally:
        gc.enable()
