"""What the steps of a loop are made of: a stretch that repeats, checked operand by operand.

An operand of a step is a value of the same step, of a step before (a carry), of none (fixed), or a row of
something from outside that advances from step to step. A stretch can be rolled if each operand is one of
these in all steps; first and last steps that differ are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pullback.tracer.graph import Node
from pullback.tracer.loop import is_loop
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.control import loop_result

from .periods import Stretch
from .rows import advance_of, can_stack, is_copied, rows_of_constants

FEWEST_STEPS = 8
FEWEST_NODES_SAVED = 48
FEWEST_ELEMENTWISE = 400
"""The same for loops whose steps are elementwise: unrolled, an element passes all of them in a register."""
FEWEST_NODES_FOR_COPY = 16
"""In a step, for each array that the step takes and that must be copied into a stack first."""
MOST_PEELED = 3


class CannotRoll(Exception):
    """Why a stretch that repeats is no loop."""


@dataclass(frozen=True)
class Local:
    """The value of another operation of the same step."""

    offset: int


@dataclass(frozen=True)
class Carried:
    """The value of an operation `lag` steps ago; `inits` are the values for the first steps."""

    offset: int
    lag: int
    inits: tuple[Node, ...]


@dataclass(frozen=True)
class Fixed:
    """A value from outside that all steps share, or a constant."""

    node: Node


@dataclass(frozen=True)
class Row:
    """A row of something from outside: one for each step."""

    nodes: tuple[Node, ...]


Operand = Local | Carried | Fixed | Row


@dataclass
class StepsOfLoop:
    """A stretch that can be rolled."""

    stretch: Stretch
    operands: list[list[Operand]]
    """Of each operation of a step, its operands."""
    invariant: set[int]
    """The operations that compute the same in all steps."""
    slices: set[int]
    """The slices that advance from step to step: rows of what they slice."""
    completed: int = 0
    """Steps after the last one that were made whole."""
    added: int = 0
    """The operations that this took."""

    @property
    def start(self) -> int:
        return self.stretch.start

    @property
    def stop(self) -> int:
        return self.stretch.stop


def analysed(stretch: Stretch, sequence: Sequence[Node], place: dict[Node, int]) -> StepsOfLoop:
    """The loop that a stretch is, perhaps without its first and last steps. Raises CannotRoll."""
    stretch = _with_best_phase(stretch, sequence, place)
    for _ in range(MOST_PEELED + 1):
        try:
            return classified(stretch, sequence, place)
        except _Shorter as shorter:
            start = stretch.start + shorter.skip * stretch.period
            stretch = Stretch(start, stretch.period, shorter.steps)
            if stretch.steps < FEWEST_STEPS:
                raise CannotRoll(shorter.reason) from None
    raise CannotRoll("its first steps differ from each other")


class _Shorter(Exception):
    """Only a part of the steps are alike."""

    def __init__(self, skip: int, steps: int, reason: str) -> None:
        super().__init__(reason)
        self.skip, self.steps, self.reason = skip, steps, reason


def _with_best_phase(stretch: Stretch, sequence: Sequence[Node], place: dict[Node, int]) -> Stretch:
    """The stretch with the cut between steps where the fewest values are handed over."""
    period, middle = stretch.period, stretch.start + stretch.steps // 2 * stretch.period
    last_use: dict[int, int] = {}
    for index in range(middle, min(middle + 2 * period, stretch.stop)):
        for operand in sequence[index].operands:
            found = place.get(operand, -1)
            if index - 2 * period < found and found >= stretch.start:
                last_use[found] = max(last_use.get(found, 0), index)
    crossing = [0] * period
    for made, used in last_use.items():
        if middle - period <= made < middle + period:
            for cut in range(made + 1, min(used, made + period) + 1):
                if middle <= cut < middle + period:
                    whole = is_loop(sequence[made])  # not apart from its results, which are what is carried
                    crossing[cut - middle] += period if whole else 1
    phase = crossing.index(min(crossing))
    start = stretch.start + phase
    return Stretch(start, period, (stretch.stop - start) // period)


def classified(stretch: Stretch, sequence: Sequence[Node], place: dict[Node, int]) -> StepsOfLoop:
    start, period, steps = stretch.start, stretch.period, stretch.steps
    invariant: set[int] = set()
    slices: set[int] = set()
    operands: list[list[Operand]] = []
    for offset in range(period):
        column = sequence[start + offset : start + steps * period : period]
        found = [
            _operand([node.operands[slot] for node in column], offset, stretch, place)
            for slot in range(len(column[0].operands))
        ]
        if column[0].operator is loop_result and not isinstance(found[0], Local):
            raise CannotRoll("its steps read the results of one loop inside of another's step")
        fixed = all(
            isinstance(one, Fixed) or (isinstance(one, Local) and one.offset in invariant) for one in found
        )
        if column[0].operator in (m.slice_,) and _advances(column):
            if not fixed:
                raise CannotRoll(f"{_name(column[0])} slices, at a changing place, what the loop computes")
            if advance_of(column) is None:
                raise CannotRoll(f"{_name(column[0])} slices at places that do not advance by a constant")
            slices.add(offset)
        elif fixed:
            invariant.add(offset)
        operands.append(found)
    loop = StepsOfLoop(stretch, operands, invariant, slices)
    _require_gain(loop, sequence)
    return loop


def _advances(column: Sequence[Node]) -> bool:
    first = column[0].attributes["starts"]
    return any(node.attributes["starts"] != first for node in column)


def _name(node: Node) -> str:
    return f"{node.name or node.operator.name} ({node.origin.place})"


def _operand(nodes: Sequence[Node], offset: int, stretch: Stretch, place: dict[Node, int]) -> Operand:
    """What one operand is, given the nodes that it is in all steps."""
    first = nodes[0]
    if all(node is first for node in nodes) and place.get(first, -1) < stretch.start:
        return Fixed(first)
    if all(node.is_constant for node in nodes):
        same = all(same_constant(node, first) for node in nodes)
        if not same and rows_of_constants(nodes) is None:
            raise CannotRoll("a number in it does not advance by a constant")
        return Fixed(first) if same else Row(tuple(nodes))
    start, period = stretch.start, stretch.period
    places = [place.get(node, -1) for node in nodes]
    if all(found < start for found in places):
        if not can_stack(nodes):
            raise CannotRoll(f"each step takes another value from outside, as {_name(first)}")
        return Row(tuple(nodes))
    own = range(start + offset, start + offset + len(nodes) * period, period)
    distances = [mine - found if found >= 0 else None for mine, found in zip(own, places)]
    middle = len(nodes) // 2
    distance = distances[middle]
    if distance is None or places[middle] < start:
        raise CannotRoll("an operand comes from outside in some steps alone")
    alike = [one == distance for one in distances]
    first_alike = (
        middle - next((back for back in range(middle + 1) if not alike[middle - back]), middle + 1) + 1
    )
    behind = next((ahead for ahead in range(middle, len(nodes)) if not alike[ahead]), len(nodes))
    lag = max(0, -((offset - distance) // period))
    if behind < len(nodes) or first_alike > lag:
        inside = places[middle] == places[-1] == places[1]
        skip = 1 if inside else max(first_alike - lag, 0)
        raise _Shorter(skip, (len(nodes) if inside else behind) - skip, "its steps are not alike")
    if lag == 0:
        return Local(offset - distance)
    inits = tuple(nodes[:lag])
    if any(found >= start for found in places[:lag]) or any(one.spec != nodes[lag].spec for one in inits):
        raise _Shorter(1, len(nodes) - 1, "its first steps differ from each other")
    return Carried(offset - distance + lag * period, lag, inits)


def same_constant(one: Node, other: Node) -> bool:
    return one.attributes["value"] == other.attributes["value"] and one.spec == other.spec


def _require_gain(loop: StepsOfLoop, sequence: Sequence[Node]) -> None:
    """Raise CannotRoll for what is better left unrolled."""
    stretch = loop.stretch
    inside = [
        sequence[stretch.start + offset] for offset in range(stretch.period) if offset not in loop.invariant
    ]
    saved = (stretch.steps - 1) * len(inside)
    if saved < FEWEST_NODES_SAVED or stretch.steps < FEWEST_STEPS:
        raise CannotRoll("it is short")
    copied = {
        one.nodes for row in loop.operands for one in row if isinstance(one, Row) and is_copied(one.nodes)
    }
    if len(inside) < FEWEST_NODES_FOR_COPY * len(copied):
        raise CannotRoll("each step takes other arrays, and does little with them")
    if all(node.operator.family == "movement" for node in inside):
        raise CannotRoll("it only moves values")
    if all(node.operator.family == "elementwise" for node in inside) and saved < FEWEST_ELEMENTWISE:
        raise CannotRoll("one loop over the elements does all steps at once")
