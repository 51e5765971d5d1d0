"""Values that repeat: counted, found among others, put into bins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError
from ....tracer.ops import elementwise as e
from ....tracer.ops.reduction import running_largest
from ....tracer.spec import INT64
from ....tracer.trace import is_tracing
from ...tape.apply import apply, unwrap, wrap
from ...values.tensor import Tensor
from ..common import (
    Operand,
    array_dtype,
    as_dtype,
    fail,
    filled,
    floating,
    iota,
    is_scalar,
    numpy_names,
    one_dim,
    promoted,
    require_real,
    tensor,
)
from ..declared import amax, amin, argmax, cumsum, isfinite, isnan, minimum
from ..declared import any as any_of
from ..declared import sum as sum_of
from ..elements.comparison import where
from ..loops.control_flow import scan
from ..selections.parsed_index import true_positions
from ..selections.selection import index_add, index_select, values_of
from ..shapes.joining import cat
from ..shapes.movement import expand_to, movedim, reshape_to
from ..shapes.parts import along, part
from .ordering import ordered_positions, squeezed
from .reduction import PAIRS, ValuesIndices
from .sorting import insertion_places

__all__ = [
    "bucketize", "histc", "histogram", "histogramdd", "isin", "mode", "searchsorted", "unique",
    "unique_consecutive",
]  # fmt: skip


FLOAT64 = np.dtype("float64")


class Histogram(NamedTuple):
    """What `histogram` returns."""

    hist: Tensor
    bin_edges: Tensor


class HistogramOfPoints(NamedTuple):
    """What `histogramdd` returns."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


# --- places in order ----------------------------------------------------------------------------------------


def searchsorted(
    sorted_sequence: Tensor, input: Operand, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Where elements would be inserted in a sorted vector, or in the rows of a tensor, to keep it sorted.

    Args:
        sorted_sequence: a vector, or a tensor whose dimensions but the last are those of `input`.
        input: a tensor, or a number.
        right, side: behind equal elements, where `side` is "right" or `right` is true.
        sorter: the positions that sort `sorted_sequence`, if it is not sorted.

    Raises:
        ShapeError: the rows do not fit. ArgumentError: `side` and `right` contradict each other.

    Example:
        >>> searchsorted(tensor([1, 3, 5]), tensor([3]))
        tensor([1])
    """
    if side not in (None, "left", "right") or (side == "left" and right):
        fail(ArgumentError, f"searchsorted(): side must be 'left' or 'right' as right says, found {side!r}.")
    ordered = tensor(sorted_sequence, "searchsorted", "sorted_sequence")._detached()
    wanted = wrap(np.asarray(input)) if is_scalar(input) else tensor(input, "searchsorted")._detached()
    for one in (ordered, wanted):
        require_real(one, "searchsorted")
    if sorter is not None:
        ordered = along(ordered, tensor(sorter, "searchsorted", "sorter"), ordered.ndim - 1)
    if not ordered.ndim or (ordered.ndim > 1 and ordered.shape[:-1] != wanted.shape[:-1]):
        fail(
            ShapeError,
            "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of "
            "boundaries tensor and input value tensor must match, but we got boundaries tensor "
            f"{list(ordered.shape)} and input value tensor {list(wanted.shape)}",
        )
    kind = np.dtype("int32") if out_int32 else INT64
    return as_dtype(insertion_places(ordered, wanted, right or side == "right"), kind)


def bucketize(input: Operand, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of the bucket that each element is in, between sorted boundaries.

    Example:
        >>> bucketize(tensor([0.5, 1.0, 9.0]), tensor([1.0, 2.0]))
        tensor([0, 0, 2])
    """
    edges = tensor(boundaries, "bucketize", "boundaries")
    if edges.ndim != 1:
        fail(ShapeError, f"bucketize(): boundaries tensor must be 1 dimension, but got dim({edges.ndim})")
    return searchsorted(edges, input, out_int32=out_int32, right=right)


def isin(
    elements: Operand, test_elements: Operand, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Which elements are among others.

    Example:
        >>> isin(tensor([1, 2, 3]), tensor([2, 5]))
        tensor([False,  True, False])
    """
    one, other = promoted("isin", elements, test_elements, broadcast=False)
    if not isinstance(one, Tensor):
        one = wrap(np.asarray(one))
    others = reshape_to(other, (other.numel(),)) if isinstance(other, Tensor) else None
    values, among = unwrap(one), None if others is None else unwrap(others)
    if isinstance(values, np.ndarray) and isinstance(among, np.ndarray) and not is_tracing():
        return wrap(np.asarray(np.isin(values, among, invert=invert)))
    if others is None:
        found = apply(e.equal, one, other)
    else:
        found = any_of(apply(e.equal, reshape_to(one, (*one.shape, 1)), others), -1)
    return apply(e.logical_not, found) if invert else found


# --- counts -------------------------------------------------------------------------------------------------


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements are in each of `bins` equal bins between min and max, in the dtype of `input`.

    With min equal to max the bins reach from the smallest to the largest element.

    Example:
        >>> histc(tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
        tensor([0., 2., 1., 0.])
    """
    x = require_real(tensor(input, "histc"), "histc")
    if bins <= 0:
        fail(ArgumentError, f"bins must be > 0, but got {bins} for dimension 0")
    if not is_tracing():
        values = values_of(x, "histc").reshape(-1)
        low, high = _bounds(values, min, max, "histc")
        inside = values[(values >= low) & (values <= high)].astype(np.float64)
        places = np.minimum(((inside - low) * bins / (high - low)).astype(np.int64), bins - 1)
        return wrap(np.bincount(places, minlength=bins).astype(values.dtype))
    row = as_dtype(x._detached().reshape(-1), FLOAT64)
    first, last = _traced_bounds(row, min, max, 1.0, "histc")
    is_inside = apply(e.logical_and, row >= first, row <= last)
    scaled = as_dtype((row - first) * bins / (last - first), INT64)
    at = where(is_inside, minimum(scaled, tensor(bins - 1, "histc")), bins)
    counts = index_add(wrap(np.zeros(bins + 1)), 0, at, as_dtype(is_inside, FLOAT64))
    return as_dtype(part(counts, 0, 0, bins), array_dtype(x))


def _traced_bounds(row: Tensor, low: float, high: float, margin: float, function: str) -> tuple[Any, Any]:
    """The same of traced values."""
    count = row._value.shape[0]
    if low != high or not count:
        return _bounds(np.empty(0), low, high, function)
    first, last = amin(row), amax(row)
    if not bool(isfinite(last - first)):
        fail(ArgumentError, f"{function}: the range of the data is not finite.")
    around = where(apply(e.equal, first, last), margin, 0.0)
    return first - around, last + around


def _bounds(values: np.ndarray, low: float, high: float, function: str) -> tuple[float, float]:
    """The ends of the bins: of the data where they are equal."""
    low, high = float(low), float(high)
    if low == high and values.size:
        low, high = float(values.min()), float(values.max())
    if low == high:
        low, high = (
            low - (0.5 if function == "histogram" else 1),
            high + (0.5 if function == "histogram" else 1),
        )
    if not (np.isfinite(low) and np.isfinite(high)):
        fail(ArgumentError, f"{function}: range of [{low}, {high}] is not finite")
    if low > high:
        fail(ArgumentError, f"{function}: max must be larger than min, found {low} and {high}.")
    return low, high


def histogram(
    input: Tensor, bins: int | Tensor, *, range: Sequence[float] | None = None, weight: Tensor | None = None,
    density: bool = False,
) -> Histogram:  # fmt: skip
    """How many elements, or how much weight, is in each bin, and the edges of the bins.

    Args:
        bins: the number of equal bins, or their edges in order.
        range: the ends of the bins; by default the smallest and the largest element, 0 and 1 of none.

    Example:
        >>> histogram(tensor([1.0, 2.0, 1.0]), bins=2, range=(0.0, 4.0)).hist
        tensor([2., 1.])
    """
    x = require_real(floating(input, "histogram"), "histogram")
    if is_tracing():
        return _traced_histogram(x._detached().reshape(-1), bins, range, weight, density)
    values = values_of(x, "histogram").reshape(-1)
    edges = _edges(values, bins, range)
    weights = None if weight is None else values_of(weight, "histogram").reshape(-1)
    counts, _ = np.histogram(values, edges, weights=weights, density=density)
    return Histogram(wrap(counts.astype(values.dtype)), wrap(edges))


def _edges(values: np.ndarray, bins: int | Tensor, ends: Sequence[float] | None) -> np.ndarray:
    """The edges of bins, in the dtype of the values."""
    if isinstance(bins, Tensor):
        edges = values_of(bins, "histogram").astype(values.dtype)
        if edges.ndim != 1 or (edges[1:] < edges[:-1]).any():
            fail(ArgumentError, f"histogram: the edges of bins must be a vector in order, found {bins}")
        return edges
    first, last = ends or (0.0, 0.0 if values.size else 1.0)
    low, high = _bounds(values, first, last, "histogram")
    return np.linspace(low, high, bins + 1).astype(values.dtype)


def _traced_histogram(
    row: Tensor, bins: int | Tensor, range: Any, weight: Tensor | None, density: bool
) -> Histogram:
    edges = _traced_edges(row, bins, range)
    weights = None if weight is None else weight._detached()
    counts = as_dtype(counts_between(row, edges, weights), array_dtype(row))
    return Histogram(as_density(counts, [edges]) if density else counts, edges)


def _traced_edges(row: Tensor, bins: int | Tensor, ends: Any) -> Tensor:
    """`_edges` of traced values."""
    dtype = array_dtype(row)
    if isinstance(bins, Tensor):
        return as_dtype(bins._detached(), dtype)
    low, high = ends or (0.0, 0.0 if row.numel() else 1.0)
    first, last = _traced_bounds(row, low, high, 0.5, "histogram")
    steps = as_dtype(iota(bins), FLOAT64) * ((last - first) / bins) + first
    return as_dtype(where(iota(bins + 1) < bins, cat([steps, steps[:1]], 0), last), dtype)


def counts_between(row: Tensor, edges: Tensor, weights: Tensor | None) -> Tensor:
    """How many elements, or what weights, lie between edges; the last bin has its upper edge."""
    return counts_in_grid([row], [edges], weights)


def counts_in_grid(columns: Sequence[Tensor], edges: Sequence[Tensor], weights: Tensor | None) -> Tensor:
    """The same of points, whose coordinates are columns, in a grid: a dimension for each coordinate."""
    shape = tuple(one.shape[0] - 1 for one in edges)
    places: Any = 0
    outside: Any = False
    for column, along_it, bins in zip(columns, edges, shape):
        values = column._detached().reshape(-1)
        is_last = as_dtype(apply(e.equal, *promoted("histogram", values, along_it[-1])), INT64)
        at = insertion_places(along_it, values, right=True) - 1 - is_last
        outside = (at < 0) | (at >= bins) | outside
        places = places * bins + at
    total = math.prod(shape)
    given = as_dtype(apply(e.zeros_like, places), INT64) + 1 if weights is None else weights.reshape(-1)
    counts = index_add(filled((total + 1,), 0, array_dtype(given)), 0, where(outside, total, places), given)
    return part(counts, 0, 0, total).reshape(shape)


def histogramdd(
    input: Tensor, bins: int | Sequence[Any], *, range: Sequence[float] | None = None,
    weight: Tensor | None = None, density: bool = False,
) -> HistogramOfPoints:  # fmt: skip
    """How many points, or how much weight, is in each bin of a grid, and the edges along each dimension.

    Args:
        input: points, whose coordinates are along the last dimension.
        bins: the number of equal bins along each dimension, or their edges in order.
        range: the ends of the bins: first and last of the first dimension, of the second, ...

    Raises:
        ShapeError: there is not one number of bins for each coordinate.

    Example:
        >>> histogramdd(tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), bins=(2, 2)).hist
        tensor([[0., 1.],
                [1., 1.]])
    """
    x = require_real(floating(input, "histogramdd"), "histogramdd")
    count = x.shape[-1] if x.ndim > 1 else 0
    each = [bins] * count if isinstance(bins, int) else list(bins)
    ends = [None] * count if range is None else list(zip(range[::2], range[1::2]))
    if not count or len(each) != count or len(ends) != count:
        fail(
            ShapeError,
            f"histogramdd(): bins and ends for each of {count} coordinates are expected, found {len(each)} "
            f"and {len(ends)} for points of shape {tuple(x.shape)}",
        )
    if is_tracing():
        return _traced_histogram_of_points(x._detached().reshape(-1, count), each, ends, weight, density)
    values = values_of(x, "histogramdd")
    points = values.reshape(-1, count)
    edges = [_edges(points[:, place], *one) for place, one in enumerate(zip(each, ends))]
    weights = None if weight is None else values_of(weight, "histogramdd").reshape(-1)
    counts, _ = np.histogramdd(points, edges, weights=weights, density=density)
    return HistogramOfPoints(wrap(counts.astype(values.dtype)), tuple(map(wrap, edges)))


def _traced_histogram_of_points(
    points: Tensor, bins: Sequence[Any], ends: Sequence[Any], weight: Tensor | None, density: bool
) -> HistogramOfPoints:
    columns = [points[:, place] for place in range(points.shape[1])]
    edges = [_traced_edges(*one) for one in zip(columns, bins, ends)]
    weights = None if weight is None else weight._detached()
    counts = as_dtype(counts_in_grid(columns, edges, weights), array_dtype(points))
    return HistogramOfPoints(as_density(counts, edges) if density else counts, tuple(edges))


def as_density(counts: Tensor, edges: Sequence[Tensor]) -> Tensor:
    """Counts in a grid over their sum and the bins' volumes."""
    total = sum_of(counts)
    for dim, one in enumerate(edges):
        widths = part(one, 0, 1, one.shape[0]) - part(one, 0, 0, one.shape[0] - 1)
        counts = counts / widths.reshape(*(-1 if axis == dim else 1 for axis in range(len(edges))))
    return counts / total


def unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """The different elements in order; with the position of each element among them and how often each
    occurs. With `dim` the different slices of that dimension.

    Example:
        >>> unique(tensor([2, 1, 2]))
        tensor([1, 2])
    """
    x = require_real(tensor(input, "unique"), "unique")
    if is_tracing():
        rows = rows_along(x._detached(), dim, "unique")
        return _taken(rows, distinct(rows, equal_nan=False), x, dim, return_inverse, return_counts)
    values = values_of(x, "unique")
    axis = None if dim is None else one_dim(dim, values.ndim, "unique")
    found, inverse, counts = np.unique(
        values, return_inverse=True, return_counts=True, axis=axis, equal_nan=False
    )
    shape = values.shape if axis is None else (values.shape[axis],)
    inverse = np.asarray(inverse)
    return _results(found, inverse.reshape(shape), counts, return_inverse, return_counts)


def rows_along(x: Tensor, dim: int | None, function: str) -> Tensor:
    """All elements in a row, or the slices of a dimension as the rows of a matrix."""
    if dim is None:
        return x.reshape(-1)
    first = movedim(x, one_dim(dim, x.ndim, function), 0)
    return first.reshape(first.shape[0], math.prod(first.shape[1:]))


def distinct(rows: Tensor, equal_nan: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Where each of the different elements of a row, or rows of a matrix, is first, in their order; which
    each one is; counts.

    In a compiled function each number of them is a path of its own.
    """
    if rows.ndim == 1:
        order = ordered_positions(rows, 0)
        ordered = along(rows, order, 0)
    else:
        order = _order_of_rows(rows)
        ordered = index_select(rows, 0, order)
    starts, group, counts = _runs(ordered, equal_nan)
    return along(order, starts, 0), along(group, ordered_positions(order, 0), 0), counts


def _order_of_rows(rows: Tensor) -> Tensor:
    """The positions that sort rows by their first elements, among equal ones by the second, and so on."""

    def by_column(order: Tensor, column: Tensor) -> tuple[Tensor, None]:
        return along(order, ordered_positions(along(column, order, 0), 0), 0), None

    columns = rows.T
    return scan(by_column, iota(rows.shape[0]), columns, reverse=True)[0] if len(columns) else iota(len(rows))


def _runs(row: Tensor, equal_nan: bool = False) -> tuple[Tensor, Tensor, Tensor]:
    """Where runs of equal elements or rows begin, which run each one is in, and how long each is."""
    count = row._value.shape[0]
    if not count:
        return iota(0), iota(0), iota(0)
    before, after = part(row, 0, 0, count - 1), part(row, 0, 1, count)
    differs = apply(e.not_equal, after, before)
    if equal_nan and array_dtype(row).kind == "f":
        both = apply(e.logical_and, isnan(after), isnan(before))
        differs = apply(e.logical_and, differs, apply(e.logical_not, both))
    if differs.ndim > 1:
        differs = any_of(differs, 1)
    begins = cat([apply(e.equal, iota(1), 0), differs], 0)
    (starts,) = true_positions(begins)
    group = apply(e.subtract, cumsum(as_dtype(begins, INT64), 0), 1)
    ends = cat([part(starts, 0, 1, starts._value.shape[0]), apply(e.add, iota(1), count)], 0)
    return starts, group, apply(e.subtract, ends, starts)


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements without those that equal the one before; with `dim` the slices of that dimension.

    Example:
        >>> unique_consecutive(tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    x = require_real(tensor(input, "unique_consecutive"), "unique_consecutive")
    if is_tracing():
        traced = rows_along(x._detached(), dim, "unique_consecutive")
        return _taken(traced, _runs(traced), x, dim, return_inverse, return_counts)
    values = values_of(x, "unique_consecutive")
    axis = 0 if dim is None else one_dim(dim, values.ndim, "unique_consecutive")
    rows = values.reshape(-1) if dim is None else np.moveaxis(values, axis, 0)
    flat = rows.reshape(len(rows), math.prod(rows.shape[1:]))
    starts = np.ones(len(rows), bool)
    starts[1:] = (flat[1:] != flat[:-1]).any(axis=1)
    inverse, counts = np.cumsum(starts) - 1, np.diff(np.append(np.flatnonzero(starts), len(rows)))
    shape = values.shape if dim is None else inverse.shape
    found = np.moveaxis(rows[starts], 0, axis)
    return _results(found, inverse.reshape(shape), counts, return_inverse, return_counts)


def _results(
    found: np.ndarray, inverse: np.ndarray, counts: np.ndarray, with_inverse: bool, with_counts: bool
) -> Any:
    values, places, times = (wrap(np.array(one, order="C")) for one in (found, inverse, counts))
    return _wanted(values, places, times, with_inverse, with_counts)


def _taken(
    rows: Tensor, places: Sequence[Tensor], x: Tensor, dim: int | None, with_inverse: bool, with_counts: bool
) -> Any:
    first, inverse, counts = places
    if dim is None:
        return _wanted(along(rows, first, 0), inverse.reshape(x.shape), counts, with_inverse, with_counts)
    return _wanted(index_select(x._detached(), dim, first), inverse, counts, with_inverse, with_counts)


def _wanted(found: Tensor, inverse: Tensor, counts: Tensor, with_inverse: bool, with_counts: bool) -> Any:
    results = (found, *([inverse] if with_inverse else []), *([counts] if with_counts else []))
    return results[0] if len(results) == 1 else results


@numpy_names
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> ValuesIndices:
    """The element that occurs most often along a dimension, the smallest of several, and where it is last.

    Example:
        >>> mode(tensor([3, 1, 3])).values
        tensor(3)
    """
    x = require_real(tensor(input, "mode"), "mode")
    dim = one_dim(dim, x.ndim, "mode")
    if not x.ndim:
        return PAIRS["mode"](x, iota(1).reshape(()))
    count = x._value.shape[dim]
    if not count:
        fail(ArgumentError, f"mode(): Expected reduction dim {dim} to have non-zero size.")
    order = ordered_positions(x._detached(), dim)
    ordered = along(x._detached(), order, dim)
    shape = tuple(count if axis == dim else 1 for axis in range(x.ndim))
    places = expand_to(reshape_to(iota(count), shape), tuple(x._value.shape))
    later = apply(e.not_equal, part(ordered, dim, 1, count), part(ordered, dim, 0, count - 1))
    starts = where(later, part(places, dim, 1, count), 0)
    begun = apply(running_largest, _behind_zero(starts, dim), dim=dim)
    longest = argmax(places - begun, dim, keepdim=True)
    index = along(order, longest, dim)
    return squeezed(PAIRS["mode"](along(x, index, dim, "ModeBackward0"), index), dim, keepdim)


def _behind_zero(x: Tensor, dim: int) -> Tensor:
    """x with a zero in front."""
    shape = tuple(1 if axis == dim else extent for axis, extent in enumerate(x._value.shape))
    return cat([wrap(np.zeros(shape, np.int64)), x], dim)
