"""Carries that the steps of loops write part by part: one array, written in place.

In the graph each write of a step makes a new array, a version. A chain of them leads from what a step starts
with to what it ends with; a loop inside of the loop may be one of its links. All versions lie in one array if
whatever reads a version is computed before the next write. Values that are read too late otherwise are stored
first; where that does not help, the carry is no such chain, and each step makes a whole array of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from pullback.tracer.graph import Graph, Node, users_of
from pullback.tracer.loop import LoopNode, is_loop
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.control import loop_result
from pullback.tracer.ops.windows import WRITES

from ...tracer.records import record
from .expression import AnyIndex, Index, Load, Quotient, axes_in, minus
from .tree import Root


@record(frozen=True)
class Link:
    """One change of the array within a step."""

    node: Node
    """The version that it makes: the write, or the result of the loop inside that writes."""
    base: Node
    """The version that was there before."""
    inside: Chain | None = None


@record(eq=False)
class Chain:
    """The versions of a carry in one step of a loop, from the body's input on."""

    loop: LoopNode
    carry: int
    links: list[Link] = field(default_factory=list)

    @property
    def start(self) -> Node:
        return self.loop.body.inputs[self.carry]

    @property
    def versions(self) -> list[Node]:
        return [self.start, *(link.node for link in self.links)]


def find_chain(loop: LoopNode, carry: int) -> Chain | None:
    """The chain of writes from a carry's input to its output; None if other operators make it."""
    chain = Chain(loop, carry)
    version = loop.body.outputs[carry]
    while version is not chain.start:
        link = _link(version)
        if link is None:
            return None
        chain.links.insert(0, link)
        version = link.base
    writes = [link.node.operator for link in chain.links if link.inside is None]
    at_numbers = len(writes) == len(chain.links) and all(one is m.slice_update for one in writes)
    return None if at_numbers else chain


def _link(version: Node) -> Link | None:
    if version.operator in WRITES:
        return Link(version, version.operands[0])
    if version.operator is not loop_result:
        return None
    loop, index = LoopNode(version.operands[0]), version.attributes["index"]
    inside = find_chain(loop, index) if index < loop.carries else None
    return None if inside is None else Link(version, loop.node.operands[index], inside)


@record(eq=False)
class InPlace:
    """The arrays of one graph that loops write in place."""

    holder: dict[Node, Node] = field(default_factory=dict)
    """For each version, the history that all versions of its array lie in."""
    number: dict[Node, int] = field(default_factory=dict)
    """For each version a number; those of one array are distinct."""
    chains: dict[Node, list[Chain]] = field(default_factory=dict)
    """By history: the chain of the outermost loop that carries it, then those inside."""

    def add(self, chain: Chain, history: Node) -> None:
        """Let all versions of a chain, and of those inside of it, lie in a history."""
        chains = self.chains.setdefault(history, [])
        chains.append(chain)
        for version in chain.versions:
            self.holder[version] = history
            self.number[version] = len(self.number) + 1
        for link in chain.links:
            if link.inside is not None:
                self.add(link.inside, history)

    def load(self, version: Node, row: Index, at: tuple[AnyIndex, ...]) -> Load:
        return Load(self.holder[version], (row, *at), self.number[version])

    def writes(self, node: Node) -> bool:
        """Whether a node is a write that is done in place."""
        return node in self.holder and node.operator in WRITES


# --- the order of reads and writes --------------------------------------------------------------------------


@record
class Late:
    """What is read too late: values to store before, and arrays for which that does not help."""

    values: set[Node] = field(default_factory=set)
    arrays: set[Node] = field(default_factory=set)


def find_late_reads(
    places: InPlace, roots: Sequence[Root], graphs: Iterable[Graph], stored: set[Node]
) -> Late:
    """What keeps arrays from being written in place, given the roots in the order in which they run."""
    late = Late()
    if not places.chains:
        return late
    users = users_of(node for graph in graphs for node in graph.nodes)
    for history, chains in places.chains.items():
        for chain in chains:
            for base, link in zip(chain.versions, chain.links):
                if not _is_read_in_time(base, link, places, roots):
                    values = set(_values_to_store(base, link, users)) - stored
                    if values:
                        late.values |= values
                    else:
                        late.arrays.add(history)
    return late


def _values_to_store(base: Node, link: Link, users: Mapping[Node, list[Node]]) -> Iterator[Node]:
    """What reads a version directly, and what is written over it."""
    for user in users.get(base, ()):
        if user is not link.node and not is_loop(user) and user.operator not in WRITES:
            yield user
    if link.inside is None and link.node.operands[1].operands:
        yield link.node.operands[1]


def _is_read_in_time(base: Node, link: Link, places: InPlace, roots: Sequence[Root]) -> bool:
    """Whether all that reads a version runs before the version is changed."""
    history, number = places.holder[base], places.number[base]
    changing = set(_numbers(link, places))
    writers = [place for place, root in enumerate(roots) if root.node is history and root.version in changing]
    if not writers:
        return True
    first = min(writers)
    depth = len(roots[first].steps) - _depth_inside(link, roots[first], places)
    for place, root in enumerate(roots):
        loads = [one for one in root.reads if one.node is history and one.version == number]
        if not loads:
            continue
        if place == first and link.inside is None:
            if not all(_is_safe(root, load) for load in loads):
                return False
        elif _last_run(root, place, depth, roots) >= first:
            return False
    return True


def _numbers(link: Link, places: InPlace) -> Iterator[int]:
    yield places.number[link.node]
    for one in link.inside.links if link.inside else ():
        yield from _numbers(one, places)


def _depth_inside(link: Link, writer: Root, places: InPlace) -> int:
    """How many loops further inside than the link a write of it is."""
    if link.inside is None or writer.version == places.number[link.node]:
        return 0
    inner = next(one for one in link.inside.links if writer.version in set(_numbers(one, places)))
    return 1 + _depth_inside(inner, writer, places)


def _last_run(root: Root, place: int, depth: int, roots: Sequence[Root]) -> int:
    """Where in the order a root runs last, within one step of the loop at a depth."""
    if len(root.steps) <= depth:
        return place
    loop = root.steps[depth]
    return max(index for index, one in enumerate(roots) if loop in one.steps)


def _is_safe(root: Root, load: Load) -> bool:
    """Whether a write reads elements before it writes them: those in their place, or of other parts.

    A place that is written for several points of its space is none of theirs alone.
    """
    if not root.axes:
        return True
    pairs = list(zip(load.indices[1:], root.target[1:]))
    walked = [index for _, index in pairs if axes_in(index) & set(root.axes)]
    if all(isinstance(one, Index | Quotient) for one in walked) and all(
        read == written for read, written in pairs
    ):
        return True
    return any(_are_apart(read, written, root) for read, written in pairs)


def _are_apart(read: object, written: object, root: Root) -> bool:
    """Whether two positions in a dimension that no loop of the write walks differ by a number."""
    if not isinstance(read, Index) or not isinstance(written, Index):
        return False
    if (read.axes | written.axes) & set(root.axes):
        return False
    difference = minus(read, written)
    return bool(difference.terms) and not any(term.factors for term in difference.terms)
