"""The types of a kernel's variables: statement by statement, by Numba's rules for what operations give.

Numba looks for types that hold for all statements together, which takes several rounds. In generated code a
variable has the type of what is first assigned to it, and that comes before all uses.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from numba.core import ir
from numba.core import types as numba_types

types: Any = numba_types
NumbaType = Any


class Inference:
    """The types of variables and the signatures of operations, as Numba's lowering wants them."""

    def __init__(self, context: Any, function: ir.FunctionIR, arguments: Sequence[NumbaType]) -> None:
        """Raises TypeError where an operation does not suit its operands, or a variable changes its type."""
        self.context = context
        self.arguments = arguments
        self.variables: dict[str, NumbaType] = {}
        self.read: set[str] = set()
        self.signatures: dict[Any, Any] = {}
        self.result: NumbaType = types.none
        for block in function.blocks.values():  # in the order of the text
            for statement in block.body:
                self._visit(statement)

    def _visit(self, statement: Any) -> None:
        if isinstance(statement, ir.Assign):
            self._enter(statement.target.name, self._type_of(statement.value))
        elif isinstance(statement, ir.SetItem):
            operands = (statement.target, statement.index, statement.value)
            self._resolve(statement, operator.setitem, *map(self._of, operands))
        elif isinstance(statement, ir.Return):
            self._enter("return", self._of(statement.value))
            self.result = self._of(statement.value)

    def _enter(self, name: str, kind: NumbaType) -> None:
        known = self.variables.setdefault(name, kind)
        if known != kind:  # one of two values that may be chosen
            common = self.context.unify_types(known, kind)
            if common is None or (common != known and name in self.read):
                raise TypeError(f"{name} is {known} and {kind}")
            self.variables[name] = common

    def _of(self, variable: ir.Var) -> NumbaType:
        self.read.add(variable.name)
        return self.variables[variable.name]

    def _resolve(self, node: Any, function: Any, *arguments: NumbaType) -> NumbaType:
        signature = self.context.resolve_function_type(function, arguments, {})
        if signature is None:
            raise TypeError(f"{node}: no {function} of {arguments}")
        self.signatures[node] = signature
        return signature.return_type

    def _type_of(self, value: Any) -> NumbaType:
        if isinstance(value, ir.Var):
            return self._of(value)
        if isinstance(value, ir.Const | ir.Global):
            return self.context.resolve_value_type(value.value)
        if isinstance(value, ir.Arg):
            self._enter(f"arg.{value.name}", self.arguments[value.index])
            return self.arguments[value.index]
        return getattr(self, f"_type_of_{value.op}")(value)

    def _type_of_binop(self, value: ir.Expr) -> NumbaType:
        return self._resolve(value, value.fn, self._of(value.lhs), self._of(value.rhs))

    _type_of_inplace_binop = _type_of_binop

    def _type_of_unary(self, value: ir.Expr) -> NumbaType:
        return self._resolve(value, value.fn, self._of(value.value))

    def _type_of_getitem(self, value: ir.Expr) -> NumbaType:
        return self._resolve(value, operator.getitem, self._of(value.value), self._of(value.index))

    def _type_of_static_getitem(self, value: ir.Expr) -> NumbaType:
        signature = self.context.resolve_static_getitem(value=self._of(value.value), index=value.index)
        return signature.return_type

    def _type_of_call(self, value: ir.Expr) -> NumbaType:
        return self._resolve(value, self._of(value.func), *map(self._of, value.args))

    def _type_of_getattr(self, value: ir.Expr) -> NumbaType:
        return self.context.resolve_getattr(self._of(value.value), value.attr)

    def _type_of_build_tuple(self, value: ir.Expr) -> NumbaType:
        return types.BaseTuple.from_types([*map(self._of, value.items)])

    def _type_of_exhaust_iter(self, value: ir.Expr) -> NumbaType:
        return self._of(value.value)

    def _type_of_cast(self, value: ir.Expr) -> NumbaType:
        return self._of(value.value)
