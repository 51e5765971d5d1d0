"""What a trace gives: the function as a graph, what it holds for, and what it writes beside its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ...tracer.graph import Graph, Node
from ...tracer.records import record
from ...tracer.trace import Draw, Stream
from ..captures.identities import Pattern, held_by
from ..captures.places import Reading
from ..captures.state import Updates
from ..values.flatten import Results
from ..values.tensor import Tensor
from .counters import NONE, Counted, LoopCounters
from .guards import Guards
from .leaf_gradients import LeafGradient


@record(frozen=True, eq=False)
class TapeGradient:
    """A gradient taken on the tape, of a function with a backward of its own that its graph does not show.

    The graph's inputs are those of the function's graph and a cotangent for each of `cotangent_outputs`;
    its outputs the gradients of the inputs that need one and are `connected`.
    """

    graph: Graph
    cotangent_outputs: tuple[int, ...]
    connected: tuple[bool, ...]
    again: Callable[[Sequence[Tensor]], Sequence[Any]]
    """The function itself: from the graph's inputs to the leaves of the results, on the tape."""


@record(frozen=True)
class Written:
    """What a traced function writes into memory that is the caller's, or that it reaches."""

    position: int
    """Of the memory among the graph's inputs."""
    versions: int
    """How often it is written to ..."""
    place: tuple[str, int] | None
    """... and where last."""
    is_recorded: bool
    """Whether operations were recorded meanwhile."""
    is_rebound: bool
    """Whether it gets other memory in place of other values."""


@record(frozen=True)
class Overwritten:
    """A node of the tape whose backward is an error: it has saved what the function overwrites later, or a
    backward pass inside has freed what it had saved."""

    message: str
    outputs: frozenset[int]
    """The results that are made of what the node gives."""
    inputs: frozenset[int]
    """The inputs whose gradients come from it, counted among those of which one is asked."""


@record(frozen=True, eq=False)
class Traced:
    """A function as a graph, whose inputs are the array arguments, then `sources`, gradients that are there
    before (`gradients`), `constants`, `drawn`.

    Its outputs are the leaves of the results, then what the function has `written`, then new
    gradients, then what `guards` are compared with, then the count of draws, if code draws.
    """

    name: str
    graph: Graph
    results: Results
    reading: Reading
    argument_names: tuple[str, ...]
    sources: tuple[int, ...]
    """Which of the arrays that `reading.read()` gives the graph takes."""
    constants: tuple[np.ndarray, ...]
    written: tuple[Written, ...]
    overwritten: tuple[Overwritten, ...]
    layouts: tuple[tuple[int, tuple[int, ...]], ...]
    """Of inputs that may lie in memory otherwise, where it matters: their positions and `layout_of`."""
    gone: Mapping[int, str]
    """The results that have no gradient left, with what to say of it: all ways lead through such nodes."""
    gradients: tuple[LeafGradient, ...]
    drawn: tuple[Draw, ...]
    streams: Mapping[Stream, Any]
    """Where `drawn` comes from, with the state before the trace."""
    guards: Guards
    notes: tuple[str, ...]
    """What was found out while it was traced, for `explain()`."""
    needs_grad: tuple[bool, ...]
    """Of each input of the graph, whether a gradient is asked of it."""
    kinds: tuple[type[Tensor], ...]
    """The kind of each leaf of the results."""
    takes_tensors: bool
    """Whether there are Tensors among the arguments and what the function reaches."""
    gradient: TapeGradient | None
    """Where the tape knows the gradient and the graph does not."""
    dropped: str = ""
    """Why a transform must not use it, see `Trace.dropped`; empty if it may."""
    counters: LoopCounters = NONE
    """Python's numbers that were traced values ..."""
    counted: Counted = field(default_factory=Counted)
    """... and those that could be, so that loops hold for more numbers of turns."""
    owns_constants: bool = False
    """Whether `constants` are arrays that the trace alone has: no user's that change."""
    updates: Updates | None = None
    """What a call does to numbers that the function reaches and changes."""
    identities: Pattern | None = None
    """Which of the arguments, then of the sources, are one object, where the function asks."""
    indexes_arrays: bool = False
    """Whether arrays that the function makes are Tensors, since it reads them at traced positions."""
    unfollowed: str = ""
    """Why the content of tables is a guard; empty where what is asked of them is followed."""
    hands_on: bool = False
    """Whether the results go to another program: then numbers stay arrays (`prefixes.py`)."""

    @property
    def given(self) -> int:
        """How many of the first inputs of the graph are the caller's, or what the function reaches."""
        taken = sum(one.is_taken for one in self.gradients)
        return len(self.argument_names) + len(self.sources) + taken

    @property
    def identities_hold(self) -> Callable[[Sequence[Any]], bool] | None:
        """What tells from the leaves of a call whether the same are one object; None if nobody asks."""
        if self.identities is None or self.hands_on:
            return None
        return held_by(self.reading, len(self.argument_names), self.identities)

    def is_alike(self, other: Traced) -> bool:
        """Whether another trace takes and gives the same, but for the numbers of turns that are known."""
        counts = [guard.counts for one in (self, other) for guard in one.guards.guards]
        constants = [
            [array for array in one.constants if not any(array is known for known in counts)]
            for one in (self, other)
        ]
        return (
            self._form == other._form
            and len(constants[0]) == len(constants[1])
            and all(map(np.array_equal, *constants))
            and not any((self.drawn, other.drawn, self.updates, other.updates, self.gradient, other.gradient))
        )

    @property
    def _form(self) -> tuple[Any, ...]:
        """What traces that are alike share besides the graph."""
        results = self.results.expression, repr(self.results.held)
        written = [one.position for one in self.written], self.gradients
        return self.sources, written, self.needs_grad, self.kinds, self.identities, results

    def put_back(self) -> None:
        """Let the streams that were drawn from stand where they stood before the trace."""
        for stream, state in self.streams.items():
            stream.set_state(state)

    @property
    def has_effects(self) -> bool:
        """Whether the trace has left something behind."""
        return bool(self.streams or self.updates or self.gradient)

    @property
    def first_guard(self) -> int:
        """The position of the first output that guards are compared with."""
        new = sum(one.output is not None for one in self.gradients)
        return len(self.results.leaves) + len(self.written) + new


@record(frozen=True, eq=False)
class Pulled:
    """Gradients found on the tape, by the input node that they belong to."""

    outputs: tuple[int, ...]
    cotangents: tuple[Node, ...]
    gradients: dict[Node, Node]

    def as_gradient(
        self, graph: Graph, needs_grad: Sequence[bool], again: Callable[[Sequence[Tensor]], Sequence[Any]]
    ) -> TapeGradient:
        wanted = [node for node, needed in zip(graph.inputs, needs_grad) if needed]
        return TapeGradient(
            Graph(
                f"{graph.name}_backward",
                (*graph.inputs, *self.cotangents),
                tuple(self.gradients[node] for node in wanted if node in self.gradients),
                graph.origin,
            ),
            self.outputs,
            tuple(node in self.gradients for node in wanted),
            again,
        )
