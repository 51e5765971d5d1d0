"""Plain values that a compiled function changes where it reaches them; what a refused one leaves behind."""

import collections
import time
import types
import warnings
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import LeakedTraceError, MutationError, PullbackError
from pullback.runtime.captures.state import Counted, Updates

X = np.arange(1.0, 4.0)
count = 0


class Problem:
    evaluations = 0

    def __init__(self) -> None:
        self.nfev = 0
        self.weight = np.ones(3)
        self.time = 0.5
        self.stats = {"calls": 0}
        self.converged = False

    def value(self, x: Any) -> Any:
        self.nfev += 1
        self.evaluations += 1
        self.time += 0.25
        self.stats["calls"] += 2
        self.converged = True
        return (self.weight * x).sum()


@pytest.mark.parametrize(
    "transform",
    [pb.compile, lambda f: pb.grad(pb.compile(f)), lambda f: pb.compile(pb.value_and_grad(f))],
)
def test_counters_count_every_call(transform: Any) -> None:
    problem = Problem()
    function = transform(problem.value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            function(X)
        traces = function.cache_info().traces
        for _ in range(3):
            function(X)
    assert function.cache_info().traces == traces
    assert (problem.nfev, problem.evaluations, problem.time) == (5, 5, 1.75)
    assert problem.stats == {"calls": 10} and problem.converged is True
    assert (type(problem.nfev), type(problem.time)) == (int, float)
    assert Problem.evaluations == 0
    problem.nfev = 100
    function(X)
    assert problem.nfev == 101


def test_variables_count_in_helpers_too() -> None:
    calls = 0

    def tick() -> None:
        global count
        nonlocal calls
        count += 1
        calls += 1

    @pb.compile
    def counted(x: Any) -> Any:
        global count
        tick()
        count += 1
        tick()
        return x * 2

    before = count
    for _ in range(4):
        np.testing.assert_allclose(counted(X), X * 2)
    assert count == before + 12 and calls == 8


def test_a_comparison_is_a_guard() -> None:
    calls = 0

    @pb.compile
    def warming_up(x: Any) -> Any:
        nonlocal calls
        calls += 1
        return x * 2 if calls <= 3 else x * 3

    np.testing.assert_allclose([warming_up(X)[0] for _ in range(6)], [2, 2, 2, 3, 3, 3])
    assert calls == 6 and warming_up.cache_info().size == 2


def test_what_computes_with_it_runs_uncompiled() -> None:
    problem = Problem()

    def scaled(x: Any) -> Any:
        problem.nfev += 1
        return (problem.weight * x * problem.nfev).sum()

    with pytest.warns(UserWarning, match="runs uncompiled: a number that the function.*test_state.py"):
        compiled = pb.compile(scaled)
        found = [compiled(X) for _ in range(3)]
    np.testing.assert_allclose(found, [6, 12, 18])
    assert problem.nfev == 3 and type(problem.nfev) is int


def test_a_set_that_a_refused_trace_has_changed_is_as_it_was() -> None:
    seen: set[int] = set()
    problem = Problem()

    def scaled(x: Any) -> Any:
        problem.nfev += 1
        seen.add(len(seen))
        return (x * problem.nfev * len(seen)).sum()

    with pytest.raises(MutationError, match="scaled reads seen, which it changes"):
        pb.compile(scaled)(X)
    assert seen == set() and problem.nfev == 0


def test_only_the_path_that_is_right_counts() -> None:
    counts = {"positive": 0, "negative": 0}

    @pb.compile
    def branching(x: Any) -> Any:
        if x.sum() > 0:
            counts["positive"] += 1
            return x * 2
        counts["negative"] += 1
        return x * 3

    for sign in (1, -1, 1, 1, -1, -1, -1):
        branching(X * sign)
    assert counts == {"positive": 3, "negative": 4}


class Shared:
    calls = 0


class Slotted:
    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0


def test_numbers_of_classes_modules_lists_and_slots() -> None:
    module: Any = types.ModuleType("module")
    module.calls = 0
    rows, table, slotted = [0, 5], {"a": {"b": 0}}, Slotted()
    turns = collections.deque([0.0])

    @pb.compile
    def counted(x: Any) -> Any:
        Shared.calls += 1
        module.calls += 1
        rows[1] += 1
        table["a"]["b"] -= 1
        slotted.calls = slotted.calls + 1
        turns[0] += 1
        return x * 2

    for _ in range(4):
        counted(X)
    assert counted.cache_info().traces <= 2
    assert (Shared.calls, module.calls, rows, table) == (4, 4, [0, 9], {"a": {"b": -4}})
    assert slotted.calls == 4 and turns[0] == 4.0


def test_numbers_change_places() -> None:
    box = types.SimpleNamespace(a=0, b=10)

    @pb.compile
    def swapping(x: Any) -> Any:
        box.a, box.b = box.b, box.a + 1
        return x * 2

    for _ in range(3):
        swapping(X)
    assert (box.a, box.b) == (11, 2)


def test_keys_that_the_first_call_makes() -> None:
    counts: dict[str, int] = collections.defaultdict(int)
    words: collections.Counter[str] = collections.Counter()

    @pb.compile
    def counted(x: Any) -> Any:
        counts["calls"] += 1
        words["a"] += 2
        return x * 2

    for _ in range(4):
        counted(X)
    assert counts == {"calls": 4} and words == {"a": 8}


def test_a_class_that_counts() -> None:
    class Model:
        calls = 0

        def __init__(self) -> None:
            self.weight = np.ones(3)

        @classmethod
        def tick(cls) -> None:
            cls.calls += 1

        def loss(self, x: Any) -> Any:
            self.tick()
            return (self.weight * x).sum()

    loss = pb.compile(Model().loss)
    assert [loss(X) for _ in range(4)] == [6.0] * 4
    assert Model.calls == 4 and loss.cache_info().size == 1


def test_a_flag_and_a_text_are_set() -> None:
    class Solver:
        status = "new"
        best: Any = None
        done = False

    solver = Solver()

    @pb.compile
    def solved(x: Any) -> Any:
        first = solver.best is None
        solver.best = float(x.sum())
        solver.status = "ran"
        solver.done = True
        return x * (2 if first else 3)

    np.testing.assert_allclose([solved(X)[0] for _ in range(3)], [2, 3, 3])
    solved(X * 2)
    assert (solver.best, solver.status, solver.done) == (12.0, "ran", True)


def test_an_attribute_that_the_first_call_makes() -> None:
    class Lazy:
        pass

    lazy: Any = Lazy()

    @pb.compile
    def counted(x: Any) -> Any:
        if not hasattr(lazy, "calls"):
            lazy.calls = 0
        lazy.calls += 1
        return x * 2

    for _ in range(4):
        counted(X)
    assert lazy.calls == 4


def test_an_error_counts_nothing() -> None:
    problem = Problem()

    @pb.compile
    def failing(x: Any) -> Any:
        problem.nfev += 1
        return pb.zeros(3) @ x[:2]

    with pytest.raises(PullbackError):
        failing(X)
    assert problem.nfev == 0 and type(problem.nfev) is int


def test_numbers_that_are_counted() -> None:
    number: Any = Counted.of(3)
    later = number + 1 - 2 + 5
    assert repr(later) == "7" and f"{later:03d}" == "007" and isinstance(later, int)
    assert later.text == "({} + 4)" and later > 6 and later != 8
    updates = Updates([(".n", number, later)], 0)

    class Owner:
        n = 3

    owner = Owner()
    assert updates.holds((owner, 3)) and not updates.holds((owner, 1))
    updates.write((owner, 3))
    assert owner.n == 7


# --- what a refused function leaves behind ------------------------------------------------------------------


def test_nothing_of_a_refused_trace_stays() -> None:
    class Kept:
        value: Any = None

    kept: Any = Kept()
    rows: list[Any] = [1.0]
    options: dict[str, Any] = {"a": 1.0}
    latest: Any = None

    def stores(x: Any) -> Any:
        nonlocal latest
        kept.value = x * 2
        kept.other = x
        rows.append(x)
        options["b"] = x
        latest = x
        return x

    with pytest.raises((MutationError, LeakedTraceError)):
        pb.compile(stores)(X)
    assert kept.__dict__ == {} and rows == [1.0] and options == {"a": 1.0} and latest is None


def test_nothing_stays_of_a_function_that_fails() -> None:
    kept: dict[str, Any] = {}
    rows: list[Any] = []

    def fails(x: Any) -> Any:
        kept["x"] = x
        rows.append(x * 2)
        raise KeyError("mine")

    with pytest.raises(KeyError):
        pb.compile(fails)(X)
    assert kept == {} and rows == []


def test_a_variable_that_was_not_there_goes_again() -> None:
    def stores(x: Any) -> Any:
        global not_there
        not_there = x * 2
        return x

    with pytest.raises(LeakedTraceError):
        pb.compile(stores)(X)
    assert "not_there" not in globals()


def test_what_an_uncompiled_function_stores_is_stored() -> None:
    class Kept:
        value: Any = None

    kept, weight, rows = Kept(), np.ones(3), [0]

    def stores(x: Any) -> Any:
        rows[0] += 1
        time.perf_counter()
        kept.value = np.random.rand() * weight  # noqa: NPY002
        rows.append(2)
        return (weight * x).sum()

    with pytest.warns(UserWarning, match="runs uncompiled"):
        pb.compile(stores)(X)
    assert rows == [1, 2] and type(kept.value) is np.ndarray


def test_a_counter_that_is_an_attribute_of_the_function() -> None:
    def counted(x: Any) -> Any:
        counted.calls = getattr(counted, "calls", 0) + 1  # type: ignore[attr-defined]
        return x * 2

    function = pb.compile(counted)
    for calls in (1, 2, 3):
        np.testing.assert_allclose(function(X), 2 * X)
        assert vars(counted)["calls"] == calls


def test_a_counted_number_that_is_written_into_an_array() -> None:
    count = 0

    def written(x: Any) -> Any:
        nonlocal count
        count += 1
        y = x.copy()
        y[0] = count
        return y

    compiled = pb.compile(written)
    with pytest.warns(UserWarning, match="runs uncompiled: a number that the function.*test_state.py"):
        assert compiled(X)[0] == 1.0
    assert compiled(X)[0] == 2.0 and count == 2
