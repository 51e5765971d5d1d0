"""Stores stand behind the loads of other elements of their array, and pass nothing else."""

import numpy as np
import pytest

from pullback.codegen import ir
from pullback.codegen.writing.store_order import with_stores_behind_loads
from pullback.tracer.ops.elementwise import ADDITION

FLOAT, INT = np.dtype("float64"), np.dtype("int64")
X, Y = ir.Buffer("x", FLOAT, (2, 8)), ir.Buffer("y", FLOAT, (8,))
STEP, COLUMN = ir.Variable("i", INT), ir.Variable("j", INT)
A, B = ir.Variable("a", FLOAT), ir.Variable("b", FLOAT)
ONE = ir.number(1)


def turn(step: ir.Expr) -> ir.Expr:
    return ir.apply("bit_and", step, ONE)


def at(row: ir.Expr, column: ir.Expr = COLUMN) -> ir.Load:
    return ir.Load(X, (row, column))


def behind(index: ir.Expr, count: int) -> ir.Expr:
    return ir.apply("add", index, ir.number(count))


STORE = ir.Store(at(turn(behind(STEP, 1))), A)
PASSED = {
    "the other of two rows": at(turn(STEP)),
    "the other of two rows, elsewhere": at(turn(STEP), behind(COLUMN, 1)),
    "three rows on": at(turn(behind(STEP, 4))),
    "the next element": at(turn(behind(STEP, 1)), behind(COLUMN, 1)),
}
KEPT = {
    "the same element": at(turn(behind(STEP, 1))),
    "a row as far": at(turn(behind(STEP, 3))),
    "a row that may be the same": at(STEP),
    "an element that may be the same": at(turn(behind(STEP, 1)), STEP),
}


@pytest.mark.parametrize("load", PASSED.values(), ids=PASSED)
def test_a_store_goes_behind_a_load_of_another_element(load: ir.Load) -> None:
    body = (STORE, ir.Let(B, load), ir.Store(ir.Load(Y, (COLUMN,)), B))
    assert with_stores_behind_loads(body) == (body[1], STORE, body[2])


@pytest.mark.parametrize("load", KEPT.values(), ids=KEPT)
def test_a_store_stays_in_front_of_a_load_that_may_be_of_its_element(load: ir.Load) -> None:
    body = (STORE, ir.Let(B, load), ir.Let(ir.Variable("c", FLOAT), at(turn(STEP))))
    assert with_stores_behind_loads(body) == body


LOAD = ir.Let(B, at(turn(STEP)))
BARRIERS = {
    "another value of its variable": ir.Assign(A, B),
    "a sum in its variable": ir.Accumulate(A, B, ADDITION),
    "a store to its element": ir.Store(STORE.target, B),
    "a check": ir.Check(ir.apply("less", STEP, ONE), "out of range"),
    "a loop": ir.For(ir.Variable("k", INT), ir.number(0), ONE, (LOAD,)),
}


@pytest.mark.parametrize("barrier", BARRIERS.values(), ids=BARRIERS)
def test_a_store_does_not_pass_what_may_change_it(barrier: ir.Stmt) -> None:
    body = (STORE, barrier, LOAD)
    assert with_stores_behind_loads(body) == body


def test_stores_that_load_nothing_behind_them_stay() -> None:
    body = (STORE, ir.Let(B, ir.Load(Y, (COLUMN,))))
    assert with_stores_behind_loads(body) == body


def test_stores_keep_their_order() -> None:
    later = ir.Store(at(turn(behind(STEP, 1)), behind(COLUMN, 2)), A)
    body = (STORE, later, LOAD)
    assert with_stores_behind_loads(body) == (LOAD, STORE, later)


def test_what_a_store_is_made_of_is_read_before_it_changes() -> None:
    store = ir.Store(STORE.target, ir.Load(Y, (COLUMN,)))
    body = (store, ir.Store(ir.Load(Y, (COLUMN,)), A), LOAD)
    assert with_stores_behind_loads(body) == body
    elsewhere = (store, ir.Store(ir.Load(Y, (behind(COLUMN, 1),)), A), LOAD)
    assert with_stores_behind_loads(elsewhere) == (elsewhere[1], LOAD, store)
