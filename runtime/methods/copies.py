"""Copies and pickles of tensors: what `copy.copy`, `copy.deepcopy` and `pickle` ask for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracer.errors import GradientError
from ...tracer.ops.elementwise import identity
from ...tracer.ops.movement import reshape
from ...tracer.origin import at_caller
from ...tracer.trace import innermost
from ..tape.apply import apply, of_kind
from ..values.differentiated import is_differentiated
from ..values.tensor import Tensor, make


def _as_copied_value(self: Tensor) -> Tensor | None:
    """A copy with the tensor's gradient, where it stands for a value of the user's code; else None."""
    is_traced = innermost() is not None and not self.requires_grad
    if not self._is_torch or is_differentiated(self) or is_traced:
        return of_kind(apply(identity, self), type(self))
    return None


def copied(self: Tensor) -> Tensor:
    """NumPy's arrays are copied; PyTorch's tensors show the same memory."""
    own = _as_copied_value(self)
    if own is None:
        return _restore(*pickled(self)[1])
    return apply(reshape, self, shape=tuple(self._value.shape)) if self._is_torch else own


def deeply_copied(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A leaf with memory and gradient of its own. Raises GradientError for what is no leaf."""
    if id(self) in memo:
        return memo[id(self)]
    own = _as_copied_value(self)
    if own is not None:
        memo[id(self)] = own
        return own
    if self.grad_fn is not None:
        raise GradientError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at "
            "the moment; detach() it first."
        )
    leaf = make(np.array(self._array("copy.deepcopy()")), type(self))
    leaf._requires_grad = self._requires_grad
    memo[id(self)] = leaf
    if self._grad is not None:
        leaf._grad = self._grad.__deepcopy__(memo)
    return leaf


def pickled(self: Tensor) -> tuple[Any, ...]:
    """How to make a leaf anew. Raises GradientError for what has a history."""
    if is_differentiated(self):
        raise GradientError(
            f"pickle keeps no gradient, and this value depends on a differentiated argument"
            f"{at_caller()}. Use copy.deepcopy(x), or pickle pullback.stop_gradient(x)."
        )
    if self.grad_fn is not None:
        raise GradientError("only leaf tensors can be pickled; detach() it first.")
    return _restore, (self._array("pickle"), self._requires_grad, self._grad)


def _restore(array: np.ndarray, requires_grad: bool, grad: Tensor | None) -> Tensor:
    tensor = make(array)
    tensor._requires_grad = requires_grad
    tensor._grad = grad
    return tensor
