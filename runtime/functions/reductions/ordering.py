"""Order: sorting, the largest and the middle elements, counting."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from ....tracer.errors import ArgumentError, DimensionError
from ....tracer.graph import Node
from ....tracer.operator import Operator
from ....tracer.ops import elementwise as e
from ....tracer.ops import indexing as x_ops
from ....tracer.ops import reduction as r
from ....tracer.ops.ordering import (
    MOST_SELECTED,
    selected_positions,
    selected_values,
    sorted_positions,
    sorted_values,
)
from ....tracer.spec import INT64
from ....tracer.trace import is_tracing
from ...tape.apply import apply, unwrap, wrap
from ...tape.direct import direct
from ...values.tensor import Tensor, TorchTensor
from ...values.value_kinds import NumpyTensor
from ..common import (
    FLOAT64,
    all_dims,
    array_dtype,
    as_dtype,
    fail,
    filled,
    floating,
    numpy_names,
    one_dim,
    require_real,
    tensor,
)
from ..conventions import require_elements
from ..declared import any as any_of
from ..declared import argmax, isnan
from ..elements.comparison import where
from ..selections.selection import index_select
from ..shapes.movement import expand_to, movedim, permuted, reshape_to
from ..shapes.parts import along, flip, part, sliced
from .reduction import PAIRS, ValuesIndices, flattened
from .sorting import sorting_positions

__all__ = [
    "argsort", "bincount", "kthvalue", "median", "msort", "nanmedian", "nanquantile", "quantile", "sort",
    "topk",
]  # fmt: skip


def ordered_positions(x: Tensor, dim: int, descending: bool = False, stable: bool = True) -> Tensor:
    """The positions that sort x along a dimension; nan counts as the largest. Equal elements are in order,
    without `stable` as NumPy leaves them.
    """
    if descending:  # equal elements in order as well
        backwards = ordered_positions(flip(x._detached(), (dim,)), dim)
        return flip(apply(e.subtract, x._value.shape[dim] - 1, backwards), (dim,))
    values = unwrap(x)
    if isinstance(values, np.ndarray):
        order = sorted_positions.evaluate(values.swapaxes(dim, -1), stable=stable)
        return wrap(np.ascontiguousarray(order.swapaxes(dim, -1)))
    return movedim(sorting_positions(movedim(x, dim, -1), stable), -1, dim)


def _between(order: Tensor, dim: int, start: int, stop: int) -> Tensor:
    """A range of positions in the sorted tensor."""
    starts = tuple(start if axis == dim else 0 for axis in range(order.ndim))
    stops = tuple(
        stop if axis == dim else extent for axis, extent in enumerate(cast(Any, order._value.shape))
    )
    return sliced(order, starts, stops, (1,) * order.ndim)


def _chosen(name: str, x: Tensor, indices: Tensor, dim: int, version: int = 0) -> ValuesIndices:
    return PAIRS[name](along(x, indices, dim, f"{name.capitalize()}Backward{version}"), indices)


@numpy_names
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> ValuesIndices:
    """The elements in order along a dimension, and where they were: `(values, indices)`. Always stable.

    Example:
        >>> sort(tensor([3, 1, 2])).values
        tensor([1, 2, 3])
    """
    x = require_real(tensor(input, "sort"), "sort")
    dim = one_dim(dim, x.ndim, "sort")
    if not x.ndim:
        return PAIRS["sort"](x, wrap(np.zeros((), np.int64)))
    order = ordered_positions(x, dim, descending)
    if not isinstance(unwrap(x), Node):
        return _chosen("sort", x, order, dim)
    backwards = (dim,) if descending else ()  # in a graph each stands for itself, and may not be needed
    return PAIRS["sort"](flip(ordered_values(flip(x, backwards), dim), backwards), order)


def ordered_values(x: Tensor, dim: int) -> Tensor:
    """The values of `sort`, without the positions."""
    dim = one_dim(dim, require_real(x, "sort").ndim, "sort")
    if not x.ndim or array_dtype(x).kind not in "fiu":
        return along(x, ordered_positions(x, dim), dim) if x.ndim else x
    if dim == x.ndim - 1:
        return apply(sorted_values, x)
    return movedim(apply(sorted_values, movedim(x, dim, -1)), -1, dim)


def selected(x: Tensor, places: np.ndarray) -> Tensor:
    """The elements at these places, a row of them, of each row of x in order: `ordered_values` of few."""
    batch = tuple(x._value.shape[:-1])
    if array_dtype(x).kind != "f" or places.size > MOST_SELECTED:
        return index_select(ordered_values(x, -1), x.ndim - 1, wrap(places))
    wanted = reshape_to(wrap(places), (*(1 for _ in batch), places.size))
    return apply(selected_values, x, expand_to(wanted, (*batch, places.size)))


def _position_at(x: Tensor, dim: int, place: int) -> Tensor:
    """Where the element lies that stands at a place of each row along a dimension in order."""
    if array_dtype(x).kind != "f":
        return _between(ordered_positions(x, dim), dim, place, place + 1)
    rows = movedim(x._detached(), dim, -1)
    places = expand_to(wrap(np.array(place)), (*tuple(rows._value.shape[:-1]), 1))
    found = apply(selected_positions, rows, places, apply(selected_values, rows, places))
    return movedim(found, -1, dim)


_sorted = direct(sorted_values, kinds="f")


def sorted_directly(x: Any = None, axis: Any = -1, *more: Any) -> Any:
    """The values of an array in order along its last dimension, by a short way; NotImplemented for others."""
    kind = type(x)
    if (kind is not TorchTensor and kind is not NumpyTensor) or more or type(axis) is not int:
        return NotImplemented
    rank = len(x._value.shape)
    return _sorted(x) if rank and (axis == -1 or axis == rank - 1) else NotImplemented


@numpy_names
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The positions that sort the tensor along a dimension.

    Example:
        >>> argsort(tensor([3, 1, 2]))
        tensor([1, 2, 0])
    """
    return sort(input, dim, descending).indices


@numpy_names
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> ValuesIndices:
    """The k largest (or smallest) elements along a dimension, in order, and where they were.

    Raises:
        DimensionError: k is larger than the dimension.

    Example:
        >>> topk(tensor([3, 1, 2]), 2).values
        tensor([3, 2])
    """
    x = require_real(tensor(input, "topk"), "topk")
    dim = one_dim(dim, x.ndim, "topk")
    extent = x._value.shape[dim] if x.ndim else 1
    if not 0 <= k <= extent:
        fail(DimensionError, f"selected index k out of range: k = {k}, dimension {dim} has size {extent}")
    if not x.ndim:
        return PAIRS["topk"](x, wrap(np.zeros((), np.int64)))
    return _chosen("topk", x, _between(ordered_positions(x, dim, largest), dim, 0, k), dim)


@numpy_names
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """The k-th smallest element along a dimension, counted from 1, and where it was.

    Example:
        >>> kthvalue(tensor([3, 1, 2]), 2).values
        tensor(2)
    """
    x = require_real(tensor(input, "kthvalue"), "kthvalue")
    dim = one_dim(dim, x.ndim, "kthvalue")
    if not 1 <= k <= (x._value.shape[dim] if x.ndim else 1):
        fail(DimensionError, f"kthvalue(): selected number k out of range for dimension {dim}: k = {k}")
    if not x.ndim:
        return _chosen("kthvalue", x, wrap(np.zeros((), np.int64)), 0)
    order = _position_at(x, dim, k - 1)
    return squeezed(_chosen("kthvalue", x, order, dim), dim, keepdim)


def squeezed(pair: ValuesIndices, dim: int, keepdim: bool) -> ValuesIndices:
    if keepdim:
        return pair
    shape = tuple(extent for axis, extent in enumerate(pair.values.shape) if axis != dim)
    title = pair.values.grad_fn.name() if pair.values.grad_fn is not None else None
    return type(pair)(reshape_to(pair.values, shape, title), reshape_to(pair.indices, shape))


@numpy_names
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element, the lower of two; along a dimension with its index: `(values, indices)`.

    A nan anywhere makes it nan. Without `dim` the elements that are equal to it share its gradient.

    Raises:
        ShapeError: the dimension has size 0.

    Example:
        >>> median(tensor([3.0, 1.0, 2.0]))
        tensor(2.)
    """
    x = require_real(tensor(input, "median"), "median")
    if dim is None:
        if not x.numel():
            kind = array_dtype(x)
            return filled((), math.nan if kind.kind == "f" else np.iinfo(kind).min, kind)
        flat = reshape_to(x, (x.numel(),))
        middle = median(flat._detached(), 0).values
        if array_dtype(x).kind != "f":
            return middle
        differs = apply(e.logical_or, apply(e.less, flat, middle), apply(e.greater, flat, middle))
        shared = apply(e.where, differs, -math.inf, flat)
        return apply(r.amax, shared, dims=(0,), keepdim=False, grad_name="MedianBackward0")
    dim = one_dim(dim, x.ndim, "median")
    if not x.ndim:
        return _chosen("median", x, wrap(np.zeros((), np.int64)), 0, 1)
    require_elements(x, (dim,), "median")
    count = x._value.shape[dim]
    order = _position_at(x, dim, (count - 1) // 2)
    if array_dtype(x).kind == "f":
        nans = isnan(x)
        first = argmax(as_dtype(nans, INT64), dim, keepdim=True)
        order = where(any_of(nans, dim, keepdim=True), first, order)
    return squeezed(_chosen("median", x, order, dim, 1), dim, keepdim)


@numpy_names
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """`median` of the elements that are not nan.

    Example:
        >>> nanmedian(tensor([3.0, float("nan"), 2.0]))
        tensor(2.)
    """
    x = require_real(tensor(input, "nanmedian"), "nanmedian")
    if array_dtype(x).kind != "f":
        return median(x, dim, keepdim)
    if dim is None:
        flat = reshape_to(x, (x.numel(),))
        if not x.numel():
            return median(x)
        middle = nanmedian(flat._detached(), 0).values
        differs = apply(e.not_equal, flat, middle)
        shared = apply(
            e.where, apply(e.logical_and, differs, apply(e.equal, middle, middle)), -math.inf, flat
        )
        return apply(r.amax, shared, dims=(0,), keepdim=False, grad_name="NanmedianBackward0")
    dim = one_dim(dim, x.ndim, "nanmedian")
    if not x.ndim:
        return _chosen("nanmedian", x, wrap(np.zeros((), np.int64)), 0, 1)
    require_elements(x, (dim,), "nanmedian")
    known = as_dtype(apply(e.logical_not, isnan(x._detached())), INT64)
    count = apply(r.sum_, known, dims=(dim,), keepdim=True)
    place = apply(e.floor_divide, apply(e.maximum, apply(e.subtract, count, 1), 0), 2)
    order = along(ordered_positions(x._detached(), dim), place, dim)
    return squeezed(_chosen("nanmedian", x, order, dim, 1), dim, keepdim)


def msort(input: Tensor) -> Tensor:
    """The elements in order along the first dimension.

    Example:
        >>> msort(tensor([3, 1, 2]))
        tensor([1, 2, 3])
    """
    return ordered_values(tensor(input, "msort"), 0)


INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")
ROUNDINGS: dict[str, Any] = {"lower": e.floor, "higher": e.ceil, "nearest": e.round_half_even}


@numpy_names
def quantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """The q-th quantile, 0 <= q <= 1; of several q a new first dimension.

    Args:
        interpolation: what is taken between two elements: "linear", the "lower" or the "higher" one, their
            "midpoint", or the "nearest".

    Example:
        >>> quantile(tensor([1.0, 2.0, 3.0]), 0.25)
        tensor(1.5000)
    """
    return _quantile(input, q, dim, keepdim, interpolation, "quantile")


@numpy_names
def nanquantile(
    input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Tensor:
    """`quantile` of the elements that are not nan.

    Example:
        >>> nanquantile(tensor([1.0, float("nan"), 2.0]), 0.5)
        tensor(1.5000)
    """
    return _quantile(input, q, dim, keepdim, interpolation, "nanquantile")


def _quantile(input: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str, name: str) -> Tensor:
    if interpolation not in INTERPOLATIONS:
        fail(
            ArgumentError,
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
            f"{interpolation}",
        )
    x = require_real(floating(input, name), name)
    dims = all_dims(dim, x.ndim, name)
    merged = flattened(x, dims)
    require_elements(merged, (merged.ndim - 1,), name)
    fractions = _fractions(q, name)
    if name == "nanquantile":
        ordered = ordered_values(merged, -1)
        found = _between_places_of_numbers(ordered, wrap(fractions).reshape(-1), interpolation)
    elif isinstance(fractions, np.ndarray):
        found = _between_known_places(merged, fractions.reshape(-1), interpolation)
    else:
        found = _between_places(ordered_values(merged, -1), fractions.reshape(-1), interpolation)
    last = merged.ndim - 1
    found = permuted(found, [last, *range(last)])
    kept = [
        1 if axis in dims else extent for axis, extent in enumerate(x.shape) if keepdim or axis not in dims
    ]
    return reshape_to(found, (*fractions.shape, *kept))


def _fractions(q: Any, name: str) -> np.ndarray | Tensor:
    """As an array, if they are the same in all calls and have no gradient; checked, if they are known."""
    payload = unwrap(q)
    known = None if isinstance(payload, Node) else np.asarray(payload, FLOAT64)
    if known is not None and known.size and not (known.min() >= 0 and known.max() <= 1):
        fail(ArgumentError, f"{name}() q values must be in the range [0, 1], found {known.tolist()}")
    if known is not None and not (isinstance(q, Tensor) and (q.requires_grad or is_tracing())):
        return known
    if bool((q._detached() < 0).any()) or bool((q._detached() > 1).any()):  # in a trace questions with guards
        fail(ArgumentError, f"{name}() q values must be in the range [0, 1], found others.")
    return as_dtype(q, FLOAT64)


def _between_known_places(x: Tensor, fractions: np.ndarray, interpolation: str) -> Tensor:
    """The elements of rows in order at these fractions of their length; nan where there is one."""
    last, count, size = x.ndim - 1, fractions.size, x._value.shape[x.ndim - 1]
    places = fractions * (size - 1)
    if interpolation in ROUNDINGS:
        places = ROUNDINGS[interpolation](places)
    low, high = np.floor(places).astype(np.int64), np.ceil(places).astype(np.int64)
    found = selected(x, np.concatenate((low, high, [size - 1])))
    below, above = part(found, last, 0, count), part(found, last, count, 2 * count)
    weight = np.full_like(places, 0.5) if interpolation == "midpoint" else places - low
    return _or_nan(between(below, above, wrap(weight.astype(array_dtype(x)))), found)


def _between_places(ordered: Tensor, fractions: Tensor, interpolation: str) -> Tensor:
    """The same of fractions that a gradient may be taken of."""
    last = ordered.ndim - 1
    places = apply(e.multiply, fractions, ordered._value.shape[last] - 1)
    places = expand_to(places, (*tuple(ordered.shape[:last]), fractions.numel()))
    return _or_nan(_at_places(ordered, places, interpolation), ordered)


def _between_places_of_numbers(ordered: Tensor, fractions: Tensor, interpolation: str) -> Tensor:
    """The same, of the elements in front of the nan of each row."""
    dtype, last = array_dtype(ordered), ordered.ndim - 1
    known = apply(e.logical_not, isnan(ordered._detached()))
    count = apply(r.sum_, as_dtype(known, dtype), dims=(last,), keepdim=True)
    longest = apply(e.maximum, apply(e.subtract, count, 1.0), 0.0)
    return _at_places(ordered, apply(e.multiply, longest, as_dtype(fractions, dtype)), interpolation)


def _at_places(ordered: Tensor, places: Tensor, interpolation: str) -> Tensor:
    dtype, last = array_dtype(ordered), ordered.ndim - 1
    if interpolation in ROUNDINGS:
        places = apply(ROUNDINGS[interpolation], places)
    low = apply(e.floor, places)
    below, above = (along(ordered, as_dtype(one, INT64), last) for one in (low, apply(e.ceil, places)))
    flat = apply(e.multiply, low, 0.0)
    weight = apply(e.add, flat, 0.5) if interpolation == "midpoint" else apply(e.subtract, places, low)
    return between(below, above, as_dtype(weight, dtype))


def between(below: Tensor, above: Tensor, weight: Tensor) -> Tensor:
    """From one to the other, begun at the nearer one, so that an infinite one is met alone."""
    step = apply(e.subtract, above, below)
    from_below = apply(e.add, below, apply(e.multiply, step, weight))
    from_above = apply(e.subtract, above, apply(e.multiply, step, apply(e.subtract, 1.0, weight)))
    return apply(e.where, apply(e.less, weight, 0.5), from_below, from_above)


def _or_nan(found: Tensor, ordered: Tensor) -> Tensor:
    """What was found in sorted rows, or the nan of a row, which counts as its largest: the last."""
    last = ordered.ndim - 1
    count = ordered._value.shape[last]
    largest = part(ordered, last, count - 1, count)
    return apply(e.where, isnan(largest), largest, found)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each integer from 0 on occurs, or the sum of its weights.

    Example:
        >>> bincount(tensor([0, 2, 2]))
        tensor([1, 0, 2])
    """
    x = tensor(input, "bincount")
    is_vector = array_dtype(x).kind in "iu" and x.ndim == 1
    if not is_vector or (x.numel() and bool(apply(e.less, _extreme_of(r.amin, x), 0))):
        fail(ArgumentError, "bincount only supports 1-d non-negative integral inputs.")
    size = max(int(_extreme_of(r.amax, x)) + 1 if x.numel() else 0, minlength)
    if weights is None:
        weights = filled(tuple(x._value.shape), 1, INT64)
    elif array_dtype(weights).kind != "f":
        weights = as_dtype(weights, np.dtype("float64"))
    return apply(x_ops.scatter_add, weights, as_dtype(x, INT64), shape=(size,))


def _extreme_of(operator: Operator, x: Tensor) -> Tensor:
    return apply(operator, x._detached(), dims=(0,), keepdim=False)
