"""From a loop tree to statements: loops, with what stands in them (`stores.py`, `library_calls.py`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from pullback.tracer.graph import Node
from pullback.tracer.ops.elementwise import ADDITION, logical_not
from pullback.tracer.spec import BOOL

from .. import ir
from ..ir.names import BLOCK, BLOCK_STOP
from ..nests.expression import Compute, Expression, Index, Quotient
from ..nests.extents import Symbol
from ..nests.interior import Stretch, find_stretches
from ..nests.totals import is_imprecise_sum
from ..nests.tree import (
    Call,
    Item,
    Loop,
    Overwrite,
    RangeCheck,
    Reduction,
    Root,
    Scan,
    Scatter,
    Search,
    Stage,
    StepCount,
    Store,
    Update,
)
from .indices import Scope
from .library_calls import LibraryWriter
from .stores import depth_of


class Writer(LibraryWriter):
    """Writes the loop tree of one generated function."""

    def write(self, items: list[Item], shared: bool = False) -> ir.Body:
        """The statements of a function that runs `items`; if shared, only `start` to `stop` of each."""
        self.shared = items if shared else []
        reducing = [root for root in self.tree.roots if root.reduced]
        self._imprecise_sums = list(filter(is_imprecise_sum, reducing))
        self._ending: defaultdict[Loop | None, list[Root]] = defaultdict(list)
        """What is complete when a loop has ended."""
        for root in reducing:
            self._ending[root.first_reduced].append(root)
        self._begun: dict[Node, Root] = {}
        self._at_border = False
        self._opposites: dict[ir.Expr, ir.Variable] = {}
        """Of variables that say whether a choice is taken, the one that says the opposite."""
        self._taken: dict[ir.Expr, ir.Variable] = {}
        """By what they are the variables that say whether a choice is taken, or how often a loop runs."""
        scope = Scope(None, None)
        self._write_items(items, scope)
        self._order_prologue()
        return tuple(scope.statements)

    def _order_prologue(self) -> None:
        """Extents in the order of their names, but what follows from others, as now, behind them."""
        order = {name: place for place, name in enumerate(self.arrays.extent_names.values())}
        places: dict[str, int] = {}
        for one in self.prologue:
            read = (part for part in ir.expressions([one]) if isinstance(part, ir.Variable))
            places[one.defined] = max(
                order.get(one.defined, len(order)), *(places.get(part.name, 0) for part in read), 0
            )
        self.prologue.sort(key=lambda one: places[one.defined])

    def _write_steps(self, loop: Loop, scope: Scope) -> None:
        """The stages of a step, or its items."""
        for stage in loop.stages:
            if stage.shared is None:
                self._write_items(stage.items, scope)
            else:
                self._write_shared(stage, scope)
        if not loop.stages:
            self._write_items(loop.items, scope)

    def _write_shared(self, stage: Stage, scope: Scope) -> None:
        """A stage that threads share: its variables are those of a part."""
        assert stage.shared is not None
        inner, outside = Scope(None, scope), dict(self._locals)
        self.shared = stage.items
        self._write_items(stage.items, inner)
        self.shared, self._locals = [], outside
        body = tuple(inner.statements)
        if not body:  # values that lie where they are wanted
            return
        sharing = self._sharing(stage, ir.buffers(body))
        assert sharing is not None
        scope.statements.append(ir.Shared(self.extent(stage.shared), body, sharing))

    def _write_items(self, items: list[Item], scope: Scope) -> None:
        counted: set[int] = set()
        uses_outside, self._uses = self._uses, {}
        for root in (one for one in items if isinstance(one, Root)):
            self._bind(root)
            for expression in (root.value, *root.target):
                if expression is not None and not isinstance(expression, Index | Quotient):
                    self.count_uses(expression, counted)
        for item in items:
            self._write_item(item, scope)
        self._uses = uses_outside

    def _write_item(self, item: Item, scope: Scope) -> None:
        if isinstance(item, Loop):
            self._write_loop(item, scope)
        else:
            self._write_root(item, scope)

    def _bind(self, root: Root) -> None:
        for axis, loop in root.bound.items():
            self._root_variables[axis] = self._variables[loop]

    def _write_loop(self, loop: Loop, scope: Scope) -> None:
        roots = [root for root in self._ending[loop] if self._begins(root)]
        for root in roots:
            self._bind_outside(root, scope)
            self._initialise(root, scope)
        totals = self._begin_parts(loop, scope)
        inner = Scope(loop, scope)
        start, stop = self._range(loop, scope)
        if loop.block:
            block = self._variables[loop] = ir.Variable(BLOCK)
            end = ir.apply("min", ir.apply("add", block, ir.number(loop.block)), stop)
            inner.statements.append(ir.Let(ir.Variable(BLOCK_STOP), end))
        else:
            self._variables[loop] = ir.Variable(self.arrays.pool.loop_variable(depth_of(scope)))
        if loop.steps:
            self._root_variables[loop.steps] = self._variables[loop]
        is_plain = not (loop.block or loop.steps or self._at_border)
        stretches = find_stretches(loop) if is_plain else []
        if stretches:
            self._write_stretches(loop, stretches, start, stop, scope)
        elif loop.once or loop.goes_on:
            self._write_steps(loop, inner)
            self._write_dynamic(loop, inner, scope)
        else:
            self._write_steps(loop, inner)
            if inner.statements:
                scope.statements.append(self._for(loop, self._variables[loop], start, stop, inner))
        self._add_parts(totals, scope)
        for root in roots:
            self._store_total(root, scope)

    def _for(self, loop: Loop, variable: ir.Variable, start: ir.Expr, stop: ir.Expr, inner: Scope) -> ir.For:
        kind: ir.Kind = "serial"
        if loop in self.shared:
            kind = "parallel"
        elif loop.block:
            kind = "block"
        elif loop.is_short:
            kind = "unrolled"
        body = tuple(inner.statements)
        return ir.For(variable, start, stop, body, kind, loop.block or 1, self._count(loop))

    def _count(self, loop: Loop) -> int:
        """The number of iterations, where that says how long the loop takes."""
        return 0 if loop.block or loop.steps or self._is_part(loop) else loop.extent.value

    def _is_part(self, loop: Loop) -> bool:
        """Whether it runs over a part of its extent only: that of a thread, or of a block."""
        return loop in self.shared or loop.outer is not None

    def _range(self, loop: Loop, scope: Scope) -> tuple[ir.Expr, ir.Expr]:
        """From where and up to where a loop runs."""
        if loop.outer:
            return ir.Variable(BLOCK), ir.Variable(BLOCK_STOP)
        if loop in self.shared:
            return ir.PART
        if loop.goes_on:
            return ir.number(0), ir.number(0)  # nobody knows
        if loop.is_short:
            return ir.number(0), ir.number(loop.extent.value)
        formula = loop.extent.find().formula  # how far a ragged dimension goes in this step
        stop = self.size(loop.extent) if formula is None else self.index(formula, scope)
        return ir.number(0), stop

    def _write_dynamic(self, loop: Loop, inner: Scope, scope: Scope) -> None:
        """A choice, or a loop that goes on as long as something is true."""
        variable, body = self._variables[loop], tuple(inner.statements)
        first = ir.Let(variable, ir.number(0))
        if loop.once:
            body = (first, *body) if ir.mentions(variable, body) else body
            self._write_choice(self.extent(loop.extent), body, scope)
            return
        assert loop.goes_on is not None and loop.steps is not None
        self._root_variables[loop.steps] = variable
        test = self.element(loop.goes_on.node, loop.goes_on.indices, inner)
        symbol = loop.extent.find()
        count = self._extents[symbol] = self._variable("steps")
        if symbol in self.arrays.growing:
            more = ir.apply("multiply", ir.number(2), variable)
            body = (self._require_room("greater_equal", variable, symbol, more), *body)
        step = ir.Accumulate(variable, ir.number(1), ADDITION)
        scope.statements += [first, ir.While(test, (*body, step)), ir.Let(count, variable)]

    def _write_choice(self, truth: ir.Expr, body: ir.Body, scope: Scope) -> None:
        """A choice; or the other side of the one just before, if it is taken where that is not."""
        opposite, before = self._opposites.get(truth), scope.statements
        if opposite is not None:
            is_defined = bool(before) and isinstance(before[-1], ir.Let) and before[-1].variable == truth
            if is_defined and len(before) > 1 and _is_choice(before[-2], opposite):
                before[-2:] = reversed(before[-2:])
            if before and _is_choice(before[-1], opposite):
                before[-1] = replace(before[-1], otherwise=body)  # type: ignore[arg-type]
                return
        before.append(ir.If(((truth, body),)))

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
            origins = ir.gathered_origins(root.node.origin, value)
            scope.statements.append(ir.Let(count, value, origins))
            self._taken[value] = count
        self._extents[symbol] = count
        expression = self.chosen(root.value)
        if isinstance(expression, Compute) and expression.node.operator is logical_not:
            opposite = self.value(expression.operands[0], scope)
            opposite = self._taken.get(opposite, opposite)
            if isinstance(opposite, ir.Variable):
                self._opposites |= {count: opposite, opposite: count}
        if symbol in self.arrays.growing:
            scope.statements.append(self._require_room("greater", count, symbol, count))

    def _require_room(self, comparison: str, count: ir.Variable, symbol: Symbol, needed: ir.Expr) -> ir.If:
        """Return if there are too few rows for what a loop tapes, and say how many are needed."""
        assert self.arrays.needed is not None
        place = list(self.arrays.growing).index(symbol)
        is_too_small = ir.apply(comparison, count, ir.Extent(self.arrays.growing[symbol], 0))
        says = ir.Store(ir.Load(self.arrays.needed, (ir.number(place),)), needed)
        return ir.If(((is_too_small, (says, ir.Return())),))

    def _begin_parts(self, loop: Loop, scope: Scope) -> dict[Root, ir.Variable | ir.Load]:
        """Totals in small precision get a part for each inner loop, so that fewer terms share a total."""
        totals: dict[Root, ir.Variable | ir.Load] = {}
        for root in self._imprecise_sums:
            is_inner = loop in root.path and root.first_reduced is not loop
            reduces = is_inner and root.axis_of(loop) in root.reduced
            if reduces and self._is_one_element(root, root.path[: root.path.index(loop)]):
                self._bind_outside(root, scope)
                totals[root] = self.element(root.node, root.target, scope)
                whole = self._locals.get(root.node)
                name = whole.name if whole else self.local_name(root.node)
                part = self._locals[root.node] = self._variable(f"part_of_{name}", root.node.dtype)
                scope.statements.append(ir.Let(part, self._initial(root.node)))
        return totals

    def _add_parts(self, totals: dict[Root, ir.Variable | ir.Load], scope: Scope) -> None:
        for root, total in totals.items():
            scope.statements.append(ir.Accumulate(total, self._locals.pop(root.node), ADDITION))
            if isinstance(total, ir.Variable):
                self._locals[root.node] = total

    def _write_stretches(
        self, loop: Loop, stretches: Sequence[Stretch], start: ir.Expr, stop: ir.Expr, scope: Scope
    ) -> None:
        """The loop in stretches: what lies before its interior, that itself, and what lies behind."""
        variable = self._variables[loop]
        axes = {axis for root in self.tree.roots if (axis := root.axis_of(loop)) is not None}
        for stretch in stretches:
            is_one = stretch.is_one and not self._is_part(loop)
            inner = Scope(loop, scope)
            self._at_border = not stretch.is_interior
            place = stretch.start if is_one else None
            with self.assuming(dict.fromkeys(axes, stretch.range)), self.standing(variable, place):
                self._write_items(loop.items, inner)
            self._at_border = False
            if is_one:
                scope.statements += inner.statements
                continue
            if not inner.statements:  # there all values are where they belong
                continue
            first, last = self.index(stretch.start, scope), self.index(stretch.stop, scope)
            if self._is_part(loop):
                first = start if stretch is stretches[0] else ir.apply("max", start, first)
                last = stop if stretch is stretches[-1] else ir.apply("min", stop, last)
            whole = self._for(loop, variable, first, last, inner)
            scope.statements.append(replace(whole, count=min(whole.count, stretch.count)))

    def _begins(self, root: Root) -> bool:
        """Whether no other root has begun to add to the same array."""
        return isinstance(root, RangeCheck) or self._begun.setdefault(root.node, root) is root

    def _bind_outside(self, root: Root, scope: Scope) -> None:
        for axis, loop in root.bound.items():
            if loop in self._variables and any(one.loop is loop for one in scope.chain):
                self._root_variables[axis] = self._variables[loop]

    def _write_root(self, root: Root, scope: Scope) -> None:
        match root:
            case Update():
                self._update(root, scope)
            case Store() | Overwrite():
                self._store(root, scope)
            case Reduction():
                self._reduce(root, scope)
            case Search():
                self._search(root, scope)
            case Scan():
                self._scan(root, scope)
            case Scatter():
                if root.first_reduced is None and self._begins(root):  # one update, no loop around it
                    self._initialise(root, scope)
                self._scatter(root, scope)
            case Call():
                self._call(root, scope)
            case RangeCheck():
                self._check(root, scope)
            case StepCount():
                self._trips(root, scope)


def _is_choice(statement: ir.Stmt, truth: ir.Expr) -> bool:
    """Whether a statement is run where something is true, and does nothing else."""
    if not isinstance(statement, ir.If) or statement.otherwise:
        return False
    return [condition for condition, _ in statement.cases] == [truth]


def _is_truth(expression: Expression) -> bool:
    node = getattr(expression, "node", None)
    return node is not None and node.dtype == BOOL
