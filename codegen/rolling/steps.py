"""What the steps of a loop are made of: a stretch that repeats, checked operand by operand.

An operand of a step is a value of the same step, of a step before (a carry), of none (fixed), or a row of
something from outside that advances from step to step. A stretch can be rolled if each operand is one of
these in all steps; first and last steps that differ are left out.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import field
from itertools import pairwise

import numpy as np

from pullback.tracer.graph import Node
from pullback.tracer.loop import is_loop
from pullback.tracer.merge import identity_of
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.contraction import contract
from pullback.tracer.ops.control import loop_result

from ...tracer.records import record
from ..rewriting.slices import part_of
from ..rewriting.stacks import become_one
from .periods import CannotRoll, Stretch, is_part, weight
from .progressions import progression_of
from .ragged import Extent, extents_of, only_ones_differ, supports
from .rows import advance_of, can_stack, have_progressing_starts, is_copied

FEWEST_STEPS = 8
"""From which a stretch becomes a loop: fewer are compiled as soon written out, and fuse further."""
FEWEST_LONG_STEPS = 3
"""The same of steps that are long ..."""
FEWEST_NODES_OF_LONG = 100
"""... which have so many operations, and take no arrays that have to be copied."""
FEWEST_IF_KNOWN = 2
"""The same where there is a longer loop over the same operations."""
FEWEST_NODES_SAVED = 48
"""Operations that a loop must spare the later passes and the compiler."""
FEWEST_IF_FUSED = 400
"""The same for steps that, written out, become one loop over the elements or one product."""
FEWEST_NODES_FOR_COPY = 4
"""In a step, for each array that the step takes and that must be copied into a stack first."""
MOST_PEELED = 3
"""Steps at the ends of a stretch that are left out, one after another, in search of those that are alike."""
MOST_PHASES = 8
"""Places in a period at which a step may begin that are tried."""


@record(frozen=True)
class Local:
    """The value of another operation of the same step."""

    offset: int


@record(frozen=True)
class Carried:
    """The value of an operation `lag` steps ago; `inits` are the values for the first steps."""

    offset: int
    lag: int
    inits: tuple[Node, ...]


@record(frozen=True)
class Fixed:
    """A value from outside that all steps share, or a constant."""

    node: Node


@record(frozen=True)
class Row:
    """A row of something from outside: one for each step."""

    nodes: tuple[Node, ...]


Operand = Local | Carried | Fixed | Row


@record
class StepsOfLoop:
    """A stretch that can be rolled."""

    stretch: Stretch
    operands: list[list[Operand]]
    """Of each operation of a step, its operands."""
    invariant: set[int]
    """The operations that compute the same in all steps."""
    slices: set[int]
    """The slices that advance from step to step: rows of what they slice."""
    windows: set[int]
    """Other slices, and writes, of a part of an array: their place is computed in each step."""
    ragged: dict[int, dict[int, Extent]]
    """The operations on values, or on parts of an array, whose extents differ between steps: which ones."""
    replaced: dict[Node, Node] = field(default_factory=dict)
    """What was in the place of the first steps: values that are computed by the loop as well, and as what."""

    @property
    def start(self) -> int:
        return self.stretch.start

    @property
    def stop(self) -> int:
        return self.stretch.stop


def analysed(
    stretch: Stretch, sequence: Sequence[Node], place: dict[Node, int], fewest: int = FEWEST_LONG_STEPS
) -> StepsOfLoop:
    """The loop that a stretch is, perhaps without its first and last steps. Raises CannotRoll."""
    for _ in range(MOST_PEELED + 1):
        try:
            loop = classified(stretch, sequence, place)
            if fewest == FEWEST_LONG_STEPS:
                _require_gain(loop, sequence)
            return loop
        except _Shorter as shorter:
            start = stretch.start + shorter.skip * stretch.period
            stretch = Stretch(start, stretch.period, shorter.steps)
            if stretch.steps < fewest:
                raise CannotRoll(shorter.reason) from None
    raise CannotRoll("its first steps differ from each other")


def even_parts(stretch: Stretch, sequence: Sequence[Node], place: dict[Node, int]) -> list[Stretch]:
    """The stretch, cut into steps where the least is handed over, and where places do not advance evenly.

    Where several cuts between steps hand over as little, it is the one that leaves the longest part, then
    steps that come from the same lines: what is in front of a loop may look like the end of a step. Then the
    one whose steps begin where code is gone back to, as at the beginning of a turn.
    """
    phases = _best_phases(stretch, sequence, place)
    known: Places = {}
    found = (list(split_evenly(one, sequence, known)) for one in phases)
    longest = (max(parts, key=lambda part: part.steps) for parts in found)
    best = max(
        longest,
        key=lambda part: (part.steps, -_lines_that_differ(part, sequence), -_ways_back(part, sequence)),
    )
    phase = best.start % stretch.period
    return list(split_evenly(next(one for one in phases if one.start % one.period == phase), sequence, known))


def _lines_that_differ(stretch: Stretch, sequence: Sequence[Node]) -> int:
    """How many operations of the first step come from other lines than those of the last."""
    last = stretch.stop - stretch.period
    pairs = ((sequence[stretch.start + one], sequence[last + one]) for one in range(stretch.period))
    return sum(first.origin.line != second.origin.line for first, second in pairs)


def _ways_back(stretch: Stretch, sequence: Sequence[Node]) -> int:
    """How many operations of a step come from earlier code than the one before them."""
    step = [node.origin for node in sequence[stretch.start : stretch.start + stretch.period]]
    places = [(origin.line, origin.instruction) for origin in step]
    return sum(place < before for before, place in pairwise(places))


Places = dict[tuple[int, int], list[list[int]]]
"""Of operations a period apart, where the first is and how many they are: the numbers that may advance."""


def split_evenly(
    stretch: Stretch, sequence: Sequence[Node], known: Places | None = None
) -> Iterator[Stretch]:
    """The parts of a stretch in which places, and whole numbers, advance evenly.

    Loops around a loop whose steps do nothing else leave one long stretch: at the end of each row the
    places that slices read jump. Where others go on evenly over all steps, those that jump belong to a cycle.
    """
    places = _places_of_steps(stretch, sequence, {} if known is None else known)
    advances = places[1:] - places[:-1]
    first = 0
    if _are_in_cycles(places, advances) and _keeps_its_shapes(stretch, sequence):
        yield stretch
        return
    while first < stretch.steps:
        uneven = (advances[first:] != advances[first : first + 1]).any(axis=1)
        last = first + int(np.argmax(uneven)) if uneven.any() else stretch.steps - 1
        yield Stretch(stretch.start + first * stretch.period, stretch.period, last - first + 1)
        first = last + 1


def _are_in_cycles(places: np.ndarray, advances: np.ndarray) -> bool:
    """Whether places begin anew after so many steps, all that jump, beside others that never do."""
    jumps = (advances != advances[:1]).any(axis=0)
    goes_on = bool((~jumps & advances.any(axis=0)).any())
    return goes_on and bool(jumps.any()) and all(progression_of(one) is not None for one in places.T[jumps])


def _places_of_steps(stretch: Stretch, sequence: Sequence[Node], known: Places) -> np.ndarray:
    """For each step, where its slices and writes begin, and its whole numbers."""
    columns: list[list[int]] = []
    for first in range(stretch.start, stretch.start + stretch.period):
        if (first, stretch.steps) not in known:
            known[first, stretch.steps] = _places_of(sequence[first : stretch.stop : stretch.period])
        columns += known[first, stretch.steps]
    return np.array(columns, np.int64).reshape(len(columns), stretch.steps).T


def _places_of(column: Sequence[Node]) -> list[list[int]]:
    """What advances from step to step of the operations at one offset."""
    columns: list[list[int]] = []
    for dim in range(len(column[0].attributes.get("starts", ()))):
        columns.append([node.attributes["starts"][dim] for node in column])
    if not _are_of_one_shape(column):
        columns += [[node.shape[dim] for node in column] for dim in range(column[0].spec.ndim)]
    for slot, operand in enumerate(column[0].operands):
        if operand.is_constant and operand.dtype.kind in "if":
            values = [node.operands[slot].scalar_value for node in column]
            if all(value is not None and _is_whole(value) for value in values):
                columns.append([int(value) for value in values])  # type: ignore[arg-type]
    return columns


def _are_of_one_shape(column: Sequence[Node]) -> bool:
    """Whether the results of an operation have one shape in all steps; they are of one dtype."""
    return len({node.spec.shape for node in column}) == 1


def _keeps_its_shapes(stretch: Stretch, sequence: Sequence[Node]) -> bool:
    offsets = range(stretch.start, stretch.start + stretch.period)
    return all(_are_of_one_shape(sequence[first : stretch.stop : stretch.period]) for first in offsets)


def _is_whole(value: float) -> bool:
    """Whether a number may count steps; larger ones are not exact as floats."""
    return float(value).is_integer() and abs(value) < 2**53


class _Shorter(CannotRoll):
    """Only a part of the steps are alike."""

    def __init__(self, skip: int, steps: int, reason: str) -> None:
        super().__init__(reason)
        self.skip, self.steps, self.reason = skip, steps, reason


def _best_phases(stretch: Stretch, sequence: Sequence[Node], place: dict[Node, int]) -> list[Stretch]:
    """The stretch with cuts between steps where the fewest values are handed over."""
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
    least = min(crossing)
    phases = [phase for phase, count in enumerate(crossing) if count == least][:MOST_PHASES]
    end = stretch.stop + stretch.spare - stretch.start
    return [Stretch(stretch.start + phase, period, (end - phase) // period) for phase in phases]


def classified(stretch: Stretch, sequence: Sequence[Node], place: dict[Node, int]) -> StepsOfLoop:
    """What each operand of a step is. Raises CannotRoll or _Shorter."""
    start, period, steps = stretch.start, stretch.period, stretch.steps
    invariant: set[int] = set()
    slices: set[int] = set()
    windows: set[int] = set()
    ragged: dict[int, dict[int, Extent]] = {}
    changing: set[int] = set()  # operations whose results have another shape in each step
    operands: list[list[Operand]] = []
    for offset in range(period):
        column = sequence[start + offset : start + steps * period : period]
        found = [
            _operand([node.operands[slot] for node in column], offset, stretch, place)
            for slot in range(len(column[0].operands))
        ]
        if column[0].operator is loop_result and not isinstance(found[0], Local | Fixed):
            raise CannotRoll("its steps read the results of one loop inside of another's step")
        fixed = all(
            isinstance(one, Fixed) or (isinstance(one, Local) and one.offset in invariant) for one in found
        )
        extents = _extents(column, found, changing)
        is_slice = column[0].operator is m.slice_
        if extents is not None:
            ragged[offset] = extents
            if column[0].spec != column[-1].spec:
                changing.add(offset)
            if is_part(column[0]):
                windows.add(offset)
        elif is_slice and fixed and _advances(column) and advance_of(column) is not None:
            slices.add(offset)
        elif fixed and not _advances(column):
            invariant.add(offset)
        elif is_part(column[0]):
            if not have_progressing_starts(column):
                raise CannotRoll(f"{_name(column[0])} is at places that do not advance by a constant")
            windows.add(offset)
        operands.append(found)
    return StepsOfLoop(stretch, operands, invariant, slices, windows, ragged)


def _extents(
    column: Sequence[Node], operands: Sequence[Operand], changing: Container[int]
) -> dict[int, Extent] | None:
    """The extents of a ragged operation that differ between steps; None for all others."""
    if is_loop(column[0]):
        structures = {(node.attributes["body"].structure, node.attributes["length"]) for node in column}
        changes = len(structures) > 1 or any(
            isinstance(one, Local) and one.offset in changing for one in operands
        )
        return {} if changes else None
    written = column if part_of(column[0]) is column[0] else [*map(part_of, column)]
    takes_ragged = any(isinstance(one, Local) and one.offset in changing for one in operands)
    if not takes_ragged and _are_of_one_shape(written):
        return None
    extents = extents_of(written)
    first = column[0]
    if extents is None or not supports(first):
        raise CannotRoll(f"{_name(first)} changes its shape from step to step")
    reads_ragged = first.operator in (m.slice_, m.slice_update) and _source(operands[0]) in changing
    if is_part(first) and (not have_progressing_starts(column) or reads_ragged):
        raise CannotRoll(f"{_name(first)} is at places that do not advance by a constant")
    if first.operator is m.reshape and not only_ones_differ(column):
        raise CannotRoll(f"{_name(first)} reshapes what changes its shape from step to step")
    if first.operator is m.flip and set(first.attributes["dims"]) & extents.keys():
        source = column[0].operands[0]
        if source.operator is not m.slice_:
            raise CannotRoll(f"{_name(first)} reverses what changes its shape from step to step")
    for extent in extents.values():
        if extent.first < 1:
            skip = -(-(1 - extent.first) // extent.advance) if extent.advance > 0 else 1
            raise _Shorter(skip, len(column) - skip, "a part of nothing")
        if extent.last < 1:
            raise _Shorter(0, len(column) - 1, "a part of nothing")
    return extents


def _source(operand: Operand) -> int:
    return operand.offset if isinstance(operand, Local) else -1


def _advances(column: Sequence[Node]) -> bool:
    first = column[0].attributes.get("starts")
    return any(node.attributes.get("starts") != first for node in column)


def _name(node: Node) -> str:
    return f"{node.name or node.operator.name} ({node.origin.place})"


def _operand(nodes: Sequence[Node], offset: int, stretch: Stretch, place: dict[Node, int]) -> Operand:
    """What one operand is, given the nodes that it is in all steps."""
    first = nodes[0]
    start, period = stretch.start, stretch.period
    places = [place.get(node, -1) for node in nodes]
    begin = places[0]
    if begin >= start and places == [*range(begin, begin + len(nodes) * period, period)]:
        return Local(begin - start)
    if all(node is first for node in nodes) and begin < start:
        return Fixed(first)
    if all(node.is_constant for node in nodes):
        if any(node.spec != first.spec for node in nodes):
            raise CannotRoll(f"{_name(first)} changes its shape from step to step")
        if all(same_constant(node, first) for node in nodes):
            return Fixed(first)
        if not can_stack(nodes):
            raise CannotRoll("a number in it does not advance by a constant")
        return Row(tuple(nodes))
    if all(found < start for found in places):
        if _are_equal(nodes):
            return Fixed(first)
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
    if any(node.spec != nodes[lag].spec for node in nodes[lag:]):
        raise CannotRoll(f"{_name(nodes[lag])} changes its shape from step to step")
    inits = tuple(nodes[:lag])
    if any(found >= start for found in places[:lag]) or any(one.spec != nodes[lag].spec for one in inits):
        raise _Shorter(1, len(nodes) - 1, "its first steps differ from each other")
    return Carried(offset - distance + lag * period, lag, inits)


def _are_equal(nodes: Sequence[Node]) -> bool:
    """Whether values compute the same: each step may make one anew, and passes put them in front of all."""
    first = identity_of(nodes[0])
    return not any(node.is_input for node in nodes) and all(identity_of(node) == first for node in nodes)


def same_constant(one: Node, other: Node) -> bool:
    return one.attributes["value"] == other.attributes["value"] and one.spec == other.spec


def _require_gain(loop: StepsOfLoop, sequence: Sequence[Node]) -> None:
    """Raise CannotRoll for what is better left unrolled."""
    stretch = loop.stretch
    inside = [
        sequence[stretch.start + offset] for offset in range(stretch.period) if offset not in loop.invariant
    ]
    each = sum(map(weight, inside))
    saved = (stretch.steps - 1) * each
    copied = {
        one.nodes for row in loop.operands for one in row if isinstance(one, Row) and is_copied(one.nodes)
    }
    is_long = each >= FEWEST_NODES_OF_LONG and stretch.steps >= FEWEST_LONG_STEPS and not copied
    if saved < FEWEST_NODES_SAVED or (stretch.steps < FEWEST_STEPS and not is_long):
        raise CannotRoll("it is short")
    if each < FEWEST_NODES_FOR_COPY * len(copied):
        raise CannotRoll("each step takes other arrays, and does little with them")
    writes = any(sequence[stretch.start + offset].operator is not m.slice_ for offset in loop.windows)
    if all(node.operator.family == "movement" for node in inside) and not writes:
        raise CannotRoll("it only moves values")
    if saved < FEWEST_IF_FUSED and all(node.origin.is_backward for node in inside):
        raise CannotRoll("it is the gradient of steps that are written out")
    are_elements = any(node.spec.size > 1 for node in inside)
    if saved < FEWEST_IF_FUSED and are_elements and _is_one_pass(loop, sequence):
        raise CannotRoll("one loop over the elements does all steps at once")
    if saved < FEWEST_IF_FUSED and _is_one_product(loop, sequence):
        raise CannotRoll("one product does all steps at once")


def _is_one_product(loop: StepsOfLoop, sequence: Sequence[Node]) -> bool:
    """Whether steps do no more than to add up products of parts, of which `stack_products` makes one."""
    products = []
    for offset, operands in enumerate(loop.operands):
        column = sequence[loop.start + offset : loop.stop : loop.stretch.period]
        if column[0].operator is contract:
            products.append(column)
        elif column[0].operator.family != "movement" and column[0].operator is not e.add:
            return False
        if column[0].operator is not e.add and any(isinstance(one, Carried) for one in operands):
            return False
    return bool(products) and all(map(become_one, products))


def _is_one_pass(loop: StepsOfLoop, sequence: Sequence[Node]) -> bool:
    """Whether one loop over elements can do all steps: whose elements wait for no total of all of them."""
    step = sequence[loop.start : loop.start + loop.stretch.period]
    varying = [offset for offset in range(len(step)) if offset not in loop.invariant]
    if any(step[offset].operator.family not in ("elementwise", "reduction") for offset in varying):
        return False
    totals: set[int] = set()
    count = -1
    while len(totals) > count:  # until what is carried from step to step tells no more
        count = len(totals)
        for offset in varying:
            read = (one.offset for one in loop.operands[offset] if isinstance(one, Local | Carried))
            if step[offset].operator.family == "reduction" or not totals.isdisjoint(read):
                totals.add(offset)
    return all(step[offset].spec.size <= 1 for offset in totals)
