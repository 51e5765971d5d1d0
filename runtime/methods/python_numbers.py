"""Python's numbers in a trace or under a transform: arithmetic among them keeps Python's meaning.

A division by zero and an overflow raise, a root of a negative number is complex. Whether it comes to that
is asked of each call, so in a compiled function it is a guard. Beside an array or a Tensor a number is an
operand like others, and weak in promotion.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.dims import python_type
from ...tracer.graph import Node
from ...tracer.ops.elementwise import power
from ...tracer.trace import innermost, nearest
from ..functions import PUBLIC
from ..functions.common import as_dtype
from ..functions.elements.arithmetic import pow_directly
from ..tape.apply import apply
from ..tensors.conversion import tensor_of
from ..values.lost_gradients import refuse_loss
from ..values.tensor import Tensor, TorchTensor
from ..values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber, as_kind

Method = Callable[[Any, Any], Any]
ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "divmod")
DIVISIONS = ("truediv", "floordiv", "mod", "divmod")


def _is_python(value: Any) -> bool:
    return python_type(value) in (PythonNumber, bool, int, float)


def _is_whole(value: Any) -> bool:
    """Whether a number is one of Python's integers."""
    if issubclass(type(value), Tensor):
        return value._value.dtype.kind in "iub"
    return isinstance(value, int)


def require_known(number: Tensor) -> None:
    """Raises ConstantNeeded for what is made of numbers among the arguments of a compiled function alone."""
    trace = innermost()
    if trace is not None and type(number._value) is Node:
        trace.require_no_numbers(number._value)


def is_of_numbers(number: Tensor) -> bool:
    """Whether it is known, or made of numbers among the arguments of a compiled function alone."""
    trace, value = innermost(), number._value
    return type(value) is not Node or (trace is not None and bool(trace.numbers_of(value)))


def _require_exact(name: str, first: Any, second: Any) -> None:
    """Raises ConstantNeeded where 64 bits may not hold the result of an operator of two integers.

    Those that count the turns of a loop are asked how large the result is.
    """
    trace = innermost()
    traced = [one for one in (first, second) if isinstance(one, Tensor) and type(one._value) is Node]
    if trace is not None and name != "pow" and all(trace.is_count(one._value) for one in traced):
        size = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}.get(name)
        if traced and size is not None and not abs(size(*map(_as_float, (first, second)))) < LARGEST_COUNT:
            traced[0]._concrete(name)
        return
    for one in traced:
        require_known(one)


LARGEST_COUNT = float(1 << 53)
"""Up to which floats are exact, by which that is asked."""


def _as_float(number: Any) -> Any:
    """The number as a float; a traced one as what is no number of Python's."""
    if isinstance(number, Tensor):
        return as_kind(as_dtype(tensor_of(number), np.dtype("float64")), NumpyScalar)
    return float(number)


def _arithmetic(name: str, reflected: bool) -> Method:
    general: Method = getattr(NumpyTensor, f"__{'r' if reflected else ''}{name}__")

    def method(self: PythonNumber, other: Any) -> Any:
        kind = type(other)  # `isinstance` asks a tensor's `__class__` as well, a property
        if kind is not float and kind is not PythonNumber:
            if issubclass(kind, TorchTensor):
                return NotImplemented  # its own method takes a number
            if not _is_python(other):
                plain = _with_plain_exponent(self) if name == "pow" and reflected else self
                return general(self, other) if plain is self else operator.pow(other, plain)
        first, second = (other, self) if reflected else (self, other)
        if self._value.dtype.kind in "iub" and _is_whole(other):  # Python's have any number of digits
            _require_exact(name, first, second)
        if name in DIVISIONS and second == 0:
            getattr(operator, name, divmod)(1.0, 0.0)
        if name == "pow":
            return _power(first, second, lambda: general(self, other))
        return general(self, other)

    method.__name__ = method.__qualname__ = f"__{'r' if reflected else ''}{name}__"
    return method


def _repeating(general: Method) -> Method:
    """A product with a number of NumPy's or Python's, where `n * [a, b]` is a longer list."""

    @functools.wraps(general)
    def method(self: NumpyScalar, other: Any) -> Any:
        if issubclass(type(other), Tensor) or not isinstance(other, SEQUENCES):
            return general(self, other)
        times: Any = operator.index(self) if _is_whole(self) else 1.0  # which raises as Python does
        return other * times

    return method


SEQUENCES: Any = (list, tuple, str, bytes)


def _power(base: Any, exponent: Any, compute: Callable[[], Any]) -> Any:
    if base == 0 and exponent < 0:
        operator.pow(0.0, -1.0)
    if not _is_whole(exponent) and base < 0 and exponent != PUBLIC["floor"](exponent):
        operands = (as_dtype(tensor_of(one), np.dtype("complex128")) for one in (base, exponent))
        return as_kind(apply(power, *operands, grad_name="PowBackward1"), PythonNumber)
    result = compute()
    if isinstance(result, Tensor) and result._value.dtype.kind == "f":
        is_finite = PUBLIC["isfinite"]
        if not is_finite(result) and is_finite(base) and is_finite(exponent):
            operator.pow(10.0, 400.0)
    return result


PLAIN_EXPONENTS = (2.0, 0.5, 1.0, 3.0, -0.5, 4.0, 0.0)
"""Exponents for which there is faster code than the general one."""


def _power_of_tensor(general: Method) -> Method:
    """`t ** p` where p is a number among the arguments: a plain exponent is part of the code."""

    @functools.wraps(general)
    def method(self: Tensor, other: Any) -> Any:
        short = pow_directly(self, other)
        return general(self, _with_plain_exponent(other)) if short is NotImplemented else short

    return method


def _with_plain_exponent(exponent: Any) -> Any:
    """The exponent; a number among the arguments as a constant, if it is a plain one."""
    if type(exponent) is not PythonNumber or type(exponent._value) is not Node or exponent.requires_grad:
        return exponent
    known: Any = exponent
    is_plain = functools.reduce(operator.or_, (known == one for one in PLAIN_EXPONENTS))
    if not is_plain:
        return exponent
    plain = next(one for one in PLAIN_EXPONENTS if known == one)
    return int(plain) if _is_whole(exponent) else plain


def _hash(self: Any) -> int:
    """As of the number, by which a cache may give what was computed for another one, without a gradient."""
    if self.requires_grad:
        refuse_loss(self, "hash()", sys._getframe(1))
    return hash(self._one("hash()"))


def _round(self: Any, ndigits: int | None = None) -> Any:
    """What `round(x)` and `round(x, 2)` are: an integer, and a number."""
    if ndigits is None:
        return round(self._one("round()", nearest))
    return PUBLIC["round"](self, decimals=ndigits)


def _float_method(name: str) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any) -> Any:
        return getattr(self._one(f"{name}()"), name)(*arguments)

    method.__name__ = method.__qualname__ = name
    return method


def bind() -> None:
    """Complete the classes."""
    setattr(TorchTensor, "__pow__", _power_of_tensor(Tensor.__pow__))  # noqa: B010
    for name in ARITHMETIC:
        for reflected in (False, True):
            method = _arithmetic(name, reflected)
            setattr(PythonNumber, method.__name__, method)
    for name in ("__mul__", "__rmul__"):
        for kind in (NumpyScalar, PythonNumber):
            method = getattr(kind, name)
            repeating = method.around(_repeating) if hasattr(method, "around") else _repeating(method)
            setattr(kind, name, repeating)
    setattr(NumpyScalar, "__hash__", _hash)  # noqa: B010
    setattr(NumpyScalar, "__round__", _round)  # noqa: B010
    for name in ("as_integer_ratio", "hex", "is_integer"):
        setattr(PythonNumber, name, _float_method(name))
