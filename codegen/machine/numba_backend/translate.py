"""From the text of a kernel to Numba's intermediate representation.

Numba reads bytecode. It finds out again what were expressions and loops, and names what is on the stack after
a variable and a position, so that in long functions `u_1` at 1534 and `u_11` at 534 become one. Generated
code is text with few kinds of statements, and each says directly what it becomes. A loop is a count, and a
choice between values that are at hand is a call of `choose`: neither costs LLVM a detour.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import linecache
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from types import FunctionType
from typing import Any

import numpy as np

from ....tracer.records import record
from .. import store
from ..kernel_types import Sharing
from .parts import ir
from .repeated import Nest, repeated_nests

OPERATORS: dict[type, tuple[Any, Any]] = {
    ast.Add: (operator.add, operator.iadd),
    ast.Sub: (operator.sub, operator.isub),
    ast.Mult: (operator.mul, operator.imul),
    ast.Div: (operator.truediv, operator.itruediv),
    ast.FloorDiv: (operator.floordiv, operator.ifloordiv),
    ast.Mod: (operator.mod, operator.imod),
    ast.BitAnd: (operator.and_, operator.iand),
    ast.BitOr: (operator.or_, operator.ior),
    ast.BitXor: (operator.xor, operator.ixor),
}
COMPARISONS: dict[type, Any] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
UNARY: dict[type, Any] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.invert,
}  # fmt: skip


def choose(condition: bool, first: Any, second: Any) -> Any:
    """`first if condition else second` of values that are at hand."""
    return first if condition else second


class BackJump(ir.Jump):
    """The jump back of a loop."""


class BriefJump(BackJump):
    """That of a loop that is not worth vectors."""


@record(eq=False)
class Text:
    """The text of a function, and where the names are that it does not assign."""

    tree: ast.FunctionDef
    namespace: dict[str, Any]
    module: str
    filename: str
    assigned: frozenset[str]
    """The parameters, and the variables that it assigns."""
    brief_loops: frozenset[int]
    """The positions of such loops among the `for` of the function ..."""
    first_loop: int = 0
    """... in which this text is, behind so many."""

    @classmethod
    def of(cls, function: FunctionType, brief_loops: frozenset[int] = frozenset()) -> Text:
        code = function.__code__
        tree = _functions(code.co_filename)[function.__name__]
        assigned = frozenset(code.co_varnames)
        return cls(tree, function.__globals__, function.__module__, code.co_filename, assigned, brief_loops)


@record(eq=False)
class PartText(Text):
    """The body of a `for start, stop in parts_of(...)`, as a function of what it reads and of the bounds."""

    per_thread: int = 1
    sharing: Sharing = field(default_factory=Sharing)

    @property
    def given(self) -> list[str]:
        """The variables that it reads, which are defined in front of it."""
        return [one.arg for one in self.tree.args.args[:-2]]


@record(eq=False)
class NestText(Text):
    """A loop nest of a function, as a function of what it reads, which returns what is read behind it."""

    form: tuple[object, ...] = ()
    """What it does; equal for texts of which one may take the place of the other."""

    @property
    def given(self) -> list[str]:
        """The variables that it reads, which are defined in front of it."""
        return [one.arg for one in self.tree.args.args]


def translate(text: Text) -> tuple[dict[int, ir.Block], set[str]]:
    """The blocks of a function by their labels, in the order of the text, and the variables in memory.

    The others are values: they have one assignment, made before all uses. Names that it does not assign are
    those of its module.

    Raises SyntaxError for a statement or an expression that kernels do not have.
    """
    return _Translator(text).translated()


def numbers_from_arrays(blocks: Mapping[int, ir.Block], given: Iterable[str] = ()) -> set[str]:
    """The variables in which elements of arrays have a part, as in those that are given.

    The other integers are sizes and indices.
    """
    pending = [*given]
    made_of: dict[str, list[str]] = {}
    nests: set[str] = set()
    for block in blocks.values():
        for one in block.find_insts(ir.Assign):
            value, target = one.value, one.target.name
            if isinstance(value, ir.Global) and isinstance(value.value, NestText):
                nests.add(target)
            elif isinstance(value, ir.Expr) and value.op == "call" and value.func.name in nests:
                pending.append(target)  # it may have read elements
            elif isinstance(value, ir.Var):
                made_of.setdefault(value.name, []).append(target)
            elif isinstance(value, ir.Expr) and value.op == "getitem":
                pending.append(target)
            elif isinstance(value, ir.Expr) and value.op != "getattr":
                for operand in _operands(value):
                    made_of.setdefault(operand.name, []).append(target)
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(made_of.get(name, ()))
    return found


def _operands(value: ir.Expr) -> Sequence[ir.Var]:
    """The variables that an operation computes with."""
    if value.op in ("binop", "inplace_binop"):
        return value.lhs, value.rhs
    if value.op == "call":
        return value.args
    return value.items if value.op == "build_tuple" else (value.value,)


@functools.lru_cache(maxsize=16)
def _functions(filename: str) -> dict[str, ast.FunctionDef]:
    text = store.text_of(filename) or "".join(linecache.getlines(filename))
    tree = ast.parse(text, filename)
    return {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}


class _Translator:
    """The blocks of one function, while they are filled."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.brief_loops = text.brief_loops
        self.loops = text.first_loop
        self.tree, self.namespace = text.tree, text.namespace
        self.names = [one.arg for one in self.tree.args.args]
        self.assigned = text.assigned
        self.location = ir.Loc(text.filename, self.tree.lineno)
        self.scope = ir.Scope(None, self.location)
        self.blocks: dict[int, ir.Block] = {}
        self.temporaries = 0
        self.nests = {} if isinstance(text, NestText) else repeated_nests(text.tree, text.assigned)
        self.block = self._enter(self._new_block())
        self.place: tuple[int, ...] = ()
        """The bodies that the statement is in, outermost first."""
        self.assigned_in: dict[str, tuple[int, ...]] = {}
        self.in_memory: set[str] = set()

    def translated(self) -> tuple[dict[int, ir.Block], set[str]]:
        for index, name in enumerate(self.names):
            self._assign(ir.Arg(name, index, self.location), name)
        self._statements(self.tree.body)
        if not self.block.is_terminated:
            self._return(ast.Constant(None))
        return self.blocks, self.in_memory

    # --- blocks and variables -----------------------------------------------------------------------------

    def _new_block(self) -> int:
        label = len(self.blocks)
        self.blocks[label] = ir.Block(self.scope, self.location)
        return label

    def _enter(self, label: int) -> ir.Block:
        self.block = self.blocks[label] = self.blocks.pop(label)  # blocks are in the order of the text
        return self.block

    def _variable(self, name: str) -> ir.Var:
        return self.scope.get_or_define(name, self.location)

    def _assign(self, value: Any, name: str = "") -> ir.Var:
        """A variable with the value: a new one, unless named."""
        if not name:
            self.temporaries += 1
            name = f"${self.temporaries}"
        target = self._assigned(name)
        self.block.append(ir.Assign(value, target, self.location))
        return target

    def _assigned(self, name: str) -> ir.Var:
        """A variable that is assigned here."""
        if name in self.assigned_in:
            self.in_memory.add(name)
        self.assigned_in.setdefault(name, self.place)
        return self._variable(name)

    def _read(self, name: str) -> ir.Var:
        """A variable that is read here, perhaps where nothing says that it has been assigned."""
        home = self.assigned_in.get(name)
        if home is None or home != self.place[: len(home)]:
            self.in_memory.add(name)
        return self._variable(name)

    @contextlib.contextmanager
    def _body(self, label: int) -> Iterator[None]:
        """Statements that may be passed by, from the block with this label on."""
        outside = self.place
        self._enter(label)
        self.place = (*outside, label)
        yield
        self.place = outside

    def _constant(self, value: Any) -> ir.Var:
        return self._assign(ir.Const(value, self.location))

    def _jump(self, label: int, kind: type[ir.Jump] = ir.Jump) -> None:
        if not self.block.is_terminated:
            self.block.append(kind(label, self.location))

    def _branch(self, condition: ir.Var) -> tuple[int, int]:
        yes, no = self._new_block(), self._new_block()
        self.block.append(ir.Branch(condition, yes, no, self.location))
        return yes, no

    def _operator(self, sign: ast.operator) -> tuple[Any, Any]:
        if type(sign) not in OPERATORS:
            raise SyntaxError(f"a kernel has no {type(sign).__name__} (line {self.location.line})")
        return OPERATORS[type(sign)]

    # --- statements ---------------------------------------------------------------------------------------

    def _statements(self, statements: list[ast.stmt]) -> None:
        for one in statements:
            self.location = ir.Loc(self.location.filename, one.lineno)
            if not self.block.is_terminated:
                self._method("statement", one)(one)

    def _method(self, kind: str, node: ast.AST) -> Callable[[Any], Any]:
        method = getattr(self, f"_{kind}_{type(node).__name__}", None)
        if method is None:
            raise SyntaxError(f"a kernel has no {type(node).__name__} (line {self.location.line})")
        return method

    def _statement_Assign(self, node: ast.Assign) -> None:
        (target,) = node.targets
        if isinstance(target, ast.Name):
            self._store_in(target.id, node.value)
        elif isinstance(target, ast.Subscript):
            self._set_element(target, self._value(node.value))
        elif isinstance(target, ast.Tuple):
            names = [item.id for item in target.elts if isinstance(item, ast.Name)]
            self._assign_items(self._value(node.value), names)

    def _assign_items(self, value: ir.Var, names: Sequence[str]) -> None:
        items = self._assign(ir.Expr.exhaust_iter(value, len(names), self.location))
        for place, name in enumerate(names):
            self._assign(self._item(items, place), name)

    def _store_in(self, name: str, node: ast.expr) -> None:
        """Assign to a variable, without one in between."""
        before = len(self.block.body)
        block, value = self.block, self._value(node)
        last = self.block.body[-1] if self.block.body else None
        is_new = self.block is not block or len(self.block.body) > before
        if is_new and isinstance(last, ir.Assign) and last.target is value and value.name.startswith("$"):
            last.target = self._assigned(name)
        else:
            self._assign(value, name)

    def _set_element(self, target: ast.Subscript, value: ir.Var) -> None:
        array, index = self._value(target.value), self._index(target.slice)
        self.block.append(ir.SetItem(array, index, value, self.location))

    def _statement_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            sum_ = self._in_place(node.op, self._read(node.target.id), self._value(node.value))
            self._assign(sum_, node.target.id)
            return
        assert isinstance(node.target, ast.Subscript)
        array, index = self._value(node.target.value), self._index(node.target.slice)
        before = self._assign(ir.Expr.getitem(array, index, self.location))
        after = self._assign(self._in_place(node.op, before, self._value(node.value)))
        self.block.append(ir.SetItem(array, index, after, self.location))

    def _in_place(self, sign: ast.operator, left: ir.Var, right: ir.Var) -> ir.Expr:
        plain, in_place = self._operator(sign)
        return ir.Expr.inplace_binop(in_place, plain, left, right, self.location)

    def _statement_For(self, node: ast.For) -> None:
        """A count up to a stop that is known before."""
        if node in self.nests:
            self._call_nest(self.nests[node])
            return
        call, variable = node.iter, node.target
        if isinstance(call, ast.Call) and isinstance(variable, ast.Tuple):
            self._share(node, call)
            return
        if not isinstance(call, ast.Call) or not isinstance(variable, ast.Name) or node.orelse:
            raise SyntaxError(f"a kernel loops over ranges only (line {node.lineno})")
        bounds = [*call.args] if len(call.args) > 1 else [ast.Constant(0), *call.args]
        start, stop = self._value(bounds[0]), self._assign(self._value(bounds[1]))
        step = self._number(bounds[2]) if len(bounds) > 2 else 1
        if step < 1:
            raise SyntaxError(f"a kernel counts upwards (line {node.lineno})")
        back = BriefJump if self.loops in self.brief_loops else BackJump
        self.loops += 1
        counter = f"${variable.id}.{self.temporaries}"
        self._assign(start, counter)
        head = self._new_block()
        self._jump(head)
        self._enter(head)
        body, end = self._branch(self._assign(self._binary(operator.lt, self._variable(counter), stop)))
        with self._body(body):
            self._assign(self._variable(counter), variable.id)
            self._statements(node.body)
            self._assign(self._binary(operator.add, self._variable(counter), self._constant(step)), counter)
            self._jump(head, back)
        self._enter(end)

    def _share(self, node: ast.For, call: ast.Call) -> None:
        """A body in parts: a call of a function of what it reads, the extent and the number of threads."""
        names = (one for part in node.body for one in ast.walk(part) if isinstance(one, ast.Name))
        read = (one.id for one in names if isinstance(one.ctx, ast.Load))  # as is `x` in `x[i] = 1`
        given = [*dict.fromkeys(one for one in read if one in self.assigned_in)]
        bounds = [one.id for one in ast.walk(node.target) if isinstance(one, ast.Name)]
        tree = ast.FunctionDef(
            f"{self.tree.name}_part",
            ast.arguments([], [ast.arg(one) for one in (*given, *bounds)], None, [], [], None, []),
            node.body,
            [],
            lineno=node.lineno,
        )
        arrays = {str(one.arg): _places_of(one.value, given) for one in call.keywords}
        private = tuple(arrays.pop("own", ()))
        totals = tuple((place, operator) for operator, places in arrays.items() for place in places)
        extent, threads, per_thread = call.args
        text = PartText(
            tree, self.namespace, self.text.module, self.text.filename, self.assigned, self.brief_loops,
            self.loops, ast.literal_eval(per_thread), Sharing(private, totals),
        )  # fmt: skip
        self.loops += sum(isinstance(one, ast.For) for part in node.body for one in ast.walk(part))
        function = self._assign(ir.Global(tree.name, text, self.location))
        self._call(function, [*map(self._read, given), self._value(extent), self._value(threads)])

    def _call_nest(self, nest: Nest) -> None:
        """A call of the function that nests of this form are, and what it returns in variables."""
        results: list[ast.expr] = [ast.Name(one, ast.Load()) for one in nest.results]
        value = results[0] if len(results) == 1 else ast.Tuple(results, ast.Load()) if results else None
        line = nest.tree.lineno
        tree = ast.FunctionDef(
            f"{self.tree.name}_nest",
            ast.arguments([], [ast.arg(one) for one in nest.given], None, [], [], None, []),
            [nest.tree, ast.Return(value, lineno=line)],
            [],
            lineno=line,
        )
        stop = self.loops + nest.loops
        brief = tuple(place - self.loops for place in range(self.loops, stop) if place in self.brief_loops)
        text = NestText(
            tree, self.namespace, self.text.module, self.text.filename, self.assigned, self.brief_loops,
            self.loops, (nest.form, brief),
        )  # fmt: skip
        self.loops = stop
        function = self._assign(ir.Global(tree.name, text, self.location))
        found = self._call(function, [*map(self._read, nest.given)])
        if len(results) == 1:
            self._assign(found, nest.results[0])
        elif results:
            self._assign_items(found, nest.results)

    def _number(self, node: ast.expr) -> int:
        """A number, or a constant of the module."""
        return self.namespace[node.id] if isinstance(node, ast.Name) else ast.literal_eval(node)

    def _statement_While(self, node: ast.While) -> None:
        head = self._new_block()
        self._jump(head)
        self._enter(head)
        body, end = self._branch(self._value(node.test))
        with self._body(body):
            self._statements(node.body)
            self._jump(head, BackJump)
        self._enter(end)

    def _statement_If(self, node: ast.If) -> None:
        yes, no = self._branch(self._value(node.test))
        end = self._new_block() if node.orelse else no
        with self._body(yes):
            self._statements(node.body)
            self._jump(end)
        if node.orelse:
            with self._body(no):
                self._statements(node.orelse)
                self._jump(end)
        self._enter(end)

    def _statement_Raise(self, node: ast.Raise) -> None:
        assert isinstance(node.exc, ast.Call)
        assert isinstance(node.exc.func, ast.Name)
        exception = getattr(builtins, node.exc.func.id)
        arguments = tuple(ast.literal_eval(one) for one in node.exc.args)
        self.block.append(ir.StaticRaise(exception, arguments, self.location))

    def _statement_Return(self, node: ast.Return) -> None:
        self._return(node.value or ast.Constant(None))

    def _return(self, node: ast.expr) -> None:
        value = self._assign(ir.Expr.cast(self._value(node), self.location))
        self.block.append(ir.Return(value, self.location))

    def _statement_Expr(self, node: ast.Expr) -> None:
        self._value(node.value)

    def _statement_Pass(self, node: ast.Pass) -> None:
        pass

    # --- expressions --------------------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> ir.Var:
        return self._method("value", node)(node)

    def _binary(self, function: Any, left: ir.Var, right: ir.Var) -> ir.Expr:
        return ir.Expr.binop(function, left, right, self.location)

    def _value_Name(self, node: ast.Name) -> ir.Var:
        if node.id in self.assigned:
            return self._read(node.id)
        found = self.namespace.get(node.id, getattr(builtins, node.id, None))
        if found is None:
            raise NameError(f"name {node.id!r} is not defined")
        return self._assign(ir.Global(node.id, found, self.location))

    def _value_Constant(self, node: ast.Constant) -> ir.Var:
        return self._constant(node.value)

    def _value_BinOp(self, node: ast.BinOp) -> ir.Var:
        function, _ = self._operator(node.op)
        return self._assign(self._binary(function, self._value(node.left), self._value(node.right)))

    def _value_UnaryOp(self, node: ast.UnaryOp) -> ir.Var:
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return self._constant(-node.operand.value)  # type: ignore[operator]
        return self._assign(ir.Expr.unary(UNARY[type(node.op)], self._value(node.operand), self.location))

    def _value_Compare(self, node: ast.Compare) -> ir.Var:
        values = [self._value(one) for one in (node.left, *node.comparators)]
        found = [
            self._assign(self._binary(COMPARISONS[type(sign)], left, right))
            for sign, left, right in zip(node.ops, values, values[1:])
        ]
        return self._all(operator.and_, found)

    def _all(self, function: Any, values: list[ir.Var]) -> ir.Var:
        return functools.reduce(lambda one, other: self._assign(self._binary(function, one, other)), values)

    def _value_BoolOp(self, node: ast.BoolOp) -> ir.Var:
        is_and = isinstance(node.op, ast.And)
        if all(map(_is_test, node.values)):
            return self._all(operator.and_ if is_and else operator.or_, [*map(self._value, node.values)])
        first, *rest = node.values
        second = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        return self._choice(self._value(first), *((second, None) if is_and else (None, second)))

    def _value_IfExp(self, node: ast.IfExp) -> ir.Var:
        condition = self._value(node.test)
        if _is_at_hand(node.body) and _is_at_hand(node.orelse):
            function = self._assign(ir.Global("choose", choose, self.location))
            return self._call(function, [condition, self._value(node.body), self._value(node.orelse)])
        return self._choice(condition, node.body, node.orelse)

    def _choice(self, condition: ir.Var, first: ast.expr | None, second: ast.expr | None) -> ir.Var:
        """One of two values, computed only if chosen; None stands for the condition itself."""
        yes, no = self._branch(condition)
        end = self._new_block()
        self.temporaries += 1
        name = f"${self.temporaries}.chosen"
        for label, node in ((yes, first), (no, second)):
            self._enter(label)
            self._assign(condition if node is None else self._value(node), name)
            self._jump(end)
        self._enter(end)
        return self._variable(name)

    def _value_Call(self, node: ast.Call) -> ir.Var:
        if node.keywords:
            raise SyntaxError(f"a kernel passes arguments by position (line {self.location.line})")
        if isinstance(node.func, ast.Attribute):  # a method of an array, which NumPy has as a function
            method = ir.Global(node.func.attr, getattr(np, node.func.attr, None), self.location)
            operands = [node.func.value, *node.args]
            return self._call(self._assign(method), [self._value(one) for one in operands])
        return self._call(self._value(node.func), [self._value(one) for one in node.args])

    def _call(self, function: ir.Var, arguments: list[ir.Var]) -> ir.Var:
        return self._assign(ir.Expr.call(function, arguments, (), self.location))

    def _value_Attribute(self, node: ast.Attribute) -> ir.Var:
        return self._assign(ir.Expr.getattr(self._value(node.value), node.attr, self.location))

    def _value_Subscript(self, node: ast.Subscript) -> ir.Var:
        value = self._value(node.value)
        if isinstance(node.value, ast.Attribute) and isinstance(node.slice, ast.Constant):  # of `x.shape`
            return self._assign(self._item(value, node.slice.value))
        return self._assign(ir.Expr.getitem(value, self._index(node.slice), self.location))

    def _item(self, items: ir.Var, place: Any) -> ir.Expr:
        return ir.Expr.static_getitem(items, place, None, self.location)

    def _index(self, node: ast.expr) -> ir.Var:
        return self._value(node)

    def _value_Slice(self, node: ast.Slice) -> ir.Var:
        function = self._assign(ir.Global("slice", slice, self.location))
        bounds = [ast.Constant(None) if one is None else one for one in (node.lower, node.upper)]
        return self._call(function, [self._value(one) for one in bounds])

    def _value_Tuple(self, node: ast.Tuple) -> ir.Var:
        return self._assign(ir.Expr.build_tuple([self._value(one) for one in node.elts], self.location))


def _places_of(names: ast.expr, given: list[str]) -> list[int]:
    """Where those that a tuple names are among others."""
    return [given.index(one.id) for one in ast.walk(names) if isinstance(one, ast.Name)]


def _is_at_hand(node: ast.expr) -> bool:
    """Whether computing the value does nothing: a variable, a constant, a constant of another dtype."""
    if isinstance(node, ast.UnaryOp):
        return _is_at_hand(node.operand)
    if isinstance(node, ast.Call):
        return all(isinstance(one, ast.Constant) for one in node.args)
    return isinstance(node, ast.Name | ast.Constant)


def _is_test(node: ast.expr) -> bool:
    """Whether the value is a truth value, and to compute it is arithmetic only."""
    if isinstance(node, ast.BoolOp):
        return all(map(_is_test, node.values))
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not) and _is_test(node.operand)
    reads = any(isinstance(one, ast.Subscript | ast.Call) for one in ast.walk(node))
    return isinstance(node, ast.Compare) and not reads
