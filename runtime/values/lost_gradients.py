"""Where a Tensor with a gradient becomes a plain number: `float(x)`, `x.item()`, `x.tolist()`, `complex(x)`.

Under `grad`, `vjp` and their kin that is an error: what is computed from the number would have no gradient.
On the tape of `backward()` it means what it says, as in PyTorch, and `float(x)` warns.

C code asks a Tensor for its number by `__float__`, so `float`, `math.sin`, `array.array` and NumPy, when it
sets an element of an ndarray, look the same. What loses nothing is let through: functions whose result is no
differentiable function of the number (`math.isnan`), and printing. What the caller's instructions do not show
beyond doubt to be one of these is refused; apart from that they only explain.
"""

from __future__ import annotations

import dis
import math
from functools import lru_cache
from types import CodeType, FrameType, ModuleType
from typing import Any

import numpy as np

from ...tracer.errors import GradientError, MutationError
from ...tracer.origin import at_caller, warn_at_user
from ...tracer.trace import innermost
from ..bytecode.library_calls import library_call
from ..bytecode.write_instructions import ITEM_STORES
from .differentiated import is_differentiated
from .modes import is_recording
from .refusals import has_remedy, noted, number_refused

WITHOUT_GRADIENT = frozenset(
    (math.ceil, math.floor, math.isclose, math.isfinite, math.isinf, math.isnan, math.trunc)
)
RENAMED = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "pow": "power",
}  # fmt: skip
"""What NumPy calls functions of `math` that it has under another name."""
LIKE = RENAMED | {"dist": "linalg.norm", "fsum": "sum", "sumprod": "dot"}
"""The same with those that take other arguments."""
PULLBACK_NAMES = {"erf": "erf", "erfc": "erfc", "lgamma": "lgamma"}
"""Those that NumPy does not have."""


def refuse_loss(tensor: Any, asked: str, frame: FrameType | None = None) -> None:
    """What is asked before a tensor that requires grad, or is traced, gives its number away.

    Args:
        asked: how, as "float()".
        frame: the innermost of Python, where C code may ask.

    Raises:
        GradientError: a derivative is being taken with respect to what the number depends on.
        MutationError: NumPy would set an element of an ndarray to a traced value.
    """
    differentiated = is_differentiated(tensor)
    if frame is not None:
        if _called(frame) in WITHOUT_GRADIENT:
            return
        if _stores(frame) and (differentiated or type(tensor._value) is not np.ndarray):
            _fail_to_store(tensor)
    if differentiated:
        raise refusal(asked, frame)
    if tensor.requires_grad and is_recording():
        _note_loss(tensor, asked)


def refuse_constant(tensor: Any, function: str) -> None:
    """The same for functions that make a Tensor without a history of another one's values.

    Raises:
        GradientError: a derivative is being taken with respect to what these depend on.
    """
    if is_differentiated(tensor):
        raise GradientError(
            f"{function}() makes a tensor without gradient of a value that depends on a differentiated "
            f"argument{at_caller()}. Use x.clone() or functions like pullback.stack, which keep it; where "
            "the values alone are meant, pass pullback.stop_gradient(x)."
        )


def refuse_store(tensor: Any, frame: FrameType) -> None:
    """The same for integers, which have no gradient to lose."""
    if type(tensor._value) is not np.ndarray and _stores(frame):
        _fail_to_store(tensor)


def is_formatting(frame: FrameType) -> bool:
    """Whether the number goes into a text, `"%.3f" % x`."""
    return _operation(frame.f_code, frame.f_lasti) == "%"


def _note_loss(tensor: Any, asked: str) -> None:
    """On the tape of `backward()`; a trace remembers it for calls of its code by a transform."""
    trace = innermost()
    if trace is not None and type(tensor._value) is not np.ndarray and not trace.dropped:
        trace.dropped = _explained(asked, None)
    if asked in ("float()", "complex()"):
        warn_at_user(
            f"{asked} of a tensor that requires grad gives a number without gradient. Use x.item() or "
            f"x.detach() where that is meant, else leave {asked} out."
        )


# --- messages ---------------------------------------------------------------------------------------------


def refusal(asked: str, frame: FrameType | None) -> GradientError:
    """The error for a value of which a number is made."""
    call = library_call()
    return number_refused(call) if has_remedy(call) else noted(_explained(asked, frame))


def _explained(asked: str, frame: FrameType | None) -> str:
    """What happened, and what to write instead."""
    function = None if frame is None else _called(frame)
    name = getattr(function, "__name__", "")
    if isinstance(function, type) and issubclass(function, np.floating):
        what, instead = f"numpy.{name} computes with", "Use x.astype(...)"
    elif getattr(function, "__module__", None) == "math":
        what, instead = f"math.{name} computes with", f"Use {_like_of(name)}"
    elif asked != "float()" or function in (float, complex):
        what, instead = f"{asked} makes", "Leave it out; compare without float(), as in abs(x) > 1e-6"
    else:
        what = f"{name}() takes" if name else "float(), or a function written in C, makes"
        instead = "Leave float() out, and use functions of NumPy, as numpy.sin for math.sin"
    return (
        f"{what} a plain number of a value that depends on a differentiated argument{at_caller()}. A number "
        f"has no gradient. {instead}; for the number alone, apply it to pullback.stop_gradient(x)."
    )


def _like_of(name: str) -> str:
    """What has a gradient in the place of a function of `math`."""
    if name in PULLBACK_NAMES:
        return f"pullback.{PULLBACK_NAMES[name]}"
    like = LIKE.get(name, name)
    return f"numpy.{like}" if "." in like or hasattr(np, like) else "functions of NumPy"


def _fail_to_store(tensor: Any) -> None:
    kind = GradientError if tensor.requires_grad else MutationError
    found = "a tensor that requires grad" if type(tensor._value) is np.ndarray else "a traced value"
    raise noted(
        f"an element of a NumPy array is set to {found}{at_caller()}. An ndarray can't hold that. Make the "
        "array with numpy.zeros(..., like=tensor) or pullback.zeros, or pass it as an argument; to store the "
        "number alone, use pullback.stop_gradient(x) or x.detach().",
        kind,
    )


# --- what the caller does -----------------------------------------------------------------------------------


def _stores(frame: FrameType) -> bool:
    return _operation(frame.f_code, frame.f_lasti) == "store"


def _called(frame: FrameType) -> Any:
    """The function written in C that a frame is calling, if it is a variable or an attribute of a module."""
    names = _names_called(frame.f_code, frame.f_lasti)
    if not names:
        return None
    first, *attributes = names
    found = frame.f_locals.get(first, frame.f_globals.get(first, frame.f_builtins.get(first)))
    for name in attributes:
        found = getattr(found, name, None) if isinstance(found, ModuleType) else None
    return found if callable(found) and type(found).__hash__ is not None else None


@lru_cache(maxsize=1024)
def _operation(code: CodeType, offset: int) -> str:
    """What an instruction does: "store" where it sets an element, "%" for that operator, else its name."""
    current = _instruction_at(code, offset)
    if current is None:
        return ""
    if current.opname == "BINARY_OP":
        return current.argrepr.rstrip("=")
    called = [] if current.positions is None else _begin_alike(code, current)
    filled = current.opname.startswith("CALL") and any(one.argval == "fill" for one in called)
    return "store" if current.opname in ITEM_STORES or filled else current.opname


@lru_cache(maxsize=1024)
def _names_called(code: CodeType, offset: int) -> tuple[str, ...]:
    """The variable, and the attributes read of it, that an instruction calls; empty for whatever else."""
    current = _instruction_at(code, offset)
    if current is None or not current.opname.startswith("CALL"):
        return ()
    if current.positions is None or None in current.positions[:3:2]:
        return ()
    chain = [one for one in _begin_alike(code, current) if one.opname not in ("PUSH_NULL", "PRECALL", "NOP")]
    is_plain = [
        one.opname.startswith("LOAD_")
        and isinstance(one.argval, str)
        and one.opname != "LOAD_CONST"
        and (position > 0) == (one.opname in ("LOAD_ATTR", "LOAD_METHOD"))
        for position, one in enumerate(chain)
    ]
    return tuple(one.argval for one in chain) if all(is_plain) else ()


def _instruction_at(code: CodeType, offset: int) -> dis.Instruction | None:
    return next((one for one in dis.get_instructions(code) if one.offset == offset), None)


def _begin_alike(code: CodeType, current: dis.Instruction) -> list[dis.Instruction]:
    """The instructions before a call whose expressions begin where it begins: what is called."""
    start = current.positions[:3:2] if current.positions else None
    return [
        one
        for one in dis.get_instructions(code)
        if one.offset < current.offset and one.positions is not None and one.positions[:3:2] == start
    ]
