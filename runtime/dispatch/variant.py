"""One traced form of a function: its generated programs, and the call that runs them on arrays or Tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...codegen.options import Options
from ...tracer.collection import paused_collection
from ...tracer.effects import held_back
from ...tracer.forks import before_forks, kept, new_lock
from ...tracer.graph import Graph
from ...tracer.interpret import evaluate_graph
from ...tracer.ops.movement import reshape
from ...tracer.records import duplicate, record
from ..autograd.autograd import pull_back
from ..tape.apply import parts_of
from ..tracing.leaf_gradients import gradient_state
from ..tracing.signature import Conformed, conform
from ..tracing.traced import Traced, Written
from ..values.memory_order import layout_of
from ..values.nodes import edge_of, next_sequence
from ..values.saved import saved_values
from ..values.tensor import Tensor, TorchTensor, make
from ..values.value_kinds import NumpyScalar, NumpyTensor, PythonNumber, plain
from .callers_memory import payload, put_gradient, require_own_memory, write_back
from .compiled_nodes import CompiledNode, RefusedBackward
from .table import STALE, Runner, Runs

if TYPE_CHECKING:
    from ...codegen.pipeline import Pair, Program

ndarray = np.ndarray
NEVER_WRITTEN: tuple[Any, int] = ([0, None], 0)
"""The version cell of an array that is no Tensor's."""
Kernel = Callable[[Sequence[ndarray]], tuple[ndarray, ...]]


@record
class Counters:
    """What the calls of one function made the code generator do."""

    compilations: int = 0
    source_hits: int = 0
    disk_hits: int = 0
    entries: set[str] = field(default_factory=set)
    """The names of the machine code in the cache."""

    @property
    def programs(self) -> int:
        """How many had code that this process did not have yet."""
        return self.compilations + self.disk_hits


@record(frozen=True)
class TapePair:
    """As codegen's `Pair`, for a gradient taken on the tape: its backward recomputes, nothing is saved."""

    forward: Program
    backward: Program
    backward_inputs: tuple[tuple[str, int], ...]
    cotangent_outputs: tuple[int, ...]
    connected: tuple[bool, ...]


class Variant(Runs):
    """A traced function with its programs; `run` takes the array leaves of a call.

    Args:
        traced: the graph, and where its inputs come from.
        options: how to generate code.
        counters: where to count what is compiled.
        compile: makes a compiled function, as which the gradient is differentiated again.
    """

    def __init__(
        self, traced: Traced, options: Options, counters: Counters, compile: Callable[..., Any]
    ) -> None:
        self.traced = traced
        self.options = options
        self.counters = counters
        self.compile = compile
        self.wrt = tuple(position for position, asked in enumerate(traced.needs_grad) if asked)
        self.forward = self.pair.forward if self.differentiable else self._build_forward()
        self._lock = new_lock()

    @kept
    def pair(self) -> Pair | TapePair:
        from ...codegen.pipeline import build_forward, build_pair  # not at start

        graph, gradient = self.traced.graph, self.traced.gradient
        if gradient is None:
            return build_pair(graph, self.wrt, self.options)
        return TapePair(
            build_forward(graph, self.options),
            build_forward(gradient.graph, self.options),
            tuple(("input", position) for position in range(len(graph.inputs))),
            gradient.cotangent_outputs,
            gradient.connected,
        )

    def is_valid(self) -> bool:
        """Whether what the function reaches is still as it was traced."""
        read = self.traced.reading.read
        return read is None or read() is not None

    def _build_forward(self) -> Program:
        from ...codegen.pipeline import build_forward  # not at start

        return build_forward(self.traced.graph, self.options)

    @kept
    def differentiable(self) -> bool:
        """Whether a gradient is asked for, and some output has one."""
        return bool(self.wrt) and any(self.pair.connected) and bool(self.pair.cotangent_outputs)

    # --- calls --------------------------------------------------------------------------------------------

    def warm(self) -> None:
        """Compile what calls, and their backward passes, will run."""
        self.runner  # noqa: B018
        if self.differentiable:
            self.run_backward  # noqa: B018

    @property
    def inner(self) -> list[Any]:
        found = self.__dict__.get("gradient_function")
        return [] if found is None else [found]

    def run(self, leaves: Sequence[Any]) -> Any:
        return self.runner(leaves)

    @property
    def direct(self) -> Runner:
        return self.__dict__.get("runner", self.run)

    def run_traced(self, leaves: Sequence[Any]) -> Any:
        """`run` for the call that was traced: it takes this path, whatever the code makes of the guards."""
        self.traced.guards.expected, self.traced.guards.has_run = None, False
        return self.runner(leaves)

    def _compiled(self, program: Program) -> Kernel:
        """What runs a program; where it has to be compiled, this is counted."""
        if program.is_compiled:
            self.counters.entries.update(program.entries)
            return program.runner
        from ...codegen.machine.compile import statistics  # not at start

        with before_forks(), self._lock, paused_collection:
            before = statistics.compilations, statistics.source_hits, statistics.disk_hits
            run = program.runner
            self.counters.compilations += statistics.compilations - before[0]
            self.counters.source_hits += statistics.source_hits - before[1]
            self.counters.disk_hits += statistics.disk_hits - before[2]
            self.counters.entries.update(program.entries)
        return run

    @kept
    def run_backward(self) -> Kernel:
        return self._compiled(self.pair.backward)

    def copied(self, traced: Traced, counters: Counters | None) -> Variant:
        """The same programs for the same graph, of which another function object has other arrays."""
        other: Variant = duplicate(self)
        other.traced, other.counters = traced, counters or Counters()
        other._lock = new_lock()
        for name in ("runner", "run_backward", "node_class"):
            other.__dict__.pop(name, None)
        return other

    # --- runners: closures with everything that a call needs in local variables -------------------------

    @kept
    def runner(self) -> Runner:
        """What `run` calls; asked for the first time, the forward function is compiled."""
        run = self._unasked_runner()
        held = self.traced.identities_hold
        if held is None:
            return run
        return lambda leaves: run(leaves) if held(leaves) else STALE

    def _unasked_runner(self) -> Runner:
        """A runner for arrays of which as many are one object as when they were traced."""
        traced = self.traced
        core = self._recording_core() if self.differentiable else self._core()
        reading, sources, states = traced.reading.read, traced.sources, traced.gradients
        layouts = traced.layouts
        constants, drawn, takes_tensors = traced.constants, traced.drawn, traced.takes_tensors
        if traced.written:
            core = self._writing(core)
        updates = None if reading is None else traced.updates
        if not sources and not constants and not drawn and not states and not layouts and updates is None:
            if reading is None:
                return core
            return lambda leaves: STALE if reading() is None else core(leaves)

        by_parts = [place for place, index in enumerate(sources) if traced.reading.sources[index].is_complex]

        def reached(values: tuple[Any, ...]) -> list[Any]:
            found = [values[index] for index in sources]
            for place in by_parts:
                found[place] = parts_of(found[place])
            return found

        joined = _joined_with_given if traced.written else _joined
        first_source = len(traced.argument_names)

        def given_at(place: int, leaves: Sequence[Any], values: tuple[Any, ...]) -> Any:
            if place < first_source:
                return getattr(leaves, "given", leaves)[place]
            return values[sources[place - first_source]]

        def lie_alike(leaves: Sequence[Any], values: tuple[Any, ...]) -> bool:
            arrays = ((given_at(place, leaves, values), layout) for place, layout in layouts)
            return all(
                layout_of(one._value if isinstance(one, Tensor) else one) == layout for one, layout in arrays
            )

        def run_with_sources(leaves: Sequence[Any]) -> Any:
            values = () if reading is None else reading()
            if values is None or (updates is not None and not updates.holds(values)):
                return STALE
            if layouts and not lie_alike(leaves, values):
                return STALE
            given = reached(values)  # Tensors become arrays when it is run
            if states:
                tensors = [given_at(state.position, leaves, values) for state in states]
                if any(gradient_state(one) != state.before for one, state in zip(tensors, states)):
                    return STALE
                given += [one._grad for one, state in zip(tensors, states) if state.is_taken]
            extra = given if takes_tensors else [payload(one) for one in given]
            more = [*extra, *constants, *(one for draw in drawn for one in draw())]
            result = core(joined(leaves, given, more))
            if updates is not None:
                updates.write(values)
            return result

        return run_with_sources

    def _written_places(self) -> list[tuple[Written, int]]:
        """What the function writes into, and the position of the output for it."""
        first = len(self.traced.results.leaves)
        return [(written, place) for place, written in enumerate(self.traced.written, first)]

    @kept
    def _own_output(self) -> Callable[[int, Sequence[ndarray]], ndarray]:
        """What gives an output as an array that nobody else has, not even the backward pass."""
        outputs = self.forward.graph.outputs
        is_shown = any(node.operator is reshape for node in outputs) or self.differentiable
        shared = {place for place, one in enumerate(outputs) if is_shown or outputs.count(one) > 1}
        return lambda place, produced: produced[place].copy() if place in shared else produced[place]

    def _writing(self, core: Runner) -> Runner:
        """A runner for a function that writes into what it is given, which must be memory of its own."""
        name, written, names = self.traced.name, self.traced.written, self.traced.argument_names
        labels = [f"its argument '{one}'" for one in names]
        labels += [self.traced.reading.sources[index].label for index in self.traced.sources]
        labels += [f"the .grad of {labels[one.position]}" for one in self.traced.gradients if one.is_taken]

        def run_writing(leaves: Sequence[Any]) -> Any:
            given = getattr(leaves, "given", leaves)[: len(labels)]
            for one in written:
                require_own_memory(given, one, name, labels)
            result = core(leaves)
            for one in written:
                if given[one.position] is not leaves[one.position]:
                    np.copyto(given[one.position], leaves[one.position])
            return result

        return run_writing

    def _checked_forward(self) -> Kernel:
        """The forward function, which raises Deviated where the guards have other answers."""
        forward, guards = self._compiled(self.forward), self.traced.guards
        if not guards:
            return forward
        first = self.traced.first_guard

        def run_held_back(arrays: Sequence[ndarray]) -> tuple[ndarray, ...]:
            # Where it fails on a path that may be a wrong one, that of the call is run, or traced and run.
            with held_back(*([] if guards.expected is None else [Exception])):
                return run_checked(arrays)

        def run_checked(arrays: Sequence[ndarray]) -> tuple[ndarray, ...]:
            produced = forward(arrays)
            expected = guards.expected
            if expected is None or len(expected) > 1 or produced[first].tobytes() != expected[0]:
                guards.check(produced[first : first + len(guards.outputs)])
            return produced

        return run_held_back if self._has_effects else run_checked

    @kept
    def _has_effects(self) -> bool:
        """Whether its code calls functions for their effect, which `copied` takes along."""
        from ...codegen.drawn_once import has_effects  # not at start

        return has_effects(self.traced.graph)

    def _core(self) -> Runner:
        """Without gradients."""
        checked, results = self._checked_forward(), self.traced.results
        count = len(results.leaves)
        written, states, own = self._written_places(), self.traced.gradients, self._own_output
        takes_tensors = self.traced.takes_tensors

        def run_whole(leaves: Sequence[Any]) -> tuple[ndarray, ...]:
            produced = checked([payload(leaf) for leaf in leaves] if takes_tensors else leaves)
            for one, place in written:
                write_back(leaves[one.position], produced[place], one)
            for state in states:
                put_gradient(leaves[state.position], state, own, produced)
            if gone:
                return tuple(self._refused(produced, place, leaves) for place in range(count))
            return produced[:count]

        gone = self.traced.gone
        has_more = len(self.traced.graph.outputs) > count or gone
        forward: Kernel = run_whole if has_more or takes_tensors else checked
        if self.traced.hands_on:
            return results.builder(forward, ("make(o{})" if takes_tensors else "o{}").format, make=make)
        forms = ["{}" if place in gone else _form(kind) for place, kind in enumerate(self.traced.kinds)]
        return results.builder(forward, lambda position: forms[position].format(f"o{position}"), make=make)

    def _recording_core(self) -> Runner:
        """Results that have a gradient are Tensors with a node on the tape."""
        forward, node_class, wrt = self._checked_forward(), self.node_class, self.wrt
        kinds = self.traced.kinds
        count = len(self.traced.results.leaves)
        recorded = self.pair.cotangent_outputs
        new = node_class.__new__
        unwritten = [NEVER_WRITTEN[0]] * (len(self.traced.graph.outputs) - count)
        written, states, own = self._written_places(), self.traced.gradients, self._own_output
        overwritten = [one.position for one, _ in written]
        errors, gone = self.traced.overwritten, self.traced.gone

        def run_recorded(leaves: Sequence[Any]) -> list[Tensor]:
            arrays = []
            saved = []
            for leaf in leaves:
                if type(leaf) is TorchTensor or isinstance(leaf, Tensor):
                    value, cell = leaf._value, leaf._cell
                    saved.append((cell, cell[0]))
                else:
                    value = leaf
                    saved.append(NEVER_WRITTEN)
                arrays.append(value if type(value) is ndarray and value.flags.carray else conform(value))
            for position in overwritten:  # backward wants what was there before
                arrays[position], saved[position] = arrays[position].copy(), NEVER_WRITTEN
            produced = forward(arrays)
            for one, place in written:
                write_back(leaves[one.position], produced[place], one)
            for state in states:
                put_gradient(leaves[state.position], state, own, produced)
            node = new(node_class)
            edges = node.edges = []
            for position in wrt:
                leaf = leaves[position]
                edges.append((leaf._grad_fn or leaf, leaf._output_nr))
            node.hooks = None
            node.sequence = next_sequence()
            node.arrays = arrays
            node.saved = saved
            node.produced = produced
            node.overwritten_values = errors if errors and saved_values() is None else ()
            tensors = [make(value, kind) for value, kind in zip(produced, kinds)]
            for position in gone:
                tensors[position] = self._refused(produced, position, leaves)
            node.output_cells = [tensor._cell for tensor in tensors] + unwritten
            for position in recorded:
                tensor = tensors[position]
                tensor._requires_grad = True
                tensor._grad_fn = node
                tensor._output_nr = position
            return tensors

        forms = ["plain({})" if issubclass(kind, NumpyTensor) else "{}" for kind in kinds]
        return self.traced.results.builder(
            run_recorded, lambda position: forms[position].format(f"o{position}"), plain=plain
        )

    def _refused(self, produced: Sequence[ndarray], place: int, leaves: Sequence[Any]) -> Any:
        """A result; where its gradient is gone a Tensor that says so when it is asked for."""
        message = self.traced.gone.get(place)
        if message is None:
            return produced[place]
        tensor = make(produced[place], self.traced.kinds[place])
        edges = [edge_of(leaves[position]) for position in self.wrt]
        tensor._grad_fn = RefusedBackward(edges, self.node_class.__name__, message)
        tensor._requires_grad = True
        return tensor

    # --- the tape -----------------------------------------------------------------------------------------

    @kept
    def node_class(self) -> type[CompiledNode]:
        """`CompiledLossBackward` for the function `loss`."""
        title = "".join(part[:1].upper() + part[1:] for part in self.traced.graph.name.split("_"))
        fields = {"__slots__": (), "variant": self, "outputs": len(self.traced.results.leaves)}
        return type(f"Compiled{title}Backward", (CompiledNode,), fields)

    @property
    def joint(self) -> tuple[Graph, slice]:
        """The gradient as the rules write it, of inputs and cotangents, and which outputs are gradients."""
        from ...codegen.pipeline import build_joint  # not at start

        if self.traced.gradient is not None:
            return self.traced.gradient.graph, slice(None)
        graph = self.traced.graph
        return build_joint(graph, self.wrt).graph, slice(len(graph.outputs), None)

    @kept
    def gives_fresh(self) -> bool:
        """Whether no two gradients may share their memory."""
        gradients = self.pair.backward.graph.outputs
        is_reshaped = any(node.operator is reshape for node in gradients)
        return len(set(gradients)) == len(gradients) and not is_reshaped

    @kept
    def backward_inputs(self) -> tuple[tuple[str, int], ...]:
        """As `pair.backward_inputs`, residuals counted behind the results."""
        count = len(self.traced.graph.outputs)
        given = self.pair.backward_inputs
        return tuple((kind, index + count if kind == "residual" else index) for kind, index in given)

    def backward_arrays(self, arrays: Sequence[ndarray], produced: Sequence[ndarray]) -> list[ndarray]:
        """The inputs of the backward function, given those and the outputs of the forward one."""
        sources = self.backward_inputs
        given = [arrays[index] if kind == "input" else produced[index] for kind, index in sources]
        return [*given, *(np.ones_like(produced[position]) for position in self.pair.cotangent_outputs)]

    # --- derivatives of the gradient ----------------------------------------------------------------------

    @kept
    def gradient_function(self) -> Callable[..., Any]:
        """The gradient as a compiled function of inputs and cotangents, with a backward of its own."""
        graph, wrt, recorded = self.traced.graph, self.wrt, self.pair.cotangent_outputs
        on_tape = self.traced.gradient

        def gradient(inputs: list[Tensor], cotangents: list[Tensor | None]) -> Any:
            outputs = evaluate_graph(graph, inputs) if on_tape is None else on_tape.again(inputs)
            given = [(outputs[place], one) for place, one in zip(recorded, cotangents) if one is not None]
            differentiated, started = zip(*given)
            return pull_back(differentiated, [inputs[position] for position in wrt], started)

        return self.compile(gradient, name=f"gradient_of_{self.traced.graph.name}", options=self.options)


def _joined(leaves: Sequence[Any], reached: Sequence[Any], more: list[Any]) -> list[Any]:
    return [*leaves, *more]


def _joined_with_given(leaves: Sequence[Any], reached: Sequence[Any], more: list[Any]) -> list[Any]:
    """The same with what the caller has given and the function reaches, for one that writes into it."""
    found = Conformed([*leaves, *more])
    found.given = [*getattr(leaves, "given", leaves), *reached]
    return found


def _form(kind: type[Tensor]) -> str:
    """How a result, an array, becomes what a plain call would return."""
    if not issubclass(kind, NumpyTensor):
        return "make({})"
    if kind is PythonNumber:
        return "{}.item()"
    return "{}[()]" if kind is NumpyScalar else "{}"


def inputs_of(traced: Traced, leaves: Sequence[Any]) -> list[ndarray]:
    """The inputs of the graph for a call; random numbers are drawn."""
    read = traced.reading.read
    values = (read() if read is not None else None) or ()
    of_sources = [(values[index], traced.reading.sources[index].is_complex) for index in traced.sources]
    extra = [parts_of(value) if is_complex else value for value, is_complex in of_sources]
    drawn = [one for draw in traced.drawn for one in draw()]
    return [payload(leaf) for leaf in (*leaves, *extra, *traced.constants, *drawn)]


def check_guards(traced: Traced, leaves: Sequence[Any]) -> None:
    """Raise Deviated if a call takes another path; found out by NumPy, nothing is compiled."""
    graph = traced.graph.with_outputs(traced.guards.outputs)
    arrays = inputs_of(traced, leaves)
    with np.errstate(all="ignore"):
        found = evaluate_graph(graph, arrays)
    traced.guards.check_closely([np.asarray(one) for one in found])
