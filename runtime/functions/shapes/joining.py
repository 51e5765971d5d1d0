"""Functions that join tensors to one, or take one apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError
from ....tracer.ops import composite as c
from ....tracer.ops import movement as m
from ...tape.apply import apply, as_several_views
from ...tape.direct_joining import direct_joined
from ...values.tensor import Tensor
from ..common import (
    as_dtype,
    common_dtype,
    fail,
    numpy_names,
    one_dim,
    own_dim,
    tensor,
    tensors,
    with_short_way,
)
from .movement import atleast_1d, atleast_2d, atleast_3d, expand_to, reshape_to
from .parts import part, selected

__all__ = [
    "cat", "chunk", "column_stack", "concat", "concatenate", "dsplit", "dstack", "hsplit", "hstack",
    "meshgrid", "row_stack", "split", "stack", "tensor_split", "unbind", "vsplit", "vstack",
]  # fmt: skip


def _of_one_dtype(values: list[Tensor]) -> list[Tensor]:
    dtype = common_dtype(*values)
    return [as_dtype(one, dtype) for one in values]


@numpy_names
def cat(tensors: Iterable[Tensor], dim: int = 0) -> Tensor:
    """The tensors one after another along a dimension.

    Args:
        tensors: tensors of one shape, but for the dimension `dim`; of several dtypes the common one is taken.
            Those of shape (0,) are left out.
        dim: the dimension along which they are joined.

    Raises:
        ShapeError: the other dimensions differ, or a tensor is 0-d.

    Example:
        >>> cat([tensor([1, 2]), tensor([3])])
        tensor([1, 2, 3])
    """
    given = _tensors(tensors, "cat")
    if any(not one.ndim for one in given):
        position = [one.ndim for one in given].index(0)
        fail(
            ShapeError,
            f"zero-dimensional tensor (at position {position}) cannot be concatenated; use stack().",
        )
    values = _of_one_dtype(given)
    joined = [one for one in values if one._value.shape != (0,)] or values[:1]
    dim = one_dim(dim, joined[0].ndim, "cat")
    _require_equal_but_for(dim, joined)
    return apply(m.concatenate, *joined, dim=dim, grad_name="CatBackward0")


def cat_directly(tensors: Any = None, axis: Any = 0, *more: Any) -> Any:
    """A list of tensors and arrays of one dtype joined; NotImplemented for what takes a closer look."""
    if type(tensors) not in (list, tuple) or type(axis) is not int or more:
        return NotImplemented
    first: Any = None
    for one in tensors:
        value = one._value if isinstance(one, Tensor) else one
        if type(value) is not np.ndarray or not value.size:
            return NotImplemented
        if first is None:
            first = value
            rank = len(value.shape)
            if not -rank <= axis < rank:
                return NotImplemented
            dim = axis % rank
            rest = value.shape[:dim] + value.shape[dim + 1 :]
        elif (
            value.dtype != first.dtype
            or len(value.shape) != rank
            or value.shape[:dim] + value.shape[dim + 1 :] != rest
        ):
            return NotImplemented
    if (short := _beside(tensors, dim=dim)) is not NotImplemented:
        return short
    if not any(isinstance(one, Tensor) for one in tensors):
        return NotImplemented
    return apply(m.concatenate, *tensors, dim=dim, grad_name="CatBackward0")


_beside = direct_joined(m.concatenate, "CatBackward0")
_stacked = direct_joined(c.stack, "StackBackward0")


def rows_directly(tensors: Any = None, *more: Any) -> Any:
    """The short way of `np.vstack` of vectors of one length, or of arrays of one rank from 2 on."""
    ranks = _ranks_of(tensors)
    if more or not ranks or min(ranks) != max(ranks) or not ranks[0]:
        return NotImplemented
    return stack_directly(tensors) if ranks[0] == 1 else cat_directly(tensors)


def columns_directly(tensors: Any = None, *more: Any) -> Any:
    """The short way of `np.hstack` of arrays of one rank."""
    ranks = _ranks_of(tensors)
    if more or not ranks or min(ranks) != max(ranks) or not ranks[0]:
        return NotImplemented
    return cat_directly(tensors, 0 if ranks[0] == 1 else 1)


def _ranks_of(tensors: Any) -> list[int]:
    if type(tensors) not in (list, tuple):
        return []
    values = [one._value if isinstance(one, Tensor) else one for one in tensors]
    return [one.ndim for one in values] if all(type(one) is np.ndarray for one in values) else []


def appended_directly(array: Any = None, values: Any = None, axis: Any = None, *more: Any) -> Any:
    """The short way of `np.append` of vectors."""
    pair = array, values
    is_plain = axis is None and not more and _ranks_of(pair) == [1, 1]
    return cat_directly(pair) if is_plain else NotImplemented


with_short_way(cat, cat_directly)
concat = concatenate = cat
_tensors = tensors


def _require_equal_but_for(dim: int, values: Sequence[Tensor]) -> None:
    first = tuple(values[0]._value.shape)
    for position, one in enumerate(values):
        shape = tuple(one._value.shape)
        if len(shape) != len(first):
            fail(
                ShapeError,
                f"cat: Tensors must have same number of dimensions: got {len(first)} and {len(shape)} "
                f"(shapes {first} and {shape})",
            )
        for axis, (extent, expected) in enumerate(zip(shape, first)):
            if extent != expected and axis != dim:
                fail(
                    ShapeError,
                    f"cat: Sizes of tensors must match except in dimension {dim}. Expected size {expected} "
                    f"but got size {extent} for tensor number {position} in the list (shapes {first} and "
                    f"{shape}).",
                )


@numpy_names
def stack(tensors: Iterable[Tensor], dim: int = 0) -> Tensor:
    """The tensors, all of one shape, side by side along a new dimension.

    Raises:
        ShapeError: the shapes differ.

    Example:
        >>> stack([tensor([1, 2]), tensor([3, 4])])
        tensor([[1, 2],
                [3, 4]])
    """
    if (short := stack_directly(tensors, dim)) is not NotImplemented:
        return short
    values = _of_one_dtype(_tensors(tensors, "stack"))
    shape = tuple(values[0]._value.shape)
    for position, one in enumerate(values):
        if tuple(one._value.shape) != shape:
            fail(
                ShapeError,
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and "
                f"{list(one.shape)} at entry {position}",
            )
    dim = one_dim(dim, len(shape) + 1, "stack")
    return apply(c.stack, *values, dim=dim, grad_name="StackBackward0")


def stack_directly(tensors: Any = None, axis: Any = 0, *more: Any) -> Any:
    """A list of tensors of one dtype and one shape stacked; NotImplemented for what takes a closer look."""
    if type(tensors) not in (list, tuple) or not tensors or type(axis) is not int or more:
        return NotImplemented
    shape, dtype = (), None
    for one in tensors:
        if not isinstance(one, Tensor):
            return NotImplemented
        value = one._value
        if dtype is None:
            shape, dtype = value.shape, value.dtype
        elif value.dtype != dtype or value.shape != shape:
            return NotImplemented
    rank = len(shape) + 1
    if not -rank <= axis < rank:
        return NotImplemented
    short = _stacked(tensors, dim=axis % rank)
    if short is not NotImplemented:
        return short
    return apply(c.stack, *tensors, dim=axis % rank, grad_name="StackBackward0")


with_short_way(stack, stack_directly)


def hstack(tensors: Iterable[Tensor]) -> Tensor:
    """The tensors side by side: along dimension 1, vectors along 0.

    Example:
        >>> hstack([tensor([1, 2]), tensor([3])])
        tensor([1, 2, 3])
    """
    values = [atleast_1d(one) for one in _tensors(tensors, "hstack")]
    return cat(values, 0 if values[0].ndim == 1 else 1)


with_short_way(hstack, columns_directly)


def vstack(tensors: Iterable[Tensor]) -> Tensor:
    """The tensors one below another: along dimension 0, vectors as rows.

    Example:
        >>> vstack([tensor([1, 2]), tensor([3, 4])])
        tensor([[1, 2],
                [3, 4]])
    """
    return cat([atleast_2d(one) for one in _tensors(tensors, "vstack")], 0)


row_stack = vstack


def dstack(tensors: Iterable[Tensor]) -> Tensor:
    """The tensors one behind another: along dimension 2.

    Example:
        >>> dstack([tensor([1, 2]), tensor([3, 4])]).shape
        torch.Size([1, 2, 2])
    """
    return cat([atleast_3d(one) for one in _tensors(tensors, "dstack")], 2)


def column_stack(tensors: Iterable[Tensor]) -> Tensor:
    """Vectors as the columns of a matrix; matrices side by side.

    Example:
        >>> column_stack([tensor([1, 2]), tensor([3, 4])])
        tensor([[1, 3],
                [2, 4]])
    """
    values = _tensors(tensors, "column_stack")
    return hstack([one if one.ndim > 1 else reshape_to(one, (one.numel(), 1)) for one in values])


# --- apart --------------------------------------------------------------------------------------------


def _cut(
    x: Tensor, dim: int, lengths: Iterable[int], grad_name: str = "SplitBackward0"
) -> tuple[Tensor, ...]:
    pieces, start = [], 0
    for length in lengths:
        pieces.append(part(x, dim, start, start + length, grad_name=grad_name))
        start += length
    return tuple(pieces) if grad_name == "SliceBackward0" else as_several_views(pieces, "split")


@numpy_names
def split(
    tensor: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None
) -> tuple[Tensor, ...]:
    """The tensor in pieces along a dimension: all of one size (the last may be smaller), or of given sizes.

    Raises:
        ArgumentError: the sizes do not add up to the dimension's, or the size is not positive.

    Example:
        >>> split(tensor([1, 2, 3]), 2)
        (tensor([1, 2]), tensor([3]))
    """
    x = _tensor(tensor, "split")
    split_size_or_sections = split_size if split_size_or_sections is None else split_size_or_sections
    dim = own_dim(dim, x, "split")
    extent = x._value.shape[dim]
    if isinstance(split_size_or_sections, int | np.integer):
        size = int(split_size_or_sections)
        if size < 0 or (size == 0 and extent):
            fail(ArgumentError, f"split expects split_size be positive, but got split_size={size}")
        starts = range(0, extent, size) if extent else range(1)
        return _cut(x, dim, [min(size, extent - start) for start in starts])
    lengths = [int(length) for length in split_size_or_sections]
    if sum(lengths) != extent or any(length < 0 for length in lengths):
        fail(
            ArgumentError,
            f"split_with_sizes expects split_sizes to sum exactly to {extent} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={lengths}",
        )
    return _cut(x, dim, lengths, "SplitWithSizesBackward0")


_tensor = tensor


@numpy_names
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """The tensor in at most `chunks` pieces of one size along a dimension; the last may be smaller.

    Of an empty dimension there are as many as that.

    Example:
        >>> chunk(tensor([1, 2, 3]), 2)
        (tensor([1, 2]), tensor([3]))
    """
    x = _tensor(input, "chunk")
    if chunks < 1:
        fail(ArgumentError, f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    extent = x._value.shape[own_dim(dim, x, "chunk")]
    if not extent:
        return split(x, [0] * chunks, dim)
    return split(x, -(-extent // chunks), dim)


@numpy_names
def tensor_split(
    input: Tensor, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None, sections: Any = None
) -> tuple[Tensor, ...]:
    """The tensor in so many nearly equal pieces along a dimension, or cut before the given positions.

    Example:
        >>> tensor_split(tensor([1, 2, 3]), (1,))
        (tensor([1]), tensor([2, 3]))
    """
    x = _tensor(input, "tensor_split")
    given = [one for one in (indices_or_sections, indices, sections) if one is not None]
    if len(given) != 1:
        fail(ArgumentError, "tensor_split(): give indices or sections, one of them.")
    indices_or_sections = given[0]
    dim = own_dim(dim, x, "tensor_split")
    extent = x._value.shape[dim]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, int | np.integer):
        sections = int(indices_or_sections)
        if sections < 1:
            fail(ArgumentError, f"number of sections must be larger than 0, got {sections}")
        least, larger = divmod(extent, sections)
        return _cut(x, dim, [least + 1] * larger + [least] * (sections - larger), "SliceBackward0")
    if isinstance(indices_or_sections, str):
        fail(ArgumentError, f"tensor_split(): positions expected, found {indices_or_sections!r}")
    cuts = [slice(None, int(cut)).indices(extent)[1] for cut in indices_or_sections]
    bounds = zip([0, *cuts], [*cuts, extent])
    return tuple(part(x, dim, start, max(start, stop)) for start, stop in bounds)


def hsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along dimension 1, of a vector along 0.

    Example:
        >>> hsplit(tensor([1, 2]), 2)
        (tensor([1]), tensor([2]))
    """
    return tensor_split(input, indices_or_sections, 0 if input.ndim == 1 else 1)


def vsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along dimension 0.

    Example:
        >>> vsplit(tensor([[1], [2]]), 2)
        (tensor([[1]]), tensor([[2]]))
    """
    return tensor_split(input, indices_or_sections, 0)


def dsplit(input: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` along dimension 2.

    Example:
        >>> dsplit(tensor([[[1, 2]]]), 2)
        (tensor([[[1]]]), tensor([[[2]]]))
    """
    if input.ndim < 3:
        fail(
            ShapeError, f"dsplit requires a tensor with at least 3 dimension, but got {input.ndim} dimensions"
        )
    return tensor_split(input, indices_or_sections, 2)


@numpy_names
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The tensor's slices along a dimension, without that dimension.

    Example:
        >>> unbind(tensor([[1, 2], [3, 4]]))
        (tensor([1, 2]), tensor([3, 4]))
    """
    x = _tensor(input, "unbind")
    dim = own_dim(dim, x, "unbind")
    rows = [selected(x, dim, index, "UnbindBackward0") for index in range(x._value.shape[dim])]
    return as_several_views(rows, "unbind")


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinates of a grid: for vectors of sizes n, m, ... as many tensors of shape (n, m, ...).

    Args:
        tensors: vectors or 0-d tensors, one by one or as one list.
        indexing: "ij", or "xy" for the first two dimensions exchanged.

    Raises:
        ArgumentError: another indexing.

    Example:
        >>> meshgrid(tensor([1, 2]), tensor([3, 4]))[0]
        tensor([[1, 1],
                [2, 2]])
    """
    if indexing not in ("ij", "xy"):
        fail(ArgumentError, f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    given = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor | np.ndarray) else tensors
    vectors = [atleast_1d(one) for one in _tensors(given, "meshgrid")]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    extents = [vectors[position].numel() for position in order]
    grids = []
    for position, vector in enumerate(vectors):
        place = order.index(position)
        shape = tuple(vector.numel() if axis == place else 1 for axis in range(len(order)))
        grids.append(expand_to(reshape_to(vector, shape), tuple(extents)))
    return tuple(grids)
