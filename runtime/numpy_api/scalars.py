"""NumPy's scalars: `x[i]` of an ndarray is a number of its own, where PyTorch's is a view of x.

`s = x[0]; s += 1` leaves a NumPy array as it was, and `t = s; s += 1` leaves t. Where ndarrays are given to a
function that is differentiated or traced, the 0-d Tensors in the place of its numbers behave so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from ..local import is_local, local
from ..tensor import Tensor, make

_current: ContextVar[bool | None] = ContextVar("has_scalars", default=None)
has_scalars = _current.get
"""Whether the function under way has NumPy's scalars; None outside of such functions."""


_methods: ContextVar[bool] = ContextVar("has_numpy_methods", default=False)
has_numpy_methods = _methods.get
"""Whether methods and operators are NumPy's in this function: it has scalars, but is not PyTorch's."""


def of_numpy() -> int:
    """What the meaning of methods adds to the key of a call with Tensors: 2 in NumPy's programs."""
    return 2 if has_scalars() else 0


@contextmanager
def with_scalars(wanted: bool, methods: bool = True) -> Iterator[None]:
    """Inside, elements of arrays are numbers, or views; and if they are, methods may be NumPy's."""
    token, of_methods = _current.set(wanted), _methods.set(wanted and methods)
    try:
        yield
    finally:
        _current.reset(token)
        _methods.reset(of_methods)


def is_scalar(tensor: Tensor) -> bool:
    """Whether a tensor stands for a number, which `+=` replaces, and not for an array."""
    return not tensor._value.shape and bool(has_scalars()) and tensor._view is None


def element_of(view: Tensor, index: Any) -> Tensor:
    """What `x[index]` is, given the view of x that PyTorch would show: an element is a number of its own."""
    if view._value.shape or not has_scalars() or view._view is None or _keeps_array(index):
        return view
    value = view._value
    if is_local(view):
        return local(value.copy())
    number = make(value.copy() if type(value) is np.ndarray else value)
    number._grad_fn, number._output_nr = view._grad_fn, view._output_nr
    number._requires_grad = view._requires_grad
    return number


def _keeps_array(index: Any) -> bool:
    """`x[..., 0]` is an array of no dimensions, which shows x."""
    return index is Ellipsis or (isinstance(index, tuple) and any(part is Ellipsis for part in index))
