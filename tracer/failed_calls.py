"""Which call failed: what errors of shapes, dtypes, dimensions and arguments note besides their words.

Messages have PyTorch's words, of which many name no function, no argument and no shape. The frames between
the user's line and the place that raises have all of that: so it is said in one place, for every function,
of Tensors, of arrays and in traces.
"""

from __future__ import annotations

import ast
import dis
import inspect
import operator
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache, partial
from types import CodeType, FrameType, MappingProxyType
from typing import Any

import numpy as np

from .origin import expression_at, is_users_code
from .records import record

LONGEST_VALUE = 40
LONGEST_INTEGER = 128
"""In bits; Python refuses to spell very long ones."""
MOST_ELEMENTS = 4
DEEPEST_VALUE = 2
PLAIN = frozenset((bool, int, float, complex, str, type(None), type(...)))
"""Whose text is Python's own: of their subclasses it is that of users' code, which may fail."""
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
PLAIN_VALUES = (np.ndarray, np.generic, bool, int, float, complex)
"""What a tensor of NumPy's or Python's kind answers to be an instance of."""
WRAPPED = ("real", "function", "method", "general")
"""What functions that are made around others call these, the one that users know first."""


@record(frozen=True)
class FailedCall:
    """What the user's line was calling when an error was raised."""

    shown: str
    """The function with the dtypes and shapes of its arguments: `numpy.sum(a: float64[2, 3], axis=2)`."""
    name: str = ""
    """What the user's line calls it, where it is computed of values of NumPy's; else empty."""
    plain: Callable[..., Any] | None = None
    """What computes it of plain arrays, where that is known: NumPy's function or Python's operator."""
    given: Sequence[Any] = ()
    named: Mapping[str, Any] = field(default_factory=dict)


def call_of(entries: Sequence[FrameType]) -> FailedCall | None:
    """`add(input: float64[2, 3], other: float64[4])`, of the function of pullback's that the user has called.

    Args:
        entries: the frames of pullback from the one that the user's line has called on. Those of context
            managers, of transforms and the like, which take no arrays, say nothing.

    Returns:
        None also where an argument of the user's fails when it is looked at: the error has the word.
    """
    try:
        return next(filter(None, map(_call_of, entries)), None)
    except Exception:
        return None


def _call_of(entry: FrameType) -> FailedCall | None:
    variables, code = entry.f_locals, entry.f_code
    every = inspect.getargvalues(entry)
    names, alone = every.args[: code.co_argcount], every.args[code.co_argcount :]
    given = [variables[name] for name in names if name in variables]
    given += variables.get(every.varargs or "", ())
    named = {name: variables[name] for name in alone if variables.get(name) is not None}
    named |= variables.get(every.keywords or "", {})
    around = [variables.get(name) for name in WRAPPED if name in code.co_freevars]
    function = next(filter(callable, around), None)
    plain: Callable[..., Any] | None = None
    if code.co_name == "array_function":  # NumPy's protocols
        plain = function = variables["function"]
        given, named = variables["arguments"], variables["keywords"]
    elif code.co_name == "array_ufunc":
        plain = function = getattr(variables["ufunc"], variables["method"])
        given, named = variables["inputs"], variables["options"]
        if variables["method"] == "__call__":
            plain = function = variables["ufunc"]
    elif code.co_qualname == "Dispatcher.call":  # of a compiled function
        function, given, named = variables["self"].function, variables["args"], variables["kwargs"]
    elif _is_of_numpy(function):
        plain = function
    if not any(map(is_array, _leaves(given, named))):
        return None
    if entry.f_back is not None and is_users_code(entry.f_back.f_code):
        found = (
            _of_syntax(entry, entry.f_back, given)
            or _of_builtin(code.co_name, given)
            or _of_method(entry, entry.f_back, names, given, named)
        )
        if found is not None:
            return found
    if function is None and not _is_public(code, given):
        return None
    name = code.co_name if function is None else _name_of(function)
    if name.startswith("_") or not name.replace(".", "").isidentifier():
        return None
    names = names if function is None else _parameters_of(function)
    shown = f"{name}({_arguments(given, named, names)})"
    if plain is None or not _are_of_numpy(given, named):
        return FailedCall(shown)
    return FailedCall(shown, name, plain, given, named)


def _is_public(code: CodeType, given: Sequence[Any]) -> bool:
    """Whether a function is one that users know: a method of a tensor, or one of the namespace."""
    if "<locals>" in code.co_qualname:
        return False
    is_method = code.co_varnames[:1] == ("self",) and is_tensor(given[0])
    return is_method or hasattr(sys.modules.get("pullback"), code.co_name)


def _of_syntax(entry: FrameType, users: FrameType, given: Sequence[Any]) -> FailedCall | None:
    """The call that an operator or an index in the user's line is."""
    kind, symbol = _instruction_at(users.f_code, users.f_lasti)
    if "SUBSCR" in kind or "SLICE" in kind or symbol == "[]":
        given = [given[0], *given[1:3]]
        if len(given) == 1 or (kind.startswith("STORE") and len(given) == 2):
            return None
        shown = f"{_shown(given[0])} at [{_index_shown(given[1])}]"
        if len(given) == 2:
            return FailedCall(shown, *_if_of_numpy("indexing", operator.getitem, given))
        shown = f"{shown} = {_shown(given[2])}"
        return FailedCall(shown, *_if_of_numpy("indexing", operator.setitem, given))
    if kind in UNARY and len(given) == 1:
        return FailedCall(f"{UNARY[kind][0]}{_shown(given[0])}", *_if_of_numpy(*UNARY[kind], given))
    if symbol not in OPERATORS or kind not in ("BINARY_OP", "COMPARE_OP") or len(given) != 2:
        return None
    if _is_reflected(entry):
        given = given[::-1]
    shown = f"{_shown(given[0])} {symbol} {_shown(given[1])}"
    return FailedCall(shown, *_if_of_numpy(symbol, OPERATORS[symbol], given))


@lru_cache(maxsize=1024)
def _instruction_at(code: CodeType, last: int) -> tuple[str, str]:
    """The name of an instruction, and the operator that it applies; code that fails may do so often."""
    reached = (one for one in dis.get_instructions(code) if one.offset <= last)
    instruction = deque(reached, maxlen=1).pop()  # that of a call, in Python 3.11, has parts behind it
    return instruction.opname, instruction.argrepr.removeprefix("bool(").removesuffix(")")


def _if_of_numpy(name: str, plain: Callable[..., Any], given: Sequence[Any]) -> tuple[Any, ...]:
    """The further fields of a call of values of NumPy's."""
    shown = name if name.isidentifier() else f"operator {name}"
    return (shown, plain, given) if _are_of_numpy(given) else ()


def _is_reflected(entry: FrameType) -> bool:
    """Whether a frame is that of `other + x`, which has x first."""
    code = entry.f_code
    is_one_of_both = entry.f_locals.get("reflected") is True or code.co_name.startswith("__r")
    return is_one_of_both or code.co_qualname.startswith(("direct.<locals>.function", "_reflected."))


def _of_builtin(method: str, given: Sequence[Any]) -> FailedCall | None:
    """The call of one of Python's functions, which asks for a number."""
    function = BUILTINS.get(method)
    if function is None or len(given) != 1:
        return None
    return FailedCall(
        f"{function.__name__}({_shown(given[0])})", *_if_of_numpy(function.__name__, function, given)
    )


BUILTINS: dict[str, Callable[..., Any]] = {
    "__float__": float, "__int__": int, "__complex__": complex, "__bool__": bool, "__index__": operator.index,
    "__len__": len, "__iter__": iter,
}  # fmt: skip


def _of_method(
    entry: FrameType,
    users: FrameType,
    names: Sequence[str],
    given: Sequence[Any],
    named: Mapping[str, Any],
) -> FailedCall | None:
    """The call of a method of an array, or a number, of NumPy's."""
    if not given or not is_tensor(given[0]) or not _are_of_numpy(given, named):
        return None
    try:
        expression: Any = ast.parse(f"({expression_at(users.f_code, users.f_lasti)})", mode="eval").body
        name = expression.func.attr
    except (SyntaxError, ValueError, AttributeError):  # no source, or no call
        return None
    if getattr(getattr(type(given[0]), name, None), "__code__", None) is not entry.f_code:
        return None
    if not any(isinstance(one, ast.Starred) for one in expression.args):  # the others are defaults
        by_name = {one.arg for one in expression.keywords}
        named = {one: value for one, value in named.items() if one in by_name or None in by_name}
        named |= {one: value for one, value in zip(names, given) if one in by_name}
        given = given[: 1 + len(expression.args)]
    kind = given[0].__class__.__name__
    shown = f"{_shown(given[0])}.{name}({_arguments(given[1:], named)})"
    return FailedCall(shown, f"{kind}.{name}", partial(_call_method, name), given, named)


def _call_method(name: str, value: Any, /, *given: Any, **named: Any) -> Any:
    return getattr(value, name)(*given, **named)


OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "@": operator.matmul, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "+=": operator.iadd,
    "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "//=": operator.ifloordiv,
    "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul, "&=": operator.iand,
    "|=": operator.ior, "^=": operator.ixor, "<<=": operator.ilshift, ">>=": operator.irshift,
}  # fmt: skip
UNARY: dict[str, tuple[str, Callable[..., Any]]] = {
    "UNARY_NEGATIVE": ("-", operator.neg), "UNARY_INVERT": ("~", operator.invert),
}  # fmt: skip


def is_said(message: str, call: str) -> bool:
    """Whether a message says the name of the function and the shapes of its arguments."""
    name = call.partition("(")[0]
    if " " in name:  # an operator
        name = ""
    message = message.partition("\n  at ")[0].replace(" ", "")
    shapes = [part.partition("]")[0].replace(" ", "") for part in call.split("[")[1:]]
    return name.rpartition(".")[2].strip("_") in message and all(
        f"({one})" in message or f"({one},)" in message for one in shapes
    )


def _name_of(function: Any) -> str:
    name: str = getattr(function, "__name__", type(function).__name__)
    module = getattr(function, "__module__", None) or ""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc):  # of its method
        return f"{_name_of(owner)}.{name}"
    if isinstance(function, np.ufunc):
        return f"numpy.{name}" if getattr(np, name, None) is function else f"scipy.special.{name}"
    if _is_of_numpy(function):
        return f"numpy.{name}" if getattr(np, name, None) is function else f"{module}.{name}"
    return name.replace("linalg_", "linalg.")


def _is_of_numpy(function: Any) -> bool:
    module = getattr(function, "__module__", None) or ""
    is_of_ufunc = isinstance(getattr(function, "__self__", None), np.ufunc)
    return isinstance(function, np.ufunc) or is_of_ufunc or module.partition(".")[0] == "numpy"


def _arguments(given: Sequence[Any], named: Mapping[str, Any], names: Sequence[str] = ()) -> str:
    """The arguments of a call, with the names of those given by position as far as they are known."""
    names = [*names, *[""] * len(given)]
    shown = [f"{one}: {_shown(value)}" if one else _shown(value) for one, value in zip(names, given)]
    return ", ".join(shown + [f"{one}={_shown(value)}" for one, value in named.items()])


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


def leaves_of(call: FailedCall) -> Iterator[Any]:
    """The arguments, and what lists and tuples among them hold."""
    return _leaves(call.given, call.named)


def is_array(value: Any) -> bool:
    """Whether it is an array or a number of NumPy's, or a tensor, whose payload may be a node of a graph."""
    return is_tensor(value) or isinstance(value, np.ndarray | np.generic)


def is_tensor(value: Any) -> bool:
    return hasattr(type(value), "_value")


def _are_of_numpy(given: Sequence[Any], named: Mapping[str, Any] = NO_OPTIONS) -> bool:
    """Whether all tensors among arguments, but for those that pullback makes on its own account, stand for
    arrays and numbers of NumPy's and Python's."""
    tensors = [one for one in _leaves(given, named) if is_tensor(one) and type(one)._precedence]
    return bool(tensors) and all(isinstance(one, PLAIN_VALUES) for one in tensors)


def _shown(value: Any, depth: int = 0) -> str:
    """An array as `float64[2, 3]`, several in brackets, and anything else by its text if that is short."""
    if is_array(value):
        payload = getattr(value, "_value", value)
        return f"{payload.dtype}[{', '.join(str(int(extent)) for extent in payload.shape)}]"
    if isinstance(value, list | tuple) and any(map(is_array, value)) and depth < DEEPEST_VALUE:
        shown = [_shown(one, depth + 1) for one in value[:MOST_ELEMENTS]]
        return f"[{', '.join(shown + ['...'] * (len(value) > MOST_ELEMENTS))}]"
    text = _text_of(value, depth)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def _index_shown(index: Any) -> str:
    """What stands between the brackets of an index."""
    if type(index) is tuple:
        return ", ".join(map(_index_shown, index))
    if type(index) is slice:
        parts = ["" if one is None else _shown(one) for one in (index.start, index.stop, index.step)]
        return ":".join(parts if parts[2] else parts[:2])
    return "..." if index is ... else _shown(index)


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
