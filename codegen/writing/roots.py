"""What the roots of a loop tree write where they stand: stores, and what adds up in loops around them."""

from __future__ import annotations

import ast

from pullback.tracer.graph import Node
from pullback.tracer.ops.indexing import index_update
from pullback.tracer.ops.movement import slice_update
from pullback.tracer.spec import BOOL

from ..nests.expression import Expression, Index, Literal, Within, number
from ..nests.library import starts_at_zero
from ..nests.tree import Loop, LoopTree, Root
from . import spelling as sp
from .element import ElementWriter, comment_of, subscript
from .indices import Arrays, Scope
from .layout import ForLoop, Line
from .names import loop_variable


class RootWriter(ElementWriter):
    """Writes one root after another; a method for each kind."""

    def __init__(self, tree: LoopTree, arrays: Arrays) -> None:
        super().__init__(tree, arrays)
        self._all_within: dict[Root, str] = {}
        """By comparison of positions: the variable that says whether all are within range."""
        self._best_names: dict[Root, str] = {}
        """By search: the variable with the best value so far."""

    def _store(self, root: Root, scope: Scope) -> None:
        node, expression = root.node, root.value
        assert expression is not None
        value = self._value_to_store(expression, scope)
        if not self.tree.kept[node] and node not in self.arrays.names:
            name = value.id if isinstance(value, ast.Name) else self.arrays.pool.take(self.local_name(node))
            self._locals[node] = name
            if not isinstance(value, ast.Name):
                self.line(scope, f"{name} = {sp.unparse(value)}", value, node.origin, expression)
        else:
            place = self.element(node, root.target, scope)
            if sp.unparse(place) == sp.unparse(value):  # it is there already
                return
            origin = None if isinstance(value, ast.Name) else root.origin or node.origin
            inlined = None if isinstance(value, ast.Name) else expression
            self.line(scope, f"{sp.unparse(place)} = {sp.unparse(value)}", value, origin, inlined)
        key = self._keys.setdefault(
            ("load", node, root.version, *map(self.key, root.target)), len(self._keys)
        )
        is_final = node.operator not in (index_update, slice_update)  # others are yet to be updated
        if isinstance(value, ast.Name) and is_final:
            scope.known[key] = value.id

    _overwrite = _store

    def _value_to_store(self, expression: Expression, scope: Scope) -> ast.expr:
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
            self.line(scope, f"{sp.unparse(place)} = {sp.unparse(value)}", value, node.origin, root.value)
            return
        before = list(root.target)
        before[dim] = Index((*index.terms, *number(-1).terms))
        operands["before"] = self.element(node, before, scope)
        running = self._continued(node, operands)
        first = ast.Compare(self.index(index, scope), [ast.Gt()], [ast.Constant(0)])
        whole = ast.IfExp(first, running, value)
        self.line(scope, f"{sp.unparse(place)} = {sp.unparse(whole)}", whole, node.origin, root.value)

    @staticmethod
    def _continued(node: Node, operands: dict[str, ast.expr]) -> ast.expr:
        """An element of a scan from its operands and the element before."""
        if node.operator.monoid is not None:
            return sp.filled(node.operator.monoid.fold, (operands["before"], operands["x"]), node.dtype)
        assert node.operator.recurrence is not None
        return sp.fill(node.operator.recurrence, operands, node.dtype)

    # --- accumulators -------------------------------------------------------------------------------------

    def _accumulates_locally(self, root: Root) -> bool:
        """Whether all kept dims are walked by loops outside the reduced ones: the total is one variable."""
        return root.kind in ("reduce", "search") and self._is_one_element(root, root.complete_in)

    def _is_one_element(self, root: Root, outside: list[Loop]) -> bool:
        """Whether inside of these loops the root always adds to the same place."""
        return all(
            isinstance(index, Index) and (index.axis is None or root.bound.get(index.axis) in outside)
            for index in root.target
        )

    def _initialise(self, root: Root, scope: Scope) -> None:
        node = root.node
        if root.kind == "update" or (root.kind == "call" and not starts_at_zero(root)):
            return
        if root.kind == "check":
            self._all_within[root] = self.arrays.pool.take("in_range")
            scope.lines.append(Line(f"{self._all_within[root]} = True"))
            return
        start = self._initial(node)
        self.called |= sp.called_names(start)
        if self._accumulates_locally(root):
            name = self.arrays.pool.take(self.local_name(node))
            self._locals[node] = name
            scope.lines.append(Line(f"{name} = {sp.unparse(start)}"))
            if root.kind == "search":
                self._best(root, scope)
            return
        scope.lines.append(self._filled_with(root, sp.unparse(start), scope))

    def _filled_with(self, root: Root, start: str, scope: Scope) -> Line | ForLoop:
        """Loops that fill the storage of a total, but for the dimensions that enclosing loops walk."""
        node, outside = root.node, root.complete_in
        indices: list[ast.expr] = []
        loops: list[tuple[str, str, int]] = []
        for dim in self.tree.kept[node]:
            index = root.target[dim]
            axis = index.axis if isinstance(index, Index) else None
            if axis is not None and root.bound.get(axis) in outside:
                indices.append(self.position_in_storage(node, dim, index, scope))
            else:
                variable = loop_variable(depth_of(scope) + len(loops))
                extent = self.tree.extents[node][dim]
                loops.append((variable, self.extent(extent), extent.value))
                indices.append(ast.Name(variable))
        item: Line | ForLoop = Line(f"{sp.unparse(subscript(self.array(node), indices))} = {start}")
        for variable, stop, count in reversed(loops):
            item = ForLoop(variable, "0", stop, (item,), count=count)
        return item

    def _initial(self, node: Node) -> ast.expr:
        monoid = node.operator.monoid
        return sp.literal(0 if monoid is None else monoid.identity(node.dtype), node.dtype)

    def _reduce(self, root: Root, scope: Scope) -> None:
        node = root.node
        assert root.value is not None
        value = self.value(root.value, scope)
        total = self.element(node, root.target, scope)
        if not root.reduced:  # every reduced dimension has size 1
            self._store(root, scope)
            return
        assert node.operator.monoid is not None
        place, fold = sp.unparse(total), node.operator.monoid.fold
        sign = sp.sign_of(fold)
        if sign and node.dtype.kind == "f":
            self.line(scope, f"{place} {sign}= {sp.unparse(value)}", value, node.origin, root.value)
            return
        whole = sp.filled(fold, (total, value), node.dtype)
        if node.dtype.kind in "iu" and node.dtype.itemsize < 8:
            whole = self._converted(whole, node.dtype)
        self.line(scope, f"{place} = {sp.unparse(whole)}", whole, node.origin, root.value)

    def _scatter(self, root: Root, scope: Scope) -> None:
        self._write_at(root, scope, "+=")

    def _update(self, root: Root, scope: Scope) -> None:
        self._write_at(root, scope, "=")

    def _write_at(self, root: Root, scope: Scope, assignment: str) -> None:
        assert root.value is not None
        value = self._value_to_store(root.value, scope)
        place = self.element(root.node, root.target, scope)
        self.line(
            scope,
            f"{sp.unparse(place)} {assignment} {sp.unparse(value)}",
            value,
            root.node.origin,
            root.value,
        )

    def _store_total(self, root: Root, scope: Scope) -> None:
        """After the loops of a reduction: put the total where others look for it."""
        node = root.node
        if root.kind == "check":
            self._raise_unless(self._all_within[root], root, scope)
            return
        if node not in self._locals or node not in self.arrays.names:
            return
        place = subscript(
            self.arrays.names[node],
            [self.position_in_storage(node, dim, root.target[dim], scope) for dim in self.tree.kept[node]],
        )
        scope.lines.append(Line(f"{sp.unparse(place)} = {self._locals[node]}"))

    def _check(self, root: Root, scope: Scope) -> None:
        assert root.value is not None
        within = self.value(root.value, scope)
        if root.reduced:
            self.line(scope, f"{self._all_within[root]} &= {sp.unparse(within)}", within, root.node.origin)
        else:
            self._raise_unless(sp.unparse(within), root, scope)

    def _raise_unless(self, condition: str, root: Root, scope: Scope) -> None:
        within = root.value
        assert isinstance(within, Within)
        scope.lines.append(Line(f"if not ({condition}):" if " " in condition else f"if not {condition}:"))
        node = within.node
        while node not in self.arrays.names and node.operands:
            node = node.operands[0]
        place = f"{self.arrays.names.get(node, node.name)}, dimension {within.dim}"
        scope.lines.append(Line(f'    raise IndexError("{place}")'))

    def _best(self, root: Root, scope: Scope) -> None:
        """argmax and argmin carry the best value beside its index."""
        dtype, search = root.node.operands[0].dtype, root.node.operator.search
        assert search is not None
        start = sp.literal(search.identity(dtype), dtype)
        self.called |= sp.called_names(start)
        name = self.arrays.pool.take("best")
        self._best_names[root] = name
        scope.lines.append(Line(f"{name} = {sp.unparse(start)}"))

    def _search(self, root: Root, scope: Scope) -> None:
        """The first of equals wins, and a nan wins over all."""
        node = root.node
        assert root.value is not None
        if not root.reduced:
            self._store(Root(node, "store", value=Literal(0, node.dtype), target=root.target), scope)
            return
        value = self.value(root.value, scope)
        if not isinstance(value, ast.Name):
            value = ast.Name(self._temporary("candidate", value, scope))
        best, place = ast.Name(self._best_names[root]), self._locals[node]
        assert node.operator.search is not None
        better = sp.filled(node.operator.search.beats, (value, best), BOOL)
        operands = {"better": better, "x": value, "best": best}
        first_nan = "{better} or ({x} != {x} and {best} == {best})"
        beats = self._temporary("beats", sp.fill(first_nan, operands, BOOL), scope)
        axis = next(iter(root.reduced))
        scope.lines.append(Line(f"{place} = {self._root_variables[axis]} if {beats} else {place}"))
        scope.lines.append(
            Line(f"{best.id} = {value.id} if {beats} else {best.id}", comment_of([node.origin]))
        )

    def _temporary(self, name: str, value: ast.expr, scope: Scope) -> str:
        name = self.arrays.pool.take(name)
        self.line(scope, f"{name} = {sp.unparse(value)}", value, None)
        return name


def depth_of(scope: Scope) -> int:
    """How many loops with a variable of their own are around a scope."""
    return sum(one.loop is not None and not one.loop.block for one in scope.chain)
