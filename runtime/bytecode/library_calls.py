"""What the user's line was calling when a library met a Tensor: for messages, `scipy.integrate.quad`.

The function may be written in C, or call another of the library's; so it is read off the user's line.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import itertools
import sys
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from ...tracer.origin import calling_frame, expression_at, user_frame
from ..values.foreign import library_of
from .write_instructions import ITEM_STORES


def library_call() -> str:
    """The function that the user's line is calling, or the expression that it is evaluating; else empty."""
    frame = calling_frame()
    return "" if frame is None else call_at(frame, frame.f_lasti) or _function_inside(frame)


def _function_inside(frame: FrameType) -> str:
    """The function in whose code the innermost call from a frame has gone on; empty for one in C."""
    inner, one = None, user_frame()
    while one is not None and one is not frame:
        inner, one = one, one.f_back
    if inner is None:
        return ""
    parts = [part for part in inner.f_globals.get("__name__", "").split(".") if part[:1] != "_"]
    return ".".join([*parts, inner.f_code.co_qualname])


def inside_of_library() -> str:
    """`, in scipy.special.zeta,` where a function of a library, and not the user's line, calls another."""
    frame = calling_frame()
    return "" if frame is user_frame() else f", in {library_call()},"


def call_at(frame: FrameType, instruction: int) -> str:
    """The function that an instruction of a frame calls, or the expression that it is part of; else empty."""
    text = expression_at(frame.f_code, instruction)
    names = {one.offset: one.opname for one in dis.get_instructions(frame.f_code)}
    if names.get(instruction) in ITEM_STORES:
        return f"{text} = ..."
    try:
        expression = ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError):  # a statement, or no source
        return ""
    if isinstance(expression, ast.Call):
        return _name(expression.func, frame)
    for one in (expression.left, expression.right) if isinstance(expression, ast.BinOp) else ():
        value = _variable(frame, one.id) if isinstance(one, ast.Name) else None
        if library_of(value):
            return f"an operator of {public_name(type(value))}"
    return " ".join(text.split())


def _name(function: ast.expr, frame: FrameType) -> str:
    """The name of what is called, in full where it is known without running code."""
    text = ast.unparse(function)
    if isinstance(function, ast.Name):
        found = _variable(frame, function.id)
        is_object = library_of(found) and not hasattr(found, "__name__")  # an interpolant that is called
        return text if found is None else public_name(type(found) if is_object else found) or text
    if not isinstance(function, ast.Attribute):
        return text
    names = text.split(".")
    if not all(map(str.isidentifier, names)):
        return text
    owner = _variable(frame, names[0])
    for name in names[1:-1]:
        if not isinstance(owner, ModuleType | type):
            return text
        owner = getattr(owner, name, None)
    if isinstance(owner, ModuleType):
        return f"{owner.__name__}.{names[-1]}"
    kind = owner if isinstance(owner, type) else type(owner)
    return text if owner is None else f"{public_name(kind)}.{names[-1]}"


def _variable(frame: FrameType, name: str) -> Any:
    for variables in (frame.f_locals, frame.f_globals, vars(builtins)):
        try:
            return variables[name]  # which `in` does not find where `__missing__` does
        except KeyError:
            pass
    return None


def public_name(value: Any) -> str:
    """The name of a function or a class with the shortest module that has it: `scipy.signal.lfilter`."""
    name = getattr(value, "__name__", "")
    if isinstance(value, np.ufunc):
        return _name_of_ufunc(value)
    module = inspect.getmodule(type(value)) if not hasattr(value, "__module__") else None
    parts = (getattr(value, "__module__", None) or getattr(module, "__name__", "") or "").split(".")
    for place in itertools.accumulate(parts, "{}.{}".format):
        if vars(sys.modules.get(place, builtins)).get(name) is value:
            return name if place == "builtins" else f"{place}.{name}"
    return name


def _name_of_ufunc(ufunc: np.ufunc) -> str:
    """A ufunc does not say which module it is of."""
    name, kind = ufunc.__name__, " (vectorized)"
    if name.endswith(kind):
        return f"numpy.frompyfunc({name.removesuffix(kind)})"
    special = sys.modules.get("scipy.special")
    if getattr(np, name, None) is not ufunc and special is not None:
        return f"scipy.special.{name}"
    return f"numpy.{name}"
