"""`scipy.interpolate.interp1d` on Tensors: lines, steps, and splines between points."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError
from ...functions import PUBLIC
from ...functions.common import array_dtype, as_dtype, fail
from ...functions.reductions.sorting import insertion_places
from ...numpy_api.values import averaged
from ...tensors.conversion import tensor_of
from ...values.tensor import Tensor
from .piecewise import PIECEWISE
from .points import Interpolant, along_first, demanded, doubles, made, outside, placed, spread, where
from .splines import make_interp_spline

DEGREES = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
STEPS = ("nearest", "nearest-up", "previous", "next")


class Interpolation(Interpolant):
    """Values between points, as SciPy's `interp1d` finds them."""

    def __init__(
        self, name: str, plain: Any, x: Tensor, y: Tensor, kind: Any, bounds_error: Any, fill_value: Any,
        axis: int,
    ) -> None:  # fmt: skip
        super().__init__(name, plain)
        self.kind, self.fill_value, self.axis = kind, fill_value, axis
        self._dtypes, self._y = (array_dtype(x), array_dtype(y)), doubles(y)
        self.x = doubles(x)
        self._extrapolates = isinstance(fill_value, str) and fill_value == "extrapolate"
        self.bounds_error = not self._extrapolates if bounds_error is None else bounds_error
        degree = DEGREES.get(kind, kind)
        if degree == 3:
            self._spline = _through(self.x, self._y)
        elif isinstance(degree, int):
            self._spline = make_interp_spline(self.x, self._y, degree)

    @property
    def y(self) -> Tensor:
        return placed(as_dtype(self._y, self._dtypes[1]), 1, self.axis)

    def _evaluate(self, x: Any) -> Tensor:
        at = doubles(x)
        below, above = at < self.x[0], at > self.x[-1]
        if self.bounds_error:
            text = "x must lie between the first and the last point. Give bounds_error=False for others."
            inside = PUBLIC["logical_not"](outside(at, self.x[0], self.x[-1]))
            at = demanded("scipy.interpolate.interp1d", at, inside, text)
        found = self._between(at)
        if not self._extrapolates:
            fill = self.fill_value if isinstance(self.fill_value, tuple) else (self.fill_value,) * 2
            for mask, value in zip((below, above), fill):
                found = where(spread(mask, found), as_dtype(tensor_of(value), array_dtype(found)), found)
        elif self.kind in ("previous", "next"):
            mask = below if self.kind == "previous" else above
            found = where(spread(mask, found), math.nan, found)
        found = placed(found, at.ndim, self.axis)
        if self.kind == "linear":
            return as_dtype(found, np.result_type(*self._dtypes, array_dtype(tensor_of(x))))
        return as_dtype(found, self._dtypes[1]) if self.kind in STEPS else found

    def _between(self, at: Tensor) -> Tensor:
        if self.kind == "linear":
            return self._on_lines(at)
        if self.kind in STEPS:
            return self._y[self._nearest(at)]
        return self._spline(at, extrapolate=True)

    def _on_lines(self, at: Tensor) -> Tensor:
        places = insertion_places(self.x._detached(), at._detached(), False)
        right = PUBLIC["clamp"](places, 1, self.x.shape[0] - 1)
        start, first = self.x[right - 1], self._y[right - 1]
        widths = spread(self.x[right] - start, first)
        return (self._y[right] - first) / widths * spread(at - start, first) + first

    def _nearest(self, at: Tensor) -> Tensor:
        """The number of the point whose value a step has."""
        edges, points = self.x._detached(), at._detached()
        last = self.x.shape[0] - 1
        if self.kind == "previous":
            return PUBLIC["clamp"](insertion_places(edges, points, True) - 1, 0, last)
        if self.kind == "next":
            return PUBLIC["clamp"](insertion_places(edges, points, False), 0, last)
        middle = edges[1:] / 2.0 + edges[:-1] / 2.0
        return insertion_places(middle, points, self.kind == "nearest-up")


def _through(x: Tensor, y: Tensor) -> Any:
    return PIECEWISE["CubicSpline"](sys.modules["scipy.interpolate"].CubicSpline, x, y)


def _interp1d(
    name: str, plain: Any, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True,
    bounds_error: Any = None, fill_value: Any = np.nan, assume_sorted: bool = False,
) -> Interpolation:  # fmt: skip
    function = "scipy.interpolate.interp1d"
    places, given = tensor_of(x), averaged(y)
    values, axis = along_first(function, given, axis)
    values = as_dtype(values, array_dtype(given))
    degree = DEGREES.get(kind, kind)
    if kind not in ("linear", *STEPS) and not (isinstance(degree, int) and degree >= 0):
        known = ", ".join(map(repr, ("linear", *STEPS, *DEGREES)))
        fail(ArgumentError, f"{function}: kind must be one of {known}, or a degree; found {kind!r}.")
    least = degree + 1 if isinstance(degree, int) else 2 if kind == "linear" else 1
    if places.ndim != 1 or places.shape[0] != values.shape[0] or places.shape[0] < least:
        fail(
            ShapeError,
            f"{function}: x must be a vector of at least {least} places, one for each value along the axis; "
            f"found the shapes {tuple(places.shape)} and {tuple(given.shape)}.",
        )
    if not assume_sorted:
        order = PUBLIC["argsort"](places._detached(), stable=True)
        places, values = places[order], values[order]
    return Interpolation(name, plain, places, values, kind, bounds_error, fill_value, axis)


def univariate_of(value: Any) -> Interpolant | None:
    """What stands for SciPy's `interp1d`."""
    if not isinstance(value, sys.modules["scipy.interpolate"].interp1d):
        return None
    kind = value._spline.k if value._kind == "spline" else value._kind
    return _interp1d(
        "interp1d", value, np.asarray(value.x), np.asarray(value.y), kind, value.axis, True,
        value.bounds_error, value.fill_value, True,
    )  # fmt: skip


UNIVARIATE: dict[str, Callable[..., Any]] = {"interp1d": made(_interp1d)}
