"""Functions with a cache of their own (`functools.cache`, `lru_cache`) in a trace.

The user's cache outlives the trace, so nothing of a trace must get into it. What stands for such a function
has a cache for the trace alone. What is computed from Tensors is computed anew: two of them that are equal
in one call may differ in another, and each has its own gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from ..values.tensor import Tensor

CACHED: Any = type(functools.cache(lambda: None))
"""The class of functions with a cache."""


_DISPATCHING = functools.singledispatch(lambda one: None).__code__  # type: ignore[attr-defined]


def is_dispatcher(value: Any) -> bool:
    """Whether it is a function of `functools.singledispatch`."""
    return isinstance(value, FunctionType) and value.__code__ is _DISPATCHING


class Memoised:
    """What stands for a function with a cache; `function` computes."""

    function: Callable[..., Any]

    def __init__(self, real: Any) -> None:
        self._real = real
        functools.update_wrapper(self, real)
        self._known = functools.cache(lambda *arguments, **options: self.function(*arguments, **options))

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        is_plain = not any(isinstance(one, Tensor) for one in (*arguments, *options.values()))
        return (self._known if is_plain else self.function)(*arguments, **options)

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)
