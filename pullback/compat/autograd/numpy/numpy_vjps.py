"""Helpers for rules of one's own: cotangents brought back to the shape of an argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.compat.autograd.insides import missing_of

__all__ = ["match_complex", "unbroadcast", "unbroadcast_f"]


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
    meta = (np.shape(target), np.ndim(target), np.result_type(target), np.iscomplexobj(target))
    return lambda g: unbroadcast(f(g), meta)


def match_complex(target: Any, x: Any) -> Any:
    """x, real or complex as the target."""
    if np.iscomplexobj(x) and not np.iscomplexobj(target):
        return np.real(x)
    return x + 0j if np.iscomplexobj(target) and not np.iscomplexobj(x) else x


__getattr__ = missing_of(__name__)
