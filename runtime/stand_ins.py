"""What stands for NumPy, for `math` and for functions of them in a function that is differentiated or traced.

They take plain numbers and make plain arrays, which keep neither gradients nor traced values. The stand-ins
do what they do where no Tensor is concerned, and else the like of it on Tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from ..tracer.trace import is_tracing
from .functions import PUBLIC
from .numpy_creation import CREATION, JOINING, OF_SEVERAL, holds_tensor
from .saved import saved_values
from .tensor import Tensor

Function = Callable[..., Any]
MODULES = (np, math)


class StandIns:
    """What stands for modules and functions, where code reaches them."""

    def __init__(self, functions: Mapping[Any, Function]) -> None:
        self._functions = {id(real): _while_wanted(real, function) for real, function in functions.items()}
        self._modules: dict[int, tuple[frozenset[str], ModuleType]] = {}
        for module in MODULES:
            own = {real.__name__: self._functions[id(real)] for real in functions if _is_of(real, module)}
            self._modules[id(module)] = frozenset(own), _Changed(module, own)

    def of(self, value: Any, names: frozenset[str]) -> Any:
        """What stands for `value` where code reads the attributes `names`; None if it stays itself."""
        if type(value) is not ModuleType:
            return self._functions.get(id(value))
        changed, stand_in = self._modules.get(id(value), (frozenset(), None))
        return None if changed.isdisjoint(names) else stand_in


def _is_of(function: Function, module: ModuleType) -> bool:
    return vars(module).get(function.__name__) is function


class _Changed(ModuleType):
    """A module with other functions."""

    def __init__(self, module: ModuleType, functions: dict[str, Function]) -> None:
        super().__init__(module.__name__)
        vars(self).update(functions, __getattr__=module.__getattribute__)


def _while_wanted(real: Function, function: Function) -> Function:
    """`function` while something is traced or differentiated; what outlives that calls `real`."""

    def call(*arguments: Any, like: Any = None, **options: Any) -> Any:
        if is_tracing() or saved_values() is not None or isinstance(like, Tensor):
            return function(*arguments, **options)
        return real(*arguments, **options)

    call.__name__ = call.__qualname__ = real.__name__
    call.__doc__ = real.__doc__
    return _class_called(real, call) if isinstance(real, type) else call


def _class_called(real: type, call: Function) -> Any:
    """What is called in place of a class, and else is the class: in `isinstance`, by its attributes."""

    class Meta(type):
        def __call__(cls, *arguments: Any, **options: Any) -> Any:
            return call(*arguments, **options)

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real)

        def __getattr__(cls, name: str) -> Any:
            return getattr(real, name)

    return Meta(real.__name__, (), {"__doc__": real.__doc__})


def _for_tensors(real: Function, function: Function) -> Function:
    """`function` where a Tensor is among the arguments, or in a list among them, else `real`."""

    def call(*arguments: Any, **options: Any) -> Any:
        return (function if any(map(holds_tensor, arguments)) else real)(*arguments, **options)

    return call


def _logarithm(x: Any, base: Any = math.e) -> Any:
    return np.log(x) if base is math.e else np.log(x) / np.log(base)


RENAMED = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "pow": "power",
}  # fmt: skip
SAME_NAME = "cbrt cos cosh degrees exp exp2 expm1 fabs hypot log10 log1p log2 radians sin sinh sqrt tan tanh"
MATH: dict[Any, Function] = {
    **{getattr(math, name): getattr(np, name) for name in SAME_NAME.split()},
    **{getattr(math, name): getattr(np, other) for name, other in RENAMED.items()},
    math.log: _logarithm, math.erf: PUBLIC["erf"], math.erfc: PUBLIC["erfc"], math.lgamma: PUBLIC["lgamma"],
}  # fmt: skip
"""Functions of `math` -> what has the gradient."""

_of_tensors = {real: _for_tensors(real, function) for real, function in (JOINING | MATH).items()}
JOINED = StandIns(_of_tensors)
"""For functions that do not write into arrays."""
WRITABLE = StandIns(_of_tensors | CREATION | OF_SEVERAL)
"""For those that do: the arrays that they make are Tensors."""
