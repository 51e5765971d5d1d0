"""Which call failed: what errors of shapes, dtypes, dimensions and arguments note besides their words.

Messages have PyTorch's words, of which many name no function, no argument and no shape. The frames between
the user's line and the place that raises have all of that: so it is said in one place, for every function,
of Tensors, of arrays and in traces.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np

LONGEST_VALUE = 40
LONGEST_INTEGER = 128
"""In bits; Python refuses to spell very long ones."""
MOST_ELEMENTS = 4
DEEPEST_VALUE = 2
PLAIN = frozenset((bool, int, float, complex, str, type(None), type(...)))
"""Whose text is Python's own: of their subclasses it is that of users' code, which may fail."""
WRAPPED = ("real", "function", "method", "general")
"""What functions that are made around others call these, the one that users know first."""


def call_of(entries: Sequence[FrameType]) -> str:
    """`add(input: float64[2, 3], other: float64[4])`, of the function of pullback's that the user has called.

    Args:
        entries: the frames of pullback from the one that the user's line has called on. Those of context
            managers, of transforms and the like, which take no arrays, say nothing.

    Returns:
        "" also where an argument of the user's fails when it is looked at: the error has the word.
    """
    try:
        return next(filter(None, map(_call_of, entries)), "")
    except Exception:
        return ""


def _call_of(entry: FrameType) -> str:
    variables, code = entry.f_locals, entry.f_code
    every = inspect.getargvalues(entry)
    names, alone = every.args[: code.co_argcount], every.args[code.co_argcount :]
    given = [variables[name] for name in names if name in variables]
    given += variables.get(every.varargs or "", ())
    named = {name: variables[name] for name in alone if variables.get(name) is not None}
    named |= variables.get(every.keywords or "", {})
    around = [variables.get(name) for name in WRAPPED if name in code.co_freevars]
    function = next(filter(callable, around), None)
    if code.co_name == "array_function":  # NumPy's protocols
        function, given, named = variables["function"], variables["arguments"], variables["keywords"]
    elif code.co_name == "array_ufunc":
        function, given = variables["ufunc"], variables["inputs"]
    elif code.co_qualname == "Dispatcher.call":  # of a compiled function
        function, given, named = variables["self"].function, variables["args"], variables["kwargs"]
    elif function is None and ("<locals>" in code.co_qualname or code.co_name == "__call__"):
        return ""
    name = code.co_name if function is None else _name_of(function)
    is_private = name.startswith("_") and not name.startswith("__")
    if is_private or not name.replace(".", "").isidentifier():
        return ""
    if not any(map(_is_array, _leaves(given, named))):
        return ""
    names = names if function is None else _parameters_of(function)
    names = [*names, *[""] * len(given)]
    shown = [f"{one}: {_shown(value)}" if one else _shown(value) for one, value in zip(names, given)]
    shown += [f"{one}={_shown(value)}" for one, value in named.items()]
    return f"{name}({', '.join(shown)})"


def is_said(message: str, call: str) -> bool:
    """Whether a message says the name of the function and the shapes of its arguments."""
    name, _, arguments = call.partition("(")
    message = message.partition("\n  at ")[0]
    shapes = [part.partition("]")[0] for part in arguments.split("[")[1:]]
    return name.rpartition(".")[2].strip("_") in message and all(
        f"({one})" in message or f"({one},)" in message for one in shapes
    )


def _name_of(function: Any) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    module = (getattr(function, "__module__", None) or "").split(".")
    if isinstance(function, np.ufunc) or module[0] == "numpy":
        return f"numpy.linalg.{name}" if "linalg" in module else f"numpy.{name}"
    return name.replace("linalg_", "linalg.")


def _parameters_of(function: Any) -> list[str]:
    """The names of those that may be given by position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C
        return []
    return [one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.POSITIONAL_ONLY)]


def _leaves(given: Sequence[Any], named: Mapping[str, Any]) -> Iterator[Any]:
    for one in (*given, *named.values()):
        if isinstance(one, list | tuple):
            yield from one
        else:
            yield one


def _is_array(value: Any) -> bool:
    """Whether it is an array or a number of NumPy's, or a tensor, whose payload may be a node of a graph."""
    return hasattr(type(value), "_value") or isinstance(value, np.ndarray | np.generic)


def _shown(value: Any, depth: int = 0) -> str:
    """An array as `float64[2, 3]`, several in brackets, and anything else by its text if that is short."""
    if _is_array(value):
        payload = getattr(value, "_value", value)
        return f"{payload.dtype}[{', '.join(str(int(extent)) for extent in payload.shape)}]"
    if isinstance(value, list | tuple) and any(map(_is_array, value)) and depth < DEEPEST_VALUE:
        shown = [_shown(one, depth + 1) for one in value[:MOST_ELEMENTS]]
        return f"[{', '.join(shown + ['...'] * (len(value) > MOST_ELEMENTS))}]"
    text = _text_of(value, depth)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def _text_of(value: Any, depth: int = 0) -> str:
    """Python's text of plain values, of long ones its beginning, and the type's name of all else."""
    kind = type(value)
    if kind is int and value.bit_length() > LONGEST_INTEGER:
        return "int"
    if kind is str:
        return repr(value[: LONGEST_VALUE + 1])
    if kind in PLAIN:
        return repr(value)
    if kind is slice:
        parts = [_text_of(one, depth + 1) for one in (value.start, value.stop, value.step)]
        return f"slice({', '.join(parts)})"
    if kind not in (list, tuple) or depth == DEEPEST_VALUE:
        return kind.__name__
    parts = [_text_of(one, depth + 1) for one in value[:LONGEST_VALUE]]
    if kind is list:
        return f"[{', '.join(parts)}]"
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
