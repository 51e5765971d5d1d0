"""x[...]: integers, slices, None, Ellipsis, index arrays and masks, read and (functionally) written.

An index is taken apart into a slice of every dimension, a shape (integers drop a dimension, None adds one),
and the index arrays, which follow NumPy's rules: they broadcast, and their common shape stands where the
first of them stood, or in front if other dimensions lie between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any

import numpy as np

from ....tracer.dims import Dim
from ....tracer.errors import ArgumentError, DimensionError
from ....tracer.graph import Node, constant
from ....tracer.lost_numbers import traced_size
from ....tracer.ops import elementwise as e
from ....tracer.ops import indexing as x_ops
from ....tracer.ops import movement as m
from ....tracer.ops.reduction import cumsum, sum_
from ....tracer.origin import warn_at_user
from ....tracer.records import record
from ....tracer.spec import BOOL, CONTINUOUS, INT64, Spec
from ....tracer.trace import current_trace, is_tracing
from ...tape.apply import apply, link_view, unwrap, wrap
from ...tape.direct import direct_view
from ...tape.direct_indexing import direct_at
from ...tape.direct_parts import ALL, is_basic, read_part
from ...tape.local import into_graph, is_local, local
from ...values.foreign import how_to_pass, unboxed
from ...values.tensor import PartAt, Tensor, TorchTensor, make
from ...values.value_kinds import Auxiliary, NumpyScalar, NumpyTensor, as_array, as_kind
from ..common import (
    array_dtype,
    as_dtype,
    fail,
    iota,
    require_broadcast,
    require_fitting_dtype,
    tensor,
    truth,
)
from ..shapes.joining import stack
from ..shapes.movement import INTEGER, expand, expand_to, permuted, reshape_to
from ..shapes.parts import sliced

__all__: list[str] = []

VALID = "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices"
BYTES = (
    "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead. The bytes "
    "count as a mask, not as positions: for these convert them with .long()."
)
SLICES = ("SliceBackward0", "AliasBackward0")


@record
class Basic:
    """What an index does without index arrays, dimension by dimension of the indexed tensor."""

    starts: list[int] = field(default_factory=list)
    stops: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    reversed: list[int] = field(default_factory=list)
    """Dimensions that a negative step walks backwards."""
    shape: list[int] = field(default_factory=list)
    """The shape after integers have dropped dimensions and None has added some."""
    arrays: dict[int, Tensor] = field(default_factory=dict)
    """Index arrays by the dimension of `shape` that they index."""
    positions: list[Any] = field(default_factory=list)
    """Of the arrays those that are traced positions, where plain code has integers."""
    title: str = "AliasBackward0"
    """What PyTorch calls the tape node of the last step."""

    def take(self, start: int, stop: int, step: int = 1) -> None:
        self.starts.append(start)
        self.stops.append(stop)
        self.steps.append(step)

    def changes(self, shape: Sequence[int]) -> bool:
        return any(
            bounds != (0, extent, 1)
            for bounds, extent in zip(zip(self.starts, self.stops, self.steps), shape)
        )


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
    start = _checked(index, shape[0], 0)
    zeros, ones = (0,) * (len(shape) - 1), (1,) * len(shape)
    row = sliced(x, (start, *zeros), (start + 1, *shape[1:]), ones)
    return apply(m.reshape, row, shape=shape[1:], grad_name="SelectBackward0")


def _slice_first(x: Tensor, index: slice) -> Tensor:
    shape = x._value.shape
    start, stop = _limit(index.start, 0, shape[0]), _limit(index.stop, shape[0], shape[0])
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


# --- taking an index apart ---------------------------------------------------------------------------------


def parse_index(index: Any, shape: tuple[int, ...], numpy: bool) -> Basic:
    """The steps of an index into an array of a shape."""
    items = _complete(
        [_normalised(item, numpy) for item in (index if isinstance(index, tuple) else (index,))], shape
    )
    kinds = [_kind(item) for item in items]
    if (numpy and _placed_differently(kinds)) or (is_tracing() and _are_one_element_or_row(kinds, items)):
        items = _with_integers_as_arrays(items, shape)
    basic = Basic()
    for item in items:
        _enter(item, basic, shape)
    return basic


def _kind(item: Any) -> str:
    """What an item is where it matters in which places integers and index arrays stand."""
    if isinstance(item, bool | Tensor):
        return "array"
    return "integer" if isinstance(item, int) else "slice"


def _placed_differently(kinds: list[str]) -> bool:
    """Whether NumPy and PyTorch disagree where the index arrays' dimensions go.

    NumPy counts integers as index arrays here. PyTorch drops their dimensions first, as if in another index.
    """
    if "array" not in kinds or "integer" not in kinds:
        return False
    left = [kind for kind in kinds if kind != "integer"]
    return _in_front(kinds) != _in_front(left)


def _are_one_element_or_row(kinds: list[str], items: list[Any]) -> bool:
    """Whether integers stand beside single positions, before all slices: together they are one position."""
    arrays = [item for kind, item in zip(kinds, items) if kind == "array"]
    is_single = bool(arrays) and all(isinstance(one, Tensor) and not one.ndim for one in arrays)
    count = len(kinds) - kinds.count("slice")
    return is_single and len(arrays) < count and "slice" not in kinds[:count]


def _in_front(kinds: list[str]) -> int:
    """How many of the sliced dimensions come before those of the index arrays."""
    advanced = [place for place, kind in enumerate(kinds) if kind != "slice"]
    return kinds[: advanced[0]].count("slice") if _runs(advanced) else 0


def _with_integers_as_arrays(items: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The items with 0-d index arrays in the place of integers."""
    found, dim = [], 0
    for item in items:
        start = _checked(item, shape[dim], dim) if _kind(item) == "integer" else None
        found.append(item if start is None else _position(start))
        dim += _consumed(item)
    return found


def _position(number: int) -> Tensor:
    """A number as a 0-d index array; in a trace it keeps its formula."""
    if not is_tracing():
        return wrap(np.asarray(number))
    return make(constant(number, Spec((), INT64)), Auxiliary)


def _number_of(index: Tensor) -> int | None:
    """What `_position` was given."""
    return index._value.scalar_value if type(index._value) is Node else None  # type: ignore[return-value]


def _normalised(item: Any, numpy: bool) -> Any:
    """The item as an int, bool, slice, None, Ellipsis or Tensor."""
    if isinstance(item, Tensor):
        return _index_array(item, numpy)
    if item is None or item is Ellipsis or isinstance(item, bool | int | slice):
        return item
    if isinstance(item, np.bool_):
        return bool(item)
    if isinstance(item, np.integer):
        return int(item)
    item = unboxed(item)
    if isinstance(item, list | range | tuple):
        item = _array_of(list(item))
    if isinstance(item, np.ndarray):
        item = wrap(item)
    if not isinstance(item, Tensor):
        instead = how_to_pass(item)
        fail(DimensionError, f"{VALID} (got {type(item).__name__}){f'.{instead}' if instead else ''}")
    return _index_array(item, numpy)


def _index_array(item: Tensor, numpy: bool) -> Any:
    """A tensor as an index: known ones of one element as an integer, a mask of one as a bool."""
    if not numpy:
        item = without_bytes(item)
    kind = array_dtype(item).kind
    if kind == "b" and not item.ndim:
        return bool(item)
    if kind in CONTINUOUS:
        fail(
            DimensionError,
            f"tensors used as indices must be long, int, byte or bool tensors, found {item.dtype}.",
        )
    if numpy and not item.ndim and type(item) is Auxiliary:
        item = as_kind(item, NumpyTensor)  # an array of no dimensions, at which NumPy copies
    if type(item) is NumpyTensor or item.ndim or is_tracing() or not isinstance(item._value, np.ndarray):
        return item
    return int(item._value)


def without_bytes(index: Any) -> Any:
    """The index of a Tensor with masks in the place of bytes, which PyTorch takes for them, and warns."""
    if isinstance(index, tuple):
        return tuple(map(without_bytes, index))
    value = index._value if isinstance(index, Tensor) else index
    if not hasattr(value, "shape") or isinstance(value, np.generic) or value.dtype != np.uint8:
        return index
    if value.shape:
        warn_at_user(BYTES)
    return truth(index if isinstance(index, Tensor) else wrap(np.asarray(index)))


def _array_of(items: list[Any]) -> Any:
    """A list as an index array; of tensors their stack."""
    if any(isinstance(one, Tensor) for one in items):
        return stack([one if isinstance(one, Tensor) else wrap(np.asarray(one)) for one in items])
    array = np.asarray(items) if items else np.zeros(0, np.int64)
    if array.dtype.kind not in "iub":
        fail(DimensionError, f"{VALID} (got a list of {array.dtype})")
    return array


def _consumed(item: Any) -> int:
    """How many dimensions an item uses up."""
    if isinstance(item, Tensor):
        return item.ndim if array_dtype(item) == BOOL else 1
    return 0 if item is None or item is Ellipsis or isinstance(item, bool) else 1


def _complete(items: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The items with Ellipsis, or what is missing at the end, as full slices."""
    consumed = sum(map(_consumed, items))
    ellipses = [place for place, item in enumerate(items) if item is Ellipsis]
    if consumed > len(shape):
        fail(DimensionError, f"too many indices for tensor of dimension {len(shape)}: found {consumed}")
    if len(ellipses) > 1:
        fail(DimensionError, "an index can only have a single ellipsis ('...')")
    place = ellipses[0] if ellipses else len(items)
    rest = [slice(None)] * (len(shape) - consumed)
    return [*items[:place], *rest, *items[place + 1 :]]


def _enter(item: Any, basic: Basic, shape: tuple[int, ...]) -> None:
    dim = len(basic.starts)
    if isinstance(item, Tensor):
        _enter_array(item, basic, shape)
    elif item is None:
        basic.shape.append(1)
        basic.title = "UnsqueezeBackward0"
    elif isinstance(item, bool):
        basic.arrays[len(basic.shape)] = wrap(np.zeros(int(item), np.int64))
        basic.shape.append(1)
    elif isinstance(item, int):
        start = _checked(item, shape[dim], dim)
        basic.take(start, start + 1)
        basic.title = "SelectBackward0"
    else:
        _enter_slice(item, basic, shape[dim])


def _checked(index: int, extent: int, dim: int) -> int:
    size = int(extent)  # to compare with, which needs no formula
    if not -size <= index < size:
        fail(DimensionError, f"index {index} is out of bounds for dimension {dim} with size {extent}")
    return index + extent if index < 0 else index


def _bound(value: Any) -> int | None:
    return None if value is None else _integer(value)


def _integer(value: Any) -> int:
    if not hasattr(value, "__index__"):
        fail(ArgumentError, f"slice indices must be integers or None, found {value!r}. Use int() or //.")
    return int(value.__index__())


def _limit(value: Any, default: int, extent: int) -> int:
    """Where a slice of step 1 begins or ends; what follows from sizes keeps its formula."""
    if value is None:
        return default
    given = traced_size(value)
    place = given if isinstance(given, Dim) else _integer(given)
    if place < 0:
        place = place + extent
    return 0 if place < 0 else extent if place >= extent else place


def _enter_slice(item: slice, basic: Basic, extent: int) -> None:
    dim = len(basic.starts)
    step = _bound(item.step)
    if step == 0:
        fail(ArgumentError, "slice step cannot be zero")
    if step is None or step == 1:
        start, stop, step = _limit(item.start, 0, extent), _limit(item.stop, extent, extent), 1
        length = max(stop - start, 0)
    else:
        start, stop, step = slice(_bound(item.start), _bound(item.stop), step).indices(extent)
        length = len(range(start, stop, step))
    if step < 0:
        basic.reversed.append(dim)
        start, step = start + (length - 1) * step, -step
        stop = start + (length - 1) * step + 1
    if not length:
        start, stop = 0, 0
    basic.take(start, max(stop, start), step)
    basic.shape.append(length)
    if item != slice(None) or basic.title == "AliasBackward0":
        basic.title = "SliceBackward0"


def _enter_array(item: Tensor, basic: Basic, shape: tuple[int, ...]) -> None:
    masks = array_dtype(item) == BOOL
    if is_tracing() and not masks and not item.ndim and type(item) is not NumpyTensor:
        position = item._value if type(item._value) is Node else int(item._value)
        basic.positions.append(position if _number_of(item) is None else _number_of(item))
    for indices in _positions_of(item, shape, len(basic.starts)) if masks else [item]:
        dim = len(basic.starts)
        basic.arrays[len(basic.shape)] = wrapped_indices(indices, shape[dim], dim)
        basic.take(0, shape[dim])
        basic.shape.append(shape[dim])


def _positions_of(mask: Tensor, shape: tuple[int, ...], dim: int) -> list[Tensor]:
    """A mask as index arrays."""
    expected = shape[dim : dim + mask.ndim]
    if tuple(mask.shape) != expected:
        fail(
            DimensionError,
            f"The shape of the mask {list(mask.shape)} at index 0 does not match the shape of the indexed "
            f"tensor {list(shape)} at index {dim}",
        )
    return true_positions(mask)


def true_positions(mask: Tensor) -> list[Tensor]:
    """Where a mask is true, in order: an index array for each dimension, of which there is at least one.

    In a traced function their number is what Python asks for, and makes the path; the positions are computed.
    """
    values = unwrap(mask)
    if isinstance(values, np.ndarray) and (is_local(mask) or not is_tracing()):
        return [local(positions, Auxiliary) for positions in np.nonzero(values)]
    count, found = _true_places(mask)
    return _unravelled(sliced(found, (0,), (int(count),), (1,)), tuple(mask.shape))


def first_true_positions(mask: Tensor, size: int) -> tuple[list[Tensor], Tensor]:
    """The first of `true_positions`, so many of each dimension, and which of them there are; of any mask."""
    if not mask.numel():
        nothing = apply(e.multiply, iota(size), 0)
        return [nothing] * max(mask.ndim, 1), apply(e.less, iota(size), 0)
    count, found = _true_places(mask)
    places = apply(x_ops.gather, found, apply(e.minimum, iota(size), mask.numel()))
    return _unravelled(places, tuple(mask.shape)), apply(e.less, iota(size), count)


def _true_places(mask: Tensor) -> tuple[Tensor, Tensor]:
    """How often a mask is true, and where, in order: one place more than it has, the last ones anything."""
    size = mask.numel()
    flat = mask.reshape(size)
    chosen = as_dtype(flat, INT64)
    count = apply(sum_, chosen, dims=(0,), keepdim=False)
    rank = apply(e.subtract, apply(cumsum, chosen, dim=0), 1)
    place = apply(e.where, flat, rank, size)  # what is not chosen goes behind the end
    found = apply(x_ops.scatter_add, iota(size), place, shape=(size + 1,))
    return count, found


def _unravelled(places: Tensor, shape: tuple[int, ...]) -> list[Tensor]:
    """Places in the flattened array as positions along each dimension, of which there is at least one."""
    positions = []
    for extent in reversed(shape[1:]):
        positions.append(apply(e.remainder, places, extent))
        places = apply(e.floor_divide, places, extent)
    return [places, *reversed(positions)]


def wrapped_indices(indices: Tensor, extent: int, dim: int) -> Tensor:
    """Index arrays as int64 counted from the front; the values are checked where they are known."""
    values = unwrap(indices)
    if isinstance(values, np.ndarray) and not is_tracing():
        found = checked_indices(values, extent, dim)
        return indices if found is values else wrap(found)
    if _number_of(indices) is not None:  # it has been checked
        return indices
    if extent == 0 and indices.numel() and not current_trace().is_in_loop:  # which may have no step
        fail(DimensionError, f"an index is out of bounds for dimension {dim} with size 0")
    indices = as_dtype(indices, INT64)
    if x_ops.counts_from_zero(indices._value):
        return indices
    result = apply(e.where, apply(e.less, indices, 0), apply(e.add, indices, extent), indices)
    if type(result._value) is Node:
        result._value = result._value.named("position")
    return result


def checked_indices(values: np.ndarray, extent: int, dim: int) -> np.ndarray:
    """The indices as int64 counted from the front; DimensionError for one out of bounds."""
    values = values.astype(np.int64, copy=False)
    if not values.size:
        return values
    low, high = int(np.minimum.reduce(values, None)), int(np.maximum.reduce(values, None))
    if low < -extent or high >= extent:
        wrong = low if low < -extent else high
        fail(DimensionError, f"index {wrong} is out of bounds for dimension {dim} with size {extent}")
    return values if low >= 0 else np.where(values < 0, values + extent, values)


# --- index arrays ---------------------------------------------------------------------------------------


def _runs(places: Sequence[int]) -> bool:
    """Whether the places follow each other without a gap."""
    return places[-1] - places[0] == len(places) - 1


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
    return order, places[0] if _runs(places) else 0


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
