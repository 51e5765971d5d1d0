"""Rules without operators: functions of operators in which others take the operators' places.

A rule is written with operators, which look at their operands and evaluate, extend a graph or write to the
tape. Where it is known what they do, as where all are arrays, a rule runs as a copy whose global variables
hold functions that do just that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from .operator import Operator

OPERATORS_OF_OURS = f"{__package__}.ops."
Function = Callable[..., Any]


def of_arrays(function: Function) -> Callable[[Function], Function]:
    """Say what computes the same of arrays in fewer steps, as the place of a part is found in one."""

    def declared(of_operators: Function) -> Function:
        FORMS_OF_ARRAYS[of_operators] = function
        return of_operators

    return declared


FORMS_OF_ARRAYS: dict[Function, Function] = {}


class Copies:
    """Copies of functions of operators.

    Args:
        stand_in: of an operator the function that takes its place.
        forms: functions that take the place of others as they are.
    """

    def __init__(
        self, stand_in: Callable[[Operator], Function], forms: Mapping[Function, Function] | None = None
    ) -> None:
        self._stand_in = stand_in
        self._forms = {} if forms is None else forms
        self._namespaces: dict[int, dict[str, Any]] = {}
        """By the id of a module's variables, which live as long, those of the copies."""

    def __call__(self, function: Function) -> Function:
        """The copy of a function; itself if it is not of a module of operators."""
        if type(function) is not FunctionType or not function.__module__.startswith(OPERATORS_OF_OURS):
            return function
        if (form := self._forms.get(function)) is not None:
            return form
        variables = self._namespace_of(function.__globals__)
        copy = FunctionType(
            function.__code__, variables, function.__name__, function.__defaults__, function.__closure__
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        return copy

    def _namespace_of(self, variables: dict[str, Any]) -> dict[str, Any]:
        found = self._namespaces.get(id(variables))
        if found is None:
            found = self._namespaces[id(variables)] = dict(variables)  # functions lead back to it
            for name, value in variables.items():
                found[name] = self._stand_in(value) if isinstance(value, Operator) else self(value)
        return found


on_arrays = Copies(lambda operator: operator.evaluate, FORMS_OF_ARRAYS)
"""A function of operators for arrays alone: NumPy's functions take the operators' places."""
