"""What stands for modules, functions and classes of a library that a traced function may give tables to."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from ..tracing.asked_types import class_called
from .queries import Queries


class AskedModule(ModuleType):
    """What stands for a module of a library, whose functions, and classes, may be given tables.

    Args:
        kinds: what is asked of it: functions, classes.
    """

    def __init__(self, module: ModuleType, queries: Queries, kinds: frozenset[type]) -> None:
        super().__init__(module.__name__)
        vars(self).update(_module=module, _queries=queries, _kinds=kinds)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            return AskedModule(found, self._queries, self._kinds)
        return asking(found, self._queries) if isinstance(found, tuple(self._kinds)) else found


def asking(function: Any, queries: Queries) -> Any:
    """What stands for a function or a class of a library, which may be given tables."""

    def call(*arguments: Any, **options: Any) -> Any:
        if not queries.concern([arguments, options]):
            return function(*arguments, **options)
        return queries.ask(function, f"{function.__name__}(...)", *arguments, **options)

    return class_called(function, call) if isinstance(function, type) else functools.wraps(function)(call)
