"""Which operator's rule is wrong, where a gradient is: each is compared with differences of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...tracer.graph import Graph, Node, made_anew, make_input
from ...tracer.interpret import evaluate_graph
from ...tracer.ops.control import loop, loop_result, ruled
from ...tracer.ops.elementwise import stop_gradient
from ...tracer.trace import ConstantNeeded
from ..dispatch.callers_memory import payload
from ..dispatch.paired import of_parts
from ..tracing.signature import Signature
from ..tracing.tracing import trace_call

STEP = 1e-6
BORDERS = ("maximum", "minimum", "greater", "greater_equal", "less", "less_equal")
TOLERANCE = 1e-4
"""Relative to the largest of what is compared: rules are wrong by more."""


def blamed(function: Callable[..., Any], leaves: Sequence[Any]) -> str:
    """Which operator, and at which of the user's lines, has a rule that its own differences contradict.

    Args:
        function: of floating leaves, as it is differentiated.
        leaves: the point.
    """
    try:
        graph, values = _traced(*of_parts(function, leaves))
        known = _values(graph, values)
    except (Exception, ConstantNeeded) as error:  # whatever the user's code makes of traced values
        return f"  Which rule is to blame is not known, since the function cannot be traced: {error}"
    for node in graph.nodes:
        if node.operands and node.operator is not loop and (what := _what_is_wrong(node, known)):
            return f"  {what} at {node.origin.place}  {node.origin.text}"
    hints = dict.fromkeys(_hints(graph, known))
    return "\n".join(["  The rule of every operator is right at this point.", *hints])


def _hints(graph: Graph, known: dict[Node, Any]) -> Iterator[str]:
    """What rules say nothing of: where a gradient is stopped, and where a choice is at its border."""
    for node in graph.nodes:
        place = f"{node.origin.place}  {node.origin.text}"
        if node.operator is stop_gradient:
            yield f"  A gradient is stopped at {place}"
        if node.operator.name in BORDERS and np.any(np.equal(*(known[one] for one in node.operands))):
            yield f"  Numbers that are compared are equal, where the choice may have a kink, at {place}"


def _traced(function: Callable[..., Any], leaves: Sequence[Any]) -> tuple[Graph, list[np.ndarray]]:
    """The function as a graph, and the values of its inputs."""
    call = Signature(function, "function").call(tuple(leaves), {})
    traced = trace_call(function, call, "function")
    traced.put_back()
    reached = [traced.reading.sources[index].value for index in traced.sources]
    drawn = [one for draw in traced.drawn for one in draw()]
    traced.put_back()
    return traced.graph, [payload(one) for one in (*call.arrays, *reached, *traced.constants, *drawn)]


def _values(graph: Graph, values: Sequence[np.ndarray]) -> dict[Node, Any]:
    """What each node is, evaluated by NumPy."""
    known: dict[Node, Any] = dict(zip(graph.inputs, values, strict=True))
    for node in graph.nodes:
        if node not in known:
            known[node] = node.operator(*(known[operand] for operand in node.operands), **node.attributes)
    return known


class _Alone:
    """A node as a function of its operands, and the rules that it has for them."""

    def __init__(self, node: Node) -> None:
        from ...codegen.derivatives.differentiate import differentiate  # not at start

        source = node.operands[0] if node.operator is loop_result else node
        self.operands = source.operands
        inputs = tuple(make_input(one.spec, one.name) for one in self.operands)
        result = made_anew(source, inputs)
        if source is not node:
            result = made_anew(node, (result,))
        cotangent = make_input(result.spec, "cotangent")
        wanted = [one for one in inputs if one.spec.is_continuous]
        gradients = differentiate(wanted, {result: cotangent}) if result.spec.is_continuous else []
        self.places = [inputs.index(one) for one, gradient in zip(wanted, gradients) if gradient is not None]
        found = tuple(one for one in gradients if one is not None)
        self._value = Graph("value", inputs, (result,))
        self._rules = Graph("rules", (*inputs, cotangent), found)

    def value(self, operands: Sequence[Any]) -> np.ndarray:
        return np.asarray(evaluate_graph(self._value, operands)[0])

    def gradients(self, operands: Sequence[Any], cotangent: np.ndarray) -> list[np.ndarray]:
        return [np.asarray(one) for one in evaluate_graph(self._rules, [*operands, cotangent])]


def _what_is_wrong(node: Node, known: dict[Node, Any]) -> str:
    """How the rules of a node differ from its differences; empty if they do not, or it has none."""
    alone, random = _Alone(node), np.random.default_rng(0)
    if not alone.places:
        return ""
    operands = [known[one] for one in alone.operands]
    cotangent = np.asarray(random.standard_normal(node.shape), node.dtype)
    for place, gradient in zip(alone.places, alone.gradients(operands, cotangent)):
        at = np.asarray(operands[place])
        direction = np.asarray(random.standard_normal(at.shape), at.dtype)
        step = STEP * float(np.abs(at).max(initial=1.0))

        def result(steps: float, place: int = place, along: np.ndarray = direction * step) -> float:
            moved = [*operands[:place], operands[place] + steps * along, *operands[place + 1 :]]
            return float(np.sum(alone.value(moved) * cotangent))

        before, here, after = map(result, (-1.0, 0.0, 1.0))
        slope, ours = (after - before) / (2 * step), float(np.sum(gradient * direction))
        bound = TOLERANCE * max(1.0, abs(slope), abs(ours))
        if np.isfinite(here) and not np.isfinite(slope):
            return f"{_name(node)} is not finite beside this point,"
        if not np.isfinite(slope) or abs(slope - ours) <= bound:
            continue
        closer = (result(0.5) - result(-0.5)) / step
        if abs(after - 2 * here + before) / step > bound or abs(closer - slope) > bound:
            return f"{_name(node)} has a kink or a jump at this point,"
        return (
            f"To blame is the rule of {_name(node)}: along a direction of its operand {place} it gives "
            f"{ours:.9g}, and differences of {_name(node)} itself {slope:.9g},"
        )
    return ""


def _name(node: Node) -> str:
    """`tanh`, or what made it in a derivative: `multiply in the rule of tanh`."""
    rule = node.attributes["body"].rule if node.operator is ruled else None
    name = "the loop" if node.operator is loop_result else node.operator.name
    name = name if rule is None else rule.function
    return f"{name} in the rule of {node.origin.rule}" if node.origin.is_backward else name
