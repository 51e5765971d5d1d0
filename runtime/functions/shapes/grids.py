"""Grids, triangles and blocks: tensors built from positions or from smaller tensors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError
from ....tracer.spec import INT64
from ...tape.apply import wrap
from ...values.tensor import Size, Tensor
from ..common import array_dtype, as_dtype, fail, filled, numpy_dtype, sizes, tensor, tensors
from ..declared import floor_divide
from ..elements.arithmetic import remainder
from ..selections.selection import index_select
from .joining import cat, meshgrid, stack
from .movement import reshape_to
from .parts import diag_embed, part

__all__ = [
    "block_diag", "broadcast_shapes", "cartesian_prod", "combinations", "diagflat", "tril_indices",
    "triu_indices", "unravel_index", "vander",
]  # fmt: skip


def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of a larger one, zero elsewhere; vectors count as rows.

    Raises:
        ShapeError: a tensor has more than two dimensions.

    Example:
        >>> block_diag(tensor([[1, 2]]), tensor([[3]]))
        tensor([[1, 2, 0],
                [0, 0, 3]])
    """
    blocks = _all(tensors, "block_diag") if tensors else [wrap(np.zeros((1, 0), np.float32))]
    for block in blocks:
        if block.ndim > 2:
            fail(ShapeError, f"block_diag(): expected 2-D tensors or fewer, found {tuple(block.shape)}.")
    matrices = [block if block.ndim == 2 else reshape_to(block, (1, block.numel())) for block in blocks]
    width, start, rows = sum(one.shape[1] for one in matrices), 0, []
    for one in matrices:
        height, own = one.shape
        sides = [(height, start), (height, width - start - own)]
        before, after = (filled(side, 0, array_dtype(one)) for side in sides)
        rows.append(cat([before, one, after], 1))
        start += own
    return cat(rows, 0)


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to.

    Raises:
        ShapeError: there is none.

    Example:
        >>> broadcast_shapes((2, 1), (3,))
        torch.Size([2, 3])
    """
    given = [(one,) if isinstance(one, int | np.integer) else tuple(one) for one in shapes]
    try:
        return Size(np.broadcast_shapes(*given))
    except ValueError:
        fail(
            ShapeError,
            f"Shape mismatch: objects cannot be broadcast to a single shape: {', '.join(map(str, given))}",
        )


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Every choice of one element of each vector, a row for each.

    Example:
        >>> cartesian_prod(tensor([1, 2]), tensor([3]))
        tensor([[1, 3],
                [2, 3]])
    """
    vectors = _all(tensors, "cartesian_prod")
    for one in vectors:
        if one.ndim != 1:
            fail(ShapeError, f"Expect a 1D vector, but got shape {list(one.shape)}")
    if len(vectors) == 1:
        return vectors[0]
    return stack([grid.reshape(-1) for grid in meshgrid(*vectors, indexing="ij")], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of r elements of a vector, in order, a row for each.

    Example:
        >>> combinations(tensor([1, 2, 3]))
        tensor([[1, 2],
                [1, 3],
                [2, 3]])
    """
    x = tensor(input, "combinations")
    if x.ndim != 1:
        fail(ShapeError, f"Expect a 1D vector, but got shape {list(x.shape)}")
    if r < 0:
        fail(ArgumentError, f"Expect a non-negative number, but got {r}")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.asarray(list(choose(range(x.shape[0]), r)), np.int64).reshape(-1, r)
    if not rows.size:
        return reshape_to(part(x, 0, 0, 0), (0,) if r == 0 else (0, r))
    return reshape_to(index_select(x, 0, wrap(rows.reshape(-1))), rows.shape)


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with the elements of a tensor on a diagonal, zero elsewhere.

    Example:
        >>> diagflat(tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
    """
    x = tensor(input, "diagflat")
    return diag_embed(reshape_to(x, (x.numel(),)), offset)


def _triangle(find: Any, row: int, col: int, offset: int, dtype: Any) -> Tensor:
    kind = INT64 if dtype is None else numpy_dtype(dtype)
    return wrap(np.stack(find(row, offset, col)).astype(kind))


def tril_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Tensor:
    """The positions of the lower triangle of a matrix, up to a diagonal: rows and columns.

    Example:
        >>> tril_indices(2, 2)
        tensor([[0, 1, 1],
                [0, 0, 1]])
    """
    return _triangle(np.tril_indices, row, col, offset, dtype)


def triu_indices(
    row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None
) -> Tensor:
    """The positions of the upper triangle of a matrix, from a diagonal on: rows and columns.

    Example:
        >>> triu_indices(2, 2)
        tensor([[0, 0, 1],
                [0, 1, 1]])
    """
    return _triangle(np.triu_indices, row, col, offset, dtype)


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Positions in a flattened tensor as positions in each dimension of its shape, int64.

    Example:
        >>> unravel_index(tensor([5]), (2, 3))
        (tensor([1]), tensor([2]))
    """
    rest = tensor(indices, "unravel_index", "indices")
    if array_dtype(rest).kind not in "iu":
        fail(ArgumentError, f"unravel_index(): expected 'indices' to be integer dtype, but got {rest.dtype}")
    extents = (shape,) if isinstance(shape, int | np.integer) else sizes((shape,))
    if any(extent < 0 for extent in extents):
        fail(ArgumentError, f"unravel_index(): 'shape' cannot have negative values, but got {extents}")
    rest = as_dtype(rest, INT64)  # which sizes need, also where positions are of few bits
    found = []
    for place in range(len(extents)):
        inner = math.prod(extents[place + 1 :])
        found.append(remainder(floor_divide(rest, inner), extents[place]))
    return tuple(found)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Columns of powers of a vector, the highest first unless `increasing`.

    Example:
        >>> vander(tensor([1, 2, 3]), 2)
        tensor([[1, 1],
                [2, 1],
                [3, 1]])
    """
    values = tensor(x, "vander", "x")
    if values.ndim != 1:
        fail(ShapeError, f"x must be a one-dimensional tensor, found shape {tuple(values.shape)}.")
    columns = powers(values, values.shape[0] if N is None else N, "vander")
    return columns if increasing else columns.flip(1)


def powers(x: Tensor, count: int, function: str) -> Tensor:
    """The powers from 0 to count - 1 in a new last dimension, those of integers in int64."""
    if count < 0:
        fail(ArgumentError, f"{function}(): N must be non-negative, found {count}.")
    if array_dtype(x).kind in "biu":
        x = as_dtype(x, np.dtype(np.int64))
    if not count:
        return filled((*x.shape, 0), 0, array_dtype(x))
    found = [filled(tuple(x._value.shape), 1, array_dtype(x))]
    for _ in range(count - 1):
        found.append(found[-1] * x)
    return stack(found, -1)


def _all(values: Sequence[Any], function: str) -> list[Tensor]:
    """The tensors, given one by one or as one list."""
    alone = len(values) == 1 and not isinstance(values[0], Tensor | np.ndarray)
    return tensors(values[0] if alone else values, function)
