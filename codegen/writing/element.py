"""From expressions of a loop tree to those of the IR: local variables, and where each is written.

An expression that several statements use, that the user has named, or that does not change in a loop is a
local variable, written in the outermost loop in which its value is known; others are written in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from pullback.tracer.dims import formula_of
from pullback.tracer.graph import Node
from pullback.tracer.ops.elementwise import add, subtract
from pullback.tracer.origin import Origin
from pullback.tracer.spec import INT64

from .. import ir
from ..ir.names import BLOCK
from ..nests.expression import (
    ALL,
    AnyIndex,
    Axis,
    Bound,
    Compute,
    Expression,
    Factor,
    Index,
    Literal,
    Load,
    Position,
    Quotient,
    Ranges,
    Select,
    Within,
    children,
    is_number,
    known_truth,
    parts,
    range_of,
)
from ..nests.extents import Symbol
from ..nests.loops import is_history
from ..nests.tree import Item, Loop, LoopTree
from .indices import Arrays, IndexWriter, Scope

LONGEST_EXPRESSION, LONGEST_LINE = 72, 88
"""Characters up to which an expression, and a choice, is written in place, so that lines can be read."""
LONGEST_CHOICE = 6
"""Operators that are written out in the two sides of `a if condition else b`."""


class ElementWriter(IndexWriter):
    """Writes expressions into the scopes of one generated function."""

    def __init__(self, tree: LoopTree, arrays: Arrays, width: Callable[[ir.Expr], int]) -> None:
        super().__init__(tree, arrays)
        self._width = width
        self._keys: dict[tuple[object, ...], int] = {}
        self._key_of: dict[Expression | AnyIndex, int] = {}
        self._uses: dict[int, int] = {}
        self._depths: dict[tuple[Expression, Scope], int] = {}
        self._conditional: dict[Expression, bool] = {}
        self._ranges: Ranges = ALL
        self._truths: dict[Bound, bool | None] = {}
        self._chosen: dict[Expression, Expression] = {}
        self._variables: dict[Loop, ir.Variable] = {}
        self._locals: dict[Node, ir.Variable] = {}
        self._completed: dict[Node, list[Loop]] = {root.node: root.complete_in for root in tree.roots}
        self._views: dict[Node, ir.Buffer] = {}
        self.shared: Sequence[Item] = ()
        """The outermost items, if threads share them."""

    def key(self, expression: Expression | AnyIndex) -> int:
        """A number that is the same for expressions with the same value in the current loops.

        What is known of choices counts: where an operand is known to be padding a sum has another value.
        """
        key = self._key_of.get(expression)
        if key is None:
            structure = self._structure(expression)
            key = self._key_of[expression] = self._keys.setdefault(structure, len(self._keys))
        return key

    def _structure(self, expression: Expression | AnyIndex) -> tuple[object, ...]:
        if isinstance(expression, Select):
            expression = self.chosen(expression)
        if isinstance(expression, Load):
            return ("load", expression.node, expression.version, *map(self.key, expression.indices))
        if isinstance(expression, Compute):
            attributes = repr(sorted(expression.node.attributes.items(), key=lambda item: item[0]))
            return (
                expression.node.operator,
                expression.node.dtype,
                attributes,
                *map(self.key, expression.operands),
            )
        if isinstance(expression, Literal):
            return ("literal", repr(expression.value), formula_of(expression.value), expression.dtype)
        if isinstance(expression, Position):
            return ("position", self.key(expression.index), expression.dtype)
        if isinstance(expression, Select):
            unknown = [one for one in expression.bounds if self._truth(one) is None]
            bounds = tuple((self.key(one.index), one.low, one.high, one.step) for one in unknown)
            return ("select", bounds, self.key(expression.inside), self.key(expression.outside))
        if isinstance(expression, Within):
            return ("within", self.key(expression.position), expression.extent.find())
        if isinstance(expression, Quotient):
            return ("quotient", self.key(expression.index), expression.divisor)
        return (
            "index",
            tuple((one.coefficient, tuple(map(self._factor_key, one.factors))) for one in expression.terms),
        )

    def _factor_key(self, factor: Factor) -> object:
        if isinstance(factor, Axis):
            return self._root_variables[factor].name
        return factor.find() if isinstance(factor, Symbol) else self.key(factor)

    def count_uses(self, expression: Expression, seen: set[int]) -> None:
        """Count how many different expressions use each one, over all roots of a loop body."""
        expression = self.chosen(expression)
        key = self.key(expression)
        self._uses[key] = self._uses.get(key, 0) + 1
        if key not in seen:
            seen.add(key)
            for child in children(expression):
                self.count_uses(child, seen)
            if isinstance(expression, Within):  # a position is compared with both ends
                self.count_uses(expression.position, seen)

    def value(self, expression: Expression, scope: Scope, conditional: bool = False) -> ir.Expr:
        """The expression in the IR: the variable that has it, a new one, or written out in place."""
        expression = self.chosen(expression)
        key = self.key(expression)
        for one in scope.chain:
            if key in one.known:
                return one.known[key]
        if isinstance(expression, Literal):
            return self._literal(expression)
        place = scope if conditional else self._outermost(expression, scope)
        value = self._written_out(expression, place, conditional)
        if not conditional and self._deserves_name(expression, key, value, place is not scope):
            return self._assign(expression, key, value, place)
        return value

    @contextmanager
    def assuming(self, ranges: Ranges) -> Iterator[None]:
        """Within, axes are known to go no further than this."""
        before = self._ranges, self._truths, self._chosen, self._key_of, self._conditional
        self._ranges, self._truths, self._chosen = {**self._ranges, **ranges}, {}, {}
        self._key_of, self._conditional = {}, {}
        try:
            yield
        finally:
            self._ranges, self._truths, self._chosen, self._key_of, self._conditional = before

    def _truth(self, bound: Bound) -> bool | None:
        """Whether a bound is known to hold, or not to, where the loops are."""
        if bound not in self._truths:
            self._truths[bound] = known_truth(bound, self._ranges)
        return self._truths[bound]

    @contextmanager
    def standing(self, variable: ir.Variable, place: Index | None) -> Iterator[None]:
        """Within, a loop's variable is known to be at a place, if any is given."""
        if place is not None:
            self._standing[variable] = place
        try:
            yield
        finally:
            self._standing.pop(variable, None)

    def chosen(self, expression: Expression) -> Expression:
        """What is left of an expression where it is known what some choices give."""
        found = self._chosen.get(expression)
        if found is None:
            found = expression
            if isinstance(expression, Select):
                found = self._side_of(expression)
            elif isinstance(expression, Compute):
                found = self._simplified(expression)
            self._chosen[expression] = found = found if found is expression else self.chosen(found)
        return found

    def _side_of(self, choice: Select) -> Expression:
        answers = [*map(self._truth, choice.bounds)]
        if False in answers:
            return choice.outside
        return choice if None in answers else choice.inside

    def _simplified(self, expression: Compute) -> Expression:
        """A number for an operator on elements that are numbers, and the other term of a sum with 0."""
        operands, operator = [*map(self.chosen, expression.operands)], expression.node.operator
        numbers = [one for one in operands if isinstance(one, Literal) and formula_of(one.value) is None]
        if operands and len(numbers) == len(operands) and operator.scalar is not None:
            values = (np.asarray(one.value, one.dtype) for one in numbers)
            with np.errstate(all="ignore"):
                result = np.asarray(operator.evaluate(*values, **expression.node.attributes))
            return Literal(result.item(), expression.node.dtype)
        if numbers and numbers[0].value == 0:
            if operator is add:
                return operands[1 - operands.index(numbers[0])]
            if operator is subtract and numbers[0] is operands[1]:
                return operands[0]
        return expression

    def _deserves_name(self, expression: Expression, key: int, value: ir.Expr, hoisted: bool) -> bool:
        if isinstance(expression, Load):
            return hoisted and bool(expression.indices) and not isinstance(value, ir.Variable)
        if isinstance(expression, Position):
            return False
        named = isinstance(expression, Compute) and bool(expression.node.name)
        shared = self._uses.get(key, 0) > 1
        return named or shared or hoisted or self._width(value) > LONGEST_EXPRESSION

    def _assign(self, expression: Expression, key: int, value: ir.Expr, scope: Scope) -> ir.Variable:
        node = expression.node  # type: ignore[union-attr]
        variable = self._variable(self._wanted_name(expression, scope), value.dtype)
        scope.known[key] = variable
        origin = node.origin if not isinstance(expression, Load) else None
        scope.statements.append(ir.Let(variable, value, ir.gathered_origins(origin, value)))
        return variable

    def _variable(self, wanted: str, dtype: np.dtype = INT64) -> ir.Variable:
        """A new local variable."""
        return ir.Variable(self.arrays.pool.take(wanted), dtype)

    def _wanted_name(self, expression: Expression, scope: Scope) -> str:
        """The user's name, or the operator's; with the loops' variables where an array has that name."""
        node = expression.node  # type: ignore[union-attr]
        place = self._place(scope)
        if isinstance(expression, Load):
            numbers = (
                range_of(one)[0] for one in expression.indices if isinstance(one, Index) and is_number(one)
            )
            fixed = "_".join(str(one) for one in numbers if formula_of(one) is None)
            return f"{self.array(node).name}_{place + fixed or 'element'}"
        wanted = node.name or node.operator.noun
        return f"{wanted}_{place}" if place and wanted in self.arrays.names else wanted

    def _place(self, scope: Scope) -> str:
        """The variables of the loops around a scope: "ij"."""
        loops = [one.loop for one in scope.chain if one.loop and not one.loop.block]
        return "".join(self._variables[loop].name for loop in loops)

    def _outermost(self, expression: Expression, scope: Scope) -> Scope:
        """The outermost scope in which everything that the expression reads is known."""
        if scope.is_branch or not isinstance(expression, Compute | Load) or self._is_conditional(expression):
            return scope
        chain = scope.chain
        choice = max((place for place, one in enumerate(chain) if one.loop and one.loop.once), default=0)
        return chain[max(self._depth(expression, chain), choice)]

    def _is_conditional(self, expression: Expression) -> bool:
        expression = self.chosen(expression)
        if expression not in self._conditional:
            inner = any(map(self._is_conditional, children(expression)))
            self._conditional[expression] = inner or isinstance(expression, Select)
        return self._conditional[expression]

    def _depth(self, expression: Expression, chain: list[Scope]) -> int:
        """How many loops a statement must be inside of to compute the expression."""
        key = (expression, chain[-1])
        if key not in self._depths:
            self._depths[key] = self._computed_depth(expression, chain)
        return self._depths[key]

    def _computed_depth(self, expression: Expression, chain: list[Scope]) -> int:
        loops = [one.loop for one in chain]
        depth = 0
        if isinstance(expression, Load | Position | Select):
            indices = expression.indices if isinstance(expression, Load) else ()
            if isinstance(expression, Position):
                indices = (expression.index,)
            for index in indices:
                if isinstance(index, Index | Quotient):
                    for axis in index.axes:
                        depth = max(depth, self._depth_of(axis, chain))
            if isinstance(expression, Load):
                made_in = self._completed.get(expression.node, [])
                for position, loop in enumerate(made_in, 1):
                    if position < len(loops) and loops[position] is loop:
                        depth = max(depth, position)
                    else:
                        break
        for child in children(expression):
            depth = max(depth, self._depth(child, chain))
        return depth

    def _depth_of(self, axis: Axis, chain: list[Scope]) -> int:
        variable = self._root_variables[axis].name
        return next(
            depth
            for depth, one in enumerate(chain)
            if one.loop and self._variables[one.loop].name == variable
        )

    def _written_out(self, expression: Expression, scope: Scope, conditional: bool) -> ir.Expr:
        if isinstance(expression, Load):
            return self.element(expression.node, expression.indices, scope, conditional)
        if isinstance(expression, Position):
            index = self.index(expression.index, scope)
            return index if expression.dtype == INT64 else ir.Cast(index, expression.dtype)
        if isinstance(expression, Select):
            if not conditional and _is_long(expression):
                return self._branch(expression, scope)
            value = self._select(expression, scope)
            is_wide = not conditional and self._width(value) > LONGEST_LINE
            return self._branch(expression, scope) if is_wide else value
        if isinstance(expression, Within):
            return self._within(expression, scope)
        assert isinstance(expression, Compute)
        return self._computed(expression, scope, conditional)

    def _computed(self, expression: Compute, scope: Scope, conditional: bool) -> ir.Expr:
        node, operator = expression.node, expression.node.operator
        values = [self.value(operand, scope, conditional) for operand in expression.operands]
        if not conditional:
            values = self._shortened(expression, values, scope)
        if "dtype" in node.attributes:
            return ir.Cast(values[0], node.attributes["dtype"], node.origin)
        operands = dict(zip(operator.operands, values))
        if "exponent" in node.attributes:
            operands["exponent"] = ir.Const(node.attributes["exponent"], node.dtype)
        dtype = node.operands[0].dtype if node.operands else node.dtype
        return ir.narrowed(ir.fill(operator.scalar or "", operands, dtype, node.origin))

    def _shortened(self, expression: Compute, values: list[ir.Expr], scope: Scope) -> list[ir.Expr]:
        """The operands, the longest of them under a name if the line would be too long otherwise."""
        lengths = [*map(self._width, values)]
        longest = lengths.index(max(lengths)) if lengths else 0
        operand = self.chosen(expression.operands[longest]) if lengths else None
        named = lengths and isinstance(values[longest], ir.Variable)
        if sum(lengths) <= LONGEST_EXPRESSION or named or not isinstance(operand, Compute):
            return values
        variable = self._assign(operand, self.key(operand), values[longest], scope)
        return [*values[:longest], variable, *values[longest + 1 :]]

    def _branch(self, expression: Select, scope: Scope) -> ir.Expr:
        """A choice between long expressions as statements, so that their parts have names.

        What is chosen among many is no ladder of `else`, as Python indents up to 100 levels.
        """
        variable = self._variable(self._wanted_name(expression, scope), expression.node.dtype)
        rest: Expression = expression
        cases = []
        while isinstance(rest, Select) and (rest is expression or self._goes_on(rest, scope)):
            origin = rest.node.origin
            condition = self._condition(rest, scope)
            cases.append((condition, self._side(variable, rest.inside, origin, scope)))
            rest = self.chosen(rest.outside)
        otherwise = self._side(variable, rest, origin, scope)
        scope.statements.append(ir.If(tuple(cases), otherwise))
        return variable

    def _goes_on(self, expression: Select, scope: Scope) -> bool:
        """Whether a choice in the last side of another is a further side of it."""
        key = self.key(expression)
        return not any(key in one.known for one in scope.chain)

    def _side(self, variable: ir.Variable, side: Expression, origin: Origin, scope: Scope) -> ir.Body:
        branch = Scope(None, scope, is_branch=True)
        value = self.value(side, branch)
        branch.statements.append(ir.Assign(variable, value, (origin,)))
        return tuple(branch.statements)

    def _select(self, expression: Select, scope: Scope) -> ir.Expr:
        inside = self.value(expression.inside, scope, conditional=True)
        outside = self.value(expression.outside, scope, conditional=True)
        return ir.Select(self._condition(expression, scope), inside, outside)

    def _condition(self, expression: Select, scope: Scope) -> ir.Expr:
        unknown = (bound for bound in expression.bounds if self._truth(bound) is None)
        tests = [test for bound in unknown for test in self._tests(bound, scope)]
        return tests[0] if len(tests) == 1 else ir.apply("and", *tests)

    def _within(self, expression: Within, scope: Scope) -> ir.Expr:
        position = self.value(expression.position, scope)
        above = ir.apply("greater_equal", position, ir.number(0))
        return ir.apply("bit_and", above, ir.apply("less", position, self.extent(expression.extent)))

    def _tests(self, bound: Bound, scope: Scope) -> list[ir.Expr]:
        """The comparisons of a bound, but for those whose answer is known."""
        index = self.index(bound.index, scope)
        tests: list[ir.Expr] = []
        low = self.index(bound.low, scope) if bound.low is not None and bound.low.terms else None
        if low is not None and not known_truth(replace(bound, high=None, step=1), self._ranges):
            tests.append(ir.apply("greater_equal", index, low))
        if bound.high is not None and not known_truth(replace(bound, low=None, step=1), self._ranges):
            tests.append(ir.apply("less", index, self.index(bound.high, scope)))
        if bound.step > 1:
            shifted = index if low is None else ir.apply("subtract", index, low)
            remainder = ir.apply("modulo", shifted, self._integer(bound.step))
            tests.append(ir.apply("equal", remainder, ir.number(0)))
        return tests

    def element(
        self, node: Node, indices: Sequence[AnyIndex], scope: Scope, conditional: bool = False
    ) -> ir.Variable | ir.Load:
        """A place in the storage of a node: a local variable, or an element of its array."""
        if node in self._locals and self._local_is_current(node, scope):
            return self._locals[node]
        dims = range(len(indices)) if node.is_input else self.tree.kept[node]
        places = (self._position(node, dim, indices[dim], scope, conditional) for dim in dims)
        return ir.Load(self.array(node), tuple(places))

    def _position(self, node: Node, dim: int, index: AnyIndex, scope: Scope, conditional: bool) -> ir.Expr:
        """An index; one that comes from data is checked, so that no memory beyond the array is touched."""
        if isinstance(index, Index | Quotient):
            return self.position_in_storage(node, dim, index, scope)
        extent = self.extent(self.tree.extents[node][dim])
        if conditional:
            value = ir.apply("max", self.value(index, scope, conditional=True), ir.number(0))
            return ir.apply("min", value, ir.apply("subtract", extent, ir.number(1)))
        return self._checked(index, node, dim, extent, scope)

    def position_in_storage(self, node: Node, dim: int, index: AnyIndex, scope: Scope) -> ir.Expr:
        position = self.index(index, scope)
        if dim == 0 and node in self.tree.rows:
            return self._row(position, self.tree.rows[node], node.shape[0])
        if self.tree.in_blocks.get(node) == dim:
            return ir.apply("subtract", position, ir.Variable(BLOCK))
        return position

    def _row(self, position: ir.Expr, rows: int, every: int) -> ir.Expr:
        """The row of a history: of rows that take turns the remainder decides, of two the last bit."""
        if rows == every:
            return position
        if rows == 1:
            return ir.number(0)
        if isinstance(position, ir.Const):
            return ir.number(int(position.value) % rows)
        if rows == 2:
            return ir.apply("bit_and", position, ir.number(1))
        return ir.apply("modulo", position, ir.number(rows))

    def _checked(self, index: Expression, node: Node, dim: int, extent: ir.Expr, scope: Scope) -> ir.Expr:
        place, key = self._outermost(index, scope), self.key(index)
        value = self.value(index, scope)
        if (index, self.tree.extents[node][dim]) in self.tree.compared:
            return value
        if not isinstance(value, ir.Variable):
            variable = self._variable(f"position_{self._place(place)}", value.dtype)
            place.statements.append(ir.Let(variable, value))
            value = place.known[key] = variable
        if not any((key, extent) in one.checked for one in scope.chain):
            place.checked.add((key, extent))
            below, above = ir.apply("less", value, ir.number(0)), ir.apply("greater_equal", value, extent)
            outside = ir.apply("or", below, above)
            error = f"{self.array(node).name}, dimension {dim - is_history(node)}"
            place.statements.append(ir.Check(ir.apply("not", outside), error))
        return value

    def array(self, node: Node) -> ir.Buffer:
        """A stored array; a view of one is made at the top of the function when first used."""
        if node in self.arrays.buffers:
            return self.arrays.buffers[node]
        if node not in self._views:
            shape = tuple(self.extent(symbol) for symbol in self.tree.extents[node])
            source = self.array(node.operands[0])
            name = self.arrays.pool.take(node.name or "view")
            view = self._views[node] = ir.Buffer(name, node.dtype, node.shape, source.role)
            self.prologue.append(ir.View(view, source, shape, (node.origin,)))
        return self._views[node]

    def _local_is_current(self, node: Node, scope: Scope) -> bool:
        """Whether the variable of a node holds the element of the iteration that `scope` is in."""
        loops = [one.loop for one in scope.chain[1:] if one.loop or one.is_branch]
        made_in = self._completed[node]
        return node not in self.arrays.buffers or loops[: len(made_in)] == made_in


def _is_long(expression: Select) -> bool:
    operators = (one for one in parts(expression) if isinstance(one, Compute))
    return sum(1 for _ in operators) > LONGEST_CHOICE
