"""Which dimensions of a graph are the same one: symbols for extents, so that code is generic in shapes.

Each dimension of each value gets a symbol; those that the trace gave one name share it. Operators unify them
(operands of an elementwise operator have equal dimensions, or size 1), so two dimensions share a symbol only
where the program makes them equal, not where two sizes happen to agree. Size 1 is part of a program's
structure and has no symbol.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from pullback.tracer.dims import LARGEST_CUT, Dim, Formula, base_of, canonical
from pullback.tracer.graph import Graph, Node
from pullback.tracer.loop import LoopNode, is_loop
from pullback.tracer.ops.complex_parts import BY_CALLS
from pullback.tracer.ops.contraction import split_subscripts
from pullback.tracer.ops.control import UNKNOWN_LENGTH, loop_result
from pullback.tracer.ops.creation import iota
from pullback.tracer.ops.indexing import SCATTERS
from pullback.tracer.ops.matrix_roots import FUNCTIONS
from pullback.tracer.ops.windows import slice_at
from pullback.tracer.origin import located_at
from pullback.tracer.spec import reshape_groups

from ...tracer.records import record


@record(eq=False)
class Symbol:
    """One extent; `value` is its size in the traced call. Unified symbols point to one of them."""

    value: int
    parent: Symbol | None = None
    base: Symbol | None = None
    """The extent that this one is some elements more or less than, as slices and pads make them."""
    size: Node | None = None
    """Of a dimension that grows or shrinks with the steps: the value that says how far it goes in one."""
    is_moved: bool = False
    """Whether something reads along the dimension in another order: then all of it is computed."""
    formula: Any = None
    """The same as index arithmetic, once the loops over steps have axes."""
    is_counted: bool = False
    """Whether generated code finds it out as it runs: the number of steps of a loop that data decides."""

    def __post_init__(self) -> None:
        self.value = int(self.value)

    @property
    def is_shape(self) -> bool:
        """Whether it is an extent of a shape, which is the same as long as the code runs."""
        return not self.is_counted and self.size is None

    def find(self) -> Symbol:
        root = self
        while root.parent is not None:
            root = root.parent
        return root

    def __repr__(self) -> str:
        return f"<extent {self.value}>"


ONE = Symbol(1)
Symbols = tuple[Symbol, ...]


def unify(first: Symbol, second: Symbol) -> Symbol:
    first, second = first.find(), second.find()
    if first is second or second is ONE:
        return first
    if first is ONE:
        return second
    if (first.size is None) != (second.size is None):  # what is combined with a part goes as far as the part
        return second if first.size is None else first
    assert first.value == second.value, (first, second)
    second.parent = first
    first.is_moved |= second.is_moved
    first.is_counted |= second.is_counted
    if first.base is None:
        first.base = second.base
    if _is_based_on(first, first):
        first.base = None
    return first


def _is_based_on(symbol: Symbol, other: Symbol) -> bool:
    """Whether the extents that one is some more or less than lead to the other."""
    while symbol.base is not None:
        symbol = symbol.base.find()
        if symbol is other:
            return True
    return False


def fresh(extent: int) -> Symbol:
    return ONE if extent == 1 else Symbol(extent)


@record
class Extents:
    """The symbols of every node's dimensions."""

    of: dict[Node, Symbols] = field(default_factory=dict)
    steps: dict[Node, Symbol] = field(default_factory=dict)
    """The length of each loop of the graph: how many rows its stacks have."""
    trips: dict[Node, Symbol] = field(default_factory=dict)
    """The number of steps of each loop of which only data tells it."""

    sizes: dict[tuple[Node, int], Symbol] = field(default_factory=dict)
    """Of dimensions that go only so far in a step: by what says how far, and the most that it can be."""
    whole: set[tuple[Node, int]] = field(default_factory=set)
    """Those of which values are computed as a whole: what lies beyond the size is known too, and masked."""

    def ragged(self, window: Node, part: Node) -> dict[int, Symbol]:
        """The extents of a window that go only so far in a step, by dimension; `part` has its shape."""
        dims = window.attributes["ragged"]
        sizes = window.operands[len(window.operands) - len(dims) :]
        keys = ((size, part.shape[dim]) for size, dim in zip(sizes, dims))
        found = [self.sizes.setdefault(key, Symbol(key[1], size=key[0])).find() for key in keys]
        return dict(zip(dims, found))

    named: dict[Formula, Symbol] = field(default_factory=dict)
    """The symbols of the sizes that the trace has named; not of those that differ between steps."""

    @property
    def symbols_of_names(self) -> set[Symbol]:
        return {symbol.find() for symbol in self.named.values()}

    def enter(self, node: Node, symbols: Symbols) -> None:
        """Note the symbols of a node's dimensions; sizes of one name have one."""
        self.of[node] = symbols
        for extent, symbol in zip(node.shape, symbols):
            if isinstance(extent, Dim) and symbol.find() is not ONE and symbol.find().is_shape:
                self._enter(canonical(extent.formula), symbol)

    def _enter(self, formula: Formula, symbol: Symbol) -> None:
        symbol = unify(self.named.setdefault(formula, symbol), symbol)
        whole, difference = base_of(formula)
        is_near = 0 < abs(difference) <= LARGEST_CUT and whole in self.named
        if is_near and not _is_based_on(self.named[whole].find(), symbol):
            symbol.base = self.named[whole]

    def __getitem__(self, node: Node) -> Symbols:
        return tuple([one if one.parent is None else one.find() for one in self.of[node]])


def find_extents(graph: Graph) -> Extents:
    """Symbols for all nodes of the graph."""
    extents = Extents()
    _find(graph, extents)
    for output in graph.outputs:  # of which all is handed out
        for symbol in extents[output]:
            _moved(symbol)
    while moved := {key for key, one in extents.sizes.items() if one.find().is_moved}:
        extents = Extents(whole=extents.whole | moved)
        _find(graph, extents)
    return extents


def find_sizes(graph: Graph) -> dict[Node, dict[int, Node]]:
    """How far the dimensions of values go that go only so far in a step: by values of the graph itself.

    A loop inside has the same sizes as values of its own, which stand for these.
    """
    extents = Extents()
    _find(graph, extents)
    own = {*graph.inputs, *graph.nodes}
    sizes = {one.find(): size for (size, _), one in extents.sizes.items() if size in own}
    found: dict[Node, dict[int, Node]] = {}
    for node in graph.nodes if sizes else ():
        for dim, symbol in enumerate(extents[node]):
            if symbol in sizes:
                found.setdefault(node, {})[dim] = sizes[symbol]
    return found


def _find(graph: Graph, extents: Extents) -> None:
    for node in (*graph.inputs, *graph.nodes):
        if node in extents.of:
            continue
        if node.operator is loop_result:
            extents.enter(node, _loop_result(node, extents))
        elif node.operator is slice_at:
            extents.enter(node, _slice_at(node, extents))
        elif node.operator.body is not None:
            extents.enter(node, _composite(node, node.operator.body, extents))
        else:
            operands = [extents.of[operand] for operand in node.operands]
            extents.enter(node, _rule(node)(node, operands))
        if is_loop(node):
            _enter_body(LoopNode(node), extents)


def _enter_body(loop: LoopNode, extents: Extents) -> None:
    """A body's inputs have the extents of the operands, its carries the same before and after a step."""
    steps = fresh(loop.length)
    if loop.length == UNKNOWN_LENGTH and loop.is_dynamic:
        steps.is_counted = True
    carries, stacked, constants = loop.split(loop.body.inputs)
    inits, wholes, values = loop.split(loop.node.operands)
    for node, operand in zip((*carries, *constants), (*inits, *values)):
        extents.of[node] = extents.of[operand]
    for node, operand in zip(stacked, wholes):
        steps = unify(steps, extents.of[operand][0])
        extents.of[node] = extents.of[operand][1:]
    extents.steps[loop.node] = steps
    if loop.is_dynamic:
        extents.trips[loop.node] = steps if steps.is_counted else Symbol(loop.length, is_counted=True)
    _find(loop.body, extents)
    for start, end in zip(carries, loop.body.outputs):
        for first, second in zip(extents.of[start], extents.of[end]):
            unify(first, second)


def _loop_result(node: Node, extents: Extents) -> Symbols:
    loop, index = LoopNode(node.operands[0]), node.attributes["index"]
    symbols = tuple(map(_as_stored, extents.of[loop.body.outputs[index]]))
    return symbols if index < loop.carries else (extents.steps[loop.node], *symbols)


def _composite(node: Node, body: Callable[..., Node], extents: Extents) -> Symbols:
    """Those of what it is made of."""
    with located_at(node.origin):
        result = body(*node.operands, **node.attributes)
    _find(Graph(node.operator.name, (), (result,)), extents)
    return extents.of[result]


def _as_stored(symbol: Symbol) -> Symbol:
    """An extent outside of the loop whose steps say how far it goes: there, arrays have room for all."""
    return symbol if symbol.find().size is None else fresh(symbol.find().value)


def _rule(node: Node) -> Rule:
    if node.operator.movement.walks is not None:
        return _walked
    return _RULES.get(node.operator.name) or _RULES[node.operator.family]


def _fresh(node: Node, operands: list[Symbols]) -> Symbols:
    return tuple(map(fresh, node.shape))


def _broadcast(node: Node, operands: list[Symbols]) -> Symbols:
    result = list(map(fresh, node.shape))
    for symbols in operands:
        for axis, symbol in enumerate(symbols, node.spec.ndim - len(symbols)):
            if symbol.find() is not ONE:
                result[axis] = unify(symbol, result[axis])
    return tuple(result)


def _reduced(node: Node, operands: list[Symbols]) -> Symbols:
    dims = node.attributes["dims"]
    if node.attributes["keepdim"]:
        return tuple(ONE if axis in dims else symbol for axis, symbol in enumerate(operands[0]))
    return tuple(symbol for axis, symbol in enumerate(operands[0]) if axis not in dims)


def _kept_where_equal(node: Node, operands: list[Symbols]) -> Symbols:
    """Slice, pad and the like: a dimension of unchanged size is untouched."""
    pairs = zip(node.operands[0].shape, node.shape, operands[0])
    return tuple(
        symbol if after == before else fresh(_moved(symbol).value + int(after) - int(before))
        for before, after, symbol in pairs
    )


def _walked(node: Node, operands: list[Symbols]) -> Symbols:
    """Those that are read along each dimension; one of unchanged size, from its start on, is untouched."""
    result = list(map(fresh, node.shape))
    walked = set()
    for walk, before, symbol in zip(node.walks, node.operands[0].shape, operands[0]):
        if walk is not None and walk.dim in walked:
            result[walk.dim] = unify(symbol, result[walk.dim])
        elif walk is not None and before == node.shape[walk.dim]:
            result[walk.dim] = _moved(symbol) if walk.backwards or walk.turns else symbol
        elif walk is not None:
            result[walk.dim] = fresh(_moved(symbol).value + int(node.shape[walk.dim]) - int(before))
        if walk is not None:
            walked.add(walk.dim)
    return tuple(result)


def _reshape(node: Node, operands: list[Symbols]) -> Symbols:
    result = list(map(fresh, node.shape))
    for old, new in reshape_groups(node.operands[0].shape, node.shape):
        if len(old) == len(new) == 1:
            result[new[0]] = operands[0][old[0]]
        else:
            for dim in old:
                _moved(operands[0][dim])
    return tuple(result)


def _scan(node: Node, operands: list[Symbols]) -> Symbols:
    for symbols in operands:
        _moved(symbols[node.attributes["dim"]])
    return _broadcast(node, operands)


def _slice_update(node: Node, operands: list[Symbols]) -> Symbols:
    for whole, part in zip(*operands):
        if whole.find().value == part.find().value:
            unify(whole, part)
    return operands[0]


def _concatenate(node: Node, operands: list[Symbols]) -> Symbols:
    dim = node.attributes["dim"]
    result = list(map(fresh, node.shape))
    for symbols in operands:
        for axis, symbol in enumerate(symbols):
            if axis != dim:
                result[axis] = unify(symbol, result[axis])
    for symbols in operands:
        _moved(symbols[dim])
    return tuple(result)


def _contract(node: Node, operands: list[Symbols]) -> Symbols:
    return _contracted(node.attributes["subscripts"], operands)


def _contracted(subscripts: str, operands: list[Symbols]) -> Symbols:
    left, right, result = split_subscripts(subscripts)
    named: dict[str, Symbol] = {}
    for letter, symbol in zip(left + right, operands[0] + operands[1]):
        named[letter] = unify(named[letter], symbol) if letter in named else symbol
    return tuple(named[letter] for letter in result)


def _gemm(node: Node, operands: list[Symbols]) -> Symbols:
    """Sums of products: all of one shape."""
    result = _fresh(node, operands)
    for place, product in enumerate(node.attributes["products"]):
        pair = operands[2 * place : 2 * place + 2]
        result = tuple(map(unify, result, _contracted(product.indices.subscripts, pair)))
    if len(operands) % 2:
        result = tuple(map(unify, result, operands[-1]))
    return result


def _ordering(node: Node, operands: list[Symbols]) -> Symbols:
    """Rows, or such and what is looked for in each."""
    *batch, _ = operands[0]
    return (*map(unify, batch, operands[-1]), operands[-1][-1])


def _selection(node: Node, operands: list[Symbols]) -> Symbols:
    """Elements of each row, and room for it."""
    return (*_ordering(node, operands)[:-1], fresh(node.shape[-1]))


def _matrix(node: Node, operands: list[Symbols]) -> Symbols:
    """Square matrices, or such and sides of equations."""
    *batch, rows, columns = operands[0]
    if len(operands) == 2:
        unify(columns, operands[1][-1 if node.attributes.get("right") else -2])
        return tuple(map(unify, batch, operands[1])) + operands[1][len(batch) :]
    unify(rows, columns)
    has_another_row = node.shape[-2] != node.shape[-1]
    return (*batch, fresh(node.shape[-2]) if has_another_row else rows, columns)


def _inverse_norm(node: Node, operands: list[Symbols]) -> Symbols:
    """A row for each of the matrix."""
    *batch, _, columns = operands[0]
    return (*batch, columns, fresh(node.shape[-1]))


def _decomposition(node: Node, operands: list[Symbols]) -> Symbols:
    """Planes of each matrix's shape, or one with another row."""
    *batch, rows, columns = operands[0]
    if len(node.shape) == len(operands[0]):
        return (*batch, fresh(node.shape[-2]), columns)
    return (*batch, fresh(node.shape[-3]), rows, columns)


def _decomposition_of_pairs(node: Node, operands: list[Symbols]) -> Symbols:
    """The same of complex matrices, or real numbers in rows of their length."""
    *batch, rows, columns, parts = operands[0]
    if len(node.shape) < len(operands[0]):
        return (*batch, fresh(node.shape[-2]), columns)
    if len(node.shape) == len(operands[0]):
        return (*batch, rows if node.shape[-3] == node.shape[-2] else fresh(node.shape[-3]), columns, parts)
    return (*batch, fresh(node.shape[-4]), rows, columns, parts)


def _determinants_of_pairs(node: Node, operands: list[Symbols]) -> Symbols:
    *batch, _, _, parts = operands[0]
    return (*batch, *map(fresh, node.shape[-3:-1]), parts)


def _triangles(node: Node, operands: list[Symbols]) -> Symbols:
    """Each matrix with two more columns."""
    *batch, rows, _ = operands[0]
    return (*batch, rows, fresh(node.shape[-1]))


def _triangles_of_pairs(node: Node, operands: list[Symbols]) -> Symbols:
    *batch, rows, _, parts = operands[0]
    return (*batch, rows, fresh(node.shape[-2]), parts)


def _product_of_pairs(node: Node, operands: list[Symbols]) -> Symbols:
    (*batch, rows, summed, parts), (*others, again, columns, _) = operands
    rows, summed = (summed, rows) if node.attributes["adjoint_a"] else (rows, summed)
    again, columns = (columns, again) if node.attributes["adjoint_b"] else (again, columns)
    unify(summed, again)
    return (*map(unify, batch, others), rows, columns, parts)


def _solution_of_pairs(node: Node, operands: list[Symbols]) -> Symbols:
    (*batch, _, size, _), (*others, rows, columns, parts) = operands
    unify(size, columns if node.attributes.get("right") else rows)
    return (*map(unify, batch, others), rows, columns, parts)


def _unify_indices(indices: list[Symbols]) -> Symbols:
    for other in indices[1:]:
        for first, second in zip(indices[0], other):
            unify(first, second)
    return indices[0]


def _gather(node: Node, operands: list[Symbols]) -> Symbols:
    for index, symbols, whole in zip(node.operands[1:], operands[1:], operands[0]):
        if index.operator is iota and index.shape[0] == whole.find().value:
            unify(symbols[0], whole)  # x[arange(n), ...] walks a dimension of x
    for whole in operands[0][: len(operands) - 1]:
        _moved(whole)
    return _unify_indices(operands[1:]) + operands[0][len(operands) - 1 :]


def _scatter(node: Node, operands: list[Symbols]) -> Symbols:
    updates, indices = operands[0], operands[1:]
    positions = _unify_indices(indices)
    for first, second in zip(updates, positions):
        unify(first, second)
    leading = node.attributes["shape"][: len(indices)]
    return tuple(map(fresh, leading)) + updates[len(positions) :]


def _index_update(node: Node, operands: list[Symbols]) -> Symbols:
    x, updates, indices = operands[0], operands[1], operands[2:]
    positions = _unify_indices(indices)
    for first, second in zip(updates, positions + x[len(indices) :]):
        unify(first, second)
    return x


def _sides(node: Node, operands: list[Symbols]) -> Symbols:
    """Solutions of equations have the shape of their sides, the last operand."""
    return operands[-1]


def _along(node: Node, operands: list[Symbols]) -> Symbols:
    """Derivatives of a matrix have the shape of their directions, the second operand."""
    return operands[1]


def _of_batches(node: Node, operands: list[Symbols]) -> Symbols:
    """What a function of Python's gives: as many rows as it is given, if it takes batches."""
    symbols = _fresh(node, operands)
    return (operands[0][0], *symbols[1:]) if node.attributes["function"].takes_batches else symbols


def _square(node: Node, operands: list[Symbols]) -> Symbols:
    """A square matrix of as many rows as each."""
    return (*operands[0][:-1], operands[0][-2])


def _slice_at(node: Node, extents: Extents) -> Symbols:
    symbols = list(_kept_where_equal(node, [extents.of[node.operands[0]]]))
    for dim, symbol in extents.ragged(node, node).items():
        is_whole = (symbol.size, node.shape[dim]) in extents.whole
        symbols[dim] = fresh(node.shape[dim]) if is_whole else symbol
    return tuple(symbols)


def _moved(symbol: Symbol) -> Symbol:
    """The extent of what another order, or a part, of the positions is read."""
    found = symbol.find()
    if found.size is None:
        return found
    found.is_moved = True
    return fresh(found.value)


def _dilate_at(node: Node, operands: list[Symbols]) -> Symbols:
    whole = [one if one.find().size is None else fresh(one.value) for one in operands[0]]
    return _kept_where_equal(node, [tuple(whole)])


def _update_at(node: Node, operands: list[Symbols]) -> Symbols:
    ragged = node.attributes["ragged"]
    for dim, (whole, part) in enumerate(zip(*operands[:2])):
        if whole.find().value == part.find().value and dim not in ragged:
            unify(whole, part)
    return operands[0]


Rule = Callable[[Node, list[Symbols]], Symbols]
_RULES: dict[str, Rule] = {
    "creation": _fresh,
    "control": _fresh,
    "elementwise": _broadcast,
    "complex": _broadcast,
    "eager": _broadcast,
    "foreign": _of_batches,
    "draw": _fresh,
    "on_pairs": _fresh,
    "product_of_pairs": _product_of_pairs,
    "eliminated_pairs": _decomposition_of_pairs,
    "selection": _selection,
    "determined_pairs": _determinants_of_pairs,
    "cofactor_pairs": _decomposition_of_pairs,
    "eliminated_pairs_solution": _solution_of_pairs,
    "solved_triangle_pairs": _solution_of_pairs,
    **{one.name: _decomposition_of_pairs for one in BY_CALLS.values()},
    "lu": _triangles,
    "lu_on_pairs": _triangles_of_pairs,
    "inverse_norm": _inverse_norm,
    "whole_basis": _square,
    "least_squares": _fresh,
    "definite_minors": _fresh,
    "reflections": _fresh,
    "symmetric_factors": _fresh,
    "symmetric_solution": _sides,
    "sylvester": _sides,
    "schur": _decomposition,
    "triangle_eigenvectors": _decomposition,
    "free_turn": _square,
    **{one.parts.name: _decomposition for one in FUNCTIONS},
    **{one.parts_of_blocks.name: _fresh for one in FUNCTIONS},
    **{one.derivative.name: _along for one in FUNCTIONS},
    "banded_solution": _sides,
    "definite_banded_solution": _sides,
    "reduction": _reduced,
    "scan": _scan,
    "ordering": _ordering,
    "matrix": _matrix,
    "decomposition": _decomposition,
    "reshape": _reshape,
    "pad": _kept_where_equal,
    "dilate": _kept_where_equal,
    "slice_update": _slice_update,
    "within": _fresh,
    "dilate_at": _dilate_at,
    "update_at": _update_at,
    "concatenate": _concatenate,
    "contraction": _contract,
    "gemm": _gemm,
    "gather": _gather,
    **{one.name: _scatter for one in SCATTERS},
    "index_update": _index_update,
}
