"""What happens where an element of an ndarray is set to a Tensor.

NumPy asks a tensor of one element for its number, as `float()` does. In PyTorch's programs, outside of
functional transforms, `losses[step] = loss` means that. Where a function is differentiated or traced, the
gradient or the traced value would get lost.
"""

from __future__ import annotations

import dis
import sys
from types import FrameType
from typing import TYPE_CHECKING

import numpy as np

from ..tracer.errors import GradientError, MutationError, PullbackError
from ..tracer.origin import place_of_caller
from .saved import saved_values
from .writes import ITEM_STORES

if TYPE_CHECKING:
    from .tensor import Tensor


def refuse_store(tensor: Tensor) -> None:
    """What `__float__` and `__int__` ask first: whether their caller is NumPy, about to set an element.

    Raises:
        GradientError: in a function that is differentiated. MutationError: in one that is traced.
    """
    is_traced = type(tensor._value) is not np.ndarray
    if not is_traced and (saved_values() is None or not tensor.requires_grad):
        return
    if not _sets_element(sys._getframe(2)):
        return
    error = GradientError if tensor.requires_grad else MutationError
    found = "a traced value" if is_traced else "a tensor that requires grad"
    place = place_of_caller()
    raise error(
        f"an element of a NumPy array is set to {found}{', at ' + place if place else ''}. An ndarray can't "
        "hold that. Make the array with numpy.zeros(..., like=tensor) or pullback.zeros, or pass it as an "
        "argument; to store the number alone, use x.detach() or x.item()."
    )


def _sets_element(frame: FrameType) -> bool:
    """Whether the code that a frame is executing is at `x[i] = y` or `x.fill(y)`."""
    instructions = list(dis.get_instructions(frame.f_code))
    current = next(one for one in instructions if one.offset == frame.f_lasti)
    if current.opname in ITEM_STORES:
        return True
    return any(
        one.argval == "fill" and one.positions is not None and one.positions[:3:2] == current.positions[:3:2]
        for one in instructions
        if one.opname in ("LOAD_ATTR", "LOAD_METHOD") and current.positions is not None
    )


def raised_in_store(error: ValueError) -> Exception:
    """What `refuse_store` has raised, which NumPy hides behind an error of its own; else `error` itself."""
    cause = error.__cause__
    if not isinstance(cause, PullbackError):
        return error
    cause.__suppress_context__ = True
    return cause
