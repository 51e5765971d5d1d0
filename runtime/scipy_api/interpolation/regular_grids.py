"""Interpolation in regular grids on Tensors: `RegularGridInterpolator` and `interpn`, linear or nearest."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ....tracer.errors import ShapeError, UnsupportedError
from ...functions import PUBLIC
from ...functions.common import array_dtype, as_dtype, fail
from ...functions.shapes import joining, movement
from ...numpy_api.values import averaged, of_arrays
from ...tensors.conversion import tensor_of
from ...values.tensor import Tensor
from .points import Interpolant, demanded, doubles, interval, knots, made, outside, spread, where

METHODS = ("linear", "nearest")


class GridInterpolation(Interpolant):
    """Values between the points of a grid, whose last dimension of points counts coordinates."""

    def __init__(
        self, name: str, plain: Any, grid: list[Tensor], values: Tensor, method: str, bounds_error: bool,
        fill_value: Any,
    ) -> None:  # fmt: skip
        super().__init__(name, plain)
        self.grid, self.values, self.method = tuple(grid), values, method
        self.bounds_error, self.fill_value = bounds_error, fill_value

    def _evaluate(self, xi: Any, method: str | None = None) -> Tensor:
        function, rank = self._name, len(self.grid)
        at = _coordinates(function, xi, rank)
        method = _known(function, self.method if method is None else method)
        columns = [at[..., place] for place in range(rank)]
        is_outside = outside(columns[0], self.grid[0][0], self.grid[0][-1])
        for one, grid in zip(columns[1:], self.grid[1:]):
            is_outside = is_outside | outside(one, grid[0], grid[-1])
        if self.bounds_error:
            text = "a point lies outside of the grid. Give bounds_error=False and a fill_value."
            columns[0] = demanded(function, columns[0], ~is_outside, text)
        found = self._between(columns, method)
        if not self.bounds_error and self.fill_value is not None:
            value = as_dtype(tensor_of(self.fill_value), array_dtype(found))
            found = where(spread(is_outside, found), value, found)
        is_nan = PUBLIC["any"](PUBLIC["isnan"](at), -1)
        return where(spread(is_nan, found), math.nan, found)

    def _between(self, columns: list[Tensor], method: str) -> Tensor:
        """The mean of the corners around each point, weighted by how near they are."""
        places, shares = [], []
        for one, grid in zip(columns, self.grid):
            place = interval(grid, one, 0, grid.shape[0] - 2)
            start = grid[place]
            places.append(place)
            shares.append((one - start) / (grid[place + 1] - start))
        if method == "nearest":
            nearest = [where(share <= 0.5, place, place + 1) for place, share in zip(places, shares)]
            return self.values[tuple(nearest)]
        total: Any = 0.0
        for corner in itertools.product((0, 1), repeat=len(columns)):
            found = self.values[tuple(place + one for place, one in zip(places, corner))]
            weight: Any = 1.0
            for is_upper, share in zip(corner, shares):
                weight = weight * (share if is_upper else 1.0 - share)
            total = total + found * spread(weight, found)
        return total


def _coordinates(function: str, xi: Any, rank: int) -> Tensor:
    """Points whose coordinates lie along the last dimension, or in a tuple of arrays."""
    if isinstance(xi, tuple):
        arrays = movement.broadcast_tensors(*map(doubles, xi))
        at = joining.stack(list(arrays), -1)
    else:
        at = doubles(xi)
        at = at[:, None] if at.ndim == 1 and rank == 1 else at
    if not at.ndim or at.shape[-1] != rank:
        fail(
            ShapeError,
            f"{function}: points of {rank} coordinates along the last dimension are expected, found the "
            f"shape {tuple(at.shape)}.",
        )
    return at.reshape((1, -1)) if at.ndim == 1 else at


def _known(function: str, method: str) -> str:
    if method not in METHODS:
        fail(
            UnsupportedError,
            f"{function}: method={method!r} is not supported on a Tensor, only 'linear' and 'nearest'. Along "
            "one axis CubicSpline and make_interp_spline take tensors.",
        )
    return method


def _grid(
    name: str, plain: Any, points: Any, values: Any, method: str = "linear", bounds_error: bool = True,
    fill_value: Any = np.nan, *, solver: Any = None, solver_args: Any = None,
) -> GridInterpolation:  # fmt: skip
    function = f"scipy.interpolate.{name}"
    found = averaged(values)
    if len(points) > found.ndim:
        fail(
            ShapeError,
            f"{function}: {len(points)} vectors of points for values of the shape {tuple(found.shape)}.",
        )
    grid = [
        knots(f"{function}, along dimension {dim}", one, found.shape[dim]) for dim, one in enumerate(points)
    ]
    return GridInterpolation(name, plain, grid, found, _known(function, method), bounds_error, fill_value)


def grid_of(value: Any) -> Interpolant | None:
    """What stands for SciPy's `RegularGridInterpolator`."""
    if not isinstance(value, sys.modules["scipy.interpolate"].RegularGridInterpolator):
        return None
    grid, values = [tensor_of(np.asarray(one)) for one in value.grid], tensor_of(np.asarray(value.values))
    return GridInterpolation(
        "RegularGridInterpolator", value, grid, values, value.method, value.bounds_error, value.fill_value
    )


def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> Any:  # fmt: skip
    return of_arrays(_grid("interpn", None, points, values, method, bounds_error, fill_value)._evaluate(xi))


GRIDS: dict[str, dict[str, Callable[..., Any]]] = {
    "classes": {"RegularGridInterpolator": made(_grid)},
    "functions": {"interpn": interpn},
}
