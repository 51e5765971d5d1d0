"""NumPy's functions of order on Tensors: sorting, medians, quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..tracer.errors import UnsupportedError
from .functions import PUBLIC
from .functions.common import fail
from .numpy_functions import averaged, implements, tensor_of
from .tensor import Tensor


@implements(np.sort)
def sort(a: Any, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Tensor:
    """The elements in order; sorting is always stable."""
    x, axis = _along(a, axis)
    return PUBLIC["sort"](x, axis).values


@implements(np.argsort)
def argsort(a: Any, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Tensor:
    x, axis = _along(a, axis)
    return PUBLIC["argsort"](x, axis)


@implements(np.partition)
def partition(a: Any, kth: Any, axis: int | None = -1, kind: Any = None) -> Tensor:
    """All elements in order, as `kth` of them must be."""
    return sort(a, axis)


@implements(np.argpartition)
def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: Any = None) -> Tensor:
    return argsort(a, axis)


def _along(a: Any, axis: int | None) -> tuple[Tensor, int]:
    x = tensor_of(a)
    return (x.reshape(-1), 0) if axis is None else (x, axis)


@implements(np.median)
def median(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean of the two middle elements, where PyTorch's median is the lower of them."""
    return quantile(a, 0.5, axis, keepdims=keepdims)


@implements(np.quantile)
def quantile(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    if method != "linear":
        fail(
            UnsupportedError, f"numpy.quantile: method {method!r} is not supported on a Tensor; 'linear' is."
        )
    return PUBLIC["quantile"](averaged(a), q, axis, keepdims)


@implements(np.percentile)
def percentile(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    return quantile(a, np.asarray(q) / 100.0, axis, method=method, keepdims=keepdims)
