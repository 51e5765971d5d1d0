"""The cache on disk: whole files, private, content-named, bounded, and never fatal."""

import linecache
import os
import stat
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.codegen import whole_calls
from pullback.codegen.machine import compile as machine
from pullback.codegen.machine import loading, private_folder, store

SOURCE = "def halve(x, out):\n    out[()] = x[()] / 2\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    store._warned.clear()
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


def test_a_text_runs_for_whatever_name_it_gives() -> None:
    """Also for that of `__call__` of a class of the user's, which no module of Python's has."""
    module = store.load_module(store.write_module("def __call___a1b2c3():\n    pass\n", "__call__"))
    assert callable(module.__call___a1b2c3)


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
            store.load_module(path).anything  # noqa: B018


def test_the_text_of_a_module_runs_when_a_name_is_asked_for() -> None:
    module = store.load_module(store.write_module("value = [1]\n", "asked"))
    assert "value" not in vars(module) and not hasattr(module, "__path__")
    assert module.value is module.value and module.value == [1]
    with pytest.raises(AttributeError, match="has no other"):
        module.other  # noqa: B018


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
    with pytest.warns(RuntimeWarning, match="code.bin is damaged"):
        assert store.read("code") is None
    assert not path.exists()


def test_changed_machine_code_is_removed(cache: Path) -> None:
    store.write("code", bytes(1000))
    path = cache / "code.bin"
    path.write_bytes(path.read_bytes()[:-1] + b"\1")
    with pytest.warns(RuntimeWarning, match="code.bin is damaged"):
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


def give_away(path: Path) -> None:
    os.chown(path, 12345, -1, follow_symlinks=False)


def open_to_group(path: Path) -> None:
    path.chmod(path.stat().st_mode | stat.S_IWGRP)


def open_to_all(path: Path) -> None:
    path.chmod(path.stat().st_mode | stat.S_IWOTH)


def link_to_itself(path: Path) -> None:
    moved = path.with_name("moved")
    path.rename(moved)
    path.symlink_to(moved, target_is_directory=moved.is_dir())


BY_ROOT = pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can give files away")
ON_POSIX = pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
CHANGES = [
    pytest.param(give_away, marks=BY_ROOT),
    pytest.param(open_to_group, marks=ON_POSIX),
    pytest.param(open_to_all, marks=ON_POSIX),
    pytest.param(link_to_itself, marks=ON_POSIX),
]


@pytest.mark.parametrize("place", ["", "generated", "generated/code.bin"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_others_may_have_written_is_not_read(cache: Path, change: Any, place: str) -> None:
    store.write("code", b"mine")
    changed = cache.parent / place
    change(changed)
    if not place and change is link_to_itself:  # users choose where the root is
        assert store.read("code") == b"mine"
        return
    with pytest.warns(RuntimeWarning, match=changed.name) as warned:
        assert store.read("code") is None
        assert store.read("code") is None
        store.write("other", b"mine")
    assert len(warned) == 1
    is_mended = place != "" and change not in (give_away, link_to_itself)
    assert (store.read("other") is not None) == (is_mended or place.endswith(".bin"))
    store.write("code", b"new")
    assert (store.read("code") == b"new") == (is_mended or place.endswith(".bin"))


@ON_POSIX
def test_a_root_like_tmp_will_do(cache: Path) -> None:
    cache.parent.chmod(0o1777)
    store.write("code", b"mine")
    assert store.read("code") == b"mine"


@ON_POSIX
def test_what_is_no_file_is_not_waited_for(cache: Path) -> None:
    store.write("other", b"mine")
    os.mkfifo(cache / "code.bin", 0o600)
    with pytest.warns(RuntimeWarning, match="not a regular file"):
        assert store.read("code") is None


def test_an_entry_is_read_under_its_own_name_only(cache: Path) -> None:
    store.write("code", b"mine")
    (cache / "code.bin").rename(cache / "other.bin")
    with pytest.warns(RuntimeWarning, match="another name"):
        assert store.read("other") is None
    assert not (cache / "other.bin").exists()


def test_source_on_disk_is_not_run() -> None:
    path = store.write_module(SOURCE.replace("halve", "halve_from_memory"), "halve")
    path.write_text("raise SystemExit")
    module = store.load_module(path)
    linecache.checkcache()
    with pytest.raises(TypeError) as caught:
        module.halve_from_memory(None, None)
    assert "out[()] = x[()] / 2" in "".join(traceback.format_tb(caught.tb))


def test_temporary_files_of_processes_that_ended_go(cache: Path) -> None:
    cache.mkdir(mode=0o700)
    old, new = cache / "old.tmp", cache / "new.tmp"
    for one in (old, new):
        one.write_bytes(b"half")
    then = old.stat().st_mtime - 3600
    os.utime(old, (then, then))
    store.write("code", b"mine")
    assert not old.exists()
    assert new.exists()


def test_an_interrupted_write_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*paths: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.write("code", b"mine")
    assert list(cache.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_folder_open_to_others_is_closed(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)
    store.write("code", b"mine")
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


@pytest.mark.drawn(6)
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
    behind = {path.resolve() for path in loading._code_behind()}
    assert {Path(module.__file__ or "").resolve() for module in whole_calls.MODULES} <= behind
    assert all(path.exists() for path in behind)


def test_another_process_may_empty_the_cache_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    write = private_folder.write

    def write_and_lose(path: Path, content: bytes) -> bool:
        done = write(path, content)
        store.clear()
        return done

    monkeypatch.setattr(private_folder, "write", write_and_lose)
    compiled = pb.compile(pb.value_and_grad(lambda x: (x * x * 8.125 + x).sum()))
    before = machine.statistics.compilations
    value, slope = compiled(np.ones(3))
    assert machine.statistics.compilations > before
    assert value == 27.375
    np.testing.assert_allclose(slope, 17.25)
    assert "8.125" in compiled.source(np.ones(3))


OTHER_LETTERS = """
import numpy as np
import pullback as pb

@pb.compile
def größe(länge, *, été=2.0):
    Ωμέγα = np.sin(länge) * été  # größer
    return np.sum(Ωμέγα)

value, slope = pb.value_and_grad(größe)(np.zeros(3))
assert value == 0 and (slope == 2).all()
größe(np.zeros(3))
assert "länge" in größe.source(np.zeros(3)) and "größe" in größe.explain(np.zeros(3))
try:
    größe(np.zeros(3), 1, 2)
except TypeError:
    print(größe.cache_info().compilations)
"""


@pytest.mark.drawn(6)
@ON_POSIX
def test_names_and_paths_in_other_letters_in_any_locale(tmp_path: Path) -> None:
    script = tmp_path / "größe.py"
    script.write_text(OTHER_LETTERS, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LC_")}
    environment |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment["PULLBACK_CACHE_DIR"] = str(tmp_path / "Zwischenspeicher für größe")
    run = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True)
    assert run.returncode == 0, run.stderr.decode(errors="replace")
    assert run.stdout.strip() == b"1"


AT_ONCE = """
import numpy as np
import pullback as pb
from pullback.codegen.machine.compile import statistics

@pb.compile
def f(x):
    return (x * 3.5).sum()

input()
f(np.ones(3))
print(statistics.compilations)
"""


@pytest.mark.drawn(6)
def test_processes_that_need_the_same_code_at_once_compile_it_once(cache: Path) -> None:
    command = [sys.executable, "-c", AT_ONCE]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(command, **pipes) for _ in range(3)]
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert sorted(int(process.communicate(timeout=120)[0]) for process in started) == [0, 0, 1]
