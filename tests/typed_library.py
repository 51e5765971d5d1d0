"""What tests of `type(x)` reach in another module: classes, a helper, a decorator."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

FACTORS: dict[Any, float] = {np.ndarray: 2.0, float: 3.0, np.float64: 5.0}


def factor(x: Any) -> float:
    return FACTORS.get(type(x), 100.0)


class Base:
    def inherited(self, x: Any) -> Any:
        return x * factor(x) if type(x) is np.ndarray else x * 100.0

    def overridden(self, x: Any) -> Any:
        return x * (2.0 if type(x) is np.ndarray else 100.0)


class Layer:
    def __init__(self, inner: Any = None) -> None:
        self.inner = inner

    def __call__(self, x: Any) -> Any:
        scaled = x * FACTORS.get(type(x), 100.0)
        return scaled if self.inner is None else self.inner(scaled)


def doubled(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(x: Any) -> Any:
        return function(x) * (2.0 if type(x) is np.ndarray else 100.0)

    return call
