"""Passes over loops of the graph: on their bodies, and on what they hold.

A loop is one node to all other passes. These look inside: a pass applied to every body, loops that run the
same body made one, and what nobody reads taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pullback.tracer.graph import (
    Graph,
    Labels,
    Node,
    make_input,
    make_node,
    new_node,
    rebuild,
    relabel,
    substitute,
    toposort,
    with_operands,
)  # fmt: skip
from pullback.tracer.loop import LoopNode, change_loops, has_loops, is_loop
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.control import WHILE, Body, loop_result

from ..nests.lower import merges_dimensions
from ..passes import run_passes
from ..rewriting.simplify import simplify_differentiable


def in_bodies(graph: Graph, change: Callable[[Graph], Graph]) -> Graph:
    """The graph with a pass applied to the body of each loop; bodies keep their inputs."""
    return change_loops(graph, lambda loop: loop.with_body(change(loop.body)))


def tidy_loops(graph: Graph) -> Graph:
    """Loops with simple bodies, from which is taken out what no step changes, and no step has to reshape.

    It comes before differentiation: what is outside has one derivative, not one in each step.
    """
    results: dict[Node, LoopNode] = {}

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if node.operator is loop_result:
            return results[node.operands[0]].result(node.attributes["index"], node.name)
        if is_loop(node):
            simple = _with_rows_in_shape(_simple(LoopNode(with_operands(node, operands))))
            results[node] = _without_invariants(simple)
            return results[node].node
        return with_operands(node, operands)

    return prune_loops(rebuild(graph, change)) if has_loops(graph) else graph


def _simple(loop: LoopNode) -> LoopNode:
    loop = _with_numbers(loop)
    return loop.with_body(run_passes(loop.body, tidy_loops, simplify_differentiable))


def _with_numbers(loop: LoopNode) -> LoopNode:
    """The loop with the constants of its body that are numbers written into the body."""
    carries, stacked, constants = loop.split(loop.body.inputs)
    inits, rows, values = loop.split(loop.node.operands)
    numbers = {inside: value for inside, value in zip(constants, values) if value.is_constant}
    if not numbers:
        return loop
    others = [(inside, value) for inside, value in zip(constants, values) if inside not in numbers]
    inputs = (*carries, *stacked, *(inside for inside, _ in others))
    outputs = made_again(loop.body, {**dict(zip(inputs, inputs)), **numbers})
    body = Graph(loop.body.name, inputs, outputs, loop.body.origin)
    return loop.again(body, inits, rows, [value for _, value in others])


def _with_rows_in_shape(loop: LoopNode) -> LoopNode:
    """The loop with rows in the shape in which steps read them: what is stacked is reshaped as a whole."""
    carries, rows, constants = loop.split(loop.body.inputs)
    read = [node for node in loop.body.nodes if node.operator is m.reshape and node.operands[0] in rows]
    reshaped = [node for node in read if not merges_dimensions(node)]
    if loop.is_dynamic or not reshaped:
        return loop
    inits, stacked, values = loop.split(loop.node.operands)
    stand_ins = {node: make_input(node.spec, node.name or node.operands[0].name) for node in reshaped}
    outputs = made_again(loop.body, dict(zip(loop.body.inputs, loop.body.inputs)) | stand_ins)
    inputs = (*carries, *rows, *stand_ins.values(), *constants)
    more = [
        m.reshape(stacked[rows.index(node.operands[0])], shape=(loop.length, *node.shape))
        for node in reshaped
    ]
    body = Graph(loop.body.name, inputs, outputs, loop.body.origin)
    return loop.again(body, inits, [*stacked, *more], values)


def _without_invariants(loop: LoopNode) -> LoopNode:
    """The loop with what depends on constants alone computed before it, unless it may have no step at all."""
    if loop.is_dynamic or not loop.length:
        return loop
    carries, stacked, constants = loop.split(loop.body.inputs)
    invariant: set[Node] = set(constants)
    needed: dict[Node, None] = {}
    for node in loop.body.nodes:
        unchanging = [operand in invariant or operand.is_constant for operand in node.operands]
        if node.operands and all(unchanging) and node.operator.family != "control":
            invariant.add(node)
        else:
            needed.update(dict.fromkeys(one for one in node.operands if one in invariant))
    needed.update(dict.fromkeys(one for one in loop.body.outputs if one in invariant))
    moved = [node for node in needed if node.operands]
    if not moved:
        return loop
    inits, rows, values = loop.split(loop.node.operands)
    outside = substitute(moved, dict(zip(constants, values)))
    stand_ins = {node: make_input(node.spec, node.name, node.origin) for node in moved}
    body = Graph(
        loop.body.name,
        (*carries, *stacked, *constants, *stand_ins.values()),
        substitute(loop.body.outputs, stand_ins),
        loop.body.origin,
    )
    return loop.again(body, inits, rows, [*values, *outside])


def copy_what_is_viewed(body: Graph) -> Graph:
    """A body's inputs copied where they are read in another shape: they are rows, which have no array."""

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if node.operator is m.reshape and operands[0].is_input and merges_dimensions(node):
            operands = (e.identity(operands[0]),)
        return with_operands(node, operands)

    return rebuild(body, change)


def share_loops(graph: Graph) -> Graph:
    """A loop whose body another loop extends, over the same operands, gives way to that one."""
    extended: dict[tuple[Body, tuple[Node, ...]], Node] = {}
    for node in graph.nodes:
        if is_loop(node) and (body := node.attributes["body"].extends) is not None:
            extended[body, _given_to(node)] = node
    made: dict[Node, Node] = {}

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if is_loop(node):
            last = node
            while (found := extended.get((last.attributes["body"], _given_to(last)))) is not None:
                last = found
            if last not in made:
                counts = LoopNode(node).goes_on and not LoopNode(last).goes_on
                made[last] = _counting(last, operands) if counts else with_operands(last, operands)
            return made[last]
        if node.operator is loop_result and operands[0] is not node.operands[0]:
            return LoopNode(operands[0]).result(node.attributes["index"], node.name)
        return with_operands(node, operands)

    return rebuild(graph, change) if extended else graph


def _given_to(node: Node) -> tuple[Node, ...]:
    """The operands of a loop; one that runs as often as another has counted is given what that is given."""
    trips = LoopNode(node).trips
    if trips is None or trips.operator is not loop_result or trips.attributes["index"] != 1:
        return node.operands
    return node.operands[:-1] if LoopNode(trips.operands[0]).goes_on else node.operands


def _counting(last: Node, operands: tuple[Node, ...]) -> Node:
    """A loop that runs as often as another has counted, as one that counts by itself."""
    attributes = {**last.attributes, "trips": WHILE}
    return make_node(last.operator, operands, attributes, origin=last.origin, name="")


def name_stacks(graph: Graph) -> Graph:
    """Values of every step without a name, stacked, are called by what they are: products."""
    graph = in_bodies(graph, name_stacks)
    found: dict[tuple[Node, int], Node] = {}
    for node in graph.nodes:
        if node.operator is loop_result:
            index = node.attributes["index"]
            if index >= LoopNode(node.operands[0]).carries:
                found.setdefault((node.operands[0], index), node)
    names = {
        stack: _name_of_stack(LoopNode(loop).body.outputs[index])
        for (loop, index), stack in found.items()
        if not stack.name
    }
    return relabel(graph, Labels(names))


def _name_of_stack(output: Node) -> str:
    return output.name or f"{output.operator.noun}s"


def separate_bodies(graph: Graph, seen: set[Node] | None = None) -> Graph:
    """Loops that have no node of their bodies in common: a value of a body belongs to one loop."""
    seen = set() if seen is None else seen

    def own(body: Graph) -> Graph:
        if not seen.isdisjoint(body.inputs) or not seen.isdisjoint(one for one in body.nodes if one.operands):
            body = _copied(body)
        seen.update(body.inputs, (one for one in body.nodes if one.operands))
        return separate_bodies(body, seen)

    return in_bodies(graph, own)


def _copied(body: Graph) -> Graph:
    inputs = tuple(make_input(node.spec, node.name, node.origin) for node in body.inputs)
    return Graph(body.name, inputs, made_again(body, dict(zip(body.inputs, inputs))), body.origin)


def made_again(body: Graph, new: dict[Node, Node]) -> tuple[Node, ...]:
    """The outputs on other inputs, every node made anew: so they keep their order, which code follows."""
    for node in body.nodes:
        if node not in new:
            operands = tuple(new[operand] for operand in node.operands)
            new[node] = new_node(node.operator, operands, node.attributes, node.spec, node.origin, node.name)
    return tuple(new[output] for output in body.outputs)


# --- what nobody reads --------------------------------------------------------------------------------------


def prune_loops(graph: Graph) -> Graph:
    """Loops without results, carries and operands that nothing needs; what never changes is a constant."""
    if not has_loops(graph):
        return graph
    read: dict[Node, set[int]] = {}
    for node in graph.nodes:
        if node.operator is loop_result:
            read.setdefault(node.operands[0], set()).add(node.attributes["index"])
    results: dict[Node, dict[int, Node]] = {}

    def change(node: Node, operands: tuple[Node, ...]) -> Node:
        if node.operator is loop_result:
            return results[node.operands[0]][node.attributes["index"]]
        if is_loop(node):
            results[node] = _pruned(LoopNode(with_operands(node, operands)), read.get(node, set()))
            return node
        return with_operands(node, operands)

    return rebuild(graph, change)


def _pruned(loop: LoopNode, read: Iterable[int]) -> dict[int, Node]:
    """The results of `read`, of the loop without all that they do not need."""
    loop = _with_distinct_inputs(loop)
    inputs, outputs = loop.body.inputs, loop.body.outputs
    unchanging = {index for index in range(loop.carries) if outputs[index] is inputs[index]}
    of_steps = {0, 1} if loop.goes_on else set()
    unchanging -= of_steps
    kept = of_steps.union(index for index in read if index not in unchanging)
    while True:
        nodes = set(toposort(outputs[index] for index in kept))
        more = kept | {index for index in range(loop.carries) if inputs[index] in nodes} - unchanging
        if more == kept:
            break
        kept = more
    order = [*range(loop.carries, len(inputs)), *sorted(unchanging)]
    carries = [index for index in range(loop.carries) if index in kept]
    others = [index for index in order if inputs[index] in nodes]
    stacked = [index for index in others if loop.carries <= index < loop.constants_from]
    constants = [index for index in others if index not in stacked]
    places: dict[Node, int] = {}
    for index in range(loop.carries, len(outputs)):
        if index in kept:
            places.setdefault(outputs[index], len(carries) + len(places))
    operands = loop.node.operands
    new = loop.again(
        prune_loops(
            Graph(
                loop.body.name,
                tuple(inputs[index] for index in (*carries, *stacked, *constants)),
                (*(outputs[index] for index in carries), *places),
                loop.body.origin,
            )
        ),
        [operands[index] for index in carries],
        [operands[index] for index in stacked],
        [operands[index] for index in constants],
    )
    made = new.results
    found = {index: operands[index] for index in unchanging}
    found |= {index: made[place] for place, index in enumerate(carries)}
    found |= {index: made[places[outputs[index]]] for index in kept if index >= loop.carries}
    return found


def _with_distinct_inputs(loop: LoopNode) -> LoopNode:
    """The loop with one input of the body for each stacked or constant operand."""
    first: dict[tuple[bool, Node], Node] = {}
    same: dict[Node, Node] = {}
    for index in range(loop.carries, len(loop.body.inputs)):
        node = loop.body.inputs[index]
        known = first.setdefault((index < loop.constants_from, loop.node.operands[index]), node)
        if known is not node:
            same[node] = known
    if not same:
        return loop
    return loop.with_body(loop.body.with_outputs(substitute(loop.body.outputs, same)))
