"""Arrays that the steps of a loop only write, each another part: these parts are stacked, and are the array.

    for t in range(n):
        out[t] = v

carries no `out`: the loop stacks `v`, and what it has stacked is written into `out` at once. The reverse loop
then reads rows of a cotangent, where it would carry one and set to zero what was written over.
"""

from __future__ import annotations

from pullback.tracer.dims import SizedRange
from pullback.tracer.graph import Graph, Node, constant, users_of
from pullback.tracer.loop import LoopNode, replace_results
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import windows as w
from pullback.tracer.ops.creation import iota

from ...tracer.records import record
from ..rewriting.slices import bounds_of, places_of
from .bodies import in_bodies


def stack_what_is_written(graph: Graph) -> Graph:
    """Loops that stack what they would write, part by part, into arrays that they do not read."""

    def stacked(loop: LoopNode) -> list[Node] | None:
        written = _written_carries(loop)
        return _with_stacks(loop, written) if written else None

    return replace_results(in_bodies(graph, stack_what_is_written), stacked)


@record(frozen=True)
class _Place:
    """Where along a dimension the parts begin: in the first step at `start`, `advance` later in each step."""

    start: Node
    advance: int


@record(frozen=True)
class _Writes:
    """The parts that a carry is made of."""

    update: Node
    places: tuple[_Place, ...]
    dim: int
    """Along which they follow each other."""

    @property
    def row(self) -> Node:
        """A part without that dimension."""
        shape = (*self.update.shape[: self.dim], *self.update.shape[self.dim + 1 :])
        same = self.update.operator is m.reshape and self.update.operands[0].shape == shape
        return self.update.operands[0] if same else m.reshape(self.update, shape=shape)


def _written_carries(loop: LoopNode) -> dict[int, _Writes]:
    if loop.is_dynamic or loop.length < 2:
        return {}
    users, outputs = users_of(loop.body.nodes), loop.body.outputs
    found = {}
    for index, (carry, after) in enumerate(zip(loop.body.inputs[: loop.carries], outputs)):
        is_write = after.operator is w.update_at and after.operands[0] is carry is not after.operands[1]
        is_read = users.get(carry) != [after] or users[after] or carry in outputs or outputs.count(after) > 1
        if is_write and not is_read and (writes := _writes(loop, after)) is not None:
            found[index] = writes
    return found


def _writes(loop: LoopNode, write: Node) -> _Writes | None:
    update = write.operands[1]
    places = [_place(one, loop) for one in places_of(write)]
    if write.attributes["ragged"] or set(write.attributes["steps"]) != {1} or None in places:
        return None
    moving = [dim for dim, one in enumerate(places) if one is not None and one.advance]
    if len(moving) != 1 or update.shape[moving[0]] != 1:
        return None
    return _Writes(update, tuple(one for one in places if one is not None), moving[0])


def _place(node: Node, loop: LoopNode) -> _Place | None:
    """A place as what it is in the first step, and how far it goes on; None if it is something else."""
    _, rows, constants = loop.split(loop.body.inputs)
    _, stacked, values = loop.split(loop.node.operands)
    if node.is_constant:
        return _Place(node, 0)
    if node in constants:
        return _Place(values[list(constants).index(node)], 0)
    if node in rows:
        counts = stacked[list(rows).index(node)].operator is iota
        return _Place(constant(0, node.spec), 1) if counts else None
    found = [_place(operand, loop) for operand in node.operands]
    if node.operator not in (e.add, e.subtract, e.multiply, e.negative) or None in found:
        return None
    places = [one for one in found if one is not None]
    if node.operator is e.negative:
        return _times(-1, places[0])
    one, other = places
    if node.operator is e.multiply:
        factor = next((place for place in places if place.start.is_constant and not place.advance), None)
        return factor and _times(_number(factor.start), other if factor is one else one)
    second = other if node.operator is e.add else _times(-1, other)
    return second and _Place(_sum(one.start, second.start), one.advance + second.advance)


def _times(factor: int, place: _Place) -> _Place | None:
    if not place.start.is_constant:
        return None
    return _Place(constant(factor * _number(place.start), place.start.spec), factor * place.advance)


def _number(node: Node) -> int:
    return int(node.attributes["value"])


def _sum(one: Node, other: Node) -> Node:
    if one.is_constant and other.is_constant:
        return constant(_number(one) + _number(other), one.spec)
    return e.add(one, other)


def _with_stacks(loop: LoopNode, written: dict[int, _Writes]) -> list[Node]:
    """The results of the loop that stacks, in the order of those of the loop that writes."""
    inputs, outputs = loop.body.inputs, loop.body.outputs
    kept = [index for index in range(loop.carries) if index not in written]
    order = [*kept, *range(loop.carries, len(outputs))]
    body = Graph(
        loop.body.name,
        (*(inputs[index] for index in kept), *inputs[loop.carries :]),
        (*(outputs[index] for index in order), *(one.row for one in written.values())),
        loop.body.origin,
    )
    inits, stacked, constants = loop.split(loop.node.operands)
    made = loop.again(body, [inits[index] for index in kept], stacked, constants).results
    found = dict(zip(order, made))
    for (index, writes), stack in zip(written.items(), made[len(order) :]):
        found[index] = _laid_out(inits[index], stack, writes)
    return [found[index] for index in range(len(outputs))]


def _laid_out(init: Node, stack: Node, writes: _Writes) -> Node:
    """The stack written into what there was before the loop."""
    dim, length, rank = writes.dim, stack.shape[0], stack.spec.ndim
    block = m.permute(stack, dims=(*range(1, dim + 1), 0, *range(dim + 1, rank))) if dim else stack
    place = writes.places[dim]
    start, step = place.start, abs(place.advance)
    if place.advance < 0:
        block = m.flip(block, dims=(dim,))
        start = _sum(start, constant(place.advance * (length - 1), start.spec))
    starts = [start if one == dim else place.start for one, place in enumerate(writes.places)]
    steps = [step if one == dim else 1 for one in range(len(starts))]
    if all(one.is_constant for one in starts):
        region = map(SizedRange.of, map(_number, starts), block.shape, steps)
        return m.slice_update(init, block, **bounds_of([*region]))
    return w.update_at(init, block, *starts, steps=tuple(steps), ragged=())
