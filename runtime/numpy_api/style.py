"""Whether a function is written for NumPy alone, or calls pullback's functions, which are PyTorch's."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..functions import PUBLIC
from ..writes import instructions_of
from .programs import plain_function, reached_from

OF_PYTORCH = PUBLIC.keys() | {
    "checkpoint", "cond", "fori_loop", "linalg", "map", "nn", "ones", "randn", "scan", "special", "switch",
    "tensor", "while_loop", "zeros",
}  # fmt: skip
"""What PyTorch's programs take from pullback; transforms and decorators are used in both."""
NAMESPACES = frozenset(("pullback.linalg", "pullback.nn", "pullback.nn.functional", "pullback.special"))


def calls_pullback(function: Callable[..., Any]) -> bool:
    """Whether the function, or one that it reaches by name, calls pullback's functions on tensors."""
    plain = plain_function(inspect.unwrap(function))
    if plain is None:
        return False
    return any(map(_names_pullback, reached_from(plain, getattr(function, "__self__", function))))


def _names_pullback(function: FunctionType) -> bool:
    closure = inspect.getclosurevars(function).nonlocals if function.__closure__ else {}
    for name, attribute in _names(function.__code__):
        value = closure.get(name, function.__globals__.get(name))
        if type(value) is ModuleType:
            if value.__name__ in NAMESPACES:
                return True
            if value.__name__ == "pullback" and (not attribute or attribute in OF_PYTORCH):
                return True
        elif (getattr(value, "__module__", None) or "").startswith("pullback.runtime.functions"):
            return True
    return False


@lru_cache(maxsize=1024)
def _names(code: CodeType) -> frozenset[tuple[str, str]]:
    """The variables that a code object, or one nested in it, reads, each with an attribute read of it."""
    found = set()
    for one, following in itertools.pairwise(instructions_of(code)):
        if one.opname in ("LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME"):
            reads = following.opname in ("LOAD_ATTR", "LOAD_METHOD")
            found.add((one.argval, following.argval if reads else ""))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
    return frozenset(found)
