"""Statements of the loop IR that take one line of Python; what holds others, the templates lay out."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import (
    THREADS,
    WHOLE,
    Accumulate,
    Apply,
    Assign,
    Buffer,
    Const,
    Expr,
    For,
    Host,
    Let,
    Library,
    Return,
    Section,
    Shared,
    Span,
    Stmt,
    Store,
    View,
)
from .spelling import ATOM, spell

IN_PLACE = {"add": "+=", "multiply": "*=", "logical_and": "&="}
"""LLVM may put what is added so in another order."""
LOOPS = ("serial", "parallel", "block", "unrolled")
"""The kinds of loops that are a `for`: each thread runs its part of a parallel one."""


def statement(one: Stmt) -> str:
    """The line of a statement."""
    match one:
        case Let(target, value) | Assign(target, value) | Store(target, value):
            return f"{spell(target)} = {spell(value)}"
        case Accumulate(target, value, monoid, True):
            return f"{spell(target)} {IN_PLACE[monoid.fold.name]} {spell(value)}"
        case Accumulate(target):
            return f"{spell(target)} = {spell(one.combined)}"
        case View(buffer, source, shape):
            return f"{buffer.name} = {source.name}.reshape({_tuple(shape)})"
        case Library():
            return call(one)
        case Host(name, _, operands):
            return f"{name}({', '.join(map(_operand, operands))})"
        case Return():
            return "return"
    raise TypeError(f"{type(one).__name__} takes more than a line")


def call(one: Library) -> str:
    """`gemm(1.0, x[i], w.T, 0.0, product)`"""
    return f"{one.function}({', '.join(map(_operand, one.operands))})"


def negated(condition: Expr) -> str:
    """The opposite of a condition."""
    if isinstance(condition, Apply) and condition.function == "not":
        return spell(condition.arguments[0])
    return f"not {spell(condition, ATOM)}"


def bounds(loop: For) -> str:
    """What a loop is a `range` of."""
    if loop.kind not in LOOPS:
        raise TypeError(f"Python is written of no loop of kind {loop.kind!r}: {loop.variable.name}")
    if loop.step != 1:
        return f"{spell(loop.start)}, {spell(loop.stop)}, {loop.step}"
    return spell(loop.stop) if loop.start == Const(0) else f"{spell(loop.start)}, {spell(loop.stop)}"


def parts(one: Shared) -> str:
    """`parts_of(n, threads, 4, own=(row,), add=(total,))`: see `codegen/shared_bodies.py`."""
    sharing = one.sharing
    given = [spell(one.extent), spell(THREADS), str(sharing.parts_per_thread)]
    if sharing.private:
        given.append(f"own={_names(sharing.private)}")
    by_operator: dict[str, list[Buffer]] = {}
    for total, monoid in sharing.totals:
        by_operator.setdefault(monoid.fold.name, []).append(total)
    given += [f"{operator}={_names(totals)}" for operator, totals in by_operator.items()]
    return f"parts_of({', '.join(given)})"


def _names(buffers: Sequence[Buffer]) -> str:
    return f"({', '.join(one.name for one in buffers)},)"


def _operand(operand: Section | Expr) -> str:
    if not isinstance(operand, Section):
        return spell(operand)
    text = operand.buffer.name
    if operand.places:
        text += f"[{', '.join(map(_place, operand.places))}]"
    if operand.shape:
        text += f".reshape({_tuple(operand.shape)})"
    if operand.rows != WHOLE:
        text += f"[:, {_place(operand.rows)}]" if operand.transposed else f"[{_place(operand.rows)}]"
    return f"{text}.T" if operand.transposed else text


def _place(place: Expr | Span) -> str:
    if isinstance(place, Span):
        return ":".join("" if limit is None else spell(limit) for limit in (place.start, place.stop))
    return spell(place)


def _tuple(values: tuple[Expr, ...]) -> str:
    return f"({spell(values[0])},)" if len(values) == 1 else f"({', '.join(map(spell, values))})"
