"""Extremes and products, with what there is, at positions that index arrays name.

`x` and `src` have the indices' rank; the indices address every dimension of x, as `indexing.py` says.
"""

from __future__ import annotations

from ..operator import Array, Operator, declare
from ..spec import Spec
from .elementwise import convert, equal, maximum, minimum, multiply, where
from .indexing import gather, scatter_add, scatter_maximum, scatter_minimum, scatter_multiply


def _scattered(fold: Operator, scatter: Operator, x: Array, src: Array, indices: tuple[Array, ...]) -> Array:
    return fold(x, scatter(src, *indices, shape=tuple(x.shape)))


def _extreme(x: Array, src: Array, *indices: Array, largest: bool) -> Array:
    fold, scatter = (maximum, scatter_maximum) if largest else (minimum, scatter_minimum)
    return _scattered(fold, scatter, x, src, indices)


def _product(x: Array, src: Array, *indices: Array) -> Array:
    return _scattered(multiply, scatter_multiply, x, src, indices)


def _shares(x: Array, src: Array, y: Array, indices: tuple[Array, ...], x_spec: Spec) -> Array:
    """How many elements are the extreme of each place."""
    own = convert(equal(x, y), dtype=x_spec.dtype)
    others = convert(equal(src, gather(y, *indices)), dtype=x_spec.dtype)
    return own + scatter_add(others, *indices, shape=x_spec.shape)


def _extreme_of_src(
    g: Array, x: Array, src: Array, y: Array, indices: tuple[Array, ...], x_spec: Spec
) -> Array:
    share = g / _shares(x, src, y, indices, x_spec)
    return where(equal(src, gather(y, *indices)), gather(share, *indices), 0.0)


scatter_extreme = declare(
    "scatter_extreme", "composite", "x src *indices", grad_fn="ScatterReduce",
    infer=lambda x, *others, largest: x, evaluate=_extreme, body=_extreme,
    vjp={
        "x": lambda g, x, src, y, indices, x_spec: where(
            equal(x, y), g / _shares(x, src, y, indices, x_spec), 0.0
        ),
        "src": _extreme_of_src,
    },
    doc="the largest or smallest of x and what src has for its place; equal ones share the gradient",
)  # fmt: skip


def _product_of_others(
    g: Array, factor: Array, x: Array, src: Array, indices: tuple[Array, ...], x_spec: Spec, at_place: bool
) -> Array:
    """The cotangent of a factor: that of the product times all other factors, of which some may be 0.

    Where one of them is, it is a factor of its own, so that the derivative by that one is right as well.
    """
    dtype = x_spec.dtype
    zero, zero_in_src = equal(x, 0.0), equal(src, 0.0)
    nonzero = scatter_prod(where(zero, 1.0, x), where(zero_in_src, 1.0, src), *indices)
    count = convert(zero, dtype=dtype) + scatter_add(
        convert(zero_in_src, dtype=dtype), *indices, shape=x_spec.shape
    )
    zeros = where(zero, x, 0.0) + scatter_add(where(zero_in_src, src, 0.0), *indices, shape=x_spec.shape)
    if at_place:
        g, nonzero, count, zeros = (gather(one, *indices) for one in (g, nonzero, count, zeros))
    own = equal(factor, 0.0)
    others = g * where(own, nonzero, nonzero / where(own, 1.0, factor))
    left = count - convert(own, dtype=dtype)
    with_zero = where(equal(left, 1.0), others * (zeros - where(own, factor, 0.0)), 0.0)
    return where(equal(left, 0.0), others, with_zero)


scatter_prod = declare(
    "scatter_prod", "composite", "x src *indices", grad_fn="ScatterReduce",
    infer=lambda x, *others: x, evaluate=_product, body=_product,
    vjp={
        "x": lambda g, x, src, indices, x_spec: _product_of_others(g, x, x, src, indices, x_spec, False),
        "src": lambda g, x, src, indices, x_spec: _product_of_others(g, src, x, src, indices, x_spec, True),
    },
    doc="the product of x and what src has for its place",
)  # fmt: skip
