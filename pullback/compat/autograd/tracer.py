"""What stands for values while they are differentiated: HIPS autograd's boxes, pullback's Tensors."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

from pullback.runtime.functions.stopping import stop_gradient
from pullback.runtime.values.tensor import Tensor
from pullback.runtime.values.value_kinds import plain

from .conventions import Function
from .insides import missing_of, refuse
from .rules import primitive

__all__ = ["Box", "getval", "isbox", "notrace_primitive", "primitive", "register_notrace"]


def isbox(x: Any) -> bool:
    """Whether x stands for a value that is differentiated or traced."""
    return issubclass(type(x), Tensor)


def getval(x: Any) -> Any:
    """The value of x without its gradient: an array or a number; in a compiled function a Tensor.

    Example:
        >>> pullback.grad(lambda x: x * getval(x))(3.0)
        np.float64(3.0)
    """
    return plain(stop_gradient(x)) if isbox(x) else x


def notrace_primitive(f_raw: Function) -> Function:
    """The function of values without their gradients.

    Example:
        >>> from pullback.compat.autograd import grad
        >>> rounded = notrace_primitive(np.round)
        >>> grad(lambda x: x * rounded(x))(2.6)
        np.float64(3.0)
    """

    @functools.wraps(f_raw)
    def without_gradients(*args: Any, **kwargs: Any) -> Any:
        return f_raw(*map(getval, args), **kwargs)

    return without_gradients


CONSTANT = frozenset((
    "all", "allclose", "any", "argmax", "argmin", "argpartition", "argsort", "argwhere", "around",
    "array_equal", "array_equiv", "ceil", "count_nonzero", "equal", "fix", "flatnonzero", "floor",
    "floor_divide", "full_like", "greater", "greater_equal", "iscomplex", "iscomplexobj", "isfinite",
    "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "less", "less_equal",
    "logical_and", "logical_not", "logical_or", "logical_xor", "ndim", "nonzero", "not_equal",
    "ones_like", "result_type", "rint", "round", "searchsorted", "shape", "sign", "signbit", "size",
    "trunc", "zeros_like",
))  # fmt: skip
"""Functions of NumPy's whose results have no gradient, or that of the elements which they are given."""


def register_notrace(trace_type: Any, primitive: Any) -> None:
    """Say that results of a function of NumPy's have no gradient, which is so without it.

    Raises:
        UnsupportedError: the results of the function have a gradient.

    Example:
        >>> from pullback.compat.autograd.extend import VJPNode
        >>> register_notrace(VJPNode, np.zeros_like)
    """
    if getattr(primitive, "__name__", None) not in CONSTANT:
        refuse("tracer.register_notrace")


class AsksForTensors(type):
    """The metaclass of classes whose instances are Tensors; they are for annotations and `isinstance`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isbox(instance)

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        refuse(cls.__name__)

    def register(cls, *args: Any) -> NoReturn:
        """Refused: pullback takes containers apart by itself."""
        refuse("Box")

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        refuse("Box")


class Box(metaclass=AsksForTensors):
    """For `isinstance(x, Box)`: whether x stands for a value that is differentiated.

    Example:
        >>> from pullback.compat.autograd import grad
        >>> grad(lambda x: 2.0 * x if isinstance(x, Box) else x)(1.0)
        np.float64(2.0)
    """


__getattr__ = missing_of(__name__)
