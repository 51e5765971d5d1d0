"""Objects of other libraries that hold arrays: which are operands, what is said of others."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import numpy as np

LIBRARIES = ("pandas", "scipy", "xarray")


def module_of(kind: Any) -> str:
    """The module of a class or a function; empty where there is something else in the place of its name."""
    module = kind.__module__
    return module if isinstance(module, str) else ""


def library_of(value: Any) -> str:
    """The library of an object that holds arrays, as of a `pandas.Series` or a sparse matrix; else empty."""
    for kind in type(value).__mro__:
        library = module_of(kind).partition(".")[0]
        if library in LIBRARIES:
            return library
    return ""


def is_array_of_others(value: Any) -> bool:
    """Whether it is an array of another library that computes with such, as PyTorch's or JAX's."""
    is_array = any("__dlpack__" in vars(kind) for kind in type(value).__mro__)
    return is_array and not isinstance(value, np.ndarray)


def kind_named(value: Any) -> str:
    """The name of an object's class, after that of its library where it has one."""
    kind = type(value)
    library = module_of(kind).partition(".")[0]
    return kind.__name__ if library in ("", "builtins", "__main__") else f"{library}.{kind.__name__}"


def is_of_scipy(value: Any) -> bool:
    """Whether it is a function, a class or an object of SciPy, or a method of such an object."""
    owner = value.__self__ if type(value) is MethodType else value
    kind = type(owner)
    is_named = kind is FunctionType or isinstance(owner, type) or module_of(kind) == "uarray"  # of scipy.fft
    return module_of(owner if is_named else kind).startswith("scipy.")


def is_sparse(value: Any) -> bool:
    """Whether it is a matrix of `scipy.sparse`, of two dimensions."""
    kind = type(value)
    return module_of(kind).startswith("scipy.sparse.") and hasattr(kind, "tocsr") and value.ndim == 2


class TracedObject:
    """What stands for an object of another library in a trace, and counts as its array with Tensors."""

    __slots__ = ()

    def as_array(self) -> Any:
        raise NotImplementedError


class _OfPandas(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return library_of(instance) == "pandas" and hasattr(instance, "to_numpy")


class PandasObject(metaclass=_OfPandas):
    """In `isinstance`: a Series, a DataFrame, an Index.

    With Tensors it counts as its array: labels end there, and with them alignment and pandas' own methods.
    """

    to_numpy: Callable[[], Any]


def unboxed(value: Any) -> Any:
    """The array of a pandas object; anything else as it is."""
    if issubclass(type(value), TracedObject):
        return value.as_array()
    return value.to_numpy() if isinstance(value, PandasObject) else value


def how_to_pass(value: Any) -> str:
    """What to write in the place of an object of a library, as a further sentence; else empty."""
    library = library_of(value)
    if library == "scipy":
        return " Pass its array, e.g. its .toarray()." if hasattr(value, "toarray") else ""
    if is_array_of_others(value):
        return " Pass numpy.asarray(...) of it."
    return " Pass its array, its .to_numpy()." if library else ""


def how_to_return(value: Any) -> str:
    """The same for a result. In an xarray object a Tensor is the `.data`; pandas objects can't hold one."""
    library = library_of(value)
    return {"xarray": " Return its .data.", "pandas": " Return its .to_numpy()."}.get(library, "")
