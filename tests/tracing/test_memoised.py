"""Functions with a cache in compiled and differentiated functions: it never gets what is traced."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import GradientError

X = np.arange(1.0, 4.0)
WEIGHT = np.ones(3)


@functools.cache
def doubled(x: Any) -> Any:
    return x * 2


@functools.lru_cache
def weighted(n: int) -> Any:
    return WEIGHT * n


@functools.lru_cache(maxsize=None)  # noqa: UP033
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@pytest.fixture(autouse=True)
def caches_are_empty() -> Iterator[None]:
    for one in (doubled, weighted, fibonacci):
        one.cache_clear()
    yield


def test_traced_values_do_not_get_into_the_cache() -> None:
    compiled = pb.compile(lambda x: x * doubled(x.sum()))
    for x in (X, X[::-1].copy(), X + 1):
        np.testing.assert_allclose(compiled(x), x * 2 * x.sum())
    assert doubled.cache_info().currsize == 0
    assert doubled(6.0) == 12.0 and type(doubled(6.0)) is float
    np.testing.assert_allclose(compiled(X), X * 12)


def test_arrays_in_reach_are_read_in_each_call() -> None:
    compiled = pb.compile(lambda x: x * weighted(3))
    np.testing.assert_allclose(compiled(X), X * 3)
    assert type(weighted(3)) is np.ndarray
    WEIGHT[:] = 2.0
    try:
        weighted.cache_clear()
        np.testing.assert_allclose(compiled(X), X * 6)
    finally:
        WEIGHT[:] = 1.0


def test_recursion_stays_linear() -> None:
    compiled = pb.compile(lambda x, n: x * fibonacci(n))
    np.testing.assert_allclose(compiled(X, 80), X * fibonacci(80))


def test_equal_arguments_have_gradients_of_their_own() -> None:
    compiled = pb.compile(lambda a, b: doubled(a.sum()) * doubled(b.sum()))
    gradient = pb.grad(compiled, (0, 1))
    for a, b in ((X, X.copy()), (X, X + 1)):
        found = gradient(a, b)
        np.testing.assert_allclose(found[0], 4 * b.sum() * np.ones(3))
        np.testing.assert_allclose(found[1], 4 * a.sum() * np.ones(3))


class Model:
    def __init__(self) -> None:
        self.weight = np.ones(3)

    @functools.lru_cache  # noqa: B019
    def scaled(self, n: Any) -> Any:
        return self.weight * n

    @functools.cached_property
    def twice(self) -> Any:
        return self.weight * 2

    def value(self, x: Any) -> Any:
        return x * self.scaled(2) * self.twice + self.scaled(x.sum())


def test_methods_and_properties_with_a_cache() -> None:
    model = Model()
    Model.scaled.cache_clear()
    compiled = pb.compile(model.value)
    np.testing.assert_allclose(compiled(X), X * 4 + 6)
    assert Model.scaled.cache_info().currsize == 0 and vars(model).keys() == {"weight"}
    np.testing.assert_allclose(model.value(X), X * 4 + 6)
    np.testing.assert_allclose(compiled(X), X * 4 + 6)


def test_a_cache_does_not_lose_a_gradient() -> None:
    doubled(3.0)  # which the cache would give
    with pytest.raises(GradientError, match=r"hash\(\) makes a plain number"):
        pb.grad(lambda a: doubled(a) * a)(3.0)
    assert pb.grad(pb.compile(lambda a: doubled(a) * a))(3.0) == 12.0
    assert doubled.cache_info().currsize == 1
