"""Functions that give the same elements another shape, another order of dimensions, or repeat them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, DimensionError, ShapeError, UnsupportedError
from ....tracer.ops import movement as m
from ....tracer.spec import broadcast_shapes
from ...tape.apply import apart_from, apply
from ...tape.composed import of_several
from ...tape.direct import direct_view
from ...values.tensor import Tensor
from ..common import (
    conjugate,
    fail,
    numpy_names,
    one_dim,
    own_dim,
    require_broadcast,
    sizes,
    tensor,
    with_short_way,
)

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "broadcast_to", "expand",
    "expand_as", "flatten", "moveaxis", "movedim", "permute", "ravel", "repeat", "reshape",
    "reshape_as", "squeeze", "swapaxes", "swapdims", "t", "tile", "transpose", "unflatten",
    "unsqueeze", "view", "view_as",
]  # fmt: skip

# --- shapes -------------------------------------------------------------------------------------------


def reshape_to(x: Tensor, shape: tuple[int, ...], grad_name: str | None = None) -> Tensor:
    """x in a complete shape; itself if it has it."""
    return x if x._value.shape == shape else apply(m.reshape, x, shape=shape, grad_name=grad_name)


_reshaped = direct_view(m.reshape, "ViewBackward0")
_permuted = direct_view(m.permute)
_exchanged = direct_view(m.permute, "TransposeBackward0")
_with_dim = direct_view(m.reshape, "UnsqueezeBackward0")
_squeezed = direct_view(m.reshape, "SqueezeBackward0")
_without_dim = direct_view(m.reshape, "SqueezeBackward1")


def reshape_directly(input: Any = None, *extents: Any) -> Any:
    """The short way of `reshape` to plain integers, one of which may be -1; else NotImplemented."""
    shape = extents[0] if len(extents) == 1 else extents
    if type(shape) is not int and not (type(shape) in (tuple, list) and INTEGER.issuperset(map(type, shape))):
        return NotImplemented
    return _reshaped(input, _shape_of, shape=shape)


def raveled_directly(input: Any = None, order: Any = "C", *more: Any) -> Any:
    """All dimensions merged into one where that copies nothing, by a short way; else NotImplemented."""
    if more or order != "C" or not isinstance(input, Tensor):
        return NotImplemented
    value = input._value
    if type(value) is not np.ndarray or value.ndim < 2 or not value.flags.c_contiguous:
        return NotImplemented
    return _reshaped(input, _shape_of, shape=-1)


def with_dim_directly(input: Any = None, axis: Any = None, *more: Any) -> Any:
    """The short way of one new dimension of size 1."""
    if more or type(axis) is not int or not isinstance(input, Tensor):
        return NotImplemented
    shape = tuple(input._value.shape)
    rank = len(shape) + 1
    if not -rank <= axis < rank:
        return NotImplemented
    axis %= rank
    return _with_dim(input, shape=(*shape[:axis], 1, *shape[axis:]))


def squeezed_directly(input: Any = None, axis: Any = None, *more: Any) -> Any:
    """The short way of the shape without dimensions of size 1, or without one of them."""
    if more or not isinstance(input, Tensor):
        return NotImplemented
    shape = tuple(input._value.shape)
    if axis is None:
        left = tuple([one for one in shape if one != 1])
        return _squeezed(input, shape=left) if left else NotImplemented
    if type(axis) is not int or not -len(shape) <= axis < len(shape) or shape[axis] != 1 or len(shape) == 1:
        return NotImplemented
    axis %= len(shape)
    return _without_dim(input, shape=shape[:axis] + shape[axis + 1 :])


def _shape_of(shown: np.ndarray) -> dict[str, Any]:
    return {"shape": shown.shape}


def permuted_directly(input: Any = None, axes: Any = None) -> Any:
    """The short way of `permute` by plain integers, or to the reverse order; else NotImplemented."""
    if not isinstance(input, Tensor):
        return NotImplemented
    rank = len(input._value.shape)
    if axes is None:
        return _permuted(input, dims=tuple(range(rank - 1, -1, -1)))
    if type(axes) not in (tuple, list) or len(axes) != rank or not INTEGER.issuperset(map(type, axes)):
        return NotImplemented
    dims = tuple([axis % rank for axis in axes if -rank <= axis < rank])
    return _permuted(input, dims=dims) if len(dims) == rank else NotImplemented


def exchanged_directly(input: Any = None, *dims: Any) -> Any:
    """The short way of `transpose`."""
    if not isinstance(input, Tensor) or len(dims) != 2 or not INTEGER.issuperset(map(type, dims)):
        return NotImplemented
    order = list(range(len(input._value.shape)))
    try:
        order[dims[0]], order[dims[1]] = order[dims[1]], order[dims[0]]
    except IndexError:  # which the general way explains
        return NotImplemented
    return _exchanged(input, dims=tuple(order))


INTEGER = frozenset((int,))


def complete_shape(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """The shape with its one -1 replaced by what is left of `size`."""
    invalid = f"shape '{list(shape)}' is invalid for input of size {size}"
    unknown = shape.count(-1)
    known = math.prod(extent for extent in shape if extent != -1)
    if any(extent < -1 for extent in shape):
        fail(ShapeError, f"invalid shape dimension {min(shape)}")
    if unknown > 1:
        fail(ShapeError, f"only one dimension can be inferred, found -1 more than once in {list(shape)}")
    if unknown and not known:
        fail(
            ShapeError,
            f"cannot reshape tensor of {size} elements into shape {list(shape)}: -1 can be any value",
        )
    if unknown and size % known == 0:
        return tuple(size // known if extent == -1 else extent for extent in shape)
    if unknown or known != size:
        fail(ShapeError, f"{invalid}. The product of the sizes must be the number of elements.")
    return shape


def view(input: Tensor, *shape: Any, size: Any = None) -> Tensor:
    """The same elements in another shape, sharing memory where the layout allows; see `reshape`.

    Example:
        >>> view(tensor([1, 2, 3, 4]), 2, -1)
        tensor([[1, 2],
                [3, 4]])
    """
    x = tensor(input, "view")
    shape = shape if size is None else (size,)
    if len(shape) == 1 and not isinstance(shape[0], int | np.integer | Sequence):
        fail(UnsupportedError, "view(): another dtype for the same memory is not supported. Use .to(dtype).")
    return apply(m.reshape, x, shape=complete_shape(sizes(shape), x.numel()), grad_name="ViewBackward0")


def reshape(input: Tensor, *extents: Any, shape: Any = None) -> Tensor:
    """The same elements, in order, in another shape.

    Args:
        input: a tensor.
        extents, shape: sizes, one by one or as one sequence; one may be -1, for what is left.

    Raises:
        ShapeError: the sizes do not multiply to the number of elements.

    Example:
        >>> reshape(tensor([1, 2, 3, 4]), (2, -1))
        tensor([[1, 2],
                [3, 4]])
    """
    return view(input, *(extents if shape is None else (shape,)))


with_short_way(reshape, reshape_directly)
with_short_way(view, reshape_directly)


def view_as(input: Tensor, other: Tensor) -> Tensor:
    """input in the shape of other.

    Example:
        >>> view_as(tensor([1, 2]), tensor([[3, 4]]))
        tensor([[1, 2]])
    """
    return view(input, tuple(other.shape))


def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """input in the shape of other.

    Example:
        >>> reshape_as(tensor([1, 2]), tensor([[3, 4]]))
        tensor([[1, 2]])
    """
    return view(input, tuple(other.shape))


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from start_dim to end_dim merged into one.

    Example:
        >>> flatten(tensor([[1, 2], [3, 4]]))
        tensor([1, 2, 3, 4])
    """
    x = tensor(input, "flatten")
    start, end = one_dim(start_dim, x.ndim, "flatten"), one_dim(end_dim, x.ndim, "flatten")
    if start > end:
        fail(
            DimensionError, f"flatten() has invalid args: start_dim {start_dim} comes after end_dim {end_dim}"
        )
    shape = tuple(x._value.shape)
    merged = math.prod(shape[start : end + 1])
    return reshape_to(x, (*shape[:start], merged, *shape[end + 1 :]), "ViewBackward0")


def ravel(input: Tensor) -> Tensor:
    """All dimensions merged into one.

    Example:
        >>> ravel(tensor([[1, 2], [3, 4]]))
        tensor([1, 2, 3, 4])
    """
    return flatten(input)


with_short_way(ravel, lambda input=None, *more: NotImplemented if more else raveled_directly(input))


def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dimension split into several, of the given sizes; one may be -1.

    Example:
        >>> unflatten(tensor([1, 2, 3, 4]), 0, (2, 2))
        tensor([[1, 2],
                [3, 4]])
    """
    x = tensor(input, "unflatten")
    dim = own_dim(dim, x, "unflatten")
    shape = tuple(x._value.shape)
    return reshape_to(
        x, (*shape[:dim], *complete_shape(tuple(sizes), shape[dim]), *shape[dim + 1 :]), "ViewBackward0"
    )


@numpy_names
def squeeze(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Without dimensions of size 1: all of them, or those of `dim` that have size 1.

    Example:
        >>> squeeze(tensor([[1, 2]]))
        tensor([1, 2])
    """
    x = tensor(input, "squeeze")
    if dim is None:
        dims: tuple[int, ...] = tuple(range(x.ndim))
    else:
        given = [dim] if isinstance(dim, int | np.integer) else dim
        dims = tuple(one_dim(one, x.ndim, "squeeze") for one in given)
    shape = tuple(extent for axis, extent in enumerate(x._value.shape) if extent != 1 or axis not in dims)
    version = 0 if dim is None else 1 if isinstance(dim, int | np.integer) else 2
    return apply(m.reshape, x, shape=shape, grad_name=f"SqueezeBackward{version}")


with_short_way(squeeze, squeezed_directly)


@numpy_names
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """With a new dimension of size 1 at `dim`.

    Example:
        >>> unsqueeze(tensor([1, 2]), 0)
        tensor([[1, 2]])
    """
    x = tensor(input, "unsqueeze")
    dim = one_dim(dim, x.ndim + 1, "unsqueeze")
    shape = tuple(x._value.shape)
    return apply(m.reshape, x, shape=(*shape[:dim], 1, *shape[dim:]), grad_name="UnsqueezeBackward0")


with_short_way(unsqueeze, with_dim_directly)


def _of_each(function: Callable[[Tensor], Tensor], tensors: Sequence[Any]) -> Any:
    """The function of one tensor, or a tuple of its results for several, given one by one or as a list."""
    if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
        return tuple(map(function, tensors[0]))
    return function(tensors[0]) if len(tensors) == 1 else tuple(map(function, tensors))


def atleast_1d(*tensors: Any) -> Any:
    """A 0-d tensor as one of shape (1,); others as they are. Of several tensors a tuple.

    Example:
        >>> atleast_1d(tensor(1.0))
        tensor([1.])
    """
    return _of_each(_with_one, tensors)


def _with_one(input: Tensor) -> Tensor:
    x = tensor(input, "atleast_1d")
    return x if x.ndim else view(x, 1)


def atleast_2d(*tensors: Any) -> Any:
    """A vector as a matrix of one row, a 0-d tensor as one of shape (1, 1).

    Example:
        >>> atleast_2d(tensor([1.0, 2.0]))
        tensor([[1., 2.]])
    """
    return _of_each(_with_two, tensors)


def _with_two(input: Tensor) -> Tensor:
    x = tensor(input, "atleast_2d")
    return x if x.ndim > 1 else unsqueeze(_with_one(x), 0)


def atleast_3d(*tensors: Any) -> Any:
    """A matrix with a dimension of size 1 behind, a vector with one on either side.

    Example:
        >>> atleast_3d(tensor([1.0, 2.0])).shape
        torch.Size([1, 2, 1])
    """
    return _of_each(_with_three, tensors)


def _with_three(input: Tensor) -> Tensor:
    x = tensor(input, "atleast_3d")
    return x if x.ndim > 2 else unsqueeze(_with_two(x), -1)


# --- the order of dimensions -----------------------------------------------------------------------------


def permute(input: Tensor, *places: Any, dims: Any = None) -> Tensor:
    """The dimensions in another order: dimension i of the result is dims[i] of the input.

    Raises:
        ShapeError: `dims` does not name every dimension once.

    Example:
        >>> permute(tensor([[1, 2], [3, 4]]), (1, 0))
        tensor([[1, 3],
                [2, 4]])
    """
    x = tensor(input, "permute")
    order = sizes(places if dims is None else (dims,))
    if len(order) != x.ndim:
        fail(
            ShapeError,
            f"permute: number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {x.ndim} is not equal to len(dims) = {len(order)}",
        )
    order = tuple(one_dim(dim, x.ndim, "permute") for dim in order)
    if len(set(order)) < len(order):
        fail(ShapeError, f"permute(): duplicate dims are not allowed, found {order}.")
    return permuted(x, order)


with_short_way(permute, lambda x=None, *dims: permuted_directly(x, dims[0] if len(dims) == 1 else dims))


def permuted(x: Tensor, order: Sequence[int], grad_name: str | None = None) -> Tensor:
    dims = tuple(order)
    if grad_name is None and (short := _permuted(x, dims=dims)) is not NotImplemented:
        return short
    return apply(m.permute, x, dims=dims, grad_name=grad_name)


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged.

    Example:
        >>> transpose(tensor([[1, 2], [3, 4]]), 0, 1)
        tensor([[1, 3],
                [2, 4]])
    """
    x = tensor(input, "transpose")
    first, second = one_dim(dim0, x.ndim, "transpose"), one_dim(dim1, x.ndim, "transpose")
    order = list(range(x.ndim))
    if order:
        order[first], order[second] = second, first
    return permuted(x, order, "TransposeBackward0")


with_short_way(transpose, exchanged_directly)


def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """`transpose` under NumPy's name.

    Example:
        >>> swapaxes(tensor([[1, 2]]), 0, 1)
        tensor([[1],
                [2]])
    """
    return transpose(input, axis0, axis1)


swapdims = transpose


def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; tensors of fewer dimensions as they are.

    Raises:
        ShapeError: there are more than two dimensions.

    Example:
        >>> t(tensor([[1, 2], [3, 4]]))
        tensor([[1, 3],
                [2, 4]])
    """
    x = tensor(input, "t")
    if x.ndim > 2:
        fail(
            ShapeError,
            f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D. Use .mT or permute().",
        )
    return permuted(x, tuple(reversed(range(x.ndim))), "TBackward0")


def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, of complex numbers conjugated."""
    return conjugate(transpose(input, -2, -1))


def movedim(input: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """The dimensions `source` moved to the places `destination`; the others keep their order.

    Example:
        >>> movedim(tensor([[1, 2], [3, 4]]), 0, 1)
        tensor([[1, 3],
                [2, 4]])
    """
    x = tensor(input, "movedim")
    given = [[one] if isinstance(one, int | np.integer) else one for one in (source, destination)]
    origins, places = ([one_dim(dim, x.ndim, "movedim") for dim in dims] for dims in given)
    if len(origins) != len(places) or len(set(origins)) < len(origins) or len(set(places)) < len(places):
        fail(
            ArgumentError,
            f"movedim: Invalid source or destination dims: source ({origins} dims) should contain the same "
            f"number of dims as destination ({places} dims), each once",
        )
    rest = [dim for dim in range(x.ndim) if dim not in origins]
    for place, origin in sorted(zip(places, origins)) if x.ndim else ():  # a number may be told dimension 0
        rest.insert(place, origin)
    return permuted(x, rest)


moveaxis = movedim


def moved_to_end(x: Tensor, dims: Sequence[int]) -> Tensor:
    order = (*(dim for dim in range(x.ndim) if dim not in dims), *dims)
    return x if order == tuple(range(x.ndim)) else permuted(x, order)


# --- repetition ---------------------------------------------------------------------------------------


def expand(input: Tensor, *shape: Any, size: Any = None) -> Tensor:
    """Dimensions of size 1 repeated to a larger size, and new ones in front; no memory is copied.

    Args:
        input: a tensor.
        shape: the sizes wanted, one by one or as one sequence; -1 keeps a size.

    Raises:
        ShapeError: a dimension that is not 1 would change.

    Example:
        >>> expand(tensor([[1], [2]]), 2, 2)
        tensor([[1, 1],
                [2, 2]])
    """
    x = tensor(input, "expand")
    wanted, own = sizes(shape if size is None else (size,)), tuple(x._value.shape)
    extra = len(wanted) - len(own)
    if extra < 0:
        fail(
            ShapeError,
            f"expand(): the number of sizes provided ({len(wanted)}) must be greater or equal to the number "
            f"of dimensions in the tensor ({len(own)})",
        )
    complete = (*wanted[:extra], *(a if b == -1 else b for a, b in zip(own, wanted[extra:])))
    for dim, (have, want) in enumerate(zip(own, complete[extra:]), extra):
        if have not in (1, want):
            fail(
                ShapeError,
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) at "
                f"non-singleton dimension {dim}.  Target sizes: {list(wanted)}.  Tensor sizes: {list(own)}",
            )
    if any(extent < 0 for extent in complete):
        fail(ShapeError, f"expand: -1 stands for no existing size in the new dimensions of {list(wanted)}")
    return apply(m.expand, x, shape=complete)


def expand_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """x broadcast to a shape that it fits; itself if it has it."""
    return x if x._value.shape == shape else apply(m.expand, x, shape=shape)


def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """input expanded to the shape of other.

    Example:
        >>> expand_as(tensor([1, 2]), tensor([[0, 0], [0, 0]]))
        tensor([[1, 2],
                [1, 2]])
    """
    return expand(input, tuple(other.shape))


def broadcast_to(input: Tensor, shape: Sequence[int]) -> Tensor:
    """input expanded to a shape.

    Example:
        >>> broadcast_to(tensor([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]])
    """
    return expand(input, tuple(shape))


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape.

    Example:
        >>> broadcast_tensors(tensor([1, 2]), tensor([[3], [4]]))[1]
        tensor([[3, 3],
                [4, 4]])
    """
    given = [tensor(one, "broadcast_tensors", "tensors") for one in tensors]
    require_broadcast("broadcast_tensors", given)
    shape = broadcast_shapes(*(tuple(one.shape) for one in given))
    return tuple(expand_to(one, shape) for one in given)


def repeat(input: Tensor, *counts: Any, repeats: Any = None) -> Tensor:
    """The whole tensor side by side with itself, so many times along each dimension.

    Raises:
        ShapeError: there are fewer numbers than dimensions.

    Example:
        >>> repeat(tensor([1, 2]), 2, 2)
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]])
    """
    x = tensor(input, "repeat")
    times = sizes(counts if repeats is None else (repeats,))
    if min(times, default=0) < 0:
        fail(ShapeError, f"Trying to create tensor with negative dimension: repeats {list(times)}")
    if len(times) < x.ndim:
        fail(
            ShapeError,
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: "
            f"found {list(times)} and shape {tuple(x.shape)}",
        )
    shape = (1,) * (len(times) - x.ndim) + tuple(x._value.shape)
    split = tuple(extent for pair in zip((1,) * len(shape), shape) for extent in pair)
    spread = tuple(extent for pair in zip(times, shape) for extent in pair)
    repeated = expand_to(reshape_to(x, split), spread)
    merged = tuple(count * extent for count, extent in zip(times, shape))
    return apart_from(x, apply(m.reshape, repeated, shape=merged, grad_name="RepeatBackward0"))


_expanded = direct_view(m.expand)
_merged = direct_view(m.reshape, "RepeatBackward0")


@of_several
def tiled_directly(input: Any = None, counts: Any = None, *more: Any) -> Any:
    """The short way of `tile` by a plain integer, or by several; NotImplemented where that copies nothing."""
    times = (counts,) if type(counts) is int else counts
    if more or type(times) is not tuple or not isinstance(input, Tensor):
        return NotImplemented
    if not INTEGER.issuperset(map(type, times)) or min(times, default=0) < 1:
        return NotImplemented
    shape = tuple(input._value.shape)
    rank = max(len(times), len(shape))
    shape, times = (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(times)) + times
    result = _reshaped(input, shape=tuple([extent for one in shape for extent in (1, one)]))
    if result is not NotImplemented:
        result = _expanded(result, shape=tuple([extent for pair in zip(times, shape) for extent in pair]))
    if result is not NotImplemented:
        result = _merged(result, shape=tuple([count * extent for count, extent in zip(times, shape)]))
    return NotImplemented if result is NotImplemented or result._cell is input._cell else result


def tile(input: Tensor, *counts: Any, dims: Any = None) -> Tensor:
    """As `repeat`, but fewer numbers than dimensions mean the last ones.

    Example:
        >>> tile(tensor([1, 2]), (2,))
        tensor([1, 2, 1, 2])
    """
    x = tensor(input, "tile")
    times = sizes(counts if dims is None else (dims,))
    return repeat(x, (1,) * (x.ndim - len(times)) + times)


with_short_way(tile, tiled_directly)
