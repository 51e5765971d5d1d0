"""Scratch that holds one value at a time, as local variables: what loops carry, what choices leave.

A carry lies in an array with a row for each step that somebody reads: one, or two that take turns, as
`x[(i + 1) & 1]` is made of `x[i & 1]`. Where a row is one element, the array is a variable; where there are
two, what a step makes is another variable, which is the value at its end.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from pullback.tracer.ops.elementwise import ADDITION

from .. import ir
from ..ir.names import NamePool

FIRST = ir.number(0)
ONE = ir.number(1)
Places = dict[ir.Buffer, list[int]]


def with_local_carries(body: ir.Body, scratch: Iterable[ir.Buffer], pool: NamePool) -> ir.Body:
    """The body of a function with variables in the place of scratch that it alone uses."""
    scratch = [one for one in scratch if len(one.dims) == 1 and one.dims[0] in (1, 2)]
    candidates = frozenset(scratch) - _taken_whole(body) if scratch else frozenset()
    uses = _Uses(candidates)
    places = uses.places(body, candidates)
    used = [one for one in scratch if one in places]
    body = _with_ones(body, {one: places[one] for one in used if one.dims[0] == 1}, uses)
    for buffer in used:
        if buffer.dims[0] == 2:
            body = _as_two(body, places[buffer], buffer, pool, uses) or body
    return _without_idle_counters(body)


class _Uses:
    """Which elements of some buffers each statement uses: found once, as statements never change."""

    def __init__(self, buffers: frozenset[ir.Buffer]) -> None:
        self._buffers = buffers
        self._elements: dict[int, tuple[ir.Stmt, frozenset[ir.Load]]] = {}

    def elements(self, statement: ir.Stmt) -> frozenset[ir.Load]:
        """The elements that a statement and those inside of it use."""
        if (found := self._elements.get(id(statement))) is None:
            loads = [one for one in ir.parts(*ir.own_expressions(statement)) if isinstance(one, ir.Load)]
            own = frozenset(one for one in loads if one.buffer in self._buffers)
            inside = (self.elements(one) for body in ir.bodies(statement) for one in body)
            found = self._elements[id(statement)] = statement, own.union(*inside)
        return found[1]

    def places(self, body: ir.Body, buffers: AbstractSet[ir.Buffer]) -> Places:
        """The statements that use each buffer, by their places."""
        found: Places = {}
        for place, one in enumerate(body if buffers else ()):
            for buffer in {element.buffer for element in self.elements(one)} & buffers:
                found.setdefault(buffer, []).append(place)
        return found

    def using(self, body: ir.Body, element: ir.Load) -> list[int]:
        """The places of the statements that use an element."""
        return [place for place, one in enumerate(body) if element in self.elements(one)]

    def exchanged(self, body: ir.Body, variables: Mapping[ir.Load, ir.Variable]) -> ir.Body:
        """Statements with variables for elements."""
        exchanged = frozenset(variables)
        return ir.with_expressions(
            body,
            lambda one: variables.get(one) if isinstance(one, ir.Load) else None,
            lambda one: not exchanged.isdisjoint(self.elements(one)),
        )


def _taken_whole(body: ir.Body) -> set[ir.Buffer]:
    """The buffers that are given to functions, seen in another shape, asked for extents, or parts' own."""
    given = [one for one in ir.walk(body) if isinstance(one, ir.View | ir.Library | ir.Host)]
    own = {buffer for one in ir.walk(body) if isinstance(one, ir.Shared) for buffer in one.sharing.own}
    asked = {one.buffer for one in ir.expressions(body) if isinstance(one, ir.Extent)}
    return own | asked | ir.buffers(given)


def _with_ones(body: ir.Body, places: Places, uses: _Uses) -> ir.Body:
    """The body with variables for buffers of one element, but for those whose place data decides."""
    given = {one: found for one, found in places.items() if _is_given_first(body, found, _first(one), uses)}
    if not given:
        return body
    new = uses.exchanged(body, {_first(one): _variable(one) for one in given})
    left = uses.places(new, given.keys())
    return _with_ones(body, {one: given[one] for one in given if one not in left}, uses) if left else new


def _first(buffer: ir.Buffer) -> ir.Load:
    return ir.Load(buffer, (FIRST,))


def _as_two(
    body: ir.Body, places: list[int], buffer: ir.Buffer, pool: NamePool, uses: _Uses
) -> ir.Body | None:
    """The body with variables for a buffer of two elements that take turns in the steps of one loop."""
    block, places = _innermost_with(body, places, buffer, uses)
    loops = [place for place in places if isinstance(block[place], ir.For | ir.While)]
    if not loops or loops != places[1:2]:
        return None
    start, at = places[:2]
    loop, before, behind = block[at], block[start : start + 1], block[at + 1 :]
    assert isinstance(loop, ir.For | ir.While)
    steps = _steps(loop, behind)
    if steps is None:
        return None
    counter, count = steps
    first, now = _first(buffer), ir.Load(buffer, (_turn(counter),))
    following = ir.Load(buffer, (_turn(ir.apply("add", counter, ONE)),))
    is_given = _is_given_first(before, [0], first, uses)
    if not (is_given and _is_given_first(loop.body, uses.using(loop.body, following), following, uses)):
        return None
    value, made = _variable(buffer), replace(_variable(buffer), name=pool.take(f"next_{buffer.name}"))
    before, behind = (
        uses.exchanged(before, {first: value}),
        uses.exchanged(behind, {ir.Load(buffer, (_last_turn(count),)): value}),
    )
    inside = uses.exchanged(loop.body, {now: value, following: made})
    if any(uses.places(one, {buffer}) for one in (before, inside, behind)):
        return None
    end = len(inside) - isinstance(loop, ir.While)  # in front of the counter's step
    loop = replace(loop, body=(*inside[:end], ir.Assign(value, made), *inside[end:]))
    return _with_block(body, block, (*block[:start], *before, *block[start + 1 : at], loop, *behind))


def _variable(buffer: ir.Buffer) -> ir.Variable:
    return ir.Variable(buffer.name, buffer.dtype)


def _steps(loop: ir.For | ir.While, behind: ir.Body) -> tuple[ir.Expr, ir.Expr] | None:
    """The counter of a loop over steps, and how many there are; None of another loop."""
    if isinstance(loop, ir.For):
        return loop.variable, loop.stop
    step, count = loop.body[-1], behind[0] if behind else None
    is_counted = isinstance(step, ir.Accumulate) and isinstance(count, ir.Let)
    return (step.target, count.variable) if is_counted else None  # type: ignore[union-attr]


def _turn(step: ir.Expr) -> ir.Expr:
    return ir.apply("bit_and", step, ONE)


def _last_turn(count: ir.Expr) -> ir.Expr:
    return ir.number(int(count.value) % 2) if isinstance(count, ir.Const) else _turn(count)


# --- where an element is used -------------------------------------------------------------------------------


def _innermost_with(
    body: ir.Body, places: list[int], buffer: ir.Buffer, uses: _Uses
) -> tuple[ir.Body, list[int]]:
    """The innermost body with all statements that use a buffer, and their places in it."""
    if len(places) != 1:
        return body, places
    (using,) = (body[place] for place in places)
    inside = [(inner, found) for inner in ir.bodies(using) if (found := uses.places(inner, {buffer}))]
    if len(inside) != 1 or any(_is_of(part, buffer) for part in ir.parts(*ir.own_expressions(using))):
        return body, places
    ((inner, found),) = inside
    return _innermost_with(inner, found[buffer], buffer, uses)


def _is_of(expression: ir.Expr, buffer: ir.Buffer) -> bool:
    return isinstance(expression, ir.Load) and expression.buffer == buffer


def _is_given_first(body: ir.Body, places: list[int], element: ir.Load, uses: _Uses) -> bool:
    """Whether an element has a value wherever the statements at these places, which use it, read it."""
    if not places:
        return False
    first = body[places[0]]
    own = (*ir.parts(*ir.own_expressions(first)),)
    if isinstance(first, ir.Store):
        return first.target == element and own.count(element) == 1
    sides = [(one, uses.using(one, element)) for one in ir.bodies(first)]
    if element in own or not sides:
        return False
    if isinstance(first, ir.If) and all(_is_given_first(*side, element, uses) for side in sides):
        return True
    return len(places) == 1 and all(_is_given_first(*side, element, uses) for side in sides if side[1])


# --- exchanging ---------------------------------------------------------------------------------------------


def _with_block(body: ir.Body, old: ir.Body, new: ir.Body) -> ir.Body:
    """A body with another one in the place of one in it."""
    if body is old:
        return new
    found = tuple([ir.with_bodies(one, lambda inner: _with_block(inner, old, new)) for one in body])
    return body if all(map(operator.is_, found, body)) else found


def _without_idle_counters(body: ir.Body) -> ir.Body:
    """Without the counters of loops of whose steps nobody asks the number."""
    kept = list(body)
    for place in reversed(range(1, len(body) - 1)):
        loop, *behind = kept[place : place + 2]
        count = behind[0] if behind else None
        if not isinstance(loop, ir.While) or not isinstance(count, ir.Let):
            continue
        counter, step = count.value, loop.body[-1]
        if not isinstance(counter, ir.Variable) or step != ir.Accumulate(counter, ONE, ADDITION):
            continue
        if not ir.mentions(count.variable, kept[place + 2 :]) and not ir.mentions(counter, loop.body[:-1]):
            kept[place - 1 : place + 2] = [replace(loop, body=loop.body[:-1])]
    return tuple(ir.with_bodies(one, _without_idle_counters) for one in kept)
