"""Loops, choices and rules of one's own on complex values: the same on their parts.

A complex carry is two carries, a complex row two rows, in the same order. A rule is one of parts as
it stands: the gradient of a complex value is the pair of those of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from pullback.tracer.graph import Graph, Node, make_input, make_node
from pullback.tracer.loop import LoopNode
from pullback.tracer.ops.control import Body, Rule, loop, ruled
from pullback.tracer.spec import real_dtype

from ...tracer.records import record
from .pairs import Pair, Value, flat, parts_of, whole

Places = tuple[tuple[int, ...], ...]
"""Of each value the positions of its parts among those of all."""
Values = tuple[Value, ...]
SplitNodes = Callable[[Iterable[Node], dict[Node, Any]], None]
"""Adds to what nodes have become, given what their inputs have."""


@record(frozen=True)
class LoopOfParts:
    """What a loop has become, and what its results are."""

    loop: LoopNode
    results: Values
    """Those of the body, which say what parts there are."""

    def result(self, index: int) -> Value:
        place = len(flat(self.results[:index]))
        parts = iter(self.loop.result(place + number, "") for number in range(2))
        shown = self.results[index]
        return next(parts) if isinstance(shown, Node) else shown.each(lambda part: next(parts))


class BodySplitter:
    """Splits what holds graphs. Bodies that are one stay one."""

    def __init__(self, split_nodes: SplitNodes) -> None:
        self._split_nodes = split_nodes
        self._bodies: dict[Any, tuple[Body, Values]] = {}
        self._calls: dict[Any, tuple[Node, ...]] = {}

    def loop(self, node: Node, operands: Sequence[Value]) -> LoopOfParts:
        old = LoopNode(node)
        given = [*map(whole, operands[: old.carries]), *operands[old.carries :]]
        attributes, results = self.of_loop(node.attributes, given)
        made = make_node(loop, flat(given), attributes, node.origin, "")
        return LoopOfParts(LoopNode(made), results)

    def of_loop(
        self, attributes: Mapping[str, Any], operands: Sequence[Value]
    ) -> tuple[dict[str, Any], Values]:
        """The attributes of a loop of parts, and its results, given its operands."""
        body, carries = attributes["body"], attributes["carries"]
        given = operands[: len(body.graph.inputs)]
        key = (body, tuple(map(_present, given)))
        if key not in self._bodies:
            inputs = [_input_like(one, value) for one, value in zip(body.graph.inputs, given)]
            found = self._outputs(body.graph, inputs)
            results = (*map(whole, found[:carries]), *found[carries:])
            graph = Graph(body.graph.name, flat(inputs), flat(results), body.graph.origin)
            self._bodies[key] = Body(graph), results
        new, results = self._bodies[key]
        counts = {
            "carries": len(flat(given[:carries])),
            "stacked": len(flat(given[carries : carries + attributes["stacked"]])),
        }
        return {**attributes, **counts, "body": new}, results

    def ruled(self, node: Node, operands: Sequence[Value]) -> Value:
        """A result of a call, of which all take the same operands."""
        body, index = node.attributes["body"], node.attributes["index"]
        new, results = self.of_rule(body)
        given = self._calls.setdefault((body, node.operands), flat(map(whole, operands)))
        found = [
            make_node(ruled, given, {"body": new, "index": place}, node.origin, "")
            for place in places_of(results)[index]
        ]
        return found[0] if len(found) == 1 else Pair(*found)

    def of_rule(self, body: Body) -> tuple[Body, Values]:
        """The body of a call with a rule on parts, all of which are there, and its results."""
        if body not in self._bodies:
            inputs = whole_inputs(body.graph)
            results = tuple(map(whole, self._outputs(body.graph, inputs)))
            graph = Graph(body.graph.name, flat(inputs), flat(results), body.graph.origin)
            assert body.rule is not None
            rule = self._rule(body.rule, places_of(inputs), places_of(results))
            self._bodies[body] = Body(graph, rule=rule), results
        return self._bodies[body]

    def _rule(self, rule: Rule, operands: Places, results: Places) -> Rule:
        graph, gradients = rule.graph, _joined(rule.gradients, operands)
        if graph is not None:
            inputs = whole_inputs(graph)
            found = tuple(map(whole, self._outputs(graph, inputs)))
            graph = Graph(graph.name, flat(inputs), flat(found), graph.origin)
        return replace(
            rule,
            graph=graph,
            residuals=_joined(rule.residuals, results),
            operands=_joined(rule.operands, operands),
            results=_joined(rule.results, results),
            gradients=gradients,
            arguments=sum(map(len, operands[: rule.arguments])),
            missing=tuple((part, place) for number, place in rule.missing for part in operands[number]),
        )

    def _outputs(self, graph: Graph, inputs: Sequence[Value]) -> Values:
        new: dict[Node, Any] = dict(zip(graph.inputs, inputs))
        self._split_nodes([node for node in graph.nodes if node not in new], new)
        return tuple(new[output] for output in graph.outputs)


def _present(value: Value) -> tuple[bool, ...]:
    """Which parts there are; none of a real value."""
    return () if isinstance(value, Node) else tuple(part is not None for part in value)


def _input_like(old: Node, value: Value) -> Value:
    """The input of a body for the parts of a value; a row of it has the name and the shape of `old`."""
    if isinstance(value, Node):
        return old
    spec = old.spec.with_dtype(real_dtype(old.dtype))
    return value.each_named(old.name, lambda _, name: make_input(spec, name, old.origin))


def whole_inputs(graph: Graph) -> list[Value]:
    """The inputs of a graph with both parts of complex ones."""
    return [_input_like(one, Pair(one, one) if one.dtype.kind == "c" else one) for one in graph.inputs]


def places_of(values: Sequence[Value]) -> Places:
    counts = [len(parts_of(value)) for value in values]
    return tuple(tuple(range(end - count, end)) for count, end in zip(counts, accumulate(counts)))


def _joined(numbers: Iterable[int], places: Places) -> tuple[int, ...]:
    return tuple(part for number in numbers for part in places[number])


__all__ = ["BodySplitter", "LoopOfParts", "Values", "whole_inputs"]
