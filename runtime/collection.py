"""Python's cyclic garbage collector, paused while a function is traced and its code is written.

Both make many objects that live on, and the collector would walk all of them again and again: a third of the
time of a long trace.
"""

from __future__ import annotations

import gc
import threading


class _Paused:
    """A context manager for any number of threads: the last to leave restores what the first found."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._was_enabled:
                gc.enable()


paused_collection = _Paused()
