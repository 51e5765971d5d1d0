"""`while` loops of plain Python that values steer: one program for any number of turns."""

import itertools
import random
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import pullback as pb

pytestmark = pytest.mark.part(8)

Function = Callable[..., Any]


def root(a):
    x = a
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
    return x


def root_by_halves(a):
    low, high = 0.0 * a, a + 1.0
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        if middle * middle > a:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high)


def largest_eigenvalue(a):
    v = np.sum(a, axis=0)
    before = 0.0 * v[0]
    value = v @ v
    while abs(value - before) > 1e-9:
        v = a @ v
        v = v / np.sqrt(v @ v)
        before = value
        value = v @ (a @ v)
    return value


def collatz(n):
    steps = 0 * n
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps = steps + 1
    return steps


def heun(y, a, tolerance):
    t, h = 0.0, 0.1
    while t < 2.0:
        if t + h > 2.0:
            h = 2.0 - t
        first = -a * y + np.cos(y)
        new = y + h * first
        second = -a * new + np.cos(new)
        error = np.max(np.abs(0.5 * h * (second - first))) / tolerance
        if error <= 1.0:
            t = t + h
            y = y + 0.5 * h * (first + second)
        h = h * np.minimum(2.0, np.maximum(0.3, 0.9 / np.sqrt(error + 1e-12)))
    return np.sum(y)


def relaxed(x):
    x = x.copy()
    while np.max(np.abs(x[1:] - x[:-1])) > 0.15:
        x[1:-1] = 0.5 * (x[2:] + x[:-2])
    return x


def until_small(x, scale):
    while True:
        x = scale * np.sin(x)
        if np.sum(x * x) < 1e-3:
            break
    return x


def implicit_steps(y, k, h):
    for _ in range(8):
        z = y
        while abs(z - y + h * k * z**3) > 1e-10:
            z = z - (z - y + h * k * z**3) / (1 + 3 * h * k * z**2)
        y = z
    return y


def implicit_steps_of_any_size(y, k):
    t, h = 0.0, 0.1
    while t < 1.0:
        z = y
        while abs(z - y + h * k * z**3) > 1e-10:
            z = z - (z - y + h * k * z**3) / (1 + 3 * h * k * z**2)
        y = z
        t = t + h
        h = h * (1.0 + 0.1 * abs(y))
    return y


def steps_by_a_function(y, k):
    def solved(y, h):
        z = y
        while abs(z - y + h * k * z**3) > 1e-10:
            z = z - (z - y + h * k * z**3) / (1 + 3 * h * k * z**2)
        return z

    t, h = 0.0, 0.1
    while t < 1.0:
        y = solved(y, h)
        t = t + h
        h = h * (1.0 + 0.1 * abs(y))
    return y


def decays(x, y):
    while x > 1.1:
        x = 0.9 * x
    while y > 1.1:
        y = 0.8 * y
    return x * y


SYMMETRIC = np.array([[2.0, 0.5, 0.1], [0.5, 1.5, 0.3], [0.1, 0.3, 1.0]])
Y = np.linspace(0.1, 1.0, 4)
STEPS = [(np.array(y), np.array(k)) for y, k in ((1.0, 2.0), (2.5, 3.0), (0.5, 9.0))]
PAIRS = [(np.array(x), np.array(y)) for x, y in ((30.0, 6.5), (5.0, 30.0), (1.5, 9.0), (8.0, 1.3))]
PROGRAMS: dict[str, tuple[Function, Sequence[tuple[Any, ...]]]] = {
    "Newton": (root, [(np.array(one),) for one in (30.0, 5.0, 1e3, 1e6, 77.0, 2.5e5)]),
    "bisection": (root_by_halves, [(np.array(one),) for one in (30.0, 10.0, 1e3, 7.0, 1e5)]),
    "power iteration": (largest_eigenvalue, [(SYMMETRIC + k * np.eye(3),) for k in (0.0, 1.0, 3.0, 0.3)]),
    "Collatz": (collatz, [(np.array(one),) for one in (27, 97, 871, 6171)]),
    "Heun": (heun, [(Y, np.array(3.0), np.array(one)) for one in (1e-4, 1e-5, 3e-5, 1e-6)]),
    "writes": (relaxed, [(np.linspace(0.0, 1.0, 9) ** k,) for k in (3, 4, 6, 9)]),
    "for": (implicit_steps, [(*pair, np.array(0.1)) for pair in STEPS]),
    "while": (implicit_steps_of_any_size, STEPS),
    "function": (steps_by_a_function, STEPS),
    "one by one": (decays, PAIRS),
    "break": (until_small, [(Y, np.array(one)) for one in (0.9, 0.5, 0.99, 0.3)]),
}
DIFFERENTIATED = [name for name in PROGRAMS if name not in ("bisection", "Collatz")]


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program_for_all_numbers_of_turns(name: str) -> None:
    function, calls = PROGRAMS[name]
    compiled = pb.compile(function)
    compiled(*calls[0])
    for arguments in calls:
        np.testing.assert_allclose(compiled(*arguments), function(*arguments), rtol=1e-9)
    assert compiled.cache_info().traces == 1
    assert "any number of turns" in compiled.explain(*calls[0])


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_gradients_through_any_number_of_turns(name: str) -> None:
    function, calls = PROGRAMS[name]

    def total(*arguments):
        return np.sum(function(*arguments))

    compiled = pb.compile(pb.value_and_grad(total))
    for arguments in calls:
        arguments = tuple(1.0 * one for one in arguments)
        value, found = compiled(*arguments)
        assert value == pytest.approx(total(*arguments), rel=1e-9)
        x, direction = arguments[0], np.ones_like(arguments[0])
        ahead, behind = (total(x + step * direction, *arguments[1:]) for step in (1e-6, -1e-6))
        assert np.sum(found) == pytest.approx((ahead - behind) / 2e-6, rel=1e-4, abs=1e-6)
    assert compiled.cache_info().traces == 1


# --- what Python's state decides ---------------------------------------------------------------------------


def with_a_counter(x):
    count = 0
    while x > 1:
        count += 1
        if count == 3:
            x = x / 100
        x = x / 2
    return x


def with_a_growing_list(x):
    seen = []
    while x > 1:
        seen.append(x)
        x = x / 2
    return seen[len(seen) // 2] + x


def with_an_iterator(x):
    scales = iter([2, 3, 4, 5] * 50)
    while x > 1:
        x = x / next(scales)
    return x


def with_a_for(x):
    for k in range(1000):
        x = x / (k + 2)
        if x < 1:
            break
    return x * k


def with_an_attribute(x):
    class State:
        count = 0

    state = State()
    while x > 1:
        state.count += 1
        x = x / state.count - 0.01
    return x


def with_a_nonlocal(x):
    count = 0

    def next_scale():
        nonlocal count
        count += 1
        return 1.0 + count

    while x > 1:
        x = x / next_scale()
    return x


def with_a_list_of_scales(x):
    scales = [1.5]
    while x > 1:
        x = x / scales[0]
        scales[0] += 0.5
    return x


def with_a_parity(x):
    even = True
    while x > 1:
        x = x / 2 if even else x - 0.75
        even = not even
    return x


def with_values_sorted(x):
    return sorted([x, 7.0 / x, x * x])[1] + x


def with_the_value_before(x):
    before = x
    while x > 1:
        x, before = x - 0.3 * before / x, x
    return x + before


def with_an_attribute_of_a_function(x):
    def state():
        pass

    state.count = 0
    while x > 1:
        state.count += 1
        x = x / (2 if state.count < 4 else 3)
    return x


def with_a_class_of_its_own(x):
    class State:
        count = 0

        @classmethod
        def scale(cls):
            cls.count += 1
            return 2 if cls.count < 4 else 3

    while x > 1:
        x = x / State.scale()
    return x


def with_a_list_that_has_attributes(x):
    class Row(list):
        count = 0

    row = Row()
    while x > 1:
        row.count += 1
        x = x / (2 if row.count < 4 else 3)
    return x


def with_a_module(x):
    import types

    module = types.ModuleType("module")
    module.count = 0
    while x > 1:
        module.count += 1
        x = x / (2 if module.count < 4 else 3)
    return x


def with_random_numbers_of_pythons(x):
    draws = random.Random(3)
    while x > 1:
        x = x / (2 if draws.random() < 0.7 else 3)
    return x


def with_a_default_dict(x):
    counts = defaultdict(itertools.count().__next__)
    while x > 1:
        x = x / (2 if counts["x"] < 4 else 3)
        counts.clear()
    return x


def with_a_consumer_of_turns(x):
    def halves(x):
        while x > 1:
            x = x / 2
            yield x

    total = 0 * x
    for scale, y in zip([1, 1, 1, 1, 2, 2, 3, 3, 3, 3] * 4, halves(x)):
        total = total + scale * y
    return total


WITH_STATE = [
    with_a_counter, with_a_growing_list, with_an_iterator, with_a_for, with_an_attribute, with_a_nonlocal,
    with_a_list_of_scales, with_a_parity, with_values_sorted, with_the_value_before,
    with_an_attribute_of_a_function, with_a_class_of_its_own, with_a_list_that_has_attributes, with_a_module,
    with_random_numbers_of_pythons, with_a_default_dict, with_a_consumer_of_turns,
]  # fmt: skip


@pytest.mark.drawn(4)
@pytest.mark.parametrize("function", WITH_STATE)
def test_what_turns_do_besides_values_counts(function: Function) -> None:
    compiled = pb.compile(function)
    for one in (3.0, 1e3, 1e6, 40.0, 7.0, 2.2, 1e4, 17.0):
        assert compiled(np.array(one)) == pytest.approx(function(np.array(one)), rel=1e-12)


@pytest.mark.drawn(4)
def test_a_way_that_is_new_is_traced_once() -> None:
    def damped(x):
        while x > 1:
            if x > 100:
                x = 0.1 * x
            elif x > 10:
                x = 0.5 * x
            else:
                x = x - 0.75
        return x

    compiled = pb.compile(damped)
    for one in (9.0, 30.0, 5.0, 8e3, 7e4, 17.0, 2.0, 1.5, 800.0):
        assert compiled(np.array(one)) == pytest.approx(damped(np.array(one)), rel=1e-12)
    before = compiled.cache_info().traces
    for one in np.linspace(2.0, 1e5, 50):
        assert compiled(np.array(one)) == pytest.approx(damped(np.array(one)), rel=1e-12)
    assert compiled.cache_info().traces == before


@pytest.mark.drawn(4)
def test_a_loop_that_code_would_not_leave_ends_as_in_python() -> None:
    def halved(x, zero):
        while np.exp(x) * np.exp(-x) - 1 != zero:
            x = 0.5 * x
        return x

    compiled = pb.compile(halved)
    zero = np.array(0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in (0.7, 1.3, 0.1, 3.3, 0.9):
            assert np.exp(compiled(np.array(one), zero)) < 30


def test_a_loop_in_a_path_that_is_not_taken_does_not_run() -> None:
    def guarded(x, way):
        if way > 0:
            while x < 100:
                x = 1.5 * x
        return x

    compiled = pb.compile(guarded)
    one = np.array(1.0)
    for value, way in ((2.0, 1.0), (-1.0, -1.0), (3.0, 1.0), (-2.0, -3.0), (-2.0, -3.0), (5.0, 2.0)):
        found = compiled(value * one, way * one)
        assert found == pytest.approx(guarded(value * one, way * one), rel=1e-12)


def test_loops_after_each_other_that_share_nothing() -> None:
    def both(x, y):
        while x > 1:
            x = x - 2
        while y > 1:
            y = y - 3
        return x, y

    compiled = pb.compile(both)
    for one, other in ((30.0, 6.5), (5.0, 30.0), (9.0, 3.5), (77.0, 13.0), (4.0, 4.0), (8.0, 6.0)):
        found = compiled(np.array(one), np.array(other))
        assert [*map(float, found)] == [*both(one, other)]


@pytest.mark.drawn(4)
def test_loops_in_loops() -> None:
    def nested(a):
        total = 0.0 * a
        while a > 1:
            b = a
            while b > 1:
                b = b / 2
                total = total + b
            a = a - 1.5
        return total

    compiled = pb.compile(nested)
    for one in (10.0, 3.0, 5.0, 7.0, 8.0, 4.5):
        assert compiled(np.array(one)) == pytest.approx(nested(one), rel=1e-12)
    assert compiled.cache_info().traces == 1


@pytest.mark.drawn(4)
def test_second_derivatives() -> None:
    compiled = pb.compile(pb.grad(pb.grad(root)))
    for one in (30.0, 5.0, 1e3):
        assert compiled(np.array(one)) == pytest.approx(-0.25 * one**-1.5, rel=1e-6)


def test_each_run_of_an_inner_function_has_loops_of_its_own() -> None:
    def twice(x):
        for _ in range(2):
            x = root(x) + 1.0
        return x

    compiled = pb.compile(twice)
    for one in (30.0, 5.0, 1e3, 77.0):
        assert compiled(np.array(one)) == pytest.approx(twice(np.array(one)), rel=1e-12)


# --- counters -----------------------------------------------------------------------------------------------


def root_in_few_turns(a, tolerance):
    x, turns = a, 0
    while abs(x * x - a) > tolerance and turns < 100:
        x = 0.5 * (x + a / x)
        turns += 1
    return x


def root_by_a_for(a, tolerance):
    x = a
    for _ in range(100):
        x = 0.5 * (x + a / x)
        if abs(x * x - a) < tolerance:
            break
    return x


@pytest.mark.drawn(4)
@pytest.mark.parametrize("function", [root_in_few_turns, root_by_a_for])
def test_a_number_of_turns_that_python_counts_compiles_nothing_new(function: Function) -> None:
    compiled, slope = pb.compile(function), pb.compile(pb.grad(function))
    tolerance, values = np.array(1e-6), (30.0, 1e3, 5.0, 1e6, 77.0, 1e4, 30.0, 2e6)
    for one in values:
        assert compiled(np.array(one), tolerance) == function(np.array(one), tolerance)
        assert slope(np.array(one), tolerance) == pytest.approx(0.5 / np.sqrt(one), rel=1e-6)
    for made in (compiled, slope):
        info = made.cache_info()
        assert info.size == 1 and info.compilations + info.disk_hits + info.source_hits <= 2
    traces = compiled.cache_info().traces
    for one in values:
        compiled(np.array(one), tolerance)
    assert compiled.cache_info().traces == traces <= len(values)


@pytest.mark.drawn(6)
def test_a_loop_that_a_counter_ends_gives_what_python_gives() -> None:
    compiled = pb.compile(root_in_few_turns)
    for one in (30.0, 77.0, 2.5e5, 30.0):
        for tolerance in (1e-6, 0.0, 1e-3):
            found = compiled(np.array(one), np.array(tolerance))
            assert found == root_in_few_turns(np.array(one), np.array(tolerance))


def test_a_number_of_turns_that_python_reads_has_a_path_of_its_own() -> None:
    def scaled(a):
        x, turns = a, 0
        while abs(x * x - a) > 1e-6:
            x = 0.5 * (x + a / x)
            turns += 1
        return x * turns

    compiled = pb.compile(scaled)
    for one in (30.0, 1e3, 5.0, 30.0, 1e6, 1e3, 5.0):
        assert compiled(np.array(one)) == scaled(np.array(one))


def test_objects_without_attributes_may_lie_beside_a_loop() -> None:
    def halved(x: np.ndarray) -> np.ndarray:
        marker = object()
        while x.sum() > 1 and marker is not None:
            x = x / 2
        return x

    np.testing.assert_allclose(pb.compile(halved)(np.ones(3)), np.full(3, 0.25))


def halved(v):
    while abs(v) > 0.5:
        v = v / 2
    return v


IN_BODIES: dict[str, Function] = {
    "fori_loop": lambda y: pb.fori_loop(0, 1, lambda i, carry: halved(y.mean()), 0.0),
    "scan": lambda y: pb.scan(lambda carry, x: (carry + x * halved(y.mean()), carry), 0.0, y)[0],
    "cond": lambda y: pb.cond(y[0] > 1.0, lambda: halved(y.mean()), lambda: halved(2 * y.mean())),
    "root": lambda y: scipy.optimize.brentq(lambda x: x**3 + x - halved(y.mean()), -3, 3),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", IN_BODIES)
def test_turns_in_a_body_that_is_traced_once(name: str) -> None:
    """The body holds as many as were traced; for another number it is traced again."""
    function = IN_BODIES[name]
    compiled = pb.compile(function)
    for scale in (1.0, 6.0, 0.1, 3.0):
        y = np.array([1.65, 2.32, -0.94]) * scale
        np.testing.assert_allclose(compiled(y), function(y), rtol=1e-12)


def test_other_questions_of_one_call_are_no_turns() -> None:
    """bincount asks whether its numbers are negative, and which is the largest."""
    compiled = pb.compile(lambda x, y: (x * 2, np.bincount(np.abs(y))))
    for y in (np.array([-1, 5, 9]), np.array([2, 0, 3]), np.array([2, 0, 20])):
        np.testing.assert_array_equal(compiled(np.ones(3), y)[1], np.bincount(np.abs(y)))


@pytest.mark.drawn(4)
def test_an_inner_loop_that_begins_with_the_value_of_another_variable():
    """Where it takes no turn, that other variable is what is read after it."""

    def f(x):
        total = x * 0.0
        while x < 10.0:
            y = x
            while y < 5.0:
                y = y * y + 1.0
                total = total + y
            x = x * 1.5
        return total

    compiled = pb.compile(pb.value_and_grad(f))
    for x in (1.0, 0.3, 0.1, 2.0, 4.0):
        np.testing.assert_allclose(compiled(np.array(x)), pb.value_and_grad(f)(np.array(x)), rtol=1e-12)
    assert compiled.cache_info().traces <= 2


class Held:
    __slots__ = ("t", "y")

    def __init__(self, t, y):
        self.t = t
        self.y = y


class HeldAndMore(Held):
    __slots__ = ("factor",)


@pytest.mark.parametrize("kind", [Held, HeldAndMore])
def test_objects_with_slots_as_state(kind):
    def f(x):
        state = kind(x[0] * 0, x[0])
        if kind is HeldAndMore:
            state.factor = 0.5
        while state.t < 1.0:
            state.y = state.y * 0.9
            state.t = state.t + 0.1 * abs(x[1])
        return state.y

    compiled = pb.compile(pb.value_and_grad(f))
    for pair in ([1.0, 2.0], [3.5, 0.5], [0.2, 0.8], [2.0, -3.0]):
        x = np.array(pair)
        (value, slope), (expected, expected_slope) = compiled(x), pb.value_and_grad(f)(x)
        np.testing.assert_allclose(value, expected, rtol=1e-14)
        np.testing.assert_allclose(slope, expected_slope, rtol=1e-14)
    assert compiled.cache_info().traces == 1


# --- ways through a turn that meet again --------------------------------------------------------------------


def with_choices_in_a_row(a):
    x, s = a, 0.0 * a
    while x < 40.0:
        if np.sin(x) > 0:
            s = s + x
        if np.sin(2 * x) > 0:
            s = s - 0.5 * x
        elif np.cos(3 * x) > 0:
            s = s * 0.9
        if np.sin(5 * x) > 0 and np.cos(x) > 0:
            s = s + 1.0
        if np.sin(7 * x) > 0:
            x = x + 0.3
        x = x + 1.0 + 0.1 * a
    return s


def with_steps_refused(a):
    t, y, h, refused = 0.0, 1.0, 0.1, 0
    while t < 3.0:
        first = -a * y + np.cos(t)
        second = -a * (y + h * first) + np.cos(t + h)
        error = abs(0.5 * h * (second - first)) / 1e-2
        factor = 0.9 / np.sqrt(error + 1e-12)
        if factor > 3.0:
            factor = 3.0
        elif factor < 0.2:
            factor = 0.2
        if error > 1.0:
            refused += 1
            h *= factor
            continue
        t += h
        y = y + 0.5 * h * (first + second)
        h *= factor
        if t + h > 3.0:
            h = 3.0 - t
    return y + 0.1 * refused


def with_a_loop_behind_a_choice(a):
    x, s = a, 0.0 * a
    while x < 30.0:
        step = 1.5
        if np.sin(x) > 0:
            step = 0.7
        if np.cos(2 * x) > 0:
            y = x
            while y > 1.0:
                y = y * 0.6
                s = s + y
        if np.sin(3 * x) > 0:
            s = s * 0.9
        x = x + step * (1.0 + 0.1 * a)
    return s


@pytest.mark.drawn(6)
@pytest.mark.part(1)
@pytest.mark.parametrize(
    "function, most", [(with_choices_in_a_row, 1), (with_steps_refused, 2), (with_a_loop_behind_a_choice, 3)]
)
def test_choices_in_a_turn_are_not_a_trace_for_each_combination(function: Function, most: int) -> None:
    compiled = pb.compile(pb.value_and_grad(function))
    for one in (0.3, 1.0, 2.0, 3.3, 5.0, 0.7, 8.0):
        found, expected = compiled(np.float64(one)), pb.value_and_grad(function)(np.float64(one))
        np.testing.assert_allclose(found, expected, rtol=1e-8)
    assert compiled.cache_info().traces <= most


def with_a_number_on_the_stack(a, b):
    x = a
    while x < 30.0:
        x = x + (0.5 if np.sin(x) > 0 else 1.25) * (2.0 if np.sin(x) > b else 1.0)
    return x


def with_a_number_on_the_stack_of_a_caller(a, b):
    def scale(x):
        return x * 0.1 if np.sin(x) > b else 0.75

    x = a
    while x < 30.0:
        x = x + (0.5 if np.sin(x) > 0 else 1.25) * scale(x)
    return x


def with_answers_that_are_kept(a, b):
    x = a
    while x < 30.0:
        is_up = np.sin(x) > 0
        x = x + 0.1 if is_up else x + 0.2
        if np.sin(x) > b:
            x = x + 0.5
        x = x + (1.0 if is_up else 2.0)
    return x


def with_a_number_that_a_choice_sets(a, b):
    x = a
    while x < 30.0:
        scale = "less"
        if np.sin(x) > 0:
            scale = "more"
        if np.sin(x) > b:
            x = x + 0.5
        x = x + (0.5 if scale == "less" else 1.25)
    return x


def with_arrays_of_two_names(a, b):
    x, best, worst = np.array([1.0, 2.0]) * a, np.zeros(2), np.ones(2)
    while x[0] < 30.0:
        if np.sin(x[0]) > 0:
            best = x
        else:
            worst = x
        if np.sin(x[0]) > b:
            best = best * 0.9 + worst * 0.1
        else:
            worst = worst + 0.1
        x = x + 1.0 + 0.1 * best / (1.0 + np.max(best))
    return np.sum(best * worst)


def with_a_variable_that_is_set_once(a, b):
    y = 1.0 * a
    best = y
    while y < 30.0:
        if np.abs(y - 10.0 * b - a) < 0.4:  # in the first call at the first turn: `best` stays what it was
            best = y
        y = y + 1.0
    return best * y


def with_what_answers_set_back(a, b):
    x, best = a, 0.0 * a
    start = best
    while x < 30.0:
        if np.sin(x) > 0:
            best = x
        if np.sin(x) > b:
            best = start
        if np.cos(x) > 0:
            x = x + 0.1 * best
        x = x + 1.0
    return x


def with_a_list_of_choices(a, b):
    x, seen = a, []
    while x < 30.0:
        if np.sin(x) > 0:
            seen.append(2.0)
        if np.sin(x) > b:
            x = x + 0.5
        x = x + 1.0
    return x * sum(seen)


@pytest.mark.drawn(6)
@pytest.mark.part(1)
@pytest.mark.parametrize("function", [
    with_a_number_on_the_stack, with_a_number_on_the_stack_of_a_caller, with_answers_that_are_kept,
    with_a_number_that_a_choice_sets, with_arrays_of_two_names, with_what_answers_set_back,
    with_a_list_of_choices, with_a_variable_that_is_set_once,
])  # fmt: skip
def test_what_python_holds_where_ways_meet_counts(function: Function) -> None:
    """In the first call one answer tells the other, so that no value shows which way a turn has come."""
    compiled = pb.compile(pb.value_and_grad(function))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for one, other in ((0.3, 0.0), (0.3, 0.5), (1.0, -0.5), (2.0, 0.3), (0.7, 0.0), (0.7, -0.3)):
            arguments = np.float64(one), np.float64(other)
            found, expected = compiled(*arguments), pb.value_and_grad(function)(*arguments)
            np.testing.assert_allclose(found, expected, rtol=1e-9)
