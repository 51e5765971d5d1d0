"""NumPy's functions that call functions, on Tensors: `np.apply_along_axis`, `np.piecewise`, `np.vectorize`.

And `np.r_` and `np.c_`, which are indexed as if they were arrays.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import ArgumentError
from ..functions import PUBLIC
from ..functions.common import array_dtype, as_dtype, fail
from ..functions.selections.indexing import updated
from ..functions.shapes import joining, movement
from ..tape.apply import lay_in_order
from ..tensors.conversion import holds_tensor, tensor_of
from ..values.tensor import Tensor
from .functions import FUNCTIONS, implements
from .values import axis_of, of_arrays, promoted

Function = Callable[..., Any]


def _stacked(results: Sequence[Any], dtype: np.dtype | None = None) -> Tensor:
    """Results of a function that is called again and again as one array, in the dtype of the first one."""
    tensors = [tensor_of(one) for one in results]
    dtype = array_dtype(tensors[0]) if dtype is None else dtype
    return joining.stack([as_dtype(one, dtype) for one in tensors], 0)


@implements(np.apply_along_axis, in_order=False)
def apply_along_axis(func1d: Function, axis: int, arr: Any, *args: Any, **options: Any) -> Tensor:
    """What a function gives of each row along a dimension, in the place of the row."""
    x = tensor_of(arr)
    axis = axis_of(axis, x, "apply_along_axis")
    rows = movement.movedim(x, axis, -1)
    outside = tuple(rows.shape[:-1])
    if 0 in outside:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")  # as NumPy
    found = [func1d(row, *args, **options) for row in rows.reshape(math.prod(outside), rows.shape[-1])]
    results = _stacked(found)
    inside = tuple(results.shape[1:])
    results = results.reshape((*outside, *inside))
    count = len(inside)
    return FUNCTIONS[np.moveaxis](
        results, tuple(range(len(outside), len(outside) + count)), tuple(range(axis, axis + count))
    )


@implements(np.apply_over_axes)
def apply_over_axes(func: Function, a: Any, axes: Any) -> Tensor:
    """A function of an array and a dimension, for several dimensions one after the other."""
    x = tensor_of(a)
    for axis in np.atleast_1d(axes).tolist():
        found = func(x, axis)
        x = found if found.ndim == x.ndim else FUNCTIONS[np.expand_dims](found, axis)
    return x


@implements(np.piecewise, in_order="K")
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Tensor:
    """Functions of the elements where their conditions hold, the last of those that do; or constants."""
    values = tensor_of(x)
    single = isinstance(condlist, np.ndarray | Tensor) and condlist.ndim == values.ndim
    listed = [condlist] if single or not np.iterable(condlist) else list(condlist)
    if values.ndim and np.ndim(listed[0]) == 0:
        listed = [listed]
    masks = [tensor_of(one) for one in listed]
    masks = [as_dtype(one, np.dtype("bool")) for one in masks]
    if len(masks) == len(funclist) - 1:
        covered = masks[0]
        for mask in masks[1:]:
            covered = PUBLIC["logical_or"](covered, mask)
        masks.append(PUBLIC["logical_not"](covered))
    if len(masks) != len(funclist):
        fail(
            ArgumentError,
            f"numpy.piecewise: with {len(masks)} condition(s), either {len(masks)} or {len(masks) + 1} "
            "functions are expected",
        )
    result = values * 0
    for mask, function in zip(masks, funclist):
        if not callable(function):
            result = PUBLIC["where"](mask, as_dtype(tensor_of(function), array_dtype(values)), result)
        elif not values.ndim:
            chosen = as_dtype(tensor_of(function(values, *args, **kw)), array_dtype(values))
            result = PUBLIC["where"](mask, chosen, result)
        else:
            chosen = as_dtype(tensor_of(function(values[mask], *args, **kw)), array_dtype(values))
            result = updated(result, mask, chosen)
    return result


def _called(function: Function, given: dict[Any, Any], count: int) -> Any:
    """What a function gives for arguments by position, of which there are `count`, and by name."""
    names = {name: value for name, value in given.items() if isinstance(name, str)}
    return function(*(given[place] for place in range(count)), **names)


class Vectorized:
    """`np.vectorize(function)` for Tensors as well: a function of numbers, called for each element."""

    def __init__(
        self, pyfunc: Function, otypes: Any = None, doc: Any = None, excluded: Any = None,
        cache: bool = False, signature: str | None = None,
    ) -> None:  # fmt: skip
        self._real = np.vectorize(pyfunc, otypes, doc, excluded, cache, signature)

    @classmethod
    def of(cls, real: np.vectorize) -> Vectorized:
        """What stands for one that was made before."""
        made = cls.__new__(cls)
        made._real = real
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not any(map(holds_tensor, (*args, *kwargs.values()))):
            return self._real(*args, **kwargs)
        names = [key for key in (*range(len(args)), *kwargs) if key not in self._real.excluded]
        given: dict[Any, Any] = dict(enumerate(args)) | kwargs
        arrays = [of_arrays(tensor_of(given[name])) for name in names]
        inner = self._inner(arrays)
        outer = [tuple(one.shape[: one.ndim - rank]) for one, rank in zip(arrays, inner)]
        shape = np.broadcast_shapes(*outer)
        flat = [
            movement.broadcast_to(one, (*shape, *one.shape[one.ndim - rank :])).reshape(
                (math.prod(shape), *one.shape[one.ndim - rank :])
            )
            for one, rank in zip(arrays, inner)
        ]
        if 0 in shape:  # of which NumPy asks nothing but the shape, or raises
            empty = given | {name: np.empty(one.shape, array_dtype(one)) for name, one in zip(names, arrays)}
            return _called(self._real, empty, len(args))
        found = [_called(self._real.pyfunc, given | dict(zip(names, row)), len(args)) for row in zip(*flat)]
        columns = zip(*found) if isinstance(found[0], tuple) else [found]
        results = [self._shaped(one, shape, place) for place, one in enumerate(columns)]
        if self._real.signature is None and len(shape) > 1:
            values = [one._value for one in arrays]
            for result in results:
                lay_in_order(result, values, lambda of: _with_all(map(of, values)))
        return tuple(results) if isinstance(found[0], tuple) else results[0]

    def _inner(self, arrays: Sequence[Tensor]) -> list[int]:
        """How many dimensions of each argument the function takes."""
        if self._real.signature is None:
            return [0] * len(arrays)
        left = self._real.signature.split("->")[0]
        return [len(re.findall(r"\w+", part)) for part in re.findall(r"\(([^()]*)\)", left)]

    def _shaped(self, results: Sequence[Any], shape: tuple[int, ...], place: int = 0) -> Tensor:
        """The results of all elements as an array."""
        rows = _stacked(results, np.dtype(self._real.otypes[place]) if self._real.otypes else None)
        return of_arrays(rows.reshape((*shape, *rows.shape[1:])))


def _with_all(arrays: Iterable[np.ndarray]) -> np.ndarray:
    """What lies as the result of a ufunc that takes all of these arrays."""
    return functools.reduce(np.add, (np.zeros_like(one, np.int8) for one in arrays))


def enumerated(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """`np.ndenumerate`: the place and the value of each element."""
    return ((place, arr[place]) for place in np.ndindex(*np.shape(arr)))


class Joiner:
    """What `np.r_` and `np.c_` are, which take Tensors as well."""

    def __init__(self, real: Any, axis: int, ndmin: int, trans1d: int) -> None:
        self._real = real
        self._defaults = axis, ndmin, trans1d

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if not any(map(holds_tensor, items)):
            return self._real[key]
        axis, ndmin, trans1d = self._defaults
        if isinstance(items[0], str):
            if items[0] in ("r", "c"):
                return self._real[key]
            numbers = [int(one) for one in items[0].split(",")]
            axis, ndmin, trans1d = (*numbers, *(axis, ndmin, trans1d)[len(numbers) :])
            items = items[1:]
        parts = [self._part(one, ndmin, trans1d) for one in items]
        return of_arrays(joining.cat(promoted(parts), axis))

    @staticmethod
    def _part(item: Any, ndmin: int, trans1d: int) -> Any:
        """One of the arrays that are joined, with at least so many dimensions."""
        x = tensor_of(np.r_[item] if isinstance(item, slice) else item)
        missing = ndmin - x.ndim
        if missing <= 0:
            return x
        if not x.ndim or trans1d == -1:
            return x.reshape((*(1,) * missing, *x.shape))
        front = trans1d if trans1d >= 0 else trans1d + missing + 1
        places = list(range(ndmin))
        order = places[:front] + places[missing:] + places[front:missing]
        return movement.permute(x.reshape((*(1,) * missing, *x.shape)), tuple(order))


JOINERS = {"r_": Joiner(np.r_, 0, 1, -1), "c_": Joiner(np.c_, -1, 2, 0)}
