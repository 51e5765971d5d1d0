"""The loop tree: what fusion makes of a graph, and what the writer turns into statements.

Its leaves are roots, of a class for each kind of work. The class says what is its own: what it needs of
storage, whether it may be moved, cut or shared, what it costs, where the user wrote it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import ClassVar

from pullback.tracer.graph import Graph, Node
from pullback.tracer.ops.contraction import gemm
from pullback.tracer.ops.elementwise import TRANSCENDENTAL
from pullback.tracer.origin import Origin

from ...tracer.records import record
from ..machine.kernel_types import COMBINED
from ..rewriting.calls import Product, start_of
from ..whole_calls import operations_of_call
from .expression import AnyIndex, Axis, Compared, Expression, Load, arithmetic
from .extents import Extents, Symbol


@record(eq=False)
class Root:
    """One piece of work: for every point of a space, an element that is made; by kind a class."""

    name: ClassVar[str]
    """What accounts call this kind of work."""
    reason: ClassVar[str] = "complete after its loop"
    """Why the result has a place of its own."""
    makes_value: ClassVar[bool] = True
    """Whether what it makes is a value of the graph, or a part of one."""
    is_fixed: ClassVar[bool] = False
    """Whether no other work may change places with it."""
    is_plain: ClassVar[bool] = False
    """Whether its elements may be made in any order, so that a loop over them may be cut."""
    writes_over: ClassVar[bool] = False
    """Whether it replaces elements that others have stored in its array."""
    at_positions: ClassVar[bool] = False
    """Whether data says where the elements go."""
    needs_array: ClassVar[bool] = False
    """Whether no local variable can hold its result, however small that is."""
    needs_all_dims: ClassVar[bool] = False
    """Whether its array has all dimensions, whoever reads it."""

    node: Node
    axes: tuple[Axis, ...] = ()
    """Those that loops walk. Others, in `target` and `reads`, are walked inside of a call."""
    value: Expression | None = None
    target: tuple[AnyIndex, ...] = ()
    reduced: frozenset[Axis] = frozenset()
    reads: tuple[Load, ...] = ()
    path: list[Loop] = field(default_factory=list)
    """The loops around it, outermost first, once it is placed."""
    bound: dict[Axis, Loop] = field(default_factory=dict)
    steps: tuple[Loop, ...] = ()
    """The loops over steps that it must be inside of, outermost first."""
    version: int = 0
    """Of an array that is written in place: which of its versions this makes."""
    written_at: Origin | None = None
    """Where the user wrote it, if that is not where the node comes from."""

    def axis_of(self, loop: Loop) -> Axis | None:
        """The axis that a loop walks; a loop over blocks walks that of the loops in it."""
        return next((axis for axis, one in self.bound.items() if loop in (one, one.outer)), None)

    @property
    def outermost(self) -> Item:
        """The item of the tree that it is, or is in."""
        return self.path[0] if self.path else self

    @property
    def nest(self) -> Item:
        """What it is, or is in, of a step of the loops over steps around it."""
        inside = self.path[len(self.steps) :]
        return inside[0] if inside else self

    @property
    def first_reduced(self) -> Loop | None:
        """The outermost loop that must end before the result is complete."""
        return next((loop for loop in self.path if self.axis_of(loop) in self.reduced), None)

    @property
    def complete_in(self) -> list[Loop]:
        """The loops inside which the result is complete, outermost first."""
        stop = self.first_reduced
        return self.path if stop is None else self.path[: self.path.index(stop)]

    @property
    def origin(self) -> Origin:
        return self.node.origin if self.written_at is None else self.written_at

    @property
    def adds_over(self) -> bool:
        """Whether it adds to elements that others may have stored in its array."""
        return False

    @property
    def begins_at_identity(self) -> bool:
        """Whether the loops that it adds up in begin with what a total begins with."""
        return True

    @property
    def is_combined(self) -> bool:
        """Whether the totals of parts can be combined."""
        monoid = self.node.operator.monoid
        return self.begins_at_identity and monoid is not None and monoid.fold.name in COMBINED

    def may_be_shared(self, axis: Axis | None) -> bool:
        """Whether iterations over an axis are independent, but for totals that can be combined."""
        return axis not in self.reduced or self.is_combined

    @property
    def points(self) -> int:
        return math.prod(axis.extent.value for axis in self.axes)

    @property
    def effort(self) -> int:
        """Multiplications that an element takes."""
        return arithmetic(self.value, set()) if self.value is not None else 0

    @property
    def operations(self) -> float:
        """Multiplications and additions, an elementary function as its cost; of a choice both sides."""
        return self.points * self.effort


class Store(Root):
    """Each element is stored in its place."""

    name, is_plain = "store", True


class Accumulation(Root):
    """Elements are combined with what there is."""

    @property
    def operations(self) -> float:
        return self.points * (self.effort + 1)


@record(eq=False)
class Reduction(Accumulation):
    """Elements along some axes are combined in one place."""

    name, is_plain = "reduce", True

    part_of: Loop | None = None
    """Of a sum in parts: the loop in each of whose iterations it begins anew."""

    @property
    def first_reduced(self) -> Loop | None:
        inside = self.path if self.part_of is None else self.path[self.path.index(self.part_of) + 1 :]
        return next((loop for loop in inside if self.axis_of(loop) in self.reduced), None)


class Search(Root):
    """The position of the best element along an axis is found; that and the element are local variables."""

    name = "search"


class Scan(Accumulation):
    """Each element continues the one before along a dimension."""

    name, needs_array, needs_all_dims = "scan", True, True

    def may_be_shared(self, axis: Axis | None) -> bool:
        return getattr(self.target[self.node.attributes["dim"]], "axis", None) is not axis


class Scatter(Accumulation):
    """Each element is added where data says."""

    name, needs_array, at_positions = "scatter", True, True

    @property
    def adds_over(self) -> bool:
        return True


class Overwrite(Root):
    """A part of an array is stored over what there is."""

    name, needs_array, needs_all_dims = "overwrite", True, True
    is_fixed, writes_over = True, True


class Update(Overwrite):
    """Each element is stored where data says, over what there is."""

    name, at_positions = "update", True

    @property
    def begins_at_identity(self) -> bool:
        return False

    def may_be_shared(self, axis: Axis | None) -> bool:
        return False


class RangeCheck(Root):
    """Positions from data are compared with the extent of what they index."""

    name, reason, makes_value, is_fixed = "check", "", False, True

    def may_be_shared(self, axis: Axis | None) -> bool:
        return True


class StepCount(Root):
    """The number of steps of a loop, which data decides."""

    name, reason, is_fixed = "trips", "", True

    def may_be_shared(self, axis: Axis | None) -> bool:
        return False


class View(Root):
    """The memory of another value in another shape: nothing is done, in no space."""

    name, reason, makes_value, needs_all_dims = "view", "the same memory", False, True

    @property
    def base(self) -> Node:
        return self.reads[0].node

    def may_be_shared(self, axis: Axis | None) -> bool:
        return False


class Call(Root):
    """A function is called with whole rows or matrices."""

    name, needs_array = "call", True

    @property
    def begins_at_identity(self) -> bool:
        return False

    @property
    def operations(self) -> float:
        return operations_of_call(self.node)


@record(eq=False)
class Host(Call):
    """Python evaluates an operator that has no form in code, of whole arrays."""

    name, reason = "host", "evaluated by Python"

    called: Node = field(kw_only=True)
    """What is evaluated, into all of `node` or a row of it."""

    def may_be_shared(self, axis: Axis | None) -> bool:
        return False

    @property
    def operations(self) -> float:
        return float(self.called.spec.size * TRANSCENDENTAL)


@record(eq=False)
class MatrixProduct(Call):
    """BLAS is called with two matrices, and what it adds their product to, if that is read."""

    reason = "a product of matrices"

    product: Product = field(kw_only=True)

    @property
    def adds_over(self) -> bool:
        return bool(self.reduced)

    @property
    def begins_at_identity(self) -> bool:
        """The first calls in loops add to zeros, if the array is theirs and nothing else is added to."""
        is_alone = self.adds_over and self.node.operator is gemm and start_of(self.node) is None
        return is_alone and self.product is self.node.attributes["products"][0]

    @property
    def operations(self) -> float:
        return 2 * math.prod(self.product.indices.extents.values())


@record(eq=False)
class Loop:
    """A loop over one extent; its body is a list of loops and roots, in order."""

    extent: Symbol
    items: list[Loop | Root] = field(default_factory=list)
    block: int = 0
    """If not 0, this is a loop over blocks of so many iterations, and `items` are loops over one block."""
    outer: Loop | None = None
    """The loop over blocks, one of which this loop runs over."""
    steps: Axis | None = None
    """Of a loop whose iterations follow one another, each with what the one before has left: its axis."""
    goes_on: Load | None = None
    """Of a loop over steps that has one more as long as this is true; its extent is known at its end."""
    is_short: bool = False
    """Whether its extent is written as a number, so that LLVM writes out the iterations."""
    once: bool = False
    """Whether it is a choice: one step, if its extent is 1 and not 0."""
    stages: list[Stage] = field(default_factory=list)
    """Of a loop over steps: its items, where threads share some of them in each step; else none."""


Item = Loop | Root


@record(eq=False)
class Stage:
    """Items that one generated function runs, or that run one after another in a step of a loop."""

    items: list[Item]
    shared: Symbol | None = None
    """The extent whose iterations are shared between threads, if any: of the loops and rows of products."""


@record
class LoopTree:
    """A graph as loops: everything that the emitter needs to know."""

    graph: Graph
    extents: Extents
    items: list[Item]
    roots: list[Root]
    kept: dict[Node, tuple[int, ...]]
    """Of each stored node, the dimensions that its storage has; none: a local variable."""
    in_blocks: dict[Node, int]
    """Nodes whose storage has room for one block of a dimension, and which."""
    compared: Compared
    """Positions from data that are known to be in range, and of which extent."""
    rows: dict[Node, int] = field(default_factory=dict)
    """How many rows there is room for in the history of a carry: they take turns."""
    small: set[Symbol] = field(default_factory=set)
    """Extents that are written as numbers, so that LLVM unrolls the loops over them."""
    may_fail: dict[Node, int] = field(default_factory=dict)
    """Calls that may have no result, with the number that the code raises then."""

    @property
    def views(self) -> dict[Node, Node]:
        """For values that are views of others, those."""
        return {root.node: root.base for root in self.roots if isinstance(root, View)}


def roots_in(items: Iterable[Item]) -> Iterator[Root]:
    """The roots of items, in the order in which they run."""
    for item in items:
        if isinstance(item, Loop):
            yield from roots_in(item.items)
        else:
            yield item
