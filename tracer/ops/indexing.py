"""Operators with integer arrays as positions: gather, its transpose scatter_add and its kin, index_update.

The index arrays have one common shape; they address the first dimensions of the array, so the result of a
gather has the shape `indices.shape + x.shape[len(indices):]`. They are int64, and not negative: the
functions above these operators check bounds and wrap negative positions.
"""

import math
from functools import reduce
from typing import Any

import numpy as np

from ..dims import equated_shapes
from ..errors import ShapeError
from ..operator import TOGETHER, Array, Monoid, Operator, declare
from ..spec import Spec
from .creation import iota
from .elementwise import ADDITION, MULTIPLICATION, equal, where, zeros_like
from .movement import reshape
from .reduction import LARGEST, SMALLEST, cumsum


def _positions(specs: tuple[Spec, ...], function: str) -> tuple[int, ...]:
    if len({spec.shape for spec in specs}) != 1:
        raise ShapeError(
            f"{function}: index arrays of one shape expected, found {', '.join(map(str, specs))}."
        )
    return reduce(equated_shapes, [spec.shape for spec in specs])


def _infer_gather(x: Spec, *indices: Spec) -> Spec:
    return x.with_shape(_positions(indices, "gather") + x.shape[len(indices) :])


def _infer_scatter(updates: Spec, *indices: Spec, shape: tuple[int, ...]) -> Spec:
    _require_updates("scatter", updates, indices, shape)
    return updates.with_shape(shape)


def _infer_index_update(x: Spec, updates: Spec, *indices: Spec) -> Spec:
    _require_updates("index assignment", updates, indices, x.shape)
    return x


def _require_updates(function: str, updates: Spec, indices: tuple[Spec, ...], shape: tuple[int, ...]) -> None:
    expected = _positions(indices, function) + shape[len(indices) :]
    if updates.shape != expected:
        raise ShapeError(f"{function}: updates of shape {expected} expected, found {updates}.")
    equated_shapes(expected, updates.shape)


def _evaluate_scatter_add(updates: np.ndarray, *indices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Zeros with updates added at the indices. bincount is many times faster than np.add.at."""
    size, count = math.prod(shape), indices[0].size
    if count == 1:  # which has no equals
        result = np.zeros(shape, updates.dtype)
        result[tuple(indices)] += updates
        return result
    if updates.dtype == np.float64 and size and count:
        inner = math.prod(shape[len(indices) :])
        is_one = len(indices) == 1
        rows = indices[0] if is_one else np.ravel_multi_index(tuple(indices), shape[: len(indices)])
        flat = rows if inner == 1 else rows.reshape(-1, 1) * inner + np.arange(inner)
        return np.bincount(flat.reshape(-1), np.ravel(updates), minlength=size).reshape(shape)
    result = np.zeros(shape, updates.dtype)
    np.add.at(result, tuple(indices), updates)
    return result


def _evaluate_index_update(x: np.ndarray, updates: np.ndarray, *indices: np.ndarray) -> np.ndarray:
    result = np.array(x)
    result[tuple(indices)] = updates
    return result


def _pull_into_updates(g: Array, x_spec: Spec, updates_spec: Spec, indices: tuple[Array, ...]) -> Array:
    """The cotangents at the positions, of equal ones that of the last: a single position has no equals."""
    found = gather(g, *indices)
    if math.prod(indices[0].shape) == 1:
        return found
    return where(_is_last(x_spec, updates_spec, indices), found, 0.0)


def _is_last(x_spec: Spec, updates_spec: Spec, indices: tuple[Array, ...]) -> Array:
    """For each position, to broadcast against the updates, whether it is the last of its equals."""
    count, shape = math.prod(indices[0].shape), tuple(indices[0].shape)
    nothing = zeros_like(indices[0])
    order = reshape(cumsum(reshape(nothing + 1, shape=(count,)), dim=0), shape=shape)
    untouched = scatter_add(nothing, *indices, shape=x_spec.shape[: len(indices)])
    last = equal(gather(index_update(untouched, order, *indices), *indices), order)
    return reshape(last, shape=shape + (1,) * (updates_spec.ndim - len(shape)))


def counts_from_zero(x: Any) -> bool:
    """Whether a value in a graph is known to hold positions along a dimension, which are not negative."""
    operator = getattr(x, "operator", None)
    while operator is not None and operator.movement.rearranges and len(x.operands) == 1:
        (x,) = x.operands
        operator = x.operator
    return operator is iota or (operator is not None and operator.search is not None)


gather = declare(
    "gather",
    "indexing",
    "x *indices",
    infer=_infer_gather,
    evaluate=lambda x, *indices: x[tuple(indices)],
    grad_fn="Index",
    linear=TOGETHER,
    vjp={"x": lambda g, x_spec, indices: scatter_add(g, *indices, shape=x_spec.shape)},
    doc="x at the positions that the index arrays name",
)
scatter_add = declare(
    "scatter_add",
    "indexing",
    "updates *indices",
    infer=_infer_scatter,
    evaluate=_evaluate_scatter_add,
    grad_fn="IndexBackward",
    linear=TOGETHER,
    monoid=ADDITION,
    vjp={"updates": lambda g, indices: gather(g, *indices)},
    doc="zeros with updates added at the positions that the index arrays name; repeated ones add up",
)


def _scatter(name: str, monoid: Monoid, what: str) -> Operator:
    """Declare a scatter that combines otherwise; operators that are made of it have the rules."""
    ufunc = getattr(np, monoid.fold.name)

    def evaluate(updates: np.ndarray, *indices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        result = np.full(shape, monoid.identity(updates.dtype), updates.dtype)
        ufunc.at(result, tuple(indices), updates)
        return result

    return declare(
        name, "indexing", "updates *indices", infer=_infer_scatter, evaluate=evaluate, monoid=monoid,
        of_complex="",
        doc=f"the {what} of all updates at each position that the index arrays name",
    )  # fmt: skip


scatter_multiply = _scatter("scatter_multiply", MULTIPLICATION, "product")
scatter_maximum = _scatter("scatter_maximum", LARGEST, "largest")
scatter_minimum = _scatter("scatter_minimum", SMALLEST, "smallest")
SCATTERS = (scatter_add, scatter_multiply, scatter_maximum, scatter_minimum)
index_update = declare(
    "index_update",
    "indexing",
    "x updates *indices",
    infer=_infer_index_update,
    evaluate=_evaluate_index_update,
    grad_fn="IndexPut",
    vjp={
        "x": lambda g, indices: index_update(g, zeros_like(gather(g, *indices)), *indices),
        "updates": _pull_into_updates,
    },
    doc="x with the elements at the positions replaced; of repeated positions the last wins",
)
placed = declare(
    "placed", "composite", "x updates *indices", infer=_infer_index_update, evaluate=_evaluate_index_update,
    body=index_update, grad_fn="MaxUnpool2D", of_complex="holomorphic",
    vjp={
        "x": lambda g, indices: index_update(g, zeros_like(gather(g, *indices)), *indices),
        "updates": lambda g, indices: gather(g, *indices),
    },
    doc="index_update; all updates of one position have its gradient, as where maxima of windows return",
)  # fmt: skip
