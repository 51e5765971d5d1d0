"""Gradients that callers may write into: they share memory neither with each other nor with cotangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

FLOATS = frozenset((np.float64,))


def with_own_memory(
    values: Sequence[Any], cotangents: Sequence[np.ndarray]
) -> Sequence[np.ndarray | np.generic | None]:
    """Gradients for a caller to write into: they share memory neither with each other nor with cotangents."""
    if FLOATS.issuperset(map(type, values)):  # which share none
        return values
    alone = values[0] if len(values) == 1 else None
    if (
        type(alone) is np.ndarray
        and alone.base is None
        and not [one for one in cotangents if one is alone or one.base is not None]
    ):
        return values
    seen = set(map(_owner, cotangents))
    found: list[np.ndarray | None] = []
    for value in values:
        if value is None:
            found.append(None)
            continue
        array = np.asarray(value)
        owner = id(array) if array.base is None else _owner(array)
        if owner in seen:
            array = array.copy()
        seen.add(owner)
        found.append(array)
    return found


def _owner(array: Any) -> int:
    """Which object's memory an array shows."""
    while type(array) is np.ndarray and (base := array.base) is not None:
        array = base
    return id(array)
