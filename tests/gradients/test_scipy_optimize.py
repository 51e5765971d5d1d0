"""scipy.optimize with gradients of pullback: what it is given are arrays, or Tensors without gradient."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import pullback as pb
from pullback import errors

START = np.array([1.0, 2.0, 3.0])
LEAST = 0.5897545123


def loss(x: Any) -> Any:
    return ((x - 1) ** 2).sum() + (x**4).sum()


def on_the_tape(x: np.ndarray) -> tuple[Any, Any]:
    variable = pb.tensor(x).requires_grad_()
    value = loss(variable)
    value.backward()
    return value.detach(), variable.grad


OBJECTIVES: dict[str, Callable[[Any], Any]] = {
    "arrays": pb.value_and_grad(loss),
    "compiled": pb.compile(pb.value_and_grad(loss)),
    "tensors": lambda x: pb.value_and_grad(loss)(pb.tensor(x)),
    "the tape": on_the_tape,
}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("method", ["BFGS", "CG", "L-BFGS-B", "TNC", "SLSQP", "trust-constr"])
def test_minimize_takes_gradients(objective: str, method: str) -> None:
    found = scipy.optimize.minimize(OBJECTIVES[objective], START, jac=True, method=method, tol=1e-10)
    assert type(found.x) is np.ndarray
    np.testing.assert_allclose(found.x, LEAST, atol=1e-4)


def test_minimize_takes_tensors_in_bounds_constraints_and_starts() -> None:
    constraint = {
        "type": "eq",
        "fun": lambda x: pb.tensor(x).sum() - 1,
        "jac": lambda x: pb.ones(3, dtype=pb.float64),
    }
    start = pb.tensor(START)
    found = scipy.optimize.minimize(on_the_tape, start, jac=True, constraints=[constraint], tol=1e-12)
    np.testing.assert_allclose(found.x, 1 / 3, atol=1e-6)
    found = scipy.optimize.minimize(on_the_tape, start, jac=True, bounds=[(0, pb.tensor(0.5))] * 3)
    np.testing.assert_allclose(found.x, 0.5)


def test_other_solvers_take_tensors() -> None:
    def residuals(x: np.ndarray) -> Any:
        return pb.tensor(x) ** 3 - 8

    def slopes(x: np.ndarray) -> Any:
        return pb.diag(3 * pb.tensor(x) ** 2)

    for found in (
        scipy.optimize.least_squares(residuals, START, jac=slopes).x,
        scipy.optimize.root(residuals, START, jac=slopes).x,
        scipy.optimize.fsolve(residuals, START, fprime=slopes),
    ):
        np.testing.assert_allclose(found, 2.0)
    given = {"jac": pb.grad(loss), "hess": pb.hessian(loss), "method": "trust-exact"}
    np.testing.assert_allclose(scipy.optimize.minimize(loss, START, **given).x, LEAST, atol=1e-4)


def test_a_value_that_still_has_a_gradient_is_refused() -> None:
    def attached(x: np.ndarray) -> Any:
        return loss(pb.tensor(x).requires_grad_())

    with pytest.raises(errors.GradientError, match=r"scipy\.optimize\.minimize makes one.*detach\(\)\.numpy"):
        scipy.optimize.minimize(attached, START)


def test_scipy_code_on_a_tensor_with_a_gradient_keeps_it() -> None:
    x = pb.tensor(START).requires_grad_()
    root = scipy.optimize.newton(lambda t: t**3 - x[1], 1.0, fprime=lambda t: 3 * t**2)
    root.backward()
    np.testing.assert_allclose(x.grad.numpy(), [0, 2 ** (1 / 3) / 6, 0])
