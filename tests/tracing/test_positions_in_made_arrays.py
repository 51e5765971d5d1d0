"""Arrays that a function makes, read at traced positions: one trace serves all positions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

pytestmark = pytest.mark.usefixtures("partly_compiled")


def between(x: Any) -> Any:
    """Linear interpolation in a table, as one writes it by hand."""
    knots = np.linspace(0.0, 2.0, 41)
    place = np.clip(np.searchsorted(knots, x) - 1, 0, 39)
    share = (x - knots[place]) / (knots[place + 1] - knots[place])
    return ((1 - share) * np.sin(knots)[place] + share * np.sin(knots)[place + 1]).sum()


def looked_up(x: Any) -> Any:
    table = np.array([0.1, 0.2, 0.3] * 6)
    return (table[(8 * x).astype(int)] * x).sum()


def of_a_dict(x: Any) -> Any:
    tables = {"squares": np.arange(20) ** 2.0}
    return (tables["squares"][np.argsort(x)] * x).sum()


def masked(x: Any) -> Any:
    weights = np.logspace(0, 1, 20)
    return np.where(x > 1.0, weights * x, weights[::-1]).sum()


@pytest.mark.parametrize("program", [between, looked_up, of_a_dict, masked])
def test_one_trace_serves_all_positions(program: Callable[[Any], Any]) -> None:
    both = pb.value_and_grad(pb.compile(program))
    for seed in range(3):
        x = np.random.default_rng(seed).uniform(0.1, 1.9, 20)
        value, slope = both(x)
        np.testing.assert_allclose(value, program(x), rtol=1e-12)
        np.testing.assert_allclose(slope, pb.grad(program)(x), rtol=1e-10)
    assert both.cache_info().traces == 1


def test_positions_that_python_needs_are_guards_as_before() -> None:
    """What no function of NumPy's has made is an ndarray, and the trace holds for these positions."""
    tables = [np.arange(20.0)]

    def program(x: Any) -> Any:
        return (np.sort(tables[0].tolist())[np.argsort(x)] * x).sum()

    compiled = pb.compile(program)
    for seed in range(2):
        x = np.random.default_rng(seed).uniform(0.1, 1.9, 20)
        np.testing.assert_allclose(compiled(x), program(x), rtol=1e-12)
