"""What kind of object a value is: the user's, a library's, one that holds others."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from types import CodeType, FunctionType, ModuleType
from typing import Any, ClassVar

import numpy as np

LIBRARIES = {
    "numpy", "scipy", "numba", "pullback", "_pytest", "pandas", "xarray", "torch", "matplotlib", "tqdm",
}  # fmt: skip
OPAQUE_PACKAGES = sys.stdlib_module_names - {"__main__"} | LIBRARIES
WITHOUT_NUMBERS = {
    "_pytest", "abc", "asyncio", "concurrent", "inspect", "logging", "matplotlib", "numba", "pullback", "re",
    "tqdm", "typing", "warnings",
}  # fmt: skip
"""Packages whose objects are told apart by identity alone: nothing is computed with what they hold."""
CONTAINERS = (list, tuple, dict, OrderedDict, defaultdict, Counter, deque)


@functools.cache
def is_opaque(module: object) -> bool:
    """Whether a module is not the user's; pullback's examples are users.

    Some classes of C have a descriptor in the place of its name.
    """
    if not isinstance(module, str) or module.startswith("pullback.examples"):
        return not isinstance(module, str)
    return module.partition(".")[0] in OPAQUE_PACKAGES


def is_users(function: FunctionType) -> bool:
    """Whether a function is the user's; so is one of a namespace without a name, which `exec` was given."""
    module = function.__globals__.get("__name__")
    return module is None or not is_opaque(module)


def has_dict(value: Any) -> bool:
    return hasattr(type(value), "__dictoffset__") and type(value).__dictoffset__ != 0


def dictionary_of(value: Any) -> dict[str, Any]:
    """The dictionary of an object, also of one that shows another's attributes; empty where it has none."""
    is_proxy = type(type(value).__getattribute__) is FunctionType
    if is_proxy and not has_dict(value):
        return {}
    found: dict[str, Any]
    found = object.__getattribute__(value, "__dict__") if is_proxy else getattr(value, "__dict__", {})
    return found


class HasParts:
    """An object of ours that calls functions of the user's; `parts` names the attributes that hold them."""

    parts: ClassVar[tuple[str, ...]]


class StandingFunction:
    """What is called in the place of a function, which it has as `_real`."""

    __slots__ = ()

    _real: Any


class Unread:
    """What is kept beside a function of ours, and of which nothing is computed: no guard asks for it."""


def wrapped_by(value: Any) -> Any:
    """The function in a wrapper of a library's: a compiled function, one with a cache."""
    if isinstance(value, FunctionType) or not has_dict(value) or not is_opaque(type(value).__module__):
        return None
    return vars(value).get("__wrapped__")


def is_instance(value: Any) -> bool:
    """An object of a class that the user wrote."""
    kind = type(value)
    if isinstance(value, type | ModuleType | FunctionType) or not (
        has_dict(value) or hasattr(kind, "__slots__")
    ):
        return False
    return not is_opaque(kind.__module__) or kind.__qualname__ in ("SimpleNamespace", "Namespace", "_local")


def is_own_container(value: Any) -> bool:
    """An object of the user's whose class is a container as well: what it holds is not in attributes."""
    return isinstance(value, list | tuple | dict | set | frozenset | deque | bytearray)


def is_opaque_instance(value: Any) -> bool:
    """An object of a library's class with a content that may change."""
    module = type(value).__module__
    if not is_opaque(module) or is_instance(value):
        return False
    if isinstance(module, str) and module.partition(".")[0] in WITHOUT_NUMBERS:
        return False
    if isinstance(value, type | ModuleType | FunctionType | functools.partial | np.ufunc):
        return False
    return getattr(value, "__self__", None) is None and wrapped_by(value) is None


def names_in(code: CodeType) -> set[str]:
    """All names of variables and attributes in a code object."""
    return {*code.co_names, *code.co_freevars, *code.co_varnames}


def attributes_of(value: Any) -> dict[str, Any]:
    """What an object holds by name, in its dictionary and in slots."""
    found = dict(dictionary_of(value))
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                if name.startswith("__") and not name.endswith("__"):
                    name = f"_{kind.__name__.lstrip('_')}{name}"  # as Python mangles it
                with contextlib.suppress(AttributeError):
                    found[name] = getattr(value, name)
    return found
