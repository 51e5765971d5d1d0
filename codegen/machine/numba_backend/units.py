"""Functions of whole rows and matrices that kernels call: each a module of its own, made once on a machine.

A program that solves a system calls thousands of instructions that are the same in all such programs. So what
LLVM makes of them is kept, and the next program finds it. What is new is written when the kernel is, on which
LLVM is at work in another thread meanwhile. Small functions are inlined where they are called.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from dataclasses import replace
from types import FunctionType

import numpy as np
from llvmlite import ir

from pullback.tracer.spec import BOOL, INT64

from ....tracer.records import record
from .. import exchange, loading, store
from ..bundles import Bundle, linked
from ..kernel_types import CompileOptions
from .callees import OF_WHOLES
from .kinds import NONE, Array, Kind, is_number
from .lowering import Declared, Functions, finish, function_of
from .objects import empty_module, expected_by, make_object, text_of
from .tasks import Task, Tasks
from .translate import Text

SMALL = 200
"""Nodes of the syntax tree up to which a function is inlined: two nested loops, a dozen operations."""
_RESULTS: dict[str, Kind] = {"None": NONE, "bool": BOOL, "int": INT64}
"""Of the annotations that say which kind a result has; a float has that of the arrays."""


def is_unit(function: FunctionType, arguments: Sequence[Kind]) -> bool:
    """Whether the function is compiled apart from what calls it."""
    return (
        function.__module__ in OF_WHOLES
        and function.__annotations__["return"] in _RESULTS
        and all(is_number(one) or isinstance(one, Array) for one in arguments)
        and _size(function) > SMALL
    )


@functools.cache
def _size(function: FunctionType) -> int:
    return sum(1 for _ in ast.walk(Text.of(function).tree))


@record(eq=False)
class _Written:
    """A unit on which LLVM is at work: the symbols of those that it calls, and what else it expects."""

    calls: list[str]
    expected: list[str]
    task: Task


class Units:
    """The functions that kernels and their units call, compiled with options that kernels have in common."""

    def __init__(self, options: CompileOptions, tasks: Tasks) -> None:
        self._options, self._tasks = options, tasks
        self._declared: dict[str, tuple[FunctionType, tuple[Kind, ...]]] = {}
        self._known: dict[str, Bundle | _Written] = {}

    def declare(
        self, module: ir.Module, function: FunctionType, arguments: tuple[Kind, ...]
    ) -> Declared | None:
        """The function in a module that calls it; None if it is no unit, but for the module to define."""
        if not is_unit(function, arguments):
            return None
        # extents are constants where arguments come in, and nothing that machine code depends on here
        kinds = tuple(replace(one, extents=()) if isinstance(one, Array) else one for one in arguments)
        options = (sorted(self._options.fastmath), self._options.vector_width)
        digest = loading.entry_hash(function.__module__, *map(_name_of, kinds), *options)
        symbol = f"{function.__name__}.{digest}"
        self._declared[symbol] = function, kinds
        return function_of(module, symbol, arguments), _RESULTS[function.__annotations__["return"]]

    def expected_by(self, module: ir.Module) -> tuple[list[str], list[str]]:
        """The symbols of the units that a module calls, and the names of what else it expects to find."""
        names = expected_by(module)
        units = [one for one in names if one in self._declared]
        return units, [one for one in names if one not in self._declared]

    def begin(self) -> None:
        """Have LLVM work on those that are declared and not in the cache, and on what they call."""
        while missing := [one for one in self._declared if one not in self._known]:
            for symbol in missing:
                kept = exchange.find(symbol)
                self._known[symbol] = self._written(symbol) if kept is None else Bundle.unpacked(kept)

    def _written(self, symbol: str) -> _Written:
        function, arguments = self._declared[symbol]
        module = empty_module(symbol)
        written = Functions(module, self.declare).write(Text.of(function), arguments, name=symbol)
        written.function.linkage = ""
        finish(module, self._options)
        calls, expected = self.expected_by(module)
        return _Written(
            calls, expected, self._tasks.add(functools.partial(make_object, text_of(module, symbol)))
        )

    def bundle(self, symbol: str) -> Bundle:
        """One of those that are begun, with what it calls; it is kept from now on."""
        found = self._known[symbol]
        if isinstance(found, _Written):
            called = [self.bundle(one) for one in found.calls]
            self._known[symbol] = found = linked(called, found.expected, symbol, found.task.value())
            store.write(symbol, found.packed())
        return found


def _name_of(kind: Kind) -> str:
    assert isinstance(kind, np.dtype | Array)
    return f"{kind.dtype.str}{kind.ndim}{kind.layout}" if isinstance(kind, Array) else kind.str
