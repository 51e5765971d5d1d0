"""Stores behind the loads of the arrays that they write, where these load other elements.

A row that a loop carries is made of the row before: `x[(i + 1) & 1, j] = ...` stands among loads of
`x[i & 1, j - 1]` and `x[i & 1, j + 1]`. LLVM cannot tell that the rows differ, loads again what it has loaded
already, and gives up the vectors of loops with many operations. Condition: straight-line statements, none of
which changes what the store is made of, and loads that in the same iteration are of other elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...tracer.records import record
from .. import ir

Terms = dict[ir.Expr, int]
CONSTANT = ir.number(1)
MOST_PASSED = 100
"""Statements that a store passes, so that a long body does not take the square of its length."""


def with_stores_behind_loads(body: ir.Body) -> ir.Body:
    """The statements, and those of loops in them: each store behind the last load that it may pass."""
    found = [_Access.of(ir.with_bodies(one, with_stores_behind_loads)) for one in body]
    last_loads = {buffer: place for place, one in enumerate(found) for buffer in one.loaded}
    for place in range(len(found) - 2, -1, -1):
        store = found[place]
        if isinstance(store.statement, ir.Store) and last_loads.get(store.statement.target.buffer, 0) > place:
            last = _last_load(store, found, place)
            found[place : last + 1] = [*found[place + 1 : last + 1], store]
    return tuple([one.statement for one in found])


@record(frozen=True)
class _Access:
    """A statement, and what it reads and writes if it is a plain one."""

    statement: ir.Stmt
    written: ir.Variable | ir.Load | None = None
    variables: frozenset[ir.Variable] = frozenset()
    loads: tuple[ir.Load, ...] = ()
    """With the place of a store."""

    @classmethod
    def of(cls, statement: ir.Stmt) -> _Access:
        match statement:
            case ir.Let(written) | ir.Assign(written) | ir.Store(written) | ir.Accumulate(written):
                pass
            case _:
                return cls(statement)
        read = [*ir.parts(*ir.own_expressions(statement))]
        variables = frozenset(part for part in read if isinstance(part, ir.Variable))
        return cls(statement, written, variables, tuple(part for part in read if isinstance(part, ir.Load)))

    @property
    def loaded(self) -> set[ir.Buffer]:
        """The buffers whose loads a store goes behind: those of other stores stand with these."""
        return set() if isinstance(self.statement, ir.Store) else {load.buffer for load in self.loads}


def _last_load(store: _Access, body: Sequence[_Access], place: int) -> int:
    """The last statement that loads of the array that a store writes, of those that the store may pass."""
    last, target = place, store.written
    assert isinstance(target, ir.Load)
    for behind, one in enumerate(body[place + 1 : place + 1 + MOST_PASSED], place + 1):
        same = [load for load in one.loads if load.buffer is target.buffer]
        if one.written is None or _changes(one.written, store):
            break
        if not all(_are_apart(load, target) for load in same):
            break
        if target.buffer in one.loaded:
            last = behind
    return last


def _changes(written: ir.Variable | ir.Load, store: _Access) -> bool:
    """Whether what a statement writes may be what a store is made of."""
    if isinstance(written, ir.Variable):
        return written in store.variables
    return any(load.buffer is written.buffer and not _are_apart(load, written) for load in store.loads)


def _are_apart(one: ir.Load, other: ir.Load) -> bool:
    """Whether two places of one buffer are different elements, in a dimension by themselves."""
    return any(map(_differ, one.indices, other.indices))


def _differ(one: ir.Expr, other: ir.Expr) -> bool:
    """Whether positions differ by a number other than 0, or are two rows that take turns."""
    step, other_step = _turning(one), _turning(other)
    if step is not None and other_step is not None:
        return _distance(step, other_step) % 2 == 1
    return _distance(one, other) != 0


def _turning(position: ir.Expr) -> ir.Expr | None:
    """The step whose parity says which of two rows a position is, if it is such a row."""
    if not isinstance(position, ir.Apply) or position.function != "bit_and":
        return None
    return position.arguments[0] if position.arguments[1] == CONSTANT else None


def _distance(one: ir.Expr, other: ir.Expr) -> int:
    """How far a position is behind another one, if that is a number; else 0."""
    terms = _terms(one)
    for term, count in _terms(other).items():
        terms[term] = terms.get(term, 0) - count
    constant = terms.pop(CONSTANT, 0)
    return 0 if any(terms.values()) else constant


def _terms(position: ir.Expr) -> Terms:
    """A position as a sum: how often each value is in it."""
    if isinstance(position, ir.Const):
        return {CONSTANT: int(position.value)}
    if not (isinstance(position, ir.Apply) and position.function in ("add", "subtract")):
        return {position: 1}
    sign = 1 if position.function == "add" else -1
    found, right = (_terms(part) for part in position.arguments)
    for term, count in right.items():
        found[term] = found.get(term, 0) + sign * count
    return found
