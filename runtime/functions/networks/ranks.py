"""Functions that differ in the number of dimensions alone, as `conv1d` and `conv2d`: written once."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def of_rank(general: F, rank: int, name: str, summary: str = "", example: tuple[str, str] = ("", "")) -> F:
    """A function that takes its rank as `_rank`, for one rank, under its public name.

    Args:
        general: the function, with the documentation of the lowest rank.
        summary, example: the documentation of another: a sentence, and arguments and result of a call.
    """
    function: Any = general
    made: Any = FunctionType(function.__code__, function.__globals__, name, function.__defaults__)
    made.__qualname__, made.__module__, made.__doc__ = name, function.__module__, function.__doc__
    made.__annotations__, made.__kwdefaults__ = function.__annotations__, {"_rank": rank}
    if summary:
        call = textwrap.indent(f">>> {name}({example[0]})\n{example[1]}", " " * 8)
        made.__doc__ = f"{summary}\n\n    Example:\n{call}\n    "
    signature = inspect.signature(function)
    shown = [one for one in signature.parameters.values() if one.name != "_rank"]
    made.__signature__ = signature.replace(parameters=shown)
    return cast(F, made)
