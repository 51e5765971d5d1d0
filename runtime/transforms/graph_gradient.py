"""Gradients inside a trace, of functions with long loops: taken of the graph once its loops are rolled.

Elsewhere a gradient in a trace is that of the tape, whose rules extend the graph. Of a loop of a thousand
steps that would write out a thousand steps backwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...tracer.graph import Graph, Labels, Node, constant, inputs_of, name_results, relabelled
from ...tracer.trace import current_trace
from ..tape.apply import cut_off
from ..tracing.guards import packed
from ..values.nodes import GradNode, have_own_backward
from ..values.tensor import Tensor, make


@dataclass(frozen=True, eq=False)
class RolledTrace:
    """What a traced function has computed so far, its loops rolled."""

    outputs: list[Node]
    inputs: list[Node]
    graph: Graph
    has_new_loops: bool


def roll_trace(
    outputs: Sequence[Tensor],
    behind: Iterable[Any],
    results: Sequence[Tensor],
    inputs: Sequence[Tensor],
    guards_before: int,
    only_loops: bool = True,
) -> RolledTrace | None:
    """The graph of the outputs with its loops rolled, whose values outputs and results then have.

    Args:
        behind: what is on the tape behind the outputs.
        results: what else the function returns.
        inputs: tensors whose payloads are nodes of their own.
        guards_before: how many guards there were before the function was called; its own ask for values of
            the rolled graph then.
        only_loops: do nothing where there is no loop to roll.

    Returns:
        None where the graph does not show all that the tape would do.
    """
    trace = current_trace()
    asked = trace.guards[guards_before:]
    tensors = (*outputs, *results)
    nodes = [one._value for one in (*tensors, *inputs)]
    if not all(type(node) is Node for node in nodes) or have_own_backward(behind):
        return None
    from ...codegen.rolling.roll import roll  # not at start

    questions, places = packed(asked)
    values = name_results(trace.share_captured((*nodes, *questions)))
    rolled = roll(Graph(trace.name, inputs_of(values), values))
    if only_loops and not rolled.notes:
        return None
    values = rolled.graph.outputs[: len(tensors)]
    wrt = rolled.graph.outputs[len(tensors) : len(nodes)]
    questions = list(rolled.graph.outputs[len(nodes) :])
    trace.notes += rolled.notes
    trace.guards[guards_before:] = [
        replace(guard, node=questions[pack], start=start) for guard, (pack, start, _) in zip(asked, places)
    ]
    for tensor, node in zip(tensors, values):
        tensor._value = node
    return RolledTrace(list(values[: len(outputs)]), list(wrt), rolled.graph, bool(rolled.notes))


def pull_back_rolled(
    output: Tensor,
    behind: Iterable[Any],
    results: Sequence[Tensor],
    inputs: Sequence[Tensor],
    guards_before: int,
) -> tuple[Tensor | None, ...] | None:
    """The gradient of a traced scalar, if its graph has loops to roll; else None. Arguments: `roll_trace`."""
    if not isinstance(output._grad_fn, GradNode):
        return None
    old = [one._value for one in inputs]
    rolled = roll_trace([output], behind, results, inputs, guards_before)
    if rolled is None:
        return None
    from ...codegen.derivatives.differentiate import differentiate  # not at start

    (value,) = rolled.outputs
    found = differentiate(rolled.graph, rolled.inputs, {value: constant(1, value.spec)})
    names = {
        gradient: f"d_{node.operands[0].name}"
        for gradient, node in zip(found, old)
        if gradient is not None and gradient.operands and node.operands[0].name
    }
    gradients = iter(relabelled([node for node in found if node is not None], Labels(names)))
    return tuple(None if node is None else make(cut_off(next(gradients))) for node in found)
