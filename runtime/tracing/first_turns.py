"""What a variable holds in the first turn of a loop, and in later ones: numbers or arrays, and traced values.

Numbers are of double precision, or truth values; arrays may be arguments as well, which turns that leave them
as they are have, and others have not. So that turns are alike, a variable that becomes such a value is one
from the loop's first line on (`counters.py`).
"""

from __future__ import annotations

from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from ...tracer.dims import Dim
from ...tracer.graph import Node
from ...tracer.spec import Spec
from ..bytecode.write_instructions import instructions_of, writes_of
from ..values.tensor import Tensor
from ..values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber, TorchTensor

DOUBLE, TRUTH = Spec((), np.dtype(np.float64)), Spec((), np.dtype(np.bool_))
NUMBERS = (PythonNumber, NumpyScalar)
"""Of which it makes no difference which variable holds one: nobody writes into them."""
LARGEST = 1 << 53
"""Whole numbers that are no counters: others are exact in any arithmetic."""


class Kind(NamedTuple):
    """What a traced value is, but for its value: its class, and its place on the tape."""

    of: type[Tensor]
    requires_grad: bool
    is_leaf: bool
    spec: Spec


def kind_on_tape(value: Tensor) -> Kind:
    return Kind(type(value), value._requires_grad, value._grad_fn is None, value.payload.spec)


def kind_of_plain(value: Any) -> Kind | None:
    """That of an array without traced values, where a variable may hold a traced one later."""
    is_array = type(value) is np.ndarray or (type(value) is NumpyTensor and type(value._value) is np.ndarray)
    if not is_array or value.dtype.kind != "f" or not value.ndim:
        return None
    return Kind(NumpyTensor, False, True, Spec(tuple(map(int, value.shape)), value.dtype))


def is_traced(value: Any) -> bool:
    return issubclass(type(value), Tensor) and isinstance(value.payload, Node)


def is_number(value: Any) -> bool:
    """Whether a value may be that of a counter."""
    kind = type(value)
    return (kind in (int, Dim) and abs(value) < LARGEST) or kind in (bool, float, np.float64)


def can_become(code: CodeType, kind: Kind | None, other: Kind, is_given: bool) -> bool:
    """Whether what is of a kind may be of another one; None for numbers.

    What code writes into arrays is found out when the trace ends (`Held`): here only what it does not show.

    Args:
        is_given: whether it is there before the function runs, so that turns that leave it as it is differ
            from others though it is of one kind.
    """
    if kind is None and other.spec == TRUTH:
        return other.of is PythonNumber
    if kind is None or kind.spec == other.spec == DOUBLE:
        return other.spec == DOUBLE and _can_be_number(code, kind, other, is_given)
    is_array = kind.of is other.of in (NumpyTensor, TorchTensor) and kind.spec == other.spec
    is_float = other.spec.is_float and bool(other.spec.shape)
    is_other = is_given or kind != other
    return is_array and is_float and is_other and _is_on_tape_like(kind, other)


def _can_be_number(code: CodeType, kind: Kind | None, other: Kind, is_given: bool) -> bool:
    if kind is None:
        return other.of in (*NUMBERS, TorchTensor)
    if kind == other:
        return is_given
    if kind.of is other.of is TorchTensor:
        return is_given and _is_on_tape_like(kind, other)
    is_array = kind.of is NumpyTensor and not writes_in_place(code)  # a number that is made of one is none
    is_number = other.of is NumpyScalar and (kind.of in NUMBERS or is_array)
    return (is_number or kind.of is other.of is PythonNumber) and _is_on_tape_like(kind, other)


def _is_on_tape_like(kind: Kind, other: Kind) -> bool:
    """Whether no gradient is lost where what is of a kind becomes one of another."""
    return kind.requires_grad <= other.requires_grad


def may_become(code: CodeType, value: Any, becomes: Kind) -> bool:
    """Whether a variable holds what other turns hold another kind of value in place of."""
    if is_number(value):
        if type(value) is bool or becomes.spec == TRUTH:
            return type(value) is bool and becomes.spec == TRUTH
        return becomes.spec == DOUBLE and not (becomes.of is PythonNumber and isinstance(value, np.generic))
    plain = kind_of_plain(value)
    if plain is not None:  # what NumPy writes into an array of its own, nothing counts
        is_written = type(value) is np.ndarray and writes_in_place(code)
        return not is_written and can_become(code, plain, becomes, is_given=True)
    if not is_traced(value) or value._view is not None or value._hooks is not None:
        return False
    return can_become(code, kind_on_tape(value), becomes, value.payload.is_input)


@lru_cache(maxsize=4096)
def writes_in_place(code: CodeType) -> bool:
    """Whether a function has assignments as `t += h`, or others into arrays."""
    is_changed = any(one.opname == "BINARY_OP" and one.argrepr.endswith("=") for one in instructions_of(code))
    return is_changed or writes_of(code).any


__all__ = [
    "NUMBERS", "Kind", "can_become", "is_number", "is_traced", "kind_of_plain", "kind_on_tape", "may_become",
    "writes_in_place",
]  # fmt: skip
