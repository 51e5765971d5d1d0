"""The derivative of a graph that has a rule of its own: that rule, applied to the cotangents of its
results."""

from __future__ import annotations

from collections.abc import Mapping

from pullback.tracer.errors import GradientError, MissingRuleError
from pullback.tracer.graph import Node, constant, make_node, substitute
from pullback.tracer.ops.control import Body, Rule, no_rule_message, ruled
from pullback.tracer.trace import innermost


def pull_back_ruled(call: Node, cotangents: Mapping[int, Node], active: set[Node]) -> dict[int, Node]:
    """The cotangents of a call's operands, by position, given those of its results.

    Args:
        call: any result of it.
        cotangents: by the result; that of a residual passes through the graph, not through the rule.
        active: the nodes through which a derivative passes.

    Raises:
        GradientError: an operand is active that the rule does not speak of.
    """
    body: Body = call.attributes["body"]
    rule = body.rule
    assert rule is not None
    _require_arguments(call, rule, active)
    found = {}
    if any(index in cotangents for index in rule.results):
        found = _by_rule(call, rule, cotangents)
    others = {index: one for index, one in cotangents.items() if index not in rule.results}
    if others:
        for position, one in _by_graph(call, body, others, active).items():
            found[position] = found[position] + one if position in found else one
    return {position: one for position, one in found.items() if call.operands[position] in active}


def _require_arguments(call: Node, rule: Rule, active: set[Node]) -> None:
    for position, place in rule.missing:
        if call.operands[position] in active:
            raise MissingRuleError(f"{no_rule_message(rule.function, place)} At {call.origin.place}.")
    outside = next((one for one in call.operands[rule.arguments :] if one in active), None)
    if outside is not None:
        name = f" ({outside.name})" if outside.name else ""
        raise GradientError(
            f"{rule.function} has a rule of its own for its derivative, and uses a value from outside of its "
            f"arguments{name} of which a gradient is taken; the rule says nothing of that one, at "
            f"{call.origin.place}  {call.origin.text}. Pass it as an argument."
        )


def _by_rule(call: Node, rule: Rule, cotangents: Mapping[int, Node]) -> dict[int, Node]:
    body: Body = call.attributes["body"]
    zeros = (constant(0, body.graph.outputs[index].spec) for index in rule.results)
    if rule.graph is None:
        trace = innermost()
        if trace is not None:
            trace.require_rules(rule.depth)
        raise GradientError(
            f"The rule of {rule.function} calls {rule.function}, and a derivative of so high an order is "
            f"taken of it in compiled code, at {call.origin.place}. Write the rule without that call, or do "
            "not compile the function."
        )
    values = [
        *(_result(call, index) for index in rule.residuals),
        *(call.operands[position] for position in rule.operands),
        *(cotangents.get(index, zero) for index, zero in zip(rule.results, zeros)),
    ]
    gradients = substitute(rule.graph.outputs, dict(zip(rule.graph.inputs, values)))
    found: dict[int, Node] = {}
    for position, gradient in zip(rule.gradients, gradients):
        found[position] = found[position] + gradient if position in found else gradient
    return found


def _result(call: Node, index: int) -> Node:
    attributes = {**call.attributes, "index": index}
    name = call.attributes["body"].graph.outputs[index].name
    return make_node(ruled, call.operands, attributes, call.origin, name)


def _by_graph(call: Node, body: Body, cotangents: Mapping[int, Node], active: set[Node]) -> dict[int, Node]:
    """What residuals have a derivative of their own for, when a gradient is differentiated again."""
    from .differentiate import differentiate  # which differentiates calls

    positions = [position for position, one in enumerate(call.operands) if one in active]
    total: dict[Node, Node] = {}
    for index, cotangent in cotangents.items():
        output = body.graph.outputs[index]
        total[output] = total[output] + cotangent if output in total else cotangent
    gradients = differentiate([body.graph.inputs[position] for position in positions], total)
    found = {position: one for position, one in zip(positions, gradients) if one is not None}
    values = substitute(found.values(), dict(zip(body.graph.inputs, call.operands)))
    return dict(zip(found, values))
