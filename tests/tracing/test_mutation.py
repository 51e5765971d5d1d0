"""Arguments that a compiled function writes into: the caller sees it, as of a plain NumPy function."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import MutationError

pytestmark = pytest.mark.usefixtures("partly_compiled")

Array = np.ndarray


def sweep(steps: int, a: Any, b: Any) -> None:
    for _ in range(steps):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3.0
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3.0


def arrays(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal(12), rng.standard_normal(12)


def test_arrays_are_written() -> None:
    compiled = pb.compile(sweep)
    for seed in range(3):
        found, expected = arrays(seed), arrays(seed)
        assert compiled(4, *found) is None
        sweep(4, *expected)
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert compiled.cache_info().traces == 1


@pytest.mark.parametrize(
    "made", [lambda a: np.repeat(a, 2)[::2], lambda a: a[::-1].copy()[::-1], lambda a: a.astype(">f8")]
)
def test_arrays_that_do_not_lie_in_a_row(made: Any) -> None:
    compiled = pb.compile(sweep)
    a, b = arrays()
    expected = arrays()
    sweep(2, *expected)
    found = made(a)
    compiled(2, found, b)
    compiled_again = made(arrays()[0])
    compiled(2, compiled_again, arrays()[1])
    for one in (found, compiled_again):
        np.testing.assert_allclose(one, expected[0], rtol=1e-14)


def test_columns_are_written_in_their_matrix() -> None:
    matrix = np.arange(12.0).reshape(4, 3)
    compiled = pb.compile(lambda column: column.__setitem__(slice(1, None), column[:-1] * 2.0))
    compiled(matrix[:, 1])
    assert matrix[:, 1].tolist() == [1, 2, 8, 14]
    assert matrix[:, 0].tolist() == [0, 3, 6, 9]


def test_nested_arguments_and_results() -> None:
    @pb.compile
    def step(state: dict[str, Any], gradient: Any) -> Any:
        state["velocity"] *= 0.5
        state["velocity"] += gradient
        state["position"] -= state["velocity"]
        return np.sum(state["position"])

    state = {"position": np.ones(3), "velocity": np.full(3, 2.0)}
    assert step(state, np.arange(3.0)) == 3 - 3 - 3
    assert state["velocity"].tolist() == [1, 2, 3]
    assert state["position"].tolist() == [0, -1, -2]


def test_tensors_are_written_and_count_it() -> None:
    @pb.compile
    def normalised(x: Any, weight: Any, mean: Any) -> Any:
        with pb.no_grad():
            mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return ((x - mean) * weight).square().sum()

    def eager(x: Any, weight: Any, mean: Any) -> Any:
        return normalised.__wrapped__(x, weight, mean)

    results = []
    for function in (normalised, eager):
        pb.manual_seed(0)
        x, weight, mean = pb.randn(5, 3), pb.ones(3, requires_grad=True), pb.zeros(3)
        for _ in range(2):
            function(x, weight, mean).backward()
        results.append((mean.numpy(), weight.grad.numpy()))
        assert mean._version > 0
    for found, expected in zip(*results):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_backward_has_what_was_there_before() -> None:
    @pb.compile
    def scaled(x: Any, factor: Any) -> Any:
        result = (x * factor).sum()
        factor *= 2.0
        return result

    x, factor = pb.ones(3, dtype=pb.float64, requires_grad=True), np.full(3, 5.0)
    scaled(x, factor).backward()
    assert factor.tolist() == [10, 10, 10]
    assert x.grad.tolist() == [5, 5, 5]


def test_gradients_with_respect_to_other_arguments() -> None:
    def loss(x: Any, scratch: Any) -> Any:
        scratch[:] = 2.0
        return np.sum(x * x) * np.sum(scratch)

    x, scratch = np.arange(3.0), np.zeros(3)
    value, gradient = pb.value_and_grad(pb.compile(loss))(x, scratch)
    assert (value, gradient.tolist(), scratch.tolist()) == (30.0, [0, 12, 24], [2, 2, 2])


def test_each_path_writes_its_own() -> None:
    @pb.compile
    def clipped(x: Any, out: Any) -> None:
        if x.sum() > 0:
            out[:] = x
        elif x.sum() < -10:
            out[0] = -1.0

    out = np.zeros(2)
    seen = []
    for x in ([1.0, 2], [-20, 0], [-1, 0], [3, 4], [-30, 0]):
        clipped(np.array(x), out)
        seen.append(out.tolist())
    assert seen == [[1, 2], [-1, 2], [-1, 2], [3, 4], [-1, 4]]


def test_paths_that_are_not_compiled_write_as_well() -> None:
    @pb.compile(max_paths=1)
    def clipped(x: Any, out: Any) -> None:
        out[:] = x if x.sum() > 0 else -x

    out = np.zeros((2, 2))
    clipped(np.ones(2), out[:, 0])
    with pytest.warns(UserWarning, match="max_paths"):
        clipped(-np.ones(2), out[:, 1])
    assert out.tolist() == [[1, 1], [1, 1]]


def test_ufuncs_write_into_out() -> None:
    @pb.compile
    def program(a: Any, b: Any, c: Any) -> None:
        np.add(a, b, out=c)
        np.multiply(c, 2.0, out=c)
        c[a > 0] = 0.0

    a, b = arrays()
    program(a, b, c := np.empty(12))
    np.testing.assert_allclose(c, np.where(a > 0, 0, 2 * (a + b)))


def test_threads_write_into_their_own() -> None:
    compiled = pb.compile(sweep)
    compiled(3, *arrays())
    found = [arrays(seed) for seed in range(8)]
    threads = [threading.Thread(target=compiled, args=(3, *pair)) for pair in found]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for seed, pair in enumerate(found):
        expected = arrays(seed)
        sweep(3, *expected)
        np.testing.assert_allclose(pair, expected, rtol=1e-14)


outside = np.zeros(3)


def test_arrays_from_outside() -> None:
    def program(x: Any) -> None:
        outside[:] = x

    pb.compile(program)(np.ones(3))
    assert outside.tolist() == [1, 1, 1]


# --- what is refused --------------------------------------------------------------------------------------


def test_read_only_arrays() -> None:
    a, b = arrays()
    b.flags.writeable = False
    before = a.copy()
    with pytest.raises(MutationError, match=r"sweep writes into its argument 'b', which is a read-only"):
        pb.compile(sweep)(2, a, b)
    np.testing.assert_array_equal(a, before)


def test_arguments_that_share_memory() -> None:
    a, _ = arrays()
    with pytest.raises(MutationError, match="'a', whose memory its argument 'b' shows as well"):
        pb.compile(sweep)(2, a, a)


PARTS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "every other element": lambda x: (x[::2], x[1::2]),
    "columns": lambda x: (x.reshape(4, 4)[:, :2], x.reshape(4, 4)[:, 2:]),
    "triangles": lambda x: (x.reshape(4, 4)[0, 1:], x.reshape(4, 4)[1:, 0]),
    "one backwards": lambda x: (x[14::-2], x[1::2]),
}


@pytest.mark.parametrize("parts", PARTS)
def test_parts_of_one_array_that_take_turns_are_no_conflict(parts: str) -> None:
    def exchange(a: Any, b: Any) -> Any:
        before = a * 2.0
        a[...] = b + 1.0
        b[...] = before
        return before.sum()

    found, expected = np.arange(16.0), np.arange(16.0)
    total = exchange(*PARTS[parts](expected))
    assert pb.compile(exchange)(*PARTS[parts](found)) == total
    np.testing.assert_array_equal(found, expected)


def test_parts_of_one_tensor_that_take_turns_are_no_conflict() -> None:
    x = pb.arange(6.0)
    pb.compile(lambda a, b: a.add_(b))(x[::2], x[1::2])
    assert x.tolist() == [1.0, 1.0, 5.0, 3.0, 9.0, 5.0]


@pytest.mark.parametrize("parts", [lambda x: (x[:4], x[3:7]), lambda x: (x[::2], x[::4][:8])])
def test_parts_with_an_element_in_common(parts: Callable[[Any], Any]) -> None:
    def add(a: Any, b: Any) -> None:
        a[...] = a + b.sum()

    with pytest.raises(MutationError, match="'a', whose memory its argument 'b' shows as well"):
        pb.compile(add)(*parts(np.arange(32.0)))


def test_values_with_a_gradient() -> None:
    with pytest.raises(MutationError, match="value with a gradient into its argument 'out'"):
        pb.compile(lambda x, out: out.copy_(x * 2))(pb.ones(3, requires_grad=True), pb.zeros(3))


def test_leaves_that_require_grad() -> None:
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        pb.compile(lambda x: x.mul_(2.0))(pb.ones(3, requires_grad=True))


@pytest.mark.parametrize("index", [(), ...])
def test_a_number_is_written_as_a_whole(index: Any) -> None:
    x = pb.tensor(3.0)
    x[index] = 2.0
    assert x.item() == 2.0

    def replaced(x: Any) -> Any:
        total = np.array(x.sum())
        total[index] = 2.0
        return total * x.sum()

    for function in (replaced, pb.compile(replaced)):
        value, slope = pb.value_and_grad(function)(np.array([1.0, 3.0]))
        assert (value, *slope) == (8.0, 2.0, 2.0)


def test_dimensions_of_size_1_in_front_of_what_is_written_are_dropped() -> None:
    def filled(x: Any) -> Any:
        y = np.zeros(3)
        y[...] = x
        y[1:] = x[:, :, 1:] * y[1:]
        return (y * y).sum()

    x = np.array([[[1.0, 2.0, 3.0]]])
    for function in (filled, pb.compile(filled)):
        np.testing.assert_allclose(pb.grad(function)(x), [[[2.0, 32.0, 108.0]]])


def test_a_view_that_is_taken_as_an_array_shows_what_was_written() -> None:
    def program(x: Any) -> Any:
        copied = x.copy()
        reversed_one = copied[::-1]
        copied[0] = 9.0
        doubled = np.vectorize(lambda number: 2 * number)(reversed_one)
        return reversed_one.sum() + doubled.sum()

    for x in (np.array([1.5, 0.5]), pb.tensor([1.5, 0.5])):
        assert float(pb.compile(program)(x)) == float(program(x)) == 28.5


@pytest.mark.parametrize("branches", [False, True])
def test_what_does_not_lie_in_a_row_beside_what_the_function_reaches(branches: bool) -> None:
    weight = np.ones(3)

    @pb.compile
    def filled(x: Any) -> None:
        if not branches or x.sum() > 0:
            x[0] = weight.sum()

    matrix = np.ones((3, 2))
    filled(matrix[:, 0])
    filled(matrix[:, 1])
    assert matrix[0].tolist() == [3, 3]


def test_an_array_from_outside_that_shows_an_argument() -> None:
    held = np.zeros(3)

    @pb.compile
    def filled(x: Any) -> Any:
        x[0] = 5.0
        return held.sum()

    assert filled(np.zeros(3)) == 0
    with pytest.raises(MutationError, match="'x', whose memory held shows as well"):
        filled(held)
    assert held.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.add_(1),
        lambda y: y.__setitem__((slice(None), 0), 1.0),
        lambda y: y.__setitem__(0, 1.0),
        lambda y: y[0].zero_(),
    ],
)
def test_expanded_memory_is_not_written(write: Callable[[Any], Any]) -> None:
    def function(x: Any) -> Any:
        y = x.expand(2, 3)
        write(y)
        return y.sum()

    for one in (function, pb.compile(function)):
        x = pb.ones(3)
        line = r"expand\(\) gives.*, at test_mutation.py:\d+ .*Please clone\(\) the tensor"
        with pytest.raises(RuntimeError, match=line):
            one(x)
        assert x.tolist() == [1.0, 1.0, 1.0]


LAYOUTS: list[Callable[[Any], Any]] = [
    np.array,
    np.asfortranarray,
    lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    lambda a: a[::-1].copy()[::-1],
]


@pytest.mark.drawn(4)
@pytest.mark.parametrize("reached", [False, True])
def test_reshapes_are_views_or_copies_as_the_array_lies(reached: bool) -> None:
    """A reshape of what does not lie in order is a copy: what is written into it is not seen."""

    def program(x: Any) -> Any:
        target = held[0] if reached else x
        y = target * 2.0
        target.reshape(2, 6)[1] = 7.0
        target.ravel()[:2] += 1.0
        y.reshape(-1)[3:5] = -1.0
        return y.sum()

    compiled = pb.compile(program)
    for _ in range(2):
        for layout in LAYOUTS:
            whole = np.arange(12.0).reshape(3, 4)
            found, expected = layout(whole), layout(whole)
            held = [expected]
            total = program(expected)
            held = [found]
            assert compiled(np.ones(1) if reached else found) == total
            np.testing.assert_array_equal(found, expected)
    assert compiled.cache_info().traces <= len(LAYOUTS)


def test_an_array_that_is_filled_lies_as_before() -> None:
    def program(x: Any) -> None:
        x.fill(0.5)
        x[x > 1.0] = 2.0
        x.reshape(2, 6)[1] = 7.0

    for layout in LAYOUTS:
        found, expected = layout(np.ones((3, 4))), layout(np.ones((3, 4)))
        program(expected)
        pb.compile(program)(found)
        np.testing.assert_array_equal(found, expected)


def test_a_row_with_gaps_is_copied_by_ravel() -> None:
    def program(x: Any) -> None:
        x.ravel()[1:] += 1.0
        x.fill(0.5)
        x.ravel()[0] = 3.0
        x.reshape(2, 3)[1] = 7.0

    compiled = pb.compile(program)
    for layout in (np.array, lambda a: np.repeat(a, 2)[::2], lambda a: a[::-1].copy()[::-1]):
        found, expected = layout(np.ones(6)), layout(np.ones(6))
        program(expected)
        compiled(found)
        np.testing.assert_array_equal(found, expected)


def test_how_arrays_lie_is_no_matter_where_nothing_is_written() -> None:
    compiled = pb.compile(lambda x: (x.reshape(2, 6) * 2.0).sum())
    for layout in LAYOUTS:
        assert compiled(layout(np.ones((3, 4)))) == 24.0
    assert compiled.cache_info().traces == 1
