"""Tensors with parts replaced or combined: scatter_reduce and its kin, and the inverses of views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, DTypeError, ShapeError, UnsupportedError
from ....tracer.graph import Node
from ....tracer.ops import elementwise as e
from ....tracer.ops import indexing as x_ops
from ....tracer.ops import movement as m
from ....tracer.ops import scattering as s
from ....tracer.spec import CONTINUOUS
from ....tracer.trace import current_trace
from ...tape.apply import apply, rearranged, wrap
from ...tape.local import local
from ...values.tensor import Rearranged, Tensor
from ...values.value_kinds import Auxiliary
from ..common import (
    Scalar,
    array_dtype,
    as_dtype,
    fail,
    filled,
    floating,
    iota,
    numpy_names,
    one_dim,
    operand,
    own_dim,
    require_float,
    tensor,
)
from ..conventions import OFFERED
from ..declared import mul
from ..reductions.statistics import vector_norm
from ..shapes.movement import expand_to, moved_to_end, permuted, reshape_to
from ..shapes.parts import diagonal, part, positions_along, selected
from .selection import cropped, index_positions, require_index_shape, require_rows

__all__ = [
    "as_strided", "as_strided_scatter", "diagonal_scatter", "index_reduce", "put", "renorm", "scatter",
    "scatter_reduce", "select_scatter", "slice_scatter",
]  # fmt: skip
REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


@numpy_names
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Scalar | None = None,
    reduce: str | None = None,
) -> Tensor:  # fmt: skip
    """input with src, or a value, written where `gather` with the same index would read; of repeated places
    the last wins.

    Raises:
        ArgumentError: `src` is no number and no Tensor.
        UnsupportedError: reduce is not "add" or "multiply". The others are gather's.

    Example:
        >>> scatter(tensor([0, 0, 0]), 0, tensor([2, 0]), tensor([5, 6]))
        tensor([6, 0, 5])
    """
    src = operand(value if src is None else src, "scatter", "src")
    if reduce in ("add", "multiply"):
        given = src if isinstance(src, Tensor) else filled(tuple(index.shape), src, array_dtype(input))
        return scatter_reduce(input, dim, index, given, "sum" if reduce == "add" else "prod")
    if reduce is not None:
        fail(UnsupportedError, f"scatter(): reduce={reduce!r} is not supported, only 'add' and 'multiply'.")
    x = tensor(input, "scatter")
    dim = one_dim(dim, x.ndim, "scatter")
    require_index_shape(x, index, dim, "scatter")
    if not index.numel():
        return apply(e.identity, x)
    if isinstance(src, Tensor) and src.dtype != x.dtype:
        fail(DTypeError, f"scatter(): Expected self.dtype to be equal to src.dtype: {x.dtype}, {src.dtype}.")
    if not x.ndim:
        given = src.reshape(-1) if isinstance(src, Tensor) else src
        written = scatter(reshape_to(x, (1,)), 0, index.reshape(-1), given)
        return reshape_to(written, (), f"ScatterBackward{int(given is src)}")
    places = index_positions(index, x._value.shape[dim], dim, "scatter")
    shape = tuple(places._value.shape)
    if isinstance(src, Tensor):
        values, name = cropped(as_dtype(src, array_dtype(x)), shape, "scatter"), "ScatterBackward0"
    else:
        values, name = filled(shape, src, array_dtype(x)), "ScatterBackward1"
    return apply(x_ops.index_update, x, values, *positions_along(places, dim), grad_name=name)


# --- combined with what is there ---------------------------------------------------------------------------


def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """input combined with src where `gather` with the same index would read.

    Args:
        reduce: "sum", "prod", "mean", "amax" or "amin".
        include_self: whether the elements of `input` take part, where src has something for them.

    Example:
        >>> scatter_reduce(tensor([1, 1]), 0, tensor([1, 1]), tensor([5, 6]), "amax")
        tensor([1, 6])
    """
    x = tensor(input, "scatter_reduce")
    dim = one_dim(dim, x.ndim, "scatter_reduce")
    require_index_shape(x, index, dim, "scatter_reduce")
    if not x.ndim:
        whole = reshape_to(x, (1,))
        found = scatter_reduce(
            whole, 0, index.reshape(-1), src.reshape(-1), reduce, include_self=include_self
        )
        return reshape_to(found, (), "ScatterReduceBackward0")
    places = index_positions(index, x._value.shape[dim], dim, "scatter_reduce")
    values = as_dtype(tensor(src, "scatter_reduce", "src"), array_dtype(x))
    values = cropped(values, places._value.shape, "scatter_reduce")
    return _combined(x, values, positions_along(places, dim), reduce, include_self, "scatter_reduce")


def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """input combined with the slices of source at the positions in a vector along a dimension.

    Args:
        reduce, include_self: as in `scatter_reduce`, but for "sum", which is `index_add`.

    Example:
        >>> index_reduce(tensor([1, 1]), 0, tensor([1, 1]), tensor([5, 6]), "prod")
        tensor([ 1, 30])
    """
    x = tensor(input, "index_reduce")
    values = tensor(source, "index_reduce", "source")
    if reduce == "sum" or reduce not in REDUCTIONS:
        fail(
            ArgumentError,
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin, found {reduce!r}",
        )
    if not x.ndim:
        whole = reshape_to(x, (1,))
        found = index_reduce(
            whole, 0, index.reshape(-1), values.reshape(-1), reduce, include_self=include_self
        )
        return reshape_to(found, ())
    dim = own_dim(dim, x, "index_reduce")
    rows = index_positions(index, x._value.shape[dim], dim, "index_reduce")
    require_rows(x, values, rows, dim, "index_reduce")
    column = reshape_to(rows, tuple(rows.numel() if axis == dim else 1 for axis in range(x.ndim)))
    places = expand_to(column, tuple(values._value.shape))
    return _combined(x, values, positions_along(places, dim), reduce, include_self, "index_reduce")


def _combined(
    x: Tensor, src: Tensor, positions: list[Tensor], reduce: str, include_self: bool, function: str
) -> Tensor:
    if reduce not in REDUCTIONS:
        fail(
            ArgumentError,
            f"{function}(): reduce argument must be one of {', '.join(REDUCTIONS)}, found {reduce!r}",
        )
    dtype, shape = array_dtype(x), tuple(x._value.shape)
    ones = filled(tuple(src._value.shape), 1, dtype)
    start = x
    if not include_self:
        beginning = _beginning(reduce, dtype)
        updates = filled(tuple(src._value.shape), beginning, dtype)
        start = apply(x_ops.index_update, x, updates, *positions)
    if reduce in ("amax", "amin"):
        return apply(s.scatter_extreme, start, src, *positions, largest=reduce == "amax")
    if reduce == "prod":
        return apply(s.scatter_prod, start, src, *positions)
    total = apply(e.add, start, apply(x_ops.scatter_add, src, *positions, shape=shape))
    if reduce == "mean":
        count = apply(x_ops.scatter_add, ones, *positions, shape=shape)
        count = apply(e.add, count, 1) if include_self else apply(e.maximum, count, filled((), 1, dtype))
        total = apply(e.divide if dtype.kind in CONTINUOUS else e.floor_divide, total, count)
    return total


def _beginning(reduce: str, dtype: np.dtype) -> Scalar:
    """What changes nothing that it is combined with."""
    monoid = OFFERED["sum" if reduce == "mean" else reduce].monoid
    assert monoid is not None
    return monoid.identity(dtype)


def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """input with source written, or added, at positions of the flattened tensor.

    Example:
        >>> put(tensor([[1, 2], [3, 4]]), tensor([0, 3]), tensor([8, 9]))
        tensor([[8, 2],
                [3, 9]])
    """
    x, values = tensor(input, "put"), tensor(source, "put", "source")
    if values.dtype != x.dtype or values.numel() != index.numel():
        fail(
            ShapeError,
            "put_(): Expected source and index to have the same number of elements, and source the dtype of "
            f"input: found {values.numel()} and {index.numel()}, {values.dtype} and {x.dtype}.",
        )
    places = index_positions(index.reshape(-1), x.numel(), 0, "put")
    flat, updates = reshape_to(x, (x.numel(),)), reshape_to(values, (values.numel(),))
    if accumulate:
        found = apply(e.add, flat, apply(x_ops.scatter_add, updates, places, shape=(x.numel(),)))
    else:
        found = apply(x_ops.index_update, flat, updates, places)
    return reshape_to(found, tuple(x._value.shape), "PutBackward0")


# --- the inverses of views ----------------------------------------------------------------------------------


def _require_part(shown: Tensor, src: Tensor, function: str) -> None:
    if shown.shape != src.shape:
        fail(
            ShapeError,
            f"{function}(): expected src to have a size equal to the part of self that it replaces. "
            f"src size = {list(src.shape)}, part size = {list(shown.shape)}",
        )


def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """input with src in the place of one position of a dimension.

    Example:
        >>> select_scatter(tensor([[1, 2], [3, 4]]), tensor([8, 9]), 0, 1)
        tensor([[1, 2],
                [8, 9]])
    """
    x, value = tensor(input, "select_scatter"), tensor(src, "select_scatter", "src")
    dim = own_dim(dim, x, "select_scatter")
    extent = x._value.shape[dim]
    if not -extent <= index < extent:
        fail(ArgumentError, f"select_scatter(): index {index} out of range for dimension of size {extent}.")
    place = index % extent
    _require_part(selected(x._detached(), dim, place), value, "select_scatter")
    shape = tuple(1 if axis == dim else size for axis, size in enumerate(x._value.shape))
    return _sliced(x, reshape_to(value, shape), dim, place, place + 1, 1, "SelectScatterBackward0")


def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """input with src in the place of a slice of a dimension.

    Example:
        >>> slice_scatter(tensor([1, 2, 3]), tensor([8, 9]), start=1)
        tensor([1, 8, 9])
    """
    x, value = tensor(input, "slice_scatter"), tensor(src, "slice_scatter", "src")
    dim = own_dim(dim, x, "slice_scatter")
    if step < 1:
        fail(ArgumentError, f"slice step must be positive, found {step}")
    first, last, _ = slice(start, end, step).indices(x._value.shape[dim])
    last = max(first, last)
    _require_part(part(x._detached(), dim, first, last, step), value, "slice_scatter")
    return _sliced(x, value, dim, first, last, step, "SliceScatterBackward0")


def _sliced(x: Tensor, value: Tensor, dim: int, start: int, stop: int, step: int, name: str) -> Tensor:
    shape = x._value.shape
    return apply(
        m.slice_update, x, as_dtype(value, array_dtype(x)),
        starts=tuple(start if axis == dim else 0 for axis in range(len(shape))),
        stops=tuple(stop if axis == dim else extent for axis, extent in enumerate(shape)),
        steps=tuple(step if axis == dim else 1 for axis in range(len(shape))),
        grad_name=name,
    )  # fmt: skip


def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """input with src on a diagonal of the matrices in two dimensions.

    Example:
        >>> diagonal_scatter(tensor([[1, 2], [3, 4]]), tensor([8, 9]))
        tensor([[8, 2],
                [3, 9]])
    """
    x, value = tensor(input, "diagonal_scatter"), tensor(src, "diagonal_scatter", "src")
    _require_part(diagonal(x._detached(), offset, dim1, dim2), value, "diagonal_scatter")
    first, second = (one_dim(dim, x.ndim, "diagonal_scatter") for dim in (dim1, dim2))
    moved = moved_to_end(x, (first, second))
    count, rank = value._value.shape[-1], moved.ndim
    rows = apply(e.add, iota(count), max(-offset, 0))
    columns = apply(e.add, iota(count), max(offset, 0))
    order = (rank - 2, rank - 1, *range(rank - 2))
    leading = permuted(moved, order)
    updates = permuted(as_dtype(value, array_dtype(x)), (value.ndim - 1, *range(value.ndim - 1)))
    found = permuted(apply(x_ops.index_update, leading, updates, rows, columns), m.inverse_permutation(order))
    back = m.inverse_permutation((*(d for d in range(rank) if d not in (first, second)), first, second))
    return permuted(found, back, "DiagonalScatterBackward0")


def _strided_positions(x: Tensor, size: Sequence[int], stride: Sequence[int], offset: int | None) -> Tensor:
    if len(size) != len(stride):
        fail(ArgumentError, f"mismatch in length of strides and shape: {list(stride)} and {list(size)}")
    if not x.is_contiguous():
        fail(
            UnsupportedError,
            "as_strided(): the elements of the tensor do not lie in order; contiguous() it first.",
        )
    places = np.full((1,) * len(size), _elements_before(x, offset))
    for dim, (extent, step) in enumerate(zip(size, stride)):
        shape = tuple(-1 if axis == dim else 1 for axis in range(len(size)))
        places = places + (np.arange(extent) * step).reshape(shape)
    if places.size and (places.min() < 0 or places.max() >= x.numel()):
        fail(
            ShapeError,
            f"as_strided(): sizes {list(size)}, strides {list(stride)}, storage offset {offset or 0} reach "
            f"beyond the {x.numel()} elements of the tensor.",
        )
    return wrap(np.asarray(places, np.int64))


def _elements_before(x: Tensor, offset: int | None) -> int:
    """How many elements of x lie in front of a storage offset, which counts in the memory x is a part of."""
    if offset is None or x._view is None or x._view.base.numel() == x.numel():
        return offset or 0
    if isinstance(x._value, Node):
        fail(
            UnsupportedError,
            "as_strided(): a storage offset counts in the memory that the tensor is a part of, and a traced "
            "function has none; clone() the part first.",
        )
    return offset - x.storage_offset()


def as_strided(
    input: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """The element at i, j, ... is that at storage_offset + i * stride[0] + j * stride[1] + ... in memory.

    It is a view, which can't be written to where it shows elements more than once. Without an offset the
    first element is that of `input`.

    Raises:
        ShapeError: it would reach beyond the tensor. UnsupportedError: its elements do not lie in order.

    Example:
        >>> as_strided(tensor([1, 2, 3]), (2, 2), (1, 1))
        tensor([[1, 2],
                [2, 3]])
    """
    x = tensor(input, "as_strided")
    places = _strided_positions(x, size, stride, storage_offset)
    return strided_view(x, places._value, stride, _elements_before(x, storage_offset))


def strided_view(x: Tensor, places: np.ndarray, strides: Sequence[int], before: int = 0) -> Tensor:
    """The elements of x at places, as a view: `strides` elements apart, the first behind `before`."""

    def elements_of(x: Tensor) -> Tensor:
        flat = reshape_to(x, (x.numel(),))
        shown = apply(x_ops.gather, flat, local(places, Auxiliary), grad_name="AsStridedBackward0")
        if isinstance(shown._value, Node):
            current_trace().strides[shown._value] = tuple(strides)
        return shown

    def memory(array: np.ndarray) -> np.ndarray:
        start = array.reshape(-1)[before:] if before else array
        steps = [step * array.itemsize for step in strides]
        return np.lib.stride_tricks.as_strided(start, places.shape, steps, writeable=array.flags.writeable)

    part = Rearranged(f"as_strided({places.shape}, {tuple(strides)}, {before})", elements_of)
    return rearranged(x, part, memory, is_shared=len(np.unique(places)) < places.size)


def as_strided_scatter(
    input: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """input with src in the place of what `as_strided` shows.

    Example:
        >>> as_strided_scatter(tensor([1, 2, 3]), tensor([8, 9]), (2,), (2,))
        tensor([8, 2, 9])
    """
    x, value = tensor(input, "as_strided_scatter"), tensor(src, "as_strided_scatter", "src")
    places = _strided_positions(x, size, stride, storage_offset)
    if tuple(value.shape) != tuple(places.shape):
        fail(
            ShapeError,
            f"as_strided_scatter(): expected src of size {list(places.shape)}, found {list(value.shape)}",
        )
    flat = reshape_to(x, (x.numel(),))
    found = apply(x_ops.index_update, flat, as_dtype(value, array_dtype(x)), places)
    return reshape_to(found, tuple(x._value.shape), "AsStridedScatterBackward0")


def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Slices along a dimension whose p-norm is above maxnorm are scaled down to it.

    Example:
        >>> renorm(tensor([[3.0, 4.0]]), 2, 0, 1.0)
        tensor([[0.6000, 0.8000]])
    """
    x = floating(input, "renorm")
    require_float(x, "renorm")
    if x.ndim < 2 or p <= 0 or maxnorm < 0:
        fail(
            ArgumentError,
            f"renorm: input needs at least 2 dimensions, p > 0 and maxnorm >= 0: found {x.ndim} dimensions, "
            f"p = {p}, maxnorm = {maxnorm}",
        )
    dim = one_dim(dim, x.ndim, "renorm")
    others = tuple(axis for axis in range(x.ndim) if axis != dim)
    size = vector_norm(x, p, others, keepdim=True)
    factor = apply(e.where, apply(e.greater, size, maxnorm), maxnorm / (size + 1e-7), 1.0)
    return mul(x, factor)
