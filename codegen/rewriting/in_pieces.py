"""Values in pieces: what each operator's result consists of, when dimensions are split (`unroll.py`).

Pieces keep their rank, with size 1 where they were split. So operators apply to them as they are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import numpy as np

from pullback.tracer.dims import SizedRange
from pullback.tracer.graph import Graph, Labels, Node, constant, make_node, relabel, with_operands
from pullback.tracer.ops import creation
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import indexing as ix
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import reduction as r
from pullback.tracer.origin import located_at
from pullback.tracer.spec import BOOL, reshape_groups

from ...tracer.records import record
from .slices import bounds_of, region_of

MOST_PIECES = 32
"""Into which one value is split."""
MOST_CHOSEN = 8
"""Of which one is chosen at a position that data says, by as many comparisons."""

Dims = frozenset[int]
NONE: Dims = frozenset()


@record(frozen=True)
class Pieces:
    """A value in pieces along `dims`: an array of nodes, with one place in all other dimensions."""

    dims: Dims
    grid: np.ndarray

    @property
    def whole(self) -> Node:
        return self.grid.item()


def _grid(shape: tuple[int, ...], dims: Dims, piece: Callable[[tuple[int, ...]], Node]) -> Pieces:
    """Pieces of a value of the shape, each made for its place."""
    grid = np.empty(_grid_shape(shape, dims), object)
    for place in np.ndindex(*grid.shape):
        grid[place] = piece(place)
    return Pieces(dims, grid)


def _grid_shape(shape: tuple[int, ...], dims: Dims) -> tuple[int, ...]:
    return tuple(extent if dim in dims else 1 for dim, extent in enumerate(shape))


def _piece_shape(shape: tuple[int, ...], dims: Iterable[int]) -> tuple[int, ...]:
    return tuple(1 if dim in dims else extent for dim, extent in enumerate(shape))


def _at(place: tuple[int, ...], pieces: Pieces) -> Node:
    """The piece at a place, broadcast as elementwise operators do."""
    shape = pieces.grid.shape
    own = place[len(place) - len(shape) :]
    return pieces.grid[tuple(min(one, extent - 1) for one, extent in zip(own, shape))]


class Unroller:
    """The new pieces of each old node."""

    def __init__(self, split: dict[Node, Dims], folded: dict[Node, Dims]) -> None:
        """`split` says along which dimensions values are in pieces; `folded` of sums, what they add up is."""
        self.split = split
        self.folded = folded
        self.made: dict[Node, Pieces] = {}
        self.labels = Labels()
        self._along: dict[tuple[Node, Dims], Pieces] = {}

    def rebuild(self, graph: Graph) -> Graph:
        for node in (*graph.inputs, *graph.nodes):
            if node not in self.made:
                with located_at(node.origin):
                    self.made[node] = self._named(node, self._pieces(node))
        outputs = graph.with_outputs(self.along(output, NONE).whole for output in graph.outputs)
        return relabel(outputs, self.labels)

    def _pieces(self, node: Node) -> Pieces:
        dims = self.split.get(node, NONE)
        is_split = dims or node in self.folded
        untouched = not is_split and all(not self.made[operand].dims for operand in node.operands)
        rule = None if untouched else rule_of(node)
        return (rule or _whole)(self, node, dims)

    def _named(self, node: Node, pieces: Pieces) -> Pieces:
        """The user's name, with the place behind it: `axis_0`, `axis_1`."""
        for place, piece in np.ndenumerate(pieces.grid) if node.name else ():
            if piece.operands and not piece.name:
                position = [str(place[dim]) for dim in sorted(pieces.dims)]
                self.labels.names.setdefault(piece, "_".join([node.name, *position]))
        return pieces

    def along(self, node: Node, dims: Dims) -> Pieces:
        """The pieces of an old node along the given dimensions: joined, or cut, if it was split otherwise."""
        key = (node, dims)
        if key not in self._along:
            with located_at(node.origin):
                self._along[key] = self._regrouped(node, dims)
        return self._along[key]

    def _regrouped(self, node: Node, dims: Dims) -> Pieces:
        pieces = self.made[node]
        moves_wholes = not any(self.made[one].dims for one in node.operands)
        if not dims and pieces.dims and node.operator.family == "movement" and moves_wholes:
            return _whole(self, node, NONE)  # it was only cut, and is there in one piece
        for dim in sorted(pieces.dims - dims):
            pieces = _joined(pieces, dim)
        for dim in sorted(dims - pieces.dims):
            pieces = _cut_along(pieces, dim, node.shape[dim])
        if not dims and pieces is not self.made[node] and node.name:
            self.labels.names[pieces.whole] = node.name
        return pieces

    def aligned(self, node: Node, operand: Node, dims: Dims) -> Pieces:
        """The pieces of an operand that broadcasts against the node, along the node's `dims`."""
        shift = node.spec.ndim - operand.spec.ndim
        own = frozenset(dim - shift for dim in dims if dim >= shift and operand.shape[dim - shift] != 1)
        return self.along(operand, own)


def _joined(pieces: Pieces, dim: int) -> Pieces:
    grid = pieces.grid
    shape = _piece_shape(grid.shape, (dim,))
    dims = pieces.dims - {dim}

    def join(place: tuple[int, ...]) -> Node:
        parts = [grid[(*place[:dim], position, *place[dim + 1 :])] for position in range(grid.shape[dim])]
        return m.concatenate(*parts, dim=dim)

    return _grid(shape, dims, join)


def _cut_along(pieces: Pieces, dim: int, extent: int) -> Pieces:
    grid = pieces.grid
    shape = (*grid.shape[:dim], extent, *grid.shape[dim + 1 :])

    def cut(place: tuple[int, ...]) -> Node:
        source = grid[(*place[:dim], 0, *place[dim + 1 :])]
        if source.is_constant:
            spec = source.spec.with_shape(_piece_shape(source.shape, (dim,)))
            return constant(source.attributes["value"], spec)
        return m.between(source, dim, place[dim], place[dim] + 1)

    return _grid(shape, pieces.dims | {dim}, cut)


# --- rules: the pieces of a node from those of its operands -------------------------------------------------


def _whole(unroller: Unroller, node: Node, dims: Dims) -> Pieces:
    """The operator on whole operands, its result cut afterwards."""
    operands = tuple(unroller.along(operand, NONE).whole for operand in node.operands)
    pieces = Pieces(NONE, np.full((1,) * node.spec.ndim, with_operands(node, operands), object))
    for dim in sorted(dims):
        pieces = _cut_along(pieces, dim, node.shape[dim])
    return pieces


def _elementwise(unroller: Unroller, node: Node, dims: Dims) -> Pieces:
    operands = [unroller.aligned(node, operand, dims) for operand in node.operands]

    def piece(place: tuple[int, ...]) -> Node:
        return make_node(
            node.operator, tuple(_at(place, one) for one in operands), node.attributes, origin=node.origin
        )

    return _grid(node.shape, dims, piece)


def _full(unroller: Unroller, node: Node, dims: Dims) -> Pieces:
    spec = node.spec.with_shape(_piece_shape(node.shape, dims))
    return _grid(node.shape, dims, lambda place: constant(node.attributes["value"], spec))


def _iota(unroller: Unroller, node: Node, dims: Dims) -> Pieces:
    if not dims:
        return _whole(unroller, node, dims)
    return _grid(node.shape, dims, lambda place: constant(place[0], node.spec.with_shape((1,))))


def _reduction(unroller: Unroller, node: Node, dims: Dims) -> Pieces:
    """First over the pieces, as elements, then over what is left in them."""
    (x,), reduced = node.operands, node.attributes["dims"]
    monoid = node.operator.monoid
    if monoid is None:
        return _whole(unroller, node, dims)
    keepdim = node.attributes["keepdim"]
    sources = [dim for dim in range(x.spec.ndim) if keepdim or dim not in reduced]
    folded = unroller.folded.get(node, NONE) | (unroller.made[x].dims & frozenset(reduced))
    along = frozenset(sources[dim] for dim in dims) | folded
    parts = unroller.along(x, along)

    def piece(place: tuple[int, ...]) -> Node:
        at = dict(zip(sources, place))
        ranges = [
            range(parts.grid.shape[dim]) if dim in reduced else (at[dim],) for dim in range(x.spec.ndim)
        ]
        folded = reduce(monoid.fold, (_truth(parts.grid[one], node) for one in itertools.product(*ranges)))
        return make_node(node.operator, (folded,), node.attributes, origin=node.origin)

    return _grid(node.shape, dims, piece)


def _truth(piece: Node, node: Node) -> Node:
    """`all` and `any` take numbers as well, the operators between pieces do not."""
    wants_truth = node.dtype == BOOL and piece.dtype != BOOL and node.operator in (r.all_, r.any_)
    return e.not_equal(piece, 0) if wants_truth else piece


def _scan(unroller: Unroller, node: Node, dims: Dims) -> Pieces:
    dim = node.attributes["dim"]
    if dim in dims:
        return _whole(unroller, node, dims)
    return _elementwise(unroller, node, dims)


ONE_POSITION = {"shape": 1, "widths": (0, 0), "starts": 0, "stops": 1, "steps": 1}


def _attributes_of_piece(node: Node, dims: Dims) -> dict[str, Any]:
    """An operator's attributes for pieces, which have one position in `dims`."""
    attributes = dict(node.attributes)
    for name in ONE_POSITION.keys() & attributes.keys():
        one = ONE_POSITION[name]
        attributes[name] = tuple(one if dim in dims else own for dim, own in enumerate(attributes[name]))
    return attributes


def _moved(unroller: Unroller, node: Node, dims: Dims) -> Pieces:
    """Each piece is made of the one that the operator's declaration says that it is taken from."""
    (x,), attributes, walks = node.operands, _attributes_of_piece(node, dims), node.walks
    along = frozenset(dim for dim, walk in enumerate(walks) if walk is not None and walk.dim in dims)
    parts = unroller.along(x, along)
    if node.operator is m.flip:
        attributes["dims"] = tuple(dim for dim in attributes["dims"] if dim not in dims)

    def piece(place: tuple[int, ...]) -> Node:
        source = tuple(
            walk.place(place[walk.dim], extent) if walk is not None and walk.dim in dims else 0
            for walk, extent in zip(walks, x.shape)
        )
        return node.operator(parts.grid[source], **attributes)

    return _grid(node.shape, dims, piece)


def _reshape(unroller: Unroller, node: Node, dims: Dims) -> Pieces:
    """Groups of dimensions that are split, before and after, permute pieces; others must not be split."""
    (x,) = node.operands
    groups = reshape_groups(x.shape, node.shape)
    along: set[int] = set()
    for old, new in groups:
        if len(old) == len(new) == 1 and new[0] in dims:
            along.add(old[0])
        elif dims.issuperset(new) and math.prod(x.shape[dim] for dim in old) <= MOST_PIECES:
            along.update(old)
        elif not dims.isdisjoint(new):
            return _whole(unroller, node, dims)
    parts = unroller.along(x, frozenset(along))
    shape = _piece_shape(node.shape, dims)

    def piece(place: tuple[int, ...]) -> Node:
        source = [0] * x.spec.ndim
        for old, new in groups:
            if along.issuperset(old):
                flat = 0
                for dim in new:
                    flat = flat * node.shape[dim] + place[dim]
                for dim in reversed(old):
                    flat, source[dim] = divmod(flat, x.shape[dim])
        return m.reshape(parts.grid[tuple(source)], shape=shape)

    return _grid(node.shape, dims, piece)


def _slice(unroller: Unroller, node: Node, dims: Dims) -> Pieces:
    (x,) = node.operands
    region = region_of(node)
    chosen = frozenset(dim for dim in unroller.made[x].dims if dim in dims or len(region[dim]) == 1)
    parts = unroller.along(x, chosen)

    def piece(place: tuple[int, ...]) -> Node:
        source = tuple(region[dim][at] if dim in chosen else 0 for dim, at in enumerate(place))
        inside = [SizedRange(0, 1) if dim in chosen else one for dim, one in enumerate(region)]
        return m.slice_(parts.grid[source], **bounds_of(inside))

    pieces = _grid(node.shape, chosen & dims, piece)
    for dim in sorted(dims - chosen):
        pieces = _cut_along(pieces, dim, node.shape[dim])
    return pieces


def _placed(unroller: Unroller, node: Node, dims: Dims) -> Pieces:
    """Each piece is put together from those of the parts that have its place, or is what is beside them."""
    found, attributes = node.parts, _attributes_of_piece(node, dims)
    xs = {part.operand: node.operands[part.operand] for part in found.parts}
    regions = {part.operand: part.region(xs[part.operand].shape) for part in found.parts}
    parts = {
        index: unroller.along(x, frozenset(dim for dim in dims if x.shape[dim] > 1))
        for index, x in xs.items()
    }
    base = None if found.base is None else unroller.along(node.operands[found.base], dims)
    around = constant(found.around, node.spec.with_shape(_piece_shape(node.shape, dims)))

    def piece(place: tuple[int, ...]) -> Node:
        inside = [
            parts[index].grid[tuple(one.index(at) if dim in dims else 0 for dim, (one, at) in places)]
            for index, region in regions.items()
            for places in [list(enumerate(zip(region, place)))]
            if all(at in one for dim, (one, at) in places if dim in dims)
        ]
        beside = around if base is None else base.grid[place]
        if not inside or attributes.get("dim") in dims:  # pieces of a concatenation are its operands'
            return inside[0] if inside else beside
        return node.operator(*(() if base is None else (beside,)), *inside, **attributes)

    return _grid(node.shape, dims, piece)


def _gather(unroller: Unroller, node: Node, dims: Dims) -> Pieces:
    """Of computed pieces the one at a position is chosen, which is compared with their number for that."""
    x, *indices = node.operands
    rank, count = indices[0].spec.ndim, len(indices)
    of_index = frozenset(dim for dim in dims if dim < rank)
    behind = frozenset(dim - rank + count for dim in dims - of_index)
    chosen = sorted(dim for dim in unroller.made[x].dims if dim < count)
    if len(chosen) != 1 or x.operator.family != "elementwise" or x.shape[chosen[0]] > MOST_CHOSEN:
        chosen = []
    table = unroller.along(x, behind.union(chosen))
    positions = [unroller.along(index, of_index) for index in indices]

    def numbers_along(dim: int) -> Node:
        """The numbers of pieces, where these lie: looked up, they raise where there is none."""
        numbers = make_node(creation.iota, (), {"size": x.shape[dim], "dtype": indices[dim].dtype})
        return m.reshape(numbers, shape=_grid_shape(x.shape[:count], frozenset((dim,))))

    def piece(place: tuple[int, ...]) -> Node:
        own = [one.grid[place[:rank]] for one in positions]
        if not chosen:
            return ix.gather(table.grid[(0,) * count + place[rank:]], *own)
        (dim,) = chosen
        first = constant(0, own[dim].spec)
        number = ix.gather(numbers_along(dim), *(one if at == dim else first for at, one in enumerate(own)))
        number = m.reshape(number, shape=(*number.shape, *[1] * (x.spec.ndim - count)))
        own[dim] = first
        before, behind_it = (0,) * dim, (*(0,) * (count - dim - 1), *place[rank:])
        found, *others = (
            ix.gather(table.grid[(*before, at, *behind_it)], *own) for at in range(x.shape[dim])
        )
        for at, other in enumerate(others, start=1):
            found = e.where(e.equal(number, at), other, found)
        return found

    return _grid(node.shape, dims, piece)


def _scatter(unroller: Unroller, node: Node, dims: Dims) -> Pieces:
    """Updates that are split along the index arrays are combined one after another."""
    (updates, *indices), monoid = node.operands, node.operator.monoid
    assert monoid is not None
    rank, count = indices[0].spec.ndim, len(indices)
    behind = frozenset(dim for dim in dims if dim >= count)
    of_index = frozenset(dim for dim in unroller.made[updates].dims if dim < rank)
    parts = unroller.along(updates, of_index | frozenset(dim - count + rank for dim in behind))
    positions = [unroller.along(index, of_index) for index in indices]
    shape = _piece_shape(node.shape, behind)

    def piece(place: tuple[int, ...]) -> Node:
        folded = [
            node.operator(
                parts.grid[one + place[count:]], *(index.grid[one] for index in positions), shape=shape
            )
            for one in np.ndindex(*positions[0].grid.shape)
        ]
        return reduce(monoid.fold, folded)

    pieces = _grid(node.shape, behind, piece)
    for dim in sorted(dims - behind):
        pieces = _cut_along(pieces, dim, node.shape[dim])
    return pieces


Rule = Callable[[Unroller, Node, Dims], Pieces]
RULES: dict[str, Rule] = {
    "elementwise": _elementwise,
    "reduction": _reduction,
    "scan": _scan,
    creation.full.name: _full,
    creation.iota.name: _iota,
    e.convert.name: _elementwise,
    m.reshape.name: _reshape,
    m.slice_.name: _slice,
    ix.gather.name: _gather,
    **{one.name: _scatter for one in ix.SCATTERS},
}


def rule_of(node: Node) -> Rule | None:
    """How it is computed in pieces; without a rule it is computed as a whole, and would only be cut."""
    operator = node.operator
    are_placed = any(part.starts for part in node.parts.parts)
    moved = _moved if operator.movement.walks else _placed if are_placed else None
    return RULES.get(operator.name) or RULES.get(operator.family) or moved
