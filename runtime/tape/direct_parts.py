"""The short way of `x[i]` with integers, slices, None and Ellipsis, and of `x[i] = v` with one of them.

It is for arrays outside of traces: what is read is one node on the tape, and what is written another. In a
trace, and with other indices, they are made of the operators of `tracer/ops/movement.py`, to the same result.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...tracer.ops.elementwise import zeros_like
from ...tracer.ops.movement import dilate, flip, reshape, slice_, slice_update
from ...tracer.ops.reduction import sum_to_shape, summed_to_shape
from ...tracer.trace import innermost
from ..values.modes import is_recording
from ..values.nodes import Edge, GradNode, next_sequence, observers
from ..values.tensor import Tensor, TorchTensor, View, make, mark_written, require_writable
from ..values.value_kinds import NumpyScalar, NumpyTensor
from .direct import direct
from .inplace import keep_saved, require_assignable

ndarray = np.ndarray
Index = Any
"""An integer, a slice, None, Ellipsis, or a tuple of these."""
KINDS = (TorchTensor, NumpyTensor)
BOUNDS = (int, type(None))
ITEMS = frozenset((int, slice, type(None), type(...)))
ALL = slice(None)
_dilated = direct(dilate, dilate)
_new = object.__new__


class PartView(View):
    """How a tensor shows a part of another; the operators in between are made when somebody asks."""

    __slots__ = ("index", "shape", "within")

    def __init__(self, whole: Tensor, index: Index) -> None:
        view = whole._view
        self.base = whole if view is None else view.base
        self.tracks = is_recording() and (view is None or view.tracks)
        self.of_several = "" if view is None else view.of_several
        self.seen = whole._cell[0]
        self.within = view
        self.index = index
        self.shape = whole._value.shape

    @property
    def steps(self) -> tuple[Any, ...]:  # type: ignore[override]
        taken = tuple((operator, attributes) for operator, attributes, _ in steps_of(self.index, self.shape))
        return taken if self.within is None else self.within.steps + taken


class PartBackward(GradNode):
    """Of a part that is read: its cotangent among zeros."""

    __slots__ = ("index", "shape", "title")
    runs_rules = may_add_itself = True
    index: Index
    shape: tuple[int, ...]
    title: str
    """What it is called; nothing where the index says it."""

    def name(self) -> str:
        return self.title or _name_of(self.index)

    def given_out(self) -> PartBackward:
        if type(self) is PartBackward:
            self.__class__ = _class_called(self.name())
        return self

    def add_itself(self, g: Any, arrived: dict[Any, Any], borrowed: set[Any]) -> bool:
        target, number = self.edges[0]  # type: ignore[misc]
        whole = None if number or id(target) in borrowed else arrived.get(id(target))
        if type(whole) is not ndarray:
            return False
        whole[self.index] += g
        return True

    def pull_all(self, g: Any) -> Sequence[Any]:
        found = np.zeros(self.shape, g.dtype)
        found[self.index] = g
        return (found,)

    def pull_many(self, g: Any) -> Sequence[Any]:
        found = np.zeros((len(g), *self.shape), g.dtype)
        found[_of_each(self.index)] = g
        return (found,)

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        (g,) = cotangents
        if type(g) is ndarray:  # no Tensor that stands for one
            return self.pull_all(g)
        for operator, attributes, shape in reversed(steps_of(self.index, self.shape)):
            if operator is slice_:
                g = _dilated(g, shape=shape, **attributes)
            else:
                g = flip(g, **attributes) if operator is flip else reshape(g, shape=shape)
        return (g,)


_NAMES: dict[type, str] = {
    int: "SelectBackward0", slice: "SliceBackward0", type(None): "UnsqueezeBackward0",
    type(...): "AliasBackward0",
}  # fmt: skip
"""What PyTorch calls the node of what an item does, by its class."""


def _of_each(index: Index) -> tuple[Any, ...]:
    """The index of the same part of each of several arrays, which lie along a first dimension."""
    return (ALL, *index) if type(index) is tuple else (ALL, index)


class CopySlices(GradNode):
    """Of an array into which a part was written: its cotangent is the part's there, and zero for the rest."""

    __slots__ = ("index", "part", "shape")
    runs_rules = True

    def __init__(
        self, edges: Sequence[Edge | None], index: Index, shape: tuple[int, ...], part: tuple[int, ...]
    ) -> None:
        super().__init__(edges)
        self.index = index
        self.shape = shape
        self.part = part

    def pull_all(self, g: Any) -> Sequence[Any]:
        rest = part = None
        if self.edges[0] is not None:
            rest = g.copy()
            rest[self.index] = 0
        if self.edges[1] is not None:
            part = sum_to_shape(g[self.index], self.part)
        return rest, part

    def pull_many(self, g: Any) -> Sequence[Any]:
        index, rest = _of_each(self.index), g.copy()
        part, rest[index] = rest[index].copy(), 0
        new = part.ndim - 1 - len(self.part)
        part = summed_to_shape(part, (len(g), *(1,) * new, *self.part))
        return rest, part.reshape(len(g), *self.part)

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        (g,) = cotangents
        if type(g) is ndarray:  # no Tensor that stands for one
            return self.pull_all(g)
        region = region_of(self.index, self.shape)
        part = slice_(g, **region)
        rest = slice_update(g, zeros_like(part), **region)
        if type(self.index) is int:
            part = reshape(part, shape=self.shape[1:])
        return rest, sum_to_shape(part, self.part)


def region_of(index: Index, shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """The attributes of `slice_` that reads such a part, with one position for an integer."""
    extent, rest = shape[0], shape[1:]
    if type(index) is int:
        start = index % extent
        stop = start + 1
    else:
        start, stop, _ = index.indices(extent)
        stop = max(start, stop)
    return {
        "starts": (start, *(0,) * len(rest)), "stops": (stop, *rest), "steps": (1,) * len(shape),
    }  # fmt: skip


def steps_of(index: Index, shape: tuple[int, ...]) -> list[tuple[Any, dict[str, Any], tuple[int, ...]]]:
    """The operators that read such a part, with their attributes, each with the shape of what it reads."""
    items = list(index) if type(index) is tuple else [index]
    rest = [ALL] * (len(shape) - sum(type(one) in (int, slice) for one in items))
    place = items.index(...) if ... in items else len(items)
    items[place : place + 1] = rest
    bounds: list[tuple[int, int, int]] = []
    backwards, target = [], []
    for item in items:
        if item is None:
            target.append(1)
            continue
        extent = shape[len(bounds)]
        if type(item) is int:
            start = item % extent
            bounds.append((start, start + 1, 1))
            continue
        start, stop, step = item.indices(extent)
        length = len(range(start, stop, step))
        if step < 0:
            backwards.append(len(bounds))
            start, step = start + (length - 1) * step, -step
            stop = start + (length - 1) * step + 1
        bounds.append((start, max(start, stop), step) if length else (0, 0, 1))
        target.append(length)
    taken = tuple(len(range(*one)) for one in bounds)
    starts, stops, steps = zip(*bounds) if bounds else ((), (), ())
    found: list[Any] = [(slice_, {"starts": starts, "stops": stops, "steps": steps}, shape)]
    if backwards:
        found.append((flip, {"dims": tuple(backwards)}, taken))
    if tuple(target) != taken:
        found.append((reshape, {"shape": tuple(target)}, taken))
    return found


def is_simple(index: Any) -> bool:
    """Whether it is an integer, or a slice of steps of one."""
    if type(index) is int:
        return True
    is_slice = type(index) is slice and index.step is None
    return is_slice and type(index.start) in BOUNDS and type(index.stop) in BOUNDS


def is_basic(index: Any) -> bool:
    """Whether it is made of integers, slices, None and Ellipsis alone, with plain integers in slices."""
    if type(index) is int:
        return True
    if type(index) is not tuple:
        index = (index,)
    if not ITEMS.issuperset(map(type, index)):
        return False
    for one in index:
        if type(one) is slice and not (
            type(one.start) in BOUNDS and type(one.stop) in BOUNDS and type(one.step) in BOUNDS
        ):
            return False
    return True


def _name_of(index: Index) -> str:
    """How the node is called: the last item that does more than take all of a dimension says it."""
    if type(index) is not tuple:
        return _NAMES[type(index)]
    for one in reversed(index):
        if one is not ... and one != ALL:
            return _NAMES[type(one)]
    return _NAMES[slice if ALL in index else type(...)]


@functools.cache
def _class_called(name: str) -> type[PartBackward]:
    return type(name, (PartBackward,), {"__slots__": ()})


def read_part(x: Tensor, index: Index, title: str = "") -> Tensor | None:
    """`x[index]` with a basic index; None where it takes the general way, as if it has no such element.

    Args:
        title: how its node on the tape is called, unless the index says it.
    """
    kind = type(x)
    if kind not in KINDS or observers or innermost() is not None:
        return None
    view = x._view
    if view is not None and view.seen != x._cell[0]:
        x.refresh()
    value = x._value
    if type(value) is not ndarray or not value.ndim:
        return None
    try:
        shown = value[index, ...] if type(index) is int and kind is not NumpyTensor else value[index]
        is_element = type(shown) is not ndarray and kind is NumpyTensor
        if is_element:
            shown = np.asarray(shown)
        elif type(shown) is not ndarray:
            shown = value[(*index, ...) if type(index) is tuple else (index, ...)]
    except (IndexError, ValueError):
        return None
    tensor = make(shown, NumpyScalar if is_element else kind)
    if not is_element:
        tensor._cell = x._cell
        tensor._frozen = x._frozen
        tensor._view = PartView(x, index)
    if x._requires_grad and is_recording():
        node = tensor._grad_fn = _new(PartBackward)
        node.edges = ((x._grad_fn or x, x._output_nr),)
        node.hooks = None
        node.sequence = next_sequence()
        node.index = index
        node.shape = value.shape
        node.title = title
        tensor._requires_grad = True
    return tensor


def write_part(target: Tensor, index: Index, value: Any) -> bool:
    """`target[index] = value` with a simple index, if this is the way; False where it takes the general one.

    Raises as the general one does: see `inplace.assign`.
    """
    if type(target) not in KINDS or target._view is not None or observers or innermost() is not None:
        return False
    memory, number = target._value, value
    if type(memory) is not ndarray or memory.dtype.kind != "f" or not memory.ndim or memory.base is not None:
        return False
    if type(index) is int and not -len(memory) <= index < len(memory):
        return False
    is_tensor = isinstance(value, Tensor)
    if is_tensor:
        number = value._value
        if value._view is not None or type(number) is not ndarray or number.dtype != memory.dtype:
            return False
        if number.ndim and number.shape != memory[index].shape:
            return False
    elif type(value) is not float:
        return False
    former = target._grad_fn
    if not memory.flags.writeable or (former is not None and former.hooks is not None):
        return False
    require_assignable(target)
    require_writable(target)
    keep_saved(target)
    memory[index] = number
    mark_written(target)
    has_gradient = is_tensor and value._requires_grad
    if is_recording() and (has_gradient or target._requires_grad):
        edges = (
            (former or target, target._output_nr) if target._requires_grad else None,
            (value._grad_fn or value, value._output_nr) if has_gradient else None,
        )
        target._grad_fn = CopySlices(edges, index, memory.shape, number.shape if is_tensor else ())
        target._output_nr = 0
        target._requires_grad = True
    return True
