"""Functions that combine elements along dimensions: sums, products, extremes, truth, running sums.

`dim` is an int, several ints, or None for all dimensions; `keepdim` leaves the reduced ones with size 1.
NumPy's names `axis` and `keepdims` are accepted as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...tracer.errors import ArgumentError, DTypeError, ShapeError
from ...tracer.operator import Operator
from ...tracer.ops import elementwise as e
from ...tracer.ops import reduction as r
from ...tracer.spec import BOOL, INT64
from ..tape import apply
from ..tensor import Tensor
from .common import (
    Dims,
    all_dims,
    array_dtype,
    as_dtype,
    fail,
    numpy_dtype,
    numpy_names,
    one_dim,
    require_float,
    tensor,
    torch_name,
    truth,
)  # fmt: skip
from .movement import moved_to_end, reshape_to
from .parts import along, narrow

__all__ = [
    "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum",
    "diff", "max", "mean", "min", "nanmean", "nansum", "prod", "sum",
]  # fmt: skip


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


def _accumulated(x: Tensor, dtype: Any) -> Tensor:
    """x in the dtype that a sum of it has: int64 for integers and bools, unless `dtype` says otherwise."""
    if dtype is not None:
        return as_dtype(x, numpy_dtype(dtype))
    return x if array_dtype(x).kind == "f" else as_dtype(x, INT64)


def _suffix(dim: Dims) -> str:
    return "Backward0" if dim is None else "Backward1"


@numpy_names
def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over all dimensions, or some.

    Args:
        input: a tensor; integers and bools are summed as int64.
        dim: the dimensions to sum over.
        keepdim: leave them with size 1.
        dtype: what to convert to before summing.

    Raises:
        DimensionError: there is no such dimension.

    Example:
        >>> sum(tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
        tensor([4., 6.])
    """
    x = _accumulated(tensor(input, "sum"), dtype)
    dims = all_dims(dim, x.ndim, "sum")
    return apply(r.sum_, x, dims=dims, keepdim=bool(keepdim), grad_name="Sum" + _suffix(dim))


@numpy_names
def nansum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum of what is not nan; see `sum`.

    Example:
        >>> nansum(tensor([1.0, float("nan"), 2.0]))
        tensor(3.)
    """
    x = tensor(input, "nansum")
    if array_dtype(x).kind == "f":
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
    x = tensor(input, "mean")
    if dtype is not None:
        x = as_dtype(x, numpy_dtype(dtype))
    if array_dtype(x).kind != "f":
        fail(
            DTypeError,
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex "
            f"dtype. Got: {torch_name(x)}. Convert it first, e.g. with .float(), or pass dtype=.",
        )
    return _mean(x, dim, keepdim)


def _mean(x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    from ...tracer.ops import composite as c

    dims = all_dims(dim, x.ndim, "mean")
    return apply(c.mean, x, dims=dims, keepdim=bool(keepdim), grad_name="Mean" + _suffix(dim))


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


@numpy_names
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The product over all dimensions, or one; its derivative is exact with zeros among the factors.

    Example:
        >>> prod(tensor([1.0, 2.0, 3.0]))
        tensor(6.)
    """
    x = _accumulated(tensor(input, "prod"), dtype)
    dims = all_dims(dim, x.ndim, "prod")
    return apply(r.prod, x, dims=dims, keepdim=bool(keepdim), grad_name="Prod" + _suffix(dim))


# --- extremes -----------------------------------------------------------------------------------------


def require_elements(x: Tensor, dims: Sequence[int], function: str) -> None:
    for dim in dims:
        if not x._value.shape[dim]:
            fail(
                ShapeError,
                f"{function}(): Expected reduction dim {dim} to have non-zero size, found shape "
                f"{tuple(x.shape)}. Nothing has no {function}.",
            )


def _extreme(operator: Operator, input: Tensor, dim: Dims, keepdim: bool, function: str) -> Tensor:
    x = tensor(input, function)
    dims = all_dims(dim, x.ndim, function)
    require_elements(x, dims, function)
    return apply(operator, x, dims=dims, keepdim=bool(keepdim), grad_name=f"{function.capitalize()}Backward0")


@numpy_names
def amax(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The largest over all dimensions, or some; elements that share the extreme share the gradient.

    Raises:
        ShapeError: a reduced dimension has size 0.

    Example:
        >>> amax(tensor([[1.0, 4.0], [3.0, 2.0]]), dim=0)
        tensor([3., 4.])
    """
    return _extreme(r.amax, input, dim, keepdim, "amax")


@numpy_names
def amin(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """The smallest over all dimensions, or some; elements that share the extreme share the gradient.

    Raises:
        ShapeError: a reduced dimension has size 0.

    Example:
        >>> amin(tensor([[1.0, 4.0], [3.0, 2.0]]), dim=0)
        tensor([1., 2.])
    """
    return _extreme(r.amin, input, dim, keepdim, "amin")


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
        from .common import elementwise

        grad_name = f"{name.capitalize()}imumBackward0"
        return elementwise(pairwise, input, other, function=f"{name}imum", grad_name=grad_name)
    x = tensor(input, name)
    if dim is None:
        dims = tuple(range(x.ndim))
        require_elements(x, dims, name)
        return apply(extreme, x, dims=dims, keepdim=bool(keepdim), grad_name=f"{name.capitalize()}Backward1")
    dim = one_dim(dim, x.ndim, name)
    where_found = _search(search, x, dim, True, name)
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


def _search(operator: Operator, input: Tensor, dim: int | None, keepdim: bool, function: str) -> Tensor:
    x = tensor(input, function)
    flat = dim is None or not x.ndim
    if flat:
        rank, x, dim = x.ndim, reshape_to(x, (x.numel(),)), 0
    dim = one_dim(dim or 0, x.ndim, function)
    require_elements(x, (dim,), function)
    found = apply(operator, x, dims=(dim,), keepdim=bool(keepdim) and not flat)
    return reshape_to(found, (1,) * rank) if flat and keepdim and rank else found


@numpy_names
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the largest element, int64: in the flattened tensor, or along a dimension.

    Example:
        >>> argmax(tensor([[1.0, 4.0], [3.0, 2.0]]), dim=1)
        tensor([1, 0])
    """
    return _search(r.argmax, input, dim, keepdim, "argmax")


@numpy_names
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """The index of the smallest element, int64: in the flattened tensor, or along a dimension.

    Example:
        >>> argmin(tensor([[1.0, 4.0], [3.0, 2.0]]), dim=1)
        tensor([0, 1])
    """
    return _search(r.argmin, input, dim, keepdim, "argmin")


# --- truth --------------------------------------------------------------------------------------------


def _truth(operator: Operator, input: Tensor, dim: Dims, keepdim: bool, function: str) -> Tensor:
    x = tensor(input, function)
    result = apply(operator, truth(x), dims=all_dims(dim, x.ndim, function), keepdim=bool(keepdim))
    return as_dtype(result, np.dtype("uint8")) if array_dtype(x) == np.uint8 else result


@numpy_names
def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether all elements are true, that is, not zero; true of nothing.

    Example:
        >>> all(tensor([True, False]))
        tensor(False)
    """
    return _truth(r.all_, input, dim, keepdim, "all")


@numpy_names
def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether any element is true, that is, not zero; false of nothing.

    Example:
        >>> any(tensor([True, False]))
        tensor(True)
    """
    return _truth(r.any_, input, dim, keepdim, "any")


@numpy_names
def count_nonzero(input: Tensor, dim: Dims = None) -> Tensor:
    """How many elements are not zero, int64.

    Example:
        >>> count_nonzero(tensor([0.0, 1.0, 2.0]))
        tensor(2)
    """
    return sum(truth(tensor(input, "count_nonzero")), dim)


# --- running ------------------------------------------------------------------------------------------


def _running(operator: Operator, input: Tensor, dim: int, dtype: Any, function: str) -> Tensor:
    x = _accumulated(tensor(input, function), dtype)
    dim = one_dim(dim, x.ndim, function)
    if x.ndim:
        return apply(operator, x, dim=dim)
    return reshape_to(apply(operator, reshape_to(x, (1,)), dim=0), ())


@numpy_names
def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Running sums along a dimension; integers and bools become int64.

    Example:
        >>> cumsum(tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([1., 3., 6.])
    """
    return _running(r.cumsum, input, dim, dtype, "cumsum")


@numpy_names
def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Running products along a dimension; its derivative is exact with zeros among the factors.

    Example:
        >>> cumprod(tensor([1.0, 2.0, 3.0]), dim=0)
        tensor([1., 2., 6.])
    """
    return _running(r.cumprod, input, dim, dtype, "cumprod")


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
    from .joining import cat

    x = tensor(input, "diff")
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
    return x


def flattened(x: Tensor, dims: Sequence[int]) -> Tensor:
    """x with `dims` moved to the end and merged into one dimension."""
    moved = moved_to_end(x, dims)
    kept = tuple(moved.shape[: x.ndim - len(dims)])
    return reshape_to(moved, (*kept, int(np.prod(moved.shape[len(kept) :]))))
