"""An index taken apart: a slice of every dimension, a shape, index arrays.

In the shape integers have dropped a dimension, and None has added one. Masks become index arrays, and
positions count from the front; what is out of bounds, or no index, is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ....tracer.dims import Dim
from ....tracer.errors import ArgumentError, DimensionError
from ....tracer.graph import Node, constant
from ....tracer.lost_numbers import traced_size
from ....tracer.ops import elementwise as e
from ....tracer.ops import indexing as x_ops
from ....tracer.ops.reduction import cumsum, sum_
from ....tracer.origin import warn_at_user
from ....tracer.records import record
from ....tracer.spec import BOOL, CONTINUOUS, INT64, Spec
from ....tracer.trace import current_trace, is_tracing
from ...tape.apply import apply, unwrap, wrap
from ...tape.local import is_local, local
from ...values.foreign import how_to_pass, unboxed
from ...values.tensor import Tensor, make
from ...values.value_kinds import Auxiliary, NumpyTensor, as_kind
from ..common import array_dtype, as_dtype, fail, iota, truth
from ..shapes.joining import stack
from ..shapes.parts import sliced

VALID = "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices"
BYTES = (
    "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead. The bytes "
    "count as a mask, not as positions: for these convert them with .long()."
)


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
    return kinds[: advanced[0]].count("slice") if have_no_gap(advanced) else 0


def have_no_gap(places: Sequence[int]) -> bool:
    """Whether the places follow each other without a gap."""
    return places[-1] - places[0] == len(places) - 1


def _with_integers_as_arrays(items: list[Any], shape: tuple[int, ...]) -> list[Any]:
    """The items with 0-d index arrays in the place of integers."""
    found, dim = [], 0
    for item in items:
        start = position_from_front(item, shape[dim], dim) if _kind(item) == "integer" else None
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
        start = position_from_front(item, shape[dim], dim)
        basic.take(start, start + 1)
        basic.title = "SelectBackward0"
    else:
        _enter_slice(item, basic, shape[dim])


def position_from_front(index: int, extent: int, dim: int) -> int:
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


def limit_from_front(value: Any, default: int, extent: int) -> int:
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
        start, stop = limit_from_front(item.start, 0, extent), limit_from_front(item.stop, extent, extent)
        step = 1
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


FEW = 40
"""Numbers whose extremes Python finds sooner than NumPy."""


def checked_indices(values: np.ndarray, extent: int, dim: int) -> np.ndarray:
    """The indices as int64 counted from the front; DimensionError for one out of bounds."""
    values = values.astype(np.int64, copy=False)
    if not values.size:
        return values
    if values.ndim == 1 and len(values) <= FEW:
        listed = values.tolist()
        low, high = min(listed), max(listed)
    else:
        low, high = int(np.minimum.reduce(values, None)), int(np.maximum.reduce(values, None))
    if low < -extent or high >= extent:
        wrong = low if low < -extent else high
        fail(DimensionError, f"index {wrong} is out of bounds for dimension {dim} with size {extent}")
    return values if low >= 0 else np.where(values < 0, values + extent, values)
