"""Functions whose graph is found once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pullback
from pullback.compat.autograd.insides import missing_of

__all__ = ["const_graph"]


def const_graph(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """The function of the arguments that are left, traced once: it is compiled.

    Example:
        >>> const_graph(lambda a, b: a * b, 2.0)(3.0)
        6.0
    """
    return pullback.compile(functools.partial(fun, *args, **kwargs))


__getattr__ = missing_of(__name__)
