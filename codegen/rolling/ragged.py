"""Steps whose values grow or shrink: `a[i, :j] @ a[j, :j]`, where the extents advance from step to step.

In the loop's body such a dimension has the largest extent of all steps, and a size, a value that says how
far it goes in a step. What lies beyond the size repeats an element of the array, so that no derivative is
infinite there, and is masked before elements are combined. Generated code has loops that end at the size, and
no masks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from pullback.tracer.graph import Node, constant, make_node
from pullback.tracer.ops import creation
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import reduction as r
from pullback.tracer.ops import windows as w
from pullback.tracer.ops.contraction import split_subscripts
from pullback.tracer.origin import located_at
from pullback.tracer.spec import Spec

from ...tracer.records import record
from ..rewriting.slices import part_of
from .periods import CannotRoll, whole_of
from .progressions import Progression, progression_of
from .rows import starts_of

Sizes = Mapping[int, Node | None]
"""How far the ragged dimensions of a value go in a step. None: as far as a loop inside says, which masks."""


@record(frozen=True)
class Extent:
    """An extent that advances by a constant from step to step."""

    first: int
    advance: int
    steps: int

    @property
    def last(self) -> int:
        return self.first + (self.steps - 1) * self.advance

    @property
    def largest(self) -> int:
        return max(self.first, self.last)


def extents_of(column: Sequence[Node]) -> dict[int, Extent] | None:
    """The dimensions that differ between the steps; None if one does not advance evenly."""
    if any(node.spec.ndim != column[0].spec.ndim for node in column):
        return None
    shapes = np.array([node.shape for node in column], np.int64)
    advances = shapes[1:] - shapes[:-1]
    if (advances != advances[0]).any():
        return None
    found = zip(shapes[0].tolist(), advances[0].tolist())
    return {dim: Extent(*one, len(column)) for dim, one in enumerate(found) if one[1]}


Lift = Callable[[Progression, Spec, Any], Node]
"""(numbers of all steps, spec, key) -> the number in a step of the loop; the key tells it from others."""


def sizes_in_step(extents: Mapping[int, Extent], lift: Lift, key: tuple[Any, ...]) -> Callable[[int], Node]:
    """How far a dimension goes in a step, as a number that advances."""

    def size(dim: int) -> Node:
        extent = extents[dim]
        return lift(Progression(extent.first, extent.advance), w.PLACE, (*key, "size", dim))

    return size


def starts_in_step(
    column: Sequence[Node], shape: Sequence[int], lift: Lift, key: tuple[Any, ...]
) -> tuple[Node, ...]:
    """Where a slice, or a write, of a shape begins in a step; a loop around may let every start advance."""
    whole = whole_of(column[0]).shape
    found: list[Node] = []
    for dim, numbers in enumerate(starts_of(column)):
        progression = progression_of(numbers)
        assert progression is not None, "checked before"
        is_whole = shape[dim] >= whole[dim] and not progression.advance
        where = (*key, "start", dim)
        found.append(constant(0, w.PLACE) if is_whole else lift(progression, w.PLACE, where))
    return tuple(found)


def padded_shape(node: Node, ragged: Mapping[int, Extent]) -> tuple[int, ...]:
    """The shape that a value of one step has in the body."""
    return tuple(ragged[dim].largest if dim in ragged else extent for dim, extent in enumerate(node.shape))


@record
class Value:
    """A value of the body, and how far it goes."""

    node: Node
    sizes: Sizes
    window: Window | None = None


@record(frozen=True)
class Window:
    """Where a slice was read: to read it backwards."""

    base: Node
    starts: tuple[Node, ...]
    shape: tuple[int, ...]
    steps: tuple[int, ...]


@record(frozen=True)
class Step:
    """What one operation of a step is made from."""

    model: Node
    """The operation, of some step."""
    operands: tuple[Value, ...]
    ragged: Mapping[int, Extent]
    shape: tuple[int, ...]
    """That the result has in the body."""
    starts: tuple[Node, ...]
    """Of a slice or a write."""
    size: Callable[[int], Node]
    """How far a dimension of the result goes (of the part, for a write)."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(one.node for one in self.operands)


Rule = Callable[[Step], Value]
_RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def supports(node: Node) -> bool:
    """Whether an operator may have ragged operands, or a ragged result."""
    return _find(node) is not None


def ragged_value(
    model: Node, operands: tuple[Value, ...], ragged: Mapping[int, Extent], starts: tuple[Node, ...],
    lift: Lift, key: tuple[Any, ...],
) -> Value:  # fmt: skip
    """An operation of a step on values of the body; `Step` and `Lift` say what it takes."""
    rule = _find(model)
    assert rule is not None, "checked before"
    shape, size = padded_shape(part_of(model), ragged), sizes_in_step(ragged, lift, key)
    with located_at(model.origin):
        value = rule(Step(model, operands, ragged, shape, starts, size))
    return replace(value, node=value.node.named(model.name or value.node.name))


def _known(sizes: Sizes) -> dict[int, Node]:
    return {dim: size for dim, size in sizes.items() if size is not None}


def _sizes_of(step: Step, sizes: Sizes, shift: int = 0) -> Sizes:
    """How far the ragged dimensions of a step go: as far as those of an operand, where that has them."""
    known = {dim + shift: size for dim, size in sizes.items()}
    return {dim: known[dim] if dim in known else step.size(dim) for dim in sorted(step.ragged)}


def _find(node: Node) -> Rule | None:
    if node.operator.search is not None:  # what is masked would need a place of its own
        return None
    return _RULES.get(node.operator.name) or _RULES.get(node.operator.family)


def mask(size: Node, dim: int, shape: Sequence[int]) -> Node:
    """Whether a position along a dimension is within the size; it broadcasts against the shape."""
    return m.reshape(w.within(size, extent=shape[dim]), shape=(shape[dim], *(1 for _ in shape[dim + 1 :])))


def _masked(x: Node, sizes: Sizes, dims: Sequence[int], identity: Any) -> Node:
    for dim in dims:
        size = sizes.get(dim)
        if size is not None:
            x = e.where(mask(size, dim, x.shape), x, constant(identity, x.spec.with_shape(())))
    return x


# --- rules: an operation on values of the body --------------------------------------------------------------


@_rule("elementwise", "convert")
def _elementwise(step: Step) -> Value:
    result = make_node(step.model.operator, step.nodes, step.model.attributes)
    sizes: dict[int, Node | None] = {}
    for operand in step.operands:
        shift = result.spec.ndim - operand.node.spec.ndim
        for dim, size in operand.sizes.items():
            if sizes.get(dim + shift) is None:
                sizes[dim + shift] = size
    return Value(result, _sizes_of(step, sizes))


@_rule("iota")
def _iota(step: Step) -> Value:
    attributes = {**step.model.attributes, "size": step.shape[0]}
    return Value(make_node(creation.iota, (), attributes), {dim: step.size(dim) for dim in step.ragged})


@_rule("within")
def _within(step: Step) -> Value:
    """Made for dimensions of a loop inside: there is room for more positions."""
    return Value(w.within(step.nodes[0], extent=step.shape[0]), dict.fromkeys(step.ragged))


@_rule("slice")
def _slice(step: Step) -> Value:
    base = step.nodes[0]
    window = Window(base, step.starts, step.shape, step.model.attributes["steps"])
    return read_window(window, {dim: step.size(dim) for dim in sorted(step.ragged)})


def read_window(window: Window, sizes: Sizes) -> Value:
    """What a window shows; beyond the sizes, its first elements, through which no gradient passes."""
    known = _known(sizes)
    places = (*window.starts, *known.values())
    part = w.slice_at(window.base, *places, shape=window.shape, steps=window.steps, ragged=tuple(known))
    corner = tuple(1 if dim in known else extent for dim, extent in enumerate(window.shape))
    first = w.slice_at(window.base, *window.starts, shape=corner, steps=window.steps, ragged=())
    first = e.stop_gradient(first) if part.spec.is_float else first
    for dim, size in known.items():
        part = e.where(mask(size, dim, window.shape), part, first)
    return Value(part, sizes, window)


@_rule("flip")
def _flip(step: Step) -> Value:
    """A window is read backwards; what else is ragged there, `steps.py` has refused."""
    (operand,) = step.operands
    dims = step.model.attributes["dims"]
    if not set(dims) & operand.sizes.keys():
        return Value(m.flip(operand.node, dims=dims), operand.sizes)
    assert operand.window is not None
    window, starts, steps = operand.window, list(operand.window.starts), list(operand.window.steps)
    for dim in dims:
        known = operand.sizes.get(dim)
        size = constant(window.shape[dim], w.PLACE) if known is None else known
        starts[dim] = starts[dim] + (size - 1) * steps[dim]
        steps[dim] = -steps[dim]
    return read_window(Window(window.base, tuple(starts), window.shape, tuple(steps)), operand.sizes)


@_rule("slice_update")
def _slice_update(step: Step) -> Value:
    base, update = step.nodes
    sizes = _known(_sizes_of(step, step.operands[1].sizes))
    places = (*step.starts, *sizes.values())
    steps = step.model.attributes["steps"]
    return Value(w.update_at(base, update, *places, steps=steps, ragged=tuple(sizes)), {})


@_rule("dilate")
def _dilate(step: Step) -> Value:
    (operand,) = step.operands
    sizes = _known(_sizes_of(step, operand.sizes))
    attributes = {"shape": step.model.shape, "steps": step.model.attributes["steps"], "ragged": tuple(sizes)}
    return Value(w.dilate_at(operand.node, *step.starts, *sizes.values(), **attributes), {})


@_rule("slice_at")
def _slice_at(step: Step) -> Value:
    """A window of a loop inside: dimensions that go as far as that loop says have room for more."""
    base, *places = step.nodes
    rank, attributes = len(step.shape), step.model.attributes
    inner = dict(zip(attributes["ragged"], places[rank:]))
    outer = {dim: step.size(dim) for dim in sorted(step.ragged) if dim not in inner}
    if not outer:
        part = w.slice_at(base, *places, **{**attributes, "shape": step.shape})
        return Value(part, dict.fromkeys(step.ragged))
    if inner:
        raise CannotRoll("a part whose extents change from step to step in loops of two levels")
    window = Window(base, tuple(places), step.shape, attributes["steps"])
    return read_window(window, outer)


@_rule("update_at", "dilate_at")
def _write_at(step: Step) -> Value:
    count = 2 if step.model.operator is w.update_at else 1
    part, places, attributes = step.operands[count - 1], step.nodes[count:], dict(step.model.attributes)
    rank = part.node.spec.ndim
    sizes = dict(zip(attributes["ragged"], places[rank:]))
    for dim in step.ragged:
        if dim not in sizes:
            known = part.sizes.get(dim)
            sizes[dim] = step.size(dim) if known is None else known
    attributes["ragged"] = tuple(sizes)
    return Value(step.model.operator(*step.nodes[:count], *places[:rank], *sizes.values(), **attributes), {})


@_rule("expand", "permute")
def _moved(step: Step) -> Value:
    """A dimension of the result is as ragged as that of the operand which is read along it."""
    (operand,), operator, attributes = step.operands, step.model.operator, dict(step.model.attributes)
    if "shape" in attributes:
        attributes["shape"] = step.shape
    result = operator(operand.node, **attributes)
    walks = enumerate(result.walks)
    sizes = {walk.dim: operand.sizes[dim] for dim, walk in walks if walk and dim in operand.sizes}
    return Value(result, _sizes_of(step, sizes))


@_rule("reshape")
def _reshape(step: Step) -> Value:
    """Dimensions of size 1 put in or taken out (see `only_ones_differ`)."""
    (operand,) = step.operands
    ordered = iter([operand.sizes[dim] for dim in sorted(operand.sizes)])
    return Value(
        m.reshape(operand.node, shape=step.shape), {dim: next(ordered) for dim in sorted(step.ragged)}
    )


def only_ones_differ(reshapes: Sequence[Node]) -> bool:
    """Whether the reshapes of all steps leave all dimensions but those of size 1 as they are, in order."""
    sides = ([node.operands[0] for node in reshapes], reshapes)
    before, after = ([*zip(*(node.shape for node in nodes))] for nodes in sides)
    return [dim for dim in before if set(dim) != {1}] == [dim for dim in after if set(dim) != {1}]


@_rule("reduction")
def _reduction(step: Step) -> Value:
    (operand,), monoid = step.operands, step.model.operator.monoid
    assert monoid is not None
    x, dims = operand.node, step.model.attributes["dims"]
    masked = _masked(x, operand.sizes, dims, monoid.identity(x.dtype))
    result = make_node(step.model.operator, (masked,), step.model.attributes)
    if step.model.attributes["keepdim"]:
        return Value(result, {dim: size for dim, size in operand.sizes.items() if dim not in dims})
    left = [dim for dim in range(x.spec.ndim) if dim not in dims]
    return Value(result, {left.index(dim): size for dim, size in operand.sizes.items() if dim in left})


@_rule("contract")
def _contract(step: Step) -> Value:
    """Multiplied and summed: what BLAS takes is not ragged."""
    left, right, result = split_subscripts(step.model.attributes["subscripts"])
    letters = [*result, *(one for one in dict.fromkeys(left + right) if one not in result)]
    sizes: dict[str, Node | None] = {}
    for operand, text in zip(step.operands, (left, right)):
        sizes |= {text[dim]: size for dim, size in operand.sizes.items()}
    parts = (_aligned(one.node, text, letters) for one, text in zip(step.operands, (left, right)))
    product = reduce(e.multiply, parts)
    named = {dim: sizes[letter] for dim, letter in enumerate(letters) if letter in sizes}
    dims = tuple(range(len(result), len(letters)))
    masked = _masked(product, named, dims, 0)
    total = r.sum_(masked, dims=dims, keepdim=False) if dims else masked
    return Value(total, {dim: size for dim, size in named.items() if dim < len(result)})


def _aligned(x: Node, text: str, letters: Sequence[str]) -> Node:
    """An operand of a product with its dimensions in the order of the letters, size 1 where it has none."""
    order = sorted(range(len(text)), key=lambda dim: letters.index(text[dim]))
    extents = dict(zip(text, x.shape))
    moved = m.permute(x, dims=tuple(order)) if order != [*range(len(text))] else x
    return m.reshape(moved, shape=tuple(extents.get(letter, 1) for letter in letters))
