"""Integrals and initial values: SciPy's values, and derivatives of two orders in every way of running."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate

import pullback as pb
from pullback.errors import ArgumentError, ConvergenceError, DTypeError, ShapeError, UnsupportedError

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]
RUNS = pytest.mark.parametrize("run", [lambda f: f, pb.compile], ids=["eager", "compiled"])


def slope(function: Callable[[float], Any], a: float, step: float = 1e-3) -> float:
    """Central differences of fourth order."""
    near, far = ((function(a + k * step) - function(a - k * step)) / (2 * k * step) for k in (1, 2))
    return float((4 * near - far) / 3)


# --- quadrature -------------------------------------------------------------------------------------------

INTEGRALS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "smooth": (lambda x, a: np.exp(-a * x * x) * np.cos(3 * x), 0.0, 2.0),
    "backwards": (lambda x, a: np.exp(-a * x * x) * np.cos(3 * x), 2.0, 0.0),
    "up to infinity": (lambda x, a: np.exp(-a * x), 0.5, np.inf),
    "from infinity": (lambda x, a: np.exp(a * x), -np.inf, 0.5),
    "over all numbers": (lambda x, a: np.exp(-a * x * x), -np.inf, np.inf),
    "narrow": (lambda x, a: a / (1e-3 + (x - 0.3) ** 2), 0.0, 1.0),
}
integrals = pytest.mark.parametrize("name", INTEGRALS)


@integrals
def test_quad_is_that_of_scipy(name: str) -> None:
    function, low, high = INTEGRALS[name]
    found, expected = (one(function, low, high, (1.7,)) for one in (pb.quad, integrate.quad))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9)
    assert found[1] <= 1.5e-8 * max(1.0, abs(found[0]))


@pytest.mark.drawn(6)
@integrals
def test_derivatives_of_quad(name: str) -> None:
    function, low, high = INTEGRALS[name]
    value = lambda a: pb.quad(function, low, high, (a,))[0]  # noqa: E731
    first = pb.grad(value)
    second = pb.grad(first)
    np.testing.assert_allclose(first(1.7), slope(value, 1.7), rtol=1e-6)
    np.testing.assert_allclose(second(1.7), slope(first, 1.7), rtol=1e-6, atol=1e-8)
    for one in (value, first, second):
        np.testing.assert_allclose(pb.compile(one)(1.7), one(1.7), rtol=1e-10, atol=1e-12)


@RUNS
def test_limits_have_derivatives(run: Any) -> None:
    def value(a: Any) -> Any:
        return pb.quad(lambda x: np.exp(-a * x), a, 2 * a)[0]

    np.testing.assert_allclose(run(pb.grad(value))(1.3), slope(value, 1.3), rtol=1e-9)
    batch = run(pb.vmap(pb.grad(value)))(np.array([1.3, 1.0]))
    np.testing.assert_allclose(batch, [slope(value, 1.3), slope(value, 1.0)], rtol=1e-9)


@pytest.mark.drawn(4)
@RUNS
def test_dblquad(run: Any) -> None:
    def value(a: Any, quadrature: Any = pb.dblquad) -> Any:
        function = lambda y, x: x * y * a + np.sin(y * a)  # noqa: E731
        return quadrature(function, 0.0, a, lambda x: x * x, lambda x: a + x)[0]

    np.testing.assert_allclose(run(value)(1.2), value(1.2, integrate.dblquad), rtol=1e-9)
    np.testing.assert_allclose(run(pb.grad(value))(1.2), slope(value, 1.2), rtol=1e-7)


@pytest.mark.drawn(6)
@RUNS
def test_integrals_of_three_variables(run: Any) -> None:
    def value(a: Any, module: Any = pb) -> Any:
        function = lambda z, y, x: x * y * a + np.exp(-a * z)  # noqa: E731
        return module.tplquad(function, 0.0, a, 0.0, lambda x: x, lambda x, y: x * y, 2.0, epsabs=1e-3)[0]

    np.testing.assert_allclose(run(value)(1.2), value(1.2, integrate), rtol=1e-6)


@RUNS
def test_the_end_of_an_integral_over_nothing_has_a_derivative(run: Any) -> None:
    assert run(pb.grad(lambda b: pb.quad(np.cos, 1.0, b)[0]))(1.0) == pytest.approx(np.cos(1.0))


@pytest.mark.drawn(6)
def test_a_smooth_integrand_is_evaluated_once_for_each_place() -> None:
    evaluated: list[Any] = []
    pb.grad(lambda a: pb.quad(lambda x: evaluated.append(x) or a * x * x, 0.0, 1.0)[0])(1.3)
    assert len(evaluated) == 21
    evaluated.clear()
    pb.grad(lambda a: pb.dblquad(lambda y, x: evaluated.append(x) or a * x * y, 0.0, 1.0, 0.0, 1.0)[0])(1.3)
    assert len(evaluated) == 21 * 21


@pytest.mark.drawn(6)
@RUNS
def test_nquad(run: Any) -> None:
    def value(a: Any, module: Any = pb) -> Any:
        ranges = [lambda y, b: (0.0, y * b), (0.0, a)]
        return module.nquad(lambda x, y, b: np.sin(x) * y * b, ranges, (a,), {"epsabs": 1e-6})[0]

    np.testing.assert_allclose(run(value)(1.2), value(1.2, integrate), rtol=1e-9)
    np.testing.assert_allclose(run(pb.grad(value))(1.2), slope(value, 1.2), rtol=1e-7)


@pytest.mark.drawn(3)
@RUNS
def test_integrals_are_split_at_points(run: Any) -> None:
    value = lambda a: pb.quad(lambda x: abs(x - 0.3) * a, 0.0, 2 * a, points=[0.3])[0]  # noqa: E731
    np.testing.assert_allclose(run(value)(1.0), (0.09 + 1.7**2) / 2, rtol=1e-12)
    np.testing.assert_allclose(run(pb.grad(value))(1.0), slope(value, 1.0), rtol=1e-9)
    with pytest.raises(ArgumentError, match="quad: points are for finite limits"):
        run(lambda a: pb.quad(lambda x: a * x, 0.0, np.inf, points=[1.0])[0])(1.0)


@RUNS
def test_fixed_quad(run: Any) -> None:
    expected = integrate.fixed_quad(lambda x: np.exp(2.0 * x), 0.0, 2.0, n=6)[0]
    value = lambda a: pb.fixed_quad(lambda x: np.exp(a * x), 0.0, a, n=6)[0]  # noqa: E731
    np.testing.assert_allclose(run(value)(2.0), expected)
    np.testing.assert_allclose(run(pb.grad(value))(2.0), slope(value, 2.0), rtol=1e-9)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 10])
def test_simpson(count: int) -> None:
    rng = np.random.default_rng(count)
    y, x = rng.normal(size=(2, count)), np.sort(rng.normal(size=count))
    np.testing.assert_allclose(pb.simpson(y, x), integrate.simpson(y, x), rtol=1e-12)
    np.testing.assert_allclose(pb.simpson(y.T, dx=0.3, axis=0), integrate.simpson(y, dx=0.3), rtol=1e-12)
    weights = pb.compile(pb.grad(lambda y: pb.simpson(y, x).sum()))(y)
    np.testing.assert_allclose((weights * y).sum(), integrate.simpson(y, x).sum(), atol=1e-12)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("count", [2, 3, 6])
@pytest.mark.parametrize("name", ["cumulative_trapezoid", "cumulative_simpson"])
def test_cumulative_integrals(name: str, count: int) -> None:
    rng = np.random.default_rng(count)
    y, x = rng.normal(size=(2, count)), np.sort(rng.normal(size=count))
    function = getattr(integrate, name)
    for options in ({"x": x}, {"dx": 0.3, "initial": 0}, {"x": x, "initial": 0}):
        expected = function(y, **options)
        sums = pb.compile(lambda y, options=options: function(y, **options))(pb.tensor(y))
        np.testing.assert_allclose(sums, expected, rtol=1e-12, atol=1e-14)
        weights = pb.grad(lambda y, options=options: function(y, **options).sum())(y)
        np.testing.assert_allclose((weights * y).sum(), expected.sum(), atol=1e-12)


def test_romb() -> None:
    y = np.random.default_rng(1).normal(size=(9, 2))
    found = pb.compile(lambda y: integrate.romb(y, 0.3, axis=0))(pb.tensor(y))
    np.testing.assert_allclose(found, integrate.romb(y, 0.3, axis=0))
    with pytest.raises(ArgumentError, match="romb: there are 4 samples"):
        pb.romb(np.ones(4))


@pytest.mark.drawn(4)
@RUNS
def test_an_integral_that_diverges_is_refused(run: Any) -> None:
    with pytest.raises(ConvergenceError, match="quad: on 100 intervals"):
        run(lambda a: pb.quad(lambda x: a / x, 0.0, 1.0)[0])(1.0)


def test_integrands_of_other_shapes_are_refused() -> None:
    with pytest.raises(ShapeError, match="quad: func returned .*expected one number"):
        pb.quad(lambda x: x * np.ones(2), 0.0, 1.0)
    with pytest.raises(ShapeError, match="3 values for 2 samples"):
        pb.simpson(np.ones(2), np.ones(3))


# --- initial values ---------------------------------------------------------------------------------------

RATES = np.array([1.5, 1.0, 0.8])
FIRST = np.array([2.0, 1.0])
TIMES = np.linspace(0.0, 4.0, 4)


def animals(t: Any, y: Any, a: Any) -> Any:
    return np.stack([a[0] * y[0] - a[1] * y[0] * y[1], -y[1] + a[2] * y[0] * y[1] * np.cos(0.1 * t)])


METHODS = pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853"])


@METHODS
def test_steps_are_those_of_scipy(method: str) -> None:
    options: dict[str, Any] = {"args": (RATES,), "rtol": 1e-6, "atol": 1e-8}
    found, expected = (
        one.solve_ivp(animals, (0.0, 4.0), FIRST, method, **options) for one in (pb, integrate)
    )
    assert len(found.t) == len(expected.t)
    assert found.nfev == expected.nfev
    np.testing.assert_allclose(found.t, expected.t, rtol=1e-7)
    np.testing.assert_allclose(found.y, expected.y, rtol=1e-7)


@pytest.mark.drawn(4)
@METHODS
@RUNS
def test_values_at_times_are_those_of_scipy(run: Any, method: str) -> None:
    def values(module: Any) -> Callable[[Any], Any]:
        return lambda a: (
            module.solve_ivp(animals, (0.0, 4.0), FIRST, method, TIMES, args=(a,), rtol=1e-6, atol=1e-8).y
        )

    np.testing.assert_allclose(run(values(pb))(RATES), values(integrate)(RATES), rtol=1e-8)


def oscillator(t: Any, y: Any, stiffness: Any) -> Any:
    return np.stack([y[1], stiffness * (1 - y[0] ** 2) * y[1] - y[0]])


@pytest.mark.parametrize("method", ["Radau", "BDF"])
class TestStiff:
    def solve(
        self, module: Any, method: str, stiffness: Any, times: tuple[float, float] = (10.0, 40.0)
    ) -> Any:
        return module.solve_ivp(
            oscillator, (0.0, times[1]), np.array([2.0, 0.0]), method, times, args=(stiffness,), rtol=1e-6,
            atol=1e-8,
        )  # fmt: skip

    @pytest.mark.drawn(6)
    @RUNS
    def test_values(self, run: Any, method: str) -> None:
        found = run(lambda mu: self.solve(pb, method, mu).y)(50.0)
        error = {"rtol": 2e-6} if method == "Radau" else {"rtol": 1e-5, "atol": 1e-4}  # of lower order
        np.testing.assert_allclose(found, self.solve(integrate, "Radau", 50.0).y, **error)

    @pytest.mark.drawn(6)
    def test_few_steps_are_taken(self, method: str) -> None:
        assert self.solve(pb, method, 50.0).steps < 250

    @pytest.mark.drawn(6)
    @RUNS
    def test_derivatives_are_those_of_the_steps(self, run: Any, method: str) -> None:
        last = lambda mu: self.solve(pb, method, mu, (0.5, 2.0)).y[0, -1]  # noqa: E731
        error = 1e-4 if method == "Radau" else 2e-3  # BDF's steps may err as much, and do more often
        np.testing.assert_allclose(run(pb.grad(last))(50.0), slope_of_the_oscillator(), rtol=error)


@functools.cache
def slope_of_the_oscillator() -> float:
    last = lambda mu: TestStiff().solve(pb, "Radau", mu, (0.5, 2.0)).y[0, -1]  # noqa: E731
    return slope(last, 50.0, 1e-2)


@pytest.mark.drawn(6)
@RUNS
def test_ends_and_second_derivatives_of_stiff_methods(run: Any) -> None:
    def value(a: Any, method: str) -> Any:
        times, options = (0.0, a), {"rtol": 1e-7, "atol": 1e-9}
        return pb.solve_ivp(lambda t, y: -a * y, times, np.ones(1), method, **options).y[0, -1]

    for method in ("Radau", "BDF"):
        first = pb.grad(lambda a, method=method: value(a, method))
        np.testing.assert_allclose(run(first)(1.1), -2.2 * np.exp(-1.21), rtol=1e-4)
        np.testing.assert_allclose(run(pb.grad(first))(1.1), (4.84 - 2.0) * np.exp(-1.21), rtol=1e-3)


@pytest.mark.drawn(6)
def test_derivatives_fit_the_steps_that_kinks_make_short() -> None:
    """Where kinks are met depends on the last digits; the integral of a linear force's square does not."""
    knots, forces = np.linspace(0.0, 4.0, 33), np.random.default_rng(7).standard_normal(33)

    def work(forces: Any) -> Any:
        def pendulum(t: Any, y: Any) -> Any:
            force = np.interp(t, knots, forces)
            return np.stack([y[1], np.sin(y[0]) - 0.1 * y[1] + force, force * force])

        first = np.array([np.pi, 0.0, 0.0])
        return pb.solve_ivp(pendulum, (0.0, 4.0), first, t_eval=[4.0], rtol=1e-7, atol=1e-7).y[2, -1]

    squares = np.zeros((33, 33))  # of which the integral is a quadratic form
    for k in range(32):
        squares[k : k + 2, k : k + 2] += knots[1] / 6.0 * np.array([[2.0, 1.0], [1.0, 2.0]])
    np.testing.assert_allclose(pb.grad(pb.compile(work))(forces), 2.0 * squares @ forces, atol=1e-3)


@RUNS
def test_tolerances_may_be_arguments(run: Any) -> None:
    def last(rate: Any, tolerance: Any) -> Any:
        found = pb.solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), np.ones(1), t_eval=[1.0], rtol=tolerance)
        return found.y[0, -1]

    np.testing.assert_allclose(run(pb.grad(last))(2.0, np.float64(1e-9)), -np.exp(-2.0), rtol=1e-5)


def test_backwards_in_time() -> None:
    found, expected = (
        one.solve_ivp(lambda t, y: -y * t, (2.0, 0.0), np.ones(1), t_eval=[2.0, 1.0, 0.0])
        for one in (pb, integrate)
    )
    np.testing.assert_allclose(found.y, expected.y, rtol=1e-9)


ADJOINTS: dict[str, dict[str, Any]] = {
    "discrete": {},
    "discrete, steps computed again": {"checkpoint": True},
    "continuous": {"adjoint": "continuous"},
}
adjoints = pytest.mark.parametrize("name", ADJOINTS)


def loss(a: Any, **options: Any) -> Any:
    """Of rates, first values and times."""
    times = np.linspace(0.0, 1.0, 3) * 1.7 * a[1]
    found = pb.solve_ivp(
        animals,
        (0.0, 1.7 * a[1]),
        FIRST * a[:2],
        "DOP853",
        times,
        args=(a,),
        rtol=1e-8,
        atol=1e-10,
        **options,
    )
    return (found.y**2).sum()


@pytest.mark.drawn(4)
def test_complex_values_beside_real_ones() -> None:
    def last(rate: Any, **options: Any) -> Any:
        def rates(t: Any, y: Any) -> Any:
            return {"wave": 1j * rate * y["wave"], "size": y["wave"].real.sum()}

        start = {"wave": np.array([1.0, 2.0j]), "size": 0.0}
        found = pb.solve_ivp(rates, (0.0, 1.0), start, t_eval=[1.0], rtol=1e-9, atol=1e-10, **options).y
        return found["size"][0] + found["wave"].imag.sum()

    exact = lambda a: (np.sin(a) + 2.0 * np.cos(a) - 2.0) / a + np.sin(a) + 2.0 * np.cos(a)  # noqa: E731
    for one in (pb.grad(last), pb.compile(pb.grad(last))):
        np.testing.assert_allclose(one(1.3), slope(exact, 1.3), rtol=1e-6)
    with pytest.raises(UnsupportedError, match="atol must be one number where values are complex"):
        pb.solve_ivp(lambda t, y: y, (0.0, 1.0), np.array([1j]), atol=[1e-6])
    with pytest.raises(DTypeError, match="returns complex numbers for real unknowns"):
        pb.solve_ivp(lambda t, y: 1j * y, (0.0, 1.0), np.ones(1))


def test_steps_that_make_arrays_are_computed_again() -> None:
    """Backward runs the program as it was run, in which `np.array` takes Tensors."""

    def last(rate: Any, **options: Any) -> Any:
        def decay(t: Any, y: Any) -> Any:
            return np.array([-rate * y[0], rate * y[0]])

        return pb.solve_ivp(decay, (0.0, 1.0), np.array([1.0, 0.0]), **options).y[1, -1]

    assert pb.grad(last)(1.3, checkpoint=True) == pytest.approx(pb.grad(last)(1.3), rel=1e-12)


@adjoints
class TestAdjoint:
    @pytest.mark.drawn(6)
    def test_is_that_of_differences(self, name: str) -> None:
        found = pb.grad(loss)(RATES, **ADJOINTS[name])
        expected = [slope(lambda x, one=one: loss(RATES + x * one), 0.0) for one in np.eye(3)]
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    @pytest.mark.drawn(6)
    def test_compiled_is_as_eager(self, name: str) -> None:
        slopes = pb.grad(lambda a: loss(a, **ADJOINTS[name]))
        np.testing.assert_allclose(pb.compile(slopes)(RATES), slopes(RATES), rtol=1e-7)


@pytest.mark.drawn(6)
def test_second_derivatives_of_initial_values() -> None:
    def value(a: Any) -> Any:
        return pb.solve_ivp(lambda t, y: -a * y, (0.0, 1.0), np.ones(1), t_eval=[1.0], rtol=1e-8).y.sum()

    for run in (lambda f: f, pb.compile):
        np.testing.assert_allclose(run(pb.grad(pb.grad(value)))(1.5), np.exp(-1.5), rtol=1e-5)


@pytest.mark.drawn(6)
def test_one_program_serves_all_numbers_of_steps() -> None:
    value = pb.compile(
        pb.grad(lambda a: pb.solve_ivp(lambda t, y: -a * y, (0.0, 1.0), np.ones(1), t_eval=[1.0]).y.sum())
    )
    for a in (0.1, 1.0, 30.0):
        np.testing.assert_allclose(value(a), -np.exp(-a), atol=2e-3)
    assert value.cache_info().traces == 1


@RUNS
def test_batches_take_steps_of_their_own(run: Any) -> None:
    def value(a: Any) -> Any:
        return pb.solve_ivp(lambda t, y: -a * y, (0.0, 1.0), np.ones(1), t_eval=[1.0]).y.sum()

    batch = np.array([0.5, 5.0, 20.0])
    np.testing.assert_allclose(run(pb.vmap(value))(batch), [value(one) for one in batch], rtol=1e-12)


@pytest.mark.drawn(6)
@RUNS
def test_odeint_of_nested_values(run: Any) -> None:
    def last(a: Any) -> Any:
        found = pb.odeint(
            lambda y, t, a: {"p": -y["p"] * a, "q": y["p"].sum() * a},
            {"p": np.ones(2), "q": 0.0},
            np.linspace(0.0, 1.0, 3),
            a,
        )
        return found["q"][-1]

    np.testing.assert_allclose(run(last)(1.3), 2 * (1 - np.exp(-1.3)), rtol=1e-6)
    np.testing.assert_allclose(run(pb.grad(last))(1.3), 2 * np.exp(-1.3), rtol=1e-6)


@pytest.mark.drawn(4)
@RUNS
def test_a_solution_that_grows_without_bound_is_refused(run: Any) -> None:
    reason = r"solve_ivp: after \d+ steps, at t = 0\.9999\d*, the step is shorter"
    with pytest.raises(ConvergenceError, match=reason):
        run(lambda a: pb.solve_ivp(lambda t, y: a * y * y, (0.0, 2.0), np.ones(1), t_eval=[2.0]).y)(1.0)


def test_what_is_not_supported_is_refused() -> None:
    def solve(**options: Any) -> Any:
        return pb.solve_ivp(lambda t, y: -y, (0.0, 1.0), np.ones(1), **options)

    with pytest.raises(UnsupportedError, match="adjoint='continuous' has neither events nor dense output"):
        solve(events=lambda t, y: y[0], t_eval=[1.0], adjoint="continuous")
    with pytest.raises(ArgumentError, match="method='Euler' is not known"):
        solve(method="Euler")
    with pytest.raises(ArgumentError, match="adjoint='continuous' needs the times"):
        solve(adjoint="continuous")


@pytest.mark.drawn(4)
def test_integrals_of_all_rates_are_one_loop() -> None:
    """What each makes anew, as the nodes of its rule, has sizes of one name: their searches are alike."""

    def total(x: Any, rates: np.ndarray) -> Any:
        def integral(rate: Any) -> Any:
            return integrate.quad(lambda u: np.exp(-x * u * rate) * np.cos(u), 0.0, np.inf)[0]

        return np.sum(np.stack([integral(rate) for rate in rates]) ** 2)

    compiled = pb.compile(pb.value_and_grad(total))
    rates = np.linspace(1.0, 2.0, 8)
    for found, expected in zip(compiled(1.3, rates), pb.value_and_grad(total)(1.3, rates)):
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert compiled.source().count("while ") == 1
