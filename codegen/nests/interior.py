"""The interior of a loop: the iterations in which no element needs to ask whether it lies in the padding.

A stencil asks at every place whether its neighbours exist, which keeps its loop from vectorising, and for all
but the border the answer is known. So such a loop is written twice: without the questions for its interior,
and as it is for what lies before and behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

from .expression import (
    ZERO,
    Axis,
    Bound,
    Compute,
    Index,
    Select,
    Term,
    minus,
    number,
    of_symbol,
    parts,
    plus,
    range_of,
)
from .tree import Loop, Root

SMALLEST_LOOP = 16
"""Iterations of a loop that is worth being written twice."""
LEAST_SHARE = 0.5
"""Of a loop's iterations that must be interior."""
LARGEST_BODY = 150
"""Operators in a loop that is written twice."""


@dataclass(frozen=True)
class Interior:
    """Iterations from the largest of `lows` to the smallest of `highs`, in which `truth` holds.

    Among the limits are those of the whole loop.
    """

    lows: tuple[Index, ...]
    highs: tuple[Index, ...]
    truth: dict[Bound, bool]


def find_interior(loop: Loop, roots: Iterable[Root]) -> Interior | None:
    """The largest stretch of the loop in which all bounds are known; None if there are none, or none is."""
    if loop.extent.value < SMALLEST_LOOP:
        return None
    inside = [root for root in roots if loop in root.path]
    if not all(root.is_plain for root in inside):
        return None
    limits = _limits(loop, inside)
    operators = {
        one.node for root in inside if root.value for one in parts(root.value) if isinstance(one, Compute)
    }
    if not limits or len(operators) > LARGEST_BODY:
        return None
    first, last = _longest_stretch(loop, limits.values())
    if last - first < LEAST_SHARE * loop.extent.value:
        return None
    lows: dict[Index, None] = {}
    highs: dict[Index, None] = {}
    truth: dict[Bound, bool] = {}
    for bound, (low, high) in limits.items():
        before = high is not None and _value(high) <= first
        behind = low is not None and last <= _value(low)
        truth[bound] = not before and not behind
        for limit, group in ((low, highs if behind else lows), (high, lows if before else highs)):
            is_needed = truth[bound] or (limit is low if behind else limit is high)
            if limit is not None and is_needed:
                group[limit] = None
    whole = of_symbol(loop.extent)
    return Interior(_tightest([ZERO, *lows], max), _tightest([whole, *highs], min), truth)


Limits = tuple[Index | None, Index | None]


def _tightest(limits: list[Index], pick: Callable[[Iterable[int]], int]) -> tuple[Index, ...]:
    """Limits, of those that differ by a number only one."""
    offsets: dict[tuple[Term, ...], list[int]] = {}
    for limit in limits:
        rest = tuple(term for term in limit.terms if term.factors)
        offsets.setdefault(rest, []).append(sum(term.coefficient for term in limit.terms if not term.factors))
    return tuple(plus(Index(rest), number(pick(found))) for rest, found in offsets.items())


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
    """What is added to the axis, if the bound is on the axis plus what no axis changes."""
    own = [term for term in bound.index.terms if term.factors == (axis,) and term.coefficient == 1]
    rest = Index(tuple(term for term in bound.index.terms if term not in own))
    limits = [one for one in (rest, bound.low, bound.high) if one is not None]
    return rest if len(own) == 1 and not any(one.axes for one in limits) else None


def _longest_stretch(loop: Loop, limits: Iterable[Limits]) -> tuple[int, int]:
    """The longest run of iterations, at the traced sizes, between any two limits."""
    size = loop.extent.value
    values = (_value(one) for pair in limits for one in pair if one is not None)
    ends = sorted({0, size, *(value for value in values if 0 < value < size)})
    return max(pairwise(ends), key=lambda pair: pair[1] - pair[0])


def _value(index: Index) -> int:
    """An index without axes, at the traced sizes."""
    return range_of(index)[0]
