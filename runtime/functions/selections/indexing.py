"""x[...]: integers, slices, None, Ellipsis, index arrays and masks, read and (functionally) written.

An index is taken apart (`parsed_index.py`). Its arrays follow NumPy's rules: they broadcast, and their common
shape stands where the first of them stood, or in front if other dimensions lie between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ....tracer.ops import indexing as x_ops
from ....tracer.ops import movement as m
from ....tracer.spec import INT64
from ....tracer.trace import is_tracing
from ...tape.apply import apply, link_view, unwrap, wrap
from ...tape.direct import direct_view
from ...tape.direct_indexing import direct_at
from ...tape.direct_parts import ALL, is_basic, read_part
from ...tape.local import into_graph, is_local, local
from ...values.tensor import PartAt, Tensor, TorchTensor, make
from ...values.value_kinds import NumpyScalar, NumpyTensor, as_array
from ..common import array_dtype, as_dtype, require_broadcast, require_fitting_dtype, tensor
from ..shapes.movement import INTEGER, expand, expand_to, permuted, reshape_to
from ..shapes.parts import sliced
from .parsed_index import (
    Basic,
    checked_indices,
    have_no_gap,
    limit_from_front,
    parse_index,
    position_from_front,
)

__all__: list[str] = []

SLICES = ("SliceBackward0", "AliasBackward0")


def getitem(input: Tensor, index: Any) -> Tensor:
    """input[index].

    Args:
        input: a tensor.
        index: integers, slices (also with negative steps), None, Ellipsis, integer tensors, arrays or lists,
        bool masks, or a tuple of them. In a compiled function each number of elements that a mask selects
        is a path of its own.

    Raises:
        DimensionError: an index out of bounds, or more indices than dimensions.
        ShapeError: index arrays that do not broadcast.

    Example:
        >>> getitem(tensor([[1, 2], [3, 4]]), (slice(None), 0))
        tensor([1, 3])
    """
    if is_basic(index) and (short := read_part(input, index)) is not None:
        return short
    if type(index) in INDEX_ARRAYS and (short := _gathered_directly(input, index)) is not None:
        return short
    if type(index) is tuple and (short := _elements_directly(input, index)) is not None:
        return short
    if type(index) is tuple and (short := _gathered_along(input, index)) is not None:
        return short
    shown = view_at(tensor(input, "__getitem__"), index)
    if isinstance(shown, NumpyTensor) and not shown._value.shape:
        return as_array(shown) if _keeps_array(index) else element_of(shown)
    return shown


INDEX_ARRAYS = (np.ndarray, TorchTensor, NumpyTensor)


def _gathered_directly(x: Tensor, index: Any) -> Tensor | None:
    """`x[index]` with an array of integers or bools, outside of traces; None where it takes a closer look."""
    given = unwrap(index)
    if is_tracing() or type(x) not in INDEX_ARRAYS or type(given) is not np.ndarray or not given.ndim:
        return None
    shape = x._value.shape
    if given.dtype.kind == "b":
        if given.shape != shape[: given.ndim]:
            return None
        return _at_positions(x, *given.nonzero())
    if given.dtype.kind not in "iu" or not shape or (given.dtype == np.uint8 and type(x) is TorchTensor):
        return None
    positions = checked_indices(given, shape[0], 0)
    return _at_positions(x, index if positions is given else positions)


def _elements_directly(x: Tensor, index: tuple[Any, ...]) -> Tensor | None:
    """`x[rows, columns]` with arrays of positions of one shape, outside of traces; None for others."""
    if type(x) not in INDEX_ARRAYS or not all(type(one) in INDEX_ARRAYS for one in index) or is_tracing():
        return None
    given, shape = list(map(unwrap, index)), x._value.shape
    are_positions = all(one.dtype.kind == "i" and one.ndim and one.shape == given[0].shape for one in given)
    if not index or not are_positions or len(given) > len(shape):
        return None
    found = []
    for dim, (one, value) in enumerate(zip(index, given)):
        positions = checked_indices(value, shape[dim], dim)
        found.append(one if positions is value else positions)
    return _at_positions(x, *found)


def _gathered_along(x: Tensor, index: tuple[Any, ...]) -> Tensor | None:
    """`x[:, positions]`, with one vector of integers among whole dimensions; None for all else."""
    whole = [type(one) is slice and one == ALL for one in index]
    if whole.count(False) != 1 or not whole[0] or is_tracing() or type(x) not in INDEX_ARRAYS:
        return None
    dim = whole.index(False)
    positions, shape = index[dim], x._value.shape
    if len(index) > len(shape):
        return None
    in_front = (dim, *range(dim), *range(dim + 1, len(shape)))
    back = (*range(1, dim + 1), 0, *range(dim + 1, len(shape)))
    if type(positions) in (list, tuple) and INTEGER.issuperset(map(type, positions)):
        run = _run_of(positions, shape[dim])
        part = run and read_part(x, (*index[:dim], run, *index[dim + 1 :]), "IndexBackward0")
        if part is not None:
            part._view, part._cell, part._frozen = None, [0, None], ""
            part._value = part._value.transpose(in_front).copy().transpose(back)  # which so lies as NumPy's
            return part
        positions = np.array(positions, INT64)
    if type(positions) is not np.ndarray or positions.ndim != 1 or positions.dtype != INT64:
        return None
    chosen = _at_positions(permuted(x, in_front), checked_indices(positions, shape[dim], dim))
    shown = _brought_back(chosen, dims=back)
    return permuted(chosen, back, "IndexBackward0") if shown is NotImplemented else shown


def _run_of(positions: Sequence[int], extent: int) -> slice | None:
    """The slice that takes positions which follow each other; None for others, and beyond the extent."""
    if not positions:
        return None
    start = positions[0] + (extent if positions[0] < 0 else 0)
    stop = start + len(positions)
    follow = all(one + 1 == other for one, other in pairwise(positions))
    return slice(start, stop) if follow and start >= 0 and stop <= extent else None


def _at_positions(x: Tensor, *indices: Any) -> Tensor:
    """`gather` at positions that count from the front, in Tensors or arrays, outside of traces."""
    short = _gathered_at(x, *indices)
    if short is not NotImplemented:
        return short
    return apply(x_ops.gather, x, *map(wrap, indices), grad_name="IndexBackward0")  # may be written to later


_gathered_at = direct_at(x_ops.gather, "IndexBackward0")
_brought_back = direct_view(m.permute, "IndexBackward0")


def element_of(view: Tensor) -> Tensor:
    """NumPy's number, given the view that shows it: `s = x[0]; s += 1` leaves x as it was."""
    value = view._value
    if is_local(view):
        return local(value.copy(), NumpyScalar)
    number = make(value.copy() if type(value) is np.ndarray else value, NumpyScalar)
    number._grad_fn, number._output_nr = view._grad_fn, view._output_nr
    number._requires_grad = view._requires_grad
    return number


def _keeps_array(index: Any) -> bool:
    """`x[..., 0]` is an array of no dimensions, which shows x."""
    return index is Ellipsis or (isinstance(index, tuple) and any(part is Ellipsis for part in index))


def view_at(x: Tensor, index: Any) -> Tensor:
    """`x[index]`, which shows the memory of x unless the index has arrays."""
    if type(index) is int and x._value.shape:  # the common case, and the innermost of loops
        return _select_first(x, index)
    if type(index) is slice and index.step is None and x._value.shape:
        return _slice_first(x, index)
    basic = parse_index(index, tuple(x._value.shape), isinstance(x, NumpyTensor))
    if index is Ellipsis:
        basic.title = "AliasBackward0"
    x = apply_basic(x, basic)
    return _gathered(x, basic) if basic.arrays else x


def _select_first(x: Tensor, index: int) -> Tensor:
    shape = x._value.shape
    start = position_from_front(index, shape[0], 0)
    zeros, ones = (0,) * (len(shape) - 1), (1,) * len(shape)
    row = sliced(x, (start, *zeros), (start + 1, *shape[1:]), ones)
    return apply(m.reshape, row, shape=shape[1:], grad_name="SelectBackward0")


def _slice_first(x: Tensor, index: slice) -> Tensor:
    shape = x._value.shape
    start, stop = limit_from_front(index.start, 0, shape[0]), limit_from_front(index.stop, shape[0], shape[0])
    zeros, ones = (0,) * (len(shape) - 1), (1,) * len(shape)
    return sliced(x, (start, *zeros), (max(start, stop), *shape[1:]), ones)


def apply_basic(x: Tensor, basic: Basic) -> Tensor:
    """The slices, flips and the shape of an index."""
    target = tuple(basic.shape)
    shape = x._value.shape
    changed = basic.changes(shape)
    if changed or (target == shape and not basic.arrays):
        x = sliced(
            x,
            basic.starts,
            basic.stops,
            basic.steps,
            basic.title if basic.title in SLICES else "SliceBackward0",
        )
    if basic.reversed:
        x = apply(m.flip, x, dims=tuple(basic.reversed))
    return reshape_to(x, target, basic.title)


# --- index arrays ---------------------------------------------------------------------------------------


def common_indices(basic: Basic) -> tuple[list[Tensor], tuple[int, ...]]:
    """The index arrays broadcast to their common shape, and that shape."""
    arrays = list(basic.arrays.values())
    require_broadcast("__getitem__", arrays)
    shape = np.broadcast_shapes(*(tuple(one._value.shape) for one in arrays))
    return [expand_to(one, shape) for one in arrays], shape


def array_order(basic: Basic) -> tuple[list[int], int]:
    """(the dimensions with the indexed ones in front, how many come before the result's index dimensions)."""
    places = list(basic.arrays)
    order = [*places, *(dim for dim in range(len(basic.shape)) if dim not in basic.arrays)]
    return order, places[0] if have_no_gap(places) else 0


def _gathered(x: Tensor, basic: Basic) -> Tensor:
    """The elements at index arrays; what single positions show is a view, as it is in plain code."""
    shows = len(basic.positions) == len(basic.arrays)
    if shows and is_local(x):
        into_graph(x)
    indices, shape = common_indices(basic)
    order, before = array_order(basic)
    if order != sorted(order):
        x = permuted(x, order)
    result = apply(x_ops.gather, x, *indices, grad_name="IndexBackward0")
    if shows:
        link_view(result, x_ops.gather, x, PartAt(tuple(basic.positions), tuple(indices)))
    if not before:
        return result
    rank, width = result.ndim, len(shape)
    back = [*range(width, width + before), *range(width), *range(width + before, rank)]
    return permuted(result, back, "IndexBackward0")


# --- writing, as a new value --------------------------------------------------------------------------------


def updated(input: Tensor, index: Any, value: Any) -> Tensor:
    """input with input[index] replaced by value, as a new tensor: what `x[index] = value` puts in x's place.

    Raises:
        ShapeError: the value does not broadcast to the shape of input[index].

    Example:
        >>> updated(tensor([1, 2, 3]), slice(1, None), 0)
        tensor([1, 0, 0])
    """
    x = tensor(input, "__setitem__")
    basic = parse_index(index, tuple(x._value.shape), isinstance(x, NumpyTensor))
    update = value if isinstance(value, Tensor) else wrap(np.asarray(value))
    if basic.arrays:
        require_fitting_dtype(x, update, "Index put")
        return _with_elements(x, basic, as_dtype(update, array_dtype(x)))
    update = as_dtype(update, array_dtype(x))
    region = tuple(len(range(*bounds)) for bounds in zip(basic.starts, basic.stops, basic.steps))
    update = reshape_to(expanded_update(update, tuple(basic.shape)), region)
    if basic.reversed:
        update = apply(m.flip, update, dims=tuple(basic.reversed))
    return _sliced_update(x, basic, update)


def _sliced_update(x: Tensor, basic: Basic, update: Tensor) -> Tensor:
    return apply(
        m.slice_update, x, update, grad_name="CopySlices",
        starts=tuple(basic.starts), stops=tuple(basic.stops), steps=tuple(basic.steps),
    )  # fmt: skip


def expanded_update(update: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The update broadcast to the shape of what it replaces; leading dimensions of size 1 may be dropped."""
    update = without_leading(update, len(shape))
    return expand(update, shape) if tuple(update._value.shape) != shape else update


def without_leading(update: Tensor, ndim: int) -> Tensor:
    """An update without the dimensions of size 1 in front that what it replaces does not have."""
    own = tuple(update._value.shape)
    while len(own) > ndim and own[0] == 1:
        own = own[1:]
    return reshape_to(update, own)


def _with_elements(x: Tensor, basic: Basic, update: Tensor) -> Tensor:
    """`updated` with index arrays: of the basic part the elements are replaced, then that part in x."""
    indices, shape = common_indices(basic)
    order, before = array_order(basic)
    target = apply_basic(x, basic)
    kept = [basic.shape[dim] for dim in order[len(indices) :]]
    update = expanded_update(update, (*kept[:before], *shape, *kept[before:]))
    if before:
        width = len(shape)
        front = [*range(before, before + width), *range(before), *range(before + width, update.ndim)]
        update = permuted(update, front)
    moved = permuted(target, order) if order != sorted(order) else target
    written = apply(x_ops.index_update, moved, update, *indices, grad_name="IndexPutBackward0")
    if order != sorted(order):
        written = permuted(written, [order.index(dim) for dim in range(len(order))])
    plain = Basic(basic.starts, basic.stops, basic.steps, basic.reversed, basic.shape)
    if (
        not plain.changes(x._value.shape)
        and not plain.reversed
        and tuple(plain.shape) == tuple(x._value.shape)
    ):
        return written
    return _put_back(x, plain, written)


def _put_back(x: Tensor, basic: Basic, part: Tensor) -> Tensor:
    region = tuple(len(range(*bounds)) for bounds in zip(basic.starts, basic.stops, basic.steps))
    part = reshape_to(part, region)
    if basic.reversed:
        part = apply(m.flip, part, dims=tuple(basic.reversed))
    return _sliced_update(x, basic, part)
