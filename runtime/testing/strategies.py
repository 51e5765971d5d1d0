"""Strategies of hypothesis: arrays without what no gradient survives, Tensors, and nested parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ...tracer.errors import ArgumentError
from ..dispatch.ahead import ArraySpec, TensorSpec
from ..tensors.creation import tensor
from ..values.flatten import flatten, unflatten
from ..values.tensor import Tensor

Strategy = st.SearchStrategy[Any]
LARGEST = 10.0
"""What numbers are bounded by unless told otherwise: exp and its kin stay finite, and differences precise."""


def numbers(smallest: float = -LARGEST, largest: float = LARGEST, dtype: Any = np.float64) -> Strategy:
    """Finite numbers between two bounds, no subnormal ones; of a complex dtype both parts are such.

    Example:
        >>> numbers(0.5, 2.0).filter(lambda x: x > 1.0)  # doctest: +ELLIPSIS
        floats(...
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        lowest = max(int(np.ceil(smallest)), np.iinfo(dtype).min)
        return st.integers(lowest, min(int(np.floor(largest)), np.iinfo(dtype).max))
    if dtype.kind == "c":
        part = numbers(smallest, largest, f"f{dtype.itemsize // 2}")
        return st.builds(complex, part, part)
    if dtype.kind != "f":
        raise ArgumentError(f"strategies.numbers: no numbers of dtype {dtype}.")
    bounds = [float(dtype.type(one)) for one in (smallest, largest)]
    return st.floats(*bounds, allow_nan=False, allow_subnormal=False, width=_width(dtype))


def _width(dtype: np.dtype) -> Any:
    return 8 * dtype.itemsize


def shapes(dims: int = 2, sides: int = 4) -> Strategy:
    """Shapes of up to so many dimensions, with sides from 1 on.

    Example:
        >>> shapes(dims=1, sides=1)  # doctest: +SKIP
    """
    return hnp.array_shapes(min_dims=0, max_dims=dims, min_side=1, max_side=sides)


def arrays(
    shape: Strategy | tuple[int, ...] | int | None = None, dtype: Any = np.float64,
    elements: Strategy | None = None,
) -> Strategy:  # fmt: skip
    """Arrays of finite numbers.

    Args:
        shape: one, or a strategy for one; None for `shapes()`.
        dtype: that of the arrays.
        elements: the numbers; None for `numbers(dtype=dtype)`.

    Example:
        >>> @given(arrays((3,)))
        ... def test(x):
        ...     check_gradients(lambda x: np.sin(x).sum(), x)
    """
    elements = numbers(dtype=dtype) if elements is None else elements
    return hnp.arrays(np.dtype(dtype), shapes() if shape is None else shape, elements=elements)


def tensors(
    shape: Strategy | tuple[int, ...] | int | None = None, dtype: Any = np.float64,
    elements: Strategy | None = None, requires_grad: bool = True,
) -> Strategy:  # fmt: skip
    """Tensors, as `arrays` gives arrays."""

    def made(array: np.ndarray) -> Tensor:
        return tensor(array, requires_grad=requires_grad)

    return arrays(shape, dtype, elements).map(made)


def parameters(like: Any, elements: Callable[[Any], Strategy] | None = None) -> Strategy:
    """Nested parameters: containers as in `like`, with other numbers in the places of its leaves.

    Args:
        like: lists, tuples, dicts, namedtuples and dataclasses of arrays, Tensors, numbers, or an `ArraySpec`
            or `TensorSpec` in the place of one. Other leaves stay as they are.
        elements: the numbers of a dtype; None for `numbers(dtype=dtype)`.

    Example:
        >>> parameters({"w": ArraySpec((3, 2)), "layers": [np.zeros(2), 0.0]})  # doctest: +SKIP
    """
    leaves, structure = flatten(like)
    drawn = st.tuples(*(_leaf(one, elements) for one in leaves))
    return drawn.map(lambda found: unflatten(structure, list(found)))


def _leaf(leaf: Any, elements: Callable[[Any], Strategy] | None) -> Strategy:
    def of(dtype: Any) -> Strategy:
        return numbers(dtype=dtype) if elements is None else elements(np.dtype(dtype))

    if isinstance(leaf, TensorSpec):
        return tensors(leaf.shape, leaf.dtype, of(leaf.dtype), leaf.requires_grad)
    if isinstance(leaf, ArraySpec):
        return arrays(leaf.shape, leaf.dtype, of(leaf.dtype))
    if isinstance(leaf, Tensor):
        dtype = leaf.detach().numpy().dtype
        return tensors(tuple(leaf.shape), dtype, of(dtype), leaf.requires_grad)
    if isinstance(leaf, np.ndarray):
        return arrays(leaf.shape, leaf.dtype, of(leaf.dtype))
    if isinstance(leaf, np.generic):
        return of(leaf.dtype).map(leaf.dtype.type)
    if isinstance(leaf, float | complex):
        return of(np.dtype(type(leaf)))
    return st.just(leaf)
