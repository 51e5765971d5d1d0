"""The exponential of a matrix and its derivative: the steps of the one are those of the other."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg

import pullback as pb
from pullback.codegen.exponentials import exponential, exponential_derivative
from pullback.tracer.ops import exponentials as steps_of

RNG = np.random.default_rng(0)
NORMS = {"nothing": 0.0, "small": 1e-8, "one": 1.0, "halved": 20.0, "more halvings than are kept": 1e3}
MATRICES: dict[str, Any] = {
    **{name: norm * RNG.normal(size=(5, 5)) / 5 for name, norm in NORMS.items()},
    "nilpotent": np.triu(RNG.normal(size=(4, 4)), 1) * 1e3,
    "a shear": np.array([[0.3, 1e4], [0.0, -0.2]]),
    "one number": np.array([[-3.0]]),
    "no number": np.zeros((0, 0)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_generated_code_takes_the_steps_that_eager_code_takes(name: str) -> None:
    a = MATRICES[name]
    direction = RNG.normal(size=a.shape)
    steps, parts = (np.zeros((count, *a.shape)) for count in (steps_of.PLANES, steps_of.PLANES_OF_DERIVATIVE))
    exponential(a, steps)
    exponential_derivative(direction, steps, parts)
    wanted = steps_of.exponentials.evaluate(a)
    scale = max(1.0, np.abs(wanted).max(initial=0.0))
    np.testing.assert_allclose(steps[0], wanted[0], rtol=1e-11, atol=1e-11 * scale)
    if a.size:
        assert steps[steps_of.ROOM, 0, 0] == wanted[steps_of.ROOM, 0, 0]
    found = steps_of.expm_frechet.evaluate(a, direction, wanted)
    np.testing.assert_allclose(parts[0], found, rtol=1e-11, atol=1e-11 * scale)


@pytest.mark.parametrize("name", [one for one in MATRICES if one != "no number"])
@pytest.mark.parametrize("is_complex", [False, True])
def test_the_steps_are_scipys_results(name: str, is_complex: bool) -> None:
    a = MATRICES[name] * (1 + 0.5j) if is_complex else MATRICES[name]
    direction = RNG.normal(size=a.shape) + 0 * a
    steps = steps_of.exponentials.evaluate(a)
    wanted, of_direction = scipy.linalg.expm_frechet(a, direction)
    found = steps_of.expm_frechet.evaluate(a, direction, steps)
    for one, other in ((steps[0], wanted), (found, of_direction)):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


def test_halvings_that_powers_save_cost_no_digits() -> None:
    """Of a matrix whose norm says more than its powers do: by its eigenvalues it is exact to a few digits."""
    a = np.array([[0.5, 6.0], [0.0, -0.5]])
    steps = steps_of.exponentials.evaluate(a)
    assert steps[steps_of.ROOM, 0, 0] < 3 <= np.log2(np.abs(a).sum(1).max()) + 1
    wanted = [[np.exp(0.5), 6.0 * 2 * np.sinh(0.5)], [0.0, np.exp(-0.5)]]
    np.testing.assert_allclose(steps[0], wanted, rtol=1e-14)


def test_a_gradient_takes_the_steps_of_the_value() -> None:
    a = RNG.normal(size=(2, 9, 9))
    source = pb.value_and_grad(pb.compile(lambda a: (pb.linalg.matrix_exp(a) ** 2).sum())).source(a)
    assert source.count("exponential(") == 1
    assert source.count("exponential_derivative(") == 1


def test_eager_gradients_take_the_steps_of_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    compute = steps_of._steps_of_one
    monkeypatch.setattr(steps_of, "_steps_of_one", lambda a: calls.append(1) or compute(a))
    a = pb.tensor(RNG.normal(size=(4, 4)), requires_grad=True)
    pb.linalg.matrix_exp(a).sum().backward()
    assert len(calls) == 1
    _, wanted = scipy.linalg.expm_frechet(a.detach().numpy().T, np.ones((4, 4)))
    np.testing.assert_allclose(a.grad.numpy(), wanted)


@pytest.mark.parametrize("is_complex", [False, True])
def test_second_derivatives_are_differences_of_gradients(is_complex: bool) -> None:
    a = 0.4 * RNG.normal(size=(2, 3, 3)) + (0.3j * RNG.normal(size=(2, 3, 3)) if is_complex else 0)
    t = pb.tensor(a, requires_grad=True)
    assert pb.autograd.gradcheck(pb.linalg.matrix_exp, t)
    assert pb.autograd.gradgradcheck(pb.linalg.matrix_exp, t)
