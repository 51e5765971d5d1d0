"""Python's cyclic garbage collector, paused while modules are imported, functions traced and code made.

All make many objects that live on, and the collector would walk all of them again and again: a third of the
time of a long trace.
"""

from __future__ import annotations

import gc

from .forks import new_lock, run_after_fork


class _Paused:
    """A context manager for any number of threads: the last to leave restores what the first found."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._inside = 0
        self._was_enabled = False
        run_after_fork(self._forget)

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

    def _forget(self) -> None:
        """A forked process has none of the threads that were inside."""
        if self._inside and self._was_enabled:
            gc.enable()
        self._inside = 0


paused_collection = _Paused()


def count_as_old() -> None:
    """Let the collector take all objects for old ones, which it walks rarely: after an import, most live on.

    Else it walks what the import has made as soon as it goes on. Nothing is kept from it; where a program has
    frozen objects, they stay frozen, and nothing is done.
    """
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()  # to the oldest generation
