"""The parameters of functions, read once for a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from operator import is_
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np


class Parameters:
    """What a signature says of calls, which compiled functions of one Python function share.

    Args:
        signature: None where a function written in C does not say.

    Attributes:
        listed: all of them, in order.
        positional: the names of those that may be given by position.
        defaults: by name the values that are there where none are given.
        of_keywords: the same of those that can be given by name alone.
        go_by_name: whether each may be given by position or by name.
        go_by_position: whether all may be left to their position or their default.
        are_bound: whether there are some that a call with positional arguments alone has to be bound for.
        forms: what calls have alike (`signature.Form`), of each way to bind them that of the last one.
    """

    def __init__(self, signature: inspect.Signature | None) -> None:
        self.signature = signature
        self.forms: dict[int, Any] = {}
        self.listed = list(signature.parameters.values()) if signature else []
        first = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.positional = tuple(one.name for one in self.listed if one.kind in first)
        self.defaults = {one.name: one.default for one in self.listed if one.default is not one.empty}
        kinds = {one.kind for one in self.listed}
        keyword_only = [one for one in self.listed if one.kind is one.KEYWORD_ONLY]
        self.of_keywords = {one.name: self.defaults.get(one.name) for one in keyword_only}
        self.go_by_name = kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}
        self.go_by_position = kinds <= {
            inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY,
        } and self.of_keywords.keys() <= self.defaults.keys()  # fmt: skip
        self.are_bound = bool(kinds & {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL})


_known: WeakKeyDictionary[FunctionType, tuple[tuple[Any, ...], bool, Parameters]] = WeakKeyDictionary()
"""Of functions without attributes what they are made of, whether as methods, and their parameters."""
UNSAID = Parameters(None)


def parameters_of(function: Callable[..., Any]) -> Parameters:
    """The parameters of a function; `UNSAID` of a ufunc, whose options exclude each other.

    Raises:
        ValueError: it is written in C, and does not say.
    """
    inner = inspect.unwrap(function, stop=lambda one: hasattr(one, "__signature__"))
    is_method = type(inner) is MethodType
    own = inner.__func__ if is_method else inner
    if type(own) is not FunctionType or own.__dict__:
        is_ufunc = isinstance(inspect.unwrap(function), np.ufunc)
        return UNSAID if is_ufunc else Parameters(inspect.signature(function))
    made_of = own.__code__, own.__defaults__, own.__kwdefaults__
    known = _known.get(own)
    if known is not None and known[1] is is_method and all(map(is_, known[0], made_of)):
        return known[2]
    found = Parameters(inspect.signature(inner))
    _known[own] = made_of, is_method, found
    return found
