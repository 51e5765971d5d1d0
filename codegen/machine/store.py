"""The cache on disk: generated source and machine code, private to the user, named by content.

A name holds a hash of all that the file's content depends on, so an entry is never out of date, two
processes that write the same one write the same bytes, and nothing has to be locked. Files appear whole or
not at all; a machine code entry carries a checksum, and one that is damaged is removed and made again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import linecache
import os
import platform
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import platformdirs

from ...tracer.version import __version__

SIZE_LIMIT = 256 * 1024 * 1024  # bytes; the least recently used files beyond it are removed
_SIZE_CHECK_INTERVAL = 24 * 3600.0  # seconds between two looks at the size of the folder
_TOUCH_INTERVAL = 3600.0  # seconds after which a use of a file is noted again
_MAGIC = b"pullback machine code 1\n"
_SUFFIXES = (".py", ".bin")

_in_memory: dict[Path, str] = {}  # sources that could not be written, by the path they would have


# --- The folder -------------------------------------------------------------------------------------------


def folder() -> Path:
    """Where generated files are kept: $PULLBACK_CACHE_DIR if set, else the user's cache folder."""
    chosen = os.environ.get("PULLBACK_CACHE_DIR")
    return (Path(chosen) if chosen else platformdirs.user_cache_path("pullback")) / "generated"


def size() -> int:
    """Bytes that the cache takes on disk."""
    return sum(status.st_size for _, status in _entries())


def count() -> int:
    """How many files the cache has."""
    return sum(1 for _ in _entries())


def clear() -> None:
    """Remove everything from the cache on disk. Functions that are already loaded go on working."""
    for path, _ in _entries():
        _remove(path)


def versions() -> tuple[str, ...]:
    """The versions that all cached files depend on."""
    return (
        f"pullback {__version__}",
        f"{platform.python_implementation()} {sys.version}",
        f"numpy {np.__version__}",
    )


def _entries() -> Iterator[tuple[Path, os.stat_result]]:
    """The files of the cache with their size and times; other files in the folder are not ours to touch."""
    try:
        found = list(os.scandir(folder()))
    except OSError:
        return
    for file in found:
        try:
            if file.name.endswith((*_SUFFIXES, ".tmp")) and file.is_file(follow_symlinks=False):
                yield Path(file.path), file.stat(follow_symlinks=False)
        except FileNotFoundError:  # another process removed it
            continue


def _usable(path: Path) -> bool:
    """Whether the folder exists, or can be made, and nobody else can put code into it."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            return False
        if hasattr(os, "getuid"):
            if status.st_uid != os.getuid():
                return False
            if stat.S_IMODE(status.st_mode) & 0o077:
                path.chmod(0o700)
    except OSError:
        return False
    return True


@functools.cache
def _warn_once(path: Path) -> None:
    warnings.warn(
        f"pullback cannot keep compiled code in {path}: the folder cannot be written or is somebody else's. "
        f"Functions are compiled again in each process. Set PULLBACK_CACHE_DIR to a folder of your own.",
        RuntimeWarning,
        stacklevel=3,
    )


def _write(path: Path, content: bytes) -> bool:
    """Put `content` at `path`, whole or not at all, readable by the user only; says whether it is there."""
    if not _usable(path.parent):
        _warn_once(path.parent)
        return False
    try:
        descriptor, temporary = tempfile.mkstemp(suffix=".tmp", dir=path.parent)  # with mode 0600
    except OSError:
        _warn_once(path.parent)
        return False
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:  # a full disk; or Windows, where another process has the file open
        _remove(Path(temporary))
        return False
    return True


def _read(path: Path) -> bytes | None:
    """The content of a file that this user owns; None if there is no such file. Notes the use."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
            if hasattr(os, "getuid") and status.st_uid != os.getuid():
                return None
            content = file.read()
    except OSError:
        return None
    if time.time() - status.st_mtime > _TOUCH_INTERVAL:
        with contextlib.suppress(OSError):  # a cache that can only be read
            os.utime(path)
    return content


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # gone already, or not ours to remove
        path.unlink()


# --- Source -----------------------------------------------------------------------------------------------


def write_module(source: str, stem: str) -> Path:
    """Write generated source as `<stem>_<content hash>.py` into the cache folder; returns the path.

    The file is there afterwards with exactly this content, also if it was damaged before. If the folder
    cannot be written, there is one warning, and the path names a module that exists in memory only:
    `load_module`, tracebacks and `pdb` find it all the same.

    >>> path = write_module("def double(x, out):\\n    out[()] = 2 * x[()]\\n", "double")
    >>> module = load_module(path)
    """
    content = source.encode()
    path = folder() / f"{stem}_{hashlib.sha256(content).hexdigest()[:16]}.py"
    if _read(path) != content and not _write(path, content):
        _in_memory[path] = source
        linecache.cache[str(path)] = (len(source), None, source.splitlines(keepends=True), str(path))
    return path


def load_module(path: Path) -> ModuleType:
    """Import a file that `write_module` wrote, under a unique name held in sys.modules.

    The name holds the hash of the content, so the same source is the same module.
    """
    name = f"pullback_generated_{path.stem}"
    module = sys.modules.get(name)
    if module is not None:
        return module
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None
    module = importlib.util.module_from_spec(specification)
    source = _in_memory[path] if path in _in_memory else path.read_text(encoding="utf-8")
    # Not through __pycache__, which has no checksum.
    code = compile(source, str(path), "exec", dont_inherit=True)
    sys.modules[name] = module
    try:
        exec(code, module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


# --- Machine code -----------------------------------------------------------------------------------------


def read(name: str) -> bytes | None:
    """The machine code kept as `name`; None if there is none. A damaged entry is removed."""
    path = folder() / f"{name}.bin"
    entry = _read(path)
    if entry is None:
        return None
    header = len(_MAGIC) + hashlib.sha256().digest_size
    content = entry[header:]
    if entry[:header] != _MAGIC + hashlib.sha256(content).digest():
        _remove(path)
        return None
    return content


def write(name: str, content: bytes) -> None:
    """Keep machine code as `name`. Where the folder cannot be written this does nothing."""
    path = folder() / f"{name}.bin"
    if _write(path, _MAGIC + hashlib.sha256(content).digest() + content):
        _limit_size()


def _limit_size() -> None:
    """Now and then, remove the least recently used files until the cache is well below its limit."""
    marker = folder() / "size_checked"
    try:
        if time.time() - marker.stat().st_mtime < _SIZE_CHECK_INTERVAL:
            return
    except OSError:  # never checked
        pass
    _write(marker, b"")
    entries = sorted(_entries(), key=lambda entry: entry[1].st_mtime)
    total = sum(status.st_size for _, status in entries)
    if total <= SIZE_LIMIT:
        return
    for path, status in entries:
        _remove(path)
        total -= status.st_size
        if total <= 0.8 * SIZE_LIMIT:
            break
