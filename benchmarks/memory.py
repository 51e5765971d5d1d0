"""How much memory this process holds, and held at most, in bytes; None where the system does not tell."""

from __future__ import annotations

import ctypes
import gc
import sys
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident() -> int | None:
    return _status("VmRSS")


def peak() -> int | None:
    """The most since the process began, or since `reset_peak`."""
    found = _status("VmHWM")
    return _peak_of_the_process() if found is None else found


def reset_peak() -> bool:
    """Whether `peak` counts from now on: only Linux can do that."""
    try:
        RESET.write_text("5")
    except OSError:
        return False
    return True


def trim() -> None:
    """Give the system back what nobody uses."""
    gc.collect()
    if sys.platform == "linux":
        trim_heap = getattr(ctypes.CDLL(None), "malloc_trim", None)  # the GNU C library has it
        if trim_heap is not None:
            trim_heap(0)


def _status(key: str) -> int | None:
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:  # not Linux
        return None
    (found,) = (line.split() for line in lines if line.startswith(f"{key}:"))
    return int(found[1]) * 1024


def _peak_of_the_process() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found if sys.platform == "darwin" else found * 1024
