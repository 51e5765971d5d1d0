"""Machine code that goes to other processes and machines: with a pickle, or as a file.

Names of entries begin with a hash of the environment, so what was made for another one is never run: it is
left out of what goes, and refused, or dropped, where it comes.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ...tracer.errors import CacheFileError
from . import store

_MANIFEST = "manifest.json"
_FORMAT = "pullback machine code 1"
_ASPECTS = ("version of pullback", "Python", "NumPy", "system", "processor", "features of the processor")
"""What the first parts of an environment are, in words."""


_sent: dict[str, bytes] = {}  # what has come from other processes, and is not in the folder


def find(name: str) -> bytes | None:
    """The machine code of this name: from the folder, or as another process has sent it."""
    found = store.read(name)
    return _sent.get(name) if found is None else found


def carried(names: Iterable[str]) -> dict[str, bytes]:
    """Machine code by name, as far as it is kept here."""
    found = {name: find(name) for name in names}
    return {name: code for name, code in found.items() if code is not None}


def keep(codes: dict[str, bytes]) -> None:
    """Keep what another process has sent, but for what was made for another environment."""
    for name, code in codes.items():
        if _is_of_here(name) and name not in _sent and store.read(name) is None:
            store.write(name, code)
            _sent[name] = code


def _is_of_here(name: str) -> bool:
    from .loading import environment_hash  # not at start: LLVM

    return name.rpartition(".")[2].startswith(environment_hash())


# --- files ------------------------------------------------------------------------------------------------


def export(path: str | os.PathLike[str]) -> int:
    """Write all machine code of the cache that is of use on this machine to a file, for `load` on others.

    Args:
        path: of the file, which is replaced once the new one is whole.

    Returns:
        How many functions it holds.

    Raises:
        OSError: the file cannot be written.

    Example:
        >>> count = export("warm.zip")
    """
    import zipfile  # not at start

    from .loading import environment  # LLVM

    codes = carried(filter(_is_of_here, store.names()))
    sums = {name: hashlib.sha256(code).hexdigest() for name, code in codes.items()}
    manifest = {"format": _FORMAT, "environment": environment(), "files": sums}
    target = Path(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr(_MANIFEST, json.dumps(manifest))
            for name, code in codes.items():
                file.writestr(name, code)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    return len(codes)


def load(path: str | os.PathLike[str]) -> int:
    """Copy the machine code of a file of `export` into the user's own cache.

    Like unpickling, this lets the file decide what runs: load only files from sources that you trust. All is
    checked before anything is kept: versions, processor, and each part against its checksum.

    Args:
        path: of a file that `export` has written.

    Returns:
        How many functions it held.

    Raises:
        CacheFileError: the file is damaged, truncated or of another kind, or was made with other versions or
            for another processor; nothing of it is kept.
        OSError: it cannot be read.

    Example:
        >>> export("warm.zip") == load("warm.zip")
        True
    """
    codes = _checked(Path(path))
    for name, code in codes.items():
        store.write(name, code)
    return len(codes)


def _checked(path: Path) -> dict[str, bytes]:
    """The machine code in a file."""
    import zipfile  # not at start

    try:
        with zipfile.ZipFile(path) as file:
            manifest = json.loads(file.read(_MANIFEST))
            sums = _sums(path, manifest)
            codes = {name: file.read(name) for name in sums}
    except (zipfile.BadZipFile, KeyError, EOFError, ValueError, zlib.error) as error:
        if isinstance(error, CacheFileError):
            raise
        raise _damaged(path, str(error)) from None
    for name, code in codes.items():
        if hashlib.sha256(code).hexdigest() != sums[name]:
            raise _damaged(path, f"the checksum of {name} is another")
    return codes


def _sums(path: Path, manifest: Any) -> dict[str, str]:
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise _damaged(path, f"its format is not {_FORMAT!r}")
    _require_same_environment(path, manifest["environment"])
    sums = manifest["files"]
    others = [name for name in sums if not _is_of_here(name) or Path(name).name != name]
    if others:
        raise _damaged(path, f"it holds {others[0]}, whose name is none of this machine's")
    return sums


def _require_same_environment(path: Path, found: list[str]) -> None:
    from .loading import environment  # not at start: LLVM

    expected = list(environment())
    if found == expected:
        return
    parts = zip(_ASPECTS, found, expected)
    differing = [f"{aspect}: made for {one}, here {other}" for aspect, one, other in parts if one != other]
    raise CacheFileError(
        f"{path} was made on a machine, or with versions, that differ from these: "
        f"{'; '.join(differing) or 'another build of pullback, Numba or llvmlite'}. Machine code is of use "
        "on equal ones only. Export it on such a one, or let functions compile here."
    )


def _damaged(path: Path, reason: str) -> CacheFileError:
    return CacheFileError(
        f"{path} is not a whole file of pullback.cache.export(): {reason}. Nothing of it was kept. Export it "
        "anew, or copy it again."
    )
