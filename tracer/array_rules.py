"""Rules on arrays: functions of operators in which NumPy's functions take the operators' places.

A rule is written with operators, which look at their operands and evaluate, extend a graph or write to the
tape. Where all are arrays a rule runs as a copy whose global variables hold what the operators evaluate.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from .operator import Operator

OPERATORS_OF_OURS = f"{__package__}.ops."
_namespaces: dict[int, dict[str, Any]] = {}
"""By the id of a module's variables, which live as long, those of the copies."""


def on_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of operators for arrays alone; itself if it is not of a module of operators."""
    if type(function) is not FunctionType or not function.__module__.startswith(OPERATORS_OF_OURS):
        return function
    variables = _namespace_of(function.__globals__)
    copy = FunctionType(
        function.__code__, variables, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _namespace_of(variables: dict[str, Any]) -> dict[str, Any]:
    found = _namespaces.get(id(variables))
    if found is None:
        found = _namespaces[id(variables)] = dict(variables)  # functions lead back to it
        for name, value in variables.items():
            found[name] = value.evaluate if isinstance(value, Operator) else on_arrays(value)
    return found
