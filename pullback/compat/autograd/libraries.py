"""Modules of NumPy and SciPy for values that are differentiated, under HIPS autograd's names."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

import pullback
from pullback.runtime.tracing.stand_ins import namespace

from .tracer import getval, isbox


def module_of(name: str, owner: Any) -> ModuleType:
    """A module of this full name with an owner's attributes, which `import` finds.

    Functions of a library take Tensors in it.

    Example:
        >>> module_of("anp.fft", np.fft).rfftfreq(2)
        array([0. , 0.5])
    """
    module = ModuleType(name, f"What `{name.rpartition('.')[2]}` has, for values that are differentiated.")

    def missing(attribute: str) -> Any:
        return getattr(owner, attribute)

    vars(module).update(namespace(owner) if isinstance(owner, ModuleType) else {}, __getattr__=missing)
    sys.modules[name] = module
    return module


def giving_python_values(where: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's `where`, which of Python's numbers and lists alone gives such, as HIPS autograd's.

    Example:
        >>> giving_python_values(np.where)([True, False], 1.0, 2.0)
        [1.0, 2.0]
    """

    @functools.wraps(where)
    def call(condition: Any, x: Any = None, y: Any = None) -> Any:
        choices = [one for one in (x, y) if one is not None]
        found = where(condition, *choices)
        return found if not choices or any(map(_holds_array, (condition, *choices))) else found.tolist()

    return call


def with_symmetric_gradient(cholesky: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's `cholesky`, which reads one triangle of a matrix, with a gradient that is symmetric.

    Example:
        >>> from pullback.compat.autograd import grad
        >>> factor = with_symmetric_gradient(np.linalg.cholesky)
        >>> grad(lambda a: factor(a)[1, 0])(np.eye(2))
        array([[0. , 0.5],
               [0.5, 0. ]])
    """

    @functools.wraps(cholesky)
    def call(a: Any, /, **options: Any) -> Any:
        return (pullback.linalg.cholesky if isbox(a) else cholesky)(a, **options)

    return call


def _holds_array(value: Any) -> bool:
    return any(map(_holds_array, value)) if isinstance(value, list | tuple) else hasattr(value, "dtype")


class _Casting(type):
    """The metaclass of dtypes that are asked about, in `isinstance`, as the one below them."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__base__)  # type: ignore[arg-type]

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__base__)  # type: ignore[arg-type]


def without_gradient(kind: type[np.integer]) -> type[np.integer]:
    """A dtype of integers that, called with a value that is differentiated, casts it without its gradient."""

    def cast(cls: Any, value: Any = 0) -> Any:
        plain = getval(value)
        return plain.astype(kind) if isbox(plain) else kind(plain)

    casting: Any = _Casting(kind.__name__, (kind,), {"__new__": cast, "__slots__": ()})
    return casting
