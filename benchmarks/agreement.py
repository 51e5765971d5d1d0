"""Whether libraries computed the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .workload import Workload

TOLERANCE = {"float32": 1e-4, "float64": 1e-10}
"""The largest difference allowed, relative to the largest element of the array."""


def differences(
    workload: Workload,
    dtype: str,
    results: Mapping[str, Sequence[np.ndarray]],
    value_alone: Sequence[str] = (),
) -> dict[str, str]:
    """By library, in which arrays it differs too much from the first library, in words.

    Those in `value_alone` may have fewer arrays.
    """
    tolerance = TOLERANCE[dtype] if workload.tolerance is None else workload.tolerance
    found = {}
    (reference, expected), *others = results.items()
    for peer, arrays in others:
        texts = []
        if len(arrays) != len(expected) and peer not in value_alone:
            texts.append(f"{len(arrays)} arrays in place of {len(expected)}")
        for position, (one, other) in enumerate(zip(arrays, expected)):
            error = difference(one, other)
            if not error <= tolerance:  # a nan is none either
                texts.append(f"{_array_name(workload, position)} by {error:.1e}")
        if texts:
            found[peer] = f"differs from {reference}, {tolerance:.0e} is allowed: {', '.join(texts)}"
    return found


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest element; infinite for another shape or dtype."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return np.inf
    scale = float(np.max(np.abs(expected), initial=0.0)) or 1.0
    return float(np.max(np.abs(found.astype("float64") - expected.astype("float64")), initial=0.0)) / scale


def _array_name(workload: Workload, position: int) -> str:
    if workload.program is not None:
        return f"result {position}"
    return "the value" if position == 0 else f"the gradient of input {workload.argnums[position - 1]}"
