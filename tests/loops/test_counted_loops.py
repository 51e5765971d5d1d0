"""`for` loops over arrays, `enumerate`, `zip` and `itertools.count` that values end: one program for all."""

import itertools
from itertools import count

import numpy as np
import pytest

import pullback as pb

pytestmark = [pytest.mark.part(2), pytest.mark.usefixtures("partly_compiled")]
TABLE = np.linspace(0.9, 0.5, 100)
ROWS = TABLE.reshape(50, 2)


def counted(a):
    for k in itertools.count():
        a = a * 0.7 + 0.01 * k
        if a < 1.0:
            break
    return a * k


def counted_in_steps(a):
    for k in count(3, -2):
        a = a * 0.7
        if a + 0.01 * k < 1.0:
            break
    return a * k


def over_an_array(a):
    for factor in TABLE:
        a = a * factor
        if a < 1.0:
            break
    return a


def over_rows(a):
    for row in ROWS:
        a = a * row[0] + np.sum(row) * 0.1
        if a < 1.0:
            break
    else:
        a = a + 1.0
    return a


def over_an_argument(a):
    factors = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]) * (1.0 + 0.001 * a)
    for factor in factors:
        a = a * factor
        if a < 1.0:
            break
    return a


def enumerated(a):
    for k, factor in enumerate(TABLE, 1):
        a = a * factor + 0.001 * k
        if a < 1.0:
            break
    return a * k


def zipped(a):
    total = 0.0 * a
    for k, factor, other in zip(range(5, 100, 2), TABLE, TABLE[::-1]):
        a = a * factor * other
        total = total + a * k
        if a < 1.0:
            break
    return total


def over_lists(a):
    weights = [0.9 - 0.01 * k for k in range(40)]
    for weight, whole in zip(weights, tuple(range(40))):
        a = a * weight + 0.001 * whole
        if a < 1.0:
            break
    return a * weight


def with_the_elements_of_several(a):
    for k, factor in enumerate(TABLE[:3]):
        for other in TABLE[: k + 1]:
            a = a * (1.0 - 0.3 * other)
            if a < 2.0:
                break
        a = a * factor
        if a < 1.0:
            break
    return a


FUNCTIONS = [
    counted, counted_in_steps, over_an_array, over_rows, over_an_argument, enumerated, zipped, over_lists,
]  # fmt: skip
VALUES = (3.0, 30.0, 1.6, 12.0)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_program_for_all_numbers_of_turns(function):
    compiled = pb.compile(pb.value_and_grad(function))
    for one in VALUES:
        found, expected = compiled(np.float64(one)), pb.value_and_grad(function)(one)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert compiled.cache_info().traces == 1


def in_an_iterator_of_its_own(a):
    steps = enumerate(TABLE)
    for k, factor in steps:  # noqa: B007
        a = a * factor
        if a < 1.0:
            break
    k, factor = next(steps)
    return a * k * factor


def through_others(a):
    for factor in itertools.chain(TABLE[:2], TABLE[1:]):
        a = a * factor
        if a < 1.0:
            break
    return a


def while_it_is_written(a):
    table = TABLE.copy()
    for k, factor in enumerate(table):
        a = a * factor
        table[k + 1] = 0.5 * factor + 0.2
        if a < 1.0:
            break
    return a


def while_a_list_changes(a):
    weights = [0.9] * 40
    for k, weight in enumerate(weights):
        a = a * weight
        weights[k + 1] = 0.8 * weight + 0.1
        if a < 1.0:
            break
    return a


def of_a_generator(a):
    def halves(a):
        while True:
            a = a * 0.6
            yield a

    for k, one in enumerate(halves(a)):  # noqa: B007
        if one < 1.0:
            break
    return one * k


@pytest.mark.drawn(4)
@pytest.mark.parametrize(
    "function",
    [
        in_an_iterator_of_its_own, through_others, while_it_is_written, while_a_list_changes, of_a_generator,
        with_the_elements_of_several,
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*compiled once more")
def test_is_what_python_gives(function):
    compiled = pb.compile(function)
    for one in VALUES:
        np.testing.assert_allclose(compiled(np.float64(one)), function(np.float64(one)), rtol=1e-12)


# --- recursion ----------------------------------------------------------------------------------------------


def area(a):
    def part(left, right, tolerance):
        middle = 0.5 * (left + right)
        whole = (right - left) * np.exp(-a * middle**2)
        halves = 0.5 * (right - left) * (np.exp(-a * (0.7 * left + 0.3 * right) ** 2) + np.exp(-a * right**2))
        if abs(halves - whole) < tolerance:
            return halves
        return part(left, middle, 0.5 * tolerance) + part(middle, right, 0.5 * tolerance)

    return part(0.0, 2.0, 0.05)


def area_by_a_loop(a):
    todo, n, total = np.zeros((50, 3)), 1, 0.0
    todo[0] = 0.0, 2.0, 0.05
    while n > 0:
        n -= 1
        left, right, tolerance = todo[n]
        middle = 0.5 * (left + right)
        whole = (right - left) * np.exp(-a * middle**2)
        halves = 0.5 * (right - left) * (np.exp(-a * (0.7 * left + 0.3 * right) ** 2) + np.exp(-a * right**2))
        if abs(halves - whole) < tolerance:
            total = total + halves
        else:
            todo[n] = left, middle, 0.5 * tolerance
            todo[n + 1] = middle, right, 0.5 * tolerance
            n += 2
    return total


@pytest.mark.machine_code
def test_a_recursion_is_warned_of():
    compiled = pb.compile(pb.grad(area))
    with pytest.warns(UserWarning, match=r"calls itself .*test_counted_loops.py:\d+  if abs(.|\n)*`todo = "):
        for one in (0.1, 1.0, 4.0):
            np.testing.assert_allclose(compiled(np.float64(one)), pb.grad(area)(one), rtol=1e-9)


@pytest.mark.drawn(4)
def test_the_loop_that_is_to_be_written_is_one_program():
    compiled = pb.compile(pb.grad(area_by_a_loop))
    for one in (1.0, 0.1, 4.0, 9.0):
        np.testing.assert_allclose(compiled(np.float64(one)), pb.grad(area)(one), rtol=1e-9)
    assert compiled.cache_info().traces <= 2
