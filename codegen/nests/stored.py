"""Which values are stored: what must be, and what would cost more to compute again than to keep."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.tracer.graph import Graph, Node, users_of
from pullback.tracer.ops import indexing as ix
from pullback.tracer.ops import movement as m
from pullback.tracer.ops.contraction import gemm
from pullback.tracer.ops.elementwise import identity
from pullback.tracer.ops.windows import PLACE

from ..cost.machine import EXPENSIVE, MOST_SPARED, this_machine
from ..host import runs_on_host
from ..rewriting.calls import matrices_of
from ..rewriting.extremes import compared_with_extreme
from ..rewriting.slices import lies_apart
from ..rewriting.unroll import SMALL
from ..whole_calls import takes_wholes
from .blocking import row_values
from .expression import Compute, Select, loads, parts
from .loops import bodies, needed_before
from .lower import merges_dimensions
from .tree import Root, Store
from .updates import store_updates

EFFORT_TO_REPEAT = 12
"""Multiplications up to which an element may be written out again for the places that it is read at."""
EFFORT_TO_REPEAT_IN_STEPS = 4
"""The same of what stays in the cache from step to step of a loop: a part of an array, times a number."""
EFFORT_WITHIN_SHIFTS = 60
"""The same where not it is moved, but values of it: the reverse of a step that reads two neighbours. More
neighbours share it."""
MOST_PARTS = 4
"""Of a concatenation that a reader chooses from."""
MOST_SLICES = 16
"""Of a value that are compared with each other: more are taken to overlap."""
MOST_NESTED = 16
"""Questions of which part of an array an element is in, one asked within the answer of another."""


def required_storage(graph: Graph, outputs: Sequence[Node]) -> tuple[set[Node], dict[Node, Node]]:
    """What must be stored, and the values that are had from what is stored with padding around them."""
    stored = {node for node in graph.nodes if node.is_input} | set(graph.inputs) | set(outputs)
    every = bodies(graph)
    for node in (node for one in every for node in one.nodes):
        takes_arrays = takes_wholes(node) or runs_on_host(node)
        if node.operator.family in ("reduction", "scan", "contraction") or takes_arrays:
            stored.add(node)
        if takes_arrays:
            stored.update(one for one in node.operands if not one.is_input)
        if node.operator in (*ix.SCATTERS, ix.index_update):
            stored.add(node)
        if (value := compared_with_extreme(node)) is not None and value.operands:
            stored.add(value)
        if node.operator is gemm:
            stored.update(one for one in matrices_of(node) if not one.is_input and not _is_part(one))
        if node.operator is m.reshape and merges_dimensions(node):
            stored.update((node, node.operands[0]))
        if is_copy_in_layout(node):
            stored.add(node)
    stored.update(node for one in every for node in needed_before(one))
    required = set(stored)
    for one in every:
        users = users_of(one.nodes)
        store_updates(one, users, stored)
        _store_what_repeats(one, users, stored, in_loop=one is not graph)
        _store_deep_choices(one, stored)
    return stored, _store_padded(graph, stored, required)


def is_copy_in_layout(node: Node) -> bool:
    """Whether it is a copy that was made for its layout (`layouts.py`): it follows the loops."""
    return node.operator is identity and node.operands[0].operator is m.permute


def _is_part(node: Node) -> bool:
    """Whether BLAS may read a value where it lies in another one."""
    is_split = node.operator is m.reshape and not merges_dimensions(node)
    return node.operator in (m.slice_, m.permute) or is_split


def _store_padded(graph: Graph, stored: set[Node], required: set[Node]) -> dict[Node, Node]:
    """Store padding with what it surrounds: no reader, say a stencil, then asks on which side it is."""
    padded: dict[Node, Node] = {}
    for node in graph.nodes:
        inside = node.operands[0] if node.operator is m.pad else None
        if inside in stored - required:
            stored.remove(inside)
            stored.add(node)
            padded[inside] = node
    return padded


def _store_what_repeats(
    graph: Graph, users: dict[Node, list[Node]], stored: set[Node], in_loop: bool
) -> None:
    """Add the values that movement would have computed again at several places, at a cost above storing.

    Each place is written out, so without this a stencil that is applied again and again would grow with the
    power of its rounds.
    """
    places = _places(graph, stored)
    shifts = _shifts_around(graph, stored)
    numbers = {node for node in graph.nodes if node.spec.size == 1 and not node.is_constant}
    known = stored | numbers  # a number is computed once, outside of the loops
    for node in graph.nodes:
        is_written_out = node not in stored and node.operator.family == "elementwise" and node.spec != PLACE
        budgets = [_worth_repeating(node, places[node], in_loop)] if places[node] > 1 else []
        budgets += [EFFORT_WITHIN_SHIFTS // (len(shifts[node]) - 1)] if len(shifts[node]) > 1 else []
        if is_written_out and budgets and _costs_more(node, min(budgets), known):
            stored.add(node)
            known.add(node)
        is_long = node.operator is m.concatenate and _is_long(node, known)
        if is_long and any(user.operator not in ix.SCATTERS for user in users[node]):
            stored.add(node)


def _is_long(node: Node, known: set[Node]) -> bool:
    """Whether a choice among the parts of a concatenation is long: of many, or of some that are."""
    is_near = this_machine().stays_near(node.spec.nbytes)
    return len(node.operands) > MOST_PARTS or (is_near and _costs_more(node, EFFORT_TO_REPEAT, known))


def _worth_repeating(node: Node, places: int, in_loop: bool) -> int:
    """Up to how many operators an element is written out again for so many places."""
    effort = EFFORT_TO_REPEAT // (places - 1)
    stays_near = in_loop and node.spec.size > 2 * SMALL and this_machine().stays_near(node.spec.nbytes)
    return min(effort, EFFORT_TO_REPEAT_IN_STEPS) if stays_near else effort


def _store_deep_choices(graph: Graph, stored: set[Node]) -> None:
    """Add what would ask for its part of an array within answers to such questions, one in the other.

    Each is an `if` further in, and Python's parser takes a hundred of them.
    """
    depths: dict[Node, int] = {}
    for node in graph.nodes:
        inner = max((depths.get(one, 0) for one in node.operands if one not in stored), default=0)
        depths[node] = inner + node.operator.movement.chooses
        if depths[node] > MOST_NESTED:
            stored.add(node)


def _places(graph: Graph, stored: set[Node]) -> dict[Node, int]:
    """At how many places the users of each node read it: one that all of them share, and each movement's.

    Slices without an element in common are at one: nothing is computed again for them.
    """
    places = dict.fromkeys(graph.nodes, 0)
    read_in_place: set[Node] = set()
    slices: dict[Node, list[Node]] = {}
    for node in reversed(graph.nodes):
        for operand in set(node.operands):
            if node not in stored and _moves(node) and not (places[node] <= 1 and _is_index(operand, node)):
                places[operand] += max(places[node], 1)
                if node.operator is m.slice_ and not (operand in stored or operand.is_input):
                    others = slices.setdefault(operand, [])
                    places[operand] -= 0 < len(others) < MOST_SLICES and lies_apart(node, others)
                    others.append(node)
            elif operand not in read_in_place:
                read_in_place.add(operand)
                places[operand] += 1
    return places


def _shifts_around(graph: Graph, stored: set[Node]) -> dict[Node, frozenset[Node]]:
    """For each node the movements to other places that read it, or a value that is computed of it."""
    shifts: dict[Node, frozenset[Node]] = {node: frozenset() for node in graph.nodes}
    for node in reversed(graph.nodes):
        for operand in set(node.operands) if node not in stored else ():
            if node.operator.movement.shifts:
                shifts[operand] |= {node}
            elif node.operator.family == operand.operator.family == "elementwise":
                shifts[operand] |= shifts[node]
    return shifts


def _costs_more(node: Node, budget: float, stored: set[Node]) -> bool:
    """Whether computing one element of a node from what is stored costs more than the budget.

    A place is named by the movement that leads there; a value counts once at each.
    """
    start: tuple[Node, tuple[object, ...]] = (node, ())
    seen = {start}
    pending = [start]
    while pending and budget >= 0:
        one, place = pending.pop()
        budget -= max(one.operator.cost, 1)
        inner = (one, place) if _moves(one) else place
        for operand in one.operands:
            read = (operand, inner)
            if operand not in stored and read not in seen:
                seen.add(read)
                pending.append(read)
    return budget < 0


def _is_index(operand: Node, node: Node) -> bool:
    """Whether the operand of a gather is an index array, which is read at the place of the result."""
    return node.operator is ix.gather and operand in node.operands[1:]


def _moves(node: Node) -> bool:
    return node.operator.family in ("movement", "indexing")


def worth_storing(roots: list[Root], stored: set[Node]) -> set[Node]:
    """Values that several loops would compute again, at a cost above that of keeping them."""
    users: dict[Node, dict[int, Root]] = {}
    by_loop: dict[int, list[Root]] = {}
    for root in roots:
        loop = id(root.path[-1]) if root.path else id(root)
        by_loop.setdefault(loop, []).append(root)
        for node in _computed_nodes(root):
            users.setdefault(node, {})[loop] = root
    shared = {
        node
        for node, found in users.items()
        if _recomputed_too_often(node, list(found.values()), [by_loop[one] for one in found], stored)
    }
    shared |= {node for root in roots for node in row_values(root, stored)}
    # What is only needed for another stored value need not be stored itself.
    return {
        node
        for node in shared
        if not any(node in one.operands and users[one].keys() >= users[node].keys() for one in shared)
    }


def _recomputed_too_often(
    node: Node, users: list[Root], together: list[list[Root]], stored: set[Node]
) -> bool:
    """Whether loops, given by a root each and by all roots of each, had better read the value."""
    if node in stored or len(users) < 2 or node.spec.ndim == 0:
        return False
    if _in_one_nest(users):
        return node.operator.cost >= EXPENSIVE
    if not _costs_more(node, _worth(node, users, MOST_SPARED), stored):
        return False
    if _costs_more(node, _worth(node, users, 0), stored):
        return True
    spared = min(_spared(node, inside) for inside in together[1:])
    return _costs_more(node, _worth(node, users, spared), stored)


def _worth(node: Node, users: list[Root], spared: int) -> float:
    """How many multiplications an element is worth, for each loop but the first, that is read by them."""
    return this_machine().multiplications_to_keep(node.spec.nbytes, spared) / (len(users) - 1)


def _spared(node: Node, inside: list[Root]) -> int:
    """Of how many arrays of its size a loop need not read or fetch an element, if it reads that of a value.

    It reads nothing that only this value is computed of; where it stores an array, the value may lie there.
    """
    size = node.spec.size
    values = [root.value for root in inside if root.value is not None]
    read = {load.node for value in values for load in loads(value)}
    others = {load.node for value in values for load in loads(value, without=node)}
    gives_room = any(isinstance(root, Store) and root.node.spec == node.spec for root in inside)
    return sum(one.spec.size >= size for one in read - others) + gives_room


def _in_one_nest(users: list[Root]) -> bool:
    """Whether one loop has them all, not counting loops over steps: a step runs whatever is in it."""
    steps = set.intersection(*(set(root.steps) for root in users))
    inside = ([loop for loop in root.path if loop not in steps] for root in users)
    return len({id(loops[0] if loops else root) for loops, root in zip(inside, users)}) == 1


def _computed_nodes(root: Root) -> set[Node]:
    """The values of which it computes an element, by an operator or as that of one of several parts."""
    expressions = () if root.value is None else parts(root.value)
    computed = (one for one in expressions if isinstance(one, Compute | Select))
    return {one.node for one in computed if isinstance(one, Compute) or one.node.operator is m.concatenate}
