"""Where a gradient would get lost because C code asks a Tensor for its number, as `float()` does.

NumPy does so to set an element of an ndarray, and the functions of `math` to compute with it. In PyTorch's
programs, outside of functional transforms, `losses[step] = loss` means what it says. In a function that is
differentiated or traced it is an error, and `float(x)` and `x.item()` remain for who wants the number.
"""

from __future__ import annotations

import dis
import math
import sys
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tracer.errors import GradientError, MutationError
from ..tracer.origin import place_of_caller
from .saved import saved_values
from .writes import ITEM_STORES

if TYPE_CHECKING:
    from .tensor import Tensor

WITHOUT_GRADIENT = frozenset(
    (math.ceil, math.floor, math.isclose, math.isfinite, math.isinf, math.isnan, math.trunc)
)


def refuse_loss(tensor: Any) -> None:
    """What `__float__` and `__int__` ask first: whether their caller would lose a gradient.

    Raises:
        GradientError: in a function that is differentiated. MutationError: in one that is traced.
    """
    is_traced = type(tensor._value) is not np.ndarray
    if not is_traced and (saved_values() is None or not tensor.requires_grad):
        return
    frame = sys._getframe(2)
    instructions = list(dis.get_instructions(frame.f_code))
    current = next(one for one in instructions if one.offset == frame.f_lasti)
    start = None if current.positions is None else current.positions[:3:2]
    called = [one for one in instructions if one.positions is not None and one.positions[:3:2] == start]
    if current.opname in ITEM_STORES or any(one.argval == "fill" for one in called):
        _fail_to_store(tensor, is_traced)
    name = _function_of_math(frame, called)
    if name and tensor.requires_grad:
        module, _, function = name.rpartition(".")
        instead = f"numpy.{function} or the like of it" if module == "math" else "x.astype(...)"
        raise GradientError(
            f"{name} computes with numbers, which have no gradient{_at_caller()}. Use {instead}; for the "
            "number alone, use x.detach() or float(x)."
        )


def _fail_to_store(tensor: Tensor, is_traced: bool) -> None:
    error = GradientError if tensor.requires_grad else MutationError
    found = "a traced value" if is_traced else "a tensor that requires grad"
    raise error(
        f"an element of a NumPy array is set to {found}{_at_caller()}. An ndarray can't hold that. Make the "
        "array with numpy.zeros(..., like=tensor) or pullback.zeros, or pass it as an argument; to store the "
        "number alone, use x.detach() or x.item()."
    )


def _function_of_math(frame: FrameType, called: list[dis.Instruction]) -> str:
    """The function of `math`, or the type of NumPy's numbers, that these instructions call; else empty."""
    function: object = None
    for one in called:
        if not isinstance(one.argval, str) or not one.opname.startswith("LOAD_"):
            continue
        if isinstance(function, ModuleType):
            function = getattr(function, one.argval, None)
        elif function is None:
            function = frame.f_locals.get(one.argval, frame.f_globals.get(one.argval))
    if isinstance(function, type) and issubclass(function, np.floating):
        return f"numpy.{function.__name__}"
    if getattr(function, "__module__", "") != "math" or function in WITHOUT_GRADIENT:
        return ""
    return f"math.{getattr(function, '__name__', '')}"


def _at_caller() -> str:
    place = place_of_caller()
    return f", at {place}" if place else ""
