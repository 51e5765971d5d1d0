"""Calls of functions with a rule of their own for their derivative: plain, and on the tape.

Whatever the form in which users give the rule, it is a `RuledCall` (`rules.py`). Plainly, and on the tape,
its functions get what a plain call would give them: arrays for arrays. So they may call code that knows
nothing of Tensors. In a trace both are traced (`traced_rules.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...tracer.errors import GradientError, MissingRuleError
from ...tracer.graph import Node
from ...tracer.ops.control import no_rule_message
from ...tracer.spec import Spec
from ..functions.structures import Structured, spec_of_tensor, structured
from ..tape.apply import of_kind, standing_for
from ..values.flatten import flatten, unflatten
from ..values.modes import enable_grad, is_recording
from ..values.nodes import FREED, Edge, GradNode, Saved, edge_of, tensor_at
from ..values.tensor import Tensor, make
from ..values.value_kinds import plain
from .rules import RuledCall, fitted, is_continuous, kind_in_rule, refuse_outside, values_of
from .traced_rules import TracedCall


def call_ruled(call: RuledCall) -> Any:
    """The result of a call, recorded or made a node of the graph where there is a tape or a graph.

    Raises:
        GradientError: the function takes something from outside of its arguments that has a gradient; the
            rule gives cotangents of other shapes than the arguments.
    """
    leaves, structure = flatten(call.arguments)
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    if any(isinstance(one.payload, Node) for one in tensors):
        return TracedCall(call, leaves, structure).result()
    if is_recording() and any(one.requires_grad for one in tensors):
        return _recorded(call, leaves, structure)
    return call.run(*unflatten(structure, [plain(leaf) for leaf in leaves]))


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
            refuse_outside(self.call)
        if not is_continuous(output):
            return output
        placed = make(output.payload, type(output))
        placed._cell = output._cell
        placed._grad_fn, placed._output_nr, placed._requires_grad = self, number, True
        return placed

    def save(self, residuals: Any, returned: Any) -> None:
        """Keep the residuals: arguments and results with their place on the tape, others as they are."""
        assert self.arguments is not None
        leaves, structure = flatten(residuals)
        results = {id(one): number for number, one in enumerate(values_of(returned))}
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
            refuse_outside(self.call)
        if id(leaf) in results and is_continuous(tensor):
            return _Kept(tensor, None, results[id(leaf)])
        is_number = place is not None and not isinstance(leaf, np.ndarray)  # nobody can write into it
        is_constant = is_number or not is_continuous(tensor)
        return _Kept(tensor, None) if is_constant else _Computed(tensor, None)

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        if self.residuals is None:
            raise GradientError(FREED)
        for place in self.call.missing_leaves(self.structure):
            if wanted[place]:
                raise MissingRuleError(no_rule_message(self.call.name, place))
        structure, saved = self.residuals
        if create_graph and self.arguments is not None:
            saved = self._computed_again(saved)
        residuals = unflatten(structure, [self._restored(one, create_graph) for one in saved])
        given = self.result.restored(
            [
                _cotangent(one, spec, kind, create_graph)
                for one, spec, kind in zip(
                    cotangents, self.result.specs, map(kind_in_rule, self.result.tensors)
                )
            ]
        )
        found = fitted(self.call, self.call.backward(residuals, given), self.structure, self.specs)
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
        self.kind = kind_in_rule(tensor)
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


def _cotangent(given: Any, spec: Spec, kind: type[Tensor], create_graph: bool) -> Tensor:
    """The cotangent of a result, of its kind; zeros where nothing depends on it."""
    if given is None:
        return make(np.zeros(spec.shape, spec.dtype), kind)
    tensor = given if isinstance(given, Tensor) else make(np.asarray(given))
    return of_kind(tensor, kind)
