"""The nodes of the tape: what `grad_fn` is. A node knows where gradients go next, and how to compute them.

An edge is `(target, output number)`: the target is the node that made an operand, or the leaf tensor
itself. Nodes never hold the tensors that they made, so that a graph is freed when its outputs are.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ...tracer.errors import GradientError
from ...tracer.graph import Node
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


observers: list[Callable[[Any], None]] = []
"""Called with the node of each operator that is recorded, once it has what it saves."""


class GradNode:
    """The base of tape nodes. Sub-classes say in `pull` how cotangents pass from the outputs to the edges.

    Attributes:
        edges: where the cotangents go, one for each operand; None for an operand without gradient.
        sequence: increases with every node; a backward pass runs the latest first.
        hooks: None, or a `Hooks` with what users registered.
    """

    __slots__ = ("__weakref__", "edges", "hooks", "sequence")
    outputs = 1
    _is_node = True
    versions: Sequence[Any] = ()
    """Of what an operator has saved: where there is none, there is nothing to release."""
    runs_rules = False
    """Whether it has one output, and saves values as they are: `pull_all` does what `pull` does."""
    gives_own = True
    """Whether nobody else holds the arrays that `pull_all` gives, but for its argument's and views."""
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
    def has_hooks(self) -> bool:
        """Whether users have attached more to it than notes."""
        return self.hooks is not None and self.hooks.take_part

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

    def given_out(self) -> GradNode:
        """Itself as users get it: of a class with its name."""
        return self

    @property
    def next_functions(self) -> tuple[tuple[GradNode | None, int], ...]:
        """The nodes that gradients go to next, each with the number of its output, in the operands' order."""
        found = [None if edge is None else (_as_node(edge[0]), edge[1]) for edge in self.edges]
        _kept[self] = [one[0] for one in found if one is not None and isinstance(one[0], AccumulateGrad)]
        return tuple((None, 0) if one is None else (one[0].given_out(), one[1]) for one in found)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's notes."""
        return hooks_of(self).metadata

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

    __slots__ = ("after", "before", "metadata", "retained", "tensors")

    def __init__(self) -> None:
        self.metadata: dict[Any, Any] = {}
        self.before: dict[int, Callable[..., Any]] = {}
        self.after: dict[int, Callable[..., Any]] = {}
        self.tensors: dict[int, dict[int, Callable[..., Any]]] = {}
        """Hooks of the tensors that the node made, by output number."""
        self.retained: dict[int, weakref.ref[Tensor]] = {}
        """The tensors that want their gradient kept, by output number."""

    @property
    def take_part(self) -> bool:
        """Whether a pass asks any: notes alone it does not."""
        return bool(self.before or self.after or self.tensors or self.retained)


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


_new_tuple = tuple.__new__


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
        if (key := id(target)) not in seen:
            seen.add(key)
            (nodes if target._is_node else leaves).append(target)
    for node in nodes:  # which grows
        if node.sequence < oldest:
            continue
        for edge in node.edges:
            if edge is None or (key := id(target := edge[0])) in seen or (ends and (key, edge[1]) in ends):
                continue
            seen.add(key)
            if target._is_node:
                nodes.append(target)
            else:
                leaves.append(target)
    if len(nodes) > 1:
        nodes.sort(key=sequence_of)
    return _new_tuple(Behind, (nodes, leaves))  # without the frame that the class's own has


def have_own_backward(behind: Behind) -> bool:
    """Whether any of them is a node that is no operator's, or has hooks: the graph does not show these."""
    return any(not node.is_in_graph or node.has_hooks for node in behind.nodes) or any(
        leaf._hooks is not None for leaf in behind.leaves
    )


def edge_of(tensor: Tensor) -> Edge | None:
    """Where the gradient of a tensor goes; None if it requires none."""
    if tensor._view is not None:
        tensor.refresh()
    return place_of(tensor) if tensor._requires_grad else None


def place_of(tensor: Tensor) -> Edge:
    """The place on the tape of a tensor that requires grad, and is no view that was written to."""
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


Versions = tuple[Any, ...]
"""Of each saved value the operand's position, or -1 for the result, its cell, and the version then."""
GONE: Versions = (0, [1, None], 0)
"""What stands for the versions of values that were freed: it looks as if they had been overwritten."""


class SavingNode(GradNode):
    """A node that saves arrays of the call, of memory that may be written to later."""

    __slots__ = ("operands", "result", "versions")
    operands: list[Any] | None
    result: Any
    versions: Versions
    """Of what was saved; GONE if that was freed."""

    def each_version(self) -> Iterator[tuple[int, Cell, int]]:
        versions = self.versions
        return zip(versions[::3], versions[1::3], versions[2::3])

    def replace_versions(self, replaced: Iterable[tuple[int, Cell, int]]) -> None:
        if self.versions is not GONE:
            self.versions = tuple(itertools.chain.from_iterable(replaced))

    @property
    def is_freed(self) -> bool:
        return self.versions is GONE

    @property
    def cells(self) -> Sequence[Cell]:
        return self.versions[1::3]

    def keep(self, cell: Cell, copies: Copies) -> None:
        """Hold copies of what was saved of one memory: see `saved.py`."""
        found = []
        for position, saved_cell, version in self.each_version():
            if saved_cell is not cell or version != cell[0]:
                found.append((position, saved_cell, version))
                continue
            if position < 0:
                self.result = copies.of(self.result)
            elif self.operands is not None:
                self.operands[position] = copies.of(self.operands[position])
            found.append((position, copies.cell, 0))
        self.replace_versions(found)

    def require_saved(self) -> None:
        """GradientError where what the rules need is gone, or was written to since."""
        for _, cell, version in self.each_version():
            if cell[0] != version:
                raise GradientError(self.refusal())

    def overwritten(self) -> str:
        for position, cell, version in self.each_version():
            if cell[0] != version:
                value = self.result if position < 0 else (self.operands or ())[position]
                edge = (self, 0) if position < 0 else self.edges[position]
                return overwritten_message(value, edge, cell, version)
        return ""
