"""Loops in blocks: sums at positions from data, and sums of many terms in single precision."""

import re

import numpy as np
import pytest

import pullback as pb
from pullback.errors import DimensionError

pytestmark = pytest.mark.part(8)


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


def test_what_each_round_of_a_loop_would_compute_again_is_stored():
    def kernel(x, y):
        return np.exp(-np.sum(x * x, axis=1)[:, None] + x @ y.T - np.sum(y * y, axis=1)).sum()

    x, y = np.random.default_rng(0).standard_normal((2, 80, 5))
    compiled = pb.compile(kernel)
    np.testing.assert_allclose(compiled(x, y), kernel(x, y), rtol=1e-12)
    (program,) = compiled.programs(x, y)
    inner = program.source.split("for j in")[-1]
    assert "exp(products" in inner and "y[" not in inner


@pytest.mark.parametrize("parallel", [False, True])
def test_arrays_that_are_walked_across_are_in_blocks(parallel):
    def loss(a, b):
        return np.tanh(a + b.T).sum()

    a, b = np.random.default_rng(0).standard_normal((2, 90, 90))
    both = pb.compile(pb.value_and_grad(loss, argnums=(0, 1)), parallel=parallel)
    value, gradients = both(a, b)
    np.testing.assert_allclose(value, loss(a, b), rtol=1e-12)
    for found, expected in zip(gradients, (1 - np.tanh(a + b.T) ** 2, 1 - np.tanh(a.T + b) ** 2)):
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    (program,) = both.programs(a, b)
    np.testing.assert_allclose(program.run_interpreted((a, b))[0], value, rtol=1e-12)
    assert program.source.count("for block in range(") == 2


@pytest.mark.drawn(6)
def test_rows_of_each_step_of_a_loop_are_in_blocks():
    """What is computed of a row's sum is in vectors there, too."""

    def descent(x, y):
        def loss(w):
            return (pb.softplus(x @ w) * pb.sin(y * (x @ w))).sum()

        return pb.fori_loop(0, 4, lambda _, w: w - 0.01 * pb.grad(loss)(w), np.zeros(10))

    rng = np.random.default_rng(0)
    arrays = rng.standard_normal((150, 10)), rng.standard_normal(150)
    compiled = pb.compile(descent)
    np.testing.assert_allclose(compiled(*arrays), descent(*arrays), rtol=1e-12)
    (program,) = compiled.programs(*arrays)
    (checked, *_) = program.run_interpreted(arrays)
    np.testing.assert_allclose(checked, descent(*arrays), rtol=1e-12)
    steps = program.source[program.source.index("for block in range") :]
    before, *after = steps.split("for j in range(block, block_stop):")[1:]
    assert "softplus(" in before and "] +=" in after[0] and "softplus(" not in after[0]


@pytest.mark.drawn(4)
@pytest.mark.parametrize("count", [128, 200, 321])
@pytest.mark.parametrize("parallel", [False, True])
def test_borders_of_differences_are_in_their_blocks(parallel, count):
    """The first and the last row have one neighbour, and are written in the block that they belong to."""

    def chain(x, order):
        y = x[order]
        return np.tanh(y[1:] * y[:-1]).sum()

    rng = np.random.default_rng(0)
    x, order = rng.standard_normal(count), rng.permutation(count)
    slope, wanted = pb.grad(pb.compile(chain, parallel=parallel)), pb.grad(chain)(x, order)
    (program,) = slope.programs(x, order)
    assert "for block in range" in program.source
    (checked,) = program.run_interpreted((x, order))
    np.testing.assert_allclose(checked, wanted, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(slope(x, order), wanted, rtol=1e-11, atol=1e-13)


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


def in_double(x):
    return x.astype("float64")


SUMS_TO_ARRAYS = {
    "columns": (lambda x: np.sum(x, axis=0), (1_000_000, 8)),
    "rows": (lambda x: np.sum(x, axis=1), (3, 1_000_000)),
    "planes": (lambda x: np.sum(x, axis=(0, 1)), (1500, 700, 8)),
    "around": (lambda x: np.sum(x, axis=(0, 2)), (300, 5, 3000)),
    "batches": (lambda x: np.sum(x, axis=1), (2, 500_000, 8)),
}


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("name", SUMS_TO_ARRAYS)
def test_long_sums_to_arrays_in_single_precision(name, parallel):
    """All terms are rounded the same way, so that one running total would be wrong in the third digit."""
    total, shape = SUMS_TO_ARRAYS[name]
    x = np.full(shape, 0.1, "float32")
    found = pb.compile(total, parallel=parallel)(x)
    assert np.max(np.abs(found / total(in_double(x)) - 1)) < 1e-4


@pytest.mark.drawn(4)
@pytest.mark.parametrize("width", [5, 20])
def test_gradients_of_a_bias_in_single_precision(width):
    """Sums over a batch in the middle of fused loops: of small rows, which are unrolled, and of others."""

    def loss(x, w, b, target):
        hidden = np.tanh(x * w + b)
        return np.mean(np.sum(hidden * hidden, axis=1) * target)

    rng = np.random.default_rng(0)
    x = rng.uniform(0.1, 0.2, (200_000, width)).astype("float32")
    target = np.ones(len(x), "float32")
    w, b = (rng.uniform(0.5, 1, width).astype("float32") for _ in range(2))
    found = pb.grad(pb.compile(loss), argnums=(1, 2))(x, w, b, target)
    wanted = pb.grad(pb.compile(loss), argnums=(1, 2))(*map(in_double, (x, w, b, target)))
    for one, exact in zip(found, wanted):
        np.testing.assert_allclose(one, exact, rtol=2e-5)


def test_columns_are_added_up_in_parts():
    compiled = pb.compile(lambda x: np.sum(x, axis=0))
    x = np.ones((9000, 40), "float32")
    compiled(x)
    assert "part[j] += x[i, j]" in compiled.forward_source(x)
    assert "part" not in compiled.forward_source(in_double(x))
    assert "part" not in compiled.forward_source(x[:5000])


# --- running sums -------------------------------------------------------------------------------------------


def likelihood(risk, event):
    total = np.cumsum(np.exp(risk))
    return ((risk - np.log(total)) * event).sum()


RUNNING = {
    "a likelihood": likelihood,
    "from the end": lambda x, w: (np.log(np.cumsum(np.exp(x[::-1]))[::-1]) * w).sum(),
    "one of another": lambda x, w: (np.log(np.cumsum(np.exp(-np.log(np.cumsum(np.exp(x)))))) * w).sum(),
    "two": lambda x, w: (np.log(np.cumsum(np.exp(x))) * np.log(np.cumsum(np.exp(w)))).sum(),
    "products": lambda x, w: (np.log(np.cumprod(np.tanh(x) * 1e-3 + 1.0)) * w).sum(),
    "maxima": lambda x, w: (np.exp(np.maximum.accumulate(np.sin(x))) * w).sum(),
    "rows": lambda x, w: (np.log(np.cumsum(np.exp(x.reshape(-1, 10)), axis=1)) * w.reshape(-1, 10)).sum(),
    "columns": lambda x, w: (np.log(np.cumsum(np.exp(x.reshape(-1, 10)), axis=0)) * w.reshape(-1, 10)).sum(),
}


@pytest.mark.drawn(4)
@pytest.mark.parametrize("count", [130, 1000, 10_010])
@pytest.mark.parametrize("name", RUNNING)
def test_running_sums_in_blocks(name, count):
    function, rng = RUNNING[name], np.random.default_rng(0)
    x, w = rng.standard_normal(count // 10 * 10), rng.random(count // 10 * 10)
    value, slopes = pb.value_and_grad(pb.compile(function), argnums=(0, 1))(x, w)
    expected, wanted = pb.value_and_grad(function, argnums=(0, 1))(x, w)
    np.testing.assert_allclose(value, expected, rtol=1e-11)
    for found, one in zip(slopes, wanted):
        np.testing.assert_allclose(found, one, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_terms_of_a_running_sum_are_computed_in_vectors(dtype):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal(9_000).astype(dtype), rng.random(9_000).astype(dtype)
    compiled = pb.compile(likelihood)
    np.testing.assert_allclose(compiled(x, w), likelihood(x, w), rtol=1e-5)
    blocks = compiled.forward_source(x, w).split("for i in range(block, block_stop):")
    assert ["exp(" in one for one in blocks[1:4]] == [True, False, False]
    assert ["log(" in one for one in blocks[1:4]] == [False, False, True]


def test_operands_of_a_scan_are_computed_in_vectors():
    def loss(x):
        return np.logaddexp.accumulate(x).sum()

    compiled = pb.compile(loss)
    x = np.random.default_rng(0).standard_normal(500)
    (program,) = compiled.programs(x)
    scan = next(line for line in program.source.splitlines() if "linear_recurrence_values[i] =" in line)
    assert "for block in range" in program.source and "exp(" not in scan
    np.testing.assert_allclose(compiled(x), loss(x), rtol=1e-13)


def test_loops_follow_the_layout_of_most_arrays():
    def loss(a, b):
        return ((a + a.T) * b).sum()

    a, b = np.random.default_rng(0).standard_normal((2, 90, 90))
    both = pb.compile(pb.value_and_grad(loss, argnums=(0, 1)))
    value, gradients = both(a, b)
    np.testing.assert_allclose(value, loss(a, b), rtol=1e-12)
    np.testing.assert_allclose(gradients, (b + b.T, a + a.T), rtol=1e-12)
    (program,) = both.programs(a, b)
    assert program.source.count("for block in range(") == 1


def test_parts_of_complex_numbers_lie_beside_each_other():
    z = np.random.default_rng(0).standard_normal((128, 256)).view(complex)
    compiled = pb.compile(lambda z: z.real * z.imag)
    np.testing.assert_array_equal(compiled(z), z.real * z.imag)
    assert "for block in" not in compiled.source(z)


def mixture(x, means, widths, weights):
    logs = weights - widths - 0.5 * ((x[:, None] - means) * np.exp(-widths)) ** 2
    largest = logs.max(axis=1, keepdims=True)
    return np.sum(np.log(np.exp(logs - largest).sum(axis=1)) + largest[:, 0])


@pytest.mark.parametrize("count, parallel", [(500, False), (500, True), (131, False)])
def test_short_rows_lie_side_by_side(count, parallel):
    rng = np.random.default_rng(0)
    arrays = rng.standard_normal(count), *rng.standard_normal((3, 11))
    both = pb.compile(pb.value_and_grad(mixture, argnums=(0, 1, 2, 3)), parallel=parallel)
    for found in (both(*arrays), both(arrays[0][:70], *arrays[1:])):
        rows = arrays[0][: found[1][0].size]
        expected, wanted = pb.value_and_grad(mixture, argnums=(0, 1, 2, 3))(rows, *arrays[1:])
        np.testing.assert_allclose(found[0], expected, rtol=1e-12)
        for one, other in zip(found[1], wanted):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    by_columns = r"for j in range\(block, block_stop\):\n.*\n +exp_\w+\[i, j - block\] ="
    assert re.search(by_columns, both.source(*arrays))


def test_positions_in_short_rows_are_compared_row_by_row():
    def bags(table, positions):
        return np.sum(np.tanh(table[positions].sum(axis=1)))

    table, positions = np.random.default_rng(0).standard_normal(9), np.arange(500 * 11).reshape(500, 11) % 9
    compiled = pb.compile(bags)
    np.testing.assert_allclose(compiled(table, positions), bags(table, positions), rtol=1e-12)
