"""Loops that values end and Python counts: one program for all numbers of turns."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback as pb

pytestmark = pytest.mark.part(8)

Function = Callable[..., Any]


def newton(a):
    x = a / 2.0
    for _ in range(60):
        step = (x**3 - a) / (3 * x**2)
        x = x - step
        if abs(step) < 1e-9:
            break
    return x


def bisection(a):
    low, high = 0.0, 2.0 + a
    for _ in range(100):
        middle = (low + high) / 2
        if middle**2 - a > 0:
            high = middle
        else:
            low = middle
        if high - low < 1e-6 * a:
            break
    return high - low + a**2


def secant(a):
    before, x = 1.0, 2.0 + 0 * a
    value = before**2 - a
    for _ in range(60):
        new = x**2 - a
        if abs(new) < 1e-9:
            break
        before, x, value = x, x - new * (x - before) / (new - value), new
    else:
        raise RuntimeError("no convergence")
    return x


def kepler(a):
    eccentricity = a / (a + 1.0)
    x, delta, turns = 1.0, 1.0, 0
    while abs(delta) > 1e-12:
        delta = (x - eccentricity * np.sin(x) - 1.0) / (1 - eccentricity * np.cos(x))
        x = x - delta
        turns += 1
        if turns > 50:
            raise RuntimeError("no convergence")
    return x


def largest_eigenvalue(a):
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]]) * a
    vector, value = np.ones(2), 0.0
    for _ in range(1000):
        image = matrix @ vector
        new = np.sqrt(image @ image)
        vector = image / new
        if abs(new - value) < 1e-9 * a:
            break
        value = new
    return new


def smaller_steps(a):
    y, turns = a, 0
    while abs(y - 1) > 1e-3:
        turns += 1
        y = y - 0.5 / (1 + 0.01 * turns) * (y - 1)
    return y * a + turns


def every_third(a):
    y, turns = a, 0
    while y > 1.0:
        turns += 1
        if turns % 3 == 0:
            y = y * 0.5
        y = y * 0.9
    return y


def powers_of_a_count(a):
    total = 0.0 * a
    for k in range(1, 40):
        term = a / 2.0 ** (k * k)
        total = total + term * k
        if term < 1e-3:
            break
    return total + k


def counted_backwards(a):
    for k in range(50, 3, -2):
        a = a * 0.7 + 0.01 * k
        if a < 2.0:
            break
    return a


TABLE = np.linspace(0.5, 0.9, 64)


def elements_by_a_count(a):
    for k in range(64):
        a = a * TABLE[k]
        if a < 1.0:
            break
    return a


def of_alike_turns(a):
    count = 0
    while a > 1.0:
        a = a * 0.7
        count += 1
    return a * count


def with_steps_kept_in_an_array(a):
    times, count, t, step = np.zeros(200), 0, 0.0, 0.02
    while t < 1.0:
        step = np.minimum(step, 1.0 - t)
        error = step**2 * np.log(a) * 200
        if error <= 1.0:
            t = t + step
            times[count] = t * a
            count += 1
        step = step * np.minimum(2.0, 0.9 / np.sqrt(error))
    return np.sum(times) / count


def in_a_function(a):
    def root(a):
        x = a
        for _ in range(60):
            x = 0.5 * (x + a / x)
            if abs(x * x - a) < 1e-9:
                break
        return x

    return root(a) + root(a + 3.0)


def with_a_search_along_lines(a):
    x = a
    for _ in range(100):
        slope = 4 * x**3 - 2 * x
        if abs(slope) < 1e-6:
            break
        step, value = 1.0, x**4 - x**2
        for _ in range(40):
            new = x - step * slope
            if new**4 - new**2 <= value - 1e-4 * step * slope**2:
                break
            step *= 0.5
        x = new
    return x * a


class Descent:
    """Adam's, on a parabola."""

    def __init__(self, x):
        self.x, self.mean, self.square, self.steps = x, 0.0, 0.0, 0

    def step(self):
        slope = 2 * (self.x - 0.5)
        self.steps += 1
        self.mean = 0.6 * self.mean + 0.4 * slope
        self.square = 0.9 * self.square + 0.1 * slope * slope
        mean, square = self.mean / (1 - 0.6**self.steps), self.square / (1 - 0.9**self.steps)
        self.x = self.x - 0.5 * mean / np.sqrt(square + 1e-3)


def with_an_object(a):
    descent = Descent(np.log(a))
    while abs(descent.x - 0.5) > 0.1:
        descent.step()
    return descent.x * descent.steps


@dataclass
class Progress:
    x: Any
    total: Any
    turns: int = 0


def with_a_dataclass(a):
    progress = Progress(a, 1.0)
    while progress.x > 1.0:
        progress = Progress(progress.x * 0.6, progress.total + progress.x**2, progress.turns + 1)
    return progress.total / progress.turns


def with_a_dict(a):
    state = {"x": a, "counts": [0, 1.0]}
    while state["x"] > 1.0:
        state["x"] = state["x"] * 0.6
        state["counts"][0] += 1
        state["counts"][1] *= 0.9
    return state["x"] * state["counts"][0] + state["counts"][1] * a


class Pair(NamedTuple):
    x: Any
    turns: int


def with_tuples(a):
    state, steps = Pair(a, 0), (0, "steps")
    while state.x > 1.0:
        state = Pair(state.x * 0.6, state.turns + 1)
        steps = (steps[0] + 2, "steps")
    return state.x * state.turns + steps[0]


def with_a_nonlocal(a):
    turns, state = 0, {"turns": 0}

    def smaller(x):
        nonlocal turns
        turns += 1
        state["turns"] += turns
        return x * 0.6

    while a > 1.0:
        a = smaller(a)
    return a * turns + state["turns"]


def with_two_names(a):
    state = {"turns": 0}
    whole = {"state": state, "turns": 0}
    while a > 1.0:
        a = a * 0.6
        whole["state"]["turns"] += 1
        whole["turns"] += 2
    return a * state["turns"] + whole["turns"]


VALUES = (10.0, 3.0, 1e2, 1e4)
ONE_PROGRAM = [
    newton, bisection, secant, kepler, largest_eigenvalue, smaller_steps, every_third, powers_of_a_count,
    counted_backwards, elements_by_a_count, of_alike_turns, in_a_function,
    with_steps_kept_in_an_array, with_an_object, with_a_dataclass, with_a_dict, with_tuples, with_a_nonlocal,
    with_two_names,
]  # fmt: skip


def check(function: Function, compiled: Function, values: tuple[float, ...] = VALUES) -> None:
    for one in values:
        value, slope = compiled(np.array(one))
        width = 1e-6 * one
        around = [function(np.array(one + sign * width)) for sign in (1, -1)]
        assert value == pytest.approx(function(np.array(one)), rel=1e-12)
        assert slope == pytest.approx((around[0] - around[1]) / (2 * width), rel=1e-4, abs=1e-8)


@pytest.mark.drawn(4)
@pytest.mark.parametrize("function", ONE_PROGRAM)
def test_one_program_for_all_numbers_of_turns(function: Function) -> None:
    compiled = pb.compile(pb.value_and_grad(function))
    check(function, compiled)
    assert compiled.cache_info().traces <= 2  # a first call may miss a way through a turn


@pytest.mark.drawn(6)
def test_a_search_along_lines_in_a_loop() -> None:
    compiled = pb.compile(pb.value_and_grad(with_a_search_along_lines))
    check(with_a_search_along_lines, compiled, (0.3, 0.9, 2.0, 3.1))
    assert compiled.cache_info().compilations <= 4


@pytest.mark.drawn(6)
def test_a_fixed_number_of_turns_around_a_while_is_one_loop() -> None:
    def implicit_steps(y, turns):
        for n in range(turns):
            z = y
            while abs(z - y + 0.1 * n * z**3) > 1e-10:
                z = z - (z - y + 0.1 * n * z**3) / (1 + 0.3 * n * z**2)
            y = z
        return y

    compiled = pb.compile(implicit_steps, static_argnames=("turns",))
    for one in (1.0, 2.5, 0.5):
        assert compiled(np.array(one), 12) == pytest.approx(implicit_steps(np.array(one), 12), rel=1e-12)
    assert compiled.cache_info().traces == 1
    few, many = (compiled.source(np.array(1.0), turns) for turns in (12, 20))
    assert len(few.splitlines()) == len(many.splitlines())


# --- what Python's numbers do besides -----------------------------------------------------------------------


def ended_by_the_range(a):
    for k in range(12):
        a = a * 0.5
        if a < 0.1:
            return a * k
    return a


def with_an_error(a):
    turns = 0
    while a > 1.0:
        turns += 1
        if turns > 9:
            raise OverflowError(f"{turns} turns")
        a = a * 0.5
    return a


def with_large_numbers(a):
    count = 1
    while a > 1.0:
        count = 31 * count + 1
        a = a * 0.5
    return a * float(count % 1000) + count


def with_a_list(a):
    table = ["first", "second", "third"]
    for k in range(40):
        a = a * (0.5 if table[k % 3] == "second" else 0.8)
        if a < 1.0:
            break
    return a


def with_a_row(a):
    rows = []
    for k in range(1, 40):
        rows.append(np.ones(k) * a)
        a = a * 0.5
        if a < 1.0:
            break
    return np.sum(rows[-1]) + a


def with_the_number_of_turns(a):
    for k in range(40):  # noqa: B007
        a = a * 0.5
        if a < 1.0:
            break
    return a, k


def with_a_count_in_text(a):
    names = []
    for k in range(40):
        names.append(f"x{k}")
        a = a * 0.5
        if a < 1.0:
            break
    return a * len("".join(names))


def with_floor_division(a):
    turns = 0
    while a > 1.0:
        turns += 1
        a = a * (0.5 if turns // 2 % 2 else 0.7)
    return a / turns


def with_a_generator(a):
    def halves(a):
        for k in range(40):
            a = a * 0.5
            yield a * (k + 1)
            if a < 1.0:
                return

    total = 0.0
    for one in halves(a):
        total = total + one
    return total


def with_caught_errors(a):
    turns = 0
    while a > 1.0:
        try:
            a = a * (1 / (turns % 3) if turns % 3 == 0 else 0.5)
        except ZeroDivisionError:
            a = a * 0.9
        turns += 1
    return a


def with_two_ranges(a):
    for k in range(6):
        for j in range(k + 1):
            a = a * 0.8 + 0.01 * j
            if a < 1.0:
                break
        a = a + k
    return a


def in_rows(a):
    x = np.stack([a, a * 2.0, a * 3.0])
    for k in range(30):
        x[k % 3] = x[k % 3] * 0.5
        if np.max(x) < 1.0:
            break
    return np.sum(x * np.arange(3.0))


ROWS = [{"scale": 0.5 + 0.001 * k} for k in range(200)]
HIDDEN_ROWS = MappingProxyType({k: {"scale": 0.7 - 0.001 * k} for k in range(200)})


def with_rows_from_outside(a):
    turns = 0
    while a > 1.0:
        row, other = ROWS[turns], HIDDEN_ROWS[turns]
        a = a * row["scale"] + 0.1 * other["scale"]
        turns += 1
    return a


def with_rows_of_its_own(a):
    rows, turns = [{"scale": 0.5 + 0.001 * k} for k in range(200)], 0
    while a > 1.0:
        row = rows[turns]
        a = a * row["scale"]
        turns += 1
    return a


def with_tallies(a):
    state: dict[str, Any] = {"turns": 0, "tally": [0, 0, 0]}
    while a > 1.0:
        state["turns"] += 1
        state["tally"][state["turns"] % 3] += 1
        a = a * 0.5
    return a * state["tally"][0] + state["tally"][1]


BESIDES = [
    ended_by_the_range, with_large_numbers, with_a_list, with_a_row, with_the_number_of_turns,
    with_a_count_in_text, with_floor_division, with_a_generator, with_caught_errors, with_two_ranges, in_rows,
    with_rows_from_outside, with_rows_of_its_own, with_tallies,
]  # fmt: skip


@pytest.mark.drawn(6)
@pytest.mark.parametrize("function", BESIDES)
def test_is_what_python_gives(function: Function) -> None:
    compiled = pb.compile(function)
    for one in (30.0, 3.0, 1e3, 1.5, 1e6, 1e14, 1e25):
        expected = function(np.array(one))
        found = compiled(np.array(one))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert type(found) is type(expected)


@pytest.mark.drawn(4)
def test_what_is_reached_from_outside_holds_its_numbers() -> None:
    compiled = pb.compile(with_rows_from_outside)
    for one in (30.0, 1e6):
        compiled(np.array(one))
    assert {type(row["scale"]) for row in (*ROWS, *HIDDEN_ROWS.values())} == {float}


def test_errors_that_a_number_of_turns_raises() -> None:
    compiled = pb.compile(with_an_error)
    for one in (30.0, 100.0, 3.0):
        assert compiled(np.array(one)) == with_an_error(np.array(one))
    for one in (1e4, 1e5):
        with pytest.raises(OverflowError, match="10 turns"):
            compiled(np.array(one))


@pytest.mark.drawn(4)
def test_a_program_for_each_number_of_turns_is_warned_of() -> None:
    def scaled_by_a_list(a):
        total, rows = 0.0, []
        while a > 1.0:
            rows.insert(0, np.sin(a) * len(rows))
            a = a * 0.5
            total = total + sum(rows) * a
        return total

    compiled = pb.compile(scaled_by_a_list)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for one in (3.0, 12.0):
            assert compiled(np.array(one)) == pytest.approx(scaled_by_a_list(np.array(one)))
    with pytest.warns(UserWarning, match=r"turns .*while a > 1\.0:\nrows (.|\n)*pullback\.while_loop"):
        for one in (50.0, 200.0, 900.0):
            compiled(np.array(one))
