"""The backward pass: cotangents walk the tape from the outputs to the leaves, the latest node first.

A node's sequence number is higher than those of the nodes that it has edges to, so going through all that
are behind the outputs by falling numbers visits each node once, after everything that depends on it; no
recursion, no counting.
In a trace the graph has the derivative, where it shows all that the tape does.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...tracer.errors import (
    ArgumentError,
    DTypeError,
    GradientError,
    MutationError,
    ShapeError,
)
from ...tracer.graph import Node, is_step_towards
from ...tracer.ops.elementwise import add
from ...tracer.origin import at_caller, backward_of
from ...tracer.quiet import IGNORED, floating_errors
from ...tracer.trace import innermost
from ..values.modes import no_grad, recording
from ..values.nodes import Behind, Edge, GradNode, Hooks, accumulator_of, targets_behind
from ..values.operator_nodes import OperatorNode
from ..values.tensor import Tensor, make, mark_written, note_gradient
from .anomaly import is_anomaly_enabled, require_no_nan
from .apply import cut_off
from .batched import may_be_batched, most_at_once, pulled_at_once
from .derivatives import Way, gradients
from .direct import direct
from .inplace import assign
from .plain_sweeps import add_arrays, refuse_matrix, sweep_plain

Cotangent = Any  # a payload; under create_graph a Tensor
UNKNOWN: Any = object()
ndarray = np.ndarray
add_tensors = direct(add, add)


def _leads_on(node: GradNode) -> bool:
    """Whether it has an edge, as all nodes of operators have."""
    return any(edge is not None for edge in node.edges)


class Pass:
    """One backward pass.

    Args:
        create_graph: run the rules on Tensors and record them.
        retain_graph: keep what the nodes saved.
        inputs: edges whose gradients alone are wanted, to be found in `found`; None for all leaves, whose
            gradients are then accumulated.
        ends: edges, each the id of a target and an output number, which the pass does not go.
        since: a sequence number that all nodes on a way to the inputs are known to have at least.
    """

    inputs: set[tuple[int, int]] | None = None
    input_ids: set[int]
    targets: list[tuple[int, int]]
    """The inputs as they were given."""
    oldest = 0
    """The sequence number that all nodes on a way to the inputs have at least."""
    nodes: list[GradNode]
    """Those behind the roots, in the order in which they were made."""
    leaves: list[Tensor]
    wanted: dict[int, bool] | None = None
    """By the ids of the targets on a way to the inputs whether all of their edges are on one; None of all."""

    def __init__(
        self,
        create_graph: bool,
        retain_graph: bool,
        inputs: Sequence[Edge] | None,
        ends: Container[tuple[int, int]] = (),
        since: int = 0,
    ) -> None:
        self.create_graph = create_graph
        self.retain_graph = retain_graph
        self.targets, self.input_ids = [], set()
        if inputs is not None:
            oldest = None
            for target, number in inputs:
                key = id(target)
                self.targets.append((key, number))
                self.input_ids.add(key)
                age = target.sequence if target._is_node else 0  # leaves are older than all nodes
                oldest = age if oldest is None or age < oldest else oldest
            self.inputs = set(self.targets)
            self.oldest = max(oldest or 0, since)
        self.ends = ends
        self.arrived: dict[Any, Cotangent] = {}
        """What has arrived, by `place_of` its target, which `nodes` and `leaves` keep alive."""
        self.borrowed: set[Any] = set()
        """The places whose cotangent others hold as well, so that nothing is added to it in place."""
        self.found: dict[tuple[int, int], Cotangent] = {}
        """The gradients of `inputs` by the target's id and output number."""

    def run(
        self,
        roots: Sequence[Edge],
        cotangents: Sequence[Cotangent],
        behind: Behind | None = None,
        wanted: Any = UNKNOWN,
    ) -> None:
        """Let the cotangents of the roots pass.

        What is `behind` these may be known, and which of that is `wanted` on the way to the inputs.

        Raises:
            LinearAlgebraError: LAPACK fails; with the line that asks for gradients.
        """
        self.reach(roots, behind, wanted)
        former = recording.set(self.create_graph)
        errors = None if self.create_graph else floating_errors.set(IGNORED)
        try:
            way = Way.behind(roots, self.oldest) if innermost() is not None else None
            if way is None or not self.take_from_graph(way, roots, cotangents):
                for edge, cotangent in zip(roots, cotangents):
                    self.arrive(edge, cotangent, owned=False)
                self.sweep()
            self.finish_leaves()
            if way is not None:
                self.found = {key: _apart(value) for key, value in self.found.items()}
        except np.linalg.LinAlgError as error:
            refuse_matrix(error)
        finally:
            recording.reset(former)
            if errors is not None:
                floating_errors.reset(errors)

    def reach(self, roots: Sequence[Edge], behind: Behind | None, wanted: Any = UNKNOWN) -> None:
        """Find what is behind the roots, and the ways to the inputs."""
        if behind is None:
            first = [target for target, number in roots if (id(target), number) not in self.ends]
            behind = targets_behind(first, self.oldest, self.ends)
        self.nodes, self.leaves = list(behind.nodes), behind.leaves
        if self.inputs is not None:
            self.wanted = self.on_the_way() if wanted is UNKNOWN else wanted

    def finish_leaves(self) -> None:
        for leaf in self.leaves:
            if (value := self.arrived.pop(id(leaf), None)) is not None:
                self.finish(leaf, value)

    def run_each(
        self, root: Edge, cotangents: np.ndarray, behind: Behind | None, places: Sequence[np.ndarray]
    ) -> None:
        """Let several cotangents pass, outside of traces, all at once where that is possible.

        What each of them is at the inputs is written into a row of `places`, which has zeros else. Raises as
        `run`.
        """
        assert self.inputs is not None and self.retain_graph and not self.create_graph
        self.reach([root], behind)
        nodes = self.nodes
        former, errors = recording.set(False), floating_errors.set(IGNORED)
        at_once = most_at_once(nodes, cotangents[0].size) if self.takes_many(cotangents) else 1
        try:
            if at_once > 1:
                for first in range(0, len(cotangents), at_once):
                    part = slice(first, first + at_once)
                    self.sweep_many(root, cotangents[part], [one[part] for one in places])
                return
            for row, cotangent in enumerate(cotangents):
                self.nodes, self.found = list(nodes), {}
                self.arrive(root, cotangent, owned=False)
                self.sweep()
                self.finish_leaves()
                for key, stacked in zip(self.targets, places):
                    if (value := self.found.get(key)) is not None:
                        stacked[row] = value
        except np.linalg.LinAlgError as error:
            refuse_matrix(error)
        finally:
            recording.reset(former)
            floating_errors.reset(errors)

    def takes_many(self, cotangents: np.ndarray) -> bool:
        """Whether several cotangents may pass at once."""
        are_plain = not is_anomaly_enabled() and all(leaf._hooks is None for leaf in self.leaves)
        is_real = cotangents.dtype.kind == "f" and len(cotangents) > 1
        return is_real and are_plain and may_be_batched(self.nodes)

    def sweep_many(self, root: Edge, cotangents: np.ndarray, places: Sequence[np.ndarray]) -> None:
        """`sweep` of many cotangents, along their first dimension."""
        arrived: dict[int, np.ndarray] = {id(root[0]): cotangents}
        for node in reversed(self.nodes):
            g = arrived.get(id(node))
            wanted = [edge is not None and self.is_wanted(edge[0]) for edge in node.edges]
            if g is None or not any(wanted):
                continue
            for edge, value in zip(node.edges, pulled_at_once(node, g, wanted)):
                if value is not None and edge is not None and self.is_wanted(edge[0]):
                    key = id(edge[0])
                    arrived[key] = arrived[key] + value if key in arrived else value
        for (key, _), stacked in zip(self.targets, places):
            if key in arrived:
                stacked[...] = arrived[key]

    def on_the_way(self) -> dict[int, bool] | None:
        """What is `wanted`: the targets from which an input is reached, the inputs included."""
        inputs = self.input_ids
        reaching = dict.fromkeys(inputs.intersection(map(id, self.leaves)), True)
        is_first = not self.nodes or self.nodes[0].sequence >= self.oldest
        if is_first and len(reaching) == len(self.leaves):
            for node in self.nodes:
                if not (node.runs_rules or _leads_on(node)):
                    break
            else:
                return None
        for node in self.nodes:
            if node.sequence < self.oldest:
                continue
            leads, strays = id(node) in inputs, False
            for edge in node.edges:
                if edge is not None:
                    if id(edge[0]) in reaching:
                        leads = True
                    else:
                        strays = True
            if leads:
                reaching[id(node)] = not strays
        return reaching

    def sweep(self) -> None:
        """Run the nodes, the latest first, each on all that has arrived at it."""
        nodes, arrived, borrowed, own = self.nodes, self.arrived, self.borrowed, self.input_ids
        are_plain = not is_anomaly_enabled() and innermost() is None
        is_recorded = are_plain and self.create_graph and not self.ends
        wanted = self.wanted
        while nodes:
            if are_plain and not self.create_graph:
                sweep_plain(nodes, arrived, borrowed, wanted, own, self.retain_graph, self.ends)
                if not nodes:
                    return
            node: Any = nodes.pop()
            key = id(node)
            if not (is_recorded and node.hooks is None and node.runs_rules):
                self.visit(node)
                continue
            g = arrived.pop(key, None)
            if g is None:
                continue
            if key in own:
                self.catch(node, [g])
                if wanted is not None and not any(edge and id(edge[0]) in wanted for edge in node.edges):
                    continue
            asked = None
            if wanted is not None and not (is_whole := wanted.get(key)):
                if is_whole is None:
                    continue
                asked = [edge is not None and id(edge[0]) in wanted for edge in node.edges]
            pulled = node.pull_recorded(g, asked)
            if not self.retain_graph and node.versions:
                node.release()
            for edge, value in zip(node.edges, pulled):
                if edge is None or value is None:
                    continue
                target, number = edge
                place: Any = id(target)
                if asked is not None and place not in wanted:  # type: ignore[operator]  # which `asked` is of
                    continue
                if number:
                    place = place, number
                mine = arrived.get(place)
                arrived[place] = value if mine is None else add_tensors(mine, value)

    def add(
        self, place: Any, value: Cotangent, is_borrowed: bool, target: Any, source: GradNode | None
    ) -> None:
        """Add what else arrives at a place, in place where an array of the right kind is at hand."""
        mine = self.arrived[place]
        if type(mine) is ndarray and type(value) is ndarray:
            add_arrays(self.arrived, self.borrowed, place, value, is_borrowed)
            return
        if type(mine) is Node:
            with backward_of(value.origin, "accumulate"):
                self.arrived[place] = named(add(mine, value), target, source)
        else:
            self.arrived[place] = add_tensors(mine, value) if isinstance(mine, Tensor) else mine + value
        self.borrowed.discard(place)

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
                self.arrive((target, 0), gradient, owned=False)
        for node in way.nodes if not self.retain_graph else ():
            if any(edge is not None and self.is_wanted(edge[0]) for edge in node.edges):
                node.release()
        return True

    def place_of(self, edge: Edge) -> Any:
        """What tells the ends of edges apart: the target's id, for its further outputs with their number."""
        target, number = edge
        place = id(target)
        if self.ends and (place, number) in self.ends:
            return "end", place, number
        return (place, number) if number else place

    def arrive(self, edge: Edge, cotangent: Cotangent, owned: bool, source: GradNode | None = None) -> None:
        """Add a cotangent, which a node sends, to what its target has; if `owned`, no one else holds it."""
        place = self.place_of(edge)
        if place in self.arrived:
            self.add(place, cotangent, not owned, edge[0], source)
            return
        self.arrived[place] = cotangent
        if not owned:
            self.borrowed.add(place)

    def visit(self, node: GradNode) -> None:
        """Run a node on all that has arrived, if anything has, and send the results on."""
        places = [id(node), *((id(node), number) for number in range(1, node.outputs))]
        if self.arrived.keys().isdisjoint(places):
            return
        cotangents: list[Cotangent] = [self.arrived.pop(place, None) for place in places]
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

    def finish(self, leaf: Tensor, value: Cotangent) -> None:
        """What has arrived at a leaf is its gradient: hooks see it, then it is caught or accumulated."""
        is_own = True
        if leaf._hooks is not None:
            for hook in list(leaf._hooks["gradient"].values()):
                value, is_own = self.hooked(hook, value), False
        if self.inputs is not None:
            self.found[id(leaf), 0] = value
        elif leaf._requires_grad:
            self.add_to_leaf(leaf, value, is_own and id(leaf) not in self.borrowed)

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
        return value if result is None else self.payload(_fitting(hook, result, value))

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
                cotangents = self.replaced(hook, result, cotangents)
        return cotangents

    def after(
        self, node: GradNode, pulled: Sequence[Cotangent], cotangents: list[Cotangent]
    ) -> Sequence[Cotangent]:
        assert node.hooks is not None
        for hook in list(node.hooks.after.values()):
            result = hook(tuple(map(self.tensor, pulled)), tuple(map(self.tensor, cotangents)))
            if result is not None:
                pulled = self.replaced(hook, result, pulled)
        return pulled

    def replaced(self, hook: Any, result: Any, former: Sequence[Cotangent]) -> list[Cotangent]:
        """What the hook of a node returns in the place of several cotangents."""
        given = _as_tuple(result)
        if len(given) != len(former):
            raise GradientError(
                f"hook '{_name_of(hook)}' has returned an incorrect number of values (got {len(given)}, "
                f"expected {len(former)})"
            )
        return [self.payload(_fitting(hook, one, value)) for one, value in zip(given, former)]


def _fitting(hook: Any, result: Any, former: Cotangent) -> Tensor | None:
    """What a hook returns in the place of a cotangent, if that has its shape and dtype."""
    if result is None:
        return None
    if not isinstance(result, Tensor):
        found = type(result).__name__
        raise ArgumentError(f"expected a Tensor, but hook '{_name_of(hook)}' returned {found}")
    if former is None:
        return result
    own, value = result._value, former._value if isinstance(former, Tensor) else _array(former)
    if own.shape != value.shape:
        raise ShapeError(
            f"hook '{_name_of(hook)}' has changed the size of value (was {tuple(value.shape)}, got "
            f"{tuple(own.shape)})"
        )
    if own.dtype != value.dtype:
        raise DTypeError(
            f"hook '{_name_of(hook)}' has changed the type of value (was {value.dtype}, got {own.dtype})"
        )
    return result


def _name_of(hook: Any) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _array(value: Any) -> Any:
    """A payload: NumPy's scalars become 0-d arrays."""
    return value if isinstance(value, ndarray | Node) else np.asarray(value)


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
    note_gradient(tensor, accumulates=True)
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
    if former is None or former._requires_grad:
        tensor._grad = make(_apart(gradient if former is None else add(former._value, gradient)))
    else:
        with no_grad():
            assign(former, make(add(former.payload, gradient)))


def _apart(gradient: Cotangent) -> Cotangent:
    """A gradient as the user gets it: in a trace, of which gradients are taken in turn, without history."""
    return cut_off(gradient) if type(gradient) is Node else gradient
