"""Loops inside of steps whose extents, or whose numbers of steps, advance from step to step of a loop around.

Of the inner loops of all steps one is made: its length is the largest, the number of its steps a value, and
what differs in its body is padded, or a number that the loop around computes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pullback.tracer.graph import Graph, Node, constant, make_input, new_node
from pullback.tracer.loop import LoopNode, is_loop, make_loop
from pullback.tracer.ops import windows as w
from pullback.tracer.ops.control import ALL, GIVEN
from pullback.tracer.spec import Spec

from ..rewriting.slices import part_of
from .periods import CannotRoll, is_part, window_for
from .progressions import Progression
from .ragged import (
    Extent,
    Lift,
    Value,
    extents_of,
    only_ones_differ,
    padded_shape,
    ragged_value,
    sizes_in_step,
    starts_in_step,
    supports,
)
from .rows import have_progressing_starts, progression_of_constants


def padded_loop(column: Sequence[Node], operands: Sequence[Value], lift: Lift, key: Any) -> Node:
    """One loop for the inner loops of all steps. Raises CannotRoll where they differ in other ways.

    Args:
        operands: those of the loop, in the body of the loop around.
        key: what tells the numbers of this loop apart from those of others.
    """
    return _PaddedLoop([LoopNode(node) for node in column], operands, lift, key).made()


class _PaddedLoop:
    def __init__(self, loops: Sequence[LoopNode], operands: Sequence[Value], lift: Lift, key: Any) -> None:
        self.loops, self.operands, self.key = loops, operands, key
        self.model = loops[-1]
        self.lift_outside = lift
        self.taken: dict[Node, Node] = {}
        """Values of the loop around that the body reads, and the body's inputs for them."""
        self.values: dict[Node, Value] = {}
        self.inputs = [
            self._input(position, inside, operand)
            for position, (inside, operand) in enumerate(zip(self.model.body.inputs, operands))
        ]

    def made(self) -> Node:
        model, body = self.model, self.model.body
        for place, column in enumerate(zip(*(one.body.nodes for one in self.loops))):
            if not column[-1].is_input:
                self.values[column[-1]] = self._value(column, (*self.key, place))
        outputs = [self.values[output] for output in body.outputs]
        if any(one.sizes for one in outputs):
            raise CannotRoll("a loop inside hands out what changes its shape from step to step")
        trips = self._trips()
        if trips is not None and len(outputs) > model.carries:
            raise CannotRoll("a loop inside, with another number of steps each time, stacks values")
        graph = Graph(
            body.name, (*self.inputs, *self.taken.values()), tuple(one.node for one in outputs), body.origin
        )
        nodes = [one.node for one in self.operands[: len(body.inputs)]]
        inits, stacked, constants = model.split(nodes)
        length = max(one.length for one in self.loops)
        return make_loop(
            graph,
            inits,
            stacked,
            [*constants, *self.taken],
            length,
            model.node.origin,
            model.backwards,
            trips,
            recompute=model.recompute,
        ).node

    def _trips(self) -> Node | None:
        kinds = {one.node.attributes["trips"] for one in self.loops}
        lengths = [one.length for one in self.loops]
        if kinds == {GIVEN}:
            return self.operands[-1].node
        if kinds != {ALL}:
            raise CannotRoll("a loop inside goes on as long as something is true")
        if len(set(lengths)) == 1:
            return None
        advances = {after - before for before, after in itertools.pairwise(lengths)}
        if len(advances) > 1:
            raise CannotRoll("the steps of a loop inside do not become more, or fewer, by a constant")
        return self.lift_outside(Progression(lengths[0], advances.pop()), w.PLACE, (*self.key, "trips"))

    def _input(self, position: int, inside: Node, operand: Value) -> Node:
        node, first = operand.node, 0
        if self.model.carries <= position < self.model.constants_from:
            first = 1
        if position < self.model.carries and operand.sizes:
            raise CannotRoll("a loop inside carries what changes its shape from step to step")
        made = make_input(node.spec.with_shape(node.shape[first:]), inside.name, inside.origin)
        sizes = {dim - first: size for dim, size in operand.sizes.items() if dim >= first}
        self.values[inside] = Value(
            made, {dim: None if size is None else self._take(size) for dim, size in sizes.items()}
        )
        return made

    def _take(self, node: Node) -> Node:
        """A value of the loop around, in the body."""
        if node not in self.taken:
            self.taken[node] = make_input(node.spec, node.name, node.origin)
        return self.taken[node]

    def _lift(self, numbers: Progression, spec: Spec, key: Any) -> Node:
        return self._take(self.lift_outside(numbers, spec, key))

    # --- operations ---------------------------------------------------------------------------------------

    def _value(self, column: Sequence[Node], key: Any) -> Value:
        model = column[-1]
        extents = extents_of([*map(part_of, column)])
        if extents is None:
            raise CannotRoll(f"{model.operator.name} ({model.origin.place}) changes its shape unevenly")
        if model.is_constant:
            return self._constant(column, extents, key)
        operands = tuple(self.values[operand] for operand in model.operands)
        if is_loop(model):
            return Value(padded_loop(column, operands, self._lift, key), {})
        nodes = tuple(one.node for one in operands)
        is_same = all(one.spec == old.spec for one, old in zip(nodes, model.operands))
        is_plain = not extents and is_same and not any(one.sizes for one in operands)
        starts = self._starts(column, key) if is_part(model) else ()
        if is_plain and starts:
            return Value(window_for(model, nodes, starts), {})
        if is_plain and any(node.attributes != model.attributes for node in column):
            raise CannotRoll(f"{model.operator.name} ({model.origin.place}) is another one in each step")
        if is_plain:
            return Value(
                new_node(model.operator, nodes, model.attributes, model.spec, model.origin, model.name), {}
            )
        self._require_rule(column, operands)
        return ragged_value(model, operands, extents, starts, self._lift, key)

    def _starts(self, column: Sequence[Node], key: Any) -> tuple[Node, ...]:
        """Where a slice, or a write, begins, which may advance from step to step of the loop around."""
        if not have_progressing_starts(column):
            raise CannotRoll(f"{column[0].operator.name} is at places that do not advance by a constant")
        return starts_in_step(column, part_of(column[-1]).shape, self._lift, key)

    def _require_rule(self, column: Sequence[Node], operands: Sequence[Value]) -> None:
        model = column[-1]
        place = f"{model.operator.name} ({model.origin.place})"
        if not supports(model):
            raise CannotRoll(f"{place} changes its shape from step to step")
        if model.operator.name == "reshape" and not only_ones_differ(column):
            raise CannotRoll(f"{place} reshapes what changes its shape from step to step")
        if model.operator.name == "flip" and set(model.attributes["dims"]) & operands[0].sizes.keys():
            raise CannotRoll(f"{place} reverses what changes its shape from step to step")

    def _constant(self, column: Sequence[Node], extents: dict[int, Extent], key: Any) -> Value:
        model = column[-1]
        if len({repr(node.scalar_value) for node in column}) == 1:
            size = sizes_in_step(extents, self._lift, key)
            spec = model.spec.with_shape(padded_shape(model, extents))
            return Value(constant(model.attributes["value"], spec), {dim: size(dim) for dim in extents})
        numbers = progression_of_constants(column)
        if numbers is None or extents or model.spec.ndim:
            raise CannotRoll("a number in a loop inside does not advance by a constant")
        return Value(self._lift(numbers, model.spec, key), {})
