"""Memory that is used again: results are new arrays that own their data, whatever is done to them."""

import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.machine import memory
from pullback.tracer.spec import Spec

LARGE = 40_000  # of float64: 320 kB, above what is kept
FLOAT64 = np.dtype("float64")


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    memory.release()
    yield
    memory.release()


@pytest.fixture(scope="module")
def doubled() -> Callable[..., Any]:
    return pb.compile(lambda x: x * 2.0)


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_a_block_that_is_dropped_is_used_again() -> None:
    allocate = memory.allocator(Spec((LARGE,), FLOAT64))
    first = allocate()
    place = address(first)
    assert address(allocate()) != place
    assert memory.kept_bytes() == 8 * LARGE
    del first
    assert memory.kept_bytes() == 2 * 8 * LARGE
    again = allocate()
    assert address(again) == place
    assert memory.kept_bytes() == 8 * LARGE


def test_any_shape_and_dtype_of_the_size_uses_it() -> None:
    place = address(memory.allocator(Spec((LARGE,), FLOAT64))())
    assert address(memory.allocator(Spec((2, LARGE), np.dtype("float32")))()) == place


@pytest.mark.parametrize("shape", [(LARGE,), (10,)])
def test_a_result_is_a_new_array_that_owns_its_data(doubled: Callable[..., Any], shape: Any) -> None:
    x = np.ones(shape)
    held = [doubled(x) for _ in range(4)]
    for one in held:
        assert type(one) is np.ndarray and one.base is None
        assert one.flags.owndata and one.flags.writeable and one.flags.carray
        assert sys.getrefcount(one) == 3
    assert len({address(one) for one in held}) == 4


def resize(y: np.ndarray) -> None:
    y.resize(10, refcheck=False)


def retype(y: np.ndarray) -> None:
    y.dtype = np.dtype("int32")


def reshape(y: np.ndarray) -> None:
    y.resize((200, 200))


def stride(y: np.ndarray) -> None:
    y[...] = np.lib.stride_tricks.as_strided(y, y.shape, (0,))


def lock(y: np.ndarray) -> None:
    y.flags.writeable = False


def restate(y: np.ndarray) -> None:
    y.__setstate__(np.arange(5).__reduce__()[2])


@pytest.mark.parametrize("change", [resize, retype, reshape, stride, lock, restate])
def test_what_is_done_to_a_result_is_nothing_to_the_next(
    doubled: Callable[..., Any], change: Callable[[np.ndarray], None]
) -> None:
    x = np.arange(float(LARGE))
    y = doubled(x)
    change(y)
    del y
    for _ in range(3):
        z = doubled(x)
        assert z.shape == (LARGE,) and z.dtype == FLOAT64 and z.flags.carray
        np.testing.assert_array_equal(z, 2.0 * x)


def test_weak_references_die_with_their_result(doubled: Callable[..., Any]) -> None:
    x = np.ones(LARGE)
    y, ends = doubled(x), []
    reference = weakref.ref(y, ends.append)
    del y
    assert reference() is None and ends == [reference]
    assert doubled(x) is not None and reference() is None


HOLDERS: dict[str, Callable[[np.ndarray], Any]] = {
    "view": lambda y: y[10:20],
    "retyped view": lambda y: y.view("int64").reshape(200, 200)[3],
    "memoryview": memoryview,
    "ctypes": lambda y: y.ctypes.data_as(np.ctypeslib.ctypes.POINTER(np.ctypeslib.ctypes.c_double)),
    "iterator": lambda y: y.flat,
    "tensor": lambda y: pb.tensor(y[:3]),
    "dlpack": np.from_dlpack,
}


@pytest.mark.drawn(6)
@pytest.mark.parametrize("holder", HOLDERS)
def test_a_block_is_held_by_all_that_show_it(doubled: Callable[..., Any], holder: str) -> None:
    x = np.ones(LARGE)
    shown = HOLDERS[holder](doubled(x))
    before = np.array(shown[0:3], float) if hasattr(shown, "__getitem__") else None
    others = [doubled(x * 7.0) for _ in range(3)]
    if before is not None:
        np.testing.assert_array_equal(np.array(shown[0:3], float), before)
    del shown, others
    gc.collect()
    assert memory.kept_bytes() >= 3 * 8 * LARGE


def test_one_limit_for_all_that_is_kept() -> None:
    limit = memory.set_most_kept(20_000_000)
    try:
        for count in range(100):
            memory.allocator(Spec((LARGE + 8 * count,), FLOAT64))()
            assert memory.kept_bytes() <= 20_000_000
        assert memory.kept_bytes() > 19_000_000
        newest = memory.allocator(Spec((LARGE + 8 * 99,), FLOAT64))
        before = memory.kept_bytes()
        array = newest()
        assert memory.kept_bytes() == before - array.nbytes, "the oldest went, not the newest"
        memory.set_most_kept(1_000_000)
        assert memory.kept_bytes() <= 1_000_000
        memory.set_most_kept(0)
        del array
        assert memory.kept_bytes() == 0
    finally:
        assert memory.set_most_kept(limit) == 0
    assert limit == memory.MOST_KEPT


def test_so_many_blocks_at_most() -> None:
    held = [memory.allocator(Spec((1 << 14,), FLOAT64))() for _ in range(memory.MOST_BLOCKS + 10)]
    del held
    assert memory.kept_bytes() == memory.MOST_BLOCKS << 17


def test_arrays_of_others_are_not_ours(doubled: Callable[..., Any]) -> None:
    doubled(np.ones(LARGE))
    before = memory.kept_bytes()
    np.ones(LARGE)
    doubled(np.ones(LARGE))
    np.empty(LARGE)
    assert memory.kept_bytes() == before


def test_outputs_of_another_shape_than_what_is_stored_own_their_data() -> None:
    def shapes(x: np.ndarray) -> Any:
        y = x * 2.0
        return y.reshape(-1), y, y[None], x.reshape(-1), x.sum(keepdims=True)

    for size in (10, 200):
        x = np.random.default_rng(0).standard_normal((size, size))
        found = pb.compile(shapes)(x)
        for one, wanted in zip(found, shapes(x)):
            np.testing.assert_allclose(one, wanted, rtol=1e-12)
            assert one.flags.owndata and one.base is None
        assert not any(np.shares_memory(one, x) for one in found)


def test_threads_have_blocks_of_their_own(doubled: Callable[..., Any]) -> None:
    wrong = []

    def work(number: float) -> None:
        x = np.full(LARGE, number)
        for _ in range(200):
            y = doubled(x)
            if not (y == 2.0 * number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(float(number),)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong
    assert memory.kept_bytes() <= 8 * 8 * LARGE


def test_scratch_serves_one_call_at_a_time_and_results_are_new() -> None:
    specs = [Spec((3,), FLOAT64), Spec((4,), FLOAT64), Spec((LARGE,), FLOAT64)]
    scratch = memory.Scratch(specs, [memory.allocator(one) for one in specs], {1})
    first, other = scratch.take(), scratch.take()
    assert not any(one is another for one, another in zip(first, other))
    kept, result, large = first
    scratch.give_back(first)
    again = scratch.take()
    assert again[0] is kept
    assert again[1] is not result
    assert again[2] is not large


def test_new_memory_may_be_poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `pytest --poison` does: a result that nobody wrote is nan."""
    monkeypatch.setattr(memory, "POISONED", True)
    for shape in ((), (3, 2), (LARGE,)):
        assert np.isnan(memory.allocator(Spec(shape, FLOAT64))()).all()
        assert (memory.allocator(Spec(shape, np.dtype("int32")))() == -1).all()
