"""Operators that combine the elements along dimensions: sums, products, extremes, searches, running sums.

`dims` is a sorted tuple of non-negative dimensions; `keepdim` leaves them with size 1.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..operator import Array, Operator, declare
from ..spec import BOOL, INT64, Spec, reduced_shape
from .elementwise import convert, divide, equal, where
from .movement import expand, flip, pad, permute, reshape, slice_


def restore_dims(reduced: Array, x_spec: Spec, dims: tuple[int, ...]) -> Array:
    """The result of a reduction with its dims back in place as size 1, to broadcast against the operand."""
    return reshape(reduced, shape=reduced_shape(x_spec.shape, dims, keepdim=True))


def reduction(
    name: str,
    *,
    numpy: Callable[..., Any],
    vjp: Mapping[str, Callable[..., Array]] | None = None,
    dtype: np.dtype | None = None,
    needs_elements: bool = False,
    **fields: Any,
) -> Operator:
    """Declare a reduction; `needs_elements` for those with no value on an empty dimension."""

    def infer(x: Spec, dims: tuple[int, ...], keepdim: bool) -> Spec:
        if needs_elements and any(x.shape[dim] == 0 for dim in dims):
            raise ArgumentError(
                f"{name}(): Expected reduction dim to have non-zero size, found {x} and dims {dims}. "
                f"An empty dimension has no {name}."
            )
        return Spec(reduced_shape(x.shape, dims, keepdim), dtype or x.dtype)

    return declare(
        name,
        "reduction",
        "x",
        infer=infer,
        evaluate=lambda x, dims, keepdim: numpy(x, axis=dims, keepdims=keepdim),
        vjp=vjp,
        **fields,
    )


def _shared_by_extremes(g: Array, x: Array, y: Array, x_spec: Spec, dims: tuple[int, ...]) -> Array:
    """The cotangent, split evenly among the elements that equal the extreme."""
    chosen = equal(x, restore_dims(y, x_spec, dims))
    count = sum_(convert(chosen, dtype=x_spec.dtype), dims=dims, keepdim=True)
    return where(chosen, divide(restore_dims(g, x_spec, dims), count), 0.0)


def _exclusive_product(x: Array, x_spec: Spec, dim: int) -> Array:
    """At each place the product of what lies before it on `dim`: log2(n) rounds of shift and multiply.

    W. D. Hillis and G. L. Steele, Data Parallel Algorithms, CACM 29 (1986). No division, so zeros are exact
    in every order of derivative.
    """
    shape = x_spec.shape

    def shifted(values: Array, distance: int) -> Array:
        stops = tuple(
            max(extent - distance, 0) if axis == dim else extent for axis, extent in enumerate(shape)
        )
        kept = slice_(values, starts=(0,) * len(shape), stops=stops, steps=(1,) * len(shape))
        distance = min(distance, shape[dim])
        widths = tuple((distance, 0) if axis == dim else (0, 0) for axis in range(len(shape)))
        return pad(kept, widths=widths, value=1.0)

    running, distance = shifted(x, 1), 1
    while distance < shape[dim]:
        running = running * shifted(running, distance)
        distance *= 2
    return running


def _product_of_others(g: Array, x: Array, x_spec: Spec, dims: tuple[int, ...]) -> Array:
    """d prod / d x_i: the product of all elements but x_i, from both sides."""
    rest = tuple(axis for axis in range(x_spec.ndim) if axis not in dims)
    order = rest + dims
    kept = tuple(x_spec.shape[axis] for axis in rest)
    count = int(np.prod([x_spec.shape[axis] for axis in dims]))
    flat = reshape(permute(x, dims=order), shape=(*kept, count))
    flat_spec, last = x_spec.with_shape((*kept, count)), len(kept)
    before = _exclusive_product(flat, flat_spec, last)
    after = flip(_exclusive_product(flip(flat, dims=(last,)), flat_spec, last), dims=(last,))
    others = reshape(before * after, shape=tuple(x_spec.shape[axis] for axis in order))
    back = tuple(sorted(range(x_spec.ndim), key=order.__getitem__))
    return restore_dims(g, x_spec, dims) * permute(others, dims=back)


def _sum(x: np.ndarray, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
    return np.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def _prod(x: np.ndarray, axis: tuple[int, ...], keepdims: bool) -> np.ndarray:
    return np.prod(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


sum_ = reduction(
    "sum",
    numpy=_sum,
    vjp={"x": lambda g, x_spec, dims: expand(restore_dims(g, x_spec, dims), shape=x_spec.shape)},
    doc="the sum; 0 of nothing",
)
prod = reduction("prod", numpy=_prod, vjp={"x": _product_of_others}, doc="the product; 1 of nothing")
amax = reduction(
    "amax", numpy=np.amax, vjp={"x": _shared_by_extremes}, needs_elements=True,
    doc="the largest; elements that share the extreme share the gradient",
)  # fmt: skip
amin = reduction(
    "amin", numpy=np.amin, vjp={"x": _shared_by_extremes}, needs_elements=True,
    doc="the smallest; elements that share the extreme share the gradient",
)  # fmt: skip
all_ = reduction("all", numpy=np.all, dtype=BOOL, doc="whether all are true")
any_ = reduction("any", numpy=np.any, dtype=BOOL, doc="whether any is true")


def _search(name: str, find: Callable[..., Any], doc: str) -> Operator:
    """argmax and argmin over one dimension: the first of equals, a nan before all."""
    return reduction(
        name,
        numpy=lambda x, axis, keepdims: np.asarray(find(x, axis=axis[0], keepdims=keepdims)),
        dtype=INT64,
        needs_elements=True,
        doc=doc,
    )


argmax = _search("argmax", np.argmax, "the index of the largest along one dimension")
argmin = _search("argmin", np.argmin, "the index of the smallest along one dimension")

# --- running sums and products -------------------------------------------------------------------------


def _reversed_cumsum(g: Array, dim: int) -> Array:
    return flip(cumsum(flip(g, dims=(dim,)), dim=dim), dims=(dim,))


cumsum = declare(
    "cumsum", "scan", "x",
    infer=lambda x, dim: x,
    evaluate=lambda x, dim: np.cumsum(x, axis=dim, dtype=x.dtype),
    vjp={"x": _reversed_cumsum},
    doc="running sums along a dimension",
)  # fmt: skip
cumprod = declare(
    "cumprod", "scan", "x",
    infer=lambda x, dim: x,
    evaluate=lambda x, dim: np.cumprod(x, axis=dim, dtype=x.dtype),
    vjp={"x": lambda g, x, x_spec, dim: _cumprod_cotangent(g, x, x_spec, dim)},
    domain=(0.3, 2.0),
    doc="running products along a dimension",
)  # fmt: skip


def _cumprod_cotangent(g: Array, x: Array, x_spec: Spec, dim: int) -> Array:
    """Exact with zeros: s_i = before_i * (g_i + x_{i+1} (g_{i+1} + x_{i+2} (...))): a linear scan.

    The inner recurrence t_i = g_i + x_{i+1} t_{i+1} is solved in log2(n) rounds (G. E. Blelloch, Prefix
    Sums and Their Applications, 1990, section 1.4).
    """
    shape = x_spec.shape
    steps = (1,) * len(shape)

    def from_later(values: Array, distance: int, filler: float) -> Array:
        distance = min(distance, shape[dim])
        starts = tuple(distance if axis == dim else 0 for axis in range(len(shape)))
        kept = slice_(values, starts=starts, stops=shape, steps=steps)
        widths = tuple((0, distance) if axis == dim else (0, 0) for axis in range(len(shape)))
        return pad(kept, widths=widths, value=filler)

    factor, total, distance = from_later(x, 1, 0.0), g, 1
    while distance < shape[dim]:
        total = total + factor * from_later(total, distance, 0.0)
        factor = factor * from_later(factor, distance, 0.0)
        distance *= 2
    return _exclusive_product(x, x_spec, dim) * total


def sum_to_shape(x: Array, shape: tuple[int, ...]) -> Array:
    """The transpose of broadcasting from `shape`: x summed over the dimensions that broadcasting made."""
    if tuple(x.shape) == shape:
        return x
    extra = len(x.shape) - len(shape)
    dims = tuple(
        axis
        for axis in range(len(x.shape))
        if axis < extra or (shape[axis - extra] == 1 and x.shape[axis] != 1)
    )
    return reshape(sum_(x, dims=dims, keepdim=False), shape=shape)
