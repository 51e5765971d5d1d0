"""What the tests of programs written in NumPy compare: values with NumPy's, gradients with differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(0.5, 1.5, shape)


def slope(function: Callable[..., Any], arrays: list[np.ndarray], along: list[np.ndarray]) -> float:
    """The derivative of a NumPy function along a direction, by central differences."""
    step = 1e-6
    ahead, behind = (function(*(x + sign * step * d for x, d in zip(arrays, along))) for sign in (1, -1))
    return float((ahead - behind) / (2 * step))


def check(function: Callable[..., Any], *arrays: np.ndarray) -> None:
    """Value as NumPy's, gradient as finite differences; compiled as eager."""
    every = tuple(range(len(arrays)))
    value, gradients = pb.value_and_grad(function, every)(*arrays)
    assert np.allclose(value, function(*(x.copy() for x in arrays)))
    along = [np.random.default_rng(number).standard_normal(x.shape) for number, x in enumerate(arrays)]
    found = sum((gradient * d).sum() for gradient, d in zip(gradients, along))
    assert np.isclose(found, slope(function, list(arrays), along), rtol=1e-5, atol=1e-7)
    compiled, of_compiled = pb.value_and_grad(pb.compile(function), every)(*arrays)
    assert np.allclose(compiled, value)
    for one, other in zip(of_compiled, gradients):
        assert np.allclose(one, other)
