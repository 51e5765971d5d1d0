"""Stores behind the loads of the arrays that they write, where these load other elements.

A row that a loop carries is made of the row before: `x[(i + 1) & 1, j] = ...` stands among loads of
`x[i & 1, j - 1]` and `x[i & 1, j + 1]`. LLVM cannot tell that the rows differ, loads again what it has loaded
already, and gives up the vectors of loops with many operations. Condition: straight-line statements, none of
which changes what the store is made of, and loads that in the same iteration are of other elements.
"""

from __future__ import annotations

from .. import ir

Terms = dict[ir.Expr, int]
CONSTANT = ir.number(1)
Plain = ir.Let | ir.Assign | ir.Accumulate | ir.Store


def with_stores_behind_loads(body: ir.Body) -> ir.Body:
    """The statements, and those of loops in them: each store behind the last load that it may pass."""
    found = tuple([ir.with_bodies(one, with_stores_behind_loads) for one in body])
    for place in range(len(found) - 2, -1, -1):
        store = found[place]
        if isinstance(store, ir.Store):
            last = _last_load(store, found, place)
            found = (*found[:place], *found[place + 1 : last + 1], store, *found[last + 1 :])
    return found


def _last_load(store: ir.Store, body: ir.Body, place: int) -> int:
    """The last statement that loads of the array that a store writes, of those that the store may pass."""
    last = place
    read = {part for part in ir.parts(store.target, store.value) if isinstance(part, ir.Variable | ir.Load)}
    for behind in range(place + 1, len(body)):
        one = body[behind]
        if not isinstance(one, Plain):
            break
        loads = [part for part in ir.parts(*ir.own_expressions(one)) if isinstance(part, ir.Load)]
        written = one.variable if isinstance(one, ir.Let | ir.Assign) else one.target
        same = [load for load in loads if load.buffer is store.target.buffer]
        if _writes_any(written, read) or not all(_are_apart(load, store.target) for load in same):
            break
        if same and not isinstance(one, ir.Store):
            last = behind
    return last


def _writes_any(written: ir.Variable | ir.Load, read: set[ir.Variable | ir.Load]) -> bool:
    """Whether a statement may change what a store is made of."""
    if isinstance(written, ir.Variable):
        return written in read
    loads = (part for part in read if isinstance(part, ir.Load))
    return any(load.buffer is written.buffer and not _are_apart(load, written) for load in loads)


def _are_apart(one: ir.Load, other: ir.Load) -> bool:
    """Whether two places of one buffer are different elements, in a dimension by themselves."""
    return any(map(_differ, one.indices, other.indices))


def _differ(one: ir.Expr, other: ir.Expr) -> bool:
    """Whether positions differ by a number other than 0, or are two rows that take turns."""
    is_turn = _is_turn(one) and _is_turn(other)
    if is_turn:
        one, other = one.arguments[0], other.arguments[0]  # type: ignore[union-attr]
    distance = _terms(one)
    for term, count in _terms(other).items():
        distance[term] = distance.get(term, 0) - count
    constant = distance.pop(CONSTANT, 0)
    return not any(distance.values()) and (constant % 2 == 1 if is_turn else constant != 0)


def _is_turn(position: ir.Expr) -> bool:
    """Whether a position is that of a row which takes turns with another."""
    if not isinstance(position, ir.Apply):
        return False
    return position.function == "bit_and" and position.arguments[1] == CONSTANT


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
