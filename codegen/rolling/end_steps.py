"""The steps at the ends of a loop that are not whole in the graph, made whole.

The last one lacks what it would compute for a next one. The first one lacks what Python computed by itself,
as long as its variables held plain numbers, and what then needed no operation:

    angle = 0.5
    for _ in range(n):
        angle = angle + step * np.sin(angle)

begins with `0.5 + step * 0.479...`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from types import MappingProxyType

from pullback.tracer.dims import plain
from pullback.tracer.graph import (
    Graph,
    Node,
    constant,
    make_input,
    new_node,
    next_serial,
    toposort,
    with_operands,
)
from pullback.tracer.operator import NEVER_RAISING

from ..drawn_once import draws_itself
from ..rewriting.simplify import Simplifier
from .rows import part_in_step, row_in_step
from .steps import MOST_PEELED, Carried, Fixed, Local, Operand, Row, StepsOfLoop, same_constant

MOST_HIDDEN = 3
"""Variables of whose first number no operation has been left; 0 and 1, which leave none, are tried."""


def with_last_steps(loop: StepsOfLoop, sequence: list[Node], end: int) -> StepsOfLoop:
    """The loop, with steps after its last one made whole, if they lack only what nobody reads.

    Where steps are cut in mid-turn, two are not whole: the end of the last turn but one, and the last.
    Where one lacks most, as where a total is added to before a state is updated, what is there has to come
    from the loop's lines, and what is not may raise nothing. What lies from `end` on belongs to another loop.
    """
    for _ in range(MOST_PEELED):
        size = len(sequence)
        longer = _with_last_step(loop, sequence, end)
        if longer is loop:
            break
        loop, end = longer, end + len(sequence) - size
    return loop


def _with_last_step(loop: StepsOfLoop, sequence: list[Node], end: int) -> StepsOfLoop:
    longer = None if loop.ragged else _of_one_step_more(loop, loop.stretch.steps)
    if longer is None:
        return loop
    period, index = loop.stretch.period, loop.stop
    made: list[Node] = []
    found: list[tuple[Node, Node]] = []
    is_silent = True

    def value(operand: Operand) -> Node | None:
        if isinstance(operand, Carried):
            return sequence[loop.stop - operand.lag * period + operand.offset]
        if isinstance(operand, Row):
            return operand.nodes[-1]
        return operand.node if isinstance(operand, Fixed) else None

    for offset in range(period):
        column = sequence[loop.start + offset : loop.stop : period]
        expected = _continued(longer, offset, made, column, len(column), value)
        if expected is None:
            return loop
        node = sequence[index] if index < end else None
        if node is not None and _is_alike(node, expected):
            made.append(node)
            found.append((node, column[-1]))
            index += 1
        elif draws_itself(expected):
            return loop
        else:
            made.append(expected)
            is_silent &= expected.operator.family in NEVER_RAISING
    from_its_lines = all(node.origin.place == before.origin.place for node, before in found)
    if 2 * len(found) <= period and not (found and from_its_lines and is_silent):
        return loop
    sequence[loop.stop : index] = made
    return longer


def _of_one_step_more(
    loop: StepsOfLoop, step: int, starts: Mapping[Carried, Node] = MappingProxyType({})
) -> StepsOfLoop | None:
    """The loop of a step more, in front or behind; None if it is not known what that would read.

    Args:
        step: -1, or how many steps there are.
        starts: what carries begin with in a step in front.
    """
    operands: list[list[Operand]] = []
    for row in loop.operands:
        operands.append([])
        for operand in row:
            if isinstance(operand, Carried) and starts:
                operand = replace(operand, inits=(starts[operand], *operand.inits[:-1]))
            elif isinstance(operand, Row):
                found = row_in_step(operand.nodes, step)
                if found is None:
                    return None
                operand = Row((found, *operand.nodes) if step < 0 else (*operand.nodes, found))
            operands[-1].append(operand)
    stretch = replace(loop.stretch, steps=loop.stretch.steps + 1)
    return replace(loop, operands=operands, stretch=stretch, replaced=dict(loop.replaced))


def _continued(
    loop: StepsOfLoop,
    offset: int,
    made: Sequence[Node],
    column: Sequence[Node],
    step: int,
    value: Callable[[Operand], Node | None],
) -> Node | None:
    """The operation at an offset of the step in front of those of a column, or behind them.

    None if that cannot be known. `made` are those before it, `value` says what operands from elsewhere are.
    """
    nearest = column[-1 if step > 0 else 0]
    operands = []
    for operand in loop.operands[offset]:
        found = made[operand.offset] if isinstance(operand, Local) else value(operand)
        if found is None:
            return None
        operands.append(found)
    moves = offset in loop.slices | loop.windows
    attributes = part_in_step(column, step) if moves else nearest.attributes
    if attributes is None:
        return None
    return new_node(nearest.operator, tuple(operands), attributes, nearest.spec, nearest.origin, nearest.name)


def _is_alike(node: Node, expected: Node) -> bool:
    same = node.operator is expected.operator and node.spec == expected.spec
    if not same or len(node.operands) != len(expected.operands):
        return False
    for mine, theirs in zip(node.operands, expected.operands):
        constants = mine.is_constant and theirs.is_constant and same_constant(mine, theirs)
        if mine is not theirs and not constants:
            return False
    return all(node.attributes[name] == value for name, value in expected.attributes.items())


# --- the first step -----------------------------------------------------------------------------------------


def with_first_steps(loop: StepsOfLoop, sequence: list[Node], begin: int) -> StepsOfLoop:
    """The loop with the steps before its first one made whole, if numbers in place of carries give the same.

    What lies in front of `begin` belongs to another loop.
    """
    period = loop.stretch.period
    for count in range(1, MOST_PEELED + 1):
        before = sequence[max(begin, loop.start - count * period) : loop.start]
        longer = _with_first_step(loop, sequence, [node for node in before if node not in loop.replaced])
        if longer is None:
            break
        loop = longer
    return loop


def _with_first_step(loop: StepsOfLoop, sequence: list[Node], before: Sequence[Node]) -> StepsOfLoop | None:
    step = sequence[loop.start : loop.start + loop.stretch.period]
    carried = list(dict.fromkeys(one for row in loop.operands for one in row if isinstance(one, Carried)))
    if loop.ragged or any(map(draws_itself, step)) or not _may_be_a_step(before, step, carried):
        return None
    shown = _starts_shown(loop, step, carried)
    hidden = [one for one in carried if one not in shown]
    for numbers in product((0, 1), repeat=len(hidden)) if len(hidden) <= MOST_HIDDEN else ():
        guessed = {one: constant(number, one.inits[0].spec) for one, number in zip(hidden, numbers)}
        since = next_serial()
        longer = _of_one_step_more(loop, -1, shown | guessed)
        made = [] if longer is None else _first_of(longer, sequence)
        if longer is None or not made:
            return None
        simplest = _simplest([*before, *toposort(made, since)], [one.inits[-1] for one in carried])
        if all(simplest[one.inits[-1]] is simplest[made[one.offset]] for one in carried):
            varying = (node for offset, node in enumerate(made) if offset not in loop.slices | loop.invariant)
            same = {simplest[node]: node for node in varying if not simplest[node].is_constant}
            longer.replaced |= {node: same[simplest[node]] for node in before if simplest[node] in same}
            sequence[loop.start : loop.start] = made
            return longer
    return None


def _may_be_a_step(before: Sequence[Node], step: Sequence[Node], carried: Sequence[Carried]) -> bool:
    """Whether operations in front of a step may be one that is not whole: from them a carry comes."""
    alike = Counter(node.operator for node in before) & Counter(node.operator for node in step)
    return 2 * alike.total() > len(step) and any(one.inits[-1] in before for one in carried)


def _starts_shown(loop: StepsOfLoop, step: Sequence[Node], carried: Sequence[Carried]) -> dict[Carried, Node]:
    """What stands in the place of carries, where operations in front of a step are as in it."""
    shown: dict[Carried, Node] = {}
    pending = [(one.offset, one.inits[-1]) for one in carried]
    seen = set(pending)
    while pending:
        offset, node = pending.pop()
        if node.operator is not step[offset].operator or node.spec != step[offset].spec:
            continue
        for operand, known in zip(loop.operands[offset], node.operands):
            if isinstance(operand, Carried):
                spec = operand.inits[0].spec
                start = constant(known.scalar_value, spec) if known.scalar_value is not None else known
                if start.spec == spec:
                    shown.setdefault(operand, start)
            elif isinstance(operand, Local) and (operand.offset, known) not in seen:
                seen.add((operand.offset, known))
                pending.append((operand.offset, known))
    return shown


def _first_of(loop: StepsOfLoop, sequence: Sequence[Node]) -> list[Node]:
    """The operations of a first step, which the sequence does not have yet; none if one cannot be known."""
    period = loop.stretch.period

    def value(operand: Operand) -> Node | None:
        if isinstance(operand, Carried):
            return operand.inits[0]
        if isinstance(operand, Row):
            return operand.nodes[0]
        return operand.node if isinstance(operand, Fixed) else None

    made: list[Node] = []
    for offset in range(period):
        column = sequence[loop.start + offset : loop.stop - period : period]
        node = _continued(loop, offset, made, column, -1, value)
        if node is None:
            return []
        made.append(node)
    return made


def _simplest(nodes: Sequence[Node], others: Sequence[Node]) -> dict[Node, Node]:
    """What simplification makes of nodes, all else being given: of those that compute the same, one.

    Numbers are the same if they are equal in this trace: what they come from is not asked for.
    """
    new: dict[Node, Node] = {}
    given: dict[Node, Node] = {}

    def within(node: Node) -> Node:
        if node in new:
            return new[node]
        if node.is_constant:
            return constant(plain(node.attributes["value"]), node.spec)
        if node not in given:
            given[node] = make_input(node.spec, "")
        return given[node]

    for node in nodes:
        new[node] = (
            within(node) if node.is_constant else with_operands(node, tuple(map(within, node.operands)))
        )
    every = [*nodes, *others]
    outputs = tuple(map(within, every))
    graph = Graph("step", tuple(given.values()), outputs)
    simplify = Simplifier(is_last=False)
    while (simpler := simplify(graph)) is not graph:
        graph = simpler
    return dict(zip(every, graph.outputs))
