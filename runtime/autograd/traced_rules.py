"""Calls of functions with a rule of their own in a trace: both traced, and a node of the graph.

There is a node (`tracer/ops/control.py`) for each result, in loops and choices too. What cannot be traced,
the function or the rule, Python calls as it is outside of the trace.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from operator import is_
from typing import Any

import numpy as np

from ...tracer.errors import OutputError
from ...tracer.graph import Graph, constant, make_input
from ...tracer.ops.control import Body, Rule
from ...tracer.origin import current_origin
from ...tracer.records import record
from ...tracer.spec import Spec, spec_of
from ...tracer.trace import current_trace
from ..functions.structures import spec_of_tensor, structured
from ..tape.apply import of_kind, standing_for
from ..tape.bodies import BodyInput, TracedBody, trace_body
from ..tape.ruled import apply_ruled
from ..values.call_text import pulling, repeating
from ..values.flatten import flatten, unflatten
from ..values.refusals import raised_plainly
from ..values.tensor import Tensor, make
from ..values.value_kinds import kind_of_value
from .foreign_calls import call_python, outside_of_traces, sample_of
from .rules import RuledCall, fitted, is_continuous, kind_in_rule, refuse_outside, values_of

MOST_NESTED = 3
"""How often the rule of a function that calls the function is traced for a call of it: for as many
derivatives."""
_rules_under_way: ContextVar[tuple[Any, ...]] = ContextVar("rules_under_way", default=())
"""The functions whose rules are being traced, one inside of the other."""
_forward_under_way: ContextVar[tuple[Any, ...]] = ContextVar("forward_under_way", default=())
"""The functions that are being traced with their residuals, which may call themselves for their result."""


class OnTapeOnly(Exception):
    """A function does what a rule alone does not show: it writes into arguments, or asks what is not used."""


class TracedCall:
    """A call in a trace: its two functions as graphs, in one node for each result."""

    def __init__(self, call: RuledCall, leaves: Sequence[Any], structure: Any) -> None:
        self.call = call
        self.leaves = leaves
        self.structure = structure
        self.places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]

    def result(self) -> Any:
        """What the call returns, of nodes of the graph."""
        if any(one is self.call.owner for one in _forward_under_way.get()):
            return self.call.run(*self.call.arguments)
        given = structured([self.leaves[place] for place in self.places], self.call.name, "arguments")
        inputs = [one._replace(name=name_of(tensor)) for one, tensor in zip(given.inputs(), given.tensors)]
        self._stand_ins: list[Tensor] = []
        self._samples = list(map(sample_of, given.tensors))
        forward = trace_body(self.call.name, self._forward, inputs)
        if any(one.requires_grad for one in forward.constants):
            refuse_outside(self.call)
        results = [index for index, one in enumerate(self.returned.tensors) if is_continuous(one)]
        computed = [self._tensor_of(source) for source in self._sources]
        residuals = [BodyInput(spec_of_tensor(one), name_of(one), kind_in_rule(one)) for one in computed]
        cotangents = [
            BodyInput(spec_of_tensor(one), f"d_{name_of(one)}", kind_in_rule(one))
            for one in (self.returned.tensors[index] for index in results)
        ]
        self._results, self._count = results, len(residuals)
        origin = current_origin()
        graph = forward.graph(self.call.name, origin)
        operands = [*given.tensors, *forward.constants]
        own = tuple(range(len(self.places)))
        rules = _rules_under_way.get()
        depth = len(rules) + len(_forward_under_way.get()) + 1
        rule = Rule(self.call.name, None, (), (), tuple(results), own, len(own), depth=depth)
        if depth <= current_trace().rule_depth and rules.count(self.call.owner) < MOST_NESTED:
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
            refuse_outside(self.call)
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
        results = {id(one): ("result", place) for place, one in enumerate(values_of(returned))}
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
        kinds = tuple(map(type, tensors))
        forward = self.call.outside().forward
        is_flat = len(self.places) == len(self.leaves) == len(self.call.arguments)

        def called(values: Sequence[Any]) -> tuple[Sequence[Any], Any, Any]:
            if is_flat:
                return values, *forward(*values)
            leaves = self._with(values)
            return leaves, *forward(*unflatten(self.structure, leaves))

        def sampled(*values: Any) -> _Returned:
            return _Returned(self.call, *called(values))

        try:
            sample = outside_of_traces(sampled, *self._samples)
        except Exception as error:
            raise raised_plainly(error, reason) from None

        def of_leaves(*values: Any) -> Sequence[Any]:
            return sample.again(*called(values))

        shapes = tuple(map(spec_of_tensor, tensors))
        made = call_python(
            self.call.owner,
            ("forward", sample.form, self.structure, kinds, self._fixed(), shapes),
            self.call.name,
            sample.repeating(forward, len(tensors)) if is_flat else of_leaves,
            tensors,
            [spec_of(np.asarray(one)) for one in sample.values(sample.form)],
            run_batch=(lambda count, *values: of_leaves(*values)) if self.call.vectorized else None,
        )
        kinded = [of_kind(one, kind) for one, kind in zip(made, sample.kinds)]
        return sample.restored(kinded, self._with(tensors))

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
            if one is not None and is_continuous(self.leaves[self.places[number]])
        ]
        return [one for _, one in self._gradients]

    def _pulled(
        self, call: RuledCall, residuals: Sequence[Any], cotangents: Sequence[Tensor]
    ) -> list[Tensor | None]:
        """One cotangent, or None, for each leaf of the arguments."""
        cotangent = self.returned.restored(cotangents)
        returned = call.backward(unflatten(self._residual_structure, residuals), cotangent)
        specs = [spec_of_tensor(leaf) if isinstance(leaf, Tensor) else None for leaf in self.leaves]
        return fitted(call, returned, self.structure, specs)

    def _pulled_by_python(
        self, residuals: Sequence[Any], cotangents: Sequence[Tensor], reason: Exception
    ) -> list[Tensor | None]:
        """The same, where the rule is not traced; zeros for None, which nobody knows before."""
        given = (*residuals, *cotangents)
        operands = [leaf for leaf in given if isinstance(leaf, Tensor)]
        kinds = [type(one) for one in operands]
        wanted = [place for place in self.places if is_continuous(self.leaves[place])]
        specs = [spec_of_tensor(self.leaves[place]) for place in wanted]
        every = [spec_of_tensor(leaf) if isinstance(leaf, Tensor) else None for leaf in self.leaves]
        outside = self.call.outside()
        zeros = {place: np.zeros(_extents(spec), spec.dtype) for place, spec in zip(wanted, specs)}

        first = sum(isinstance(leaf, Tensor) for leaf in residuals)
        put_some = _putting(self._residual_structure, residuals)
        put_others = _putting(self.returned.structure, _with_none(cotangents, self.returned.present))

        def settled(found: Any) -> list[Any]:
            fit = fitted(outside, found, self.structure, every)
            return [
                zeros[place] if one is None else _array(outside, one)
                for place, one in ((place, fit[place]) for place in wanted)
            ]

        def settle(chosen: Sequence[Any]) -> list[Any]:
            found = dict(zip(wanted, chosen))
            leaves = [found.get(place) for place in range(len(self.leaves))]
            return settled(tuple(unflatten(self.structure, leaves)))

        run = pulling(
            outside.backward,
            first,
            len(operands),
            put_some,
            put_others,
            self.structure.num_children if _is_flat(self.structure) else None,
            zeros,
            settled,
        )
        try:
            outside_of_traces(run, *map(sample_of, operands))
        except Exception as error:
            raise raised_plainly(error, reason) from None
        fixed = self._fixed(*(leaf for leaf in self._residuals if not isinstance(leaf, _Place)))
        shapes = tuple(map(spec_of_tensor, operands))
        key = ("rule", self._residual_structure, self.structure, tuple(kinds), fixed, shapes)
        label = f"{self.call.name}_rule"

        def of_batch(count: int, *values: Any) -> list[Any]:
            own = {place: spec.with_shape((count, *_extents(spec))) for place, spec in zip(wanted, specs)}
            found = outside.backward(_put(put_some, values[:first]), _put(put_others, values[first:]))
            fit = fitted(outside, found, self.structure, [own.get(n) for n in range(len(self.leaves))])
            return [
                np.zeros(own[place].shape, own[place].dtype) if one is None else _array(outside, one)
                for place, one in ((place, fit[place]) for place in wanted)
            ]

        made = call_python(
            self.call.owner, key, label, run, operands, specs, settle,
            of_batch if self.call.vectorized else None,
        )  # fmt: skip
        gradients: list[Tensor | None] = [None] * len(self.leaves)
        for place, one in zip(wanted, made):
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


def _extents(spec: Spec) -> tuple[int, ...]:
    return tuple(map(int, spec.shape))


def _is_flat(structure: Any) -> bool:
    """Whether a container has no others inside."""
    return bool(structure.num_nodes == structure.num_leaves + 1)


def _with_none(values: Sequence[Any], present: Sequence[bool]) -> list[Any]:
    """The values, and None where there is none."""
    waiting = iter(values)
    return [next(waiting) if here else None for here in present]


def _putting(structure: Any, leaves: Sequence[Any]) -> Callable[[Sequence[Any]], Any] | None:
    """What puts values into a structure in the places of its Tensors; None if it is one Tensor."""
    is_plain = structure.num_leaves == 1 == structure.num_nodes
    is_tuple = structure.type is tuple and _is_flat(structure)
    if all(isinstance(leaf, Tensor) for leaf in leaves) and (is_plain or is_tuple):
        return tuple if is_tuple else None

    def put(values: Sequence[Any]) -> Any:
        waiting = iter(values)
        return unflatten(structure, [next(waiting) if isinstance(leaf, Tensor) else leaf for leaf in leaves])

    return put


def _put(put: Callable[[Sequence[Any]], Any] | None, values: Sequence[Any]) -> Any:
    return values[0] if put is None else put(values)


@contextmanager
def _attempt() -> Iterator[None]:
    """Inside, a function is traced that may not know Tensors: if it fails, it leaves nothing in the trace."""
    trace = current_trace()
    dropped = trace.dropped
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="(float|complex)\\(\\) of a tensor that requires grad")
            yield
    except Exception:
        trace.dropped = dropped
        raise


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
        self._types = list(map(type, self._leaves))
        parts = [result, *(residuals if type(residuals) is tuple else (residuals,))]
        self._is_flat = len(parts) == len(self._leaves) and all(map(is_, parts, self._leaves))
        self._has_tuple = type(residuals) is tuple
        self._own = [place for place, source in enumerate(sources) if source == ("value", place)]
        self.kinds = [kind_of_value(self._leaves[place]) for place in self._own]
        self._are_tensors = any(isinstance(self._leaves[place], Tensor) for place in self._own)
        self._known = [(place, *one) for place, one in enumerate(sources) if one and place not in self._own]

    def repeating(self, forward: Callable[..., tuple[Any, Any]], count: int) -> Callable[..., Sequence[Any]]:
        """What gives the values of a call with so many arguments, as `again` does."""
        if self._is_flat and not self._are_tensors:
            return repeating(forward, count, self._types, self.form[1], self._has_tuple, self.again)
        return lambda *values: self.again(values, *forward(*values))

    def again(self, arguments: Sequence[Any], result: Any, residuals: Any) -> list[Any]:
        """The values of another call, of the same form, as arrays and numbers.

        Raises:
            OutputError: its form is another.
        """
        leaves, structure = flatten((result, residuals))
        if structure == self._structure and list(map(type, leaves)) == self._types:
            for place, kind, number in self._known:
                if leaves[place] is not (arguments if kind == "argument" else leaves)[number]:
                    break
            else:
                found = [leaves[place] for place in self._own]
                return [_array(self._call, one) for one in found] if self._are_tensors else found
        return _Returned(self._call, arguments, result, residuals).values(self.form)

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
        return [_array(self._call, self._leaves[place]) for place in self._own]

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


def _array(call: RuledCall, leaf: Any) -> Any:
    """What foreign code gave, as an array or a number."""
    if not isinstance(leaf, Tensor):
        return leaf
    if leaf.requires_grad:
        refuse_outside(call)
    return leaf.payload


@record(frozen=True)
class _Place:
    """Where among the values that a rule is given a residual is."""

    number: int


def name_of(tensor: Tensor) -> str:
    """What the user calls a value."""
    return getattr(tensor._value, "name", "") or "x"
