"""All public names with the modules that have them, and the calls that the examples of docstrings make."""

import builtins
import doctest
import inspect
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

import pullback as pb


def public_modules(module: ModuleType) -> dict[str, ModuleType]:
    """The module and all that are public in it, by their full names."""
    found = {module.__name__: module}
    for name in module.__all__:
        if isinstance(inner := getattr(module, name), ModuleType):
            found |= public_modules(inner)
    return found


MODULES = {**public_modules(pb), "pullback.dask": pb.dask}
NAMES = {
    f"{place}.{name}": getattr(module, name)
    for place, module in MODULES.items()
    for name in module.__all__
    if not isinstance(getattr(module, name), ModuleType)
}


def seen_by(module: ModuleType, name: str) -> dict[str, Any]:
    """What an example may name: `np`, `pb`, what is public; of names that Python has too its own."""
    return _seen_by_all(module) | {name: vars(module)[name]}


@cache
def _seen_by_all(module: ModuleType) -> dict[str, Any]:
    public = {"np": np, "pb": pb, **vars(pb), **vars(module)}
    return {key: value for key, value in public.items() if key not in vars(builtins)}


Call = tuple[list[Any], dict[str, Any]]


def example_call(full: str) -> Call | None:
    """The arguments of the first call of a function in the example of its docstring."""
    place, _, name = full.rpartition(".")
    function = NAMES[full]
    calls: list[Call] = []

    def recorded(*arguments: Any, **options: Any) -> Any:
        calls.append((list(arguments), options))
        return function(*arguments, **options)

    seen = seen_by(MODULES[place], name) | {name: recorded, inspect.unwrap(function).__name__: recorded}
    for example in doctest.DocTestParser().get_examples(function.__doc__ or ""):
        if not calls:
            exec(compile(example.source, full, "single"), seen)
    return calls[0] if calls else None


def of_tensors() -> dict[str, Callable[..., Any]]:
    """The public functions with a parameter that is a Tensor, by their full names."""
    skipped = ("pullback.autograd", "pullback.debug", "pullback.testing", "pullback.func", "pullback.dask")
    return {
        full: function
        for full, function in NAMES.items()
        if not full.startswith(skipped) and inspect.isfunction(function) and _takes_tensors(function)
    }


def _takes_tensors(function: Callable[..., Any]) -> bool:
    given = inspect.signature(function).parameters.values()
    return any("Tensor" in str(one.annotation) or "Operand" in str(one.annotation) for one in given)
