"""Programs as one writes them in NumPy: its methods and functions, SciPy's, and those of Python's `math`."""

from __future__ import annotations

import itertools
import math
from math import sqrt
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate
import scipy.linalg
import scipy.special
import scipy.stats
from numpy_checks import check, random
from scipy import special
from scipy.special import logsumexp
from scipy.stats import norm

import pullback as pb
from pullback.errors import UnsupportedError

pytestmark = pytest.mark.usefixtures("partly_compiled")

# --- NumPy's methods, and its functions that write ----------------------------------------------------


def written_by_functions(x: np.ndarray) -> Any:
    a, b = np.zeros((3, 3)), np.empty(3)
    a[:] = np.outer(x, x)
    np.fill_diagonal(a, x[0])
    np.add.at(a, (np.array([0, 0, 1]), np.array([1, 1, 2])), x)
    np.subtract.at(a, [0, 0], x)
    np.put(a, [4, 7], x[:2])
    np.copyto(b, x * 2)
    np.copyto(b, x**3, where=x > 1)
    np.putmask(b, b > 2.5, 0.5)
    np.multiply(a, 2.0, out=a)
    np.add(b, x, out=b)
    return (a * a.T).sum() + (b * np.add.accumulate(b)).sum() + (np.multiply.outer(b, x) @ a).sum()


def test_functions_that_write_into_an_array() -> None:
    check(written_by_functions, np.array([1.2, 0.7, 1.9]))


def methods(x: np.ndarray) -> Any:
    a = np.zeros((2, 3))
    a[0], a[1] = x, x.copy() * x.size
    b = a.copy()
    b.fill(x[1])
    b[0] = a.transpose().dot(a[:, 0])
    total = a.astype(np.float64).cumsum() @ b.ravel() + x.std(ddof=0) * a.var(axis=1, ddof=1).sum()
    return total + x.conj().real.dot(x) * a.size + (a.round(1) * 0).sum() + a.clip(0.6, 1.1).sum()


@pytest.mark.drawn(4)
def test_methods_and_attributes_of_arrays() -> None:
    check(methods, np.array([1.2, 0.7, 1.9]))


def test_size_is_a_number_and_a_method() -> None:
    x = pb.zeros(2, 3)
    assert x.size == 6
    assert x.size - 1 == 5
    assert x.size() == (2, 3)
    assert x.size(-1) == 3
    assert [*range(x.size)] == [*range(6)]


def test_what_numpy_refuses_is_refused() -> None:
    with pytest.raises(pb.errors.DTypeError, match="Cannot cast"):
        np.copyto(pb.zeros(2, dtype=pb.int64), pb.ones(2))
    with pytest.raises(pb.errors.GradientError, match="like=tensor"):
        np.add.at(np.zeros(2), [0], pb.ones(1))


# --- functions that do not ask their arguments what they are --------------------------------------------


def given_lists(x: np.ndarray) -> Any:
    largest = np.maximum.reduce([x[0], x[1] * 2, x[2] ** 2])
    length = np.linalg.norm([x[0], x[1], largest])
    weights = np.exp([x[0], 2 * x[1]]) / np.sum([np.abs(x[2]), 1.0])
    return length * np.dot([x[1], 1.0], weights) + np.linalg.det([[x[0], 2.0], [1.0, x[2]]])


@pytest.mark.drawn(6)
def test_lists_of_numbers_are_arrays() -> None:
    check(given_lists, random(3))


@pytest.mark.parametrize(
    "total",
    [
        lambda *numbers: np.sum(numbers),
        lambda a, *others: np.dot(others, others) * a,
        lambda a, b, c: np.prod(sorted({1: a, 2: b, 3: c}.values())) + np.mean(list(map(abs, (a, c)))),
    ],
)
def test_lists_that_python_makes_are_arrays(total: Any) -> None:
    check(lambda x: total(*x), random(3))


def test_what_is_unpacked_is_a_list() -> None:
    def ends(x: np.ndarray) -> Any:
        first, *between = x
        return first * np.linalg.norm(between)

    check(ends, random(3))


def joined_by_index(x: np.ndarray) -> Any:
    table = np.c_[x, x**2]
    return (np.r_[0.0, x, table[0]] ** 2).sum() + np.r_["0,2", x, x].std() + np.r_[1.0, 2.0].sum()


def test_arrays_joined_by_index() -> None:
    check(joined_by_index, random(3))


def vectorized(x: np.ndarray) -> Any:
    bent = np.vectorize(lambda t, power: t**power if t > 1 else 2 * t)(x, [1, 2, 3])
    sums = np.vectorize(np.sum, signature="(n)->()")(np.outer(x, bent))
    places = [value * place for (place,), value in np.ndenumerate(sums)]
    return (bent * sums).sum() + sum(places) + np.vectorize(np.sqrt)(2.0)


@pytest.mark.parametrize(
    "called",
    [
        lambda f, x: np.vectorize(f)(x),
        lambda f, x: np.vectorize(f, otypes=[np.float32])(x),
        lambda f, x: np.vectorize(lambda t: (t, f(t)))(x)[1],
        lambda f, x: np.apply_along_axis(lambda row: f(row[0]), 1, x[:, None]),
    ],
)
@pytest.mark.parametrize("least", [0, 0.0])
def test_the_first_result_of_a_function_of_numbers_has_the_dtype_of_all(called: Any, least: Any) -> None:
    def program(x: Any) -> Any:
        return 1.0 * called(lambda t: t if t > 0 else least, x)

    single = np.array([1.5, -2.5], np.float32)
    for x in (np.array([-1.5, 2.5, 0.5]), single, -single):
        expected = program(x)
        for found in (pb.compile(program)(x), pb.vjp(program, x)[0]):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def test_functions_of_numbers_are_vectorized() -> None:
    check(vectorized, random(3))


def series(x: np.ndarray, c: np.ndarray) -> Any:
    total = np.polynomial.polynomial.polyval(x, c) + np.polynomial.chebyshev.chebval(x, c)
    total += np.polynomial.legendre.legval(x, c) * np.polynomial.hermite.hermval(0.5 * x, c)
    total += np.polynomial.laguerre.lagval(x, c) + np.polynomial.hermite_e.hermeval(x, c)
    return total.sum()


def test_series_of_polynomials() -> None:
    check(series, random(3), random(4))


@pytest.mark.parametrize("name", ["polynomial.polyval", "chebyshev.chebval", "hermite_e.hermeval"])
@pytest.mark.parametrize("is_each", [True, False], ids=["each", "one"])
def test_series_of_several_columns(name: str, is_each: bool) -> None:
    """Each column at all of x, or one column at each."""
    module, function = name.split(".")
    evaluate = getattr(getattr(np.polynomial, module), function)
    x, c = random(3), random(4, 3)
    found = pb.vjp(lambda x: evaluate(x, c, tensor=is_each), x)[0]
    np.testing.assert_allclose(found, evaluate(x, c, tensor=is_each))


@pytest.mark.filterwarnings("ignore:.*poorly conditioned")
@pytest.mark.parametrize("fit", [np.polyfit, np.polynomial.chebyshev.chebfit], ids=["polyfit", "chebfit"])
def test_fits_leave_out_small_singular_values(fit: Any) -> None:
    check(lambda y: fit(np.arange(4.0), y, 2, rcond=0.5)[1], random(4))
    with pytest.raises(UnsupportedError, match="no derivative by x"):
        pb.grad(lambda x: fit(x, random(4), 2, rcond=0.5)[1])(np.arange(4.0))


def of_scipy(x: np.ndarray, a: np.ndarray) -> Any:
    a = a @ a.T + np.eye(3)
    factor = scipy.linalg.cholesky(a, lower=True, check_finite=False)
    solved = scipy.linalg.cho_solve((factor, True), x) + scipy.linalg.solve(a, x, assume_a="pos")
    solved += scipy.linalg.solve_triangular(factor, x, trans=1, lower=True)
    shares = scipy.special.softmax(np.outer(x, x), axis=1) @ scipy.special.log_softmax(x)
    weighted = scipy.special.logsumexp(x, b=np.array([1.0, 0.5, 2.0]), keepdims=True)
    return solved @ shares + weighted[0] * logsumexp(a) + np.log(scipy.linalg.det(a))


@pytest.mark.drawn(4)
def test_functions_of_scipy() -> None:
    check(of_scipy, random(3), random(3, 3))


def of_distributions(x: np.ndarray, p: np.ndarray, a: np.ndarray) -> Any:
    stats = scipy.stats
    total = norm.logpdf(x, p[0], scale=p[1]).sum() + norm.cdf(x).sum() + norm.logcdf(-9 * x).sum()
    total += stats.gamma.logpdf(x, p[1], scale=p[2]).sum() + stats.beta.logpdf(x / 2, p[1], p[2]).sum()
    total += stats.t.logpdf(x, p[2], loc=p[0]).sum() + stats.expon.pdf(x, scale=p[2]).sum()
    total += stats.lognorm.logpdf(x, p[2]).sum() + stats.laplace.logpdf(x, p[0], p[1]).sum()
    total += stats.poisson.logpmf(np.array([1, 2, 0]), p[2]).sum() + stats.binom.logpmf(2, 5, p[0] / 2)
    total += stats.logistic.sf(x).sum() + stats.cauchy.cdf(x).sum() + stats.bernoulli.pmf(1, p[0] / 2)
    total += stats.uniform.logpdf(x, 0.0, 2 * p[2]).sum() + norm.ppf(0.3) * p[0]
    covariance = a @ a.T + np.eye(3)
    total += stats.multivariate_normal.logpdf(a, x, covariance).sum()
    return total + stats.multivariate_normal.pdf(a[0], mean=x)


@pytest.mark.drawn(6)
def test_distributions_of_scipy() -> None:
    check(of_distributions, random(3), np.array([0.6, 0.7, 1.2]), random(3, 3))


TABLE = random(4, 3)


def with_methods_of_arrays(w: np.ndarray, y: np.ndarray, order: np.ndarray) -> Any:
    helper = np.array([1.0, 2.0, 3.0, 4.0])
    error = TABLE.dot(w) - y
    return (
        error.dot(error) + helper.dot(TABLE.dot(w)) + order.choose([w, w * w]).sum() + y.searchsorted(w).sum()
    )


def test_methods_of_plain_arrays_take_tensors() -> None:
    w, y, order = random(3), np.arange(4.0), np.array([1, 0, 1])
    step = 1e-6
    expected = (
        with_methods_of_arrays(w + step * w, y, order) - with_methods_of_arrays(w - step * w, y, order)
    ) / (2 * step)
    for one in (with_methods_of_arrays, pb.compile(with_methods_of_arrays)):
        value, gradient = pb.value_and_grad(one)(w, y, order)
        assert np.isclose(value, with_methods_of_arrays(w, y, order))
        assert np.isclose(gradient @ w, expected)


def asking_for_arrays(x: Any) -> Any:
    if isinstance(x, np.ndarray) and not isinstance(x, list | tuple):
        return (x * x).sum()
    return 0.0 * x


def test_a_tensor_in_the_place_of_an_array_is_one() -> None:
    check(asking_for_arrays, random(3))

    def from_arrays(x: Any) -> Any:
        x = pb.tensor(x) if isinstance(x, np.ndarray) else x
        return (x * x).sum()

    assert np.allclose(pb.grad(from_arrays)(np.ones(2)), 2.0)  # it calls pullback, and gets what it calls for
    assert np.allclose(pb.grad(from_arrays)(pb.ones(2)).numpy(), 2.0)


def methods_in_helpers(x: np.ndarray) -> Any:
    inner = pb.compile(lambda y: y.std() + y.max(0).sum())
    return inner(x * 2.0) * x.var()


def test_methods_are_numpys_in_all_of_a_numpy_program() -> None:
    check(methods_in_helpers, random(3, 2))
    table = random(3, 2)
    tensor = pb.tensor(table)
    compiled = pb.compile(lambda y: y.var())
    assert np.isclose(float(compiled(tensor)), table.var(ddof=1))
    assert np.isclose(pb.value_and_grad(lambda y: compiled(y * 1.0))(table)[0], table.var())
    assert np.isclose(float(compiled(tensor)), table.var(ddof=1))


def test_methods_are_those_of_the_data_in_programs_that_call_pullback() -> None:
    table = random(3, 2)

    def function(x: Any) -> Any:
        return pb.tanh(x).std()

    for one in (function, pb.compile(function)):
        assert np.isclose(pb.value_and_grad(one)(table)[0], np.tanh(table).std())
        assert np.isclose(float(pb.value_and_grad(one)(pb.tensor(table))[0]), np.tanh(table).std(ddof=1))
    assert np.isclose(pb.value_and_grad(lambda x: pb.grad(pb.compile(np.sum))(x).std())(table)[0], 0.0)


def test_a_number_made_of_a_tensor_would_lose_its_gradient() -> None:
    with pytest.raises(pb.errors.GradientError, match="float64|no gradient"):
        pb.grad(lambda x: np.float64(x[0]) * 2.0)(np.ones(2))


# --- functions of math ----------------------------------------------------------------------------------


def distances(x: np.ndarray) -> Any:
    total = 0.0
    for i in range(3):
        total += math.sqrt(x[i] ** 2 + x[i - 1] ** 2) * math.exp(-x[i]) + math.pi * math.log(x[i], 2)
    return total + math.atan2(x[0], 2.0) + math.floor(x[1])


def test_functions_of_math_have_gradients() -> None:
    check(distances, np.array([1.2, 0.7, 1.9]))
    assert np.isclose(pb.grad(lambda t: math.sin(t))(0.5), math.cos(0.5))
    assert np.isclose(pb.grad(lambda t: sqrt(t))(4.0), 0.25)


class Energy:
    def of(self, x: Any) -> Any:
        return math.exp(x[0]) + x.sum()

    def checked(self, x: Any) -> Any:
        if not math.isfinite(x[0]) or sqrt(pb.stop_gradient(x[1])) <= 0:
            return x[0]
        return x.sum()


def test_functions_of_math_have_gradients_in_methods() -> None:
    energy = Energy()
    for function in (lambda x: energy.of(x), lambda x: getattr(energy, "o" + "f")(x), energy.of):
        assert np.allclose(pb.grad(function)(np.zeros(2)), [2.0, 1.0])
        assert np.allclose(pb.grad(pb.compile(function))(np.zeros(2)), [2.0, 1.0])
    assert np.allclose(pb.grad(lambda x: energy.checked(x))(np.ones(2)), 1.0)


@pytest.mark.parametrize("namespace", [{}, {"__name__": "notebook"}])
def test_a_function_that_exec_has_made(namespace: dict[str, Any]) -> None:
    source = (
        "def f(x):\n    y = np.zeros(3)\n    for i in range(3):\n        y[i] = x[i] * i\n    return y.sum()"
    )
    variables = {"np": np, **namespace}
    exec(source, variables)
    for function in (variables["f"], pb.compile(variables["f"])):
        np.testing.assert_array_equal(pb.grad(function)(np.ones(3)), [0.0, 1.0, 2.0])


def test_ndarray_makes_an_array_and_is_still_the_class() -> None:
    def filled(x: Any) -> Any:
        y = np.ndarray((3,), dtype=x.dtype)
        y[:] = x * x
        y[0] = 2.0 if isinstance(np.arange(2), np.ndarray) and np.ndarray.ndim is not None else 0.0
        return y.sum()

    for function in (filled, pb.compile(filled)):
        value, slope = pb.value_and_grad(function)(np.array([1.0, 2.0, 3.0]))
        assert value == 15.0
        np.testing.assert_array_equal(slope, [0.0, 4.0, 6.0])


def test_hypot_of_several_sides() -> None:
    x = np.array([2.0, 3.0, 6.0])
    for function in (lambda x: math.hypot(x[0], x[1], x[2]), lambda x: math.hypot(*x)):
        value, gradient = pb.value_and_grad(function)(x)
        assert value == 7.0
        np.testing.assert_allclose(gradient, x / 7)
    assert pb.grad(lambda x: math.hypot(x))(-2.0) == -1.0


@pytest.mark.parametrize("shape, order", [(3, None), (3, 1), ((3, 3), None), ((3, 3), 1), ((3, 3), np.inf)])
def test_a_norm_of_scipy_is_a_number_of_its_kind(shape: Any, order: Any) -> None:
    x = random(*np.atleast_1d(shape)).astype(np.float32)
    expected = scipy.linalg.norm(x, order)
    found = pb.compile(lambda x: scipy.linalg.norm(x, order))(x)
    assert type(found) is type(expected)
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("transform", [pb.grad, lambda f: pb.compile(pb.grad(f))])
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, "size 0 inputs unless `otypes` is set"),
        ({"otypes": [np.float32]}, ""),
        ({"signature": "()->()"}, "size 0 inputs unless `otypes` is set"),
        ({"signature": "()->()", "otypes": [float]}, ""),
        ({"signature": "(n)->(n)"}, ""),
        ({"signature": "(n)->()"}, ""),
    ],
)
def test_a_vectorised_function_of_no_elements(transform: Any, options: dict[str, Any], error: str) -> None:
    def function(x: np.ndarray) -> Any:
        found = np.vectorize(lambda t, factor: np.sum(t * t) * factor, excluded=["factor"], **options)
        empty = found(x[:0], factor=2.0)
        return np.sum(empty) + x.sum() * (empty.size + empty.ndim + empty.dtype.itemsize)

    x = np.array([1.0, 2.0])
    if "(n)->(n)" in options.values():
        function = lambda x: np.sum(np.vectorize(lambda t: t * t, **options)(x[:0])) + x.sum()  # noqa: E731
    if error:
        for one in (function, transform(function)):
            with pytest.raises(ValueError, match=error):
                one(x)
        return
    np.testing.assert_allclose(transform(function)(x), function(np.array([1.0, 0.0])) * np.ones(2))


def test_a_function_along_a_dimension_of_no_rows() -> None:
    function = lambda x: np.sum(np.apply_along_axis(np.sum, 1, x[:0])) + x.sum()  # noqa: E731
    for one in (function, pb.grad(function), pb.compile(function)):
        with pytest.raises(ValueError, match="any iteration dimensions are 0"):
            one(np.ones((2, 3)))


# --- SciPy's modules ----------------------------------------------------------------------------------------


def _log_of_sum(module: Any, x: np.ndarray) -> Any:
    return module.logsumexp(x)


LOG_OF_SUM = "log", "sumexp"


@pytest.mark.parametrize(
    "function",
    [
        lambda x: special.logsumexp(x),
        lambda x: _log_of_sum(special, x),
        lambda x: getattr(special, "logsumexp")(x),  # noqa: B009
        lambda x: getattr(special, "".join(LOG_OF_SUM))(x),
        lambda x: vars(special)["logsumexp"](x),
    ],
    ids=["by name", "handed on", "by getattr", "by a computed name", "by vars"],
)
def test_a_function_of_scipy_is_differentiated_however_its_module_is_asked(function: Any) -> None:
    x = np.array([0.5, -1.0, 2.0])
    value, slope = pb.value_and_grad(function)(x)
    np.testing.assert_allclose(value, special.logsumexp(x))
    np.testing.assert_allclose(slope, special.softmax(x))


def test_products_of_truths_are_truths() -> None:
    links = np.array([[True, False, True], [False, False, True], [False, False, False]])

    def products(links: np.ndarray) -> tuple[Any, ...]:
        twice = np.einsum("ij,jk->ik", links, links), np.linalg.matrix_power(links, 3)
        counts = np.linalg.matrix_power(1 * links, 2), np.linalg.matrix_power(1 * links, 0), *twice
        rows = np.dot(links[0], links[:, 2]), links @ links[0], np.einsum("ij->i", links)
        return links @ links, *rows, *counts

    for one, other in zip(pb.compile(products)(links), products(links), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


class _Squares:
    def of(self, x: Any) -> Any:
        return np.fromiter((v * v for v in x), float)


def test_arrays_of_the_elements_that_an_iterator_gives() -> None:
    def program(x: Any) -> Any:
        first = np.fromiter((v * v for v in x), float)
        first[0] = x[1]
        few = np.fromiter(map(np.sin, x), "f4", 2)
        places = np.fromiter(range(len(x)), int)
        return first.sum() + few.sum() + x[places] @ np.fromiter(range(3), float, count=3)

    x = np.array([1.0, 2.0, 3.0])
    slope = np.array([np.cos(1.0), 6.0 + np.cos(2.0), 8.0])
    for function in (pb.value_and_grad(program), pb.compile(pb.value_and_grad(program))):
        value, gradient = function(x)
        np.testing.assert_allclose(value, program(x), rtol=1e-7)
        np.testing.assert_allclose(gradient, slope, rtol=1e-7)
    for function in (pb.grad, lambda f: pb.compile(pb.grad(f))):
        with pytest.raises(ValueError, match="iterator too short: Expected 5 but iterator had only 3 items"):
            function(lambda x: np.fromiter((v for v in x), float, 5).sum())(x)
    np.testing.assert_array_equal(pb.grad(lambda x: _Squares().of(x).sum())(x), 2 * x)
    compiled = pb.compile(lambda x: _Squares().of(x).sum())
    assert compiled(x) == 14.0 and compiled(2 * x) == 56.0
    assert compiled.cache_info().traces == 1


def test_ufuncs_combine_at_places_that_repeat() -> None:
    places = np.array([0, 2, 2, 0])

    def program(x: Any, y: Any) -> Any:
        a, b, count = np.zeros(4), np.ones((3, 4)), np.zeros(3, int)
        a[:], b[:] = x[:4], x[0]
        np.maximum.at(a, places, y)
        np.minimum.at(a, [1, 3], 0.5 * y[:2])
        np.multiply.at(a, [1, 1, -1], y[:3])
        np.add.at(b, (slice(None), places), y)
        np.subtract.at(b, 1, y)
        np.maximum.at(b, (places[:2], places[1:3]), y[:2])
        np.add.at(b, np.array([True, False, True]), 1.5)
        np.add.at(b, slice(1, None), 0.5)
        np.maximum.at(b, ..., 0.1)
        np.multiply.at(b, (slice(0, 2), [1, 1]), 2)
        np.maximum.at(count, [1], 7)
        return (a * np.arange(1, 5)).sum() + (b * b).sum() + count @ np.arange(3)

    check(program, np.array([0.1, 0.5, 0.3, 0.9]), np.array([0.75, 0.2, 0.4, 0.6]))


def test_ufuncs_combine_with_nan_and_refuse_what_they_would_cast() -> None:
    def largest(x: Any) -> Any:
        a = np.zeros(3)
        np.maximum.at(a, [0, 0, 1], x)
        return a

    def counted(x: Any) -> Any:
        count = np.zeros(3, int)
        np.add.at(count, [0, 0, 1], x)
        return count.sum() * x.sum()

    x = np.array([np.nan, 1.0, 2.0])
    with np.errstate(invalid="ignore"):
        expected = largest(x)
        np.testing.assert_array_equal(pb.compile(largest)(x), expected)
        np.testing.assert_array_equal(pb.jvp(largest, (x,), (np.ones(3),))[0], expected)
    for function in (pb.compile(counted), pb.grad(counted)):
        with pytest.raises(UnsupportedError, match=r"numpy\.add\.at: float64 values in an array of int64"):
            function(x)


OBEYED = (
    "np.sum(f, out=np.zeros(()))", "np.add.reduce(f, 1, out=np.zeros(3))",
    "np.sin(x, out=(np.zeros((3, 4)),))",
    "np.dot(x, x.T, out=np.zeros((3, 3)))", "np.modf(x, out=(None, np.zeros((3, 4))))",
    "np.add(x, f[0], out=np.zeros((2, 3, 4)))", "np.clip(x, 0, None, dtype=np.float32)",
    "np.add(x, f, dtype=np.float32, casting='same_kind')", "np.stack([x, f], dtype=np.float32)",
    "np.add(f, f, casting='no')", "np.var(x, 0, dtype=complex)", "np.quantile(x, 0.3, axis=())",
    "np.hypot.reduce(x, axis=())", "x.astype(np.float32, casting='same_kind')",
    "np.maximum.accumulate(x, axis=(1,))",
    "np.linalg.cross(x[:, :3], x[:, 1:], axis=0)",
    "scipy.stats.gmean(x**2, dtype=np.float32)", "scipy.stats.pmean(x, 2, axis=None)", "scipy.stats.hmean(x)",
    "scipy.integrate.cumulative_simpson(x, axis=0, initial=x[:1])",
    "scipy.special.comb(x**2, 1.5, repetition=True)",
    "scipy.special.polygamma([[1], [0], [2]], x**2)",
    "scipy.linalg.lstsq(x, x[:, 0], lapack_driver='gelsd')[0]",
)  # fmt: skip
REFUSED = (
    "np.sum(x, 0, out=np.zeros((3, 4)))", "np.add(x, x, out=np.zeros((3, 4), int))",
    "np.add(x, x, where=x > 0, out=np.zeros((3, 4), int))",
    "np.linalg.multi_dot([x, x.T, x], out=np.zeros((3, 4), complex))",
    "np.add(x, f, casting='no')", "np.add(x, x, casting='foo')", "np.concatenate([x, f], casting='no')",
    "np.concatenate([x, x], dtype=int)", "np.hstack([x, f], dtype=np.float32, casting='safe')",
    "x.astype(int, casting='safe')", "x.astype(int, casting='foo')", "np.std(x, ddof=1, correction=1)",
    "np.clip(x, 0, 1, dtype=int)", "np.clip(x, 0, None, min=0)", "np.cumsum(x, axis=())",
    "np.argmax(x, axis=())",
    "np.hypot.reduce(x, axis=5)", "np.subtract.reduce(x, axis=None)", "np.linalg.norm(x, axis=())",
    "np.pad(x, 1, 'edge', constant_values=1)", "np.cov(x, ddof=0.5)", "np.sum(x, axis=True)",
    "scipy.integrate.cumulative_trapezoid(x, initial=1)", "scipy.linalg.polar(x, side='up')",
    "scipy.linalg.lstsq(x, x[:, 0], lapack_driver='gelsx')", "scipy.linalg.eigh(x @ x.T, driver='fast')",
    "np.partition(x, 1, kind='quicksort')", "np.meshgrid(x[0], x[1], sparse=True, indexing='ji')",
)  # fmt: skip


@pytest.mark.parametrize("expression", (*OBEYED, *REFUSED))
def test_an_option_is_obeyed_or_refused_as_by_numpy(expression: str) -> None:
    given = {"np": np, "scipy": scipy}
    function = eval(f"lambda x, f: {expression}", given)
    rng = np.random.default_rng(1)
    arrays = rng.normal(size=(3, 4)), rng.normal(size=(3, 4)).astype(np.float32)
    found = []
    if expression in REFUSED:
        with pytest.raises((TypeError, ValueError)):
            function(*arrays)
        with pytest.raises((TypeError, ValueError)):
            pb.grad(lambda x: x.sum() + 0 * found.append(function(x, arrays[1])))(arrays[0])
        return
    with np.errstate(all="ignore"):
        wanted = function(*arrays)
        pb.grad(lambda x: (found.append(function(x, arrays[1])), x.sum())[1])(arrays[0])
    wanted, found = (one if isinstance(one, tuple) else (one,) for one in (wanted, found[0]))
    for one, other in zip(map(pb.stop_gradient, found), wanted, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-6)


@np.vectorize
def folded(t: Any, k: float = 2.0) -> Any:
    return math.sin(t) * k if t > 0.5 else (t * t) / k


class Folding:
    def __init__(self) -> None:
        self.folded = np.vectorize(self.one, otypes=[float])

    def one(self, t: Any) -> Any:
        return math.exp(-t) if t > 0.5 else t

    def __call__(self, x: np.ndarray) -> Any:
        return self.folded(x).sum() + folded(x, k=3.0).sum() * folded(x[:1]).sum()


def test_functions_that_were_vectorised_before_take_tensors() -> None:
    check(Folding(), random(3))


def shown_in_rows(x: np.ndarray) -> Any:
    counts = np.histogram2d(x, x**2, bins=(2, 3), weights=x)[0]
    first, second = np.vectorize(lambda t: (t * 2, t * 3))(np.outer(x, x).T[:2])
    rows = counts.reshape(-1), second.ravel(), first.T.reshape(-1)
    for row in rows:  # copies, or the arrays themselves
        row[0] = 9.0
    return counts.sum() + (first * second).sum() + sum(row.sum() for row in rows)


def of_combinations(x: np.ndarray) -> Any:
    scaled = np.vectorize(lambda row, k: row * k / np.sqrt(row @ row), signature="(n),()->(n)")
    pairs = sum(np.prod(pair) for pair in itertools.combinations(x, 2))
    return pairs * (scaled(np.outer(x, x + 1), x) ** 3).sum()


@pytest.mark.drawn(4)
def test_arguments_of_signatures_may_be_numbers_and_combinations_are_lists() -> None:
    check(of_combinations, random(3))


def test_arrays_lie_as_numpy_lays_them_out() -> None:
    check(shown_in_rows, random(3))


LINE = scipy.interpolate.CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0])


def on_a_line(x: np.ndarray) -> Any:
    return (LINE(x) * folded(x)).sum()


def test_a_compiled_function_within_a_transform_reaches_objects_that_have_stand_ins() -> None:
    x = random(3)
    compiled, slope = pb.compile(on_a_line), pb.grad(on_a_line)(x)
    np.testing.assert_allclose(pb.jvp(compiled, (x,), (x,))[1], slope @ x)
    np.testing.assert_allclose(pb.grad(lambda x: 2 * compiled(x))(x), 2 * slope)
