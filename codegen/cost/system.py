"""What the system tells of the machine: its caches, the longest vectors, cores; the rest is left out."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
PROCESSORS = Path("/proc/cpuinfo")
LEVELS = {1: "first_level", 2: "second_level"}
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
VECTORS = {"avx512f": 64, "avx2": 32, "avx": 32, "sse2": 16, "asimd": 16, "neon": 16}
"""The bytes of a vector, of extensions of processors as Linux and macOS call them."""


def available_cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def processor_name() -> str:
    """What the maker calls the processor, if the system tells."""
    try:
        with PROCESSORS.open() as lines:
            names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
            return next(names, "")
    except OSError:
        return platform.processor()


def facts() -> dict[str, int]:
    """The fields of `Machine` that the system knows, by name; of Windows and others, the cores alone.

    >>> facts()
    {'line': 64, 'first_level': 49152, 'second_level': 1048576, 'last_level': 33554432, ...}
    """
    found = {"linux": _of_linux, "darwin": _of_macos}.get(sys.platform, dict[str, int])()
    return _plausible(found) | {"cores": available_cores()}


def _plausible(found: dict[str, int]) -> dict[str, int]:
    """What is positive, if caches grow from level to level; none of the caches otherwise."""
    known = {name: size for name, size in found.items() if size > 0}
    levels = [known[name] for name in ("first_level", "second_level", "last_level") if name in known]
    if levels != sorted(levels) or not all(1 << 12 <= one < 1 << 40 for one in levels):
        return {name: size for name, size in known.items() if not name.endswith("_level")}
    return known


# --- Linux --------------------------------------------------------------------------------------------------


def _of_linux() -> dict[str, int]:
    caches = list(_caches_of_linux())
    found = {LEVELS[level]: size for level, size, _ in caches if level in LEVELS}
    if caches:
        found |= {"last_level": max(size for _, size, _ in caches), "line": caches[0][2]}
    return found | _vector_of_linux()


def _caches_of_linux() -> Iterator[tuple[int, int, int]]:
    """Level, size and line of each cache that holds data."""
    names = "type", "level", "size", "coherency_line_size"
    for folder in sorted(CACHES.glob("index*")):
        try:
            kind, level, size, line = ((folder / name).read_text().strip() for name in names)
            if kind != "Instruction":
                yield int(level), _bytes_of(size), int(line)
        except (OSError, ValueError):  # containers and virtual machines leave some out
            continue


def _bytes_of(text: str) -> int:
    """Of a size as Linux writes it.

    >>> _bytes_of("48K")
    49152
    """
    unit = UNITS.get(text[-1:], 1)
    return unit * int(text.rstrip("KMG"))


def _vector_of_linux() -> dict[str, int]:
    try:
        with PROCESSORS.open() as lines:  # one paragraph for each core, of which the first is enough
            flags = next((line for line in lines if line.startswith(("flags", "Features"))), "").split()
    except OSError:
        return {}
    return {"vector": max(VECTORS.get(flag, 0) for flag in flags)} if flags else {}


# --- macOS --------------------------------------------------------------------------------------------------


def _of_macos() -> dict[str, int]:
    """Of its performance cores, where it has two kinds."""
    first, second, last, line = (
        next((size for prefix in ("hw.perflevel0.", "hw.") if (size := _sysctl(prefix + name))), 0)
        for name in ("l1dcachesize", "l2cachesize", "l3cachesize", "cachelinesize")
    )
    found = {"first_level": first, "second_level": second, "last_level": last or second, "line": line}
    extensions = [
        name for name in VECTORS if any(_sysctl(f"hw.optional.{name}{version}") for version in ("", "_0"))
    ]
    if platform.machine() == "arm64":
        extensions.append("neon")
    return found | ({"vector": max(map(VECTORS.__getitem__, extensions))} if extensions else {})


def _sysctl(name: str) -> int:
    """A number of the system by its name; 0 if there is none."""
    value, size = ctypes.c_int64(0), ctypes.c_size_t(8)
    try:
        call = ctypes.CDLL(None).sysctlbyname
    except (AttributeError, OSError):
        return 0
    failed = call(name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0))
    return 0 if failed else value.value
