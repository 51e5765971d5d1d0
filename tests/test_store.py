"""The cache on disk: whole files, private, content-named, bounded, and never fatal."""

import linecache
import os
import stat
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from pullback.codegen import whole_calls
from pullback.codegen.machine import compile as machine
from pullback.codegen.machine import store

SOURCE = "def halve(x, out):\n    out[()] = x[()] / 2\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    store._warn_once.cache_clear()
    return store.folder()


def test_a_module_is_a_private_file_named_by_its_content(cache: Path) -> None:
    path = store.write_module(SOURCE, "halve")
    assert path.parent == cache
    assert path.name.startswith("halve_")
    assert path.read_text() == SOURCE
    assert store.write_module(SOURCE, "halve") == path
    assert store.write_module(SOURCE + "\n", "halve") != path
    if os.name == "posix":
        assert stat.S_IMODE(cache.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_same_source_is_the_same_module() -> None:
    path = store.write_module(SOURCE, "halve")
    module = store.load_module(path)
    assert store.load_module(path) is module
    assert sys.modules[module.__name__] is module
    assert module.__file__ == str(path)


def test_a_traceback_shows_the_generated_line() -> None:
    module = store.load_module(store.write_module(SOURCE, "halve"))
    with pytest.raises(TypeError) as caught:
        module.halve(None, None)
    assert "out[()] = x[()] / 2" in "".join(traceback.format_tb(caught.tb))


@pytest.mark.parametrize("damage", ["", "def halve(", "\0garbage"])
def test_a_damaged_source_is_written_again(damage: str) -> None:
    path = store.write_module(SOURCE, "halve")
    path.write_text(damage)
    assert store.write_module(SOURCE, "halve") == path
    assert path.read_text() == SOURCE


def test_a_module_that_fails_is_not_kept() -> None:
    path = store.write_module("1 / 0\n", "broken")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            store.load_module(path)


def test_machine_code_comes_back_as_it_was(cache: Path) -> None:
    content = bytes(range(256))
    assert store.read("code") is None
    store.write("code", content)
    assert store.read("code") == content
    if os.name == "posix":
        assert stat.S_IMODE((cache / "code.bin").stat().st_mode) == 0o600


@pytest.mark.parametrize("keep", [0, 10, 40, 100])
def test_truncated_machine_code_is_removed(cache: Path, keep: int) -> None:
    store.write("code", bytes(1000))
    path = cache / "code.bin"
    path.write_bytes(path.read_bytes()[:keep])
    assert store.read("code") is None
    assert not path.exists()


def test_changed_machine_code_is_removed(cache: Path) -> None:
    store.write("code", bytes(1000))
    path = cache / "code.bin"
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    assert store.read("code") is None


def test_size_and_clear_leave_other_files_alone(cache: Path) -> None:
    assert store.size() == 0
    path = store.write_module(SOURCE, "halve")
    store.write("code", bytes(1000))
    other = cache / "notes.txt"
    other.write_text("the user's")
    assert store.size() == path.stat().st_size + (cache / "code.bin").stat().st_size
    store.clear()
    assert store.size() == 0
    assert other.exists()


def test_the_least_recently_used_go_first(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "SIZE_LIMIT", 3500)
    monkeypatch.setattr(store, "_SIZE_CHECK_INTERVAL", 0.0)
    for age, name in enumerate(("newest", "middle", "oldest")):
        store.write(name, bytes(1000))
        then = (cache / f"{name}.bin").stat().st_mtime - 1e5 * (age + 1)
        os.utime(cache / f"{name}.bin", (then, then))
    assert store.read("oldest") is not None  # a use, which makes it the most recent
    store.write("added", bytes(1000))  # 4 KB against a limit of 3.5: reduced to 80 % of that
    kept = {name for name in ("newest", "middle", "oldest", "added") if store.read(name) is not None}
    assert kept == {"oldest", "added"}


def test_without_a_folder_modules_live_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("not a folder")
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(occupied))
    source = SOURCE.replace("halve", "halve_in_memory")
    with pytest.warns(RuntimeWarning, match="PULLBACK_CACHE_DIR") as warned:
        path = store.write_module(source, "memory")
        store.write_module(source + "\n", "memory")
        store.write("code", b"lost")
    assert len(warned) == 1
    assert store.read("code") is None
    module = store.load_module(path)
    linecache.checkcache()
    with pytest.raises(TypeError) as caught:
        module.halve_in_memory(None, None)
    assert "out[()] = x[()] / 2" in "".join(traceback.format_tb(caught.tb))


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can give a folder away")
def test_somebody_elses_folder_is_refused(cache: Path) -> None:
    cache.mkdir(mode=0o777)
    planted = cache / "code.bin"
    store.write("code", b"mine")
    os.chown(cache, 12345, -1)
    os.chown(planted, 12345, -1)
    assert store.read("code") is None
    with pytest.warns(RuntimeWarning):
        store.write("other", b"mine")
    assert not (cache / "other.bin").exists()


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_open_to_others_is_closed(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    store.write("code", b"mine")
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_processes_may_write_the_same_module_at_once(cache: Path) -> None:
    program = f"from pullback.codegen.machine import store; print(store.write_module({SOURCE!r}, 'halve'))"
    processes = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    paths = {process.communicate()[0].strip() for process in processes}
    assert all(process.returncode == 0 for process in processes)
    assert len(paths) == 1
    assert Path(paths.pop()).read_text() == SOURCE
    assert not list(cache.glob("*.tmp"))


def test_code_that_generated_code_calls_is_part_of_the_key() -> None:
    """A new version of a function of whole matrices is compiled, and no old code taken from the disk."""
    behind = {path.resolve() for path in machine._code_behind()}
    assert {Path(module.__file__ or "").resolve() for module in whole_calls.MODULES} <= behind
    assert all(path.exists() for path in behind)
