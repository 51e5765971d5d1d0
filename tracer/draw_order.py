"""What code does at its place in the order of a program: it draws random numbers itself, and calls functions.

Each draw, and each call of a function for its effect, takes a count that the one before it has left. So no
pass drops one, shares two or changes their order: to the graph they are values made of values. A loop or a
choice with some in it carries the count.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .errors import EagerOnlyError
from .graph import Node
from .ops.elementwise import convert, stop_gradient
from .ops.foreign import ForeignFunction, NotDrawnError, draw
from .ops.movement import reshape, slice_
from .origin import at_caller
from .spec import INT64, Spec, spec_of
from .trace import Stream, Trace, current_trace

Numbers = Callable[..., Any]
"""(*arrays): fresh numbers."""
NOTHING = np.zeros(1, np.int64)
"""What a function gives that is called for its effect: the count for the next one."""
_functions: dict[tuple[Hashable, Any], ForeignFunction] = {}
"""By what tells draws apart, so that a later trace makes the same program."""


@contextmanager
def drawing_nothing(streams: Iterable[Stream]) -> Iterator[None]:
    """Behind it, streams stand where they did before, whatever is drawn inside."""
    states = [(stream, stream.get_state()) for stream in streams]
    try:
        yield
    finally:
        for stream, state in states:
            stream.set_state(state)


class OrderNeeded(EagerOnlyError):
    """A body draws as often as data says, and is not given the count of draws."""


class DrawOrder:
    """The draws of a trace that code makes: the count after the last one, and where the streams stood."""

    def __init__(self, trace: Trace | None = None) -> None:
        self._trace = trace or current_trace()
        self._counts, self._before = self._trace.counts, self._trace.drawn_by_code

    @property
    def is_kept(self) -> bool:
        """Whether what is drawn next is drawn by code, as something before it is."""
        return bool(self._before) or any(one is not None for one in self._counts[1:])

    def count(self) -> Node:
        """What the next draw takes.

        Raises:
            OrderNeeded: in a body that is not given it.
        """
        count = self._counts[-1]
        if count is None and len(self._counts) > 1:
            raise OrderNeeded(
                f"Random numbers are drawn, or a function is called for its effect,{at_caller()} in a body "
                "that may run any number of times. Do so before, and pass in what comes of it."
            )
        if count is None:
            count = self._counts[0] = self._trace.capture_count()
        return count

    @contextmanager
    def body(self) -> Iterator[None]:
        """Inside, the body of a loop or a choice is traced."""
        self._counts.append(None)
        try:
            yield
        finally:
            self._counts.pop()

    def go_on(self, count: Node) -> None:
        """Let the next draw take this count."""
        self._counts[-1] = count

    def draw(
        self,
        function: Numbers,
        stream: Stream,
        operands: Sequence[Node] = (),
        label: str = "draw",
        key: Any = None,
    ) -> tuple[Node, Any]:
        """The numbers that code draws at this place, and the like of them.

        Args:
            function: draws, given the values of the operands; always of one shape and dtype.
            key: what else with the same key and operands may be drawn by, if not None.
        """
        count = self.count()
        before = stream.get_state()
        self._trace.streams.setdefault(stream, before)
        self._before.setdefault(stream, before)
        known = [self._known(one) for one in (count, *operands)]
        like = _like(function, operands, known[1:])
        sample = np.asarray(like)
        if any(one is None for one in known):
            stream.set_state(before)
        spec = spec_of(sample)
        whole = Spec((sample.size + 1,), spec.dtype)
        called = _called(function, stream, label, key, whole, [one.spec for one in operands])
        node = draw(count, *map(stop_gradient, operands), function=called, spec=whole)
        if all(one is not None for one in known):
            self._trace.values.give(node, _with_end(sample, whole))
        self._counts[-1] = convert(_part(node, sample.size, ()), dtype=INT64)
        return _part(node, 0, spec.shape), like

    def call(self, function: ForeignFunction, operands: Sequence[Node]) -> None:
        """Let code call a function at this place, for its effect: it gives `NOTHING`."""
        node = draw(self.count(), *map(stop_gradient, operands), function=function, spec=spec_of(NOTHING))
        self._trace.values.give(node, NOTHING)
        self._counts[-1] = reshape(node, shape=())

    def _known(self, node: Node) -> np.ndarray | None:
        try:
            return self._trace.values.of(node)
        except NotDrawnError:
            return None

    def put_back(self) -> None:
        """Let the streams stand where the first call, which draws what the trace has drawn, finds them."""
        for stream, state in self._before.items():
            stream.set_state(state)


def _like(function: Numbers, operands: Sequence[Node], known: Sequence[Any]) -> Any:
    """What is drawn now, or the like of it: for values that are not known, of ones or of shares of one.

    Raises:
        EagerOnlyError: nothing can be drawn of such.
    """
    for value in (lambda _: 1, lambda size: 1 / max(size, 1)):
        given = [
            np.full(tuple(map(int, node.shape)), value(int(node.shape[-1]) if node.shape else 1), node.dtype)
            if array is None
            else array
            for node, array in zip(operands, known)
        ]
        try:
            return function(*given)
        except Exception as error:
            if all(array is not None for array in known):
                raise
            reason = error
    raise EagerOnlyError(
        f"Random numbers are drawn{at_caller()} whose shape cannot be told before: {reason}"
    ) from reason


def _called(
    function: Numbers, stream: Stream, label: str, key: Any, whole: Spec, operands: Sequence[Spec]
) -> ForeignFunction:
    def drawn(count: np.ndarray, *arrays: np.ndarray) -> None:
        _fill(arrays[-1], function(*arrays[:-1]))

    if key is None:
        return ForeignFunction(label, drawn, stream)
    identity = key, (whole, *operands)
    if identity not in _functions:
        _functions[identity] = ForeignFunction(label, drawn, stream)
    return _functions[identity]


def _with_end(numbers: Any, whole: Spec) -> np.ndarray:
    """The numbers and a 0, which is what the next draw waits for."""
    made = np.empty(whole.shape, whole.dtype)
    _fill(made, numbers)
    return made


def _fill(whole: np.ndarray, numbers: Any) -> None:
    if isinstance(numbers, np.ndarray):
        whole[:-1] = numbers.ravel()
    else:
        whole[...] = numbers
    whole[-1] = 0


def _part(values: Node, start: int, shape: tuple[int, ...]) -> Node:
    stop = start + int(np.prod(shape))
    return reshape(slice_(values, starts=(start,), stops=(stop,), steps=(1,)), shape=shape)
