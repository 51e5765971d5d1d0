"""Anomaly mode: a backward pass that makes nan stops and says which operation, on which line, made it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracer.errors import GradientError
from ...tracer.origin import place_of_caller
from ...tracer.spec import CONTINUOUS
from ..values.nodes import GradNode, observers
from ..values.tensor import Tensor

PLACE = "place of the forward operation"
_enabled, _checks_nan = False, True


def is_anomaly_enabled() -> bool:
    """Whether backward passes look for nan.

    Example:
        >>> is_anomaly_enabled()
        False
    """
    return _enabled


class set_detect_anomaly:
    """Turn anomaly mode on or off, for good or for a `with` block.

    Example:
        >>> with set_detect_anomaly(True):
        ...     loss = tensor(1.0, requires_grad=True) * 2
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = _enabled, _checks_nan
        _set(bool(mode), check_nan)

    def __enter__(self) -> None: ...

    def __exit__(self, *error: Any) -> None:
        _set(*self.before)


class detect_anomaly:
    """Anomaly mode for a `with` block: what is computed inside notes its line, and a backward pass inside
    raises GradientError where nan arises.

    Example:
        >>> with detect_anomaly():
        ...     loss = tensor(1.0, requires_grad=True) * 2
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan

    def __enter__(self) -> None:
        self.before = _enabled, _checks_nan
        _set(True, self.check_nan)

    def __exit__(self, *error: Any) -> None:
        _set(*self.before)


def _set(enabled: bool, check_nan: bool) -> None:
    global _enabled, _checks_nan
    if enabled != _enabled:
        (observers.append if enabled else observers.remove)(_note_place)
    _enabled, _checks_nan = enabled, check_nan


def _note_place(node: GradNode) -> None:
    """Let the node of an operation know the user's line."""
    node.metadata[PLACE] = place_of_caller()


def require_no_nan(node: GradNode, pulled: Sequence[Any]) -> None:
    """GradientError where a node has made nan of its cotangents."""
    if not _checks_nan:
        return
    for position, value in enumerate(pulled):
        array = value._value if isinstance(value, Tensor) else value
        if isinstance(array, np.ndarray) and array.dtype.kind in CONTINUOUS and np.isnan(array).any():
            place = node.metadata.get(PLACE)
            raise GradientError(
                f"Function '{node.name()}' returned nan values in its {position}th output."
                + (f" The operation is at {place}." if place else "")
            )
