"""Functions that combine elements along dimensions: sums, products, extremes, truth, running sums.

`dim` is an int, several ints, or None for all dimensions; `keepdim` leaves the reduced ones with size 1.
NumPy's names `axis` and `keepdims` are accepted as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....tracer.errors import ArgumentError, DTypeError
from ....tracer.operator import Operator
from ....tracer.ops import composite as c
from ....tracer.ops import elementwise as e
from ....tracer.ops import reduction as r
from ....tracer.spec import BOOL, CONTINUOUS
from ...tape.apply import apart_from, apply
from ...tape.composed import of_several
from ...tape.direct import direct
from ...tape.direct_parts import ALL, read_part
from ...values.tensor import Tensor
from ..common import (
    Dims,
    all_dims,
    array_dtype,
    as_dtype,
    elementwise,
    fail,
    numpy_dtype,
    numpy_names,
    one_dim,
    require_float,
    tensor,
    torch_name,
    truth,
    with_short_way,
)  # fmt: skip
from ..conventions import grad_suffix, position_of, reduced_directly, require_elements
from ..declared import amax, amin, sum
from ..shapes.joining import cat
from ..shapes.movement import moved_to_end, reshape_to
from ..shapes.parts import along, narrow

__all__ = ["aminmax", "count_nonzero", "diff", "max", "mean", "min", "nanmean", "nansum"]


class ValuesIndices(NamedTuple):
    """What `max(x, dim)`, `sort(x)` and their like return: the values and where they were."""

    values: Tensor
    indices: Tensor


def _named_pair(name: str) -> type[ValuesIndices]:
    """A pair of its own type, so that it prints as PyTorch's does."""

    def represent(self: ValuesIndices) -> str:
        return f"torch.return_types.{name}(\nvalues={self.values!r},\nindices={self.indices!r})"

    return type(name, (ValuesIndices,), {"__repr__": represent, "__slots__": ()})


PAIRS = {
    name: _named_pair(name)
    for name in ["max", "min", "sort", "topk", "median", "kthvalue", "nanmedian", "mode", "cummax", "cummin"]
}


class MinMax(NamedTuple):
    """What `aminmax` returns."""

    min: Tensor
    max: Tensor


@numpy_names
def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of what is not nan; see `sum`.

    Example:
        >>> nansum(tensor([1.0, float("nan"), 2.0]))
        tensor(3.)
    """
    x = tensor(input, "nansum")
    if array_dtype(x).kind in CONTINUOUS:
        x = apply(e.where, apply(e.isnan, x), 0.0, x, grad_name="NansumBackward0")
    return sum(x, dim, keepdim, dtype=dtype)


@numpy_names
def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over all dimensions, or some; nan of nothing.

    Args:
        input: a floating tensor, or any if `dtype` is a floating one.
        dim, keepdim, dtype: see `sum`.

    Raises:
        DTypeError: `input` holds integers or bools.
        DimensionError: there is no such dimension.

    Example:
        >>> mean(tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1, keepdim=True)
        tensor([[1.5000],
                [3.5000]])
    """
    if dtype is None and (short := mean_directly(input, dim, keepdim)) is not NotImplemented:
        return short
    x = tensor(input, "mean")
    if dtype is not None:
        x = as_dtype(x, numpy_dtype(dtype))
    if array_dtype(x).kind not in CONTINUOUS:
        fail(
            DTypeError,
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex "
            f"dtype. Got: {torch_name(x)}. Convert it first, e.g. with .float(), or pass dtype=.",
        )
    return _mean(x, dim, keepdim)


mean_directly = reduced_directly(c.mean)
with_short_way(mean, mean_directly)


def _mean(x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    dims = all_dims(dim, x.ndim, "mean")
    return apply(c.mean, x, dims=dims, keepdim=bool(keepdim), grad_name="Mean" + grad_suffix(dim))


@numpy_names
def nanmean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean of what is not nan; see `mean`.

    Example:
        >>> nanmean(tensor([1.0, float("nan"), 2.0]))
        tensor(1.5000)
    """
    x = tensor(input, "nanmean")
    if dtype is not None:
        x = as_dtype(x, numpy_dtype(dtype))
    require_float(x, "nanmean")
    count = sum(apply(e.logical_not, apply(e.isnan, x)), dim, keepdim)
    return apply(e.divide, nansum(x, dim, keepdim), as_dtype(count, array_dtype(x)))


# --- extremes -----------------------------------------------------------------------------------------


@numpy_names
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
    """The smallest and the largest: a pair (min, max).

    Example:
        >>> aminmax(tensor([3.0, 1.0, 2.0])).max
        tensor(3.)
    """
    return MinMax(amin(input, dim, keepdim), amax(input, dim, keepdim))


def _max_or_min(
    name: str,
    operators: tuple[Operator, Operator, Operator],
    input: Tensor,
    dim: Any,
    keepdim: bool,
    other: Any,
) -> Any:
    """The three forms of max and min: of all elements, along a dimension with indices, of two tensors."""
    extreme, search, pairwise = operators
    if isinstance(dim, Tensor) and dim._is_number:
        dim = int(dim)
    elif isinstance(dim, Tensor | np.ndarray):
        dim, other = None, dim
    if other is not None:
        grad_name = f"{name.capitalize()}imumBackward0"
        return elementwise(pairwise, input, other, function=f"{name}imum", grad_name=grad_name)
    x = tensor(input, name)
    if dim is None:
        dims = tuple(range(x.ndim))
        require_elements(x, dims, name)
        return apply(extreme, x, dims=dims, keepdim=bool(keepdim), grad_name=f"{name.capitalize()}Backward1")
    dim = one_dim(dim, x.ndim, name)
    where_found = position_of(search, x, dim, True, name)
    values = along(x, where_found, dim, grad_name=f"{name.capitalize()}Backward0")
    shape = tuple(extent for axis, extent in enumerate(values.shape) if axis != dim or keepdim)
    return PAIRS[name](
        reshape_to(values, shape, f"{name.capitalize()}Backward0"), reshape_to(where_found, shape)
    )


@numpy_names
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The largest element; along one dimension with its index; or of two tensors, pair by pair.

    Args:
        input: a tensor.
        dim: the dimension, or a second tensor as `other`.
        keepdim: leave the dimension with size 1.

    Returns:
        A tensor; with `dim` a pair `(values, indices)`. Of equal elements the first is taken and gets the
        gradient; without `dim` they share it.

    Raises:
        ShapeError: a reduced dimension has size 0.
        DimensionError: there is no such dimension.

    Example:
        >>> max(tensor([[1.0, 4.0], [3.0, 2.0]]), dim=1).indices
        tensor([1, 0])
    """
    return _max_or_min("max", (r.amax, r.argmax, e.maximum), input, dim, keepdim, other)


@numpy_names
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """The smallest element; along one dimension with its index; or of two tensors; see `max`.

    Example:
        >>> min(tensor([[1.0, 4.0], [3.0, 2.0]]), dim=1).values
        tensor([1., 2.])
    """
    return _max_or_min("min", (r.amin, r.argmin, e.minimum), input, dim, keepdim, other)


# --- truth --------------------------------------------------------------------------------------------


@numpy_names
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """How many elements are not zero, int64.

    Example:
        >>> count_nonzero(tensor([0.0, 1.0, 2.0]))
        tensor(2)
    """
    return sum(truth(tensor(input, "count_nonzero")), dim)


# --- running ------------------------------------------------------------------------------------------


@numpy_names
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The n-th differences of neighbours along a dimension, after joining `prepend` and `append` to it; for
    n = 0 the input itself.

    Raises:
        ArgumentError: n is negative, or the tensor is 0-d.

    Example:
        >>> diff(tensor([1.0, 4.0, 9.0]))
        tensor([3., 5.])
    """
    x = given = tensor(input, "diff")
    if n < 0 or not x.ndim:
        fail(
            ArgumentError,
            f"diff expects input to be at least one-dimensional and n >= 0; found {x.ndim}-d, n={n}",
        )
    dim = one_dim(dim, x.ndim, "diff")
    parts = [part for part in (prepend, x, append) if part is not None]
    joined = cat(parts, dim) if len(parts) > 1 else x
    x = joined if n else x  # as in PyTorch and NumPy
    for _ in range(np.minimum(n, x.shape[dim])):
        length = x.shape[dim] - 1
        later, earlier = narrow(x, dim, 1, length), narrow(x, dim, 0, length)
        if array_dtype(x) == BOOL:
            x = apply(e.logical_xor, later, earlier)
        else:
            x = apply(e.subtract, later, earlier)
    return apart_from(given, x)


_subtracted = direct(e.subtract)


@of_several
def differences_directly(input: Any = None, n: Any = 1, axis: Any = -1, *more: Any) -> Any:
    """The differences of neighbours among floats outside of traces; NotImplemented for all else."""
    if more or n != 1 or type(axis) is not int or not isinstance(input, Tensor):
        return NotImplemented
    value = input._value
    if type(value) is not np.ndarray or value.dtype.kind != "f" or not -value.ndim <= axis < value.ndim:
        return NotImplemented
    before = (ALL,) * (axis % value.ndim)
    later = read_part(input, (*before, slice(1, None)))
    earlier = read_part(input, (*before, slice(None, -1)))
    return NotImplemented if later is None or earlier is None else _subtracted(later, earlier)


with_short_way(diff, differences_directly)


def flattened(x: Tensor, dims: Sequence[int]) -> Tensor:
    """x with `dims` moved to the end and merged into one dimension."""
    moved = moved_to_end(x, dims)
    kept = tuple(moved.shape[: x.ndim - len(dims)])
    return reshape_to(moved, (*kept, int(np.prod(moved.shape[len(kept) :]))))
