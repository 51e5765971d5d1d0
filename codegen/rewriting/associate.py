"""The order of products: `(a @ b) @ v` is computed as `a @ (b @ v)` where that takes less time.

A product of several arrays is a sum over indices that can be done in any order (see `Network`). A product
that only other products and sums use is taken apart, and what uses it is put together again in the cheapest
order, found over all subsets as for a chain of matrices (T. H. Cormen et al., Introduction to Algorithms,
14.2). So the derivative of `(a @ b) @ v` with respect to `a` becomes an outer product of two vectors.
Rounding differs with the order; its bound does not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import field

from pullback.tracer.graph import Graph, Node, rebuild_from, users_of, with_operands
from pullback.tracer.ops import reduction as r
from pullback.tracer.ops.contraction import contract, split_subscripts
from pullback.tracer.origin import located_at

from ...tracer.records import record
from ..cost.machine import this_machine
from ..passes import run_passes
from .contractions import Indices
from .simplify import simplify

WORTH = 0.8
"""Another order must take less than this part of the time."""
MOST_OPERANDS = 6
"""Of a product that is put in order: there are 3 to that power ways to split its subsets."""
MOST_ROUNDS = 20
"""Of putting in order, each on what the last one has left: every one that changes something saves time."""

Places = frozenset[int]
Tree = int | tuple["Tree", "Tree"]


def associate(graph: Graph) -> Graph:
    """Products of several arrays in the order that takes the least time."""
    for _ in range(MOST_ROUNDS):
        orders = _better_orders(graph)
        if not orders:
            break
        graph = run_passes(_reordered(graph, orders), simplify)
    return graph


# --- products of several arrays ---------------------------------------------------------------------------


@record
class Network:
    """A product of arrays, summed over the indices that its result lacks."""

    result: str
    extents: dict[str, int]
    operands: list[Node] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)
    """The indices of each operand."""
    opened: set[Node] = field(default_factory=set)
    """The products that were taken apart."""

    def kept(self, places: Places) -> str:
        """The indices that the product of some operands has: those that the others or the result need.

        Their order depends on the operands alone, so that networks can share the product.
        """
        needed = self.result + "".join(term for place, term in enumerate(self.terms) if place not in places)
        in_order = sorted(places, key=lambda place: (self.operands[place].serial, self.terms[place]))
        inside = dict.fromkeys("".join(self.terms[place] for place in in_order))
        return "".join(index for index in inside if index in needed)

    def nanoseconds(self, first: Places, second: Places) -> float:
        """Of the product of two parts."""
        subscripts = f"{self.kept(first)},{self.kept(second)}->{self.kept(first | second)}"
        return Indices(subscripts, self.extents, self.operands[0].dtype).nanoseconds

    def preparation(self, place: int) -> float:
        """Nanoseconds to sum an operand over the indices that nothing else has."""
        term = self.terms[place]
        alone = len(self.kept(frozenset([place]))) < len(term)
        elements = math.prod(self.extents[index] for index in term)
        return this_machine().nanoseconds_of_sums(elements) if alone else 0.0


class _Opener:
    """Makes networks of the nodes of one graph."""

    def __init__(self, graph: Graph) -> None:
        self.outputs = set(graph.outputs)
        self.users = users_of(graph.nodes)

    def may_open(self, node: Node) -> bool:
        """Whether only products and sums need a product."""
        users = self.users.get(node, [])
        return (
            node.operator is contract and node not in self.outputs and bool(users) and all(map(_takes, users))
        )

    def network(self, user: Node, chosen: Node) -> Network:
        """What a user of the chosen product computes, that and products of its own taken apart."""
        letters = map(chr, itertools.count(ord("a")))
        text = "".join(itertools.islice(letters, user.operands[0].spec.ndim))
        dims = user.attributes["dims"] if user.operator is r.sum_ else ()
        if user.operator is contract:
            text = "".join(itertools.islice(letters, user.spec.ndim))
        result = "".join(index for place, index in enumerate(text) if place not in dims)
        network = Network(result, {})
        pending = [(user.operands[0] if dims else user, text)]
        while pending:
            node, text = pending.pop()
            is_user = node is user
            room = len(network.operands) + len(pending) + 2 <= MOST_OPERANDS
            alone = self.may_open(node) and len(self.users[node]) == 1
            if is_user or node is chosen or (alone and room):
                network.opened.add(node)
                pending += reversed(_opened(node, text, letters))
            else:
                network.operands.append(node)
                network.terms.append(text)
                network.extents.update(zip(text, node.shape))
        return network


def _takes(user: Node) -> bool:
    return user.operator is contract or (user.operator is r.sum_ and not user.attributes["keepdim"])


def _opened(node: Node, text: str, letters: Iterator[str]) -> list[tuple[Node, str]]:
    """The operands of a product whose result has the indices `text`, each with its own."""
    left, right, result = split_subscripts(node.attributes["subscripts"])
    names = dict(zip(result, text))
    for index in left + right:
        if index not in names:
            names[index] = next(letters)
    return [(one, "".join(names[index] for index in own)) for one, own in zip(node.operands, (left, right))]


# --- orders -----------------------------------------------------------------------------------------------


def _better_orders(graph: Graph) -> dict[Node, tuple[Network, Tree]]:
    """Nodes that take less time in another order, as what they compute, and the order."""
    opener = _Opener(graph)
    orders: dict[Node, tuple[Network, Tree]] = {}
    settled: set[Node] = set()
    for node in graph.nodes:
        if not opener.may_open(node):
            continue
        users = opener.users[node]
        networks = [opener.network(user, node) for user in users]
        touched = {*users, *(one for network in networks for one in (*network.opened, *network.operands))}
        opened = {*users, *(one for network in networks for one in network.opened)}
        if touched & settled:
            continue
        best = [_best_order(network) for network in networks]
        if sum(time for time, _ in best) < WORTH * sum(map(_nanoseconds, opened)):
            orders.update((user, (network, tree)) for user, network, (_, tree) in zip(users, networks, best))
            settled |= {one for one in touched if one.operator is contract or one in users}
    return orders


def _nanoseconds(node: Node) -> float:
    if node.operator is contract:
        return Indices.of(node.attributes["subscripts"], *node.operands).nanoseconds
    return this_machine().nanoseconds_of_sums(node.operands[0].spec.size)


def _best_order(network: Network) -> tuple[float, Tree]:
    """The least time for the whole product, and the order that takes it."""
    everything = frozenset(range(len(network.operands)))
    best: dict[Places, tuple[float, Tree]] = {
        frozenset([place]): (network.preparation(place), place) for place in everything
    }
    for size in range(2, len(everything) + 1):
        for places in map(frozenset, itertools.combinations(sorted(everything), size)):
            best[places] = min(
                (
                    (best[part][0] + best[places - part][0] + network.nanoseconds(part, places - part),
                     (best[part][1], best[places - part][1]))
                    for part in _halves(places)
                ),
                key=lambda one: one[0],
            )  # fmt: skip
    return best[everything]


def _halves(places: Places) -> Iterable[Places]:
    """The parts that a set splits into, of each pair the one with its first element."""
    first, *others = sorted(places)
    for size in range(len(others)):
        for chosen in itertools.combinations(others, size):
            yield frozenset([first, *chosen])


# --- the new graph ----------------------------------------------------------------------------------------


def _reordered(graph: Graph, orders: dict[Node, tuple[Network, Tree]]) -> Graph:
    def change(node: Node, new: dict[Node, Node]) -> Node:
        if node not in orders:
            return with_operands(node, tuple(new[operand] for operand in node.operands))
        with located_at(node.origin):
            product, text, _ = _product(*orders[node], new)
        assert text == orders[node][0].result
        return product

    return rebuild_from(graph, change)


def _product(network: Network, tree: Tree, new: dict[Node, Node]) -> tuple[Node, str, Places]:
    """A part of a network as a node, its indices, and the operands in it."""
    if isinstance(tree, int):
        operand, term, places = new[network.operands[tree]], network.terms[tree], frozenset([tree])
        kept = network.kept(places)
        dims = tuple(dim for dim, index in enumerate(term) if index not in kept)
        return (r.sum_(operand, dims=dims, keepdim=False) if dims else operand), kept, places
    (a, left, first), (b, right, second) = (_product(network, part, new) for part in tree)
    places = first | second
    result = network.result if len(places) == len(network.operands) else network.kept(places)
    return contract(a, b, subscripts=f"{left},{right}->{result}"), result, places
