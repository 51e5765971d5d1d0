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
    assert Model.scaled.cache_info().currsize == 0
    np.testing.assert_allclose(model.value(X), X * 4 + 6)
    np.testing.assert_allclose(compiled(X), X * 4 + 6)


class Kept:
    def __init__(self) -> None:
        self.weight = pb.ones(3)
        self.computed = 0

    @functools.cached_property
    def twice(self) -> Any:
        self.computed += 1
        return self.weight * 2

    def value(self, x: Any, is_doubled: bool) -> Any:
        return x * (self.twice if is_doubled else self.weight)

    compiled = pb.compile(value)

    @pb.compile
    def kept_by_hand(self, x: Any) -> Any:
        if not hasattr(self, "made"):
            self.made = self.weight * 2
        return x * self.made


def test_a_cached_property_is_computed_once_and_kept() -> None:
    plain, compiled = Kept(), Kept()
    for is_doubled in (False, True, True):
        x = pb.tensor([1.0, 2.0, 3.0])
        expected = plain.value(x, is_doubled)
        assert compiled.compiled(x, is_doubled).tolist() == expected.tolist()
        assert compiled.computed == plain.computed
        for one in (plain, compiled):
            one.weight = one.weight * 5
    assert compiled.twice.tolist() == plain.twice.tolist()
    del compiled.twice
    assert compiled.compiled(pb.ones(3), True).tolist() == [250.0, 250.0, 250.0]


def test_what_is_kept_by_hand_is_refused() -> None:
    model = Kept()
    with pytest.raises(pb.errors.LeakedTraceError, match="stores a traced value in self, at 'made'"):
        model.kept_by_hand(pb.ones(3))
    assert "made" not in vars(model)


def test_a_cache_does_not_lose_a_gradient() -> None:
    doubled(3.0)  # which the cache would give
    with pytest.raises(GradientError, match=r"hash\(\) makes a plain number"):
        pb.grad(lambda a: doubled(a) * a)(3.0)
    assert pb.grad(pb.compile(lambda a: doubled(a) * a))(3.0) == 12.0
    assert doubled.cache_info().currsize == 1
