"""Values and derivatives at the edges: zeros, nan, infinities, nothing left to average, as NumPy and PyTorch
have them, in eager code and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from uncompiled import uncompiled

import pullback as pb
from pullback.errors import ArgumentError, DTypeError

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]

torch = pytest.importorskip("torch")
inf, nan = np.inf, np.nan
EDGES = [np.array([1.0, inf, 3, 4, 2, inf]), np.array([1.0, -inf, 3, 4, 2, -inf])]


def value_and_slopes(lib: Any, function: Callable[..., Any], *arrays: np.ndarray) -> list[Any]:
    """The value of a function of one library, and the gradients of its sum."""
    leaves = [lib.tensor(one, requires_grad=True) for one in arrays]
    value = function(lib, *leaves)
    slopes = lib.autograd.grad(value.sum(), leaves)
    return [one.detach().numpy() for one in (value, *slopes)]


def require_as_in_pytorch(function: Callable[..., Any], *arrays: np.ndarray, compiled: bool = False) -> None:
    expected = value_and_slopes(torch, function, *arrays)
    found = [value_and_slopes(pb, function, *arrays)]
    if compiled:
        places = tuple(range(len(arrays)))
        both = pb.value_and_grad(lambda *xs: function(pb, *xs).sum(), places)
        value, slopes = pb.compile(both)(*map(pb.tensor, arrays))
        np.testing.assert_allclose(value.numpy(), expected[0].sum(), rtol=1e-12)
        found.append([expected[0], *(one.numpy() for one in slopes)])
    for result in found:
        for one, other in zip(result, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("function", [
    lambda lib, x: lib.special.entr(x), lambda lib, x: lib.special.xlogy(x, x), lambda lib, x: lib.logit(x),
    lambda lib, x: lib.special.xlog1py(x + 1, x), lambda lib, x: lib.special.xlogy(x, 0 * x),
    lambda lib, x: lib.special.xlogy(x, x / 0),
    lambda lib, x: lib.nn.functional.kl_div(x, x, reduction="none"),
    lambda lib, x: lib.maximum(x, 1 - x), lambda lib, x: lib.minimum(1 - x, x), lambda lib, x: lib.relu(x),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
def test_slopes_at_ends_and_of_nan_are_pytorchs(function: Callable[..., Any]) -> None:
    x = np.array([0.0, 1, 0.25, -1, 2, nan, inf, -inf, 0.5])
    require_as_in_pytorch(function, x)
    with np.errstate(all="ignore"):
        slopes = pb.grad(pb.compile(lambda x: function(pb, x).sum()))(pb.tensor(x))
    np.testing.assert_allclose(slopes.numpy(), value_and_slopes(torch, function, x)[1], rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_equal_numbers_whose_mean_is_rounded_have_no_slope_of_their_deviation(compiled: bool) -> None:
    def deviation(x: Any) -> Any:
        return np.std(x) + x.std(axis=-1).sum()

    slopes = pb.grad(pb.compile(deviation) if compiled else deviation)
    for x in (np.full(7, 0.1), np.full((2, 7), 0.1)):
        np.testing.assert_array_equal(slopes(x), 0.0)
    apart = np.array([1.0, 1.0 + 1e-14])
    np.testing.assert_allclose(slopes(apart), [-1.0, 1.0], rtol=0.05)


@pytest.mark.filterwarnings("ignore:.*encountered in.*:RuntimeWarning")
def test_division_by_a_constant_zero_is_numpys_where_python_runs_the_code() -> None:
    x = np.array([1.0, 0, -2, inf, nan])
    with uncompiled():
        for zero in (0, 0.0, -0.0):
            found = pb.compile(lambda x, zero=zero: (x / zero, np.nan_to_num(x / zero)))(x)
            for one, expected in zip(found, (x / zero, np.nan_to_num(x / zero)), strict=True):
                np.testing.assert_array_equal(one, expected)
            slopes = pb.grad(lambda x, zero=zero: np.nan_to_num(x / zero).sum())
            np.testing.assert_array_equal(pb.compile(slopes)(x), slopes(x))


# --- norms --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [-2.0, -1.0, -0.5, -inf, 0.5, 3.0])
def test_norms_of_any_order_have_pytorchs_derivatives_at_zero(order: float) -> None:
    for x in (np.zeros(3), np.array([0.0, 1, 2]), np.array([1.0, -2, 3])):
        require_as_in_pytorch(lambda lib, t: lib.linalg.vector_norm(t, order), x)
    matrix = np.array([[0.0, 1], [2, 3], [0, 0]])
    require_as_in_pytorch(lambda lib, t: lib.linalg.vector_norm(t, order, 1, keepdim=True), matrix)


def test_compiled_norms_of_negative_order_have_pytorchs_derivatives_at_zero() -> None:
    x = np.array([[0.0, 1, 2], [1, 2, 3]])
    require_as_in_pytorch(lambda lib, t: lib.linalg.vector_norm(t, -2.0, 1), x, compiled=True)


def test_a_norm_of_negative_order_has_second_derivatives_at_zero() -> None:
    def second(lib: Any) -> np.ndarray:
        x = lib.tensor(np.array([0.0, 1, 2]), requires_grad=True)
        (slope,) = lib.autograd.grad(lib.linalg.vector_norm(x, -2.0), x, create_graph=True)
        return lib.autograd.grad((slope**2).sum(), x)[0].numpy()

    assert not second(pb).any()
    slopes = pb.grad(lambda x: np.linalg.norm(x, -2))(np.array([0.0, 1, 2]))
    assert slopes.tolist() == [0, 0, 0]


# --- extremes, medians, pooling -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
@pytest.mark.parametrize("x", [[nan, nan], [1.0, nan, nan], [[nan, nan], [1, nan]], nan])
def test_nans_that_are_the_extreme_share_its_gradient(name: str, x: Any) -> None:
    require_as_in_pytorch(lambda lib, t: getattr(lib, name)(t), np.array(x))


def test_compiled_nans_that_are_the_extreme_share_its_gradient() -> None:
    require_as_in_pytorch(lambda lib, t: lib.max(t) + lib.min(t), np.array([nan, 1.0, nan]), compiled=True)


@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_the_place_of_an_extreme_of_nans_is_refused(name: str) -> None:
    function, rows = getattr(np, name), np.array([[nan, nan], [1.0, nan]])
    for bad in (lambda: function(pb.tensor(rows[0])), lambda: function(pb.tensor(rows), axis=1)):
        with pytest.raises(ArgumentError, match="All-NaN slice"):
            bad()
    assert int(function(pb.tensor(rows))) == function(rows)
    place = pb.compile(lambda x: x[function(x)] * 2)
    assert place(np.array([nan, 3.0])) == 6
    with pytest.raises(ValueError, match="All-NaN slice"):
        place(np.array([nan, nan]))


@pytest.mark.parametrize("x", EDGES, ids=["inf", "-inf"])
def test_unpooling_of_infinite_values(x: np.ndarray) -> None:
    def through(lib: Any, t: Any) -> Any:
        f = lib.nn.functional
        return f.max_unpool1d(*f.max_pool1d(t, 2, return_indices=True), 2)

    require_as_in_pytorch(through, x[None, None], compiled=x[1] > 0)


def test_what_is_written_to_one_place_by_unpooling_all_has_its_gradient() -> None:
    def through(lib: Any, t: Any) -> Any:
        f = lib.nn.functional
        return f.max_unpool2d(*f.max_pool2d(t, 2, 1, return_indices=True), 2, 1) ** 2

    require_as_in_pytorch(through, np.array([[[[1.0, 5, 3], [4, 9, 6], [7, 1, 2]]]]))


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_sums_of_exponentials_of_infinite_numbers(name: str) -> None:
    for x in EDGES:
        require_as_in_pytorch(lambda lib, a, b: getattr(lib, name)(a, b), x, x[::-1].copy())


# --- averages over nothing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("correction", [1, 2, 3, 4])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_variances_with_no_freedom_left_are_infinite(correction: int) -> None:
    for x in (np.array([1.0, 2]), np.array([5.0, 5]), np.array([3.0])):
        for name in ("var", "std"):
            found = getattr(pb, name)(pb.tensor(x), correction=correction)
            expected = getattr(torch, name)(torch.tensor(x), correction=correction)
            np.testing.assert_array_equal(found.numpy(), expected.numpy())
            plain = getattr(np, name)(x, ddof=correction)
            for where in ({}, {"where": np.ones(len(x), bool)}):
                found = getattr(np, name)(pb.tensor(x), ddof=correction, **where)
                np.testing.assert_array_equal(found.numpy(), plain)


def test_compiled_variances_with_no_freedom_left_are_infinite() -> None:
    x = np.array([[1.0, 2], [4, 8]])
    function = lambda lib, t: lib.var(t, dim=0, correction=2)  # noqa: E731
    require_as_in_pytorch(function, x, compiled=True)


@pytest.mark.parametrize("weights", [{}, {"fweights": [1, 2, 1]}, {"aweights": [1.0, 2, 1]}])
@pytest.mark.parametrize("ddof", [0, 1, 3, 5])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_covariances_with_no_freedom_left(ddof: int, weights: dict[str, Any]) -> None:
    for x in (np.array([1.0, 2, 4]), np.array([[1.0, 2, 4], [3, 5, 1]])):
        expected = np.cov(x, ddof=ddof, **weights)
        np.testing.assert_allclose(np.cov(pb.tensor(x), ddof=ddof, **weights).numpy(), expected)
        given = {name: pb.tensor(one) for name, one in weights.items()}
        np.testing.assert_allclose(pb.cov(pb.tensor(x), correction=ddof, **given).numpy(), expected)


@pytest.mark.parametrize("weights", [{"fweights": [-1, 1, 1]}, {"aweights": [1.0, 2, -1]}])
def test_negative_weights_are_refused(weights: dict[str, Any]) -> None:
    x = np.array([1.0, 2, 4])
    with pytest.raises(ArgumentError, match="cannot be negative"):
        pb.cov(pb.tensor(x), **{name: pb.tensor(one) for name, one in weights.items()})
    with pytest.raises(ValueError, match="cannot be negative"):
        np.cov(pb.tensor(x), **weights)
    none = {name: np.zeros_like(one) for name, one in weights.items()}
    with pytest.raises(ArgumentError, match="sum to zero"):
        np.cov(pb.tensor(x), **none)


def test_repeats_that_are_not_integers_are_refused() -> None:
    with pytest.raises(ArgumentError, match="must be integers"):
        np.cov(pb.tensor(np.array([1.0, 2, 4])), fweights=[1.5, 1, 1])


# --- differences, quantiles, neighbours ---------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_differences_after_joining(n: int) -> None:
    x, ends = np.array([1.0, 4, 9]), {"prepend": np.array([0.0, 2]), "append": np.array([3.0])}
    expected = np.diff(x, n, **ends)
    assert np.diff(pb.tensor(x), n, **ends).tolist() == expected.tolist()
    found = pb.diff(pb.tensor(x), n, **{name: pb.tensor(one) for name, one in ends.items()})
    assert found.tolist() == expected.tolist()


def test_quantiles_beside_infinite_elements() -> None:
    for x in EDGES:
        for q in (0.0, 0.3, 0.5, 0.9, 1.0):
            with np.errstate(all="ignore"):
                expected = np.quantile(x, q)
            np.testing.assert_array_equal(np.quantile(pb.tensor(x), q).numpy(), expected)
            np.testing.assert_array_equal(pb.nanquantile(pb.tensor(x), q).numpy(), expected)
    assert np.median(pb.tensor([1.0, inf])) == inf
    assert np.median(pb.tensor([[1.0, 4], [2, 8]]), axis=0, keepdims=True).tolist() == [[1.5, 6]]


METHODS = [
    "linear",
    "lower",
    "higher",
    "nearest",
    "midpoint",
    "hazen",
    "weibull",
    "median_unbiased",
    "normal_unbiased",
    "interpolated_inverted_cdf",
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
]


@pytest.mark.parametrize("method", METHODS)
def test_quantiles_have_gradients_of_their_shares(method: str) -> None:
    x, q, h = np.array([3.0, 1, 7, 2, 9]), 0.37, 1e-6
    function = lambda q: np.quantile(x, q, method=method)  # noqa: E731
    numeric = (function(q + h) - function(q - h)) / (2 * h)
    np.testing.assert_allclose(pb.grad(function)(q), numeric, rtol=1e-6)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles_have_pytorchs_gradients_of_their_shares(name: str) -> None:
    x, q = np.array([[3.0, 1, 7], [2, 9, 4]]), np.array([0.2, 0.37, 0.9])
    require_as_in_pytorch(lambda lib, t, s: getattr(lib, name)(t, s, dim=1), x, q, compiled=True)


@pytest.mark.parametrize("function", [np.percentile, np.nanpercentile])
def test_percentiles_have_gradients_of_their_shares(function: Any) -> None:
    x = np.array([3.0, 1, 7, 2, 9])
    total = lambda q: function(x, [q, q * q / 100]).sum()  # noqa: E731
    numeric = (total(37 + 1e-5) - total(37 - 1e-5)) / 2e-5
    np.testing.assert_allclose(pb.grad(total)(37.0), numeric, rtol=1e-6)


def test_shares_outside_are_refused_where_they_are_traced() -> None:
    compiled = pb.compile(lambda x, q: pb.quantile(x, q))
    x = pb.tensor([1.0, 2.0, 4.0])
    assert compiled(x, pb.tensor(0.5)) == 2
    with pytest.raises(ArgumentError, match=r"in the range \[0, 1\]"):
        compiled(x, pb.tensor(1.25))


def test_the_next_number_has_the_derivative_of_the_number() -> None:
    require_as_in_pytorch(lambda lib, a, b: lib.nextafter(a, b), np.array([1.0, 2]), np.array([2.0, 1]))


@pytest.mark.parametrize(
    "clipped",
    [
        lambda x: pb.clamp(x, -1, 1), lambda x: np.clip(x, -1, 1), lambda x: x.clip(-1.0, 1.0),
        lambda x: np.clip(x, -np.ones_like(x), np.ones_like(x)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_at_a_bound_clipping_has_pytorchs_gradient_however_it_is_taken(clipped: Any, dtype: Any) -> None:
    x = np.array([-2.0, -1.0, 0.5, 1.0, 3.0], dtype)
    leaf = torch.tensor(x, requires_grad=True)
    torch.clamp(leaf, -1, 1).sum().backward()
    expected = leaf.grad.numpy()

    def total(x: Any) -> Any:
        return clipped(x).sum()

    def by_tangents(x: Any) -> Any:
        return np.array([pb.jvp(total, (x,), (one,))[1] for one in np.eye(5, dtype=dtype)])

    of_rows = pb.vmap(pb.grad(total))
    found = [pb.grad(total)(x), pb.grad(pb.compile(total))(x), pb.compile(pb.grad(total))(x)]
    found += [pb.vjp(total, x)[1](dtype(1))[0], by_tangents(x), of_rows(x[None])[0]]
    for one in found:
        np.testing.assert_array_equal(one, expected)


def test_heaviside_has_the_gradient_of_its_value_at_zero() -> None:
    values = pb.tensor([0.5, 0.25], requires_grad=True)
    pb.heaviside(pb.tensor([0.0, 1.0]), values).sum().backward()
    assert values.grad.tolist() == [1, 0]


# --- images of integers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "bool"])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_images_of_integers_are_resized_as_in_pytorch_or_refused(dtype: str, mode: str) -> None:
    x = (np.arange(16) * 15).reshape(1, 1, 4, 4).astype(dtype)
    if dtype == "uint8" and mode.startswith("nearest"):
        found = pb.nn.functional.interpolate(pb.tensor(x), size=(3, 5), mode=mode)
        expected = torch.nn.functional.interpolate(torch.tensor(x), size=(3, 5), mode=mode)
        assert found.tolist() == expected.tolist()
        return
    with pytest.raises(DTypeError, match="interpolate|mean"):
        pb.nn.functional.interpolate(pb.tensor(x), size=(3, 5), mode=mode)


# --- arguments that PyTorch refuses -------------------------------------------------------------------------


@pytest.mark.parametrize("refused", [
    lambda lib: lib.cdist(lib.ones(2, 2), lib.ones(2, 2), -1.0),
    lambda lib: lib.pdist(lib.ones(2, 2), -1.0),
    lambda lib: lib.relu(lib.tensor([True, False])),
    lambda lib: lib.nn.functional.cross_entropy(lib.ones(1, 3), lib.tensor([0]), label_smoothing=1.5),
    lambda lib: lib.nn.functional.interpolate(lib.ones(1, 1, 4).int(), size=3),
    lambda lib: lib.nn.functional.adaptive_avg_pool1d(lib.ones(1, 4).int(), 2),
    lambda lib: lib.addr(lib.ones(2, 2).int(), lib.ones(2).int(), lib.ones(2).int(), beta=0.5),
])  # fmt: skip
def test_arguments_that_pytorch_refuses_are_refused(refused: Callable[[Any], Any]) -> None:
    for lib in (torch, pb):
        with pytest.raises((RuntimeError, ValueError, TypeError)):
            refused(lib)


@pytest.mark.parametrize("number", [-1, 300, 2**70])
def test_comparisons_with_integers_that_a_dtype_cannot_hold(number: int) -> None:
    x = np.array([250, 3], np.uint8)

    def compared(x: Any) -> Any:
        return x < number, x == number, number >= x, np.where(x != number, x, 0)

    with uncompiled():
        found = pb.compile(compared)(x)
    for one, expected in zip(found, compared(x), strict=True):
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("function", [np.sum, np.mean, np.prod, np.std, lambda x: np.cumsum(x)[-1]])
def test_reductions_of_arrays_of_the_other_byte_order(function: Any) -> None:
    x = np.array([1.0, 2.0, 4.0])
    other = x.astype(x.dtype.newbyteorder())
    np.testing.assert_allclose(pb.grad(function)(other), pb.grad(function)(x))
