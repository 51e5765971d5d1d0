"""The graph: values in static single assignment, each one the result of one operator.

A `Node` keeps the operands that it is made with, so it is a graph of its own; a `Graph` names the inputs and
outputs that belong together and lists the nodes between them in an order in which they can be computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from .errors import EagerOnlyError, GraphError, LeakedTraceError, PullbackError
from .operator import Operator, Value
from .ops import creation
from .ops import elementwise as e
from .origin import UNKNOWN, Origin, at_caller, current_origin
from .spec import BOOL, FromShape, Spec

next_serial = itertools.count().__next__
"""Numbers nodes, and questions about them, in the order in which they come up."""
Scalar = bool | int | float
SCALARS = (bool, int, float)
FLOAT64 = np.dtype("float64")
NUMBER = Spec((), FLOAT64)


@dataclass(eq=False, slots=True, repr=False)  # not frozen: that would double what making one takes
class Node(Value):
    """One value of a graph: what computes it, from what, and where the user wrote it.

    What it means never changes, its attributes included: nodes share them.
    """

    operator: Operator
    operands: tuple[Node, ...]
    attributes: Mapping[str, Any]
    spec: Spec
    origin: Origin = UNKNOWN
    name: str = ""
    """The user's name for it; of an input, the path of the argument."""
    serial: int = field(default_factory=next_serial)

    rank = 1

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape

    @property
    def dtype(self) -> np.dtype:
        return self.spec.dtype

    @property
    def ndim(self) -> int:
        return len(self.spec.shape)

    @property
    def is_input(self) -> bool:
        return self.operator is creation.parameter

    @property
    def is_constant(self) -> bool:
        return self.operator is creation.full

    @property
    def scalar_value(self) -> Scalar | None:
        """The value of a constant, whatever its shape."""
        return self.attributes["value"] if self.operator is creation.full else None

    @classmethod
    def apply(cls, operator: Operator, operands: tuple[Any, ...], attributes: Mapping[str, Any]) -> Node:
        return make_node(operator, lift(operator, operands), attributes)

    def __bool__(self) -> bool:
        raise LeakedTraceError("a value of a graph has no truth value")

    def renamed(self, name: str) -> Node:
        """The node itself, under another name: names are for people and no part of what a node means."""
        self.name = name
        return self

    def relocated(self, origin: Origin) -> Node:
        """The node itself, said to come from another line."""
        self.origin = origin
        return self

    def __repr__(self) -> str:
        return f"<{self.name or 'node'} {self.operator.name} {self.spec}>"

    def __add__(self, other: Any) -> Node:
        return e.add(self, other)

    def __radd__(self, other: Any) -> Node:
        return e.add(other, self)

    def __sub__(self, other: Any) -> Node:
        return e.subtract(self, other)

    def __rsub__(self, other: Any) -> Node:
        return e.subtract(other, self)

    def __mul__(self, other: Any) -> Node:
        return e.multiply(self, other)

    def __rmul__(self, other: Any) -> Node:
        return e.multiply(other, self)

    def __truediv__(self, other: Any) -> Node:
        return e.divide(self, other)

    def __rtruediv__(self, other: Any) -> Node:
        return e.divide(other, self)

    def __pow__(self, exponent: float) -> Node:
        return e._power(self, exponent)

    def __neg__(self) -> Node:
        return e.negative(self)


def make_node(
    operator: Operator,
    operands: tuple[Node, ...],
    attributes: Mapping[str, Any],
    origin: Origin | None = None,
    name: str | None = None,
) -> Node:
    """A new node, its spec inferred, its origin the user's current line unless given.

    Raises:
        EagerOnlyError: only NumPy or SciPy evaluates the operator.
    """
    if operator.family == "eager":
        _refuse(operator)
    spec = operator.infer(*[operand.spec for operand in operands], **attributes)
    if origin is None:
        origin = current_origin()
        if origin.target:
            _unname_intermediates(operands, origin)
            name = origin.target if name is None else name
    return Node(operator, operands, attributes, spec, origin, name or "")


def _refuse(operator: Operator) -> NoReturn:
    raise EagerOnlyError(
        f"{operator.name}() has no form in compiled code{at_caller()}. Call it outside "
        "of the compiled function and pass its result in, or leave that function uncompiled."
    )


def _unname_intermediates(operands: tuple[Node, ...], origin: Origin) -> None:
    """One function call may make several nodes; the variable it is assigned to names the last."""
    for operand in operands:
        if operand.origin is origin and operand.name == origin.target:
            operand.renamed("")


def make_input(spec: Spec, name: str, origin: Origin = UNKNOWN) -> Node:
    return Node(creation.parameter, (), {"spec": spec}, spec, origin, name)


def constant(value: Scalar, spec: Spec) -> Node:
    """One value everywhere."""
    plain = spec.dtype.type(value).item()
    kept = FromShape(plain) if isinstance(value, FromShape) and spec.is_float else plain
    attributes = {"shape": spec.shape, "value": kept, "dtype": spec.dtype}
    return Node(creation.full, (), attributes, spec)


def lift(operator: Operator, operands: tuple[Any, ...]) -> tuple[Node, ...]:
    """Operands as nodes: a Python scalar takes the dtype of the nodes beside it."""
    for operand in operands:
        if type(operand) is not Node:
            break
    else:
        return operands
    dtypes = [operand.spec.dtype for operand in operands if type(operand) is Node]
    values = dtypes[1:] if operator is e.where and type(operands[0]) is Node else dtypes
    dtype = values[0] if values else dtypes[0]
    return tuple(operand if type(operand) is Node else _lift_one(operand, dtype) for operand in operands)


def _lift_one(operand: Any, dtype: np.dtype) -> Node:
    kind = type(operand)
    if kind is float and dtype is FLOAT64:  # the common case
        return Node(creation.full, (), {"shape": (), "value": operand, "dtype": dtype}, NUMBER)
    if isinstance(operand, np.generic):
        return constant(operand.item(), Spec((), operand.dtype))
    if isinstance(operand, SCALARS):
        return constant(operand, Spec((), BOOL if kind is bool else dtype))
    if isinstance(operand, np.ndarray):
        from .trace import current_trace

        return current_trace().capture(operand)
    raise GraphError(f"{kind.__name__} {operand!r} is no operand")


@dataclass(frozen=True, eq=False)
class Graph:
    """Inputs, outputs, and every node that the outputs need, operands before results."""

    name: str
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    origin: Origin = UNKNOWN

    def __post_init__(self) -> None:
        object.__setattr__(self, "_nodes", tuple(toposort(self.outputs)))

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes that the outputs need, operands first, in the order in which they were made."""
        return self._nodes  # type: ignore[attr-defined]

    def with_outputs(self, outputs: Iterable[Node]) -> Graph:
        return Graph(self.name, self.inputs, tuple(outputs), self.origin)

    def check(self) -> Graph:
        """Raise GraphError, with the surroundings, where the graph breaks its own rules; else return it."""
        known = set(self.inputs)
        for node in self.nodes:
            if node.is_input and node not in known:
                raise GraphError(f"{node!r} is an input that the graph does not list\n{self}")
            if any(operand not in known for operand in node.operands):
                raise GraphError(f"{node!r} comes before its operands\n{self}")
            try:
                expected = node.operator.infer(*(one.spec for one in node.operands), **node.attributes)
            except PullbackError as error:
                raise GraphError(f"{node!r} does not accept its operands: {error}\n{self}") from error
            if expected != node.spec:
                raise GraphError(f"{node!r} has spec {node.spec}, its operands give {expected}\n{self}")
            known.add(node)
        return self

    def __str__(self) -> str:
        return format_graph(self)


def toposort(outputs: Iterable[Node]) -> Iterator[Node]:
    """Every node that the outputs need, in the order of creation, which puts operands before results."""
    seen: dict[Node, None] = {}
    pending = list(outputs)
    while pending:
        node = pending.pop()
        if node not in seen:
            seen[node] = None
            pending.extend(node.operands)
    return iter(sorted(seen, key=lambda node: node.serial))


def users_of(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """Of each of the nodes, and of their operands, the nodes that read it, each of them once."""
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        users.setdefault(node, [])
        for operand in dict.fromkeys(node.operands):
            users.setdefault(operand, []).append(node)
    return users


def rebuild(graph: Graph, change: Callable[[Node, tuple[Node, ...]], Node]) -> Graph:
    """The graph with every node replaced by `change(node, new operands)`, from the inputs on.

    The graph itself if that changes nothing.
    """
    new: dict[Node, Node] = {node: node for node in graph.inputs}
    for node in graph.nodes:
        if node not in new:
            new[node] = change(node, tuple(new[operand] for operand in node.operands))
    outputs = tuple(new[output] for output in graph.outputs)
    is_same = all(one is other for one, other in zip(outputs, graph.outputs))
    return graph if is_same else graph.with_outputs(outputs)


def with_operands(node: Node, operands: tuple[Node, ...]) -> Node:
    """The node itself if nothing changed, else the same operator on other operands."""
    if all(new is old for new, old in zip(operands, node.operands)):
        return node
    return make_node(node.operator, operands, node.attributes, origin=node.origin, name=node.name)


def substitute(outputs: Iterable[Node], replacements: Mapping[Node, Node]) -> tuple[Node, ...]:
    """The outputs with some nodes exchanged for others of the same spec."""
    new = dict(replacements)
    outputs = tuple(outputs)
    for node in toposort(outputs):
        if node not in new:
            new[node] = with_operands(node, tuple(new[operand] for operand in node.operands))
    return tuple(new[output] for output in outputs)


def format_graph(graph: Graph) -> str:
    """The graph as text: one line a node, with the user's line behind it."""
    names = node_names(graph)
    inputs = ", ".join(f"{names[node]}: {node.spec}" for node in graph.inputs)
    lines = [f"graph {graph.name}({inputs}):"]
    for node in graph.nodes:
        if node.is_input:
            continue
        operands = [names[operand] for operand in node.operands]
        attributes = [f"{key}={value}" for key, value in node.attributes.items()]
        text = f"    {names[node]}: {node.spec} = {node.operator.name}({', '.join(operands + attributes)})"
        lines.append(f"{text:<72}  # {_comment(node.origin)}" if node.origin.line else text)
    lines.append(f"    return {', '.join(names[node] for node in graph.outputs)}")
    return "\n".join(lines)


def _comment(origin: Origin) -> str:
    if origin.is_backward:
        return f"backward of {origin.place} ({origin.rule})"
    return f"{origin.place}  {origin.text}"


def node_names(graph: Graph) -> dict[Node, str]:
    """A distinct, readable name for each node: the user's where there is one."""
    names: dict[Node, str] = {}
    taken: dict[str, int] = {}
    for node in (*graph.inputs, *graph.nodes):
        if node in names:
            continue
        base = node.name or f"{node.operator.name}_"
        count = taken.get(base, 0)
        taken[base] = count + 1
        names[node] = f"{base}{count}" if not node.name else base if not count else f"{base}_{count}"
    return names


__all__ = [
    "Graph", "Node", "constant", "format_graph", "lift", "make_input", "make_node", "node_names",
    "rebuild", "substitute", "toposort", "users_of", "with_operands",
]  # fmt: skip
