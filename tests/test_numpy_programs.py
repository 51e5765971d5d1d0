"""Programs as one writes them in NumPy: loops, slices, arrays that are made empty and filled in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

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


# --- writes to what the tape has saved ----------------------------------------------------------------


def triangular_product(a: np.ndarray) -> Any:
    a = a * 1.0
    for i in range(1, a.shape[0]):
        a[i, :i] -= a[i, :i] * a[:i, i]
        a[i, i] = np.sqrt(a[i, i]) * (a[i, :i] @ a[:i, i])
    return (a * a).sum()


def test_elements_that_later_ones_are_computed_from_are_overwritten() -> None:
    check(triangular_product, random(3, 3))


def test_a_result_that_its_own_rule_needs_is_overwritten() -> None:
    def function(x: np.ndarray) -> Any:
        y = np.exp(x)
        z = np.tanh(y)
        y *= z
        z[1:] = y[:-1]
        return (y * z).sum()

    check(function, random(4))


def test_a_mask_selects_what_is_overwritten() -> None:
    def function(x: np.ndarray) -> Any:
        y = x * x
        large = y > 1.0
        y[large] = y[large] ** 3
        return (np.sin(y) * y).sum()

    y = random(6)
    value, gradient = pb.value_and_grad(function)(y)
    assert np.isclose(value, function(y))
    assert np.isclose((gradient * y).sum(), slope(function, [y], [y]))


def test_second_derivatives_of_a_function_that_writes() -> None:
    def function(x: np.ndarray) -> Any:
        y = x * 1.0
        for i in range(1, 3):
            y[i] *= y[i - 1] * y[i]
        return y.sum()

    def without_writes(x: Any) -> Any:
        second = x[0] * x[1] ** 2
        return x[0] + second + second * x[2] ** 2

    x = random(3)
    assert np.allclose(pb.hessian(function)(x), pb.hessian(without_writes)(x))
    tangent = np.ones(3)
    assert np.allclose(pb.jvp(function, (x,), (tangent,))[1], pb.grad(without_writes)(x).sum())


def test_only_functional_transforms_keep_what_is_overwritten() -> None:
    x = pb.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1.0
    z = y * y
    y[0] = 3.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_what_is_saved_is_copied_once_and_only_before_a_write() -> None:
    from pullback.runtime.saved import SavedValues

    class Saver:
        kept = 0

        def keep(self, cell: Any, copies: Any) -> None:
            Saver.kept += 1
            assert copies.of(array) is copies.of(array) is not array

    array, values, cell = np.ones(2), SavedValues(), [0, None]
    values.note(cell, Saver())
    values.keep([0, None])
    assert Saver.kept == 0
    values.keep(cell)
    values.keep(cell)
    assert Saver.kept == 1
