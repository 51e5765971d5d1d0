"""Loops that write into arrays at places that advance: rolled up, written in place, differentiated."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.tracer.views import region_of_view

pytestmark = pytest.mark.part(8)


def recurrence(start, factor, n):
    y = np.zeros(n)
    y[0] = start
    for t in range(1, n):
        y[t] = factor * y[t - 1] + np.sin(y[t - 1])
    return y


def sweeps(a):
    for _ in range(2):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                a[i, j] = (a[i - 1, j] + a[i, j - 1] + a[i, j] + a[i + 1, j] + a[i, j + 1]) / 5
    return a


def rows_from_rows(a):
    for i in range(1, a.shape[0]):
        a[i] = np.tanh(a[i - 1]) + a[i] * a[i - 1].sum()
        a[i, 1:-1] -= 0.5 * a[i, :-2]
    return a


def overlapping_parts(a):
    for i in range(a.shape[0] - 4):
        a[i + 1 : i + 4] += 0.5 * a[i : i + 3]
    return a


def swapped(a):
    for i in range(a.shape[0] - 1):
        kept = a[i] * 1.0
        a[i] = a[i + 1] * 2.0
        a[i + 1] = kept + a[i]
    return a


def read_late(a):
    total = np.zeros(a.shape[0])
    for i in range(1, a.shape[0]):
        before = a[i] * 3.0
        a[i] = a[i - 1] * before
        a[i - 1] = a[i] + 1.0
        total[i] = (before + a[i - 1] + a[i]).sum()
    return total


def backwards(a):
    for i in range(a.shape[0] - 2, -1, -1):
        a[i] = a[i] - 0.3 * a[i + 1]
    return a


def diagonal(a):
    for i in range(1, min(a.shape)):
        a[i, i] = a[i - 1, i - 1] * a[i, i - 1] + a[i - 1, i]
    return a


def columns(a):
    for j in range(1, a.shape[1]):
        a[:, j] = a[:, j - 1] * 0.9 + np.cos(a[:, j])
    return a


def every_second(a):
    for j in range(1, 10):
        a[j : j + 6 : 2, 0] += a[j - 1 : j + 5 : 2, 1] * a[j, 2]
    return a


def whole_array_read(a):
    for i in range(a.shape[0]):
        a[i] = a[i] / (1.0 + (a * a).sum())
    return a


def old_array_kept(a):
    for i in range(1, a.shape[0]):
        old = a * 1.0
        a[i] = old[i] + old[i - 1]
        a[i - 1] = np.tanh((old * a).sum(axis=0))
    return a


PROGRAMS = [
    sweeps, rows_from_rows, overlapping_parts, swapped, read_late, backwards, diagonal, columns, every_second,
    whole_array_read, old_array_kept,
]  # fmt: skip


@pytest.mark.drawn(4)
@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_gradients_are_those_of_the_tape(program):
    shape = (16, 12)
    a = np.random.default_rng(3).standard_normal(shape) * 0.3
    weights = np.cos(np.arange(a.size))

    def loss(x):
        result = program(x * 1.0)
        return (result.reshape(-1) * weights[: result.size]).sum()

    np.testing.assert_allclose(pb.compile(program)(a.copy()), program(a.copy()), rtol=1e-12)
    value, gradient = pb.value_and_grad(loss)(a)
    compiled_value, compiled_gradient = pb.value_and_grad(pb.compile(loss))(a)
    np.testing.assert_allclose(compiled_value, value, rtol=1e-11)
    np.testing.assert_allclose(compiled_gradient, gradient, rtol=1e-9, atol=1e-12)
    direction = np.random.default_rng(4).standard_normal(shape)
    ahead, behind = (loss(a + step * direction) for step in (1e-6, -1e-6))
    assert (gradient * direction).sum() == pytest.approx((ahead - behind) / 2e-6, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_program_is_rolled(program):
    notes = pb.compile(program).explain(np.ones((16, 12)) * 0.1)
    assert "rolled:" in notes


@pytest.mark.drawn(4)
def test_the_source_does_not_grow_with_the_steps():
    def loss(x, n):
        return (recurrence(x[0], x[1], n) ** 2).sum()

    x = np.array([0.5, 0.9])
    sources = [pb.compile(loss).source(x, n) for n in (50, 120)]
    assert sources[0].count("\n") == sources[1].count("\n")


@pytest.mark.drawn(6)
def test_a_step_writes_one_element_in_place():
    """No step copies the array: loops over all of it are before and after the steps alone."""
    source = pb.compile(sweeps).source(np.ones((20, 20)))
    deepest = [line for line in source.splitlines() if line.startswith(" " * 12)]
    assert not any(line.strip().startswith("for") for line in deepest)
    assert sum("[i + 1, j + 1] =" in line for line in deepest) == 2


@pytest.mark.drawn(4)
def test_second_derivatives():
    def loss(x):
        return (recurrence(x[0], x[1], 20) ** 2).sum()

    x = np.array([0.5, 0.8])
    hessian = pb.hessian(pb.compile(loss))(x)
    step = 1e-5
    gradient = pb.grad(loss)
    columns = [(gradient(x + step * e) - gradient(x - step * e)) / (2 * step) for e in np.eye(2)]
    np.testing.assert_allclose(hessian, np.stack(columns), rtol=1e-6)


def test_rows_of_a_table_are_rows_of_one_input():
    table = np.random.default_rng(1).standard_normal((30, 4))

    def program(x):
        for row in range(30):
            x = np.tanh(x * table[row] + table[29 - row, ::-1])
        return x.sum()

    compiled, x = pb.compile(program), np.ones(4)
    assert compiled(x) == pytest.approx(program(x), rel=1e-12)
    assert "rolled:" in compiled.explain(x)
    assert sum(name.name.startswith("captured") for name in compiled.graph(x).inputs) <= 3
    table[3] += 1.0
    assert compiled(x) == pytest.approx(program(x), rel=1e-12)


def test_a_table_that_is_written_to_between_its_uses():
    def program(x):
        table = np.zeros((12, 3))
        for row in range(12):
            table[row] = row * 1.0
            x = x * 0.5 + table[row] + table[row // 2]
        table[0] = 7.0
        for row in range(12):
            x = x * 0.9 + table[row]
        return x.sum()

    x = np.arange(3.0)
    assert pb.compile(program)(x) == pytest.approx(program(x), rel=1e-12)
    np.testing.assert_allclose(pb.grad(pb.compile(program))(x), pb.grad(program)(x), rtol=1e-12)


@pytest.mark.parametrize(
    "view",
    [lambda a: a[1], lambda a: a[:, 2], lambda a: a[1:, ::2], lambda a: a[2, 3:4], lambda a: a[::3, 1:4:2]],
)
def test_regions_of_views(view):
    base = np.arange(20.0).reshape(4, 5)
    region = region_of_view(view(base), base)
    assert region is not None
    np.testing.assert_array_equal(region.of(base).reshape(view(base).shape), view(base))


@pytest.mark.parametrize(
    "view", [lambda a: a[::-1], lambda a: a.T, lambda a: a.view(np.int64)[1], lambda a: a[2:2]]
)
def test_views_that_are_no_regions(view):
    base = np.arange(20.0).reshape(4, 5)
    assert region_of_view(view(base), base) is None
