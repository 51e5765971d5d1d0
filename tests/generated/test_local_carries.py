"""Carries of one element are local variables, found in time linear in the length of the body."""

from collections.abc import Iterator

import numpy as np
import pytest

from pullback.codegen import ir
from pullback.codegen.ir.names import NamePool
from pullback.codegen.writing.local_carries import with_local_carries

FLOAT = np.dtype("float64")
STEP, ONE = ir.Variable("i"), ir.number(1)


def carry(number: int) -> ir.Buffer:
    return ir.Buffer(f"x_{number}", FLOAT, (2,))


def element(buffer: ir.Buffer, step: ir.Expr | int) -> ir.Load:
    return ir.Load(buffer, (ir.number(step) if isinstance(step, int) else ir.apply("bit_and", step, ONE),))


def loop_with_carries(count: int) -> ir.Body:
    """`x = x + x` ten times, for so many `x`."""
    result = ir.Buffer("result", FLOAT, (count,), "output")
    following = ir.apply("add", STEP, ONE)

    def steps() -> Iterator[ir.Stmt]:
        for one in map(carry, range(count)):
            now = element(one, STEP)
            yield ir.Store(element(one, following), ir.apply("add", now, now))

    before = [ir.Store(element(carry(number), 0), ir.Const(1.0, FLOAT)) for number in range(count)]
    behind = [ir.Store(element(result, number), element(carry(number), 0)) for number in range(count)]
    return (*before, ir.For(STEP, ir.number(0), ir.number(10), tuple(steps())), *behind)


def test_carries_are_variables() -> None:
    body = with_local_carries(loop_with_carries(2), [carry(0), carry(1)], NamePool(set()))
    assert {one.name for one in ir.buffers(body)} == {"result"}
    assert ir.defined_in(body) == {"x_0", "next_x_0", "x_1", "next_x_1", "i"}


def test_statements_are_searched_for_buffers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[ir.Stmt] = []

    def own_buffers(statement: ir.Stmt, asked: bool = True) -> set[ir.Buffer]:
        searched.append(statement)
        return found(statement, asked)

    found = ir.own_buffers
    monkeypatch.setattr(ir, "own_buffers", own_buffers)
    with_local_carries(loop_with_carries(40), [carry(number) for number in range(40)], NamePool(set()))
    assert len(searched) <= 8 * 40
