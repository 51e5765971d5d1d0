"""Nested containers of arrays and numbers as one vector."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pullback.compat.autograd.numpy as anp

Function = Callable[..., Any]


def flatten(value: Any) -> tuple[Any, Function]:
    """(vector, unflatten) of nested tuples, lists and dicts of arrays and numbers; of dicts by sorted keys.

    Returns:
        The leaves one after the other, of their common dtype, and the function that makes of such a vector
        containers as `value`. Both are differentiable.

    Example:
        >>> vector, unflatten = flatten({"b": 3.0, "a": np.ones(2)})
        >>> vector
        array([1., 1., 3.])
        >>> unflatten(2 * vector)
        {'b': array(6.), 'a': array([2., 2.])}
    """
    leaves = list(_leaves(value))
    parts = [anp.ravel(leaf) for leaf in leaves]
    shapes = [anp.shape(leaf) for leaf in leaves]
    ends = list(itertools.accumulate(math.prod(shape) for shape in shapes))

    def unflatten(vector: Any) -> Any:
        places = zip([0, *ends], ends, shapes)
        return _rebuilt(value, (anp.reshape(vector[start:end], shape) for start, end, shape in places))

    return anp.concatenate(parts) if parts else np.array([]), unflatten


def flatten_func(func: Function, example: Any) -> tuple[Function, Function, Any]:
    """(function of vectors, unflatten, vector) of a function from containers to containers like `example`."""
    vector, unflatten = flatten(example)

    def of_vectors(x: Any, *args: Any) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return of_vectors, unflatten, vector


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _leaves(value[key])
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _leaves(one)
    else:
        yield value


def _rebuilt(like: Any, leaves: Iterator[Any]) -> Any:
    """A container like another, of other leaves."""
    if isinstance(like, dict):
        found = {key: _rebuilt(like[key], leaves) for key in sorted(like)}
        return type(like)((key, found[key]) for key in like)
    if isinstance(like, list | tuple):
        parts = [_rebuilt(one, leaves) for one in like]
        return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)
    return next(leaves)
