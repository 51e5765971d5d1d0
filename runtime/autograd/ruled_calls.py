"""Calls of functions with a rule of their own for their derivative: plain, on the tape, and in a trace.

Whatever the form in which users give the rule, it is a `RuledCall`. Plainly, and on the tape, its functions
get what a plain call would give them: arrays for arrays. So they may call code that knows nothing of Tensors.
In a trace both are traced, and the call is a node of the graph (`tracer/ops/control.py`), in loops and
choices too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...tracer.errors import GradientError, OutputError
from ...tracer.graph import Graph, Node, constant, make_input
from ...tracer.ops.control import Body, Rule, no_rule_message
from ...tracer.origin import current_origin
from ...tracer.spec import CONTINUOUS, Spec, spec_of
from ...tracer.trace import current_trace
from ..functions.structures import Structured, spec_of_tensor, structured
from ..tape.apply import of_kind, standing_for
from ..tape.bodies import BodyInput, TracedBody, trace_body
from ..tape.ruled import apply_ruled
from ..values.flatten import flatten, leaf_paths, path_text, unflatten
from ..values.modes import enable_grad, is_recording
from ..values.nodes import FREED, Edge, GradNode, Saved, edge_of, tensor_at
from ..values.tensor import Tensor, make
from ..values.value_kinds import NumpyScalar, PythonNumber, kind_of_value, plain
from .foreign_calls import call_python, outside_of_traces, sample_of

Function = Callable[..., Any]
MOST_NESTED = 3
"""How often the rule of a function that calls the function is traced for a call of it: for as many
derivatives."""
_rules_under_way: ContextVar[tuple[Any, ...]] = ContextVar("rules_under_way", default=())
"""The functions whose rules are being traced, one inside of the other."""
_forward_under_way: ContextVar[tuple[Any, ...]] = ContextVar("forward_under_way", default=())
"""The functions that are being traced with their residuals: what calls itself to have its result."""


@dataclass(frozen=True, eq=False)
class RuledCall:
    """One call of a function with a rule.

    Attributes:
        owner: the function with the rule.
        name: what it is called.
        arguments: those that have a gradient, each perhaps nested.
        run: from them to the result.
        forward: from them to the result and residuals.
        backward: from residuals, and a cotangent of the structure of the result, to one for each argument.
        outside: the same call of the functions as they are outside of traces.
        fixed: what else the functions are given, arguments without gradient and options.
        missing: the positions of the arguments that the rule does not speak of.
    """

    owner: Any
    name: str
    arguments: tuple[Any, ...]
    run: Function
    forward: Callable[..., tuple[Any, Any]]
    backward: Callable[[Any, Any], Sequence[Any]]
    outside: Callable[[], RuledCall]
    fixed: tuple[Any, ...] = ()
    missing: frozenset[int] = frozenset()

    def missing_leaves(self, structure: Any) -> set[int]:
        """The leaves of those arguments."""
        owners = [number for number, one in enumerate(structure.children()) for _ in range(one.num_leaves)]
        return {place for place, owner in enumerate(owners) if owner in self.missing}


def call_ruled(call: RuledCall) -> Any:
    """The result of a call, recorded or made a node of the graph where there is a tape or a graph.

    Raises:
        GradientError: the function takes something from outside of its arguments that has a gradient; the
            rule gives cotangents of other shapes than the arguments.
    """
    leaves, structure = flatten(call.arguments)
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    if any(isinstance(one.payload, Node) for one in tensors):
        if any(one is call.owner for one in _forward_under_way.get()):
            return call.run(*call.arguments)
        return _Traced(call, leaves, structure).result()
    if is_recording() and any(one.requires_grad for one in tensors):
        return _recorded(call, leaves, structure)
    return call.run(*unflatten(structure, [plain(leaf) for leaf in leaves]))


def _refuse_outside(call: RuledCall) -> None:
    raise GradientError(
        f"{call.name} has a rule of its own for its derivative, and uses a tensor from outside of its "
        "arguments that requires a gradient; the rule says nothing of that one. Pass it as an argument, or "
        "detach() it."
    )


def _kind_in_rule(tensor: Tensor) -> type[Tensor]:
    """As what a rule gets a value: Python's numbers as NumPy's, whose arithmetic does not raise."""
    return NumpyScalar if isinstance(tensor, PythonNumber) else type(tensor)


def _is_continuous(tensor: Tensor) -> bool:
    return tensor._value.dtype.kind in CONTINUOUS


# --- on the tape ------------------------------------------------------------------------------------------


def _recorded(call: RuledCall, leaves: Sequence[Any], structure: Any) -> Any:
    """The result of `forward`, with one node of the tape."""
    shown = [_shown(leaf) for leaf in leaves]
    with enable_grad():
        returned, residuals = call.forward(*unflatten(structure, shown))
    result = structured(returned, call.name, "result")
    node = RuledBackward(call, leaves, shown, structure, result)
    outputs = [node.placed(number, one) for number, one in enumerate(result.tensors)]
    node.save(residuals, returned)
    return result.restored(outputs)


def _shown(leaf: Any) -> Any:
    """What a plain call would be given in the place of a Tensor that is on the tape."""
    if not isinstance(leaf, Tensor):
        return leaf
    shown = make(leaf.payload, type(leaf))
    shown._cell = leaf._cell
    return plain(shown)


class RuledBackward(GradNode):
    """The tape's node of a call with a rule."""

    __slots__ = ("arguments", "call", "outputs", "residuals", "result", "shown", "specs", "structure")

    def __init__(
        self, call: RuledCall, leaves: Sequence[Any], shown: Sequence[Any], structure: Any, result: Structured
    ) -> None:
        super().__init__([edge_of(leaf) if isinstance(leaf, Tensor) else None for leaf in leaves])
        self.call = call
        self.structure = structure
        self.specs = [spec_of_tensor(leaf) if isinstance(leaf, Tensor) else None for leaf in leaves]
        self.shown: dict[int, int] = {id(one): place for place, one in enumerate(shown)}
        self.arguments: list[Any] | None = list(leaves)
        self.result = _specs(result)
        self.outputs = len(result.tensors)
        self.residuals: Any = None

    def name(self) -> str:
        return f"{self.call.name}Backward"

    def placed(self, number: int, output: Tensor) -> Tensor:
        if output.requires_grad:
            _refuse_outside(self.call)
        if not _is_continuous(output):
            return output
        placed = make(output.payload, type(output))
        placed._cell = output._cell
        placed._grad_fn, placed._output_nr, placed._requires_grad = self, number, True
        return placed

    def save(self, residuals: Any, returned: Any) -> None:
        """Keep the residuals: arguments and results with their place on the tape, others as they are."""
        assert self.arguments is not None
        leaves, structure = flatten(residuals)
        results = {id(one): number for number, one in enumerate(_present(flatten(returned)[0]))}
        saved = [self._saved(leaf, results) for leaf in leaves]
        self.residuals = (structure, saved)
        if not any(isinstance(one, _Computed) for one in saved):
            self.arguments = None
        else:  # a second derivative runs `forward` once more, on the tape
            self.arguments = [_Kept.of(leaf) if isinstance(leaf, Tensor) else leaf for leaf in self.arguments]
        self.shown = {}

    def _saved(self, leaf: Any, results: Mapping[int, int]) -> Any:
        assert self.arguments is not None
        place = self.shown.get(id(leaf))
        if place is not None and isinstance(self.arguments[place], Tensor):
            return _Kept.of(self.arguments[place])
        if not isinstance(leaf, Tensor | np.ndarray | np.inexact | float | complex):
            return leaf
        tensor = standing_for(leaf)
        if tensor.requires_grad:
            _refuse_outside(self.call)
        if id(leaf) in results and _is_continuous(tensor):
            return _Kept(tensor, None, results[id(leaf)])
        return _Computed(tensor, None) if _is_continuous(tensor) else _Kept(tensor, None)

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        if self.residuals is None:
            raise GradientError(FREED)
        for place in self.call.missing_leaves(self.structure):
            if wanted[place]:
                raise GradientError(no_rule_message(self.call.name, place))
        structure, saved = self.residuals
        if create_graph and self.arguments is not None:
            saved = self._computed_again(saved)
        residuals = unflatten(structure, [self._restored(one, create_graph) for one in saved])
        given = self.result.restored(
            [
                _cotangent(one, spec, kind, create_graph)
                for one, spec, kind in zip(
                    cotangents, self.result.specs, map(_kind_in_rule, self.result.tensors)
                )
            ]
        )
        found = _fitted(self.call, self.call.backward(residuals, given), self.structure, self.specs)
        return [
            None if one is None or not asked else one if create_graph else one.payload
            for one, asked in zip(found, wanted)
        ]

    def _restored(self, one: Any, create_graph: bool) -> Any:
        if not isinstance(one, _Kept):
            return one
        return one.linked(self) if create_graph else plain(one.detached())

    def _computed_again(self, saved: Sequence[Any]) -> list[Any]:
        """The residuals, computed on the tape."""
        assert self.arguments is not None
        arguments = [one.linked(self) if isinstance(one, _Kept) else one for one in self.arguments]
        with enable_grad():
            _, residuals = self.call.forward(*unflatten(self.structure, arguments))
        again = flatten(residuals)[0]
        return [new if isinstance(old, _Computed) else old for old, new in zip(saved, again)]

    def release(self) -> None:
        self.residuals = self.arguments = None


class _Kept:
    """A value kept for a backward pass, of its kind; `number` of a result of the node itself."""

    def __init__(self, tensor: Tensor, edge: Edge | None, number: int | None = None) -> None:
        self.kind = _kind_in_rule(tensor)
        self.saved = Saved(tensor.payload, edge, tensor._cell)
        self.number = number

    @classmethod
    def of(cls, tensor: Tensor) -> _Kept:
        return cls(tensor, edge_of(tensor))

    def detached(self) -> Tensor:
        return make(self.saved.checked(), self.kind)

    def linked(self, node: GradNode) -> Tensor:
        """With its place on the tape."""
        edge = self.saved.edge if self.number is None else (node, self.number)
        return of_kind(tensor_at(self.saved.checked(), edge, self.saved.cell), self.kind)


class _Computed(_Kept):
    """A residual that is neither an argument nor a result: its own derivative is not on the tape."""


def _specs(result: Structured) -> Structured:
    """The structure of a result, with values that hold no memory."""
    empty = [
        make(np.broadcast_to(np.zeros((), one._value.dtype), one._value.shape), type(one))
        for one in result.tensors
    ]
    return result.with_tensors(empty)


def _present(leaves: Sequence[Any]) -> list[Any]:
    return [leaf for leaf in leaves if leaf is not None]


def _cotangent(given: Any, spec: Spec, kind: type[Tensor], create_graph: bool) -> Tensor:
    """The cotangent of a result, of its kind; zeros where nothing depends on it."""
    if given is None:
        return make(np.zeros(spec.shape, spec.dtype), kind)
    tensor = given if isinstance(given, Tensor) else make(np.asarray(given))
    return of_kind(tensor, kind)


def _fitted(
    call: RuledCall, returned: Any, structure: Any, specs: Sequence[Spec | None]
) -> list[Tensor | None]:
    """The cotangents that a rule has returned, one for each leaf of the arguments.

    Raises:
        GradientError: it returned something else than a cotangent, or None, for each argument, or of other
            shapes.
    """
    count = structure.num_children
    if not isinstance(returned, tuple | list) or len(returned) != count:
        found = f"{len(returned)} values" if isinstance(returned, tuple | list) else type(returned).__name__
        raise GradientError(
            f"The rule of {call.name} must return a tuple with the cotangent of each of its {count} "
            f"arguments, or None; it returned {found}."
        )
    found_leaves: list[Tensor | None] = []
    for number, (one, inner) in enumerate(zip(returned, structure.children())):
        found_leaves += _fitted_argument(call, one, inner, number)
    paths = leaf_paths(structure)
    for position, (one, spec) in enumerate(zip(found_leaves, specs)):
        if one is None or spec is None:
            continue
        if tuple(one._value.shape) != tuple(spec.shape):
            raise GradientError(
                f"The rule of {call.name} returned a cotangent of shape {tuple(one._value.shape)} for "
                f"argument {paths[position][0]}{path_text(paths[position][1:])}, which has shape "
                f"{tuple(spec.shape)}."
            )
        found_leaves[position] = one.to(spec.dtype)
    return found_leaves


def _fitted_argument(call: RuledCall, given: Any, structure: Any, number: int) -> list[Tensor | None]:
    if given is None:
        return [None] * structure.num_leaves
    leaves, found = flatten(given)
    if found.num_leaves != structure.num_leaves:
        raise GradientError(
            f"The rule of {call.name} returned a cotangent with {found.num_leaves} leaves for argument "
            f"{number}, which has {structure.num_leaves}. It must have the structure of the argument."
        )
    return [None if leaf is None else _as_cotangent(call, leaf, number) for leaf in leaves]


def _as_cotangent(call: RuledCall, leaf: Any, number: int) -> Tensor:
    if not isinstance(leaf, Tensor | np.ndarray | np.generic | float | complex | int):
        raise GradientError(
            f"The rule of {call.name} returned a {type(leaf).__name__} as cotangent of argument {number}; "
            "expected a tensor, an array, a number or None."
        )
    return standing_for(leaf)


# --- in a trace -------------------------------------------------------------------------------------------


class OnTapeOnly(Exception):
    """A function does what a rule alone does not show: it writes into arguments, or asks what is not used."""


class _Traced:
    """A call in a trace: its two functions as graphs, in one node for each result."""

    def __init__(self, call: RuledCall, leaves: Sequence[Any], structure: Any) -> None:
        self.call = call
        self.leaves = leaves
        self.structure = structure
        self.places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]

    def result(self) -> Any:
        given = structured([self.leaves[place] for place in self.places], self.call.name, "arguments")
        names = [getattr(one.payload, "name", "") or "x" for one in given.tensors]
        inputs = [one._replace(name=name) for one, name in zip(given.inputs(), names)]
        self._stand_ins: list[Tensor] = []
        self._samples = list(map(sample_of, given.tensors))
        forward = trace_body(self.call.name, self._forward, inputs)
        if any(one.requires_grad for one in forward.constants):
            _refuse_outside(self.call)
        results = [index for index, one in enumerate(self.returned.tensors) if _is_continuous(one)]
        computed = [self._tensor_of(source) for source in self._sources]
        residuals = [BodyInput(spec_of_tensor(one), name_of(one), _kind_in_rule(one)) for one in computed]
        cotangents = [
            BodyInput(spec_of_tensor(one), f"d_{name_of(one)}", _kind_in_rule(one))
            for one in (self.returned.tensors[index] for index in results)
        ]
        self._results, self._count = results, len(residuals)
        origin = current_origin()
        graph = forward.graph(self.call.name, origin)
        operands = [*given.tensors, *forward.constants]
        own = tuple(range(len(self.places)))
        rule = Rule(self.call.name, None, (), (), tuple(results), own, len(own))
        if _rules_under_way.get().count(self.call.owner) < MOST_NESTED:
            backward = self._traced_rule([*residuals, *cotangents])
            more = [make_input(spec_of_tensor(one), "") for one in backward.constants]
            graph = Graph(graph.name, (*graph.inputs, *more), graph.outputs, origin)
            rule = self._rule(backward.graph(f"{self.call.name}_rule", origin), len(forward.inputs))
            operands += backward.constants
        tensors = apply_ruled(operands, Body(graph, rule=rule))
        return self.returned.restored(tensors[: len(self.returned.tensors)])

    def _traced_rule(self, inputs: Sequence[BodyInput]) -> TracedBody:
        token = _rules_under_way.set((*_rules_under_way.get(), self.call.owner))
        try:
            backward = trace_body(f"the rule of {self.call.name}", self._backward, inputs)
        finally:
            _rules_under_way.reset(token)
        if any(one.requires_grad for one in backward.constants):
            _refuse_outside(self.call)
        return backward

    def _forward(self, tensors: list[Tensor]) -> list[Tensor]:
        self._stand_ins = tensors
        token = _forward_under_way.set((*_forward_under_way.get(), self.call.owner))
        try:
            with _attempt():
                returned, residuals = self.call.forward(*unflatten(self.structure, self._with(tensors)))
        except OnTapeOnly:
            raise
        except Exception as error:  # whatever foreign code makes of what stands for arrays
            returned, residuals = self._forward_by_python(tensors, error)
        finally:
            _forward_under_way.reset(token)
        self.returned = structured(returned, self.call.name, "result")
        leaves, self._residual_structure = flatten(residuals)
        arguments = {id(one): ("argument", place) for place, one in enumerate(tensors)}
        results = {id(one): ("result", place) for place, one in enumerate(_present(flatten(returned)[0]))}
        self._sources: list[tuple[str, int]] = []
        self._residuals: list[Any] = []
        own: list[Tensor] = []
        for leaf in leaves:
            source = arguments.get(id(leaf)) or results.get(id(leaf))
            if source is None and isinstance(leaf, Tensor | np.ndarray):
                source = ("computed", len(self.returned.tensors) + len(own))
                own.append(standing_for(leaf))
            if source is not None and source not in self._sources:
                self._sources.append(source)
            self._residuals.append(leaf if source is None else _Place(self._sources.index(source)))
        self._own = own
        return [*self.returned.tensors, *own]

    def _forward_by_python(self, tensors: list[Tensor], reason: Exception) -> tuple[Any, Any]:
        """The same, where the function is not traced: Python calls it with arrays, and it gives arrays."""
        kinds = [type(one) for one in tensors]
        outside = self.call.outside()

        def run(*arrays: np.ndarray) -> _Returned:
            values = self._with([_plain(array, kind) for array, kind in zip(arrays, kinds)])
            return _Returned(self.call, values, *outside.forward(*unflatten(self.structure, values)))

        try:
            sample = outside_of_traces(run, *self._samples)
        except Exception as error:
            raise error from reason
        made = call_python(
            self.call.owner,
            ("forward", sample.form, self.structure, tuple(kinds), self._fixed()),
            self.call.name,
            lambda *arrays: list(map(self._array, run(*arrays).values(sample.form))),
            tensors,
            [spec_of(self._array(one)) for one in sample.values(sample.form)],
        )
        kinded = [of_kind(one, kind_of_value(value)) for one, value in zip(made, sample.values(sample.form))]
        return sample.restored(kinded, self._with(tensors))

    def _array(self, leaf: Any) -> np.ndarray:
        """What foreign code gave, as an array."""
        if not isinstance(leaf, Tensor):
            return np.asarray(leaf)
        if leaf.requires_grad:
            _refuse_outside(self.call)
        return leaf.payload

    def _fixed(self, *more: Any) -> tuple[Any, ...]:
        """What tells calls apart besides their arrays."""
        others = [leaf for place, leaf in enumerate(self.leaves) if place not in self.places]
        return tuple(map(_identity_of, (*self.call.fixed, *others, *more)))

    def _with(self, tensors: Sequence[Tensor]) -> list[Any]:
        values = list(self.leaves)
        for place, tensor in zip(self.places, tensors):
            values[place] = tensor
        return values

    def _tensor_of(self, source: tuple[str, int]) -> Tensor:
        kind, place = source
        if kind == "argument":
            return self._stand_ins[place]
        return [*self.returned.tensors, *self._own][place]

    def _backward(self, tensors: list[Tensor]) -> list[Tensor]:
        residuals, given = tensors[: self._count], dict(zip(self._results, tensors[self._count :]))
        values = [residuals[leaf.number] if isinstance(leaf, _Place) else leaf for leaf in self._residuals]
        every = [
            given[index] if index in given else make(constant(0, spec_of_tensor(one)), type(one))
            for index, one in enumerate(self.returned.tensors)
        ]
        try:
            with _attempt():
                found = self._pulled(self.call, values, every)
        except Exception as error:  # as above
            found = self._pulled_by_python(values, every, error)
        pairs = [(number, found[place]) for number, place in enumerate(self.places)]
        self._gradients = [
            (number, one)
            for number, one in pairs
            if one is not None and _is_continuous(self.leaves[self.places[number]])
        ]
        return [one for _, one in self._gradients]

    def _pulled(
        self, call: RuledCall, residuals: Sequence[Any], cotangents: Sequence[Tensor]
    ) -> list[Tensor | None]:
        """One cotangent, or None, for each leaf of the arguments."""
        cotangent = self.returned.restored(cotangents)
        returned = call.backward(unflatten(self._residual_structure, residuals), cotangent)
        specs = [spec_of_tensor(leaf) if isinstance(leaf, Tensor) else None for leaf in self.leaves]
        return _fitted(call, returned, self.structure, specs)

    def _pulled_by_python(
        self, residuals: Sequence[Any], cotangents: Sequence[Tensor], reason: Exception
    ) -> list[Tensor | None]:
        """The same, where the rule is not traced; zeros for None, which nobody knows before."""
        given = (*residuals, *cotangents)
        operands = [leaf for leaf in given if isinstance(leaf, Tensor)]
        kinds = [type(one) for one in operands]
        wanted = [place for place in self.places if _is_continuous(self.leaves[place])]
        outside = self.call.outside()
        specs = [spec_of_tensor(self.leaves[place]) for place in wanted]

        def run(*arrays: np.ndarray) -> list[np.ndarray]:
            waiting = iter([_plain(array, kind) for array, kind in zip(arrays, kinds)])
            values = [next(waiting) if isinstance(leaf, Tensor) else leaf for leaf in given]
            found = self._pulled(
                outside, values[: len(residuals)], list(map(standing_for, values[len(residuals) :]))
            )
            return [
                np.zeros(tuple(map(int, spec.shape)), spec.dtype) if one is None else self._array(one)
                for one, spec in zip((found[place] for place in wanted), specs)
            ]

        try:
            outside_of_traces(run, *map(sample_of, operands))
        except Exception as error:
            raise error from reason
        fixed = self._fixed(*(leaf for leaf in self._residuals if not isinstance(leaf, _Place)))
        key = ("rule", self._residual_structure, self.structure, tuple(kinds), fixed)
        label = f"{self.call.name}_rule"
        gradients: list[Tensor | None] = [None] * len(self.leaves)
        for place, one in zip(wanted, call_python(self.call.owner, key, label, run, operands, specs)):
            gradients[place] = one
        return gradients

    def _rule(self, graph: Graph, arguments: int) -> Rule:
        """The rule; its graph reads residuals, operands, what it takes from outside, and cotangents."""
        inner = [(place, number) for number, (kind, place) in enumerate(self._sources) if kind != "argument"]
        outer = [(place, number) for number, (kind, place) in enumerate(self._sources) if kind == "argument"]
        count = self._count
        cotangents = graph.inputs[count : count + len(self._results)]
        outside = graph.inputs[count + len(self._results) :]
        own = len(self.places)
        missing = self.call.missing_leaves(self.structure)
        inputs = (
            *(graph.inputs[number] for _, number in inner),
            *(graph.inputs[number] for _, number in outer),
            *outside,
            *cotangents,
        )
        return Rule(
            self.call.name,
            Graph(graph.name, inputs, graph.outputs, graph.origin),
            tuple(place for place, _ in inner),
            (*(place for place, _ in outer), *range(arguments, arguments + len(outside))),
            tuple(self._results),
            tuple(number for number, _ in self._gradients),
            own,
            tuple((number, place) for number, place in enumerate(self.places) if place in missing),
        )


@contextmanager
def _attempt() -> Iterator[None]:
    """Inside, a function is traced that may not know Tensors: if it fails, it leaves nothing in the trace."""
    trace = current_trace()
    dropped = trace.dropped
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="float\\(\\) of a tensor that requires grad")
            yield
    except Exception:
        trace.dropped = dropped
        raise


def _plain(array: np.ndarray, kind: type[Tensor]) -> Any:
    """What foreign code is given for an array; it must not write into it."""
    array.flags.writeable = False
    return plain(make(array, kind))


def _identity_of(value: Any) -> Any:
    """What equal values share for which calls are alike; of what may change nothing else has it."""
    if isinstance(value, str | bytes | bool | int | float | complex | type | None):
        return type(value), repr(value)  # as text: 0.0 is not -0.0
    return object()


def _is_value(leaf: Any, call: RuledCall) -> bool:
    """Whether a leaf of a result or of residuals is a value that may be another in each call.

    Raises:
        OutputError: it is neither that nor None or a text, which are the same in all of them.
    """
    if leaf is None or isinstance(leaf, str):
        return False
    if not isinstance(leaf, Tensor | np.ndarray | np.generic | float | complex | int):
        raise OutputError(
            f"{call.name}: compiled code calls it in Python, and it gave a {type(leaf).__name__} as result "
            "or residual. Let results and residuals be arrays, numbers, and containers of these."
        )
    return True


class _Returned:
    """What foreign code gave: a result, and residuals, which may be arguments or parts of the result."""

    def __init__(self, call: RuledCall, arguments: Sequence[Any], result: Any, residuals: Any) -> None:
        self._call = call
        self._leaves, self._structure = flatten((result, residuals))
        count = self._structure.child(0).num_leaves
        places = {id(one): ("argument", place) for place, one in enumerate(arguments)}
        sources: list[tuple[str, int] | None] = []
        for place, leaf in enumerate(self._leaves):
            known = places.get(id(leaf)) if place >= count else None
            sources.append(known or (("value", place) if _is_value(leaf, call) else None))
            if place < count:
                places[id(leaf)] = ("value", place)
        self.form = (self._structure, tuple(sources))
        """Where each leaf is from; what is neither an argument nor a value is the same in all calls."""

    def values(self, form: Any) -> list[Any]:
        """The values, each once.

        Raises:
            OutputError: what is an argument, or part of the result, is another than in the trace.
        """
        if form != self.form:
            raise OutputError(
                f"{self._call.name} gave results and residuals of another form than in the trace: which of "
                "them are its arguments, and which None, must not depend on values. Return copies."
            )
        return [leaf for place, leaf in enumerate(self._leaves) if self.form[1][place] == ("value", place)]

    def restored(self, values: Sequence[Any], arguments: Sequence[Any]) -> Any:
        """The same structure with other values and arguments."""
        waiting = iter(values)
        found: list[Any] = []
        for place, (leaf, source) in enumerate(zip(self._leaves, self.form[1])):
            if source is None:
                found.append(leaf)
            elif source == ("value", place):
                found.append(next(waiting))
            else:
                found.append((arguments if source[0] == "argument" else found)[source[1]])
        return unflatten(self._structure, found)


@dataclass(frozen=True)
class _Place:
    """Where among the values that a rule is given a residual is."""

    number: int


def name_of(tensor: Tensor) -> str:
    return getattr(tensor._value, "name", "") or "x"
