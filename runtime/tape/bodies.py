"""Bodies of loops and choices: a Python function, traced inside of the trace under way, as its own graph.

What the function takes from outside, through closures, becomes an input of the graph as well, found as the
values that were there before; their places on the tape say where their gradients go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...tracer.draw_order import DrawOrder
from ...tracer.errors import GraphError, UnsupportedError
from ...tracer.graph import Graph, Node, constant, make_input, name_results, substitute
from ...tracer.lost_numbers import traced_number
from ...tracer.origin import Origin
from ...tracer.records import record
from ...tracer.spec import Spec, spec_of
from ...tracer.trace import Trace, current_trace
from ..values.modes import is_recording
from ..values.nodes import AccumulateGrad, Edge, GradNode, edge_of, next_sequence, tensor_at
from ..values.tensor import Tensor, make
from ..values.value_kinds import Auxiliary
from .apply import wrap


class BodyInput(NamedTuple):
    """What a body is given."""

    spec: Spec
    name: str
    kind: type[Tensor] = Auxiliary


@record(frozen=True, eq=False)
class TracedBody:
    """A graph whose inputs are those asked for, then `constants`: tensors from outside."""

    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    constants: list[Tensor]

    def graph(self, name: str, origin: Origin, first: Sequence[Node] = ()) -> Graph:
        """The graph, its own Python loops rolled up, with further inputs in front that it does not use."""
        from ...codegen.rolling.roll import roll  # not at start

        rolled = roll(Graph(name, (*first, *self.inputs), self.outputs, origin))
        current_trace().notes += rolled.notes
        return rolled.graph


@record(frozen=True, eq=False)
class BodyRun:
    """A run of a body that has been traced.

    Attributes:
        inputs: what stands for what it is given, ...
        stand_ins: ... and the tensors of these.
        leaves: those of its result.
        start: the serial number of its first node.
        sequence: that of the tape's first node in it.
    """

    inputs: tuple[Node, ...]
    stand_ins: list[Tensor]
    leaves: list[Any]
    start: int
    sequence: int

    @property
    def outputs(self) -> list[Node]:
        return [_node_of(leaf, current_trace()) for leaf in self.leaves]


def trace_body(
    name: str,
    run: Callable[[list[Tensor]], Sequence[Any]],
    inputs: Sequence[BodyInput],
    may_draw: bool = False,
) -> TracedBody:
    """The graph of `run`, called once with tensors that stand for values of these specs, names and kinds.

    Args:
        name: the function that runs it, for messages.
        run: from tensors to the leaves of its result: tensors, arrays and numbers.
        may_draw: whether it may draw random numbers: once for each call of what is traced, unless whoever
            asks has them drawn more often.

    Raises:
        OrderNeeded: it draws random numbers. TraceError: it wants to know a value.
        MutationError: it writes to what it is given, or to a tensor from outside.
        UnsupportedError: it has a backward of its own, which the graph does not show.
    """
    one = run_body(name, run, inputs, may_draw)
    return body_of(name, [one], one.outputs)


def run_body(
    name: str,
    run: Callable[[list[Tensor]], Sequence[Any]],
    inputs: Sequence[BodyInput],
    may_draw: bool = False,
    prepare: Callable[[Sequence[Node]], None] = lambda nodes: None,
) -> BodyRun:
    """Run a body in the trace under way; arguments and errors are those of `trace_body`.

    Args:
        prepare: is given the inputs, before it runs.
    """
    trace, recording = current_trace(), is_recording()
    trace.differentiable = True  # gradients are taken of the graph, which must show where there are none
    drawn, first = len(trace.drawn), next_sequence()
    nodes = tuple(make_input(one.spec, one.name) for one in inputs)
    start = nodes[0].serial if nodes else make_input(Spec((), np.dtype("bool")), "").serial
    stand_ins = []
    for node, one in zip(nodes, inputs):
        stand_in = make(node, one.kind)
        stand_in._requires_grad = node.spec.is_continuous and recording
        instead = f"write into a {stand_in._copying}() of it"
        stand_in._frozen = f"{name}: the body writes into what it is given; {instead}"
        stand_ins.append(stand_in)
    prepare(nodes)
    trace.bodies.append(start)
    try:
        with DrawOrder().body():
            leaves = list(run(stand_ins))
            if len(trace.drawn) > drawn and not may_draw:
                DrawOrder().count()
    finally:
        trace.bodies.pop()
    return BodyRun(nodes, stand_ins, leaves, start, first)


def body_of(name: str, runs: Sequence[BodyRun], outputs: Sequence[Node]) -> TracedBody:
    """The body whose outputs are made of the inputs of the first of its runs, and of what is outside.

    Raises:
        UnsupportedError: it has a backward of its own, which the graph does not show.
    """
    from ...codegen.derivatives.taken import Taken  # not at start
    from ...codegen.rewriting.split_complex import Split

    trace, nodes, start = current_trace(), runs[0].inputs, runs[0].start
    outer = outer_nodes(outputs, set(nodes), start)
    edges: dict[Node, Edge] = {}
    for one in runs if is_recording() else ():
        edges |= _outer_edges(name, one.leaves, one.stand_ins, one.sequence, trace)
    edges = {node: edge for node, edge in edges.items() if node in outer or node.serial < start}
    if any(node not in outer for node in edges):
        raise GraphError(f"{name}: a value that the tape has read is not in the graph of the body")
    places = {node: make_input(node.spec, node.name, node.origin) for node in outer}
    graph = name_results(Graph(name, (), substitute(outputs, places)))
    taken = Taken(Split(graph, joins=True).graph)
    trace.notes += taken.notes
    return TracedBody(
        (*nodes, *places.values()),
        taken.outputs,
        [tensor_at(node, edges.get(node), [0, None]) for node in outer],
    )


def _node_of(leaf: Any, trace: Trace) -> Node:
    if isinstance(leaf, Tensor):
        value = leaf.payload
        return value if isinstance(value, Node) else trace.capture(value)
    if isinstance(leaf, np.ndarray):
        return trace.capture(leaf)
    number = leaf.item() if isinstance(leaf, np.generic) else leaf
    return constant(traced_number(number), spec_of(np.asarray(leaf)))


def outer_nodes(outputs: Sequence[Node], inputs: set[Node], start: int) -> list[Node]:
    """The values from outside that outputs need: made before the body was, or captured; constants are not."""
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    pending = list(reversed(outputs))
    while pending:
        node = pending.pop()
        if node in seen or node in inputs:
            continue
        seen.add(node)
        if node.is_input or (node.operands and node.serial < start):
            found[node] = None
        else:
            pending.extend(reversed(node.operands))
    return list(found)


def _outer_edges(
    name: str, leaves: Sequence[Any], stand_ins: Sequence[Tensor], first: int, trace: Trace
) -> dict[Node, Edge]:
    """Where on the tape the values from outside are that have a gradient."""
    own = set(map(id, stand_ins))
    found: dict[Node, Edge] = {}
    for edge in outer_edges([leaf for leaf in leaves if isinstance(leaf, Tensor)], first, name):
        target, number = edge
        if id(target) in own:
            continue
        value = target.value_of(number) if isinstance(target, GradNode) else _node_of(target, trace)
        if value is None:
            raise UnsupportedError(
                f"{name}: the body uses a result of {target.name()}, an operation with a backward of its "
                "own. Pass that result as an operand."
            )
        found[value] = edge
    return found


def outer_edges(tensors: Sequence[Tensor], first: int, traced_for: str = "") -> list[Edge]:
    """Where the tape of tensors leads to: leaves, and outputs of nodes made before sequence number `first`.

    Args:
        traced_for: in a trace the function that runs the body, for messages; then what the graph does not
            show raises UnsupportedError.
    """
    found: list[Edge] = []
    seen: set[tuple[int, int]] = set()
    pending: list[Edge] = [edge for one in tensors if (edge := edge_of(one)) is not None]
    while pending:
        target, number = edge = pending.pop()
        if (id(target), number) in seen:
            continue
        seen.add((id(target), number))
        if isinstance(target, AccumulateGrad):
            pending.extend(one for one in target.edges if one is not None)
        elif not isinstance(target, GradNode) or target.sequence < first:
            found.append(edge)
        elif traced_for and (not target.is_in_graph or target.has_hooks):
            raise UnsupportedError(
                f"{traced_for}: the body calls {target.name()}, an operation with a backward of its own or a "
                "hook, which compiled loops do not have. Call it outside of the body, or do not compile."
            )
        else:
            pending.extend(one for one in target.edges if one is not None)
    return found


def as_tensor(value: Any) -> Tensor:
    """A tensor of what an evaluated graph gives: a tensor, or a constant of the graph."""
    return make(value, Auxiliary) if isinstance(value, Node) else wrap(value)
