"""A trace under way: what the traced function touches besides its arguments.

An array that reaches an operator and is no argument is captured: it becomes an input of the graph, so that
its value is read again in every call and never baked into code. Where it comes from is for the runtime to
find out (`runtime/closure.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from .errors import LeakedTraceError
from .graph import Node, make_input
from .origin import current_origin
from .spec import require_supported, spec_of

Draw = Callable[[], np.ndarray]
_current: ContextVar[Trace | None] = ContextVar("trace", default=None)


innermost = _current.get  # the trace under way, or None: what a compiled call asks first


class _Replay:
    """Gives an array once, then draws."""

    def __init__(self, array: np.ndarray, draw: Draw) -> None:
        self.arrays = [array]
        self.draw = draw

    def __call__(self) -> np.ndarray:
        try:
            return self.arrays.pop()
        except IndexError:  # taken, perhaps by another thread
            return self.draw()


class Trace:
    """The state of one trace: the arrays that it captured, each with its input node.

    Args:
        name: the traced function, for messages.
        differentiable: whether gradients will be taken of the graph; then what the function computes under
            `no_grad` must be cut off in the graph.
    """

    def __init__(self, name: str, differentiable: bool = False) -> None:
        self.name = name
        self.differentiable = differentiable
        self.drawn: list[tuple[Draw, Node]] = []
        """What is drawn anew in each call: the function that draws, and the input node of what it gives."""
        self.notes: tuple[str, ...] = ()
        """What was found out about the function while it was traced, for `explain()`."""
        self.bodies: list[int] = []
        """Of each body of a loop that is being traced, the serial number of its first node."""
        self._presets: dict[int, tuple[np.ndarray, Node]] = {}
        self._captured: dict[int, tuple[np.ndarray, Node]] = {}

    def preset(self, array: np.ndarray, node: Node) -> None:
        """Let `node` stand for a concrete array whose place is known, wherever the array turns up."""
        self._presets.setdefault(id(array), (array, node))

    def capture(self, array: np.ndarray) -> Node:
        """The input node of a concrete array; one node for one array, however often it is used."""
        found = self._presets.get(id(array)) or self._captured.get(id(array))
        if found is None:
            require_supported(array.dtype, self.name, "a captured array")
            node = make_input(spec_of(array), f"captured_{len(self._captured)}")
            found = self._captured[id(array)] = (array, node)  # keeps the array alive, and so its id
        return found[1]

    def capture_drawn(self, draw: Draw) -> Node:
        """The input node of random numbers: each call of the compiled function calls `draw` for its value.

        `draw` returns an array of one shape and dtype, fresh numbers each time. It is called once now, to
        know them; the first call of the compiled function takes these numbers, so a seed gives the same
        sequence as without compiling.
        """
        array = draw()
        node = make_input(spec_of(array), f"drawn_{len(self.drawn)}", current_origin())
        self.drawn.append((_Replay(array, draw), node))
        return node

    @property
    def captured(self) -> list[tuple[np.ndarray, Node]]:
        """The captured arrays whose place is not known, and their nodes, in the order of first use."""
        return list(self._captured.values())


def is_tracing() -> bool:
    return _current.get() is not None


def current_trace() -> Trace:
    """The innermost trace; LeakedTraceError outside of any."""
    trace = _current.get()
    if trace is None:
        raise LeakedTraceError(
            "A traced value was used after its trace had ended. A compiled function must return its results, "
            "not store them in globals or attributes."
        )
    return trace


@contextmanager
def tracing(trace: Trace) -> Iterator[Trace]:
    token = _current.set(trace)
    try:
        yield trace
    finally:
        _current.reset(token)
