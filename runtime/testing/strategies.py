"""Strategies of hypothesis: arrays without what no gradient survives, Tensors, and nested parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ...tracer.errors import ArgumentError
from ...tracer.spec import CONTINUOUS
from ..dispatch.ahead import ArraySpec, TensorSpec
from ..tensors.creation import tensor
from ..values.flatten import flatten, unflatten
from ..values.tensor import Tensor

Strategy = st.SearchStrategy[Any]
LARGEST = 10.0
"""What numbers are bounded by unless told otherwise: exp and its kin stay finite, and differences precise."""


def numbers(
    smallest: float = -LARGEST, largest: float = LARGEST, dtype: Any = np.float64,
    *, allow_nan: bool = False, allow_infinity: bool = False,
) -> Strategy:  # fmt: skip
    """Numbers between two bounds, no subnormal ones; of a complex dtype both parts are such.

    Args:
        smallest, largest: the bounds; of float32 and float16 the nearest numbers inside.
        dtype: what the numbers can be told by.
        allow_nan, allow_infinity: whether there are nan, or both infinities, among them.

    Raises:
        ArgumentError: no number of the dtype lies between the bounds.

    Example:
        >>> numbers(0.5, 2.0).filter(lambda x: x > 1.0)  # doctest: +ELLIPSIS
        floats(...
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return st.booleans()
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        lowest, highest = max(np.ceil(smallest), limits.min), min(np.floor(largest), limits.max)
        _require_between(lowest, highest, smallest, largest, dtype)
        return st.integers(int(lowest), int(highest))
    if dtype.kind == "c":
        part_dtype = f"f{dtype.itemsize // 2}"
        part = numbers(smallest, largest, part_dtype, allow_nan=allow_nan, allow_infinity=allow_infinity)
        return st.builds(complex, part, part)
    if dtype.kind != "f":
        raise ArgumentError(f"strategies.numbers: no numbers of dtype {dtype}.")
    lowest, highest = _inside(smallest, dtype, 1), _inside(largest, dtype, -1)
    _require_between(lowest, highest, smallest, largest, dtype)
    finite = st.floats(lowest, highest, allow_nan=False, allow_subnormal=False, width=8 * dtype.itemsize)
    special = [np.nan] * allow_nan + [np.inf, -np.inf] * allow_infinity
    return finite | st.sampled_from(special) if special else finite


def _inside(bound: float, dtype: Any, direction: int) -> float:
    """The nearest number of a dtype that is not beyond a bound, upwards or downwards of it."""
    with np.errstate(over="ignore"):
        found = dtype.type(bound)
    is_beyond = direction * (float(found) - bound) < 0 or np.isinf(found)
    return float(np.nextafter(found, dtype.type(direction * np.inf)) if is_beyond else found)


def _require_between(lowest: float, highest: float, smallest: float, largest: float, dtype: Any) -> None:
    if not lowest <= highest:
        raise ArgumentError(f"strategies.numbers: no {dtype} lies between {smallest} and {largest}.")


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
        >>> from hypothesis import given
        >>> @given(arrays((3,)))
        ... def test(x):
        ...     pb.testing.check_gradients(lambda x: np.sin(x).sum(), x)
    """
    elements = numbers(dtype=dtype) if elements is None else elements
    return hnp.arrays(np.dtype(dtype), shapes() if shape is None else shape, elements=elements)


def tensors(
    shape: Strategy | tuple[int, ...] | int | None = None, dtype: Any = np.float64,
    elements: Strategy | None = None, requires_grad: bool = True,
) -> Strategy:  # fmt: skip
    """Tensors, as `arrays` gives arrays; those of integers and truth values require no gradient.

    Example:
        >>> tensors((3,)).filter(lambda x: x.requires_grad)  # doctest: +SKIP
    """
    return _tensors(arrays(shape, dtype, elements), requires_grad and np.dtype(dtype).kind in CONTINUOUS)


@st.composite  # and no `map`, which hypothesis shows as calls of ours
def _tensors(draw: st.DrawFn, given: Strategy, requires_grad: bool) -> Tensor:
    return tensor(draw(given), requires_grad=requires_grad)


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
    return _parameters(structure, [_leaf(one, elements) for one in leaves])


@st.composite
def _parameters(draw: st.DrawFn, structure: Any, leaves: Sequence[Strategy]) -> Any:
    return unflatten(structure, [draw(one) for one in leaves])


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
