"""The tape's node of one operator: what it saves, and how its rules run, on arrays, Tensors and in traces."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...tracer.array_rules import on_arrays
from ...tracer.graph import Node
from ...tracer.operator import HOLOMORPHIC, Function, Operator, Pull, as_it_is
from ...tracer.ops.reduction import sum_to_shape, sum_to_shape_at_once, summed_to_shape
from ...tracer.origin import backward_of
from ...tracer.spec import Spec
from .nodes import GONE, Edge, SavingNode, next_sequence, tensor_at
from .tensor import Tensor

ARRAYS = (np.ndarray, np.generic)
NO_SPECS: tuple[Sequence[Spec], Any] = ((), None)
_new = object.__new__


def spec_of_operand(value: Any, dtype: np.dtype) -> Spec:
    """The spec of an operand; a Python number has the dtype of the operator."""
    shape = getattr(value, "shape", None)
    return _spec((), dtype) if shape is None else _spec(shape, value.dtype)


def specs_of(values: Sequence[Any], result: Any) -> tuple[Sequence[Spec], Spec]:
    dtype = result.dtype
    specs = [
        _spec(value.shape, value.dtype) if type(value) is np.ndarray else spec_of_operand(value, dtype)
        for value in values
    ]
    return specs, _spec(result.shape, dtype)


@functools.lru_cache(maxsize=1024)
def _spec(shape: tuple[int, ...], dtype: np.dtype) -> Spec:
    return Spec(shape, dtype)


class Plan:
    """What recording an operator takes, for one set of operands that require grad; made once, then reused."""

    __slots__ = (
        "count", "is_holomorphic", "may_broadcast", "name", "operator", "positions", "pull", "recorded",
        "saves", "saves_each", "saves_result", "saves_specs",
    )  # fmt: skip

    def __init__(self, operator: Operator, mask: int, count: int, name: str) -> None:
        self.operator = operator
        self.may_broadcast = count > 1 or operator.family != "elementwise"
        self.positions = tuple(
            position for position in range(count) if mask >> position & 1 and operator.rule_for(position)
        )
        self.count = count
        self.pull = operator.pulling(self.positions, count, on_arrays, True)
        self.recorded: Pull | None = None
        self.is_holomorphic = operator.of_complex == HOLOMORPHIC
        wanted, self.saves_result = operator.needs(self.positions, count)
        self.saves = tuple(sorted(wanted))
        self.saves_each = tuple(position in wanted for position in range(count))
        rules = [operator.rules[operator.operand_name(position)] for position in self.positions]
        self.saves_specs = any(
            name == "specs" or name.endswith("_spec") for rule in rules for name in rule.parameters
        )
        self.name = name

    def node(self, attributes: dict[str, Any], edges: Sequence[Edge | None]) -> OperatorNode:
        """A node that has saved nothing yet."""
        node = _new(OperatorNode)  # calling the class would take twice as long
        node.plan = self
        node.attributes = attributes
        node.edges = edges
        node.sequence = next_sequence()
        node.hooks = node.forward = None
        node.operands = node.result = node.shapes = node.specs = None
        node.versions = ()
        return node

    def node_in_trace(
        self, attributes: dict[str, Any], edges: Sequence[Edge | None], read: list[Any], made: Node
    ) -> OperatorNode:
        """A node that has all operands and the result as nodes of the graph."""
        node = _new(OperatorNode)
        node.plan = self
        node.attributes = attributes
        node.edges = edges
        node.sequence = next_sequence()
        node.hooks = node.shapes = node.specs = None
        node.operands = read
        node.forward = node.result = made
        node.versions = ()
        return node

    def pull_recorded(self) -> Pull:
        """The rules on tensors, which the tape records."""
        found = self.recorded
        if found is None:
            found = self.recorded = self.operator.pulling(
                self.positions, self.count, OperatorNode.on_tensors
            )
        return found


class OperatorNode(SavingNode):
    """A node of one operator: it saves what the operator's rules need, and runs them.

    A plan makes it. In a trace it has all operands and the result as nodes of the graph. While nobody has
    asked for them, the nodes of all operators are of this one class: CPython finds the attributes of objects
    of one class several times as fast.
    """

    __slots__ = ("attributes", "forward", "plan", "shapes", "specs")
    plan: Plan
    attributes: dict[str, Any]
    shapes: Sequence[tuple[int, ...]] | None
    """The shapes of the operands that get a gradient, and perhaps that of the result; None in a trace, and
    where there is no other operand with which they could broadcast."""
    specs: tuple[Sequence[Spec], Spec] | None
    """Of the operands and of the result, if a rule asks for them; None in a trace."""
    forward: Node | None
    """In a trace the graph node of the result."""
    runs_rules = True
    is_in_graph = True
    on_tensors: Callable[[Function], Function] = staticmethod(as_it_is)
    """Of rules the form for Tensors: `tape/direct.py` says which."""

    def name(self) -> str:
        return self.plan.name

    def given_out(self) -> OperatorNode:
        if type(self) is OperatorNode:
            self.__class__ = _class_called(self.plan.name)
        return self

    @property
    def read(self) -> Sequence[Any]:
        return self.operands or ()

    def value_of(self, number: int) -> Node | None:
        return self.forward

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        if self.forward is not None:
            self.require_saved()
            with backward_of(self.forward.origin, self.plan.operator.name):
                return self._run_rules(cotangents[0], wanted, create_graph)
        (g,) = cotangents
        if create_graph or not isinstance(g, ARRAYS):
            self.require_saved()
            return self._run_rules(g, wanted, create_graph)
        plan = self.plan
        positions = tuple([position for position in plan.positions if wanted[position]])
        if positions == plan.positions:
            return self.pull_all(g)
        return self.pull_all(g, positions)

    def pull_all(self, g: Any, positions: tuple[int, ...] | None = None) -> Sequence[Any]:
        """The cotangents of all edges, of arrays; or of those at some of the plan's positions."""
        if self.versions:
            self.require_saved()
        plan = self.plan
        if plan.is_holomorphic and g.dtype.kind == "c":
            pulled = self._pulled_of_complex(g, plan.positions if positions is None else positions)
        elif positions is None:
            pulled = plan.pull(g, self)
        else:
            pulled = plan.operator.pulling(positions, plan.count, on_arrays, True)(g, self)
        return pulled if self.shapes is None else self.summed(pulled)

    def _pulled_of_complex(self, g: Any, positions: tuple[int, ...]) -> Sequence[Any]:
        operator, (specs, y_spec) = self.plan.operator, self.specs or NO_SPECS
        pull = operator.pulling(positions, self.plan.count, on_arrays)
        return operator.pulled(pull, g, self.result, y_spec, self.operands or (), specs, self.attributes)

    def pull_recorded(self, g: Tensor, wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        """The same of a Tensor, outside of traces, where the rules are recorded; None for not `wanted`."""
        versions = self.versions
        if versions and (versions[1][0] != versions[2] or len(versions) > 3):
            self.require_saved()
        plan = self.plan
        pull = plan.recorded or plan.pull_recorded()
        if wanted is not None:
            positions = tuple([position for position in plan.positions if wanted[position]])
            if positions != plan.positions:
                pull = plan.operator.pulling(positions, plan.count, OperatorNode.on_tensors)
        operands, result = self._as_tensors() if versions else (self.operands or (), self.result)
        specs, y_spec = self.specs or NO_SPECS
        if plan.is_holomorphic and g._value.dtype.kind == "c":
            pulled = plan.operator.pulled(pull, g, result, y_spec, operands, specs, self.attributes)
        else:
            pulled = pull(g, result, y_spec, operands, specs, self.attributes)
        if self.shapes is None:
            return pulled
        found = list(pulled)
        for position, shape in zip(plan.positions, self.shapes):
            one = found[position]
            if one is not None and not (isinstance(one, Tensor) and one._value.shape == shape):
                found[position] = _summing_tensors()(one, shape)
        return found

    def summed(self, pulled: Sequence[Any]) -> Sequence[Any]:
        """Cotangents of the shape that operands were broadcast to, in the operands' own."""
        positions, found = self.plan.positions, None
        for position, shape in zip(positions, self.shapes or ()):
            one = pulled[position]
            if one is not None and one.shape != shape:
                found = list(pulled) if found is None else found
                found[position] = summed_to_shape(one, shape)
        return pulled if found is None else found

    def _run_rules(self, g: Any, wanted: Sequence[bool], create_graph: bool) -> list[Any]:
        """The rules one by one: those that are wanted, perhaps on tensors or on nodes of a graph."""
        plan = self.plan
        operands: Sequence[Any] = self.operands or ()
        result, specs = self.result, self.specs
        shapes = self.shapes
        if shapes is None and self.forward is not None:
            shapes = [operands[position].shape for position in plan.positions]
            specs = specs_of(operands, result) if plan.saves_specs else None
        form: Callable[[Function], Function] = as_it_is
        if create_graph:
            operands, result = self._as_tensors()
            form = self.on_tensors
        operand_specs, result_spec = specs or NO_SPECS
        pulled: list[Any] = [None] * len(self.edges)
        for place, position in enumerate(plan.positions):
            if wanted[position]:
                cotangent = plan.operator.pull_back(
                    position, g, operands, operand_specs, result, result_spec, self.attributes, form
                )
                pulled[position] = cotangent if shapes is None else sum_to_shape(cotangent, shapes[place])
        return pulled

    def _as_tensors(self) -> tuple[list[Any], Any]:
        """What was saved as tensors, with their history: so a gradient has a gradient."""
        if self.forward is None:
            return self._arrays_as_tensors()
        cells = {position: cell for position, cell, _ in self.each_version()}
        operands = [
            tensor_at(value, self.edges[position], cells.get(position) or [0, None])
            if position in cells or type(value) is Node
            else value
            for position, value in enumerate(self.operands or ())
        ]
        result = self.result
        if result is not None:
            result = tensor_at(result, (self, 0), cells.get(-1) or [0, None])
        return operands, result

    def _arrays_as_tensors(self) -> tuple[list[Any], Any]:
        """The same outside of traces: what was no tensor's is an array or a number as before."""
        operands, result, edges = list(self.operands or ()), self.result, self.edges
        versions = self.versions
        for number in range(0, len(versions), 3):
            position, cell = versions[number], versions[number + 1]
            if position < 0:
                result = tensor_at(result, (self, 0), cell)
            else:
                operands[position] = tensor_at(operands[position], edges[position], cell)
        return operands, result

    def release(self) -> None:
        if self.versions or (self.forward is not None and self._needs_values()):
            self.operands = self.result = None
            self.versions = GONE

    def _needs_values(self) -> bool:
        saved = (self.operands[position] for position in self.plan.saves) if self.operands else ()
        return self.plan.saves_result or any(type(value) is Node for value in saved)


@functools.cache
def _class_called(name: str) -> type[OperatorNode]:
    return type(name, (OperatorNode,), {"__slots__": ()})


@functools.cache
def _summing_tensors() -> Function:
    """`sum_to_shape` in its form for Tensors."""
    return OperatorNode.on_tensors(sum_to_shape_at_once)
