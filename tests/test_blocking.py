"""Loops in blocks: sums at positions from data, and sums of many terms in single precision."""

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DimensionError


def energy(table, positions, scale):
    rows = table[positions]
    return np.sum(np.exp(-np.sum(rows * rows, axis=1)) * np.sin(scale))


def data(count=200):
    rng = np.random.default_rng(0)
    return rng.standard_normal((30, 3)), rng.integers(-30, 30, count), rng.standard_normal(count)


@pytest.mark.parametrize("parallel", [False, True])
def test_repeated_positions_add_up(parallel):
    table, positions, scale = data()
    compiled = pb.compile(energy, parallel=parallel)
    value, gradients = pb.value_and_grad(compiled, argnums=(0, 2))(table, positions, scale)
    expected, wanted = pb.value_and_grad(energy, argnums=(0, 2))(table, positions, scale)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for found, one in zip(gradients, wanted):
        np.testing.assert_allclose(found, one, rtol=1e-11, atol=1e-13)


def test_values_are_computed_apart_from_the_additions():
    both = pb.compile(pb.value_and_grad(energy, argnums=0))
    both(*data())
    source = both.source(*data())
    assert "for block in range" in source
    first, second = source.split("for i in range(block, block_stop):")[1:]
    assert "exp(" in first and "exp(" not in second and "] +=" in second


@pytest.mark.parametrize("position", [30, -31])
def test_a_position_out_of_range_raises_before_anything_is_computed(position):
    table, positions, scale = data()
    positions[-1] = position
    with pytest.raises(DimensionError, match="out of range"):
        pb.compile(energy)(table, positions, scale)


def test_positions_are_compared_in_a_loop_of_their_own():
    compiled = pb.compile(energy)
    compiled(*data())
    source = compiled.forward_source(*data())
    assert source.index("raise IndexError") < source.index("exp(")


@pytest.mark.parametrize("shape", [(1_000_003,), (1000, 1001), (300_000, 3)])
def test_long_sums_in_single_precision(shape):
    x = np.random.default_rng(0).uniform(0.5, 1.5, shape).astype("float32")
    exact = np.sum(x.astype("float64") ** 2)
    assert abs(float(pb.compile(lambda x: np.sum(x * x))(x)) / exact - 1) < 2e-6
