"""Functions that take parts of a tensor or turn it round: slices, flips, rolls, triangles, diagonals."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ....tracer.errors import ArgumentError, DimensionError, ShapeError
from ....tracer.ops import elementwise as e
from ....tracer.ops import indexing as x_ops
from ....tracer.ops import movement as m
from ....tracer.ops.diagonals import diagonal as diagonal_of
from ....tracer.ops.diagonals import diagonal_matrix
from ....tracer.spec import CONTINUOUS
from ....tracer.trace import is_tracing
from ...tape.apply import apart_from, apply, with_own_memory
from ...tape.direct import direct
from ...tape.direct_parts import ALL, read_part
from ...values.tensor import Tensor
from ..common import array_dtype, fail, iota, numpy_names, one_dim, own_dim, sizes, tensor, with_short_way
from .movement import expand_to, moved_to_end, permuted, reshape_to, transpose, view

__all__ = [
    "diag", "diag_embed", "diagonal", "flip", "fliplr", "flipud", "narrow", "roll", "rot90", "select",
    "tril", "triu",
]  # fmt: skip

# --- slices --------------------------------------------------------------------------------------------


def sliced(
    x: Tensor,
    starts: Sequence[int],
    stops: Sequence[int],
    steps: Sequence[int],
    grad_name: str = "SliceBackward0",
) -> Tensor:
    """x[start:stop:step] on every dimension, with positive steps."""
    return apply(
        m.slice_, x, starts=tuple(starts), stops=tuple(stops), steps=tuple(steps), grad_name=grad_name
    )


def part(
    x: Tensor, dim: int, start: int, stop: int, step: int = 1, grad_name: str = "SliceBackward0"
) -> Tensor:
    """x[start:stop:step] on one dimension."""
    index = (*(ALL,) * dim, slice(start, stop, step))
    if (short := read_part(x, index, grad_name)) is not None:
        return short
    shape = x._value.shape
    before, after = dim, len(shape) - dim - 1
    starts = (*(0,) * before, start, *(0,) * after)
    stops = (*shape[:dim], stop, *shape[dim + 1 :])
    return sliced(x, starts, stops, (*(1,) * before, step, *(1,) * after), grad_name)


@numpy_names
def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` positions of a dimension, from `start` on.

    Raises:
        DimensionError: the positions do not all exist.
        ArgumentError: `start` is a tensor, but no whole number.

    Example:
        >>> narrow(tensor([1, 2, 3, 4]), 0, 1, 2)
        tensor([2, 3])
    """
    x = tensor(input, "narrow")
    dim = own_dim(dim, x, "narrow")
    if isinstance(start, Tensor) and (start.ndim or array_dtype(start).kind not in "iu"):
        fail(
            ArgumentError,
            f"narrow(): start must be an 0-dim integral Tensor, found shape {tuple(start.shape)} of "
            f"{start.dtype}.",
        )
    start, length = (int(one) for one in (start, length))  # a tensor's value is a guard in a trace
    extent = x._value.shape[dim]
    start = start + extent if start < 0 else start
    if length < 0 or not 0 <= start <= extent - length:
        fail(DimensionError, f"start ({start}) + length ({length}) exceeds dimension size ({extent}).")
    return part(x, dim, start, start + length)


@numpy_names
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """One position of a dimension, without that dimension.

    Raises:
        DimensionError: there is no such position.

    Example:
        >>> select(tensor([[1, 2], [3, 4]]), 0, 1)
        tensor([3, 4])
    """
    x = tensor(input, "select")
    if not x.ndim:
        fail(DimensionError, "select() cannot be applied to a 0-dim tensor.")
    dim = one_dim(dim, x.ndim, "select")
    extent, index = x._value.shape[dim], int(index)
    if not -extent <= index < extent:
        fail(
            DimensionError,
            f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {dim}",
        )
    return selected(x, dim, index % extent)


def selected(x: Tensor, dim: int, index: int, grad_name: str = "SelectBackward0") -> Tensor:
    shape = x._value.shape
    return apply(
        m.reshape, part(x, dim, index, index + 1), shape=shape[:dim] + shape[dim + 1 :], grad_name=grad_name
    )


def flip(input: Tensor, *places: Any, dims: Any = None) -> Tensor:
    """The given dimensions backwards.

    Example:
        >>> flip(tensor([1, 2, 3]), 0)
        tensor([3, 2, 1])
    """
    x = tensor(input, "flip")
    order = tuple(one_dim(dim, x.ndim, "flip") for dim in (sizes(places) if dims is None else dims))
    if len(set(order)) < len(order):
        fail(ShapeError, f"dim {order} appears multiple times in the list of dims")
    return with_own_memory(apply(m.flip, x, dims=order if x.ndim else ()))


def fliplr(input: Tensor) -> Tensor:
    """Dimension 1 backwards.

    Example:
        >>> fliplr(tensor([[1, 2]]))
        tensor([[2, 1]])
    """
    if input.ndim < 2:
        fail(ShapeError, f"fliplr: Input must be >= 2-d, found {tuple(input.shape)}.")
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    """Dimension 0 backwards.

    Example:
        >>> flipud(tensor([1, 2]))
        tensor([2, 1])
    """
    if not input.ndim:
        fail(ShapeError, "flipud: Input must be >= 1-d.")
    return flip(input, 0)


_rotate = direct(m.rotate)


def rolled_directly(input: Any = None, shifts: Any = None, axis: Any = None, *more: Any) -> Any:
    """The short way of a roll along one dimension; what it is not for is NotImplemented."""
    if type(shifts) is not int or more or not isinstance(input, Tensor):
        return NotImplemented
    rank = len(input._value.shape)
    dim = 0 if axis is None and rank == 1 else axis
    if type(dim) is not int or not -rank <= dim < rank:
        return NotImplemented
    return _rotate(input, dim=dim % rank, shift=shifts)


def roll(input: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Moved along dimensions, what leaves at the end coming in at the start; without dims, in flattened
    order.

    Example:
        >>> roll(tensor([1, 2, 3]), 1)
        tensor([3, 1, 2])
    """
    if (result := rolled_directly(input, shifts, dims)) is not NotImplemented:
        return result
    x = given = tensor(input, "roll")
    if dims is None:
        flat = roll(reshape_to(x, (x.numel(),)), shifts, 0)  # memory of its own
        return reshape_to(flat, tuple(x._value.shape), "RollBackward0")
    distances, places = ([one] if isinstance(one, int | np.integer) else list(one) for one in (shifts, dims))
    if len(distances) != len(places):
        fail(ArgumentError, f"shifts and dimensions must align. shifts: {len(distances)}, dims:{len(places)}")
    for distance, dim in zip(map(operator.index, distances), places):
        dim = own_dim(dim, x, "roll")
        extent = x._value.shape[dim]
        if abs(distance) > extent:
            distance %= max(extent, 1)
        cut = extent - distance if distance > 0 else -distance
        if 0 < cut < extent:
            pieces = part(x, dim, cut, extent), part(x, dim, 0, cut)
            x = apply(m.concatenate, *pieces, dim=dim, grad_name="RollBackward0")
    return apart_from(given, x)


def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turned k times by 90 degrees, from the first of dims towards the second.

    Example:
        >>> rot90(tensor([[1, 2], [3, 4]]))
        tensor([[2, 4],
                [1, 3]])
    """
    x = tensor(input, "rot90")
    given = [one_dim(dim, x.ndim, "rot90") for dim in dims]
    if len(given) != 2 or given[0] == given[1]:
        fail(ShapeError, f"rot90: expected two different rotation dims, but got dims = {list(dims)}")
    first, second = given
    turns = k % 4
    if turns == 0:
        return apply(e.identity, x)
    if turns == 2:
        return flip(input, first, second)
    if turns == 1:
        return flip(transpose(input, first, second), first)
    return transpose(flip(input, first), first, second)


# --- triangles and diagonals ------------------------------------------------------------------------------


def _triangle(input: Tensor, diagonal: int, function: str) -> Tensor:
    x = tensor(input, function)
    if x.ndim < 2:
        fail(
            ShapeError,
            f"{function}: input tensor must have at least 2 dimensions, found shape {tuple(x.shape)}",
        )
    rows, columns = x._value.shape[-2:]
    offset = iota(columns) - view(iota(rows), rows, 1)
    kept = apply(e.less_equal if function == "tril" else e.greater_equal, offset, operator.index(diagonal))
    nothing = False if array_dtype(x).kind == "b" else 0.0 if array_dtype(x).kind in CONTINUOUS else 0
    return apply(e.where, kept, x, nothing, grad_name=f"{function.capitalize()}Backward0")


@functools.lru_cache(maxsize=256)
def _kept(function: str, rows: int, columns: int, offset: int) -> np.ndarray:
    lower = np.tri(rows, columns, offset if function == "tril" else offset - 1, bool)
    kept = lower if function == "tril" else ~lower
    kept.setflags(write=False)
    return kept


def _triangle_directly(function: str) -> Callable[..., Any]:
    """The short way of `tril` or `triu` of matrices."""
    chosen = direct(e.where, grad_name=f"{function.capitalize()}Backward0")

    def short(input: Any = None, diagonal: Any = 0, *more: Any) -> Any:
        if more or not isinstance(input, Tensor) or type(diagonal) is not int or is_tracing():
            return NotImplemented
        shape = input._value.shape
        if len(shape) < 2:
            return NotImplemented
        return chosen(_kept(function, *shape[-2:], diagonal), input, 0.0)

    return short


tril_directly, triu_directly = _triangle_directly("tril"), _triangle_directly("triu")


def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of matrices, up to the given diagonal; the rest zero.

    Example:
        >>> tril(tensor([[1, 2], [3, 4]]))
        tensor([[1, 0],
                [3, 4]])
    """
    return _triangle(input, diagonal, "tril")


def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of matrices, from the given diagonal; the rest zero.

    Example:
        >>> triu(tensor([[1, 2], [3, 4]]))
        tensor([[1, 2],
                [0, 4]])
    """
    return _triangle(input, diagonal, "triu")


with_short_way(tril, tril_directly)
with_short_way(triu, triu_directly)


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of the matrices in two dimensions, as a new last dimension.

    Example:
        >>> diagonal(tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    x = tensor(input, "diagonal")
    first, second = one_dim(dim1, x.ndim, "diagonal"), one_dim(dim2, x.ndim, "diagonal")
    if first == second:
        fail(ShapeError, f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    moved = moved_to_end(x, (first, second))
    *outer, rows, columns = moved._value.shape
    offset = operator.index(offset)
    above, below = max(offset, 0), max(-offset, 0)
    length = max(min(rows - below, columns - above), 0)
    if offset or rows != columns:
        starts = (*(0,) * len(outer), min(below, rows), min(above, columns))
        stops = (*outer, *(start + length for start in starts[-2:]))
        moved = sliced(moved, starts, stops, (1,) * moved.ndim)
    return apply(diagonal_of, moved)


def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """`diagonal` of the last two dimensions, unless others are given.

    Example:
        >>> diagonal(tensor([[[1, 2], [3, 4]]]))
        tensor([[1, 4]])
    """
    return diagonal(A, offset, dim1, dim2)


def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Square matrices with the last dimension on a diagonal, in two new dimensions; the rest zero.

    Example:
        >>> diag_embed(tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
    """
    x = tensor(input, "diag_embed")
    first, second = (one_dim(dim, x.ndim + 1, "diag_embed") for dim in (dim1, dim2))
    if first == second:
        fail(ShapeError, f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if (first, second) != (x.ndim - 1, x.ndim):
        order = [dim for dim in range(x.ndim + 1) if dim not in (first, second)] + [first, second]
        return permuted(diag_embed(x, offset), m.inverse_permutation(order), "DiagEmbedBackward0")
    square, offset = apply(diagonal_matrix, x), operator.index(offset)
    if not offset:
        return square
    sides = ((0, offset), (offset, 0)) if offset > 0 else ((-offset, 0), (0, -offset))
    widths = (*((0, 0),) * (x.ndim - 1), *sides)
    return apply(m.pad, square, widths=widths, value=0, grad_name="DiagEmbedBackward0")


def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal.

    Raises:
        ShapeError: the input is neither.

    Example:
        >>> diag(tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
    """
    x = tensor(input, "diag")
    if x.ndim not in (1, 2):
        fail(ShapeError, f"diag(): Supports 1D or 2D tensors. Got {x.ndim}D")
    return diag_embed(x, diagonal) if x.ndim == 1 else _diagonal(x, diagonal)


_diagonal = diagonal
_with_diagonal = direct(diagonal_matrix)


def diag_directly(input: Any = None, diagonal: Any = 0, *more: Any) -> Any:
    """The short way of the matrix with a vector on its diagonal."""
    is_vector = isinstance(input, Tensor) and len(input._value.shape) == 1
    return _with_diagonal(input) if is_vector and not more and diagonal == 0 else NotImplemented


with_short_way(diag, diag_directly)

# --- one index for each element along a dimension ---------------------------------------------------------


def along(x: Tensor, indices: Tensor, dim: int, grad_name: str | None = None) -> Tensor:
    """At each place p of `indices` the element of x at p, with p[dim] replaced by the index there.

    The indices are int64 and not negative; in the other dimensions they are no larger than x.
    """
    if not x.ndim:  # a number is a vector of one element here
        found = along(reshape_to(x, (1,)), reshape_to(indices, (1,)), 0)
        return reshape_to(found, (), grad_name)
    return apply(x_ops.gather, x, *positions_along(indices, dim), grad_name=grad_name)


def positions_along(indices: Tensor, dim: int) -> list[Tensor]:
    """For each dimension the index array that addresses `along`'s elements."""
    shape = cast(tuple[int, ...], tuple(indices._value.shape))
    found = []
    for axis, extent in enumerate(shape):
        if axis == dim:
            found.append(indices)
        else:
            column = reshape_to(
                iota(extent), tuple(extent if one == axis else 1 for one in range(len(shape)))
            )
            found.append(expand_to(column, shape))
    return found
