"""NumPy's functions of arrays as sets, and of their distribution over bins, on Tensors.

Which elements are equal is known from values alone: in a trace that is a question with a guard.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, ShapeError
from ...tracer.ops import elementwise as e
from ...tracer.spec import INT64, Spec
from ...tracer.trace import is_tracing
from ..autograd.foreign_calls import call_python
from ..functions import PUBLIC
from ..functions.common import array_dtype, as_dtype, fail, is_traced
from ..functions.reductions.counting import as_density, counts_between, counts_in_grid, distinct, rows_along
from ..functions.selections import selection
from ..functions.shapes import joining
from ..functions.shapes.padding import padded
from ..solvers.requirements import Failure, require
from ..tape.apply import apply, wrap
from ..tensors.conversion import tensor_of
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
    """The elements that both have; the gradient of each goes to its first place in the first one."""
    given = _flat(ar1, ar2)
    firsts = [None if assume_unique else _distinct(one, None)[1][0] for one in given]
    one, other = (x if places is None else x[places] for x, places in zip(given, firsts))
    both = joining.cat([one, other], 0)._detached()
    order = FUNCTIONS[np.argsort](both, -1, "stable")
    ordered = both[order]
    twice = PUBLIC["eq"](ordered[1:], ordered[:-1])
    found = [order[:-1][twice], order[1:][twice] - one.shape[0]]
    if not return_indices:
        return one[found[0]]
    indices = [at if places is None else places[at] for at, places in zip(found, firsts)]
    return (one[found[0]], *indices)


@implements(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The elements of the first that the other does not have."""
    x, y = _flat(ar1, ar2)
    x = x if assume_unique else _distinct(x, None)[0]
    return x[~PUBLIC["isin"](x._detached(), y._detached())]


@implements(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """The elements that one of both has."""
    given = _flat(ar1, ar2)
    both = joining.cat(given if assume_unique else [_distinct(one, None)[0] for one in given], 0)
    values, (_, _, counts) = _distinct(both, None)
    return values[PUBLIC["eq"](counts, 1)]


# --- histograms ---------------------------------------------------------------------------------------------


def _number_of_bins(x: Tensor, rule: str, range: Any) -> int:
    """By one of NumPy's rules, of the values that x has now."""
    ends = None if range is None else tuple(range)

    def run(array: np.ndarray) -> list[np.ndarray]:
        return [np.asarray(len(np.histogram_bin_edges(array, rule, ends)) - 1)]

    if not is_tracing():
        return int(run(x._detached()._value)[0])
    key = rule, ends
    return int(call_python(_number_of_bins, key, "bins", run, [x._detached()], [Spec((), INT64)])[0])


def _edges(x: Tensor, bins: Any, range: Any, function: str) -> Tensor:
    """Where the bins begin and end; gradients flow to the ends of the data."""
    if isinstance(bins, str):
        bins = _number_of_bins(x, bins, range)
    if np.ndim(bins):
        reason = f"numpy.{function}: bins must increase monotonically."
        return _required(tensor_of(bins), _is_in_order, reason)
    if bins < 1:
        fail(ArgumentError, f"numpy.{function}: at least one bin is expected, found {bins}.")
    if range is None:
        first, last = (
            (PUBLIC["amin"](x), PUBLIC["amax"](x)) if x.numel() else (tensor_of(0.0), tensor_of(1.0))
        )
    else:
        first, last = map(averaged, range)
    reason = f"numpy.{function}: the range must be finite, and its end not below its begin."
    last = _required(last, lambda end: PUBLIC["isfinite"](end - first._detached()) & (end >= first), reason)
    half = PUBLIC["where"](PUBLIC["eq"](first, last), 0.5, 0.0)
    found = linspace(averaged(first) - half, averaged(last) + half, int(bins) + 1)
    return as_dtype(found, np.result_type(array_dtype(first), array_dtype(last), 0.5))


def _is_in_order(edges: Tensor) -> Tensor:
    return PUBLIC["all"](edges[1:] >= edges[:-1])


def _required(x: Tensor, holds: Callable[[Tensor], Tensor], reason: str) -> Tensor:
    """x, if that holds of its values; ArgumentError elsewhere, in code as well."""
    given = x._detached()
    truth = holds(given)
    if not is_traced(truth):
        return x if bool(truth) else fail(ArgumentError, reason)
    return x + require(apply(e.zeros_like, given), truth, Failure(reason, ArgumentError))


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
    return as_density(averaged(counts), [edges]) if density else counts, edges


@implements(np.histogramdd, shares=True)
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Tensor, list[Tensor]]:
    """How many rows of a table, or what weights, are in each bin of a grid; and each column's edges."""
    x = tensor_of(sample) if not isinstance(sample, list | tuple) else joining.stack(promoted(sample), 1)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2:
        fail(ShapeError, f"numpy.histogramdd: a table of points is expected, found shape {tuple(x.shape)}.")
    count = x.shape[1]
    several = list(bins) if _is_several(bins) else [bins] * count
    ranges = [None] * count if range is None else list(range)
    if len(several) != count or len(ranges) != count:
        fail(ShapeError, f"numpy.histogramdd: bins and ranges for each of {count} columns are expected.")
    columns = [x[:, dim] for dim in builtins.range(count)]
    edges = [_edges(*one, "histogramdd") for one in zip(columns, several, ranges)]
    given = None if weights is None else as_dtype(tensor_of(weights), np.dtype("float64"))
    inside = [one._detached() for one in edges]
    counts = as_dtype(counts_in_grid(columns, inside, given), np.dtype("float64"))
    if density:
        return as_density(counts, edges), edges
    bordered = padded(counts, [(1, 1)] * count, "constant", 0.0)  # NumPy counts what is outside, and shows
    return bordered[(slice(1, -1),) * count], edges  # the bins inside


def _is_several(bins: Any) -> bool:
    return isinstance(bins, Sequence) or bool(getattr(bins, "ndim", 0))


@implements(np.histogram2d, shares=True)
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool | None = None, weights: Any = None
) -> tuple[Tensor, Tensor, Tensor]:
    """How many points (x, y) are in each bin of a grid; and the edges along both."""
    same = _is_several(bins) and len(bins) not in (1, 2)
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
