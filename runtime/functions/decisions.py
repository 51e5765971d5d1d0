"""Values that decide what runs: one truth value, one integer, of a Python number or a 0-d tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError, ShapeError
from ...tracer.graph import Node, constant
from ...tracer.ops import elementwise as e
from ...tracer.spec import BOOL, INT64, Spec
from ...tracer.trace import is_tracing
from ..tape.apply import apply, wrap
from ..values.tensor import Tensor, make
from ..values.value_kinds import Auxiliary
from .common import fail
from .structures import as_dtype, spec_of_tensor


def truth_of(value: Any, name: str, what: str) -> Tensor:
    """One truth value.

    Raises:
        ArgumentError: it is no tensor, array or number. ShapeError: it has more than one element.
    """
    if isinstance(value, bool | int | float | complex) and not isinstance(value, Tensor):
        known = bool(value)
        return make(constant(known, Spec((), BOOL)), Auxiliary) if is_tracing() else wrap(np.asarray(known))
    if not isinstance(value, Tensor | np.ndarray | np.generic):
        fail(ArgumentError, f"{name}: {what} is a {type(value).__name__}; expected one truth value.")
    tensor = value if isinstance(value, Tensor) else wrap(np.asarray(value))
    if tensor.payload.shape != ():
        fail(
            ShapeError,
            f"{name}: {what} is {spec_of_tensor(tensor)}; expected one truth value, of shape (). Reduce it, "
            "e.g. with .all() or .any().",
        )
    return tensor if tensor.payload.dtype == BOOL else apply(e.not_equal, tensor, 0)


def known_truth(truth: Tensor) -> bool | None:
    """The value, if it is the same in all calls."""
    value = truth.payload
    if isinstance(value, Node):
        return None if value.scalar_value is None else bool(value.scalar_value)
    return None if is_tracing() else bool(value)


def integer_of(name: str, value: Any, what: str) -> Any:
    """An integer; in a trace a tensor of one, unless it is the same in all calls.

    Raises:
        DTypeError, ShapeError: it is no integer, or not one.
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool | Tensor):
        return int(value)
    if not isinstance(value, Tensor | np.ndarray):
        fail(ArgumentError, f"{name}: {what} is {value!r}, a {type(value).__name__}; expected an integer.")
    tensor = value if isinstance(value, Tensor) else wrap(value)
    spec = spec_of_tensor(tensor)
    if spec.dtype.kind not in "iu":
        fail(DTypeError, f"{name}: {what} is {spec}; expected an integer.")
    if spec.shape != ():
        fail(ShapeError, f"{name}: {what} is {spec}; expected one integer, of shape ().")
    return as_dtype(tensor, INT64) if is_tracing() else int(tensor.payload)
