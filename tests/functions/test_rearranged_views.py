"""Windows and `as_strided` show memory, as NumPy's and PyTorch's do, and code may ask how arrays lie."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from uncompiled import uncompiled

import pullback as pb

X = np.array([0.5, 1.0, -2.0, 0.3])
WEIGHTS = np.arange(1.0, 7.0).reshape(3, 2)


def windows_of_what_is_written(x):
    y = x.copy()
    shown = sliding_window_view(y, 2)
    y[1] = 5.0 * x[0]
    return (shown * WEIGHTS).sum()


def windows_of_what_is_filled(x):
    y = np.zeros(4)
    shown = sliding_window_view(y, 2)
    for i in range(4):
        y[i] = x[i] + (shown[i - 1].sum() if i else 0.0)
    return (shown * WEIGHTS).sum()


def strides_of_what_is_written(x):
    y = x.copy()
    shown = as_strided(y, (3, 2), (y.strides[0], y.strides[0]))
    y[1] = 5.0 * x[0]
    return (shown * WEIGHTS).sum()


def a_write_into_every_third(x):
    y = x.copy()
    shown = as_strided(y, shape=(2,), strides=(24,))
    shown *= x[1:3]
    return y @ np.arange(4.0) + shown.sum()


def a_write_into_pairs(x):
    y = x.copy()
    np.lib.stride_tricks.as_strided(y, (2, 2), (8, 16))[1] *= x[:2]
    return y @ np.arange(4.0)


PROGRAMS = (
    windows_of_what_is_written, windows_of_what_is_filled, strides_of_what_is_written,
    a_write_into_every_third, a_write_into_pairs,
)  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda one: one.__name__)
def test_what_is_written_later_is_shown(function: Callable) -> None:
    """Values and gradients of NumPy's program, plain, eager and compiled."""
    wanted = function(X)
    slope = [(function(X + step) - function(X - step)) / 2e-6 for step in 1e-6 * np.eye(4)]
    both = pb.value_and_grad(function)
    with uncompiled():
        for value, gradient in (both(X), pb.compile(both)(X)):
            np.testing.assert_allclose(value, wanted)
            np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(pb.compile(function)(X), wanted)


def test_windows_that_overlap_are_not_written_to() -> None:
    y = pb.arange(6.0)
    with pytest.raises(pb.errors.MutationError, match=r"unfold\(0, 3, 2\) shows refers to a single memory"):
        y.unfold(0, 3, 2)[0] = 1.0
    with pytest.raises(pb.errors.MutationError, match="as_strided"):
        y.as_strided((3, 2), (1, 1)).zero_()


def test_windows_are_views_of_tensors() -> None:
    torch = pytest.importorskip("torch")
    found = []
    for library in (pb, torch):
        x = library.arange(12.0, requires_grad=True)
        y = x * 2
        shown, overlapping, strided = y.unfold(0, 4, 4), y.unfold(0, 3, 2), y.as_strided((2, 3), (1, 4), 1)
        shown[1].mul_(3.0)
        y[1] = x[0] * 5
        strided[1, 1] = 7.0
        ((shown * shown).sum() + overlapping.sum() + strided.prod()).backward()
        found.append((x.grad.tolist(), y.tolist(), overlapping.tolist(), overlapping.stride()))
    assert found[0] == found[1]


def test_memory_beyond_the_array_is_refused() -> None:
    with pytest.raises(pb.errors.UnsupportedError, match="beyond the elements of the array"):
        pb.grad(lambda x: as_strided(x[:2], (3,), (8,)).sum())(X)


MATRIX = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 if x.strides[0] > x.strides[1] else x * 3,
        lambda x: as_strided(x, (5,), (8,)) * np.arange(5.0),
        lambda x: np.array([one * place for place, one in enumerate(np.nditer(x))]),
    ],
    ids=["strides", "as_strided", "nditer"],
)
def test_how_arguments_lie_is_a_guard(function: Callable) -> None:
    """NumPy goes by memory, so what was traced for one order is not right for another."""
    compiled = pb.compile(function)
    with uncompiled():
        for x in (MATRIX, np.asfortranarray(MATRIX), MATRIX + 1.0):
            np.testing.assert_array_equal(compiled(x), function(x))


def test_whether_tensors_are_contiguous_is_a_guard() -> None:
    function = pb.compile(lambda x: x * 2 if x.is_contiguous() else x * x.stride(0))
    x = pb.tensor(MATRIX)
    with uncompiled():
        assert function(x).tolist() == (x * 2).tolist()
        assert function(x.t().contiguous().t()).tolist() == x.tolist()


@pytest.mark.parametrize(
    "made",
    [
        lambda x: np.sort(x, axis=0),
        lambda x: np.argsort(x, axis=0) * 1.0,
        lambda x: np.partition(x, 1, axis=0),
        lambda x: np.delete(x, 1, axis=1),
        lambda x: np.insert(x, 1, 0.5, axis=1),
        lambda x: np.compress([True, False, True], x, axis=1),
        lambda x: np.quantile(x, [0.1, 0.5], axis=1),
        lambda x: np.apply_along_axis(np.sort, 0, x),
        lambda x: np.linspace(x[0], x[1], 3, axis=1),
    ],
    ids=[
        "sort", "argsort", "partition", "delete", "insert", "compress", "quantile", "apply_along_axis",
        "linspace",
    ],
)  # fmt: skip
def test_what_functions_make_lies_as_numpys(made: Callable) -> None:
    """Whether another shape of it is a view is seen once it is written to."""

    def function(x):
        y = made(x)
        seen = y.reshape(-1), y.T.reshape(-1)
        y *= np.arange(1.0, y.shape[1] + 1.0)
        return seen[0] * 1.0, seen[1] * 1.0

    with uncompiled():
        np.testing.assert_allclose(pb.compile(function)(MATRIX), function(MATRIX))
    np.testing.assert_allclose(pb.vjp(function, MATRIX)[0], function(MATRIX))


@pytest.mark.parametrize(
    "made",
    [
        "np.pad(x, 1)", "np.delete(x, 1, axis=0)", "np.insert(x, 1, 0.5, axis=0)",
        "np.take_along_axis(x, np.argsort(x, axis=0), axis=0)", "np.argsort(x, axis=0) * 1.0",
        "np.compress([True, False, True], x, axis=1)", "np.select([x > 0], [x], 0.5)",
        "np.fft.irfft(np.fft.rfft(x, axis=1), 3, axis=1)", "np.percentile(x, [10, 50], axis=0)",
        "np.cross(x, x[::-1] + 1.0)", "np.linalg.svd(x)[2] ** 2", "np.einsum('ij,ij->ji', x, x)",
        "np.vectorize(lambda one: one * 2)(x.T)", "scipy.special.softmax(x, axis=0)",
        "x.reshape(3, 2, 1).var(axis=2)",
        "scipy.linalg.solve_triangular(np.tril(x[:, :2]) + np.eye(2), x, lower=True)",
        "scipy.linalg.cho_solve((np.eye(2), True), x)",
    ],
)  # fmt: skip
def test_what_functions_make_of_turned_arrays_lies_as_numpys(made: str) -> None:
    """NumPy is asked how it lies where what it is made of is in no order of C's."""
    namespace = {"np": np, "scipy": scipy}
    exec(
        f"def function(x):\n    y = {made}\n    seen = y.reshape(-1), y.T.reshape(-1)\n"
        "    y *= np.arange(1.0, y.shape[1] + 1.0)\n    return seen[0] * 1.0, seen[1] * 1.0",
        namespace,
    )
    function: Callable = namespace["function"]
    x = np.asfortranarray(MATRIX * 0.3 + [0.5, 0.1, 0.7])
    wanted = function(x)
    with uncompiled():
        np.testing.assert_allclose(pb.compile(function)(x), wanted)
    np.testing.assert_allclose(pb.vjp(function, x)[0], wanted)


def sorted_columns(x):
    y = np.sort(x, axis=0) + np.sort(x, axis=1)
    y[np.ix_([0, 1], [0, 1])] += 1.0
    seen = y.reshape(-1), y.T.reshape(-1)
    y *= 2.0
    return seen[0] * 1.0, seen[1] * 1.0


def test_what_is_sorted_lies_as_it_did() -> None:
    for x in (np.asfortranarray(MATRIX), sliding_window_view(X, 2)):
        with uncompiled():
            np.testing.assert_allclose(pb.compile(sorted_columns)(x), sorted_columns(x))
        np.testing.assert_allclose(pb.vjp(sorted_columns, x)[0], sorted_columns(x))


def test_running_sums_of_a_number_are_an_array() -> None:
    def function(x):
        return np.cumsum(x.sum(), axis=0), np.cumprod(x[0], axis=-1), np.cumsum(x[0])

    with uncompiled():
        for found in (pb.compile(function)(X), pb.vjp(function, X)[0]):
            for one, wanted in zip(found, function(X)):
                assert one.shape == wanted.shape == (1,) and one == wanted


def read_in_orders(x):
    y = x * 1.0
    shown = y.ravel("K"), y.ravel("A"), y.reshape(-1, order="A"), np.ravel(y[::-1], "K"), y.T.flatten("K")
    apart = np.reshape(y, (3, 2), copy=True), y.reshape(6, copy=True)
    y *= np.arange(1.0, 4.0)
    apart[0][0] = 9.0
    return y * 1.0, *(one * np.arange(6.0) for one in shown), *apart


@pytest.mark.parametrize("x", [MATRIX, np.asfortranarray(MATRIX), MATRIX[:, ::-1]], ids=["C", "F", "turned"])
def test_elements_are_read_in_the_order_of_memory(x: np.ndarray) -> None:
    compiled = pb.compile(read_in_orders)
    with uncompiled():
        compiled(MATRIX)
        for found in (compiled(x), pb.vjp(read_in_orders, x)[0]):
            for one, wanted in zip(found, read_in_orders(x)):
                np.testing.assert_array_equal(one, wanted)


def test_a_reshape_that_has_to_copy_may_be_refused() -> None:
    with pytest.raises(pb.errors.ArgumentError, match="without a copy"):
        pb.grad(lambda x: np.reshape(x.T, (6,), copy=False).sum())(MATRIX)
