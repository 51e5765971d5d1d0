"""Where ways through a turn meet again: from there on they are one.

What follows an answer differs, but often Python comes to the same question next, whatever the answer was,
and holds the same there but for values (`Standpoint`). It goes on alike from there, so what follows is one
stretch of code, with the values that the way before has left. So `n` choices after each other are `n`
choices, not 2**n ways, and a call that combines known answers in a new way takes a known way.

Two questions of turns are one where the instruction is the same, and all that Python can read, but for
values; where the interpreter holds what is not compared only where it does as turns begin; and where a turn
comes to it once. Whoever rolls the turns finds out whether what follows is the same graph of what
variables hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from pullback.tracer.graph import Node, toposort
from pullback.tracer.origin import Origin
from pullback.tracer.trace import Guard

from ...tracer.records import record
from .ways import MOST_WAYS, TRUTH, Way, chosen, started_if

MOST_ENDS = 4 * MOST_WAYS
"""Of stretches that are written out for one turn: those that do not meet again stand in several places."""


@record(eq=False)
class Junction:
    """A question to which turns come by several ways, or that where they begin.

    Attributes:
        visits: the numbers of the question in the trace.
        asked: what stands for it; None where turns begin.
        slots, inputs: of the variables those that stand for all others, and what stands for them.
        places: of each variable what stands for it; None for what is the same in all turns.
        way: what follows.
    """

    visits: tuple[int, ...]
    asked: Node | None
    slots: tuple[int, ...]
    inputs: tuple[Node, ...]
    places: tuple[Node | None, ...]
    way: Way


class TooManyEnds(Exception):
    """Ways that do not meet again are too much code."""


def met_again(head: Guard, turns: Sequence[Sequence[tuple[int, Guard]]]) -> list[tuple[int, ...]]:
    """The questions to which turns come by several ways, each by its numbers in the trace.

    Args:
        head: the question at which turns begin.
        turns: of each the questions that it asks, with their numbers.
    """
    keys: list[Any] = []
    states: dict[int, int] = {}
    repeated: set[int] = set()
    for questions in turns:
        seen: set[int] = set()
        for number, guard in questions:
            key = _state(head, guard)
            if key is None:
                continue
            state = next((place for place, one in enumerate(keys) if one == key), len(keys))
            if state == len(keys):
                keys.append(key)
            repeated |= {state} & seen
            seen.add(state)
            states[number] = state
    ways: dict[int, set[Any]] = {}
    before: dict[int, set[int]] = {}
    for questions in turns:
        way: tuple[Any, ...] = (None,)
        for number, guard in questions:
            state = states.get(number, -1)
            if state >= 0 and state not in repeated:
                ways.setdefault(state, set()).add(way)
                before.setdefault(state, set()).add(way[0])
                way = (state,)
            way = (*way, guard.answer.tobytes())
    found = [state for state, several in ways.items() if len(several) > 1]
    if not _is_ordered(before):
        return []
    return [tuple(number for number, one in states.items() if one == state) for state in found]


def _state(head: Guard, guard: Guard) -> Any:
    """What is equal where Python goes on alike from a question of a turn; None where nothing tells."""
    mine, begins = guard.standpoint, head.standpoint
    if mine is None or begins is None or mine.held is None or begins.held is None:
        return None
    inside = len(mine.unknown) - len(begins.unknown) + begins.anchor
    """Functions that those have called which are under way where turns begin."""
    if guard.node.spec != TRUTH or not 0 <= inside <= mine.compared:
        return None
    is_left_alone = mine.unknown[inside] <= begins.unknown[begins.anchor]
    if not (is_left_alone if inside else mine.stays[bool(guard.answer)]):
        return None
    modes, functions = mine.held
    variables = [(name, node.spec) for name, node in mine.variables]
    return mine.code, modes, functions[: inside + 1], variables


def _is_ordered(before: Mapping[int, AbstractSet[Any]]) -> bool:
    """Whether no question comes both before and after another one."""
    waiting = {state: {one for one in several if one is not None} for state, several in before.items()}
    while waiting:
        free = [state for state, several in waiting.items() if not several & waiting.keys()]
        if not free:
            return False
        for state in free:
            del waiting[state]
    return True


# --- code ---------------------------------------------------------------------------------------------------


class Led:
    """Where the ways from a junction lead to, as choices.

    Args:
        at_end: what stands at the end of a turn, given whether all was known so far, and what the way leaves.
        flags: how many of these are truth values that are false where an answer is not known.
    """

    def __init__(
        self, root: Junction, at_end: Callable[[Node, Way], list[Node]], flags: int, origin: Origin
    ) -> None:
        self.root = root
        self.at_end = at_end
        self.flags = flags
        self.origin = origin
        self.ends = 0
        self._behind: dict[Junction | None, frozenset[Junction | None]] = {None: frozenset((None,))}

    def results(self, known: Node, computed: AbstractSet[Node]) -> list[Node]:
        """What a turn leads to; `known` says whether all was known before it."""
        return self._led(self.root, [], known, computed, None)

    def _led(
        self,
        start: Junction,
        values: Sequence[Node],
        known: Node,
        computed: AbstractSet[Node],
        until: Junction | None,
    ) -> list[Node]:
        """What the ways from a junction, with these values, lead to at another one."""
        meeting = self._meeting(start)

        def at_end(way: Way, inside: AbstractSet[Node]) -> list[Node]:
            self.ends += 1
            if self.ends > MOST_ENDS:
                raise TooManyEnds
            if way.to is None and meeting is None:
                return self.at_end(known, way)
            if way.to is meeting:
                return [known, *way.after]
            return self._led(way.to, way.after, known, inside, meeting)

        way = start.way.of(dict(zip(start.inputs, values)))
        found = chosen(way, computed, at_end, self.flags if meeting is None else 1)
        if meeting is until:
            return found
        assert meeting is not None
        computed = {*computed, *toposort(found, known=computed), *found}
        rest = self._led(meeting, found[1:], found[0], computed, until)
        return rest if found[0] is known else started_if(found[0], rest, computed, self.origin)

    def _meeting(self, start: Junction) -> Junction | None:
        """The first junction to which all ways from one lead; None for the end of the turn."""
        behind = self._all_behind(start) - {start}
        return max(behind, key=lambda one: len(self._all_behind(one)))

    def _all_behind(self, start: Junction | None) -> frozenset[Junction | None]:
        """The junctions to which all ways from one lead, itself among them."""
        if start not in self._behind:
            assert start is not None
            following = [self._all_behind(end.to) for end in start.way.ends]
            self._behind[start] = frozenset.intersection(*following) | {start}
        return self._behind[start]


__all__ = ["Junction", "Led", "TooManyEnds", "met_again"]
