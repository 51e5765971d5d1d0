"""Running the user's function once, on tensors that stand for arguments, to get its graph."""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...tracer.dims import give_letters
from ...tracer.draw_order import DrawOrder
from ...tracer.errors import (
    EagerOnlyError,
    GradientError,
    MutationError,
    OutputError,
    PullbackError,
    TraceError,
)
from ...tracer.graph import Graph, Node, make_input, make_named_input, name_results
from ...tracer.ops.elementwise import identity, stop_gradient
from ...tracer.ops.movement import of_pairs, pairs_of
from ...tracer.origin import Origin
from ...tracer.spec import SUPPORTED
from ...tracer.trace import DeeperRuleNeeded, Guard, Trace, tracing
from ...tracer.verify import checked
from ..autograd import autograd
from ..captures.compared import covers
from ..captures.identities import pattern_of, require_alike, shared
from ..captures.places import Changed, Source
from ..captures.queries import Unfollowed
from ..captures.randomness import Streams, refuse_moved
from ..captures.state import Updates
from ..tape.apply import apply, cut_off, of_kind
from ..tensors.grown_arrays import length_of
from ..values.asked import AS_ARRAY
from ..values.differentiated import differentiating, is_differentiated
from ..values.flatten import Results
from ..values.memory_order import layout_of
from ..values.modes import is_recording, no_grad
from ..values.nodes import have_own_backward, next_sequence, place_of, targets_behind
from ..values.plain_arrays import require_plain_array
from ..values.refusals import explaining_errors
from ..values.tensor import Tensor, make
from ..values.value_kinds import kind_of_value
from .call_roots import (
    argument_text,
    contents_of,
    explore_call,
    substituted_arguments,
)
from .counters import NONE, Counted, Counting, LoopCounters, counted
from .guards import Guards
from .leaf_gradients import Gradients
from .refused_gradients import recorded, refused_nodes, results_without
from .signature import Call, conform, is_number, spec_of_leaf
from .standpoints import Standpoints
from .substitution import CachedFound, ChangesFound, Substitution
from .traced import Pulled, Traced, Written
from .ways import RowsOfBatch


def trace_call(
    function: Callable[..., Any],
    call: Call,
    name: str,
    answers: Sequence[np.ndarray] = (),
    containers: dict[int, Any] | None = None,
    rolls_turns: bool = True,
    counters: LoopCounters = NONE,
    indexes_arrays: bool = False,
    unfollowed: str = "",
) -> Traced:
    """Trace `function` on stand-ins for the arguments of `call`, along the path that this call takes.

    Args:
        answers: to the first questions that the function asks of traced values.
        containers: those that other traces have changed, by identity; this one adds its own.
        rolls_turns: whether `while` loops may become loops of other numbers of turns than this call takes.
        counters: Python's numbers that are traced values.
        indexes_arrays: whether arrays that it makes are Tensors from the start. Else they are, in a second
            trace, where the first one has an ndarray that is read at traced positions: it would hold for
            these positions alone.
        unfollowed: why what it asks of tables can't be followed, as other traces have found: then their
            content is a guard.

    Raises:
        OutputError: it returns what is no tensor.
        MutationError: it writes to what it reaches, or what has a gradient to an argument.
        LeakedTraceError: it stores a traced value outside.
        TraceError: it calls itself without end.
    """
    written = {} if containers is None else containers

    def trace(answers: Sequence[np.ndarray], indexes_arrays: bool) -> Traced:
        given = function, call, name, answers, written, rolls_turns, counters, indexes_arrays
        reason = unfollowed
        if not reason:
            try:
                return _traced(*given, follows_tables=True)
            except TablesUnfollowed as error:
                reason = str(error)
        found = _traced(*given, follows_tables=False)
        note = f"the content of tables is a constant, and each is traced anew: {reason}"
        return replace(found, unfollowed=reason, notes=(*found.notes, note))

    traced = trace(answers, indexes_arrays)
    if indexes_arrays or len(answers) or traced.has_effects or not _asks_for_positions(traced):
        return traced
    try:
        other = trace((), True)
    except Exception:  # code that takes arrays alone
        return traced
    return traced if _asks_for_positions(other) else replace(other, indexes_arrays=True)


def _asks_for_positions(traced: Traced) -> bool:
    """Whether a trace holds for some integers or bools in arrays alone, since NumPy has asked for them."""
    asked = (one.node for one in traced.guards.guards if one.question == AS_ARRAY)
    return any(node.dtype.kind in "iub" and node.shape for node in asked)


def _traced(
    function: Callable[..., Any],
    call: Call,
    name: str,
    answers: Sequence[np.ndarray],
    written: dict[int, Any],
    rolls_turns: bool,
    counters: LoopCounters,
    indexes_arrays: bool,
    follows_tables: bool,
) -> Traced:
    changed, kept, rule_depth = Changed(containers=written), 0, 1
    while True:
        run = _Run(
            function,
            call,
            name,
            answers,
            changed,
            rolls_turns,
            counters,
            indexes_arrays,
            rule_depth,
            follows_tables,
        )
        try:
            return run.traced(written)
        except DeeperRuleNeeded as error:
            rule_depth = error.depth
        except CachedFound as error:
            kept += len(error.properties)
            if kept > MOST_NUMBERS:
                raise MutationError(
                    f"{name} asks objects for properties that these do not keep. Pass what they compute."
                ) from None
            error.keep()
        except ChangesFound as error:
            found = error.found
            if (
                found.numbers <= changed.numbers and found.containers.keys() <= changed.containers.keys()
            ) or len(changed.numbers) > MOST_NUMBERS:
                raise MutationError(
                    f"{name} changes numbers that it reaches from outside at other places in every trace. "
                    "Return the new values instead."
                ) from None
            changed |= found
        except (Exception, Unfollowed) as error:
            if run.reading.queries is None:
                raise
            raise TablesUnfollowed(str(error) or type(error).__name__) from None


class TablesUnfollowed(Exception):
    """A trace that fails where what it asks of tables is followed, and why."""


MOST_NUMBERS = 1000
"""That a function may change where it reaches them."""


class _Run:
    """One trace of one call."""

    def __init__(
        self,
        function: Callable[..., Any],
        call: Call,
        name: str,
        answers: Sequence[np.ndarray],
        changed: Changed,
        rolls_turns: bool,
        counters: LoopCounters,
        indexes_arrays: bool,
        rule_depth: int,
        follows_tables: bool,
    ) -> None:
        self.function = function
        self.call = call
        self.name = name
        self.leaves = call.described()
        self.reading = explore_call(function, call, name, changed, indexes_arrays, follows_tables)
        self.substitution = Substitution(self.reading, self._replacement, name, draws=True)
        self.source_nodes: dict[Source, Node] = {}
        self.source_tensors: dict[Source, Tensor] = {}
        """The stand-ins of those that are arguments as well."""
        tensors = [one for one in call.arrays if isinstance(one, Tensor)]
        tensors += [source.value for source in self.reading.sources if isinstance(source.value, Tensor)]
        self.takes_tensors = bool(tensors)
        self.records = is_recording() and any(tensor.requires_grad for tensor in tensors)
        self.trace = Trace(name, self.records, answers, math.inf if self.records else rule_depth)
        outside = {id(holder.value) for holder in self.reading.holders}
        self.counting = Counting(self.trace, counters, outside)
        self.standpoints = Standpoints(self.trace, self.reading.asks_identity, self.counting)
        self.counted = Counted()
        self.rolls_turns = rolls_turns and not (changed.numbers or changed.containers)
        self.trace.follows_rows = RowsOfBatch(self.trace, self.standpoints, self.rolls_turns).body
        self.stand_ins: list[tuple[Tensor, Node, str]] = []
        self.given: dict[int, tuple[Any, Node]] = {}
        """By the id of a stand-in what it stands for, and its input node."""
        self.gradients = Gradients(name, self.trace, self.given, self.stand_ins)
        self.differentiated: list[Tensor] = []
        """The stand-ins of what depends on an argument of a transform around the call."""
        self.of_tables: list[Node] = []
        """The input nodes of what tables answer."""
        if self.reading.queries is not None:
            self.reading.queries.begin(self._enter_answer)

    def traced(self, written: dict[int, Any]) -> Traced:
        """The trace; where there is none, what it has changed and drawn is put back.

        Args:
            written: gets the containers that it has changed, by identity.
        """
        streams, noted = Streams(self.reading.streams), self.trace.streams
        self.trace.stood = streams.stood
        try:
            traced = self._traced()
            if label := streams.moved(noted):
                refuse_moved(streams, label, self.name)
            DrawOrder(self.trace).put_back()
        except BaseException as error:
            self.substitution.put_back()
            if self.reading.queries is not None:
                self.reading.queries.drop()
            label = streams.moved(noted)
            if label or isinstance(error, PullbackError | ChangesFound | DeeperRuleNeeded | Unfollowed):
                for stream, state in noted.items():
                    stream.set_state(state)
            if label and isinstance(error, Exception):
                refuse_moved(streams, label, self.name)  # without compiling it may work, or raises the same
            if isinstance(error, EagerOnlyError | ChangesFound | DeeperRuleNeeded):
                self._refuse_to_run_again()
            raise
        finally:
            self.counting.put_back()
        written.update(self.substitution.commit())
        return traced

    def _refuse_to_run_again(self) -> None:
        """Raise where the trace has changed what cannot be put back: the next run would change it twice."""
        if self.reading.read is not None and self.reading.read() is None:
            raise MutationError(
                f"{self.name} changes, while it runs, a set or an object that it reaches from outside, and "
                "cannot be compiled. Pass it as an argument, or call the undecorated function."
            )

    def _traced(self) -> Traced:
        kinds = iter(self.call.kinds)
        arguments = [
            self._stand_in(leaf, next(kinds), described.name, f"its argument '{described.name}'")
            for leaf, described in zip(self.call.leaves, self.leaves)
            if described.is_array
        ]
        inputs = [node for _, node, _ in self.stand_ins]
        if self.reading.asks_identity:
            arguments = self._shared(arguments)
        for source in self.reading.sources:
            value = source.value._value if isinstance(source.value, Tensor) else source.value
            given = pairs_of.evaluate(value) if value.dtype.kind == "c" else value
            node = self.source_nodes[source] = make_named_input(spec_of_leaf(given), source.label)
            self.trace.preset(value, _whole(value, node))
            self.trace.values.give(node, conform(given))
        value = self._run(arguments)
        results = Results(value, self.name)
        results.shorten(length_of)
        with tracing(self.trace):
            results.leaves = [self.counting.returned(leaf) for leaf in results.leaves]
            recorded_leaves = results.leaves if self.records else ()
            gone = results_without(recorded_leaves)
            outputs = [
                stop_gradient(self._output(leaf)) if place in gone else self._output(leaf)
                for place, leaf in enumerate(results.leaves)
            ]
            written = self._written()
            with no_grad():  # no gradient comes from the caller's memory
                outputs += [cut_off(_given_to_programs(self._output(tensor))) for tensor, _ in written]
            stand_ins = {id(tensor): node for tensor, node, _ in self.stand_ins}
            overwritten = refused_nodes(recorded_leaves, gone, stand_ins)
            outputs += [self._output(one.tensor._grad) for one in self.gradients.new]
            self._end_queries()
            pulled = self._pull_on_tape(results.leaves, gone)
            self._check_hooks(results.leaves)
            count = len(outputs)
            outputs += [one for one in self.trace.counts if one is not None]
            outputs, pulled, asked = self._finished(outputs, pulled)
            guards = Guards(asked)
        outputs[count:count] = guards.outputs
        used = set(Graph(self.name, (), (*outputs, *pulled.gradients.values())).nodes)
        layouts = self._layouts()
        used |= {node for _, node in written} | {node for node, _ in layouts}
        used |= {one.node for one in self.gradients.noted.values()}
        gradients = [one for one in self.gradients.noted.values() if one.before_node in used]
        of_gradients = [one.before_node for one in gradients if one.before_node is not None]
        sources = [
            index for index, source in enumerate(self.reading.sources) if self.source_nodes[source] in used
        ]
        self.trace.keep_contents(functools.partial(covers, self.reading.compared))
        owns_constants = self.trace.owns_captured()  # before anything else refers to them
        constants = [(array, node) for array, node in self.trace.captured if node in used]
        drawn = self.trace.drawn  # all: what is not used is drawn as well, as without compiling
        of_draws = [node for _, nodes in drawn for node in nodes]
        taken = [self.reading.sources[index] for index in sources]
        graph = Graph(
            self.name,
            (
                *inputs,
                *(self.source_nodes[source] for source in taken),
                *of_gradients,
                *(node for _, node in constants),
                *of_draws,
            ),
            tuple(outputs),
            self._origin(),
        )
        names = [node.name for node in (*graph.inputs, *graph.nodes)]
        give_letters([node.shape for node in graph.inputs], names)
        checked(graph, "the trace")
        others = (*gradients, *constants, *of_draws)
        values = (*self.call.arrays, *(one.value for one in taken), *(None for _ in others))
        needs_grad = tuple(map(self._needs_grad, values))
        return Traced(
            name=self.name,
            graph=graph,
            results=results,
            reading=self.reading,
            argument_names=tuple(one.name for one in self.leaves if one.is_array),
            sources=tuple(sources),
            constants=tuple(conform(array) for array, _ in constants),
            written=tuple(self._how_written(tensor, graph.inputs.index(node)) for tensor, node in written),
            overwritten=tuple(one.among(graph.inputs, needs_grad) for one in overwritten),
            layouts=tuple((graph.inputs.index(node), layout) for node, layout in layouts),
            gone=gone,
            gradients=self.gradients.among(graph, len(results.leaves) + len(written), gradients),
            drawn=tuple(draw for draw, _ in drawn),
            streams=self.trace.streams,
            guards=guards,
            notes=self.trace.notes,
            needs_grad=needs_grad,
            kinds=tuple(map(kind_of_value, results.leaves)),
            takes_tensors=self.takes_tensors,
            gradient=pulled.as_gradient(graph, needs_grad, self._again(taken)) if pulled.outputs else None,
            dropped=self.trace.dropped,
            counters=self.counting.counters,
            counted=self.counted,
            owns_constants=owns_constants,
            updates=self._updates(),
            identities=pattern_of(self._identified()) if self.reading.asks_identity else None,
        )

    def _finished(self, outputs: Sequence[Node], pulled: Pulled) -> tuple[list[Node], Pulled, list[Guard]]:
        """The nodes of the trace, each variable's name at the last that a call has made for it, with the
        derivatives among them taken."""
        from ...codegen.derivatives.taken import Taken  # not at start
        from ...codegen.rewriting.split_complex import Split
        from ...codegen.rolling.tables import with_tables

        outputs, guards = self._with_turns_rolled(outputs, pulled)
        values = (*outputs, *pulled.gradients.values(), *(guard.node for guard in guards))
        graph = name_results(Graph(self.name, (), values))
        if not pulled.gradients:
            shared = self.trace.stack_drawn(self.trace.share_captured(graph.outputs))
            shared = with_tables(shared, self.trace.own_contents, self.trace.capture)
            graph = graph if shared == graph.outputs else graph.with_outputs(shared)
        split = Split(graph)
        taken = Taken(split.graph)
        self.trace.notes += taken.notes
        found = iter(taken.outputs)
        return (
            [next(found) for _ in outputs],
            replace(pulled, gradients={variable: next(found) for variable in pulled.gradients}),
            [
                replace(one, node=next(found), serial=taken.order.serial(split.order.serial(one.serial)))
                for one in guards
            ],
        )

    def _with_turns_rolled(
        self, outputs: Sequence[Node], pulled: Pulled
    ) -> tuple[Sequence[Node], Sequence[Guard]]:
        """The outputs and guards, with `while` loops for any number of turns."""
        from ...codegen.rolling.turns import roll_turns  # not at start

        self.standpoints.forget()
        guards = self.trace.guards
        if not self.rolls_turns or pulled.gradients:
            return outputs, guards
        rolled = roll_turns(outputs, guards, self.trace.equal_captured(), self.trace.capture)
        self.trace.notes += rolled.notes
        asks_identity = self.standpoints.asks_identity
        self.counted = counted(guards, rolled.guards, rolled.numbers, self.counting.ranges, asks_identity)
        return rolled.outputs, rolled.guards

    def _identified(self) -> list[Any]:
        """What may be one object: the array arguments, then what the function reaches."""
        given = [leaf for leaf, one in zip(self.call.leaves, self.leaves) if one.is_array]
        return [*given, *(source.value for source in self.reading.sources)]

    def _shared(self, arguments: list[Tensor]) -> list[Tensor]:
        """The stand-ins of the arguments, one for those that are one object."""
        values = self._identified()
        names = [one.name for one in self.leaves if one.is_array]
        labels = [*names, *(source.label for source in self.reading.sources)]
        require_alike(self.name, values, labels, set(filter(self.is_differentiated, names)))
        for source, first in zip(self.reading.sources, pattern_of(values)[len(arguments) :]):
            if first < len(arguments):
                self.source_tensors[source] = arguments[first]
        return shared(values[: len(arguments)], arguments)

    def _updates(self) -> Updates | None:
        numbers = self.substitution.numbers()
        return Updates(numbers, len(self.reading.sources)) if numbers else None

    def _check_hooks(self, leaves: Sequence[Any]) -> None:
        """Raise where hooks were left in what stays after the call, or have stored what they were given.

        Raises:
            MutationError: they were registered on what is the caller's. OutputError: a result that is to keep
                its gradient. LeakedTraceError: a hook has stored a gradient.
        """
        for tensor, _, description in self.stand_ins:
            if tensor._hooks is not None and any(tensor._hooks.values()):
                raise MutationError(
                    f"{self.name} registers a hook on {description}, which would stay there after the call, "
                    "and be one more with each. Register it outside of the compiled function, or on a value "
                    "that is computed in it."
                )
        for leaf in leaves:
            if isinstance(leaf, Tensor) and leaf.retains_grad:
                raise OutputError(
                    f"{self.name} calls retain_grad() on a value that it returns. Its gradient is not kept "
                    "in a compiled function: return what autograd.grad gives, or do not compile."
                )
        if have_own_backward(targets_behind(recorded(leaves if self.records else ()).values())):
            self.substitution.check()

    def _pull_on_tape(self, leaves: Sequence[Any], gone: Mapping[int, str]) -> Pulled:
        """The gradients on the tape, if it knows what the graph does not: a Function's backward, a hook."""
        asked = (place for place, leaf in enumerate(leaves) if _requires_grad(leaf) and place not in gone)
        tensors = {position: leaves[position] for position in asked}
        nodes = [tensor.grad_fn for tensor in tensors.values() if tensor.grad_fn is not None]
        if not self.records or not have_own_backward(targets_behind(nodes)):
            return Pulled((), (), {})
        variables = {node: tensor for tensor, node, _ in self.stand_ins if tensor._requires_grad}
        for source, node in self.source_nodes.items():
            if isinstance(source.value, Tensor) and source.value.requires_grad:
                variables.setdefault(node, source.value)
        payloads = [tensor._value for tensor in tensors.values()]
        cotangents = [make_input(node.spec, f"d_{node.name or 'value'}") for node in payloads]
        found = autograd.grad(
            list(tensors.values()),
            list(variables.values()),
            [make(node) for node in cotangents],
            create_graph=True,
            allow_unused=True,
        )
        values = {node: one._value for node, one in zip(variables, found) if one is not None}
        gradients = {node: pairs_of(one) if one.dtype.kind == "c" else one for node, one in values.items()}
        return Pulled(tuple(tensors), tuple(cotangents), gradients)

    def _again(self, taken: Sequence[Source]) -> Callable[[Sequence[Tensor]], Sequence[Any]]:
        """What runs the function once more, in another trace, where its gradient is differentiated."""
        function, call, name, reading = self.function, self.call, self.name, self.reading
        kinds, is_array = call.kinds, call.is_array
        call = call.with_arrays([np.zeros(())] * len(call.arrays))  # which keeps none of the caller's arrays
        reason = (
            "draws random numbers" if self.trace.drawn
            else "asks which of its arguments are one object" if reading.asks_identity
            else "takes arrays out of tables" if reading.queries is not None
            else "calls backward()" if self.gradients.noted
            else ""
        )  # fmt: skip

        def again(inputs: Sequence[Tensor]) -> Sequence[Any]:
            if reason:
                raise GradientError(
                    f"{name} {reason}, and has hooks or a Function that writes into its inputs, so that its "
                    "gradient can not be differentiated when it is compiled. Call the function that "
                    "is not compiled."
                )
            own = [apply(identity, one) for one in inputs]  # which it may write into
            arguments = iter([of_kind(one, kind) for one, kind in zip(own, kinds)])
            of_sources = {
                source: of_kind(
                    apply(of_pairs, one) if source.is_complex else one, kind_of_value(source.value)
                )
                for source, one in zip(taken, own[len(kinds) :])
            }
            substitution = Substitution(
                reading, lambda source: of_sources.get(source, source.value), name, draws=True
            )
            leaves = [next(arguments) if flag else leaf for leaf, flag in zip(call.leaves, is_array)]
            try:
                run = substitution.root(0, function)
                args, kwargs = substituted_arguments(call, leaves, substitution)
                return Results(run(*args, **kwargs), name).leaves
            finally:
                substitution.put_back()

        return again

    def _enter_answer(self, array: np.ndarray, label: str) -> Node:
        """The input node of what a table has answered."""
        node = make_named_input(spec_of_leaf(array), label)
        self.trace.values.give(node, array)
        self.of_tables.append(node)
        return node

    def _end_queries(self) -> None:
        """Let what tables have answered be sources, which are read in each call."""
        queries = self.reading.queries
        if queries is None:
            return
        queries.end()
        answers = [Source(array, label) for array, label in queries.inputs]
        queries.inputs = []
        self.reading = replace(self.reading, sources=(*self.reading.sources, *answers))
        self.source_nodes.update(zip(answers, self.of_tables))

    def _needs_grad(self, value: Any) -> bool:
        return self.records and isinstance(value, Tensor) and value.requires_grad

    def _origin(self) -> Origin:
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        if code is None:
            return Origin("", 0, "")
        return Origin(code.co_filename, code.co_firstlineno, "")

    def _stand_in(
        self, leaf: Any, kind: type[Tensor], label: str, description: str, node: Node | None = None
    ) -> Tensor:
        is_source = node is not None
        if node is None:
            node = make_named_input(spec_of_leaf(leaf), label)
            if isinstance(leaf, Tensor):
                leaf.refresh()
            self.trace.values.give(node, conform(leaf))
            if is_number(leaf) and not self.is_differentiated(label):
                self.trace.numbers[node] = label
        tensor = make(_whole(leaf, node) if is_source else node, kind)
        tensor._requires_grad = self._needs_grad(leaf)
        self.stand_ins.append((tensor, node, description))
        self.given[id(tensor)] = leaf, node
        self._note_layout(leaf, node)
        if tensor._requires_grad and is_differentiated(leaf):
            self.differentiated.append(tensor)
        return tensor

    def _note_layout(self, leaf: Any, node: Node) -> None:
        """Let the trace know of an array that does not lie in C's order."""
        array = leaf._value if isinstance(leaf, Tensor) else leaf
        if not isinstance(array, np.ndarray) or array.flags.c_contiguous:
            return
        steps = [step // array.itemsize for step in array.strides]
        self.trace.input_strides[node] = (
            tuple(steps) if array.ndim == node.ndim else (*(2 * step for step in steps), 1)
        )

    def _layouts(self) -> list[tuple[Node, tuple[int, ...]]]:
        """How the inputs lie whose layout was asked for, where that matters."""
        found = []
        for leaf, node in self.given.values() if self.trace.layouts_matter else ():
            array = leaf._value if isinstance(leaf, Tensor) else leaf
            if isinstance(array, np.ndarray) and array.ndim and node in self.trace.strides:
                found.append((node, layout_of(array)))
        return found

    def is_differentiated(self, label: str) -> bool:
        """Whether a leaf is part of an argument that is differentiated."""
        return label.partition("[")[0] in self.call.signature.dynamic

    def _replacement(self, source: Source) -> Tensor:
        value, label = source.value, source.label
        if source in self.source_tensors:
            return self.source_tensors[source]
        return self._stand_in(value, kind_of_value(value), label, label, self.source_nodes[source])

    def _run(self, arguments: Sequence[Tensor]) -> Any:
        """The result of the function, with what it wrote and stored checked."""
        substitution = self.substitution
        function = substitution.root(0, self.function)
        waiting = iter(arguments)
        leaves = [next(waiting) if one.is_array else leaf for leaf, one in zip(self.call.leaves, self.leaves)]
        args, kwargs = substituted_arguments(self.call, leaves, substitution)
        before = contents_of((args, kwargs))
        self.trace.lost_numbers.root = sys._getframe().f_code
        self.trace.standpoint, self.trace.over = self.standpoints.now, self.counting.over
        self.trace.over_elements = self.counting.over_elements
        self.trace.at_gradient = self.gradients.note
        with (
            tracing(self.trace),
            differentiating(list(map(place_of, self.differentiated)), next_sequence()),
            explaining_errors(),
            self.counting.entering(),
        ):
            try:
                result = function(*args, **kwargs)
            except RecursionError:
                raise TraceError(
                    f"{self.name} calls itself without end while it is traced: the depth of Python's stack "
                    "is used up. Write a loop, or pass what ends the recursion as a static argument, e.g. "
                    "@compile(static_argnames=...)."
                ) from None
        self.counting.require_unwritten()
        self._check_arguments(before, contents_of((args, kwargs)))
        substitution.check()
        return result

    def _written(self) -> list[tuple[Tensor, Node]]:
        """What stands for memory that the function has written into, and the input nodes of that."""
        found = []
        for tensor, node, description in self.stand_ins:
            tensor.refresh()
            value = tensor._value
            if value is node or (value.operator is of_pairs and value.operands[0] is node):
                continue
            if tensor._requires_grad and tensor._grad_fn is not None:
                raise MutationError(
                    f"{self.name} writes a value with a gradient into {description}. A gradient cannot flow "
                    "into the caller's memory: return the value, or write tensor.detach()."
                )
            found.append((tensor, node))
        return found

    def _how_written(self, tensor: Tensor, position: int) -> Written:
        version, place = tensor._cell
        trace = self.trace
        is_recorded, is_rebound = id(tensor._cell) in trace.recorded_writes, id(tensor) in trace.rebound
        return Written(position, version, place, is_recorded, is_rebound)

    def _check_arguments(self, before: dict[Any, Any], after: dict[Any, Any]) -> None:
        if before.keys() != after.keys() or any(after[path] is not before[path] for path in before):
            changed = next(
                path for path in (*before, *after) if before.get(path, self) is not after.get(path, self)
            )
            raise MutationError(
                f"{self.name} changes a container among its arguments at {argument_text(changed)} while it "
                "is traced; later calls would not. Build a new container and return it."
            )

    def _output(self, leaf: Any) -> Node:
        value = leaf
        if isinstance(leaf, Tensor):
            leaf.refresh()
            value = leaf._value
        if not isinstance(value, Node):
            require_plain_array(value, f"a result of {self.name}")
            value = np.asarray(value)
            if value.dtype not in SUPPORTED:
                raise OutputError(
                    f"{self.name} returns an array of dtype {value.dtype}; expected a bool, integer, "
                    "floating or complex dtype. Compute it outside of the compiled function."
                )
            value = self.trace.capture(value)
        return identity(value) if value.is_input else value


def _given_to_programs(node: Node) -> Node:
    """A value of what the function reaches, as programs take it: complex numbers as pairs of real ones."""
    return pairs_of(node) if node.dtype.kind == "c" else node


def _whole(value: Any, node: Node) -> Node:
    """The node of a value, given its input: complex numbers are given as pairs of real ones."""
    return of_pairs(node) if spec_of_leaf(value).dtype.kind == "c" else node


def _requires_grad(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad
