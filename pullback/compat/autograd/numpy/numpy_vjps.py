"""Helpers for rules of one's own: cotangents brought back to the shape of an argument."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.compat.autograd.insides import missing_of
from pullback.compat.autograd.numpy import metadata

__all__ = [
    "balanced_eq", "match_complex", "metadata", "repeat_to_match_shape", "replace_zero", "unbroadcast",
    "unbroadcast_f",
]  # fmt: skip


def unbroadcast(x: Any, target_meta: tuple[Any, ...], broadcast_idx: int = 0) -> Any:
    """x, summed to what was broadcast to it.

    Args:
        target_meta: shape, number of dimensions, dtype, and whether it is complex, of what was broadcast.
    """
    shape, ndim, _, is_complex = target_meta
    while np.ndim(x) > ndim:
        x = np.sum(x, axis=broadcast_idx)
    for axis, size in enumerate(shape):
        if size == 1 and np.shape(x)[axis] != 1:
            x = np.sum(x, axis=axis, keepdims=True)
    return np.real(x) if np.iscomplexobj(x) and not is_complex else x


def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The rule f, whose cotangents are summed to the shape of the argument `target`."""
    meta = metadata(target)
    return lambda g: unbroadcast(f(g), meta)


def repeat_to_match_shape(
    g: Any, shape: tuple[int, ...], dtype: Any, axis: int | Sequence[int] | None, keepdims: bool
) -> tuple[Any, int]:
    """(the cotangent of a reduction along `axis`, repeated to the operand's shape; how often it is)."""
    axes = range(len(shape)) if axis is None else np.atleast_1d(axis) % max(len(shape), 1)
    reduced = [1 if place in axes else size for place, size in enumerate(shape)]
    repeated = np.broadcast_to(np.reshape(g, reduced), shape)
    return np.astype(repeated, dtype), math.prod(shape) // math.prod(reduced or [1])


def balanced_eq(x: Any, z: Any, y: Any) -> Any:
    """The share of x in z, the greater or the lesser of x and y: 1 or 0, and half where they are equal."""
    return (x == z) / (1.0 + (x == y))


def replace_zero(x: Any, val: Any) -> Any:
    """x, with another value in the place of zero."""
    return np.where(x, x, val)


def match_complex(target: Any, x: Any) -> Any:
    """x, real or complex as the target."""
    if np.iscomplexobj(x) and not np.iscomplexobj(target):
        return np.real(x)
    return x + 0j if np.iscomplexobj(target) and not np.iscomplexobj(x) else x


__getattr__ = missing_of(__name__)
