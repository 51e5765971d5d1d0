"""Rows of a batch that take ways of their own: `while`, `if` and `break` under `vmap` and `map`."""

import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.errors import TraceError

RNG = np.random.default_rng(5)


def root(a):
    x = a
    while abs(x * x - a) > 1e-12 * a:
        x = 0.5 * (x + a / x)
    return x


def grown(x):
    while x < 10.0:
        x = x * 1.5 + 0.1
    return x * x


def counting(x):
    n = 0
    while x < 10.0:
        x = x * 2.0
        n += 1
    return x * n


def in_pieces(x):
    if x > 2.0:
        return x * 3.0
    if x > 1.0:
        return np.sin(x)
    s = x
    for _ in range(10):
        s = s * 1.7
        if s > 3.0:
            break
    return s


def within(x):
    total = x * 0.0
    while x < 10.0:
        y = x
        while y < 5.0:
            y = y * y + 1.0
            total = total + y
        x = x * 1.5
    return total


def shortened(v):
    while np.linalg.norm(v) > 1.0:
        v = v * 0.7 - 0.01
    return (v * v).sum()


def ways_to_call(f):
    """Compiled forms of a function of a batch, and what each gives one by one."""
    return {
        "vmap": (pb.compile(pb.vmap(f)), lambda xs: [f(x) for x in xs]),
        "vmap(compile(grad))": (pb.vmap(pb.compile(pb.grad(f))), lambda xs: [pb.grad(f)(x) for x in xs]),
        "grad(vmap)": (
            pb.compile(pb.grad(lambda xs: (pb.vmap(f)(xs) ** 2).sum())),
            lambda xs: [pb.grad(lambda x: f(x) ** 2)(x) for x in xs],
        ),
        "map": (pb.compile(lambda xs: pb.map(f, xs)), lambda xs: [f(x) for x in xs]),
    }


@pytest.mark.drawn(4)
@pytest.mark.parametrize("f", [root, grown, counting, in_pieces, within])
@pytest.mark.parametrize("form", ["vmap", "vmap(compile(grad))", "grad(vmap)", "map"])
def test_rows_take_ways_of_their_own(f, form):
    compiled, one_by_one = ways_to_call(f)[form]
    for size in (4, 4, 9):
        xs = RNG.uniform(0.2, 14.0, size)
        np.testing.assert_allclose(compiled(xs), one_by_one(xs), rtol=1e-12)


def test_one_program_serves_all_numbers_of_turns():
    compiled = pb.vmap(pb.compile(pb.grad(root)))
    for scale in (1.0, 1e3, 1e-6):
        xs = scale * np.array([1.5, 2.0, 3.0])
        np.testing.assert_allclose(compiled(xs), 0.5 / np.sqrt(xs), rtol=1e-9)
    assert compiled.cache_info().traces == 1


def test_a_way_that_is_new_is_traced_once():
    compiled = pb.compile(pb.vmap(in_pieces))
    for _ in range(2):
        compiled(np.array([2.5, 3.5]))
    assert compiled.cache_info().traces == 1
    for _ in range(2):
        xs = np.array([2.5, 1.5])
        np.testing.assert_allclose(compiled(xs), [7.5, np.sin(1.5)], rtol=1e-15)
    assert compiled.cache_info().traces == 2
    np.testing.assert_allclose(compiled(np.array([1.5, 2.5])), [np.sin(1.5), 7.5], rtol=1e-15)
    assert compiled.cache_info().traces == 2


@pytest.mark.drawn(4)
def test_rows_of_vectors_and_of_batches():
    xs = RNG.normal(size=(6, 3)) * 3.0
    np.testing.assert_allclose(pb.compile(pb.vmap(shortened))(xs), [shortened(x) for x in xs], rtol=1e-12)

    def of_pairs(x, y):
        return grown(x * y)

    both = pb.compile(pb.vmap(pb.vmap(of_pairs, in_dims=(None, 0)), in_dims=(0, None)))
    xs, ys = np.array([0.3, 2.0, 11.0]), np.array([0.5, 1.0])
    np.testing.assert_allclose(both(xs, ys), [[of_pairs(x, y) for y in ys] for x in xs], rtol=1e-12)


def test_tensors_and_what_rows_share():
    rate = pb.tensor(1.3, dtype=pb.float64)

    def f(x, limit):
        while (x < limit).all():
            x = x * rate
        return x.sum()

    xs = pb.tensor(np.array([[0.5, 0.6], [2.0, 1.0]]))
    mapped = pb.vmap(f, in_dims=(0, None))
    compiled = pb.compile(mapped)
    for limit in (1.0, 8.0):
        np.testing.assert_allclose(compiled(xs, limit).numpy(), mapped(xs, limit).numpy(), rtol=1e-12)


def test_an_exact_value_of_a_row_is_refused():
    with pytest.raises(TraceError, match=r"float\(\).*test_ways_of_rows"):
        pb.compile(pb.vmap(lambda x: x * float(x)))(np.ones(2))


@pytest.mark.drawn(6)
def test_too_many_ways_run_uncompiled():
    def many(x):
        for k in range(6):
            x = x * 2.0 if (x * 2.0**k) % 1.0 > 0.5 else x + k
        return x

    xs = np.linspace(0.0, 1.0, 64)
    with pytest.warns(UserWarning, match=r"runs uncompiled.*more than 16 ways"):
        found = pb.compile(pb.vmap(many))(xs)
    np.testing.assert_allclose(found, [many(x) for x in xs], rtol=1e-15)


def test_rows_that_draw_and_ask_run_uncompiled():
    def walk(x):
        if x > 0.5:
            return x + np.random.default_rng(0).normal()
        return x

    xs = np.array([0.2, 0.8])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pb.compile(pb.vmap(walk))(xs)
    np.testing.assert_allclose(found, [walk(x) for x in xs])


def test_what_is_decided_is_explained():
    assert "known ways in all rows" in pb.compile(pb.vmap(grown)).explain(np.ones(2))
