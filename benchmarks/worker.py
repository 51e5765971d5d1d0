"""A process that holds one library and runs its calls when told to."""

from __future__ import annotations

import gc
import multiprocessing
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from .peers import PEERS, Call
from .workloads import workload_named


class PeerError(Exception):
    """A library could not run a workload; the text is its traceback."""


class Worker:
    """The library's process, seen from the one that measures."""

    def __init__(self, peer: str) -> None:
        self.peer = peer
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, peer), daemon=True)
        self._process.start()
        theirs.close()

    def prepare(self, workload: str) -> float:
        """Build the function and call it once; returns the seconds of both."""
        return self._ask("prepare", workload)

    def results(self) -> list[np.ndarray]:
        """The value, then the gradients, of one call."""
        return self._ask("results")

    def seconds(self, calls: int) -> float:
        """Run so many calls now; the mean seconds of one."""
        return self._ask("seconds", calls)

    def close(self) -> None:
        if self._process.is_alive():
            self._connection.send(("close", ()))
        self._process.join(timeout=10)
        if self._process.is_alive():
            self._process.terminate()

    def _ask(self, request: str, *arguments: Any) -> Any:
        try:
            self._connection.send((request, arguments))
            succeeded, answer = self._connection.recv()
        except (EOFError, OSError):
            self._process.join(timeout=10)
            raise PeerError(f"the process of {self.peer} ended with code {self._process.exitcode}") from None
        if not succeeded:
            raise PeerError(answer)
        return answer


def _serve(connection: Connection, peer: str) -> None:
    session = _Session(peer)
    handlers: dict[str, Callable[..., Any]] = {
        "prepare": session.prepare,
        "results": session.results,
        "seconds": session.seconds,
    }
    while (message := connection.recv())[0] != "close":
        request, arguments = message
        try:
            connection.send((True, handlers[request](*arguments)))
        except Exception:  # whatever a library raises is an answer
            connection.send((False, traceback.format_exc()))


class _Session:
    """The library's side: one workload at a time."""

    def __init__(self, peer: str) -> None:
        self.peer = PEERS[peer]()
        self.call: Call

    def prepare(self, name: str) -> float:
        workload = workload_named(name)
        inputs = workload.inputs()
        start = time.perf_counter()
        self.call = self.peer.prepare(workload.loss, inputs, workload.argnums)
        self.call()
        return time.perf_counter() - start

    def results(self) -> list[np.ndarray]:
        value, gradients = self.call()
        return [np.asarray(one) for one in (value, *gradients)]

    def seconds(self, calls: int) -> float:
        return seconds_per_call(self.call, calls)


def seconds_per_call(call: Callable[[], Any], calls: int) -> float:
    """The mean of `calls` calls, after some that are not timed, without the garbage collector."""
    gc.collect()
    gc.disable()
    try:
        for _ in range(max(1, calls // 10)):
            call()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - start) / calls
    finally:
        gc.enable()
