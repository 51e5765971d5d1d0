"""Sorting in compiled functions does what it does outside of them."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from extent import machine_code

import pullback as pb
from pullback.runtime.tape.apply import apply
from pullback.testing import check_gradients
from pullback.tracer.errors import ArgumentError
from pullback.tracer.ops.ordering import selected_positions, selected_values

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

SHAPES = [((7,), 0), ((8,), 0), ((3, 5), 1), ((3, 5), 0), ((2, 9, 3), 1), ((1,), 0), ((0,), 0), ((2, 0), 1)]


def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """With ties, zeros of both signs, and nan."""
    found = np.random.default_rng(0).integers(-3, 3, shape).astype(dtype)
    if found.dtype.kind == "f" and found.size > 3:
        found.flat[[0, 2, 3]] = np.nan, np.nan, -0.0
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_order(shape: tuple[int, ...], dim: int, dtype: str) -> None:
    x = drawn(shape, dtype)

    def both(x: Any) -> Any:
        return (*pb.sort(x, dim), *pb.sort(x, dim, descending=True))

    for found, wanted in zip(pb.compile(both)(x), both(pb.tensor(x))):
        assert found.dtype == wanted.numpy().dtype
        np.testing.assert_array_equal(found, wanted.numpy())


def long_rows() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    extremes = [np.nan, 1, -np.inf, np.inf, -0.0, 0.0, -np.nan, np.copysign(np.nan, -1), 5e-324, -5e-324]
    return {
        "different": rng.standard_normal(3000),
        "different float32": rng.standard_normal(3000).astype(np.float32),
        "ties": rng.integers(-5, 5, 2000).astype(float),
        "same first digits": 1 + rng.standard_normal(2000) * 1e-13,
        "some such": np.r_[rng.standard_normal(900), 1 + rng.standard_normal(60) * 1e-14],
        "extremes": np.array(extremes * 40),
        "rows": rng.standard_normal((5, 600)).round(2),
        "no rows": np.zeros((0, 600)),
    }


@pytest.mark.parametrize("name", long_rows())
def test_long_rows_are_sorted_by_their_first_bits_and_places(name: str) -> None:
    """As stable sorts do, in eager and in generated code, and so are gradients."""
    x = long_rows()[name]
    wanted = np.argsort(x, axis=-1, kind="stable")
    weights = np.arange(x.size, dtype=x.dtype).reshape(x.shape)

    def positions(x: Any) -> Any:
        return np.argsort(x, kind="stable"), pb.sort(x, descending=True).indices

    for function in (positions, pb.compile(positions)):
        found, backwards = function(pb.tensor(x))
        np.testing.assert_array_equal(found.numpy(), wanted)
        flipped = np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., ::-1]
        np.testing.assert_array_equal(backwards.numpy(), x.shape[-1] - 1 - flipped)
    slopes = np.empty_like(x)
    np.put_along_axis(slopes, wanted, weights, -1)
    for loss in (lambda x: (np.sort(x) * weights).sum(), pb.compile(lambda x: (np.sort(x) * weights).sum())):
        np.testing.assert_array_equal(pb.grad(loss)(x), slopes)


def test_one_code_for_all_extents() -> None:
    function = pb.compile(lambda x: pb.sort(x).values)
    for extent in (40, 41, 1000):
        x = np.random.default_rng(extent).normal(size=extent)
        np.testing.assert_array_equal(function(x), np.sort(x))
    assert function.cache_info().compilations + function.cache_info().disk_hits <= 2


FUNCTIONS: list[Callable[[Any], Any]] = [
    lambda x: (np.sort(x) * np.arange(6.0)).sum(),
    lambda x: np.median(x) * 3 + np.quantile(x, 0.3) + np.percentile(x, [10, 80]).sum(),
    lambda x: (pb.topk(x, 3).values ** 2).sum() + pb.kthvalue(x, 2).values + pb.median(x),
    lambda x: x[np.argsort(-x)[1]] ** 2 + pb.topk(x, 2, largest=False).values.prod(),
    lambda x: sum((np.sort(np.sin(x * k)) * x).sum() for k in range(12)),
    lambda x: pb.fori_loop(0, 3, lambda i, v: pb.sin(pb.sort(v).values * x), x).sum(),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_go_where_the_elements_were(function: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(1).normal(size=6)
    value, slope = pb.value_and_grad(function)(x)
    compiled, of_compiled = pb.value_and_grad(pb.compile(function))(x)
    np.testing.assert_allclose(compiled, value)
    np.testing.assert_allclose(of_compiled, slope, atol=1e-12)
    along = np.cos(np.arange(6.0))
    ahead, behind = (pb.value_and_grad(function)(x + step * along)[0] for step in (1e-6, -1e-6))
    np.testing.assert_allclose((slope * along).sum(), (ahead - behind) / 2e-6, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "int16", "uint8"])
def test_long_rows_are_stable(dtype: str) -> None:
    """Equal elements, zeros of both signs among them, and nan stay in order."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 40, (3, 3000)).astype(dtype)
    if x.dtype.kind == "f":
        x[rng.random(x.shape) < 0.02] = np.nan
        x[rng.random(x.shape) < 0.02] = -0.0
        x[rng.random(x.shape) < 0.5] *= -1
    order = np.argsort(x, axis=-1, kind="stable")
    wanted = np.take_along_axis(x, order, -1)
    compiled = pb.compile(lambda x: (np.sort(x), np.argsort(x, stable=True), pb.sort(x).values))(x)
    for values in (compiled[0], compiled[2], np.sort(pb.tensor(x)).numpy()):
        np.testing.assert_array_equal(values, wanted)
        np.testing.assert_array_equal(np.signbit(values), np.signbit(wanted))
    np.testing.assert_array_equal(compiled[1], order)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32", "int16", "uint8"])
def test_positions_of_equal_elements_are_as_numpy_leaves_them(dtype: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 40, (3, 3000)).astype(dtype)
    if x.dtype.kind == "f":
        x[rng.random(x.shape) < 0.02] = np.nan
    for kind in (None, "quicksort", "stable", "mergesort"):
        for axis in (0, 1, None):
            order = functools.partial(np.argsort, axis=axis, kind=kind)
            for found in (pb.compile(lambda x, order=order: order(x))(x), order(pb.tensor(x)).numpy()):
                np.testing.assert_array_equal(found, order(x))


@pytest.mark.parametrize("count", [255, 256, 257, 258, 600])
def test_runs_of_equal_elements_of_every_length_stay_in_order(count: int) -> None:
    rng, compiled = np.random.default_rng(count), pb.compile(pb.argsort)
    for often in (1, 3, 100, 1000, 10**9):
        x = rng.integers(0, often, count).astype(float)
        x[rng.random(count) < 0.1] = np.nan
        np.testing.assert_array_equal(compiled(pb.tensor(x)), np.argsort(x, kind="stable"))


def test_among_equal_elements_a_gradient_goes_in_order() -> None:
    x, weights = np.array([[2.0, 1.0, 2.0, 1.0], [0.0, -0.0, np.inf, 0.0]]), np.arange(8.0).reshape(2, 4)
    order = np.argsort(x, axis=-1, kind="stable")
    wanted = np.empty_like(x)
    np.put_along_axis(wanted, order, weights, -1)

    def loss(x: Any) -> Any:
        return (np.sort(x) * weights).sum()

    for function in (pb.grad(loss), pb.grad(pb.compile(loss)), pb.compile(pb.grad(loss))):
        np.testing.assert_array_equal(function(x), wanted)


def test_derivatives_of_second_order_and_batches() -> None:
    rows = np.random.default_rng(2).standard_normal((4, 5))

    def loss(x: Any) -> Any:
        return (np.sort(x) ** 3 * np.arange(5.0)).sum()

    ranks = np.argsort(np.argsort(rows, axis=-1), axis=-1)
    for hessian in (pb.vmap(pb.hessian(loss)), pb.compile(pb.vmap(pb.hessian(loss)))):
        np.testing.assert_allclose(hessian(rows), (6 * rows * ranks)[:, :, None] * np.eye(5), atol=1e-12)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("extent", [0, 1, 2, 7, 100, 5000])
def test_places_among_what_is_sorted_are_numpys(extent: int, dtype: str, side: Any) -> None:
    ordered, wanted = np.sort(drawn((extent,), dtype)), drawn((4, 9), dtype)
    if extent > 100:
        ordered, wanted = np.arange(extent).astype(dtype), np.arange(-3, extent + 50, 7).astype(dtype)
        ordered.sort()
    expected = np.searchsorted(ordered, wanted, side)
    search = pb.compile(lambda a, v: np.searchsorted(a, v, side))
    for keys, places in ((wanted, expected), (wanted[..., ::-1], expected[..., ::-1])):
        found = search(ordered, keys)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, places)
        np.testing.assert_array_equal(np.searchsorted(ordered, pb.tensor(keys.copy()), side).numpy(), places)


def test_places_in_rows_with_a_sorter_and_between_dtypes() -> None:
    rows, wanted = drawn((3, 40), "float64"), drawn((3, 5), "float32")
    given = rows, wanted, np.argsort(rows, -1)

    def places(rows: Any, wanted: Any, sorter: Any) -> Any:
        ordered = pb.sort(rows, -1).values
        return pb.searchsorted(rows, wanted, sorter=sorter), pb.searchsorted(ordered[0], wanted, right=True)

    compiled = pb.compile(places)(*given)
    for one, other in zip(places(*map(pb.tensor, given)), compiled):
        np.testing.assert_array_equal(one.numpy(), other)
    expected = [np.searchsorted(row, one, sorter=order) for row, one, order in zip(*given)]
    np.testing.assert_array_equal(compiled[0], expected)
    shuffled = np.array([3.0, 1.0, 2.0])
    by_sorter = pb.compile(lambda a, v: np.searchsorted(a, v, sorter=np.array([1, 2, 0])))
    assert by_sorter(shuffled, 2.5) == np.searchsorted(shuffled, 2.5, sorter=np.array([1, 2, 0]))


@pytest.mark.drawn(4)
def test_places_are_searched_in_every_step_of_a_loop_and_for_every_row_of_a_batch() -> None:
    edges, x = np.linspace(-2, 2, 9), np.random.default_rng(3).standard_normal((4, 6))

    def count(x: Any) -> Any:
        return pb.fori_loop(0, 3, lambda i, v: v + x * np.searchsorted(edges, x + v), x)

    expected = np.stack([np.asarray(count(pb.tensor(one))) for one in x])
    np.testing.assert_allclose(pb.compile(pb.vmap(count))(x), expected)
    bins = pb.compile(lambda x: np.digitize(x, edges[::-1]))(x)
    np.testing.assert_array_equal(bins, np.digitize(x, edges[::-1]))
    binned = pb.compile(np.digitize)
    for one in (edges, edges[::-1].copy(), np.zeros(3), np.ones(1), np.zeros(0)):
        np.testing.assert_array_equal(binned(x, one), np.digitize(x, one))
    with pytest.raises(ArgumentError, match="monotonically"):
        binned(x, np.array([1.0, 3.0, 2.0]))
    with pytest.raises(ArgumentError, match="side"):
        pb.compile(lambda x: np.searchsorted(edges, x, "middle"))(x)


# --- few elements of rows in order ------------------------------------------------------------------------


def hard_rows(size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(size)
    plain = rng.standard_normal(size)
    return {
        "all differ": plain,
        "in order": np.sort(plain),
        "all equal": np.full(size, 2.5),
        "few values": rng.integers(-2, 3, size) * 1.0,
        "zeros of both signs": np.where(rng.random(size) < 0.8, rng.choice([0.0, -0.0], size), plain),
        "nan": np.where(rng.random(size) < 0.3, np.nan, plain),
        "infinite": np.where(rng.random(size) < 0.6, np.inf * np.sign(plain), plain),
        "in periods": np.arange(size) % 7 - 3.0,
    }


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [1, 6, 1001, 5000])
def test_few_elements_are_selected_as_a_stable_sort_finds_them(size: int, dtype: str) -> None:
    """With their positions, the gradients' places; in machine code and eager."""
    places = np.array([size // 2, (size - 1) // 3, size - 1, 0, size // 2])

    def found(x: Any) -> Any:
        values = apply(selected_values, x, pb.tensor(places))
        return values, apply(selected_positions, x._detached(), pb.tensor(places), values._detached())

    with machine_code("selection"):
        compiled = pb.compile(found)
        for name, row in hard_rows(size).items():
            x = row.astype(dtype)
            order = np.argsort(x, kind="stable")[places]
            for function in (compiled, found):
                values, positions = function(pb.tensor(x))
                np.testing.assert_array_equal(positions.numpy(), order, err_msg=name)
                np.testing.assert_array_equal(values.numpy(), x[order], err_msg=name)
                np.testing.assert_array_equal(np.signbit(values.numpy()), np.signbit(x[order]), err_msg=name)


def test_medians_and_quantiles_sort_nothing() -> None:
    rows = np.random.default_rng(0).standard_normal((3, 1200))
    weights = np.linspace(1.0, 2.0, 3)
    for function in (
        lambda a: np.median(a, axis=1),
        lambda a: np.quantile(a, 0.3, axis=1),
        lambda a: np.percentile(a, [10.0, 60.0], axis=1)[1],
    ):

        def loss(a: Any, function: Any = function) -> Any:
            return (function(a) * weights).sum()

        compiled = pb.value_and_grad(pb.compile(loss))
        value, slope = compiled(rows)
        np.testing.assert_allclose(value, loss(rows), rtol=1e-12)
        np.testing.assert_allclose(slope, pb.grad(loss)(rows), rtol=1e-12)
        np.testing.assert_allclose(slope.sum(1), weights, rtol=1e-12)
        source = compiled.source(rows)
        assert "select_floats(" in source and "sort_float" not in source
    check_gradients(lambda a: (np.median(a, axis=1) * weights).sum(), rows[:, :6])


def test_medians_of_no_rows_are_none() -> None:
    nothing = np.zeros((0, 5))
    for median in (pb.compile(lambda a: np.median(a, axis=1)), lambda a: np.median(pb.tensor(a), axis=1)):
        assert median(nothing).shape == (0,)


def test_rows_that_are_sorted_with_a_gradient_are_sorted_once() -> None:
    a, weights = np.random.default_rng(0).standard_normal((2, 3, 40))
    compiled = pb.value_and_grad(pb.compile(lambda a: (np.sort(a) * weights).sum()))
    value, slope = compiled(a)
    np.testing.assert_allclose(value, (np.sort(a) * weights).sum())
    np.testing.assert_array_equal(np.take_along_axis(slope, np.argsort(a), -1), weights)
    assert compiled.source(a).count("sort_float") == 2  # its import, and one call
