"""The guards of a path as further outputs of its program, and whether a call had the same answers.

The outputs are one array for each dtype, so that comparing all guards of a path is comparing a few bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from ...tracer.graph import Node
from ...tracer.ops.elementwise import identity, stop_gradient
from ...tracer.ops.movement import reshape
from ...tracer.origin import Origin, located_at
from ...tracer.trace import KNOWN_TURNS, ROWS, Guard

CLOSE = {2: 1e-2, 4: 1e-4, 8: 1e-9}
"""By itemsize, how near two floats are that may be the same value, rounded differently by other code."""

MOST_LINES = 24
"""That a path is shown with."""


class Deviated(Exception):
    """A call whose path is another one: `answer` to the guard at `position` is not that of this path."""

    def __init__(self, position: int, answer: np.ndarray) -> None:
        super().__init__(position)
        self.position = position
        self.answer = answer


def packed(guards: Sequence[Guard]) -> tuple[list[Node], list[tuple[int, int, int]]]:
    """One node for each dtype, with all answers; and of each guard which node, from where to where.

    Questions of one line stand together: those of a loop's steps then stay in a row when it is rolled.
    """
    lines: dict[tuple[str, int], int] = {}
    for guard in guards:
        lines.setdefault((guard.origin.filename, guard.origin.line), len(lines))
    starts: dict[np.dtype, dict[Node, int]] = {}
    sizes: dict[np.dtype, int] = {}
    for guard in sorted(guards, key=lambda guard: lines[guard.origin.filename, guard.origin.line]):
        dtype = guard.node.dtype
        nodes = starts.setdefault(dtype, {})
        if guard.node not in nodes:
            nodes[guard.node] = sizes.get(dtype, 0)
            sizes[dtype] = nodes[guard.node] + guard.node.spec.size
    origins = {guard.node: guard.origin for guard in guards}
    packs = [_joined(list(nodes), origins) for nodes in starts.values()]
    numbers = {dtype: number for number, dtype in enumerate(starts)}
    places = []
    for guard in guards:
        start = starts[guard.node.dtype][guard.node] + guard.start
        places.append((numbers[guard.node.dtype], start, start + guard.answer.size))
    return packs, places


def _joined(nodes: Sequence[Node], origins: Mapping[Node, Origin]) -> Node:
    """All elements in one vector, without gradient; one node is given as it is."""
    from ...codegen.rewriting.slices import joined  # not at start

    parts = []
    for node in nodes:
        with located_at(origins[node]):
            parts.append(node if len(nodes) == 1 else reshape(node, shape=(node.spec.size,)))
    with located_at(origins[nodes[0]]):
        whole = joined(parts, 0)
        whole = stop_gradient(whole) if whole.spec.is_continuous else whole
        if len(parts) > 1:
            return whole.named("guards")
        return whole if whole.name and not whole.is_input else identity(whole).named("guard")


class Guards:
    """The guards of one path, in the order in which Python asked. To be made while the trace is open.

    Attributes:
        outputs: the nodes that give all answers.
        places: of each guard, which output, and from which element to which.
        owners: of each element of each output, the position of its first guard.
        expected: the bytes of the outputs on this path; None if the next call takes it in any case.
        has_run: whether the code has run on this path, so that `expected` are its bits and not NumPy's.
    """

    def __init__(self, guards: Sequence[Guard]) -> None:
        self.guards = tuple(guards)
        self.outputs, self.places = packed(guards)
        answers = [np.zeros(node.spec.size, node.dtype) for node in self.outputs]
        for guard, (pack, start, stop) in zip(self.guards, self.places):
            answers[pack][start:stop] = guard.answer.reshape(-1)
        self.expected: list[bytes] | None = [answer.tobytes() for answer in answers]
        self.has_run = False
        self.owners = [np.zeros(node.spec.size, np.int64) for node in self.outputs]
        for position, (pack, start, stop) in reversed(list(enumerate(self.places))):
            self.owners[pack][start:stop] = position

    def __len__(self) -> int:
        return len(self.guards)

    def lines(self) -> list[str]:
        """The guards as text, with the user's lines: `model.py:5  while y < 3:  True 7 times, False`."""
        lines = []
        for (place, text), guards in groupby(self.guards, lambda one: (one.origin.place, one.origin.text)):
            answers: list[str] = []
            for answer, repeated in groupby(_answer_text(guard) for guard in guards):
                count = len(list(repeated))
                answers.append(answer if count == 1 else f"{answer} {count} times")
            lines.append(f"{place}  {text}  {', '.join(answers)}")
        hidden = len(lines) - MOST_LINES
        return lines if hidden <= 0 else [*lines[:MOST_LINES], f"... and {hidden:,} more"]

    # --- comparing ----------------------------------------------------------------------------------------

    def check(self, found: Sequence[np.ndarray]) -> None:
        """Raise Deviated if the answers of a call, given as the outputs, are not those of the path."""
        if self.expected is None or not self.has_run:
            if self.expected is not None:
                self.check_closely(found)
            self.expected, self.has_run = self._confirmed(found), True
            return
        for array, expected in zip(found, self.expected):
            if array.tobytes() != expected:
                raise self.deviation(found)

    def _confirmed(self, found: Sequence[np.ndarray]) -> list[bytes]:
        """What is expected once the code has run for the call that was traced.

        The trace decided which way that call goes. Code may sum floats in another order than the trace did;
        what it gives for them is what it will give again. Only a loop may have met what no turn was.
        """
        for position, (guard, (pack, start, stop)) in enumerate(zip(self.guards, self.places)):
            answer = found[pack].reshape(-1)[start:stop].reshape(guard.answer.shape)
            if guard.turns is not None and answer != KNOWN_TURNS:
                raise Deviated(position, answer)
        expected = []
        for number, array in enumerate(found):
            array = np.array(array).reshape(-1)
            for guard, (pack, start, stop) in zip(self.guards, self.places):
                if pack == number and guard.node.dtype.kind != "f":
                    array[start:stop] = guard.answer.reshape(-1)
            expected.append(array.tobytes())
        return expected

    def deviation(self, found: Sequence[np.ndarray]) -> Deviated:
        """The first guard with another answer, in the order of the questions."""
        assert self.expected is not None
        position = len(self.guards)
        for array, expected, owners in zip(found, self.expected, self.owners):
            if array.tobytes() != expected:
                if len(owners) > 1:
                    bits = f"u{array.itemsize}"
                    owners = owners[array.reshape(-1).view(bits) != np.frombuffer(expected, bits)]
                position = min(position, int(owners.min()))
        pack, start, stop = self.places[position]
        return Deviated(
            position, found[pack].reshape(-1)[start:stop].reshape(self.guards[position].answer.shape)
        )

    def check_closely(self, found: Sequence[np.ndarray]) -> None:
        """As `check`, between NumPy's answers and those of the code: floats need only be close."""
        for position, (guard, (pack, start, stop)) in enumerate(zip(self.guards, self.places)):
            answer = found[pack].reshape(-1)[start:stop].reshape(guard.answer.shape)
            if not is_close(answer, guard.answer):
                raise Deviated(position, answer)


def _answer_text(guard: Guard) -> str:
    answer = guard.answer
    if guard.question == ROWS:
        return "known ways in all rows"
    if guard.turns is not None:
        if guard.counts is None:
            return "any number of turns"
        numbers = [str(number) for number in np.flatnonzero(guard.counts)]
        return f"{', '.join(numbers)} turn{'' if numbers == ['1'] else 's'}"
    if answer.dtype.kind == "b" and answer.size == 1:
        return str(bool(answer.item()))
    if answer.size == 1:
        return f"{guard.question} is {answer.item()}"
    return f"{guard.question} is an array of {answer.size}"


def is_close(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two answers may be the same one."""
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    tolerance = CLOSE[one.dtype.itemsize]
    scale = float(np.max(np.abs(other), initial=0.0, where=np.isfinite(other)))
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
