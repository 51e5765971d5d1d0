"""The interior of a loop: the iterations in which no element needs to ask whether it lies in the padding.

A stencil asks at every place whether its neighbours exist, which keeps its loop from vectorising, and for all
but the border the answer is known. So such a loop is written in stretches: its interior, without the
questions, and what lies before and behind it, each with the questions that are open there.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from ...tracer.records import record
from .expression import ZERO, Axis, Bound, Compute, Index, Select, minus, number, of_symbol, parts, range_of
from .tree import Loop, Root, roots_in

SMALLEST_LOOP = 16
"""Iterations of a loop that is worth being written twice."""
LEAST_SHARE = 0.5
"""Of a loop's iterations that must be interior."""
LARGEST_BODY = 150
"""Operators in a loop that is written more than once."""
MOST_APART = 2
"""Iterations on one side of the interior that are written one after another."""

Limits = tuple[Index | None, Index | None]


@record(frozen=True)
class Stretch:
    """Iterations from `start` up to `stop`."""

    start: Index
    stop: Index
    is_interior: bool = False

    @property
    def is_one(self) -> bool:
        """Whether it is one iteration, whatever the sizes are."""
        return minus(self.stop, self.start) == number(1)

    @property
    def range(self) -> tuple[int, int]:
        """The first and the last iteration, at the traced sizes."""
        return _value(self.start), _value(self.stop) - 1

    @property
    def count(self) -> int:
        """How many iterations there are at the traced sizes."""
        return _value(self.stop) - _value(self.start)


def find_stretches(loop: Loop) -> list[Stretch]:
    """The stretches of a loop, in order, of which one is its interior; none where it has no such."""
    if loop.extent.value < SMALLEST_LOOP or not loop.extent.find().is_shape:
        return []
    inside = list(roots_in(loop.items))
    if not all(root.is_plain for root in inside):
        return []
    limits = _limits(loop, inside)
    operators = {
        one.node for root in inside if root.value for one in parts(root.value) if isinstance(one, Compute)
    }
    if not limits or len(operators) > LARGEST_BODY:
        return []
    places = _places(loop, limits.values())
    start, stop = max(pairwise(places), key=lambda pair: _value(pair[1]) - _value(pair[0]))
    interior = Stretch(start, stop, is_interior=True)
    if interior.count < LEAST_SHARE * loop.extent.value:
        return []
    before, behind = (
        _border(part) for part in (places[: places.index(start) + 1], places[places.index(stop) :])
    )
    return [*before, interior, *behind]


def _border(places: list[Index]) -> list[Stretch]:
    """What lies around the interior: one iteration after another if there are few, else a loop."""
    stretches = [Stretch(*pair) for pair in pairwise(places)]
    if len(stretches) > MOST_APART or not all(one.is_one for one in stretches):
        return [Stretch(places[0], places[-1])] if stretches else []
    return stretches


def _limits(loop: Loop, roots: list[Root]) -> dict[Bound, Limits]:
    """For each bound on the loop's variable itself, from where and up to where it holds."""
    found: dict[Bound, Limits] = {}
    for root in roots:
        axis = root.axis_of(loop)
        selects = (one for one in parts(root.value) if isinstance(one, Select)) if root.value else ()
        for bound in (bound for select in selects for bound in select.bounds):
            offset = _offset(bound, axis)
            if offset is not None and bound.step == 1:
                low = None if bound.low is None else minus(bound.low, offset)
                high = None if bound.high is None else minus(bound.high, offset)
                found[bound] = (low, high)
    return found


def _offset(bound: Bound, axis: Axis | None) -> Index | None:
    """What is added to the axis, if the bound is on the axis plus what the shapes of arrays tell."""
    own = [term for term in bound.index.terms if term.factors == (axis,) and term.coefficient == 1]
    rest = Index(tuple(term for term in bound.index.terms if term not in own))
    limits = [one for one in (rest, bound.low, bound.high) if one is not None]
    return rest if len(own) == 1 and all(one.is_of_shapes for one in limits) else None


def _places(loop: Loop, limits: Iterable[Limits]) -> list[Index]:
    """Where the loop begins and ends, and where in between the answer to some question changes, in order."""
    found = {_value(one): one for pair in limits for one in pair if one is not None}
    size = loop.extent.value
    inside = {value: one for value, one in found.items() if 0 < value < size}
    return [place for _, place in sorted({**inside, 0: ZERO, size: of_symbol(loop.extent)}.items())]


def _value(index: Index) -> int:
    """An index without axes, at the traced sizes."""
    return range_of(index)[0]
