"""The `.grad` of tensors that are the caller's, in a function that calls `backward()` or looks at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...tracer.errors import MutationError
from ...tracer.graph import Graph, Node, make_named_input
from ...tracer.origin import at_caller
from ...tracer.records import record
from ...tracer.trace import Trace
from ..values.tensor import Tensor, make
from .signature import conform, spec_of_leaf


@record(frozen=True)
class LeafGradient:
    """What a traced function does to the `.grad` of a tensor that is the caller's, or that it reaches."""

    position: int
    """Of the tensor among the graph's inputs."""
    before: tuple[bool, bool, bool]
    """What the trace found, see `gradient_state`."""
    is_taken: bool
    """Whether what is there before is an input of the graph."""
    output: int | None
    """Which of the graph's outputs takes its place."""
    is_gone: bool
    """Whether there is none afterwards."""


def gradient_state(tensor: Tensor) -> tuple[bool, bool, bool]:
    """What decides what a backward pass inside a function does to a tensor: whether it is a leaf, whether it
    has hooks, and whether there is a gradient to add to."""
    return tensor.grad_fn is None, tensor._hooks is not None, tensor._grad is not None


@record(frozen=True, eq=False)
class Gradient:
    """The `.grad` of what stands for a tensor."""

    tensor: Tensor
    node: Node
    """The input node of the tensor."""
    state: tuple[bool, bool, bool]
    before: Tensor | None
    """What stands for the gradient that is there before, and its input node."""
    before_node: Node | None

    @property
    def is_new(self) -> bool:
        """Whether another tensor has taken its place."""
        return self.tensor._grad is not None and self.tensor._grad is not self.before


class Gradients:
    """The gradients that a trace looks at or changes.

    Args:
        given: by the id of a stand-in what it stands for, and its input node.
        stand_ins: all of them, with descriptions; those of gradients join them.
    """

    def __init__(
        self,
        name: str,
        trace: Trace,
        given: Mapping[int, tuple[Any, Node]],
        stand_ins: list[tuple[Tensor, Node, str]],
    ) -> None:
        self.name = name
        self.trace = trace
        self.given = given
        self.stand_ins = stand_ins
        self.noted: dict[int, Gradient] = {}

    @property
    def new(self) -> list[Gradient]:
        return [one for one in self.noted.values() if one.is_new]

    def note(self, tensor: Tensor, accumulates: bool) -> None:
        """Let what stands for a tensor have what stands for its `.grad`, before that is looked at.

        Raises:
            MutationError: a backward pass in the function would go on outside of it.
        """
        leaf, node = self.given.get(id(tensor), (None, None))
        if not isinstance(leaf, Tensor) or node is None:
            return
        if accumulates:
            self._require_own_leaf(tensor, leaf)
        if id(tensor) in self.noted:
            return
        former, before = leaf._grad, None
        if former is not None and former._value.dtype.kind != "c" and not former._requires_grad:
            before = make_named_input(spec_of_leaf(former), f"{node.name}_grad")
            self.trace.preset(former.payload, before)
            self.trace.values.give(before, conform(former.payload))
            tensor._grad = make(before)
            self.stand_ins.append((tensor._grad, before, f"the .grad of {self._description_of(tensor)}"))
        elif former is not None:
            raise MutationError(
                f"{self.name} uses the .grad of {self._description_of(tensor)}, which is complex or has a "
                "history. Take gradients with pullback.autograd.grad."
            )
        self.noted[id(tensor)] = Gradient(tensor, node, gradient_state(leaf), tensor._grad, before)

    def _require_own_leaf(self, tensor: Tensor, leaf: Tensor) -> None:
        is_leaf, has_hooks, _ = gradient_state(leaf)
        if is_leaf and not has_hooks and not leaf.is_complex():
            return
        reason = "is computed from others" if not is_leaf else "has hooks" if has_hooks else "is complex"
        raise MutationError(
            f"{self.name} calls backward() while it is traced, and {self._description_of(tensor)} {reason}, "
            f"so that the pass would go on outside of it{at_caller()}. Return the loss and call backward() "
            "on the result, or take gradients with pullback.autograd.grad."
        )

    def _description_of(self, tensor: Tensor) -> str:
        return next(text for one, _, text in self.stand_ins if one is tensor)

    def among(
        self, graph: Graph, first: int, taken: Sequence[Gradient]
    ) -> tuple[LeafGradient, ...]:
        """What becomes of gradients; the first new one is an output at `first`."""
        places = iter(range(first, len(graph.outputs)))
        order = [*taken, *(one for one in self.noted.values() if one not in taken)]
        new = {id(one): next(places) for one in self.new}
        return tuple(
            LeafGradient(
                graph.inputs.index(one.node),
                one.state,
                one in taken,
                new.get(id(one)),
                one.tensor._grad is None and one.before is not None,
            )
            for one in order
        )
