"""NumPy's functions on Tensors that choose elements or put others between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, UnsupportedError
from ...tracer.spec import CONTINUOUS, INT64, real_dtype
from ..functions import PUBLIC
from ..functions.common import array_dtype, as_dtype, fail, filled
from ..functions.reductions import statistics
from ..functions.selections import selection
from ..functions.shapes import joining, movement, parts
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from ..values.value_kinds import as_array
from .functions import FUNCTIONS, implements
from .values import axis_of, places, promoted

# --- by condition -------------------------------------------------------------------------------------------


@implements(np.select, in_order="asked")
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """For each element that of the first choice whose condition holds."""
    if len(condlist) != len(choicelist):
        fail(ArgumentError, "numpy.select: as many choices as conditions are expected.")
    *choices, found = promoted([*choicelist, default])
    for condition, choice in zip(reversed(condlist), reversed(choices)):
        found = PUBLIC["where"](tensor_of(condition), choice, found)
    shape = np.broadcast_shapes(*(tuple(tensor_of(one).shape) for one in (*condlist, *choices)))
    whole = tuple(found.shape) == shape
    return as_array(found if whole else PUBLIC["clone"](movement.broadcast_to(found, shape)))


@implements(np.extract)
def extract(condition: Any, arr: Any) -> Tensor:
    mask = tensor_of(condition).reshape(-1)
    return tensor_of(arr).reshape(-1)[mask if array_dtype(mask).kind == "b" else PUBLIC["ne"](mask, 0)]


@implements(np.compress, in_order="asked")
def compress(condition: Any, a: Any, axis: int | None = None) -> Tensor:
    x = tensor_of(a)
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis_of(axis, x, "compress"))
    mask = tensor_of(np.asarray(condition, bool) if not isinstance(condition, Tensor) else condition)
    return parts.narrow(x, axis, 0, mask.shape[0])[(*(slice(None),) * axis, mask)]


@implements(np.isin)
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is one of the others."""
    x, others = promoted([element, test_elements])
    found = PUBLIC["any"](PUBLIC["eq"](x[..., None], others.reshape(-1)), -1)
    return ~found if invert else found


# --- between elements ---------------------------------------------------------------------------------------


def _flat_or(x: Tensor, axis: int | None) -> tuple[Tensor, int]:
    return (x.reshape(-1), 0) if axis is None else (x, axis_of(axis, x, "delete or insert"))


@implements(np.delete, in_order="asked")
def delete(arr: Any, obj: Any, axis: int | None = None) -> Tensor:
    """What is left without some positions of a dimension."""
    x, axis = _flat_or(tensor_of(arr), axis)
    left = np.delete(np.arange(x.shape[axis]), places("delete", obj))
    return selection.index_select(x, axis, tensor_of(left))


@implements(np.insert, in_order="asked")
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """With more slices of a dimension in front of some positions."""
    x, axis = _flat_or(tensor_of(arr), axis)
    obj, extent = places("insert", obj), x.shape[axis]
    more = as_dtype(tensor_of(values), array_dtype(x))
    if np.ndim(obj) == 0 and not isinstance(obj, slice) and more.ndim:
        more = (
            movement.movedim(more, 0, axis) if more.ndim == x.ndim else more.unsqueeze(min(axis, more.ndim))
        )
    several = more.shape[axis] if more.ndim == x.ndim else 1
    before = [obj] * several if np.ndim(obj) == 0 and not isinstance(obj, slice) else obj
    order = np.insert(np.arange(extent), before, -1)
    added = np.flatnonzero(order < 0)
    order[added] = extent + np.arange(added.size)
    if np.ndim(obj) and added.size:  # given in any order
        order[added] = extent + np.argsort(np.asarray(before) % (extent + 1), kind="stable")
    shape = [*x.shape[:axis], added.size, *x.shape[axis + 1 :]]
    both = joining.cat([x, movement.broadcast_to(more, shape)], axis)
    return selection.index_select(both, axis, tensor_of(order))


@implements(np.block)
def block(arrays: Any) -> Tensor:
    """Nested lists of blocks as one tensor."""

    def depth(one: Any) -> int:
        return 1 + max(map(depth, one), default=0) if isinstance(one, list) else 0

    def joined(one: Any, level: int) -> Tensor:
        if not isinstance(one, list):
            x = tensor_of(one)
            return x.reshape((*(1,) * (rank - x.ndim), *x.shape))
        return joining.cat([joined(part, level - 1) for part in one], -level)

    def ranks(one: Any) -> list[int]:
        return [rank for part in one for rank in ranks(part)] if isinstance(one, list) else [np.ndim(one)]

    levels = depth(arrays)
    rank = max(levels, *ranks(arrays))
    return joined(arrays, levels)


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Tensor:
    """The elements again and again in another shape."""
    x = tensor_of(a).reshape(-1)
    shape = (new_shape,) if isinstance(new_shape, int | np.integer) else tuple(new_shape)
    places = np.arange(int(np.prod(shape))) % max(x.shape[0], 1)
    return selection.take(x, tensor_of(places)).reshape(shape)


implements(np.rollaxis, shares=True)(
    lambda a, axis, start=0: movement.movedim(
        tensor_of(a), axis, (start % (np.ndim(a) + 1)) - ((axis % np.ndim(a)) < start % (np.ndim(a) + 1))
    )
)
implements(np.atleast_3d, shares=True)(lambda *arys: _each(movement.atleast_3d, arys))
implements(np.dsplit, shares=True)(
    lambda ary, indices_or_sections: FUNCTIONS[np.split](ary, indices_or_sections, 2)
)
implements(np.diagflat)(lambda v, k=0: parts.diag(tensor_of(v).reshape(-1), k))
implements(np.fix)(lambda x: PUBLIC["trunc"](tensor_of(x)))


@implements(np.astype, shares=True)
def astype(x: Any, dtype: Any, *, copy: bool = True) -> Tensor:
    given = tensor_of(x)
    found = as_dtype(given, np.dtype(dtype))
    return PUBLIC["clone"](found) if copy and found is given else found


def _each(function: Callable[[Tensor], Tensor], arrays: Sequence[Any]) -> Any:
    results = tuple(function(tensor_of(one)) for one in arrays)
    return results[0] if len(results) == 1 else results


# --- without nan --------------------------------------------------------------------------------------------


def _replaced(a: Any, filler: float) -> tuple[Tensor, Tensor]:
    """The elements, nan replaced, and which were nan."""
    x = tensor_of(a)
    missing = PUBLIC["isnan"](x)
    return (PUBLIC["where"](missing, filler, x) if array_dtype(x).kind == "f" else x), missing


def _extreme(name: str, filler: float) -> Callable[..., Tensor]:
    def function(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        x, missing = _replaced(a, filler)
        found = FUNCTIONS[getattr(np, name)](x, axis, keepdims=keepdims)
        if array_dtype(x).kind != "f":
            return found
        return PUBLIC["where"](FUNCTIONS[np.all](missing, axis, keepdims=keepdims), np.nan, found)

    return function


def _place(name: str, filler: float) -> Callable[..., Tensor]:
    def function(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        x, missing = _replaced(a, filler)
        if bool(FUNCTIONS[np.all](missing._detached(), axis).any()):  # in a trace a question with a guard
            fail(ArgumentError, f"numpy.nan{name}: All-NaN slice encountered; it has no {name}.")
        return FUNCTIONS[getattr(np, name)](x, axis, keepdims=keepdims)

    return function


implements(np.nanmax)(_extreme("max", -np.inf))
implements(np.nanmin)(_extreme("min", np.inf))
implements(np.nanargmax)(_place("argmax", -np.inf))
implements(np.nanargmin)(_place("argmin", np.inf))
implements(np.nanprod)(
    lambda a, axis=None, *, keepdims=False: FUNCTIONS[np.prod](_replaced(a, 1.0)[0], axis, keepdims=keepdims)
)
implements(np.nancumsum)(lambda a, axis=None: FUNCTIONS[np.cumsum](_replaced(a, 0.0)[0], axis))
implements(np.nancumprod)(lambda a, axis=None: FUNCTIONS[np.cumprod](_replaced(a, 1.0)[0], axis))


@implements(np.nanvar)
def nanvar(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """The variance of what is not nan; nan where there is too little of it."""
    x = tensor_of(a)
    x = x if array_dtype(x).kind == "f" else as_dtype(x, np.dtype("float64"))
    values, missing = _replaced(x, 0.0)
    count = as_dtype(FUNCTIONS[np.sum](missing.logical_not(), axis, keepdims=True), array_dtype(x))
    centre = FUNCTIONS[np.sum](values, axis, keepdims=True) / count
    squares = PUBLIC["where"](missing, 0.0, PUBLIC["square"](values - centre))
    freedom = PUBLIC["where"](count > ddof, count - ddof, np.nan)
    found = FUNCTIONS[np.sum](squares, axis, keepdims=True) / freedom
    return found if keepdims else FUNCTIONS[np.sum](found, axis)


@implements(np.nanstd)
def nanstd(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Tensor:
    return PUBLIC["sqrt"](nanvar(a, axis, ddof=ddof, keepdims=keepdims))


# --- statistics ---------------------------------------------------------------------------------------------


@implements(np.cov)
def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
    fweights: Any = None, aweights: Any = None, *, dtype: Any = None,
) -> Tensor:  # fmt: skip
    """The covariances of variables in rows, or of columns unless `rowvar`; observations may have weights."""
    given = [tensor_of(one) for one in (m, y) if one is not None]
    double = np.result_type(np.float64, *map(array_dtype, given))
    kind = double if dtype is None else np.dtype(dtype)
    x = as_dtype(given[0], kind)
    x = x.T if x.ndim == 2 and not rowvar and x.shape[0] != 1 else x
    if y is not None:
        other = as_dtype(tensor_of(y), array_dtype(x))
        other = other.T if other.ndim == 2 and not rowvar and other.shape[0] != 1 else other
        x = joining.cat([movement.atleast_2d(x), movement.atleast_2d(other)], 0)
    freedom = int(not bias) if ddof is None else ddof
    if freedom != int(freedom):
        fail(ArgumentError, "numpy.cov: ddof must be integer.")
    if dtype is not None and (kind.kind not in CONTINUOUS or fweights is not None or aweights is not None):
        fail(UnsupportedError, f"numpy.cov: dtype={kind} is supported of floats without weights alone.")
    if fweights is None and aweights is None:
        return statistics.cov(x, correction=freedom)
    repeats = None if fweights is None else _whole(tensor_of(fweights))
    shares = None if aweights is None else as_dtype(tensor_of(aweights), real_dtype(kind))
    return movement.squeeze(statistics.weighted_cov(movement.atleast_2d(x), freedom, repeats, shares))


def _whole(weights: Tensor) -> Tensor:
    """Weights that are integers, if not by dtype."""
    if array_dtype(weights).kind == "f" and not bool((weights == PUBLIC["round"](weights)).all()):
        fail(ArgumentError, "numpy.cov: fweights must be integers. Weights that are not are aweights.")
    return as_dtype(weights, INT64)


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Tensor:
    matrix = cov(x, y, rowvar)
    if not matrix.ndim:
        return matrix / matrix
    return statistics.correlations(matrix)


@implements(np.bincount)
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each integer from 0 on occurs, or the sum of its weights."""
    given = None if weights is None else as_dtype(tensor_of(weights), np.dtype("float64"))
    return PUBLIC["bincount"](tensor_of(x), given, minlength)


def _cumulative(real: Any, begin: int) -> Callable[..., Tensor]:
    def function(
        x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
    ) -> Tensor:
        given = tensor_of(x)
        if axis is None and given.ndim > 1:
            fail(ArgumentError, f"numpy.{real.__name__}: an axis is needed for {given.ndim} dimensions.")
        axis = axis_of(0 if axis is None else axis, given, real.__name__)
        found = FUNCTIONS[real](given, axis, dtype)
        if not include_initial:
            return found
        shape = [1 if dim == axis else extent for dim, extent in enumerate(found.shape)]
        return joining.cat([filled(tuple(shape), begin, array_dtype(found)), found], axis)

    return function


implements(np.cumulative_sum)(_cumulative(np.cumsum, 0))
implements(np.cumulative_prod)(_cumulative(np.cumprod, 1))
