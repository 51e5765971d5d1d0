"""Rows of operators that read and write at positions, and in windows, which data say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .movement import REGIONS, moves, region_shape
from .reductions import SUM_ORDER
from .rows import EVERYTHING, NUMBERS, PART_OF_OTHERS, PREDICATE, Case, Row, Shape


def _at(*positions: Any) -> np.ndarray:
    return np.asarray(positions, np.int64)


GATHERS = (
    Case(((5,), (4,)), fixed={1: _at(0, 4, 4, 2)}),
    Case(((5, 3), (2, 2)), fixed={1: _at([0, 4], [4, 2])}),
    Case(((5, 3), (4,), (4,)), fixed={1: _at(0, 4, 4, 2), 2: _at(2, 0, 0, 1)}),
    Case(((2, 3, 4), (3,)), fixed={1: _at(1, 1, 0)}),
    Case(((5, 3), ()), fixed={1: np.asarray(3)}),
    Case(((5, 3), (0,)), fixed={1: np.zeros(0, np.int64)}),
    Case(((1, 3), (2,)), fixed={1: _at(0, 0)}),
    Case(((5,), ()), fixed={1: np.asarray(2)}),
    Case(((1,), (1,)), fixed={1: _at(0)}),
    Case(((3, 2, 2), (3,), (3,)), fixed={1: _at(0, 1, 2), 2: _at(1, 1, 0)}),
)


def _scattered(updates: np.ndarray, *indices: np.ndarray, shape: Shape) -> np.ndarray:
    result = np.zeros(shape, updates.dtype)
    for place in np.ndindex(indices[0].shape):
        result[tuple(int(index[place]) for index in indices)] += updates[place]
    return result


def _combined(combine: Callable[[Any, Any], Any]) -> Callable[..., np.ndarray]:
    """Of an array and updates of its elements: what they are together."""

    def apply(x: np.ndarray, updates: np.ndarray, *indices: np.ndarray) -> np.ndarray:
        result = x.copy()
        for place in np.ndindex(indices[0].shape):
            at = tuple(int(index[place]) for index in indices)
            result[at] = combine(result[at], updates[place])
        return result

    return apply


def _extreme_of_all(x: np.ndarray, *others: np.ndarray, largest: bool) -> np.ndarray:
    return _combined(np.maximum if largest else np.minimum)(x, *others)


def _folded(ufunc: np.ufunc) -> Callable[..., np.ndarray]:
    """Of updates alone."""

    def apply(updates: np.ndarray, *indices: np.ndarray, shape: Shape) -> np.ndarray:
        kind = updates.dtype.kind
        limits = None if kind == "f" else np.iinfo(updates.dtype)
        lowest, highest = (limits.min, limits.max) if limits else (-np.inf, np.inf)
        first = {np.multiply: 1, np.maximum: lowest, np.minimum: highest}[ufunc]
        return _combined(ufunc)(np.full(shape, first, updates.dtype), updates, *indices)

    return apply


def _put(x: np.ndarray, updates: np.ndarray, *indices: np.ndarray) -> np.ndarray:
    result = x.copy()
    for place in np.ndindex(indices[0].shape):
        result[tuple(int(index[place]) for index in indices)] = updates[place]
    return result


def _gathered_shape(case: Case) -> Shape:
    x, *indices = case.shapes
    return indices[0] + x[len(indices) :]


def _moved_up(case: Case) -> dict[int, np.ndarray]:
    return {position + 1: index for position, index in case.fixed.items()}


def _placed(shape: Shape, places: Sequence[np.ndarray], steps: Shape, ragged: Shape) -> Iterator[Any]:
    """Of each element of a window within the sizes, its place in the window, and in the array."""
    extents = [*shape]
    for dim, size in zip(ragged, places[len(shape) :]):
        extents[dim] = int(size)
    for place in np.ndindex(*extents):
        yield place, tuple(int(start) + step * at for start, step, at in zip(places, steps, place))


def _shown(x: np.ndarray, *places: np.ndarray, shape: Shape, steps: Shape, ragged: Shape) -> np.ndarray:
    result = np.zeros(shape, x.dtype)
    for place, source in _placed(shape, places, steps, ragged):
        result[place] = x[source]
    return result


def _surrounded(x: np.ndarray, *places: np.ndarray, shape: Shape, steps: Shape, ragged: Shape) -> np.ndarray:
    return _overwritten(np.zeros(shape, x.dtype), x, *places, steps=steps, ragged=ragged)


def _overwritten(
    x: np.ndarray, update: np.ndarray, *places: np.ndarray, steps: Shape, ragged: Shape
) -> np.ndarray:
    result = x.copy()
    for place, target in _placed(update.shape, places, steps, ragged):
        result[target] = update[place]
    return result


WINDOWS = (
    *((shape, region_shape(*bounds), bounds[0], bounds[2], ()) for shape, *bounds in REGIONS),
    ((7,), (4,), (1, 3), (1,), (0,)), ((7,), (4,), (2, 0), (1,), (0,)), ((7,), (4,), (5,), (-1,), ()),
    ((7,), (4,), (6, 2), (-2,), (0,)), ((5, 4), (3, 2), (1, 1, 2), (1, 1), (0,)),
    ((5, 4), (1, 4), (3, 0, 3), (1, 1), (1,)), ((5, 4), (4, 4), (0, 3, 3, 4), (1, -1), (0, 1)),
)  # fmt: skip


def _windowed(before: int, places: Shape, **attributes: Any) -> tuple[dict[str, Any], dict[int, np.ndarray]]:
    """The attributes of an operator, and the places as its operands from `before` on."""
    return attributes, {before + one: np.asarray(place, np.int64) for one, place in enumerate(places)}


WINDOWED = (
    Row("within", lambda size, extent: np.asarray([place < size for place in range(extent)], bool), tuple(
        Case(((),), {"extent": extent}, {0: np.asarray(size, np.int64)})
        for extent, size in ((5, 3), (4, 0), (4, 4), (0, 0), (1, 1))
    ), dtypes=("int64",), ulps=0, special=False, no_rule=PREDICATE),
    moves("slice_at", _shown, *(
        Case((whole, *((),) * len(places)), *_windowed(1, places, shape=part, steps=steps, ragged=ragged))
        for whole, part, places, steps, ragged in WINDOWS
    )),
    moves("dilate_at", _surrounded, *(
        Case((part, *((),) * len(places)), *_windowed(1, places, shape=whole, steps=steps, ragged=ragged))
        for whole, part, places, steps, ragged in WINDOWS
    )),
    moves("update_at", _overwritten, *(
        Case((whole, part, *((),) * len(places)), *_windowed(2, places, steps=steps, ragged=ragged))
        for whole, part, places, steps, ragged in WINDOWS
    )),
)  # fmt: skip
SCATTERED = {"scatter_multiply": np.multiply, "scatter_maximum": np.maximum, "scatter_minimum": np.minimum}
INTO = tuple(
    Case((shape, *(index.shape for index in (indices[0], *indices))), {}, dict(enumerate(indices, 2)))
    for shape, *indices in (
        ((5,), _at(0, 4, 4, 2)), ((5, 3), _at([0, 4], [4, 0]), _at([1, 2], [2, 1])), ((1,), _at(0)),
        ((3,), _at()), ((3,), np.asarray(1)), ((2, 2), _at([1, 1, 1]), _at([0, 1, 0])),
    )
)  # fmt: skip
INDEXING = (
    Row("gather", lambda x, *indices: x[indices], GATHERS, dtypes=EVERYTHING, ulps=0),
    Row("scatter_add", _scattered, tuple(
        Case((_gathered_shape(case), *case.shapes[1:]), {"shape": case.shapes[0]}, case.fixed)
        for case in GATHERS
    ), dtypes=NUMBERS, because=SUM_ORDER),
    *(Row(name, _folded(ufunc), tuple(
        Case((_gathered_shape(case), *case.shapes[1:]), {"shape": case.shapes[0]}, case.fixed)
        for case in GATHERS
    ), dtypes=NUMBERS, ulps=4, no_rule=PART_OF_OTHERS) for name, ufunc in SCATTERED.items()),
    Row("scatter_extreme", _extreme_of_all, tuple(
        Case(case.shapes, {"largest": largest}, case.fixed) for case in INTO for largest in (True, False)
    ), dtypes=NUMBERS, ulps=0, distinct=True),
    Row("scatter_prod", _combined(np.multiply), INTO, dtypes=NUMBERS, ulps=16, because=SUM_ORDER),
    Row("index_update", _put, tuple(
        Case((case.shapes[0], _gathered_shape(case), *case.shapes[1:]), {}, _moved_up(case)) for case in (
            *GATHERS[3:], Case(((5,), (3,)), fixed={1: _at(4, 0, 2)}),
            Case(((5, 3), (3,), (3,)), fixed={1: _at(0, 4, 2), 2: _at(2, 0, 0)}),
        )
    ), dtypes=EVERYTHING, ulps=0, order=2),
    Row("placed", _put, tuple(
        Case((case.shapes[0], _gathered_shape(case), *case.shapes[1:]), {}, _moved_up(case)) for case in (
            Case(((5,), (3,)), fixed={1: _at(4, 0, 2)}),
            Case(((5, 3), (3,), (3,)), fixed={1: _at(0, 4, 2), 2: _at(2, 0, 0)}), *GATHERS[4:6], *GATHERS[7:],
        )
    ), dtypes=EVERYTHING, ulps=0, order=2),
)  # fmt: skip
