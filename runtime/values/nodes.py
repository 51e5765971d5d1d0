"""The nodes of the tape: what `grad_fn` is. A node knows where gradients go next, and how to compute them.

An edge is `(target, output number)`: the target is the node that made an operand, or the leaf tensor
itself. Nodes never hold the tensors that they made, so that a graph is freed when its outputs are.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Container, Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ...tracer.array_rules import on_arrays
from ...tracer.errors import GradientError
from ...tracer.graph import Node
from ...tracer.operator import HOLOMORPHIC, Function, Operator, Pull, as_it_is
from ...tracer.ops.reduction import sum_to_shape, summed_to_shape
from ...tracer.origin import backward_of
from ...tracer.spec import Spec
from .saved import Cell, Copies, saved_values
from .tensor import RemovableHandle, Tensor, describe, make

next_sequence = itertools.count().__next__
sequence_of = attrgetter("sequence")
Edge = tuple[Any, int]

OVERWRITTEN = "one of the variables needed for gradient computation has been modified by an inplace operation"
FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have "
    "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
    "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or "
    "if you need to access saved tensors after calling backward."
)


observers: list[Callable[[OperatorNode], None]] = []
"""Called with each operation's node that is recorded, once it has what it saves."""


class GradNode:
    """The base of tape nodes. Sub-classes say in `pull` how cotangents pass from the outputs to the edges.

    Attributes:
        edges: where the cotangents go, one for each operand; None for an operand without gradient.
        sequence: increases with every node; a backward pass runs the latest first.
        hooks: None, or a `Hooks` with what users registered.
    """

    __slots__ = ("__weakref__", "_metadata", "edges", "hooks", "sequence")
    outputs = 1
    _is_node = True
    versions: Sequence[Any] = ()
    """Of what an operator has saved: where there is none, there is nothing to release."""
    runs_rules = False
    """Whether it is of an operator, with what that saves as it is: `pull_all` does what `pull` does."""
    may_add_itself = False
    """Whether `add_itself` may do what `pull_all` does, to what has arrived already."""
    is_in_graph = False
    """Whether, in a trace, the graph shows what the node's backward is."""
    edges: Sequence[Edge | None]
    hooks: Hooks | None
    sequence: int

    def __init__(self, edges: Sequence[Edge | None]) -> None:
        self.edges = edges
        self.hooks = None
        self._metadata: dict[Any, Any] | None = None
        self.sequence = next_sequence()

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        """The cotangent of each edge; None for zero or not `wanted`.

        Cotangents are payloads (ndarrays, or graph nodes in a trace), under `create_graph` Tensors. One for
        each output; None for an output that nothing depends on.
        """
        raise NotImplementedError

    def add_itself(self, g: Any, arrived: dict[Any, Any], borrowed: set[Any]) -> bool:
        """Add what `g` gives to what has arrived at the edge, by its target's id, if that is possible."""
        return False

    def pull_many(self, g: Any) -> Sequence[Any] | None:
        """What `pull_all` gives of many arrays, along the first dimension of `g`; None if not at once."""
        return None

    def pull_recorded(self, g: Tensor, wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        """What `pull` gives of a Tensor outside of traces, where it is recorded; None: all are wanted."""
        if wanted is None:
            wanted = [edge is not None for edge in self.edges]
        return self.pull([g], wanted, True)

    @property
    def read(self) -> Sequence[Any]:
        """In a trace the values of the operands, one for each edge, where the graph shows the backward."""
        return ()

    @property
    def is_freed(self) -> bool:
        """Whether what was saved is gone, and the backward needs it."""
        return False

    def overwritten(self) -> str:
        """What to say where a value that the backward needs was written to since; empty where none was."""
        return ""

    def refusal(self) -> str:
        """What a backward pass through it would raise; empty if it may pass."""
        return FREED if self.is_freed else self.overwritten()

    def value_of(self, number: int) -> Node | None:
        """In a trace the graph node of an output, if the node knows it."""
        return None

    def backward_to_leaves(self, output: Tensor, retain_graph: bool) -> bool:
        """Do a whole backward pass from `output`, if the node has a shorter way than the engine's."""
        return False

    def explain_anomaly(self, cotangents: list[Any], pulled: Sequence[Any]) -> None:
        """Raise AnomalyError if what it has made of cotangents is not finite, and it knows why."""

    def release(self) -> None:
        """Let go of what was saved for the backward pass."""

    def name(self) -> str:
        """`AddBackward0`"""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[GradNode | None, int], ...]:
        """The nodes that gradients go to next, each with the number of its output, in the operands' order."""
        found = [None if edge is None else (_as_node(edge[0]), edge[1]) for edge in self.edges]
        _kept[self] = [one[0] for one in found if one is not None and isinstance(one[0], AccumulateGrad)]
        return tuple((None, 0) if one is None else one for one in found)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's notes."""
        if self._metadata is None:
            self._metadata = {}
        return self._metadata

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after each run; what it returns replaces `grad_inputs`."""
        return RemovableHandle(hooks_of(self).after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before each run; what it returns replaces `grad_outputs`."""
        return RemovableHandle(hooks_of(self).before, hook)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


class Hooks:
    """What users attached to one node."""

    __slots__ = ("after", "before", "retained", "tensors")

    def __init__(self) -> None:
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}
        self.tensors: dict[int, dict[int, Callable[..., Any]]] = {}
        """Hooks of the tensors that the node made, by output number."""
        self.retained: dict[int, weakref.ref[Tensor]] = {}
        """The tensors that want their gradient kept, by output number."""


def hooks_of(node: GradNode) -> Hooks:
    if node.hooks is None:
        node.hooks = Hooks()
    return node.hooks


class AccumulateGrad(GradNode):
    """The end of an edge that leads to a leaf: hands what arrives on to `variable`.

    Edges lead to leaves directly; there is such a node, one for each leaf, while somebody has asked for it.
    """

    __slots__ = ("at_leaf", "variable")
    is_in_graph = True

    def __init__(self, variable: Tensor) -> None:
        super().__init__(((variable, 0),))
        self.variable = variable
        self.at_leaf = Hooks()
        """Hooks around the addition to `.grad`, by whatever way the gradient has come."""

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook((), grad_outputs)` after each addition to the leaf's `.grad`."""
        hooks_of_leaf(self.variable)
        return RemovableHandle(self.at_leaf.after, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before each; what it returns replaces `grad_outputs`."""
        hooks_of_leaf(self.variable)
        return RemovableHandle(self.at_leaf.before, hook)

    @property
    def read(self) -> Sequence[Any]:
        return (self.variable.payload,)

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        return cotangents

    @property
    def next_functions(self) -> tuple[tuple[GradNode | None, int], ...]:
        return ()


def _as_node(target: Any) -> GradNode:
    if not isinstance(target, Tensor):
        return target
    found = accumulator_of(target)
    if found is None:
        found = _accumulators[id(target)] = AccumulateGrad(target)
    return found


_accumulators: weakref.WeakValueDictionary[int, AccumulateGrad] = weakref.WeakValueDictionary()
"""By the id of the leaf, which the node keeps alive."""
_kept: weakref.WeakKeyDictionary[GradNode, list[GradNode]] = weakref.WeakKeyDictionary()
"""The nodes of leaves that live as long as a node whose `next_functions` has given them out."""


def accumulator_of(leaf: Tensor) -> AccumulateGrad | None:
    """The node of a leaf, if anybody has one."""
    return _accumulators.get(id(leaf))


def hooks_of_leaf(leaf: Tensor) -> dict[str, dict[int, Callable[..., Any]]]:
    """What users attached to a leaf; that there is something says that its node may have hooks as well."""
    if leaf._hooks is None:
        leaf._hooks = {"gradient": {}, "accumulated": {}}
    return leaf._hooks


class Behind(NamedTuple):
    """What gradients reach: the nodes, in the order in which they were made, and the leaves, each once."""

    nodes: list[GradNode]
    leaves: list[Tensor]


def targets_behind(
    targets: Iterable[Any], oldest: int = 0, ends: Container[tuple[int, int]] = ()
) -> Behind:
    """The nodes and leaves that gradients reach from `targets`, these included.

    Nodes made before the sequence number `oldest` are the last on their way, and edges in `ends`, each the id
    of a target and an output number, are not gone.
    """
    nodes: list[GradNode] = []
    leaves: list[Tensor] = []
    seen: set[int] = set()
    for target in targets:
        if id(target) not in seen:
            seen.add(id(target))
            (nodes if target._is_node else leaves).append(target)
    for node in nodes:  # which grows
        for edge in node.edges if node.sequence >= oldest else ():
            if edge is None or (key := id(target := edge[0])) in seen or (ends and (key, edge[1]) in ends):
                continue
            seen.add(key)
            (nodes if target._is_node else leaves).append(target)
    nodes.sort(key=sequence_of)
    return Behind(nodes, leaves)


def have_own_backward(behind: Behind) -> bool:
    """Whether any of them is a node that is no operator's, or has hooks: the graph does not show these."""
    return any(not node.is_in_graph or node.hooks is not None for node in behind.nodes) or any(
        leaf._hooks is not None for leaf in behind.leaves
    )


def edge_of(tensor: Tensor) -> Edge | None:
    """Where the gradient of a tensor goes; None if it requires none."""
    if tensor._view is not None:
        tensor.refresh()
    if not tensor._requires_grad:
        return None
    return tensor._grad_fn or tensor, tensor._output_nr


class Saved:
    """A value kept for a backward pass, with the version it had, the edge of its tensor, and no cycle."""

    __slots__ = ("cell", "edge", "value", "version")

    def __init__(self, value: Any, edge: Edge | None, cell: Cell) -> None:
        self.value = value
        self.edge = edge
        self.cell = cell
        self.version = cell[0]
        noted = saved_values()
        if noted is not None:
            noted.note(self)

    @property
    def cells(self) -> Sequence[Cell]:
        return (self.cell,)

    def keep(self, cell: Cell, copies: Copies) -> None:
        """Hold a copy from now on: see `saved.py`."""
        if self.version == cell[0]:
            self.value, self.cell, self.version = copies.of(self.value), copies.cell, 0

    def checked(self) -> Any:
        """The payload; GradientError if it has been written to since. Graph nodes are never overwritten."""
        if self.cell[0] != self.version and type(self.value) is np.ndarray:
            raise GradientError(overwritten_message(self.value, self.edge, self.cell, self.version))
        return self.value

    def as_tensor(self) -> Tensor:
        return tensor_at(self.checked(), self.edge, self.cell)


def tensor_at(value: Any, edge: Edge | None, cell: Cell) -> Tensor:
    """A tensor whose gradient goes to `edge`: the leaf itself where that holds the value."""
    target = None if edge is None else edge[0]
    if isinstance(target, Tensor) and target._value is value:
        return target
    tensor = make(value)
    tensor._cell = cell
    if edge is not None:
        tensor._requires_grad = True
        tensor._grad_fn = _as_node(target)
        tensor._output_nr = edge[1]
    return tensor


def overwritten_message(value: Any, edge: Edge | None, cell: Cell, version: int) -> str:
    """PyTorch's message, and the line that overwrote the value."""
    maker = ""
    if edge is not None:
        maker = f", which is output {edge[1]} of {_as_node(edge[0]).name()},"
    place = f" It was overwritten at {describe(cell[1])}." if cell[1] else ""
    return (
        f"{OVERWRITTEN}: [{legacy_type(value.dtype)} {list(value.shape)}]{maker} is at version {cell[0]}; "
        f"expected version {version} instead.{place} Use the out-of-place form there, or write to a clone()."
    )


_LEGACY_TYPES = {
    "float16": "Half", "float32": "Float", "float64": "Double", "int8": "Char", "uint8": "Byte",
    "int16": "Short", "int32": "Int", "int64": "Long", "bool": "Bool",
    "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip


def scalar_type(dtype: np.dtype) -> str:
    """`Float`, `Long`: how PyTorch's messages call a dtype."""
    return _LEGACY_TYPES.get(dtype.name, dtype.name.capitalize())


def legacy_type(dtype: np.dtype) -> str:
    return f"torch.{scalar_type(dtype)}Tensor"


ARRAYS = (np.ndarray, np.generic)
NO_SPECS: tuple[Sequence[Spec], Any] = ((), None)
_new = object.__new__
NO_VERSIONS: list[tuple[int, Cell, int]] = []


def spec_of_operand(value: Any, dtype: np.dtype) -> Spec:
    """The spec of an operand; a Python number has the dtype of the operator."""
    shape = getattr(value, "shape", None)
    return _spec((), dtype) if shape is None else _spec(shape, value.dtype)


def specs_of(values: Sequence[Any], result: Any) -> tuple[Sequence[Spec], Spec]:
    dtype = result.dtype
    specs = [
        _spec(value.shape, value.dtype) if type(value) is np.ndarray else spec_of_operand(value, dtype)
        for value in values
    ]
    return specs, _spec(result.shape, dtype)


@functools.lru_cache(maxsize=1024)
def _spec(shape: tuple[int, ...], dtype: np.dtype) -> Spec:
    return Spec(shape, dtype)


class Plan:
    """What recording an operator takes, for one set of operands that require grad; made once, then reused."""

    __slots__ = (
        "count", "is_holomorphic", "may_broadcast", "node_class", "operator", "positions", "pull",
        "recorded", "saves", "saves_result", "saves_specs",
    )  # fmt: skip

    def __init__(self, operator: Operator, mask: int, count: int, name: str) -> None:
        self.operator = operator
        self.may_broadcast = count > 1 or operator.family != "elementwise"
        self.positions = tuple(
            position for position in range(count) if mask >> position & 1 and operator.rule_for(position)
        )
        self.count = count
        self.pull = operator.pulling(self.positions, count, on_arrays)
        self.recorded: Pull | None = None
        self.is_holomorphic = operator.of_complex == HOLOMORPHIC
        wanted, self.saves_result = operator.needs(self.positions, count)
        self.saves = tuple(sorted(wanted))
        rules = [operator.rules[operator.operand_name(position)] for position in self.positions]
        self.saves_specs = any(
            name == "specs" or name.endswith("_spec") for rule in rules for name in rule.parameters
        )
        self.node_class = node_class(name)

    def pull_recorded(self) -> Pull:
        """The rules on tensors, which the tape records."""
        found = self.recorded
        if found is None:
            found = self.recorded = self.operator.pulling(
                self.positions, self.count, OperatorNode.on_tensors
            )
        return found


_classes: dict[str, type[OperatorNode]] = {}


def node_class(name: str) -> type[OperatorNode]:
    """The class of operator nodes that are called `name`."""
    found = _classes.get(name)
    if found is None:
        found = _classes[name] = type(name, (OperatorNode,), {"__slots__": ()})
    return found


class SavingNode(GradNode):
    """A node that saves arrays of the call, of memory that may be written to later."""

    __slots__ = ("freed", "operands", "result", "versions")
    operands: list[Any] | None
    result: Any
    versions: list[tuple[int, Cell, int]]
    """(operand position or -1 for the result, cell, version then) of each saved value."""
    freed: bool

    @property
    def is_freed(self) -> bool:
        return self.freed

    @property
    def cells(self) -> Sequence[Cell]:
        return [cell for _, cell, _ in self.versions]

    def keep(self, cell: Cell, copies: Copies) -> None:
        """Hold copies of what was saved of one memory: see `saved.py`."""
        for number, (position, saved_cell, version) in enumerate(self.versions):
            if saved_cell is not cell or version != cell[0]:
                continue
            if position < 0:
                self.result = copies.of(self.result)
            elif self.operands is not None:
                self.operands[position] = copies.of(self.operands[position])
            self.versions[number] = (position, copies.cell, 0)

    def _require_saved(self) -> None:
        """GradientError where what the rules need is gone, or was written to since."""
        if message := self.refusal():
            raise GradientError(message)

    def overwritten(self) -> str:
        for position, cell, version in self.versions:
            if cell[0] != version:
                value = self.result if position < 0 else (self.operands or ())[position]
                edge = (self, 0) if position < 0 else self.edges[position]
                return overwritten_message(value, edge, cell, version)
        return ""


class OperatorNode(SavingNode):
    """A node of one operator: it saves what the operator's rules need, and runs them.

    In a trace it has all operands and the result as nodes of the graph.
    """

    __slots__ = ("attributes", "forward", "plan", "shapes", "specs")
    plan: Plan
    attributes: dict[str, Any]
    shapes: Sequence[tuple[int, ...]] | None
    """The shapes of the operands that get a gradient; None in a trace, and where there is no other operand
    with which they could broadcast."""
    specs: tuple[Sequence[Spec], Spec] | None
    """Of the operands and of the result, if a rule asks for them; None in a trace."""
    forward: Node | None
    """In a trace the graph node of the result."""
    runs_rules = True
    is_in_graph = True
    on_tensors: Callable[[Function], Function] = staticmethod(as_it_is)
    """Of rules the form for Tensors: `tape/direct.py` says which."""

    @property
    def read(self) -> Sequence[Any]:
        return self.operands or ()

    def value_of(self, number: int) -> Node | None:
        return self.forward

    def __init__(self, plan: Plan, attributes: dict[str, Any], edges: Sequence[Edge | None]) -> None:
        self.plan = plan
        self.attributes = attributes
        self.edges = edges
        self.sequence = next_sequence()
        self.hooks = self._metadata = self.forward = None
        self.operands = self.result = self.shapes = self.specs = None
        self.versions = NO_VERSIONS
        self.freed = False

    @classmethod
    def in_trace(
        cls, plan: Plan, attributes: dict[str, Any], edges: Sequence[Edge | None], read: list[Any], made: Node
    ) -> OperatorNode:
        """A node that has all operands and the result as nodes of the graph."""
        node = _new(cls)  # a long loop makes many, and calling the class would take twice as long
        node.plan = plan
        node.attributes = attributes
        node.edges = edges
        node.sequence = next_sequence()
        node.hooks = node._metadata = node.shapes = node.specs = None
        node.operands = read
        node.forward = node.result = made
        node.versions = NO_VERSIONS
        node.freed = False
        return node

    def pull(self, cotangents: list[Any], wanted: Sequence[bool], create_graph: bool) -> Sequence[Any]:
        if self.forward is not None:
            self._require_saved()
            with backward_of(self.forward.origin, self.plan.operator.name):
                return self._run_rules(cotangents[0], wanted, create_graph)
        (g,) = cotangents
        if create_graph or not isinstance(g, ARRAYS):
            self._require_saved()
            return self._run_rules(g, wanted, create_graph)
        plan = self.plan
        positions = tuple([position for position in plan.positions if wanted[position]])
        if positions == plan.positions:
            return self.pull_all(g)
        return self.pull_all(g, plan.operator.pulling(positions, len(self.edges), on_arrays))

    def pull_all(self, g: Any, pull: Pull | None = None) -> Sequence[Any]:
        """The cotangents of all edges, of arrays; of those that `pull` gives, if it is not the plan's."""
        if self.freed:
            raise GradientError(FREED)
        for _, cell, version in self.versions:
            if cell[0] != version:
                self._require_saved()
        plan = self.plan
        specs, y_spec = self.specs or NO_SPECS
        if plan.is_holomorphic and g.dtype.kind == "c":
            pulled = plan.operator.pulled(
                pull or plan.pull, g, self.result, y_spec, self.operands or (), specs, self.attributes
            )
        else:
            pulled = (pull or plan.pull)(g, self.result, y_spec, self.operands or (), specs, self.attributes)
        if self.shapes is None:
            return pulled
        for position, shape in zip(plan.positions, self.shapes):
            one = pulled[position]
            if one is not None and one.shape != shape:
                return self._summed(pulled)
        return pulled

    def require_saved(self) -> None:
        """GradientError where what the rules need is gone, or was written to since."""
        if self.freed:
            raise GradientError(FREED)
        for _, cell, version in self.versions:
            if cell[0] != version:
                self._require_saved()

    def pull_recorded(self, g: Tensor, wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        """The same of a Tensor, outside of traces, where the rules are recorded; None for not `wanted`."""
        self.require_saved()
        plan = self.plan
        if wanted is not None and not all(wanted[position] for position in plan.positions):
            return self._run_rules(g, wanted, True)
        operands, result = self._as_tensors() if self.versions else (self.operands or (), self.result)
        specs, y_spec = self.specs or NO_SPECS
        pulled = plan.operator.pulled(
            plan.recorded or plan.pull_recorded(), g, result, y_spec, operands, specs, self.attributes
        )
        if self.shapes is None:
            return pulled
        found = list(pulled)
        for position, shape in zip(plan.positions, self.shapes):
            one = found[position]
            if one is not None and not (isinstance(one, Tensor) and one._value.shape == shape):
                found[position] = sum_to_shape(one, shape)
        return found

    def _summed(self, pulled: Sequence[Any]) -> Sequence[Any]:
        """Cotangents of the shape that operands were broadcast to, in the operands' own."""
        found = list(pulled)
        for position, shape in zip(self.plan.positions, self.shapes or ()):
            if found[position] is not None:
                found[position] = summed_to_shape(found[position], shape)
        return found

    def _run_rules(self, g: Any, wanted: Sequence[bool], create_graph: bool) -> list[Any]:
        """The rules one by one: those that are wanted, perhaps on tensors or on nodes of a graph."""
        plan = self.plan
        operands: Sequence[Any] = self.operands or ()
        result, specs = self.result, self.specs
        shapes = self.shapes
        if shapes is None and self.forward is not None:
            shapes = [operands[position].shape for position in plan.positions]
            specs = specs_of(operands, result) if plan.saves_specs else None
        form: Callable[[Function], Function] = as_it_is
        if create_graph:
            operands, result = self._as_tensors()
            form = self.on_tensors
        operand_specs, result_spec = specs or NO_SPECS
        pulled: list[Any] = [None] * len(self.edges)
        for place, position in enumerate(plan.positions):
            if wanted[position]:
                cotangent = plan.operator.pull_back(
                    position, g, operands, operand_specs, result, result_spec, self.attributes, form
                )
                pulled[position] = cotangent if shapes is None else sum_to_shape(cotangent, shapes[place])
        return pulled

    def _as_tensors(self) -> tuple[list[Any], Any]:
        """What was saved as tensors, with their history: so a gradient has a gradient."""
        if self.forward is None:
            return self._arrays_as_tensors()
        cells = {position: cell for position, cell, _ in self.versions}
        operands = [
            tensor_at(value, self.edges[position], cells.get(position) or [0, None])
            if position in cells or type(value) is Node
            else value
            for position, value in enumerate(self.operands or ())
        ]
        result = self.result
        if result is not None:
            result = tensor_at(result, (self, 0), cells.get(-1) or [0, None])
        return operands, result

    def _arrays_as_tensors(self) -> tuple[list[Any], Any]:
        """The same outside of traces: what was no tensor's is an array or a number as before."""
        operands, result, edges = list(self.operands or ()), self.result, self.edges
        for position, cell, _ in self.versions:
            if position < 0:
                result = tensor_at(result, (self, 0), cell)
            else:
                operands[position] = tensor_at(operands[position], edges[position], cell)
        return operands, result

    def release(self) -> None:
        if self.versions or (self.forward is not None and self._needs_values()):
            self.operands = self.result = None
            self.versions = NO_VERSIONS
            self.freed = True

    def _needs_values(self) -> bool:
        saved = (self.operands[position] for position in self.plan.saves) if self.operands else ()
        return self.plan.saves_result or any(type(value) is Node for value in saved)
