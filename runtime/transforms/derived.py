"""What a transform makes of a function: plain of a plain one, compiled of a compiled one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType

from ...tracer.errors import ArgumentError
from ..dispatch.compiled import CompiledFunction, CompiledMethod, function_name
from .inputs import Function, as_tuple


def showing(made: Function, function: Function) -> Function:
    """`functools.wraps(function)(made)`, sooner: by `__wrapped__` what the function reaches is found."""
    if type(function) is not FunctionType or type(made) is not FunctionType:
        return functools.wraps(function)(made)
    for name in functools.WRAPPER_ASSIGNMENTS:
        setattr(made, name, getattr(function, name))
    if function.__dict__:
        made.__dict__.update(function.__dict__)
    made.__dict__["__wrapped__"] = function
    return made


def derived(
    function: Function, derive: Callable[[Function], Function], again: functools.partial[Function]
) -> Function:
    """`derive(function)`, compiled if the function is.

    Args:
        derive: gets the Python function.
        again: the transform with its options, by name: as this a compiled result is pickled.
    """
    suffix, differentiated = again.func.__name__, as_tuple(again.keywords.get("argnums", ()))
    if not callable(function):
        raise ArgumentError(
            f"{suffix}: expected a function, found {type(function).__name__} {function!r}. Give the function "
            f"itself, and its arguments to the result: {suffix}(f)(x)."
        )
    inner = function.__wrapped__ if isinstance(function, CompiledFunction | CompiledMethod) else function
    made = showing(derive(inner), inner)
    made.__name__ = f"{function_name(inner)}_{suffix}"
    made.__dict__["differentiated"] = differentiated
    if any(isinstance(one, int) and one < 0 for one in differentiated):  # the last that the call gives
        made.__dict__["takes_as_given"] = True
    if isinstance(function, CompiledFunction | CompiledMethod):
        return function.transformed(made, again, differentiated)
    return made
