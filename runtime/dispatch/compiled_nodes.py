"""The tape's nodes of compiled calls: their backward is the generated one, or says why there is none."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...tracer.errors import GradientError
from ...tracer.trace import innermost
from ..tape.apply import wrap
from ..tape.engine import accumulate
from ..tracing.signature import conform
from ..tracing.traced import Overwritten
from ..values.modes import enable_grad
from ..values.nodes import FREED, Edge, GradNode, overwritten_message, tensor_at
from ..values.tensor import Tensor
from .callers_memory import payload

if TYPE_CHECKING:
    from .variant import Variant

ndarray = np.ndarray


@functools.cache
def _one(dtype: np.dtype) -> ndarray:
    """The cotangent that a backward pass starts with; programs only read it."""
    return np.ones((), dtype)


class CompiledNode(GradNode):
    """The tape's node of a compiled call: its backward is the generated one."""

    __slots__ = ("arrays", "output_cells", "overwritten_values", "produced", "saved")
    variant: Variant
    arrays: Sequence[ndarray] | None
    """The inputs of the forward function; None when released."""
    saved: Sequence[tuple[Any, int]]
    """The version cell of each input, and its version then."""
    produced: Sequence[ndarray]
    """What the forward function gave: results, then residuals."""
    output_cells: Sequence[Any]
    overwritten_values: Sequence[Overwritten]
    """What the function itself has overwritten that its backward needs; of a transform these are kept."""

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        if self.arrays is None:
            raise GradientError(FREED)
        if self.overwritten_values:
            self._require_kept(cotangents, wanted)
        variant = self.variant
        given = [cotangents[position] for position in variant.pair.cotangent_outputs]
        if create_graph or not all(map(_is_concrete, given)):
            self._check_versions()
            return self._pull_recorded(given)
        if variant.traced.gradient is not None and any(one is None for one in given):
            with enable_grad():
                found = self._pull_recorded(given)  # hooks and Functions see what nobody asks for
            return [one if one is None else one._value for one in found]
        produced = self.produced
        arrays = []
        for kind, index in variant.backward_inputs:
            if kind == "input":
                cell, version = self.saved[index]
                array = self.arrays[index]
            elif kind == "output":
                cell, version, array = self.output_cells[index], 0, produced[index]
            else:
                arrays.append(produced[index])
                continue
            if cell[0] != version:
                raise GradientError(overwritten_message(array, None, cell, version))
            arrays.append(array)
        for position, cotangent in zip(variant.pair.cotangent_outputs, given):
            if cotangent is None:
                cotangent = np.zeros_like(produced[position])
            elif type(cotangent) is not ndarray or not cotangent.flags.carray:
                cotangent = conform(cotangent)
            arrays.append(cotangent)
        gradients = variant.run_backward(arrays)
        connected = variant.pair.connected
        if all(connected):
            return gradients
        waiting = iter(gradients)
        return [next(waiting) if one else None for one in connected]

    def explain_anomaly(self, cotangents: list[Any], pulled: Sequence[Any]) -> None:
        """Raise what the graph of forward and backward tells, value by value."""
        from ..diagnosis.anomalies import are_finite, diagnose  # for who asks for it

        variant = self.variant
        values = [one._value if isinstance(one, Tensor) else one for one in pulled if one is not None]
        if innermost() is not None or are_finite(values):
            return
        graph, gradients = variant.joint
        caller = [*graph.inputs[: variant.traced.given], *graph.inputs[len(variant.traced.graph.inputs) :]]
        given = [
            np.zeros_like(self.produced[position]) if cotangents[position] is None else cotangents[position]
            for position in variant.pair.cotangent_outputs
        ]
        arrays = [*(self.arrays or ()), *(payload(one) for one in given)]
        diagnose(variant.traced.name, graph, arrays, gradients, caller)

    def backward_to_leaves(self, output: Tensor, retain_graph: bool) -> bool:
        """A whole backward pass, where the node stands alone between a scalar and leaves; False where not.

        It is the usual training step, and spares it the general pass, which costs more than the kernel.
        """
        if self.arrays is None or self.hooks is not None or output._value.ndim or innermost() is not None:
            return False
        leaves = [edge[0] for edge in self.edges if edge is not None]
        if any(not isinstance(leaf, Tensor) or leaf._hooks is not None for leaf in leaves):
            return False
        cotangents: list[Any] = [None] * self.outputs
        cotangents[output._output_nr] = _one(output._value.dtype)
        for leaf, gradient in zip(leaves, self.pull(cotangents, (), False)):
            if gradient is not None:
                accumulate(leaf, gradient, owned=self.variant.gives_fresh)
        if not retain_graph:
            self.release()
        return True

    def _pull_recorded(self, given: Sequence[Any]) -> Sequence[Any]:
        """The gradient with a history: the compiled gradient function, applied to Tensors."""
        pair, arrays = self.variant.pair, self.arrays or ()
        edges = dict(zip(self.variant.wrt, self.edges))
        inputs = [
            tensor_at(array, edges.get(position), cell)
            for position, (array, (cell, _)) in enumerate(zip(arrays, self.saved))
        ]
        is_on_tape = self.variant.traced.gradient is not None
        cotangents = [
            None if one is None and is_on_tape
            else wrap(np.zeros_like(self.produced[position]) if one is None else one)
            for position, one in zip(pair.cotangent_outputs, given)
        ]  # fmt: skip
        return list(self.variant.gradient_function(inputs, cotangents))

    def _require_kept(self, cotangents: Sequence[Any], wanted: Sequence[bool]) -> None:
        """GradientError if the gradients that are wanted need what the function has overwritten."""
        given = {place for place, one in enumerate(cotangents) if one is not None}
        asked = {place for place, one in enumerate(wanted or [True] * len(self.edges)) if one}
        for one in self.overwritten_values:
            if not given.isdisjoint(one.outputs) and not asked.isdisjoint(one.inputs):
                raise GradientError(one.message)

    def _check_versions(self) -> None:
        """GradientError if an input has been written to since."""
        for array, (cell, version) in zip(self.arrays or (), self.saved):
            if cell[0] != version:
                raise GradientError(overwritten_message(array, None, cell, version))

    def release(self) -> None:
        self.arrays = None
        self.saved = self.produced = self.output_cells = ()


class RefusedBackward(GradNode):
    """The tape's node of a result whose gradient the function itself has used up, or overwritten."""

    __slots__ = ("called", "message")

    def __init__(self, edges: Sequence[Edge | None], called: str, message: str) -> None:
        super().__init__(edges)
        self.called, self.message = called, message

    def name(self) -> str:
        return self.called

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        raise GradientError(self.message)


def _is_concrete(cotangent: Any) -> bool:
    return cotangent is None or issubclass(type(cotangent), ndarray | np.generic)
