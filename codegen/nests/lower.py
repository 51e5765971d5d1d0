"""From values to elements: the expression of one element of a node, down to what is stored.

`Lowering` is asked for the element of a node at an index tuple. Elementwise operators ask for the elements
of their operands at the same place, movement operators at another place; stored nodes end the descent.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from pullback.tracer.dims import Dim, canonical, terms_of
from pullback.tracer.errors import UnsupportedError
from pullback.tracer.graph import Node, new_node
from pullback.tracer.operator import Part, Parts
from pullback.tracer.ops import creation
from pullback.tracer.ops import elementwise as e
from pullback.tracer.ops import indexing as ix
from pullback.tracer.ops import movement as m
from pullback.tracer.ops import windows as w
from pullback.tracer.ops.control import loop_result
from pullback.tracer.ops.windows import PLACE
from pullback.tracer.spec import INT64, reshape_groups

from .expression import (
    ZERO,
    AnyIndex,
    Bound,
    Compute,
    Expression,
    Index,
    Literal,
    Load,
    Position,
    Quotient,
    Select,
    Term,
    affine,
    known_truth,
    minus,
    number,
    of_symbol,
    plus,
    range_of,
    times,
)
from .extents import ONE, Extents, Symbol

Indices = tuple[AnyIndex, ...]
Elsewhere = Callable[["Lowering", Indices], Expression]
"""The element of something else; equal ones give the same."""
Made = TypeVar("Made")


class Lowering:
    """Expressions for the nodes of one graph, given the set of those that are stored.

    As more is stored, `settle` forgets what was made of nodes whose place has changed, and keeps all else.
    """

    def __init__(
        self, extents: Extents, stored: set[Node], padded: Mapping[Node, Node] | None = None
    ) -> None:
        self.extents = extents
        self.stored = stored
        self.padded = padded or {}
        """Values that are read from what is stored with padding around them."""
        self.looked_up: dict[Expression, set[Node]] = {}
        """Positions from data, with the index arrays that they are elements of."""
        self.elsewhere: dict[Node, Elsewhere] = {}
        """Inputs, values and results of loops that are elements of something else (see `loops.py`)."""
        self.outside: dict[Node, Node] = {}
        """Inputs of a loop's body, and the values outside that they are, or are rows of."""
        self.rows: dict[Node, int] = {}
        """Histories of which so many rows are read after their loop."""
        self._parts: dict[Node, Parts] = {}
        self._known: dict[Node, dict[Indices, Expression]] = {}
        self._made: dict[Hashable, Any] = {}
        self._asking: Hashable = None
        """Whose elements, or what of `made`, are being made."""
        self._askers: dict[Node, set[Hashable]] = {}
        """What is made of elements of a node."""
        self._settled: tuple[set[Node], dict[Node, Elsewhere]] = (set(), {})
        self._rotated: dict[tuple[Index, Symbol, int], Index] = {}
        self._turned_by: dict[Index, tuple[Index, Symbol, int]] = {}

    def number(self, value: int) -> Index:
        """A number; in terms of extents, so that both cancel, where it follows from such."""
        if not isinstance(value, Dim):
            return number(value)
        sizes, more = terms_of(canonical(value.formula))
        named = self.extents.named
        if any(size not in named or not named[size].find().is_shape for size in sizes):
            return number(value)
        terms = (times(of_symbol(named[size]), count) for size, count in sizes.items())
        return plus(*terms, number(more))

    def element(self, node: Node, indices: Indices) -> Expression:
        """The element of `node` at `indices`; equal requests give the same object."""
        self._askers.setdefault(node, set()).add(self._asking)
        of_node = self._known.setdefault(node, {})
        known = of_node.get(indices)
        if known is None:
            known = of_node[indices] = self._noted(node, self._found, node, indices)
        return known

    def made(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What `make` makes of elements alone: once, until a node that it asks for has another place."""
        if key not in self._made:
            self._made[key] = self._noted(key, make)
        made: Made = self._made[key]
        return made

    def _noted(self, asking: Hashable, make: Callable[..., Made], *arguments: Any) -> Made:
        before, self._asking = self._asking, asking
        try:
            return make(*arguments)
        finally:
            self._asking = before

    def forget_places(self) -> None:
        """Begin to say where values are, after more of them are stored."""
        self.elsewhere, self.outside, self.rows = {}, {}, {}

    def settle(self) -> None:
        """All places are known: forget what was made where they have changed."""
        stored, elsewhere = self._settled
        self._settled = self.stored.copy(), self.elsewhere
        places = elsewhere.keys() | self.elsewhere.keys()
        moved = [node for node in places if elsewhere.get(node) != self.elsewhere.get(node)]
        self._forget([*moved, *(stored ^ self.stored)])
        if self._find_formulas():
            self._known, self._made = {}, {}

    def _forget(self, moved: Iterable[Hashable]) -> None:
        pending: list[Any] = [*moved]  # keys of all three
        seen: set[Any] = {None}
        while pending:
            one = pending.pop()
            if one not in seen:
                seen.add(one)
                self._known.pop(one, None)
                self._made.pop(one, None)
                pending.extend(self._askers.pop(one, ()))

    def _found(self, node: Node, indices: Indices) -> Expression:
        if node in self.stored:
            return self._load(node, indices)
        if node in self.elsewhere:
            return self.elsewhere[node](self, indices)
        if node in self.padded and all(isinstance(index, Index) for index in indices):
            around = self.padded[node]
            starts = map(self.number, around.parts.parts[0].starts)
            return self._load(around, tuple(map(plus, indices, starts)))  # type: ignore[arg-type]
        return self.computed(node, indices)

    def _load(self, node: Node, indices: Indices) -> Load:
        fixed = zip(indices, self.extents[node])
        return Load(node, tuple(_only_place(index) if symbol is ONE else index for index, symbol in fixed))

    def computed(self, node: Node, indices: Indices) -> Expression:
        """The element from the node's operands, even if the node is stored."""
        if node.is_constant:
            return Literal(node.attributes["value"], node.dtype)
        operator = node.operator
        moved = _moved if operator.movement.walks else _placed if operator.movement.parts else None
        rule = moved or _RULES.get(operator.name) or _RULES.get(operator.family)
        if rule is None:
            raise UnsupportedError(f"{operator.name} has no lowering")
        return rule(self, node, indices)

    def position(self, node: Node, indices: Indices) -> AnyIndex:
        """An element of an index array; one computed from positions alone (arange) is index arithmetic."""
        element = self.element(node, indices)
        if isinstance(element, Position):
            return element.index
        if isinstance(element, Literal):
            return number(int(element.value))
        self.looked_up.setdefault(element, set()).add(node)
        return element

    def places(self, starts: Iterable[Node]) -> tuple[Index, ...]:
        """Where a window begins, as index arithmetic."""
        return tuple(affine(self.element(start, ())) for start in starts)

    def parts(self, node: Node) -> Parts:
        """What a value is put together from, which is asked for at each of its places."""
        if node not in self._parts:
            self._parts[node] = node.parts
        return self._parts[node]

    def starts(self, node: Node) -> tuple[Index, ...]:
        """Where the first part that an operator writes begins: its declaration says it, or operands."""
        part = self.parts(node).parts[0]
        if part.starts:
            return tuple(map(self.number, part.starts))
        return self.places(node.operands[part.operand + 1 :][: node.spec.ndim])

    def sizes(self, node: Node) -> tuple[Index, ...]:
        """How far the ragged dimensions of a window go."""
        count = len(node.attributes.get("ragged", ()))
        return self.places(node.operands[len(node.operands) - count :]) if count else ()

    def rotated(self, index: Index, symbol: Symbol, shift: int, node: Node) -> Index:
        """The place that comes to `index` when a dimension is moved by a shift, its end before its start."""
        symbol = symbol.find()
        before = self._turned_by.get(index)
        if before is not None and before[1] is symbol:
            index, shift = before[0], before[2] + shift
        if not -symbol.value < 2 * shift <= symbol.value:
            shift %= symbol.value
            shift -= symbol.value if 2 * shift > symbol.value else 0
        key = (index, symbol, shift)
        if shift and key not in self._rotated:
            self._rotated[key], is_choice = _turned(index, symbol, shift, node)
            if is_choice:  # a plain place may be asked for where the one before the turn does not exist
                self._turned_by[self._rotated[key]] = key
        return self._rotated[key] if shift else index

    def _find_formulas(self) -> bool:
        """Say how far ragged dimensions go, in terms of the steps of loops; whether some go elsewhere now."""
        before = [symbol.find().formula for symbol in self.extents.sizes.values()]
        for symbol in self.extents.sizes.values():
            found = symbol.find()
            assert found.size is not None
            found.formula = None
            (found.formula,) = self.places([found.size])
        return before != [symbol.find().formula for symbol in self.extents.sizes.values()]


def _only_place(index: AnyIndex) -> AnyIndex:
    """Where a dimension of one element is read; positions from data are compared with it before."""
    return ZERO if isinstance(index, Index | Quotient) else index


def _elementwise(lowering: Lowering, node: Node, indices: Indices) -> Expression:
    return Compute(node, tuple([_broadcast(lowering, one, indices) for one in node.operands]))


def _broadcast(lowering: Lowering, operand: Node, indices: Indices) -> Expression:
    """The element of an operand that belongs to an element of the result."""
    own = indices[len(indices) - operand.spec.ndim :]
    symbols = lowering.extents[operand]
    return lowering.element(
        operand, tuple([ZERO if symbol is ONE else index for index, symbol in zip(own, symbols)])
    )


def _where(lowering: Lowering, node: Node, indices: Indices) -> Expression:
    """A choice; none is left where the loop over a ragged dimension ends at its size by itself."""
    condition, inside, _ = node.operands
    test = _broadcast(lowering, condition, indices)
    if isinstance(test, Literal) and test.value:
        return _broadcast(lowering, inside, indices)
    if isinstance(test, Select) and test.node.operator is w.within:
        sides = (_broadcast(lowering, one, indices) for one in node.operands[1:])
        return Select(node, test.bounds, *sides)
    return _elementwise(lowering, node, indices)


def _is_within(lowering: Lowering, node: Node, indices: Indices) -> Expression:
    (size,) = lowering.places(node.operands)
    if _goes_as_far(indices[0], size):
        return Literal(True, node.dtype)
    bound = Bound(_plain(indices[0], node), None, size)
    return Select(node, (bound,), Literal(True, node.dtype), Literal(False, node.dtype))


def _moved(lowering: Lowering, node: Node, indices: Indices) -> Expression:
    """The element of the operand from which the operator's declaration says that it is taken."""
    (x,) = node.operands
    own: list[AnyIndex] = []
    for walk, symbol in zip(node.walks, lowering.extents[x]):
        index = ZERO if walk is None else indices[walk.dim]
        if walk is not None and walk.turns:
            index = lowering.rotated(_plain(index, node), symbol, -int(walk.start), node)
        elif walk is not None and walk.backwards:
            index = minus(plus(of_symbol(symbol), number(-1)), _plain(index, node))
        elif walk is not None and (walk.start, walk.step) != (0, 1):
            index = plus(times(_plain(index, node), walk.step), lowering.number(walk.start))
        own.append(index)
    return lowering.element(x, tuple(own))


def merges_dimensions(node: Node) -> bool:
    """Whether a reshape needs division to find an element: it is then a view of a stored array."""
    return any(len(old) > 1 for old, _ in reshape_groups(node.operands[0].shape, node.shape))


def _reshape(lowering: Lowering, node: Node, indices: Indices) -> Expression:
    """Splits of a dimension are index arithmetic; merges were stored (see `merges_dimensions`)."""
    (x,) = node.operands
    symbols = lowering.extents[node]
    own: list[AnyIndex] = [ZERO] * x.spec.ndim
    for old, new in reshape_groups(x.shape, node.shape):
        if len(new) == 1:
            own[old[0]] = indices[new[0]]
            continue
        flat = ZERO
        for dim in new:
            flat = plus(times(flat, symbols[dim]), _plain(indices[dim], node))
        own[old[0]] = flat
    return lowering.element(x, tuple(own))


def _plain(index: AnyIndex, node: Node) -> Index:
    if not isinstance(index, Index):
        raise NotPlain(node)
    return index


class NotPlain(Exception):
    """Index arithmetic on an index that is itself loaded from an array: the nodes must be stored."""

    def __init__(self, *nodes: Node) -> None:
        super().__init__(*nodes)
        self.nodes = nodes


def _slice_at(lowering: Lowering, node: Node, indices: Indices) -> Expression:
    own, bounds = [], []
    ragged = dict(zip(node.attributes["ragged"], lowering.sizes(node)))
    starts = lowering.places(node.operands[1 : 1 + len(indices)])
    for dim, (index, start, step) in enumerate(zip(indices, starts, node.attributes["steps"])):
        is_same = start is ZERO and step == 1
        own.append(index if is_same else plus(times(_plain(index, node), step), start))
        if dim in ragged and not _goes_as_far(index, ragged[dim]):
            bounds.append(Bound(_plain(index, node), None, ragged[dim]))
    inside = lowering.element(node.operands[0], tuple(own))
    return Select(node, tuple(bounds), inside, Literal(0, node.dtype)) if bounds else inside


def _goes_as_far(index: AnyIndex, size: Index) -> bool:
    """Whether the loop over a ragged dimension ends at its size by itself."""
    axis = index.axis if isinstance(index, Index) else None
    return axis is not None and axis.extent.formula is not None and axis.extent.formula == size


def _within(
    lowering: Lowering, node: Node, part: Part, indices: Indices, starts: Iterable[Index]
) -> tuple[tuple[Bound, ...], Indices]:
    """The bounds of the region [start:stop:step] that a part fills, and the place in the part."""
    bounds: list[Bound] = []
    own: list[AnyIndex] = []
    x = node.operands[part.operand]
    ragged = dict(zip(node.attributes.get("ragged", ()), lowering.sizes(node)))
    for dim, (index, first) in enumerate(zip(indices, starts)):
        step, whole, extent = part.steps[dim], node.shape[dim], x.shape[dim]
        if first is ZERO and step == 1 and extent == whole and dim not in ragged:
            own.append(index)
            continue
        plain = _plain(index, node)
        reach = times(ragged.get(dim, of_symbol(lowering.extents[x][dim])), step)
        low = first if step > 0 else plus(first, reach, number(-step))
        high = plus(first, reach) if step > 0 else plus(first, number(1))
        starts_inside = range_of(low) != (0, 0) and dim != part.behind
        ends_inside = dim in ragged or step < 0 or range_of(low)[0] + extent * step < whole
        is_open = starts_inside or abs(step) > 1
        bounds.append(Bound(plain, low if is_open else None, high if ends_inside else None, abs(step)))
        shifted = minus(plain, first) if step > 0 else minus(first, plain)
        own.append(shifted if abs(step) == 1 else Quotient(shifted, abs(step)))
    return tuple(bounds), tuple(own)


def _placed(lowering: Lowering, node: Node, indices: Indices) -> Expression:
    """The element of the first part that the indices are in, or of what is around the parts."""
    found = lowering.parts(node)

    def from_part(position: int, starts: tuple[Index, ...]) -> Expression:
        if position == len(found.parts):
            if found.base is None:
                return Literal(found.around, node.dtype)
            return lowering.element(node.operands[found.base], indices)
        part = found.parts[position]
        x, dim = node.operands[part.operand], part.behind
        bounds, own = _within(lowering, node, part, indices, starts)
        element = lowering.computed if lowering.padded.get(x) is node else lowering.element
        ends = {} if dim is None else {dim: plus(starts[dim], of_symbol(lowering.extents[x][dim]))}
        behind = tuple(ends.get(axis, start) for axis, start in enumerate(starts))
        return _select(node, bounds, lambda: element(x, own), lambda: from_part(position + 1, behind))

    return from_part(0, lowering.starts(node))


def _select(
    node: Node,
    bounds: Iterable[Bound],
    inside: Callable[[], Expression],
    outside: Callable[[], Expression],
) -> Expression:
    """One of two elements; no choice is left where the range of the indices decides it."""
    open_bounds = []
    for bound in bounds:
        answer = known_truth(bound)
        if answer is False:
            return outside()
        if answer is None:
            open_bounds.append(bound)
    return Select(node, tuple(open_bounds), inside(), outside()) if open_bounds else inside()


def _turned(index: Index, symbol: Symbol, shift: int, node: Node) -> tuple[Index, bool]:
    """`index - shift`, from the other end if that is beyond an end, and whether that is a choice.

    A choice is one value, chosen once.
    """
    near = minus(index, number(shift))
    extent = of_symbol(symbol)
    if shift > 0:
        bound, far = Bound(index, number(shift), None), plus(near, extent)
    else:
        bound, far = Bound(index, None, plus(extent, number(shift))), minus(near, extent)
    truth = known_truth(bound)
    if truth is not None:
        return (near if truth else far), False
    place = new_node(creation.iota, (), {"size": symbol.value, "dtype": INT64}, PLACE, node.origin, "place")
    chosen = Select(place, (bound,), Position(near, INT64), Position(far, INT64))
    return Index((Term(1, (chosen,)),)), True


def _gather(lowering: Lowering, node: Node, indices: Indices) -> Expression:
    x, *positions = node.operands
    rank = positions[0].spec.ndim
    own = tuple(lowering.position(position, indices[:rank]) for position in positions)
    return lowering.element(x, own + indices[rank:])


def _loop_result(lowering: Lowering, node: Node, indices: Indices) -> Expression:
    return lowering.elsewhere[node](lowering, indices)


def _iota(lowering: Lowering, node: Node, indices: Indices) -> Expression:
    return Position(indices[0], node.dtype)


_RULES: dict[str, Callable[[Lowering, Node, Any], Expression]] = {
    "elementwise": _elementwise,
    e.where.name: _where,
    e.convert.name: _elementwise,
    m.reshape.name: _reshape,
    w.slice_at.name: _slice_at,
    w.within.name: _is_within,
    ix.gather.name: _gather,
    creation.iota.name: _iota,
    loop_result.name: _loop_result,
}
