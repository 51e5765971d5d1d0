"""Loops over generators, and loops whose turns are calls that ask: one program where nothing else is held."""

import dis
import functools
import itertools
import warnings
from types import CodeType

import numpy as np
import pytest

import pullback as pb
from pullback.runtime.bytecode import interpreter_frames, liveness

pytestmark = [pytest.mark.part(6), pytest.mark.usefixtures("partly_compiled")]
VALUES = (3.0, 1.3, 9.1, 2.9, 20.0, 5.3)


def halves(x, least=0.1):
    while x > least:
        x = 0.7 * x + 0.01
        yield x


def without_end(x):
    while True:
        x = 0.7 * x + 0.01
        yield x


def heun(rate, y, end):
    t, h = 0.0, 0.2
    while t < end:
        h = min(h, end - t)
        first = -rate * y + np.cos(t)
        second = -rate * (y + h * first) + np.cos(t + h)
        error = np.abs(0.5 * h * (second - first)) / 1e-3
        if error < 1.0:
            t, y = t + h, y + 0.5 * h * (first + second)
            yield t, y
        h = h * min(2.0, max(0.3, 0.9 / np.sqrt(error + 1e-10)))


def an_integrator(a):
    total, y = 0.0, 1.0
    for _, y in heun(a, 1.0, 2.0):
        total = total + y * y
    return total + y


def a_list_of_its_steps(a):
    ts, ys = [0.0], [1.0]
    for t, y in heun(a, 1.0, 2.0):
        ts.append(t)
        ys.append(y)
    return np.trapezoid(np.array(ys), np.array(ts))


def broken_off(a):
    total = 0.0
    for x in without_end(a):
        if x < 0.2:
            break
        if x > 2.0:
            continue
        total = total + x * x
    return total


def in_a_chain(a):
    def smoothed(values):
        mean = 0.0
        for one in values:
            mean = 0.5 * mean + 0.5 * one
            yield mean

    total = 0.0
    for mean in smoothed(halves(a)):
        total = total + mean * mean
    return total


def over_an_object(a):
    class Halves:
        def __init__(self, x):
            self.x = x

        def __iter__(self):
            return self

        def __next__(self):
            if self.x < 0.1:
                raise StopIteration
            self.x = 0.7 * self.x
            return self.x

    total = 0.0
    for x in Halves(a):
        total = total + x * x
    return total


def a_step_that_says_how_it_went(a):
    def step(t, y, h):
        new = y + h * (np.cos(t) - a * y)
        error = np.abs(h * (new - y))
        if error > 1e-2:
            return "rejected", t, y, 0.5 * h
        if t + h >= 2.0:
            return "done", t + h, new, h
        return "accepted", t + h, new, 1.2 * h

    state, t, y, h = "accepted", 0.0, 1.0, 0.1
    while state != "done":
        state, t, y, h = step(t, y, h)
    return y


ROLLED = [
    an_integrator, a_list_of_its_steps, broken_off, in_a_chain, over_an_object, a_step_that_says_how_it_went,
]  # fmt: skip


@pytest.mark.drawn(3)
@pytest.mark.parametrize("f", ROLLED)
def test_one_program_serves_all_numbers_of_turns(f):
    assert interpreter_frames.is_readable()
    compiled, plain = pb.value_and_grad(pb.compile(f)), pb.value_and_grad(f)
    for value in VALUES:
        np.testing.assert_allclose(compiled(value), plain(value), rtol=1e-9)
    before = compiled.cache_info().traces
    for value in np.linspace(1.5, 18.0, 7).tolist():
        np.testing.assert_allclose(compiled(value), plain(value), rtol=1e-9)
    assert before <= 3
    assert compiled.cache_info().traces == before


def through_enumerate(a):
    total = 0.0
    for k, x in enumerate(halves(a)):
        total = total + x * k
    return total


def through_zip(a):
    total = 0.0
    for k, x in zip(itertools.cycle([1.0, 2.0, 5.0]), halves(a)):
        total = total + x * k
    return total


def through_islice(a):
    total = 0.0
    for x in itertools.islice(halves(a), 4):
        total = total + x
    return total


def through_functions_in_c(a):
    scales = iter([1.0, 2.0, 5.0, 3.0] * 30)

    def scaled(x):
        return next(scales) * x if x > 0.5 else x

    return sum(map(scaled, halves(a)))


def in_a_list_display(a):
    values = [x * x for x in halves(a)]
    return sum(values) * len(values)


def of_a_list_display_the_length(a):
    return a * len([1 for x in halves(a) if x > 0.5])


def in_a_set_display(a):
    return a * len({k for k in range(20) if a * k > 3.0})


def in_a_dict_display(a):
    counts = itertools.count()
    return a * len({next(counts): 1 for _ in halves(a)})


def asked_by_reduce(a):
    def joined(total, x):
        return total + 2.0 * x if total > 3.0 else total - x

    return functools.reduce(joined, halves(a), a)


def by_next(a):
    values, total = halves(a), 0.0
    while True:
        x = next(values, None)
        if x is None:
            return total
        total = 0.5 * total + x


def two_in_turns(a):
    one, other, total = without_end(a), without_end(2.0 * a), 0.0
    for x in one:
        y = next(other)
        if y < 0.3:
            return total
        total = total + x * y
    return total


def with_counts_in_a_closure(a):
    count = 0

    def scaled(x):
        nonlocal count
        if x > 0.5:
            count += 1
        return x * count

    total = 0.0
    for x in halves(a):
        total = total + scaled(x)
    return total


def with_a_list_inside(a):
    def kept(x):
        seen = []
        while x > 0.1:
            seen.append(x)
            x = 0.7 * x
            yield seen[len(seen) // 2] + x

    total = 0.0
    for x in kept(a):
        total = total + x
    return total


def with_what_is_sent(a):
    def damped(x):
        factor = 0.5
        while x > 0.1:
            factor = yield x
            x = factor * x

    values, total = damped(a), 0.0
    x = next(values)
    try:
        while True:
            total = total + x
            x = values.send(0.6 if x > 1.0 else 0.8)
    except StopIteration:
        return total


def with_what_it_delegates_to(a):
    def parts(x):
        yield from halves(x, 0.5)
        yield from halves(0.5 * x, 0.2)

    total = 0.0
    for x in parts(a):
        total = total + x * x
    return total


def over_a_list_within(a):
    def scaled(x):
        for k in [2.0, 3.0, 5.0, 7.0]:
            if x > 1.0:
                x = x / k
                yield x

    total = 0.0
    for x in scaled(a):
        total = total + x
    return total


def with_a_new_closure_each_turn(a):
    def made(k):
        def done(x):
            return "yes" if x < 0.1 * k else ""

        return done

    k = 1
    while not made(k)(a):
        a, k = 0.8 * a, k + 1
    return a * k


def sorted_by_what_asks(a):
    def key(x):
        return 0 if x > 2.0 else 1

    while a > 0.1:
        a = a - 0.3 * sorted([a, 2.5 - 0.1 * a], key=key)[0]
    return a


def left_by_an_error(a):
    class Done(Exception):
        pass

    def step(x):
        if x < 0.1:
            raise Done
        return 0.8 * x

    try:
        while True:
            a = step(a)
    except Done:
        return a


OTHERS = [
    in_a_list_display, of_a_list_display_the_length, in_a_set_display, in_a_dict_display, through_enumerate,
    through_zip, through_islice, through_functions_in_c, asked_by_reduce, by_next,
    two_in_turns, with_counts_in_a_closure, with_a_list_inside, with_what_is_sent, with_what_it_delegates_to,
    over_a_list_within, with_a_new_closure_each_turn, sorted_by_what_asks, left_by_an_error,
]  # fmt: skip


def require_same_as_plain(f, values):
    compiled, plain = pb.value_and_grad(pb.compile(f)), pb.value_and_grad(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for value in values:
            np.testing.assert_allclose(compiled(value), plain(value), rtol=1e-9)


@pytest.mark.drawn(3)
@pytest.mark.parametrize("f", OTHERS)
def test_what_is_held_besides_values_counts(f):
    require_same_as_plain(f, (*VALUES, 1.1, 4.0, 0.9))


@pytest.mark.drawn(3)
@pytest.mark.parametrize("f", [broken_off, over_an_object, through_enumerate])
def test_where_the_interpreter_shows_nothing(f, monkeypatch):
    monkeypatch.setattr(interpreter_frames, "is_readable", lambda: False)
    require_same_as_plain(f, (3.0, 1.3, 2.9, 0.9))


def test_a_display_is_not_left_alone_by_what_adds_to_it():
    """Also where the list is a value of the function itself, as from Python 3.12 on."""
    own = of_a_list_display_the_length.__code__
    code = next((one for one in own.co_consts if isinstance(one, CodeType)), own)
    loop = next(one.offset for one in dis.get_instructions(code) if one.opname == "FOR_ITER")
    assert not liveness.stays_around(code, loop, frozenset(liveness.loops_around(code, loop).values()))


def test_generators_from_outside_are_not_ended_by_a_trace():
    values = without_end(3.0)
    next(values)

    def f(x):
        for one in values:
            if x > 0.5:
                return x * one
        return x

    for value in (1.0, 0.7):
        f(value)
        assert pb.grad(f)(value) > 0.0
    assert next(values) > 0.0
