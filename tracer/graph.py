"""The graph: values in static single assignment, each one the result of one operator.

A `Node` keeps the operands that it is made with, so it is a graph of its own; a `Graph` names the inputs and
outputs that belong together and lists the nodes between them in an order in which they can be computed.

Nodes and graphs never change. A pass makes new ones, most of them by `rebuild`; `relabel` gives other names.
"""

from __future__ import annotations

import itertools
from bisect import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from . import dims
from .errors import EagerOnlyError, GraphError, LeakedTraceError
from .forks import kept
from .lost_numbers import traced_number
from .operator import Operator, Parts, Value, Walk
from .ops import creation
from .ops import elementwise as e
from .origin import UNKNOWN, Origin, at_caller, current_origin
from .records import record
from .settings import CHECKING
from .spec import BOOL, Spec

if TYPE_CHECKING:
    from .drawing import Picture

next_serial = itertools.count(1).__next__
"""Numbers nodes, and questions about them, in the order in which they come up."""
Scalar = bool | int | float
SCALARS = (bool, int, float, complex)
FLOAT64 = np.dtype("float64")
NUMBER = Spec((), FLOAT64)
NO_PARTS = Parts(())
serial_of = attrgetter("serial")
spec_of_node = attrgetter("spec")


class Node(Value):
    """One value of a graph: what computes it, from what, and where the user wrote it. It never changes."""

    __slots__ = ("attributes", "is_verified", "name", "operands", "operator", "origin", "serial", "spec")

    operator: Operator
    operands: tuple[Node, ...]
    attributes: Mapping[str, Any]
    """Not to be written into: nodes share them."""
    spec: Spec
    origin: Origin
    name: str
    """The user's name for it; of an input, the path of the argument."""
    serial: int
    """The place in the order of creation, which puts operands before results."""
    is_verified: bool
    """There once `verify` has found it right."""

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

    @property
    def walks(self) -> tuple[Walk | None, ...]:
        """How the dimensions of the operand are read, of what takes each element from one place."""
        walks = self.operator.movement.walks
        return () if walks is None else walks(self.operands[0].spec, **self.attributes)

    @property
    def parts(self) -> Parts:
        """What the value is put together from."""
        parts = self.operator.movement.parts
        return NO_PARTS if parts is None else parts(*(one.spec for one in self.operands), **self.attributes)

    @classmethod
    def apply(cls, operator: Operator, operands: tuple[Any, ...], attributes: Mapping[str, Any]) -> Node:
        return make_node(operator, lift(operator, operands), attributes)

    def __bool__(self) -> bool:
        raise LeakedTraceError("a value of a graph has no truth value")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{self!r} never changes: its {name} is given when it is made")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{self!r} never changes")

    def __copy__(self) -> Node:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        return self

    def named(self, name: str) -> Node:
        """The same value under another name: a new node, in the same place of the order."""
        if name == self.name:
            return self
        return new_node(
            self.operator, self.operands, self.attributes, self.spec, self.origin, name, self.serial
        )

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


class _Draft(Node):
    """A node while its fields are written: a class that forbids it would take twice as long to make one."""

    __slots__ = ()
    __setattr__ = object.__setattr__  # type: ignore[assignment]
    __delattr__ = object.__delattr__  # type: ignore[assignment]  # without it the line above is slow


_new = object.__new__


def new_node(
    operator: Operator,
    operands: tuple[Node, ...],
    attributes: Mapping[str, Any],
    spec: Spec,
    origin: Origin = UNKNOWN,
    name: str = "",
    serial: int = 0,
) -> Node:
    """A node of all that it holds; `make_node` infers what can be inferred."""
    node = _new(_Draft)  # calling the class would take twice as long
    node.operator = operator
    node.operands = operands
    node.attributes = MappingProxyType(dict(attributes)) if CHECKING else attributes
    node.spec = spec
    node.origin = origin
    node.name = name
    node.serial = serial or next_serial()
    node.__class__ = Node  # type: ignore[assignment]
    return node


def make_node(
    operator: Operator,
    operands: tuple[Node, ...],
    attributes: Mapping[str, Any],
    origin: Origin | None = None,
    name: str | None = None,
    inside: int = 0,
) -> Node:
    """A new node, its spec inferred, its origin the user's current line unless given.

    `inside`: how many frames around the call are known to be pullback's.
    """
    spec = operator.infer(*map(spec_of_node, operands), **attributes)
    if origin is None:
        origin = current_origin(1 + inside)
        name = origin.target if name is None else name
    return new_node(operator, operands, attributes, spec, origin, name or "")


def make_input(spec: Spec, name: str, origin: Origin = UNKNOWN) -> Node:
    return new_node(creation.parameter, (), {"spec": spec}, spec, origin, name)


def make_named_input(spec: Spec, name: str, origin: Origin = UNKNOWN) -> Node:
    """An input of the user's function, whose sizes get their names from it.

    Raises:
        EagerOnlyError: it is complex.
    """
    if spec.dtype.kind == "c":
        raise EagerOnlyError(
            f"complex numbers have no form in compiled code{at_caller()}. Compute with them outside of the "
            "compiled function, or with their parts, or leave that function uncompiled."
        )
    return make_input(spec.with_shape(dims.named(spec.shape, name)), name, origin)


def constant(value: Scalar, spec: Spec) -> Node:
    """One value everywhere."""
    number = dims.with_formula(spec.dtype.type(value).item(), dims.formula_of(value))
    attributes = {"shape": spec.shape, "value": number, "dtype": spec.dtype}
    return new_node(creation.full, (), attributes, spec)


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
        attributes = {"shape": (), "value": traced_number(operand), "dtype": dtype}
        return new_node(creation.full, (), attributes, NUMBER)
    if isinstance(operand, np.generic):
        return constant(traced_number(operand.item()), Spec((), operand.dtype))
    if isinstance(operand, SCALARS):
        return constant(traced_number(operand), Spec((), BOOL if kind is bool else dtype))
    if isinstance(operand, np.ndarray):
        from .trace import current_trace  # which holds nodes

        return current_trace().capture(operand)
    raise GraphError(f"{kind.__name__} {operand!r} is no operand")


@record(frozen=True, eq=False, repr=False)
class Graph:
    """Inputs, outputs, and every node that the outputs need, operands before results."""

    name: str
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]
    origin: Origin = UNKNOWN

    @kept
    def nodes(self) -> tuple[Node, ...]:
        """All nodes that the outputs need, operands first, in the order in which they were made."""
        return tuple(toposort(self.outputs))

    def with_outputs(self, outputs: Iterable[Node], nodes: Iterable[Node] | None = None) -> Graph:
        """The graph of other outputs; `nodes` are all that these need, in their order, if that is known."""
        graph = Graph(self.name, self.inputs, tuple(outputs), self.origin)
        if nodes is not None:
            vars(graph)["nodes"] = tuple(nodes)
        return graph

    def __repr__(self) -> str:
        """One operator a line, as it prints."""
        return format_graph(self)

    def svg(self) -> Picture:
        """A picture, by Graphviz or else networkx and matplotlib: text, which notebooks show.

        Raises:
            UnsupportedError: none of them is installed.
        """
        from .drawing import svg  # not at start

        return svg(self)


def toposort(outputs: Iterable[Node], since: int = 0, known: AbstractSet[Node] = frozenset()) -> list[Node]:
    """Every node that the outputs need, in the order of creation, which puts operands before results.

    Args:
        since: a serial number; nodes that were made before are left out.
        known: nodes that are left out too, with what they alone need.
    """
    seen = {node for node in outputs if node.serial >= since}
    pending = list(seen - known)
    seen |= known
    enter, defer = seen.add, pending.append
    while pending:
        for node in pending.pop().operands:
            if node not in seen and (not since or node.serial >= since):
                enter(node)
                defer(node)
    return sorted(seen - known, key=serial_of)


def inputs_of(outputs: Iterable[Node]) -> tuple[Node, ...]:
    """The inputs that the outputs need."""
    return tuple(node for node in toposort(outputs) if node.is_input)


def users_of(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """Of each of the nodes, and of their operands, the nodes that read it, each of them once."""
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        users.setdefault(node, [])
        for operand in dict.fromkeys(node.operands):
            users.setdefault(operand, []).append(node)
    return users


def rebuild(
    graph: Graph, change: Callable[[Node, tuple[Node, ...]], Node], labels: Labels | None = None
) -> Graph:
    """The graph with every node replaced by `change(node, new operands)`, from the inputs on.

    The graph itself if that changes nothing. Names: see `rebuild_from`.
    """

    def changed(node: Node, new: dict[Node, Node]) -> Node:
        return change(node, tuple(map(new.__getitem__, node.operands)))

    return rebuild_from(graph, changed, labels)


def rebuild_from(
    graph: Graph, change: Callable[[Node, dict[Node, Node]], Node], labels: Labels | None = None
) -> Graph:
    """As `rebuild`, for changes that look deeper: `new` says what each earlier node has become.

    What takes the place of a node takes over its name, unless it has one. `labels` are further names and
    places, which the changes note.
    """
    new: dict[Node, Node] = {node: node for node in graph.inputs}
    labels = Labels() if labels is None else labels
    for node in graph.nodes:
        if node not in new:
            made = new[node] = change(node, new)
            if node.name and made is not node and not made.name and made.operands:
                labels.names.setdefault(made, node.name)
    outputs = tuple(new[output] for output in graph.outputs)
    is_same = all(one is other for one, other in zip(outputs, graph.outputs))
    return graph if is_same else relabel(graph.with_outputs(outputs), labels)


class Labels:
    """Names and places that nodes are to have: a pass notes them while it runs, `relabel` gives them."""

    def __init__(self, names: Mapping[Node, str] = MappingProxyType({})) -> None:
        self.names = dict(names)
        self.origins: dict[Node, Origin] = {}

    def __contains__(self, node: Node) -> bool:
        return node in self.names or node in self.origins

    def __bool__(self) -> bool:
        return bool(self.names or self.origins)


def relabel(graph: Graph, labels: Labels) -> Graph:
    """The same graph with other names and places; the order stays."""
    return graph.with_outputs(relabelled(graph.outputs, labels)) if labels else graph


def relabelled(outputs: Sequence[Node], labels: Labels) -> tuple[Node, ...]:
    """The same values with other names and places for some of the nodes that they are made of."""
    since = min(map(serial_of, (*labels.names, *labels.origins)), default=0)
    new = _relabelled(toposort(outputs, since) if labels else (), labels)
    return tuple(new.get(output, output) for output in outputs)


def _relabelled(nodes: Iterable[Node], labels: Labels) -> dict[Node, Node]:
    """The new nodes of those that have other names and places, or are made of such."""
    new: dict[Node, Node] = {}
    names, origins, newest = labels.names, labels.origins, new.get
    for node in nodes:
        operands = node.operands
        made = tuple([newest(operand, operand) for operand in operands])
        if made != operands or node in names or node in origins:
            new[node] = new_node(
                node.operator,
                made,
                node.attributes,
                node.spec,
                origins.get(node, node.origin),
                names.get(node, node.name),
                node.serial,
            )
    return new


def name_results(graph: Graph) -> Graph:
    """The same values, where one call made several nodes: the variable that it is assigned to names the last.

    While they are made, all have that name.
    """
    named = [node for node in graph.nodes if node.origin.target]
    steps = [operand for node in named for operand in node.operands if is_step_towards(node, operand)]
    if not steps:
        return graph
    newest = _relabelled(graph.nodes, Labels(dict.fromkeys(steps, ""))).get
    return graph.with_outputs(
        [newest(output, output) for output in graph.outputs], [newest(node, node) for node in graph.nodes]
    )


def is_step_towards(node: Node, operand: Node) -> bool:
    """Whether the call that made a node had made its operand before, both for one variable."""
    is_named = bool(operand.name) and not operand.is_input
    return is_named and operand.origin is node.origin and operand.name == node.origin.target


class Order:
    """The order of nodes that are made anew: where a question that came between two of them belongs."""

    def __init__(self, kept: Sequence[Node] = ()) -> None:
        self._visited = [*map(serial_of, kept)]
        self._serials = self._visited.copy()
        """Of each visited node a serial number from the time of its visit; of what is kept its own."""

    def visit(self, node: Node) -> None:
        """What the node becomes is made from here on."""
        self._visited.append(node.serial)
        self._serials.append(next_serial())

    def serial(self, question: int) -> int:
        """The place of a question among the new nodes, given that among those that were visited."""
        if not self._visited:
            return question
        place = bisect(self._visited, question)
        return self._serials[place] if place < len(self._serials) else next_serial()


def made_anew(node: Node, operands: tuple[Node, ...]) -> Node:
    """A new node with the same operator, on operands of the same specs."""
    return new_node(node.operator, operands, node.attributes, node.spec, node.origin, node.name)


def with_operands(node: Node, operands: tuple[Node, ...]) -> Node:
    """The node itself if nothing changed, else the same operator on other operands."""
    if operands == node.operands:  # as nodes are equal only to themselves
        return node
    if tuple(map(spec_of_node, operands)) == tuple(map(spec_of_node, node.operands)):
        return made_anew(node, operands)
    return make_node(node.operator, operands, node.attributes, node.origin, node.name)


def substitute(
    outputs: Iterable[Node], replacements: Mapping[Node, Node], since: int = 0
) -> tuple[Node, ...]:
    """The outputs with some nodes exchanged for others of the same spec; `since` as in `toposort`."""
    new = dict(replacements)
    outputs = tuple(outputs)
    for node in toposort(outputs, since):
        if node not in new:
            new[node] = with_operands(node, tuple([new.get(operand, operand) for operand in node.operands]))
    return tuple(new.get(output, output) for output in outputs)


def format_graph(graph: Graph) -> str:
    """The graph as text: one line a node, with the user's line behind it."""
    names = node_names(graph)
    inputs = ", ".join(f"{names[node]}: {node.spec}" for node in graph.inputs)
    lines = [f"graph {graph.name}({inputs}):"]
    for node in graph.nodes:
        if node.is_input:
            continue
        lines.append(f"    {format_node(node, names)}")
    lines.append(f"    return {', '.join(names[node] for node in graph.outputs)}")
    return "\n".join(lines)


def format_node(node: Node, names: Mapping[Node, str]) -> str:
    """`h: float64[3] = tanh(x)`, with the user's line behind it."""
    operands = [names.get(operand, operand.name or "?") for operand in node.operands]
    attributes = [] if node.is_input else [f"{key}={value}" for key, value in node.attributes.items()]
    text = f"{names.get(node, node.name)}: {node.spec}"
    if not node.is_input:
        text += f" = {node.operator.name}({', '.join(operands + attributes)})"
    return f"{text:<68}  # {_comment(node.origin)}" if node.origin.line else text


def _comment(origin: Origin) -> str:
    if origin.is_backward:
        return f"backward of {origin.place} ({origin.rule})"
    return origin.place_and_text


def node_names(graph: Graph) -> dict[Node, str]:
    """A distinct, readable name for each node: the user's where there is one."""
    names: dict[Node, str] = {}
    counts: dict[str, int] = {}
    taken: set[str] = set()
    for node in (*graph.inputs, *graph.nodes):
        if node in names:
            continue
        base = node.name or f"{node.operator.name}_"
        name = node.name
        while not name or name in taken:
            count = counts.get(base, 0 if not node.name else 1)
            counts[base] = count + 1
            name = f"{base}_{count}" if node.name else f"{base}{count}"
        taken.add(name)
        names[node] = name
    return names


__all__ = [
    "Graph", "Labels", "Node", "Order", "constant", "format_graph", "format_node", "inputs_of",
    "is_step_towards", "lift", "make_input", "make_node", "name_results", "new_node", "node_names", "rebuild",
    "rebuild_from", "relabel", "relabelled", "substitute", "toposort", "users_of", "with_operands",
]  # fmt: skip
