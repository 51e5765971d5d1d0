"""Loops whose iterations threads share, and large outputs that are used again."""

import os
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.cost.machine import LEAST_HAND_OVER, MOST_HAND_OVER, REFERENCE, assuming
from pullback.codegen.machine import waking, workers
from pullback.codegen.machine.workers import PATIENCE


def row_softmax(x):
    return pb.log_softmax(x, dim=1).sum(dim=0) * x.amax(dim=0)


def total(x, w):
    return (pb.tanh(x * w) * pb.exp(-x * x)).sum()


def column_product(x, w):
    return (x * w).prod(dim=0) + x.amin(dim=0)


def normalised(x, w):
    return ((x - x.mean()) / (x.std() + 1.0) * w).sum(dim=1)


def picked(x, index):
    return (pb.exp(x)[index] * 2.0).sum(dim=0)


@pytest.fixture
def two_threads():
    before = pb.get_num_threads()
    pb.set_num_threads(2)
    yield
    pb.set_num_threads(before)


RNG = np.random.default_rng(0)
MATRIX, WEIGHT = RNG.uniform(0.5, 1.5, (37, 11)), RNG.uniform(0.5, 1.5, (37, 11))
INDEX = RNG.integers(0, 37, 50)


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (row_softmax, (MATRIX,)),
        (total, (MATRIX, WEIGHT)),
        (column_product, (MATRIX, WEIGHT)),
        (normalised, (MATRIX, WEIGHT)),
        (picked, (MATRIX, INDEX)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_threads_change_nothing_but_rounding(function, arguments, two_threads) -> None:
    floats = tuple(i for i, argument in enumerate(arguments) if argument.dtype.kind == "f")

    def summed(*arguments):
        return function(*arguments).sum()

    def run(parallel: bool):
        compiled = pb.compile(summed, parallel=parallel)
        return pb.value_and_grad(compiled, argnums=floats)(*arguments)

    (serial, serial_gradients), (shared, shared_gradients) = run(False), run(True)
    np.testing.assert_allclose(shared, serial, rtol=1e-12)
    for one, other in zip(shared_gradients, serial_gradients):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_shared_loops_are_functions_of_start_and_stop() -> None:
    source = pb.compile(total, parallel=True).forward_source(MATRIX, WEIGHT)
    assert "start, stop):" in source
    assert "start, stop" not in pb.compile(total, parallel=False).forward_source(MATRIX, WEIGHT)


def test_sums_are_the_same_in_every_run(two_threads) -> None:
    compiled = pb.compile(total, parallel=True)
    assert len({float(compiled(MATRIX, WEIGHT)) for _ in range(20)}) == 1


def test_an_error_in_a_thread_reaches_the_caller(two_threads) -> None:
    compiled = pb.compile(picked, parallel=True)
    wrong = np.append(INDEX, 99)
    with pytest.raises(pb.errors.DimensionError, match="picked: an index array holds a position"):
        compiled(MATRIX, wrong)
    np.testing.assert_allclose(compiled(MATRIX, INDEX), (np.exp(MATRIX)[INDEX] * 2.0).sum(axis=0))


def test_set_num_threads_refuses_less_than_one() -> None:
    with pytest.raises(ValueError, match="at least 1 expected, found 0"):
        pb.set_num_threads(0)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "int64", "bool"])
def test_totals_of_parts_are_combined_as_numpy_does(dtype, two_threads) -> None:
    x = (RNG.uniform(-1, 1, (40, 3)) * 3).astype(dtype)
    if x.dtype.kind == "f":
        x[30, 1], x[2, 2] = np.nan, np.inf
    for reduction in (np.max, np.min, np.all, np.any, np.sum, np.prod):
        with np.errstate(invalid="ignore"):
            expected = reduction(x, axis=0)
        found = pb.compile(lambda x: reduction(x, axis=0), parallel=True)(x)  # noqa: B023
        np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("number", [1, 3, 40])
def test_any_number_of_threads_computes_the_same(number, two_threads) -> None:
    pb.set_num_threads(number)
    found = pb.compile(row_softmax, parallel=True)(MATRIX)
    np.testing.assert_allclose(found, pb.compile(row_softmax, parallel=False)(MATRIX), rtol=1e-12)


def test_workers_that_sleep_are_woken(two_threads) -> None:
    """Calls so far apart that workers have lain down, and so close that they have not."""
    compiled, expected = pb.compile(total, parallel=True), total(MATRIX, WEIGHT)
    for pause in (0.0, 2 * PATIENCE, 50 * PATIENCE, 0.0) * 5:
        time.sleep(pause)
        np.testing.assert_allclose(compiled(MATRIX, WEIGHT), expected, rtol=1e-12)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="not on this system")
def test_a_single_processor_is_enough(two_threads) -> None:
    """Workers cannot keep away from the caller's."""
    allowed, compiled = os.sched_getaffinity(0), pb.compile(total, parallel=True)
    expected = total(MATRIX, WEIGHT)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        for _ in range(200):
            np.testing.assert_allclose(compiled(MATRIX, WEIGHT), expected, rtol=1e-12)
    finally:
        os.sched_setaffinity(0, allowed)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_its_own_workers(two_threads) -> None:
    compiled, expected = pb.compile(total, parallel=True), total(MATRIX, WEIGHT)
    np.testing.assert_allclose(compiled(MATRIX, WEIGHT), expected)
    child = os.fork()
    if child == 0:
        same = all(np.allclose(compiled(MATRIX, WEIGHT), expected) for _ in range(100))
        os._exit(0 if same and workers.number() == 1 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# --- stages ------------------------------------------------------------------------------------------------


def layers(x, first, second):
    hidden = pb.relu(x @ first)
    return (pb.tanh(hidden @ second) ** 2).sum()


def squares(x):
    factor = pb.exp(x @ x)
    return pb.tanh(factor.T @ factor) * factor


def turned(x):
    return (pb.cumsum(pb.cat([x[3:], x[:3]]) * 0.9, dim=1) ** 2).sum()


def test_layers_and_what_follows_them_are_one_function_over_rows() -> None:
    x, first, second = (RNG.standard_normal(shape) for shape in ((60, 20), (20, 30), (30, 25)))
    compiled = pb.compile(pb.value_and_grad(layers, argnums=(1, 2)), parallel=True)
    functions = compiled.source(x, first, second).split("\ndef ")[1:]
    products = [function.count("gemm(") for function in functions if "start:stop" in function]
    assert products == [3, 1, 1]  # forward and backward through the layers; then the gradient of each
    assert functions[0].count("in range(start, stop)") >= 2


def test_loops_have_more_parts_than_threads_and_products_have_not() -> None:
    given = []
    for function in (total, lambda x, w: x @ w.T):
        (account,) = pb.compile(function, parallel=True).explain(MATRIX, WEIGHT, as_data=True).forward
        functions = [one for one in account.functions if one.is_shared]
        given += [(one.parts_per_thread, "gemm" in one.called) for one in functions]
    assert given == [(4, False), (1, True)]


@pytest.mark.drawn(6)
def test_functions_of_a_stage_give_what_serial_loops_do(two_threads) -> None:
    x = RNG.standard_normal((40, 40)) / 7.0
    for function in (lambda x: layers(x, x, x), turned):
        found, expected = (pb.value_and_grad(pb.compile(function, parallel=one))(x) for one in (True, False))
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-10, atol=1e-12)


@pytest.mark.drawn(4)
def test_no_part_overwrites_what_another_still_reads(two_threads) -> None:
    """A product reads all of what the next loop could overwrite row by row: they are different stages."""
    x = RNG.standard_normal((300, 300)) / 20.0
    compiled, expected = pb.compile(squares, parallel=True), pb.compile(squares, parallel=False)(x)
    functions = compiled.forward_source(x).split("\ndef ")[1:]
    assert ["gemm(" in one for one in functions] == [True, True, False]
    for _ in range(5):
        np.testing.assert_allclose(compiled(x), expected, rtol=1e-10)


def test_calls_from_several_threads_do_not_mix(two_threads) -> None:
    compiled = pb.compile(lambda x: pb.exp(x) * 2.0, parallel=True)
    failures: list[int] = []

    def work(value: int) -> None:
        x = np.full(200_000, float(value))
        for _ in range(20):
            if not np.allclose(compiled(x), 2.0 * np.exp(value)):
                failures.append(value)

    workers = [threading.Thread(target=work, args=(value,)) for value in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


# --- large outputs -----------------------------------------------------------------------------------------

LARGE = 300_000  # of float64: above what is worth keeping


def test_a_large_result_that_is_held_stays_as_it_is() -> None:
    compiled = pb.compile(lambda x: x * 2.0)
    x = np.ones(LARGE)
    held = [compiled(x * value) for value in range(5)]
    views = [compiled(x * value)[10:20] for value in range(5)]
    for value in range(5):
        assert (held[value] == 2.0 * value).all()
        assert (views[value] == 2.0 * value).all()


def test_gradients_do_not_share_recycled_memory() -> None:
    compiled = pb.compile(lambda x: (x * x).sum())
    x = pb.full((LARGE,), 3.0, dtype=pb.float64, requires_grad=True)
    compiled(x).backward()
    first = x.grad
    x.grad = None
    compiled(x * 2.0).backward()
    assert (first == 6.0).all()
    assert (x.grad == 24.0).all()


def test_arguments_may_be_called_as_the_bounds_of_a_part():
    def between(start, stop):
        return start + (stop - start) * 0.25

    compiled = pb.compile(between, parallel=True)
    np.testing.assert_allclose(compiled(np.zeros(100), np.ones(100)), np.full(100, 0.25))


@pytest.mark.drawn(4)
@pytest.mark.parametrize("parallel", [True, False])
def test_products_that_are_added_up_over_a_batch(parallel):
    """Each part begins with zeros of its own; a start, and what other loops add, stays out of that."""
    rng = np.random.default_rng(0)
    x, w, start = (rng.standard_normal(shape) for shape in ((6, 64, 600), (64, 64), (60, 64)))

    def loss(x, w):
        return np.sum(np.tanh(w @ x) ** 2) + np.sum(np.tanh(w @ x[:, :, 1:]))

    def gram(x, start):
        return start + np.einsum("nij,nkj->ik", x[:, 4:], x)

    compiled = pb.compile(pb.value_and_grad(loss, argnums=(0, 1)), parallel=parallel)
    for found, wanted in zip(compiled(x, w)[1], pb.grad(loss, argnums=(0, 1))(x, w)):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    found = pb.compile(gram, parallel=parallel)(x, start)
    np.testing.assert_allclose(found, gram(x, start), rtol=1e-11, atol=1e-11)


def test_the_gradient_of_a_kernel_is_made_in_the_loop_over_the_batch():
    """Reads of the batch, the layer, and all gradients: one function that threads share."""

    def layer(x, w):
        return np.sum(np.tanh(w @ x) ** 2)

    arrays = np.ones((6, 64, 600)), np.ones((64, 64))
    source = pb.compile(pb.value_and_grad(layer, argnums=(0, 1)), parallel=True).source(*arrays)
    shared = [part for part in source.split("\ndef ") if "start, stop" in part]
    assert [part.count("gemm(") for part in shared] == [3]


def test_the_machine_measures_once_from_where_threads_pay(monkeypatch, tmp_path):
    monkeypatch.setenv("PULLBACK_CACHE_DIR", str(tmp_path))
    found = waking.hand_over.__wrapped__()
    assert 0 <= found < 1e9
    monkeypatch.setattr(waking, "_seconds_to_wake", lambda: 1e9)
    np.testing.assert_allclose(waking.hand_over.__wrapped__(), found, rtol=0.05)  # as the cache has it


@pytest.mark.parametrize("cores, hand_over, expected", [
    (2, 50_000.0, 50_000.0), (2, 0.0, LEAST_HAND_OVER), (2, 1e9, MOST_HAND_OVER), (1, 0.0, MOST_HAND_OVER),
])  # fmt: skip
def test_work_is_shared_from_the_time_on_that_a_thread_takes_to_begin(cores, hand_over, expected):
    machine = replace(REFERENCE, cores=cores, hand_over=hand_over)
    assert machine.is_worth_sharing(1.01 * expected) and not machine.is_worth_sharing(0.99 * expected)


@pytest.mark.parametrize("hand_over, shared", [(0.0, True), (1e9, False)])
def test_what_the_machine_measured_decides(hand_over, shared):
    with assuming(replace(REFERENCE, hand_over=hand_over)):
        source = pb.compile(lambda x: np.exp(x) + 1).forward_source(np.ones((100, 700)))
    assert ("start, stop" in source) == shared
