"""The loop tree: what fusion makes of a graph, and what the writer turns into statements."""

from __future__ import annotations

from dataclasses import dataclass, field

from pullback.tracer.graph import Graph, Node
from pullback.tracer.origin import Origin

from ..rewriting.calls import Product
from .expression import AnyIndex, Axis, Compared, Expression, Load
from .extents import Extents, Symbol


@dataclass(eq=False)
class Root:
    """One piece of work: for every point of a space, an element that is written or accumulated."""

    node: Node
    kind: str
    """"store", "reduce", "search", "scan", "scatter", "update", "overwrite", "check", "call"; a "view"
    has no space. "trips" is the number of steps of a loop, which data decides."""
    axes: tuple[Axis, ...] = ()
    """Those that loops walk. Others, in `target` and `reads`, are walked inside of a call."""
    value: Expression | None = None
    target: tuple[AnyIndex, ...] = ()
    reduced: frozenset[Axis] = frozenset()
    reads: tuple[Load, ...] = ()
    product: Product | None = None
    """Of a call: what it computes."""
    path: list[Loop] = field(default_factory=list)
    """The loops around it, outermost first, once it is placed."""
    bound: dict[Axis, Loop] = field(default_factory=dict)
    steps: tuple[Loop, ...] = ()
    """The loops over steps that it must be inside of, outermost first."""
    version: int = 0
    """Of an array that is written in place: which of its versions this makes."""
    part_of: Loop | None = None
    """Of a sum in parts: the loop in each of whose iterations it begins anew."""
    origin: Origin | None = None
    """Where the user wrote it, if that is not where the node comes from."""

    def axis_of(self, loop: Loop) -> Axis | None:
        """The axis that a loop walks; a loop over blocks walks that of the loops in it."""
        return next((axis for axis, one in self.bound.items() if loop in (one, one.outer)), None)

    @property
    def first_reduced(self) -> Loop | None:
        """The outermost loop that must end before the result is complete."""
        inside = self.path if self.part_of is None else self.path[self.path.index(self.part_of) + 1 :]
        return next((loop for loop in inside if self.axis_of(loop) in self.reduced), None)

    @property
    def complete_in(self) -> list[Loop]:
        """The loops inside which the result is complete, outermost first."""
        stop = self.first_reduced
        return self.path if stop is None else self.path[: self.path.index(stop)]


@dataclass(eq=False)
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


Item = Loop | Root


@dataclass
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
