"""Loops whose iterations threads share, and large outputs that are used again."""

import threading

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.machine.memory import allocator
from pullback.tracer.spec import Spec


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


def test_a_large_array_that_is_dropped_is_handed_out_again() -> None:
    allocate = allocator(Spec((LARGE,), np.dtype("float64")))
    first = allocate()
    assert allocate() is not first  # it is held
    view = first[5:9]
    place = id(first)
    del first
    assert id(allocate()) != place  # its view is held
    del view
    assert place in {id(allocate()) for _ in range(3)}


def test_gradients_do_not_share_recycled_memory() -> None:
    compiled = pb.compile(lambda x: (x * x).sum())
    x = pb.full((LARGE,), 3.0, dtype=pb.float64, requires_grad=True)
    compiled(x).backward()
    first = x.grad
    x.grad = None
    compiled(x * 2.0).backward()
    assert (first == 6.0).all()
    assert (x.grad == 24.0).all()
