"""Whether a graph keeps the rules of graphs: what every pass may rely on, and must keep.

It runs after every pass where the environment variable PULLBACK_CHECK is set, as it is in tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any
from weakref import WeakSet

import numpy as np

from .errors import GraphError
from .graph import Graph, Node, format_node, node_names, users_of
from .loop import LoopNode
from .ops.control import Body, loop_result
from .settings import CHECKING

MOST_NEIGHBOURS = 8
"""Operands, and users, that a message shows."""
PLAIN = (type(None), bool, int, float, complex, str, bytes, np.dtype, np.generic, type)
_verified: WeakSet[Body] = WeakSet()


def checked(graph: Graph, after: str, before: Graph | None = None) -> Graph:
    """The graph, verified if that is asked for."""
    return verify(graph, after, before) if CHECKING else graph


def verify(graph: Graph, after: str = "", before: Graph | None = None) -> Graph:
    """The graph, if it keeps the rules, and so do the graphs that its nodes hold.

    - Operands come before results, and each input is listed, once; so a body reaches nothing outside of it.
    - Specs are what the operators make of those of the operands.
    - Attributes are plain values that can be hashed.

    Args:
        after: the pass that has made it, for the message.
        before: what the pass was given, which has been verified.

    Nodes never change, so of those that have been found right before only the place is looked at.

    Raises:
        GraphError: it breaks one; the message shows the node, with its operands and users.

    Example:
        >>> verify(simplify(graph), "simplify")
    """
    if graph is before:  # of passes that find nothing
        return graph
    for position, node in enumerate(graph.inputs):
        if not node.is_input:
            raise _broken(graph, node, "is listed as an input, and is computed", after)
        if node in graph.inputs[:position]:
            raise _broken(graph, node, "is listed as an input twice", after)
    known = set(graph.inputs)
    for node in graph.nodes:
        is_placed = known.issuperset(node.operands) and (not node.is_input or node in known)
        is_right = getattr(node, "is_verified", False)
        if not (is_placed and is_right):
            for fault in chain(_misplaced(node, known), () if is_right else _faults(node)):
                raise _broken(graph, node, fault, after)
            object.__setattr__(node, "is_verified", True)
        known.add(node)
        if (body := node.attributes.get("body")) is not None:
            _verify_body(body, after)
    return graph


def _verify_body(body: Body, after: str) -> None:
    if body not in _verified:
        graphs = {"a body": body.graph, "a rule": None if body.rule is None else body.rule.graph}
        for place, graph in graphs.items():
            if graph is not None:
                verify(graph, f"{after}, in {place}" if after else f"in {place}")
        _verified.add(body)


def _misplaced(node: Node, known: set[Node]) -> Iterator[str]:
    """What is wrong with a node's place, given those that come before it."""
    if node.is_input and node not in known:
        yield "is an input that the graph does not list"
    for operand in node.operands:
        if operand not in known:
            yield f"comes before its operand {operand!r}"


def _faults(node: Node) -> Iterator[str]:
    """What is wrong with a node itself."""
    if node.is_input:
        return
    for name, value in node.attributes.items():
        if not _is_plain(value):
            yield f"has an attribute that is no plain value, {name}={value!r}"
    try:
        expected = _expected_spec(node)
    except Exception as error:  # whatever an operator makes of what it does not expect
        yield f"does not accept its operands: {error}"
    else:
        if expected != node.spec:
            yield f"has the spec {node.spec}, and its operands give {expected}"


def _expected_spec(node: Node) -> Any:
    if node.operator is loop_result:
        return LoopNode(node.operands[0]).result_spec(node.attributes["index"])
    return node.operator.infer(*[operand.spec for operand in node.operands], **node.attributes)


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple | frozenset):
        return all(map(_is_plain, value))
    if isinstance(value, PLAIN):
        return True
    return type(value).__hash__ is not None and not isinstance(value, Node | Graph)


def _broken(graph: Graph, node: Node, fault: str, after: str) -> GraphError:
    """The error, with the operands of the node, the node, and what reads it."""
    names = node_names(graph)
    users = users_of(graph.nodes).get(node, [])
    lines = [f"    {format_node(one, names)}" for one in _first(node.operands)]
    lines += [f"  > {format_node(node, names)}"]
    lines += [f"    {format_node(one, names)}" for one in _first(users)]
    where = f"After {after}: " if after else ""
    place = f", at {node.origin.place}  {node.origin.text}".rstrip() if node.origin.line else ""
    return GraphError(
        f"{where}in the graph {graph.name}, {names.get(node, node.name)} {fault}{place}.\n" + "\n".join(lines)
    )


def _first(nodes: Any) -> list[Node]:
    return list(dict.fromkeys(nodes))[:MOST_NEIGHBOURS]
