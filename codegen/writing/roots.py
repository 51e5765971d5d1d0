"""What the roots of a loop tree write where they stand: stores, and what adds up in loops around them."""

from __future__ import annotations

import numpy as np

from pullback.tracer.graph import Node
from pullback.tracer.ops.indexing import index_update
from pullback.tracer.ops.movement import slice_update
from pullback.tracer.spec import BOOL

from .. import ir
from ..nests.expression import Expression, Index, Literal, Within, number
from ..nests.library import starts_at_zero
from ..nests.tree import Loop, LoopTree, Root
from ..targets.python.expressions import ATOM, spell
from .element import ElementWriter, as_wide_as, called_names, comment_of
from .indices import Arrays, Scope
from .layout import ForLoop, Line
from .names import loop_variable, noun

ACCUMULATE = {
    "sum": "{total} + {x}",
    "prod": "{total} * {x}",
    "amax": "maximum({total}, {x})",
    "amin": "minimum({total}, {x})",
    "all": "{total} & {x}",
    "any": "{total} | {x}",
}
CONTINUE = {
    "cumsum": "{before} + {x}",
    "cumprod": "{before} * {x}",
    "linear_recurrence": "{x} + {factor} * {before}",
}


class RootWriter(ElementWriter):
    """Writes one root after another; a method for each kind."""

    def __init__(self, tree: LoopTree, arrays: Arrays) -> None:
        super().__init__(tree, arrays)
        self._all_within: dict[Root, ir.Variable] = {}
        """By comparison of positions: the variable that says whether all are within range."""
        self._best_names: dict[Root, ir.Variable] = {}
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
                self.line(scope, f"{variable.name} = {spell(value)}", value, node.origin, expression)
        else:
            place = self.element(node, root.target, scope)
            if place == value:  # it is there already
                return
            origin = None if isinstance(value, ir.Variable) else root.origin or node.origin
            inlined = None if isinstance(value, ir.Variable) else expression
            self.line(scope, f"{spell(place)} = {spell(value)}", value, origin, inlined)
        key = self._keys.setdefault(
            ("load", node, root.version, *map(self.key, root.target)), len(self._keys)
        )
        is_final = node.operator not in (index_update, slice_update)  # others are yet to be updated
        if isinstance(value, ir.Variable) and is_final:
            scope.known[key] = value

    _overwrite = _store

    def _value_to_store(self, expression: Expression, scope: Scope) -> ir.Expr:
        """The value, without a name of its own if the store is its only use."""
        expression = self.chosen(expression)
        key = self.key(expression)
        known = any(key in one.known for one in scope.chain)
        if known or isinstance(expression, Literal) or self._uses.get(key, 0) > 1:
            return self.value(expression, scope)
        return self._written_out(expression, scope, conditional=False)

    def local_name(self, node: Node) -> str:
        return node.name or noun(node.operator.name)

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
            self.line(scope, f"{spell(place)} = {spell(value)}", value, node.origin, root.value)
            return
        before = list(root.target)
        before[dim] = Index((*index.terms, *number(-1).terms))
        operands["before"] = self.element(node, before, scope)
        running = ir.fill(CONTINUE[node.operator.name], operands, node.dtype)
        first = ir.apply("greater", self.index(index, scope), ir.number(0))
        whole = ir.Select(first, running, value)
        self.line(scope, f"{spell(place)} = {spell(whole)}", whole, node.origin, root.value)

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
            all_within = self._all_within[root] = self._variable("in_range", BOOL)
            scope.lines.append(Line(f"{all_within.name} = True"))
            return
        start = self._initial(node)
        self.called |= called_names(start)
        if self._accumulates_locally(root):
            total = self._locals[node] = self._variable(self.local_name(node), node.dtype)
            scope.lines.append(Line(f"{total.name} = {spell(start)}"))
            if root.kind == "search":
                self._best(root, scope)
            return
        scope.lines.append(self._filled_with(root, spell(start), scope))

    def _filled_with(self, root: Root, start: str, scope: Scope) -> Line | ForLoop:
        """Loops that fill the storage of a total, but for the dimensions that enclosing loops walk."""
        node, outside = root.node, root.complete_in
        indices: list[ir.Expr] = []
        loops: list[tuple[str, str, int]] = []
        for dim in self.tree.kept[node]:
            index = root.target[dim]
            axis = index.axis if isinstance(index, Index) else None
            if axis is not None and root.bound.get(axis) in outside:
                indices.append(self.position_in_storage(node, dim, index, scope))
            else:
                variable = loop_variable(depth_of(scope) + len(loops))
                extent = self.tree.extents[node][dim]
                loops.append((variable, spell(self.extent(extent)), extent.value))
                indices.append(ir.Variable(variable))
        item: Line | ForLoop = Line(f"{spell(ir.Load(self.array(node), tuple(indices)))} = {start}")
        for variable, stop, count in reversed(loops):
            item = ForLoop(variable, "0", stop, (item,), count=count)
        return item

    def _initial(self, node: Node) -> ir.Expr:
        name, dtype = node.operator.name, node.dtype
        if name in ("sum", "scatter_add", "gemm", "argmax", "argmin", "any"):
            return ir.Const(0, dtype)
        if name in ("prod", "all"):
            return ir.Const(1, dtype)
        return ir.Const(worst(name, dtype), dtype)

    def _reduce(self, root: Root, scope: Scope) -> None:
        node = root.node
        assert root.value is not None
        value = self.value(root.value, scope)
        total = self.element(node, root.target, scope)
        if not root.reduced:  # every reduced dimension has size 1
            self._store(root, scope)
            return
        name = node.operator.name
        place = spell(total)
        if name in ("sum", "prod") and node.dtype.kind == "f":
            sign = "+" if name == "sum" else "*"
            self.line(scope, f"{place} {sign}= {spell(value)}", value, node.origin, root.value)
            return
        combined = ir.fill(ACCUMULATE[name], {"total": total, "x": value}, node.dtype)
        whole = as_wide_as(node.dtype, combined)
        self.line(scope, f"{place} = {spell(whole)}", whole, node.origin, root.value)

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
            f"{spell(place)} {assignment} {spell(value)}",
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
        if node not in self._locals or node not in self.arrays.buffers:
            return
        at = (self.position_in_storage(node, dim, root.target[dim], scope) for dim in self.tree.kept[node])
        place = ir.Load(self.arrays.buffers[node], tuple(at))
        scope.lines.append(Line(f"{spell(place)} = {self._locals[node].name}"))

    def _check(self, root: Root, scope: Scope) -> None:
        assert root.value is not None
        within = self.value(root.value, scope)
        if root.reduced:
            text = f"{self._all_within[root].name} &= {spell(within)}"
            self.line(scope, text, within, root.node.origin)
        else:
            self._raise_unless(within, root, scope)

    def _raise_unless(self, condition: ir.Expr, root: Root, scope: Scope) -> None:
        within = root.value
        assert isinstance(within, Within)
        scope.lines.append(Line(f"if not {spell(condition, ATOM)}:"))
        node = within.node
        while node not in self.arrays.buffers and node.operands:
            node = node.operands[0]
        name = self.arrays.buffers[node].name if node in self.arrays.buffers else node.name
        scope.lines.append(Line(f'    raise IndexError("{name}, dimension {within.dim}")'))

    def _best(self, root: Root, scope: Scope) -> None:
        """argmax and argmin carry the best value beside its index."""
        dtype = root.node.operands[0].dtype
        start = ir.Const(worst("amax" if root.node.operator.name == "argmax" else "amin", dtype), dtype)
        self.called |= called_names(start)
        best = self._best_names[root] = self._variable("best", dtype)
        scope.lines.append(Line(f"{best.name} = {spell(start)}"))

    def _search(self, root: Root, scope: Scope) -> None:
        """The first of equals wins, and a nan wins over all."""
        node = root.node
        assert root.value is not None
        if not root.reduced:
            self._store(Root(node, "store", value=Literal(0, node.dtype), target=root.target), scope)
            return
        value = self.value(root.value, scope)
        if not isinstance(value, ir.Variable):
            value = self._temporary("candidate", value, scope)
        best, place = self._best_names[root], self._locals[node]
        sign = ">" if node.operator.name == "argmax" else "<"
        test = f"{{x}} {sign} {{best}} or ({{x}} != {{x}} and {{best}} == {{best}})"
        beats = self._temporary("beats", ir.fill(test, {"x": value, "best": best}, BOOL), scope)
        position = self._root_variables[next(iter(root.reduced))]
        scope.lines.append(Line(f"{place.name} = {spell(ir.Select(beats, position, place))}"))
        text = f"{best.name} = {spell(ir.Select(beats, value, best))}"
        scope.lines.append(Line(text, comment_of([node.origin])))

    def _temporary(self, name: str, value: ir.Expr, scope: Scope) -> ir.Variable:
        variable = self._variable(name, value.dtype)
        self.line(scope, f"{variable.name} = {spell(value)}", value, None)
        return variable


def depth_of(scope: Scope) -> int:
    """How many loops with a variable of their own are around a scope."""
    return sum(one.loop is not None and not one.loop.block for one in scope.chain)


def worst(name: str, dtype: np.dtype) -> float | int | bool:
    """What any element beats: the start of a search for an extreme."""
    if dtype.kind == "b":
        return name == "amin"
    if dtype.kind == "f":
        return -np.inf if name == "amax" else np.inf
    limits = np.iinfo(dtype)
    return int(limits.min if name == "amax" else limits.max)
