"""A backward pass of many cotangents at once: what `jacobian` and `hessian` sweep outside of traces.

The rules of an operator, written of one cotangent, are a graph. Of that each operator through which the
cotangent passes is applied to all cotangents, which lie along a first dimension: as it is, if it works
element by element, else with its dimensions counted from there. What depends on no cotangent is computed
once. A rule with another operator is run for one cotangent after the other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...tracer.graph import Node, make_input, toposort
from ...tracer.many import on_many
from ...tracer.operator import Operator
from ...tracer.ops.reduction import sum_to_shape
from ...tracer.records import record
from ...tracer.spec import Spec
from ..values.nodes import GradNode
from ..values.operator_nodes import NO_SPECS, OperatorNode

ndarray = np.ndarray
MOST_ELEMENTS = 1 << 18
"""Of the cotangents of one value that are swept at once, so that memory stays bounded; larger values gain
nothing by it."""


def most_at_once(nodes: Sequence[GradNode], size: int) -> int:
    """How many cotangents of a value with so many elements are swept at once."""
    for node in nodes:
        for shape in getattr(node, "shapes", None) or ():
            size = max(size, int(np.prod(shape)))
    return max(1, MOST_ELEMENTS // max(size, 1))


def may_be_batched(nodes: Sequence[GradNode]) -> bool:
    """Whether the nodes are those of operators and parts, and nobody looks at the cotangents on their way."""
    return all(node.runs_rules and node.gives_own and node.hooks is None for node in nodes)


def pulled_at_once(node: GradNode, g: ndarray, wanted: Sequence[bool]) -> Sequence[Any]:
    """The cotangents of all wanted edges, for all of those in `g`, which lie along its first dimension."""
    if not isinstance(node, OperatorNode):
        pulled = node.pull_many(g)
        return _one_by_one(node, g, wanted) if pulled is None else pulled
    rule = _rule_of(node, g, wanted)
    return _one_by_one(node, g, wanted) if rule is None else rule.run(g, node)


def _one_by_one(node: GradNode, g: ndarray, wanted: Sequence[bool]) -> Sequence[Any]:
    rows = [node.pull([np.asarray(one)], wanted, False) for one in g]
    return list(map(_stacked, zip(*rows, strict=True)))


def _stacked(rows: Sequence[Any]) -> Any:
    known = [one for one in rows if one is not None]
    if not known:
        return None
    zero = np.zeros_like(known[0])
    return np.stack([zero if one is None else one for one in rows])


def _rule_of(node: OperatorNode, g: ndarray, wanted: Sequence[bool]) -> _Rule | None:
    plan = node.plan
    node.require_saved()
    if g.dtype.kind != "f":
        return None
    positions = tuple([position for position in plan.positions if wanted[position]])
    operands = node.operands or ()
    specs, y_spec = node.specs or NO_SPECS
    y = node.result
    shapes = dict(zip(plan.positions, node.shapes)) if node.shapes is not None else {}
    try:
        return _batched(
            plan.operator, positions, len(node.edges), g.shape, g.dtype,
            None if y is None else (y.shape, y.dtype), tuple(map(_kind_of, operands)), tuple(specs), y_spec,
            tuple(node.attributes.items()), tuple([shapes.get(one) for one in positions]),
        )  # fmt: skip
    except TypeError:  # attributes that have no hash
        return None


def _kind_of(operand: Any) -> Any:
    """What is known of an operand that a rule reads: shape and dtype."""
    if operand is None:
        return None
    array = operand if type(operand) is ndarray else np.asarray(operand)
    return array.shape, array.dtype


@record(frozen=True, eq=False)
class _Rule:
    """The rules of an operator on many cotangents, as steps on a list of values."""

    size: int
    inputs: Sequence[tuple[int, int]]
    """(place, which of the operands; -1 for the result, -2 for the cotangents)."""
    steps: Sequence[tuple[int, Callable[..., Any], Sequence[Any], Mapping[str, Any]]]
    """(place, function, (place of an operand, shape that it is given or None, whether it is repeated))."""
    outputs: Sequence[int | None]

    def run(self, g: ndarray, node: OperatorNode) -> Sequence[Any]:
        values: list[Any] = [None] * self.size
        for place, which in self.inputs:
            if which == -2:
                values[place] = g
            else:
                values[place] = node.result if which == -1 else np.asarray((node.operands or ())[which])
        for place, function, operands, attributes in self.steps:
            values[place] = function(*[_given(values[one], form) for one, form in operands], **attributes)
        return [None if one is None else np.asarray(values[one]) for one in self.outputs]


def _given(value: ndarray, form: tuple[tuple[int, ...], bool] | None) -> ndarray:
    if form is None:
        return value
    shape, is_repeated = form
    return np.broadcast_to(value, shape) if is_repeated else value.reshape(shape)


@functools.lru_cache(maxsize=4096)
def _batched(
    operator: Operator, positions: tuple[int, ...], count: int, shape: tuple[int, ...], dtype: np.dtype,
    y_kind: Any, kinds: tuple[Any, ...], specs: tuple[Spec, ...], y_spec: Spec | None, attributes: Any,
    shapes: tuple[Any, ...],
) -> _Rule | None:  # fmt: skip
    """The rules of an operator for cotangents of a shape, whose first dimension counts them; None if there
    is an operator on their way that cannot take them all."""
    cotangent = make_input(Spec(shape[1:], dtype), "")
    y = None if y_kind is None else make_input(Spec(*y_kind), "")
    operands = [None if one is None else make_input(Spec(*one), "") for one in kinds]
    pull = operator.pulling(positions, count)
    try:
        pulled = list(pull(cotangent, y, y_spec, operands, specs, dict(attributes)))
    except Exception:  # the rule wants to know values
        return None
    for position, own in zip(positions, shapes):
        if own is not None and pulled[position] is not None:
            pulled[position] = sum_to_shape(pulled[position], own)
    results = [one for one in pulled if one is not None]
    if not all(isinstance(one, Node) for one in results):
        return None
    nodes = toposort(results)
    places = {node: place for place, node in enumerate(nodes)}
    sources = {cotangent: -2} | {one: which for which, one in enumerate(operands) if one is not None}
    if y is not None:
        sources[y] = -1
    depending, steps = {cotangent}, []
    for node in nodes:
        if node in sources:
            continue
        if node.is_input:
            return None
        if depending.isdisjoint(node.operands):
            forms: list[Any] = [None] * len(node.operands)
            own_attributes = node.attributes
        else:
            found = on_many(node, depending, shape[0])
            if found is None:
                return None
            forms, own_attributes = found
            depending.add(node)
        taken = [(places[one], form) for one, form in zip(node.operands, forms)]
        steps.append((places[node], node.operator.evaluate, taken, own_attributes))
    if not depending.issuperset(results):
        return None
    inputs = [(places[one], which) for one, which in sources.items() if one in places]
    outputs = [None if one is None else places[one] for one in pulled]
    return _Rule(len(nodes), inputs, steps, outputs)
