"""The imports of a generated file: what its functions name."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from pullback.tracer.spec import INT64

from ... import ir
from ...host import HostCall
from ...vector_math import FUNCTIONS
from ...whole_calls import NAMES_OF_MODULES
from ..comments import LINE_LENGTH, in_lines


def import_lines(functions: Sequence[ir.Function]) -> list[str]:
    """The import lines, a blank one between the standard library, NumPy and pullback; then what they make."""
    used = {name for one in functions for name in _names(one)}
    blocks: list[Mapping[str, set[str]]] = [
        {"math": {"inf", "nan"}},
        {"numpy": {name for name in used if name in ir.OF_INTEGERS or _is_dtype(name)}},
        {
            "pullback.codegen.blas": {"gemm"},
            "pullback.codegen.host": {"ComplexCall", "ForeignCall", "HostCall"},
            "pullback.codegen.shared_bodies": {"parts_of"},
            "pullback.codegen.vector_math": set(FUNCTIONS),
            **NAMES_OF_MODULES,
        },
    ]
    lines: list[str] = []
    calls = {one.name: one.function for function in functions for one in ir.host_calls(function.body)}
    for place, block in enumerate(blocks):
        named = [(module, sorted(used & names)) for module, names in sorted(block.items())]
        found = [line for module, names in named if names for line in wrapped_import(module, names)]
        found += [_import_of(name, one) for name, one in calls.items() if one.place] if place == 1 else []
        lines += ["", *found] if found else []
    made = [f"{name} = {function!r}" for name, function in calls.items() if function.place is None]
    lines += ["", *made] if made else []
    return lines[1:]


def _is_dtype(name: str) -> bool:
    return name != "bool" and name in np.sctypeDict


def _import_of(name: str, function: HostCall) -> str:
    """The import of a library's function under a name."""
    assert function.place is not None
    module, own = function.place
    return f"from {module} import {own}" if name == own else f"from {module} import {own} as {name}"


def wrapped_import(module: str, names: Sequence[str]) -> list[str]:
    """The lines of one import."""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= LINE_LENGTH:
        return [line]
    inside = in_lines(names, LINE_LENGTH - len("    ,"))
    return [f"from {module} import (", *(f"    {part}," for part in inside), ")"]


def _names(function: ir.Function) -> Iterator[str]:
    """The functions, dtypes and constants that a function names."""
    for statement in ir.walk(function.statements):
        written: Iterable[ir.Expr] = ir.own_expressions(statement)
        if isinstance(statement, ir.Library):
            yield statement.function
        elif isinstance(statement, ir.Shared):
            yield "parts_of"
        elif isinstance(statement, ir.Host) and statement.function.place is None:
            yield type(statement.function).__name__
        elif isinstance(statement, ir.Accumulate) and not statement.in_any_order:
            written = (statement.combined,)
        for one in ir.parts(*written):
            if isinstance(one, ir.Apply):
                yield one.function
            elif isinstance(one, ir.Cast):
                yield one.dtype.name
            elif isinstance(one, ir.Const) and one.dtype.kind != "b":
                if one.dtype not in (ir.FLOAT64, INT64):
                    yield one.dtype.name
                if not math.isfinite(one.value):
                    yield "nan" if math.isnan(one.value) else "inf"
