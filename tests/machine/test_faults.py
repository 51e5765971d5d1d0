"""Signals and forks while code is compiled: the process goes on, and the next call works."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.machine import compile as machine
from pullback.tracer import forks
from pullback.tracer import uninterrupted as uninterrupted_work
from pullback.tracer.forks import before_forks, kept
from pullback.tracer.uninterrupted import uninterrupted

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and forks of POSIX")


class Stop(BaseException):
    pass


@pytest.fixture
def stop() -> Iterator[int]:
    """A signal whose handler raises Stop."""

    def handle(*_: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGUSR1, handle)
    yield signal.SIGUSR1
    signal.signal(signal.SIGUSR1, before)


def test_an_interrupt_ends_the_wait_and_not_the_work(stop: int) -> None:
    goes_on, done = threading.Event(), threading.Event()

    @uninterrupted
    def work(number: int) -> int:
        os.kill(os.getpid(), stop)
        assert goes_on.wait(60)
        done.set()
        return number

    with pytest.raises(Stop):
        work(1)
    assert not done.is_set()
    goes_on.set()
    assert done.wait(60)


def test_results_and_errors_are_those_of_a_call() -> None:
    threads = []

    @uninterrupted
    def work(number: int, *, fails: bool) -> int:
        threads.append(threading.current_thread())
        if fails:
            raise ValueError(number)
        return nested(number)

    @uninterrupted
    def nested(number: int) -> int:
        threads.append(threading.current_thread())
        return number

    assert work(3, fails=False) == 3
    assert threads[0] is threads[1] is not threading.main_thread()
    with pytest.raises(ValueError, match="5"):
        work(5, fails=True)


def test_the_end_of_work_is_seen_by_all_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process too, which may end before the thread that has worked does."""

    class Kept(set):
        def discard(self, one: object) -> None:
            pass

    monkeypatch.setattr(uninterrupted_work, "_unfinished", Kept())
    assert uninterrupted(abs)(-3) == 3
    assert all(work.wait() for work in uninterrupted_work._unfinished)


def test_what_was_interrupted_is_compiled_once(stop: int, monkeypatch: pytest.MonkeyPatch) -> None:
    load, loaded = machine._codes, []

    def load_interrupted(*arguments: object) -> object:
        if not loaded:
            os.kill(os.getpid(), stop)
        loaded.append(load(*arguments))
        return loaded[-1]

    monkeypatch.setattr(machine, "_codes", load_interrupted)
    compiled = pb.compile(lambda x: np.sum(np.sin(x) * 1.0625))
    with pytest.raises(Stop):
        compiled(np.ones(3))
    np.testing.assert_allclose(compiled(np.ones(3)), 3 * np.sin(1.0) * 1.0625)
    assert len(loaded) == 1


def run(script: str, folder: Path, *arguments: str) -> str:
    """What a script prints that runs in a process of its own, with an empty cache."""
    environment = {**os.environ, "PULLBACK_CACHE_DIR": str(folder)}
    command = [sys.executable, "-c", script, *arguments]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert ended.returncode == 0, f"{ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


FUNCTIONS = '''
import faulthandler, os, random, signal, sys, threading, time
import numpy as np
import numpy.testing  # not in a thread: a fork in the midst of an import leaves its lock taken in the child
import pullback as pb

x = np.arange(1.0, 5.0)

def function(number):
    """Another one for each number."""
    space = {"np": np}
    exec(f"def f(x):\\n    for step in range(4):\\n        x = np.sin(x * 0.5 + {number}) + step\\n"
         f"    return np.sum(x * x) + np.max(x)", space)
    return space["f"]

def check(number):
    f = function(number)
    value, gradient = pb.compile(pb.value_and_grad(f))(x)
    np.testing.assert_allclose(value, f(x), rtol=1e-12)
    np.testing.assert_allclose(gradient, pb.grad(f)(x), rtol=1e-10)
'''

INTERRUPTED = (
    FUNCTIONS
    + """
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a process in the background has not
interrupts = number = 0
chance = random.Random(0)
while interrupts < int(sys.argv[1]):
    number += 1
    f = pb.compile(pb.value_and_grad(function(number)))
    timer = threading.Timer(chance.uniform(0.0, 0.3), os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        f(x)
        timer.join()
        time.sleep(0.01)
    except KeyboardInterrupt:
        interrupts += 1
    np.testing.assert_allclose(f(x)[0], function(number)(x), rtol=1e-12)
print("survived")
"""
)


@pytest.mark.drawn(6)
@pytest.mark.slow
def test_a_process_survives_interrupts_while_it_compiles(tmp_path: Path) -> None:
    assert run(INTERRUPTED, tmp_path, "25") == "survived\n"


FORKED = (
    FUNCTIONS
    + """
ends = threading.Event()
shared = pb.compile(pb.value_and_grad(function(0)))

def compile_on():
    shared(x)
    number = 0
    while not ends.is_set():
        number += 1
        check(number)

thread = threading.Thread(target=compile_on)
thread.start()
chance = random.Random(0)
for child in range(int(sys.argv[1])):
    time.sleep(chance.uniform(0.0, 0.2))
    process = os.fork()
    if process == 0:
        faulthandler.dump_traceback_later(60, exit=True)
        check(1000 + child)
        np.testing.assert_allclose(shared(x)[0], function(0)(x), rtol=1e-12)
        os._exit(0)
    assert os.waitpid(process, 0)[1] == 0
ends.set()
thread.join()
print("compiled")
"""
)


@pytest.mark.drawn(6)
@pytest.mark.slow
def test_forked_processes_compile_whatever_other_threads_did(tmp_path: Path) -> None:
    assert run(FORKED, tmp_path, "6") == "compiled\n"


def test_a_fork_waits_for_what_must_not_be_cut_in_two() -> None:
    """Whoever is inside may go in again, even while a fork waits."""
    order = []
    inside, waits = threading.Event(), threading.Event()

    def work() -> None:
        with before_forks():
            inside.set()
            assert waits.wait(60)
            with before_forks():
                order.append("work")

    thread = threading.Thread(target=work)
    thread.start()
    assert inside.wait(60)
    with before_forks():  # of the thread that forks
        waits.set()
        forks._prepare()
        order.append("fork")
        forks._go_on()
    thread.join()
    with before_forks():
        order.append("later")
    assert order == ["work", "fork", "later"]


def test_threads_that_ask_for_an_attribute_at_once_wait_for_no_lock_and_get_one_object() -> None:
    at_once = threading.Barrier(2)

    class Held:
        @kept
        def value(self) -> object:
            at_once.wait(timeout=10.0)  # raises in both threads if one of them does not come
            return object()

    held, found = Held(), list[object]()
    threads = [threading.Thread(target=lambda: found.append(held.value)) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(found) == 2 and found[0] is found[1] is held.value
