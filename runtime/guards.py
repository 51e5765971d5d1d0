"""The guards of a path as further outputs of its program, and whether a call had the same answers.

The outputs are one array for each dtype, so that comparing all guards of a path is comparing a few bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..tracer.graph import Node
from ..tracer.ops.elementwise import stop_gradient
from ..tracer.ops.movement import concatenate, reshape
from ..tracer.origin import located_at
from ..tracer.trace import Guard

CLOSE = {2: 1e-2, 4: 1e-4, 8: 1e-9}
"""By itemsize, how near two floats are that may be the same value, rounded differently by other code."""


class Deviated(Exception):
    """A call whose path is another one: `answer` to the guard at `position` is not that of this path."""

    def __init__(self, position: int, answer: np.ndarray) -> None:
        super().__init__(position)
        self.position = position
        self.answer = answer


class Guards:
    """The guards of one path, in the order in which Python asked.

    Attributes:
        outputs: the nodes that give all answers, to be made while the trace is open.
    """

    def __init__(self, guards: Sequence[Guard]) -> None:
        self.guards = tuple(guards)
        self.places: list[tuple[int, int, int]] = [(0, 0, 0)] * len(self.guards)
        """Of each guard: which output, and from which element to which."""
        self.outputs: list[Node] = []
        packs: dict[np.dtype, list[int]] = {}
        for position, guard in enumerate(self.guards):
            packs.setdefault(guard.node.dtype, []).append(position)
        for positions in packs.values():
            self._pack(positions)
        self.expected: list[bytes] | None = [
            b"".join(guards[position].answer.tobytes() for position in positions)
            for positions in map(self._in_line_order, packs.values())
        ]
        """The bytes of the outputs on this path; None until its code has run once, for the trace's call."""

    def __len__(self) -> int:
        return len(self.guards)

    def _in_line_order(self, positions: Sequence[int]) -> list[int]:
        """Questions of one line together: those of a loop's steps then stay in a row when it is rolled."""
        lines: dict[tuple[str, int], list[int]] = {}
        for position in positions:
            origin = self.guards[position].origin
            lines.setdefault((origin.filename, origin.line), []).append(position)
        return [position for line in lines.values() for position in line]

    def _pack(self, positions: Sequence[int]) -> None:
        parts, start = [], 0
        for position in self._in_line_order(positions):
            node = self.guards[position].node
            size = node.spec.size
            self.places[position] = (len(self.outputs), start, start + size)
            start += size
            with located_at(self.guards[position].origin):
                node = stop_gradient(node) if node.spec.is_float else node
                parts.append(reshape(node, shape=(size,)))
        with located_at(self.guards[positions[0]].origin):
            joined = parts[0] if len(parts) == 1 else concatenate(*parts, dim=0)
        self.outputs.append(joined.renamed("guards"))

    # --- comparing ----------------------------------------------------------------------------------------

    def check(self, found: Sequence[np.ndarray]) -> None:
        """Raise Deviated if the answers of a call, given as the outputs, are not those of the path."""
        if self.expected is None:
            self.expected = self._confirmed(found)
            return
        for array, expected in zip(found, self.expected):
            if array.tobytes() != expected:
                raise self.deviation(found)

    def _confirmed(self, found: Sequence[np.ndarray]) -> list[bytes]:
        """What is expected once the code has run for the call that was traced.

        The trace decided which way that call goes. Code may sum floats in another order than the trace did;
        what it gives for them is what it will give again.
        """
        expected = []
        for number, array in enumerate(found):
            array = np.array(array)
            for guard, (pack, start, stop) in zip(self.guards, self.places):
                if pack == number and guard.node.dtype.kind != "f":
                    array[start:stop] = guard.answer.reshape(-1)
            expected.append(array.tobytes())
        return expected

    def deviation(self, found: Sequence[np.ndarray]) -> Deviated:
        """The first guard with another answer, in the order of the questions."""
        assert self.expected is not None
        packs = [np.frombuffer(one, array.dtype) for one, array in zip(self.expected, found)]
        for position, (pack, start, stop) in enumerate(self.places):
            answer = found[pack][start:stop]
            if answer.tobytes() != packs[pack][start:stop].tobytes():
                return Deviated(position, np.array(answer).reshape(self.guards[position].node.shape))
        raise AssertionError("checked before")

    def check_closely(self, found: Sequence[np.ndarray]) -> None:
        """As `check`, for answers that NumPy computed: floats need only be close."""
        for position, (guard, (pack, start, stop)) in enumerate(zip(self.guards, self.places)):
            answer = found[pack][start:stop].reshape(guard.node.shape)
            if not is_close(answer, guard.answer):
                raise Deviated(position, answer)


def is_close(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two answers may be the same one."""
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    tolerance = CLOSE[one.dtype.itemsize]
    scale = float(np.max(np.abs(other), initial=0.0, where=np.isfinite(other)))
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
