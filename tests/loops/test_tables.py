"""Numbers and arrays that Python computes in each step are rows of one table, and the steps a loop."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

pytestmark = pytest.mark.part(8)


def filtered(x: Any) -> Any:
    """Kalman's filter of one number, whose gains do not depend on what is measured."""
    mean, variance, misfit = 0.0, 1.0, 0.0
    for t in range(len(x)):
        variance = variance + 0.1
        gain = variance / (variance + 0.2)
        misfit = misfit + (x[t] - mean) ** 2 / (variance + 0.2)
        mean = mean + gain * (x[t] - mean)
        variance = (1 - gain) * variance
    return misfit


def filtered_states(x: Any) -> Any:
    """The same of two numbers, with matrices that Python computes."""
    step, mean, spread, misfit = np.array([[1.0, 0.1], [0.0, 1.0]]), np.zeros(2), np.eye(2), 0.0
    for t in range(x.shape[0]):
        spread = step @ spread @ step.T + 0.1 * np.eye(2)
        gain = spread @ np.linalg.inv(spread + 0.2 * np.eye(2))
        error = x[t] - step @ mean
        misfit = misfit + error @ error
        mean = step @ mean + gain @ error
        spread = (np.eye(2) - gain) @ spread
    return misfit


def descended(x: Any) -> Any:
    w = x * 0.0
    for t in range(200):
        w = w - 0.1 / (1 + 0.1 * t) * (2 * w - x)
    return (w**2).sum()


def weighed(x: Any) -> Any:
    total = 0.0
    for t in range(60):
        total = total + np.tanh(np.exp(-0.5 * (np.arange(len(x)) - 0.1 * t) ** 2) @ x)
    return total


def shaken(x: Any) -> Any:
    rng, w = np.random.default_rng(0), x * 0.0
    for _ in range(60):
        w = 0.9 * w + x * rng.standard_normal(len(x))
    return (w**2).sum()


ROWS = np.random.default_rng(0).standard_normal((40, 3))


def trained(w: Any) -> Any:
    """A rate for each epoch, in a loop over parts of the data."""
    for epoch in range(12):
        for part in range(8):
            x = ROWS[5 * part : 5 * part + 5]
            w = w - 0.1 / (1 + epoch) * (x.T @ (np.tanh(x @ w) - 1))
    return (w**2).sum()


SHAPES = {
    filtered: (40,), filtered_states: (40, 2), descended: (3,), weighed: (5,), shaken: (4,), trained: (3,),
}  # fmt: skip


@pytest.mark.parametrize("program", SHAPES)
def test_steps_with_constants_of_their_own_are_a_loop(program: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(0).uniform(0.5, 1.5, SHAPES[program])
    compiled = pb.value_and_grad(pb.compile(program))
    for found, expected in zip(compiled(x), pb.value_and_grad(program)(x)):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert len(compiled.source(x).splitlines()) < 130


def test_numbers_that_are_written_out_stay_in_the_text() -> None:
    def descended(x):
        for t in range(10):
            x = x - x * 0.5**t
        return x

    source = pb.compile(descended).forward_source(np.ones(100))
    assert "(x, x_1)" in source and "0.03125" in source


def test_a_table_is_that_of_the_call_it_was_traced_for() -> None:
    """The next shape has another one, and the same code."""
    value = pb.compile(filtered)
    for size in (40, 60):
        x = np.linspace(0.5, 1.5, size)
        np.testing.assert_allclose(value(x), filtered(x), rtol=1e-12)
