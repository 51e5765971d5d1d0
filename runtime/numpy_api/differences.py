"""NumPy's functions of sampled curves on Tensors: interpolation, convolution, differences, grids."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, ShapeError
from ...tracer.spec import CONTINUOUS
from ..functions import PUBLIC, declared
from ..functions.common import array_dtype, as_dtype, conjugate, fail, require_real
from ..functions.reductions import reduction, sorting
from ..functions.shapes import joining, parts
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from .functions import implements
from .values import axes_of, axis_of, promoted, require_vector

LONGEST_WRITTEN_OUT = 32
"""Kernels up to this size are convolved as a sum of shifted products; longer ones as windows times kernel."""


def _between(x: Tensor, axis: int, start: int, stop: int) -> Tensor:
    return parts.part(x, axis, start, max(start, stop))


# --- positions in a sorted sequence -------------------------------------------------------------------------


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """How many of the sorted `a` are less than v; side "right": less or equal. nan counts as the largest."""
    if side not in ("left", "right"):
        fail(ArgumentError, f"numpy.searchsorted: side must be 'left' or 'right', found {side!r}.")
    ordered, wanted = (require_real(one, "numpy.searchsorted") for one in promoted([a, v]))
    require_vector(ordered, "searchsorted", "a")
    ordered = ordered if sorter is None else ordered[sorter]
    return sorting.insertion_places(ordered._detached(), wanted._detached(), side == "right")


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: bool = False) -> Tensor:
    """The number of the bin that each element is in; `bins` increase or decrease."""
    edges, side = require_vector(tensor_of(bins), "digitize", "bins"), "left" if right else "right"
    first, second = edges[:-1]._detached(), edges[1:]._detached()
    if bool(declared.all(first <= second)):
        return searchsorted(edges, x, side)
    if not bool(declared.all(first >= second)):
        fail(ArgumentError, "numpy.digitize: bins must be monotonically increasing or decreasing.")
    return edges.shape[0] - searchsorted(edges.flip(0), x, side)


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Tensor:
    """Linear between the points (xp, fp), and constant outside of them."""
    at, places, values = (
        as_dtype(require_real(one, "numpy.interp"), np.dtype("float64")) for one in promoted([x, xp, fp])
    )
    if places.ndim != 1 or places.shape != values.shape or not places.shape[0]:
        found = f"{tuple(places.shape)} and {tuple(values.shape)}"
        fail(ShapeError, f"numpy.interp: xp and fp must be vectors of one length, not empty; found {found}.")
    if period is not None:
        at, places = (PUBLIC["remainder"](one, abs(period)) for one in (at, places))
        order = PUBLIC["argsort"](places._detached())
        places, values = places[order], values[order]
        places = joining.cat([places[-1:] - abs(period), places, places[:1] + abs(period)], 0)
        values = joining.cat([values[-1:], values, values[:1]], 0)
    count = places.shape[0]
    if count == 1:
        middle = at * 0.0 + values[0]
    else:
        first = PUBLIC["clamp"](searchsorted(places, at, "right") - 1, 0, count - 2)
        start, stop = places[first], places[first + 1]
        slope = (values[first + 1] - values[first]) / (stop - start)
        inside = values[first] + slope * (at - start)
        middle = PUBLIC["where"](PUBLIC["eq"](at, stop), values[first + 1], inside)
    lower = values[0] if left is None else tensor_of(left)
    upper = values[-1] if right is None else tensor_of(right)
    kept = PUBLIC["where"](at < places[0], as_dtype(lower, np.dtype("float64")), middle)
    return PUBLIC["where"](at > places[-1], as_dtype(upper, np.dtype("float64")), kept)


# --- convolution --------------------------------------------------------------------------------------------


def _vector_or_number(x: Tensor, function: str) -> Tensor:
    return require_vector(x, function, "an argument") if x.ndim else x.reshape(1)


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """The sum of a[i] * v[j] at i + j; "same" and "valid" keep the middle."""
    long, short = (_vector_or_number(one, "convolve") for one in promoted([a, v]))
    if long.shape[0] < short.shape[0]:
        long, short = short, long
    n, m = long.shape[0], short.shape[0]
    if not m:
        fail(ArgumentError, "numpy.convolve: an argument has no elements.")
    before = {"full": m - 1, "same": m // 2, "valid": 0}.get(mode)
    after = {"full": m - 1, "same": m - 1 - m // 2, "valid": 0}.get(mode)
    if before is None or after is None:
        fail(ArgumentError, f"numpy.convolve: mode must be 'full', 'same' or 'valid', found {mode!r}.")
    padded = PUBLIC["pad"](long, (before, after))
    size = n + before + after - m + 1
    if m <= LONGEST_WRITTEN_OUT:
        terms = [_between(padded, 0, m - 1 - j, m - 1 - j + size) * short[j] for j in range(m)]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total
    windows = np.arange(size)[:, None] + np.arange(m)
    return PUBLIC["matmul"](padded[windows], short.flip(0))


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """`convolve` with `v` backwards, and conjugated."""
    x, y = (require_vector(one, "correlate", "an argument") for one in promoted([a, v]))
    y = conjugate(y)
    if mode == "same" and x.shape[0] < y.shape[0]:
        return convolve(y, x.flip(0), mode).flip(0)
    return convolve(x, y.flip(0), mode)


# --- differences --------------------------------------------------------------------------------------------


@implements(np.gradient, in_order="K")
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Second-order central differences inside, one-sided ones at the ends; distances may vary."""
    x = tensor_of(f)
    x = x if array_dtype(x).kind in CONTINUOUS else as_dtype(x, np.dtype("float64"))
    axes = axes_of(axis, x, "gradient")
    given = list(varargs) or [1.0]
    if len(given) == 1:
        given = given * len(axes)
    if len(given) != len(axes) or edge_order not in (1, 2):
        fail(ArgumentError, "numpy.gradient: one spacing for each axis, and edge_order 1 or 2, are expected.")
    found = [_slopes(x, spacing, one, edge_order) for spacing, one in zip(given, axes)]
    return found[0] if len(found) == 1 else tuple(found)


def _slopes(x: Tensor, spacing: Any, axis: int, edge_order: int) -> Tensor:
    n = x.shape[axis]
    if n < edge_order + 1:
        fail(ArgumentError, f"numpy.gradient: at least {edge_order + 1} elements are needed, found {n}.")
    steps = tensor_of(spacing)
    if steps.ndim:
        width = reduction.diff(steps).reshape([-1 if dim == axis else 1 for dim in range(x.ndim)])
        one, two = _between(width, axis, 0, n - 2), _between(width, axis, 1, n - 1)
        weights = (-two / (one * (one + two)), (two - one) / (one * two), one / (two * (one + two)))
        ends = [_between(width, axis, place, place + 1) for place in (0, n - 2)]
        next_to_ends = [_between(width, axis, place, place + 1) for place in (min(1, n - 2), max(n - 3, 0))]
    else:
        weights = (-0.5 / steps, 0.0 * steps, 0.5 / steps)
        ends = next_to_ends = [steps, steps]
    before, middle, behind = (_between(x, axis, start, n - 2 + start) for start in range(3))
    inside = weights[0] * before + weights[2] * behind
    inside = inside + weights[1] * middle if steps.ndim else inside
    at = [_between(x, axis, place, place + 1) for place in (0, 1, n - 2, n - 1)]
    if edge_order == 1:
        first, last = (at[1] - at[0]) / ends[0], (at[3] - at[2]) / ends[1]
    else:
        third = _between(x, axis, 2, 3), _between(x, axis, n - 3, n - 2)
        first = _one_sided(at[0], at[1], third[0], ends[0], next_to_ends[0])
        last = -_one_sided(at[3], at[2], third[1], ends[1], next_to_ends[1])
    return joining.cat([first, inside, last], axis)


def _one_sided(end: Tensor, next_one: Tensor, third: Tensor, near: Tensor, far: Tensor) -> Tensor:
    """The slope at the end from three points, at distances near and near + far."""
    return (
        -(2.0 * near + far) / (near * (near + far)) * end
        + (near + far) / (near * far) * next_one
        - near / (far * (near + far)) * third
    )


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    x = tensor_of(ary).reshape(-1)
    given = [to_begin, reduction.diff(x), to_end]
    return joining.cat([tensor_of(one).reshape(-1) for one in given if one is not None], 0)


@implements(np.unwrap)
def unwrap(p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi) -> Tensor:
    """Angles without jumps: whole periods are added where neighbours differ by more than half of one."""
    x = tensor_of(p)
    x = x if array_dtype(x).kind == "f" else as_dtype(x, np.dtype("float64"))
    least = period / 2 if discont is None else max(discont, period / 2)
    change = reduction.diff(x, 1, axis)
    wanted = PUBLIC["remainder"](change + period / 2, period) - period / 2
    wanted = PUBLIC["where"]((wanted == -period / 2) & (change > 0), period / 2, wanted)
    added = PUBLIC["where"](change.abs() < least, 0.0, wanted - change)
    axis = axis_of(axis, x, "unwrap")
    first = _between(x, axis, 0, 1)
    rest = _between(x, axis, 1, x.shape[axis]) + declared.cumsum(added, axis)
    return joining.cat([first, rest], axis)


# --- polynomials and grids ----------------------------------------------------------------------------------


def _steps(num: int, endpoint: bool) -> np.ndarray:
    return np.arange(num) / max(num - 1 if endpoint else num, 1)


@implements(np.linspace, in_order=False)
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0,
) -> Any:  # fmt: skip
    """Numbers at equal distances; both ends may be Tensors."""
    first, last = (as_dtype(one, np.result_type(array_dtype(one), 0.5)) for one in promoted([start, stop]))
    count = max(num - 1 if endpoint else num, 1)
    places = np.arange(num).reshape((-1, *(1,) * max(first.ndim, last.ndim)))
    step = (last - first) / count
    found = tensor_of(places.astype(array_dtype(first))) * step + first
    if endpoint and num > 1:
        found = PUBLIC["where"](tensor_of(places == num - 1), last, found)  # not rounded
    found = PUBLIC["movedim"](found, 0, axis) if axis and found.ndim > 1 else found
    if dtype is not None:
        found = as_dtype(PUBLIC["floor"](found) if np.dtype(dtype).kind in "iu" else found, np.dtype(dtype))
    return (found, step) if retstep else found


@implements(np.geomspace)
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Tensor:
    """Numbers at equal ratios."""
    first, last = (as_dtype(one, np.result_type(array_dtype(one), 0.5)) for one in promoted([start, stop]))
    shares = _steps(num, endpoint).reshape((-1, *(1,) * max(first.ndim, last.ndim)))
    found = first * PUBLIC["pow"](last / first, tensor_of(shares))
    found = PUBLIC["movedim"](found, 0, axis) if axis and found.ndim > 1 else found
    return found if dtype is None else as_dtype(found, np.dtype(dtype))


@implements(np.logspace)
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None
) -> Tensor:
    """Powers of `base` at equal distances of their exponents."""
    found = PUBLIC["pow"](*promoted([base, linspace(start, stop, num, endpoint)]))
    return found if dtype is None else as_dtype(found, np.dtype(dtype))
