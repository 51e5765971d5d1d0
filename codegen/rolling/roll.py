"""Rolling: the periodic stretches of a traced graph, which Python's loops leave, become loops again.

`periods.py` finds stretches in which the same operators repeat, `steps.py` checks them operand by operand,
`end_steps.py` makes their first and last steps whole, `rolled.py` makes the new graph. Inner loops go first:
rolled, they are single operations of outer ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial

from pullback.tracer.graph import Graph, Node
from pullback.tracer.loop import has_loops
from pullback.tracer.ops.control import loop_result
from pullback.tracer.origin import unlocated
from pullback.tracer.verify import checked

from ...tracer.records import record
from ..passes import run_passes
from .bodies import share_loops, tidy_loops
from .derived_carries import compute_when_read
from .end_steps import with_first_steps, with_last_steps
from .periods import CannotRoll, Stretch, find_shorter, find_stretches, weight
from .rolled import CannotRollLoop, RolledGraph
from .steps import (
    FEWEST_IF_KNOWN,
    FEWEST_LONG_STEPS,
    FEWEST_NODES_OF_LONG,
    FEWEST_NODES_SAVED,
    FEWEST_STEPS,
    StepsOfLoop,
    analysed,
    even_parts,
    split_evenly,
)
from .written_rows import stack_what_is_written

MOST_ROUNDS = 20
"""Of the search for stretches, each in the graph that the last one has made: loops in loops take as many."""


@record(frozen=True)
class Rolled:
    """A graph with its loops rolled, and what there is to say about it."""

    graph: Graph
    notes: tuple[str, ...] = ()


@unlocated()
def roll(graph: Graph) -> Rolled:
    """Roll all loops, inner ones first. Time is linear in the number of nodes."""
    notes: Counter[str] = Counter()
    refused: dict[str, None] = {}
    given = graph
    for _ in range(MOST_ROUNDS):
        nodes = graph.nodes
        if len(nodes) < FEWEST_NODES_SAVED and sum(map(weight, nodes)) < FEWEST_NODES_SAVED:
            break
        done = _roll_once(graph, notes, refused) or _roll_once(graph, notes, refused, ragged=True)
        if done is None:
            break
        graph = done
    if graph is not given or has_loops(graph):
        graph = run_passes(graph, share_loops, tidy_loops, compute_when_read, stack_what_is_written)
    rolled = (note if times == 1 else f"{note}, {times} times" for note, times in notes.items())
    return Rolled(graph, (*rolled, *refused))


def _roll_once(
    graph: Graph, notes: Counter[str], refused: dict[str, None], ragged: bool = False
) -> Graph | None:
    sequence = _in_order(graph)
    place = {node: index for index, node in enumerate(sequence)}
    chosen: list[StepsOfLoop] = []
    last_use = cache(partial(_last_uses, graph, sequence))
    for stretch in find_stretches(sequence, _fewest_steps, FEWEST_NODES_SAVED, ragged):
        if any(stretch.start < one.stop and one.start < stretch.stop for one in chosen):
            continue
        fewest = _fewest_steps(stretch.period)
        parts = [one for one in even_parts(stretch, sequence, place) if one.steps >= fewest]
        if not parts:
            uneven = "it reads or writes at places that do not advance by a constant"
            refused[_refusal(stretch, sequence, uneven)] = None
        for part in parts:
            try:
                one = analysed(part, sequence, place)
                _require_kept_inside(one, sequence, last_use)
                chosen.append(one)
            except CannotRoll as reason:
                refused[_refusal(part, sequence, reason)] = None
    shorter = find_shorter(sequence, [one.stretch for one in chosen], FEWEST_IF_KNOWN) if chosen else ()
    for part in (part for one in shorter for part in split_evenly(one, sequence)):
        if part.steps < FEWEST_IF_KNOWN:
            continue
        with suppress(CannotRoll):
            one = analysed(part, sequence, place, FEWEST_IF_KNOWN)
            _require_kept_inside(one, sequence, last_use)
            chosen.append(one)
    if not chosen:
        return None
    count = len(sequence)
    loops: list[StepsOfLoop] = []
    in_order = sorted(chosen, key=lambda one: one.start)
    for one, end in zip(in_order, [*(later.start for later in in_order[1:]), count]):
        shift = len(sequence) - count
        stretch = replace(one.stretch, start=one.start + shift)
        loop = with_last_steps(replace(one, stretch=stretch), sequence, end + shift)
        loop = with_first_steps(loop, sequence, loops[-1].stop if loops else 0)
        loops.append(loop)
    place = {node: index for index, node in enumerate(sequence)}
    while loops:
        try:
            rolled = checked(RolledGraph(graph, sequence, place, loops).graph, "roll")
        except CannotRollLoop as reason:
            loops.remove(reason.loop)
            refused[_refusal(reason.loop.stretch, sequence, reason)] = None
        else:
            notes.update(f"rolled: {_described(one.stretch, sequence)}" for one in loops)
            return rolled
    return None


def _in_order(graph: Graph) -> list[Node]:
    """What the graph computes; the results of a loop stand behind it, as a step has both or neither."""
    results: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        if node.operator is loop_result:
            results.setdefault(node.operands[0], []).append(node)
    others = (
        node
        for node in graph.nodes
        if not node.is_input and not node.is_constant and node.operator is not loop_result
    )
    return [one for node in others for one in (node, *results.get(node, ()))]


def _fewest_steps(period: int) -> int:
    """How many steps of so many operations a loop has at least; operations may be loops of more."""
    return FEWEST_LONG_STEPS if period >= FEWEST_NODES_OF_LONG else FEWEST_STEPS


def _last_uses(graph: Graph, sequence: Sequence[Node]) -> dict[Node, int]:
    """Where in the sequence each value is read last."""
    found = {operand: index for index, node in enumerate(sequence) for operand in node.operands}
    return found | dict.fromkeys(graph.outputs, len(sequence))


def _require_kept_inside(
    loop: StepsOfLoop, sequence: Sequence[Node], last_use: Callable[[], dict[Node, int]]
) -> None:
    """Raise CannotRoll for values whose shapes differ between steps, and that are read after the loop."""
    for offset, extents in loop.ragged.items():
        column = sequence[loop.start + offset : loop.stop : loop.stretch.period]
        keeps_shape = column[0].spec == column[-1].spec
        if extents and not keeps_shape and any(last_use().get(node, -1) >= loop.stop for node in column):
            raise CannotRoll(f"{column[0].operator.name} changes its shape, and is read after the loop")


def _refusal(stretch: Stretch, sequence: Sequence[Node], reason: object) -> str:
    return f"not rolled: {_described(stretch, sequence)}, because {reason}"


def _described(stretch: Stretch, sequence: Sequence[Node]) -> str:
    inside = sequence[stretch.start : stretch.start + stretch.period]
    place = next((node.origin.place for node in inside if node.origin.line), "")
    return f"{stretch.steps} steps of {stretch.period} operations from {place}"
