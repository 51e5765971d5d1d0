"""Rows of operators that move elements, or make them of nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .rows import EVERYTHING, NO_OPERANDS, Case, Row, Shape


def moves(name: str, expected: Callable[..., Any], *cases: Case, **fields: Any) -> Row:
    return Row(name, expected, cases, dtypes=EVERYTHING, ulps=0, **fields)


def _region(x: np.ndarray, starts: Shape, stops: Shape, steps: Shape) -> tuple[slice, ...]:
    return tuple(slice(*bounds) for bounds in zip(starts, stops, steps))


def _dilated(x: np.ndarray, shape: Shape, starts: Shape, stops: Shape, steps: Shape) -> np.ndarray:
    result = np.zeros(shape, x.dtype)
    result[_region(x, starts, stops, steps)] = x
    return result


def _with_diagonal(x: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    return np.where(np.eye(x.shape[-1], dtype=bool), diagonal[..., None], x)


def _of_diagonal(x: np.ndarray) -> np.ndarray:
    return _with_diagonal(np.zeros((*x.shape, x.shape[-1]), x.dtype), x)


def _updated(x: np.ndarray, update: np.ndarray, starts: Shape, stops: Shape, steps: Shape) -> np.ndarray:
    result = x.copy()
    result[_region(x, starts, stops, steps)] = update
    return result


def _padded(x: np.ndarray, widths: Sequence[tuple[int, int]], value: float) -> np.ndarray:
    return np.pad(x, widths, constant_values=x.dtype.type(value)) if x.ndim else x


def _flipped(x: np.ndarray, dims: Shape) -> np.ndarray:
    return x[tuple(slice(None, None, -1 if axis in dims else 1) for axis in range(x.ndim))]


def _sliced(shape: Shape, starts: Shape, stops: Shape, steps: Shape) -> Case:
    return Case((shape,), {"starts": starts, "stops": stops, "steps": steps})


REGIONS = (
    ((7,), (2,), (6,), (1,)), ((7,), (0,), (7,), (2,)), ((7,), (1,), (6,), (3,)),
    ((5, 4), (1, 0), (4, 4), (1, 1)),
    ((5, 4), (0, 1), (5, 4), (2, 2)), ((5, 4), (3, 0), (4, 1), (1, 1)), ((5,), (2,), (2,), (1,)),
    ((3, 4, 2), (0, 2, 0), (3, 4, 2), (1, 1, 1)), ((40,), (11,), (37,), (1,)),
    ((0, 3), (0, 1), (0, 2), (1, 1)), ((), (), (), ()),
)  # fmt: skip


def region_shape(starts: Shape, stops: Shape, steps: Shape) -> Shape:
    return tuple(len(range(*bounds)) for bounds in zip(starts, stops, steps))


MOVEMENT = (
    moves("reshape", lambda x, shape: np.ravel(x).reshape(shape), *(
        Case((before,), {"shape": after}) for before, after in (
            ((6,), (2, 3)), ((2, 3), (6,)), ((2, 3), (3, 2)), ((4, 1, 3), (4, 3)), ((4, 3), (1, 4, 1, 3)),
            ((), (1,)), ((1, 1), ()), ((0, 4), (2, 0)), ((2, 3, 4), (6, 4)), ((2, 3, 4), (2, 12)),
            ((2, 12), (2, 3, 4)), ((4, 6), (3, 8)), ((5,), (5,)), ((0,), (0, 3)),
        )
    )),
    moves("permute", lambda x, dims: np.moveaxis(x, dims, range(len(dims))), *(
        Case((shape,), {"dims": dims}) for shape, dims in (
            ((3, 4), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((2, 3, 4), (0, 2, 1)), ((5,), (0,)), ((), ()),
            ((1, 4), (1, 0)), ((0, 3), (1, 0)), ((2, 3, 1, 2), (3, 1, 0, 2)),
        )
    )),
    moves("expand", lambda x, shape: x * np.ones(shape, x.dtype), *(
        Case((before,), {"shape": after}) for before, after in (
            ((1,), (4,)), ((3, 1), (3, 4)), ((), (2, 3)), ((4,), (3, 4)), ((2, 1, 3), (2, 5, 3)),
            ((3,), (3,)), ((1, 3), (0, 3)), ((1, 1), (2, 1)), ((1, 0), (3, 0)),
        )
    ), special=False),
    moves("slice", lambda x, **bounds: x[_region(x, **bounds)], *(_sliced(*region) for region in REGIONS)),
    moves("dilate", _dilated, *(
        Case((region_shape(*bounds),), {
            "shape": shape, "starts": bounds[0], "stops": bounds[1], "steps": bounds[2]
        }) for shape, *bounds in REGIONS
    )),
    moves("slice_update", _updated, *(
        Case((shape, region_shape(*bounds)), {
            "starts": bounds[0], "stops": bounds[1], "steps": bounds[2]
        }) for shape, *bounds in REGIONS
    )),
    moves("pad", _padded, *(
        Case((shape,), {"widths": widths, "value": value}) for shape, widths, value in (
            ((5,), ((1, 2),), 0.0), ((3, 4), ((0, 0), (2, 0)), 1.0), ((3, 4), ((1, 1), (0, 3)), 0.0),
            ((0,), ((2, 1),), 1.0), ((), (), 0.0), ((4,), ((0, 0),), 0.0),
            ((2, 3, 2), ((0, 1), (0, 0), (1, 0)), 1.0), ((1,), ((1, 0),), 0.0), ((20,), ((12, 9),), 0.0),
        )
    )),
    moves("concatenate", lambda *xs, dim: np.concatenate(xs, dim), *(
        Case(shapes, {"dim": dim}) for shapes, dim in (
            (((3,), (4,)), 0), (((2, 3), (2, 1), (2, 4)), 1), (((2, 3), (1, 3)), 0), (((0, 3), (2, 3)), 0),
            (((4,),), 0), (((2, 1, 3), (2, 2, 3)), 1), (((0,), (0,)), 0), (((1,), (1,), (1,)), 0),
        )
    )),
    moves("flip", _flipped, *(
        Case((shape,), {"dims": dims}) for shape, dims in (
            ((5,), (0,)), ((3, 4), (0,)), ((3, 4), (0, 1)), ((2, 3, 4), (1,)), ((3,), ()),
            ((0, 2), (0,)), ((1, 3), (0, 1)), ((), ()),
        )
    )),
    moves("diagonal", lambda x: np.diagonal(x, 0, -2, -1), *(
        Case((shape,)) for shape in ((4, 4), (1, 1), (0, 0), (3, 5, 5), (2, 3, 1, 1), (0, 2, 2), (40, 40))
    )),
    moves("diagonal_matrix", _of_diagonal, *(
        Case((shape,)) for shape in ((4,), (1,), (0,), (3, 5), (2, 3, 1), (0, 2), (40,))
    )),
    moves("diagonal_update", _with_diagonal, *(
        Case((shape, shape[:-1])) for shape in ((4, 4), (1, 1), (0, 0), (3, 5, 5), (2, 3, 1, 1), (40, 40))
    )),
    moves("rotate", lambda x, dim, shift: np.roll(x, shift, dim), *(
        Case((shape,), {"dim": dim, "shift": shift}) for shape, dim, shift in (
            ((5,), 0, 1), ((5,), 0, -1), ((40,), 0, 3), ((40,), 0, -17), ((3, 20), 1, -1), ((20, 3), 0, 2),
            ((2, 18, 4), 1, 9), ((6,), 0, 6), ((3, 4), 0, -4), ((1, 3), 0, 1), ((3, 0), 0, 1),
        )
    )),
)  # fmt: skip

CREATION = (
    Row("full", lambda shape, value, dtype: np.ones(shape, dtype) * dtype.type(value), tuple(
        Case((), {"shape": shape, "value": value, "dtype": np.dtype(dtype)})
        for shape in ((), (3,), (2, 0), (2, 3))
        for value, dtype in ((1.5, "float32"), (2, "int64"), (True, "bool"))
    ), ulps=0, special=False, no_rule=NO_OPERANDS),
    Row("iota", lambda size, dtype: np.asarray([*range(size)], dtype), tuple(
        Case((), {"size": size, "dtype": np.dtype(dtype)})
        for size in (0, 1, 5) for dtype in ("int64", "float32")
    ), ulps=0, special=False, no_rule=NO_OPERANDS),
)  # fmt: skip
