"""Sizes have names: code that computes with them serves every shape, and none is taken for another."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

SHAPES = ((40, 40), (40, 30), (33, 50), (64, 31))
"""First a coincidence of two sizes, which must change nothing."""


def average(x: Any) -> Any:
    return (x * x).sum() / len(x)


def scaled_products(x: Any) -> Any:
    return pb.tanh(x / math.sqrt(x.shape[1])).sum()


def over_all(x: Any) -> Any:
    return (x**3).sum() / np.prod(x.shape)


def variance(x: Any) -> Any:
    n = x.shape[0]
    centred = x - x.sum(axis=0) / n
    return ((centred * centred).sum(axis=0) * (1 / (n - 1))).sum()


def shares(x: Any) -> Any:
    return np.sin(x / x.size).sum()


def on_a_grid(x: Any) -> Any:
    t = np.linspace(0.0, 1.0, x.shape[0])
    return (np.cos(x) * t[:, None]).sum()


def likelihood(x: Any) -> Any:
    n, m = x.shape
    squares = (x * x).sum()
    return -0.5 * float(n) * np.log(squares / m) - 0.5 * m * np.log(2 * math.pi)


def differences(x: Any) -> Any:
    h = 1.0 / (len(x) - 1)
    slope = (x[1:] - x[:-1]) / h
    return 0.5 * h * (slope * slope).sum()


def relaxed(x: Any) -> Any:
    rate = 0.3 / len(x)
    y = x
    for _ in range(20):
        y = y - rate * np.sin(y)
    return (y * y).sum()


def running(x: Any) -> Any:
    n = len(x)
    total = x[0] * 0.0
    for i in range(n):
        total = total * (1.0 - 1.0 / n) + x[i] / math.log(n)
    return total.sum()


def both_ways(x: Any) -> Any:
    n, m = x.shape
    return (np.exp(-x / n).sum(axis=0) * (1.0 / m)).sum() + (x.mean(axis=1) * math.sqrt(m)).sum()


def weights(x: Any) -> Any:
    k = np.arange(x.shape[1])
    return (x * (k + 0.5) / x.shape[1]).sum() * x.shape[0] ** -0.5


PROGRAMS = [
    average,
    scaled_products,
    over_all,
    variance,
    shares,
    on_a_grid,
    likelihood,
    differences,
    relaxed,
    running,
    both_ways,
    weights,
]


def argument(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(math.prod(shape)).uniform(0.5, 1.5, shape)


def made(function: Any) -> int:
    """How many pieces of machine code a function has had made, or read from the disk."""
    info = function.cache_info()
    return info.compilations + info.disk_hits


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_computes_with_sizes_is_compiled_once(program: Callable[[Any], Any]) -> None:
    value, gradient = pb.compile(program), pb.grad(pb.compile(program))
    counts = set()
    for shape in SHAPES:
        x = argument(shape)
        np.testing.assert_allclose(value(x), program(x), rtol=1e-12)
        np.testing.assert_allclose(gradient(x), pb.grad(program)(x), rtol=1e-10, atol=1e-12)
        counts.add((made(value), made(gradient)))
        assert value.explain(x).count("guard") == 0
    assert len(counts) == 1


# --- sizes that agree by chance -----------------------------------------------------------------------------


def outer(x: Any, y: Any) -> Any:
    """Two sizes that no operator demands to be equal."""
    return (pb.sin(x).sum() / len(x)) * y.sum() + (y * y).sum() / len(y) + (x * len(y)).sum() * y.mean()


def rows_and_columns(x: Any, y: Any) -> Any:
    table = pb.tanh(x[:, None] * y[None, :])
    return (table.sum(axis=0) / x.shape[0]).sum() + (table.sum(axis=1) / y.shape[0]).sum()


def in_a_loop(x: Any, y: Any) -> Any:
    a, b = 1.0 / len(x), 1.0 / len(y)
    state, other = x * 0.5, y * 0.5
    for _ in range(12):
        state = pb.sin(state) * (1.0 - a) + state.mean() * b
        other = pb.cos(other) * (1.0 - b) + state.mean() * a
    return state.sum() * a + other.sum() * b


def in_a_scan(x: Any, y: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        return carry * (1.0 - 1.0 / len(y)) + row / len(x), carry.sum() / len(y)

    last, sums = pb.scan(step, y, x)
    return (last * last).sum() + (sums * sums).mean()


def ragged(x: Any, y: Any) -> Any:
    """A loop whose parts grow, with both sizes in its steps."""
    n, m = len(x), len(y)
    total = x[0] * 0.0
    for i in range(1, 14):
        total = total + (x[:i] * x[:i]).sum() / n + pb.sin(y[:i]).sum() / m
    return total / (n + m)


PAIRS = [outer, rows_and_columns, in_a_loop, in_a_scan, ragged]
LENGTHS = ((40, 40), (40, 41), (52, 41), (41, 41))


def two(lengths: tuple[int, int]) -> list[np.ndarray]:
    return [np.random.default_rng(size).uniform(0.5, 1.5, size) for size in lengths]


def summed_hessian(function: Callable[..., Any], x: Any, y: Any) -> Any:
    def slope(x: Any) -> Any:
        dx, dy = pb.grad(function, argnums=(0, 1))(x, y)
        return (dx * dx).sum() + (dy * dy).sum()

    return pb.grad(slope)(x)


TAKEN: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "value": lambda f: f,
    "gradient": lambda f: pb.grad(f),
    "gradient of both": lambda f: lambda x, y: pb.concatenate(pb.grad(f, argnums=(0, 1))(x, y)),
    "second derivative": lambda f: lambda x, y: summed_hessian(f, x, y),
    "mapped": lambda f: lambda x, y: pb.vmap(f, in_dims=(0, None))(pb.stack([x, x * 2, x + 1]), y),
    "gradient mapped": lambda f: lambda x, y: pb.vmap(pb.grad(f), in_dims=(0, None))(pb.stack([x, x * 2]), y),
}


@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("program", PAIRS)
def test_sizes_that_agree_by_chance_are_two(program: Callable[..., Any], taken: str) -> None:
    function = TAKEN[taken](program)
    compiled = pb.compile(function)
    sources = set()
    for lengths in LENGTHS:
        x, y = two(lengths)
        np.testing.assert_allclose(compiled(x, y), function(x, y), rtol=1e-9, atol=1e-12)
        sources.add(made(compiled))
        assert "guard" not in compiled.explain(x, y)
    assert len(sources) == 1
