"""Gradients inside a trace, of functions with long loops: taken of the graph once its loops are rolled.

Elsewhere a gradient in a trace is that of the tape, whose rules extend the graph. Of a loop of a thousand
steps that would write out a thousand steps backwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..tracer.graph import Graph, Node, constant
from ..tracer.trace import current_trace
from .guards import packed
from .nodes import GradNode, have_own_backward
from .tape import cut_off
from .tensor import Tensor, make


def pull_back_rolled(
    output: Tensor,
    behind: Iterable[Any],
    results: Sequence[Tensor],
    inputs: Sequence[Tensor],
    guards_before: int,
) -> tuple[Tensor | None, ...] | None:
    """The gradient of a traced scalar, if its graph has loops to roll; else None.

    Args:
        behind: what is on the tape behind the output.
        results: what the function returns: their payloads become values of the rolled graph.
        inputs: tensors whose payloads are nodes of their own.
        guards_before: how many guards there were before the function was called; its own ask for values of
            the rolled graph then.
    """
    trace = current_trace()
    asked = trace.guards[guards_before:]
    nodes = [one._value for one in (output, *results, *inputs)]
    if not all(type(node) is Node for node in nodes) or not isinstance(output._grad_fn, GradNode):
        return None
    if have_own_backward(behind):
        return None
    from ..codegen.rewriting.differentiate import differentiate
    from ..codegen.rolling.roll import roll

    questions, places = packed(asked)
    graph = Graph(trace.name, (), (*nodes, *questions))
    rolled = roll(graph)
    if not rolled.notes:
        return None
    value, *others = rolled.graph.outputs
    values, others = others[: len(results)], others[len(results) :]
    wrt, questions = others[: len(inputs)], others[len(inputs) :]
    trace.notes += rolled.notes
    trace.guards[guards_before:] = [
        replace(guard, node=questions[pack], start=start) for guard, (pack, start, _) in zip(asked, places)
    ]
    found = differentiate(rolled.graph, wrt, {value: constant(1, value.spec)})
    for tensor, node in zip((output, *results), (value, *values)):
        tensor._value = node
    for gradient, old in zip(found, inputs):
        if gradient is not None and gradient.operands and old._value.operands[0].name:
            gradient.renamed(f"d_{old._value.operands[0].name}")
    return tuple(None if node is None else make(cut_off(node)) for node in found)
