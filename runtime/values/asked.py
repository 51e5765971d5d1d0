"""What Python asks of a tensor: its truth value, its element as a number, its elements as an array.

Of a traced tensor the answer is the value in the call that is being traced, and a guard of the path
(`Trace.ask`). What comes without a guard is known of every call: shape, dtype, length.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, GradientError, PullbackError, ShapeError, TraceError, note_refusal
from ...tracer.graph import Node
from ...tracer.operator import Value
from ...tracer.origin import at_caller
from ...tracer.trace import above, below, innermost, itself, truth, whole
from .lost_gradients import is_formatting, refuse_loss, refuse_store
from .memory_order import as_it_lies
from .refusals import array_refused, noted

ndarray = np.ndarray
TRUTH_OF_SEVERAL = "Use x.any() or x.all(); to choose element by element, where(x, a, b)."


AS_ARRAY = "Conversion to a NumPy array"
"""What NumPy asks of a Tensor for which it has no other way, as of an index of an ndarray."""


class Asked(Value):
    """The methods of Tensor that give values away."""

    __slots__ = ()

    _value: Any
    _requires_grad: bool
    _is_torch: bool
    payload: Any
    requires_grad: Any

    def _concrete(self, wanted: str, form: Callable[[Node], Node] = itself) -> np.ndarray:
        """The ndarray; of a traced tensor `form` of its value in the call that is traced, and a guard on it.

        Raises:
            TraceError: there is no value, as in the body of a structured loop.
        """
        if type(self._value) is ndarray:
            return self._value
        trace = innermost()
        answer = None if trace is None else trace.ask(self.payload, wanted, form)
        return self._array(wanted) if answer is None else answer

    def _as_it_lies(self, array: np.ndarray) -> np.ndarray:
        """The value, which NumPy may ask how it lies in memory."""
        is_traced = array.size > 1 and type(self._value) is not ndarray
        return as_it_lies(array, self.payload) if is_traced else array

    def _array(self, wanted: str) -> np.ndarray:
        """The ndarray; TraceError for a traced tensor."""
        value = self._value
        if type(value) is ndarray:
            return value
        error = TraceError(
            f"{wanted} needs the value of {value!r}, but the function is being traced and has no values yet"
            f"{at_caller()}. Keep it a tensor: use pullback.where or pullback.cond in "
            "place of `if`, return the tensor and convert it outside, or pass what decides as a static "
            "argument."
        )
        note_refusal(error)
        raise error

    def _shown(self) -> np.ndarray:
        """The ndarray for a text; TraceError where a traced tensor has no value."""
        known = self._shown_if_known()
        return self._array("printing") if known is None else known

    def _shown_if_known(self) -> np.ndarray | None:
        """The ndarray; of a traced tensor its value in this call, without a guard: what is printed.

        Raises ConstantNeeded for numbers among the arguments of a compiled function, as text is a value.
        """
        value, trace = self.payload, innermost()
        if type(value) is ndarray:
            return value
        if trace is None:
            return None
        trace.require_no_numbers(value)
        return None if trace.depth_of(value) else trace.values.of(value)

    def item(self) -> Any:
        """The one element as a Python number.

        In a traced function each value is a path of its own, see `compile`.

        Raises:
            ShapeError: there are more elements, or none.
            GradientError: a gradient would be lost that is being taken.
        """
        self._require_one(ShapeError)
        if self.requires_grad:
            refuse_loss(self, "item()")
        return self._one("item()")

    def tolist(self) -> Any:
        """The elements as nested lists; a number for a 0-d tensor."""
        if self.requires_grad:
            refuse_loss(self, "tolist()")
        return self._concrete("tolist()").tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The ndarray itself, sharing memory; `force` detaches a tensor that requires grad.

        In a traced function it is a copy that must not be written to.
        """
        if self._requires_grad and not force:
            raise GradientError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        return self._as_it_lies(self._concrete("numpy()"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self._requires_grad:
            raise array_refused()
        if sys._getframe(1).f_globals.get("__name__", "").startswith("numpy.ma."):
            raise noted(
                f"a masked array is made of a tensor{at_caller()}; masks are not supported. Use "
                "numpy.where, or the data and the mask as two arrays.",
                ArgumentError,
            )
        array = self._as_it_lies(self._concrete(AS_ARRAY))
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def _require_one(self, error: type[PullbackError] = ArgumentError) -> None:
        """`error`, of the class of NumPy's, where PyTorch has a RuntimeError: code may go on from it."""
        count = math.prod(self._value.shape)
        if count != 1:
            kind = ShapeError if self._is_torch else error
            raise kind(f"a Tensor with {count} elements cannot be converted to Scalar{at_caller()}")

    def _one(self, wanted: str, form: Callable[[Node], Node] = itself) -> Any:
        self._require_one()
        return self._concrete(wanted, form).item()

    def __bool__(self) -> bool:
        size = math.prod(self._value.shape)
        if size != 1:
            kind = "no values" if size == 0 else "more than one value"
            raise ShapeError(
                f"Boolean value of Tensor with {kind} is ambiguous{at_caller()}. {TRUTH_OF_SEVERAL}"
            )
        return bool(self._concrete("The truth value (`if`, `while`, `and`, `or`, `not`)", truth).item())

    def __float__(self) -> float:
        self._require_one()
        if type(self._value) is not ndarray or self.requires_grad:
            frame = sys._getframe(1)
            if is_formatting(frame):
                return float(self._shown().item())
            refuse_loss(self, "float()", frame)
        return float(self._one("float()"))

    def __int__(self) -> int:
        self._require_one()
        refuse_store(self, sys._getframe(1))
        return int(self._one("int()", whole))

    def __floor__(self) -> int:
        return math.floor(self._one("math.floor()", below))

    def __ceil__(self) -> int:
        return math.ceil(self._one("math.ceil()", above))

    def __trunc__(self) -> int:
        return int(self._one("math.trunc()", whole))

    def __index__(self) -> int:
        if not self._is_torch and math.prod(self._value.shape) != 1:  # NumPy asks each index, and goes on
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        value = self._one("Use as an index")
        if not isinstance(value, int) or self._value.ndim:
            raise ArgumentError("only integer tensors of a single element can be converted to an index")
        return int(value)

    def __complex__(self) -> complex:
        self._require_one()
        if self.requires_grad:
            refuse_loss(self, "complex()", sys._getframe(1))
        return complex(self._one("complex()"))

    def __contains__(self, element: Any) -> bool:
        if type(self._value) is not ndarray:
            return bool((self == element).any())
        return bool((self._value == getattr(element, "_value", element)).any())
