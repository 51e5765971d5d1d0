"""Derivatives that a traced function takes: nodes of its graph, which is differentiated when the trace ends.

One after the other, in the order of the trace. What lies between the variables and the results is rolled
first, so that of a Python loop there is one loop forward and one back, and what is read later is read of the
rolled graph. The next derivative finds an ordinary graph.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from pullback.tracer.graph import (
    Graph,
    Labels,
    Node,
    Order,
    made_anew,
    make_input,
    next_serial,
    relabelled,
    serial_of,
    substitute,
    toposort,
)  # fmt: skip
from pullback.tracer.operator import Operator
from pullback.tracer.ops.control import DERIVATIVES, gradient, jacobian, tangent, variables_of

from ..passes import run_passes
from ..rewriting.definite_equations import solve_definite_equations
from ..rewriting.diagonals import take_diagonals
from ..rolling.bodies import share_loops
from ..rolling.roll import roll
from .differentiate import differentiate, summed
from .jacobians import derivatives, filled, push_forward

Operands = Sequence[tuple[Node, ...]]


class Taken:
    """The outputs of a trace's graph, with all derivatives in it taken.

    Attributes:
        outputs: the new ones.
        notes: what there is to say of the loops that were rolled.
        order: that of the new nodes.
    """

    def __init__(self, graph: Graph) -> None:
        self.outputs = graph.outputs
        self.notes: tuple[str, ...] = ()
        self._name = graph.name
        self._nodes = graph.nodes
        self.order = Order()
        places = [place for place, node in enumerate(self._nodes) if node.operator in DERIVATIVES]
        if not places:
            return
        self._calls: dict[int, list[Node]] = {}
        for node in (self._nodes[place] for place in places):
            self._calls.setdefault(node.attributes["call"], []).append(node)
        before, behind = self._nodes[: places[0]], self._nodes[places[0] :]
        places_behind = enumerate(behind, len(before))
        self._last_use = {operand: place for place, node in places_behind for operand in node.operands}
        """Of what is read from the first derivative on, where last."""
        self._last_use |= dict.fromkeys(graph.outputs, len(self._nodes))
        self._new: dict[Node, Node] = {}
        """What has become of the nodes; those that are not in it stay as they are."""
        self.order = Order(before)
        for node in behind:
            self._visit(node)
        self.outputs = self._newest(graph.outputs)

    def _newest(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        return tuple([self._new.get(node, node) for node in nodes])

    def _visit(self, node: Node) -> None:
        """Make a node anew, behind all made before."""
        self.order.visit(node)
        if node.operator in DERIVATIVES:
            if node not in self._new:
                self._take(self._calls[node.attributes["call"]])
        elif node.operands:
            self._new[node] = made_anew(node, self._newest(node.operands))

    def _take(self, call: Sequence[Node]) -> None:
        """Make the derivatives of one call, the loops between their variables and results rolled."""
        variables = {one for node in call for one in variables_of(node)}
        first, stop = min(map(serial_of, variables)), call[0].serial
        place = bisect_left(self._nodes, stop, key=serial_of)
        found = (node for node, last in self._last_use.items() if last >= place)
        used = (one for one in found if one.operands and first <= one.serial < stop and one not in variables)
        read = sorted(used, key=serial_of)
        operator, operands = call[0].operator, [self._newest(node.operands) for node in call]
        values = self._newest(read)
        given = dict.fromkeys(one for every in operands for one in every if not one.is_constant)
        since = min(map(serial_of, self._newest([*variables])))
        part, stand_ins = _part(self._name, values, list(given.keys() - set(values)), since)
        rolled = roll(part)
        forward = run_passes(rolled.graph, take_diagonals, solve_definite_equations)
        if forward is part:
            self._new.update(zip(call, expanded(operator, operands)))
            return
        self.notes += rolled.notes
        inside = stand_ins | dict(zip(values, forward.outputs))
        derived = expanded(operator, [tuple([inside.get(one, one) for one in every]) for every in operands])
        joint = run_passes(part.with_outputs((*forward.outputs, *derived)), share_loops)
        outside = {stand_in: node for node, stand_in in stand_ins.items()}
        self._new.update(zip((*read, *call), substitute(joint.outputs, outside)))


def _part(
    name: str, values: Sequence[Node], given: Sequence[Node], since: int
) -> tuple[Graph, dict[Node, Node]]:
    """A graph of the values, with inputs for what is given and for all that is older, and these by node.

    Every other node is new, as the steps of a loop must follow each other.
    """
    inside = toposort(values, since, frozenset(given))
    older = dict.fromkeys([one for node in inside for one in node.operands if one.serial < since])
    stand_ins = {
        node: make_input(node.spec, node.name, node.origin)
        for node in dict.fromkeys((*given, *(one for one in older if one.operands)))
    }
    inputs = [one for one in (*inside, *older) if one.is_input and one not in stand_ins]
    new = dict(stand_ins)
    newest = new.get
    for node in inside:
        if node.operands and node not in new:
            new[node] = made_anew(node, tuple([newest(operand, operand) for operand in node.operands]))
    outputs = tuple([newest(one, one) for one in values])
    return Graph(name, tuple(dict.fromkeys((*stand_ins.values(), *inputs))), outputs), stand_ins


def expanded(operator: Operator, operands: Operands) -> tuple[Node, ...]:
    """The derivatives of one call, each given by its operands, in operators that compute them."""
    first = next_serial()
    found = _FORMS[operator](operands)
    names = {
        one: f"d_{every[-1].name}"
        for one, every in zip(found, operands)
        if every[-1].name and one.operands and not one.name and one.serial > first
    }
    return relabelled(found, Labels(names))


def _jacobians(pairs: Operands) -> list[Node]:
    results, variables = (list(dict.fromkeys(pair[slot] for pair in pairs)) for slot in (0, 1))
    rows = derivatives(results, variables)
    return [rows[results.index(result)][variables.index(variable)] for result, variable in pairs]


def _gradients(operands: Operands) -> list[Node]:
    """All of the same results, with the same cotangents."""
    count = len(operands[0]) // 2
    variables = list(dict.fromkeys(every[-1] for every in operands))
    found = differentiate(variables, summed(operands[0][:count], operands[0][count:-1]))
    return [filled(found[variables.index(one)], (), one.spec) for *_, one in operands]


def _tangents(operands: Operands) -> list[Node]:
    """All by the same variables, along the same tangents."""
    count = len(operands[0]) // 2
    outputs = list(dict.fromkeys(every[-1] for every in operands))
    found = push_forward(outputs, operands[0][:count], operands[0][count:-1])
    return [filled(found[outputs.index(one)], (), one.spec) for *_, one in operands]


_FORMS: dict[Operator, Callable[[Operands], list[Node]]] = {
    jacobian: _jacobians,
    gradient: _gradients,
    tangent: _tangents,
}
