"""The cache on disk: generated source and machine code, private to the user, named by content.

A name holds a hash of all that the file's content depends on, so an entry is never out of date, and two
processes that write the same one write the same bytes: locks only spare them the work. A machine code entry
carries its name and a checksum of both; one that is damaged, was made for another name, or may have been
written by others (`private_folder`), is not used but made again, with a warning.

Source is written for people to read: what is compiled and run is the text in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import linecache
import os
import platform
import re
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ...tracer.version import __version__
from . import private_folder
from .private_folder import UntrustedError

SIZE_LIMIT = 256 * 1024 * 1024  # bytes; the least recently used files beyond it are removed
_SIZE_CHECK_INTERVAL = 24 * 3600.0  # seconds between two looks at the size of the folder
_TOUCH_INTERVAL = 3600.0  # seconds after which a use of a file is noted again
_MAGIC = b"pullback machine code 2\n"
_SUFFIXES = (".py", ".bin")

_texts: dict[Path, str] = {}  # of modules, by the path that they have or would have


# --- The folder -------------------------------------------------------------------------------------------


def folder() -> Path:
    """Where generated files are kept: $PULLBACK_CACHE_DIR if set, else the user's cache folder.

    Example:
        >>> pb.cache.folder().is_absolute()
        True
    """
    import platformdirs  # not at start

    chosen = os.environ.get("PULLBACK_CACHE_DIR")
    return (Path(chosen) if chosen else platformdirs.user_cache_path("pullback")) / "generated"


def size() -> int:
    """Bytes that the cache takes on disk.

    Example:
        >>> pb.cache.size() >= 0
        True
    """
    return sum(status.st_size for _, status in _entries())


def count() -> int:
    """How many files the cache has."""
    return sum(1 for _ in _entries())


def clear() -> None:
    """Remove everything from the cache on disk. Functions that are already loaded go on working."""
    for path, _ in _entries():
        private_folder.remove(path)


def versions() -> tuple[str, ...]:
    """The versions that all cached files depend on."""
    return (
        f"pullback {__version__}",
        f"{platform.python_implementation()} {sys.version}",
        f"numpy {np.__version__}",
    )


def _entries() -> Iterator[tuple[Path, os.stat_result]]:
    """The files of the cache with their size and times; other files in the folder are not ours to touch."""
    for path, status in private_folder.files(folder()):
        if path.suffix in (*_SUFFIXES, private_folder.TEMPORARY):
            yield path, status


def _warn_once(place: Path, reason: object) -> None:
    """Say, once for each folder, that what is there is not used, or that nothing can be kept there."""
    if place in _warned:
        return
    _warned.add(place)
    warnings.warn(
        f"pullback cannot use its cache of compiled code in {place} as it is: {reason}. Functions whose code "
        f"cannot be read or kept there are compiled again. If others can write what is named, take that "
        f"permission from them (chmod go-w), or set PULLBACK_CACHE_DIR to a folder of your own.",
        RuntimeWarning,
        stacklevel=2,
    )


_warned: set[Path] = set()


def _write(path: Path, content: bytes) -> bool:
    """Put `content` at `path`, whole or not at all, readable by the user only; says whether it is there."""
    try:
        private_folder.make(path.parent)
        return private_folder.write(path, content)
    except (OSError, UntrustedError) as error:
        _warn_once(path.parent, error)
        return False


def _read(path: Path) -> bytes | None:
    """The content of a file that only this user can have written; None if there is none. Notes the use."""
    try:
        content, used = private_folder.read(path)
    except UntrustedError as error:
        _warn_once(path.parent, error)
        return None
    except OSError:
        return None
    if time.time() - used > _TOUCH_INTERVAL:
        with contextlib.suppress(OSError):  # a cache that can only be read
            os.utime(path)
    return content


# --- Source -----------------------------------------------------------------------------------------------


def write_source(source: str, stem: str) -> Path:
    """Write generated source as `<stem>_<content hash>.py` into the cache folder; returns the path.

    The file is there afterwards with exactly this content, also if it was damaged before. If the folder
    cannot be written, there is one warning, and the path names no file.
    """
    content = source.encode()
    name = re.sub(r"[^0-9A-Za-z_]", "_", stem)  # not all systems and locales have other letters
    path = folder() / f"{name}_{hashlib.sha256(content).hexdigest()[:16]}.py"
    if _read(path) != content:
        _write(path, content)
    return path


def write_module(source: str, stem: str) -> Path:
    """As `write_source`, of source that is to be run.

    `load_module`, tracebacks and `pdb` find it by its path, in memory: nothing depends on the file.

    >>> path = write_module("def double(x, out):\\n    out[()] = 2 * x[()]\\n", "double")
    >>> module = load_module(path)
    """
    path = write_source(source, stem)
    _texts[path] = source
    linecache.cache[str(path)] = (len(source), None, source.splitlines(keepends=True), str(path))
    return path


def text_of(filename: str) -> str | None:
    """The source of a module of `load_module`, by its `__file__`."""
    return _texts.get(Path(filename))


def load_module(path: Path) -> ModuleType:
    """The module of a path that `write_module` gave, under a unique name held in sys.modules.

    The name holds the hash of the content, so the same source is the same module. Its text runs when a name
    of it is asked for, as machine code from disk needs nothing of it.
    """
    name = f"pullback_generated_{path.stem}"
    found = sys.modules.get(name)
    if found is not None:
        return found
    module = _Module(name)
    module.__file__ = str(path)
    return sys.modules.setdefault(name, module)


class _Module(ModuleType):
    """A module of a text in `_texts`, which has not run as long as names are missing."""

    def __getattr__(self, name: str) -> Any:
        filename = self.__dict__["__file__"]
        is_pythons = name.startswith("__") and name.endswith("__")
        if not is_pythons and "__has_run__" not in self.__dict__:
            exec(compile(_texts[Path(filename)], filename, "exec", dont_inherit=True), self.__dict__)
            self.__dict__["__has_run__"] = True
        if name not in self.__dict__:
            raise AttributeError(f"{filename} has no {name}", name=name, obj=self)
        return self.__dict__[name]


# --- Machine code -----------------------------------------------------------------------------------------


def read(name: str) -> bytes | None:
    """The machine code kept as `name`; None if there is none. A damaged entry is removed."""
    path = folder() / f"{name}.bin"
    entry = _read(path)
    if entry is None:
        return None
    content = entry[len(_header(name, b"")) :]
    if entry != _header(name, content) + content:
        _warn_once(path.parent, f"{path.name} is damaged, or was made for another name")
        private_folder.remove(path)
        return None
    return content


def write(name: str, content: bytes) -> None:
    """Keep machine code as `name`. Where the folder cannot be written this does nothing."""
    path = folder() / f"{name}.bin"
    if _write(path, _header(name, content) + content):
        _limit_size()


@contextlib.contextmanager
def turn(*names: str) -> Iterator[None]:
    """Wait for other processes of this user that make machine code of these names, and have them wait."""
    place = folder()
    try:
        private_folder.make(place)
    except (OSError, UntrustedError):  # nothing can be kept, so that nothing comes of waiting
        yield
        return
    turns = {f"turn_{hashlib.sha256(name.encode()).hexdigest()[:2]}" for name in names}
    with contextlib.ExitStack() as held:
        for one in sorted(turns):  # so that no two processes wait for each other
            held.enter_context(private_folder.locked(place / one))
        yield


def names() -> list[str]:
    """Of all machine code that is kept."""
    return sorted(path.stem for path, _ in _entries() if path.suffix == ".bin")


def _header(name: str, content: bytes) -> bytes:
    """What an entry begins with: its name, and a checksum of that and of the content."""
    key = name.encode() + b"\n"
    return _MAGIC + hashlib.sha256(key + content).digest() + key


def _limit_size() -> None:
    """Now and then, remove the least recently used files until the cache is well below its limit."""
    marker = folder() / "size_checked"
    try:
        if time.time() - marker.stat().st_mtime < _SIZE_CHECK_INTERVAL:
            return
    except OSError:  # never checked
        pass
    _write(marker, b"")
    private_folder.remove_left_over(folder())
    entries = sorted(_entries(), key=lambda entry: entry[1].st_mtime)
    total = sum(status.st_size for _, status in entries)
    if total <= SIZE_LIMIT:
        return
    for path, status in entries:
        private_folder.remove(path)
        total -= status.st_size
        if total <= 0.8 * SIZE_LIMIT:
            break
