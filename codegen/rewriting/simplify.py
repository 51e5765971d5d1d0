"""Simplification: a table of rewrites by operator, constant folding, and common subexpressions shared.

The rewrites of single operators are in `identities.py`; others stand where they belong.

Every rewrite keeps nan and inf as they are: `x * 0` stays, `x * 1` goes. Dead nodes need no pass: a graph
lists only what its outputs need.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Set
from typing import Any

import numpy as np

from pullback.tracer import dims
from pullback.tracer.graph import (
    Graph,
    Labels,
    Node,
    constant,
    make_node,
    next_serial,
    rebuild,
    toposort,
    with_operands,
)
from pullback.tracer.interpret import evaluate_graph
from pullback.tracer.merge import identity_of
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import reduction as r
from pullback.tracer.ops.complex_parts import BY_CALLS
from pullback.tracer.ops.control import ruled
from pullback.tracer.origin import located_at
from pullback.tracer.spec import broadcast_shapes

from .split_complex import without_complex

Rewrite = Callable[[Node], Node | None]
REWRITES: dict[str, list[Rewrite]] = {}
IDENTITIES: dict[str, Callable[[Node], Any]] = {}
"""By operator what tells its nodes apart, where nodes that are written differently have the same value."""


MOST_SIMPLEST = 250_000
"""Nodes that are remembered; a long trace has fewer."""
_simplest: dict[Set[str], set[int]] = {}
"""By what stays: nodes that no rewrite changes, by serial number, which a node keeps under another name."""


def rewrite(*names: str) -> Callable[[Rewrite], Rewrite]:
    """Enter a rewrite in the table for the operators named; it returns None where it does not apply."""

    def enter(function: Rewrite) -> Rewrite:
        for name in names:
            REWRITES.setdefault(name, []).append(function)
        _simplest.clear()
        return function

    return enter


OF_DERIVATIVES = frozenset(
    ("stop_gradient", "in_place_of", "cholesky", "cholesky_on_pairs", "eigh", "eigvalsh")
)
"""What is its operand but for derivatives, which it cuts off or leads elsewhere, and what reads one triangle
of a matrix, but has a derivative by both."""


def simplify(graph: Graph) -> Graph:
    """The same values from fewer and simpler nodes."""
    return Simplifier()(graph)


def simplify_differentiable(graph: Graph) -> Graph:
    """The same values, with the same derivatives of every order, from fewer and simpler nodes."""
    return Simplifier(is_last=False)(graph)


class Simplifier:
    """`simplify` for one graph in pass after pass: a node that no rewrite has changed is not tried again.

    Args:
        is_last: whether the graph is not differentiated any more; else what only derivatives see stays.
    """

    def __init__(self, is_last: bool = True) -> None:
        self._kept: Set[str] = frozenset() if is_last else OF_DERIVATIVES
        self._simplest = _simplest.setdefault(self._kept, set())
        if len(self._simplest) > MOST_SIMPLEST:
            self._simplest.clear()
        self._attributes: dict[int, Any] = {}
        """Of nodes, by the same number, what their attributes are as text."""
        self._unchanged: Graph | None = None
        self.__name__ = "simplify"

    def __call__(self, graph: Graph) -> Graph:
        if graph is self._unchanged:
            return graph
        result = self._simplified(graph)
        if result is graph:
            self._unchanged = graph
        return result

    def _simplified(self, graph: Graph) -> Graph:
        known: dict[Any, Node] = {}
        labels = Labels()

        def change(node: Node, operands: tuple[Node, ...]) -> Node:
            result = with_operands(node, operands)
            if result.serial not in self._simplest:
                result = _simplified(result, self._kept)
                self._simplest.add(result.serial)
            return self._shared(result, known, labels)

        return rebuild(graph, change, labels)

    def _shared(self, node: Node, known: dict[Any, Node], labels: Labels) -> Node:
        """The first node made of the same operator, operands and attributes."""
        if node.is_input:
            return node
        identify = IDENTITIES.get(node.operator.name)
        key = self._identity(node) if identify is None else (node.operator, identify(node))
        first = known.setdefault(key, node)
        if first is not node and first.origin.is_backward and not node.origin.is_backward:
            labels.origins.setdefault(first, node.origin)  # forward computes it, whoever made it first
        return first

    def _identity(self, node: Node) -> Any:
        """As `identity_of`; what attributes are as text is found once."""
        if (attributes := self._attributes.get(node.serial)) is None:
            *_, attributes = identity_of(node)
            self._attributes[node.serial] = attributes
        return node.operator, node.operands, attributes


def _simplified(node: Node, kept: Set[str]) -> Node:
    for _ in range(50):  # each rewrite shrinks or normalises, so this bound is never met
        changed = _rewritten(node, kept)
        if changed is node:
            break
        node = changed
    return node


def _rewritten(node: Node, kept: Set[str]) -> Node:
    name = node.operator.name
    with located_at(node.origin):
        for function in (
            _without_elements,
            _fold_constants,
            _drop_expands,
            *(REWRITES.get(name, ()) if name not in kept else ()),
        ):
            changed = function(node)
            if changed is not None and changed is not node:
                return changed
    return node


def expand_composites(graph: Graph, is_last: bool = True) -> Graph:
    """Composite operators replaced by their bodies, complex values in these by their parts.

    Args:
        is_last: whether the graph is not differentiated any more; else those that need their own rule stay.
    """

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        body = node.operator.body
        if body is None or (node.operator.needs_own_rule and not is_last):
            return with_operands(node, operands)
        since = next_serial()
        with located_at(node.origin):
            result: Node = body(*operands, **node.attributes)
            if node.operator in BY_CALLS.values():
                result = without_complex(result, since)
            new: dict[Node, Node] = {}
            for one in toposort([result], since):
                new[one] = change(one, tuple([new.get(operand, operand) for operand in one.operands]))
        return new.get(result, result)

    return rebuild(graph, change)


def expand_ruled(graph: Graph) -> Graph:
    """Calls of graphs with rules of their own, which is differentiated no more, as these graphs.

    They come before all else: what they hold, loops and composites, passes then see as any other.
    """
    while any(node.operator is ruled for node in graph.nodes):
        calls: dict[Any, tuple[Any, ...]] = {}

        def change(node: Node, operands: tuple[Node, ...], calls: Any = calls) -> Node:
            if node.operator is not ruled:
                return with_operands(node, operands)
            body, index = node.attributes["body"], node.attributes["index"]
            key = (body, operands)
            if key not in calls:
                with located_at(node.origin):
                    calls[key] = evaluate_graph(body.graph, operands)
            return calls[key][index]

        graph = rebuild(graph, change)
    return graph


def expand_what_has_no_own_rule(graph: Graph) -> Graph:
    """Composites expanded but for those that need their own rules: the graph may be differentiated again."""
    return expand_composites(graph, is_last=False)


# --- for every operator ---------------------------------------------------------------------------------


def _without_elements(node: Node) -> Node | None:
    """What has no elements is made of nothing: loops of no steps must not look anything up."""
    made = not node.is_input and not node.is_constant and node.operator.family != "control"
    return constant(0, node.spec) if made and 0 in node.shape else None


def _fold_constants(node: Node) -> Node | None:
    """An elementwise operator on constants, or movement of one, is a constant."""
    if not node.operands or not all(operand.is_constant for operand in node.operands):
        return None
    values = [operand.attributes["value"] for operand in node.operands]
    if node.operator.family == "elementwise":
        arrays = [np.asarray(value, operand.dtype) for value, operand in zip(values, node.operands)]
        with np.errstate(all="ignore"):
            result = np.asarray(node.operator.evaluate(*arrays, **node.attributes)).item()
        function = f"{node.operator.name}{dict(node.attributes)}" if node.attributes else node.operator.name
        return constant(dims.result_of(function, values, result), node.spec)
    is_one_value = node.operator is m.concatenate and len(set(map(repr, values))) == 1
    if is_one_value or node.operator.movement.rearranges:
        return constant(values[0], node.spec)
    if node.operator is r.sum_:
        return constant(dims.apply("multiply", values[0], _reduced_count(node)), node.spec)
    return None


def _reduced_count(node: Node) -> int:
    return math.prod(node.operands[0].shape[dim] for dim in node.attributes["dims"])


def _drop_expands(node: Node) -> Node | None:
    """Elementwise operators broadcast by themselves: an expand before one goes if the shape stays."""
    if node.operator.family != "elementwise":
        return None
    operands = list(node.operands)
    for position, operand in enumerate(operands):
        smaller = _unexpanded(operand)
        if smaller is not operand:
            candidate = [*operands[:position], smaller, *operands[position + 1 :]]
            if broadcast_shapes(*(one.shape for one in candidate)) == node.shape:
                operands = candidate
    if all(new is old for new, old in zip(operands, node.operands)):
        return None
    return make_node(node.operator, tuple(operands), node.attributes, origin=node.origin, name=node.name)


def _unexpanded(node: Node) -> Node:
    if node.operator is m.expand:
        return node.operands[0]
    if node.is_constant and node.shape:
        return constant(node.attributes["value"], node.spec.with_shape(()))
    return node
