"""What stands for SciPy's functions, classes and modules, in the same functions as what stands for NumPy's.

It is imported when such a function first reaches SciPy: see `late_rules`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FunctionType, MethodType, ModuleType
from typing import Any

from ..numpy_api.values import of_arrays
from ..scipy_api import distributions, interpolation, sparse_products
from ..scipy_api.scipy_functions import SCIPY, SOLVERS
from ..scipy_api.sparse_products import Sparse
from ..values.foreign import is_sparse, module_of
from ..values.value_kinds import PythonNumber
from .asked_types import class_called
from .stand_ins import Called, ChangedModule, for_tensors, while_wanted

Function = Callable[..., Any]
OF_CLASSES = ("scipy.interpolate", "scipy.stats", "scipy.sparse", "scipy.sparse.linalg")
CLASSES = {**interpolation.CLASSES, **distributions.CLASSES, **sparse_products.CLASSES}


def stand_in(value: Any) -> Any:
    """What stands for a function, a class or an object of SciPy; None where it stays itself."""
    module = module_of(type(value))
    if module.startswith("scipy.stats."):
        return distributions.stand_in(value)
    if isinstance(value, type) and value.__name__ in CLASSES and module_of(value).startswith("scipy."):
        return _class_stand_in(value)
    if is_sparse(value):
        return Sparse(value)
    if type(value) is MethodType:
        owner = stand_in(value.__self__) if module_of(type(value.__self__))[:12] == "scipy.stats." else None
        return None if owner is None else getattr(owner, value.__name__)
    if module[:18] == "scipy.interpolate.":
        return interpolation.interpolant_of(value)
    is_function = type(value) is FunctionType or module == "uarray"  # of scipy.fft
    if not is_function or not module_of(value).startswith("scipy."):
        return None
    for name in (*SCIPY, *SOLVERS):
        if value.__module__.startswith(name) and (found := _part(name, value)):
            return found
    return None


def _part(module: str, real: Function) -> Function | None:
    """What stands for a function of a module of SciPy."""
    if function := SOLVERS.get(module, {}).get(real.__name__):
        return _solver(real, function)
    function = SCIPY.get(module, {}).get(real.__name__)
    return None if function is None else _function(real, function)


@functools.cache
def _solver(real: Function, function: Function) -> Called:
    return Called(real, while_wanted(real, functools.partial(function, real)))


@functools.cache
def module_stand_in(module: ModuleType) -> ModuleType | None:
    """What stands for a module of SciPy, or for SciPy with the modules that have been imported."""
    inside = f"{module.__name__}."
    names = {name for name in (*SCIPY, *SOLVERS, *OF_CLASSES) if name.startswith(inside)}
    parts = {name.removeprefix(inside).partition(".")[0] for name in names}
    own: dict[str, Any] = {
        name: module_stand_in(sys.modules[inside + name]) for name in parts if inside + name in sys.modules
    }
    for name in (*SCIPY.get(module.__name__, ()), *SOLVERS.get(module.__name__, ())):
        own[name] = _part(module.__name__, getattr(module, name))
    if module.__name__ == "scipy.stats":
        own |= distributions.stand_ins()
    if module.__name__ in OF_CLASSES:
        own |= {name: _class_stand_in(one) for name, one in vars(module).items() if name in CLASSES}
    return ChangedModule(module, own) if own else None


@functools.cache
def _class_stand_in(real: type) -> Any:
    """What stands for a class of scipy.interpolate, scipy.stats or scipy.sparse."""
    return class_called(real, while_wanted(real, functools.partial(CLASSES[real.__name__], real)))


@functools.cache
def _function(real: Function, function: Function) -> Called:
    def call(*given: Any, **options: Any) -> Any:
        result = function(*given, **options)
        made_of_one = any(type(one) is PythonNumber for one in given)
        is_pythons = type(result) is PythonNumber and not made_of_one  # as SciPy's function says
        return result if is_pythons else of_arrays(result)

    return Called(real, for_tensors(real, call))
