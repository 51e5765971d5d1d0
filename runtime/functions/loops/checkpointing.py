"""`checkpoint`: a function whose backward computes the forward values again instead of keeping them.

A. Griewank and A. Walther, Evaluating Derivatives (SIAM 2008), chapter 12.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import CellType, FunctionType
from typing import Any

from ....tracer.errors import GradientError
from ....tracer.graph import constant, make_input
from ....tracer.loop import attributes_of_loop
from ....tracer.origin import current_origin
from ....tracer.trace import is_tracing
from ...captures.randomness import RANDOM, Streams
from ...captures.reached import Reached
from ...captures.standing_names import Variables, standing, standing_now
from ...tape.bodies import outer_edges, trace_body
from ...tape.engine import Pass
from ...tape.loops import apply_loop
from ...tensors.sampling import get_rng_state, set_rng_state
from ...values.flatten import flatten, unflatten
from ...values.modes import enable_grad, is_recording
from ...values.nodes import FREED, Edge, GradNode, Saved, edge_of, next_sequence
from ...values.saved import keeping_saved_values, saved_values
from ...values.tensor import Tensor, make
from ...values.value_kinds import Auxiliary
from ..structures import Structured, structured


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of which backward keeps the arguments only, and runs it again for all else.

    It costs one more evaluation, and saves the memory of what is between arguments and results. What the
    function takes from outside is differentiated as well; random numbers are the same both times.

    Example:
        >>> layer = checkpoint(lambda x, w: tanh(x @ w))
        >>> layer(ones(2, 2), ones(2, 2)).sum()
        tensor(3.8561)
    """

    @functools.wraps(function)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if is_tracing():
            return _traced(function, args, kwargs)
        return _recorded(function, args, kwargs) if is_recording() else function(*args, **kwargs)

    return checkpointed


# --- in a trace -------------------------------------------------------------------------------------------


def _traced(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A loop of one step whose reverse computes the step again."""
    leaves, structure = flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    found: list[Structured] = []

    def run(tensors: list[Tensor]) -> list[Tensor]:
        values = list(leaves)
        for place, tensor in zip(places, tensors):
            values[place] = tensor
        again_args, again_kwargs = unflatten(structure, values)
        found[:] = [structured(function(*again_args, **again_kwargs), "checkpoint", "result")]
        return found[0].tensors

    given = structured([leaves[place] for place in places], "checkpoint", "arguments")
    names = [getattr(one.payload, "name", "") or "x" for one in given.tensors]
    inputs = [one._replace(name=name) for one, name in zip(given.inputs(), names)]
    body = trace_body("checkpoint", run, inputs, may_draw=True)
    specs = found[0].specs
    before = [make_input(spec, "") for spec in specs]
    graph = body.graph("checkpoint", current_origin(), before)
    attributes = attributes_of_loop(graph, 1, len(specs), recompute=True)
    inits = [make(constant(0, spec), Auxiliary) for spec in specs]
    return found[0].restored(apply_loop([*inits, *given.tensors, *body.constants], attributes).tensors)


# --- on the tape ------------------------------------------------------------------------------------------


def _recorded(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result with one tape node, in place of those that the function has recorded."""
    leaves, structure = flatten((args, kwargs))
    saved = list(map(saved_leaf, leaves))
    state = get_rng_state()
    given = [(leaf, "an argument") for leaf in leaves if isinstance(leaf, RANDOM)]
    streams = Streams([*_streams_of(function), *given])
    again = around(function, saved_leaf)
    first = next_sequence()
    result = structured(function(*args, **kwargs), "checkpoint", "result")
    drawn = streams if streams.moved() or get_rng_state() != state else None
    edges = outer_edges(result.tensors, first)
    outputs = [one if not _is_inside(one, first) else make(one.payload, type(one)) for one in result.tensors]
    node = CheckpointBackward(again, saved, structure, state, drawn, edges, len(outputs))
    for number, (output, one) in enumerate(zip(outputs, result.tensors)):
        if output is not one:
            output._grad_fn, output._output_nr, output._requires_grad = node, number, True
    return result.restored(outputs)


def _streams_of(function: Callable[..., Any]) -> Sequence[tuple[Any, str]]:
    """The streams of random numbers that a function reaches, as far as that can be known."""
    return [(one, "the function") for one in Reached((function,)).streams]


def _is_inside(one: Tensor, first: int) -> bool:
    """Whether the function has computed a result that has a gradient."""
    return one.requires_grad and one.grad_fn is not None and one.grad_fn.sequence > first


def saved_leaf(value: Any) -> Any:
    return Saved(value.payload, edge_of(value), value._cell) if isinstance(value, Tensor) else value


def restored_leaf(value: Any) -> Any:
    return value.as_tensor() if isinstance(value, Saved) else value


def around(
    function: Any, change: Callable[[Any], Any], known: dict[int, FunctionType] | None = None
) -> Callable[..., Any]:
    """The function with the variables around it as they are now, each changed, whatever they become later."""
    known = {} if known is None else known
    if type(function) is not FunctionType:
        return change(function)
    if id(function) in known or not function.__closure__:
        return known.get(id(function), function)
    cells = tuple(CellType() for _ in function.__closure__)
    copied = known[id(function)] = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, cells
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    for cell, own in zip(function.__closure__, cells):
        try:
            own.cell_contents = around(cell.cell_contents, change, known)
        except ValueError:  # without a value until later
            continue
    return copied


class CheckpointBackward(GradNode):
    """The tape's node of a checkpointed call."""

    __slots__ = ("function", "is_of_program", "outputs", "saved", "standing", "state", "streams", "structure")

    def __init__(
        self,
        function: Callable[..., Any],
        saved: Sequence[Any],
        structure: Any,
        state: Any,
        streams: Streams | None,
        edges: Sequence[Edge],
        outputs: int,
    ) -> None:
        super().__init__(edges)
        self.function = function
        self.saved: Sequence[Any] | None = saved
        self.structure = structure
        self.state = state
        self.streams = streams
        """The streams of random numbers; None where the function has drawn none."""
        self.outputs = outputs
        self.standing = standing_now()
        self.is_of_program = saved_values() is not None  # which writes into arrays and makes them of Tensors

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        if self.saved is None:
            raise GradientError(FREED)
        leaves = list(map(restored_leaf, self.saved))
        function = around(self.function, restored_leaf)
        args, kwargs = unflatten(self.structure, leaves)
        as_before: AbstractContextManager[Any] = (
            keeping_saved_values() if self.is_of_program else nullcontext()
        )
        stand_ins: AbstractContextManager[Any] = (
            standing(Variables(self.standing)) if self.standing else nullcontext()
        )
        with stand_ins, as_before, enable_grad(), self.replayed():
            result = structured(function(*args, **kwargs), "checkpoint", "result")
        pairs = [
            (edge_of(one), cotangent)
            for one, cotangent in zip(result.tensors, cotangents)
            if cotangent is not None and one.requires_grad
        ]
        inside = Segment(create_graph, [edge for edge in self.edges if edge is not None])
        inside.run([edge for edge, _ in pairs if edge], [one for _, one in pairs])
        return [inside.caught_at(edge) if edge else None for edge in self.edges]

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Inside, the function draws the numbers that it drew; later ones are as if it had not."""
        if self.streams is None:
            yield
            return
        now = get_rng_state()
        set_rng_state(self.state)
        try:
            with self.streams.replayed():
                yield
        finally:
            set_rng_state(now)

    def release(self) -> None:
        self.saved, self.standing = None, ()


class Segment(Pass):
    """A backward pass that ends at some edges, and keeps what arrives there."""

    def __init__(self, create_graph: bool, ends: Sequence[Edge]) -> None:
        super().__init__(create_graph, create_graph, None, {(id(target), number) for target, number in ends})

    def caught_at(self, edge: Edge) -> Any:
        return self.arrived.get(self.place_of(edge))
