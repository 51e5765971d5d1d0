"""First turns that begin with Python's numbers are turns like others: one trace for all of them."""

import numpy as np
import pytest

import pullback as pb

pytestmark = pytest.mark.usefixtures("partly_compiled")


def heun(rate, start):
    t, h = 0.0, 0.1
    y = start
    while t < 2.0:
        first = -rate * y
        second = -rate * (y + h * first)
        error = abs(0.5 * h * (second - first)) + 1e-12
        if error < 1e-3:
            t = t + h
            y = y + 0.5 * h * (first + second)
        h = 0.9 * h * np.sqrt(1e-3 / error)
    return y


def first_same_as_last(rate, start):
    t, h = 0.0, 0.1
    y = start
    slope = -rate * y
    while t < 1.0:
        middle = -rate * (y + 0.5 * h * slope)
        new = y + h * middle
        last = -rate * new
        error = abs(h * (slope - 2.0 * middle + last)) + 1e-12
        if error < 1e-3:
            t, y, slope = t + h, new, last
        h = 0.9 * h * np.cbrt(1e-3 / error)
    return y


def golden(a, b):
    low, high = -3.0, 3.0
    ratio = (np.sqrt(5.0) - 1.0) / 2.0

    def f(x):
        return (x - a) ** 2 + 0.1 * b * x

    left, right = high - ratio * (high - low), low + ratio * (high - low)
    of_left, of_right = f(left), f(right)
    while high - low > 1e-6 * (1.0 + a * a):
        if of_left < of_right:
            high, right, of_right = right, left, of_left
            left = high - ratio * (high - low)
            of_left = f(left)
        else:
            low, left, of_left = left, right, of_right
            right = low + ratio * (high - low)
            of_right = f(right)
    return f(0.5 * (low + high))


def illinois(a, b):
    """The false position: the value at an end that stays twice is halved."""
    low, high, side = 0.0, 10.0, 0
    of_low, of_high = -a, 1e3 + b * 10.0 - a
    for _ in range(100):
        x = (of_low * high - of_high * low) / (of_low - of_high)
        value = x**3 + b * x - a
        if abs(value) < 1e-6:
            break
        if value * of_high > 0:
            high, of_high = x, value
            if side == -1:
                of_low *= 0.5
            side = -1
        else:
            low, of_low = x, value
            if side == 1:
                of_high *= 0.5
            side = 1
    return x


def until_done(rate, start):
    """Flags, of which one begins as another truth value, and an array that begins as numbers."""
    x, done, was_small = np.array([1.0, 2.0]), False, True
    while not done:
        x = x * (0.5 if was_small else 0.7) / (1.0 + 0.1 * rate)
        was_small = np.sum(x) < 0.3 * start
        done = np.sum(x) < 1e-3 or np.max(x) > 9.0
    return np.sum(x) * 100.0 * start


def of_tensors(rate, start):
    t, h = 0.0, 0.1
    y = start
    while t < 2.0:
        first = -rate * y
        second = -rate * (y + h * first)
        error = (0.5 * h * (second - first)).abs() + 1e-12
        if error < 1e-3:
            t = t + h
            y = y + 0.5 * h * (first + second)
        h = 0.9 * h * pb.sqrt(1e-3 / error)
    return y


ARGUMENTS = [(1.0, 1.0), (5.0, 2.0), (0.3, 0.5), (12.0, 3.0), (2.5, 1.1)]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("f", [heun, first_same_as_last, golden])
@pytest.mark.parametrize("argnums", [0, (0, 1)])
def test_one_trace_serves_all_numbers_of_turns(f, argnums):
    """A second one, where the first call has not gone all ways through a turn."""
    plain = pb.value_and_grad(f, argnums)
    compiled = pb.compile(plain)
    for values in ARGUMENTS:
        given = tuple(map(np.float64, values))
        (value, slope), (expected, expected_slope) = compiled(*given), plain(*given)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(slope, expected_slope, rtol=1e-9, atol=1e-12)
    assert compiled.cache_info().traces <= 2


@pytest.mark.drawn(4)
@pytest.mark.parametrize("f", [heun, illinois, until_done])
def test_numbers_of_python_s_are_arguments(f):
    """The side of `illinois` is set to constants, its ends to what other turns compute."""
    plain = pb.value_and_grad(f)
    compiled = pb.compile(plain)
    for values in ARGUMENTS:
        np.testing.assert_allclose(compiled(*values), plain(*values), rtol=1e-9, atol=1e-12)
    assert compiled.cache_info().traces <= 3


@pytest.mark.drawn(6)
def test_tensors():
    compiled = pb.compile(of_tensors)
    for values in ARGUMENTS:
        given = [pb.tensor(one, dtype=pb.float64, requires_grad=True) for one in values]
        again = [one.detach().clone().requires_grad_() for one in given]
        value, expected = compiled(*given), of_tensors(*again)
        np.testing.assert_allclose(value.item(), expected.item(), rtol=1e-12)
        value.backward()
        expected.backward()
        for one, other in zip(given, again):
            np.testing.assert_allclose(one.grad.item(), other.grad.item(), rtol=1e-9, atol=1e-12)
    assert compiled.cache_info().traces <= 2


def test_the_argument_is_not_written_into():
    def f(start, rate):
        y = start
        t = 0.0
        while t < 1.0:
            kept = t
            t += 0.3 * rate
            y = y + t * kept
        return y + t

    compiled = pb.compile(f)
    for rate in (1.0, 0.4, 2.0):
        given = [pb.tensor(2.0, dtype=pb.float64), pb.tensor(rate, dtype=pb.float64)]
        np.testing.assert_allclose(compiled(*given).item(), f(*given).item(), rtol=1e-14)
        assert given[0].item() == 2.0


def test_numbers_in_single_precision_stay_python_s():
    def f(x):
        t = 0.0
        while t < 1.0:
            x = x * np.float32(0.9) + t
            t = t + abs(x) * np.float32(0.25)
        return x

    compiled = pb.compile(f)
    for value in (1.0, 0.5, 3.0):
        found, expected = compiled(np.float32(value)), f(np.float32(value))
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.drawn(6)
def test_rows_begin_with_numbers():
    compiled = pb.vmap(pb.compile(pb.grad(heun)))
    for size in (3, 6):
        rates = np.linspace(0.5, 9.0, size)
        expected = [pb.grad(heun)(rate, 1.0 + rate) for rate in rates]
        np.testing.assert_allclose(compiled(rates, 1.0 + rates), expected, rtol=1e-9, atol=1e-12)
    assert compiled.cache_info().traces <= 2


def test_a_number_that_no_turn_has_changed_is_returned_as_it_was():
    def f(x, stop):
        t, h = 0.0, 0.1
        while t < stop:
            t = t + h
            h = h * abs(x)
        return t

    compiled = pb.compile(f)
    for stop in (1.0, 3.0, -1.0, 2.0):
        found, expected = compiled(np.float64(1.1), stop), f(np.float64(1.1), stop)
        assert type(found) is type(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-14)
    assert compiled.cache_info().traces == 2


def test_variables_that_hold_one_value_in_some_turns():
    """What a turn reads of them is told apart, though every second one begins with two that are the same."""

    def f(x):
        best, sign = x, 1.0
        while x > 1.0:
            x = x * 0.8 - 0.01 * best
            if sign > 0:
                best = x
            sign = -sign
        return best * 2.0 + x

    compiled = pb.compile(pb.value_and_grad(f))
    for value in (30.0, 4.0, 200.0, 1.1):
        found, expected = compiled(np.float64(value)), pb.value_and_grad(f)(np.float64(value))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert compiled.cache_info().traces == 1
