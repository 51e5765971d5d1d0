"""NumPy's functions on Tensors that combine elements along dimensions: sums, means, extremes, norms."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ...tracer.operator import Operator, operators
from ...tracer.ops.reduction import amax
from ...tracer.spec import BOOL, CONTINUOUS
from ..functions import PUBLIC, declared, offered
from ..functions.common import array_dtype, as_dtype, fail, filled, scalar_of
from ..functions.reductions import reduction, statistics
from ..functions.shapes import joining, movement, parts
from ..tensors.conversion import tensor_of
from ..values.tensor import Tensor
from ..values.value_kinds import as_number
from . import complex_order
from .functions import implements
from .protocols import FUNCTIONS
from .values import averaged, axes_of, axis_of, promoted

Implementation = Callable[..., Tensor]


def _reduces(*functions: Any) -> Callable[[Implementation], Implementation]:
    """`implements` for what combines elements; along no axes, `()`, that is each element alone."""

    def enter(implementation: Implementation) -> Implementation:
        @functools.wraps(implementation)
        def call(a: Any, axis: Any = None, *arguments: Any, **keywords: Any) -> Tensor:
            if not isinstance(axis, list | tuple) or len(axis):
                return implementation(a, axis, *arguments, **keywords)
            keywords.pop("keepdims", None)
            return implementation(tensor_of(a)[None], 0, *arguments, **keywords)

        implements(*functions)(call)
        return implementation

    return enter


def _axes(axis: Any) -> Any:
    if isinstance(axis, bool):
        fail(DTypeError, "an integer is required for an axis, not a bool.")
    return tuple(axis) if isinstance(axis, list) else axis


def _summed(x: Tensor, dtype: Any, ufunc: np.ufunc) -> Tensor:
    """x in the dtype that NumPy adds or multiplies in: small integers become the platform's."""
    if dtype is None:
        kind = array_dtype(x)
        dtype = kind if kind.kind in CONTINUOUS else ufunc.reduce(np.zeros(0, kind)).dtype
    return as_dtype(x, np.dtype(getattr(dtype, "numpy", dtype)))


def _chosen(x: Tensor, where: Any, otherwise: Any) -> Tensor:
    """x, and something else where the mask does not hold."""
    if where is True:
        return x
    rest = _of_dtype(otherwise, x) if isinstance(otherwise, Tensor) else filled((), otherwise, array_dtype(x))
    return PUBLIC["where"](tensor_of(where), x, rest)


def _of_dtype(number: Any, x: Tensor) -> Any:
    """What a reduction begins with, in the dtype of x; it may have a gradient."""
    dtype = array_dtype(x)
    return as_dtype(number, dtype) if isinstance(number, Tensor) else scalar_of(number, dtype)


def _begun(total: Tensor, initial: Any, function: Callable[..., Tensor]) -> Tensor:
    """What is reduced, begun with a number if one is given."""
    return total if initial is None else function(total, _of_dtype(initial, total))


def _accumulated(operator: Operator) -> Implementation:
    """Small integers become the platform's, unless `dtype` says otherwise."""
    monoid, function = operator.monoid, offered(operator)
    assert monoid is not None
    ufunc, of_two = getattr(np, monoid.fold.numpy[0]), offered(monoid.fold)

    def call(
        a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, initial: Any = None,
        where: Any = True,
    ) -> Tensor:  # fmt: skip
        values = _summed(tensor_of(a), dtype, ufunc)
        x = _chosen(values, where, monoid.identity(array_dtype(values)))
        return _begun(as_dtype(function(x, _axes(axis), keepdims), array_dtype(x)), initial, of_two)

    return call


@_reduces(np.nansum)
def _nansum(a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False) -> Tensor:
    x = _summed(tensor_of(a), dtype, np.add)
    return as_dtype(reduction.nansum(x, _axes(axis), keepdims), array_dtype(x))


def _running(operator: Operator) -> Implementation:
    monoid, function = operator.monoid, offered(operator)
    assert monoid is not None
    ufunc = getattr(np, monoid.fold.numpy[0])

    def call(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
        x = _summed(tensor_of(a), dtype, ufunc)
        is_row = axis is None or (not x.ndim and axis in (0, -1))  # of a number NumPy makes an array
        result = function(x.reshape(-1), 0) if is_row else function(x, axis_of(axis, x, function.__name__))
        return as_dtype(result, array_dtype(x))

    return call


@_reduces(np.mean)
def _mean(
    a: Any, axis: Any = None, dtype: Any = None, *, keepdims: bool = False, where: Any = True
) -> Tensor:
    x = averaged(a) if dtype is None else as_dtype(tensor_of(a), np.dtype(getattr(dtype, "numpy", dtype)))
    if where is not True:
        mask = movement.broadcast_to(tensor_of(where), x.shape)
        total = declared.sum(_chosen(x, mask, 0), _axes(axis), keepdims)
        return total / as_dtype(declared.sum(mask, _axes(axis), keepdims), array_dtype(x))
    return reduction.mean(x, _axes(axis), keepdims)


@_reduces(np.nanmean)
def _nanmean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return reduction.nanmean(averaged(a), _axes(axis), keepdims)


@_reduces(np.average)
def _average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    x = averaged(a)
    x, w = promoted([x, 1.0 if weights is None else weights])
    if weights is not None and axis is None and w.shape != x.shape:
        fail(ArgumentError, f"numpy.average: weights of the shape {tuple(w.shape)} need an axis.")
    if w.ndim and w.ndim < x.ndim:
        along = axis_of(axis, x, "average")
        w = w.reshape([-1 if dim == along else 1 for dim in range(x.ndim)])
    total = declared.sum(movement.broadcast_to(w, x.shape), _axes(axis), keepdims)
    mean = reduction.mean(x, _axes(axis), keepdims)
    found = mean if weights is None else declared.sum(x * w, _axes(axis), keepdims) / total
    return (found, total) if returned else found


def _spread(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def call(
        a: Any, axis: Any = None, dtype: Any = None, *, ddof: float = 0, keepdims: bool = False,
        where: Any = True, mean: Any = None, correction: float | None = None,
    ) -> Tensor:  # fmt: skip
        x = averaged(a) if dtype is None else as_dtype(tensor_of(a), np.dtype(getattr(dtype, "numpy", dtype)))
        if dtype is not None and mean is not None:
            fail(UnsupportedError, f"{function.__name__}: dtype with a mean is not supported on a Tensor.")
        if correction is not None and ddof != 0:
            fail(ArgumentError, "ddof and correction can't be provided simultaneously.")
        ddof = ddof if correction is None else correction
        if dtype is not None and array_dtype(x).kind == "c":
            found = call(x, axis, ddof=ddof, keepdims=keepdims, where=where, mean=mean)
            return as_dtype(found, array_dtype(x))
        if where is True and mean is None:
            return function(x, _axes(axis), None, keepdims, correction=ddof)
        centre = _mean(x, axis, keepdims=True, where=where) if mean is None else tensor_of(mean)
        squares = PUBLIC["square"](x - centre)
        mask = movement.broadcast_to(tensor_of(where), x.shape)
        count = as_dtype(declared.sum(mask, _axes(axis), keepdims), array_dtype(x)) - float(ddof)
        total = declared.sum(_chosen(squares, mask, 0), _axes(axis), keepdims)
        found = total / PUBLIC["maximum"](count, 0.0)
        return PUBLIC["sqrt"](found) if function is statistics.std else found

    return call


_reduces(np.var)(_spread(statistics.var))
_reduces(np.std)(_spread(statistics.std))


def _extreme(operator: Operator) -> Implementation:
    monoid, function = operator.monoid, offered(operator)
    assert monoid is not None
    of_two = offered(monoid.fold)

    def call(
        a: Any, axis: Any = None, *, keepdims: bool = False, initial: Any = None, where: Any = True
    ) -> Tensor:
        x = _chosen(tensor_of(a), where, initial)
        if initial is not None and not x.numel():  # the extreme of nothing is what it begins with
            zeros = as_dtype(declared.sum(x, _axes(axis), keepdims), array_dtype(x))
            return zeros + _of_dtype(initial, x)
        if array_dtype(x).kind == "c":
            found = complex_order.extreme(x, operator is amax, _axes(axis), keepdims)
            return _begun(found, initial, complex_order.OF_COMPLEX[monoid.fold.numpy[0]])
        return _begun(function(x, _axes(axis), keepdims), initial, of_two)

    return call


def _position(operator: Operator) -> Implementation:
    function = offered(operator)


    def call(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        x = tensor_of(a)
        one = axis if axis is None or not x.ndim else axis_of(axis, x, function.__name__)
        return function(x, one, keepdims)

    return call


@_reduces(np.ptp)
def _ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return declared.amax(tensor_of(a), _axes(axis), keepdims) - declared.amin(
        tensor_of(a), _axes(axis), keepdims
    )


def _truth(operator: Operator) -> Implementation:
    monoid, function = operator.monoid, offered(operator)
    assert monoid is not None

    def call(a: Any, axis: Any = None, *, keepdims: bool = False, where: Any = True) -> Tensor:
        x = tensor_of(a)
        x = x if where is True else _chosen(as_dtype(x, BOOL), where, monoid.identity(BOOL))
        return as_dtype(function(x, _axes(axis), keepdims), BOOL)

    return call


CONVENTIONS: dict[str, Callable[[Operator], Implementation]] = {
    "accumulated": _accumulated, "running": _running, "extreme": _extreme, "position": _position,
    "truth": _truth,
}  # fmt: skip
"""By the names that `Operator.arguments` has: how NumPy's functions take arguments."""

for _one in (*operators("reduction"), *operators("scan")):
    if _one.torch and _one.numpy:
        _enter = implements if _one.arguments in ("running", "position") else _reduces  # along one axis
        _enter(*(getattr(np, name) for name in _one.numpy))(CONVENTIONS[_one.arguments](_one))


@_reduces(np.count_nonzero)
def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    return FUNCTIONS[np.sum](PUBLIC["ne"](tensor_of(a), 0), axis, keepdims=keepdims)


@implements(np.diff, shares=True)
def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    x = tensor_of(a)
    if not n:
        return x
    if n < 0 or not x.ndim:
        return reduction.diff(x, n, axis)  # which raises
    ends = [None if one is None else tensor_of(one) for one in (prepend, append)]
    along = axis_of(axis, x, "diff")
    shape = [1 if dim == along else extent for dim, extent in enumerate(x.shape)]
    ends = [one if one is None or one.ndim else movement.broadcast_to(one, shape) for one in ends]
    given = [one for one in (ends[0], x, ends[1]) if one is not None]
    return reduction.diff(joining.cat(promoted(given), axis) if len(given) > 1 else x, n, axis)


@implements(np.linalg.norm)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    values = averaged(x)
    axis = _axes(axis)
    if isinstance(axis, tuple) and len(axis) not in (1, 2):
        fail(ShapeError, f"numpy.linalg.norm: Improper number of dimensions to norm: {len(axis)} axes.")
    if ord is not None and axis is None and values.ndim not in (1, 2):
        fail(
            ShapeError,
            "numpy.linalg.norm: Improper number of dimensions to norm: ord needs vectors or matrices, found "
            f"shape {tuple(values.shape)}. Give axis.",
        )
    is_matrix = len(axes_of(axis, values, "linalg.norm")) == 2
    if is_matrix and ord is not None:
        order = "fro" if ord == "f" else ord
        return as_number(statistics.matrix_norm(values, order, axis or (-2, -1), keepdims))
    return _vector_norm(values, axis=axis, keepdims=keepdims, ord=2 if ord is None else ord)


@implements(np.linalg.vector_norm)
def _vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    values = averaged(x)
    order = statistics.order_of_vectors(ord, "numpy.linalg.norm")
    return statistics.norm_of_vectors(values, order, axes_of(axis, values, "linalg.norm"), keepdims)


@implements(np.trapezoid)
def _trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    values = averaged(y)
    width: Any = dx
    if x is not None:
        width = reduction.diff(tensor_of(x), 1, -1 if tensor_of(x).ndim == 1 else axis)
        if width.ndim == 1 and values.ndim > 1:
            width = width.reshape([-1 if dim == axis % values.ndim else 1 for dim in range(values.ndim)])
    count = max(values.shape[axis] - 1, 0)
    if not count:
        return declared.sum(values, axis) * 0.0
    later, earlier = parts.narrow(values, axis, 1, count), parts.narrow(values, axis, 0, count)
    return declared.sum((later + earlier) * width * 0.5, axis)
