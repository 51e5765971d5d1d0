"""Compiled Python that asks for values: each way through a function is a path, found again by its guards."""

import math
import re
import threading
import warnings
from typing import Any

import numpy as np
import pytest
from asking_programs import INPUTS, X, agree, as_float, asserted, branch, gradient, loop, no_warning

import pullback as pb
from pullback.runtime.tracing.guards import Deviated, Guards
from pullback.tracer.errors import ArgumentError, DimensionError, GradientError, TraceError
from pullback.tracer.graph import make_input
from pullback.tracer.origin import UNKNOWN
from pullback.tracer.spec import spec_of
from pullback.tracer.trace import Guard

pytestmark = pytest.mark.usefixtures("partly_compiled")

# --- paths --------------------------------------------------------------------------------------------------


def test_a_known_path_is_not_traced_again() -> None:
    compiled = pb.compile(branch)
    for array in (X, -X, X * 2, -X * 2, X, -X):
        np.testing.assert_allclose(compiled(array), gradient(branch, array)[0])
    info = compiled.cache_info()
    assert (info.traces, info.size, info.misses, info.hits) == (2, 2, 2, 4)


@pytest.mark.drawn(4)
def test_a_loop_is_traced_once_for_all_trip_counts() -> None:
    def doubled(x: Any) -> Any:
        y = x * 2
        while y.data.norm() < 1000:
            y = y * 2
        return y

    compiled = pb.compile(doubled)
    rng = np.random.default_rng(0)
    counts = set()
    for _ in range(1000):
        x = pb.tensor(rng.normal(size=3) * 10 ** rng.uniform(-2, 2), requires_grad=True)
        y = compiled(x)
        factor = 2.0
        while np.linalg.norm(x.detach().numpy() * factor) < 1000:
            factor *= 2
        np.testing.assert_array_equal(y.detach().numpy(), x.detach().numpy() * factor)
        y.sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), np.full(3, factor))
        counts.add(factor)
    assert len(counts) > 8 and compiled.cache_info().traces == 1


@pytest.mark.drawn(4)
def test_each_exact_value_is_a_path() -> None:
    compiled = pb.compile(lambda x: x * float(x[0]))
    for number in (1.0, 2.0, 1.0, -0.0, 0.0, math.nan, math.nan, math.inf):
        np.testing.assert_array_equal(compiled(np.array([number, 3.0])), np.array([number, 3.0]) * number)
    assert compiled.cache_info().traces == 6


def test_a_function_without_arrays_as_results() -> None:
    compiled = pb.compile(lambda x: (float(x[0]), bool(x.sum() > 0)))
    only = pb.compile(lambda x: int(x.argmax()))
    for array in (X, -X, X, np.ones(3)):
        assert compiled(array)[0] == array[0]
        assert only(array) == only(pb.tensor(array, requires_grad=True)) == array.argmax()


def test_int_asks_for_the_whole_part() -> None:
    compiled = pb.compile(lambda x: x[: int(x[0])] * 2)
    for number in (2.0, 2.25, 2.75, 1.5):
        np.testing.assert_array_equal(compiled(np.array([number, 1.0, 3.0])).shape, (int(number),))
    assert compiled.cache_info().traces == 2


def test_a_mask_asks_for_the_number_of_elements() -> None:
    compiled = pb.compile(lambda x: x[x > 0] * 2)
    for array in (X, X[::-1].copy(), -X, np.abs(X)):
        np.testing.assert_array_equal(compiled(array), array[array > 0] * 2)
    assert compiled.cache_info().traces == 3


def test_what_is_the_same_in_all_calls_is_no_guard() -> None:
    def function(x: Any) -> Any:
        steps = pb.arange(3)
        assert steps.sum() == 3 and bool(x.shape[0]) and len(x)
        return x * int(steps[1])

    compiled = pb.compile(function)
    np.testing.assert_array_equal(compiled(X), X)
    assert "path" not in compiled.explain(X)


def test_a_question_is_asked_once() -> None:
    def function(x: Any) -> Any:
        positive = x.sum() > 0
        return (x if positive else -x) * (2 if positive else 3)

    compiled = pb.compile(function)
    assert len(compiled.graph(X).outputs) == 2 and compiled.graph(X).outputs[-1].shape == ()


def test_questions_of_several_kinds() -> None:
    compiled = pb.compile(lambda x: x[: int(x[0])] * float(x[1]) if x.sum() > 0 else x)
    for numbers in ((1, 2, 3), (2, 2, 3), (2, 5, 3), (2, 5, -9), (1, 2, 3)):
        x = np.array(numbers, float)
        expected = x[: numbers[0]] * x[1] if sum(numbers) > 0 else x
        np.testing.assert_array_equal(compiled(x), expected)
    assert compiled.cache_info().traces == 4


def test_a_sum_in_another_order_is_the_same_path() -> None:
    compiled = pb.compile(lambda x: x * float(x.sum()))
    for seed in range(3):
        compiled.forward_source(np.random.default_rng(seed).normal(size=5001))
    for _ in range(2):
        for seed in range(4):
            x = np.random.default_rng(seed).normal(size=5001)
            np.testing.assert_allclose(compiled(x), x * x.sum(), rtol=1e-10)
    assert compiled.cache_info().traces == 4


def test_the_trace_decides_truths_and_the_code_the_bits_of_floats() -> None:
    truth, number = make_input(spec_of(np.array(True)), "truth"), make_input(spec_of(X[0]), "number")
    asked = [Guard(truth, np.array(True), "bool", UNKNOWN), Guard(number, X[0:1], "float()", UNKNOWN)]
    guards = Guards(asked)
    right, near = np.array([True]), np.nextafter(X[0:1], 1)
    guards.expected = None
    guards.check([~right, near])
    guards.check([right, near])
    for found, position in (([~right, near], 0), ([right, X[0:1]], 1), ([~right, X[0:1]], 0)):
        with pytest.raises(Deviated) as caught:
            guards.check(found)
        assert caught.value.position == position


@pytest.mark.machine_code
@pytest.mark.drawn(6)
def test_a_long_loop_is_rolled_with_its_guards() -> None:
    def descend(x: Any, a: Any) -> Any:
        while (x * x).sum() > 1e-6:
            x = x - 0.05 * (a @ x)
        return (x * x).sum() * 1e6

    matrix = np.eye(3) + 0.1
    compiled = pb.compile(descend)
    slope = pb.value_and_grad(compiled)
    for scale in (1.0, 2.0, 4.0, 1.0):
        agree(descend, X * scale, matrix, compiled=compiled)
        slope(X * scale, matrix)
    for one in (compiled, slope):
        info = one.cache_info()
        assert len(one.graph(X, matrix).nodes) < 60 and len(one.source(X, matrix).splitlines()) < 300
        assert info.traces <= 2 and info.compilations + info.disk_hits <= 3, "with and without a gradient"


# --- wrong guesses have no effect ---------------------------------------------------------------------------


def test_an_error_in_a_wrong_path_stays_there() -> None:
    @pb.compile
    def picked(x: Any, place: Any) -> Any:
        return x[place] if place < 3 else x.sum()

    for _ in range(3):
        assert picked(X, np.int64(1)) == X[1]
        assert picked(X, np.int64(5)) == X.sum()
    assert picked.cache_info().traces == 2


def test_an_error_of_the_right_path_is_raised_every_time() -> None:
    @pb.compile
    def picked(x: Any, place: Any) -> Any:
        return x[place] if place > 0 else x.sum()

    for _ in range(2):
        assert picked(X, np.int64(1)) == X[1]
        with pytest.raises(DimensionError, match="position that is out of range of x"):
            picked(X, np.int64(5))
        assert picked(X, np.int64(-5)) == X.sum()


def test_a_failing_assertion_is_raised_every_time() -> None:
    compiled = pb.compile(asserted)
    for _ in range(2):
        assert compiled(X) == (X * X).sum()
        with pytest.raises(AssertionError, match="too large") as caught:
            compiled(X * 1e7)
        assert caught.value.__context__ is None
    assert compiled.cache_info().size == 1


@pytest.mark.drawn(4)
def test_random_numbers_are_those_of_the_eager_function() -> None:
    def noisy(x: Any) -> Any:
        pb.rand(2)
        y = x * pb.rand(3, dtype=pb.float64)
        if y.sum() > 0:
            y = y + pb.randn(3, dtype=pb.float64)
            if y[0] > 0.5:
                return y * pb.rand(1, dtype=pb.float64)
        return y

    compiled = pb.compile(noisy)
    pb.manual_seed(3)
    expected = [noisy(pb.tensor(X * sign)).numpy() for sign in (1, -1) * 12]
    pb.manual_seed(3)
    found = []
    for sign in (1, -1) * 12:
        found.append(compiled(X * sign))
        state = pb.get_rng_state()
        compiled.source(X)
        compiled.explain(-X)
        assert pb.get_rng_state() == state
    np.testing.assert_allclose(found, expected)


def test_threads_take_their_own_paths() -> None:
    compiled = pb.compile(loop)
    failures: list[Any] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(60):
            array = rng.normal(size=3) * 2.0 ** rng.integers(0, 5)
            try:
                np.testing.assert_allclose(compiled(array), loop(pb.tensor(array)).numpy())
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert compiled.cache_info().traces == compiled.cache_info().size


def test_code_that_rounds_differently_ends() -> None:
    """NumPy and machine code may disagree in the last bit on which side a value lies."""

    def converged(x: Any) -> Any:
        before, y = x * 0, x
        for _ in range(9):
            if (y - before).abs().max() == 0:
                break
            before, y = y, y - (y * y - 2) / (2 * y)
        return y

    compiled = pb.compile(converged)
    rng = np.random.default_rng(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(30):
            np.testing.assert_allclose(compiled(rng.uniform(1, 2, 5)), np.sqrt(2) * np.ones(5), rtol=1e-15)
    traces = compiled.cache_info().traces
    array = rng.uniform(1, 2, 5)
    for _ in range(20):
        compiled(array)
    assert compiled.cache_info().traces <= traces + 3


# --- with everything else -----------------------------------------------------------------------------------


def test_what_the_function_reaches_may_change() -> None:
    weights, scale = np.array([1.0, 2.0, 3.0]), 2.0

    def function(x: Any) -> Any:
        return (x * weights).sum() * scale if (x * weights).sum() > 0 else weights.sum()

    compiled = pb.compile(function)
    for factor, scale in ((1.0, 2.0), (-1.0, 2.0), (1.0, 3.0), (-1.0, 3.0)):
        weights = factor * np.array([1.0, 2.0, 3.0])
        total = (X * weights).sum()
        np.testing.assert_allclose(compiled(X), total * scale if total > 0 else weights.sum())
    traces = compiled.cache_info().traces
    scale = 2.0
    compiled(X)
    assert traces == 4 and compiled.cache_info().traces == traces


def test_second_derivatives_follow_the_path() -> None:
    def function(x: Any) -> Any:
        return x**3 if x > 0 else x**2

    second = pb.grad(pb.grad(pb.compile(function)))
    assert [float(second(np.float64(one))) for one in (2.0, -2.0, 3.0)] == [12.0, 2.0, 18.0]
    x = pb.tensor(2.0, requires_grad=True)
    (first,) = pb.autograd.grad(pb.compile(function)(x), x, create_graph=True)
    assert pb.autograd.grad(first, x)[0].item() == 12.0


@pytest.mark.drawn(4)
def test_a_gradient_inside_of_a_loop_whose_length_data_decide() -> None:
    def minimum(start: Any, centre: Any) -> Any:
        x, steps = start, 0
        slope = pb.grad(lambda one: ((one - centre) ** 2).sum())
        while (g := slope(x)).norm() > 0.5:
            x, steps = x - 0.1 * g, steps + 1
        return (x * x).sum() + steps

    agree(minimum, X, X * 3)
    agree(pb.compile(minimum), X, X * 3)


@pytest.mark.drawn(6)
def test_a_compiled_function_in_a_compiled_function() -> None:
    inner = pb.compile(branch)

    def outer(x: Any) -> Any:
        return inner(x) * 2 if inner(x) > 0.2 else inner(-x)

    compiled = pb.compile(outer)
    for array in INPUTS:
        agree(outer, array, compiled=compiled)
    assert inner.cache_info().size > 0


@pytest.mark.drawn(4)
def test_methods_and_static_arguments() -> None:
    class Model:
        def __init__(self) -> None:
            self.weights = np.array([1.0, 2.0, 3.0])

        @pb.compile(static_argnames="steps")
        def forward(self, x: Any, steps: int) -> Any:
            y = x * self.weights
            for _ in range(steps):
                y = y * 2 if y.sum() > 0 else y - 1
            return {"y": y, "sign": bool(y.sum() > 0)}

    model = Model()
    for steps in (1, 2):
        found = model.forward(X, steps=steps), model.forward(-X, steps=steps)
        assert [one["sign"] for one in found] == [True, False]
        np.testing.assert_array_equal(found[0]["y"], X * model.weights * 2**steps)


@pytest.mark.drawn(4)
def test_a_vjp_and_a_jacobian_follow_the_path() -> None:
    compiled = pb.compile(lambda x: x * x if x.sum() > 0 else x * 3)
    for array in (X, -X):
        expected = np.diag(2 * array) if array.sum() > 0 else 3 * np.eye(3)
        np.testing.assert_allclose(pb.func.jacrev(compiled)(array), expected)
        np.testing.assert_allclose(pb.func.vjp(compiled, array)[1](np.ones(3))[0], expected.sum(0))


def test_no_value_is_known_of_a_cotangent() -> None:
    def function(x: Any) -> Any:
        y = x * x
        y.register_hook(lambda slope: slope / slope.norm() if slope.norm() > 1 else slope)
        return y

    with pytest.raises(TraceError, match="truth value.*no values yet.*test_guards.py.*pullback.where"):
        pb.compile(function)(pb.tensor(X, requires_grad=True))


def test_questions_without_an_answer() -> None:
    with pytest.raises(ValueError, match="more than one element is ambiguous"):
        pb.compile(lambda x: x if x > 0 else -x)(X)
    with pytest.raises(TypeError, match="0-dimensional arrays can be converted"):
        pb.compile(lambda x: x * float(x))(X)
    with pytest.raises(GradientError, match="detach"):
        pb.compile(lambda x: x * x.numpy())(pb.tensor(X, requires_grad=True))


def test_an_array_of_values_must_not_be_written_to() -> None:
    def function(x: Any) -> Any:
        values = x.numpy()
        values[0] = 7.0
        return x

    with pytest.raises(ValueError, match="read-only"):
        pb.compile(function)(pb.tensor(X))


# --- the bound ----------------------------------------------------------------------------------------------


@pytest.mark.drawn(4)
def test_past_the_bound_calls_run_uncompiled_with_one_warning() -> None:
    @pb.compile(max_paths=3)
    def function(x: Any) -> Any:
        return (x * int(x[0])).sum()

    with no_warning():
        for number in (1.0, 2.0, 3.0):
            agree(function.__wrapped__, np.array([number, 1.0]), compiled=pb.compile(function, max_paths=9))
            function(np.array([number, 1.0]))
    asked = r"(?s)max_paths=3.*test_guards.py:\d+.*int\(x\[0\]\).*while_loop"
    with pytest.warns(UserWarning, match=asked) as caught:
        assert function(np.array([4.0, 1.0])) == 20.0
    assert caught[0].filename == __file__
    with no_warning():
        assert function(np.array([5.0, 1.0])) == 30.0
        assert function(np.array([2.0, 1.0])) == 6.0
    assert function.cache_info().traces == 3
    found = function(np.array([6.0, 1.0]))
    assert type(found) is np.float64 and found == 42.0


def test_the_warning_about_exact_values_says_what_to_compare() -> None:
    compiled = pb.compile(lambda x: x if x.sum().item() > 1 else -x, max_paths=1)
    compiled(X)
    with pytest.warns(UserWarning, match=r"compare tensors, not numbers \(`t > 1`"):
        compiled(X * 2)


def test_the_bound_must_be_a_number() -> None:
    for wrong in (0, -1, 2.0, None):
        with pytest.raises(ArgumentError, match="max_paths must be an integer from 1 on"):
            pb.compile(branch, max_paths=wrong)


@pytest.mark.drawn(4)
def test_uncompiled_calls_record_and_differentiate() -> None:
    compiled = pb.compile(loop, max_paths=1)
    slope = pb.value_and_grad(compiled)
    compiled(X), slope(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for scale in (1.0, 0.1, 0.01):
            value, found = slope(X * scale)
            expected = gradient(loop, X * scale)
            np.testing.assert_allclose(value, expected[0])
            np.testing.assert_allclose(found, expected[1])
            for one, other in zip(gradient(compiled, X * scale), expected):
                np.testing.assert_allclose(one, other)
            assert type(found) is np.ndarray and type(value) is np.float64


def test_uncompiled_calls_reach_what_compiled_ones_reach() -> None:
    scale = np.array([1.0, 2.0])

    class Model:
        def __init__(self) -> None:
            self.weights = np.array([3.0, 4.0])

        @pb.compile(max_paths=1)
        def size(self, x: Any) -> Any:
            return (x * scale).norm() * (self.weights.norm() if x[0] > 0 else 1.0)

    model = Model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [model.size(np.array([number, 0.0])) for number in (-2.0, 2.0)] == [2.0, 10.0]


def test_uncompiled_results_share_no_memory_with_arguments() -> None:
    compiled = pb.compile(lambda x: x if x[0] > 0 else x[1:], max_paths=1)
    compiled(X)
    array = -X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = compiled(array)
    found[0] = 9.0
    np.testing.assert_array_equal(array, -X)


# --- what it shows ------------------------------------------------------------------------------------------


def test_explain_lists_paths_with_lines_and_calls() -> None:
    compiled = pb.compile(branch)
    for array in (X, X, -X, X):
        compiled(array)
    text = compiled.explain(-X)
    assert "values decide: 2 of at most 64 paths are known" in text
    line = r"asking_programs.py:\d+  return .* if x.sum\(\) > 0 else .*  "
    assert re.search(rf"path of 3 calls\n +{line}True\n", text)
    assert re.search(rf"path of 1 call, that of these arguments\n +{line}False\n", text)
    assert compiled.cache_info().hits == 2


def test_source_shows_the_paths() -> None:
    compiled = pb.compile(branch)
    compiled(X)
    text = compiled.source(-X)
    first, second = text.split("# Another path")
    assert " sin(" in first and re.search(r"#   asking_programs.py:\d+  return .*  False\n", first)
    assert " sin(" not in second and "_backward" in compiled.backward_source(X)
    compile(text, "<source>", "exec")
    assert compiled.source(X * 3).index(" sin(") > len(second)


def test_exact_values_are_explained() -> None:
    text = pb.compile(as_float).explain(X)
    line = r"return \(x \* float\(pb.stop_gradient\(x.sum\(\)\)\)\).sum\(\)"
    assert re.search(line + r"  float\(\) is 1.0\n", text)


def test_side_effects_happen_once_for_each_trace(capsys: pytest.CaptureFixture[str]) -> None:
    @pb.compile
    def function(x: Any) -> Any:
        print("positive" if x.sum() > 0 else "negative")
        return x * 2

    for array in (X, X, -X, -X, X):
        function(array)
    assert capsys.readouterr().out == "positive\nnegative\n"


def test_a_path_that_cannot_be_traced_is_a_miss() -> None:
    log: list[int] = []

    @pb.compile
    def reading(x):
        while x < 100.0:
            log.append(1)
            x = x * 2.0 + len(log)
        return x

    reading(np.float64(200.0))
    for _ in range(2):
        with pytest.raises(pb.errors.MutationError, match="log"):
            reading(np.float64(1.0))
    info = reading.cache_info()
    assert (info.hits, info.misses) == (0, 3)
