"""Sorting in compiled functions does what it does outside of them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

SHAPES = [((7,), 0), ((8,), 0), ((3, 5), 1), ((3, 5), 0), ((2, 9, 3), 1), ((1,), 0), ((0,), 0), ((2, 0), 1)]


def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """With ties, zeros of both signs, and nan."""
    found = np.random.default_rng(0).integers(-3, 3, shape).astype(dtype)
    if found.dtype.kind == "f" and found.size > 3:
        found.flat[[0, 2, 3]] = np.nan, np.nan, -0.0
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
@pytest.mark.parametrize(("shape", "dim"), SHAPES)
def test_order(shape: tuple[int, ...], dim: int, dtype: str) -> None:
    x = drawn(shape, dtype)

    def both(x: Any) -> Any:
        return (*pb.sort(x, dim), *pb.sort(x, dim, descending=True))

    for found, wanted in zip(pb.compile(both)(x), both(pb.tensor(x))):
        assert found.dtype == wanted.numpy().dtype
        np.testing.assert_array_equal(found, wanted.numpy())


def test_one_code_for_all_extents() -> None:
    function = pb.compile(lambda x: pb.sort(x).values)
    for extent in (40, 41, 1000):
        x = np.random.default_rng(extent).normal(size=extent)
        np.testing.assert_array_equal(function(x), np.sort(x))
    assert function.cache_info().compilations + function.cache_info().disk_hits <= 2


FUNCTIONS: list[Callable[[Any], Any]] = [
    lambda x: (np.sort(x) * np.arange(6.0)).sum(),
    lambda x: np.median(x) * 3 + np.quantile(x, 0.3) + np.percentile(x, [10, 80]).sum(),
    lambda x: (pb.topk(x, 3).values ** 2).sum() + pb.kthvalue(x, 2).values + pb.median(x),
    lambda x: x[np.argsort(-x)[1]] ** 2 + pb.topk(x, 2, largest=False).values.prod(),
    lambda x: sum((np.sort(np.sin(x * k)) * x).sum() for k in range(12)),
    lambda x: pb.fori_loop(0, 3, lambda i, v: pb.sin(pb.sort(v).values * x), x).sum(),
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients_go_where_the_elements_were(function: Callable[[Any], Any]) -> None:
    x = np.random.default_rng(1).normal(size=6)
    value, slope = pb.value_and_grad(function)(x)
    compiled, of_compiled = pb.value_and_grad(pb.compile(function))(x)
    np.testing.assert_allclose(compiled, value)
    np.testing.assert_allclose(of_compiled, slope, atol=1e-12)
    along = np.cos(np.arange(6.0))
    ahead, behind = (pb.value_and_grad(function)(x + step * along)[0] for step in (1e-6, -1e-6))
    np.testing.assert_allclose((slope * along).sum(), (ahead - behind) / 2e-6, rtol=1e-5)
