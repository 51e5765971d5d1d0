"""Reverse-mode differentiation of a graph: the rules' cotangents, summed and brought to the operands' shapes.

A. Griewank and A. Walther, Evaluating Derivatives (SIAM 2008), section 3.2: each node's cotangent is
complete when all its users have been visited, so one sweep against the order of computation suffices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pullback.tracer.errors import EagerOnlyError
from pullback.tracer.graph import Labels, Node, next_serial, relabelled, toposort
from pullback.tracer.loop import LoopNode
from pullback.tracer.operator import Operator
from pullback.tracer.ops.complex_parts import on_pairs
from pullback.tracer.ops.control import loop_result, ruled
from pullback.tracer.ops.reduction import sum_to_shape
from pullback.tracer.origin import backward_of

from ..rewriting.split_complex import without_complex
from .ruled import pull_back_ruled


def differentiate(wrt: Sequence[Node], cotangents: Mapping[Node, Node]) -> list[Node | None]:
    """The cotangent of each node of `wrt`, given those of outputs; None where no gradient flows."""
    nodes = toposort(cotangents, min((node.serial for node in wrt), default=0))
    active = active_nodes(nodes, wrt)
    total: dict[Node, Node] = {}
    of_results: dict[Node, dict[int, Node]] = {}
    ruled_calls = _calls_with_rules(nodes)
    are_real = all(node.dtype.kind != "c" for node in nodes)
    names, first = Labels(), next_serial()
    for output, cotangent in cotangents.items():
        if output in active:
            total[output] = cotangent
    for node in reversed(nodes):
        if node in total and total[node].scalar_value == 0 and _is_of_factors(node):
            continue  # what takes them has their derivative
        if node.operator is loop_result and node in total:
            found, index = of_results.setdefault(node.operands[0], {}), node.attributes["index"]
            found[index] = found[index] + total[node] if index in found else total[node]
        elif node in of_results:
            _visit_loop(node, of_results[node], total, active)
        elif node.operator is ruled:
            _visit_ruled(node, ruled_calls.get(node, ()), total, active)
        elif node in total and node.operands:
            if total[node].serial > first:  # what was there before is known by what it is
                _name_cotangent(total[node], node, names)
            _visit(node, total, active, are_real)
    named = iter(relabelled([total[node] for node in wrt if node in total], names))
    return [next(named) if node in total else None for node in wrt]


def summed(values: Sequence[Node], cotangents: Sequence[Node]) -> dict[Node, Node]:
    """The cotangent of each of the values, some of which may be the same."""
    found: dict[Node, Node] = {}
    for value, one in zip(values, cotangents):
        found[value] = found[value] + one if value in found else one
    return found


def active_nodes(nodes: Iterable[Node], wrt: Sequence[Node]) -> set[Node]:
    """Those of the nodes, operands first, through which a derivative with respect to `wrt` passes."""
    active = {node for node in wrt if node.spec.is_continuous}
    of_loops: dict[Node, set[int]] = {}
    for node in nodes:
        if node.operator is loop_result:
            loop = node.operands[0]
            if loop not in of_loops:  # for each result again, nests would take exponential time
                of_loops[loop] = _active_results(loop, active)
            if node.attributes["index"] in of_loops[loop]:
                active.add(node)
        elif node.spec.is_continuous and any(
            operand in active and _depends(node.operator, position)
            for position, operand in enumerate(node.operands)
        ):
            active.add(node)
    return active


def _depends(operator: Operator, position: int) -> bool:
    """Whether the result has a derivative by the operand. That of factors is in the rule of the composite
    that takes them and the matrix; `_visit` refuses any other use of them."""
    has_rule = operator.rule_for(position) is not None
    return has_rule or operator is ruled or operator.family == "matrix"


def _is_of_factors(node: Node) -> bool:
    """Whether it is a factorisation, or what loops hand out of one."""
    while node.operator is loop_result:
        node = LoopNode(node.operands[0]).body.outputs[node.attributes["index"]]
    return node.operator.family == "matrix"


def _visit(node: Node, total: dict[Node, Node], active: set[Node], are_real: bool) -> None:
    """Add what the rules of `node` give to the cotangents of its operands; among real numbers by real ones.

    Raises:
        EagerOnlyError: it is a factorisation, which has none.
    """
    if node.operator.family == "matrix":
        raise EagerOnlyError(
            f"The derivative of {node.operator.name} has no form in generated code, at {node.origin.place}  "
            f"{node.origin.text}. Without compiling it is computed."
        )
    cotangent, since = total[node], next_serial()
    specs = [operand.spec for operand in node.operands]
    for position, operand in enumerate(node.operands):
        if operand not in active or node.operator.rule_for(position) is None:
            continue
        with backward_of(node.origin, _function_of(node)):
            contribution = node.operator.pull_back(
                position, cotangent, node.operands, specs, node, node.spec, node.attributes
            )
            if are_real:
                contribution = without_complex(contribution, since)
            contribution = sum_to_shape(contribution, operand.shape)
            if operand in total:
                contribution = total[operand] + contribution
        total[operand] = contribution


def _function_of(node: Node) -> str:
    """What comments call it."""
    name: str = node.attributes["of"] if node.operator is on_pairs else node.operator.name
    return name


def _active_results(loop: Node, active: set[Node]) -> set[int]:
    from .reverse import active_results  # which differentiates bodies

    return active_results(LoopNode(loop), active)


def _visit_loop(node: Node, cotangents: dict[int, Node], total: dict[Node, Node], active: set[Node]) -> None:
    from .reverse import pull_back_loop  # as above

    with backward_of(node.origin, "loop"):
        for position, contribution in pull_back_loop(LoopNode(node), cotangents, active).items():
            operand = node.operands[position]
            if operand in active:
                total[operand] = total[operand] + contribution if operand in total else contribution


def _calls_with_rules(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """The results of each call of a graph with a rule, by the first of them: its cotangents are all known."""
    calls: dict[Any, list[Node]] = {}
    for node in nodes:
        if node.operator is ruled:
            calls.setdefault((node.attributes["body"], node.operands), []).append(node)
    return {results[0]: results for results in calls.values()}


def _visit_ruled(first: Node, results: Sequence[Node], total: dict[Node, Node], active: set[Node]) -> None:
    cotangents: dict[int, Node] = {}
    for node in results:  # a rule that has read a result has made a node of its own for it
        if node in total:
            index = node.attributes["index"]
            cotangents[index] = cotangents[index] + total[node] if index in cotangents else total[node]
    if not cotangents:
        return
    with backward_of(first.origin, first.attributes["body"].graph.name):
        for position, contribution in pull_back_ruled(first, cotangents, active).items():
            operand = first.operands[position]
            total[operand] = total[operand] + contribution if operand in total else contribution


def _name_cotangent(cotangent: Node, primal: Node, names: Labels) -> None:
    """Let the cotangent be called `d_<primal>`, if it has no name yet."""
    if primal.name and not cotangent.name and cotangent.operands:
        names.names.setdefault(cotangent, f"d_{primal.name}")
