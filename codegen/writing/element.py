"""From expressions to Python: names of local variables, and where each is written.

An expression that several statements use, that the user has named, or that does not change in a loop is a
local variable, written in the outermost loop in which its value is known; others are written in place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from pullback.tracer.graph import Node
from pullback.tracer.origin import Origin
from pullback.tracer.spec import INT64

from ..nests.expression import (
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
    Select,
    Within,
    children,
    parts,
)
from ..nests.extents import Symbol
from ..nests.tree import Item, Loop, LoopTree
from . import spelling as sp
from .indices import Arrays, IndexWriter, Scope
from .layout import Block, Line
from .names import BLOCK

LONGEST_EXPRESSION = 72
LONGEST_CHOICE = 6
"""Operators that are written out in the two sides of `a if condition else b`."""


class ElementWriter(IndexWriter):
    """Writes expressions into the scopes of one generated function."""

    def __init__(self, tree: LoopTree, arrays: Arrays) -> None:
        super().__init__(tree, arrays)
        self._keys: dict[tuple[object, ...], int] = {}
        self._key_of: dict[Expression | AnyIndex, int] = {}
        self._uses: dict[int, int] = {}
        self._depths: dict[tuple[Expression, Scope], int] = {}
        self._conditional: dict[Expression, bool] = {}
        self._truth: dict[Bound, bool] = {}
        self._variables: dict[Loop, str] = {}
        self._locals: dict[Node, str] = {}
        self._completed: dict[Node, list[Loop]] = {root.node: root.complete_in for root in tree.roots}
        self._views: dict[Node, str] = {}
        self.shared: Sequence[Item] = ()
        """The outermost items, if threads share them."""

    def key(self, expression: Expression | AnyIndex) -> int:
        """A number that is the same for expressions with the same value in the current loops.

        What is known of choices counts: where an operand is known to be padding a sum has another value.
        """
        if expression not in self._key_of:
            self._key_of[expression] = self._keys.setdefault(self._structure(expression), len(self._keys))
        return self._key_of[expression]

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
            return ("literal", repr(expression.value), expression.dtype)
        if isinstance(expression, Position):
            return ("position", self.key(expression.index), expression.dtype)
        if isinstance(expression, Select):
            unknown = [one for one in expression.bounds if one not in self._truth]
            bounds = tuple((self.key(one.index), one.low, one.high, one.step) for one in unknown)
            return ("select", bounds, self.key(expression.inside), self.key(expression.outside))
        if isinstance(expression, Within):
            return ("within", self.key(expression.position), expression.extent.find())
        if isinstance(expression, Quotient):
            return ("quotient", self.key(expression.index), expression.divisor)
        return (
            "index",
            tuple((one.coefficient, tuple(map(self._factor, one.factors))) for one in expression.terms),
        )

    def _factor(self, factor: Factor) -> object:
        if isinstance(factor, Axis):
            return self._root_variables[factor]
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

    def value(self, expression: Expression, scope: Scope, conditional: bool = False) -> ast.expr:
        """The expression as Python: the name it has, a new name, or written out in place."""
        expression = self.chosen(expression)
        key = self.key(expression)
        for one in scope.chain:
            if key in one.known:
                return ast.Name(one.known[key])
        if isinstance(expression, Literal):
            return self._literal(expression)
        place = scope if conditional else self._outermost(expression, scope)
        text = self._written_out(expression, place, conditional)
        if self._deserves_name(expression, key, text, place is not scope) and not conditional:
            return ast.Name(self._assign(expression, key, text, place))
        return text

    @contextmanager
    def assuming(self, truth: dict[Bound, bool]) -> Iterator[None]:
        """Within, these bounds are known to hold, or not to."""
        before = self._truth, self._key_of, self._conditional
        self._truth, self._key_of, self._conditional = {**self._truth, **truth}, {}, {}
        try:
            yield
        finally:
            self._truth, self._key_of, self._conditional = before

    def chosen(self, expression: Expression) -> Expression:
        """The side of a choice that is known."""
        while isinstance(expression, Select):
            answers = [self._truth.get(bound) for bound in expression.bounds]
            if False in answers:
                expression = expression.outside
            elif None in answers:
                break
            else:
                expression = expression.inside
        return expression

    def _deserves_name(self, expression: Expression, key: int, text: ast.expr, hoisted: bool) -> bool:
        if isinstance(expression, Load):
            return hoisted and bool(expression.indices) and not isinstance(text, ast.Name)
        if isinstance(expression, Position):
            return False
        named = isinstance(expression, Compute) and bool(expression.node.name)
        shared = self._uses.get(key, 0) > 1
        return named or shared or hoisted or len(sp.unparse(text)) > LONGEST_EXPRESSION

    def _assign(self, expression: Expression, key: int, text: ast.expr, scope: Scope) -> str:
        node = expression.node  # type: ignore[union-attr]
        name = self.arrays.pool.take(self._wanted_name(expression, scope))
        scope.known[key] = name
        self.line(
            scope,
            f"{name} = {sp.unparse(text)}",
            text,
            node.origin if not isinstance(expression, Load) else None,
            expression,
        )
        return name

    def _wanted_name(self, expression: Expression, scope: Scope) -> str:
        """The user's name, or the operator's; with the loops' variables where an array has that name."""
        node = expression.node  # type: ignore[union-attr]
        place = self._place(scope)
        if isinstance(expression, Load):
            return f"{self.array(node)}_{place}"
        wanted = node.name or node.operator.noun
        return f"{wanted}_{place}" if wanted in self.arrays.names.values() and place else wanted

    def _place(self, scope: Scope) -> str:
        """The variables of the loops around a scope: "ij"."""
        loops = [one.loop for one in scope.chain if one.loop and not one.loop.block]
        return "".join(self._variables[loop] for loop in loops)

    def line(
        self,
        scope: Scope,
        text: str,
        expression: ast.expr | None,
        origin: Origin | None,
        value: Expression | None = None,
    ) -> None:
        if expression is not None:
            self.called |= sp.called_names(expression)
        origins = [] if origin is None else [origin]
        if value is not None:
            origins += self._inlined_origins(value, scope)
        scope.lines.append(Line(text, comment_of(origins)))

    def _inlined_origins(self, expression: Expression, scope: Scope) -> list[Origin]:
        """Where the parts of an expression come from that are written out in place."""
        named = [one.known for one in scope.chain]
        found: list[Origin] = []
        seen: set[Expression] = set()  # what several branches share has a name in none of them
        pending = [*reversed(children(expression))]
        while pending:
            child = pending.pop()
            if child in seen or isinstance(child, Load | Literal):
                continue
            seen.add(child)
            key = self.key(child)
            if any(key in known for known in named):
                continue
            if isinstance(child, Compute):
                found.append(child.node.origin)
            pending += reversed(children(child))
        return found

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
        variable = self._root_variables[axis]
        return next(
            depth for depth, one in enumerate(chain) if one.loop and self._variables[one.loop] == variable
        )

    def _written_out(self, expression: Expression, scope: Scope, conditional: bool) -> ast.expr:
        if isinstance(expression, Load):
            return self.element(expression.node, expression.indices, scope, conditional)
        if isinstance(expression, Position):
            index = self.index(expression.index, scope)
            return index if expression.dtype == INT64 else self._converted(index, expression.dtype)
        if isinstance(expression, Select) and not conditional and _is_long(expression):
            return self._branch(expression, scope)
        if isinstance(expression, Select):
            return self._select(expression, scope)
        if isinstance(expression, Within):
            return self._within(expression, scope)
        assert isinstance(expression, Compute)
        return self._computed(expression, scope, conditional)

    def _computed(self, expression: Compute, scope: Scope, conditional: bool) -> ast.expr:
        node, operator = expression.node, expression.node.operator
        values = [self.value(operand, scope, conditional) for operand in expression.operands]
        if not conditional:
            values = self._shortened(expression, values, scope)
        attributes = dict(node.attributes)
        template = operator.scalar or ""
        operands = dict(zip(operator.operands, values))
        if "dtype" in attributes:
            return self._converted(values[0], attributes["dtype"])
        if "exponent" in attributes:
            operands["exponent"] = sp.literal(attributes["exponent"], node.dtype)
        result = sp.fill(template, operands, node.operands[0].dtype if node.operands else node.dtype)
        if node.dtype.kind in "iu" and node.dtype.itemsize < 8:  # Numba widens small integers
            return self._converted(result, node.dtype)
        return result

    def _shortened(self, expression: Compute, values: list[ast.expr], scope: Scope) -> list[ast.expr]:
        """The operands, the longest of them under a name if the line would be too long otherwise."""
        lengths = [len(sp.unparse(value)) for value in values]
        longest = lengths.index(max(lengths)) if lengths else 0
        operand = expression.operands[longest] if lengths else None
        named = lengths and isinstance(values[longest], ast.Name)
        if sum(lengths) <= LONGEST_EXPRESSION or named or not isinstance(operand, Compute):
            return values
        name = self._assign(operand, self.key(operand), values[longest], scope)
        return [*values[:longest], ast.Name(name), *values[longest + 1 :]]

    def _converted(self, value: ast.expr, dtype: np.dtype) -> ast.expr:
        return sp.call("bool" if dtype.kind == "b" else dtype.name, value)

    def _branch(self, expression: Select, scope: Scope) -> ast.expr:
        """A choice between long expressions as statements, so that their parts have names.

        What is chosen among many is no ladder of `else`, as Python indents up to 100 levels.
        """
        name = self.arrays.pool.take(self._wanted_name(expression, scope))
        rest: Expression = expression
        keyword = "if"
        while isinstance(rest, Select) and (rest is expression or self._goes_on(rest, scope)):
            header = f"{keyword} {sp.unparse(self._condition(rest, scope))}"
            origin = rest.node.origin
            self._side(name, header, rest.inside, origin, scope)
            rest, keyword = self.chosen(rest.outside), "elif"
        self._side(name, "else", rest, origin, scope)
        return ast.Name(name)

    def _goes_on(self, expression: Select, scope: Scope) -> bool:
        """Whether a choice in the last side of another is a further side of it."""
        key = self.key(expression)
        return not any(key in one.known for one in scope.chain) and _is_long(expression)

    def _side(self, name: str, header: str, side: Expression, origin: Origin, scope: Scope) -> None:
        branch = Scope(None, scope, is_branch=True)
        value = self.value(side, branch)
        self.line(branch, f"{name} = {sp.unparse(value)}", value, origin)
        scope.lines.append(Block(header, tuple(branch.lines)))

    def _select(self, expression: Select, scope: Scope) -> ast.expr:
        inside = self.value(expression.inside, scope, conditional=True)
        outside = self.value(expression.outside, scope, conditional=True)
        return ast.IfExp(self._condition(expression, scope), inside, outside)

    def _condition(self, expression: Select, scope: Scope) -> ast.expr:
        unknown = (bound for bound in expression.bounds if bound not in self._truth)
        tests = [test for bound in unknown for test in self._tests(bound, scope)]
        return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)

    def _within(self, expression: Within, scope: Scope) -> ast.expr:
        position = self.value(expression.position, scope)
        extent = ast.Name(self.extent(expression.extent))
        above, below = (
            ast.Compare(position, [ast.GtE()], [ast.Constant(0)]),
            ast.Compare(position, [ast.Lt()], [extent]),
        )
        return ast.BinOp(above, ast.BitAnd(), below)

    def _tests(self, bound: Bound, scope: Scope) -> list[ast.expr]:
        index = self.index(bound.index, scope)
        tests: list[ast.expr] = []
        low = self.index(bound.low, scope) if bound.low is not None and bound.low.terms else None
        high = self.index(bound.high, scope) if bound.high is not None else None
        if low is not None:  # Numba has failed on chained comparisons in `a if low <= i < high else b`
            tests.append(ast.Compare(index, [ast.GtE()], [low]))
        if high is not None:
            tests.append(ast.Compare(index, [ast.Lt()], [high]))
        if bound.step > 1:
            shifted = index if low is None else ast.BinOp(index, ast.Sub(), low)
            remainder = ast.BinOp(shifted, ast.Mod(), self._integer(bound.step))
            tests.append(ast.Compare(remainder, [ast.Eq()], [ast.Constant(0)]))
        return tests

    def element(
        self, node: Node, indices: Sequence[AnyIndex], scope: Scope, conditional: bool = False
    ) -> ast.expr:
        """A place in the storage of a node: a local variable, or an element of its array."""
        if node in self._locals and self._local_is_current(node, scope):
            return ast.Name(self._locals[node])
        dims = range(len(indices)) if node.is_input else self.tree.kept[node]
        return subscript(
            self.array(node), [self._position(node, dim, indices[dim], scope, conditional) for dim in dims]
        )

    def _position(self, node: Node, dim: int, index: AnyIndex, scope: Scope, conditional: bool) -> ast.expr:
        """An index; one that comes from data is checked, so that no memory beyond the array is touched."""
        if isinstance(index, Index | Quotient):
            return self.position_in_storage(node, dim, index, scope)
        extent = self.extent(self.tree.extents[node][dim])
        if conditional:
            value = self.value(index, scope, conditional=True)
            return sp.fill(f"min(max({{x}}, 0), {extent} - 1)", {"x": value}, INT64)
        return self._checked(index, node, dim, extent, scope)

    def position_in_storage(self, node: Node, dim: int, index: AnyIndex, scope: Scope) -> ast.expr:
        position = self.index(index, scope)
        if dim == 0 and node in self.tree.rows:
            return self._row(position, self.tree.rows[node], node.shape[0])
        if self.tree.in_blocks.get(node) == dim:
            return ast.BinOp(position, ast.Sub(), ast.Name(BLOCK))
        return position

    def _row(self, position: ast.expr, rows: int, every: int) -> ast.expr:
        """The row of a history: of rows that take turns the remainder decides, of two the last bit."""
        if rows == every:
            return position
        if rows == 1:
            return ast.Constant(0)
        if isinstance(position, ast.Constant):
            return ast.Constant(int(position.value) % rows)  # type: ignore[arg-type]
        if rows == 2:
            return ast.BinOp(position, ast.BitAnd(), ast.Constant(1))
        return ast.BinOp(position, ast.Mod(), ast.Constant(rows))

    def _checked(self, index: Expression, node: Node, dim: int, extent: str, scope: Scope) -> ast.expr:
        place, key = self._outermost(index, scope), self.key(index)
        value = self.value(index, scope)
        if (index, self.tree.extents[node][dim]) in self.tree.compared:
            return value
        if not isinstance(value, ast.Name):
            name = self.arrays.pool.take(f"position_{self._place(place)}")
            self.line(place, f"{name} = {sp.unparse(value)}", value, None)
            place.known[key] = name
            value = ast.Name(name)
        if not any((key, extent) in one.checked for one in scope.chain):
            place.checked.add((key, extent))
            place.lines.append(Line(f"if {value.id} < 0 or {value.id} >= {extent}:"))
            place.lines.append(Line(f'    raise IndexError("{self.array(node)}, dimension {dim}")'))
        return value

    def array(self, node: Node) -> str:
        """The name of a stored array; a view of one is made at the top of the function when first used."""
        if node in self.arrays.names:
            return self.arrays.names[node]
        if node not in self._views:
            shape = [ast.Name(self.extent(symbol)) for symbol in self.tree.extents[node]]
            name = self._views[node] = self.arrays.pool.take(node.name or "view")
            source = self.array(node.operands[0])
            text = f"{name} = {source}.reshape({sp.unparse(ast.Tuple(shape))})"  # type: ignore[arg-type]
            self.prologue.append(Line(text, comment_of([node.origin])))
        return self._views[node]

    def _local_is_current(self, node: Node, scope: Scope) -> bool:
        """Whether the variable of a node holds the element of the iteration that `scope` is in."""
        loops = [one.loop for one in scope.chain[1:]]
        made_in = self._completed[node]
        return node not in self.arrays.names or loops[: len(made_in)] == made_in


def _is_long(expression: Select) -> bool:
    operators = (one for one in parts(expression) if isinstance(one, Compute))
    return sum(1 for _ in operators) > LONGEST_CHOICE


def subscript(name: str, indices: Sequence[ast.expr]) -> ast.expr:
    """`name[i, j]`; `name[()]` of a 0-d array."""
    inner: ast.expr = indices[0] if len(indices) == 1 else ast.Tuple(list(indices))
    return ast.Subscript(ast.Name(name), inner)


def comment_of(origins: Sequence[Origin]) -> str:
    """`model.py:5  h = pb.tanh(x)`, or `backward of model.py:5 (tanh, multiply), :4 (exp)`."""
    forward = [origin for origin in origins if origin.line and not origin.is_backward]
    backward = [origin for origin in origins if origin.line and origin.is_backward]
    if forward and not (origins and origins[0].is_backward):
        return f"{forward[0].place}  {forward[0].text}"
    places: dict[tuple[str, int], list[str]] = {}
    for origin in backward:
        rules = places.setdefault((origin.filename, origin.line), [])
        if origin.rule not in rules:
            rules.append(origin.rule)
    texts: list[str] = []
    for (filename, line), rules in places.items():
        first = next(one for one in backward if (one.filename, one.line) == (filename, line))
        place = first.place if not texts else f":{line}"
        texts.append(f"{place} ({', '.join(rules)})")
    return f"backward of {', '.join(texts)}" if texts else ""
