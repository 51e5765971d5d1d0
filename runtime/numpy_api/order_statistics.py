"""NumPy's functions of order on Tensors: sorting, medians, quantiles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError
from ...tracer.spec import INT64
from ..functions import PUBLIC
from ..functions.common import array_dtype, as_dtype, fail, one_dim, own_dim
from ..functions.reductions.ordering import between, ordered_positions, ordered_values, selected
from ..functions.selections.selection import take_along_dim
from ..tape.apply import wrap
from ..tensors.conversion import holds_tensor, tensor_of
from ..values.tensor import Tensor
from ..values.value_kinds import as_number
from .functions import FUNCTIONS, implements
from .values import at_hand, averaged, axes_of, known, require_choice

SLOPES = {
    "interpolated_inverted_cdf": 0.0, "hazen": 0.0, "weibull": 1.0, "median_unbiased": 1 / 3,
    "normal_unbiased": 0.25,
}  # fmt: skip
"""By method of quantiles how much faster than n times the share the place grows; others jump."""
OF_ELEMENTS = ("lower", "higher", "nearest", "inverted_cdf", "closest_observation")
"""Methods that give elements as they are, also integers."""
SORTS = (None, "quicksort", "heapsort", "mergesort", "stable")


@implements(np.sort, in_order="K")
def sort(a: Any, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Tensor:
    """The elements in order; sorting is always stable."""
    require_choice(kind, SORTS, "sort", "kind")
    x, axis = _along(a, axis)
    own_dim(axis, x, "numpy.sort")
    if x.is_complex():
        return take_along_dim(x, _complex_positions(x, axis), axis)
    return ordered_values(x, axis)


@implements(np.argsort, in_order="asked")
def argsort(a: Any, axis: int | None = -1, kind: Any = None, *, stable: Any = None) -> Tensor:
    """The positions that sort; equal elements as NumPy leaves them where it need not keep their order."""
    require_choice(kind, SORTS, "argsort", "kind")
    x, axis = _along(a, axis)
    if not x.ndim:
        x = x.reshape(-1)  # as NumPy, whose result has one element
    if x.is_complex():
        return _complex_positions(x, axis)
    dim = one_dim(axis, x.ndim, "argsort")
    return ordered_positions(x, dim, stable=bool(stable) or kind not in (None, "quicksort"))


def _complex_positions(x: Tensor, axis: int) -> Tensor:
    """The positions that sort complex numbers: by real, then by imaginary parts, those with nan last."""
    known = x._detached()
    has_nan = 2 * as_dtype(PUBLIC["isnan"](known.real), INT64) + as_dtype(PUBLIC["isnan"](known.imag), INT64)
    order = ordered_positions(known.imag, axis, stable=True)
    for key in (known.real, has_nan):
        following = ordered_positions(take_along_dim(key, order, axis), axis, stable=True)
        order = take_along_dim(order, following, axis)
    return order


@implements(np.partition, in_order="K")
def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Tensor:
    """All elements in order, as `kth` of them must be."""
    require_choice(kind, ("introselect",), "partition", "kind")
    x, axis = _along(a, axis)
    dim = own_dim(axis, x, "numpy.partition")
    places, count = at_hand(kth), x.shape[dim]
    if places is not None and (
        places.dtype.kind not in "iu" or np.any((places < -count) | (places >= count))
    ):
        fail(ArgumentError, f"numpy.partition: kth must be positions of {count} elements; found {kth}.")
    return sort(x, dim)


@implements(np.argpartition, in_order="asked")
def argpartition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect") -> Tensor:
    require_choice(kind, ("introselect",), "argpartition", "kind")
    return argsort(a, axis)


def _along(a: Any, axis: int | None) -> tuple[Tensor, int]:
    x = tensor_of(a)
    return (x.reshape(-1), 0) if axis is None else (x, axis)


@implements(np.median)
def median(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean of the two middle elements, where PyTorch's median is the lower of them."""
    x = averaged(a)
    rows = _rows(x, axis)
    count = rows.shape[-1]
    if not count:
        return PUBLIC["quantile"](x, 0.5, axis, keepdims)  # which raises
    found = selected(rows, np.array([(count - 1) // 2, count // 2, count - 1]))
    middle, last = found[..., 1], found[..., 2]
    if count % 2 == 0:
        middle = 0.5 * (found[..., 0] + middle)
    return _shaped(PUBLIC["where"](PUBLIC["isnan"](last), last, middle), x, axis, keepdims, 0)


@implements(np.quantile, in_order="asked")
def quantile(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    """Between the elements in order, at shares q of the way; every method of NumPy."""
    x = averaged(a)
    if method == "linear" and axis != ():
        return as_number(PUBLIC["quantile"](x, _shares(q), axis, keepdims))
    ordered = _ordered(x, axis)
    (shares,) = known("quantile", q)
    count = ordered.shape[-1]
    places = np.quantile(np.arange(float(count)), shares, method=method)  # type: ignore[call-overload]
    lower = np.floor(places).astype(int)
    upper, weight = np.ceil(places).astype(int), wrap(np.asarray(places - lower, array_dtype(x)))
    if holds_tensor(q) and method in SLOPES:
        slope = (count + SLOPES[method]) * ((places > 0) & (places < count - 1))
        weight = weight + slope * (tensor_of(q) - tensor_of(q)._detached())
    found = between(ordered[..., lower], ordered[..., upper], weight)
    last = ordered[(..., -1, *(None,) * shares.ndim)]
    found = PUBLIC["where"](PUBLIC["isnan"](last), np.nan, found)
    if method in OF_ELEMENTS:
        found = as_dtype(found, array_dtype(tensor_of(a)))
    return _shaped(found, x, axis, keepdims, shares.ndim)


@implements(np.percentile, in_order="asked")
def percentile(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
    return quantile(a, _shares(q) / 100.0, axis, method=method, keepdims=keepdims)


def _shares(q: Any) -> Any:
    return tensor_of(q) if holds_tensor(q) else np.asarray(q, float)


def _ordered(x: Tensor, axis: Any) -> Tensor:
    """The elements that are combined, in order along the last dimension."""
    return ordered_values(_rows(x, axis), -1)


def _rows(x: Tensor, axis: Any) -> Tensor:
    """The elements that are combined, along the last dimension."""
    axes = axes_of(axis, x, "quantile")
    rest = [dim for dim in range(x.ndim) if dim not in axes]
    moved = FUNCTIONS[np.transpose](x, (*rest, *axes))
    return moved.reshape((*(x.shape[dim] for dim in rest), math.prod(x.shape[dim] for dim in axes)))


def _shaped(found: Tensor, x: Tensor, axis: Any, keepdims: bool, extra: int) -> Tensor:
    """With the dimensions of the shares in front, and what was combined as dimensions of size 1 if wanted."""
    if keepdims:
        axes = axes_of(axis, x, "quantile")
        kept = [1 if dim in axes else extent for dim, extent in enumerate(x.shape)]
        found = found.reshape((*kept, *found.shape[found.ndim - extra :]))
    return FUNCTIONS[np.moveaxis](found, range(-extra, 0), range(extra)) if extra else as_number(found)


@implements(np.nanquantile, in_order="asked")
def nanquantile(a: Any, q: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """`quantile` of what is not nan; nan where there is nothing else."""
    x = averaged(a)
    ordered = _ordered(x, axis)
    shares = _shares(q)
    given = at_hand(q)
    if given is not None and np.any((given < 0) | (given > 1)):
        fail(ArgumentError, f"numpy.nanquantile: q must be from 0 to 1, for percentiles to 100; found {q}.")
    count = PUBLIC["sum"](PUBLIC["logical_not"](PUBLIC["isnan"](ordered)), -1, True)
    places = as_dtype(PUBLIC["clamp"](count - 1, 0), array_dtype(x)) * as_dtype(
        tensor_of(shares).reshape(-1), array_dtype(x)
    )
    lower = PUBLIC["floor"](places)
    upper = PUBLIC["ceil"](places)
    low, high = (
        PUBLIC["take_along_dim"](ordered, as_dtype(one, np.dtype("int64")), -1) for one in (lower, upper)
    )
    found = PUBLIC["where"](PUBLIC["eq"](count, 0), np.nan, between(low, high, places - lower))
    found = found.reshape((*found.shape[:-1], *shares.shape))
    return _shaped(found, x, axis, keepdims, shares.ndim)


@implements(np.nanpercentile, in_order="asked")
def nanpercentile(a: Any, q: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return nanquantile(a, _shares(q) / 100.0, axis, keepdims=keepdims)


@implements(np.nanmedian)
def nanmedian(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return nanquantile(a, 0.5, axis, keepdims=keepdims)
