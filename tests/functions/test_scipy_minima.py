"""SciPy's minima with bounds and constraints, fits and roots of numbers, differentiated and compiled."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from extent import drawn
from scipy import optimize

import pullback as pb
from pullback.errors import (
    ArgumentError,
    ConvergenceError,
    DTypeError,
    LinearAlgebraError,
    OutputError,
    UnsupportedError,
)

pytestmark = [pytest.mark.usefixtures("partly_compiled"), pytest.mark.part(8)]
RUNS = pytest.mark.parametrize("run", [pb.grad, pb.compile], ids=["eager", "compiled"])
TIMES = np.linspace(0.0, 2.0, 12)
NOISE = 0.03 * np.cos(17.0 * TIMES)
ROWS = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]])
TIGHT = {"ftol": 1e-14, "xtol": 1e-14, "gtol": 1e-14}


def distance(x: Any, a: Any) -> Any:
    return ((x - a * np.array([1.0, 2.0, 3.0])) ** 2).sum() + 0.1 * (x**4).sum() + x[0] * x[1] * a


def gradient(x: Any, a: Any) -> Any:
    return 2 * (x - a * np.array([1.0, 2.0, 3.0])) + 0.4 * x**3 + a * np.array([x[1], x[0], 0.0])


def smallest(a: Any, method: Any = "SLSQP", **options: Any) -> Any:
    given = {"ftol": 1e-15} if method == "SLSQP" else None
    found = optimize.minimize(
        distance, np.array([0.3, 0.4, 0.5]), (a,), method, jac=gradient, options=given, **options
    )
    return found.x[0] + 2 * found.x[1] + 3 * found.x[2]


def inside_of_ball(a: Any) -> dict[str, Any]:
    return {"type": "ineq", "fun": lambda x: a - (x**2).sum()}


def decay(t: Any, p: Any, q: Any) -> Any:
    return p * np.exp(-q * t)


def samples(a: Any) -> Any:
    return a * np.exp(-1.3 * TIMES) + NOISE


def misfit(p: Any, a: Any) -> Any:
    return p[0] * np.exp(-p[1] * TIMES) - samples(a)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "active bounds": lambda a: smallest(
        a, "L-BFGS-B", bounds=[(0, None), (0.5, 1.0), (None, 1.5)], tol=1e-14
    ),
    "bounds that move": lambda a: smallest(a, bounds=[(a / 2, 9.0), (-9.0, a / 4), (-9.0, 9.0)]),
    "bounds as SciPy's": lambda a: smallest(a, bounds=optimize.Bounds(-1.0, [0.2, 0.3, 0.4])),
    "active inequality": lambda a: smallest(a, constraints=inside_of_ball(a)),
    "inactive inequality": lambda a: smallest(a, constraints=[inside_of_ball(90 * a)]),
    "equality and bounds": lambda a: smallest(
        a, bounds=[(0.4, 3.0)] * 3, constraints={"type": "eq", "fun": lambda x, b: x.sum() - b, "args": (a,)}
    ),
    "linear constraint": lambda a: smallest(
        a, constraints=optimize.LinearConstraint(ROWS, [1.0, 0.2], [1.0, 9.0])
    ),
    "nonlinear constraint": lambda a: smallest(
        a, constraints=optimize.NonlinearConstraint(lambda x: x[0] * x[1] + a, 1.1, np.inf)
    ),
    "minimize_scalar": lambda a: optimize.minimize_scalar(lambda x: (x - a) ** 2 + 0.1 * x**4, tol=1e-10).x,
    "minimize_scalar at a bound": lambda a: optimize.minimize_scalar(
        lambda x: (x - a) ** 2, bounds=(2 * a, 9.0), method="bounded", options={"xatol": 1e-12}
    ).x,
    "brent": lambda a: optimize.brent(lambda x: (x - a) ** 2 + 0.1 * x**4),
    "golden": lambda a: optimize.golden(lambda x: (x - a) ** 2 + 0.1 * x**4),
    "fminbound": lambda a: optimize.fminbound(lambda x: (x - a) ** 2 + 0.1 * x**4, 0.0, 3.0, xtol=1e-12),
    "value of a minimum": lambda a: optimize.minimize(distance, np.zeros(3), (a,), tol=1e-12).fun,
    "least_squares in bounds": lambda a: optimize.least_squares(
        misfit, np.array([1.0, 0.5]), args=(a,), bounds=([0.0, 0.0], [9.0, 1.1]), **TIGHT
    ).x.sum(),
    "curve_fit": lambda a: optimize.curve_fit(decay, TIMES, samples(a), p0=[1.0, 1.0])[0].sum(),
    "curve_fit with options": lambda a: optimize.curve_fit(
        decay, TIMES, samples(a), [1.0, 1.0], method="trf", maxfev=900, ftol=1e-12, x_scale="jac"
    )[0].sum(),
    "curve_fit's covariance": lambda a: optimize.curve_fit(
        decay, TIMES, samples(a), sigma=1.0 + TIMES
    )[1][0, 1],
    "curve_fit in bounds": lambda a: optimize.curve_fit(
        decay, TIMES, samples(a), [1.0, 0.5], bounds=(0.0, [9.0, 1.1]), absolute_sigma=True
    )[0].sum(),
    "newton": lambda a: optimize.newton(lambda x: x**3 - a, 1.0),
    "newton with derivatives": lambda a: optimize.newton(
        lambda x: x**3 - a, 1.0, fprime=lambda x: 3 * x**2, fprime2=lambda x: 6 * x
    ),
    "newton of several": lambda a: optimize.newton(lambda x: x**3 - a, np.array([1.0, 2.0])).sum(),
    "brenth": lambda a: optimize.brenth(lambda x: x**3 - a, 0.0, 5.0 * a),
    "ridder": lambda a: optimize.ridder(lambda x: x**3 - a, 0.0, 5.0),
    "toms748": lambda a: optimize.toms748(lambda x: x**3 - a, 0.0, 5.0),
    "root_scalar's secant": lambda a: optimize.root_scalar(lambda x: x**3 - a, x0=1.0, x1=1.5).root,
    "root_scalar's newton": lambda a: optimize.root_scalar(
        lambda x: x**3 - a, x0=1.0, fprime=lambda x: 3 * x**2
    ).root,
}  # fmt: skip


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", drawn(PROGRAMS, one_in=2))
def test_has_derivatives_and_is_compiled(name: str) -> None:
    function = PROGRAMS[name]
    near, far = ((function(1.3 + k * 1e-2) - function(1.3 - k * 1e-2)) / (k * 2e-2) for k in (1, 2))
    np.testing.assert_allclose(pb.compile(function)(1.3), function(1.3), rtol=1e-5)
    slope = pb.grad(function)(1.3)
    np.testing.assert_allclose(slope, (4 * near - far) / 3, rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(pb.compile(pb.grad(function))(1.3), slope, rtol=1e-5)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", ["equality and bounds", "active inequality", "curve_fit", "newton"])
def test_second_derivatives_and_batches(name: str) -> None:
    slope = pb.grad(PROGRAMS[name])
    near, far = ((slope(1.3 + k * 1e-2) - slope(1.3 - k * 1e-2)) / (k * 2e-2) for k in (1, 2))
    np.testing.assert_allclose(pb.grad(slope)(1.3), (4 * near - far) / 3, rtol=1e-3, atol=1e-5)
    batch = np.array([1.3, 1.4])
    np.testing.assert_allclose(pb.vmap(slope)(batch), [slope(one) for one in batch], rtol=1e-6)


def test_covariance_is_that_of_scipy() -> None:
    found = []
    pb.grad(lambda a: found.append(optimize.curve_fit(decay, TIMES, samples(a))[1]) or a)(1.3)
    expected = optimize.curve_fit(decay, TIMES, samples(1.3))[1]
    np.testing.assert_allclose(found[0].detach(), expected, rtol=1e-5)


def test_constraints_that_depend_on_each_other_are_refused() -> None:
    twice = [{"type": "eq", "fun": lambda x: x.sum() - 1.0}] * 2
    with pytest.raises((LinearAlgebraError, ConvergenceError), match="minimize: "):
        pb.grad(lambda a: smallest(a, constraints=twice))(1.3)


@RUNS
class TestRefusals:
    def test_other_numbers_of_bounds(self, run: Any) -> None:
        with pytest.raises(ArgumentError, match="1 bounds for 3 unknowns"):
            run(lambda a: smallest(a, bounds=[(0, 1)]))(1.3)

    def test_options_that_are_not_known(self, run: Any) -> None:
        with pytest.raises(UnsupportedError, match=r"scipy\.optimize\.minimize: callback"):
            run(lambda a: smallest(a, callback=print))(1.3)
        with pytest.raises(UnsupportedError, match=r"scipy\.optimize\.least_squares: loss"):
            run(lambda a: optimize.least_squares(misfit, np.ones(2), args=(a,), loss="huber").x)(1.3)

    def test_functions_and_constraints_that_do_not_fit(self, run: Any) -> None:
        with pytest.raises(DTypeError, match="returns complex numbers for real unknowns"):
            run(lambda a: optimize.root(lambda x: x - 1j * a, np.ones(1)).x.sum())(1.3)
        with pytest.raises(OutputError, match="returns 1 values for 2 unknowns"):
            run(lambda a: optimize.root(lambda x: x[:1] - a, np.ones(2)).x.sum())(1.3)
        with pytest.raises(ArgumentError, match="'eq' or 'ineq', and a function fun; found the type 'equal'"):
            run(lambda a: smallest(a, constraints={"type": "equal", "fun": lambda x: x.sum() - a}))(1.3)

    def test_what_does_not_converge(self, run: Any) -> None:
        with pytest.raises(ConvergenceError, match=r"scipy\.optimize\.newton: Failed to converge"):
            run(lambda a: optimize.newton(lambda x: x**2 + a, 1.0))(1.3)
        with pytest.raises(ArgumentError, match=r"scipy\.optimize\.ridder: f\(a\) and f\(b\)"):
            run(lambda a: optimize.ridder(lambda x: x**2 + a, 0.0, 1.0))(1.3)
        with pytest.raises(ArgumentError, match="method='ridder' needs a bracket"):
            run(lambda a: optimize.root_scalar(lambda x: x - a, method="ridder", x0=1.0).root)(1.3)
