"""The reverse of a loop: a loop over the same steps, and rows, the last one first.

Its carries are the cotangents of the carries, and totals of the cotangents of constants; what it reads of
each step is either there anyway (rows, constants) or a row of the tape, a further stacked result of the
forward loop. Which values are taped and which are computed again is decided by `partition`, on one step.

A loop that goes on while something is true is reversed as one of so many steps as it has counted;
`share_loops` lets it write the tape. A choice is a loop of one step or none (`tracer/ops/control.py`).

A. Griewank and A. Walther, Evaluating Derivatives (SIAM 2008), chapter 4.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from functools import reduce

from pullback.tracer.graph import Graph, Node, constant, make_input, substitute, toposort
from pullback.tracer.loop import LoopNode, make_loop
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops.contraction import contract, split_subscripts
from pullback.tracer.ops.indexing import scatter_add
from pullback.tracer.ops.windows import PLACE
from pullback.tracer.spec import BOOL

from ...tracer.records import record
from ..nests.extents import find_sizes
from ..passes import run_passes
from ..rewriting.simplify import expand_what_has_no_own_rule, simplify_differentiable
from ..rolling.bodies import share_loops
from ..rolling.ragged import Window, read_window
from .differentiate import active_nodes, differentiate
from .partition import needed_by_backward, partition


def active_results(loop: LoopNode, active: set[Node]) -> set[int]:
    """The results through which a derivative with respect to active operands passes."""
    positions, nodes = _active_inputs(loop, active)
    return _active_outputs(loop, positions, nodes)


def _active_outputs(loop: LoopNode, positions: set[int], nodes: set[Node]) -> set[int]:
    """The results through which a derivative passes; if there is no step at all, a carry is what it was."""
    found = {index for index, node in enumerate(loop.body.outputs) if node in nodes}
    return found.union(index for index in positions if loop.is_dynamic and index < loop.carries)


def _active_inputs(loop: LoopNode, active: set[Node]) -> tuple[set[int], set[Node]]:
    """The positions of the body's inputs that are active in some step, and the active nodes of the body."""
    positions = {position for position, one in enumerate(loop.node.operands) if one in active}
    while True:
        nodes = active_nodes(loop.body.nodes, [loop.body.inputs[position] for position in positions])
        carried = {index for index in range(loop.carries) if loop.body.outputs[index] in nodes}
        if carried <= positions:
            return positions, nodes
        positions |= carried


@record(frozen=True)
class _Step:
    """One step of a body and its derivative, in one graph."""

    outputs: tuple[Node, ...]
    """Of the body, simplified."""
    cotangents: dict[int, Node]
    """The inputs that stand for the cotangents of the body's results."""
    gradients: dict[int, Node]
    """The cotangents of the body's inputs, by position."""


def pull_back_loop(loop: LoopNode, cotangents: Mapping[int, Node], active: set[Node]) -> dict[int, Node]:
    """The cotangents of a loop's operands, by position, given those of its results."""
    loop = loop.counted()
    step = _differentiated_step(loop, cotangents, active)
    return _Reversed(loop, step, cotangents).gradients()


def _differentiated_step(loop: LoopNode, given: Mapping[int, Node], active: set[Node]) -> _Step:
    """The derivative of one step. A carry gets a cotangent if its last value or any later step has one."""
    body = loop.body
    positions, nodes = _active_inputs(loop, active)
    wanted = sorted(positions)
    with_cotangent = _active_outputs(loop, positions, nodes).intersection(given)
    while True:
        inputs = {index: _cotangent_input(loop, index) for index in sorted(with_cotangent)}
        total: dict[Node, Node] = {}
        for index, cotangent in inputs.items():
            output = body.outputs[index]
            total[output] = total[output] + cotangent if output in total else cotangent
        found = differentiate([body.inputs[position] for position in wanted], total)
        gradients = {position: one for position, one in zip(wanted, found) if one is not None}
        carried = {position for position in gradients if position < loop.carries}
        if carried <= with_cotangent:
            break
        with_cotangent |= carried
    for index in with_cotangent:
        if index < loop.carries and index not in gradients:
            gradients[index] = constant(0, body.inputs[index].spec)
    joint = Graph(
        body.name, (*body.inputs, *inputs.values()), (*body.outputs, *gradients.values()), body.origin
    )
    joint = run_passes(
        joint, share_loops, simplify_differentiable, expand_what_has_no_own_rule, simplify_differentiable
    )
    count = len(body.outputs)
    return _Step(joint.outputs[:count], inputs, dict(zip(gradients, joint.outputs[count:])))


def _cotangent_input(loop: LoopNode, index: int) -> Node:
    output = loop.body.outputs[index]
    return make_input(output.spec, f"d_{output.name or 'value'}")


class _Reversed:
    """The loop that runs the derivative of a step, and what it hands out."""

    def __init__(self, loop: LoopNode, step: _Step, cotangents: Mapping[int, Node]) -> None:
        self.loop = loop
        self.step = step
        self.cotangents = cotangents
        rows = [*loop.body.inputs[loop.carries :], *step.outputs[loop.carries :]]
        needed = needed_by_backward(list(step.gradients.values()), set(step.cotangents.values()))
        sizes = find_sizes(loop.body.with_outputs([*step.outputs, *needed]))
        ends = [size for node in toposort(needed) for size in sizes.get(node, {}).values()]
        needed = list(dict.fromkeys([*needed, *ends]))
        self.saved = _inputs_of(needed, loop) if loop.recompute else self._kept(needed, rows)
        self.inputs = {node: make_input(node.spec, node.name, node.origin) for node in self.saved}
        """For each saved value, the input of the reverse loop's body."""
        self.stand_ins = {node: self._read(node, sizes.get(node, {})) for node in self.saved}
        taped = [node for node in self.saved if node not in rows]
        body = Graph(loop.body.name, loop.body.inputs, (*step.outputs, *taped), loop.body.origin)
        self.forward = loop.with_body(body, extends=loop.node.attributes["body"])

    def _kept(self, needed: Sequence[Node], rows: Sequence[Node]) -> tuple[Node, ...]:
        """What is saved of a step. With what a carry was, what it becomes is there too: the row read last."""
        loop, saved = self.loop, partition(needed, rows).saved
        computed_again = {*toposort(needed)}.difference(saved)
        carries = zip(loop.body.inputs[: loop.carries], self.step.outputs)
        read_last = [after for before, after in carries if before in saved and after in computed_again]
        return partition(needed, rows, read_last).saved if read_last else saved

    def _read(self, node: Node, sizes: Mapping[int, Node]) -> Node:
        """A saved value in the reverse loop's body. Of one that goes only so far, no more was stored."""
        made = self.inputs[node]
        if not sizes or node in self.loop.body.inputs:
            return made
        ends = substitute(sizes.values(), self.inputs)
        rank = node.spec.ndim
        whole = Window(made, (constant(0, PLACE),) * rank, node.shape, (1,) * rank)
        return read_window(whole, dict(zip(sizes, ends))).node

    def source(self, node: Node) -> tuple[Node, bool]:
        """Where the loop has a saved value from, and whether that has a row for each step."""
        body = self.loop.body
        if node in body.inputs[self.loop.carries :]:
            position = body.inputs.index(node)
            return self.loop.node.operands[position], position < self.loop.constants_from
        index = self.forward.body.outputs.index(node, self.loop.carries)
        return self.forward.result(index), True

    def gradients(self) -> dict[int, Node]:
        loop, step = self.loop, self.step
        replaced = self._replaced()
        carried = [index for index in step.cotangents if index < loop.carries and index not in replaced]
        stacked = [index for index in step.cotangents if index >= loop.carries]
        rows = [position for position in step.gradients if loop.carries <= position < loop.constants_from]
        constants = [position for position in step.gradients if position >= loop.constants_from]
        terms = {position: self._terms(step.gradients[position]) for position in constants}
        totals = [position for position in constants if not terms[position]]
        later = {position: found for position, found in terms.items() if found}
        operands = (one for found in later.values() for term in found for one in term.operands)
        operand_rows = [one for one in dict.fromkeys(operands) if not self.is_row(one)]

        running = {p: make_input(loop.body.inputs[p].spec, f"d_{loop.body.inputs[p].name}") for p in totals}
        new = substitute(
            [
                *(step.gradients[index] for index in carried),
                *(self._total(running[position], step.gradients[position]) for position in totals),
                *(step.gradients[position] for position in rows),
                *operand_rows,
            ],
            self.stand_ins,
        )
        row_sources: dict[Node, Node] = {}
        constant_sources: dict[Node, Node] = {}
        for node, stand_in in self.inputs.items():
            source, has_rows = self.source(node)
            (row_sources if has_rows else constant_sources)[stand_in] = source
        body = Graph(
            f"{loop.body.name}_backward",
            (
                *(step.cotangents[index] for index in carried),
                *running.values(),
                *(step.cotangents[index] for index in stacked),
                *row_sources,
                *constant_sources,
                *(step.cotangents[index] for index in replaced),
            ),
            new,
            loop.body.origin,
        )
        inits = [self.cotangents.get(index, constant(0, loop.body.outputs[index].spec)) for index in carried]
        inits += [constant(0, one.spec) for one in running.values()]
        reverse = make_loop(
            body,
            inits,
            [*(self.cotangents[index] for index in stacked), *row_sources.values()],
            [*constant_sources.values(), *(self.cotangents[index] for index in replaced)],
            loop.length,
            loop.node.origin,
            backwards=not loop.backwards,
            trips=loop.trips,
            recompute=loop.recompute,
        )
        results = dict(zip((*carried, *totals, *rows, *operand_rows), reverse.results))
        found = {position: results[position] for position in (*carried, *totals, *rows)}
        found |= {index: self._unless_taken(self.cotangents[index]) for index in replaced}
        stacks = {one: results[one] for one in operand_rows}
        for position, terms_of_one in later.items():
            summed = [
                _over_all_steps(
                    term,
                    [stacks[one] if one in stacks else self.source(one)[0] for one in term.operands],
                )
                for term in terms_of_one
            ]
            found[position] = reduce(operator.add, summed)
        return found

    def _replaced(self) -> list[int]:
        """The carries that a choice replaces: its reverse takes their cotangents, and carries none."""
        if not self.loop.is_choice:
            return []
        read, inputs = set(toposort(self.step.outputs)), self.loop.body.inputs
        carried = [index for index in self.step.cotangents if index < self.loop.carries]
        return [index for index in carried if index in self.cotangents and inputs[index] not in read]

    def _total(self, total: Node, more: Node) -> Node:
        """What is added up over the steps; of a choice it is what the one step gives."""
        return more if self.loop.is_choice else total + more

    def _unless_taken(self, cotangent: Node) -> Node:
        """The cotangent of what a choice leaves alone if it is not taken."""
        trips = self.loop.trips
        assert trips is not None
        taken = trips if trips.dtype == BOOL else e.not_equal(trips, 0)
        return e.where(taken, 0, cotangent)

    def _terms(self, gradient: Node) -> list[Node]:
        """What of the gradient of a constant is summed after the loop; nothing if it is added up inside.

        A tape whose length only data tells has room for more rows than there are: no product takes it whole.
        """
        if self.loop.recompute or self.loop.is_choice:
            return []
        found = _terms(gradient)
        return [] if self.loop.is_dynamic and any(one.operator is contract for one in found) else found

    def is_row(self, node: Node) -> bool:
        """Whether a value has a row for each step already."""
        loop = self.loop
        return node in loop.split(loop.body.inputs)[1] or (node in self.inputs and self.source(node)[1])


def _inputs_of(needed: Sequence[Node], loop: LoopNode) -> tuple[Node, ...]:
    """The inputs of a step from which all that is needed of it can be computed again."""
    nodes = set(toposort(needed))
    return tuple(node for node in loop.body.inputs if node in nodes)


def _terms(gradient: Node) -> list[Node]:
    """The products and the scattered rows that a gradient is a sum of, if each is larger than its operands.

    Then the operands are stacked, and multiplied or scattered once, after the loop.
    """
    found: list[Node] = []
    pending = [gradient]
    while pending:
        node = pending.pop()
        if node.operator is e.add and all(one.shape == gradient.shape for one in node.operands):
            pending.extend(reversed(node.operands))
            continue
        is_product = node.operator is contract and node.spec.ndim >= 2
        if not is_product and node.operator is not scatter_add:
            return []
        if sum(one.spec.nbytes for one in node.operands) >= node.spec.nbytes:
            return []
        found.append(node)
    return found


def _over_all_steps(term: Node, stacks: Sequence[Node]) -> Node:
    """The sum over all steps of a product, or of scattered rows, given the stacks of its operands."""
    if term.operator is scatter_add:
        return scatter_add(*stacks, **term.attributes)
    left, right, result = split_subscripts(term.attributes["subscripts"])
    step = next(letter for letter in "stuvwxyzabcdefghijklmnopqr" if letter not in left + right)
    return contract(*stacks, subscripts=f"{step}{left},{step}{right}->{result}")
