"""What interpolants share: data along an axis, places among knots, and what is outside of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....tracer.errors import ArgumentError, ShapeError
from ...functions import PUBLIC, declared
from ...functions.common import array_dtype, as_dtype, fail, filled
from ...functions.reductions.sorting import insertion_places
from ...functions.shapes import movement
from ...numpy_api.values import as_array
from ...solvers.requirements import Failure, require
from ...tensors.conversion import tensor_of
from ...values.tensor import Tensor
from ..refusing import Refusing, any_tensor

DOUBLE, COMPLEX = np.dtype("float64"), np.dtype("complex128")
where = PUBLIC["where"]


def doubles(value: Any) -> Tensor:
    """In double precision, as SciPy interpolates."""
    found = tensor_of(value)
    return as_dtype(found, COMPLEX if found.is_complex() else DOUBLE)


def demanded(function: str, value: Tensor, holds: Any, text: str) -> Tensor:
    """The value, where something holds of it; else, where the program runs, ArgumentError."""
    failure = Failure(f"{function}: {text}", ArgumentError)
    return value + require(filled((), 0.0, array_dtype(value)), declared.all(holds), failure)


def knots(function: str, x: Any, count: int, least: int = 2) -> Tensor:
    """A strictly increasing vector of so many places."""
    places = doubles(x)
    if places.ndim != 1 or places.shape[0] != count or count < least or places.is_complex():
        fail(
            ShapeError,
            f"{function}: x must be a vector of at least {least} real numbers, one for each of the {count} "
            f"values along the axis; found the shape {tuple(places.shape)}.",
        )
    increases = PUBLIC["diff"](places._detached()) > 0
    return demanded(function, places, increases, "x must be strictly increasing.")


def along_first(function: str, y: Any, axis: int) -> tuple[Tensor, int]:
    """The values with their axis in front, and that axis counted from the front."""
    values = doubles(y)
    if not -values.ndim <= axis < values.ndim:
        fail(ShapeError, f"{function}: y of shape {tuple(values.shape)} has no axis {axis}.")
    return movement.movedim(values, axis, 0), axis % values.ndim


def like_rows(x: Tensor, y: Tensor) -> Tensor:
    """A vector as what broadcasts with rows of y."""
    return x.reshape((-1, *(1,) * (y.ndim - 1)))


def interval(places: Tensor, at: Tensor, first: int, last: int, after: bool = True) -> Tensor:
    """The number of the interval between knots that each point is in, at least `first`, at most `last`."""
    found = insertion_places(places._detached(), at._detached(), after) - 1
    return PUBLIC["clamp"](found, first, last)


def spread(mask: Tensor, found: Tensor) -> Tensor:
    """What is of points as what broadcasts with their values."""
    return mask.reshape((*mask.shape, *(1,) * (found.ndim - mask.ndim)))


def outside(at: Tensor, low: Any, high: Any) -> Any:
    return PUBLIC["logical_or"](at < low, at > high)


def evaluated(
    x: Any, low: Tensor, high: Tensor, extrapolate: Any, axis: int, evaluate: Callable[[Tensor], Tensor]
) -> Tensor:
    """The values at points of any shape, which takes the place of the axis.

    Args:
        low, high: the ends, outside of which values are nan unless `extrapolate`, or repeat if "periodic".
    """
    at = doubles(x)
    if extrapolate == "periodic":
        at = low + PUBLIC["remainder"](at - low, high - low)
    found = evaluate(at)
    if not extrapolate:
        found = where(spread(outside(at, low, high), found), math.nan, found)
    return placed(found, at.ndim, axis)


def placed(found: Tensor, count: int, axis: int) -> Tensor:
    """Results, whose first dimensions count points, with these where the axis was."""
    if not axis or not count:
        return found
    return movement.movedim(found, list(range(count)), list(range(axis, axis + count)))


class Interpolant(Refusing):
    """What stands for one of SciPy's interpolants; of plain data it is SciPy's own where points are plain."""

    def __init__(self, name: str, plain: Any) -> None:
        self._name, self._plain = f"scipy.interpolate.{name}", plain

    @property
    def _real(self) -> Any:
        return self._plain

    def __getattr__(self, name: str) -> Any:
        plain = vars(self).get("_plain")  # which an object that is being copied has not yet
        if name.startswith("_"):  # programs use private methods of SciPy's, too
            if plain is None:
                raise AttributeError(name)
            return getattr(plain, name)
        if plain is None:
            self._refuse(name)
        return super().__getattr__(name)

    def __call__(self, x: Any, *arguments: Any, **options: Any) -> Any:
        if self._plain is not None and not any_tensor((x, *arguments), options):
            return self._plain(x, *arguments, **options)
        return as_array(self._evaluate(x, *arguments, **options))

    def _evaluate(self, x: Any) -> Tensor:
        raise NotImplementedError


def made(make: Callable[..., Any]) -> Callable[..., Any]:
    """A constructor, which is given the class that it stands for: SciPy's object of plain data is kept."""

    def call(real: type, *arguments: Any, **options: Any) -> Any:
        plain = None if any_tensor(arguments, options) else real(*arguments, **options)
        return make(real.__name__, plain, *arguments, **options)

    return call
