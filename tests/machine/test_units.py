"""Functions of matrices that are compiled apart from the kernels that call them."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.machine.bundles import Bundle
from pullback.codegen.machine.numba_backend.tasks import Tasks


def determined(a: np.ndarray, b: np.ndarray) -> Any:
    return np.sum(np.linalg.solve(a, b) ** 2)


def files(folder: Path, name: str) -> list[Path]:
    return sorted(folder.glob(f"generated/{name}.*.bin"))


@pytest.mark.drawn(4)
def test_kernels_share_what_they_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program finds the machine code of an elimination, and one from disk holds all that it calls."""
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    a, b = np.eye(4) + 0.1, np.arange(4.0)
    first = pb.value_and_grad(pb.compile(determined), argnums=(0, 1))(a, b)
    (kept,) = files(tmp_path, "eliminate_rows")
    made = kept.stat().st_mtime_ns
    second = pb.value_and_grad(pb.compile(lambda a, b: 3.0 * determined(a, b)), argnums=(0, 1))(a, b)
    assert files(tmp_path, "eliminate_rows") == [kept]
    assert kept.stat().st_mtime_ns == made
    np.testing.assert_allclose(second[0], 3 * first[0], rtol=1e-15)
    for one, other in zip(second[1], first[1]):
        np.testing.assert_allclose(one, 3 * other, rtol=1e-14)


def test_bundles_come_back_as_they_were() -> None:
    bundle = Bundle({"inner": b"\n1\n", "outer": b"", "last": b"23"}, ["malloc"])
    assert Bundle.unpacked(bundle.packed()) == bundle
    assert [*Bundle.unpacked(bundle.packed()).objects] == ["inner", "outer", "last"]


def test_work_is_done_once_by_whoever_comes_first() -> None:
    done: list[int] = []

    def work(number: int) -> bytes:
        done.append(number)
        return bytes([number])

    with Tasks() as tasks:
        all_of_them = [tasks.add(lambda number=number: work(number)) for number in range(9)]
        assert [one.value() for one in reversed(all_of_them)] == [bytes([k]) for k in range(8, -1, -1)]
    assert sorted(done) == [*range(9)]


def test_errors_of_tasks_reach_who_needs_them_and_nobody_works_on() -> None:
    begun, ended = threading.Event(), []

    def fail() -> bytes:
        raise ValueError("no code")

    def wait() -> bytes:
        begun.set()
        time.sleep(0.02)
        ended.append(True)
        return b""

    with pytest.raises(ValueError, match="no code"), Tasks() as tasks:
        slow = tasks.add(wait)
        tasks.add(fail).value()
    assert bool(ended) == begun.is_set()
    slow.drop()
    assert bool(ended) == begun.is_set()
