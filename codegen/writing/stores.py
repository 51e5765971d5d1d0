"""What the roots of a loop tree write where they stand: stores, and what adds up in loops around them."""

from __future__ import annotations

from collections.abc import Callable, Set

from pullback.tracer.graph import Node
from pullback.tracer.ops.elementwise import CONJUNCTION, add, multiply
from pullback.tracer.ops.indexing import index_update
from pullback.tracer.ops.movement import slice_update
from pullback.tracer.spec import BOOL

from .. import ir
from ..ir.names import BLOCK, BLOCK_STOP
from ..nests.expression import Expression, Index, Literal, Within, number
from ..nests.tree import Loop, LoopTree, RangeCheck, Reduction, Root, Search, Stage, Store
from .element import ElementWriter
from .indices import Arrays, Scope

Sharing = Callable[[Stage, Set[ir.Buffer]], ir.Sharing | None]


class RootWriter(ElementWriter):
    """Writes one root after another."""

    def __init__(
        self, tree: LoopTree, arrays: Arrays, width: Callable[[ir.Expr], int], sharing: Sharing
    ) -> None:
        """`sharing` says how threads share a stage whose statements use some buffers."""
        super().__init__(tree, arrays, width)
        self._sharing = sharing
        self._all_within: dict[Root, ir.Variable] = {}
        """By comparison of positions: the variable that says whether all are within range."""
        self._best_values: dict[Root, ir.Variable] = {}
        """By search: the variable with the best value so far."""

    def _store(self, root: Root, scope: Scope) -> None:
        node, expression = root.node, root.value
        assert expression is not None
        value = self._value_to_store(expression, scope)
        if not self.tree.kept[node] and node not in self.arrays.buffers:
            if isinstance(value, ir.Variable):
                self._locals[node] = value
            else:
                variable = self._locals[node] = self._variable(self.local_name(node), node.dtype)
                origins = ir.gathered_origins(node.origin, value)
                scope.statements.append(ir.Let(variable, value, origins))
        else:
            place = self.element(node, root.target, scope)
            if place == value:  # it is there already
                return
            if isinstance(value, ir.Variable):  # whose own statement says where it comes from
                scope.statements.append(assignment(place, value))
            else:
                self._put(place, value, root, scope)
        key = self._keys.setdefault(
            ("load", node, root.version, *map(self.key, root.target)), len(self._keys)
        )
        is_final = node.operator not in (index_update, slice_update)  # others are yet to be updated
        if isinstance(value, ir.Variable) and is_final:
            scope.known[key] = value

    def _put(self, place: ir.Variable | ir.Load, value: ir.Expr, root: Root, scope: Scope) -> None:
        origins = ir.gathered_origins(root.origin, value)
        scope.statements.append(assignment(place, value, origins))

    def _value_to_store(self, expression: Expression, scope: Scope) -> ir.Expr:
        """The value, without a name of its own if the store is its only use."""
        expression = self.chosen(expression)
        key = self.key(expression)
        known = any(key in one.known for one in scope.chain)
        if known or isinstance(expression, Literal) or self._uses.get(key, 0) > 1:
            return self.value(expression, scope)
        return self._written_out(expression, scope, conditional=False)

    def local_name(self, node: Node) -> str:
        return node.name or node.operator.noun

    def _scan(self, root: Root, scope: Scope) -> None:
        node, dim = root.node, root.node.attributes["dim"]
        assert root.value is not None
        parts = root.value.operands if len(node.operands) > 1 else (root.value,)  # type: ignore[union-attr]
        operands = dict(zip(node.operator.operands, (self.value(part, scope) for part in parts)))
        value = operands["x"]
        place = self.element(node, root.target, scope)
        index = root.target[dim]
        assert isinstance(index, Index)
        if not index.terms:  # a dimension of size 1
            self._put(place, value, root, scope)
            return
        before = list(root.target)
        before[dim] = Index((*index.terms, *number(-1).terms))
        operands["before"] = self.element(node, before, scope)
        first = ir.apply("greater", self.index(index, scope), ir.number(0))
        whole = ir.Select(first, self._continued(node, operands), value)
        self._put(place, whole, root, scope)

    @staticmethod
    def _continued(node: Node, operands: dict[str, ir.Expr]) -> ir.Expr:
        """An element of a scan from its operands and the element before."""
        if node.operator.monoid is not None:
            pair = (operands["before"], operands["x"])
            return ir.apply_operator(node.operator.monoid.fold, pair, node.dtype)
        assert node.operator.recurrence is not None
        return ir.fill(node.operator.recurrence, operands, node.dtype)

    # --- accumulators -------------------------------------------------------------------------------------

    def _accumulates_locally(self, root: Root) -> bool:
        """Whether all kept dims are walked by loops outside the reduced ones: the total is one variable."""
        return isinstance(root, Reduction | Search) and self._is_one_element(root, root.complete_in)

    def _is_one_element(self, root: Root, outside: list[Loop]) -> bool:
        """Whether inside of these loops the root always adds to the same place."""
        return all(
            isinstance(index, Index) and (index.axis is None or root.bound.get(index.axis) in outside)
            for index in root.target
        )

    def _initialise(self, root: Root, scope: Scope) -> None:
        node = root.node
        if not root.begins_at_identity:
            return
        if isinstance(root, RangeCheck):
            all_within = self._all_within[root] = self._variable("in_range", BOOL)
            scope.statements.append(ir.Let(all_within, ir.Const(True, BOOL)))
            return
        start = self._initial(node)
        if self._accumulates_locally(root):
            total = self._locals[node] = self._variable(self.local_name(node), node.dtype)
            scope.statements.append(ir.Let(total, start))
            if isinstance(root, Search):
                self._best(root, scope)
            return
        scope.statements.append(self._filled_with(root, start, scope))

    def _filled_with(self, root: Root, start: ir.Expr, scope: Scope) -> ir.Store | ir.For:
        """Loops that fill the storage of a total, but for the dimensions that enclosing loops walk."""
        node, outside = root.node, root.complete_in
        indices: list[ir.Expr] = []
        loops: list[tuple[ir.Variable, ir.Expr, ir.Expr, int]] = []
        for dim in self.tree.kept[node]:
            index = root.target[dim]
            loop = root.bound.get(index.axis) if isinstance(index, Index) and index.axis else None
            if loop in outside:
                indices.append(self.position_in_storage(node, dim, index, scope))
                continue
            variable = ir.Variable(self.arrays.pool.loop_variable(depth_of(scope) + len(loops)))
            extent = self.tree.extents[node][dim]
            if loop is not None and loop.outer in outside:  # its rows of a block alone
                loops.append((variable, ir.Variable(BLOCK), ir.Variable(BLOCK_STOP), 0))
            else:
                loops.append((variable, ir.number(0), self.extent(extent), extent.value))
            is_of_block = self.tree.in_blocks.get(node) == dim
            indices.append(ir.apply("subtract", variable, ir.Variable(BLOCK)) if is_of_block else variable)
        result: ir.Store | ir.For = ir.Store(ir.Load(self.array(node), tuple(indices)), start)
        for variable, first, stop, count in reversed(loops):
            result = ir.For(variable, first, stop, (result,), count=count)
        return result

    def _initial(self, node: Node) -> ir.Const:
        """What a total begins with; a search with the first position."""
        monoid = node.operator.monoid
        return ir.Const(0 if monoid is None else monoid.identity(node.dtype), node.dtype)

    def _reduce(self, root: Root, scope: Scope) -> None:
        node = root.node
        assert root.value is not None
        value = self.value(root.value, scope)
        total = self.element(node, root.target, scope)
        if not root.reduced:  # every reduced dimension has size 1
            self._store(root, scope)
            return
        monoid = node.operator.monoid
        assert monoid is not None
        is_free = monoid.fold in (add, multiply) and node.dtype.kind == "f"
        origins = ir.gathered_origins(node.origin, value)
        scope.statements.append(ir.Accumulate(total, value, monoid, is_free, origins))

    def _scatter(self, root: Root, scope: Scope) -> None:
        place, value = self._place_and_value(root, scope)
        monoid = root.node.operator.monoid
        assert monoid is not None
        is_free = monoid.fold in (add, multiply)
        if isinstance(place, ir.Load) and not is_free:  # the place is named twice
            place = ir.Load(place.buffer, tuple(self._named(index, scope) for index in place.indices))
        origins = ir.gathered_origins(root.node.origin, value)
        scope.statements.append(ir.Accumulate(place, value, monoid, is_free, origins))

    def _named(self, index: ir.Expr, scope: Scope) -> ir.Expr:
        """A position as a variable, if it is not one."""
        if isinstance(index, ir.Variable | ir.Const):
            return index
        variable = self._variable("place")
        scope.statements.append(ir.Let(variable, index))
        return variable

    def _update(self, root: Root, scope: Scope) -> None:
        self._put(*self._place_and_value(root, scope), root, scope)

    def _place_and_value(self, root: Root, scope: Scope) -> tuple[ir.Variable | ir.Load, ir.Expr]:
        assert root.value is not None
        value = self._value_to_store(root.value, scope)
        return self.element(root.node, root.target, scope), value

    def _store_total(self, root: Root, scope: Scope) -> None:
        """After the loops of a reduction: put the total where others look for it."""
        node = root.node
        if isinstance(root, RangeCheck):
            self._raise_unless(self._all_within[root], root, scope)
            return
        if node not in self._locals or node not in self.arrays.buffers:
            return
        at = (self.position_in_storage(node, dim, root.target[dim], scope) for dim in self.tree.kept[node])
        scope.statements.append(ir.Store(ir.Load(self.arrays.buffers[node], tuple(at)), self._locals[node]))

    def _check(self, root: Root, scope: Scope) -> None:
        assert root.value is not None
        within = self.value(root.value, scope)
        if root.reduced:
            total, origins = self._all_within[root], (root.node.origin,)
            scope.statements.append(ir.Accumulate(total, within, CONJUNCTION, True, origins))
        else:
            self._raise_unless(within, root, scope)

    def _raise_unless(self, condition: ir.Expr, root: Root, scope: Scope) -> None:
        within = root.value
        assert isinstance(within, Within)
        node = within.node
        while node not in self.arrays.buffers and node.operands:
            node = node.operands[0]
        own = node.name or node.operator.noun
        name = self.arrays.buffers[node].name if node in self.arrays.buffers else own
        scope.statements.append(ir.Check(condition, f"{name}, dimension {within.dim}"))

    def _best(self, root: Root, scope: Scope) -> None:
        """argmax and argmin carry the best value beside its index."""
        dtype, search = root.node.operands[0].dtype, root.node.operator.search
        assert search is not None
        best = self._best_values[root] = self._variable("best", dtype)
        scope.statements.append(ir.Let(best, ir.Const(search.identity(dtype), dtype)))

    def _search(self, root: Root, scope: Scope) -> None:
        """The first of equals wins, and a nan wins over all."""
        node = root.node
        assert root.value is not None
        if not root.reduced:
            self._store(Store(node, value=Literal(0, node.dtype), target=root.target), scope)
            return
        value = self.value(root.value, scope)
        if not isinstance(value, ir.Variable):
            value = self._temporary("candidate", value, scope)
        best, place = self._best_values[root], self._locals[node]
        assert node.operator.search is not None
        better = ir.apply_operator(node.operator.search.beats, (value, best), BOOL)
        is_nan, is_none = ir.apply("not_equal", value, value), ir.apply("equal", best, best)
        wins = ir.apply("or", better, ir.apply("and", is_nan, is_none))
        beats = self._temporary("beats", wins, scope)
        position = self._root_variables[next(iter(root.reduced))]
        scope.statements.append(ir.Assign(place, ir.Select(beats, position, place)))
        scope.statements.append(ir.Assign(best, ir.Select(beats, value, best), (node.origin,)))

    def _temporary(self, name: str, value: ir.Expr, scope: Scope) -> ir.Variable:
        variable = self._variable(name, value.dtype)
        scope.statements.append(ir.Let(variable, value))
        return variable


def depth_of(scope: Scope) -> int:
    """How many loops with a variable of their own are around a scope."""
    return sum(one.loop is not None and not one.loop.block for one in scope.chain)


def assignment(
    place: ir.Variable | ir.Load, value: ir.Expr, origins: ir.Origins = ()
) -> ir.Assign | ir.Store:
    if isinstance(place, ir.Load):
        return ir.Store(place, value, origins)
    return ir.Assign(place, value, origins)
