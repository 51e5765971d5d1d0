"""Files that nobody but the user has written: checked before they are read, written whole or not at all.

A cache of machine code is a program. So what is read lies in a folder, and is a file, that belongs to the
user or to root, that nobody else may write, and that no link leads to: each is opened by its name in the
folder above, which is open, and the open file is what is checked. The folder above all may be reached through
links, since users choose it; if others can write there, it must be as `/tmp`, where they cannot replace what
is not theirs.

Windows has neither owners nor modes in what the standard library tells about a file. There links and
junctions are refused, and new folders are made for their user alone (Python 3.12.4 or later); a folder in
another place than the user's own has to be protected by its access control list.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

LONGEST_WRITE = 600.0
"""Seconds after which a temporary file is one that a process has left."""
TEMPORARY = ".tmp"

_BY_DESCRIPTOR = os.open in os.supports_dir_fd
_FLAGS = os.O_RDONLY | sum(
    getattr(os, f"O_{one}", 0) for one in ("NOFOLLOW", "NONBLOCK", "CLOEXEC", "BINARY")
)
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class UntrustedError(Exception):
    """Others may have written what is there; the text says why."""


def read(path: Path) -> tuple[bytes, float]:
    """The content of a file in a private folder, and when it was last used.

    Raises UntrustedError, or OSError where there is no such file.
    """
    with _opened(path) as descriptor, open(descriptor, "rb", closefd=False) as file:
        return file.read(), os.fstat(descriptor).st_mtime


def make(folder: Path) -> None:
    """Have the folder, for the user alone.

    Raises UntrustedError if it is not the user's, OSError if it cannot be made.
    """
    missing = [one for one in (folder.parent, *folder.parent.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if stat.S_ISDIR(status.st_mode) and _is_own(status) and stat.S_IMODE(status.st_mode) & 0o077:
        folder.chmod(0o700)
    with _opened(folder, is_folder=True):
        pass


def write(path: Path, content: bytes) -> bool:
    """Put a file into a folder that `make` has made; says whether it is there.

    Raises OSError if nothing can be written there.
    """
    import tempfile  # not at start

    descriptor, temporary = tempfile.mkstemp(suffix=TEMPORARY, dir=path.parent)  # with mode 0600
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:  # a full disk; another process that empties the folder, or on Windows has the file open
        return False
    finally:
        remove(Path(temporary))
    return True


def files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """What lies in the folder, with sizes and times, but for links and folders."""
    try:
        found = list(os.scandir(folder))
    except OSError:
        return
    for file in found:
        with contextlib.suppress(FileNotFoundError):  # another process has removed it
            if file.is_file(follow_symlinks=False):
                yield Path(file.path), file.stat(follow_symlinks=False)


def remove_left_over(folder: Path) -> None:
    """Remove the temporary files of processes that have ended before they were written."""
    for path, status in files(folder):
        if path.suffix == TEMPORARY and time.time() - status.st_mtime > LONGEST_WRITE:
            remove(path)


def remove(path: Path) -> None:
    with contextlib.suppress(OSError):  # gone already, or not ours to remove
        path.unlink()


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock that is this file, in a folder that `make` has made; with the process it ends.

    Where it cannot be had, as on some network disks, there is none.
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            _lock(descriptor)
        yield
    finally:
        with contextlib.suppress(OSError):
            _unlock(descriptor)  # closing alone would leave it to a fork that was made meanwhile
        os.close(descriptor)


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        while True:
            with contextlib.suppress(OSError):  # raised after ten seconds of waiting
                return msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)

    def _unlock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


# --- Checks -----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(path: Path, is_folder: bool = False) -> Iterator[int]:
    """A descriptor of `root/folder/file`, or of `root/folder`, once all has been checked."""
    names = path.parts[-1:] if is_folder else path.parts[-2:]
    root = path.parents[len(names) - 1].resolve(strict=True)
    with contextlib.ExitStack() as stack:
        _check(root, root.stat(), is_folder=True, is_root=True)
        above: int | None = _open(stack, root, None) if _BY_DESCRIPTOR else None
        descriptor, place = -1, root
        for number, name in enumerate(names, start=1):
            place = place / name
            if not _BY_DESCRIPTOR:
                _check(place, place.lstat(), is_folder or number < len(names))
                if number < len(names) or is_folder:
                    continue
            descriptor = _open(stack, place, above)
            _check(place, os.fstat(descriptor), is_folder or number < len(names))
            above = descriptor
        yield descriptor


def _open(stack: contextlib.ExitStack, place: Path, above: int | None) -> int:
    try:
        descriptor = os.open(place if above is None else place.name, _FLAGS, dir_fd=above)
    except OSError:
        if place.is_symlink():
            raise UntrustedError(f"{place} is a link") from None
        raise
    stack.callback(os.close, descriptor)
    return descriptor


def _check(place: Path, status: os.stat_result, is_folder: bool, is_root: bool = False) -> None:
    """Raise UntrustedError if somebody else may have written this, or may write it."""
    if _is_link(status):
        raise UntrustedError(f"{place} is a link")
    if not (stat.S_ISDIR if is_folder else stat.S_ISREG)(status.st_mode):
        raise UntrustedError(f"{place} is not a {'folder' if is_folder else 'regular file'}")
    if not hasattr(os, "getuid"):
        return
    if not _is_own(status) and status.st_uid != 0:
        raise UntrustedError(f"{place} belongs to the user with the number {status.st_uid}")
    is_sticky = is_root and status.st_mode & stat.S_ISVTX
    if status.st_mode & _OTHERS_WRITE and not is_sticky:
        raise UntrustedError(f"{place} can be written by others (mode {stat.S_IMODE(status.st_mode):o})")


def _is_link(status: os.stat_result) -> bool:
    reparse = getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0) & getattr(status, "st_file_attributes", 0)
    return stat.S_ISLNK(status.st_mode) or bool(reparse)


def _is_own(status: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()
