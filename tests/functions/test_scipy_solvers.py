"""SciPy's own names of solvers, in functions that are differentiated or compiled."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from extent import drawn
from scipy import integrate, optimize
from scipy.optimize import brentq

import pullback as pb
from pullback.errors import ConvergenceError, LinearAlgebraError, UnsupportedError

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]


MIXING = np.array([[0.0, 1.0], [1.0, 0.5]])


def cubic(x: Any, a: Any) -> Any:
    return x**3 + x - a


def bowl(x: Any, a: Any) -> Any:
    return ((x - a) ** 2).sum() + (x**4).sum()


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "root": lambda a: optimize.root(lambda x: cubic(x, a), np.ones(2), tol=1e-13).x.sum(),
    "root with a Jacobian": lambda a: scipy.optimize.root(
        cubic, [1.0, 1.0], (a,), jac=lambda x, a: np.diag(3 * x**2 + 1)
    ).x.sum(),
    "fsolve": lambda a: optimize.fsolve(cubic, 1.0, (a,))[0],
    "minimize": lambda a: optimize.minimize(
        bowl, np.zeros(2), a, jac=lambda x, a: 2 * (x - a) + 4 * x**3, tol=1e-11
    ).x.sum(),
    "least_squares": lambda a: optimize.least_squares(
        lambda x: np.stack([x[0] - a, x[1] * a - 2]), np.ones(2)
    ).x.sum(),
    "brentq": lambda a: brentq(lambda x: x**3 - a, 0.0, 5.0),
    "brentq and what it tells": lambda a: brentq(lambda x: x**3 - a, 0.0, 5.0, full_output=True)[1].root,
    "fsolve with options": lambda a: optimize.fsolve(cubic, 1.0, (a,), maxfev=200, factor=10.0)[0],
    "bisect": lambda a: optimize.bisect(lambda x: x**3 - a, 0.0, 5.0),
    "root_scalar": lambda a: optimize.root_scalar(lambda x: x**3 - a, bracket=(0.0, 5.0)).root,
    "fixed_point": lambda a: optimize.fixed_point(lambda x: np.cos(x) * a, 0.5, xtol=1e-12).sum(),
    "quad": lambda a: integrate.quad(lambda x: np.exp(-a * x), 0, np.inf)[0],
    "fixed_quad": lambda a: integrate.fixed_quad(lambda x: np.exp(-a * x), 0.0, 1.0)[0],
    "simpson": lambda a: integrate.simpson(np.linspace(0, 1, 6) ** 2 * a),
    "solve_ivp": lambda a: integrate.solve_ivp(
        lambda t, y: -a * y, (0, 1), [1.0, 2.0], t_eval=[1.0], rtol=1e-9, atol=1e-10
    ).y.sum(),
    "solve_ivp with a list of arguments": lambda a: integrate.solve_ivp(
        lambda t, y, rate: -rate * y, (0, 1), [1.0], t_eval=[1.0], args=[a], rtol=1e-9, atol=1e-10
    ).y.sum(),
    "solve_ivp of complex numbers": lambda a: integrate.solve_ivp(
        lambda t, y: -1j * a * (MIXING @ y), (0, 1), np.array([1.0, 0.3j]), t_eval=[0.4, 1.0],
        rtol=1e-9, atol=1e-10, dense_output=True,
    ).sol(np.array([0.3, 1.0])).imag.sum(),
    "odeint with options": lambda a: integrate.odeint(
        lambda y, t: -a * y, [1.0], [0.0, 1.0], mxstep=900, hmax=0.1, Dfun=lambda y, t: np.array([[-a]])
    )[-1].sum(),
    "odeint": lambda a: scipy.integrate.odeint(lambda y, t: -a * y, [1.0, 2.0], np.linspace(0, 1, 3))[
        -1
    ].sum(),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", drawn(PROGRAMS, one_in=2))
def test_has_derivatives_and_is_compiled(name: str) -> None:
    function = PROGRAMS[name]
    plain = function(1.3)
    near, far = ((function(1.3 + k * 1e-3) - function(1.3 - k * 1e-3)) / (k * 2e-3) for k in (1, 2))
    np.testing.assert_allclose(pb.compile(function)(1.3), plain, rtol=1e-7)
    slope = pb.grad(function)(1.3)
    np.testing.assert_allclose(slope, (4 * near - far) / 3, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(pb.compile(pb.grad(function))(1.3), slope, rtol=1e-10)


@pytest.mark.parametrize("run", [lambda f: f, pb.compile], ids=["eager", "compiled"])
def test_a_tolerance_that_cannot_be_reached_is_no_failure(run: Any) -> None:
    function = lambda a: optimize.root(lambda x: cubic(x, a), np.ones(3), tol=1e-18).x.sum()  # noqa: E731
    np.testing.assert_allclose(run(function)(2.0), 3.0)
    np.testing.assert_allclose(run(pb.grad(function))(2.0), 0.75)


@pytest.mark.parametrize("scale", [1.0, 1e10])
def test_a_minimum_at_which_rounding_ends_the_search_has_a_derivative(scale: float) -> None:
    def valley(x: Any, a: Any) -> Any:
        return scale * ((100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum() + a * x[0])

    def minimum(a: Any) -> Any:
        return optimize.minimize(valley, np.zeros(4), (a,), method="BFGS", options={"gtol": 1e-12}).x

    # how the machine rounds decides whether SciPy calls that a success
    slope = pb.grad(lambda a: minimum(a).sum())(0.3)
    exact = pb.grad(lambda a: pb.minimize(valley, np.zeros(4), (a,), method="Newton", gtol=1e-10).sum())(0.3)
    assert slope == pytest.approx(exact, rel=1e-3)


def test_outside_they_are_scipys() -> None:
    found = optimize.root(lambda x: x**2 - 4.0, 1.0)
    assert found.nfev > 0
    np.testing.assert_allclose(found.x, 2.0)


def test_what_is_known_of_a_solution_is_kept_where_nothing_is_traced() -> None:
    seen = []

    def value(a: Any) -> Any:
        found = optimize.root(lambda x: x**2 - a, np.ones(1))
        seen.append(found.nfev)
        return found.x.sum()

    assert pb.grad(value)(4.0) == pytest.approx(0.25)
    assert seen[0] > 0


def test_integrals_between_limits_of_single_precision_are_taken_in_double() -> None:
    value, slope = pb.value_and_grad(lambda a: integrate.quad(np.cos, a, a**2)[0])(np.float32(1.3))
    assert value == pytest.approx(np.sin(1.69) - np.sin(1.3), abs=1e-6)
    assert slope == pytest.approx(2.6 * np.cos(1.69) - np.cos(1.3), abs=1e-5)


def test_a_jacobian_of_the_users_is_not_needed() -> None:
    options: dict[str, Any] = {"method": "Radau", "t_eval": [0.1], "jac": lambda t, y: np.array([[-1.3]])}

    def last(a: Any) -> Any:
        return integrate.solve_ivp(lambda t, y: np.array([-a * y[0]]), (0, 0.1), [1.0], **options).y[0, 0]

    assert pb.grad(last)(1.3) == pytest.approx(-0.1 * np.exp(-0.13), rel=1e-3)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("run", [lambda f: f, pb.compile], ids=["eager", "compiled"])
def test_refusals(run: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"scipy\.integrate\.solve_ivp: min_step"):
        run(pb.grad(lambda a: integrate.solve_ivp(lambda t, y: -a * y, (0, 1), [1.0], min_step=0.1).y.sum()))(
            1.0
        )
    with pytest.raises(ConvergenceError, match=r"scipy\.optimize\.root: "):
        run(pb.grad(lambda a: optimize.root(lambda x: x**2 + a, np.ones(1)).x.sum()))(1.0)
    with pytest.raises(ConvergenceError, match=r"precision loss"):
        run(pb.grad(lambda a: optimize.minimize(bent, np.full(1, 1.4), (a,), method="BFGS").x.sum()))(0.5)
    with pytest.raises(UnsupportedError, match=r"scipy\.optimize\.minimize: callback"):
        run(pb.grad(lambda a: optimize.minimize(bowl, np.ones(1), (a,), callback=print).x.sum()))(1.0)
    with pytest.raises(UnsupportedError, match=r"scipy\.integrate\.quad: weight, wvar"):
        run(pb.grad(lambda a: integrate.quad(np.exp, 0.0, 1.0, weight="cos", wvar=a)[0]))(np.ones(()))


def stepping(x: Any, a: Any) -> Any:
    """A function whose sign changes at a, with the same slope on both sides."""
    return np.where(x > a, 1.0 + x, x - 1.0)


def bent(x: Any, a: Any) -> Any:
    """Least at a, where its slope jumps over 0."""
    return (abs(x - a) + 0.5 * x**2).sum()


NO_SOLUTIONS: dict[str, Callable[[Any], Any]] = {
    **{
        name: lambda a, name=name: getattr(optimize, name)(stepping, 0.0, 2.0, (a,))
        for name in ("brentq", "bisect", "brenth", "ridder", "toms748")
    },
    "root_scalar": lambda a: optimize.root_scalar(stepping, (a,), bracket=(0.0, 2.0)).root,
    "a jump between flat parts": lambda a: brentq(lambda x: np.where(x > a, 1.0, -1.0), 0.0, 2.0),
    "a jump with a root outside": lambda a: brentq(lambda x: np.where(x > a, x, -x), 0.1, 2.0),
    "a pole": lambda a: brentq(lambda x: 1.0 / (x - a), 0.1, 2.0),
    "no convergence": lambda a: optimize.fixed_point(lambda x: np.where(x > a, 0.2, 0.8), 0.5).sum(),
    "a slope of zero": lambda a: optimize.newton(lambda x: (x - a) ** 2, 1.4),
    "Nelder-Mead": lambda a: optimize.minimize(bent, np.array([1.4]), (a,), method="Nelder-Mead").x.sum(),
    "minimize_scalar": lambda a: optimize.minimize_scalar(lambda x: bent(x, a)).x,
    "least_squares": lambda a: optimize.least_squares(lambda x: abs(x - a) + 0.5, np.array([1.4])).x.sum(),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", NO_SOLUTIONS)
def test_what_is_no_solution_has_no_derivative(name: str) -> None:
    """Neither where the equations do not depend on the argument but by where they jump."""
    for slope in (pb.grad(NO_SOLUTIONS[name]), pb.compile(pb.grad(NO_SOLUTIONS[name]))):
        with pytest.raises((ConvergenceError, LinearAlgebraError)):
            slope(0.5)


def test_the_error_at_a_jump_says_what_is_there() -> None:
    with pytest.raises(ConvergenceError, match=r"brentq: the equations have no root .* 5\.0e-01.*jump"):
        pb.grad(lambda a: brentq(stepping, 0.0, 2.0, (a,)))(0.5)


@pytest.mark.drawn(4)
def test_solutions_for_each_of_many_numbers_are_one_loop() -> None:
    """SciPy is asked by one function of Python's for equations alike, so steps with one each are alike."""

    def total(x: Any, rates: np.ndarray) -> Any:
        return sum(np.sum(optimize.root(lambda u, q=q: u**3 + x * u - q, np.ones(2)).x) for q in rates)

    compiled = pb.value_and_grad(pb.compile(total))
    lines = []
    for count in (9, 18):
        rates = np.linspace(1.0, 2.0, count)
        for found, expected in zip(compiled(1.3, rates), pb.value_and_grad(total)(1.3, rates)):
            np.testing.assert_allclose(found, expected, rtol=1e-9)
        lines.append(len(compiled.source().splitlines()))
    assert lines[1] <= lines[0] + 4


def test_solvers_with_other_settings_stay_apart() -> None:
    """What SciPy is told beside the equation belongs to the call."""

    @pb.compile
    def roots(x: Any) -> Any:
        rough = optimize.root(lambda u: u**3 - x, np.ones(1), tol=1e-1).x
        return rough, optimize.root(lambda u: u**3 - x, np.ones(1), tol=1e-14).x

    rough, exact = roots(2.0)
    assert abs(exact[0] ** 3 - 2) < 1e-12 < abs(rough[0] ** 3 - 2)
