"""NumPy's functions of arrays as sets, and of their distribution over bins, on Tensors.

Which elements are equal is known from values alone: in a trace that is a question with a guard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, UnsupportedError
from ...tracer.trace import is_tracing
from ..functions import PUBLIC, declared, joining, reduction, selection
from ..functions.common import array_dtype, as_dtype, fail
from ..functions.counting import counts_between, distinct, rows_along
from ..tape.apply import wrap
from ..tensors.conversion import tensor_of
from ..values.lost_gradients import refuse_constant
from ..values.tensor import Tensor
from .differences import linspace
from .functions import FUNCTIONS, implements
from .values import averaged, known, promoted

# --- sets ---------------------------------------------------------------------------------------------------


def _distinct(x: Tensor, axis: int | None, equal_nan: bool = True) -> tuple[Tensor, list[Tensor]]:
    """The distinct elements in order; where each is first, which each element is, how often each occurs."""
    if is_tracing() and (axis is None or not x.is_complex()):
        first, inverse, counts = distinct(rows_along(x._detached(), axis, "numpy.unique"), equal_nan)
        if axis is None:
            return x.reshape(-1)[first], [first, inverse.reshape(x.shape), counts]
        return selection.index_select(x, axis, first), [first, inverse, counts]
    (array,) = known("unique", x)
    _, *rest = np.unique(array, True, True, True, axis=axis, equal_nan=equal_nan)
    first, inverse, counts = (wrap(np.asarray(one)) for one in rest)
    values = x.reshape(-1)[first] if axis is None else selection.index_select(x, axis, first)
    return values, [first, inverse, counts]


@implements(np.unique)
def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, sorted: bool = True,
) -> Any:  # fmt: skip
    """The distinct elements in order; the gradient of each goes to its first place."""
    values, rest = _distinct(tensor_of(ar), axis, equal_nan)
    wanted = [one for one, flag in zip(rest, (return_index, return_inverse, return_counts)) if flag]
    return (values, *wanted) if wanted else values


def _named(function: Any, places: Sequence[int]) -> None:
    """`np.unique_counts` and its kin, which name their results."""
    result = type(function(np.zeros(1)))

    def call(x: Any, /) -> Any:
        values, rest = _distinct(tensor_of(x), None, equal_nan=False)
        return result(values, *(rest[place] for place in places))

    implements(function)(call)


_named(np.unique_all, (0, 1, 2))
_named(np.unique_counts, (2,))
_named(np.unique_inverse, (1,))
implements(np.unique_values)(lambda x, /: _distinct(tensor_of(x), None, equal_nan=False)[0])


def _flat(*arrays: Any) -> list[Tensor]:
    return [one.reshape(-1) for one in promoted(arrays)]


@implements(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Tensor:
    return _distinct(joining.cat(_flat(ar1, ar2), 0), None)[0]


@implements(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The elements that both have."""
    x, y = _flat(ar1, ar2)
    one, other = known("intersect1d", x, y)
    _, first, second = np.intersect1d(one, other, assume_unique, return_indices=True)
    return (x[first], wrap(first), wrap(second)) if return_indices else x[first]


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The elements of the first that the other does not have."""
    x, y = _flat(ar1, ar2)
    x = x if assume_unique else _distinct(x, None)[0]
    one, other = known("setdiff1d", x, y)
    return x[~np.isin(one, other)]


@implements(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The elements that one of both has."""
    given = _flat(ar1, ar2)
    both = joining.cat(given if assume_unique else [_distinct(one, None)[0] for one in given], 0)
    values, (_, _, counts) = _distinct(both, None)
    return values[known("setxor1d", counts)[0] == 1]


# --- histograms ---------------------------------------------------------------------------------------------


def _edges(x: Tensor, bins: Any, range: Any, function: str) -> Tensor:
    """Where the bins begin and end; gradients flow to the ends of the data."""
    if isinstance(bins, str):
        bins = len(np.histogram_bin_edges(known(function, x)[0], bins, range)) - 1
    if np.ndim(bins):
        return tensor_of(bins)
    if bins < 1:
        fail(ArgumentError, f"numpy.{function}: at least one bin is expected, found {bins}.")
    if range is None:
        first, last = (
            (PUBLIC["amin"](x), PUBLIC["amax"](x)) if x.numel() else (tensor_of(0.0), tensor_of(1.0))
        )
    else:
        first, last = map(averaged, range)
    half = PUBLIC["where"](PUBLIC["eq"](first, last), 0.5, 0.0)
    found = linspace(averaged(first) - half, averaged(last) + half, int(bins) + 1)
    return as_dtype(found, np.result_type(array_dtype(first), array_dtype(last), 0.5))


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Tensor:
    return _edges(tensor_of(a).reshape(-1), bins, range, "histogram_bin_edges")


@implements(np.histogram)
def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Tensor, Tensor]:
    """How many elements, or what weights, are in each bin; and the edges of the bins."""
    x = tensor_of(a).reshape(-1)
    edges = _edges(x, bins, range, "histogram")
    given = None if weights is None else tensor_of(weights)
    counts = counts_between(x._detached(), edges._detached(), given)
    if not density:
        return counts, edges
    counts = averaged(counts)
    return counts / reduction.diff(edges) / declared.sum(counts), edges


@implements(np.histogramdd)
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Tensor, list[Tensor]]:
    """How many rows of a table are in each bin of a grid; and the edges along each column."""
    if isinstance(weights, Tensor) and weights.requires_grad:
        fail(UnsupportedError, "numpy.histogramdd: gradients of weights are not supported. Use histogram.")
    x = tensor_of(sample) if not isinstance(sample, list | tuple) else joining.stack(promoted(sample), 1)
    count = x.shape[1]
    several = [bins] * count if np.ndim(bins) == 0 else list(bins)
    ranges = [None] * count if range is None else range
    edges = [
        _edges(x[:, dim], one, span, "histogramdd") for dim, (one, span) in enumerate(zip(several, ranges))
    ]
    if density:
        for one in edges:
            refuse_constant(one, "numpy.histogramdd(density=True)")
    given = None if weights is None else known("histogramdd", weights)[0]
    counts, _ = np.histogramdd(
        known("histogramdd", x)[0], known("histogramdd", *edges), density=density, weights=given
    )
    return wrap(counts), edges


@implements(np.histogram2d)
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """How many points (x, y) are in each bin of a grid; and the edges along both."""
    same = np.ndim(bins) == 1 and np.size(bins) > 2
    counts, edges = histogramdd([x, y], [bins, bins] if same else bins, range, density, weights)
    return counts, edges[0], edges[1]


# --- orders of several keys ---------------------------------------------------------------------------------


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Tensor:
    """The order by the last key, among equal ones by the one before, and so on."""
    rows = [tensor_of(one) for one in keys]
    order = FUNCTIONS[np.argsort](rows[0], axis, "stable")
    for row in rows[1:]:
        chosen = selection.take_along_dim(row, order, axis)
        order = selection.take_along_dim(order, FUNCTIONS[np.argsort](chosen, axis, "stable"), axis)
    return order
