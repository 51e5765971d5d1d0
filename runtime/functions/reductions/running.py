"""Running extremes and sums of exponentials: at each place what there is up to it.

What no operator continues from place to place is doubled: each round combines a place with one that is twice
as far away as in the last round (Hillis and Steele, "Data parallel algorithms", 1986).
"""

from __future__ import annotations

from collections.abc import Callable

from ....tracer.operator import Operator
from ....tracer.ops import elementwise as e
from ....tracer.ops.composite import running_logsumexp
from ....tracer.ops.reduction import running_largest, running_smallest
from ....tracer.spec import INT64
from ...tape.apply import apply
from ...values.tensor import Tensor
from ..common import array_dtype, as_dtype, floating, iota, numpy_names, one_dim, require_real, tensor
from ..declared import isnan
from ..shapes.joining import cat
from ..shapes.movement import expand_to, reshape_to
from ..shapes.parts import along, part
from .reduction import PAIRS, ValuesIndices

__all__ = ["cummax", "cummin", "logcumsumexp"]


def running(x: Tensor, dim: int, combined: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """At each place of a dimension what `combined` makes of all up to it."""
    count, distance = x._value.shape[dim], 1
    while distance < count:
        first = part(x, dim, 0, distance)
        x = cat([first, combined(part(x, dim, distance, count), part(x, dim, 0, count - distance))], dim)
        distance *= 2
    return x


def _extreme(input: Tensor, dim: int, name: str, extreme: Operator, precedes: Operator) -> ValuesIndices:
    x = require_real(tensor(input, name), name)
    dim = one_dim(dim, x.ndim, name)
    if not x.ndim:
        return PAIRS[name](x, iota(1).reshape(()))
    known = x._detached()
    if array_dtype(known).kind == "b":
        known = as_dtype(known, INT64)
    best = apply(extreme, known, dim=dim)
    is_new = apply(precedes, known, best)
    if array_dtype(known).kind == "f":
        is_new = apply(e.logical_or, is_new, isnan(known))
    count = x._value.shape[dim]
    shape = tuple(count if axis == dim else 1 for axis in range(x.ndim))
    places = expand_to(reshape_to(iota(count), shape), tuple(x._value.shape))
    found = apply(running_largest, apply(e.where, is_new, places, 0), dim=dim)
    return PAIRS[name](along(x, found, dim, f"{name.capitalize()}Backward0"), found)


@numpy_names
def cummax(input: Tensor, dim: int) -> ValuesIndices:
    """The largest element up to each place, and where it is, the last of equals: `(values, indices)`.

    Example:
        >>> cummax(tensor([1, 3, 2]), 0).values
        tensor([1, 3, 3])
    """
    return _extreme(input, dim, "cummax", running_largest, e.greater_equal)


@numpy_names
def cummin(input: Tensor, dim: int) -> ValuesIndices:
    """The smallest element up to each place, and where it is, the last of equals: `(values, indices)`.

    Example:
        >>> cummin(tensor([3, 1, 2]), 0).values
        tensor([3, 1, 1])
    """
    return _extreme(input, dim, "cummin", running_smallest, e.less_equal)


@numpy_names
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """The logarithm of the running sums of exponentials, without overflow.

    Of complex numbers it is one of the logarithms: the imaginary part is given up to multiples of 2 pi.

    Example:
        >>> logcumsumexp(tensor([0.0, 0.0]), 0)
        tensor([0.0000, 0.6931])
    """
    x = floating(input, "logcumsumexp")
    dim = one_dim(dim, x.ndim, "logcumsumexp")
    if not x.ndim:
        return apply(e.identity, x)
    if array_dtype(x).kind == "c":
        return running(x, dim, lambda one, other: apply(e.logaddexp, one, other))
    return apply(running_logsumexp, x, dim=dim)
