"""The machine that code is generated for: what the system tells of it, and what follows for programs."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.account import LoopNest
from pullback.codegen.cost import machine as model
from pullback.codegen.cost import system
from pullback.codegen.cost.machine import REFERENCE, Machine, assuming, this_machine
from pullback.codegen.machine import rates, store
from pullback.codegen.machine.threads import available_cores

LEVELS = "first_level", "second_level", "last_level"


def test_tests_generate_code_for_the_reference_machine():
    assert this_machine() is REFERENCE


# --- reading the system -------------------------------------------------------------------------------------


def test_what_the_system_tells_is_plausible():
    found = system.facts()
    assert found["cores"] == available_cores() >= 1
    sizes = [found[level] for level in LEVELS if level in found]
    assert sizes == sorted(sizes) and all(size >= 1 << 12 for size in sizes)
    assert found.get("line", 64) in (16, 32, 64, 128, 256)
    assert found.get("vector", 16) in (16, 32, 64)


@pytest.mark.drawn(4)
def test_the_machine_is_read_before_any_compiler_is_loaded():
    program = (
        "import os, sys; os.environ.pop('PULLBACK_MACHINE', None)\n"
        "from pullback.codegen.cost.machine import this_machine\n"
        "machine = this_machine(); assert machine.hand_over is None and machine.first_level > 0\n"
        "print(sorted({'numba', 'llvmlite'} & sys.modules.keys()))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


@pytest.fixture
def linux(monkeypatch, tmp_path) -> Callable[..., dict[str, int]]:
    """What is read of a system whose files hold the given caches (type, level, size, line) and flags."""

    def facts(caches: list[tuple[str, ...]], flags: str | None) -> dict[str, int]:
        for place, values in enumerate(caches):
            folder = tmp_path / f"index{place}"
            folder.mkdir()
            for name, value in zip(("type", "level", "size", "coherency_line_size"), values):
                (folder / name).write_text(f"{value}\n")
        processors = tmp_path / "cpuinfo"
        if flags is not None:
            processors.write_text(f"processor: 0\nflags\t\t: {flags}\n\nprocessor: 1\n")
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setattr(system, "CACHES", tmp_path)
        monkeypatch.setattr(system, "PROCESSORS", processors)
        found = system.facts()
        found.pop("cores")
        return found

    return facts


L1, L1_CODE = ("Data", "1", "32K", "64"), ("Instruction", "1", "64K", "64")
L2, L3 = ("Unified", "2", "2M", "64"), ("Unified", "3", "36864K", "64")


def test_linux_tells_caches_and_vectors(linux):
    assert linux([L1, L1_CODE, L2, L3], "fpu sse2 avx avx2") == {
        "first_level": 32 << 10, "second_level": 2 << 20, "last_level": 36 << 20, "line": 64, "vector": 32,
    }  # fmt: skip


def test_the_last_cache_may_be_the_second(linux):
    found = linux([L1, L2], "asimd")
    assert found["last_level"] == found["second_level"] == 2 << 20 and found["vector"] == 16


@pytest.mark.parametrize("caches, flags, expected", [
    ([], None, {}),
    ([], "", {}),
    ([], "no flag that is known", {}),
    ([("Data", "1", "unknown", "64")], None, {}),
    ([("Data", "1")], "sse2", {"vector": 16}),
    ([("Data", "1", "4M", "64"), ("Unified", "2", "1M", "64")], None, {"line": 64}),
    ([("Data", "1", "0K", "64"), L2], None, {"second_level": 2 << 20, "last_level": 2 << 20, "line": 64}),
], ids=["nothing", "no flags", "other flags", "no number", "no files", "shrinking", "no level"])  # fmt: skip
def test_what_cannot_be_read_is_left_out(linux, caches, flags, expected):
    assert linux(caches, flags) == expected


def test_macos_tells_of_its_performance_cores(monkeypatch):
    told = {
        "hw.perflevel0.l1dcachesize": 128 << 10, "hw.l1dcachesize": 64 << 10,
        "hw.perflevel0.l2cachesize": 12 << 20, "hw.cachelinesize": 128,
    }  # fmt: skip
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(system.platform, "machine", lambda: "arm64")
    monkeypatch.setattr(system, "_sysctl", lambda name: told.get(name, 0))
    assert system.facts() == {
        "first_level": 128 << 10, "second_level": 12 << 20, "last_level": 12 << 20, "line": 128, "vector": 16,
        "cores": available_cores(),
    }  # fmt: skip


def test_a_number_that_the_system_does_not_know_is_none():
    assert system._sysctl("hw.no_such_thing") == 0


def test_where_nothing_is_told_the_reference_machine_stands_in(monkeypatch, tmp_path):
    monkeypatch.delenv("PULLBACK_MACHINE")
    monkeypatch.setattr(sys, "platform", "unknown")
    cores = available_cores()
    monkeypatch.setattr(rates, "rates", lambda: {"arithmetic": 1.0, "access": 1.0})
    assert model._own_machine.__wrapped__() == replace(REFERENCE, cores=cores, hand_over=None)


# --- rates that are measured --------------------------------------------------------------------------------


def test_rates_are_powers_of_two_that_are_measured_once(monkeypatch):
    monkeypatch.setattr(rates, "_machine_name", lambda: "test")
    monkeypatch.setattr(rates, "_time_of_access", lambda: rates.REFERENCE_TIMES["access"] * 1.9)
    monkeypatch.setattr(rates, "_time_of_multiplication", lambda: rates.REFERENCE_TIMES["arithmetic"] * 4.5)
    store.write("rates.test", b"nothing that can be read")
    assert rates.rates.__wrapped__() == {"arithmetic": 0.25, "access": 1.0}
    monkeypatch.setattr(rates, "_time_of_access", lambda: 1e9)
    assert rates.rates.__wrapped__() == {"arithmetic": 0.25, "access": 1.0}  # as the cache has it


@pytest.mark.parametrize("kept", [b"[1]", b'{"arithmetic": 1}', b'{"arithmetic": 1e9, "access": 1}'])
def test_rates_that_cannot_be_are_measured_again(monkeypatch, kept):
    monkeypatch.setattr(rates, "_machine_name", lambda: "test")
    store.write("rates.test", kept)
    assert all(map(rates._is_plausible, rates.rates.__wrapped__().values()))


def test_a_faster_machine_takes_less_time():
    faster = REFERENCE.at_rates(arithmetic=2.0, access=4.0)
    assert faster.nanoseconds_of_loop(100, 3, 20, 8) < REFERENCE.nanoseconds_of_loop(100, 3, 20, 8) / 2
    assert faster.nanoseconds_of_gemm(64, 64, 64, 8) < REFERENCE.nanoseconds_of_gemm(64, 64, 64, 8)
    assert faster.nanoseconds_of_large_gemm(1e6, 8) == REFERENCE.nanoseconds_of_large_gemm(1e6, 8) / 2
    assert REFERENCE.at_rates(arithmetic=1.0, access=1.0) == REFERENCE


def test_only_the_reference_machine_can_be_asked_for(monkeypatch):
    monkeypatch.setenv("PULLBACK_MACHINE", "referense")
    with pytest.raises(ValueError, match="PULLBACK_MACHINE: 'reference' expected"):
        model._own_machine.__wrapped__()


# --- what passes ask ----------------------------------------------------------------------------------------


def test_answers_of_the_reference_machine():
    """The sizes at which decisions change, where golden files are made."""
    assert [REFERENCE.stays_near(size) for size in (32 << 10, (32 << 10) + 1)] == [True, False]
    assert [REFERENCE.is_worth_lending(size) for size in ((32 << 10) - 1, 32 << 10)] == [False, True]
    assert [REFERENCE.is_free_for_each_part(size) for size in (16 << 10, (16 << 10) + 1)] == [True, False]
    assert [REFERENCE.stays_until_backward(size) for size in (1 << 20, (1 << 20) + 1)] == [True, False]
    assert [REFERENCE.leaves_caches_when_written(size) for size in ((4 << 20) - 1, 4 << 20)] == [False, True]
    assert [REFERENCE.is_read_from_memory_twice(size) for size in (16 << 20, (16 << 20) + 1)] == [False, True]
    assert [REFERENCE.multiplications_to_keep(size) for size in (100, 1 << 16)] == [24, 60]
    assert [REFERENCE.multiplications_to_keep(1 << 16, spared) for spared in (1, 2, 3)] == [40, 20, 20]
    assert (REFERENCE.block_bytes, REFERENCE.lanes, REFERENCE.alignment) == (128 << 10, 8, 64)


def test_work_that_takes_longer_is_estimated_so():
    assert REFERENCE.nanoseconds_of_loop(100, 3, 20, 8) > REFERENCE.nanoseconds_of_loop(100, 3, 20, 4)
    assert REFERENCE.nanoseconds_of_loop(100, 3, 20, 8) > REFERENCE.nanoseconds_of_loop(100, 2, 20, 8)
    assert REFERENCE.nanoseconds_of_gemm(64, 64, 64, 8) > REFERENCE.nanoseconds_of_gemm(64, 64, 63, 8)
    slower = replace(REFERENCE, multiplications=10.0)
    assert slower.nanoseconds_of_arithmetic(100) == 5 * REFERENCE.nanoseconds_of_arithmetic(100)


# --- what follows for programs ------------------------------------------------------------------------------


def decided(machine: Machine, function: Callable[..., Any], *arrays: np.ndarray) -> Any:
    """What was decided for a function on a machine."""
    with assuming(machine):
        return pb.compile(lambda *arrays: function(*arrays)).explain(*arrays, as_data=True)


def test_a_smaller_second_level_cache_has_less_saved_for_backward():
    def saved(machine: Machine) -> int:
        x = pb.tensor(np.linspace(0, 1, 1000), requires_grad=True)
        (account,) = decided(machine, lambda x: pb.sum(pb.exp(x) * pb.sin(x)), x).forward
        return sum(one.name.startswith("saved_") for one in account.arrays)

    assert saved(REFERENCE) > saved(replace(REFERENCE, second_level=4 << 10)) == 0


def test_a_smaller_first_level_cache_has_less_kept_between_loops():
    def arrays(machine: Machine) -> int:
        def scaled(x):
            y = x / (x + 1) / (x + 2) / (x + 3) + x / (x + 4) / (x + 5) / (x + 6)
            y = y * (y + 1) * (y + 2) + 0.25 * x
            return y / pb.sum(y)

        (account,) = decided(machine, scaled, np.linspace(0, 1, 1000)).forward
        return len(account.arrays)

    assert arrays(REFERENCE) > arrays(replace(REFERENCE, first_level=4 << 10))


def test_a_smaller_last_level_cache_has_memory_read_in_blocks():
    def has_blocks(machine: Machine) -> bool:
        (account,) = decided(machine, lambda x: pb.logsumexp(x, 0), np.linspace(0, 1, 100_000)).forward
        nests = [step.work.body for step in account.steps if isinstance(step.work, LoopNest)]
        return any(isinstance(inner, LoopNest) for body in nests for inner in body)

    small = replace(REFERENCE, first_level=4 << 10, second_level=16 << 10, last_level=64 << 10)
    assert has_blocks(small) and not has_blocks(REFERENCE)


@pytest.mark.drawn(4)
def test_results_are_the_same_on_every_machine():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((300, 40)), rng.standard_normal((40, 8))

    def loss(x, w):
        y = pb.tanh(x @ w)
        return pb.sum(pb.exp(y) / pb.sum(pb.exp(y), dim=1, keepdim=True) * y)

    tiny = replace(
        REFERENCE, first_level=64, second_level=256, last_level=1024, vector=16, cores=1, memory_bandwidth=1.0
    )
    for machine in (REFERENCE, tiny):
        with assuming(machine):
            value, slopes = pb.compile(pb.value_and_grad(loss, argnums=(0, 1)))(x, w)
        wanted, wanted_slopes = pb.value_and_grad(loss, argnums=(0, 1))(x, w)
        np.testing.assert_allclose(value, wanted, rtol=1e-10)
        for found, expected in zip(slopes, wanted_slopes):
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
