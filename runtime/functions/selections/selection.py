"""Elements chosen by index tensors or masks: gather and scatter.

Index values are checked, and negative ones counted from the end: where they are not known, by the code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from ....tracer.errors import (
    ArgumentError,
    DTypeError,
    EagerOnlyError,
    ShapeError,
)
from ....tracer.ops import elementwise as e
from ....tracer.ops import indexing as x_ops
from ....tracer.ops.reduction import amax, amin, cumsum, sum_
from ....tracer.spec import BOOL, INT64
from ....tracer.trace import is_tracing
from ...tape.apply import apart_from, apply, unwrap, wrap
from ...values.tensor import Tensor
from ..common import (
    Scalar,
    array_dtype,
    as_dtype,
    fail,
    filled,
    iota,
    numpy_names,
    one_dim,
    own_dim,
    require_broadcast,
    require_fitting_dtype,
    scalar_of,
    tensor,
    torch_name,
    truth,
)  # fmt: skip
from ..shapes.joining import stack
from ..shapes.movement import expand_to, permuted, reshape_to
from ..shapes.parts import along, part, positions_along
from .indexing import getitem, updated
from .parsed_index import first_true_positions, true_positions, wrapped_indices

__all__ = [
    "argwhere", "gather", "index_add", "index_copy", "index_fill", "index_put", "index_select",
    "masked_fill", "masked_scatter", "masked_select", "nonzero", "nonzero_static", "one_hot",
    "repeat_interleave", "scatter_add", "take", "take_along_dim",
]  # fmt: skip


# --- index tensors --------------------------------------------------------------------------------------


def index_positions(index: Any, extent: int, dim: int, function: str) -> Tensor:
    """An index tensor as int64 counted from the front."""
    found = tensor(index, function, "index")
    if array_dtype(found).kind not in "iu":
        fail(
            DTypeError,
            f"{function}(): Expected dtype int64 for index, found {found.dtype} of shape "
            f"{tuple(found.shape)}",
        )
    return wrapped_indices(found, extent, dim)


@numpy_names
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """At each place p of `index` the element of input at p with p[dim] replaced by the index there.

    Args:
        input: a tensor.
        dim: the dimension that is indexed.
        index: integers, of as many dimensions as input, and no larger in the others than `dim`.
        sparse_grad: accepted.

    Raises:
        DimensionError: an index out of bounds. ShapeError: index does not fit. DTypeError: it holds no
            integers.

    Example:
        >>> gather(tensor([[1, 2], [3, 4]]), 1, tensor([[0], [1]]))
        tensor([[1],
                [4]])
    """
    x = tensor(input, "gather")
    dim = one_dim(dim, x.ndim, "gather")
    require_index_shape(x, index, dim, "gather")
    if not index.numel() and index.ndim != x.ndim:
        return reshape_to(part(reshape_to(x, (x.numel(),)), 0, 0, 0), tuple(index.shape))
    if not x.ndim:
        found = gather(reshape_to(x, (1,)), 0, index.reshape(-1))
        return reshape_to(found, tuple(index.shape), "GatherBackward0")
    return along(x, index_positions(index, x._value.shape[dim], dim, "gather"), dim, "GatherBackward0")


def require_index_shape(x: Tensor, index: Any, dim: int, function: str) -> None:
    found = tensor(index, function, "index")
    if not found.numel():
        return
    if max(found.ndim, 1) != max(x.ndim, 1):
        fail(
            ShapeError,
            f"Index tensor must have the same number of dimensions as input tensor: {function}() found "
            f"shapes {tuple(found.shape)} and {tuple(x.shape)}",
        )
    for axis, (extent, bound) in enumerate(zip(found.shape, x.shape)):
        if axis != dim and extent > bound:
            fail(
                ShapeError,
                f"Size does not match at dimension {axis} expected index {list(found.shape)} to be no "
                f"larger than self {list(x.shape)} apart from dimension {dim}",
            )


def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements at positions of the flattened tensor, in the shape of `index`.

    Example:
        >>> take(tensor([[1, 2], [3, 4]]), tensor([0, 3]))
        tensor([1, 4])
    """
    x = tensor(input, "take")
    flat = reshape_to(x, (x.numel(),))
    return apply(x_ops.gather, flat, index_positions(index, x.numel(), 0, "take"), grad_name="TakeBackward0")


@numpy_names
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather` with the other dimensions broadcast; of the flattened tensors without dim.

    Example:
        >>> take_along_dim(tensor([[2, 1]]), argsort(tensor([[2, 1]]), dim=1), dim=1)
        tensor([[1, 2]])
    """
    x, index = tensor(input, "take_along_dim"), tensor(indices, "take_along_dim", "indices")
    if dim is None:
        return take(x, reshape_to(index, (index.numel(),)))
    dim = one_dim(dim, x.ndim, "take_along_dim")
    if index.ndim != x.ndim:
        fail(
            ShapeError,
            "take_along_dim(): input and indices should have the same number of dimensions, found shapes "
            f"{tuple(x.shape)} and {tuple(index.shape)}",
        )
    own, wanted = list(x._value.shape), list(index._value.shape)
    common = np.broadcast_shapes(tuple(own[:dim] + own[dim + 1 :]), tuple(wanted[:dim] + wanted[dim + 1 :]))
    x = expand_to(x, (*common[:dim], own[dim], *common[dim:]))
    index = expand_to(index, (*common[:dim], wanted[dim], *common[dim:]))
    return gather(x, dim, index)


@numpy_names
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of a dimension at the positions in a vector.

    Example:
        >>> index_select(tensor([[1, 2], [3, 4]]), 1, tensor([1]))
        tensor([[2],
                [4]])
    """
    x = tensor(input, "index_select")
    dim = one_dim(dim, x.ndim, "index_select")
    if not x.ndim:
        return index_select(reshape_to(x, (1,)), 0, index).reshape(())
    rows = _vector(index, x._value.shape[dim], dim, "index_select")
    order = [dim, *(axis for axis in range(x.ndim) if axis != dim)]
    chosen = apply(x_ops.gather, permuted(x, order) if dim else x, rows, grad_name="IndexSelectBackward0")
    back = [*range(1, dim + 1), 0, *range(dim + 1, x.ndim)]
    return permuted(chosen, back, "IndexSelectBackward0") if dim else chosen


def _vector(index: Any, extent: int, dim: int, function: str) -> Tensor:
    found = index_positions(index, extent, dim, function)
    if found.ndim > 1:
        fail(ShapeError, f"{function}(): Index is supposed to be a vector, but got dim: {found.ndim}")
    return reshape_to(found, (found.numel(),))


@numpy_names
def repeat_interleave(
    input: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element so many times in a row, along a dimension or in the flattened tensor.

    Args:
        repeats: one number for all, or a vector with one for each position of the dimension. Without it
            the numbers are those of `input`, and the positions are repeated.
        output_size: the sum of the numbers. Without it each sum is a path of its own in a compiled function,
            where the numbers depend on its arguments.

    Raises:
        ArgumentError: a negative number, where it is known. DTypeError: numbers that are no integers.
        ShapeError: the vector has another size, or the sum is not `output_size`.

    Example:
        >>> repeat_interleave(tensor([1, 2]), 2)
        tensor([1, 1, 2, 2])
    """
    x = tensor(input, "repeat_interleave")
    if repeats is None:
        return _each_repeated(iota(x.numel()), x, 0, output_size)
    if dim is None:
        x, dim = reshape_to(x, (x.numel(),)), 0
    dim = own_dim(dim, x, "repeat_interleave")
    shape = tuple(x._value.shape)
    if not isinstance(repeats, int | np.integer):
        return _each_repeated(x, repeats, dim, output_size)
    column = reshape_to(x, (*shape[: dim + 1], 1, *shape[dim + 1 :]))
    spread = expand_to(column, (*shape[: dim + 1], int(repeats), *shape[dim + 1 :]))
    found = reshape_to(spread, (*shape[:dim], shape[dim] * int(repeats), *shape[dim + 1 :]))
    return apart_from(x, found)


def _each_repeated(x: Tensor, repeats: Any, dim: int, output_size: int | None) -> Tensor:
    """Each position of a dimension as often as its own number says."""
    counts = repeats if isinstance(repeats, Tensor) else wrap(np.asarray(repeats, np.int64))
    extent, known = x._value.shape[dim], unwrap(counts)
    if array_dtype(counts).kind not in "iu":
        fail(DTypeError, f"repeat_interleave(): repeats must be integers, found {counts.dtype}.")
    if tuple(counts._value.shape) not in ((), (1,), (extent,)):
        fail(
            ShapeError,
            f"repeat_interleave(): repeats must be {extent} numbers from 0 on, one for each position of "
            f"dimension {dim}; found shape {tuple(counts.shape)}.",
        )
    if isinstance(known, np.ndarray) and known.min(initial=0) < 0:
        fail(ArgumentError, f"repeat_interleave(): repeats can not be negative, found {known.tolist()}.")
    spread = expand_to(as_dtype(reshape_to(counts, (counts.numel(),)), INT64), (extent,))
    total = apply(sum_, spread, dims=(0,), keepdim=False)
    if output_size is not None and bool(apply(e.not_equal, total, output_size)):
        fail(
            ShapeError,
            f"repeat_interleave(): allocated size does not match required size: output_size is {output_size}"
            ", and the sum of repeats another number.",
        )
    if isinstance(known, np.ndarray) and not is_tracing():
        each = np.broadcast_to(known.ravel(), (extent,))
        return index_select(x, dim, wrap(np.repeat(np.arange(extent), each)))
    size = int(total) if output_size is None else output_size
    ends = apply(cumsum, spread, dim=0)
    passed = apply(x_ops.scatter_add, filled((extent,), 1, INT64), ends, shape=(size + 1,))
    return index_select(x, dim, apply(cumsum, part(passed, 0, 0, size), dim=0))  # how many ended before


# --- scatter --------------------------------------------------------------------------------------------


def cropped(values: Tensor, shape: Sequence[int], function: str) -> Tensor:
    """The part of src that index has places for."""
    if any(extent < wanted for extent, wanted in zip(values._value.shape, shape)) or values.ndim != len(
        shape
    ):
        fail(
            ShapeError,
            f"{function}(): Expected index {list(shape)} to be no larger than src {list(values.shape)} in "
            "every dimension",
        )
    for dim, wanted in enumerate(shape):
        if values._value.shape[dim] != wanted:
            values = part(values, dim, 0, wanted)
    return values


@numpy_names
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Any) -> Tensor:
    """input with src added where `gather` with the same index would read; repeated places add up.

    Example:
        >>> scatter_add(tensor([0, 0]), 0, tensor([1, 1]), tensor([5, 6]))
        tensor([ 0, 11])
    """
    x = tensor(input, "scatter_add")
    dim = one_dim(dim, x.ndim, "scatter_add")
    require_index_shape(x, index, dim, "scatter_add")
    if not index.numel():
        return apply(e.identity, x)
    if not x.ndim:
        added = scatter_add(reshape_to(x, (1,)), 0, index.reshape(-1), src.reshape(-1))
        return reshape_to(added, (), "ScatterAddBackward0")
    added = tensor(src, "scatter_add", "src")
    if array_dtype(added) != array_dtype(x):
        fail(
            DTypeError,
            f"scatter_add(): Expected self.dtype to be equal to src.dtype, found {torch_name(x)} and "
            f"{torch_name(added)}. Convert one, e.g. with .to(x.dtype).",
        )
    places = index_positions(index, x._value.shape[dim], dim, "scatter_add")
    values = cropped(added, places._value.shape, "scatter_add")
    total = apply(x_ops.scatter_add, values, *positions_along(places, dim), shape=tuple(x._value.shape))
    return apply(e.add, x, total, grad_name="ScatterAddBackward0")


def require_rows(x: Tensor, source: Tensor, index: Tensor, dim: int, function: str) -> None:
    """ShapeError unless source has, along a dimension, a slice of x for each position."""
    expected = [index.numel() if axis == dim else extent for axis, extent in enumerate(x.shape)]
    if list(source.shape) != expected:
        fail(
            ShapeError,
            f"{function}(): source tensor shape must match self tensor shape, excluding the specified "
            f"dimension. Got self.shape = {list(x.shape)} source.shape = {list(source.shape)}, and "
            f"{index.numel()} indices",
        )


@numpy_names
def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Scalar = 1) -> Tensor:
    """input with alpha times the slices of source added at the positions in a vector along a dimension.

    Example:
        >>> index_add(tensor([1.0, 1.0]), 0, tensor([1, 1]), tensor([2.0, 3.0]))
        tensor([1., 6.])
    """
    x, values = tensor(input, "index_add"), tensor(source, "index_add", "source")
    require_fitting_dtype(x, values, "index_add")
    if not x.ndim and values.ndim <= 1:
        return reshape_to(
            index_add(x.reshape(1), dim, index.reshape(-1), values.reshape(-1), alpha=alpha), ()
        )
    dim = own_dim(dim, x, "index_add")
    require_rows(x, values, index, dim, "index_add")
    rows = _vector(index, x._value.shape[dim], dim, "index_add")
    if alpha != 1:
        values = apply(e.multiply, values, scalar_of(alpha, array_dtype(values)))
    order = [dim, *(axis for axis in range(x.ndim) if axis != dim)]
    shape = tuple(x._value.shape[axis] for axis in order)
    total = apply(x_ops.scatter_add, permuted(values, order) if dim else values, rows, shape=shape)
    back = [*range(1, dim + 1), 0, *range(dim + 1, x.ndim)]
    return apply(e.add, x, permuted(total, back) if dim else total, grad_name="IndexAddBackward0")


def _at(x: Tensor, dim: int, index: Tensor, function: str) -> tuple[Any, ...]:
    dim = one_dim(dim, x.ndim, function)
    return (*(slice(None) for _ in range(dim)), _vector(index, x._value.shape[dim], dim, function))


@numpy_names
def index_fill(input: Tensor, dim: int, index: Tensor, value: Scalar) -> Tensor:
    """input with a number at the positions in a vector along a dimension.

    Example:
        >>> index_fill(tensor([1, 2, 3]), 0, tensor([0, 2]), 9)
        tensor([9, 2, 9])
    """
    x = tensor(input, "index_fill")
    filler = value if isinstance(value, Tensor) else scalar_of(value, array_dtype(x))
    if not x.ndim:
        return reshape_to(index_fill(reshape_to(x, (1,)), dim, index.reshape(-1), value), ())
    return updated(x, _at(x, dim, index, "index_fill"), filler)


@numpy_names
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """input with the slices of source at the positions in a vector along a dimension.

    Example:
        >>> index_copy(tensor([1, 2, 3]), 0, tensor([0, 2]), tensor([8, 9]))
        tensor([8, 2, 9])
    """
    x = tensor(input, "index_copy")
    if not x.ndim:
        return reshape_to(index_copy(reshape_to(x, (1,)), dim, index.reshape(-1), source.reshape(-1)), ())
    return updated(x, _at(x, dim, index, "index_copy"), source)


def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
    """input with values written, or added, at input[indices].

    Example:
        >>> index_put(tensor([1, 2, 3]), (tensor([0]),), tensor(9))
        tensor([9, 2, 3])
    """
    x = tensor(input, "index_put")
    if not accumulate:
        return updated(x, tuple(indices), values)
    indices = [
        place
        for one in indices
        for place in (true_positions(one) if array_dtype(tensor(one, "index_put")) == BOOL else [one])
    ]
    values = tensor(values, "index_put", "values")
    require_fitting_dtype(x, values, "index_put")
    zeros = filled(tuple(x._value.shape), 0, array_dtype(x))
    chosen = getitem(x, tuple(indices))
    arrays = np.broadcast_shapes(*(tuple(one.shape) for one in indices))
    places = [
        expand_to(index_positions(one, x._value.shape[dim], dim, "index_put"), arrays)
        for dim, one in enumerate(indices)
    ]
    spread = expand_to(as_dtype(values, array_dtype(x)), tuple(chosen._value.shape))
    total = apply(x_ops.scatter_add, spread, *places, shape=tuple(zeros._value.shape))
    return apply(e.add, x, total, grad_name="IndexPutBackward0")


# --- masks ----------------------------------------------------------------------------------------------


def _mask(mask: Any, function: str) -> Tensor:
    found = tensor(mask, function, "mask")
    if array_dtype(found) != BOOL:
        fail(
            DTypeError,
            f"{function} only supports boolean masks, but got mask with dtype {found.dtype}. Compare first, "
            "e.g. mask > 0.",
        )
    return found


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """input with a number, or a 0-d tensor, where the mask is true.

    Example:
        >>> masked_fill(tensor([1.0, 2.0]), tensor([True, False]), 0)
        tensor([0., 2.])
    """
    x, found = tensor(input, "masked_fill"), _mask(mask, "masked_fill")
    dtype = array_dtype(x)
    require_broadcast("masked_fill", [x, found])
    if isinstance(value, Tensor) and value.ndim:
        fail(
            ShapeError,
            "masked_fill only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s).",
        )
    is_complex = value.is_complex() if isinstance(value, Tensor) else isinstance(value, complex)
    if is_complex and dtype.kind != "c":
        fail(
            DTypeError,
            f"masked_fill(): a complex value cannot be put into a tensor of {torch_name(x)}: take its .real, "
            "or convert the tensor.",
        )
    filler = as_dtype(value, dtype) if isinstance(value, Tensor) else scalar_of(value, dtype)
    return apply(e.where, found, filler, x, grad_name="MaskedFillBackward0")


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask is true, as a vector.

    In a compiled function each number of elements is a path of its own.

    Example:
        >>> masked_select(tensor([1, 2, 3]), tensor([True, False, True]))
        tensor([1, 3])
    """
    x, found = tensor(input, "masked_select"), _mask(mask, "masked_select")
    require_broadcast("masked_select", [x, found])
    shape = np.broadcast_shapes(tuple(x.shape), tuple(found.shape))
    if not shape:
        return getitem(x, found)
    places = true_positions(expand_to(found, shape))
    return apply(x_ops.gather, expand_to(x, shape), *places, grad_name="MaskedSelectBackward0")


def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """input with the elements of source, in order, where the mask is true.

    In a compiled function each number of elements is a path of its own.

    Example:
        >>> masked_scatter(tensor([1, 2]), tensor([False, True]), tensor([9]))
        tensor([1, 9])
    """
    x, found = tensor(input, "masked_scatter"), _mask(mask, "masked_scatter")
    require_broadcast("masked_scatter", [x, found])
    shape = np.broadcast_shapes(tuple(x.shape), tuple(found.shape))
    x, chosen = expand_to(x, shape), expand_to(found, shape)
    return updated(x, chosen, part(source.reshape(-1), 0, 0, int(chosen.sum())))


def values_of(x: Tensor, function: str) -> np.ndarray:
    """The elements; EagerOnlyError in a traced function."""
    values = unwrap(x)
    if is_tracing() or not isinstance(values, np.ndarray):
        fail(
            EagerOnlyError,
            f"{function}() needs the elements of a tensor of shape {tuple(x.shape)}, which are not known "
            "while the function is traced. Call it outside, and pass the result in.",
        )
    return values


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not zero: a row for each, or a tuple with a vector for each
    dimension.

    In a compiled function each number of elements is a path of its own.

    Example:
        >>> nonzero(tensor([0, 1, 2]))
        tensor([[1],
                [2]])
    """
    x = tensor(input, "nonzero")
    if not x.ndim and as_tuple:
        x = x.reshape(1)
    found = x if array_dtype(x) == BOOL else apply(e.not_equal, x, 0)
    if not x.ndim:
        return wrap(np.zeros((int(bool(found)), 0), np.int64))
    positions = true_positions(found)
    return tuple(positions) if as_tuple else stack(positions, dim=1)


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """`nonzero` in so many rows: cut off, or filled up with `fill_value`.

    Raises:
        ArgumentError: a negative size.

    Example:
        >>> nonzero_static(tensor([0, 1, 2]), size=3)
        tensor([[ 1],
                [ 2],
                [-1]])
    """
    x = tensor(input, "nonzero_static")
    if size < 0:
        fail(ArgumentError, f"nonzero_static(): 'size' must be 0 or more, found {size}.")
    positions, exist = first_true_positions(truth(x), size)
    rows = stack([apply(e.where, exist, one, int(fill_value)) for one in positions], 1)
    return rows if x.ndim else part(rows, 1, 0, 0)  # of a number there are rows of nothing


def argwhere(input: Tensor) -> Tensor:
    """The positions of the elements that are not zero, a row for each.

    Example:
        >>> argwhere(tensor([0, 1]))
        tensor([[1]])
    """
    return cast(Tensor, nonzero(input))


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A new last dimension with 1 at the position that the integer says, else 0.

    Args:
        tensor: integers from 0 on.
        num_classes: the size of the new dimension; -1 for the largest integer plus 1: in a compiled function
            each is a path of its own.

    Raises:
        DTypeError: not integers. ArgumentError: an integer below 0 or too large.

    Example:
        >>> one_hot(tensor([0, 2]))
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    x = _tensor(tensor, "one_hot")
    if array_dtype(x).kind not in "iu":
        fail(DTypeError, f"one_hot is only applicable to index tensor of type LongTensor, found {x.dtype}")
    if num_classes == -1:
        num_classes = int(x.max()) + 1 if x.numel() else 0
    if x.numel():
        x = _classes(x, num_classes)
    column = as_dtype(x, INT64).reshape((*x.shape, 1))
    return as_dtype(apply(e.equal, column, iota(num_classes)), INT64)


def _classes(x: Tensor, count: int) -> Tensor:
    """x, if its integers are from 0 to `count` - 1; ArgumentError elsewhere, in code as well."""
    from ...solvers.requirements import Failure, require  # which has functions of its own

    low, high = (apply(one, x, dims=tuple(range(x.ndim)), keepdim=False) for one in (amin, amax))
    text = f"one_hot: Class values must be from 0 to num_classes - 1 = {count - 1}, found {{0}} to {{1}}."
    holds = apply(e.logical_and, apply(e.greater_equal, low, 0), apply(e.less, high, count))
    return require(x, holds, Failure(text, ArgumentError), low, high)


_tensor = tensor
