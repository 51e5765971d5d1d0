"""Names of local variables: one that a loop needs for itself is free again behind that loop.

While a function is written each variable gets a name of its own, since nobody knows yet what else will be
written in front of it. Then `total_3` of a loop may be a `total`, as in the loop before.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from pullback.tracer.spec import BOOL

from .. import ir
from ..ir.names import NamePool

Path = tuple[int, ...]
"""The loops around a statement, each by its number."""


def with_plain_names(
    body: ir.Body, outside: Iterable[ir.Let | ir.View | ir.Variable], pool: NamePool
) -> ir.Body:
    """The body of a function with fewer names; `outside` are the variables that it does not define."""
    given = {one.name if isinstance(one, ir.Variable) else one.defined for one in outside}
    occurrences = _occurrences(body)
    homes: dict[str, Path] = {}
    for path, variable in occurrences:
        if variable.name in pool.wanted and variable.name not in given and variable.dtype != BOOL:
            homes[variable.name] = _common(homes.get(variable.name, path), path)
    names: dict[str, str] = {}
    dtypes: dict[str, np.dtype] = {}
    holders: dict[str, Path] = dict.fromkeys(pool.taken - homes.keys(), ())
    for path, variable in occurrences:
        old = variable.name
        if old in homes and old not in names:
            alike = (
                one
                for one in _candidates(pool.wanted[old])
                if dtypes.setdefault(one, variable.dtype) == variable.dtype
            )
            names[old] = new = next(one for one in alike if not _is_within(path, holders.get(one)))
            holders[new] = homes[old]
    return _renamed(body, {old: new for old, new in names.items() if old != new})


def without_unread(body: ir.Body) -> ir.Body:
    """The body of a function without variables that nobody reads, and loops and choices of nothing else."""
    named = Counter(variable.name for _, variable in _occurrences(body))

    def kept(body: ir.Body) -> ir.Body:
        read = (one for one in body if not isinstance(one, ir.Let) or named[one.defined] > 1)
        changed = map(inside, read)
        return tuple(one for one in changed if not isinstance(one, ir.For | ir.If) or any(ir.bodies(one)))

    def inside(statement: ir.Stmt) -> ir.Stmt:
        changed = ir.with_bodies(statement, kept)
        is_partly_empty = isinstance(changed, ir.If) and not all(body for _, body in changed.cases)
        return statement if is_partly_empty and any(ir.bodies(changed)) else changed

    return kept(body)


def _occurrences(body: ir.Body) -> list[tuple[Path, ir.Variable]]:
    """Each place where a variable is named, in order, with the loops around it."""
    numbers = itertools.count()
    found: list[tuple[Path, ir.Variable]] = []

    def visit(body: ir.Body, path: Path) -> None:
        for one in body:
            named = ir.parts(*ir.own_expressions(one))
            found.extend([(path, part) for part in named if type(part) is ir.Variable])
            inner = (*path, next(numbers)) if isinstance(one, ir.For) else path
            for block in ir.bodies(one):
                visit(block, inner)

    visit(body, ())
    return found


def _common(first: Path, second: Path) -> Path:
    """The loops around both of two places."""
    count = sum(1 for _ in zip(first, second))
    return first[: next((place for place in range(count) if first[place] != second[place]), count)]


def _is_within(path: Path, holder: Path | None) -> bool:
    """Whether a place is in the loop that needs a name for itself."""
    return holder is not None and path[: len(holder)] == holder


def _candidates(wanted: str) -> Iterator[str]:
    yield wanted
    count = 0
    while True:
        count += 1
        yield f"{wanted}_{count}"


def _renamed(body: ir.Body, names: Mapping[str, str]) -> ir.Body:
    """Statements with other names for variables."""

    def renamed(one: ir.Expr) -> ir.Expr | None:
        if not isinstance(one, ir.Variable) or one.name not in names:
            return None
        return replace(one, name=names[one.name])

    return ir.with_expressions(body, renamed) if names else body
