"""Derivatives in a trace: nodes of its graph, and nodes of the tape where they are differentiated in turn.

The graph's nodes stand for derivatives until the trace ends (`codegen/derivatives/taken.py`). The tape knows
what they depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from ...tracer.graph import Node, make_node, next_serial, substitute
from ...tracer.operator import Operator
from ...tracer.ops.control import DERIVATIVES, gradient, jacobian, tangent
from ...tracer.ops.elementwise import identity
from ...tracer.records import record
from ...tracer.trace import current_trace
from ..values.modes import is_recording
from ..values.nodes import Edge, GradNode, edge_of
from ..values.tensor import Tensor, make
from .apply import cut_off

Values = Mapping[Node, Edge]
"""Nodes of the graph, and where their gradients go."""


def jacobians(outputs: Sequence[Tensor], variables: Sequence[Tensor], outer: Values) -> list[list[Tensor]]:
    """Of each output all derivatives by each variable, recorded as far as they depend on outer values."""
    operands = [(_node(one), _node(variable)) for one in outputs for variable in variables]
    found = iter(_recorded(jacobian, operands, outer))
    return [[next(found) for _ in variables] for _ in outputs]


def gradients(
    outputs: Sequence[Tensor], cotangents: Sequence[Tensor], variables: Sequence[Tensor], outer: Values
) -> list[Tensor]:
    """The gradient by each variable, recorded as far as it depends on outer values, or cotangents that do."""
    return _along(gradient, outputs, cotangents, variables, outer)


def tangents(
    outputs: Sequence[Tensor], variables: Sequence[Tensor], directions: Sequence[Tensor], outer: Values
) -> list[Tensor]:
    """The derivative of each output along directions of the variables, recorded likewise."""
    return _along(tangent, variables, directions, outputs, outer)


def _along(
    operator: Operator,
    values: Sequence[Tensor],
    directions: Sequence[Tensor],
    others: Sequence[Tensor],
    outer: Values,
) -> list[Tensor]:
    given = (*map(_node, values), *map(_node, directions))
    edges = {_node(one): edge for one in directions if (edge := edge_of(one)) is not None}
    kept = {**outer, **edges} if is_recording() else {}
    return _recorded(operator, [(*given, _node(one)) for one in others], kept)


def values_behind(tensors: Iterable[Tensor], first: int, own: Callable[[Any], bool]) -> dict[Node, Edge]:
    """What tensors depend on, made before the sequence number `first`, but for leaves of their own."""
    found: dict[Node, Edge] = {}
    seen = set()
    pending = [(_node(one), edge) for one in tensors if (edge := edge_of(one)) is not None]
    while pending:
        value, edge = pending.pop()
        target = edge[0]
        if not isinstance(target, GradNode) or target.sequence < first:
            if not own(target):
                found[value] = edge
        elif target not in seen:
            seen.add(target)
            read = zip(target.read, target.edges)
            pending.extend((_in_graph(one), edge) for one, edge in read if edge is not None)
    return found


@record(frozen=True, eq=False)
class Way:
    """What the tape has behind some of its values, all of it shown by the graph of a trace."""

    nodes: list[GradNode]
    values: dict[tuple[int, int], tuple[Edge, dict[Node, None]]]
    """By id and output number each edge, and the values that it stands for: of a leaf those it has had."""

    @classmethod
    def behind(cls, roots: Iterable[Edge], oldest: int) -> Way | None:
        """The way to nodes from the sequence number `oldest` on; None where the graph does not show it."""
        way = cls([], {})
        pending = [(cls.value_of(edge), edge) for edge in roots]
        while pending:
            value, edge = pending.pop()
            target, number = edge
            if not isinstance(value, Node):
                return None
            is_new = (id(target), number) not in way.values
            way.values.setdefault((id(target), number), (edge, {}))[1][value] = None
            if not is_new or not isinstance(target, GradNode) or target.sequence < oldest:
                continue
            if not target.is_in_graph or target.has_hooks or target.refusal():
                return None
            way.nodes.append(target)
            pending.extend((one, edge) for one, edge in zip(target.read, target.edges) if edge is not None)
        return way

    @staticmethod
    def value_of(edge: Edge) -> Any:
        target, number = edge
        return target.value_of(number) if isinstance(target, GradNode) else target.payload

    def is_in_graph(self, variables: Sequence[Node]) -> bool:
        """Whether what the graph has between the values and variables is what the tape has."""
        from ...codegen.derivatives.differentiate import active_nodes  # not at start

        places: dict[Node, tuple[int, int]] = {}
        for key, (_, values) in self.values.items():
            if any(places.setdefault(value, key) != key for value in values):
                return False
        taken = [value for value in places if value.operator in DERIVATIVES]
        active = active_nodes(_between(places, (), [*variables, *taken]), [*variables, *taken])
        leaves = (value for edge, values in self.values.values() if _is_leaf(edge) for value in values)
        unrecorded = [one for leaf in leaves for one in leaf.operands]
        unrecorded += [one for node in self.nodes for one, edge in zip(node.read, node.edges) if edge is None]
        return active <= places.keys() and active.isdisjoint(unrecorded)


def _is_leaf(edge: Edge) -> bool:
    return not isinstance(edge[0], GradNode)


class GraphBackward(GradNode):
    """In a trace the tape's node of what the graph shows: its backward is the derivative of the graph.

    Args:
        results: the nodes of its outputs.
        read: those of the operands.
        edges: where their gradients go.
    """

    __slots__ = ("_read", "outputs", "results")
    is_in_graph = True

    def __init__(self, results: Sequence[Node], read: Sequence[Node], edges: Sequence[Edge | None]) -> None:
        super().__init__(edges)
        self.results = results
        self.outputs = len(results)
        self._read = read

    @property
    def read(self) -> Sequence[Node]:
        return self._read

    def value_of(self, number: int) -> Node:
        return self.results[number]

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        """By each operand alone: what they are to each other is on the tape as well."""
        own = {one: identity(one) for one in self.read}
        given = [
            (make(one), cotangent)
            for one, cotangent in zip(self._on(own), cotangents)
            if cotangent is not None
        ]
        outer = {own[one]: edge for one, edge in zip(self.read, self.edges) if edge and create_graph}
        asked = {one: position for position, one in enumerate(self.read) if wanted[position]}
        found = gradients(
            [one for one, _ in given],
            [one if isinstance(one, Tensor) else make(one) for _, one in given],
            [make(own[one]) for one in asked],
            outer,
        )
        pulled: list[Any] = [None] * len(self.edges)
        for position, one in zip(asked.values(), found):
            pulled[position] = one if create_graph else one._value
        return pulled

    def _on(self, own: Mapping[Node, Node]) -> tuple[Node, ...]:
        """The results, made of other operands."""
        return substitute(self.results, own)


class DerivativeBackward(GraphBackward):
    """The tape's node of a derivative in a trace."""

    __slots__ = ()

    def _on(self, own: Mapping[Node, Node]) -> tuple[Node, ...]:
        plain = current_trace().values.plain
        return substitute(map(plain, self.results), {plain(one): new for one, new in own.items()})


def _recorded(operator: Operator, operands: Sequence[tuple[Node, ...]], outer: Values) -> list[Tensor]:
    nodes = _derivative_nodes(operator, operands)
    if not outer:
        return [make(cut_off(node)) for node in nodes]
    plain = current_trace().values.plain
    values = {plain(node): (node, edge) for node, edge in outer.items()}
    found = []
    for node in nodes:
        tensor = make(node)
        read = dict(values[one] for one in _depends_on(plain(node), values))
        if read:
            tensor._grad_fn = DerivativeBackward([node], list(read), list(read.values()))
            tensor._requires_grad = True
        found.append(tensor)
    return found


def _derivative_nodes(operator: Operator, operands: Sequence[tuple[Node, ...]]) -> list[Node]:
    """Nodes that are taken when the trace ends, or when Python asks for a value."""
    from ...codegen.derivatives.taken import expanded  # not at start

    trace, call = current_trace(), next_serial()
    values = trace.values

    @cache
    def taken() -> tuple[Node, ...]:
        return expanded(operator, [tuple(map(values.plain, every)) for every in operands])

    nodes = [make_node(operator, every, {"call": call}, name="") for every in operands]
    for place, node in enumerate(nodes):
        values.define(node, partial(lambda place: taken()[place], place))
    return nodes


def _depends_on(result: Node, values: Iterable[Node]) -> list[Node]:
    """Which of the values a result depends on by a way on which there is none of the others."""
    from ...codegen.derivatives.differentiate import active_nodes  # not at start

    ends = set(values)
    between = _between([result], ends, ends)
    return [node for node in between if node in ends] if result in active_nodes(between, list(ends)) else []


def _between(results: Iterable[Node], ends: Collection[Node], variables: Collection[Node]) -> list[Node]:
    """What results are made of down to the ends, and not before all variables, in order."""
    oldest = min((one.serial for one in variables), default=0)
    between: set[Node] = set()
    pending = list(results)
    while pending:
        node = pending.pop()
        if node not in between and node.serial >= oldest:
            between.add(node)
            pending.extend(() if node in ends or node.operator in DERIVATIVES else node.operands)
    return sorted(between, key=lambda node: node.serial)


def _node(tensor: Tensor) -> Node:
    return _in_graph(tensor.payload)


def _in_graph(value: Any) -> Node:
    return value if isinstance(value, Node) else current_trace().capture(value)
