"""The backward pass: cotangents walk the tape from the outputs to the leaves, the latest node first.

A node's sequence number is higher than those of the nodes that it has edges to, so taking the highest
number that is pending visits each node once, after everything that depends on it; no recursion, no counting.
In a trace the graph has the derivative, where it shows all that the tape does.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import reduce
from typing import Any

import numpy as np

from ...tracer.errors import MutationError
from ...tracer.graph import Node, is_step_towards
from ...tracer.ops.elementwise import add
from ...tracer.origin import at_caller, backward_of
from ...tracer.trace import innermost
from ..values.modes import enable_grad, no_grad
from ..values.nodes import Edge, GradNode, Hooks, OperatorNode, accumulator_of
from ..values.tensor import Tensor, make, mark_written
from .anomaly import is_anomaly_enabled, require_no_nan
from .apply import cut_off
from .derivatives import Way, gradients

Cotangent = Any  # a payload; under create_graph a Tensor
ndarray = np.ndarray


class Buffer:
    """What has arrived at one output of a node; `owned`: no one else holds that array."""

    __slots__ = ("owned", "value")

    def __init__(self, value: Cotangent, owned: bool) -> None:
        self.value = value
        self.owned = owned

    def add(self, value: Cotangent, owned: bool, target: Any, source: GradNode | None) -> None:
        """Add what else arrives, in place where an array of the right kind is at hand."""
        mine = self.value
        if self.owned and _takes_sum(mine, value):
            np.add(mine, value, out=mine)
        elif owned and _takes_sum(value, mine):
            self.value, self.owned = np.add(mine, value, out=value), True
        elif type(mine) is Node:
            with backward_of(value.origin, "accumulate"):
                self.value = named(add(mine, value), target, source)
        else:
            self.value, self.owned = add(mine, value), True


def _takes_sum(array: Cotangent, other: Cotangent) -> bool:
    return type(array) is ndarray and array.ndim > 0 and array.dtype == other.dtype


class Pass:
    """One backward pass.

    Args:
        create_graph: run the rules on Tensors and record them.
        retain_graph: keep what the nodes saved.
        inputs: edges whose gradients alone are wanted, to be found in `found`; None for all leaves, whose
            gradients are then accumulated.
    """

    def __init__(self, create_graph: bool, retain_graph: bool, inputs: Sequence[Edge] | None) -> None:
        self.create_graph = create_graph
        self.retain_graph = retain_graph
        self.inputs = None if inputs is None else {(id(target), number) for target, number in inputs}
        self.oldest = min((getattr(target, "sequence", 0) for target, _ in inputs or ()), default=0)
        """The sequence number that all nodes on a way to the inputs have at least."""
        self.pending: list[tuple[int, GradNode]] = []
        self.leaves: list[Tensor] = []
        self.buffers: dict[int, dict[int, Buffer]] = {}
        """By the target's id, then by output number; `pending` and `leaves` keep the targets alive."""
        self.found: dict[tuple[int, int], Cotangent] = {}
        """The gradients of `inputs` by the target's id and output number."""
        self.wanted: set[int] | None = None
        """The ids of the targets on a way to the inputs; None for all."""

    def run(self, roots: Sequence[Edge], cotangents: Sequence[Cotangent]) -> None:
        if self.inputs is not None:
            self.wanted = _on_the_way(roots, {target for target, _ in self.inputs}, self.oldest)
        mode: AbstractContextManager[None] = enable_grad() if self.create_graph else no_grad()
        quiet = nullcontext() if self.create_graph else np.errstate(all="ignore")
        with mode, quiet:
            way = Way.behind(roots, self.oldest) if innermost() is not None else None
            if way is None or not self.take_from_graph(way, roots, cotangents):
                for edge, cotangent in zip(roots, cotangents):
                    self.arrive(edge, cotangent, owned=False)
            while self.pending:
                self.visit(heapq.heappop(self.pending)[1])
            for leaf in self.leaves:
                self.finish(leaf)
            for key, value in self.found.items():
                self.found[key] = _apart(value)

    def take_from_graph(self, way: Way, roots: Sequence[Edge], cotangents: Sequence[Cotangent]) -> bool:
        """In a trace, let the graph have the gradients as derivatives, if it shows all that the tape has."""
        wanted = [
            (edge, values)
            for key, (edge, values) in way.values.items()
            if (key in self.inputs if self.inputs is not None else not isinstance(edge[0], GradNode))
        ]
        variables = [value for _, values in wanted for value in values]
        if not way.is_in_graph(variables):
            return False
        outer = {value: edge for edge, values in way.values.values() for value in values}
        found = iter(
            gradients(
                [make(way.value_of(edge)) for edge in roots],
                [one if isinstance(one, Tensor) else make(_array(one)) for one in cotangents],
                [make(value) for value in variables],
                outer if self.create_graph else {},
            )
        )
        for (target, number), values in wanted:
            gradient = reduce(add, [self.payload(next(found)) for _ in values])
            if isinstance(target, GradNode):
                self.found[id(target), number] = gradient
            else:
                self.leaves.append(target)
                self.buffers[id(target)] = {0: Buffer(gradient, owned=False)}
        for node in way.nodes if not self.retain_graph else ():
            if any(edge is not None and self.is_wanted(edge[0]) for edge in node.edges):
                node.release()
        return True

    def arrive(self, edge: Edge, cotangent: Cotangent, owned: bool, source: GradNode | None = None) -> None:
        """Add a cotangent, which a node sends, to what its target has."""
        target, number = edge
        at_target = self.buffers.get(id(target))
        if at_target is None:
            self.buffers[id(target)] = {number: Buffer(cotangent, owned)}
            if isinstance(target, GradNode):
                heapq.heappush(self.pending, (-target.sequence, target))
            else:
                self.leaves.append(target)
        elif number in at_target:
            at_target[number].add(cotangent, owned, target, source)
        else:
            at_target[number] = Buffer(cotangent, owned)

    def visit(self, node: GradNode) -> None:
        """Run a node on all that has arrived, and send the results on."""
        cotangents: list[Cotangent] = [None] * node.outputs
        for number, buffer in self.buffers.pop(id(node)).items():
            cotangents[number] = buffer.value
        wanted = [edge is not None and self.is_wanted(edge[0]) for edge in node.edges]
        is_last = self.inputs is not None and not any(wanted)
        if node.hooks is not None and is_last:
            cotangents = self.at_tensors(node.hooks, cotangents)
        if self.inputs is not None:
            self.catch(node, cotangents)
        if is_last:
            return
        if node.hooks is not None:
            cotangents = self.before(node.hooks, self.at_tensors(node.hooks, cotangents))
        pulled = node.pull(cotangents, wanted, self.create_graph)
        if is_anomaly_enabled():
            require_no_nan(node, cotangents, pulled)
        if node.hooks is not None and node.hooks.after:
            pulled = self.after(node, pulled, cotangents)
        if not self.retain_graph:
            node.release()
        fresh = isinstance(node, OperatorNode) and node.hooks is None
        for edge, value, is_wanted in zip(node.edges, pulled, wanted):
            if value is not None and edge is not None and is_wanted:
                owned = fresh and type(value) is ndarray and value.base is None and value is not cotangents[0]
                if type(value) is Node and value is not cotangents[0]:
                    value = named(value, edge[0], node)
                self.arrive(edge, value, owned, node)

    def is_wanted(self, target: Any) -> bool:
        return self.wanted is None or id(target) in self.wanted

    def catch(self, node: GradNode, cotangents: list[Cotangent]) -> None:
        for number, cotangent in enumerate(cotangents):
            if (id(node), number) in self.inputs and cotangent is not None:  # type: ignore[operator]
                self.found[id(node), number] = cotangent

    def finish(self, leaf: Tensor) -> None:
        """What has arrived at a leaf is its gradient: hooks see it, then it is caught or accumulated."""
        buffer = self.buffers.pop(id(leaf))[0]
        value, owned = buffer.value, buffer.owned
        if leaf._hooks is not None:
            for hook in list(leaf._hooks["gradient"].values()):
                value, owned = self.hooked(hook, value), False
        if self.inputs is not None:
            self.found[id(leaf), 0] = value
        elif leaf._requires_grad:
            self.add_to_leaf(leaf, value, owned)

    def add_to_leaf(self, leaf: Tensor, value: Cotangent, owned: bool) -> None:
        """Accumulate, between the hooks of the leaf's node."""
        node = None if leaf._hooks is None else accumulator_of(leaf)
        if node is not None and node.at_leaf.before:
            (value,), owned = self.before(node.at_leaf, [value]), False
        accumulate(leaf, value, owned)
        for hook in [] if node is None else list(node.at_leaf.after.values()):
            hook((), (self.tensor(value),))

    # --- hooks ------------------------------------------------------------------------------------------

    def tensor(self, value: Cotangent) -> Tensor | None:
        return value if value is None or isinstance(value, Tensor) else make(_array(value))

    def payload(self, value: Tensor | None) -> Cotangent:
        return value if value is None or self.create_graph else value._value

    def hooked(self, hook: Any, value: Cotangent) -> Cotangent:
        """The value, or what the hook returns in its place."""
        result = hook(self.tensor(value))
        return value if result is None else self.payload(result)

    def at_tensors(self, hooks: Hooks, cotangents: Sequence[Cotangent]) -> list[Cotangent]:
        """The hooks of the tensors that a node made, and then their gradients for those who keep them."""
        cotangents = list(cotangents)
        for number, of_tensor in hooks.tensors.items():
            for hook in list(of_tensor.values()):
                if cotangents[number] is not None:
                    cotangents[number] = self.hooked(hook, cotangents[number])
        for number, reference in hooks.retained.items():
            kept = reference()
            if kept is not None and cotangents[number] is not None:
                accumulate(kept, cotangents[number], owned=False)
        return cotangents

    def before(self, hooks: Hooks, cotangents: list[Cotangent]) -> list[Cotangent]:
        """The hooks of the node itself: they run when it does, and see what those of tensors have left."""
        for hook in list(hooks.before.values()):
            result = hook(tuple(map(self.tensor, cotangents)))
            if result is not None:
                cotangents = [self.payload(one) for one in _as_tuple(result)]
        return cotangents

    def after(
        self, node: GradNode, pulled: Sequence[Cotangent], cotangents: list[Cotangent]
    ) -> Sequence[Cotangent]:
        assert node.hooks is not None
        for hook in list(node.hooks.after.values()):
            result = hook(tuple(map(self.tensor, pulled)), tuple(map(self.tensor, cotangents)))
            if result is not None:
                pulled = [self.payload(one) for one in _as_tuple(result)]
        return pulled


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _array(value: Any) -> Any:
    """A payload: NumPy's scalars become 0-d arrays."""
    return value if isinstance(value, ndarray | Node) else np.asarray(value)


def _on_the_way(roots: Sequence[Edge], inputs: set[int], oldest: int) -> set[int]:
    """The ids of all targets from which an input is reached, the inputs included; `oldest` is the first."""
    nodes: dict[int, GradNode] = {}
    pending = [target for target, _ in roots]
    leaves = set()
    while pending:
        target = pending.pop()
        if not isinstance(target, GradNode):
            leaves.add(id(target))
        elif target.sequence >= oldest and id(target) not in nodes:
            nodes[id(target)] = target
            pending.extend(edge[0] for edge in target.edges if edge is not None)
    wanted = leaves & inputs
    for node in sorted(nodes.values(), key=lambda node: node.sequence):
        if id(node) in inputs or any(edge is not None and id(edge[0]) in wanted for edge in node.edges):
            wanted.add(id(node))
    return wanted


def named(value: Node, target: Any, source: GradNode | None) -> Node:
    """The graph node of a gradient that comes from a node, called `d_h` after the forward value `h`."""
    forward = target._value if isinstance(target, Tensor) else getattr(target, "forward", None)
    if value.name or not isinstance(forward, Node) or not forward.name:
        return value
    result = getattr(source, "forward", None)
    is_step = isinstance(result, Node) and is_step_towards(result, forward)
    return value if is_step else value.named(f"d_{forward.name}")


def accumulate(tensor: Tensor, gradient: Cotangent, owned: bool) -> None:
    """Add to `tensor.grad`, in place where it holds an array."""
    former = tensor._grad
    if isinstance(gradient, Tensor):
        tensor._grad = gradient if former is None else add(former, gradient)
    elif type(gradient) is Node or (former is not None and type(former._value) is not ndarray):
        _accumulate_node(tensor, gradient)
    elif former is None:
        tensor._grad = make(
            gradient if owned and type(gradient) is ndarray else np.array(gradient, order="C")
        )
    elif former._requires_grad or not former._value.flags.writeable:
        tensor._grad = make(np.asarray(former._value + gradient))
    else:
        np.add(former._value, gradient, out=former._value)
        mark_written(former)
    if tensor._hooks is not None:
        for hook in list(tensor._hooks["accumulated"].values()):
            hook(tensor)


def _accumulate_node(tensor: Tensor, gradient: Node) -> None:
    """In a trace: a gradient of what is outside of it would outlive it."""
    if type(tensor._value) is not Node:
        raise MutationError(
            f"backward() in a traced function would write the .grad of a tensor outside of it"
            f"{at_caller()}. Return the loss and call backward() on it outside, or take "
            f"gradients with pullback.grad or pullback.autograd.grad."
        )
    former = tensor._grad
    tensor._grad = make(_apart(gradient if former is None else add(former._value, gradient)))


def _apart(gradient: Cotangent) -> Cotangent:
    """A gradient as the user gets it: in a trace, of which gradients are taken in turn, without history."""
    return cut_off(gradient) if type(gradient) is Node else gradient
