"""From a loop tree to statements: loops, with what stands in them (`roots.py`) and calls of the library."""

from __future__ import annotations

import re

from pullback.tracer.graph import Node
from pullback.tracer.ops.elementwise import logical_not
from pullback.tracer.spec import BOOL

from .. import ir
from ..nests.expression import Compute, Expression, Index, Quotient
from ..nests.extents import Symbol
from ..nests.interior import Interior, find_interior
from ..nests.library import write_call
from ..nests.totals import is_imprecise_sum
from ..nests.tree import Item, Loop, Root
from ..targets.python.expressions import spell
from .indices import Scope
from .layout import Block, ForLoop, Line
from .names import BLOCK, BLOCK_STOP, NEEDED, loop_variable
from .roots import RootWriter, depth_of


class Writer(RootWriter):
    """Writes the loop tree of one generated function."""

    def write(self, items: list[Item], shared: bool = False) -> tuple[Line | ForLoop | Block, ...]:
        """The statements of a function that runs `items`; if shared, only `start` to `stop` of each."""
        self.shared = items if shared else []
        self._reducing = [root for root in self.tree.roots if root.reduced]
        self._begun: dict[Node, Root] = {}
        self._at_border = False
        self._opposites: dict[str, str] = {}
        """Of variables that say whether a choice is taken, the one that says the opposite."""
        scope = Scope(None, None)
        self._write_items(items, scope)
        order = list(self.reserved.values())
        self.prologue.sort(
            key=lambda line: order.index(name) if (name := line.text.split()[0]) in order else len(order)
        )
        return tuple(scope.lines)

    def _write_items(self, items: list[Item], scope: Scope) -> None:
        counted: set[int] = set()
        uses_outside, self._uses = self._uses, {}
        for root in (one for one in items if isinstance(one, Root)):
            self._bind(root)
            for expression in (root.value, *root.target):
                if expression is not None and not isinstance(expression, Index | Quotient):
                    self.count_uses(expression, counted)
        for item in items:
            if isinstance(item, Loop):
                self._write_loop(item, scope)
            else:
                self._write_root(item, scope)
        self._uses = uses_outside

    def _bind(self, root: Root) -> None:
        for axis, loop in root.bound.items():
            self._root_variables[axis] = self._variables[loop]

    def _write_loop(self, loop: Loop, scope: Scope) -> None:
        roots = [root for root in self._reducing if root.first_reduced is loop and self._begins(root)]
        for root in roots:
            self._bind_outside(root, scope)
            self._initialise(root, scope)
        totals = self._begin_parts(loop, scope)
        inner = Scope(loop, scope)
        start, stop = ("start", "stop") if loop in self.shared else ("0", self._stop(loop, scope))
        if loop.block:
            self._variables[loop] = ir.Variable(BLOCK)
            inner.lines.append(Line(f"{BLOCK_STOP} = min({BLOCK} + {loop.block}, {stop})"))
        else:
            self._variables[loop] = ir.Variable(loop_variable(depth_of(scope)))
        if loop.steps:
            self._root_variables[loop.steps] = self._variables[loop]
        if loop.outer:
            start, stop = BLOCK, BLOCK_STOP
        is_plain = not (loop.block or loop.steps or self._at_border)
        interior = find_interior(loop, self.tree.roots) if is_plain else None
        if interior:
            self._write_interior(loop, interior, start, stop, scope)
        elif loop.once or loop.goes_on:
            self._write_items(loop.items, inner)
            self._write_dynamic(loop, inner, scope)
        else:
            self._write_items(loop.items, inner)
            step = str(loop.block) if loop.block else ""
            if inner.lines:
                count = self._count(loop)
                scope.lines.append(
                    ForLoop(self._variables[loop].name, start, stop, tuple(inner.lines), step, count)
                )
        self._add_parts(totals, scope)
        for root in roots:
            self._store_total(root, scope)

    def _count(self, loop: Loop) -> int:
        """The number of iterations, where that says how long the loop takes."""
        in_parts = loop in self.shared or loop.block or loop.outer
        return 0 if in_parts or loop.steps else loop.extent.value

    def _stop(self, loop: Loop, scope: Scope) -> str:
        if loop.goes_on:
            return ""
        if loop.is_short:
            return str(loop.extent.value)
        formula = loop.extent.find().formula  # how far a ragged dimension goes in this step
        return spell(self.extent(loop.extent) if formula is None else self.index(formula, scope))

    def _write_dynamic(self, loop: Loop, inner: Scope, scope: Scope) -> None:
        """A choice, or a loop that goes on as long as something is true."""
        counter = self._variables[loop]
        variable = counter.name
        is_used = any(_mentions(variable, line) for line in inner.lines)
        first = Line(f"{variable} = 0")
        if loop.once:
            lines = (first, *inner.lines) if is_used else tuple(inner.lines)
            self._write_choice(spell(self.extent(loop.extent)), lines, scope)
            return
        assert loop.goes_on is not None and loop.steps is not None
        self._root_variables[loop.steps] = counter
        test = spell(self.element(loop.goes_on.node, loop.goes_on.indices, inner))
        symbol = loop.extent.find()
        count = self._extents[symbol] = self._variable("steps")
        room: tuple[Line, ...] = ()
        if symbol in self.arrays.growing:
            room = self._require_room(f"{variable} >=", symbol, f"2 * {variable}")
        scope.lines.append(first)
        scope.lines.append(Block(f"while {test}", (*room, *inner.lines, Line(f"{variable} += 1"))))
        scope.lines.append(Line(f"{count.name} = {variable}"))

    def _write_choice(self, truth: str, lines: tuple[Line | ForLoop | Block, ...], scope: Scope) -> None:
        """`if` around lines; `else`, where they are to run if those just before do not."""
        opposite = self._opposites.get(truth)
        written = scope.lines
        if len(written) > 1 and getattr(written[-1], "text", "") == f"{truth} = not {opposite}":
            last_but_one = getattr(written[-2], "header", "")
            written[-2:] = written[-2:] if last_but_one != f"if {opposite}" else reversed(written[-2:])
        is_other = bool(written) and getattr(written[-1], "header", "") == f"if {opposite}"
        written.append(Block("else" if is_other else f"if {truth}", lines))

    def _trips(self, root: Root, scope: Scope) -> None:
        """The number of steps of a loop, and whether there is room for what it tapes."""
        assert root.value is not None
        symbol = self.tree.extents.trips[root.node].find()
        value = self.value(root.value, scope)
        if symbol in self._extents:  # of another loop of as many steps
            return
        if isinstance(value, ir.Variable):
            count = value
        else:
            count = self._variable("taken" if _is_truth(root.value) else "steps", value.dtype)
            self.line(scope, f"{count.name} = {spell(value)}", value, root.node.origin, root.value)
        self._extents[symbol] = count
        expression = self.chosen(root.value)
        if isinstance(expression, Compute) and expression.node.operator is logical_not:
            opposite = self.value(expression.operands[0], scope)
            if isinstance(opposite, ir.Variable):
                self._opposites |= {count.name: opposite.name, opposite.name: count.name}
        if symbol in self.arrays.growing:
            scope.lines.extend(self._require_room(f"{count.name} >", symbol, count.name))

    def _require_room(self, comparison: str, symbol: Symbol, needed: str) -> tuple[Line, ...]:
        """Return if there are too few rows for what a loop tapes, and say how many are needed."""
        place = list(self.arrays.growing).index(symbol)
        return (
            Line(f"if {comparison} {self.arrays.growing[symbol].name}.shape[0]:"),
            Line(f"    {NEEDED}[{place}] = {needed}"),
            Line("    return"),
        )

    def _begin_parts(self, loop: Loop, scope: Scope) -> dict[Root, str]:
        """Totals in small precision get a part for each inner loop, so that fewer terms share a total."""
        totals: dict[Root, str] = {}
        for root in filter(is_imprecise_sum, self._reducing):
            is_inner = loop in root.path and root.first_reduced is not loop
            reduces = is_inner and root.axis_of(loop) in root.reduced
            if reduces and self._is_one_element(root, root.path[: root.path.index(loop)]):
                self._bind_outside(root, scope)
                totals[root] = spell(self.element(root.node, root.target, scope))
                whole = self._locals.get(root.node)
                part = self._variable(
                    f"part_of_{whole.name if whole else self.local_name(root.node)}", root.node.dtype
                )
                self._locals[root.node] = part
                scope.lines.append(Line(f"{part.name} = {spell(self._initial(root.node))}"))
        return totals

    def _add_parts(self, totals: dict[Root, str], scope: Scope) -> None:
        for root, total in totals.items():
            scope.lines.append(Line(f"{total} += {self._locals.pop(root.node).name}"))
            if total.isidentifier():
                self._locals[root.node] = ir.Variable(total, root.node.dtype)

    def _write_interior(self, loop: Loop, interior: Interior, start: str, stop: str, scope: Scope) -> None:
        """The loop twice: over its interior, where the answers are known, and over what lies around that."""
        variable, pool = self._variables[loop].name, self.arrays.pool
        low, high, border = pool.take(f"{variable}_low"), pool.take(f"{variable}_high"), pool.take("border")
        lows = [spell(self.index(one, scope)) for one in interior.lows]
        highs = [spell(self.index(one, scope)) for one in interior.highs]
        if start != "0":  # a part of the loop
            lows, highs = [start, *lows], [stop, *highs]
        scope.lines.append(Line(f"{low} = {_extreme('max', lows)}"))
        scope.lines.append(Line(f"{high} = {_extreme('max', [low, _extreme('min', highs)])}"))
        inner = Scope(loop, scope)
        with self.assuming(interior.truth):
            self._write_items(loop.items, inner)
        scope.lines.append(ForLoop(variable, low, high, tuple(inner.lines), count=self._count(loop)))
        around = Scope(loop, scope)
        self._at_border = True
        self._write_items(loop.items, around)
        self._at_border = False
        count = f"{high} - {low}"
        place = border if start == "0" else f"{start} + {border}"
        number = f"{stop} - ({count})" if start == "0" else f"{stop} - {start} - ({count})"
        first = Line(f"{variable} = {place} if {place} < {low} else {place} + ({count})")
        scope.lines.append(ForLoop(border, "0", number, (first, *around.lines), count=self._count(loop)))

    def _begins(self, root: Root) -> bool:
        """Whether no other root has begun to add to the same array."""
        return root.kind == "check" or self._begun.setdefault(root.node, root) is root

    def _bind_outside(self, root: Root, scope: Scope) -> None:
        for axis, loop in root.bound.items():
            if loop in self._variables and any(one.loop is loop for one in scope.chain):
                self._root_variables[axis] = self._variables[loop]

    def _write_root(self, root: Root, scope: Scope) -> None:
        if root.kind == "call":
            scope.lines.append(write_call(root, self, scope))
        elif root.kind != "view":
            single = root.kind == "scatter" and root.first_reduced is None  # one update, no loop around it
            if single and self._begins(root):
                self._initialise(root, scope)
            getattr(self, f"_{root.kind}")(root, scope)


def _mentions(name: str, item: Line | ForLoop | Block) -> bool:
    """Whether statements read a variable."""
    return re.search(rf"\b{name}\b", repr(item)) is not None


def _extreme(function: str, values: list[str]) -> str:
    """The text of max(...) or min(...), numbers put together."""
    pick = {"max": max, "min": min}[function]
    plain = [int(value) for value in values if value.lstrip("-").isdigit()]
    rest = [value for value in dict.fromkeys(values) if not value.lstrip("-").isdigit()]
    found = [*([str(pick(plain))] if plain else []), *rest]
    return found[0] if len(found) == 1 else f"{function}({', '.join(found)})"


def _is_truth(expression: Expression) -> bool:
    node = getattr(expression, "node", None)
    return node is not None and node.dtype == BOOL
