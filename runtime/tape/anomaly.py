"""Anomaly mode: a backward pass that makes nan stops and says which operation, on which line, made it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import AnomalyError
from ...tracer.origin import place_of_caller
from ...tracer.spec import CONTINUOUS
from ..values.nodes import GradNode, observers
from ..values.tensor import Tensor

PLACE = "place of the forward operation"
_enabled, _checks_nan = False, True
listeners: list[Callable[[bool], None]] = []
"""Called with whether nan are looked for, as often as that is said."""


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
    """Anomaly mode for a `with` block: nan raises AnomalyError, which names the line that it arises in.

    On the tape what is computed inside notes its line, and a backward pass inside raises where nan arises, as
    in PyTorch. A call of a compiled function raises where its results or gradients hold nan or inf which it
    has made: it names the user's line, the operator, or the operator whose gradient it is, what that was
    given, the position, and which run of the line it was. Outside of the block it costs nothing.

    Args:
        check_nan: whether to look for nan; else lines are noted only.

    Raises:
        AnomalyError: as above.

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
    for listen in listeners:
        listen(enabled and check_nan)


def _note_place(node: GradNode) -> None:
    """Let the node of an operation know the user's line."""
    node.metadata[PLACE] = place_of_caller()


def require_no_nan(node: GradNode, cotangents: list[Any], pulled: Sequence[Any]) -> None:
    """AnomalyError where a node has made nan of its cotangents."""
    if not _checks_nan:
        return
    node.explain_anomaly(cotangents, pulled)
    for position, value in enumerate(pulled):
        array = value._value if isinstance(value, Tensor) else value
        if isinstance(array, np.ndarray) and array.dtype.kind in CONTINUOUS and np.isnan(array).any():
            place = node.metadata.get(PLACE)
            raise AnomalyError(
                f"Function '{node.name()}' returned nan values in its {position}th output."
                + (f" The operation is at {place}." if place else "")
            )
