"""Lists that grow in loops which values end: one program for all lengths, and what NumPy makes of them."""

import warnings

import numpy as np
import pytest

import pullback as pb

pytestmark = [pytest.mark.part(8), pytest.mark.usefixtures("partly_compiled")]


def steps(a):
    """An adaptive integrator that keeps the steps which it accepts."""
    t, h, y = 0.0, 0.1, a
    ts, ys = [t], [y]
    while t < 2.0:
        h = min(h, 2.0 - t)
        first = -a * y + np.sin(y)
        second = -a * (y + h * first) + np.sin(y + h * first)
        error = abs(0.5 * h * (second - first)) / 1e-2
        if error <= 1.0:
            t = t + h
            y = y + 0.5 * h * (first + second)
            ts.append(t)
            ys.append(y)
        h = h * min(2.0, max(0.3, 0.9 / np.sqrt(error + 1e-10)))
    return ts, ys


def area(a):
    ts, ys = steps(a)
    ts, ys = np.array(ts), np.asarray(ys)
    return np.sum(0.5 * (ys[1:] + ys[:-1]) * np.diff(ts))


def halves(a):
    values = []
    while a > 1.0:
        a = a * 0.6
        values.append(a)
    return values


def sums(a):
    values = halves(a)
    return sum(values) / len(values) + max(values) * values[-1] + min(values)


def means(a):
    values = np.array(halves(a))
    return np.mean(a * values**2) + values.max() * values[0] + np.prod(np.where(values > 2.0, values, 1.0))


def of_arrays(a):
    x, rows = np.array([1.0, 0.5, 2.0]) * a, []
    for _ in range(60):
        x = x * np.array([0.5, 0.7, 0.6])
        rows.append(x)
        if np.max(x) < 1.0:
            break
    table = np.stack(rows)
    return np.sum(table[:, 1] * np.sum(table, axis=1)) + rows[-1][0]


def read_in_turns(a):
    values = [a, a * 0.9]
    while values[-1] > 1.0:
        values.append(0.5 * values[-1] + 0.2 * values[-2])
    return values[-1] * len(values)


def at_counted_places(a):
    values, k = [a], 0
    while values[k] > 1.0:
        values.append(values[k] * 0.7)
        k += 1
    return values[k] + values[0]


def two_by_turns(a):
    values = [1.0]
    while a > 1.0:
        a = a * 0.6
        values += [a, 2.0 * a]
    return np.sum(np.array(values) ** 2) + np.dot(values, values) + np.trapezoid(values)


def pieces(a):
    total = 0.0
    for scale in (1.0, 2.0):
        values = [scale * a]
        while values[-1] > 1.0:
            values.append(values[-1] * 0.6)
        total = total + np.sum(values)
    return total


def of_numbers(a):
    times, t = [], 0.0
    while t < 1.0:
        times.append(t)
        t += 0.4 / a
    return np.sum(np.array(times) * a) + times[-1]


def dimensions_from_the_last(a):
    x, rows = np.array([1.0, 2.0]) * a, []
    while np.max(x) > 1.0:
        x = x * 0.5
        rows.append(x)
    table = np.array(rows)
    return np.sum(table.mean(axis=-2)) + np.sum(table.max(-1) ** 2) + np.sum(np.mean(table, -1))


def with_two_results(a):
    values = np.array(halves(a))
    parts, wholes = np.modf(values * 1.7)
    return np.sum(parts) + np.mean(wholes * values)


def of_pairs(a):
    n, x, pairs = 0, a, [(0.0, a)]
    while x > 1.0:
        n, x = n + 1, 0.5 * x
        pairs.append((0.1 * n, x))
    last, before = pairs[-1], pairs[-2]
    return np.sum(np.array(pairs)[:, 1]) * last[1] + before[0] * last[0]


def in_a_dict(a):
    x, found = a, {"all": [a], "count": 0}
    while x > 1.0:
        x = 0.5 * x
        found["all"].append(x)
        found["count"] += 1
    return np.mean(found["all"]) * found["count"]


class Halving:
    def __init__(self, x):
        self.x = x
        self.history = []

    def step(self):
        self.history.append(self.x)
        self.x = 0.5 * self.x

    def run(self):
        while self.x > 1.0:
            self.step()
        return np.asarray(self.history, like=self.x)


def in_an_object(a):
    return np.sum(Halving(a).run()) * a


def beginning_with_an_array(a):
    x = np.array([2.0, 3.0])
    kept = [x]
    while np.sum(x) > 1.0:
        x = x * np.array([0.5, 1.0 / a])
        kept.append(x)
    return np.sum(np.array(kept)[-1]) * a + np.array(kept)[-1, 0]


def stacked(a):
    todo, total = [(0.0, a, 0.5)], 0.0
    while todo:
        left, right, least = todo.pop()
        middle = 0.5 * (left + right)
        if right - left < least:
            total = total + (right - left) * middle * a
        else:
            todo.append((left, middle, 2.0 * least))
            todo.append((middle, right, least))
    return total


VALUES = (3.0, 30.0, 1.6, 7.0)
FUNCTIONS = (
    sums, means, of_arrays, read_in_turns, at_counted_places, two_by_turns, pieces, of_numbers, area,
    dimensions_from_the_last, with_two_results, of_pairs, in_a_dict, in_an_object, beginning_with_an_array,
    stacked,
)  # fmt: skip


@pytest.mark.drawn(4)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_program_for_all_lengths(function):
    compiled = pb.compile(pb.value_and_grad(function))
    for one in (1.3, 0.7, 2.1, 3.0) if function is area else VALUES:
        (value, slope), (expected, around) = compiled(np.float64(one)), pb.value_and_grad(function)(one)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(slope, around, rtol=1e-9)
    assert compiled.cache_info().traces <= 2
    assert compiled.cache_info().size == 1 or function is area  # of accepted steps, and of both


@pytest.mark.drawn(6)
def test_results_have_the_length_that_they_have():
    def both(a):
        ts, ys = steps(a)
        return {"times": np.array(ts), "values": (np.array(ys), np.array(ys)[1:] * 2.0)}, len(ts)

    compiled = pb.compile(both)
    lengths = set()
    for one in (1.3, 0.7, 2.1, 3.0):
        (found, count), (expected, length) = compiled(np.float64(one)), both(one)
        assert type(found["times"]) is np.ndarray and count == length == len(found["times"])
        np.testing.assert_allclose(found["times"], expected["times"], rtol=1e-12)
        for mine, theirs in zip(found["values"], expected["values"]):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)
        lengths.add(length)
    assert len(lengths) > 2 and compiled.cache_info().traces <= 2


def test_gradients_of_results():
    compiled = pb.compile(lambda a: np.array(halves(a)))
    for one in (3.0, 30.0):
        found = pb.grad(lambda a: np.sum(compiled(a) ** 2))(np.float64(one))
        np.testing.assert_allclose(found, 2 * np.sum(np.square(halves(one))) / one, rtol=1e-12)
    assert compiled.cache_info().traces == 1


@pytest.mark.drawn(4)
def test_second_derivatives():
    compiled = pb.compile(pb.grad(pb.grad(means)))
    for one in (3.0, 30.0, 7.0):
        np.testing.assert_allclose(compiled(np.float64(one)), pb.grad(pb.grad(means))(one), rtol=1e-9)
    assert compiled.cache_info().traces <= 2


@pytest.mark.drawn(6)
def test_more_elements_than_there_is_room_for():
    def long(a):
        row, rows = np.ones(300), []
        while a > 1.0:
            a = a - 1.0
            rows.append(row * a)
        return np.sum(np.array(rows))

    compiled = pb.compile(long)
    for one in (5.0, 70.0, 30.0):
        np.testing.assert_allclose(compiled(np.float64(one)), long(np.float64(one)), rtol=1e-12)
    assert compiled.cache_info().traces == 2


@pytest.mark.drawn(4)
def test_an_empty_list_has_no_elements():
    compiled = pb.compile(lambda a: halves(a)[-1])
    for one in (3.0, 30.0):
        assert compiled(np.float64(one)) == halves(one)[-1]
    with pytest.raises(IndexError):
        compiled(np.float64(0.5))
    compiled = pb.compile(lambda a: np.array(halves(a)))
    for one in (3.0, 0.5, 30.0, 0.5):
        np.testing.assert_allclose(compiled(np.float64(one)), halves(one))


# --- what is no list that only grows, or asks how long it is ------------------------------------------------


def in_two_places(a):
    x, found = a, {"all": [a]}
    same = found["all"]
    while x > 1.0:
        x = 0.5 * x
        found["all"].append(x)
    return np.sum(same)


def of_tuples_of_other_lengths(a):
    x, kept = a, [(a,)]
    while x > 1.0:
        x = 0.5 * x
        kept.append((x, a) if x > 2.0 else (x,))
    return sum(one[0] * len(one) for one in kept)


def taken_from_the_front(a):
    x, kept = a, [a]
    while x > 1.0:
        x = 0.5 * x
        kept.append(x)
        if x < 5.0:
            x = x - 0.01 * kept.pop(0)
    return np.sum(kept)


def beginning_with_an_array_that_is_written(a):
    def fill(one):
        one[0] = 5.0

    x = start = np.array([2.0, 3.0])
    n = 0
    while np.sum(x) > 1.0:
        if n == 0:
            fill(start)
        x = x * np.array([0.5, 1.0 / a])
        n = n + 1
    return np.sum(x) * n


def with_an_alias(a):
    values = []
    others = values
    while a > 1.0:
        a = a * 0.6
        values.append(a)
    return sum(others)


def with_elements_written_later(a):
    x, rows = np.array([1.0, 2.0]) * a, []
    while np.max(x) > 1.0:
        rows.append(x)
        x *= 0.5
    return np.sum(np.array(rows))


def with_elements_written_before(a):
    x, rows = np.array([1.0, 2.0]) * a, []
    while np.max(x) > 1.0:
        x = x * 0.5
        x[0] = x[1] * 0.3
        rows.append(x)
    return np.sum(np.array(rows))


def with_a_stack(a):
    waiting, total = [a], 0.0
    while len(waiting) > 0:
        one = waiting.pop()
        total = total + one
        if one > 1.0:
            waiting.append(one * 0.5)
            waiting.append(one * 0.3)
    return total


def with_elements_replaced(a):
    values = [a]
    while a > 1.0:
        a = a * 0.6
        values.append(a)
        values[0] = values[0] + a
    return values[0]


def with_others_among_them(a):
    values = [np.ones(2) * a]
    while a > 1.0:
        a = a * 0.6
        values.append(np.ones(3) * a)
    return np.sum(np.concatenate(values))


def asked_for_their_length(a):
    values = np.array(halves(a))
    return np.sum(np.sort(values) * np.arange(len(values))) + np.sum(values.reshape(-1, 1))


def in_another_list(a):
    values = [[a]]
    while a > 1.0:
        a = a * 0.6
        values[0].append(a)
        values.append([a])
    return sum(values[0]) + len(values)


def in_comprehensions(a):
    values = halves(a)
    return sum(one * place for place, one in enumerate(values)) + sum([2 * one for one in reversed(values)])


def of_arrays_that_are_written(a):
    values = np.array(halves(a))
    values[0] = 7.0
    return np.sum(values)


def written_where_they_are_read(a):
    rows = [np.ones(2) * a]
    while a > 1.0:
        a = a * 0.6
        rows.append(np.ones(2) * a)
    last = rows[-1]
    last[0] = 100.0
    return np.sum(np.array(rows))


def rows_of_halves(a):
    x, rows = np.array([1.0, 2.0]) * a, []
    while np.max(x) > 1.0:
        x = x * 0.5
        rows.append(x)
    return x, rows


def written_in_a_loop_over_them(a):
    last, rows = rows_of_halves(a)
    for row in rows:
        row += 1.0
    return np.sum(np.array(rows)) + np.sum(last)


def written_in_a_loop_over_an_array_of_them(a):
    _, rows = rows_of_halves(a)
    table = np.array(rows)
    for row in table:
        row += 1.0
    return np.sum(table) + np.sum(np.array(rows) ** 2)


def of_parts_that_are_written(a):
    values = halves(a)
    table = np.array(values)
    part = table[::2]
    part += 1.0
    return np.sum(table) + np.sum(np.array(values) ** 2)


def of_row_that_is_written(a):
    _, rows = rows_of_halves(a)
    table = np.array(rows)
    row = table[-1]
    row += 1.0
    return np.sum(table) + np.sum(np.array(rows) ** 2)


def compared(a):
    values = halves(a)
    return a if values == [] else a * 2.0 + [*values, 1.0][-1]


def with_an_element_that_is_no_number(a):
    values = halves(a)
    values.append(values[0] * np.nan)
    return max(values) + min(values)


FOREIGN = (
    with_an_element_that_is_no_number,
    with_an_alias, with_elements_written_later, with_elements_written_before, with_a_stack,
    with_elements_replaced, with_others_among_them, asked_for_their_length, in_another_list,
    in_comprehensions, of_arrays_that_are_written, written_where_they_are_read, compared,
    written_in_a_loop_over_them, written_in_a_loop_over_an_array_of_them, of_parts_that_are_written,
    of_row_that_is_written, in_two_places, of_tuples_of_other_lengths, taken_from_the_front,
    beginning_with_an_array_that_is_written,
)  # fmt: skip


@pytest.mark.drawn(2)
@pytest.mark.parametrize("function", FOREIGN)
def test_is_what_python_gives(function):
    compiled = pb.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for one in (3.0, 12.0, 2.0, 3.0):
            np.testing.assert_allclose(compiled(np.float64(one)), function(np.float64(one)), rtol=1e-12)


# --- Python's min and max -----------------------------------------------------------------------------------


def clipped(a):
    x = a
    while abs(x - 1.0) > 1e-3:
        x = x + min(0.3, max(-0.2, 0.5 * (1.0 - x)))
    return x * max(a, 2.0 * x, 1.5)


def test_smaller_and_larger_numbers_are_no_ways():
    compiled = pb.compile(pb.value_and_grad(clipped))
    for one in (0.99, 5.0, -3.0, 1.2):
        (value, slope), (expected, other) = compiled(np.float64(one)), pb.value_and_grad(clipped)(one)
        np.testing.assert_allclose((value, slope), (expected, other), rtol=1e-12)
    assert compiled.cache_info().traces == 1


@pytest.mark.parametrize("function", [
    lambda x: min(x * 2.0, 3.0), lambda x: max(3.0, x * 2.0, 1.0), lambda x: min(max(x * 2.0, 1.5), 2.5),
    lambda x: max(0.0, x), lambda x: max([x, 2 * x]), lambda x: min(x, 1),
])  # fmt: skip
def test_the_kind_of_a_number_that_is_returned(function):
    compiled = pb.compile(function)
    for one in (0.5, 2.0, np.nan, -1.0):
        found, expected = compiled(np.float64(one)), function(np.float64(one))
        assert type(found) is type(expected)
        np.testing.assert_array_equal(found, expected)
