"""Where C declares variables: in the block that uses them, or in front of all, if there are several."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ... import ir


def with_scopes(function: ir.Function) -> tuple[ir.Function, dict[str, np.dtype]]:
    """The function, in which each Let is a declaration, and what is to be declared in front of all.

    A Let that gives a variable another value, or one that is declared in front, becomes an Assign.
    """
    dtypes = {
        one.variable.name: one.variable.dtype
        for one in ir.walk(function.statements)
        if isinstance(one, ir.Let | ir.Assign)
    }
    given = {one.name for one in function.parameters}
    first = {name: dtypes[name] for name in sorted(_open(function.statements) - given)}
    prologue, declared = _scoped(function.prologue, given | {*first})
    body, _ = _scoped(function.body, declared)
    return replace(function, prologue=prologue, body=body), first


def _scoped(body: ir.Body, declared: set[str]) -> tuple[ir.Body, set[str]]:
    """A block in which some variables are declared already, and which are at its end."""
    result: list[ir.Stmt] = []
    declared = {*declared}
    for one in body:
        if isinstance(one, ir.Let):
            if one.variable.name in declared:
                one = ir.Assign(one.variable, one.value, one.origins)
            declared.add(one.variable.name)
        result.append(ir.with_bodies(one, lambda inner: _scoped(inner, declared)[0]))
    return tuple(result), declared


def _open(body: ir.Body) -> set[str]:
    """The variables that a block uses before a Let of its own makes them."""
    begun: set[str] = set()
    left_open: set[str] = set()
    for one in body:
        own = {one.variable} if isinstance(one, ir.Let | ir.For) else set()
        read = {part for part in ir.parts(*ir.own_expressions(one)) if isinstance(part, ir.Variable)} - own
        inside = {name for block in ir.bodies(one) for name in _open(block)}
        if isinstance(one, ir.For):
            inside.discard(one.variable.name)
        if isinstance(one, ir.Shared):
            inside -= {bound.name for bound in ir.PART}
        left_open |= ({variable.name for variable in read} | inside) - begun
        if isinstance(one, ir.Let):
            if any(part == one.variable for part in ir.parts(one.value)):
                left_open.add(one.variable.name)
            if one.variable.name not in left_open:
                begun.add(one.variable.name)
    return left_open
