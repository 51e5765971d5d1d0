"""Steps that read and write positions which begin anew after so many, as seasons; last steps made whole."""

import numpy as np
import pytest

import pullback as pb
from pullback.codegen.rolling.progressions import Progression, progression_of

pytestmark = pytest.mark.usefixtures("partly_compiled")


def seasons(x, weights):
    level, total = x[0], 0.0
    season = weights * 1.0
    for t in range(len(x)):
        error = x[t] - level - season[t % 7]
        total += error * error
        level = level + 0.3 * error
        season[t % 7] = season[t % 7] + 0.2 * error
    return total


def ring(x, weights):
    last = np.zeros(5)
    total = 0.0
    for t in range(len(x)):
        last[(t + 3) % 5] = x[t] * weights[0]
        total = total * 0.9 + np.sin(last[(t + 1) % 5]) * last.sum()
    return total


def numbers_of_a_week(x, weights):
    total = 0.0
    for t in range(len(x)):
        total = np.tanh(total * 0.5 + x[t] * weights[6 - t % 7]) + (t % 4) * x[t]
    return total


def in_a_loop(x, weights):
    total = 0.0
    for lag in range(9):
        state = weights[0]
        for t in range(len(x)):
            state = np.sin(state * weights[t % 3] + x[t] * 0.1) + lag
        total += state
    return total


def error_before_update(x, weights):
    """Of the last step nobody reads most."""
    level, trend, spread, total = x[0], weights[0], 1.0, 0.0
    for t in range(len(x)):
        error = x[t] - level
        total += error * error / spread
        before = level
        level = level + trend + 0.3 * np.tanh(error)
        trend = trend + weights[1] * (level - before - trend)
        spread = 0.1 + 0.5 * spread * np.exp(-spread) + weights[2] * error**2
    return total


PROGRAMS = [seasons, ring, numbers_of_a_week, in_a_loop, error_before_update]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_cycles_are_loops_for_all_lengths(program):
    both = pb.value_and_grad(pb.compile(lambda x, weights: program(x, weights)), argnums=(0, 1))
    plain = pb.value_and_grad(program, argnums=(0, 1))
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.2, 0.9, 7)
    compilations = []
    for length in (40, 43, 61):
        x = rng.normal(size=length)
        value, gradients = both(x, weights)
        assert value == pytest.approx(program(x, weights), rel=1e-12)
        for found, expected in zip(gradients, plain(x, weights)[1]):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
        compilations.append(both.cache_info().compilations)
    assert len(set(compilations)) == 1, compilations


def test_positions_of_a_cycle_are_written_as_python_does():
    source = pb.compile(seasons).source(np.ones(40), np.ones(7))
    assert "season[i % 7]" in source


@pytest.mark.drawn(4)
def test_nested_loops_that_jump_alone_are_no_cycle():
    @pb.compile
    def sweeps(x):
        state = 0.5
        for _ in range(10):
            for t in range(x.shape[0]):
                state = np.sin(state * 2.0 + x[t]) * np.cos(x[t] - state) + 0.1 * state
        return state

    x = np.linspace(0, 1, 12)
    assert "%" not in sweeps.source(x)
    assert sweeps(x) == pytest.approx(sweeps.__wrapped__(x), rel=1e-12)


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([3, 5, 7, 9], Progression(3, 2)),
        ([3, 3, 3], Progression(3, 0)),
        ([2, 0, 1, 2, 0, 1], Progression(0, 1, 3, 2)),
        ([1, 0, 4, 3, 2, 1, 0], Progression(4, -1, 5, 3)),
        ([0, 1, 2, 3, 0, 1, 3], None),
        ([0, 1, 0, 1, 0, 1], None),  # two steps in one
        ([0, 1, 2, 3, 1, 2, 3, 1], None),  # from the second cycle on another one
        ([5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8], None),  # which goes on past its end
    ],
)
def test_progressions(numbers, expected):
    found = progression_of(numbers)
    assert found == expected
    if found is not None:
        assert [found.at(step) for step in range(len(numbers))] == numbers


def test_a_step_that_lacks_what_may_raise_is_not_made_whole():
    @pb.compile
    def stops_before_it_solves(x, a):
        state, total = x[0], 0.0
        for t in range(len(x)):
            total += np.sin(state * x[t])
            if t == len(x) - 1:
                break
            state = np.linalg.solve(a * (len(x) - 1 - t), np.array([state, x[t]]))[0]
            state = np.tanh(state) + 0.5 * np.cos(state) - x[t] * np.exp(-state * state)
        return total

    x, a = np.linspace(0.1, 1, 12), np.array([[2.0, 1.0], [1.0, 3.0]])
    assert stops_before_it_solves(x, a) == pytest.approx(stops_before_it_solves.__wrapped__(x, a), rel=1e-12)
