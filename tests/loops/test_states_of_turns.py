"""States in tuples, dicts and attributes, and numbers that `+=` changes, are carried from the first turn."""

import numpy as np
import pytest

import pullback as pb

pytestmark = pytest.mark.usefixtures("partly_compiled")
START = np.array([1.0, 0.5, 0.2])


def tried(rate, y, h):
    """A step of Heun's method, and its error."""
    first = -rate * y + np.cos(y)
    second = -rate * (y + h * first) + np.cos(y + h * first)
    return y + 0.5 * h * (first + second), np.max(np.abs(0.5 * h * (second - first)))


def in_variables(rate):
    t, h, y = 0.0, 1.0, START
    while t < 2.0:
        new, error = tried(rate, y, min(h, 2.0 - t))
        if error > 1e-2:
            h *= 0.5
            continue
        y = new
        t += min(h, 2.0 - t)
        h *= 1.5
    return np.sum(y)


def in_tuples(rate):
    def step(state):
        t, y, h = state
        h = min(h, 2.0 - t)
        new, error = tried(rate, y, h)
        return (t, y, 0.5 * h) if error > 1e-2 else (t + h, new, 1.5 * h)

    state = (0.0, START, 1.0)
    while state[0] < 2.0:
        state = step(state)
    return np.sum(state[1])


def in_dicts(rate):
    state = {"t": 0.0, "y": START, "h": 1.0}
    while state["t"] < 2.0:
        h = min(state["h"], 2.0 - state["t"])
        new, error = tried(rate, state["y"], h)
        if error > 1e-2:
            state["h"] = 0.5 * h
        else:
            state.update(t=state["t"] + h, y=new, h=1.5 * h)
    return np.sum(state["y"])


def in_attributes(rate):
    class State:
        def __init__(self):
            self.t, self.y, self.h = 0.0, START, 1.0

    state = State()
    while state.t < 2.0:
        h = min(state.h, 2.0 - state.t)
        new, error = tried(rate, state.y, h)
        if error > 1e-2:
            state.h = 0.5 * h
        else:
            state.t, state.y, state.h = state.t + h, new, 1.5 * h
    return np.sum(state.y)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("f", [in_variables, in_tuples, in_dicts, in_attributes])
def test_steps_that_are_rejected_first_are_turns_like_others(f):
    compiled = pb.value_and_grad(pb.compile(f))
    for scale in (5.0, 9.0, 3.0, 20.0, 1.0):  # from two rejected steps at first to none
        rate = scale * np.array([1.0, 0.6, 0.3])
        found, expected = compiled(rate), pb.value_and_grad(f)(rate)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-9, atol=1e-13)
    assert compiled.cache_info().traces == 1


def add_one(array):
    array += 1.0


def an_array_without_dimensions(x):
    """Is an array in the first turn, into which others write, and a number in later ones."""
    x = x.copy()
    while x < 100.0:
        if x < 50.0:
            add_one(x)
        x = x * 1.5
    return x


def an_array_of_other_names(x):
    y = total = np.zeros(3)
    n = 0
    while np.sum(y) < 10.0:
        if n == 2:
            add_one(total)
        y = y + x
        n += 1
    return np.sum(y) + 10.0 * np.sum(total)


def a_part_of_other_names(x):
    total = np.zeros(3)
    state = {"y": total, "n": 0}
    while np.sum(state["y"]) < 10.0:
        if state["n"] == 0:
            add_one(total)
        state["y"] = state["y"] + x
        state["n"] += 1
    return np.sum(state["y"]) + 10.0 * np.sum(total)


@pytest.mark.parametrize("f", [an_array_without_dimensions, an_array_of_other_names, a_part_of_other_names])
def test_what_is_written_into_stays_the_object_that_others_know(f):
    compiled = pb.compile(f)
    for value in (3.0, 1.0, 2.0, 20.0, 0.5):
        x = np.array(value) if f is an_array_without_dimensions else value * np.array([1.0, 0.5, 0.2])
        np.testing.assert_allclose(compiled(x.copy()), f(x.copy()), rtol=1e-13)


def test_containers_hold_numbers_again_after_a_trace():
    kept = []

    def f(x):
        state = {"t": 0.0, "h": 0.5}
        kept.append(state)
        while state["t"] < 2.0:
            state = {"t": state["t"] + state["h"] * x, "h": state["h"] * 1.1}
        return state["t"]

    compiled = pb.compile(f)
    for value in (1.0, 0.3):
        np.testing.assert_allclose(compiled(np.float64(value)), f(np.float64(value)), rtol=1e-14)
    assert all(one == {"t": 0.0, "h": 0.5} for one in kept)


def searched(xs, x):
    low, high = 0, len(xs)
    while low < high:
        middle = (low + high) // 2
        if xs[middle] < x:
            low = middle + 1
        else:
            high = middle
    return (x - xs[low - 1]) / (xs[low] - xs[low - 1])


def from_both_ends(xs, x):
    i, j, total = 0, len(xs) - 1, 0.0
    while i < j:
        if xs[i] * x < xs[j]:
            total = total + xs[i] * (j - i)
            i += 1
        else:
            total = total + xs[j] * (j - i)
            j -= 1
    return total


@pytest.mark.drawn(4)
@pytest.mark.parametrize("f", [searched, from_both_ends])
def test_positions_that_begin_as_sizes_are_carried(f):
    compiled = pb.value_and_grad(pb.compile(f), argnums=(0, 1))
    xs = np.sort(np.random.default_rng(3).uniform(0.0, 10.0, 40))
    traces = []
    for x in (4.1, 5.9, 1.5, 8.3, 2.7, 6.6, 3.3, 9.1):
        found, expected = compiled(xs, x), pb.value_and_grad(f, argnums=(0, 1))(xs, x)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1][0], expected[1][0], rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(found[1][1], expected[1][1], rtol=1e-9, atol=1e-13)
        traces.append(compiled.cache_info().traces)
    assert traces[2] == traces[-1]
