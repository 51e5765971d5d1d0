"""Containers that outlive a call and are changed in it: once for each path, never with what a trace made."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import LeakedTraceError, MutationError, OutputError, TraceError

pytestmark = pytest.mark.usefixtures("partly_compiled")

X = np.arange(1.0, 4.0)


class Recorder:
    def __init__(self) -> None:
        self.shapes: list[Any] = []

    def loss(self, x: Any) -> Any:
        self.shapes.append(x.shape)
        return (x * x).sum()


def test_a_list_is_appended_to_once_for_each_trace() -> None:
    log: list[int] = []

    @pb.compile
    def logged(x: Any) -> Any:
        log.append(len(x))
        return x * 2

    for x in (X, X + 1, X[:2], X):
        np.testing.assert_allclose(logged(x), x * 2)
    assert log == [3, 2]


def test_an_attribute_of_an_object() -> None:
    recorder = Recorder()
    loss = pb.compile(recorder.loss)
    assert [loss(X), loss(X), pb.grad(loss)(X).tolist()] == [14, 14, [2, 4, 6]]
    assert recorder.shapes[0] == (3,) and loss.cache_info().traces == 1


WRITES: dict[str, tuple[Any, Callable[[Any], Any], Any]] = {
    "add to a set": (set(), lambda c: c.add(3), {3}),
    "update a set": ({1}, lambda c: c.update({2}, [3]), {1, 2, 3}),
    "set a key": ({}, lambda c: c.__setitem__("a", (1, 2)), {"a": (1, 2)}),
    "update a dict": ({"b": 1}, lambda c: c.update(a=[1]), {"b": 1, "a": [1]}),
    "extend a list": ([0], lambda c: c.extend([1, 2]), [0, 1, 2]),
    "insert": ([1], lambda c: c.insert(0, "a"), ["a", 1]),
    "clear": ([1], lambda c: c.clear(), []),
    "two writes": ([1], lambda c: (c.append(2), c.extend((3,))), [1, 2, 3]),
    "both ends": (
        collections.deque([1]),
        lambda c: (c.append(2), c.appendleft(0)),
        collections.deque([0, 1, 2]),
    ),
    "an ordered dict": (
        collections.OrderedDict(),
        lambda c: c.__setitem__(3, [1]),
        collections.OrderedDict({3: [1]}),
    ),
}


@pytest.mark.parametrize("write", WRITES)
def test_each_way_to_write(write: str) -> None:
    start, change, expected = WRITES[write]
    container = start.copy()

    @pb.compile
    def writing(x: Any) -> Any:
        change(container)
        return x * 2

    for _ in range(3):
        np.testing.assert_allclose(writing(X), X * 2)
    assert container == expected and type(container) is type(expected)
    assert writing.cache_info().traces == 1


def test_operators_that_write_in_place() -> None:
    class Kept:
        rows = [1]
        seen = {1}

    kept = Kept()

    @pb.compile
    def writing(x: Any) -> Any:
        kept.rows += [2]
        kept.seen |= {2}
        return x * 2

    np.testing.assert_allclose(writing(X), X * 2)
    assert Kept.rows == [1, 2] and Kept.seen == {1, 2}


def test_each_path_writes_once() -> None:
    log: list[str] = []

    @pb.compile
    def branching(x: Any) -> Any:
        if x.sum() > 0:
            return x * 2
        log.append("negative")
        if x.sum() < -10:
            log.append("far")
        return x * 3

    for x in (X, -X, X, -X, -9 * X, -9 * X, -X, X):
        np.testing.assert_allclose(branching(x), x * (2 if x[0] > 0 else 3))
    assert log == ["negative", "negative", "far"]


def test_other_containers_and_arrays_beside_it() -> None:
    log: list[Any] = []
    model = {"weight": np.ones(3), "log": log}

    @pb.compile
    def loss(x: Any) -> Any:
        model["log"].append(("loss", x.shape))
        return (model["weight"] * x).sum()

    assert loss(X) == 6
    model["weight"] = np.full(3, 2.0)
    assert loss(X) == 12 and log == [("loss", (3,))] and model["log"] is log


def test_a_new_container_in_its_place_is_no_reason_to_trace() -> None:
    recorder = Recorder()
    loss = pb.compile(recorder.loss)
    loss(X)
    recorder.shapes = []
    assert loss(X) == 14 and recorder.shapes == [] and loss.cache_info().traces == 1


def test_numbers_of_arguments_that_are_stored_are_constants() -> None:
    log: list[int] = []

    @pb.compile
    def powers(x: Any, n: int) -> Any:
        log.append(n)
        return x * n

    assert [powers(X, n)[0] for n in (2, 3, 2)] == [2, 3, 2]
    assert log == [2, 3] and all(type(one) is int for one in log)


def test_arrays_of_constants_are_stored_as_arrays() -> None:
    log: list[Any] = []

    @pb.compile
    def writing(x: Any) -> Any:
        grid = np.zeros(2)
        grid[0] = 1.0
        log.append(grid)
        return x * 2

    writing(X)
    assert type(log[0]) is np.ndarray and log[0].tolist() == [1, 0]


# --- what is refused ----------------------------------------------------------------------------------

READS: dict[str, Callable[[Any], Any]] = {
    "len": len,
    "truth": bool,
    "an item": lambda c: c[0],
    "iteration": lambda c: sum(c),
    "membership": lambda c: 3 in c,
    "equality": lambda c: c == [1],
    "addition": lambda c: len(c + c),
    "a copy": lambda c: list(c),
    "an array": lambda c: np.asarray(c),
    "a function of C code": lambda c: max(c),
    "text": lambda c: len(str(c)),
    "unpacking": lambda c: [*c],
    "a method": lambda c: c.index(1),
}


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("read", READS)
def test_what_is_written_is_not_read(read: str, is_first: bool) -> None:
    log = [1, 2]

    @pb.compile
    def reading(x: Any) -> Any:
        if is_first:
            READS[read](log)
        log.append(3)
        READS[read](log)
        return x * 2

    with pytest.raises(MutationError, match=r"reading reads log, .*at test_containers.py"):
        reading(X)
    assert log == [1, 2]


def test_a_read_whose_error_the_function_handles_is_refused_as_well() -> None:
    log: list[int] = []

    @pb.compile
    def reading(x: Any) -> Any:
        log.append(3)
        try:
            return x * len(log)
        except Exception:
            return x

    with pytest.raises(MutationError, match="reading reads log"):
        reading(X)
    assert log == []


def test_a_set_that_decides_is_read() -> None:
    seen: set[int] = set()

    @pb.compile
    def first_time(x: Any) -> Any:
        if len(x) in seen:
            return x * 3
        seen.add(len(x))
        return x * 2

    with pytest.raises(MutationError, match="first_time reads seen"):
        first_time(X)
    assert seen == set()


def test_another_path_does_not_read_what_one_has_written() -> None:
    log: list[int] = []

    @pb.compile
    def branching(x: Any) -> Any:
        if x.sum() > 0:
            return x * len(log)
        log.append(1)
        return x

    np.testing.assert_allclose(branching(X), X * 0)
    np.testing.assert_allclose(branching(-X), -X)
    log.clear()  # as it was when the first path was traced
    np.testing.assert_allclose(branching(-X), -X)
    with pytest.raises(MutationError, match="branching reads log"):
        branching(X)


def test_calls_of_another_kind_do_not_read_it_either() -> None:
    log: list[int] = []

    @pb.compile
    def reading(x: Any) -> Any:
        if len(x) == 2:
            return x * len(log)
        log.append(1)
        return x

    np.testing.assert_allclose(reading(X[:2]), X[:2] * 0)
    np.testing.assert_allclose(reading(X), X)
    log.clear()
    with pytest.raises(MutationError, match="reading reads log"):
        reading(X[:2])


STORED: dict[str, Callable[[Any], Any]] = {
    "a number": lambda x: x.sum(),
    "an array": lambda x: x * 2,
    "an argument": lambda x: x,
    "a tuple": lambda x: ("loss", x.sum()),
    "a dict in a list": lambda x: [{"loss": x.sum()}],
    "a closure": lambda x: lambda: x,
    "an object": lambda x: Point(x),
}


class Point:
    def __init__(self, x: Any) -> None:
        self.x = x


@pytest.mark.parametrize("kind", [list, set, dict, collections.deque])
@pytest.mark.parametrize("stored", STORED)
def test_traced_values_are_not_stored(stored: str, kind: Any) -> None:
    container = kind()

    @pb.compile
    def storing(x: Any) -> Any:
        value = STORED[stored](x)
        if isinstance(container, dict):
            container["loss"] = value
        elif isinstance(container, set):
            container.add(value)
        else:
            container.append(value)
        return x * 2

    with pytest.raises((MutationError, LeakedTraceError, TypeError)):
        storing(X)
    assert len(container) == 0


def test_what_becomes_traced_after_it_was_stored() -> None:
    log: list[Any] = []

    @pb.compile
    def storing(x: Any) -> Any:
        row: list[Any] = []
        log.append(row)
        row.append(x.sum())
        return x * 2

    with pytest.raises(MutationError, match="storing changes log while it is traced.*traced value"):
        storing(X)
    assert log == []


def test_a_written_container_is_no_result() -> None:
    log: list[int] = []

    @pb.compile
    def returning(x: Any) -> Any:
        log.append(1)
        return log

    with pytest.raises((MutationError, OutputError)):
        returning(X)
    assert log == []


def test_a_function_that_fails_leaves_containers_as_they_were() -> None:
    log, seen = [1], {1}

    @pb.compile
    def failing(x: Any) -> Any:
        log.append(2)
        seen.add(2)
        raise KeyError("mine")

    with pytest.raises(KeyError):
        failing(X)
    assert log == [1] and seen == {1}


def test_bodies_of_loops_change_no_containers() -> None:
    log: list[int] = []

    @pb.compile
    def looping(x: Any) -> Any:
        def step(index: Any, state: Any) -> Any:
            log.append(1)
            return state * 2

        return pb.fori_loop(0, 3, step, x)

    with pytest.raises((MutationError, TraceError), match="looping changes log.*body"):
        looping(X)
    assert log == []


def test_numbers_that_bodies_of_loops_count() -> None:
    calls = 0

    def looping(x: Any) -> Any:
        def step(index: Any, state: Any) -> Any:
            nonlocal calls
            calls += 1
            return state * 2

        return pb.fori_loop(0, 3, step, x)

    with pytest.warns(UserWarning, match="runs uncompiled"):
        np.testing.assert_allclose(pb.compile(looping)(X), X * 8)
    assert calls == 3


def test_another_function_object_writes_into_its_own() -> None:
    logs: list[list[int]] = [[], []]
    for log in logs:

        def logged(x: Any, log: list[int] = log) -> Any:
            log.append(len(x))
            return x * 2

        pb.compile(lambda x: logged(x))(X)
    assert logs == [[3], [3]]
